"""Conventions that no single operation shows: a subgroup, and a project in it, whose paths have more slashes."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_settings import COMMITTER, of_project
from conformance.suite.arrange.exports import export_of
from conformance.suite.arrange.integrations import (
    borrowed,
    given_disabled,
    given_set_up,
    integrations_path,
    older_path,
    set_up,
    slug_of,
)
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import reads_inside, reads_of_a_project
from conformance.suite.expectations import (
    Path,
    eventually,
    given,
    given_done,
    left_to_others,
    must,
    project_path,
    verifies,
)
from conformance.suite.steady import shows_the_same

if TYPE_CHECKING:
    from conformance.suite import Fixture
    from conformance.suite.expectations import Caller, Listing


@pytest.mark.calls_area("group-relations-export")
def test_a_subgroup_is_found_by_its_full_path(owner: Caller, subgroup: Fixture) -> None:
    """A slash written as %2F belongs to the name of the group, not to the path of the request."""
    export = export_of(owner, subgroup, "")
    export.accepted().given_served()
    eventually(lambda: bool(export.entries()), "an entry in the status of the subgroup's export")
    wanted = relations(export.entries())
    with verifies("conventions.group-id.encoded-subgroup-path"):
        by_path = owner.get(Path(f"/groups/{subgroup.encoded_path}/export_relations/status")).must_be(200)
        found = relations(by_path.json)
        must(wanted <= found, f"the relations {sorted(wanted)}", f"the relations {sorted(found)}", by_path.exchange)
        last = Path(f"/groups/{subgroup.encoded_path.rpartition('%2F')[2]}/export_relations/status")
        by_last = owner.get(last).must_not_break()
        # A group with that name may exist outside, but it was not exported at the same time.
        same = by_last.is_served and bool(moments(by_last.json) & moments(by_path.json))
        must(not same, "no group by the last part of its path alone", "the status of the subgroup", by_last.exchange)


@pytest.mark.calls_a_project
def test_a_project_in_a_subgroup_is_found_by_its_full_path(maintainer: Caller, subgroup_project: Fixture) -> None:
    """Everything that can be read by its number can be read by its path."""
    number = project_path(subgroup_project)

    def shown(reads: list[str]) -> list[str]:
        return [below for below in reads if maintainer.get(Path(f"{number}{below}")).shows_json]

    found = shown(reads_of_a_project()) or shown(reads_inside(subgroup_project))
    given(bool(found), "nothing of the project can be read by its number")
    for below in found:
        with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
            by_path = maintainer.get(Path(f"/projects/{subgroup_project.encoded_path}{below}")).must_be_served()
            read = partial(maintainer.get, Path(f"{number}{below}"))
            must(shows_the_same(by_path, read(), read), "what its number shows", "another thing", by_path.exchange)
    last = subgroup_project.encoded_path.rpartition("%2F")[2]
    if not last[:1].isalpha():
        return  # the path may be read as the number of another project
    with verifies("conventions.project-id.encoded-subgroup-path"):
        by_last = maintainer.get(Path(f"/projects/{last}{found[0]}")).must_not_break()
        must(not by_last.is_served, "no project by the last part of its path alone", "served", by_last.exchange)


@pytest.mark.calls_a_project
def test_a_project_that_lies_in_no_group_is_found_like_any_other(maintainer: Caller, project: Fixture) -> None:
    """A feature licensed for groups may be refused for a user's project; what is served is also found by its path.

    A read that breaks for every project says nothing about this one.
    """
    left_to_others()  # unless the profile names such a project
    for personal in current_run().profile.fixtures.get("personal_project", ())[:1]:
        by_number, by_path = project_path(personal), f"/projects/{personal.encoded_path}"
        for below in reads_of_a_project():
            answer = maintainer.get(Path(f"{by_number}{below}"))
            if answer.is_served or maintainer.get(Path(f"{project_path(project)}{below}")).is_served:
                with verifies("conventions.project-id.number", go_on=True):
                    answer.must_not_break()
            if answer.is_served:
                with verifies("conventions.project-id.encoded-path", go_on=True):
                    maintainer.get(Path(f"{by_path}{below}")).must_be_served()
        # Setting a value that is set already shows whose role counts, and changes nothing.
        with suppress(Unmet):
            settings = of_project(maintainer, personal)
            kept = {COMMITTER: settings.values()[COMMITTER]}
            if settings.is_free(COMMITTER) and settings.change(**{COMMITTER: not kept[COMMITTER]}).is_served:
                with suppress(Unmet), given_done("approval-settings.project.update.allow-committer-approval"):
                    settings.must_show(COMMITTER, value=not kept[COMMITTER])
            if settings.change(**kept).is_served:
                with verifies("conventions.project-id.encoded-path"):
                    maintainer.put(Path(settings.path.replace(by_number, by_path)), kept).must_be_served()


@pytest.mark.calls_area("integrations")
def test_what_is_set_up_by_the_full_path_is_set_up_in_that_project(
    maintainer: Caller,
    subgroup_project: Fixture,
    integration: Fixture,
) -> None:
    path = integrations_path(maintainer, subgroup_project)
    by_path = Path(path.replace(project_path(subgroup_project), f"/projects/{subgroup_project.encoded_path}"))
    with borrowed(maintainer, path, integration):
        given_set_up(maintainer, path, integration)
        given_disabled(maintainer, path, integration)
        with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
            set_up(maintainer, by_path, integration).must_be_served()
            maintainer.whole_list(path).must_contain(slug=slug_of(integration))
        listed = maintainer.whole_list(path)
        must_be_gone_if_disabled_by(by_path, maintainer, path, integration, listed)
        older = older_path(maintainer, subgroup_project)
        if older is None:
            return
        by_older = Path(older.replace(project_path(subgroup_project), f"/projects/{subgroup_project.encoded_path}"))
        answer = maintainer.follow(set_up(maintainer, by_older, integration))
        if answer.is_served or maintainer.follow(set_up(maintainer, older, integration)).is_served:
            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
                answer.must_be_served()
                maintainer.whole_list(path).must_contain(slug=slug_of(integration))
        must_be_gone_if_disabled_by(by_older, maintainer, path, integration, listed)


def must_be_gone_if_disabled_by(way: Path, caller: Caller, path: Path, integration: Fixture, listed: Listing) -> None:
    """Expect that the call by the path disables an integration by its number as well, if anybody can disable it."""
    answer = caller.follow(caller.delete(way / slug_of(integration)))
    # What is refused by the path, and then served by the number, was refused for the path.
    if answer.is_served or caller.follow(caller.delete(path / slug_of(integration))).is_served:
        with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
            answer.must_be_served()
            caller.whole_list(path).must_not_contain(slug=slug_of(integration), after=listed)


def moments(status: object) -> set[tuple[str, str]]:
    """Return when each relation was last exported."""
    entries = status if isinstance(status, list) else []
    found = [entry for entry in entries if isinstance(entry, dict) and entry.get("updated_at")]
    return {(str(entry.get("relation")), str(entry["updated_at"])) for entry in found}


def relations(status: object) -> set[str]:
    """Return what is exported; progress may differ a moment later, and more relations may follow."""
    entries = status if isinstance(status, list) else []
    return {str(entry.get("relation")) for entry in entries if isinstance(entry, dict)}
