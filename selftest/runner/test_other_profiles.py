"""Several profiles may name different places of one service: a run leaves alone what runs with the others changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode
from conformance.results.recorder import Recorder
from conformance.runner.precautions import Precautions, restored
from conformance.target.embedded import prepared_service, profile_of
from conformance.target.ledger import Content
from conformance.target.profile_file import profile_from
from selftest.conftest import VERSION, in_a_test, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.target import Profile


@pytest.fixture
def profiles() -> Iterator[tuple[Profile, Profile]]:
    """Two profiles of one service, each of other projects and groups."""
    with serving(prepared_service(version=VERSION, worlds=2)) as (service, base_url):
        whole = profile_from(profile_of(service, base_url, VERSION), "both")
        yield replace(whole, worlds=()), replace(whole.in_world(1), worlds=())


def changed(profile: Profile, folder: Path) -> None:
    """Change something as a run does that is killed before it ends."""
    precautions = Precautions.of(profile, None, folder, folder.name)
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        path = f"/projects/{profile.value('project')}/job_token_scope"
        for enabled in (False, True):
            body = {"enabled": enabled}
            assert test.run.client.send(profile.actors["maintainer"], "PATCH", path, json_body=body).is_success
    precautions.close()
    precautions.release()


def begun_with(profile: Profile, folder: Path) -> list[str]:
    """Begin a run and end it, and return what it says about others."""
    precautions = Precautions.of(profile, None, folder, folder.name)
    said = list(precautions.begin([0], restores=True))
    assert precautions.put_back() == ()
    precautions.release()
    return said


def test_a_run_that_goes_on_is_not_undone(profiles: tuple[Profile, Profile], tmp_path: Path) -> None:
    """Several targets of one command may be of one service, and their actors the same."""
    one, other = profiles
    live = Recorder(tmp_path / "one" / "results.jsonl")
    changed(one, tmp_path / "one")
    for profile in (replace(other, actors=one.actors), replace(one, fixtures={**one.fixtures, **other.fixtures})):
        assert begun_with(profile, tmp_path / "other") == []
        assert not Content.read(tmp_path / "one" / "ledger.jsonl").is_settled
    live.close()


def test_what_a_killed_run_changed_is_put_back_by_one_that_writes_to_its_folder(
    profiles: tuple[Profile, Profile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    changed(profiles[0], tmp_path / "one")
    own = Recorder(Path("one") / "results.jsonl")
    assert begun_with(profiles[0], Path("one")) == ["Run one did not end. What it changed has been put back first."]
    own.close()


def test_what_a_killed_run_changed_elsewhere_is_left_to_its_own_profile(
    profiles: tuple[Profile, Profile], tmp_path: Path
) -> None:
    one, other = profiles
    changed(one, tmp_path / "one")
    (said,) = begun_with(other, tmp_path / "other")
    assert said == f"Run one did not end, and its profile names other places: conformance restore {tmp_path / 'one'}"
    assert not Content.read(tmp_path / "one" / "ledger.jsonl").is_settled
    assert restored(tmp_path / "one", one) == ()
    assert begun_with(other, tmp_path / "another") == []


def test_what_a_run_that_goes_on_changed_is_not_restored_by_hand_either(
    conformance: Callable[..., Any], profiles: tuple[Profile, Profile], tmp_path: Path
) -> None:
    """It may go on in a container, where its process has no number here."""
    live = Recorder(tmp_path / "one" / "results.jsonl")
    changed(profiles[0], tmp_path / "one")
    (tmp_path / "target.yaml").write_text(f"base_url: {profiles[0].base_url}\nactors: {{}}", encoding="utf-8")
    outcome = conformance("restore", "one", "--target", "target.yaml")
    assert (outcome.code, "still goes on. It puts back" in outcome.err) == (ExitCode.USAGE, True), outcome.text
    live.close()


def test_a_run_whose_ledger_somebody_deleted_says_that_its_changes_stay(
    profiles: tuple[Profile, Profile], tmp_path: Path
) -> None:
    precautions = Precautions.of(profiles[0], None, tmp_path / "one", "one")
    assert list(precautions.begin([0], restores=True)) == []
    (tmp_path / "one" / "ledger.jsonl").unlink()
    (left,) = precautions.put_back()
    assert left.startswith(f"all that it changed: {tmp_path / 'one' / 'ledger.jsonl'} was deleted meanwhile")
    precautions.release()
