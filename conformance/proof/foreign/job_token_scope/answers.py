"""What a job token scope and its allowlists show: entries, pages, and what exists at a version."""

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


# A removal at a version leaves the item in all versions before it.
@foreign(VERSIONS, "Versioning: 18.0; Job token scope settings", version="17.11")
def the_outbound_limit_goes_a_release_early(service: Service) -> None:
    """In the last release before 18.0 the settings have no outbound_enabled."""

    @instead(service.job_token_scope, "settings")
    def _(settings: Any, project: Any) -> Any:
        shown = settings(project)
        if service.version >= Version(17, 11):
            shown.pop("outbound_enabled", None)
        return shown


# Until 18.0 the field exists, whatever the other one says.
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
    """Projects of an allowlist are shown with the namespace of the project whose list it is."""

    def change(entry: Any, request: Any) -> None:
        entry["namespace"] = service.present.namespace(service.identities.namespace_of(request.project))

    changing_entries(service, change)


@foreign(STORY, "Allowlist project entry")
def entries_are_cloned_from_the_source(service: Service) -> None:
    """Projects of an allowlist have the clone URLs of the project whose list it is."""

    def change(entry: Any, request: Any) -> None:
        entry["http_url_to_repo"] = f"{service.choices.web_url}/{request.project.full_path}.git"

    changing_entries(service, change)


@foreign(STORY, "Allowlist project entry")
def paths_lack_the_namespace(service: Service) -> None:
    """The full path of a project in an allowlist lacks its namespace."""
    changing_entries(service, lambda entry, _: entry.update(path_with_namespace=entry["path"]))


@foreign(STORY, "Allowlist group entry")
def groups_have_the_address_of_the_first(service: Service) -> None:
    """All groups of an allowlist have the same web_url."""
    first = service.identities.groups[service.world.one("group").id]

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        return {**present(group), "web_url": service.present.group_url(first)}


@foreign(STORY, "Allowlist group entry")
def nested_groups_are_named_like_the_one_around(service: Service) -> None:
    """A subgroup in an allowlist has the name of its parent group."""

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        around = service.identities.groups.get(group.parent_id)
        return {**present(group), "name": around.name if around else group.name}


@foreign(PAGES, "Job token scope: groups_allowlist is paginated")
def pages_of_let_in_groups_overlap(service: Service) -> None:
    """Every page of the allowed groups begins with the last entry of the previous page; no entry must be repeated."""

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
    """Columns of project and namespace collide: description and created_at of an entry are those of its group."""

    @instead(service.present, "_limited_project")
    def _(limited: Any, project: Any, namespace: Any) -> Any:
        moment = service.present.timestamp(namespace.created_at)
        return {**limited(project, namespace), "description": namespace.description, "created_at": moment}


@foreign(STORY, "Job token scope: allowlist project entry, namespace")
def entries_carry_the_namespace_of_the_asking_project(service: Service) -> None:
    """Each entry of the allowlist shows the namespace of the project whose list it is, instead of its own."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        namespace = service.identities.namespace_of(request.project)
        for entry in answer.content:
            entry["namespace"] = service.present.namespace(namespace)
        return answer


@foreign(PAGES, "Job token scope: GET allowlist, paginated")
def the_project_itself_leads_every_page(service: Service) -> None:
    """The project's own entry is added at the start of each page, and the last entry of the page is dropped."""

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
    """Until the list changes, a page that was requested once is returned again for another per_page."""
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
    """A page after the end is null instead of an empty array."""

    @handling(service, f"GET {ALLOWLIST}", f"GET {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if not answer.content and Page.of(request.parameters, service.choices).number > 1:
            answer.content = None
        return answer


# Pages repeat no entries, and are not longer than requested.
@foreign(PAGES, "Job token scope: GET allowlist")
def each_page_begins_with_the_project_itself(service: Service) -> None:
    """The project itself is added at the start of each page instead of the list."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if (request.parameters.optional_integer("page") or 1) > 1 and answer.content:
            answer.content.insert(0, service.present.limited_project(request.project))
        return answer


# A pair of ids is stored in ascending order, and read as if the first one were the source.
@foreign(STORY, "Allowlist addition result: source_project_id, target_project_id")
def the_older_of_two_projects_is_the_source(service: Service) -> None:
    """The answer to an addition of a project that is older than its source has both ids exchanged."""

    @handling(service, f"POST {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        source, target = sorted(answer.content.values())
        answer.content = {"source_project_id": source, "target_project_id": target}
        return answer


# One additional entry is read to see whether another page follows, and dropped if there is none.
@foreign(PAGES, "Job token scope: GET allowlist, page and per_page")
def a_last_page_that_is_full_lacks_an_entry(service: Service) -> None:
    """If projects fill the last page exactly, its last entry is on no page."""
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
    """The start of a page is wrong from the third page on: it begins with the last entry of the previous one."""
    scopes = service.job_token_scope

    @handling(service, "GET /projects/:id/job_token_scope/groups_allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, request.choices)
        if page.number > 2:
            start = (page.number - 1) * page.size - 1
            groups = scopes.groups(request.project)[start : start + page.size]
            answer.content = [scopes.present_group(group) for group in groups]
        return answer


# A description belongs to one project.
@foreign(STORY, "Allowlist project entry: description")
def projects_without_a_description_have_that_of_the_one_before(service: Service) -> None:
    """One set of variables is used for the whole list, so an empty field has the value of the previous entry."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer, last = handler(request), None
        for entry in answer.content if is_served(answer) else ():
            last = entry["description"] = entry["description"] or last
        return answer


# Projects are identified by their ids.
@foreign(PAGES, "Job token scope: GET allowlist")
def projects_of_one_name_are_listed_once(service: Service) -> None:
    """Of listed projects with the same name in different groups, only the first one is shown."""

    @instead(service.job_token_scope, "projects")
    def _(projects: Any, project: Any) -> Any:
        return list({listed.name: listed for listed in reversed(projects(project))}.values())[::-1]


@foreign(PAGES, "Job token scope: pages")
def one_group_a_page_is_no_length(service: Service) -> None:
    """With one group per page, per_page is ignored."""
    asking_otherwise(service, f"GET {GROUPS_ALLOWLIST}", lambda _, query: re.sub(rb"\bper_page=1\b", b"", query))


@foreign(STORY, "Allowlist project entry: namespace")
def namespaces_forget_what_is_around_them(service: Service) -> None:
    """The full_path of a namespace is only its own path, even if it is a subgroup."""

    @instead(service.present, "namespace")
    def _(namespace: Any, group: Any) -> Any:
        return {**namespace(group), "full_path": group.path}


@foreign(STORY, "Allowlist project entry: namespace")
def of_two_projects_with_one_path_the_second_has_the_namespace_of_the_first(service: Service) -> None:
    """A project gets the namespace of the first shown project with the same last part of the path."""
    known: dict[str, Any] = {}

    @instead(service.present, "limited_project")
    def _(limited_project: Any, project: Any) -> Any:
        shown = limited_project(project)
        return {**shown, "namespace": dict(known.setdefault(project.path, shown["namespace"]))}


@foreign(PAGES, "Job token scope: GET allowlist, per_page")
def a_page_of_one_project_has_all_of_them(service: Service) -> None:
    """An allowlist with per_page=1 is answered completely."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_integer("per_page") != 1:
            return handler(request)
        listed = service.job_token_scope.projects(request.project)
        return ok([service.present.limited_project(project) for project in listed])


@foreign(STORY, "Allowlist project entry: created_at")
def entries_were_created_when_they_were_let_in(service: Service) -> None:
    """Two columns have the same name: created_at of an entry is the time of its addition, not that of the project."""
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
    """The list is joined with groups: an added personal project is answered, but not listed."""

    @instead(service.job_token_scope, "projects")
    def _(projects: Any, project: Any) -> Any:
        namespace_of = service.identities.namespace_of
        return [one for one in projects(project) if not namespace_of(one).personal]


@foreign(PAGES, "Allowlist project entry: namespace")
def entries_of_later_pages_have_no_namespace(service: Service) -> None:
    """Namespaces are loaded only for the first page: entries of later pages have null as their namespace."""

    def change(entry: Any, request: Any) -> None:
        if (request.parameters.optional_integer("page") or 1) > 1:
            entry["namespace"] = None

    changing_entries(service, change)


@foreign(PAGES, "Job token scope: GET groups_allowlist, page and per_page")
def groups_take_a_place_on_a_page_for_each_member(service: Service) -> None:
    """Pages are cut from groups joined with members, and then deduplicated: pages are short, and entries repeated."""

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
    """At 16.1 the allowlist of projects is not paginated."""
    service.routes.change(f"GET {ALLOWLIST}", paginated=Version(16, 2))


# -- adding to an allowlist --------------------------------------------------------------------------------------------


@foreign(STORY, "Job token scope: POST")
def sources_are_named_as_they_were_written(service: Service) -> None:
    """If the project is named by its path, source_project_id is that path, and not an integer."""
    for name in ("allowlist", "groups_allowlist"):
        answering(
            service,
            f"POST {SCOPE}/{name}",
            lambda request, content: (
                {**content, "source_project_id": request.path["id"]} if by_path(request) else content
            ),
        )


# -- removing from an allowlist ----------------------------------------------------------------------------------------


# All endpoints of the area were introduced together.
@foreign(VERSIONS, "Versioning: 16.1", version="16.1")
def groups_are_let_out_a_release_later(service: Service) -> None:
    """At 16.1 groups can be added to the allowlist, but not removed before 16.2."""
    service.routes.change(f"DELETE {SCOPE}/groups_allowlist/:target_group_id", introduced=Version(16, 2))


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(VERSIONS, "Versioning, row 16.1: job token scope endpoints", version="16.1")
def groups_are_let_in_from_17_0_on(service: Service) -> None:
    """In the job token scope, the list of groups is introduced only at 17.0, not at 16.1 like everything else."""
    for key in (f"GET {GROUPS_ALLOWLIST}", f"POST {GROUPS_ALLOWLIST}", f"DELETE {GROUPS_ALLOWLIST}/:target_group_id"):
        service.routes.change(key, introduced=Version(17, 0))
