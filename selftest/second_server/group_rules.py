"""Approval rules of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selftest.second_server.rules import (
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
from selftest.second_server.store import OWNER, RefusalError

if TYPE_CHECKING:
    from selftest.second_server.call import Call, Route
    from selftest.second_server.store import Record
    from selftest.second_server.web import Response


def group_of(call: Call, key: str) -> Record:
    group = call.store.find_group(call.user, key)
    call.store.need_group(call.user, group, OWNER)
    if not call.store.flags["approval_group_rules"]:
        raise RefusalError(404, "nothing is here")
    return group


def show_group_rule(call: Call, rule: Record, status: int = 200) -> Response:
    return call.json(call.say.rule(rule, call.user, named(call.store, rule), "group"), status)


def group_list(call: Call, key: str) -> Response:
    group = group_of(call, key)
    return call.page(
        [call.say.rule(r, call.user, named(call.store, r), "group") for r in shuffled(group.rules, lambda r: r.id)]
    )


def group_create(call: Call, key: str) -> Response:
    group = group_of(call, key)
    call.known("approvals_required", "name", "group_ids", "user_ids", "rule_type")
    body = call.either
    required = required_of(body, needed=True)
    name = name_of(body, group.rules, required=True)
    kind = rule_type_of(call, body, group.rules)
    users = resolve_users(call, body.integers("user_ids"), None, lambda u: call.store.group_level(u, group)) or []
    groups = resolve_groups(call, body.integers("group_ids")) or []
    rule = make(
        call,
        "rule",
        group,
        name=name,
        required=required,
        rule_type=kind,
        users=users,
        groups=groups,
        all_branches=True,
        branches=[],
    )
    rule.branches = list(group.branches)
    group.rules.append(rule)
    return show_group_rule(call, rule, 200)


def group_update(call: Call, key: str, rule_id: str) -> Response:
    group = group_of(call, key)
    wanted = number(rule_id)
    rule = next((r for r in group.rules if r.id == wanted), None)
    if rule is None:
        raise RefusalError(404, "there is no such rule")
    if rule.rule_type != "regular":
        raise RefusalError(403, "this one stays as it is")
    call.known("approvals_required", "name", "group_ids", "user_ids", "rule_type", "approval_rule_id")
    body = call.either
    if not any(n in body for n in ("approvals_required", "name", "group_ids", "user_ids", "rule_type")):
        raise RefusalError(400, "nothing to change")
    required = required_of(body, needed=False)
    name = name_of(body, group.rules, required=False, own=rule)
    if body.text("rule_type") not in (None, "regular"):
        raise RefusalError(422, "its type stays")
    users = resolve_users(call, body.integers("user_ids"), None, lambda u: call.store.group_level(u, group))
    groups = resolve_groups(call, body.integers("group_ids"))
    rule.required = rule.required if required is None else required
    rule.name = name or rule.name
    rule.users = unique([*rule.users, *(users or ())])
    rule.groups = unique([*rule.groups, *(groups or ())])
    return show_group_rule(call, rule)


def group_system_rule(call: Call, key: str) -> Response:
    group = group_of(call, key)
    made = make(
        call,
        "rule",
        group,
        name=call.body.text("name", required=True),
        required=0,
        rule_type="report_approver",
        system=True,
    )
    group.rules.append(made)
    return call.json({"id": made.id}, 201)


GROUP = "groups/:id/approval_rules"
ROUTES: list[Route] = [
    ("GET", GROUP, group_list),
    ("POST", GROUP, group_create),
    ("PUT", GROUP + "/:rule", group_update),
    ("POST", "groups/:id/x_system_rule", group_system_rule),
]
