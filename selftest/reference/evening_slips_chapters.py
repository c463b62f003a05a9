"""Chapters of the story about lists of which one entry is broken: a value, a parameter, a field, a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from selftest.reference.story import Story

_SETTING = "merge_request_approval_setting"
_HOOK = {"webhook": "https://hooks.example.com/e"}


def evening_slips(story: Story) -> None:
    """Tell all of them."""
    for chapter in (
        _scopes,
        _completions,
        _rules_of_groups,
        _rules_of_projects,
        _rules_of_merge_requests,
        _approvals,
        _passwords,
        _configuration,
        _settings,
        _exports,
        _integrations,
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
    scope = f"{_place_of(story, 'workbench')}/job_token_scope"
    for name in ("guarded_project", "subgroup_project"):
        story.call("owner", "POST", f"{scope}/allowlist", {"target_project_id": story.world.one(name).id})
        story.call("owner", "GET", f"{scope}/allowlist")
    group = story.world.one("public_group").id
    for _ in range(2):
        story.call("owner", "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
        story.call("owner", "DELETE", f"{scope}/groups_allowlist/{group}")
        story.call("owner", "GET", f"{scope}/groups_allowlist")


def _completions(story: Story) -> None:
    path = "/code_suggestions/completions"
    file = {"file_name": "a.py", "content_above_cursor": "def f():", "content_below_cursor": "f()"}
    story.call("author", "POST", path, {"current_file": file, "intent": "generation"})
    project = story.world.one("enabled_project").path
    answer = story.call("author", "POST", path, {"current_file": file, "project_path": project})
    story.remember(f"the moment of a completion is of type {type(answer['created']).__name__}")
    bearer = {"authorization": f"Bearer {story.world.actors['author'].token}"}
    streamed = story.client.post(path, json={"current_file": file, "stream": True}, headers=bearer)
    story.remember(f"a stream for a bearer's token: {streamed.status_code}")


def _rules_of_groups(story: Story) -> None:
    groups = [story.world.one(name).id for name in ("approver_group", "hidden_group")]
    inner = f"/groups/{story.world.one('inner_group').id}/approval_rules"
    story.call("owner", "POST", inner, {"name": "Hidden", "approvals_required": 1, "group_ids": groups})
    story.call("developer", "GET", inner)
    rules = f"/groups/{story.world.one('branch_rule_group').id}/approval_rules"
    sent = {"name": "E", "approvals_required": 1, "user_ids": _people(story, "approver")}
    number = story.call("owner", "POST", rules, sent)["id"]
    story.call("owner", "PUT", f"{rules}/{number}?approvals_required=3")
    story.call("owner", "PUT", f"{rules}/{number}", {"approval_rule_id": number, "name": "EE"})


def _rules_of_projects(story: Story) -> None:
    rules = f"{_place_of(story, 'project')}/approval_rules"
    sent: dict[str, Any] = {"name": "Evening", "approvals_required": 1}
    users, hidden = {"user_ids": _people(story, "approver")}, {"group_ids": [story.world.one("hidden_group").id]}
    branches = {"protected_branch_ids": [story.world.one("protected_branch").id]}
    everywhere = "applies_to_all_protected_branches"
    rule = f"{rules}/{story.call('owner', 'POST', rules, {**sent, **users, **hidden, everywhere: True})['id']}"
    story.call("maintainer", "PUT", rule, {**sent, **users, **branches, everywhere: False})
    story.call("maintainer", "PUT", rule, {**sent, **users, "group_ids": [], "remove_hidden_groups": False})
    story.call("owner", "GET", rule)
    usernames = [story.world.actors["second_approver"].username]
    story.call("maintainer", "PUT", rule, {**sent, "user_ids": [], "usernames": usernames})
    story.call("owner", "GET", f"{rules}?per_page=1")
    story.call("maintainer", "DELETE", rule)


def _rules_of_merge_requests(story: Story) -> None:
    rules, own = f"{_place_of(story, 'project')}/approval_rules", f"{_review(story)}/approval_rules"
    nested = {"group_ids": [story.world.one("second_approver_group").id], "user_ids": _people(story, "approver")}
    sent: dict[str, Any] = {"name": "Source", "approvals_required": 1, **nested}
    source = story.call("maintainer", "POST", rules, sent)["id"]
    copy = {"name": "Source", "approvals_required": 2, "approval_project_rule_id": source}
    number = story.call("maintainer", "POST", own, copy)["id"]
    for name in ("Another", "Rocket \N{ROCKET} and more"):
        story.call("maintainer", "PUT", f"{own}/{number}", {"name": name})
    other = story.call("maintainer", "POST", own, sent)["id"]
    story.call("maintainer", "PUT", f"{own}/{other}", {"name": "Rocket \N{ROCKET} and more"})
    for rule in (f"{own}/{number}", f"{own}/{other}", f"{rules}/{source}"):
        story.call("maintainer", "DELETE", rule)


def _approvals(story: Story) -> None:
    place = _review(story)
    for actor in ("approver", "second_approver"):
        story.call(actor, "POST", f"{place}/approve")
    story.call("approver", "POST", f"{place}/approve", {"sha": "ab" * 20})
    story.call("maintainer", "GET", f"{place}/approvals")
    story.call("group_bot", "PUT", f"{place}/reset_approvals")
    story.call("maintainer", "GET", f"{place}/approvals")


def _passwords(story: Story) -> None:
    known = story.world.one("password_merge_request").extra
    project = story.world.one("guarded_project").id
    place = f"/projects/{project}/merge_requests/{known['iid']}"
    repositories = story.service.repositories
    head = repositories.head_of(next(one for one in repositories.merge_requests.values() if one.project_id == project))
    story.call("approver", "POST", f"{place}/approve", {"sha": head})


def _configuration(story: Story) -> None:
    place = f"{_place_of(story, 'workbench')}/approvals"
    story.call("owner", "POST", place, {"merge_requests_disable_committers_approval": True})
    story.call("owner", "POST", place, {"disable_overriding_approvers_per_merge_request": False})


def _settings(story: Story) -> None:
    group = f"/groups/{story.world.one('fresh_group').id}/{_SETTING}"
    author, committer = "allow_author_approval", "allow_committer_approval"
    story.call("owner", "PUT", group, {author: True, committer: True})
    story.call("owner", "PUT", group, {author: False, committer: "maybe"})
    story.call("owner", "PUT", group, {"require_reauthentication_to_approve": True})
    story.call("owner", "PUT", group, {"require_reauthentication_to_approve": False})
    story.call("maintainer", "PUT", f"{_place_of(story, 'workbench')}/{_SETTING}", {author: True, committer: False})


def _exports(story: Story) -> None:
    place = f"/groups/{story.world.one('export_group').id}/export_relations"
    for batched in (True, False):
        story.call("owner", "POST", place, {"batched": batched})
        story.until_finished(f"{place}/status")
        batch = "&batched=true&batch_number=2" if batched else ""
        for relation in ("milestones", "members"):
            story.call("owner", "GET", f"{place}/download?relation={relation}{batch}")


def _integrations(story: Story) -> None:
    place = f"{_place_of(story, 'workbench')}/integrations"
    chat = {**_HOOK, "labels_to_be_notified_behavior": "match_all"}
    mails = {"recipients": "one@example.com", "branches_to_be_notified": "default_and_protected"}
    builds = {"token": "T", "drone_url": "https://ci.example.com", "enable_ssl_verification": False}
    for slug, sent in (("mattermost", chat), ("pipelines-email", mails), ("drone-ci", builds)):
        story.call("maintainer", "PUT", f"{place}/{slug}", sent)
        story.call("maintainer", "DELETE", f"{place}/{slug}")
        story.call("maintainer", "GET", f"{place}/{slug}")
    deep = quote(story.world.one("subgroup_project").path or "", safe="")
    story.call("owner", "PUT", f"/projects/{deep}/services/mattermost", _HOOK)
