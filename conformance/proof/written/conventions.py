"""Faults of the conventions: each in one place of the service, while the rest follows them."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    altering,
    answering,
    around,
    bodies,
    breaking,
    handling,
    is_route,
    refusing,
    sent,
    with_body,
)
from conformance.reference.errors import NoRouteError, NotFoundError
from conformance.reference.http import Response, ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

PROJECT_SETTINGS = "/projects/:id/merge_request_approval_setting"
GROUP_SETTINGS = "/groups/:id/merge_request_approval_setting"
PROJECT_RULES = "/projects/:id/approval_rules"
SCOPE = "/projects/:id/job_token_scope"
ALLOWLIST = f"{SCOPE}/allowlist"
_PAGE_AND_SIZE = (rb"(?:^|&)page=(\d+)", rb"per_page=(\d+)")


# -- requests and answers ----------------------------------------------------------------------------------------------


@fault("conventions.path-prefix", operation="getProjectApprovalSettings")
def settings_lie_below_another_prefix(service: Service) -> None:
    """The approval settings of projects are at /api/v3 instead of /api/v4."""

    def make(find: Any) -> Any:
        def otherwise(method: str, raw_path: bytes) -> Any:
            here = raw_path.replace(b"/api/v3/", b"/api/v4/", 1)
            if not raw_path.endswith(b"/merge_request_approval_setting") or b"/projects/" not in raw_path:
                return find(method, raw_path)
            if here == raw_path:
                raise NoRouteError
            return find(method, here)

        return otherwise

    around(service.routes, "find", make)


@fault("conventions.responses.are-json", operation="getProjectApprovalSettings")
def settings_are_lines_of_text(service: Service) -> None:
    """The approval settings of projects are shown as lines of names and values."""

    def as_text(_: Request, response: Response) -> None:
        content: Any = response.content
        response.raw = "\n".join(f"{name}: {entry['value']}" for name, entry in content.items()).encode()
        response.content, response.has_content = None, False

    altering(service, f"GET {PROJECT_SETTINGS}", as_text)


@fault("conventions.responses.are-json", operation="getProjectApprovalSettings")
@fault("errors.success-with-body", operation="getProjectApprovalSettings")
def settings_are_read_as_nothing(service: Service) -> None:
    """Reading the approval settings of a project answers 200 with null."""

    def nothing(_: Request, response: Response) -> None:
        response.content = None

    altering(service, f"GET {PROJECT_SETTINGS}", nothing)


@fault("errors.success-with-body", operation="getProjectApprovalSettings")
def settings_are_read_without_a_body(service: Service) -> None:
    """Reading the approval settings of a project answers 200 without a body."""
    answering(service, f"GET {PROJECT_SETTINGS}", lambda _: True, Response)


@fault("conventions.responses.are-json", operation="getProjectApprovalSettings")
def settings_begin_with_a_byte_order_mark(service: Service) -> None:
    """The approval settings of projects have a byte order mark before the JSON."""

    def marked(_: Request, response: Response) -> None:
        response.raw = codecs.BOM_UTF8 + json.dumps(response.content).encode()
        response.content, response.has_content = None, False

    altering(service, f"GET {PROJECT_SETTINGS}", marked)


@fault("conventions.responses.content-type", operation="getProjectApprovalSettings")
def json_is_said_to_be_a_page(service: Service) -> None:
    """The approval settings of projects are JSON with the content type of HTML."""

    def as_page(_: Request, response: Response) -> None:
        response.media_type = "text/html; charset=utf-8"

    altering(service, f"GET {PROJECT_SETTINGS}", as_page)


@fault("conventions.requests.are-json", operation="updateProjectApprovalRule")
def numbers_in_json_are_passed_over(service: Service) -> None:
    """An update of a project's approval rule ignores numbers in a JSON body."""
    bodies(service, f"PUT {PROJECT_RULES}/:approval_rule_id", lambda body: {**body, "approvals_required": 0})


@fault("conventions.requests.are-json", operation="updateJobTokenScope", version="17.7")
def truth_in_json_is_taken_the_other_way_round(service: Service) -> None:
    """The limit of the job token scope becomes the opposite of the value in a JSON body."""
    bodies(service, f"PATCH {SCOPE}", lambda body: {"enabled": not body.get("enabled")})


@fault("conventions.no-content", operation="removeProjectFromJobTokenAllowlist")
def removal_from_the_allowlist_answers_with_bytes(service: Service) -> None:
    """Removing a project from the allowlist answers 204 with a body."""
    altering(service, f"DELETE {ALLOWLIST}/:target_project_id", with_body)


# -- ids and paths -----------------------------------------------------------------------------------------------------


def is_number(request: Request) -> bool:
    """Tell whether a path identifies its project or group by id."""
    return request.path["id"].isdigit()


def is_path(request: Request) -> bool:
    """Tell whether a path identifies its project or group by path."""
    return not is_number(request)


def naming(service: Service, find: str, twist: Callable[[Any, str], Any]) -> None:
    """Find projects or groups differently: `twist` gets the function that finds them, and the reference to one."""
    around(service.identities, find, lambda found: lambda reference: twist(found, reference))


@fault("conventions.project-id.number", operation="getProjectApprovalSettings")
def numbers_name_no_project(service: Service) -> None:
    """The approval settings of a project are found only by path."""
    refusing(service, f"GET {PROJECT_SETTINGS}", is_number, NotFoundError)


@fault("conventions.group-id.number", operation="getGroupApprovalSettings")
def numbers_name_no_group(service: Service) -> None:
    """The approval settings of a group are found only by path."""
    refusing(service, f"GET {GROUP_SETTINGS}", is_number, NotFoundError)


@fault("conventions.project-id.encoded-path", operation="getProjectApprovalSettings")
def paths_name_no_project(service: Service) -> None:
    """The approval settings of a project are found only by id."""
    refusing(service, f"GET {PROJECT_SETTINGS}", is_path, NotFoundError)


@fault("conventions.group-id.encoded-path", operation="getGroupApprovalSettings")
def paths_name_no_group(service: Service) -> None:
    """The approval settings of a group are found only by id."""
    refusing(service, f"GET {GROUP_SETTINGS}", is_path, NotFoundError)


def shown_otherwise_by_path(service: Service, key: str) -> None:
    """Show other settings for a reference by path."""

    def alter(request: Request, response: Response) -> None:
        if is_path(request):
            content: Any = response.content
            response.content = {name: {**entry, "value": not entry["value"]} for name, entry in content.items()}

    altering(service, key, alter)


@fault("conventions.project-id.encoded-path", operation="getProjectApprovalSettings")
def path_of_a_project_shows_other_settings(service: Service) -> None:
    """By path, the opposite of a project's approval settings is shown."""
    shown_otherwise_by_path(service, f"GET {PROJECT_SETTINGS}")


@fault("conventions.group-id.encoded-path", operation="getGroupApprovalSettings")
def path_of_a_group_shows_other_settings(service: Service) -> None:
    """By path, the opposite of a group's approval settings is shown."""
    shown_otherwise_by_path(service, f"GET {GROUP_SETTINGS}")


def written_to_nothing_by_path(service: Service, key: str, body: Any) -> None:
    """Answer writes by path as if they were done."""
    answering(service, key, is_path, lambda: ok(body, 200))


@fault("conventions.project-id.encoded-path", operation="updateProjectApprovalSettings")
def settings_of_a_project_are_not_written_by_its_path(service: Service) -> None:
    """An update of the approval settings of a project named by its path is answered, but not done."""
    written_to_nothing_by_path(service, f"PUT {PROJECT_SETTINGS}", {})


@fault("conventions.project-id.encoded-path", operation="createProjectApprovalRule")
def rules_made_by_the_path_go_to_another_project(service: Service) -> None:
    """A rule that is created for a project named by its path belongs to another project."""

    def make(handler: Any) -> Any:
        def elsewhere(request: Request) -> Any:
            if is_path(request):
                projects = service.identities.projects
                here = service.identities.find_project(request.path["id"])
                request.path["id"] = str(next(number for number in projects if here is None or number != here.id))
                request.admit(request.caller, projects[int(request.path["id"])])
            return handler(request)

        return elsewhere

    handling(service, f"POST {PROJECT_RULES}", make)


@fault("conventions.group-id.encoded-path", operation="updateGroupApprovalSettings")
def settings_of_a_group_are_not_written_by_its_path(service: Service) -> None:
    """An update of the approval settings of a group named by its path is answered, but not done."""

    def make(handler: Any) -> Any:
        def forgetful(request: Request) -> Any:
            if is_path(request):
                request.body = b"{}"
            return handler(request)

        return forgetful

    handling(service, f"PUT {GROUP_SETTINGS}", make)


@fault("conventions.project-id.encoded-path", operation="getJobTokenScope", version="17.7")
def owners_name_projects_by_number_alone(service: Service) -> None:
    """For owners, the job token scope of a project is found only by id."""
    owner = service.world.actors["owner"].token

    def is_by_path_of_owner(request: Request) -> bool:
        return is_path(request) and service.access.token_text(request) == owner

    refusing(service, f"GET {SCOPE}", is_by_path_of_owner, NotFoundError)


@fault("conventions.group-id.encoded-subgroup-path")
def path_of_a_subgroup_is_cut_short(service: Service) -> None:
    """Only the part before the slash of a subgroup's path is used."""
    naming(service, "find_group", lambda find, reference: find(reference.partition("/")[0]))


@fault("conventions.group-id.encoded-subgroup-path")
def path_of_a_subgroup_names_nothing(service: Service) -> None:
    """A path with a slash identifies no group."""
    naming(service, "find_group", lambda find, reference: None if "/" in reference else find(reference))


def cutting_paths_short(service: Service, key: str) -> None:
    """Let one operation use only the part before the slash of a subgroup's path."""

    def make(subject: Any) -> Any:
        def found(route: Any, caller: Any, reference: str) -> Any:
            return subject(route, caller, reference.partition("/")[0] if is_route(route, key) else reference)

        return found

    around(service.access, "subject", make)


@fault("conventions.group-id.encoded-subgroup-path")
def path_of_a_subgroup_downloads_the_file_of_the_group_around_it(service: Service) -> None:
    """Only downloads cut the path of a subgroup short."""
    cutting_paths_short(service, "GET /groups/:id/export_relations/download")


@fault("conventions.group-id.encoded-subgroup-path")
def path_of_a_subgroup_shows_the_settings_of_the_group_around_it(service: Service) -> None:
    """Only reading settings cuts the path of a subgroup short."""
    cutting_paths_short(service, f"GET {GROUP_SETTINGS}")


@fault("conventions.project-id.names-no-group")
def path_of_a_group_names_a_project(service: Service) -> None:
    """The path of a group identifies the first project in it."""

    def find_either(find: Any, reference: str) -> Any:
        inside = (
            known for known in service.identities.projects.values() if known.full_path.startswith(f"{reference}/")
        )
        return find(reference) or next(inside, None)

    naming(service, "find_project", find_either)


@fault("conventions.group-id.names-no-project")
def path_of_a_project_names_its_group(service: Service) -> None:
    """The path of a project identifies its group."""

    def find_either(find: Any, reference: str) -> Any:
        project = service.identities.find_project(reference)
        return find(reference) or (project and service.identities.namespace_of(project))

    naming(service, "find_group", find_either)


# -- pages -------------------------------------------------------------------------------------------------------------


def asks_for_page(request: Request) -> bool:
    """Tell whether a page is requested."""
    return re.search(rb"(^|&)page=", request.query) is not None


def asks_for_short_page(request: Request) -> bool:
    """Tell whether a page of fewer than ten entries is requested."""
    return asks_for_page(request) and re.search(rb"(^|&)per_page=\d(&|$)", request.query) is not None


@fault("conventions.pagination.parameters", operation="listProjectApprovalRules")
def asking_for_a_short_page_is_wrong(service: Service) -> None:
    """The approval rules of a project are refused if a short page is requested."""
    refusing(service, f"GET {PROJECT_RULES}", asks_for_short_page, NotFoundError)


@fault("conventions.pagination.parameters", operation="listProjectApprovalRules")
def pages_come_in_an_object(service: Service) -> None:
    """A short page of the approval rules of a project is an object that contains the list."""

    def wrapped(request: Request, response: Response) -> None:
        if asks_for_short_page(request):
            response.content = {"page": 1, "entries": response.content}

    altering(service, f"GET {PROJECT_RULES}", wrapped)


def with_query(service: Service, change: Callable[[bytes], bytes]) -> None:
    """Read a query for the approval rules of a project that differs from the one that was sent."""

    def make(admit: Any) -> Any:
        def rewriting(request: Request) -> None:
            if is_route(request.route, f"GET {PROJECT_RULES}"):
                request.query = change(request.query)
            admit(request)

        return rewriting

    around(service.access, "admit", make)


@fault("conventions.pagination.page-size", operation="listProjectApprovalRules")
def pages_hold_one_entry_more(service: Service) -> None:
    """A page of the approval rules of a project has one entry more than per_page."""
    with_query(
        service,
        lambda query: re.sub(rb"per_page=(\d+)", lambda found: b"per_page=%d" % (int(found[1]) + 1), query),
    )


@fault("conventions.pagination.whole-list", operation="listProjectApprovalRules")
def last_page_is_never_reached(service: Service) -> None:
    """The last entry of the list of a project's approval rules is on no page."""
    area = service.project_approval_rules
    around(area, "rules", lambda rules: lambda project: rules(project)[:-1])


@fault("conventions.pagination.whole-list", operation="listProjectApprovalRules")
def page_numbers_are_compared_as_texts(service: Service) -> None:
    """If a project's approval rules fill ten pages or more, the pages 2 to 9 are empty."""
    area = service.project_approval_rules

    def without(request: Request, response: Response) -> None:
        page, size = (int(found[1]) if (found := re.search(name, request.query)) else 1 for name in _PAGE_AND_SIZE)
        last = -(-len(area.rules(request.project)) // max(size, 1))
        if page <= last and str(page) > str(last):
            response.content = []

    altering(service, f"GET {PROJECT_RULES}", without)


@fault("conventions.pagination.whole-list", operation="listProjectApprovalRules")
def pages_overlap(service: Service) -> None:
    """Each page of a project's approval rules after the first begins with the last entry of the previous one."""
    seen: list[Any] = []

    def overlap(request: Request, response: Response) -> None:
        content: Any = response.content
        if re.search(rb"(^|&)page=1(&|$)", request.query):
            seen.clear()
        shown = [*seen[-1:], *content][: len(content)] if content else []
        seen[:] = content
        response.content = shown

    altering(service, f"GET {PROJECT_RULES}", overlap)


@fault("conventions.pagination.beyond-the-end", operation="listProjectApprovalRules")
def behind_the_end_the_list_begins_anew(service: Service) -> None:
    """Far after the last page of a project's approval rules, the first one is returned again."""
    with_query(service, lambda query: re.sub(rb"(^|&)page=(1[5-9]|[2-9]\d|\d{3,})", rb"\1page=1", query))


@fault("conventions.requests.are-json")
def rare_signs_in_a_name_break(service: Service) -> None:
    """A rule with a sign in its name that older encodings cannot hold causes a server error."""
    breaking(service, "POST /projects/:id/approval_rules", lambda request: "🚀" in str(sent(request).get("name")))
