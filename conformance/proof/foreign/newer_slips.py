"""Small bugs of a tired developer: what is remembered too long, compared too loosely, taken away beside something."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, handling, instead, is_served
from conformance.reference.errors import InvalidError, RejectedError, StatedError
from conformance.reference.http import Response
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.areas.approval_settings import Setting

_NAMED = "caller x form of id x operation"
_CALLER = "caller x value"
_LEVEL = "level x id of another level"
_NEIGHBOUR = "value x neighbour of the right value"
_FORM = "forms of what is sent"
_CONTENT = "content of exports"
_MOMENT = "moments and addresses that are none"
_SECOND = "none, one or two values"
_AGAIN = "again, by another caller, after an undo"
_STAY = "write x everything that must stay"
_VERSIONS = "version table"
_SCOPE = "/projects/:id/job_token_scope"
_COMPLETIONS = "POST /code_suggestions/completions"
_GROUP_RULES = "/groups/:id/approval_rules"
_GROUP_SETTINGS = "/groups/:id/merge_request_approval_setting"
_LARGEST_PORT = 32_767


# -- job token scope ---------------------------------------------------------------------------------------------------


# What is removed is the group, and nothing else.
@foreign(_STAY, "Job token scope: DELETE groups_allowlist/:target_group_id")
def a_group_that_leaves_takes_its_projects_along(service: Service) -> None:
    """Taking a group off its list takes the projects inside it off theirs."""
    scopes, identities = service.job_token_scope, service.identities

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        inside = {one.id for one in identities.projects.values() if target in identities.lineage(one)}
        scopes.scopes[project.id] = replace(scope, projects=tuple(n for n in scope.projects if n not in inside))


# A target that is removed is removed, however often it was before.
@foreign(_AGAIN, "Job token scope: DELETE allowlist/:target_project_id")
def what_was_removed_once_cannot_be_removed_again(service: Service) -> None:
    """Removing marks the older of two entries a second time: who was let in again stays in."""
    scopes, gone = service.job_token_scope, set[tuple[int, int]]()

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        if (project.id, target.id) in gone:
            return
        remove(project, target)
        gone.add((project.id, target.id))


# A project is another thing than the group that has its number.
@foreign(_LEVEL, "Job token scope: POST allowlist")
def a_project_with_the_number_of_a_group_is_already_listed(service: Service) -> None:
    """Both lists share one index of targets: a project is refused where a group of its number was let in."""
    scopes = service.job_token_scope

    @instead(scopes, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        if target.id in scopes.of(project).groups:
            raise RejectedError("Target project is already listed")
        add(project, target)


# The limit is switched from on or off, and the answer is 204 either way.
@foreign(_AGAIN, "Job token scope: PATCH")
def a_limit_that_is_as_it_was_is_not_modified(service: Service) -> None:
    """A switch to the value that is already there is answered with 304."""

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.job_token_scope.of(request.project).inbound_enabled
        answer = handler(request)
        return Response(304) if service.job_token_scope.of(request.project).inbound_enabled == before else answer


# -- code completion ---------------------------------------------------------------------------------------------------


# A bearer's token is taken for every completion.
@foreign(_FORM, "Authentication: 2")
def streams_do_not_know_bearers(service: Service) -> None:
    """The stream is opened by another handler, which looks for PRIVATE-TOKEN alone."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_boolean("stream") and not request.header("private-token"):
            raise StatedError(401, "401 Unauthorized")
        return handler(request)


# Content below the cursor may be sent with either intent.
@foreign(_FORM, "Code completion: intent and content_below_cursor")
def a_generation_has_nothing_below(service: Service) -> None:
    """A generation is refused where the file goes on below the cursor."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        file = request.parameters.nested("current_file")
        if request.parameters.optional_string("intent") == "generation" and file.optional_string(
            "content_below_cursor"
        ):
            raise InvalidError("content_below_cursor is not allowed", parameter="content_below_cursor")
        return handler(request)


# The limit is one for each user, however the token is sent.
@foreign(_CALLER, "Limits: request rate")
def bearers_are_counted_apart(service: Service) -> None:
    """Requests with a bearer's token have a count of their own beside that of the same user's PRIVATE-TOKEN."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.header("private-token"):
            return handler(request)
        caller = request.caller
        request.admit(replace(caller, id=-caller.id), None)
        return handler(request)


# A result says which engine made it, whoever asks for which project.
@foreign(_FORM, "Completion result: model")
def the_model_of_a_project_has_no_engine(service: Service) -> None:
    """Where a project is named, its own model is described, by its name alone."""

    @instead(service.code_completion, "complete")
    def _(complete: Any, wanted: Any) -> Any:
        result = complete(wanted)
        if wanted.project_path:
            result["model"] = {"name": result["model"]["name"]}
        return result


# -- group approval rules ----------------------------------------------------------------------------------------------


# What the query says is UTF-8, as the rest is.
@foreign(_FORM, "Group approval rules: parameters in the query")
def letters_of_the_query_are_two_letters(service: Service) -> None:
    """A name that is sent in the query is read byte by byte, so that a letter outside ASCII becomes two."""

    @handling(service, f"POST {_GROUP_RULES}", f"PUT {_GROUP_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if b"name=" in request.query:
            name = str(values["name"]).encode().decode("latin-1")
            request.parameters._values = {**values, "name": name}
        return handler(request)


# Users and groups that are sent are both in the rule.
@foreign(_SECOND, "Group approval rules: user_ids and group_ids")
def users_are_left_out_when_their_group_is_named(service: Service) -> None:
    """Whoever belongs to a group that the rule names is not kept as one of its users."""
    rules, identities = service.approval_rules, service.identities

    def add(add_rule: Any, candidate: Any) -> Any:
        inside = {user for number in candidate.groups for user in identities.members(identities.groups[number])}
        return add_rule(replace(candidate, users=tuple(n for n in candidate.users if n not in inside)))

    @handling(service, f"POST {_GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        kept, rules.add_rule = rules.add_rule, partial(add, rules.add_rule)
        try:
            return handler(request)
        finally:
            rules.add_rule = kept


# A rule that was created is one of the group's rules.
@foreign(_FORM, "Group approval rules: rule_type on creation")
def rules_of_no_said_type_are_not_listed(service: Service) -> None:
    """The list asks for a type, and a rule that was created without one has none there."""
    untyped = set[int]()

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        rule = create(group, wanted, caller)
        if wanted.rule_type is None:
            untyped.add(rule.id)
        return rule

    @instead(service.group_approval_rules, "rules")
    def _(rules: Any, group: Any) -> Any:
        return [rule for rule in rules(group) if rule.id not in untyped]


# The rules of a group are not those of a group whose path begins the same.
@foreign(_NAMED, "Group approval rules: GET")
def a_path_is_the_beginning_of_other_paths(service: Service) -> None:
    """A list that is asked for by path holds the rules of all groups whose paths begin with it."""
    groups = service.group_approval_rules

    @handling(service, f"GET {_GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        if not by_path(request):
            return handler(request)
        path = request.group.full_path
        meant = [one for one in service.identities.groups.values() if one.full_path.startswith(path)]
        found = [rule for one in meant if not one.personal for rule in groups.rules(one)]
        return request.collection(found, lambda rule: groups.present(rule, request.caller))


# -- approval settings -------------------------------------------------------------------------------------------------


# An update sets what it says, whatever was said and taken back before.
@foreign(_AGAIN, "Approval settings: PUT")
def an_update_that_came_before_is_skipped(service: Service) -> None:
    """Updates are known by their content: on, off, and on again ends with off."""
    settings, done = service.approval_settings, set[Any]()

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        known = type(subject), subject.id, tuple(sorted(wanted.items()))
        if known not in done:
            change(subject, wanted)
            done.add(known)


# The source of a setting is a string.
@foreign(_LEVEL, "Approval setting: inherited_from")
def a_setting_comes_from_a_number(service: Service) -> None:
    """A locked setting of a project names the group that it comes from by id."""

    @instead(service.approval_settings, "present")
    def _(present: Any, subject: Any, setting: Setting) -> Any:
        shown = present(subject, setting)
        if shown["inherited_from"] is not None:
            shown["inherited_from"] = service.identities.lineage(subject)[-1].id
        return shown


# Every setting that is sent is set.
@foreign(_SECOND, "Approval settings: PUT")
def a_setting_that_is_as_it_was_ends_the_update(service: Service) -> None:
    """The loop over what is sent returns where it should go on: what comes after a known value is lost."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        changed: dict[Setting, bool] = {}
        for setting, value in wanted.items():
            if settings.effective(subject, setting) is value:
                break
            changed[setting] = value
        change(subject, changed)


# The settings of a group are for its owners.
@foreign(_CALLER, "Authentication: group approval settings")
def maintainers_may_make_a_group_stricter(service: Service) -> None:
    """A maintainer's update of a group is served as long as it switches everything off."""

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        is_update = route.key == f"PUT {_GROUP_SETTINGS}"
        if not (is_update and service.identities.role_in(caller, subject) is Role.MAINTAINER):
            require(route, caller, subject)

    @handling(service, f"PUT {_GROUP_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if service.identities.role_in(request.caller, request.group) < Role.OWNER and any(
            request.parameters._values.values()
        ):
            raise StatedError(403, "403 Forbidden")
        return handler(request)


# -- group relations export --------------------------------------------------------------------------------------------


# The file of an export holds what there was when it was made.
@foreign(_CONTENT, "Group relations export: GET download")
def as_many_objects_are_the_same_objects(service: Service) -> None:
    """Files are kept by their number of objects: one that went and one that came leave the older file."""
    exports, kept = service.group_relations_export, dict[Any, bytes]()

    @instead(exports, "download")
    def _(download: Any, export: Any, number: Any) -> bytes:
        made = download(export, number)
        return kept.setdefault((export.group_id, export.relation, export.batched, number, len(export.lines)), made)


# An export holds the texts as they are.
@foreign(_CONTENT, "Group relations export: GET download")
def files_know_no_letters_but_those_of_ascii(service: Service) -> None:
    """Every other letter of a title is a question mark in the file."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> Any:
        return file(tuple(line.decode().encode("ascii", "replace") for line in lines))


# Each batch says when it was updated.
@foreign(_MOMENT, "Group relations export: batches")
def a_batch_that_runs_has_no_moment(service: Service) -> None:
    """Batches of an export that has not finished say null where their timestamp is."""

    @instead(service.group_relations_export, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        for batch in shown.get("batches", ()):
            if batch["status"] == 0:
                batch["updated_at"] = None
        return shown


# An export of one group is no matter of the groups inside it.
@foreign(_STAY, "Group relations export: POST")
def an_export_removes_those_of_the_groups_inside(service: Service) -> None:
    """Before a group is exported, everything that was exported of it and of its subgroups is cleaned up."""
    exports, identities = service.group_relations_export, service.identities

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for key in list(exports.exports):
            if group in identities.lineage(identities.groups[key[0]]):
                del exports.exports[key]
        schedule(group, batched=batched)


# -- integrations ------------------------------------------------------------------------------------------------------


def _sending(service: Service, change: Any) -> None:
    """Let `change` alter the values that an update of an integration was read to."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        values = read(kind, parameters)
        change(values)
        return values


# Each kind of event has a channel of its own.
@foreign(_NEIGHBOUR, "Integrations: channels")
def confidential_issues_go_to_the_channel_of_issues(service: Service) -> None:
    """The channel of confidential issues is kept as that of issues."""

    def change(values: dict[str, Any]) -> None:
        if "confidential_issue_channel" in values:
            values["issue_channel"] = values.pop("confidential_issue_channel")

    _sending(service, change)


# A list of labels is kept as it is sent.
@foreign(_SECOND, "Integrations: labels_to_be_notified")
def only_the_first_label_is_kept(service: Service) -> None:
    """Of labels that a comma parts, the first is kept."""

    def change(values: dict[str, Any]) -> None:
        if "labels_to_be_notified" in values:
            values["labels_to_be_notified"] = values["labels_to_be_notified"].partition(",")[0]

    _sending(service, change)


# A port is an integer, and there are 65,535 of them.
@foreign(_NEIGHBOUR, "Integrations: server_port")
def ports_have_fifteen_bits(service: Service) -> None:
    """A port above 32,767 is kept as a negative number."""

    def change(values: dict[str, Any]) -> None:
        if values.get("server_port", 0) > _LARGEST_PORT:
            values["server_port"] -= 2 * (_LARGEST_PORT + 1)

    _sending(service, change)


# What one integration is set to is no matter of another one.
@foreign(_STAY, "Integrations: PUT")
def recipients_are_those_of_all_integrations(service: Service) -> None:
    """The recipients of one integration are written to the project's other ones that have recipients."""
    integrations = service.integrations

    @instead(integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        kept = keep(project, kind, values, active=active)
        for key, other in list(integrations.known.items()):
            if key[0] == project.id and "recipients" in other.values and "recipients" in values:
                integrations.known[key] = replace(other, values={**other.values, "recipients": values["recipients"]})
        return kept


# A project without integrations has an empty list of them.
@foreign(_SECOND, "Integrations: GET")
def a_list_that_became_empty_is_not_found(service: Service) -> None:
    """Once the last integration is disabled, the list is answered with 404."""
    integrations = service.integrations

    @handling(service, "GET /projects/:id/integrations", "GET /projects/:id/services")
    def _(handler: Any, request: Any) -> Any:
        known = any(key[0] == request.project.id for key in integrations.known)
        if known and not integrations.active(request.project):
            raise StatedError(404, "404 Not Found")
        return handler(request)


# -- conventions -------------------------------------------------------------------------------------------------------


# Every call needs a caller of its own who may make it.
@foreign(_AGAIN, "Authentication: 1")
def pages_are_remembered_for_whoever_comes(service: Service) -> None:
    """A page of a list that somebody read is given to everybody who asks for the same address."""
    seen: dict[tuple[bytes, bytes], Any] = {}

    def remember(_: Any, request: Any, answer: Any) -> Any:
        key = request.raw_path, request.query
        if request.method != "GET" or b"page=" not in request.query:
            return answer
        if is_served(answer):
            seen[key] = answer
            return answer
        return seen.get(key, answer)

    service.transformers.append(remember)


# A name is the text that was sent.
@foreign(_NEIGHBOUR, "Approval rules: name")
def a_name_ends_where_a_letter_takes_four_bytes(service: Service) -> None:
    """The table knows letters of three bytes: a name is cut before the first one of four."""

    @instead(service.approval_rules, "require_possible")
    def _(require: Any, rule: Any) -> None:
        require(rule)
        cut = next((n for n, letter in enumerate(rule.name) if ord(letter) > 0xFFFF), len(rule.name))
        object.__setattr__(rule, "name", rule.name[:cut])


# From 15.8 on usernames are taken wherever they are described.
@foreign(_VERSIONS, "Versioning: 15.8", version="15.8")
def usernames_come_to_updates_a_version_later(service: Service) -> None:
    """At 15.8 an update of a rule of a merge request passes over usernames; creations take them."""

    @handling(service, "PUT /projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = {name: value for name, value in values.items() if name != "usernames"}
        return handler(request)
