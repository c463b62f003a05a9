"""One mistake of a service violates what it is about, and nothing that only comes after it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from conformance.proof.variants.running import WITHOUT_DRAWN, VariantRun, run_each
from conformance.proof.written.merge_request_approvals import conflict_approves

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

RULE = "/projects/:id/approval_rules/:approval_rule_id"


def violated(alteration: Callable[[Service], None], *options: str) -> set[str]:
    """Return the requirements that a service with one mistake violates."""
    (found,) = run_each([VariantRun("one mistake", "17.7", alterations=(alteration,))], *WITHOUT_DRAWN, *options)
    assert found.broken == ()
    return {alarm.split()[0].rstrip(":") for alarm in found.alarms}


@pytest.mark.usefixtures("inside_this_process")
def test_a_conflict_that_approves_is_not_blamed_on_what_is_sent_after_it() -> None:
    others = ("approve.current-sha", "unapprove.caller-is-gone", "password.right", "approve.other-sha-conflicts")
    own = ("approve.other-sha-changes-nothing", "approve.near-sha-is-refused")
    options = [f"--requirement=merge-request-approvals.{name}" for name in (*own, *others)]
    assert violated(conflict_approves, *options) <= {f"merge-request-approvals.{name}" for name in own}


def answers_that_nothing_is_there_with_200(service: Service) -> None:
    """Answer 200 with the words of an error, as where a code was forgotten, if a rule of a project is not found."""

    def forgotten(route: Route, _: Request, response: Response) -> Response:
        if route.key == f"GET {RULE}" and response.status == HTTPStatus.NOT_FOUND:
            response.status = HTTPStatus.OK
        return response

    service.transformers.append(forgotten)


@pytest.mark.usefixtures("inside_this_process")
def test_an_error_with_a_code_of_success_says_nothing_of_the_fields_of_rules() -> None:
    found = violated(answers_that_nothing_is_there_with_200, "--area=project-approval-rules")
    assert "project-approval-rules.read.unknown-rule" in found
    assert not {name for name in found if name.startswith("project-approval-rules.rule.")}
