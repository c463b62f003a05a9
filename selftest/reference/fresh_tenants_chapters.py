"""Chapters of the story about what shows at a neighbour of what was written, and in every call alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.reference.server import ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from selftest.reference.story import Story

_FILE = {"file_name": "a.py", "content_above_cursor": "x = "}
_COMPLETIONS = "/code_suggestions/completions"


def slips_between_neighbours(story: Story) -> None:
    """Tell what happens beside the place of a call, before it or after it."""
    _scopes(story)
    _completions(story)
    _integrations(story)
    _versions(story)
    _everywhere(story)


def _with(story: Story, headers: Mapping[str, str], method: str, path: str, body: Any) -> None:
    """Send a call with headers of its own, and remember what it is answered but for what moves."""
    content = json.dumps(body).encode()
    status, _, _ = ask(story.service, method, f"/api/v4{path}", "", headers, content)
    story.remember(f"{method} {path} {body} -> {status}")


def _place(story: Story, name: str, number: int | None = None) -> str:
    found = story.world.one(name) if number is None else story.world.many(name)[number]
    return f"/projects/{found.id}"


def _scopes(story: Story) -> None:
    scope, beside = (f"{_place(story, 'allowlist_projects', number)}/job_token_scope" for number in (0, 2))
    targets = [one.id for one in story.world.many("allowlist_projects")]
    groups = [one.id for one in story.world.many("allowlist_groups")]
    twin = next((number for number in targets if number in story.service.identities.groups), targets[2])
    story.call("maintainer", "GET", scope)
    story.call("owner", "GET", scope)
    for enabled in (False, False):
        story.call("owner", "PATCH", scope, {"enabled": enabled})
        for actor in ("maintainer", "owner"):
            story.call(actor, "GET", scope)
            story.call(actor, "GET", beside)
    for number in (*targets[2:], twin):
        story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": number})
    for number in (*groups, twin):
        for each in (scope, beside):
            story.call("maintainer", "POST", f"{each}/groups_allowlist", {"target_group_id": number})
    story.call("maintainer", "GET", scope)
    story.call("maintainer", "POST", f"{beside}/allowlist", {"target_project_id": targets[2] + 2**32})

    def look() -> None:
        for each in (scope, beside):
            for name in ("allowlist", "groups_allowlist"):
                for query in ("page=1&per_page=2", "page=2&per_page=2", "page=9&per_page=2", "page=1&per_page=50"):
                    story.call("maintainer", "GET", f"{each}/{name}?{query}")

    look()
    developed = f"{_place(story, 'project')}/job_token_scope"
    target = story.world.one("project").id
    maintained = story.service.identities
    project = maintained.projects[targets[2]]
    developer = maintained.users[story.world.actors["developer"].id]
    story.call("maintainer", "POST", f"{developed}/allowlist", {"target_project_id": targets[2]})
    before = dict(maintained.roles)
    maintained.add_member(project, developer, type(maintained.role_in(developer, project)).MAINTAINER)
    story.call("developer", "DELETE", f"{developed}/allowlist/{targets[2]}")
    maintained.roles.clear()
    maintained.roles.update(before)
    story.call("maintainer", "GET", f"/projects/{target}/job_token_scope/allowlist?page=1&per_page=50")
    story.call("maintainer", "DELETE", f"{scope}/allowlist/{twin}")
    look()
    story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{groups[0]}")
    look()


def _completions(story: Story) -> None:
    for body in ({"intent": "generation"}, {"intent": " Generation"}):
        story.call("guest", "POST", _COMPLETIONS, {"current_file": _FILE, **body})
    named = story.world.one("group_enabled_project").path or ""
    group, name = named.rsplit("/", 1)
    for path in (named, f"{group}/nothing", f"{group}x/{name}"):
        story.call("owner", "POST", "/code_suggestions/enabled", {"project_path": path})
    for number in range(70):
        token = story.world.actors["reporter"].token
        _with(story, {"authorization": f"Bearer {token}"}, "POST", _COMPLETIONS, {"current_file": _FILE})
        if number % 2:
            story.call("second_approver", "POST", "/code_suggestions/enabled", {"project_path": named})
    for _ in range(40):
        _with(story, _token(story, "second_approver"), "POST", _COMPLETIONS, {"current_file": _FILE})


def _token(story: Story, actor: str) -> dict[str, str]:
    return {"private-token": story.world.actors[actor].token}


def _integrations(story: Story) -> None:
    one, other = (_place(story, "allowlist_projects", number) for number in (0, 2))
    first, second = f"{one}/integrations", f"{other}/integrations"
    tracker = {"issues_url": "https://a.example.com/i?a=1&b=2", "project_url": "https://a.example.com/p"}
    slack: dict[str, Any] = {"webhook": "https://hooks.example.com/n"}

    def look() -> None:
        for path in (first, f"{one}/services", second, f"{first}/slack", f"{second}/slack", f"{first}/redmine"):
            story.call("maintainer", "GET", path)

    story.call("maintainer", "PUT", f"{first}/redmine", {**tracker, "new_issue_url": "https://a.example.com/n"})
    told = {"channel": "here", "labels_to_be_notified": "~bug", "push_events": True}
    for body in (told, {"labels_to_be_notified": ""}, {"push_events": False, "branches_to_be_notified": "none"}):
        story.call("maintainer", "PUT", f"{first}/slack", {**slack, **body})
        look()
    kind = story.service.integrations.kind("slack")
    quiet = dict.fromkeys(story.service.integrations.event_parameters(kind), False)
    story.call("maintainer", "PUT", f"{first}/slack", {**slack, **quiet})
    look()
    story.call("maintainer", "PUT", f"{second}/slack", slack)
    look()
    for _ in range(2):
        story.call("maintainer", "DELETE", f"{first}/slack")
        look()
        story.call("maintainer", "PUT", f"{first}/slack", slack)
        look()
    story.call("maintainer", "DELETE", f"{first}/slack")
    hooks = [("maintainer", "PUT", f"{first}/{slug}", slack) for slug in ("discord", "pumble")]
    story.at_once(*hooks)
    listed = story.read(first)
    story.remember(f"both of {sorted(entry['slug'] for entry in listed)}")


def _versions(story: Story) -> None:
    project = _place(story, "project")
    for query in ("path=nowhere", "path=nowhere&recursive=true"):
        story.call("maintainer", "GET", f"{project}/repository/tree?{query}")
    story.call("maintainer", "GET", f"{project}/merge_request_approval_setting")
    rule = {"name": "Two", "approvals_required": 1, "group_ids": [story.world.one("approver_group").id]}
    rule["user_ids"] = [story.world.actors[name].id for name in ("approver", "second_approver")]
    story.call("maintainer", "POST", f"{project}/approval_rules", rule)
    story.call("maintainer", "GET", f"{project}/approval_rules?page=1&per_page=50")
    story.call("maintainer", "GET", f"{project}/approvals")


def _everywhere(story: Story) -> None:
    path = (story.world.one("subgroup_project").path or "").replace("/", "%2F")
    story.call("maintainer", "GET", f"/projects/{path}/job_token_scope")
