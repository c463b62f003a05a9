"""The chapter of the approval configuration of projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selftest.reference.chapters.places import SETTING, at, at_path, ids_of

if TYPE_CHECKING:
    from selftest.reference.story import Story


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _two_flags,
        _two_projects,
        _selective_removals,
        _read_by_path,
        _beside_a_rule,
        _projects_side_by_side,
        _a_pair_that_is_refused,
        _flags_and_approvers,
        _numbers_and_pairs,
        _one_after_the_other,
        _one_flag_at_a_time,
        _authors_beside_committers,
        _removals_that_were_selective,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_two_flags_at_once, _a_setting_beside_the_configuration):
        chapter(story)


def _two_flags(story: Story) -> None:
    place = f"{at(story, 'project')}/approvals"
    story.call("owner", "POST", place, {"approvals_before_merge": 2, "merge_requests_author_approval": True})
    story.call("owner", "GET", place)


def _two_projects(story: Story) -> None:
    one, other = (f"{at(story, name)}/approvals" for name in ("sibling_project", "guarded_project"))
    for flag in (True, False):
        body = {"merge_requests_disable_committers_approval": flag, "approvals_before_merge": 3 + flag}
        story.call("maintainer", "POST", one, body)
        for actor in ("developer", "maintainer"):
            story.call(actor, "GET", one)
        story.call("maintainer", "GET", other)


def _selective_removals(story: Story) -> None:
    reset, selective = "reset_approvals_on_push", "selective_code_owner_removals"
    place = f"/projects/{story.world.one('branch_rule_project').id}/approvals"
    for change in ({reset: False, selective: True}, {reset: True}, {selective: False}):
        story.call("owner", "POST", place, change)
        story.call("owner", "GET", place)
    story.call("", "GET", f"/projects/{story.world.one('public_project').id}/approvals")


def _read_by_path(story: Story) -> None:
    number, path = f"{at(story, 'project')}/approvals", f"{at_path(story, 'project')}/approvals"
    for flag in (True, False):
        story.call("maintainer", "GET", path)
        story.call("maintainer", "POST", number, {"merge_requests_disable_committers_approval": flag})
    story.call("maintainer", "GET", path)


def _beside_a_rule(story: Story) -> None:
    project = at(story, "project")
    rule: dict[str, Any] = {"name": "Two", "approvals_required": 1}
    rule["group_ids"] = [story.world.one("approver_group").id]
    rule["user_ids"] = ids_of(story, "approver", "second_approver")
    story.call("maintainer", "POST", f"{project}/approval_rules", rule)
    story.call("maintainer", "GET", f"{project}/approvals")


def _projects_side_by_side(story: Story) -> None:
    project, sibling, near = (
        f"/projects/{story.world.one(name).id}/approvals" for name in ("project", "sibling_project", "workbench")
    )
    for change in ({"selective_code_owner_removals": True, "reset_approvals_on_push": False},
                   {"reset_approvals_on_push": True}):  # fmt: skip
        story.call("maintainer", "POST", project, change)
        story.call("maintainer", "GET", project)
    story.call("maintainer", "POST", sibling, {"merge_requests_disable_committers_approval": True})
    story.call("maintainer", "GET", sibling)
    story.call("maintainer", "GET", near)


def _a_pair_that_is_refused(story: Story) -> None:
    place = f"/projects/{story.world.one('fresh_project').id}/approvals"
    pair = {"reset_approvals_on_push": True, "selective_code_owner_removals": True}
    story.call("maintainer", "POST", place, {**pair, "merge_requests_disable_committers_approval": True})
    story.call("maintainer", "GET", place)


def _flags_and_approvers(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}"
    flags = {"merge_requests_author_approval": True, "reset_approvals_on_push": False}
    story.call("owner", "POST", f"{place}/approvals", flags)
    approver = {"user_ids": [story.world.actors["approver"].id]}
    story.call("owner", "POST", f"{place}/approval_rules", {"name": "N", "approvals_required": 1, **approver})
    story.call("owner", "GET", f"{place}/approvals")


def _numbers_and_pairs(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}"
    approver = {"user_ids": [story.world.actors["approver"].id]}
    story.call("owner", "POST", f"{place}/approval_rules", {"name": "L", "approvals_required": 1, **approver})
    reset, selective = "reset_approvals_on_push", "selective_code_owner_removals"
    sent: tuple[dict[str, Any], ...] = (
        {"approvals_before_merge": 2},
        {"approvals_before_merge": 0},
        {reset: False, selective: False},
        {reset: True, selective: True},
    )
    for changes in sent:
        story.call("owner", "POST", f"{place}/approvals", changes)
        story.call("owner", "GET", f"{place}/approvals")


def _one_after_the_other(story: Story) -> None:
    place = f"{at(story, 'workbench')}/approvals"
    reset, selective = "reset_approvals_on_push", "selective_code_owner_removals"
    for changes in ({reset: False}, {selective: True}, {reset: True}):
        story.call("owner", "POST", place, changes)
        story.call("owner", "GET", place)


def _one_flag_at_a_time(story: Story) -> None:
    place = f"{at(story, 'workbench')}/approvals"
    story.call("owner", "POST", place, {"merge_requests_disable_committers_approval": True})
    story.call("owner", "POST", place, {"disable_overriding_approvers_per_merge_request": False})


def _two_flags_at_once(story: Story) -> None:
    place = f"{at(story, 'workbench')}/approvals"
    before = story.read(place)
    flags = ("disable_overriding_approvers_per_merge_request", "merge_requests_disable_committers_approval")
    story.at_once(*(("owner", "POST", place, {flag: not before[flag]}) for flag in flags))
    story.call("owner", "GET", place)


def _authors_beside_committers(story: Story) -> None:
    flags = ("merge_requests_author_approval", "merge_requests_disable_committers_approval")
    place = f"{at(story, 'fuzz_project')}/approvals"
    story.call("maintainer", "POST", place, dict.fromkeys(flags, True))
    story.call("maintainer", "POST", place, dict.fromkeys(flags, False))


def _removals_that_were_selective(story: Story) -> None:
    reset, selective = "reset_approvals_on_push", "selective_code_owner_removals"
    place = f"{at(story, 'fuzz_project')}/approvals"
    for change in ({reset: False, selective: True}, {selective: False}, {reset: True}, {reset: False}):
        story.call("maintainer", "POST", place, change)
    story.call("maintainer", "GET", place)


def _a_setting_beside_the_configuration(story: Story) -> None:
    place, name = at(story, "fuzz_project"), "allow_committer_approval"
    value = not story.read(f"{place}/{SETTING}")[name]["value"]
    story.at_once(
        ("owner", "POST", f"{place}/approvals", {"approvals_before_merge": 1}),
        ("maintainer", "PUT", f"{place}/{SETTING}", {name: value}),
    )
    story.call("owner", "GET", f"{place}/{SETTING}")
