"""Faults of calls that nobody has to serve, or that change nothing: there, a service breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.proof.faults import fault, named
from conformance.proof.tampering import breaking, is_route, names_nothing, sent
from conformance.proof.written.approval_rules import names_twice
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import ApiError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

    Holds = Callable[[Service, Request], bool]

_GROUP_RULES = "/groups/:id/approval_rules"
_PROJECT_RULES = "/projects/:id/approval_rules"
_PROJECT_RULE = f"{_PROJECT_RULES}/:approval_rule_id"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_MERGE_REQUEST_RULES = f"{_MERGE_REQUEST}/approval_rules"
_MERGE_REQUEST_RULE = f"{_MERGE_REQUEST_RULES}/:approval_rule_id"
_CONFIGURATION = "/projects/:id/approvals"
_SOURCE = "approval_project_rule_id"
_SELECTIVE, _RESET = "selective_code_owner_removals", "reset_approvals_on_push"


def _is_empty(_: Service, request: Request) -> bool:
    return not sent(request)


def _is_for_code_owners(_: Service, request: Request) -> bool:
    return sent(request).get("rule_type") == "code_owner"


def _names_a_type(_: Service, request: Request) -> bool:
    return "rule_type" in sent(request)


def _names_twice(_: Service, request: Request) -> bool:
    return names_twice(request)


def _names_no_rule(_: Service, request: Request) -> bool:
    return names_nothing(request, "approval_rule_id")


def _is_no_number(_: Service, request: Request) -> bool:
    return not request.path["approval_rule_id"].isdigit()


def _wants_both(_: Service, request: Request) -> bool:
    return sent(request).get(_SELECTIVE) is True and sent(request).get(_RESET) is True


def _has_approved(service: Service, request: Request) -> bool:
    return service.merge_request_approvals.approved_by(request.caller, merge_request_of(request))


def _never_approved(service: Service, request: Request) -> bool:
    is_author = request.caller.id == merge_request_of(request).author_id
    return not is_author and not _has_approved(service, request)


def _is_the_author(service: Service, request: Request) -> bool:
    merge_request = merge_request_of(request)
    others = service.merge_request_approvals.approvals_of(merge_request)
    return request.caller.id == merge_request.author_id and bool(others)


def _copies_from_elsewhere(service: Service, request: Request) -> bool:
    rule = service.approval_rules.rules.get(sent(request).get(_SOURCE, 0))
    return rule is not None and rule.home != (rule.home.level, request.project.id)


def _copies_what_is_gone(service: Service, request: Request) -> bool:
    wanted = sent(request).get(_SOURCE)
    return wanted is not None and wanted < _ABOVE_ALL and wanted not in service.approval_rules.rules


def _is_elsewhere(service: Service, request: Request) -> bool:
    """Tell whether no merge request of the project has this number, but one of another project."""
    known = service.repositories.merge_requests
    number = request.path["merge_request_iid"]
    return (
        number.isdigit() and (request.project.id, int(number)) not in known and number in {str(iid) for _, iid in known}
    )


def _is_an_id(service: Service, request: Request) -> bool:
    """Tell whether no merge request of the project has this number as iid, but one as id."""
    try:
        merge_request_of(request)
    except ApiError:
        known = service.repositories.merge_requests.values()
        return request.path["merge_request_iid"] in {str(one.id) for one in known}
    return False


#: No number of the reference is larger.
_ABOVE_ALL = 1_000_000
#: Requirement, route, when it breaks, the name of the fault, and what the service does.
_FAULTS: tuple[tuple[str, str, Holds, str, str], ...] = (
    (
        "approval-settings.group.update.empty",
        "PUT /groups/:id/merge_request_approval_setting",
        _is_empty,
        "empty_update_of_a_group_breaks",
        "An update of a group without any setting causes a server error.",
    ),
    (
        "approval-settings.project.update.empty",
        "PUT /projects/:id/merge_request_approval_setting",
        _is_empty,
        "empty_update_of_a_project_breaks",
        "An update of a project without any setting causes a server error.",
    ),
    (
        "group-approval-rules.create.code-owner",
        f"POST {_GROUP_RULES}",
        _is_for_code_owners,
        "code_owner_of_a_group_breaks",
        "Creating a rule of type code_owner in a group causes a server error.",
    ),
    (
        "project-approval-rules.create.code-owner",
        f"POST {_PROJECT_RULES}",
        _is_for_code_owners,
        "code_owner_of_a_project_breaks",
        "Creating a rule of type code_owner in a project causes a server error.",
    ),
    (
        "project-approval-rules.update.answers-with-rule",
        f"PUT {_PROJECT_RULE}",
        _names_a_type,
        "another_type_in_a_change_breaks",
        "A change of a project's rule that sends rule_type causes a server error.",
    ),
    (
        "project-approval-rules.delete.rule-id-is-integer",
        f"DELETE {_PROJECT_RULE}",
        _is_no_number,
        "deleting_any_text_breaks",
        "Deleting a rule that is named by no number causes a server error.",
    ),
    (
        "project-approval-rules.delete.unknown-rule",
        f"DELETE {_PROJECT_RULE}",
        _names_no_rule,
        "deleting_an_unknown_rule_breaks",
        "Deleting a rule that never existed causes a server error.",
    ),
    (
        "merge-request-approvals.rules.create.users",
        f"POST {_MERGE_REQUEST_RULES}",
        _names_twice,
        "an_approver_named_twice_breaks_a_creation",
        "Creating a merge request's rule that names a user twice causes a server error.",
    ),
    (
        "merge-request-approvals.rules.update.empty",
        f"PUT {_MERGE_REQUEST_RULE}",
        _is_empty,
        "empty_update_of_a_rule_breaks",
        "An update of a merge request's rule without any parameter causes a server error.",
    ),
    (
        "merge-request-approvals.rules.copy.unknown-project-rule",
        f"POST {_MERGE_REQUEST_RULES}",
        _copies_from_elsewhere,
        "copying_a_rule_from_elsewhere_breaks",
        "Copying a rule that belongs to something else than the project causes a server error.",
    ),
    (
        "merge-request-approvals.rules.copy.unknown-project-rule",
        f"POST {_MERGE_REQUEST_RULES}",
        _copies_what_is_gone,
        "copying_a_deleted_rule_breaks",
        "Copying a rule that was deleted causes a server error.",
    ),
    (
        "merge-request-approvals.approve.repeated",
        f"POST {_MERGE_REQUEST}/approve",
        _has_approved,
        "approving_twice_breaks",
        "Whoever approves a second time causes a server error.",
    ),
    (
        "merge-request-approvals.unapprove.without-approval",
        f"POST {_MERGE_REQUEST}/unapprove",
        _never_approved,
        "unapproving_without_approval_breaks",
        "Whoever withdraws an approval without having one causes a server error.",
    ),
    (
        "merge-request-approvals.unapprove.without-approval",
        f"POST {_MERGE_REQUEST}/unapprove",
        _is_the_author,
        "unapproving_by_the_author_breaks",
        "The author causes a server error by withdrawing an approval where others have approved.",
    ),
    (
        "merge-request-approvals.merge-request.of-its-project",
        f"GET {_MERGE_REQUEST}/approvals",
        _is_elsewhere,
        "numbers_of_other_projects_break",
        "The number of a merge request that only another project has causes a server error.",
    ),
    (
        "merge-request-approvals.unknown-merge-request.reading",
        f"GET {_MERGE_REQUEST}/approvals",
        _is_an_id,
        "ids_of_merge_requests_break",
        "The id of a merge request in place of its iid causes a server error.",
    ),
    (
        "project-approval-configuration.change.empty",
        f"POST {_CONFIGURATION}",
        _is_empty,
        "empty_change_breaks",
        "A change without any parameter causes a server error.",
    ),
    (
        "project-approval-configuration.change.selective-while-resetting",
        f"POST {_CONFIGURATION}",
        _wants_both,
        "both_at_once_break",
        "selective_code_owner_removals and reset_approvals_on_push, sent together, cause a server error.",
    ),
)


def _breaking(key: str, when: Holds) -> Callable[[Service], None]:
    return lambda service: breaking(service, key, lambda request: when(service, request))


def _breaking_nowhere(key: str) -> Callable[[Service], None]:
    """Break where no project is found, which is so before a route answers."""

    def apply(service: Service) -> None:
        def transform(route: Route, request: Request, response: Response) -> Response:
            return Response(500) if is_route(route, key) and names_nothing(request, "id") else response

        service.transformers.append(transform)

    return apply


for _requirement, _key, _when, _name, _says in _FAULTS:
    fault(_requirement)(named(_name, _says, _breaking(_key, _when)))

_NOWHERE = (
    ("project-approval-rules.unknown-project", _PROJECT_RULE),
    ("merge-request-approvals.unknown-project", _MERGE_REQUEST_RULE),
)
for _requirement, _path in _NOWHERE:
    _says = "Deleting a rule in a project that does not exist causes a server error."
    fault(_requirement)(named("deletion_in_an_unknown_project_breaks", _says, _breaking_nowhere(f"DELETE {_path}")))
