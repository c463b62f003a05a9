"""One session of the suite against a reference with one changed module; `mutation` starts this file as a process.

`python -P mutant_session.py VERSION FOLDER [MODULE SOURCE HEALTHY] [--OPTION...]` loads MODULE of the reference from
the file SOURCE instead of its own, runs the suite until a test fails, the likeliest tests first, and leaves the record
in FOLDER. HEALTHY is the record of such a session without a change. The options are passed to the suite.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import CodeType

    from conformance.target import Profile

# Modules that import the reference are imported where they are used, so that none is loaded before the change.


class Changed(SourceFileLoader):
    """A finder and loader that gives one module a source other than its file."""

    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self._source = source

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Find only that module, and leave all others to the next finder."""
        return spec_from_loader(fullname, self) if fullname == self.name else None

    def get_code(self, _fullname: str) -> CodeType:
        """Compile the other source without any cache."""
        return compile(self._source, self.path, "exec", dont_inherit=True)


class LikeliestFirst:
    """A pytest plugin that replaces the target by a reference whose clock can be advanced."""

    def __init__(self, version: str, module: str = "", seconds: Mapping[str, float] | None = None) -> None:
        """Try the tests of areas named like the module first, and of those the fastest ones."""
        self._version = version
        self._module = module
        self._seconds = seconds or {}

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Set the function that serves the target."""
        from conformance.runner.session import SESSION, Mode  # noqa: PLC0415 - see above

        config.stash[SESSION].mode = Mode(partial(_served, self._version))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Put the tests in order."""
        from conformance.runner.collection import id_of  # noqa: PLC0415 - see above
        from conformance.runner.session import SESSION  # noqa: PLC0415

        plan = config.stash[SESSION].plan

        def order(item: pytest.Item) -> tuple[int, float]:
            test = plan.tests.get(id_of(item)) if plan is not None else None
            alike = likeness(self._module, test.areas) if test is not None else 0
            return -alike, self._seconds.get(id_of(item), 0.0)

        if self._module:
            items.sort(key=order)


def likeness(module: str, areas: Iterable[str]) -> int:
    """Return how many words a module's name shares with the areas of a test: a guess whether it finds the change."""
    words = {word.rstrip("s") for word in module.rpartition(".")[2].split("_")}
    return max((len(words & {word.rstrip("s") for word in area.split("-")}) for area in areas), default=0)


@contextmanager
def _served(version: str) -> Iterator[Profile]:
    """Serve the reference; times without any call are skipped by advancing its clock."""
    from conformance.proof.matrix import MovedClock  # noqa: PLC0415 - see above
    from conformance.suite import load  # noqa: PLC0415
    from conformance.target.embedded import embedded_target, prepared_service  # noqa: PLC0415

    clock = MovedClock()
    load.let_pass = clock.skip
    with embedded_target(version, prepared_service(version=version, clock=clock)) as profile:
        yield replace(profile, features={**profile.features, "completion_rate_limit": True})


def main(version: str, folder: str, *more: str) -> int:
    """Run the session and return pytest's exit code."""
    asked = [argument for argument in more if argument.startswith("-")]
    module, source, healthy = [argument for argument in more if argument not in asked] or ("", "", "")
    if module:
        name = f"conformance.reference.{module}"
        sys.meta_path.insert(0, Changed(name, source, Path(source).read_text(encoding="utf-8")))
    from conformance.results.reading import read_record  # noqa: PLC0415 - see above
    from conformance.runner.location import suite_arguments  # noqa: PLC0415

    seconds = {end.test: end.seconds for end in read_record(Path(healthy)).tests} if healthy else {}
    options = ("-q", "-x", "--disable-plugin-autoload", f"--target-version={version}", "--include=slow")
    drawn = ("--max-examples=3", "--seed=1", "--corpus=none", f"--out={folder}")
    arguments = suite_arguments(*options, *drawn, *asked)
    return int(pytest.main(arguments, plugins=[LikeliestFirst(version, module, seconds)]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
