"""The checks of the version table: each can fail, none calls what must never be called, and absence is no failure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.cli.contract import tests_by_requirement as claimed
from conformance.contract import ChangeKind, Contract, Version
from conformance.reports import html, json_report
from conformance.reports.facts import Facts
from conformance.results.record import ItemSeen, ItemState, Outcome, Reason, RunRecord, TableItem, TestEnd, TestOutcome
from conformance.results.verdicts import Verdict, add_up
from conformance.suite.version_items import new_operations, new_parameters, replaced_items
from conformance.target.embedded import prepared_service, profile_data
from conformance.versions.timeline import TimelineState, timeline
from selftest.altering import altering
from selftest.conftest import run_conformance, serving
from selftest.reads import report_of, rows_of
from selftest.reports.report_samples import FOOTER, HEADER, STORY, failed, left_open, passed, planned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.app import LogEntry
    from conformance.reference.http import Request, Response

pytestmark = pytest.mark.usefixtures("inside_this_process")

CONTRACT = Contract.load()
INTRODUCED = ChangeKind.INTRODUCED
TREE = "GET /projects/:id/repository/tree"


def test_every_item_that_can_be_observed_has_a_test() -> None:
    tests = claimed()
    without = [
        change.id
        for change in CONTRACT.changes
        if change.requirement not in tests and not CONTRACT.requirements[change.requirement].not_testable
    ]
    assert without == []


#: Which parameters a body can have depends on the integration, so a scenario of the area tests those that have it.
OF_SOME_INTEGRATIONS = {"setUpIntegration.vulnerability_events", "setUpService.vulnerability_events"}


def test_every_introduced_item_is_read_or_sent_by_a_test_of_the_table() -> None:
    """Operations, parameters of queries and bodies, fields: none is left to chance."""
    operations = {operation.id: operation for operation in CONTRACT.operations(None)}
    sent = {place for _, place in [*new_operations(INTRODUCED)["argvalues"], *new_parameters(INTRODUCED)["argvalues"]]}
    left = set()
    for change in CONTRACT.changes:
        for place in change.places if change.kind is INTRODUCED and change.described else ():
            owner, _, name = place.partition(".")
            is_read = operations[owner].is_read if owner in operations else bool(name)
            if not is_read and place not in sent:
                left.add(place)
    assert left == OF_SOME_INTEGRATIONS


def test_a_deprecated_item_is_compared_with_its_described_replacement() -> None:
    replaced = [change for change in CONTRACT.changes if change.kind is ChangeKind.DEPRECATED and change.replacement]
    assert {change.id for change in replaced if change.described} == {
        shown.values[0].id for shown in replaced_items(ChangeKind.DEPRECATED)["argvalues"]
    }


def test_every_item_that_is_never_called_says_so_in_its_requirement() -> None:
    never = [change for change in CONTRACT.changes if change.never_called]
    assert never
    assert all(CONTRACT.requirements[change.requirement].not_testable for change in never)
    assert not [change.id for change in never if change.probe]


# -- against a target --------------------------------------------------------------------------------------------------


def answer(status: int, content: Any) -> Callable[[Request, Response], None]:
    def alter(_: Request, response: Response) -> None:
        response.status, response.content = status, content

    return alter


def missing_path_is_an_empty_list(_: Request, response: Response) -> None:
    if response.status == 404:
        response.status, response.content = 200, []


def forgets_one(_: Request, response: Response) -> None:
    response.content = list(response.content)[1:]  # type: ignore[call-overload] # a list of entries


def faulty(service: Service) -> None:
    """Break what the text requires, and remove what it only names."""
    altering(service, TREE, missing_path_is_an_empty_list)
    altering(service, "GET /projects/:id/integrations", forgets_one)
    altering(service, "GET /projects/:id/packages", answer(404, {"message": "404 Not Found"}))
    altering(service, "GET /projects/:id/feature_flags", answer(200, []))


def lacking(service: Service) -> None:
    """Remove everything that the text names without describing it."""
    for key in (TREE, "GET /users", "GET /projects/:id", "GET /member_roles", "GET /projects/:id/packages"):
        altering(service, key, answer(404, {"message": "404 Not Found"}))


@pytest.fixture(scope="module", params=[faulty, lacking], ids=lambda alter: alter.__name__)
def outcome(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, dict[str, Any], list[LogEntry]]:
    """Return the rows of a run of these checks alone, and every call of the run."""
    folder: Path = tmp_path_factory.mktemp("table")
    with serving() as (service, base_url):
        request.param(service)
        calls: list[LogEntry] = []
        service.request_log = calls.append
        data = profile_data(service.world, base_url, "17.7")
        (folder / "target.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        arguments = ("run", "--target", "target.yaml", "--out", "out", "--", "-k", "test_version_table")
        finished = run_conformance(*arguments, cwd=folder)
    assert "Traceback" not in finished.text, finished.text
    return request.param.__name__, rows_of(folder / "out"), calls


EXPECTED = {
    "faulty": {
        "versions.repository-tree.missing-path": Verdict.FAILED,
        "versions.integrations-renamed": Verdict.FAILED,
        "versions.packages.pipelines": Verdict.NOT_APPLICABLE,
        "versions.feature-flags.version": Verdict.INCONCLUSIVE,
        "versions.users.offset-pagination": Verdict.NOTED,
    },
    "lacking": {
        "versions.repository-tree.missing-path": Verdict.NOT_APPLICABLE,
        "versions.integrations-renamed": Verdict.PASSED,
        "versions.packages.pipelines": Verdict.NOT_APPLICABLE,
        "versions.ci-job-token-scope-enabled.deprecated": Verdict.NOT_APPLICABLE,
        "versions.users.offset-pagination": Verdict.NOT_APPLICABLE,
        "versions.member-roles.of-the-instance": Verdict.NOTED,
    },
}


def test_broken_items_fail_and_absent_ones_do_not_apply(outcome: Any) -> None:
    name, rows, _ = outcome
    found = {row: rows[row]["verdict"] for row in EXPECTED[name]}
    assert found == EXPECTED[name]
    reasons = {row["reason"] for row in rows.values() if "does not offer it" in (row["detail"] or "")}
    assert reasons == {Reason.NOT_OFFERED}


def test_a_row_is_not_told_from_a_value_that_the_target_does_not_show(tmp_path: Path) -> None:
    with serving(prepared_service(version="19.0")) as (service, base_url):
        said = {"inbound_enabled": "yes", "outbound_enabled": False}
        altering(service, "GET /projects/:id/job_token_scope", answer(200, said))
        data = profile_data(service.world, base_url, "19.0")
        (tmp_path / "target.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        only = ("--requirement", "versions.job-token-allowlist.enforced-by-default")
        run_conformance("run", "--target", "target.yaml", "--out", "out", *only, cwd=tmp_path)
    found = {entry["id"]: entry for entry in report_of(tmp_path / "out")["timeline"]}["18.0-job-token-allowlist"]
    assert found["state"] == "not seen"
    assert found["detail"] == "the settings do not show inbound_enabled as true or false"


def test_what_must_never_be_called_is_never_called(outcome: Any) -> None:
    _, _, calls = outcome
    forbidden = re.compile(r"/runners|/credit_card|/minutes|/subscription|/gitlab_subscription|registration_token")
    assert len(calls) > 20
    assert [entry for entry in calls if forbidden.search(entry.path)] == []
    named = re.compile(r"/(users|member_roles|audit_events|packages|feature_flags|repository/tree)(\?|$|/)")
    assert {entry.method for entry in calls if named.search(entry.path)} == {"GET"}


# -- the timeline ------------------------------------------------------------------------------------------------------


def item(name: str, kind: str, version: str) -> TableItem:
    return TableItem(name, version, kind, f"the {name}", f"What becomes of the {name}.", f"versions.{name}")


TABLE = (
    item("old-field", "deprecated", "12.3"),
    item("new-field", "introduced", "15.3"),
    item("lost-field", "introduced", "15.8"),
    item("tree", "changed", "17.7"),
    item("coming", "removed", "18.0"),
    item("some-day", "announced", "future"),
)
ENDED = TestEnd(STORY, TestOutcome.PASSED, 3.0, 30)
RECORD = RunRecord(
    HEADER,
    tuple(planned(entry.requirement) for entry in TABLE),
    (
        passed("versions.new-field"),
        failed("versions.lost-field"),
        left_open("versions.tree", Reason.NOT_OFFERED, Outcome.NOT_APPLICABLE),
    ),
    (ENDED,),
    FOOTER,
    table=TABLE,
    items=(ItemSeen("old-field", ItemState.STILL_SERVED, "the field is still shown", STORY),),
)


def test_the_state_of_each_item_is_what_was_seen_or_what_its_requirement_shows() -> None:
    found = {entry.item.id: (entry.state, entry.reached) for entry in timeline(RECORD, add_up(RECORD))}
    assert found == {
        "old-field": (TimelineState.STILL_SERVED, True),
        "new-field": (TimelineState.MADE, True),
        "lost-field": (TimelineState.NOT_MADE, True),
        "tree": (TimelineState.OPEN, True),
        "coming": (TimelineState.AHEAD, False),
        "some-day": (TimelineState.ANNOUNCED, None),
    }


def test_an_absent_item_does_not_apply_unless_something_was_verified_or_failed() -> None:
    verdicts = {row.requirement.id: row.verdict for row in add_up(RECORD).rows}
    assert verdicts["versions.tree"] is Verdict.NOT_APPLICABLE
    for more, verdict in ((failed("versions.tree"), Verdict.FAILED), (passed("versions.tree"), Verdict.PASSED)):
        record = RunRecord(HEADER, RECORD.plan, (*RECORD.checks, more), (ENDED,), FOOTER)
        assert {row.requirement.id: row.verdict for row in add_up(record).rows}["versions.tree"] is verdict


def test_the_report_marks_the_version_of_the_target_on_the_timeline() -> None:
    page = html.render(Facts.of(RECORD))
    section = page[page.index('id="versions"') : page.index('id="requirements"')]
    marker = section.index("is the version of the target")
    assert section.count("is the version of the target") == 1
    assert section.index("<b>17.7</b>\n") < marker < section.index("<b>18.0</b>")
    assert "still served" in section
    data = json.loads("".join(json_report.render(Facts.of(RECORD))))
    assert [entry["state"] for entry in data["timeline"]][:3] == ["still served", "made", "not made"]
    assert data["timeline"][2]["verdict"] == "failed"


def test_an_item_is_made_only_if_all_tests_of_it_saw_so() -> None:
    """A field that is shown does not outweigh a parameter that is not accepted, in whichever order they are tested."""
    for states in ((ItemState.MADE, ItemState.NOT_MADE), (ItemState.NOT_MADE, ItemState.MADE)):
        items = tuple(ItemSeen("new-field", state, str(state), STORY) for state in states)
        record = replace(RECORD, items=items)
        found = {entry.item.id: entry.state for entry in timeline(record, add_up(record))}
        assert found["new-field"] is TimelineState.NOT_MADE


def test_at_an_unknown_version_verdicts_and_timeline_marks_say_nothing() -> None:
    record = replace(RECORD, header=replace(HEADER, version="unknown"))
    states = {entry.item.id: entry.state for entry in timeline(record, add_up(record))}
    assert states["old-field"] is TimelineState.STILL_SERVED
    assert states["new-field"] is TimelineState.OPEN
    assert "is the version of the target" not in html.render(Facts.of(record))


@pytest.mark.parametrize(("version", "reached"), [("17.6", False), ("17.7", True), ("19.0", True), (None, True)])
def test_a_row_is_reached_from_its_version_on(version: str | None, reached: bool) -> None:  # noqa: FBT001 - a column
    tree = next(change for change in CONTRACT.changes if change.id == "17.7-repository-tree")
    assert tree.reached(Version.parse(version) if version else None) is reached
