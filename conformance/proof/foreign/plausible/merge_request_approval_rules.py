"""Plausible faults in rules of merge requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    AGAIN,
    COUNT,
    REFUSED,
    SIDE_EFFECT,
    STORY,
)
from conformance.proof.foreign.paths import MERGE_REQUEST_RULES
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import SYSTEM_TYPES

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(STORY, "Merge request approvals: POST with approval_project_rule_id")
def a_copy_never_asks_for_less_than_its_source(service: Service) -> None:
    """A copy gets the larger number of the sent one and that of the project rule."""
    rules = service.merge_request_approval_rules

    @instead(rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        most = max(source.approvals_required, wanted.approvals_required or 0)
        return replace(copied(merge_request, source, wanted), approvals_required=most)


@foreign(SIDE_EFFECT, "Merge request approvals: PUT of a copied rule")
def an_update_of_a_copy_reaches_the_project_rule(service: Service) -> None:
    """An update of a copied rule gives its users to the project rule as well."""
    rules = service.approval_rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        changed = update(merge_request, number, wanted, caller)
        source = rules.rules.get(changed.source_id)
        if source is not None:
            rules.rules[source.id] = replace(source, users=changed.users, groups=changed.groups)
        return changed


@foreign(REFUSED, "Merge request approvals: rules of the system cannot be updated")
def the_number_of_a_system_rule_can_be_updated(service: Service) -> None:
    """A rule of the system is protected only against new names and approvers: its number can be updated."""
    rules = service.merge_request_approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        rule = rules.find(merge_request, number)
        others = (wanted.name, wanted.user_ids, wanted.group_ids, wanted.usernames)
        if rule.rule_type in SYSTEM_TYPES and others == (None,) * len(others):
            changed = replace(rule, approvals_required=wanted.approvals_required or 0)
            service.approval_rules.rules[rule.id] = changed
            return changed
        return update(merge_request, number, wanted, caller)


@foreign(SIDE_EFFECT, "Merge request approvals: approval_project_rule_id in two merge requests")
def a_project_rule_has_one_copy(service: Service) -> None:
    """Copying a project rule to a merge request takes its copy away from another one."""

    @instead(service.approval_rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        if candidate.source_id:
            for one in [
                rule for rule in service.approval_rules.rules.values() if rule.source_id == candidate.source_id
            ]:
                service.approval_rules.delete_rule(one)
        return add(candidate)


@foreign(COUNT, "Merge request approval state: more than two rules")
def the_state_shows_two_rules(service: Service) -> None:
    """The state shows at most two rules of a merge request."""

    @instead(service.merge_request_approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        shown = state(merge_request, viewer)
        return {**shown, "rules": shown["rules"][:2]}


@foreign(COUNT, "Merge request approvals: GET approval_rules, order of pages")
def even_pages_run_backwards(service: Service) -> None:
    """The order of merge request rules is another one on even pages, so that rules are missing or come twice."""

    @handling(service, f"GET {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        area = service.merge_request_approval_rules
        page = request.parameters.optional_integer("page") or 1
        if page % 2:
            return handler(request)
        listed = area.listed
        area.listed = lambda merge_request: listed(merge_request)[::-1]
        try:
            return handler(request)
        finally:
            del area.listed


@foreign(AGAIN, "Merge request approvals: POST approval_rules after DELETE, equal name")
def a_new_rule_gets_the_users_of_a_deleted_one(service: Service) -> None:
    """A merge request rule that is made anew under the name of a deleted one has the former users again."""
    former: dict[tuple[Any, str], tuple[int, ...]] = {}

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        former[rule.home, rule.name] = rule.users
        delete(rule)

    @instead(service.approval_rules, "create_rule")
    def _(create: Any, subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        rule = create(subject, home, wanted, caller)
        users = former.pop((home, rule.name), ())
        rule = replace(rule, users=tuple(dict.fromkeys((*rule.users, *users))))
        service.approval_rules.rules[rule.id] = rule
        return rule
