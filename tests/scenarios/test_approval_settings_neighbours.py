"""Approval settings: what an update of one place keeps unchanged, and who else reads the update."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_settings import (
    AUTHOR,
    COMMITTER,
    OVERRIDES,
    Settings,
    of_group,
    of_project,
    side_by_side,
)
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    given,
    left_to_others,
    must_be_as_before,
    observe,
    project_path,
    unchanged,
    verifies,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture


@contextmanager
def put_back_after(settings: Settings) -> Iterator[None]:
    """Restore settings afterwards."""
    before = settings.values()
    try:
        yield
    finally:
        settings.restore(before)


def change_everything(settings: Settings, *, leaving: Settings) -> None:
    """Set each free setting to its other value and back; check what must not change after each step."""
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
            # The other project has decided the requirement; this one need not leave it open.
            settings = of_project(maintainer, one)
            with suppress(Unmet), put_back_after(settings):
                change_everything(settings, leaving=of_project(maintainer, other))


@pytest.mark.calls_area("approval-settings")
def test_settings_read_by_the_path_are_those_of_that_very_project(
    maintainer: Caller,
    project: Fixture,
    sibling_project: Fixture,
) -> None:
    """The paths of both may end alike; settings that differ then distinguish them."""
    left_to_others()  # if the paths are not known, or this setting cannot be read or changed
    if not (project.get("path") and sibling_project.get("path")):
        return
    own, other = of_project(maintainer, project), of_project(maintainer, sibling_project)
    with suppress(Unmet), put_back_after(own):
        value = other.values()[AUTHOR]
        given(own.is_free(AUTHOR), f"{AUTHOR} is locked")
        own.change(**{AUTHOR: not value}).given_served()
        given(own.values()[AUTHOR] is not value, f"{AUTHOR} was not changed")
        with verifies("conventions.project-id.encoded-path"):
            for settings, one, shown in ((own, project, not value), (other, sibling_project, value)):
                by_path = Path(settings.path.replace(project_path(one), f"/projects/{one.encoded_path}"))
                replace(settings, path=by_path).must_show(AUTHOR, value=shown)


def test_an_update_of_a_project_leaves_the_group_around_it(project_in_a_group: tuple[Settings, Settings]) -> None:
    inner, outer = project_in_a_group
    with verifies("approval-settings.project.update.leaves-its-group"):
        change_everything(inner, leaving=outer)


def test_an_update_of_a_project_leaves_the_groups_further_out(
    owner: Caller, maintainer: Caller, group: Fixture
) -> None:
    """For a project at a deeper level, the top group is not the group around it."""
    left_to_others()  # if the profile has no such project, or nothing can be changed in it
    deep = current_run().profile.first("subgroup_project")
    if deep is None:
        return
    settings, outermost = of_project(maintainer, deep), of_group(owner, group)
    with suppress(Unmet), put_back_after(outermost), put_back_after(settings):
        before = outermost.values()
        others = {name: not before[name] for name in (AUTHOR, COMMITTER, OVERRIDES) if settings.is_free(name)}
        given(bool(others), f"no setting in {settings.path} can be changed")
        settings.change(**others).given_served()
        with verifies("approval-settings.project.update.leaves-its-group"):
            now = outermost.values()
            must_be_as_before(f"the settings of {outermost.path}", before, now)


def test_an_owner_who_has_read_the_settings_sees_what_a_maintainer_changes(
    owner: Caller, project_settings: Settings
) -> None:
    """Whether an owner may read them is open."""
    read = replace(project_settings, caller=owner)
    if not owner.get(read.path).is_served or not project_settings.is_free(AUTHOR):
        left_to_others("approval-settings.project.update.allow-author-approval")
        return
    value = project_settings.values()[AUTHOR]
    with verifies("approval-settings.project.update.allow-author-approval"):
        project_settings.change(**{AUTHOR: not value}).given_served()
        read.must_show(AUTHOR, value=not value)


def test_whether_an_owner_may_do_what_a_maintainer_may_is_noted(owner: Caller, project_settings: Settings) -> None:
    value = project_settings.values()[AUTHOR]
    updated, read = owner.put(project_settings.path, {AUTHOR: value}), owner.get(project_settings.path)
    observe(
        "approval-settings.project.authorization.owner-answer",
        f"an owner of the project is answered {read.status} when reading and {updated.status} when updating",
    )
