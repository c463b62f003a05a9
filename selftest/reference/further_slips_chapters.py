"""Chapters of the story about slips of other code bases: for one caller, one form, or one second time."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from selftest.reference.story import Story

_HOOK = {"webhook": "https://hooks.example.com/f"}
_SETTING = "merge_request_approval_setting"


def further_slips(story: Story) -> None:
    """Tell all of them."""
    for chapter in (
        _scopes,
        _completions,
        _configuration,
        _settings,
        _exports,
        _integrations,
        _trees_and_names,
        _rules_of_groups,
        _rules_of_projects,
        _copies,
        _approvals,
    ):
        chapter(story)


def _scopes(story: Story) -> None:
    scope = f"/projects/{story.world.one('branch_rule_project').id}/job_token_scope"
    groups = f"{scope}/groups_allowlist"
    for name in ("group", "subgroup"):
        story.call("maintainer", "GET", groups)
        story.call("owner", "POST", groups, {"target_group_id": story.world.one(name).id})
    story.call("owner", "DELETE", f"{groups}/{story.world.one('group').id}")
    story.call("maintainer", "GET", groups)
    for project in story.world.many("allowlist_projects")[:3]:
        story.call("owner", "POST", f"{scope}/allowlist", {"target_project_id": project.id})
    for page in (1, 2):
        story.call("owner", "GET", f"{scope}/allowlist?per_page=2&page={page}")
    story.call("owner", "PATCH", scope, {"enabled": False})
    story.call("owner", "GET", scope)


def _completions(story: Story) -> None:
    for name in ("subgroup_project", "disabled_project"):
        path = {"project_path": story.world.one(name).path}
        story.call("owner", "POST", "/code_suggestions/enabled", path)
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    story.call("owner", "POST", "/code_suggestions/completions", {"current_file": file, "stream": False})


def _configuration(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}"
    flags = {"merge_requests_author_approval": True, "reset_approvals_on_push": False}
    story.call("owner", "POST", f"{place}/approvals", flags)
    approver = {"user_ids": [story.world.actors["approver"].id]}
    story.call("owner", "POST", f"{place}/approval_rules", {"name": "N", "approvals_required": 1, **approver})
    story.call("owner", "GET", f"{place}/approvals")


def _settings(story: Story) -> None:
    project = f"/projects/{story.world.one('fresh_project').id}/{_SETTING}"
    group = f"/groups/{story.world.one('fresh_group').id}/{_SETTING}"
    overrides = {"allow_overrides_to_approver_list_per_merge_request": True}
    for sent in (True, False, True):
        story.call("maintainer", "PUT", project, {"allow_committer_approval": sent})
        story.call("maintainer", "GET", project)
    story.call("maintainer", "PUT", project, overrides)
    story.call("maintainer", "PUT", project, {"retain_approvals_on_push": True})
    story.call("maintainer", "GET", project)
    for sent in (True, False):
        story.call("owner", "PUT", group, {"allow_author_approval": sent, "retain_approvals_on_push": "maybe"})
        story.call("owner", "GET", group)


def _exports(story: Story) -> None:
    group = f"/groups/{story.world.one('export_group').id}"
    for batched in (True, False):
        story.call("owner", "POST", f"{group}/export_relations", {"batched": batched})
        story.until_finished(f"{group}/export_relations/status")
        story.call("owner", "POST", f"{group}/labels", {"name": f"further {batched}", "color": "#112233"})
    for relation in ("labels", "badges"):
        story.call("owner", "GET", f"{group}/export_relations/download?relation={relation}")


def _integrations(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}/integrations"
    story.call("maintainer", "PUT", f"{place}/emails-on-push", {"recipients": "team@example.com"})
    story.call("maintainer", "PUT", f"{place}/slack-slash-commands", {"token": "conformance"})
    story.call("maintainer", "PUT", f"{place}/slack", {**_HOOK, "username": "further"})
    story.call("maintainer", "PUT", f"{place}/slack", {"push_events": "maybe"})
    story.call("maintainer", "GET", place)
    story.call("maintainer", "DELETE", f"{place}/slack")
    story.call("maintainer", "GET", place)
    story.call("maintainer", "PUT", f"{place}/slack", _HOOK)
    story.call("maintainer", "GET", f"{place}/slack")


def _trees_and_names(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}"
    story.call("maintainer", "GET", f"{place}/repository/tree?path=no/such")
    story.call("maintainer", "POST", f"{place}/approval_rules", {"name": "A 🚀 of it", "approvals_required": 1})
    # One header that the story does not send otherwise.
    told = story.client.patch(
        f"{place}/job_token_scope",
        content=b'{"enabled": true}',
        headers={
            "private-token": story.world.actors["owner"].token,
            "content-type": "application/json; charset=utf-8",
        },
    )
    story.remember(f"with a charset -> {told.status_code}")


def _rules_of_groups(story: Story) -> None:
    rules = f"/groups/{story.world.one('fresh_group').id}/approval_rules"
    story.call("owner", "POST", f"{rules}?name={quote('spät')}&approvals_required=1")
    numbers = [story.call("owner", "POST", rules, {"name": name, "approvals_required": 1})["id"] for name in "ab"]
    story.call("admin", "PUT", f"{rules}/{numbers[0]}", {"name": "R&D"})
    story.at_once(*(("owner", "PUT", f"{rules}/{number}", {"name": f"new {number}"}) for number in numbers))
    story.call("owner", "GET", rules)


def _rules_of_projects(story: Story) -> None:
    world = story.world
    project = f"/projects/{world.one('project').id}"
    rules = f"{project}/approval_rules"
    everywhere = {"name": "E", "approvals_required": 1, "applies_to_all_protected_branches": True}
    number = story.call("maintainer", "POST", rules, everywhere)["id"]
    one = {"applies_to_all_protected_branches": False, "protected_branch_ids": [world.one("protected_branch").id]}
    for _ in range(2):
        story.call("maintainer", "PUT", f"{rules}/{number}", {**everywhere, **one})
    story.call("maintainer", "PUT", f"{rules}/{number}", {"name": "E", "user_ids": [world.actors["author"].id]})
    story.call("maintainer", "GET", f"{rules}/{number}")
    groups = {"group_ids": [world.one("approver_group").id, world.one("hidden_group").id]}
    half = story.call("admin", "POST", rules, {"name": "H", "approvals_required": 1, **groups})["id"]
    story.call("maintainer", "GET", f"{rules}/{half}")


def _copies(story: Story) -> None:
    world = story.world
    project = f"/projects/{world.one('project').id}"
    places = [
        f"{project}/merge_requests/{world.one(name).extra['iid']}" for name in ("merge_request", "reset_merge_request")
    ]
    first, second = (world.actors[name].id for name in ("approver", "second_approver"))
    for place in places:
        for rule in story.read(f"{place}/approval_rules"):
            story.call("maintainer", "DELETE", f"{place}/approval_rules/{rule['id']}")
    named = {"name": "C", "approvals_required": 1, "user_ids": [first], "group_ids": []}
    source = story.call("maintainer", "POST", f"{project}/approval_rules", named)["id"]
    copy = {"name": "C", "approvals_required": 2, "approval_project_rule_id": source}
    numbers = [story.call("maintainer", "POST", f"{place}/approval_rules", copy)["id"] for place in places]
    for place in places:
        story.call("maintainer", "GET", f"{place}/approval_state")
    story.call("maintainer", "PUT", f"{project}/approval_rules/{source}", {**named, "user_ids": [second]})
    story.call("maintainer", "GET", f"{places[0]}/approval_rules/{numbers[0]}")
    change = {"user_ids": [first], "group_ids": [world.one("approver_group").id]}
    story.call("maintainer", "PUT", f"{places[0]}/approval_rules/{numbers[0]}", change)
    story.call("maintainer", "DELETE", f"{places[0]}/approval_rules/{numbers[0]}")
    for place in places:
        story.call("maintainer", "GET", f"{place}/approval_state")
        story.call("maintainer", "GET", f"{place}/approval_rules")


def _approvals(story: Story) -> None:
    world = story.world
    project = f"/projects/{world.one('project').id}"
    known = world.one("merge_request").extra
    place = f"{project}/merge_requests/{known['iid']}"
    rule = {"name": "Named", "approvals_required": 1, "user_ids": [world.actors["approver"].id]}
    story.call("maintainer", "POST", f"{place}/approval_rules", rule)
    for _ in range(2):
        for actor in ("approver", "developer"):
            story.call(actor, "POST", f"{place}/approve")
        story.call("maintainer", "GET", f"{place}/approvals")
        story.call("project_bot", "PUT", f"{place}/reset_approvals")
        story.call("maintainer", "GET", f"{place}/approvals")
    file = {"branch": known["source_branch"], "content": "x", "commit_message": "Further"}
    story.call("author", "POST", f"{project}/repository/files/further.txt", file)
    story.call("approver", "POST", f"{place}/approve", {"sha": known["sha"]})
    guarded = world.one("password_merge_request").extra
    passworded = f"/projects/{guarded['project_id']}/merge_requests/{guarded['iid']}"
    story.call("approver", "POST", f"{passworded}/approve", {"sha": guarded["sha"]})
