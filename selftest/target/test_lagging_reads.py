"""If reads come from a replica that lags behind, provisioning notices it, waits, and writes it into the profile."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest

from conformance.cli import provision as command
from conformance.target.profile_file import load_profile
from conformance.target.provisioning import provision
from conformance.target.provisioning.calls import by_http
from selftest.conftest import serving
from selftest.target.bench import Bench
from selftest.target.services import StoppedError, changed, reads_behind, stopping_after
from selftest.target.test_provisioning import offered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from selftest.conftest import Outcome


def test_reads_that_lag_behind_writes_are_waited_for() -> None:
    whole = Bench()
    usual = whole.profile(whole.provision())
    bench = Bench(alter=changed(reads_behind(0.02)))
    calls = bench.calls
    done = provision(bench.order(), calls, bench.secrets)
    assert done.refused == {}
    assert 0.02 < calls.settle_seconds < 1
    assert offered(bench.profile(done)) == offered(usual)
    assert bench.profile(done)["features"] == usual["features"]
    assert bench.counts() == whole.counts()


def test_an_interrupted_preparation_of_a_service_whose_reads_lag_is_completed() -> None:
    bench = Bench(alter=lambda way: changed(reads_behind(0.02))(stopping_after(130)(way)))
    with pytest.raises(StoppedError):
        bench.provision()
    assert replace(bench, alter=changed(reads_behind(0.02))).provision().refused == {}


def test_what_never_shows_is_not_read_again_and_again() -> None:
    bench = Bench(patience=0.1)
    calls, looks = bench.calls, count(1)
    for _ in range(5):
        calls.see_lag(lambda: None if next(looks) else {})
    assert (calls.settle_seconds, next(looks) < 20) == (0, True)


def test_the_lag_of_reads_is_in_the_profile_and_used_by_the_next_preparation(
    conformance: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "by_http", lambda client: changed(reads_behind(0.02))(by_http(client)))
    with serving() as (service, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token + "\n")
        where = ("--base-url", base_url, "--admin-token-file", "admin.token")
        first, found = conformance("provision", *where), load_profile(tmp_path / "target.yaml")
        second = conformance("provision", *where)
    assert (first.code, second.code) == (0, 0), first.text + second.text
    assert "Reads lag behind writes here" in first.out
    assert "Reads lag behind writes here" not in second.out
    assert found.limits.settle_seconds > 0.02
    assert load_profile(tmp_path / "target.yaml").redacted() == found.redacted()
