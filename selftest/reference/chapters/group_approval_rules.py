"""The chapter of the approval rules of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from selftest.reference.chapters.places import NO_GUESTS, at, at_path, ids_of, made_rule, merge_request_at, rule_body

if TYPE_CHECKING:
    from selftest.reference.story import Story

_MEMBERS = ("approver", "second_approver", "owner")


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _rules_of_two_groups,
        _rules_of_other_levels,
        _updates_in_the_query,
        _users_and_groups,
        _names_groups_and_pages,
        _namesakes_in_another_group,
        _umlauts_in_the_query,
        _the_rule_of_any_approver,
        _a_number_alone,
        _hidden_groups_and_numbers,
        _pages_that_are_not_full,
        _the_same_type_again,
        _every_caller,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_creations_at_once, _two_updates_at_once):
        chapter(story)


def _rules_of_two_groups(story: Story) -> None:
    group, other = at(story, "group"), at(story, "sibling_group")
    groups = [story.world.one("approver_group").id, story.world.one("second_approver_group").id]
    of_group = story.call("owner", "POST", f"{group}/approval_rules", rule_body("G", 1, group_ids=groups))
    of_other = story.call("owner", "POST", f"{other}/approval_rules", rule_body("H", 1))
    body = rule_body("P", 1, user_ids=ids_of(story, "approver", "second_approver"))
    of_project = story.call("maintainer", "POST", f"{at(story, 'project')}/approval_rules", body)
    for number in (of_other["id"], of_project["id"], of_group["id"]):
        story.call("owner", "PUT", f"{group}/approval_rules/{number}", {"name": "Changed by the group"})
    story.call("maintainer", "GET", f"{at(story, 'project')}/approval_rules?page=1&per_page=50")
    story.call("owner", "GET", f"{other}/approval_rules?page=1&per_page=50")
    story.call("owner", "GET", "/groups/Subgroup/approval_rules")


def _rules_of_other_levels(story: Story) -> None:
    place, group = merge_request_at(story, "merge_request"), at(story, "group")
    body = {"name": "Crossing", "approvals_required": 1, "user_ids": ids_of(story, "approver", "second_approver")}
    of_group = story.call("owner", "POST", f"{group}/approval_rules", body)
    own = story.call("maintainer", "POST", f"{place}/approval_rules", body)
    story.call("owner", "PUT", f"{group}/approval_rules/{own['id']}", {"name": "of a group"})
    story.call("owner", "PUT", f"{at(story, 'subgroup')}/approval_rules/{of_group['id']}", {"name": "From inside"})
    story.call("owner", "GET", f"{group}/approval_rules?page=1&per_page=50")


def _updates_in_the_query(story: Story) -> None:
    rules = f"/groups/{story.world.one('group').id}/approval_rules"
    made = story.call("owner", "POST", rules, {"name": "Of a query", "approvals_required": 1})
    story.call("owner", "PUT", f"{rules}/{made['id']}?name=queried%20again&approvals_required=2")
    story.call("owner", "GET", f"{rules}?page=1&per_page=50")


def _users_and_groups(story: Story) -> None:
    rules = f"/groups/{story.world.one('group').id}/approval_rules"
    people = {
        "user_ids": [story.world.actors["approver"].id],
        "group_ids": [story.world.one("approver_group").id],
    }
    story.call("owner", "POST", rules, {"name": "Of users and groups", "approvals_required": 1, **people})
    for page in (1, 2):
        story.call("owner", "GET", f"{rules}?page={page}&per_page=1")


def _names_groups_and_pages(story: Story) -> None:
    world = story.world
    place, inside = world.one("fuzz_group"), world.one("subgroup")
    rules, inner = f"/groups/{place.id}/approval_rules", f"/groups/{inside.id}/approval_rules"
    story.call("owner", "POST", f"{rules}?name=A%2BB%2050%2525&approvals_required=1")
    made = story.call("owner", "POST", rules, {"name": "R&D", "approvals_required": 1})
    own = story.call("owner", "POST", inner, {"name": "Inside", "approvals_required": 1})
    story.call("owner", "PUT", f"/groups/{world.one('group').id}/approval_rules/{own['id']}", {"name": "From outside"})
    for actor in ("admin", "owner"):
        story.call(actor, "GET", f"{rules}?page=1&per_page=50")
    nested = {"user_ids": [world.actors["developer"].id], "group_ids": [inside.id]}
    story.call("owner", "PUT", f"{rules}/{made['id']}", nested)
    story.call("developer", "PUT", f"{rules}/{made['id']}", {"name": "By whom it names"})
    story.call("admin", "PUT", f"{rules}/{made['id']}", {"group_ids": [world.one("outsider_group").id]})
    story.call("admin", "GET", f"{rules}?page=1&per_page=50")
    story.call("owner", "PUT", f"{rules}/{made['id']}", {"name": "Changed"})
    for actor in ("admin", "owner"):
        story.call(actor, "GET", f"{rules}?page=1&per_page=50")
    for page in range(1, 9):
        story.call("owner", "GET", f"{rules}?page={page}&per_page=1")


def _namesakes_in_another_group(story: Story) -> None:
    rules = [f"/groups/{story.world.one(name).id}/approval_rules" for name in ("group", "sibling_group")]
    first, _ = (made_rule(story, "owner", path) for path in rules)
    story.call("owner", "PUT", f"{rules[0]}/{first['id']}", {"approvals_required": 7})
    for page in (1, 2):
        story.call("owner", "GET", f"{rules[1]}?page={page}&per_page=2")
    around = (story.world.one("public_project").path or "").rpartition("/")[0]
    story.call("outsider", "GET", f"/groups/{around}/approval_rules")


def _umlauts_in_the_query(story: Story) -> None:
    rules = f"/groups/{story.world.one('sibling_group').id}/approval_rules"
    story.call("owner", "POST", f"{rules}?name=Pr%C3%BCfung&approvals_required=1")
    story.call("owner", "GET", f"{rules}?per_page=100")


def _two_updates_at_once(story: Story) -> None:
    rules = f"/groups/{story.world.one('fresh_group').id}/approval_rules"
    story.call("owner", "POST", f"{rules}?name={quote('spät')}&approvals_required=1")
    numbers = [story.call("owner", "POST", rules, {"name": name, "approvals_required": 1})["id"] for name in "ab"]
    story.call("admin", "PUT", f"{rules}/{numbers[0]}", {"name": "R&D"})
    story.at_once(*(("owner", "PUT", f"{rules}/{number}", {"name": f"new {number}"}) for number in numbers))
    story.call("owner", "GET", rules)


def _the_rule_of_any_approver(story: Story) -> None:
    rules = f"/groups/{story.world.one('inner_group').id}/approval_rules"
    story.call("owner", "GET", rules)
    for rule in story.read(rules):
        if rule["rule_type"] == "any_approver":
            story.call("owner", "PUT", f"{rules}/{rule['id']}", {"approvals_required": 1})


def _a_number_alone(story: Story) -> None:
    rules = f"/groups/{story.world.one('branch_rule_group').id}/approval_rules"
    named = {"user_ids": ids_of(story, "approver"), "group_ids": [story.world.one("approver_group").id]}
    made = story.call("owner", "POST", rules, {"name": "M", "approvals_required": 1, **named})
    story.call("owner", "PUT", f"{rules}/{made['id']}", {"approvals_required": 2})


def _hidden_groups_and_numbers(story: Story) -> None:
    groups = [story.world.one(name).id for name in ("approver_group", "hidden_group")]
    inner = f"/groups/{story.world.one('inner_group').id}/approval_rules"
    story.call("owner", "POST", inner, {"name": "Hidden", "approvals_required": 1, "group_ids": groups})
    story.call("developer", "GET", inner)
    rules = f"/groups/{story.world.one('branch_rule_group').id}/approval_rules"
    sent = {"name": "E", "approvals_required": 1, "user_ids": ids_of(story, "approver")}
    number = story.call("owner", "POST", rules, sent)["id"]
    story.call("owner", "PUT", f"{rules}/{number}?approvals_required=3")
    story.call("owner", "PUT", f"{rules}/{number}", {"approval_rule_id": number, "name": "EE"})


def _pages_that_are_not_full(story: Story) -> None:
    rules = f"{at(story, 'fresh_group')}/approval_rules"
    for name in ("One", "Two", "Three"):
        story.call("owner", "POST", rules, rule_body(name, 1, user_ids=ids_of(story, "approver")))
    three = story.call("owner", "POST", rules, rule_body("Of three", 1, user_ids=ids_of(story, *_MEMBERS)))
    story.call("owner", "PUT", f"{rules}/{three['id']}", {"name": "Of none", "approvals_required": "abc"})
    for size in (2, 3):
        for page in (1, 2):
            story.call("owner", "GET", f"{rules}?per_page={size}&page={page}")


def _creations_at_once(story: Story) -> None:
    rules = f"{at(story, 'public_group')}/approval_rules"
    story.at_once(("owner", "POST", rules, rule_body("A", 1)), ("admin", "POST", rules, rule_body("B", 1)))
    story.count(rules)


def _every_caller(story: Story) -> None:
    for group in ("group", "subgroup"):
        for place in (at(story, group), at_path(story, group)):
            rules = f"{place}/approval_rules"
            for actor in NO_GUESTS:
                story.call(actor, "GET", f"{rules}?page=1&per_page=1")
                story.call(actor, "GET", f"{rules}?page=2&per_page=1")
                story.call(actor, "POST", f"{rules}?name=queried&approvals_required=1")
                made = story.call("owner", "POST", rules, rule_body(f"Of {actor}", 1))
                story.call(actor, "PUT", f"{rules}/{made['id']}", {"name": f"changed by {actor}"})
            story.call("owner", "GET", f"{rules}?page=1&per_page=50")


def _the_same_type_again(story: Story) -> None:
    rules = f"{at(story, 'fresh_group')}/approval_rules"
    rule = made_rule(story, "owner", rules, user_ids=ids_of(story, "approver"), rule_type="regular")
    story.call("owner", "PUT", f"{rules}/{rule['id']}", {"name": "Regular", "rule_type": "regular"})
