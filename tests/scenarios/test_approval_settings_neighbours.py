"""Approval settings: what an update of one place leaves as it was."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from itertools import combinations
from typing import TYPE_CHECKING

from conformance.suite.arrange.approval_settings import Settings, of_group, of_project
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import Caller, given, unchanged, verifies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture

#: Where the profile may have projects beside each other.
PROJECTS = ("project", "sibling_project", "fuzz_project", "public_project", "allowlist_project")


@contextmanager
def put_back_after(settings: Settings) -> Iterator[None]:
    """Leave settings as they were found."""
    before = settings.values()
    try:
        yield
    finally:
        settings.restore(before)


def change_everything(settings: Settings, *, leaving: Settings) -> None:
    """Give each free setting its other value and the old one again; what must be left alone is looked at each time."""
    moved = False
    for name, value in settings.moves():
        before = settings.values()[name]
        with unchanged(leaving.values, f"the settings of {leaving.path}"):
            done = settings.move(name, value=value)
        moved |= done and settings.values()[name] != before
    given(moved, f"nothing could be changed in {settings.path}")


def test_an_update_of_a_group_leaves_other_groups(
    owner: Caller,
    sibling_group: Fixture,
    group_settings: Settings,
) -> None:
    with verifies("approval-settings.group.update.leaves-other-groups"):
        change_everything(group_settings, leaving=of_group(owner, sibling_group))


def test_an_update_of_a_project_leaves_other_projects(
    maintainer: Caller,
    sibling_project: Fixture,
    project_settings: Settings,
) -> None:
    with verifies("approval-settings.project.update.leaves-other-projects"):
        change_everything(project_settings, leaving=of_project(maintainer, sibling_project))
        for one, other in side_by_side(maintainer):
            # The other project has shown the requirement to hold or not; what cannot be tried here leaves nothing open.
            with suppress(Unmet), put_back_after(one):
                change_everything(one, leaving=other)


def side_by_side(caller: Caller) -> list[tuple[Settings, Settings]]:
    """Return the settings of two projects that lie in one namespace, where the profile has such; one pair at most."""
    fixtures = current_run().profile.fixtures
    projects = {one.id: one for name in PROJECTS for one in fixtures.get(name, ())}
    for one, other in combinations(projects.values(), 2):
        namespaces = [str(project.get("path") or "").rpartition("/")[0] for project in (one, other)]
        both = of_project(caller, one), of_project(caller, other)
        if namespaces[0] and namespaces[0] == namespaces[1] and all(caller.get(each.path).is_served for each in both):
            return [both] if both[0].free() else []
    return []


def test_an_update_of_a_project_leaves_the_group_around_it(project_in_a_group: tuple[Settings, Settings]) -> None:
    inner, outer = project_in_a_group
    with verifies("approval-settings.project.update.leaves-its-group"):
        change_everything(inner, leaving=outer)
