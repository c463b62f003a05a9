"""The chapter of code completion: requests and responses, the check, and the limit per minute."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.reference.server import ask
from selftest.reference.chapters.new_places import tenants
from selftest.reference.chapters.places import during

if TYPE_CHECKING:
    from collections.abc import Mapping

    from selftest.reference.story import Story

_COMPLETIONS = "/code_suggestions/completions"
_ENABLED = "/code_suggestions/enabled"
_FILE = {"file_name": "a.py", "content_above_cursor": "x = "}
#: How many completions a user may ask for within a minute.
_LIMIT = 60
_ABOVE_THE_LIMIT = 62


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _intents_and_paths,
        _generations_and_no_streams,
        _a_token_of_nobody,
        _streams_of_generations,
        _one_file_too_many,
        _a_bearer_that_is_nobodys,
        _intents_beside_a_project,
        _bearers_and_checks_in_one_minute,
        _below_the_cursor,
        _paths_of_three_segments,
        _letters_of_two_bytes,
        _a_project_of_a_user,
        _switched_off_in_a_project,
        _projects_in_one_minute,
        _a_bearer_above_the_limit,
        _another_token_above_the_limit,
        _a_bearers_stream,
        _bearers_tokens_that_are_almost_right,
        _paths_that_are_almost_right,
        _a_generation_without_content,
        _blanks_and_an_empty_intent,
        _a_disabled_project_twice,
        _refusals_within_a_minute,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_a_completion_before_a_stream, _two_checks_at_once):
        chapter(story)


def _intents_and_paths(story: Story) -> None:
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    for intent in ("completion", "Completion", "other"):
        story.call("developer", "POST", _COMPLETIONS, {"current_file": file, "intent": intent})
    path = story.world.one("enabled_project").path
    for sent in (path, f"{path}-2", "", "no/such"):
        story.call("developer", "POST", _ENABLED, {"project_path": sent})


def _generations_and_no_streams(story: Story) -> None:
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    story.call("developer", "POST", _COMPLETIONS, {"current_file": file, "intent": "generation"})
    story.call("developer", "POST", _COMPLETIONS, {"current_file": file, "stream": False})


def _a_token_of_nobody(story: Story) -> None:
    public = story.world.one("public_project")
    story.call("", "POST", _ENABLED, {"project_path": public.path}, token="nobody's")
    story.call("", "POST", _ENABLED, {"project_path": public.path})


def _streams_of_generations(story: Story) -> None:
    path = story.world.one("subgroup").path
    story.call("developer", "POST", _ENABLED, {"project_path": path})
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    wanted = {"current_file": file, "intent": "generation", "stream": True}
    story.call("developer", "POST", _COMPLETIONS, wanted)


def _one_file_too_many(story: Story) -> None:
    """Request one completion too many, with as many files, for a user who has not requested any before."""
    for number in range(_LIMIT + 1):
        file = {"file_name": f"{number}.py", "content_above_cursor": "def f():"}
        story.call("reporter", "POST", _COMPLETIONS, {"current_file": file})


def _a_bearer_that_is_nobodys(story: Story) -> None:
    place = _COMPLETIONS
    wanted = {"current_file": {"file_name": "a.py", "content_above_cursor": "def f():"}}
    answer = story.client.post(place, json=wanted, headers={"authorization": "Bearer nobody's"})
    story.remember(f"a bearer: {answer.status_code}")
    story.call("maintainer", "POST", place, {**wanted, "stream": True, "intent": "neither"})
    path = story.world.one("subgroup_project").path
    story.call("maintainer", "POST", _ENABLED, {"project_path": path})


def _intents_beside_a_project(story: Story) -> None:
    path, file = story.world.one("project").path or "", {"file_name": "a.py", "content_above_cursor": "a = "}
    body = {"current_file": file, "intent": "unheard-of", "project_path": path}
    story.call("admin", "POST", _COMPLETIONS, body)
    last = path.rpartition("/")[2]
    story.call("admin", "POST", _ENABLED, {"project_path": f"no-such-group/{last}"})


def _with(story: Story, headers: Mapping[str, str], method: str, path: str, body: Any) -> None:
    """Send a call with its own headers, and remember the response without what changes each time."""
    content = json.dumps(body).encode()
    status, _, _ = ask(story.service, method, f"/api/v4{path}", "", headers, content)
    story.remember(f"{method} {path} {body} -> {status}")


def _token(story: Story, actor: str) -> dict[str, str]:
    return {"private-token": story.world.actors[actor].token}


def _bearers_and_checks_in_one_minute(story: Story) -> None:
    for body in ({"intent": "generation"}, {"intent": " Generation"}):
        story.call("guest", "POST", _COMPLETIONS, {"current_file": _FILE, **body})
    named = story.world.one("group_enabled_project").path or ""
    group, name = named.rsplit("/", 1)
    for path in (named, f"{group}/nothing", f"{group}x/{name}"):
        story.call("owner", "POST", _ENABLED, {"project_path": path})
    for number in range(70):
        token = story.world.actors["reporter"].token
        _with(story, {"authorization": f"Bearer {token}"}, "POST", _COMPLETIONS, {"current_file": _FILE})
        if number % 2:
            story.call("second_approver", "POST", _ENABLED, {"project_path": named})
    for _ in range(40):
        _with(story, _token(story, "second_approver"), "POST", _COMPLETIONS, {"current_file": _FILE})


def _below_the_cursor(story: Story) -> None:
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    path = story.world.one("enabled_project").path
    story.call("owner", "POST", _COMPLETIONS, {"current_file": file, "project_path": path})
    below = {**file, "content_below_cursor": "\n"}
    story.call("owner", "POST", _COMPLETIONS, {"current_file": below, "intent": "generation"})
    bearer = {"authorization": f"Bearer {story.world.actors['owner'].token}"}
    streamed = story.client.post(_COMPLETIONS, json={"current_file": file, "stream": True}, headers=bearer)
    story.remember(f"a stream by a bearer's token: {streamed.status_code}")


def _paths_of_three_segments(story: Story) -> None:
    tenants(story, "tenants-of-completions")
    story.call("owner", "POST", _ENABLED, {"project_path": "tenants-of-completions/deep"})
    file = {"file_name": "你好.py", "content_above_cursor": "x = "}
    story.call("author", "POST", _COMPLETIONS, {"current_file": file})


def _letters_of_two_bytes(story: Story) -> None:
    file = {"file_name": "a.py", "content_above_cursor": "# Grüße\n"}
    story.call("owner", "POST", _COMPLETIONS, {"current_file": file})


def _a_project_of_a_user(story: Story) -> None:
    made = story.call("owner", "POST", "/projects", {"name": "completed"})
    story.call("owner", "POST", _ENABLED, {"project_path": made["path_with_namespace"]})


def _switched_off_in_a_project(story: Story) -> None:
    for name in ("subgroup_project", "disabled_project"):
        path = {"project_path": story.world.one(name).path}
        story.call("owner", "POST", _ENABLED, path)
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    story.call("owner", "POST", _COMPLETIONS, {"current_file": file, "stream": False})


def _projects_in_one_minute(story: Story) -> None:
    path = _COMPLETIONS
    file = {"file_name": "a.py", "content_above_cursor": "def f():"}
    for below in ("", "    return 1"):
        story.call("owner", "POST", path, {"current_file": {**file, "content_below_cursor": below}})
    named = [story.world.one(name).path for name in ("project", "subgroup_project")]
    for number in range(62):
        story.call("reporter", "POST", path, {"current_file": file, "project_path": named[number % 2]})


def _a_bearer_above_the_limit(story: Story) -> None:
    path, file = _COMPLETIONS, {"file_name": "a.py", "content_above_cursor": "def f():"}
    story.call("guest", "POST", path, {"current_file": file, "intent": "generation"})
    known = str(story.world.one("enabled_project").path)
    for project in (f"{known.rpartition('/')[0]}/none", known):
        story.call("guest", "POST", _ENABLED, {"project_path": project})
    bearer = {"authorization": f"Bearer {story.world.actors['guest'].token}"}
    for _ in range(_ABOVE_THE_LIMIT):
        answer = story.client.post(path, json={"current_file": file}, headers=bearer)
        story.remember(f"a completion for a bearer's token: {answer.status_code}")


def _another_token_above_the_limit(story: Story) -> None:
    body = {"current_file": {"file_name": "a.py", "content_above_cursor": "def f():"}}
    for _ in range(_ABOVE_THE_LIMIT):
        story.call("developer", "POST", _COMPLETIONS, body)
    second = str(story.world.one("second_token").extra["token"])
    story.call("by another token", "POST", _COMPLETIONS, body, token=second)


def _a_bearers_stream(story: Story) -> None:
    path = _COMPLETIONS
    file = {"file_name": "a.py", "content_above_cursor": "def f():", "content_below_cursor": "f()"}
    story.call("author", "POST", path, {"current_file": file, "intent": "generation"})
    project = story.world.one("enabled_project").path
    answer = story.call("author", "POST", path, {"current_file": file, "project_path": project})
    story.remember(f"the moment of a completion is of type {type(answer['created']).__name__}")
    bearer = {"authorization": f"Bearer {story.world.actors['author'].token}"}
    streamed = story.client.post(path, json={"current_file": file, "stream": True}, headers=bearer)
    story.remember(f"a stream for a bearer's token: {streamed.status_code}")


def _bearers_tokens_that_are_almost_right(story: Story) -> None:
    token = story.world.actors["approver"].token
    for sent in (token.upper(), token[:-2]):
        bearer = {"authorization": f"Bearer {sent}"}
        answer = story.client.post(_COMPLETIONS, json={"current_file": _FILE}, headers=bearer)
        story.remember(f"a bearer's token that is almost right: {answer.status_code}")


def _paths_that_are_almost_right(story: Story) -> None:
    known = story.world.one("enabled_project").path or ""
    for path in (f"{known[:-1]}_", f"no-such-group/{known}"):
        story.call("owner", "POST", _ENABLED, {"project_path": path})


def _a_generation_without_content(story: Story) -> None:
    body = {"current_file": {"file_name": "a.py"}, "intent": "generation"}
    story.call("approver", "POST", _COMPLETIONS, body)


def _blanks_and_an_empty_intent(story: Story) -> None:
    for above in ("\n", "    "):
        story.call("approver", "POST", _COMPLETIONS, {"current_file": {**_FILE, "content_above_cursor": above}})
    story.call("approver", "POST", _COMPLETIONS, {"current_file": _FILE, "intent": ""})


def _a_disabled_project_twice(story: Story) -> None:
    for _ in range(2):
        story.call("owner", "POST", _ENABLED, {"project_path": story.world.one("disabled_project").path})


def _refusals_within_a_minute(story: Story) -> None:
    for _ in range(_ABOVE_THE_LIMIT):
        _with(story, _token(story, "second_approver"), "POST", _COMPLETIONS, {"current_file": _FILE})


def _a_completion_before_a_stream(story: Story) -> None:
    asked = [("POST", _COMPLETIONS, {"current_file": _FILE, "stream": stream}) for stream in (False, True)]
    for answer in during(story, asked[0], asked[1]):
        story.remember(f"a completion beside a stream: {answer.headers['content-type']}")


def _two_checks_at_once(story: Story) -> None:
    paths = [story.world.one(name).path for name in ("enabled_project", "disabled_project")]
    first, second = (("POST", _ENABLED, {"project_path": path}) for path in paths)
    for answer in during(story, first, second):
        story.remember(f"one of two checks: {answer.status_code}")
