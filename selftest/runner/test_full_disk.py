"""A folder that cannot be written is reported before the first call; if a disk becomes full, nothing stays changed."""

from __future__ import annotations

import errno
import json
import os
import resource
import tempfile
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode, UsageError
from conformance.http.client import Client
from conformance.results.recorder import Recorder, require_writable
from conformance.runner.options import Options
from conformance.runner.precautions import Precautions
from conformance.runner.profiles import profile_of
from conformance.target import load_profile
from conformance.target.ledger import Content, UnwrittenError
from selftest.altering import called
from selftest.conftest import in_a_test
from selftest.proof.test_caught import pages_are_whole
from selftest.reads import everything_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conformance.reference import Service

FEW = ("-q", "--workers", "1", "--max-examples", "2", "--seed", "1", "--corpus", "none", "--target", "target.yaml")


@pytest.mark.parametrize("out", ["file", "file/below", "folder"])
def test_an_out_folder_that_cannot_be_written_is_reported_before_the_first_call(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    out: str,
) -> None:
    service, base_url = reference
    calls = called(service)
    write_profile(service, base_url, version="auto")
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "folder" / "results.jsonl").mkdir(parents=True)  # root may write to a read-only folder
    outcome = conformance("run", *FEW, "--out", out)
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert outcome.err.count("Cannot write reports to") == 1
    assert calls == []


def test_a_worker_does_not_check_the_folder_that_the_record_of_another_process_may_fill_meanwhile(
    reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "results.jsonl").mkdir()
    options = Options(target=write_profile(*reference), out=tmp_path)
    with pytest.raises(UsageError, match="Cannot write reports"):
        profile_of(options)
    assert profile_of(options, keeps_record=False)[0] is not None


def test_checking_whether_a_folder_can_be_written_leaves_no_file(tmp_path: Path) -> None:
    require_writable(tmp_path / "some" / "where")
    (tmp_path / "there").mkdir()
    require_writable(tmp_path / "there")
    assert [place.name for place in tmp_path.rglob("*")] == ["there"]


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Refuse every write beyond a file size, as a full disk does."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def test_a_disk_without_room_for_a_record_is_reported_at_once(tmp_path: Path) -> None:
    with no_file_longer_than(1000), pytest.raises(UsageError, match="File too large"):
        require_writable(tmp_path / "out")


def test_a_write_that_the_ledger_cannot_store_is_not_sent_and_others_are_undone(
    reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    profile = load_profile(write_profile(*reference))
    before, owner = everything_read(profile), profile.actors["owner"]
    first, second = (f"/projects/{profile.value(name)}/approval_rules" for name in ("project", "sibling_project"))
    precautions, rule = Precautions.of(profile, None, tmp_path, "run"), {"name": "new", "approvals_required": 1}
    with in_a_test(profile) as test, Client(profile.client_settings()) as beside:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        assert test.run.client.send(owner, "POST", first, json_body=rule).is_success
        with no_file_longer_than((tmp_path / "ledger.jsonl").stat().st_size):
            for _ in range(2):
                with pytest.raises(UnwrittenError, match="could not be written"):
                    test.run.client.send(owner, "POST", second, json_body=rule)
            assert len(json.loads(beside.send(owner, "GET", first).body)) > 0
            assert precautions.put_back() == ()
        precautions.release()
    assert Content.read(tmp_path / "ledger.jsonl").is_settled
    assert everything_read(profile) == before


def test_if_a_disk_becomes_full_the_run_ends_with_one_message_and_undoes_changes(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profile = load_profile(write_profile(*reference))
    before, number, usual = everything_read(profile), count(1), os.fsync

    def full_for_a_moment(file: int) -> None:
        if next(number) == 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        usual(file)

    monkeypatch.setattr(os, "fsync", full_for_a_moment)
    outcome = conformance("run", *FEW, "--area", "job-token-scope", "--out", "out")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    words = " ".join(outcome.out.split())
    assert "Nothing failed, but out/ledger.jsonl could not be written (No space left on device)" in words
    assert "broken" not in words
    assert next(number) > 8
    assert everything_read(profile) == before


@pytest.mark.parametrize(
    ("write", "code", "says"),
    [
        (2, ExitCode.COULD_NOT_RUN, "The run could not begin: out/ledger.jsonl could not be written"),
        (4, ExitCode.INCOMPLETE, "Nothing failed, but out/ledger.jsonl could not be written"),
    ],
    ids=["before the first test", "while groups for the tests are made"],
)
def test_a_disk_that_becomes_full_between_tests_is_reported_in_one_message(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    write: int,
    code: ExitCode,
    says: str,
) -> None:
    profile = load_profile(write_profile(*reference))
    before, number, usual = everything_read(profile), count(1), os.fsync

    def full(file: int) -> None:
        if next(number) == write:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        usual(file)

    monkeypatch.setattr(os, "fsync", full)
    outcome = conformance("run", *FEW, "--area", "group-approval-rules", "--out", "out")
    assert outcome.code == code, outcome.text
    assert says in " ".join(outcome.text.split())
    assert everything_read(profile) == before


def test_a_record_that_had_to_be_written_elsewhere_is_no_success(
    conformance: Callable[..., Any], reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    write_profile(*reference)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.jsonl").symlink_to("/dev/full")
    outcome = conformance("run", *FEW, "--requirement", "job-token-scope.settings.read", "--out", "out")
    assert outcome.code == ExitCode.SUITE_BROKE, outcome.text
    assert "could not be written (No space left on device); the record is in " in " ".join(outcome.text.split())


def test_a_record_without_room_anywhere_is_lost_and_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    recorder = Recorder(tmp_path / "out" / "results.jsonl")
    with no_file_longer_than(100):
        recorder.append("x" * 200 + "\n")
    recorder.close()
    assert recorder.is_lost
    assert "and the temporary folder neither" in (recorder.moved or "")
    assert [place.name for place in tmp_path.iterdir()] == ["out"]


def test_a_missing_report_decides_the_exit_code_even_of_an_incomplete_run(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    """Otherwise, a nightly job that accepts 6 would accept a run without reports."""
    (tmp_path / "out" / "index.html" / "in-the-way").mkdir(parents=True)
    outcome = conformance("run", "-q", "--area", "job-token-scope", "--minutes", "0.0001", "--out", "out")
    assert outcome.code == ExitCode.SUITE_BROKE, outcome.text
    assert "Missing there: html" in outcome.text


@pytest.mark.parametrize(("faulty", "code"), [(True, ExitCode.NON_CONFORMANT), (False, ExitCode.SUITE_BROKE)])
def test_if_no_report_could_be_written_a_violation_still_decides_the_exit_code(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    faulty: bool,  # noqa: FBT001 - of a table
    code: ExitCode,
) -> None:
    write_profile(*reference)
    if faulty:
        pages_are_whole(reference[0])
    for name in ("index.html", "report.json", "summary.md"):
        (tmp_path / "out" / name / "in-the-way").mkdir(parents=True)
    outcome = conformance("run", *FEW, "--area", "job-token-scope", "--out", "out")
    assert outcome.code == code, outcome.text
    assert "Missing there: json, html, markdown" in outcome.err
    assert "Report:" not in outcome.text


def test_reports_without_room_are_named_once_and_leave_no_partial_file(
    conformance: Callable[..., Any], reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    write_profile(*reference)
    options = ("--requirement", "job-token-scope.settings.read", "--out", "out")
    assert conformance("run", *FEW, *options).code == ExitCode.CONFORMANT
    with no_file_longer_than(1000):
        outcome = conformance("report", "out", "--out", str(tmp_path / "again"))
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert outcome.err.count("File too large") == 1
    assert all(file.stat().st_size < 1000 for file in (tmp_path / "again").rglob("*") if file.is_file())
    assert not (tmp_path / "again" / "index.html").exists()


def test_merged_shards_whose_record_had_to_be_written_elsewhere_are_no_success(
    conformance: Callable[..., Any], reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    write_profile(*reference)
    chosen = ("--requirement", "job-token-scope.settings.read", "--shard", "1/1")
    assert conformance("run", *FEW, *chosen, "--out", "shard").code == ExitCode.CONFORMANT
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.jsonl").symlink_to("/dev/full")
    outcome = conformance("merge", "shard", "--out", "out")
    assert outcome.code == ExitCode.SUITE_BROKE, outcome.text
    assert "could not be written (No space left on device); the record is in " in outcome.err
