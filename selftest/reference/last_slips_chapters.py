"""Chapters of the story about slips that a review passes over: a second call, an edge, one form of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from selftest.reference.story import Story

_SETTING = "merge_request_approval_setting"
_NOBODY: dict[str, Any] = {"user_ids": [], "group_ids": []}


def last_slips(story: Story) -> None:
    """Tell all of them."""
    for chapter in (
        _scopes,
        _settings,
        _exports,
        _chats_and_trackers,
        _other_integrations,
        _configuration,
        _rules_of_groups,
        _rules_of_projects,
        _copies,
        _rules_of_merge_requests,
        _approvals,
        _completions,
    ):
        chapter(story)


def _scopes(story: Story) -> None:
    world = story.world
    place = f"/projects/{world.one('inner_project').id}/job_token_scope"
    groups, projects = world.many("allowlist_groups"), world.many("allowlist_projects")
    for project in (*projects, world.one("public_project")):
        story.call("owner", "POST", f"{place}/allowlist", {"target_project_id": project.id})
    for group in groups:
        story.call("owner", "POST", f"{place}/groups_allowlist", {"target_group_id": group.id})
    for page in range(1, 8):
        story.call("owner", "GET", f"{place}/allowlist?per_page=1&page={page}")
    for project in projects:
        story.call("owner", "DELETE", f"{place}/allowlist/{project.id}")
    story.call("owner", "GET", f"{place}/groups_allowlist")
    story.call("owner", "DELETE", f"{place}/groups_allowlist/{groups[1].id}")
    story.call("owner", "GET", f"{place}/groups_allowlist")
    for _ in range(2):
        story.call("owner", "PATCH", place, {"enabled": True})
    story.call("owner", "GET", place)
    story.call("owner", "POST", f"{place}/groups_allowlist", {"target_group_id": groups[1].id})
    story.call("owner", "POST", f"{place}/groups_allowlist", {"target_group_id": world.one("allowlist_namespace").id})
    for asked in ("", "?page=2"):
        story.call("owner", "GET", f"{place}/groups_allowlist{asked}")
    own = f"/projects/{world.one('project').id}/job_token_scope/groups_allowlist"
    public = world.one("public_group").id
    story.call("owner", "DELETE", f"{own}/{public}")
    story.call("project_bot", "POST", own, {"target_group_id": public})


def _completions(story: Story) -> None:
    path = "/code_suggestions/completions"
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    for below in ("", "    return 1"):
        story.call("owner", "POST", path, {"current_file": {**file, "content_below_cursor": below}})
    named = [story.world.one(name).path for name in ("project", "subgroup_project")]
    for number in range(62):
        story.call("reporter", "POST", path, {"current_file": file, "project_path": named[number % 2]})


def _settings(story: Story) -> None:
    project = f"/projects/{story.world.one('fresh_project').id}/{_SETTING}"
    now = story.read(project)
    first, second = [name for name in now if name.startswith("allow_") and not now[name]["locked"]][:2]
    both = {first: now[first]["value"], second: not now[second]["value"]}
    story.call("maintainer", "PUT", project, both)
    story.call("maintainer", "GET", project)
    inside = f"/projects/{story.world.one('subgroup_project').id}/{_SETTING}"
    group = f"/groups/{story.world.one('group').id}/{_SETTING}"
    for actor, place, value in (("maintainer", inside, True), ("owner", group, False)):
        story.call(actor, "PUT", place, {"allow_committer_approval": value})
        story.call(actor, "GET", place)
    story.call("maintainer", "GET", inside)
    story.call("owner", "PUT", group, {"allow_committer_approval": True})


def _exports(story: Story) -> None:
    outer, inner = (f"/groups/{story.world.one(name).id}/export_relations" for name in ("group", "subgroup"))
    for place in (outer, inner, outer, inner):
        story.call("owner", "POST", place, {"batched": False})
        story.until_finished(f"{place}/status")
        story.call("owner", "GET", f"{outer}/status")
    for asked in ("labels&batched=false", "labels", "label"):
        story.call("owner", "GET", f"{outer}/download?relation={asked}")


def _chats_and_trackers(story: Story) -> None:
    known = story.world.one("branch_rule_project")
    place = f"/projects/{known.id}/integrations"
    flags = {"confidential_issues_events": False, "vulnerability_events": True}
    story.call("maintainer", "PUT", f"{place}/slack", {"webhook": "https://hooks.example.com/l", **flags})
    story.call("maintainer", "PUT", f"{place}/slack", {"username": "last"})
    story.call("maintainer", "GET", place)
    older = f"/projects/{quote(known.path or '', safe='')}/services"
    story.call("maintainer", "PUT", f"{older}/slack", {"username": "older"})
    story.call("maintainer", "GET", older)
    story.call("maintainer", "DELETE", f"{older}/slack")
    story.call("maintainer", "GET", f"{place}/slack")
    jira = {"url": "https://jira.example.com", "password": "conformance-password"}
    for sent in ({**jira, "active": True}, {"active": False}, {"username": "last"}):
        story.call("maintainer", "PUT", f"{place}/jira", sent)
        story.call("maintainer", "GET", place)


def _other_integrations(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}/integrations"
    recipients = {"recipients": "one@example.com\ntwo@example.com"}
    story.call("maintainer", "PUT", f"{place}/emails-on-push", recipients)
    story.call("maintainer", "GET", f"{place}/emails-on-push")
    needed = {"teamcity_url": "https://ci.example.com", "build_type": "conformance"}
    story.call("maintainer", "PUT", f"{place}/teamcity", {**needed, "enable_ssl_verification": False})
    story.call("maintainer", "DELETE", f"{place}/teamcity")
    story.call("maintainer", "PUT", f"{place}/teamcity", needed)
    story.call("maintainer", "GET", f"{place}/teamcity")


def _configuration(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}"
    approver = {"user_ids": [story.world.actors["approver"].id]}
    story.call("owner", "POST", f"{place}/approval_rules", {"name": "L", "approvals_required": 1, **approver})
    reset, selective = "reset_approvals_on_push", "selective_code_owner_removals"
    sent: tuple[dict[str, Any], ...] = (
        {"approvals_before_merge": 2},
        {"approvals_before_merge": 0},
        {reset: False, selective: False},
        {reset: True, selective: True},
    )
    for changes in sent:
        story.call("owner", "POST", f"{place}/approvals", changes)
        story.call("owner", "GET", f"{place}/approvals")


def _rules_of_groups(story: Story) -> None:
    rules = f"/groups/{story.world.one('inner_group').id}/approval_rules"
    story.call("owner", "GET", rules)
    for rule in story.read(rules):
        if rule["rule_type"] == "any_approver":
            story.call("owner", "PUT", f"{rules}/{rule['id']}", {"approvals_required": 1})


def _rules_of_projects(story: Story) -> None:
    world, person = story.world, story.world.actors
    rules = f"/projects/{world.one('project').id}/approval_rules"
    groups = {"group_ids": [world.one("approver_group").id, world.one("hidden_group").id]}
    half = story.call("admin", "POST", rules, {"name": "Half", "approvals_required": 1, **groups})["id"]
    story.call("maintainer", "GET", f"{rules}?per_page=100")
    change = {"name": "Half", "approvals_required": 1, "remove_hidden_groups": False, "user_ids": []}
    story.call("maintainer", "PUT", f"{rules}/{half}", {**change, "group_ids": groups["group_ids"][:1]})
    story.call("admin", "GET", f"{rules}/{half}")
    story.call("admin", "DELETE", f"{rules}/{half}")
    users = {"user_ids": [person[name].id for name in ("maintainer", "approver")]}
    made = story.call("maintainer", "POST", rules, {"name": "2024", "approvals_required": 1, **users})
    story.call("maintainer", "DELETE", f"{rules}/{made['id']}")


def _alone(story: Story) -> tuple[str, str]:
    """Return a project and a merge request of it that has no rules of its own any more."""
    project = f"/projects/{story.world.one('project').id}"
    place = f"{project}/merge_requests/{story.world.one('second_merge_request').extra['iid']}"
    for rule in story.read(f"{place}/approval_rules"):
        story.call("maintainer", "DELETE", f"{place}/approval_rules/{rule['id']}")
    return project, place


def _copies(story: Story) -> None:
    project, place = _alone(story)
    named = {"user_ids": [story.world.actors["second_approver"].id], "group_ids": [story.world.one("subgroup").id]}
    source = story.call("owner", "POST", f"{project}/approval_rules", {"name": "S", "approvals_required": 1, **named})
    copy = {"name": "S", "approvals_required": 1, "approval_project_rule_id": source["id"]}
    number = story.call("owner", "POST", f"{place}/approval_rules", copy)["id"]
    story.call("owner", "GET", f"{place}/approval_state")
    story.call("owner", "DELETE", f"{project}/approval_rules/{source['id']}")
    story.call("owner", "GET", f"{place}/approval_rules/{number}")


def _rules_of_merge_requests(story: Story) -> None:
    world = story.world
    _, place = _alone(story)
    rules = f"{place}/approval_rules"
    story.call("owner", "POST", rules, {"name": "I", "approvals_required": 1, "group_ids": [world.one("subgroup").id]})
    named = {"name": "U", "approvals_required": 1, "user_ids": [world.actors["approver"].id]}
    number = story.call("owner", "POST", rules, named)["id"]
    story.call("owner", "PUT", f"{rules}/{number}", {"usernames": [world.actors["second_approver"].username]})
    story.call("owner", "GET", f"{rules}?per_page=1&page=1")
    report = world.one("report_approver_merge_request").extra
    strict = f"/projects/{report['project_id']}/merge_requests/{report['iid']}/approval_rules/{report['rule_id']}"
    story.call("maintainer", "PUT", strict, {"approvals_required": 5})
    story.call("maintainer", "GET", strict)


def _approvals(story: Story) -> None:
    _, place = _alone(story)
    users = [story.world.actors[name].id for name in ("approver", "second_approver")]
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    rule = {**_NOBODY, "name": "Both", "approvals_required": 2, "user_ids": users}
    story.call("maintainer", "POST", f"{place}/approval_rules", rule)
    for actor in ("approver", "second_approver", "maintainer"):
        story.call(actor, "POST", f"{place}/approve")
    story.call("maintainer", "GET", f"{place}/approval_state")
    story.call("second_approver", "POST", f"{place}/approve", {"sha": "1" * 40})
    story.call("approver", "PUT", f"{place}/reset_approvals")
    story.call("maintainer", "GET", f"{place}/approvals")
    for action in ("unapprove", "approve", "unapprove"):
        story.call("approver", "POST", f"{place}/{action}")
    story.call("maintainer", "GET", f"{place}/approvals")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    story.call("maintainer", "GET", f"{place}/approvals")
