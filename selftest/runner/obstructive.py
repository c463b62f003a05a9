"""Pytest plugins that each keep the suite from testing, in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.context import current_run

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_KEPT = 3


class DropsBefore:
    """Deselects tests before the suite has seen them."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        del items[_KEPT:]


class DropsAfter:
    """Removes tests after the suite has planned them, without reporting it."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        del items[_KEPT:]


class DropsAround:
    """Removes tests after every other plugin is done with them."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        yield
        del items[_KEPT:]


class DropsAll:
    """Leaves pytest without tests after the collection."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        session.items.clear()


class IgnoresFiles:
    """Makes pytest ignore all files of one kind."""

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if "completion" in collection_path.name else None


class Skips:
    """Marks every test to be skipped."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="not today"))


class SkipsInSetup:
    """Skips every test in its setup."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        pytest.skip("not today")


class Xfails:
    """Marks every test as one that may fail."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            item.add_marker(pytest.mark.xfail(reason="known", strict=False))


class XfailsUnrun:
    """Marks every test as one that fails and is not run."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            item.add_marker(pytest.mark.xfail(reason="known", run=False))


class CallsNothing:
    """Replaces what calls a test's function."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self) -> bool:
        return True


class RunsNothing:
    """Replaces what runs a test."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool:
        return True


class LoopsOverNothing:
    """Replaces the loop over the tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        return True


class ReportsPassed:
    """Makes every report say that its phase passed."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        report.outcome = "passed"
        return report


class ExitsInSetup:
    """Exits pytest with success at the first test."""

    def pytest_runtest_setup(self) -> None:
        pytest.exit("that will do", returncode=0)


class ExitsBetween:
    """Exits pytest with success after the first test."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        pytest.exit("that will do", returncode=0)


class ExitsAtTheEnd:
    """Exits pytest with success while it finishes."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        pytest.exit("that will do", returncode=0)


class TurnsExitCode:
    """Replaces every other exit code by success."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        yield
        session.exitstatus = 0


class BreaksSetup:
    """Fails before each test."""

    def pytest_runtest_setup(self) -> None:
        raise RuntimeError("broken on purpose")


class BreaksTeardown:
    """Fails after each test."""

    def pytest_runtest_teardown(self) -> None:
        raise RuntimeError("broken on purpose")


class BreaksFinalizer:
    """Fails in a finalizer of each test."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        def finalizer() -> None:
            raise RuntimeError("broken on purpose")

        item.addfinalizer(finalizer)


class SkipsInFinalizer:
    """Skips a test in its finalizer."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.addfinalizer(lambda: pytest.skip("not today"))


class BreaksCollection:
    """Fails while the tests of one file are collected."""

    def pytest_pycollect_makemodule(self, module_path: Path) -> None:
        if "completion" in module_path.name:
            raise RuntimeError("broken on purpose")


class WritesElsewhere:
    """Makes every test change a project that is not in the profile."""

    def pytest_runtest_call(self) -> None:
        run = current_run()
        run.client.send(run.profile.actors["maintainer"], "PATCH", "/projects/77/job_token_scope", json_body={})
