"""Recorded traffic: what is old in it is named once, with what to use instead; broken files end with one message."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract, Version
from conformance.contract.folders import HOME
from conformance.errors import ExitCode, UsageError
from conformance.versions.har import har_entries
from conformance.versions.traffic import HINTS, TrafficLint, TrafficReport, Use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

API = "https://service.example.com/some/prefix/api/v4"
SETTINGS = {"inbound_enabled": True, "outbound_enabled": False}
CONFIGURATION = {
    "approvers": [],
    "approver_groups": [],
    "approvals_before_merge": 0,
    "reset_approvals_on_push": True,
    "selective_code_owner_removals": False,
    "disable_overriding_approvers_per_merge_request": False,
    "merge_requests_author_approval": False,
    "merge_requests_disable_committers_approval": True,
    "require_password_to_approve": False,
}


def call(
    method: str,
    path: str,
    status: int = 200,
    answer: Any = None,
    *,
    sent: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """An entry as browsers write it; `more` goes over its parts."""
    content: dict[str, Any] = {"size": 0, "mimeType": "application/json"}
    if answer is not None:
        content["text"] = answer if isinstance(answer, str) else json.dumps(answer)
    request: dict[str, Any] = {"method": method, "url": path if "://" in path else f"{API}{path}"}
    if sent is not None:
        request["postData"] = sent
    return {"request": request, "response": {"status": status, "content": content}, **more}


def as_json(value: Any) -> dict[str, Any]:
    return {"mimeType": "application/json", "text": json.dumps(value)}


def har(folder: Path, *entries: Any) -> Path:
    file = folder / "traffic.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}), encoding="utf-8")
    return file


def linted(folder: Path, *entries: Any, as_of: str | None = None) -> TrafficReport:
    version = Version.parse(as_of) if as_of else None
    return TrafficLint(Contract.load(), version).read(har(folder, *entries))


def found(report: TrafficReport) -> set[tuple[Use, str]]:
    return {(entry.use, entry.what) for entry in report.found}


# -- what is old -------------------------------------------------------------------------------------------------------

CASES = {
    "a removed call": (
        call("POST", "/projects/7/approvals", 201, sent=as_json({"reset_approvals_on_push": True})),
        "16.0",
        (Use.REMOVED, "POST /projects/{id}/approvals is called"),
    ),
    "the same call while it was there": (
        call("POST", "/projects/7/approvals", 201, sent=as_json({"reset_approvals_on_push": True})),
        "15.9",
        None,
    ),
    "a deprecated parameter": (
        call("POST", "/projects/7/approvals", 201, sent=as_json({"approvals_before_merge": 2})),
        "15.9",
        (Use.DEPRECATED, "POST /projects/{id}/approvals sends approvals_before_merge"),
    ),
    "a deprecated field": (
        call("GET", "/projects/group%2Fproject/approvals", 200, CONFIGURATION),
        "15.9",
        (Use.DEPRECATED, "GET /projects/{id}/approvals answers with approvals_before_merge"),
    ),
    "a deprecated value": (
        call("POST", "/projects/7/approval_rules", 400, sent=as_json({"report_type": "license_scanning"})),
        "15.9",
        (Use.DEPRECATED, "POST /projects/{id}/approval_rules sends report_type = license_scanning"),
    ),
    "another value of the same parameter": (
        call("POST", "/projects/7/approval_rules", 400, sent=as_json({"report_type": "code_coverage"})),
        "15.9",
        None,
    ),
    "a parameter in a form": (
        call(
            "POST",
            "/projects/7/approvals",
            201,
            sent={"mimeType": "application/x-www-form-urlencoded", "text": "approvals_before_merge=2"},
        ),
        "15.9",
        (Use.DEPRECATED, "POST /projects/{id}/approvals sends approvals_before_merge"),
    ),
    "a parameter among the fields of a form": (
        call(
            "POST",
            "/projects/7/approvals",
            201,
            sent={"mimeType": "x", "params": [{"name": "approvals_before_merge", "value": "2"}]},
        ),
        "15.9",
        (Use.DEPRECATED, "POST /projects/{id}/approvals sends approvals_before_merge"),
    ),
    "a removed parameter of an endpoint that is only named": (
        call("GET", "/users?page=2&per_page=20", 200, []),
        "17.0",
        (Use.REMOVED, "GET /users sends page"),
    ),
    "a changed pagination of an endpoint that is only named": (
        call("GET", "/audit_events?page=2", 200, []),
        "18.0",
        (Use.CHANGED, "GET /audit_events sends page"),
    ),
    "a deprecated field of a record that is not described": (
        call("GET", "/projects/7", 200, {"id": 7, "ci_job_token_scope_enabled": True}),
        "16.1",
        (Use.DEPRECATED, "GET /projects/{id} answers with ci_job_token_scope_enabled"),
    ),
    "a removed field of a list that is not described": (
        call("GET", "/projects/7/packages", 200, [{"id": 1, "pipelines": []}]),
        "17.0",
        (Use.REMOVED, "GET /projects/{id}/packages answers with pipelines"),
    ),
    "a call that the version does not have yet": (
        call("GET", "/projects/7/job_token_scope", 404),
        "16.0",
        (Use.NOT_YET, "GET /projects/{id}/job_token_scope is called"),
    ),
    "a name that the version does not have yet": (
        call("GET", "/projects/7/integrations", 404),
        "14.3",
        (Use.NOT_YET, "GET /projects/{id}/integrations is called"),
    ),
    "a parameter that the version does not have yet": (
        call("POST", "/projects/7/approval_rules", 201, sent=as_json({"usernames": ["dana"]})),
        "15.3",
        (Use.NOT_YET, "POST /projects/{id}/approval_rules sends usernames"),
    ),
    "a deprecated field that is sent": (
        call("PUT", "/projects/7", 200, {"id": 7}, sent=as_json({"ci_job_token_scope_enabled": True})),
        "16.1",
        (Use.DEPRECATED, "PUT /projects/{id} sends ci_job_token_scope_enabled"),
    ),
    "a deprecated field in a list": (
        call("GET", "/projects", 200, [{"id": 7, "ci_job_token_scope_enabled": True}]),
        "16.1",
        (Use.DEPRECATED, "GET /projects answers with ci_job_token_scope_enabled"),
    ),
    "the password grant in a form": (
        call(
            "POST",
            "https://service.example.com/oauth/token",
            200,
            sent={"mimeType": "application/x-www-form-urlencoded", "text": "grant_type=password&username=a&password=b"},
        ),
        "19.0",
        (Use.REMOVED, "POST /oauth/token sends grant_type = password"),
    ),
    "the password grant in the query": (
        call("POST", "https://service.example.com/oauth/token?grant_type=password", 200),
        "19.0",
        (Use.REMOVED, "POST /oauth/token sends grant_type = password"),
    ),
    "another grant": (
        call("POST", "https://service.example.com/oauth/token?grant_type=authorization_code", 200),
        "19.0",
        None,
    ),
    "the password grant while it was there": (
        call("POST", "https://service.example.com/oauth/token?grant_type=password", 200),
        "18.0",
        None,
    ),
    "the confidentiality of a note that is toggled": (
        call("PUT", "/projects/7/issues/3/notes/12", 200, {}, sent=as_json({"confidential": True})),
        "18.0",
        (Use.CHANGED, "PUT /projects/{id}/{kind}/{iid}/notes/{note_id} sends confidential"),
    ),
    "a note that is confidential from the beginning": (
        call("POST", "/projects/7/issues/3/notes", 201, {}, sent=as_json({"confidential": True})),
        "18.0",
        None,
    ),
    "the text of the sign-in page among the settings": (
        call("PUT", "/application/settings", 200, {}, sent=as_json({"sign_in_text": "Hello"})),
        "17.0",
        (Use.DEPRECATED, "PUT /application/settings sends sign_in_text"),
    ),
    "the text of the help page among the settings": (
        call("PUT", "/application/settings?help_text=Hello", 200, {}),
        "17.0",
        (Use.DEPRECATED, "PUT /application/settings sends help_text"),
    ),
    "pages of the audit events of a project": (
        call("GET", "/projects/7/audit_events?page=2", 200, []),
        "18.0",
        (Use.CHANGED, "GET /projects/{id}/audit_events sends page"),
    ),
    "pages of the audit events of a group": (
        call("GET", "/groups/7/audit_events?page=2", 200, []),
        "18.0",
        (Use.CHANGED, "GET /groups/{id}/audit_events sends page"),
    ),
    "the deprecated half of the job token scope": (
        call("PATCH", "/projects/7/job_token_scope", 204, sent=as_json({"enabled": True, "outbound_enabled": False})),
        "18.0",
        (Use.DEPRECATED, "PATCH /projects/{id}/job_token_scope sends outbound_enabled"),
    ),
    "what will be deprecated, and is announced": (
        call("PATCH", "/projects/7/job_token_scope", 204, sent=as_json({"enabled": True, "outbound_enabled": False})),
        "17.7",
        (Use.ANNOUNCED, "PATCH /projects/{id}/job_token_scope sends outbound_enabled"),
    ),
    "a field that is deprecated without a row": (
        call("GET", "/projects/7/job_token_scope", 200, SETTINGS),
        "17.7",
        (Use.DEPRECATED, "GET /projects/{id}/job_token_scope answers with outbound_enabled"),
    ),
    "the older of two names": (
        call("GET", "/projects/7/services", 200, []),
        "17.7",
        (Use.RENAMED, "GET /projects/{id}/services is called"),
    ),
    "a call whose end is announced": (
        call("POST", "/runners/reset_registration_token", 201),
        "17.7",
        (Use.ANNOUNCED, "POST /runners/reset_registration_token is called"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_old_in_a_call_is_named(tmp_path: Path, name: str) -> None:
    entry, as_of, expected = CASES[name]
    report = linted(tmp_path, entry, as_of=as_of)
    named = {pair for pair in found(report) if pair[0] is not Use.VIOLATION}
    if expected is None:
        assert named == set()
    else:
        assert expected in named


def test_a_replacement_is_named_where_the_text_names_one(tmp_path: Path) -> None:
    report = linted(tmp_path, call("GET", "/users?page=1"), call("GET", "/projects/7/services", 200, []))
    by_use = {entry.use: entry.replacement for entry in report.found}
    assert by_use == {Use.REMOVED: "keyset pagination", Use.RENAMED: "GET /projects/{id}/integrations"}


def test_hints_are_no_findings(tmp_path: Path) -> None:
    report = linted(tmp_path, call("GET", "/projects/7/services", 200, []), as_of="17.7")
    assert {entry.use for entry in report.found} <= HINTS
    assert report.findings == ()


def test_what_only_the_service_sends_is_a_hint(tmp_path: Path) -> None:
    """Clients cannot help it, and the specification lets a service send more than it must."""
    project = {"id": 7, "ci_job_token_scope_enabled": True}
    report = linted(
        tmp_path,
        call("GET", "/projects/7/approvals", 200, CONFIGURATION),
        call("GET", "/projects/7", 200, project),
        as_of="17.7",
    )
    assert {entry.what.partition(" answers with ")[2] for entry in report.found} == {
        "approvers",
        "approver_groups",
        "approvals_before_merge",
        "ci_job_token_scope_enabled",
    }
    assert report.findings == ()


TREE = "/projects/7/repository/tree"


@pytest.mark.parametrize(
    ("path", "answer", "as_of", "uses"),
    [
        (f"{TREE}?path=no-such-folder", [], "17.7", [Use.VIOLATION]),
        (f"{TREE}?path=no-such-folder", [], "17.1", []),
        (f"{TREE}?path=no-such-folder", [], None, [Use.CHANGED]),
        (f"{TREE}?path=src", [{"name": "main.py"}], "17.7", []),
        (f"{TREE}?path=src&page=2", [], "17.7", []),
        (f"{TREE}?path=", [], "17.7", []),
        (TREE, [], "17.7", []),
    ],
)
def test_an_empty_tree_of_a_missing_path_is_found(
    tmp_path: Path, path: str, answer: Any, as_of: str | None, uses: list[Use]
) -> None:
    report = linted(tmp_path, call("GET", path, 200, answer), as_of=as_of)
    assert [entry.use for entry in report.found] == uses
    if uses == [Use.VIOLATION]:
        assert report.findings[0].requirement == "versions.repository-tree.missing-path"


def test_a_missing_path_of_a_tree_that_is_refused_is_as_it_should_be(tmp_path: Path) -> None:
    assert not linted(tmp_path, call("GET", f"{TREE}?path=no-such-folder", 404, {}), as_of="17.7").found


def test_findings_come_first_and_in_the_same_order_each_time(tmp_path: Path) -> None:
    wrong = {**SETTINGS, "inbound_enabled": "yes", "outbound_enabled": 7}
    entries = [
        call("GET", "/projects/7/job_token_scope", 200, wrong),
        call("POST", "/projects/7/approvals", 201, sent=as_json(dict.fromkeys(CONFIGURATION, True))),
        call("GET", "/projects/7/services", 200, []),
        call("GET", "/users?page=2", 200, []),
    ]
    orders = [list(linted(tmp_path, *some, as_of="18.0").found) for some in (entries, entries[::-1])]
    assert orders[0] == orders[1]
    assert [entry.is_hint for entry in orders[0]] == sorted(entry.is_hint for entry in orders[0])


def test_without_a_version_everything_that_any_version_ends_is_named(tmp_path: Path) -> None:
    report = linted(tmp_path, call("POST", "/projects/7/approvals", 201), call("GET", "/projects/7/job_token_scope"))
    assert (Use.REMOVED, "POST /projects/{id}/approvals is called") in found(report)
    assert not {entry.use for entry in report.found} & {Use.NOT_YET}


def test_one_thing_is_named_once_with_the_number_of_its_entries(tmp_path: Path) -> None:
    report = linted(tmp_path, *[call("GET", f"/users?page={number}") for number in range(1, 8)], as_of="17.0")
    ((entry, times),) = report.found.items()
    assert (entry.change, times, report.examples[entry]) == ("17.0-users-offset-pagination", 7, (1, 2, 3))


# -- answers held against the contract ---------------------------------------------------------------------------------


def violations(report: TrafficReport) -> list[tuple[str | None, str]]:
    return [(entry.requirement, entry.detail) for entry in report.found if entry.use is Use.VIOLATION]


def test_an_answer_that_the_contract_rules_out_is_a_finding(tmp_path: Path) -> None:
    wrong = {**SETTINGS, "inbound_enabled": "yes"}
    report = linted(tmp_path, call("GET", "/projects/7/job_token_scope", 200, wrong), as_of="17.7")
    (violation,) = violations(report)
    assert violation[0] == "job-token-scope.settings.inbound-enabled"
    assert "/inbound_enabled" in violation[1]


def test_a_right_answer_is_none(tmp_path: Path) -> None:
    report = linted(tmp_path, call("GET", "/projects/7/job_token_scope", 200, SETTINGS), as_of="17.7")
    assert (report.judged, report.findings) == (1, ())


def test_an_answer_with_an_undocumented_success_is_a_finding(tmp_path: Path) -> None:
    report = linted(tmp_path, call("PATCH", "/projects/7/job_token_scope", 200, {}), as_of="17.7")
    assert violations(report) == [("job-token-scope.switch.no-content", "the status is 200; documented are 204")]


def test_answers_in_base64_are_read(tmp_path: Path) -> None:
    entry = call("GET", "/projects/7/job_token_scope", 200, base64.b64encode(b'{"inbound_enabled": 1}').decode())
    entry["response"]["content"]["encoding"] = "base64"
    assert violations(linted(tmp_path, entry, as_of="17.7"))


def test_an_answer_whose_body_was_not_recorded_is_not_judged(tmp_path: Path) -> None:
    report = linted(tmp_path, call("GET", "/projects/7/job_token_scope", 200), as_of="17.7")
    assert (report.calls, report.judged, dict(report.found)) == (1, 0, {})


def test_refusals_are_nobodys_business(tmp_path: Path) -> None:
    refused = [call("GET", "/projects/7/job_token_scope", status, "<html>") for status in (401, 403, 404, 500, 302)]
    assert not linted(tmp_path, *refused, as_of="17.7").found


# -- files -------------------------------------------------------------------------------------------------------------


def test_what_is_no_call_of_the_api_is_passed_over_and_counted(tmp_path: Path) -> None:
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
def test_a_file_that_is_no_har_file_ends_with_one_message(
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
    "lists in lists": (lambda: times("[" * 1000, LARGE), "nested beyond all reason"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells the most memory of one process")
def test_memory_does_not_grow_with_what_a_file_holds(tmp_path: Path) -> None:
    """In a process of its own, as the memory that the parser takes is not Python's to count; in one, to be quick."""
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


def test_a_text_is_read_whole_wherever_the_file_is_cut_while_it_is_read(tmp_path: Path) -> None:
    """Quotes and backslashes on both sides of what is read at once, which is a power of two."""
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
def test_an_entry_without_a_status_is_not_whole(tmp_path: Path, status: str) -> None:
    file = tmp_path / "odd.har"
    file.write_text(json.dumps({"log": {"entries": [call("GET", "/x", 777)]}}).replace("777", status), encoding="utf-8")
    try:
        assert TrafficLint(Contract.load(), None).read(file).unreadable == 1
    except UsageError as error:
        assert "the JSON is broken" in str(error)  # noqa: PT017 - a number that no reader takes


def test_an_answer_of_many_records_is_judged_to_its_last(tmp_path: Path) -> None:
    """In pieces, so that what is wrong with one record far behind is still found, and once."""
    record = {"id": 1, "name": "Group", "web_url": "https://service.example.com/group"}
    answer = [*repeat(record, 2500), {**record, "name": 7}]
    report = linted(tmp_path, call("GET", "/projects/7/job_token_scope/groups_allowlist", 200, answer), as_of="17.7")
    assert [(entry.use, times) for entry, times in report.found.items()] == [(Use.VIOLATION, 1)]
    (found_one,) = report.found
    assert "/*/name" in found_one.detail


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_ends_with_0_when_nothing_is_found(conformance: Callable[..., Any], tmp_path: Path) -> None:
    har(tmp_path, call("GET", "/projects/7/job_token_scope", 200, SETTINGS))
    outcome = conformance("lint-traffic", "traffic.har", "--as-of", "17.7")
    assert outcome.code == 0, outcome.text
    assert "0 findings and 1 hint in 1 call" in outcome.out


def test_the_command_ends_with_1_and_names_what_it_found(conformance: Callable[..., Any], tmp_path: Path) -> None:
    har(tmp_path, call("GET", "/users?page=2"), call("GET", "/projects/7/job_token_scope", 200, SETTINGS))
    outcome = conformance("lint-traffic", "traffic.har", "--as-of", "18.0")
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
    assert "finding (removed): GET /users sends page" in outcome.out
    assert "use instead: keyset pagination" in outcome.out
    assert "hint (deprecated): GET /projects/{id}/job_token_scope answers with outbound_enabled" in outcome.out
    assert "its removal is planned for 18.0" in outcome.out
    data = json.loads(conformance("lint-traffic", "traffic.har", "--as-of", "18.0", "--format", "json").out)
    assert [entry["use"] for entry in data["found"]] == ["removed", "deprecated"]
    assert data["found"][0]["entries"] == [1]
