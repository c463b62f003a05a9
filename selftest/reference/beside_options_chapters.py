"""Chapters of the story that shows foreign faults: one parameter beside another, names of a project, second ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from selftest.reference.story import Story


def slips_beside_options(story: Story) -> None:
    """Tell all of them."""
    for chapter in (_required, _completions, _system, _pages, _configuration, _settings, _heads, _copies, _channels):
        chapter(story)


def _project(story: Story, name: str = "project") -> str:
    return f"/projects/{story.world.one(name).id}"


def _by_path(story: Story, name: str = "project") -> str:
    return f"/projects/{quote(story.world.one(name).path or '', safe='')}"


def _review(story: Story, name: str) -> str:
    return f"{_project(story)}/merge_requests/{story.world.one(name).extra['iid']}"


def _required(story: Story) -> None:
    rules = f"{_project(story)}/approval_rules"
    made = story.call("maintainer", "POST", rules, {"name": "Of a number", "approvals_required": 1})
    names = [story.world.actors["approver"].username]
    story.call("maintainer", "PUT", f"{rules}/{made['id']}", {"name": "Of no number", "usernames": names})


def _completions(story: Story) -> None:
    path, file = story.world.one("project").path or "", {"file_name": "a.py", "content_above_cursor": "a = "}
    body = {"current_file": file, "intent": "unheard-of", "project_path": path}
    story.call("admin", "POST", "/code_suggestions/completions", body)
    last = path.rpartition("/")[2]
    story.call("admin", "POST", "/code_suggestions/enabled", {"project_path": f"no-such-group/{last}"})


def _system(story: Story) -> None:
    rules = f"{_review(story, 'code_owner_merge_request')}/approval_rules"
    listed: Any = story.read(rules)
    number = next(rule["id"] for rule in listed if rule["rule_type"] == "code_owner")
    story.call("maintainer", "PUT", f"{rules}/{number}", {"name": "Of nobody"})


def _pages(story: Story) -> None:
    rules = f"{_review(story, 'second_merge_request')}/approval_rules"
    made = [
        story.call("maintainer", "POST", rules, {"name": name, "approvals_required": 20, **_named(story)})
        for name in ("One of two", "Other of two")
    ]
    story.call("maintainer", "GET", f"{rules}?per_page=1")
    story.call("maintainer", "PUT", f"{rules}/{made[0]['id']}", {"name": "Renamed"})
    story.call("maintainer", "GET", f"{_review(story, 'second_merge_request')}/approval_state")
    for one in made:
        story.call("maintainer", "DELETE", f"{rules}/{one['id']}")


def _named(story: Story) -> dict[str, Any]:
    return {"user_ids": [story.world.actors["approver"].id]}


def _configuration(story: Story) -> None:
    number, path = f"{_project(story)}/approvals", f"{_by_path(story)}/approvals"
    for flag in (True, False):
        story.call("maintainer", "GET", path)
        story.call("maintainer", "POST", number, {"merge_requests_disable_committers_approval": flag})
    story.call("maintainer", "GET", path)


def _settings(story: Story) -> None:
    group = f"/groups/{story.world.one('group').id}/merge_request_approval_setting"
    for flag in (False, True):
        own = f"{_by_path(story)}/merge_request_approval_setting"
        story.call("maintainer", "PUT", own, {"allow_author_approval": flag})
        story.call("owner", "GET", group)


def _heads(story: Story) -> None:
    review, actors = _review(story, "second_merge_request"), ("approver", "second_approver")
    for actor in actors:
        story.call(actor, "POST", f"{review}/approve")
    story.call("maintainer", "POST", f"{review}/approve", {"sha": "0" * 40})
    for actor in (*actors, "maintainer"):
        story.call(actor, "POST", f"{review}/unapprove")


def _copies(story: Story) -> None:
    groups = [story.world.one(name).id for name in ("approver_group", "second_approver_group")]
    body = {"name": "Of two groups", "approvals_required": 1}
    source = story.call("maintainer", "POST", f"{_project(story)}/approval_rules", {**body, "group_ids": groups})
    own = f"{_review(story, 'second_merge_request')}/approval_rules"
    copy = {**body, "approvals_required": 20, "approval_project_rule_id": source["id"]}
    story.call("maintainer", "POST", own, copy)


def _channels(story: Story) -> None:
    body = {"webhook": "https://chat.example.com/hooks/releases", "push_channel": "Releases"}
    place = f"{_project(story)}/integrations/slack"
    story.call("maintainer", "PUT", place, body)
    story.call("maintainer", "GET", place)
