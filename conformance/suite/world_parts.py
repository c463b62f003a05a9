"""The parts of the world that can be read: what is kept of each, and the differences between two readings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.http.bodies import ABSENT
from conformance.http.exchange import READING
from conformance.results.text import as_json
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import LONGEST_PAGE, Caller
from conformance.suite.per_run import PerRun
from conformance.suite.shown_records import values_under
from conformance.suite.steady import of_the_contract
from conformance.target.spots import Spot, Spots, ordered, spot_of, value_at, where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.contract import Operation
    from conformance.contract.side_effects import Part
    from conformance.http.exchange import Exchange
    from conformance.target import Fixture, Profile

#: The kept part of an answer, by the identity of a list entry or by the field of a record.
Entries = dict[Any, Any]


@dataclass(frozen=True, slots=True)
class WorldPart:
    """A part of one project, group or merge request, such as its rules or its settings."""

    kind: Part
    """The entry of the contract's table for all such parts."""
    spot: Spot
    slug: str | None = None
    """The slug, if the part is of one integration."""

    def __str__(self) -> str:
        """Name it."""
        return f"{self.kind.name} of {self.spot}" + (f", {self.slug}" if self.slug else "")


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a part, reduced to what identifies it and what must stay."""

    entries: Entries
    length: int | None
    """Number of entries on the page; None without pages."""
    reader: Caller
    operation: Operation
    path: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of one entry of a part."""

    entry: Any
    before: Any
    """The kept values of the entry; None when it did not exist."""
    after: Any

    def __str__(self) -> str:
        """Name the entry and the fields that differ."""
        if self.before is None or self.after is None:
            return f"{self.entry!r} has {'come' if self.before is None else 'gone'}"
        if not isinstance(self.before, dict):
            return f"{self.entry!r} is {as_json(self.after)} after {as_json(self.before)}"
        names = [name for name, value in self.before.items() if self.after.get(name) != value]
        told = (f"{name} = {as_json(self.after.get(name))} after {as_json(self.before[name])}" for name in names)
        return f"{self.entry!r}: {', '.join(told)}"


def differences_between(before: Reading, after: Reading) -> list[Difference]:
    """Return the differences, entry by entry, in any order.

    An entry that is only in the later reading counts only if the earlier one cannot have hidden it: a page as long as
    the later one would have had room for it.
    """
    gone_or_changed = [
        Difference(entry, value, after.entries.get(entry))
        for entry, value in before.entries.items()
        if after.entries.get(entry, ABSENT) != value
    ]
    was_whole = before.length is None or before.length < (after.length or 0)
    come = [
        Difference(entry, None, value)
        for entry, value in after.entries.items()
        if was_whole and entry not in before.entries
    ]
    return gone_or_changed + come


# -- reading -----------------------------------------------------------------------------------------------------------


def world_parts(kind: Part, profile: Profile, readings: Mapping[WorldPart, Reading], area: str) -> Iterator[WorldPart]:
    """Yield the parts of a kind that the profile names; for parts of an area also those near what it names."""
    is_own = any(operation.area == area for operation in operations_reading(kind))
    for name in (*kind.of, *(kind.near if is_own else ())):
        spot = spot_of(profile, name)
        if spot is None or spot.number is None:
            continue
        if kind.each_of is None:
            yield WorldPart(kind, spot)
            continue
        listed = [reading for part, reading in readings.items() if (part.kind.name, part.spot) == (kind.each_of, spot)]
        for slug in (entry for reading in listed for entry in reading.entries):
            if _named_by_profile(profile, slug):
                yield WorldPart(kind, spot, slug)


def first_reading(part: WorldPart) -> Reading | None:
    """Read a part as the first actor who is served, by its operation or an older name of it."""
    run = current_run()
    readers = [Caller(run, actor) for actor in run.profile.known_actors(*part.kind.readers)]
    for operation in operations_reading(part.kind):
        if operation.feature is not None and not run.profile.declares(operation.feature):
            continue
        values = {"id": part.spot.number, "merge_request_iid": part.spot.iid, "integration_slug": part.slug}
        named = {parameter.name: values[parameter.name] for parameter in operation.path_parameters}
        path = operation.path_with(named)
        for reader in readers:
            found = _read(part, reader, operation, path)
            if found is not None:
                return found
    return None


def operations_reading(kind: Part) -> Sequence[Operation]:
    """Return the operations that read parts of a kind: the one of the table, then those with its older names."""
    known = current_run().validator.operations
    return [one for name in ("id", "alias_of") for one in known if getattr(one, name) == kind.operation]


def _read(part: WorldPart, reader: Caller, operation: Operation, path: str) -> Reading | None:
    is_list = part.kind.by is not None and part.kind.within is None
    length = current_run().learnt.page_length
    # A list without stated pages may be paged anyway, or refuse a request for a page.
    answer = reader.get(path, page=1, per_page=length) if is_list else reader.get(path)
    if is_list and not operation.paginated and answer.exchange.is_refusal:
        answer = reader.get(path)
    body = answer.exchange.served_json
    if is_list and isinstance(body, list) and len(body) >= length:
        # What comes may be behind a full page.
        longer = reader.get(path, page=1, per_page=LONGEST_PAGE).exchange.served_json
        body = longer if isinstance(longer, list) else body
    entries = None if body is None else _entries(part, body)
    if entries is None:
        return None
    found = Reading(entries, len(body) if is_list else None, reader, operation, path)
    last_readings()[part] = found
    return found


def read_again(part: WorldPart, before: Reading) -> Reading | None:
    """Read a part as it was read before."""
    return _read(part, before.reader, before.operation, before.path)


def read_whole(part: WorldPart, before: Reading) -> Reading | None:
    """Read a part once more, a list with all of its pages."""
    page = read_again(part, before)
    if page is None or page.length is None:  # without pages, no entries are behind those that were read
        return page
    try:
        listed = before.reader.list if before.operation.paginated else before.reader.whole_list
        entries = _entries(part, listed(before.path).entries)
    except Unmet:
        return None
    return None if entries is None else Reading(entries, page.length, page.reader, page.operation, page.path)


# -- what is kept ------------------------------------------------------------------------------------------------------


def _entries(part: WorldPart, body: Any) -> Entries | None:
    """Return the kept part of an answer; None if the answer is not the documented one, which other tests report."""
    kind = part.kind
    if part.slug is not None:
        names = _named_by_profile(current_run().profile, part.slug)
        # A description of the setting may be shown with it, and hold what changes by itself.
        shown = {name: ordered(of_the_contract(values_under(name, body))) for name in names}
        return {part.slug: {name: values for name, values in shown.items() if values}}
    if kind.within is not None:
        body = body.get(kind.within) if isinstance(body, dict) else None
    if kind.by is None:
        fields = {name: value_at(body, name) for name in kind.keeps} if isinstance(body, dict) else {}
        return {name: value for name, value in fields.items() if value is not None} or None
    if not isinstance(body, list):
        return None
    found = {
        _hashable(value_at(entry, kind.by)): {name: value_at(entry, name) for name in kind.keeps} for entry in body
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


# -- readings that are still valid -------------------------------------------------------------------------------------


class LastReadings:
    """The last readings of the world, as far as no call since may have changed them by the table of the contract.

    Unlike the reads that a test need not repeat (KnownReads), these last from test to test, and a write removes only
    those that it may change.
    """

    def __init__(self) -> None:
        run = current_run()
        self.readings: dict[WorldPart, Reading] = {}
        self._profile, self._spots = run.profile, Spots(run.profile)
        self._operation_of = run.validator.operation_of
        run.client.on_exchange(self._see)

    def of(self, profile: Profile) -> dict[WorldPart, Reading]:
        """Return them if they are of these fixtures; forget them otherwise."""
        if self._profile is not profile or profile.limits.settle_seconds:
            self._profile, self._spots = profile, Spots(profile)
            self.readings.clear()
        return self.readings

    def _see(self, exchange: Exchange) -> None:
        call, table = exchange.call, Contract.load().side_effects
        if call.method in READING:
            return
        operation = self._operation_of(call.method, call.path)
        about = self._spots.called(call.path)
        if operation is None or about is None or exchange.status is None:
            self.readings.clear()
            return
        for part in list(self.readings):
            if table.may_move(operation.id, part.kind.name, where(self._profile, part.spot, about)):
                self.readings.pop(part, None)  # another concurrent call may have changed it as well


_LAST_READINGS = PerRun(LastReadings)


def last_readings() -> dict[WorldPart, Reading]:
    """Return those of the current run; they are not valid for other fixtures, or if time changes what is read."""
    return _LAST_READINGS().of(current_run().profile)
