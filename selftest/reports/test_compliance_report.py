"""The compliance report: what an auditor reads, on a few sheets of paper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract, Version
from conformance.reports import compliance, render
from conformance.reports.facts import Facts
from conformance.results.plan import access, table
from conformance.results.record import (
    AccessRule,
    Check,
    Evidence,
    KnownFailure,
    Outcome,
    Reason,
    RunRecord,
    TestEnd,
    TestOutcome,
)
from conformance.results.verdicts import add_up
from conformance.target.names import SHOWING_MORE
from selftest.reports.browser import needs_browser, printed_pages
from selftest.reports.report_samples import (
    CONFORMANT,
    EXCHANGE,
    FOOTER,
    HEADER,
    SAMPLES,
    VERDICTS,
    failed,
    left_open,
    passed,
    planned,
    record,
)

if TYPE_CHECKING:
    from pathlib import Path

LONG = "something that takes rather many words to tell, such as where it is and what it should have been; " * 4


def worst() -> RunRecord:
    """Return a run in which nearly everything failed or is open, each for its own reason, with long texts."""
    rows, checks = [], []
    for number in range(900):
        name = f"area-{number % 17}.a-rather-long-name-of-a-thing.and-what-it-does-{number}"
        rows.append(planned(name, statement=LONG, section=LONG))
        checks.append(
            failed(name, expected=LONG, actual=f"{number} {LONG}")
            if number % 2
            else replace(left_open(name, Reason.PREREQUISITE_MISSING, Outcome.NOT_TESTED), detail=f"{number} {LONG}")
        )
    contract = Contract.load()
    broken = tuple(TestEnd(f"tests/a.py::test_{number}", TestOutcome.BROKEN, detail=LONG) for number in range(30))
    made = record(*rows, checks=tuple(checks), tests=broken, footer=replace(FOOTER, detail=LONG))
    header = replace(HEADER, warnings=(LONG, f"{LONG}!"), command="conformance run " + "--area something " * 20)
    return replace(made, header=header, table=table(contract), access=access(contract, Version.parse("17.7")))


@pytest.mark.parametrize("name", SAMPLES)
def test_it_states_the_verdict_in_a_sentence(name: str) -> None:
    facts = Facts.of(SAMPLES[name])
    text = compliance.render(facts)
    assert f'<span class="word">{VERDICTS[name]}</span>' in text
    assert compliance.sentence(facts).endswith(".")


def test_the_sentences_about_a_violation_and_about_a_gap_differ() -> None:
    said = {name: compliance.sentence(Facts.of(SAMPLES[name])) for name in SAMPLES}
    assert said["conformant"] == (
        "staging does what the specification demands of it, as far as that was tried: each of the 2 statements to be "
        "verified held."
    )
    assert "of 3 statements to be verified, 1 was seen to be violated. Besides, 1 stayed" in said["non-conformant"]
    assert "of 7 statements to be verified, 6 stayed open" in said["incomplete"]
    assert said["incomplete"].startswith("Nothing was seen that breaks the specification; but of 7")
    assert said["unstable"].startswith("What was seen once to break the specification was not seen again; but of 2")
    whole = SAMPLES["incomplete"]
    part = replace(whole, header=replace(whole.header, selection=("--area integrations",)))
    wanted = "of 7 statements to be verified (those selected for this run), 6 stayed open"
    assert wanted in compliance.sentence(Facts.of(part))
    beside = "of 2 statements to be verified (those selected for this run, and 1 that failed on the way)"
    assert f"{beside}, 1 was seen to be violated." in said["violated beside the selection"]
    assert said["truncated"].endswith("The run was cut off before its end; what would have followed was not seen.")
    assert said["broken"].startswith("A test of the suite itself broke")


def test_the_sentence_about_a_run_of_hints_alone_does_not_say_that_nothing_ran() -> None:
    hint = planned("scope.hint", level="should")
    told = "so that this run does not show whether staging is conformant."
    tried = compliance.sentence(Facts.of(record(hint, checks=(passed("scope.hint"),))))
    assert tried == f"What was tried are recommendations and observations, {told}"
    assert compliance.sentence(Facts.of(record(hint))) == f"Nothing was tested, {told}"


def test_the_sentence_about_a_damaged_record_does_not_count_what_it_lost() -> None:
    ended = replace(FOOTER, verdict="non-conformant", exit_code=1)
    whole = record(planned("scope.read"), checks=(passed("scope.read"),), footer=ended)
    told = compliance.sentence(Facts.of(replace(whole, damage=("line 7 of the record cannot be read",))))
    assert "the record of the run is damaged" in told
    assert "0 were seen" not in told


def test_what_nobody_tried_although_it_may_apply_is_told_with_the_verdict() -> None:
    untried = {"status": "not applicable", "tests": ()}
    run = record(
        planned("scope.read"),
        planned("scope.inside", reason=Reason.NOT_OBSERVABLE, detail="no call shows it", **untried),
        planned("scope.limit", reason=Reason.FEATURE_NOT_DECLARED, detail="not declared", **untried),
        planned("scope.limit-too", reason=Reason.FEATURE_NOT_DECLARED, detail="not declared", **untried),
        planned("scope.hint", reason=Reason.NOT_OBSERVABLE, level="should", **untried),
        planned("scope.later", reason=Reason.VERSION, detail="holds from 18.0", **untried),
        checks=(passed("scope.read"),),
    )
    told = (
        "held. Not tried: 1 that cannot be observed from outside, and 2 of features that the profile does not declare."
    )
    assert compliance.sentence(Facts.of(run)).endswith(told)
    selected = replace(run, header=replace(run.header, selection=("--area scope",)))
    assert told in compliance.sentence(Facts.of(selected))
    page = compliance.render(Facts.of(run))
    assert "<dt>left out</dt><dd>4 of level must" in page
    assert "<p>Nothing: whatever was not left out was tried.</p>" in page


@pytest.mark.parametrize("name", SAMPLES)
def test_one_thing_has_one_name(name: str) -> None:
    page = compliance.render(Facts.of(SAMPLES[name])).partition("<body")[2]
    for other in ("not owed", "not applicable", "not judged", "not verified", "waived", "applies"):
        assert other not in page, other


def test_the_tested_artifact_is_named_with_its_digest() -> None:
    named = replace(CONFORMANT, header=replace(HEADER, subjects=("service=sha256:" + "ab" * 32,)))
    assert f"<code>service=sha256:{'ab' * 32}</code>" in compliance.render(Facts.of(named))
    assert "<code>--subject NAME=DIGEST</code> names it" in compliance.render(Facts.of(CONFORMANT))


READ, WRITE = (
    "tests/contract/test_authorization.py::test_who[read]",
    "tests/contract/test_authorization.py::test_who[write]",
)
RULES = (
    AccessRule("read", "GET /things", "scope", {"maintainer": "scope.served"}, {"guest": "scope.refused"}),
    AccessRule("write", "PUT /things", "scope", {"maintainer": "scope.served"}, {"guest": "scope.refused"}),
)


def test_the_grid_marks_the_operation_and_the_caller_that_failed() -> None:
    guest = replace(EXCHANGE, actor="guest", request="PUT /api/v4/things")
    run = record(
        planned("scope.served", tests=(READ, WRITE)),
        planned("scope.refused", tests=(READ, WRITE)),
        checks=(
            replace(passed("scope.served"), test=WRITE),
            failed("scope.refused", test=WRITE, evidence=(EXCHANGE, guest)),
        ),
        tests=(TestEnd(READ, TestOutcome.PASSED), TestEnd(WRITE, TestOutcome.FAILED)),
    )
    run = replace(run, access=RULES)
    found = compliance.grid(run, add_up(run).rows)
    signs = {row.label: {actor: cell.sign for actor, cell in row.cells.items()} for row in found.rows}
    assert signs == {
        "GET /things": {"maintainer": "S", "guest": "R"},
        "PUT /things": {"maintainer": "S", "guest": "R ✗"},
    }


def test_the_grid_separates_open_cells_from_those_that_do_not_apply() -> None:
    run = record(
        planned("scope.served", status="not applicable", reason=Reason.VERSION, tests=()),
        planned("scope.refused", tests=(READ, WRITE)),
        checks=(replace(left_open("scope.refused", Reason.NO_ANSWER), test=READ),),
        tests=(TestEnd(READ, TestOutcome.PASSED), TestEnd(WRITE, TestOutcome.PASSED)),
    )
    run = replace(run, access=RULES)
    cells = compliance.grid(run, add_up(run).rows).rows[0].cells
    assert {actor: cell.sign for actor, cell in cells.items()} == {"maintainer": "S -", "guest": "R ?"}


def test_the_grid_has_nothing_verified_for_an_operation_that_no_test_calls() -> None:
    run = record(
        planned("scope.served", tests=(READ,)),
        planned("scope.refused", tests=(READ,)),
        checks=tuple(replace(passed(name), test=READ) for name in ("scope.served", "scope.refused")),
        tests=(TestEnd(READ, TestOutcome.PASSED),),
    )
    rules = (*RULES, replace(RULES[1], area="elsewhere", label="PUT /others", operation="other"))
    run = replace(run, access=rules, header=replace(run.header, scope=("scope",)))
    signs = {row.label: row.cells["guest"].sign for row in compliance.grid(run, add_up(run).rows).rows}
    assert signs == {"GET /things": "R", "PUT /things": "R ?", "PUT /others": "R -"}


def test_a_fixture_that_is_not_in_the_profile_leaves_every_cell_open() -> None:
    lacking = left_open("scope.refused", Reason.PREREQUISITE_MISSING)
    run = record(
        planned("scope.refused", tests=(READ,)),
        checks=(replace(lacking, test=READ, detail="fixture 'group' is not in the target profile"),),
        tests=(TestEnd(READ, TestOutcome.NOT_TESTED),),
    )
    run = replace(run, access=RULES[:1])
    assert compliance.grid(run, add_up(run).rows).rows[0].cells["guest"].sign == "R ?"


def test_an_actor_that_is_not_in_the_profile_leaves_only_its_own_cell_open() -> None:
    lacking = left_open("scope.refused", Reason.PREREQUISITE_MISSING)
    run = record(
        planned("scope.refused", tests=(READ,)),
        checks=(replace(lacking, test=READ, detail="actor 'reporter' is not in the target profile"),),
        tests=(TestEnd(READ, TestOutcome.PASSED),),
    )
    refused = {"guest": "scope.refused", "reporter": "scope.refused"}
    run = replace(run, access=(replace(RULES[0], served={}, refused=refused),))
    cells = compliance.grid(run, add_up(run).rows).rows[0].cells
    assert {actor: cell.sign for actor, cell in cells.items()} == {"guest": "R", "reporter": "R ?"}


def test_an_optional_fixture_is_reported_as_missing_if_the_scope_could_use_it() -> None:
    run = record(planned("scope.read"), checks=(passed("scope.read"),))
    known: dict[str, object] = {name: {"id": 1} for name in SHOWING_MORE}
    del known["inner_group"]
    for scope, told in (((), True), (("job-token-scope",), True), (("integrations",), False)):
        facts = Facts.of(replace(run, header=replace(run.header, scope=scope, profile={"fixtures": known})))
        assert facts.headline.get("not named", "").startswith("inner_group:") is told
        assert ("<dt>not named</dt><dd>inner_group:" in compliance.render(facts)) is told


def test_gaps_with_the_same_reason_are_together_the_most_urgent_first() -> None:
    run = record(
        *(planned(f"scope.thing-{number}") for number in range(5)),
        planned("scope.hint", level="should"),
        checks=(
            *(left_open(f"scope.thing-{number}", Reason.NO_ANSWER) for number in range(5)),
            left_open("scope.hint", Reason.VACUOUS),
        ),
    )
    first, second = Facts.of(run).gap_groups
    assert (first.reason, first.owed, first.shown) == (
        "no answer",
        5,
        "scope.thing-0, scope.thing-1, scope.thing-2 and 2 more",
    )
    assert (second.reason, second.owed) == ("nothing to look at", 0)


def test_deselected_requirements_are_one_gap_whatever_their_tests() -> None:
    rows = [planned(f"scope.thing-{number}", tests=(f"tests/a/test_b.py::test_c[{number}]",)) for number in range(4)]
    ends = tuple(TestEnd(row.tests[0], TestOutcome.DESELECTED, detail="by an option") for row in rows)
    facts = Facts.of(record(*rows, tests=ends))
    (gap,) = facts.gap_groups
    assert (gap.owed, gap.detail) == (4, "deselected: by an option")
    assert "<dd>0 of 4, random choices" in compliance.render(facts)


def test_what_is_left_out_has_its_reason_and_areas_outside_the_scope_are_counted() -> None:
    later = {"status": "not applicable", "reason": Reason.VERSION, "detail": "holds from 18.0", "tests": ()}
    outside = {"status": "not applicable", "reason": Reason.OUT_OF_SCOPE, "detail": "not claimed", "tests": ()}
    run = record(
        planned("scope.read"),
        planned("export.start", **later),
        planned("export.status", **later),
        planned("export.hint", **{**later, "level": "should"}),
        *(planned(f"hooks.rule-{number}", **outside) for number in range(3)),
        planned("scope.shown-elsewhere", **outside),
        checks=(passed("scope.read"),),
        header=replace(HEADER, scope=("scope",)),
    )
    page = compliance.render(Facts.of(run))
    assert "holds from 18.0" in page
    assert "<b>scope</b>: shown-elsewhere<" in page
    assert "<b>export</b>: start, status<" in page
    assert "<b>hooks</b>: 3 statements<" in page
    assert "left-out" not in compliance.render(Facts.of(record(planned("scope.read"), checks=(passed("scope.read"),))))


def test_the_list_of_known_failures_is_shown() -> None:
    run = record(planned("scope.read", known_failure=KnownFailure("ticket 12")), checks=(failed("scope.read"),))
    text = compliance.render(Facts.of(run))
    assert "ticket 12" in text
    assert "1 of these the operator knows of" in compliance.sentence(Facts.of(run))


def _open(name: str, detail: str) -> Check:
    return replace(left_open(name, Reason.PREREQUISITE_MISSING, Outcome.NOT_TESTED), detail=detail)


def test_every_open_requirement_is_named_and_grouped_by_reason() -> None:
    many = [f"scope.statement-{number}" for number in range(60)]
    lacking = {
        f"hooks.of-{name}": f"no integration of the profile has {name}: name one that has, with it among its parameters"
        for name in ("token", "channel", "active")
    }
    lacking["hooks.of-channel"] += "; if the service has none, write `integration_channels: false` below features"
    checks = [_open(name, "for one reason") for name in many] + [_open(*entry) for entry in lacking.items()]
    checks += [_open(f"own.{word}", f"for want of {word}") for word in ("ants", "bees", "cats", "dogs")]
    run = record(*(planned(check.requirement) for check in checks), checks=tuple(checks))
    rows = compliance.open_rows(Facts.of(run).gap_groups)
    assert [names for _, names in rows][:2] == [
        "scope: " + ", ".join(name.partition(".")[2] for name in many),
        "hooks: of-token, of-channel, of-active",
    ]
    assert rows[1][0].detail.startswith("no integration of the profile has active, channel or token: add one that has")
    assert rows[1][0].detail.endswith("if the service has none, write `integration_channels: false` below features")
    assert len(rows) == 6
    assert "more reason" not in compliance.render(Facts.of(run))


def test_it_names_who_ran_it_and_uses_the_singular_for_one_requirement() -> None:
    run = record(planned("scope.read"), checks=(passed("scope.read"),), header=replace(HEADER, run_by="kim on build-7"))
    text = compliance.render(Facts.of(run))
    assert "<dt>run by</dt><dd>kim on build-7</dd>" in text
    assert "the one statement to be verified held." in text


def test_a_path_of_the_grid_may_break_before_a_slash() -> None:
    run = replace(record(planned("scope.read")), access=RULES)
    assert "<code>GET <wbr>/things</code>" in compliance.render(Facts.of(run))


def test_what_stayed_changed_is_reported() -> None:
    left = record(planned("scope.read"), footer=replace(FOOTER, left=("an entry of the allowlist of project 7",)))
    assert "<li>an entry of the allowlist of project 7</li>" in compliance.render(Facts.of(left))
    assert "what it changed was put back" in compliance.render(Facts.of(CONFORMANT))
    assert "<code>conformance restore FOLDER</code>" in compliance.render(Facts.of(SAMPLES["truncated"]))


@needs_browser
@pytest.mark.parametrize("name", ["worst", "odd", "empty"])
def test_it_prints_on_six_pages_at_most(name: str, tmp_path: Path) -> None:
    (page,) = render(worst() if name == "worst" else SAMPLES[name], ["compliance"], tmp_path)
    assert 1 <= printed_pages(page) <= 6


def test_a_caller_without_evidence_leaves_the_cell_open() -> None:
    silent = Evidence("", "", None, None, None, 0.0, "")
    run = record(
        planned("scope.refused", tests=(WRITE,)),
        checks=(failed("scope.refused", test=WRITE, evidence=(silent,)),),
        tests=(TestEnd(WRITE, TestOutcome.FAILED),),
    )
    run = replace(run, access=RULES[1:])
    assert compliance.grid(run, add_up(run).rows).rows[0].cells["guest"].sign == "R ?"


def test_a_damaged_record_is_not_attested_by_its_former_digest() -> None:
    whole = replace(CONFORMANT, footer=replace(FOOTER, digest="ab12"))
    damaged = replace(whole, damage=("line 4 of the record cannot be read",))
    pages = ["".join(compliance.render(Facts.of(each))) for each in (whole, damaged)]
    assert ["<code>ab12</code> when it was written, which does not hold any more" in page for page in pages] == [
        False,
        True,
    ]
    assert "nothing shows whether the others are unchanged" in pages[1]
