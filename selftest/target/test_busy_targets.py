"""Provisioning continues behind a gateway that is busy for a moment, and waits for changes that are only accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.target.provisioning.calls import Answer, Calls, RefusedError, Wanted
from conformance.target.provisioning.files import Made
from conformance.target.provisioning.integrations import Kind, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BUSY, MADE = Answer(503), Answer(201, {"id": 5})
LABELS = "/groups/1/labels"
FULL, LESS = {"name": "bug", "description": "All of it."}, {"name": "bug"}
SLACK = Kind(slug="slack", needs={}, flags=["notify_only_broken_pipelines"], events=["push_events"])


class Target:
    """Gives prepared responses, one after the other, and keeps what was sent."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.bodies: list[Mapping[str, Any] | None] = []

    def __call__(
        self,
        token: str,  # noqa: ARG002 - the form of a way to a target
        method: str,  # noqa: ARG002 - see above
        path: str,  # noqa: ARG002 - see above
        query: Mapping[str, Any],  # noqa: ARG002 - see above
        body: Mapping[str, Any] | None,
    ) -> Answer:
        self.bodies.append(body)
        return self.answers.pop(0)


def made_by(target: Target) -> Any:
    wanted = Wanted(what="a label", path=LABELS, tokens=["a"], bodies=[FULL, LESS], look_up=lambda: None)
    return Calls(target, Made(), patience_seconds=5).make(wanted)


def described_by(answer: Callable[[str, Mapping[str, Any]], Answer], kind: Kind) -> Mapping[str, Any]:
    """Describe an integration of a target whose response depends on method and body, whatever the path."""
    calls = Calls(lambda _token, method, _path, _query, body: answer(method, body or {}), Made())
    described = Trial(calls, "a", "/projects/1/integrations").described(kind)
    assert described is not None
    return described


def test_a_call_that_a_busy_gateway_rejected_is_repeated_completely() -> None:
    target = Target(BUSY, MADE)
    assert made_by(target) == {"id": 5}
    assert target.bodies == [FULL, FULL]


def test_a_call_that_the_target_itself_refuses_is_sent_with_less() -> None:
    target = Target(Answer(400), MADE)
    assert made_by(target) == {"id": 5}
    assert target.bodies == [FULL, LESS]


@pytest.mark.parametrize("read", [lambda calls: calls.get("a", LABELS), lambda calls: calls.ask("a", LABELS, {})])
def test_an_idempotent_call_is_repeated_until_the_target_itself_answers(read: Callable[[Calls], Answer]) -> None:
    assert read(Calls(Target(BUSY, BUSY, Answer(200, [])), Made())).status == 200


def test_a_call_that_is_never_answered_is_sent_twice() -> None:
    target = Target(Answer(None), Answer(None))
    assert Calls(target, Made()).ask("a", LABELS, {}).status is None
    assert len(target.bodies) == 2


@pytest.mark.parametrize("status", [400, 403, 404, 413])
def test_a_list_that_refuses_a_page_length_is_requested_without_one(status: int) -> None:
    target = Target(Answer(status), Answer(200, [{"id": 1}]), Answer(200, []))
    assert list(Calls(target, Made()).walk("a", LABELS)) == [{"id": 1}]


def test_settings_of_an_integration_that_are_only_accepted_are_waited_for() -> None:
    """Each change of the settings shows two reads later."""
    shown: dict[str, Any] = {}
    waiting: list[tuple[int, Mapping[str, Any]]] = []
    reads = 0

    def answer(method: str, body: Mapping[str, Any]) -> Answer:
        nonlocal reads
        if method == "PUT":
            waiting.append((reads + 2, body))
            return Answer(202, {})
        reads += method == "GET"
        for due, settings in [one for one in waiting if one[0] <= reads]:
            shown.update(settings)
            waiting.remove((due, settings))
        return Answer(200, dict(shown))

    described = described_by(answer, SLACK)
    assert "push_events" in described["events"]


def test_an_integration_that_always_causes_server_errors_does_not_count_as_missing() -> None:
    with pytest.raises(RefusedError, match="status 500"):
        described_by(lambda method, _: Answer(500 if method == "PUT" else 200, {}), SLACK)


@pytest.mark.parametrize(("at_first", "is_there"), [(False, True), (True, False)])
def test_events_that_cannot_be_switched_off_exist_unless_they_were_on_at_first(at_first: bool, is_there: bool) -> None:  # noqa: FBT001 - a row
    """A run shall find events that can be switched on and not off again."""
    shown: dict[str, Any] = {"push_events": at_first}

    def answer(_method: str, body: Mapping[str, Any]) -> Answer:
        shown["push_events"] |= body.get("push_events") is True
        return Answer(200, dict(shown))

    described = described_by(answer, SLACK)
    assert ("push_events" in described["events"]) is is_there


def test_a_setting_that_shows_the_text_of_another_one_exists() -> None:
    """A run shall find that one text replaces the other."""
    chat = Kind(slug="slack", needs={}, texts=["push_channel", "tag_push_channel", "note_channel"])
    shown: dict[str, Any] = {}

    def answer(_method: str, body: Mapping[str, Any]) -> Answer:
        if "tag_push_channel" in body:
            shown.update(push_channel=body["tag_push_channel"], tag_push_channel=body["tag_push_channel"])
        return Answer(200, dict(shown))

    described = described_by(answer, chat)
    assert described["parameters"] == ["push_channel", "tag_push_channel"]


def test_a_text_without_which_an_integration_is_refused_is_among_what_it_requires() -> None:
    """Some services know who signs in by the password alone, and others require a username as well."""
    tracker = Kind(slug="jira", needs={"url": "https://jira.example.com"}, texts=["api_url", "username"])
    shown: dict[str, Any] = {}

    def answer(method: str, body: Mapping[str, Any]) -> Answer:
        if method == "PUT" and "username" not in body:
            return Answer(400)
        shown.update(body)
        return Answer(200, dict(shown))

    calls = Calls(
        lambda _token, method, path, _query, body: Answer(404) if "no-such" in path else answer(method, body or {}),
        Made(),
    )
    described = Trial(calls, "a", "/projects/1/integrations").described(tracker)
    assert described is not None
    assert described["required"] == ["url", "username"]
    assert described["settings"]["username"] == "jira-username-31"
    assert "api_url" in described["parameters"]
