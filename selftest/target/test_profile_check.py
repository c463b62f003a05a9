"""Profiles with one wrong value each: the check names it, `--fix` corrects it, and no run blames the service for it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode, TargetError
from conformance.http.client import Client
from conformance.proof.variants import VARIANTS, Variant
from conformance.reference.identity import Role
from conformance.runner.options import Options
from conformance.runner.profiles import doubts
from conformance.target.check import as_table, check_profile
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.preflight import overstated
from conformance.target.profile import Fixture
from conformance.target.profile_file import load_profile, profile_from
from conformance.target.readings import Finding, State
from conformance.target.trials import try_writes
from selftest.conftest import VERSION, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

pytestmark = pytest.mark.usefixtures("inside_this_process")

NOBODYS = 4711
SHA = "0" * 40
#: Which value is written where, and the place that the check must name if it differs.
WRONG: tuple[tuple[str, Any, str | None], ...] = (
    ("fixtures.project.id", 7, None),
    ("fixtures.project.id", NOBODYS, None),
    ("fixtures.project.path", "world-1-group/no-such", None),
    ("fixtures.project.path", "world-1-sibling-group/project", "fixtures.project.id"),
    ("fixtures.group.id", NOBODYS, None),
    ("fixtures.group.path", "world-1-groups", None),
    ("fixtures.subgroup.id", 2, None),
    ("fixtures.subgroup_project.path", "world-1-group/linter", None),
    ("fixtures.sibling_project.id", 2, None),
    ("fixtures.fuzz_project.id", 3, None),
    ("fixtures.fuzz_group.id", NOBODYS, None),
    ("fixtures.approver_group.id", 10, None),
    ("fixtures.export_group.path", "moved", None),
    ("fixtures.public_project.id", NOBODYS, None),
    ("fixtures.allowlist_projects[1].id", 9, None),
    ("fixtures.allowlist_groups[2].name", "Nobody", None),
    ("fixtures.merge_request.iid", NOBODYS, None),
    ("fixtures.merge_request.sha", SHA, None),
    ("fixtures.merge_request.id", NOBODYS, None),
    ("fixtures.merge_request.title", "Another title", None),
    ("fixtures.second_merge_request.iid", 1, None),
    ("fixtures.second_token.token", "no-token-of-anybody", None),
    ("fixtures.second_token.token", "@developer", None),
    ("fixtures.second_token.token", "@maintainer", None),
    ("fixtures.fuzz_merge_request.sha", SHA, None),
    ("fixtures.password_merge_request.project_id", 8, None),
    ("fixtures.protected_branch.id", NOBODYS, None),
    ("fixtures.second_protected_branch.name", "trunk", None),
    ("fixtures.export_group.relation", "milestones", "fixtures.export_group.objects"),
    ("fixtures.export_group.objects", ["no such label"], None),
    ("fixtures.subgroup", "@sibling_group", None),
    ("fixtures.public_project", "@fuzz_project", None),
    ("fixtures.hidden_group", "@approver_group", None),
    ("fixtures.approver_group", "@hidden_group", None),
    ("actors.approver.id", NOBODYS, None),
    ("actors.approver.username", "nobody", None),
    ("actors.maintainer.token", "no-such-token", None),
    ("actors.developer.token", "@reporter", "actors.developer.id"),
    ("actors.outsider", "@guest", None),
    ("actors.maintainer", "@developer", None),
    ("actors.project_bot.token", "@admin", None),
    ("version", "15.9", None),
)
#: Values that are only missing: they are named, and leave something untested.
LACKING = ("fixtures.allowlist_projects", "fixtures.sibling_project.path", "actors.approver.id")


@pytest.fixture(scope="module")
def right() -> Iterator[dict[str, Any]]:
    """The correct profile of a served reference, as plain data."""
    with serving(prepared_service(version=VERSION)) as (service, base_url):
        yield profile_data(service.world, base_url, VERSION)


def changed(data: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """Return the profile with one value changed; `@name` means the value that the actor of that name has there."""
    made = copy.deepcopy(data)
    *steps, last = [
        int(step) if step.isdigit() else step for step in place.replace("[", ".").replace("]", "").split(".")
    ]
    entry: Any = made
    for step in steps:
        entry = entry[step]
    if isinstance(value, str) and value.startswith("@"):
        other = made["actors" if last == "token" else str(steps[0])][value[1:]]
        value = other if last != "token" else other["token"]
    entry[last] = value
    return made


def found(data: dict[str, Any]) -> dict[str, State]:
    profile = profile_from(data, "the profile")
    with Client(profile.client_settings()) as client:
        return {finding.place: finding.state for finding in check_profile(profile, client)}


def test_a_correct_profile_has_no_findings(right: dict[str, Any]) -> None:
    assert found(right) == {}


def test_what_only_its_own_members_see_is_read_as_one_of_them(right: dict[str, Any]) -> None:
    unseen = copy.deepcopy(right)
    del unseen["actors"]["admin"]  # whoever else is asked otherwise has no role in it
    assert not {place for place in found(unseen) if place.startswith("fixtures.outsider_group")}


def test_a_token_given_twice_is_wrong_itself_so_that_nothing_is_written_to_fit_it(right: dict[str, Any]) -> None:
    profile = profile_from(changed(right, "actors.developer.token", "@reporter"), "the profile")
    with Client(profile.client_settings()) as client:
        told = {finding.place: finding.write for finding in check_profile(profile, client)}
    assert {"actors.developer.id", "actors.developer.username"} <= told.keys()
    assert told["actors.developer.id"] is None


def test_an_archived_project_is_named_because_nothing_in_it_can_be_changed() -> None:
    service = prepared_service(version=VERSION)
    number = profile_data(service.world, "http://127.0.0.1", VERSION)["fixtures"]["project"]["id"]

    def archived(route: Route, _: Request, response: Response) -> Response:
        shown = response.content
        if route.key == "GET /projects/:id" and isinstance(shown, dict) and shown.get("id") == number:
            shown["archived"] = True
        return response

    service.transformers.append(archived)
    with serving(service) as (_, base_url):
        assert found(profile_data(service.world, base_url, VERSION)) == {"fixtures.project.id": State.CONTRADICTED}


def test_approver_groups_that_the_maintainer_cannot_see_are_named_whatever_they_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not every service that stores a visibility applies it. Otherwise, valid rules would seem to be refused."""
    service = prepared_service(version=VERSION)
    identities = service.identities
    monkeypatch.setattr(identities, "can_see", lambda user, group: identities.role_in(user, group) > Role.NONE)
    with serving(service) as (_, base_url):
        said = found(profile_data(service.world, base_url, VERSION))
    assert said["fixtures.approver_group"] is State.CONTRADICTED


@pytest.mark.parametrize(("status", "body"), [(200, b'{"id": '), (200, b""), (401, b"{}")], ids=["cut", "empty", "401"])
def test_one_lost_response_contradicts_nothing(
    right: dict[str, Any], status: int, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever response it is: each call of the check is lost once, in a check of its own."""
    send, spoiled = Client.send, set[str]()

    def spoiling(client: Client, actor: Any, method: str, path: str, **others: Any) -> Any:
        exchange = send(client, actor, method, path, **others)
        name = f"{getattr(actor, 'name', '')} {path} {others.get('query')}"
        if len(spoiled) < looks and name not in spoiled:
            spoiled.add(name)
            return replace(exchange, status=status, body=body)
        return exchange

    monkeypatch.setattr(Client, "send", spoiling)
    looks = 1
    while len(spoiled) == looks - 1:
        said = found(right)
        assert State.CONTRADICTED not in said.values(), (looks, said)
        looks += 1
    assert len(spoiled) > 15


@pytest.mark.parametrize(("place", "value", "named"), WRONG, ids=str)
def test_a_wrong_value_is_named_and_no_run_starts_with_it(
    right: dict[str, Any], place: str, value: Any, named: str | None
) -> None:
    data = changed(right, place, value)
    said = found(data)
    assert any(where.startswith(named or place) and state is State.CONTRADICTED for where, state in said.items()), said
    profile = profile_from(data, "the profile")
    with Client(profile.client_settings()) as client:
        with pytest.raises(TargetError) as raised:
            doubts(profile, client, Options())
        assert (named or place) in str(raised.value)
        assert raised.value.exit_code is ExitCode.COULD_NOT_RUN
        assert doubts(profile, client, Options(force=True))


@pytest.mark.parametrize("others", [404, 401])
def test_a_refused_token_is_named_if_others_are_only_told_that_nothing_is_there(
    right: dict[str, Any], others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half built service has no GET /user. If everybody gets 401 for it, nothing is said about a token."""
    send = Client.send

    def unfinished(client: Client, actor: Any, method: str, path: str, **more: Any) -> Any:
        exchange = send(client, actor, method, path, **more)
        return replace(exchange, status=others, body=b"{}") if path == "/user" and exchange.is_success else exchange

    monkeypatch.setattr(Client, "send", unfinished)
    said = found(changed(right, "actors.developer.token", "mistyped-token"))
    refused = [place for place, state in said.items() if state is State.CONTRADICTED]
    assert refused == (["actors.developer.token"] if others == 404 else [])


def test_an_administrator_without_the_rights_of_one_is_named(right: dict[str, Any]) -> None:
    """Otherwise, the service would seem to refuse administrators what they may do."""
    actors = {name: actor for name, actor in right["actors"].items() if name != "outsider"}
    said = found({**right, "actors": {**actors, "admin": right["actors"]["outsider"]}})
    assert said == {"actors.admin.token": State.CONTRADICTED}


def test_a_missing_value_is_named_and_keeps_no_run_from_starting(right: dict[str, Any]) -> None:
    data = copy.deepcopy(right)
    data["fixtures"]["allowlist_projects"] = data["fixtures"]["allowlist_projects"][:2]
    del data["fixtures"]["sibling_project"]["path"]
    del data["actors"]["approver"]["id"]
    assert found(data) == dict.fromkeys(LACKING, State.MISSING)


def test_a_deleted_fixture_is_named_and_keeps_no_run_from_starting(right: dict[str, Any]) -> None:
    """Nobody is shown it, an administrator included, who is shown others."""
    data = copy.deepcopy(right)
    data["fixtures"]["sibling_project"] = {"id": NOBODYS, "path": "world-1-sibling-group/deleted"}
    profile = profile_from(data, "the profile")
    with Client(profile.client_settings()) as client:
        (finding,) = doubts(profile, client, Options())
    assert (finding.place, finding.state) == ("fixtures.sibling_project", State.GONE)
    assert "run provision again" in finding.detail


@pytest.mark.parametrize("name", ["project", "group"])
def test_the_first_project_and_group_must_be_there_or_no_run_starts(right: dict[str, Any], name: str) -> None:
    """What fails would be the profile's fault: each call to them would be answered with 404."""
    data = copy.deepcopy(right)
    data["fixtures"][name] = {"id": NOBODYS, "path": "deleted/deleted"}
    profile = profile_from(data, "the profile")
    with Client(profile.client_settings()) as client, pytest.raises(TargetError, match=rf"fixtures\.{name} "):
        doubts(profile, client, Options())


#: Values that only a write can check: `target --check` names them, and they keep no run from starting.
TRIED: tuple[tuple[str, Any, str, State], ...] = (
    ("fixtures.integrations[0].slug", "no-such-integration", "", State.CONTRADICTED),
    ("fixtures.integrations[1].settings", {"conformance": [1]}, "", State.CONTRADICTED),
    ("fixtures.integrations[2].distinctive_name", "no_such_text", "", State.NOTE),
    ("fixtures.integrations[2].events", ["no_such_events"], "", State.NOTE),
    ("fixtures.token_integration.slug", "no-such-integration", "", State.CONTRADICTED),
    ("fixtures.enabled_project", "@disabled_project", "fixtures.enabled_project.path", State.NOTE),
    ("fixtures.oauth_token_endpoint.url", "http://127.0.0.1:9/oauth", "", State.CONTRADICTED),
)


@pytest.mark.parametrize(("place", "value", "named", "state"), TRIED, ids=str)
def test_values_that_only_a_write_can_check_are_written_and_restored(
    right: dict[str, Any], place: str, value: Any, named: str, state: State
) -> None:
    profile = profile_from(changed(right, place, value), "the profile")
    with Client(profile.client_settings()) as client:
        path = f"/projects/{profile.fixtures['fuzz_project'][0].id}/integrations"
        before = client.send(profile.actors["maintainer"], "GET", path).body
        said = {finding.place: finding.state for finding in try_writes(profile, client)}
        assert doubts(profile, client, Options()) == ()
        assert client.send(profile.actors["maintainer"], "GET", path).body == before
    assert said == {named or place: state}


def test_if_nothing_may_be_written_the_check_only_reads_and_says_so(
    right: dict[str, Any], conformance: Callable[..., Any], tmp_path: Path
) -> None:
    data = changed(right, "fixtures.integrations[0].slug", "no-such-integration")
    data["features"] = {**data["features"], "integration_webhooks": True}
    for disposable, code in ((False, 0), (True, ExitCode.COULD_NOT_RUN)):
        (tmp_path / "target.yaml").write_text(json.dumps({**data, "disposable": disposable}), encoding="utf-8")
        checked = conformance("target", "--check", "target.yaml")
        assert checked.code == code, checked.text
        assert ("nothing was tried by writing" in checked.out) is not disposable
        assert ("fixtures.integrations[0].slug  contradicted" in checked.out) is disposable
        unknown = checked.out.partition("Not verified; look at them yourself: ")[2]
        assert ("token_integration" in unknown) is not disposable
        assert ("integration_webhooks" in unknown) is not disposable, "an integration of the profile has it"
        assert "installed_chat_app_integration" in unknown


def test_the_table_shows_notes_about_many_places_once_and_each_place_to_change() -> None:
    findings = [Finding(f"fixtures.{name}", State.NOTE, "not readable") for name in ("project", "group", "subgroup")]
    findings += [Finding(f"actors.{name}", State.MISSING, "no id") for name in ("owner", "maintainer")]
    lines = as_table([*findings, Finding("actors.guest", State.MISSING, "no id", 7)]).splitlines()[1:]
    assert [" ".join(line.split()) for line in sorted(lines)] == [
        "actors.guest missing no id; write 7",
        "actors.maintainer missing no id",
        "actors.owner missing no id",
        "fixtures.project and 2 more note not readable",
    ]


def test_declared_features_that_a_target_does_not_have_are_named(right: dict[str, Any]) -> None:
    profile = profile_from({**right, "edition": "community"}, "the profile")
    lacking = replace(profile, fixtures={**profile.fixtures, "group": (Fixture("group", {"id": NOBODYS}),)})
    with Client(profile.client_settings()) as client:
        assert overstated(profile_from(right, "the profile"), client) == ()
        said = " ".join(overstated(lacking, client))
    assert "declares group_approval_rules" in said
    assert "shows the enterprise edition" in said


@pytest.mark.parametrize(
    ("place", "value", "word"),
    [
        ("fixtures.project.id", "one", "at fixtures.project.id: a text stands here, and a whole number is needed"),
        ("fixtures.project", {"path": "a/b"}, "at fixtures.project: 'id' is a required property"),
        (
            "fixtures.integrations[0].settings",
            [],
            "at fixtures.integrations.0.settings: a list stands here, and a mapping",
        ),
        (
            "fixtures.integrations[0].slug",
            3,
            "integrations.0.slug: a number stands here, and a text is needed: write it in quotes",
        ),
        (
            "fixtures.merge_request.target_sha",
            7,
            "at fixtures.merge_request.target_sha: a number stands here, and a text is needed",
        ),
        ("fixtures.installed_chat_app_integration", {"slug": "x", "settings": {}}, "'project_id' is a required"),
    ],
    ids=str,
)
def test_a_value_of_another_type_makes_the_profile_invalid(
    right: dict[str, Any],
    conformance: Callable[..., Any],
    tmp_path: Path,
    place: str,
    value: Any,
    word: str,
) -> None:
    (tmp_path / "target.yaml").write_text(json.dumps(changed(right, place, value)), encoding="utf-8")
    for command in (("target", "--check", "target.yaml"), ("run", "--target", "target.yaml")):
        outcome = conformance(*command)
        assert outcome.code == ExitCode.USAGE
        assert word in outcome.text


def test_fix_writes_what_the_check_found_and_keeps_the_comments(
    right: dict[str, Any], conformance: Callable[..., Any], tmp_path: Path
) -> None:
    data = changed(changed(right, "fixtures.merge_request.sha", SHA), "actors.approver.id", NOBODYS)
    file = tmp_path / "target.yaml"
    file.write_text("# by hand\n" + json.dumps(data), encoding="utf-8")
    outcome = conformance("run", "-q", "--target", "target.yaml", "--out", "out", "--area", "approval-settings")
    assert outcome.code == ExitCode.COULD_NOT_RUN
    assert "fixtures.merge_request.sha" in outcome.text
    checked = conformance("target", "--check", "target.yaml", "--format", "json")
    assert checked.code == ExitCode.COULD_NOT_RUN
    places = {finding["place"] for finding in json.loads(checked.out)["findings"]}
    assert places == {"fixtures.merge_request.sha", "actors.approver.id"}
    assert conformance("target", "--check", "target.yaml", "--fix").code == 0
    assert file.read_text(encoding="utf-8").startswith("# by hand\n")
    assert load_profile(file).redacted() == profile_from(right, "the profile").redacted()


def test_fix_does_not_touch_a_profile_without_findings(
    right: dict[str, Any], conformance: Callable[..., Any], tmp_path: Path
) -> None:
    text = "# by hand\n" + json.dumps(right, indent=7)
    (tmp_path / "target.yaml").write_text(text, encoding="utf-8")
    outcome = conformance("target", "--check", "target.yaml", "--fix")
    assert (outcome.code, "There was nothing to fix in target.yaml" in outcome.out) == (0, True), outcome.text
    assert (tmp_path / "target.yaml").read_text(encoding="utf-8") == text


def test_a_forced_run_says_so_first(right: dict[str, Any], conformance: Callable[..., Any], tmp_path: Path) -> None:
    wrong = changed(right, "fixtures.merge_request.sha", SHA)
    (tmp_path / "target.yaml").write_text(json.dumps(wrong), encoding="utf-8")
    options = ("--out", "out", "--requirement", "job-token-scope.settings.read", "--force")
    outcome = conformance("run", "-q", "--target", "target.yaml", *options)
    assert outcome.code == 0, outcome.text
    assert "forced: the target contradicts the profile: fixtures.merge_request.sha" in outcome.out


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_no_profile_of_a_legal_service_is_contradicted(variant: Variant) -> None:
    service = prepared_service(version=VERSION, choices=variant.choices)
    for alter in variant.alterations:
        alter(service)
    with serving(service) as (_, base_url):
        said = found(profile_data(service.world, base_url, VERSION))
    assert State.CONTRADICTED not in said.values(), said


@pytest.mark.parametrize(
    ("url", "name"), [("http://jo:pw@x.example:8080", "x.example-8080"), ("http://[::1]:80", "1-80")]
)
def test_the_name_of_a_target_is_only_its_host(url: str, name: str) -> None:
    assert profile_from({"base_url": url, "actors": {}, "fixtures": {}}, "test").title == name
