"""More legal differences of the reference in rules, approvals, configurations and their settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.wire_alterations import transform
from conformance.reference.areas.approval_rule_records import ALL_BRANCHES_INTRODUCED, Level, RuleType
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.choices import Unfit
from conformance.reference.errors import InvalidError, NotFoundError, RejectedError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Route
    from conformance.reference.identity import Group, Project

_APPROVE = "POST /projects/:id/merge_requests/:merge_request_iid/approve"
_RULE_OF_PROJECT = "/projects/:id/approval_rules/:approval_rule_id"
_RULE_OF_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id"
_UPDATES = (
    "PUT /groups/:id/approval_rules/:approval_rule_id",
    f"PUT {_RULE_OF_MERGE_REQUEST}",
    "POST /projects/:id/approvals",
)
_SETTINGS_OF_GROUP = "/groups/:id/merge_request_approval_setting"
_CLEARED_AFTER_SECONDS = 0.2


# -- rules -------------------------------------------------------------------------------------------------------------


def makes_rules_that_name_nobody_default(service: Service) -> None:
    """Store a new rule that names nobody, and asks for no type, as the one rule that anybody satisfies."""
    rules = service.approval_rules
    create = rules.create_rule

    def created(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        if not (wanted.rule_type or wanted.user_ids or wanted.usernames or wanted.group_ids):
            wanted = replace(wanted, rule_type=RuleType.ANY_APPROVER)
        return create(subject, home, wanted, caller)

    rules.create_rule = created  # type: ignore[method-assign] # a service is altered by putting methods in place


def makes_unnamed_rules_default_whatever_their_type(service: Service) -> None:
    """Store a new rule that names nobody as the one rule that anybody satisfies, whatever type is asked for."""
    rules = service.approval_rules
    add = rules.add_rule

    def added(candidate: Any) -> Any:
        is_unnamed = candidate.rule_type is RuleType.REGULAR and not (candidate.users or candidate.groups)
        return add(replace(candidate, rule_type=RuleType.ANY_APPROVER) if is_unnamed else candidate)

    rules.add_rule = added  # type: ignore[method-assign] # see above


def replaces_rules_of_groups(service: Service) -> None:
    """Let an update of a rule of a group replace it: what was not sent is as if it had never been."""
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

    rules.update_rule = replaced  # type: ignore[method-assign] # see above


def fixes_the_name_of_default_rules(service: Service) -> None:
    """Give the rule that anybody satisfies the name that such rules have, whatever was sent."""
    rules = service.approval_rules
    add = rules.add_rule

    def added(candidate: Any) -> Any:
        default = candidate.rule_type is RuleType.ANY_APPROVER
        return add(replace(candidate, name=service.choices.default_rule_name) if default else candidate)

    rules.add_rule = added  # type: ignore[method-assign] # see above


def makes_no_default_rules(service: Service) -> None:
    """Refuse to create the kind of rule that is there from the start."""
    rules = service.approval_rules
    create = rules.create_rule

    def created(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        if wanted.rule_type is RuleType.ANY_APPROVER:
            raise RejectedError("is there already", parameter="rule_type")
        return create(subject, home, wanted, caller)

    rules.create_rule = created  # type: ignore[method-assign] # see above


def keeps_the_default_rule_that_is_there(service: Service) -> None:
    """Refuse a rule that anybody satisfies beside the one that is there from the start, though that asks for nobody."""
    rules = service.approval_rules
    add = rules.add_rule

    def added(candidate: Any) -> Any:
        others = (rule for rule in rules.rules_of(candidate.home) if rule.rule_type is RuleType.ANY_APPROVER)
        if candidate.rule_type is RuleType.ANY_APPROVER and any(others):
            raise RejectedError("is there already", parameter="rule_type")
        return add(candidate)

    rules.add_rule = added  # type: ignore[method-assign] # see above


def asks_regular_rules_for_approvals(service: Service) -> None:
    """Refuse a regular rule that requires no approval."""
    rules = service.approval_rules
    require = rules.require_possible

    def require_possible(rule: Any) -> None:
        require(rule)
        if rule.rule_type is RuleType.REGULAR and not rule.approvals_required:
            raise RejectedError("must be positive", parameter="approvals_required")

    rules.require_possible = require_possible  # type: ignore[method-assign] # see above


def takes_no_more_approvals_than_five(service: Service) -> None:
    """Refuse a rule that asks for more than five approvals."""
    _takes_at_most(service, lambda _: 5)


def takes_no_more_approvals_than_approvers(service: Service) -> None:
    """Refuse a rule that asks for more approvals than there are users whose approval it counts."""
    rules = service.approval_rules
    _takes_at_most(service, lambda rule: len(rules.eligible_approvers(rule)))


def _takes_at_most(service: Service, most: Callable[[Any], int]) -> None:
    rules = service.approval_rules
    require = rules.require_possible

    def require_possible(rule: Any) -> None:
        require(rule)
        if (rule.users or rule.groups) and rule.approvals_required > most(rule):
            raise RejectedError("is too large", parameter="approvals_required")

    rules.require_possible = require_possible  # type: ignore[method-assign] # see above


def asks_for_no_less_than_the_project(service: Service) -> None:
    """Refuse a rule of a merge request that requires fewer approvals than a rule of its project does."""
    rules = service.merge_request_approval_rules
    create, update = rules.create_rule, rules.update_rule

    def require_enough(merge_request: Any, wanted: Any) -> None:
        most = max((rule.approvals_required for rule in rules.project_rules(merge_request)), default=0)
        if wanted.approvals_required is not None and wanted.approvals_required < most:
            raise RejectedError("must not be less than the project asks for", parameter="approvals_required")

    def created(merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        require_enough(merge_request, wanted)
        return create(merge_request, wanted, source_id, caller)

    def updated(merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        require_enough(merge_request, wanted)
        return update(merge_request, number, wanted, caller)

    rules.create_rule = created  # type: ignore[method-assign] # see above
    rules.update_rule = updated  # type: ignore[method-assign] # see above


def ignores_empty_lists(service: Service) -> None:
    """Take an empty list of approvers for one that was not sent, as forms cannot tell the two apart."""
    rules = service.approval_rules
    update = rules.update_rule

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        said = replace(wanted, user_ids=wanted.user_ids or None, usernames=wanted.usernames or None)
        return update(subject, rule, replace(said, group_ids=wanted.group_ids or None), caller)

    rules.update_rule = updated  # type: ignore[method-assign] # see above


def keeps_branches_of_rules_for_all(service: Service) -> None:
    """Show the branches that were sent for a rule that applies to all of them, though they mean nothing."""
    rules = service.approval_rules
    create, shown = rules.create_rule, rules.branches_shown

    def created(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        rule = create(subject, home, wanted, caller)
        named = rules.branches_named(wanted, subject) or ()
        rules.rules[rule.id] = replace(rule, protected_branches=named)
        return rules.rules[rule.id]

    def as_sent(rule: Any) -> Any:
        return shown(replace(rule, applies_to_all_protected_branches=False)) or shown(rule)

    rules.create_rule = created  # type: ignore[method-assign] # see above
    rules.branches_shown = as_sent  # type: ignore[method-assign] # see above


def finds_every_member_eligible(service: Service) -> None:
    """Show all members of a project that the caller sees among the eligible approvers of its rules."""
    rules = service.approval_rules
    present = rules.present

    def shown(rule: Any, viewer: Any, barred: Any = ()) -> dict[str, Any]:
        entry = present(rule, viewer, barred)
        if rule.home.level is not Level.PROJECT:
            return entry
        members = service.identities.members(service.identities.projects[rule.home.id])
        return {**entry, "eligible_approvers": service.present.users(tuple(members))}

    rules.present = shown  # type: ignore[method-assign] # see above


def deletes_absent_rules(service: Service) -> None:
    """Answer that a rule is gone which never was there, whatever it is called."""
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
    """Refuse an update that says nothing."""
    for key in _UPDATES:
        handler = service.routes.get(key).handler

        def with_something(request: Request, handler: Any = handler) -> Response:
            if request.body.strip() in {b"", b"{}"} and not request.query:
                raise RejectedError("at least one parameter must be sent")
            response: Response = handler(request)
            return response

        service.routes.change(key, handler=with_something)


def shows_fields_of_other_levels(service: Service) -> None:
    """Show in rules of all levels what is only described for some of them."""
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
        # Before, it belongs to no level: who showed it would show to be newer.
        more_of_rule["applies_to_all_protected_branches"] = False

    def rule_with_more(rule: Any, viewer: Any, barred: Any = ()) -> dict[str, Any]:
        return {**more_of_rule, **shown_rule(rule, viewer, barred)}

    def branch_with_more(branch: Any) -> dict[str, Any]:
        return {**shown_branch(branch), "allow_force_push": False, "inherited": None}

    rules.present = rule_with_more  # type: ignore[method-assign] # see above
    present.project_protected_branch = branch_with_more  # type: ignore[method-assign] # see above


# -- approvals ---------------------------------------------------------------------------------------------------------


def resets_in_the_background(service: Service) -> None:
    """Answer at once that approvals are reset, and take them back a moment later."""
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

    approvals.clear_approvals = later  # type: ignore[method-assign] # see above
    approvals.approvals_of = known  # type: ignore[method-assign] # see above


def stays_overwritten(service: Service) -> None:
    """Say of a merge request that its rules are its own even when the last of them is gone."""
    rules = service.merge_request_approval_rules
    overwritten, create = rules.overwritten, rules.create_rule
    ever: set[int] = set()

    def created(merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        rule = create(merge_request, wanted, source_id, caller)
        ever.add(merge_request.id)
        return rule

    def once(merge_request: Any) -> bool:
        return merge_request.id in ever or overwritten(merge_request)

    rules.create_rule = created  # type: ignore[method-assign] # see above
    rules.overwritten = once  # type: ignore[method-assign] # see above


def calls_no_rule_approved(service: Service) -> None:
    """Say of no rule that it is approved, before the merge request is merged."""
    approvals = service.merge_request_approvals
    present = approvals.present_state_rule

    def shown(rule: Any, merge_request: Any, viewer: Any) -> dict[str, Any]:
        return {**present(rule, merge_request, viewer), "approved": False}

    approvals.present_state_rule = shown  # type: ignore[method-assign] # see above


def reads_shas_in_any_case(service: Service) -> None:
    """Take a sha in capitals for the commit that it is."""
    approvals = service.merge_request_approvals
    require = approvals.require_current_head

    def in_any_case(merge_request: Any, sha: str | None) -> None:
        require(merge_request, sha and sha.lower())

    approvals.require_current_head = in_any_case  # type: ignore[method-assign] # see above


def ignores_a_sha_it_cannot_read(service: Service) -> None:
    """Take a sha that is no text for one that was not sent."""
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


def drops_approvals_when_settings_change(service: Service) -> None:
    """Take back the approvals of a project's merge requests when its configuration or its settings change."""
    keys = ("POST /projects/:id/approvals", "PUT /projects/:id/merge_request_approval_setting")

    def change(route: Route, request: Request, answer: Response) -> None:
        if route.key in keys and answer.status < 300:  # noqa: PLR2004 - HTTP's own number
            for merge_request in service.repositories.merge_requests.values():
                if merge_request.project_id == request.project.id:
                    service.merge_request_approvals.approvals.pop(merge_request.id, None)

    transform(service, change)


# -- configurations and settings ---------------------------------------------------------------------------------------


def maps_approvals_before_merge(service: Service) -> None:
    """Keep the deprecated number of approvals in the rule that anybody satisfies."""
    configurations, rules = service.project_approval_configurations, service.approval_rules
    own, make_change = configurations.own_configuration, configurations.change_configuration

    def default_rule(project: Any) -> Any:
        found = service.project_approval_rules.rules(project)
        return next((rule for rule in found if rule.rule_type is RuleType.ANY_APPROVER), None)

    def shown(project: Any) -> Any:
        rule = default_rule(project)
        return replace(own(project), approvals_before_merge=rule.approvals_required if rule else 0)

    def changed(project: Any, change: Any) -> Any:
        result = make_change(project, change)
        rule = default_rule(project)
        if change.approvals_before_merge is not None and rule is not None:
            rules.rules[rule.id] = replace(rule, approvals_required=change.approvals_before_merge)
        return replace(result, approvals_before_merge=shown(project).approvals_before_merge)

    configurations.own_configuration = shown  # type: ignore[method-assign] # see above
    configurations.change_configuration = changed  # type: ignore[method-assign] # see above


def binds_configurations_by_settings(service: Service) -> None:
    """Let what a group sets bind the configurations of its projects too, and refuse to change them there."""
    configurations, settings = service.project_approval_configurations, service.approval_settings
    own, make_change = configurations.own_configuration, configurations.change_configuration
    bound = {
        "merge_requests_author_approval": (Setting.ALLOW_AUTHOR_APPROVAL, True),
        "merge_requests_disable_committers_approval": (Setting.ALLOW_COMMITTER_APPROVAL, False),
        "disable_overriding_approvers_per_merge_request": (Setting.ALLOW_OVERRIDES, False),
        "reset_approvals_on_push": (Setting.RETAIN_APPROVALS, False),
        "require_password_to_approve": (Setting.REQUIRE_PASSWORD, True),
    }

    def prescribed(project: Any) -> dict[str, bool]:
        inherited = {name: settings.inherited(project, setting) for name, (setting, _) in bound.items()}
        return {name: value is bound[name][1] for name, value in inherited.items() if value is not None}

    def shown(project: Any) -> Any:
        found = replace(own(project), **prescribed(project))
        selective = found.selective_code_owner_removals and not found.reset_approvals_on_push
        return replace(found, selective_code_owner_removals=selective)

    def changed(project: Any, change: Any) -> Any:
        for name, value in prescribed(project).items():
            if getattr(change, name) not in {None, value}:
                raise RejectedError("is locked by the parent group", parameter=name)
        return make_change(project, change)

    configurations.own_configuration = shown  # type: ignore[method-assign] # see above
    configurations.change_configuration = changed  # type: ignore[method-assign] # see above


def locks_one_setting_everywhere(service: Service) -> None:
    """Let the installation decide for every group and project that committers may approve."""
    lock_everywhere(service, Setting.ALLOW_COMMITTER_APPROVAL, value=True)


def lock_everywhere(service: Service, locked: Setting, *, value: bool) -> None:
    """Give a setting one value in every group and project, prescribed from nowhere that is named."""
    settings = service.approval_settings
    present, inherited = settings.present, settings.inherited

    def decided(subject: Any, setting: Setting) -> Any:
        return value if setting is locked else inherited(subject, setting)

    def shown(subject: Any, setting: Setting) -> dict[str, Any]:
        entry = present(subject, setting)
        return {**entry, "inherited_from": None} if setting is locked else entry

    settings.inherited = decided  # type: ignore[method-assign] # see above
    settings.present = shown  # type: ignore[method-assign] # see above


def has_no_settings_of_subgroups(service: Service) -> None:
    """Keep approval settings for groups that lie in no other one."""
    for method in ("GET", "PUT"):
        handler = service.routes.get(f"{method} {_SETTINGS_OF_GROUP}").handler

        def outermost(request: Request, handler: Any = handler) -> Response:
            if request.group.parent_id is not None:
                raise NotFoundError
            response: Response = handler(request)
            return response

        service.routes.change(f"{method} {_SETTINGS_OF_GROUP}", handler=outermost)


def removes_selectively_while_retaining(service: Service) -> None:
    """Let selective removals go with retained approvals and with nothing else, as some servers do."""
    settings = service.approval_settings

    def the_other_way(subject: Group | Project, wanted: Any) -> Any:
        selective = wanted.get(Setting.SELECTIVE_REMOVALS, False)
        inherited = settings.inherited(subject, Setting.RETAIN_APPROVALS)
        own = settings.own(subject, Setting.RETAIN_APPROVALS) if inherited is None else inherited
        if selective and not wanted.get(Setting.RETAIN_APPROVALS, own):
            if service.choices.selective_removals_while_retaining is Unfit.REFUSE:
                raise RejectedError("goes with retained approvals", parameter=Setting.SELECTIVE_REMOVALS.value)
            return {**wanted, Setting.SELECTIVE_REMOVALS: False}
        return wanted

    def effective(subject: Group | Project, setting: Setting) -> bool:
        inherited = settings.inherited(subject, setting)
        return settings.own(subject, setting) if inherited is None else inherited

    def shown(subject: Any, setting: Setting) -> dict[str, Any]:
        inherited = settings.inherited(subject, setting)
        locked = inherited is not None
        return {"value": effective(subject, setting), "locked": locked, "inherited_from": "group" if locked else None}

    settings.without_conflict = the_other_way  # type: ignore[method-assign] # see above
    settings.effective = effective  # type: ignore[method-assign] # see above
    settings.present = shown  # type: ignore[method-assign] # see above
