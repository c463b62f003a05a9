"""What a write of a project's approval rules leaves behind: when repeated, elsewhere, refused, or concurrent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import acting_on_what_was, overtaken, undoing, without_parameters
from conformance.proof.foreign.dimensions import AGAIN, AT_ONCE, NOTHING_DONE, REFUSED, SIDE_EFFECT
from conformance.proof.foreign.paths import PROJECT_RULE
from conformance.proof.foreign.registry import foreign, handling, instead, is_served, meanwhile
from conformance.reference.areas.approval_rule_records import Level, RuleType, home_of
from conformance.reference.errors import InvalidError, RejectedError
from conformance.reference.http import ok

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request


# -- reading -----------------------------------------------------------------------------------------------------------


# The serialized rule is cached by its id, without its reader.
@foreign(AGAIN, "Approval rule: contains_hidden_groups")
def rules_look_as_their_first_reader_saw_them(service: Service) -> None:
    """A project's rule is shown to everybody as to its first reader, with or without hidden groups."""
    seen: dict[Any, Any] = {}

    @handling(service, f"GET {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if not is_served(answer):
            return answer
        rule = service.project_approval_rules.find(request.project, request.path_id("approval_rule_id"))
        return ok(seen.setdefault(rule, answer.content))


@foreign(AGAIN, "Project approval rules: GET one")
def a_second_reader_sees_the_rule_of_before(service: Service) -> None:
    """A rule is cached by reader, and a change clears only the cache of its own caller."""
    kept: dict[tuple[int, str], Any] = {}

    @handling(service, f"GET {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.path["approval_rule_id"]
        if key not in kept:
            kept[key] = handler(request)
        return kept[key]

    @handling(service, f"PUT {PROJECT_RULE}", f"DELETE {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        kept.pop((request.caller.id, request.path["approval_rule_id"]), None)
        return handler(request)


# A single rule shows its current state.
@foreign(AGAIN, "Project approval rules: GET /:approval_rule_id")
def a_rule_that_was_read_stays_until_it_is_renamed(service: Service) -> None:
    """A single rule is cached by id and name: a change that keeps the name shows only in the list."""
    rules, remembered = service.project_approval_rules, dict[tuple[int, str], Any]()

    @handling(service, f"GET {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        rule = rules.find(request.project, request.path_id("approval_rule_id"))
        answer = handler(request)
        return remembered.setdefault((rule.id, rule.name), answer)


# -- creating ----------------------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Project approval rules: POST")
def new_rules_change_the_configuration(service: Service) -> None:
    """A new rule of a project switches a flag of its approval configuration."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        configurations = service.project_approval_configurations
        known = configurations.configuration(project)
        flipped = not known.merge_requests_disable_committers_approval
        configurations.configurations[project.id] = replace(known, merge_requests_disable_committers_approval=flipped)
        return create(project, wanted, caller)


@foreign(AT_ONCE, "Project approval rules: POST")
def of_two_rules_one_is_lost(service: Service) -> None:
    """If two rules of a project are created concurrently, one is lost."""
    acting_on_what_was(service, service.approval_rules.rules, "POST /projects/:id/approval_rules")


@foreign(SIDE_EFFECT, "Project approval rules: POST")
def new_rules_take_users_from_older_ones(service: Service) -> None:
    """A new rule removes its users from the older rules of the project."""

    @instead(service.approval_rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        rules = service.approval_rules.rules
        for rule in list(rules.values()):
            if rule.home == candidate.home and rule.home.level is Level.PROJECT:
                rules[rule.id] = replace(rule, users=tuple(n for n in rule.users if n not in candidate.users))
        return add(candidate)


# A new rule has only the users in its creation.
@foreign(AGAIN, "Project approval rules: POST, user_ids")
def a_rule_named_like_a_deleted_one_gets_its_users_too(service: Service) -> None:
    """Deleting only marks a rule: a new one with the same name is the old one again, with the users of both."""
    gone: dict[Any, tuple[int, ...]] = {}

    @instead(service.project_approval_rules, "delete_rule")
    def _(delete: Any, project: Any, number: int) -> None:
        rule = service.project_approval_rules.find(project, number)
        delete(project, number)
        gone[project.id, rule.name] = rule.users

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        rule = create(project, wanted, caller)
        users = dict.fromkeys((*gone.pop((project.id, rule.name), ()), *rule.users))
        service.approval_rules.rules[rule.id] = replace(rule, users=tuple(users))
        return service.approval_rules.rules[rule.id]


# -- updating ----------------------------------------------------------------------------------------------------------


@foreign(AGAIN, "Project approval rules: PUT")
def rules_change_once(service: Service) -> None:
    """A rule of a project can be changed only once; a second update is answered, but not done."""
    changed: set[int] = set()

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        number, rules = request.path_id("approval_rule_id"), service.approval_rules.rules
        before = rules.get(number)
        answer = handler(request)
        if is_served(answer) and number in changed and before is not None:
            rules[number] = before
        changed.add(number)
        return answer


# The branches count as soon as the flag is not true any more.
@foreign(AGAIN, "Project approval rules: applies_to_all_protected_branches, protected_branch_ids")
def a_rule_for_all_branches_is_not_narrowed_down_in_one_step(service: Service) -> None:
    """An update that switches a rule from all branches to one ignores that branch, because the flag was true before."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        rule = service.approval_rules.rules.get(request.path_id("approval_rule_id"))
        if rule is not None and rule.applies_to_all_protected_branches:
            without_parameters(request, "protected_branch_ids")
        return handler(request)


# The update creates the record again, with the most common type.
@foreign(SIDE_EFFECT, "Approval rule: rule_type")
def default_rules_become_regular_on_update(service: Service) -> None:
    """Updating the any_approver rule of a project makes it a regular one, although no type was sent."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: Any, wanted: Any, caller: Any) -> Any:
        return update(project, number, replace(wanted, rule_type=RuleType.REGULAR), caller)


@foreign(REFUSED, "Project approval rules: PUT, protected_branch_ids")
def the_branches_of_a_rule_are_fixed_when_made(service: Service) -> None:
    """An update does not change the protected branches of a rule."""

    @instead(service.approval_rules, "branches_after")
    def _(_after: Any, rule: Any, _wanted: Any, _subject: Any) -> Any:
        return rule.protected_branches


@foreign(AGAIN, "Project approval rules: applies_to_all_protected_branches")
def a_rule_for_all_branches_stays_one(service: Service) -> None:
    """An update can switch applies_to_all_protected_branches on, but not off again."""

    @instead(service.approval_rules, "update_rule")
    def _(update: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        flag = wanted.applies_to_all_protected_branches or None
        return update(subject, rule, replace(wanted, applies_to_all_protected_branches=flag), caller)


@foreign(REFUSED, "Project approval rules: PUT, group_ids")
def members_of_groups_are_stored_as_users(service: Service) -> None:
    """An update with groups also stores their members as users of the rule."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        users, known = after(rule, wanted, subject), service.identities
        found = [number for group in wanted.group_ids or () for number in known.members(known.groups[group])]
        return tuple(dict.fromkeys([*users, *found]))


@foreign(AT_ONCE, "Project approval rules: PUT and DELETE")
def a_rule_deleted_while_another_is_changed_comes_back(service: Service) -> None:
    """Updating a rule writes back all rules of the project as they were read: one deleted meanwhile returns."""
    rules = service.approval_rules
    meanwhile(
        service, (f"PUT {PROJECT_RULE}",), lambda: dict(rules.rules), lambda seen, _request: rules.rules.update(seen)
    )


# A refused update has no effect.
@foreign(REFUSED, "Project approval rules: PUT")
def approvers_are_written_before_the_rule_is_looked_at(service: Service) -> None:
    """An update without required parameters is refused, but its users become approvers."""
    rules = service.approval_rules

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            rule = rules.find(home_of(request.project), request.path_id("approval_rule_id"))
            users = request.parameters._values.get("user_ids")
            if isinstance(users, list) and all(isinstance(number, int) for number in users):
                rules.rules[rule.id] = replace(rule, users=tuple(users))
            raise


# The same call may be made twice.
@foreign(AGAIN, "Project approval rules: PUT of the same")
def an_update_must_change_something(service: Service) -> None:
    """An update without any difference changes no row, which is treated as a failure."""
    rules = service.project_approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = rules.find(project, number)
        after = update(project, number, wanted, caller)
        if after == before:
            raise RejectedError("The rule could not be updated.")
        return after


# A deleted rule stays deleted when another one is written.
@foreign(AT_ONCE, "Project approval rules: PUT and DELETE")
def an_update_brings_back_what_is_deleted_meanwhile(service: Service) -> None:
    """All rules of a project are written together, so an update restores rules that were deleted meanwhile."""
    rules = service.approval_rules

    def write(seen: Any, request: Any) -> None:
        for number, rule in seen.items():
            if rule.home == home_of(request.project):
                rules.rules.setdefault(number, rule)

    meanwhile(service, (f"PUT {PROJECT_RULE}",), lambda: dict(rules.rules), write)


# The groups that are sent become the groups of the rule.
@foreign(AGAIN, "Project approval rules: PUT, group_ids")
def a_group_that_is_sent_again_leaves_the_rule(service: Service) -> None:
    """An update toggles groups: a group that the rule already has is removed."""

    @instead(service.approval_rules, "groups_after")
    def _(after: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        groups = after(rule, wanted, caller)
        if rule.home.level is not Level.PROJECT or wanted.group_ids is None:
            return groups
        return tuple(number for number in groups if number not in rule.groups)


@foreign(AT_ONCE, "Project approval rules: PUT")
def of_two_changes_of_rules_one_is_lost(service: Service) -> None:
    """If two rules of a project are changed concurrently, one stays unchanged."""
    acting_on_what_was(service, service.approval_rules.rules, "PUT /projects/:id/approval_rules/:approval_rule_id")


@foreign(REFUSED, "Project approval rules: PUT")
def refused_updates_rename_the_rule(service: Service) -> None:
    """An update without its number is refused, but its name is stored."""

    @handling(service, "PUT /projects/:id/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        parameters = request.parameters
        name = parameters.optional_string("name")
        if name and not parameters.given("approvals_required"):
            rule = service.project_approval_rules.find(request.project, request.path_id("approval_rule_id"))
            service.approval_rules.rules[rule.id] = replace(rule, name=name)
        return handler(request)


# Hidden groups are removed; the groups in an update become the groups of the rule.
@foreign(SIDE_EFFECT, "Project approval rules: PUT, remove_hidden_groups")
def with_hidden_groups_the_visible_ones_go_too(service: Service) -> None:
    """If a rule has hidden groups, remove_hidden_groups removes all groups of the rule, including those just sent."""

    @instead(service.approval_rules, "groups_after")
    def _(after: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        hidden = service.approval_rules.hidden_groups(rule, caller)
        return () if hidden and wanted.remove_hidden_groups else after(rule, wanted, caller)


# -- deleting ----------------------------------------------------------------------------------------------------------


@foreign(AGAIN, "Project approval rules: DELETE")
def deleted_rules_come_back_with_the_next(service: Service) -> None:
    """A deleted rule returns when another one is created."""
    rules, gone = service.approval_rules, {}

    @instead(rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        gone[rule.home] = rule

    @instead(rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        back = gone.pop(candidate.home, None)
        if back is not None:
            rules.rules[back.id] = back
        return add(candidate)


@foreign(SIDE_EFFECT, "Project approval rules: DELETE")
def rules_are_deleted_by_their_name(service: Service) -> None:
    """Deleting a rule deletes every rule of the project with the same name."""
    rules = service.approval_rules

    @instead(rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        for one in rules.rules_of(rule.home):
            if one.name == rule.name:
                delete(one)


@foreign(NOTHING_DONE, "Project approval rules: DELETE")
def deleting_rules_of_projects_does_nothing(service: Service) -> None:
    """Deleting a rule of a project is answered, but not done."""
    undoing(service, "DELETE /projects/:id/approval_rules/:approval_rule_id")


@foreign(AT_ONCE, "Project approval rules: DELETE")
def a_rule_that_is_deleted_while_it_is_changed_comes_back(service: Service) -> None:
    """A rule that is deleted while somebody else changes it still exists, although the deletion succeeded."""
    rules = service.approval_rules.rules

    def write(seen: Any, request: Request) -> None:
        number = request.path_id("approval_rule_id")
        if number in seen:
            rules.setdefault(number, seen[number])

    overtaken(service, f"PUT {PROJECT_RULE}", f"DELETE {PROJECT_RULE}", lambda: dict(rules), write)


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(NOTHING_DONE, "Project approval rules: applies_to_all_protected_branches, protected_branch_ids")
def branches_are_ignored_while_the_flag_goes_off(service: Service) -> None:
    """Whether branches count depends on the former flag, and not on the new one."""
    rules = service.approval_rules

    @instead(rules, "branches_after")
    def _(branches_after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.applies_to_all_protected_branches:
            return rule.protected_branches
        return branches_after(rule, wanted, subject)
