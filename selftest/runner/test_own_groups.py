"""What no operation removes is created in groups that the run creates and deletes itself."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.errors import ExitCode
from conformance.http.client import Client
from conformance.proof.foreign import faults
from conformance.reference import EmbeddedServer
from conformance.reference.errors import ForbiddenError
from conformance.results.reading import read_record
from conformance.target import Profile, load_profile
from conformance.target.embedded import directly, prepared_service, profile_of
from conformance.target.names import LEAVING, in_place_of
from conformance.target.profile_file import profile_from
from conformance.target.provisioning import PREFIX
from conformance.target.provisioning.calls import Answer, Body, Calls, Way
from conformance.target.provisioning.files import Made
from conformance.target.provisioning.own_groups import OwnGroup, OwnGroups, removed
from conformance.target.provisioning.profiles import by_value, profile_data
from conformance.target.provisioning.sweep import sweep
from conformance.target.stand_ins import stand_ins
from selftest.conftest import VERSION, serving
from selftest.reads import everything_read
from selftest.target.bench import Bench
from selftest.target.services import answers_get_lost, changed, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from conformance.reference import Choices, Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

pytestmark = pytest.mark.usefixtures("inside_this_process")

_OPTIONS = ("-q", "--max-examples", "2", "--seed", "1", "--corpus", "none", "--target", "target.yaml", "--out", "out")
_CREATION = ("--requirement", "group-approval-rules.create.answers-with-rule")
_PATIENCE = 0.5
_NAMES = {"rules_group", "spare_rules_group", "inner_rules_group", "inner_rules_project"}


# -- services with different behaviour ---------------------------------------------------------------------------------


def no_groups(status: int | None) -> Callable[..., Answer]:
    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        return refused(status) if (method, path) == ("POST", "/groups") else way(token, method, path, query, body)  # type: ignore[arg-type]

    return change


def top_level_only(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    is_nested = (method, path) == ("POST", "/groups") and "parent_id" in (body or {})
    return refused(403) if is_nested else way(token, method, path, query, body)


def by_admins_only(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    is_admin = way(token, "GET", "/user", {}, None).entry.get("is_admin")
    is_theirs = method in {"POST", "DELETE"} and path.startswith("/groups") and path.count("/") < 3
    return refused(403) if is_theirs and not is_admin else way(token, method, path, query, body)


def shown_as(users: object) -> Callable[..., Answer]:
    """Show this in place of the approvers of each rule of a newly created group."""

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        answer = way(token, method, path, query, body)
        if method == "GET" and path.endswith("approval_rules") and isinstance(answer.body, list):
            return replace(answer, body=[{**rule, "users": users} for rule in answer.body])
        return answer

    return change


def inherited(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """Every group shows a rule of the group that contains it."""
    answer = way(token, method, path, query, body)
    if method == "GET" and path.endswith("approval_rules") and isinstance(answer.body, list):
        return replace(answer, body=[{"id": 5, "name": "of the parent", "rule_type": "regular"}, *answer.body])
    return answer


def no_deletion(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    is_theirs = method == "DELETE" and path.startswith("/groups/")
    return refused(403) if is_theirs else way(token, method, path, query, body)


def deletion_takes_days() -> Callable[..., Answer]:
    """A deleted group is marked for deletion, and stays."""
    marked: set[str] = set()

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if method == "DELETE" and path.startswith("/groups/"):
            marked.add(path)
            return refused(403) if body else Answer(202)
        answer = way(token, method, path, query, body)
        if path in marked and answer.is_served:
            return replace(answer, body={**answer.entry, "marked_for_deletion_on": "2026-01-01", "full_path": "x-gone"})
        return answer

    return change


#: For each behaviour: whether the run's groups are inside that of the profile; None if the run gets no groups.
SERVICES: Mapping[str, tuple[Callable[..., Answer], bool | None]] = {
    "groups may be made": (lambda way, *call: way(*call), True),
    "groups are made by administrators": (by_admins_only, True),
    "a group in a group is refused": (top_level_only, False),
    "deletion takes days": (deletion_takes_days(), True),
    "every answer to a creation is lost": (answers_get_lost(1), True),
    "groups are refused": (no_groups(403), None),
    "groups are not there": (no_groups(404), None),
    "groups break": (no_groups(500), None),
    "no answer comes": (no_groups(None), None),
    "rules of a new group name nobody": (shown_as([]), None),
    "approvers are shown by number": (shown_as([1, None]), None),
    "approvers are shown as no list": (shown_as(1), None),
    "approvers have no numbers": (shown_as([{"id": []}]), None),
    "a new group has rules already": (inherited, None),
}


def made_on(
    change: Callable[..., Answer], **features: Any
) -> tuple[Service, Profile, Calls, list[OwnGroup], Mapping[str, Any]]:
    service = prepared_service(version=VERSION)
    data = profile_of(service, "http://127.0.0.1:1", VERSION)
    profile, told = replace(profile_from(data, "selftest"), **features), list[OwnGroup]()
    calls = Calls(changed(change)(directly(service)), Made(), _PATIENCE)
    made = OwnGroups(profile, calls, "20260101T000000Z-abc", told.append).profile().fixtures
    return service, profile, calls, told, {name: made[name] for name in made.keys() - profile.fixtures.keys()}


@pytest.mark.parametrize("behaviour", SERVICES)
def test_a_run_creates_groups_if_it_can_and_removes_them(behaviour: str) -> None:
    change, is_nested = SERVICES[behaviour]
    service, profile, calls, told, made = made_on(change)
    assert made.keys() == {None: set(), True: _NAMES, False: _NAMES - {"inner_rules_group"}}[is_nested]
    around = profile.fixtures["group"][0]["path"]
    assert [entries[0]["path"].startswith(f"{around}/") for entries in made.values()] == [is_nested] * len(made)
    known = {group.path: group for group in told}
    assert all(group.number is None for group in told[:1])
    assert [removed(calls, profile, group) for group in known.values()] == [None] * len(known)
    if "days" not in behaviour:
        assert not [group for group in service.identities.groups.values() if group.full_path in known]


def test_rules_of_replacement_fixtures_are_created_in_a_group_of_the_run_too() -> None:
    service, profile, *_, made = made_on(SERVICES["groups may be made"][0])
    with EmbeddedServer(service) as server:
        whole = replace(profile, base_url=server.base_url, fixtures={**profile.fixtures, **made})
        with Client(whole.client_settings()) as client:
            aside = stand_ins(whole)[-1].profile(client).fixtures
    assert aside["group"] == profile.fixtures["fuzz_group"]
    assert aside[in_place_of("group", LEAVING, aside)] == made["spare_rules_group"]


@pytest.mark.parametrize("other", [{"name": "another"}, {"path": "another"}], ids=["name", "path"])
def test_a_group_that_was_replaced_by_another_one_is_never_deleted(other: dict[str, Any]) -> None:
    service, profile, calls, told, _ = made_on(SERVICES["groups may be made"][0])
    group = replace(told[1], **other)
    # If the path does not exist, the group is gone, and its id may belong to another group.
    assert removed(calls, profile, group) == (None if "path" in other else "something else has its place by now")
    assert told[1].number in service.identities.groups


def test_groups_that_a_run_could_not_remove_are_removed_by_sweep() -> None:
    bench = Bench()
    profile = profile_from(profile_data(bench.order(), bench.provision(), by_value), "selftest")
    own = OwnGroups(profile, bench.calls, "20260101T000000Z-abc", lambda _: None)
    assert own.profile().fixtures.keys() - profile.fixtures.keys() == _NAMES
    removals = sweep(bench.calls, bench.administrator, PREFIX, lambda _: None)
    assert [removal.what for removal in removals if removal.problem] == []


def test_a_target_that_lost_its_state_gets_groups_again() -> None:
    service = prepared_service(version=VERSION)
    profile, told = profile_from(profile_of(service, "http://127.0.0.1:1", VERSION), "selftest"), list[OwnGroup]()
    ways = [directly(service)]

    def newest(token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        return ways[-1](token, method, path, query, body)

    calls = Calls(newest, Made(), _PATIENCE)
    own = OwnGroups(profile, calls, "20260101T000000Z-abc", told.append)
    first = own.profile().fixtures["rules_group"][0]
    assert not own.are_lost(trouble=1)
    ways.append(directly(prepared_service(version=VERSION)))
    assert not own.are_lost(trouble=1), "asked although nothing had happened"
    assert own.are_lost(trouble=2)
    assert own.profile().fixtures["rules_group"][0]["path"] != first["path"]
    known = {group.path: group for group in told}
    assert {removed(calls, profile, group) for group in known.values()} == {None}


def test_groups_that_cannot_be_removed_are_reused_and_removed_when_possible() -> None:
    service = prepared_service(version=VERSION)
    profile = profile_from(profile_of(service, "http://127.0.0.1:1", VERSION), "selftest")
    found: list[set[int]] = []
    for change in (no_deletion, no_deletion, lambda way, *call: way(*call)):
        calls, told = Calls(changed(change)(directly(service)), Made(), _PATIENCE), list[OwnGroup]()
        made = OwnGroups(profile, calls, f"20260101T000000Z-{len(found)}", told.append).profile().fixtures
        found.append({made[name][0].id for name in _NAMES if name.endswith("group")})
        assert {group.number for group in told} - {None} == found[-1]
    assert found[0] == found[1]
    assert found[0].isdisjoint(found[2])
    assert not found[0] & service.identities.groups.keys()


def test_a_group_that_was_never_created_is_no_leftover() -> None:
    _, profile, calls, *_ = made_on(SERVICES["groups are refused"][0])
    assert removed(calls, profile, OwnGroup("never/made", "never made")) is None


# -- whole runs --------------------------------------------------------------------------------------------------------


@contextmanager
def target(tmp_path: Path, worlds: int = 1, choices: Choices | None = None) -> Iterator[tuple[Service, list[Profile]]]:
    service = prepared_service(version=VERSION, choices=choices, worlds=worlds)
    with EmbeddedServer(service) as server:
        (tmp_path / "target.yaml").write_text(yaml.safe_dump(profile_of(service, server.base_url, VERSION)))
        profile = load_profile(tmp_path / "target.yaml")
        yield service, [profile.in_world(number) for number in range(worlds)]


@pytest.mark.parametrize(
    ("workers", "selected"), [(1, ("--area", "group-approval-rules")), (2, _CREATION)], ids=["all tests", "two workers"]
)
def test_a_run_leaves_every_rule_of_groups_unchanged(
    conformance: Callable[..., Any], tmp_path: Path, workers: int, selected: tuple[str, ...]
) -> None:
    with target(tmp_path, workers) as (service, worlds):
        made: list[int] = []
        service.transformers.append(lambda route, request, response: noted(route, request, response, made))
        before, groups = [everything_read(world) for world in worlds], set(service.identities.groups)
        outcome = conformance("run", *_OPTIONS, *selected, "--workers", str(workers))
        assert outcome.code == ExitCode.CONFORMANT, outcome.text
        assert "left on the target" not in outcome.out
        assert made
        assert [everything_read(world) for world in worlds] == before
        assert set(service.identities.groups) == groups


def noted(route: Route, request: Request, response: Response, made: list[int]) -> Response:
    if (request.method, route.path) == ("POST", "/groups/:id/approval_rules") and response.status == 201:
        made.append(request.group.id)
    return response


async def without_inner_groups(request: Request) -> None:
    if (request.method, request.route.path) == ("POST", "/groups") and b"parent_id" in request.body:
        raise ForbiddenError(request.route.path)


@pytest.mark.parametrize("is_faulty", [False, True], ids=["healthy", "faulty"])
def test_a_download_before_the_first_export_has_finished_is_found_in_such_a_group(
    conformance: Callable[..., Any], tmp_path: Path, *, is_faulty: bool
) -> None:
    """Only in a group that the run created it is certain that nothing was exported before; here it has members."""
    wanted = "group-relations-export.download.before-finished"
    fault = next(one for one in faults() if one.name == "a-file-is-empty-until-its-export-has-finished")
    with target(tmp_path, choices=fault.choices) as (service, _):
        service.interruption = without_inner_groups
        if is_faulty:
            fault.apply(service)
        outcome = conformance("run", *_OPTIONS, *_CREATION, "--requirement", wanted)
    failed = {one.requirement for one in read_record(tmp_path / "out" / "results.jsonl").checks if one.actual}
    assert outcome.code == (ExitCode.NON_CONFORMANT if is_faulty else ExitCode.CONFORMANT), outcome.text
    assert failed == ({wanted} if is_faulty else set())


def test_a_run_that_needs_no_such_group_makes_none(conformance: Callable[..., Any], tmp_path: Path) -> None:
    with target(tmp_path) as (service, _):
        paths: list[str] = []
        service.request_log = lambda entry: paths.append(f"{entry.method} {entry.path}")
        outcome = conformance("run", *_OPTIONS, "--requirement", "job-token-scope.settings.read")
        assert outcome.code == ExitCode.CONFORMANT, outcome.text
        assert not [path for path in paths if path.startswith("POST") and path.endswith("/groups")]


async def without_groups(request: Request) -> None:
    if (request.method, request.route.path) == ("POST", "/groups"):
        raise ForbiddenError(request.route.path)


def test_what_stays_because_no_group_could_be_created_is_in_every_report(
    conformance: Callable[..., Any], tmp_path: Path, write_profile: Callable[..., Path]
) -> None:
    with serving() as (service, base_url):
        service.interruption = without_groups
        write_profile(service, base_url, disposable=False)
        outcome = conformance("run", *_OPTIONS, *_CREATION, "--confirm", base_url.removeprefix("http://"))
    said = "made by this run, and no operation takes it away"
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert said in " ".join(outcome.out.split())
    for name in ("index.html", "summary.md", "report.json"):
        assert said in (tmp_path / "out" / name).read_text(encoding="utf-8")
