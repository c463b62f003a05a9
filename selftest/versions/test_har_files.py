"""Files of recorded traffic: read as a stream, whatever they contain, and broken ones end with one message."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from conformance.contract.folders import HOME
from conformance.errors import ExitCode, UsageError
from conformance.versions.har import har_entries
from conformance.versions.traffic import TrafficLint, Use
from selftest.versions.hars import SETTINGS, call, linted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


def test_entries_that_are_no_calls_of_the_api_are_skipped_and_counted(tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    report = linted(
        tmp_path,
        call("GET", "https://elsewhere.example.com/index.html"),
        call("GET", "/unknown/thing", 200, {}),
        "no object",
        {},
        {"request": {"method": "GET", "url": "http://[broken"}, "response": {"status": 200}},
        {"request": {"method": "GET", "url": 7}, "response": {"status": 200}},
        call("GET", "/projects/7/job_token_scope", 0),
        call("GET", "/projects/7/job_token_scope", 200, deep),
        call("POST", "/projects/7/approvals", 400, sent={"mimeType": "application/json", "text": "{"}),
    )
    assert (report.entries, report.unreadable, report.calls) == (9, 4, 3)
    assert [entry.detail for entry in report.found if entry.use is Use.VIOLATION] == [
        "a body that is not nested beyond all reason is expected at the answer"
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a HAR file"),
        (b"not json at all", "is not a HAR file"),
        (b"[]", "no log.entries"),
        (b'{"log": {}}', "no log.entries"),
        (b'{"log": {"entries": {}}}', "no log.entries"),
        (b'{"log": {"entries": [{}, {}, {"request"', "broken after 2 entries"),
        (b'{"log": {"entries": [{"a": "\xff\xfe"}]}}', "is not a HAR file"),
        (b"\x1f\x8b\x08\x00\x00", "is not a HAR file"),
    ],
)
def test_a_file_that_is_not_a_har_file_ends_with_one_message(
    conformance: Callable[..., Any],
    tmp_path: Path,
    content: bytes,
    message: str,
) -> None:
    (tmp_path / "broken.har").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        TrafficLint(Contract.load(), None).read(tmp_path / "broken.har")
    if content.startswith(b"\x1f"):
        outcome = conformance("lint-traffic", "broken.har")
        assert outcome.code == ExitCode.USAGE
        assert len(outcome.err.strip().splitlines()) == 1


def test_the_message_about_a_broken_file_has_no_piece_of_it(tmp_path: Path) -> None:
    (tmp_path / "broken.har").write_bytes(b'{"log": {"entries": [{"a": "glpat-secret", "b": "\xff"}]}}')
    with pytest.raises(UsageError) as raised:
        TrafficLint(Contract.load(), None).read(tmp_path / "broken.har")
    assert "secret" not in str(raised.value)
    assert "invalid bytes in UTF8 string)" in str(raised.value)


@pytest.mark.parametrize("name", ["absent.har", "."])
def test_a_file_that_cannot_be_read_ends_with_4(conformance: Callable[..., Any], name: str) -> None:
    outcome = conformance("lint-traffic", name)
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert "Cannot read" in outcome.err


LARGE = 60 * 2**20
ENTRY = json.dumps(call("GET", "/projects/7/job_token_scope", 200, SETTINGS))


def in_a_har(*pieces: Iterable[str]) -> Iterator[str]:
    yield '{"log": {"entries": ['
    yield from chain(*pieces)
    yield "]}}"


def times(text: str, size: int) -> Iterator[str]:
    return repeat(text, size // len(text))


def with_body(body: Iterable[str], path: str = "/projects/7/job_token_scope") -> Iterator[str]:
    before, after = json.dumps(call("GET", path, 200, "@@")).split("@@")
    return chain([before], body, [after])


def with_fields(fields: Iterable[str]) -> Iterator[str]:
    sent = {"mimeType": "x", "params": ["@@"]}
    before, after = json.dumps(call("POST", "/projects/7/approvals", 201, sent=sent)).split('"@@"')
    return chain([before], fields, ["{}", after])


HUGE: dict[str, tuple[Callable[[], Iterator[str]], str]] = {
    "a body": (lambda: in_a_har([f"{ENTRY},"], with_body(times("x" * 1000, LARGE))), "1 entry with more than 8 MiB"),
    "a body of escapes": (
        lambda: in_a_har([f"{ENTRY},"], with_body(times('\\\\{\\"\\u00e9\\":1},' * 100, LARGE))),
        "1 entry with more than 8 MiB",
    ),
    "a form": (
        lambda: in_a_har([f"{ENTRY},"], with_fields(times('{"name": "x", "value": "y"},' * 40, LARGE // 16))),
        "1 entry with more than 8 MiB",
    ),
    "many entries": (
        lambda: in_a_har(times(f"{json.dumps(call('GET', '/elsewhere', _more='x' * 20_000))},", LARGE), [ENTRY]),
        "1 answer was held against the contract",
    ),
    "records that lack everything": (
        lambda: in_a_har(with_body(["[{}", *repeat(",{}", 6000), "]"], "/projects/7/job_token_scope/allowlist")),
        "finding (violation): GET /projects/{id}/job_token_scope/allowlist",
    ),
    "a text without an end": (
        lambda: chain(['{"log": {"entries": [{"x": "'], times("x" * 1000, LARGE)),
        "premature EOF",
    ),
    "a number": (lambda: times("1" * 1000, LARGE), "the JSON is broken"),
    "lists in lists": (lambda: times("[" * 1000, LARGE), "nested too deeply"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells the most memory of one process")
def test_memory_does_not_grow_with_the_content_of_a_file(tmp_path: Path) -> None:
    """In a separate process, because Python does not count the memory of the parser; in a single one, to be quick."""
    for name, (make, _) in HUGE.items():
        with (tmp_path / name).open("w", encoding="utf-8") as stream:
            stream.writelines(make())
    finished = subprocess.run(
        [sys.executable, "-c", READS_ALL, *HUGE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HOME)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    for file in tmp_path.iterdir():
        file.unlink()
    *said, status = finished.stdout.split("=====")
    assert [name for (name, (_, wanted)), text in zip(HUGE.items(), said, strict=True) if wanted not in text] == []
    most = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert most is not None
    assert int(most[1]) < MOST_MEMORY


#: In KiB; reading a file of one entry takes half of this.
MOST_MEMORY = 120 * 2**10
READS_ALL = """
import sys
from pathlib import Path
from conformance.cli import main
for name in sys.argv[1:]:
    sys.argv = ["conformance", "lint-traffic", name, "--as-of", "17.7"]
    try:
        main()
    except SystemExit:
        print("=====", flush=True)
print(Path("/proc/self/status").read_text())
"""


def test_a_text_is_read_completely_wherever_the_stream_is_cut(tmp_path: Path) -> None:
    """Quotes and backslashes on both sides of the end of a chunk, whose size is a power of two."""
    body = {"text": '\\"\\\\"' * 40_000, "more": ["\\" * number for number in range(9)]}
    for shift in range(9):
        file = tmp_path / "cut.har"
        entry = {"_": "-" * shift, **call("GET", "/projects/7/job_token_scope", 200, json.dumps(body))}
        file.write_text(json.dumps({"log": {"entries": [entry, {"_": "last"}]}}), encoding="utf-8")
        first, last = har_entries(file)
        assert json.loads(first.parts["response"]["content"]["text"]) == body
        assert (first.is_cut, last.parts) == (False, {})


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "marked.har"
    file.write_text(json.dumps({"log": {"entries": [{}]}}), encoding="utf-8-sig")
    assert len(list(har_entries(file))) == 1


@pytest.mark.parametrize("status", ["1e999999999", "-1", "1" * 5000, "true", "null", '"200"', "[]"])
def test_an_entry_without_a_status_is_incomplete(tmp_path: Path, status: str) -> None:
    file = tmp_path / "odd.har"
    file.write_text(json.dumps({"log": {"entries": [call("GET", "/x", 777)]}}).replace("777", status), encoding="utf-8")
    try:
        assert TrafficLint(Contract.load(), None).read(file).unreadable == 1
    except UsageError as error:
        assert "the JSON is broken" in str(error)  # noqa: PT017 - a number that no reader takes


def test_a_response_with_many_records_is_judged_to_its_last_one(tmp_path: Path) -> None:
    """The response is read in chunks, so a fault in a late record must still be found, and only once."""
    record = {"id": 1, "name": "Group", "web_url": "https://service.example.com/group"}
    answer = [*repeat(record, 2500), {**record, "name": 7}]
    report = linted(tmp_path, call("GET", "/projects/7/job_token_scope/groups_allowlist", 200, answer), as_of="17.7")
    assert [(entry.use, times) for entry, times in report.found.items()] == [(Use.VIOLATION, 1)]
    (found_one,) = report.found
    assert "/*/name" in found_one.detail
