"""Faults put into the reference by hand: each is found by the requirement that it violates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode
from conformance.reference import Service
from conformance.reference.identity import Role
from selftest.altering import altering
from selftest.reads import report_of

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.reference.http import Request, Response

pytestmark = pytest.mark.usefixtures("inside_this_process")

SCOPE = "/projects/:id/job_token_scope"
ALLOWLIST = f"{SCOPE}/allowlist"

Fault = Callable[[Service], None]


def does_nothing(*_: object, **__: object) -> None:
    """Replace a method, and do nothing."""


def switch_is_not_stored(service: Service) -> None:
    """PATCH answers 204 and changes nothing."""
    service.job_token_scope.limit_inbound = does_nothing  # type: ignore[method-assign]


def removed_project_stays(service: Service) -> None:
    """DELETE answers 204 and changes nothing."""
    service.job_token_scope.remove_project = does_nothing  # type: ignore[method-assign]


def developer_may_switch(service: Service) -> None:
    """PATCH requires only the developer role."""
    service.routes.change(f"PATCH {SCOPE}", least_role=Role.DEVELOPER)


def pages_are_whole(service: Service) -> None:
    """The list ignores page and per_page."""

    def whole(request: Request, response: Response) -> None:
        listed = service.job_token_scope.projects(request.project)
        response.content = [service.present.limited_project(project) for project in listed]

    altering(service, f"GET {ALLOWLIST}", whole, successes_only=True)


def parent_is_missing(service: Service) -> None:
    """Entries of the list have a namespace without parent_id."""

    def without_parent(_: Request, response: Response) -> None:
        for entry in response.content:  # type: ignore[attr-defined] # a list of entries
            entry["namespace"].pop("parent_id")

    altering(service, f"GET {ALLOWLIST}", without_parent, successes_only=True)


def silence_has_a_body(service: Service) -> None:
    """204 comes with a body."""

    def with_body(_: Request, response: Response) -> None:
        response.content, response.has_content = {"message": "204 No Content"}, True

    altering(service, f"DELETE {ALLOWLIST}/:target_project_id", with_body, successes_only=True)


FAULTS: dict[Fault, str] = {
    switch_is_not_stored: "job-token-scope.switch.off",
    removed_project_stays: "job-token-scope.allowlist.remove.gone",
    developer_may_switch: "job-token-scope.authorization.switching-below-maintainer",
    pages_are_whole: "job-token-scope.allowlist.pages",
    parent_is_missing: "job-token-scope.project-entry.namespace.parent-id",
    silence_has_a_body: "job-token-scope.allowlist.remove.no-content",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_fails_the_requirement_that_it_violates(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
    fault: Fault,
) -> None:
    service, base_url = reference
    fault(service)
    write_profile(service, base_url)
    # The requirement's own tests are enough, and generated calls show the same with few cases.
    few = ("--requirement", FAULTS[fault], "--max-examples", "3", "--corpus", "none")
    outcome = conformance("run", "--target", "target.yaml", "--out", "out", *few)
    report = report_of(tmp_path / "out")
    failed = {row["id"] for row in report["requirements"] if row["verdict"] == "failed"}
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
    assert FAULTS[fault] in failed, failed
