"""Plausible faults in rules of merge requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    REFUSED,
    SIDE_EFFECT,
    STORY,
)
from conformance.proof.foreign.registry import foreign, instead
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
