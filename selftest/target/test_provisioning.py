"""Worlds are created on services with different behaviour, completed after an interruption, and removed again."""

from __future__ import annotations

import json
import stat
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.errors import TargetError
from conformance.proof.variants import VARIANTS, Variant
from conformance.proof.variants.integrations import shows_settings_as_pairs, shows_settings_as_texts
from conformance.reference import Service, create_service
from conformance.reference.errors import NoRouteError
from conformance.target.embedded import prepared_service
from conformance.target.profile import load_profile
from conformance.target.provisioning import Provisioned, provision
from conformance.target.provisioning.accounts import UsersRefusedError
from conformance.target.provisioning.blueprint import Blueprint
from conformance.target.provisioning.calls import Answer, Body, NotOursError, Way
from conformance.target.provisioning.discover import Discovery
from conformance.target.provisioning.files import Secrets, secrets_beside
from conformance.target.provisioning.profiles import by_hand
from conformance.target.readings import flat
from selftest.conftest import VERSION, lacking, serving
from selftest.target.bench import Bench
from selftest.target.services import SERVICES, StoppedError, changed, only_as_open_as, refused, stopping_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from selftest.conftest import Outcome


def offered(data: dict[str, Any]) -> set[str]:
    """Return what the integrations of a profile accept."""
    return {name for each in data["fixtures"]["integrations"] for name in (*each["parameters"], *each["events"])}


@pytest.fixture(scope="module")
def whole() -> tuple[Bench, Provisioned]:
    """A reference that was provisioned once, without an interruption."""
    bench = Bench()
    return bench, bench.provision()


def test_everything_that_calls_can_create_is_in_the_profile(whole: tuple[Bench, Provisioned]) -> None:
    bench, done = whole
    data = bench.profile(done)
    assert done.refused == {}
    assert {*Blueprint.load().users, "project_bot", "group_bot"} == data["actors"].keys()
    left = {name for each in by_hand(data) for name in each.fixtures}
    assert left == {
        "policy_project",
        "policy_group",
        "report_approver_merge_request",
        "installed_chat_app_integration",
        "job_token",
    }
    assert {"webhook", "push_channel", "push_events", "active", "recipients", "password"} <= offered(data)


def test_the_developer_has_a_second_token_unless_the_service_forbids_it() -> None:
    def one_only(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if (method, path) in issued:
            return refused(400, "a user has one token at most")
        answer = way(token, method, path, query, body)
        if path.endswith("/personal_access_tokens") and answer.is_served and method == "POST":
            issued.add((method, path))
        return answer

    issued: set[tuple[str, str]] = set()
    bench = Bench()
    world = bench.provision().worlds[0]
    developer = world.people["developer"]
    assert world.second_token not in {"", developer.token}
    assert bench.calls.get(world.second_token, "/user").entry["id"] == developer.id
    other = Bench(alter=changed(one_only)).provision()
    assert (other.worlds[0].second_token, other.refused) == ("", {})


def test_provisioning_again_creates_nothing_twice() -> None:
    bench = Bench()
    first = bench.profile(bench.provision())
    before = bench.counts()
    assert bench.profile(bench.provision()) == first
    assert bench.counts() == before


@pytest.mark.parametrize("calls", [3, 15, 40, 60, 150, 230, 260, 300, 330])
def test_an_interrupted_preparation_is_completed(whole: tuple[Bench, Provisioned], calls: int) -> None:
    bench = Bench(alter=stopping_after(calls))
    with pytest.raises(StoppedError):
        bench.provision()
    done = replace_alteration(bench).provision()
    assert done.refused == {}
    assert bench.counts() == whole[0].counts()


def replace_alteration(bench: Bench) -> Bench:
    bench.alter = lambda way: way
    return bench


def test_after_lost_secrets_there_are_new_tokens_and_the_old_ones_are_revoked(whole: tuple[Bench, Provisioned]) -> None:
    bench = Bench()
    lost = bench.provision().worlds[0].people["developer"].token
    found = replace(bench, secrets=Secrets()).provision().worlds[0].people["developer"].token
    assert bench.calls.get(lost, "/user").status == 401
    assert bench.calls.get(found, "/user").is_served
    assert bench.counts()["members"] == whole[0].counts()["members"]


def test_a_name_that_belongs_to_somebody_else_is_not_used() -> None:
    bench = Bench()
    body = {"name": "Ann", "username": "Conformance-1-Owner", "email": "ann@example.com", "password": "long enough"}
    bench.calls.send(bench.administrator, "POST", "/users", body)
    with pytest.raises(NotOursError, match="--prefix"):
        bench.provision()


# -- services with different behaviour ---------------------------------------------------------------------------------


WITHOUT_PUBLIC_PROJECTS = ("nothing may be public", "nothing may be more than private")


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_of_the_table_can_be_provisioned(whole: tuple[Bench, Provisioned], service: str) -> None:
    bench = Bench(alter=changed(SERVICES[service]()))
    done = bench.provision()
    assert done.refused == {}
    wanted, found = whole[0].profile(whole[1]), bench.profile(done)
    assert found["actors"].keys() == wanted["actors"].keys()
    is_never_public = service in WITHOUT_PUBLIC_PROJECTS
    lacking = {"public_project"} if is_never_public else set()
    assert found["fixtures"].keys() == wanted["fixtures"].keys() - lacking
    assert found["features"].get("public_project", True) is not is_never_public
    assert offered(found) == offered(wanted)
    before = bench.counts()
    assert bench.profile(bench.provision()) == found
    assert bench.counts() == before


def test_private_approver_groups_are_visible_to_those_who_name_them_in_rules() -> None:
    bench = Bench(alter=changed(only_as_open_as("private")))
    world = bench.provision().worlds[0]
    for name in ("approver_group", "second_approver_group"):
        for actor, is_seen in (("maintainer", True), ("outsider", False)):
            answer = bench.calls.get(world.people[actor].token, f"/groups/{world.groups[name]['id']}")
            assert answer.is_served is is_seen, (name, actor)


@pytest.mark.parametrize("shows", [shows_settings_as_pairs, shows_settings_as_texts])
def test_settings_are_found_in_every_format(
    whole: tuple[Bench, Provisioned],
    shows: Callable[[Service], None],
) -> None:
    bench = Bench()
    shows(bench.service)
    assert offered(bench.profile(bench.provision())) == offered(whole[0].profile(whole[1]))


@pytest.mark.parametrize(
    ("shown", "values"),
    [
        ({"active": True, "properties": {"token": "a"}}, {"active": True, "token": "a"}),
        ({"settings": [{"key": "url", "value": "a"}, {"key": "port", "value": 1}]}, {"url": "a", "port": 1}),
        # Settings may repeat whatever was sent, also what the integration does not take.
        ({"active": True, "settings": [{"key": "active", "value": False}]}, {"active": True}),
    ],
)
def test_what_a_record_says_itself_counts_more_than_what_stands_in_it(
    shown: dict[str, Any], values: dict[str, Any]
) -> None:
    assert flat(shown).items() >= values.items()


def test_approvers_have_pushed_nothing(whole: tuple[Bench, Provisioned]) -> None:
    bench, done = whole
    world = done.worlds[0]
    opened = world.merge_requests["merge_request"]
    path = f"/projects/{opened['project_id']}/merge_requests/{opened['iid']}/approve"
    answer = bench.calls.send(world.people["approver"].token, "POST", path, {"sha": opened["sha"]})
    assert answer.is_served, str(answer)


def test_if_no_users_can_be_created_nothing_else_is_tried() -> None:
    bench = Bench()

    def no_users(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        return refused(403) if (method, path) == ("POST", "/users") else way(token, method, path, query, body)

    bench.alter = changed(no_users)
    before = bench.counts()
    with pytest.raises(UsersRefusedError, match="403"):
        bench.provision()
    assert bench.counts() == before


def test_a_taken_name_that_nothing_shows_is_not_waited_for_long() -> None:
    sent: list[Body | None] = []

    def taken(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if (method, path) != ("POST", "/users"):
            return way(token, method, path, query, body)
        sent.append(body)
        return refused(409, "has already been taken")

    bench = Bench(alter=changed(taken), patience=30)
    with pytest.raises(UsersRefusedError, match=r"already been taken.*nothing is shown that has this name"):
        bench.provision()
    assert 2 < len(sent) < 20  # it is tried again, but not for half a minute


@pytest.mark.parametrize("place", ["/members", "/repository/branches", "/merge_requests"])
def test_calls_that_a_service_does_not_have_are_waited_for_once(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.append(now.pop() + seconds))

    def absent(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_meant = method == "POST" and path.endswith(place)
        return refused(404, "404 Not Found") if is_meant else way(token, method, path, query, body)

    done = Bench(alter=changed(absent), patience=20).provision()
    assert any("404 Not Found" in reason for reason in done.refused.values())
    assert 15 < now[0] < 45  # a call of a kind, and of its like in projects and groups


def test_what_a_service_refuses_is_named_and_everything_else_is_created(whole: tuple[Bench, Provisioned]) -> None:
    def nothing_protected(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_meant = method == "POST" and path.endswith("/protected_branches")
        return refused(403, "no licence") if is_meant else way(token, method, path, query, body)

    bench = Bench(alter=changed(nothing_protected))
    done = bench.provision()
    assert "no licence" in done.refused["project branch"]
    missing = whole[0].profile(whole[1])["fixtures"].keys() - bench.profile(done)["fixtures"].keys()
    assert missing == {"protected_branch", "second_protected_branch", "branch_rule_group"}


def test_features_are_not_denied_if_the_places_that_would_show_them_were_refused() -> None:
    def no_projects(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_meant = method == "POST" and path == "/projects"
        return refused(403, "no licence") if is_meant else way(token, method, path, query, body)

    done = Bench(alter=changed(no_projects)).provision()
    looked_at_in_projects = {"approval_configuration", "chat_integration", "token_integration", "group_mention_events"}
    assert not looked_at_in_projects & done.features.keys()
    assert done.features["group_approval_rules"] is True


def test_integrations_that_get_no_answer_are_not_missing_and_not_all_tried() -> None:
    tried: set[str] = set()

    def silent(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if method != "PUT" or "/integrations/" not in path:
            return way(token, method, path, query, body)
        tried.add(path)
        return Answer(None, problem="no answer within 30 s")

    done = Bench(alter=changed(silent)).provision()
    assert done.integrations == {}
    assert "chat_integration" not in done.features
    assert all("got no answer" in why for why in done.unclear.values())
    assert len(tried) == 3


def test_without_labels_and_milestones_a_relation_with_objects_is_found_by_an_export() -> None:
    def nothing_planned(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        return refused(404) if path.endswith(("/labels", "/milestones")) else way(token, method, path, query, body)

    bench = Bench(alter=changed(nothing_planned))
    exported = bench.profile(bench.provision())["fixtures"]["export_group"]
    assert exported["relation"] not in {"labels", "milestones"}
    assert "objects" not in exported


def test_a_merge_request_that_was_renamed_has_its_last_title_in_the_profile(whole: tuple[Bench, Provisioned]) -> None:
    fixtures = whole[0].profile(whole[1])["fixtures"]
    assert fixtures["second_merge_request"]["title"].endswith("second merge request, R&D")

    def never_renamed(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_meant = method == "PUT" and "/merge_requests/" in path
        return refused(403) if is_meant else way(token, method, path, query, body)

    bench = Bench(alter=changed(never_renamed))
    assert bench.profile(bench.provision())["fixtures"]["second_merge_request"]["title"].endswith("(at first)")


def test_an_administrator_without_rights_is_not_in_the_profile(whole: tuple[Bench, Provisioned]) -> None:
    def no_administrators(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        asked = {name: value for name, value in (body or {}).items() if name != "admin"}
        return way(token, method, path, query, asked if path.startswith("/users") and body else body)

    bench = Bench(alter=changed(no_administrators))
    done = bench.provision()
    assert "shows is_admin = false" in done.refused["admin"]
    assert whole[0].profile(whole[1])["actors"].keys() - bench.profile(done)["actors"].keys() == {"admin"}


def test_without_subgroups_groups_are_created_at_the_top_level_where_possible(whole: tuple[Bench, Provisioned]) -> None:
    def not_nested(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_nested = (method, path) == ("POST", "/groups") and "parent_id" in (body or {})
        return refused(403, "no groups in groups") if is_nested else way(token, method, path, query, body)

    bench = Bench(alter=changed(not_nested))
    found, wanted = bench.profile(bench.provision())["fixtures"], whole[0].profile(whole[1])["fixtures"]
    inside = {"subgroup", "nested_subgroup", "inner_group", "inner_export_group"}
    assert wanted.keys() - found.keys() == {*inside, "subgroup_project", "nested_merge_request", "inner_project"}
    assert "/" not in found["second_approver_group"]["path"]
    assert len(found["allowlist_groups"]) == len(wanted["allowlist_groups"])


@pytest.mark.parametrize("version", ["12.3", "15.0", "16.0", "17.0"])
def test_what_no_call_of_a_version_creates_is_not_reported_as_refused(version: str) -> None:
    bench = Bench(service=create_service(version=version))
    done = bench.provision()
    data = bench.profile(done)
    assert done.refused == {}
    assert "branch_rule_group" in data["fixtures"]
    has_call = version.startswith(("12", "15"))
    assert ("password_merge_request" in data["fixtures"]) is has_call
    assert any("password_merge_request" in each.fixtures for each in by_hand(data)) is not has_call


_LEGAL = [(VERSION, variant) for variant in VARIANTS] + [(version, VARIANTS[0]) for version in ("12.3", "16.1", "19.0")]


@pytest.mark.parametrize(("version", "variant"), _LEGAL, ids=lambda value: getattr(value, "name", value))
def test_every_legal_reference_is_provisioned_alike(version: str, variant: Variant) -> None:
    service, usual = prepared_service(version, variant.choices), prepared_service()
    assert service.world.fixtures.keys() == usual.world.fixtures.keys()
    assert service.world.actors.keys() == usual.world.actors.keys()


def test_a_token_without_administrator_rights_gets_a_message_about_other_ways() -> None:
    bench = Bench()
    person = bench.provision().worlds[0].people["owner"]
    order = replace(bench.order(), administrator=person.token)
    with pytest.raises(TargetError, match=r"--discover.*--with"):
        provision(order, bench.calls, bench.secrets)


# -- the commands ------------------------------------------------------------------------------------------------------


def test_what_a_service_refuses_alike_is_told_in_one_line_with_other_ways_to_a_profile(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> None:
    service = lacking({"POST /groups"}, NoRouteError, prepared_service(version=VERSION))
    with serving(service) as (_, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token)
        where = ("--base-url", base_url, "--admin-token-file", "admin.token", "--prefix", "half-built")
        made = conformance("provision", *where)
    refused, waiting = (line for line in made.out.splitlines() if "POST /groups" in line or "they need what" in line)
    assert "sibling_group, " in refused
    assert "sibling_project, " in waiting
    assert "conformance target --discover" in made.out


def test_the_command_writes_a_profile_without_secrets(conformance: Callable[..., Outcome], tmp_path: Path) -> None:
    with serving() as (service, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token + "\n")
        where = ("--base-url", base_url, "--admin-token-file", "admin.token")
        made = conformance("provision", *where, "--worlds", "2", "--out", "mine.yaml")
        assert made.code == 0, made.text
        assert "installed_chat_app_integration" in made.out
        profile = load_profile(tmp_path / "mine.yaml")
        assert len(profile.worlds) == 1
        secrets = tmp_path / "mine.secrets.env"
        assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
        text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
        data = yaml.safe_load(text)
        assert data["secrets"] == "mine.secrets.env"
        for line in secrets.read_text(encoding="utf-8").splitlines():
            assert line.partition("=")[2] not in text
        checked = conformance("target", "--check", "mine.yaml")
        assert checked.code == 0, checked.text
        by_hand = {"fixtures": {**data["fixtures"], "job_token": {"token": "${JOB_TOKEN}"}}, "version": "17.7"}
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**data, **by_hand}), encoding="utf-8")
        assert conformance("provision", *where, "--worlds", "2", "--out", "mine.yaml").code == 0
        assert yaml.safe_load((tmp_path / "mine.yaml").read_text(encoding="utf-8")) == {**data, **by_hand}
        listed = (tmp_path / "made.jsonl").read_text(encoding="utf-8").splitlines()
        assert {json.loads(line)["target"] for line in listed} == {base_url}
        swept = conformance("sweep", *where)
        assert swept.code == 0, swept.text
        assert " 0 left" in swept.out


@pytest.mark.parametrize(
    ("profile", "secrets"),
    [
        ("target.yaml", "target.secrets.env"),
        ("a/staging.yml", "a/staging.secrets.env"),
        ("staging.eu", "staging.eu.secrets.env"),
    ],
)
def test_each_profile_has_its_own_secrets(profile: str, secrets: str) -> None:
    assert secrets_beside(Path(profile)) == Path(secrets)


@pytest.mark.parametrize(
    ("content", "code", "says"), [("", 4, "a token and nothing else"), ("wrong\n", 8, "administrator's token")]
)
def test_a_wrong_token_file_gives_one_message(
    conformance: Callable[..., Outcome],
    reference: tuple[Service, str],
    tmp_path: Path,
    content: str,
    code: int,
    says: str,
) -> None:
    (tmp_path / "admin.token").write_text(content)
    outcome = conformance("provision", "--base-url", reference[1], "--admin-token-file", "admin.token")
    assert (outcome.code, says in outcome.err) == (code, True), outcome.text
    assert [file.name for file in tmp_path.iterdir()] == ["admin.token"]


def test_a_service_without_a_call_for_the_current_user_does_not_refuse_the_token(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "admin.token").write_text("anything\n")
    with serving(lacking({"GET /user"}, NoRouteError, prepared_service(version=VERSION))) as (_, base_url):
        outcome = conformance("provision", "--base-url", base_url, "--admin-token-file", "admin.token")
    assert (outcome.code, "does not have the calls" in outcome.err) == (8, True), outcome.text


def test_a_profile_with_only_tokens_is_filled_with_what_they_can_read(
    conformance: Callable[..., Outcome], whole: tuple[Bench, Provisioned], tmp_path: Path
) -> None:
    bench, done = whole
    with serving(bench.service) as (_, base_url):
        world = done.worlds[0]
        tokens = {name: {"token": person.token} for name, person in world.people.items() if name != "foreign_bot"}
        bare = {"base_url": base_url, "actors": tokens}
        (tmp_path / "bare.yaml").write_text(yaml.safe_dump(bare))
        assert "say `disposable: true`" in conformance("target", "--discover", "bare.yaml").err
        (tmp_path / "bare.yaml").write_text(yaml.safe_dump({**bare, "disposable": True}))
        filled = conformance("target", "--discover", "bare.yaml")
        assert filled.code == 0, filled.text
        data = yaml.safe_load(filled.out)
        assert not any(each.active for each in bench.service.integrations.known.values())  # tried, and disabled again
        assert data["fixtures"]["integrations"] == bench.profile(done)["fixtures"]["integrations"]
        assert {"enabled_project", "disabled_project", "oauth_token_endpoint"} <= data["fixtures"].keys()
        assert {"code_owner_merge_request", "password_merge_request", "branch_rule_group"} <= data["fixtures"].keys()
        assert (data["version"], data["edition"]) == ("auto", "enterprise")
        assert data["features"].items() <= bench.profile(done)["features"].items()
        wanted = bench.profile(done)["fixtures"]
        for name in ("group", "project", "subgroup", "subgroup_project", "public_project"):
            assert (name, data["fixtures"][name]["id"]) == (name, wanted[name]["id"])
        assert {"merge_request", "second_merge_request", "reset_merge_request"} <= data["fixtures"].keys()
        assert {"sibling_project", "fuzz_project", "allowlist_projects", "allowlist_groups"} <= data["fixtures"].keys()
        assert {"hidden_group", "approver_group", "protected_branch", "export_group"} <= data["fixtures"].keys()
        assert data["actors"]["author"]["id"] == world.people["author"].id
        perhaps = {"untouched_merge_request", "fresh_project", "fresh_group"}
        assert {name for name in perhaps if f"#   {name}:" in filled.out} == perhaps
        assert not perhaps & data["fixtures"].keys()
        (tmp_path / "filled.yaml").write_text(filled.out, encoding="utf-8")
        checked = conformance("target", "--check", "filled.yaml")
        assert checked.code == 0, checked.text


def test_secrets_in_a_profile_are_moved_to_the_file_that_it_names(
    conformance: Callable[..., Outcome], whole: tuple[Bench, Provisioned], tmp_path: Path
) -> None:
    bench, done = whole
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "start.env").write_text("# ours\n", encoding="utf-8")
    token = done.worlds[0].people["maintainer"].token
    with serving(bench.service) as (_, base_url):
        bare = {"base_url": base_url, "actors": {"maintainer": {"token": token}}, "secrets": "keys/start.env"}
        (tmp_path / "bare.yaml").write_text(yaml.safe_dump(bare), encoding="utf-8")
        filled = conformance("target", "--discover", "bare.yaml")
    assert filled.code == 0, filled.text
    assert token in (tmp_path / "keys" / "start.env").read_text(encoding="utf-8")
    assert token not in filled.out


def test_groups_are_found_if_only_direct_members_are_listed(whole: tuple[Bench, Provisioned]) -> None:
    def without_inherited(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        return refused(404) if path.endswith("/members/all") else way(token, method, path, query, body)

    bench, done = whole
    world = done.worlds[0]
    tokens = {name: person.token for name, person in world.people.items() if name != "foreign_bot"}
    data: dict[str, Any] = {"actors": {name: {} for name in tokens}, "fixtures": {}}
    Discovery(replace(bench, alter=changed(without_inherited)).calls, tokens, data).fill()
    assert data["fixtures"]["group"]["id"] == world.groups["group"]["id"]


def test_a_partial_entry_is_completed_and_others_stay(whole: tuple[Bench, Provisioned]) -> None:
    bench, done = whole
    people, opened = done.worlds[0].people, done.worlds[0].merge_requests["second_merge_request"]
    path = done.worlds[0].projects["project"]["path_with_namespace"]
    tokens = {"maintainer": people["maintainer"].token}
    fixtures = {"project": {"path": path}, "merge_request": {"iid": opened["iid"]}}
    data: dict[str, Any] = {"actors": {"maintainer": {"username": "mine"}}, "fixtures": fixtures}
    Discovery(bench.calls, tokens, data).fill()
    assert data["actors"]["maintainer"] == {"username": "mine", "id": people["maintainer"].id}
    assert data["fixtures"]["project"]["id"] == opened["project_id"]
    assert data["fixtures"]["merge_request"]["sha"] == opened["sha"]
