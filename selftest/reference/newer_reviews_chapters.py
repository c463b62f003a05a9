"""Chapters of the story that shows foreign faults: rules, approvals and exports, as two places or callers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from selftest.reference.story import Story

_ODD = "R&D \N{MUSICAL SYMBOL G CLEF}"
_OTHER_SHA = "c0ffee11" * 5


def slips_of_newer_reviews(story: Story) -> None:
    """Tell all of them."""
    for chapter in (_rules, _rules_of_groups, _copies, _namesakes, _passwords, _approvals, _configurations, _exports):
        chapter(story)


def _person(story: Story, name: str) -> int:
    return story.world.actors[name].id


def _made(story: Story, actor: str, rules: str, **more: Any) -> Any:
    return story.call(actor, "POST", rules, {"name": "Newer", "approvals_required": 1, **more})


def _rules(story: Story) -> None:
    project, groups = story.world.one("project"), [story.world.one(name).id for name in ("group", "subgroup")]
    rules, by_path = f"/projects/{project.id}/approval_rules", quote(project.path or "", safe="")
    users = [_person(story, name) for name in ("approver", "second_approver")]
    _made(story, "maintainer", rules, group_ids=groups)
    rule = _made(story, "maintainer", rules, user_ids=users[:1])
    name = story.world.actors["approver"].username
    story.call("maintainer", "GET", f"/projects/{by_path}/approval_rules?per_page=100")
    story.call("developer", "GET", f"{rules}/{rule['id']}")
    change = {"name": _ODD, "approvals_required": 2, "user_ids": users[1:], "usernames": [name]}
    story.call("maintainer", "PUT", f"{rules}/{rule['id']}", change)
    story.call("developer", "GET", f"{rules}/{rule['id']}")
    story.call("maintainer", "GET", f"/projects/{by_path}/approval_rules?per_page=100")
    branch = story.world.one("second_protected_branch").id
    everywhere = _made(story, "maintainer", rules, user_ids=users, applies_to_all_protected_branches=True)
    narrower = {"applies_to_all_protected_branches": False, "protected_branch_ids": [branch]}
    story.call("maintainer", "PUT", f"{rules}/{everywhere['id']}", {**change, **narrower})
    hidden = _made(story, "owner", rules, group_ids=[story.world.one("hidden_group").id])
    story.call("maintainer", "GET", f"{rules}/{hidden['id']}")


def _rules_of_groups(story: Story) -> None:
    rules = [f"/groups/{story.world.one(name).id}/approval_rules" for name in ("group", "sibling_group")]
    first, _ = (_made(story, "owner", path) for path in rules)
    story.call("owner", "PUT", f"{rules[0]}/{first['id']}", {"approvals_required": 7})
    for page in (1, 2):
        story.call("owner", "GET", f"{rules[1]}?page={page}&per_page=2")
    around = (story.world.one("public_project").path or "").rpartition("/")[0]
    story.call("outsider", "GET", f"/groups/{around}/approval_rules")


def _copies(story: Story) -> None:
    project = f"/projects/{story.world.one('project').id}"
    rules = f"{project}/merge_requests/1/approval_rules"
    source = _made(story, "maintainer", f"{project}/approval_rules", user_ids=[_person(story, "approver")])
    wanted = {"approvals_required": 5, "approval_project_rule_id": source["id"]}
    _made(story, "maintainer", rules, **wanted)
    story.call("maintainer", "GET", f"{project}/approvals")
    story.call("maintainer", "DELETE", f"{project}/approval_rules/{source['id']}")
    _made(story, "maintainer", rules, **wanted)
    other = _made(story, "maintainer", f"{project}/merge_requests/2/approval_rules")
    _made(story, "maintainer", rules, approvals_required=5, approval_project_rule_id=other["id"])


def _namesakes(story: Story) -> None:
    reviews = [f"/projects/{story.world.one('project').id}/merge_requests/{iid}" for iid in (1, 2)]
    first, second = (_made(story, "maintainer", f"{review}/approval_rules", name=_ODD) for review in reviews)
    story.call("maintainer", "GET", f"{reviews[0]}/approval_rules?page=1&per_page=1")
    by_name = {"user_ids": [], "group_ids": [], "usernames": [story.world.actors["approver"].username]}
    story.call("maintainer", "PUT", f"{reviews[0]}/approval_rules/{first['id']}", by_name)
    story.call("maintainer", "DELETE", f"{reviews[0]}/approval_rules/{first['id']}")
    story.call("maintainer", "GET", f"{reviews[1]}/approval_rules/{second['id']}")


def _passwords(story: Story) -> None:
    review = f"/projects/{story.world.one('guarded_project').id}/merge_requests/1"
    password = {"approval_password": story.world.actors["approver"].password}
    story.call("approver", "POST", f"{review}/unapprove", password)
    story.call("approver", "POST", f"{review}/approve", {**password, "sha": _OTHER_SHA})
    story.call("approver", "POST", f"{review}/approve", password)
    story.call("approver", "POST", f"{review}/unapprove")


def _approvals(story: Story) -> None:
    review = f"/projects/{story.world.one('project').id}/merge_requests/3"
    story.call("maintainer", "GET", f"{review}/approval_state")
    _made(story, "maintainer", f"{review}/approval_rules", user_ids=[_person(story, "approver")])
    story.call("maintainer", "GET", f"{review}/approval_state")
    story.call("project_bot", "PUT", f"{review}/reset_approvals")
    story.call("developer", "PUT", f"{review}/reset_approvals")
    story.call("approver", "POST", f"{review}/approve")
    story.call("second_approver", "POST", f"{review}/approve", {"sha": _OTHER_SHA})
    story.call("second_approver", "POST", f"{review}/approve")
    story.call("approver", "POST", f"{review}/unapprove")
    story.call("maintainer", "GET", f"{review}/approvals")
    story.call("approver", "POST", f"{review}/approve")
    story.call("project_bot", "PUT", f"{review}/reset_approvals")
    story.call("approver", "POST", f"{review}/approve")
    story.call("maintainer", "GET", f"{review}/approval_state")
    # Who comes first is another one each time, and somebody comes while the approval is being taken back.
    others = ("second_approver", "developer", "maintainer", "owner")
    for _ in range(3):
        meanwhile = ((other, "POST", f"{review}/approve", None) for other in others)
        story.at_once(("approver", "POST", f"{review}/unapprove", None), *meanwhile)
        story.remember(str(sorted(one["user"]["id"] for one in story.read(f"{review}/approvals")["approved_by"])))
        story.call("project_bot", "PUT", f"{review}/reset_approvals")
        story.call("approver", "POST", f"{review}/approve")


def _configurations(story: Story) -> None:
    project, sibling, near = (
        f"/projects/{story.world.one(name).id}/approvals" for name in ("project", "sibling_project", "workbench")
    )
    for change in ({"selective_code_owner_removals": True, "reset_approvals_on_push": False},
                   {"reset_approvals_on_push": True}):  # fmt: skip
        story.call("maintainer", "POST", project, change)
        story.call("maintainer", "GET", project)
    story.call("maintainer", "POST", sibling, {"merge_requests_disable_committers_approval": True})
    story.call("maintainer", "GET", sibling)
    story.call("maintainer", "GET", near)


def _exports(story: Story) -> None:
    inner, outer = (f"/groups/{story.world.one(name).id}/export_relations" for name in ("subgroup", "group"))
    for batched in (True, False):
        story.call("owner", "POST", inner, {"batched": batched})
        story.until_finished(f"{inner}/status")
    story.call("owner", "POST", outer, {"batched": False})
    story.until_finished(f"{outer}/status")
    story.call("owner", "GET", f"{inner}/status")
    story.call("owner", "GET", f"{outer}/download?relation=labels")
    by_path = quote(story.world.one("group").path or "", safe="")
    story.call("owner", "GET", f"/groups/{by_path}/export_relations/status?relation=labels")
