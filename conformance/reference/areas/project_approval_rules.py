"""Approval rules of projects.

Specification: Endpoints > Project approval rules.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.approval_rule_records import (
    ALL_BRANCHES_INTRODUCED,
    PAGINATION_INTRODUCED,
    ApprovalRule,
    RuleRequest,
    RuleType,
    home_of,
    read_rule,
    read_rule_type,
)
from conformance.reference.areas.approval_rules import ApprovalRules, answer, answer_unshown
from conformance.reference.errors import RejectedError
from conformance.reference.http import Route
from conformance.reference.identity import Kind, Role
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Project, User
    from conformance.reference.presenters import Json
    from conformance.reference.world import World

# license_scanning is deprecated since 15.9, and still taken.
REPORT_TYPES = ("license_scanning", "code_coverage")


class ProjectApprovalRules(Behaviour):
    """The approval rules of projects."""

    name = "project_approval_rules"

    def rules(self, project: Project) -> list[ApprovalRule]:
        """Return the rules of a project."""
        return self._all.rules_of(home_of(project))

    def find(self, project: Project, number: int) -> ApprovalRule:
        """Find a rule of a project by its id. Raise NotFoundError when it has no such rule."""
        return self._all.find(home_of(project), number)

    def create_rule(self, project: Project, wanted: RuleRequest, caller: User) -> ApprovalRule:
        """Create a rule of a project."""
        self.require_creatable(wanted)
        return self._all.create_rule(project, home_of(project), wanted, caller)

    def update_rule(self, project: Project, number: int, wanted: RuleRequest, caller: User) -> ApprovalRule:
        """Change a rule of a project. Raise NotFoundError when it has no such rule."""
        return self._all.update_rule(project, self.find(project, number), wanted, caller)

    def delete_rule(self, project: Project, number: int) -> None:
        """Delete a rule of a project. Raise NotFoundError when it has no such rule."""
        self._all.delete_rule(self.find(project, number))

    def require_creatable(self, wanted: RuleRequest) -> None:
        """Raise RejectedError for a report_approver rule without a report, or when the choices refuse all.

        The text describes report_type for such rules, and says that callers must not create them.
        """
        if wanted.rule_type is not RuleType.REPORT_APPROVER:
            return
        if not self.service.choices.report_rules_creatable_in_projects:
            raise RejectedError("is reserved for policies", parameter="rule_type")
        if wanted.report_type is None:
            raise RejectedError("can't be blank", parameter="report_type")

    def require_writer(self, caller: User, project: Project) -> None:
        """Require that a user may change the rules of a project. Raise ForbiddenError."""
        role = Role(self.service.choices.approval_rules_writer)
        self.service.access.require_role(caller, project, role)

    def present(self, rule: ApprovalRule, viewer: User) -> Json:
        """Present a rule of a project."""
        branches = self._all.present_branches(rule, self.service.present.project_protected_branch)
        return {**self._all.present(rule, viewer), **branches}

    def seed(self, world: World) -> Mapping[str, Fixture]:
        """Add to a project a rule that a policy made, and let one branch need its code owners."""
        branches = self.service.repositories.protected_branches
        owned = branches[world.one("second_protected_branch").id]
        branches[owned.id] = replace(owned, code_owner_approval_required=True)
        sibling = self.service.identities.projects[world.one("sibling_project").id]
        rule = self._all.add_rule(
            ApprovalRule(
                id=0,
                home=home_of(sibling),
                name="Vulnerabilities",
                approvals_required=1,
                rule_type=RuleType.REPORT_APPROVER,
                report_type="scan_finding",
                users=(world.actors["approver"].id,),
            )
        )
        return {"policy_project": Fixture(sibling.id, sibling.full_path, {"rule_id": rule.id})}

    @property
    def _all(self) -> ApprovalRules:
        return self.service.area(ApprovalRules)


def _list(request: Request) -> Response:
    projects = _for_reading(request)
    return request.collection(projects.rules(request.project), lambda rule: projects.present(rule, request.caller))


def _read(request: Request) -> Response:
    projects = _for_reading(request)
    rule = projects.find(request.project, request.path_id("approval_rule_id"))
    return answer(projects.present(rule, request.caller), 200)


def _create(request: Request) -> Response:
    projects = _for_writing(request)
    wanted = _wanted(request)
    wanted = replace(
        wanted,
        rule_type=read_rule_type(request.parameters, request.choices),
        report_type=request.parameters.optional_choice("report_type", REPORT_TYPES),
    )
    rule = projects.create_rule(request.project, wanted, request.caller)
    return answer(projects.present(rule, request.caller), request.choices.created_code)


def _update(request: Request) -> Response:
    projects = _for_writing(request)
    number = request.path_id("approval_rule_id")
    remove = request.parameters.optional_boolean("remove_hidden_groups")
    wanted = replace(_wanted(request), remove_hidden_groups=bool(remove))
    rule = projects.update_rule(request.project, number, wanted, request.caller)
    return answer(projects.present(rule, request.caller), request.choices.updated_code)


def _delete(request: Request) -> Response:
    _for_writing(request).delete_rule(request.project, request.path_id("approval_rule_id"))
    return answer_unshown({}, request.choices.rule_deleted_code, request.choices)


def _for_reading(request: Request) -> ProjectApprovalRules:
    request.area(ApprovalRules).require_reader(request.caller, request.project)
    return request.area(ProjectApprovalRules)


def _for_writing(request: Request) -> ProjectApprovalRules:
    projects = request.area(ProjectApprovalRules)
    projects.require_writer(request.caller, request.project)
    return projects


def _wanted(request: Request) -> RuleRequest:
    """Read what creations and updates have in common; both require name and approvals_required."""
    parameters, version = request.parameters, request.service.version
    said = read_rule(parameters, version, complete=True, usernames=True)
    everywhere = None
    if version >= ALL_BRANCHES_INTRODUCED:
        everywhere = parameters.optional_boolean("applies_to_all_protected_branches")
    return replace(
        said,
        protected_branch_ids=parameters.optional_integers("protected_branch_ids"),
        applies_to_all_protected_branches=everywhere,
    )


_RULES = "/projects/:id/approval_rules"
_route = partial(Route, subject=Kind.PROJECT)

AREA = Area(
    ProjectApprovalRules,
    (
        _route("GET", _RULES, _list, paginated=PAGINATION_INTRODUCED),
        _route("GET", f"{_RULES}/:approval_rule_id", _read),
        _route("POST", _RULES, _create),
        _route("PUT", f"{_RULES}/:approval_rule_id", _update),
        _route("DELETE", f"{_RULES}/:approval_rule_id", _delete),
    ),
)
