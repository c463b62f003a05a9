"""Approving merge requests: who did, what is left, and taking approvals back.

Specification: Endpoints > Merge request approvals; States and transitions > Approval and integration moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hmac import compare_digest
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.approval_rule_records import ApprovalRule, RuleType
from conformance.reference.areas.approval_rules import ApprovalRules, answer, answer_unshown
from conformance.reference.areas.approval_settings import ApprovalSettings
from conformance.reference.areas.merge_request_approval_rules import (
    MergeRequestApprovalRules,
    merge_request_of,
    require_reader,
)
from conformance.reference.areas.project_approval_configuration import (
    ConfigurationChange,
    ProjectApprovalConfigurations,
)
from conformance.reference.choices import Counting, Repeat
from conformance.reference.errors import ApiError, StatedError
from conformance.reference.http import Route, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.store import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import User
    from conformance.reference.presenters import Json
    from conformance.reference.repositories import MergeRequest
    from conformance.reference.world import Fixture, World


Rules = Sequence[ApprovalRule]


class ApprovalRefusedError(ApiError):
    """The caller may not approve, did so before, or sent no or a wrong password where one is required."""

    choice = "approval_refused_code"
    prefix = "401 Unauthorized"


class NotApprovedError(ApiError):
    """The caller takes back an approval that was never given, and the choices refuse that."""

    choice = "absent_unapproval_code"
    prefix = "404 Not Found"


@dataclass(frozen=True, slots=True)
class Approval:
    """One user's approval of a merge request."""

    user_id: int
    approved_at: datetime


class MergeRequestApprovals(Behaviour):
    """The approvals of all merge requests."""

    name = "merge_request_approvals"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.approvals: Table[int, tuple[Approval, ...]] = Table(service.store)  # by merge request

    # -- asking ---------------------------------------------------------------------------------------------

    def approvals_of(self, merge_request: MergeRequest) -> tuple[Approval, ...]:
        """Return the approvals of a merge request, oldest first, without those of users that are gone."""
        given = self.approvals.get(merge_request.id)
        if not given:
            return ()
        known = self.service.identities.users
        return tuple(approval for approval in given if approval.user_id in known)

    def approved_by(self, user: User, merge_request: MergeRequest) -> bool:
        """Say whether a user has approved."""
        return any(approval.user_id == user.id for approval in self.approvals_of(merge_request))

    def approvers(self, rule: ApprovalRule, merge_request: MergeRequest) -> tuple[int, ...]:
        """Return the users who have approved and whose approval a rule counts."""
        given = tuple([approval.user_id for approval in self.approvals_of(merge_request)])
        if not given or rule.rule_type is RuleType.ANY_APPROVER:
            return given
        eligible = set(self.service.area(ApprovalRules).eligible_approvers(rule))
        return tuple(number for number in given if number in eligible)

    def missing(self, rule: ApprovalRule, merge_request: MergeRequest) -> int:
        """Return how many approvals a rule still needs, never less than 0."""
        if not rule.approvals_required:
            return 0
        return max(0, rule.approvals_required - len(self.approvers(rule, merge_request)))

    def rules(self, merge_request: MergeRequest) -> list[ApprovalRule]:
        """Return the rules that a merge request has to satisfy."""
        return self.service.area(MergeRequestApprovalRules).effective_rules(merge_request)

    def approvals_required(self, merge_request: MergeRequest, rules: Rules | None = None) -> int:
        """Return how many approvals the rules require together; `rules` are those of the merge request, if known."""
        known = self.rules(merge_request) if rules is None else rules
        return self.counted([rule.approvals_required for rule in known])

    def approvals_left(self, merge_request: MergeRequest, rules: Rules | None = None) -> int:
        """Return how many approvals are missing; `rules` are those of the merge request, if known."""
        known = self.rules(merge_request) if rules is None else rules
        return self.counted([self.missing(rule, merge_request) for rule in known])

    def counted(self, numbers: Iterable[int]) -> int:
        """Make one number of those of several rules, as chosen."""
        if self.service.choices.approvals_counted is Counting.HIGHEST:
            return max(numbers, default=0)
        return sum(numbers)

    # -- approving ------------------------------------------------------------------------------------------

    def approve(self, merge_request: MergeRequest, caller: User, sha: str | None, password: str | None) -> None:
        """Approve in the caller's name.

        Raise ApprovalRefusedError, or StatedError with 409 for a sha that is not the current HEAD.
        """
        self.require_allowed(caller, merge_request)
        self.require_current_head(merge_request, sha)
        self.require_password(caller, merge_request, password)
        if not self.approved_by(caller, merge_request):
            self.add_approval(caller, merge_request)
        elif self.service.choices.repeated_approval is Repeat.REFUSE:
            raise ApprovalRefusedError

    def unapprove(self, merge_request: MergeRequest, caller: User) -> None:
        """Take back the caller's approval. Raise NotApprovedError when there is none, if chosen so."""
        if self.approved_by(caller, merge_request):
            self.remove_approval(caller, merge_request)
        elif self.service.choices.absent_unapproval is Repeat.REFUSE:
            raise NotApprovedError

    def reset_approvals(self, merge_request: MergeRequest, caller: User) -> None:
        """Take back all approvals. Raise StatedError with 401 for callers other than the bots for it."""
        self.require_bot(caller, merge_request)
        self.clear_approvals(merge_request)

    def add_approval(self, user: User, merge_request: MergeRequest) -> None:
        """Add a user's approval to those that are there."""
        approval = Approval(user.id, self.service.clock.now())
        self.approvals[merge_request.id] = (*self.approvals_of(merge_request), approval)

    def remove_approval(self, user: User, merge_request: MergeRequest) -> None:
        """Remove one user's approval and keep the others."""
        given = self.approvals_of(merge_request)
        self.approvals[merge_request.id] = tuple(one for one in given if one.user_id != user.id)

    def clear_approvals(self, merge_request: MergeRequest) -> None:
        """Remove all approvals."""
        self.approvals.pop(merge_request.id, None)

    # -- who may --------------------------------------------------------------------------------------------

    def may_approve(self, user: User, merge_request: MergeRequest) -> bool:
        """Say whether a user may approve: one whom a rule names or, by choice, any developer, if not barred."""
        rules = self.service.area(MergeRequestApprovalRules)
        if user.id in rules.barred(merge_request):
            return False
        role = self.service.identities.role_in(user, rules.project_of(merge_request))
        if role >= Role.DEVELOPER and self.service.choices.approval_outside_rules:
            return True
        eligible = self.service.area(ApprovalRules).eligible_approvers
        return any(user.id in eligible(rule) for rule in self.rules(merge_request))

    def require_allowed(self, caller: User, merge_request: MergeRequest) -> None:
        """Raise ApprovalRefusedError when the caller may not approve."""
        if not self.may_approve(caller, merge_request):
            raise ApprovalRefusedError

    def require_current_head(self, merge_request: MergeRequest, sha: str | None) -> None:
        """Raise StatedError with 409 when a sha was sent that is not the current HEAD."""
        head = self.service.repositories.head_of(merge_request)
        if sha is not None and sha != head:
            raise StatedError(409, f"SHA does not match HEAD of source branch: {head}")

    def require_password(self, caller: User, merge_request: MergeRequest, password: str | None) -> None:
        """Raise ApprovalRefusedError when a password is required and it is missing or not the caller's."""
        if self.password_required(merge_request) and not self.password_matches(caller, password):
            raise ApprovalRefusedError

    def password_required(self, merge_request: MergeRequest) -> bool:
        """Say whether approving needs a password: the configuration or the approval settings require it."""
        project = self.service.area(MergeRequestApprovalRules).project_of(merge_request)
        if self.service.area(ProjectApprovalConfigurations).own_configuration(project).require_password_to_approve:
            return True
        # A service may be put together without the settings.
        settings: ApprovalSettings | None = getattr(self.service, ApprovalSettings.name, None)
        return settings is not None and settings.password_required(project)

    def password_matches(self, caller: User, password: str | None) -> bool:
        """Say whether this is the caller's password."""
        return compare_digest((password or "").encode("utf-8", "replace"), caller.password.encode())

    def require_bot(self, caller: User, merge_request: MergeRequest) -> None:
        """Raise StatedError with 401 unless the caller is a bot of the project or of a group around it."""
        project = self.service.area(MergeRequestApprovalRules).project_of(merge_request)
        around = {(Kind.GROUP, group.id) for group in self.service.identities.lineage(project)}
        around.add((Kind.PROJECT, project.id))
        if caller.bot is None or (caller.bot.kind, caller.bot.subject_id) not in around:
            raise StatedError(401, "401 Unauthorized")

    # -- showing --------------------------------------------------------------------------------------------

    def status(self, merge_request: MergeRequest, viewer: User) -> Json:
        """Present the merge request approval status."""
        present, rules = self.service.present, self.rules(merge_request)
        shown: Json = {
            "id": merge_request.id,
            "iid": merge_request.iid,
            "project_id": merge_request.project_id,
            "title": merge_request.title,
            "description": merge_request.description,
            "state": merge_request.state,
            "created_at": present.timestamp(merge_request.created_at),
            "updated_at": present.timestamp(merge_request.updated_at),
            "merge_status": merge_request.merge_status,
            "approvals_required": self.approvals_required(merge_request, rules),
            "approvals_left": self.approvals_left(merge_request, rules),
            "approved_by": [self.present_approval(one) for one in self.approvals_of(merge_request)],
        }
        if self.service.choices.extra_fields:
            shown |= self.status_extras(merge_request, viewer, rules)
        return shown

    def status_extras(self, merge_request: MergeRequest, viewer: User, rules: Rules) -> Json:
        """Present what real servers say beyond the described fields, given the rules of the merge request."""
        approved = self.approved_by(viewer, merge_request)
        left = [rule for rule in rules if self.missing(rule, merge_request)]
        return {
            "approved": not left,
            "user_has_approved": approved,
            "user_can_approve": not approved and self.may_approve(viewer, merge_request),
            "require_password_to_approve": self.password_required(merge_request),
            "suggested_approvers": [],
            "approvers": [],
            "approver_groups": [],
            "approval_rules_left": [
                {"id": rule.id, "name": rule.name, "rule_type": rule.rule_type.value} for rule in left
            ],
            "has_approval_rules": any(rule.approvals_required for rule in rules),
            "merge_request_approvers_available": True,
            "multiple_approval_rules_available": True,
        }

    def present_approval(self, approval: Approval) -> Json:
        """Present one entry of approved_by in the status: the user lies one level deeper."""
        shown: Json = {"user": self.service.present.user(self.service.identities.users[approval.user_id])}
        if self.service.choices.extra_fields:
            shown["approved_at"] = self.service.present.timestamp(approval.approved_at)
        return shown

    def state(self, merge_request: MergeRequest, viewer: User) -> Json:
        """Present the merge request approval state."""
        return {
            "approval_rules_overwritten": self.service.area(MergeRequestApprovalRules).overwritten(merge_request),
            "rules": [self.present_state_rule(rule, merge_request, viewer) for rule in self.rules(merge_request)],
        }

    def present_state_rule(self, rule: ApprovalRule, merge_request: MergeRequest, viewer: User) -> Json:
        """Present a rule of the state: here approved_by holds the users themselves."""
        rules = self.service.area(MergeRequestApprovalRules)
        shown = {
            **rules.present(rule, merge_request, viewer),
            "approved_by": self.service.present.users(self.approvers(rule, merge_request)),
            "approved": self.missing(rule, merge_request) == 0,
        }
        if self.service.choices.extra_fields:
            shown["code_owner"] = rule.rule_type is RuleType.CODE_OWNER
        return shown

    # -- the seeded world -----------------------------------------------------------------------------------

    def seed(self, world: World) -> Mapping[str, Fixture]:
        """Let one project ask for the password of those who approve."""
        project = self.service.identities.projects[world.one("guarded_project").id]
        change = ConfigurationChange(require_password_to_approve=True)
        self.service.area(ProjectApprovalConfigurations).change_configuration(project, change)
        return {}


def _status(request: Request) -> Response:
    require_reader(request)
    return ok(request.area(MergeRequestApprovals).status(merge_request_of(request), request.caller))


def _state(request: Request) -> Response:
    require_reader(request)
    return ok(request.area(MergeRequestApprovals).state(merge_request_of(request), request.caller))


def _approve(request: Request) -> Response:
    approvals, merge_request = request.area(MergeRequestApprovals), merge_request_of(request)
    sha = request.parameters.optional_string("sha")
    password = request.parameters.optional_string("approval_password")
    approvals.approve(merge_request, request.caller, sha, password)
    return answer(approvals.status(merge_request, request.caller), request.choices.approved_code)


def _unapprove(request: Request) -> Response:
    approvals, merge_request = request.area(MergeRequestApprovals), merge_request_of(request)
    approvals.unapprove(merge_request, request.caller)
    status = approvals.status(merge_request, request.caller)
    return answer_unshown(status, request.choices.unapproved_code, request.choices)


def _reset(request: Request) -> Response:
    approvals = request.area(MergeRequestApprovals)
    approvals.reset_approvals(merge_request_of(request), request.caller)
    code = request.choices.approvals_reset_code
    return answer_unshown(code, code, request.choices)  # real clients read JSON here


_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_route = partial(Route, subject=Kind.PROJECT)

AREA = Area(
    MergeRequestApprovals,
    (
        _route("GET", f"{_MERGE_REQUEST}/approvals", _status),
        _route("GET", f"{_MERGE_REQUEST}/approval_state", _state),
        _route("POST", f"{_MERGE_REQUEST}/approve", _approve),
        _route("POST", f"{_MERGE_REQUEST}/unapprove", _unapprove),
        _route("PUT", f"{_MERGE_REQUEST}/reset_approvals", _reset),
    ),
)
