"""Two calls at the same time: each is answered for the thing that it names, and for its own caller."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.integrations import borrowed, given_set_up, integrations_path
from conformance.suite.arrange.job_token_scope import limit_kept, scope_path
from conformance.suite.arrange.reviews import created, merge_request_path
from conformance.suite.derived import reads_of_a_project
from conformance.suite.expectations import Caller, Path, left_to_others, must, project_path, verifies
from conformance.suite.load import at_once, in_turns
from conformance.suite.steady import shows_the_same

if TYPE_CHECKING:
    from conformance.suite import Fixture


@pytest.mark.calls_area("project-approval-rules", "integrations")
def test_reads_of_two_projects_at_once_show_each_project_its_own(
    maintainer: Caller,
    project: Fixture,
    sibling_project: Fixture,
    project_rules: Path,
    integration: Fixture,
) -> None:
    """One of them has a rule and an integration that the other one lacks, so that their lists differ."""
    left_to_others()  # unless nothing can be read of both
    created(maintainer, project_rules)
    integrations = integrations_path(maintainer, project)
    with borrowed(maintainer, integrations, integration):
        given_set_up(maintainer, integrations, integration)
        for below in reads_of_a_project():
            paths = [Path(f"{project_path(each)}{below}") for each in (project, sibling_project)]
            alone = [maintainer.get(path) for path in paths]
            if not all(answer.shows_json for answer in alone):
                continue
            for answers in in_turns(*(partial(maintainer.get, path) for path in paths)):
                for path, before, answer in zip(paths, alone, answers, strict=True):
                    if answer.is_served:
                        with verifies("conventions.project-id.number", go_on=True):
                            is_same = shows_the_same(answer, before, partial(maintainer.get, path))
                            must(is_same, "what it shows alone", "another thing", answer.exchange)


@pytest.mark.parametrize(
    ("below", "refused"),
    [
        ("/job_token_scope", "job-token-scope.authorization.reading-below-maintainer"),
        ("/merge_request_approval_setting", "approval-settings.project.authorization.reading-below-maintainer"),
        ("/integrations", "integrations.authorization.reading-below-maintainer"),
    ],
    ids=["job-token-scope", "approval-settings", "integrations"],
)
def test_who_calls_beside_a_maintainer_is_no_maintainer(
    below: str,
    refused: str,
    developer: Caller,
    maintainer: Caller,
    project: Fixture,
) -> None:
    """The caller may be stored in a place that all requests share."""
    path = Path(f"{project_path(project)}{below}")
    if not maintainer.get(path).is_served:
        left_to_others()
        return
    with verifies(refused):
        for by_developer, by_maintainer in in_turns(partial(developer.get, path), partial(maintainer.get, path)):
            by_developer.must_be_refused(beside=by_maintainer if by_maintainer.is_served else maintainer.get(path))


def test_the_status_of_two_merge_requests_read_at_once_is_that_of_each(
    maintainer: Caller,
    project: Fixture,
    merge_request: Fixture,
    second_merge_request: Fixture,
) -> None:
    both = (merge_request, second_merge_request)
    paths = [merge_request_path(project, each) / "approvals" for each in both]
    with verifies("merge-request-approvals.status.describes-its-merge-request"):
        for answers in in_turns(*(partial(maintainer.get, path) for path in paths)):
            for fixture, answer in zip(both, answers, strict=True):
                answer.given_served().must_hold(iid=fixture["iid"])


def test_the_limits_of_two_projects_are_switched_at_once(
    maintainer: Caller,
    project: Fixture,
    sibling_project: Fixture,
) -> None:
    """One is switched on, the other one off if the installation permits that; then the other way round."""
    both = (project, sibling_project)
    with limit_kept(maintainer, project), limit_kept(maintainer, sibling_project):
        for values in ((True, False), (False, True)):
            acts = [
                partial(maintainer.patch, scope_path(each), {"enabled": value})
                for each, value in zip(both, values, strict=True)
            ]
            if not all(answer.is_served for answer in at_once(*acts)):
                left_to_others()
                return
            on, off = both if values[0] else both[::-1]
            with verifies("job-token-scope.switch.on", go_on=True):
                maintainer.get(scope_path(on)).must_hold(inbound_enabled=True)
            with verifies("job-token-scope.switch.off"):
                maintainer.get(scope_path(off)).must_hold(inbound_enabled=False)


def test_a_read_of_what_does_not_exist_says_so_beside_one_that_is_served(maintainer: Caller, project: Fixture) -> None:
    known, unknown = (Path(f"/projects/{number}/approval_rules") for number in (project.id, UNUSED_ID))
    control = maintainer.get(known)
    with verifies("project-approval-rules.unknown-project"):
        for answer, _ in in_turns(partial(maintainer.get, unknown), partial(maintainer.get, known)):
            answer.must_be_refused(beside=control)
