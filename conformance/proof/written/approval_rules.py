"""What the faults of approval rules of groups and of projects share; this module has no fault of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.tampering import afterwards, around, handling, is_number, sent
from conformance.reference.areas.approval_rule_records import Level, RuleType, home_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response


def stored(service: Service) -> Any:
    """Return the table of all rules."""
    return service.approval_rules.rules


def others_of(service: Service, rule: Any) -> list[Any]:
    """Return the other rules of the group or project that a rule belongs to."""
    return [other for other in list(stored(service).values()) if other.home == rule.home and other.id != rule.id]


def kept_otherwise(service: Service, area: Any, name: str, **values: Any) -> None:
    """Store a created or changed rule with other values than those in the answer."""
    afterwards(area, name, lambda rule, *_: stored(service).update({rule.id: replace(rule, **values)}))


def names_twice(request: Request) -> bool:
    """Tell whether a request names a user more than once."""
    users = sent(request).get("user_ids") or []
    return isinstance(users, list) and len(users) > len({*users})


def spread_to_others(service: Service, area: Any, name: str, *parts: str) -> None:
    """Copy the values of a created or changed rule to every other rule of the same group or project."""

    def spread(rule: Any, *_: Any) -> None:
        for other in others_of(service, rule):
            stored(service)[other.id] = replace(other, **{part: getattr(rule, part) for part in parts})

    afterwards(area, name, spread)


def created_everywhere(service: Service, area: Any, homes: Callable[[], Any]) -> None:
    """Create each rule in every other group or project as well."""

    def spread(rule: Any, home: Any, *_: Any) -> None:
        for other in homes():
            if other.id != home.id:
                number = service.store.next_id("approval_rules")
                stored(service)[number] = replace(rule, id=number, home=home_of(other))

    afterwards(area, "create_rule", spread)


def untouched_asks_for_one(service: Service) -> None:
    """Let initial rules require one approval."""
    rules = service.approval_rules

    def make(make_default: Any) -> Any:
        def asking(home: Any) -> None:
            known = set(rules.rules)
            make_default(home)
            for number in set(rules.rules) - known:
                rules.rules[number] = replace(rules.rules[number], approvals_required=1)

        return asking

    around(rules, "make_default_rule", make)


def unlisted_policies(area: Any) -> None:
    """Leave rules of type report_approver out of the list."""
    around(
        area,
        "rules",
        lambda rules: lambda home: [rule for rule in rules(home) if rule.rule_type is not RuleType.REPORT_APPROVER],
    )


def after_a_change(service: Service, name: str, level: Level, twist: Callable[..., Any]) -> None:
    """Replace the result of a method for the rules of one level."""
    afterwards(
        service.approval_rules,
        name,
        lambda result, rule, *_: twist(result, rule) if rule.home.level is level else None,
    )


def upserting(service: Service, area: Any, **more: Any) -> None:
    """Let a change of a missing rule create one."""

    def make(update: Any) -> Any:
        def upsert(home: Any, number: int, wanted: Any, caller: Any) -> Any:
            if number in stored(service):
                return update(home, number, wanted, caller)
            return area.create_rule(home, replace(wanted, **more), caller)

        return upsert

    around(area, "update_rule", make)


def any_text_is_the_last(service: Service, key: str, rules: Callable[[Request], list[Any]]) -> None:
    """Read an id that is not a number as that of the last rule."""

    def make(handler: Any) -> Any:
        def lenient(request: Request) -> Response:
            if not is_number(request, "approval_rule_id"):
                request.path = {**request.path, "approval_rule_id": str(rules(request)[-1].id)}
            return handler(request)

        return lenient

    handling(service, key, make)


def unknown_is_the_usual(service: Service, find: str, subjects: str, usual: str) -> None:
    """Use an existing group or project in place of a missing one."""
    known = getattr(service.identities, subjects)[service.world.one(usual).id]
    around(service.identities, find, lambda found: lambda reference: found(reference) or known)


def shown_as_sent(service: Service, key: str, name: str, value: str, instead: str) -> None:
    """Create something else if a value is sent, and answer as if the value had been accepted."""

    def make(handler: Any) -> Any:
        def lenient(request: Request) -> Response:
            is_it = f'"{value}"'.encode() in request.body
            request.body = request.body.replace(f'"{value}"'.encode(), f'"{instead}"'.encode())
            response = handler(request)
            if is_it:
                response.content = {**response.content, name: value}
            return response

        return lenient

    handling(service, key, make)
