"""Slips of a tired programmer, part one: who is let in, which thing is meant, and what comes back the second time.

Written by somebody who had the specification and the reference, and had seen neither tests nor other faults.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, handling, instead, let_in
from conformance.reference.areas.approval_rule_records import Home, Level
from conformance.reference.errors import StatedError
from conformance.reference.identity import Role, Visibility

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

_CALLERS = "caller x form of id x operation"
_LEVELS = "level x id of another level"
_NEIGHBOURS = "value x neighbour of the right value"
_AGAIN = "again, by another caller, after an undo"
_PAGES = "pages and totals"
_SCOPE = "/projects/:id/job_token_scope"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


# -- who calls, and how the id is written ------------------------------------------------------------------------------


@foreign(_CALLERS, "Job token scope: DELETE")
def developers_take_from_the_lists_by_path(service: Service) -> None:
    """By the path of the project a developer takes projects and groups off the lists; that takes a maintainer."""
    keys = (f"DELETE {_SCOPE}/allowlist/:target_project_id", f"DELETE {_SCOPE}/groups_allowlist/:target_group_id")
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(_CALLERS, "Integrations: GET one")
def developers_read_an_integration_by_path(service: Service) -> None:
    """By the path of the project a developer reads an integration."""
    keys = ("GET /projects/:id/integrations/:slug", "GET /projects/:id/services/:slug")
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(_CALLERS, "Integrations: DELETE by the older name")
def developers_disable_by_the_older_name(service: Service) -> None:
    """By the older name a developer disables integrations."""
    service.routes.change("DELETE /projects/:id/services/:slug", least_role=Role.DEVELOPER)


@foreign(_CALLERS, "Approval settings: PUT of a group")
def members_write_settings_that_are_so_already(service: Service) -> None:
    """Any member of a group is served an update of its settings that changes none; it takes an owner."""

    def changes_nothing(request: Any, _: Any, role: Role) -> bool:
        group = service.identities.find_group(request.path["id"])
        settings = service.approval_settings
        if group is None or role is Role.NONE:
            return False
        now, sent = settings.settings(group), request.parameters.optional_boolean
        wanted = {setting.value: sent(setting.value) for setting in settings.accepted()}
        return all(now[name]["value"] == value for name, value in wanted.items() if value is not None)  # type: ignore[index]

    let_in(service, ("PUT /groups/:id/merge_request_approval_setting",), changes_nothing)


@foreign(_CALLERS, "Group approval rules: PUT")
def developers_change_rules_of_a_group_by_path(service: Service) -> None:
    """By the path of the group a developer changes its rules; they are for its administrators."""
    keys = ("PUT /groups/:id/approval_rules/:approval_rule_id",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(_CALLERS, "Job token scope: GET")
def public_projects_show_their_scope(service: Service) -> None:
    """Whoever can see a project that is not private reads its scope and lists; that takes a maintainer."""

    def is_open(request: Any, _: Any, __: Any) -> bool:
        project = service.identities.find_project(request.path["id"])
        return project is not None and project.visibility is not Visibility.PRIVATE

    let_in(service, (f"GET {_SCOPE}", f"GET {_SCOPE}/allowlist", f"GET {_SCOPE}/groups_allowlist"), is_open)


@foreign(_CALLERS, "Authentication 1")
def unknown_tokens_are_good_for_the_enabled_check(service: Service) -> None:
    """The enabled check serves whoever sends any token at all."""

    @instead(service.access, "authenticate")
    def _(authenticate: Any, request: Any) -> Any:
        sent = service.access.token_text(request)
        if request.route.path == "/code_suggestions/enabled" and sent and sent not in service.identities.tokens:
            return next(user for user in service.identities.users.values() if user.admin)
        return authenticate(request)


@foreign(_CALLERS, "Authentication 2")
def tokens_are_compared_in_any_case(service: Service) -> None:
    """A token in other letters is taken for the one that was issued."""

    @instead(service.access, "token_text")
    def _(read: Any, request: Any) -> str:
        sent: str = read(request)
        return next((token for token in service.identities.tokens if token.lower() == sent.lower()), sent)


@foreign(_CALLERS, "Merge request approvals: reset_approvals")
def resets_of_nothing_are_open_to_all(service: Service) -> None:
    """Where nobody has approved yet, whoever sees the merge request may reset its approvals; others get 401."""

    @instead(service.merge_request_approvals, "reset_approvals")
    def _(reset: Any, merge_request: Any, caller: Any) -> None:
        if service.merge_request_approvals.approvals_of(merge_request):
            reset(merge_request, caller)


# -- ids of another level ----------------------------------------------------------------------------------------------


@foreign(_LEVELS, "Project approval rules: PUT")
def projects_change_rules_of_the_groups_around(service: Service) -> None:
    """A project reads, changes and deletes the rule of a group around it, which is for administrators of the group."""

    @instead(service.project_approval_rules, "find")
    def _(find: Any, project: Any, number: int) -> Any:
        rule = service.approval_rules.rules.get(number)
        around = [Home(Level.GROUP, group.id) for group in service.identities.lineage(project)]
        return rule if rule is not None and rule.home in around else find(project, number)


@foreign(_LEVELS, "Merge request approvals: rules")
def rules_of_merge_requests_are_copied(service: Service) -> None:
    """A merge request copies the rule of a merge request where a rule of the project is to be named."""
    rules = service.merge_request_approval_rules

    @instead(rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: int | None, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(source_id or 0)
        if rule is None or rule.home.level is not Level.MERGE_REQUEST:
            return create(merge_request, wanted, source_id, caller)
        return service.approval_rules.add_rule(rules.copied_project_rule(merge_request, rule, wanted))


@foreign(_LEVELS, "Job token scope: DELETE")
def removed_groups_take_the_project_of_that_number_along(service: Service) -> None:
    """Taking a group off its list takes the project of the same number off the other."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        left = tuple(number for number in scope.projects if number != target.id)
        scopes.scopes[project.id] = replace(scope, projects=left)


@foreign(_LEVELS, "Group approval rules: PUT")
def subgroups_change_rules_of_the_groups_around(service: Service) -> None:
    """A subgroup changes the rule of a group around it."""

    @instead(service.group_approval_rules, "update_rule")
    def _(update: Any, group: Any, number: int, wanted: Any, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(number)
        around = service.identities.lineage(group)
        owners = [one for one in around if rule is not None and rule.home == Home(Level.GROUP, one.id)]
        return update(owners[0] if owners else group, number, wanted, caller)


@foreign(_LEVELS, "Merge request approvals: iid")
def merge_requests_are_found_by_their_id(service: Service) -> None:
    """A merge request is found by its id where the project has none of that iid."""

    @instead(service.merge_request_approval_rules, "merge_request")
    def _(find: Any, project: Any, iid: int) -> Any:
        known = service.repositories.merge_requests
        others = [one for one in known.values() if one.id == iid and one.project_id == project.id]
        return others[0] if others and (project.id, iid) not in known else find(project, iid)


@foreign(_LEVELS, "Group relations export: download")
def groups_without_export_have_that_of_another(service: Service) -> None:
    """A group that was never exported is given the file of another group."""
    exports = service.group_relations_export

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        others = [one for one in exports.exports.values() if one.relation == relation]
        return others[0] if others and (group.id, relation) not in exports.exports else find(group, relation)


# -- neighbours of the right value -------------------------------------------------------------------------------------


@foreign(_NEIGHBOURS, "Merge request approvals: approve")
def the_head_of_the_target_branch_will_do(service: Service) -> None:
    """The sha of the target branch is taken for the HEAD of the merge request, which is that of its source branch."""

    @instead(service.merge_request_approvals, "require_current_head")
    def _(check: Any, merge_request: Any, sha: str | None) -> None:
        target = service.repositories.branches.get((merge_request.project_id, merge_request.target_branch))
        if target is None or target.sha != sha:
            check(merge_request, sha)


@foreign(_NEIGHBOURS, "Merge request approvals: approve")
def only_forty_digits_of_a_sha_count(service: Service) -> None:
    """Whatever follows the HEAD in a sha is cut off."""

    @instead(service.merge_request_approvals, "require_current_head")
    def _(check: Any, merge_request: Any, sha: str | None) -> None:
        check(merge_request, sha and sha[:40])


@foreign(_NEIGHBOURS, "Merge request approvals: approve")
def passwords_are_compared_in_any_case(service: Service) -> None:
    """The password in other letters approves where it is required."""

    @instead(service.merge_request_approvals, "password_matches")
    def _(_: Any, caller: Any, password: str | None) -> bool:
        return (password or "").lower() == caller.password.lower()


@foreign(_NEIGHBOURS, "Merge request approvals: approve")
def the_password_of_anybody_will_do(service: Service) -> None:
    """The password of another user approves where that of the caller is required."""

    @instead(service.merge_request_approvals, "password_matches")
    def _(_: Any, __: Any, password: str | None) -> bool:
        return any(user.password == password for user in service.identities.users.values())


@foreign(_NEIGHBOURS, "Group relations export: status")
def the_beginning_of_a_name_finds_its_relation(service: Service) -> None:
    """The status of a relation shows those whose names begin like it."""
    exports = service.group_relations_export

    @handling(service, "GET /groups/:id/export_relations/status")
    def _(handler: Any, request: Any) -> Any:
        sent = request.parameters.optional_string("relation")
        found = [one for one in exports.all_of(request.group) if sent and one.relation.startswith(sent)]
        return request.collection(found, exports.present) if found else handler(request)


@foreign(_NEIGHBOURS, "Code completion: enabled")
def unknown_projects_of_known_groups_are_disabled(service: Service) -> None:
    """A project that does not exist in a group that does is disabled, with 403, and not unknown, with 404."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        known = service.identities
        if known.find_project(path) is None and known.find_group(path.rpartition("/")[0]) is not None:
            raise StatedError(403, "403 Forbidden")
        check(caller, path)


# -- once more ---------------------------------------------------------------------------------------------------------


@foreign(_AGAIN, "Job token scope: POST")
def removed_projects_never_come_back(service: Service) -> None:
    """A project that was once taken off the list is added with success and not listed."""
    scopes, gone = service.job_token_scope, set()

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        gone.add((project.id, target.id))

    @instead(scopes, "projects")
    def _(projects: Any, project: Any) -> Any:
        return [one for one in projects(project) if (project.id, one.id) not in gone]


@foreign(_AGAIN, "Merge request approvals: approve")
def who_approves_again_is_listed_twice(service: Service) -> None:
    """Whoever takes an approval back and approves again stands twice in approved_by."""
    approvals, before = service.merge_request_approvals, set()

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        remove(user, merge_request)
        before.add((user.id, merge_request.id))

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        for _ in range(2 if (user.id, merge_request.id) in before else 1):
            add(user, merge_request)


@foreign(_AGAIN, "Merge request approvals: GET approvals")
def readers_see_the_status_that_they_saw_first(service: Service) -> None:
    """Who has read the status of a merge request is shown that until writing something."""
    seen: dict[tuple[str, int], Any] = {}

    @handling(service, f"GET {_MERGE_REQUEST}/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = seen.setdefault((request.caller_name, answer.content["id"]), answer.content)
        return answer

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        admit(request)
        for key in [key for key in seen if request.method != "GET" and key[0] == request.caller_name]:
            del seen[key]


@foreign(_AGAIN, "Merge request approvals: approve")
def passwords_are_remembered(service: Service) -> None:
    """Whoever gave the required password once approves without it from then on."""
    known = set()

    @instead(service.merge_request_approvals, "require_password")
    def _(check: Any, caller: Any, merge_request: Any, password: str | None) -> None:
        if password is not None or (caller.id, merge_request.project_id) not in known:
            check(caller, merge_request, password)
        if password:
            known.add((caller.id, merge_request.project_id))


# -- pages -------------------------------------------------------------------------------------------------------------


def _asked(service: Service, key: str, change: Callable[[Any, bytes], bytes]) -> None:
    """Let an operation read another query than the one that was sent."""

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        request.query = change(request, request.query)
        return handler(request)


@foreign(_PAGES, "Job token scope: pages")
def one_group_a_page_is_no_length(service: Service) -> None:
    """Pages of one group are as long as pages are without being asked."""
    _asked(service, f"GET {_SCOPE}/groups_allowlist", lambda _, query: re.sub(rb"\bper_page=1\b", b"", query))


@foreign(_PAGES, "Project approval rules: pages")
def third_pages_are_second_ones(service: Service) -> None:
    """The third page is the second once more."""
    _asked(service, "GET /projects/:id/approval_rules", lambda _, query: re.sub(rb"\bpage=3\b", b"page=2", query))


@foreign(_PAGES, "Group approval rules: pages")
def pages_are_lost_with_the_path(service: Service) -> None:
    """By the path of the group each page is the first."""
    _asked(
        service,
        "GET /groups/:id/approval_rules",
        lambda request, query: re.sub(rb"\bpage=\d+", b"", query) if by_path(request) else query,
    )
