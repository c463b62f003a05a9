"""Errors: the few status codes that the text fixes, each in its situation."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.code_completion import CHECK
from conformance.suite.arrange.exports import export_of
from conformance.suite.arrange.reviews import approvals_put_back, given_open, merge_request_path, under_review
from conformance.suite.context import Unmet
from conformance.suite.derived import administrators
from conformance.suite.expectations import given, given_field, verifies

if TYPE_CHECKING:
    from conformance.suite import Fixture
    from conformance.suite.expectations import Caller

NO_COMMIT = "5f3a9c1e7b2d4f6081a3c5e7092b4d6f8e0a1c3b"
NO_PROJECT = "conformance-no-such-group/conformance-no-such-project"


@pytest.mark.calls_area("group-relations-export")
def test_scheduling_an_export_answers_202(owner: Caller, export_group: Fixture) -> None:
    """A service may refuse a second export while one runs: that of an earlier test is waited for."""
    export = export_of(owner, export_group, "")
    with suppress(Unmet):
        export.quiet()
    with verifies("errors.scheduled-export"):
        export.accepted().given_served().must_be(202)


@pytest.mark.calls_area("merge-request-approvals")
def test_a_reset_by_somebody_who_is_no_bot_answers_401(
    maintainer: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """Only a bot may; not even an administrator of the installation."""
    path = merge_request_path(project, merge_request)
    maintainer.get(path / "approvals").given_served()
    seeing = [caller for caller in administrators() if caller.get(path / "approvals").is_served]
    with verifies("errors.reset-by-others"):
        for caller in (maintainer, *seeing):
            caller.put(path / "reset_approvals").must_be(401)


@pytest.mark.calls_area("code-completion")
def test_the_enabled_check_answers_403_where_it_is_switched_off(
    maintainer: Caller,
    enabled_project: Fixture,
    disabled_project: Fixture,
) -> None:
    """A check that knows no project at all would always answer like this, so the enabled project comes first."""
    maintainer.post(CHECK, {"project_path": given_field(enabled_project, "path", str)}).given_served()
    with verifies("errors.completion-switched-off"):
        maintainer.post(CHECK, {"project_path": given_field(disabled_project, "path", str)}).must_be(403)


@pytest.mark.calls_area("code-completion")
def test_the_enabled_check_answers_404_without_a_project(maintainer: Caller, project: Fixture) -> None:
    """Beside a project that exists, whether it has completions or not: a service may have none with them."""
    known = maintainer.post(CHECK, {"project_path": given_field(project, "path", str)})
    given(known.status in (200, 403), f"the check answers {known.status} for a project that exists")
    with verifies("errors.empty-project-path", go_on=True):
        maintainer.post(CHECK, {"project_path": ""}).must_be(404)
    with verifies("errors.unknown-project-path"):
        maintainer.post(CHECK, {"project_path": NO_PROJECT}).must_be(404)


@pytest.mark.calls_area("merge-request-approvals")
def test_approving_another_commit_answers_409(
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """By somebody whom a rule names, because the order of a service's checks is open.

    An administrator whom no rule names may be refused for that reason, and is not served either.
    """
    path = merge_request_path(project, merge_request)
    given_open(maintainer, path)
    with under_review(maintainer, path, approver), verifies("errors.stale-sha"):
        approver.post(path / "approve", {"sha": NO_COMMIT}).must_be(409)
        for caller in administrators():
            with approvals_put_back(maintainer, path, caller):
                answer = caller.post(path / "approve", {"sha": NO_COMMIT})
            answer.must_be_refused(beside=None)
