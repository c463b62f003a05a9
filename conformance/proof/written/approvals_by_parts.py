"""Faults of changes whose parts depend on each other, although they belong to different things."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import bodies, told_otherwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.areas.approval_rule_records import RuleRequest

_PROJECT_RULE = "PUT /projects/:id/approval_rules/:approval_rule_id"
_MERGE_REQUEST_RULE = "PUT /projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id"
_LONGEST_NAME = 30


def _twisting(key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Service], None]:
    """Read another body than the one that was sent."""
    return lambda service: bodies(service, key, change)


def _without_groups(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "group_ids": []} if body.get("usernames") and body.get("group_ids") else body


def _cut(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "name": body["name"][:_LONGEST_NAME]} if isinstance(body.get("name"), str) else body


for _key, _groups, _name in (
    (_PROJECT_RULE, "project-approval-rules.update.group-ids", "project-approval-rules.update.stored"),
    (
        _MERGE_REQUEST_RULE,
        "merge-request-approvals.rules.update.groups-are-replaced",
        "merge-request-approvals.rules.update.name",
    ),
):
    _says = "A change that names somebody by username takes no group."
    fault(_groups)(named("groups_beside_usernames_are_lost_in_a_change", _says, _twisting(_key, _without_groups)))
    _says = f"A change of a rule cuts its name after {_LONGEST_NAME} characters."
    fault(_name)(named("names_are_cut_in_a_change", _says, _twisting(_key, _cut)))


def _alone(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a change that keeps one setting alone, if it is sent."""
    return lambda body: {name: body[name]} if name in body else body


for _setting in ("reset_approvals_on_push", "require_password_to_approve"):
    _says = f"A change of the configuration that sends {_setting} stores nothing else."
    _fault = _twisting("POST /projects/:id/approvals", _alone(_setting))
    fault("project-approval-configuration.change.several")(named(f"{_setting}_is_stored_alone", _says, _fault))


@fault("project-approval-rules.update.applies-to-all-protected-branches")
def a_change_without_the_flag_switches_it_on(service: Service) -> None:
    """A change of a project's rule that sends no applies_to_all_protected_branches switches it on."""

    def on(wanted: RuleRequest) -> RuleRequest:
        is_unsent = wanted.applies_to_all_protected_branches is None
        return replace(wanted, applies_to_all_protected_branches=True) if is_unsent else wanted

    told_otherwise(service.project_approval_rules, "update_rule", 2, on)
