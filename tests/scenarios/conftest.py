"""Fixtures that tests take as arguments: lists of rules, merge requests under review, settings, exports.

Each restores what it found, as far as the service permits removal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_rules import (
    administrator_of,
    given_declared,
    group_rules_path,
    own_group,
    own_rule,
    own_rule_put_back,
    project_rules_path,
)
from conformance.suite.arrange.approval_settings import (
    Settings,
    a_group_without_projects_of_others,
    an_unlocked_project_in_a_group,
    of_an_unlocked_project,
    of_group,
    of_project,
    remembered,
)
from conformance.suite.arrange.exports import Export, export_of
from conformance.suite.arrange.reviews import merge_request_path, under_review
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import current_run
from conformance.suite.expectations import Caller, Path, given, given_field, named_otherwise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture
    from conformance.suite.arrange.reviews import Rule


# -- rules of projects -------------------------------------------------------------------------------------------------


@pytest.fixture
def project_rules(maintainer: Caller, project: Fixture) -> Iterator[Path]:
    """The rules of the project; those that a test adds are deleted after it."""
    path = project_rules_path(project)
    with rules_put_back(maintainer, path):
        yield path


@pytest.fixture
def spare_project_rules(maintainer: Caller, fuzz_project: Fixture) -> Iterator[Path]:
    """The rules of the project that is set aside, because a rule of a special type may replace another one."""
    path = project_rules_path(fuzz_project)
    with rules_put_back(maintainer, path):
        yield path


# -- rules of groups ---------------------------------------------------------------------------------------------------


@pytest.fixture
def group_rules(owner: Caller, group: Fixture) -> Path:
    """The rules of the group, or of the run's own group in its place, on a target that declares rules of groups."""
    given_declared(owner, "group_approval_rules")
    return group_rules_path(own_group(group))


@pytest.fixture
def admin_of_group(owner: Caller, group: Fixture) -> Caller:
    """The actor who administrates the group."""
    return administrator_of(owner, own_group(group))


@pytest.fixture
def group_rule(admin_of_group: Caller, group_rules: Path) -> Iterator[Rule]:
    """A regular rule that the suite made, now or in an earlier run; restored after a test."""
    with own_rule_put_back(admin_of_group, group_rules) as found:
        yield found


@pytest.fixture
def admin_of_spare_group(owner: Caller, fuzz_group: Fixture) -> Caller:
    """The actor who administrates the group that is set aside."""
    given_declared(owner, "group_approval_rules")
    return administrator_of(owner, own_group(fuzz_group))


@pytest.fixture
def spare_group_rules(admin_of_spare_group: Caller, fuzz_group: Fixture) -> Path:
    """The rules of the group that is set aside, or of the run's own group in its place; the suite made one of them."""
    path = group_rules_path(own_group(fuzz_group))
    own_rule(admin_of_spare_group, path)
    given(bool(admin_of_spare_group.list(path).entries), "the list does not show the rules of the group")
    return path


# -- merge requests ----------------------------------------------------------------------------------------------------


@pytest.fixture
def merge_request_rules(maintainer: Caller, project: Fixture, merge_request: Fixture) -> Iterator[Path]:
    """The rules of the merge request; those that a test adds are deleted after it."""
    path = merge_request_path(project, merge_request) / "approval_rules"
    with rules_put_back(maintainer, path):
        yield path


@pytest.fixture
def other_merge_request_rules(maintainer: Caller, project: Fixture, reset_merge_request: Fixture) -> Iterator[Path]:
    """The rules of another merge request of the same project."""
    path = merge_request_path(project, reset_merge_request) / "approval_rules"
    with rules_put_back(maintainer, path):
        yield path


@pytest.fixture
def review(maintainer: Caller, approver: Caller, project: Fixture, merge_request: Fixture) -> Iterator[Path]:
    """An open merge request with a rule for the approver only, who has not approved."""
    with under_review(maintainer, merge_request_path(project, merge_request), approver) as path:
        yield path


@pytest.fixture
def joint_review(
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> Iterator[Path]:
    """An open merge request with a rule for each of two approvers, neither of whom has approved."""
    with under_review(maintainer, merge_request_path(project, merge_request), approver, second_approver) as path:
        yield path


# -- approval settings -------------------------------------------------------------------------------------------------


def kept(settings: Settings) -> Iterator[Settings]:
    """Lend settings to a story, and restore them afterwards."""
    with current_run().known_reads.before_changes() as holds_again:
        before = settings.values()
    yield settings
    settings.restore(before)
    holds_again()


@pytest.fixture
def group_settings(owner: Caller, group: Fixture) -> Iterator[Settings]:
    """The settings of a group that contains no project of another test, as far as the profile allows."""
    yield from kept(of_group(owner, a_group_without_projects_of_others(group)))


@pytest.fixture
def outer_settings(owner: Caller, group: Fixture) -> Iterator[Settings]:
    """The settings of the group around the subgroup and the project."""
    yield from kept(of_group(owner, group))


@pytest.fixture
def subgroup_settings(owner: Caller, subgroup: Fixture) -> Iterator[Settings]:
    """The settings of the subgroup."""
    yield from kept(of_group(owner, subgroup))


@pytest.fixture
def inner_project_settings(maintainer: Caller, project: Fixture) -> Iterator[Settings]:
    """The settings of the project inside the group."""
    yield from kept(of_project(maintainer, project))


@pytest.fixture
def project_settings(maintainer: Caller, project: Fixture) -> Iterator[Settings]:
    """The settings of a project without locks, wherever it is."""
    yield from kept(of_an_unlocked_project(maintainer, project))


@pytest.fixture
def project_in_a_group(
    owner: Caller, maintainer: Caller, group: Fixture, project: Fixture
) -> Iterator[tuple[Settings, Settings]]:
    """The settings of a project named by its path, and of the group around it, with whose path that path begins."""
    inside, around = an_unlocked_project_in_a_group(maintainer, project, group)
    settings = of_project(maintainer, inside)
    for inner in kept(replace(settings, path=named_otherwise(settings.path, inside, maintainer))):
        yield inner, of_group(owner, around)


@pytest.fixture
def settings(place: str, request: pytest.FixtureRequest) -> Settings:
    """The settings of the place that a test is about."""
    found: Settings = request.getfixturevalue(f"{place}_settings")
    return found


@pytest.fixture
def inner_settings(place: str, request: pytest.FixtureRequest) -> Settings:
    """The settings of a place of this kind inside the group."""
    found: Settings = request.getfixturevalue(
        {"group": "subgroup_settings", "project": "inner_project_settings"}[place]
    )
    return found


@pytest.fixture
def nested_settings(place: str, owner: Caller, maintainer: Caller) -> Iterator[tuple[Settings, Settings] | None]:
    """The settings of a project in a nested group, and of that group; None if they cannot be read."""
    project, between = (current_run().profile.first(name) for name in ("subgroup_project", "subgroup"))
    if place != "project" or project is None or between is None:
        yield None
        return
    settings, around = of_project(maintainer, project), of_group(owner, between)
    before = remembered(settings)
    yield None if before is None or remembered(around) is None else (settings, around)
    if before is not None:
        settings.restore(before)


# -- exports -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def export(owner: Caller, export_group: Fixture) -> Export:
    """The export of the group that is set aside for it."""
    return export_of(owner, export_group, given_field(export_group, "relation", str))


@pytest.fixture
def foreign_export(owner: Caller, sibling_group: Fixture, export: Export) -> Export:
    """The export of a group that nobody exports."""
    return export_of(owner, sibling_group, export.relation)
