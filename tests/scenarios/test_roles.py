"""Roles: a role in one place gives no role in another one, and a bot has the role of its token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_settings import COMMITTER
from conformance.suite.arrange.integrations import (
    borrowed,
    given_set_up,
    integrations_path,
    least_settings,
    slug_of,
)
from conformance.suite.arrange.job_token_scope import GROUPS, PROJECTS, Allowlist, limit_on, scope_path
from conformance.suite.context import current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    group_path,
    left_to_others,
    must,
    project_path,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture


#: By what is read below a project, how it is written: the method, the name in the answer, and the name in a body.
WRITTEN = {
    "/job_token_scope": ("PATCH", "inbound_enabled", "enabled"),
    "/merge_request_approval_setting": ("PUT", COMMITTER, COMMITTER),
}


def as_it_is(below: str, reading: Answer) -> tuple[str, dict[str, bool]] | None:
    """Return method and body of the call that sets what is set already; None if no call can do that.

    If it is served by mistake, nothing changes.
    """
    method, shown, sent = WRITTEN.get(below, ("", "", ""))
    value = reading.json.get(shown) if reading.is_served and isinstance(reading.json, dict) else None
    value = value.get("value") if isinstance(value, dict) else value
    return (method, {sent: value}) if isinstance(value, bool) else None


@pytest.mark.parametrize(
    ("below", "refused"),
    [
        ("/job_token_scope", "job-token-scope.authorization.reading-below-maintainer"),
        ("/merge_request_approval_setting", "approval-settings.project.authorization.reading-below-maintainer"),
        ("/integrations", "integrations.authorization.reading-below-maintainer"),
    ],
    ids=["job-token-scope", "approval-settings", "integrations"],
)
def test_who_owns_another_project_of_the_group_is_refused_in_this_one(
    below: str,
    refused: str,
    developer: Caller,
    maintainer: Caller,
    project: Fixture,
) -> None:
    """The surrounding group may remember, for both projects, who was permitted a moment ago."""
    own = current_run().profile.first("inner_project")
    control = maintainer.get(Path(f"{project_path(project)}{below}"))
    if own is None or not developer.get(Path(f"{project_path(own)}{below}")).is_served or not control.is_served:
        left_to_others()
        return
    with verifies(refused):
        for form in (project_path(project), f"/projects/{project.encoded_path}"):
            developer.get(Path(f"{form}{below}")).must_be_refused(beside=control)


@pytest.mark.parametrize(
    ("below", "refused"),
    [
        ("/job_token_scope", "job-token-scope.authorization.switching-below-maintainer"),
        ("/merge_request_approval_setting", "approval-settings.project.authorization.updating-below-maintainer"),
    ],
    ids=["job-token-scope", "approval-settings"],
)
def test_being_public_lets_nobody_write(below: str, refused: str, maintainer: Caller) -> None:
    left_to_others()  # other tests ask in a private project
    public = current_run().profile.first("public_project")
    if public is None:
        return
    path = Path(f"{project_path(public)}{below}")
    call = as_it_is(below, maintainer.get(path))
    control = maintainer.call(call[0], path, json=call[1]) if call is not None else None
    if call is None or control is None or not control.is_served:
        return
    tries = [(name, path) for name in ("developer", "outsider") if is_known(name)]
    if public.get("path") and is_known("developer"):  # the outsider calls by the path in another test
        tries.append(("developer", Path(f"/projects/{public.encoded_path}{below}")))
    for name, where in tries:
        with verifies(refused, go_on=True):
            caller_named(name).call(call[0], where, json=call[1]).must_be_refused(beside=control)


@pytest.mark.parametrize(
    ("below", "served"),
    [
        ("/job_token_scope", "job-token-scope.authorization.maintainer-is-served"),
        ("/merge_request_approval_setting", "approval-settings.project.authorization.maintainer-is-served"),
        ("/integrations", "integrations.authorization.maintainer-is-served"),
    ],
    ids=["job-token-scope", "approval-settings", "integrations"],
)
def test_who_maintains_a_project_is_served_there_whatever_the_role_in_its_group(below: str, served: str) -> None:
    """As the owner of the group is, who shows that the operation exists. What is set already is also written."""
    left_to_others()  # unless the profile has such a project, and both actors
    own = current_run().profile.first("reporters_project")
    if own is None or not (is_known("owner") and is_known("reporter")):
        return
    path, owner, reporter = Path(f"{project_path(own)}{below}"), caller_named("owner"), caller_named("reporter")
    reading = owner.get(path)
    if reading.is_served:
        with verifies(served, go_on=True):
            reporter.get(path).must_be_served()
    call = as_it_is(below, reading)
    if call is not None and owner.call(call[0], path, json=call[1]).is_served:
        with verifies(served):
            reporter.call(call[0], path, json=call[1]).must_be_served()


@pytest.mark.parametrize(
    ("allowlist", "own", "refused"),
    [
        (PROJECTS, "inner_project", "job-token-scope.authorization.changing-allowlist-below-maintainer"),
        (GROUPS, "inner_group", "job-token-scope.authorization.changing-groups-allowlist-below-maintainer"),
    ],
    ids=["allowlist", "groups-allowlist"],
)
def test_who_owns_what_is_to_be_let_in_needs_the_role_all_the_same(
    allowlist: Allowlist,
    own: str,
    refused: str,
    developer: Caller,
    maintainer: Caller,
    project: Fixture,
) -> None:
    """The role in the project that gives access counts, not that in what is added."""
    target = current_run().profile.first(own)
    if target is None:
        left_to_others()
        return
    path, body = allowlist.of(project), allowlist.body(target.id)
    with limit_on(maintainer, project), allowlist.left_as_found(maintainer, project, [target]):
        allowlist.given_removed(maintainer, project, target.id)
        by_developer = developer.post(path, body)
        added = maintainer.list(path).having(id=target.id)
        control = maintainer.post(path, body)
        if not (control.is_served or by_developer.is_served or added):
            left_to_others()  # members of the group may have access without any list
            return
        with verifies(refused):
            by_developer.must_be_refused(beside=control if control.is_served else maintainer.get(path))
            must(not added, "nothing added by the refused call", "it is listed", by_developer.exchange)


@pytest.mark.calls_area("job-token-scope")
def test_a_bot_that_maintains_the_project_sets_integrations_up(
    project_bot: Caller,
    maintainer: Caller,
    project: Fixture,
    integration: Fixture,
) -> None:
    """Its role shows if nobody with a lower role is served."""
    path, slug = integrations_path(maintainer, project), slug_of(integration)
    if not (project_bot.get(scope_path(project)).is_served and project_bot.get(path).is_served):
        left_to_others()
        return
    with borrowed(maintainer, path, integration):
        given_set_up(maintainer, path, integration)
        with verifies("integrations.authorization.maintainer-is-served"):
            project_bot.put(path / slug, least_settings(integration)).must_be_served()
            project_bot.get(path / slug).must_be_served()
            project_bot.delete(path / slug).must_be_served()


@pytest.mark.calls_area("approval-settings")
def test_the_bot_of_a_project_has_no_say_in_the_group_around_it(owner: Caller, group: Fixture) -> None:
    """Only reads, because writing a setting of a group, even to its current value, may lock it for all its projects."""
    if "project_bot" not in current_run().profile.actors:
        left_to_others()
        return
    bot, path = caller_named("project_bot"), group_path(group) / "merge_request_approval_setting"
    control = owner.get(path)
    with verifies("approval-settings.group.authorization.without-role"):
        bot.get(path).must_be_refused(beside=control)


@pytest.mark.parametrize(
    ("below", "refused"),
    [
        ("/job_token_scope", "job-token-scope.authorization.without-role"),
        ("/merge_request_approval_setting", "approval-settings.project.authorization.without-role"),
        ("/integrations", "integrations.authorization.without-role"),
    ],
    ids=["job-token-scope", "approval-settings", "integrations"],
)
def test_a_bot_has_no_say_in_a_project_that_its_token_is_not_of(
    below: str, refused: str, maintainer: Caller, sibling_project: Fixture
) -> None:
    """What is set already is also written. The bot of the group may have a role there, unless it is refused reading."""
    left_to_others()  # unless the profile has such bots
    path = Path(f"{project_path(sibling_project)}{below}")
    control = maintainer.get(path)
    call = as_it_is(below, control)
    for bot in [caller_named(name) for name in ("project_bot", "group_bot") if control.is_served and is_known(name)]:
        reading = bot.get(path)
        if bot.name == "project_bot":
            with verifies(refused, go_on=True):
                reading.must_be_refused(beside=control)
        if call is not None and reading.exchange.is_refusal:
            with verifies(refused, go_on=True):
                bot.call(call[0], path, json=call[1]).must_be_refused(beside=control)


@pytest.mark.calls_area("approval-settings")
@pytest.mark.parametrize(
    ("caller", "own", "refused"),
    [
        ("developer", "inner_group", "approval-settings.group.authorization.reading-below-maintainer"),
        ("developer", "outsider_group", "approval-settings.group.authorization.reading-below-maintainer"),
        ("outsider", "outsider_group", "approval-settings.group.authorization.without-role"),
    ],
    ids=["of-an-inner-group", "of-another-group", "of-another-group-alone"],
)
def test_who_owns_a_group_is_no_owner_of_another_one(
    caller: str, own: str, refused: str, owner: Caller, group: Fixture
) -> None:
    """Only reads, because writing a setting of a group may lock it for everything inside."""
    place, settings = current_run().profile.first(own), "merge_request_approval_setting"
    control = owner.get(group_path(group) / settings)
    if place is None or caller not in current_run().profile.actors or not control.is_served:
        left_to_others()
        return
    stranger = caller_named(caller)
    if not stranger.get(group_path(place) / settings).is_served:
        left_to_others()
        return
    with verifies(refused):
        stranger.get(group_path(group) / settings).must_be_refused(beside=control)
