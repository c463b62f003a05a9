"""The format of records in responses."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from selftest.second_server.store import Record, Store


ZONES = [
    dt.timezone(dt.timedelta(hours=5, minutes=45)),
    dt.UTC,
    dt.timezone(dt.timedelta(hours=-9, minutes=-30)),
    dt.timezone(dt.timedelta(hours=14)),
]


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(" , ", " : ")).encode()


def shuffled(entries: Iterable[Any], key: Callable[[Any], object]) -> list[Any]:
    """A stable order that follows neither number nor name nor time."""
    return sorted(entries, key=lambda entry: hashlib.md5(str(key(entry)).encode(), usedforsecurity=False).digest())


#: How a record is shown.
Shown: TypeAlias = dict[str, Any]


class Views:
    def __init__(self, store: Store) -> None:
        self.store = store

    def moment(self, value: dt.datetime | None) -> str | None:
        """A given time always looks the same; its zone and precision depend on the time."""
        if value is None:
            return None
        pick = value.microsecond
        if "odd-times" in self.store.choices:
            utc = value.astimezone(dt.UTC)
            year, week, day = utc.isocalendar()
            return [
                utc.strftime("%Y%m%dT%H%M%S.%fZ"),
                f"{year}-W{week:02}-{day}T{utc:%H:%M:%S}+00",
                f"{utc:%Y-%jT%H:%M:%SZ}",
            ][pick % 3]
        shown = value.astimezone(ZONES[pick % 4])
        text = shown.isoformat(timespec=("microseconds", "milliseconds", "seconds")[pick % 3])
        return text.replace("+00:00", "Z")

    def mixed(self, entries: Iterable[Any], key: Callable[[Any], object]) -> list[Any]:
        """For lists without pagination: in a new order each time, if that was chosen."""
        found = shuffled(entries, key)
        if "random-order" in self.store.choices:
            random.shuffle(found)
        return found

    def user(self, user: Record) -> Shown:
        return {
            "web_url": f"{self.store.base}/{user.username}",
            "name": user.name,
            "username": user.username,
            "id": user.id,
            "state": user.state,
            "is_bot": bool(user.bot),
            "avatar_url": f"{self.store.base}/uploads/-/{user.id}/face%20of.png?width=80",
        }

    def users(self, users: Iterable[Record]) -> list[Shown]:
        return [self.user(u) for u in self.mixed(users, lambda u: u.id)]

    def group(self, group: Record) -> Shown:
        store = self.store
        ldap = {} if "no-ldap" in self.store.choices else {"ldap_cn": None, "ldap_access": None}
        return {
            "id": group.id,
            "name": group.name,
            "path": group.path,
            **ldap,
            "description": group.description or "",
            "visibility": group.visibility,
            "lfs_enabled": True,
            "avatar_url": f"{store.base}/uploads/-/group/{group.id}/a.png" if group.id % 2 else None,
            "web_url": f"{store.base}/groups/{store.full_path(group)}",
            "request_access_enabled": group.request_access,
            "full_name": store.full_name(group),
            "full_path": store.full_path(group),
            "parent_id": group.parent.id if group.parent else None,
            "created_at": self.moment(group.created),
            "marked": {"for": None},
        }

    def namespace(self, project: Record) -> Shown:
        store, space = self.store, project.space
        if space.__dict__.get("kind") == "user":
            name = space.owner.username
            return {
                "id": space.id,
                "name": space.owner.name,
                "path": name,
                "kind": "user",
                "full_path": name,
                "parent_id": None,
                "avatar_url": None,
                "web_url": f"{store.base}/{name}",
            }
        apart = 500_000 if "namespaces-apart" in self.store.choices else 0
        return {
            "id": space.id + apart,
            "name": space.name,
            "path": space.path,
            "kind": "group",
            "full_path": store.full_path(space),
            "parent_id": space.parent.id + apart if space.parent else None,
            "avatar_url": None,
            "web_url": f"{store.base}/groups/{store.full_path(space)}",
        }

    def project(self, project: Record) -> Shown:
        store = self.store
        path = store.project_path(project)
        return {
            "id": project.id,
            "description": project.description,
            "name": project.name,
            "name_with_namespace": store.project_name(project),
            "path": project.path,
            "path_with_namespace": path,
            "created_at": self.moment(project.created),
            "default_branch": project.default_branch or "main",
            "tag_list": list(project.topics),
            "topics": list(project.topics),
            "ssh_url_to_repo": f"ssh://git@127.0.0.1:2222/{path}.git",
            "http_url_to_repo": f"{store.base}/{path}.git",
            "web_url": f"{store.base}/{path}",
            "avatar_url": None,
            "star_count": project.stars,
            "last_activity_at": self.moment(project.active),
            "namespace": self.namespace(project),
            "licence": {"key": None},
            "archived": False,
        }

    def whole_project(self, project: Record) -> Shown:
        return {
            **self.project(project),
            "visibility": project.visibility,
            "empty_repo": not project.branches,
            "duo_features_enabled": project.completion,
        }

    def whole_group(self, group: Record) -> Shown:
        return {**self.group(group), "duo_features_enabled": group.completion}

    def protected(self, branch: Record, *, of_group: bool = False) -> Shown:
        def levels(pairs: Sequence[int], *, push: bool) -> list[Shown]:
            found = []
            for number, level in enumerate(pairs):
                entry = {
                    "access_level": level,
                    "access_level_description": {
                        0: "No one",
                        30: "Developers + Maintainers",
                        40: "Maintainers",
                        60: "Instance",
                    }[level],
                }
                if of_group:
                    entry |= {"id": branch.id * 10 + number, "user_id": None, "group_id": None}
                    if push:
                        entry["deploy_key_id"] = None
                found.append(entry)
            return found

        flag = branch.owners
        record = {
            "id": branch.id,
            "name": branch.name,
            "push_access_levels": levels(branch.push, push=True),
            "merge_access_levels": levels(branch.merge, push=False),
            "unprotect_access_levels": levels(branch.unprotect, push=True),
            "code_owner_approval_required": flag if of_group else ("true" if flag else "false"),
        }
        if of_group:
            record |= {"allow_force_push": False, "inherited": False}
        return record

    def rule(self, rule: Record, viewer: Record, eligible: Iterable[Record], kind: str) -> Shown:
        """kind: group, project, own (of a merge request) or state."""
        store = self.store
        seen = [g for g in rule.groups if store.sees_group(viewer, g)]
        record = {
            "rule_type": rule.rule_type,
            "id": rule.id,
            "name": rule.name,
            "approvals_required": rule.required,
            "eligible_approvers": self.users(eligible),
            "users": self.users(rule.users),
            "groups": [self.group(g) for g in self.mixed(seen, lambda g: g.id)],
            "contains_hidden_groups": len(seen) < len(rule.groups),
            "report_type": rule.report_type,
            "tone": "neutral",
        }
        if kind in ("group", "project"):
            record["protected_branches"] = [
                self.protected(b, of_group=kind == "group") for b in self.mixed(rule.branches, lambda b: b.id)
            ]
            record["applies_to_all_protected_branches"] = rule.all_branches
        else:
            record["source_rule"] = rule.source
            record["overridden"] = rule.overridden
        return record
