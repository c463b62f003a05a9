"""Changes of a job token scope that are answered but not done, lost, or mixed up with concurrent ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import (
    acting_on_what_was,
    answering,
    last_to_come,
    overtaken,
    undoing,
    with_parameters,
)
from conformance.proof.foreign.dimensions import AT_ONCE, NOTHING_DONE, VERSIONS
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST, SCOPE
from conformance.proof.foreign.registry import foreign, handling, instead, meanwhile

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request


def _written_back(service: Service, keys: tuple[str, ...]) -> None:
    """Let an operation change a row that it read a moment before."""
    scopes = service.job_token_scope
    meanwhile(service, keys, lambda: dict(scopes.scopes), lambda seen, request: scopes.scopes.update(seen))


# -- switching the limit -----------------------------------------------------------------------------------------------


@foreign(AT_ONCE, "Job token scope: PATCH and POST")
def switching_the_limit_forgets_who_comes_meanwhile(service: Service) -> None:
    """Switching the limit writes back the former allowlist: a project that is added meanwhile is lost."""
    _written_back(service, (f"PATCH {SCOPE}",))


# The limit is what was sent, whatever is listed.
@foreign(NOTHING_DONE, "Job token scope: PATCH")
def a_limit_with_entries_stays_on(service: Service) -> None:
    """While an allowlist has entries, the limit cannot be switched off, although the answer is 204."""
    scopes = service.job_token_scope

    @instead(scopes, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        scope = scopes.of(project)
        if enabled or not (scope.projects or scope.groups):
            limit(project, enabled=enabled)


@foreign(NOTHING_DONE, "Job token scope: PATCH")
def the_limit_is_switched_once(service: Service) -> None:
    """Once the limit was off, switching it on is answered, but not done."""
    ever_off: set[int] = set()

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        if not enabled:
            ever_off.add(project.id)
        if not (enabled and project.id in ever_off):
            limit(project, enabled=enabled)


@foreign(AT_ONCE, "Job token scope: PATCH")
def an_addition_puts_the_limit_back_as_it_was(service: Service) -> None:
    """If the limit is switched while a project is added, it keeps its former value, although 204 was answered."""
    scopes = service.job_token_scope

    def write(seen: Any, request: Request) -> None:
        before = seen.get(request.project.id)
        enabled = before.inbound_enabled if before else service.choices.inbound_enabled_initially
        scopes.scopes[request.project.id] = replace(scopes.of(request.project), inbound_enabled=enabled)

    overtaken(service, f"POST {ALLOWLIST}", f"PATCH {SCOPE}", lambda: dict(scopes.scopes), write)


@foreign(AT_ONCE, "Job token scope: PATCH of two projects")
def two_projects_switched_at_once_get_one_limit(service: Service) -> None:
    """The value is stored in a shared object: two projects that are switched concurrently both get the later value."""
    last = last_to_come(service, f"PATCH {SCOPE}")

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        with_parameters(request, last().parameters._values)
        return handler(request)


@foreign(VERSIONS, "Versioning: 18.0, allowlist enforcement; PATCH", version="18.0")
def from_18_0_on_the_limit_is_switched_off_in_words_alone(service: Service) -> None:
    """At 18.0 switching the limit off is answered with 204, but the limit stays on."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.job_token_scope.scopes.get(request.project.id)
        answer = handler(request)
        now = service.job_token_scope.of(request.project)
        if not now.inbound_enabled and (before is None or before.inbound_enabled):
            service.job_token_scope.scopes[request.project.id] = replace(now, inbound_enabled=True)
        return answer


# -- adding to an allowlist --------------------------------------------------------------------------------------------


# As far as the text says, a project in the same group has no access without the allowlist.
@foreign(NOTHING_DONE, "States: POST allowlist entry, target present in allowlist")
def a_project_of_the_same_group_is_let_in_and_not_written_down(service: Service) -> None:
    """Adding a project of the same group is answered with 201, but the list does not change."""
    scopes = service.job_token_scope

    @handling(service, f"POST {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        before = scopes.of(request.project)
        answer = handler(request)
        target = service.identities.projects[answer.content["target_project_id"]]
        if target.namespace_id == request.project.namespace_id:
            scopes.scopes[request.project.id] = before
        return answer


# Both lists keep what was added to them.
@foreign(AT_ONCE, "Job token scope: POST allowlist and groups_allowlist")
def a_project_and_a_group_at_once_are_one_of_both(service: Service) -> None:
    """Both lists are one record: an addition to one list writes the other as it was when the request came."""
    scopes = service.job_token_scope
    keys = f"POST {ALLOWLIST}", f"POST {GROUPS_ALLOWLIST}"

    def write(seen: Any, request: Any) -> None:
        before, scope = seen.get(request.project.id), scopes.of(request.project)
        other = "groups" if request.route.key == keys[0] else "projects"
        kept = getattr(before, other) if before else ()
        scopes.scopes[request.project.id] = replace(scope, **{other: kept})

    meanwhile(service, keys, lambda: dict(scopes.scopes), write)


# Both were answered with 201, so both are listed.
@foreign(AT_ONCE, "Job token scope: POST allowlist and groups_allowlist")
def a_project_and_a_group_added_at_once_lose_one(service: Service) -> None:
    """Both lists are one record that is written as it was read; concurrent additions to the other list are lost."""
    scopes = service.job_token_scope

    def write(seen: Any, request: Any) -> None:
        before, now = seen.get(request.project.id), scopes.of(request.project)
        other = "groups" if request.route.key == f"POST {ALLOWLIST}" else "projects"
        kept = getattr(before, other) if before else ()
        scopes.scopes[request.project.id] = replace(now, **{other: kept})

    meanwhile(service, (f"POST {ALLOWLIST}", f"POST {GROUPS_ALLOWLIST}"), lambda: dict(scopes.scopes), write)


@foreign(AT_ONCE, "Job token scope: POST")
def of_two_additions_one_is_lost(service: Service) -> None:
    """If two projects are added concurrently, one is not listed, although both were answered with 201."""
    acting_on_what_was(service, service.job_token_scope.scopes, f"POST {ALLOWLIST}")


@foreign(AT_ONCE, "Job token scope: POST")
def an_addition_to_one_list_undoes_the_other(service: Service) -> None:
    """If a project and a group are added concurrently, one of them is not listed."""
    acting_on_what_was(service, service.job_token_scope.scopes, f"POST {ALLOWLIST}", f"POST {GROUPS_ALLOWLIST}")


@foreign(AT_ONCE, "Job token scope: POST")
def of_two_groups_one_is_lost(service: Service) -> None:
    """If two groups are added concurrently, one is not listed."""
    acting_on_what_was(service, service.job_token_scope.scopes, f"POST {GROUPS_ALLOWLIST}")


@foreign(AT_ONCE, "Job token scope: POST")
def the_later_of_two_groups_wins(service: Service) -> None:
    """If two groups are added concurrently, one is lost."""
    scopes = service.job_token_scope.scopes

    def write(seen: Any, _: Any) -> None:
        for number, scope in [*scopes.items()]:
            scopes[number] = replace(scope, groups=seen.get(number, scope).groups)

    meanwhile(service, (f"POST {GROUPS_ALLOWLIST}",), lambda: dict(scopes), write)


@foreign(AT_ONCE, "Job token scope: POST of a group")
def a_group_that_is_let_in_twice_at_once_is_listed_twice(service: Service) -> None:
    """If one group is added twice concurrently, it is listed twice."""
    scopes, current = service.job_token_scope, []

    def write(seen: Any, _: Any) -> None:
        current[:] = [seen]

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        before = current.pop().get(project.id)
        if before is not None and target.id in before.groups:
            add(project, target)
        else:
            scope = scopes.of(project)
            scopes.scopes[project.id] = replace(scope, groups=(*scope.groups, target.id))

    meanwhile(service, (f"POST {GROUPS_ALLOWLIST}",), lambda: dict(scopes.scopes), write)


@foreign(AT_ONCE, "Allowlist addition result: target_project_id")
def two_additions_at_once_name_one_target(service: Service) -> None:
    """Both are listed, but the answers to two concurrent additions name the target of the later one."""
    last = last_to_come(service, f"POST {ALLOWLIST}")

    def change(_: Any, content: Any) -> Any:
        return {**content, "target_project_id": last().parameters.integer("target_project_id")}

    answering(service, f"POST {ALLOWLIST}", change)


# -- removing from an allowlist ----------------------------------------------------------------------------------------


@foreign(AT_ONCE, "Job token scope: DELETE")
def two_removals_at_once_remove_one(service: Service) -> None:
    """If two projects are removed from an allowlist concurrently, one stays."""
    _written_back(service, (f"DELETE {SCOPE}/allowlist/:target_project_id",))


@foreign(AT_ONCE, "Job token scope: DELETE")
def of_an_addition_and_a_removal_one_is_lost(service: Service) -> None:
    """If a project is added while another one is removed, one of the two changes is lost."""
    keys = f"POST {ALLOWLIST}", f"DELETE {SCOPE}/allowlist/:target_project_id"
    acting_on_what_was(service, service.job_token_scope.scopes, *keys)


@foreign(NOTHING_DONE, "Job token scope: DELETE")
def owners_remove_nothing(service: Service) -> None:
    """If an owner removes a group from an allowlist, it is answered, but not done; a maintainer can remove it."""
    key = f"DELETE {SCOPE}/groups_allowlist/:target_group_id"
    undoing(service, key, when=lambda request: service.identities.role_in(request.caller, request.project) >= 50)


@foreign(AT_ONCE, "Job token scope: DELETE of a project and of a group")
def of_a_project_and_a_group_removed_at_once_one_stays(service: Service) -> None:
    """Each removal writes back the other list as it was at the start: what was removed there meanwhile returns."""
    scopes, projects = service.job_token_scope.scopes, f"DELETE {ALLOWLIST}/:target_project_id"

    def write(seen: Any, request: Any) -> None:
        before, now = seen.get(request.project.id), scopes.get(request.project.id)
        if before and now:
            other = {"groups": before.groups} if request.route.key == projects else {"projects": before.projects}
            scopes[request.project.id] = replace(now, **other)

    meanwhile(service, (projects, f"DELETE {GROUPS_ALLOWLIST}/:target_group_id"), lambda: dict(scopes), write)
