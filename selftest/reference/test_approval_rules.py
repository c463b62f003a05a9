from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.reference import Choices
from conformance.reference.choices import Repeat, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from selftest.reference.conftest import Served

RULE = {
    "id",
    "name",
    "rule_type",
    "eligible_approvers",
    "approvals_required",
    "users",
    "groups",
    "contains_hidden_groups",
    "protected_branches",
    "applies_to_all_protected_branches",
}
GROUP = {
    *("id", "name", "path", "description", "visibility", "lfs_enabled", "avatar_url", "web_url"),
    *("request_access_enabled", "full_name", "full_path", "parent_id", "ldap_cn", "ldap_access"),
}
USER = {"id", "name", "username", "state", "avatar_url", "web_url"}
BRANCH = {"id", "name", "push_access_levels", "merge_access_levels", "unprotect_access_levels"}
BRANCH |= {"code_owner_approval_required"}


class Rules:
    """The approval rules of one project or group, as one client sees them."""

    def __init__(self, client: httpx.Client, path: str) -> None:
        self.client = client
        self.path = f"{path}/approval_rules"

    def all(self) -> dict[int, dict[str, Any]]:
        answer = self.client.get(self.path, params={"per_page": 100}).raise_for_status()
        return {rule["id"]: rule for rule in answer.json()}

    def post(self, **said: object) -> httpx.Response:
        return self.client.post(self.path, json=said)

    def new(self, **said: object) -> dict[str, Any]:
        rule: dict[str, Any] = (
            self.post(**{"name": "A rule", "approvals_required": 1, **said}).raise_for_status().json()
        )
        return rule

    def put(self, number: object, **said: object) -> httpx.Response:
        return self.client.put(f"{self.path}/{number}", json=said)

    def change(self, number: int, **said: object) -> dict[str, Any]:
        rule: dict[str, Any] = (
            self.put(number, **{"name": "A rule", "approvals_required": 1, **said}).raise_for_status().json()
        )
        return rule


def of_project(served: Served, actor: str = "maintainer", fixture: str = "project") -> Rules:
    return Rules(served.acting_as(actor), f"/projects/{served.id_of(fixture)}")


def of_group(served: Served, actor: str = "owner", fixture: str = "group") -> Rules:
    return Rules(served.acting_as(actor), f"/groups/{served.id_of(fixture)}")


def ids(entries: list[dict[str, Any]]) -> set[int]:
    return {entry["id"] for entry in entries}


def actor_id(served: Served, name: str) -> int:
    return served.service.world.actors[name].id


@pytest.mark.parametrize("of", [of_project, of_group])
def test_a_created_rule_is_stored_as_sent_and_is_listed(served: Served, of: Callable[..., Rules]) -> None:
    rules = of(served)
    before = rules.all()
    group, user = served.id_of("approver_group"), actor_id(served, "approver")
    created = rules.post(
        name="Security", approvals_required=2, rule_type="regular", user_ids=[user, user], group_ids=[group]
    )
    rule = created.json()
    assert created.status_code == 201
    assert rule.keys() >= RULE
    assert (rule["name"], rule["approvals_required"], rule["rule_type"]) == ("Security", 2, "regular")
    assert [one["id"] for one in rule["users"]] == [user]
    assert ids(rule["groups"]) == {group}
    assert rule["users"][0].keys() >= USER
    assert rule["groups"][0].keys() == GROUP
    members = {actor_id(served, name) for name in ("owner", "approver", "second_approver")}
    assert ids(rule["eligible_approvers"]) == members
    assert rule["contains_hidden_groups"] is False
    assert rules.all() == {**before, rule["id"]: rule}


@pytest.mark.parametrize("of", [of_project, of_group])
def test_a_default_rule_requires_nothing_until_another_rule_replaces_it(
    served: Served, of: Callable[..., Rules]
) -> None:
    rules = of(served)
    (default,) = rules.all().values()
    assert (default["rule_type"], default["approvals_required"]) == ("any_approver", 0)
    made = rules.new(rule_type="any_approver", approvals_required=2)
    assert rules.all() == {made["id"]: made}
    assert rules.post(name="Again", approvals_required=1, rule_type="any_approver").status_code == 400
    assert rules.all() == {made["id"]: made}


def test_by_choice_a_default_rule_is_not_listed_and_several_may_exist(serve: Callable[..., Served]) -> None:
    rules = of_project(serve(choices=Choices(default_rule_listed=False, several_default_rules=True)))
    assert rules.all() == {}
    made = [rules.new(rule_type="any_approver")["id"] for _ in range(2)]
    assert sorted(rules.all()) == sorted(made)


@pytest.mark.parametrize("of", [of_project, of_group])
@pytest.mark.parametrize(
    "said",
    [
        {"name": None},
        {"approvals_required": None},
        {"approvals_required": "abc"},
        {"approvals_required": {}},
        {"approvals_required": -1},
        {"approvals_required": 10**30},
        {"name": ["x"]},
        {"name": " "},
        {"rule_type": "bogus"},
        {"rule_type": "code_owner"},
        {"user_ids": "abc"},
        {"group_ids": {"a": 1}},
        {"group_ids": [None]},
    ],
)
def test_an_invalid_rule_is_refused_and_not_stored(
    served: Served, of: Callable[..., Rules], said: dict[str, object]
) -> None:
    rules = of(served)
    rule = rules.new()
    before = rules.all()
    sent = {"name": "New", "approvals_required": 1, **said}
    assert rules.post(**sent).status_code == 400
    if None not in said.values() and ("rule_type" not in said or of is of_group):
        assert rules.put(rule["id"], **sent).status_code == 400
    assert rules.all() == before


@pytest.mark.parametrize("of", [of_project, of_group])
def test_unknown_rules_are_not_found(served: Served, of: Callable[..., Rules]) -> None:
    rules = of(served)
    elsewhere = of(served, "owner", "sibling_project" if of is of_project else "sibling_group").new()["id"]
    for number, code in ((elsewhere, 404), (10**9, 404), (10**40, 400), ("abc", 400)):
        assert rules.put(number, name="X", approvals_required=1).status_code == code
        if of is of_project:
            assert rules.client.get(f"{rules.path}/{number}").status_code == code
            assert rules.client.delete(f"{rules.path}/{number}").status_code == code


def test_one_project_rule_is_read_changed_and_deleted_without_the_others(served: Served) -> None:
    rules = of_project(served)
    rule, other = rules.new(), rules.new(name="Other")
    assert rules.client.get(f"{rules.path}/{rule['id']}").json() == rule
    changed = rules.change(rule["id"], name="Changed", approvals_required=3)
    assert changed == {**rule, "name": "Changed", "approvals_required": 3}
    assert rules.client.get(f"{rules.path}/{rule['id']}").json() == changed
    deleted = rules.client.delete(f"{rules.path}/{rule['id']}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert rules.client.get(f"{rules.path}/{rule['id']}").status_code == 404
    assert rules.all()[other["id"]] == other
    assert rule["id"] not in rules.all()


def test_an_update_of_a_project_rule_requires_name_and_number_of_a_group_rule_none(
    served: Served,
) -> None:
    for of, refused in ((of_project, True), (of_group, False)):
        rules = of(served)
        rule = rules.new()
        assert rules.put(rule["id"], name="Renamed").is_error is refused
        assert rules.put(rule["id"], approvals_required=4).is_error is refused
        stored = rules.all()[rule["id"]]
        expected = ("A rule", 1) if refused else ("Renamed", 4)
        assert (stored["name"], stored["approvals_required"]) == expected


def test_an_update_replaces_the_approvers_that_it_names(served: Served) -> None:
    rules = of_project(served)
    first, second, author = (actor_id(served, name) for name in ("approver", "second_approver", "author"))
    one, two = served.id_of("approver_group"), served.id_of("second_approver_group")
    rule = rules.new(user_ids=[first], group_ids=[one])
    changed = rules.change(rule["id"], user_ids=[second], group_ids=[two])
    assert (ids(changed["users"]), ids(changed["groups"])) == ({second}, {two})
    username = served.service.world.actors["author"].username
    changed = rules.change(rule["id"], user_ids=[first], usernames=[username], group_ids=[two])
    assert (ids(changed["users"]), ids(changed["groups"])) == ({first, author}, {two})
    assert rules.change(rule["id"])["users"] == changed["users"]
    changed = rules.change(rule["id"], user_ids=[], usernames=[], group_ids=[])
    assert (changed["users"], changed["groups"]) == ([], [])


def test_by_choice_absent_lists_remove_everybody(serve: Callable[..., Served]) -> None:
    served = serve(choices=Choices(absent_lists_remove=True, absent_flag_resets=True))
    rules = of_project(served)
    user, group = actor_id(served, "approver"), served.id_of("approver_group")
    rule = rules.new(user_ids=[user], group_ids=[group], applies_to_all_protected_branches=True)
    changed = rules.change(rule["id"])
    assert (changed["users"], changed["groups"]) == ([], [])
    assert changed["applies_to_all_protected_branches"] is False


@pytest.mark.parametrize("blind", ["maintainer", "owner"])
def test_hidden_groups_stay_until_their_removal_is_requested(served: Served, blind: str) -> None:
    insider = of_project(served, "owner")
    hidden, visible = served.id_of("hidden_group"), served.id_of("approver_group")
    rule = insider.new(group_ids=[hidden])
    assert rule["contains_hidden_groups"] is False
    assert ids(rule["groups"]) == {hidden}
    rules = of_project(served, blind)
    if blind == "owner":  # for a caller who sees the group, not sending it means removing it
        assert ids(rules.change(rule["id"], group_ids=[visible], user_ids=[])["groups"]) == {visible}
        return
    seen = rules.client.get(f"{rules.path}/{rule['id']}").json()
    assert (seen["groups"], seen["contains_hidden_groups"]) == ([], True)
    assert seen["eligible_approvers"] == []
    for flag in ({}, {"remove_hidden_groups": False}):
        changed = rules.change(rule["id"], group_ids=[visible], user_ids=[], **flag)
        assert (ids(changed["groups"]), changed["contains_hidden_groups"]) == ({visible}, True)
        assert ids(insider.all()[rule["id"]]["groups"]) == {visible, hidden}
    changed = rules.change(rule["id"], group_ids=[visible], user_ids=[], remove_hidden_groups=True)
    assert (ids(changed["groups"]), changed["contains_hidden_groups"]) == ({visible}, False)
    assert ids(insider.all()[rule["id"]]["groups"]) == {visible}
    assert rules.put(rule["id"], name="X", approvals_required=1, remove_hidden_groups={}).status_code == 400


def test_a_group_that_the_caller_cannot_see_cannot_be_named(serve: Callable[..., Served]) -> None:
    for choice, code in ((Unfit.DROP, 201), (Unfit.REFUSE, 400)):
        served = serve(choices=Choices(unfit_approvers=choice))
        rules = of_project(served)
        unfit: tuple[dict[str, object], ...] = (
            {"group_ids": [served.id_of("hidden_group")]},
            {"user_ids": [actor_id(served, "outsider")]},
            {"user_ids": [10**9]},
            {"usernames": ["nobody"]},
            {"protected_branch_ids": [10**9]},
        )
        for said in unfit:
            answer = rules.post(name="A rule", approvals_required=1, **said)
            assert answer.status_code == code
            if code == 201:
                rule = answer.json()
                assert (rule["users"], rule["groups"], rule["protected_branches"]) == ([], [], [])
                assert rule["contains_hidden_groups"] is False
        assert len(rules.all()) == 1 + (len(unfit) if code == 201 else 0)


def test_a_project_rule_is_scoped_to_protected_branches_or_to_all_of_them(served: Served) -> None:
    rules = of_project(served)
    first, second = served.id_of("protected_branch"), served.id_of("second_protected_branch")
    rule = rules.new(protected_branch_ids=[first])
    assert (ids(rule["protected_branches"]), rule["applies_to_all_protected_branches"]) == ({first}, False)
    assert rule["protected_branches"][0].keys() == BRANCH
    assert rule["protected_branches"][0]["push_access_levels"] == [
        {"access_level": 30, "access_level_description": "Developers + Maintainers"}
    ]
    changed = rules.change(rule["id"], protected_branch_ids=[second])
    assert [one["code_owner_approval_required"] for one in changed["protected_branches"]] == ["true"]
    assert ids(changed["protected_branches"]) == {second}
    all_of_them = {"applies_to_all_protected_branches": True, "protected_branch_ids": [first]}
    changed = rules.change(rule["id"], **all_of_them)
    assert changed["applies_to_all_protected_branches"] is True
    assert ids(changed["protected_branches"]) == {first, second}
    assert {one["code_owner_approval_required"] for one in changed["protected_branches"]} == {"true", "false"}
    changed = rules.change(rule["id"], applies_to_all_protected_branches=False)
    assert ids(changed["protected_branches"]) == {second}
    assert rules.new()["protected_branches"] == []


def test_a_group_rule_shows_protected_branches_with_all_fields(served: Served) -> None:
    rule = of_group(served).new()
    assert rule["applies_to_all_protected_branches"] is True
    shown = {branch["id"]: branch for branch in rule["protected_branches"]}
    branch = shown[served.id_of("second_protected_branch")]
    assert branch.keys() == {*BRANCH, "allow_force_push", "inherited"}
    assert branch["code_owner_approval_required"] is True
    (push,), (merge,) = branch["push_access_levels"], branch["merge_access_levels"]
    short = {"id", "access_level", "access_level_description", "user_id", "group_id"}
    assert (push.keys(), merge.keys()) == ({*short, "deploy_key_id"}, short)
    assert branch["unprotect_access_levels"][0].keys() == push.keys()


def test_policies_create_report_rules_and_callers_only_if_the_choices_allow_it(
    serve: Callable[..., Served],
) -> None:
    served = serve(choices=Choices(extra_fields=True))
    for rules in (of_group(served, fixture="policy_group"), of_project(served, fixture="policy_project")):
        assert "report_approver" in {rule["rule_type"] for rule in rules.all().values()}
    rules = of_project(served)
    report = {"rule_type": "report_approver", "report_type": "code_coverage"}
    made = rules.new(**report)
    assert (made["rule_type"], made["report_type"]) == ("report_approver", "code_coverage")
    assert rules.new(**{**report, "report_type": "license_scanning"})["report_type"] == "license_scanning"
    assert rules.new(report_type="code_coverage")["report_type"] is None
    refused: tuple[dict[str, object], ...] = (
        {**report, "report_type": "bogus"},
        {"rule_type": "report_approver"},
        {"report_type": "bogus"},
    )
    for said in refused:
        assert rules.post(name="X", approvals_required=1, **said).status_code == 400
    assert of_group(served).post(name="X", approvals_required=1, **report).status_code == 400
    other = Choices(report_rules_creatable_in_groups=True, report_rules_creatable_in_projects=False)
    opposite = serve(choices=other)
    assert of_project(opposite).post(name="X", approvals_required=1, **report).status_code == 400
    assert of_group(opposite).post(name="X", approvals_required=1, **report).status_code == 201


def test_the_type_of_a_group_rule_can_be_sent_with_an_update(served: Served) -> None:
    rules = of_group(served)
    rule = rules.new()
    assert rules.put(rule["id"], rule_type="regular", name="Same").json()["rule_type"] == "regular"
    assert rules.put(rule["id"], rule_type="report_approver").status_code == 400
    assert rules.put(rule["id"], rule_type="any_approver", user_ids=[]).json()["rule_type"] == "any_approver"
    made = of_group(served, fixture="policy_group")
    policy = served.service.world.one("policy_group").extra["rule_id"]
    assert made.put(policy, rule_type="report_approver", name="Kept").json()["rule_type"] == "report_approver"


def test_the_type_of_a_project_rule_cannot_be_changed(served: Served) -> None:
    rules = of_project(served)
    rule = rules.new()
    changed = rules.change(rule["id"], rule_type="any_approver", report_type="code_coverage")
    assert changed == rule


def test_parameters_of_group_rules_may_be_sent_in_the_query(serve: Callable[..., Served]) -> None:
    served = serve(choices=Choices(parameters_in_query=False))
    rules = of_group(served)
    user = actor_id(served, "approver")
    query: dict[str, Any] = {"name": "Asked", "approvals_required": 2, "user_ids[]": user}
    rule = rules.client.post(rules.path, params=query).raise_for_status().json()
    assert (rule["name"], rule["approvals_required"], ids(rule["users"])) == ("Asked", 2, {user})
    changed = rules.client.put(f"{rules.path}/{rule['id']}", params={"name": "Asked again"}).json()
    assert (changed["name"], changed["approvals_required"]) == ("Asked again", 2)


def test_by_choice_names_must_be_unique(serve: Callable[..., Served]) -> None:
    rules = of_project(serve(choices=Choices(repeated_rule_name=Repeat.REFUSE)))
    rule = rules.new(name="Taken")
    assert rules.post(name="Taken", approvals_required=1).status_code == 400
    assert rules.change(rule["id"], name="Taken", approvals_required=2)["approvals_required"] == 2
    assert rules.put(rules.new(name="Free")["id"], name="Taken", approvals_required=1).status_code == 400


@pytest.mark.parametrize("of", [of_project, of_group])
def test_lists_are_paged_from_15_3_on(serve: Callable[..., Served], of: Callable[..., Rules]) -> None:
    for version, paged in (("15.2", False), ("15.3", True)):
        rules = of(serve(version))
        for number in range(3):
            rules.new(name=f"Rule {number}")
        pages = [rules.client.get(rules.path, params={"page": n, "per_page": 2}).json() for n in (1, 2, 3)]
        if paged:
            assert [len(page) for page in pages] == [2, 2, 0]
            assert len(ids(pages[0] + pages[1])) == 4
        else:
            assert [len(page) for page in pages] == [4, 4, 4]


def test_fields_and_parameters_follow_the_version(serve: Callable[..., Served]) -> None:
    seen: dict[str, object] = {}
    for version in ("12.3", "15.2", "15.3", "15.7", "15.8", "19.0"):
        served = serve(version)
        name = served.service.world.actors["approver"].username
        branch = served.id_of("protected_branch")
        rule = of_project(served).new(
            usernames=[name], applies_to_all_protected_branches=True, protected_branch_ids=[branch]
        )
        everywhere = rule.get("applies_to_all_protected_branches"), len(rule["protected_branches"])
        of_a_group = "applies_to_all_protected_branches" in of_group(served).new()
        seen[version] = everywhere, of_a_group, len(rule["users"])
    assert seen == {
        "12.3": ((None, 1), False, 0),
        "15.2": ((None, 1), False, 0),
        "15.3": ((True, 2), True, 0),
        "15.7": ((True, 2), True, 0),
        "15.8": ((True, 2), True, 1),
        "19.0": ((True, 2), True, 1),
    }


def test_group_rules_are_for_group_administrators(served: Served) -> None:
    rule = of_group(served).new()
    before = of_group(served).all()
    codes: dict[str, set[int]] = {}
    for actor in ("admin", "owner", "maintainer", "developer", "guest", "outsider"):
        rules = of_group(served, actor)
        codes[actor] = {
            rules.client.get(rules.path).status_code,
            rules.put(rule["id"], name="A rule").status_code,
        }
        if actor not in {"owner", "admin"}:
            codes[actor].add(rules.post(name="X", approvals_required=1).status_code)
    assert codes == {
        **{actor: {200} for actor in ("admin", "owner")},
        **{actor: {403} for actor in ("maintainer", "developer", "guest")},
        "outsider": {404},
    }
    assert of_group(served).all() == before


def test_by_choice_group_rules_are_switched_off(serve: Callable[..., Served]) -> None:
    rules = of_group(serve(choices=Choices(group_approval_rules_offered=False)))
    assert rules.client.get(rules.path).status_code == 404
    assert rules.post(name="X", approvals_required=1).status_code == 404
    assert rules.put(1, name="X").status_code == 404


def test_project_rules_are_read_by_reporters_and_changed_by_maintainers(served: Served) -> None:
    rule = of_project(served).new()
    codes = {}
    for actor in ("maintainer", "developer", "reporter", "guest", "outsider"):
        rules = of_project(served, actor)
        changed = rules.put(rule["id"], name="A rule", approvals_required=1)
        codes[actor] = rules.client.get(rules.path).status_code, changed.status_code
    assert codes == {
        "maintainer": (200, 200),
        "developer": (200, 403),
        "reporter": (200, 403),
        "guest": (403, 403),
        "outsider": (404, 404),
    }
    anonymous = Rules(served.anonymous(), f"/projects/{served.id_of('project')}")
    assert anonymous.post(name="X", approvals_required=1).status_code == 401
    assert of_project(served, "outsider", "public_project").all()
