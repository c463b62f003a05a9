"""How long a call that was throttled waits until it is sent again."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from conformance.http.exchange import Call, Exchange, Trouble
from conformance.http.retries import Persistence, Retries

DATE = "Sun, 22 Nov 2026 10:00:00 GMT"


def waits(headers: dict[str, str]) -> bool:
    """Tell whether a call that was answered 429 may be sent again within a second from the first time."""
    exchange = Exchange(Call(None, "GET", "/version"), 429, headers, b"", 0)
    retries = Retries(call_seconds=0.5, run_seconds=60)
    return retries.wait(exchange, time.monotonic(), 0, calm=True, persistence=Persistence.ONCE)


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "0"},
        {"retry-after": DATE, "date": DATE},
        {"retry-after": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)},
    ],
)
def test_a_short_wait_is_waited(headers: dict[str, str]) -> None:
    assert waits(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"retry-after": "30"},
        {"retry-after": "soon"},
        {"retry-after": "Sun, 22 Nov 2026 10:00:30 GMT", "date": DATE},
        {"retry-after": format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)},
        {"retry-after": "Sun, 22 Nov 2026 10:00:00 -0000", "date": DATE},
    ],
)
def test_a_wait_that_is_longer_than_a_call_may_take_is_none(headers: dict[str, str]) -> None:
    assert not waits(headers)


@pytest.mark.parametrize(
    ("persistence", "sent_again"),
    [
        (Persistence.ONCE, {"GET", "HEAD"}),
        (Persistence.SPOILED, {"GET", "HEAD", "PUT", "PATCH"}),
        (Persistence.ARRANGING, {"GET", "HEAD", "PUT", "PATCH", "DELETE"}),
    ],
)
def test_what_sets_something_is_sent_again_only_in_a_test_that_was_spoiled_more_than_once(
    persistence: Persistence, sent_again: set[str]
) -> None:
    retries = Retries(call_seconds=60, run_seconds=60)
    broken = {
        method
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
        for cut in (Exchange.unanswered(Call(None, method, "/x"), "cut", 0.0, Trouble.BROKEN),)
        if retries.wait(cut, time.monotonic(), 0, calm=True, persistence=persistence)
    }
    assert broken == sent_again
