"""Parameter types and helpers for the options of commands, also for those that pytest takes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from conformance.errors import UsageError
from conformance.runner.options import OPTIONS

if TYPE_CHECKING:
    from click.core import Context, Parameter

    from conformance.runner.options import Option


class Place(click.Path):
    """A path. An empty text, as of a variable without a value, would mean the present folder."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        """Convert a text to a path; fail when it is empty."""
        if value == "":
            self.fail("it is empty. Name a file or folder; is a variable without a value in its place?", param, ctx)
        return super().convert(value, param, ctx)


#: A file or folder.
PLACE = Place(path_type=Path)
#: The option of a command that tells people or programs.
FORM = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


class Number(click.FloatRange):
    """A range of numbers without infinity and NaN, which pass click's comparisons."""

    name = "number"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        """Convert a text to a number; fail when it is not one, or outside the range."""
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)


def refuse_beside(where: str, *names: str) -> None:
    """Raise UsageError if one of these options was given although it has no effect together with another one."""
    context = click.get_current_context()
    for option in context.command.params:
        is_given = option.name in names and context.get_parameter_source(option.name) is not ParameterSource.DEFAULT
        if is_given:
            raise UsageError(f"{option.opts[-1]} means nothing {where}. Leave it out.")


def shared_with_pytest(*names: str) -> list[click.Option]:
    """Return the options for these fields of `Options`, which pytest takes as well, as options of a command."""
    return [_as_parameter(name, OPTIONS[name]) for name in names]


def _as_parameter(field: str, option: Option) -> click.Option:
    kinds: dict[object, click.ParamType[Any]] = {
        int: click.IntRange(int(option.least), option.most) if option.least is not None else click.INT,
        float: Number(option.least, option.most, min_open=option.excludes_least),
        Path: PLACE,
        str: click.Choice(option.choices) if option.choices else click.STRING,
    }
    return click.Option(
        [option.name, field],
        type=kinds.get(option.type),
        is_flag=option.type is bool,
        # With several targets, each has a run of its own.
        multiple=option.repeated or field == "target",
        default=option.default,
        show_default=option.default is not None,
        metavar=option.metavar,
        help=option.help,
    )
