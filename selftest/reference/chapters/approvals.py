"""The chapter of approvals: approve, unapprove and reset, and what status and state show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.reference.identity import Role, Visibility
from conformance.reference.repositories import NewCommit
from selftest.reference.chapters.new_places import STAFF, new_group, new_project
from selftest.reference.chapters.places import (
    EVERYBODY,
    at,
    at_path,
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

_NOBODY: dict[str, Any] = {"user_ids": [], "group_ids": []}
_OTHER_SHA = "c0ffee11" * 5


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _two_merge_requests,
        _passwords_that_are_almost_right,
        _numbers_and_almost_the_head,
        _resets_and_passwords,
        _in_new_projects,
        _a_guests_reset,
        _the_third_approver,
        _passwords_beside_shas,
        _the_second_password,
        _a_new_head,
        _a_rule_of_two,
        _resets_beside_a_rule,
        _a_password_once,
        _a_reset_by_the_bot_of_a_group,
        _the_head_for_a_password,
        _the_head_of_another_project,
        _the_password_of_the_author,
        _beside_a_guarded_project,
        _a_bot_by_the_path,
        _named_and_in_a_group,
        _a_password_in_vain,
        _a_password_until_it_is_switched_off,
        _every_caller,
        _taken_back_in_one_project,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (
        _two_at_once,
        _one_twice_at_once,
        _taken_back_beside_others,
        _a_reset_beside_an_approval,
        _two_readers_at_once,
    ):
        chapter(story)


def _two_merge_requests(story: Story) -> None:
    first = story.world.one("merge_request").extra
    second = story.world.one("second_merge_request").extra
    places = [f"{at(story, 'project')}/merge_requests/{one['iid']}" for one in (first, second)]
    place, sha = places[0], str(first["sha"])
    rule = rule_body("Two of us", 2, user_ids=ids_of(story, "approver", "second_approver"))
    story.call("maintainer", "POST", f"{place}/approval_rules", rule)

    def look() -> None:
        for each in places:
            story.call("developer", "GET", f"{each}/approvals")
            story.call("developer", "GET", f"{each}/approval_state")
        story.call("approver", "GET", f"{place}/approval_state")
        story.call("developer", "GET", f"{place}/approvals")

    look()
    shas = (sha[:8], sha + "0", ("0" if sha[0] != "0" else "1") + sha[1:], str(second["sha"]), "1" * 40)
    for wrong in shas:
        for actor in ("approver", "admin"):
            story.call(actor, "POST", f"{place}/approve", {"sha": wrong})
    look()
    story.call("approver", "POST", f"{place}/approve", {"sha": sha})
    look()
    story.call("second_approver", "POST", f"{place}/approve")
    story.call("approver", "POST", f"{places[1]}/approve")
    story.call("owner", "POST", f"{place}/approve", {"sha": "1" * 40})
    look()
    story.call("second_approver", "POST", f"{place}/unapprove")
    look()
    story.call("approver", "POST", f"{place}/unapprove")
    story.call("approver", "POST", f"{place}/approve", {"sha": "1" * 40})
    look()
    story.call("approver", "POST", f"{place}/approve")
    look()
    for bot in ("project_bot", "group_bot", "project_bot"):
        story.call("second_approver", "POST", f"{place}/approve")
        story.call("owner", "PUT", f"{place}/reset_approvals")
        story.call(bot, "PUT", f"{place}/reset_approvals")
        look()
    last = story.world.one("merge_request").id
    for number in (last, 7, 8, 9, 99):
        story.call("developer", "GET", f"{at(story, 'project')}/merge_requests/{number}/approvals")
        story.call("developer", "GET", f"{at(story, 'subgroup_project')}/merge_requests/{number}/approvals")
    for project in ("subgroup_project", "inner_project"):  # the latter has no merge request
        story.call("developer", "GET", f"{at(story, project)}/merge_requests/1/approvals")


def _passwords_that_are_almost_right(story: Story) -> None:
    known = story.world.one("password_merge_request").extra
    place = f"{at(story, 'guarded_project')}/merge_requests/{known['iid']}"
    own, other = story.world.actors["approver"].password, story.world.actors["owner"].password
    for password in ("", other, own[:6], own.upper(), "no"):
        story.call("approver", "POST", f"{place}/approve", {"approval_password": password})
    story.call("owner", "POST", f"{place}/approve")
    story.call("approver", "POST", f"{place}/approve", {"sha": known["sha"]})
    story.call("developer", "GET", f"{place}/approvals")


def _numbers_and_almost_the_head(story: Story) -> None:
    one = story.world.one("second_merge_request")
    place = f"{at(story, 'project')}/merge_requests"
    head = str(one.extra["sha"])
    story.call("approver", "POST", f"{place}/{one.id}/approve")
    middle = f"{head[:20]}{'1' if head[20] == '0' else '0'}{head[21:]}"
    story.call("approver", "POST", f"{place}/{one.extra['iid']}/approve", {"sha": middle})
    for _ in range(2):
        story.call("approver", "POST", f"{place}/{one.extra['iid']}/approve")
        story.call("approver", "POST", f"{place}/{one.extra['iid']}/unapprove")


def _resets_and_passwords(story: Story) -> None:
    project = at(story, "project")
    review = f"{project}/merge_requests/{story.world.one('merge_request').extra['iid']}"
    other = story.world.one("fuzz_merge_request").extra
    elsewhere = f"/projects/{other['project_id']}/merge_requests/{other['iid']}"
    for name in ("approver", "second_approver"):
        story.call(name, "POST", f"{review}/unapprove")
        story.call(name, "POST", f"{review}/approve")
    story.call("maintainer", "GET", f"{elsewhere}/approvals")
    story.call("maintainer", "PUT", f"{elsewhere}/reset_approvals")
    story.call("approver", "PUT", f"{review}/reset_approvals")
    story.call("owner", "GET", f"{review}/approvals")
    story.call("approver", "POST", f"{review}/unapprove")
    story.call("owner", "GET", f"{review}/approval_state")
    head = story.service.repositories.branches[story.world.one("project").id, "main"].sha
    story.call("approver", "POST", f"{review}/approve", {"sha": head})
    guarded = story.world.one("password_merge_request").extra
    path = f"/projects/{guarded['project_id']}/merge_requests/{guarded['iid']}"
    story.call("approver", "POST", f"{path}/approve", {"approval_password": story.world.actors["approver"].password})
    story.call("approver", "POST", f"{path}/unapprove")
    story.call("approver", "POST", f"{path}/approve")


def _taken_back_in_one_project(story: Story) -> None:
    here, there = story.world.one("merge_request").extra, story.world.one("fuzz_merge_request").extra
    places = [
        f"{at(story, 'project')}/merge_requests/{here['iid']}",
        f"/projects/{there['project_id']}/merge_requests/{there['iid']}",
    ]
    for place in places:
        story.call("approver", "POST", f"{place}/approve")
    story.call("approver", "POST", f"{places[0]}/unapprove")
    for place in places:
        story.call("owner", "GET", f"{place}/approvals")


def _in_new_projects(story: Story) -> None:
    group = new_group(story, "reviews-of-approvals")
    one, other = (new_project(story, group, name) for name in ("first", "second"))
    _approving(one)
    _resetting(one)
    story.call("approver", "POST", f"{other.merge_request()}/approve")
    story.call("maintainer", "GET", f"{one.merge_request()}/approval_state")
    namesake = new_project(story, new_group(story, "inner", group), "first", Visibility.PUBLIC)
    story.call("", "GET", f"{namesake.merge_request()}/approval_state")


def _approving(place: NewProject) -> None:
    story, path, repositories = place.story, place.merge_request(), place.story.service.repositories
    rule = story.call("maintainer", "POST", place.rules, place.body("approver", "second_approver"))
    story.call("maintainer", "GET", f"{path}/approvals")
    for name in ("approver", "second_approver", "maintainer"):
        shown = story.call(name, "POST", f"{path}/approve")
    story.remember(f"opened {shown['created_at'] == story.service.present.timestamp(place.opened[0].created_at)}")
    story.call("maintainer", "GET", f"{place.merge_request(2)}/approvals")
    for name in STAFF:
        story.call(name, "POST", f"{path}/unapprove")
    story.call("maintainer", "DELETE", f"{place.rules}/{rule['id']}")
    old = repositories.head_of(place.opened[0])
    author = story.service.identities.users[story.world.actors["author"].id]
    repositories.commit(place.project, NewCommit(branch="one", author=author, file_path="more"))
    story.call("approver", "POST", f"{path}/approve", {"sha": old})


def _resetting(place: NewProject) -> None:
    story, path, identities = place.story, place.merge_request(), place.story.service.identities
    bot = identities.create_bot(place.project, "Resets", Role.MAINTAINER)
    token = identities.issue_token(bot).value
    rule = story.call("maintainer", "POST", place.rules, place.body("approver"))
    story.call("approver", "POST", f"{path}/approve")
    story.call("approver", "PUT", f"{path}/reset_approvals")
    story.call("second_approver", "POST", f"{path}/approve")
    story.call("", "PUT", f"{path}/reset_approvals", token=token)
    story.call("maintainer", "GET", f"{path}/approvals")
    story.call("maintainer", "DELETE", f"{place.rules}/{rule['id']}")


def _a_guests_reset(story: Story) -> None:
    story.call("guest", "PUT", f"{merge_request_at(story, 'merge_request')}/reset_approvals")


def _the_third_approver(story: Story) -> None:
    review, actors = merge_request_at(story, "second_merge_request"), ("approver", "second_approver")
    for actor in actors:
        story.call(actor, "POST", f"{review}/approve")
    story.call("maintainer", "POST", f"{review}/approve", {"sha": "0" * 40})
    story.call("maintainer", "POST", f"{review}/approve")
    story.call("owner", "GET", f"{review}/approvals")
    for actor in (*actors, "maintainer"):
        story.call(actor, "POST", f"{review}/unapprove")


def _passwords_beside_shas(story: Story) -> None:
    review = f"/projects/{story.world.one('guarded_project').id}/merge_requests/1"
    password = {"approval_password": story.world.actors["approver"].password}
    story.call("approver", "POST", f"{review}/unapprove", password)
    story.call("approver", "POST", f"{review}/approve", {**password, "sha": _OTHER_SHA})
    story.call("approver", "POST", f"{review}/approve", password)
    story.call("approver", "POST", f"{review}/unapprove")


def _taken_back_beside_others(story: Story) -> None:
    review = f"/projects/{story.world.one('project').id}/merge_requests/3"
    story.call("maintainer", "GET", f"{review}/approval_state")
    made_rule(story, "maintainer", f"{review}/approval_rules", user_ids=[id_of(story, "approver")])
    story.call("maintainer", "GET", f"{review}/approval_state")
    story.call("project_bot", "PUT", f"{review}/reset_approvals")
    story.call("developer", "PUT", f"{review}/reset_approvals")
    story.call("approver", "POST", f"{review}/approve")
    story.call("second_approver", "POST", f"{review}/approve", {"sha": _OTHER_SHA})
    story.call("second_approver", "POST", f"{review}/approve")
    story.call("approver", "POST", f"{review}/unapprove")
    story.call("maintainer", "GET", f"{review}/approvals")
    story.call("approver", "POST", f"{review}/approve")
    story.call("project_bot", "PUT", f"{review}/reset_approvals")
    story.call("approver", "POST", f"{review}/approve")
    story.call("maintainer", "GET", f"{review}/approval_state")
    # Another caller comes first each time, and one call arrives while the approval is being withdrawn.
    others = ("second_approver", "developer", "maintainer", "owner")
    for _ in range(3):
        meanwhile = ((other, "POST", f"{review}/approve", None) for other in others)
        story.at_once(("approver", "POST", f"{review}/unapprove", None), *meanwhile)
        story.remember(str(sorted(one["user"]["id"] for one in story.read(f"{review}/approvals")["approved_by"])))
        story.call("project_bot", "PUT", f"{review}/reset_approvals")
        story.call("approver", "POST", f"{review}/approve")


def _the_second_password(story: Story) -> None:
    iid = story.world.one("password_merge_request").extra["iid"]
    guarded = f"{at(story, 'guarded_project')}/merge_requests/{iid}"
    password = story.world.actors["approver"].password
    story.call("approver", "POST", f"{guarded}/approve", {"approval_password": password})
    story.call("second_approver", "POST", f"{guarded}/approve")
    story.call("approver", "POST", f"{guarded}/unapprove")


def _a_new_head(story: Story) -> None:
    world = story.world
    project = f"/projects/{world.one('project').id}"
    known = world.one("merge_request").extra
    place = f"{project}/merge_requests/{known['iid']}"
    rule = {"name": "Named", "approvals_required": 1, "user_ids": [world.actors["approver"].id]}
    story.call("maintainer", "POST", f"{place}/approval_rules", rule)
    for _ in range(2):
        for actor in ("approver", "developer"):
            story.call(actor, "POST", f"{place}/approve")
        story.call("maintainer", "GET", f"{place}/approvals")
        story.call("project_bot", "PUT", f"{place}/reset_approvals")
        story.call("maintainer", "GET", f"{place}/approvals")
    file = {"branch": known["source_branch"], "content": "x", "commit_message": "Further"}
    story.call("author", "POST", f"{project}/repository/files/further.txt", file)
    story.call("approver", "POST", f"{place}/approve", {"sha": known["sha"]})
    guarded = world.one("password_merge_request").extra
    passworded = f"/projects/{guarded['project_id']}/merge_requests/{guarded['iid']}"
    story.call("approver", "POST", f"{passworded}/approve", {"sha": guarded["sha"]})


def _a_rule_of_two(story: Story) -> None:
    place = cleared_merge_request(story)
    users = [story.world.actors[name].id for name in ("approver", "second_approver")]
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    rule = {**_NOBODY, "name": "Both", "approvals_required": 2, "user_ids": users}
    story.call("maintainer", "POST", f"{place}/approval_rules", rule)
    for actor in ("approver", "second_approver", "maintainer"):
        story.call(actor, "POST", f"{place}/approve")
    story.call("maintainer", "GET", f"{place}/approval_state")
    story.call("second_approver", "POST", f"{place}/approve", {"sha": "1" * 40})
    story.call("approver", "PUT", f"{place}/reset_approvals")
    story.call("maintainer", "GET", f"{place}/approvals")
    for action in ("unapprove", "approve", "unapprove"):
        story.call("approver", "POST", f"{place}/{action}")
    story.call("maintainer", "GET", f"{place}/approvals")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    story.call("maintainer", "GET", f"{place}/approvals")


def _resets_beside_a_rule(story: Story) -> None:
    place = cleared_merge_request(story)
    sent: dict[str, Any] = {"name": "R", "approvals_required": 2, "user_ids": ids_of(story, "approver")}
    story.call("maintainer", "POST", f"{place}/approval_rules", sent)
    for actor in ("approver", "second_approver"):
        story.call(actor, "POST", f"{place}/approve")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    story.call("maintainer", "GET", f"{place}/approvals")


def _a_password_once(story: Story) -> None:
    known = story.world.one("password_merge_request").extra
    place = f"{at(story, 'guarded_project')}/merge_requests/{known['iid']}"
    password = {"approval_password": story.world.actors["second_approver"].password}
    for action, body in (("approve", password), ("unapprove", None), ("approve", None)):
        story.call("second_approver", "POST", f"{place}/{action}", body)


def _a_reset_by_the_bot_of_a_group(story: Story) -> None:
    place = cleared_merge_request(story)
    for actor in ("approver", "second_approver"):
        story.call(actor, "POST", f"{place}/approve")
    story.call("approver", "POST", f"{place}/approve", {"sha": "ab" * 20})
    story.call("maintainer", "GET", f"{place}/approvals")
    story.call("group_bot", "PUT", f"{place}/reset_approvals")
    story.call("maintainer", "GET", f"{place}/approvals")


def _the_head_for_a_password(story: Story) -> None:
    known = story.world.one("password_merge_request").extra
    project = story.world.one("guarded_project").id
    place = f"/projects/{project}/merge_requests/{known['iid']}"
    repositories = story.service.repositories
    head = repositories.head_of(next(one for one in repositories.merge_requests.values() if one.project_id == project))
    story.call("approver", "POST", f"{place}/approve", {"sha": head})


def _the_head_of_another_project(story: Story) -> None:
    place, other = cleared_merge_request(story, "merge_request"), story.world.one("sibling_merge_request").extra
    story.call("approver", "POST", f"{place}/approve", {"sha": other["sha"]})


def _the_password_of_the_author(story: Story) -> None:
    place, password = merge_request_at(story, "password_merge_request"), story.world.actors["author"].password
    story.call("approver", "POST", f"{place}/approve", {"approval_password": password})


def _beside_a_guarded_project(story: Story) -> None:
    place = merge_request_at(story, "sibling_merge_request")
    for action in ("approve", "unapprove"):
        story.call("approver", "POST", f"{place}/{action}")


def _two_at_once(story: Story) -> None:
    place = merge_request_at(story, "second_merge_request")
    story.at_once(("owner", "POST", f"{place}/approve", {}), ("admin", "POST", f"{place}/approve", {}))
    story.count(f"{place}/approvals")
    # Either of the two may come first: in the end neither is there.
    cleared_merge_request(story)


def _one_twice_at_once(story: Story) -> None:
    place = cleared_merge_request(story)
    story.at_once(*(("approver", "POST", f"{place}/approve", {}) for _ in range(2)))
    story.count(f"{place}/approvals")


def _every_caller(story: Story) -> None:
    for project in ("project", "subgroup_project"):
        for place in (at(story, project), at_path(story, project)):
            for actor in EVERYBODY:
                story.call(actor, "GET", f"{place}/merge_requests/1/approval_state")
                story.call(actor, "PUT", f"{place}/merge_requests/1/reset_approvals")


def _a_bot_by_the_path(story: Story) -> None:
    story.call("project_bot", "PUT", f"{at(story, 'project')}/merge_requests/999/reset_approvals")
    iid = story.world.one("second_merge_request").extra["iid"]
    story.call("project_bot", "PUT", f"{at_path(story, 'project')}/merge_requests/{iid}/reset_approvals")


def _named_and_in_a_group(story: Story) -> None:
    place, group = cleared_merge_request(story), story.world.one("approver_group").id
    rules = f"{place}/approval_rules"
    sent = rule_body("Twice", 2, user_ids=ids_of(story, "approver"), group_ids=[group])
    rule = story.call("maintainer", "POST", rules, sent)
    story.call("approver", "POST", f"{place}/approve")
    story.call("maintainer", "DELETE", f"{rules}/{rule['id']}")
    story.call("project_bot", "PUT", f"{place}/reset_approvals")
    rule = story.call("maintainer", "POST", rules, rule_body("Once", 1, user_ids=[], group_ids=[group]))
    password = {"approval_password": story.world.actors["approver"].password}
    story.call("approver", "POST", f"{place}/approve", password)
    story.call("maintainer", "GET", f"{rules}/{rule['id']}")
    story.call("maintainer", "GET", f"{place}/approval_state")


def _a_password_in_vain(story: Story) -> None:
    place = merge_request_at(story, "password_merge_request")
    for actor in ("approver", "second_approver"):
        story.call(actor, "POST", f"{place}/unapprove")
    rule = made_rule(story, "maintainer", f"{place}/approval_rules", user_ids=ids_of(story, "approver"))
    story.call("approver", "POST", f"{place}/approve", {"approval_password": "wrong"})
    story.call("maintainer", "GET", f"{place}/approval_state")
    story.call("maintainer", "DELETE", f"{place}/approval_rules/{rule['id']}")


def _a_password_until_it_is_switched_off(story: Story) -> None:
    place, configuration = (
        merge_request_at(story, "password_merge_request"),
        f"{at(story, 'guarded_project')}/approvals",
    )
    password = {"approval_password": story.world.actors["approver"].password}
    story.call("approver", "POST", f"{place}/approve", password)
    story.call("maintainer", "POST", configuration, {"require_password_to_approve": False})
    story.call("second_approver", "POST", f"{place}/approve")
    story.call("maintainer", "POST", configuration, {"require_password_to_approve": True})
    for actor in ("approver", "second_approver"):
        story.call(actor, "POST", f"{place}/unapprove")


def _a_reset_beside_an_approval(story: Story) -> None:
    place = cleared_merge_request(story)
    story.call("approver", "POST", f"{place}/approve")
    story.at_once(
        ("second_approver", "POST", f"{place}/approve", {}), ("project_bot", "PUT", f"{place}/reset_approvals", None)
    )
    # Whichever call comes first: the second approver is either there or not.
    left = {one["user"]["id"] for one in story.read(f"{place}/approvals")["approved_by"]}
    story.remember(f"reset beside an approval: {id_of(story, 'approver') in left}")
    cleared_merge_request(story)


def _two_readers_at_once(story: Story) -> None:
    places = [merge_request_at(story, name) for name in ("merge_request", "second_merge_request")]
    first, second = (("GET", f"{place}/approvals", None) for place in places)
    shown = during(story, first, second)
    story.remember(f"read at once: {[one.json()['iid'] for one in shown]}")
