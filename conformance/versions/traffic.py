"""
Recorded traffic of clients, held against the contract: who still uses what is deprecated or removed.

Each entry is looked at by itself: memory does not grow with the file, see `har`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from conformance.contract import Change, ChangeKind, Contract, Operation, Version
from conformance.contract.bundle import resolve
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.versions.har import har_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.schema.response_validator import Finding

_PREFIX = "/api/v4"
_EXAMPLES = 3
_NO_BODY = 204
_STATUSES = 1000
_LONGEST_ADDRESS = 2**16
#: How many violations there may be in what is held against the contract at once, and how many entries of a list are
#: looked at within a record that is too heavy alone.
_HEAVIEST = 20_000
_PROPERTIES = 20
_ENTRIES_OF_A_LIST = 100


class Use(StrEnum):
    """What is wrong, or old, about something that recorded traffic uses."""

    REMOVED = "removed"
    NOT_YET = "not yet introduced"
    DEPRECATED = "deprecated"
    CHANGED = "changed"
    VIOLATION = "violation"
    """An answer that the contract rules out."""
    RENAMED = "older name"
    """Works, and has a newer name: a hint."""
    ANNOUNCED = "removal announced"
    """Works, until a release that is not named yet: a hint."""


#: What is worth knowing and no finding: it works, and no version ends it.
HINTS = frozenset({Use.RENAMED, Use.ANNOUNCED})


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that traffic shows, however often."""

    use: Use
    what: str
    """The call, parameter, value or field, such as `GET /projects/{id}/approvals: approvers in the answer`."""
    detail: str
    replacement: str | None = None
    change: str | None = None
    """Id of the item of the version table."""
    requirement: str | None = None


@dataclass(frozen=True)
class TrafficReport:
    """What a file of recorded traffic shows."""

    as_of: str
    entries: int
    """Entries in the file."""
    calls: int
    """Those that call an operation of the contract."""
    judged: int
    """Those whose answer could be held against the contract."""
    unreadable: int
    """Entries that are no calls: without method, address or answer."""
    too_large: int
    """Entries of which a part was too large to be looked at."""
    found: Mapping[Found, int]
    """With the number of entries that show it, the most serious first."""
    examples: Mapping[Found, tuple[int, ...]]
    """The first entries that show it, counted from 1."""

    @property
    def findings(self) -> tuple[Found, ...]:
        """What is more than a hint."""
        return tuple(found for found in self.found if found.use not in HINTS)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One entry: the request, and the answer as far as it was recorded."""

    method: str
    path: str
    query: tuple[str, ...]
    """Names of the parameters in the query."""
    body: Any
    """What was sent, as JSON or as the fields of a form; None when nothing was."""
    exchange: Exchange
    has_answer: bool
    """Whether the answer was recorded with its body, so that it can be judged."""


class TrafficLint:
    """Holds recorded calls against the contract of one version, or of every version when none is given."""

    def __init__(self, contract: Contract, version: Version | None) -> None:
        """Prepare for traffic with a service of this version."""
        self.contract = contract
        self.version = version
        self._all = ResponseValidator(contract, None)
        self._judge = ResponseValidator(contract, version)
        self._known = {operation.id: operation for operation in self._judge.operations}
        self._by_place: dict[str, list[Change]] = {}
        for change in contract.changes:
            for place in change.places:
                self._by_place.setdefault(place, []).append(change)

    def read(self, file: Path) -> TrafficReport:
        """Read a HAR file; raise UsageError when it cannot be read, is no HAR file, or ends in the middle."""
        tally = _Tally()
        for entry in har_entries(file):
            tally.entries += 1
            tally.too_large += entry.is_cut
            recorded = _recorded(entry.parts)
            if recorded is None:
                tally.unreadable += 1
            elif recorded.path:
                self._look_at(recorded, tally)
        order = list(Use)
        found = sorted(tally.found.items(), key=lambda pair: (order.index(pair[0].use), pair[0].what))
        return TrafficReport(
            as_of=str(self.version or "every version"),
            entries=tally.entries,
            calls=tally.calls,
            judged=tally.judged,
            unreadable=tally.unreadable,
            too_large=tally.too_large,
            found=MappingProxyType(dict(found)),
            examples=MappingProxyType({key: tuple(places) for key, places in tally.examples.items()}),
        )

    def _look_at(self, recorded: _Recorded, tally: _Tally) -> None:
        operation = self._all.operation_of(recorded.method, recorded.path)
        probed = list(self._probed(recorded))
        if operation is None and not probed:
            return
        tally.calls += 1
        found = set(probed)
        if operation is not None:
            found |= {*self._call(operation), *self._sent(operation, recorded), *self._shown(operation, recorded)}
            if recorded.has_answer and operation.id in self._known:
                tally.judged += 1
                found |= set(self._violations(operation, recorded.exchange))
        for entry in found:
            tally.add(entry)

    # -- what the version table says of a call ---------------------------------------------------------------------

    def _call(self, operation: Operation) -> Iterator[Found]:
        yield from self._changes(operation.id, operation.label)
        newer = operation.alias_of and next(entry for entry in self._all.operations if entry.id == operation.alias_of)
        if newer:
            renamed = next((change for change in self._by_place.get(newer.id, ()) if self._in_effect(change)), None)
            if renamed is not None:
                detail = f"since {renamed.version} it has another name; both work"
                yield Found(Use.RENAMED, operation.label, detail, newer.label, renamed.id)

    def _sent(self, operation: Operation, recorded: _Recorded) -> Iterator[Found]:
        body = recorded.body if isinstance(recorded.body, dict) else {}
        known = {parameter.name: parameter for parameter in operation.parameters}
        for name in {*recorded.query, *body}:
            place = f"{operation.id}.{name}"
            if name in known and known[name].schema.get("deprecated"):
                detail = f"deprecated at every version: {known[name].schema.get('description', '')}"
                yield Found(Use.DEPRECATED, f"{operation.label}: parameter {name}", detail)
            yield from self._changes(place, f"{operation.label}: parameter {name}")
            value = body.get(name)
            if isinstance(value, str):
                yield from self._changes(f"{place}={value}", f"{operation.label}: {name} = {value}")

    def _shown(self, operation: Operation, recorded: _Recorded) -> Iterator[Found]:
        """Yield the fields of an answer that the table speaks of; one that is not there yet is nobody's fault."""
        exchange = recorded.exchange
        if not exchange.is_success or exchange.status is None:
            return
        response = operation.response_to(exchange.status)
        if response is None or response.schema is None:
            return
        for place in sorted(set(_fields(operation.document, response.schema, _json(exchange.body)))):
            name = place.partition(".")[2]
            for entry in self._changes(place, f"{operation.label}: {name} in the answer"):
                if entry.use is not Use.NOT_YET:
                    yield entry

    def _probed(self, recorded: _Recorded) -> Iterator[Found]:
        """Yield what the table says of calls that the specification names without describing them."""
        for change, path in self._probes:
            probe = change.probe
            if probe is None or probe.method != recorded.method or not path.matches(recorded.path):
                continue
            label = f"{probe.method} {path.text}"
            if change.kind is ChangeKind.CHANGED and probe.field is None and probe.parameter != "page":
                continue
            if probe.parameter in recorded.query:
                yield from self._found(change, f"{label}: parameter {probe.parameter}")
            if probe.field is not None and recorded.exchange.is_success and _shows(recorded.exchange, probe.field):
                yield from self._found(change, f"{label}: {probe.field} in the answer")

    @cached_property
    def _probes(self) -> list[tuple[Change, _Pattern]]:
        probed = [change for change in self.contract.changes if change.probe and not change.places]
        return [(change, _Pattern(urlsplit(change.probe.path).path)) for change in probed if change.probe]

    def _changes(self, place: str, what: str) -> Iterator[Found]:
        for change in self._by_place.get(place, ()):
            yield from self._found(change, what)

    def _found(self, change: Change, what: str) -> Iterator[Found]:
        use = _USES.get(change.kind)
        begins = change.kind in (ChangeKind.INTRODUCED, ChangeKind.RENAMED)
        if begins and self.version is not None and not self._in_effect(change):
            use = Use.NOT_YET
        elif use is None or (use is not Use.ANNOUNCED and not self._in_effect(change)):
            return
        planned = f"; removal planned for {change.removal_planned}" if change.removal_planned else ""
        since = f"{_WORDS[use]} {change.version}" if change.version else _WORDS[use]
        yield Found(use, what, f"{since}{planned}: {change.summary}", change.replacement, change.id)

    def _in_effect(self, change: Change) -> bool:
        return change.reached(self.version)

    # -- what the contract says of an answer -----------------------------------------------------------------------

    def _violations(self, operation: Operation, exchange: Exchange) -> Iterator[Found]:
        known = self._known[operation.id]
        if exchange.is_success and exchange.status is not None and known.response_to(exchange.status) is None:
            documented = ", ".join(response.status for response in known.responses if response.is_success)
            detail = f"status {exchange.status}; documented are {documented}"
            yield Found(Use.VIOLATION, operation.label, detail, requirement=known.success.requirement)
        for finding in self._findings(exchange):
            if not finding.holds:
                where = "/".join("*" if part.isdigit() else part for part in finding.place.split("/"))
                detail = f"{finding.expected} at {where or 'the answer'}"
                yield Found(Use.VIOLATION, operation.label, detail, requirement=finding.requirement or None)

    def _findings(self, exchange: Exchange) -> Sequence[Finding]:
        """Judge an answer piece by piece, up to the first that shows a violation: each violation costs memory."""
        findings: Sequence[Finding] = ()
        for body in _pieces(exchange.body):
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
    Use.REMOVED: "removed in",
    Use.DEPRECATED: "deprecated in",
    Use.CHANGED: "changed in",
    Use.NOT_YET: "introduced only in",
    Use.ANNOUNCED: "to be turned off in a release that is not named yet",
}


@dataclass
class _Tally:
    entries: int = 0
    calls: int = 0
    judged: int = 0
    unreadable: int = 0
    too_large: int = 0
    found: Counter[Found] = field(default_factory=Counter)
    examples: dict[Found, list[int]] = field(default_factory=dict)

    def add(self, found: Found) -> None:
        self.found[found] += 1
        examples = self.examples.setdefault(found, [])
        if len(examples) < _EXAMPLES:
            examples.append(self.entries)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A path with names in braces, compared segment by segment."""

    text: str

    def matches(self, path: str) -> bool:
        wanted, found = self.text.split("/"), path.split("/")
        pairs = zip(wanted, found, strict=False)
        return len(wanted) == len(found) and all(want.startswith("{") or want == part for want, part in pairs)


# -- reading ---------------------------------------------------------------------------------------------------------


def _recorded(entry: Mapping[str, Any]) -> _Recorded | None:
    """Return an entry as far as it calls the API, with an empty path when it calls something else; None if broken."""
    request, response = entry.get("request"), entry.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict):
        return None
    method, url, status = request.get("method"), request.get("url"), response.get("status")
    if not isinstance(method, str) or not isinstance(url, str) or len(url) > _LONGEST_ADDRESS:
        return None
    if not isinstance(status, int | Decimal) or isinstance(status, bool) or not 0 <= status < _STATUSES:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    _, prefix, path = parts.path.partition(f"{_PREFIX}/")
    path = f"/{path}".rstrip("/") if prefix else ""
    names = [name.removesuffix("[]") for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    sent = _sent_body(request.get("postData"))
    body = _response_body(response.get("content"))
    call = Call(actor=None, method=method.upper(), path=path, body=_as_bytes(sent))
    exchange = Exchange(
        call=call,
        status=int(status) or None,
        headers=MappingProxyType({}),
        body=body or b"",
        seconds=0.0,
    )
    has_answer = exchange.is_success and (body is not None or exchange.status == _NO_BODY)
    return _Recorded(call.method, path, tuple(names), sent, exchange, has_answer)


def _sent_body(data: Any) -> Any:
    """Return what a request sent: JSON, or the fields of a form; None when that is neither."""
    if not isinstance(data, dict):
        return None
    params = data.get("params")
    if isinstance(params, list) and params:
        named = [entry for entry in params if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        return {unquote_plus(entry["name"]).removesuffix("[]"): entry.get("value") for entry in named}
    text = data.get("text")
    if not isinstance(text, str) or not text:
        return None
    if "form-urlencoded" in str(data.get("mimeType", "")):
        return {name.removesuffix("[]"): value for name, value in parse_qsl(text, keep_blank_values=True)}
    return _json(text)


def _response_body(content: Any) -> bytes | None:
    """Return the body of an answer; None when the recording left it out."""
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return None
    text: str = content["text"]
    if content.get("encoding") != "base64":
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _as_bytes(body: Any) -> bytes | None:
    return None if body is None else json.dumps(body, default=str).encode()


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _pieces(body: bytes) -> Iterator[bytes]:
    """Yield a body whole or, if it holds too much, in lists of as many of its entries as will do."""
    if _weight(body) <= _HEAVIEST:
        yield body
        return
    whole = _json(body)
    if not isinstance(whole, list):
        yield json.dumps(_trimmed(whole)).encode()
        return
    piece: list[bytes] = []
    weight = 0
    for entry in whole:
        text = json.dumps(entry).encode()
        if _weight(text) > _HEAVIEST:
            text = json.dumps(_trimmed(entry)).encode()
        if piece and weight + _weight(text) > _HEAVIEST:
            yield b"[%s]" % b",".join(piece)
            piece, weight = [], 0
        piece.append(text)
        weight += _weight(text) + 1
    yield b"[%s]" % b",".join(piece)


def _weight(text: bytes) -> int:
    """Return about how many violations JSON can have: one per value, and one per property that a record lacks."""
    return text.count(b",") + text.count(b"{") * _PROPERTIES


def _trimmed(value: Any) -> Any:
    """Return a value with no list in it longer than what is looked at of one."""
    if isinstance(value, list):
        return [_trimmed(entry) for entry in value[:_ENTRIES_OF_A_LIST]]
    return {name: _trimmed(entry) for name, entry in value.items()} if isinstance(value, dict) else value


def _shows(exchange: Exchange, name: str) -> bool:
    body = _json(exchange.body)
    return any(isinstance(entry, dict) and name in entry for entry in (body if isinstance(body, list) else [body]))


def _fields(document: dict[str, Any], schema: Any, value: Any, records: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield `Record.property` for every property of a record that a value really has, by each name of the record."""
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
