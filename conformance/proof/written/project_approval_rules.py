"""Faults of the approval rules of projects: what a creation accepts and stores, and what the rules show."""

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
    flattened,
    handling,
    refusing,
    sent,
    taken_for,
    told_otherwise,
)
from conformance.proof.written.approval_rules import (
    any_text_is_the_last,
    kept_otherwise,
    others_of,
    shown_as_sent,
    spread_to_others,
    stored,
    unlisted_policies,
    untouched_asks_for_one,
)
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.choices import Choices
from conformance.reference.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

RULES = "/projects/:id/approval_rules"
RULE = f"{RULES}/:approval_rule_id"
FLAG = "applies_to_all_protected_branches"


def created_from(service: Service, twist: Callable[[Any], Any]) -> None:
    """Replace every creation of a project's rule by one with other values."""
    told_otherwise(service.project_approval_rules, "create_rule", 1, twist)


def asked(service: Service, **values: Any) -> None:
    """Replace every creation and change of a project's rule by one with other values."""
    for name, place in (("create_rule", 1), ("update_rule", 2)):
        told_otherwise(service.project_approval_rules, name, place, lambda wanted: replace(wanted, **values))


# -- creation ----------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.create.readable")
def created_rule_is_not_kept(service: Service) -> None:
    """POST answers with a rule that cannot be found afterwards."""
    afterwards(service.project_approval_rules, "create_rule", lambda rule, *_: stored(service).pop(rule.id) and None)


@fault("project-approval-rules.create.listed")
def created_rule_is_not_listed(service: Service) -> None:
    """A created rule can be read by its id, but is not in the list."""
    around(service.project_approval_rules, "rules", lambda rules: lambda project: rules(project)[:1])


@fault("project-approval-rules.create.values")
def answer_to_creation_has_another_number(service: Service) -> None:
    """The answer to a creation has approvals_required one too high; the stored rule is right."""
    afterwards(
        service.project_approval_rules,
        "create_rule",
        lambda rule, *_: replace(rule, approvals_required=rule.approvals_required + 1),
    )


@fault("project-approval-rules.create.listed")
def number_is_not_kept(service: Service) -> None:
    """The answer has approvals_required as sent, but the stored rule requires one."""
    kept_otherwise(service, service.project_approval_rules, "create_rule", approvals_required=1)


@fault("project-approval-rules.create.leaves-other-rules")
def creation_renames_the_others(service: Service) -> None:
    """A creation sets its name in every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "create_rule", "name")


@fault("project-approval-rules.create.leaves-other-rules")
def creation_renumbers_the_others(service: Service) -> None:
    """A creation sets its number in every other rule of the project."""
    spread_to_others(service, service.project_approval_rules, "create_rule", "approvals_required")


@fault("project-approval-rules.create.leaves-other-rules")
def creation_drops_an_older_rule(service: Service) -> None:
    """A project keeps at most one created rule."""

    def drop(rule: Any, *_: Any) -> None:
        for other in others_of(service, rule):
            if other.rule_type is RuleType.REGULAR:
                stored(service).pop(other.id)

    afterwards(service.project_approval_rules, "create_rule", drop)


def creation_takes_from_the_others(service: Service, taken: Callable[[Any, Any], dict[str, Any]]) -> None:
    """Change every other rule at a creation: `taken` gets the new rule and another one, and returns its new values."""

    def take(rule: Any, *_: Any) -> None:
        for other in others_of(service, rule):
            stored(service)[other.id] = replace(other, **taken(rule, other))

    afterwards(service.project_approval_rules, "create_rule", take)


@fault("project-approval-rules.create.leaves-other-rules")
def creation_takes_its_branches_from_the_others(service: Service) -> None:
    """A protected branch belongs to one rule: a new one takes it from the others."""
    creation_takes_from_the_others(
        service,
        lambda rule, other: {
            "protected_branches": tuple(one for one in other.protected_branches if one not in rule.protected_branches)
        },
    )


@fault("project-approval-rules.update.applies-to-all-protected-branches")
def creation_for_every_branch_takes_the_flag_from_the_others(service: Service) -> None:
    """One rule applies to all protected branches: a new one that does takes the flag from the others."""
    creation_takes_from_the_others(
        service, lambda rule, other: {FLAG: getattr(other, FLAG) and not getattr(rule, FLAG)}
    )


@fault("project-approval-rules.create.user-ids")
def users_by_number_are_dropped(service: Service) -> None:
    """A creation ignores user_ids."""
    created_from(service, lambda wanted: replace(wanted, user_ids=None))


@fault("project-approval-rules.create.user-ids")
def users_are_answered_and_not_kept(service: Service) -> None:
    """The answer to a creation has the users, but the stored rule has none."""
    kept_otherwise(service, service.project_approval_rules, "create_rule", users=())


@fault("project-approval-rules.create.group-ids")
def groups_are_dropped(service: Service) -> None:
    """A creation ignores groups."""
    created_from(service, lambda wanted: replace(wanted, group_ids=None))


@fault("project-approval-rules.create.usernames")
def usernames_are_dropped(service: Service) -> None:
    """A creation ignores usernames."""
    created_from(service, lambda wanted: replace(wanted, usernames=None))


@fault("project-approval-rules.create.user-ids-and-usernames")
def usernames_give_way_to_numbers(service: Service) -> None:
    """A creation with both lists of users uses only the ids."""
    created_from(service, lambda wanted: replace(wanted, usernames=None) if wanted.user_ids else wanted)


@fault("project-approval-rules.create.user-ids-and-usernames")
def groups_give_way_to_usernames(service: Service) -> None:
    """A creation with usernames and groups uses only the usernames."""
    created_from(service, lambda wanted: replace(wanted, group_ids=None) if wanted.usernames else wanted)


@fault("project-approval-rules.create.applies-to-all-protected-branches.default")
def flag_is_on_by_default(service: Service) -> None:
    """A rule that is created without the flag applies to every protected branch."""

    def on(wanted: Any) -> Any:
        unsaid = wanted.applies_to_all_protected_branches is None
        return replace(wanted, applies_to_all_protected_branches=True) if unsaid else wanted

    created_from(service, on)


@fault("project-approval-rules.create.protected-branch-ids.keep-the-flag-off")
def branches_switch_the_flag_on(service: Service) -> None:
    """A rule that is created with branches applies to every protected branch."""

    def on(wanted: Any) -> Any:
        alone = wanted.protected_branch_ids and wanted.applies_to_all_protected_branches is None
        return replace(wanted, applies_to_all_protected_branches=True) if alone else wanted

    created_from(service, on)


@fault("project-approval-rules.create.applies-to-all-protected-branches.stored")
def flag_is_answered_and_not_kept(service: Service) -> None:
    """The answer to a creation has the flag on, but it is off in the stored rule."""
    kept_otherwise(service, service.project_approval_rules, "create_rule", applies_to_all_protected_branches=False)


@fault("project-approval-rules.create.applies-to-all-protected-branches.over-branch-ids")
def branches_outweigh_the_flag(service: Service) -> None:
    """A creation with flag and branches uses only the branches."""
    created_from(
        service,
        lambda wanted: (
            replace(wanted, applies_to_all_protected_branches=False) if wanted.protected_branch_ids else wanted
        ),
    )


@fault("project-approval-rules.create.protected-branch-ids")
def branches_are_dropped(service: Service) -> None:
    """A creation ignores protected_branch_ids."""
    created_from(service, lambda wanted: replace(wanted, protected_branch_ids=None))


@fault("project-approval-rules.create.protected-branch-ids")
def one_branch_stands_for_all(service: Service) -> None:
    """A rule that is created with one branch shows all protected branches."""

    def make(create: Any) -> Any:
        def widely(project: Any, wanted: Any, caller: Any) -> Any:
            branches = tuple(branch.id for branch in service.approval_rules.branches_of(project))
            return create(
                project, replace(wanted, protected_branch_ids=wanted.protected_branch_ids and branches), caller
            )

        return widely

    around(service.project_approval_rules, "create_rule", make)


@fault("project-approval-rules.create.protected-branch-ids")
def branches_are_the_first_ones(service: Service) -> None:
    """A rule that is created with one branch gets the first protected branch, with two the first two, and so on."""

    def make(create: Any) -> Any:
        def by_place(project: Any, wanted: Any, caller: Any) -> Any:
            branches = tuple(branch.id for branch in service.approval_rules.branches_of(project))
            first = branches[: len(wanted.protected_branch_ids or ())]
            return create(project, replace(wanted, protected_branch_ids=first), caller)

        return by_place

    around(service.project_approval_rules, "create_rule", make)


@fault("project-approval-rules.create.rule-type")
def new_rules_are_for_any_approver(service: Service) -> None:
    """A rule that is created as regular has the type any_approver."""

    def retype(rule: Any, *_: Any) -> Any:
        stored(service)[rule.id] = replace(rule, rule_type=RuleType.ANY_APPROVER)
        return stored(service)[rule.id]

    afterwards(service.project_approval_rules, "create_rule", retype)


@fault("project-approval-rules.create.minimal", choices=Choices(default_rule_listed=False))
def type_has_to_be_sent(service: Service) -> None:
    """A creation with only name and number is refused."""
    refusing(
        service,
        f"POST {RULES}",
        lambda request: set(sent(request)) == {"name", "approvals_required"},
        lambda: InvalidError("rule_type"),
    )


@fault("project-approval-rules.versions.usernames")
def usernames_are_not_known(service: Service) -> None:
    """The parameter usernames is ignored."""
    asked(service, usernames=None)


@fault("project-approval-rules.versions.applies-to-all-protected-branches")
def flag_is_not_taken(service: Service) -> None:
    """The sent flag is ignored."""
    asked(service, applies_to_all_protected_branches=None)


# -- types and values --------------------------------------------------------------------------------------------------


def breaking_on(service: Service, when: Callable[[dict[str, Any]], bool]) -> None:
    """Answer the creation of some rules with a server error."""
    breaking(service, f"POST {RULES}", lambda request: when(sent(request)))


@fault("project-approval-rules.create.any-approver")
def any_approver_breaks(service: Service) -> None:
    """Creating a rule of type any_approver causes a server error."""
    breaking_on(service, lambda body: body.get("rule_type") == "any_approver")


@fault("project-approval-rules.create.report-approver")
def report_approver_breaks(service: Service) -> None:
    """Creating a rule of type report_approver causes a server error."""
    breaking_on(service, lambda body: body.get("rule_type") == "report_approver" and "report_type" not in body)


@fault("project-approval-rules.create.report-type")
def reports_break(service: Service) -> None:
    """Creating a rule about license_scanning causes a server error."""
    breaking_on(service, lambda body: body.get("report_type") == "license_scanning")


@fault("project-approval-rules.create.code-owner")
def code_owner_can_be_created(service: Service) -> None:
    """A creation with the type code_owner creates such a rule."""

    def make(handler: Any) -> Any:
        def lenient(request: Request) -> Response:
            is_it = sent(request).get("rule_type") == "code_owner"
            request.body = request.body.replace(b'"code_owner"', b'"regular"')
            response = handler(request)
            if is_it:
                number = response.content["id"]
                stored(service)[number] = replace(stored(service)[number], rule_type=RuleType.CODE_OWNER)
                response.content["rule_type"] = "code_owner"
            return response

        return lenient

    handling(service, f"POST {RULES}", make)


@fault("project-approval-rules.create.rule-type-is-known")
def unknown_type_is_shown(service: Service) -> None:
    """A created rule shows any rule_type that was sent."""
    shown_as_sent(service, f"POST {RULES}", "rule_type", "unheard-of", "regular")


@fault("project-approval-rules.create.report-type-is-known")
def unknown_report_is_shown(service: Service) -> None:
    """A created rule shows any report_type that was sent."""
    shown_as_sent(service, f"POST {RULES}", "report_type", "unheard-of", "code_coverage")


@fault("project-approval-rules.create.approvers-are-lists")
def object_names_new_users(service: Service) -> None:
    """A creation reads the values of an object in user_ids as users."""
    bodies(service, f"POST {RULES}", flattened("user_ids"))


@fault("project-approval-rules.create.usernames-are-a-list")
def object_names_new_usernames(service: Service) -> None:
    """A creation reads the values of an object in usernames as users."""
    bodies(service, f"POST {RULES}", flattened("usernames"))


@fault("project-approval-rules.create.protected-branches-are-a-list")
def object_names_new_branches(service: Service) -> None:
    """A creation reads the values of an object in protected_branch_ids as branches."""
    bodies(service, f"POST {RULES}", flattened("protected_branch_ids"))


def is_truth(value: Any) -> bool:
    """Tell whether a value is boolean."""
    return isinstance(value, bool)


@fault("project-approval-rules.create.applies-to-all-protected-branches-is-boolean")
def creation_takes_anything_for_the_flag(service: Service) -> None:
    """A creation reads any value of the flag as true."""
    bodies(service, f"POST {RULES}", taken_for(FLAG, instead=True, unless=is_truth))


# -- reading -----------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.read.equals-list-entry")
def list_shows_other_approvers(service: Service) -> None:
    """The list leaves out groups that the rule itself shows."""

    def shorten(_: Request, response: Response) -> None:
        for rule in response.content:
            rule["groups"] = []

    altering(service, f"GET {RULES}", shorten)


@fault("project-approval-rules.read.unknown-rule")
def unknown_rule_is_the_first_one(service: Service) -> None:
    """Reading a missing rule shows another one."""

    def make(handler: Any) -> Any:
        def lenient(request: Request) -> Response:
            number = request.path["approval_rule_id"]
            if number.isdigit() and int(number) not in stored(service):
                first = service.project_approval_rules.rules(request.project)[0]
                request.path = {**request.path, "approval_rule_id": str(first.id)}
            return handler(request)

        return lenient

    handling(service, f"GET {RULE}", make)


@fault("project-approval-rules.read.rule-id-is-integer")
def any_text_reads_a_rule(service: Service) -> None:
    """Reading a rule whose id is not a number reads the last one."""
    any_text_is_the_last(service, f"GET {RULE}", lambda request: service.project_approval_rules.rules(request.project))


def presenting(service: Service, twist: Callable[[Any, Any], Any]) -> None:
    """Show the rules of projects with other values."""
    afterwards(service.project_approval_rules, "present", lambda shown, rule, _: twist(shown, rule))


@fault("project-approval-rules.hidden-groups.none")
def every_group_counts_as_hidden(service: Service) -> None:
    """contains_hidden_groups is true if a rule has groups."""
    presenting(service, lambda shown, rule: {**shown, "contains_hidden_groups": bool(rule.groups)})


@fault("project-approval-rules.hidden-groups.are-announced")
def hidden_groups_are_not_announced(service: Service) -> None:
    """contains_hidden_groups is always false."""
    presenting(service, lambda shown, _: {**shown, "contains_hidden_groups": False})


@fault("project-approval-rules.hidden-groups.are-not-shown")
def hidden_groups_are_shown(service: Service) -> None:
    """A rule shows all of its groups to everybody."""
    known = service.identities.groups
    presenting(
        service,
        lambda shown, rule: {**shown, "groups": [service.present.group(known[number]) for number in rule.groups]},
    )


@fault("project-approval-rules.any-approver.asks-for-none")
def untouched_rule_asks_for_one(service: Service) -> None:
    """The initial rule of a project requires one approval."""
    untouched_asks_for_one(service)


@fault("project-approval-rules.report-approver.from-policies")
def rules_of_policies_are_not_listed(service: Service) -> None:
    """The list leaves out rules of type report_approver."""
    unlisted_policies(service.project_approval_rules)


@fault("project-approval-rules.versions.pagination")
def rules_are_never_paged(service: Service) -> None:
    """The list ignores page and per_page."""

    def whole(request: Request, response: Response) -> None:
        area = service.project_approval_rules
        response.content = [area.present(rule, request.caller) for rule in area.rules(request.project)]

    altering(service, f"GET {RULES}", whole)
