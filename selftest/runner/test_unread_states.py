"""What a run could not read before it changed it, for want of an answer, is never restored to another state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.http.client import Client
from conformance.reference import EmbeddedServer
from conformance.reference.choices import Choices
from conformance.reference.http import Response
from conformance.runner.precautions import Precautions
from conformance.target import Profile, load_profile
from conformance.target.embedded import prepared_service
from conformance.target.spots import Spot, Spots
from conformance.target.states import States
from selftest.conftest import VERSION, in_a_test
from selftest.reads import everything_read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

    Alteration = Callable[[Route, Request, Response], Response]


@pytest.fixture
def profile(reference: tuple[Service, str], write_profile: Callable[..., Path]) -> Profile:
    return load_profile(write_profile(*reference))


class Gateway:
    """Answers in the place of the service when the limit is read, until it is gone."""

    def __init__(self) -> None:
        self.is_gone = False

    def __call__(self, route: Route, _: Request, response: Response) -> Response:
        is_read = route.method == "GET" and route.key.endswith("/job_token_scope")
        return Response(502) if is_read and not self.is_gone else response


@pytest.mark.parametrize("is_put_back", [True, False], ids=["by the test", "by nobody"])
def test_what_was_changed_before_it_could_be_read_is_named_and_not_restored_to_a_later_state(
    profile: Profile, reference: tuple[Service, str], tmp_path: Path, *, is_put_back: bool
) -> None:
    """What is read after the change is not the former state: a test may have put that back itself by the end."""
    before, project, gateway = everything_read(profile), profile.value("project"), Gateway()
    maintainer, path = profile.actors["maintainer"], f"/projects/{project}/job_token_scope"

    reference[0].transformers.append(gateway)
    precautions = Precautions.of(profile, None, tmp_path, "run")
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        for enabled in (False, *([True] if is_put_back else [])):
            assert test.run.client.send(maintainer, "PATCH", path, json_body={"enabled": enabled}).is_success
            gateway.is_gone = True
        left = precautions.put_back()
        precautions.release()
    assert left == (f"the former limit, which no answer showed before it was changed, of project {project}",)
    changed = [read for read, stands in everything_read(profile).items() if stands != before[read]]
    assert changed == ([] if is_put_back else [path])


def test_what_no_answer_showed_is_read_again_where_a_call_does_not_change_it(
    profile: Profile, reference: tuple[Service, str], tmp_path: Path
) -> None:
    before, project, gateway = everything_read(profile), profile.value("project"), Gateway()
    maintainer, path = profile.actors["maintainer"], f"/projects/{project}/job_token_scope"

    reference[0].transformers.append(gateway)
    precautions, rule = Precautions.of(profile, None, tmp_path, "run"), {"name": "new", "approvals_required": 1}
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        rules = f"/projects/{project}/approval_rules"
        assert test.run.client.send(maintainer, "POST", rules, json_body=rule).is_success
        gateway.is_gone = True
        assert test.run.client.send(maintainer, "PATCH", path, json_body={"enabled": False}).is_success
        assert precautions.put_back() == ()
        precautions.release()
    assert everything_read(profile) == before


@pytest.mark.parametrize(
    ("status", "is_served", "is_named"),
    [(500, True, True), (501, True, True), (404, True, True), (404, False, False), (500, False, False)],
)
def test_what_a_half_built_service_changes_and_does_not_show_is_named(
    profile: Profile,
    reference: tuple[Service, str],
    tmp_path: Path,
    status: int,
    is_served: bool,  # noqa: FBT001 - of a table
    is_named: bool,  # noqa: FBT001 - of a table
) -> None:
    """Its settings may be taken before anybody can read them."""

    def half_built(route: Route, _: Request, response: Response) -> Response:
        if not route.path.endswith("/merge_request_approval_setting"):
            return response
        return Response(status) if route.method == "GET" else response if is_served else Response(404)

    reference[0].transformers.append(half_built)
    project = profile.value("project")
    precautions, path = Precautions.of(profile, None, tmp_path, "run"), f"/projects/{project}"
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        maintainer, send = profile.actors["maintainer"], test.run.client.send
        settings, told = f"{path}/merge_request_approval_setting", {"allow_author_approval": False}
        assert send(maintainer, "PUT", settings, json_body=told).is_success is is_served
        assert send(maintainer, "PATCH", f"{path}/job_token_scope", json_body={"enabled": False}).is_success
        left = precautions.put_back()
        precautions.release()
    lost = f"the former project-settings, which no answer showed before it was changed, of project {project}"
    assert left == ((lost,) if is_named else ())


def test_a_fault_of_the_service_in_one_read_is_no_end_of_a_list_and_no_absence(
    profile: Profile, reference: tuple[Service, str]
) -> None:
    broken: set[bytes] = set()

    def broken_at_first(_: Route, request: Request, response: Response) -> Response:
        is_first = request.method == "GET" and request.query not in broken
        broken.add(request.query)
        return Response(500) if is_first else response

    with Client(profile.client_settings(), beside=True) as client:
        states = States(profile, client)
        project = Spot("project", profile.value("project"))
        things = [thing for thing in states.things(project) if thing.spot == project]
        before = [states.read(thing) for thing in things]
        reference[0].transformers.append(broken_at_first)
        for thing, known in zip(things, before, strict=True):
            broken.clear()
            assert states.read(thing) == known


def read_rules(write_profile: Callable[..., Path], service: Service, rules: int, *, but: Alteration) -> tuple[Any, Any]:
    """Give a project rules; return what is read of them as it should be put back, and what is with one alteration."""
    with EmbeddedServer(service) as server:
        profile = load_profile(write_profile(service, server.base_url))
        admin, project = profile.actors["admin"], profile.value("project")
        with Client(profile.client_settings(), beside=True) as client:
            for number in range(rules):
                body = {"name": f"Rule {number}", "approvals_required": 1}
                client.send(admin, "POST", f"/projects/{project}/approval_rules", json_body=body)
            states = States(profile, client)
            part = next(each for each in states.things(Spots(profile).all[0]) if each.part.name == "project-rules")
            thing = replace(part, spot=Spot("project", project))
            whole = states.read(thing)
            service.transformers.append(but)
            return whole, states.read(thing)


@pytest.mark.parametrize(
    ("status", "is_announced"), [(502, False), (500, False), (500, True), (404, True), (400, True)], ids=str
)
def test_a_page_that_is_not_shown_is_not_the_end_of_a_list(
    write_profile: Callable[..., Path], status: int, *, is_announced: bool
) -> None:
    """Otherwise, the entries behind it would count as gone, and would be brought back although they are there."""
    service = prepared_service(VERSION, Choices(max_per_page=10, default_per_page=10, pagination_headers=is_announced))

    def without_a_page(_: Route, request: Request, response: Response) -> Response:
        return Response(status) if b"page=3" in request.query else response

    whole, cut = read_rules(write_profile, service, 22, but=without_a_page)
    assert whole is not None
    assert len(whole[1]) >= 22
    assert cut is None


def test_a_list_of_more_pages_than_are_read_is_not_taken_for_whole(write_profile: Callable[..., Path]) -> None:
    service = prepared_service(VERSION, Choices(max_per_page=1, default_per_page=1))

    def endless(route: Route, request: Request, response: Response) -> Response:
        is_list = route.key == "GET /projects/:id/approval_rules"
        return replace(response, content=[{"id": hash(request.query)}], headers={}) if is_list else response

    whole, unending = read_rules(write_profile, service, 60, but=endless)
    assert whole is not None
    assert len(whole[1]) >= 60
    assert unending is None
