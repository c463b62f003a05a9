"""What works in a job token scope once, but not the second time or for the next caller."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering
from conformance.proof.foreign.dimensions import AGAIN
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST, SCOPE
from conformance.proof.foreign.registry import foreign, handling, instead, is_served, meanwhile
from conformance.reference.http import Response, no_content, ok

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading the scope -------------------------------------------------------------------------------------------------


@foreign(AGAIN, "Job token scope: GET after PATCH")
def settings_are_remembered_for_each_reader(service: Service) -> None:
    """The settings are cached by reader, and a change clears only the cache of its own caller."""
    remembered: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        key = (request.project.id, request.caller.id)
        if key not in remembered:
            remembered[key] = handler(request).content
        return ok(remembered[key])

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        remembered.pop((request.project.id, request.caller.id), None)
        return handler(request)


@foreign(AGAIN, "Job token scope: GET, by another caller than who changed it")
def a_scope_is_shown_as_it_was_to_those_who_saw_it_before(service: Service) -> None:
    """A caller who has read the settings gets the same ones until the next own change."""
    known: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = dict(known.setdefault((request.caller.id, request.project.id), answer.content))
        return answer

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        known.pop((request.caller.id, request.project.id), None)
        return answer


# -- switching the limit -----------------------------------------------------------------------------------------------


@foreign(AGAIN, "Job token scope: PATCH")
def the_same_value_again_switches_back(service: Service) -> None:
    """Setting the limit to its current value switches it to the other value; it must be what was sent."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        now = service.job_token_scope.of(project).inbound_enabled
        limit(project, enabled=not enabled if now == enabled else enabled)


@foreign(AGAIN, "Job token scope: PATCH")
def only_whoever_switched_first_may_go_on(service: Service) -> None:
    """After the first caller, switching the limit is answered for others, but not done."""
    first: dict[int, int] = {}

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.store.snapshot()
        answer = handler(request)
        if is_served(answer) and first.setdefault(request.project.id, request.caller.id) != request.caller.id:
            service.store.restore(before)
        return answer


@foreign(AGAIN, "Job token scope: PATCH, 204 without a body")
def the_same_limit_again_answers_with_the_settings(service: Service) -> None:
    """An update to the current value answers 200 with the settings instead of 204."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.job_token_scope.of(request.project)
        answer = handler(request)
        same = service.job_token_scope.of(request.project).inbound_enabled is before.inbound_enabled
        return ok(service.job_token_scope.settings(request.project)) if same else answer


# If there is nothing to do, the function returns early.
@foreign(AGAIN, "Job token scope: PATCH, 204")
def a_limit_that_is_so_already_is_answered_with_the_settings(service: Service) -> None:
    """Setting the limit to its current value answers 200 with the settings, and not 204 without a body."""
    scopes = service.job_token_scope

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = scopes.of(request.project)
        answer = handler(request)
        return ok(scopes.settings(request.project)) if scopes.of(request.project) == before else answer


# Whether the limit is on or off before, the answer is 204.
@foreign(AGAIN, "Job token scope: PATCH")
def a_limit_that_stays_is_answered_with_the_settings(service: Service) -> None:
    """If the limit already has the wanted value, the answer is 200 with the settings, and not 204."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.job_token_scope.of(request.project).inbound_enabled
        answer = handler(request)
        if service.job_token_scope.of(request.project).inbound_enabled is not before:
            return answer
        return ok(service.job_token_scope.settings(request.project))


# Whether the limit was on or off, the answer is 204.
@foreign(AGAIN, "Job token scope: PATCH")
def a_limit_that_is_as_it_was_is_not_modified(service: Service) -> None:
    """Setting the limit to its current value is answered with 304."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.job_token_scope.of(request.project).inbound_enabled
        answer = handler(request)
        return Response(304) if service.job_token_scope.of(request.project).inbound_enabled == before else answer


# A success of this call is 204 without a body, whatever the former limit.
@foreign(AGAIN, "Job token scope: PATCH, 204")
def a_limit_that_is_so_already_answers_with_the_settings(service: Service) -> None:
    """Setting the limit to its current value answers 200 with the settings."""
    scopes = service.job_token_scope

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = scopes.of(request.project).inbound_enabled
        answer = handler(request)
        if is_served(answer) and scopes.of(request.project).inbound_enabled == before:
            return ok(scopes.settings(request.project))
        return answer


# -- the allowlists ----------------------------------------------------------------------------------------------------


@foreign(AGAIN, "Job token scope: lists")
def readers_see_what_they_saw_before(service: Service) -> None:
    """A caller who has read an allowlist before gets the same one, although others have changed it."""
    seen: dict[tuple[int, bytes, bytes], Any] = {}
    changes: dict[int, int] = {}

    @handling(service, f"POST {ALLOWLIST}", f"DELETE {SCOPE}/allowlist/:target_project_id")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in seen if key[0] == request.caller.id]:
            del seen[key]
        changes[request.project.id] = request.caller.id
        return handler(request)

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.raw_path, request.query
        if key not in seen:
            answer = handler(request)
            _ = answer.content
            seen[key] = answer
        return seen[key]


# What one caller has removed does not show for another one either.
@foreign(AGAIN, "Job token scope: GET groups_allowlist")
def listed_groups_are_remembered_for_each_reader(service: Service) -> None:
    """A caller who has read the groups of an allowlist gets the same ones until the next own change."""
    remembered: dict[tuple[int, int, bytes], Any] = {}

    @handling(service, f"GET {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.project.id, request.query
        if key not in remembered:
            remembered[key] = handler(request)
        return remembered[key]

    @handling(service, f"POST {GROUPS_ALLOWLIST}", f"DELETE {SCOPE}/groups_allowlist/:target_group_id")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in remembered if key[:2] == (request.caller.id, request.project.id)]:
            del remembered[key]
        return handler(request)


# -- adding to an allowlist --------------------------------------------------------------------------------------------


@foreign(AGAIN, "Job token scope: POST")
def whoever_was_removed_stays_out(service: Service) -> None:
    """A project that was removed from an allowlist and is added again is answered, but not listed."""
    removed: set[tuple[int, int]] = set()
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        removed.add((project.id, target.id))

    @instead(scopes, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        if (project.id, target.id) not in removed:
            add(project, target)


# A list contains an entry once or not at all.
@foreign(AGAIN, "Job token scope: POST")
def of_two_equal_additions_both_are_listed(service: Service) -> None:
    """A project that is added twice concurrently is listed twice."""
    scopes = service.job_token_scope
    before: dict[int, Any] = {}

    def remember(seen: Any, _request: Any) -> None:
        before.clear()
        before.update(seen)

    key = "POST /projects/:id/job_token_scope/allowlist"
    meanwhile(service, (key,), lambda: dict(scopes.scopes), remember)

    @instead(scopes, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        seen, now = before.get(project.id), scopes.of(project)
        if target.id in now.projects and (seen is None or target.id not in seen.projects):
            scopes.scopes[project.id] = replace(now, projects=(*now.projects, target.id))
        else:
            add(project, target)


@foreign(AGAIN, "Job token scope: POST")
def removed_projects_never_come_back(service: Service) -> None:
    """A project that was once removed from the list can be added with success, but is not listed."""
    scopes, gone = service.job_token_scope, set()

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        gone.add((project.id, target.id))

    @instead(scopes, "projects")
    def _(projects: Any, project: Any) -> Any:
        return [one for one in projects(project) if (project.id, one.id) not in gone]


@foreign(AGAIN, "Job token scope: POST groups_allowlist, after a DELETE")
def a_group_that_was_removed_is_back_once_another_is_let_in(service: Service) -> None:
    """A group that was removed last is listed again as soon as another one is added."""
    scopes = service.job_token_scope
    removed: dict[int, int] = {}

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        removed[project.id] = target.id

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        back, scope = removed.pop(project.id, target.id), scopes.of(project)
        if back not in scope.groups:
            scopes.scopes[project.id] = replace(scope, groups=(back, *scope.groups))


@foreign(AGAIN, "Allowlist addition result: source_project_id")
def a_target_names_the_source_that_let_it_in_first(service: Service) -> None:
    """The source in an answer is looked up by target alone: it is the first project that added the same target."""
    first: dict[int, int] = {}

    def change(_: Any, content: Any) -> Any:
        source = first.setdefault(content["target_project_id"], content["source_project_id"])
        return {**content, "source_project_id": source}

    answering(service, f"POST {ALLOWLIST}", change)


# -- removing from an allowlist ----------------------------------------------------------------------------------------


@foreign(AGAIN, "Job token scope: DELETE")
def removed_projects_come_back_with_the_next(service: Service) -> None:
    """A project that was removed from an allowlist returns when a group is added."""
    scopes, removed = service.job_token_scope, {}

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        removed[project.id] = target.id

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        if project.id in removed:
            scope = scopes.of(project)
            scopes.scopes[project.id] = replace(scope, projects=(*scope.projects, removed.pop(project.id)))


# A removal marks a row as deleted; the next addition removes the mark, and creates another row.
@foreign(AGAIN, "States: DELETE allowlist entry, target removed")
def a_group_that_came_back_has_to_be_removed_twice(service: Service) -> None:
    """If a group was added, removed and added again, its removal is answered with 204, but it stays listed."""
    scopes = service.job_token_scope
    gone: set[tuple[int, int]] = set()
    doubled: set[tuple[int, int]] = set()

    @instead(scopes, "add_group")
    def _(add_group: Any, project: Any, target: Any) -> None:
        add_group(project, target)
        if (project.id, target.id) in gone:
            doubled.add((project.id, target.id))

    @instead(scopes, "remove_group")
    def _(remove_group: Any, project: Any, target: Any) -> None:
        if (project.id, target.id) in doubled:
            doubled.discard((project.id, target.id))
            return
        remove_group(project, target)
        gone.add((project.id, target.id))


# A removal removes the target, even repeatedly.
@foreign(AGAIN, "Job token scope: DELETE allowlist/:target_project_id")
def what_was_removed_once_cannot_be_removed_again(service: Service) -> None:
    """A second removal marks the older of two entries again, so a project that was added again stays."""
    scopes, gone = service.job_token_scope, set[tuple[int, int]]()

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        if (project.id, target.id) in gone:
            return
        remove(project, target)
        gone.add((project.id, target.id))


# With the required role, everybody can remove an entry, whoever added it.
@foreign(AGAIN, "Job token scope: DELETE groups_allowlist")
def groups_are_removed_by_who_added_them(service: Service) -> None:
    """The removal of a group that somebody else added is answered, but not done."""
    who: dict[tuple[int, str], int] = {}

    @handling(service, f"POST {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        who[request.project.id, str(request.parameters.integer("target_group_id"))] = request.caller.id
        return answer

    @handling(service, f"DELETE {GROUPS_ALLOWLIST}/:target_group_id")
    def _(handler: Any, request: Any) -> Any:
        added_by = who.get((request.project.id, request.path["target_group_id"]), request.caller.id)
        return handler(request) if added_by == request.caller.id else no_content()
