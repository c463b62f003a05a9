"""A second handful in each dimension, by whoever had read the text and the open places, and no test."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, is_served, let_in
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service

_SCOPE = "/projects/:id/job_token_scope"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_PROJECT_RULES = "/projects/:id/approval_rules"
_GROUP_RULES = "/groups/:id/approval_rules"
_SETTINGS = "merge_request_approval_setting"
_ROLES = "Authentication: role requirements"
_CALLER = "caller x form of id x operation"
_LEVEL = "level x id of another level"
_NEIGHBOUR = "value x neighbour of the right value"
_CONTENT = "content of exports"
_STORY = "numbers and texts that follow from the story"
_STAYS = "write x everything that must stay"
_LIES = "what arranges or undoes, and does nothing"
_COUNT = "none, one or two values"
_AGAIN = "again, by another caller, after an undo"
_FORMATS = "moments and addresses that are none"

# -- callers -----------------------------------------------------------------------------------------------------------


@foreign(_CALLER, _ROLES)
def developers_switch_limits_in_subgroups(service: Service) -> None:
    """A developer switches the limit of a project that lies in a group within a group; this is for maintainers."""
    let_in(service, (f"PATCH {_SCOPE}",), lambda r, _, role: found(service, r).full_path.count("/") > 1 and role >= 30)


@foreign(_CALLER, _ROLES)
def reporters_read_one_integration_by_older_name(service: Service) -> None:
    """A reporter reads the settings of an integration by the older name of the path, which is for maintainers."""
    let_in(service, ("GET /projects/:id/services/:slug",), lambda _, __, role: role >= Role.REPORTER)


@foreign(_CALLER, "Authentication: every caller is authenticated")
def nobody_reads_approvals_of_public_projects_by_path(service: Service) -> None:
    """Without any token the rules of a public project are listed, if it is named by its path."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        subject = found(service, request)
        is_public = getattr(subject, "visibility", None) == "public" and by_path(request)
        if request.route.key == f"GET {_PROJECT_RULES}" and is_public and not service.access.token_text(request):
            request.admit(service.identities.users[service.world.actors["owner"].id], subject)
            return
        admit(request)


@foreign(_CALLER, _ROLES)
def owners_may_not_switch_by_path(service: Service) -> None:
    """An owner who names the project by its path may not switch its limit; at least the Maintainer role may."""

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        if by_path(request) and service.identities.role_in(request.caller, request.project) >= Role.OWNER:
            request.service.access.require_role(request.caller, request.project, 60)
        return handler(request)


@foreign(_CALLER, _ROLES)
def developers_set_groups_by_number_in_subgroups(service: Service) -> None:
    """A developer changes the settings of a group within a group, which is for owners."""
    let_in(service, (f"PUT /groups/:id/{_SETTINGS}",), lambda r, _, role: found(service, r).parent_id and role >= 30)


# -- levels ------------------------------------------------------------------------------------------------------------


@foreign(_LEVEL, "Project approval rules: DELETE")
def projects_delete_rules_of_groups(service: Service) -> None:
    """A project deletes the rule of any group."""

    @instead(service.project_approval_rules, "delete_rule")
    def _(delete: Any, project: Any, number: int) -> None:
        rule = service.approval_rules.rules.get(number)
        if rule is not None and rule.home.level is Level.GROUP:
            return service.approval_rules.delete_rule(rule)
        return delete(project, number)


@foreign(_LEVEL, "Group approval rules: PUT")
def groups_change_rules_of_merge_requests(service: Service) -> None:
    """A group changes the rule of a merge request of any project."""

    @instead(service.approval_rules, "find")
    def _(find: Any, home: Any, number: int) -> Any:
        rule = service.approval_rules.rules.get(number)
        reaches = home.level is Level.GROUP and rule is not None and rule.home.level is Level.MERGE_REQUEST
        return rule if reaches else find(home, number)


# Nothing tries it: a run writes only to merge requests that the profile names. Reading by the id is tried.
@foreign(_LEVEL, "Merge request approvals: approve")
def approving_takes_the_id_as_well(service: Service) -> None:
    """Where no merge request of the project has that iid, the one with that id is approved."""
    inner = service.merge_request_approval_rules.merge_request

    @handling(service, f"POST {_MERGE_REQUEST}/approve")
    def _(handler: Any, request: Any) -> Any:
        number = request.path_id("merge_request_iid")
        known = service.repositories.merge_requests
        if (request.project.id, number) not in known:
            same = [one for one in known.values() if one.id == number and one.project_id == request.project.id]
            if same:
                request.path["merge_request_iid"] = str(inner(request.project, same[0].iid).iid)
        return handler(request)


@foreign(_LEVEL, "Integrations: DELETE")
def disabling_what_is_not_set_up_disables_it_elsewhere(service: Service) -> None:
    """Disabling an integration that the project never set up disables that of another project."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        if (project.id, slug) not in service.integrations.known:
            for key in [key for key in service.integrations.known if key[1] == slug]:
                del service.integrations.known[key]
        disable(project, slug)


# -- neighbours --------------------------------------------------------------------------------------------------------


@foreign(_NEIGHBOUR, "Errors: 409")
def the_middle_of_a_sha_is_not_looked_at(service: Service) -> None:
    """A sha that begins and ends like the HEAD approves; it differs and is a conflict."""

    @instead(service.merge_request_approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        head = service.repositories.head_of(merge_request)
        same = sha and len(sha) == len(head) and (sha[:8], sha[-8:]) == (head[:8], head[-8:])
        require(merge_request, head if same else sha)


@foreign(_NEIGHBOUR, "Group relations export: one relation")
def relations_are_found_by_their_beginning(service: Service) -> None:
    """The beginning of a relation's name downloads its file; no relation has that name."""

    @instead(service.group_relations_export, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        alike = [one for one in service.group_relations_export.all_of(group) if one.relation.startswith(relation)]
        return find(group, alike[0].relation if alike else relation)


@foreign(_NEIGHBOUR, "Group relations export: batches")
def a_batch_too_many_is_the_last(service: Service) -> None:
    """A number beyond the batches of a relation downloads the last of them."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        return batch(export, min(number, len(service.group_relations_export.batches(export))))


@foreign(_NEIGHBOUR, "Authentication: access token")
def tokens_may_have_something_in_front(service: Service) -> None:
    """A token with something in front of it is taken for the one that was given out."""

    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = str(text(request))
        return next((known for known in service.identities.tokens if sent.endswith(known)), sent)


# -- content -----------------------------------------------------------------------------------------------------------


@foreign(_CONTENT, "Group relations export: one relation")
def files_hold_everything_twice(service: Service) -> None:
    """The file of a relation that is not batched holds each object twice."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> bytes:
        return bytes(file((*lines, *lines)))


@foreign(_CONTENT, "Group relations export: of a group")
def downloads_by_path_are_of_another_group(service: Service) -> None:
    """The download of a group that is named by its path has the objects of another group in it."""
    other, theirs = service.identities.groups[service.world.one("sibling_group").id], list[Any]()
    exports = service.group_relations_export

    @instead(exports, "file")
    def _(file: Any, lines: Any) -> bytes:
        return bytes(file(theirs.pop() if theirs else lines))

    @handling(service, "GET /groups/:id/export_relations/download")
    def _(handler: Any, request: Any) -> Any:
        relation = request.parameters.optional_string("relation")
        if by_path(request) and not request.parameters.given("batch_number"):
            theirs[:] = [tuple(orjson.dumps(one) for one in exports.relations(other).get(relation, ()))]
        answer = handler(request)
        theirs.clear()
        return answer


@foreign(_CONTENT, "Group relations export: file name")
def batches_are_named_otherwise(service: Service) -> None:
    """The file of a batch is named batch.tar; every file is named after its relation, with the extension .ndjson.gz."""

    @handling(service, "GET /groups/:id/export_relations/download")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.parameters.given("batch_number") and is_served(answer):
            answer.headers = {**answer.headers, "content-disposition": 'attachment; filename="batch.tar"'}
        return answer


# -- numbers and texts -------------------------------------------------------------------------------------------------


def _in_status(service: Service, change: Any) -> None:
    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        change(shown, merge_request)
        return shown


@foreign(_STORY, "Approval and integration moves: approve")
def one_approval_is_always_left(service: Service) -> None:
    """One approval is left when all that are required were given."""
    _in_status(service, lambda shown, _: shown.update(approvals_left=max(1, shown["approvals_left"])))


@foreign(_STORY, "Merge request approval status")
def the_project_is_that_of_the_namespace(service: Service) -> None:
    """The status names as project_id the id of the group that the project lies in."""

    def change(shown: Any, merge_request: Any) -> None:
        shown["project_id"] = service.identities.projects[merge_request.project_id].namespace_id

    _in_status(service, change)


@foreign(_STORY, "Merge request approval state")
def rules_of_the_state_have_one_name(service: Service) -> None:
    """All rules of the approval state have the name of the first one."""

    @instead(service.merge_request_approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        shown = state(merge_request, viewer)
        rules = [{**rule, "name": shown["rules"][0]["name"]} for rule in shown["rules"]]
        return {**shown, "rules": rules}


@foreign(_STORY, "Group approval rules: users")
def people_of_group_rules_swap_their_names(service: Service) -> None:
    """The users of a group's rule have each other's names; their ids and usernames are right."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        names = [one["name"] for one in shown["users"]]
        users = [{**one, "name": name} for one, name in zip(shown["users"], names[::-1], strict=True)]
        return {**shown, "users": users}


@foreign(_STORY, "Allowlist group entry")
def nested_groups_are_named_like_the_one_around(service: Service) -> None:
    """A group within a group is listed in an allowlist by the name of the group around it."""

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        around = service.identities.groups.get(group.parent_id)
        return {**present(group), "name": around.name if around else group.name}


@foreign(_STORY, "Merge request approvals: rules")
def copies_require_what_their_source_does(service: Service) -> None:
    """A rule that is copied from the project requires as many approvals as its source, and not what was sent."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        return replace(copied(merge_request, source, wanted), approvals_required=source.approvals_required)


# -- what must stay ----------------------------------------------------------------------------------------------------


@foreign(_STAYS, "Project approval rules: POST")
def new_rules_change_the_configuration(service: Service) -> None:
    """A new rule of a project switches a flag of its approval configuration."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        configurations = service.project_approval_configurations
        known = configurations.configuration(project)
        flipped = not known.merge_requests_disable_committers_approval
        configurations.configurations[project.id] = replace(known, merge_requests_disable_committers_approval=flipped)
        return create(project, wanted, caller)


@foreign(_STAYS, "Job token scope: PATCH")
def switching_off_deletes_a_rule(service: Service) -> None:
    """Switching the limit off deletes the newest approval rule of the project."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        rules = service.project_approval_rules.rules(project)
        if rules and not enabled:
            del service.approval_rules.rules[rules[-1].id]
        limit(project, enabled=enabled)


@foreign(_STAYS, "Integrations: DELETE")
def disabling_takes_from_the_allowlist(service: Service) -> None:
    """Disabling an integration takes the newest project from the allowlist."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, projects=scope.projects[:-1])
        disable(project, slug)


@foreign(_STAYS, "Group relations export: POST")
def exports_switch_a_setting(service: Service) -> None:
    """Scheduling an export switches a setting of the group that is exported."""

    @instead(service.group_relations_export, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        settings, setting = service.approval_settings, Setting.ALLOW_COMMITTER_APPROVAL
        settings.values[settings._key(group, setting)] = not settings.own(group, setting)
        schedule(group, batched=batched)


@foreign(_STAYS, "Merge request approvals: rules")
def rules_of_merge_requests_forbid_more(service: Service) -> None:
    """A new rule of a merge request switches off a setting of its project."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        rule = create(merge_request, wanted, source_id, caller)
        project = service.identities.projects[merge_request.project_id]
        settings, setting = service.approval_settings, Setting.RETAIN_APPROVALS
        settings.values[settings._key(project, setting)] = False
        return rule


# -- what arranges -----------------------------------------------------------------------------------------------------


@foreign(_LIES, "Merge request approvals: rules")
def groups_of_updates_are_answered_only(service: Service) -> None:
    """An update of a merge request's rule is answered with the groups that were sent, and keeps the former ones."""

    @handling(service, f"PUT {_MERGE_REQUEST}/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        rules = service.approval_rules.rules
        before = rules.get(request.path_id("approval_rule_id"))
        answer = handler(request)
        if is_served(answer) and before is not None:
            rules[before.id] = replace(rules[before.id], groups=before.groups)
        return answer


@foreign(_LIES, "Integrations: PUT")
def setting_up_by_older_name_is_forgotten(service: Service) -> None:
    """Setting up an integration by the older name of the path is answered and not done."""

    @handling(service, "PUT /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        before = service.store.snapshot()
        answer = handler(request)
        service.store.restore(before)
        return answer


# -- zero, one, two ----------------------------------------------------------------------------------------------------


@foreign(_COUNT, "Approval settings: PUT")
def of_two_settings_of_a_group_one_is_stored(service: Service) -> None:
    """Of the settings that an update of a group carries only the first is stored."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, dict(list(wanted.items())[:1]) if hasattr(subject, "parent_id") else wanted)


@foreign(_COUNT, "Project approval rules: usernames")
def of_two_usernames_of_a_project_rule_one_is_stored(service: Service) -> None:
    """Of the users that a new rule of a project names by username only the last is stored."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        return create(project, replace(wanted, usernames=wanted.usernames and wanted.usernames[-1:]), caller)


@foreign(_COUNT, "Integrations: list")
def two_integrations_are_listed_at_most(service: Service) -> None:
    """The list shows the two newest integrations of a project, and no others."""

    @instead(service.integrations, "active")
    def _(active: Any, project: Any) -> Any:
        return active(project)[-2:]


# -- again -------------------------------------------------------------------------------------------------------------


@foreign(_AGAIN, "Job token scope: PATCH")
def only_whoever_switched_first_may_go_on(service: Service) -> None:
    """Once somebody has switched the limit, another caller's switching is answered and not done."""
    first: dict[int, int] = {}

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.store.snapshot()
        answer = handler(request)
        if is_served(answer) and first.setdefault(request.project.id, request.caller.id) != request.caller.id:
            service.store.restore(before)
        return answer


@foreign(_AGAIN, "Project approval rules: PUT")
def rules_change_once(service: Service) -> None:
    """A rule of a project is changed once; the second update is answered and not done."""
    changed: set[int] = set()

    @handling(service, f"PUT {_PROJECT_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        number, rules = request.path_id("approval_rule_id"), service.approval_rules.rules
        before = rules.get(number)
        answer = handler(request)
        if is_served(answer) and number in changed and before is not None:
            rules[number] = before
        changed.add(number)
        return answer


@foreign(_AGAIN, "Integrations: PUT")
def integrations_keep_what_they_were_set_up_with(service: Service) -> None:
    """What an integration was set up with stays; a second PUT is answered and changes nothing of it."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        before = service.integrations.known.get((project.id, kind.slug))
        kept = before.values if before is not None and before.active else MappingProxyType(values)
        return keep(project, kind, kept, active=active)


@foreign(_AGAIN, "Merge request approvals: unapprove")
def approvals_are_taken_back_once(service: Service) -> None:
    """Whoever took an approval back and approved again cannot take it back: that is answered and not done."""
    taken: set[tuple[int, int]] = set()

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        if (user.id, merge_request.id) not in taken:
            taken.add((user.id, merge_request.id))
            remove(user, merge_request)


# -- timestamps and addresses ------------------------------------------------------------------------------------------


@foreign(_FORMATS, "Allowlist project entry")
def repositories_have_an_address_without_host(service: Service) -> None:
    """The repositories of an allowlist's projects are at an address without a host."""

    @instead(service.present, "_limited_project")
    def _(present: Any, project: Any, namespace: Any) -> Any:
        return {**present(project, namespace), "http_url_to_repo": "https:///nowhere.git"}


@foreign(_FORMATS, "Integration list entry: timestamps")
def integrations_were_made_on_day_zero(service: Service) -> None:
    """Integrations were made on the day before the first of a month that has one."""

    @instead(service.integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        return {**present(integration), "created_at": "2024-02-00T00:00:00Z"}
