"""Chapters of the story about one export after another, what an undone call leaves, and lists of one or two entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftest.reference.story import Story

_SETTING = "merge_request_approval_setting"


def stories_and_contents(story: Story) -> None:
    """Tell all of them."""
    for chapter in (
        _exports,
        _scopes,
        _completions,
        _configuration,
        _settings,
        _integrations,
        _rules_of_groups,
        _rules_of_projects,
        _copies_of_rules,
        _rules_of_merge_requests,
        _approvals,
    ):
        chapter(story)


def _project(story: Story, name: str) -> str:
    return f"/projects/{story.world.one(name).id}"


def _people(story: Story, *names: str) -> list[int]:
    return [story.world.actors[name].id for name in names]


def _review(story: Story, name: str) -> str:
    """Return a merge request that nobody has approved and that has no rules of its own any more."""
    known = story.world.one(name).extra
    place = f"/projects/{known['project_id']}/merge_requests/{known['iid']}"
    for rule in story.read(f"{place}/approval_rules"):
        story.call("maintainer", "DELETE", f"{place}/approval_rules/{rule['id']}")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    return place


def _exports(story: Story) -> None:
    place, other = (f"/groups/{story.world.one(name).id}/export_relations" for name in ("export_group", "fresh_group"))
    for batched in (True, True, False):
        story.call("owner", "POST", place, {"batched": batched})
        story.until_finished(f"{place}/status")
        story.call("owner", "GET", f"{place}/status")
        for batch in range(1, 5 if batched else 2):
            part = f"&batched=true&batch_number={batch}" if batched else ""
            for relation in ("labels", "members", "milestones"):
                story.call("owner", "GET", f"{place}/download?relation={relation}{part}")
    story.call("owner", "POST", other)
    story.until_finished(f"{other}/status")
    story.call("owner", "GET", f"{place}/download?relation=labels")
    story.call("owner", "GET", f"{place}/status?relation=labels")
    story.call("owner", "GET", f"{place}/status")


def _scopes(story: Story) -> None:
    scope, other = (f"{_project(story, name)}/job_token_scope" for name in ("workbench", "fresh_project"))
    projects = [one.id for one in story.world.many("allowlist_projects")]
    groups = [one.id for one in story.world.many("allowlist_groups")]
    for number in projects[:2]:
        for each in (scope, other):
            story.call("owner", "POST", f"{each}/allowlist", {"target_project_id": number})
    story.call("owner", "GET", f"{scope}/allowlist")
    story.call("owner", "GET", f"{scope}/allowlist?per_page=1")
    story.call("owner", "DELETE", f"{scope}/allowlist/{projects[0]}")
    story.call("owner", "GET", f"{other}/allowlist")
    for enabled in (True, False):
        story.call("owner", "GET", scope)
        story.call("maintainer", "PATCH", scope, {"enabled": enabled})
    story.call("owner", "GET", scope)
    for number in groups[:2]:
        story.call("owner", "POST", f"{scope}/groups_allowlist", {"target_group_id": number})
    story.call("admin", "GET", scope)
    story.call("owner", "DELETE", f"{scope}/groups_allowlist/{groups[0]}")
    story.call("owner", "POST", f"{scope}/groups_allowlist", {"target_group_id": groups[2]})
    story.call("owner", "GET", f"{scope}/groups_allowlist")
    for number in groups:
        story.call("owner", "DELETE", f"{scope}/groups_allowlist/{number}")
    story.call("owner", "GET", f"{scope}/groups_allowlist")


def _completions(story: Story) -> None:
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    for more in ({"stream": True}, {}):
        story.call("author", "POST", "/code_suggestions/completions", {"current_file": file, **more})
    group = (story.world.one("group_enabled_project").path or "").rpartition("/")[0]
    story.call("owner", "POST", "/code_suggestions/enabled", {"project_path": f"{group}/none"})


def _configuration(story: Story) -> None:
    first, other = (_project(story, name) for name in ("workbench", "fresh_project"))
    rule = {"name": "Of approvers", "approvals_required": 1, "user_ids": _people(story, "approver")}
    number = story.call("owner", "POST", f"{first}/approval_rules", rule)["id"]
    story.call("owner", "POST", f"{first}/approvals", {"approvals_before_merge": 3})
    for place in (first, other):
        story.call("owner", "GET", f"{place}/approvals")
    story.call("owner", "DELETE", f"{first}/approval_rules/{number}")


def _settings(story: Story) -> None:
    place, other = (f"{_project(story, name)}/{_SETTING}" for name in ("workbench", "sibling_project"))
    before = story.read(other)["allow_committer_approval"]["value"]
    story.call("owner", "PUT", place, {"allow_committer_approval": not before})
    story.call("owner", "GET", other)
    group = f"/groups/{story.world.one('fresh_group').id}/{_SETTING}"
    for value in (False, True, False, True):
        story.call("owner", "PUT", group, {"allow_committer_approval": value})


def _integrations(story: Story) -> None:
    place = f"{_project(story, 'workbench')}/integrations"
    slack, webhook = f"{place}/slack", {"webhook": "https://hooks.example.com/s"}
    story.call("owner", "PUT", slack, webhook)
    story.call("owner", "PUT", f"{place}/slack-slash-commands", {"token": "T"})
    story.call("owner", "GET", place)
    story.call("owner", "PUT", slack, {**webhook, "push_events": False, "branches_to_be_notified": "some"})
    story.call("owner", "GET", slack)
    port, tracker = {"recipients": "#room", "server_port": 6697}, {"url": "https://t.example.com", "password": "p"}
    story.call("owner", "PUT", f"{place}/irker", port)
    story.call("owner", "PUT", f"{place}/jira", {**tracker, "active": True, "comment_on_event_enabled": False})
    for slug in ("irker", "jira"):
        story.call("owner", "DELETE", f"{place}/{slug}")
        story.call("owner", "GET", f"{place}/{slug}")
    story.call("owner", "PUT", f"{place}/jira", {**tracker, "active": True})
    older = f"{_project(story, 'workbench')}/services"
    story.call("owner", "PUT", f"{older}/irker", port)
    story.call("owner", "DELETE", f"{older}/irker")
    story.call("owner", "GET", f"{older}/irker")


def _rules_of_groups(story: Story) -> None:
    rules = f"/groups/{story.world.one('fresh_group').id}/approval_rules"
    for name in ("One", "Two", "Three"):
        sent = {"name": name, "approvals_required": 1, "user_ids": _people(story, "approver")}
        story.call("owner", "POST", rules, sent)
    for size in (2, 3):
        for page in (1, 2):
            story.call("owner", "GET", f"{rules}?per_page={size}&page={page}")


def _rules_of_projects(story: Story) -> None:
    rules = f"{_project(story, 'project')}/approval_rules"
    branches = [story.world.one(name).id for name in ("protected_branch", "second_protected_branch")]
    sent: dict[str, Any] = {"name": "Of two branches", "approvals_required": 1, "protected_branch_ids": branches}
    sent["user_ids"] = _people(story, "approver")
    number = story.call("maintainer", "POST", rules, sent)["id"]
    sent["applies_to_all_protected_branches"] = True
    story.call("maintainer", "PUT", f"{rules}/{number}", sent)
    story.call("maintainer", "DELETE", f"{rules}/{number}")


def _copies_of_rules(story: Story) -> None:
    rules = f"{_project(story, 'project')}/approval_rules"
    places = [f"{_review(story, name)}/approval_rules" for name in ("merge_request", "second_merge_request")]
    users = {"user_ids": _people(story, "approver"), "group_ids": []}
    source = story.call("maintainer", "POST", rules, {"name": "Source", "approvals_required": 1, **users})["id"]
    copy = {"name": "Source", "approvals_required": 2, "approval_project_rule_id": source}
    numbers = [story.call("maintainer", "POST", place, copy)["id"] for place in places]
    changed = {"user_ids": _people(story, "second_approver"), "group_ids": []}
    story.call("maintainer", "PUT", f"{places[0]}/{numbers[0]}", changed)
    story.call("maintainer", "GET", f"{rules}/{source}")
    story.call("maintainer", "DELETE", f"{places[0]}/{numbers[0]}")
    story.call("maintainer", "GET", places[1])
    story.call("maintainer", "DELETE", f"{rules}/{source}")


def _rules_of_merge_requests(story: Story) -> None:
    rules = f"{_review(story, 'second_merge_request')}/approval_rules"
    nested = [story.world.one("second_approver_group").id]
    sent: dict[str, Any] = {"approvals_required": 1, "user_ids": _people(story, "approver"), "group_ids": nested}
    numbers = [
        story.call("maintainer", "POST", rules, {"name": name, **sent})["id"] for name in ("One", "Two", "Three")
    ]
    for page in (1, 2, 3):
        story.call("maintainer", "GET", f"{rules}?per_page=1&page={page}")
    names = {"user_ids": [], "group_ids": [], "usernames": [story.world.actors["second_approver"].username]}
    story.call("maintainer", "PUT", f"{rules}/{numbers[1]}", names)
    for method in ("GET", "DELETE", "GET"):
        story.call("maintainer", method, f"{rules}/{numbers[2]}")
    story.call("maintainer", "GET", rules)


def _approvals(story: Story) -> None:
    place = _review(story, "reset_merge_request")
    users = {"user_ids": _people(story, "approver", "second_approver", "maintainer")}
    story.call("maintainer", "POST", f"{place}/approval_rules", {"name": "Three", "approvals_required": 3, **users})
    for _ in range(2):
        for actor in ("approver", "second_approver", "maintainer"):
            story.call(actor, "POST", f"{place}/approve")
        story.call("owner", "GET", f"{place}/approvals")
        story.call("approver", "POST", f"{place}/approve", {"sha": "cd" * 20})
        story.call("maintainer", "PUT", f"{place}/reset_approvals")
        story.call("owner", "GET", f"{place}/approvals")
        story.call("project_bot", "PUT", f"{place}/reset_approvals")
