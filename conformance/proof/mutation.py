"""
Mutation from outside our own heads: a tool's changes of the reference's code, with the suite to see them.

`python -m conformance.proof.mutation --sample 40` draws so many places of the reference's areas at random, lets
cosmic-ray change each in one way of its own, and runs the suite against each changed reference until a check fails.
What no check sees is shown as a difference of lines, to be examined by hand: docs/mutation.md says what the examined
ones came to. Needs the extra `mutation`, and a system that can fork.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import io
import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import pytest

from conformance.contract import Contract
from conformance.errors import ConformanceError, UsageError
from conformance.proof.faults import Ground
from conformance.reference import areas
from conformance.results.record import Check, Outcome
from conformance.runner import plugin as pytest_plugin
from conformance.runner.location import suite_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess
    from types import CodeType

_FOLDER = Path(areas.__file__).parent
_PACKAGE = areas.__name__
#: The version that the reference has by itself, one before half of the removals and introductions, and the last.
VERSIONS = ("17.7", "15.9", "19.0")
#: What is loaded again in a process of its own, with one module changed.
_LOADED_AGAIN = ("conformance.reference", "conformance.target.embedded", "conformance.proof.matrix")
_AT_LEAST_SECONDS, _TIMES_AS_LONG = 60.0, 4
_LOOK_AFTER_SECONDS, _LONGEST_LOOK_SECONDS = 0.05, 5.0
_OPEN = (Outcome.INCONCLUSIVE, Outcome.NOT_TESTED)


# -- what is changed ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one module that the tool knows to make."""

    module: str
    """Name of a module of the reference's areas."""
    operator: str
    """The tool's name for the kind of change."""
    occurrence: int
    """Which of the places in the module where the operator fits, from 0."""
    line: int
    column: int

    @property
    def place(self) -> tuple[str, int, int]:
        """Where it changes something, whichever way."""
        return self.module, self.line, self.column


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module after its change."""

    mutation: Mutation
    source: str
    difference: str
    """The changed lines, as `diff -u` shows them."""


def mutations_of(module: str) -> tuple[Mutation, ...]:
    """
    Return every change that the tool knows to make in a module of the areas, without those that change no behaviour.

    Annotations are left out, which nobody evaluates, and so is what only a type checker runs. Raise UsageError where
    the tool is not installed.
    """
    plugins, syntax = _tool("cosmic_ray.plugins"), _tool("cosmic_ray.ast")
    source = _source_of(module)
    lines = source.splitlines()
    nodes = tuple(syntax.ast_nodes(syntax.get_ast(source)))
    found = []
    for name in sorted(plugins.operator_names()):
        kind = plugins.get_operator(name)
        if kind.arguments():
            continue
        operator = kind()
        places = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (node, (line, column)) in enumerate(places):
            if not _is_annotation(node) and "TYPE_CHECKING" not in lines[line - 1]:
                found.append(Mutation(module, name, occurrence, line, column))
    return tuple(found)


def _is_annotation(node: Any) -> bool:
    """Tell whether a node of the tool's syntax tree is part of an annotation."""
    while (parent := node.parent) is not None:
        if parent.type == "tfpdef" and node is parent.children[-1]:
            return True
        if parent.type == "annassign" and node is parent.children[1]:
            return True
        if parent.type == "funcdef" and node is parent.annotation:
            return True
        node = parent
    return False


def drawn(mutations: Iterable[Mutation], number: int, seed: int) -> tuple[Mutation, ...]:
    """
    Draw so many places at random, and one change of each.

    By place and not by change: where a comparison stands the tool knows seven others, and each tells much the same.
    """
    places: dict[tuple[str, int, int], list[Mutation]] = {}
    for mutation in mutations:
        places.setdefault(mutation.place, []).append(mutation)
    chance = random.Random(seed)  # noqa: S311 - a sample, and no secret
    order = sorted(places)
    chance.shuffle(order)
    return tuple(chance.choice(places[place]) for place in order[:number])


def mutant_of(mutation: Mutation) -> Mutant | None:
    """Make the change. None where what comes out is no Python, or is what went in."""
    before = _source_of(mutation.module)
    operator = _tool("cosmic_ray.plugins").get_operator(mutation.operator)()
    after = _tool("cosmic_ray.mutating").mutate_code(before, operator, mutation.occurrence)
    if after is None or after == before:
        return None
    try:
        compile(after, mutation.module, "exec")
    except SyntaxError:
        return None
    return Mutant(mutation, after, _difference(mutation.module, before, after))


def _difference(module: str, before: str, after: str) -> str:
    name = f"areas/{module}.py"
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="", n=2))


def _source_of(module: str) -> str:
    return (_FOLDER / f"{module}.py").read_text(encoding="utf-8")


def _tool(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{name} cannot be loaded ({error}). Install the extra `mutation` of this project: it brings cosmic-ray."
        ) from error


class Changed(SourceFileLoader):
    """A finder and loader that gives one module another source than its file holds."""

    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self._source = source

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Answer for the one module, and leave all others to who comes next."""
        return importlib.util.spec_from_loader(fullname, self) if fullname == self.name else None

    def get_code(self, _fullname: str) -> CodeType:
        """Compile the other source, past every cache."""
        return compile(self._source, self.path, "exec", dont_inherit=True)


# -- who sees it -------------------------------------------------------------------------------------------------------


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    """A check failed that holds without the change: the run would be non-conformant."""
    UNVERIFIED = "not verified"
    """No check failed, but a requirement is verified no more: the run would be incomplete, and not green."""
    SURVIVED = "survived"
    """The suite sees no difference."""
    INCOMPETENT = "incompetent"
    """The changed reference does not start."""
    HUNG = "hung"
    """The suite did not come to its end in time."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a process says of the mutant that it tried."""

    fate: Fate
    by: str = ""
    """The test that saw it, or the requirements that nobody verifies any more."""
    reason: str = ""
    seconds: float = 0.0


@dataclass
class Seen:
    """What the suite came to, test after test, against one reference."""

    failed: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of each test: the requirements that failed."""
    seconds: dict[str, float] = field(default_factory=dict)
    _passed: set[str] = field(default_factory=set)
    _open: set[str] = field(default_factory=set)

    @property
    def verified(self) -> frozenset[str]:
        """Requirements that some test verified, and that none left open."""
        return frozenset(self._passed - self._open)

    def add(self, test: str, checks: Collection[Check], seconds: float) -> None:
        """Take in what one test checked."""
        self.failed[test] = frozenset(check.requirement for check in checks if check.outcome is Outcome.FAILED)
        self.seconds[test] = seconds
        self._passed |= {check.requirement for check in checks if check.outcome is Outcome.PASSED and check.claimed}
        self._open |= {check.requirement for check in checks if check.outcome in _OPEN}


def likeness(module: str, areas_of_test: Iterable[str]) -> int:
    """Return how many words the name of a module shares with the areas that a test is about: a guess who sees it."""
    words = {word.rstrip("s") for word in module.split("_")}
    return max((len(words & {word.rstrip("s") for word in area.split("-")}) for area in areas_of_test), default=0)


@dataclass
class Killer:
    """A pytest plugin that runs the collected tests against one mutant after another, each in a process of its own."""

    version: str
    mutants: Sequence[Mutant]
    jobs: int
    tell: Callable[[Mutant, Told], None]
    _items: Sequence[pytest.Item] = ()
    _areas: dict[str, set[str]] = field(default_factory=dict)
    _healthy: Seen = field(default_factory=Seen)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Say that the tests are run here."""
        config.stash[pytest_plugin.RUNS_ELSEWHERE] = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop: the reference as it is first, then the mutants."""
        self._items = session.items
        contract = Contract.load()
        for requirement, tests in session.config.stash[pytest_plugin.ALL_CLAIMS].items():
            for test in tests:
                self._areas.setdefault(test, set()).add(contract.requirements[requirement].area)
        process, answer = self._begin(self._look_at_healthy)
        self._healthy = answer.recv()
        process.join()
        unhealthy = sorted(set[str]().union(*self._healthy.failed.values()))
        if unhealthy:
            raise UsageError(f"These fail on the reference as it is, so that nothing is shown: {', '.join(unhealthy)}.")
        self._work()
        return True

    def _begin(self, act: Callable[..., None], *arguments: Any) -> tuple[ForkProcess, Connection]:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_quietly, args=(act, theirs, *arguments), daemon=True)
        process.start()
        theirs.close()
        return process, ours

    def _work(self) -> None:
        """Keep so many processes at work, and end those that do not come to an end."""
        longest = max(_AT_LEAST_SECONDS, _TIMES_AS_LONG * sum(self._healthy.seconds.values()))
        waiting = list(self.mutants)
        at_work: list[tuple[Mutant, ForkProcess, Connection, float]] = []
        awake, looked = 0.0, time.monotonic()
        while waiting or at_work:
            # A job that is stopped for a while, with all its processes, has not hung.
            awake += min(time.monotonic() - looked, _LONGEST_LOOK_SECONDS)
            looked = time.monotonic()
            while waiting and len(at_work) < self.jobs:
                mutant = waiting.pop(0)
                at_work.append((mutant, *self._begin(self._try, mutant), awake))
            for entry in list(at_work):
                mutant, process, answer, began = entry
                told = _said(answer, process, awake - began, longest)
                if told is not None:
                    at_work.remove(entry)
                    self.tell(mutant, told)

    # -- in the other process ------------------------------------------------------------------------------------------

    def _look_at_healthy(self, answer: Connection) -> None:
        answer.send(self._run(self._items, lambda _test, _checks: None))

    def _try(self, answer: Connection, mutant: Mutant) -> None:
        module = f"{_PACKAGE}.{mutant.mutation.module}"
        sys.meta_path.insert(0, Changed(module, str(_FOLDER / f"{mutant.mutation.module}.py"), mutant.source))
        started = time.perf_counter()

        def end(fate: Fate, by: str = "", reason: str = "") -> None:
            answer.send(Told(fate, by, reason[:300], round(time.perf_counter() - started, 1)))

        def look(test: str, checks: Collection[Check]) -> None:
            for check in checks:
                if check.outcome is Outcome.FAILED and check.requirement not in self._healthy.failed[test]:
                    raise _Killed(test, f"{check.requirement}: expected {check.expected}; got {check.actual}")

        try:
            seen = self._run(sorted(self._items, key=lambda item: self._likely(item, mutant)), look)
        except _Killed as killed:
            end(Fate.KILLED, killed.test, killed.reason)
        except Exception as error:  # noqa: BLE001 - whatever the mutant did to the service, it is no service any more
            end(Fate.INCOMPETENT, reason=f"{type(error).__name__}: {error}")
        else:
            lost = sorted(self._healthy.verified - seen.verified)
            end(Fate.UNVERIFIED if lost else Fate.SURVIVED, ", ".join(lost))

    def _likely(self, item: pytest.Item, mutant: Mutant) -> tuple[int, float]:
        """Put the tests of the module's area first, and of those the quick ones."""
        alike = likeness(mutant.mutation.module, self._areas.get(item.nodeid, ()))
        return -alike, self._healthy.seconds.get(item.nodeid, 0.0)

    def _run(self, items: Iterable[pytest.Item], look: Callable[[str, Collection[Check]], None]) -> Seen:
        """Run tests against a reference that is loaded again; `look` sees what each checked, and may end it."""
        for name in [name for name in sys.modules if name.startswith(_LOADED_AGAIN)]:
            del sys.modules[name]
        matrix = importlib.import_module("conformance.proof.matrix")
        reference = importlib.import_module("conformance.reference")
        seen = Seen()
        service = reference.create_service(version=self.version)
        with TemporaryDirectory() as folder, reference.EmbeddedServer(service) as server:
            bench = matrix.Bench(Path(folder), server, self.version)
            with bench.owning_time():
                for item in items:
                    started = time.perf_counter()
                    checks = bench.run(item, Ground())
                    seen.add(item.nodeid, checks, time.perf_counter() - started)
                    look(item.nodeid, checks)
        return seen


class _Killed(Exception):  # noqa: N818 - it ends a run, and is no error
    def __init__(self, test: str, reason: str) -> None:
        super().__init__(test, reason)
        self.test, self.reason = test, reason


def _quietly(act: Callable[..., None], answer: Connection, *arguments: Any) -> None:
    """Act without a word on the terminal that both processes have."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    act(answer, *arguments)


def _said(answer: Connection, process: ForkProcess, seconds: float, longest: float) -> Told | None:
    """Return what a process came to, or None while it is at work."""
    told = None
    if answer.poll(_LOOK_AFTER_SECONDS):
        try:
            told = answer.recv()
        except EOFError:
            told = Told(Fate.INCOMPETENT, reason="its process ended without a word", seconds=round(seconds, 1))
    elif seconds > longest:
        told = Told(Fate.HUNG, seconds=round(seconds, 1))
    if told is not None:
        process.kill()
        process.join()
        answer.close()
    return told


def try_all(mutants: Sequence[Mutant], version: str, jobs: int, tell: Callable[[Mutant, Told], None]) -> None:
    """Try mutants at one version of the reference. Raise ConformanceError when the suite cannot be run at all."""
    killer = Killer(version, mutants, jobs, tell)
    output = io.StringIO()
    options = ("-q", "--capture=no", "--disable-plugin-autoload", f"--target-version={version}", "--include=slow")
    drawn_cases = ("--max-examples=3", "--seed=1")
    with contextlib.redirect_stdout(output):
        code = pytest.main(suite_arguments(*options, *drawn_cases), plugins=[pytest_plugin, killer])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise ConformanceError(f"The suite cannot be tried:\n{output.getvalue().strip()[-2000:]}")


# -- the command -------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--sample", type=click.IntRange(1), default=40, show_default=True, help="How many places to change.")
@click.option("--seed", type=int, default=1, show_default=True, help="Draws the same sample of the same code again.")
@click.option("--module", "modules", multiple=True, help="Only this module of the areas. May be repeated.")
@click.option("--version", "versions", multiple=True, default=VERSIONS, show_default=True, help="Versions, in turn.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes. By default one per core.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("reports/mutation"), show_default=True)
def mutate(  # noqa: PLR0913, PLR0917 - the options of a command
    sample: int,
    seed: int,
    modules: tuple[str, ...],
    versions: tuple[str, ...],
    jobs: int,
    out: Path,
) -> None:
    """
    Change the reference at random places, and show what the suite does not see.

    A mutant counts as a survivor when it survives at every version. Survivors are to be examined by hand.
    """
    known = sorted(file.stem for file in _FOLDER.glob("*.py") if file.stem != "__init__")
    unknown = sorted(set(modules) - set(known))
    if unknown:
        raise UsageError(f"No module of the areas is named {', '.join(unknown)}. There are {', '.join(known)}.")
    mutations = [mutation for module in modules or known for mutation in mutations_of(module)]
    mutants = _living(drawn(mutations, len(mutations), seed), sample)
    click.echo(f"{len(mutations)} mutations of {len(modules or known)} modules; {len(mutants)} drawn with seed {seed}.")
    fates: dict[Mutation, Told] = {}
    file = out / "mutation.json"
    out.mkdir(parents=True, exist_ok=True)
    for version in versions:
        left = [mutant for mutant in mutants if _is_green(fates.get(mutant.mutation))]
        click.echo(f"{len(left)} at {version}")

        def tell(mutant: Mutant, told: Told) -> None:
            # One that leaves something unverified at one version is killed at another, or stays what it was.
            if mutant.mutation not in fates or told.fate is not Fate.SURVIVED:
                fates[mutant.mutation] = told
            _write(file, seed, mutants, fates)
            where = f"{mutant.mutation.module}:{mutant.mutation.line}"
            click.echo(f"  {told.fate:12}  {where}  {mutant.mutation.operator}  {told.seconds} s", err=True)

        if left:
            try_all(left, version, jobs, tell)
    _say(mutants, fates)
    click.echo(str(file))


def _living(mutations: Iterable[Mutation], number: int) -> tuple[Mutant, ...]:
    """Return the first so many that are Python at all."""
    return tuple(islice(filter(None, map(mutant_of, mutations)), number))


def _is_green(told: Told | None) -> bool:
    """Tell whether no check has failed so far, so that another version may still see it."""
    return told is None or told.fate in (Fate.SURVIVED, Fate.UNVERIFIED)


def _write(file: Path, seed: int, mutants: Sequence[Mutant], fates: Mapping[Mutation, Told]) -> None:
    """Write what became of each, as far as that is known: a long job that is cut off leaves what it found."""
    rows = [
        {**asdict(mutant.mutation), **asdict(fates[mutant.mutation]), "difference": mutant.difference}
        for mutant in mutants
        if mutant.mutation in fates
    ]
    file.write_text(json.dumps({"seed": seed, "mutants": rows}, indent=2) + "\n", encoding="utf-8")


def _say(mutants: Sequence[Mutant], fates: Mapping[Mutation, Told]) -> None:
    """Show what is to be examined, and how many met which fate."""
    for mutant in mutants:
        told = fates[mutant.mutation]
        if _is_green(told):
            click.echo(f"\n{told.fate.upper()}  {mutant.mutation.operator} {told.by}\n{mutant.difference}")
    counts = Counter(told.fate for told in fates.values())
    click.echo("\n" + ", ".join(f"{counts[fate]} {fate}" for fate in Fate))


def main() -> None:
    """Run the command; a foreseeable mistake ends with one message and its exit code."""
    try:
        mutate.main(prog_name="python -m conformance.proof.mutation")
    except ConformanceError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
