"""Texts for reports: makes a target's texts printable, and joins numbers, nouns and names."""

from __future__ import annotations

import json
import re
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Control characters, marks that reorder text on the screen, and code points that are no characters. XML forbids most
# of them, a terminal obeys some, and the others make a line look like what it is not.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)


#: A cut must save more than this many characters, because its note takes about forty.
_WORTH_A_CUT = 120
#: The partial word at the end of a cut text is dropped, unless it is very long, such as an address.
_LAST_WORD = re.compile(r"(?<=\S)\s+\S{0,40}\Z")


def visible(text: object) -> str:
    r"""Return a text with unprintable characters written as escapes, such as `\x00`; None gives an empty text."""
    if text is None:
        return ""
    return _UNSHOWABLE.sub(_escaped, str(text).replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - two hexadecimal digits


def as_json(value: object) -> str:
    """Return a value of an answer as JSON, for messages: a set as a list, and whatever else JSON lacks as a text."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except TypeError:  # a key that JSON has not
        return str(value)


def each_as_json(values: Mapping[str, object]) -> str:
    """Return named values for messages, such as `name = "one", id = 1`."""
    return ", ".join(f"{name} = {as_json(value)}" for name, value in values.items())


def _plain(value: object) -> object:
    return sorted(value, key=str) if isinstance(value, AbstractSet) else str(value)


def clip(text: object, limit: int) -> str:
    """Return a printable text of at most `limit` characters, and a note that counts the characters left out.

    The cut is at the end of a word. A text that is only a little longer is kept in full.
    """
    # Only the beginning of a very long text is escaped: escapes make a text longer, never shorter by half.
    whole = text if isinstance(text, str) else visible(text)
    looked_at = 3 * limit + _WORTH_A_CUT
    shown = visible(whole[:looked_at])
    left_out = max(0, len(whole) - looked_at)
    if not left_out and len(shown) <= limit + _WORTH_A_CUT:
        return shown
    kept = _LAST_WORD.sub("", shown[: limit + 1])[:limit]
    return f"{kept}… [{len(shown) - len(kept) + left_out} more characters in report.json]"


def one_line(text: object, limit: int = 300) -> str:
    """Return a visible text on one line, cut off after `limit` characters."""
    return clip(" ".join(visible(text).split()), limit)


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return `1 check` or `2 checks`; `nouns` is the plural if it is not the noun with an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or f'{noun}s'}"


def in_brief(texts: Sequence[str], most: int = 3) -> str:
    """Return some texts on one line; if there are more, also the number of the others."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def together(texts: Iterable[str]) -> list[str]:
    """Return texts, with those that differ only in the number at their end as one: `rules of group 3, 5`."""
    numbers: dict[str, list[int]] = {}
    for text in texts:
        what, found, number = text.rpartition(" ")
        is_numbered = found and number.isdecimal()
        numbers.setdefault(what if is_numbered else text, []).extend([int(number)] if is_numbered else [])
    return [f"{what} {', '.join(map(str, sorted(seen)))}".rstrip() for what, seen in numbers.items()]
