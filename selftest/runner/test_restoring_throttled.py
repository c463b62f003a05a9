"""Putting back what a run changed, on a target that lets no call through."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from conformance.http.client import Client
from conformance.reference.http import Response
from conformance.runner.precautions import Precautions, restored
from conformance.target import load_profile
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from conformance.http.exchange import Call, Exchange
    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route


def test_at_a_throttling_target_restoring_waits_in_vain_once_and_not_for_every_call(
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = reference[0]
    profile = load_profile(write_profile(*reference, retries={"call_seconds": 2, "run_seconds": 600}))
    owner, rules = profile.actors["owner"], f"/projects/{profile.value('project')}/approval_rules"
    precautions, perform = Precautions.of(profile, None, tmp_path, "run"), Client.perform
    performed: list[str] = []
    sent: list[str] = []

    def performing(client: Client, call: Call) -> Exchange:
        performed.append(call.path)
        return perform(client, call)

    def throttled(route: Route, _: Request, __: Response) -> Response:
        sent.append(route.key)
        return Response(429, headers={"Retry-After": "1"})

    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        assert test.run.client.send(owner, "POST", rules, json_body={"name": "new", "approvals_required": 1}).is_success
        service.transformers.append(throttled)
        monkeypatch.setattr(Client, "perform", performing)
        monkeypatch.setattr("conformance.target.restoring._SHORT_WAIT_SECONDS", 0)
        (left,) = precautions.put_back()
        assert "Put it back later" in left
        assert len(performed) > 20
        at_once, again = 4, 2
        assert 0 < len(sent) - len(performed) <= at_once * again
        service.transformers.remove(throttled)
        assert restored(tmp_path, profile) == ()
        precautions.release()


def test_an_interrupt_also_ends_the_waiting_of_throttled_calls(
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, asked = reference[0], threading.Event()
    profile = load_profile(write_profile(*reference, retries={"call_seconds": 60, "run_seconds": 600}))
    owner, rules = profile.actors["owner"], f"/projects/{profile.value('project')}/approval_rules"
    precautions = Precautions.of(profile, None, tmp_path, "run")

    def throttled(*_: object) -> Response:
        asked.set()
        return Response(429, headers={"Retry-After": "60"})

    def interrupted(_: object) -> None:
        assert asked.wait(30)
        raise KeyboardInterrupt

    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        assert test.run.client.send(owner, "POST", rules, json_body={"name": "new", "approvals_required": 1}).is_success
        service.transformers.append(throttled)
        with monkeypatch.context() as patch:
            patch.setattr("conformance.runner.precautions.wait", interrupted)
            begun = time.monotonic()
            (left,) = precautions.put_back()
        assert "interrupted" in left
        assert time.monotonic() - begun < 30  # and not for the minute that the target asks for
        service.transformers.remove(throttled)
        assert restored(tmp_path, profile) == ()
        precautions.release()
