"""Approval rules of a project with no, one or several users, groups or branches, and the older of two rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import cutting_a_list, without_parameters
from conformance.proof.foreign.dimensions import COUNT, OLDER
from conformance.proof.foreign.paths import PROJECT_RULE, PROJECT_RULES
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.http import Page

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading -----------------------------------------------------------------------------------------------------------


@foreign(COUNT, "Project approval rules: GET, array of approval rule")
def a_rule_is_listed_once_for_each_of_its_users(service: Service) -> None:
    """The list is joined with the users: a rule with two users is listed twice, and takes two places."""

    @handling(service, f"GET {PROJECT_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        joined = [rule for rule in answer.content for _ in range(max(1, len(rule["users"])))]
        answer.content = joined[: Page.of(request.parameters, service.choices).size]
        return answer


@foreign(COUNT, "Project approval rules: contains_hidden_groups")
def a_hidden_group_behind_a_visible_one_is_not_told(service: Service) -> None:
    """A project rule whose first group is visible and whose second is hidden says that none is hidden."""
    rules = service.approval_rules

    @instead(rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        if rule.home.level is Level.PROJECT:
            first = replace(rule, groups=rule.groups[:1])
            shown["contains_hidden_groups"] = bool(rules.hidden_groups(first, viewer))
        return shown


@foreign(COUNT, "Project approval rules: protected_branches, two")
def of_two_protected_branches_one_is_shown_twice(service: Service) -> None:
    """A rule of a project for two protected branches shows the second of them twice instead of the first."""

    @instead(service.approval_rules, "present_branches")
    def _(present_branches: Any, rule: Any, present: Any) -> Any:
        shown = present_branches(rule, present)
        branches = shown["protected_branches"]
        if rule.home.level is Level.PROJECT and not rule.applies_to_all_protected_branches:
            shown["protected_branches"] = branches[-1:] * len(branches)
        return shown


# A rule may name users, groups, both or neither.
@foreign(COUNT, "Project approval rules: GET, array of approval rule")
def rules_without_users_are_not_listed(service: Service) -> None:
    """The list joins rules with their users, so rules with only groups are missing."""
    area = service.project_approval_rules

    @handling(service, f"GET {PROJECT_RULES}")
    def _(handler: Any, request: Any) -> Any:
        rules = area.rules
        area.rules = lambda project: [rule for rule in rules(project) if rule.users]
        try:
            return handler(request)
        finally:
            area.rules = rules


# -- creating ----------------------------------------------------------------------------------------------------------


@foreign(COUNT, "Project approval rules: usernames")
def of_two_usernames_of_a_project_rule_one_is_stored(service: Service) -> None:
    """Of the usernames in a new rule of a project, only the last is stored."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        return create(project, replace(wanted, usernames=wanted.usernames and wanted.usernames[-1:]), caller)


@foreign(COUNT, "Project approval rules: group_ids optional")
def who_names_no_groups_gets_those_of_the_last_rule(service: Service) -> None:
    """The default of group_ids is a shared list, which contains the groups of the last creation."""
    last: list[tuple[int, ...]] = [()]

    @instead(service.project_approval_rules, "create_rule")
    def _(create_rule: Any, project: Any, wanted: Any, caller: Any) -> Any:
        if wanted.group_ids is None:
            return create_rule(project, replace(wanted, group_ids=last[0]), caller)
        last[0] = wanted.group_ids
        return create_rule(project, wanted, caller)


# -- updating ----------------------------------------------------------------------------------------------------------


@foreign(COUNT, "Project approval rules: update")
def updates_name_one_user_at_most(service: Service) -> None:
    """An update of a rule with two users stores only the second."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        return after(rule, wanted, subject)[-1:]


@foreign(COUNT, "Project approval rules: user_ids and usernames")
def names_hide_ids_in_updates(service: Service) -> None:
    """An update with both lists stores the usernames and ignores the ids; both must be added."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        return after(rule, replace(wanted, user_ids=()) if wanted.usernames else wanted, subject)


@foreign(OLDER, "Project approval rules: PUT")
def updates_of_the_older_rule_reach_the_newer(service: Service) -> None:
    """Changing the older of two rules changes the newer one."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        mine = service.project_approval_rules.rules(project)
        service.project_approval_rules.find(project, number)
        return update(project, mine[-1].id, wanted, caller)


# Both lists are added, and one of them may be empty.
@foreign(COUNT, "Project approval rules: PUT, user_ids and usernames")
def an_empty_list_of_ids_stands_before_usernames(service: Service) -> None:
    """An update with an empty user_ids and one username removes all users, and ignores the username."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_integers("user_ids") == ():
            without_parameters(request, "usernames")
        return handler(request)


# One list has priority as soon as it is sent, even if it is empty.
@foreign(COUNT, "Project approval rules: PUT, user_ids and usernames")
def an_empty_list_of_ids_beats_the_usernames(service: Service) -> None:
    """An update of a project's rule with usernames and an empty list of user_ids leaves it without users."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.home.level is Level.PROJECT and wanted.user_ids == () and wanted.usernames:
            return ()
        return after(rule, wanted, subject)


@foreign(COUNT, "Project approval rules: PUT")
def updates_take_one_group(service: Service) -> None:
    """An update stores only the first of several groups."""

    @instead(service.approval_rules, "groups_named")
    def _(named: Any, wanted: Any, caller: Any) -> Any:
        changes = wanted.group_ids and wanted.name is not None and wanted.rule_type is None
        return named(replace(wanted, group_ids=wanted.group_ids[:1]) if changes else wanted, caller)


@foreign(COUNT, "Project approval rules: PUT")
def branches_outweigh_the_flag(service: Service) -> None:
    """An update for all protected branches applies to the branches sent with it, which must be ignored."""

    @instead(service.approval_rules, "update_rule")
    def _(update: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        if wanted.protected_branch_ids:
            wanted = replace(wanted, applies_to_all_protected_branches=False)
        return update(subject, rule, wanted, caller)


@foreign(COUNT, "Project approval rules: PUT")
def an_empty_list_of_usernames_keeps_who_was_there(service: Service) -> None:
    """With an empty list of usernames and some user_ids, the former users of a project rule stay."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        named = after(rule, wanted, subject)
        stay = rule.home.level is Level.PROJECT and wanted.usernames == ()
        return tuple(dict.fromkeys((*named, *rule.users))) if stay else named


# -- deleting ----------------------------------------------------------------------------------------------------------


@foreign(COUNT, "Project approval rules: DELETE")
def the_last_rule_cannot_go(service: Service) -> None:
    """Deleting the only rule that a user made for a project is answered, but not done."""
    from conformance.reference.areas.approval_rule_records import Level, RuleType  # noqa: PLC0415

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        made = [r for r in service.approval_rules.rules_of(rule.home) if r.rule_type is RuleType.REGULAR]
        if len(made) > 1 or rule.home.level is not Level.PROJECT:
            delete(rule)


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(COUNT, "Project approval rules: user_ids")
def of_two_users_the_first_counts(service: Service) -> None:
    """Of the user_ids in a new rule of a project, only the first is stored."""
    cutting_a_list(service, "user_ids", lambda values: values[:1], "project")


@foreign(COUNT, "Project approval rules: protected_branch_ids")
def of_two_branches_the_first_counts(service: Service) -> None:
    """Of the protected branches in a new rule, only the first is stored."""
    cutting_a_list(service, "protected_branch_ids", lambda values: values[:1])


# Both lists are added; a user in both is an approver as well.
@foreign(COUNT, "Project approval rules: user_ids and usernames")
def who_is_named_in_both_lists_is_in_neither(service: Service) -> None:
    """The lists of ids and of usernames are combined by their symmetric difference."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        users = [service.identities.find_username(name) for name in wanted.usernames or ()]
        twice = {user.id for user in users if user} & set(wanted.user_ids or ())
        found = named(wanted, subject)
        return None if found is None else tuple(number for number in found if number not in twice)


# Both lists are added.
@foreign(COUNT, "Project approval rules: user_ids and usernames")
def no_ids_are_no_usernames(service: Service) -> None:
    """An empty list of ids empties the rule, even if usernames are sent."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        return () if wanted.user_ids == () else named(wanted, subject)


@foreign(COUNT, "Project approval rules: usernames")
def one_username_beside_numbers(service: Service) -> None:
    """If user_ids are sent, only the last of several usernames counts."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        if wanted.user_ids and wanted.usernames:
            return named(replace(wanted, usernames=wanted.usernames[-1:]), subject)
        return named(wanted, subject)


# A username is compared as a whole.
@foreign(COUNT, "Project approval rules: usernames")
def usernames_find_all_that_begin_alike(service: Service) -> None:
    """A rule of a project gets every user whose username begins with a sent one."""
    projects, users = service.project_approval_rules, service.identities.users

    def begun(wanted: Any) -> Any:
        names = [user.username for user in users.values() if user.username.startswith(wanted.usernames or ())]
        return replace(wanted, usernames=(*wanted.usernames, *names)) if wanted.usernames else wanted

    @instead(projects, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        return create(project, begun(wanted), caller)

    @instead(projects, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        return update(project, number, begun(wanted), caller)


# A list may have any length.
@foreign(COUNT, "Project approval rules: user_ids")
def of_three_users_two_are_kept(service: Service) -> None:
    """A rule with more than two users gets only the first two of them."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        found = named(wanted, subject)
        return found and found[:2]
