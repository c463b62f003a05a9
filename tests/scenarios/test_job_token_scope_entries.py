"""Job token scope: how the entries of the two allowlists describe their projects and groups."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.job_token_scope import GROUPS, PROJECTS, Allowlist, limit_on, scope_path
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Answer,
    Caller,
    as_json,
    given,
    given_field,
    left_to_others,
    must,
    unchanged,
    verifies,
)
from conformance.suite.moments import Moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.suite import Fixture

Entry = dict[str, Any]

HOST = re.compile(r"^\w+://[^/]*")


def added_entries(caller: Caller, allowlist: Allowlist, project: Fixture, targets: Sequence[Fixture]) -> list[Entry]:
    """Put targets on a list, and return their entries."""
    allowlist.given_added(caller, project, *(target.id for target in targets))
    listed = caller.list(allowlist.of(project))
    return [listed.the(id=target.id) for target in targets]


def test_the_entry_of_a_project_describes_it(
    maintainer: Caller,
    project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
) -> None:
    """Targets have a repository, so that their entries must name a default branch."""
    targets = allowlist_projects[:2]
    inside = current_run().profile.fixtures.get("subgroup_project", ())[:1]
    with PROJECTS.borrowed(maintainer, project, (*targets, *inside)):
        # Who may add the project at the deeper level is open.
        taken = [one for one in inside if maintainer.post(PROJECTS.of(project), PROJECTS.body(one.id)).is_served]
        entries = added_entries(maintainer, PROJECTS, project, targets)
        deeper = [entry for one in taken for entry in maintainer.list(PROJECTS.of(project)).having(id=one.id)]
    with verifies("job-token-scope.project-entry.describes-target", go_on=True):
        for entry, target in zip(entries, targets, strict=True):
            must_show(entry, "path_with_namespace", given_field(target, "path", str))
            must_show(entry, "path", given_field(target, "path", str).rpartition("/")[2])
            for name in ("name", "default_branch", "description"):
                if isinstance(target.get(name), str):
                    must_show(entry, name, target[name])
    with verifies("job-token-scope.project-entry.fields", go_on=True):
        branch = entries[0].get("default_branch")
        must(isinstance(branch, str) and bool(branch), "default_branch as text", repr(branch))
    # If the profile knows no surrounding group, or the service numbers namespaces and groups separately.
    left_to_others("job-token-scope.project-entry.namespace.parent-id")
    numbers = [
        (name, number, dict(entry["namespace"]).get(name))
        for entry in (*entries, *deeper)
        for name, number in places_of(entry).items()
    ]
    if any(found == number for _, number, found in numbers):
        for name, number, found in numbers:
            with verifies("job-token-scope.project-entry.namespace.parent-id", go_on=True):
                must(found == number, f"namespace.{name} = {as_json(number)}", f"namespace.{name} = {as_json(found)}")
    with verifies("job-token-scope.project-entry.is-of-one-project"):
        for entry in (*entries, *deeper):
            must_be_of_one_project(entry)
        # Two projects may have one name, in groups of one name as well; but their paths and addresses differ.
        same_name = entries[0].get("name") == entries[1].get("name")
        names = ("path_with_namespace", "web_url", "http_url_to_repo", "ssh_url_to_repo")
        for name in names if same_name else (*names, "name_with_namespace"):
            first, second = (entry.get(name) for entry in entries)
            must(
                not first or first != second,
                f"another {name} for each of two projects",
                f"{name} = {as_json(first)} of both",
            )


def must_be_of_one_project(entry: Entry) -> None:
    """Expect that paths and names of an entry are those of one project and its namespace."""
    namespace = entry.get("namespace")
    given(isinstance(namespace, dict), "the entry has no namespace to look at")
    full_path = f"{dict(namespace or {}).get('full_path')}/{entry.get('path')}"
    must_show(entry, "path_with_namespace", full_path)
    name, long_name = str(entry.get("name")), str(entry.get("name_with_namespace"))
    must(name in long_name, f"name_with_namespace with {as_json(name)} in it", as_json(long_name))


def places_of(entry: Entry) -> dict[str, int]:
    """Return the numbers that the profile gives for the namespace of an entry, and for the surrounding group."""
    groups = (
        one for name in ("group", "subgroup", "nested_subgroup") for one in current_run().profile.fixtures.get(name, ())
    )
    numbers = {one["path"]: one.id for one in groups if one.get("path")}
    path = str(dict(entry.get("namespace") or {}).get("full_path"))
    wanted = {"id": path, "parent_id": path.rpartition("/")[0]}
    return {name: numbers[place] for name, place in wanted.items() if place in numbers}


def must_show(entry: Entry, name: str, wanted: str) -> None:
    must(entry.get(name) == wanted, f"{name} = {as_json(wanted)}", f"{name} = {as_json(entry.get(name))}")


def test_a_project_is_described_alike_on_every_list(
    maintainer: Caller,
    project: Fixture,
    sibling_project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
) -> None:
    """Values that may change by themselves, such as stars and the last activity, are left out.

    If possible, one of them has no description, and is behind another one only on the first list.
    """
    targets = [allowlist_projects[0], *(one for one in allowlist_projects[1:] if not one.get("description"))][:2]
    with (
        PROJECTS.borrowed(maintainer, project, targets),
        limit_on(maintainer, sibling_project),
        PROJECTS.left_as_found(maintainer, sibling_project, targets),
    ):
        here = added_entries(maintainer, PROJECTS, project, targets)
        alone = [added_entries(maintainer, PROJECTS, sibling_project, [target])[0] for target in targets[::-1]]
    with verifies("job-token-scope.project-entry.same-everywhere"):
        for one, other in zip(here, alone[::-1], strict=True):
            for name in ("name", "name_with_namespace", "path", "path_with_namespace"):
                must_show(other, name, str(one.get(name)))
            # Another machine may write the same moment in its own zone, and its own name into addresses.
            for name, meant in (("created_at", Moment), ("web_url", without_host)):
                wanted, found = (str(entry.get(name)) for entry in (one, other))
                must(meant(wanted) == meant(found), f"{name} = {as_json(wanted)}", f"{name} = {as_json(found)}")
            # A project without a description has none on every list, whatever entry is before it.
            for name in ("description", "default_branch"):
                must(
                    one.get(name) == other.get(name),
                    f"{name} = {as_json(one.get(name))}",
                    f"{name} = {as_json(other.get(name))}",
                )
            numbers = [dict(entry.get("namespace") or {}).get("id") for entry in (one, other)]
            must(
                numbers[0] == numbers[1],
                f"namespace.id = {as_json(numbers[0])}",
                f"namespace.id = {as_json(numbers[1])}",
            )


def without_host(address: str) -> str:
    return HOST.sub("", address)


def test_the_entry_of_a_group_describes_it(
    maintainer: Caller,
    project: Fixture,
    allowlist_groups: tuple[Fixture, ...],
) -> None:
    targets = allowlist_groups[:2]
    with GROUPS.borrowed(maintainer, project, targets):
        entries = added_entries(maintainer, GROUPS, project, targets)
    with verifies("job-token-scope.group-entry.describes-target"):
        for entry, target in zip(entries, targets, strict=True):
            must_show_the_name(entry, given_field(target, "name", str), is_inside="/" in str(target.get("path")))
        first, second = (entry.get("web_url") for entry in entries)
        must(first != second, "another web_url for each of two groups", f"web_url = {as_json(first)} of both")


def must_show_the_name(entry: Entry, name: str, *, is_inside: bool) -> None:
    """Expect the name of a group; whether a group inside another one is also named after that one is open."""
    shown = entry.get("name")
    if is_inside:
        must(name in str(shown), f"a name with {as_json(name)} in it", f"name = {as_json(shown)}")
    else:
        must_show(entry, "name", name)


def test_a_group_inside_another_one_is_let_in_and_kept_by_itself(
    maintainer: Caller, sibling_project: Fixture, group: Fixture, project: Fixture
) -> None:
    """Who may add such a group is open; an addition adds this group and no other.

    The project is in neither, because its own group may always have access. A project inside the group is added too:
    the group must neither make that entry unnecessary, nor be added or removed with it.
    """
    fixtures = current_run().profile.fixtures
    inner = fixtures.get("subgroup", ())[:1]
    beside = [one for name in ("reporters_project", "empty_project") for one in fixtures.get(name, ())]
    path = GROUPS.of(sibling_project)
    with (
        GROUPS.borrowed(maintainer, sibling_project, (group, *inner)),
        PROJECTS.left_as_found(maintainer, sibling_project, (project, *beside)),
    ):
        inside = PROJECTS.of(sibling_project)
        PROJECTS.given_removed(maintainer, sibling_project, *(one.id for one in beside))
        is_inside = maintainer.post(inside, PROJECTS.body(project.id)).is_served
        taken = [one.id for one in inner if maintainer.post(path, GROUPS.body(one.id)).is_served]
        if not taken:
            left_to_others()
            return
        with verifies("job-token-scope.groups-allowlist.add.present"):
            listed = maintainer.list(path).must_contain_once(id=taken[0])
        entry, name = listed.the(id=taken[0]), inner[0].get("name")
        if isinstance(name, str):
            with verifies("job-token-scope.group-entry.describes-target", go_on=True):
                must_show_the_name(entry, name, is_inside=True)
        else:
            left_to_others("job-token-scope.group-entry.describes-target")
        before = PROJECTS.ids(maintainer, sibling_project)
        if not maintainer.post(path, GROUPS.body(group.id)).is_served:
            left_to_others()
            return
        both = maintainer.list(path)
        with verifies("job-token-scope.allowlists.are-separate", go_on=True):
            maintainer.list(inside).must_be_of(before)  # and no other project of the group
        with verifies("job-token-scope.groups-allowlist.change.leaves-others"):
            maintainer.delete(path / group.id).given_served()
            maintainer.list(path).must_not_contain(id=group.id, after=both).must_contain_once(id=taken[0])
            maintainer.post(path, GROUPS.body(group.id)).given_served()
            maintainer.delete(path / taken[0]).given_served()
            maintainer.list(path).must_not_contain(id=taken[0], after=both).must_contain_once(id=group.id)
            maintainer.post(path, GROUPS.body(taken[0])).given_served()
            maintainer.list(path).must_contain_once(id=taken[0]).must_contain_once(id=group.id)
        if is_inside:
            with verifies("job-token-scope.allowlists.are-separate"):
                maintainer.list(inside).must_contain_once(id=project.id)
                maintainer.delete(inside / project.id).given_served()
                maintainer.post(inside, PROJECTS.body(project.id)).given_served()
                maintainer.list(inside).must_contain_once(id=project.id)


# -- entries besides the usual ones ------------------------------------------------------------------------------------

#: Projects and groups that no other test adds, in which the maintainer has a role.
OTHER_PROJECTS = ("sibling_project", "fuzz_project", "public_project", "fresh_project", "allowlist_project")
OTHER_GROUPS = ("sibling_group", "fuzz_group", "fresh_group", "export_group", "allowlist_group")


def test_a_project_and_a_group_of_one_number_are_two_entries(maintainer: Caller, project: Fixture) -> None:
    """If one table holds both lists, removing one of them removes the other one as well."""
    twins = of_one_number()
    if twins is None:
        left_to_others()
        return
    (one, other), number = twins, twins[0].id
    with PROJECTS.borrowed(maintainer, project, (one,)), GROUPS.left_as_found(maintainer, project, (other,)):
        try:
            GROUPS.given_added(maintainer, project, number)
            GROUPS.given_removed(maintainer, project, number)
            PROJECTS.given_added(maintainer, project, number)
        except Unmet:  # who may add what to a list is open
            left_to_others()
            return
        with verifies("job-token-scope.allowlists.are-separate"):
            # It was accepted while the project of its number was on no list, so only that one can prevent it.
            maintainer.post(GROUPS.of(project), GROUPS.body(number)).must_be_served()
            with unchanged(lambda: GROUPS.ids(maintainer, project), "the list of groups"):
                maintainer.delete(PROJECTS.of(project) / number).given_served()
            # The same in the other direction: the project was accepted while no group of its number was on a list.
            maintainer.post(PROJECTS.of(project), PROJECTS.body(number)).must_be_served()
            with unchanged(lambda: PROJECTS.ids(maintainer, project), "the list of projects"):
                maintainer.delete(GROUPS.of(project) / number).given_served()


def of_one_number() -> tuple[Fixture, Fixture] | None:
    """Return a project and a group of the profile that have the same number; None where no two have."""
    fixtures = current_run().profile.fixtures
    groups = {one.id: one for name in OTHER_GROUPS for one in fixtures.get(name, ())}
    projects = (one for name in OTHER_PROJECTS for one in fixtures.get(name, ()))
    return next(((one, groups[one.id]) for one in projects if one.id in groups), None)


def test_a_role_in_what_is_let_in_is_none_in_the_project(
    maintainer: Caller, project: Fixture, sibling_project: Fixture
) -> None:
    """The bot of a token has its role in only one project; it may neither add that one to another nor remove it."""
    path = PROJECTS.of(sibling_project)
    bot = caller_named("project_bot") if is_known("project_bot") else None
    if bot is None or not bot.get(scope_path(sibling_project)).exchange.is_refusal:
        left_to_others()
        return
    with (
        verifies("job-token-scope.authorization.without-role"),
        PROJECTS.borrowed(maintainer, sibling_project, (project,)),
    ):
        # The right call first, for it may be refused while the project is on the list.
        control = maintainer.post(path, PROJECTS.body(project.id))
        PROJECTS.given_removed(maintainer, sibling_project, project.id)
        with unchanged(lambda: PROJECTS.ids(maintainer, sibling_project), "the list"):
            bot.post(path, PROJECTS.body(project.id)).must_be_refused(beside=control)
        PROJECTS.given_listed(maintainer, sibling_project, project.id)
        removed = bot.delete(path / project.id)
        maintainer.list(path).must_contain_once(id=project.id)
        removed.must_be_refused(beside=maintainer.delete(path / project.id))


# -- who adds and who removes ------------------------------------------------------------------------------------------


def test_an_entry_is_removed_by_another_one_than_who_added_it(
    maintainer: Caller, owner: Caller, project: Fixture
) -> None:
    """Only the role matters: an actor who has it may remove what another one added."""
    fixtures = current_run().profile.fixtures
    with limit_on(maintainer, project):
        projects = removed_crosswise(PROJECTS, project, maintainer, owner, fixtures.get("fresh_project", ())[:1])
        groups = removed_crosswise(GROUPS, project, maintainer, owner, fixtures.get("fresh_group", ())[:1])
    if projects:
        with verifies("job-token-scope.allowlist.remove.no-content", go_on=True):
            for answer in projects:
                answer.must_be(204)
    else:
        left_to_others("job-token-scope.allowlist.remove.no-content")
    if groups:
        with verifies("job-token-scope.groups-allowlist.remove.no-content"):
            for answer in groups:
                answer.must_be(204)
    else:
        left_to_others("job-token-scope.groups-allowlist.remove.no-content")


def removed_crosswise(
    allowlist: Allowlist, project: Fixture, one: Caller, other: Caller, targets: Sequence[Fixture]
) -> list[Answer]:
    """Let each of two callers remove what the other one added, and return the answers; None if it was listed before.

    A service may also require a role in the target: who adds it has that; callers without it are left out.
    """
    path, answers = allowlist.of(project), []
    for target in targets:
        pairs = () if target.id in allowlist.ids(one, project) else ((one, other), (other, one))
        removed = []
        for adding, removing in pairs:
            with suppress(Unmet):
                allowlist.given_listed(adding, project, target.id)
                removed.append(removing.delete(path / target.id))
                if not removed[-1].is_served:
                    adding.delete(path / target.id)
        answers += removed if len(removed) == len(pairs) else []
    return answers
