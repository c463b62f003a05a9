"""What the chapters call: projects, groups and merge requests by the names of the world, and their members."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    import httpx

    from selftest.reference.story import Story

SETTING = "merge_request_approval_setting"
#: No token at all, and one actor of each role.
EVERYBODY = ("", "outsider", "guest", "reporter", "developer", "maintainer", "owner", "admin")
NO_GUESTS = tuple(name for name in EVERYBODY if name != "guest")
#: A name with characters that are often parsed or stored wrongly.
ODD_NAME = "R&D \N{MUSICAL SYMBOL G CLEF}"
#: Longer than a call needs to arrive, and shorter than a faulty service waits between reading and writing.
_MEANWHILE_SECONDS = 0.01


def at(story: Story, name: str) -> str:
    """Return the path of a project or a group, by its id."""
    return f"/{_kind(name)}/{story.world.one(name).id}"


def at_path(story: Story, name: str) -> str:
    """Return the path of a project or a group, by its path."""
    return f"/{_kind(name)}/{quote(story.world.one(name).path or '', safe='')}"


def at_one_of(story: Story, name: str, number: int) -> str:
    """Return the path of one of several projects."""
    return f"/projects/{story.world.many(name)[number].id}"


def _kind(name: str) -> str:
    return "groups" if "group" in name and "project" not in name else "projects"


def merge_request_at(story: Story, name: str) -> str:
    """Return the path of a merge request."""
    known = story.world.one(name).extra
    return f"/projects/{known['project_id']}/merge_requests/{known['iid']}"


def cleared_merge_request(story: Story, name: str = "second_merge_request") -> str:
    """Return a merge request without approvals and without rules of its own."""
    place = merge_request_at(story, name)
    for rule in story.read(f"{place}/approval_rules"):
        story.call("maintainer", "DELETE", f"{place}/approval_rules/{rule['id']}")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    return place


def id_of(story: Story, name: str) -> int:
    """Return the id of an actor."""
    return story.world.actors[name].id


def ids_of(story: Story, *names: str) -> list[int]:
    """Return the ids of actors."""
    return [story.world.actors[name].id for name in names]


def rule_body(name: str, number: int, **more: Any) -> dict[str, Any]:
    """Return the body of a new rule."""
    return {"name": name, "approvals_required": number, **more}


def made_rule(story: Story, actor: str, rules: str, **more: Any) -> Any:
    """Make a rule and return the answer."""
    return story.call(actor, "POST", rules, {**rule_body("Newer", 1), **more})


def during(
    story: Story, first: tuple[str, str, Any], second: tuple[str, str, Any], *, begun_by: str = "owner"
) -> tuple[httpx.Response, httpx.Response]:
    """Send a call, and a call of an owner while the first is in progress; return both responses, remember neither."""
    answers: list[httpx.Response] = []

    def send(actor: str, method: str, path: str, body: Any) -> httpx.Response:
        headers = {"private-token": story.world.actors[actor].token}
        return story.client.request(method, path, json=body, headers=headers)

    story.client.get("/version")  # connect before the first call begins
    earlier = threading.Thread(target=lambda: answers.append(send(begun_by, *first)))
    earlier.start()
    time.sleep(_MEANWHILE_SECONDS)
    later = send("owner", *second)
    earlier.join()
    return answers[0], later
