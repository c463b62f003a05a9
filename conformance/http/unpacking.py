"""Decodes the content encodings of bodies, with a limit of size."""

from __future__ import annotations

import zlib
from contextlib import suppress

_GZIP = b"\x1f\x8b"
#: How a decompressor may read each content encoding; a body with another one is left encoded. Some servers omit the
#: header of deflate.
_WINDOWS = {
    "gzip": (16 + zlib.MAX_WBITS,),
    "x-gzip": (16 + zlib.MAX_WBITS,),
    "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS),
}


class BodyError(Exception):
    """A body is incomplete, unreadable or too large; the message continues the words "the body"."""


def unpacked(body: bytes, encodings: str, most: int) -> bytes:
    """Decode the content encodings of a body, the last one first, and never hold more than `most` bytes.

    `encodings` is the header as it was sent, in any case. Raise BodyError when it cannot be decoded.
    """
    for name in reversed(encodings.lower().replace(" ", "").split(",")) if body else ():
        if name not in _WINDOWS:
            continue
        try:
            body = _inflated(body, name, most)
        except zlib.error as error:
            raise BodyError(f"cannot be unpacked as {name}: {error}") from error
        if len(body) > most:
            raise BodyError(f"is longer than {most} bytes when unpacked")
    return body


def _inflated(packed: bytes, name: str, most: int) -> bytes:
    """Decompress a little more than `most` bytes at most; raise zlib.error when the data is not complete."""
    *others, last = _WINDOWS[name]
    for window in others:
        with suppress(zlib.error):
            return _members(packed, window, most)
    return _members(packed, last, most)


def _members(packed: bytes, window: int, most: int) -> bytes:
    """Decompress one stream after another, as gzip allows; what follows the last one is padding."""
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
