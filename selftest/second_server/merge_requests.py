"""Approval rules of merge requests, and approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selftest.second_server.project_rules import find_project_rule, inherited
from selftest.second_server.rules import (
    FIXED,
    hidden,
    make,
    name_of,
    named,
    number,
    required_of,
    resolve_groups,
    resolve_users,
    unique,
)
from selftest.second_server.say import shuffled
from selftest.second_server.settings import value as setting
from selftest.second_server.store import DEVELOPER, MAINTAINER, REPORTER, Record, RefusalError, now

if TYPE_CHECKING:
    from selftest.second_server.call import Call, Route
    from selftest.second_server.say import Shown
    from selftest.second_server.store import Store
    from selftest.second_server.web import Response


def merge_request_of(call: Call, key: str, iid: str, level: int) -> Record:
    project = call.store.find_project(call.user, key)
    if call.on("closed") and level:
        level = max(level, DEVELOPER)
    call.store.need_project(call.user, project, level)
    mr: Record | None = project.merge_requests.get(number(iid))
    if mr is None:
        raise RefusalError(404, "there is no such merge request")
    return mr


def own_rules(mr: Record) -> list[Record]:
    return [r for r in mr.rules if not r.system]


def in_effect(store: Store, mr: Record) -> list[Record]:
    system = [r for r in mr.rules if r.system]
    own = own_rules(mr)
    if own:
        return [*own, *system]
    applying = [r for r in mr.project.rules if not r.branches or mr.target in [b.name for b in r.branches]]
    return [*applying, *inherited(store, mr.project), *system]


def may(store: Store, mr: Record, user: Record) -> bool:
    project = mr.project
    if user.bot or store.project_level(user, project) < DEVELOPER:
        return False
    if user is mr.author and not setting(project, "allow_author_approval"):
        return False
    return user.id not in mr.committers or user is mr.author or setting(project, "allow_committer_approval")


def eligible(store: Store, mr: Record, rule: Record) -> list[Record]:
    people = store.users.values() if rule.rule_type == "any_approver" else named(store, rule)
    return [p for p in people if may(store, mr, p)]


def standing(store: Store, mr: Record) -> list[tuple[Record, list[Record]]]:
    """Pairs of a rule and those of its users who approved."""
    approvals = [a.user for a in mr.approvals]
    pairs = []
    for rule in in_effect(store, mr):
        if rule.rule_type == "any_approver":
            pairs.append((rule, approvals))
        else:
            able = {p.id for p in named(store, rule)}
            pairs.append((rule, [p for p in approvals if p.id in able]))
    return pairs


def status_record(call: Call, mr: Record) -> Shown:
    pairs = standing(call.store, mr)
    merge_status = "checking" if not mr.looked else "can_be_merged"
    mr.looked = True
    left = (max if call.on("left-max") else sum)([max(rule.required - len(people), 0) for rule, people in pairs] or [0])
    return {
        "iid": mr.iid,
        "project_id": mr.project.id,
        "id": mr.id,
        "title": mr.title,
        "description": mr.description or "",
        "state": mr.state,
        "created_at": call.say.moment(mr.created),
        "updated_at": call.say.moment(mr.updated),
        "merge_status": merge_status,
        "approvals_required": sum(rule.required for rule, _ in pairs),
        "approvals_left": left,
        "approved": not left,
        "approved_by": [
            {"since": call.say.moment(a.at), "user": call.say.user(a.user)}
            for a in call.say.mixed(mr.approvals, lambda a: a.user.id)
        ],
    }


def status(call: Call, key: str, iid: str) -> Response:
    return call.json(status_record(call, merge_request_of(call, key, iid, REPORTER)))


def state(call: Call, key: str, iid: str) -> Response:
    mr = merge_request_of(call, key, iid, REPORTER)
    found = []
    for rule, people in call.say.mixed(standing(call.store, mr), lambda pair: pair[0].id):
        record = call.say.rule(rule, call.user, eligible(call.store, mr, rule), "state")
        record |= {"approved_by": call.say.users(people), "approved": len(people) >= rule.required}
        found.append(record)
    return call.json(
        {
            "rules": found,
            "approval_rules_overwritten": bool(own_rules(mr)),
            **({} if call.on("quiet") else {"at": call.say.moment(now())}),
        }
    )


def own_rule(call: Call, mr: Record, rule: Record, status_code: int = 200) -> Response:
    return call.json(call.say.rule(rule, call.user, eligible(call.store, mr, rule), "own"), status_code)


def find_own(mr: Record, rule_id: str, *, write: bool = False) -> Record:
    wanted = number(rule_id)
    rule: Record | None = next((r for r in mr.rules if r.id == wanted), None)
    if rule is None:
        raise RefusalError(404, "there is no such rule")
    if write and rule.rule_type in FIXED:
        raise RefusalError(403, "the system made it")
    return rule


def own_list(call: Call, key: str, iid: str) -> Response:
    mr = merge_request_of(call, key, iid, REPORTER)
    return call.page(
        [call.say.rule(r, call.user, eligible(call.store, mr, r), "own") for r in shuffled(mr.rules, lambda r: r.id)]
    )


def own_one(call: Call, key: str, iid: str, rule_id: str) -> Response:
    mr = merge_request_of(call, key, iid, REPORTER)
    return own_rule(call, mr, find_own(mr, rule_id))


def writable(call: Call, key: str, iid: str) -> Record:
    mr = merge_request_of(call, key, iid, MAINTAINER)
    if not setting(mr.project, "allow_overrides_to_approver_list_per_merge_request"):
        raise RefusalError(423, "merge requests of this project have no rules of their own")
    return mr


def own_create(call: Call, key: str, iid: str) -> Response:
    mr = writable(call, key, iid)
    call.known("approvals_required", "name", "approval_project_rule_id", "group_ids", "user_ids", "usernames")
    body = call.body
    required = required_of(body, needed=True)
    given = body.text("name", required=True, most=255, empty=False)
    level = lambda u: call.store.project_level(u, mr.project)  # noqa: E731
    users = resolve_users(call, body.integers("user_ids"), body.texts("usernames"), level) or []
    groups = resolve_groups(call, body.integers("group_ids")) or []
    source = body.integer("approval_project_rule_id")
    rule = make(call, "own rule", mr, name=given, required=required, users=users, groups=groups)
    if source is not None:
        pattern = find_project_rule(call, mr.project, str(source))
        rule.name, rule.users, rule.groups = pattern.name, list(pattern.users), list(pattern.groups)
        rule.source = {"number": pattern.id, "approvals_required": pattern.required}
        rule.overridden = pattern.required != required
        if call.on("no-lower") and required < pattern.required:
            raise RefusalError(422, "fewer approvals than the project asks for")
    if any(r.name == rule.name for r in mr.rules):
        raise RefusalError(409, "there is a rule of that name")
    mr.rules.append(rule)
    touched(call, mr)
    return own_rule(call, mr, rule, 201)


def own_update(call: Call, key: str, iid: str, rule_id: str) -> Response:
    mr = writable(call, key, iid)
    rule = find_own(mr, rule_id, write=True)
    body = call.body
    known = ("approvals_required", "name", "group_ids", "user_ids", "usernames", "remove_hidden_groups")
    call.known(*known, "approval_rule_id", "merge_request_iid")
    if not any(n in body for n in known):
        raise RefusalError(400, "nothing to change")
    required = required_of(body, needed=False)
    name = name_of(body, mr.rules, required=False, own=rule)
    users = resolve_users(
        call, body.integers("user_ids"), body.texts("usernames"), lambda u: call.store.project_level(u, mr.project)
    )
    groups = resolve_groups(call, body.integers("group_ids"))
    drop = body.boolean("remove_hidden_groups", default=False)
    rule.required = rule.required if required is None else required
    rule.name = name or rule.name
    if call.on("keeps-lists"):
        users = rule.users if users is None else users
        groups = [g for g in rule.groups if call.store.sees_group(call.user, g)] if groups is None else groups
    # what is not named is removed, even if nobody is named
    rule.users = users or []
    rule.groups = unique([*(groups or []), *([] if drop else hidden(call, rule))])
    rule.overridden = True
    touched(call, mr)
    return own_rule(call, mr, rule)


def touched(call: Call, mr: Record) -> None:
    if call.on("rules-wipe-approvals"):
        mr.approvals = []


def own_delete(call: Call, key: str, iid: str, rule_id: str) -> Response:
    mr = writable(call, key, iid)
    mr.rules.remove(find_own(mr, rule_id, write=True))
    return call.nothing(204)


def approve(call: Call, key: str, iid: str) -> Response:
    mr = merge_request_of(call, key, iid, REPORTER)
    call.known("sha", "approval_password")
    body = call.body
    sha = body.text("sha")

    def compare() -> None:
        if sha is not None and sha.lower() != head(mr):
            raise RefusalError(409, "the branch has moved on", exact=True)

    if not call.on("sha-last"):
        compare()
    store, user = call.store, call.user
    deciding = [r for r in in_effect(store, mr) if r.rule_type != "any_approver" or not call.on("strict-approvers")]
    if not any(user in eligible(store, mr, rule) for rule in deciding):
        raise RefusalError(403, "you may not approve this")
    given = body.text("approval_password")
    if setting(mr.project, "require_reauthentication_to_approve") and given != user.password:
        raise RefusalError(401, "the password is wrong")
    if any(a.user is user for a in mr.approvals):
        raise RefusalError(422, "you approved before")
    compare()
    mr.approvals.append(Record(user=user, at=now()))
    mr.updated = now()
    return call.json(status_record(call, mr), 201)


def head(mr: Record) -> str:
    branch = mr.project.branches.get(mr.source)
    return str(branch.sha if branch else mr.sha)


def unapprove(call: Call, key: str, iid: str) -> Response:
    mr = merge_request_of(call, key, iid, REPORTER)
    mr.approvals = [a for a in mr.approvals if a.user is not call.user]
    mr.updated = now()
    return call.nothing(204)


def reset(call: Call, key: str, iid: str) -> Response:
    bot = call.user.bot
    project = call.store.find_project(call.user, key)
    if bot is None or not (bot is project or bot in call.store.project_groups(project)):
        raise RefusalError(401, "this is for bots")
    mr = merge_request_of(call, key, iid, 0)
    doomed = list(mr.approvals)

    def clear() -> None:
        mr.approvals = [a for a in mr.approvals if a not in doomed]

    call.store.later(1.5 if call.on("slow-reset") else 0.3, clear)
    return call.json({"state": "under way"}, 202)


MR = "projects/:id/merge_requests/:iid"
ROUTES: list[Route] = [
    ("GET", MR + "/approvals", status),
    ("GET", MR + "/approval_state", state),
    ("GET", MR + "/approval_rules", own_list),
    ("POST", MR + "/approval_rules", own_create),
    ("GET", MR + "/approval_rules/:rule", own_one),
    ("PUT", MR + "/approval_rules/:rule", own_update),
    ("DELETE", MR + "/approval_rules/:rule", own_delete),
    ("POST", MR + "/approve", approve),
    ("POST", MR + "/unapprove", unapprove),
    ("PUT", MR + "/reset_approvals", reset),
]
