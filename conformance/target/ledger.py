"""The ledger of a run: the former state of everything that the run changes, and all that it makes, written in advance.

A file of JSON lines beside the record, one file for each world. Secrets of the profile are replaced by their places in
the profile, so the file contains none, and restoring needs the profile. Only the user who ran the suite may read it.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.errors import UsageError, or_usage_error
from conformance.http.bodies import object_in
from conformance.http.client import RequestsSpentError
from conformance.http.exchange import READING
from conformance.http.redaction import REDACTION, is_short
from conformance.target.provisioning.own_groups import OwnGroup
from conformance.target.spots import Spot, where
from conformance.target.states import States, Thing, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from io import FileIO
    from pathlib import Path
    from typing import BinaryIO

    from conformance.contract import Operation
    from conformance.http.client import Client
    from conformance.http.exchange import Call, Exchange
    from conformance.target.profile import Profile

FORM = 2
#: Marks a text that contains secrets: a list of its parts, in which every second part is a place in the profile.
_HIDDEN = "secret"
#: Fields with values from the target or a call; all others are the suite's own words and cannot contain secrets.
_FOREIGN = ("entry", "state", "group", "name")
_KINDS_OF_HEADER = {"run": str, "base_url": str, "world": int}
#: The kinds of lines about a project, group or merge request.
_ABOUT_SPOTS = frozenset({"was", "makes", "made", "gone", "stays"})
_UNWRITTEN = "a value that holds a secret, encoded or in pieces, and so is not written down,"
_UNREAD = "which no answer showed before it was changed,"


class UnwrittenError(RequestsSpentError):
    """The ledger cannot record what a call would change, so neither this call nor later ones that need it are sent."""


class Ledger:
    """Records what calls are about to change. Safe to use from several threads.

    Before the first write to a project, group or merge request, it reads that and everything in it, and writes it to
    disk. What a call makes is recorded by its name before the call, and by its number after it.
    """

    def __init__(
        self, file: Path, profile: Profile, client: Client, operation_of: Callable[[str, str], Operation | None]
    ) -> None:
        """Append to a ledger that `begun` has begun; `client` reads outside of the tests."""
        self._states, self._operation_of = States(profile, client), operation_of
        self._secrets = profile.named_secrets()
        table = Contract.load().restoring
        self._adding = {name: part for part in table.parts for name in _names(part.add)}
        self._removing = {name: part for part in table.parts for name in _names(part.remove)}
        self._stays = table.stays
        self._covered: set[Spot] = set()
        self._unanswered = self._unreadable = 0
        self._hidden: defaultdict[Spot, list[Thing]] = defaultdict(list)
        """By what a call is about, the things that are served in a form that nobody can read, or by a fault."""
        self._refused: defaultdict[Spot, list[Thing]] = defaultdict(list)
        """By what a call is about, the things that are shown to nobody: the service may not have them."""
        client.on_exchange(self._heard)
        self._written: set[str] = set()
        self._surely: set[str] = set()
        """Lines about calls that were not refused."""
        self._lock = threading.RLock()
        self._path = file
        self._file: BinaryIO | None = None
        self._is_closed = False
        self._problem: str | None = None

    def before(self, call: Call) -> None:
        """Record what a call may change or make, unless it is recorded already.

        Raise UnwrittenError when that is not possible: the call must not be sent then.
        """
        spot = self._states.spots.called(call.path)
        if spot is None:
            return
        operation = self._operation_of(call.method, call.path)
        name = (operation.alias_of or operation.id) if operation is not None else ""
        for thing in self._cover(spot) if spot not in self._covered else ():
            self._give_up(thing, name, spot)
        for thing in self._unseen(name, spot):
            self._once(_what_is_lost(thing))
            self._written.add(str(thing))  # what is read from now on is no former state
        if name in self._stays:
            self._once(self._what_stays(name, spot))
        added = self._adding.get(name)
        if added is not None and not added.by_caller:
            entry = _sent(call, added.named or added.entry or "")
            self._once({"makes": added.part, **_place(spot), "entry": entry})

    def after(self, exchange: Exchange) -> None:
        """Record the number of what a call has made, what it has deleted, and that a refused call left nothing."""
        call = exchange.call
        if call.method in READING:
            return
        operation = self._operation_of(call.method, call.path)
        spot = self._states.spots.called(call.path) if operation is not None else None
        if operation is None or spot is None:
            return
        for thing in self._unseen(operation.alias_of or operation.id, spot):
            self._see_whether_it_stays(_what_is_lost(thing), exchange)
        if operation.id in self._stays:
            self._see_whether_it_stays(self._what_stays(operation.id, spot), exchange)
        if not exchange.is_success:
            return
        added, removed = self._adding.get(operation.id), self._removing.get(operation.id)
        if added is not None and added.named:
            self._write({"made": added.part, **_place(spot), "entry": object_in(exchange.body).get("id")})
        elif removed is not None and removed.named:
            self._write({"gone": removed.part, **_place(spot), "entry": _last_number(call.path)})

    def _what_stays(self, name: str, spot: Spot) -> dict[str, Any]:
        return {"stays": self._stays[name], **_place(spot)}

    def _see_whether_it_stays(self, line: Mapping[str, Any], exchange: Exchange) -> None:
        """Take the line about a call back, which stands there before it is sent, if all such calls were refused."""
        with self._lock:
            self._once(line)
            if not exchange.is_refusal and not exchange.is_not_there:
                self._surely.add(_key(line))
            elif _key(line) not in self._surely:
                self._write({"refused": line["stays"], **{name: line[name] for name in line if name != "stays"}})
                self._written.discard(_key(line))  # it stands there again before the next such call

    def makes_group(self, group: OwnGroup) -> None:
        """Record a group that the run makes for itself: by its path before that, and by its number after it."""
        self._once({"group": group.path, "name": group.name, "id": group.number})

    def close(self) -> None:
        """Flush everything to the disk; `Content.settled` says whether everything was restored."""
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                with suppress(OSError, UnwrittenError):  # no call was sent that is not recorded
                    self._sync()
                with suppress(OSError):
                    self._file.close()
                self._file = None

    def _heard(self, exchange: Exchange) -> None:
        self._unanswered += exchange.is_withheld
        is_page = exchange.is_success and exchange.served_json is None and not exchange.is_as_anywhere
        self._unreadable += exchange.is_broken or is_page

    def _cover(self, spot: Spot) -> list[Thing]:
        """Record the state of a thing and of what lies in it; return what could not be read for want of an answer."""
        silent: list[Thing] = []
        with self._lock:
            if spot in self._covered:
                return silent
            for thing in self._states.things(spot):
                if str(thing) in self._written:
                    continue
                before, unreadable = self._unanswered, self._unreadable
                found = self._states.read(thing)
                if self._unanswered > before:  # what was read may be only a part
                    silent.append(thing)
                elif found is None:
                    (self._hidden if self._unreadable > unreadable else self._refused)[spot].append(thing)
                else:
                    reader, state = found
                    was = {"was": thing.part.name, **_place(thing.spot), "by": reader}
                    self._write({**was, "state": [[key, self._writable(state[key], thing.spot)] for key in state]})
                    self._written.add(str(thing))
            self._sync()
            if not silent:
                self._covered.add(spot)
        return silent

    def _give_up(self, thing: Thing, operation: str, spot: Spot) -> None:
        """Record that a thing will stay as it is if a call may change it; otherwise it is read again next time.

        What is read after that call is no former state, and to restore it could undo what a test has put back itself.
        """
        if operation and not self._may_move(operation, thing, spot):
            return
        with self._lock:
            if str(thing) not in self._written:  # another thread may have read it by now
                self._once(_what_is_lost(thing))
                self._written.add(str(thing))

    def _may_move(self, operation: str, thing: Thing, spot: Spot) -> bool:
        place = where(self._states.profile, thing.spot, spot)
        return bool(Contract.load().side_effects.may_move(operation, thing.part.name, place))

    def _unseen(self, operation: str, spot: Spot) -> Iterator[Thing]:
        """Yield the things without a known state that an operation may change.

        What is shown to nobody is only changed by its own calls; where it is a list of what has a number that a service
        gives, nobody can change what was there before the run.
        """
        yield from (one for one in self._hidden.get(spot, ()) if not operation or self._may_move(operation, one, spot))
        own = (one for one in self._refused.get(spot, ()) if one.spot == spot and not one.restored.named)
        yield from (one for one in own if operation in one.restored.operations)

    def _writable(self, values: Mapping[str, Any], spot: Spot) -> dict[str, Any]:
        """Drop values that contain a secret in an encoded form, because readers of the file would learn it."""
        kept = {name: value for name, value in values.items() if not self._tells([name, value])}
        if len(kept) < len(values):
            self._once({"stays": _UNWRITTEN, **_place(spot)})
        return kept

    def _tells(self, value: Any) -> bool:
        return REDACTION.is_in(json.dumps(_masked(value, self._secrets), default=str))

    def _once(self, line: Mapping[str, Any]) -> None:
        """Write a line to the disk, unless it is already there."""
        key = _key(line)
        with self._lock:
            if key not in self._written:
                self._write(line, sync=True)
                self._written.add(key)

    def _write(self, line: Mapping[str, Any], *, sync: bool = False) -> None:
        with self._lock:
            if self._is_closed or self._tells([line.get(key) for key in _FOREIGN]):
                return
            shown = {key: _masked(value, self._secrets) if key in _FOREIGN else value for key, value in line.items()}
            text = json.dumps(shown, default=str).encode() + b"\n"
            with self._written_or_never_again():
                if self._file is None:  # a worker may start before the file exists, but writes later
                    self._file = self._path.open("ab")
                self._file.write(text)
                self._file.flush()  # a killed process loses what is in its buffer
            if sync:
                self._sync()

    def _sync(self) -> None:
        with self._written_or_never_again():
            if self._file is not None:
                self._file.flush()
                os.fsync(self._file.fileno())

    @contextmanager
    def _written_or_never_again(self) -> Iterator[None]:
        """Raise UnwrittenError when a line cannot be written, and for every later line, because a gap is left."""
        if self._problem is None:
            try:
                yield
            except OSError as error:
                self._problem = (
                    f"{self._path} could not be written ({error.strerror or error}): nothing more is changed"
                )
        if self._problem is not None:
            raise UnwrittenError(self._problem)


def _what_is_lost(thing: Thing) -> dict[str, Any]:
    return {"stays": f"the former {thing.part.name}, {_UNREAD}", **_place(thing.spot)}


def _key(line: Mapping[str, Any]) -> str:
    return json.dumps(line, sort_keys=True, default=str)


def _write_whole(file: FileIO, content: bytes) -> None:
    while content:
        content = content[file.write(content) :]


def begun(file: Path, header: Mapping[str, Any]) -> Path:
    """Begin the ledger of a run before its first call, readable only by its user; return its file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(json.dumps({"ledger": FORM, **header}).encode() + b"\n")
        opened.flush()
        os.fsync(opened.fileno())
    return file


@dataclass(frozen=True)
class Content:
    """What a ledger contains."""

    file: Path
    header: Mapping[str, Any]
    was: tuple[Mapping[str, Any], ...]
    """Former states: `was` (the part), `level`, `number`, `iid`, `by` (who read it) and `state`."""
    makes: frozenset[tuple[str, Spot, Any]] = field(default_factory=frozenset)
    """What the run made or may have made: part, where, and its number or name."""
    made: frozenset[tuple[str, Spot, Any]] = field(default_factory=frozenset)
    """What the run made for certain: part, where, and its number."""
    stays: tuple[str, ...] = ()
    """Changes that cannot be undone."""
    groups: tuple[OwnGroup, ...] = ()
    """The groups that the run made, or was about to make, for itself."""
    is_settled: bool = False
    """Whether everything in it was restored, as far as possible."""
    left: tuple[str, ...] = ()
    """What could not be restored then."""

    @classmethod
    def read(cls, file: Path, secrets: Mapping[str, str] | None = None) -> Content:
        """Read a ledger; its last line may be incomplete. `secrets` are those of the profile, which restoring needs.

        Raise UsageError when it is no ledger, cannot be read, or names a secret that the profile does not have.
        """
        with or_usage_error(f"Cannot read {file}"):
            texts = file.read_bytes().splitlines()
        read = [_line(text) for text in texts]
        lines = [line if secrets is None else _unmasked(line, secrets) for line in read if line is not None]
        if not lines or lines[0].get("ledger") != FORM:
            raise UsageError(f"{file} is not a ledger of this version of the suite.")
        damaged = sum(line is None and bool(text.strip()) for line, text in zip(read[:-1], texts, strict=False))
        return cls(
            file=file,
            header=lines[0],
            # Only the first state counts: a process that continues a ledger reads what earlier ones have changed.
            was=tuple({(line["was"], _spot(line)): line for line in reversed(lines) if "was" in line}.values())[::-1],
            makes=_standing(lines, "makes", "made"),
            made=_standing(lines, "made"),
            stays=(
                *(f"{what} of {spot}" for (what, spot), stays in _stays(lines).items() if stays),
                *((f"what {damaged} damaged lines of {file} say",) if damaged else ()),
            ),
            # A line with the number comes later than the one with the name.
            groups=tuple({str(line["group"]): _own_group(line) for line in lines if "group" in line}.values()),
            is_settled="settled" in lines[-1],
            left=tuple(map(str, said)) if isinstance(said := lines[-1].get("left"), list) else (),
        )

    def settle(self, left: tuple[str, ...]) -> None:
        """Record that everything was handled, and what is left; on a full disk, overwrite the ledger with that."""
        line = {"settled": datetime.now(UTC).isoformat(timespec="seconds"), "left": left}
        with self.file.open("r+b", buffering=0) as file:
            beginning = file.readline()
            try:
                file.seek(0, os.SEEK_END)
                _write_whole(file, b"\n" + json.dumps(line).encode() + b"\n")
            except OSError:
                file.truncate(len(beginning))
                file.seek(0, os.SEEK_END)
                _write_whole(file, json.dumps(line).encode() + b"\n")
            os.fsync(file.fileno())

    def state(self, line: Mapping[str, Any]) -> tuple[Spot, Values]:
        """Return where something was, and its state."""
        return _spot(line), {key: dict(values) for key, values in line["state"]}


def _standing(lines: Iterable[Mapping[str, Any]], *kinds: str) -> frozenset[tuple[str, Spot, Any]]:
    """Return what lines of these kinds say was made, unless a later line says that it is gone; numbers come again."""
    found: set[tuple[str, Spot, Any]] = set()
    for line in lines:
        found |= {_entry(line, kind) for kind in kinds if line.get(kind) and line["entry"]}
        if "gone" in line:
            found.discard(_entry(line, "gone"))
    return frozenset(found)


def _stays(lines: Iterable[Mapping[str, Any]]) -> dict[tuple[str, Spot], bool]:
    """Return which changes cannot be undone, and where: the last line about each tells whether it was made."""
    return {
        (str(line.get("stays", line.get("refused"))), _spot(line)): "stays" in line
        for line in lines
        if "stays" in line or "refused" in line
    }


def _line(text: bytes) -> dict[str, Any] | None:
    """Parse a line; None when it is incomplete or has nothing usable."""
    try:
        line = json.loads(text)
        is_whole = isinstance(line, dict) and all(
            isinstance(line[name], kind) for name, kind in _KINDS_OF_HEADER.items() if "ledger" in line
        )
        for name in _ABOUT_SPOTS & set(line):  # they must be hashable
            hash((line[name], _spot(line)))
        for _, values in line["state"] if "was" in line else ():
            dict(values)
        if "group" in line:
            _own_group(line)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return line if is_whole else None


def _own_group(line: Mapping[str, Any]) -> OwnGroup:
    return OwnGroup(line["group"], line["name"], line["id"])


def _names(operation: str | None) -> tuple[str, ...]:
    """Return the id of an operation and the ids of its older names."""
    older = (each.id for each in Contract.load().operations(None) if operation and each.alias_of == operation)
    return (operation, *older) if operation else ()


def _place(spot: Spot) -> dict[str, Any]:
    return {"level": spot.level, "number": spot.number, "iid": spot.iid}


def _spot(line: Mapping[str, Any]) -> Spot:
    return Spot(line["level"], line["number"], line["iid"])


def _entry(line: Mapping[str, Any], kind: str) -> tuple[str, Spot, Any]:
    return line[kind], _spot(line), str(line["entry"]).strip()


def _sent(call: Call, name: str) -> Any:
    """Return what a call sends for a name in its body, query or path; None when it sends nothing."""
    body = object_in(call.body)
    found = body[name] if name in body else call.query.get(name, call.path.rpartition("/")[2])
    return found if isinstance(found, int | str) else None


def _last_number(path: str) -> int | None:
    last = path.partition("?")[0].rpartition("/")[2]
    return int(last) if last.isdecimal() else None


def _masked(value: Any, secrets: Mapping[str, str]) -> Any:
    """Return a value in which each secret is replaced by its place in the profile; a text with secrets becomes a list.

    A very short secret is only replaced when it is the whole value, because it occurs in many other texts.
    """
    if isinstance(value, str):
        found = {name: secret for name, secret in secrets.items() if secret == value or not is_short(secret)}
        names = {secret: name for name, secret in found.items() if secret in value}
        longest_first = sorted(names, key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", value) if names else ()
        return {_HIDDEN: [names[part] if place % 2 else part for place, part in enumerate(parts)]} if parts else value
    if isinstance(value, dict):
        return {key: _masked(entry, secrets) for key, entry in value.items()}
    return [_masked(entry, secrets) for entry in value] if isinstance(value, list | tuple) else value


def _unmasked(value: Any, secrets: Mapping[str, str]) -> Any:
    """Undo `_masked`; raise UsageError for a place that the profile does not have."""
    if isinstance(value, dict) and value.keys() == {_HIDDEN}:
        parts = value[_HIDDEN]
        missing = set(parts[1::2]) - secrets.keys()
        if missing:
            raise UsageError(f"the profile no longer has the secret {', '.join(sorted(missing))}")
        return "".join(secrets[part] if place % 2 else part for place, part in enumerate(parts))
    if isinstance(value, dict):
        return {key: _unmasked(entry, secrets) for key, entry in value.items()}
    return [_unmasked(entry, secrets) for entry in value] if isinstance(value, list) else value
