"""Where a disk is full, no file that is needed later is lost, and what was made on the target is told."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from conformance.cli.provision import write_profile
from conformance.errors import ExitCode, UsageError
from conformance.target import load_profile, marker
from conformance.target.machine import write_privately
from conformance.target.marker import Marker
from conformance.target.mending import mend
from conformance.target.provisioning.files import SecretsFile
from conformance.target.readings import Finding, State
from conformance.target.whole_files import write_whole
from selftest.runner.test_full_disk import no_file_longer_than

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service

PROFILE = "base_url: http://127.0.0.1:1\nactors: {}\nfixtures: {project: {id: 1}} # by hand\n"


def test_a_profile_that_cannot_be_written_is_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "target.yaml"
    file.write_text(PROFILE, encoding="utf-8")
    finding = Finding("fixtures.project.path", State.CONTRADICTED, "another path", "a" * 100)
    with no_file_longer_than(len(PROFILE)):
        with pytest.raises(UsageError, match="File too large"):
            mend(file, [finding])
        with pytest.raises(UsageError, match="File too large"):
            write_profile(file, {"base_url": "http://127.0.0.1:1"}, "target.secrets.env")
    assert file.read_text(encoding="utf-8") == PROFILE
    assert mend(file, [finding]) == ("fixtures.project.path",)
    assert [place.name for place in tmp_path.iterdir()] == ["target.yaml"]


def test_a_file_that_is_replaced_keeps_its_rights_and_links_to_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old", encoding="utf-8")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link").is_symlink()


def test_a_state_folder_that_is_a_file_is_named_instead_of_ignored(tmp_path: Path) -> None:
    """A run whose ledger nobody remembers is never put back, if its machine goes down."""
    (tmp_path / "state").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"state/ledger cannot be written: File exists.*CONFORMANCE_STATE"):
        write_privately(tmp_path / "state" / "ledger", "{}")


def test_a_file_that_cannot_be_replaced_is_written_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, a single file may be mounted."""
    (tmp_path / "file").write_text("old", encoding="utf-8")

    def busy(*_: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(type(tmp_path), "replace", busy)
    write_whole(tmp_path / "file", "new")
    assert [(place.name, place.read_text(encoding="utf-8")) for place in tmp_path.iterdir()] == [("file", "new")]


def test_half_a_secret_is_not_kept(tmp_path: Path) -> None:
    kept = SecretsFile(tmp_path / "secrets.env")
    kept.keep("A_TOKEN", "first-secret")
    with (
        no_file_longer_than(len("A_TOKEN=first-secret\nB_TOKEN=sec")),
        pytest.raises(UsageError, match="Cannot keep"),
    ):
        kept.keep("B_TOKEN", "second-secret")
    assert (tmp_path / "secrets.env").read_text(encoding="utf-8") == "A_TOKEN=first-secret\n"
    kept.keep("B_TOKEN", "third-secret")
    kept.close()
    assert (tmp_path / "secrets.env").read_text(encoding="utf-8") == "A_TOKEN=first-secret\nB_TOKEN=third-secret\n"


def test_provisioning_that_has_no_room_says_what_it_has_made(
    conformance: Callable[..., Any], reference: tuple[Service, str], tmp_path: Path
) -> None:
    service, base_url = reference
    (tmp_path / "admin.token").write_text(service.administrator.token, encoding="utf-8")
    with no_file_longer_than(1000):
        outcome = conformance("provision", "--base-url", base_url, "--admin-token-file", "admin.token")
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert "made.jsonl: File too large" in outcome.err
    assert f"remove what is there: conformance sweep --base-url {base_url}" in outcome.err


def test_a_mark_that_cannot_be_renewed_once_is_renewed_later(
    write_profile: Callable[..., Path],
    reference: tuple[Service, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profile = load_profile(write_profile(*reference, fixtures={}))
    monkeypatch.setenv("CONFORMANCE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(marker, "_BEAT_SECONDS", 0.01)
    renewals, usual = threading.Semaphore(0), write_whole

    def without_room_at_first(file: Path, text: str) -> None:
        renewals.release()
        if len(seen) < 1:
            seen.append(text)
            raise OSError(28, "No space left on device")
        usual(file, text)

    seen: list[str] = []
    monkeypatch.setattr("conformance.target.machine.write_whole", without_room_at_first)
    mark = Marker(profile, "run")
    assert mark.claim() is None
    began = time.monotonic()
    assert all(renewals.acquire(timeout=20) for _ in range(3)), time.monotonic() - began
    mark.release()
    assert not list((tmp_path / "state").rglob("*.json"))
