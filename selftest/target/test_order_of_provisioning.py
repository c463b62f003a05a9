"""What has to be younger than something else is made after it, however many calls are made at once."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.target.provisioning import provision
from conformance.target.provisioning.blueprint import MARK
from selftest.target.bench import Bench

if TYPE_CHECKING:
    from conformance.target.provisioning.calls import Answer, Body, Way

#: How long something is held back; the younger one would long have been made by then.
HELD_BACK_SECONDS = 0.3


@pytest.mark.parametrize(
    ("key", "older", "younger"),
    [
        ("username", "conformance-1-approver-second-approver", "conformance-1-approver"),
        ("name", f"conformance 1 project ({MARK})", f"conformance 1 allowlist project 1 ({MARK})"),
    ],
)
def test_the_younger_one_is_begun_when_the_older_one_is_made(key: str, older: str, younger: str) -> None:
    begun, made = threading.Event(), threading.Event()
    early = []

    def holding_back(way: Way) -> Way:
        def send(token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
            name = str((body or {}).get(key)) if method == "POST" else ""
            if name == younger and not begun.is_set():
                begun.set()
                early.append(not made.is_set())
            if name != older or made.is_set():
                return way(token, method, path, query, body)
            begun.wait(HELD_BACK_SECONDS)
            answer = way(token, method, path, query, body)
            made.set()
            return answer

        return send

    bench = Bench(alter=holding_back)
    done = provision(replace(bench.order(), at_once=16), bench.calls, bench.secrets)
    assert done.refused == {}
    assert early == [False]
