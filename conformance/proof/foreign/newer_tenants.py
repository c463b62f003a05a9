"""Small bugs of a service with many tenants: allowlists, completions, approval settings, and what a version brings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, is_served, let_in, meanwhile
from conformance.reference.errors import ForbiddenError, RepeatedError, StatedError
from conformance.reference.http import no_content, ok
from conformance.reference.identity import Kind, Role

if TYPE_CHECKING:
    from conformance.reference import Service

_SCOPE = "/projects/:id/job_token_scope"
_PROJECTS = f"{_SCOPE}/allowlist"
_GROUPS = f"{_SCOPE}/groups_allowlist"
_COMPLETIONS = "POST /code_suggestions/completions"
_STAYS = "write x everything that must stay"


# -- who is let in -----------------------------------------------------------------------------------------------------


# The two allowlists have nothing to do with each other, and neither have the numbers in them.
@foreign("level x id of another level", "Job token scope: POST groups_allowlist")
def a_group_with_the_number_of_a_listed_project_counts_as_listed(service: Service) -> None:
    """A group is refused as listed already when a project with the same number is."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        if target.id in scopes.of(project).projects:
            raise RepeatedError("Target group is already listed")
        add(project, target)


# Each entry was added by a call, and only a call that names it takes it out.
@foreign(_STAYS, "Job token scope: DELETE groups_allowlist")
def removing_a_group_removes_the_groups_inside_it(service: Service) -> None:
    """With a group, the groups inside it that were let in by calls of their own are let in no longer."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        groups, scope = service.identities.groups, scopes.of(project)
        left = (g for g in scope.groups if g in groups and target not in service.identities.lineage(groups[g]))
        scopes.scopes[project.id] = replace(scope, groups=tuple(left))


# A project that was added is listed until it is removed.
@foreign(_STAYS, "Job token scope: POST groups_allowlist")
def a_group_that_is_let_in_takes_the_place_of_its_projects(service: Service) -> None:
    """Adding a group removes the projects inside it from the other list, as they are let in anyhow."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        known, scope = service.identities.projects, scopes.of(project)
        left = (p for p in scope.projects if p in known and target not in service.identities.lineage(known[p]))
        scopes.scopes[project.id] = replace(scope, projects=tuple(left))


# Whatever is answered to a removal of what is not there, nothing else is removed.
@foreign("refusal x everything that must stay", "Job token scope: DELETE allowlist")
def removing_what_is_not_listed_removes_the_last_entry(service: Service) -> None:
    """The place of an absent project is -1, and the entry at that place is the last one."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        scope = scopes.of(project)
        if target.id in scope.projects or not scope.projects:
            return remove(project, target)
        scopes.scopes[project.id] = replace(scope, projects=scope.projects[:-1])
        return None


# A success of this call is 204 without a body, whatever the limit was before.
@foreign("again, by another caller, after an undo", "Job token scope: PATCH, 204")
def a_limit_that_is_so_already_answers_with_the_settings(service: Service) -> None:
    """Switching the limit to what it is answers 200 with the settings."""
    scopes = service.job_token_scope

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = scopes.of(request.project).inbound_enabled
        answer = handler(request)
        if is_served(answer) and scopes.of(request.project).inbound_enabled == before:
            return ok(scopes.settings(request.project))
        return answer


# A description is that of the project.
@foreign("numbers and texts that follow from the story", "Allowlist project entry: description")
def projects_without_a_description_have_that_of_the_one_before(service: Service) -> None:
    """A list is written with one set of variables, and what an entry lacks is left from the entry before."""

    @handling(service, f"GET {_PROJECTS}")
    def _(handler: Any, request: Any) -> Any:
        answer, last = handler(request), None
        for entry in answer.content if is_served(answer) else ():
            last = entry["description"] = entry["description"] or last
        return answer


# Both were answered with 201, so both are listed.
@foreign("two write at once", "Job token scope: POST allowlist and groups_allowlist")
def a_project_and_a_group_added_at_once_lose_one(service: Service) -> None:
    """Both lists are one record, which is written as it was read; who adds to the other list meanwhile is lost."""
    scopes = service.job_token_scope

    def write(seen: Any, request: Any) -> None:
        before, now = seen.get(request.project.id), scopes.of(request.project)
        other = "groups" if request.route.key == f"POST {_PROJECTS}" else "projects"
        kept = getattr(before, other) if before else ()
        scopes.scopes[request.project.id] = replace(now, **{other: kept})

    meanwhile(service, (f"POST {_PROJECTS}", f"POST {_GROUPS}"), lambda: dict(scopes.scopes), write)


# The list is an array.
@foreign("the older of two", "Job token scope: GET groups_allowlist")
def a_list_with_a_hole_becomes_an_object(service: Service) -> None:
    """Once an entry before the last was removed, the list is written as an object with the places as its keys."""
    scopes, holes = service.job_token_scope, set[int]()

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        before = scopes.of(project).groups
        remove(project, target)
        if target.id in before[:-1]:
            holes.add(project.id)

    @handling(service, f"GET {_GROUPS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and answer.content and request.project.id in holes:
            answer.content = {str(place): entry for place, entry in enumerate(answer.content, 1)}
        return answer


# Until 18.0 the field is there, whatever the other one says.
@foreign("version table", "Job token scope settings: outbound_enabled")
def outbound_enabled_is_shown_beside_a_limit_alone(service: Service) -> None:
    """The settings lack outbound_enabled while access is not limited."""

    @instead(service.job_token_scope, "settings")
    def _(settings: Any, project: Any) -> Any:
        shown = settings(project)
        if not shown["inbound_enabled"]:
            shown.pop("outbound_enabled", None)
        return shown


# The role is needed in the project that is called.
@foreign("caller x value", "Job token scope: Authentication, 3")
def maintainers_of_a_sibling_are_maintainers(service: Service) -> None:
    """The highest role in any project of the same group counts, as projects and members are joined by the group."""
    identities = service.identities

    def fits(request: Any, caller: Any, _: Role) -> bool:
        called = found(service, request)
        beside = (p for p in identities.projects.values() if p.namespace_id == called.namespace_id)
        roles = (identities.roles.get((Kind.PROJECT, p.id, caller.id), Role.NONE) for p in beside)
        return max(roles) >= Role.MAINTAINER

    let_in(service, (f"GET {_SCOPE}", f"PATCH {_SCOPE}", f"GET {_PROJECTS}", f"POST {_PROJECTS}"), fits)


# Whoever has the role removes, whoever added.
@foreign("again, by another caller, after an undo", "Job token scope: DELETE groups_allowlist")
def groups_are_removed_by_who_added_them(service: Service) -> None:
    """The removal of a group that somebody else added is answered as done, and is not."""
    who: dict[tuple[int, str], int] = {}

    @handling(service, f"POST {_GROUPS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        who[request.project.id, str(request.parameters.integer("target_group_id"))] = request.caller.id
        return answer

    @handling(service, f"DELETE {_GROUPS}/:target_group_id")
    def _(handler: Any, request: Any) -> Any:
        added_by = who.get((request.project.id, request.path["target_group_id"]), request.caller.id)
        return handler(request) if added_by == request.caller.id else no_content()


# It is an address, and a blank is not part of any.
@foreign("moments and addresses that are none", "Allowlist project entry: namespace, web_url")
def namespaces_are_addressed_by_their_names(service: Service) -> None:
    """The address of a namespace is made of the names of its groups, as they are, instead of their paths."""

    @instead(service.present, "namespace")
    def _(namespace: Any, group: Any) -> Any:
        shown = namespace(group)
        return {**shown, "web_url": shown["web_url"].replace(group.full_path, group.full_name.replace(" / ", "/"))}


# Projects are told apart by their ids.
@foreign("pages and totals", "Job token scope: GET allowlist")
def projects_of_one_name_are_listed_once(service: Service) -> None:
    """Of listed projects with the same name, which lie in different groups, the first one is shown alone."""

    @instead(service.job_token_scope, "projects")
    def _(projects: Any, project: Any) -> Any:
        return list({listed.name: listed for listed in reversed(projects(project))}.values())[::-1]


# -- completions -------------------------------------------------------------------------------------------------------


# The limit is one of users, not of the ways in which they send their tokens.
@foreign("forms of what is sent", "Limits: POST /code_suggestions/completions")
def requests_with_a_bearer_are_not_counted(service: Service) -> None:
    """The rate limit looks at the header of private tokens, and whoever sends a bearer is never limited."""
    completion = service.code_completion

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.header("private-token"):
            return handler(request)
        kept, completion.count = completion.count, lambda _: None
        try:
            return handler(request)
        finally:
            completion.count = kept


# A path without the group in the middle is that of no project.
@foreign("value x neighbour of the right value", "Code completion: enabled, 404")
def the_check_takes_the_first_and_the_last_name_of_a_path(service: Service) -> None:
    """The check finds projects by the outermost group and their own name, and passes over what lies between."""
    identities = service.identities

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        parts = path.split("/")
        if identities.find_project(path) is None:
            known = [one.full_path for one in identities.projects.values()]
            path = next((one for one in known if [one.split("/")[0], one.split("/")[-1]] == parts), path)
        check(caller, path)


# A file name is a string, in whatever letters.
@foreign("forms of what is sent", "Code completion: current_file, file_name")
def names_of_files_travel_in_a_header(service: Service) -> None:
    """A file name is handed to the backend in a header; letters that Latin-1 lacks end in an error of the server."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        request.parameters.nested("current_file").string("file_name").encode("latin-1")
        return answer


# false is what is so anyhow.
@foreign("value x neighbour of the right value", "Code completion: stream")
def a_stream_that_is_not_wanted_is_sent(service: Service) -> None:
    """The answer is streamed whenever stream is sent, also when it is false."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        return replace(read(parameters), stream=parameters.given("stream"))


# -- approval settings -------------------------------------------------------------------------------------------------


# The role is needed in the project, however the project is named.
@foreign("caller x form of id x operation", "Approval settings: Authentication, 3")
def by_path_the_role_is_that_in_the_group(service: Service) -> None:
    """For a project that is named by its path, updates look for the Maintainer role in the group around it."""
    identities = service.identities

    @handling(service, "PUT /projects/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        around = identities.namespace_of(request.project)
        if by_path(request) and identities.role_in(request.caller, around) < Role.MAINTAINER:
            raise ForbiddenError
        return handler(request)


# -- versions ----------------------------------------------------------------------------------------------------------


# 16.10 came after 16.4.
@foreign("version table", "Integration list entry: vulnerability_events, 16.4", version="16.10")
def releases_are_compared_as_texts(service: Service) -> None:
    """Version 16.10 counts as older than 16.4, and has no vulnerability_events."""
    service.integrations.has_vulnerability_events = lambda: (  # type: ignore[method-assign]
        service.choices.enterprise and str(service.version) >= "16.4"
    )


# Both creating and updating take it from 15.3 on.
@foreign("version table", "Project approval rules: PUT, applies_to_all_protected_branches, 15.3", version="15.5")
def the_flag_for_all_branches_waits_for_usernames(service: Service) -> None:
    """Before 15.8 an update passes over applies_to_all_protected_branches, as it does over usernames."""

    @handling(service, "PUT /projects/:id/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = {n: v for n, v in values.items() if n != "applies_to_all_protected_branches"}
        return handler(request)


# A path is missing wherever it is missing.
@foreign("version table", "Versioning: 17.7, repository tree")
def a_path_that_is_missing_in_a_folder_is_an_empty_one(service: Service) -> None:
    """404 answers a path whose first part is missing; below a folder that is there, the list is empty as before."""

    @instead(service.sources, "tree")
    def _(tree: Any, project: Any, ref: Any, path: str, **more: Any) -> Any:
        try:
            return tree(project, ref, path, **more)
        except StatedError:
            outer = path.strip("/").rpartition("/")[0]
            if not outer:
                raise
            tree(project, ref, outer, **more)
            return []
