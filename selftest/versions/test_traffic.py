"""Recorded traffic: each deprecated item is named once, with its replacement, and wrong responses are found."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode
from conformance.versions.traffic import HINTS, TrafficReport, Use
from selftest.versions.hars import CONFIGURATION, SETTINGS, as_json, call, found, har, linted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# -- deprecated items --------------------------------------------------------------------------------------------------

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
    "a parameter in a form of several parts": (
        call(
            "POST",
            "/projects/7/approvals",
            201,
            CONFIGURATION,
            sent={
                "mimeType": "multipart/form-data; boundary=x",
                "text": '--x\r\nContent-Disposition: form-data; name="approvals_before_merge"\r\n\r\n2\r\n--x--\r\n',
            },
        ),
        "14.0",
        (Use.DEPRECATED, "POST /projects/{id}/approvals sends approvals_before_merge"),
    ),
    "a deprecated value in the query": (
        call("POST", "/projects/7/approval_rules?report_type=license_scanning", 201),
        "15.9",
        (Use.DEPRECATED, "POST /projects/{id}/approval_rules sends report_type = license_scanning"),
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
def test_deprecated_items_in_a_call_are_named(tmp_path: Path, name: str) -> None:
    entry, as_of, expected = CASES[name]
    report = linted(tmp_path, entry, as_of=as_of)
    named = {pair for pair in found(report) if pair[0] is not Use.VIOLATION}
    if expected is None:
        assert named == set()
    else:
        assert expected in named


def test_a_replacement_is_named_if_the_text_names_one(tmp_path: Path) -> None:
    report = linted(tmp_path, call("GET", "/users?page=1"), call("GET", "/projects/7/services", 200, []))
    by_use = {entry.use: entry.replacement for entry in report.found}
    assert by_use == {Use.REMOVED: "keyset pagination", Use.RENAMED: "GET /projects/{id}/integrations"}


def test_hints_are_no_findings(tmp_path: Path) -> None:
    report = linted(tmp_path, call("GET", "/projects/7/services", 200, []), as_of="17.7")
    assert {entry.use for entry in report.found} <= HINTS
    assert report.findings == ()


def test_a_deprecated_item_that_only_the_service_sends_is_a_hint(tmp_path: Path) -> None:
    """Clients cannot avoid it, and the specification allows a service to send more than required."""
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


def test_a_missing_path_of_a_tree_that_is_refused_is_correct(tmp_path: Path) -> None:
    assert not linted(tmp_path, call("GET", f"{TREE}?path=no-such-folder", 404, {}), as_of="17.7").found


def test_findings_come_first_and_always_in_the_same_order(tmp_path: Path) -> None:
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


def test_without_a_version_everything_that_any_version_removes_is_named(tmp_path: Path) -> None:
    report = linted(tmp_path, call("POST", "/projects/7/approvals", 201), call("GET", "/projects/7/job_token_scope"))
    assert (Use.REMOVED, "POST /projects/{id}/approvals is called") in found(report)
    assert not {entry.use for entry in report.found} & {Use.NOT_YET}


def test_one_thing_is_named_once_with_the_number_of_its_entries(tmp_path: Path) -> None:
    report = linted(tmp_path, *[call("GET", f"/users?page={number}") for number in range(1, 8)], as_of="17.0")
    ((entry, times),) = report.found.items()
    assert (entry.change, times, report.examples[entry]) == ("17.0-users-offset-pagination", 7, (1, 2, 3))


# -- responses compared with the contract ------------------------------------------------------------------------------


def violations(report: TrafficReport) -> list[tuple[str | None, str]]:
    return [(entry.requirement, entry.detail) for entry in report.found if entry.use is Use.VIOLATION]


def test_a_response_that_violates_the_contract_is_a_finding(tmp_path: Path) -> None:
    wrong = {**SETTINGS, "inbound_enabled": "yes"}
    report = linted(tmp_path, call("GET", "/projects/7/job_token_scope", 200, wrong), as_of="17.7")
    (violation,) = violations(report)
    assert violation[0] == "job-token-scope.settings.inbound-enabled"
    assert "/inbound_enabled" in violation[1]


def test_a_correct_response_is_no_finding(tmp_path: Path) -> None:
    report = linted(tmp_path, call("GET", "/projects/7/job_token_scope", 200, SETTINGS), as_of="17.7")
    assert (report.judged, report.findings) == (1, ())


def test_a_response_with_an_undocumented_success_status_is_a_finding(tmp_path: Path) -> None:
    report = linted(tmp_path, call("PATCH", "/projects/7/job_token_scope", 200, {}), as_of="17.7")
    assert violations(report) == [("job-token-scope.switch.no-content", "the status is 200; documented are 204")]


def test_responses_in_base64_are_read(tmp_path: Path) -> None:
    entry = call("GET", "/projects/7/job_token_scope", 200, base64.b64encode(b'{"inbound_enabled": 1}').decode())
    entry["response"]["content"]["encoding"] = "base64"
    assert violations(linted(tmp_path, entry, as_of="17.7"))


def test_a_response_whose_body_was_not_recorded_is_not_judged(tmp_path: Path) -> None:
    report = linted(tmp_path, call("GET", "/projects/7/job_token_scope", 200), as_of="17.7")
    assert (report.calls, report.judged, dict(report.found)) == (1, 0, {})


@pytest.mark.parametrize("text", ["", '{"inbound_enabled": tr'])
def test_a_response_of_which_only_a_part_was_recorded_is_not_judged(tmp_path: Path, text: str) -> None:
    entry = call("GET", "/projects/7/job_token_scope", 200, text)
    assert violations(linted(tmp_path, entry, as_of="17.7"))
    entry["response"]["content"]["size"] = 2_000_000
    report = linted(tmp_path, entry, as_of="17.7")
    assert (report.calls, report.judged, dict(report.found)) == (1, 0, {})


def test_refusals_are_not_judged(tmp_path: Path) -> None:
    refused = [call("GET", "/projects/7/job_token_scope", status, "<html>") for status in (401, 403, 404, 500, 302)]
    assert not linted(tmp_path, *refused, as_of="17.7").found


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_ends_with_0_if_nothing_is_found(conformance: Callable[..., Any], tmp_path: Path) -> None:
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
