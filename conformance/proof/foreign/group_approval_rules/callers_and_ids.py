"""Who may read and write the approval rules of a group, and which rule an id means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import finding_any_rule
from conformance.proof.foreign.dimensions import CALLER_AND_FORM, FORM_SENT, LEVEL
from conformance.proof.foreign.paths import GROUP_RULE, GROUP_RULES
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, let_in
from conformance.reference.areas.approval_rule_records import Home, Level, home_of
from conformance.reference.http import ok
from conformance.reference.identity import Kind, Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request


# -- listing -----------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def developers_read_later_pages_of_group_rules(service: Service) -> None:
    """A developer is refused the first page of a group's rules, but can read later ones."""
    let_in(service, (f"GET {GROUP_RULES}",), lambda request, _, role: b"page=2" in request.query and role >= 30)


# The rules of a group do not include those of a group whose path has the same beginning.
@foreign(CALLER_AND_FORM, "Group approval rules: GET")
def a_path_is_the_beginning_of_other_paths(service: Service) -> None:
    """A list requested by path contains the rules of all groups whose paths begin with it."""
    groups = service.group_approval_rules

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        if not by_path(request):
            return handler(request)
        path = request.group.full_path
        meant = [one for one in service.identities.groups.values() if one.full_path.startswith(path)]
        found = [rule for one in meant if not one.personal for rule in groups.rules(one)]
        return request.collection(found, lambda rule: groups.present(rule, request.caller))


@foreign(CALLER_AND_FORM, "Group approval rules: GET")
def the_rules_of_a_subgroup_by_its_path_are_listed_to_developers(service: Service) -> None:
    """A developer can read the rules of a subgroup named by its path; they are for group administrators."""

    def fits(request: Request, _: Any, role: Role) -> bool:
        return by_path(request) and "/" in request.path["id"] and role >= Role.DEVELOPER

    let_in(service, (f"GET {GROUP_RULES}",), fits)


# -- creating ----------------------------------------------------------------------------------------------------------


@foreign(FORM_SENT, "Authentication: role requirements")
def developers_create_group_rules_by_query(service: Service) -> None:
    """A developer can create a rule of a group with parameters in the query; this is for group administrators."""
    let_in(service, (f"POST {GROUP_RULES}",), lambda request, _, role: bool(request.query) and role >= Role.DEVELOPER)


# A rule belongs to one group, whatever the names of rules of other groups.
@foreign(LEVEL, "Group approval rules: POST")
def a_rule_of_the_same_name_elsewhere_is_found(service: Service) -> None:
    """A rule is found by name or else created, without a condition for the group."""

    @handling(service, f"POST {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        home, name = home_of(request.group), request.parameters.optional_string("name")
        for rule in service.approval_rules.rules.values():
            if rule.home.level is Level.GROUP and rule.home != home and rule.name == name:
                return ok(service.group_approval_rules.present(rule, request.caller), 201)
        return handler(request)


@foreign(LEVEL, "Group approval rules: POST")
def rules_of_a_subgroup_go_to_its_parent(service: Service) -> None:
    """A rule created for a subgroup becomes a rule of the parent group."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        return create(service.identities.lineage(group)[-1], wanted, caller)


# A creation changes no existing rule, and none of another group.
@foreign(LEVEL, "Group approval rules: POST")
def a_rule_named_like_one_further_out_changes_that_one(service: Service) -> None:
    """Creating looks for a rule of that name in the parent groups as well, and then updates that one."""
    rules = service.approval_rules

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        for outer in service.identities.lineage(group)[1:]:
            for rule in rules.rules_of(home_of(outer)):
                if rule.name == wanted.name:
                    return rules.update_rule(outer, rule, wanted, caller)
        return create(group, wanted, caller)


@foreign(LEVEL, "Group approval rules: POST")
def a_nested_group_as_approver_becomes_the_one_around_it(service: Service) -> None:
    """If a rule of a group shall have a subgroup as approver, it gets the parent of that subgroup."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        known = [service.identities.groups.get(number) for number in wanted.group_ids or ()]
        around = tuple(one.parent_id or one.id for one in known if one is not None)
        return create(group, replace(wanted, group_ids=around), caller)


# -- updating ----------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def reporters_update_group_rules_by_path(service: Service) -> None:
    """A reporter can change a rule of a group named by its path; this is for group administrators."""
    keys = (f"PUT {GROUP_RULE}",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.REPORTER)


@foreign(LEVEL, "Group approval rules: PUT")
def groups_change_rules_of_merge_requests(service: Service) -> None:
    """A group can change the rule of a merge request of any project."""

    @instead(service.approval_rules, "find")
    def _(find: Any, home: Any, number: int) -> Any:
        rule = service.approval_rules.rules.get(number)
        reaches = home.level is Level.GROUP and rule is not None and rule.home.level is Level.MERGE_REQUEST
        return rule if reaches else find(home, number)


# A rule is accessed through the group that it belongs to.
@foreign(LEVEL, "Group approval rules: PUT, approval_rule_id")
def a_group_changes_the_rules_of_its_subgroups(service: Service) -> None:
    """An update looks for the rule in a group and in everything inside it."""
    rules, known = service.approval_rules, service.identities

    @instead(rules, "find")
    def _(find: Any, home: Any, number: int) -> Any:
        rule = rules.rules.get(number)
        if rule is not None and home.level is rule.home.level is Level.GROUP:
            around = known.lineage(known.groups[rule.home.id])
            if any(group.id == home.id for group in around):
                return rule
        return find(home, number)


# Rules of a group are for its administrators.
@foreign(CALLER_AND_FORM, "Group approval rules: Authentication, group administrators")
def approvers_change_the_rule_that_names_them(service: Service) -> None:
    """A user of a rule can change that rule, with any role."""

    def fits(request: Any, caller: Any, _: Role) -> bool:
        number = request.path["approval_rule_id"]
        rule = service.approval_rules.rules.get(int(number)) if number.isdigit() else None
        return rule is not None and rule.home == home_of(found(service, request)) and caller.id in rule.users

    let_in(service, (f"PUT {GROUP_RULE}",), fits)


@foreign(LEVEL, "Group approval rules: PUT")
def groups_change_rules_of_other_groups(service: Service) -> None:
    """A group can change the rule of another group."""
    finding_any_rule(service, "PUT /groups/:id/approval_rules/:approval_rule_id", Level.GROUP)


@foreign(LEVEL, "Group approval rules: PUT")
def groups_change_rules_of_projects(service: Service) -> None:
    """A group can change the rule of a project."""
    finding_any_rule(service, "PUT /groups/:id/approval_rules/:approval_rule_id", Level.PROJECT)


# The endpoint that was added last was copied from that of projects, with its serializer.
@foreign(LEVEL, "Protected branch reference: group-level rule responses")
def updates_of_group_rules_answer_as_projects_do(service: Service) -> None:
    """The answer to an update of a group's rule shows protected branches in the form of project rules."""

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        known = service.repositories.protected_branches
        shown = answer.content["protected_branches"]
        answer.content["protected_branches"] = [
            service.present.project_protected_branch(known[branch["id"]]) for branch in shown
        ]
        return answer


@foreign(CALLER_AND_FORM, "Group approval rules: PUT")
def developers_change_rules_of_a_group_by_path(service: Service) -> None:
    """A developer can change rules of a group named by its path; this is for group administrators."""
    keys = ("PUT /groups/:id/approval_rules/:approval_rule_id",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(LEVEL, "Group approval rules: PUT")
def subgroups_change_rules_of_the_groups_around(service: Service) -> None:
    """A subgroup can change the rule of a parent group."""

    @instead(service.group_approval_rules, "update_rule")
    def _(update: Any, group: Any, number: int, wanted: Any, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(number)
        around = service.identities.lineage(group)
        owners = [one for one in around if rule is not None and rule.home == Home(Level.GROUP, one.id)]
        return update(owners[0] if owners else group, number, wanted, caller)


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Common conventions: id or path")
def paths_of_subgroups_mean_the_group_around(service: Service) -> None:
    """A subgroup named by its path shows and gets the approval rules of its parent group."""

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: str) -> Any:
        if route.path.startswith(GROUP_RULES):
            reference = reference.partition("/")[0]
        return subject(route, caller, reference)


# Administrators of a subgroup do not administer its parent.
@foreign(CALLER_AND_FORM, "Authentication: group approval rules")
def owners_of_a_group_inside_write_the_rules_around_it(service: Service) -> None:
    """The highest role in the whole tree counts, also in subgroups."""
    keys = f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}"
    known = service.identities

    def fits(request: Any, caller: Any, role: Role) -> bool:
        around = known.find_group(request.path["id"])
        inside = [group for group in known.groups.values() if around in known.lineage(group)]
        return role >= Role.OWNER or any(known.role_in(caller, group) >= Role.OWNER for group in inside)

    let_in(service, keys, fits)


@foreign(CALLER_AND_FORM, "Authentication: group approval rules, group administrators")
def who_owns_some_group_administers_every_visible_one(service: Service) -> None:
    """The check is whether the caller administers any group, and not whether it is this group."""
    keys = {f"GET {GROUP_RULES}", f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}"}

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        held = service.identities.roles.items()
        owns = any((kind, user, role) == (Kind.GROUP, caller.id, Role.OWNER) for (kind, _, user), role in held)
        if not (owns and route.key in keys):
            require(route, caller, subject)
