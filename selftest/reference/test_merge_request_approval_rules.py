from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.reference import Choices
from selftest.reference.reviews import BEFORE_16, RULE, Review

if TYPE_CHECKING:
    from collections.abc import Callable

    from selftest.reference.conftest import Served


def test_a_copy_has_the_name_users_and_groups_of_the_project_rule(review: Review) -> None:
    hidden = review.served.id_of("hidden_group")
    approver, group = review.user("approver"), review.served.id_of("approver_group")
    source = review.project_rule(name="Source", user_ids=[approver], group_ids=[group])
    owner = review.served.acting_as("owner")
    path = f"{review.project}/approval_rules/{source['id']}"
    body = {"name": "Source", "approvals_required": 1, "group_ids": [group, hidden]}
    owner.put(path, json=body).raise_for_status()
    before = owner.get(path).json()
    copy = review.rule(
        approval_project_rule_id=source["id"],
        name="Ignored",
        approvals_required=3,
        user_ids=[review.user("owner")],
    )
    assert (copy["name"], copy["approvals_required"], copy["rule_type"]) == ("Source", 3, "regular")
    assert [user["id"] for user in copy["users"]] == [approver]
    assert ([one["id"] for one in copy["groups"]], copy["contains_hidden_groups"]) == ([group], True)
    assert (copy["source_rule"], copy["overridden"]) == ({"approvals_required": 1}, True)
    change = {"approvals_required": 1}
    same = review.served.acting_as("maintainer").put(f"{review.path}/approval_rules/{copy['id']}", json=change)
    assert same.json()["overridden"] is False
    assert owner.get(path).json() == before
    owner.delete(path).raise_for_status()
    (left,) = review.get("approval_rules")
    assert (left["source_rule"], left["overridden"]) == (None, False)


def test_a_copy_requires_name_number_and_a_rule_of_this_project(review: Review) -> None:
    source = review.project_rule()["id"]
    elsewhere = review.served.acting_as("maintainer").get(
        f"/projects/{review.served.id_of('sibling_project')}/approval_rules"
    )
    said: dict[str, Any]
    for number, code in ((elsewhere.json()[0]["id"], 404), (10**9, 404), ("abc", 400)):
        said = {"name": "X", "approvals_required": 1, "approval_project_rule_id": number}
        assert review.try_rule(**said).status_code == code
    for said in ({"name": "X"}, {"approvals_required": 1}, {}, {"name": "X", "approvals_required": "abc"}):
        assert review.try_rule(approval_project_rule_id=source, **said).status_code == 400
        assert review.try_rule(**said).status_code == 400
    assert review.get("approval_rules") == []


def test_a_rule_of_a_merge_request_is_read_changed_and_deleted_only_there(review: Review) -> None:
    client = review.served.acting_as("maintainer")
    approver, second = review.user("approver"), review.user("second_approver")
    group, other_group = (review.served.id_of(name) for name in ("approver_group", "second_approver_group"))
    rule, other = review.rule(user_ids=[approver], group_ids=[group]), review.rule(name="Other")
    assert rule.keys() >= RULE
    path = f"{review.path}/approval_rules/{rule['id']}"
    assert client.get(path).json() == rule
    assert client.put(path, json={"name": "Renamed"}).json() == {**rule, "name": "Renamed"}
    username = review.served.service.world.actors["author"].username
    lists = {"user_ids": [second], "usernames": [username], "group_ids": [other_group]}
    changed = client.put(path, json=lists).json()
    assert [user["id"] for user in changed["users"]] == [second, review.user("author")]
    assert [one["id"] for one in changed["groups"]] == [other_group]
    elsewhere = Review(review.served, "second_merge_request").path
    for method in ("GET", "PUT", "DELETE"):
        assert client.request(method, f"{elsewhere}/approval_rules/{rule['id']}").status_code == 404
    assert client.get(path).json() == changed
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert review.get("approval_rules") == [other]


def test_hidden_groups_of_a_merge_request_rule_are_removed_only_on_request(review: Review) -> None:
    hidden, visible = review.served.id_of("hidden_group"), review.served.id_of("approver_group")
    rule = review.rule("owner", group_ids=[hidden])["id"]
    client = review.served.acting_as("maintainer")
    for remove, kept in ((False, {hidden, visible}), (True, {visible})):
        said = {"user_ids": [], "group_ids": [visible], "remove_hidden_groups": remove}
        shown = client.put(f"{review.path}/approval_rules/{rule}", json=said).json()
        assert shown["contains_hidden_groups"] is not remove
        (seen,) = review.get("approval_rules", "owner")
        assert {one["id"] for one in seen["groups"]} == kept


def test_rules_of_the_system_cannot_be_changed(served: Served) -> None:
    review = Review(served, "code_owner_merge_request")
    assert review.path == Review(served, "report_approver_merge_request").path
    before = review.get("approval_rules")
    assert [rule["rule_type"] for rule in before] == ["code_owner", "report_approver"]
    assert review.get("approval_state")["approval_rules_overwritten"] is False
    client = served.acting_as("owner")
    for rule in before:
        path = f"{review.path}/approval_rules/{rule['id']}"
        assert client.put(path, json={"name": "Mine", "approvals_required": 0}).status_code == 403
        assert client.delete(path).status_code == 403
    assert review.get("approval_rules") == before
    own = review.rule()
    assert [rule["id"] for rule in review.get("approval_state")["rules"]] == [
        own["id"],
        *(r["id"] for r in before),
    ]
    assert review.get("approvals")["approvals_left"] == 3


def test_by_choice_rules_of_the_system_count_as_overwriting(serve: Callable[..., Served]) -> None:
    served = serve(choices=Choices(system_rules_overwrite=True))
    state = Review(served, "code_owner_merge_request").get("approval_state")
    assert state["approval_rules_overwritten"] is True
    assert Review(served).get("approval_state")["approval_rules_overwritten"] is False


def test_a_project_can_forbid_rules_of_merge_requests(serve: Callable[..., Served]) -> None:
    for enforced, code in ((True, 403), (False, 201)):
        review = Review(serve(BEFORE_16, Choices(overriding_enforced=enforced)))
        rule = review.rule()["id"]
        change = {"disable_overriding_approvers_per_merge_request": True}
        configuration = f"{review.project}/approvals"
        review.served.acting_as("maintainer").post(configuration, json=change).raise_for_status()
        assert review.try_rule(name="X", approvals_required=1).status_code == code
        client = review.served.acting_as("maintainer")
        changed = client.put(f"{review.path}/approval_rules/{rule}", json={"name": "Y"})
        assert changed.is_success is not enforced
        assert client.delete(f"{review.path}/approval_rules/{rule}").is_success is not enforced


def test_pages_and_usernames_follow_the_version(serve: Callable[..., Served]) -> None:
    seen = {}
    for version in ("12.3", "15.2", "15.3", "15.7", "15.8", "19.0"):
        review = Review(serve(version))
        username = review.served.service.world.actors["approver"].username
        users = review.rule(usernames=[username])["users"]
        review.rule(name="Second")
        page = review.served.acting_as("maintainer").get(f"{review.path}/approval_rules?per_page=1").json()
        seen[version] = len(page), len(users)
    assert seen == {
        "12.3": (2, 0),
        "15.2": (2, 0),
        "15.3": (1, 0),
        "15.7": (1, 0),
        "15.8": (1, 1),
        "19.0": (1, 1),
    }
