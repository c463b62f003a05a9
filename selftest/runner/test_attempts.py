"""Attempts to get the result conformant although the suite did not test; none succeeds."""

from __future__ import annotations

import contextlib
import copy
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from conformance import reports
from conformance.cli.run import run_suite
from conformance.contract import Contract
from conformance.proof import all_faults
from conformance.runner.location import SUITE_FOLDER, suite_arguments
from conformance.target.embedded import prepared_service, profile_of
from selftest.conftest import VERSION, serving
from selftest.runner import obstructive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from conformance.reference import Service
    from conformance.results.record import RunRecord

pytestmark = pytest.mark.usefixtures("inside_this_process")

AREA = "code-completion"
ONE_FILE = SUITE_FOLDER / "scenarios" / "test_code_completion.py"
VIOLATED, USAGE, NOTHING_RAN, INCOMPLETE, BROKEN = 1, 4, 5, 6, 7


@dataclass(frozen=True)
class Attempt:
    """What is tried, and what the result must be."""

    name: str
    code: int
    word: str
    """What the output must say."""
    arguments: tuple[str, ...] = ()
    plugin: type | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    worlds: int = 1
    faulty: bool = False
    """Whether the service violates a requirement of the area."""

    def __str__(self) -> str:
        return self.name


def arguments(name: str, code: int, word: str, *given: str, **more: Any) -> Attempt:
    return Attempt(name, code, word, given, **more)


def plugin(kind: type, code: int, word: str, *given: str, **more: Any) -> Attempt:
    return Attempt(kind.__name__, code, word, given, kind, **more)


def _without_parameters(data: dict[str, Any]) -> None:
    fixtures = [
        entry for value in data["fixtures"].values() for entry in (value if isinstance(value, list) else [value])
    ]
    for entry in fixtures:
        entry.update({name: type(entry[name])() for name in ("parameters", "events", "settings") if name in entry})


ARGUMENTS = (
    arguments("-k", INCOMPLETE, "-k role", "-k", "role"),
    arguments("-k of nothing", NOTHING_RAN, "deselected", "-k", "no_such_test"),
    arguments("-m", INCOMPLETE, "-m every_operation", "-m", "every_operation"),
    arguments("--deselect", INCOMPLETE, "--deselect", "--deselect=tests/scenarios/test_code_completion.py"),
    arguments("--ignore", INCOMPLETE, "--ignore", f"--ignore={ONE_FILE}"),
    arguments("--ignore-glob", INCOMPLETE, "--ignore-glob", "--ignore-glob=*completion*"),
    arguments("another name of tests", INCOMPLETE, "python_functions", "-o", "python_functions=test_e*"),
    arguments("another name of files", INCOMPLETE, "python_files", "-o", "python_files=test_served.py"),
    arguments("the environment", INCOMPLETE, "-k role", environment={"PYTEST_ADDOPTS": "-k role"}),
    arguments("the same test twice", INCOMPLETE, "-k role", str(ONE_FILE), "--keep-duplicates", "-k", "role"),
    arguments("--collect-only", NOTHING_RAN, "collected", "--collect-only"),
    arguments("--help", NOTHING_RAN, "no verdict", "--help"),
    arguments("--markers", NOTHING_RAN, "no verdict", "--markers"),
    arguments("--fixtures", NOTHING_RAN, "no verdict", "--fixtures"),
    arguments("--setup-plan", INCOMPLETE, "setup-plan", "--setup-plan"),
    arguments("--setup-only", INCOMPLETE, "setup-only", "--setup-only"),
    arguments("--minutes", INCOMPLETE, "--minutes were over", "--minutes=0.00001"),
    arguments("--read-only", INCOMPLETE, "unsafe in this mode", "--read-only"),
    arguments("no fixtures", BROKEN, "broke", "-p", "no:conformance.suite.fixtures"),
    arguments("no plugin", NOTHING_RAN, "no verdict", "-p", "no:conformance.runner.plugin"),
    arguments("no runner", USAGE, "cannot be disabled", "-p", "no:runner"),
    arguments("no python", NOTHING_RAN, "no tests ran", "-p", "no:python"),
    arguments("-x", VIOLATED, "NON-CONFORMANT", "-x", faulty=True),
    arguments("--maxfail", VIOLATED, "NON-CONFORMANT", "--maxfail=1", faulty=True),
    arguments("-k and --maxfail", INCOMPLETE, "-k role", "-k", "role", "--maxfail=1"),
    arguments("-k, -m and the environment", INCOMPLETE, "deselected", "-k", "role", "-m", "not slow",
        environment={"PYTEST_ADDOPTS": "--deselect=tests/contract/test_fuzz.py"}),
    arguments("-k and a requirement", INCOMPLETE, "-k createCompletion",
        "--requirement=code-completion.completion.answered", "-k", "createCompletion"),
    arguments("an area and its opposite", INCOMPLETE, "--area", "-k", "not completion"),
    arguments("two workers and -k", INCOMPLETE, "-k role", "-n", "2", "-k", "role", worlds=2),
    arguments("two workers without time", INCOMPLETE, "--minutes were over", "-n2", "--minutes=0.00001", worlds=2),
    arguments("more workers than worlds", USAGE, "worlds", "-n", "2"),
    arguments("every worker every test", USAGE, "--dist", "-n", "2", "--dist", "each"),
)  # fmt: skip

PLUGINS = (
    plugin(obstructive.DropsBefore, INCOMPLETE, "plugin"),
    plugin(obstructive.DropsAfter, INCOMPLETE, "plugin"),
    plugin(obstructive.DropsAround, INCOMPLETE, "plugin"),
    plugin(obstructive.DropsAll, NOTHING_RAN, ""),
    plugin(obstructive.IgnoresFiles, INCOMPLETE, "plugin"),
    plugin(obstructive.Skips, INCOMPLETE, "not begun"),
    plugin(obstructive.SkipsInSetup, INCOMPLETE, "not begun"),
    plugin(obstructive.Xfails, VIOLATED, "NON-CONFORMANT", faulty=True),
    plugin(obstructive.XfailsUnrun, BROKEN, "broke"),
    plugin(obstructive.CallsNothing, INCOMPLETE, "nothing to look at"),
    plugin(obstructive.RunsNothing, INCOMPLETE, "not begun"),
    plugin(obstructive.LoopsOverNothing, INCOMPLETE, "not begun"),
    plugin(obstructive.ReportsPassed, VIOLATED, "NON-CONFORMANT", faulty=True),
    plugin(obstructive.ExitsInSetup, BROKEN, "broke"),
    plugin(obstructive.ExitsBetween, INCOMPLETE, "not begun"),
    plugin(obstructive.ExitsAtTheEnd, INCOMPLETE, "-k role", "-k", "role"),
    plugin(obstructive.TurnsExitCode, INCOMPLETE, "-k role", "-k", "role"),
    plugin(obstructive.BreaksSetup, BROKEN, "broken on purpose"),
    plugin(obstructive.BreaksTeardown, BROKEN, "broken on purpose"),
    plugin(obstructive.BreaksFinalizer, BROKEN, "broke"),
    plugin(obstructive.SkipsInFinalizer, BROKEN, "not today"),
    plugin(obstructive.WritesElsewhere, BROKEN, "was not sent"),
    plugin(obstructive.BreaksCollection, BROKEN, "broken on purpose"),
    plugin(obstructive.BreaksCollection, INCOMPLETE, "continue-on", "--continue-on-collection-errors"),
)


@dataclass(frozen=True)
class Told:
    """The result of an attempt."""

    code: int
    output: str


@pytest.fixture(scope="module")
def served() -> Iterator[Mapping[bool, tuple[Service, str]]]:
    """Two served references: one without violations in the area, and one with some."""
    fault = next(
        fault
        for fault in all_faults(Contract.load(), VERSION)
        if fault.requirement.startswith(f"{AREA}.") and not fault.ground.features and fault.ground.choices is None
    )
    right, wrong = (prepared_service(version=VERSION, worlds=2) for _ in range(2))
    fault.apply(wrong)
    with serving(right) as healthy, serving(wrong) as faulty:
        yield {False: healthy, True: faulty}


@pytest.fixture
def profiles(served: Mapping[bool, tuple[Service, str]]) -> Mapping[bool, dict[str, Any]]:
    """Their profiles. The services are reset first, because they serve only so many completions per minute."""
    for service, _ in served.values():
        service.reset()
    return {faulty: profile_of(service, address, VERSION) for faulty, (service, address) in served.items()}


class Quick:
    """A plugin that shows no source lines in tracebacks, which would take longer than the test that broke."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.tbstyle = "native"


@pytest.fixture
def attempt_with(
    profiles: Mapping[bool, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Told]:
    """Run the suite in this process with few cases and one report."""

    def one_report(record: RunRecord, folder: Path) -> tuple[Path, ...]:
        return reports.render(record, ("markdown",), folder)

    monkeypatch.setattr(reports, "render_all", one_report)

    def attempt(
        *given: str, faulty: bool = False, plugins: tuple[object, ...] = (), worlds: int = 1, **changes: Any
    ) -> Told:
        file = tmp_path / "target.yaml"
        data = {**profiles[faulty], **changes}
        data["worlds"] = data["worlds"][: worlds - 1]
        file.write_text(json.dumps(data), encoding="utf-8")
        own = (f"--target={file}", f"--out={tmp_path / 'out'}", "--corpus=none", "--max-examples=1", "--seed=1", "-q")
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = run_suite(suite_arguments(*own, *given), plugins=(*plugins, Quick()))
        return Told(code, output.getvalue())

    return attempt


@pytest.mark.parametrize("tried", [*ARGUMENTS, *PLUGINS], ids=str)
def test_no_attempt_makes_the_run_green(
    tried: Attempt, attempt_with: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in tried.environment.items():
        monkeypatch.setenv(name, value)
    made = (tried.plugin(),) if tried.plugin is not None else ()
    told = attempt_with(f"--area={AREA}", *tried.arguments, plugins=made, faulty=tried.faulty, worlds=tried.worlds)
    assert told.code == tried.code, told.output
    assert tried.word in told.output, told.output
    assert not any(green in told.output for green in ("SELECTION HOLDS", "\nCONFORMANT"))


def test_the_same_run_without_an_attempt_is_green(attempt_with: Callable[..., Told]) -> None:
    told = attempt_with(f"--area={AREA}")
    assert told.code == 0, told.output
    assert "SELECTION HOLDS" in told.output
    assert f"--area {AREA}" in told.output


PROFILES: Mapping[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], object], int, str]] = {
    "an actor less": (
        ("--requirement=code-completion.enabled.is-on",),
        lambda data: data["actors"].pop("maintainer"),
        INCOMPLETE,
        "prerequisite missing",
    ),
    "a fixture less": (
        ("--requirement=code-completion.enabled.is-on",),
        lambda data: data["fixtures"].pop("enabled_project"),
        INCOMPLETE,
        "prerequisite missing",
    ),
    "one approver instead of two": (
        ("--requirement=group-approval-rules.update.leaves-other-rules",),
        lambda data: [data["actors"].pop("second_approver"), data["fixtures"].pop("second_approver_group")],
        0,
        "SELECTION HOLDS",
    ),
    "a fixture without its path": (
        ("--requirement=code-completion.enabled.is-on",),
        lambda data: data["fixtures"]["enabled_project"].pop("path"),
        USAGE,
        "'path' is a required property",
    ),
    "no parameters of integrations": (
        ("--requirement=integrations.parameters.labels-to-be-notified.text",),
        _without_parameters,
        INCOMPLETE,
        "INCOMPLETE",
    ),
    "everything about it given up": (
        ("--area=code-completion",),
        lambda data: data["features"].update(code_completion=False),
        0,
        "not declared: code_completion,",
    ),
    "something else given up": (
        ("--requirement=authentication.private-token-spelling",),
        lambda data: data["features"].update(member_roles=False),
        0,
        "member_roles",
    ),
    "another scope": (
        ("--requirement=code-completion.completion.answered",),
        lambda data: data.update(scope=["job-token-scope"]),
        NOTHING_RAN,
        "deselected",
    ),
}


@pytest.mark.parametrize("name", PROFILES)
def test_what_a_profile_lacks_is_reported_and_does_not_make_the_run_green(
    name: str, attempt_with: Callable[..., Told], profiles: Mapping[bool, dict[str, Any]]
) -> None:
    options, change, code, word = PROFILES[name]
    data = copy.deepcopy(profiles[False])
    del data["worlds"]  # with several worlds, one of them would have what is missing
    change(data)
    told = attempt_with(*options, **data)
    assert told.code == code, told.output
    assert word in told.output


@pytest.mark.parametrize(
    ("taken", "code", "word"), [("results.jsonl", USAGE, "--out"), ("summary.md", BROKEN, "could not")]
)
def test_a_report_that_cannot_be_written_is_no_success(
    taken: str, code: int, word: str, attempt_with: Callable[..., Told], tmp_path: Path
) -> None:
    (tmp_path / "out" / taken).mkdir(parents=True)
    told = attempt_with("--requirement=authentication.private-token-spelling")
    assert told.code == code, told.output
    assert word in told.output


@pytest.mark.parametrize("option", ["--lf", "--ff", "--sw"])
def test_the_pytest_cache_of_earlier_runs_leaves_no_test_out(option: str, attempt_with: Callable[..., Told]) -> None:
    told = attempt_with(f"--requirement={AREA}.completion.answered", option)
    assert told.code == 0, told.output
