"""Variants in the approval rules of groups, projects and all levels together, and the alterations that make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.variants.variant import Variant
from conformance.reference.areas.approval_rule_records import ALL_BRANCHES_INTRODUCED, Home, Level, RuleRequest
from conformance.reference.choices import Choices, Unfit
from conformance.reference.errors import ForbiddenError, InvalidError, NotFoundError, RejectedError
from conformance.reference.http import Request, Response
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

_GROUP_RULES = (
    "GET /groups/:id/approval_rules",
    "POST /groups/:id/approval_rules",
    "PUT /groups/:id/approval_rules/:approval_rule_id",
)
_RULE_OF_PROJECT = "/projects/:id/approval_rules/:approval_rule_id"
_RULE_OF_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id"
_UPDATES = (
    "PUT /groups/:id/approval_rules/:approval_rule_id",
    f"PUT {_RULE_OF_MERGE_REQUEST}",
    "POST /projects/:id/approvals",
)


def leaves_group_rules_to_administrators(service: Service) -> None:
    """Let only administrators of the installation, and no owner, use the rules of groups."""
    for key in _GROUP_RULES:
        service.routes.change(key, admin_only=True)


def lets_maintainers_use_group_rules(service: Service) -> None:
    """Count maintainers of a group among its administrators."""
    for key in _GROUP_RULES:
        service.routes.change(key, least_role=Role.MAINTAINER)


def adds_to_lists_of_groups(service: Service) -> None:
    """Let an update of a group's rule add approvers, and never remove any."""
    rules = service.approval_rules
    users_after, groups_after = rules.users_after, rules.groups_after

    def users(rule: Any, wanted: Any, subject: Any) -> tuple[int, ...]:
        kept = rule.users if rule.home.level is Level.GROUP else ()
        return tuple(dict.fromkeys((*kept, *users_after(rule, wanted, subject))))

    def groups(rule: Any, wanted: Any, caller: Any) -> tuple[int, ...]:
        kept = rule.groups if rule.home.level is Level.GROUP else ()
        return tuple(dict.fromkeys((*kept, *groups_after(rule, wanted, caller))))

    rules.users_after = users
    rules.groups_after = groups


def keeps_rule_types(service: Service) -> None:
    """Let an update of a group's rule keep its type, whatever was sent."""
    rules = service.group_approval_rules
    update = rules.update_rule

    def without_type(group: Any, number: int, wanted: RuleRequest, caller: Any) -> Any:
        return update(group, number, replace(wanted, rule_type=None), caller)

    rules.update_rule = without_type


def replaces_rules_of_groups(service: Service) -> None:
    """Let an update of a group's rule replace it: what was not sent is reset."""
    rules = service.group_approval_rules
    update = rules.update_rule

    def replaced(group: Any, number: int, wanted: Any, caller: Any) -> Any:
        whole = replace(
            wanted,
            approvals_required=wanted.approvals_required or 0,
            user_ids=wanted.user_ids or (),
            group_ids=wanted.group_ids or (),
        )
        return update(group, number, whole, caller)

    rules.update_rule = replaced


def ignores_empty_lists(service: Service) -> None:
    """Treat an empty list of approvers as not sent, because forms cannot distinguish the two."""
    rules = service.approval_rules
    update = rules.update_rule

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        said = replace(wanted, user_ids=wanted.user_ids or None, usernames=wanted.usernames or None)
        return update(subject, rule, replace(said, group_ids=wanted.group_ids or None), caller)

    rules.update_rule = updated


def hands_rules_down(service: Service) -> None:
    """List the rules of a project's parent groups among its own, and count them; they can be changed in the group."""
    projects, everywhere = service.project_approval_rules, service.approval_rules
    own_rules, find, update, delete = projects.rules, projects.find, projects.update_rule, projects.delete_rule

    def inherited(project: Any) -> list[Any]:
        groups = service.identities.lineage(project)
        return [rule for group in groups for rule in everywhere.rules_of(Home(Level.GROUP, group.id))]

    def rules(project: Any) -> list[Any]:
        return [*own_rules(project), *inherited(project)]

    def found(project: Any, number: int) -> Any:
        return next((rule for rule in inherited(project) if rule.id == number), None) or find(project, number)

    def require_own(project: Any, number: int) -> None:
        if any(rule.id == number for rule in inherited(project)):
            raise ForbiddenError

    def updated(project: Any, number: int, wanted: RuleRequest, caller: Any) -> Any:
        require_own(project, number)
        return update(project, number, wanted, caller)

    def deleted(project: Any, number: int) -> None:
        require_own(project, number)
        delete(project, number)

    projects.rules = rules
    projects.find = found
    projects.update_rule = updated
    projects.delete_rule = deleted


def shows_groups_the_rules_around_them(service: Service) -> None:
    """List the rules of the groups around a group among its own; they can be changed where they belong."""
    groups = service.group_approval_rules
    own_rules = groups.rules
    groups.rules = lambda group: [rule for around in service.identities.lineage(group) for rule in own_rules(around)]


def counts_members_of_hidden_groups(service: Service) -> None:
    """Show the members of hidden groups to everybody among the eligible approvers."""
    rules = service.approval_rules
    eligible = rules.eligible_approvers

    def of_all_groups(rule: Any, groups: Any = None) -> tuple[int, ...]:  # noqa: ARG001 - which of them are visible
        return eligible(rule)

    rules.eligible_approvers = of_all_groups


def names_nobody_eligible(service: Service) -> None:
    """Show no eligible approvers, not even users of a rule."""
    rules = service.approval_rules
    present = rules.present

    def shown(rule: Any, viewer: Any, barred: Any = ()) -> dict[str, Any]:
        return {**present(rule, viewer, barred), "eligible_approvers": []}

    rules.present = shown


def finds_every_member_eligible(service: Service) -> None:
    """Show all visible members of a project among the eligible approvers of its rules."""
    rules = service.approval_rules
    present = rules.present

    def shown(rule: Any, viewer: Any, barred: Any = ()) -> dict[str, Any]:
        entry = present(rule, viewer, barred)
        if rule.home.level is not Level.PROJECT:
            return entry
        members = service.identities.members(service.identities.projects[rule.home.id])
        return {**entry, "eligible_approvers": service.present.users(tuple(members))}

    rules.present = shown


def takes_no_more_approvals_than_five(service: Service) -> None:
    """Refuse a rule that requires more than five approvals."""
    _takes_at_most(service, lambda _: 5)


def takes_no_more_approvals_than_approvers(service: Service) -> None:
    """Refuse a rule that requires more approvals than it has possible approvers."""
    rules = service.approval_rules
    _takes_at_most(service, lambda rule: len(rules.eligible_approvers(rule)))


def _takes_at_most(service: Service, most: Callable[[Any], int]) -> None:
    rules = service.approval_rules
    require = rules.require_possible

    def require_possible(rule: Any) -> None:
        require(rule)
        if (rule.users or rule.groups) and rule.approvals_required > most(rule):
            raise RejectedError("is too large", parameter="approvals_required")

    rules.require_possible = require_possible


def lowers_numbers_to_approvers(service: Service) -> None:
    """Store the number of possible approvers where a rule was to require more approvals than that."""
    rules = service.approval_rules
    add, update = rules.add_rule, rules.update_rule

    def lowered(rule: Any) -> Any:
        most = len(rules.eligible_approvers(rule)) if rule.users or rule.groups else 0
        if most and rule.approvals_required > most:
            rules.rules[rule.id] = replace(rule, approvals_required=most)
        return rules.rules[rule.id]

    rules.add_rule = lambda candidate: lowered(add(candidate))
    rules.update_rule = lambda *wanted: lowered(update(*wanted))


def keeps_branches_of_rules_for_all(service: Service) -> None:
    """Show the branches that were sent for a rule that applies to all of them, although they have no effect."""
    rules = service.approval_rules
    create, shown = rules.create_rule, rules.branches_shown

    def created(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        rule = create(subject, home, wanted, caller)
        named = rules.branches_named(wanted, subject) or ()
        rules.rules[rule.id] = replace(rule, protected_branches=named)
        return rules.rules[rule.id]

    def as_sent(rule: Any) -> Any:
        return shown(replace(rule, applies_to_all_protected_branches=False)) or shown(rule)

    rules.create_rule = created
    rules.branches_shown = as_sent


def deletes_absent_rules(service: Service) -> None:
    """Answer the deletion of a rule that never existed with success, for any id."""
    for path in (_RULE_OF_PROJECT, _RULE_OF_MERGE_REQUEST):
        handler = service.routes.get(f"DELETE {path}").handler

        def deleted(request: Request, handler: Any = handler) -> Response:
            is_number = request.path["approval_rule_id"].isdigit()
            try:
                response: Response = handler(request)
            except (NotFoundError, InvalidError) as error:
                if is_number and "Approval Rule" not in error.message:
                    raise
                return Response(204)
            return response

        service.routes.change(f"DELETE {path}", handler=deleted)


def refuses_empty_updates(service: Service) -> None:
    """Refuse an update without any parameter."""
    for key in _UPDATES:
        handler = service.routes.get(key).handler

        def with_something(request: Request, handler: Any = handler) -> Response:
            if request.body.strip() in {b"", b"{}"} and not request.query:
                raise RejectedError("at least one parameter must be sent")
            response: Response = handler(request)
            return response

        service.routes.change(key, handler=with_something)


def shows_fields_of_other_levels(service: Service) -> None:
    """Show in rules of all levels what is described only for some of them."""
    rules, present = service.approval_rules, service.present
    shown_rule, shown_branch = rules.present, present.project_protected_branch
    more_of_rule: dict[str, Any] = {
        "source_rule": None,
        "overridden": False,
        "approved_by": [],
        "approved": False,
        "protected_branches": [],
    }
    if service.version >= ALL_BRANCHES_INTRODUCED:
        # Before this version, no level has the field, and showing it would look like a newer version.
        more_of_rule["applies_to_all_protected_branches"] = False

    def rule_with_more(rule: Any, viewer: Any, barred: Any = ()) -> dict[str, Any]:
        return {**more_of_rule, **shown_rule(rule, viewer, barred)}

    def branch_with_more(branch: Any) -> dict[str, Any]:
        return {**shown_branch(branch), "allow_force_push": False, "inherited": None}

    rules.present = rule_with_more
    present.project_protected_branch = branch_with_more


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "other-rules",
        "Anybody may approve and nobody is eligible, default rules are many, groups gain approvers and lose none.",
        replace(
            _PLAIN,
            approvers_must_be_members=False,
            several_default_rules=True,
            default_rule_name="Anybody",
            report_rules_creatable_in_groups=True,
            group_rules_apply_to_all_branches=False,
            largest_approvals_required=1000,
            unknown_rule_type=Unfit.DROP,
        ),
        alterations=(
            adds_to_lists_of_groups,
            keeps_rule_types,
            names_nobody_eligible,
        ),
    ),
    Variant(
        "groups-show-rules-from-above",
        "A group lists the rules of the groups around it among its own.",
        alterations=(shows_groups_the_rules_around_them,),
    ),
    Variant(
        "five-approvals-at-most",
        "A rule asks for five approvals at most.",
        alterations=(takes_no_more_approvals_than_five,),
    ),
    Variant(
        "no-more-approvals-than-approvers",
        "A rule asks for no more approvals than there are users whose approval it counts; others get a 404.",
        replace(_PLAIN, rejected_code=404),
        alterations=(takes_no_more_approvals_than_approvers,),
    ),
    Variant(
        "approvals-out-of-reach-are-lowered",
        "A rule that was to require more approvals than it has possible approvers requires as many as these.",
        alterations=(lowers_numbers_to_approvers,),
    ),
    Variant(
        "group-rules-are-replaced",
        "An update of a rule of a group replaces it; empty lists elsewhere are as if not sent.",
        alterations=(replaces_rules_of_groups, ignores_empty_lists),
    ),
    Variant(
        "all-levels-look-alike",
        "Rules of all levels show all fields, inert branches among them, and every member is eligible.",
        alterations=(
            shows_fields_of_other_levels,
            keeps_branches_of_rules_for_all,
            finds_every_member_eligible,
        ),
    ),
)
