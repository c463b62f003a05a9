"""Authentication: how the completion endpoint reads a token; for the other endpoints see tests/contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.code_completion import COMPLETIONS, completion
from conformance.suite.context import current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import given, must, verifies

if TYPE_CHECKING:
    from conformance.suite.expectations import Answer, Caller

UNKNOWN_TOKEN = "0000-no-such-token-0000"  # noqa: S105 - nobody has it


@pytest.fixture
def completes(owner: Caller) -> None:
    """Go on only if completions are available."""
    given(owner.target_declares("code_completion"), "the target does not declare code_completion")


def complete(caller: Caller, body: object = None, **headers: str) -> Answer:
    """Ask for a completion with a token in these headers only."""
    return caller.call("POST", COMPLETIONS, json=body or completion(), headers=headers)


@pytest.mark.usefixtures("completes")
@pytest.mark.calls_area("code-completion")
def test_the_completion_endpoint_takes_the_token_in_either_header(owner: Caller, anonymous: Caller) -> None:
    assert owner.actor is not None
    token = owner.actor.token
    private = complete(anonymous, **{"PRIVATE-TOKEN": token})
    served = complete(anonymous, Authorization=f"Bearer {token}")
    is_either = private.is_served or served.is_served  # otherwise the header is not what is wrong
    with verifies("authentication.private-token-on-completions", go_on=True):
        given(is_either, "a completion is served with the token in neither header")
        private.must_be(200)
    with verifies("authentication.bearer-on-completions"):
        given(is_either, "a completion is served with the token in neither header")
        served.must_be(200)
        # The same operation, but perhaps answered by another part of a service.
        project = current_run().profile.first("project")
        named = {"project_path": project["path"]} if project is not None and project.get("path") else {}
        streamed = completion(stream=True, intent="generation", **named)
        in_pieces = complete(anonymous, streamed, Authorization=f"Bearer {token}")
        if in_pieces.exchange.is_refusal and complete(anonymous, streamed, **{"PRIVATE-TOKEN": token}).is_served:
            in_pieces.must_be(200)
        # Tokens of bots, and of those with a lower role, are access tokens like any other.
        others = ("developer", "project_bot", "group_bot")
        for other in (caller_named(name).actor for name in others if is_known(name)):
            if other is not None and complete(anonymous, **{"PRIVATE-TOKEN": other.token}).is_served:
                complete(anonymous, Authorization=f"Bearer {other.token}").must_be(200)
    with verifies("authentication.unknown-bearer-on-completions"):
        # A token must match as a whole: none, an extended one, a shortened one or one in other case was never issued.
        for unknown in ("", UNKNOWN_TOKEN, f"{token}x", token[:-1], *({token.swapcase()} - {token})):
            refused = complete(anonymous, Authorization=f"Bearer {unknown}".strip()).must_be_refused(beside=served)
            must("choices" not in refused.exchange.body.decode("utf-8", "replace"), "no completion", "choices")
