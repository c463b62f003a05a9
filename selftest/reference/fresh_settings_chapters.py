"""What shows slips in approval settings, the configuration of approvals, rules of groups, and their exports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from conformance.reference.identity import Role
from conformance.reference.server import ask

if TYPE_CHECKING:
    from selftest.reference.story import Story

_SETTING = "merge_request_approval_setting"
_AUTHOR, _COMMITTER = "allow_author_approval", "allow_committer_approval"


def slips_of_settings(story: Story) -> None:
    """Tell what nothing else touches: other names of places, other readers, and what is sent together."""
    _settings(story)
    _configuration(story)
    _rules_of_groups(story)
    _exports(story)


def _settings(story: Story) -> None:
    world = story.world
    project = world.one("branch_rule_project")
    by_number, by_path = (
        f"/projects/{project.id}/{_SETTING}",
        f"/projects/{quote(project.path or '', safe='')}/{_SETTING}",
    )
    story.call("maintainer", "GET", by_path)
    story.call("maintainer", "PUT", by_number, {_AUTHOR: True, _COMMITTER: False})
    story.call("maintainer", "GET", by_path)
    story.call("author", "GET", f"/projects/{world.one('project').id}/{_SETTING}")
    story.call("owner", "GET", f"/groups/{quote(world.one('project').path or '', safe='')}/{_SETTING}")
    headers = {"private-token": world.actors["maintainer"].token, "content-type": "application/json; charset=utf-8"}
    body = json.dumps({_COMMITTER: True}).encode()
    status, _, content = ask(story.service, "PUT", f"/api/v4{by_number}", "", headers, body)
    story.remember(f"PUT {by_number} with a charset -> {status} {content.decode()}")
    number = world.one("fuzz_group").id
    story.call("owner", "POST", "/groups", {"name": "Digits first", "path": f"{number}-and-more"})
    story.call("owner", "PUT", f"/groups/{number}-and-more/{_SETTING}", {_AUTHOR: False})
    story.call("owner", "GET", f"/groups/{number}/{_SETTING}")
    identities = story.service.identities
    identities.add_member(
        identities.groups[world.one("subgroup").id], identities.users[world.actors["reporter"].id], Role.OWNER
    )
    story.call("reporter", "GET", f"/groups/{world.one('group').id}/{_SETTING}")


def _configuration(story: Story) -> None:
    reset, selective = "reset_approvals_on_push", "selective_code_owner_removals"
    place = f"/projects/{story.world.one('branch_rule_project').id}/approvals"
    for change in ({reset: False, selective: True}, {reset: True}, {selective: False}):
        story.call("owner", "POST", place, change)
        story.call("owner", "GET", place)
    story.call("", "GET", f"/projects/{story.world.one('public_project').id}/approvals")


def _rules_of_groups(story: Story) -> None:
    world = story.world
    place, inside = world.one("fuzz_group"), world.one("subgroup")
    rules, inner = f"/groups/{place.id}/approval_rules", f"/groups/{inside.id}/approval_rules"
    story.call("owner", "POST", f"{rules}?name=A%2BB%2050%2525&approvals_required=1")
    made = story.call("owner", "POST", rules, {"name": "R&D", "approvals_required": 1})
    own = story.call("owner", "POST", inner, {"name": "Inside", "approvals_required": 1})
    story.call("owner", "PUT", f"/groups/{world.one('group').id}/approval_rules/{own['id']}", {"name": "From outside"})
    for actor in ("admin", "owner"):
        story.call(actor, "GET", f"{rules}?page=1&per_page=50")
    nested = {"user_ids": [world.actors["developer"].id], "group_ids": [inside.id]}
    story.call("owner", "PUT", f"{rules}/{made['id']}", nested)
    story.call("developer", "PUT", f"{rules}/{made['id']}", {"name": "By whom it names"})
    story.call("admin", "PUT", f"{rules}/{made['id']}", {"group_ids": [world.one("outsider_group").id]})
    story.call("admin", "GET", f"{rules}?page=1&per_page=50")
    story.call("owner", "PUT", f"{rules}/{made['id']}", {"name": "Changed"})
    for actor in ("admin", "owner"):
        story.call(actor, "GET", f"{rules}?page=1&per_page=50")
    for page in range(1, 9):
        story.call("owner", "GET", f"{rules}?page={page}&per_page=1")


def _exports(story: Story) -> None:
    group, other = story.world.one("export_group").id, story.world.one("sibling_group").id
    story.call("owner", "POST", f"/groups/{group}/labels", {"name": "made since", "color": "#123456"})
    for place in (group, other):
        story.call("owner", "POST", f"/groups/{place}/export_relations", {})
        story.until_finished(f"/groups/{place}/export_relations/status")
    story.call("owner", "GET", f"/groups/{group}/export_relations/status")
    story.call("owner", "GET", f"/groups/{group}/export_relations/download?relation=labels")
