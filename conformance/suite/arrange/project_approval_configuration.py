"""Project approval configuration: how a project treats approvals."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.contract import Version
from conformance.suite.arrange import approval_settings as settings_of_approval
from conformance.suite.arrange.approval_settings import (
    COMMITTER,
    OVERRIDES,
    PASSWORD,
    REAUTHENTICATION,
    RETAIN,
    an_unlocked_project_if_read,
    of_project,
)
from conformance.suite.arrange.request_examples import Area, ReadBack, RequestExample, Values
from conformance.suite.context import Unmet
from conformance.suite.expectations import Answer, Caller, Path, given, must_settle, project_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.suite.arrange.places import Place
    from conformance.target import Fixture

RESET = "reset_approvals_on_push"
SELECTIVE = "selective_code_owner_removals"
OVERRIDING = "disable_overriding_approvers_per_merge_request"
AUTHOR = "merge_requests_author_approval"
COMMITTERS = "merge_requests_disable_committers_approval"
SETTINGS = (RESET, SELECTIVE, OVERRIDING, AUTHOR, COMMITTERS, "require_password_to_approve")
NUMBER = "approvals_before_merge"
#: Approval settings that a group may lock, and the settings of the configuration for the same matter.
_LOCKS = {
    RESET: (RETAIN,),
    SELECTIVE: (settings_of_approval.SELECTIVE, RETAIN),
    OVERRIDING: (OVERRIDES,),
    AUTHOR: (settings_of_approval.AUTHOR,),
    COMMITTERS: (COMMITTER,),
    "require_password_to_approve": (PASSWORD, REAUTHENTICATION),
}
#: How often a change that gets no answer is sent.
_MOST_TRIES = 3
REMOVAL = Version.parse("16.0")
GONE = (404, 405, 410)
#: What prevents reading the configuration; only the operator can tell whether reading was removed.
NO_LONGER_READ = (
    "the service does not let the configuration be read, which from 16.0 on it may have given up: if so, let the "
    "profile say `approval_configuration: false` among its features"
)
_EXAMPLE = {COMMITTERS: True}
#: The setting of a project that may be the same one, and that its groups or the installation may lock.
_LOCKED_WITH_IT = COMMITTER


@dataclass(frozen=True)
class Configuration:
    """The configuration of one project, for one caller."""

    caller: Caller
    project: Fixture
    read_at: Path | None = None
    """The path where it is read, if it is not the path where it is changed."""

    @property
    def path(self) -> Path:
        """The path by which it is changed."""
        return project_path(self.project) / "approvals"

    def settings(self) -> dict[str, bool]:
        """Return the six settings; inconclusive when they cannot be read."""
        return settings_in(self.caller.read(self.read_at or self.path))

    def locked(self) -> set[str]:
        """Return the settings that a group may prescribe; none when the approval settings cannot be read at all."""
        settings = of_project(self.caller, self.project)
        if not self.caller.get(settings.path).is_served:
            return set()
        entries = settings.entries()
        return {name for name, locks in _LOCKS.items() if any(entries.get(lock, {}).get("locked") for lock in locks)}

    def given_free(self, *names: str) -> None:
        """Go on only if none of these is locked."""
        locked = self.locked() & set(names)
        given(not locked, f"a group may prescribe what the project does: {', '.join(sorted(locked))} are locked")

    def keeps_approvals(self) -> bool:
        """Tell whether the approval settings of the project show that approvals are kept on push.

        They exclude selective removals beside that, and may be the same settings under other names.
        """
        with suppress(Unmet):
            return of_project(self.caller, self.project).values()[RETAIN]
        return False

    def state(self) -> dict[str, Any]:
        """Return the six settings, and the deprecated number if it is shown."""
        body = self.caller.read(self.path)
        return {**settings_in(body), NUMBER: body.get(NUMBER)}

    def change(self, **values: Any) -> Answer:
        """Send these settings and no others."""
        return self.caller.post(self.path, values)

    def must_hold(self, **values: bool) -> None:
        """Expect these settings at the next read."""
        must_settle(lambda: values.items() <= self.settings().items(), f"{values}", lambda: str(self.settings()))

    def bring_to(self, wanted: Mapping[str, Any]) -> None:
        """Change the settings that differ."""
        _bring(lambda values: self.change(**values), self.settings(), wanted)


def settings_in(body: Any) -> dict[str, bool]:
    """Return the six settings of a body; inconclusive when one is missing or neither true nor false."""
    shown = body if isinstance(body, dict) else {}
    unread = [name for name in SETTINGS if not isinstance(shown.get(name), bool)]
    given(not unread, f"the configuration does not say {', '.join(unread)}")
    return {name: shown[name] for name in SETTINGS}


def _bring(change: Callable[[dict[str, Any]], Answer], now: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Change the settings that differ; never send the excluded pair, and repeat a change that gets no answer."""
    different = {name: value for name, value in wanted.items() if now.get(name) != value}
    steps = [{name: value} for name, value in sorted(different.items(), key=lambda one: one == (SELECTIVE, True))]
    if different.get(RESET) and now.get(SELECTIVE):
        steps.insert(0, {SELECTIVE: False})
    for step in steps:
        for _ in range(_MOST_TRIES):
            answer = change(step)
            if answer.is_served or answer.exchange.is_refusal:
                break


def _changed_path(keeper: Caller, place: Place) -> Path:
    """Return the path of a configuration that no group locks, if there is one: a locked one need not change."""
    return project_path(an_unlocked_project_if_read(keeper, place.fixture("project"))) / "approvals"


def _configuration(keeper: Caller, place: Place) -> dict[str, Any]:
    """Return the settings before a change; inconclusive when they cannot be read."""
    body = keeper.read(_changed_path(keeper, place))
    given(isinstance(body, dict) and set(SETTINGS) <= body.keys(), "the configuration does not show its settings")
    return {name: body[name] for name in (*SETTINGS, NUMBER) if name in body}


def _still_there(keeper: Caller, place: Place) -> Values:
    """Go on unless the service has removed reading, which the removal in 16.0 may mean as well.

    If the profile says so, any refusal may be the answer to a read.
    """
    given(keeper.target_declares("approval_configuration"), "the profile says that the configuration is not read")
    version = keeper.target_version
    removal_reached = version is None or version >= REMOVAL
    gone = removal_reached and keeper.get(Configuration(keeper, place.fixture("project")).path).status in GONE
    given(not gone, NO_LONGER_READ)
    return {}


def _able_to_change(keeper: Caller, place: Place) -> Values:
    """Prepare so that the call of the example changes something."""
    if keeper.target_version is None:
        same = _configuration(keeper, place)[AUTHOR]
        taken = keeper.post(_changed_path(keeper, place), {AUTHOR: same}).is_served
        given(taken, "the version is not known, and the target takes no change, as from 16.0 on")
    chosen = an_unlocked_project_if_read(keeper, place.fixture("project"))
    if _may_be_locked(keeper, chosen):
        taken = keeper.post(_changed_path(keeper, place), _EXAMPLE).is_served
        given(taken, f"{_LOCKED_WITH_IT} is locked in each project, or cannot be read, and may bind the configuration")
    if _configuration(keeper, place)[COMMITTERS]:
        off = {COMMITTERS: False}
        keeper.post(_changed_path(keeper, place), off).given_served()
    return {} if chosen == place.fixture("project") else {"id": chosen.id}


def _put_back(keeper: Caller, place: Place, before: Mapping[str, Any] | None) -> None:
    if before is None:
        return
    path = _changed_path(keeper, place)
    _bring(lambda values: keeper.post(path, values), _configuration(keeper, place), before)


def _remember(keeper: Caller, place: Place) -> Mapping[str, Any] | None:
    """Return the settings, or None if a service since 16.0 no longer shows them, and so cannot change them."""
    return _configuration(keeper, place) if keeper.get(_changed_path(keeper, place)).is_served else None


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
    request_examples={
        "getProjectApprovalConfiguration": RequestExample(before=_still_there),
        "updateProjectApprovalConfiguration": RequestExample(
            before=_able_to_change,
            body=lambda _: dict(_EXAMPLE),
            state=_configuration,
            read_back=ReadBack(
                requirement=lambda _: "project-approval-configuration.change.stored",
                shows={name: name for name in SETTINGS},
                apart=((SELECTIVE, RESET),),
                is_held=_is_held,
            ),
        ),
    },
)
