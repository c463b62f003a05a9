"""The chapter of what all operations share: tokens, ids and paths, JSON, pages and references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selftest.reference.chapters.places import EVERYBODY, at, at_path, during, ids_of, rule_body

if TYPE_CHECKING:
    from selftest.reference.story import Story


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _tokens,
        _a_token_with_something_in_front,
        _ids_and_paths,
        _a_charset,
        _letters_and_users,
        _pages,
        _a_page_behind_the_last,
        _trees,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_a_developer_right_before_an_owner,):
        chapter(story)


def _tokens(story: Story) -> None:
    token = story.world.actors["maintainer"].token
    for sent in (token.upper(), token[:-1], f"{token}x", token):
        story.call("", "GET", at(story, "project"), token=sent)


def _a_token_with_something_in_front(story: Story) -> None:
    token = story.world.actors["maintainer"].token
    story.call("", "GET", f"{at(story, 'project')}/job_token_scope", token=f"x{token}")


def _ids_and_paths(story: Story) -> None:
    story.call("maintainer", "GET", f"/projects/{2**32 + story.world.one('project').id}/job_token_scope")
    story.call("maintainer", "GET", f"{at_path(story, 'project')}-2/job_token_scope")
    story.call("maintainer", "GET", f"{at_path(story, 'subgroup_project')}/job_token_scope")
    story.call("owner", "GET", "/groups/Subgroup/approval_rules")
    decoded_once = at_path(story, "project").replace("%", "%25")
    story.call("maintainer", "GET", f"{decoded_once}/job_token_scope")


def _a_charset(story: Story) -> None:
    # A header that the rest of the story does not send.
    told = story.client.patch(
        f"{at(story, 'branch_rule_project')}/job_token_scope",
        content=b'{"enabled": true}',
        headers={
            "private-token": story.world.actors["owner"].token,
            "content-type": "application/json; charset=utf-8",
        },
    )
    story.remember(f"with a charset -> {told.status_code}")


def _letters_and_users(story: Story) -> None:
    rules = f"{at(story, 'fresh_group')}/approval_rules"
    story.call("owner", "POST", rules, rule_body("spät", 1, user_ids=ids_of(story, "approver")))
    story.call("owner", "GET", f"{rules}?per_page=1")


def _pages(story: Story) -> None:
    place = f"{at(story, 'project')}/job_token_scope/allowlist"
    for project in story.world.many("allowlist_projects")[:3]:
        story.call("maintainer", "POST", place, {"target_project_id": project.id})
    for query in ("per_page=1", "page=1000000&per_page=2"):
        story.call("maintainer", "GET", f"{place}?{query}")
    # The caller who may see most comes first.
    for actor in reversed(EVERYBODY):
        story.call(actor, "GET", f"{place}?page=1&per_page=9")


def _a_page_behind_the_last(story: Story) -> None:
    place = f"{at(story, 'project')}/job_token_scope/groups_allowlist"
    story.call("maintainer", "POST", place, {"target_group_id": story.world.one("sibling_group").id})
    story.call("maintainer", "GET", f"{place}?page=90&per_page=50")


def _a_developer_right_before_an_owner(story: Story) -> None:
    read = "GET", f"{at(story, 'project')}/job_token_scope", None
    for answer in during(story, read, read, begun_by="developer"):
        story.remember(f"one of two callers: {answer.status_code}")


def _trees(story: Story) -> None:
    project = at(story, "project")
    for query in ("path=nowhere", "path=nowhere&recursive=true", "path=no/such"):
        story.call("maintainer", "GET", f"{project}/repository/tree?{query}")
    files = f"{project}/repository"
    body = {"branch": "main", "content": "x", "commit_message": "Begin"}
    story.call("maintainer", "POST", f"{files}/files/docs%2Fa.md", body)
    for path in ("docs%2Fnone", "do"):
        story.call("maintainer", "GET", f"{files}/tree?path={path}")
