"""Variants in any_approver rules and in rules that name nobody, and the alterations that make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.variants import approval_rules, approval_settings
from conformance.proof.variants.variant import Variant
from conformance.reference.areas.approval_rule_records import RuleType, home_of
from conformance.reference.choices import Choices
from conformance.reference.errors import ForbiddenError, RejectedError
from conformance.reference.identity import NewSubject, Role
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from conformance.reference import Service


def makes_rules_that_name_nobody_default(service: Service) -> None:
    """Store a new rule without approvers and without a sent type as the any_approver rule."""
    rules = service.approval_rules
    create = rules.create_rule

    def created(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        if not (wanted.rule_type or wanted.user_ids or wanted.usernames or wanted.group_ids):
            wanted = replace(wanted, rule_type=RuleType.ANY_APPROVER)
        return create(subject, home, wanted, caller)

    rules.create_rule = created


def makes_unnamed_rules_default_whatever_their_type(service: Service) -> None:
    """Store a new rule without approvers as the any_approver rule, whatever type is sent."""
    rules = service.approval_rules
    add = rules.add_rule

    def added(candidate: Any) -> Any:
        is_unnamed = candidate.rule_type is RuleType.REGULAR and not (candidate.users or candidate.groups)
        return add(replace(candidate, rule_type=RuleType.ANY_APPROVER) if is_unnamed else candidate)

    rules.add_rule = added


def fixes_the_name_of_default_rules(service: Service) -> None:
    """Give the any_approver rule and rules about reports their fixed names, whatever was sent."""
    rules = service.approval_rules
    add = rules.add_rule
    names = {RuleType.ANY_APPROVER: service.choices.default_rule_name, RuleType.REPORT_APPROVER: "Coverage-Check"}

    def added(candidate: Any) -> Any:
        return add(replace(candidate, name=names.get(candidate.rule_type, candidate.name)))

    rules.add_rule = added


def makes_updated_rules_default(service: Service) -> None:
    """Make a regular rule that an update leaves without approvers the any_approver rule, until it names somebody."""
    rules = service.approval_rules
    update = rules.update_rule
    made: set[int] = set()

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        if rule.id in made and (wanted.user_ids or wanted.usernames or wanted.group_ids):
            rule = replace(rule, rule_type=RuleType.REGULAR)
        changed = update(subject, rule, wanted, caller)
        if changed.rule_type is not RuleType.REGULAR or changed.users or changed.groups:
            return changed
        made.add(changed.id)
        default = replace(changed, rule_type=RuleType.ANY_APPROVER, name=service.choices.default_rule_name)
        rules.rules[changed.id] = default
        return default

    rules.update_rule = updated


def keeps_somebody_in_rules(service: Service) -> None:
    """Refuse an update that leaves a regular rule without approvers."""
    rules = service.approval_rules
    update = rules.update_rule

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        left = (*rules.users_after(rule, wanted, subject), *rules.groups_after(rule, wanted, caller))
        if rule.rule_type is RuleType.REGULAR and not left:
            raise RejectedError("names nobody", parameter="user_ids")
        return update(subject, rule, wanted, caller)

    rules.update_rule = updated


def makes_no_default_rules(service: Service) -> None:
    """Refuse to create a rule of the kind that exists from the start."""
    rules = service.approval_rules
    create = rules.create_rule

    def created(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        if wanted.rule_type is RuleType.ANY_APPROVER:
            raise RejectedError("is there already", parameter="rule_type")
        return create(subject, home, wanted, caller)

    rules.create_rule = created


def keeps_the_default_rule_that_is_there(service: Service) -> None:
    """Refuse a second any_approver rule although the first one, from the start, requires no approval."""
    rules = service.approval_rules
    add = rules.add_rule

    def added(candidate: Any) -> Any:
        others = (rule for rule in rules.rules_of(candidate.home) if rule.rule_type is RuleType.ANY_APPROVER)
        if candidate.rule_type is RuleType.ANY_APPROVER and any(others):
            raise RejectedError("is there already", parameter="rule_type")
        return add(candidate)

    rules.add_rule = added


def asks_regular_rules_for_approvals(service: Service) -> None:
    """Refuse a regular rule that requires no approval."""
    rules = service.approval_rules
    require = rules.require_possible

    def require_possible(rule: Any) -> None:
        require(rule)
        if rule.rule_type is RuleType.REGULAR and not rule.approvals_required:
            raise RejectedError("must be positive", parameter="approvals_required")

    rules.require_possible = require_possible


def keeps_default_rules(service: Service) -> None:
    """Let nobody change or delete an any_approver rule that exists from the start."""
    rules = service.approval_rules
    update, delete = rules.update_rule, rules.delete_rule

    def require_other(rule: Any) -> None:
        if rule.rule_type is RuleType.ANY_APPROVER and rule.name == service.choices.default_rule_name:
            raise ForbiddenError

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        require_other(rule)
        return update(subject, rule, wanted, caller)

    def deleted(rule: Any) -> None:
        require_other(rule)
        delete(rule)

    rules.update_rule = updated
    rules.delete_rule = deleted
    # Creating such a rule does not remove this one either.
    rules.supersede_default_rule = lambda rule: None  # noqa: ARG005 - the method has an argument


def has_asked_for_approvals_above(service: Service) -> None:
    """Let the untouched project lie in a group whose any_approver rule somebody changed, and list that rule."""
    world, identities, rules = service.world, service.identities, service.approval_rules
    group = identities.create_group(NewSubject(path="asks-for-approvals"))
    project = identities.create_project(NewSubject(path="untouched", within=group))
    for actor, role in (("owner", Role.OWNER), ("maintainer", Role.MAINTAINER)):
        identities.add_member(group, identities.users[world.actors[actor].id], role)
    for rule in rules.rules_of(home_of(group)):
        rules.rules[rule.id] = replace(rule, approvals_required=2)
    world.fixtures["fresh_project"] = Fixture(project.id, project.full_path)
    approval_rules.hands_rules_down(service)


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "unnamed-rules-are-default",
        "A rule that names nobody becomes the one that anybody satisfies, and a second such rule is refused.",
        alterations=(makes_rules_that_name_nobody_default,),
    ),
    Variant(
        "unnamed-rules-meet-the-default",
        "A rule that names nobody is the one that anybody satisfies, which is there from the start and stays.",
        alterations=(
            makes_rules_that_name_nobody_default,
            keeps_the_default_rule_that_is_there,
        ),
    ),
    Variant(
        "regular-rules-name-somebody",
        "A rule that names nobody is the one that anybody satisfies, whatever type is sent; a second one is refused.",
        alterations=(makes_unnamed_rules_default_whatever_their_type,),
    ),
    Variant(
        "updated-rules-become-default",
        "Lists that an update does not send are emptied, and a rule that names nobody is the one for anybody.",
        replace(_PLAIN, absent_lists_remove=True),
        alterations=(makes_updated_rules_default,),
    ),
    Variant(
        "updated-rules-keep-somebody",
        "Lists that an update does not send are emptied, and an update that leaves nobody in a rule is refused.",
        replace(_PLAIN, absent_lists_remove=True),
        alterations=(keeps_somebody_in_rules,),
        alone="an update of one value alone is refused",
    ),
    Variant(
        "groups-ask-for-approvals",
        "A project lists the rules of its groups, and one of those asks anybody for approvals.",
        alterations=(has_asked_for_approvals_above,),
    ),
    Variant(
        "default-rules-are-fixed",
        "The rule that anybody satisfies is there from the start, cannot be made anew, and others require somebody.",
        alterations=(makes_no_default_rules, asks_regular_rules_for_approvals),
    ),
    Variant(
        "default-rules-keep-their-name",
        "The rule that anybody satisfies and those about reports have their own names; the deprecated number counts.",
        alterations=(
            fixes_the_name_of_default_rules,
            approval_settings.maps_approvals_before_merge,
            approval_settings.still_changes_configurations,
        ),
    ),
    Variant(
        "default-rules-stay",
        "The rule that anybody satisfies is there from the start and cannot be changed or deleted.",
        replace(_PLAIN, several_default_rules=True),
        alterations=(keeps_default_rules,),
    ),
)
