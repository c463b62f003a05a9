"""What is written by the path of a project that lies in several groups is what its number shows.

A service may cut such a path when something is written, and still read by the whole of it. Lists of job tokens are in
test_job_token_scope_lists.py, integrations in test_conventions.py.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_rules import project_rules_path
from conformance.suite.arrange.approval_settings import AUTHOR, COMMITTER, OVERRIDES, of_project
from conformance.suite.arrange.job_token_scope import limit_kept, limit_of, scope_path
from conformance.suite.arrange.reviews import fresh_name, naming, rule_in
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import Unmet
from conformance.suite.expectations import left_to_others, must_settle, named_otherwise, verifies

if TYPE_CHECKING:
    from conformance.suite import Fixture
    from conformance.suite.expectations import Caller


@pytest.mark.calls_area("project-approval-rules")
def test_a_rule_written_by_a_long_path_shows_by_the_number(maintainer: Caller, subgroup_project: Fixture) -> None:
    left_to_others()  # where that project has no rules that can be written
    rules = project_rules_path(subgroup_project)
    by_path = named_otherwise(rules, subgroup_project, maintainer)
    if by_path == rules:
        return
    with suppress(Unmet), rules_put_back(maintainer, rules):
        body = {"name": fresh_name(), "approvals_required": 2, **naming(maintainer)}
        made = maintainer.post(by_path, body)
        if not made.is_served:
            return
        with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
            maintainer.list(rules).must_contain_once(name=body["name"])
        number, changed = rule_in(made)["id"], {**body, "name": fresh_name(), "approvals_required": 3}
        if maintainer.put(by_path / number, changed).is_served:
            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
                maintainer.list(rules).must_contain_once(name=changed["name"], approvals_required=3)
        listed = maintainer.list(rules)
        if maintainer.delete(by_path / number).is_served:
            with verifies("conventions.project-id.encoded-subgroup-path"):
                maintainer.list(rules).must_not_contain(id=number, after=listed)


@pytest.mark.calls_area("job-token-scope")
def test_a_limit_switched_by_a_long_path_shows_by_the_number(maintainer: Caller, subgroup_project: Fixture) -> None:
    left_to_others()  # where the limit of that project cannot be switched
    scope = scope_path(subgroup_project)
    by_path = named_otherwise(scope, subgroup_project, maintainer)
    if by_path == scope:
        return
    with suppress(Unmet), limit_kept(maintainer, subgroup_project) as before:
        for wanted in (not before, before):
            if not maintainer.patch(by_path, {"enabled": wanted}).is_served:
                return
            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
                must_show_the_limit(maintainer, subgroup_project, on=wanted)


def must_show_the_limit(caller: Caller, project: Fixture, *, on: bool) -> None:
    expected = f"inbound_enabled = {on} in {scope_path(project)}"
    must_settle(lambda: limit_of(caller, project) is on, expected, lambda: f"inbound_enabled = {not on}")


@pytest.mark.calls_area("approval-settings")
def test_a_setting_written_by_a_long_path_shows_by_the_number(maintainer: Caller, subgroup_project: Fixture) -> None:
    left_to_others()  # where no setting of that project can be changed
    settings = of_project(maintainer, subgroup_project)
    named = settings.by_its_path()
    if named == settings:
        return
    with suppress(Unmet):
        before = settings.values()
        try:
            for name in [name for name in (AUTHOR, COMMITTER, OVERRIDES) if settings.is_free(name)][:1]:
                for value in (not before[name], before[name]):
                    if named.change(**{name: value}).is_served:
                        with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
                            settings.must_show(name, value=value)
        finally:
            settings.restore(before)
