"""Chapters of the story about places made for it: what lies in a group, what a reset leaves, what a path leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.reference.identity import NewSubject, Role

if TYPE_CHECKING:
    from conformance.reference.identity import Project
    from selftest.reference.story import Story


def slips_of_tenants(story: Story) -> None:
    """Tell all of them, in groups and projects of their own."""
    identities = story.service.identities
    group = identities.create_group(NewSubject(path="tenants", name="The tenants"))
    inner = identities.create_group(NewSubject(path="inner", name="The inner ones", within=group))
    places = (("one", group, "First"), ("two", group, None), ("one", inner, None), ("deep", inner, None))
    made = [
        identities.create_project(NewSubject(path=path, within=within, description=text))
        for path, within, text in places
    ]
    for actor, role in (("owner", Role.OWNER), ("maintainer", Role.MAINTAINER)):
        for project in made:
            identities.add_member(project, identities.users[story.world.actors[actor].id], role)
    identities.add_member(group, identities.users[story.world.actors["owner"].id], Role.OWNER)
    identities.add_member(made[1], identities.users[story.world.actors["developer"].id], Role.MAINTAINER)
    identities.add_member(made[0], identities.users[story.world.actors["developer"].id], Role.DEVELOPER)
    _scopes(story, group.id, made)
    _settings(story, group.id, made[0])
    _completions(story)
    _integrations(story, made[0], made[1])
    _trees(story, made[0])


def _scopes(story: Story, group: int, made: list[Project]) -> None:
    scope = f"/projects/{made[0].id}/job_token_scope"
    story.call("developer", "GET", scope)
    beside = f"/projects/{story.world.one('sibling_project').id}/job_token_scope"
    for number in (made[0].id, made[2].id):
        story.call("owner", "POST", f"{beside}/allowlist", {"target_project_id": number})
    story.call("owner", "GET", f"{beside}/allowlist")
    story.call("owner", "DELETE", f"{beside}/allowlist/{made[1].id}")
    story.call("owner", "GET", f"{beside}/allowlist")
    story.call("owner", "POST", f"{beside}/groups_allowlist", {"target_group_id": group})
    story.call("owner", "GET", f"{beside}/allowlist")


def _settings(story: Story, group: int, project: Project) -> None:
    number, path = (f"/projects/{form}/merge_request_approval_setting" for form in (project.id, "tenants%2Fone"))
    story.call("maintainer", "PUT", path, {"allow_committer_approval": True})
    story.call("owner", "PUT", f"/groups/{group}/merge_request_approval_setting", {"allow_author_approval": True})
    story.call("maintainer", "GET", number)


def _completions(story: Story) -> None:
    story.call("owner", "POST", "/code_suggestions/enabled", {"project_path": "tenants/deep"})
    file = {"file_name": "你好.py", "content_above_cursor": "x = "}
    story.call("author", "POST", "/code_suggestions/completions", {"current_file": file})


def _integrations(story: Story, one: Project, other: Project) -> None:
    first, older = (f"/projects/{one.id}/{name}" for name in ("integrations", "services"))
    second = f"/projects/{other.id}/integrations"
    hook, mail = {"webhook": "https://hooks.example.com/n"}, {"recipients": "a@example.com,b@example.com"}
    drone = {"token": "secret", "drone_url": "https://drone.example.com"}
    jira = {"url": "https://jira.example.com", "password": "secret", "active": False}
    for method, path, body in (
        ("PUT", f"{first}/slack", {"channel": "refused"}),
        ("PUT", f"{first}/slack", {**hook, "labels_to_be_notified_behavior": "match_all"}),
        ("PUT", f"{first}/slack", {**hook, "issues_events": False, "confidential_issues_events": False}),
        ("PUT", f"{first}/slack", {**hook, "issues_events": True, "branches_to_be_notified": "all"}),
        ("PUT", f"{second}/slack", hook),
        ("DELETE", f"{older}/slack", None),
        ("PUT", f"{first}/slack", {}),
        ("PUT", f"{first}/slack", hook),
        ("PUT", f"{first}/pipelines-email", mail),
        ("PUT", f"{first}/emails-on-push", mail),
        ("DELETE", f"{first}/emails-on-push", None),
        ("PUT", f"{first}/emails-on-push", mail),
        ("PUT", f"{older}/drone-ci", drone),
        ("PUT", f"{first}/jira", jira),
        ("DELETE", f"{first}/jira", None),
        ("GET", f"{first}/jira", None),
        ("GET", older, None),
    ):
        story.call("maintainer", method, path, body)
    listed = story.read(first)
    story.remember(f"made before they were changed: {all(one['created_at'] <= one['updated_at'] for one in listed)}")


def _trees(story: Story, project: Project) -> None:
    files = f"/projects/{project.id}/repository"
    body = {"branch": "main", "content": "x", "commit_message": "Begin"}
    story.call("maintainer", "POST", f"{files}/files/docs%2Fa.md", body)
    story.call("maintainer", "GET", f"{files}/tree?path=docs%2Fnone")
