"""Faults that show only among three entries of a list, or when a switch is set to what it is."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, around, beforehand, told_otherwise
from conformance.reference.areas.approval_rule_records import Level, RuleType

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.areas.approval_rule_records import ApprovalRule, RuleRequest
    from conformance.reference.identity import User


@fault("group-approval-rules.create.group-ids")
def groups_alone_are_not_taken(service: Service) -> None:
    """A new rule of a group has groups only if it has users beside them."""

    def without_groups(wanted: RuleRequest) -> RuleRequest:
        return wanted if wanted.user_ids else replace(wanted, group_ids=None)

    told_otherwise(service.group_approval_rules, "create_rule", 1, without_groups)


@fault("project-approval-rules.update.leaves-other-rules")
def hidden_groups_go_from_every_rule(service: Service) -> None:
    """remove_hidden_groups removes the hidden groups of all rules of the project."""
    rules = service.approval_rules

    def remove(changed: ApprovalRule, _: object, __: object, wanted: RuleRequest, caller: User) -> None:
        for one in rules.rules_of(changed.home) if wanted.remove_hidden_groups else ():
            rules.rules[one.id] = replace(one, groups=rules.visible_groups(one, caller))

    afterwards(service.project_approval_rules, "update_rule", remove)


@fault("job-token-scope.allowlist.remove.gone")
def limit_brings_removed_projects_back(service: Service) -> None:
    """Switching the limit off and on brings back the projects that were removed from the allowlist before."""
    scopes = service.job_token_scope
    gone: dict[int, list[int]] = {}
    beforehand(scopes, "remove_project", lambda project, target: gone.setdefault(project.id, []).append(target.id))

    def make(limit: Any) -> Any:
        def switched(project: Any, *, enabled: bool) -> None:
            was_off = not scopes.of(project).inbound_enabled
            limit(project, enabled=enabled)
            if enabled and was_off:
                scope = scopes.of(project)
                listed = tuple(dict.fromkeys((*scope.projects, *gone.pop(project.id, ()))))
                scopes.scopes[project.id] = replace(scope, projects=listed)

        return switched

    around(scopes, "limit_inbound", make)


@fault("job-token-scope.allowlist.change.leaves-others")
def removing_the_oldest_project_removes_the_newest(service: Service) -> None:
    """Removing the oldest of three projects from the allowlist removes the newest instead."""
    scopes = service.job_token_scope

    def make(remove: Any) -> Any:
        def removing(project: Any, target: Any) -> None:
            listed = scopes.of(project).projects
            is_oldest = len(listed) > 2 and listed[0] == target.id
            remove(project, service.identities.projects[listed[-1]] if is_oldest else target)

        return removing

    around(scopes, "remove_project", make)


@fault("job-token-scope.leaves-the-rest")
def limit_that_is_on_already_clears_the_groups(service: Service) -> None:
    """Switching the limit on while it is on removes the first group that is listed beside another one."""
    scopes = service.job_token_scope

    def make(limit: Any) -> Any:
        def switched(project: Any, *, enabled: bool) -> None:
            before = scopes.of(project)
            limit(project, enabled=enabled)
            if enabled and before.inbound_enabled and len(before.groups) > 1:
                scopes.scopes[project.id] = replace(scopes.of(project), groups=before.groups[1:])

        return switched

    around(scopes, "limit_inbound", make)


@fault("integrations.update.leaves-others")
def third_integration_silences_the_first(service: Service) -> None:
    """Setting up a third integration switches the pushes of the oldest one off."""
    area = service.integrations

    def silence(_: Any, project: Any, kind: Any, *__: Any) -> None:
        oldest, *others = area.active(project)
        if len(others) > 1 and oldest.slug != kind.slug:
            silent = MappingProxyType({**oldest.values, "push_events": False})
            area.known[project.id, oldest.slug] = replace(oldest, values=silent)

    afterwards(area, "keep", silence)


@fault("integrations.update.leaves-others")
def disabling_takes_the_newest_along(service: Service) -> None:
    """Disabling an older one of three integrations disables the newest as well."""
    area = service.integrations

    def make(disable: Any) -> Any:
        def disabling(project: Any, slug: str) -> None:
            before = [one.slug for one in area.active(project)]
            disable(project, slug)
            if len(before) > 2 and slug in before[:-1]:
                disable(project, before[-1])

        return disabling

    around(area, "disable", make)


@fault("merge-request-approvals.rules.delete.leaves-others")
def deletion_in_the_middle_takes_the_last(service: Service) -> None:
    """Deleting a rule of a merge request that lies between others deletes the last one as well."""
    area = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            own = [rule.id for rule in area.own_rules(merge_request)]
            delete(merge_request, number)
            if number in own[1:-1]:
                service.approval_rules.rules.pop(own[-1])

        return deleting

    around(area, "delete_rule", make)


def own_rules(service: Service, rule: ApprovalRule, level: Level) -> list[ApprovalRule]:
    """Return what people made of the rules beside a rule, oldest first; none at other levels."""
    beside = service.approval_rules.rules_of(rule.home) if rule.home.level is level else []
    return [one for one in beside if one.rule_type is RuleType.REGULAR]


@fault("project-approval-rules.delete.gone")
def deleting_the_oldest_rule_of_a_project_deletes_the_newest(service: Service) -> None:
    """Deleting the oldest of three rules of a project deletes the newest instead."""

    def make(delete: Any) -> Any:
        def deleting(rule: ApprovalRule) -> None:
            rules = own_rules(service, rule, Level.PROJECT)
            delete(rules[-1] if rules[2:] and rule == rules[0] else rule)

        return deleting

    around(service.approval_rules, "delete_rule", make)


@fault("merge-request-approvals.rules.delete.gone")
def deleting_the_oldest_rule_of_a_merge_request_deletes_the_newest(service: Service) -> None:
    """Deleting the oldest of three rules of a merge request deletes the newest instead."""
    area = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            own = [rule.id for rule in area.own_rules(merge_request)]
            delete(merge_request, own[-1] if own[2:] and number == own[0] else number)

        return deleting

    around(area, "delete_rule", make)


@fault("group-approval-rules.update.leaves-other-rules")
def change_of_the_newest_rule_of_a_group_reaches_the_oldest(service: Service) -> None:
    """A change of the newest of several rules of a group raises the number of the oldest."""

    def make(update: Any) -> Any:
        def updating(subject: Any, rule: ApprovalRule, wanted: Any, caller: Any) -> Any:
            changed = update(subject, rule, wanted, caller)
            rules = own_rules(service, rule, Level.GROUP)
            if rules[1:] and rules[-1].id == rule.id:
                oldest = replace(rules[0], approvals_required=rules[0].approvals_required + 1)
                service.approval_rules.rules[oldest.id] = oldest
            return changed

        return updating

    around(service.approval_rules, "update_rule", make)


@fault("group-approval-rules.create.user-ids")
def third_users_of_new_group_rules_are_lost(service: Service) -> None:
    """A new rule of a group has at most two users."""

    def two(wanted: RuleRequest) -> RuleRequest:
        return wanted if wanted.user_ids is None else replace(wanted, user_ids=wanted.user_ids[:2])

    told_otherwise(service.group_approval_rules, "create_rule", 1, two)


@fault("merge-request-approvals.rules.create.in-state")
def states_show_two_rules(service: Service) -> None:
    """The approval state shows the first two rules of a merge request."""
    afterwards(service.merge_request_approvals, "state", lambda shown, *_: {**shown, "rules": shown["rules"][:2]})
