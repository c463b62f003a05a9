"""Small bugs in scopes, completions and rules: what belongs to one of several, and is taken from or given to another."""

from __future__ import annotations

import html
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from conformance.proof.foreign.registry import foreign, handling, instead, is_served, let_in, meanwhile
from conformance.reference.areas.approval_rule_records import home_of
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import ForbiddenError, InvalidError, StatedError
from conformance.reference.http import ok
from conformance.reference.identity import Role
from conformance.reference.parameters import Text

if TYPE_CHECKING:
    from conformance.reference import Service

_AGAIN = "again, by another caller, after an undo"
_BESIDE = "forms of what is sent"
_CALLERS = "caller x form of id x operation"
_LEVELS = "level x id of another level"
_NEIGHBOURS = "value x neighbour of the right value"
_RACE = "two write at once"
_STAYS = "write x everything that must stay"
_STORY = "numbers and texts that follow from the story"
_TWO = "none, one or two values"
_SCOPE = "/projects/:id/job_token_scope"
_GROUP_RULES = "/groups/:id/approval_rules"
_RULES = "/projects/:id/approval_rules"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_OWN_RULES = f"{_MERGE_REQUEST}/approval_rules"


# -- job token scope ---------------------------------------------------------------------------------------------------


# Nothing but a removal takes an entry from the list.
@foreign(_STAYS, "Job token scope: POST groups_allowlist")
def an_outer_group_takes_the_place_of_those_inside(service: Service) -> None:
    """Who adds a group drops the entries of the groups inside it, as if they were let in by it anyhow."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope, groups = scopes.of(project), service.identities.groups
        inside = {n for n in scope.groups if n != target.id and target in service.identities.lineage(groups[n])}
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n not in inside))


# Every maintainer of the project may take an entry away.
@foreign(_CALLERS, "Job token scope: DELETE allowlist")
def entries_are_removed_by_those_alone_who_added_them(service: Service) -> None:
    """An entry of the allowlist belongs to the user who added it, and another maintainer cannot remove it."""
    added: dict[tuple[int, int], int] = {}

    @handling(service, f"POST {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        added[request.project.id, answer.content["target_project_id"]] = request.caller.id
        return answer

    @handling(service, f"DELETE {_SCOPE}/allowlist/:target_project_id")
    def _(handler: Any, request: Any) -> Any:
        place = request.project.id, request.path_id("target_project_id")
        if added.get(place, request.caller.id) != request.caller.id:
            raise ForbiddenError
        return handler(request)


# The limit is on or off before; the answer is 204 in both cases.
@foreign(_AGAIN, "Job token scope: PATCH")
def a_limit_that_stays_is_answered_with_the_settings(service: Service) -> None:
    """Where the limit already is as wanted, the answer is 200 with the settings, and not 204."""

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.job_token_scope.of(request.project).inbound_enabled
        answer = handler(request)
        if service.job_token_scope.of(request.project).inbound_enabled is not before:
            return answer
        return ok(service.job_token_scope.settings(request.project))


# Each entry has its own description, or null.
@foreign(_TWO, "Allowlist project entry: description")
def an_entry_without_description_has_the_one_before(service: Service) -> None:
    """A variable of the loop is not cleared: a project that has no description shows that of the entry before it."""

    @handling(service, f"GET {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        for before, entry in pairwise(answer.content):
            if entry["description"] is None:
                entry["description"] = before["description"]
        return answer


# Both lists keep what was added to them.
@foreign(_RACE, "Job token scope: POST allowlist and groups_allowlist")
def a_project_and_a_group_at_once_are_one_of_both(service: Service) -> None:
    """Both lists are one record: who adds to the one writes the other as it was when the request came."""
    scopes = service.job_token_scope
    keys = f"POST {_SCOPE}/allowlist", f"POST {_SCOPE}/groups_allowlist"

    def write(seen: Any, request: Any) -> None:
        before, scope = seen.get(request.project.id), scopes.of(request.project)
        other = "groups" if request.route.key == keys[0] else "projects"
        kept = getattr(before, other) if before else ()
        scopes.scopes[request.project.id] = replace(scope, **{other: kept})

    meanwhile(service, keys, lambda: dict(scopes.scopes), write)


# -- code completion ---------------------------------------------------------------------------------------------------


# Nothing is streamed unless it is asked for.
@foreign(_BESIDE, "Code completion: stream and intent")
def generations_are_streamed_unasked(service: Service) -> None:
    """A generation takes long, so it is sent in chunks whatever `stream` says, and not as a completion result."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        return replace(wanted, stream=wanted.stream or wanted.intent == "generation")


# The project exists, wherever it lies.
@foreign(_NEIGHBOURS, "Code completion: POST enabled")
def projects_of_a_user_are_unknown_to_the_check(service: Service) -> None:
    """The check looks for the group of a project first, and a project in the namespace of a user is not found."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        project = service.identities.find_project(path)
        if project is not None and service.identities.namespace_of(project).personal:
            raise StatedError(404, "404 Group Not Found")
        check(caller, path)


# A path that no project has is 404, whatever it ends with.
@foreign(_NEIGHBOURS, "Code completion: POST enabled")
def the_check_finds_a_project_by_the_end_of_its_path(service: Service) -> None:
    """A path in a wrong group that ends as the path of a project does is taken for that project, as if it had moved."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if path and service.identities.find_project(path) is None:
            name = path.rpartition("/")[2]
            moved = (project for project in service.identities.projects.values() if project.path == name)
            path = next((project.full_path for project in moved), path)
        check(caller, path)


# What stands above the cursor is a string like any other.
@foreign(_NEIGHBOURS, "Code completion: content_above_cursor")
def code_with_other_letters_is_not_completed(service: Service) -> None:
    """The gateway is called in ASCII, so that a file with an umlaut above the cursor is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if not wanted.content_above_cursor.isascii():
            raise InvalidError("current_file is invalid", parameter="current_file")
        return wanted


# -- rules of groups ---------------------------------------------------------------------------------------------------


# A creation changes no rule that was there, and none of another group.
@foreign(_LEVELS, "Group approval rules: POST")
def a_rule_named_like_one_further_out_changes_that_one(service: Service) -> None:
    """Creating looks for a rule of that name in the groups around as well, and then updates that one."""
    rules = service.approval_rules

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        for outer in service.identities.lineage(group)[1:]:
            for rule in rules.rules_of(home_of(outer)):
                if rule.name == wanted.name:
                    return rules.update_rule(outer, rule, wanted, caller)
        return create(group, wanted, caller)


# Hidden groups are those that the requesting user may not view.
@foreign(_AGAIN, "Approval rule: contains_hidden_groups")
def rules_of_groups_are_shown_as_their_first_reader_saw_them(service: Service) -> None:
    """The presented rule is remembered without the reader: hidden groups are those of whoever read it first."""
    remembered: dict[Any, dict[str, Any]] = {}

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        if rule not in remembered:
            remembered[rule] = present(rule, viewer)
        return dict(remembered[rule])


# A parameter in the query is the text that was encoded.
@foreign(_BESIDE, "Group approval rules: parameters in the query")
def rules_of_groups_decode_the_query_twice(service: Service) -> None:
    """The query was decoded before, and is decoded once more: a name with a percent sign becomes another one."""

    @handling(service, f"POST {_GROUP_RULES}", f"PUT {_GROUP_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = {
            name: Text(unquote(value)) if isinstance(value, Text) else value for name, value in values.items()
        }
        return handler(request)


# Administrators of a group inside do not administer the one around it.
@foreign(_CALLERS, "Authentication: group approval rules")
def owners_of_a_group_inside_write_the_rules_around_it(service: Service) -> None:
    """The role that counts is the highest one in the whole tree, downwards too."""
    keys = f"POST {_GROUP_RULES}", f"PUT {_GROUP_RULES}/:approval_rule_id"
    known = service.identities

    def fits(request: Any, caller: Any, role: Role) -> bool:
        around = known.find_group(request.path["id"])
        inside = [group for group in known.groups.values() if around in known.lineage(group)]
        return role >= Role.OWNER or any(known.role_in(caller, group) >= Role.OWNER for group in inside)

    let_in(service, keys, fits)


# -- rules of projects -------------------------------------------------------------------------------------------------


# Both lists are added; somebody in both is an approver as well.
@foreign(_TWO, "Project approval rules: user_ids and usernames")
def who_is_named_in_both_lists_is_in_neither(service: Service) -> None:
    """The lists of ids and of usernames are joined by what they do not share."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        users = [service.identities.find_username(name) for name in wanted.usernames or ()]
        twice = {user.id for user in users if user} & set(wanted.user_ids or ())
        found = named(wanted, subject)
        return None if found is None else tuple(number for number in found if number not in twice)


# A rule that was deleted is gone, whatever is written to another one.
@foreign(_RACE, "Project approval rules: PUT and DELETE")
def an_update_brings_back_what_is_deleted_meanwhile(service: Service) -> None:
    """All rules of a project are written together, so an update restores those that were deleted since it began."""
    rules = service.approval_rules

    def write(seen: Any, request: Any) -> None:
        for number, rule in seen.items():
            if rule.home == home_of(request.project):
                rules.rules.setdefault(number, rule)

    meanwhile(service, (f"PUT {_RULES}/:approval_rule_id",), lambda: dict(rules.rules), write)


# A name is what was sent.
@foreign(_NEIGHBOURS, "Project approval rules: PUT, name")
def names_are_escaped_for_pages_when_they_change(service: Service) -> None:
    """An update stores the name as HTML, with `&amp;` in the place of `&`."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        return update(project, number, replace(wanted, name=html.escape(wanted.name or "", quote=False)), caller)


# -- rules of merge requests -------------------------------------------------------------------------------------------


# What is changed is the one rule that the path names.
@foreign(_LEVELS, "Merge request approvals: PUT approval_rules")
def an_update_reaches_all_copies_of_a_project_rule(service: Service) -> None:
    """A copy is found by the project rule it came from, so those in other merge requests change as well."""
    rules = service.approval_rules.rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = update(merge_request, number, wanted, caller)
        if changed.source_id is not None:
            for copy in [rule for rule in rules.values() if rule.source_id == changed.source_id]:
                rules[copy.id] = replace(changed, id=copy.id, home=copy.home)
        return changed


# Whoever usernames name is an approver.
@foreign(_TWO, "Merge request approvals: usernames beside user_ids")
def an_empty_list_of_ids_clears_the_usernames_too(service: Service) -> None:
    """An empty user_ids is taken for the wish to have no users, although usernames names some."""
    rules = service.merge_request_approval_rules

    @instead(rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, *rest: Any) -> Any:
        names = None if wanted.user_ids == () else wanted.usernames
        return create(merge_request, replace(wanted, usernames=names), *rest)

    @instead(rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        names = None if wanted.user_ids == () else wanted.usernames
        return update(merge_request, number, replace(wanted, usernames=names), caller)


# The state is that of the rules as they are.
@foreign(_STORY, "Merge request approval state: rules")
def the_state_is_not_made_anew_after_a_deletion(service: Service) -> None:
    """The state is remembered, and forgotten by each write but the deletion of a rule."""
    approvals = service.merge_request_approvals
    remembered: dict[int, dict[str, Any]] = {}

    @instead(approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        return remembered.get(merge_request.id) or state(merge_request, viewer)

    @handling(service, f"DELETE {_OWN_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        merge_request = merge_request_of(request)
        before = approvals.state(merge_request, request.caller)
        answer = handler(request)
        if is_served(answer):
            remembered[merge_request.id] = before
        return answer

    writes = f"POST {_OWN_RULES}", f"PUT {_OWN_RULES}/:approval_rule_id", f"POST {_MERGE_REQUEST}/approve"

    @handling(service, *writes, f"POST {_MERGE_REQUEST}/unapprove", f"PUT {_MERGE_REQUEST}/reset_approvals")
    def _(handler: Any, request: Any) -> Any:
        remembered.pop(merge_request_of(request).id, None)
        return handler(request)
