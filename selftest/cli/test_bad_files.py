"""Files, values and paths of every wrong kind, given to every command: one message, its exit code, no traceback."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode
from conformance.results.recorder import Recorder
from selftest.reports.report_samples import HEADER, NON_CONFORMANT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOWHERE = "http://127.0.0.1:1"
PROVISION = ("provision", "--base-url", NOWHERE)
RUN = ("run", "--workers", "1")
FEW = ("-q", "--requirement", "job-token-scope.settings.read", "--out", "out")
#: What is in the place of a file, by its name.
BAD: dict[str, bytes] = {
    "empty": b"",
    "bytes": b"\xff\xfe\x00\x80",
    "list.yaml": b"- a\n- b\n",
    "broken.yaml": b"a: [\n",
    "two.yaml": b"a: 1\n---\nb: 2\n",
    "object.yaml": b"a: !!python/object:os.system x\n",
    "itself.yaml": b"a: &a [*a]\n",
    "growing.yaml": b"a0: &a0 [x]\n"
    + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b"*a%d," % (n - 1) * 9) for n in range(1, 12)),
    "deep.yaml": b"a: " + b"[" * 100_000,
    "steps.yaml": b"\n".join(b" " * n + b"a:" for n in range(3000)),
    "date.yaml": b"baseline:\n- {requirement: job-token-scope.switch.on, reason: x, owner: y, expires: someday}\n",
    "nobodys.yaml": b"baseline:\n- {requirement: no.such, reason: x, owner: y, expires: 2026-12-31}\n",
    "no-entries.har": b'{"log": {"entries": 3}}',
    "two-words": b"two words\n",
}
NO_YAML = ("empty", "bytes", *(name for name in BAD if name.endswith(".yaml")), "folder", "absent")
#: Programs of an operator, by what each of them prints.
PROGRAMS = {"no-json": "echo no", "a-list": "echo '[]'", "bytes": "printf '\\377'", "bad": "echo '{\"actors\": 3}'"}
NO_RECORD = (
    "absent",
    "folder",
    "empty",
    "bytes",
    "list.yaml",
    "changed",
    "twice",
    "newer",
    "foreign",
    "contradicting",
    "begun",
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder in which every file is the wrong one."""
    for name, content in BAD.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "token").write_text("a-token\n", encoding="utf-8")
    for name, line in PROGRAMS.items():
        (tmp_path / f"{name}.sh").write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (tmp_path / f"{name}.sh").chmod(0o755)
    _write_records(tmp_path)
    return tmp_path


def _write_records(folder: Path) -> None:
    recorder = Recorder(folder / "good" / "results.jsonl")
    recorder.write(replace(HEADER, version_source="declared in the profile"))
    recorder.write_plan(NON_CONFORMANT.plan)
    for check in NON_CONFORMANT.checks:
        recorder.write(check)
    for end in NON_CONFORMANT.tests:
        recorder.write(end)
    assert NON_CONFORMANT.footer is not None
    recorder.close_with(replace(NON_CONFORMANT.footer, verdict="non-conformant", exit_code=1))
    text = recorder.file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    footer = {**json.loads(lines[-1]), "digest": "0" * 64}
    for name, content in {
        "cut": "".join(lines[:-1]),
        "changed": text.replace('"failed"', '"passed"', 1),
        "twice": text + text,
        "newer": text.replace('"form": 2', '"form": 7', 1),
        "foreign": '{"a": 1}\n',
        "begun": lines[0],
        "contradicting": "".join(lines[:-1]) + json.dumps(footer) + "\n",
    }.items():
        (folder / name).mkdir()
        (folder / name / "results.jsonl").write_text(content, encoding="utf-8")


def _refused(outcome: Any, *words: str) -> None:
    """Expect exit code 4 and one short message that contains the words."""
    assert outcome.code == ExitCode.USAGE, outcome.text
    told = [line for line in outcome.err.splitlines() if line.strip()]
    assert 0 < len(told) <= 4, outcome.text
    assert all(word in outcome.err for word in words), outcome.text


@pytest.mark.parametrize("name", NO_YAML)
@pytest.mark.parametrize(
    "command", [("target", "--check"), ("target", "--discover"), ("run", *FEW, "--target"), ("run", *FEW, "--baseline")]
)
def test_what_is_no_valid_yaml_is_refused(
    conformance: Callable[..., Any], place: Path, command: tuple[str, ...], name: str
) -> None:
    if command[-1] != "--baseline" and name in {"date.yaml", "nobodys.yaml"}:
        name = "list.yaml"
    _refused(conformance(*command, name), name)
    assert not (place / "out" / "report.json").exists()


@pytest.mark.parametrize("name", NO_RECORD)
@pytest.mark.parametrize(
    "command",
    [
        *(("report",), ("diff", "good"), ("baseline",), ("merge", "--out", "merged", "good")),
        *(("run", "--resume"), ("run", "--failed")),
    ],
)
@pytest.mark.usefixtures("place")
def test_what_is_no_record_of_a_run_is_refused(
    conformance: Callable[..., Any], command: tuple[str, ...], name: str
) -> None:
    _refused(conformance(*command, name), "good" if command[0] == "merge" and name == "cut" else name)


@pytest.mark.parametrize("name", [*(f"./{name}.sh" for name in PROGRAMS), "./token", "./absent", "'unclosed", "", "."])
@pytest.mark.usefixtures("place")
def test_what_is_no_program_is_refused(conformance: Callable[..., Any], name: str) -> None:
    _refused(conformance(*PROVISION, "--with", name), name)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        *(((*PROVISION, "--admin-token-file", name), name) for name in ("empty", "bytes", "two-words", "folder")),
        ((*PROVISION, "--admin-token-file", "token", "--out", "folder"), "folder"),
        ((*PROVISION, "--admin-token-file", "token", "--prefix", "a b/../c"), "--prefix"),
        ((*PROVISION, "--admin-token-file", "token", "--worlds", "0"), "--worlds"),
        *(
            ((*PROVISION, "--with", "./a-list.sh", name, "1"), f"{name} means nothing beside --with")
            for name in ("--rate", "--concurrency", "--admin-token-file")
        ),
        (("target", "--example", "--fix"), "--fix means nothing without --check"),
        (("target", "--discover", "list.yaml", "--format", "json"), "--format means nothing without --check"),
        (("sweep", "--base-url", "nonsense", "--admin-token-file", "token"), "base URL"),
        (("lint-traffic", "no-entries.har"), "no log.entries"),
        (("lint-traffic", "folder"), "folder"),
        (("restore", "folder"), "no ledger in folder"),
        (("history", "folder"), "folder"),
        (("history", "good", "--out", "folder"), "folder"),
        (("report", "good", "--format", "nope"), "nope"),
        (("report", "good", "--out", "empty"), "empty"),
        (("merge", "good", "good", "--out", "merged"), "--shard"),
        (("baseline", "good", "--expires", "never"), "never"),
        (("contract", "--format", "xml"), "xml"),
        (("readiness", "--from", "19.0", "--to", "12.3"), "12.3"),
        (("prove", "--requirement", "nope"), "There is no requirement"),
        (("serve", "--version", "2.0"), "2.0"),
        (("serve", "--port", "99999"), "99999"),
        (("serve", "--latency", "-5"), "latency"),
        (("serve", "--port", "0", "--profile-out", "folder"), "folder"),
        (("serve", "--port", "0", "--admin-token-out", "folder"), "folder"),
        (("run", "--failed", "good"), "Name its profile with --target"),
        (("run", "--seed", "x"), "seed"),
        (("run", "--shard", "3/2"), "3/2"),
        (("run", "--minutes", "-1"), "minutes"),
        (("run", "--minutes", "nan"), "nan"),
        (("serve", "--latency", "inf"), "inf"),
        (("run", "--subject", "x"), "subject"),
        (("run", "--ready-for", "x"), "x"),
        ((*RUN, "--out", "empty", "-q"), "--out"),
        (("run", "--base-url", "ftp://x"), "base"),
        (("run", "--", "-k", "((("), "-k"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("place")
def test_a_wrong_value_of_an_option_is_refused(
    conformance: Callable[..., Any], command: tuple[str, ...], word: str
) -> None:
    _refused(conformance(*command), word)


@pytest.mark.parametrize(
    ("variable", "value", "word"),
    [
        ("CONFORMANCE_RUN_SEED", "x", "'x' is not a valid"),
        ("CONFORMANCE_RUN_MAX_RPS", "-3", "-3"),
        ("CONFORMANCE_RUN_TARGET", "absent.yaml", "absent.yaml"),
        ("CONFORMANCE_RUN_TARGET_VERSION", "x", "is not a version"),
        ("CONFORMANCE_RUN_AREA", "nope", "nope"),
        ("CONFORMANCE_RUN_READ_ONLY", "perhaps", "perhaps"),
        ("CONFORMANCE_RUN_OUT", "empty/below", "--out"),
        ("CONFORMANCE_RUN_FORMAT", "x", "--format"),
    ],
)
@pytest.mark.usefixtures("place")
def test_a_wrong_value_in_the_environment_is_refused(
    conformance: Callable[..., Any], variable: str, value: str, word: str
) -> None:
    _refused(conformance(*RUN, "-q", environment={**os.environ, variable: value}), word)


@pytest.fixture
def used_port() -> Iterator[str]:
    """A port at which another process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


def test_a_port_in_use_is_reported(conformance: Callable[..., Any], used_port: str) -> None:
    _refused(conformance("serve", "--port", used_port), used_port)


@pytest.mark.usefixtures("place")
def test_an_incomplete_record_gives_a_warning(conformance: Callable[..., Any]) -> None:
    assert "is not whole" in conformance("baseline", "cut").err
    assert conformance("report", "cut").code == ExitCode.NON_CONFORMANT
    told = conformance("diff", "good", "cut")
    assert "the newer run is not whole" in told.out
