"""What tests of exports share: when the former export is over, and what belongs to the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode
from conformance.proof.variants import group_relations_export, statuses
from conformance.reference.choices import Choices
from conformance.reference.errors import NoRouteError
from conformance.suite.arrange.export_entries import has_ended
from conformance.suite.arrange.exports import export_of
from conformance.suite.context import Unmet
from conformance.suite.expectations import Caller
from conformance.suite.expectations.callers import NOBODY
from conformance.target import load_profile
from selftest.conftest import in_a_test, lacking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from selftest.conftest import Outcome

#: Waits in vain end soon.
SHORT = {"timeout_seconds": 5, "deadline_seconds": 1}


def test_an_export_of_long_ago_does_not_show_how_long_the_next_one_takes(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    limits = {"timeout_seconds": 5, "deadline_seconds": 5}
    profile: Any = load_profile(write_profile(*reference, limits=limits))
    with in_a_test(profile) as test:
        export = export_of(Caller(test.run, profile.actors["owner"]), profile.fixtures["export_group"][0], "labels")
        export.accepted(batched=False).given_served()
        # A worker runs tests of other areas in between, and only then reads the status.
        test.run.writes.served["POST", export.path][0] -= 3600
        before = export.marks()
        export.accepted(batched=True).given_served()
        assert export.marks().keys() == before.keys()
        assert export.marks() != before


def test_an_export_that_fails_at_first_is_waited_for(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    group_relations_export.tries_exports_again(reference[0])
    profile: Any = load_profile(write_profile(*reference))
    with in_a_test(profile) as test:
        export = export_of(Caller(test.run, profile.actors["owner"]), profile.fixtures["export_group"][0], "labels")
        assert export.in_one_piece().is_served


def test_an_export_that_stays_failed_is_waited_for_once(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    reference[0].choices = Choices(failing_export_relations=("labels",))
    profile: Any = load_profile(write_profile(*reference))
    with in_a_test(profile) as test:
        export = export_of(Caller(test.run, profile.actors["owner"]), profile.fixtures["export_group"][0], "labels")
        for _ in range(3):
            with pytest.raises(Unmet, match="did not finish"):
                export.finished(batched=False)


def test_a_relation_that_never_ends_is_waited_for_once(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    group_relations_export.exports_one_relation_for_ever(reference[0])
    profile: Any = load_profile(write_profile(*reference, limits=SHORT))
    with in_a_test(profile) as test:
        export = export_of(Caller(test.run, profile.actors["owner"]), profile.fixtures["export_group"][0], "labels")
        export.accepted(batched=False).given_served()
        with pytest.raises(Unmet, match="the end of an export"):
            export.quiet()
        assert [entry["relation"] for entry in export.quiet() if not has_ended(entry)] == ["boards"]


def test_a_refused_export_is_no_failure_while_another_one_is_running(
    reference: tuple[Service, str], write_profile: Callable[..., Path], conformance: Callable[..., Outcome]
) -> None:
    group_relations_export.exports_one_relation_for_ever(reference[0])
    group_relations_export.refuses_exports_meanwhile(reference[0])
    write_profile(*reference, limits=SHORT)
    options = ("--target", "target.yaml", "--requirement", "group-relations-export.schedule.accepted", "--workers", "1")
    outcome = conformance("run", "-q", *options, "--out", "out")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text


def test_relations_that_end_after_the_one_that_was_waited_for_are_no_change(
    reference: tuple[Service, str], write_profile: Callable[..., Path], conformance: Callable[..., Outcome]
) -> None:
    """A test compares the status before and after the export of other groups."""
    reference[0].choices = Choices(export_delay_seconds=0.2)
    group_relations_export.exports_once_at_a_time(reference[0])
    write_profile(*reference)
    named = ("--target", "target.yaml", "--requirement", "group-relations-export.schedule.belongs-to-its-group")
    outcome = conformance("run", "-q", *named, "--workers", "1", "--out", "out", "--", "-k", "inside_or_beside")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text  # the other tests of the requirement are left out
    assert "unstable" not in outcome.text, outcome.text


def reads_in_vain(profile: Any, relation: str, *forms: bool) -> list[int]:
    """Wait in vain for exports in some forms, one after the other; return how often the status was read."""
    with in_a_test(profile) as test:
        export = export_of(Caller(test.run, profile.actors["owner"]), profile.fixtures["export_group"][0], relation)
        read: list[int] = []
        for batched in forms:
            before = test.run.client.requests
            with pytest.raises(Unmet):
                export.finished(batched=batched)
            read.append(test.run.client.requests - before)
        return read


def test_a_status_that_is_refused_until_the_deadline_is_waited_for_once(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    lacking({"GET /groups/:id/export_relations/status"}, NoRouteError, reference[0])
    profile: Any = load_profile(write_profile(*reference, limits=SHORT))
    first, *others = reads_in_vain(profile, "labels", False, True, False)
    assert 2 * max(others) < first


def test_a_relation_that_is_exported_in_no_form_is_waited_for_in_one(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    profile: Any = load_profile(write_profile(*reference, limits=SHORT))
    first, *others = reads_in_vain(profile, "widgets", False, True, False)
    assert 2 * max(others) < first


def test_relations_of_an_earlier_export_are_named_while_the_next_one_shows_nothing(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    profile: Any = load_profile(write_profile(*reference, limits=SHORT))
    with in_a_test(profile) as test:
        owner, group = Caller(test.run, profile.actors["owner"]), profile.fixtures["export_group"][0]
        export_of(owner, group, "labels").finished(batched=False)
        lacking({"GET /groups/:id/export_relations/status"}, NoRouteError, reference[0])
        assert "holds badges, boards, labels" in str(export_of(owner, group, "widgets").lack())


def test_without_a_valid_token_a_redirect_to_a_login_page_is_not_followed(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    """Everybody can read that page, so it would look like the file."""
    reference[0].choices = Choices(anonymous_code=302)
    statuses.sends_strangers_to_a_login(reference[0])
    profile: Any = load_profile(write_profile(*reference))
    with in_a_test(profile) as test:
        for stranger in (None, NOBODY):
            caller = Caller(test.run, stranger)
            export = export_of(caller, profile.fixtures["export_group"][0], "labels")
            answer = export.download()
            assert answer.status == 302
            assert caller.follow(answer).status == 302
