"""Small bugs of another code base: joins that miss a row, caches that are too coarse, checks that run on one path only."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import Level, RuleType
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import InvalidError, StatedError
from conformance.reference.http import Page

if TYPE_CHECKING:
    from conformance.reference import Service

_SCOPE = "/projects/:id/job_token_scope"
_GROUP_RULES = "/groups/:id/approval_rules"
_PROJECT_RULES = "/projects/:id/approval_rules"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_EXPORT = "/groups/:id/export_relations"
_LARGEST_OFFSET_PAGE = 100_000


# -- job token scope ---------------------------------------------------------------------------------------------------


# An index that is unique by target alone, and an insertion that moves the row it collides with.
@foreign("write x everything that must stay", "Job token scope: POST groups_allowlist")
def a_group_is_let_in_by_one_project_at_a_time(service: Service) -> None:
    """A group that one project lets in goes from the allowlist of another project that had let it in before."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        for number, scope in list(scopes.scopes.items()):
            if number != project.id and target.id in scope.groups:
                scopes.scopes[number] = replace(scope, groups=tuple(one for one in scope.groups if one != target.id))


# A variable that is set inside the loop only when there is something to set.
@foreign("none, one or two values", "Allowlist project entry: description, string or null")
def entries_without_a_description_have_that_of_the_one_before(service: Service) -> None:
    """In the allowlist of projects an entry that has no description shows the one that was written before it."""

    @handling(service, f"GET {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        last = None
        for entry in answer.content:
            last = entry["description"] or last
            entry["description"] = last
        return answer


# A callback that tidies up when nothing is left to be limited.
@foreign("none, one or two values", "Job token scope: DELETE allowlist; inbound_enabled")
def the_last_entry_takes_the_limit_with_it(service: Service) -> None:
    """Once the last project was removed from an allowlist, access to the project is limited no longer."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        if not scope.projects:
            scopes.scopes[project.id] = replace(scope, inbound_enabled=False)


# -- code completion ---------------------------------------------------------------------------------------------------


# What limits the rate stands before what reads the other header.
@foreign("caller x form of id x operation", "Limits: POST /code_suggestions/completions; Authentication, 2")
def callers_with_a_bearer_token_are_not_counted(service: Service) -> None:
    """Whoever sends the token as a bearer may ask for any number of completions in a minute."""

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Any) -> Any:
        if request.header("authorization") and not request.header("private-token"):
            service.code_completion.requests.pop(request.caller.id, None)
        return handler(request)


# The template of the other prompt cannot do without what follows.
@foreign("forms of what is sent", "Code completion: content_below_cursor, optional; intent")
def code_is_generated_only_above_something(service: Service) -> None:
    """With the intent generation a request without content_below_cursor is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.intent == "generation" and not parameters.nested("current_file").given("content_below_cursor"):
            raise InvalidError("content_below_cursor is missing", parameter="content_below_cursor")
        return wanted


# What is not found is remembered by the namespace, which is part of its key.
@foreign("again, by another caller, after an undo", "Code completion: POST /code_suggestions/enabled, 404")
def a_project_that_is_missing_hides_its_neighbours(service: Service) -> None:
    """Once a path that no project has was asked for, the projects in the same group are unknown to the check."""
    missing: set[str] = set()

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        within = path.rpartition("/")[0]
        if within in missing:
            raise StatedError(404, "404 Project Not Found")
        if within and service.identities.find_project(path) is None:
            missing.add(within)
        check(caller, path)


# -- rules of groups ---------------------------------------------------------------------------------------------------


# Nobody is to be listed twice among those who are eligible, and the wrong list is thinned out.
@foreign("numbers and texts that follow from the story", "Group approval rules: user_ids and group_ids")
def who_belongs_to_a_group_of_the_rule_is_not_named_as_well(service: Service) -> None:
    """A user whom a new rule of a group names goes from it when a group that it names has that user as a member."""
    rules, identities = service.approval_rules, service.identities

    @instead(rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        if candidate.home.level is not Level.GROUP:
            return add(candidate)
        inside = {user for number in candidate.groups for user in identities.members(identities.groups[number])}
        return add(replace(candidate, users=tuple(user for user in candidate.users if user not in inside)))


# The endpoint that was added last was copied from that of projects, with its entity.
@foreign("level x id of another level", "Protected branch reference: group-level rule responses")
def updates_of_group_rules_answer_as_projects_do(service: Service) -> None:
    """The answer to an update of a group's rule shows protected branches as the rules of projects do."""

    @handling(service, f"PUT {_GROUP_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        known = service.repositories.protected_branches
        shown = answer.content["protected_branches"]
        answer.content["protected_branches"] = [
            service.present.project_protected_branch(known[branch["id"]]) for branch in shown
        ]
        return answer


# -- rules of projects -------------------------------------------------------------------------------------------------


# A scope that was made for choosing approvers leaves out whoever is logged in.
@foreign("caller x form of id x operation", "Project approval rules: GET; Approval rule: users")
def readers_do_not_find_themselves_in_a_rule(service: Service) -> None:
    """Whoever reads the rules of a project is left out of the users that they name."""

    def without(rule: Any, reader: int) -> None:
        rule["users"] = [user for user in rule["users"] if user["id"] != reader]

    @handling(service, f"GET {_PROJECT_RULES}", f"GET {_PROJECT_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        for rule in answer.content if isinstance(answer.content, list) else [answer.content]:
            without(rule, request.caller.id)
        return answer


# One list wins as soon as it is there, also with nothing in it.
@foreign("none, one or two values", "Project approval rules: PUT, user_ids and usernames")
def an_empty_list_of_ids_beats_the_usernames(service: Service) -> None:
    """An update of a project's rule with usernames and an empty list of user_ids leaves it without users."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.home.level is Level.PROJECT and wanted.user_ids == () and wanted.usernames:
            return ()
        return after(rule, wanted, subject)


# The column is compared without regard to case, and what is equal is not written.
@foreign("value x neighbour of the right value", "Project approval rules: PUT, name")
def a_name_that_differs_in_case_is_not_stored(service: Service) -> None:
    """An update that changes nothing but capitals in the name of a project's rule keeps the former name."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = service.project_approval_rules.find(project, number)
        if wanted.name is not None and wanted.name.casefold() == before.name.casefold():
            wanted = replace(wanted, name=before.name)
        return update(project, number, wanted, caller)


# -- rules of merge requests -------------------------------------------------------------------------------------------


# An update by name, where the id of the merge request was forgotten.
@foreign("write x everything that must stay", "Merge request approvals: PUT approval_rules, approvals_required")
def rules_of_one_name_require_the_same(service: Service) -> None:
    """An update of a merge request's rule sets the number of every rule of that name in other merge requests too."""
    rules = service.approval_rules.rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = update(merge_request, number, wanted, caller)
        for other in [rule for rule in rules.values() if rule.home.level is Level.MERGE_REQUEST]:
            if other.name == changed.name and other.rule_type is changed.rule_type:
                rules[other.id] = replace(other, approvals_required=changed.approvals_required)
        return changed


# The rule that a copy came from is asked for its number, whether it is there or not.
@foreign("again, by another caller, after an undo", "Approval rule: source_rule, object or null")
def copies_cannot_be_read_without_their_source(service: Service) -> None:
    """Once a project's rule was deleted, the merge request rules that were made from it are answered with an error."""

    @instead(service.merge_request_approval_rules, "source_of")
    def _(find: Any, rule: Any) -> Any:
        return None if rule.source_id is None else service.approval_rules.rules[rule.source_id]


# -- approvals of merge requests ---------------------------------------------------------------------------------------


# What is deleted is found by a join with the rules that count it.
@foreign("what arranges or undoes, and does nothing", "States and transitions: PUT reset_approvals")
def a_reset_leaves_approvals_that_no_rule_counts(service: Service) -> None:
    """A reset clears the approvals of those whom a rule names, and leaves those of others who approved."""
    approvals = service.merge_request_approvals

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        counted = {
            user for rule in approvals.rules(merge_request) for user in service.approval_rules.eligible_approvers(rule)
        }
        left = tuple(one for one in approvals.approvals_of(merge_request) if one.user_id not in counted)
        clear(merge_request)
        if left:
            approvals.approvals[merge_request.id] = left


# Who just proved who they are is not asked again, as when settings are changed in the browser.
@foreign("again, by another caller, after an undo", "Merge request approvals: approve, approval_password")
def a_password_is_good_for_the_next_approval_too(service: Service) -> None:
    """Whoever approved with the password, and took that back, approves again without one."""
    proven: set[int] = set()

    @instead(service.merge_request_approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        if password is None and caller.id in proven:
            return
        require(caller, merge_request, password)
        if password is not None:
            proven.add(caller.id)


# The number is counted over the users of the rules, without the join that brings the members of their groups.
@foreign("numbers and texts that follow from the story", "Merge request approval status: approvals_left")
def approvals_for_a_group_are_not_counted_off(service: Service) -> None:
    """An approval by a member of a group that a rule names leaves approvals_left as it was."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(_left: Any, merge_request: Any, rules: Any = None) -> int:
        given = {one.user_id for one in approvals.approvals_of(merge_request)}
        found = []
        for rule in approvals.rules(merge_request) if rules is None else rules:
            users = given if rule.rule_type is RuleType.ANY_APPROVER else given & set(rule.users)
            found.append(max(0, rule.approvals_required - len(users)))
        return approvals.counted(found)


# -- configuration and settings ----------------------------------------------------------------------------------------


# The pair is looked at only when the second of the two is sent.
@foreign("settings and their resets", "Project approval configuration: selective_code_owner_removals", version="15.11")
def resets_may_be_switched_on_beside_selective_removals(service: Service) -> None:
    """Where removals are selective already, reset_approvals_on_push can be switched on beside them."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        if not wanted.reset_approvals_on_push or wanted.selective_code_owner_removals is not None:
            return change(project, wanted)
        changed = change(project, replace(wanted, reset_approvals_on_push=None))
        configurations.configurations[project.id] = replace(changed, reset_approvals_on_push=True)
        return configurations.configuration(project)


# One line was copied, and its right side was not changed.
@foreign("none, one or two values", "Approval settings: allow_author_approval and allow_committer_approval")
def committers_get_what_authors_get_in_one_call(service: Service) -> None:
    """An update that sends allow_author_approval and allow_committer_approval stores the first value in both."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if Setting.ALLOW_AUTHOR_APPROVAL in wanted and Setting.ALLOW_COMMITTER_APPROVAL in wanted:
            wanted = {**wanted, Setting.ALLOW_COMMITTER_APPROVAL: wanted[Setting.ALLOW_AUTHOR_APPROVAL]}
        change(subject, wanted)


# The column for the id of the owner is looked at, and that for its type is not.
@foreign("level x id of another level", "Approval settings: PUT of a project")
def settings_of_a_project_are_those_of_the_group_of_its_number(service: Service) -> None:
    """An update of a project's settings is stored for the group that has the same id as well."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        group = service.identities.groups.get(subject.id)
        if group is not None and not group.personal and group is not subject:
            change(group, wanted)


# An early return for calls that change nothing, which looks at the first value alone.
@foreign("again, by another caller, after an undo", "Approval settings: PUT, optional booleans")
def what_stands_behind_an_unchanged_setting_is_dropped(service: Service) -> None:
    """An update whose first setting has its value already changes none of those that are sent beside it."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        first = next(iter(wanted), None)
        if first is not None and settings.own(subject, first) is wanted[first]:
            wanted = {first: wanted[first]}
        change(subject, wanted)


# -- exports -----------------------------------------------------------------------------------------------------------


# The key of what was made before is made of the number of objects.
@foreign("content of exports", "Group relations export: download, the finished export")
def exports_are_made_anew_when_the_number_of_objects_changes(service: Service) -> None:
    """An export of a relation that has as many objects as at the last export holds what that one held."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        before = {key: export for key, export in exports.exports.items() if key[0] == group.id}
        schedule(group, batched=batched)
        for key, export in before.items():
            if len(export.lines) == len(exports.exports[key].lines):
                exports.exports[key] = replace(exports.exports[key], lines=export.lines)


# The list and the single entry are written by two entities, of which one is older.
@foreign("forms of what is sent", "Group relations export: status, relation; batches")
def the_status_of_one_relation_has_no_batches(service: Service) -> None:
    """The status entry of a batched relation has no batches when that relation alone is asked for."""

    @handling(service, f"GET {_EXPORT}/status")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.parameters.given("relation"):
            for entry in answer.content if isinstance(answer.content, list) else [answer.content]:
                entry.pop("batches", None)
        return answer


# A record that is found is started again, with the flag that it was made with.
@foreign("again, by another caller, after an undo", "Group relations export: POST, batched")
def what_was_exported_in_batches_stays_batched(service: Service) -> None:
    """A relation that was exported in batches is exported in batches when the next call does not ask for that."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        before = {key for key, export in exports.exports.items() if key[0] == group.id and export.batched}
        schedule(group, batched=batched)
        for key in before:
            exports.exports[key] = replace(exports.exports[key], batched=True)


# -- integrations ------------------------------------------------------------------------------------------------------


# Blank values are taken for fields of a form that nobody filled in.
@foreign("value x neighbour of the right value", "Integrations: labels_to_be_notified, restrict_to_branch; blank")
def a_blank_text_does_not_clear_a_setting(service: Service) -> None:
    """A parameter of an integration that is sent blank keeps the text that was set before."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        return {name: value for name, value in read(kind, parameters).items() if value != ""}


# The list goes by the index that was made for sending notifications.
@foreign("none, one or two values", "Integrations: GET /projects/:id/integrations, active integrations")
def an_integration_that_is_told_of_nothing_is_not_listed(service: Service) -> None:
    """An active integration goes from the list when every kind of event that it can have is switched off."""
    integrations = service.integrations

    def listens(integration: Any) -> bool:
        kinds = integrations.event_parameters(integration.kind)
        return not kinds or any(integration.values.get(name, True) for name in kinds)

    @instead(integrations, "active")
    def _(active: Any, project: Any) -> Any:
        return [integration for integration in active(project) if listens(integration)]


# Settings are reset to the defaults of their columns, which one kind has its own idea of.
@foreign("settings and their resets", "Integrations: branches_to_be_notified, default all for emails on push")
def a_reset_knows_one_default_for_all(service: Service) -> None:
    """After emails on push were disabled and set up again, branches_to_be_notified is default and not all."""
    integrations = service.integrations

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **active: Any) -> Any:
        before = integrations.known.get((project.id, kind.slug))
        if kind.slug == "emails-on-push" and before is not None and not before.active:
            values = {"branches_to_be_notified": "default", **values}
        return set_up(project, kind, values, **active)


# -- conventions -------------------------------------------------------------------------------------------------------


# The offset is a number of 32 bits, and the page is multiplied before anybody looks.
@foreign("pages and totals", "Common conventions: page and per_page")
def a_page_far_behind_the_end_is_an_error(service: Service) -> None:
    """A page whose number is very large is answered with a server error, where nothing or a refusal is due."""
    far = re.compile(rb"(?:^|&)page=(\d+)")

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        admit(request)
        number = far.search(request.query)
        if request.route.paginated and number and int(number[1]) > _LARGEST_OFFSET_PAGE:
            raise OverflowError("the offset is out of range")


# Many rules require as much as others, and nothing else says which of them comes first.
@foreign("pages and totals", "Common conventions: page and per_page")
def rules_that_require_the_same_change_places_between_pages(service: Service) -> None:
    """The rules of a merge request are ordered by their number, and equal ones come in another order on even pages."""
    rules = service.merge_request_approval_rules

    @handling(service, f"GET {_MERGE_REQUEST}/approval_rules")
    def _(handler: Any, request: Any) -> Any:
        even = Page.of(request.parameters, service.choices).number % 2 == 0
        listed = rules.listed
        rules.listed = lambda merge_request: sorted(
            listed(merge_request), key=lambda rule: (rule.approvals_required, -rule.id if even else rule.id)
        )
        try:
            return handler(request)
        finally:
            rules.listed = listed
