"""Answers are read whole, within bounds, and never one for another."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpcore

from conformance.http.connections import BROKEN

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_CONTENT = 204
_SHOWN_PROBLEM = 200
_LONGEST_EXCESS = 1000
#: What may follow a 204 without being a body of it: the end of no chunks, or another answer that nobody asked for.
_NO_BODY = (b"0\r\n\r\n", b"HTTP/")
_GZIP = b"\x1f\x8b"
#: How a decompressor may read each content encoding; what is none of these stays as it was sent. Some servers leave out
#: the header of deflate.
_WINDOWS = {
    "gzip": (16 + zlib.MAX_WBITS,),
    "x-gzip": (16 + zlib.MAX_WBITS,),
    "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS),
}


@dataclass(frozen=True, slots=True)
class Received:
    """The body of an answer."""

    body: bytes
    problem: str | None = None
    """Why it is not whole, and then shows nothing."""


def headers_of(response: httpcore.Response) -> dict[str, str]:
    """Return the headers of an answer, names in lower case; what was sent several times is joined, as HTTP has it."""
    found: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("latin-1").lower(), _text(raw_value)
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def received(response: httpcore.Response, headers: Mapping[str, str], *, most: int, raw: bool) -> Received:
    """
    Read the body of an answer, at most so many bytes of it.

    `raw` wants the bytes as they were sent; otherwise a content encoding is undone. A connection that brought more than
    its answer is given up: the rest would be taken for the answer to the next call.
    """
    begun = f"status {response.status}, but the body"
    body = bytearray()
    try:
        for chunk in response.iter_stream():
            body += chunk
            if len(body) > most:
                return Received(b"", f"{begun} is longer than {most} bytes")
        excess = _excess(response, headers)
    except httpcore.TimeoutException:
        return Received(b"", f"{begun} did not end in time")
    except BROKEN as error:
        return Received(b"", f"{begun} broke off: {in_short(error)}")
    if response.status == _NO_CONTENT:
        return Received(b"" if excess.startswith(_NO_BODY) else excess)
    return Received(bytes(body)) if raw or not body else _unpacked(bytes(body), headers, most, begun)


def in_short(error: Exception) -> str:
    """Say in a line what went wrong: libraries quote what they did not understand, however long it is."""
    text = str(error) or type(error).__name__
    return text if len(text) <= _SHOWN_PROBLEM else f"{text[:_SHOWN_PROBLEM]} ..."


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _excess(response: httpcore.Response, headers: Mapping[str, str]) -> bytes:
    """
    Return the beginning of what came after the end of an answer, and hang up if anything did or will.

    HTTP takes a 204 for finished after its headers, so whatever body it has comes after its end; where a length is
    announced and nothing there yet, question marks stand for it.
    """
    reader: Any = response.stream
    # The HTTP library has no word for it; the parser below them has, and knows where an answer ends.
    for name in ("_connection", "_h11_state"):
        reader = getattr(reader, name, None)
    excess: bytes = reader.trailing_data[0][:_LONGEST_EXCESS] if reader is not None else b""
    is_silent = response.status == _NO_CONTENT
    if is_silent and not excess:
        excess = b"?" * min(int(headers.get("content-length", "0")), _LONGEST_EXCESS)
    if excess or (is_silent and "transfer-encoding" in headers):
        response.extensions["network_stream"].close()
    return excess


def _unpacked(body: bytes, headers: Mapping[str, str], most: int, begun: str) -> Received:
    """Undo the content encodings, the last one first, and never hold more than is allowed."""
    for name in reversed(headers.get("content-encoding", "").lower().replace(" ", "").split(",")):
        if name not in _WINDOWS:
            continue
        try:
            body = _inflated(body, name, most)
        except zlib.error as error:
            return Received(b"", f"{begun} cannot be unpacked as {name}: {error}")
        if len(body) > most:
            return Received(b"", f"{begun} is longer than {most} bytes when unpacked")
    return Received(body)


def _inflated(packed: bytes, name: str, most: int) -> bytes:
    """Unpack a little more than `most` bytes at most; raise zlib.error when that is not possible to the end."""
    found = b""
    for window in _WINDOWS[name]:
        try:
            found = _members(packed, window, most)
        except zlib.error:
            if window == _WINDOWS[name][-1]:
                raise
        else:
            break
    return found


def _members(packed: bytes, window: int, most: int) -> bytes:
    """Unpack one stream after another, as gzip allows; what follows the last one is padding."""
    found = bytearray()
    is_first = True
    while is_first or packed.startswith(_GZIP):
        reader = zlib.decompressobj(window)
        found += reader.decompress(packed, most + 1 - len(found))
        if len(found) > most:
            break
        if not reader.eof:
            raise zlib.error("the end is missing")
        packed, is_first = reader.unused_data, False
    return bytes(found)
