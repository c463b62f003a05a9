"""Lists of approval rules that are as before after a test, and the setting that lets merge requests have rules."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.http.bodies import object_in
from conformance.suite.arrange.approval_settings import OVERRIDES, Settings
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import Answer, Caller, Path
from conformance.suite.per_run import PerRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.http.exchange import Exchange


@dataclass(frozen=True)
class _Made:
    """What the run is known to have added to lists of rules."""

    numbers: set[tuple[str, Any]] = field(default_factory=set)
    """Path of the list and number, from the answers to creations, of what was not deleted since."""
    names: set[str] = field(default_factory=set)
    """Names that any creation was sent with."""


def _watched() -> _Made:
    """Return what calls create from now on."""
    made = _Made()
    current_run().client.on_exchange(partial(_watch, made))
    return made


_MADE: PerRun[_Made] = PerRun(_watched)
#: The lists that are restored after the running test, each as often as callers do that.
_RESTORED: PerRun[list[Path]] = PerRun(list)


def _watch(made: _Made, exchange: Exchange) -> None:
    """Record what a call creates or deletes."""
    call = exchange.call
    if call.method == "POST":
        sent, shown = object_in(call.body).get("name"), object_in(exchange.body).get("id")
        made.names.update({sent} if isinstance(sent, str) else ())
        made.numbers.update({(call.path, shown)} if exchange.is_success and isinstance(shown, int) else ())
    elif call.method == "DELETE" and exchange.is_success:
        rules, _, number = call.path.rpartition("/")
        made.numbers.discard((rules, int(number) if number.isdecimal() else number))


def is_put_back(rules: Path) -> bool:
    """Tell whether a list is restored after the running test, with the setting that rules in it need."""
    return rules in _RESTORED()


@contextmanager
def rules_put_back(writer: Caller, rules: Path) -> Iterator[None]:
    """Delete afterwards every rule that a test added to a list; older rules are left to whoever changes them.

    Rules that somebody else made since the list was read are kept. If the list cannot be read, the rules that the test
    is known to have created are deleted.
    """
    lists, made = _RESTORED(), _MADE()
    with current_run().known_reads.before_changes() as holds_again:
        before = _names_if_read(writer, rules)
    older = frozenset(made.numbers)
    lists.append(rules)
    with _overriding_put_back(writer, rules):
        try:
            yield
        finally:
            now = _names_if_read(writer, rules)
            lists.remove(rules)
            if before is None or now is None:
                writer.delete_each(rules, [number for path, number in made.numbers - older if path == rules])
            else:
                own = _added(rules, before, now)
                are_gone = _deleted(writer, rules, own, is_last=not lists)
                if now.keys() - set(own) == before.keys() and are_gone:
                    holds_again()


def delete_added(writer: Caller, rules: Path, before: Mapping[Any, str | None]) -> None:
    """Delete what the run has added to a list since its rules had these names by number; keep rules of others."""
    writer.delete_each(rules, _added(rules, before, names_of_rules(writer, rules)))


def _added(rules: Path, before: Mapping[Any, str | None], now: Mapping[Any, str | None]) -> list[Any]:
    """Return the numbers of the rules that the run has added to a list, from the names of its rules by number.

    Those are rules that it created, rules with a name that it sent, and rules that replaced others of their name.
    """
    made = _MADE()
    names = {*made.names, *before.values()} - {None}
    new = {number: name for number, name in now.items() if number not in before}
    return [number for number, name in new.items() if (rules, number) in made.numbers or name in names]


#: What was not deleted so far, because other rules may depend on it: by whom, from which list, and which rules.
_LEFT: PerRun[list[tuple[Caller, Path, list[Any]]]] = PerRun(list)


def _deleted(writer: Caller, rules: Path, numbers: list[Any], *, is_last: bool) -> bool:
    """Delete rules and return whether all are gone; those that are refused are tried again after the last list.

    A service may keep the rule of a project as long as a merge request has a copy of it.
    """
    answers, left = writer.delete_each(rules, numbers), _LEFT()
    refused = [number for number, answer in zip(numbers, answers, strict=True) if answer.exchange.is_refusal]
    if refused and not is_last:
        left.append((writer, rules, refused))
    while is_last and left:
        caller, others, waiting = left.pop()
        answers += caller.delete_each(others, waiting)
    return all(answer.is_served for answer in answers)


#: The projects whose settings forbid rules in merge requests, and whether the suite allows them for now.
_FORBIDDING: PerRun[dict[Path, bool]] = PerRun(dict)


def _settings_around(rules: Path) -> Path:
    """Return the path of the project settings of a merge request with these rules."""
    return Path(rules.partition("/merge_requests/")[0]) / "merge_request_approval_setting"


@contextmanager
def _overriding_put_back(writer: Caller, rules: Path) -> Iterator[None]:
    """Allow rules in a merge request whose project was seen to forbid them, and forbid them again afterwards."""
    if may_override_for_now(rules):
        yield  # a caller around this one has allowed it
        return
    if _settings_around(rules) in _FORBIDDING():
        let_override(writer, rules)
    try:
        yield
    finally:
        if may_override_for_now(rules):
            forbid_override_again(writer, rules)


def may_override_for_now(rules: Path) -> bool:
    """Tell whether a merge request may have rules only because the suite allows it, until it is forbidden again."""
    return _FORBIDDING().get(_settings_around(rules), False)


def let_override(writer: Caller, rules: Path) -> Answer | None:
    """Allow a merge request to have rules; return the answer, or None if no setting forbids it, or it cannot change."""
    if "/merge_requests/" not in rules:
        return None
    settings = Settings(writer, _settings_around(rules))
    with suppress(Unmet):
        if settings.is_free(OVERRIDES) and not settings.values()[OVERRIDES]:
            answer = settings.change(**{OVERRIDES: True})
            _FORBIDDING()[settings.path] = answer.is_served
            return answer
    return None


def forbid_override_again(writer: Caller, rules: Path) -> Answer:
    """Undo `let_override`."""
    settings = Settings(writer, _settings_around(rules))
    _FORBIDDING()[settings.path] = False
    return settings.change(**{OVERRIDES: False})


def names_of_rules(reader: Caller, rules: Path) -> dict[Any, str | None]:
    """Return the names of the rules of a list by number; from now on, what the run adds to it is recorded.

    Other tests report a rule without a number, and a name that is no text.
    """
    _MADE()
    numbered = [rule for rule in reader.list(rules).having() if isinstance(rule.get("id"), int | str)]
    return {rule["id"]: name if isinstance(name := rule.get("name"), str) else None for rule in numbered}


def _names_if_read(reader: Caller, rules: Path) -> dict[Any, str | None] | None:
    """Return them, or None when the list cannot be read, which other tests report."""
    with suppress(Unmet):
        return names_of_rules(reader, rules)
    return None
