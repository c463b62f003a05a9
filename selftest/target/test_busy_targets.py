"""What prepares a target goes on behind a gateway that is busy for a moment, and waits for what is only accepted."""

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
    """Answers from a list, one call after the other, and keeps what was sent."""

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
    """Describe an integration of a target that answers a method and a body, whatever the path."""
    calls = Calls(lambda _token, method, _path, _query, body: answer(method, body or {}), Made())
    described = Trial(calls, "a", "/projects/1/integrations").described(kind)
    assert described is not None
    return described


def test_what_a_busy_gateway_did_not_let_through_is_sent_again_with_all_of_it() -> None:
    target = Target(BUSY, MADE)
    assert made_by(target) == {"id": 5}
    assert target.bodies == [FULL, FULL]


def test_what_the_target_itself_refuses_is_sent_with_less() -> None:
    target = Target(Answer(400), MADE)
    assert made_by(target) == {"id": 5}
    assert target.bodies == [FULL, LESS]


@pytest.mark.parametrize("read", [lambda calls: calls.get("a", LABELS), lambda calls: calls.ask("a", LABELS, {})])
def test_what_may_be_sent_again_is_answered_by_the_target_itself(read: Callable[[Calls], Answer]) -> None:
    assert read(Calls(Target(BUSY, BUSY, Answer(200, [])), Made())).status == 200


def test_a_question_that_is_never_answered_is_asked_twice() -> None:
    target = Target(Answer(None), Answer(None))
    assert Calls(target, Made()).ask("a", LABELS, {}).status is None
    assert len(target.bodies) == 2


@pytest.mark.parametrize("status", [400, 403, 404, 413])
def test_a_list_that_is_refused_so_long_is_asked_for_without_a_length(status: int) -> None:
    target = Target(Answer(status), Answer(200, [{"id": 1}]), Answer(200, []))
    assert list(Calls(target, Made()).walk("a", LABELS)) == [{"id": 1}]


def test_settings_of_an_integration_that_are_only_accepted_are_waited_for() -> None:
    """Each set of them shows two reads later."""
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


def test_an_integration_that_breaks_whatever_is_sent_is_not_taken_for_missing() -> None:
    with pytest.raises(RefusedError, match="status 500"):
        described_by(lambda method, _: Answer(500 if method == "PUT" else 200, {}), SLACK)


@pytest.mark.parametrize(("at_first", "is_there"), [(False, True), (True, False)])
def test_events_that_stay_on_are_there_unless_they_were_on_at_first(at_first: bool, is_there: bool) -> None:  # noqa: FBT001 - a row
    """Those that can be switched on, and not off again, are what a run is to find."""
    shown: dict[str, Any] = {"push_events": at_first}

    def answer(_method: str, body: Mapping[str, Any]) -> Answer:
        shown["push_events"] |= body.get("push_events") is True
        return Answer(200, dict(shown))

    described = described_by(answer, SLACK)
    assert ("push_events" in described["events"]) is is_there


def test_a_text_that_is_shown_as_another_one_is_there() -> None:
    """That one takes the place of the other is what a run is to find."""
    chat = Kind(slug="slack", needs={}, texts=["push_channel", "tag_push_channel", "note_channel"])
    shown: dict[str, Any] = {}

    def answer(_method: str, body: Mapping[str, Any]) -> Answer:
        if "tag_push_channel" in body:
            shown.update(push_channel=body["tag_push_channel"], tag_push_channel=body["tag_push_channel"])
        return Answer(200, dict(shown))

    described = described_by(answer, chat)
    assert described["parameters"] == ["push_channel", "tag_push_channel"]
