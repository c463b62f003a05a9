"""Chapters of the story about slips of another code base: what a second row, a second call and another path give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftest.reference.story import Story

_SETTING = "merge_request_approval_setting"
_FAR_PAGE = 1_000_000
_ABOVE_THE_LIMIT = 62


def morning_slips(story: Story) -> None:
    """Tell all of them."""
    for chapter in (
        _scopes,
        _rules_of_groups,
        _rules_of_projects,
        _copies,
        _rules_of_merge_requests,
        _resets,
        _passwords,
        _configuration,
        _settings,
        _exports,
        _integrations,
        _completions,
    ):
        chapter(story)


def _place_of(story: Story, name: str) -> str:
    return f"/projects/{story.world.one(name).id}"


def _people(story: Story, *names: str) -> list[int]:
    return [story.world.actors[name].id for name in names]


def _review(story: Story, name: str = "second_merge_request") -> str:
    """Return a merge request that nobody has approved and that has no rules of its own any more."""
    known = story.world.one(name).extra
    place = f"/projects/{known['project_id']}/merge_requests/{known['iid']}"
    for rule in story.read(f"{place}/approval_rules"):
        story.call("maintainer", "DELETE", f"{place}/approval_rules/{rule['id']}")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    return place


def _scopes(story: Story) -> None:
    own, other = (f"{_place_of(story, name)}/job_token_scope" for name in ("workbench", "fresh_project"))
    group, projects = story.world.one("sibling_group").id, story.world.many("allowlist_projects")
    for place in (own, other):
        story.call("owner", "POST", f"{place}/groups_allowlist", {"target_group_id": group})
    story.call("owner", "GET", f"{own}/groups_allowlist")
    for project in projects:
        story.call("owner", "POST", f"{own}/allowlist", {"target_project_id": project.id})
    story.call("owner", "GET", f"{own}/allowlist")
    for project in projects:
        story.call("owner", "DELETE", f"{own}/allowlist/{project.id}")
    story.call("owner", "GET", own)
    story.call("owner", "GET", f"{own}/allowlist?page={_FAR_PAGE}&per_page=2")


def _rules_of_groups(story: Story) -> None:
    rules = f"/groups/{story.world.one('branch_rule_group').id}/approval_rules"
    named = {"user_ids": _people(story, "approver"), "group_ids": [story.world.one("approver_group").id]}
    made = story.call("owner", "POST", rules, {"name": "M", "approvals_required": 1, **named})
    story.call("owner", "PUT", f"{rules}/{made['id']}", {"approvals_required": 2})


def _rules_of_projects(story: Story) -> None:
    rules = f"{_place_of(story, 'project')}/approval_rules"
    sent: dict[str, Any] = {"name": "Morning", "approvals_required": 1, "user_ids": _people(story, "maintainer")}
    rule = f"{rules}/{story.call('maintainer', 'POST', rules, sent)['id']}"
    for reader in ("maintainer", "owner"):
        story.call(reader, "GET", rule)
    usernames = {"user_ids": [], "usernames": [story.world.actors["approver"].username]}
    story.call("maintainer", "PUT", rule, {"name": "MORNING", "approvals_required": 1, **usernames})
    story.call("maintainer", "DELETE", rule)


def _copies(story: Story) -> None:
    rules = f"{_place_of(story, 'project')}/approval_rules"
    sent: dict[str, Any] = {"name": "Source", "approvals_required": 1, "user_ids": _people(story, "approver")}
    source, own = story.call("maintainer", "POST", rules, sent)["id"], f"{_review(story)}/approval_rules"
    copy = {"name": "Source", "approvals_required": 2, "approval_project_rule_id": source}
    number = story.call("maintainer", "POST", own, copy)["id"]
    story.call("maintainer", "DELETE", f"{rules}/{source}")
    story.call("maintainer", "GET", f"{own}/{number}")
    story.call("maintainer", "DELETE", f"{own}/{number}")


def _rules_of_merge_requests(story: Story) -> None:
    places = [f"{_review(story, name)}/approval_rules" for name in ("merge_request", "second_merge_request")]
    sent: dict[str, Any] = {"name": "Same", "approvals_required": 1, "user_ids": _people(story, "approver")}
    numbers = [story.call("maintainer", "POST", place, sent)["id"] for place in places]
    story.call("maintainer", "PUT", f"{places[0]}/{numbers[0]}", {"approvals_required": 3})
    story.call("maintainer", "GET", f"{places[1]}/{numbers[1]}")
    for name in ("First", "Second", "Third"):
        story.call("maintainer", "POST", places[1], {**sent, "name": name})
    for page in (1, 2):
        story.call("maintainer", "GET", f"{places[1]}?page={page}&per_page=2")
    by_group = {"name": "G", "approvals_required": 2, "group_ids": [story.world.one("approver_group").id]}
    place = _review(story)
    story.call("maintainer", "POST", f"{place}/approval_rules", by_group)
    story.call("approver", "POST", f"{place}/approve")


def _resets(story: Story) -> None:
    place = _review(story)
    sent: dict[str, Any] = {"name": "R", "approvals_required": 2, "user_ids": _people(story, "approver")}
    story.call("maintainer", "POST", f"{place}/approval_rules", sent)
    for actor in ("approver", "second_approver"):
        story.call(actor, "POST", f"{place}/approve")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    story.call("maintainer", "GET", f"{place}/approvals")


def _passwords(story: Story) -> None:
    known = story.world.one("password_merge_request").extra
    place = f"{_place_of(story, 'guarded_project')}/merge_requests/{known['iid']}"
    password = {"approval_password": story.world.actors["second_approver"].password}
    for action, body in (("approve", password), ("unapprove", None), ("approve", None)):
        story.call("second_approver", "POST", f"{place}/{action}", body)


def _configuration(story: Story) -> None:
    place = f"{_place_of(story, 'workbench')}/approvals"
    reset, selective = "reset_approvals_on_push", "selective_code_owner_removals"
    for changes in ({reset: False}, {selective: True}, {reset: True}):
        story.call("owner", "POST", place, changes)
        story.call("owner", "GET", place)


def _settings(story: Story) -> None:
    group = f"/groups/{story.world.one('fresh_group').id}/{_SETTING}"
    author, committer = "allow_author_approval", "allow_committer_approval"
    for values in ((True, True), (False, True), (False, False), (True, True)):
        story.call("owner", "PUT", group, dict(zip((author, committer), values, strict=True)))
    project = story.world.one("workbench").id
    story.call("admin", "PUT", f"/projects/{project}/{_SETTING}", {author: False, committer: False})
    story.call("admin", "GET", f"/groups/{project}/{_SETTING}")


def _exports(story: Story) -> None:
    place = f"/groups/{story.world.one('allowlist_namespace').id}"
    (guest,) = _people(story, "guest")
    for batched, level in ((False, 10), (False, 20), (True, 20), (False, 20)):
        story.call("owner", "PUT", f"{place}/members/{guest}", {"access_level": level})
        story.call("owner", "POST", f"{place}/export_relations", {"batched": batched})
        story.until_finished(f"{place}/export_relations/status")
        story.call("owner", "GET", f"{place}/export_relations/status?relation=members")
        story.call("owner", "GET", f"{place}/export_relations/download?relation=members")
    story.call("owner", "PUT", f"{place}/members/{guest}", {"access_level": 10})


def _integrations(story: Story) -> None:
    place = f"{_place_of(story, 'workbench')}/integrations"
    webhook = {"webhook": "https://hooks.example.com/m"}
    for labels in ("~bug", ""):
        story.call("maintainer", "PUT", f"{place}/slack", {**webhook, "labels_to_be_notified": labels})
    mails = {"recipients": "one@example.com", "push_events": False, "tag_push_events": False}
    story.call("maintainer", "PUT", f"{place}/emails-on-push", mails)
    story.call("maintainer", "GET", place)
    story.call("maintainer", "DELETE", f"{place}/emails-on-push")
    story.call("maintainer", "PUT", f"{place}/emails-on-push", {"recipients": "one@example.com"})
    story.call("maintainer", "GET", f"{place}/emails-on-push")


def _completions(story: Story) -> None:
    path, file = "/code_suggestions/completions", {"file_name": "a.py", "content_above_cursor": "def f():"}
    story.call("guest", "POST", path, {"current_file": file, "intent": "generation"})
    known = str(story.world.one("enabled_project").path)
    for project in (f"{known.rpartition('/')[0]}/none", known):
        story.call("guest", "POST", "/code_suggestions/enabled", {"project_path": project})
    bearer = {"authorization": f"Bearer {story.world.actors['guest'].token}"}
    for _ in range(_ABOVE_THE_LIMIT):
        answer = story.client.post(path, json={"current_file": file}, headers=bearer)
        story.remember(f"a completion for a bearer's token: {answer.status_code}")
