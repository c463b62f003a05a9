"""Chapters of the story that shows foreign faults: rules that are changed again, and settings read by somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from selftest.reference.story import Story


def more_slips(story: Story) -> None:
    """Tell all of them."""
    for chapter in (_names, _branches, _hidden_groups, _own_rules, _rules_of_groups, _configurations, _settings):
        chapter(story)


def _project(story: Story, name: str) -> str:
    return f"/projects/{story.world.one(name).id}"


def _names(story: Story) -> None:
    rules = f"{_project(story, 'project')}/approval_rules"
    for name in ("Ops & <Support>", "Правило №1 ✓", "A name of more than thirty characters, to its very end"):
        story.call("maintainer", "POST", rules, {"name": name, "approvals_required": 1})
    story.call("admin", "POST", rules, {"approvals_required": 1})


def _branches(story: Story) -> None:
    rules = f"{_project(story, 'project')}/approval_rules"
    first, second = (story.world.one(name).id for name in ("protected_branch", "second_protected_branch"))
    body = {"name": "Of branches", "approvals_required": 1, "protected_branch_ids": [first]}
    made = story.call("maintainer", "POST", rules, body)
    story.call("maintainer", "PUT", f"{rules}/{made['id']}", {**body, "protected_branch_ids": [second]})
    for flag in (True, False):
        story.call("maintainer", "PUT", f"{rules}/{made['id']}", {**body, "applies_to_all_protected_branches": flag})
        story.call("maintainer", "GET", f"{rules}/{made['id']}")


def _hidden_groups(story: Story) -> None:
    rules = f"{_project(story, 'project')}/approval_rules"
    body = {"name": "Of a hidden group", "approvals_required": 1}
    made = story.call("admin", "POST", rules, {**body, "group_ids": [story.world.one("hidden_group").id]})
    story.call("maintainer", "PUT", f"{rules}/{made['id']}", {**body, "approvals_required": 2})


def _own_rules(story: Story) -> None:
    iid = story.world.one("second_merge_request").extra["iid"]
    rules = f"{_project(story, 'project')}/merge_requests/{iid}/approval_rules"
    groups = [story.world.one("approver_group").id]
    made = [
        story.call("maintainer", "POST", rules, {"name": name, "approvals_required": 1, "group_ids": groups})
        for name in ("First of three", "Second of three", "Third of three")
    ]
    story.call("maintainer", "GET", f"{rules}?page=1&per_page=50")
    story.call("maintainer", "GET", f"{rules}?page=2&per_page=1")
    wanted = {"name": "By name", "approvals_required": 1, "usernames": [story.world.actors["approver"].username]}
    story.call("maintainer", "PUT", f"{rules}/{made[0]['id']}", wanted)
    story.call("maintainer", "GET", f"{rules}/{2**31}")
    for one in made:
        story.call("maintainer", "DELETE", f"{rules}/{one['id']}")


def _rules_of_groups(story: Story) -> None:
    rules = f"/groups/{story.world.one('group').id}/approval_rules"
    made = story.call("owner", "POST", rules, {"name": "Of a query", "approvals_required": 1})
    story.call("owner", "PUT", f"{rules}/{made['id']}?name=queried%20again&approvals_required=2")
    story.call("owner", "GET", f"{rules}?page=1&per_page=50")


def _configurations(story: Story) -> None:
    one, other = (f"{_project(story, name)}/approvals" for name in ("sibling_project", "guarded_project"))
    for flag in (True, False):
        body = {"merge_requests_disable_committers_approval": flag, "approvals_before_merge": 3 + flag}
        story.call("maintainer", "POST", one, body)
        for actor in ("developer", "maintainer"):
            story.call(actor, "GET", one)
        story.call("maintainer", "GET", other)


def _settings(story: Story) -> None:
    # Each setting is made another than it was, so that it is not what all begin with. One is refused beside others.
    project, group = _project(story, "fresh_project"), story.world.one("fresh_group")
    by_path = f"/groups/{quote(group.path or '', safe='')}"
    for place, named in ((f"/groups/{group.id}", by_path), (project, project)):
        setting = f"{place}/merge_request_approval_setting"
        before = story.read(setting)
        free = [name for name in before if not before[name]["locked"] and name != "selective_code_owner_removals"]
        story.call("owner", "PUT", setting, {name: not before[name]["value"] for name in free})
        story.call("owner", "GET", f"{named}/merge_request_approval_setting")
        story.call("owner", "PUT", setting, {})
        story.call("owner", "GET", setting)
        story.call("owner", "PUT", setting, {name: before[name]["value"] for name in free})
