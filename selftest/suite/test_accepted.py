"""After a write was answered with 202, the suite waits until it shows, and never for long."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.suite.accepted import Accepted
from conformance.target import Actor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

VALIDATOR = ResponseValidator.of(Contract.load(), None)
CALLER = Actor("maintainer", "a", id=7)
RULE = "/projects/1/approval_rules/5"
UNAPPROVE = "/projects/1/merge_requests/1/unapprove"
SETTINGS = "/projects/1/merge_request_approval_setting"
SLACK = "/projects/1/integrations/slack"


@pytest.fixture
def waited() -> Callable[..., int]:
    """Send a write, and return how often its subject was read; the reads get these responses one after the other."""

    def sent(method: str, path: str, reads: Iterable[Any], *, status: int | None = 202, body: Any = None) -> int:
        answers, asked = iter(reads), 0

        def read(_: Call, __: str) -> Any:
            nonlocal asked
            asked += 1
            return next(answers)

        call = Call(CALLER, method, path, body=json.dumps(body).encode() if body else None)
        Accepted(VALIDATOR, read).see(Exchange(call, status, {}, b"", 0))
        return asked

    return sent


def counting(shown: Any) -> tuple[list[str], Callable[[Call, str], Any]]:
    """Return a list of paths that were read, and the function that reads; it always shows the same."""
    reads: list[str] = []

    def read(_: Call, path: str) -> Any:
        reads.append(path)
        return shown

    return reads, read


@pytest.mark.parametrize(
    ("method", "path", "body", "before", "after"),
    [
        ("DELETE", RULE, None, {"id": 5}, None),
        ("POST", UNAPPROVE, None, {"approved_by": [{"user": {"id": 7}}]}, {"approved_by": [{"user": {"id": 8}}]}),
        (
            "PUT",
            SETTINGS,
            {"allow_author_approval": True},
            *({"allow_author_approval": {"value": value}} for value in (False, True)),
        ),
        ("PUT", SLACK, {"channel": "a"}, *({"active": True, "properties": {"channel": name}} for name in "ba")),
        ("PUT", SLACK.replace("integrations", "services"), {}, {"active": False}, {"active": True}),
        ("PUT", SLACK, {"token": "a"}, None, {"active": True}),
        ("DELETE", SLACK, None, [{"slug": "slack"}], []),
    ],
)
def test_an_accepted_write_is_read_until_it_shows(
    waited: Callable[..., int], method: str, path: str, body: Any, before: Any, after: Any
) -> None:
    assert waited(method, path, [before, before, after], body=body) == 3
    assert waited(method, path, [], body=body, status=200) == 0


def test_if_the_older_name_shows_nothing_the_newer_name_is_read(waited: Callable[..., int]) -> None:
    older = SLACK.replace("integrations", "services")
    assert waited("DELETE", older, [None, [{"slug": "slack"}], None, []]) == 4
    assert waited("DELETE", SLACK, [None]) == 1


def test_a_reset_without_an_answer_gets_time_to_finish_in_the_background(waited: Callable[..., int]) -> None:
    reset, approved = UNAPPROVE.replace("unapprove", "reset_approvals"), {"approved_by": [{"user": {"id": 7}}]}
    assert waited("PUT", reset, [approved, {"approved_by": []}], status=None) == 2
    assert waited("PUT", reset, [None], status=None) == 1
    assert waited("PUT", reset, []) == 0
    assert waited("POST", UNAPPROVE, [], status=None) == 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", UNAPPROVE, 202), ("PUT", UNAPPROVE.replace("unapprove", "reset_approvals"), None)],
)
def test_a_status_that_is_no_object_is_left_to_the_tests(
    waited: Callable[..., int], method: str, path: str, status: int | None
) -> None:
    for shown in ([{"id": 7}], "approved", 1):
        assert waited(method, path, [shown], status=status) == 1


@pytest.mark.parametrize(
    ("path", "body", "shown"),
    [
        (SETTINGS, {"allow_author_approval": True}, {"allow_author_approval": {"value": False, "locked": True}}),
        (SLACK, {"webhook": "a"}, {"active": True, "properties": {}}),
    ],
)
def test_a_change_that_cannot_show_is_not_waited_for(
    waited: Callable[..., int], path: str, body: Any, shown: Any
) -> None:
    assert waited("PUT", path, [shown], body=body) == 1


def test_a_change_that_never_shows_is_waited_for_only_a_few_times() -> None:
    reads, read = counting({"id": 5})
    accepted = Accepted(VALIDATOR, read, seconds=0.05)
    exchange = Exchange(Call(CALLER, "DELETE", RULE), 202, {}, b"", 0)
    begun = time.monotonic()
    for _ in range(30):
        accepted.see(exchange)
    assert time.monotonic() - begun < 2
    asked = len(reads)
    accepted.see(exchange)
    assert len(reads) == asked > 2


def test_a_setting_that_never_shows_the_sent_value_is_waited_for_twice() -> None:
    reads, read = counting({"active": True, "properties": {"webhook": "***"}})
    accepted = Accepted(VALIDATOR, read, seconds=0.05)
    exchange = Exchange(Call(CALLER, "PUT", SLACK, body=b'{"webhook": "a"}'), 202, {}, b"", 0)
    accepted.see(exchange)
    accepted.see(exchange)
    asked = len(reads)
    accepted.see(exchange)
    assert asked > 4
    assert len(reads) == asked + 1


def test_if_other_changes_showed_at_once_the_wait_for_a_missing_one_is_short() -> None:
    reads, read = counting({"active": True, "properties": {"channel": "a"}})

    def asked_in_vain(accepted: Accepted) -> int:
        before = len(reads)
        accepted.see(Exchange(Call(CALLER, "PUT", SLACK, body=b'{"channel": "b"}'), 202, {}, b"", 0))
        return len(reads) - before

    new, experienced = Accepted(VALIDATOR, read, seconds=2), Accepted(VALIDATOR, read, seconds=2)
    for _ in range(5):
        experienced.see(Exchange(Call(CALLER, "PUT", SLACK, body=b'{"channel": "a"}'), 202, {}, b"", 0))
    assert asked_in_vain(experienced) < asked_in_vain(new)
