"""Faults of the approval rules of groups: changes over time, isolation, and invalid input that is accepted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    afterwards,
    altering,
    answering,
    around,
    bodies,
    breaking,
    does_nothing,
    done_and_refused,
    flattened,
    handling,
    parameters,
    refusing,
    taken_for,
    told_otherwise,
)
from conformance.proof.written.approval_rules import (
    after_a_change,
    any_text_is_the_last,
    created_everywhere,
    kept_otherwise,
    names_twice,
    others_of,
    shown_as_sent,
    spread_to_others,
    stored,
    unknown_is_the_usual,
    unlisted_policies,
    untouched_asks_for_one,
    upserting,
)
from conformance.reference.areas.approval_rule_records import Level, RuleType
from conformance.reference.choices import Choices
from conformance.reference.errors import RejectedError
from conformance.reference.http import ok
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

CUT_AT = 60
RULES = "/groups/:id/approval_rules"
RULE = f"{RULES}/:approval_rule_id"


def not_taken() -> RejectedError:
    """Return the refusal of valid input."""
    return RejectedError("is not taken", parameter="name")


def group_rules(service: Service) -> Any:
    """Return the object for the rules of groups."""
    return service.group_approval_rules


# -- creation ------------------------------------------------------------------------------------------------------------


@fault("group-approval-rules.create.listed")
def created_group_rule_is_not_kept(service: Service) -> None:
    """POST answers with a rule that is not stored."""
    afterwards(group_rules(service), "create_rule", lambda rule, *_: stored(service).pop(rule.id) and None)


@fault("group-approval-rules.create.listed")
def created_group_rule_has_an_old_id(service: Service) -> None:
    """A created rule replaces the first regular one."""

    def reuse(rule: Any, *_: Any) -> Any:
        regular = [other for other in others_of(service, rule) if other.rule_type is RuleType.REGULAR]
        if not regular:
            return None
        stored(service).pop(rule.id)
        stored(service)[regular[0].id] = replace(rule, id=regular[0].id)
        return stored(service)[regular[0].id]

    afterwards(group_rules(service), "create_rule", reuse)


@fault("group-approval-rules.create.values")
def group_rule_is_answered_with_another_number(service: Service) -> None:
    """The answer to a creation shows approvals_required one too high."""
    afterwards(
        group_rules(service),
        "create_rule",
        lambda rule, *_: replace(rule, approvals_required=rule.approvals_required + 1),
    )


def cut(body: dict[str, Any]) -> dict[str, Any]:
    """Keep the beginning of a name."""
    return {**body, "name": body["name"][:CUT_AT]} if isinstance(body.get("name"), str) else body


@fault("group-approval-rules.create.values")
def long_names_of_group_rules_are_cut(service: Service) -> None:
    """A creation cuts names after sixty characters."""
    parameters(service, f"POST {RULES}", cut)


@fault("group-approval-rules.update.name")
def long_names_in_changes_of_group_rules_are_cut(service: Service) -> None:
    """A change cuts names after sixty characters."""
    parameters(service, f"PUT {RULES}/:approval_rule_id", cut)


@fault("group-approval-rules.create.leaves-other-rules")
def group_creation_renumbers_the_others(service: Service) -> None:
    """A creation sets its number in every other rule of the group."""
    spread_to_others(service, group_rules(service), "create_rule", "approvals_required")


@fault("group-approval-rules.create.user-ids")
def users_of_a_group_rule_are_answered_and_not_kept(service: Service) -> None:
    """The answer to a creation shows the users; the list does not."""
    kept_otherwise(service, group_rules(service), "create_rule", users=())


@fault("group-approval-rules.create.group-ids")
def groups_of_a_group_rule_are_dropped(service: Service) -> None:
    """A creation ignores group_ids."""
    told_otherwise(group_rules(service), "create_rule", 1, lambda wanted: replace(wanted, group_ids=None))


@fault("group-approval-rules.create.minimal")
def group_rules_need_a_type(service: Service) -> None:
    """A creation without rule_type is refused."""
    refusing(
        service, f"POST {RULES}", lambda request: not request.query and b"rule_type" not in request.body, not_taken
    )


@fault("group-approval-rules.create.query-parameters")
def group_creation_reads_the_body_alone(service: Service) -> None:
    """A creation whose parameters are in the query is refused."""
    refusing(service, f"POST {RULES}", lambda request: b"name=" in request.query, not_taken)


@fault("group-approval-rules.update.query-parameters")
def group_change_reads_the_body_alone(service: Service) -> None:
    """A change ignores parameters in the query."""

    def make(handler: Any) -> Any:
        def deaf(request: Request) -> Response:
            request.query = b""
            return handler(request)

        return deaf

    handling(service, f"PUT {RULE}", make)


@fault("group-approval-rules.create.any-approver")
def any_approver_of_a_group_breaks(service: Service) -> None:
    """Creating a rule of type any_approver causes a server error."""
    breaking(service, f"POST {RULES}", lambda request: b'"any_approver"' in request.body)


@fault("group-approval-rules.create.report-approver")
def report_approver_of_a_group_breaks(service: Service) -> None:
    """Creating a rule of type report_approver causes a server error."""
    breaking(service, f"POST {RULES}", lambda request: b'"report_approver"' in request.body)


@fault("group-approval-rules.create.code-owner")
def code_owner_of_a_group_can_be_created(service: Service) -> None:
    """A creation with the type code_owner creates such a rule."""
    shown_as_sent(service, f"POST {RULES}", "rule_type", "code_owner", "regular")


@fault("group-approval-rules.create.rule-type-is-known")
def unknown_type_of_a_group_rule_is_shown(service: Service) -> None:
    """A created rule shows any rule_type that was sent."""
    shown_as_sent(service, f"POST {RULES}", "rule_type", "unheard-of", "regular")


@fault("group-approval-rules.create.approvers-are-lists")
def object_names_users_of_a_new_group_rule(service: Service) -> None:
    """A creation reads the values of an object in user_ids as users."""
    bodies(service, f"POST {RULES}", flattened("user_ids"))


@fault("group-approval-rules.update.approvers-are-lists")
def object_names_users_of_a_group_rule(service: Service) -> None:
    """A change reads the values of an object in user_ids as users."""
    bodies(service, f"PUT {RULE}", flattened("user_ids"))


@fault("group-approval-rules.rule.without-hidden-groups")
def every_group_of_a_group_rule_counts_as_hidden(service: Service) -> None:
    """contains_hidden_groups is true if a rule has groups."""
    present = group_rules(service).present
    group_rules(service).present = lambda rule, viewer: {
        **present(rule, viewer),
        "contains_hidden_groups": bool(rule.groups),
    }


# -- change --------------------------------------------------------------------------------------------------------------


@fault("group-approval-rules.update.name")
def changed_name_of_a_group_rule_is_not_kept(service: Service) -> None:
    """PUT answers with the new name, but the former one stays stored."""
    update = group_rules(service).update_rule

    def forgetful(group: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = stored(service).get(number)
        changed = update(group, number, wanted, caller)
        stored(service)[number] = replace(changed, name=before.name)
        return changed

    group_rules(service).update_rule = forgetful


@fault("group-approval-rules.update.approvals-required")
def changed_number_of_a_group_rule_is_dropped(service: Service) -> None:
    """A change ignores approvals_required."""
    told_otherwise(group_rules(service), "update_rule", 2, lambda wanted: replace(wanted, approvals_required=None))


@fault("group-approval-rules.update.name-alone")
def group_change_needs_the_number(service: Service) -> None:
    """A change of only the name is refused."""
    refusing(
        service,
        f"PUT {RULE}",
        lambda request: b'"name"' in request.body and b'"approvals_required"' not in request.body,
        not_taken,
    )


@fault("group-approval-rules.update.approvals-required-alone")
def group_change_needs_the_name(service: Service) -> None:
    """A change of only approvals_required is refused."""
    refusing(
        service,
        f"PUT {RULE}",
        lambda request: b'"approvals_required"' in request.body and b'"name"' not in request.body,
        not_taken,
    )


@fault("group-approval-rules.update.answers-with-rule")
def group_change_is_answered_with_another_id(service: Service) -> None:
    """PUT answers with another id of the rule."""
    afterwards(group_rules(service), "update_rule", lambda rule, *_: replace(rule, id=rule.id + 1000))


@fault("group-approval-rules.update.leaves-other-rules")
def group_change_reaches_the_others(service: Service) -> None:
    """A change sets its name in every other rule of the group."""
    spread_to_others(service, group_rules(service), "update_rule", "name")


@fault("group-approval-rules.update.leaves-other-rules")
def group_change_gives_the_others_its_users(service: Service) -> None:
    """The users of a changed rule become those of every other rule of the group."""
    spread_to_others(service, group_rules(service), "update_rule", "users")


@fault("group-approval-rules.update.leaves-other-rules")
def group_change_gives_the_others_its_groups(service: Service) -> None:
    """The groups of a changed rule become those of every other rule of the group."""
    spread_to_others(service, group_rules(service), "update_rule", "groups")


@fault("group-approval-rules.update.user-ids")
def an_approver_named_twice_breaks_a_change_in_a_group(service: Service) -> None:
    """A change that names an approver twice causes a server error."""
    breaking(service, f"PUT {RULE}", names_twice)


@fault("group-approval-rules.create.values")
def rare_signs_of_a_new_name_in_a_group_are_lost(service: Service) -> None:
    """Signs beyond the first 65536 are left out of the name of a new rule."""
    around(
        group_rules(service),
        "create_rule",
        lambda create: (
            lambda group, wanted, caller: create(
                group, replace(wanted, name="".join(sign for sign in wanted.name if ord(sign) < 1 << 16)), caller
            )
        ),
    )


@fault("group-approval-rules.update.user-ids")
def users_of_a_group_rule_stay_as_they_are(service: Service) -> None:
    """A change ignores user_ids."""
    after_a_change(service, "users_after", Level.GROUP, lambda _, rule: rule.users)


@fault("group-approval-rules.update.group-ids")
def groups_of_a_group_rule_stay_as_they_are(service: Service) -> None:
    """A change ignores group_ids."""
    after_a_change(service, "groups_after", Level.GROUP, lambda _, rule: rule.groups)


@fault("group-approval-rules.update.rule-type")
def group_change_refuses_the_type(service: Service) -> None:
    """A change that sends rule_type is refused."""
    refusing(service, f"PUT {RULE}", lambda request: b'"regular"' in request.body, not_taken)


@fault("group-approval-rules.update.rule-type-is-known")
def group_change_shows_an_unknown_type(service: Service) -> None:
    """A rule shows any rule_type that was sent in a change."""
    route = service.routes.get(f"PUT {RULE}")
    types: dict[int, str] = {}

    def lenient(request: Request) -> Response:
        body = json.loads(request.body or b"{}")
        if body.get("rule_type") == "unheard-of":
            types[request.path_id("approval_rule_id")] = body.pop("rule_type")
            request.body = json.dumps(body).encode()
        return route.handler(request)

    service.routes.change(f"PUT {RULE}", handler=lenient)
    present = group_rules(service).present
    group_rules(service).present = lambda rule, viewer: {
        **present(rule, viewer),
        **({"rule_type": types[rule.id]} if rule.id in types else {}),
    }


@fault("group-approval-rules.update.rule-id-is-integer")
def group_rule_may_be_named_by_any_text(service: Service) -> None:
    """A change of a rule whose id is not a number changes the last one."""
    any_text_is_the_last(service, f"PUT {RULE}", lambda request: group_rules(service).rules(request.group))


@fault("group-approval-rules.update.unknown-rule")
def unknown_group_rule_is_created(service: Service) -> None:
    """A change of a missing rule creates one."""
    upserting(service, group_rules(service), approvals_required=1)


@fault("group-approval-rules.update.rule-of-another-group")
def rule_of_another_group_is_changed(service: Service) -> None:
    """A rule can be changed through the path of any group."""
    rules = service.approval_rules
    find = rules.find

    def anywhere(home: Any, number: int) -> Any:
        rule = rules.rules.get(number)
        same_level = rule is not None and rule.home.level is Level.GROUP and home.level is Level.GROUP
        return rule if same_level else find(home, number)

    rules.find = anywhere


# -- the list, other groups and roles --------------------------------------------------------------------------------------


@fault("group-approval-rules.pages")
def group_rules_are_never_paged(service: Service) -> None:
    """The list ignores page and per_page."""

    def whole(request: Request, response: Response) -> None:
        area = group_rules(service)
        response.content = [area.present(rule, request.caller) for rule in area.rules(request.group)]

    altering(service, f"GET {RULES}", whole)


@fault("group-approval-rules.versions.pagination")
def group_rules_come_twice(service: Service) -> None:
    """Every page after the first begins with the last rule of the previous page."""

    def overlap(request: Request, response: Response) -> None:
        area = group_rules(service)
        rules = [area.present(rule, request.caller) for rule in area.rules(request.group)]
        first = next(
            (n for n, rule in enumerate(rules) if response.content and rule["id"] == response.content[0]["id"]), 0
        )
        if first:
            response.content = [rules[first - 1], *response.content][: len(response.content)]

    altering(service, f"GET {RULES}", overlap)


@fault("group-approval-rules.versions.applies-to-all-protected-branches")
def group_rules_leave_the_flag_open(service: Service) -> None:
    """applies_to_all_protected_branches is null in rules of groups."""
    present = group_rules(service).present
    group_rules(service).present = lambda rule, viewer: {
        **present(rule, viewer),
        "applies_to_all_protected_branches": None,
    }


@fault("group-approval-rules.any-approver.asks-for-none")
def untouched_rule_of_a_group_asks_for_one(service: Service) -> None:
    """The initial rule of a group requires one approval."""
    untouched_asks_for_one(service)


@fault("group-approval-rules.report-approver.from-policies")
def rules_of_policies_are_not_listed_in_groups(service: Service) -> None:
    """The list leaves out rules of type report_approver."""
    unlisted_policies(group_rules(service))


@fault("group-approval-rules.groups-are-separate")
def group_creation_reaches_the_sibling(service: Service) -> None:
    """A rule that is created in one group is also created in every other one."""
    created_everywhere(service, group_rules(service), lambda: list(service.identities.groups.values()))


@fault("group-approval-rules.groups-are-separate")
def group_change_reaches_the_sibling(service: Service) -> None:
    """A change also renames the first rule of every other group."""

    def spread(rule: Any, group: Any, *_: Any) -> None:
        for other in list(service.identities.groups.values()):
            rules = group_rules(service).rules(other)
            if other.id != group.id and rules:
                stored(service)[rules[0].id] = replace(rules[0], name=rule.name)

    afterwards(group_rules(service), "update_rule", spread)


@fault("group-approval-rules.unknown-group")
def rules_of_an_unknown_group_are_those_of_a_known_one(service: Service) -> None:
    """An existing group is used in place of a missing one."""
    unknown_is_the_usual(service, "find_group", "groups", "group")


@fault("group-approval-rules.authorization.listing-below-administrator")
def developer_may_list_group_rules(service: Service) -> None:
    """The list requires only the developer role."""
    service.routes.change(f"GET {RULES}", least_role=Role.DEVELOPER)


@fault("group-approval-rules.authorization.creating-below-administrator")
def developer_may_create_group_rules(service: Service) -> None:
    """A creation requires only the developer role."""
    service.routes.change(f"POST {RULES}", least_role=Role.DEVELOPER)


@fault("group-approval-rules.authorization.updating-below-administrator")
def refused_change_of_a_group_rule_is_kept(service: Service) -> None:
    """A developer's change of a rule is refused, but stored."""
    service.routes.change(f"PUT {RULE}", least_role=Role.DEVELOPER)
    done_and_refused(
        service,
        f"PUT {RULE}",
        lambda request: service.identities.role_in(request.caller, request.group) < Role.OWNER,
    )


@fault("group-approval-rules.update.name-is-string")
def group_change_takes_any_name(service: Service) -> None:
    """A change accepts any value as a name."""
    bodies(service, f"PUT {RULE}", taken_for("name", "Something", unless=lambda value: isinstance(value, str)))


@fault("group-approval-rules.update.approvals-required-is-integer")
def group_change_takes_any_number(service: Service) -> None:
    """A change accepts any value as approvals_required."""
    bodies(service, f"PUT {RULE}", taken_for("approvals_required", 7, unless=lambda value: isinstance(value, int)))


@fault(
    "group-approval-rules.flag-off-is-refused",
    choices=Choices(group_approval_rules_offered=False),
    features={"group_approval_rules_flag_off": True, "group_approval_rules": False},
)
def group_rules_are_served_while_the_flag_is_off(service: Service) -> None:
    """Rules are served although the feature flag is off."""
    group_rules(service).require_offered = does_nothing


@fault(
    "group-approval-rules.flag-off-is-refused",
    choices=Choices(group_approval_rules_offered=False),
    features={"group_approval_rules_flag_off": True, "group_approval_rules": False},
)
def group_rules_are_listed_while_the_flag_is_off(service: Service) -> None:
    """The feature flag only disables creation and change; the list is empty."""
    answering(service, f"GET {RULES}", lambda _: True, lambda: ok([]))
