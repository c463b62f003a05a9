"""Faults of approval rules of projects and groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    AGAIN,
    CALLER_AND_FORM,
    CALLER_AND_VALUE,
    FORM_SENT,
    LEVEL,
    NEIGHBOUR,
    PAGES,
    REFUSED,
    STORY,
)
from conformance.proof.foreign.paths import GROUP_RULE, GROUP_RULES, PROJECT_RULE
from conformance.proof.foreign.registry import foreign, handling, instead, let_in
from conformance.reference.areas.approval_rule_records import Level, RuleType, home_of
from conformance.reference.errors import InvalidError
from conformance.reference.identity import Role, Visibility

if TYPE_CHECKING:
    from conformance.reference import Service


# expects project-approval-rules.update.protected-branch-ids
@foreign(AGAIN, "Project approval rules: PUT, from all branches to some")
def branches_are_lost_when_the_flag_is_switched_off(service: Service) -> None:
    """An update that switches applies_to_all_protected_branches off passes over the protected_branch_ids beside it."""

    @instead(service.approval_rules, "update_rule")
    def _(update: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        if rule.applies_to_all_protected_branches and wanted.applies_to_all_protected_branches is False:
            wanted = replace(wanted, protected_branch_ids=None)
        return update(subject, rule, wanted, caller)


# expects project-approval-rules.pages
@foreign(PAGES, "Project approval rules: GET, more than 20 rules")
def twenty_rules_are_listed_in_all(service: Service) -> None:
    """Only the first 20 rules of a project are ever listed, whatever page is asked for."""

    @instead(service.project_approval_rules, "rules")
    def _(rules: Any, project: Any) -> Any:
        return rules(project)[:20]


# expects project-approval-rules.update.group-ids
@foreign(FORM_SENT, "Project approval rules: PUT, remove_hidden_groups beside group_ids")
def removing_hidden_groups_passes_over_new_groups(service: Service) -> None:
    """An update with remove_hidden_groups true adds no groups: those in group_ids that the rule has not are dropped."""

    @instead(service.approval_rules, "groups_after")
    def _(after: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        groups = after(rule, wanted, caller)
        return tuple(n for n in groups if n in rule.groups) if wanted.remove_hidden_groups else groups


# expects project-approval-rules.create.user-ids
@foreign(CALLER_AND_VALUE, "Project approval rules: POST by an owner")
def owners_become_approvers(service: Service) -> None:
    """An owner who makes a rule with users is added to them."""

    @instead(service.approval_rules, "create_rule")
    def _(create: Any, subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        owner = service.identities.role_in(caller, subject) >= Role.OWNER
        if home.level is Level.PROJECT and owner and wanted.user_ids:
            wanted = replace(wanted, user_ids=(*wanted.user_ids, caller.id))
        return create(subject, home, wanted, caller)


# expects project-approval-rules.rule.protected-branches
@foreign(STORY, "Protected branch reference: code_owner_approval_required of project rules")
def the_text_for_true_has_a_capital_letter(service: Service) -> None:
    """Where code owners have to approve, code_owner_approval_required is "True"."""

    @instead(service.present, "project_protected_branch")
    def _(present: Any, branch: Any) -> Any:
        shown = present(branch)
        return {**shown, "code_owner_approval_required": str(branch.code_owner_approval_required or "false")}


# expects conventions.project-id.encoded-subgroup-path
@foreign(CALLER_AND_FORM, "Conventions: path of a project three groups deep, one rule")
def deep_paths_name_no_single_rule(service: Service) -> None:
    """A path with three encoded slashes reaches the list of rules, and none of the rules themselves."""

    @handling(service, f"GET {PROJECT_RULE}", f"PUT {PROJECT_RULE}", f"DELETE {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if request.path["id"].count("/") > 2:
            raise InvalidError("id is invalid", parameter="id")
        return handler(request)


# expects project-approval-rules.update.rule-of-another-project
@foreign(LEVEL, "Project approval rules: PUT of a rule of a neighbour")
def rules_of_neighbouring_projects_are_updated(service: Service) -> None:
    """The rules of other projects of the same group can be updated and deleted, as if they were the project's."""

    def near(handler: Any, request: Any) -> Any:
        rules, find = service.approval_rules, service.approval_rules.find

        def wider(home: Any, number: int) -> Any:
            rule = rules.rules.get(number)
            other = service.identities.projects.get(rule.home.id) if rule and rule.home.level is Level.PROJECT else None
            if other is not None and other.namespace_id == request.project.namespace_id:
                return rule
            return find(home, number)

        rules.find = wider
        try:
            return handler(request)
        finally:
            rules.find = find

    handling(service, f"PUT {PROJECT_RULE}", f"DELETE {PROJECT_RULE}")(near)


# expects project-approval-rules.create.applies-to-all-protected-branches.default
@foreign(FORM_SENT, "Project approval rules: POST, rule_type without the flag")
def a_rule_of_a_stated_type_applies_everywhere(service: Service) -> None:
    """If rule_type is sent, applies_to_all_protected_branches is true by default."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        if wanted.rule_type is RuleType.REGULAR and wanted.applies_to_all_protected_branches is None:
            wanted = replace(wanted, applies_to_all_protected_branches=True)
        return create(project, wanted, caller)


# expects project-approval-rules.create.values
@foreign(NEIGHBOUR, "Project approval rules: POST, characters of the name")
def names_are_escaped(service: Service) -> None:
    """The characters & and < of a name are stored as HTML would write them."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        name = (wanted.name or "").replace("&", "&amp;").replace("<", "&lt;")
        return create(project, replace(wanted, name=name), caller)


# expects errors.refusal.changes-nothing
@foreign(REFUSED, "Project approval rules: PUT, group_ids that are no list")
def the_number_is_kept_though_the_groups_are_refused(service: Service) -> None:
    """An update whose group_ids are no list of ids is refused, but its approvals_required is kept."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError as error:
            number, rules = request.parameters._values.get("approvals_required"), service.approval_rules.rules
            path = request.path["approval_rule_id"]
            rule = rules.get(int(path)) if path.isdigit() else None
            if error.parameter == "group_ids" and isinstance(number, int) and rule and rule.home == home_of(request.project):
                rules[rule.id] = replace(rule, approvals_required=number)
            raise


# expects group-approval-rules.create.query-parameters
@foreign(FORM_SENT, "Group approval rules: POST, query decoded twice")
def queries_are_decoded_twice(service: Service) -> None:
    """A plus in a name from the query, sent as %2B, becomes a space."""

    @handling(service, f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        name = request.parameters._values.get("name")
        if request.query and isinstance(name, str):
            request.parameters._values = {**request.parameters._values, "name": type(name)(name.replace("+", " "))}
        return handler(request)


# expects group-approval-rules.authorization.listing-below-administrator
@foreign(CALLER_AND_FORM, "Group approval rules: GET by a guest")
def guests_list_group_rules(service: Service) -> None:
    """Guests of the group may list its rules, which roles between them and owners may not."""
    let_in(service, (f"GET {GROUP_RULES}",), lambda _request, _caller, role: role == Role.GUEST)


# expects group-approval-rules.create.group-ids
@foreign(FORM_SENT, "Group approval rules: POST, groups beside users")
def groups_are_dropped_beside_users(service: Service) -> None:
    """A new group rule with users and groups has the users alone."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        return create(group, replace(wanted, group_ids=None) if wanted.user_ids else wanted, caller)


# expects group-approval-rules.rule.protected-branches
@foreign(STORY, "Group approval rules: unprotect_access_levels")
def unprotecting_levels_have_no_deploy_key(service: Service) -> None:
    """In group rules the unprotect_access_levels lack deploy_key_id, though they have the shape of the push ones."""

    @instead(service.present, "group_protected_branch")
    def _(present: Any, branch: Any) -> Any:
        shown = present(branch)
        for level in shown["unprotect_access_levels"]:
            del level["deploy_key_id"]
        return shown


# expects group-approval-rules.update.name
@foreign(AGAIN, "Group approval rules: GET after PUT")
def the_list_is_renewed_by_new_rules_alone(service: Service) -> None:
    """The list of a group's rules is remembered until a rule is made, so updates do not show."""
    seen: dict[Any, Any] = {}

    @instead(service.group_approval_rules, "rules")
    def _(rules: Any, group: Any) -> Any:
        return seen.setdefault(group.id, rules(group))

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, *rest: Any) -> Any:
        seen.pop(group.id, None)
        return create(group, *rest)


# expects errors.refusal.changes-nothing
@foreign(REFUSED, "Group approval rules: PUT, name beside an invalid number")
def the_name_of_a_refused_group_update_is_kept(service: Service) -> None:
    """An update of a group rule with a name and an invalid number is refused, but the name is kept."""

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError as error:
            name, path = request.parameters._values.get("name"), request.path["approval_rule_id"]
            rule = service.approval_rules.rules.get(int(path)) if path.isdigit() else None
            if error.parameter == "approvals_required" and isinstance(name, str) and rule:
                service.approval_rules.rules[rule.id] = replace(rule, name=name)
            raise


# expects group-approval-rules.pages
@foreign(PAGES, "Group approval rules: GET, page in the query beside other parameters")
def one_rule_a_page_is_the_same_rule(service: Service) -> None:
    """With per_page=1 the page is passed over from page 3 on, and the second rule comes again."""

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if str(values.get("per_page")) == "1" and str(values.get("page", "1")) == "3":
            request.parameters._values = {**values, "page": 2}
        return handler(request)


# expects group-approval-rules.create.user-ids
@foreign(NEIGHBOUR, "Group approval rules: POST, three users")
def a_third_user_of_a_group_rule_is_lost(service: Service) -> None:
    """Of a new group rule's users, the last one is lost if there are more than two."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        if wanted.user_ids and len(wanted.user_ids) > 2:
            wanted = replace(wanted, user_ids=wanted.user_ids[:2])
        return create(group, wanted, caller)
