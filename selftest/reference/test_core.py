from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from conformance.reference import Choices, EmbeddedServer, Service, UnknownVersionError, Version
from conformance.reference.choices import Coercion, ErrorShape, Order, OutOfRange, TimestampStyle
from conformance.reference.http import Response
from conformance.reference.service import AREAS
from conformance.target.embedded import prepared_service

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference.app import LogEntry
    from conformance.reference.http import Request
    from conformance.reference.routing import Route
    from selftest.reference.conftest import Served

SCOPE = "/projects/{}/job_token_scope"


def test_versions_are_ordered_by_number_and_accept_patch_levels_and_pre_releases() -> None:
    assert Version.parse("9.10") < Version.parse("17.7.1-pre") < Version.parse("17.11")
    assert Version.parse("17.7.1-pre") == Version.parse("17.7")
    assert Version.parse("17.7.1-pre").full == "17.7.1-pre"
    for text in ("12.2", "19.1", "latest", "", "17"):
        with pytest.raises(UnknownVersionError):
            prepared_service(text)


def test_the_service_shows_its_version_and_the_current_user(serve: Callable[..., Served]) -> None:
    served = serve("15.8.3-ee")
    assert served.acting_as("guest").get("/version").json()["version"] == "15.8.3-ee"
    assert served.acting_as("guest").get("/metadata").json()["enterprise"] is True
    for name, actor in served.service.world.actors.items():
        user = served.acting_as(name).get("/user").json()
        assert (user["id"], user["username"]) == (actor.id, actor.username)


def test_a_token_is_accepted_in_every_place_where_clients_put_it(served: Served) -> None:
    anonymous, token = served.anonymous(), served.service.world.actors["developer"].token
    for headers in ({"Private-Token": token}, {"private-token": token}, {"Authorization": f"Bearer {token}"}):
        assert anonymous.get("/user", headers=headers).status_code == 200
    assert anonymous.get("/user", params={"private_token": token}).status_code == 200
    for headers in ({}, {"PRIVATE-TOKEN": "wrong"}, {"Authorization": f"Basic {token}"}):
        assert anonymous.get("/user", headers=headers).status_code == 401


def test_a_reading_token_cannot_write(served: Served) -> None:
    identities = served.service.identities
    user = identities.users[served.service.world.actors["maintainer"].id]
    headers = {"PRIVATE-TOKEN": identities.issue_token(user, ("read_api",)).value}
    path = SCOPE.format(served.id_of("project"))
    client = served.anonymous()
    assert client.get(path, headers=headers).status_code == 200
    assert client.patch(path, headers=headers, json={"enabled": False}).status_code == 403


def test_roles_are_inherited_from_the_groups_that_contain_a_project(served: Served) -> None:
    path = SCOPE.format(served.id_of("subgroup_project"))
    codes = {
        name: served.acting_as(name).get(path).status_code
        for name in (
            "owner",
            "maintainer",
            "group_bot",
            "admin",
            "developer",
            "guest",
            "outsider",
            "project_bot",
        )
    }
    assert codes == {
        "owner": 200,
        "maintainer": 200,
        "group_bot": 200,
        "admin": 200,
        "developer": 403,
        "guest": 403,
        "outsider": 404,
        "project_bot": 404,
    }


def test_a_hidden_project_gets_the_same_answer_as_one_that_does_not_exist(served: Served) -> None:
    outsider = served.acting_as("outsider")
    hidden = outsider.get(SCOPE.format(served.id_of("project")))
    missing = outsider.get(SCOPE.format(10**12))
    assert (hidden.status_code, hidden.content) == (missing.status_code, missing.content)
    assert outsider.get(SCOPE.format(served.id_of("public_project"))).status_code == 403


@pytest.mark.parametrize("fixture", ["project", "subgroup_project"])
def test_a_project_is_identified_by_id_or_by_encoded_path(served: Served, fixture: str) -> None:
    client, project = served.acting_as("maintainer"), served.service.world.one(fixture)
    assert project.path is not None
    by_id = client.get(SCOPE.format(project.id))
    for reference in (project.path.replace("/", "%2F"), project.path.replace("/", "%2f").replace("t", "%74")):
        assert client.get(SCOPE.format(reference)).json() == by_id.json()
    assert client.get(SCOPE.format(project.path)).status_code == 404


def test_unknown_paths_are_404_and_wrong_methods_405(served: Served) -> None:
    client = served.anonymous()
    assert client.get("/nothing").status_code == 404
    assert client.get(f"{served.server.base_url}/").status_code == 404
    assert client.get("/user/").status_code == 404
    answer = client.delete("/user")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    head = served.acting_as("guest").head("/user")
    assert (head.status_code, head.content) == (200, b"")


MALFORMED: dict[str, dict[str, Any]] = {
    "broken JSON": {"content": b'{"enabled":', "headers": {"content-type": "application/json"}},
    "an array": {"json": [True]},
    "null": {"content": b"null"},
    "deep JSON": {"content": b'{"enabled":' * 100_000},
    "a huge number": {"content": b'{"enabled":1e999}'},
    "invalid UTF-8": {"content": b'{"enabled":"\xff"}'},
    "a lone surrogate": {"content": b'{"enabled":"\\ud800"}'},
    "another content type": {"content": b"<enabled/>", "headers": {"content-type": "application/xml"}},
    "a bad form": {
        "content": b"enabled=%ff",
        "headers": {"content-type": "application/x-www-form-urlencoded"},
    },
    "a form that contradicts itself": {"data": {"enabled": "true", "enabled[]": "true"}},
    "multipart without boundary": {"content": b"--x", "headers": {"content-type": "multipart/form-data"}},
    "broken multipart": {
        "content": b"--x\r\nnonsense",
        "headers": {"content-type": "multipart/form-data; boundary=x"},
    },
    "a huge body": {"content": b" " * 3_000_000},
    "a bad query": {"params": "enabled=%ff"},
}


@pytest.mark.parametrize("how", MALFORMED)
def test_a_malformed_request_is_refused_and_changes_nothing(served: Served, how: str) -> None:
    client, path = served.acting_as("maintainer"), SCOPE.format(served.id_of("project"))
    before = client.get(path).json()
    answer = client.patch(path, **MALFORMED[how])
    assert 400 <= answer.status_code < 500, answer.text
    assert client.get(path).json() == before


@pytest.mark.parametrize(
    "query", ["page=x", "page=9" + "9" * 30, "per_page=1.5", "page=%00", "page[]=1", "page[a]=1", "page=%ff"]
)
def test_a_page_that_is_not_a_number_is_refused(served: Served, query: str) -> None:
    path = SCOPE.format(served.id_of("project"))
    assert served.acting_as("maintainer").get(f"{path}/allowlist?{query}").status_code == 400


def test_parameters_are_accepted_as_json_form_multipart_or_query(served: Served) -> None:
    client, path = served.acting_as("maintainer"), SCOPE.format(served.id_of("project"))
    sent: tuple[dict[str, object], ...] = (
        {"json": {"enabled": False}},
        {"data": {"enabled": "true"}},
        {"files": {"enabled": (None, "false")}},
        {"params": {"enabled": "true"}},
        {"json": {"enabled": "false"}},
    )
    for number, how in enumerate(sent):
        assert client.patch(path, **how).status_code == 204  # type: ignore[arg-type] # one keyword each
        assert client.get(path).json()["inbound_enabled"] is bool(number % 2)


def test_strict_choices_accept_only_the_stated_types(serve: Callable[..., Served]) -> None:
    served = serve(choices=Choices(coercion=Coercion.STRICT, parameters_in_query=False, invalid_code=422))
    client, path = served.acting_as("maintainer"), SCOPE.format(served.id_of("project"))
    assert client.patch(path, json={"enabled": "false"}).status_code == 422
    assert client.patch(path, params={"enabled": "false"}).status_code == 422
    assert client.patch(path, json={"enabled": False}).status_code == 204


def test_an_unexpected_failure_is_a_plain_500_and_the_next_request_works(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, path = served.acting_as("maintainer"), SCOPE.format(served.id_of("project"))
    with monkeypatch.context() as patch:
        patch.setattr(served.service.job_token_scope, "settings", lambda _project: 1 / 0)
        assert client.get(path).json() == {"message": "500 Internal Server Error"}
        patch.setattr(served.service.job_token_scope, "settings", lambda _project: {"no": object()})
        assert client.get(path).status_code == 500
    assert client.get(path).status_code == 200


def test_behaviour_access_routes_and_responses_of_one_service_can_be_altered(
    serve: Callable[..., Served],
) -> None:
    altered, untouched = serve(), serve()
    service, path = altered.service, SCOPE.format(altered.id_of("project"))

    def drop_a_field(route: Route, _request: Request, response: Response) -> Response:
        if route.key == "GET /projects/:id/job_token_scope" and isinstance(response.content, dict):
            del response.content["outbound_enabled"]
        return response

    service.transformers.append(drop_a_field)
    service.routes.change("PATCH /projects/:id/job_token_scope", handler=lambda _request: Response(204))
    service.access.require = lambda *_: None  # type: ignore[method-assign] # what faults do
    developer = altered.acting_as("developer")
    assert developer.patch(path, json={"enabled": False}).status_code == 204
    assert developer.get(path).json() == {"inbound_enabled": True}
    assert untouched.acting_as("developer").get(path).status_code == 403
    assert "outbound_enabled" in untouched.acting_as("maintainer").get(path).json()


def test_pages_link_to_each_other_and_contain_every_entry_once(served: Served) -> None:
    client, path = served.acting_as("maintainer"), SCOPE.format(served.id_of("project"))
    targets = {target.id for target in served.service.world.many("allowlist_projects")}
    for target in targets:
        client.post(f"{path}/allowlist", json={"target_project_id": target}).raise_for_status()
    seen, url = [], f"{path}/allowlist?per_page=2&odd=%22%20x"
    while url:
        answer = client.get(url)
        assert len(answer.json()) <= 2
        assert answer.headers["x-total"] == str(len(targets) + 1)
        seen += [entry["id"] for entry in answer.json()]
        url = answer.links.get("next", {}).get("url", "")
    assert sorted(seen) == sorted({*targets, served.id_of("project")})
    assert client.get(f"{path}/allowlist?page=99999").json() == []
    assert client.get(f"{path}/allowlist?per_page=100000").headers["x-per-page"] == "100"


def test_choices_change_the_pagination(serve: Callable[..., Served]) -> None:
    choices = Choices(page_past_the_end=OutOfRange.REFUSE, page_below_one=OutOfRange.REFUSE, pagination_headers=False)
    served = serve(choices=choices)
    client, path = served.acting_as("maintainer"), SCOPE.format(served.id_of("project")) + "/allowlist"
    assert "link" not in client.get(path).headers
    assert client.get(f"{path}?page=9").status_code == 404
    assert client.get(f"{path}?page=0").status_code == 400


@pytest.mark.parametrize(
    ("shape", "content_type"),
    [
        (ErrorShape.MIXED, "application/json"),
        (ErrorShape.ERROR, "application/json"),
        (ErrorShape.PROBLEM, "application/problem+json"),
        (ErrorShape.TEXT, "text/plain; charset=utf-8"),
        (ErrorShape.EMPTY, None),
    ],
)
def test_refusals_have_the_chosen_code_and_shape(
    serve: Callable[..., Served], shape: ErrorShape, content_type: str | None
) -> None:
    served = serve(choices=Choices(error_shape=shape, forbidden_code=404))
    answer = served.acting_as("guest").get(SCOPE.format(served.id_of("project")))
    assert answer.status_code == 404
    assert answer.headers.get("content-type") == content_type
    assert bool(answer.content) is (shape is not ErrorShape.EMPTY)


def test_the_format_of_responses_follows_the_choices(serve: Callable[..., Served]) -> None:
    choices = Choices(timestamps=TimestampStyle.OFFSET, key_order=Order.REVERSED, extra_fields=False, first_id=10**15)
    user = serve(choices=choices).acting_as("guest").get("/user").json()
    assert next(iter(user)) == "is_admin"
    assert user["created_at"].endswith("+02:00")
    assert user["id"] > 10**15
    assert "locked" not in user


def test_throttling_says_when_to_retry(serve: Callable[..., Served]) -> None:
    client = serve(choices=Choices(throttle_every=3, retry_after_seconds=7)).acting_as("guest")
    answers = [client.get("/user") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 200, 200, 429]
    assert answers[2].headers["retry-after"] == "7"


def test_a_reset_restores_the_seeded_world(served: Served) -> None:
    client, path = served.acting_as("maintainer"), SCOPE.format(served.id_of("project"))
    before = client.get(f"{path}/groups_allowlist").json()
    target = served.service.world.many("allowlist_groups")[0].id
    assert client.post(f"{path}/groups_allowlist", json={"target_group_id": target}).status_code == 201
    served.service.reset()
    assert client.get(f"{path}/groups_allowlist").json() == before == []


def test_the_seeded_world_has_the_described_roles_and_fixtures() -> None:
    service = prepared_service()
    world, identities = service.world, service.identities
    people = {name: identities.users[actor.id] for name, actor in world.actors.items()}
    project, hidden = (
        identities.projects[world.one("project").id],
        identities.groups[world.one("hidden_group").id],
    )
    for name, actor in world.actors.items():
        expected = {"none": "NONE", "admin": "OWNER"}.get(actor.role, actor.role.upper())
        assert identities.role_in(people[name], project).name == expected, name
    assert identities.role_in(people["maintainer"], identities.projects[world.one("outsider_project").id]) == 0
    assert not identities.can_see(people["maintainer"], hidden)
    assert identities.can_see(people["owner"], hidden)
    assert identities.projects[world.one("empty_project").id].default_branch is None
    assert world.one("merge_request").extra["author_id"] != world.actors["approver"].id
    assert len(world.many("allowlist_projects")) >= 4
    assert len(world.many("allowlist_groups")) >= 4
    assert people["foreign_bot"].bot is not None
    assert people["foreign_bot"].bot.subject_id == world.one("outsider_project").id


def test_concurrent_writers_do_not_lose_each_others_writes(served: Served) -> None:
    path = SCOPE.format(served.id_of("project"))
    targets = [target.id for target in served.service.world.many("allowlist_groups")]
    client = served.acting_as("maintainer")
    with ThreadPoolExecutor(len(targets)) as pool:
        codes = pool.map(
            lambda target: client.post(f"{path}/groups_allowlist", json={"target_group_id": target}).status_code,
            targets,
        )
        assert set(codes) == {201}
    assert {group["id"] for group in client.get(f"{path}/groups_allowlist").json()} == set(targets)


def test_requests_can_be_logged(served: Served) -> None:
    entries: list[LogEntry] = []
    served.service.request_log = entries.append
    try:
        served.acting_as("guest").get("/version?x=1")
        served.anonymous().get("/nothing")
        deadline = time.monotonic() + 5
        while len(entries) < 2 and time.monotonic() < deadline:
            served.anonymous().get("/version")
    finally:
        served.service.request_log = None
    first, second = entries[:2]
    assert (first.method, first.path, first.status, first.caller) == (
        "GET",
        "/api/v4/version?x=1",
        200,
        "world-1-guest",
    )
    assert (second.status, second.caller) == (404, "")


def test_a_server_starts_within_a_second_delays_as_requested_and_frees_its_port() -> None:
    started = time.perf_counter()
    server = EmbeddedServer(prepared_service(), latency_ms=50).start()
    ready = time.perf_counter()
    try:
        assert ready - started < 1
        assert httpx.get(f"{server.base_url}/api/v4/version").status_code == 401
        assert time.perf_counter() - ready >= 0.05
    finally:
        server.stop()
        server.stop()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", server.port))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            EmbeddedServer(prepared_service(), port=server.port).start()


def test_the_service_declares_an_attribute_for_every_area() -> None:
    declared = {name: kind for name, kind in Service.__annotations__.items() if not name.startswith("_")}
    assert declared == {area.behaviour.name: area.behaviour.__name__ for area in AREAS}
