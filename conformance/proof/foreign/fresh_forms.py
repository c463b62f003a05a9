"""Small bugs in forms: of a token, of JSON, of a flag that is false, of a list that is empty, of ids from an answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, meanwhile
from conformance.reference.areas.integration_catalogue import EVENT_FLAGS
from conformance.reference.errors import NotFoundError, StatedError, UnauthorizedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference import Service

_COMPLETIONS = "POST /code_suggestions/completions"
_RULES = "/projects/:id/approval_rules"
_SENT = "forms of what is sent"
_FALSE = "value x neighbour of the right value"
_AGAIN = "again, by another caller, after an undo"


def _sending(request: Any, values: Mapping[str, Any]) -> None:
    """Let a request say this as well."""
    request.parameters._values = {**request.parameters._values, **values}


# -- forms of what is sent ---------------------------------------------------------------------------------------------


# A bearer has to be somebody: every endpoint asks for an authenticated caller, by either of the two headers.
@foreign(_SENT, "Code completion: Authorization")
def any_bearer_completes(service: Service) -> None:
    """Whoever sends any bearer token at all is served a completion."""

    @instead(service.access, "authenticate")
    def _(authenticate: Any, request: Any) -> Any:
        try:
            return authenticate(request)
        except UnauthorizedError:
            if request.route.key != _COMPLETIONS or not request.header("authorization"):
                raise
            return service.identities.users[service.world.actors["developer"].id]


# Requests are JSON, and in JSON both spellings are the same text.
@foreign(_SENT, "Project approval rules: POST, name")
def escapes_are_stored_as_written(service: Service) -> None:
    r"""A letter that JSON writes as \u00e9 is stored with the backslash and the digits."""

    @handling(service, f"POST {_RULES}", f"PUT {_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        request.body = request.body.replace(rb"\u", rb"\\u")
        return handler(request)


# A name is a text; one that the service does not take is refused, and no call may break the service.
@foreign(_SENT, "Project approval rules: POST, name")
def names_beyond_the_basic_plane_break(service: Service) -> None:
    """The name of a rule with a sign beyond the first 65,536 breaks the service."""

    @instead(service.approval_rules, "require_possible")
    def _(require: Any, rule: Any) -> None:
        if max(map(ord, rule.name), default=0) > 0xFFFF:
            raise OverflowError(rule.name)
        require(rule)


# The older name is an alias of the newer one, for whatever is sent.
@foreign(_SENT, "Integrations: the alias")
def the_older_name_takes_no_flags(service: Service) -> None:
    """Whoever sets up an integration by the older name sends event flags in vain."""

    @handling(service, "PUT /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        _sending(request, dict.fromkeys(EVENT_FLAGS))
        return handler(request)


# Only a project that does not exist is answered with 404; this one is enabled, or else disabled with 403.
@foreign(_SENT, "Code completion: enabled, 404")
def projects_in_subgroups_are_unknown_to_the_check(service: Service) -> None:
    """The check says of a project in a group within a group that there is none."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if path.count("/") > 1:
            raise StatedError(404, "404 Project Not Found")
        check(caller, path)


# -- false, empty and nothing ------------------------------------------------------------------------------------------


# Hidden groups are removed when the parameter is true, and only then.
@foreign(_FALSE, "Project approval rules: PUT, remove_hidden_groups")
def hidden_groups_go_whenever_the_flag_is_sent(service: Service) -> None:
    """An update with remove_hidden_groups false removes the hidden groups, as with true."""

    @handling(service, f"PUT {_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("remove_hidden_groups"):
            _sending(request, {"remove_hidden_groups": True})
        return handler(request)


# What says that it has hidden groups says so at all levels: the table has the field in all rules.
@foreign(_FALSE, "Merge request approvals: contains_hidden_groups")
def rules_of_merge_requests_hide_nothing(service: Service) -> None:
    """A merge request's rule with a hidden group says that it contains none."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        return {**present(rule, merge_request, viewer), "contains_hidden_groups": False}


# The status says that the relation is finished, and what is finished can be downloaded.
@foreign(_FALSE, "Group relations export: download")
def empty_relations_have_no_file(service: Service) -> None:
    """A relation without objects is finished, and has no file."""

    @instead(service.group_relations_export, "download")
    def _(download: Any, export: Any, number: int | None) -> Any:
        if not export.lines:
            raise NotFoundError("404 Export file not found")
        return download(export, number)


# The parameter is a boolean that says whether to export in batches.
@foreign(_FALSE, "Group relations export: POST, batched")
def not_to_batch_batches(service: Service) -> None:
    """A group is exported in batches wherever batched is sent, also as false."""

    @handling(service, "POST /groups/:id/export_relations")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("batched"):
            _sending(request, {"batched": True})
        return handler(request)


# Both lists may be sent with one call, and each of them names approvers.
@foreign(_FALSE, "Group approval rules: POST, user_ids and group_ids")
def beside_users_groups_do_not_count(service: Service) -> None:
    """A new rule of a group that names users and groups has no groups."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        return create(group, replace(wanted, group_ids=None) if wanted.user_ids else wanted, caller)


# -- ids from an answer, in the next call ------------------------------------------------------------------------------


# The batch that the status calls by a number is the one that is downloaded by it.
@foreign(_AGAIN, "Group relations export: batch_number")
def the_status_numbers_batches_from_zero(service: Service) -> None:
    """The status numbers batches from 0, the download from 1."""

    @instead(service.group_relations_export, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        for batch in shown.get("batches", ()):
            batch["batch_number"] -= 1
        return shown


# An update changes the rule of the id in its path; that rule has to be there afterwards.
@foreign(_AGAIN, "Group approval rules: PUT")
def changed_rules_of_groups_are_new_ones(service: Service) -> None:
    """An update of a group's rule deletes it and makes another one, with an id of its own."""
    rules = service.approval_rules.rules

    @instead(service.group_approval_rules, "update_rule")
    def _(update: Any, group: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = replace(update(group, number, wanted, caller), id=service.store.next_id("approval_rules"))
        del rules[number]
        rules[changed.id] = changed
        return changed


# Whatever their order is, the pages of a list hold each entry once.
@foreign(_AGAIN, "Group approval rules: GET is paginated")
def lists_turn_around_with_every_call(service: Service) -> None:
    """Every second time the rules of a group come in the opposite order."""
    calls = count()

    @instead(service.group_approval_rules, "rules")
    def _(rules: Any, group: Any) -> Any:
        listed = rules(group)
        return listed[::-1] if next(calls) % 2 else listed


# -- what comes after --------------------------------------------------------------------------------------------------


# A rule that was deleted is none that the merge request has to satisfy.
@foreign(_AGAIN, "Merge request approval state: rules")
def deleted_rules_stay_in_the_state(service: Service) -> None:
    """The approval state goes on showing rules that were deleted."""
    approvals, gone = service.merge_request_approvals, list[Any]()

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        rule = service.merge_request_approval_rules.find(merge_request, number)
        delete(merge_request, number)
        gone.append((merge_request.id, rule))

    @instead(approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        shown = state(merge_request, viewer)
        left = [rule for number, rule in gone if number == merge_request.id]
        return {
            **shown,
            "rules": shown["rules"] + [approvals.present_state_rule(rule, merge_request, viewer) for rule in left],
        }


# A list has no entry twice; a target is in it, or is not.
@foreign(_AGAIN, "Job token scope: POST")
def of_two_equal_additions_both_are_listed(service: Service) -> None:
    """A project that is let in twice at the same moment is listed twice."""
    scopes = service.job_token_scope
    before: dict[int, Any] = {}

    def remember(seen: Any, _request: Any) -> None:
        before.clear()
        before.update(seen)

    key = "POST /projects/:id/job_token_scope/allowlist"
    meanwhile(service, (key,), lambda: dict(scopes.scopes), remember)

    @instead(scopes, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        seen, now = before.get(project.id), scopes.of(project)
        if target.id in now.projects and (seen is None or target.id not in seen.projects):
            scopes.scopes[project.id] = replace(now, projects=(*now.projects, target.id))
        else:
            add(project, target)
