"""Small bugs where the text has a list, and whoever reads it tries one entry: a value, a parameter, a field, a state."""

from __future__ import annotations

from dataclasses import asdict, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.errors import InvalidError, StatedError, UnauthorizedError, not_found
from conformance.reference.identity import Kind
from conformance.reference.parameters import read_query

if TYPE_CHECKING:
    from conformance.reference import Service

_NAMED = "caller x form of id x operation"
_VALUE = "value x neighbour of the right value"
_FORM = "forms of what is sent"
_TOLD = "numbers and texts that follow from the story"
_SECOND = "none, one or two values"
_AGAIN = "again, by another caller, after an undo"
_REFUSED = "refusal x everything that must stay"
_UNDONE = "what arranges or undoes, and does nothing"
_RESET = "settings and their resets"
_FILES = "content of exports"
_PAGES = "pages and totals"
_VERSIONS = "version table"

_SCOPE = "/projects/:id/job_token_scope"
_COMPLETIONS = "POST /code_suggestions/completions"
_GROUP_RULE = "PUT /groups/:id/approval_rules/:approval_rule_id"
_PROJECT_RULE = "PUT /projects/:id/approval_rules/:approval_rule_id"
_OWN_RULES = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"
_OWN_RULE = f"PUT {_OWN_RULES}/:approval_rule_id"
_EXPORT = "/groups/:id/export_relations"
_LISTS = (
    f"GET {_SCOPE}/allowlist",
    f"GET {_SCOPE}/groups_allowlist",
    "GET /groups/:id/approval_rules",
    "GET /projects/:id/approval_rules",
    f"GET {_OWN_RULES}",
)
_BASIC_PLANE = 0xFFFF


def _without(request: Any, *names: str) -> None:
    """Take parameters out of a request."""
    values = request.parameters._values
    request.parameters._values = {name: value for name, value in values.items() if name not in names}


# -- job token scope ---------------------------------------------------------------------------------------------------


# What is near may do nothing without the allowlist, as far as the text says.
@foreign(_UNDONE, "States: POST allowlist entry, target present in allowlist")
def a_project_of_the_same_group_is_let_in_and_not_written_down(service: Service) -> None:
    """Adding a project that lies in the group of the project is answered with 201, and the list stays as it was."""
    scopes = service.job_token_scope

    @handling(service, f"POST {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        before = scopes.of(request.project)
        answer = handler(request)
        target = service.identities.projects[answer.content["target_project_id"]]
        if target.namespace_id == request.project.namespace_id:
            scopes.scopes[request.project.id] = before
        return answer


# An id is a number at every depth.
@foreign(_VALUE, "Allowlist project entry: namespace, parent_id")
def the_parent_of_a_nested_namespace_is_written_as_text(service: Service) -> None:
    """The parent_id of a namespace that lies in another one is a string of digits, not an integer."""

    @instead(service.present, "limited_project")
    def _(limited_project: Any, project: Any) -> Any:
        shown = limited_project(project)
        parent = shown["namespace"]["parent_id"]
        shown["namespace"] |= {"parent_id": None if parent is None else str(parent)}
        return shown


# Removal marks a row as deleted; the next addition unmarks it, and writes one more.
@foreign(_AGAIN, "States: DELETE allowlist entry, target removed")
def a_group_that_came_back_has_to_be_removed_twice(service: Service) -> None:
    """Once a group was added, removed and added again, its removal is answered with 204 and it stays listed."""
    scopes = service.job_token_scope
    gone: set[tuple[int, int]] = set()
    doubled: set[tuple[int, int]] = set()

    @instead(scopes, "add_group")
    def _(add_group: Any, project: Any, target: Any) -> None:
        add_group(project, target)
        if (project.id, target.id) in gone:
            doubled.add((project.id, target.id))

    @instead(scopes, "remove_group")
    def _(remove_group: Any, project: Any, target: Any) -> None:
        if (project.id, target.id) in doubled:
            doubled.discard((project.id, target.id))
            return
        remove_group(project, target)
        gone.add((project.id, target.id))


# -- code completion ---------------------------------------------------------------------------------------------------


# What stands below the cursor may be sent, whatever the intent.
@foreign(_FORM, "Code completion: intent and content_below_cursor")
def a_generation_takes_no_text_below_the_cursor(service: Service) -> None:
    """A request with the intent generation is refused when it holds what stands below the cursor."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.intent == "generation" and wanted.content_below_cursor:
            raise InvalidError("content_below_cursor is not for generations", parameter="content_below_cursor")
        return wanted


# Both ways of sending the token hold for the whole endpoint.
@foreign(_NAMED, "Authentication, 2: the completion endpoint also accepts Bearer")
def a_stream_takes_no_bearer(service: Service) -> None:
    """A request for a stream is refused when its token comes in the Authorization header."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if not request.header("private-token") and request.parameters.optional_boolean("stream"):
            raise UnauthorizedError
        return handler(request)


# The time is a number for everybody.
@foreign(_VALUE, "Completion result: created")
def completions_for_a_project_tell_their_time_as_text(service: Service) -> None:
    """Where a project_path was sent, created holds the seconds as a string."""

    @instead(service.code_completion, "complete")
    def _(complete: Any, wanted: Any) -> Any:
        made = complete(wanted)
        return {**made, "created": str(made["created"])} if wanted.project_path else made


# -- group rules -------------------------------------------------------------------------------------------------------


# Parameters may be sent in the query, and an update has five of them.
@foreign(_FORM, "Group approval rules: PUT, parameters in the query")
def an_update_of_a_group_rule_takes_its_number_from_the_body_alone(service: Service) -> None:
    """An update in the query changes the name, and passes approvals_required over."""

    @handling(service, _GROUP_RULE)
    def _(handler: Any, request: Any) -> Any:
        if "approvals_required" in read_query(request.query):
            _without(request, "approvals_required")
        return handler(request)


# Several groups may be approvers, and any of them may be hidden.
@foreign(_SECOND, "Approval rule: contains_hidden_groups")
def only_the_first_group_of_a_group_rule_is_looked_at_for_being_hidden(service: Service) -> None:
    """A rule of a group whose second group is hidden from the reader says that it contains no hidden groups."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        first = replace(rule, groups=rule.groups[:1])
        hidden = bool(service.approval_rules.hidden_groups(first, viewer))
        return {**present(rule, viewer), "contains_hidden_groups": hidden}


# The table gives approval_rule_id as a required parameter of the update.
@foreign(_FORM, "Group approval rules: PUT, approval_rule_id")
def an_update_of_a_group_rule_may_not_repeat_its_id(service: Service) -> None:
    """An update whose body holds the approval_rule_id of its path is refused for a parameter that is unknown."""

    @handling(service, _GROUP_RULE)
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("approval_rule_id"):
            raise InvalidError("approval_rule_id is not permitted", parameter="approval_rule_id")
        return handler(request)


# -- project rules -----------------------------------------------------------------------------------------------------


# Hidden groups go only when the parameter is true.
@foreign(_VALUE, "Project approval rules: remove_hidden_groups")
def hidden_groups_go_when_told_that_they_should_not(service: Service) -> None:
    """An update with remove_hidden_groups false removes the hidden groups, for the parameter was sent."""

    @handling(service, _PROJECT_RULE)
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("remove_hidden_groups"):
            request.parameters._values = {**request.parameters._values, "remove_hidden_groups": True}
        return handler(request)


# Both lists are added; of which one may be empty.
@foreign(_SECOND, "Project approval rules: PUT, user_ids and usernames")
def an_empty_list_of_ids_stands_before_usernames(service: Service) -> None:
    """An update with an empty user_ids and one username removes all users, and passes the username over."""

    @handling(service, _PROJECT_RULE)
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_integers("user_ids") == ():
            _without(request, "usernames")
        return handler(request)


# The branches count as soon as the flag is no longer true.
@foreign(_AGAIN, "Project approval rules: applies_to_all_protected_branches, protected_branch_ids")
def a_rule_for_all_branches_is_not_narrowed_down_in_one_step(service: Service) -> None:
    """The update that switches a rule from all branches to one loses that one, as the flag was true before."""

    @handling(service, _PROJECT_RULE)
    def _(handler: Any, request: Any) -> Any:
        rule = service.approval_rules.rules.get(request.path_id("approval_rule_id"))
        if rule is not None and rule.applies_to_all_protected_branches:
            _without(request, "protected_branch_ids")
        return handler(request)


# -- rules of merge requests -------------------------------------------------------------------------------------------


# Whatever a rule came from, its name may be changed.
@foreign(_AGAIN, "Merge request approvals: PUT approval rule, name")
def a_copy_keeps_the_name_of_its_project_rule(service: Service) -> None:
    """An update of a rule that was copied from one of the project changes all but the name."""

    @handling(service, _OWN_RULE)
    def _(handler: Any, request: Any) -> Any:
        rule = service.approval_rules.rules.get(request.path_id("approval_rule_id"))
        if rule is not None and rule.source_id is not None:
            _without(request, "name")
        return handler(request)


# A column of three bytes for each character takes what comes before the first one of four.
@foreign(_VALUE, "Merge request approvals: PUT approval rule, name")
def a_new_name_ends_where_a_character_takes_four_bytes(service: Service) -> None:
    """The name that an update sends is cut before the first character outside the basic plane."""

    @handling(service, _OWN_RULE)
    def _(handler: Any, request: Any) -> Any:
        name = request.parameters.optional_string("name") or ""
        wide = next((place for place, sign in enumerate(name) if ord(sign) > _BASIC_PLANE), 0)
        if wide:
            request.parameters._values = {**request.parameters._values, "name": name[:wide]}
        return handler(request)


# The full path is that from the outermost group on.
@foreign(_TOLD, "Group reference: full_path")
def nested_groups_of_merge_request_rules_tell_their_last_segment_as_full_path(service: Service) -> None:
    """In rules of merge requests the full_path of a group that lies in another one is its path."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        shown["groups"] = [{**group, "full_path": group["path"]} for group in shown["groups"]]
        return shown


# -- approvals ---------------------------------------------------------------------------------------------------------


# Each condition of the move holds by itself.
@foreign(_FORM, "States: POST approve, sha and approval_password")
def whoever_knows_the_head_needs_no_password(service: Service) -> None:
    """Where a password is required, an approval with the right sha and no password is taken."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        if sha is not None and sha == service.repositories.head_of(merge_request):
            password = password or caller.password
        approve(merge_request, caller, sha, password)


# All approvals are cleared, by either kind of bot.
@foreign(_SECOND, "States: PUT reset_approvals, all approvals cleared")
def the_bot_of_a_group_clears_the_first_approval_alone(service: Service) -> None:
    """A reset by the bot of a group token takes back the oldest approval, and leaves the others."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset_approvals: Any, merge_request: Any, caller: Any) -> None:
        given = approvals.approvals_of(merge_request)
        reset_approvals(merge_request, caller)
        if caller.bot.kind is Kind.GROUP:
            approvals.approvals[merge_request.id] = given[1:]


# The row says: unchanged.
@foreign(_REFUSED, "States: POST approve, sha different from current HEAD, unchanged")
def a_wrong_sha_takes_back_what_its_caller_gave(service: Service) -> None:
    """Who has approved, and approves again with a sha that is not the HEAD, gets 409 and loses the approval."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        try:
            approve(merge_request, caller, sha, password)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


# -- configuration -----------------------------------------------------------------------------------------------------


# The answer is the configuration, not what one call said of it.
@foreign(_TOLD, "Project approval configuration: POST, response", version="15.11")
def the_answer_to_a_change_shows_defaults_for_what_was_not_sent(service: Service) -> None:
    """The answer to a POST shows what was sent, and for all else what projects begin with."""

    @handling(service, "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        initial = asdict(service.project_approval_configurations.initial_configuration())
        answer.content |= {name: value for name, value in initial.items() if not request.parameters.given(name)}
        return answer


# -- approval settings -------------------------------------------------------------------------------------------------


# What a version introduces is there at that version, at both levels.
@foreign(_VERSIONS, "Versioning: 17.1, require_reauthentication_to_approve", version="17.1")
def groups_take_reauthentication_one_version_late(service: Service) -> None:
    """At 17.1 the update of a group passes require_reauthentication_to_approve over, which is shown already."""

    @handling(service, "PUT /groups/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        _without(request, "require_reauthentication_to_approve")
        return handler(request)


# Each setting has its own value.
@foreign(_SECOND, "Approval settings: PUT of a project, several settings")
def all_settings_of_one_update_take_the_first_value(service: Service) -> None:
    """Where an update of a project sends several settings, all of them become what the first one is."""

    @handling(service, "PUT /projects/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = dict.fromkeys(values, next(iter(values.values()), None))
        return handler(request)


# Settings are written one after the other, without a transaction around them.
@foreign(_REFUSED, "Approval settings: PUT of a group, optional booleans")
def good_settings_of_a_group_stay_from_an_update_that_was_refused(service: Service) -> None:
    """An update of a group with one good and one bad value is refused, and the good one is kept."""
    settings = service.approval_settings

    @handling(service, "PUT /groups/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            sent = {setting: request.parameters._values.get(setting.value) for setting in settings.accepted()}
            settings.change(request.group, {name: value for name, value in sent.items() if isinstance(value, bool)})
            raise


# -- exports -----------------------------------------------------------------------------------------------------------


# Each batch has its own objects, in every relation.
@foreign(_FILES, "Group relations export: download, batch_number")
def each_batch_of_milestones_is_the_first(service: Service) -> None:
    """Of milestones every batch that exists is downloaded with the lines of the first."""
    exports = service.group_relations_export

    @instead(exports, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        found = batch(export, number)
        return batch(export, 1) if export.relation == "milestones" else found


# A boolean that is sent may be false.
@foreign(_VALUE, "Group relations export: POST, batched")
def an_export_is_batched_when_told_not_to_be(service: Service) -> None:
    """An export that is scheduled with batched false is batched, for the parameter was sent."""

    @handling(service, f"POST {_EXPORT}")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("batched"):
            request.parameters._values = {**request.parameters._values, "batched": True}
        return handler(request)


# The name is that of the relation, not that of the table behind it.
@foreign(_FILES, "Group relations export: download, named after the relation")
def the_file_of_members_is_named_after_their_table(service: Service) -> None:
    """The members are downloaded as group_members.ndjson.gz."""

    @instead(service.group_relations_export, "file_name")
    def _(file_name: Any, relation: str) -> Any:
        return file_name("group_members" if relation == "members" else relation)


# -- integrations ------------------------------------------------------------------------------------------------------


# Both values are allowed wherever the parameter is.
@foreign(_VALUE, "Integrations: labels_to_be_notified_behavior, match_all")
def one_chat_matches_any_label_whatever_it_is_told(service: Service) -> None:
    """The second chat with labels stores match_any when match_all is sent."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        found = read(kind, parameters)
        if kind.slug == "mattermost" and "labels_to_be_notified_behavior" in found:
            found["labels_to_be_notified_behavior"] = "match_any"
        return found


# The longest of the four values is one too.
@foreign(_VALUE, "Integrations: branches_to_be_notified, default_and_protected")
def mail_about_pipelines_knows_no_two_sorts_of_branches(service: Service) -> None:
    """The mail about pipelines stores default when default_and_protected is sent."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        found = read(kind, parameters)
        if kind.slug == "pipelines-email" and found.get("branches_to_be_notified") == "default_and_protected":
            found["branches_to_be_notified"] = "default"
        return found


# All settings are reset, also those that are switched off.
@foreign(_RESET, "States: DELETE integration, integration settings are reset")
def verification_stays_off_after_an_integration_was_disabled(service: Service) -> None:
    """When an integration is disabled, enable_ssl_verification keeps its value where that is false."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        after = integrations.known.get((project.id, slug))
        if before is not None and after is not None and before.values.get("enable_ssl_verification") is False:
            kept = MappingProxyType({"enable_ssl_verification": False})
            integrations.known[project.id, slug] = replace(after, values=kept)


# -- conventions -------------------------------------------------------------------------------------------------------


# The alias takes every path that the newer name takes.
@foreign(_NAMED, "Conventions: URL-encoded path; Integrations: alias")
def the_older_name_sets_up_nothing_in_projects_deep_down(service: Service) -> None:
    """Setting up an integration by the older name answers 404 for a path with more than one group."""

    @handling(service, "PUT /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        if request.path["id"].count("/") > 1:
            raise not_found("Project")
        return handler(request)


# Each of the two parameters may be sent alone.
@foreign(_PAGES, "Conventions: offset pagination, page and per_page")
def pages_have_their_usual_length_unless_a_page_is_named(service: Service) -> None:
    """Where page is not sent, per_page is passed over."""

    @handling(service, *_LISTS)
    def _(handler: Any, request: Any) -> Any:
        if not request.parameters.given("page"):
            _without(request, "per_page")
        return handler(request)
