"""Chapters of the story that shows foreign faults: approvals and approval rules, in projects made for that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.identity import NewSubject, Role, Visibility
from conformance.reference.repositories import NewCommit, NewMergeRequest

if TYPE_CHECKING:
    from conformance.reference.identity import Group, Project
    from conformance.reference.repositories import MergeRequest
    from selftest.reference.story import Story

_STAFF = {"maintainer": Role.MAINTAINER, "approver": Role.DEVELOPER, "second_approver": Role.DEVELOPER}


@dataclass
class _Place:
    """A new project with three merge requests, of which two come from one branch."""

    story: Story
    project: Project
    opened: list[MergeRequest]

    @property
    def rules(self) -> str:
        return f"/projects/{self.project.id}/approval_rules"

    def merge_request(self, place: int = 0) -> str:
        return f"/projects/{self.project.id}/merge_requests/{self.opened[place].iid}"

    def body(self, *names: str, **more: Any) -> dict[str, Any]:
        """Return a rule that these actors approve."""
        ids = [self.story.world.actors[name].id for name in names]
        return {"name": "Reviews", "approvals_required": 1, "user_ids": ids, "group_ids": [], **more}


def slips_of_reviews(story: Story) -> None:
    """Tell all of them."""
    group = story.service.identities.create_group(NewSubject(path="reviews"))
    inner = story.service.identities.create_group(NewSubject(path="inner", within=group))
    one, other = _place(story, group, "first"), _place(story, group, "second")
    for chapter in (_approving, _resetting, _rules_of_merge_requests, _copies, _rules):
        chapter(one)
    story.call("approver", "POST", f"{other.merge_request()}/approve")
    story.call("maintainer", "GET", f"{one.merge_request()}/approval_state")
    namesake = _place(story, inner, "first", Visibility.PUBLIC)
    story.call("", "GET", f"{namesake.merge_request()}/approval_state")
    story.call("maintainer", "GET", "/projects/reviews%2Finner%2Ffirst/approval_rules")


def _place(story: Story, group: Group, path: str, visibility: Visibility = Visibility.PRIVATE) -> _Place:
    identities, repositories = story.service.identities, story.service.repositories
    project = identities.create_project(NewSubject(path=path, within=group, visibility=visibility))
    author = identities.users[story.world.actors["author"].id]
    for name, role in _STAFF.items():
        identities.add_member(project, identities.users[story.world.actors[name].id], role)
    repositories.commit(project, NewCommit(branch="main", author=author, file_path="README.md"))
    for branch in ("one", "two", "stable"):
        repositories.create_branch(project, branch, "main")
        repositories.commit(project, NewCommit(branch=branch, author=author, file_path=branch))
    opened = [
        repositories.open_merge_request(
            project, NewMergeRequest(source_branch=source, target_branch=target, title=source, author=author)
        )
        for source, target in (("one", "main"), ("two", "main"), ("one", "stable"))
    ]
    # Long enough ago that every other moment is another one.
    before = opened[0].created_at - timedelta(days=1)
    opened = [replace(one, created_at=before, updated_at=before) for one in opened]
    repositories.merge_requests.update({(project.id, one.iid): one for one in opened})
    return _Place(story, project, opened)


def _approving(place: _Place) -> None:
    story, path, repositories = place.story, place.merge_request(), place.story.service.repositories
    rule = story.call("maintainer", "POST", place.rules, place.body("approver", "second_approver"))
    story.call("maintainer", "GET", f"{path}/approvals")
    for name in ("approver", "second_approver", "maintainer"):
        shown = story.call(name, "POST", f"{path}/approve")
    story.remember(f"opened {shown['created_at'] == story.service.present.timestamp(place.opened[0].created_at)}")
    story.call("maintainer", "GET", f"{place.merge_request(2)}/approvals")
    for name in _STAFF:
        story.call(name, "POST", f"{path}/unapprove")
    story.call("maintainer", "DELETE", f"{place.rules}/{rule['id']}")
    old = repositories.head_of(place.opened[0])
    author = story.service.identities.users[story.world.actors["author"].id]
    repositories.commit(place.project, NewCommit(branch="one", author=author, file_path="more"))
    story.call("approver", "POST", f"{path}/approve", {"sha": old})


def _resetting(place: _Place) -> None:
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


def _rules_of_merge_requests(place: _Place) -> None:
    story, path, service = place.story, f"{place.merge_request(1)}/approval_rules", place.story.service
    user = story.world.actors["approver"].id
    service.merge_request_approval_rules.add_system_rule(place.opened[1], "Owners", RuleType.CODE_OWNER, (user,))
    own = story.call("maintainer", "POST", path, place.body("approver"))
    change = {"name": "Rules 🦉", "usernames": [story.world.actors["second_approver"].username], "group_ids": []}
    story.call("maintainer", "PUT", f"{path}/{own['id']}", {**change, "user_ids": []})
    story.call("maintainer", "DELETE", f"{path}/{own['id']}")
    story.call("maintainer", "GET", path)
    story.call("maintainer", "PUT", f"{path}/{own['id']}", {"name": "Back"})


def _copies(place: _Place) -> None:
    story, source = place.story, place.story.call("maintainer", "POST", place.rules, place.body("approver"))
    body = {"name": "Copy", "approvals_required": 2, "approval_project_rule_id": source["id"]}
    paths = [f"{place.merge_request(number)}/approval_rules" for number in (0, 1)]
    copies = [story.call("maintainer", "POST", path, body) for path in paths]
    story.call("maintainer", "PUT", f"{paths[0]}/{copies[0]['id']}", place.body("second_approver"))
    story.call("maintainer", "GET", f"{place.rules}/{source['id']}")
    story.call("maintainer", "DELETE", f"{paths[0]}/{copies[0]['id']}")
    story.call("maintainer", "GET", paths[1])


def _rules(place: _Place) -> None:
    story = place.story
    hidden = place.body("approver", group_ids=[story.world.one("hidden_group").id])
    rule = story.call("admin", "POST", place.rules, hidden)
    for name in ("admin", "maintainer"):
        story.call(name, "GET", f"{place.rules}/{rule['id']}")
    default = story.call("maintainer", "GET", place.rules)[0]
    same = {name: default[name] for name in ("name", "approvals_required")}
    story.call("maintainer", "PUT", f"{place.rules}/{default['id']}", same)
