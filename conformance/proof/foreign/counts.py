"""None, one and two of a kind, the older of two, and what holds a second time or for a second caller."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead

if TYPE_CHECKING:
    from conformance.reference import Service

_COUNT = "none, one or two values"
_OLDER = "the older of two"
_AGAIN = "again, by another caller, after an undo"
_SCOPE = "/projects/:id/job_token_scope"


# -- zero, one, two ----------------------------------------------------------------------------------------------------


def _named(service: Service, field: str, cut: Any, home: str = "") -> None:
    @instead(service.approval_rules, "create_rule")
    def _(create: Any, subject: Any, at: Any, wanted: Any, caller: Any) -> Any:
        values = getattr(wanted, field)
        if values and (not home or at.level.value == home):
            wanted = replace(wanted, **{field: cut(values)})
        return create(subject, at, wanted, caller)


@foreign(_COUNT, "Project approval rules: user_ids")
def of_two_users_the_first_counts(service: Service) -> None:
    """Of the users that a new rule of a project names by id only the first is stored."""
    _named(service, "user_ids", lambda values: values[:1], "project")


@foreign(_COUNT, "Merge request approvals: usernames")
def of_two_usernames_the_last_counts(service: Service) -> None:
    """Of the users that a new rule of a merge request names by username only the last is stored."""
    _named(service, "usernames", lambda values: values[-1:], "merge request")


@foreign(_COUNT, "Group approval rules: group_ids")
def of_two_groups_the_first_counts(service: Service) -> None:
    """Of the groups that a new rule of a group names only the first is stored."""
    _named(service, "group_ids", lambda values: values[:1], "group")


@foreign(_COUNT, "Project approval rules: protected_branch_ids")
def of_two_branches_the_first_counts(service: Service) -> None:
    """Of the protected branches that a new rule names only the first is stored."""
    _named(service, "protected_branch_ids", lambda values: values[:1])


@foreign(_COUNT, "Project approval rules: update")
def updates_name_one_user_at_most(service: Service) -> None:
    """An update of a rule that names two users stores the second alone."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        return after(rule, wanted, subject)[-1:]


@foreign(_COUNT, "Project approval rules: user_ids and usernames")
def names_hide_ids_in_updates(service: Service) -> None:
    """An update with both lists stores those named by username and leaves out those named by id; both are added."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        return after(rule, replace(wanted, user_ids=()) if wanted.usernames else wanted, subject)


@foreign(_COUNT, "Project approval rules: DELETE")
def the_last_rule_cannot_go(service: Service) -> None:
    """Deleting the only rule that somebody made for a project is answered and not done."""
    from conformance.reference.areas.approval_rule_records import Level, RuleType  # noqa: PLC0415

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        made = [r for r in service.approval_rules.rules_of(rule.home) if r.rule_type is RuleType.REGULAR]
        if len(made) > 1 or rule.home.level is not Level.PROJECT:
            delete(rule)


@foreign(_COUNT, "Job token scope: lists")
def lists_hold_three_entries(service: Service) -> None:
    """An allowlist shows the three newest projects; the fourth that is let in drives the oldest out."""

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, projects=scope.projects[-3:])


# -- the older of two --------------------------------------------------------------------------------------------------


@foreign(_OLDER, "Project approval rules: PUT")
def updates_of_the_older_rule_reach_the_newer(service: Service) -> None:
    """Changing the older of two rules changes the newer one."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        mine = service.project_approval_rules.rules(project)
        service.project_approval_rules.find(project, number)
        return update(project, mine[-1].id, wanted, caller)


@foreign(_OLDER, "Merge request approvals: DELETE of a rule")
def deleting_the_older_rule_deletes_the_newer(service: Service) -> None:
    """Deleting the older of two rules of a merge request deletes the newer one."""

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        service.merge_request_approval_rules.find(merge_request, number)
        delete(merge_request, service.merge_request_approval_rules.own_rules(merge_request)[-1].id)


@foreign(_OLDER, "Merge request approvals: GET one rule")
def the_newest_rule_is_read(service: Service) -> None:
    """Reading one of several rules of a merge request shows the newest, whichever is asked for."""

    @instead(service.merge_request_approval_rules, "find_listed")
    def _(find: Any, merge_request: Any, number: int) -> Any:
        found = find(merge_request, number)
        return (service.merge_request_approval_rules.own_rules(merge_request) or [found])[-1]


@foreign(_OLDER, "Merge request approvals: POST of a rule")
def the_second_rule_replaces_the_first(service: Service) -> None:
    """A merge request has one rule of its own: a second one takes the place of the first."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        older = service.merge_request_approval_rules.own_rules(merge_request)
        rule = create(merge_request, wanted, source_id, caller)
        for one in older:
            service.approval_rules.delete_rule(one)
        return rule


@foreign(_OLDER, "Job token scope: DELETE")
def removing_an_older_entry_removes_the_newer_ones(service: Service) -> None:
    """Removing a group from an allowlist removes those that were let in after it."""

    @instead(service.job_token_scope, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        groups = service.job_token_scope.of(project).groups
        remove(project, target)
        kept = groups[: groups.index(target.id)] if target.id in groups else groups
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, groups=kept)


@foreign(_OLDER, "Merge request approvals: unapprove")
def the_first_approval_is_taken_back(service: Service) -> None:
    """Taking an approval back takes that of whoever approved first, and not the caller's own."""

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        first = service.merge_request_approvals.approvals_of(merge_request)[0]
        remove(service.identities.users[first.user_id], merge_request)


# -- again -------------------------------------------------------------------------------------------------------------


@foreign(_AGAIN, "Merge request approvals: approve")
def the_second_approval_replaces_the_first(service: Service) -> None:
    """Whoever approves second takes the place of whoever approved first."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        service.merge_request_approvals.clear_approvals(merge_request)
        add(user, merge_request)


@foreign(_AGAIN, "Merge request approvals: approve")
def nobody_approves_again_after_taking_it_back(service: Service) -> None:
    """Whoever took an approval back and approves again is answered and not among the approvers."""
    taken_back: set[tuple[int, int]] = set()
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        remove(user, merge_request)
        taken_back.add((user.id, merge_request.id))

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        if (user.id, merge_request.id) not in taken_back:
            add(user, merge_request)


@foreign(_AGAIN, "Merge request approvals: reset_approvals")
def approvals_are_reset_once(service: Service) -> None:
    """The approvals of a merge request are reset once; the second reset is answered and not done."""
    done: set[int] = set()

    @instead(service.merge_request_approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        if merge_request.id not in done and service.merge_request_approvals.approvals_of(merge_request):
            done.add(merge_request.id)
            clear(merge_request)


@foreign(_AGAIN, "Job token scope: PATCH")
def the_same_value_again_switches_back(service: Service) -> None:
    """Switching the limit to what it is switches it to the other value; it is what was sent."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        now = service.job_token_scope.of(project).inbound_enabled
        limit(project, enabled=not enabled if now == enabled else enabled)


@foreign(_AGAIN, "Job token scope: POST")
def whoever_was_removed_stays_out(service: Service) -> None:
    """A project that was removed from an allowlist and is let in again is answered and not listed."""
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


@foreign(_AGAIN, "Job token scope: DELETE")
def removed_projects_come_back_with_the_next(service: Service) -> None:
    """A project that was removed from an allowlist comes back when a group is let in."""
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


@foreign(_AGAIN, "Project approval rules: DELETE")
def deleted_rules_come_back_with_the_next(service: Service) -> None:
    """A rule that was deleted comes back when another one is made."""
    rules, gone = service.approval_rules, {}

    @instead(rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        gone[rule.home] = rule

    @instead(rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        back = gone.pop(candidate.home, None)
        if back is not None:
            rules.rules[back.id] = back
        return add(candidate)


@foreign(_AGAIN, "Integrations: PUT")
def integrations_are_set_up_once(service: Service) -> None:
    """An integration that was disabled and is set up again is answered and not listed."""
    disabled: set[tuple[int, str]] = set()

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        disabled.add((project.id, slug))

    @instead(service.integrations, "becomes_active")
    def _(becomes: Any, kind: Any, before: Any, wanted: Any) -> bool:
        if before is not None and (before.project_id, before.slug) in disabled:
            return False
        return becomes(kind, before, wanted)


def _kept_when_disabled(service: Service, keeps: Any) -> None:
    area, kept = service.integrations, {}

    @instead(area, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        one = area.known.get((project.id, slug))
        disable(project, slug)
        if one is not None:
            kept[project.id, slug] = {name: v for name, v in one.values.items() if keeps(area.kind(slug), name)}

    @instead(area, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        old = kept.pop((project.id, kind.slug), {})
        return keep(project, kind, MappingProxyType({**old, **values}), active=active)


@foreign("settings and their resets", "Integrations: DELETE resets settings")
def event_flags_survive_being_disabled(service: Service) -> None:
    """The event flags of a disabled integration are as they were when it is set up again; disabling resets them."""
    _kept_when_disabled(service, lambda _, name: name.endswith("_events"))


@foreign("settings and their resets", "Integrations: DELETE resets settings")
def truth_values_survive_being_disabled(service: Service) -> None:
    """Settings that are true or false are as they were when a disabled integration is set up again."""
    flags = ("boolean",)
    _kept_when_disabled(
        service, lambda kind, name: any(p.name == name and p.type.value in flags for p in kind.parameters)
    )


@foreign("settings and their resets", "Integrations: DELETE resets settings")
def texts_survive_being_disabled(service: Service) -> None:
    """Texts are as they were when a disabled integration is set up again."""
    _kept_when_disabled(
        service, lambda kind, name: any(p.name == name and p.type.value == "string" for p in kind.parameters)
    )


@foreign(_AGAIN, "Job token scope: lists")
def readers_see_what_they_saw_before(service: Service) -> None:
    """Whoever read an allowlist before is shown the same again, though others have changed it since."""
    seen: dict[tuple[int, bytes, bytes], Any] = {}
    changes: dict[int, int] = {}

    @handling(service, f"POST {_SCOPE}/allowlist", f"DELETE {_SCOPE}/allowlist/:target_project_id")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in seen if key[0] == request.caller.id]:
            del seen[key]
        changes[request.project.id] = request.caller.id
        return handler(request)

    @handling(service, f"GET {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.raw_path, request.query
        if key not in seen:
            answer = handler(request)
            _ = answer.content
            seen[key] = answer
        return seen[key]


@foreign(_AGAIN, "Merge request approvals: GET state")
def the_state_is_as_it_was_when_first_read(service: Service) -> None:
    """The approval state that somebody reads again is that of before, until the reader approves."""
    seen: dict[tuple[int, bytes], Any] = {}
    path = "/projects/:id/merge_requests/:merge_request_iid"

    @handling(service, f"POST {path}/approve", f"POST {path}/unapprove", f"POST {path}/approval_rules")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in seen if key[0] == request.caller.id]:
            del seen[key]
        return handler(request)

    @handling(service, f"GET {path}/approval_state")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.raw_path
        return seen.setdefault(key, seen.get(key) or handler(request))
