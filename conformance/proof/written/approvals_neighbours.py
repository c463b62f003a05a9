"""Faults of approvals in rare combinations: similar values, neighbours, concurrent callers, older rules."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, altering, around, handling
from conformance.proof.written.approval_rules import stored
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.errors import StatedError
from conformance.reference.identity import Kind

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
#: For this number of seconds a call waits between what it reads and what it writes.
AT_ONCE = 0.03


# -- similar values ----------------------------------------------------------------------------------------------------


def conflicting(service: Service, differs: Any) -> None:
    """Let a function of the sent sha and the HEAD decide whether there is a conflict."""
    area = service.merge_request_approvals

    def require(merge_request: Any, sha: Any) -> None:
        if differs(sha, service.repositories.head_of(merge_request)):
            raise StatedError(409, "409 Conflict")

    area.require_current_head = require


@fault("merge-request-approvals.approve.near-sha-is-refused")
def beginning_of_the_head_is_enough(service: Service) -> None:
    """A sha is accepted if the HEAD begins with it."""
    conflicting(service, lambda sha, head: sha is not None and (not sha or not head.startswith(sha)))


@fault("merge-request-approvals.approve.near-sha-is-refused")
def what_stands_behind_the_head_is_not_read(service: Service) -> None:
    """A sha is accepted if it begins with the HEAD."""
    conflicting(service, lambda sha, head: sha is not None and not sha.startswith(head))


@fault("merge-request-approvals.approve.other-sha-conflicts")
def the_first_digit_is_not_read(service: Service) -> None:
    """A sha is accepted if it equals the HEAD except for the first digit."""
    conflicting(service, lambda sha, head: sha is not None and sha[1:] != head[1:])


@fault("merge-request-approvals.approve.other-sha-conflicts")
def any_head_will_do(service: Service) -> None:
    """The HEAD of any merge request is accepted."""
    heads = [service.repositories.head_of(one) for one in service.repositories.merge_requests.values()]
    conflicting(service, lambda sha, _: sha is not None and sha not in heads)


@fault("merge-request-approvals.approve.other-sha-conflicts")
def the_former_head_will_do(service: Service) -> None:
    """The HEAD from before the last push is still accepted."""
    conflicting(service, lambda sha, head: sha not in {None, head, former_head(service, head)})


@fault("merge-request-approvals.approve.current-sha")
def pushes_move_no_head(service: Service) -> None:
    """A sha is compared with the HEAD from before the last push."""
    conflicting(service, lambda sha, head: sha not in {None, former_head(service, head) or head})


def former_head(service: Service, head: str) -> str | None:
    """Return the commit before another one."""
    known = service.repositories.commits.get(head)
    return known.parent if known else None


@fault("merge-request-approvals.approve.other-sha-conflicts")
def any_sha_will_do_beside_an_approval(service: Service) -> None:
    """Once somebody has approved, any sha is accepted."""

    def make(require: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            if not service.merge_request_approvals.approvals.get(merge_request.id):
                require(merge_request, sha)

        return requiring

    around(service.merge_request_approvals, "require_current_head", make)


@fault("merge-request-approvals.merge-request.of-its-project")
def merge_requests_are_found_anywhere(service: Service) -> None:
    """An iid that the project does not have shows the merge request of another project."""

    def make(find: Any) -> Any:
        def anywhere(project: Any, iid: int) -> Any:
            known = service.repositories.merge_requests
            others = [one for one in known.values() if one.iid == iid]
            return others[0] if others and (project.id, iid) not in known else find(project, iid)

        return anywhere

    around(service.merge_request_approval_rules, "merge_request", make)


@fault("merge-request-approvals.password.missing")
def the_head_stands_for_the_password(service: Service) -> None:
    """If a sha is sent, no password is required."""

    def make(approve: Any) -> Any:
        def lenient(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            approve(merge_request, caller, sha, caller.password if sha else password)

        return lenient

    around(service.merge_request_approvals, "approve", make)


@fault("merge-request-approvals.password.wrong")
def beside_the_head_any_password_is_right(service: Service) -> None:
    """If a sha is sent, any password is accepted."""

    def make(approve: Any) -> Any:
        def lenient(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            approve(merge_request, caller, sha, caller.password if sha and password else password)

        return lenient

    around(service.merge_request_approvals, "approve", make)


@fault("merge-request-approvals.password.wrong")
def half_a_password_is_right(service: Service) -> None:
    """A password is compared only up to its own length."""
    service.merge_request_approvals.password_matches = lambda caller, password: (
        bool(password) and caller.password.startswith(password)
    )


@fault("merge-request-approvals.password.wrong")
def empty_password_is_right(service: Service) -> None:
    """An empty password is accepted."""
    around(
        service.merge_request_approvals,
        "password_matches",
        lambda matches: lambda caller, password: password == "" or matches(caller, password),
    )


@fault("merge-request-approvals.password.wrong")
def anybody_s_password_is_right(service: Service) -> None:
    """The password of any user is accepted."""
    service.merge_request_approvals.password_matches = lambda _, password: any(
        user.password == password for user in service.identities.users.values()
    )


@fault("merge-request-approvals.reset.others-get-401")
def administrators_are_forbidden_to_reset(service: Service) -> None:
    """An administrator of the installation is refused a reset with 403."""

    def make(require: Any) -> Any:
        def other(caller: Any, merge_request: Any) -> None:
            if caller.admin:
                raise StatedError(403, "403 Forbidden")
            require(caller, merge_request)

        return other

    around(service.merge_request_approvals, "require_bot", make)


@fault("merge-request-approvals.reset.by-group-bot")
def bots_of_groups_clear_nothing(service: Service) -> None:
    """The bot of a group token resets approvals, but nothing happens."""

    def make(handler: Any) -> Any:
        def idle(request: Request) -> Any:
            before = service.store.snapshot()
            answer = handler(request)
            if request.caller.bot is not None and request.caller.bot.kind is Kind.GROUP:
                service.store.restore(before)
            return answer

        return idle

    handling(service, f"PUT {MERGE_REQUEST}/reset_approvals", make)


@fault("merge-request-approvals.approve.left-until-enough")
def one_approval_is_enough(service: Service) -> None:
    """After one approval, none is left."""

    def shown(status: Any, *_: Any) -> None:
        if status["approved_by"]:
            status["approvals_left"] = 0

    afterwards(service.merge_request_approvals, "status", shown)


# -- what a call must not change ---------------------------------------------------------------------------------------


def own_rules(service: Service, merge_request: Any) -> list[Any]:
    """Return the rules of a merge request."""
    return [
        rule
        for rule in list(stored(service).values())
        if rule.home.level is Level.MERGE_REQUEST and rule.home.id == merge_request.id
    ]


@fault("merge-request-approvals.approvals-leave-rules")
def reset_takes_the_rules(service: Service) -> None:
    """A reset of approvals also deletes the rules of the merge request."""

    def clear(_: Any, merge_request: Any) -> None:
        for rule in own_rules(service, merge_request):
            del stored(service)[rule.id]

    afterwards(service.merge_request_approvals, "clear_approvals", clear)


@fault("merge-request-approvals.approvals-leave-rules")
def approval_lowers_the_number(service: Service) -> None:
    """An approval lowers approvals_required of each rule by one."""

    def lower(_: Any, __: Any, merge_request: Any) -> None:
        for rule in own_rules(service, merge_request):
            stored(service)[rule.id] = replace(rule, approvals_required=max(0, rule.approvals_required - 1))

    afterwards(service.merge_request_approvals, "add_approval", lower)


@fault("merge-request-approvals.rules.leave-project-rules")
def deletion_in_a_merge_request_reaches_the_project(service: Service) -> None:
    """Deleting a rule of a merge request also deletes the newest rule of its project."""

    def delete(_: Any, rule: Any) -> None:
        ours = [one for one in list(stored(service).values()) if one.home.level is Level.PROJECT]
        if rule.home.level is Level.MERGE_REQUEST and ours:
            del stored(service)[ours[-1].id]

    afterwards(service.approval_rules, "delete_rule", delete)


@fault("project-approval-rules.leave-merge-requests")
def change_in_a_project_reaches_merge_requests(service: Service) -> None:
    """A change of a project's rule sets its number in every rule of a merge request."""

    def spread(rule: Any, *_: Any) -> None:
        for other in list(stored(service).values()):
            if rule.home.level is Level.PROJECT and other.home.level is Level.MERGE_REQUEST:
                stored(service)[other.id] = replace(other, approvals_required=rule.approvals_required)

    afterwards(service.approval_rules, "update_rule", spread)


@fault("merge-request-approvals.approvals-are-separate")
def approvals_are_kept_by_iid(service: Service) -> None:
    """Merge requests of different projects with the same iid share their approvals."""
    area = service.merge_request_approvals

    def spread(_: Any, user: Any, merge_request: Any) -> None:
        for other in list(service.repositories.merge_requests.values()):
            if other.iid == merge_request.iid and other.id != merge_request.id:
                area.approvals[other.id] = area.approvals[merge_request.id]

    afterwards(area, "add_approval", spread)


# -- concurrent calls --------------------------------------------------------------------------------------------------


def losing(service: Service, *keys: str, beside: str = "") -> None:
    """Let each call of these routes write everything as it was a moment before, with its own change in it.

    Calls of the route `beside` take a shorter moment, so that it does not matter which of the two arrives first.
    """
    before: dict[int, Any] = {}

    async def wait(request: Request) -> None:
        if request.route.key in keys:
            before[id(request)] = service.store.snapshot()
            await asyncio.sleep(AT_ONCE)
        elif request.route.key == beside:
            await asyncio.sleep(AT_ONCE / 2)

    def make(handler: Any) -> Any:
        def late(request: Request) -> Any:
            service.store.restore(before.pop(id(request)))
            return handler(request)

        return late

    service.interruption = wait
    for key in keys:
        handling(service, key, make)


@fault("merge-request-approvals.approve.at-once")
def one_of_two_approvals_is_lost(service: Service) -> None:
    """If two users approve concurrently, the first approval is lost."""
    losing(service, f"POST {MERGE_REQUEST}/approve")


@fault("merge-request-approvals.rules.create.at-once")
@fault("project-approval-rules.create.at-once")
def one_of_two_rules_is_lost(service: Service) -> None:
    """If two rules are created concurrently, the first is lost."""
    losing(service, "POST /projects/:id/approval_rules", f"POST {MERGE_REQUEST}/approval_rules")


@fault("project-approval-rules.update.at-once")
def one_of_two_changes_is_lost(service: Service) -> None:
    """If two rules are changed concurrently, the first stays unchanged."""
    losing(service, "PUT /projects/:id/approval_rules/:approval_rule_id")


#: After how many checks without a change a waiting call continues: once there was a change, and before any.
_CALM_AFTER_CHANGES, _CALM_WITHOUT = 8, 12


@fault("group-approval-rules.create.at-once")
def a_creation_undoes_changes_beside_it(service: Service) -> None:
    """Creating a rule of a group writes the others as they were a moment before."""
    table, key = stored(service), "POST /groups/:id/approval_rules"
    change = "PUT /groups/:id/approval_rules/:approval_rule_id"
    seen: dict[int, dict[Any, Any]] = {}

    async def wait(request: Request) -> None:
        if request.route.key == change:
            # A change waits for a creation, so that both are certainly concurrent.
            for _ in range(_CALM_WITHOUT):
                if not seen:
                    await asyncio.sleep(AT_ONCE / 3)
        if request.route.key == key:
            before = seen[id(request)] = dict(table)
            # Wait while others change something, or until it is clear that none will.
            last, quiet = dict(table), 0
            while quiet < (_CALM_AFTER_CHANGES if last != before else _CALM_WITHOUT):
                await asyncio.sleep(AT_ONCE / 3)
                quiet = quiet + 1 if dict(table) == last else 0
                last = dict(table)

    def make(handler: Any) -> Any:
        def late(request: Request) -> Any:
            before = seen.pop(id(request))
            table.clear()
            table.update(before)
            return handler(request)

        return late

    service.interruption = wait
    handling(service, key, make)


@fault("approval-settings.group.update.at-once")
def one_of_two_settings_of_a_group_is_lost(service: Service) -> None:
    """If the settings of a group are updated twice concurrently, the first update is lost."""
    losing(service, "PUT /groups/:id/merge_request_approval_setting")


@fault("approval-settings.project.update.at-once")
def one_of_two_settings_of_a_project_is_lost(service: Service) -> None:
    """If the settings of a project are updated twice concurrently, the first update is lost."""
    losing(service, "PUT /projects/:id/merge_request_approval_setting")


# -- the older of two, and callers who have read before ----------------------------------------------------------------


def newest_in_place_of(service: Service, level: Level, name: str) -> None:
    """Let a method that works on a rule use the newest rule of the same place instead, at one level."""

    def make(method: Any) -> Any:
        def newest(subject: Any, rule: Any, *arguments: Any) -> Any:
            found = [one for one in list(stored(service).values()) if one.home == rule.home]
            return method(subject, found[-1] if rule.home.level is level else rule, *arguments)

        return newest

    around(service.approval_rules, name, make)


@fault("merge-request-approvals.rules.update.name")
def the_newest_rule_is_updated(service: Service) -> None:
    """An update of any rule of a merge request changes the newest one."""
    newest_in_place_of(service, Level.MERGE_REQUEST, "update_rule")


def newest_is_read(service: Service, key: str, level: Level) -> None:
    """Show the newest rule of the same place with the requested id."""

    def alter(_: Request, response: Response) -> None:
        asked = stored(service).get(response.content.get("id"))
        if asked is not None and asked.home.level is level:
            newest = [one for one in list(stored(service).values()) if one.home == asked.home][-1]
            response.content = {**response.content, "name": newest.name}

    altering(service, f"GET {key}", alter)


@fault("merge-request-approvals.rules.read-one")
def the_newest_rule_of_a_merge_request_is_read(service: Service) -> None:
    """For each rule of a merge request, the name of the newest one is shown."""
    newest_is_read(service, f"{MERGE_REQUEST}/approval_rules/:approval_rule_id", Level.MERGE_REQUEST)


@fault("project-approval-rules.read")
def the_newest_rule_of_a_project_is_read(service: Service) -> None:
    """For each rule of a project, the name of the newest one is shown."""
    newest_is_read(service, "/projects/:id/approval_rules/:approval_rule_id", Level.PROJECT)


def remembered_for_the_reader(service: Service, key: str, *, actor: str) -> None:
    """Always show one caller the result of the first read."""
    known: dict[str, Any] = {}
    reader = service.world.actors[actor].id

    def alter(request: Request, response: Response) -> None:
        if request.caller.id == reader and response.status < 300:
            response.content = known.setdefault(request.raw_path.decode(), response.content)

    altering(service, f"GET {key}", alter)


@fault("merge-request-approvals.approve.lists-caller")
def owner_sees_the_first_status_for_good(service: Service) -> None:
    """The owner always gets the approval status of a merge request from the first read."""
    remembered_for_the_reader(service, f"{MERGE_REQUEST}/approvals", actor="owner")


@fault("project-approval-rules.update.stored")
def owner_sees_the_first_rule_for_good(service: Service) -> None:
    """The owner always gets a rule of a project from the first read."""
    remembered_for_the_reader(service, "/projects/:id/approval_rules/:approval_rule_id", actor="owner")


# -- what responses show -----------------------------------------------------------------------------------------------


@fault("merge-request-approvals.status.title-and-description")
def title_of_the_first_merge_request(service: Service) -> None:
    """The status shows the title of the first merge request of the project."""

    def alter(_: Request, response: Response) -> None:
        known = service.repositories.merge_requests.values()
        first = next(one for one in known if one.project_id == response.content["project_id"])
        response.content = {**response.content, "title": first.title, "description": first.description}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.status.describes-its-merge-request")
def approval_is_answered_with_another_iid(service: Service) -> None:
    """The answer to an approval has the iid of another merge request."""

    def alter(_: Request, response: Response) -> None:
        response.content = {**response.content, "iid": response.content["iid"] + 1}

    altering(service, f"POST {MERGE_REQUEST}/approve", alter)


def in_the_state(service: Service, change: Any) -> None:
    """Change every rule of the approval state."""

    def alter(_: Request, response: Response) -> None:
        rules = response.content["rules"]
        response.content = {**response.content, "rules": [change(rule, rules) for rule in rules]}

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)


@fault("merge-request-approvals.state.rule.approved-by-have-approved")
def whoever_may_approve_is_counted(service: Service) -> None:
    """approved_by of a rule lists all of its users."""
    in_the_state(service, lambda rule, _: {**rule, "approved_by": rule["users"]})


@fault("merge-request-approvals.rules.create.in-state")
def number_of_the_first_rule_in_the_state(service: Service) -> None:
    """Every rule of the approval state has approvals_required of the first one."""
    in_the_state(service, lambda rule, rules: {**rule, "approvals_required": rules[0]["approvals_required"]})
