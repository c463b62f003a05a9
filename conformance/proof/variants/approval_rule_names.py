"""Variants in the names and numbers of approval rules, and the alterations that make them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from conformance.proof.variants.variant import Variant
from conformance.reference.areas.approval_rule_records import SYSTEM_TYPES, ApprovalRule, Home, Level, RuleType
from conformance.reference.errors import RejectedError, not_found
from conformance.reference.store import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import User

_MOST_RULES = 8
_RULES_OF_OTHERS = 12
_LONGEST_NAME = 60


def counts_rules_in_each_place(service: Service) -> None:
    """Count the rules of each group, project and merge request from 1 on; those of the system keep their ids."""
    last: Table[Home, int] = Table(service.store)

    def following(home: Home, taken: Collection[int]) -> int:
        last[home] = next(number for number in count(last.get(home, 0) + 1) if number not in taken)
        return last[home]

    _number_rules(service, following)


def counts_the_rules_there_are(service: Service) -> None:
    """Do the same, but give each new rule the smallest free number."""
    _number_rules(service, lambda _, taken: next(free for free in count(1) if free not in taken))


def _number_rules(service: Service, number_for: Callable[[Home, Collection[int]], int]) -> None:
    """Give each rule a number, depending on its place and the numbers that are taken there.

    If one list shows the rules of two places, these keep their ids, because otherwise a number would occur twice.
    """
    if service.choices.project_rules_listed_in_merge_requests:
        return
    rules = service.approval_rules
    numbers: Table[int, int] = Table(service.store)
    present = rules.present

    def number_of(rule: ApprovalRule) -> int:
        # All rules of the place in the order of creation: a rule that nobody has read yet has its number too.
        there = [one for one in rules.rules.values() if one.home == rule.home]
        taken = {numbers.get(one.id, one.id) for one in there if one.id in numbers or one.rule_type in SYSTEM_TYPES}
        for one in there:
            if one.rule_type not in SYSTEM_TYPES and one.id not in numbers:
                numbers[one.id] = number_for(one.home, taken)
                taken.add(numbers[one.id])
        return numbers.get(rule.id, rule.id)

    def find(home: Home, number: int) -> ApprovalRule:
        found = next((rule for rule in rules.rules_of(home) if number_of(rule) == number), None)
        if found is None:
            raise not_found("Approval Rule")
        return found

    def presented(rule: ApprovalRule, viewer: User, barred: Collection[int] = ()) -> dict[str, object]:
        return {**present(rule, viewer, barred), "id": number_of(rule)}

    rules.find = find
    rules.present = presented


def gives_numbers_again(service: Service) -> None:
    """Give a rule the smallest free id, so that those of deleted rules are used again."""
    rules, next_id = service.approval_rules.rules, service.store.next_id

    def number(sequence: str) -> int:
        is_free = sequence == "approval_rules" and rules
        return next(free for free in count(min(rules)) if free not in rules) if is_free else next_id(sequence)

    service.store.next_id = number


def has_rules_of_others(service: Service) -> None:
    """Let another project, and another merge request of the tested project, have rules of other users."""
    world, rules = service.world, service.approval_rules
    project = Home(Level.PROJECT, world.one("sibling_project").id)
    for home in (project, Home(Level.MERGE_REQUEST, world.one("reset_merge_request").id)):
        for number in range(_RULES_OF_OTHERS):
            users = (world.actors["approver"].id,)
            rules.add_rule(ApprovalRule(id=0, home=home, name=f"Ours {number}", approvals_required=1, users=users))


def takes_few_rules(service: Service) -> None:
    """Refuse the ninth rule of a project or merge request: the maximum number is open."""
    rules = service.approval_rules
    add = rules.add_rule

    def added(candidate: ApprovalRule) -> ApprovalRule:
        own = [rule for rule in rules.rules_of(candidate.home) if rule.rule_type is RuleType.REGULAR]
        if candidate.home.level is not Level.GROUP and len(own) >= _MOST_RULES:
            raise RejectedError("is one too many", parameter="name")
        return add(candidate)

    rules.add_rule = added


def finds_rules_by_name(service: Service) -> None:
    """Also find a rule by its name in place of its id in a path."""
    rules = service.approval_rules.rules

    def naming(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def handled(request: Request) -> Response:
            text = request.path["approval_rule_id"]
            named = [rule.id for rule in rules.values() if rule.name == text and not text.isdigit()]
            request.path["approval_rule_id"] = str(named[0]) if named else text
            return handler(request)

        return handled

    for route in list(service.routes):
        if route.path.endswith(":approval_rule_id"):
            service.routes.change(route.key, handler=naming(route.handler))


def never_gives_a_name_twice(service: Service) -> None:
    """Refuse the name of an earlier rule of the same place, even a deleted one; copies keep the name of their rule."""
    rules = service.approval_rules
    add = rules.add_rule
    taken: Table[tuple[Home, str], int] = Table(service.store)

    def added(candidate: ApprovalRule) -> ApprovalRule:
        key = candidate.home, candidate.name
        if candidate.rule_type is RuleType.REGULAR and candidate.source_id is None and key in taken:
            raise RejectedError("was taken before", parameter="name")
        rule = add(candidate)
        taken[key] = rule.id
        return rule

    rules.add_rule = added


def takes_short_names_only(service: Service) -> None:
    """Refuse long names of rules, and those with spaces at an end or unprintable characters."""
    rules = service.approval_rules
    require = rules.require_possible

    def require_possible(rule: Any) -> None:
        require(rule)
        if len(rule.name) > _LONGEST_NAME or rule.name != rule.name.strip() or not rule.name.isprintable():
            raise RejectedError("is not a name", parameter="name")

    rules.require_possible = require_possible


def trims_names(service: Service) -> None:
    """Store names of rules without spaces at their ends, and with single ones inside."""
    rules = service.approval_rules
    create, update = rules.create_rule, rules.update_rule

    def trimmed(wanted: Any) -> Any:
        return wanted if wanted.name is None else replace(wanted, name=" ".join(wanted.name.split()))

    def created(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        return create(subject, home, trimmed(wanted), caller)

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        return update(subject, rule, trimmed(wanted), caller)

    rules.create_rule = created
    rules.update_rule = updated


def lists_rules_by_name(service: Service) -> None:
    """List rules in the order of their names, so that renaming a rule moves it."""
    rules = service.approval_rules
    rules_of = rules.rules_of

    def by_name(home: Home) -> list[Any]:
        return sorted(rules_of(home), key=lambda rule: (rule.name.lower(), rule.id))

    rules.rules_of = by_name


VARIANTS = (
    Variant(
        "rules-counted-in-each-place",
        "Rules are numbered from 1 on in each place, eight stand there at most, and a name is used once for ever.",
        alterations=(
            takes_few_rules,
            counts_rules_in_each_place,
            never_gives_a_name_twice,
        ),
    ),
    Variant(
        "neighbours-have-rules",
        "Rules are numbered from 1 on in each place, and places beside those that are tried have rules of others.",
        alterations=(counts_the_rules_there_are, has_rules_of_others),
    ),
    Variant(
        "rules-found-by-name",
        "A rule is found by its name as well.",
        alterations=(finds_rules_by_name,),
    ),
    Variant(
        "numbers-come-back",
        "The next rule gets the smallest number that is free, such as that of a deleted one.",
        alterations=(gives_numbers_again,),
    ),
    Variant(
        "short-names-only",
        "Names of rules are short and printable.",
        alterations=(takes_short_names_only,),
    ),
    Variant(
        "names-are-trimmed",
        "Names of rules lose blanks at their ends and double ones.",
        alterations=(trims_names,),
    ),
    Variant(
        "rules-by-name",
        "Rules are listed by their names.",
        alterations=(lists_rules_by_name,),
    ),
)
