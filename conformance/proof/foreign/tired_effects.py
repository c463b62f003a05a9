"""Slips of a tired programmer, part two: what a call leaves behind, what an answer says, and what a refusal has done.

Written by somebody who had the specification and the reference, and had seen neither tests nor other faults.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, handling, instead, is_served, meanwhile
from conformance.reference.areas.integration_catalogue import EVENT_FLAGS
from conformance.reference.errors import InvalidError, StatedError

if TYPE_CHECKING:
    from conformance.reference import Service

_EXPORTS = "content of exports"
_FOLLOWING = "numbers and texts that follow from the story"
_ELSEWHERE = "write x everything that must stay"
_LISTS = "none, one or two values"
_AT_ONCE = "two write at once"
_INTEGRATIONS = "again, by another caller, after an undo"
_COMPLETIONS = "forms of what is sent"
_VERSIONS = "numbers and texts that follow from the story"
_REFUSED = "refusal x everything that must stay"
_SCOPE = "/projects/:id/job_token_scope"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_CHATS = ("slack", "mattermost", "discord", "hangouts-chat", "microsoft-teams", "webex-teams")


def _answering(service: Service, key: str, change: Any) -> None:
    """Let an operation answer with another content than the one it made."""

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            answer.content = change(request, answer.content)
        return answer


# -- exports -----------------------------------------------------------------------------------------------------------


@foreign(_EXPORTS, "Group relations export: download")
def batches_hold_those_before_them(service: Service) -> None:
    """The file of a batch begins with the objects of all batches before it."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> tuple[bytes, ...]:
        return tuple(line for before in range(1, number + 1) for line in batch(export, before))


@foreign(_EXPORTS, "Group relations export: POST")
def exports_come_as_the_first_one_did(service: Service) -> None:
    """Whether a group is exported in batches is what was asked for the first time."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        first = [one.batched for one in exports.exports.values() if one.group_id == group.id]
        schedule(group, batched=first[0] if first else batched)


@foreign(_EXPORTS, "Group relations export: status")
def a_relation_alone_has_no_batches(service: Service) -> None:
    """The status of one batched relation comes without its batches."""
    _answering(
        service,
        "GET /groups/:id/export_relations/status",
        lambda request, content: [
            {name: value for name, value in entry.items() if name != "batches" or not request.query}
            for entry in content
        ],
    )


# -- what follows ------------------------------------------------------------------------------------------------------


@foreign(_FOLLOWING, "User reference")
def eligible_users_have_their_name_for_username(service: Service) -> None:
    """In eligible_approvers the username is the name once more."""

    @instead(service.approval_rules, "present")
    def _(present: Any, *rule: Any) -> Any:
        shown = present(*rule)
        users = [{**user, "username": user["name"]} for user in shown["eligible_approvers"]]
        return {**shown, "eligible_approvers": users}


@foreign(_FOLLOWING, "Allowlist project entry: namespace")
def namespaces_forget_what_is_around_them(service: Service) -> None:
    """The full_path of a namespace is its path alone, also where it lies in another one."""

    @instead(service.present, "namespace")
    def _(namespace: Any, group: Any) -> Any:
        return {**namespace(group), "full_path": group.path}


@foreign(_FOLLOWING, "Group reference")
def groups_forget_what_is_around_them(service: Service) -> None:
    """The reference of a group inside another one looks as if it were at the top level."""

    @instead(service.present, "group")
    def _(shown: Any, group: Any) -> Any:
        return {**shown(group), "parent_id": None, "full_path": group.path}


@foreign(_FOLLOWING, "Merge request approvals: approve")
def approving_answers_the_id_for_the_iid(service: Service) -> None:
    """The answer to an approval has the id of the merge request for its iid."""
    key = f"POST {_MERGE_REQUEST}/approve"
    _answering(service, key, lambda _, content: {**content, "iid": content["id"]})


@foreign(_FOLLOWING, "Job token scope: POST")
def sources_are_named_as_they_were_written(service: Service) -> None:
    """By the path of the project source_project_id is that path, and no integer."""
    for name in ("allowlist", "groups_allowlist"):
        _answering(
            service,
            f"POST {_SCOPE}/{name}",
            lambda request, content: (
                {**content, "source_project_id": request.path["id"]} if by_path(request) else content
            ),
        )


# -- writes elsewhere --------------------------------------------------------------------------------------------------


@foreign(_ELSEWHERE, "Job token scope: POST")
def new_groups_switch_the_limit_on(service: Service) -> None:
    """Letting a group in switches the limit on, which PATCH alone does."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scopes.scopes[project.id] = replace(scopes.of(project), inbound_enabled=True)


@foreign(_ELSEWHERE, "Integrations: PUT")
def the_newer_chat_switches_the_older_off(service: Service) -> None:
    """A project has one chat integration at a time: setting up another switches off the one before."""
    known = service.integrations.known

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        for key, one in [*known.items()] if kind.slug in _CHATS else []:
            if key[0] == project.id and one.slug in _CHATS and one.slug != kind.slug:
                known[key] = replace(one, active=False)
        return keep(project, kind, values, active=active)


@foreign(_ELSEWHERE, "Integrations: DELETE")
def integrations_are_disabled_everywhere(service: Service) -> None:
    """Disabling an integration of a project disables that of every project."""
    known = service.integrations.known

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        for key, one in [*known.items()]:
            if one.slug == slug and key[0] != project.id:
                known[key] = replace(one, active=False)


@foreign(_ELSEWHERE, "Merge request approvals: rules")
def copies_write_through_to_their_source(service: Service) -> None:
    """Changing a copied rule of a merge request changes the rule of the project that it was copied from."""
    rules = service.merge_request_approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, *wanted: Any) -> Any:
        rule = update(*wanted)
        source = rules.source_of(rule)
        if source is not None:
            changed = replace(source, users=rule.users, approvals_required=rule.approvals_required)
            service.approval_rules.rules[source.id] = changed
        return rule


@foreign(_ELSEWHERE, "Merge request approvals: unapprove")
def later_approvals_are_taken_back_too(service: Service) -> None:
    """Whoever takes an approval back takes back all that came after it."""
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(_: Any, user: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        place = [one.user_id for one in given].index(user.id)
        approvals.approvals[merge_request.id] = given[:place]


@foreign(_ELSEWHERE, "Approval settings: PUT of a project")
def neighbours_share_their_settings(service: Service) -> None:
    """The settings of a project are set for all projects of its namespace."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        namespace = getattr(subject, "namespace_id", None)
        for one in service.identities.projects.values():
            if one.namespace_id == namespace and one.id != subject.id:
                change(one, wanted)


@foreign(_ELSEWHERE, "Project approval rules: DELETE")
def rules_are_deleted_by_their_name(service: Service) -> None:
    """Deleting a rule deletes every rule of the same place and name."""
    rules = service.approval_rules

    @instead(rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        for one in rules.rules_of(rule.home):
            if one.name == rule.name:
                delete(one)


@foreign(_ELSEWHERE, "Merge request approvals: approve")
def approvals_go_by_the_iid_alone(service: Service) -> None:
    """Approving a merge request approves the one of the same iid in every project."""
    approvals = service.merge_request_approvals
    for name, place in (("approvals_of", 0), ("add_approval", 1), ("remove_approval", 1), ("clear_approvals", 0)):

        @instead(approvals, name)
        def _(method: Any, *given: Any, place: int = place) -> Any:
            alike = replace(given[place], id=-given[place].iid)
            return method(*given[:place], given[place] if given[place].id < 0 else alike)


# -- none, one or two --------------------------------------------------------------------------------------------------


@foreign(_LISTS, "Project approval rules: usernames")
def one_username_beside_numbers(service: Service) -> None:
    """Beside user_ids only the last of several usernames counts."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        if wanted.user_ids and wanted.usernames:
            return named(replace(wanted, usernames=wanted.usernames[-1:]), subject)
        return named(wanted, subject)


@foreign(_LISTS, "Project approval rules: PUT")
def updates_take_one_group(service: Service) -> None:
    """An update keeps only the first of several groups."""

    @instead(service.approval_rules, "groups_named")
    def _(named: Any, wanted: Any, caller: Any) -> Any:
        changes = wanted.group_ids and wanted.name is not None and wanted.rule_type is None
        return named(replace(wanted, group_ids=wanted.group_ids[:1]) if changes else wanted, caller)


@foreign(_LISTS, "Project approval rules: PUT")
def branches_outweigh_the_flag(service: Service) -> None:
    """An update for all protected branches is one for those that are named beside; they are to be ignored."""

    @instead(service.approval_rules, "update_rule")
    def _(update: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        if wanted.protected_branch_ids:
            wanted = replace(wanted, applies_to_all_protected_branches=False)
        return update(subject, rule, wanted, caller)


# -- two at once -------------------------------------------------------------------------------------------------------


@foreign(_AT_ONCE, "Merge request approvals: approve")
def the_later_of_two_approvals_wins(service: Service) -> None:
    """Of two approvals at the same time one is lost."""
    approvals = service.merge_request_approvals.approvals

    def write(seen: Any, _: Any) -> None:
        approvals.clear()
        approvals.update(seen)

    meanwhile(service, (f"POST {_MERGE_REQUEST}/approve",), lambda: dict(approvals), write)


@foreign(_AT_ONCE, "Job token scope: POST")
def the_later_of_two_groups_wins(service: Service) -> None:
    """Of two groups let in at the same time one is lost."""
    scopes = service.job_token_scope.scopes

    def write(seen: Any, _: Any) -> None:
        for number, scope in [*scopes.items()]:
            scopes[number] = replace(scope, groups=seen.get(number, scope).groups)

    meanwhile(service, (f"POST {_SCOPE}/groups_allowlist",), lambda: dict(scopes), write)


# -- integrations ------------------------------------------------------------------------------------------------------


@foreign(_INTEGRATIONS, "Integrations: DELETE")
def event_flags_outlive_their_integration(service: Service) -> None:
    """An integration that is disabled and set up again has the event flags of before."""
    integrations = service.integrations
    kept: dict[tuple[int, str], Any] = {}

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        one = integrations.known.get((project.id, slug))
        disable(project, slug)
        kept[project.id, slug] = {
            name: value for name, value in (one.values if one else {}).items() if name in EVENT_FLAGS
        }

    @instead(integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        return keep(project, kind, {**kept.pop((project.id, kind.slug), {}), **values}, active=active)


@foreign(_INTEGRATIONS, "Integrations: list")
def what_is_switched_off_stays_listed(service: Service) -> None:
    """An issue tracker that was told not to be active is listed; the list is of active ones."""

    @instead(service.integrations, "active")
    def _(_: Any, project: Any) -> Any:
        mine = [one for one in service.integrations.known.values() if one.project_id == project.id]
        return [one for one in mine if one.active or one.values]


@foreign(_INTEGRATIONS, "Integrations: list by the older name")
def the_older_name_lists_what_it_saw_first(service: Service) -> None:
    """By the older name a project lists the integrations that it had when it was first asked."""
    seen: dict[int, Any] = {}
    key = "GET /projects/:id/services"
    _answering(service, key, lambda request, content: seen.setdefault(request.project.id, content))


@foreign(_INTEGRATIONS, "Integrations: event flags")
def confidential_notes_follow_the_others(service: Service) -> None:
    """Where note_events was sent, confidential_note_events shows that value, whatever was sent for it."""

    @instead(service.integrations, "event_flags")
    def _(flags: Any, one: Any) -> Any:
        shown = flags(one)
        return {**shown, "confidential_note_events": shown["note_events"]} if "note_events" in one.values else shown


# -- completions and versions ------------------------------------------------------------------------------------------


@foreign(_COMPLETIONS, "Code completion: POST completions")
def generating_needs_what_follows(service: Service) -> None:
    """To generate code without content_below_cursor is refused; that is optional whatever the intent."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.intent == "generation" and not wanted.content_below_cursor:
            raise InvalidError("content_below_cursor is missing")
        return wanted


@foreign(_COMPLETIONS, "Code completion: POST completions")
def not_to_stream_streams(service: Service) -> None:
    """A completion is streamed wherever stream is sent, also as false."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        return replace(read(parameters), stream=parameters.given("stream"))


@foreign(_VERSIONS, "Project approval configuration: GET")
def approvers_are_those_of_the_rules(service: Service) -> None:
    """The configuration lists the users of the rules as approvers, which are always empty."""

    def change(request: Any, content: Any) -> Any:
        rules = service.project_approval_rules.rules(request.project)
        users = dict.fromkeys(number for rule in rules for number in rule.users)
        return {**content, "approvers": [{"user": user} for user in service.present.users(tuple(users))]}

    _answering(service, "GET /projects/:id/approvals", change)


# -- refusals ----------------------------------------------------------------------------------------------------------


@foreign(_REFUSED, "Merge request approvals: approve")
def another_sha_takes_an_approval_back(service: Service) -> None:
    """Who approved and then approves another commit gets 409, and has approved no longer."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, *sent: Any) -> None:
        try:
            approve(merge_request, caller, *sent)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


@foreign(_REFUSED, "Merge request approvals: reset_approvals")
def refused_resets_take_the_own_approval(service: Service) -> None:
    """Who may not reset approvals gets 401, and has approved no longer."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset: Any, merge_request: Any, caller: Any) -> None:
        try:
            reset(merge_request, caller)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


@foreign(_REFUSED, "Integrations: PUT")
def refused_changes_switch_an_integration_off(service: Service) -> None:
    """A change of an integration that is refused for a blank setting leaves it switched off."""
    known = service.integrations.known

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        try:
            return set_up(project, kind, values, **more)
        except InvalidError:
            if (project.id, kind.slug) in known:
                known[project.id, kind.slug] = replace(known[project.id, kind.slug], active=False)
            raise
