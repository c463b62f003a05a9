"""Groups and projects that chapters create for themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from conformance.reference.identity import NewSubject, Role, Visibility
from conformance.reference.repositories import NewCommit, NewMergeRequest

if TYPE_CHECKING:
    from conformance.reference.identity import Group, Project
    from conformance.reference.repositories import MergeRequest
    from selftest.reference.story import Story

STAFF = {"maintainer": Role.MAINTAINER, "approver": Role.DEVELOPER, "second_approver": Role.DEVELOPER}


@dataclass
class NewProject:
    """A project with three merge requests, two of them from one branch."""

    story: Story
    project: Project
    opened: list[MergeRequest]

    @property
    def rules(self) -> str:
        """Return the path of its approval rules."""
        return f"/projects/{self.project.id}/approval_rules"

    def merge_request(self, place: int = 0) -> str:
        """Return the path of one of its merge requests."""
        return f"/projects/{self.project.id}/merge_requests/{self.opened[place].iid}"

    def body(self, *names: str, **more: Any) -> dict[str, Any]:
        """Return a rule that these actors may approve."""
        ids = [self.story.world.actors[name].id for name in names]
        return {"name": "Reviews", "approvals_required": 1, "user_ids": ids, "group_ids": [], **more}


def new_group(story: Story, path: str, within: Group | None = None) -> Group:
    """Create a group."""
    return story.service.identities.create_group(NewSubject(path=path, within=within))


def new_project(story: Story, group: Group, path: str, visibility: Visibility = Visibility.PRIVATE) -> NewProject:
    """Create a project with members, branches and merge requests."""
    identities, repositories = story.service.identities, story.service.repositories
    project = identities.create_project(NewSubject(path=path, within=group, visibility=visibility))
    author = identities.users[story.world.actors["author"].id]
    for name, role in STAFF.items():
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
    # Long enough ago that every other time stamp differs.
    before = opened[0].created_at - timedelta(days=1)
    opened = [replace(one, created_at=before, updated_at=before) for one in opened]
    repositories.merge_requests.update({(project.id, one.iid): one for one in opened})
    return NewProject(story, project, opened)


def tenants(story: Story, path: str) -> tuple[Group, list[Project]]:
    """Create a group with four projects, two of them in a subgroup; two projects have the same name."""
    identities = story.service.identities
    group = identities.create_group(NewSubject(path=path, name="The tenants"))
    inner = identities.create_group(NewSubject(path="inner", name="The inner ones", within=group))
    places = (("one", group, "First"), ("two", group, None), ("one", inner, None), ("deep", inner, None))
    made = [
        identities.create_project(NewSubject(path=name, within=within, description=text))
        for name, within, text in places
    ]
    for actor, role in (("owner", Role.OWNER), ("maintainer", Role.MAINTAINER)):
        for project in made:
            identities.add_member(project, identities.users[story.world.actors[actor].id], role)
    identities.add_member(group, identities.users[story.world.actors["owner"].id], Role.OWNER)
    identities.add_member(made[1], identities.users[story.world.actors["developer"].id], Role.MAINTAINER)
    identities.add_member(made[0], identities.users[story.world.actors["developer"].id], Role.DEVELOPER)
    return group, made
