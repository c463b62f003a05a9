"""Chapters of the story that shows foreign faults: slips that show in the second call, or beside the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selftest.reference.story import Story


def slips(story: Story) -> None:
    """Tell all of them."""
    for chapter in (_strangers, _levels, _lists, _rules, _reviews, _settings, _exports, _integrations, _completions):
        chapter(story)


def _project(story: Story, name: str) -> str:
    return f"/projects/{story.world.one(name).id}"


def _people(story: Story, *names: str) -> list[int]:
    return [story.world.actors[name].id for name in names]


def _strangers(story: Story) -> None:
    public = story.world.one("public_project")
    story.call("outsider", "GET", f"/projects/{public.id}/job_token_scope")
    story.call("", "POST", "/code_suggestions/enabled", {"project_path": public.path}, token="nobody's")


def _levels(story: Story) -> None:
    project, group = _project(story, "project"), f"/groups/{story.world.one('group').id}"
    body = {"name": "Slip", "approvals_required": 3, "user_ids": _people(story, "approver")}
    of_group = story.call("owner", "POST", f"{group}/approval_rules", body)
    subgroup = f"/groups/{story.world.one('subgroup').id}"
    story.call("owner", "PUT", f"{subgroup}/approval_rules/{of_group['id']}", {"name": "From inside"})
    rules = f"{project}/merge_requests/1/approval_rules"
    own = story.call("maintainer", "POST", rules, body)
    story.call("maintainer", "POST", rules, {**body, "name": "Copy", "approval_project_rule_id": own["id"]})


def _lists(story: Story) -> None:
    scope = f"{_project(story, 'project')}/job_token_scope"
    groups = [group.id for group in story.world.many("allowlist_groups")]
    story.call("maintainer", "PATCH", scope, {"enabled": False})
    story.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": groups[0]})
    story.call("maintainer", "GET", scope)
    others = groups[1], story.world.one("sibling_group").id
    story.at_once(
        *(("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": number}) for number in others)
    )
    story.count(f"{scope}/groups_allowlist?page=1&per_page=50")
    story.call("maintainer", "GET", f"{scope}/groups_allowlist?page=1&per_page=1")
    # Which of the two came first is another each time.
    for number in others:
        story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{number}")


def _rules(story: Story) -> None:
    rules = f"{_project(story, 'project')}/approval_rules"
    story.call("maintainer", "GET", f"{rules}?page=3&per_page=1")
    twin = {"name": "Twin", "approvals_required": 1, "group_ids": [story.world.one("subgroup").id]}
    first = story.call("maintainer", "POST", rules, twin)
    names = [story.world.actors[name].username for name in ("second_approver", "maintainer")]
    people = {"user_ids": _people(story, "approver"), "usernames": names}
    second = story.call("maintainer", "POST", rules, {**twin, **people})
    branches = [story.world.one("protected_branch").id]
    wanted = {**twin, "applies_to_all_protected_branches": True, "protected_branch_ids": branches}
    story.call("maintainer", "PUT", f"{rules}/{second['id']}", wanted)
    story.call("maintainer", "DELETE", f"{rules}/{first['id']}")
    story.call("maintainer", "GET", f"{rules}?page=1&per_page=50")


def _reviews(story: Story) -> None:
    project = _project(story, "project")
    review = f"{project}/merge_requests/{story.world.one('merge_request').extra['iid']}"
    other = story.world.one("fuzz_merge_request").extra
    elsewhere = f"/projects/{other['project_id']}/merge_requests/{other['iid']}"
    for name in ("approver", "second_approver"):
        story.call(name, "POST", f"{review}/unapprove")
        story.call(name, "POST", f"{review}/approve")
    story.call("maintainer", "GET", f"{elsewhere}/approvals")
    story.call("maintainer", "PUT", f"{elsewhere}/reset_approvals")
    story.call("approver", "PUT", f"{review}/reset_approvals")
    story.call("owner", "GET", f"{review}/approvals")
    story.call("approver", "POST", f"{review}/unapprove")
    story.call("owner", "GET", f"{review}/approval_state")
    head = story.service.repositories.branches[story.world.one("project").id, "main"].sha
    story.call("approver", "POST", f"{review}/approve", {"sha": head})
    guarded = story.world.one("password_merge_request").extra
    path = f"/projects/{guarded['project_id']}/merge_requests/{guarded['iid']}"
    story.call("approver", "POST", f"{path}/approve", {"approval_password": story.world.actors["approver"].password})
    story.call("approver", "POST", f"{path}/unapprove")
    story.call("approver", "POST", f"{path}/approve")


def _settings(story: Story) -> None:
    one, other = (f"/projects/{project.id}" for project in story.world.many("allowlist_projects")[:3:2])
    story.call("owner", "PUT", f"{one}/merge_request_approval_setting", {"allow_committer_approval": True})
    story.call("owner", "GET", f"{other}/merge_request_approval_setting")


def _exports(story: Story) -> None:
    export = f"/groups/{story.world.one('export_group').id}/export_relations"
    story.call("owner", "POST", export)
    story.until_finished(f"{export}/status")
    story.call("owner", "GET", f"{export}/status?relation=label")
    never = story.world.one("sibling_group").id
    story.call("owner", "GET", f"/groups/{never}/export_relations/download?relation=labels")


def _integrations(story: Story) -> None:
    integrations = f"{_project(story, 'sibling_project')}/integrations"
    hook = {"webhook": "https://hook.example.com", "note_events": True, "confidential_note_events": False}
    story.call("maintainer", "PUT", f"{integrations}/discord", hook)
    story.call("maintainer", "GET", integrations)
    story.call("maintainer", "PUT", f"{integrations}/discord", {"webhook": ""})
    story.call("maintainer", "GET", integrations)
    tracker = {"url": "https://jira.example.com", "password": "a secret", "active": False}
    story.call("maintainer", "PUT", f"{integrations}/jira", tracker)
    story.call("maintainer", "GET", integrations)


def _completions(story: Story) -> None:
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    story.call("developer", "POST", "/code_suggestions/completions", {"current_file": file, "intent": "generation"})
    story.call("developer", "POST", "/code_suggestions/completions", {"current_file": file, "stream": False})
