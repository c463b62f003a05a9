"""What a target may refuse because of its timing or length, and accepts in another form."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from conformance.proof.tampering import handling
from conformance.proof.variants.running import WITHOUT_DRAWN, VariantRun, run_each
from conformance.proof.variants.statuses import refuses_changes_that_collide
from conformance.reference import EmbeddedServer
from conformance.reference.choices import Choices, OutOfRange, Repeat
from conformance.suite.expectations import Caller, Path
from conformance.suite.load import at_once, over_and_over
from conformance.target import load_profile
from conformance.target.embedded import prepared_service
from selftest.conftest import in_a_test
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path as File

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route


@pytest.mark.usefixtures("inside_this_process")
@pytest.mark.parametrize(
    "choices",
    [
        Choices(max_per_page=10, per_page_above_maximum=OutOfRange.REFUSE, default_per_page=10),
        Choices(max_per_page=3, per_page_above_maximum=OutOfRange.REFUSE, default_per_page=3),
        Choices(repeated_addition=Repeat.ACCEPT, repeated_addition_code=204),
    ],
    ids=["pages-of-ten", "pages-of-three", "nothing-to-tell-of-what-is-there"],
)
def test_an_area_is_verified_on_a_service_that_refuses_long_pages(choices: Choices) -> None:
    (found,) = run_each([VariantRun("terse", "17.7", choices)], *WITHOUT_DRAWN, "--area=job-token-scope")
    assert (found.alarms, found.broken, found.gaps) == ((), (), ())
    assert found.verified > 50


@pytest.mark.usefixtures("inside_this_process")
def test_a_short_page_that_announces_another_is_not_a_whole_list() -> None:
    choices = Choices(unmarked_lists_are_paged=True, max_per_page=3, default_per_page=3)
    (found,) = run_each([VariantRun("short", "17.7", choices)], *WITHOUT_DRAWN, "--area=integrations")
    assert (found.alarms, found.broken, found.gaps) == ((), (), ())
    assert found.verified > 50


def tells_ids_of_the_allowlist_as(form: Callable[[int], Any], service: Service) -> None:
    def told(route: Route, _: Request, response: Response) -> Response:
        if route.key.endswith("/job_token_scope/allowlist") and isinstance(response.content, list):
            response.content = [{**entry, "id": form(entry["id"])} for entry in response.content]
        return response

    service.transformers.append(told)


@pytest.mark.usefixtures("inside_this_process")
def test_ids_sent_as_texts_are_one_failure_and_leave_nothing_else_unverified() -> None:
    run = VariantRun("texts", "17.7", alterations=(partial(tells_ids_of_the_allowlist_as, str),))
    (found,) = run_each([run], *WITHOUT_DRAWN, "--area=job-token-scope")
    assert {alarm.split()[0].rstrip(":") for alarm in found.alarms} == {"job-token-scope.project-entry.fields"}
    assert found.gaps == ()
    assert found.verified > 50


def passes_the_length_of_pages_over(service: Service) -> None:
    def make(handler: Any) -> Any:
        def deaf(request: Request) -> Response:
            request.query = re.sub(rb"per_page=\d+", b"per_page=100", request.query)
            answer: Response = handler(request)
            return answer

        return deaf

    handling(service, "GET /projects/:id/job_token_scope/groups_allowlist", make)


@pytest.mark.usefixtures("inside_this_process")
def test_a_length_of_pages_that_is_passed_over_fails_without_a_second_page() -> None:
    choices = Choices(page_past_the_end=OutOfRange.REFUSE)
    run = VariantRun("whole", "17.7", choices, alterations=(passes_the_length_of_pages_over,))
    (found,) = run_each([run], *WITHOUT_DRAWN, "--area=job-token-scope")
    seen = {"conventions.pagination.page-size", "job-token-scope.groups-allowlist.pages"}
    assert {alarm.split()[0].rstrip(":") for alarm in found.alarms} == seen
    assert found.gaps == ()


@pytest.mark.usefixtures("inside_this_process")
def test_the_last_call_shown_for_a_page_that_is_too_long_is_that_page(
    conformance: Callable[..., Any], write_profile: Callable[..., File], tmp_path: File
) -> None:
    service = prepared_service(version="17.7")
    passes_the_length_of_pages_over(service)
    with EmbeddedServer(service) as server:
        write_profile(service, server.base_url)
        options = ("--target", "target.yaml", "--out", "out", "--corpus", "none", "--seed", "1")
        conformance("run", *options, "--requirement", "job-token-scope.groups-allowlist.pages")
    (failure, *_) = rows_of(tmp_path / "out")["job-token-scope.groups-allowlist.pages"]["failures"]
    assert failure["expected"].startswith("pages of at most")
    assert "page=1&" in failure["evidence"][-1]["request"], "the page behind it is empty and shows nothing"


@pytest.mark.usefixtures("inside_this_process")
@pytest.mark.parametrize("form", [lambda number: [number], lambda number: {"number": number}], ids=["list", "object"])
def test_ids_that_are_neither_numbers_nor_texts_break_no_run(form: Callable[[int], Any]) -> None:
    run = VariantRun("odd", "17.7", alterations=(partial(tells_ids_of_the_allowlist_as, form),))
    (found,) = run_each([run], *WITHOUT_DRAWN, "--area=job-token-scope")
    assert "job-token-scope.project-entry.fields" in {alarm.split()[0].rstrip(":") for alarm in found.alarms}
    assert found.broken == ()


def breaks_when_an_integration_is_set_up(service: Service) -> None:
    def broken(route: Route, _: Request, response: Response) -> Response:
        is_meant = route.method == "PUT" and "/integrations/" in route.key and response.status == HTTPStatus.OK
        return replace(response, status=500) if is_meant else response

    service.transformers.append(broken)


@pytest.mark.usefixtures("inside_this_process")
def test_if_every_valid_call_fails_no_parameter_is_to_blame() -> None:
    run = VariantRun("broken", "17.7", alterations=(breaks_when_an_integration_is_set_up,))
    (found,) = run_each([run], "--max-examples=1", "--area=integrations")
    names = {alarm.split()[0].rstrip(":") for alarm in found.alarms}
    assert "integrations.set-up.accepted" in names
    assert [name for name in names if name.startswith(("integrations.parameters", "events"))] == []


def hides_the_status_of_exports(service: Service) -> None:
    def hidden(route: Route, _: Request, response: Response) -> Response:
        return replace(response, status=403) if route.key.endswith("/export_relations/status") else response

    service.transformers.append(hidden)


@pytest.mark.parametrize("seconds", [0, 0.01], ids=["whose files are there at once", "whose files come later"])
@pytest.mark.usefixtures("inside_this_process")
def test_without_a_status_of_exports_their_files_are_open_and_not_missing(seconds: float) -> None:
    exports, limits = Choices(export_delay_seconds=seconds), {"deadline_seconds": 1}
    run = VariantRun("hidden", "17.7", exports, limits=limits, alterations=(hides_the_status_of_exports,))
    (found,) = run_each([run], *WITHOUT_DRAWN, "--area=group-relations-export")
    assert {alarm.split()[0].rstrip(":") for alarm in found.alarms} == {
        "group-relations-export.status.list",
        "group-relations-export.authorization.owner-is-served",
    }


def test_a_write_refused_because_of_a_concurrent_one_is_repeated(
    reference: tuple[Service, str], write_profile: Callable[..., File]
) -> None:
    profile: Any = load_profile(write_profile(*reference))
    with in_a_test(profile) as test:
        owner, sent = Caller(test.run, profile.actors["owner"]), []
        path = Path(f"/projects/{profile.fixtures['project'][0].id}/approvals")

        def refused_once() -> Any:
            sent.append(path)
            # Of two concurrent writes, the service accepts one: a wrong sha simulates the other here.
            return owner.get(path) if len(sent) > 1 else conflicting(owner, profile)

        first, second = at_once(partial(owner.get, path), refused_once)
        assert (first.status, second.status, len(sent)) == (200, 200, 2)
        sent.clear()
        _, several = at_once(lambda: [owner.get(path)], lambda: [owner.get(path), refused_once()])
    assert ([one.status for one in several], len(sent)) == ([200, 200], 2)


@pytest.mark.parametrize("status", [HTTPStatus.CONFLICT, HTTPStatus.LOCKED])
def test_what_collided_during_many_calls_is_repeated_after_them(
    status: HTTPStatus, reference: tuple[Service, str], write_profile: Callable[..., File]
) -> None:
    with in_a_test(load_profile(write_profile(*reference))) as test:
        owner, calls = Caller(test.run, test.run.profile.actors["owner"]), []
        read = owner.get(Path("/version"))

        def colliding(name: str) -> Any:
            calls.append(name)
            # The deletion is refused as long as somebody changes something, and so is the first change.
            is_first = calls.count(name) == 1
            return replace(read, exchange=replace(read.exchange, status=status)) if is_first else read

        found = over_and_over(partial(colliding, "change"), during=[partial(colliding, "deletion")])
    assert {answer.status for answer in found} == {200}
    assert calls.count("deletion") == 2


@pytest.mark.usefixtures("inside_this_process")
def test_a_service_that_refuses_what_collides_leaves_nothing_open() -> None:
    run = VariantRun("colliding", "17.7", alterations=(refuses_changes_that_collide,))
    selection = "at_once and not limits or deleted_while or while_another_one_is_changed"
    areas = [f"--area={area}" for area in ("project-approval-rules", "merge-request-approvals", "approval-settings")]
    (found,) = run_each([run], *WITHOUT_DRAWN, *areas, "-k", selection)
    assert (found.alarms, found.gaps) == ((), ())


def conflicting(owner: Caller, profile: Any) -> Any:
    """Return a response with status 409, to an approval of a commit that is not the current one."""
    merge_request = profile.fixtures["merge_request"][0]
    place = f"/projects/{profile.fixtures['project'][0].id}/merge_requests/{merge_request['iid']}/approve"
    return owner.post(Path(place), {"sha": "0123456789" * 4})
