"""What the operator can ask for, and how pytest hears of it."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from conformance.errors import UsageError
from conformance.http.settings import AT_ONCE
from conformance.results.parts import EMBEDDED
from conformance.results.plan import Selection, Shard
from conformance.results.reading import read_record
from conformance.results.subject import Subject
from conformance.results.verdicts import Verdict, add_up
from conformance.runner.location import suite_arguments

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class Options:
    """What the operator asks for."""

    base_url: str | None = None
    target: Path | None = None
    version: str | None = None
    """Version of the target: a version, `unknown`, or `auto`."""
    as_of: str | None = None
    """Another version to judge the target by, which it need not have."""
    areas: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    """What is off by default and wanted all the same."""
    seed: int | None = None
    out: Path | None = None
    max_examples: int = 30
    fuzz_seconds: float = 10.0
    concurrency: int = AT_ONCE
    minutes: float | None = None
    """After which no test is begun any more."""
    max_requests: int | None = None
    """How many requests are sent at most."""
    max_rps: float | None = None
    """How many of them in a second."""
    corpus: str | None = None
    """Folder of the cases that are kept from run to run; `none` keeps nothing, None is the default folder."""
    baseline: Path | None = None
    """The list of what is known to fail."""
    fail_on: str = "any"
    """Whether `any` failure fails the run, or only a `new` one."""
    failed: Path | None = None
    """The folder of an earlier run: only what failed or stayed open in it."""
    force: bool = False
    """Whether to run although the target contradicts the profile."""
    read_only: bool = False
    """Whether nothing may be sent that could change the target."""
    subjects: tuple[Subject, ...] = ()
    """What exactly is tested: builds, images or commits, each with its digest."""
    confirm: str | None = None
    """The host that the operator allows to be changed."""
    no_restore: bool = False
    """Whether to leave what earlier runs have left open."""
    shard: Shard | None = None
    """The part of the plan that is to run."""
    resume: Path | None = None
    """The folder of an interrupted run of these options that is to be gone on with."""
    workers: int = 1
    """How many processes run tests side by side, each in a world of its own."""
    arguments: tuple[str, ...] = ()
    """Everything that pytest was given beyond where the suite lies."""
    pytest_arguments: tuple[str, ...] = ()
    """What of it is pytest's own, as the operator gave it behind `--`; also from the environment."""

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
        """The command that makes the same run again, but for its seed."""
        left_out = {"--by-area", *self.pytest_arguments}
        kept = [
            argument
            for argument in self.arguments
            if argument not in left_out and not _WORKERS.fullmatch(argument) and not argument.startswith("--resume=")
        ]
        kept += ["--workers", str(self.workers)] if self.workers > 1 else []
        behind = ["--", *self.pytest_arguments] if self.pytest_arguments else []
        return shlex.join(["conformance", "run", *kept, *behind])


def add_options(parser: pytest.Parser) -> None:
    """Add the suite's options to pytest's own."""
    group = parser.getgroup("conformance", "specification conformance")
    group.addoption("--base-url", help="address of the service under test, above /api/v4")
    group.addoption("--target", type=Path, help="target profile; the embedded reference is tested without one")
    group.addoption("--target-version", help="version of the service, such as 17.7, 'auto' or 'unknown'")
    group.addoption("--as-of", help="judge by another version than the target has, as upgrade readiness does")
    group.addoption("--area", action="append", default=[], help="only this area; may be repeated")
    group.addoption(
        "--requirement", action="append", default=[], help="only tests of this requirement; may be repeated"
    )
    group.addoption(
        "--include",
        action="append",
        default=[],
        choices=["slow"],
        help="also what is off by default: slow, such as the completion rate limit, which takes minutes and many calls",
    )
    group.addoption("--seed", type=int, help="repeats the random choices of an earlier run")
    group.addoption("--out", type=Path, help="folder for the reports of this run")
    group.addoption("--corpus", help="folder of the drawn cases that later runs send again, or 'none'")
    group.addoption("--by-area", action="store_true", help="show progress by area instead of a sign for each test")
    group.addoption("--max-examples", type=int, default=30, help="drawn cases per operation and state machine")
    group.addoption("--fuzz-seconds", type=float, default=10.0, help="time limit for the drawn cases of one operation")
    group.addoption("--concurrency", type=int, default=AT_ONCE, help="how many calls may be under way at once")
    group.addoption("--minutes", type=float, help="begin no test after so many minutes")
    group.addoption("--max-requests", type=int, help="send so many requests at most, beside the look at the profile")
    group.addoption("--max-rps", type=float, help="send so many requests a second at most")
    group.addoption("--baseline", type=Path, help="list of requirements that are known to fail, with reasons")
    group.addoption("--fail-on", choices=["any", "new"], default="any", help="which failures fail the run")
    group.addoption("--subject", action="append", default=[], help="what exactly is tested, as NAME=DIGEST")
    group.addoption("--confirm", help="allow changes on a target of this host, from now on")
    group.addoption("--no-restore", action="store_true", help="do not put back what an earlier run left changed")
    group.addoption("--failed", type=Path, help="only what failed or stayed open in the run of this folder")
    group.addoption("--force", action="store_true", help="run although the target contradicts the profile")
    group.addoption("--shard", help="run one part of several of the plan, such as 2/8")
    group.addoption("--resume", type=Path, help="keep what came to a result in an interrupted run of these options")
    group.addoption("--read-only", action="store_true", help="send nothing that could change the target")


#: Fields whose value is that of the option of their name.
_TAKEN_AS_GIVEN = (
    *("base_url", "target", "as_of", "seed", "out", "max_examples", "fuzz_seconds", "concurrency", "minutes"),
    *("max_requests", "max_rps", "corpus", "baseline", "fail_on", "failed", "force", "read_only", "confirm"),
    *("no_restore", "resume"),
)


def options_of(config: pytest.Config, workers: int = 1) -> Options:
    """Return what the operator asked pytest for; `workers` is how many processes pytest-xdist was told to start."""
    option = config.getoption
    given = _of_the_operator([str(argument) for argument in config.invocation_params.args])
    return Options(
        **{name: option(f"--{name.replace('_', '-')}") for name in _TAKEN_AS_GIVEN},
        version=option("--target-version"),
        areas=tuple(option("--area")),
        requirements=tuple(option("--requirement")),
        include=tuple(option("--include")),
        subjects=tuple(Subject.parse(text) for text in option("--subject")),
        shard=Shard.parse(option("--shard")) if option("--shard") else None,
        workers=workers,
        arguments=given,
        pytest_arguments=(*_of_pytest(given), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))),
    )


@cache
def _left_by(folder: Path, *, has_target: bool) -> frozenset[str]:
    """
    Return what failed or stayed open in an earlier run.

    Raise UsageError where nothing did, there is none, or that run had a target and this one would test the reference.
    """
    record = read_record(folder / "results.jsonl" if folder.is_dir() else folder)
    if not has_target and EMBEDDED not in (record.header.version_source or EMBEDDED):
        raise UsageError(f"The run in {folder} was against {record.header.base_url}. Name its profile with --target.")
    rows = add_up(record).rows_with(*_LEFT)
    left = frozenset(row.requirement.id for row in rows if row.requirement.selected)
    if not left:
        raise UsageError(f"Nothing failed or stayed open in {folder}: there is nothing to repeat.")
    return left


_LEFT = (Verdict.FAILED, Verdict.UNSTABLE, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)


def _of_the_operator(arguments: list[str]) -> tuple[str, ...]:
    """Leave out what the command adds by itself: where the suite lies is no business of who reads a report."""
    own = suite_arguments()
    return tuple(arguments[len(own) :] if arguments[: len(own)] == own else arguments)


class _Names:
    """Stands for a parser of pytest where only the names of options are wanted."""

    def __init__(self) -> None:
        self.flags: set[str] = {"-q", "-v"}
        self.with_value: set[str] = set()

    def getgroup(self, *_: str) -> _Names:
        """Be the group as well."""
        return self

    def addoption(self, name: str, **settings: Any) -> None:
        """Keep the name of an option."""
        (self.flags if settings.get("action") == "store_true" else self.with_value).add(name)


@cache
def _of_the_suite() -> _Names:
    names = _Names()
    add_options(cast("pytest.Parser", names))
    return names


#: What the command makes of --workers.
_WORKERS = re.compile(r"-n\d+")


def _of_pytest(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return those arguments that are pytest's own, whatever the suite's options are among them."""
    found, is_value, own = [], False, _of_the_suite()
    for argument in arguments:
        is_ours = argument.partition("=")[0] in own.with_value
        if not is_value and not is_ours and argument not in own.flags and not _WORKERS.fullmatch(argument):
            found.append(argument)
        is_value = is_ours and "=" not in argument
    return tuple(found)
