"""Approval settings, explored: a project, a group elsewhere and their neighbours follow a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.fuzzing.models import Model, explore
from conformance.suite.arrange.approval_settings import (
    AUTHOR,
    COMMITTER,
    OVERRIDES,
    PASSWORD,
    REAUTHENTICATION,
    RETAIN,
    SELECTIVE,
    Settings,
    a_group_without_projects_of_others,
    of_an_unlocked_project,
    of_group,
    of_project,
)
from conformance.suite.expectations import (
    Caller,
    as_json,
    left_to_others,
    must,
    must_be_as_before,
    named_otherwise,
    verifies,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.suite import Fixture, SuiteSession

INDEPENDENT = (AUTHOR, COMMITTER, OVERRIDES)
#: The requirement that reading shows an accepted value of a setting.
STORED = {
    ("group", AUTHOR): "approval-settings.group.update.allow-author-approval",
    ("group", COMMITTER): "approval-settings.group.update.allow-committer-approval",
    ("group", OVERRIDES): "approval-settings.group.update.allow-overrides-to-approver-list",
    ("group", RETAIN): "approval-settings.group.update.retain-approvals-on-push",
    ("project", AUTHOR): "approval-settings.project.update.allow-author-approval",
    ("project", COMMITTER): "approval-settings.project.update.allow-committer-approval",
    ("project", OVERRIDES): "approval-settings.project.update.allow-overrides-to-approver-list",
    ("project", RETAIN): "approval-settings.project.update.retain-approvals-on-push",
}
LEAVES_UNSENT = {
    "group": "approval-settings.group.update.leaves-unsent",
    "project": "approval-settings.project.update.leaves-unsent",
}
#: What an update of a group or a project must keep, and the requirement for that. A group may pass its own on.
LEAVES = {
    "project": {
        "other project": "approval-settings.project.update.leaves-other-projects",
        "group": "approval-settings.project.update.leaves-its-group",
        "other group": "approval-settings.project.update.leaves-its-group",
    },
    "group": {"other group": "approval-settings.group.update.leaves-other-groups"},
}
COMPANIONS: Mapping[str, tuple[str, ...]] = {REAUTHENTICATION: (PASSWORD,), RETAIN: (SELECTIVE,)}


CHANGED = st.sampled_from(["project", "group"])
VALUES = st.booleans()


class ApprovalSettings(Model):
    """A project and a group that are updated in turns."""

    def __init__(self, places: Mapping[str, Settings]) -> None:
        """Begin an example."""
        super().__init__()
        self.places = places

    @initialize()
    def start(self) -> None:
        self.free = {name: self.places[name].free() for name in ("project", "group")}
        for name in ("project", "group"):
            if SELECTIVE in self.free[name]:
                self.places[name].without_selective_removals()
        self.model = {name: settings.values() for name, settings in self.places.items()}

    @rule(place=CHANGED, setting=st.sampled_from(INDEPENDENT), value=VALUES)
    def change(self, place: str, setting: str, value: bool) -> None:  # noqa: FBT001 - drawn
        self.update(place, setting, value=value)

    @rule(place=CHANGED, value=VALUES)
    def keep_approvals(self, place: str, value: bool) -> None:  # noqa: FBT001 - drawn
        if not (value and self.model[place][SELECTIVE]):
            self.update(place, RETAIN, value=value)

    @rule(place=CHANGED, value=VALUES)
    def remove_selectively(self, place: str, value: bool) -> None:  # noqa: FBT001 - drawn
        if not (value and self.model[place][RETAIN]):
            self.update(place, SELECTIVE, value=value)

    @precondition(lambda self: all(REAUTHENTICATION in values for values in self.model.values()))
    @rule(place=CHANGED, value=VALUES)
    def ask_for_reauthentication(self, place: str, value: bool) -> None:  # noqa: FBT001 - drawn
        self.update(place, REAUTHENTICATION, value=value)

    def tour(self) -> None:
        """Make each change once that a requirement is about, whatever is drawn later."""
        self.start()
        for place in ("project", "group"):
            for setting in (*INDEPENDENT, RETAIN):
                self.update(place, setting, value=not self.model[place][setting])
                self.look_around(place)

    def update(self, place: str, setting: str, *, value: bool) -> None:
        if setting not in self.free[place]:
            return
        self.go_on_at(place)
        if self.places[place].move(setting, value=value):
            self.model[place][setting] = value
        shown = self.places[place].values()
        self.compare_changed(place, setting, shown)
        self.model[place] = shown
        self.moved = place

    def look_around(self, moved: str) -> None:
        """Compare with the model what updates must keep; a group may pass its settings on to projects in it."""
        others = [name for name in self.places if name != moved]
        # What must be kept is compared as soon as it is read: a violation shows the last call.
        for name in sorted(others, key=lambda name: name not in LEAVES[moved]):
            shown = self.places[name].values()
            if name in LEAVES[moved]:
                with verifies(LEAVES[moved][name]):
                    must_be_as_before(f"the settings of the {name}", self.model[name], shown)
            self.model[name] = shown

    def compare_changed(self, place: str, setting: str, shown: Mapping[str, bool]) -> None:
        wanted = self.model[place]
        if (place, setting) in STORED:
            with verifies(STORED[place, setting]):
                told, sent = shown[setting], wanted[setting]
                must(told is sent, f"{setting} = {as_json(sent)}", as_json(told))
        others = {name: wanted[name] for name in wanted if name not in (setting, *COMPANIONS.get(setting, ()))}
        with verifies(LEAVES_UNSENT[place]):
            found = {name: shown.get(name) for name in others}
            must_be_as_before(f"after {setting} = {as_json(wanted[setting])}, the other settings", others, found)


@pytest.fixture
def places(
    owner: Caller,
    maintainer: Caller,
    project: Fixture,
    sibling_project: Fixture,
    group: Fixture,
    sibling_group: Fixture,
) -> Iterator[dict[str, Settings]]:
    """The places that change, for two callers, and the places beside them; all are restored at the end.

    The changing group is not the one around the project, because whether that passes its settings on is open.
    """
    changing = a_group_without_projects_of_others(sibling_group)
    found = {
        "project": read_otherwise(of_an_unlocked_project(maintainer, project), project),
        "group": read_otherwise(of_group(owner, changing), changing),
        "other project": of_project(maintainer, sibling_project),
        "other group": of_group(owner, group),
    }
    before = {name: settings.values() for name, settings in found.items()}
    yield found
    for name in ("project", "group"):
        found[name].restore(before[name])


def read_otherwise(settings: Settings, owner: Fixture) -> Settings:
    """Return settings that are changed by number and read by path, which name the same place."""
    return replace(settings, read_at=named_otherwise(settings.path, owner, settings.caller))


@pytest.mark.requirements(
    "approval-settings.project.update.leaves-other-projects",
    "approval-settings.project.update.leaves-its-group",
    "approval-settings.group.update.leaves-other-groups",
    *LEAVES_UNSENT.values(),
    *STORED.values(),
)
def test_settings_follow_the_model_in_any_order_of_updates(suite: SuiteSession, places: dict[str, Settings]) -> None:
    if all(places[name].free() for name in ("project", "group")):
        explore(suite, lambda: ApprovalSettings(places))
    else:
        left_to_others()  # what is locked in the one place opens nothing about the other
