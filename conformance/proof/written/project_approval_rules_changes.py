"""Faults of the approval rules of projects: changing, deleting, other projects, and roles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    afterwards,
    altering,
    around,
    bodies,
    breaking,
    does_nothing,
    done_and_refused,
    flattened,
    refusing,
    sent,
    taken_for,
    told_otherwise,
    with_body,
)
from conformance.proof.written.approval_rules import (
    after_a_change,
    any_text_is_the_last,
    created_everywhere,
    names_twice,
    others_of,
    spread_to_others,
    stored,
    unknown_is_the_usual,
    upserting,
)
from conformance.proof.written.project_approval_rules import FLAG, RULE, is_truth
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.errors import RejectedError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service


def changed_to(service: Service, twist: Callable[[Any], Any]) -> None:
    """Replace every change of a project's rule by one with other values."""
    told_otherwise(service.project_approval_rules, "update_rule", 2, twist)


def after_change(service: Service, name: str, twist: Callable[[Any, Any], Any]) -> None:
    """Alter the result of a change of a project's rule: `twist` gets the result, and the former rule."""
    after_a_change(service, name, Level.PROJECT, twist)


# -- change ------------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.update.stored")
def change_is_answered_and_not_kept(service: Service) -> None:
    """PUT answers with the changed rule, but keeps the former one."""

    def make(update: Any) -> Any:
        def forgetful(project: Any, number: int, wanted: Any, caller: Any) -> Any:
            before = service.project_approval_rules.find(project, number)
            changed = update(project, number, wanted, caller)
            stored(service)[number] = before
            return changed

        return forgetful

    around(service.project_approval_rules, "update_rule", make)


@fault("project-approval-rules.update.values")
def answer_to_change_is_the_former_rule(service: Service) -> None:
    """PUT stores the change, but answers with the former rule."""

    def make(update: Any) -> Any:
        def late(project: Any, number: int, wanted: Any, caller: Any) -> Any:
            before = service.project_approval_rules.find(project, number)
            update(project, number, wanted, caller)
            return before

        return late

    around(service.project_approval_rules, "update_rule", make)


@fault("project-approval-rules.update.answers-with-rule")
def answer_to_change_has_another_id(service: Service) -> None:
    """PUT answers with another id of the rule."""
    afterwards(service.project_approval_rules, "update_rule", lambda rule, *_: replace(rule, id=rule.id + 1000))


@fault("project-approval-rules.update.leaves-other-rules")
def change_reaches_the_others(service: Service) -> None:
    """A change sets its number in every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "update_rule", "approvals_required")


@fault("project-approval-rules.update.leaves-other-rules")
def change_gives_the_others_its_users(service: Service) -> None:
    """The users of a changed rule become those of every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "update_rule", "users")


@fault("project-approval-rules.update.leaves-other-rules")
def change_gives_the_others_its_groups(service: Service) -> None:
    """The groups of a changed rule become those of every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "update_rule", "groups")


@fault("project-approval-rules.update.leaves-other-rules")
def change_gives_the_others_its_branches(service: Service) -> None:
    """The protected branches of a changed rule become those of every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "update_rule", "protected_branches")


@fault("project-approval-rules.update.applies-to-all-protected-branches")
def change_gives_the_others_its_flag(service: Service) -> None:
    """Whether a changed rule applies to all protected branches is so for every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "update_rule", "applies_to_all_protected_branches")


@fault("project-approval-rules.update.user-ids-and-usernames")
def change_by_username_gives_the_others_its_users(service: Service) -> None:
    """The users of a rule that is changed by usernames become those of every other rule of the project."""

    def spread(rule: Any, _: Any, __: Any, wanted: Any, *___: Any) -> None:
        for other in others_of(service, rule) if wanted.usernames else ():
            stored(service)[other.id] = replace(other, users=rule.users)

    afterwards(service.project_approval_rules, "update_rule", spread)


@fault("project-approval-rules.update.user-ids")
def an_approver_named_twice_breaks_a_change(service: Service) -> None:
    """A change that names an approver twice causes a server error."""
    breaking(service, f"PUT {RULE}", names_twice)


@fault("project-approval-rules.create.leaves-other-rules")
def new_rule_gives_the_others_its_users(service: Service) -> None:
    """The users of a new rule become those of every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "create_rule", "users")


@fault("project-approval-rules.create.leaves-other-rules")
def new_rule_gives_the_others_its_branches(service: Service) -> None:
    """The protected branches of a new rule become those of every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "create_rule", "protected_branches")


@fault("merge-request-approvals.leaves-the-rest")
def change_in_a_merge_request_gives_the_others_its_users(service: Service) -> None:
    """The users of a changed rule become those of every other rule of the merge request."""
    spread_to_others(service, service.merge_request_approval_rules, "update_rule", "users")


@fault("merge-request-approvals.leaves-the-rest")
def change_in_a_merge_request_gives_the_others_its_groups(service: Service) -> None:
    """The groups of a changed rule become those of every other rule of the merge request."""
    spread_to_others(service, service.merge_request_approval_rules, "update_rule", "groups")


@fault("merge-request-approvals.leaves-the-rest")
def new_rule_in_a_merge_request_gives_the_others_its_users(service: Service) -> None:
    """The users of a new rule become those of every other rule of the merge request."""
    spread_to_others(service, service.merge_request_approval_rules, "create_rule", "users")


@fault("project-approval-rules.update.unknown-rule")
def unknown_rule_is_created(service: Service) -> None:
    """A change of a missing rule creates one."""
    upserting(service, service.project_approval_rules)


@fault("project-approval-rules.update.rule-id-is-integer")
def any_text_changes_a_rule(service: Service) -> None:
    """A change of a rule whose id is not a number changes the last one."""
    any_text_is_the_last(service, f"PUT {RULE}", lambda request: service.project_approval_rules.rules(request.project))


@fault("project-approval-rules.update.user-ids")
def changed_users_are_dropped(service: Service) -> None:
    """A change removes users, but adds none."""
    after_change(service, "users_after", lambda _, __: ())


@fault("project-approval-rules.update.user-ids.removes-others")
def former_users_stay(service: Service) -> None:
    """A change adds users, but removes none."""
    after_change(service, "users_after", lambda users, rule: tuple(dict.fromkeys((*rule.users, *users))))


@fault("project-approval-rules.update.user-ids.removes-others")
def several_users_join_the_former_ones(service: Service) -> None:
    """A change that names several users removes none; one that names a single user does."""
    after_change(
        service, "users_after", lambda users, rule: tuple(dict.fromkeys((*rule.users, *users))) if users[1:] else None
    )


@fault("project-approval-rules.update.group-ids")
def changed_groups_are_dropped(service: Service) -> None:
    """A change removes groups, but adds none."""
    after_change(service, "groups_after", lambda groups, rule: tuple(n for n in groups if n in rule.groups))


@fault("project-approval-rules.update.group-ids.removes-others")
def former_groups_stay(service: Service) -> None:
    """A change adds groups, but removes none."""
    after_change(service, "groups_after", lambda groups, rule: tuple(dict.fromkeys((*rule.groups, *groups))))


@fault("project-approval-rules.update.group-ids.removes-others")
def several_groups_join_the_former_ones(service: Service) -> None:
    """A change that names several groups removes none; one that names a single group does."""
    after_change(
        service, "groups_after", lambda found, rule: tuple(dict.fromkeys((*rule.groups, *found))) if found[1:] else None
    )


@fault("project-approval-rules.update.protected-branch-ids")
def former_branches_stay(service: Service) -> None:
    """A change adds branches, but removes none."""
    after_change(
        service, "branches_after", lambda found, rule: tuple(dict.fromkeys((*rule.protected_branches, *found)))
    )


@fault("project-approval-rules.update.usernames")
def usernames_of_a_change_are_dropped(service: Service) -> None:
    """A change ignores usernames."""
    changed_to(service, lambda wanted: replace(wanted, usernames=None))


@fault("project-approval-rules.update.user-ids-and-usernames")
def usernames_outweigh_numbers(service: Service) -> None:
    """A change with both lists of users uses only the usernames."""
    changed_to(service, lambda wanted: replace(wanted, user_ids=None) if wanted.usernames else wanted)


@fault("project-approval-rules.update.applies-to-all-protected-branches")
def flag_cannot_be_taken_back(service: Service) -> None:
    """A change can switch the flag on, but never off."""

    def make(applies: Any) -> Any:
        return lambda wanted, home, *, otherwise: applies(wanted, home, otherwise=otherwise) or otherwise

    around(service.approval_rules, "applies_everywhere", make)


@fault("project-approval-rules.update.applies-to-all-protected-branches.over-branch-ids")
def changed_branches_outweigh_the_flag(service: Service) -> None:
    """A change with flag and branches uses only the branches."""
    changed_to(
        service,
        lambda wanted: (
            replace(wanted, applies_to_all_protected_branches=False) if wanted.protected_branch_ids else wanted
        ),
    )


@fault("project-approval-rules.update.hidden-groups.stay")
def hidden_groups_always_go(service: Service) -> None:
    """A change removes groups that the caller cannot see."""
    changed_to(service, lambda wanted: replace(wanted, remove_hidden_groups=True))


@fault("project-approval-rules.update.hidden-groups.removed")
def hidden_groups_never_go(service: Service) -> None:
    """A change keeps groups that the caller cannot see, even with remove_hidden_groups."""
    changed_to(service, lambda wanted: replace(wanted, remove_hidden_groups=False))


@fault("project-approval-rules.update.hidden-groups.stay-when-told")
def saying_no_removes_hidden_groups(service: Service) -> None:
    """A change with remove_hidden_groups, even false, removes them."""
    bodies(service, f"PUT {RULE}", taken_for("remove_hidden_groups", instead=True, unless=lambda _: False))


@fault("project-approval-rules.update.remove-hidden-groups.without-any")
def nothing_hidden_is_refused(service: Service) -> None:
    """A change with remove_hidden_groups for a rule without hidden groups is refused."""
    refusing(
        service,
        f"PUT {RULE}",
        lambda request: sent(request).get("remove_hidden_groups") is False,
        lambda: RejectedError("has no hidden groups", parameter="remove_hidden_groups"),
    )


@fault("project-approval-rules.update.approvers-are-lists")
def object_adds_users(service: Service) -> None:
    """A change reads the values of an object in user_ids as users."""
    bodies(service, f"PUT {RULE}", flattened("user_ids"))


@fault("project-approval-rules.update.usernames-are-a-list")
def object_adds_usernames(service: Service) -> None:
    """A change reads the values of an object in usernames as users."""
    bodies(service, f"PUT {RULE}", flattened("usernames"))


@fault("project-approval-rules.update.protected-branches-are-a-list")
def object_adds_branches(service: Service) -> None:
    """A change reads the values of an object in protected_branch_ids as branches."""
    bodies(service, f"PUT {RULE}", flattened("protected_branch_ids"))


@fault("project-approval-rules.update.applies-to-all-protected-branches-is-boolean")
def change_takes_anything_for_the_flag(service: Service) -> None:
    """A change reads any value of the flag as true."""
    bodies(service, f"PUT {RULE}", taken_for(FLAG, instead=True, unless=is_truth))


@fault("project-approval-rules.update.remove-hidden-groups-is-boolean")
def change_takes_anything_for_removal(service: Service) -> None:
    """A change reads any value of remove_hidden_groups as true."""
    bodies(service, f"PUT {RULE}", taken_for("remove_hidden_groups", instead=True, unless=is_truth))


# -- deletion ----------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.delete.gone")
def deleted_rule_stays(service: Service) -> None:
    """DELETE answers 204, but changes nothing."""
    service.project_approval_rules.delete_rule = does_nothing


@fault("project-approval-rules.delete.unlisted")
def deleted_rule_stays_in_the_list(service: Service) -> None:
    """A deleted rule cannot be read, but is still listed."""
    area = service.project_approval_rules
    gone: dict[int, list[Any]] = {}

    def make(delete: Any) -> Any:
        def deleting(project: Any, number: int) -> None:
            rule = area.find(project, number)
            delete(project, number)
            gone.setdefault(project.id, []).append(rule)

        return deleting

    around(area, "delete_rule", make)
    around(area, "rules", lambda rules: lambda project: [*rules(project), *gone.get(project.id, ())])


@fault("project-approval-rules.delete.leaves-other-rules")
def deletion_takes_another_rule(service: Service) -> None:
    """DELETE also removes the last of the other rules."""
    area = service.project_approval_rules

    def take(_: None, project: Any, __: int) -> None:
        for last in area.rules(project)[-1:]:
            stored(service).pop(last.id)

    afterwards(area, "delete_rule", take)


@fault("project-approval-rules.delete.unknown-rule")
def unknown_deletion_takes_the_last_rule(service: Service) -> None:
    """Deleting a missing rule deletes the last one."""
    area = service.project_approval_rules

    def make(delete: Any) -> Any:
        def deleting(project: Any, number: int) -> None:
            delete(project, number if number in stored(service) else area.rules(project)[-1].id)

        return deleting

    around(area, "delete_rule", make)


@fault("project-approval-rules.delete.rule-id-is-integer")
def any_text_deletes_a_rule(service: Service) -> None:
    """Deleting a rule whose id is not a number deletes the last one."""
    any_text_is_the_last(
        service, f"DELETE {RULE}", lambda request: service.project_approval_rules.rules(request.project)
    )


@fault("project-approval-rules.delete.succeeds")
def deletion_is_refused(service: Service) -> None:
    """DELETE deletes, but answers 403."""
    done_and_refused(service, f"DELETE {RULE}", lambda _: True)


@fault("project-approval-rules.delete.no-bytes-under-204")
def deleted_rule_is_answered_with_bytes(service: Service) -> None:
    """204 has a body."""
    altering(service, f"DELETE {RULE}", with_body)


# -- other projects ----------------------------------------------------------------------------------------------------


def found_everywhere_for(service: Service, method: str) -> None:
    """Find rules by id in any project during a call of a method of the rules of projects."""
    rules = service.approval_rules
    find = rules.find

    def make(act: Any) -> Any:
        def acting(*arguments: Any) -> Any:
            rules.find = lambda home, number: rules.rules.get(number) or find(home, number)
            try:
                return act(*arguments)
            finally:
                rules.find = find

        return acting

    around(service.project_approval_rules, method, make)


@fault("project-approval-rules.read.rule-of-another-project")
def rule_of_another_project_is_read(service: Service) -> None:
    """A rule can be read through the path of any project."""
    found_everywhere_for(service, "find")


@fault("project-approval-rules.update.rule-of-another-project")
def rule_of_another_project_is_changed(service: Service) -> None:
    """A rule can be changed through the path of any project."""
    found_everywhere_for(service, "update_rule")


@fault("project-approval-rules.delete.rule-of-another-project")
def rule_of_another_project_is_deleted(service: Service) -> None:
    """A rule can be deleted through the path of any project."""
    found_everywhere_for(service, "delete_rule")


@fault("project-approval-rules.projects-are-separate")
def creation_reaches_the_sibling(service: Service) -> None:
    """A rule that is created in one project is also created in every other one."""
    created_everywhere(service, service.project_approval_rules, lambda: list(service.identities.projects.values()))


@fault("project-approval-rules.projects-are-separate")
def deletion_reaches_the_sibling(service: Service) -> None:
    """A deletion also removes the oldest rule of every other project."""
    area = service.project_approval_rules

    def spread(_: Any, project: Any, *__: Any) -> None:
        for other in list(service.identities.projects.values()):
            for oldest in area.rules(other)[:1] if other.id != project.id else ():
                stored(service).pop(oldest.id)

    afterwards(area, "delete_rule", spread)


@fault("project-approval-rules.unknown-project")
def rules_of_an_unknown_project_are_those_of_a_known_one(service: Service) -> None:
    """An existing project is used in place of a missing one."""
    unknown_is_the_usual(service, "find_project", "projects", "project")


@fault("project-approval-rules.authorization.maintainer-may-change")
def maintainers_may_only_read(service: Service) -> None:
    """Creating, changing and deleting require the owner role."""
    area = service.project_approval_rules
    area.require_writer = lambda caller, project: service.access.require_role(caller, project, Role.OWNER)
