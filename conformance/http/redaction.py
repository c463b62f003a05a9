"""Keeps secrets out of whatever is shown: the one door to files and terminal lets no text pass that holds one."""

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
#: Of a secret that is also looked for in pieces and in other forms.
_SHORTEST = 6
_ESCAPE = re.compile(r"\\+(?:u00([0-9a-fA-F]{2})|x([0-9a-fA-F]{2}))")
_BACKSLASH = re.compile(r"\\+[nrt]?")
_BESIDE = "\0"


class Redaction:
    """
    Knows the secrets of a run, and leaves them out of texts.

    A secret is found as it is, as part of an address, of JSON or of HTML, in base64 or hexadecimal digits, with or
    without text around it, and split over lines. A very short one is found as a word of its own, and encoded whole:
    within words it would be found everywhere.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Know these secrets; empty ones are none."""
        self._secrets: set[str] = set()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Know these secrets too."""
        self._secrets |= {secret for secret in secrets if secret.strip()}
        for name in ("_as_they_are", "_short_ones", "_left_behind", "_beginnings_and_ends", "_secret_of", "_pattern"):
            self.__dict__.pop(name, None)

    def text(self, text: str) -> str:
        """Return a text with a mask in the place of each secret."""
        if self.is_in(text):
            text = self._without_traces(text)
        return self._short_ones.sub(MASK, text) if self._short_ones is not None else text

    def parts(self, text: str) -> Iterator[tuple[str, str | None]]:
        """
        Yield a text piece by piece, each with the secret that it is; None where it is none.

        A secret in another form, such as that within an address, is told like one as it is. What only `text` finds,
        such as a secret over several lines, stays in the pieces.
        """
        end = 0
        for found in self._pattern.finditer(text) if self._secrets else ():
            yield text[end : found.start()], None
            yield found.group(), self._secret_of[found.group()]
            end = found.end()
        yield text[end:], None

    def _without_traces(self, text: str) -> str:
        text = self._without(self._as_they_are, text)
        if not self.is_in(text):
            return text
        # In pieces, or escaped otherwise: where exactly it begins and ends is not worth a search that may never end.
        lines = [f"{_ALL_OF_IT}\n" if self.is_in(line) else line for line in text.splitlines(keepends=True)]
        return _ALL_OF_IT if self.is_in("".join(lines)) else "".join(lines)

    @staticmethod
    def _without(forms: Iterable[str], text: str) -> str:
        for form in forms:
            text = text.replace(form, MASK)
        return text

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
        traces, size, pieces = self._left_behind
        if not traces:
            return False
        bare = _undone(text)
        # Nearly no text has a piece of a trace, and looking for each trace takes longer. Pieces are half as long as the
        # shortest trace: wherever one stands, a whole piece of the text lies within it.
        cut = [bare[at : at + size] for at in range(0, len(bare), size)]
        if not pieces.isdisjoint(cut) and _is_any_in(traces, bare):
            return True
        # What stands behind a backslash is found as it is: undone, it may have lost its first letter.
        return "\\" in text and _is_any_in(self._as_they_are, text)

    def forget(self) -> None:
        """Know none any more."""
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
        """What finds all of these, short ones as words of their own."""
        words = (rf"(?<!\w){re.escape(form)}(?!\w)" if is_short(form) else re.escape(form) for form in self._secret_of)
        return re.compile("|".join(words))

    @cached_property
    def _short_ones(self) -> re.Pattern[str] | None:
        """What finds the same of secrets that are too short to be looked for in pieces, and within words."""
        forms = _longest_first(secret for secret in self._secrets if is_short(secret))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, forms))})(?!\w)") if forms else None

    @cached_property
    def _left_behind(self) -> tuple[frozenset[str], int, frozenset[str]]:
        """The traces of all secrets; how long the pieces of traces are that are looked for first, and all of them."""
        traces = frozenset(trace for secret in self._secrets if not is_short(secret) for trace in _traces(secret))
        size = (min(map(len, traces), default=1) + 1) // 2
        return traces, size, frozenset(each[at : at + size] for each in traces for at in range(len(each) - size + 1))


#: What this process knows of secrets: files and terminal are written through this.
REDACTION = Redaction()


def keep_in(secrets: Iterable[str]) -> None:
    """Let none of these pass to files and terminal, but for what is so short that it is found in many a text."""
    REDACTION.learn(secret for secret in secrets if not is_short(secret))


def beginning(text: str, length: int) -> str:
    """Return the beginning of a text without secrets: what was cut through would not be found any more."""
    shown = REDACTION.text(text)
    return shown if len(shown) <= length else f"{shown[:length]} ..."


class GuardedStream:
    """A stream for text that lets no secret pass."""

    def __init__(self, stream: TextIO) -> None:
        """Write to a stream."""
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
        """Be the stream in all else."""
        return getattr(self._stream, name)


@contextmanager
def guarded_logs(*, and_streams: bool) -> Iterator[None]:
    """Let no log record hold a secret meanwhile, whoever writes it where; `and_streams`, nothing that is printed."""
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
    """Yield the usual ways in which a secret is written."""
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret))
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode()
    if not is_short(secret):
        yield from _encodings(secret)


def _encodings(secret: str) -> Iterator[str]:
    """Yield what is left of a secret in base64, wherever in the text it begins, and in hexadecimal digits."""
    data = secret.encode()
    for before in range(3):
        # The first and the last digits also hold bits of what stands before and behind.
        digits = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        core = digits[(0, 2, 3)[before] : len(digits) - (1 if (before + len(data)) % 3 else 0)]
        yield core
        yield core.translate(str.maketrans("+/", "-_"))
    yield data.hex()
    yield data.hex().upper()


def _traces(secret: str) -> Iterator[str]:
    """Yield what a secret leaves in a text whose escapes and spaces are undone."""
    for bare in _bare(secret):
        yield bare
        # A backslash before it takes the letter along. What is left of a short one is found in many a word.
        if bare[0] in "nrt" and len(bare) > 2 * _SHORTEST:
            yield bare[1:]
    yield from _encodings(secret)


def _bare(secret: str) -> list[str]:
    """Return a secret as it is where escapes are undone: what looks like one may be part of it."""
    return _undone(secret).split(_BESIDE)


def is_short(secret: str) -> bool:
    """Tell whether a secret would be found by chance where spaces, escapes and encodings are not looked at."""
    return min(map(len, _bare(secret))) < _SHORTEST


def _is_any_in(traces: Iterable[str], text: str) -> bool:
    return any(map(text.__contains__, traces))


def _meant(escape: re.Match[str]) -> str:
    return chr(int(escape[1] or escape[2], 16))


def _undone(text: str) -> str:
    """Return a text with escapes of addresses, JSON and HTML undone, and without spaces."""
    if "%" in text or "+" in text:
        text = f"{unquote(unquote(text))}{_BESIDE}{unquote_plus(text)}"
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        text = _BACKSLASH.sub("", _ESCAPE.sub(_meant, text))
    return "".join(text.split())
