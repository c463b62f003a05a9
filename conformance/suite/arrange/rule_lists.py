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
    """What a test is known to have added to a list of rules."""

    numbers: set[Any] = field(default_factory=set)
    """Numbers of the rules in the answers to creations."""
    names: set[Any] = field(default_factory=set)
    """Names that any creation was sent with."""


def _watched() -> dict[str, _Made]:
    """Return a table of lists that are restored; what calls create in these is recorded there from now on."""
    lists: dict[str, _Made] = {}
    current_run().client.on_exchange(partial(_watch, lists))
    return lists


#: By the path of a list that is restored afterwards: what the running test has added to it.
_MADE: PerRun[dict[str, _Made]] = PerRun(_watched)


def _watch(lists: Mapping[str, _Made], exchange: Exchange) -> None:
    """Record what a call creates in the lists that are restored."""
    call = exchange.call
    if call.method != "POST" or not lists:
        return
    sent, shown = object_in(call.body).get("name"), object_in(exchange.body).get("id")
    for path, made in lists.items():
        made.names.update({sent} if isinstance(sent, str) else ())
        made.numbers.update({shown} if call.path == path and exchange.is_success and isinstance(shown, int) else ())


def is_put_back(rules: Path) -> bool:
    """Tell whether a list is restored after the running test, with the setting that rules in it need."""
    return rules in _MADE()


@contextmanager
def rules_put_back(writer: Caller, rules: Path) -> Iterator[None]:
    """Delete afterwards every rule that a test added to a list; older rules are left to whoever changes them.

    Those are rules that it created, rules with a name that it sent, and rules that replaced others of their name. Rules
    that somebody else made since the list was read are kept. If the list cannot be read, the rules that the test is
    known to have created are deleted.
    """
    lists = _MADE()
    around = lists.get(rules)
    with current_run().known_reads.before_changes() as holds_again:
        before = _names(writer, rules)
    made = lists[rules] = _Made()
    with _overriding_put_back(writer, rules):
        try:
            yield
        finally:
            now = _names(writer, rules)
            lists.pop(rules)
            if around is not None:  # the test restored the same list around this
                lists[rules] = around
            if before is None or now is None:
                writer.delete_each(rules, made.numbers)
            else:
                names = made.names | set(before.values())
                new = now.keys() - before.keys()
                own = [number for number in new if number in made.numbers or now[number] in names]
                are_gone = _deleted(writer, rules, own, is_last=not lists)
                if now.keys() - set(own) == before.keys() and are_gone:
                    holds_again()


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


def _names(reader: Caller, rules: Path) -> dict[Any, Any] | None:
    """Return the names of the rules of a list by number; None when it cannot be read, which other tests report."""
    try:
        entries = reader.list(rules).entries
    except Unmet:
        return None
    return {rule.get("id"): rule.get("name") for rule in entries if isinstance(rule, dict)}
