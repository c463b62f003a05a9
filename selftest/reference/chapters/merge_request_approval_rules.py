"""The chapter of the approval rules of merge requests: own rules, copies, and rules of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.reference.areas.approval_rule_records import RuleType
from selftest.reference.chapters.new_places import new_group, new_project
from selftest.reference.chapters.places import (
    ODD_NAME,
    at,
    cleared_merge_request,
    during,
    id_of,
    ids_of,
    made_rule,
    merge_request_at,
    rule_body,
)

if TYPE_CHECKING:
    from selftest.reference.chapters.new_places import NewProject
    from selftest.reference.story import Story


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _rules_of_two_merge_requests,
        _groups_of_an_update,
        _a_rule_and_a_setting,
        _copies_of_own_rules,
        _three_of_them,
        _in_a_new_project,
        _hidden_groups,
        _a_copy_whose_source_goes,
        _rules_of_the_system,
        _pages_without_a_number,
        _copies_of_two_groups,
        _copies_and_the_configuration,
        _namesakes_of_two_merge_requests,
        _copies_of_one_source,
        _copies_of_a_group,
        _names_groups_and_reports,
        _copies_without_their_source,
        _one_name_in_two_merge_requests,
        _copies_that_are_renamed,
        _copies_for_fewer_approvals,
        _one_user_in_both_lists,
        _three_with_the_same_users,
        _one_group_twice,
        _more_than_twenty,
        _a_copy_of_a_changed_rule,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_creations_at_once, _a_name_beside_a_number, _a_copy_beside_a_deletion):
        chapter(story)


def _rules_of_two_merge_requests(story: Story) -> None:
    project = at(story, "project")
    iids = [story.world.one(name).extra["iid"] for name in ("second_merge_request", "reset_merge_request")]
    place, other = (f"{project}/merge_requests/{iid}/approval_rules" for iid in iids)
    names = [story.world.actors[name].username for name in ("approver", "second_approver")]
    source = story.call("maintainer", "POST", f"{project}/approval_rules", rule_body("Source", 1))
    elsewhere = story.call("maintainer", "POST", f"{at(story, 'sibling_project')}/approval_rules", rule_body("E", 1))
    older = story.call("maintainer", "POST", place, rule_body("Older", 1, usernames=names))
    copy = story.call("maintainer", "POST", place, rule_body("Copy", 2, approval_project_rule_id=source["id"]))
    story.call("maintainer", "POST", place, rule_body("Copy", 2, approval_project_rule_id=elsewhere["id"]))
    story.call("maintainer", "GET", f"{place}?page=1&per_page=50")
    foreign = story.call("maintainer", "POST", other, rule_body("Of another", 1))
    for number in (older["id"], foreign["id"]):
        story.call("maintainer", "GET", f"{place}/{number}")
    for number in (copy["id"], source["id"]):
        story.call("maintainer", "PUT", f"{place}/{number}", {"name": "Renamed", "user_ids": [], "group_ids": []})
    for number in (foreign["id"], source["id"], older["id"], copy["id"]):
        story.call("maintainer", "DELETE", f"{place}/{number}")
        story.call("maintainer", "GET", f"{place}?page=1&per_page=50")
        story.call("maintainer", "GET", f"{other}?page=1&per_page=50")
        story.call("maintainer", "GET", f"{project}/approval_rules?page=1&per_page=50")
    iid = story.world.one("reset_merge_request").extra["iid"]
    story.call("project_bot", "PUT", f"{project}/merge_requests/{iid}/reset_approvals")
    story.call("maintainer", "GET", f"{other}?page=1&per_page=50")


def _groups_of_an_update(story: Story) -> None:
    place = merge_request_at(story, "merge_request")
    body = {"name": "Crossing", "approvals_required": 1, "user_ids": ids_of(story, "approver", "second_approver")}
    own = story.call("maintainer", "POST", f"{place}/approval_rules", body)
    groups = [story.world.one("approver_group").id]
    story.call("maintainer", "PUT", f"{place}/approval_rules/{own['id']}", {**body, "group_ids": groups})
    story.call("maintainer", "GET", f"{place}/approval_rules/{own['id']}")


def _a_rule_and_a_setting(story: Story) -> None:
    project = at(story, "project")
    setting = f"{project}/merge_request_approval_setting"
    place = f"{project}/merge_requests/{story.world.one('second_merge_request').extra['iid']}"
    story.call("maintainer", "PUT", setting, {"retain_approvals_on_push": True})
    story.call("maintainer", "POST", f"{place}/approval_rules", {"name": "Strict", "approvals_required": 1})
    story.call("maintainer", "GET", setting)


def _copies_of_own_rules(story: Story) -> None:
    rules = f"{at(story, 'project')}/merge_requests/1/approval_rules"
    body = {"name": "Slip", "approvals_required": 3, "user_ids": ids_of(story, "approver")}
    own = story.call("maintainer", "POST", rules, body)
    story.call("maintainer", "POST", rules, {**body, "name": "Copy", "approval_project_rule_id": own["id"]})


def _three_of_them(story: Story) -> None:
    iid = story.world.one("second_merge_request").extra["iid"]
    rules = f"{at(story, 'project')}/merge_requests/{iid}/approval_rules"
    groups = [story.world.one("approver_group").id]
    made = [
        story.call("maintainer", "POST", rules, {"name": name, "approvals_required": 1, "group_ids": groups})
        for name in ("First of three", "Second of three", "Third of three")
    ]
    story.call("maintainer", "GET", f"{rules}?page=1&per_page=50")
    story.call("maintainer", "GET", f"{rules}?page=2&per_page=1")
    wanted = {"name": "By name", "approvals_required": 1, "usernames": [story.world.actors["approver"].username]}
    story.call("maintainer", "PUT", f"{rules}/{made[0]['id']}", wanted)
    story.call("maintainer", "GET", f"{rules}/{2**31}")
    for one in made:
        story.call("maintainer", "DELETE", f"{rules}/{one['id']}")


def _in_a_new_project(story: Story) -> None:
    place = new_project(story, new_group(story, "reviews-of-own-rules"), "first")
    _rules_beside_code_owners(place)
    _copies_in_two_merge_requests(place)


def _rules_beside_code_owners(place: NewProject) -> None:
    story, path, service = place.story, f"{place.merge_request(1)}/approval_rules", place.story.service
    user = story.world.actors["approver"].id
    service.merge_request_approval_rules.add_system_rule(place.opened[1], "Owners", RuleType.CODE_OWNER, (user,))
    own = story.call("maintainer", "POST", path, place.body("approver"))
    change = {"name": "Rules 🦉", "usernames": [story.world.actors["second_approver"].username], "group_ids": []}
    story.call("maintainer", "PUT", f"{path}/{own['id']}", {**change, "user_ids": []})
    story.call("maintainer", "DELETE", f"{path}/{own['id']}")
    story.call("maintainer", "GET", path)
    story.call("maintainer", "PUT", f"{path}/{own['id']}", {"name": "Back"})


def _copies_in_two_merge_requests(place: NewProject) -> None:
    story, source = place.story, place.story.call("maintainer", "POST", place.rules, place.body("approver"))
    body = {"name": "Copy", "approvals_required": 2, "approval_project_rule_id": source["id"]}
    paths = [f"{place.merge_request(number)}/approval_rules" for number in (0, 1)]
    copies = [story.call("maintainer", "POST", path, body) for path in paths]
    story.call("maintainer", "PUT", f"{paths[0]}/{copies[0]['id']}", place.body("second_approver"))
    story.call("maintainer", "GET", f"{place.rules}/{source['id']}")
    story.call("maintainer", "DELETE", f"{paths[0]}/{copies[0]['id']}")
    story.call("maintainer", "GET", paths[1])


def _hidden_groups(story: Story) -> None:
    rules = f"{merge_request_at(story, 'merge_request')}/approval_rules"
    body = {"name": "Of a group that is hidden", "approvals_required": 1}
    made = story.call("admin", "POST", rules, {**body, "group_ids": [story.world.one("hidden_group").id]})
    story.call("maintainer", "GET", f"{rules}/{made['id']}")


def _a_copy_whose_source_goes(story: Story) -> None:
    project = at(story, "project")
    rules = f"{project}/approval_rules"
    own = f"{project}/merge_requests/{story.world.one('second_merge_request').extra['iid']}/approval_rules"
    body = {"name": "To be copied 🚀", "approvals_required": 1}
    source = story.call("maintainer", "POST", rules, body)
    copy = story.call("maintainer", "POST", own, {**body, "approval_project_rule_id": source["id"]})
    for place in (f"{own}/{copy['id']}", f"{rules}/{source['id']}"):
        story.call("maintainer", "DELETE", place)
    story.call("maintainer", "GET", f"{own.removesuffix('approval_rules')}approval_state")


def _rules_of_the_system(story: Story) -> None:
    rules = f"{merge_request_at(story, 'code_owner_merge_request')}/approval_rules"
    listed: Any = story.read(rules)
    number = next(rule["id"] for rule in listed if rule["rule_type"] == "code_owner")
    story.call("maintainer", "PUT", f"{rules}/{number}", {"name": "Of nobody"})


def _pages_without_a_number(story: Story) -> None:
    rules = f"{merge_request_at(story, 'second_merge_request')}/approval_rules"
    made = [
        story.call("maintainer", "POST", rules, {"name": name, "approvals_required": 20, **_named(story)})
        for name in ("One of two", "Other of two")
    ]
    story.call("maintainer", "GET", f"{rules}?per_page=1")
    story.call("maintainer", "PUT", f"{rules}/{made[0]['id']}", {"name": "Renamed"})
    story.call("maintainer", "GET", f"{merge_request_at(story, 'second_merge_request')}/approval_state")
    for one in made:
        story.call("maintainer", "DELETE", f"{rules}/{one['id']}")


def _named(story: Story) -> dict[str, Any]:
    return {"user_ids": [story.world.actors["approver"].id]}


def _copies_of_two_groups(story: Story) -> None:
    groups = [story.world.one(name).id for name in ("approver_group", "second_approver_group")]
    body = {"name": "Of two groups", "approvals_required": 1}
    source = story.call("maintainer", "POST", f"{at(story, 'project')}/approval_rules", {**body, "group_ids": groups})
    own = f"{merge_request_at(story, 'second_merge_request')}/approval_rules"
    copy = {**body, "approvals_required": 20, "approval_project_rule_id": source["id"]}
    story.call("maintainer", "POST", own, copy)


def _copies_and_the_configuration(story: Story) -> None:
    project = f"/projects/{story.world.one('project').id}"
    rules = f"{project}/merge_requests/1/approval_rules"
    source = made_rule(story, "maintainer", f"{project}/approval_rules", user_ids=[id_of(story, "approver")])
    wanted = {"approvals_required": 5, "approval_project_rule_id": source["id"]}
    made_rule(story, "maintainer", rules, **wanted)
    story.call("maintainer", "GET", f"{project}/approvals")
    story.call("maintainer", "DELETE", f"{project}/approval_rules/{source['id']}")
    made_rule(story, "maintainer", rules, **wanted)
    other = made_rule(story, "maintainer", f"{project}/merge_requests/2/approval_rules")
    made_rule(story, "maintainer", rules, approvals_required=5, approval_project_rule_id=other["id"])


def _namesakes_of_two_merge_requests(story: Story) -> None:
    reviews = [f"/projects/{story.world.one('project').id}/merge_requests/{iid}" for iid in (1, 2)]
    first, second = (made_rule(story, "maintainer", f"{review}/approval_rules", name=ODD_NAME) for review in reviews)
    story.call("maintainer", "GET", f"{reviews[0]}/approval_rules?page=1&per_page=1")
    by_name = {"user_ids": [], "group_ids": [], "usernames": [story.world.actors["approver"].username]}
    story.call("maintainer", "PUT", f"{reviews[0]}/approval_rules/{first['id']}", by_name)
    story.call("maintainer", "DELETE", f"{reviews[0]}/approval_rules/{first['id']}")
    story.call("maintainer", "GET", f"{reviews[1]}/approval_rules/{second['id']}")


def _copies_of_one_source(story: Story) -> None:
    world = story.world
    project = f"/projects/{world.one('project').id}"
    places = [
        f"{project}/merge_requests/{world.one(name).extra['iid']}" for name in ("merge_request", "reset_merge_request")
    ]
    first, second = (world.actors[name].id for name in ("approver", "second_approver"))
    for place in places:
        for rule in story.read(f"{place}/approval_rules"):
            story.call("maintainer", "DELETE", f"{place}/approval_rules/{rule['id']}")
    named = {"name": "C", "approvals_required": 1, "user_ids": [first], "group_ids": []}
    source = story.call("maintainer", "POST", f"{project}/approval_rules", named)["id"]
    copy = {"name": "C", "approvals_required": 2, "approval_project_rule_id": source}
    numbers = [story.call("maintainer", "POST", f"{place}/approval_rules", copy)["id"] for place in places]
    for place in places:
        story.call("maintainer", "GET", f"{place}/approval_state")
    story.call("maintainer", "PUT", f"{project}/approval_rules/{source}", {**named, "user_ids": [second]})
    story.call("maintainer", "GET", f"{places[0]}/approval_rules/{numbers[0]}")
    change = {"user_ids": [first], "group_ids": [world.one("approver_group").id]}
    story.call("maintainer", "PUT", f"{places[0]}/approval_rules/{numbers[0]}", change)
    story.call("maintainer", "DELETE", f"{places[0]}/approval_rules/{numbers[0]}")
    for place in places:
        story.call("maintainer", "GET", f"{place}/approval_state")
        story.call("maintainer", "GET", f"{place}/approval_rules")


def _copies_of_a_group(story: Story) -> None:
    project, place = at(story, "project"), cleared_merge_request(story)
    named = {"user_ids": [story.world.actors["second_approver"].id], "group_ids": [story.world.one("subgroup").id]}
    source = story.call("owner", "POST", f"{project}/approval_rules", {"name": "S", "approvals_required": 1, **named})
    copy = {"name": "S", "approvals_required": 1, "approval_project_rule_id": source["id"]}
    number = story.call("owner", "POST", f"{place}/approval_rules", copy)["id"]
    story.call("owner", "GET", f"{place}/approval_state")
    story.call("owner", "DELETE", f"{project}/approval_rules/{source['id']}")
    story.call("owner", "GET", f"{place}/approval_rules/{number}")


def _names_groups_and_reports(story: Story) -> None:
    world = story.world
    place = cleared_merge_request(story)
    rules = f"{place}/approval_rules"
    story.call("owner", "POST", rules, {"name": "I", "approvals_required": 1, "group_ids": [world.one("subgroup").id]})
    named = {"name": "U", "approvals_required": 1, "user_ids": [world.actors["approver"].id]}
    number = story.call("owner", "POST", rules, named)["id"]
    story.call("owner", "PUT", f"{rules}/{number}", {"usernames": [world.actors["second_approver"].username]})
    story.call("owner", "GET", f"{rules}?per_page=1&page=1")
    report = world.one("report_approver_merge_request").extra
    strict = f"/projects/{report['project_id']}/merge_requests/{report['iid']}/approval_rules/{report['rule_id']}"
    story.call("maintainer", "PUT", strict, {"approvals_required": 5})
    story.call("maintainer", "GET", strict)


def _copies_without_their_source(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    sent: dict[str, Any] = {"name": "Source", "approvals_required": 1, "user_ids": ids_of(story, "approver")}
    source, own = story.call("maintainer", "POST", rules, sent)["id"], f"{cleared_merge_request(story)}/approval_rules"
    copy = {"name": "Source", "approvals_required": 2, "approval_project_rule_id": source}
    number = story.call("maintainer", "POST", own, copy)["id"]
    story.call("maintainer", "DELETE", f"{rules}/{source}")
    story.call("maintainer", "GET", f"{own}/{number}")
    story.call("maintainer", "DELETE", f"{own}/{number}")


def _one_name_in_two_merge_requests(story: Story) -> None:
    places = [
        f"{cleared_merge_request(story, name)}/approval_rules" for name in ("merge_request", "second_merge_request")
    ]
    sent: dict[str, Any] = {"name": "Same", "approvals_required": 1, "user_ids": ids_of(story, "approver")}
    numbers = [story.call("maintainer", "POST", place, sent)["id"] for place in places]
    story.call("maintainer", "PUT", f"{places[0]}/{numbers[0]}", {"approvals_required": 3})
    story.call("maintainer", "GET", f"{places[1]}/{numbers[1]}")
    for name in ("First", "Second", "Third"):
        story.call("maintainer", "POST", places[1], {**sent, "name": name})
    for page in (1, 2):
        story.call("maintainer", "GET", f"{places[1]}?page={page}&per_page=2")
    by_group = {"name": "G", "approvals_required": 2, "group_ids": [story.world.one("approver_group").id]}
    place = cleared_merge_request(story)
    story.call("maintainer", "POST", f"{place}/approval_rules", by_group)
    story.call("approver", "POST", f"{place}/approve")


def _copies_that_are_renamed(story: Story) -> None:
    rules, own = f"{at(story, 'project')}/approval_rules", f"{cleared_merge_request(story)}/approval_rules"
    nested = {"group_ids": [story.world.one("second_approver_group").id], "user_ids": ids_of(story, "approver")}
    sent: dict[str, Any] = {"name": "Source", "approvals_required": 1, **nested}
    source = story.call("maintainer", "POST", rules, sent)["id"]
    copy = {"name": "Source", "approvals_required": 2, "approval_project_rule_id": source}
    number = story.call("maintainer", "POST", own, copy)["id"]
    for name in ("Another", "Rocket \N{ROCKET} and more"):
        story.call("maintainer", "PUT", f"{own}/{number}", {"name": name})
    other = story.call("maintainer", "POST", own, sent)["id"]
    story.call("maintainer", "PUT", f"{own}/{other}", {"name": "Rocket \N{ROCKET} and more"})
    for rule in (f"{own}/{number}", f"{own}/{other}", f"{rules}/{source}"):
        story.call("maintainer", "DELETE", rule)


def _copies_for_fewer_approvals(story: Story) -> None:
    rules, own = f"{at(story, 'project')}/approval_rules", f"{cleared_merge_request(story)}/approval_rules"
    source = story.call("maintainer", "POST", rules, rule_body("Source", 3, user_ids=ids_of(story, "approver")))["id"]
    story.call("maintainer", "POST", own, rule_body("Copy", 1, approval_project_rule_id=source))
    story.call("maintainer", "DELETE", f"{rules}/{source}")


def _one_user_in_both_lists(story: Story) -> None:
    usernames = [story.world.actors["approver"].username]
    named = {"user_ids": ids_of(story, "approver", "second_approver"), "usernames": usernames}
    story.call("maintainer", "POST", f"{cleared_merge_request(story)}/approval_rules", rule_body("Both", 1, **named))


def _three_with_the_same_users(story: Story) -> None:
    rules = f"{cleared_merge_request(story)}/approval_rules"
    users = {"user_ids": ids_of(story, "approver")}
    numbers = [story.call("maintainer", "POST", rules, rule_body(name, 1, **users))["id"] for name in "ABC"]
    for method in ("GET", "DELETE", "GET"):
        story.call("maintainer", method, f"{rules}/{numbers[-1]}")
    story.call("maintainer", "GET", rules)


def _creations_at_once(story: Story) -> None:
    rules = f"{merge_request_at(story, 'second_merge_request')}/approval_rules"
    story.at_once(("owner", "POST", rules, rule_body("A", 1)), ("admin", "POST", rules, rule_body("B", 1)))
    story.count(rules)
    # Either of the two may come first: in the end neither is there.
    cleared_merge_request(story)


def _one_group_twice(story: Story) -> None:
    rules = f"{cleared_merge_request(story)}/approval_rules"
    made_rule(story, "maintainer", rules, group_ids=[story.world.one("approver_group").id] * 2)


def _more_than_twenty(story: Story) -> None:
    rules = f"{cleared_merge_request(story)}/approval_rules"
    for number in range(21):
        made_rule(story, "maintainer", rules, name=f"No. {number}")
    story.call("maintainer", "GET", f"{rules}?page=3&per_page=10")
    cleared_merge_request(story)


def _a_copy_of_a_changed_rule(story: Story) -> None:
    rules, own = f"{at(story, 'project')}/approval_rules", f"{cleared_merge_request(story)}/approval_rules"
    source = made_rule(story, "maintainer", rules, user_ids=ids_of(story, "approver"), group_ids=[])
    changed = rule_body("Newer", 1, user_ids=ids_of(story, "second_approver"), group_ids=[])
    story.call("maintainer", "PUT", f"{rules}/{source['id']}", changed)
    copy = made_rule(story, "maintainer", own, approval_project_rule_id=source["id"])
    for place in (f"{own}/{copy['id']}", f"{rules}/{source['id']}"):
        story.call("maintainer", "DELETE", place)


def _a_name_beside_a_number(story: Story) -> None:
    rules = f"{cleared_merge_request(story)}/approval_rules"
    rule = f"{rules}/{made_rule(story, 'maintainer', rules, user_ids=ids_of(story, 'approver'))['id']}"
    story.at_once(("owner", "PUT", rule, {"name": "Renamed"}), ("maintainer", "PUT", rule, {"approvals_required": 3}))
    story.call("owner", "GET", rule)
    story.call("owner", "DELETE", rule)


def _a_copy_beside_a_deletion(story: Story) -> None:
    rules, own = f"{at(story, 'project')}/approval_rules", f"{cleared_merge_request(story)}/approval_rules"
    source = made_rule(story, "maintainer", rules, user_ids=ids_of(story, "approver"))
    copy = rule_body("Newer", 1, approval_project_rule_id=source["id"])
    during(story, ("POST", own, copy), ("DELETE", f"{rules}/{source['id']}", None))
    story.call("owner", "GET", own)
    cleared_merge_request(story)
