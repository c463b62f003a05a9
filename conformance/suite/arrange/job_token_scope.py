"""Job token scope: the limit, and the two allowlists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.request_examples import Area, Prepared, ReadBack, RequestExample, Values
from conformance.suite.expectations import Answer, Caller, Path, given, project_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.suite.arrange.places import Place


def _scope(place: Place) -> Path:
    return project_path(place.fixture("project")) / "job_token_scope"


@dataclass(frozen=True)
class _Allowlist:
    """One of the two lists, which are twins but for what they hold."""

    segment: str
    parameter: str
    fixture: str
    present: str
    """The requirement that an added entry is listed."""

    def path(self, place: Place) -> Path:
        return _scope(place) / self.segment

    def ids(self, caller: Caller, place: Place) -> list[Any]:
        return caller.list(self.path(place)).ids()

    def add(self, caller: Caller, place: Place, target: int) -> None:
        caller.post(self.path(place), {self.parameter: target}).given_served()

    def with_entry(self, caller: Caller, place: Place) -> Values:
        """Let the first fixture be listed."""
        target = place.value(self.fixture)
        if target not in self.ids(caller, place):
            self.add(caller, place, target)
        return {}

    def without_entry(self, caller: Caller, place: Place) -> Values:
        """Let the first fixture not be listed."""
        target = place.value(self.fixture)
        if target in self.ids(caller, place):
            caller.delete(self.path(place) / target).given_served()
        return {}

    def fill(self, caller: Caller, place: Place) -> list[Any]:
        """Let all fixtures be listed."""
        listed = self.ids(caller, place)
        targets = [entry.id for entry in place.entries(self.fixture)]
        for target in targets:
            if target not in listed and not caller.post(self.path(place), {self.parameter: target}).is_served:
                # Refused, perhaps because the list hides what it holds: added afresh it is there for certain.
                caller.delete(self.path(place) / target)
                self.add(caller, place, target)
        return targets

    def read_back(self) -> ReadBack:
        return ReadBack(requirement=lambda _: self.present, path=_same_path, lists={self.parameter: "id"})


_PROJECTS = _Allowlist("allowlist", "target_project_id", "allowlist_project", "job-token-scope.allowlist.add.present")
_GROUPS = _Allowlist(
    "groups_allowlist", "target_group_id", "allowlist_group", "job-token-scope.groups-allowlist.add.present"
)


def _same_path(call: Prepared, _: Answer) -> str:
    return call.path


def _settings(caller: Caller, place: Place) -> dict[str, Any]:
    settings = caller.read(_scope(place))
    given(isinstance(settings, dict) and "inbound_enabled" in settings, "the settings do not show the limit")
    return dict(settings)


def _with_limit_off(caller: Caller, place: Place) -> Values:
    """Switch the limit off where that can be done, so that switching it on changes something."""
    if _settings(caller, place)["inbound_enabled"]:
        caller.patch(_scope(place), {"enabled": False})
    return {}


def _remember(caller: Caller, place: Place) -> dict[str, Any]:
    return {
        "limit": _settings(caller, place)["inbound_enabled"],
        **{allowlist.segment: allowlist.ids(caller, place) for allowlist in (_PROJECTS, _GROUPS)},
    }


def _put_back(caller: Caller, place: Place, before: Mapping[str, Any]) -> None:
    # The limit first: a list may be lost with it.
    if _settings(caller, place)["inbound_enabled"] != before["limit"]:
        caller.patch(_scope(place), {"enabled": before["limit"]})
    now = _remember(caller, place)
    for allowlist in (_PROJECTS, _GROUPS):
        wanted, found = set(before[allowlist.segment]), set(now[allowlist.segment])
        caller.delete_each(allowlist.path(place), found - wanted)
        for target in wanted - found:
            caller.post(allowlist.path(place), {allowlist.parameter: target})


def _switch_shows(sent: Mapping[str, Any]) -> str:
    return f"job-token-scope.switch.{'on' if sent.get('enabled') else 'off'}"


AREA = Area(
    keeper="maintainer",
    remember=_remember,
    put_back=_put_back,
    unknown={
        "id": "job-token-scope.unknown-project",
        "addProjectToJobTokenAllowlist.target_project_id": "job-token-scope.allowlist.add.unknown-target",
        "addGroupToJobTokenAllowlist.target_group_id": "job-token-scope.groups-allowlist.add.unknown-target",
    },
    request_examples={
        "getJobTokenScope": RequestExample(),
        "updateJobTokenScope": RequestExample(
            before=_with_limit_off,
            state=_settings,
            read_back=ReadBack(requirement=_switch_shows, path=_same_path, shows={"enabled": "inbound_enabled"}),
        ),
        "listJobTokenAllowlist": RequestExample(before=_PROJECTS.with_entry, fill=_PROJECTS.fill),
        "addProjectToJobTokenAllowlist": RequestExample(
            before=_PROJECTS.without_entry, state=_PROJECTS.ids, read_back=_PROJECTS.read_back()
        ),
        "removeProjectFromJobTokenAllowlist": RequestExample(before=_PROJECTS.with_entry, state=_PROJECTS.ids),
        "listJobTokenGroupsAllowlist": RequestExample(before=_GROUPS.with_entry, fill=_GROUPS.fill),
        "addGroupToJobTokenAllowlist": RequestExample(
            before=_GROUPS.without_entry, state=_GROUPS.ids, read_back=_GROUPS.read_back()
        ),
        "removeGroupFromJobTokenAllowlist": RequestExample(before=_GROUPS.with_entry, state=_GROUPS.ids),
    },
)
