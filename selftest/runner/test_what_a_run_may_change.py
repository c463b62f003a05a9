"""A run writes only to what its profile names, to no host without consent, and to no target that another run uses."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from conformance.contract import Contract
from conformance.errors import ExitCode, TargetError, UsageError
from conformance.http.client import Client, TargetGoneError
from conformance.http.exchange import Call
from conformance.http.transport import NotSentError
from conformance.reference.http import Request, Response
from conformance.results.reading import read_record
from conformance.runner.precautions import Precautions
from conformance.suite.context import Run
from conformance.target import Fixture, Profile, load_profile
from conformance.target.machine import state_folder
from conformance.target.marker import KEY, Marker
from conformance.target.profile import Actor
from selftest.proof.hostile import BROKEN, WRONG, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.reference import Service
    from conformance.reference.routing import Route

from selftest.runner.test_precautions import FEW, LISTS, noticed


@pytest.fixture
def profile(reference: tuple[Service, str], write_profile: Callable[..., Path]) -> Profile:
    return load_profile(write_profile(*reference))


# -- one run at a time -------------------------------------------------------------------------------------------------


def test_a_run_without_a_writable_state_folder_does_not_start_and_says_why(
    conformance: Callable[..., Any], profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONFORMANCE_STATE", str(tmp_path / "target.yaml"))
    outcome = conformance("run", *FEW, "--requirement", "job-token-scope.settings.read")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    footer = read_record(tmp_path / "out" / "results.jsonl").footer
    assert footer is not None
    assert footer.exit_code == conformance("report", "out").code == outcome.code
    assert "Name another folder with CONFORMANCE_STATE" in str(footer.detail)
    assert marks_on(profile) == []


def test_a_run_that_loses_its_target_while_it_marks_it_leaves_no_mark(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise TargetGoneError("nobody is there")

    precautions = Precautions.of(profile, None, tmp_path, "run")
    monkeypatch.setattr(Marker, "_require_fresh_reads", gone)
    with pytest.raises(TargetError, match="nobody is there"):
        list(precautions.begin([0], restores=True))
    assert len(marks_on(profile)) == 1
    precautions.release()
    assert marks_on(profile) == []


def test_a_user_without_a_home_folder_is_told_to_name_a_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run as a user of no name, and without HOME."""

    def of_nobody(_: int) -> None:
        raise KeyError

    for name in ("CONFORMANCE_STATE", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", of_nobody)
    with pytest.raises(UsageError, match="Name a folder with CONFORMANCE_STATE"):
        state_folder()


def _without_variables(route: Route, _: Request, response: Response) -> Response:
    return Response(403, {}) if "variables" in route.path else response


@pytest.mark.parametrize("takes_marks", [True, False], ids=["on the target", "in a file"])
def test_a_run_on_a_target_that_another_run_uses_ends_at_once(
    conformance: Callable[..., Any], reference: tuple[Service, str], profile: Profile, *, takes_marks: bool
) -> None:
    service, _ = reference
    if not takes_marks:
        service.transformers.append(_without_variables)
    mark = Marker(profile, "the-other")
    assert mark.claim() is None
    outcome = conformance("run", *FEW, *LISTS)
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert "Another run uses project 3 of this target: run the-other" in " ".join(outcome.text.split())
    mark.release()
    assert marks_on(profile) == []


def test_the_mark_of_a_dead_run_is_taken_over(
    conformance: Callable[..., Any], profile: Profile, tmp_path: Path
) -> None:
    told = json.dumps({"run": "old", "host": "elsewhere", "pid": 1, "beat": "2020-01-01T00:00:00+00:00"})
    with Client(profile.client_settings()) as client:
        client.send(profile.actors["maintainer"], "POST", variables(profile), json_body={"key": KEY, "value": told})
    outcome = conformance("run", *FEW, "--requirement", "job-token-scope.settings.read")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert "A run that has ended left its mark on project 3: run old" in noticed(tmp_path / "out")
    assert marks_on(profile) == []


def test_the_mark_of_a_run_in_another_container_of_the_same_name_stands(profile: Profile) -> None:
    """With the network of the host, a container has its name; a process that is there has no number here."""
    before = Marker(profile, "before")
    assert before.claim() is None
    with Client(profile.client_settings()) as client:
        path, maintainer = f"{variables(profile)}/{KEY}", profile.actors["maintainer"]
        said = json.loads(json.loads(client.send(maintainer, "GET", path).body)["value"])
        told = json.dumps({**said, "run": "inside", "pid": 10**9, "numbering": "pid:[1]"})
        client.send(maintainer, "PUT", path, json_body={"value": told})
    with pytest.raises(TargetError, match="Another run uses project 3 of this target: run inside"):
        Marker(profile, "other").claim()


@pytest.mark.parametrize("name", ["JSON nested a hundred thousand deep", "noise", "a decompression bomb"])
def test_if_marks_cannot_be_read_a_run_is_marked_in_a_file(name: str) -> None:
    with serving({**BROKEN, **WRONG}[name]) as server:
        target = Profile(
            server.base_url,
            None,
            "",
            {"maintainer": Actor("maintainer", "secret")},
            {"project": (Fixture("project", {"id": 1}, "test"),)},
        )
        mark = Marker(target, "first")
        assert mark.claim() is None
        with pytest.raises(TargetError, match="Another run uses project 1 of this target: run first"):
            Marker(target, "second").claim()
        mark.release()


def test_a_run_does_not_begin_if_reads_lag_behind_writes_and_says_how_long_to_wait(
    conformance: Callable[..., Any], reference: tuple[Service, str], profile: Profile
) -> None:
    shown, left = Response(404), 0

    def cached(route: Route, _: Request, response: Response) -> Response:
        nonlocal shown, left
        if not route.key.endswith("/variables/:key"):
            return response
        if route.method == "PUT":
            left = 3
        if route.method != "GET":
            return response
        left, shown = max(0, left - 1), shown if left else response
        return shown

    reference[0].transformers.append(cached)
    outcome = conformance("run", *FEW, *LISTS)
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert "lag behind writes" in " ".join(outcome.text.split())
    assert "limits: {settle_seconds: 1}" in " ".join(outcome.text.split())
    reference[0].transformers.remove(cached)
    assert marks_on(profile) == []


def variables(profile: Profile) -> str:
    return f"/projects/{profile.fixtures['project'][0].id}/variables"


def marks_on(profile: Profile) -> list[Any]:
    """Return the marks on the world, and their replacements."""
    with Client(profile.client_settings()) as client:
        found = json.loads(client.send(profile.actors["maintainer"], "GET", variables(profile)).body or b"[]")
    files = list((Path(os.environ["CONFORMANCE_STATE"]) / "marks").glob("*/*.json"))
    return [*(found if isinstance(found, list) else []), *files]


# -- where a run writes ------------------------------------------------------------------------------------------------


@pytest.fixture
def run(profile: Profile) -> Iterator[Run]:
    with closing(Run(Contract.load(), profile, lambda _: None)) as found:
        yield found


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/projects/77/job_token_scope", {"enabled": False}),
        ("PUT", "/groups/strangers%2Fgroup/merge_request_approval_setting", {}),
        ("PUT", "/projects/77abc/integrations/slack", {}),
        ("PUT", "/projects/%1E+0077/integrations/slack", {}),
        ("POST", "/projects/1/merge_requests/55/approve", {}),
        ("POST", "/projects/1/job_token_scope/allowlist", {"target_project_id": 77}),
        ("DELETE", "/users/5", None),
        ("POST", "http://192.0.2.1/api/v4/projects/1/approvals", {}),
    ],
)
def test_a_write_to_something_that_the_profile_does_not_name_is_not_sent(
    run: Run, reference: tuple[Service, str], method: str, path: str, body: Any
) -> None:
    service, sent = reference[0], list[str]()
    service.request_log = lambda entry: sent.append(entry.path)
    with pytest.raises(NotSentError, match="A run writes only to what its profile names"):
        run.client.send(run.profile.actors["maintainer"], method, path, json_body=body)
    assert sent == []


@pytest.mark.parametrize(
    "path", ["/projects/2000000001/approvals", "/projects/0/approvals", "/projects/4294967297/approvals"]
)
def test_a_write_to_something_that_cannot_exist_is_sent(run: Run, path: str) -> None:
    answer = run.client.send(run.profile.actors["maintainer"], "POST", path, json_body={})
    assert answer.status == 404


#: Digits of every script, and characters around them.
NUMERALS = "017+-.²٣ \x1e\x85ax/"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(id_=strategies.text(NUMERALS, min_size=1), iid=strategies.text(NUMERALS, min_size=1))
def test_for_any_drawn_path_the_guard_decides_whether_it_is_sent(run: Run, id_: str, iid: str) -> None:
    path = f"/projects/{quote(id_, safe='')}/merge_requests/{quote(iid, safe='')}/approve"
    problem = run.ownership.problem(Call(None, "POST", path, {"user_id": iid}, json.dumps({"ids": [id_]}).encode()))
    assert problem is None or "the profile" in problem


# -- hosts -------------------------------------------------------------------------------------------------------------


def test_a_host_is_changed_only_after_somebody_confirmed_it(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
) -> None:
    service, base_url = reference
    write_profile(service, base_url, disposable=False)
    host = base_url.removeprefix("http://")
    state = Path(os.environ["CONFORMANCE_STATE"])
    state.mkdir(parents=True, exist_ok=True)
    (state / "confirmed-hosts").write_bytes(b"\xff damaged\n")
    little = (*FEW, "--requirement", "job-token-scope.settings.read")
    refused = conformance("run", *little)
    assert refused.code == ExitCode.USAGE, refused.text
    assert f"--confirm {host}" in refused.text
    assert "deselected in" not in refused.text
    other = conformance("run", *little, "--confirm", "other.example.com")
    assert other.code == ExitCode.USAGE
    assert "is not the host of the target" in other.text
    assert conformance("run", *little, "--read-only").code == ExitCode.CONFORMANT
    assert conformance("run", *little, "--confirm", host).code == ExitCode.CONFORMANT
    assert conformance("run", *little).code == ExitCode.CONFORMANT
