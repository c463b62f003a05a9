"""Faults that show only later: the second write is lost, what was removed returns, something else changes too."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, around, beforehand
from conformance.reference.identity import Group, Project

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from conformance.reference import Service


# -- the second write is answered, but lost ----------------------------------------------------------------------------


def kept_once(service: Service, area: Any, name: str, key: Callable[..., Hashable], *, times: int = 1) -> None:
    """Let a method make only a number of changes for each key; later it answers as before, but changes nothing."""
    done: Counter[Hashable] = Counter()

    def make(method: Any) -> Any:
        def forgetful(*arguments: Any, **named: Any) -> Any:
            before = service.store.snapshot()
            result = method(*arguments, **named)
            done[key(*arguments)] += 1
            if done[key(*arguments)] > times:
                service.store.restore(before)
            return result

        return forgetful

    around(area, name, make)


def of_subject(subject: Any, *_: Any) -> Hashable:
    """Distinguish changes by their project, group or merge request."""
    return subject.id


def of_rule(_: Any, number: int, *__: Any) -> Hashable:
    """Distinguish changes by their rule."""
    return number


@fault("job-token-scope.switch.on")
def limit_is_switched_once(service: Service) -> None:
    """Only the first switch of a project's limit is stored."""
    kept_once(service, service.job_token_scope, "limit_inbound", of_subject)


@fault("job-token-scope.allowlist.add.present")
def second_project_is_not_added(service: Service) -> None:
    """Only the first project that is added to an allowlist is stored."""
    kept_once(service, service.job_token_scope, "add_project", of_subject)


@fault("job-token-scope.groups-allowlist.add.present")
def second_group_is_not_added(service: Service) -> None:
    """Only the first group that is added to an allowlist is stored."""
    kept_once(service, service.job_token_scope, "add_group", of_subject)


@fault("job-token-scope.allowlist.remove.gone")
def second_project_is_not_removed(service: Service) -> None:
    """Only the first project that is removed from an allowlist is really removed."""
    kept_once(service, service.job_token_scope, "remove_project", of_subject)


@fault("job-token-scope.groups-allowlist.remove.gone")
def second_group_is_not_removed(service: Service) -> None:
    """Only the first group that is removed from an allowlist is really removed."""
    kept_once(service, service.job_token_scope, "remove_group", of_subject)


@fault("group-approval-rules.update.name")
def group_rule_is_changed_once(service: Service) -> None:
    """Only the first change of a group's rule is stored."""
    kept_once(service, service.group_approval_rules, "update_rule", of_rule)


@fault("group-approval-rules.create.listed")
def second_group_rule_is_not_kept(service: Service) -> None:
    """Only the first rule that is created in a group is stored."""
    kept_once(service, service.group_approval_rules, "create_rule", of_subject)


@fault("project-approval-rules.update.stored")
def project_rule_is_changed_once(service: Service) -> None:
    """Only the first change of a project's rule is stored."""
    kept_once(service, service.project_approval_rules, "update_rule", of_rule)


@fault("project-approval-rules.create.readable")
def second_project_rule_is_not_kept(service: Service) -> None:
    """Only the first rule that is created in a project is stored."""
    kept_once(service, service.project_approval_rules, "create_rule", of_subject)


@fault("project-approval-rules.delete.gone")
def second_project_rule_is_not_deleted(service: Service) -> None:
    """Only the first rule that is deleted in a project is really deleted."""
    kept_once(service, service.project_approval_rules, "delete_rule", of_subject)


@fault("merge-request-approvals.rules.update.approvals-required")
def merge_request_rule_is_changed_once(service: Service) -> None:
    """Only the first change of a merge request's rule is stored."""
    kept_once(service, service.merge_request_approval_rules, "update_rule", of_rule)


@fault("merge-request-approvals.rules.create.listed")
def second_merge_request_rule_is_not_kept(service: Service) -> None:
    """Only the first rule that is created in a merge request is stored."""
    kept_once(service, service.merge_request_approval_rules, "create_rule", of_subject)


@fault("merge-request-approvals.rules.delete.gone")
def second_merge_request_rule_is_not_deleted(service: Service) -> None:
    """Only the first rule that is deleted in a merge request is really deleted."""
    kept_once(service, service.merge_request_approval_rules, "delete_rule", of_subject)


@fault("merge-request-approvals.approve.lists-caller")
def second_approver_is_not_kept(service: Service) -> None:
    """Only the first approval of a merge request is stored."""
    kept_once(service, service.merge_request_approvals, "add_approval", lambda _, merge_request: merge_request.id)


@fault("merge-request-approvals.unapprove.caller-is-gone")
def approval_is_taken_back_once(service: Service) -> None:
    """In each merge request, only the first approval can be withdrawn."""
    kept_once(service, service.merge_request_approvals, "remove_approval", lambda _, merge_request: merge_request.id)


@fault("merge-request-approvals.reset.clears-all")
def approvals_are_reset_once(service: Service) -> None:
    """Only the first reset of a merge request clears its approvals."""
    kept_once(service, service.merge_request_approvals, "clear_approvals", of_subject)


def settings_kept_once(service: Service, kind: type) -> None:
    """Store only the first update of each group, or of each project."""
    # For the other kind, every key is new, so every update is stored.
    others = count()
    kept_once(
        service,
        service.approval_settings,
        "change",
        lambda subject, _: subject.id if isinstance(subject, kind) else f"other {next(others)}",
    )


@fault("approval-settings.group.update.allow-author-approval")
def settings_of_a_group_are_updated_once(service: Service) -> None:
    """Only the first update of the settings of a group is stored."""
    settings_kept_once(service, Group)


@fault("approval-settings.project.update.allow-committer-approval")
def settings_of_a_project_are_updated_once(service: Service) -> None:
    """Only the first update of the settings of a project is stored."""
    settings_kept_once(service, Project)


@fault("project-approval-configuration.change.stored")
def configuration_is_changed_once(service: Service) -> None:
    """Only the first change of a project's configuration is stored."""
    kept_once(service, service.project_approval_configurations, "change_configuration", of_subject)


@fault("integrations.update.followed")
def integration_is_changed_once(service: Service) -> None:
    """An integration is set up and changed once; later changes are not stored."""
    kept_once(
        service,
        service.integrations,
        "keep",
        lambda project, kind, *_: (project.id, kind.slug),
        times=2,
    )


@fault("integrations.disable.unlisted")
def integration_is_disabled_once(service: Service) -> None:
    """Only the first integration that is disabled in a project is really disabled."""
    kept_once(service, service.integrations, "disable", of_subject)


@fault("group-relations-export.schedule.unbatched")
def once_exported_in_batches_always_in_batches(service: Service) -> None:
    """After an export in batches a group is always exported in batches."""
    in_batches: set[int] = set()

    def make(schedule: Any) -> Any:
        def scheduling(group: Any, *, batched: bool) -> None:
            if batched:
                in_batches.add(group.id)
            schedule(group, batched=group.id in in_batches)

        return scheduling

    around(service.group_relations_export, "schedule", make)


# -- what was removed returns ------------------------------------------------------------------------------------------


def former_ones_return(service: Service, area: Any, part: str) -> None:
    """Let entries that a change removed from a rule return with the next change of the rule."""
    rules = service.approval_rules.rules
    gone: dict[int, tuple[int, ...]] = {}

    def make(update: Any) -> Any:
        def restoring(home: Any, number: int, wanted: Any, caller: Any) -> Any:
            before = rules.get(number)
            rule = update(home, number, wanted, caller)
            back = gone.pop(number, ())
            gone[number] = tuple(set(getattr(before, part)) - set(getattr(rule, part))) if before else ()
            if back:
                rule = rules[number] = replace(rule, **{part: tuple(dict.fromkeys((*getattr(rule, part), *back)))})
            return rule

        return restoring

    around(area, "update_rule", make)


@fault("project-approval-rules.update.user-ids.removes-others")
def removed_users_of_a_project_rule_return(service: Service) -> None:
    """Users that a change removed from a project's rule return with the next change."""
    former_ones_return(service, service.project_approval_rules, "users")


@fault("project-approval-rules.update.group-ids.removes-others")
def removed_groups_of_a_project_rule_return(service: Service) -> None:
    """Groups that a change removed from a project's rule return with the next change."""
    former_ones_return(service, service.project_approval_rules, "groups")


@fault("merge-request-approvals.rules.update.users-are-replaced")
def removed_users_of_a_merge_request_rule_return(service: Service) -> None:
    """Users that a change removed from a merge request's rule return with the next change."""
    former_ones_return(service, service.merge_request_approval_rules, "users")


@fault("merge-request-approvals.rules.update.groups-are-replaced")
def removed_groups_of_a_merge_request_rule_return(service: Service) -> None:
    """Groups that a change removed from a merge request's rule return with the next change."""
    former_ones_return(service, service.merge_request_approval_rules, "groups")


def deleted_rules_return(service: Service, area: Any) -> None:
    """Let the last deleted rule return when another one is created."""
    rules = service.approval_rules.rules
    gone: dict[int, Any] = {}
    beforehand(area, "delete_rule", lambda _, number: gone.update({number: rules.get(number)}))
    afterwards(area, "create_rule", lambda *_: rules.update({n: rule for n, rule in gone.items() if rule}))


@fault("project-approval-rules.create.leaves-other-rules")
def deleted_project_rule_returns(service: Service) -> None:
    """A deleted rule of a project returns when another one is created."""
    deleted_rules_return(service, service.project_approval_rules)


@fault("merge-request-approvals.rules.delete.gone")
def deleted_merge_request_rule_returns(service: Service) -> None:
    """A deleted rule of a merge request returns when another one is created."""
    deleted_rules_return(service, service.merge_request_approval_rules)


def removed_ones_return(service: Service, kind: str, part: str) -> None:
    """Let what was removed from an allowlist return with the next addition."""
    scopes = service.job_token_scope
    gone: list[int] = []
    beforehand(scopes, f"remove_{kind}", lambda _, target: gone.append(target.id))

    def restore(_: None, project: Any, target: Any) -> None:
        scope = scopes.of(project)
        back = [number for number in gone if number != target.id]
        gone[:] = []
        scopes.scopes[project.id] = replace(scope, **{part: tuple(dict.fromkeys((*getattr(scope, part), *back)))})

    afterwards(scopes, f"add_{kind}", restore)


@fault("job-token-scope.allowlist.change.leaves-others")
def removed_project_returns(service: Service) -> None:
    """A project that was removed from the allowlist returns with the next addition."""
    removed_ones_return(service, "project", "projects")


@fault("job-token-scope.groups-allowlist.change.leaves-others")
def removed_group_returns(service: Service) -> None:
    """A group that was removed from the allowlist returns with the next addition."""
    removed_ones_return(service, "group", "groups")


@fault("merge-request-approvals.approve.keeps-others")
def approval_taken_back_returns(service: Service) -> None:
    """A withdrawn approval returns when another user approves."""
    approvals = service.merge_request_approvals
    gone: dict[int, Any] = {}
    beforehand(approvals, "remove_approval", lambda user, merge_request: gone.update({merge_request.id: user}))

    def restore(_: None, user: Any, merge_request: Any) -> None:
        former = gone.pop(merge_request.id, user)
        if former.id != user.id:
            approvals.add_approval(former, merge_request)

    afterwards(approvals, "add_approval", restore)


@fault("merge-request-approvals.approve.keeps-others")
def approvals_return_after_a_reset(service: Service) -> None:
    """Approvals that were reset return when somebody approves."""
    approvals = service.merge_request_approvals
    gone: dict[int, Any] = {}
    beforehand(
        approvals,
        "clear_approvals",
        lambda merge_request: gone.update({merge_request.id: approvals.approvals_of(merge_request)}),
    )

    def restore(_: None, user: Any, merge_request: Any) -> None:
        back = [one for one in gone.pop(merge_request.id, ()) if one.user_id != user.id]
        approvals.approvals[merge_request.id] = (*approvals.approvals_of(merge_request), *back)

    afterwards(approvals, "add_approval", restore)


@fault("integrations.update.leaves-others")
def disabled_integration_returns(service: Service) -> None:
    """A disabled integration is active again as soon as another one is set up."""
    area = service.integrations
    gone: dict[Any, Any] = {}
    beforehand(
        area, "disable", lambda project, slug: gone.update({(project.id, slug): area.known.get((project.id, slug))})
    )

    def restore(_: Any, project: Any, kind: Any, *__: Any) -> None:
        for key, known in list(gone.items()):
            if known is not None and known.active and key[0] == project.id and key[1] != kind.slug:
                area.known[key] = known
                gone.pop(key)

    afterwards(area, "keep", restore)


# -- something else changes as well ------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.are-separate")
def update_reaches_the_rules_of_other_merge_requests(service: Service) -> None:
    """An update of a rule also changes the rule of another merge request."""
    area = service.merge_request_approval_rules

    def spread(rule: Any, merge_request: Any, *_: Any) -> None:
        for other in service.repositories.merge_requests.values():
            for neighbour in area.own_rules(other) if other.id != merge_request.id else ():
                service.approval_rules.rules[neighbour.id] = replace(
                    neighbour, name=rule.name, approvals_required=rule.approvals_required
                )

    afterwards(area, "update_rule", spread)


@fault("project-approval-rules.projects-are-separate")
def change_reaches_the_rules_of_other_projects(service: Service) -> None:
    """A change of a project's rule also renames the first rule of every other project."""
    area = service.project_approval_rules

    def spread(rule: Any, project: Any, *_: Any) -> None:
        for other in list(service.identities.projects.values()):
            for neighbour in area.rules(other)[:1] if other.id != project.id else ():
                service.approval_rules.rules[neighbour.id] = replace(neighbour, name=rule.name)

    afterwards(area, "update_rule", spread)


@fault("job-token-scope.allowlists.belong-to-their-project")
def switch_reaches_every_project(service: Service) -> None:
    """Switching the limit switches it in all projects."""
    scopes = service.job_token_scope

    def make(limit: Any) -> Any:
        def everywhere(_: Any, *, enabled: bool) -> None:
            for project in list(service.identities.projects.values()):
                limit(project, enabled=enabled)

        return everywhere

    around(scopes, "limit_inbound", make)


@fault("job-token-scope.allowlists.belong-to-their-project")
def removal_reaches_every_project(service: Service) -> None:
    """A project that is removed from one allowlist is removed from all."""
    scopes = service.job_token_scope

    def spread(_: Any, __: Any, target: Any) -> None:
        for number, scope in list(scopes.scopes.items()):
            left = tuple(one for one in scope.projects if one != target.id)
            scopes.scopes[number] = replace(scope, projects=left)

    afterwards(scopes, "remove_project", spread)


@fault("merge-request-approvals.unapprove.keeps-others")
def unapproval_takes_the_next_one_along(service: Service) -> None:
    """Withdrawing an approval also withdraws the next one."""
    approvals = service.merge_request_approvals

    def removing(user: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        place = next(number for number, one in enumerate(given) if one.user_id == user.id)
        approvals.approvals[merge_request.id] = (*given[:place], *given[place + 2 :])

    approvals.remove_approval = removing


@fault("merge-request-approvals.approve.other-sha-changes-nothing")
def conflict_clears_the_approvals_of_others(service: Service) -> None:
    """A sha that is not the HEAD is refused after all approvals except the caller's were cleared."""
    approvals = service.merge_request_approvals

    def clear(merge_request: Any, caller: Any, sha: Any, *_: Any) -> None:
        if sha is not None and sha != service.repositories.head_of(merge_request):
            own = tuple(one for one in approvals.approvals_of(merge_request) if one.user_id == caller.id)
            approvals.approvals[merge_request.id] = own

    beforehand(approvals, "approve", clear)


@fault("approval-settings.project.locked-value-is-the-parents")
def lock_of_a_group_reaches_its_projects_late(service: Service) -> None:
    """A project shows as locked the former value of its group."""
    area = service.approval_settings
    before: dict[Any, bool] = {}

    def remember(subject: Any, wanted: Any) -> None:
        if isinstance(subject, Group):
            before.update({(subject.id, setting): area.effective(subject, setting) for setting in wanted})

    def stale(entry: Any, subject: Any, setting: Any) -> Any:
        if not (isinstance(subject, Project) and entry["locked"]):
            return None
        around_it = service.identities.lineage(subject)
        former = next((before[group.id, setting] for group in around_it if (group.id, setting) in before), None)
        return None if former is None else {**entry, "value": former}

    beforehand(area, "change", remember)
    afterwards(area, "present", stale)


@fault("integrations.parameters.enable-ssl-verification.default")
def default_flips_when_it_is_set_up_again(service: Service) -> None:
    """enable_ssl_verification, which is never sent, is off after an integration is set up a second time."""
    area = service.integrations
    seen: Counter[Any] = Counter()
    afterwards(area, "keep", lambda made, project, kind, *_: seen.update([(project.id, kind.slug)]))

    def flipped(shown: Any, integration: Any) -> Any:
        again = seen[integration.project_id, integration.slug] > 1
        unset = "enable_ssl_verification" in shown and "enable_ssl_verification" not in integration.values
        return {**shown, "enable_ssl_verification": False} if again and unset else None

    afterwards(area, "shown_settings", flipped)


@fault("project-approval-configuration.change.leaves-unsent")
def change_flips_the_default_of_another_setting(service: Service) -> None:
    """A change that does not send reset_approvals_on_push inverts it."""
    area = service.project_approval_configurations

    def flip(changed: Any, project: Any, wanted: Any) -> Any:
        if wanted.reset_approvals_on_push is not None or changed.selective_code_owner_removals:
            return None
        area.configurations[project.id] = replace(changed, reset_approvals_on_push=not changed.reset_approvals_on_push)
        return area.configurations[project.id]

    afterwards(area, "change_configuration", flip)
