"""The operator's options: each is defined once, for `conformance run` and for pytest with the plugin."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.errors import UsageError
from conformance.fuzzing.corpus import FAILED_AT_MOST, FOLDER
from conformance.http.settings import AT_ONCE
from conformance.results.parts import EMBEDDED
from conformance.results.plan import Selection, Shard
from conformance.results.subject import Subject
from conformance.results.trust import record_in, trusted_record
from conformance.results.verdicts import LEFT_OPEN, Verdict, add_up
from conformance.runner.location import SUITE_FOLDER, suite_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest


_NUMBERS: Mapping[Callable[[str], Any], str] = {int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Option:
    """An option of the command line; it sets a field of `Options`."""

    name: str
    help: str
    type: Callable[[str], Any] = str
    """Type of the given value: str, int, float or Path; bool for a switch."""
    default: Any = None
    metavar: str | None = None
    """The placeholder for the value in the help."""
    repeated: bool = False
    """Whether the field holds a tuple of the given values, in the order of the command line."""
    choices: tuple[str, ...] | None = None
    least: int | None = None
    most: int | None = None
    excludes_least: bool = False
    """Whether a number has to be greater than `least`."""
    parse: Callable[[str], Any] | None = None
    """Converts the text to the value of the field; raises UsageError when it cannot."""

    @property
    def field(self) -> Any:
        """The dataclass field for this option."""
        return field(default=() if self.repeated else self.default, metadata={"option": self})

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

    base_url: str | None = Option(
        "--base-url",
        "Address of the service, above /api/v4. Overrides the one in the profile (--target; by default ./target.yaml).",
    ).field
    target: Path | None = Option(
        "--target",
        "Target profile. Without one: the embedded reference. May be repeated: the targets are tested side by side "
        "and compared.",
        Path,
    ).field
    version: str | None = Option(
        "--target-version", "Version of the service: 17.7, 'auto' or 'unknown'.", metavar="V"
    ).field
    as_of: str | None = Option(
        "--as-of", "Judge by this version instead of the one that the target has. Upgrade readiness uses it."
    ).field
    areas: tuple[str, ...] = Option("--area", "Only this area. May be repeated.", repeated=True).field
    requirements: tuple[str, ...] = Option(
        "--requirement", "Only tests of this requirement. May be repeated.", metavar="ID", repeated=True
    ).field
    include: tuple[str, ...] = Option(
        "--include", "Also run tests that take minutes or many calls.", repeated=True, choices=("slow",)
    ).field
    seed: int | None = Option(
        "--seed", "Seed of the random choices. With one, no cases of other runs are repeated (see --corpus).", int
    ).field
    corpus: str | None = Option(
        "--corpus",
        "Folder in which each run stores the cases that it draws; 'none' stores and repeats nothing. Without --seed, "
        "a run also repeats, for the same contract and version: all cases that failed before (at most "
        f"{FAILED_AT_MOST} per operation), and the newest others (a quarter of --max-examples per operation).  "
        f"[default: {FOLDER.as_posix()}]",
        metavar="DIR",
    ).field
    out: Path | None = Option("--out", "Folder for the reports. By default reports/TARGET/TIME.", Path).field
    max_examples: int = Option("--max-examples", "New drawn cases per operation.", int, least=1, default=20).field
    fuzz_seconds: float = Option(
        "--fuzz-seconds",
        "Seconds to draw the cases of one operation. Tests that follow a model are limited by --max-examples.",
        float,
        least=0,
        default=10.0,
    ).field
    concurrency: int = Option(
        "--concurrency", "Most calls at the same time.", int, least=1, most=128, default=AT_ONCE
    ).field
    shard: Shard | None = Option(
        "--shard",
        "Run part K of N equal parts of the plan, in world K. Needs --seed, the same for all parts. "
        "`conformance merge` makes one run of the parts.",
        metavar="K/N",
        parse=Shard.parse,
    ).field
    resume: Path | None = Option(
        "--resume",
        "Continue an interrupted run with its options, seed and worlds. Tests that have a result are not repeated.",
        Path,
        metavar="FOLDER",
    ).field
    minutes: float | None = Option(
        "--minutes",
        "Start no test after N minutes. The tests that are left are not tested, and the run is incomplete.",
        float,
        metavar="N",
        least=0,
        excludes_least=True,
    ).field
    max_requests: int | None = Option(
        "--max-requests",
        "Send at most N requests, not counting the check of the profile and what puts changes back. The tests that "
        "are left are not tested, and the run is incomplete.",
        int,
        metavar="N",
        least=1,
    ).field
    max_rps: float | None = Option(
        "--max-rps", "Send at most N requests a second.", float, metavar="N", least=0, excludes_least=True
    ).field
    baseline: Path | None = Option(
        "--baseline",
        "List of requirements that are known to fail, each with reason, owner and expiry date. `conformance baseline` "
        "writes one from a run. The report names entries that have expired and requirements that hold again.",
        Path,
        metavar="FILE",
    ).field
    fail_on: str = Option(
        "--fail-on",
        "Fail the run for any failure, or only for failures that are not in the baseline.",
        choices=("any", "new"),
        default="any",
    ).field
    subjects: tuple[Subject, ...] = Option(
        "--subject",
        "What is tested, for the compliance report: a build, an image or a commit. May be repeated.",
        metavar="NAME=DIGEST",
        repeated=True,
        parse=Subject.parse,
    ).field
    read_only: bool = Option(
        "--read-only",
        "Send only GET and HEAD. What needs more is not tested ('unsafe in this mode').",
        bool,
        default=False,
    ).field
    confirm: str | None = Option(
        "--confirm",
        "Allow this run to change settings, lists and rules on this host, and to make groups that it removes again, "
        "although the profile does not say `disposable: true`. Needed once per host.",
        metavar="HOST",
    ).field
    no_restore: bool = Option(
        "--no-restore", "Do not put back what an earlier run changed and left.", bool, default=False
    ).field
    failed: Path | None = Option(
        "--failed", "Run only what failed or stayed open in the run of this folder.", Path, metavar="FOLDER"
    ).field
    force: bool = Option(
        "--force", "Run although the target contradicts the profile. The headline says so.", bool, default=False
    ).field
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


#: The options by their field of `Options`.
OPTIONS: Mapping[str, Option] = {
    each.name: each.metadata["option"] for each in fields(Options) if "option" in each.metadata
}
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
    """
    Return the requirements that failed or stayed open in an earlier run.

    Raise UsageError when there are none, when there is no such run, or when only that run had a target.
    """
    record = trusted_record(record_in(folder), Contract.load())
    if not has_target and EMBEDDED not in (record.header.version_source or EMBEDDED):
        raise UsageError(f"The run in {folder} was against {record.header.base_url}. Name its profile with --target.")
    rows = add_up(record).rows_with(*_LEFT)
    left = frozenset(row.requirement.id for row in rows if row.requirement.selected)
    if not left:
        raise UsageError(f"Nothing failed or stayed open in {folder}: there is nothing to repeat.")
    return left


_LEFT = (Verdict.FAILED, *LEFT_OPEN)


def _of_the_operator(arguments: list[str]) -> tuple[str, ...]:
    """
    Drop what the command adds by itself, and write an option and its value in one word, as the command does.

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
