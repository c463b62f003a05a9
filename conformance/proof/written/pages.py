"""Faults of the pages of lists: what a page is that is named by its number alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import around, breaking, handling, is_number, is_route
from conformance.reference.areas.approval_rule_records import RuleRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

#: More than a service may have on one page by default.
_MANY = 30
#: Requirement -> the operation that lists, and where.
_LISTS = {
    "group-approval-rules.pages": ("listGroupApprovalRules", "/groups/:id/approval_rules"),
    "job-token-scope.allowlist.pages": ("listJobTokenAllowlist", "/projects/:id/job_token_scope/allowlist"),
    "job-token-scope.groups-allowlist.pages": (
        "listJobTokenGroupsAllowlist",
        "/projects/:id/job_token_scope/groups_allowlist",
    ),
    "merge-request-approvals.rules.pages": (
        "listMergeRequestApprovalRules",
        "/projects/:id/merge_requests/:merge_request_iid/approval_rules",
    ),
    "project-approval-rules.pages": ("listProjectApprovalRules", "/projects/:id/approval_rules"),
}


def _not_by_number_alone(operation: str, path: str) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        def make(admit: Any) -> Any:
            def forgetting(request: Request) -> None:
                if is_route(request.route, f"GET {path}") and b"per_page=" not in request.query:
                    request.query = re.sub(rb"(^|&)page=\d+", rb"\1", request.query)
                admit(request)

            return forgetting

        around(service.access, "admit", make)

    name = f"{_words(operation)}_needs_a_length"
    return named(name, f"GET {path} begins anew on each page that is asked for by its number alone.", apply)


def _breaks_without_a_length(operation: str, path: str) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        breaking(service, f"GET {path}", lambda q: b"page=" in q.query and b"per_page=" not in q.query)

    name = f"{_words(operation)}_breaks_without_a_length"
    return named(name, f"GET {path} breaks for a page that is asked for by its number alone.", apply)


_DIGITS = rb"(^|&)(page=\d)\d+"
#: How each query is misread: what it is called here, what the faulty service does, whether by the path (None: by path
#: and number), which queries, and as what.
_MISREAD: tuple[tuple[str, str, bool | None, bytes, bytes], ...] = (
    (
        "by_its_path_has_one_page",
        "shows the first page by the path, whatever its number",
        True,
        rb"(^|&)page=\d+",
        rb"\1",
    ),
    ("by_its_path_has_long_pages", "takes no size by the path", True, rb"(^|&)per_page=\d+", rb"\1"),
    ("by_its_path_reads_one_digit", "reads one digit of the number of a page by the path", True, _DIGITS, rb"\1\2"),
    ("by_number_reads_one_digit", "reads one digit of the number of a page by the number", False, _DIGITS, rb"\1\2"),
    (
        "shows_nothing_on_the_longest_page",
        "takes a size of 100 for one beyond its maximum, and shows nothing",
        None,
        rb"(^|&)per_page=100(?=&|$)",
        rb"\1per_page=100&page=9999",
    ),
)


def _misread(operation: str, path: str, what: tuple[str, str, bool | None, bytes, bytes]) -> Callable[[Service], None]:
    name, says, by_path, wrong, instead = what

    def apply(service: Service) -> None:
        def make(handler: Any) -> Any:
            def misreading(request: Request) -> Any:
                if by_path is None or is_number(request, "id") is not by_path:
                    request.query = re.sub(wrong, instead, request.query)
                return handler(request)

            return misreading

        handling(service, f"GET {path}", make)

    return named(f"{_words(operation)}_{name}", f"GET {path} {says}.", apply)


def _words(operation: str) -> str:
    return re.sub("(?=[A-Z])", "_", operation).lower()


for _requirement, (_operation, _path) in _LISTS.items():
    fault(_requirement, operation=_operation)(_not_by_number_alone(_operation, _path))
    fault(_requirement, operation=_operation)(_breaks_without_a_length(_operation, _path))
    for _what in _MISREAD:
        fault(_requirement, operation=_operation)(_misread(_operation, _path, _what))


# -- long lists --------------------------------------------------------------------------------------------------------


def _long(service: Service, change: Callable[[bytes], bytes]) -> None:
    """Give projects many rules, and read the pages of one rule otherwise than they were asked for."""
    maintainer = next(user for user in service.identities.users.values() if user.username == _maintainer(service))
    for name in ("project", "fuzz_project"):
        project = service.identities.projects[service.world.one(name).id]
        for number in range(_MANY):
            wanted = RuleRequest(name=f"Rule {number}", approvals_required=1, user_ids=(maintainer.id,))
            service.project_approval_rules.create_rule(project, wanted, maintainer)

    def make(handler: Any) -> Any:
        def misreading(request: Request) -> Any:
            if re.search(rb"per_page=1(&|$)", request.query):
                request.query = change(request.query)
            return handler(request)

        return misreading

    handling(service, "GET /projects/:id/approval_rules", make)


def _maintainer(service: Service) -> str:
    return service.world.actors["maintainer"].username


@fault("project-approval-rules.pages", operation="listProjectApprovalRules")
def pages_of_one_rule_have_two_in_a_long_list(service: Service) -> None:
    """Where there are many rules, a page of one has two."""
    _long(service, lambda query: query.replace(b"per_page=1", b"per_page=2"))


@fault("project-approval-rules.pages", operation="listProjectApprovalRules")
def last_pages_of_one_rule_begin_again_in_a_long_list(service: Service) -> None:
    """Where there are many rules, the pages of one rule begin again after the twentieth."""
    _long(service, lambda query: re.sub(rb"(^|&)page=[2-9]\d(?=&|$)", rb"\1page=1", query))
