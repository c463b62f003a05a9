"""The world as it can be read: snapshots of projects, groups and merge requests, and what differs between two."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from conformance.contract import Contract
from conformance.contract.at_version import METHODS
from conformance.suite.arrange.request_examples import Prepared
from conformance.suite.context import Run, Unmet, current_run
from conformance.suite.expectations import PAGE_LENGTH, Caller, parsed
from conformance.suite.expectations.words import settles
from conformance.suite.shown_records import values_under
from conformance.target.spots import Spot, Spots, ordered, spot_of, value_at, where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.contract import Operation
    from conformance.contract.side_effects import Part, Where
    from conformance.http.exchange import Exchange
    from conformance.target import Fixture, Profile

_OURS = "conformance-"
_ABSENT: Any = object()

Entries = dict[Any, Any]


# -- where things lie --------------------------------------------------------------------------------------------------


def spot_in(call: Prepared) -> Spot | None:
    """Return what a call is about; None where it names no project or group."""
    values = call.path_values
    level = {"projects": "project", "groups": "group"}.get(call.operation.path.split("/")[1])
    if level is None or "id" not in values:
        return None
    iid = values.get("merge_request_iid")
    return Spot(level, values["id"]) if iid is None else Spot("merge request", values["id"], iid)


# -- what is read ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of one entry of a part."""

    entry: Any
    before: Any
    """What was kept of it; None when it was not there."""
    after: Any

    def __str__(self) -> str:
        """Say it with the fields that differ."""
        if self.before is None or self.after is None:
            return f"{self.entry!r} has {'come' if self.before is None else 'gone'}"
        if not isinstance(self.before, dict):
            return f"{self.entry!r} is {json.dumps(self.after)} after {json.dumps(self.before)}"
        names = [name for name, value in self.before.items() if self.after.get(name) != value]
        told = (f"{name} = {json.dumps(self.after.get(name))} after {json.dumps(self.before[name])}" for name in names)
        return f"{self.entry!r}: {', '.join(told)}"


@dataclass(frozen=True, slots=True)
class Thing:
    """A part of one project, group or merge request."""

    part: Part
    spot: Spot
    slug: str | None = None
    """Of one integration."""

    def __str__(self) -> str:
        """Name it."""
        return f"{self.part.name} of {self.spot}" + (f", {self.slug}" if self.slug else "")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a thing, reduced to what identifies it and what must stay."""

    entries: Entries
    length: int | None
    """How many entries were on the page; None of what has no pages."""
    reader: Caller
    operation: Operation
    path: str

    @property
    def may_hide_more(self) -> bool:
        """Whether there may be entries behind those that were read."""
        return self.length is not None


def differences(before: Reading, after: Reading) -> list[Difference]:
    """
    Return what differs, entry by entry, whatever the order.

    What is only in the later reading counts if the earlier one cannot have hidden it: the page held fewer then.
    """
    gone_or_changed = [
        Difference(entry, value, after.entries.get(entry))
        for entry, value in before.entries.items()
        if after.entries.get(entry, _ABSENT) != value
    ]
    was_whole = before.length is None or before.length < min(after.length or 0, PAGE_LENGTH)
    come = [
        Difference(entry, None, value)
        for entry, value in after.entries.items()
        if was_whole and entry not in before.entries
    ]
    return gone_or_changed + come


class _LastLook:
    """What was read of the world last, as far as no call since may have moved it by the table of the contract."""

    def __init__(self, run: Run) -> None:
        self.readings: dict[Thing, Reading] = {}
        self._profile, self._spots = run.profile, Spots(run.profile)
        self._operation_of = run.validator.operation_of
        run.client.on_exchange(self._see)

    @classmethod
    def of(cls, run: Run) -> _LastLook:
        """Return that of a run; nothing of it counts for other fixtures, or where time changes what is read."""
        found = _LAST_LOOKS.get(run)
        if found is None:
            found = _LAST_LOOKS[run] = cls(run)
        if found._profile is not run.profile or run.profile.limits.settle_seconds:
            found._profile, found._spots = run.profile, Spots(run.profile)
            found.readings.clear()
        return found

    def _see(self, exchange: Exchange) -> None:
        call, table = exchange.call, Contract.load().side_effects
        if call.method in ("GET", "HEAD"):
            return
        operation = self._operation_of(call.method, call.path)
        about = self._spots.called(call.path)
        if operation is None or about is None or exchange.status is None:
            self.readings.clear()
            return
        for thing in list(self.readings):
            if table.may_move(operation.id, thing.part.name, where(self._profile, thing.spot, about)):
                self.readings.pop(thing, None)  # another call that is under way may have moved it as well


_LAST_LOOKS: WeakKeyDictionary[Run, _LastLook] = WeakKeyDictionary()


class WorldSnapshot:
    """All that can be read of the world, as it was at one time."""

    def __init__(self, readings: Mapping[Thing, Reading]) -> None:
        """Hold readings; see `taken`."""
        self.readings = readings

    @classmethod
    def taken(cls, *, afresh: bool, area: str = "") -> WorldSnapshot:
        """
        Read every part of the world once, of the parts of an area also what is near.

        Unless `afresh`, what an earlier look showed and no call may have moved since is not read again. What the
        profile does not name, the target does not declare and nobody is served is left out. A target that takes time
        to show what was written is given that time first.
        """
        run = current_run()
        _let_settle()
        known = {} if afresh else cls.known().readings
        readings: dict[Thing, Reading] = {}
        for part in Contract.load().side_effects.parts.values():
            if part.feature is not None and not run.profile.declares(part.feature):
                continue
            for thing in _things(part, run.profile, readings, area):
                found = None if thing in readings else known.get(thing) or _first_reading(thing)
                if found is not None:
                    readings[thing] = found
        return cls(readings)

    @classmethod
    def known(cls) -> WorldSnapshot:
        """Return what earlier looks showed and no call may have moved since."""
        return cls(dict(_LastLook.of(current_run()).readings))

    def renewed(self, *, about: Prepared) -> WorldSnapshot:
        """Read again what the suite may have changed since, while it made a call right."""
        table, profile, spot = Contract.load().side_effects, current_run().profile, spot_in(about)
        changed = [
            thing
            for thing in self.readings
            if table.is_prepared(about.operation.id, thing.part.name, where(profile, thing.spot, spot))
        ]
        if changed:
            _let_settle()
        known = self.known().readings
        again = {thing: known.get(thing) or _again(thing, self.readings[thing]) for thing in changed}
        kept = {thing: again.get(thing, reading) for thing, reading in self.readings.items()}
        return WorldSnapshot({thing: reading for thing, reading in kept.items() if reading is not None})

    def holds_again(self) -> None:
        """Say that all that was changed since has been put back, so that the next look need not read it again."""
        last, table = _LastLook.of(current_run()), Contract.load().restoring
        stays = {restored.part for restored in table.parts if restored.add and restored.remove is None}
        for thing, reading in self.readings.items():
            if thing.part.name not in stays:
                last.readings.setdefault(thing, reading)

    def of_area(self, area: str) -> WorldSnapshot:
        """Return those parts alone that operations of an area read."""
        own = {
            thing: reading
            for thing, reading in self.readings.items()
            if any(operation.area == area for operation in _reading(thing.part))
        }
        return WorldSnapshot(own)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read that could be lost."""
        return not any(reading.entries for reading in self.readings.values())

    def changes(self, may: Callable[[Thing, Difference], bool]) -> Iterator[tuple[Thing, list[Difference]]]:
        """
        Read everything again and yield for each thing what has changed and may not; an empty list where nothing has.

        What seems to have changed is read once more, whole: only what is steady counts. What can no longer be read
        is left out.
        """
        for thing, before in self.readings.items():
            found = self._forbidden(thing, _again(thing, before), may)
            if found:
                found = self._steady(thing, before, may)
            if found is not None:
                yield thing, found

    def _steady(
        self, thing: Thing, before: Reading, may: Callable[[Thing, Difference], bool]
    ) -> list[Difference] | None:
        """Return what has changed of a thing and may not once it is read whole, and the target had time to settle."""

        def found() -> list[Difference] | None:
            return self._forbidden(thing, _whole(thing, before), may)

        first = found()
        if first and current_run().profile.limits.settle_seconds:
            settles(lambda: not found())
            return found()
        return first

    def _forbidden(
        self, thing: Thing, after: Reading | None, may: Callable[[Thing, Difference], bool]
    ) -> list[Difference] | None:
        if after is None:
            return None
        return [change for change in differences(self.readings[thing], after) if not may(thing, change)]


def _let_settle() -> None:
    """Give a target that takes time to show what was written that time."""
    if current_run().profile.limits.settle_seconds:
        settles(lambda: False)


def _things(part: Part, profile: Profile, readings: Mapping[Thing, Reading], area: str) -> Iterator[Thing]:
    is_own = any(operation.area == area for operation in _reading(part))
    for name in (*part.of, *(part.near if is_own else ())):
        spot = spot_of(profile, name)
        if spot is None or spot.number is None:
            continue
        if part.each_of is None:
            yield Thing(part, spot)
            continue
        listed = [
            reading for thing, reading in readings.items() if (thing.part.name, thing.spot) == (part.each_of, spot)
        ]
        for slug in (entry for reading in listed for entry in reading.entries):
            if _named_by_profile(profile, slug):
                yield Thing(part, spot, slug)


def _first_reading(thing: Thing) -> Reading | None:
    """Read a thing as the first actor who is served, by its operation or an older name of that."""
    run = current_run()
    readers = [Caller(run, run.profile.actors[name]) for name in thing.part.readers if name in run.profile.actors]
    for operation in _reading(thing.part):
        if operation.feature is not None and not run.profile.declares(operation.feature):
            continue
        values = {"id": thing.spot.number, "merge_request_iid": thing.spot.iid, "integration_slug": thing.slug}
        named = {parameter.name: values[parameter.name] for parameter in operation.path_parameters}
        path = Prepared(operation, named).path
        for reader in readers:
            found = _read(thing, reader, operation, path)
            if found is not None:
                return found
    return None


def _reading(part: Part) -> Sequence[Operation]:
    known = current_run().validator.operations
    return [one for name in ("id", "alias_of") for one in known if getattr(one, name) == part.operation]


def _read(thing: Thing, reader: Caller, operation: Operation, path: str) -> Reading | None:
    is_list = thing.part.by is not None and thing.part.within is None
    # A list without stated pages may be paged all the same.
    answer = reader.get(path, page=1, per_page=PAGE_LENGTH) if is_list else reader.get(path)
    if not answer.is_served:
        return None
    try:
        body = parsed(answer.exchange.body)
    except (ValueError, RecursionError):
        return None
    entries = _entries(thing, body)
    if entries is None:
        return None
    found = Reading(entries, len(body) if is_list else None, reader, operation, path)
    _LastLook.of(current_run()).readings[thing] = found
    return found


def _again(thing: Thing, before: Reading) -> Reading | None:
    return _read(thing, before.reader, before.operation, before.path)


def _whole(thing: Thing, before: Reading) -> Reading | None:
    """Read a thing once more, a list with all of its pages."""
    page = _again(thing, before)
    if page is None or not page.may_hide_more:
        return page
    try:
        entries = _entries(thing, before.reader.list(before.path).entries)
    except Unmet:
        return None
    return None if entries is None else Reading(entries, page.length, page.reader, page.operation, page.path)


# -- what is kept ------------------------------------------------------------------------------------------------------


def _entries(thing: Thing, body: Any) -> Entries | None:
    """Return what is kept of an answer; None where it is not what is documented, which is for other tests to find."""
    part = thing.part
    if thing.slug is not None:
        names = _named_by_profile(current_run().profile, thing.slug)
        shown = {name: ordered(values_under(name, body)) for name in names}
        return {thing.slug: {name: values for name, values in shown.items() if values}}
    if part.within is not None:
        body = body.get(part.within) if isinstance(body, dict) else None
    if part.by is None:
        fields = {name: value_at(body, name) for name in part.keeps} if isinstance(body, dict) else {}
        return {name: value for name, value in fields.items() if value is not None} or None
    if not isinstance(body, list):
        return None
    found = {
        _hashable(value_at(entry, part.by)): {name: value_at(entry, name) for name in part.keeps} for entry in body
    }
    return None if None in found else found


def _hashable(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else None


def _named_by_profile(profile: Profile, slug: Any) -> list[str]:
    """Return the settings and events of an integration that the profile knows, and that are shown again."""
    entries = (entry for entries in profile.fixtures.values() for entry in entries if entry.get("slug") == slug)
    known: Fixture | None = next(entries, None)
    if known is None:
        return []
    hidden = set(known.get("never_shown") or ())
    optional = known.get("distinctive_name")
    names = [*(known.get("settings") or ()), *(known.get("events") or ()), *([optional] if optional else [])]
    return [name for name in dict.fromkeys(names) if name not in hidden]


# -- what may change ---------------------------------------------------------------------------------------------------


def requirements_that_something_stays(operation: Operation) -> frozenset[str]:
    """Return all requirements that something stays as it was when an operation is called."""
    return Contract.load().side_effects.requirements(operation.id, operation.area)


def is_second_name(operation: Operation) -> bool:
    """Tell whether an operation is another one by its older name, where the version has both names."""
    items = operation.document["paths"].values()
    known = {item[method]["operationId"] for item in items for method in METHODS if method in item}
    return operation.alias_of is not None and operation.alias_of in known


@dataclass(frozen=True)
class Permission:
    """What a call may change of a world, by the table of the contract."""

    profile: Profile
    call: Prepared
    caller: Caller
    before: WorldSnapshot

    def where(self, thing: Thing) -> Where:
        """Tell how a thing lies to what the call is about."""
        return where(self.profile, thing.spot, spot_in(self.call))

    def requirement(self, thing: Thing, declared: frozenset[str]) -> str:
        """Return the requirement that a thing stays; the one for all else where a test does not declare it."""
        operation, table = self.call.operation, Contract.load().side_effects
        found = table.requirement(operation.id, operation.area, thing.part.name, self.where(thing))
        return found if found in declared else table.rest[operation.area]

    def __call__(self, thing: Thing, change: Difference) -> bool:
        """Tell whether the call may change a thing so."""
        table = Contract.load().side_effects
        moves = table.may_move(self.call.operation.id, thing.part.name, self.where(thing))
        return any(not move.entries or any(self._names(name, thing, change) for name in move.entries) for move in moves)

    def _names(self, name: str, thing: Thing, change: Difference) -> bool:
        """Tell whether an entry is one that is called so in the table."""
        said = change.before or change.after or {}
        body = self.call.body if isinstance(self.call.body, dict) else {}
        number = self.caller.actor.id if self.caller.actor else None
        named: dict[str, Callable[[], bool]] = {
            "new": lambda: change.before is None,
            "itself": lambda: bool(change.entry == thing.spot.number),
            "caller": lambda: number is None or change.entry == number,
            "any_approver": lambda: "any_approver" in ((change.before or {}).get("rule_type"), said.get("rule_type")),
            "inherited": lambda: not str(said.get("name")).startswith(_OURS) or said.get("name") in self._inherited(),
        }
        if name in named:
            return named[name]()
        return bool(change.entry == self.call.path_values.get(name, body.get(name)))

    def _inherited(self) -> set[Any]:
        """Return the names of the rules of projects."""
        lists = [reading for thing, reading in self.before.readings.items() if thing.part.name == "project-rules"]
        return {rule.get("name") for reading in lists for rule in reading.entries.values()}
