"""Approval rules of projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selftest.second_server.rules import (
    FIXED,
    REPORTS,
    hidden,
    make,
    name_of,
    named,
    number,
    required_of,
    resolve_groups,
    resolve_users,
    rule_type_of,
    unique,
)
from selftest.second_server.say import shuffled
from selftest.second_server.store import DEVELOPER, MAINTAINER, REPORTER, RefusalError, now

if TYPE_CHECKING:
    from selftest.second_server.call import Call, Params, Route
    from selftest.second_server.store import Record, Store
    from selftest.second_server.web import Response


def project_of(call: Call, key: str, level: int) -> Record:
    if call.on("closed"):
        level = max(level, MAINTAINER)
    project = call.store.find_project(call.user, key)
    call.store.need_project(call.user, project, level)
    return project


def inherited(store: Store, project: Record) -> list[Record]:
    return [r for g in store.project_groups(project) for r in g.rules if r.rule_type != "any_approver"]


def project_rule(call: Call, rule: Record, status: int = 200) -> Response:
    return call.json(call.say.rule(rule, call.user, named(call.store, rule), "project"), status)


def find_project_rule(call: Call, project: Record, rule_id: str, *, write: bool = False) -> Record:
    wanted = number(rule_id)
    own: list[Record] = project.rules
    for rule in own:
        if rule.id == wanted:
            return rule
    for rule in inherited(call.store, project):
        if rule.id == wanted:
            if write:
                raise RefusalError(403, "it belongs to the group")
            return rule
    raise RefusalError(410 if wanted in project.gone_rules else 404, "there is no such rule")


def project_list(call: Call, key: str) -> Response:
    project = project_of(call, key, REPORTER)
    rules = [*project.rules, *inherited(call.store, project)]
    return call.page(
        [call.say.rule(r, call.user, named(call.store, r), "project") for r in shuffled(rules, lambda r: r.id)]
    )


def project_one(call: Call, key: str, rule_id: str) -> Response:
    project = project_of(call, key, REPORTER)
    return project_rule(call, find_project_rule(call, project, rule_id))


def branches_of(body: Params, project: Record) -> tuple[bool, list[Record] | None]:
    everything = body.boolean("applies_to_all_protected_branches", default=False)
    if everything:
        return True, []
    ids = body.integers("protected_branch_ids")
    if ids is None:
        return False, None
    found = []
    for wanted in ids:
        branch = next((b for b in project.protected if b.id == wanted), None)
        if branch is None:
            raise RefusalError(422, f"there is no protected branch {wanted}")
        found.append(branch)
    return False, unique(found)


def project_create(call: Call, key: str) -> Response:
    project = project_of(call, key, MAINTAINER)
    call.known(
        "approvals_required",
        "name",
        "applies_to_all_protected_branches",
        "group_ids",
        "protected_branch_ids",
        "report_type",
        "rule_type",
        "user_ids",
        "usernames",
    )
    body = call.body
    required = required_of(body, needed=True)
    name = name_of(body, project.rules, required=True)
    if body.text("report_type") not in (None, *REPORTS):
        raise RefusalError(422, "there is no such report")
    kind = rule_type_of(call, body, project.rules)
    users = (
        resolve_users(
            call, body.integers("user_ids"), body.texts("usernames"), lambda u: call.store.project_level(u, project)
        )
        or []
    )
    groups = resolve_groups(call, body.integers("group_ids")) or []
    everything, branches = branches_of(body, project)
    rule = make(
        call,
        "rule",
        project,
        name=name,
        required=required,
        rule_type=kind,
        users=users,
        groups=groups,
        all_branches=everything,
        branches=branches or [],
    )
    project.rules.append(rule)
    return project_rule(call, rule, 201)


def project_update(call: Call, key: str, rule_id: str) -> Response:
    project = project_of(call, key, MAINTAINER)
    rule = find_project_rule(call, project, rule_id, write=True)
    if rule.rule_type in FIXED:
        raise RefusalError(403, "the system made it")
    call.known(
        "approvals_required",
        "name",
        "approval_rule_id",
        "applies_to_all_protected_branches",
        "group_ids",
        "protected_branch_ids",
        "user_ids",
        "usernames",
        "remove_hidden_groups",
    )
    body = call.body
    required = required_of(body, needed=True)
    name = name_of(body, project.rules, required=True, own=rule)
    users = resolve_users(
        call, body.integers("user_ids"), body.texts("usernames"), lambda u: call.store.project_level(u, project)
    )
    groups = resolve_groups(call, body.integers("group_ids"))
    everything, branches = branches_of(body, project)
    drop = body.boolean("remove_hidden_groups", default=False)
    rule.required = required
    if rule.rule_type == "any_approver":
        return project_rule(call, rule)
    rule.name = name
    if call.on("keeps-lists"):
        users = rule.users if users is None else users
        groups = [g for g in rule.groups if call.store.sees_group(call.user, g)] if groups is None else groups
    rule.users = users or []
    rule.groups = unique([*(groups or []), *([] if drop else hidden(call, rule))])
    rule.all_branches = everything
    if everything or branches is not None:
        rule.branches = branches or []
    return project_rule(call, rule)


def project_delete(call: Call, key: str, rule_id: str) -> Response:
    project = project_of(call, key, MAINTAINER)
    rule = find_project_rule(call, project, rule_id, write=True)
    if rule.rule_type != "regular":
        raise RefusalError(403, "this one stays")
    project.rules.remove(rule)
    project.gone_rules.add(rule.id)
    if call.on("cascade-rules"):
        for mr in project.merge_requests.values():
            mr.rules = [r for r in mr.rules if not (r.source and r.source["number"] == rule.id)]
    return call.json({"removed": rule.id, "at": call.say.moment(now())}, 200)


def system_rule(call: Call, key: str) -> Response:
    """Used in place of a policy, or of a file of code owners."""
    project = project_of(call, key, MAINTAINER)
    kind = call.body.text("rule_type", required=True)
    users = [u for u in call.store.users.values() if call.store.project_level(u, project) >= DEVELOPER][:2]
    rule = {
        "name": call.body.text("name", required=True),
        "required": 0,
        "rule_type": kind,
        "users": users,
        "system": True,
    }
    iid = call.body.integer("iid")
    if iid is None:
        made = make(call, "rule", project, **rule)
        project.rules.append(made)
    else:
        mr = project.merge_requests[iid]
        made = make(call, "own rule", mr, **rule)
        mr.rules.append(made)
    return call.json({"id": made.id}, 201)


PROJECT = "projects/:id/approval_rules"
ROUTES: list[Route] = [
    ("GET", PROJECT, project_list),
    ("POST", PROJECT, project_create),
    ("GET", PROJECT + "/:rule", project_one),
    ("PUT", PROJECT + "/:rule", project_update),
    ("DELETE", PROJECT + "/:rule", project_delete),
    ("POST", "projects/:id/x_system_rule", system_rule),
]
