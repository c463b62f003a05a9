"""Reads HAR files, which browsers, proxies and test tools write, entry by entry.

Memory use depends neither on the size of the file nor on that of a single entry: only the parts that describe a call
are kept, and a part longer than `LONGEST` is skipped.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import ijson

from conformance.errors import UsageError
from conformance.http.bodies import in_part, json_in
from conformance.http.exchange import Call, Exchange
from conformance.results.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

#: Bytes of the longest text, and of everything that is kept of one entry.
LONGEST = 8 * 2**20

_CHUNK = 2**16
_DEEPEST = 500
_OVERHEAD = 64  # approximate bytes that a value needs besides its text
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Replaces a text that was too long.
_TOO_LONG = "conformance:a-text-that-was-too-long"
#: The rest of a text: complete escapes, up to its closing quote or to the end of the data read so far.
#: No possessive quantifiers, because before Python 3.11.5 they end a match too early.
_REST = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
#: Everything up to the end of the last complete text.
_WHOLE = re.compile(rb'[^"]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"]*)*', re.DOTALL)
_BETWEEN_VALUES = re.compile(rb'[\s"{}\[\],:]')

_ENTRIES = ["log", "entries"]
_KEPT = {"request": {"method", "url", "postData"}, "response": {"status", "content"}}


@dataclass(frozen=True, slots=True)
class HarEntry:
    """One entry of a HAR file, as far as it describes a call."""

    parts: dict[str, Any]
    """`request` and `response`, as in the file; empty when the entry is no object or too large."""
    is_cut: bool
    """Whether a part was too large to be read; it is None in `parts`, or `parts` is empty."""


def har_entries(file: Path) -> Iterator[HarEntry]:
    """Yield the entries of a HAR file, one at a time.

    Raise UsageError when the file cannot be read, is no HAR file, or ends in the middle; earlier entries have been
    yielded by then.
    """
    number, walk = 0, _Walk()
    try:
        with file.open("rb") as stream:
            for event, value in ijson.basic_parse(_Shortened(stream)):
                entry = walk.step(event, value)
                if entry is not None:
                    number += 1
                    yield entry
    except OSError as error:
        raise UsageError(f"Cannot read {file}: {error.strerror or error}.") from error
    except (ijson.JSONError, ValueError) as error:
        # The text after the first line is a piece of the file, which may contain tokens.
        reason = next(iter(_said(error).splitlines()), "").strip(" .") or "it is empty"
        whole = f" after {plural(number, 'entry', 'entries')}" if number else ""
        raise UsageError(f"{file} is not a HAR file: the JSON is broken{whole} ({reason}).") from error
    if not walk.has_entries:
        raise UsageError(f"{file} is not a HAR file: it has no log.entries.")


def _said(error: Exception) -> str:
    """Return what an error says; the parser says it as bytes, if the piece of the file in it is no text."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


class _Walk:
    """Follows the events of a HAR file, and builds an entry from the relevant ones."""

    def __init__(self) -> None:
        self.has_entries = False
        """Whether the list of entries was reached."""
        self._names: list[str | None] = []
        """The current name in each open object; None in a list, and before the first name."""
        self._builder: Any = None
        self._size = 0
        self._is_cut = False

    def step(self, event: str, value: Any) -> HarEntry | None:
        """Process the next event; return an entry when the event ends one."""
        names = self._names
        if event == "map_key":
            names[-1] = value
            self._keep(event, value)
            return None
        if event in ("end_map", "end_array"):
            names.pop()
        inside = len(names) > len(_ENTRIES) and names[: len(_ENTRIES)] == _ENTRIES
        at_entry = inside and len(names) == len(_ENTRIES) + 1 and names[-1] is None
        if at_entry and not event.startswith("end_"):
            self._builder, self._size, self._is_cut = ijson.ObjectBuilder(), 0, False
        if inside:
            self._keep(event, value)
        if event in ("start_map", "start_array"):
            self.has_entries |= event == "start_array" and names == _ENTRIES
            names.append(None)
            if len(names) > _DEEPEST:
                raise ValueError("it is nested too deeply")
            return None
        return self._entry() if at_entry else None

    def _keep(self, event: str, value: Any) -> None:
        if self._builder is None or not self._matters():
            return
        if value == _TOO_LONG:
            event, value, self._is_cut = "null", None, True
        self._size += _OVERHEAD + (len(value) if isinstance(value, str) else 0)
        if self._size > LONGEST:
            self._builder, self._is_cut = None, True
        else:
            self._builder.event(event, value)

    def _matters(self) -> bool:
        names = self._names[len(_ENTRIES) + 1 :]
        return not names or (names[0] in _KEPT and (len(names) == 1 or names[1] in _KEPT[names[0]]))

    def _entry(self) -> HarEntry:
        found = self._builder.value if self._builder is not None else None
        self._builder = None
        return HarEntry(found if isinstance(found, dict) else {}, self._is_cut)


class _Shortened:
    """A JSON file for reading, with a short text in place of each text longer than `LONGEST`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._is_first = True
        self._held = bytearray()
        """The unfinished text, with its opening quote; empty between texts."""
        self._is_too_long = False
        """Whether that text is too long already; then only its opening quote is kept."""
        self._is_split = False
        """Whether the data read so far ends in the middle of an escape, so that the next quote is part of it."""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, as many as are available; none at the end of the file."""
        if size == 0:
            return b""
        while chunk := self._stream.read(_CHUNK):
            if self._is_first:
                self._is_first, chunk = False, chunk.removeprefix(_BYTE_ORDER_MARK)
            shown = self._through_text(chunk) if self._held else self._between(chunk)
            if shown:
                return shown
        rest, self._held = bytes(self._held[:_CHUNK]), bytearray()
        return rest

    def _between(self, chunk: bytes) -> bytes:
        if len(chunk) == _CHUNK and _BETWEEN_VALUES.search(chunk) is None:
            raise ValueError(f"{_CHUNK} bytes and more without anything between values")
        end = _end(_WHOLE, chunk, 0)
        if end < len(chunk):
            self._is_split = _end(_REST, chunk, end + 1) < len(chunk)
            self._hold(chunk[end:])
        return chunk[:end]

    def _through_text(self, chunk: bytes) -> bytes:
        end = _end(_REST, chunk, 1 if self._is_split else 0)
        is_over = chunk[end : end + 1] == b'"'
        self._is_split = end < len(chunk) and not is_over
        self._hold(chunk[: end + 1])
        if not is_over:
            return b""
        text = b'"%s"' % _TOO_LONG.encode() if self._is_too_long else bytes(self._held)
        self._held, self._is_too_long = bytearray(), False
        return text + self._between(chunk[end + 1 :])

    def _hold(self, piece: bytes) -> None:
        self._held += piece
        self._is_too_long = self._is_too_long or len(self._held) > LONGEST
        if self._is_too_long:
            self._held = self._held[:1]


def _end(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


# -- calls -------------------------------------------------------------------------------------------------------------


_PREFIX = "/api/v4"
_STATUSES = 1000
_LONGEST_ADDRESS = 2**16
#: Maximum number of violations in one piece, and number of list entries that are validated in a single record that is
#: too large.
_HEAVIEST = 20_000
_PROPERTIES = 20
_ENTRIES_OF_A_LIST = 100
_NAME_OF_PART = re.compile(r'form-data; name="([^"]+)"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded call: the request, and the recorded part of the answer."""

    method: str
    path: str
    """Path below the prefix of the API; empty when the call is not to the API."""
    address: str
    """The whole path."""
    query: Mapping[str, str]
    body: Any
    """The sent body, as JSON or as the fields of a form; None without one."""
    exchange: Exchange
    has_answer: bool
    """Whether the answer was recorded with its body, so that it can be judged."""


def recorded(entry: Mapping[str, Any]) -> Recorded | None:
    """Return the API call of an entry, with an empty path when it is not to the API; None if the entry is broken."""
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
    query = {name.removesuffix("[]"): value for name, value in parse_qsl(parts.query, keep_blank_values=True)}
    sent = _sent_body(request.get("postData"))
    body = _response_body(response.get("content"))
    as_sent = None if sent is None else json.dumps(sent, default=str).encode()
    call = Call(actor=None, method=method.upper(), path=path, body=as_sent)
    exchange = Exchange(
        call=call, status=int(status) or None, headers=MappingProxyType({}), body=body or b"", seconds=0.0
    )
    has_answer = exchange.is_success and (body is not None or exchange.status == HTTPStatus.NO_CONTENT)
    return Recorded(call.method, path, parts.path.rstrip("/"), MappingProxyType(query), sent, exchange, has_answer)


def _sent_body(data: Any) -> Any:
    """Return the body of a request: JSON, or the fields of a form; None when it is neither."""
    if not isinstance(data, dict):
        return None
    params = data.get("params")
    if isinstance(params, list) and params:
        named = [entry for entry in params if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        return {unquote_plus(entry["name"]).removesuffix("[]"): entry.get("value") for entry in named}
    text = data.get("text")
    if not isinstance(text, str) or not text:
        return None
    kind = str(data.get("mimeType", ""))
    if "form-urlencoded" in kind:
        return {name.removesuffix("[]"): value for name, value in parse_qsl(text, keep_blank_values=True)}
    return _fields_in_parts(text) if "multipart/form-data" in kind else json_in(text)


def _fields_in_parts(text: str) -> dict[str, str]:
    """Return the fields of a form that was sent in parts, as `curl --form` does."""
    fields = {}
    for part in text.replace("\r\n", "\n").split("\n--"):
        head, _, value = part.partition("\n\n")
        named = _NAME_OF_PART.search(head)
        if named:
            fields[named[1].removesuffix("[]")] = value
    return fields


def _response_body(content: Any) -> bytes | None:
    """Return the body of an answer; None when the recording has none, or only a part of it."""
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return None
    text: str = content["text"]
    try:
        is_encoded = content.get("encoding") == "base64"
        body = base64.b64decode(text, validate=True) if is_encoded else text.encode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return None
    size = content.get("size")
    is_cut = isinstance(size, int | Decimal) and len(body) < size
    return body if not is_cut or json_in(body) is not None else None


def pieces(body: bytes) -> Iterator[bytes]:
    """Yield a body whole or, if it is too large, as lists of as many of its entries as are allowed."""
    if _weight(body) <= _HEAVIEST:
        yield body
        return
    whole = json_in(body)
    if not isinstance(whole, list):
        yield json.dumps(in_part(whole, _ENTRIES_OF_A_LIST)).encode()
        return
    piece: list[bytes] = []
    weight = 0
    for entry in whole:
        text = json.dumps(entry).encode()
        if _weight(text) > _HEAVIEST:
            text = json.dumps(in_part(entry, _ENTRIES_OF_A_LIST)).encode()
        if piece and weight + _weight(text) > _HEAVIEST:
            yield b"[%s]" % b",".join(piece)
            piece, weight = [], 0
        piece.append(text)
        weight += _weight(text) + 1
    yield b"[%s]" % b",".join(piece)


def _weight(text: bytes) -> int:
    """Estimate how many violations JSON can have: one per value, and one per property that a record lacks."""
    return text.count(b",") + text.count(b"{") * _PROPERTIES
