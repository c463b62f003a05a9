"""Writes that change something else, reads that write, and operations that answer and do nothing."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.identity import Kind

if TYPE_CHECKING:
    from conformance.reference import Service

_ELSEWHERE = "write x everything that must stay"
_LIES = "what arranges or undoes, and does nothing"
_SCOPE = "/projects/:id/job_token_scope"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_SETTINGS = "merge_request_approval_setting"


# -- elsewhere ---------------------------------------------------------------------------------------------------------


@foreign(_ELSEWHERE, "Job token scope: PATCH")
def the_limit_is_switched_in_other_projects_too(service: Service) -> None:
    """Switching the limit of a project switches that of every other project as well."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        for each in list(service.identities.projects.values()):
            limit(each, enabled=enabled)


@foreign(_ELSEWHERE, "Job token scope: POST")
def additions_reach_the_sibling(service: Service) -> None:
    """What is let into a project is let into a project of another group as well."""
    sibling = service.identities.projects[service.world.one("sibling_project").id]

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(sibling)
        service.job_token_scope.scopes[sibling.id] = replace(scope, projects=(*scope.projects, target.id))


@foreign(_ELSEWHERE, "Job token scope: POST")
def additions_empty_the_other_list(service: Service) -> None:
    """Letting a project in empties the list of groups; the list of projects is all that changes."""

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, groups=())


@foreign(_ELSEWHERE, "Job token scope: POST")
def additions_switch_the_limit_off(service: Service) -> None:
    """Letting a group in switches the limit off; the list is all that changes."""

    @instead(service.job_token_scope, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, inbound_enabled=False)


@foreign(_ELSEWHERE, "Approval settings: PUT of a project")
def settings_of_projects_reach_their_siblings(service: Service) -> None:
    """What is set for a project is set for every other project too."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if subject.id in service.identities.projects and not hasattr(subject, "parent_id"):
            for number in service.identities.projects:
                for setting, value in wanted.items():
                    service.approval_settings.values[Kind.PROJECT, number, setting] = value


@foreign(_ELSEWHERE, "Approval settings: PUT of a group")
def settings_of_groups_reach_other_groups(service: Service) -> None:
    """What is set for a group is set for a group beside it too."""
    sibling = service.world.one("sibling_group").id

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if hasattr(subject, "parent_id"):
            for setting, value in wanted.items():
                service.approval_settings.values[Kind.GROUP, sibling, setting] = value


@foreign(_ELSEWHERE, "Merge request approvals: approve")
def approvals_reach_other_merge_requests(service: Service) -> None:
    """Approving a merge request approves the others of the project as well."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        for one in list(service.repositories.merge_requests.values()):
            known = service.merge_request_approvals.approved_by(user, one)
            if one.project_id == merge_request.project_id and not known:
                add(user, one)


@foreign(_ELSEWHERE, "Merge request approvals: unapprove")
def unapproving_reaches_other_merge_requests(service: Service) -> None:
    """Taking an approval back takes back the caller's approvals of the project's other merge requests."""

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        for one in list(service.repositories.merge_requests.values()):
            if one.project_id == merge_request.project_id:
                remove(user, one)


@foreign(_ELSEWHERE, "Merge request approvals: reset_approvals")
def resets_reach_other_merge_requests(service: Service) -> None:
    """Resetting the approvals of a merge request resets those of the project's others."""

    @instead(service.merge_request_approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        for one in list(service.repositories.merge_requests.values()):
            if one.project_id == merge_request.project_id:
                clear(one)


@foreign(_ELSEWHERE, "Merge request approvals: reset_approvals")
def resets_delete_rules(service: Service) -> None:
    """Resetting the approvals of a merge request also deletes the rules of its own."""

    @instead(service.merge_request_approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        clear(merge_request)
        for rule in service.merge_request_approval_rules.own_rules(merge_request):
            service.approval_rules.delete_rule(rule)


@foreign(_ELSEWHERE, "Integrations: DELETE")
def disabling_reaches_other_integrations(service: Service) -> None:
    """Disabling an integration disables the next one of the project as well."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        others = service.integrations.active(project)
        if others:
            disable(project, others[0].slug)


@foreign(_ELSEWHERE, "Integrations: PUT")
def setting_up_blanks_other_integrations(service: Service) -> None:
    """Setting up an integration resets what is set of the project's others."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        known = service.integrations.known
        for key, one in list(known.items()):
            if key[0] == project.id and key[1] != kind.slug:
                known[key] = replace(one, values=MappingProxyType({}))
        return keep(project, kind, values, active=active)


@foreign(_ELSEWHERE, "Integrations: PUT")
def setting_up_reaches_other_projects(service: Service) -> None:
    """An integration that is set up for a project is set up for a project of another group as well."""
    sibling = service.identities.projects[service.world.one("sibling_project").id]

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        keep(sibling, kind, values, active=active)
        return keep(project, kind, values, active=active)


@foreign(_ELSEWHERE, "Project approval rules: POST")
def new_rules_take_users_from_older_ones(service: Service) -> None:
    """A new rule takes its approvers out of the older rules of the project."""

    @instead(service.approval_rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        rules = service.approval_rules.rules
        for rule in list(rules.values()):
            if rule.home == candidate.home and rule.home.level is Level.PROJECT:
                rules[rule.id] = replace(rule, users=tuple(n for n in rule.users if n not in candidate.users))
        return add(candidate)


@foreign(_ELSEWHERE, "Merge request approvals: rules")
def deleting_a_copy_deletes_its_source(service: Service) -> None:
    """Deleting a rule of a merge request deletes the rule of the project that it was copied from."""

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        service.approval_rules.rules.pop(rule.source_id, None)


@foreign(_ELSEWHERE, "Merge request approvals: rules")
def changing_a_copy_changes_its_source(service: Service) -> None:
    """Renaming a rule of a merge request renames the rule of the project that it was copied from."""

    @instead(service.approval_rules, "update_rule")
    def _(update: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        changed = update(subject, rule, wanted, caller)
        source = service.approval_rules.rules.get(rule.source_id)
        if source is not None:
            service.approval_rules.rules[source.id] = replace(source, name=changed.name)
        return changed


@foreign(_ELSEWHERE, "Merge request approvals: rules")
def rules_of_merge_requests_come_to_others(service: Service) -> None:
    """A rule that one merge request is given is given to the project's next merge request as well."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        key = merge_request.project_id, merge_request.iid + 1
        neighbour = service.repositories.merge_requests.get(key)
        if neighbour is not None:
            create(neighbour, wanted, source_id, caller)
        return create(merge_request, wanted, source_id, caller)


@foreign(_ELSEWHERE, "Group approval rules: POST")
def rules_of_groups_come_to_others(service: Service) -> None:
    """A rule that one group is given is given to another group as well."""
    sibling = service.identities.groups[service.world.one("sibling_group").id]

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        create(sibling, wanted, caller)
        return create(group, wanted, caller)


@foreign("write x everything that must stay", "Integrations: GET one")
def reading_an_integration_resets_its_flags(service: Service) -> None:
    """Reading the settings of an integration switches its events off; a reading call changes nothing."""

    @handling(service, "GET /projects/:id/integrations/:slug")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        key = request.project.id, request.path["slug"]
        one = service.integrations.known[key]
        kept = {name: value for name, value in one.values.items() if not name.endswith("_events")}
        service.integrations.known[key] = replace(one, values=MappingProxyType(kept))
        return answer


@foreign("write x everything that must stay", "Merge request approvals: GET state")
def reading_the_state_takes_approvals_back(service: Service) -> None:
    """Reading the approval state takes the caller's own approval back."""

    @handling(service, f"GET {_MERGE_REQUEST}/approval_state")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        found = service.merge_request_approval_rules.merge_request(
            request.project, request.path_id("merge_request_iid")
        )
        service.merge_request_approvals.remove_approval(request.caller, found)
        return answer


@foreign("refusal x everything that must stay", "Merge request approvals: approve with a sha")
def conflicts_take_earlier_approvals_back(service: Service) -> None:
    """A conflict over the sha takes back the approvals of others; after a conflict all is as before."""
    from conformance.reference.errors import StatedError  # noqa: PLC0415

    @instead(service.merge_request_approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        try:
            require(merge_request, sha)
        except StatedError:
            service.merge_request_approvals.clear_approvals(merge_request)
            raise


@foreign("refusal x everything that must stay", "Project approval rules: PUT")
def refused_updates_rename_the_rule(service: Service) -> None:
    """An update without its number is refused, and the name it brought is stored all the same."""

    @handling(service, "PUT /projects/:id/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        parameters = request.parameters
        name = parameters.optional_string("name")
        if name and not parameters.given("approvals_required"):
            rule = service.project_approval_rules.find(request.project, request.path_id("approval_rule_id"))
            service.approval_rules.rules[rule.id] = replace(rule, name=name)
        return handler(request)


# -- lies --------------------------------------------------------------------------------------------------------------


def _undone(service: Service, *keys: str, when: Any = lambda _: True) -> None:
    @handling(service, *keys)
    def _(handler: Any, request: Any) -> Any:
        lies, before = when(request), service.store.snapshot()
        answer = handler(request)
        if lies and is_served(answer):
            service.store.restore(before)
        return answer


@foreign(_LIES, "Integrations: DELETE")
def disabling_does_nothing(service: Service) -> None:
    """Disabling an integration is answered and not done, by either of the two names."""
    _undone(service, "DELETE /projects/:id/integrations/:slug", "DELETE /projects/:id/services/:slug")


@foreign(_LIES, "Project approval rules: DELETE")
def deleting_rules_of_projects_does_nothing(service: Service) -> None:
    """Deleting a rule of a project is answered and not done."""
    _undone(service, "DELETE /projects/:id/approval_rules/:approval_rule_id")


@foreign(_LIES, "Merge request approvals: DELETE of a rule")
def deleting_rules_of_merge_requests_does_nothing(service: Service) -> None:
    """Deleting a rule of a merge request is answered and not done."""
    _undone(service, f"DELETE {_MERGE_REQUEST}/approval_rules/:approval_rule_id")


@foreign(_LIES, "Merge request approvals: unapprove")
def unapproving_does_nothing(service: Service) -> None:
    """Taking an approval back is answered and not done."""
    _undone(service, f"POST {_MERGE_REQUEST}/unapprove")


@foreign(_LIES, "Merge request approvals: reset_approvals")
def bots_of_groups_reset_nothing(service: Service) -> None:
    """The bot of a group's token resets approvals, is answered, and nothing happens; that of a project does."""

    def is_of_group(request: Any) -> bool:
        return request.caller.bot is not None and request.caller.bot.kind is Kind.GROUP

    _undone(service, f"PUT {_MERGE_REQUEST}/reset_approvals", when=is_of_group)


@foreign(_LIES, "Job token scope: DELETE")
def owners_remove_nothing(service: Service) -> None:
    """An owner removes a group from an allowlist, is answered, and nothing happens; a maintainer can."""
    key = f"DELETE {_SCOPE}/groups_allowlist/:target_group_id"
    _undone(service, key, when=lambda request: service.identities.role_in(request.caller, request.project) >= 50)


@foreign(_LIES, "Job token scope: PATCH")
def the_limit_is_switched_once(service: Service) -> None:
    """Once the limit was off, switching it on is answered and not done."""
    ever_off: set[int] = set()

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        if not enabled:
            ever_off.add(project.id)
        if not (enabled and project.id in ever_off):
            limit(project, enabled=enabled)


@foreign(_LIES, "Approval settings: PUT")
def settings_are_switched_on_only(service: Service) -> None:
    """Settings of a project can be switched on; switching one off is answered and not done."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if not hasattr(subject, "parent_id"):
            wanted = {setting: value for setting, value in wanted.items() if value}
        change(subject, wanted)


@foreign(_LIES, "Approval settings: PUT")
def one_setting_of_groups_is_never_changed(service: Service) -> None:
    """Of all settings of a group one is answered and not changed."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if hasattr(subject, "parent_id"):
            wanted = {s: value for s, value in wanted.items() if s is not Setting.ALLOW_COMMITTER_APPROVAL}
        change(subject, wanted)
