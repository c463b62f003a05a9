"""Plugins of pytest that keep the suite from looking, in one way each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.context import current_run

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_KEPT = 3


class DropsBefore:
    """Takes tests out before the suite has seen them."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        del items[_KEPT:]


class DropsAfter:
    """Takes tests out after the suite has planned them, and tells nobody."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        del items[_KEPT:]


class DropsAround:
    """Takes tests out when every other plugin is through with them."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        yield
        del items[_KEPT:]


class DropsAll:
    """Leaves pytest with nothing to run, after the collection."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        session.items.clear()


class IgnoresFiles:
    """Lets pytest overlook all files of one kind."""

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if "completion" in collection_path.name else None


class Skips:
    """Marks every test to be skipped."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="not today"))


class SkipsInSetup:
    """Skips every test when it is set up."""

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
    """Takes the place of what calls a test's function."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self) -> bool:
        return True


class RunsNothing:
    """Takes the place of what runs a test."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool:
        return True


class LoopsOverNothing:
    """Takes the place of what goes through the tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        return True


class ReportsPassed:
    """Lets every report say that its phase passed."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        report.outcome = "passed"
        return report


class ExitsInSetup:
    """Ends pytest with success at the first test."""

    def pytest_runtest_setup(self) -> None:
        pytest.exit("that will do", returncode=0)


class ExitsBetween:
    """Ends pytest with success after the first test."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        pytest.exit("that will do", returncode=0)


class ExitsAtTheEnd:
    """Ends pytest with success while it finishes."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        pytest.exit("that will do", returncode=0)


class TurnsExitCode:
    """Puts success in the place of every other exit code."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        yield
        session.exitstatus = 0


class BreaksSetup:
    """Breaks before each test."""

    def pytest_runtest_setup(self) -> None:
        raise RuntimeError("broken on purpose")


class BreaksTeardown:
    """Breaks after each test."""

    def pytest_runtest_teardown(self) -> None:
        raise RuntimeError("broken on purpose")


class BreaksFinalizer:
    """Breaks in what a test leaves to be done after it."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        def finalizer() -> None:
            raise RuntimeError("broken on purpose")

        item.addfinalizer(finalizer)


class SkipsInFinalizer:
    """Skips a test in what it leaves to be done after it."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.addfinalizer(lambda: pytest.skip("not today"))


class BreaksCollection:
    """Breaks while the tests of one file are collected."""

    def pytest_pycollect_makemodule(self, module_path: Path) -> None:
        if "completion" in module_path.name:
            raise RuntimeError("broken on purpose")


class WritesElsewhere:
    """Lets every test change a project that is nobody's business."""

    def pytest_runtest_call(self) -> None:
        run = current_run()
        run.client.send(run.profile.actors["maintainer"], "PATCH", "/projects/77/job_token_scope", json_body={})
