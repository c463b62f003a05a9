"""Chapters of the story that shows foreign faults: forms of what is sent, what is false or empty, ids in answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selftest.reference.story import Story


def slips_of_forms(story: Story) -> None:
    """Tell all of them."""
    for chapter in (
        _completions,
        _integrations,
        _lists_and_resets,
        _hidden_groups,
        _exports,
        _rules_of_groups,
        _copies,
        _twice,
    ):
        chapter(story)


def _project(story: Story, name: str) -> str:
    return f"/projects/{story.world.one(name).id}"


def _completions(story: Story) -> None:
    place = "/code_suggestions/completions"
    wanted = {"current_file": {"file_name": "a.py", "content_above_cursor": "def f():"}}
    answer = story.client.post(place, json=wanted, headers={"authorization": "Bearer nobody's"})
    story.remember(f"a bearer: {answer.status_code}")
    story.call("maintainer", "POST", place, {**wanted, "stream": True, "intent": "neither"})
    path = story.world.one("subgroup_project").path
    story.call("maintainer", "POST", "/code_suggestions/enabled", {"project_path": path})


def _integrations(story: Story) -> None:
    services = f"{_project(story, 'guarded_project')}/services/slack"
    story.call("owner", "DELETE", services)
    sent = {"webhook": "https://hooks.example.com/f", "push_events": False, "pipeline_channel": "pipes"}
    story.call("owner", "PUT", services, sent)
    story.call("owner", "PUT", f"{_project(story, 'project')}/integrations/slack", sent)
    story.call("owner", "GET", services)


def _hidden_groups(story: Story) -> None:
    rules = f"{_project(story, 'project')}/approval_rules"
    body = {"name": "Of a group that is hidden", "approvals_required": 1}
    hidden = {**body, "group_ids": [story.world.one("hidden_group").id]}
    made = story.call("admin", "POST", rules, hidden)
    story.call("admin", "GET", f"{rules}/{made['id']}")
    story.call("maintainer", "GET", f"{_project(story, 'subgroup_project')}/integrations")
    sent = {**body, "user_ids": [], "group_ids": [], "remove_hidden_groups": False}
    story.call("maintainer", "PUT", f"{rules}/{made['id']}", sent)
    own = f"{_project(story, 'project')}/merge_requests/{story.world.one('merge_request').extra['iid']}/approval_rules"
    of_it = story.call("admin", "POST", own, hidden)
    story.call("maintainer", "GET", f"{own}/{of_it['id']}")


def _exports(story: Story) -> None:
    export = f"/groups/{story.world.one('export_group').id}/export_relations"
    story.call("owner", "POST", export, {"batched": False})
    story.until_finished(f"{export}/status")
    story.call("owner", "GET", f"{export}/status?relation=labels")
    other = f"/groups/{story.world.one('subgroup').id}/export_relations"
    story.call("owner", "POST", other)
    story.until_finished(f"{other}/status")
    story.call("owner", "GET", f"{other}/download?relation=labels")


def _lists_and_resets(story: Story) -> None:
    scope, project = f"{_project(story, 'project')}/job_token_scope", story.world.one("sibling_project").id
    story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": project})
    story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{project}")
    story.call("maintainer", "GET", f"{scope}/allowlist")
    iid = story.world.one("merge_request").extra["iid"]
    story.call("guest", "PUT", f"{_project(story, 'project')}/merge_requests/{iid}/reset_approvals")


def _rules_of_groups(story: Story) -> None:
    rules = f"/groups/{story.world.one('group').id}/approval_rules"
    people = {
        "user_ids": [story.world.actors["approver"].id],
        "group_ids": [story.world.one("approver_group").id],
    }
    story.call("owner", "POST", rules, {"name": "Of users and groups", "approvals_required": 1, **people})
    for page in (1, 2):
        story.call("owner", "GET", f"{rules}?page={page}&per_page=1")


def _copies(story: Story) -> None:
    project = _project(story, "project")
    rules = f"{project}/approval_rules"
    own = f"{project}/merge_requests/{story.world.one('second_merge_request').extra['iid']}/approval_rules"
    body = {"name": "To be copied 🚀", "approvals_required": 1}
    source = story.call("maintainer", "POST", rules, body)
    copy = story.call("maintainer", "POST", own, {**body, "approval_project_rule_id": source["id"]})
    for place in (f"{own}/{copy['id']}", f"{rules}/{source['id']}"):
        story.call("maintainer", "DELETE", place)
    story.call("maintainer", "GET", f"{own.removesuffix('approval_rules')}approval_state")


def _twice(story: Story) -> None:
    allowlist = f"{_project(story, 'guarded_project')}/job_token_scope/allowlist"
    target = story.world.many("allowlist_projects")[4].id
    addition = "POST", allowlist, {"target_project_id": target}
    story.at_once(("owner", *addition), ("admin", *addition))
    story.count(allowlist)
    story.call("owner", "DELETE", f"{allowlist}/{target}")
