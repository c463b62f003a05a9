"""Numbers as options of commands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.core import Context, Parameter


class Number(click.FloatRange):
    """A range of numbers, among which neither infinity is nor what is no number: any comparison lets that pass."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        """Return the number of a text; refuse one that is outside the range, or is none."""
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)
