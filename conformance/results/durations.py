"""How long tests take: so that the longest begin first, and shards and workers end together."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.contract.yaml_files import read_yaml
from conformance.results.record import TestOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.results.record import TestEnd

#: The files of tests that need much to be made for them, and the same as those beside them.
_SHARING = ("test_isolation.py", "test_levels.py")


@cache
def weights_by_file() -> Mapping[str, float]:
    """Return about how many answers a test waits for, by the end of the name of its file; `others` for all others."""
    found: dict[str, float] = read_yaml(Path(__file__).with_name("weights.yaml"))
    return found


def weight_of(test: str) -> float:
    """Return about how much work a test is, where nobody has measured it."""
    file, weights = test.partition("::")[0], weights_by_file()
    return next((answers for end, answers in weights.items() if file.endswith(end)), weights["others"])


class Durations:
    """How long each test took when it ran last against a target, kept in the folder of what runs keep."""

    def __init__(self, folder: Path | None, target: str) -> None:
        """Take the folder, if anything is kept, and what tells the target from others."""
        name = f"durations-{hashlib.sha256(target.encode()).hexdigest()[:16]}.json"
        self._file = folder / name if folder is not None else None

    def known(self) -> Mapping[str, float]:
        """Return seconds by test; what cannot be read is not known."""
        with suppress(OSError, ValueError, TypeError, AttributeError):
            if self._file is not None:
                found = json.loads(self._file.read_text(encoding="utf-8"))
                return {str(name): float(seconds) for name, seconds in found.items()}
        return {}

    def remember(self, ends: Iterable[TestEnd]) -> None:
        """Keep how long tests took; where nothing can be kept, nothing is."""
        ran = {end.test: end.seconds for end in ends if end.outcome is TestOutcome.PASSED}
        with suppress(OSError):
            if self._file is not None and ran and self._file.parent.is_dir():
                self._file.write_text(json.dumps({**self.known(), **ran}), encoding="utf-8")


def weights_of(tests: Sequence[str], known: Mapping[str, float]) -> Mapping[str, float]:
    """
    Return about how much work each test is: the seconds that it took last, or what others of its size took.

    Those of a file that share what is made for them are all as long as they are on average, so that they can follow
    each other.
    """
    per_request = _seconds_per_request(tests, known)
    weights = {test: known.get(test, weight_of(test) * per_request) for test in tests}
    for file in _SHARING:
        sharing = [test for test in tests if test.partition("::")[0].endswith(file)]
        weights |= dict.fromkeys(sharing, sum(weights[test] for test in sharing) / max(1, len(sharing)))
    return weights


def in_order(tests: Sequence[str], known: Mapping[str, float], workers: int) -> list[str]:
    """
    Return tests in the order in which workers, each of which takes two at first and then one by one, end together.

    The longest comes first. With the first of each worker goes one of the shortest, which waits behind it. Of those
    that are as long, each worker finds some that follow each other in `tests`, as far as they end alike: such tests
    need the same to be made.
    """
    weights = weights_of(tests, known)
    alike: dict[float, list[str]] = {}
    for test in tests:
        alike.setdefault(weights[test], []).append(test)
    longest = [test for weight in sorted(alike, reverse=True) for test in _side_by_side(alike[weight], workers)]
    if len(longest) < 2 * workers:
        return longest
    first, rest, shortest = longest[:workers], longest[workers:-workers], longest[-workers:]
    return [test for pair in zip(first, shortest, strict=True) for test in pair] + rest


def _side_by_side(tests: Sequence[str], workers: int) -> list[str]:
    """Return tests in the order in which workers, who take them in turns, each go through a stretch of them."""
    length = -(-len(tests) // workers)
    stretches = [tests[start : start + length] for start in range(0, len(tests), length)]
    return [test for turn in zip_longest(*stretches) for test in turn if test is not None]


def _seconds_per_request(tests: Sequence[str], known: Mapping[str, float]) -> float:
    both = [test for test in tests if test in known]
    return sum(known[test] for test in both) / sum(map(weight_of, both)) if both else 1.0


def part_of(tests: Iterable[str], number: int, shards: int) -> frozenset[str]:
    """Return the tests of one of several shards, from 1 on: about equal work, and the same on every machine."""
    loads = [0.0] * shards
    mine: set[str] = set()
    for test in sorted(tests, key=lambda test: (-weight_of(test), test)):
        lightest = loads.index(min(loads))
        loads[lightest] += weight_of(test)
        if lightest == number - 1:
            mine.add(test)
    return frozenset(mine)
