"""Checks recorded traffic of clients against the contract: who still uses deprecated or removed things.

Each entry is checked by itself: memory use does not grow with the file, see `har`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from conformance.contract import Change, ChangeKind, Contract, Operation, Version
from conformance.contract.bundle import resolve
from conformance.http.bodies import json_in, records_of
from conformance.results.grouping import grouped
from conformance.schema.response_validator import ResponseValidator, pattern_of
from conformance.versions.har import Recorded, har_entries, pieces, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.contract.changes import Traffic
    from conformance.http.exchange import Exchange
    from conformance.schema.response_validator import Finding

_EXAMPLES = 3


class Use(StrEnum):
    """The problem with something that recorded traffic uses."""

    REMOVED = "removed"
    NOT_YET = "not yet introduced"
    DEPRECATED = "deprecated"
    CHANGED = "changed"
    VIOLATION = "violation"
    """An answer that the contract rules out."""
    RENAMED = "older name"
    """Works, but has a newer name: a hint."""
    ANNOUNCED = "removal announced"
    """Works until a release that is not named yet: a hint."""


#: Hints, not findings: it works, and no version ends it.
HINTS = frozenset({Use.RENAMED, Use.ANNOUNCED})


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that the traffic shows, and how often."""

    use: Use
    what: str
    """The event in the call, such as `GET /projects/{id}/approvals answers with approvers`."""
    detail: str
    """The kind of problem."""
    replacement: str | None = None
    change: str | None = None
    """Id of the item of the version table."""
    requirement: str | None = None
    is_sent_by_service: bool = False
    """Whether it is in an answer. Clients are not to blame for that, and services may send more than specified."""

    @property
    def is_hint(self) -> bool:
        """Whether it is only a hint and no finding."""
        return self.use in HINTS or (self.is_sent_by_service and self.use is not Use.VIOLATION)


@dataclass
class TrafficReport:
    """The results of a file of recorded traffic."""

    as_of: str
    entries: int = 0
    """Entries in the file."""
    calls: int = 0
    """Number of entries that call an operation of the contract."""
    judged: int = 0
    """Number of entries whose answer could be validated."""
    unreadable: int = 0
    """Number of entries that are no calls: without method, address or answer."""
    too_large: int = 0
    """Number of entries with a part too large to be checked."""
    found: Counter[Found] = field(default_factory=Counter)
    """With the number of entries that show it; in the end the most serious first and hints last."""
    examples: dict[Found, tuple[int, ...]] = field(default_factory=dict)
    """The first entries that show it, counted from 1."""

    @property
    def findings(self) -> tuple[Found, ...]:
        """Everything that is more than a hint."""
        return tuple(found for found in self.found if not found.is_hint)

    def add(self, found: Found) -> None:
        """Count what the latest entry shows."""
        self.found[found] += 1
        self.examples[found] = (*self.examples.get(found, ()), self.entries)[:_EXAMPLES]


class TrafficLint:
    """Checks recorded calls against the contract of one version, or of every version when none is given."""

    def __init__(self, contract: Contract, version: Version | None) -> None:
        """Prepare for traffic with a service of this version."""
        self.contract = contract
        self.version = version
        self._all = ResponseValidator(contract, None)
        self._judge = ResponseValidator(contract, version)
        self._known = {operation.id: operation for operation in self._judge.operations}
        self._by_place = grouped((place, change) for change in contract.changes for place in change.places)

    def read(self, file: Path) -> TrafficReport:
        """Read a HAR file; raise UsageError when it cannot be read, is no HAR file, or ends in the middle."""
        report = TrafficReport(str(self.version or "every version"))
        for entry in har_entries(file):
            report.entries += 1
            report.too_large += entry.is_cut
            call = recorded(entry.parts)
            if call is None:
                report.unreadable += 1
            else:
                self._look_at(call, report)
        report.found = Counter(dict(sorted(report.found.items(), key=lambda pair: _order(pair[0]))))
        return report

    def _look_at(self, call: Recorded, report: TrafficReport) -> None:
        operation = self._all.operation_of(call.method, call.path) if call.path else None
        found = {*self._probed(call), *self._in_traffic(call)}
        if operation is None and not found:
            return
        report.calls += 1
        if operation is not None:
            found |= {*self._call(operation), *self._sent(operation, call), *self._shown(operation, call)}
            if call.has_answer and operation.id in self._known:
                report.judged += 1
                found |= set(self._violations(operation, call.exchange))
        for entry in found:
            report.add(entry)

    # -- the version table about a call ----------------------------------------------------------------------------

    def _call(self, operation: Operation) -> Iterator[Found]:
        yield from self._changes(operation.id, f"{operation.label} is called")
        newer = operation.alias_of and next(entry for entry in self._all.operations if entry.id == operation.alias_of)
        if newer:
            renamed = next((change for change in self._by_place.get(newer.id, ()) if self._in_effect(change)), None)
            if renamed is not None:
                detail = f"since {renamed.version} it has another name; both work"
                yield Found(Use.RENAMED, f"{operation.label} is called", detail, newer.label, renamed.id)

    def _sent(self, operation: Operation, call: Recorded) -> Iterator[Found]:
        body = call.body if isinstance(call.body, dict) else {}
        known = {parameter.name: parameter for parameter in operation.parameters}
        for name, value in {**call.query, **body}.items():
            place, what = f"{operation.id}.{name}", f"{operation.label} sends {name}"
            if name in known and known[name].schema.get("deprecated"):
                detail = f"it is deprecated at every version: {known[name].schema.get('description', '')}"
                yield Found(Use.DEPRECATED, what, detail)
            yield from self._changes(place, what)
            if isinstance(value, str):
                yield from self._changes(f"{place}={value}", f"{what} = {value}")

    def _shown(self, operation: Operation, call: Recorded) -> Iterator[Found]:
        """Yield the deprecated or removed fields of an answer; a field that does not exist yet is no problem."""
        exchange = call.exchange
        if not exchange.is_success or exchange.status is None:
            return
        response = operation.response_to(exchange.status)
        if response is None or response.schema is None:
            return
        for place in sorted(set(_fields(operation.document, response.schema, json_in(exchange.body)))):
            what = f"{operation.label} answers with {place.partition('.')[2]}"
            in_effect = [entry for entry in self._changes(place, what) if entry.use is not Use.NOT_YET]
            yield from (replace(entry, is_sent_by_service=True) for entry in in_effect)
            words = None if in_effect else self._deprecated(place)
            if words:
                yield Found(Use.DEPRECATED, what, f"it is deprecated: {words}", is_sent_by_service=True)

    def _deprecated(self, place: str) -> str | None:
        """Return what the contract says about a record's field that is deprecated at this version."""
        document = self.contract.at(self.version)
        record, _, name = place.partition(".")
        schema = resolve(document, document["components"]["schemas"].get(record, {}))
        node = resolve(document, schema.get("properties", {}).get(name, {}))
        return str(node.get("description", "")) if node.get("deprecated") else None

    def _probed(self, call: Recorded) -> Iterator[Found]:
        """Yield what the table says about calls that the specification names without describing them."""
        for change, path in self._probes:
            probe = change.probe
            if probe is None or probe.method != call.method or not pattern_of(path).fullmatch(call.path):
                continue
            label = f"{probe.method} {path}"
            if change.kind is ChangeKind.CHANGED and probe.field is None and probe.parameter != "page":
                continue
            if probe.parameter in call.query:
                yield from self._found(change, f"{label} sends {probe.parameter}")
            if probe.field is not None and call.exchange.is_success and _shows(call.exchange, probe.field):
                yield from self._found(change, f"{label} answers with {probe.field}", is_sent_by_service=True)

    @cached_property
    def _probes(self) -> list[tuple[Change, str]]:
        probed = [change for change in self.contract.changes if change.probe and not change.places]
        return [(change, urlsplit(change.probe.path).path) for change in probed if change.probe]

    def _in_traffic(self, call: Recorded) -> Iterator[Found]:
        """Yield what the table says about calls that are not in the contract, and that the suite never sends."""
        for change, traffic in self._traffic:
            path = pattern_of(traffic.path)
            fits = call.address.endswith(traffic.path) if traffic.is_outside else path.fullmatch(call.path)
            if traffic.method != call.method or not fits:
                continue
            label = f"{traffic.method} {traffic.path}"
            if traffic.is_empty:
                yield from self._empty(change, traffic, call, label)
            elif traffic.sends is not None and _sends(call, traffic.sends, traffic.value):
                value = f" = {traffic.value}" if traffic.value else ""
                yield from self._found(change, f"{label} sends {traffic.sends}{value}", or_planned=True)
            elif traffic.shows is not None and call.exchange.is_success and _shows(call.exchange, traffic.shows):
                yield from self._found(change, f"{label} answers with {traffic.shows}", is_sent_by_service=True)

    @cached_property
    def _traffic(self) -> list[tuple[Change, Traffic]]:
        return [(change, traffic) for change in self.contract.changes for traffic in change.traffic]

    def _empty(self, change: Change, traffic: Traffic, call: Recorded, label: str) -> Iterator[Found]:
        """Report a list that is empty where it must not be; a page after the last one may always be empty."""
        is_first = call.query.get("page", "1") == "1" and "page_token" not in call.query
        if not call.query.get(str(traffic.sends)) or not is_first or not call.has_answer:
            return
        if json_in(call.exchange.body) != [] or not self._in_effect(change):
            return
        what = f"{label} answers {call.exchange.status} with an empty list for one {traffic.sends}"
        for entry in self._found(change, what, is_sent_by_service=True):
            known = self.version is not None
            yield replace(entry, use=Use.VIOLATION, requirement=change.requirement) if known else entry

    def _changes(self, place: str, what: str) -> Iterator[Found]:
        for change in self._by_place.get(place, ()):
            yield from self._found(change, what)

    def _found(
        self, change: Change, what: str, *, is_sent_by_service: bool = False, or_planned: bool = False
    ) -> Iterator[Found]:
        """Yield a change that is in effect; with `or_planned`, also one announced before its row, as a hint."""
        use = _USES.get(change.kind)
        begins = change.kind in (ChangeKind.INTRODUCED, ChangeKind.RENAMED)
        if begins and self.version is not None and not self._in_effect(change):
            use = Use.NOT_YET
        elif or_planned and change.removal_planned == change.version and not self._in_effect(change):
            # The row only repeats an earlier announcement.
            detail = f"its removal is planned for {change.removal_planned}: {change.summary}"
            yield Found(Use.ANNOUNCED, what, detail, change.replacement, change.id)
            return
        elif use is None or (use is not Use.ANNOUNCED and not self._in_effect(change)):
            return
        planned = f", and its removal is planned for {change.removal_planned}" if change.removal_planned else ""
        since = f"{_WORDS[use]} {change.version}" if change.version else _WORDS[use]
        detail = f"{since}{planned}: {change.summary}"
        yield Found(use, what, detail, change.replacement, change.id, is_sent_by_service=is_sent_by_service)

    def _in_effect(self, change: Change) -> bool:
        return change.reached(self.version)

    # -- the contract about an answer ------------------------------------------------------------------------------

    def _violations(self, operation: Operation, exchange: Exchange) -> Iterator[Found]:
        known = self._known[operation.id]
        if exchange.is_success and exchange.status is not None and known.response_to(exchange.status) is None:
            documented = ", ".join(response.status for response in known.responses if response.is_success)
            detail = f"the status is {exchange.status}; documented are {documented}"
            yield self._violation(operation, detail, known.success.requirement)
        for finding in self._findings(exchange):
            if not finding.holds:
                where = "/".join("*" if part.isdigit() else part for part in finding.place.split("/"))
                yield self._violation(
                    operation, f"{finding.expected} is expected at {where or 'the answer'}", finding.requirement or None
                )

    def _violation(self, operation: Operation, detail: str, requirement: str | None) -> Found:
        what = f"{operation.label} has an answer that violates the contract"
        return Found(Use.VIOLATION, what, detail, requirement=requirement, is_sent_by_service=True)

    def _findings(self, exchange: Exchange) -> Sequence[Finding]:
        """Judge an answer piece by piece, up to the first one with a violation, because each violation needs memory."""
        findings: Sequence[Finding] = ()
        for body in pieces(exchange.body):
            findings = self._judge.findings(replace(exchange, body=body))
            if not all(finding.holds for finding in findings):
                break
        return findings


_USES: Mapping[ChangeKind, Use] = {
    ChangeKind.REMOVED: Use.REMOVED,
    ChangeKind.DEPRECATED: Use.DEPRECATED,
    ChangeKind.CHANGED: Use.CHANGED,
    ChangeKind.ANNOUNCED: Use.ANNOUNCED,
}
_WORDS: Mapping[Use, str] = {
    Use.REMOVED: "it was removed in",
    Use.DEPRECATED: "it is deprecated since",
    Use.CHANGED: "it changed in",
    Use.NOT_YET: "it is introduced only in",
    Use.ANNOUNCED: "it will be turned off in a release that is not named yet",
}


def _order(found: Found) -> tuple[bool, int, str, str, str]:
    """Put the most serious first, in an order that does not depend on that of discovery."""
    return (found.is_hint, _SERIOUS.index(found.use), found.what, found.detail, found.requirement or "")


_SERIOUS = list(Use)


# -- fields of an answer -----------------------------------------------------------------------------------------------


def _sends(call: Recorded, name: str, value: str | None) -> bool:
    body = call.body if isinstance(call.body, dict) else {}
    sent = [values[name] for values in (call.query, body) if name in values]
    return bool(sent) if value is None else value in sent


def _shows(exchange: Exchange, name: str) -> bool:
    return any(name in record for record in records_of(json_in(exchange.body)))


def _fields(document: dict[str, Any], schema: Any, value: Any, records: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield `Record.property` for every property that a value's records really have, by each name of the record."""
    if isinstance(schema, dict) and "$ref" in schema:
        records |= {str(schema["$ref"]).rpartition("/")[2]}
    node = resolve(document, schema)
    if not isinstance(node, dict):
        return
    for word in ("allOf", "anyOf", "oneOf"):
        for part in node.get(word, ()):
            yield from _fields(document, part, value, records)
    if isinstance(value, list) and "items" in node:
        for entry in value:
            yield from _fields(document, node["items"], entry)
    elif isinstance(value, dict):
        for name, child in node.get("properties", {}).items():
            if name in value:
                yield from (f"{record}.{name}" for record in records)
                yield from _fields(document, child, value[name])
