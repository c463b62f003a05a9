"""Job token scope: the same stories for both allowlists: what is added, what is removed, what is refused."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.job_token_scope import (
    GROUPS,
    PROJECTS,
    Allowlist,
    limit_of,
    limit_on,
    listed_if_readable,
    scope_path,
)
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import administrators, caller_named, is_known
from conformance.suite.expectations import (
    Caller,
    given,
    left_to_others,
    named_otherwise,
    observe,
    unchanged,
    verifies,
)
from conformance.suite.load import ROUNDS, at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture


def of_both_lists(**ids: tuple[str, str]) -> pytest.MarkDecorator:
    """Run a story for each list, with the list's own ids of requirements: first that of projects."""
    stories = list(zip((PROJECTS, GROUPS), *ids.values(), strict=True))
    return pytest.mark.parametrize(("allowlist", *ids), stories, ids=["allowlist", "groups-allowlist"])


@pytest.fixture
def targets(
    allowlist: Allowlist,
    maintainer: Caller,
    project: Fixture,
    request: pytest.FixtureRequest,
) -> Iterator[tuple[Fixture, ...]]:
    """What may be added to a list, none of which is on it; the limit is on; everything is restored afterwards."""
    found: tuple[Fixture, ...] = request.getfixturevalue(f"{allowlist.fixture}s")
    with allowlist.borrowed(maintainer, project, found):
        yield found


@of_both_lists(
    created=("job-token-scope.allowlist.add.created", "job-token-scope.groups-allowlist.add.created"),
    present=("job-token-scope.allowlist.add.present", "job-token-scope.groups-allowlist.add.present"),
)
def test_an_added_target_is_listed(
    allowlist: Allowlist,
    created: str,
    present: str,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path, target = allowlist.of(project), targets[0]
    added = maintainer.post(path, allowlist.body(target.id))
    with verifies(created, go_on=True):
        added.must_be(201)
    with verifies(present):
        added.given_served()
        listed = maintainer.list(path).must_contain_once(id=target.id)
        near = [
            one
            for name in allowlist.near
            for one in current_run().profile.fixtures.get(name, ())
            if not listed.having(id=one.id)
        ]
        with allowlist.left_as_found(maintainer, project, near):
            # Whether a target so near may be added is open; if it is served, that is recorded.
            for one in near:
                if maintainer.post(path, allowlist.body(one.id)).is_served:
                    try:
                        maintainer.list(path).must_contain_once(id=one.id)
                    finally:
                        maintainer.delete(path / one.id)


@of_both_lists(
    no_content=("job-token-scope.allowlist.remove.no-content", "job-token-scope.groups-allowlist.remove.no-content"),
    gone=("job-token-scope.allowlist.remove.gone", "job-token-scope.groups-allowlist.remove.gone"),
)
def test_a_removed_target_is_gone(
    allowlist: Allowlist,
    no_content: str,
    gone: str,
    maintainer: Caller,
    project: Fixture,
    request: pytest.FixtureRequest,
) -> None:
    """A target that keeps its access after removal is a security hole, whatever the status code said.

    An entry that an earlier removal left on the list is as good as a new one: the list is not cleared first.
    """
    path = allowlist.of(project)
    first, second = request.getfixturevalue(f"{allowlist.fixture}s")[:2]
    with limit_on(maintainer, project), allowlist.left_as_found(maintainer, project, (first, second)):
        allowlist.given_listed(maintainer, project, first.id)
        listed = maintainer.list(path)
        removed = maintainer.delete(path / first.id)
        with verifies(no_content, go_on=True):
            removed.must_be(204).without_body()
        with verifies(gone):
            removed.given_served()
            maintainer.list(path).must_not_contain(id=first.id, after=listed)
            allowlist.given_listed(maintainer, project, second.id)
            both = maintainer.list(path).must_not_contain(id=first.id, after=listed)
            maintainer.delete(path / second.id).given_served()
            left = maintainer.list(path).must_not_contain(id=second.id, after=both)
            left.must_not_contain(id=first.id, after=listed)


@of_both_lists(
    names_both=(
        "job-token-scope.allowlist.add.result-names-both",
        "job-token-scope.groups-allowlist.add.result-names-both",
    ),
)
def test_the_answer_to_an_addition_names_source_and_target(
    allowlist: Allowlist,
    names_both: str,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    """The source is a number even when the call names the project by its path; by the owner, if the profile has one."""
    path, other = allowlist.of(project), caller_named("owner") if is_known("owner") else maintainer
    ways = ((maintainer, path), (other, named_otherwise(path, project, other)))
    with verifies(names_both):
        for (caller, way), target in zip(ways, targets, strict=False):
            added = caller.post(way, allowlist.body(target.id)).given_served()
            added.must_hold(source_project_id=project.id, **{allowlist.parameter: target.id})


@of_both_lists(
    repeated=("job-token-scope.allowlist.add.repeated", "job-token-scope.groups-allowlist.add.repeated"),
    answer=("job-token-scope.allowlist.add.repeated-answer", "job-token-scope.groups-allowlist.add.repeated-answer"),
)
def test_adding_a_listed_target_again_leaves_it_listed_once(
    allowlist: Allowlist,
    repeated: str,
    answer: str,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path, target = allowlist.of(project), targets[0]
    maintainer.post(path, allowlist.body(target.id)).given_served()
    with verifies(repeated):
        again = maintainer.post(path, allowlist.body(target.id)).must_not_break()
        maintainer.list(path).must_contain_once(id=target.id)
    observe(answer, f"adding a listed target again answers {again.status}")


@of_both_lists(
    absent=("job-token-scope.allowlist.remove.absent", "job-token-scope.groups-allowlist.remove.absent"),
    answer=("job-token-scope.allowlist.remove.absent-answer", "job-token-scope.groups-allowlist.remove.absent-answer"),
    below=(
        "job-token-scope.authorization.changing-allowlist-below-maintainer",
        "job-token-scope.authorization.changing-groups-allowlist-below-maintainer",
    ),
)
def test_removing_an_absent_target_leaves_the_others(
    allowlist: Allowlist,
    absent: str,
    answer: str,
    below: str,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path = allowlist.of(project)
    maintainer.post(path, allowlist.body(targets[0].id)).given_served()
    given(bool(maintainer.list(path).having(id=targets[0].id)), "the list holds nothing that could be lost")
    left_to_others(below)  # unless the profile has somebody with a lower role
    for caller in [caller_named(name) for name in ("developer",) if is_known(name)]:
        # Not even the entry is lost that is there already.
        with verifies(below, go_on=True), unchanged(partial(allowlist.ids, maintainer, project), "the list"):
            refused = caller.post(path, allowlist.body(targets[1].id))
            given(refused.exchange.is_refusal, f"{caller.name} is served")
        allowlist.given_removed(maintainer, project, targets[1].id)
    with verifies(absent), unchanged(partial(allowlist.ids, maintainer, project), "the list"):
        removed = maintainer.delete(path / targets[1].id).must_not_break()
        # Read with 32 bits, or as a number although it is none, these may mean a listed target. How the second is
        # answered is judged where invalid input is.
        for other in (targets[0].id + 2**32, "conformance-none"):
            maintainer.delete(path / other)
    observe(answer, f"removing a target that is not listed answers {removed.status}")


@of_both_lists(
    leaves_others=(
        "job-token-scope.allowlist.change.leaves-others",
        "job-token-scope.groups-allowlist.change.leaves-others",
    ),
)
def test_adding_or_removing_one_target_leaves_every_other_entry(
    allowlist: Allowlist,
    leaves_others: str,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path = allowlist.of(project)
    first, second, third = (target.id for target in targets[:3])
    # An entry that came back by itself after an earlier test, or after this one, must not hide that.
    allowlist.given_removed(maintainer, project, first, second, third)
    untouched = allowlist.ids(maintainer, project)
    with verifies(leaves_others):
        added: set[int] = set()
        for target in (first, second, third):
            maintainer.post(path, allowlist.body(target)).given_served()
            added.add(target)
            maintainer.list(path).must_be_of({*untouched, *added})
        maintainer.delete(path / first).given_served()
        maintainer.list(path).must_be_of({*untouched, second, third})
        maintainer.post(path, allowlist.body(first)).must_be_served()
        maintainer.list(path).must_be_of({*untouched, first, second, third})
        # The third one is not the oldest entry.
        maintainer.delete(named_otherwise(path, project, maintainer) / third).given_served()
        maintainer.list(path).must_be_of({*untouched, first, second})
        maintainer.delete(path / second).given_served()
        maintainer.post(path, allowlist.body(third)).must_be_served()
        maintainer.list(path).must_be_of({*untouched, first, third})
        # Once more the oldest of three.
        maintainer.post(path, allowlist.body(second)).given_served()
        maintainer.delete(path / first).given_served()
        maintainer.list(path).must_be_of({*untouched, second, third})


@of_both_lists(
    shows_to_everybody=(
        "job-token-scope.allowlist.change.shows-to-everybody",
        "job-token-scope.groups-allowlist.change.shows-to-everybody",
    ),
)
def test_a_second_reader_sees_what_was_added_and_removed(
    allowlist: Allowlist,
    shows_to_everybody: str,
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    """A caller who has read the list before, by number or path of the project, must not get a cached one.

    An administrator may be served or refused.
    """
    path, target = allowlist.of(project), targets[0]
    named = named_otherwise(path, project, owner)
    admins = [caller for caller in administrators() if caller.get(path, per_page=1).is_served]
    for place in (path, named):
        given(not owner.list(place).having(id=target.id), "the target is listed before it was added")
    maintainer.post(path, allowlist.body(target.id)).given_served()
    maintainer.list(path).the(id=target.id)
    with verifies(shows_to_everybody):
        for reader, place in ((owner, path), (owner, named), *((admin, path) for admin in admins)):
            listed = reader.list(place).must_contain_once(id=target.id)
        maintainer.delete(path / target.id).given_served()
        maintainer.list(path).given_without(id=target.id)
        for place in (path, named):
            owner.list(place).must_not_contain(id=target.id, after=listed)


@pytest.mark.requirements("conventions.project-id.encoded-subgroup-path")
@of_both_lists(
    present=("job-token-scope.allowlist.add.present", "job-token-scope.groups-allowlist.add.present"),
    gone=("job-token-scope.allowlist.remove.gone", "job-token-scope.groups-allowlist.remove.gone"),
)
def test_what_is_done_by_a_long_path_shows_by_the_number(
    allowlist: Allowlist, present: str, gone: str, maintainer: Caller, request: pytest.FixtureRequest
) -> None:
    """A path of several groups may be cut when something is written, and still be read."""
    left_to_others()  # unless a project lies so deep, and its limit is on
    project = project_in_several_groups(maintainer)
    if project is None:
        return
    path, target = allowlist.of(project), request.getfixturevalue(f"{allowlist.fixture}s")[0]
    named = named_otherwise(path, project, maintainer)
    if named == path or maintainer.list(path).having(id=target.id):
        return
    added = maintainer.post(named, allowlist.body(target.id))
    if added.is_served:
        is_gone = False
        try:
            with verifies(present):
                listed = maintainer.list(path).must_contain_once(id=target.id)
            removed = maintainer.delete(named / target.id)
            if removed.is_served:
                with verifies(gone):
                    is_gone = bool(maintainer.list(path).must_not_contain(id=target.id, after=listed))
        finally:
            if not is_gone:
                maintainer.delete(path / target.id)


def project_in_several_groups(caller: Caller) -> Fixture | None:
    """Return the project in a subgroup if its limit is on; None if it is off, cannot be read, or there is none."""
    project = current_run().profile.first("subgroup_project")
    with suppress(Unmet):
        if project is not None and limit_of(caller, project):
            return project
    return None


@of_both_lists(
    side_by_side=("job-token-scope.allowlist.add.side-by-side", "job-token-scope.groups-allowlist.add.side-by-side"),
)
def test_two_who_add_at_the_same_time_both_have_added(
    allowlist: Allowlist,
    side_by_side: str,
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    """Both are told that their target was added; a caller who was refused meanwhile shows nothing."""
    path, (first, second) = allowlist.of(project), targets[:2]
    with verifies(side_by_side):
        for _ in range(ROUNDS):
            answers = at_once(
                partial(maintainer.post, path, allowlist.body(first.id)),
                partial(owner.post, path, allowlist.body(second.id)),
            )
            for target, added in zip((first, second), answers, strict=True):
                added.given_served().must_hold(**{allowlist.parameter: target.id})
            listed = maintainer.list(path).must_contain_once(id=first.id).must_contain_once(id=second.id)
            switch = partial(maintainer.patch, scope_path(project), {"enabled": True})  # unchanged
            for other in (partial(maintainer.delete, path / first.id), switch):
                allowlist.given_removed(maintainer, project, second.id)
                for done in at_once(other, partial(owner.post, path, allowlist.body(second.id))):
                    done.given_served()
                maintainer.list(path).must_contain_once(id=second.id).must_not_contain(id=first.id, after=listed)
            allowlist.given_removed(maintainer, project, second.id)
        same = at_once(*(partial(caller.post, path, allowlist.body(first.id)) for caller in (maintainer, owner)))
        given(any(added.is_served for added in same), "neither of two who add the same at once is served")
        maintainer.list(path).must_contain_once(id=first.id)
        allowlist.given_removed(maintainer, project, first.id)


def test_two_who_add_to_both_lists_at_the_same_time_both_have_added(
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
    allowlist_groups: tuple[Fixture, ...],
) -> None:
    """If both lists are one record, the last writer undoes what was added to the other list."""
    targets = {PROJECTS: allowlist_projects[:1], GROUPS: allowlist_groups[:1]}
    with (
        PROJECTS.borrowed(maintainer, project, targets[PROJECTS]),
        GROUPS.borrowed(maintainer, project, targets[GROUPS]),
        verifies("job-token-scope.allowlists.are-separate"),
    ):
        posts = [
            partial(by.post, one.of(project), one.body(targets[one][0].id))
            for by, one in ((maintainer, PROJECTS), (owner, GROUPS))
        ]
        for added in at_once(*posts):
            added.given_served()
        listed = {}
        for one, (target,) in targets.items():
            listed[one] = maintainer.list(one.of(project)).must_contain_once(id=target.id)
        removals = [
            partial(by.delete, one.of(project) / targets[one][0].id)
            for by, one in ((maintainer, PROJECTS), (owner, GROUPS))
        ]
        for removed in at_once(*removals):
            removed.given_served()
        for one, (target,) in targets.items():
            maintainer.list(one.of(project)).must_not_contain(id=target.id, after=listed[one])


@of_both_lists(
    needs_its_own=(
        "job-token-scope.allowlist.add.needs-its-own-parameter",
        "job-token-scope.groups-allowlist.add.needs-its-own-parameter",
    ),
)
def test_the_parameter_of_the_other_list_is_not_taken(
    allowlist: Allowlist,
    needs_its_own: str,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
    request: pytest.FixtureRequest,
) -> None:
    path, other = allowlist.of(project), GROUPS if allowlist is PROJECTS else PROJECTS
    foreign: Fixture = request.getfixturevalue(f"{other.fixture}s")[0]

    def both_lists() -> tuple[set[int], set[int] | None]:
        return allowlist.ids(maintainer, project), listed_if_readable(maintainer, other, project)

    with verifies(needs_its_own), unchanged(both_lists, "both lists"):
        refused = maintainer.post(path, other.body(foreign.id))
        control = maintainer.post(path, allowlist.body(targets[0].id))
        maintainer.delete(path / targets[0].id).given_served()
        refused.must_be_refused(beside=control)


@of_both_lists(
    unknown_target=(
        "job-token-scope.allowlist.add.unknown-target",
        "job-token-scope.groups-allowlist.add.unknown-target",
    ),
)
def test_a_target_that_does_not_exist_cannot_be_added(
    allowlist: Allowlist,
    unknown_target: str,
    maintainer: Caller,
    project: Fixture,
    targets: tuple[Fixture, ...],
) -> None:
    path = allowlist.of(project)
    control = maintainer.post(path, allowlist.body(targets[0].id))
    with verifies(unknown_target), unchanged(partial(allowlist.ids, maintainer, project), "the list"):
        maintainer.post(path, allowlist.body(UNUSED_ID)).must_be_refused(beside=control)
