"""Job token scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selftest.second_server.say import shuffled
from selftest.second_server.store import MAINTAINER, RefusalError, now

if TYPE_CHECKING:
    from selftest.second_server.call import Call, Route
    from selftest.second_server.store import Record
    from selftest.second_server.web import Response


def project_of(call: Call, key: str) -> Record:
    project = call.store.find_project(call.user, key)
    call.store.need_project(call.user, project, MAINTAINER)
    return project


def show(call: Call, key: str) -> Response:
    project = project_of(call, key)
    return call.json({"outbound_enabled": False, "inbound_enabled": project.inbound, "note": None, "log_expiration": 0})


def switch(call: Call, key: str) -> Response:
    project = project_of(call, key)
    call.known("enabled")
    project.inbound = call.body.boolean("enabled", required=True)
    return call.nothing(exact=True)


def listed(call: Call, key: str) -> Response:
    project = project_of(call, key)
    call.store.run_due()
    alive = [p for p in project.allowed if p.id in call.store.projects]
    return call.page([call.say.project(p) for p in shuffled([project, *alive], lambda p: p.id)])


def add(call: Call, key: str) -> Response:
    project = project_of(call, key)
    target = call.store.projects.get(call.body.integer("target_project_id", required=True))
    if target is None or not call.store.sees_project(call.user, target):
        raise RefusalError(404, "there is no such target")
    if target is project or target in project.allowed:
        raise RefusalError(409, "it is on the list")
    project.allowed.append(target)
    return call.json(
        {
            "target_project_id": target.id,
            "source_project_id": project.id,
            "direction": "inbound",
            "target_group_id": None,
        },
        201,
    )


def number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise RefusalError(422, "a number is wanted")
    return int(text)


def remove(call: Call, key: str, target: str) -> Response:
    project = project_of(call, key)
    wanted = number(target)
    for entry in project.allowed:
        if entry.id == wanted:
            project.allowed.remove(entry)
            return call.nothing(exact=True)
    if wanted == project.id:
        raise RefusalError(403, "a project cannot shut itself out")
    raise RefusalError(404, "it is not on the list")


def groups_listed(call: Call, key: str) -> Response:
    project = project_of(call, key)
    store = call.store
    alive = [g for g in project.allowed_groups if g.id in store.groups]
    return call.page(
        [
            {
                "name": g.name,
                "id": g.id,
                "web_url": f"{store.base}/groups/{store.full_path(g)}",
                "depth": len(list(store.chain(g))),
            }
            for g in shuffled(alive, lambda g: g.id)
        ]
    )


def groups_add(call: Call, key: str) -> Response:
    project = project_of(call, key)
    target = call.store.groups.get(call.body.integer("target_group_id", required=True))
    if target is None or not call.store.sees_group(call.user, target):
        raise RefusalError(404, "there is no such target")
    if target not in project.allowed_groups:
        project.allowed_groups.append(target)
    return call.json({"source_project_id": project.id, "target_group_id": target.id, "since": now().year}, 201)


def groups_remove(call: Call, key: str, target: str) -> Response:
    project = project_of(call, key)
    wanted = number(target)
    project.allowed_groups = [g for g in project.allowed_groups if g.id != wanted]
    return call.nothing(exact=True)


BASE = "projects/:id/job_token_scope"
ROUTES: list[Route] = [
    ("GET", BASE, show),
    ("PATCH", BASE, switch),
    ("GET", BASE + "/allowlist", listed),
    ("POST", BASE + "/allowlist", add),
    ("DELETE", BASE + "/allowlist/:target", remove),
    ("GET", BASE + "/groups_allowlist", groups_listed),
    ("POST", BASE + "/groups_allowlist", groups_add),
    ("DELETE", BASE + "/groups_allowlist/:target", groups_remove),
]
