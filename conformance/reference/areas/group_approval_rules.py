"""Approval rules of groups.

Specification: Endpoints > Group approval rules.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.approval_rule_records import (
    PAGINATION_INTRODUCED,
    ApprovalRule,
    RuleRequest,
    RuleType,
    home_of,
    read_rule,
    read_rule_type,
)
from conformance.reference.areas.approval_rules import ApprovalRules, answer
from conformance.reference.errors import NoRouteError, RejectedError
from conformance.reference.http import Route
from conformance.reference.identity import Kind, Role
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group, User
    from conformance.reference.presenters import Json
    from conformance.reference.world import World


class GroupApprovalRules(Behaviour):
    """The approval rules of groups. They say nothing about merge requests: no sentence links the two."""

    name = "group_approval_rules"

    def require_offered(self) -> None:
        """Raise NoRouteError when the feature flag approval_group_rules is off."""
        if not self.service.choices.group_approval_rules_offered:
            raise NoRouteError

    def rules(self, group: Group) -> list[ApprovalRule]:
        """Return the rules of a group."""
        return self._all.rules_of(home_of(group))

    def create_rule(self, group: Group, wanted: RuleRequest, caller: User) -> ApprovalRule:
        """Create a rule of a group."""
        self.require_creatable(wanted.rule_type)
        return self._all.create_rule(group, home_of(group), wanted, caller)

    def update_rule(self, group: Group, number: int, wanted: RuleRequest, caller: User) -> ApprovalRule:
        """Change a rule of a group; what was not sent is kept. Raise NotFoundError when it has no such rule."""
        rule = self._all.find(home_of(group), number)
        if wanted.rule_type is not rule.rule_type:
            self.require_creatable(wanted.rule_type)
        return self._all.update_rule(group, rule, wanted, caller)

    def require_creatable(self, rule_type: RuleType | None) -> None:
        """Raise RejectedError for the type that policies alone create, unless the choices let callers do it."""
        allowed = self.service.choices.report_rules_creatable_in_groups
        if rule_type is RuleType.REPORT_APPROVER and not allowed:
            raise RejectedError("is reserved for policies", parameter="rule_type")

    def present(self, rule: ApprovalRule, viewer: User) -> Json:
        """Present a rule of a group."""
        branches = self._all.present_branches(rule, self.service.present.group_protected_branch)
        return {**self._all.present(rule, viewer), **branches}

    def seed(self, world: World) -> Mapping[str, Fixture]:
        """Add to a group with the usual staff a rule that a policy made, with a protected branch."""
        sibling = self.service.identities.groups[world.one("sibling_group").id]
        approver = world.actors["approver"].id
        branches = tuple(branch.id for branch in self._all.branches_of(sibling))
        rule = self._all.add_rule(
            ApprovalRule(
                id=0,
                home=home_of(sibling),
                name="Vulnerabilities in the group",
                approvals_required=1,
                rule_type=RuleType.REPORT_APPROVER,
                report_type="scan_finding",
                users=(approver,),
                protected_branches=branches[:1],
            )
        )
        known = Fixture(sibling.id, sibling.full_path, {"rule_id": rule.id})
        return {"policy_group": known, "branch_rule_group": known}

    @property
    def _all(self) -> ApprovalRules:
        return self.service.area(ApprovalRules)


def _list(request: Request) -> Response:
    groups = request.area(GroupApprovalRules)
    groups.require_offered()
    return request.collection(groups.rules(request.group), lambda rule: groups.present(rule, request.caller))


def _create(request: Request) -> Response:
    groups = request.area(GroupApprovalRules)
    groups.require_offered()
    rule = groups.create_rule(request.group, _wanted(request, complete=True), request.caller)
    return answer(groups.present(rule, request.caller), request.choices.created_code)


def _update(request: Request) -> Response:
    groups = request.area(GroupApprovalRules)
    groups.require_offered()
    number = request.path_id("approval_rule_id")
    rule = groups.update_rule(request.group, number, _wanted(request, complete=False), request.caller)
    return answer(groups.present(rule, request.caller), request.choices.updated_code)


def _wanted(request: Request, *, complete: bool) -> RuleRequest:
    said = read_rule(request.parameters, request.service.version, complete=complete, usernames=False)
    return replace(said, rule_type=read_rule_type(request.parameters, request.choices))


_RULES = "/groups/:id/approval_rules"
# The endpoints are for group administrators, which are its owners and those of the installation.
_route = partial(Route, subject=Kind.GROUP, least_role=Role.OWNER, takes_query=True)

AREA = Area(
    GroupApprovalRules,
    (
        _route("GET", _RULES, _list, paginated=PAGINATION_INTRODUCED),
        _route("POST", _RULES, _create),
        _route("PUT", f"{_RULES}/:approval_rule_id", _update),
    ),
)
