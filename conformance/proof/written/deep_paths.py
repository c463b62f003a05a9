"""Faults of what is named by a path, often of several groups: something is answered as done, and is not done."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import altering, handling, is_number, refusing, sent, without
from conformance.proof.written.integrations import NEWER, OLDER
from conformance.proof.written.merge_request_approvals import MERGE_REQUEST, RULE, RULES
from conformance.reference.errors import not_found

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

#: So many groups are around a project whose path is cut, and around such a group.
_DEEP, _DEEP_GROUP = 3, 1
_SCOPE = "/projects/:id/job_token_scope"
_RULES = "/projects/:id/approval_rules"
_BY_PATH = "conventions.project-id.encoded-subgroup-path"
_GROUP_BY_PATH = "conventions.group-id.encoded-subgroup-path"
_GROUP_RULES = "/groups/:id/approval_rules"
#: The operations that do nothing: what each is called here, and the requirement by which it is seen.
_WRITES = {
    f"POST {_SCOPE}/allowlist": ("let_projects_in", "job-token-scope.allowlist.add.present"),
    f"DELETE {_SCOPE}/allowlist/:target_project_id": ("put_projects_out", "job-token-scope.allowlist.remove.gone"),
    f"POST {_SCOPE}/groups_allowlist": ("let_groups_in", "job-token-scope.groups-allowlist.add.present"),
    f"DELETE {_SCOPE}/groups_allowlist/:target_group_id": (
        "put_groups_out",
        "job-token-scope.groups-allowlist.remove.gone",
    ),
    f"PATCH {_SCOPE}": ("switch_the_limit", _BY_PATH),
    f"POST {_RULES}": ("add_rules", _BY_PATH),
    f"PUT {_RULES}/:approval_rule_id": ("change_rules", _BY_PATH),
    f"DELETE {_RULES}/:approval_rule_id": ("delete_rules", _BY_PATH),
    "PUT /projects/:id/merge_request_approval_setting": ("change_settings", _BY_PATH),
    f"PUT {NEWER}/:slug": ("set_integrations_up", _BY_PATH),
    f"DELETE {NEWER}/:slug": ("disable_integrations", _BY_PATH),
    f"PUT {OLDER}/:slug": ("set_services_up", _BY_PATH),
    f"DELETE {OLDER}/:slug": ("disable_services", _BY_PATH),
    f"POST {_GROUP_RULES}": ("add_rules_of_groups", _GROUP_BY_PATH),
    f"PUT {_GROUP_RULES}/:approval_rule_id": ("change_rules_of_groups", _GROUP_BY_PATH),
    "PUT /groups/:id/merge_request_approval_setting": ("change_settings_of_groups", _GROUP_BY_PATH),
    f"POST {RULES}": ("add_rules_of_merge_requests", _BY_PATH),
    f"PUT {RULE}": ("change_rules_of_merge_requests", _BY_PATH),
    f"DELETE {RULE}": ("delete_rules_of_merge_requests", _BY_PATH),
    f"POST {MERGE_REQUEST}/approve": ("approve", _BY_PATH),
    f"POST {MERGE_REQUEST}/unapprove": ("take_approvals_back", _BY_PATH),
    f"PUT {MERGE_REQUEST}/reset_approvals": ("reset_approvals", _BY_PATH),
}
#: Those that do it in the project whose path is the first and the last part of the one that was named.
_ELSEWHERE = (f"POST {RULES}", f"POST {MERGE_REQUEST}/approve", f"PUT {MERGE_REQUEST}/reset_approvals")


def _undone(key: str) -> Callable[[Service], None]:
    depth = _DEEP_GROUP if "/groups/:id" in key else _DEEP

    def apply(service: Service) -> None:
        def make(handler: Any) -> Any:
            def pretending(request: Any) -> Any:
                if request.path["id"].count("/") < depth:
                    return handler(request)
                before = service.store.snapshot()
                answer = handler(request)
                service.store.restore(before)
                return answer

            return pretending

        handling(service, key, make)

    return apply


for _key, (_what, _requirement) in _WRITES.items():
    _says = f"{_key} is answered and does nothing, if it names what lies in several groups by its path."
    fault(_requirement)(named(f"long_paths_{_what}_in_words_alone", _says, _undone(_key)))


def _refused(key: str) -> Callable[[Service], None]:
    depth = _DEEP_GROUP if "/groups/:id" in key else _DEEP

    def apply(service: Service) -> None:
        refusing(service, key, lambda request: request.path["id"].count("/") >= depth, lambda: not_found("Project"))

    return apply


for _key, (_what, _requirement) in _WRITES.items():
    _says = f"{_key} finds nothing, if it names what lies in several groups by its path."
    # What is served by the number is no mistake of the write.
    _by_path = _requirement if _requirement == _GROUP_BY_PATH else _BY_PATH
    fault(_by_path)(named(f"long_paths_{_what}_never", _says, _refused(_key)))
#: Reads that show what is there instead.
_READS = {
    f"GET {MERGE_REQUEST}/approvals": "read_approvals",
    f"GET {MERGE_REQUEST}/approval_state": "read_the_state",
    f"GET {RULES}": "list_rules_of_merge_requests",
}


def _elsewhere(key: str) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        def make(handler: Any) -> Any:
            def straying(request: Any) -> Any:
                parts = request.path["id"].split("/")
                if len(parts) > _DEEP:
                    other = service.identities.find_project(f"{parts[0]}/{parts[-1]}")
                    request.admit(request.caller, other or request.project)
                return handler(request)

            return straying

        handling(service, key, make)

    return apply


for _key, _what in ({_key: _WRITES[_key][0] for _key in _ELSEWHERE} | _READS).items():
    _says = f"{_key} is done in the outermost group, if it names a project in several groups by its path."
    fault(_BY_PATH)(named(f"long_paths_{_what}_further_out", _says, _elsewhere(_key)))


@fault(_GROUP_BY_PATH)
def long_paths_list_rules_of_the_outermost_group(service: Service) -> None:
    """The list of rules of a group in other groups has those of the outermost one, if the group is named by its path."""

    def make(handler: Any) -> Any:
        def straying(request: Any) -> Any:
            if not is_number(request, "id"):
                request.admit(request.caller, service.identities.lineage(request.group)[-1])
            return handler(request)

        return straying

    handling(service, f"GET {_GROUP_RULES}", make)


fault(_BY_PATH, version="15.9")(
    named(
        "long_paths_change_the_configuration_never",
        "A change of the approval configuration of a project in several groups finds nothing by its path.",
        _refused("POST /projects/:id/approvals"),
    )
)
fault(_BY_PATH, version="15.9")(
    named(
        "long_paths_change_the_configuration_in_words_alone",
        "A change of the approval configuration of a project in several groups, by its path, is answered and not made.",
        _undone("POST /projects/:id/approvals"),
    )
)


@fault("merge-request-approvals.status.describes-its-merge-request")
def merge_requests_of_deep_projects_show_another_project(service: Service) -> None:
    """The status of a merge request whose project lies in several groups shows the number of another project."""

    def alter(request: Request, response: Response) -> None:
        if request.project.full_path.count("/") >= _DEEP:
            response.content = {**dict(response.content), "project_id": service.world.one("project").id}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("project-approval-rules.update.usernames")
def by_the_path_rules_take_no_usernames(service: Service) -> None:
    """A change of a rule that names its project by the path reads no usernames."""

    def make(handler: Any) -> Any:
        def forgetful(request: Request) -> Any:
            if not is_number(request, "id"):
                request.body = json.dumps(without("usernames")(sent(request))).encode()
            return handler(request)

        return forgetful

    handling(service, f"PUT {_RULES}/:approval_rule_id", make)


@fault("approval-settings.group.update.leaves-other-groups")
def settings_of_groups_inside_reach_the_outermost_by_the_path(service: Service) -> None:
    """A change of the settings of a group inside another one, by its path, is also made in the outermost group."""

    def make(handler: Any) -> Any:
        def spreading(request: Request) -> Any:
            answer = handler(request)
            if not is_number(request, "id"):
                request.admit(request.caller, service.identities.lineage(request.group)[-1])
                handler(request)
            return answer

        return spreading

    handling(service, "PUT /groups/:id/merge_request_approval_setting", make)


@fault("merge-request-approvals.rules.create.in-state")
def states_of_deep_merge_requests_have_no_rules(service: Service) -> None:
    """The approval state of a merge request whose project lies in several groups has no rules."""

    def alter(request: Request, response: Response) -> None:
        if request.project.full_path.count("/") >= _DEEP:
            response.content = {**dict(response.content), "rules": []}

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)


@fault("project-approval-rules.update.user-ids.removes-others")
def by_the_path_rules_also_name_who_changes_them(service: Service) -> None:
    """A change of a rule that names its project by the path makes its caller one of the approvers."""

    def make(handler: Any) -> Any:
        def joining(request: Request) -> Any:
            body = sent(request)
            if not is_number(request, "id") and "user_ids" in body:
                request.body = json.dumps({**body, "user_ids": [*body["user_ids"], request.caller.id]}).encode()
            return handler(request)

        return joining

    handling(service, f"PUT {_RULES}/:approval_rule_id", make)


@fault("merge-request-approvals.rules.copy.name")
def by_the_path_copies_keep_the_sent_name(service: Service) -> None:
    """A copy of a project rule that is made by the path of the project has the sent name."""

    def make(handler: Any) -> Any:
        def naming(request: Request) -> Any:
            body, answer = sent(request), handler(request)
            if not is_number(request, "id") and "approval_project_rule_id" in body and "name" in body:
                rules = service.approval_rules.rules
                number = answer.content["id"]
                rules[number] = replace(rules[number], name=body["name"])
                answer.content = {**answer.content, "name": body["name"]}
            return answer

        return naming

    handling(service, f"POST {RULES}", make)


def _by_the_owner(key: str, name: str) -> Callable[[Service], None]:
    """Read one list no more when the owner sends it."""

    def apply(service: Service) -> None:
        owner = service.world.actors["owner"].id

        def make(handler: Any) -> Any:
            def forgetful(request: Request) -> Any:
                if request.caller.id == owner:
                    request.body = json.dumps(without(name)(sent(request))).encode()
                return handler(request)

            return forgetful

        handling(service, key, make)

    return apply


for _key, _name, _requirement in (
    (f"PUT {_RULES}/:approval_rule_id", "protected_branch_ids", "project-approval-rules.update.protected-branch-ids"),
    (f"PUT {RULE}", "group_ids", "merge-request-approvals.rules.update.groups-are-replaced"),
    (f"POST {RULES}", "group_ids", "merge-request-approvals.rules.create.groups"),
):
    _says = f"{_key} takes no {_name} from the owner."
    _what = f"owners_send_no_{_name}_to_{_key.partition(' ')[0].lower()}"
    fault(_requirement)(named(_what, _says, _by_the_owner(_key, _name)))
