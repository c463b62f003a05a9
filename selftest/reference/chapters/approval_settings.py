"""The chapter of the approval settings of groups and projects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from conformance.reference.identity import Role
from conformance.reference.server import ask
from selftest.reference.chapters.new_places import tenants
from selftest.reference.chapters.places import EVERYBODY, NO_GUESTS, SETTING, at, at_path, during

if TYPE_CHECKING:
    from selftest.reference.story import Story

_AUTHOR, _COMMITTER = "allow_author_approval", "allow_committer_approval"


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _each_setting_on_and_off,
        _switched_off_together,
        _a_neighbour,
        _all_at_once_and_back,
        _names_of_places,
        _shown_by_the_group,
        _at_first,
        _again_and_again,
        _half_of_an_update_refused,
        _written_by_path,
        _null,
        _a_project_of_a_user,
        _calls_that_are_repeated,
        _one_that_is_so_already,
        _combinations_and_numbers,
        _refused_and_required,
        _the_bot_of_a_project_within,
        _a_word_and_a_user,
        _every_caller,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_two_at_once, _a_group_and_a_project_at_once, _a_refused_one_beside_another):
        chapter(story)


def _each_setting_on_and_off(story: Story) -> None:
    setting = "merge_request_approval_setting"
    places = ("project", "sibling_project", "guarded_project", "group", "sibling_group", "fresh_group")
    for place in ("fresh_project", "fresh_group"):
        actor = "owner" if place == "fresh_group" else "maintainer"
        for value in (True, False):
            for name in ("allow_author_approval", "allow_committer_approval", "retain_approvals_on_push"):
                story.call(actor, "PUT", f"{at(story, place)}/{setting}", {name: value})
                for other in (place, *places):
                    story.call("owner", "GET", f"{at(story, other)}/{setting}")


def _switched_off_together(story: Story) -> None:
    setting = f"{at(story, 'sibling_group')}/{SETTING}"
    story.call("owner", "PUT", setting, {"allow_author_approval": True, "allow_committer_approval": True})
    story.call("owner", "PUT", setting, {"allow_author_approval": False, "allow_committer_approval": False})


def _a_neighbour(story: Story) -> None:
    one, other = (f"/projects/{project.id}" for project in story.world.many("allowlist_projects")[:3:2])
    story.call("owner", "PUT", f"{one}/merge_request_approval_setting", {"allow_committer_approval": True})
    story.call("owner", "GET", f"{other}/merge_request_approval_setting")


def _all_at_once_and_back(story: Story) -> None:
    # Each setting gets another value than the initial one. One setting is refused together with others.
    project, group = at(story, "fresh_project"), story.world.one("fresh_group")
    by_path = f"/groups/{quote(group.path or '', safe='')}"
    for place, named in ((f"/groups/{group.id}", by_path), (project, project)):
        setting = f"{place}/merge_request_approval_setting"
        before = story.read(setting)
        free = [name for name in before if not before[name]["locked"] and name != "selective_code_owner_removals"]
        story.call("owner", "PUT", setting, {name: not before[name]["value"] for name in free})
        story.call("owner", "GET", f"{named}/merge_request_approval_setting")
        story.call("owner", "PUT", setting, {})
        story.call("owner", "GET", setting)
        story.call("owner", "PUT", setting, {name: before[name]["value"] for name in free})


def _names_of_places(story: Story) -> None:
    world = story.world
    project = world.one("branch_rule_project")
    by_number, by_path = (
        f"/projects/{project.id}/{SETTING}",
        f"/projects/{quote(project.path or '', safe='')}/{SETTING}",
    )
    story.call("maintainer", "GET", by_path)
    story.call("maintainer", "PUT", by_number, {_AUTHOR: True, _COMMITTER: False})
    story.call("maintainer", "GET", by_path)
    story.call("author", "GET", f"/projects/{world.one('project').id}/{SETTING}")
    story.call("owner", "GET", f"/groups/{quote(world.one('project').path or '', safe='')}/{SETTING}")
    headers = {"private-token": world.actors["maintainer"].token, "content-type": "application/json; charset=utf-8"}
    body = json.dumps({_COMMITTER: True}).encode()
    status, _, content = ask(story.service, "PUT", f"/api/v4{by_number}", "", headers, body)
    story.remember(f"PUT {by_number} with a charset -> {status} {content.decode()}")
    number = world.one("fuzz_group").id
    story.call("owner", "POST", "/groups", {"name": "Digits first", "path": f"{number}-and-more"})
    story.call("owner", "PUT", f"/groups/{number}-and-more/{SETTING}", {_AUTHOR: False})
    story.call("owner", "GET", f"/groups/{number}/{SETTING}")
    identities = story.service.identities
    identities.add_member(
        identities.groups[world.one("subgroup").id], identities.users[world.actors["reporter"].id], Role.OWNER
    )
    story.call("reporter", "GET", f"/groups/{world.one('group').id}/{SETTING}")


def _shown_by_the_group(story: Story) -> None:
    group = f"/groups/{story.world.one('group').id}/merge_request_approval_setting"
    for flag in (False, True):
        own = f"{at_path(story, 'project')}/merge_request_approval_setting"
        story.call("maintainer", "PUT", own, {"allow_author_approval": flag})
        story.call("owner", "GET", group)


def _at_first(story: Story) -> None:
    story.call("maintainer", "GET", f"{at(story, 'project')}/{SETTING}")


def _again_and_again(story: Story) -> None:
    group = f"/groups/{story.world.one('fresh_group').id}/merge_request_approval_setting"
    for value in (True, False, True):
        story.call("owner", "PUT", group, {"allow_author_approval": value})
    story.call("owner", "PUT", group, {"allow_author_approval": True, "allow_committer_approval": True})
    story.call("owner", "PUT", group, {"allow_author_approval": True, "allow_committer_approval": False})
    around = f"/groups/{story.world.one('group').id}/merge_request_approval_setting"
    story.call("maintainer", "PUT", around, {"allow_author_approval": False})


def _half_of_an_update_refused(story: Story) -> None:
    settings = f"/groups/{story.world.one('group').id}/merge_request_approval_setting"
    for author in (False, True):
        sent = {"allow_author_approval": author, "retain_approvals_on_push": "maybe"}
        story.call("owner", "PUT", settings, sent)
        story.call("owner", "GET", settings)


def _written_by_path(story: Story) -> None:
    group, (project, *_) = tenants(story, "tenants-of-settings")
    number, path = (f"/projects/{form}/{SETTING}" for form in (project.id, "tenants-of-settings%2Fone"))
    story.call("maintainer", "PUT", path, {"allow_committer_approval": True})
    story.call("owner", "PUT", f"/groups/{group.id}/{SETTING}", {"allow_author_approval": True})
    story.call("maintainer", "GET", number)
    story.call("maintainer", "PUT", path, {"allow_author_approval": False, "allow_committer_approval": False})
    story.call("maintainer", "GET", number)


def _null(story: Story) -> None:
    place = f"/projects/{story.world.one('fresh_project').id}/merge_request_approval_setting"
    story.call("maintainer", "PUT", place, {"allow_author_approval": None, "allow_committer_approval": True})
    story.call("maintainer", "GET", place)


def _a_project_of_a_user(story: Story) -> None:
    made = story.call("owner", "POST", "/projects", {"name": "set"})
    story.call("owner", "GET", f"/projects/{made['id']}/{SETTING}")


def _calls_that_are_repeated(story: Story) -> None:
    project = f"/projects/{story.world.one('fresh_project').id}/{SETTING}"
    group = f"/groups/{story.world.one('fresh_group').id}/{SETTING}"
    overrides = {"allow_overrides_to_approver_list_per_merge_request": True}
    for sent in (True, False, True):
        story.call("maintainer", "PUT", project, {"allow_committer_approval": sent})
        story.call("maintainer", "GET", project)
    story.call("maintainer", "PUT", project, overrides)
    story.call("maintainer", "PUT", project, {"retain_approvals_on_push": True})
    story.call("maintainer", "GET", project)
    for sent in (True, False):
        story.call("owner", "PUT", group, {"allow_author_approval": sent, "retain_approvals_on_push": "maybe"})
        story.call("owner", "GET", group)


def _one_that_is_so_already(story: Story) -> None:
    project = f"/projects/{story.world.one('fresh_project').id}/{SETTING}"
    now = story.read(project)
    first, second = [name for name in now if name.startswith("allow_") and not now[name]["locked"]][:2]
    both = {first: now[first]["value"], second: not now[second]["value"]}
    story.call("maintainer", "PUT", project, both)
    story.call("maintainer", "GET", project)
    inside = f"/projects/{story.world.one('subgroup_project').id}/{SETTING}"
    group = f"/groups/{story.world.one('group').id}/{SETTING}"
    for actor, place, value in (("maintainer", inside, True), ("owner", group, False)):
        story.call(actor, "PUT", place, {"allow_committer_approval": value})
        story.call(actor, "GET", place)
    story.call("maintainer", "GET", inside)
    story.call("owner", "PUT", group, {"allow_committer_approval": True})
    for value in (False, True):
        story.call("maintainer", "PUT", inside, {"allow_committer_approval": value})
        story.call("owner", "GET", group)


def _combinations_and_numbers(story: Story) -> None:
    group = f"/groups/{story.world.one('fresh_group').id}/{SETTING}"
    author, committer = "allow_author_approval", "allow_committer_approval"
    for values in ((True, True), (False, True), (False, False), (True, True)):
        story.call("owner", "PUT", group, dict(zip((author, committer), values, strict=True)))
    project = story.world.one("workbench").id
    story.call("admin", "PUT", f"/projects/{project}/{SETTING}", {author: False, committer: False})
    story.call("admin", "GET", f"/groups/{project}/{SETTING}")


def _refused_and_required(story: Story) -> None:
    group = f"/groups/{story.world.one('fresh_group').id}/{SETTING}"
    author, committer = "allow_author_approval", "allow_committer_approval"
    story.call("owner", "PUT", group, {author: True, committer: True})
    story.call("owner", "PUT", group, {author: False, committer: "maybe"})
    story.call("owner", "PUT", group, {"require_reauthentication_to_approve": True})
    story.call("owner", "PUT", group, {"require_reauthentication_to_approve": False})
    story.call("maintainer", "PUT", f"{at(story, 'workbench')}/{SETTING}", {author: True, committer: False})


def _the_bot_of_a_project_within(story: Story) -> None:
    setting = f"{at(story, 'group')}/{SETTING}"
    story.call("project_bot", "GET", setting)
    story.call("project_bot", "PUT", setting, {_COMMITTER: True})


def _two_at_once(story: Story) -> None:
    setting = f"{at(story, 'public_project')}/{SETTING}"
    now = story.read(setting)
    # A setting that the group has locked does not change, whichever call comes first.
    one, other = [{name: not now[name]["value"]} for name in now if not now[name]["locked"]][:2]
    story.at_once(("owner", "PUT", setting, one), ("admin", "PUT", setting, other))
    story.count(setting)
    setting = f"{at(story, 'public_group')}/{SETTING}"
    story.at_once(
        ("owner", "PUT", setting, {"allow_author_approval": False}),
        ("admin", "PUT", setting, {"allow_committer_approval": False}),
    )
    story.call("owner", "GET", setting)


def _a_group_and_a_project_at_once(story: Story) -> None:
    places = [f"{at(story, name)}/{SETTING}" for name in ("fresh_group", "workbench")]
    wanted = [not story.read(place)[_COMMITTER]["value"] for place in places]
    story.at_once(*(("owner", "PUT", place, {_COMMITTER: value}) for place, value in zip(places, wanted, strict=True)))
    for place in places:
        story.call("owner", "GET", place)


def _every_caller(story: Story) -> None:
    for project in ("project", "subgroup_project"):
        for place in (at(story, project), at_path(story, project)):
            for actor in EVERYBODY:
                story.call(actor, "GET", f"{place}/{SETTING}")
                story.call(actor, "PUT", f"{place}/{SETTING}", {"allow_committer_approval": actor != "outsider"})
    for group in ("group", "subgroup"):
        for place in (at(story, group), at_path(story, group)):
            for actor in NO_GUESTS:
                story.call(actor, "GET", f"{place}/{SETTING}")
                story.call(actor, "PUT", f"{place}/{SETTING}", {"retain_approvals_on_push": True})


def _a_word_and_a_user(story: Story) -> None:
    for name, value in (("fuzz_project", "maybe"), ("personal_project", True)):
        setting = f"{at(story, name)}/{SETTING}"
        story.call("maintainer", "PUT", setting, {_COMMITTER: value})
        story.call("maintainer", "GET", setting)


def _a_refused_one_beside_another(story: Story) -> None:
    setting = f"{at(story, 'workbench')}/{SETTING}"
    served = {_AUTHOR: not story.read(setting)[_AUTHOR]["value"]}
    during(story, ("PUT", setting, served), ("PUT", setting, {_COMMITTER: "maybe"}))
    story.call("owner", "GET", setting)
