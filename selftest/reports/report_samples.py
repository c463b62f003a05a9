"""Records made by hand: each is the smallest that shows one thing that a report must do right."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.results.parts import Part, merge_into
from conformance.results.reading import read_record
from conformance.results.record import (
    RECORD_FORM,
    Check,
    Evidence,
    Footer,
    Header,
    KnownFailure,
    Outcome,
    PlannedRequirement,
    Reason,
    RunRecord,
    TestEnd,
    TestOutcome,
)
from conformance.results.recorder import Recorder
from conformance.results.verdicts import add_up

STORY = "tests/scenarios/test_job_token_scope.py::test_switching_the_limit"
FUZZ = "tests/contract/test_operations.py::test_answers[GET /projects/{id}]"

HEADER = Header(
    form=RECORD_FORM,
    suite="0.1.0",
    contract="3f9ac1d27b60",
    target="staging",
    base_url="http://127.0.0.1:8080",
    version="17.7",
    edition="premium",
    profile={"base_url": "http://127.0.0.1:8080", "actors": {"maintainer": {"token": "$TOKEN_MAINTAINER"}}},
    seed=4711,
    started="2026-03-01T10:00:00+00:00",
    python="3.12.1",
    arguments=("--max-examples", "10"),
    command="conformance run --max-examples 10 --seed 4711",
)
FOOTER = Footer("", 0, "2026-03-01T10:01:05+00:00", requests=340, seconds=65.25)

CURL = (
    'curl -i -X PATCH -H "PRIVATE-TOKEN: $TOKEN_MAINTAINER" --data-binary \'{"enabled": true}\' http://127.0.0.1:8080'
)
EXCHANGE = Evidence(
    actor="maintainer",
    request="PATCH /api/v4/projects/7/job_token_scope",
    request_body='{"enabled": true}',
    status=204,
    response_body="an undue <b>body</b>",
    milliseconds=12.5,
    curl=CURL,
)


def planned(name: str, **changes: Any) -> PlannedRequirement:
    """Plan a requirement that must be met, verified by the scenario."""
    entry = PlannedRequirement(
        id=name,
        area=name.split(".", maxsplit=1)[0],
        statement=f"The service does what {name} says.",
        section="Endpoints > Job token scope",
        level="must",
        kind="status",
        when="every version",
        status="applicable",
        tests=(STORY,),
    )
    return replace(entry, **changes)


def passed(name: str, *, claimed: bool = True) -> Check:
    """Make a check that holds."""
    return Check(name, Outcome.PASSED, STORY, claimed=claimed)


def failed(name: str, expected: str = "204 without a body", actual: str = "204 with 20 bytes", **more: Any) -> Check:
    """Make a check that fails, with one exchange as evidence."""
    check = Check(name, Outcome.FAILED, STORY, expected=expected, actual=actual, evidence=(EXCHANGE,))
    return replace(check, **more)


def left_open(name: str, reason: Reason, outcome: Outcome = Outcome.INCONCLUSIVE) -> Check:
    """Make a check that is inconclusive."""
    return Check(name, outcome, STORY, reason=reason, detail=f"{reason} in this sample")


def observed(name: str, what: str) -> Check:
    """Record an observation."""
    return Check(name, Outcome.OBSERVED, STORY, detail=what)


def record(
    *plan: PlannedRequirement,
    checks: tuple[Check, ...] = (),
    tests: tuple[TestEnd, ...] | None = None,
    footer: Footer | None = FOOTER,
    header: Header = HEADER,
) -> RunRecord:
    """Make a record; its only test took three seconds unless stated otherwise."""
    ends = (TestEnd(STORY, TestOutcome.PASSED, 3.0, 30),) if tests is None else tests
    return RunRecord(header, plan, checks, ends, footer)


def written(run: RunRecord, folder: Path) -> Path:
    """Write a record as a run does, with the verdict in its footer, and return its file."""
    recorder = Recorder(folder / "results.jsonl")
    recorder.write(run.header)
    recorder.write_plan(run.plan)
    for check in run.checks:
        recorder.write(check)
    for end in run.tests:
        recorder.write(end)
    if run.footer is None:
        recorder.close()
    else:
        result = add_up(run)
        recorder.close_with(replace(run.footer, verdict=result.verdict, exit_code=result.exit_code))
    return recorder.file


CONFORMANT = record(
    planned("scope.read"),
    planned("scope.switch"),
    planned("scope.page-size", level="note"),
    planned("export.start", status="not applicable", reason=Reason.VERSION, detail="holds from 18.0", tests=()),
    checks=(passed("scope.read"), passed("scope.switch"), observed("scope.page-size", "20 entries without per_page")),
)

NON_CONFORMANT = record(
    planned("scope.read"),
    planned("scope.switch", kind="transition"),
    planned("scope.hint", level="should"),
    planned("export.start", status="pending", reason=Reason.NO_TEST_YET, detail="no test", tests=()),
    checks=(
        passed("scope.read"),
        passed("scope.switch"),
        failed("scope.switch", place="/namespace/parent_id"),
        failed("scope.switch", expected="404", actual="200"),
        failed("scope.hint", expected="a hint followed", actual="a hint ignored"),
    ),
)

INCOMPLETE = record(
    planned("scope.read"),
    planned("scope.switch"),
    planned("scope.add"),
    planned("scope.remove"),
    planned("scope.seen-in-passing"),
    planned("scope.hint", level="should"),
    planned("export.start", status="pending", reason=Reason.NO_TEST_YET, detail="no test", tests=()),
    planned("export.status", status="pending", reason=Reason.NO_TEST_YET, detail="no test", tests=()),
    checks=(
        passed("scope.read"),
        passed("scope.switch"),
        left_open("scope.switch", Reason.PRECONDITION),
        left_open("scope.add", Reason.PREREQUISITE_MISSING, Outcome.NOT_TESTED),
        left_open("scope.remove", Reason.NO_ANSWER),
        passed("scope.seen-in-passing", claimed=False),
        left_open("scope.hint", Reason.VACUOUS),
    ),
)

BROKEN = record(
    planned("scope.read"),
    planned("scope.switch", tests=(FUZZ,)),
    checks=(passed("scope.read"), left_open("scope.switch", Reason.HARNESS_ERROR)),
    tests=(
        TestEnd(STORY, TestOutcome.PASSED, 3.0, 30),
        TestEnd(FUZZ, TestOutcome.BROKEN, 1.0, 2, "KeyError: 'id'", "call"),
    ),
)

#: Broken after all its checks: no requirement shows it.
BROKEN_LATE = record(
    planned("scope.read"),
    checks=(passed("scope.read"),),
    tests=(TestEnd(STORY, TestOutcome.BROKEN, 3.0, 30, "OSError: no space left", "teardown"),),
)

TRUNCATED = record(planned("scope.read"), checks=(passed("scope.read"),), footer=None)

STOPPED = record(
    planned("scope.read"),
    checks=(passed("scope.read"),),
    footer=replace(FOOTER, detail="the operator interrupted the run"),
)

UNSTABLE = record(
    planned("scope.read"),
    planned("scope.switch"),
    planned("scope.hint", level="should"),
    checks=(
        passed("scope.read"),
        failed("scope.switch", outcome=Outcome.UNSTABLE, detail="it failed at first, and not once more"),
        failed("scope.hint", outcome=Outcome.UNSTABLE, detail="it failed at first, and not once more"),
    ),
    tests=(TestEnd(STORY, TestOutcome.UNSTABLE, 3.0, 30),),
    header=replace(HEADER, subjects=("service=sha256:" + "0f" * 32,)),
)

#: All failures are known; one entry of the baseline holds again.
WAIVED = record(
    planned("scope.read", known_failure=KnownFailure("ticket 11", "team A", "2026-12-31")),
    planned("scope.switch", known_failure=KnownFailure("ticket 12", "team B", "2026-12-31", "https://example.com/12")),
    checks=(passed("scope.read"), failed("scope.switch")),
)

EMPTY = record(tests=())

_NASTY = (
    "\x00\x08\x1b[31mred\x1b[0m \x7f\x9f ]]> </script><script>alert(1)</script> <!-- `` ``` | "
    "\ud800 \u202e \uffff {{ 7*7 }} \U0001f600 \r\n \r"
)
#: Nothing in it may break a format or act as markup.
ODD = record(
    planned(
        f"scope.{_NASTY}", area=_NASTY, statement=_NASTY, section=_NASTY, detail=_NASTY, when=_NASTY, tests=(_NASTY,)
    ),
    planned("scope.silent"),
    planned("scope.huge"),
    planned("scope.seen"),
    checks=(
        failed(
            f"scope.{_NASTY}",
            expected=_NASTY,
            actual=_NASTY,
            place=_NASTY,
            detail=_NASTY,
            test=_NASTY,
            evidence=(Evidence(_NASTY, _NASTY, _NASTY, 200, _NASTY, 1.0, _NASTY),),
        ),
        Check("scope.silent", Outcome.FAILED, STORY, evidence=(Evidence("", "", None, None, None, 0.0, ""),)),
        failed("scope.huge", evidence=(replace(EXCHANGE, response_body="y" * 300_000),) * 3),
        *(failed("scope.huge", actual="x" * 300_000) for _ in range(40)),
        observed("scope.seen", _NASTY),
        observed("scope.unknown", "of a requirement that nobody planned"),
    ),
    tests=(TestEnd(_NASTY, TestOutcome.BROKEN, 0.0, 0, _NASTY),),
    footer=replace(FOOTER, detail=_NASTY),
    header=replace(
        HEADER, target=_NASTY, profile={"limit": float("inf"), "name": _NASTY}, started="soon", warnings=(_NASTY,)
    ),
)

_SHARDED = tuple(
    planned(name, tests=tests)
    for name, tests in (
        ("scope.read", (STORY,)),
        ("scope.switch", (FUZZ,)),
        ("scope.both", (STORY, FUZZ)),
        ("scope.open", (FUZZ,)),
    )
)


def _shard(number: int, ran: str, *checks: Check, footer: Footer | None = FOOTER) -> RunRecord:
    ends = (
        TestEnd(test, TestOutcome.PASSED, 3.0, 30)
        if test == ran
        else TestEnd(test, TestOutcome.DESELECTED, 0.0, 0, Reason.ANOTHER_SHARD)
        for test in (STORY, FUZZ)
    )
    found = tuple(replace(check, test=ran) for check in checks)
    return record(
        *_SHARDED, checks=found, tests=tuple(ends), footer=footer, header=replace(HEADER, shard=f"{number}/2")
    )


def merged(*shards: RunRecord) -> RunRecord:
    """Merge the records of shards, as `conformance merge` does."""
    with TemporaryDirectory() as folder:
        parts = []
        for number, shard in enumerate(shards):
            file = written(shard, Path(folder) / str(number))
            rows = tuple(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
            parts.append(Part(f"shard {number + 1}", read_record(file), rows))
        return merge_into(Recorder(Path(folder) / "all" / "results.jsonl"), parts)[0]


_FIRST = _shard(1, STORY, passed("scope.read"), passed("scope.both"))
_SECOND = (failed("scope.switch"), passed("scope.both"), left_open("scope.open", Reason.PRECONDITION))
MERGED = merged(_FIRST, _shard(2, FUZZ, *_SECOND))
#: The second shard is missing.
MERGED_IN_PART = merged(_FIRST)

#: A selected test has shown that a requirement outside the selection is violated.
BESIDE = replace(
    record(
        planned("scope.read"),
        planned("errors.body", selected=False, tests=()),
        planned("errors.hint", level="should", selected=False, tests=()),
        planned("export.start", selected=False, tests=()),
        planned("export.status", selected=False, status="not applicable", reason=Reason.VERSION, tests=()),
        checks=(passed("scope.read"), failed("errors.body"), failed("errors.hint")),
        tests=(TestEnd(STORY, TestOutcome.FAILED, 3.0, 30),),
    ),
    header=replace(HEADER, selection=("--area scope",)),
)

SAMPLES = {
    "conformant": CONFORMANT,
    "non-conformant": NON_CONFORMANT,
    "incomplete": INCOMPLETE,
    "broken": BROKEN,
    "broken late": BROKEN_LATE,
    "truncated": TRUNCATED,
    "stopped": STOPPED,
    "unstable": UNSTABLE,
    "waived": WAIVED,
    "empty": EMPTY,
    "odd": ODD,
    "merged": MERGED,
    "merged in part": MERGED_IN_PART,
    "violated beside the selection": BESIDE,
}
VERDICTS = {
    "conformant": "conformant",
    "non-conformant": "non-conformant",
    "incomplete": "incomplete",
    "broken": "suite broken",
    "broken late": "suite broken",
    "truncated": "incomplete",
    "stopped": "incomplete",
    "unstable": "incomplete",
    "waived": "non-conformant",
    "empty": "incomplete",
    "odd": "non-conformant",
    "merged": "non-conformant",
    "merged in part": "incomplete",
    "violated beside the selection": "non-conformant",
}
