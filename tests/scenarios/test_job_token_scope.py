"""Job token scope: the limit on inbound access, and which projects a change affects."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from conformance.suite import Version
from conformance.suite.arrange import ABSENT, UNUSED_ID
from conformance.suite.arrange.job_token_scope import (
    GROUPS,
    PROJECTS,
    limit_kept,
    limit_of,
    limit_on,
    scope_path,
    settings_of,
)
from conformance.suite.arrange.places import projects_side_by_side
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Caller,
    Path,
    given,
    left_to_others,
    must,
    named_otherwise,
    unchanged,
    verifies,
)
from conformance.suite.load import ROUNDS, at_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.suite import Fixture
    from conformance.suite.arrange.job_token_scope import Allowlist

#: Fields that may depend on which other projects allow access.
DERIVED = "outbound_enabled"


@pytest.fixture
def listed_projects(
    maintainer: Caller,
    project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
) -> Iterator[tuple[Fixture, ...]]:
    """The projects that may be allowed, none of which is; restored after the story."""
    with PROJECTS.borrowed(maintainer, project, allowlist_projects):
        yield allowlist_projects


@pytest.fixture
def listed_groups(
    maintainer: Caller,
    project: Fixture,
    allowlist_groups: tuple[Fixture, ...],
) -> Iterator[tuple[Fixture, ...]]:
    """The groups that may be allowed, none of which is; restored after the story."""
    with GROUPS.borrowed(maintainer, project, allowlist_groups):
        yield allowlist_groups


@pytest.fixture
def switch(maintainer: Caller, project: Fixture) -> Iterator[Path]:
    """The settings, restored after a story."""
    with limit_kept(maintainer, project):
        yield scope_path(project)


# -- the limit ---------------------------------------------------------------------------------------------------------


def test_switching_the_limit_on_and_off_shows_in_the_settings(maintainer: Caller, switch: Path) -> None:
    """Start from off if that is possible: a limit that is always on shows nothing about switching it on.

    First by a maintainer, and then by an owner, if the profile names one.
    """
    other = caller_named("owner") if is_known("owner") else maintainer
    with verifies("job-token-scope.switch.off", go_on=True):
        off_must_be_shown_or_refused(maintainer, switch)
    with verifies("job-token-scope.switch.on", go_on=True):
        maintainer.patch(switch, {"enabled": True}).must_be_served()
        maintainer.get(switch).must_hold(inbound_enabled=True)
    with verifies("job-token-scope.switch.off"):
        off_must_be_shown_or_refused(other, switch)
    with verifies("job-token-scope.switch.on"):
        other.patch(switch, {"enabled": True}).must_be_served()
        maintainer.get(switch).must_hold(inbound_enabled=True)


def test_the_limit_is_switched_off_while_somebody_is_let_in(maintainer: Caller, project: Fixture, switch: Path) -> None:
    """An entry on a list must not keep the limit on. Only lists with a fixture in the profile are tested."""
    left_to_others("job-token-scope.switch.off")
    with ExitStack() as lists, suppress(Unmet):
        for allowlist in (PROJECTS, GROUPS):
            targets = current_run().profile.fixtures.get(allowlist.fixture, ())[:1]
            lists.enter_context(allowlist.borrowed(maintainer, project, targets))
            allowlist.given_added(maintainer, project, *(target.id for target in targets))
        with verifies("job-token-scope.switch.off"):
            off_must_be_shown_or_refused(maintainer, switch)


def test_a_limit_that_is_off_gives_nobody_a_role(
    maintainer: Caller, developer: Caller, project: Fixture, switch: Path
) -> None:
    """Off, the tokens of jobs come in from everywhere; who may read and switch the scope is another matter."""
    left_to_others()  # while the limit is on, or cannot be switched off, other tests ask
    off = {"enabled": False}
    if not maintainer.patch(switch, off).is_served or limit_of(maintainer, project):
        return
    for path in (switch, PROJECTS.of(project), GROUPS.of(project)):
        control = maintainer.get(path)
        if control.is_served:
            with verifies("job-token-scope.authorization.reading-below-maintainer", go_on=True):
                developer.get(path).must_be_refused(beside=control)
    again = maintainer.patch(switch, off)
    if again.is_served:
        with verifies("job-token-scope.authorization.switching-below-maintainer"):
            developer.patch(switch, off).must_be_refused(beside=again)


def test_whoever_may_not_switch_the_limit_off_leaves_it_on(
    maintainer: Caller, developer: Caller, project: Fixture, switch: Path
) -> None:
    """Elsewhere a developer is refused who would switch it on. Whether anybody may switch it off is open from 18.0."""
    on = maintainer.patch(switch, {"enabled": True}).given_served()
    limit = partial(limit_of, maintainer, project)
    given(limit(), "the limit cannot be switched on")
    with verifies("job-token-scope.authorization.switching-below-maintainer"), unchanged(limit, "the limit"):
        developer.patch(switch, {"enabled": False}).must_be_refused(beside=on)


def off_must_be_shown_or_refused(caller: Caller, path: Path) -> None:
    """Expect that the limit is off after it was switched off, or still on if an installation may enforce it."""
    off = caller.patch(path, {"enabled": False})
    if off.exchange.is_refusal and may_enforce(caller):
        caller.get(path).must_hold(inbound_enabled=True)
    else:
        off.must_be_served()
        caller.get(path).must_hold(inbound_enabled=False)


def may_enforce(caller: Caller) -> bool:
    """From 18.0 on, an installation may forbid switching the limit off; an unknown version may be such a one."""
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


def test_a_second_reader_sees_that_the_limit_was_switched(
    maintainer: Caller, owner: Caller, project: Fixture, switch: Path
) -> None:
    """A caller who has read the settings before, by the number or by the path, must not get cached ones."""
    bots = [caller_named("project_bot")] if "project_bot" in current_run().profile.actors else []
    readers = [owner, *(bot for bot in bots if bot.get(switch).is_served)]
    by_its_path = named_otherwise(switch, project, owner)
    for enabled in (False, True):
        owner.get(switch).given_served()
        if not maintainer.patch(switch, {"enabled": enabled}).is_served:
            continue
        with verifies("job-token-scope.switch.shows-to-everybody"):
            shown = maintainer.read(switch)
            given(isinstance(shown, dict) and shown.get("inbound_enabled") is enabled, "it was not switched")
            for reader in readers:
                reader.get(switch).must_hold(inbound_enabled=enabled)
            told = owner.get(by_its_path)
            if told.is_served:
                told.must_hold(inbound_enabled=enabled)


# -- the lists ---------------------------------------------------------------------------------------------------------


def test_a_change_of_one_list_leaves_the_other(
    maintainer: Caller,
    project: Fixture,
    listed_projects: tuple[Fixture, ...],
    listed_groups: tuple[Fixture, ...],
) -> None:
    """A project and a group of the same number, if the profile has two, are most likely to be mixed up."""
    targets = {PROJECTS: [one.id for one in listed_projects], GROUPS: [one.id for one in listed_groups]}
    twins = [number for number in targets[PROJECTS] if number in targets[GROUPS]]
    for changed, other in ((PROJECTS, GROUPS), (GROUPS, PROJECTS)):
        target, kept = (twins[0], twins[0]) if twins else (targets[changed][0], targets[other][1])
        changed.given_removed(maintainer, project, target)
        other.given_added(maintainer, project, kept)
        with (
            verifies("job-token-scope.allowlists.are-separate"),
            unchanged(partial(other.ids, maintainer, project), f"the {other.segment}"),
        ):
            maintainer.post(changed.of(project), changed.body(target)).given_served()
            if twins:  # the other list has this number as well
                maintainer.list(changed.of(project)).must_contain(id=target)
            maintainer.delete(changed.of(project) / target).given_served()
            # If one table holds both lists, the lookup may find a number that is only on the other one.
            if kept not in changed.ids(maintainer, project):
                maintainer.delete(changed.of(project) / kept).must_not_break()


def test_a_project_and_the_group_that_it_lies_in_are_let_in_each_by_itself(
    maintainer: Caller,
    project: Fixture,
    sibling_project: Fixture,
    sibling_group: Fixture,
) -> None:
    both = (PROJECTS, sibling_project), (GROUPS, sibling_group)
    with (
        PROJECTS.left_as_found(maintainer, project, (sibling_project,)),
        GROUPS.left_as_found(maintainer, project, (sibling_group,)),
    ):
        for (lists, goes), (others, stays) in (both, both[::-1]):
            added = [maintainer.post(kind.of(project), kind.body(one.id)) for kind, one in both]
            if any(answer.exchange.is_refusal for answer in added) and not are_listed(maintainer, project, both):
                left_to_others()  # a maintainer may not see the group
                return
            with verifies("job-token-scope.allowlists.are-separate", go_on=True):
                maintainer.delete(lists.of(project) / goes.id).given_served()
                maintainer.list(others.of(project)).must_contain(id=stays.id)


def are_listed(caller: Caller, project: Fixture, entries: Sequence[tuple[Allowlist, Fixture]]) -> bool:
    """Tell whether each of these is on its list, because adding an existing entry may be refused."""
    return all(one.id in lists.ids(caller, project) for lists, one in entries)


def test_a_change_in_one_project_leaves_the_other_projects(
    maintainer: Caller,
    project: Fixture,
    sibling_project: Fixture,
    switch: Path,
    listed_projects: tuple[Fixture, ...],
    listed_groups: tuple[Fixture, ...],
) -> None:
    """An entry that leaks into the neighbour, even an allowed one, gives access that nobody granted."""
    (leaked, shared_project), (added, shared_group) = listed_projects[:2], listed_groups[:2]
    limit = maintainer.read(switch)["inbound_enabled"]
    with (
        limit_on(maintainer, sibling_project),
        PROJECTS.left_as_found(maintainer, sibling_project, (shared_project, project, leaked)),
        PROJECTS.left_as_found(maintainer, project, (sibling_project,)),
        GROUPS.left_as_found(maintainer, sibling_project, (shared_group,)),
    ):
        both_add(maintainer, GROUPS, (project, added), (sibling_project, shared_group))
        GROUPS.given_removed(maintainer, project, added.id)
        for one in (sibling_project, project):
            PROJECTS.given_added(maintainer, one, shared_project.id)
            GROUPS.given_added(maintainer, one, shared_group.id)
        let_each_other_in_and_one_goes(maintainer, project, sibling_project)
        PROJECTS.given_removed(maintainer, sibling_project, project.id, leaked.id)  # for example, leaked there earlier
        PROJECTS.given_removed(maintainer, project, sibling_project.id)
        with (
            verifies("job-token-scope.allowlists.belong-to-their-project"),
            unchanged(partial(scope_of, maintainer, sibling_project), "the scope of the sibling project"),
        ):
            for target in (sibling_project.id, leaked.id):
                maintainer.post(PROJECTS.of(project), PROJECTS.body(target)).given_served()
            maintainer.post(GROUPS.of(project), GROUPS.body(added.id)).given_served()
            # Removed before the limit changes, because entries need not survive a limit that is switched off.
            for target in (leaked.id, shared_project.id):
                maintainer.delete(PROJECTS.of(project) / target).given_served()
            for target in (added.id, shared_group.id):
                maintainer.delete(GROUPS.of(project) / target).given_served()
            switched = maintainer.patch(switch, {"enabled": not limit})
        left_to_others("job-token-scope.switch.off")  # unless it was on until now
        if limit is True and switched.is_served:
            # An entry exists all the time, which must not keep the limit on.
            with verifies("job-token-scope.switch.off"):
                maintainer.get(switch).must_hold(inbound_enabled=False)


def test_a_group_inside_one_that_is_listed_can_be_let_in_as_well(maintainer: Caller, sibling_project: Fixture) -> None:
    """The outer group may leave the list later, and then the inner one alone is let in."""
    left_to_others("job-token-scope.groups-allowlist.add.present")  # unless each can be let in by itself
    outer, inner = (current_run().profile.first(name) for name in ("group", "subgroup"))
    if outer is None or inner is None:
        return
    path, both = GROUPS.of(sibling_project), (outer, inner)
    with limit_on(maintainer, sibling_project), GROUPS.left_as_found(maintainer, sibling_project, both):
        for one in (inner, outer):
            GROUPS.given_removed(maintainer, sibling_project, outer.id, inner.id)
            if not maintainer.post(path, GROUPS.body(one.id)).is_served:
                return
        with verifies("job-token-scope.groups-allowlist.add.present"):
            maintainer.post(path, GROUPS.body(inner.id)).must_be_served()
            maintainer.list(path).must_contain(id=inner.id)


def scope_of(caller: Caller, project: Fixture) -> dict[str, object]:
    """Return the settings of a project's scope, without those that follow from others, and what is on its lists."""
    found = settings_of(caller, project)
    settings = found if isinstance(found, dict) else {}
    return {
        "settings": {name: value for name, value in settings.items() if name != DERIVED},
        "projects": PROJECTS.ids(caller, project),
        "groups": GROUPS.ids(caller, project),
    }


def both_add(caller: Caller, lists: Allowlist, one: tuple[Fixture, Fixture], other: tuple[Fixture, Fixture]) -> bool:
    """Add a target to the list of each of two projects, and tell whether both were served.

    Expect both on their lists, by the numbers and by the paths of the projects, whatever was added to the other one.
    """
    (first, target), (second, another) = one, other
    is_served = caller.post(lists.of(first), lists.body(target.id)).is_served
    listed = caller.list(lists.of(first))
    if not is_served or not caller.post(lists.of(second), lists.body(another.id)).is_served:
        return False
    with verifies("job-token-scope.allowlists.belong-to-their-project", go_on=True):
        given(bool(listed.having(id=target.id)), "the list does not show what was added")
        caller.list(lists.of(first)).must_contain(id=target.id)
        given(bool(caller.list(lists.of(second)).having(id=another.id)), "the other list does not show what was added")
        for project, added in (one, other):
            caller.list(named_otherwise(lists.of(project), project, caller)).must_contain(id=added.id)
    return True


def let_each_other_in_and_one_goes(maintainer: Caller, one: Fixture, other: Fixture) -> None:
    """Expect that a project which removes another one stays on the other's list."""
    if both_add(maintainer, PROJECTS, (one, other), (other, one)):
        with verifies("job-token-scope.allowlists.belong-to-their-project"):
            maintainer.delete(PROJECTS.of(one) / other.id).given_served()
            maintainer.list(PROJECTS.of(other)).must_contain(id=one.id)
            with limit_kept(maintainer, one) as is_on:
                maintainer.patch(scope_path(one), {"enabled": not is_on})
                maintainer.list(PROJECTS.of(other)).must_contain(id=one.id)


def test_the_limit_that_is_switched_while_somebody_is_let_in_is_switched(
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    switch: Path,
    listed_projects: tuple[Fixture, ...],
) -> None:
    """Limit and lists may be one record, which a concurrent addition writes back with the old limit."""
    path, target = PROJECTS.of(project), listed_projects[0].id
    for _ in range(ROUNDS):
        is_off = maintainer.patch(switch, {"enabled": False}).is_served and not limit_of(maintainer, project)
        if not is_off:
            left_to_others()  # an installation may enforce the limit
            return
        switched, _ = at_once(
            partial(maintainer.patch, switch, {"enabled": True}),
            partial(owner.post, path, PROJECTS.body(target)),
        )
        with verifies("job-token-scope.switch.on"):
            switched.given_served()
            maintainer.get(switch).must_hold(inbound_enabled=True)
        maintainer.delete(path / target)


def test_a_limit_is_no_limit_of_the_project_beside_it(maintainer: Caller) -> None:
    """Data stored per namespace only shows in two projects of it."""
    one, other = next(projects_side_by_side(current_run().profile), (None, None))
    if one is None or other is None or not all(maintainer.get(scope_path(each)).is_served for each in (one, other)):
        left_to_others()
        return
    with limit_kept(maintainer, one) as limit:
        before = limit_of(maintainer, other)
        if not maintainer.patch(scope_path(one), {"enabled": not limit}).is_served:
            left_to_others()  # an installation may enforce the limit: a switch without effect shows nowhere
            return
        with verifies("job-token-scope.allowlists.belong-to-their-project"):
            maintainer.get(scope_path(other)).must_hold(inbound_enabled=before)
            # To both values, because the other project has one of them already, for example after an earlier try.
            for wanted in (limit, not limit):
                maintainer.patch(named_otherwise(scope_path(one), one, maintainer), {"enabled": wanted})
                maintainer.get(scope_path(other)).must_hold(inbound_enabled=before)


def test_who_is_on_the_list_of_a_project_or_leaves_it_is_so_there_alone(maintainer: Caller) -> None:
    """For lists that are stored by namespace, filled for it, or cleared for it as a whole."""
    left_to_others("job-token-scope.allowlists.belong-to-their-project")
    fixtures = current_run().profile.fixtures
    for pair in islice(projects_side_by_side(current_run().profile), 1):
        for allowlist in (PROJECTS, GROUPS):
            known = [one for one in fixtures.get(allowlist.fixture, ()) if one.id not in {each.id for each in pair}]
            targets, numbers = known[:2], {target.id for target in known[:2]}
            with ExitStack() as lists, suppress(Unmet):
                for one in pair:
                    lists.enter_context(allowlist.borrowed(maintainer, one, targets))
                allowlist.given_added(maintainer, pair[0], *numbers)
                with verifies("job-token-scope.allowlists.belong-to-their-project"):
                    both = numbers & allowlist.ids(maintainer, pair[1])
                    must(not both, f"{numbers} on the list of one project", f"{both} on that of the other as well")
                allowlist.given_added(maintainer, pair[1], *numbers)
                for number in numbers:
                    maintainer.delete(allowlist.of(pair[0]) / number).given_served()
                with verifies("job-token-scope.allowlists.belong-to-their-project"):
                    for number in numbers:
                        maintainer.list(allowlist.of(pair[1])).must_contain(id=number)


# -- what is refused --------------------------------------------------------------------------------------------------


def test_no_operation_reads_or_changes_a_project_that_does_not_exist(
    maintainer: Caller,
    switch: Path,
    listed_projects: tuple[Fixture, ...],
    listed_groups: tuple[Fixture, ...],
) -> None:
    """Removals are left out, because afterwards nothing is listed there anyway."""
    calls = (
        ("GET", "", ABSENT),
        ("PATCH", "", {"enabled": True}),
        ("GET", "/allowlist?per_page=1", ABSENT),
        ("POST", "/allowlist", PROJECTS.body(listed_projects[0].id)),
        ("GET", "/groups_allowlist?per_page=1", ABSENT),
        ("POST", "/groups_allowlist", GROUPS.body(listed_groups[0].id)),
    )
    with verifies("job-token-scope.unknown-project"):
        for method, below, body in calls:
            control = maintainer.call(method, f"{switch}{below}", json=body)
            unknown = maintainer.call(method, f"/projects/{UNUSED_ID}/job_token_scope{below}", json=body)
            unknown.must_be_refused(beside=control)


def test_the_operations_are_there(maintainer: Caller, project: Fixture) -> None:
    with verifies("job-token-scope.available"):
        maintainer.get(scope_path(project)).must_be(200)
        for allowlist in (PROJECTS, GROUPS):
            maintainer.get(allowlist.of(project), per_page=1).must_be(200)
