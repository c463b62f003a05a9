"""A call that causes a server error is a failure, even if it is only a step of a test of something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.proof.tampering import answering
from conformance.reference.http import Response
from conformance.results.record import Check, Outcome
from conformance.suite.arrange.reviews import created
from conformance.suite.context import Unmet
from conformance.suite.expectations import Caller, project_path
from conformance.target.profile_file import load_profile
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service

LIST, CREATION = "project-approval-rules.list", "project-approval-rules.create.answers-with-rule"


@pytest.mark.parametrize(
    ("method", "status", "headers", "failed"),
    [
        ("GET", 500, {}, [LIST]),
        ("POST", 500, {}, [CREATION]),
        ("GET", 404, {}, []),
        ("GET", 501, {}, []),
        ("GET", 503, {}, []),
        ("POST", 500, {"Retry-After": "1"}, []),
    ],
)
def test_a_step_with_a_server_error_fails_and_a_refused_one_is_left_open(
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    method: str,
    status: int,
    headers: dict[str, str],
    failed: list[str],
) -> None:
    answering(
        reference[0],
        f"{method} /projects/:id/approval_rules",
        lambda _: True,
        lambda: Response(status, {"message": "odd"}, headers=headers),
    )
    profile: Any = load_profile(write_profile(*reference, retries={"call_seconds": 0, "run_seconds": 0}))
    lines: list[Any] = []
    rules = project_path(profile.fixtures["project"][0]) / "approval_rules"
    step = Caller.list if method == "GET" else created
    with in_a_test(profile, lines=lines) as test, pytest.raises(Unmet):
        step(Caller(test.run, profile.actors["maintainer"]), rules)
    found = [line for line in lines if isinstance(line, Check) and line.outcome is Outcome.FAILED]
    assert [check.requirement for check in found] == failed
