"""Restores what a run changed, from its ledger, and reports what is left."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.errors import TargetError
from conformance.http.client import Client, TargetGoneError
from conformance.http.front import may_be_in_front
from conformance.target.provisioning.calls import Calls, by_http
from conformance.target.provisioning.files import Made
from conformance.target.provisioning.own_groups import removed
from conformance.target.states import RECORD, States, Thing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.http.exchange import Exchange
    from conformance.target.ledger import Content
    from conformance.target.profile import Profile
    from conformance.target.states import Values

#: Restoring one thing may change another one, which is restored in the next round.
_MOST_ROUNDS = 5
_SHOWN = 5
_LONGEST_NAME = 60
_READS_AT_ONCE = 4
#: So many refused deletions show that the lists of a part hide nothing.
_ENOUGH_REFUSED = 6
_STAYS = "made by this run, and no operation takes it away"
#: Statuses that a gateway itself sends when it wants a login, or has too many calls.
_OF_WHO_STANDS_IN_FRONT = frozenset({401, 407, 429})
#: For how many seconds at most something else may answer instead of the target, and how often that is checked.
_LONGEST_OUTAGE = 20.0
_PAUSES, _PAUSE_SECONDS = 4, 0.25
#: For how many seconds a call is repeated after another one was repeated in vain.
_SHORT_WAIT_SECONDS = 2.0


def put_back(
    content: Content,
    profile: Profile,
    is_over: Callable[[], bool] = lambda: False,
    hand_over: Callable[[Callable[[], None]], None] = lambda _: None,
) -> tuple[str, ...]:
    """Restore what a ledger lists, settle the ledger, and return what is left, each with the reason.

    It reads everything, restores what differs, and reads again, so it may be repeated. `hand_over` receives a function
    that ends all waiting between calls, for whoever makes `is_over` true. Raise TargetGoneError when the
    target does not answer, or when something else answers in its place for longer than calls are retried; raise
    KeyboardInterrupt as soon as `is_over`. The ledger stays open in both cases.
    """
    troubles: list[Exchange] = []

    def hear(exchange: Exchange) -> None:
        if is_over():
            raise KeyboardInterrupt
        is_answered = not _is_in_its_place(exchange)
        if not is_answered:
            troubles.append(exchange)
        # A call has waited in vain: until one is answered, no other one waits as long, or a run ends after minutes.
        client.retries.call_seconds = usual if is_answered else min(usual, _SHORT_WAIT_SECONDS)

    usual = profile.retries.call_seconds
    with Client(profile.client_settings(_READS_AT_ONCE), beside=True) as client:
        client.test = "putting back"
        client.on_exchange(hear)
        hand_over(client.pace.end)
        restoring = _Restoring(content, States(profile, client))
        give_up = time.monotonic() + min(_LONGEST_OUTAGE, profile.retries.call_seconds)
        while True:
            left, why = restoring.all_rounds(troubles)
            unanswered = any(each.status is None for each in troubles)  # these calls were retried long enough
            if why is None or unanswered or time.monotonic() > give_up:
                break
            _wait(is_over)
        if why is not None:
            raise TargetGoneError(why)
        troubles.clear()
        if restoring.remove_unlisted():
            left, why = restoring.all_rounds(troubles)
        if why is not None:
            raise TargetGoneError(why)
        still_there = (*restoring.unread(), *_without_groups(content, profile, client))
        if still_there and troubles:
            raise TargetGoneError(_told(troubles[0]))
    left += (*dict.fromkeys(content.stays), *still_there)
    content.settle(left)
    return left


def _is_in_its_place(exchange: Exchange) -> bool:
    """Tell whether no answer came, or one that may come from in front of the service, such as a login page."""
    is_no_answer = exchange.status is None or exchange.status in _OF_WHO_STANDS_IN_FRONT
    return is_no_answer or exchange.is_of_gateway or may_be_in_front(exchange)


def _told(exchange: Exchange) -> str:
    came = exchange.problem or f"status {exchange.status}"
    return f"{exchange.call.label} {'has no answer' if exchange.status is None else 'is not answered'}: {came}"


def _wait(is_over: Callable[[], bool]) -> None:
    """Wait before everything is read again."""
    for _ in range(_PAUSES):
        if is_over():
            raise KeyboardInterrupt
        time.sleep(_PAUSE_SECONDS)


def _without_groups(content: Content, profile: Profile, client: Client) -> Iterator[str]:
    """Remove the groups that the run made for itself, with all contents; yield those that stay, with the reason."""
    calls = Calls(by_http(client), Made())
    for group in reversed(content.groups):  # a group in another one was made later
        try:
            problem = removed(calls, profile, group)
        except TargetError as error:
            raise TargetGoneError(str(error)) from error
        if problem:
            yield f"group {group.path}, which this run made: {problem}"


class _Restoring:
    def __init__(self, content: Content, states: States) -> None:
        self._states = states
        self._made = content.makes
        self._numbered = content.made
        self._was: list[tuple[Thing, str, Values]] = []
        contract = Contract.load()
        for restored in contract.restoring.parts:
            for line in content.was:
                if line["was"] == restored.part:
                    spot, state = content.state(line)
                    thing = Thing(contract.side_effects.parts[restored.part], restored, spot)
                    self._was.append((thing, line["by"], state))
        self.problems: dict[tuple[str, Any], str] = {}
        """Why something could not be restored."""
        self._refused: Counter[str] = Counter()
        """By part, how many deletions of what no list shows were refused."""
        self._known: dict[tuple[str, str], tuple[str, Values] | None] = {}
        """What was read since the last write, which may change anything; by thing and first reader."""

    def all_rounds(self, troubles: list[Exchange]) -> tuple[tuple[str, ...], str | None]:
        """Restore what differs; return what is left, and what prevented reading or restoring, if anything did.

        `troubles` collects exchanges without an answer of the target.
        """
        self._known.clear()
        for _ in range(_MOST_ROUNDS):
            self.problems.clear()
            if troubles:
                self._known.clear()
                troubles.clear()
            if not self._round() and not troubles and not self._shows_more():
                break
        left, hidden = tuple(self._left()), [read is None for read in self._all_now()]
        writes = [each for each in troubles if each.call.method != "GET"]
        hindering = [*(each for each in troubles if each.status is None), *(troubles if any(hidden) else ())]
        hindering += writes if left else []
        if hindering:
            return left, _told(hindering[0])
        return left, "nothing that it names can be read any more" if hidden and all(hidden) else None

    def _round(self) -> bool:
        """Restore what differs; return whether anything differed and could be restored.

        Side effects of a write are left to the next round.
        """
        moved = False
        for (thing, by, was), first in zip(self._was, self._all_now(), strict=True):
            # Only what differed is read again here, because reading everything from a distant target would take
            # minutes.
            read = self._now(thing, by) if first is not None and _differing(was, first[1]) else None
            for key, problem in self._back(thing, by, was, read[1]) if read else ():
                if problem is None:
                    moved = True
                else:
                    self.problems[str(thing), key] = problem
        return moved

    def _shows_more(self) -> bool:
        """Read again what could not be read while other things could; tell whether some of it can be read now.

        Something in front of the service may have gone away while everything was read.
        """
        unread = [key for key, read in self._known.items() if read is None]
        if len(unread) == len(self._known):
            return False
        for key in unread:
            del self._known[key]
        return sum(read is None for read in self._all_now()) < len(unread)

    def _left(self) -> Iterator[str]:
        """Yield what still differs, in words; entries of a list with the same reason are combined."""
        for (thing, _, was), read in zip(self._was, self._all_now(), strict=True):
            if read is None:
                yield f"{thing}: it cannot be read any more"
                continue
            found: dict[str, list[str]] = {}
            for key in _differing(was, read[1]):
                why = self.problems.get((str(thing), key), "it was put back, but changed again")
                found.setdefault(why, []).append("" if key == RECORD else _named(key, read[1].get(key)))
            for why, names in found.items():
                shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else "")
                yield f"{thing}{f' ({shown})' if shown else ''}: {why}"

    def unread(self) -> Iterator[str]:
        """Where the old state could not be read, delete by number what this run made; yield what is left."""
        contract, read = Contract.load(), {(thing.part.name, thing.spot) for thing, _, _ in self._was}
        left: dict[tuple[str, str], list[str]] = {}
        for restored in contract.restoring.parts:
            for part, spot, entry in sorted(self._numbered, key=str):
                if part != restored.part or (part, spot) in read:
                    continue
                thing = Thing(contract.side_effects.parts[part], restored, spot)
                why: str | None = _STAYS
                if restored.remove is not None:
                    why = self._states.write(thing, restored.remove, None, entry=entry)
                if why is not None:  # also for a 404, because a service without this operation answers that too
                    left.setdefault((str(thing), why), []).append(str(entry))
        yield from (f"{thing} ({', '.join(entries)}): {why}" for (thing, why), entries in left.items())

    def remove_unlisted(self) -> bool:
        """Delete what this run made and no list shows: a list that is not built yet hides what is there all the same.

        Rules that were made for certain are deleted by number, unless their deletion was served. Of other entries only
        those of lists that show nothing are tried, and only a few if none of them is there: the list is right then. A
        list may also break on what it holds: then it can be read again when that is gone. Return whether anything was
        removed of lists that could not be read.
        """
        is_worth_reading = False
        for (thing, by, was), read in zip(self._was, self._all_now(), strict=True):
            remove, now, is_named = thing.restored.remove, read[1] if read else {}, thing.restored.named
            if remove is None or not (read or is_named) or thing.restored.by_caller or thing.restored.read_each:
                continue
            known = self._numbered if is_named else self._made if not was and not now else frozenset()
            own = (entry for part, spot, entry in known if (part, spot) == (thing.part.name, thing.spot))
            hidden = sorted({*own} - {str(key) for key in now}, key=str)
            refused = self._refused[thing.part.name]
            for entry in hidden if is_named else hidden[: max(0, _ENOUGH_REFUSED - refused)]:
                problem = self._states.write(thing, remove, None, entry=entry, first=by)
                self._refused[thing.part.name] += problem is not None
                is_worth_reading |= read is None and problem is None
                if read is None and self._refused[thing.part.name] >= refused + _ENOUGH_REFUSED:
                    break
        return is_worth_reading

    def _all_now(self) -> list[tuple[str, Values] | None]:
        with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
            return list(pool.map(lambda entry: self._now(entry[0], entry[1]), self._was))

    def _now(self, thing: Thing, by: str) -> tuple[str, Values] | None:
        key = (str(thing), by)
        if key not in self._known:
            self._known[key] = self._states.read(thing, by)
        return self._known[key]

    def _write(self, thing: Thing, by: str, name: str, body: Mapping[str, Any] | None, entry: Any = None) -> str | None:
        self._known.clear()
        return self._states.write(thing, name, body, entry=entry, first=by)

    def _back(self, thing: Thing, by: str, was: Values, now: Values) -> Iterator[tuple[Any, str | None]]:
        """Restore each entry that differs; yield it with the reason if that was not possible."""
        differing = _differing(was, now)
        needs = thing.restored.needs
        if differing and needs is not None:
            self._write(thing, by, needs[0], needs[1])
        for key in differing:
            if key not in was:
                yield key, self._take_away(thing, by, key, now[key])
            elif key not in now:
                yield key, self._bring_back(thing, by, key, was[key])
            else:
                yield key, self._change(thing, by, key, was[key], now[key])

    def _take_away(self, thing: Thing, by: str, key: Any, values: dict[str, Any]) -> str | None:
        restored = thing.restored
        if not restored.by_caller and not self._is_ours(thing, key, values):
            return self._whose(thing, values)
        if restored.remove is None:
            return _STAYS
        return self._write(thing, by, restored.remove, None, key)

    def _is_ours(self, thing: Thing, key: Any, values: dict[str, Any]) -> bool:
        where = (thing.part.name, thing.spot)
        return any((*where, known) in self._made for known in (str(key), _name_in(thing, values)) if known)

    def _whose(self, thing: Thing, values: dict[str, Any]) -> str:
        """Say where an entry comes from that this run did not make here: a project may also list rules of its group."""
        name = _name_in(thing, values)
        elsewhere = [f"{part} of {spot}" for part, spot, known in self._made if name and known == name]
        if elsewhere:
            return f"this run made it in {min(elsewhere)}, and it shows here as well"
        return "it appeared meanwhile, and this run did not make it"

    def _bring_back(self, thing: Thing, by: str, key: Any, values: dict[str, Any]) -> str | None:
        if thing.restored.add is None:
            return "no operation brings it back"
        if thing.restored.remove is None:  # each new entry would stay
            return "the service took it away itself, and no operation does"
        return self._write(thing, by, thing.restored.add, self._required(thing) | self._whole(thing, key, values), key)

    def _required(self, thing: Thing) -> dict[str, Any]:
        """Return zero for each number that a creation requires: a service may leave zeros out of what it shows."""
        operation = self._states.operation(thing.restored.add or "")
        return {
            entry.name: 0
            for entry in (operation.parameters if operation else ())
            if entry.required and entry.place == "body" and entry.schema.get("type") == "integer"
        }

    def _change(self, thing: Thing, by: str, key: Any, was: dict[str, Any], now: dict[str, Any]) -> str | None:
        restored = thing.restored
        name = restored.set or restored.change
        if name is None:
            return "no operation changes it"
        was = {**was, **_left_out(was, now)}
        sent = {parameter: value for parameter, value in was.items() if now.get(parameter) != value}
        if restored.read_each is not None:
            sent = self._whole(thing, key, was)
        sent |= {parameter: was[parameter] for parameter in restored.always if parameter in was}
        return self._write(thing, by, name, sent, key)

    def _whole(self, thing: Thing, key: Any, values: dict[str, Any]) -> dict[str, Any]:
        """Add values that the service does not show but the profile knows, such as secrets, to those of an entry."""
        entries = (entry for entries in self._states.profile.fixtures.values() for entry in entries)
        known = next((entry.get("settings") for entry in entries if entry.get("slug") == key), None)
        return {**(known or {}), **values} if thing.restored.read_each else values


def _differing(was: Values, now: Values) -> list[Any]:
    """Return the keys of all entries that differ; an entry that came back with another number does not."""
    come = [key for key in now if key not in was]
    found = []
    for key, values in was.items():
        if key in now:
            found += [] if _is(now[key], values) else [key]
        else:
            same = next((other for other in come if len(values) > 1 and _is(now[other], values)), None)
            if same is None:
                found.append(key)
            else:
                come.remove(same)
    return found + come


def _is(now: dict[str, Any], was: dict[str, Any]) -> bool:
    return not _left_out(was, now) and all(now.get(parameter) == value for parameter, value in was.items())


def _left_out(was: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return what was false, zero or empty, as far as that shows: it was left out before, and is there now.

    Of texts nobody can tell, because a ledger does not keep those that contain a secret.
    """
    come = {name: value for name, value in now.items() if name not in was and value}
    return {name: type(value)() for name, value in come.items() if isinstance(value, bool | int | list)}


def _name_in(thing: Thing, values: dict[str, Any]) -> str:
    return str(values.get(thing.restored.named or "", "")).strip()


def _named(key: Any, values: dict[str, Any] | None) -> str:
    name = (values or {}).get("name")
    return f"{key} {name[:_LONGEST_NAME]!r}" if isinstance(name, str) else str(key)
