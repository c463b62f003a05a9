"""The rows of the version table whose endpoints the specification only names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.reference import Choices

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from selftest.reference.conftest import Served

    Serve = Callable[..., Served]

LATEST = "19.0"


def walked(client: httpx.Client, path: str) -> list[int]:
    """Follow the links from a first page of three entries to the last page."""
    found: list[int] = []
    url: str | None = f"{path}?per_page=3"
    while url:
        answer = client.get(url)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()) <= 3
        found += [entry["id"] for entry in answer.json()]
        url = answer.links.get("next", {}).get("url")
    return found


def made_events(served: Served) -> list[int]:
    return list(served.service.audit_events.events)


@pytest.mark.parametrize(
    ("path", "last_with_pages", "first_without"),
    [("/users", "16.11", "17.0"), ("/audit_events", "17.11", "18.0")],
)
def test_pages_by_number_are_replaced_by_pages_by_cursor(
    serve: Serve, path: str, last_with_pages: str, first_without: str
) -> None:
    for version, keyset in ((last_with_pages, False), (first_without, True), (LATEST, True)):
        served = serve(version)
        client = served.acting_as("admin")
        expected = list(served.service.identities.users) if path == "/users" else made_events(served)
        assert len(expected) > 6
        assert walked(client, path) == expected
        first = client.get(path, params={"per_page": 3})
        assert ("cursor=" in first.headers["link"]) is keyset
        assert ("x-page" in first.headers) is not keyset
        second = client.get(path, params={"page": 2, "per_page": 3})
        assert second.status_code == (405 if keyset else 200)


def test_by_choice_a_page_number_is_ignored(serve: Serve) -> None:
    client = serve("17.0", Choices(offset_page_refused_code=None)).acting_as("admin")
    assert client.get("/users?page=2&per_page=2").json() == client.get("/users?per_page=2").json()


def test_a_cursor_works_in_descending_order_and_an_invalid_one_is_refused(serve: Serve) -> None:
    client = serve("17.0").acting_as("guest")
    ids = [user["id"] for user in client.get("/users", params={"sort": "desc", "per_page": 4}).json()]
    assert ids == sorted(ids, reverse=True)
    following = client.get(client.get("/users?sort=desc&per_page=4").links["next"]["url"]).json()
    assert following[0]["id"] == ids[-1] - 1
    for cursor in ("x", "====", "eHg=", "%ff"):
        assert client.get(f"/users?cursor={cursor}").status_code == 400


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/projects/{}/feature_flags", "version"),
        ("/projects/{}/packages", "pipelines"),
    ],
)
def test_a_field_of_listed_entries_is_removed_in_17_0(serve: Serve, path: str, field: str) -> None:
    seen = {}
    for version in ("16.11", "17.0", LATEST):
        served = serve(version)
        entries = served.acting_as("developer").get(path.format(served.id_of("project"))).json()
        assert entries
        seen[version] = {field in entry for entry in entries}
    assert seen == {"16.11": {True}, "17.0": {False}, LATEST: {False}}


def test_member_roles_belong_to_the_instance_from_17_0(serve: Serve) -> None:
    body = {"name": "Auditor", "base_access_level": 20}
    for version, instance in (("16.11", False), ("17.0", True), (LATEST, True)):
        served = serve(version)
        admin, owner = served.acting_as("admin"), served.acting_as("owner")
        of_group = f"/groups/{served.id_of('group')}/member_roles"
        assert owner.post(of_group, json=body).status_code == (404 if instance else 201)
        made = admin.post("/member_roles", json=body)
        assert made.status_code == (201 if instance else 404)
        assert owner.post("/member_roles", json=body).status_code == (403 if instance else 404)
        if instance:
            assert [role["name"] for role in admin.get("/member_roles").json()] == ["Auditor"]
            assert admin.delete(f"/member_roles/{made.json()['id']}").status_code == 204
            assert admin.get("/member_roles").json() == []
            assert admin.delete(f"/member_roles/{made.json()['id']}").status_code == 404


def test_member_roles_and_audit_events_of_the_instance_are_for_administrators(served: Served) -> None:
    for path in ("/member_roles", "/audit_events"):
        assert served.acting_as("owner").get(path).status_code == 403


def test_the_tree_of_a_missing_path_is_not_found_from_17_7_on(serve: Serve) -> None:
    for version, status in (("17.6", 200), ("17.7", 404), (LATEST, 404)):
        served = serve(version)
        client, path = served.acting_as("maintainer"), f"/projects/{served.id_of('project')}/repository/tree"
        missing = client.get(path, params={"path": "no-such-folder"})
        assert missing.status_code == status
        if status == 200:
            assert missing.json() == []
        assert [entry["name"] for entry in client.get(path).json()] == ["CODEOWNERS", "README.md"]
        branch = str(served.service.world.one("merge_request").extra["source_branch"])
        file = {"branch": branch, "content": "New.\n", "commit_message": "Add a file"}
        assert client.post(path.replace("tree", "files/changes%2Fnew.md"), json=file).is_success
        nested = client.get(path, params={"ref": branch, "path": "changes"}).json()
        assert [(entry["type"], entry["path"]) for entry in nested] == [("blob", "changes/new.md")]
        recursive = client.get(path, params={"ref": branch, "recursive": True}).json()
        assert {("changes", "tree"), ("changes/new.md", "blob")} <= {
            (entry["path"], entry["type"]) for entry in recursive
        }
        assert client.get(path, params={"ref": "no-such-branch"}).status_code == 404


def test_an_audit_event_shows_who_changed_which_project(serve: Serve) -> None:
    served = serve("18.0")
    project, outsider = served.id_of("project"), served.service.world.actors["outsider"].id
    before = made_events(served)
    member = {"user_id": outsider, "access_level": 10}
    assert served.acting_as("owner").post(f"/projects/{project}/members", json=member).is_success
    events = served.acting_as("admin").get("/audit_events?sort=desc&per_page=100").json()
    (event,) = [event for event in events if event["id"] not in before]
    assert (event["author_id"], event["entity_id"]) == (served.service.world.actors["owner"].id, project)


def test_a_project_shows_its_job_token_attribute_until_17_0(serve: Serve) -> None:
    kept = Choices(ci_job_token_scope_enabled_from_17_0=True)
    for version, choices, shown in (("16.11", Choices(), True), ("17.0", Choices(), False), ("17.0", kept, True)):
        served = serve(version, choices)
        project = served.acting_as("guest").get(f"/projects/{served.id_of('project')}").json()
        assert ("ci_job_token_scope_enabled" in project) is shown


def test_a_password_becomes_a_token_until_19_0(serve: Serve) -> None:
    for version, granted in (("18.11", True), (LATEST, False)):
        served = serve(version)
        actor = served.service.world.actors["developer"]
        form = {"grant_type": "password", "username": actor.username, "password": actor.password}
        url = f"{served.server.base_url}/oauth/token"
        answer = served.anonymous().post(url, data=form)
        assert answer.status_code == (200 if granted else 400)
        if granted:
            bearer = {"Authorization": f"Bearer {answer.json()['access_token']}"}
            assert served.anonymous().get("/user", headers=bearer).json()["username"] == actor.username
        else:
            assert answer.json() == {"error": "unsupported_grant_type"}
        for wrong in ({"password": "wrong"}, {"username": "nobody"}, {"grant_type": "magic"}):
            assert served.anonymous().post(url, data={**form, **wrong}).status_code == 400
        assert served.anonymous().post("/oauth/token", data=form).status_code == 404


def test_runners_register_with_a_token_that_a_reset_replaces(served: Served) -> None:
    project, group = served.id_of("project"), served.id_of("group")
    resets = {
        "admin": "/runners/reset_registration_token",
        "maintainer": f"/projects/{project}/runners/reset_registration_token",
        "owner": f"/groups/{group}/runners/reset_registration_token",
    }
    for actor, path in resets.items():
        client = served.acting_as(actor)
        first, second = (client.post(path).json()["token"] for _ in range(2))
        assert client.post("/runners", json={"token": first}).status_code == 403
        assert client.post("/runners", json={"token": second}).status_code == 201
        assert served.acting_as("developer").post(path).status_code == 403


def test_by_choice_runner_registration_is_gone(serve: Serve) -> None:
    served = serve(LATEST, Choices(runner_registration_gone=True))
    client = served.acting_as("admin")
    paths = [
        f"{place}/runners/reset_registration_token"
        for place in ("", f"/projects/{served.id_of('project')}", f"/groups/{served.id_of('group')}")
    ]
    assert {client.post(path, json={"token": "x"}).status_code for path in ("/runners", *paths)} == {410}


def test_registration_endpoints_require_a_caller_like_all_others(served: Served) -> None:
    assert served.anonymous().post("/runners", json={"token": "x"}).status_code == 401
