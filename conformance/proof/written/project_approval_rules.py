"""Faults of the approval rules of projects: what a creation takes and keeps, and what the rules show."""

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
    """Take every creation of a project's rule for one that asks for something else."""
    told_otherwise(service.project_approval_rules, "create_rule", 1, twist)


def asked(service: Service, **values: Any) -> None:
    """Take every creation and change of a project's rule for one that asks for something else."""
    for name, place in (("create_rule", 1), ("update_rule", 2)):
        told_otherwise(service.project_approval_rules, name, place, lambda wanted: replace(wanted, **values))


# -- creation ----------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.create.readable")
def created_rule_is_not_kept(service: Service) -> None:
    """POST answers with a rule that nobody finds again."""
    afterwards(service.project_approval_rules, "create_rule", lambda rule, *_: stored(service).pop(rule.id) and None)


@fault("project-approval-rules.create.listed")
def created_rule_is_not_listed(service: Service) -> None:
    """A rule that was created can be read by its id but is not in the list."""
    around(service.project_approval_rules, "rules", lambda rules: lambda project: rules(project)[:1])


@fault("project-approval-rules.create.values")
def answer_to_creation_has_another_number(service: Service) -> None:
    """The answer to a creation shows approvals_required one too high; what is kept is right."""
    afterwards(
        service.project_approval_rules,
        "create_rule",
        lambda rule, *_: replace(rule, approvals_required=rule.approvals_required + 1),
    )


@fault("project-approval-rules.create.listed")
def number_is_not_kept(service: Service) -> None:
    """The answer shows approvals_required as sent; the rule that is kept asks for one."""
    kept_otherwise(service, service.project_approval_rules, "create_rule", approvals_required=1)


@fault("project-approval-rules.create.leaves-other-rules")
def creation_renames_the_others(service: Service) -> None:
    """A creation gives every other rule of the project the new name."""
    spread_to_others(service, service.project_approval_rules, "create_rule", "name")


@fault("project-approval-rules.create.leaves-other-rules")
def creation_renumbers_the_others(service: Service) -> None:
    """A creation gives every other rule of the project its number."""
    spread_to_others(service, service.project_approval_rules, "create_rule", "approvals_required")


@fault("project-approval-rules.create.leaves-other-rules")
def creation_drops_an_older_rule(service: Service) -> None:
    """A project keeps no more than one rule that was created."""

    def drop(rule: Any, *_: Any) -> None:
        for other in others_of(service, rule):
            if other.rule_type is RuleType.REGULAR:
                stored(service).pop(other.id)

    afterwards(service.project_approval_rules, "create_rule", drop)


@fault("project-approval-rules.create.user-ids")
def users_by_number_are_dropped(service: Service) -> None:
    """A creation takes no notice of user_ids."""
    created_from(service, lambda wanted: replace(wanted, user_ids=None))


@fault("project-approval-rules.create.user-ids")
def users_are_answered_and_not_kept(service: Service) -> None:
    """The answer to a creation shows the users; the rule that is kept has none."""
    kept_otherwise(service, service.project_approval_rules, "create_rule", users=())


@fault("project-approval-rules.create.group-ids")
def groups_are_dropped(service: Service) -> None:
    """A creation takes no notice of group_ids."""
    created_from(service, lambda wanted: replace(wanted, group_ids=None))


@fault("project-approval-rules.create.usernames")
def usernames_are_dropped(service: Service) -> None:
    """A creation takes no notice of usernames."""
    created_from(service, lambda wanted: replace(wanted, usernames=None))


@fault("project-approval-rules.create.user-ids-and-usernames")
def usernames_give_way_to_numbers(service: Service) -> None:
    """A creation that sends both lists of users takes the numbers alone."""
    created_from(service, lambda wanted: replace(wanted, usernames=None) if wanted.user_ids else wanted)


@fault("project-approval-rules.create.applies-to-all-protected-branches.default")
def flag_is_on_by_default(service: Service) -> None:
    """A rule that is created without the flag holds for every protected branch."""

    def on(wanted: Any) -> Any:
        unsaid = wanted.applies_to_all_protected_branches is None
        return replace(wanted, applies_to_all_protected_branches=True) if unsaid else wanted

    created_from(service, on)


@fault("project-approval-rules.create.protected-branch-ids.keep-the-flag-off")
def branches_switch_the_flag_on(service: Service) -> None:
    """A rule that is created with branches holds for every protected branch."""

    def on(wanted: Any) -> Any:
        alone = wanted.protected_branch_ids and wanted.applies_to_all_protected_branches is None
        return replace(wanted, applies_to_all_protected_branches=True) if alone else wanted

    created_from(service, on)


@fault("project-approval-rules.create.applies-to-all-protected-branches.stored")
def flag_is_answered_and_not_kept(service: Service) -> None:
    """The answer to a creation shows the flag; the rule that is kept has it off."""
    kept_otherwise(service, service.project_approval_rules, "create_rule", applies_to_all_protected_branches=False)


@fault("project-approval-rules.create.applies-to-all-protected-branches.over-branch-ids")
def branches_outweigh_the_flag(service: Service) -> None:
    """A creation that sends flag and branches takes the branches alone."""
    created_from(
        service,
        lambda wanted: (
            replace(wanted, applies_to_all_protected_branches=False) if wanted.protected_branch_ids else wanted
        ),
    )


@fault("project-approval-rules.create.protected-branch-ids")
def branches_are_dropped(service: Service) -> None:
    """A creation takes no notice of protected_branch_ids."""
    created_from(service, lambda wanted: replace(wanted, protected_branch_ids=None))


@fault("project-approval-rules.create.protected-branch-ids")
def one_branch_stands_for_all(service: Service) -> None:
    """A rule that is created with one branch shows all protected ones."""

    def make(create: Any) -> Any:
        def widely(project: Any, wanted: Any, caller: Any) -> Any:
            branches = tuple(branch.id for branch in service.approval_rules.branches_of(project))
            return create(
                project, replace(wanted, protected_branch_ids=wanted.protected_branch_ids and branches), caller
            )

        return widely

    around(service.project_approval_rules, "create_rule", make)


@fault("project-approval-rules.create.rule-type")
def new_rules_are_for_any_approver(service: Service) -> None:
    """A rule that is created as regular is one for any approver."""

    def retype(rule: Any, *_: Any) -> Any:
        stored(service)[rule.id] = replace(rule, rule_type=RuleType.ANY_APPROVER)
        return stored(service)[rule.id]

    afterwards(service.project_approval_rules, "create_rule", retype)


@fault("project-approval-rules.create.minimal", choices=Choices(default_rule_listed=False))
def type_has_to_be_sent(service: Service) -> None:
    """A creation of nothing but name and number is refused."""
    refusing(
        service,
        f"POST {RULES}",
        lambda request: set(sent(request)) == {"name", "approvals_required"},
        lambda: InvalidError("rule_type"),
    )


@fault("project-approval-rules.versions.usernames")
def usernames_are_not_known(service: Service) -> None:
    """No notice is taken of usernames at all."""
    asked(service, usernames=None)


@fault("project-approval-rules.versions.applies-to-all-protected-branches")
def flag_is_not_taken(service: Service) -> None:
    """No notice is taken of the flag that is sent."""
    asked(service, applies_to_all_protected_branches=None)


# -- types and values --------------------------------------------------------------------------------------------------


def breaking_on(service: Service, when: Callable[[dict[str, Any]], bool]) -> None:
    """Answer the creation of some rules with a server error."""
    breaking(service, f"POST {RULES}", lambda request: when(sent(request)))


@fault("project-approval-rules.create.any-approver")
def any_approver_breaks(service: Service) -> None:
    """Creating a rule of type any_approver is a server error."""
    breaking_on(service, lambda body: body.get("rule_type") == "any_approver")


@fault("project-approval-rules.create.report-approver")
def report_approver_breaks(service: Service) -> None:
    """Creating a rule of type report_approver is a server error."""
    breaking_on(service, lambda body: body.get("rule_type") == "report_approver" and "report_type" not in body)


@fault("project-approval-rules.create.report-type")
def reports_break(service: Service) -> None:
    """Creating a rule about license_scanning is a server error."""
    breaking_on(service, lambda body: body.get("report_type") == "license_scanning")


@fault("project-approval-rules.create.code-owner")
def code_owner_can_be_created(service: Service) -> None:
    """A creation that sends the type code_owner creates one."""

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
    """A creation shows whatever rule_type was sent."""
    shown_as_sent(service, f"POST {RULES}", "rule_type", "unheard-of", "regular")


@fault("project-approval-rules.create.report-type-is-known")
def unknown_report_is_shown(service: Service) -> None:
    """A creation shows whatever report_type was sent."""
    shown_as_sent(service, f"POST {RULES}", "report_type", "unheard-of", "code_coverage")


@fault("project-approval-rules.create.approvers-are-lists")
def object_names_new_users(service: Service) -> None:
    """A creation takes the values of an object in user_ids for users."""
    bodies(service, f"POST {RULES}", flattened("user_ids"))


@fault("project-approval-rules.create.usernames-are-a-list")
def object_names_new_usernames(service: Service) -> None:
    """A creation takes the values of an object in usernames for users."""
    bodies(service, f"POST {RULES}", flattened("usernames"))


@fault("project-approval-rules.create.protected-branches-are-a-list")
def object_names_new_branches(service: Service) -> None:
    """A creation takes the values of an object in protected_branch_ids for branches."""
    bodies(service, f"POST {RULES}", flattened("protected_branch_ids"))


def is_truth(value: Any) -> bool:
    """Tell whether a value is a truth value."""
    return isinstance(value, bool)


@fault("project-approval-rules.create.applies-to-all-protected-branches-is-boolean")
def creation_takes_anything_for_the_flag(service: Service) -> None:
    """A creation takes any value for the flag as true."""
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
    """Reading a rule that is not there shows another one."""

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
    """Reading a rule whose id is no number reads the last one."""
    any_text_is_the_last(service, f"GET {RULE}", lambda request: service.project_approval_rules.rules(request.project))


def presenting(service: Service, twist: Callable[[Any, Any], Any]) -> None:
    """Show the rules of projects otherwise."""
    afterwards(service.project_approval_rules, "present", lambda shown, rule, _: twist(shown, rule))


@fault("project-approval-rules.hidden-groups.none")
def every_group_counts_as_hidden(service: Service) -> None:
    """contains_hidden_groups is true as soon as a rule has groups."""
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
    """The rule that a project has from the beginning asks for one approval."""
    untouched_asks_for_one(service)


@fault("project-approval-rules.report-approver.from-policies")
def rules_of_policies_are_not_listed(service: Service) -> None:
    """The list leaves out rules of type report_approver."""
    unlisted_policies(service.project_approval_rules)


@fault("project-approval-rules.versions.pagination")
def rules_are_never_paged(service: Service) -> None:
    """The list takes no notice of page and per_page."""

    def whole(request: Request, response: Response) -> None:
        area = service.project_approval_rules
        response.content = [area.present(rule, request.caller) for rule in area.rules(request.project)]

    altering(service, f"GET {RULES}", whole)
