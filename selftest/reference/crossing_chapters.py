"""The last chapters of the story that shows foreign faults: calls that cross what the others look at one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from selftest.reference.story import Story


def crossings(story: Story) -> None:
    """Tell all of them."""
    for chapter in (_callers, _levels, _integrations, _exports, _rules, _approvals, _races):
        chapter(story)


def _at(story: Story, name: str) -> str:
    fixture = story.world.one(name)
    kind = "groups" if "group" in name and "project" not in name else "projects"
    return f"/{kind}/{fixture.id}"


def _by_path(story: Story, name: str) -> str:
    kind = "groups" if "group" in name and "project" not in name else "projects"
    return f"/{kind}/{quote(story.world.one(name).path or '', safe='')}"


def _people(story: Story) -> list[int]:
    return [story.world.actors[name].id for name in ("approver", "second_approver")]


def _callers(story: Story) -> None:
    story.call("", "GET", f"{_by_path(story, 'public_project')}/approval_rules?page=1&per_page=9")
    token = story.world.actors["maintainer"].token
    story.call("", "GET", f"{_at(story, 'project')}/job_token_scope", token=f"x{token}")
    scope = f"{_at(story, 'project')}/job_token_scope/groups_allowlist"
    story.call("maintainer", "POST", scope, {"target_group_id": story.world.one("subgroup").id})
    story.call("maintainer", "GET", f"{scope}?page=1&per_page=50")
    setting = f"{_at(story, 'sibling_group')}/merge_request_approval_setting"
    story.call("owner", "PUT", setting, {"allow_author_approval": True, "allow_committer_approval": True})
    story.call("owner", "PUT", setting, {"allow_author_approval": False, "allow_committer_approval": False})


def _levels(story: Story) -> None:
    project, group = _at(story, "project"), _at(story, "group")
    place = f"{project}/merge_requests/{story.world.one('merge_request').extra['iid']}"
    body = {"name": "Crossing", "approvals_required": 1, "user_ids": _people(story)}
    of_group = story.call("owner", "POST", f"{group}/approval_rules", body)
    own = story.call("maintainer", "POST", f"{place}/approval_rules", body)
    story.call("maintainer", "POST", f"{project}/approval_rules", body)
    story.call("owner", "PUT", f"{group}/approval_rules/{own['id']}", {"name": "of a group"})
    story.call("maintainer", "DELETE", f"{project}/approval_rules/{of_group['id']}")
    story.call("owner", "GET", f"{group}/approval_rules?page=1&per_page=50")
    groups = [story.world.one("approver_group").id]
    story.call("maintainer", "PUT", f"{place}/approval_rules/{own['id']}", {**body, "group_ids": groups})
    story.call("maintainer", "GET", f"{place}/approval_rules/{own['id']}")
    names = [story.world.actors[name].username for name in ("approver", "second_approver")]
    named = {"name": "By name", "approvals_required": 1, "usernames": names}
    story.call("maintainer", "POST", f"{project}/approval_rules", named)


def _integrations(story: Story) -> None:
    project, sibling = _at(story, "project"), _at(story, "sibling_project")
    first, second = {"webhook": "https://a.example.com", "channel": "a"}, {"channel": "b"}
    story.call("maintainer", "PUT", f"{sibling}/integrations/hangouts-chat", first)
    story.call("maintainer", "DELETE", f"{project}/integrations/hangouts-chat")
    story.call("maintainer", "GET", f"{sibling}/integrations")
    story.call("maintainer", "PUT", f"{sibling}/integrations/slack", first)
    story.call("maintainer", "PUT", f"{sibling}/integrations/slack", second)
    story.call("maintainer", "GET", f"{sibling}/integrations/slack")
    target = story.world.many("allowlist_projects")[1].id
    story.call("maintainer", "POST", f"{sibling}/job_token_scope/allowlist", {"target_project_id": target})
    story.call("maintainer", "DELETE", f"{sibling}/integrations/slack")
    story.call("maintainer", "GET", f"{sibling}/job_token_scope/allowlist?page=1&per_page=50")


def _exports(story: Story) -> None:
    group = _at(story, "export_group")
    for _ in range(2):
        story.call("owner", "POST", f"{group}/export_relations", {"batched": False})
        story.call("owner", "GET", f"{group}/merge_request_approval_setting")
    story.until_finished(f"{group}/export_relations/status")
    story.call("owner", "GET", f"{group}/export_relations/download?relation=label")
    story.call("owner", "GET", f"{_by_path(story, 'export_group')}/export_relations/download?relation=labels")


def _rules(story: Story) -> None:
    project = _at(story, "project")
    setting = f"{project}/merge_request_approval_setting"
    place = f"{project}/merge_requests/{story.world.one('second_merge_request').extra['iid']}"
    story.call("maintainer", "PUT", setting, {"retain_approvals_on_push": True})
    story.call("maintainer", "POST", f"{place}/approval_rules", {"name": "Strict", "approvals_required": 1})
    story.call("maintainer", "GET", setting)


def _approvals(story: Story) -> None:
    one = story.world.one("second_merge_request")
    place = f"{_at(story, 'project')}/merge_requests"
    head = str(one.extra["sha"])
    story.call("approver", "POST", f"{place}/{one.id}/approve")
    middle = f"{head[:20]}{'1' if head[20] == '0' else '0'}{head[21:]}"
    story.call("approver", "POST", f"{place}/{one.extra['iid']}/approve", {"sha": middle})
    for _ in range(2):
        story.call("approver", "POST", f"{place}/{one.extra['iid']}/approve")
        story.call("approver", "POST", f"{place}/{one.extra['iid']}/unapprove")


def _races(story: Story) -> None:
    project, setting = _at(story, "public_project"), f"{_at(story, 'public_group')}/merge_request_approval_setting"
    lists = f"{project}/job_token_scope/groups_allowlist"
    first, second = (one.id for one in story.world.many("allowlist_groups")[:2])
    story.at_once(
        ("owner", "POST", lists, {"target_group_id": first}), ("admin", "POST", lists, {"target_group_id": second})
    )
    story.count(lists)
    story.at_once(
        ("owner", "PUT", setting, {"allow_author_approval": False}),
        ("admin", "PUT", setting, {"allow_committer_approval": False}),
    )
    story.call("owner", "GET", setting)
    rules = f"{project}/approval_rules"
    made: list[Any] = [story.call("owner", "POST", rules, {"name": name, "approvals_required": 1}) for name in "XY"]
    story.at_once(
        *(("owner", "PUT", f"{rules}/{one['id']}", {"name": f"{one['id']}", "approvals_required": 2}) for one in made)
    )
    story.call("owner", "GET", f"{rules}?page=1&per_page=50")
    both = [f"{project}/integrations/{slug}" for slug in ("slack", "mattermost")]
    for path in both:
        story.call("owner", "PUT", path, {"webhook": "https://h.example.com"})
    story.at_once(*(("owner", "DELETE", path, None) for path in both))
    story.call("owner", "GET", f"{project}/integrations")
