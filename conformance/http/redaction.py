"""Keeps secrets out of whatever is shown: the one door to files and terminal lets no text pass that holds one."""

from __future__ import annotations

import base64
import html
import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote, quote_plus, unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = "[redacted]"
_ALL_OF_IT = "[redacted: a secret stands here in pieces, or in another form]"
#: What is shorter would be found by chance where spaces, escapes and encodings are not looked at.
_SHORTEST = 6
_ESCAPE = re.compile(r"\\+(?:u00([0-9a-fA-F]{2})|x([0-9a-fA-F]{2})|[nrt]|([\"'\\/]))")
_SPACE = re.compile(r"\s+")


class Redaction:
    """
    Knows the secrets of a run, and leaves them out of texts.

    A secret is found as it is, as part of an address, of JSON or of HTML, in base64 or hexadecimal digits, with or
    without text around it, and split over lines.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Know these secrets; empty ones are none."""
        self._secrets: set[str] = set()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Know these secrets too."""
        self._secrets |= {secret for secret in secrets if secret.strip()}
        for name in ("_as_they_are", "_left_behind", "_beginnings_and_ends"):
            self.__dict__.pop(name, None)

    def text(self, text: str) -> str:
        """Return a text with a mask in the place of each secret."""
        if not self.is_in(text):
            return text
        for form in self._as_they_are:
            text = text.replace(form, MASK)
        if not self.is_in(text):
            return text
        # In pieces, or escaped otherwise: where exactly it begins and ends is not worth a search that may never end.
        lines = [f"{_ALL_OF_IT}\n" if self.is_in(line) else line for line in text.splitlines(keepends=True)]
        return _ALL_OF_IT if self.is_in("".join(lines)) else "".join(lines)

    def data(self, value: Any) -> Any:
        """Return JSON data with every text in it, names included, without secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.data(name): self.data(entry) for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(entry) for entry in value]
        return value

    def pieces(self, text: str) -> str:
        """Return a text without secrets, and without lines in which an ellipsis, as of pytest, has left part of one."""
        lines = self.text(text).splitlines(keepends=True)
        return "".join(f"{_ALL_OF_IT}\n" if "..." in line and self._is_cut(line) else line for line in lines)

    def _is_cut(self, line: str) -> bool:
        begun, ended = self._beginnings_and_ends
        parts = [_undone(part) for part in line.split("...")]
        sizes = range(_SHORTEST, max(map(len, self._as_they_are), default=0))
        return any(part[-size:] in begun for part in parts[:-1] for size in sizes) or any(
            part[:size] in ended for part in parts[1:] for size in sizes
        )

    @cached_property
    def _beginnings_and_ends(self) -> tuple[frozenset[str], frozenset[str]]:
        """What says enough of a secret where the rest of it was cut off."""
        forms = self._as_they_are
        begun = frozenset(form[:size] for form in forms for size in range(_SHORTEST, len(form)))
        ended = frozenset(form[-size:] for form in forms for size in range(_SHORTEST, len(form)))
        return begun, ended

    def is_in(self, text: str) -> bool:
        """Tell whether a text holds a secret."""
        return bool(self._secrets) and _is_any_in(self._left_behind, _undone(text))

    def forget(self) -> None:
        """Know none any more."""
        self._secrets.clear()
        self.learn(())

    @cached_property
    def _as_they_are(self) -> list[str]:
        """The secrets and their encodings, longest first."""
        forms = {form for secret in self._secrets for form in _forms(secret)}
        return sorted(forms, key=len, reverse=True)

    @cached_property
    def _left_behind(self) -> frozenset[str]:
        return frozenset(trace for secret in self._secrets for trace in _traces(secret))


#: What the profile of this process holds: files and terminal are written through this.
DOOR = Redaction()
#: What is shorter than this is found in many a text.
SHORTEST_AT_THE_DOOR = 6


def beginning(text: str, length: int) -> str:
    """Return the beginning of a text without secrets: what was cut through would not be found any more."""
    shown = DOOR.text(text)
    return shown if len(shown) <= length else f"{shown[:length]} ..."


class GuardedStream:
    """A stream for text that lets no secret pass."""

    def __init__(self, stream: TextIO, door: Redaction = DOOR) -> None:
        """Write to a stream what the door lets pass."""
        self._stream = stream
        self._door = door

    def write(self, text: str) -> int:
        """Write a text without its secrets."""
        self._stream.write(self._door.text(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts without their secrets."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Be the stream in all else."""
        return getattr(self._stream, name)


def _forms(secret: str) -> Iterator[str]:
    """Yield the usual ways in which a secret is written."""
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret))
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode()
    yield from _encodings(secret)


def _encodings(secret: str) -> Iterator[str]:
    """Yield what is left of a secret in base64, wherever in the text it begins, and in hexadecimal digits."""
    if len(secret) < _SHORTEST:
        return
    data = secret.encode()
    for before in range(3):
        # The first and the last digits also hold bits of what stands before and behind.
        digits = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        core = digits[(0, 2, 3)[before] : len(digits) - (1 if (before + len(data)) % 3 else 0)]
        yield core
        yield core.translate(str.maketrans("+/", "-_"))
    yield data.hex()
    yield data.hex().upper()


def _traces(secret: str) -> tuple[str, ...]:
    """Return what a secret leaves in a text whose escapes and spaces are undone."""
    return (_SPACE.sub("", secret), *_encodings(secret))


def _is_any_in(traces: Iterable[str], text: str) -> bool:
    return any(trace in text for trace in traces)


def _meant(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2]
    return chr(int(digits, 16)) if digits else escape[3] or ""


def _undone(text: str) -> str:
    """Return a text with escapes of addresses, JSON and HTML undone, and without spaces."""
    if "%" in text or "+" in text:
        text = f"{unquote(unquote(text))}\n{unquote_plus(text)}"
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        text = _ESCAPE.sub(_meant, text)
    return _SPACE.sub("", text)
