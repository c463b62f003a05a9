"""Chapters of the story about slips: what is loosely compared, remembered too long, or taken away beside something."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selftest.reference.story import Story

_COMPLETIONS = "/code_suggestions/completions"
_HOOK = {"webhook": "https://hooks.example.com/n"}


def newer_slips(story: Story) -> None:
    """Tell all of them."""
    for chapter in (_scopes, _completions, _rules, _configuration, _settings, _integrations, _exports):
        chapter(story)


def _scopes(story: Story) -> None:
    scope = f"/projects/{story.world.one('fresh_project').id}/job_token_scope"
    project, group = story.world.one("workbench").id, story.world.one("sibling_group").id
    story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": project})
    story.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
    story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{group}")
    story.call("maintainer", "GET", f"{scope}/allowlist")


def _completions(story: Story) -> None:
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    path = story.world.one("enabled_project").path
    story.call("owner", "POST", _COMPLETIONS, {"current_file": file, "project_path": path})
    below = {**file, "content_below_cursor": "\n"}
    story.call("owner", "POST", _COMPLETIONS, {"current_file": below, "intent": "generation"})
    bearer = {"authorization": f"Bearer {story.world.actors['owner'].token}"}
    streamed = story.client.post(_COMPLETIONS, json={"current_file": file, "stream": True}, headers=bearer)
    story.remember(f"a stream by a bearer's token: {streamed.status_code}")


def _rules(story: Story) -> None:
    rules = f"/groups/{story.world.one('sibling_group').id}/approval_rules"
    story.call("owner", "POST", f"{rules}?name=Pr%C3%BCfung&approvals_required=1")
    story.call("owner", "GET", f"{rules}?per_page=100")


def _configuration(story: Story) -> None:
    place = f"/projects/{story.world.one('fresh_project').id}/approvals"
    pair = {"reset_approvals_on_push": True, "selective_code_owner_removals": True}
    story.call("maintainer", "POST", place, {**pair, "merge_requests_disable_committers_approval": True})
    story.call("maintainer", "GET", place)


def _settings(story: Story) -> None:
    group = f"/groups/{story.world.one('fresh_group').id}/merge_request_approval_setting"
    for value in (True, False, True):
        story.call("owner", "PUT", group, {"allow_author_approval": value})
    story.call("owner", "PUT", group, {"allow_author_approval": True, "allow_committer_approval": True})
    story.call("owner", "PUT", group, {"allow_author_approval": True, "allow_committer_approval": False})
    around = f"/groups/{story.world.one('group').id}/merge_request_approval_setting"
    story.call("maintainer", "PUT", around, {"allow_author_approval": False})


def _integrations(story: Story) -> None:
    place = f"/projects/{story.world.one('fresh_project').id}/integrations"
    for slug, settings in (
        ("slack", {**_HOOK, "labels_to_be_notified": "bug,feature", "confidential_issue_channel": "secret"}),
        ("irker", {"recipients": "#conformance", "server_port": 60001}),
        ("emails-on-push", {"recipients": "a@example.com"}),
        ("pipelines-email", {"recipients": "b@example.com"}),
    ):
        story.call("maintainer", "PUT", f"{place}/{slug}", settings)
    for slug in ("slack", "irker", "emails-on-push"):
        story.call("maintainer", "GET", f"{place}/{slug}")


def _exports(story: Story) -> None:
    group = story.world.one("fresh_group")
    place = f"/groups/{group.id}/export_relations"
    labels = story.service.planning.labels
    for name in ("first", "second"):
        for number in [number for number, label in labels.items() if label.group_id == group.id]:
            del labels[number]
        story.call("owner", "POST", f"/groups/{group.id}/labels", {"name": name, "color": "#ff0000"})
        story.call("owner", "POST", place, {"batched": True})
        story.call("owner", "GET", f"{place}/status?relation=labels")
        story.until_finished(f"{place}/status")
        story.call("owner", "GET", f"{place}/download?relation=labels&batched=true&batch_number=1")
