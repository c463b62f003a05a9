"""The operator's options: each is defined once, for `conformance run` and for pytest with the plugin."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from conformance.contract.yaml_files import parse_yaml
from conformance.errors import UsageError
from conformance.fuzzing.corpus import FAILED_AT_MOST, FOLDER
from conformance.http.settings import AT_ONCE
from conformance.results.parts import EMBEDDED
from conformance.results.plan import Selection, Shard
from conformance.results.subject import Subject  # noqa: TC001 - types of fields are read while the program runs
from conformance.results.trust import trusted_record
from conformance.results.verdicts import LEFT_OPEN, Verdict, add_up
from conformance.runner.location import SUITE_FOLDER, suite_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from dataclasses import Field

    import pytest


_NUMBERS: Mapping[Callable[[str], Any], str] = {int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Option:
    """An option of the command line; it sets a field of `Options`, and `options.yaml` says what it is for."""

    name: str
    help: str
    type: Callable[[str], Any]
    """Type of the given value: str, int, float or Path; bool for a switch."""
    default: Any
    repeated: bool
    """Whether the field holds a tuple of the given values, in the order of the command line."""
    parse: Callable[[str], Any] | None
    """Converts the text to the value of the field; raises UsageError when it cannot."""
    metavar: str | None = None
    """The placeholder for the value in the help."""
    choices: Sequence[str] | None = None
    least: float | None = None
    most: int | None = None
    excludes_least: bool = False
    """Whether a number has to be greater than `least`."""

    @classmethod
    def of(cls, field: Field[Any], hint: Any, row: Mapping[str, Any]) -> Option:
        """Return the option for a field of `Options`, from the type and default there and the row of the table."""
        kind = next(one for one in get_args(hint) or (hint,) if one not in (NoneType, ...))
        parse, repeated = getattr(kind, "parse", None), get_origin(hint) is tuple
        told = {"name": f"--{field.name.replace('_', '-')}", **row}
        told["help"] = row["help"].format(FAILED_AT_MOST=FAILED_AT_MOST, FOLDER=FOLDER.as_posix())
        default = None if repeated else field.default
        return cls(**told, type=str if parse else kind, default=default, repeated=repeated, parse=parse)

    def number(self, text: str) -> float:
        """Convert a text to a number, as pytest expects of a type; raise ArgumentTypeError for anything else."""
        try:
            number: float = self.type(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {_NUMBERS[self.type]}") from None
        least, most = -math.inf if self.least is None else self.least, math.inf if self.most is None else self.most
        if not math.isfinite(number) or not least <= number <= most or (self.excludes_least and number == least):
            above = f"more than {least}" if self.excludes_least else f"{least} or more"
            raise argparse.ArgumentTypeError(f"{text} is not {above if self.most is None else f'{least} to {most}'}")
        return number

    def value_of(self, given: Any) -> Any:
        """Return the value of the field for what the operator gave."""
        if self.repeated:
            return tuple(map(self.parse, given)) if self.parse else tuple(given)
        return (self.parse(given) if given else None) if self.parse else given


@dataclass(frozen=True)
class Options:
    """What the operator asks for."""

    base_url: str | None = None
    target: Path | None = None
    version: str | None = None
    as_of: str | None = None
    areas: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    seed: int | None = None
    corpus: str | None = None
    out: Path | None = None
    max_examples: int = 15
    fuzz_seconds: float = 10.0
    concurrency: int = AT_ONCE
    shard: Shard | None = None
    resume: Path | None = None
    minutes: float | None = None
    max_requests: int | None = None
    max_rps: float | None = None
    baseline: Path | None = None
    fail_on: str = "any"
    subjects: tuple[Subject, ...] = ()
    read_only: bool = False
    confirm: str | None = None
    no_restore: bool = False
    failed: Path | None = None
    force: bool = False
    workers: int = 1
    """How many processes run tests side by side, each in a world of its own."""
    arguments: tuple[str, ...] = ()
    """All arguments that pytest was given, except where the suite lies."""
    pytest_arguments: tuple[str, ...] = ()
    """Those of them that are pytest's own, as the operator gave them after `--`; also from the environment."""

    @property
    def selection(self) -> Selection:
        """What the operator selected."""
        has_target = self.target is not None or self.base_url is not None
        again = _left_by(self.failed, has_target=has_target) if self.failed else None
        return Selection(
            self.areas, self.requirements, "slow" in self.include, again, str(self.failed or ""), self.shard
        )

    @property
    def command(self) -> str:
        """The command that repeats this run, without its seed, its output folder and its verbosity."""
        left_out = {_BY_AREA, "-q", "-v", *self.pytest_arguments}
        kept = [
            argument
            for argument in self.arguments
            if argument not in left_out
            and not _WORKERS.fullmatch(argument)
            and not argument.startswith(("--resume=", "--out="))
        ]
        kept += ["--workers", str(self.workers)] if self.workers > 1 else []
        behind = ["--", *self.pytest_arguments] if self.pytest_arguments else []
        return shlex.join(["conformance", "run", *kept, *behind])


def _options() -> Mapping[str, Option]:
    text = files("conformance.runner").joinpath("options.yaml").read_text(encoding="utf-8")
    table, hints = parse_yaml(text, "options.yaml"), get_type_hints(Options)
    return {one.name: Option.of(one, hints[one.name], table[one.name]) for one in fields(Options) if one.name in table}


#: The options by their field of `Options`.
OPTIONS = _options()
#: The options that only the command gives to pytest.
_BY_AREA, _WORKERS = "--by-area", re.compile(r"-n\d+")


def add_options(parser: pytest.Parser) -> None:
    """Add the suite's options to pytest's own."""
    group = parser.getgroup("conformance", "specification conformance")
    group.addoption(_BY_AREA, action="store_true", help="show progress by area instead of a sign for each test")
    for option in OPTIONS.values():
        if option.type is bool:
            group.addoption(option.name, action="store_true", help=option.help)
            continue
        group.addoption(
            option.name,
            action="append" if option.repeated else "store",
            type=option.number if option.type in (int, float) else option.type,
            default=[] if option.repeated else option.default,
            choices=option.choices,
            metavar=option.metavar,
            help=option.help,
        )


def options_of(config: pytest.Config, workers: int = 1) -> Options:
    """Return what the operator asked pytest for; `workers` is how many processes pytest-xdist was told to start."""
    arguments = _of_the_operator([str(argument) for argument in config.invocation_params.args])
    return Options(
        **{name: option.value_of(config.getoption(option.name)) for name, option in OPTIONS.items()},
        workers=workers,
        arguments=arguments,
        pytest_arguments=(*_of_pytest(arguments), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))),
    )


@cache
def _left_by(folder: Path, *, has_target: bool) -> frozenset[str]:
    """Return the requirements that failed or stayed open in an earlier run.

    Raise UsageError when there are none, when there is no such run, or when only that run had a target.
    """
    record = trusted_record(folder)
    if not has_target and EMBEDDED not in (record.header.version_source or EMBEDDED):
        raise UsageError(f"The run in {folder} was against {record.header.base_url}. Name its profile with --target.")
    rows = add_up(record).rows_with(*_LEFT)
    left = frozenset(row.requirement.id for row in rows if row.requirement.selected)
    if not left:
        raise UsageError(f"Nothing failed or stayed open in {folder}: there is nothing to repeat.")
    return left


_LEFT = (Verdict.FAILED, *LEFT_OPEN)


def _of_the_operator(arguments: list[str]) -> tuple[str, ...]:
    """Drop what the command adds by itself, and write an option and its value in one word, as the command does.

    Where the suite lies matters neither to readers of a report nor to somebody who resumes the run on another machine.
    """
    own = suite_arguments()
    rest = arguments[len(own) :] if arguments[: len(own)] == own else arguments
    with_value = {option.name for option in OPTIONS.values() if option.type is not bool}
    found: list[str] = []
    for word in rest:
        if found and found[-1] in with_value:
            found[-1] = f"{found[-1]}={word}"
        elif not _is_the_suite(word, found):
            found.append(word)
    return tuple(found)


def _is_the_suite(word: str, before: list[str]) -> bool:
    """Tell whether a word is the path of the suite, and not the value of an option, such as `tests` in `-k tests`."""
    is_value = bool(before) and before[-1].startswith("-") and "=" not in before[-1]
    return word == str(SUITE_FOLDER) or (Path(word).resolve() == SUITE_FOLDER and not is_value)


def _of_pytest(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return only pytest's own arguments; options of the suite may stand among them."""
    switches = {"-q", "-v", _BY_AREA, *(option.name for option in OPTIONS.values() if option.type is bool)}
    with_value = {option.name for option in OPTIONS.values()} - switches
    return tuple(
        argument
        for argument in arguments
        if argument.partition("=")[0] not in with_value
        and argument not in switches
        and not _WORKERS.fullmatch(argument)
    )
