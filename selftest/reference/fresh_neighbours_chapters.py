"""Chapters of the story that shows foreign faults: a project of the same group, a second approver, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selftest.reference.story import Story


def neighbours(story: Story) -> None:
    """Tell all of them."""
    for chapter in (_limit_in_the_group, _second_approver, _long_name, _refused_settings):
        chapter(story)


def _project(story: Story, name: str) -> str:
    return f"/projects/{story.world.one(name).id}"


def _limit_in_the_group(story: Story) -> None:
    for enabled in (True, False):
        story.call("owner", "PATCH", f"{_project(story, 'project')}/job_token_scope", {"enabled": enabled})
        story.call("owner", "GET", f"{_project(story, 'subgroup_project')}/job_token_scope")


def _second_approver(story: Story) -> None:
    iid = story.world.one("password_merge_request").extra["iid"]
    guarded = f"{_project(story, 'guarded_project')}/merge_requests/{iid}"
    password = story.world.actors["approver"].password
    story.call("approver", "POST", f"{guarded}/approve", {"approval_password": password})
    story.call("second_approver", "POST", f"{guarded}/approve")
    story.call("approver", "POST", f"{guarded}/unapprove")


def _long_name(story: Story) -> None:
    rules = f"{_project(story, 'project')}/approval_rules"
    made = story.call("owner", "POST", rules, {"name": f"A rule of {'a long name ' * 6}", "approvals_required": 1})
    story.call("owner", "DELETE", f"{rules}/{made['id']}")


def _refused_settings(story: Story) -> None:
    settings = f"/groups/{story.world.one('group').id}/merge_request_approval_setting"
    for author in (False, True):
        sent = {"allow_author_approval": author, "retain_approvals_on_push": "maybe"}
        story.call("owner", "PUT", settings, sent)
        story.call("owner", "GET", settings)
