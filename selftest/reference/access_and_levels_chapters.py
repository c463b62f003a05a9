"""Chapters of the story about who may call, what another place reaches, calls that meet, and values almost right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from selftest.reference.story import Story

_SETTING = "merge_request_approval_setting"
_HOOK = {"webhook": "https://hooks.example.com/l"}
_COMPLETIONS = "/code_suggestions/completions"


def access_and_levels(story: Story) -> None:
    """Tell all of them."""
    for chapter in (
        _roles,
        _tokens_and_bots,
        _scopes,
        _completions,
        _rules_of_other_levels,
        _places_beside,
        _rules_of_projects,
        _copies,
        _approvals,
        _configuration,
        _scopes_at_once,
        _approvals_at_once,
        _places_at_once,
    ):
        chapter(story)


def _place_of(story: Story, name: str) -> str:
    return f"/projects/{story.world.one(name).id}"


def _group(story: Story, name: str, *, by_path: bool = False) -> str:
    known = story.world.one(name)
    return f"/groups/{quote(known.path or '', safe='') if by_path else known.id}"


def _people(story: Story, *names: str) -> list[int]:
    return [story.world.actors[name].id for name in names]


def _merge_request(story: Story, name: str) -> str:
    known = story.world.one(name).extra
    return f"/projects/{known['project_id']}/merge_requests/{known['iid']}"


def _review(story: Story, name: str = "second_merge_request") -> str:
    """Return a merge request that nobody has approved and that has no rules of its own any more."""
    place = _merge_request(story, name)
    for rule in story.read(f"{place}/approval_rules"):
        story.call("maintainer", "DELETE", f"{place}/approval_rules/{rule['id']}")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    return place


# -- who may call ------------------------------------------------------------------------------------------------------


def _roles(story: Story) -> None:
    for name in ("inner_project", "project"):
        story.call("guest", "GET", f"{_place_of(story, name)}/integrations")
    scope = f"{_place_of(story, 'workbench')}/job_token_scope"
    story.call("developer", "PATCH", scope, {"enabled": True})
    inner = story.world.one("inner_group").id
    story.call("guest", "POST", f"{scope}/groups_allowlist", {"target_group_id": inner})
    story.call("developer", "GET", f"{_group(story, 'subgroup', by_path=True)}/approval_rules")


def _tokens_and_bots(story: Story) -> None:
    setting = f"{_group(story, 'group')}/{_SETTING}"
    story.call("project_bot", "GET", setting)
    story.call("project_bot", "PUT", setting, {"allow_committer_approval": True})
    story.call("project_bot", "PUT", f"{_place_of(story, 'project')}/integrations/pumble", _HOOK)
    place = _review(story)
    story.call("owner", "PUT", f"{place}/reset_approvals")
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    bearer = {"authorization": f"Bearer {story.world.actors['approver'].token.upper()}"}
    answer = story.client.post(_COMPLETIONS, json={"current_file": file}, headers=bearer)
    story.remember(f"a bearer's token in another case: {answer.status_code}")
    export = f"{_group(story, 'export_group')}/export_relations"
    story.call("owner", "POST", export)
    story.until_finished(f"{export}/status")
    story.call("", "GET", f"{export}/download?relation=labels")


# -- what another place reaches ----------------------------------------------------------------------------------------


def _scopes(story: Story) -> None:
    one, other = (f"{_place_of(story, name)}/job_token_scope/allowlist" for name in ("workbench", "guarded_project"))
    numbers = [story.world.one(name).id for name in ("workbench", "guarded_project")]
    story.call("owner", "POST", one, {"target_project_id": numbers[1]})
    story.call("owner", "POST", other, {"target_project_id": numbers[0]})
    story.call("owner", "DELETE", f"{one}/{numbers[1]}")
    story.call("owner", "GET", f"{other}?page=1&per_page=50")
    targets = [each.id for each in story.world.many("allowlist_projects")]
    for number in targets:
        story.call("owner", "POST", one, {"target_project_id": number})
    story.call("owner", "DELETE", f"{one}/{targets[0]}")
    story.call("owner", "GET", f"{one}?page=1&per_page=50")


def _completions(story: Story) -> None:
    known = story.world.one("enabled_project").path or ""
    for path in (f"{known[:-1]}_", f"{known[:-1]}x"):
        story.call("owner", "POST", "/code_suggestions/enabled", {"project_path": path})
    body = {"current_file": {"file_name": "a.py"}, "intent": "generation"}
    story.call("approver", "POST", _COMPLETIONS, body)


def _rules_of_other_levels(story: Story) -> None:
    of_group = {"name": "Nested", "approvals_required": 1, "group_ids": [story.world.one("second_approver_group").id]}
    story.call("owner", "POST", f"{_group(story, 'subgroup')}/approval_rules", of_group)
    project, own = f"{_place_of(story, 'project')}/approval_rules", f"{_review(story)}/approval_rules"
    users: dict[str, Any] = {"user_ids": _people(story, "approver"), "group_ids": []}
    mine = story.call("maintainer", "POST", own, {"name": "Mine", "approvals_required": 1, **users})["id"]
    copy = {"name": "Copy", "approvals_required": 2, "approval_project_rule_id": mine}
    story.call("maintainer", "POST", own, copy)
    story.call("maintainer", "PUT", f"{project}/{mine}", {"name": "Theirs", "approvals_required": 4, **users})
    story.call("maintainer", "GET", f"{own}/{mine}")


def _places_beside(story: Story) -> None:
    places = [_place_of(story, name) for name in ("workbench", "guarded_project")]
    for place in places:
        story.call("maintainer", "PUT", f"{place}/integrations/discord", _HOOK)
    story.call("maintainer", "DELETE", f"{places[0]}/services/discord")
    story.call("maintainer", "GET", f"{places[1]}/integrations")
    jira = {"url": "https://jira.example.com", "password": "P"}
    for active in (True, False):
        story.call("maintainer", "PUT", f"{places[0]}/integrations/jira", {**jira, "active": active})
        story.call("maintainer", "GET", f"{places[0]}/integrations")
    group = story.world.one("fresh_group").id
    for value in (True, False):
        story.call("owner", "PUT", f"/groups/{group}/{_SETTING}", {"allow_author_approval": value})
        story.call("owner", "GET", f"/projects/{group}/{_SETTING}")


# -- values that are almost right --------------------------------------------------------------------------------------


def _rules_of_projects(story: Story) -> None:
    rules = f"{_place_of(story, 'project')}/approval_rules"
    two, one = _people(story, "approver", "second_approver"), _people(story, "approver")
    sent: dict[str, Any] = {"name": "L", "approvals_required": 1, "group_ids": []}
    rule = f"{rules}/{story.call('owner', 'POST', rules, {**sent, 'user_ids': two})['id']}"
    story.call("owner", "PUT", rule, {**sent, "user_ids": one, "usernames": []})
    groups = [story.world.one(name).id for name in ("approver_group", "hidden_group")]
    story.call("owner", "PUT", rule, {**sent, "user_ids": one, "group_ids": groups})
    story.call("maintainer", "GET", rule)
    for page in range(1, len(story.read(f"{rules}?per_page=50")) + 2):
        story.call("maintainer", "GET", f"{rules}?page={page}&per_page=1")
    story.call("owner", "DELETE", rule)


def _copies(story: Story) -> None:
    rules, place = f"{_place_of(story, 'project')}/approval_rules", _review(story)
    groups = [story.world.one(name).id for name in ("approver_group", "second_approver_group")]
    sent = {"name": "Source", "approvals_required": 3, "group_ids": groups, "user_ids": []}
    source = story.call("maintainer", "POST", rules, sent)["id"]
    copy = {"name": "Copy", "approvals_required": 1, "approval_project_rule_id": source}
    story.call("maintainer", "POST", f"{place}/approval_rules", copy)
    story.call("maintainer", "GET", f"{place}/approval_state")
    names = {"user_ids": _people(story, "approver", "second_approver")}
    usernames = [story.world.actors["approver"].username]
    both = {"name": "Both", "approvals_required": 1, **names, "usernames": usernames}
    story.call("maintainer", "POST", f"{place}/approval_rules", both)
    story.call("maintainer", "DELETE", f"{rules}/{source}")
    _review(story)


def _approvals(story: Story) -> None:
    place = _review(story, "merge_request")
    foreign = story.world.one("sibling_merge_request").extra["sha"]
    story.call("approver", "POST", f"{place}/approve", {"sha": foreign})
    guarded = _merge_request(story, "password_merge_request")
    password = story.world.actors["author"].password
    story.call("approver", "POST", f"{guarded}/approve", {"approval_password": password})
    beside = _merge_request(story, "sibling_merge_request")
    for path in ("approve", "unapprove"):
        story.call("approver", "POST", f"{beside}/{path}")


def _configuration(story: Story) -> None:
    place = f"{_place_of(story, 'workbench')}/approvals"
    first = {"reset_approvals_on_push": False, "selective_code_owner_removals": True}
    for body in (first, {"reset_approvals_on_push": True}, {"selective_code_owner_removals": False}):
        story.call("owner", "POST", place, body)
        story.call("owner", "GET", place)
    flags = ("disable_overriding_approvers_per_merge_request", "merge_requests_disable_committers_approval")
    before = story.read(place)
    story.at_once(*(("owner", "POST", place, {flag: not before[flag]}) for flag in flags))
    now = story.read(place)
    story.remember(f"two flags at once: {[now[flag] for flag in flags]}")


# -- calls that meet ---------------------------------------------------------------------------------------------------


def _scopes_at_once(story: Story) -> None:
    scope = f"{_place_of(story, 'fresh_project')}/job_token_scope"
    target = story.world.one("subgroup_project").id
    story.call("owner", "PATCH", scope, {"enabled": False})
    story.at_once(
        ("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": target}),
        ("owner", "PATCH", scope, {"enabled": True}),
    )
    story.call("owner", "GET", scope)
    group = {"target_group_id": story.world.one("public_group").id}
    story.at_once(*((actor, "POST", f"{scope}/groups_allowlist", group) for actor in ("owner", "maintainer")))
    story.count(f"{scope}/groups_allowlist")


def _approvals_at_once(story: Story) -> None:
    place, rules = _review(story), f"{_place_of(story, 'project')}/approval_rules"
    story.at_once(*(("approver", "POST", f"{place}/approve", {}) for _ in range(2)))
    story.count(f"{place}/approvals")
    sent = {"name": "Short", "approvals_required": 1, "user_ids": _people(story, "approver"), "group_ids": []}
    number = story.call("owner", "POST", rules, sent)["id"]
    story.at_once(
        ("owner", "PUT", f"{rules}/{number}", {**sent, "approvals_required": 2}),
        ("maintainer", "DELETE", f"{rules}/{number}", None),
    )
    story.call("owner", "GET", f"{rules}/{number}")


def _places_at_once(story: Story) -> None:
    place = f"{_place_of(story, 'workbench')}/integrations"
    story.call("maintainer", "PUT", f"{place}/pumble", _HOOK)
    story.at_once(
        ("maintainer", "PUT", f"{place}/slack", _HOOK),
        ("owner", "DELETE", f"{place}/pumble", None),
    )
    story.call("maintainer", "GET", f"{place}/slack")
    story.remember(f"active: {sorted(one['slug'] for one in story.read(place))}")
    group, project = f"{_group(story, 'fresh_group')}/{_SETTING}", f"{_place_of(story, 'workbench')}/{_SETTING}"
    name = "allow_committer_approval"
    wanted = [not story.read(path)[name]["value"] for path in (group, project)]
    changes = zip((group, project), wanted, strict=True)
    story.at_once(*(("owner", "PUT", path, {name: value}) for path, value in changes))
    for path in (group, project):
        story.call("owner", "GET", path)
    exports = [f"{_group(story, name)}/export_relations" for name in ("export_group", "fresh_group")]
    story.at_once(*(("owner", "POST", path, {}) for path in exports))
    for path in exports:
        story.until_finished(f"{path}/status")
        story.call("owner", "GET", f"{path}/download?relation=labels")
