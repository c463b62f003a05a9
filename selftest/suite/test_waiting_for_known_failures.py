"""What only a known failure keeps open fails no run: what needs an absent operation, and the rest of a failed story."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from conformance.reference import EmbeddedServer, Service
from conformance.reference.errors import NoRouteError
from conformance.target.embedded import prepared_service
from selftest.altering import altering
from selftest.conftest import lacking
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference.http import Request, Response

    Judge = Callable[..., tuple[int, str, dict[str, Any]]]

pytestmark = pytest.mark.usefixtures("inside_this_process")


@pytest.fixture
def judged(conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path) -> Judge:
    """Run the suite on a service with a baseline of some failures; return exit code, output and the rows."""

    def run(service: Service, *arguments: str, known: tuple[str, ...]) -> tuple[int, str, dict[str, Any]]:
        listed = [{"requirement": name, "reason": "Later.", "owner": "us", "expires": "2999-12-31"} for name in known]
        (tmp_path / "known.yaml").write_text(json.dumps({"baseline": listed}), encoding="utf-8")
        with EmbeddedServer(service) as server:
            write_profile(service, server.base_url, limits={"timeout_seconds": 5, "deadline_seconds": 2})
            options = ("--target", "target.yaml", "--out", "out", "--corpus", "none", "--seed", "1")
            new_only = ("--baseline", "known.yaml", "--fail-on", "new", "--max-examples", "1")
            outcome = conformance("run", *options, *new_only, *arguments)
        return outcome.code, outcome.text, rows_of(tmp_path / "out")

    return run


def test_what_needs_an_operation_that_is_known_to_be_absent_fails_no_run(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    lacking({route.key for route in service.routes if "/groups_allowlist" in route.key}, NoRouteError, service)
    names = ("list", "add.created", "remove.no-content")
    absent = tuple(f"job-token-scope.groups-allowlist.{name}" for name in names)
    code, text, rows = judged(service, "--area", "job-token-scope", known=absent)
    assert {name for name, row in rows.items() if row["verdict"] == "failed"} == {*absent}, text[-3000:]
    assert "operation absent" in {row["reason"] for row in rows.values() if row["selected"]}
    assert code == 0, text[-3000:]
    code, text, _ = judged(service, "--area", "job-token-scope", known=absent[:-1])
    assert code == 1, text[-3000:]


def test_what_an_earlier_known_failure_of_its_story_keeps_open_fails_no_run(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    altering(service, "PUT /projects/:id/approval_rules/:approval_rule_id", _names_no_users, successes_only=True)
    both = "project-approval-rules.update.user-ids-and-usernames"
    code, text, rows = judged(service, "--requirement", both, known=())
    assert "an earlier step of the same test failed" in rows[both]["detail"], text[-3000:]
    failed = tuple(name for name, row in rows.items() if row["verdict"] == "failed")
    assert (code, bool(failed)) == (1, True)
    code, text, rows = judged(service, "--requirement", both, known=failed)
    assert (rows[both]["verdict"], code) == ("inconclusive", 0), text[-3000:]


def _names_no_users(_: Request, response: Response) -> None:
    response.content = {**cast("dict[str, Any]", response.content), "users": []}
