"""Plausible faults in approval rules of projects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    CALLER_AND_FORM,
    NEIGHBOUR,
    SIDE_EFFECT,
    VERSIONS,
)
from conformance.proof.foreign.paths import PROJECT_RULE
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.errors import not_found

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
