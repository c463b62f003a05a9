"""What the approval rules of groups, projects and merge requests have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selftest.second_server.store import Record, RefusalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from selftest.second_server.call import Call, Params
    from selftest.second_server.store import Store


TYPES = ("any_approver", "regular", "report_approver")
FIXED = ("report_approver", "code_owner")
REPORTS = ("license_scanning", "code_coverage")


# who and what a rule names


def resolve_users(
    call: Call, ids: Sequence[int] | None, names: Sequence[str] | None, level_of: Callable[[Record], int]
) -> list[Record] | None:
    if ids is None and names is None:
        return None
    found = []
    for number in ids or ():
        user = call.store.users.get(number)
        if user is None:
            raise RefusalError(422, f"there is no user {number}")
        found.append(user)
    for name in names or ():
        user = call.store.user_named(name)
        if user is None:
            raise RefusalError(422, "there is no user of that name")
        found.append(user)
    return unique(u for u in found if level_of(u) > 0)


def unique(entries: Iterable[Any]) -> list[Any]:
    return list({entry.id: entry for entry in entries}.values())


def resolve_groups(call: Call, ids: Sequence[int] | None) -> list[Record] | None:
    if ids is None:
        return None
    found = []
    for number in ids:
        group = call.store.groups.get(number)
        if group is None or not call.store.sees_group(call.user, group):
            raise RefusalError(422, f"there is no group {number}")
        found.append(group)
    return unique(found)


def rule_type_of(call: Call, body: Params, rules: Sequence[Record]) -> str:
    kind: str | None = body.text("rule_type")
    if kind is None:
        return "regular"
    if kind not in TYPES:
        raise RefusalError(422, "there is no such type of rules")
    if kind == "report_approver":
        raise RefusalError(403, "policies make these")
    if kind == "any_approver" and (not call.on("no-default-rules") or any(r.rule_type == kind for r in rules)):
        raise RefusalError(409, "there is one")
    return kind


def name_of(body: Params, rules: Sequence[Record], *, required: bool, own: Record | None = None) -> str | None:
    name: str | None = body.text("name", required=required, most=255, empty=False)
    if name is not None and any(r.name == name and r is not own for r in rules):
        raise RefusalError(409, "there is a rule of that name")
    return name


def required_of(body: Params, *, needed: bool) -> Any:
    return body.integer("approvals_required", required=needed, least=0, most=100)


def hidden(call: Call, rule: Record) -> list[Record]:
    return [g for g in rule.groups if not call.store.sees_group(call.user, g)]


def make(call: Call, kind: str, place: Record, **values: Any) -> Record:
    return Record(
        **{
            "id": call.store.rule_number(kind, place),
            "rule_type": "regular",
            "users": [],
            "groups": [],
            "all_branches": False,
            "branches": [],
            "report_type": None,
            "system": False,
            "source": None,
            "overridden": False,
            **values,
        }
    )


def members_of(store: Store, group: Record) -> list[Record]:
    return [store.users[u] for g in store.chain(group) for u in g.members if u in store.users]


def named(store: Store, rule: Record) -> list[Record]:
    people = list(rule.users)
    for group in rule.groups:
        people += members_of(store, group)
    return unique(p for p in people if p.id in store.users)


def number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise RefusalError(422, "a number is wanted")
    return int(text)
