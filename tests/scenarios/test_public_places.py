"""Public projects and groups: everybody may find them, which gives nobody a role, and nobody without a token a say."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_rules import group_rules_path
from conformance.suite.arrange.integrations import integrations_path, older_path, set_up, shows_text, slug_of
from conformance.suite.arrange.job_token_scope import GROUPS, PROJECTS, Allowlist
from conformance.suite.arrange.reviews import fresh_name, merge_request_path, naming
from conformance.suite.context import current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    first_page,
    group_path,
    left_to_others,
    must,
    project_path,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture


def must_not_be_served(*answers: Answer) -> None:
    """Expect that none of these calls was served; what they were sent to was seen to be there."""
    for answer in answers:
        must(not answer.is_served, "a refusal", f"status {answer.status}", answer.exchange)


def rule_made(caller: Caller, rules: Path) -> Path | None:
    """Create a rule and return its path; None if it is refused."""
    made = caller.post(rules, {"name": fresh_name(), "approvals_required": 1, **naming(caller)})
    number = made.json.get("id") if made.is_served and isinstance(made.json, dict) else None
    return None if number is None else rules / number


def opened_in(project: Fixture) -> Path | None:
    """Return the path of the merge request of a public project, if the profile names one."""
    opened = current_run().profile.first("public_merge_request")
    is_there = opened is not None and opened.get("project_id") == project.id
    return merge_request_path(project, opened) if opened is not None and is_there else None


# -- without a token ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "level",
    [
        pytest.param("project", marks=pytest.mark.calls_area("project-approval-rules")),
        pytest.param("merge-request", marks=pytest.mark.calls_area("merge-request-approvals")),
    ],
)
def test_without_a_token_no_rule_of_a_public_project_is_written(
    level: str,
    maintainer: Caller,
    anonymous: Caller,
    public_project: Fixture,
) -> None:
    """Each call is sent to a rule that its maintainer has just made."""
    left_to_others()  # reads of public projects show the same
    place = project_path(public_project) if level == "project" else opened_in(public_project)
    rule = None if place is None else rule_made(maintainer, place / "approval_rules")
    if place is None or rule is None:
        return
    body = {"name": fresh_name(), "approvals_required": 1}
    calls = [anonymous.put(rule, body)]
    if level != "project":  # where other tests read a rule and try to create one
        calls += [
            anonymous.get(rule),
            anonymous.post(place / "approval_rules", body),
            anonymous.post(place / "approve"),
        ]
    calls.append(anonymous.delete(rule))
    maintainer.delete(rule)
    with verifies("authentication.anonymous-on-public-project"):
        must_not_be_served(*calls)


# -- lists and integrations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowlist", [PROJECTS, GROUPS], ids=["allowlist", "groups-allowlist"])
def test_the_lists_of_a_public_project_are_closed_to_strangers(
    allowlist: Allowlist, maintainer: Caller, anonymous: Caller, public_project: Fixture
) -> None:
    """What they try to remove was added just before, and what the outsider tries to add is seen by everybody.

    What was on the list already is left alone.
    """
    left_to_others()  # other tests ask in a private project
    target, path = current_run().profile.first(allowlist.fixture), allowlist.of(public_project)
    if target is None or not first_page(maintainer, path).is_served:
        return
    if maintainer.list(path).having(id=target.id):
        return
    if not maintainer.post(path, allowlist.body(target.id)).is_served:
        return
    seen = public_project if allowlist is PROJECTS else current_run().profile.first("second_approver_group")
    by_nobody, by_strangers = anonymous.delete(path / target.id), []
    if is_known("outsider"):
        by_strangers = [caller_named("outsider").delete(path / target.id)]
        by_strangers += [caller_named("outsider").post(path, allowlist.body(seen.id))] if seen is not None else []
    maintainer.delete(path / target.id)
    with verifies("job-token-scope.authorization.anonymous", go_on=True):
        must_not_be_served(by_nobody)
    if by_strangers:
        with verifies("job-token-scope.authorization.without-role"):
            must_not_be_served(*by_strangers)


def test_strangers_neither_read_nor_disable_an_integration_of_a_public_project(
    maintainer: Caller, anonymous: Caller, public_project: Fixture, integration: Fixture
) -> None:
    """It is set up just before; one that was set up already is left alone."""
    left_to_others()  # other tests ask in a private project
    path, slug = integrations_path(maintainer, public_project), slug_of(integration)
    listed = maintainer.get(path)
    if not listed.is_served or shows_text(listed, slug) or not set_up(maintainer, path, integration).is_served:
        return
    older = older_path(maintainer, public_project) or path
    by_nobody = [anonymous.get(path / slug), anonymous.delete(older / slug)]
    outsider, by_strangers = caller_named("outsider") if is_known("outsider") else None, []
    if outsider is not None:
        by_strangers = [outsider.get(path / slug), outsider.get(older / slug), outsider.delete(path / slug)]
    maintainer.delete(path / slug)
    with verifies("integrations.authorization.anonymous", go_on=True):
        must_not_be_served(*by_nobody)
    if by_strangers:
        with verifies("integrations.authorization.without-role"):
            must_not_be_served(*by_strangers)


# -- without a role ----------------------------------------------------------------------------------------------------


def test_who_sees_a_merge_request_of_a_public_project_gets_401_from_a_reset(
    maintainer: Caller, public_project: Fixture
) -> None:
    """The maintainer, who is no bot either, is told the same, unless the operation does not exist."""
    left_to_others()  # other tests ask in a private project
    opened = opened_in(public_project)
    for caller in (maintainer, *(caller_named(name) for name in ("outsider",) if is_known(name))):
        if opened is None or not caller.get(opened / "approvals").is_served:
            return
        answer = caller.put(opened / "reset_approvals")
        if caller is maintainer and answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return
        with verifies("merge-request-approvals.reset.others-get-401"):
            answer.must_be(401)


def test_no_rule_of_a_group_that_everybody_sees_is_changed(owner: Caller, anonymous: Caller) -> None:
    """Sent is what the rule has already, so that a call that is served by mistake changes nothing."""
    left_to_others()  # other tests ask in a private group
    group = current_run().profile.first("second_approver_group")
    page = None if group is None else first_page(owner, group_rules_path(group))
    listed = page.json if page is not None and page.is_served else None
    rule = listed[0] if isinstance(listed, list) and listed else None
    if group is None or not isinstance(rule, dict):
        return
    rules, body = group_rules_path(group), {"approvals_required": rule.get("approvals_required")}
    with verifies("group-approval-rules.authorization.anonymous-changing", go_on=True):
        must_not_be_served(anonymous.put(rules / rule["id"], body))
    # Whoever may list them has a role there.
    if is_known("outsider") and not caller_named("outsider").get(rules).is_served:
        with verifies("group-approval-rules.authorization.without-role"):
            must_not_be_served(caller_named("outsider").put(rules / rule["id"], body))


def test_who_has_no_role_in_a_group_that_everybody_finds_reads_nothing_of_it(owner: Caller) -> None:
    """A caller who is refused one of two reads has not the role that both need."""
    left_to_others()  # other tests ask in a private group
    group = current_run().profile.first("approver_group")
    if group is None or not is_known("outsider"):
        return
    rules, settings = group_rules_path(group), group_path(group) / "merge_request_approval_setting"
    if not all(owner.get(path).is_served for path in (rules, settings)):
        return
    listed, read = (caller_named("outsider").get(path) for path in (rules, settings))
    if listed.exchange.is_refusal:
        with verifies("approval-settings.group.authorization.without-role", go_on=True):
            must_not_be_served(read)
    if read.exchange.is_refusal:
        with verifies("group-approval-rules.authorization.without-role"):
            must_not_be_served(listed)


@pytest.mark.calls_area("group-relations-export")
def test_without_a_token_nobody_follows_the_export_of_a_public_group(owner: Caller, anonymous: Caller) -> None:
    left_to_others("group-relations-export.authorization.following-anonymous")  # asked in a private group as well
    group = current_run().profile.first("second_approver_group")
    path = None if group is None else group_path(group) / "export_relations/status"
    if path is not None and owner.get(path).is_served:
        with verifies("group-relations-export.authorization.following-anonymous"):
            must_not_be_served(anonymous.get(path))
