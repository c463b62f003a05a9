"""What a job token scope and its allowlists say: entries, pages, and what a version has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering, asking_otherwise, changing_entries
from conformance.proof.foreign.dimensions import PAGES, STORY, VERSIONS
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST, SCOPE
from conformance.proof.foreign.registry import by_path, foreign, handling, instead, is_served
from conformance.reference.http import Page, ok
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading the scope -------------------------------------------------------------------------------------------------


# What is planned for a version is still there in the last one before it.
@foreign(VERSIONS, "Versioning: 18.0; Job token scope settings", version="17.11")
def the_outbound_limit_goes_a_release_early(service: Service) -> None:
    """In the last release before 18.0 the settings have no outbound_enabled any more."""

    @instead(service.job_token_scope, "settings")
    def _(settings: Any, project: Any) -> Any:
        shown = settings(project)
        if service.version >= Version(17, 11):
            shown.pop("outbound_enabled", None)
        return shown


# Until 18.0 the field is there, whatever the other one says.
@foreign(VERSIONS, "Job token scope settings: outbound_enabled")
def outbound_enabled_is_shown_beside_a_limit_alone(service: Service) -> None:
    """The settings lack outbound_enabled while access is not limited."""

    @instead(service.job_token_scope, "settings")
    def _(settings: Any, project: Any) -> Any:
        shown = settings(project)
        if not shown["inbound_enabled"]:
            shown.pop("outbound_enabled", None)
        return shown


# -- the allowlists ----------------------------------------------------------------------------------------------------


@foreign(STORY, "Allowlist project entry")
def entries_lie_in_the_namespace_of_the_source(service: Service) -> None:
    """Projects of an allowlist are shown in the namespace of the project whose list it is."""

    def change(entry: Any, request: Any) -> None:
        entry["namespace"] = service.present.namespace(service.identities.namespace_of(request.project))

    changing_entries(service, change)


@foreign(STORY, "Allowlist project entry")
def entries_are_cloned_from_the_source(service: Service) -> None:
    """Projects of an allowlist have the address for cloning of the project whose list it is."""

    def change(entry: Any, request: Any) -> None:
        entry["http_url_to_repo"] = f"{service.choices.web_url}/{request.project.full_path}.git"

    changing_entries(service, change)


@foreign(STORY, "Allowlist project entry")
def paths_lack_the_namespace(service: Service) -> None:
    """The full path of an allowlist's project is the path without its namespace."""
    changing_entries(service, lambda entry, _: entry.update(path_with_namespace=entry["path"]))


@foreign(STORY, "Allowlist group entry")
def groups_have_the_address_of_the_first(service: Service) -> None:
    """All groups of an allowlist have the address of one and the same group."""
    first = service.identities.groups[service.world.one("group").id]

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        return {**present(group), "web_url": service.present.group_url(first)}


@foreign(STORY, "Allowlist group entry")
def nested_groups_are_named_like_the_one_around(service: Service) -> None:
    """A group within a group is listed in an allowlist by the name of the group around it."""

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        around = service.identities.groups.get(group.parent_id)
        return {**present(group), "name": around.name if around else group.name}


@foreign(PAGES, "Job token scope: groups_allowlist is paginated")
def pages_of_let_in_groups_overlap(service: Service) -> None:
    """Every page of the allowed groups begins with the last entry of the page before; no entry comes twice."""

    @handling(service, f"GET {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer, scopes = handler(request), service.job_token_scope
        page = request.parameters.optional_integer("page") or 1
        size = request.parameters.optional_integer("per_page") or 20
        if page > 1:
            start = (page - 1) * max(1, size - 1)
            entries = scopes.groups(request.project)[start : start + size]
            answer.content = [scopes.present_group(group) for group in entries]
        return answer


@foreign(STORY, "Allowlist project entry: created_at, description")
def entries_are_described_as_their_namespace(service: Service) -> None:
    """The columns of project and namespace clash: description and created_at of an entry are those of its group."""

    @instead(service.present, "_limited_project")
    def _(limited: Any, project: Any, namespace: Any) -> Any:
        moment = service.present.timestamp(namespace.created_at)
        return {**limited(project, namespace), "description": namespace.description, "created_at": moment}


@foreign(STORY, "Job token scope: allowlist project entry, namespace")
def entries_carry_the_namespace_of_the_asking_project(service: Service) -> None:
    """Each entry of the allowlist shows the namespace of the project whose list it is, in the place of its own."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        namespace = service.identities.namespace_of(request.project)
        for entry in answer.content:
            entry["namespace"] = service.present.namespace(namespace)
        return answer


@foreign(PAGES, "Job token scope: GET allowlist, paginated")
def the_project_itself_leads_every_page(service: Service) -> None:
    """The project's own entry is put before each page, whose last entry then finds no room."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        page = Page.of(request.parameters, service.choices)
        others = [target for target in service.job_token_scope.projects(request.project) if target != request.project]
        start = (page.number - 1) * page.size
        found = others[start : start + page.size]
        shown = [request.project, *found][: page.size] if found or page.number == 1 else []
        answer.content = [service.present.limited_project(target) for target in shown]
        return answer


@foreign(PAGES, "Job token scope: GET allowlist, paginated")
def pages_are_remembered_without_their_size(service: Service) -> None:
    """Until the list changes, a page that was asked for once comes back when it is asked for with another size."""
    remembered: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        key = (request.project.id, Page.of(request.parameters, service.choices).number)
        answer.content = remembered.setdefault(key, answer.content)
        return answer

    @handling(service, f"POST {ALLOWLIST}", f"DELETE {ALLOWLIST}/:target_project_id")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in remembered if key[0] == request.project.id]:
            del remembered[key]
        return handler(request)


@foreign(PAGES, "Job token scope: GET of both allowlists, array")
def a_page_behind_the_last_one_is_null(service: Service) -> None:
    """Where a page begins behind the end there is no list at all: the answer is null, in the place of an array."""

    @handling(service, f"GET {ALLOWLIST}", f"GET {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if not answer.content and Page.of(request.parameters, service.choices).number > 1:
            answer.content = None
        return answer


# Pages do not repeat entries, and are no longer than was asked for.
@foreign(PAGES, "Job token scope: GET allowlist")
def each_page_begins_with_the_project_itself(service: Service) -> None:
    """The project itself is put before the entries of each page, and not before the list."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if (request.parameters.optional_integer("page") or 1) > 1 and answer.content:
            answer.content.insert(0, service.present.limited_project(request.project))
        return answer


# A pair of ids is kept in ascending order, and read as if the first one were the source.
@foreign(STORY, "Allowlist addition result: source_project_id, target_project_id")
def the_older_of_two_projects_is_the_source(service: Service) -> None:
    """An addition of a project that is older than its source is answered with both ids exchanged."""

    @handling(service, f"POST {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        source, target = sorted(answer.content.values())
        answer.content = {"source_project_id": source, "target_project_id": target}
        return answer


# Whether another page follows is found out by one entry more, which is then taken off where there is none.
@foreign(PAGES, "Job token scope: GET allowlist, page and per_page")
def a_last_page_that_is_full_lacks_an_entry(service: Service) -> None:
    """Where the projects just fill the last page, its last entry is on no page."""
    scopes = service.job_token_scope

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, request.choices)
        if page.number * page.size == len(scopes.projects(request.project)):
            answer.content = answer.content[:-1]
        return answer


# No entry is on two pages.
@foreign(PAGES, "Job token scope: groups_allowlist is paginated")
def from_the_third_page_on_one_entry_is_repeated(service: Service) -> None:
    """Where a page begins is counted wrongly once there are two before it: it begins with the last one of those."""
    scopes = service.job_token_scope

    @handling(service, "GET /projects/:id/job_token_scope/groups_allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, request.choices)
        if page.number > 2:
            start = (page.number - 1) * page.size - 1
            groups = scopes.groups(request.project)[start : start + page.size]
            answer.content = [scopes.present_group(group) for group in groups]
        return answer


# A description is that of the project.
@foreign(STORY, "Allowlist project entry: description")
def projects_without_a_description_have_that_of_the_one_before(service: Service) -> None:
    """A list is written with one set of variables, and what an entry lacks is left from the entry before."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer, last = handler(request), None
        for entry in answer.content if is_served(answer) else ():
            last = entry["description"] = entry["description"] or last
        return answer


# Projects are told apart by their ids.
@foreign(PAGES, "Job token scope: GET allowlist")
def projects_of_one_name_are_listed_once(service: Service) -> None:
    """Of listed projects with the same name, which lie in different groups, the first one is shown alone."""

    @instead(service.job_token_scope, "projects")
    def _(projects: Any, project: Any) -> Any:
        return list({listed.name: listed for listed in reversed(projects(project))}.values())[::-1]


@foreign(PAGES, "Job token scope: pages")
def one_group_a_page_is_no_length(service: Service) -> None:
    """Pages of one group are as long as pages are without being asked."""
    asking_otherwise(service, f"GET {GROUPS_ALLOWLIST}", lambda _, query: re.sub(rb"\bper_page=1\b", b"", query))


@foreign(STORY, "Allowlist project entry: namespace")
def namespaces_forget_what_is_around_them(service: Service) -> None:
    """The full_path of a namespace is its path alone, also where it lies in another one."""

    @instead(service.present, "namespace")
    def _(namespace: Any, group: Any) -> Any:
        return {**namespace(group), "full_path": group.path}


@foreign(STORY, "Allowlist project entry: namespace")
def of_two_projects_with_one_path_the_second_has_the_namespace_of_the_first(service: Service) -> None:
    """A project is listed in the namespace of the project of the same last part of its path that was shown first."""
    known: dict[str, Any] = {}

    @instead(service.present, "limited_project")
    def _(limited_project: Any, project: Any) -> Any:
        shown = limited_project(project)
        return {**shown, "namespace": dict(known.setdefault(project.path, shown["namespace"]))}


@foreign(PAGES, "Job token scope: GET allowlist, per_page")
def a_page_of_one_project_has_all_of_them(service: Service) -> None:
    """An allowlist that is asked for with one project on a page is answered whole."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_integer("per_page") != 1:
            return handler(request)
        listed = service.job_token_scope.projects(request.project)
        return ok([service.present.limited_project(project) for project in listed])


@foreign(STORY, "Allowlist project entry: created_at")
def entries_were_created_when_they_were_let_in(service: Service) -> None:
    """Two columns have one name: created_at of an entry is the moment of its addition, not that of the project."""
    added: dict[tuple[int, int], str] = {}

    def note(request: Any, content: Any) -> Any:
        moment = service.present.timestamp(service.clock.now())
        added[request.project.id, content["target_project_id"]] = moment
        return content

    answering(service, f"POST {ALLOWLIST}", note)

    def change(entry: Any, request: Any) -> None:
        entry["created_at"] = added.get((request.project.id, entry["id"]), entry["created_at"])

    changing_entries(service, change)


@foreign(STORY, "Job token scope: POST allowlist, GET allowlist")
def projects_of_a_user_are_let_in_and_not_listed(service: Service) -> None:
    """The list is joined with the groups around its projects: one in the namespace of a user is answered, not listed."""

    @instead(service.job_token_scope, "projects")
    def _(projects: Any, project: Any) -> Any:
        namespace_of = service.identities.namespace_of
        return [one for one in projects(project) if not namespace_of(one).personal]


@foreign(PAGES, "Allowlist project entry: namespace")
def entries_of_later_pages_have_no_namespace(service: Service) -> None:
    """What a page needs is loaded for the first one: entries of later pages have null as their namespace."""

    def change(entry: Any, request: Any) -> None:
        if (request.parameters.optional_integer("page") or 1) > 1:
            entry["namespace"] = None

    changing_entries(service, change)


@foreign(PAGES, "Job token scope: GET groups_allowlist, page and per_page")
def groups_take_a_place_on_a_page_for_each_member(service: Service) -> None:
    """A page is cut from groups joined with members, and each group is shown once: pages are short, and repeat."""

    @handling(service, f"GET {GROUPS_ALLOWLIST}")
    def _(_: Any, request: Any) -> Any:
        scopes, roles = service.job_token_scope, service.identities.roles
        rows: list[Any] = []
        for group in scopes.groups(request.project):
            rows += [group] * max(1, sum(key[:2] == ("group", group.id) for key in roles))
        answer = request.collection(rows, scopes.present_group)
        answer.content = list({entry["id"]: entry for entry in answer.content}.values())
        return answer


@foreign(VERSIONS, "Versioning: 16.1, job token scope", version="16.1")
def allowlists_are_paged_a_release_later(service: Service) -> None:
    """At 16.1 the allowlist of projects is sent as a whole, whatever page was asked for."""
    service.routes.change(f"GET {ALLOWLIST}", paginated=Version(16, 2))


# -- adding to an allowlist --------------------------------------------------------------------------------------------


@foreign(STORY, "Job token scope: POST")
def sources_are_named_as_they_were_written(service: Service) -> None:
    """By the path of the project source_project_id is that path, and no integer."""
    for name in ("allowlist", "groups_allowlist"):
        answering(
            service,
            f"POST {SCOPE}/{name}",
            lambda request, content: (
                {**content, "source_project_id": request.path["id"]} if by_path(request) else content
            ),
        )


# -- removing from an allowlist ----------------------------------------------------------------------------------------


# All endpoints of the area came together.
@foreign(VERSIONS, "Versioning: 16.1", version="16.1")
def groups_are_let_out_a_release_later(service: Service) -> None:
    """At 16.1 groups can be added to the allowlist, and not be removed: that endpoint came with 16.2."""
    service.routes.change(f"DELETE {SCOPE}/groups_allowlist/:target_group_id", introduced=Version(16, 2))


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(VERSIONS, "Versioning, row 16.1: job token scope endpoints", version="16.1")
def groups_are_let_in_from_17_0_on(service: Service) -> None:
    """Of the job token scope, the list of groups comes with 17.0 only, not with 16.1 as all the rest."""
    for key in (f"GET {GROUPS_ALLOWLIST}", f"POST {GROUPS_ALLOWLIST}", f"DELETE {GROUPS_ALLOWLIST}/:target_group_id"):
        service.routes.change(key, introduced=Version(17, 0))
