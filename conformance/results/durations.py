"""Knows how long tests take, so that the longest start first, and shards and workers end together."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.contract.yaml_files import read_yaml
from conformance.results.grouping import grouped
from conformance.results.record import TestOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.results.record import TestEnd

#: The files whose tests need many objects made for them, and share these within the file.
_SHARING = ("test_isolation.py", "test_levels.py")


@cache
def weights_by_file() -> Mapping[str, float]:
    """Return roughly how many answers a test awaits, by the end of its file name; `others` is for all other files."""
    found: dict[str, float] = read_yaml(Path(__file__).with_name("weights.yaml"))
    return found


def weight_of(test: str) -> float:
    """Return about how much work a test is when nobody has measured it."""
    file, weights = test.partition("::")[0], weights_by_file()
    return next((answers for end, answers in weights.items() if file.endswith(end)), weights["others"])


class Durations:
    """How long each test took in its last run against a target; kept in the corpus folder."""

    def __init__(self, folder: Path | None, target: str) -> None:
        """Take the folder, if anything is kept, and a text that identifies the target."""
        name = f"durations-{hashlib.sha256(target.encode()).hexdigest()[:16]}.json"
        self._file = folder / name if folder is not None else None

    def known(self) -> Mapping[str, float]:
        """Return seconds by test; if the file cannot be read, none."""
        with suppress(OSError, ValueError, TypeError, AttributeError):
            if self._file is not None:
                found = json.loads(self._file.read_text(encoding="utf-8"))
                return {str(name): float(seconds) for name, seconds in found.items()}
        return {}

    def remember(self, ends: Iterable[TestEnd]) -> None:
        """Store how long tests took; do nothing if that is not possible."""
        ran = {end.test: end.seconds for end in ends if end.outcome is TestOutcome.PASSED}
        with suppress(OSError):
            if self._file is not None and ran and self._file.parent.is_dir():
                self._file.write_text(json.dumps({**self.known(), **ran}), encoding="utf-8")


def weights_of(tests: Sequence[str], known: Mapping[str, float]) -> Mapping[str, float]:
    """Return about how much work each test is: the seconds of its last run, or of others of its size.

    Tests of a file that share prepared objects all get their average, so that they can run one after the other.
    """
    per_request = _seconds_per_request(tests, known)
    weights = {test: known.get(test, weight_of(test) * per_request) for test in tests}
    for file in _SHARING:
        sharing = [test for test in tests if test.partition("::")[0].endswith(file)]
        weights |= dict.fromkeys(sharing, sum(weights[test] for test in sharing) / max(1, len(sharing)))
    return weights


def in_order(tests: Sequence[str], known: Mapping[str, float], workers: int) -> list[str]:
    """Return tests in such an order that workers, which take two tests at first and then one by one, end together.

    The longest tests come first. Each worker's first test goes with one of the shortest, which waits behind it. Among
    equally long tests, each worker gets neighbours in `tests` as far as possible, because these need the same prepared
    objects.
    """
    weights = weights_of(tests, known)
    alike = grouped((weights[test], test) for test in tests)
    longest = [test for weight in sorted(alike, reverse=True) for test in _side_by_side(alike[weight], workers)]
    if len(longest) < 2 * workers:
        return longest
    first, rest, shortest = longest[:workers], longest[workers:-workers], longest[-workers:]
    return [test for pair in zip(first, shortest, strict=True) for test in pair] + rest


def _side_by_side(tests: Sequence[str], workers: int) -> list[str]:
    """Return tests in such an order that workers, which take them in turns, each get a consecutive stretch."""
    length = -(-len(tests) // workers)
    stretches = [tests[start : start + length] for start in range(0, len(tests), length)]
    return [test for turn in zip_longest(*stretches) for test in turn if test is not None]


def _seconds_per_request(tests: Sequence[str], known: Mapping[str, float]) -> float:
    both = [test for test in tests if test in known]
    return sum(known[test] for test in both) / sum(map(weight_of, both)) if both else 1.0


def part_of(tests: Iterable[str], number: int, shards: int) -> frozenset[str]:
    """Return the tests of one of several shards, counted from 1: about equal work, and the same on every machine."""
    loads = [0.0] * shards
    mine: set[str] = set()
    for test in sorted(tests, key=lambda test: (-weight_of(test), test)):
        lightest = loads.index(min(loads))
        loads[lightest] += weight_of(test)
        if lightest == number - 1:
            mine.add(test)
    return frozenset(mine)
