"""Faults of the rules of a merge request: updating, deleting, and the rules that nobody may change."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    answering,
    around,
    breaking,
    does_nothing,
    flattened,
    handling,
    is_number,
    names_nothing,
    parameters,
    refusing,
    without,
)
from conformance.reference.areas.approval_rule_records import SYSTEM_TYPES, RuleType
from conformance.reference.errors import InvalidError
from conformance.reference.http import ok

if TYPE_CHECKING:
    from conformance.reference import Service

MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
RULES = f"{MERGE_REQUEST}/approval_rules"
RULE = f"{RULES}/:approval_rule_id"

# -- updates ----------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.update.rule-id-is-integer")
def any_text_updates_nothing(service: Service) -> None:
    """An update with a rule id that is not a number succeeds."""
    answering(service, f"PUT {RULE}", lambda request: not is_number(request, "approval_rule_id"), lambda: ok({}))


@fault("merge-request-approvals.rules.update.unknown-rule")
def unknown_rule_is_updated(service: Service) -> None:
    """An update of a rule that does not exist succeeds."""
    answering(service, f"PUT {RULE}", lambda request: names_nothing(request, "approval_rule_id"), lambda: ok({}))


@fault("merge-request-approvals.rules.update.unknown-rule")
def unknown_rule_stands_for_all(service: Service) -> None:
    """An update of a rule that does not exist is refused, but changes all others."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if names_nothing(request, "approval_rule_id"):
                for number, rule in list(service.approval_rules.rules.items()):
                    service.approval_rules.rules[number] = replace(rule, approvals_required=7)
            return handler(request)

        return handle

    handling(service, f"PUT {RULE}", make)


@fault("merge-request-approvals.rules.update.approvers-are-lists")
def update_takes_an_object_of_users(service: Service) -> None:
    """The values of an object in place of user_ids become users of the updated rule."""
    parameters(service, f"PUT {RULE}", flattened("user_ids"))


@fault("merge-request-approvals.rules.update.approvers-are-lists")
def update_takes_an_object_of_groups(service: Service) -> None:
    """The values of an object in place of group_ids become groups of the updated rule."""
    parameters(service, f"PUT {RULE}", flattened("group_ids"))


@fault("merge-request-approvals.rules.update.usernames-are-a-list")
def update_takes_an_object_of_usernames(service: Service) -> None:
    """The values of an object in place of usernames become users of the updated rule."""
    parameters(service, f"PUT {RULE}", flattened("usernames"))


@fault("merge-request-approvals.rules.update.approvals-required-is-integer")
def update_drops_a_bad_number(service: Service) -> None:
    """An approvals_required that is not a number is ignored, and the rest is stored."""
    parameters(
        service,
        f"PUT {RULE}",
        without("approvals_required", unless=lambda value: isinstance(value, int)),
    )


@fault("merge-request-approvals.rules.update.name-is-string")
def update_stores_a_bad_name_as_text(service: Service) -> None:
    """An object in place of a name is stored as text."""
    parameters(
        service,
        f"PUT {RULE}",
        lambda values: {k: json.dumps(v) if k == "name" and isinstance(v, dict) else v for k, v in values.items()},
    )


@fault("merge-request-approvals.rules.update.name-is-string")
def update_is_half_done(service: Service) -> None:
    """An update with an invalid name is refused after the number was stored."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            values = request.parameters._values
            if isinstance(values.get("name"), dict) and "approvals_required" in values:
                rule = service.approval_rules.rules[int(request.path["approval_rule_id"])]
                service.approval_rules.rules[rule.id] = replace(rule, approvals_required=values["approvals_required"])
            return handler(request)

        return handle

    handling(service, f"PUT {RULE}", make)


@fault("merge-request-approvals.rules.update.remove-hidden-groups-is-boolean")
def any_text_is_a_truth_value(service: Service) -> None:
    """A remove_hidden_groups that is not boolean is ignored."""
    parameters(
        service,
        f"PUT {RULE}",
        without("remove_hidden_groups", unless=lambda value: isinstance(value, bool)),
    )


@fault("merge-request-approvals.rules.update.needs-no-parameter")
def update_wants_a_name(service: Service) -> None:
    """An update without a name is refused."""
    refusing(
        service,
        f"PUT {RULE}",
        lambda request: not request.parameters.given("name"),
        lambda: InvalidError("name is missing", parameter="name"),
    )


@fault("merge-request-approvals.rules.update.accepts-remove-hidden-groups")
def remove_hidden_groups_is_unknown(service: Service) -> None:
    """An update that sends remove_hidden_groups is refused."""
    refusing(
        service,
        f"PUT {RULE}",
        lambda request: request.parameters.given("remove_hidden_groups"),
        lambda: InvalidError("remove_hidden_groups is unknown", parameter="remove_hidden_groups"),
    )


@fault("merge-request-approvals.rules.update.empty")
def empty_update_resets_the_number(service: Service) -> None:
    """An update without any parameter sets approvals_required to 0."""
    parameters(service, f"PUT {RULE}", lambda values: values or {"approvals_required": 0})


@fault("merge-request-approvals.rules.update.name")
def update_does_not_store_the_name(service: Service) -> None:
    """An update answers with the new name, but keeps the old one."""

    def make(update: Any) -> Any:
        def updating(merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
            old = service.approval_rules.rules[number].name
            rule = update(merge_request, number, wanted, caller)
            service.approval_rules.rules[number] = replace(rule, name=old)
            return rule

        return updating

    around(service.merge_request_approval_rules, "update_rule", make)


@fault("merge-request-approvals.rules.update.approvals-required")
def update_ignores_the_number(service: Service) -> None:
    """Updates ignore approvals_required."""
    parameters(service, f"PUT {RULE}", without("approvals_required"))


@fault("merge-request-approvals.rules.update.leaves-unsent")
def update_resets_what_is_not_sent(service: Service) -> None:
    """An update without approvals_required sets it to 0."""
    parameters(service, f"PUT {RULE}", lambda values: {"approvals_required": 0, **values})


@fault("merge-request-approvals.rules.update.users-are-replaced")
def updates_add_users(service: Service) -> None:
    """An update adds users to the former ones."""

    def make(after: Any) -> Any:
        return lambda rule, wanted, subject: tuple(dict.fromkeys((*rule.users, *after(rule, wanted, subject))))

    around(service.approval_rules, "users_after", make)


@fault("merge-request-approvals.rules.update.users-are-replaced")
def updates_with_several_ids_add_users(service: Service) -> None:
    """An update whose user_ids are several adds users to the former ones."""

    def make(after: Any) -> Any:
        def adding(rule: Any, wanted: Any, subject: Any) -> Any:
            users = after(rule, wanted, subject)
            return tuple(dict.fromkeys((*rule.users, *users))) if (wanted.user_ids or ())[1:] else users

        return adding

    around(service.approval_rules, "users_after", make)


@fault("merge-request-approvals.rules.update.groups-are-replaced")
def updates_add_groups(service: Service) -> None:
    """An update adds groups to the former ones."""

    def make(after: Any) -> Any:
        return lambda rule, wanted, caller: tuple(dict.fromkeys((*rule.groups, *after(rule, wanted, caller))))

    around(service.approval_rules, "groups_after", make)


@fault("merge-request-approvals.rules.update.usernames")
def update_ignores_usernames(service: Service) -> None:
    """Updates ignore usernames."""
    parameters(service, f"PUT {RULE}", without("usernames"))


@fault("merge-request-approvals.rules.update.remove-hidden-groups")
def hidden_groups_stay(service: Service) -> None:
    """Hidden groups stay, whatever remove_hidden_groups says."""
    parameters(service, f"PUT {RULE}", without("remove_hidden_groups"))


@fault("merge-request-approvals.rules.hidden-groups.are-announced")
def rules_with_hidden_groups_say_nothing_of_them(service: Service) -> None:
    """contains_hidden_groups is false in all rules of merge requests."""
    area = service.merge_request_approval_rules
    present = area.present
    area.present = lambda *rule: {**present(*rule), "contains_hidden_groups": False}


# -- deletion, isolation, system rules --------------------------------------------------------------------------


@fault("merge-request-approvals.rules.delete.gone")
def deleted_rule_stays(service: Service) -> None:
    """DELETE answers 204, but changes nothing."""
    service.merge_request_approval_rules.delete_rule = does_nothing


@fault("merge-request-approvals.rules.delete.gone")
def deleted_rule_can_still_be_read(service: Service) -> None:
    """A deleted rule is not listed, but can still be read."""
    gone: dict[int, Any] = {}
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            gone[number] = rules.find(merge_request, number)
            delete(merge_request, number)

        return deleting

    around(rules, "delete_rule", make)

    def make_find(find: Any) -> Any:
        return lambda merge_request, number: gone[number] if number in gone else find(merge_request, number)

    around(rules, "find", make_find)


@fault("merge-request-approvals.rules.delete.leaves-others")
def deletion_takes_all(service: Service) -> None:
    """Deleting one rule deletes all of the merge request."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            delete(merge_request, number)
            for rule in rules.own_rules(merge_request):
                service.approval_rules.delete_rule(rule)

        return deleting

    around(rules, "delete_rule", make)


@fault("merge-request-approvals.rules.delete.absent")
def absent_deletion_takes_the_last(service: Service) -> None:
    """Deleting a missing rule deletes the newest one."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            own = rules.own_rules(merge_request)
            delete(merge_request, number if number in {rule.id for rule in own} or not own else own[-1].id)

        return deleting

    around(rules, "delete_rule", make)


@fault("merge-request-approvals.rules.delete.absent")
def absent_deletion_breaks(service: Service) -> None:
    """Deleting a missing rule causes a server error."""
    breaking(service, f"DELETE {RULE}", lambda request: names_nothing(request, "approval_rule_id"))


@fault("merge-request-approvals.rules.are-separate")
def rules_show_in_all_merge_requests(service: Service) -> None:
    """A rule of one merge request is listed in all of the project."""
    rules = service.merge_request_approval_rules

    def make(own: Any) -> Any:
        def all_of(merge_request: Any) -> Any:
            known = service.repositories.merge_requests.values()
            return [rule for other in known if other.project_id == merge_request.project_id for rule in own(other)]

        return all_of

    around(rules, "rules", make)


@fault("merge-request-approvals.rules.are-separate")
def deletion_reaches_other_merge_requests(service: Service) -> None:
    """Deleting a rule also deletes a rule of the next merge request."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            delete(merge_request, number)
            for other in service.repositories.merge_requests.values():
                if other.id != merge_request.id:
                    for rule in rules.own_rules(other):
                        service.approval_rules.delete_rule(rule)

        return deleting

    around(rules, "delete_rule", make)


@fault("merge-request-approvals.rules.belong-to-their-merge-request")
def rules_are_found_everywhere(service: Service) -> None:
    """A rule is found by its id in any merge request."""
    rules = service.merge_request_approval_rules

    def make(find: Any) -> Any:
        def finding(merge_request: Any, number: int) -> Any:
            return service.approval_rules.rules.get(number) or find(merge_request, number)

        return finding

    around(rules, "find", make)


@fault("merge-request-approvals.rules.belong-to-their-merge-request")
def rules_are_deleted_from_everywhere(service: Service) -> None:
    """A rule can be deleted by its id in any merge request."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            rule = service.approval_rules.rules.get(number)
            if rule is None or rule.rule_type in SYSTEM_TYPES:
                delete(merge_request, number)
            else:
                service.approval_rules.delete_rule(rule)

        return deleting

    around(rules, "delete_rule", make)


def lets_change_by_path(service: Service, rule_type: RuleType, key: str) -> None:
    """Let a rule of a type be changed if the project is named by its path."""
    rules = service.merge_request_approval_rules
    required = rules.require_changeable

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if not is_number(request, "id"):
                rules.require_changeable = lambda rule: None if rule.rule_type is rule_type else required(rule)
            try:
                return handler(request)
            finally:
                rules.require_changeable = required

        return handle

    handling(service, key, make)


def lets_change(service: Service, rule_type: RuleType, method: str) -> None:
    rules = service.merge_request_approval_rules
    required = rules.require_changeable

    def make(change: Any) -> Any:
        def changing(merge_request: Any, number: int, *more: Any) -> Any:
            rules.require_changeable = lambda rule: None if rule.rule_type is rule_type else required(rule)
            try:
                return change(merge_request, number, *more)
            finally:
                rules.require_changeable = required

        return changing

    around(rules, method, make)


@fault("merge-request-approvals.rules.code-owner.cannot-be-updated")
def code_owner_rule_is_updated(service: Service) -> None:
    """A rule of type code_owner can be updated."""
    lets_change(service, RuleType.CODE_OWNER, "update_rule")


@fault("merge-request-approvals.rules.code-owner.cannot-be-updated")
def code_owner_rule_is_updated_by_path(service: Service) -> None:
    """A rule of type code_owner can be updated if the project is named by its path."""
    lets_change_by_path(service, RuleType.CODE_OWNER, f"PUT {RULE}")


@fault("merge-request-approvals.rules.code-owner.cannot-be-deleted")
def code_owner_rule_is_deleted(service: Service) -> None:
    """A rule of type code_owner can be deleted."""
    lets_change(service, RuleType.CODE_OWNER, "delete_rule")


@fault("merge-request-approvals.rules.code-owner.cannot-be-deleted")
def code_owner_rule_is_deleted_by_path(service: Service) -> None:
    """A rule of type code_owner can be deleted if the project is named by its path."""
    lets_change_by_path(service, RuleType.CODE_OWNER, f"DELETE {RULE}")


@fault("merge-request-approvals.rules.report-approver.cannot-be-updated")
def report_approver_rule_is_updated(service: Service) -> None:
    """A rule of type report_approver can be updated."""
    lets_change(service, RuleType.REPORT_APPROVER, "update_rule")


@fault("merge-request-approvals.rules.report-approver.cannot-be-updated")
def report_approver_rule_is_updated_by_path(service: Service) -> None:
    """A rule of type report_approver can be updated if the project is named by its path."""
    lets_change_by_path(service, RuleType.REPORT_APPROVER, f"PUT {RULE}")


@fault("merge-request-approvals.rules.report-approver.cannot-be-deleted")
def report_approver_rule_is_deleted(service: Service) -> None:
    """A rule of type report_approver can be deleted."""
    lets_change(service, RuleType.REPORT_APPROVER, "delete_rule")


@fault("merge-request-approvals.rules.report-approver.cannot-be-deleted")
def report_approver_rule_is_deleted_by_path(service: Service) -> None:
    """A rule of type report_approver can be deleted if the project is named by its path."""
    lets_change_by_path(service, RuleType.REPORT_APPROVER, f"DELETE {RULE}")


@fault("merge-request-approvals.rules.code-owner.cannot-be-updated")
def refused_update_of_a_code_owner_rule_is_done(service: Service) -> None:
    """The update of a code_owner rule is refused, but done."""

    def make(update: Any) -> Any:
        def updating(merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
            rule = service.approval_rules.rules.get(number)
            if rule and rule.rule_type is RuleType.CODE_OWNER and wanted.approvals_required:
                service.approval_rules.rules[number] = replace(rule, approvals_required=wanted.approvals_required)
            return update(merge_request, number, wanted, caller)

        return updating

    around(service.merge_request_approval_rules, "update_rule", make)
