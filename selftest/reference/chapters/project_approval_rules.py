"""The chapter of the approval rules of projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.reference.identity import Visibility
from selftest.reference.chapters.new_places import new_group, new_project
from selftest.reference.chapters.places import EVERYBODY, ODD_NAME, at, at_path, id_of, ids_of, made_rule, rule_body

if TYPE_CHECKING:
    from selftest.reference.chapters.new_places import NewProject
    from selftest.reference.story import Story

#: How often a rule is changed while others are deleted, because either call may come first.
_ROUNDS = 5


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _rules_of_two_projects,
        _usernames_alone,
        _rules_of_one_name_and_pages,
        _names,
        _branches,
        _hidden_groups_after_an_update,
        _hidden_groups_that_shall_stay,
        _no_number,
        _in_a_new_project,
        _users_and_groups_in_the_list,
        _lists_by_path,
        _a_long_name,
        _a_user_in_both_lists,
        _letters_of_four_bytes,
        _one_branch_of_all,
        _half_hidden,
        _read_and_renamed,
        _narrowed_and_left_alone,
        _no_usernames_and_full_pages,
        _null_and_hidden_groups,
        _every_caller,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_writes_at_once, _deletions_beside_an_update, _deleted_while_it_is_changed):
        chapter(story)


def _rules_of_two_projects(story: Story) -> None:
    project, other = at(story, "project"), at(story, "sibling_project")
    two = ids_of(story, "approver", "second_approver")
    groups = [story.world.one("approver_group").id, story.world.one("second_approver_group").id]
    branches = [story.world.one("protected_branch").id, story.world.one("second_protected_branch").id]
    rules = f"{project}/approval_rules"
    lists = {"user_ids": two, "group_ids": groups, "protected_branch_ids": branches}
    older = story.call("maintainer", "POST", rules, rule_body("Older", 2, **lists))
    newer = story.call("maintainer", "POST", rules, rule_body("Newer", 1, user_ids=two[:1]))
    foreign = story.call("maintainer", "POST", f"{other}/approval_rules", rule_body("Elsewhere", 1, user_ids=two))
    of_group = story.call("owner", "POST", f"{at(story, 'group')}/approval_rules", rule_body("G", 1, group_ids=groups))
    own = story.call("maintainer", "POST", f"{project}/merge_requests/1/approval_rules", rule_body("Own", 1))
    for number in (older["id"], foreign["id"], of_group["id"], own["id"]):
        story.call("maintainer", "GET", f"{rules}/{number}")
        story.call("maintainer", "PUT", f"{rules}/{number}", rule_body("Changed", 1, user_ids=two, group_ids=[]))
        story.call("maintainer", "PUT", f"{rules}/{number}", {"name": "Refused"})
    both = {"user_ids": two[:1], "usernames": [story.world.actors["second_approver"].username], "group_ids": []}
    story.call("maintainer", "PUT", f"{rules}/{older['id']}", rule_body("Both", 2, **both))
    story.call("maintainer", "GET", f"{rules}?page=1&per_page=50")
    story.call("maintainer", "GET", f"{other}/approval_rules?page=1&per_page=50")
    story.call("maintainer", "DELETE", f"{rules}/{of_group['id']}")
    story.call("owner", "GET", f"{at(story, 'group')}/approval_rules?page=1&per_page=50")
    for number in (foreign["id"], newer["id"]):
        story.call("maintainer", "DELETE", f"{rules}/{number}")
        story.call("maintainer", "GET", f"{rules}?page=1&per_page=50")
    story.call("maintainer", "POST", rules, rule_body("Third", 1))
    story.call("maintainer", "GET", f"{rules}?page=1&per_page=50")
    story.call("maintainer", "GET", f"{other}/approval_rules?page=1&per_page=50")
    alone = story.call("maintainer", "POST", f"{at(story, 'empty_project')}/approval_rules", rule_body("One", 1))
    story.call("maintainer", "DELETE", f"{at(story, 'empty_project')}/approval_rules/{alone['id']}")
    story.call("maintainer", "GET", f"{at(story, 'empty_project')}/approval_rules")


def _usernames_alone(story: Story) -> None:
    names = [story.world.actors[name].username for name in ("approver", "second_approver")]
    named = {"name": "By name", "approvals_required": 1, "usernames": names}
    story.call("maintainer", "POST", f"{at(story, 'project')}/approval_rules", named)
    story.call("", "GET", f"{at_path(story, 'public_project')}/approval_rules?page=1&per_page=9")


def _rules_of_one_name_and_pages(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    story.call("maintainer", "GET", f"{rules}?page=3&per_page=1")
    twin = {"name": "Twin", "approvals_required": 1, "group_ids": [story.world.one("subgroup").id]}
    first = story.call("maintainer", "POST", rules, twin)
    names = [story.world.actors[name].username for name in ("second_approver", "maintainer")]
    people = {"user_ids": ids_of(story, "approver"), "usernames": names}
    second = story.call("maintainer", "POST", rules, {**twin, **people})
    branches = [story.world.one("protected_branch").id]
    wanted = {**twin, "applies_to_all_protected_branches": True, "protected_branch_ids": branches}
    story.call("maintainer", "PUT", f"{rules}/{second['id']}", wanted)
    story.call("maintainer", "DELETE", f"{rules}/{first['id']}")
    story.call("maintainer", "GET", f"{rules}?page=1&per_page=50")


def _names(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    for name in ("Ops & <Support>", "Правило №1 ✓", "A name of more than thirty characters, to its very end"):
        story.call("maintainer", "POST", rules, {"name": name, "approvals_required": 1})
    story.call("admin", "POST", rules, {"approvals_required": 1})


def _branches(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    first, second = (story.world.one(name).id for name in ("protected_branch", "second_protected_branch"))
    body = {"name": "Of branches", "approvals_required": 1, "protected_branch_ids": [first]}
    made = story.call("maintainer", "POST", rules, body)
    story.call("maintainer", "PUT", f"{rules}/{made['id']}", {**body, "protected_branch_ids": [second]})
    for flag in (True, False):
        story.call("maintainer", "PUT", f"{rules}/{made['id']}", {**body, "applies_to_all_protected_branches": flag})
        story.call("maintainer", "GET", f"{rules}/{made['id']}")


def _hidden_groups_after_an_update(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    body = {"name": "Of a hidden group", "approvals_required": 1}
    made = story.call("admin", "POST", rules, {**body, "group_ids": [story.world.one("hidden_group").id]})
    story.call("maintainer", "PUT", f"{rules}/{made['id']}", {**body, "approvals_required": 2})


def _hidden_groups_that_shall_stay(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    body = {"name": "Of a group that is hidden", "approvals_required": 1}
    made = story.call("admin", "POST", rules, {**body, "group_ids": [story.world.one("hidden_group").id]})
    story.call("admin", "GET", f"{rules}/{made['id']}")
    sent = {**body, "user_ids": [], "group_ids": [], "remove_hidden_groups": False}
    story.call("maintainer", "PUT", f"{rules}/{made['id']}", sent)


def _no_number(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    made = story.call("maintainer", "POST", rules, {"name": "Of a number", "approvals_required": 1})
    names = [story.world.actors["approver"].username]
    story.call("maintainer", "PUT", f"{rules}/{made['id']}", {"name": "Of no number", "usernames": names})


def _in_a_new_project(story: Story) -> None:
    group = new_group(story, "reviews-of-rules")
    place = new_project(story, group, "first")
    _default_and_hidden(place)
    inner = new_group(story, "inner", group)
    new_project(story, inner, "first", Visibility.PUBLIC)
    story.call("maintainer", "GET", "/projects/reviews-of-rules%2Finner%2Ffirst/approval_rules")


def _default_and_hidden(place: NewProject) -> None:
    story = place.story
    default = story.call("maintainer", "GET", place.rules)[0]
    hidden = place.body("approver", group_ids=[story.world.one("hidden_group").id])
    rule = story.call("admin", "POST", place.rules, hidden)
    for name in ("admin", "maintainer"):
        story.call(name, "GET", f"{place.rules}/{rule['id']}")
    same = {name: default[name] for name in ("name", "approvals_required")}
    story.call("maintainer", "PUT", f"{place.rules}/{default['id']}", same)


def _users_and_groups_in_the_list(story: Story) -> None:
    project = at(story, "project")
    rule: dict[str, Any] = {"name": "Two", "approvals_required": 1}
    rule["group_ids"] = [story.world.one("approver_group").id]
    rule["user_ids"] = ids_of(story, "approver", "second_approver")
    story.call("maintainer", "POST", f"{project}/approval_rules", rule)
    story.call("maintainer", "GET", f"{project}/approval_rules?page=1&per_page=50")


def _lists_by_path(story: Story) -> None:
    project, groups = story.world.one("project"), [story.world.one(name).id for name in ("group", "subgroup")]
    rules, by_path = f"/projects/{project.id}/approval_rules", quote(project.path or "", safe="")
    users = [id_of(story, name) for name in ("approver", "second_approver")]
    made_rule(story, "maintainer", rules, group_ids=groups)
    rule = made_rule(story, "maintainer", rules, user_ids=users[:1])
    name = story.world.actors["approver"].username
    story.call("maintainer", "GET", f"/projects/{by_path}/approval_rules?per_page=100")
    story.call("developer", "GET", f"{rules}/{rule['id']}")
    change = {"name": ODD_NAME, "approvals_required": 2, "user_ids": users[1:], "usernames": [name]}
    story.call("maintainer", "PUT", f"{rules}/{rule['id']}", change)
    story.call("developer", "GET", f"{rules}/{rule['id']}")
    story.call("maintainer", "GET", f"/projects/{by_path}/approval_rules?per_page=100")
    branch = story.world.one("second_protected_branch").id
    everywhere = made_rule(story, "maintainer", rules, user_ids=users, applies_to_all_protected_branches=True)
    narrower = {"applies_to_all_protected_branches": False, "protected_branch_ids": [branch]}
    story.call("maintainer", "PUT", f"{rules}/{everywhere['id']}", {**change, **narrower})
    hidden = made_rule(story, "owner", rules, group_ids=[story.world.one("hidden_group").id])
    story.call("maintainer", "GET", f"{rules}/{hidden['id']}")


def _a_long_name(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    made = story.call("owner", "POST", rules, {"name": f"A rule of {'a long name ' * 6}", "approvals_required": 1})
    story.call("owner", "DELETE", f"{rules}/{made['id']}")


def _a_user_in_both_lists(story: Story) -> None:
    both = story.world.actors["approver"]
    rule = {"name": "In both lists", "approvals_required": 1, "user_ids": [both.id], "usernames": [both.username]}
    story.call("maintainer", "POST", f"/projects/{story.world.one('fresh_project').id}/approval_rules", rule)


def _deletions_beside_an_update(story: Story) -> None:
    rules = f"/projects/{story.world.one('fresh_project').id}/approval_rules"
    for _ in range(_ROUNDS):
        rule = {"name": "Of several", "approvals_required": 1}
        staying, *going = (story.call("maintainer", "POST", rules, rule)["id"] for _ in range(4))
        change = ("maintainer", "PUT", f"{rules}/{staying}", rule)
        story.at_once(change, *(("owner", "DELETE", f"{rules}/{number}", None) for number in going))
    story.count(rules)


def _letters_of_four_bytes(story: Story) -> None:
    rules = f"{at(story, 'branch_rule_project')}/approval_rules"
    story.call("maintainer", "POST", rules, {"name": "A 🚀 of it", "approvals_required": 1})


def _one_branch_of_all(story: Story) -> None:
    world = story.world
    project = f"/projects/{world.one('project').id}"
    rules = f"{project}/approval_rules"
    everywhere = {"name": "E", "approvals_required": 1, "applies_to_all_protected_branches": True}
    number = story.call("maintainer", "POST", rules, everywhere)["id"]
    one = {"applies_to_all_protected_branches": False, "protected_branch_ids": [world.one("protected_branch").id]}
    for _ in range(2):
        story.call("maintainer", "PUT", f"{rules}/{number}", {**everywhere, **one})
    story.call("maintainer", "PUT", f"{rules}/{number}", {"name": "E", "user_ids": [world.actors["author"].id]})
    story.call("maintainer", "GET", f"{rules}/{number}")
    groups = {"group_ids": [world.one("approver_group").id, world.one("hidden_group").id]}
    half = story.call("admin", "POST", rules, {"name": "H", "approvals_required": 1, **groups})["id"]
    story.call("maintainer", "GET", f"{rules}/{half}")


def _half_hidden(story: Story) -> None:
    world, person = story.world, story.world.actors
    rules = f"/projects/{world.one('project').id}/approval_rules"
    groups = {"group_ids": [world.one("approver_group").id, world.one("hidden_group").id]}
    half = story.call("admin", "POST", rules, {"name": "Half", "approvals_required": 1, **groups})["id"]
    story.call("maintainer", "GET", f"{rules}?per_page=100")
    change = {"name": "Half", "approvals_required": 1, "remove_hidden_groups": False, "user_ids": []}
    story.call("maintainer", "PUT", f"{rules}/{half}", {**change, "group_ids": groups["group_ids"][:1]})
    story.call("admin", "GET", f"{rules}/{half}")
    story.call("admin", "DELETE", f"{rules}/{half}")
    users = {"user_ids": [person[name].id for name in ("maintainer", "approver")]}
    made = story.call("maintainer", "POST", rules, {"name": "2024", "approvals_required": 1, **users})
    story.call("maintainer", "DELETE", f"{rules}/{made['id']}")


def _read_and_renamed(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    sent: dict[str, Any] = {"name": "Morning", "approvals_required": 1, "user_ids": ids_of(story, "maintainer")}
    rule = f"{rules}/{story.call('maintainer', 'POST', rules, sent)['id']}"
    for reader in ("maintainer", "owner"):
        story.call(reader, "GET", rule)
    usernames = {"user_ids": [], "usernames": [story.world.actors["approver"].username]}
    story.call("maintainer", "PUT", rule, {"name": "MORNING", "approvals_required": 1, **usernames})
    story.call("maintainer", "DELETE", rule)


def _narrowed_and_left_alone(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    sent: dict[str, Any] = {"name": "Evening", "approvals_required": 1}
    users, hidden = {"user_ids": ids_of(story, "approver")}, {"group_ids": [story.world.one("hidden_group").id]}
    branches = {"protected_branch_ids": [story.world.one("protected_branch").id]}
    everywhere = "applies_to_all_protected_branches"
    rule = f"{rules}/{story.call('owner', 'POST', rules, {**sent, **users, **hidden, everywhere: True})['id']}"
    story.call("maintainer", "PUT", rule, {**sent, **users, **branches, everywhere: False})
    story.call("maintainer", "PUT", rule, {**sent, **users, "group_ids": [], "remove_hidden_groups": False})
    story.call("owner", "GET", rule)
    usernames = [story.world.actors["second_approver"].username]
    story.call("maintainer", "PUT", rule, {**sent, "user_ids": [], "usernames": usernames})
    story.call("owner", "GET", f"{rules}?per_page=1")
    story.call("maintainer", "DELETE", rule)


def _no_usernames_and_full_pages(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    both: dict[str, Any] = rule_body("Of both", 1, user_ids=ids_of(story, "approver", "second_approver"), group_ids=[])
    rule = f"{rules}/{story.call('owner', 'POST', rules, both)['id']}"
    story.call("owner", "PUT", rule, {**both, "user_ids": ids_of(story, "approver"), "usernames": []})
    for page in range(1, len(story.read(f"{rules}?per_page=50")) + 2):
        story.call("maintainer", "GET", f"{rules}?page={page}&per_page=1")
    story.call("owner", "DELETE", rule)


def _writes_at_once(story: Story) -> None:
    rules = f"{at(story, 'public_project')}/approval_rules"
    made: list[Any] = [story.call("owner", "POST", rules, {"name": name, "approvals_required": 1}) for name in "XY"]
    story.at_once(
        *(("owner", "PUT", f"{rules}/{one['id']}", {"name": f"{one['id']}", "approvals_required": 2}) for one in made)
    )
    story.call("owner", "GET", f"{rules}?page=1&per_page=50")
    story.at_once(("owner", "POST", rules, rule_body("A", 1)), ("admin", "POST", rules, rule_body("B", 1)))
    story.count(rules)
    # Either of the two may come first: in the end neither is there.
    for rule in story.read(rules):
        story.call("owner", "DELETE", f"{rules}/{rule['id']}")


def _deleted_while_it_is_changed(story: Story) -> None:
    rules = f"{at(story, 'project')}/approval_rules"
    sent = rule_body("Short", 1, user_ids=ids_of(story, "approver"), group_ids=[])
    rule = f"{rules}/{story.call('owner', 'POST', rules, sent)['id']}"
    story.at_once(("owner", "PUT", rule, {**sent, "approvals_required": 2}), ("maintainer", "DELETE", rule, None))
    story.call("owner", "GET", rule)


def _every_caller(story: Story) -> None:
    for project in ("project", "subgroup_project"):
        for place in (at(story, project), at_path(story, project)):
            rules = f"{place}/approval_rules"
            for actor in EVERYBODY:
                story.call(actor, "GET", f"{rules}?page=1&per_page=9")
            made = story.call("maintainer", "POST", rules, rule_body("Of a form", 1))
            story.call("maintainer", "DELETE", f"{rules}/{made['id']}")
            story.call("maintainer", "GET", f"{rules}?page=1&per_page=9")


def _null_and_hidden_groups(story: Story) -> None:
    rules = f"{at(story, 'fresh_project')}/approval_rules"
    users = {"user_ids": ids_of(story, "approver")}
    made_rule(story, "maintainer", rules, **users, usernames=None)
    hidden, visible = (story.world.one(name).id for name in ("hidden_group", "approver_group"))
    rule = f"{rules}/{made_rule(story, 'admin', rules, **users, group_ids=[hidden, visible])['id']}"
    sent = rule_body("Newer", 1, **users, group_ids=[visible], remove_hidden_groups=True)
    story.call("maintainer", "PUT", rule, sent)
    second = story.world.one("second_approver_group").id
    story.call("maintainer", "PUT", rule, {**sent, "group_ids": [visible, second]})
    story.call("maintainer", "PUT", rule, {**sent, "approvals_required": 7, "group_ids": {"of": visible}})
    story.call("maintainer", "GET", rule)
    made_rule(story, "maintainer", rules, **users, rule_type="regular")
