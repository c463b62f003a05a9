"""Worlds are created on services with different behaviour, completed after an interruption, and removed again."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import TargetError
from conformance.proof.variants import VARIANTS, Variant
from conformance.proof.variants.integrations import (
    shows_settings_as_objects,
    shows_settings_as_pairs,
    shows_settings_as_texts,
)
from conformance.reference import Service, create_service
from conformance.reference.identity import Role
from conformance.target.embedded import prepared_service
from conformance.target.provisioning import Provisioned, provision
from conformance.target.provisioning.accounts import UsersRefusedError
from conformance.target.provisioning.blueprint import Blueprint
from conformance.target.provisioning.calls import BEARER, Answer, Body, NotOursError, Way
from conformance.target.provisioning.discover import Discovery
from conformance.target.provisioning.files import Secrets
from conformance.target.provisioning.integrations import features_from
from conformance.target.provisioning.profiles import by_hand
from conformance.target.readings import flat
from selftest.conftest import VERSION
from selftest.target.bench import Bench
from selftest.target.services import SERVICES, StoppedError, changed, only_as_open_as, refused, stopping_after

if TYPE_CHECKING:
    from collections.abc import Callable


def offered(data: dict[str, Any]) -> set[str]:
    """Return what the integrations of a profile accept."""
    return {name for each in data["fixtures"]["integrations"] for name in (*each["parameters"], *each["events"])}


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


def only_members_see(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the visibility that a group was given, and let only its members see it."""
    identities = service.identities
    monkeypatch.setattr(identities, "can_see", lambda user, group: identities.role_in(user, group) > Role.NONE)


def everybody_sees_groups(way: Way, token: str, method: str, path: str, *call: Any) -> Answer:
    """A service that has no roles yet."""
    answer = way(token, method, path, *call)
    is_hidden = method == "GET" and path.startswith("/groups/") and path.count("/") == 2 and answer.status == 404
    return Answer(200, {"id": int(path[8:])}) if is_hidden and path[8:].isdecimal() else answer


def test_a_group_that_everybody_sees_is_no_hidden_one(whole: tuple[Bench, Provisioned]) -> None:
    """A run would refuse the profile: the target contradicts it."""
    bench = Bench(alter=changed(everybody_sees_groups))
    found, usual = bench.profile(bench.provision()), whole[0].profile(whole[1])
    assert usual["fixtures"].keys() - found["fixtures"].keys() == {"hidden_group"}
    assert usual["features"]["hidden_groups"]
    assert not found["features"]["hidden_groups"]


@pytest.mark.parametrize("only_says_so", [False, True])
def test_private_approver_groups_are_visible_to_those_who_name_them_in_rules(
    *, only_says_so: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench() if only_says_so else Bench(alter=changed(only_as_open_as("private")))
    if only_says_so:
        only_members_see(bench.service, monkeypatch)
    world = bench.provision().worlds[0]
    for name in ("approver_group", "second_approver_group"):
        for actor, is_seen in (("maintainer", True), ("outsider", False)):
            answer = bench.calls.get(world.people[actor].token, f"/groups/{world.groups[name]['id']}")
            assert answer.is_served is is_seen, (name, actor)


@pytest.mark.parametrize("shows", [shows_settings_as_objects, shows_settings_as_pairs, shows_settings_as_texts])
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
        ({"settings": {"url": {"value": "a", "kind": "text"}}}, {"url": "a"}),
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


def test_a_parameter_of_integrations_is_denied_only_if_no_kind_that_takes_it_is_there() -> None:
    done = Bench().provision()
    lists = (entries for entries in done.integrations.values() if isinstance(entries, list))
    found = {entry["slug"]: entry for entries in lists for entry in entries}
    with_ports = {slug: entry for slug, entry in found.items() if "server_port" in entry["parameters"]}
    unshown = {slug: {**entry, "parameters": list(entry["required"])} for slug, entry in with_ports.items()}
    without = {slug: entry for slug, entry in found.items() if slug not in with_ports}
    assert done.features["integration_ports"] is True
    assert features_from(unshown)["integration_ports"] is True
    assert features_from(without)["integration_ports"] is False
    assert features_from(without, {*with_ports})["integration_ports"] is True
    untold = {slug: {**entry, "events": []} for slug, entry in found.items()}
    assert done.features["vulnerability_events"] is True
    assert features_from(untold)["vulnerability_events"] is False


def test_completions_that_take_bearer_tokens_alone_are_not_denied() -> None:
    def bearer_only(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if path == "/code_suggestions/completions" and not token.startswith(BEARER):
            return refused(401)
        return way(token.removeprefix(BEARER), method, path, query, body)

    assert Bench(alter=changed(bearer_only)).provision().features["code_completion"] is True


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


@pytest.mark.parametrize(
    ("status", "relation"),
    [
        ([{"relation": "milestones", "status": 1}, {"relation": "badges", "status": 1}], "milestones"),
        ([{"relation": "badges", "status": 1, "batches": [{"objects_count": 2}]}], "badges"),
        ([{"relation": "badges", "status": 1}], None),
        ([], "labels"),
        ([{"relation": "labels", "status": 0}, {"relation": "badges", "status": 1}], "labels"),
        ([{"relation": "labels", "status": -1}, {"relation": "milestones", "status": 1}], "milestones"),
    ],
    ids=[
        "only milestones",
        "neither labels nor milestones",
        "no objects",
        "never finished",
        "only labels never finished",
        "labels failed",
    ],
)
def test_the_relation_of_an_export_is_one_that_an_export_shows(status: list[Any], relation: str | None) -> None:
    def shown(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_status = path.endswith("/export_relations/status")
        return Answer(200, status) if is_status else way(token, method, path, query, body)

    bench = Bench(alter=changed(shown), patience=0)
    assert bench.profile(bench.provision())["fixtures"]["export_group"].get("relation") == relation


def test_a_merge_request_that_was_renamed_has_its_last_title_in_the_profile(whole: tuple[Bench, Provisioned]) -> None:
    fixtures = whole[0].profile(whole[1])["fixtures"]
    assert fixtures["second_merge_request"]["title"].endswith("second merge request, R&D")

    def never_renamed(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_meant = method == "PUT" and "/merge_requests/" in path
        return refused(403) if is_meant else way(token, method, path, query, body)

    bench = Bench(alter=changed(never_renamed))
    assert bench.profile(bench.provision())["fixtures"]["second_merge_request"]["title"].endswith("(at first)")


def test_a_merge_request_that_does_not_follow_its_branch_is_named(whole: tuple[Bench, Provisioned]) -> None:
    assert "newer_sha" not in whole[1].worlds[0].merge_requests["merge_request"]
    first: dict[str, Any] = {}

    def kept(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        answer = way(token, method, path, query, body)
        if "/merge_requests" in path and answer.entry.get("sha"):
            sha = first.setdefault(f"{answer.entry['project_id']}/{answer.entry['iid']}", answer.entry["sha"])
            return Answer(answer.status, {**answer.entry, "sha": sha})
        return answer

    found = Bench(alter=changed(kept), patience=0.1).provision().worlds[0].merge_requests["merge_request"]
    assert found["newer_sha"] != found["sha"]


@pytest.mark.parametrize(
    ("status", "is_switched", "is_found"),
    [(403, False, True), (404, True, True), (404, False, False), (500, False, False), (500, True, False)],
    ids=["off before", "refused once switched off", "refused all along", "broken", "broken once switched off"],
)
def test_a_project_without_completion_is_one_that_is_refused_for_it(
    status: int, *, is_switched: bool, is_found: bool
) -> None:
    """The stated refusal says so by itself; another one only where the same project was served before."""

    def asked(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        answer = way(token, method, path, query, body)
        is_check = path.endswith("/code_suggestions/enabled") and "sibling" in str((body or {}).get("project_path"))
        return refused(status) if is_check and (answer.is_refusal or not is_switched) else answer

    found = Bench(alter=changed(asked), patience=0.1).provision().worlds[0].completions
    assert ("disabled_project" in found) is is_found


def test_what_is_left_to_do_by_hand_counts_what_that_alone_unlocks(whole: tuple[Bench, Provisioned]) -> None:
    data = whole[0].profile(whole[1])
    rest = {name: value for name, value in data["fixtures"].items() if name != "group_enabled_project"}
    numbers = []
    for declared in (True, False):
        features = {**data["features"], "code_completion": declared}
        found = by_hand({**data, "fixtures": rest, "features": features})
        left = next(one for one in found if "group_enabled_project" in one.fixtures)
        numbers.append((left.unlocks, left.feature))
    (alone, none), (with_all, feature) = numbers
    assert alone < with_all
    assert (none, feature) == (None, "code_completion")


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
