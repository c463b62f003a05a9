"""Approval settings: what an update of one place leaves as it was."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from conformance.suite.arrange.approval_settings import Settings, of_group, of_project, side_by_side
from conformance.suite.context import Unmet
from conformance.suite.expectations import Caller, given, unchanged, verifies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture


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
        before = None if moved else settings.values()[name]
        with unchanged(leaving.values, f"the settings of {leaving.path}"):
            done = settings.move(name, value=value)
        moved = moved or (done and settings.values()[name] != before)
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
            settings = of_project(maintainer, one)
            with suppress(Unmet), put_back_after(settings):
                change_everything(settings, leaving=of_project(maintainer, other))


def test_an_update_of_a_project_leaves_the_group_around_it(project_in_a_group: tuple[Settings, Settings]) -> None:
    inner, outer = project_in_a_group
    with verifies("approval-settings.project.update.leaves-its-group"):
        change_everything(inner, leaving=outer)
