"""Legal differences of the reference in what concerns approvals, each to be put on a service that was just made."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from conformance.reference.areas.approval_rule_records import (
    SYSTEM_TYPES,
    ApprovalRule,
    Home,
    Level,
    RuleRequest,
    RuleType,
)
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import ForbiddenError, RejectedError, RepeatedError, not_found
from conformance.reference.identity import Role
from conformance.reference.repositories import AccessLevel
from conformance.reference.store import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import User

_GROUP_RULES = (
    "GET /groups/:id/approval_rules",
    "POST /groups/:id/approval_rules",
    "PUT /groups/:id/approval_rules/:approval_rule_id",
)
_SETTINGS_OF_PROJECT = "/projects/:id/merge_request_approval_setting"
_SHA_DIGITS = 40
_MOST_RULES = 8
_RULES_OF_OTHERS = 12


# -- rules -------------------------------------------------------------------------------------------------------------


def adds_to_lists_of_groups(service: Service) -> None:
    """Let an update of a rule of a group add to its approvers, and never remove any."""
    rules = service.approval_rules
    users_after, groups_after = rules.users_after, rules.groups_after

    def users(rule: Any, wanted: Any, subject: Any) -> tuple[int, ...]:
        kept = rule.users if rule.home.level is Level.GROUP else ()
        return tuple(dict.fromkeys((*kept, *users_after(rule, wanted, subject))))

    def groups(rule: Any, wanted: Any, caller: Any) -> tuple[int, ...]:
        kept = rule.groups if rule.home.level is Level.GROUP else ()
        return tuple(dict.fromkeys((*kept, *groups_after(rule, wanted, caller))))

    rules.users_after = users  # type: ignore[method-assign] # a service is altered by putting methods in place
    rules.groups_after = groups  # type: ignore[method-assign] # see above


def counts_rules_in_each_place(service: Service) -> None:
    """Count the rules of each group, project and merge request from 1 on; those of the system stay as they are."""
    last: Table[Home, int] = Table(service.store)

    def following(home: Home, _: Collection[int]) -> int:
        last[home] = last.get(home, 0) + 1
        return last[home]

    _number_rules(service, following)


def counts_the_rules_there_are(service: Service) -> None:
    """Do the same, and let each new rule have the smallest number that is free in its place."""
    _number_rules(service, lambda _, taken: next(free for free in count(1) if free not in taken))


def _number_rules(service: Service, number_for: Callable[[Home, Collection[int]], int]) -> None:
    """Give each rule a number of its place, by that place and the numbers that are taken there.

    Where one list shows the rules of two places, these are left as they are: it would hold a number twice.
    """
    if service.choices.project_rules_listed_in_merge_requests:
        return
    rules = service.approval_rules
    numbers: Table[int, int] = Table(service.store)
    present = rules.present

    def number_of(rule: ApprovalRule) -> int:
        # All that the place has, in the order in which they were made: a rule that nobody saw yet has its number too.
        there = [one for one in rules.rules.values() if one.home == rule.home]
        taken = {numbers.get(one.id, one.id) for one in there if one.id in numbers or one.rule_type in SYSTEM_TYPES}
        for one in there:
            if one.rule_type not in SYSTEM_TYPES and one.id not in numbers:
                numbers[one.id] = number_for(one.home, taken)
                taken.add(numbers[one.id])
        return numbers.get(rule.id, rule.id)

    def find(home: Home, number: int) -> ApprovalRule:
        found = next((rule for rule in rules.rules_of(home) if number_of(rule) == number), None)
        if found is None:
            raise not_found("Approval Rule")
        return found

    def presented(rule: ApprovalRule, viewer: User, barred: Collection[int] = ()) -> dict[str, object]:
        return {**present(rule, viewer, barred), "id": number_of(rule)}

    rules.find = find  # type: ignore[method-assign] # see above
    rules.present = presented  # type: ignore[method-assign] # see above


def gives_numbers_again(service: Service) -> None:
    """Give a rule the smallest number that is free: those of deleted rules come back."""
    rules, next_id = service.approval_rules.rules, service.store.next_id

    def number(sequence: str) -> int:
        is_free = sequence == "approval_rules" and rules
        return next(free for free in count(min(rules)) if free not in rules) if is_free else next_id(sequence)

    service.store.next_id = number  # type: ignore[method-assign] # see above


def has_rules_of_others(service: Service) -> None:
    """Let the project beside the one that is tried, and its other merge request, have rules that somebody made."""
    world, rules = service.world, service.approval_rules
    project = Home(Level.PROJECT, world.one("sibling_project").id)
    for home in (project, Home(Level.MERGE_REQUEST, world.one("reset_merge_request").id)):
        for number in range(_RULES_OF_OTHERS):
            users = (world.actors["approver"].id,)
            rules.add_rule(ApprovalRule(id=0, home=home, name=f"Ours {number}", approvals_required=1, users=users))


def asks_for_rules_of_both_levels(service: Service) -> None:
    """Let a merge request have to satisfy the rules of its project beside its own ones, and show both."""
    rules = service.merge_request_approval_rules
    rules.effective_rules = lambda merge_request: [  # type: ignore[method-assign] # see above
        *rules.project_rules(merge_request),
        *rules.rules(merge_request),
    ]


def finds_rules_by_name(service: Service) -> None:
    """Find a rule by its name as well, where its number stands in a path."""
    rules = service.approval_rules.rules

    def naming(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def handled(request: Request) -> Response:
            text = request.path["approval_rule_id"]
            named = [rule.id for rule in rules.values() if rule.name == text and not text.isdigit()]
            request.path["approval_rule_id"] = str(named[0]) if named else text
            return handler(request)

        return handled

    for route in list(service.routes):
        if route.path.endswith(":approval_rule_id"):
            service.routes.change(route.key, handler=naming(route.handler))


def leaves_the_merge_request_undescribed(service: Service) -> None:
    """Let the merge request of the profile have no description, which the profile does not give either."""
    world, known = service.world, service.repositories.merge_requests
    found = world.one("merge_request")
    nothing: Any = None
    known.update({key: replace(one, description=nothing) for key, one in known.items() if one.id == found.id})
    extra = {name: value for name, value in found.extra.items() if name != "description"}
    world.fixtures["merge_request"] = replace(found, extra=extra)


def never_gives_a_name_twice(service: Service) -> None:
    """Refuse the name of an earlier rule of the same place, though that is gone; copies keep that of their rule."""
    rules = service.approval_rules
    add = rules.add_rule
    taken: Table[tuple[Home, str], int] = Table(service.store)

    def added(candidate: ApprovalRule) -> ApprovalRule:
        key = candidate.home, candidate.name
        if candidate.rule_type is RuleType.REGULAR and candidate.source_id is None and key in taken:
            raise RejectedError("was taken before", parameter="name")
        rule = add(candidate)
        taken[key] = rule.id
        return rule

    rules.add_rule = added  # type: ignore[method-assign] # see above


def takes_few_rules(service: Service) -> None:
    """Refuse the ninth rule of a project or merge request: how many there may be is open."""
    rules = service.approval_rules
    add = rules.add_rule

    def added(candidate: ApprovalRule) -> ApprovalRule:
        own = [rule for rule in rules.rules_of(candidate.home) if rule.rule_type is RuleType.REGULAR]
        if candidate.home.level is not Level.GROUP and len(own) >= _MOST_RULES:
            raise RejectedError("is one too many", parameter="name")
        return add(candidate)

    rules.add_rule = added  # type: ignore[method-assign] # see above


def keeps_rule_types(service: Service) -> None:
    """Let an update of a rule of a group leave its type alone, whatever was sent."""
    rules = service.group_approval_rules
    update = rules.update_rule

    def without_type(group: Any, number: int, wanted: RuleRequest, caller: Any) -> Any:
        return update(group, number, replace(wanted, rule_type=None), caller)

    rules.update_rule = without_type  # type: ignore[method-assign] # see above


def removes_hidden_groups_of_merge_requests(service: Service) -> None:
    """Remove hidden groups with the others when a rule of a merge request is updated: there nothing excepts them."""
    rules = service.approval_rules
    groups_after = rules.groups_after

    def without_hidden(rule: Any, wanted: RuleRequest, caller: Any) -> tuple[int, ...]:
        if rule.home.level is Level.MERGE_REQUEST:
            wanted = replace(wanted, remove_hidden_groups=True)
        return groups_after(rule, wanted, caller)

    rules.groups_after = without_hidden  # type: ignore[method-assign] # see above


def counts_members_of_hidden_groups(service: Service) -> None:
    """Show the members of hidden groups among the eligible approvers to everybody."""
    rules = service.approval_rules
    eligible = rules.eligible_approvers

    def of_all_groups(rule: Any, groups: Any = None) -> tuple[int, ...]:  # noqa: ARG001 - which of them are visible
        return eligible(rule)

    rules.eligible_approvers = of_all_groups  # type: ignore[method-assign] # see above


def names_nobody_eligible(service: Service) -> None:
    """Show no eligible approvers, not even those whom a rule names."""
    rules = service.approval_rules
    present = rules.present

    def shown(rule: Any, viewer: Any, barred: Any = ()) -> dict[str, Any]:
        return {**present(rule, viewer, barred), "eligible_approvers": []}

    rules.present = shown  # type: ignore[method-assign] # see above


def shows_no_sources_of_rules(service: Service) -> None:
    """Say of no rule of a merge request which rule it comes from, nor that it differs from that."""
    rules = service.merge_request_approval_rules
    present = rules.present

    def shown(rule: Any, merge_request: Any, viewer: Any) -> dict[str, Any]:
        return {**present(rule, merge_request, viewer), "source_rule": None, "overridden": False}

    rules.present = shown  # type: ignore[method-assign] # see above


def hands_rules_down(service: Service) -> None:
    """List the rules of the groups around a project among its own, and count them; they are changed in the group."""
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

    projects.rules = rules  # type: ignore[method-assign] # see above
    projects.find = found  # type: ignore[method-assign] # see above
    projects.update_rule = updated  # type: ignore[method-assign] # see above
    projects.delete_rule = deleted  # type: ignore[method-assign] # see above


def is_particular_about_copies(service: Service) -> None:
    """Refuse a second copy of a project rule, one that asks for fewer approvals, and one for other branches."""
    rules = service.merge_request_approval_rules
    copied = rules.copied_project_rule

    def copy(merge_request: Any, source: Any, wanted: RuleRequest) -> Any:
        if any(rule.source_id == source.id for rule in rules.rules(merge_request)):
            raise RepeatedError("has already been copied", parameter="approval_project_rule_id")
        if (wanted.approvals_required or 0) < source.approvals_required:
            raise RejectedError("must not be less than the project asks for", parameter="approvals_required")
        if source not in rules.project_rules(merge_request):
            raise RejectedError("does not apply to the target branch", parameter="approval_project_rule_id")
        return copied(merge_request, source, wanted)

    rules.copied_project_rule = copy  # type: ignore[method-assign] # see above


def protects_branches_for_single_users(service: Service) -> None:
    """Let a user and nobody at all, beside a level, be those who push to a branch that is shown."""
    present = service.present
    of_group, of_project = present.group_protected_branch, present.project_protected_branch

    def with_more(shown: Any, branch: Any) -> Any:
        levels = branch.push_access_levels
        single = AccessLevel(id=levels[0].id + 1_000_000, access_level=Role.MAINTAINER, description="Ada", user_id=1)
        nobody = AccessLevel(id=single.id + 1, access_level=0, description="No one")
        return shown(replace(branch, push_access_levels=(*levels, single, nobody)))

    present.group_protected_branch = partial(with_more, of_group)  # type: ignore[method-assign] # see above
    present.project_protected_branch = partial(with_more, of_project)  # type: ignore[method-assign] # see above


# -- approvals ---------------------------------------------------------------------------------------------------------


def looks_at_the_sha_first(service: Service) -> None:
    """Look at the sha before anything about the caller, and refuse one that is none: other digits, or zeros only."""
    approvals = service.merge_request_approvals
    approve = approvals.approve

    def after_the_sha(merge_request: Any, caller: Any, sha: str | None, password: str | None) -> None:
        if sha is not None and (len(sha) != _SHA_DIGITS or set(sha) - set("0123456789abcdef") or not sha.strip("0")):
            raise RejectedError("is no commit", parameter="sha")
        approvals.require_current_head(merge_request, sha)
        approve(merge_request, caller, sha, password)

    approvals.approve = after_the_sha  # type: ignore[method-assign] # see above


# -- configuration and settings ----------------------------------------------------------------------------------------


def leaves_deprecated_fields_out(service: Service) -> None:
    """Show a configuration without what is deprecated in it, and refuse the deprecated kind of report."""
    configurations, rules = service.project_approval_configurations, service.project_approval_rules
    changed, require = configurations.present_changed, rules.require_creatable

    def shown(configuration: Any) -> dict[str, Any]:
        return {name: value for name, value in changed(configuration).items() if name != "approvals_before_merge"}

    def require_creatable(wanted: RuleRequest) -> None:
        if wanted.report_type == "license_scanning":
            raise RejectedError("is deprecated", parameter="report_type")
        require(wanted)

    configurations.present = shown  # type: ignore[method-assign] # see above
    configurations.present_changed = shown  # type: ignore[method-assign] # see above
    rules.require_creatable = require_creatable  # type: ignore[method-assign] # see above


def shows_sources_without_locks(service: Service) -> None:
    """Say of every setting that is not locked that it comes from the instance."""
    settings = service.approval_settings
    present = settings.present

    def shown(subject: Any, setting: Setting) -> dict[str, Any]:
        entry = present(subject, setting)
        return entry if entry["locked"] else {**entry, "inherited_from": "instance"}

    settings.present = shown  # type: ignore[method-assign] # see above


def lets_settings_forbid_overriding(service: Service) -> None:
    """Refuse rules of merge requests where the settings of the project do not allow them."""
    rules = service.merge_request_approval_rules
    require = rules.require_overriding

    def require_overriding(project: Any) -> None:
        require(project)
        if not service.approval_settings.effective(project, Setting.ALLOW_OVERRIDES):
            raise ForbiddenError

    rules.require_overriding = require_overriding  # type: ignore[method-assign] # see above


# -- who may -----------------------------------------------------------------------------------------------------------


def leaves_group_rules_to_administrators(service: Service) -> None:
    """Let the administrators of the installation, and no owner, use the rules of groups."""
    for key in _GROUP_RULES:
        service.routes.change(key, admin_only=True)


def lets_maintainers_use_group_rules(service: Service) -> None:
    """Count maintainers of a group among its administrators."""
    for key in _GROUP_RULES:
        service.routes.change(key, least_role=Role.MAINTAINER)


def keeps_owners_out_of_project_settings(service: Service) -> None:
    """Ask for the very role that is named for the settings of a project, and for no other one."""
    for method in ("GET", "PUT"):
        handler = service.routes.get(f"{method} {_SETTINGS_OF_PROJECT}").handler

        def for_maintainers(request: Request, handler: Any = handler) -> Response:
            if service.identities.role_in(request.caller, request.project) > Role.MAINTAINER:
                raise ForbiddenError
            response: Response = handler(request)
            return response

        service.routes.change(f"{method} {_SETTINGS_OF_PROJECT}", handler=for_maintainers)


def shows_strangers_approvals(service: Service) -> None:
    """Let whoever has a token read what concerns approvals in private projects, where no row names a role."""
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

    access.subject = subject  # type: ignore[method-assign] # see above
    rules.require_reader = anybody  # type: ignore[method-assign] # see above
