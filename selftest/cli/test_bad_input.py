"""Every foreseeable mistake ends with one message that says what to do, and with its own exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from conformance.errors import ContractError, ExitCode
from conformance.results.reading import read_record
from conformance.runner import collection
from conformance.runner.location import suite_arguments
from conformance.target import load_profile
from selftest.conftest import run_conformance
from selftest.processes import started, unused_port, wait_for_checks
from selftest.reads import report_of

if TYPE_CHECKING:
    from collections.abc import Callable

EMPTY = "base_url: http://x.example\nactors: {}\nfixtures: {}\n"
JOB_TOKEN_SCOPE = ("--area", "job-token-scope")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--target-version", "99.9"), "--target-version: 99.9 is outside the specification"),
        (("run", "--target-version", "seventeen"), "--target-version: 'seventeen' is not a version"),
        (("run", "--target", "absent.yaml"), "conformance target --example"),
        (("run", "--base-url", "http://127.0.0.1:1"), "A base URL alone is not enough"),
        (("run", "--max-rps", "1e-9"), "1e-09 is not in the range x>=0.1"),
        (("run", "--out", ""), "'--out': it is empty. Name a file or folder"),
        (("run", "--resume", "out", "--seed", "1"), "--max-requests, --ready-for, --format, -q and -v."),
        (("run", "-q", "-v"), "--quiet and --verbose exclude each other"),
        (("baseline", "out", "--expires", "soon"), "'soon' is no day. Write YEAR-MONTH-DAY"),
        (("baseline", "out", "--expires", "2020-01-01"), "--expires 2020-01-01 is over"),
        (("baseline", "out", "--owner", " "), "--owner must name somebody"),
        (("explain", "SCOPE.SWITCH.ON"), "Did you mean job-token-scope.switch.on"),
        (("run", "--minutes", "soon"), "'soon' is not a valid number"),
        (("run", "target.yaml"), "--target target.yaml"),
        (("run", "--area", "approvals"), "There is no area 'approvals'"),
        (("run", "--requirement", "job-token-scope.switch.onn"), "Did you mean job-token-scope.switch.on"),
        (("explain", "nothing"), "There is no requirement"),
        (("requirements", "--area", "nowhere"), "There is no area"),
        (("contract", "--as-of", "9.9"), "--as-of: 9.9 is outside the specification, which speaks of 12.3 to 19.0"),
        (("report", "absent"), "There is no record"),
        (("target",), "--discover FILE or --check"),
        (("frobnicate",), "No such command"),
    ],
)
def test_a_wrong_call_ends_with_4_and_says_what_is_wrong(
    conformance: Callable[..., Any],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    outcome = conformance(*arguments)
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert message in outcome.text


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("base_url: [", "is not valid YAML"),
        ("- a list", "is not valid"),
        ("base_url: http://x.example", "'actors' is a required property"),
        ("base_url: x.example\nactors: {}\nfixtures: {}", "at base_url"),
        ("base_url: 'http://[::1'\nactors: {}\nfixtures: {}", "is not a base URL"),
        ("base_url: http://x.example:99999\nactors: {}\nfixtures: {}", "is not a base URL"),
        ("base_url: http://x.example\nactors: {boss: {token: t}}\nfixtures: {}", "unknown actor 'boss'"),
        ("base_url: http://x.example\nactors: {maintaner: {token: t}}\nfixtures: {}", "Did you mean 'maintainer'"),
        ("base_url: http://x.example\nactors: {}\nfixtures: {projekt: {id: 1}}", "Did you mean 'project'"),
        ("base_url: http://x.example\nactors: {owner: {token: '${NOWHERE_SET}'}}\nfixtures: {}", "NOWHERE_SET"),
        (
            "base_url: http://x.example\nversion: 17.10\nactors: {}\nfixtures: {}",
            "a number stands here, and a text is needed: write it in quotes",
        ),
        ("base_url: http://x.example\nversion: '3.0'\nactors: {}\nfixtures: {}", "target.yaml, at version: 3.0 is"),
        ("base_url: http://x.example\nversion: new\nactors: {}\nfixtures: {}", "at version: 'new' is not a version"),
        ("base_url: http://x.example\nactors: {}\nfixtures: {}\nlimts: {}", "Did you mean 'limits'"),
        ("base_url: http://x.example\nactors: {}\nfixtures: {}\nlimits: {settle_seconds: .inf}", "the number inf"),
        ("base_url: http://x.example\nactors: {}\nfixtures: {}\nlimits: {timeout_seconds: .nan}", "the number nan"),
        (f"{EMPTY}limits: {{requests_per_second: 1.0e-9}}", "less than the minimum of 0.1"),
        (f"{EMPTY}limits: {{timeout_seconds: 1.0e+15}}", "greater than the maximum of 3600"),
        (f"{EMPTY}scope: []", "at scope: an empty list stands here. Write what belongs there, or leave"),
        ("base_url: http://x.example\nactors: {owner: {token: ''}}", "owner.token: an empty text stands here"),
        (f"{EMPTY}scope: [integrations, integrations]", "at scope: 'integrations' stands here twice"),
        (f"{EMPTY}edition: premium", "'premium' is unknown. Known are: enterprise, community, unknown"),
        (f"{EMPTY}certificates: 3", "a number stands here, and true or false or a text is needed"),
        ("", "nothing stands here"),
        ("base_url: http://x.example\nactors:\n\towner: {token: t}", "there is a tab"),
        ("base_url: x.example:80\nactors: {}\nfixtures: {}", "looks like https://"),
        ("base_url: http://x.example?a=b\nactors: {}\nfixtures: {}", "is not a base URL"),
        ("base_url: 'http://x.example/?'\nactors: {}\nfixtures: {}", "is not a base URL"),
        ("base_url: 'http://x.example#'\nactors: {}\nfixtures: {}", "is not a base URL"),
        ("base_url: http://-größe.example\nactors: {}\nfixtures: {}", "is not a base URL"),
        ("base_url: http://999.1.1.1\nactors: {}\nfixtures: {}", "is not a base URL"),
        (f"{EMPTY}proxy: http://-größe.example:3128", "names a proxy that is no address"),
        (f"{EMPTY}headers: {{X-Key: 'secret-key '}}", "without blanks at its ends"),
        ("base_url: http://x.example\nactors: {owner: {token: maintainer}}\nfixtures: {}", "0.owner.token"),
        ("base_url: http://x.example\nactors: {}\nfixtures: {project: 3}", "a list of such"),
        ("base_url: http://x.example\nactors: {}\nname: größe", "letters a to z"),
        ("base_url: http://x.example\nactors: {}\nheaders: {PRIVATE-TOKEN: x}", "are the suite's own"),
        ('base_url: http://x.example\nactors: {owner: {token: "abc\\n"}}\nfixtures: {}', "at actors.owner.token"),
        (
            "base_url: http://x.example\nbase_url: http://y.example",
            "line 2, column 1 is not valid YAML: 'base_url' occurs",
        ),
    ],
)
def test_a_wrong_profile_ends_with_4_and_names_the_position(
    conformance: Callable[..., Any],
    tmp_path: Path,
    profile: str,
    message: str,
) -> None:
    (tmp_path / "target.yaml").write_text(profile, encoding="utf-8")
    outcome = conformance("target", "--check", "target.yaml")
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert message in outcome.text


SECRET = "glpat-SECRET12345"


@pytest.mark.parametrize(
    "profile",
    [
        f"CONFORMANCE_OWNER_TOKEN={SECRET}\nCONFORMANCE_OTHER={SECRET}",
        f"base_url: http://root:{SECRET}@x.example:99999\nactors: {{}}\nfixtures: {{}}",
        f"base_url: http://x.example\nactors: {{owner: {SECRET}}}\nfixtures: {{}}",
        f"base_url: http://x.example\nactors: {{owner: {{token: [{SECRET}]}}}}\nfixtures: {{}}",
        f"base_url: http://x.example\nactors: {{owner: {{token: '${{{SECRET}}}'}}}}\nfixtures: {{}}",
        f"base_url: http://x.example\nactors: {{}}\nfixtures: {{job_token: {SECRET}}}",
        f"base_url: http://x.example\nactors: {{}}\nfixtures: {{}}\nheaders: [{SECRET}]",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_quoted(
    conformance: Callable[..., Any], tmp_path: Path, profile: str
) -> None:
    """A file of secrets, given as the profile, counts as such a place too."""
    (tmp_path / "target.yaml").write_text(profile, encoding="utf-8")
    for call in (
        ("target", "--check", "target.yaml"),
        ("run", "--baseline", "target.yaml"),
        ("lint-traffic", "target.yaml"),
    ):
        outcome = conformance(*call)
        assert outcome.code == ExitCode.USAGE, outcome.text
        assert SECRET not in outcome.text


def test_all_variables_without_a_value_are_named_at_once(
    conformance: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SET_TO_NOTHING", "")
    tokens = "{owner: {token: '${SET_TO_NOTHING}'}, guest: {token: '${NOT_SET}'}}"
    profile = f"base_url: http://x.example\nactors: {tokens}\nfixtures: {{}}"
    (tmp_path / "target.yaml").write_text(profile, encoding="utf-8")
    outcome = conformance("target", "--check", "target.yaml")
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert "SET_TO_NOTHING (empty), NOT_SET (not set)" in outcome.text


def test_two_worlds_that_share_a_project_are_refused_before_the_first_call(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    world = "actors: {}\nfixtures: {project: {id: 7}}"
    further = "worlds: [{actors: {}, fixtures: {sibling_project: {id: 7}}}]"
    (tmp_path / "target.yaml").write_text(f"base_url: http://x.example\n{world}\n{further}", encoding="utf-8")
    for call in (("target", "--check", "target.yaml"), ("run", "--target", "target.yaml")):
        outcome = conformance(*call)
        assert outcome.code == ExitCode.USAGE, outcome.text
        assert "worlds 1 and 2 of target.yaml both name project 7 (sibling_project)" in outcome.text


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--max-rps", value) for value in ("0", "-3", "nan", "inf", "fast")),
        *(("--minutes", value) for value in ("0", "-1", "nan")),
        *(("--max-requests", value) for value in ("0", "2.5")),
        *(("--concurrency", value) for value in ("0", "500")),
        ("--max-examples", "-5"),
        ("--fuzz-seconds", "-1"),
    ],
)
def test_a_number_out_of_range_is_refused_by_command_and_pytest_alike(
    conformance: Callable[..., Any], option: str, value: str
) -> None:
    for behind in ((), ("--",)):
        outcome = conformance("run", *behind, f"{option}={value}")
        assert outcome.code == ExitCode.USAGE, outcome.text
        assert option in outcome.text
        assert "Traceback" not in outcome.text


def test_tests_that_cannot_be_read_are_named_and_are_no_interruption(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("import no_such_module\n", encoding="utf-8")
    outcome = run_conformance("run", "-q", "--", str(tmp_path / "test_mine.py"), cwd=tmp_path)
    assert outcome.code == ExitCode.SUITE_BROKE, outcome.text
    assert "A file of tests cannot be read" in outcome.err
    assert "test_mine.py:1" in outcome.err
    assert "No module named 'no_such_module'" in outcome.err
    assert "Interrupted" not in outcome.text


def test_a_test_of_the_suite_that_cannot_be_read_is_no_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With workers, the first process collects all tests only for the plan."""
    (tmp_path / "test_broken.py").write_text("import no_such_module\n", encoding="utf-8")
    monkeypatch.setattr(collection, "suite_arguments", lambda *options: [*suite_arguments(*options), str(tmp_path)])
    monkeypatch.setattr(collection, "_COLLECTED", {})
    with pytest.raises(ContractError, match="No module named 'no_such_module'"):
        collection.all_tests(Contract.load(), None)


def test_a_whole_number_may_be_written_in_several_ways(tmp_path: Path) -> None:
    file = tmp_path / "target.yaml"
    file.write_text(
        "base_url: http://x.example\nactors: {}\nfixtures: {project: {id: 7.0}}\nlimits: {page_walk: 3.0}",
        encoding="utf-8",
    )
    profile = load_profile(file)
    assert f"{profile.fixtures['project'][0].id} {profile.limits.page_walk}" == "7 3"


def test_a_profile_that_is_not_text_ends_with_4(conformance: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "target.yaml").write_bytes(b"\xff\xfe\x00")
    outcome = conformance("run", "--target", "target.yaml")
    assert outcome.code == ExitCode.USAGE
    assert "not UTF-8" in outcome.text


def test_a_refused_connection_leaves_a_readable_report(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    service, _ = reference
    write_profile(service, f"http://127.0.0.1:{unused_port()}")
    outcome = conformance("run", "--target", "target.yaml", "--out", "out", *JOB_TOKEN_SCOPE)
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert (outcome.out.count("does not answer"), outcome.err.count("does not answer")) == (0, 1), outcome.text
    assert outcome.out.count("COULD NOT RUN") == 1
    assert_nothing_passed(tmp_path / "out")


@pytest.mark.parametrize(
    ("status", "body", "content_type", "message"),
    [
        (200, b"<!doctype html><p>Welcome</p>", "text/html", "answers HTML"),
        (502, b"<html>Bad Gateway</html>", "text/html", "does not answer: status 502"),
        (401, b'{"message":"401 Unauthorized"}', "application/json", "refuses the token of actor 'maintainer'"),
    ],
)
def test_a_host_that_is_not_the_service_is_named_as_such(
    conformance: Callable[..., Any],
    answering: Callable[..., str],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
    status: int,
    body: bytes,
    content_type: str,
    message: str,
) -> None:
    service, _ = reference
    write_profile(service, answering(status, body, content_type))
    outcome = conformance("run", "--target", "target.yaml", "--out", "out")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert message in outcome.text
    assert_nothing_passed(tmp_path / "out")


def test_the_call_with_a_refused_token_can_be_pasted_into_a_shell(
    conformance: Callable[..., Any], answering: Callable[..., str], reference: Any, write_profile: Callable[..., Path]
) -> None:
    base_url = answering(401, b"{}", "application/json")
    write_profile(reference[0], base_url)
    outcome = conformance("run", "--target", "target.yaml", "--out", "out")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    command = outcome.err.partition("has not expired: ")[2].splitlines()[0]
    assert command.startswith(f'curl -i -H "PRIVATE-TOKEN: $TOKEN_MAINTAINER" {base_url}/api/v4/projects/')
    assert not set(command) & set("<>|;&")
    assert "refuses the token" not in outcome.out


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://user@api.example.com/api/v4/projects/1", "https://api.example.com"),
        ("/users/sign_in?state=secret", "/users/sign_in"),
    ],
)
def test_a_host_that_redirects_every_call_is_not_judged(
    conformance: Callable[..., Any],
    answering: Callable[..., str],
    reference: Any,
    write_profile: Callable[..., Path],
    location: str,
    shown: str,
) -> None:
    write_profile(reference[0], answering(308, b"{}", location=location))
    outcome = conformance("run", "--target", "target.yaml", "--out", "out")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert f"redirects to {shown} (status 308)" in outcome.text


def test_a_check_without_any_service_at_the_address_says_so(
    conformance: Callable[..., Any], answering: Callable[..., str], reference: Any, write_profile: Callable[..., Path]
) -> None:
    write_profile(reference[0], answering(404, b"{}", "application/json"))
    outcome = conformance("target", "--check", "target.yaml")
    assert "nothing shows that this is the service" in outcome.err, outcome.text


def test_a_wrong_value_in_the_environment_is_reported_with_its_variable(conformance: Callable[..., Any]) -> None:
    outcome = conformance("run", environment={**os.environ, "CONFORMANCE_RUN_SEED": "abc"})
    assert outcome.code == ExitCode.USAGE
    assert "CONFORMANCE_RUN_SEED in the environment, which stands for --seed: 'abc' is not" in outcome.err
    given = conformance("run", "--seed", "abc")
    assert "Invalid value for '--seed': 'abc' is not" in given.err


@pytest.mark.parametrize(
    "selected", [("--area", "code-completion"), ("--requirement", "code-completion.result.fields")]
)
def test_a_selection_outside_the_scope_ends_with_a_message_about_the_scope(
    conformance: Callable[..., Any], reference: Any, write_profile: Callable[..., Path], selected: tuple[str, str]
) -> None:
    write_profile(*reference, scope=["job-token-scope", "integrations"])
    outcome = conformance("run", "-q", "--target", "target.yaml", "--out", "out", *selected)
    assert outcome.code == ExitCode.NOTHING_RAN, outcome.text
    told = "Outside the scope of the profile: code-completion. Its `scope:` has job-token-scope, integrations"
    assert told in outcome.err


def test_a_discovery_without_a_call_for_the_current_user_says_what_to_do(
    conformance: Callable[..., Any], answering: Callable[..., str], reference: Any, write_profile: Callable[..., Path]
) -> None:
    write_profile(reference[0], answering(404, b'{"message":"404 Not Found"}'))
    outcome = conformance("target", "--discover", "target.yaml")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert "GET /user answers status 404" in outcome.err
    assert "conformance target --example" in outcome.err
    write_profile(reference[0], answering(401, b"{}"))
    refused = conformance("target", "--discover", "target.yaml")
    assert "none of the actors: status 401. Check base_url and the tokens" in refused.err


def test_a_report_folder_that_cannot_be_made_ends_with_4(conformance: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    outcome = conformance("run", "--workers", "1", "--out", "file/reports")
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert "--out" in outcome.text


def test_an_interrupted_run_keeps_its_results_and_says_so(
    slow_reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    service, base_url = slow_reference
    write_profile(service, base_url)
    process = started("run", "--target", "target.yaml", "--out", "out", *JOB_TOKEN_SCOPE, cwd=tmp_path)
    wait_for_checks(tmp_path / "out" / "results.jsonl", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, out + err
    record = read_record(tmp_path / "out" / "results.jsonl")
    assert record.footer is not None
    assert "interrupted" in str(record.footer.detail)
    assert record.checks
    assert "interrupted" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert not any(word in out + err for word in ("Traceback", "KeyboardInterrupt"))


def test_a_run_interrupted_before_its_first_test_says_so_too(
    conformance: Callable[..., Any],
    slow_reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    write_profile(*slow_reference)
    monkeypatch.setattr("conformance.runner.session.Run", interrupted)
    outcome = conformance("run", "--target", "target.yaml", "--out", "out", *JOB_TOKEN_SCOPE)
    assert outcome.code == ExitCode.INTERRUPTED, outcome.text
    footer = read_record(tmp_path / "out" / "results.jsonl").footer
    assert footer is not None
    assert footer.detail == "the operator interrupted the run"


def test_the_report_of_a_killed_run_can_be_made_from_its_record(
    conformance: Callable[..., Any],
    slow_reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    service, base_url = slow_reference
    write_profile(service, base_url)
    process = started("run", "--target", "target.yaml", "--out", "out", *JOB_TOKEN_SCOPE, cwd=tmp_path)
    wait_for_checks(tmp_path / "out" / "results.jsonl", process)
    process.kill()
    process.communicate(timeout=60)
    record = read_record(tmp_path / "out" / "results.jsonl")
    assert record.truncated
    outcome = conformance("report", "out")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    assert "cut off" in outcome.text
    assert "cut off" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "code"),
    [(("run", "-q", "--requirement", "job-token-scope.switch.on", "--out", "out"), 0), (("requirements",), 141)],
    ids=["a run", "a list"],
)
def test_a_reader_who_closes_the_pipe_changes_no_verdict(tmp_path: Path, command: tuple[str, ...], code: int) -> None:
    process = started(*command, cwd=tmp_path)
    process.stdout.close()  # type: ignore[union-attr]  # it is a pipe
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, "")


def assert_nothing_passed(folder: Path) -> None:
    report = report_of(folder)
    assert report["verdict"] == "could not run"
    assert not [row["id"] for row in report["requirements"] if row["verdict"] == "passed"]
    assert (folder / "index.html").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file here that is always full")
def test_a_full_standard_output_is_not_a_usage_error() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "conformance", "requirements"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == ExitCode.SUITE_BROKE, ended.stderr
    assert ended.stderr.splitlines() == ["Error: what was to be printed could not be written: standard output is full."]
