"""Chapters of the story about slips in a key or a join: what shares a group, a name, a beginning, or a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selftest.reference.story import Story

_COMPLETIONS = "/code_suggestions/completions"
_HOOK = {"webhook": "https://hooks.example.com/l"}
#: How often a rule is changed while others are deleted: whether the change came first is nobody's choice.
_ROUNDS = 5


def latest_slips(story: Story) -> None:
    """Tell all of them."""
    for chapter in (_scopes, _completions, _rules, _settings, _integrations, _of_a_user, _deleted_meanwhile):
        chapter(story)


def _scopes(story: Story) -> None:
    lists = f"/projects/{story.world.one('fresh_project').id}/job_token_scope/groups_allowlist"
    for name in ("subgroup", "group", "sibling_group"):
        story.call("owner", "POST", lists, {"target_group_id": story.world.one(name).id})
    story.call("owner", "GET", lists)
    story.call("owner", "GET", f"{lists}?per_page=1&page=3")


def _completions(story: Story) -> None:
    file = {"file_name": "a.py", "content_above_cursor": "# Grüße\n"}
    story.call("owner", "POST", _COMPLETIONS, {"current_file": file})


def _rules(story: Story) -> None:
    both = story.world.actors["approver"]
    rule = {"name": "In both lists", "approvals_required": 1, "user_ids": [both.id], "usernames": [both.username]}
    story.call("maintainer", "POST", f"/projects/{story.world.one('fresh_project').id}/approval_rules", rule)


def _settings(story: Story) -> None:
    place = f"/projects/{story.world.one('fresh_project').id}/merge_request_approval_setting"
    story.call("maintainer", "PUT", place, {"allow_author_approval": None, "allow_committer_approval": True})
    story.call("maintainer", "GET", place)


def _integrations(story: Story) -> None:
    place = f"/projects/{story.world.one('fresh_project').id}/integrations"
    story.call("maintainer", "PUT", f"{place}/slack", _HOOK)
    story.call("maintainer", "PUT", f"{place}/slack-slash-commands", {"token": "conformance"})
    story.call("maintainer", "DELETE", f"{place}/slack")
    story.call("maintainer", "GET", place)


def _of_a_user(story: Story) -> None:
    made = story.call("owner", "POST", "/projects", {"name": "latest"})
    story.call("owner", "POST", "/code_suggestions/enabled", {"project_path": made["path_with_namespace"]})
    story.call("owner", "GET", f"/projects/{made['id']}/merge_request_approval_setting")


def _deleted_meanwhile(story: Story) -> None:
    rules = f"/projects/{story.world.one('fresh_project').id}/approval_rules"
    for _ in range(_ROUNDS):
        rule = {"name": "Of several", "approvals_required": 1}
        staying, *going = (story.call("maintainer", "POST", rules, rule)["id"] for _ in range(4))
        change = ("maintainer", "PUT", f"{rules}/{staying}", rule)
        story.at_once(change, *(("owner", "DELETE", f"{rules}/{number}", None) for number in going))
    story.count(rules)
