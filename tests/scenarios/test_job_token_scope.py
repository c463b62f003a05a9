"""Job token scope: the limit on inbound access, and the two allowlists that lift it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Version
from conformance.suite.expectations import (
    Caller,
    Path,
    given,
    must,
    observe,
    project_path,
    unchanged,
    verifies,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target import Fixture

UNUSED_ID = 2_000_000_001


@dataclass(frozen=True)
class Allowlist:
    """One of the two lists, which are twins but for what they hold."""

    name: str
    parameter: str
    other_parameter: str
    fixtures: str

    def of(self, project: Fixture) -> Path:
        return scope(project) / self.name.replace("-", "_")


PROJECTS = Allowlist("allowlist", "target_project_id", "target_group_id", "allowlist_projects")
GROUPS = Allowlist("groups-allowlist", "target_group_id", "target_project_id", "allowlist_groups")

both_lists = pytest.mark.parametrize("allowlist", [PROJECTS, GROUPS], ids=lambda allowlist: allowlist.name)


def ids_in(caller: Caller, path: Path) -> list[Any]:
    return caller.list(path).ids()


def scope(project: Fixture) -> Path:
    return project_path(project) / "job_token_scope"


@pytest.fixture
def targets(allowlist: Allowlist, request: pytest.FixtureRequest) -> tuple[Fixture, ...]:
    """What may be put on a list; the lists are free of it."""
    request.getfixturevalue("clean_lists")
    found: tuple[Fixture, ...] = request.getfixturevalue(allowlist.fixtures)
    return found


@pytest.fixture
def clean_lists(maintainer: Caller, project: Fixture, request: pytest.FixtureRequest) -> Iterator[None]:
    """Take every fixture off both lists of the project before a story, and put back what was there after it."""
    before = {allowlist.name: listed_ids(maintainer, allowlist, project) for allowlist in (PROJECTS, GROUPS)}
    known = {allowlist.name: fixture_ids(request, allowlist) for allowlist in (PROJECTS, GROUPS)}
    for allowlist in (PROJECTS, GROUPS):
        for target in before[allowlist.name] & known[allowlist.name]:
            maintainer.delete(allowlist.of(project) / target).given_served()
    yield
    for allowlist in (PROJECTS, GROUPS):
        now = listed_ids(maintainer, allowlist, project)
        for target in (now - before[allowlist.name]) & known[allowlist.name]:
            maintainer.delete(allowlist.of(project) / target)
        for target in before[allowlist.name] - now:
            maintainer.post(allowlist.of(project), {allowlist.parameter: target})


def fixture_ids(request: pytest.FixtureRequest, allowlist: Allowlist) -> set[int]:
    return {fixture.id for fixture in request.getfixturevalue(allowlist.fixtures)}


def listed_ids(caller: Caller, allowlist: Allowlist, project: Fixture) -> set[int]:
    return set(caller.list(allowlist.of(project)).ids())


@pytest.fixture
def switch(maintainer: Caller, project: Fixture) -> Iterator[Path]:
    """The settings, put back as they were after a story."""
    path = scope(project)
    before = maintainer.read(path)
    yield path
    if isinstance(before, dict) and isinstance(before.get("inbound_enabled"), bool):
        maintainer.patch(path, {"enabled": before["inbound_enabled"]})


# -- the limit ---------------------------------------------------------------------------------------------------------


def test_switching_the_limit_on_and_off_shows_in_the_settings(maintainer: Caller, switch: Path) -> None:
    """Start from off wherever that can be reached: a limit that is always on says nothing about switching it on."""
    off = maintainer.patch(switch, {"enabled": False})
    refuses_off = off.exchange.is_refusal and may_enforce(maintainer)
    with verifies("job-token-scope.switch.off", go_on=True):
        if refuses_off:
            maintainer.get(switch).must_hold(inbound_enabled=True)
        else:
            off.must_be_served()
            maintainer.get(switch).must_hold(inbound_enabled=False)
    with verifies("job-token-scope.switch.on"):
        maintainer.patch(switch, {"enabled": True}).must_be_served()
        maintainer.get(switch).must_hold(inbound_enabled=True)


def may_enforce(caller: Caller) -> bool:
    """From 18.0 on an installation may forbid to switch the limit off; of an unknown version that may hold too."""
    version = caller.target_version
    return version is None or version >= Version.parse("18.0")


def test_switching_to_what_holds_already_succeeds_and_keeps_it(maintainer: Caller, switch: Path) -> None:
    for _ in range(2):
        maintainer.patch(switch, {"enabled": True}).given_served()
        if maintainer.read(switch)["inbound_enabled"]:
            break
    given(maintainer.read(switch)["inbound_enabled"] is True, "the limit cannot be switched on")
    with verifies("job-token-scope.switch.repeated"):
        maintainer.patch(switch, {"enabled": True}).must_be_served()
        maintainer.get(switch).must_hold(inbound_enabled=True)


# -- the lists ---------------------------------------------------------------------------------------------------------


@both_lists
def test_an_added_target_is_listed(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path, target = allowlist.of(project), targets[0]
    given(not maintainer.list(path).having(id=target.id), "the target could not be taken off the list beforehand")
    with verifies(f"job-token-scope.{allowlist.name}.add.created", go_on=True):
        added = maintainer.post(path, {allowlist.parameter: target.id})
        added.must_be(201)
    with verifies(f"job-token-scope.{allowlist.name}.add.present"):
        added.given_served()
        maintainer.list(path).must_contain_once(id=target.id)


@both_lists
def test_a_removed_target_is_gone(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    """A target that keeps its access after removal is a security hole, whatever the status code said.

    One that an earlier removal left on the list serves as well as one that is added now.
    """
    path, target = allowlist.of(project), targets[0]
    if not maintainer.list(path).having(id=target.id):
        maintainer.post(path, {allowlist.parameter: target.id}).given_served()
    listed = maintainer.list(path)
    with verifies(f"job-token-scope.{allowlist.name}.remove.no-content", go_on=True):
        removed = maintainer.delete(path / target.id)
        removed.must_be(204).without_body()
    with verifies(f"job-token-scope.{allowlist.name}.remove.gone"):
        removed.given_served()
        maintainer.list(path).must_not_contain(id=target.id, after=listed)
        maintainer.post(path, {allowlist.parameter: targets[1].id}).given_served()
        listed = maintainer.list(path)
        maintainer.delete(path / targets[1].id).given_served()
        maintainer.list(path).must_not_contain(id=targets[1].id, after=listed)


@both_lists
def test_the_answer_to_an_addition_names_source_and_target(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    """The source is a number even when the call names the project by its path."""
    encoded = Path(f"/projects/{project.encoded_path}/job_token_scope") / allowlist.name.replace("-", "_")
    with verifies(f"job-token-scope.{allowlist.name}.add.result-names-both"):
        for path, target in ((allowlist.of(project), targets[0]), (encoded, targets[1])):
            added = maintainer.post(path, {allowlist.parameter: target.id}).given_served()
            added.must_hold(source_project_id=project.id, **{allowlist.parameter: target.id})


@pytest.mark.usefixtures("clean_lists")
def test_the_entry_of_a_project_describes_it(
    maintainer: Caller,
    project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
) -> None:
    """Targets have a repository, so that their entries must name a default branch."""
    path, target = PROJECTS.of(project), allowlist_projects[0]
    maintainer.post(path, {"target_project_id": target.id}).given_served()
    entry = maintainer.list(path).the(id=target.id)
    with verifies("job-token-scope.project-entry.describes-target", go_on=True):
        must(
            entry.get("path_with_namespace") == target["path"],
            f"path_with_namespace = {target['path']}",
            str(entry.get("path_with_namespace")),
        )
    with verifies("job-token-scope.project-entry.fields"):
        branch = entry.get("default_branch")
        must(isinstance(branch, str) and bool(branch), "default_branch as text", repr(branch))


@pytest.mark.usefixtures("clean_lists")
def test_the_entry_of_a_group_describes_it(
    maintainer: Caller,
    project: Fixture,
    allowlist_groups: tuple[Fixture, ...],
) -> None:
    path, target = GROUPS.of(project), allowlist_groups[0]
    given(target.get("name") is not None, "the profile does not name allowlist_groups[0]")
    maintainer.post(path, {"target_group_id": target.id}).given_served()
    with verifies("job-token-scope.group-entry.describes-target"):
        entry = maintainer.list(path).the(id=target.id)
        must(entry.get("name") == target["name"], f"name = {target['name']}", repr(entry.get("name")))


@both_lists
def test_adding_a_listed_target_again_leaves_it_listed_once(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path, target = allowlist.of(project), targets[0]
    maintainer.post(path, {allowlist.parameter: target.id}).given_served()
    with verifies(f"job-token-scope.{allowlist.name}.add.repeated"):
        again = maintainer.post(path, {allowlist.parameter: target.id}).must_not_break()
        maintainer.list(path).must_contain_once(id=target.id)
    observe(
        f"job-token-scope.{allowlist.name}.add.repeated-answer",
        f"adding a listed target again answers {again.status}",
    )


@both_lists
def test_removing_an_absent_target_leaves_the_others(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path = allowlist.of(project)
    maintainer.post(path, {allowlist.parameter: targets[0].id}).given_served()
    given(bool(maintainer.list(path).having(id=targets[0].id)), "the list holds nothing that could be lost")
    with (
        verifies(f"job-token-scope.{allowlist.name}.remove.absent"),
        unchanged(lambda: maintainer.list(path).ids(), "the list"),
    ):
        absent = maintainer.delete(path / targets[1].id).must_not_break()
    observe(
        f"job-token-scope.{allowlist.name}.remove.absent-answer",
        f"removing a target that is not listed answers {absent.status}",
    )


@both_lists
def test_adding_or_removing_one_target_leaves_every_other_entry(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path = allowlist.of(project)
    first, second, third = (target.id for target in targets[:3])
    untouched = set(maintainer.list(path).ids())
    for target in (first, second):
        maintainer.post(path, {allowlist.parameter: target}).given_served()
    with verifies(f"job-token-scope.{allowlist.name}.change.leaves-others"):
        maintainer.list(path).must_be_of({*untouched, first, second})
        maintainer.post(path, {allowlist.parameter: third}).given_served()
        maintainer.list(path).must_be_of({*untouched, first, second, third})
        maintainer.delete(path / first).given_served()
        maintainer.list(path).must_be_of({*untouched, second, third})
        maintainer.post(path, {allowlist.parameter: first}).must_be_served()
        maintainer.list(path).must_be_of({*untouched, first, second, third})
        for target in (second, third):
            maintainer.delete(path / target).given_served()
        maintainer.post(path, {allowlist.parameter: third}).must_be_served()
        maintainer.list(path).must_be_of({*untouched, first, third})


@pytest.mark.usefixtures("clean_lists")
def test_a_change_of_one_list_leaves_the_other(
    maintainer: Caller,
    project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
    allowlist_groups: tuple[Fixture, ...],
) -> None:
    changes = ((PROJECTS, GROUPS, allowlist_projects[0]), (GROUPS, PROJECTS, allowlist_groups[0]))
    maintainer.post(PROJECTS.of(project), {"target_project_id": allowlist_projects[1].id}).given_served()
    maintainer.post(GROUPS.of(project), {"target_group_id": allowlist_groups[1].id}).given_served()
    with verifies("job-token-scope.allowlists.are-separate"):
        for changed, other, target in changes:
            with unchanged(partial(ids_in, maintainer, other.of(project)), f"the {other.name}"):
                maintainer.post(changed.of(project), {changed.parameter: target.id}).given_served()
                maintainer.delete(changed.of(project) / target.id).given_served()


@pytest.mark.usefixtures("clean_lists")
def test_a_change_in_one_project_leaves_the_other_projects(
    maintainer: Caller,
    project: Fixture,
    sibling_project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
    allowlist_groups: tuple[Fixture, ...],
    switch: Path,
) -> None:
    """An allowlist that leaks into the neighbour gives access that nobody granted."""
    project_target, group_target = allowlist_projects[0], allowlist_groups[0]
    given(
        project_target.id not in listed_ids(maintainer, PROJECTS, sibling_project),
        "the sibling project lists the target itself",
    )
    limit = maintainer.read(switch)["inbound_enabled"]
    shared, lists = allowlist_projects[1].id, (PROJECTS.of(sibling_project), PROJECTS.of(project))
    is_lent = shared not in listed_ids(maintainer, PROJECTS, sibling_project)
    for path in lists:
        maintainer.post(path, {"target_project_id": shared})

    def neighbour() -> dict[str, object]:
        return {
            "settings": maintainer.read(scope(sibling_project)),
            "projects": maintainer.list(PROJECTS.of(sibling_project)).ids(),
            "groups": maintainer.list(GROUPS.of(sibling_project)).ids(),
        }

    try:
        with (
            verifies("job-token-scope.allowlists.belong-to-their-project"),
            unchanged(neighbour, "the scope of the sibling project"),
        ):
            maintainer.post(PROJECTS.of(project), {"target_project_id": project_target.id}).given_served()
            maintainer.post(GROUPS.of(project), {"target_group_id": group_target.id}).given_served()
            # Removed before the limit moves: entries need not outlive a limit that is switched off.
            for target in (project_target.id, shared):
                maintainer.delete(PROJECTS.of(project) / target).given_served()
            maintainer.patch(switch, {"enabled": not limit})
    finally:
        if is_lent:
            maintainer.delete(PROJECTS.of(sibling_project) / shared)


# -- what is refused --------------------------------------------------------------------------------------------------


@both_lists
def test_the_parameter_of_the_other_list_is_not_taken(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
    allowlist_projects: tuple[Fixture, ...],
    allowlist_groups: tuple[Fixture, ...],
) -> None:
    path = allowlist.of(project)
    other = (allowlist_groups if allowlist is PROJECTS else allowlist_projects)[0]
    with (
        verifies(f"job-token-scope.{allowlist.name}.add.needs-its-own-parameter"),
        unchanged(
            lambda: (listed_ids(maintainer, PROJECTS, project), listed_ids(maintainer, GROUPS, project)), "both lists"
        ),
    ):
        refused = maintainer.post(path, {allowlist.other_parameter: other.id})
        control = maintainer.post(path, {allowlist.parameter: targets[0].id})
        maintainer.delete(path / targets[0].id).given_served()
        refused.must_be_refused(beside=control)


@both_lists
def test_a_target_that_does_not_exist_cannot_be_added(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path = allowlist.of(project)
    control = maintainer.post(path, {allowlist.parameter: targets[0].id})
    with (
        verifies(f"job-token-scope.{allowlist.name}.add.unknown-target"),
        unchanged(lambda: maintainer.list(path).ids(), "the list"),
    ):
        maintainer.post(path, {allowlist.parameter: UNUSED_ID}).must_be_refused(beside=control)


@pytest.mark.usefixtures("clean_lists")
def test_no_operation_reads_or_changes_a_project_that_does_not_exist(
    maintainer: Caller,
    allowlist_projects: tuple[Fixture, ...],
    allowlist_groups: tuple[Fixture, ...],
    switch: Path,
) -> None:
    """Removals are left out: what is to be removed there is gone either way."""
    calls = (
        ("GET", "", None),
        ("PATCH", "", {"enabled": True}),
        ("GET", "/allowlist?per_page=1", None),
        ("POST", "/allowlist", {"target_project_id": allowlist_projects[0].id}),
        ("GET", "/groups_allowlist?per_page=1", None),
        ("POST", "/groups_allowlist", {"target_group_id": allowlist_groups[0].id}),
    )
    with verifies("job-token-scope.unknown-project"):
        for method, below, body in calls:
            sent = {} if body is None else {"json": body}
            control = maintainer.call(method, f"{switch}{below}", **sent)
            unknown = maintainer.call(method, f"/projects/{UNUSED_ID}/job_token_scope{below}", **sent)
            unknown.must_be_refused(beside=control)


def test_the_operations_are_there(maintainer: Caller, project: Fixture) -> None:
    with verifies("job-token-scope.available"):
        maintainer.get(scope(project)).must_be(200)
        for allowlist in (PROJECTS, GROUPS):
            maintainer.get(allowlist.of(project), per_page=1).must_be(200)
