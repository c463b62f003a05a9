"""The chapter of the job token scope: the limit, both allowlists, and who may change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selftest.reference.chapters.new_places import tenants
from selftest.reference.chapters.places import EVERYBODY, at, at_one_of, at_path, during, rule_body

if TYPE_CHECKING:
    from selftest.reference.story import Story

#: A page after the end of every list.
_FAR_PAGE = 1_000_000


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _entries_come_and_go,
        _projects_by_path,
        _a_group_inside,
        _groups_beside_a_limit_that_is_off,
        _rules_beside_the_limit,
        _strangers_in_public,
        _pages_of_groups,
        _lists_of_source_and_target,
        _groups_inside_each_other,
        _a_number_of_the_other_list,
        _projects_side_by_side,
        _a_removal_beside_a_project,
        _the_limit_of_another_project_of_the_group,
        _projects_of_one_name,
        _groups_inside_and_around,
        _removals_and_pages,
        _many_entries,
        _a_list_that_became_empty,
        _groups_that_come_back,
        _a_group_of_ones_own,
        _two_that_let_each_other_in,
        _the_limit_of_who_was_let_in,
        _one_target_of_two_sources,
        _a_limit_that_a_bot_reads,
        _every_caller,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (
        _additions_at_once,
        _an_addition_while_the_limit_is_switched,
        _two_removals_at_once,
        _one_addition_twice_at_once,
        _an_addition_beside_the_limit,
        _one_group_twice_at_once,
        _two_answers_at_once,
        _a_project_and_a_group_leave_at_once,
        _two_limits_at_once,
    ):
        chapter(story)


def _entries_come_and_go(story: Story) -> None:
    scope = f"{at(story, 'project')}/job_token_scope"
    targets = [one.id for one in story.world.many("allowlist_projects")]
    groups = [one.id for one in story.world.many("allowlist_groups")]

    def look() -> None:
        for actor in ("maintainer", "owner", "admin"):
            story.call(actor, "GET", scope)
            story.call(actor, "GET", f"{scope}/allowlist?page=1&per_page=20")
            story.call(actor, "GET", f"{scope}/groups_allowlist?page=1&per_page=20")
        story.call("maintainer", "GET", f"{at(story, 'sibling_project')}/job_token_scope")
        story.call("maintainer", "GET", f"{at(story, 'sibling_project')}/job_token_scope/allowlist")

    look()
    for number in targets:
        story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": number})
    for number in [*groups, *targets[:2]]:
        story.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": number})
    look()
    story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{groups[0]}")
    story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{targets[0]}")
    story.call("maintainer", "DELETE", f"{scope}/allowlist/{targets[0]}")
    look()
    story.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": groups[0]})
    look()
    story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": targets[0]})
    story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": 4711})
    for enabled in (True, True, False, False, True):
        story.call("maintainer", "PATCH", scope, {"enabled": enabled})
        look()
    story.call("owner", "DELETE", f"{scope}/groups_allowlist/{groups[1]}")
    look()


def _projects_by_path(story: Story) -> None:
    scope = f"{at_path(story, 'project')}/job_token_scope"
    target = story.world.many("allowlist_projects")[3].id
    story.call("maintainer", "DELETE", f"{scope}/allowlist/{target}")
    story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": target})
    story.call("maintainer", "GET", f"/projects/{2**32 + story.world.one('project').id}/job_token_scope")
    story.call("maintainer", "GET", f"{at_path(story, 'project')}-2/job_token_scope")


def _a_group_inside(story: Story) -> None:
    scope = f"{at(story, 'project')}/job_token_scope/groups_allowlist"
    story.call("maintainer", "POST", scope, {"target_group_id": story.world.one("subgroup").id})
    story.call("maintainer", "GET", f"{scope}?page=1&per_page=50")


def _groups_beside_a_limit_that_is_off(story: Story) -> None:
    scope = f"{at(story, 'project')}/job_token_scope"
    groups = [group.id for group in story.world.many("allowlist_groups")]
    story.call("maintainer", "PATCH", scope, {"enabled": False})
    story.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": groups[0]})
    story.call("maintainer", "GET", scope)
    others = groups[1], story.world.one("sibling_group").id
    story.at_once(
        *(("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": number}) for number in others)
    )
    story.count(f"{scope}/groups_allowlist?page=1&per_page=50")
    story.call("maintainer", "GET", f"{scope}/groups_allowlist?page=1&per_page=1")
    # Either of the two may come first.
    for number in others:
        story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{number}")
    beside = story.world.one("sibling_project").id
    story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": beside})
    story.call("maintainer", "DELETE", f"{scope}/allowlist/{beside}")
    story.call("maintainer", "GET", scope)


def _rules_beside_the_limit(story: Story) -> None:
    project = at(story, "project")
    story.call("maintainer", "POST", f"{project}/approval_rules", rule_body("Beside the limit", 1))
    story.call("maintainer", "PATCH", f"{project}/job_token_scope", {"enabled": False})
    story.call("maintainer", "GET", f"{project}/approval_rules?page=1&per_page=50")


def _strangers_in_public(story: Story) -> None:
    for caller in ("outsider", "developer"):
        story.call(caller, "GET", f"{at(story, 'public_project')}/job_token_scope")


def _scope(story: Story) -> str:
    return f"{at(story, 'guarded_project')}/job_token_scope"


def _pages_of_groups(story: Story) -> None:
    groups = f"{_scope(story)}/groups_allowlist"
    numbers = [group.id for group in story.world.many("allowlist_groups")[:3]]
    for number in numbers:
        story.call("owner", "POST", groups, {"target_group_id": number})
    for page in (1, 2):
        story.call("owner", "GET", f"{groups}?page={page}&per_page=2")
    for number in numbers:
        story.call("owner", "DELETE", f"{groups}/{number}")


def _lists_of_source_and_target(story: Story) -> None:
    target = story.world.many("allowlist_projects")[0].id
    story.call("owner", "POST", f"{_scope(story)}/allowlist", {"target_project_id": target})
    story.call("admin", "GET", f"/projects/{target}/job_token_scope/allowlist")
    story.call("owner", "GET", f"{_scope(story)}/allowlist")
    story.call("owner", "DELETE", f"{_scope(story)}/allowlist/{target}")
    story.call("owner", "GET", _scope(story))


def _groups_inside_each_other(story: Story) -> None:
    groups = f"{_scope(story)}/groups_allowlist"
    outer, inner = (story.world.one(name).id for name in ("group", "subgroup"))
    for number in (outer, inner):
        story.call("owner", "POST", groups, {"target_group_id": number})
    story.call("owner", "GET", groups)
    story.call("owner", "DELETE", f"{groups}/{outer}")
    story.call("owner", "GET", groups)
    story.call("owner", "DELETE", f"{groups}/{inner}")


def _an_addition_while_the_limit_is_switched(story: Story) -> None:
    scope = _scope(story)
    for project in story.world.many("allowlist_projects")[:3]:
        added = "POST", f"{scope}/allowlist", {"target_project_id": project.id}
        during(story, ("PATCH", scope, {"enabled": True}), added)
        story.count(f"{scope}/allowlist")
        story.call("owner", "DELETE", f"{scope}/allowlist/{project.id}")


def _two_removals_at_once(story: Story) -> None:
    allowlist = f"{_scope(story)}/allowlist"
    numbers = [project.id for project in story.world.many("allowlist_projects")[1:3]]
    for number in numbers:
        story.call("owner", "POST", allowlist, {"target_project_id": number})
    first, second = (f"{allowlist}/{number}" for number in numbers)
    story.at_once(("owner", "DELETE", first, None), ("admin", "DELETE", second, None))
    story.count(allowlist)


def _a_number_of_the_other_list(story: Story) -> None:
    scope, project = f"{at(story, 'project')}/job_token_scope", story.world.one("sibling_project").id
    story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": project})
    story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{project}")
    story.call("maintainer", "GET", f"{scope}/allowlist")


def _one_addition_twice_at_once(story: Story) -> None:
    allowlist = f"{at(story, 'guarded_project')}/job_token_scope/allowlist"
    target = story.world.many("allowlist_projects")[4].id
    addition = "POST", allowlist, {"target_project_id": target}
    story.at_once(("owner", *addition), ("admin", *addition))
    story.count(allowlist)
    story.call("owner", "DELETE", f"{allowlist}/{target}")


def _projects_side_by_side(story: Story) -> None:
    scope, beside = (f"{at_one_of(story, 'allowlist_projects', number)}/job_token_scope" for number in (0, 2))
    targets = [one.id for one in story.world.many("allowlist_projects")]
    groups = [one.id for one in story.world.many("allowlist_groups")]
    twin = next((number for number in targets if number in story.service.identities.groups), targets[2])
    story.call("maintainer", "GET", scope)
    story.call("owner", "GET", scope)
    for enabled in (False, False):
        story.call("owner", "PATCH", scope, {"enabled": enabled})
        for actor in ("maintainer", "owner"):
            story.call(actor, "GET", scope)
            story.call(actor, "GET", beside)
    for number in (*targets[2:], twin):
        story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": number})
    for number in (*groups, twin):
        for each in (scope, beside):
            story.call("maintainer", "POST", f"{each}/groups_allowlist", {"target_group_id": number})
    story.call("maintainer", "GET", scope)
    story.call("maintainer", "POST", f"{beside}/allowlist", {"target_project_id": targets[2] + 2**32})

    def look() -> None:
        for each in (scope, beside):
            for name in ("allowlist", "groups_allowlist"):
                for query in ("page=1&per_page=2", "page=2&per_page=2", "page=9&per_page=2", "page=1&per_page=50"):
                    story.call("maintainer", "GET", f"{each}/{name}?{query}")

    look()
    developed = f"{at(story, 'project')}/job_token_scope"
    target = story.world.one("project").id
    maintained = story.service.identities
    project = maintained.projects[targets[2]]
    developer = maintained.users[story.world.actors["developer"].id]
    story.call("maintainer", "POST", f"{developed}/allowlist", {"target_project_id": targets[2]})
    before = dict(maintained.roles)
    maintained.add_member(project, developer, type(maintained.role_in(developer, project)).MAINTAINER)
    story.call("developer", "DELETE", f"{developed}/allowlist/{targets[2]}")
    maintained.roles.clear()
    maintained.roles.update(before)
    story.call("maintainer", "GET", f"/projects/{target}/job_token_scope/allowlist?page=1&per_page=50")
    story.call("maintainer", "DELETE", f"{scope}/allowlist/{twin}")
    look()
    story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{groups[0]}")
    look()
    story.call("maintainer", "POST", f"{beside}/allowlist", {"target_project_id": targets[4]})
    story.call("maintainer", "DELETE", f"{scope}/allowlist/{targets[4]}")
    look()


def _a_removal_beside_a_project(story: Story) -> None:
    scope = f"/projects/{story.world.one('fresh_project').id}/job_token_scope"
    project, group = story.world.one("workbench").id, story.world.one("sibling_group").id
    story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": project})
    story.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
    story.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{group}")
    story.call("maintainer", "GET", f"{scope}/allowlist")


def _additions_at_once(story: Story) -> None:
    scope = f"{at(story, 'public_project')}/job_token_scope"
    projects, groups = ([one.id for one in story.world.many(f"allowlist_{kind}")] for kind in ("projects", "groups"))
    pairs: tuple[tuple[tuple[str, Any], tuple[str, Any]], ...] = (
        (("allowlist", {"target_project_id": projects[0]}), ("allowlist", {"target_project_id": projects[1]})),
        (("allowlist", {"target_project_id": projects[2]}), ("groups_allowlist", {"target_group_id": groups[2]})),
        (("groups_allowlist", {"target_group_id": groups[0]}), ("groups_allowlist", {"target_group_id": groups[1]})),
    )
    for (first, one), (second, other) in pairs:
        story.at_once(("owner", "POST", f"{scope}/{first}", one), ("admin", "POST", f"{scope}/{second}", other))
        for path in dict.fromkeys((first, second)):
            story.count(f"{scope}/{path}")


def _the_limit_of_another_project_of_the_group(story: Story) -> None:
    for enabled in (True, False):
        story.call("owner", "PATCH", f"{at(story, 'project')}/job_token_scope", {"enabled": enabled})
        story.call("owner", "GET", f"{at(story, 'subgroup_project')}/job_token_scope")


def _projects_of_one_name(story: Story) -> None:
    group, made = tenants(story, "tenants-of-scopes")
    scope = f"/projects/{made[0].id}/job_token_scope"
    story.call("developer", "GET", scope)
    beside = f"/projects/{story.world.one('sibling_project').id}/job_token_scope"
    for number in (made[0].id, made[2].id):
        story.call("owner", "POST", f"{beside}/allowlist", {"target_project_id": number})
    story.call("owner", "GET", f"{beside}/allowlist")
    story.call("owner", "DELETE", f"{beside}/allowlist/{made[1].id}")
    story.call("owner", "GET", f"{beside}/allowlist")
    story.call("owner", "POST", f"{beside}/groups_allowlist", {"target_group_id": group.id})
    story.call("owner", "GET", f"{beside}/allowlist")


def _groups_inside_and_around(story: Story) -> None:
    lists = f"/projects/{story.world.one('fresh_project').id}/job_token_scope/groups_allowlist"
    for name in ("subgroup", "group", "sibling_group"):
        story.call("owner", "POST", lists, {"target_group_id": story.world.one(name).id})
    story.call("owner", "GET", lists)
    story.call("owner", "GET", f"{lists}?per_page=1&page=3")


def _removals_and_pages(story: Story) -> None:
    scope = f"/projects/{story.world.one('branch_rule_project').id}/job_token_scope"
    groups = f"{scope}/groups_allowlist"
    for name in ("group", "subgroup"):
        story.call("maintainer", "GET", groups)
        story.call("owner", "POST", groups, {"target_group_id": story.world.one(name).id})
    story.call("owner", "DELETE", f"{groups}/{story.world.one('group').id}")
    story.call("maintainer", "GET", groups)
    for project in story.world.many("allowlist_projects")[:3]:
        story.call("owner", "POST", f"{scope}/allowlist", {"target_project_id": project.id})
    for page in (1, 2):
        story.call("owner", "GET", f"{scope}/allowlist?per_page=2&page={page}")
    story.call("owner", "PATCH", scope, {"enabled": False})
    story.call("owner", "GET", scope)


def _many_entries(story: Story) -> None:
    world = story.world
    place = f"/projects/{world.one('inner_project').id}/job_token_scope"
    groups, projects = world.many("allowlist_groups"), world.many("allowlist_projects")
    for project in (*projects, world.one("public_project")):
        story.call("owner", "POST", f"{place}/allowlist", {"target_project_id": project.id})
    for group in groups:
        story.call("owner", "POST", f"{place}/groups_allowlist", {"target_group_id": group.id})
    for page in range(1, 8):
        story.call("owner", "GET", f"{place}/allowlist?per_page=1&page={page}")
    for project in projects:
        story.call("owner", "DELETE", f"{place}/allowlist/{project.id}")
    story.call("owner", "GET", f"{place}/groups_allowlist")
    story.call("owner", "DELETE", f"{place}/groups_allowlist/{groups[1].id}")
    story.call("owner", "GET", f"{place}/groups_allowlist")
    for _ in range(2):
        story.call("owner", "PATCH", place, {"enabled": True})
    story.call("owner", "GET", place)
    story.call("owner", "POST", f"{place}/groups_allowlist", {"target_group_id": groups[1].id})
    story.call("owner", "POST", f"{place}/groups_allowlist", {"target_group_id": world.one("allowlist_namespace").id})
    for asked in ("", "?page=2"):
        story.call("owner", "GET", f"{place}/groups_allowlist{asked}")
    own = f"/projects/{world.one('project').id}/job_token_scope/groups_allowlist"
    public = world.one("public_group").id
    story.call("owner", "DELETE", f"{own}/{public}")
    story.call("project_bot", "POST", own, {"target_group_id": public})


def _a_list_that_became_empty(story: Story) -> None:
    own, other = (f"{at(story, name)}/job_token_scope" for name in ("workbench", "fresh_project"))
    group, projects = story.world.one("sibling_group").id, story.world.many("allowlist_projects")
    for place in (own, other):
        story.call("owner", "POST", f"{place}/groups_allowlist", {"target_group_id": group})
    story.call("owner", "GET", f"{own}/groups_allowlist")
    for project in projects:
        story.call("owner", "POST", f"{own}/allowlist", {"target_project_id": project.id})
    story.call("owner", "GET", f"{own}/allowlist")
    for project in projects:
        story.call("owner", "DELETE", f"{own}/allowlist/{project.id}")
    story.call("owner", "GET", own)
    story.call("owner", "GET", f"{own}/allowlist?page={_FAR_PAGE}&per_page=2")


def _groups_that_come_back(story: Story) -> None:
    scope = f"{at(story, 'workbench')}/job_token_scope"
    for name in ("guarded_project", "subgroup_project"):
        story.call("owner", "POST", f"{scope}/allowlist", {"target_project_id": story.world.one(name).id})
        story.call("owner", "GET", f"{scope}/allowlist")
    group = story.world.one("public_group").id
    for _ in range(2):
        story.call("owner", "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
        story.call("owner", "DELETE", f"{scope}/groups_allowlist/{group}")
        story.call("owner", "GET", f"{scope}/groups_allowlist")


def _a_group_of_ones_own(story: Story) -> None:
    groups, own = f"{at(story, 'workbench')}/job_token_scope/groups_allowlist", story.world.one("inner_group").id
    story.call("guest", "POST", groups, {"target_group_id": own})


def _two_that_let_each_other_in(story: Story) -> None:
    names = ("workbench", "guarded_project")
    one, other = (f"{at(story, name)}/job_token_scope/allowlist" for name in names)
    first, second = (story.world.one(name).id for name in names)
    story.call("owner", "POST", one, {"target_project_id": second})
    story.call("owner", "POST", other, {"target_project_id": first})
    story.call("owner", "DELETE", f"{one}/{second}")
    story.call("owner", "GET", f"{other}?page=1&per_page=50")


def _an_addition_beside_the_limit(story: Story) -> None:
    scope = f"{at(story, 'fresh_project')}/job_token_scope"
    target = story.world.one("subgroup_project").id
    story.call("owner", "PATCH", scope, {"enabled": False})
    story.at_once(
        ("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": target}),
        ("owner", "PATCH", scope, {"enabled": True}),
    )
    story.call("owner", "GET", scope)


def _one_group_twice_at_once(story: Story) -> None:
    groups = f"{at(story, 'fresh_project')}/job_token_scope/groups_allowlist"
    addition = "POST", groups, {"target_group_id": story.world.one("public_group").id}
    story.at_once(("owner", *addition), ("maintainer", *addition))
    story.count(groups)


def _the_limit_of_who_was_let_in(story: Story) -> None:
    lists = f"{at(story, 'workbench')}/job_token_scope/allowlist"
    target = story.world.one("guarded_project")
    story.call("owner", "POST", lists, {"target_project_id": target.id})
    story.call("owner", "PATCH", f"/projects/{target.id}/job_token_scope", {"enabled": True})
    story.call("owner", "GET", f"{lists}?page=1&per_page=50")


def _one_target_of_two_sources(story: Story) -> None:
    """Add a project twice, and check its time stamp here, because time stamps themselves are not remembered."""
    target = story.world.one("personal_project").id
    made = {story.service.present.timestamp(story.service.identities.projects[target].created_at)}
    for name in ("workbench", "fresh_project"):
        lists = f"{at(story, name)}/job_token_scope/allowlist"
        story.call("owner", "POST", lists, {"target_project_id": target})
        story.call("owner", "GET", f"{lists}?page=1&per_page=50")
        made |= {one["created_at"] for one in story.read(f"{lists}?page=1&per_page=50") if one["id"] == target}
    story.remember(f"created at {len(made)} moments")


def _a_limit_that_a_bot_reads(story: Story) -> None:
    scope = f"{at(story, 'project')}/job_token_scope"
    for enabled in (False, True):
        story.call("owner", "PATCH", scope, {"enabled": enabled})
        story.call("project_bot", "GET", scope)


def _two_answers_at_once(story: Story) -> None:
    lists = f"{at(story, 'branch_rule_project')}/job_token_scope/allowlist"
    names = ("guarded_project", "workbench")
    first, second = ({"target_project_id": story.world.one(name).id} for name in names)
    for answer in during(story, ("POST", lists, first), ("POST", lists, second)):
        story.remember(f"let in by one of two: {answer.json()}")
    for body in (first, second):
        story.call("owner", "DELETE", f"{lists}/{body['target_project_id']}")


def _a_project_and_a_group_leave_at_once(story: Story) -> None:
    scope = f"{at(story, 'branch_rule_project')}/job_token_scope"
    project, group = (story.world.one(name).id for name in ("workbench", "sibling_group"))
    story.call("owner", "POST", f"{scope}/allowlist", {"target_project_id": project})
    story.call("owner", "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
    leaving = [f"{scope}/allowlist/{project}", f"{scope}/groups_allowlist/{group}"]
    story.at_once(*(("owner", "DELETE", path, None) for path in leaving))
    for name in ("allowlist", "groups_allowlist"):
        story.count(f"{scope}/{name}")


def _two_limits_at_once(story: Story) -> None:
    scopes = [f"{at(story, name)}/job_token_scope" for name in ("branch_rule_project", "guarded_project")]
    story.at_once(*(("owner", "PATCH", scope, {"enabled": n == 0}) for n, scope in enumerate(scopes)))
    for scope in scopes:
        story.call("owner", "GET", scope)


def _every_caller(story: Story) -> None:
    for project in ("project", "subgroup_project"):
        for place in (at(story, project), at_path(story, project)):
            _callers(story, f"{place}/job_token_scope")


def _callers(story: Story, scope: str) -> None:
    target = story.world.many("allowlist_projects")[4].id
    group = story.world.many("allowlist_groups")[4].id
    for actor in EVERYBODY:
        story.call(actor, "GET", scope)
        story.call(actor, "PATCH", scope, {"enabled": False})
        story.call("maintainer", "GET", scope)
        story.call(actor, "PATCH", scope, {"enabled": True})
        story.call(actor, "POST", f"{scope}/allowlist", {"target_project_id": target})
        story.call(actor, "GET", f"{scope}/allowlist?page=1&per_page=9")
        story.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": target})
        story.call(actor, "DELETE", f"{scope}/allowlist/{target}")
        story.call(actor, "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
        story.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
        story.call("maintainer", "GET", f"{scope}/groups_allowlist?page=1&per_page=9")
        story.call(actor, "DELETE", f"{scope}/groups_allowlist/{group}")
        story.call("maintainer", "GET", f"{scope}/groups_allowlist?page=1&per_page=9")
