"""Mutation by an independent tool: it changes the code of the reference, and the suite must find the changes.

`python -m conformance.proof.mutation --sample 40` draws places of the reference at random, lets cosmic-ray change each
in one way, and runs the suite against each changed reference until a test fails: one session of the suite for each, in
its own process. What no check finds is shown as a diff, to be examined by hand: docs/mutation.md has the results of
the examined ones. Needs the extra `mutation`.
"""

from __future__ import annotations

import difflib
import importlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from conformance import reference
from conformance.errors import ConformanceError, UsageError
from conformance.proof import mutant_session
from conformance.results.reading import read_record
from conformance.results.record import Outcome
from conformance.results.verdicts import RunVerdict, Verdict, add_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.results.record import RunRecord
    from conformance.results.verdicts import RunResult

_FOLDER = Path(reference.__file__).parent
#: The default version of the reference, one before half of the removals and introductions, and the last.
VERSIONS = ("17.7", "15.9", "19.0")
_AT_LEAST_SECONDS, _TIMES_AS_LONG = 60.0, 4


# -- mutants -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one module that the tool can make."""

    module: str
    """Name of a module of the reference, such as `access` or `areas.integrations`."""
    operator: str
    """The tool's name for the kind of change."""
    occurrence: int
    """Which of the places in the module where the operator fits, from 0."""
    line: int
    column: int

    @property
    def place(self) -> tuple[str, int, int]:
        """The place that it changes, in whatever way."""
        return self.module, self.line, self.column


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module after its change."""

    mutation: Mutation
    source: str
    difference: str
    """The changed lines, as `diff -u` shows them."""


def mutations_of(module: str) -> tuple[Mutation, ...]:
    """Return every change that the tool can make in a module, except those that change no behaviour.

    Changes of annotations are left out, which nothing evaluates, and changes of what only a type checker runs. Raise
    UsageError if the tool is not installed.
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
    """Draw places at random, and one change of each.

    Places are drawn and not changes, because the tool can replace a comparison by seven others with similar effects.
    """
    places: dict[tuple[str, int, int], list[Mutation]] = {}
    for mutation in mutations:
        places.setdefault(mutation.place, []).append(mutation)
    chance = random.Random(seed)  # noqa: S311 - a sample, and no secret
    order = sorted(places)
    chance.shuffle(order)
    return tuple(chance.choice(places[place]) for place in order[:number])


def mutant_of(mutation: Mutation) -> Mutant | None:
    """Make the change. None if the result is not valid Python, or is unchanged."""
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
    name = file_of(module).relative_to(_FOLDER).as_posix()
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="", n=2))


def modules_of_the_reference() -> tuple[str, ...]:
    """Return the names of all modules that can be changed."""
    files = (file.relative_to(_FOLDER).with_suffix("") for file in _FOLDER.rglob("*.py") if file.stem != "__init__")
    return tuple(sorted(".".join(file.parts) for file in files))


def file_of(module: str) -> Path:
    """Return the file of a module."""
    return _FOLDER.joinpath(*module.split(".")).with_suffix(".py")


def _source_of(module: str) -> str:
    return file_of(module).read_text(encoding="utf-8")


def _tool(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{name} cannot be loaded ({error}). Install the extra `mutation` of this project: it brings cosmic-ray."
        ) from error


# -- sessions ----------------------------------------------------------------------------------------------------------


class Fate(StrEnum):
    """The result for a mutant."""

    KILLED = "killed"
    """A check failed that holds without the change: the run would be non-conformant."""
    UNVERIFIED = "not verified"
    """No check failed, but a requirement is no longer verified: the run would be incomplete, and not green."""
    SURVIVED = "survived"
    """The suite sees no difference."""
    INCOMPETENT = "incompetent"
    """The changed reference does not start, or is not recognised as the service."""
    HUNG = "hung"
    """The suite did not come to its end in time."""


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a session of the suite against a mutant."""

    fate: Fate
    by: str = ""
    """The test that saw it, or the requirements that nobody verifies any more."""
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Healthy:
    """The result of a session of the suite against the unchanged reference."""

    file: Path
    """Its record: which test takes how long decides which are tried first."""
    verified: frozenset[str]
    seconds: float

    @classmethod
    def of(cls, version: str, folder: Path, options: Sequence[str]) -> Healthy:
        """Run the suite; raise ConformanceError if it fails the reference, because then mutants prove nothing."""
        started = time.monotonic()
        finished = _session(version, str(folder), *options)
        if not (folder / "results.jsonl").is_file():
            raise ConformanceError(f"The suite cannot be tried:\n{finished.stdout[-2000:]}")
        result = add_up(read_record(folder / "results.jsonl"))
        if result.verdict in (RunVerdict.NON_CONFORMANT, RunVerdict.BROKEN, RunVerdict.COULD_NOT_RUN):
            raise ConformanceError(f"The reference as it is does not pass at {version}: {result.explanation}")
        return cls(folder / "results.jsonl", _verified(result), time.monotonic() - started)


def try_all(
    mutants: Sequence[Mutant], version: str, jobs: int, tell: Callable[[Mutant, Told], None], *options: str
) -> None:
    """Try mutants at one version of the reference; `options` are passed to the suite, such as `--area=integrations`.

    Raise ConformanceError if the suite cannot be run.
    """
    with TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        folder = Path(name)
        healthy = Healthy.of(version, folder / "healthy", options)
        waiting = {
            pool.submit(_told, mutant, version, folder / str(number), healthy, options): mutant
            for number, mutant in enumerate(mutants)
        }
        for done in as_completed(waiting):
            tell(waiting[done], done.result())


def _told(mutant: Mutant, version: str, folder: Path, healthy: Healthy, options: Sequence[str]) -> Told:
    """Run the suite against one mutant until a test fails."""
    folder.mkdir()
    changed = folder / "changed.py"
    changed.write_text(mutant.source, encoding="utf-8")
    longest = max(_AT_LEAST_SECONDS, _TIMES_AS_LONG * healthy.seconds)
    started = time.monotonic()
    change = (mutant.mutation.module, str(changed), str(healthy.file))
    try:
        finished = _session(version, str(folder), *change, *options, longest=longest)
    except subprocess.TimeoutExpired:
        return Told(Fate.HUNG, seconds=round(longest, 1))
    seconds = round(time.monotonic() - started, 1)
    file = folder / "results.jsonl"
    if not file.is_file():
        return Told(Fate.INCOMPETENT, reason=_last_line(finished.stdout), seconds=seconds)
    fate, by, reason = fate_of(read_record(file), healthy.verified)
    return Told(fate, by, reason[:300], seconds)


def fate_of(record: RunRecord, verified: frozenset[str]) -> tuple[Fate, str, str]:
    """Return the result for a mutant from a record, what found it, and why; `verified` is verified without it."""
    result = add_up(record)
    for check in record.checks:
        if check.outcome is Outcome.FAILED:
            return Fate.KILLED, check.test, f"{check.requirement}: expected {check.expected}; got {check.actual}"
    if result.verdict is RunVerdict.COULD_NOT_RUN:
        return Fate.INCOMPETENT, "", result.explanation
    lost = sorted(verified - _verified(result))
    return (Fate.UNVERIFIED, ", ".join(lost), result.explanation) if lost else (Fate.SURVIVED, "", "")


def _verified(result: RunResult) -> frozenset[str]:
    return frozenset(row.requirement.id for row in result.rows_with(Verdict.PASSED))


def _session(*arguments: str, longest: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run the suite in its own process, which loads the changed module, if there is one, instead of the original."""
    # Started by file name, so that nothing of the reference is loaded before the change.
    places = os.pathsep.join(path for path in (str(_FOLDER.parents[1]), *sys.path) if path)
    command = [sys.executable, "-P", mutant_session.__file__, *arguments]
    return subprocess.run(  # noqa: S603 - our own command
        command,
        env={**os.environ, "PYTHONPATH": places},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=longest,
        check=False,
    )


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "its process ended without a word")


# -- the command -------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--sample", type=click.IntRange(1), default=40, show_default=True, help="How many places to change.")
@click.option("--seed", type=int, default=1, show_default=True, help="Draws the same sample of the same code again.")
@click.option("--module", "modules", multiple=True, help="Only this module, such as areas.meta. May be repeated.")
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
    """Change the reference at random places, and show what the suite does not find.

    A mutant counts as a survivor if it survives at every version. Survivors are to be examined by hand.
    """
    known = modules_of_the_reference()
    unknown = sorted(set(modules) - set(known))
    if unknown:
        raise UsageError(f"No module of the reference is named {', '.join(unknown)}. There are {', '.join(known)}.")
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
            # A mutant that leaves something unverified at one version is killed at another, or keeps its result.
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
    """Return a number of mutants, made from the first mutations that give valid Python."""
    return tuple(islice(filter(None, map(mutant_of, mutations)), number))


def _is_green(told: Told | None) -> bool:
    """Tell whether no check has failed so far, so another version may still find it."""
    return told is None or told.fate in (Fate.SURVIVED, Fate.UNVERIFIED)


def _write(file: Path, seed: int, mutants: Sequence[Mutant], fates: Mapping[Mutation, Told]) -> None:
    """Write the results so far: if a long job is cut off, they remain."""
    rows = [
        {**asdict(mutant.mutation), **asdict(fates[mutant.mutation]), "difference": mutant.difference}
        for mutant in mutants
        if mutant.mutation in fates
    ]
    file.write_text(json.dumps({"seed": seed, "mutants": rows}, indent=2) + "\n", encoding="utf-8")


def _say(mutants: Sequence[Mutant], fates: Mapping[Mutation, Told]) -> None:
    """Show what must be examined, and how many mutants have which result."""
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
