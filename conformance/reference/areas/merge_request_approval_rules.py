"""Approval rules of merge requests, and which rules a merge request has to satisfy.

Specification: Endpoints > Merge request approvals.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.approval_rule_records import (
    PAGINATION_INTRODUCED,
    SYSTEM_TYPES,
    ApprovalRule,
    RuleRequest,
    RuleType,
    home_of,
    read_rule,
)
from conformance.reference.areas.approval_rules import ApprovalRules, answer, answer_unshown
from conformance.reference.areas.project_approval_configuration import ProjectApprovalConfigurations
from conformance.reference.areas.project_approval_rules import ProjectApprovalRules
from conformance.reference.errors import ForbiddenError, not_found
from conformance.reference.http import Route, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Project, User
    from conformance.reference.presenters import Json
    from conformance.reference.repositories import MergeRequest
    from conformance.reference.world import World


class MergeRequestApprovalRules(Behaviour):
    """The rules of merge requests: their own ones, those of the system, and those of the project."""

    name = "merge_request_approval_rules"

    # -- finding --------------------------------------------------------------------------------------------

    def merge_request(self, project: Project, iid: int) -> MergeRequest:
        """Find a merge request by its number in the project. Raise NotFoundError when there is none."""
        found = self.service.repositories.merge_requests.get((project.id, iid))
        if found is None:
            raise not_found("Merge Request")
        return found

    def project_of(self, merge_request: MergeRequest) -> Project:
        """Return the project of a merge request."""
        return self.service.identities.projects[merge_request.project_id]

    def rules(self, merge_request: MergeRequest) -> list[ApprovalRule]:
        """Return the rules that exist for the merge request itself, those of the system included."""
        return self._all.rules_of(home_of(merge_request))

    def listed(self, merge_request: MergeRequest) -> list[ApprovalRule]:
        """Return the rules that its list shows: by choice without those of the system, or with the project's."""
        choices = self.service.choices
        shown = self.rules(merge_request) if choices.system_rules_listed else self.own_rules(merge_request)
        return shown + (self.project_rules(merge_request) if choices.project_rules_listed_in_merge_requests else [])

    def find_listed(self, merge_request: MergeRequest, number: int) -> ApprovalRule:
        """Find a rule by its id among those listed. Raise NotFoundError when there is none."""
        choices = self.service.choices
        if choices.project_rules_listed_in_merge_requests:
            for rule in self.project_rules(merge_request):
                if rule.id == number:
                    return rule
        found = self.find(merge_request, number)
        if found.rule_type in SYSTEM_TYPES and not choices.system_rules_listed:
            raise not_found("Approval Rule")
        return found

    def find(self, merge_request: MergeRequest, number: int) -> ApprovalRule:
        """Find a rule of a merge request by its id. Raise NotFoundError when it has no such rule."""
        return self._all.find(home_of(merge_request), number)

    def own_rules(self, merge_request: MergeRequest) -> list[ApprovalRule]:
        """Return the rules that somebody gave the merge request."""
        return [rule for rule in self.rules(merge_request) if rule.rule_type not in SYSTEM_TYPES]

    def overwritten(self, merge_request: MergeRequest) -> bool:
        """Say whether rules exist for the merge request itself."""
        if self.service.choices.system_rules_overwrite:
            return bool(self.rules(merge_request))
        return bool(self.own_rules(merge_request))

    def project_rules(self, merge_request: MergeRequest) -> list[ApprovalRule]:
        """Return the rules of the project that apply to the target branch."""
        project = self.project_of(merge_request)
        rules = self.service.area(ProjectApprovalRules).rules(project)
        target = merge_request.target_branch
        return [rule for rule in rules if self._all.applies_to_branch(rule, project, target)]

    def effective_rules(self, merge_request: MergeRequest) -> list[ApprovalRule]:
        """Return the rules to be satisfied: its own ones or else those of the project, and system rules."""
        inherited, given = self.project_rules(merge_request), self.rules(merge_request)
        if not given and not [rule for rule in inherited if rule.rule_type in SYSTEM_TYPES]:
            return inherited
        own = [rule for rule in given if rule.rule_type not in SYSTEM_TYPES]
        overridable = [rule for rule in inherited if rule.rule_type not in SYSTEM_TYPES]
        system = [rule for rule in (*inherited, *given) if rule.rule_type in SYSTEM_TYPES]
        return [*(own or overridable), *system]

    # -- changing -------------------------------------------------------------------------------------------

    def create_rule(
        self, merge_request: MergeRequest, wanted: RuleRequest, source_id: int | None, caller: User
    ) -> ApprovalRule:
        """Give a merge request a rule of its own, or a copy of a project rule."""
        project = self.project_of(merge_request)
        self.require_overriding(project)
        if source_id is not None:
            source = self.service.area(ProjectApprovalRules).find(project, source_id)
            return self._all.add_rule(self.copied_project_rule(merge_request, source, wanted))
        return self._all.create_rule(project, home_of(merge_request), wanted, caller)

    def copied_project_rule(
        self, merge_request: MergeRequest, source: ApprovalRule, wanted: RuleRequest
    ) -> ApprovalRule:
        """Return a copy of a project rule's name, users and groups, with the number that was sent."""
        default = source.rule_type is RuleType.ANY_APPROVER
        return ApprovalRule(
            id=0,
            home=home_of(merge_request),
            name=source.name,
            approvals_required=wanted.approvals_required or 0,
            rule_type=RuleType.ANY_APPROVER if default else RuleType.REGULAR,
            users=source.users,
            groups=source.groups,
            source_id=source.id,
        )

    def update_rule(self, merge_request: MergeRequest, number: int, wanted: RuleRequest, caller: User) -> ApprovalRule:
        """Change a rule of a merge request. Raise NotFoundError or ForbiddenError."""
        project = self.project_of(merge_request)
        rule = self.find(merge_request, number)
        self.require_overriding(project)
        self.require_changeable(rule)
        return self._all.update_rule(project, rule, wanted, caller)

    def delete_rule(self, merge_request: MergeRequest, number: int) -> None:
        """Delete a rule of a merge request. Raise NotFoundError or ForbiddenError."""
        rule = self.find(merge_request, number)
        self.require_overriding(self.project_of(merge_request))
        self.require_changeable(rule)
        self._all.delete_rule(rule)

    def require_changeable(self, rule: ApprovalRule) -> None:
        """Raise ForbiddenError for rules that the system made."""
        if rule.rule_type in SYSTEM_TYPES:
            raise ForbiddenError("403 Forbidden - the rule is made by the system")

    def require_overriding(self, project: Project) -> None:
        """Raise ForbiddenError when the project wants its merge requests to have no rules of their own."""
        configuration = self.service.area(ProjectApprovalConfigurations).configuration(project)
        disabled = configuration.disable_overriding_approvers_per_merge_request
        if disabled and self.service.choices.overriding_enforced:
            raise ForbiddenError

    def require_writer(self, caller: User, project: Project) -> None:
        """Require that a user may change the rules of merge requests. Raise ForbiddenError."""
        role = Role(self.service.choices.merge_request_rules_writer)
        self.service.access.require_role(caller, project, role)

    # -- who may not approve --------------------------------------------------------------------------------

    def barred(self, merge_request: MergeRequest) -> set[int]:
        """Return the ids of those whom the project configuration keeps from approving.

        Authors may not approve unless it lets them; committers may unless it bars them.
        """
        project = self.project_of(merge_request)
        configuration = self.service.area(ProjectApprovalConfigurations).configuration(project)
        barred: set[int] = set()
        if not configuration.merge_requests_author_approval:
            barred.add(merge_request.author_id)
        if configuration.merge_requests_disable_committers_approval:
            barred |= self.service.repositories.committers_of(merge_request)
        return barred

    # -- showing --------------------------------------------------------------------------------------------

    def source_of(self, rule: ApprovalRule) -> ApprovalRule | None:
        """Return the project rule that a rule is a copy of, as long as it exists."""
        return None if rule.source_id is None else self._all.rules.get(rule.source_id)

    def overridden(self, rule: ApprovalRule) -> bool:
        """Say whether a copy differs from the project rule it comes from."""
        source = self.source_of(rule)
        if source is None:
            return False
        same_approvers = set(rule.users) == set(source.users) and set(rule.groups) == set(source.groups)
        same = (rule.name, rule.approvals_required) == (source.name, source.approvals_required)
        return not (same and same_approvers)

    def present(self, rule: ApprovalRule, merge_request: MergeRequest, viewer: User) -> Json:
        """Present a rule as far as it concerns a merge request, also one of the project."""
        source = self.source_of(rule)
        return {
            **self._all.present(rule, viewer, self.barred(merge_request)),
            "source_rule": None if source is None else {"approvals_required": source.approvals_required},
            "overridden": self.overridden(rule),
        }

    # -- the seeded world -----------------------------------------------------------------------------------

    def seed(self, world: World) -> Mapping[str, Fixture]:
        """Let a policy ask for an approval of the merge request that has a code owner."""
        known = world.one("code_owner_merge_request")
        opened = next(one for one in self.service.repositories.merge_requests.values() if one.id == known.id)
        users = (world.actors["second_approver"].id,)
        report = self.add_system_rule(opened, "Vulnerabilities", RuleType.REPORT_APPROVER, users)
        rules = self._all.rules_of(home_of(opened))
        owners = next(rule for rule in rules if rule.rule_type is RuleType.CODE_OWNER)
        return {
            "code_owner_merge_request": Fixture(known.id, None, {**known.extra, "rule_id": owners.id}),
            "report_approver_merge_request": Fixture(known.id, None, {**known.extra, "rule_id": report.id}),
        }

    def add_system_rule(
        self, merge_request: MergeRequest, name: str, rule_type: RuleType, users: tuple[int, ...]
    ) -> ApprovalRule:
        """Add a rule as the system does, asking for one approval of these users."""
        report = "scan_finding" if rule_type is RuleType.REPORT_APPROVER else None
        return self._all.add_rule(
            ApprovalRule(
                id=0,
                home=home_of(merge_request),
                name=name,
                approvals_required=1,
                rule_type=rule_type,
                report_type=report,
                users=users,
            )
        )

    @property
    def _all(self) -> ApprovalRules:
        return self.service.area(ApprovalRules)


def merge_request_of(request: Request) -> MergeRequest:
    """Return the merge request that a path names. Raise InvalidError or NotFoundError."""
    rules = request.area(MergeRequestApprovalRules)
    return rules.merge_request(request.project, request.path_id("merge_request_iid"))


def require_reader(request: Request) -> None:
    """Require that the caller may read the merge requests of the project. Raise ForbiddenError."""
    request.area(ApprovalRules).require_reader(request.caller, request.project)


def _list(request: Request) -> Response:
    require_reader(request)
    rules, merge_request = request.area(MergeRequestApprovalRules), merge_request_of(request)
    return request.collection(
        rules.listed(merge_request), lambda rule: rules.present(rule, merge_request, request.caller)
    )


def _read(request: Request) -> Response:
    require_reader(request)
    rules, merge_request = request.area(MergeRequestApprovalRules), merge_request_of(request)
    rule = rules.find_listed(merge_request, request.path_id("approval_rule_id"))
    return ok(rules.present(rule, merge_request, request.caller))


def _create(request: Request) -> Response:
    rules, merge_request = _for_writing(request)
    source_id = request.parameters.optional_integer("approval_project_rule_id")
    named = source_id is None or request.choices.copies_need_names
    wanted = read_rule(request.parameters, request.service.version, complete=True, usernames=True, named=named)
    rule = rules.create_rule(merge_request, wanted, source_id, request.caller)
    return answer(rules.present(rule, merge_request, request.caller), request.choices.created_code)


def _update(request: Request) -> Response:
    rules, merge_request = _for_writing(request)
    wanted = read_rule(request.parameters, request.service.version, complete=False, usernames=True)
    remove = request.parameters.optional_boolean("remove_hidden_groups")
    number = request.path_id("approval_rule_id")
    rule = rules.update_rule(merge_request, number, replace(wanted, remove_hidden_groups=bool(remove)), request.caller)
    return answer(rules.present(rule, merge_request, request.caller), request.choices.updated_code)


def _delete(request: Request) -> Response:
    rules, merge_request = _for_writing(request)
    rules.delete_rule(merge_request, request.path_id("approval_rule_id"))
    return answer_unshown({}, request.choices.rule_deleted_code, request.choices)


def _for_writing(request: Request) -> tuple[MergeRequestApprovalRules, MergeRequest]:
    rules = request.area(MergeRequestApprovalRules)
    rules.require_writer(request.caller, request.project)
    return rules, merge_request_of(request)


_RULES = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"
_route = partial(Route, subject=Kind.PROJECT)

AREA = Area(
    MergeRequestApprovalRules,
    (
        _route("GET", _RULES, _list, paginated=PAGINATION_INTRODUCED),
        _route("GET", f"{_RULES}/:approval_rule_id", _read),
        _route("POST", _RULES, _create),
        _route("PUT", f"{_RULES}/:approval_rule_id", _update),
        _route("DELETE", f"{_RULES}/:approval_rule_id", _delete),
    ),
)
