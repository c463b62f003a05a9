"""Features of a target that provisioning declares, and unclear ones, about which its operator must decide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.errors import ExitCode
from conformance.proof.foreign.registry import handling, instead
from conformance.reference.errors import ForbiddenError, NotFoundError, RejectedError
from conformance.target.embedded import prepared_service, profile_data
from selftest.conftest import VERSION, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request
    from selftest.conftest import Outcome

TRACKERS = frozenset({"redmine", "bugzilla", "custom-issue-tracker"})
_STATE = "GET /projects/:id/merge_requests/:merge_request_iid/approval_state"
_GROUP_RULES = "GET /groups/:id/approval_rules"
_SETS_UP = ("PUT /projects/:id/integrations/:slug", "PUT /projects/:id/services/:slug")


def drops_active(service: Service) -> None:
    """Accept the parameter `active`, but keep every integration active whatever it says."""

    @instead(service.integrations, "becomes_active")
    def _(*_: Any) -> bool:
        return True


def refuses_trackers(service: Service, error: Callable[[], Exception]) -> None:
    """Refuse every integration of one kind."""

    @handling(service, *_SETS_UP)
    def _(handler: Any, request: Request) -> Any:
        if request.path["slug"] in TRACKERS:
            raise error()
        return handler(request)


def has_no_trackers(service: Service) -> None:
    """Do not know any integration of that kind."""
    refuses_trackers(service, lambda: NotFoundError("404 Not Found"))


def breaks_on_trackers(service: Service) -> None:
    """Refuse parameters that it should accept."""
    refuses_trackers(service, lambda: RejectedError("not now"))


def completes_nothing(service: Service) -> None:
    """Say that projects have completions, but refuse each completion."""

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Request) -> Any:
        handler(request)
        raise NotFoundError("404 Not Found")


def needs_all_of_the_file(service: Service) -> None:
    """Complete nothing without the content below the cursor, which is optional."""

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Request) -> Any:
        if b"content_below_cursor" not in request.body:
            raise RejectedError("what is below?")
        return handler(request)


def refuses_to_show(service: Service) -> None:
    """Let only administrators read the approval configuration, and break on rules of groups."""

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Request) -> Any:
        if not request.caller.admin:
            raise ForbiddenError
        return handler(request)

    @handling(service, _GROUP_RULES)
    def _(handler: Any, request: Request) -> Any:
        return replace(handler(request), status=500)


def leaves_groups_to_administrators(service: Service) -> None:
    """Restrict the approval rules of groups to administrators of the installation."""

    @handling(service, *(f"{method} /groups/:id/approval_rules" for method in ("GET", "POST")))
    def _(handler: Any, request: Request) -> Any:
        if not request.caller.admin:
            raise ForbiddenError
        return handler(request)


def shows(service: Service, key: str, seen: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change the rules that an operation lists with a function; None leaves one out."""

    @handling(service, key)
    def _(handler: Any, request: Request) -> Any:
        response = handler(request)
        body: Any = response.content
        rules = [shown for rule in (body["rules"] if isinstance(body, dict) else body) if (shown := seen(rule))]
        return replace(response, content={**body, "rules": rules} if isinstance(body, dict) else rules)


def has_no_owners_of_files(service: Service) -> None:
    """Have no rules from code owners."""
    shows(service, _STATE, lambda rule: None if rule["rule_type"] == "code_owner" else rule)


def lists_no_branches(service: Service) -> None:
    """Have rules of groups that list no branches."""
    shows(service, _GROUP_RULES, lambda rule: {**rule, "protected_branches": []})


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
            if "say so in the profile" in outcome.out:
                said = {**profile["features"], "switchable_integration": False, "issue_tracker_integration": False}
                (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**profile, "features": said}), encoding="utf-8")
                assert conformance("provision", *where).code == 0  # now the operator has decided
        return outcome, profile

    return prepared


@pytest.mark.parametrize(
    ("alter", "feature"),
    [(drops_active, "switchable_integration"), (breaks_on_trackers, "issue_tracker_integration")],
)
def test_a_feature_that_exists_and_does_not_work_is_not_reported_as_missing(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]], alter: Callable[[Service], None], feature: str
) -> None:
    outcome, profile = prepare(alter)
    assert (outcome.code, f"features: {{{feature}: false}}" in outcome.out) == (6, True), outcome.text
    assert feature not in profile["features"]
    assert feature not in profile["fixtures"]


def test_what_a_target_does_not_know_is_reported_as_missing(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]],
) -> None:
    outcome, profile = prepare(has_no_trackers)
    assert outcome.code == 0, outcome.text
    assert profile["features"]["issue_tracker_integration"] is False
    told = outcome.out.partition("so a run tests nothing that needs them:\n")[2].partition("\n\n")[0]
    lacking = {name for name, has in profile["features"].items() if not has}
    assert {line.split(":")[0].strip() for line in told.splitlines()} == lacking


@pytest.mark.parametrize(
    ("alter", "feature"),
    [(has_no_owners_of_files, "code_owner_rules"), (lists_no_branches, "group_branch_rules")],
)
def test_optional_kinds_of_rules_are_declared_if_they_show(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]], alter: Callable[[Service], None], feature: str
) -> None:
    rules = {"code_owner_rules", "group_branch_rules"}
    outcome, profile = prepare(alter)
    assert outcome.code == 0, outcome.text
    assert {name: profile["features"][name] for name in rules} == {name: name != feature for name in rules}
    assert f"Feature: {feature}." in outcome.out  # and how the target could get it


def test_rules_that_nobody_shows_are_not_reported_as_missing(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]],
) -> None:
    def refuses(service: Service) -> None:
        @handling(service, _STATE, _GROUP_RULES)
        def _(*_: Any) -> Any:
            raise ForbiddenError

    outcome, profile = prepare(refuses)
    assert outcome.code == 0, outcome.text
    assert not {"code_owner_rules", "group_branch_rules"} & profile["features"].keys()


def test_group_rules_that_only_administrators_may_see_are_not_reported_missing(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]],
) -> None:
    outcome, profile = prepare(leaves_groups_to_administrators)
    assert outcome.code == 0, outcome.text
    assert (profile["features"]["group_approval_rules"], profile["features"]["group_branch_rules"]) == (True, True)


def test_a_feature_that_is_refused_to_some_or_breaks_is_declared(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]],
) -> None:
    _, profile = prepare(refuses_to_show)
    assert (profile["features"]["approval_configuration"], profile["features"]["group_approval_rules"]) == (True, True)


def test_completions_that_need_optional_parameters_are_declared(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]],
) -> None:
    outcome, profile = prepare(needs_all_of_the_file)
    assert outcome.code == 0, outcome.text
    assert profile["features"]["code_completion"] is True


def test_completions_that_are_all_refused_are_not_declared_and_not_requested(
    prepare: Callable[..., tuple[Outcome, dict[str, Any]]],
    conformance: Callable[..., Outcome],
    tmp_path: Path,
) -> None:
    outcome, profile = prepare(completes_nothing)
    assert outcome.code == 0, outcome.text
    assert profile["features"]["code_completion"] is False
    # If an operator declares them nevertheless, the refusals are reported, and nothing in the suite breaks.
    service = prepared_service(version=VERSION)
    completes_nothing(service)
    with serving(service) as (_, base_url):
        data = profile_data(service.world, base_url, VERSION)
        (tmp_path / "all.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        chosen = ("--requirement", "code-completion.completion.answered", "--max-examples", "1")
        outcome = conformance("run", "-q", "--target", "all.yaml", *chosen)
    assert (outcome.code, "broke" in outcome.text) == (ExitCode.NON_CONFORMANT, False), outcome.text
