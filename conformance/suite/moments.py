"""Timestamps as a target writes them: the same instant may be written in several ways."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_SECONDS: Final = re.compile(r"T\d{2}:?\d{2}:?\d{2}")
_FRACTION: Final = re.compile(r"[.,](\d+)")
_DIGITS_KEPT = 6  # a datetime is no more precise
_MINUTE: Final = timedelta(minutes=1)
#: How far apart the clocks of two machines behind one target may be.
_BETWEEN_CLOCKS: Final = timedelta(minutes=20)


class Moment(str):
    """A timestamp that equals another one of the same instant, whatever its zone and number of digits.

    Several machines may answer for one target, each in its own zone. Two timestamps are compared with the precision of
    the coarser one; a text that is no timestamp equals only itself.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Tell whether both are the same instant, at the precision of the coarser one."""
        if not isinstance(other, str):
            return NotImplemented
        ours, theirs = _read(self), _read(other)
        if ours is None or theirs is None:
            return str(self) == str(other)
        step = max(_step(self), _step(other))
        return _cut(ours, step) == _cut(theirs, step)

    def __ne__(self, other: object) -> bool:
        """Tell whether they are two instants; without this, the letters of the texts would be compared."""
        return not self == other

    def __hash__(self) -> int:
        """Return the same hash for all timestamps that may be equal: none is coarser than a minute."""
        read = _read(self)
        return hash(str(self) if read is None else _cut(read, _MINUTE))


def is_later(one: object, other: object) -> bool | None:
    """Tell whether a timestamp is later than another one, by more than clocks may differ.

    Return None when one of them is no timestamp, or has no zone.
    """
    first, second = (_read(text) if isinstance(text, str) else None for text in (one, other))
    return None if first is None or second is None else first - second > _BETWEEN_CLOCKS


def _read(text: str) -> datetime | None:
    """Return the instant that a text names; None when it names none, or has no zone."""
    try:
        found = datetime.fromisoformat(text)
        return None if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _step(text: str) -> timedelta:
    """Return the smallest difference between two timestamps of this precision."""
    if not _SECONDS.search(text):
        return _MINUTE
    fraction = _FRACTION.search(text)
    digits = min(len(fraction[1]), _DIGITS_KEPT) if fraction else 0
    return timedelta(microseconds=10 ** (_DIGITS_KEPT - digits))


def _cut(moment: datetime, step: timedelta) -> timedelta:
    """Return a timestamp rounded down to a step."""
    since = moment - datetime.min.replace(tzinfo=UTC)
    return since - since % step
