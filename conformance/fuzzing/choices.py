"""Random choices behind the drawn cases: a backend of Hypothesis that draws from a seed and from nothing else.

Hypothesis' own backend also draws constants out of the source of whichever modules are loaded, so that the same seed
would draw other cases from a checkout than from a wheel.
"""

from __future__ import annotations

import math
import struct
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, PrimitiveProvider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hypothesis.internal.conjecture.data import ConjectureData
    from hypothesis.internal.intervalsets import IntervalSet

#: Ranges up to this size are drawn from evenly; in larger ones, small numbers are as likely as large ones.
_SMALL_RANGE = 2**10
_LARGEST = 2**128
_LONGEST = 10_000
#: How often to draw a value that programs often get wrong, if the range has any.
_AWKWARD_SHARE = 0.1
_AWKWARD_TEXTS = (
    *("0", "-1", "1e100", "9" * 30, "NaN", "Infinity", "null", "None", "undefined", "true", "false", "__proto__"),
    *(" ", "\t", "\n", "a\r\nb", ",./;'[]\\-=<>?:\"{}|_+!@#$%^&*()`~", "\u023a", "\ufb01", "\U0001f60d"),
    *("u\u0308", "\u05e9\u05dc\u05d5\u05dd", "\u202eabc", "\ufeff", "\u03a9\u2248\u00e7", "NUL"),
)
_AWKWARD_FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.1,
    1 / 3,
    1e-5,
    1e7,
    1e308,
    -1e308,
    5e-324,
    2.0**53,
    math.inf,
    -math.inf,
)
_TRIES = 5


class SeededChoices(PrimitiveProvider):
    """Choices that depend only on the seed that a subclass names."""

    seed = 0

    def __init__(self, conjecturedata: ConjectureData | None, /) -> None:
        super().__init__(conjecturedata)
        self.random = Random(self.seed)  # noqa: S311 - drawing test data needs no secrecy

    def draw_boolean(self, p: float = 0.5) -> bool:
        """Return True with a probability."""
        return self.random.random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: Mapping[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        """Return an integer between two others."""
        low = min((max_value or 0) - _LARGEST, -_LARGEST) if min_value is None else min_value
        high = max(low + _LARGEST, _LARGEST) if max_value is None else max_value
        if weights:
            drawn = self.random.choices([None, *weights], [1 - sum(weights.values()), *weights.values()])[0]
            if drawn is not None:
                return drawn
        if high - low <= _SMALL_RANGE:
            return self.random.randint(low, high)
        if self.draw_boolean(_AWKWARD_SHARE):
            return self.random.choice((low, low + 1, high - 1, high))
        middle = min(max(shrink_towards, low), high)
        up = self.draw_boolean() if low < middle < high else middle == low
        room = high - middle if up else middle - low
        distance = min(self.random.getrandbits(self.random.randint(1, room.bit_length())), room)
        return middle + distance if up else middle - distance

    def draw_float(
        self,
        *,
        min_value: float = -math.inf,
        max_value: float = math.inf,
        allow_nan: bool = True,
        smallest_nonzero_magnitude: float,
    ) -> float:
        """Return a number between two others, or not a number."""

        def fits(value: float) -> bool:
            if math.isnan(value):
                return allow_nan
            is_between = _signed(min_value) <= _signed(value) <= _signed(max_value)
            return is_between and (value == 0 or abs(value) >= smallest_nonzero_magnitude)

        awkward = [value for value in (*_AWKWARD_FLOATS, min_value, max_value, math.nan) if fits(value)]
        if self.draw_boolean(_AWKWARD_SHARE):
            return self.random.choice(awkward)
        for _ in range(_TRIES):
            spread = self.random.uniform(max(min_value, -1e6), min(max_value, 1e6))
            anything: float = struct.unpack("d", self.random.randbytes(8))[0]
            for value in (spread, anything) if self.draw_boolean() else (anything, spread):
                if fits(value):
                    return value
        return self.random.choice(awkward)

    def draw_string(self, intervals: IntervalSet, *, min_size: int = 0, max_size: int = _LONGEST) -> str:
        """Return a text of some characters."""
        if not len(intervals):
            return ""
        if self.draw_boolean(_AWKWARD_SHARE):
            fitting = [text for text in _AWKWARD_TEXTS if min_size <= len(text) <= max_size]
            fitting = [text for text in fitting if all(ord(character) in intervals for character in text)]
            if fitting:
                return self.random.choice(fitting)
        return "".join(self._character(intervals) for _ in range(self._size(min_size, max_size)))

    def draw_bytes(self, min_size: int = 0, max_size: int = _LONGEST) -> bytes:
        """Return some bytes."""
        return self.random.randbytes(self._size(min_size, max_size))

    def _character(self, intervals: IntervalSet) -> str:
        usual = min(len(intervals), 256)
        last = len(intervals) if self.draw_boolean(0.2) else usual
        return intervals.char_in_shrink_order(self.random.randrange(last))

    def _size(self, low: int, high: int) -> int:
        average = min(max(low, 5), (high - low) / 2)
        return low + min(int(self.random.expovariate(1 / average)) if average else 0, high - low)


def _signed(value: float) -> tuple[float, float]:
    """Return a key that orders numbers and distinguishes the two zeros."""
    return value, math.copysign(1.0, value)


@contextmanager
def seeded(seed: int) -> Iterator[str]:
    """Give Hypothesis a backend that draws from a seed, and return its name."""
    name = f"conformance-{seed}"
    AVAILABLE_PROVIDERS[name] = type("SeededChoices", (SeededChoices,), {"seed": seed})
    try:
        yield name
    finally:
        del AVAILABLE_PROVIDERS[name]
