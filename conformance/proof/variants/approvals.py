"""Variants in approvals of merge requests, and the alterations that make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.areas.approval_rule_records import ApprovalRule, RuleType
from conformance.reference.choices import Choices, Counting
from conformance.reference.errors import RejectedError, ThrottledError, not_found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import User
    from conformance.reference.repositories import MergeRequest
    from conformance.reference.routing import Route

_SHA_DIGITS = 40
_APPROVE = "POST /projects/:id/merge_requests/:merge_request_iid/approve"
_CLEARED_AFTER_SECONDS = 0.2
_HELD_BACK_SECONDS = 0.5
_SUCCESS = range(200, 300)


def looks_at_the_sha_first(service: Service) -> None:
    """Check the sha before the caller, and refuse an invalid one: other characters, or only zeros."""
    approvals = service.merge_request_approvals
    approve = approvals.approve

    def after_the_sha(merge_request: Any, caller: Any, sha: str | None, password: str | None) -> None:
        if sha is not None and (len(sha) != _SHA_DIGITS or set(sha) - set("0123456789abcdef") or not sha.strip("0")):
            raise RejectedError("is no commit", parameter="sha")
        approvals.require_current_head(merge_request, sha)
        approve(merge_request, caller, sha, password)

    approvals.approve = after_the_sha


def resets_only_what_is_approved(service: Service) -> None:
    """Refuse to reset a merge request that nobody has approved."""
    approvals = service.merge_request_approvals
    reset = approvals.reset_approvals

    def reset_approved(merge_request: Any, caller: Any) -> None:
        approvals.require_bot(caller, merge_request)
        if not approvals.approvals_of(merge_request):
            raise not_found("Approval")
        reset(merge_request, caller)

    approvals.reset_approvals = reset_approved


def holds_back_after_a_wrong_password(service: Service) -> None:
    """Answer 429 for a moment to whoever sent a wrong password."""
    approvals, wrong = service.merge_request_approvals, dict[int, float]()
    matches = approvals.password_matches

    def matches_by_now(caller: User, password: str | None) -> bool:
        now = service.clock.seconds()
        if password is not None and now - wrong.get(caller.id, -_HELD_BACK_SECONDS) < _HELD_BACK_SECONDS:
            raise ThrottledError
        is_right = matches(caller, password)
        if password is not None and not is_right:
            wrong[caller.id] = now
        return is_right

    approvals.password_matches = matches_by_now


def lists_nobody_in_default_rules(service: Service) -> None:
    """Let the rule that anybody satisfies list nobody who has approved."""
    approvals = service.merge_request_approvals
    present = approvals.present_state_rule

    def shown(rule: ApprovalRule, merge_request: Any, viewer: Any) -> dict[str, Any]:
        record: dict[str, Any] = present(rule, merge_request, viewer)
        return {**record, "approved_by": []} if rule.rule_type is RuleType.ANY_APPROVER else record

    approvals.present_state_rule = shown


def reads_shas_in_any_case(service: Service) -> None:
    """Accept a sha in upper case."""
    approvals = service.merge_request_approvals
    require = approvals.require_current_head

    def in_any_case(merge_request: Any, sha: str | None) -> None:
        require(merge_request, sha and sha.lower())

    approvals.require_current_head = in_any_case


def ignores_a_sha_it_cannot_read(service: Service) -> None:
    """Treat a sha that is not text as not sent."""
    handler = service.routes.get(_APPROVE).handler

    def approve(request: Request) -> Response:
        try:
            body = orjson.loads(request.body or b"{}")
        except orjson.JSONDecodeError:
            return handler(request)
        if isinstance(body, dict) and isinstance(body.get("sha"), dict | list):
            request.body = orjson.dumps({name: value for name, value in body.items() if name != "sha"})
        return handler(request)

    service.routes.change(_APPROVE, handler=approve)


def counts_each_approval_once(service: Service) -> None:
    """Count an approval for only one rule, the first that needs one; any_approver rules come last."""
    approvals, rules = service.merge_request_approvals, service.approval_rules

    def shares(merge_request: MergeRequest) -> Iterator[tuple[int, tuple[int, ...]]]:
        left = [approval.user_id for approval in approvals.approvals_of(merge_request)]
        known = approvals.rules(merge_request)
        in_turn = sorted(known, key=lambda rule: (rule.rule_type is RuleType.ANY_APPROVER, not rule.approvals_required))
        for rule in in_turn:
            able = left
            if rule.rule_type is not RuleType.ANY_APPROVER:
                able = [user for user in left if user in rules.eligible_approvers(rule)]
            mine = able if rule is in_turn[-1] else able[: max(rule.approvals_required, 1)]
            left = [user for user in left if user not in mine]
            yield rule.id, tuple(mine)

    def approvers(rule: ApprovalRule, merge_request: MergeRequest) -> tuple[int, ...]:
        return dict(shares(merge_request)).get(rule.id, ())

    approvals.approvers = approvers


def calls_no_rule_approved(service: Service) -> None:
    """Show no rule as approved before the merge request is merged."""
    approvals = service.merge_request_approvals
    present = approvals.present_state_rule

    def shown(rule: Any, merge_request: Any, viewer: Any) -> dict[str, Any]:
        return {**present(rule, merge_request, viewer), "approved": False}

    approvals.present_state_rule = shown


def resets_in_the_background(service: Service) -> None:
    """Answer a reset of approvals at once, and do it a moment later."""
    approvals, seconds = service.merge_request_approvals, service.clock.seconds
    clear, of = approvals.clear_approvals, approvals.approvals_of
    due: dict[int, float] = {}

    def later(merge_request: Any) -> None:
        due[merge_request.id] = seconds() + _CLEARED_AFTER_SECONDS

    def known(merge_request: Any) -> Any:
        if seconds() >= due.get(merge_request.id, seconds() + 1):
            del due[merge_request.id]
            clear(merge_request)
        return of(merge_request)

    approvals.clear_approvals = later
    approvals.approvals_of = known


def drops_approvals_when_settings_change(service: Service) -> None:
    """Withdraw the approvals of a project's merge requests when its configuration or settings change."""
    keys = ("POST /projects/:id/approvals", "PUT /projects/:id/merge_request_approval_setting")

    def change(route: Route, request: Request, answer: Response) -> None:
        if route.key in keys and answer.status < 300:  # noqa: PLR2004 - HTTP's own number
            for merge_request in service.repositories.merge_requests.values():
                if merge_request.project_id == request.project.id:
                    service.merge_request_approvals.approvals.pop(merge_request.id, None)

    transform(service, change)


def drops_approvals_when_rules_change(service: Service) -> None:
    """Withdraw the approvals of every merge request whose rules change."""

    def change(route: Route, request: Request, answer: Response) -> None:
        if route.method == "GET" or "approval_rules" not in route.path or answer.status not in _SUCCESS:
            return
        approvals = service.merge_request_approvals.approvals
        if not route.path.startswith("/projects/"):
            return
        for merge_request in service.repositories.merge_requests.values():
            iid = request.path.get("merge_request_iid", str(merge_request.iid))
            if merge_request.project_id == request.project.id and str(merge_request.iid) == iid:
                approvals.pop(merge_request.id, None)

    transform(service, change)


def takes_no_more_approvals_than_are_left(service: Service) -> None:
    """Refuse an approval if rules require some and none is left."""
    approvals = service.merge_request_approvals
    require = approvals.require_allowed

    def require_allowed(caller: Any, merge_request: Any) -> None:
        require(caller, merge_request)
        if approvals.approvals_required(merge_request) and not approvals.approvals_left(merge_request):
            raise RejectedError("is approved already", parameter="merge_request_iid")

    approvals.require_allowed = require_allowed


def shows_strangers_approvals(service: Service) -> None:
    """Let every user read about approvals in private projects, because no row names a role."""
    access, rules = service.access, service.approval_rules
    subject_of = access.subject

    def subject(route: Any, caller: Any, reference: str) -> Any:
        areas = ("/projects/:id/approvals", "/projects/:id/approval_rules", "/projects/:id/merge_requests")
        if route.method != "GET" or not route.path.startswith(areas):
            return subject_of(route, caller, reference)
        found = service.identities.find_project(reference)
        if found is None:
            raise not_found("Project")
        return found

    def anybody(caller: Any, project: Any) -> None:
        """Require nothing."""

    access.subject = subject
    rules.require_reader = anybody


def leaves_the_merge_request_undescribed(service: Service) -> None:
    """Let the merge request of the profile have no description, which the profile does not state either."""
    world, known = service.world, service.repositories.merge_requests
    found = world.one("merge_request")
    nothing: Any = None
    known.update({key: replace(one, description=nothing) for key, one in known.items() if one.id == found.id})
    extra = {name: value for name, value in found.extra.items() if name != "description"}
    world.fixtures["merge_request"] = replace(found, extra=extra)


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "other-approvals",
        "Only those whom rules name approve, the highest rule counts, absent lists remove, no default rule is listed.",
        replace(
            _PLAIN,
            approval_outside_rules=False,
            approvals_counted=Counting.HIGHEST,
            absent_lists_remove=True,
            absent_flag_resets=True,
            default_rule_listed=False,
            all_branches_listed=False,
            system_rules_overwrite=True,
            report_rules_creatable_in_projects=False,
            configuration_read_from_16_0=False,
            absent_route_code=400,
        ),
        features={"approval_configuration": False},
    ),
    Variant(
        "nothing-to-describe",
        "The merge request that is tried has no description.",
        alterations=(leaves_the_merge_request_undescribed,),
    ),
    Variant(
        "approvals-take-their-time",
        "A reset takes effect a moment later, a change of settings takes approvals back, a sha is read in any case.",
        alterations=(
            resets_in_the_background,
            drops_approvals_when_settings_change,
            reads_shas_in_any_case,
            ignores_a_sha_it_cannot_read,
        ),
    ),
    Variant(
        "approvals-count-once",
        "An approval counts for one rule alone.",
        alterations=(counts_each_approval_once,),
    ),
    Variant(
        "passwords-wanted-at-first",
        "Whoever approves has to send a password, until that is switched off in the settings of the project.",
        replace(
            Choices(),
            project_settings_on_initially=("require_password_to_approve", "require_reauthentication_to_approve"),
        ),
        alone="before 17.1 nothing switches it off, so that nobody approves",
    ),
    Variant(
        "approvals-go-with-rules",
        "Approvals are taken back when rules change.",
        alterations=(drops_approvals_when_rules_change,),
    ),
    Variant(
        "nothing-to-reset",
        "A reset of a merge request without approvals is refused.",
        alterations=(resets_only_what_is_approved,),
    ),
    Variant(
        "wrong-passwords-hold-back",
        "Who sent a wrong password waits for a moment, and the rule that anybody satisfies lists nobody.",
        alterations=(holds_back_after_a_wrong_password, lists_nobody_in_default_rules),
    ),
)
