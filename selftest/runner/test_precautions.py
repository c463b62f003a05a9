"""A run undoes its changes, even after it was interrupted or killed."""

from __future__ import annotations

import base64
import json
import os
import shutil
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode, UsageError
from conformance.http.client import Client
from conformance.reference import EmbeddedServer
from conformance.reference.choices import Choices, OutOfRange
from conformance.reference.errors import NoRouteError
from conformance.reference.http import Response
from conformance.results.reading import read_record
from conformance.runner.absent import Known, know_absent
from conformance.runner.precautions import Precautions, restored
from conformance.suite.arrange import Arranged, arranged, has_request_example
from conformance.suite.expectations import Caller
from conformance.target import Profile, load_profile
from conformance.target.embedded import prepared_service
from conformance.target.ledger import Content, begun
from conformance.target.spots import Spot, Spots
from selftest.conftest import VERSION, in_a_test, lacking
from selftest.processes import started, wait_for_checks
from selftest.reads import everything_read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

FEW = ("-q", "--max-examples", "2", "--seed", "1", "--corpus", "none", "--target", "target.yaml", "--out", "out")
LISTS = ("--area", "job-token-scope")


@pytest.fixture
def profile(reference: tuple[Service, str], write_profile: Callable[..., Path]) -> Profile:
    return load_profile(write_profile(*reference))


@pytest.fixture
def slow_profile(slow_reference: tuple[Service, str], write_profile: Callable[..., Path]) -> Profile:
    return load_profile(write_profile(*slow_reference))


def noticed(folder: Path) -> str:
    """Return the warnings of a run."""
    return " ".join(read_record(folder / "results.jsonl").warnings)


@pytest.mark.parametrize(
    ("area", "checks"),
    [
        ("job-token-scope", 1),
        ("project-approval-rules", 25),
        ("merge-request-approvals", 50),
        ("group-approval-rules", 20),
    ],
)
def test_restore_after_a_killed_run_makes_every_read_as_before(
    conformance: Callable[..., Any], slow_profile: Profile, tmp_path: Path, area: str, checks: int
) -> None:
    before = everything_read(slow_profile)
    process = started("run", *FEW, "--area", area, cwd=tmp_path)
    wait_for_checks(tmp_path / "out" / "results.jsonl", process, checks)
    process.kill()
    process.communicate(timeout=120)
    outcome = conformance("restore", "out")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert everything_read(slow_profile) == before
    assert "secret-" not in (tmp_path / "out" / "ledger.jsonl").read_text(encoding="utf-8")
    tokens = [actor.token for actor in slow_profile.actors.values()]
    assert not [token for token in tokens if token in (tmp_path / "out" / "ledger.jsonl").read_text(encoding="utf-8")]


def everything_changed(profile: Profile, folder: Path) -> tuple[str, ...]:
    """Call every operation that writes, then undo everything with the ledger; return what could not be undone."""
    precautions = Precautions.of(profile, None, folder, folder.name)
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)  # first, because a worker may start before the run has begun the ledgers
        assert list(precautions.begin([0], restores=True)) == []
        for operation in test.run.validator.operations:
            if not operation.is_read and has_request_example(operation):
                with arranged(operation) as prepared:
                    caller = Caller(test.run, profile.actors[next(iter(operation.served))])
                    assert prepared.sent_by(caller).is_served, operation.label
        left = precautions.put_back()
        precautions.release()
    return left


def test_the_changes_of_every_operation_are_undone(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Arranged, "put_back", lambda _: None)
    # A disabled integration is shown as inactive, which it was not before its first set-up.
    everything_changed(profile, tmp_path / "first")
    before = everything_read(profile)
    left = everything_changed(profile, tmp_path / "second")
    assert sorted(text.partition(" ")[0] for text in left) == ["group-rules", "the"], left
    changed = {path for path, answer in everything_read(profile).items() if before[path] != answer}
    assert {path.rpartition("/")[2] for path in changed} == {"approval_rules"}
    assert all(path.startswith("/groups/") for path in changed)


def test_a_rule_that_the_service_itself_removes_is_not_restored_if_it_would_stay(
    profile: Profile, tmp_path: Path
) -> None:
    """A rule for any approver replaces the existing one; a new rule in its place could not be removed either."""
    owner, precautions = profile.actors["owner"], Precautions.of(profile, None, tmp_path, "run")
    with in_a_test(profile) as test, Client(profile.client_settings()) as beside:

        def rules(path: str) -> list[str]:
            return [rule["rule_type"] for rule in json.loads(beside.send(owner, "GET", path).body)]

        paths = [f"/groups/{spot.number}/approval_rules" for spot in Spots(profile).all if spot.level == "group"]
        path = next(path for path in paths if rules(path) == ["any_approver"])
        precautions.keep_ledger(test.run, 0)  # first, because a worker may start before the run has begun the ledgers
        assert list(precautions.begin([0], restores=True)) == []
        body = {"name": "conformance-1", "approvals_required": 1, "rule_type": "any_approver"}
        test.run.client.send(owner, "POST", path, json_body=body)
        left = precautions.put_back()
        precautions.release()
        assert rules(path) == ["any_approver"], left


def killed_in_the_middle(folder: Path) -> None:
    process = started("run", *FEW, *LISTS, cwd=folder)
    wait_for_checks(folder / "out" / "results.jsonl", process)
    process.kill()
    process.communicate(timeout=120)


def test_a_run_first_undoes_what_a_killed_run_left(
    conformance: Callable[..., Any], slow_profile: Profile, tmp_path: Path
) -> None:
    before = everything_read(slow_profile)
    killed_in_the_middle(tmp_path)
    nothing = ("--requirement", "job-token-scope.settings.read")
    refused = conformance("run", *FEW, *nothing, "--no-restore")
    assert refused.code == ExitCode.COULD_NOT_RUN
    assert "left its mark on project" in noticed(tmp_path / "out")
    assert "only out says what it is. Name another folder with --out" in refused.text
    conformance("run", *FEW, *nothing, "--no-restore", "--out", "second")
    left_alone = noticed(tmp_path / "second")
    assert "has not been put back (--no-restore)" in left_alone
    shutil.rmtree(os.environ["CONFORMANCE_STATE"])  # as on a machine that is created for each job
    conformance("run", *FEW, *nothing)
    assert "did not end. What it changed has been put back first" in noticed(tmp_path / "out")
    assert everything_read(slow_profile) == before


def test_changes_of_a_killed_run_are_undone_even_if_its_folder_was_renamed(
    conformance: Callable[..., Any], slow_profile: Profile, tmp_path: Path
) -> None:
    """Nightly jobs move the report of the last run elsewhere."""
    before = everything_read(slow_profile)
    killed_in_the_middle(tmp_path)
    (tmp_path / "out").rename(tmp_path / "last-night")
    conformance("run", *FEW, "--requirement", "job-token-scope.settings.read")
    assert "did not end. What it changed has been put back first" in noticed(tmp_path / "out")
    assert everything_read(slow_profile) == before


def test_the_first_recorded_state_counts(tmp_path: Path) -> None:
    """A process that replaces a crashed one finds the changes of that one, and records them as well."""
    file = begun(tmp_path / "ledger.jsonl", {"run": "run", "base_url": "http://127.0.0.1:1", "world": 0})
    spot = {"was": "project-allowlist", "level": "project", "number": 3, "iid": None, "by": "owner"}
    with file.open("a", encoding="utf-8") as stream:
        for state in ([["3", {}]], [["3", {}], ["15", {}]]):
            stream.write(json.dumps({**spot, "state": state}) + "\n")
        stream.write(json.dumps({**spot, "number": 4, "state": []}) + "\n")
    assert [(line["number"], len(line["state"])) for line in Content.read(file).was] == [(3, 1), (4, 0)]


def test_what_was_made_again_with_the_number_of_something_deleted_is_still_of_the_run(tmp_path: Path) -> None:
    """Many databases give the highest number again, once what had it is deleted."""
    file = begun(tmp_path / "ledger.jsonl", {"run": "run", "base_url": "http://127.0.0.1:1", "world": 0})
    spot = {"level": "project", "number": 3, "iid": None, "entry": 5}
    with file.open("a", encoding="utf-8") as stream:
        for kind in ("made", "gone", "made"):
            stream.write(json.dumps({kind: "project-rules", **spot}) + "\n")
    assert Content.read(file).made == Content.read(file).makes == {("project-rules", Spot("project", 3), "5")}
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"gone": "project-rules", **spot}) + "\n")
    assert Content.read(file).made == Content.read(file).makes == set()


def test_restore_does_not_touch_a_run_that_is_still_active(
    conformance: Callable[..., Any], profile: Profile, tmp_path: Path
) -> None:
    precautions = Precautions.of(profile, tmp_path / "target.yaml", tmp_path / "out", "run")
    assert list(precautions.begin([0], restores=True)) == []
    outcome = conformance("restore", "out")
    assert (outcome.code, "still goes on" in outcome.text) == (ExitCode.USAGE, True), outcome.text
    precautions.release()
    assert conformance("restore", "out").code == ExitCode.CONFORMANT


def in_base64(token: str) -> str:
    return base64.b64encode(f"by {token}!".encode()).decode()


@pytest.mark.parametrize(
    ("name", "is_written"),
    [("{}".format, True), ("by {0}, and by {0}".format, True), (in_base64, False)],
    ids=["alone", "in a text", "encoded"],
)
def test_a_former_value_that_contains_a_secret_is_restored_by_reference(
    profile: Profile, tmp_path: Path, name: Callable[[str], str], *, is_written: bool
) -> None:
    token, admin = profile.actors["developer"].token, profile.actors["admin"]
    path = f"/projects/{profile.fixtures['project'][0].id}/approval_rules"
    precautions = Precautions.of(profile, None, tmp_path, "run")
    with in_a_test(profile) as test, Client(profile.client_settings()) as beside:
        created = beside.send(admin, "POST", path, json_body={"name": name(token), "approvals_required": 1})
        path = f"{path}/{json.loads(created.body)['id']}"
        precautions.keep_ledger(test.run, 0)  # first, because a worker may start before the run has begun the ledgers
        assert list(precautions.begin([0], restores=True)) == []
        test.run.client.send(admin, "PUT", path, json_body={"name": "changed", "approvals_required": 1})
        left = precautions.put_back()
        precautions.release()
        stands = json.loads(beside.send(admin, "GET", path).body)["name"]
    written = (tmp_path / "ledger.jsonl").read_text(encoding="utf-8")
    assert token not in written
    assert in_base64(token)[8:24] not in written
    # A secret known only in an encoded form cannot be written to the ledger, and the report says so.
    assert stands == (name(token) if is_written else "changed")
    assert [text.partition(",")[0] for text in left] == ([] if is_written else ["a value that holds a secret"])


def test_a_damaged_ledger_is_used_as_far_as_it_can_be_read(profile: Profile, tmp_path: Path) -> None:
    file = begun(tmp_path / "ledger.jsonl", {"run": "run", "base_url": profile.base_url, "world": 0})
    spot = {"level": "project", "number": profile.fixtures["project"][0].id, "iid": None}
    spoiled = {"was": "limit", **spot, "by": "owner", "state": {"secret": ["", "integration.0.password", ""]}}
    lines = [spoiled, [], {"makes": "rules"}, {"stays": "an export", **spot}]
    with file.open("a", encoding="utf-8") as stream:
        stream.write("".join(f"{json.dumps(line)}\n" for line in lines) + '{"was": "lim')
    left = restored(tmp_path, profile)
    assert [text.partition(" of project")[0] for text in left] == ["an export", f"what 3 damaged lines of {file} say"]
    assert restored(tmp_path, profile) == left, "what was left once is said again"


def test_an_unreadable_ledger_does_not_keep_others_from_being_used(
    conformance: Callable[..., Any], profile: Profile, tmp_path: Path
) -> None:
    (tmp_path / "ledger-0.jsonl").write_text('{"stays": "cut off before its header"}\n', encoding="utf-8")
    begun(tmp_path / "ledger-1.jsonl", {"run": "run", "base_url": profile.base_url, "world": 0})
    with (tmp_path / "ledger-1.jsonl").open("a", encoding="utf-8") as stream:
        for number in (2, 1):
            stream.write(f'{{"stays": "an export", "level": "group", "number": {number}, "iid": null}}\n')
    outcome = conformance("restore", ".", "--target", "target.yaml")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    assert "left: an export of group 1, 2\n" in outcome.out
    assert "ledger-0.jsonl is not a ledger of this version of the suite. Put it back later" in outcome.out


@pytest.mark.usefixtures("profile")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--target", "target.yaml"), "The run tested http://127.0.0.1:1, and target.yaml is the profile of"),
        ((), "does not say which profile the run had"),
    ],
)
def test_no_token_is_sent_to_an_address_that_its_profile_does_not_name(
    options: tuple[str, ...], told: str, conformance: Callable[..., Any], tmp_path: Path
) -> None:
    begun(tmp_path / "ledger.jsonl", {"run": "run", "base_url": "http://127.0.0.1:1", "world": 0})
    outcome = conformance("restore", ".", *options)
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert told in outcome.err


@pytest.mark.parametrize("header", [{"run": {"secret": []}}, {"world": None}, {"base_url": 5}])
def test_a_ledger_with_a_damaged_beginning_is_refused(tmp_path: Path, header: dict[str, Any]) -> None:
    file = begun(tmp_path / "ledger.jsonl", {"run": "run", "base_url": "http://127.0.0.1:1", "world": 0, **header})
    with pytest.raises(UsageError, match="is not a ledger of this version of the suite"):
        Content.read(file)
    with pytest.raises(UsageError, match="Cannot read"):
        Content.read(file.parent)  # like a file of another user


DELETING = "DELETE /projects/:id/approval_rules/:approval_rule_id"
IN_FRONT = {
    "a way to a login page": Response(302, headers={"Location": "/login"}),
    "who are you": Response(401),
    "a page": Response(200, raw=b"<html>Back soon</html>", media_type="text/html"),
    "not known": Response(404),
}


@pytest.mark.parametrize("answer", IN_FRONT.values(), ids=IN_FRONT)
@pytest.mark.parametrize(
    ("answers", "stays"),
    [(10_000, True), (41, False), (54, False), (60, False), (67, False)],
    ids=["for long", "for a moment", "until some can be read", "until more can be read", "until most can be read"],
)
def test_what_a_gateway_hides_at_the_end_of_a_run_is_restored_once_visible(
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    answer: Response,
    answers: int,
    *,
    stays: bool,
) -> None:
    service = reference[0]
    profile = load_profile(write_profile(*reference))
    before, left_calls = everything_read(profile), count(answers, -1)
    owner, rules = profile.actors["owner"], f"/projects/{profile.value('project')}/approval_rules"
    precautions = Precautions.of(profile, None, tmp_path, "run")

    def in_front(_: Route, __: Request, response: Response) -> Response:
        return replace(answer) if next(left_calls) > 0 else response

    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        assert test.run.client.send(owner, "POST", rules, json_body={"name": "new", "approvals_required": 1}).is_success
        service.transformers.append(in_front)
        left = precautions.put_back()
        service.transformers.remove(in_front)
        assert len(left) == stays
        assert all(text.startswith("everything in") and "Put it back later" in text for text in left)
        assert Content.read(tmp_path / "ledger.jsonl").is_settled is (not left)
        assert restored(tmp_path, profile) == ()
        precautions.release()
    assert everything_read(profile) == before


@pytest.mark.parametrize("is_deletable", [True, False], ids=["can be deleted", "no operation deletes"])
def test_rules_created_where_no_list_is_shown_are_deleted_by_id_or_reported(
    reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path, *, is_deletable: bool
) -> None:
    service = reference[0]
    profile = load_profile(write_profile(*reference))
    before, owner, rule = everything_read(profile), profile.actors["owner"], {"name": "new", "approvals_required": 1}
    precautions = Precautions.of(profile, None, tmp_path, "run")
    places = (f"groups/{profile.value('group')}", f"projects/{profile.value('project')}")
    paths = [f"/{place}/approval_rules" for place in places]

    def not_listed(route: Route, _: Request, response: Response) -> Response:
        return Response(403) if route.method == "GET" and route.key.endswith("/approval_rules") else response

    if not is_deletable:
        lacking({DELETING}, NoRouteError, service)
    service.transformers.append(not_listed)
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        for path in paths:
            assert test.run.client.send(owner, "POST", path, json_body=rule).is_success
        left = precautions.put_back()
        precautions.release()
    service.transformers.remove(not_listed)
    stays = ["group-rules", *([] if is_deletable else ["project-rules"])]
    assert [text.partition(" of ")[0] for text in left] == stays
    changed = {path for path, stands in everything_read(profile).items() if stands != before[path]}
    assert changed >= {*paths[: len(stays)]}
    assert (paths[1] in changed) is not is_deletable


def test_restoring_needs_the_secrets_that_a_ledger_refers_to(profile: Profile, tmp_path: Path) -> None:
    file = begun(tmp_path / "ledger.jsonl", {"run": "run", "base_url": profile.base_url, "world": 0})
    with file.open("a", encoding="utf-8") as stream:
        state = [["", {"token": {"secret": ["", "0.gone.token", ""]}}]]
        stream.write(json.dumps({"was": "limit", "level": "project", "number": 1, "iid": None, "state": state}))
    assert Content.read(file).header["run"] == "run"
    with pytest.raises(UsageError, match=r"no longer has the secret 0\.gone\.token"):
        Content.read(file, profile.named_secrets())


@pytest.mark.parametrize("above", list(OutOfRange))
def test_entries_on_a_later_page_are_restored(
    write_profile: Callable[..., Path], tmp_path: Path, above: OutOfRange
) -> None:
    """The text does not limit the length of pages: a service may cut long pages to a few entries, or refuse them."""
    pages = Choices(max_per_page=10, default_per_page=10, per_page_above_maximum=above, pagination_headers=False)
    service = prepared_service(VERSION, pages)
    with EmbeddedServer(service) as server:
        profile = load_profile(write_profile(service, server.base_url))
        admin, path = profile.actors["admin"], f"/projects/{profile.fixtures['project'][0].id}/approval_rules"
        with in_a_test(profile) as test, Client(profile.client_settings()) as beside:
            rules = [{"name": f"Rule {number}", "approvals_required": 1} for number in range(12)]
            made = [json.loads(beside.send(admin, "POST", path, json_body=rule).body) for rule in rules]
            precautions = Precautions.of(profile, None, tmp_path, "run")
            precautions.keep_ledger(test.run, 0)
            assert list(precautions.begin([0], restores=True)) == []
            for rule in made:
                body = {"name": "changed", "approvals_required": 1}
                test.run.client.send(admin, "PUT", f"{path}/{rule['id']}", json_body=body)
            assert precautions.put_back() == ()
            precautions.release()
            stands = [json.loads(beside.send(admin, "GET", f"{path}/{rule['id']}").body)["name"] for rule in made]
    assert stands == [rule["name"] for rule in rules]


def test_a_secret_that_is_part_of_every_word_does_not_damage_a_ledger(profile: Profile, tmp_path: Path) -> None:
    fixture = profile.fixtures["integration"][0]
    settings = {**fixture.values["settings"], "password": "p", "api_key": "project"}
    values = {**fixture.values, "settings": settings}
    secretive = replace(profile, fixtures={**profile.fixtures, "integration": (replace(fixture, values=values),)})
    precautions = Precautions.of(secretive, None, tmp_path, "run")
    with in_a_test(secretive) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        admin, project = secretive.actors["admin"], secretive.fixtures["project"][0].id
        body = {"name": "a project", "approvals_required": 1}
        test.run.client.send(admin, "POST", f"/projects/{project}/approval_rules", json_body=body)
        assert precautions.put_back() == ()
        precautions.release()


def test_an_interrupted_restore_ends_at_once_and_can_be_repeated(
    slow_profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, path = slow_profile.actors["owner"], f"/projects/{slow_profile.fixtures['project'][0].id}/approval_rules"
    precautions = Precautions.of(slow_profile, None, tmp_path, "run")

    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    with in_a_test(slow_profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        test.run.client.send(owner, "POST", path, json_body={"name": "conformance-1", "approvals_required": 1})
        with monkeypatch.context() as patch:
            patch.setattr("conformance.runner.precautions.wait", interrupted)
            assert [text.partition(". ")[0] for text in precautions.put_back()] == [
                f"everything in {tmp_path / 'ledger.jsonl'}: interrupted"
            ]
        assert not Content.read(tmp_path / "ledger.jsonl").is_settled
        assert precautions.put_back() == ()
        precautions.release()
        assert b"conformance-1" not in test.run.client.send(owner, "GET", path).body


def test_a_worker_does_not_look_for_absent_operations_before_its_first_test(profile: Profile, tmp_path: Path) -> None:
    """A call that changes something needs the ledger, which the main process may begin after a worker has started."""
    looks: list[tuple[str, bool]] = []
    for who in ("alone", "worker before", "keeper", "worker"):
        with in_a_test(profile) as test:

            def look(known: Known, who: str = who) -> None:
                looks.append((who, known is None))

            know_absent(test.run, look, None if who == "alone" else tmp_path, is_worker=who.startswith("worker"))
            assert (looks[-1:] == [(who, True)]) is not who.startswith("worker")
            test.run.take(None)
            test.run.take(None)
    assert looks == [("alone", True), ("worker before", True), ("keeper", True), ("worker", False)]
