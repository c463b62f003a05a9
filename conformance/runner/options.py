"""What the operator can ask for, and how pytest hears of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.http.client import AT_ONCE
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
    corpus: str | None = None
    """Folder of the cases that are kept from run to run; `none` keeps nothing, None is the default folder."""
    known_failures: Path | None = None
    """The list of what is known to fail."""
    read_only: bool = False
    """Whether nothing may be sent that could change the target."""
    arguments: tuple[str, ...] = ()


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
    group.addoption("--known-failures", type=Path, help="list of requirements that are known to fail, with reasons")
    group.addoption("--read-only", action="store_true", help="send nothing that could change the target")


def options_of(config: pytest.Config) -> Options:
    """Return what the operator asked pytest for."""
    option = config.getoption
    return Options(
        base_url=option("--base-url"),
        target=option("--target"),
        version=option("--target-version"),
        as_of=option("--as-of"),
        areas=tuple(option("--area")),
        requirements=tuple(option("--requirement")),
        include=tuple(option("--include")),
        seed=option("--seed"),
        out=option("--out"),
        max_examples=option("--max-examples"),
        fuzz_seconds=option("--fuzz-seconds"),
        concurrency=option("--concurrency"),
        minutes=option("--minutes"),
        corpus=option("--corpus"),
        known_failures=option("--known-failures"),
        read_only=option("--read-only"),
        arguments=_of_the_operator([str(argument) for argument in config.invocation_params.args]),
    )


def _of_the_operator(arguments: list[str]) -> tuple[str, ...]:
    """Leave out what the command adds by itself: where the suite lies is no business of who reads a report."""
    own = suite_arguments()
    return tuple(arguments[len(own) :] if arguments[: len(own)] == own else arguments)
