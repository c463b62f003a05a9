from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.reference import Choices
from conformance.reference.choices import Repeat

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route
    from selftest.reference.conftest import Served

LISTS = {"allowlist": "project", "groups_allowlist": "group"}
PROJECT_ENTRY = {
    "id",
    "description",
    "name",
    "name_with_namespace",
    "path",
    "path_with_namespace",
    "created_at",
    "default_branch",
    "tag_list",
    "topics",
    "ssh_url_to_repo",
    "http_url_to_repo",
    "web_url",
    "avatar_url",
    "star_count",
    "last_activity_at",
    "namespace",
}
NAMESPACE = {"id", "name", "path", "kind", "full_path", "parent_id", "avatar_url", "web_url"}


class Scope:
    """The job token scope of one project, as one client sees it."""

    def __init__(self, client: httpx.Client, project: int | str) -> None:
        self.client = client
        self.path = f"/projects/{project}/job_token_scope"

    def limit(self) -> object:
        return self.client.get(self.path).json()["inbound_enabled"]

    def ids(self, name: str) -> set[int]:
        answer = self.client.get(f"{self.path}/{name}", params={"per_page": 100})
        return {entry["id"] for entry in answer.json()}

    def add(self, name: str, target: object) -> httpx.Response:
        return self.client.post(f"{self.path}/{name}", json={f"target_{LISTS[name]}_id": target})

    def remove(self, name: str, target: object) -> httpx.Response:
        return self.client.delete(f"{self.path}/{name}/{target}")


@pytest.fixture
def scope(served: Served) -> Scope:
    return Scope(served.acting_as("maintainer"), served.id_of("project"))


def targets(served: Served, name: str) -> list[int]:
    return [fixture.id for fixture in served.service.world.many(f"allowlist_{LISTS[name]}s")]


def test_the_inbound_limit_is_the_last_value_set(scope: Scope) -> None:
    for enabled in (False, True, True, False):
        answer = scope.client.patch(scope.path, json={"enabled": enabled})
        assert (answer.status_code, answer.content) == (204, b"")
        assert scope.limit() is enabled


@pytest.mark.parametrize("body", [{}, {"enabled": None}, {"enabled": "maybe"}, {"enabled": {}}, {"other": True}])
def test_the_limit_stays_if_enabled_is_missing_or_not_boolean(scope: Scope, body: dict[str, object]) -> None:
    before = scope.limit()
    assert scope.client.patch(scope.path, json=body).status_code == 400
    assert scope.limit() is before


@pytest.mark.parametrize("name", LISTS)
def test_an_added_project_is_listed_until_it_is_removed(served: Served, scope: Scope, name: str) -> None:
    first, second = targets(served, name)[:2]
    before = scope.ids(name)
    added = scope.add(name, first)
    expected = {"source_project_id": served.id_of("project"), f"target_{LISTS[name]}_id": first}
    assert (added.status_code, added.json()) == (201, expected)
    assert scope.add(name, second).status_code == 201
    assert scope.ids(name) == before | {first, second}
    removed = scope.remove(name, first)
    assert (removed.status_code, removed.content) == (204, b"")
    assert scope.ids(name) == before | {second}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("target", [None, "", "abc", 1.5, [], {}, 10**30, -1, 999_999])
def test_an_invalid_target_id_is_refused(scope: Scope, name: str, target: object) -> None:
    before = scope.ids(name)
    assert scope.add(name, target).status_code in {400, 404}
    assert scope.ids(name) == before


@pytest.mark.parametrize("name", LISTS)
def test_by_choice_repeating_is_refused_or_accepted_and_changes_nothing(
    serve: Callable[..., Served], name: str
) -> None:
    for choice, added, removed in ((Repeat.REFUSE, 400, 400), (Repeat.ACCEPT, 201, 204)):
        served = serve(choices=Choices(repeated_addition=choice, absent_removal=choice))
        scope = Scope(served.acting_as("maintainer"), served.id_of("project"))
        target = targets(served, name)[0]
        assert scope.remove(name, target).status_code == removed
        assert scope.add(name, target).status_code == 201
        once = scope.client.get(f"{scope.path}/{name}").json()
        assert scope.add(name, target).status_code == added
        assert scope.client.get(f"{scope.path}/{name}").json() == once


def test_entries_have_the_fields_of_the_specification(served: Served, scope: Scope) -> None:
    project, group = targets(served, "allowlist")[0], targets(served, "groups_allowlist")[0]
    scope.add("allowlist", project)
    scope.add("groups_allowlist", group)
    entries = {entry["id"]: entry for entry in scope.client.get(f"{scope.path}/allowlist").json()}
    entry = entries[project]
    assert entry.keys() >= PROJECT_ENTRY
    assert entry["namespace"].keys() == NAMESPACE
    assert (entry["default_branch"], entry["namespace"]["kind"]) == ("main", "group")
    assert entry["path_with_namespace"].split("/") == [entry["namespace"]["full_path"], entry["path"]]
    (shown,) = scope.client.get(f"{scope.path}/groups_allowlist").json()
    assert shown == {
        "id": group,
        "name": served.service.identities.groups[group].name,
        "web_url": "https://service.example.com/groups/world-1-allowlist-group-1",
    }


def test_every_project_has_its_own_scope(served: Served, scope: Scope) -> None:
    sibling = Scope(scope.client, served.id_of("sibling_project"))
    before = sibling.limit(), sibling.ids("allowlist"), sibling.ids("groups_allowlist")
    scope.client.patch(scope.path, json={"enabled": False})
    for name in LISTS:
        scope.add(name, targets(served, name)[0])
    assert (sibling.limit(), sibling.ids("allowlist"), sibling.ids("groups_allowlist")) == before


@pytest.mark.parametrize("actor", ["developer", "reporter", "guest", "approver", "outsider", "foreign_bot", None])
def test_every_operation_requires_the_maintainer_role(served: Served, scope: Scope, actor: str | None) -> None:
    client = served.acting_as(actor) if actor else served.anonymous()
    refused = Scope(client, served.id_of("project"))
    listed = targets(served, "allowlist")[0]
    scope.add("allowlist", listed)
    scope.add("groups_allowlist", listed)
    before = scope.limit(), scope.ids("allowlist"), scope.ids("groups_allowlist")
    answers = [
        client.get(refused.path),
        client.patch(refused.path, json={"enabled": False}),
        *(client.get(f"{refused.path}/{name}") for name in LISTS),
        *(refused.add(name, targets(served, name)[1]) for name in LISTS),
        *(refused.remove(name, listed) for name in LISTS),
    ]
    expected = {None: 401, "outsider": 404, "foreign_bot": 404}.get(actor, 403)
    assert {answer.status_code for answer in answers} == {expected}
    assert (scope.limit(), scope.ids("allowlist"), scope.ids("groups_allowlist")) == before


def test_a_hidden_target_cannot_be_added_but_can_be_removed(served: Served, scope: Scope) -> None:
    target = served.id_of("hidden_group")
    assert scope.add("groups_allowlist", target).status_code == 404
    assert Scope(served.acting_as("owner"), served.id_of("project")).add("groups_allowlist", target).is_success
    assert scope.remove("groups_allowlist", target).status_code == 204


def test_by_choice_a_project_lists_itself(serve: Callable[..., Served]) -> None:
    for own in (True, False):
        served = serve(choices=Choices(project_in_own_allowlist=own))
        scope = Scope(served.acting_as("maintainer"), served.id_of("project"))
        assert scope.ids("allowlist") == ({served.id_of("project")} if own else set())


def test_the_area_and_its_fields_follow_the_version(serve: Callable[..., Served]) -> None:
    seen: dict[str, object] = {}
    choices = Choices(outbound_enabled_from_18_0=False, inbound_limit_enforced=True)
    for version in ("16.0", "16.1", "17.11", "18.0"):
        served = serve(version, choices)
        scope = Scope(served.acting_as("maintainer"), served.id_of("project"))
        answer = scope.client.get(scope.path)
        refused = scope.client.patch(scope.path, json={"enabled": False}).status_code
        seen[version] = answer.status_code, "outbound_enabled" in answer.json(), refused
    assert seen == {
        "16.0": (404, False, 404),
        "16.1": (200, True, 204),
        "17.11": (200, True, 204),
        "18.0": (200, False, 400),
    }


def test_a_page_is_the_same_whether_or_not_somebody_read_it_before(served: Served) -> None:
    service, scope = served.service, Scope(served.acting_as("maintainer"), served.id_of("project"))
    for target in service.world.many("allowlist_projects"):
        scope.client.post(f"{scope.path}/allowlist", json={"target_project_id": target.id}).raise_for_status()

    def sent() -> bytes:
        return scope.client.get(f"{scope.path}/allowlist").raise_for_status().content

    unseen = sent()
    looked_at: list[object] = []

    def look(_route: Route, _request: Request, response: Response) -> Response:
        looked_at.append(response.content)
        return response

    service.transformers.append(look)
    try:
        assert sent() == unseen
        assert json.loads(unseen) == looked_at[0]
    finally:
        service.transformers.remove(look)


def test_a_changed_project_changes_in_the_page_that_lists_it(served: Served) -> None:
    scope = Scope(served.acting_as("maintainer"), served.id_of("project"))
    path = f"{scope.path}/allowlist"
    target = served.service.world.many("allowlist_projects")[0].id
    scope.client.post(path, json={"target_project_id": target}).raise_for_status()
    before = {entry["id"]: entry for entry in scope.client.get(path).json()}
    identities = served.service.identities
    identities.projects[target] = replace(identities.projects[target], description="Said anew")
    after = {entry["id"]: entry for entry in scope.client.get(path).json()}
    assert after == {**before, target: {**before[target], "description": "Said anew"}}

    def cannot_be_shown(project: object) -> bytes:  # noqa: ARG001 - as the method is called
        raise LookupError("a fault")

    present = served.service.present
    present.limited_project_text = cannot_be_shown  # type: ignore[method-assign] # as a fault does it
    try:
        assert scope.client.get(path).status_code == 500
    finally:
        del present.limited_project_text
    assert scope.client.get(path).status_code == 200


@pytest.mark.parametrize(("version", "parts"), [("18.11", 1), ("19.0", 3)])
def test_job_tokens_are_jwts_from_19_0_on(serve: Callable[..., Served], version: str, parts: int) -> None:
    service = serve(version).service
    project, other = (
        service.identities.projects[service.world.one(name).id] for name in ("project", "sibling_project")
    )
    token = service.job_token_scope.job_token(project)
    assert service.world.one("job_token").extra["token"] == token != service.job_token_scope.job_token(other)
    assert len(token.split(".")) == parts
    if parts == 3:
        header, claims, _ = (base64.urlsafe_b64decode(part + "==") for part in token.split("."))
        assert json.loads(header) == {"alg": "HS256", "typ": "JWT"}
        assert json.loads(claims)["sub"] == f"job_of_project_{project.id}"
