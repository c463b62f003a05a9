"""Approval settings of groups and projects, and the approval configuration of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selftest.second_server.store import MAINTAINER, OWNER, REPORTER, RefusalError

if TYPE_CHECKING:
    from selftest.second_server.call import Call, Route
    from selftest.second_server.say import Shown
    from selftest.second_server.store import Record
    from selftest.second_server.web import Response


NAMES = [
    "allow_author_approval",
    "allow_committer_approval",
    "allow_overrides_to_approver_list_per_merge_request",
    "retain_approvals_on_push",
    "selective_code_owner_removals",
    "require_reauthentication_to_approve",
]
DEFAULTS = {
    "allow_author_approval": False,
    "allow_committer_approval": True,
    "allow_overrides_to_approver_list_per_merge_request": True,
    "retain_approvals_on_push": True,
    "selective_code_owner_removals": False,
    "require_reauthentication_to_approve": False,
}


def value(holder: Record, name: str) -> bool:
    return bool(holder.settings.get(name, DEFAULTS[name]))


def shown(call: Call, holder: Record) -> Response:
    record = {}
    for name in reversed(NAMES):
        record[name] = {
            "locked": False,
            "value": value(holder, name),
            "inherited_from": None if name in holder.settings else "the installation",
            "editable": True,
        }
    record["require_password_to_approve"] = dict(record["require_reauthentication_to_approve"])
    return call.json({**record})


def change(call: Call, holder: Record) -> None:
    call.known(*NAMES)
    wanted = {name: call.body.boolean(name) for name in NAMES if call.body.raw(name) is not None}
    for name in NAMES:
        if name in call.body and call.body.raw(name) is None:
            raise RefusalError(422, f"{name} must not be null")
    if not wanted:
        raise RefusalError(400, "nothing to change")
    after = {name: wanted.get(name, value(holder, name)) for name in NAMES}
    if after["retain_approvals_on_push"] and after["selective_code_owner_removals"]:
        if wanted.get("selective_code_owner_removals"):
            raise RefusalError(422, "selective_code_owner_removals needs retain_approvals_on_push to be off")
        wanted["selective_code_owner_removals"] = False
    holder.settings.update(wanted)


def top_group(call: Call, key: str) -> Record:
    group = call.store.find_group(call.user, key)
    call.store.need_group(call.user, group, OWNER)
    if group.parent:
        raise RefusalError(400, "only groups at the top have these")
    return group


def group_show(call: Call, key: str) -> Response:
    return shown(call, top_group(call, key))


def group_change(call: Call, key: str) -> Response:
    group = top_group(call, key)
    change(call, group)
    response = shown(call, group)
    response.status = 201
    return response


def maintained(call: Call, key: str) -> Record:
    """Exactly this role: the text names no other one."""
    project = call.store.find_project(call.user, key)
    if (not call.user.admin or call.store.powerless) and call.store.project_level(call.user, project) != MAINTAINER:
        raise RefusalError(403, "this is for maintainers")
    return project


def project_show(call: Call, key: str) -> Response:
    return shown(call, maintained(call, key))


def project_change(call: Call, key: str) -> Response:
    change(call, maintained(call, key))
    return call.nothing(204)


# the configuration: authors, committers, overrides and passwords share their values with the settings; reset and
# selective have their own.
LINKED = {
    "merge_requests_author_approval": ("allow_author_approval", False),
    "merge_requests_disable_committers_approval": ("allow_committer_approval", True),
    "disable_overriding_approvers_per_merge_request": ("allow_overrides_to_approver_list_per_merge_request", True),
    "require_password_to_approve": ("require_reauthentication_to_approve", False),
}
OWN = {"reset_approvals_on_push": True, "selective_code_owner_removals": False}


def configuration(project: Record) -> Shown:
    record = {name: value(project, other) != negated for name, (other, negated) in LINKED.items()}
    for name, default in OWN.items():
        record[name] = project.config.get(name, default)
    record["approvals_before_merge"] = project.config.get("approvals_before_merge", 0)
    record["require_reauthentication_to_approve"] = record["require_password_to_approve"]
    return record


def configuration_show(call: Call, key: str) -> Response:
    if call.on("no-configuration"):
        raise RefusalError(410, "this went with 16.0")
    project = call.store.find_project(call.user, key)
    call.store.need_project(call.user, project, REPORTER)
    record = configuration(project)
    if call.style == "a":
        record |= {"approvers": [], "approver_groups": []}
    return call.json(record)


def configuration_change(call: Call, key: str) -> Response:
    if call.style == "a" or call.on("no-configuration"):
        raise RefusalError(410, "this went with 16.0")
    project = call.store.find_project(call.user, key)
    call.store.need_project(call.user, project, MAINTAINER)
    call.known(*LINKED, *OWN, "approvals_before_merge")
    body = call.body
    wanted = {name: body.boolean(name) for name in (*LINKED, *OWN) if name in body}
    wanted = {k: v for k, v in wanted.items() if v is not None}
    before = body.integer("approvals_before_merge", least=0, most=1000)
    after = {name: wanted.get(name, project.config.get(name, default)) for name, default in OWN.items()}
    if after["reset_approvals_on_push"] and after["selective_code_owner_removals"]:
        if wanted.get("selective_code_owner_removals"):
            raise RefusalError(409, "selective_code_owner_removals needs reset_approvals_on_push to be off")
        wanted["selective_code_owner_removals"] = False
    for name, flag in wanted.items():
        if name in LINKED:
            other, negated = LINKED[name]
            project.settings[other] = flag != negated
        else:
            project.config[name] = flag
    if before is not None:
        project.config["approvals_before_merge"] = before
    return call.json(configuration(project), 200)


SETTING = "/:id/merge_request_approval_setting"
ROUTES: list[Route] = [
    ("GET", "groups" + SETTING, group_show),
    ("PUT", "groups" + SETTING, group_change),
    ("GET", "projects" + SETTING, project_show),
    ("PUT", "projects" + SETTING, project_change),
    ("GET", "projects/:id/approvals", configuration_show),
    ("POST", "projects/:id/approvals", configuration_change),
]
