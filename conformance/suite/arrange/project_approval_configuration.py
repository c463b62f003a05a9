"""Project approval configuration: how a project treats approvals."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from conformance.contract import Version
from conformance.suite.arrange.approval_settings import an_unlocked_project_if_read, of_project
from conformance.suite.arrange.request_examples import Area, ReadBack, RequestExample, Values
from conformance.suite.context import Unmet
from conformance.suite.expectations import Caller, Path, given, project_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.suite.arrange.places import Place
    from conformance.target import Fixture

#: The settings, in an order in which each can be put back: no selective removals while pushes reset.
_SETTINGS = (
    "selective_code_owner_removals",
    "reset_approvals_on_push",
    "disable_overriding_approvers_per_merge_request",
    "merge_requests_author_approval",
    "merge_requests_disable_committers_approval",
    "require_password_to_approve",
)
_REMOVAL = Version.parse("16.0")
_GONE = (404, 405, 410)
#: What keeps the configuration from being looked at; the operator alone can tell whether it was given up.
NO_LONGER_READ = (
    "the service does not let the configuration be read, which from 16.0 on it may have given up: if so, let the "
    "profile say `approval_configuration: false` among its features"
)
_EXAMPLE = {"merge_requests_disable_committers_approval": True}
#: The setting of a project that may be the same one, and that its groups or the installation may lock.
_LOCKED_WITH_IT = "allow_committer_approval"


def _path(place: Place) -> Path:
    return project_path(place.fixture("project")) / "approvals"


def _changed_path(keeper: Caller, place: Place) -> Path:
    """Return the path of a configuration that no group locks, if there is one: what is locked need not change."""
    return project_path(an_unlocked_project_if_read(keeper, place.fixture("project"))) / "approvals"


def _configuration(keeper: Caller, place: Place) -> dict[str, Any]:
    """Return the settings of what is changed; inconclusive when they cannot be read."""
    body = keeper.read(_changed_path(keeper, place))
    given(isinstance(body, dict) and set(_SETTINGS) <= body.keys(), "the configuration does not show its settings")
    return {name: body[name] for name in (*_SETTINGS, "approvals_before_merge") if name in body}


def _still_there(keeper: Caller, place: Place) -> Values:
    """Go on unless the service has given reading up, which the removal in 16.0 may mean as well.

    Where the profile says so, any refusal may be the answer to it.
    """
    given(keeper.target_declares("approval_configuration"), "the profile says that the configuration is not read")
    version = keeper.target_version
    removal_reached = version is None or version >= _REMOVAL
    gone = removal_reached and keeper.get(_path(place)).status in _GONE
    given(not gone, NO_LONGER_READ)
    return {}


def _able_to_change(keeper: Caller, place: Place) -> Values:
    """Let the example of the call be a change."""
    if keeper.target_version is None:
        same = _configuration(keeper, place)["merge_requests_author_approval"]
        taken = keeper.post(_changed_path(keeper, place), {"merge_requests_author_approval": same}).is_served
        given(taken, "the version is not known, and the target takes no change, as from 16.0 on")
    chosen = an_unlocked_project_if_read(keeper, place.fixture("project"))
    if _may_be_locked(keeper, chosen):
        taken = keeper.post(_changed_path(keeper, place), _EXAMPLE).is_served
        given(taken, f"{_LOCKED_WITH_IT} is locked in each project, or cannot be read, and may bind the configuration")
    if _configuration(keeper, place)["merge_requests_disable_committers_approval"]:
        off = {"merge_requests_disable_committers_approval": False}
        keeper.post(_changed_path(keeper, place), off).given_served()
    return {} if chosen == place.fixture("project") else {"id": chosen.id}


def _put_back(keeper: Caller, place: Place, before: Mapping[str, Any] | None) -> None:
    if before is None:
        return
    now = _configuration(keeper, place)
    different = {name: value for name, value in before.items() if now.get(name) != value}
    # What enables selective removals comes last, when pushes no longer reset.
    for name in sorted(different, key=lambda name: (name == _SETTINGS[0] and bool(different[name]), name)):
        if name == "reset_approvals_on_push" and different[name]:
            keeper.post(_changed_path(keeper, place), {"selective_code_owner_removals": False})
        keeper.post(_changed_path(keeper, place), {name: different[name]})


def _remember(keeper: Caller, place: Place) -> Mapping[str, Any] | None:
    """Return the settings, or None where a service since 16.0 no longer shows them, and so changes them neither."""
    return _configuration(keeper, place) if keeper.get(_changed_path(keeper, place)).is_served else None


def _change(_: Place) -> dict[str, Any]:
    return dict(_EXAMPLE)


def _may_be_locked(keeper: Caller, project: Fixture) -> bool:
    """Tell whether the setting is locked, or the keeper of the configuration cannot see whether it is."""
    with suppress(Unmet):
        return _LOCKED_WITH_IT not in of_project(keeper, project).free()
    return True


def _is_held(keeper: Caller, place: Place) -> bool:
    """Tell whether a group locks a setting of the project; that of the configuration may be the same one."""
    entries = of_project(keeper, place.fixture("project")).entries().values()
    return any(entry.get("locked") for entry in entries)


AREA = Area(
    keeper="maintainer",
    remember=_remember,
    put_back=_put_back,
    unknown={"id": "project-approval-configuration.unknown-project"},
    request_examples={
        "getProjectApprovalConfiguration": RequestExample(before=_still_there),
        "updateProjectApprovalConfiguration": RequestExample(
            before=_able_to_change,
            body=_change,
            state=_configuration,
            read_back=ReadBack(
                requirement=lambda _: "project-approval-configuration.change.stored",
                shows={name: name for name in _SETTINGS},
                apart=(("selective_code_owner_removals", "reset_approvals_on_push"),),
                is_held=_is_held,
            ),
        ),
    },
)
