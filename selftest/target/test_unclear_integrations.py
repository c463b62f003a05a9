"""What of the integrations is not clear when a target is prepared is for its operator to say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.proof.foreign.registry import handling, instead
from conformance.reference.errors import NotFoundError, RejectedError
from conformance.target.embedded import prepared_service
from selftest.conftest import VERSION, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request
    from selftest.conftest import Outcome

TRACKERS = frozenset({"redmine", "bugzilla", "custom-issue-tracker", "ewm"})
_SETS_UP = ("PUT /projects/:id/integrations/:slug", "PUT /projects/:id/services/:slug")


def drops_active(service: Service) -> None:
    """Take the parameter `active`, and have every integration active whatever it says."""

    @instead(service.integrations, "becomes_active")
    def _(*_: Any) -> bool:
        return True


def refuses_trackers(service: Service, error: Callable[[], Exception]) -> None:
    """Refuse every integration of one sort."""

    @handling(service, *_SETS_UP)
    def _(handler: Any, request: Request) -> Any:
        if request.path["slug"] in TRACKERS:
            raise error()
        return handler(request)


def has_no_trackers(service: Service) -> None:
    """Know no integration of that sort."""
    refuses_trackers(service, lambda: NotFoundError("404 Not Found"))


def breaks_on_trackers(service: Service) -> None:
    """Refuse what it should take."""
    refuses_trackers(service, lambda: RejectedError("not now"))


@pytest.fixture
def prepare(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> Callable[[Callable[[Service], None]], tuple[Outcome, dict[str, Any]]]:
    def prepared(alter: Callable[[Service], None]) -> tuple[Outcome, dict[str, Any]]:
        service = prepared_service(version=VERSION)
        alter(service)
        (tmp_path / "admin.token").write_text(f"{service.administrator.token}\n")
        with serving(service) as (_, base_url):
            where = ("--base-url", base_url, "--admin-token-file", "admin.token", "--out", "mine.yaml")
            outcome = conformance("provision", *where)
            profile = yaml.safe_load((tmp_path / "mine.yaml").read_text(encoding="utf-8"))
            if outcome.code:
                said = {**profile["features"], "switchable_integration": False, "issue_tracker_integration": False}
                (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**profile, "features": said}), encoding="utf-8")
                assert conformance("provision", *where).code == 0  # now that its operator has said so
        return outcome, profile

    return prepared


@pytest.mark.parametrize(
    ("alter", "feature"),
    [(drops_active, "switchable_integration"), (breaks_on_trackers, "issue_tracker_integration")],
)
def test_what_is_there_and_does_not_work_is_not_said_to_be_missing(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]], alter: Callable[[Service], None], feature: str
) -> None:
    outcome, profile = prepare(alter)
    assert (outcome.code, f"features: {{{feature}: false}}" in outcome.out) == (6, True), outcome.text
    assert feature not in profile["features"]
    assert feature not in profile["fixtures"]


def test_what_a_target_does_not_know_is_said_to_be_missing(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]],
) -> None:
    outcome, profile = prepare(has_no_trackers)
    assert outcome.code == 0, outcome.text
    assert profile["features"]["issue_tracker_integration"] is False
