"""Keeps secrets out of files and of the terminal: all text passes through here, and secrets in it are masked."""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import sys
import traceback
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TextIO, cast
from urllib.parse import quote, quote_plus, unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MASK = "[redacted]"
_ALL_OF_IT = "[redacted: a secret stands here in pieces, or in another form]"
#: The least length of a secret that is also searched for in pieces and in other forms.
_SHORTEST = 6
_ESCAPE = re.compile(r"\\+(?:u00([0-9a-fA-F]{2})|x([0-9a-fA-F]{2}))")
_BACKSLASH = re.compile(r"\\+[nrt]?")
_BESIDE = "\0"


class Redaction:
    """Knows the secrets of a run, and masks them in texts.

    A secret is found unchanged, as part of an address, of JSON or of HTML, in base64 or hexadecimal digits, with or
    without text around it, and split over lines. A very short one is found only as a separate word, or encoded as a
    whole, because within words it would match everywhere.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Begin with these secrets; empty ones are ignored."""
        self._secrets: set[str] = set()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add these secrets."""
        self._secrets |= {secret for secret in secrets if secret.strip()}
        for name in ("_as_they_are", "_short_ones", "_left_behind", "_beginnings_and_ends", "_secret_of", "_pattern"):
            self.__dict__.pop(name, None)

    def text(self, text: str) -> str:
        """Return a text with a mask in place of each secret."""
        if self.is_in(text):
            text = self._without_traces(text)
        return self._short_ones.sub(MASK, text) if self._short_ones is not None else text

    def parts(self, text: str) -> Iterator[tuple[str, str | None]]:
        """Yield a text in pieces, each with the secret that it is; None when it is no secret.

        A secret in another form, such as in an address, is yielded like an unchanged one. What only `text` finds, such
        as a secret over several lines, stays in the pieces.
        """
        end = 0
        for found in self._pattern.finditer(text) if self._secrets else ():
            yield text[end : found.start()], None
            yield found.group(), self._secret_of[found.group()]
            end = found.end()
        yield text[end:], None

    def _without_traces(self, text: str) -> str:
        for form in self._as_they_are:
            text = text.replace(form, MASK)
        if not self.is_in(text):
            return text
        # A secret in pieces, or escaped in another way, masks the whole line: finding its exact ends could take
        # forever.
        lines = [f"{_ALL_OF_IT}\n" if self.is_in(line) else line for line in text.splitlines(keepends=True)]
        return _ALL_OF_IT if self.is_in("".join(lines)) else "".join(lines)

    def data(self, value: Any) -> Any:
        """Return JSON data with secrets masked in all texts, names included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.data(name): self.data(entry) for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(entry) for entry in value]
        return value

    def pieces(self, text: str) -> str:
        """Return a text without secrets; mask a line with an ellipsis, as of pytest, if it has part of one."""
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
        """Beginnings and ends of secrets that are long enough to reveal something when the rest was cut off."""
        forms = self._as_they_are
        begun = frozenset(form[:size] for form in forms for size in range(_SHORTEST, len(form)))
        ended = frozenset(form[-size:] for form in forms for size in range(_SHORTEST, len(form)))
        return begun, ended

    def is_in(self, text: str) -> bool:
        """Tell whether a text holds a secret."""
        traces, size, pieces = self._left_behind
        if not traces:
            return False
        bare = _undone(text)
        # Almost no text has a piece of a trace, and searching for each trace takes longer. Pieces are half as long as
        # the shortest trace, so a whole piece lies within each trace.
        cut = [bare[at : at + size] for at in range(0, len(bare), size)]
        if not pieces.isdisjoint(cut) and _is_any_in(traces, bare):
            return True
        # The text is also searched unchanged, because undoing a backslash may remove the first letter of a secret.
        return "\\" in text and _is_any_in(self._as_they_are, text)

    def forget(self) -> None:
        """Forget all secrets."""
        self._secrets.clear()
        self.learn(())

    @cached_property
    def _as_they_are(self) -> list[str]:
        """The secrets and their encodings, longest first."""
        return _longest_first(secret for secret in self._secrets if not is_short(secret))

    @cached_property
    def _secret_of(self) -> dict[str, str]:
        """The secret behind each of their encodings, longest encoding first."""
        found = {form: secret for secret in sorted(self._secrets) for form in _forms(secret)} | {
            secret: secret for secret in self._secrets
        }
        return dict(sorted(found.items(), key=lambda entry: -len(entry[0])))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Matches all of these; short ones only as separate words."""
        words = (rf"(?<!\w){re.escape(form)}(?!\w)" if is_short(form) else re.escape(form) for form in self._secret_of)
        return re.compile("|".join(words))

    @cached_property
    def _short_ones(self) -> re.Pattern[str] | None:
        """Matches the secrets that are too short to be searched for in pieces and within words."""
        forms = _longest_first(secret for secret in self._secrets if is_short(secret))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, forms))})(?!\w)") if forms else None

    @cached_property
    def _left_behind(self) -> tuple[frozenset[str], int, frozenset[str]]:
        """The traces of all secrets; the length of their pieces, which are searched first; and all pieces."""
        traces = frozenset(trace for secret in self._secrets if not is_short(secret) for trace in _traces(secret))
        size = (min(map(len, traces), default=1) + 1) // 2
        return traces, size, frozenset(each[at : at + size] for each in traces for at in range(len(each) - size + 1))


#: The secrets that this process knows: files and terminal are written through this.
REDACTION = Redaction()


def keep_in(secrets: Iterable[str]) -> None:
    """Mask these secrets in files and on the terminal, except those so short that many texts contain them."""
    REDACTION.learn(secret for secret in secrets if not is_short(secret))


def beginning(text: str, length: int) -> str:
    """Return the beginning of a text without secrets; they are masked before the cut, which would hide them."""
    shown = REDACTION.text(text)
    return shown if len(shown) <= length else f"{shown[:length]} ..."


class GuardedStream:
    """A text stream that masks secrets."""

    def __init__(self, stream: TextIO) -> None:
        """Write to this stream."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without its secrets."""
        self._stream.write(REDACTION.text(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts without their secrets."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the stream."""
        return getattr(self._stream, name)


@contextmanager
def guarded_logs(*, and_streams: bool) -> Iterator[None]:
    """While the context lasts, mask secrets in all log records; with `and_streams`, also in all that is printed."""
    usual = logging.getLogRecordFactory()
    logging.setLogRecordFactory(partial(_record_without_secrets, usual))
    try:
        with ExitStack() as streams:
            if and_streams:
                streams.enter_context(redirect_stdout(cast("TextIO", GuardedStream(sys.stdout))))
                streams.enter_context(redirect_stderr(cast("TextIO", GuardedStream(sys.stderr))))
            yield
    finally:
        logging.setLogRecordFactory(usual)


def _record_without_secrets(usual: Callable[..., logging.LogRecord], *given: Any, **named: Any) -> logging.LogRecord:
    record = usual(*given, **named)
    try:
        text = record.getMessage()
    except (TypeError, ValueError, LookupError):  # values that do not fit the message, which logging itself would print
        text = f"{record.msg} {record.args}"
    record.msg, record.args = REDACTION.pieces(text), ()
    if record.exc_info and record.exc_info[0] is not None:
        record.exc_text = REDACTION.pieces("".join(traceback.format_exception(*record.exc_info)))
    return record


def _longest_first(secrets: Iterable[str]) -> list[str]:
    return sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)


def _forms(secret: str) -> Iterator[str]:
    """Yield the usual spellings of a secret."""
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret))
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode()
    if not is_short(secret):
        yield from _encodings(secret)


def _encodings(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that appear in base64, at any offset, and in hexadecimal digits."""
    data = secret.encode()
    for before in range(3):
        # The first and the last digits also encode bits of the neighbouring characters.
        digits = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        core = digits[(0, 2, 3)[before] : len(digits) - (1 if (before + len(data)) % 3 else 0)]
        yield core
        yield core.translate(str.maketrans("+/", "-_"))
    yield data.hex()
    yield data.hex().upper()


def _traces(secret: str) -> Iterator[str]:
    """Yield what remains of a secret in a text whose escapes and spaces are removed."""
    for bare in _bare(secret):
        yield bare
        # A backslash before a secret removes its first letter. What remains of a short one is part of many words.
        if bare[0] in "nrt" and len(bare) > 2 * _SHORTEST:
            yield bare[1:]
    yield from _encodings(secret)


def _bare(secret: str) -> list[str]:
    """Return the forms of a secret in a text whose escapes are undone: a secret may contain what looks like one."""
    return _undone(secret).split(_BESIDE)


def is_short(secret: str) -> bool:
    """Tell whether a secret is so short that texts without spaces, escapes and encodings contain it by chance."""
    return min(map(len, _bare(secret))) < _SHORTEST


def _is_any_in(traces: Iterable[str], text: str) -> bool:
    return any(map(text.__contains__, traces))


def _undone(text: str) -> str:
    """Return a text without spaces, and with the escapes of addresses, JSON and HTML undone."""
    if "%" in text or "+" in text:
        text = f"{unquote(unquote(text))}{_BESIDE}{unquote_plus(text)}"
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        text = _BACKSLASH.sub("", _ESCAPE.sub(lambda escape: chr(int(escape[1] or escape[2], 16)), text))
    return "".join(text.split())
