from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.reference import Choices
from conformance.reference.choices import Counting, Repeat
from selftest.reference.reviews import BEFORE_16, RULE, Review

if TYPE_CHECKING:
    from collections.abc import Callable

    from selftest.reference.conftest import Served

USER = {"id", "name", "username", "state", "avatar_url", "web_url"}
STATUS = {
    *("id", "iid", "project_id", "title", "description", "state", "created_at", "updated_at", "merge_status"),
    *("approvals_required", "approvals_left", "approved_by"),
}


def test_an_approval_counts_until_it_is_withdrawn(review: Review) -> None:
    review.rule(approvals_required=2, user_ids=[review.user("approver"), review.user("second_approver")])
    fresh = review.get("approvals")
    assert fresh.keys() >= STATUS
    assert (fresh["approvals_required"], fresh["approvals_left"], fresh["approved_by"]) == (2, 2, [])
    first = review.act("approver", sha=review.sha)
    assert first.status_code == 201
    assert first.json()["approvals_left"] == 1
    assert review.act("second_approver").json()["approvals_left"] == 0
    assert review.approved_by() == ["approver", "second_approver"]
    (entry, _) = review.get("approvals")["approved_by"]
    assert entry["user"].keys() >= USER
    back = review.act("approver", "unapprove")
    assert (back.status_code, back.json()["approvals_left"]) == (201, 1)
    assert review.approved_by() == ["second_approver"]
    assert review.act("approver").is_success
    assert review.approved_by() == ["second_approver", "approver"]
    assert Review(review.served, "second_merge_request").approved_by() == []


def test_the_state_shows_each_rule_with_its_approvers(review: Review) -> None:
    named = review.rule(name="Named", user_ids=[review.user("approver")])
    grouped = review.rule(name="Grouped", group_ids=[review.served.id_of("approver_group")], approvals_required=2)
    review.act("approver").raise_for_status()
    review.act("developer").raise_for_status()
    state = review.get("approval_state")
    assert state["approval_rules_overwritten"] is True
    rules = {rule["id"]: rule for rule in state["rules"]}
    assert rules.keys() == {named["id"], grouped["id"]}
    seen = {rule["name"]: ([user["id"] for user in rule["approved_by"]], rule["approved"]) for rule in rules.values()}
    approver = review.user("approver")
    assert seen == {"Named": ([approver], True), "Grouped": ([approver], False)}
    assert rules[named["id"]].keys() >= {*RULE, "approved_by", "approved"}
    assert rules[named["id"]]["approved_by"][0].keys() >= USER
    assert review.get("approvals")["approvals_left"] == 1


def test_rules_of_the_project_apply_until_the_merge_request_has_its_own(review: Review) -> None:
    main, stable = (review.served.id_of(name) for name in ("protected_branch", "second_protected_branch"))
    applying = {
        review.project_rule(name="Everywhere")["id"],
        review.project_rule(name="Main", protected_branch_ids=[main])["id"],
        review.project_rule(name="Protected", applies_to_all_protected_branches=True)["id"],
    }
    other = review.project_rule(name="Stable", protected_branch_ids=[stable])["id"]
    state = review.get("approval_state")
    assert state["approval_rules_overwritten"] is False
    shown = {rule["id"]: rule for rule in state["rules"]}
    assert applying <= shown.keys()
    assert other not in shown
    assert review.get("approval_rules") == []
    assert {(rule["source_rule"], rule["overridden"]) for rule in shown.values()} == {(None, False)}
    (default,) = (rule for rule in shown.values() if rule["rule_type"] == "any_approver")
    assert (default["approvals_required"], default["approved"]) == (0, True)
    own = review.rule()
    state = review.get("approval_state")
    assert state["approval_rules_overwritten"] is True
    assert [rule["id"] for rule in state["rules"]] == [own["id"]]
    review.served.acting_as("maintainer").delete(f"{review.path}/approval_rules/{own['id']}")
    assert review.get("approval_state")["approval_rules_overwritten"] is False


def test_by_choice_numbers_of_several_rules_are_added_or_the_highest_counts(serve: Callable[..., Served]) -> None:
    for counting, required, left in ((Counting.SUM, 5, 4), (Counting.HIGHEST, 3, 3)):
        review = Review(serve(choices=Choices(approvals_counted=counting)))
        review.rule(approvals_required=2, user_ids=[review.user("approver")])
        review.rule(approvals_required=3, user_ids=[review.user("second_approver")])
        status = review.act("approver").json()
        assert (status["approvals_required"], status["approvals_left"]) == (required, left)


@pytest.mark.parametrize("sha", ["0" * 40, "", "HEAD", "a" * 10_000])
def test_a_sha_that_is_not_the_head_is_a_conflict(review: Review, sha: str) -> None:
    assert review.act("approver", sha=sha).status_code == 409
    assert review.approved_by() == []
    assert review.act("approver", sha=review.sha).is_success
    assert review.act("second_approver", sha=sha).status_code == 409
    assert review.approved_by() == ["approver"]


def test_a_push_changes_the_head(review: Review) -> None:
    service = review.served.service
    project = service.identities.projects[review.served.id_of("project")]
    iid = int(str(service.world.one("merge_request").extra["iid"]))
    merge_request = service.repositories.merge_requests[project.id, iid]
    branch = service.repositories.branches[project.id, merge_request.source_branch]
    service.repositories.branches[project.id, branch.name] = type(branch)(project.id, branch.name, "f" * 40)
    assert review.act("approver", sha=review.sha).status_code == 409
    assert review.act("approver", sha="f" * 40).is_success


def test_approving_twice_and_unapproving_nothing_are_refused_or_change_nothing(
    serve: Callable[..., Served],
) -> None:
    for choice, twice, nothing in ((Repeat.REFUSE, 401, 404), (Repeat.ACCEPT, 201, 201)):
        review = Review(serve(choices=Choices(repeated_approval=choice, absent_unapproval=choice)))
        assert review.act("second_approver").status_code == 201
        assert review.act("approver", "unapprove").status_code == nothing
        assert review.act("second_approver").status_code == twice
        assert review.approved_by() == ["second_approver"]


def test_approving_requires_the_developer_role_or_being_named_in_a_rule(review: Review) -> None:
    codes = {
        actor: review.act(actor).status_code
        for actor in ("approver", "developer", "maintainer", "reporter", "guest", "author", "outsider")
    }
    assert codes == {
        **dict.fromkeys(("approver", "developer", "maintainer"), 201),
        **dict.fromkeys(("reporter", "guest", "author"), 401),
        "outsider": 404,
    }
    assert review.served.anonymous().post(f"{review.path}/approve").status_code == 401
    review.rule(user_ids=[review.user("reporter")])
    assert review.act("reporter").status_code == 201
    assert review.approved_by() == ["approver", "developer", "maintainer", "reporter"]


def test_by_choice_only_users_named_by_a_rule_may_approve(serve: Callable[..., Served]) -> None:
    review = Review(serve(choices=Choices(approval_outside_rules=False, approval_refused_code=403)))
    review.rule(group_ids=[review.served.id_of("approver_group")])
    assert review.act("developer").status_code == 403
    assert review.act("approver").status_code == 201


def test_whether_authors_and_committers_may_approve_is_configured(serve: Callable[..., Served]) -> None:
    review = Review(serve(BEFORE_16))
    author = review.user("author")
    own = review.rule(user_ids=[author])["id"]

    def eligible() -> list[int]:
        (rule,) = (one for one in review.get("approval_rules") if one["id"] == own)
        return [user["id"] for user in rule["eligible_approvers"]]

    assert review.act("author").status_code == 401
    assert eligible() == []
    review.configure(merge_requests_author_approval=True, merge_requests_disable_committers_approval=True)
    assert review.act("author").status_code == 401
    assert review.approved_by() == []
    review.configure(merge_requests_disable_committers_approval=False)
    assert eligible() == [author]
    assert review.act("author").status_code == 201
    assert review.approved_by() == ["author"]


def test_a_password_is_required_if_the_configuration_says_so(serve: Callable[..., Served]) -> None:
    review = Review(serve(BEFORE_16))
    review.configure(require_password_to_approve=True)
    password = review.served.service.world.actors["approver"].password
    other = review.served.service.world.actors["second_approver"].password
    for said in ({}, {"approval_password": None}, {"approval_password": ""}, {"approval_password": other}):
        assert review.act("approver", **said).status_code == 401
    assert review.act("approver", approval_password={"a": 1}).status_code == 400
    assert review.act("approver", approval_password="\u00fc\u20ac").status_code == 401
    assert review.approved_by() == []
    assert review.act("approver", approval_password=password).status_code == 201
    review.configure(require_password_to_approve=False)
    assert review.act("second_approver", approval_password="wrong").status_code == 201


def test_a_password_is_required_if_the_settings_say_so(served: Served) -> None:
    review = Review(served)
    settings = f"{review.project}/merge_request_approval_setting"
    change = {"require_reauthentication_to_approve": True}
    served.acting_as("maintainer").put(settings, json=change).raise_for_status()
    assert review.act("approver").status_code == 401
    password = served.service.world.actors["approver"].password
    assert review.act("approver", approval_password=password).status_code == 201


@pytest.mark.parametrize("bot", ["project_bot", "group_bot"])
def test_bots_of_the_project_and_of_its_group_reset_all_approvals(review: Review, bot: str) -> None:
    for actor in ("approver", "second_approver"):
        review.act(actor).raise_for_status()
    for actor in ("owner", "maintainer", "developer", "guest", "author", "admin"):
        assert review.act(actor, "reset_approvals").status_code == 401
    assert review.approved_by() == ["approver", "second_approver"]
    answer = review.act(bot, "reset_approvals")
    assert (answer.status_code, answer.json()) == (202, 202)
    assert review.approved_by() == []
    assert review.get("approvals")["approvals_left"] == review.get("approvals")["approvals_required"]


def test_a_bot_of_another_project_resets_nothing(served: Served) -> None:
    review = Review(served)
    review.act("approver").raise_for_status()
    assert review.act("foreign_bot", "reset_approvals").status_code == 404
    service = served.service
    project = service.identities.projects[served.id_of("project")]
    bot = service.identities.users[served.service.world.actors["foreign_bot"].id]
    service.identities.add_member(project, bot, 40)  # type: ignore[arg-type] # as a role
    assert review.act("foreign_bot", "reset_approvals").status_code == 401
    assert review.approved_by() == ["approver"]


def test_responses_without_a_described_body_have_the_chosen_form(serve: Callable[..., Served]) -> None:
    bare = Choices(unshown_bodies=False, unapproved_code=200, approvals_reset_code=204, rule_deleted_code=200)
    review = Review(serve(choices=bare))
    review.act("approver").raise_for_status()
    rule = review.rule()["id"]
    client = review.served.acting_as("maintainer")
    answers = [
        review.act("approver", "unapprove"),
        review.act("project_bot", "reset_approvals"),
        client.delete(f"{review.path}/approval_rules/{rule}"),
    ]
    assert [(answer.status_code, answer.content) for answer in answers] == [
        (200, b""),
        (204, b""),
        (200, b""),
    ]


def test_merge_requests_are_identified_by_their_iid_in_the_project(review: Review) -> None:
    client = review.served.acting_as("maintainer")
    status = review.get("approvals")
    assert f"{review.project}/merge_requests/{status['iid']}" == review.path
    assert (status["id"], status["project_id"]) == (review.id, review.served.id_of("project"))
    reads, writes = (
        ("approvals", "approval_state", "approval_rules", "approval_rules/1"),
        ("approve", "unapprove"),
    )
    for iid, code in (("999", 404), ("abc", 400), ("9" * 40, 400)):
        base = f"{review.project}/merge_requests/{iid}"
        codes = {client.get(f"{base}/{what}").status_code for what in reads}
        codes |= {client.post(f"{base}/{what}").status_code for what in writes}
        codes.add(client.post(f"{base}/approval_rules", json={"name": "X", "approvals_required": 1}).status_code)
        codes.add(client.put(f"{base}/reset_approvals").status_code)
        assert codes == {code}


def test_reading_requires_a_reporter_and_changing_rules_a_developer(review: Review) -> None:
    rule = review.rule()["id"]
    codes = {}
    for actor in ("developer", "reporter", "guest", "outsider"):
        client = review.served.acting_as(actor)
        changed = client.put(f"{review.path}/approval_rules/{rule}", json={"name": "Own rule"})
        reads = {client.get(f"{review.path}/{what}").status_code for what in ("approvals", "approval_state")}
        reads |= {
            client.get(f"{review.path}/{what}").status_code for what in ("approval_rules", f"approval_rules/{rule}")
        }
        codes[actor] = reads, changed.status_code
    assert codes == {
        "developer": ({200}, 200),
        "reporter": ({200}, 403),
        "guest": ({403}, 403),
        "outsider": ({404}, 404),
    }
    anonymous = review.served.anonymous()
    assert anonymous.get(f"{review.path}/approvals").status_code == 401
    assert anonymous.put(f"{review.path}/reset_approvals").status_code == 401


def test_a_reset_of_the_world_removes_rules_approvals_and_configuration(serve: Callable[..., Served]) -> None:
    review = Review(serve(BEFORE_16))
    before = review.get("approvals"), review.get("approval_state")
    review.rule()
    review.act("approver")
    review.configure(merge_requests_author_approval=True)
    review.served.service.reset()
    assert (review.get("approvals"), review.get("approval_state")) == before
    assert review.act("author").status_code == 401
