"""A run can be prepared through the API alone."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx

    from selftest.reference.conftest import Served


def made(answer: httpx.Response) -> dict[str, object]:
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert isinstance(body, dict)
    return body


def with_token(served: Served, token: object) -> httpx.Client:
    client = served.anonymous()
    client.headers["PRIVATE-TOKEN"] = str(token)
    return client


def new_user(served: Served, name: str) -> tuple[int, httpx.Client]:
    """Create a user as an administrator does, and return a client with the user's own token."""
    admin = served.acting_as("admin")
    user = made(
        admin.post(
            "/users", json={"username": name, "name": name, "email": f"{name}@example.com", "password": "long enough"}
        )
    )
    token = made(admin.post(f"/users/{user['id']}/personal_access_tokens", json={"name": "run", "scopes": ["api"]}))
    return int(str(user["id"])), with_token(served, token["token"])


def test_a_run_is_prepared_with_only_an_administrators_token(served: Served) -> None:
    _, owner = new_user(served, "boss")
    developer_id, developer = new_user(served, "hand")
    group = made(owner.post("/groups", json={"name": "Work", "path": "work"}))
    project = made(
        owner.post(
            "/projects",
            json={"name": "Line", "path": "line", "namespace_id": group["id"], "initialize_with_readme": True},
        )
    )
    path = f"/projects/{project['id']}"
    assert (project["default_branch"], project["visibility"]) == ("main", "private")
    assert developer.get(path).status_code == 404
    made(owner.post(f"{path}/members", json={"user_id": developer_id, "access_level": 30}))
    assert developer.get("/projects/work%2Fline").json()["id"] == project["id"]

    made(developer.post(f"{path}/repository/branches", json={"branch": "change", "ref": "main"}))
    commit = {"branch": "change", "content": "x", "commit_message": "Add a file"}
    made(developer.post(f"{path}/repository/files/docs%2Fone.md", json=commit))
    merge_request = made(
        developer.post(
            f"{path}/merge_requests",
            json={"source_branch": "change", "target_branch": "main", "title": "One file", "description": "Why"},
        )
    )
    head = owner.get(f"{path}/repository/branches/change").json()["commit"]["id"]
    assert merge_request["sha"] == head
    made(owner.post(f"{path}/protected_branches", json={"name": "change", "push_access_level": 40}))

    bot = made(owner.post(f"{path}/access_tokens", json={"name": "bot", "scopes": ["api"], "access_level": 40}))
    approvals = f"{path}/merge_requests/{merge_request['iid']}"
    assert owner.post(f"{approvals}/approve", json={"sha": head}).is_success
    assert owner.put(f"{approvals}/reset_approvals").status_code == 401
    assert with_token(served, bot["token"]).put(f"{approvals}/reset_approvals").is_success

    assert owner.delete(path).status_code == 202
    assert owner.get(path).status_code == 404
    assert owner.delete(f"/groups/{group['id']}").status_code == 202
    assert served.acting_as("admin").delete(f"/users/{developer_id}?hard_delete=true").status_code == 204
    assert developer.get("/user").status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/users"), ("DELETE", "/users/5"), ("POST", "/users/5/personal_access_tokens")],
)
def test_only_administrators_create_users_and_their_tokens(served: Served, method: str, path: str) -> None:
    body = {"username": "x", "name": "x", "email": "x@example.com", "password": "long enough", "scopes": ["api"]}
    users = set(served.service.identities.users)
    assert served.acting_as("owner").request(method, path, json=body).status_code == 403
    assert set(served.service.identities.users) == users


def test_taken_names_and_malformed_values_are_refused(served: Served) -> None:
    admin = served.acting_as("admin")
    user = {"username": "fresh", "name": "Fresh", "email": "fresh@example.com", "password": "long enough"}
    for change, status in (
        ({"username": "world-1-owner"}, 409),
        ({"username": "world-1-sibling-group"}, 409),
        ({"email": "WORLD-1-OWNER@example.com"}, 409),
        ({"password": "short"}, 400),
        ({"username": "two words"}, 400),
        ({"email": "nowhere"}, 400),
        ({"name": " "}, 400),
    ):
        assert admin.post("/users", json={**user, **change}).status_code == status, change
    assert admin.post("/groups", json={"name": "x", "path": "world-1-sibling-group"}).status_code == 409
    assert admin.post("/groups", json={"name": "x", "path": "world-1-owner"}).status_code == 409
    group = served.id_of("group")
    assert admin.post("/projects", json={"name": "project", "namespace_id": group}).status_code == 409
    public = {"name": "open", "namespace_id": group, "visibility": "public"}
    assert admin.post("/projects", json=public).status_code == 400


def test_creating_requires_a_role_in_that_place(served: Served) -> None:
    group, project = served.id_of("group"), served.id_of("project")
    outsider = served.service.world.actors["outsider"].id
    as_actor = served.acting_as
    assert as_actor("reporter").post("/projects", json={"name": "a", "namespace_id": group}).status_code == 403
    made(as_actor("developer").post("/projects", json={"name": "a", "namespace_id": group}))
    assert as_actor("developer").post("/groups", json={"name": "a", "path": "b", "parent_id": group}).status_code == 403
    own = made(as_actor("outsider").post("/projects", json={"name": "mine"}))
    assert own["path_with_namespace"] == "world-1-outsider/mine"
    for actor, level, status in (("developer", 10, 403), ("maintainer", 50, 403), ("maintainer", 40, 201)):
        body = {"user_id": outsider, "access_level": level}
        assert as_actor(actor).post(f"/projects/{project}/members", json=body).status_code == status
    assert as_actor("maintainer").post(f"/groups/{group}/members", json=body).status_code == 403
    assert as_actor("maintainer").delete(f"/projects/{project}").status_code == 403
    token = {"name": "x", "scopes": ["api"], "access_level": 50}
    assert as_actor("maintainer").post(f"/projects/{project}/access_tokens", json=token).status_code == 403
    assert as_actor("maintainer").post(f"/groups/{group}/access_tokens", json=token).status_code == 403
    assert as_actor("developer").get(f"/projects/{project}/access_tokens").status_code == 403


def test_members_are_added_changed_and_removed(served: Served) -> None:
    owner, path = served.acting_as("owner"), f"/groups/{served.id_of('group')}/members"
    outsider = served.service.world.actors["outsider"]
    member = made(owner.post(path, json={"username": outsider.username, "access_level": 20}))
    assert (member["id"], member["access_level"]) == (outsider.id, 20)
    assert owner.post(path, json={"user_id": outsider.id, "access_level": 20}).status_code == 409
    assert owner.post(path, json={"user_id": outsider.id, "access_level": 25}).status_code == 400
    assert owner.put(f"{path}/{outsider.id}", json={"access_level": 30}).json()["access_level"] == 30
    inherited = f"/projects/{served.id_of('project')}/members"
    assert owner.get(f"{inherited}/{outsider.id}").status_code == 404
    everybody = {m["id"]: m["access_level"] for m in owner.get(f"{inherited}/all?per_page=100").json()}
    assert everybody[outsider.id] == 30
    assert owner.delete(f"{path}/{outsider.id}").status_code == 204
    assert owner.get(f"{path}/{outsider.id}").status_code == 404


def test_access_tokens_have_a_scope_and_end_when_revoked(served: Served) -> None:
    owner, path = served.acting_as("owner"), f"/projects/{served.id_of('project')}/access_tokens"
    token = made(owner.post(path, json={"name": "reader", "scopes": ["read_api"], "access_level": 20}))
    bot = with_token(served, token["token"])
    assert bot.get("/user").json()["bot"] is True
    assert bot.post("/projects", json={"name": "x"}).status_code == 403
    listed = next(entry for entry in owner.get(path).json() if entry["id"] == token["id"])
    assert "token" not in listed
    assert (listed["scopes"], listed["access_level"]) == (["read_api"], 20)
    assert owner.delete(f"{path}/{token['id']}").status_code == 204
    assert bot.get("/user").status_code == 401
    assert listed["id"] not in {entry["id"] for entry in owner.get(path).json()}
    changes: tuple[dict[str, object], ...] = (
        {"scopes": []},
        {"scopes": ["everything"]},
        {"expires_at": "2001-01-01"},
        {"expires_at": "soon"},
    )
    for change in changes:
        assert owner.post(path, json={"name": "x", "scopes": ["api"], **change}).status_code == 400


def test_new_files_respect_branches_other_files_and_protection(served: Served) -> None:
    path = f"/projects/{served.id_of('project')}/repository"
    developer = served.acting_as("developer")
    commit = {"branch": "work", "content": "x", "commit_message": "Change\n\nand why"}
    assert developer.post(f"{path}/files/a.md", json=commit).status_code == 400
    made(developer.post(f"{path}/files/a.md", json={**commit, "start_branch": "main"}))
    assert developer.post(f"{path}/files/a.md", json=commit).status_code == 400
    made(developer.post(f"{path}/files/src%2Fb.md", json=commit))
    head = developer.get(f"{path}/branches/work").json()["commit"]
    assert (head["title"], len(head["parent_ids"])) == ("Change", 1)
    tree = developer.get(f"{path}/tree", params={"ref": "work", "recursive": True}).json()
    assert {entry["path"] for entry in tree} == {"CODEOWNERS", "README.md", "a.md", "src", "src/b.md"}
    for broken in (
        {"content": 1.5, "encoding": "base64"},
        {"encoding": "base64"},
        {"branch": "a b"},
        {"content": None},
    ):
        assert developer.post(f"{path}/files/c.md", json={**commit, **broken}).status_code == 400
    assert developer.post(f"{path}/files/..%2Fc.md", json=commit).status_code == 400

    protected = f"/projects/{served.id_of('project')}/protected_branches"
    made(served.acting_as("maintainer").post(protected, json={"name": "work"}))
    assert developer.post(f"{path}/files/c.md", json=commit).status_code == 403
    assert developer.post(protected, json={"name": "free"}).status_code == 403
    maintainer = served.acting_as("maintainer")
    made(maintainer.post(f"{path}/files/c.md", json=commit))
    assert maintainer.delete(f"{path}/branches/work").status_code == 403
    assert maintainer.delete(f"{protected}/work").status_code == 204
    assert maintainer.delete(f"{path}/branches/work").status_code == 204
    assert maintainer.delete(f"{path}/branches/main").status_code == 400


def test_code_owners_sent_in_base64_are_asked_like_those_sent_as_text(served: Served) -> None:
    owner, owns = served.acting_as("owner"), served.service.world.actors["approver"].username
    line = f"/new.md @{owns}"
    for name, sent in (
        ("as-text", {"content": line}),
        ("encoded", {"content": b64encode(line.encode()).decode(), "encoding": "base64"}),
    ):
        project = made(owner.post("/projects", json={"name": name, "initialize_with_readme": True}))
        path = f"/projects/{project['id']}"
        commit = {"branch": "main", "content": "x", "commit_message": "Add a file"}
        made(owner.post(f"{path}/repository/files/CODEOWNERS", json={**commit, **sent}))
        more = {**commit, "branch": "work", "start_branch": "main"}
        made(owner.post(f"{path}/repository/files/new.md", json=more))
        opened = made(
            owner.post(
                f"{path}/merge_requests", json={"source_branch": "work", "target_branch": "main", "title": "New"}
            )
        )
        rules = owner.get(f"{path}/merge_requests/{opened['iid']}/approval_rules").json()
        assert [user["username"] for rule in rules for user in rule["users"]] == [owns], name


def test_a_path_that_is_all_digits_is_given_once(served: Served) -> None:
    admin = served.acting_as("admin")
    for name in ("10000000", "1"):
        made(admin.post("/groups", json={"name": name, "path": name}))
        assert admin.post("/groups", json={"name": name, "path": name}).status_code == 409
        user = {"username": name, "name": name, "email": f"{name}@example.com", "password": "long enough"}
        assert admin.post("/users", json=user).status_code == 409


def test_the_first_commit_of_an_empty_project_creates_its_default_branch(served: Served) -> None:
    owner, path = served.acting_as("owner"), f"/projects/{served.id_of('empty_project')}"
    assert owner.get(path).json()["default_branch"] is None
    assert owner.get(f"{path}/repository/tree").status_code == 404
    made(owner.post(f"{path}/repository/files/a", json={"branch": "trunk", "content": "", "commit_message": "First"}))
    assert owner.get(path).json()["default_branch"] == "trunk"


def test_merge_requests_need_two_branches_and_keep_their_head(served: Served) -> None:
    path = f"/projects/{served.id_of('project')}"
    developer = served.acting_as("developer")
    made(developer.post(f"{path}/repository/branches", json={"branch": "idea", "ref": "main"}))
    body = {"source_branch": "idea", "target_branch": "main", "title": "Idea"}
    opened = made(developer.post(f"{path}/merge_requests", json=body))
    assert developer.post(f"{path}/merge_requests", json=body).status_code == 409
    for change in ({"source_branch": "none"}, {"target_branch": "none"}, {"target_branch": "idea"}, {"title": ""}):
        assert developer.post(f"{path}/merge_requests", json={**body, **change}).status_code == 400
    one = f"{path}/merge_requests/{opened['iid']}"
    assert developer.delete(f"{path}/repository/branches/idea").status_code == 204
    assert developer.get(one).json()["sha"] == opened["sha"]
    assert developer.put(one, json={"state_event": "close"}).json()["state"] == "closed"
    assert opened["iid"] in {m["iid"] for m in developer.get(f"{path}/merge_requests?state=closed").json()}


def test_lists_show_only_what_the_caller_may_see(served: Served) -> None:
    outsider = served.acting_as("outsider")
    for kind in ("projects", "groups"):
        seen = {entry["id"] for entry in outsider.get(f"/{kind}?per_page=100").json()}
        assert served.id_of(kind[:-1]) not in seen
        assert served.id_of(f"public_{kind[:-1]}") in seen
        assert served.id_of(f"outsider_{kind[:-1]}") in seen


def test_deleting_a_user_removes_tokens_memberships_and_personal_projects(served: Served) -> None:
    user_id, user = new_user(served, "leaver")
    project = made(user.post("/projects", json={"name": "mine"}))
    admin = served.acting_as("admin")
    assert admin.delete(f"/users/{user_id}").status_code == 204
    assert admin.get(f"/projects/{project['id']}").status_code == 404
    again, _ = new_user(served, "leaver")
    assert again != user_id
    assert admin.delete(f"/users/{served.service.world.actors['admin'].id}").status_code == 400
