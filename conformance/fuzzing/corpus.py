"""Drawn cases, kept from one run to the next.

Below the folder of a corpus and the version, there are files for each operation and the shape of its request:
`coverage/OPERATION-SHAPE.json`, what its schema always gives; `fuzz-SEED-EXAMPLES-SECONDS/OPERATION-SHAPE.json`, what
was drawn at random with a seed and a budget; and `failed/OPERATION-SHAPE/CASE.json`, each case that ever failed. A file
is written completely or not at all and contains nothing of a target, so that runs may share a folder, also
concurrently.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version as installed
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.contract.at_version import mappings_in
from conformance.contract.bundle import resolve
from conformance.errors import UsageError
from conformance.fuzzing.ahead import Ahead, Elsewhere, Wish, share_nothing
from conformance.fuzzing.cases import DrawnCase
from conformance.http.redaction import REDACTION
from conformance.results.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.contract import Contract, Operation, Version
    from conformance.fuzzing.drawing import Source

FOLDER = Path("reports") / ".corpus"
#: Value in place of a folder: nothing is kept, and nothing of earlier runs is sent.
NONE = "none"
PHASES = ("coverage", "fuzz")
#: Maximum number of kept failed cases of one operation and shape: those that failed last are kept.
FAILED_AT_MOST = 200

_FORM = 2
_KEPT_DRAWS = 20
_KEPT_SHAPES = 3
_SIGN = "corpus.txt"
_SIGN_SAYS = "Drawn cases that `conformance run` keeps and sends again. The folder may be removed between runs.\n"
#: For this many newly drawn cases, one of other seeds is sent again.
_OF_EARLIER_DRAWS = 4
_DRAW = re.compile(r"fuzz-.+-.+-.+")
_OURS = re.compile(r"\w+-[0-9a-f]{16}(\.json)?")
_PROSE = frozenset({"description", "summary", "title", "tags", "operationId", "deprecated"})
_LITERAL = frozenset({"example", "examples", "default", "enum", "const"})
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits that decide how many and which cases are drawn at random for an operation."""

    seed: int = 0
    max_examples: int = 0
    seconds: float = 0
    """Time after which no more are drawn."""

    @property
    def name(self) -> str:
        """The name of the folder for cases drawn with it."""
        return f"fuzz-{self.seed}-{self.max_examples}-{self.seconds}"


@dataclass(frozen=True)
class Draw:
    """The cases of one operation for one run, by origin."""

    coverage: tuple[DrawnCase, ...] = ()
    """Cases that the schema always gives."""
    failed: tuple[DrawnCase, ...] = ()
    """Cases that failed in an earlier run, the latest first."""
    fresh: tuple[DrawnCase, ...] = ()
    """Cases from the seed of this run."""
    earlier: tuple[DrawnCase, ...] = ()
    """Cases that earlier runs drew."""

    @property
    def cases(self) -> list[DrawnCase]:
        """All cases in the order in which they are sent; those that any run sends have no origin to be stored.

        The cases of the schema alternate with the drawn ones, because only the first correct cases are read back.
        """
        drawn = [case.traced() for case in (*self.fresh, *self.earlier)]
        in_turn = (case for pair in zip_longest(self.coverage, drawn) for case in pair if case is not None)
        return [*(case.traced() for case in self.failed), *in_turn]

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases of each sort, named as in reports."""
        return {
            "coverage": len(self.coverage),
            "fresh": len(self.fresh),
            "replayed": len(self.failed) + len(self.earlier),
            "failed_before": len(self.failed),
        }

    def rationed(self, number: int) -> Draw:
        """Return so many right and so many wrong cases, of which at most half failed before."""
        failed = _first(self.failed, number // 2)
        return replace(
            self,
            coverage=_first(self.coverage, number),
            failed=failed,
            fresh=_first((*failed, *self.fresh), number)[len(failed) :],
            earlier=(),
        )


_DRAWN: dict[tuple[Any, ...], tuple[DrawnCase, ...]] = {}
"""Cases that this process drew, by contract, version, operation, phase and budget."""


@dataclass
class Corpus:
    """The cases of one contract at one version; reads and writes files below `folder`, and draws the missing cases."""

    contract: Contract
    version: Version | None
    folder: Path | None = FOLDER
    """None keeps nothing."""
    counts: Counter[str] = field(default_factory=Counter)
    """Number of cases given to the tests of this run so far, by the names of `Draw.counts`."""
    given: dict[tuple[str, Budget], Draw] = field(default_factory=dict, repr=False)
    """Cases given to each test of this run, by operation and budget: a test that runs again sends the same."""
    _source: Source | None = field(default=None, repr=False)
    _shapes: dict[str, str] = field(default_factory=dict, repr=False)
    _draws: list[Path] | None = field(default=None, repr=False)
    """Cases that earlier runs drew, the newest first, as they were at this run's first request."""
    _unreadable: dict[Path, str] = field(default_factory=dict, repr=False)
    _refused: str | None = field(default=None, repr=False)
    """The reason why nothing more is stored."""
    _ahead: Ahead | Elsewhere | None = field(default=None, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    """The drawing library is not thread-safe; nor is Python's own parser, which it uses."""

    def cases(self, operation: Operation, phase: str, budget: Budget = Budget()) -> list[DrawnCase]:
        """Return the cases of an operation: `coverage` needs no budget, `fuzz` draws within one.

        The same arguments give the same cases. A folder that cannot be written to is no reason to fail.
        """
        file = self._file_of(operation, phase, budget)
        stored = self._read(file, operation)
        if stored is not None:
            return stored
        ahead = self._ahead.take(operation, phase) if self._ahead else None
        drawn = self._drawn(operation, phase, budget) if ahead is None else ahead
        if file is not None:
            self._store(file, drawn)
            _forget(_shapes_beside(file)[_KEPT_SHAPES:])
            _forget(_draws_in(file.parent.parent)[_KEPT_DRAWS:])
        return drawn

    def take_from(self, folder: Path) -> None:
        """Take cases that are not stored from a folder, to which another process writes them."""
        self._ahead = Elsewhere(folder)

    def draw_ahead(self, wanted: Iterable[tuple[Operation, str]], budget: Budget, into: Path | None = None) -> None:
        """Start drawing missing cases of these operations and phases in another process; for workers, if shared."""
        wishes = [
            Wish(operation.id, phase)
            for operation, phase in wanted
            if not (file := self._file_of(operation, phase, budget)) or not file.exists()
        ]
        self._ahead = ahead = Ahead.begin(self.contract, self.version, wishes, asdict(budget))
        if into is not None and ahead is not None:
            ahead.share(into)
        elif into is not None:
            share_nothing(into)

    def close(self) -> None:
        """Draw nothing more ahead."""
        if self._ahead is not None:
            self._ahead.close()

    def draw(self, operation: Operation, budget: Budget, *, with_earlier: bool = True) -> Draw:
        """Return the random cases of an operation for one run: those of its seed, and `with_earlier` those to replay.

        Replayed are all cases that failed before, and the newest cases of other seeds, a quarter as many as are newly
        drawn: repeating a case that passed shows what has changed, but costs the target calls.
        """
        fresh = self.cases(operation, "fuzz", budget)
        if not with_earlier:
            return Draw(fresh=tuple(fresh))
        failed = self._failed(operation)
        known = {case.wire for case in failed}
        fresh = [case for case in fresh if case.wire not in known]
        known |= {case.wire for case in fresh}
        return Draw(failed=tuple(failed), fresh=tuple(fresh), earlier=tuple(self._earlier(operation, budget, known)))

    def keep_failed(self, operation: Operation, cases: Iterable[DrawnCase]) -> None:
        """Store cases that a target failed, so that later runs send them first."""
        file = self._file(operation, "failed")
        if file is None:
            return
        folder = file.with_suffix("")
        for case in cases:
            self._store(folder / f"{_digest(case.stored())}.json", [case])
        _forget(_newest(folder, "*.json")[FAILED_AT_MOST:])
        _forget(_shapes_beside(folder)[_KEPT_SHAPES:])

    def count(self, draw: Draw) -> None:
        """Count the cases that a test got."""
        with self._lock:
            self.counts.update(draw.counts)

    @property
    def warning(self) -> str | None:
        """The problem with the folder, in one message; None without one."""
        found = []
        if self._unreadable:
            file, why = next(iter(self._unreadable.items()))
            found.append(f"{plural(len(self._unreadable), 'stored file')} left out, such as {file} ({why})")
        if self._refused:
            found.append(f"not all that was drawn could be stored for later runs ({self._refused})")
        return f"Corpus {self.folder}: {'; '.join(found)}." if found else None

    # -- drawing -------------------------------------------------------------------------------------------------------

    def _drawn(self, operation: Operation, phase: str, budget: Budget) -> list[DrawnCase]:
        # Consecutive sessions in one process, such as those of a proof, draw the same cases.
        asked = (self.contract.digest, self.version, operation.id, phase, budget)
        with self._lock:
            if asked in _DRAWN:
                return list(_DRAWN[asked])
            from conformance.fuzzing import drawing  # noqa: PLC0415 - takes a second, which a replay does not need

            if self._source is None:
                self._source = drawing.load(self.contract, self.version)
            if phase == "coverage":
                found = drawing.coverage_cases(self._source, operation)
            else:
                found = drawing.fuzz_cases(self._source, operation, **asdict(budget))
            _DRAWN[asked] = tuple(found)
            return found

    def _failed(self, operation: Operation) -> list[DrawnCase]:
        file = self._file(operation, "failed")
        files = _newest(file.with_suffix(""), "*.json")[:FAILED_AT_MOST] if file else []
        return [case for file in files for case in self._read(file, operation) or ()]

    def _earlier(self, operation: Operation, budget: Budget, known: set[tuple[Any, ...]]) -> Iterator[DrawnCase]:
        """Yield cases of other draws, the newest first; from a draw with more than are wanted, take them evenly."""
        file = self._file(operation, budget.name)
        if file is None:
            return
        if self._draws is None:
            self._draws = _draws_in(file.parent.parent)
        number = budget.max_examples // _OF_EARLIER_DRAWS
        for folder in self._draws:
            if number <= 0:
                return
            if folder.name == budget.name:
                continue
            found = {case.wire: case for case in self._read(folder / file.name, operation) or ()}
            other = [case for wire, case in found.items() if wire not in known]
            chosen = other[:: max(1, -(-len(other) // number))]
            known |= {case.wire for case in chosen}
            number -= len(chosen)
            yield from chosen

    # -- files ---------------------------------------------------------------------------------------------------------

    def _file_of(self, operation: Operation, phase: str, budget: Budget) -> Path | None:
        return self._file(operation, "coverage" if phase == "coverage" else budget.name)

    def _file(self, operation: Operation, name: str) -> Path | None:
        if self.folder is None:
            return None
        if operation.id not in self._shapes:
            self._shapes[operation.id] = shape(operation)
        return self.folder / str(self.version or "unknown") / name / f"{operation.id}-{self._shapes[operation.id]}.json"

    def _read(self, file: Path | None, operation: Operation) -> list[DrawnCase] | None:
        """Return the stored cases of a file; None when there are none that can be read."""
        if file is None:
            return None
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["form"] != _FORM:
                return None
            return [DrawnCase.restored(operation, data) for data in content["cases"]]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except _UNREADABLE as error:
            self._unreadable[self._below(file)] = _in_words(error)
            return None

    def _store(self, file: Path, cases: Sequence[DrawnCase]) -> None:
        """Write a file completely or not at all; after the first failure, write nothing more."""
        if self.folder is None or self._refused:
            return
        scratch = file.with_name(f"{file.name}.{secrets.token_hex(4)}.tmp")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            _put_sign(self.folder)
            stored = [case.stored() for case in cases]
            # A case without its secret would be another case, so it is not kept at all.
            content = {"form": _FORM, "cases": [case for case in stored if not REDACTION.is_in(json.dumps(case))]}
            scratch.write_text(json.dumps(content), encoding="utf-8")
            scratch.replace(file)
        except OSError as error:
            self._refused = f"{self._below(file)}: {error.strerror or error}"
            _forget([scratch])

    def _below(self, file: Path) -> Path:
        return file.relative_to(self.folder) if self.folder is not None else file


def corpus_folder(asked: str | None) -> Path | None:
    """Return the folder that an operator asked for; None when nothing is to be kept.

    Raise UsageError when it contains files that are no corpus: they must not be mistaken for one, or removed.
    """
    if asked is None:
        return FOLDER
    if asked == NONE:
        return None
    folder = Path(asked)
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"The corpus {folder} is no folder. Name a folder, or 'none' to keep no drawn cases.")
        held = [path.name for path in folder.iterdir() if not path.name.startswith(".")] if folder.exists() else []
    except OSError as error:
        raise UsageError(f"The corpus {folder} cannot be read: {error.strerror or error}.") from error
    if held and _SIGN not in held:
        raise UsageError(
            f"The folder {folder} holds something else than drawn cases, such as {min(held)}. "
            "Name an empty or a new folder for the corpus, or 'none' to keep no drawn cases."
        )
    return folder


def shape(operation: Operation) -> str:
    """Return a digest of everything that decides which cases are drawn for an operation.

    That is what the contract says about its request, without prose and answers, and the code that draws. Cases of
    another shape are never replayed: a case that was right by an older schema may be wrong now.
    """
    document = operation.document
    found: dict[str, Any] = {}
    item = document["paths"][operation.path]
    node = {key: value for key, value in item[operation.method.lower()].items() if key not in ("responses", "security")}
    _gather(document, [item.get("parameters", []), node], found)
    asked = [operation.method, operation.path, item.get("parameters", []), node, found]
    return _digest([_without_prose(asked), _drawn_by()])


def _gather(document: dict[str, Any], node: Any, found: dict[str, Any]) -> None:
    """Collect the targets of references."""
    for part in mappings_in(node):
        target = part.get("$ref")
        if isinstance(target, str) and target not in found:
            found[target] = resolve(document, {"$ref": target})
            _gather(document, found[target], found)


def _without_prose(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_prose(entry) for entry in node]
    if isinstance(node, dict):
        return {
            key: value if key in _LITERAL else _without_prose(value)
            for key, value in node.items()
            # A property may be called `title`; its schema is an object, but a real title is none.
            if (key == "x-draw" or not str(key).startswith("x-")) and (key not in _PROSE or isinstance(value, dict))
        }
    return node


@cache
def _drawn_by() -> str:
    own = [Path(__file__).with_name(name).read_bytes() for name in ("drawing.py", "cases.py")]
    return hashlib.sha256(b"\0".join([installed("schemathesis").encode(), *own])).hexdigest()


def _digest(node: Any) -> str:
    text = json.dumps(node, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _first(cases: Sequence[DrawnCase], number: int) -> tuple[DrawnCase, ...]:
    """Return the first right and the first wrong cases, this many of each."""
    right = [case for case in cases if case.is_positive][:number]
    wrong = [case for case in cases if not case.is_positive][:number]
    return (*right, *wrong)


def _newest(folder: Path, pattern: str) -> list[Path]:
    """Return the contents of a folder, the newest first; a folder that another run is removing has none."""
    found = []
    for path in folder.glob(pattern):
        with suppress(OSError):
            found.append((path.stat().st_mtime, path.name, path))
    return [path for _, _, path in sorted(found, reverse=True)]


def _draws_in(folder: Path) -> list[Path]:
    return [path for path in _newest(folder, "fuzz-*") if _DRAW.fullmatch(path.name)]


def _shapes_beside(path: Path) -> list[Path]:
    """Return the stored cases of the same operation in any shape, the newest first."""
    pattern = f"{path.name.split('-', maxsplit=1)[0]}-*"
    return [other for other in _newest(path.parent, pattern) if _OURS.fullmatch(other.name)]


def _forget(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _put_sign(folder: Path) -> None:
    sign = folder / _SIGN
    if not sign.exists():
        sign.write_text(_SIGN_SAYS, encoding="utf-8")


def _in_words(error: BaseException) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"no drawn cases: {type(error).__name__}"
