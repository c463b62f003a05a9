"""Plausible faults in approval rules of projects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    AGAIN,
    CALLER_AND_FORM,
    FORM_SENT,
    NEIGHBOUR,
    REFUSED,
    SIDE_EFFECT,
    VERSIONS,
)
from conformance.proof.foreign.paths import PROJECT_RULE
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import RuleType, home_of
from conformance.reference.errors import InvalidError, not_found

if TYPE_CHECKING:
    from conformance.reference import Service


_DEEP = 2


@foreign(NEIGHBOUR, "Project approval rules: usernames name users")
def a_username_finds_all_that_contain_it(service: Service) -> None:
    """Usernames are searched for: everybody whose username contains the one that was sent becomes an approver."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        known = service.identities
        members = [known.users[number].username for number in known.members(subject)]
        if wanted.usernames:
            found = [one for one in members if any(name in one for name in wanted.usernames)]
            wanted = replace(wanted, usernames=tuple(dict.fromkeys((*wanted.usernames, *found))))
        return named(wanted, subject)


@foreign(SIDE_EFFECT, "Project approval rules: POST of a second rule for all branches")
def a_new_rule_for_all_branches_takes_the_flag_from_others(service: Service) -> None:
    """A new rule that applies to all protected branches takes the flag from all others."""
    rules = service.approval_rules

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        made = create(project, wanted, caller)
        for one in rules.rules_of(made.home) if wanted.applies_to_all_protected_branches else ():
            if one.id != made.id:
                rules.rules[one.id] = replace(one, applies_to_all_protected_branches=False)
        return made


@foreign(CALLER_AND_FORM, "Project approval rules: DELETE by a path of several groups")
def a_nested_project_keeps_its_rules(service: Service) -> None:
    """In a project that is named by a path through several groups, the rule to be deleted is not found."""

    @handling(service, f"DELETE {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if request.path["id"].count("/") >= _DEEP:
            raise not_found("Project")
        return handler(request)


@foreign(SIDE_EFFECT, "Project approval rules: POST with protected_branch_ids")
def branches_of_a_new_rule_leave_the_older_rules(service: Service) -> None:
    """A protected branch belongs to one rule: a new rule that has it takes it from the others."""
    rules = service.approval_rules

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        made = create(project, wanted, caller)
        for one in rules.rules_of(made.home):
            if one.id != made.id and made.protected_branches:
                kept = tuple(n for n in one.protected_branches if n not in made.protected_branches)
                rules.rules[one.id] = replace(one, protected_branches=kept)
        return made


@foreign(VERSIONS, "Project approval rules: usernames since 15.8", version="15.11")
def version_15_11_counts_as_older_than_15_8(service: Service) -> None:
    """Versions are compared as decimal numbers: 15.11 is less than 15.8, and usernames are not taken."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        return named(replace(wanted, usernames=None), subject)


@foreign(AGAIN, "Project approval rules: PUT, from all branches to some")
def branches_are_lost_when_the_flag_is_switched_off(service: Service) -> None:
    """An update that switches applies_to_all_protected_branches off passes over the protected_branch_ids beside it."""

    @instead(service.approval_rules, "update_rule")
    def _(update: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        if rule.applies_to_all_protected_branches and wanted.applies_to_all_protected_branches is False:
            wanted = replace(wanted, protected_branch_ids=None)
        return update(subject, rule, wanted, caller)


@foreign(FORM_SENT, "Project approval rules: PUT, remove_hidden_groups beside group_ids")
def removing_hidden_groups_passes_over_new_groups(service: Service) -> None:
    """An update with remove_hidden_groups true adds no groups: those in group_ids that the rule has not are dropped."""

    @instead(service.approval_rules, "groups_after")
    def _(after: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        groups = after(rule, wanted, caller)
        return tuple(n for n in groups if n in rule.groups) if wanted.remove_hidden_groups else groups


@foreign(FORM_SENT, "Project approval rules: POST, rule_type without the flag")
def a_rule_of_a_stated_type_applies_everywhere(service: Service) -> None:
    """If rule_type is sent, applies_to_all_protected_branches is true by default."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        if wanted.rule_type is RuleType.REGULAR and wanted.applies_to_all_protected_branches is None:
            wanted = replace(wanted, applies_to_all_protected_branches=True)
        return create(project, wanted, caller)


@foreign(REFUSED, "Project approval rules: PUT, group_ids that are no list")
def the_number_is_kept_though_the_groups_are_refused(service: Service) -> None:
    """An update whose group_ids are no list of ids is refused, but its approvals_required is kept."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError as error:
            number, rules = request.parameters._values.get("approvals_required"), service.approval_rules.rules
            path = request.path["approval_rule_id"]
            rule = rules.get(int(path)) if path.isdigit() else None
            if (
                error.parameter == "group_ids"
                and isinstance(number, int)
                and rule
                and rule.home == home_of(request.project)
            ):
                rules[rule.id] = replace(rule, approvals_required=number)
            raise
