"""Chapters of the story that shows foreign faults: allowlists, exports and integrations, each beside another one."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftest.reference.story import Story

#: How many completions a user may ask for within a minute.
_COMPLETIONS = 60

#: Longer than a call takes to arrive, and shorter than a faulty service waits between reading and writing.
_MEANWHILE_SECONDS = 0.01


def slips_of_places(story: Story) -> None:
    """Tell all of them."""
    for chapter in (
        _pages,
        _both_sides,
        _inside,
        _limit,
        _removals,
        _completions,
        _files,
        _batches,
        _progress,
        _flags,
        _texts,
        _older_path,
        _required,
        _disabled,
    ):
        chapter(story)


def _project(story: Story, name: str) -> str:
    return f"/projects/{story.world.one(name).id}"


def _scope(story: Story) -> str:
    return f"{_project(story, 'guarded_project')}/job_token_scope"


def _during(story: Story, first: tuple[str, str, Any], second: tuple[str, str, Any]) -> None:
    """Send a call as an owner, and another one before it may be answered; the answers are not remembered."""

    def send(method: str, path: str, body: Any) -> None:
        story.client.request(method, path, json=body, headers={"private-token": story.world.actors["owner"].token})

    story.client.get("/version")  # connected before it begins
    earlier = threading.Thread(target=send, args=first)
    earlier.start()
    time.sleep(_MEANWHILE_SECONDS)
    send(*second)
    earlier.join()


def _pages(story: Story) -> None:
    groups = f"{_scope(story)}/groups_allowlist"
    numbers = [group.id for group in story.world.many("allowlist_groups")[:3]]
    for number in numbers:
        story.call("owner", "POST", groups, {"target_group_id": number})
    for page in (1, 2):
        story.call("owner", "GET", f"{groups}?page={page}&per_page=2")
    for number in numbers:
        story.call("owner", "DELETE", f"{groups}/{number}")


def _both_sides(story: Story) -> None:
    target = story.world.many("allowlist_projects")[0].id
    story.call("owner", "POST", f"{_scope(story)}/allowlist", {"target_project_id": target})
    story.call("admin", "GET", f"/projects/{target}/job_token_scope/allowlist")
    story.call("owner", "GET", f"{_scope(story)}/allowlist")
    story.call("owner", "DELETE", f"{_scope(story)}/allowlist/{target}")
    story.call("owner", "GET", _scope(story))


def _inside(story: Story) -> None:
    groups = f"{_scope(story)}/groups_allowlist"
    outer, inner = (story.world.one(name).id for name in ("group", "subgroup"))
    for number in (outer, inner):
        story.call("owner", "POST", groups, {"target_group_id": number})
    story.call("owner", "GET", groups)
    story.call("owner", "DELETE", f"{groups}/{outer}")
    story.call("owner", "GET", groups)
    story.call("owner", "DELETE", f"{groups}/{inner}")


def _limit(story: Story) -> None:
    scope = _scope(story)
    for project in story.world.many("allowlist_projects")[:3]:
        added = "POST", f"{scope}/allowlist", {"target_project_id": project.id}
        _during(story, ("PATCH", scope, {"enabled": True}), added)
        story.count(f"{scope}/allowlist")
        story.call("owner", "DELETE", f"{scope}/allowlist/{project.id}")


def _removals(story: Story) -> None:
    allowlist = f"{_scope(story)}/allowlist"
    numbers = [project.id for project in story.world.many("allowlist_projects")[1:3]]
    for number in numbers:
        story.call("owner", "POST", allowlist, {"target_project_id": number})
    first, second = (f"{allowlist}/{number}" for number in numbers)
    story.at_once(("owner", "DELETE", first, None), ("admin", "DELETE", second, None))
    story.count(allowlist)


def _completions(story: Story) -> None:
    path = story.world.one("subgroup").path
    story.call("developer", "POST", "/code_suggestions/enabled", {"project_path": path})
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    wanted = {"current_file": file, "intent": "generation", "stream": True}
    story.call("developer", "POST", "/code_suggestions/completions", wanted)


def _files(story: Story) -> None:
    """Ask for one completion too many, of as many files, for a user who has not asked before."""
    for number in range(_COMPLETIONS + 1):
        file = {"file_name": f"{number}.py", "content_above_cursor": "def f():"}
        story.call("reporter", "POST", "/code_suggestions/completions", {"current_file": file})


def _batches(story: Story) -> None:
    export = f"/groups/{story.world.one('export_group').id}/export_relations"
    story.call("owner", "POST", export, {"batched": True})
    story.until_finished(f"{export}/status")
    for number in (0, 1):
        story.call("owner", "GET", f"{export}/download?relation=labels&batched=true&batch_number={number}")


def _progress(story: Story) -> None:
    """Look at an export at once, and say only what holds however far it is."""
    export = f"/groups/{story.world.one('export_group').id}/export_relations"
    story.call("owner", "POST", export)
    dated = all(one["updated_at"] for one in story.read(f"{export}/status"))
    story.remember(f"All have a time: {dated}")
    story.until_finished(f"{export}/status")
    known = all(one["status"] in {-1, 0, 1} for one in story.read(f"{export}/status"))
    story.remember(f"All have a known status: {known}")


def _flags(story: Story) -> None:
    slack = f"{_project(story, 'guarded_project')}/integrations/slack"
    for value in (False, True, False):
        wanted = {"webhook": "https://hooks.example.com/d", "push_events": value, "vulnerability_events": value}
        story.call("owner", "PUT", slack, wanted)
        story.call("owner", "GET", slack)


def _texts(story: Story) -> None:
    integrations = f"{_project(story, 'guarded_project')}/integrations"
    slack = {"webhook": "https://hooks.example.com/d", "channel": "x", "username": "bot"}
    story.call("owner", "PUT", f"{integrations}/slack", slack)
    story.call("owner", "PUT", f"{integrations}/mattermost", {**slack, "channel": "y", "username": "other"})
    story.call("maintainer", "GET", f"{integrations}/slack")
    story.call("owner", "PUT", f"{integrations}/slack", {"channel": ""})
    story.call("owner", "GET", f"{integrations}/slack")


def _older_path(story: Story) -> None:
    services = f"{_project(story, 'guarded_project')}/services"
    story.call("owner", "PUT", f"{services}/gitlab-slack-application", {"push_events": True})
    tracker = {"url": "https://jira.example.com", "password": "a secret", "active": False}
    story.call("owner", "PUT", f"{services}/jira", tracker)
    story.call("owner", "GET", services)


def _required(story: Story) -> None:
    integrations = f"{_project(story, 'guarded_project')}/integrations"
    tracker = dict.fromkeys(("new_issue_url", "issues_url", "project_url"), "https://redmine.example.com")
    for name in tracker:
        rest = {other: value for other, value in tracker.items() if other != name}
        story.call("owner", "PUT", f"{integrations}/redmine", rest)
    jenkins = {"jenkins_url": "https://jenkins.example.com", "project_name": "p", "enable_ssl_verification": False}
    story.call("owner", "PUT", f"{integrations}/jenkins", jenkins)
    story.call("owner", "GET", f"{integrations}/jenkins")


def _disabled(story: Story) -> None:
    integrations = f"{_project(story, 'guarded_project')}/integrations"
    hook = {"webhook": "https://hooks.example.com/e"}
    story.call("owner", "DELETE", f"{integrations}/slack")
    for slug in ("mattermost", "hangouts-chat"):
        story.call("owner", "PUT", f"{integrations}/{slug}", hook)
        story.call("owner", "GET", integrations)
    for _ in range(3):
        story.call("owner", "PUT", f"{integrations}/slack", hook)
        _during(story, ("PUT", f"{integrations}/mattermost", hook), ("DELETE", f"{integrations}/slack", None))
        story.count(integrations)
