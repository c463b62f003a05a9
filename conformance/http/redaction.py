"""Keeps secrets out of whatever is shown: the one door to files and terminal lets no text pass that holds one."""

from __future__ import annotations

import base64
import html
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = "[redacted]"
_ALL_OF_IT = "[redacted: a secret stands here in pieces, or in another form]"
#: What is shorter would be found by chance where spaces, escapes and encodings are not looked at.
_SHORTEST = 6
#: Of what is longer, not more than the plain forms are looked for: the whole of it is left out where another is there.
_LONGEST_SEARCHED = 5000
_ESCAPE = re.compile(r"\\+(?:u00([0-9a-fA-F]{2})|x([0-9a-fA-F]{2})|[nrt]|([\"'\\/]))")
_SPACE = re.compile(r"\s+")
_BETWEEN = r"(?:\s|\\+[nrt])*"


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
        for name in ("_as_they_are", "_left_behind"):
            self.__dict__.pop(name, None)

    def text(self, text: str) -> str:
        """Return a text with a mask in the place of each secret."""
        if not self.is_in(text):
            return text
        for form in self._as_they_are:
            text = text.replace(form, MASK)
        if not self.is_in(text):
            return text
        text = "".join(map(self._searched, text.splitlines(keepends=True)))
        return self._searched(text)

    def _searched(self, text: str) -> str:
        """Return a text with a mask in the place of each secret in whatever form; in that of all of it, if need be."""
        if not self.is_in(text):
            return text
        found = [secret for secret in self._secrets if _is_any_in(_traces(secret), _undone(text))]
        forms = sorted({form for secret in found for form in _forms(secret)}, key=len, reverse=True)
        shown = re.sub("|".join(forms), MASK, text) if len(text) <= _LONGEST_SEARCHED else text
        return _ALL_OF_IT if self.is_in(shown) else shown

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
        parts = [_undone(part) for part in line.split("...")]
        begun = (_overlaps(part, form) for part in parts[:-1] for form in self._as_they_are)
        ended = (_overlaps(part[::-1], form[::-1]) for part in parts[1:] for form in self._as_they_are)
        return any(begun) or any(ended)

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
        forms = {form for secret in self._secrets for form in (secret, *_encodings(secret))}
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
    """Yield patterns of the ways in which a secret may be written: each character escaped or not, spaces between."""
    between = _BETWEEN if len(secret) >= _SHORTEST else ""
    yield between.join(map(_written, secret))
    for form in _encodings(secret):
        yield _BETWEEN.join(map(re.escape, form))


def _written(character: str) -> str:
    """Return a pattern of the ways in which addresses, JSON and HTML write a character."""
    code = ord(character)
    in_address = "".join(f"%(?:25)?{byte:02x}" for byte in character.encode())
    in_json = "" if character.isalnum() else r"\\*"
    plain = f"{in_json}{re.escape(character)}"
    more = (r"\+",) if character == " " else (re.escape(html.escape(character)),)
    escapes = (in_address, rf"\\+u{code:04x}", rf"\\+x{code:02x}", f"&#{code};", f"&#x{code:x};")
    return f"(?:{'|'.join((plain, *more))}|(?i:{'|'.join(escapes)}))"


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


def _overlaps(text: str, form: str) -> bool:
    """Tell whether enough of the beginning of a form to say something ends a text."""
    return any(text.endswith(form[:size]) for size in range(_SHORTEST, len(form)))


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
