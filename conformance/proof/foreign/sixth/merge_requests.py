"""Faults of approvals: who approved before and after, and what else was approved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import changing_the_status, merge_requests_of_the_project
from conformance.proof.foreign.dimensions import (
    AGAIN,
    CALLER_AND_FORM,
    CALLER_AND_VALUE,
    COUNT,
    FORM_SENT,
    LEVEL,
    NEIGHBOUR,
    NOTHING_DONE,
    REFUSED,
    SIDE_EFFECT,
    STORY,
)
from conformance.proof.foreign.paths import (
    APPROVE,
    MERGE_REQUEST_RULE,
    MERGE_REQUEST_RULES,
    PROJECT_RULE,
    UNAPPROVE,
)
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import SYSTEM_TYPES, Level, home_of
from conformance.reference.errors import ForbiddenError, InvalidError, StatedError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service


# expects merge-request-approvals.approve.other-sha-conflicts
@foreign(NEIGHBOUR, "Merge request approvals: approve, sha of another merge request")
def the_head_of_any_merge_request_is_taken(service: Service) -> None:
    """A sha that is the HEAD of another merge request of the project is taken."""

    @instead(service.merge_request_approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        heads = [service.repositories.head_of(one) for one in merge_requests_of_the_project(service, merge_request)]
        if sha not in heads:
            require(merge_request, sha)


# expects merge-request-approvals.unapprove.approve-again
@foreign(AGAIN, "Merge request approvals: approve after unapprove")
def whoever_took_it_back_cannot_approve_again(service: Service) -> None:
    """Who approves again after taking the approval back gets the usual answer, and is not in approved_by."""
    undone: set[tuple[int, int]] = set()

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        remove(user, merge_request)
        undone.add((user.id, merge_request.id))

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        if (user.id, merge_request.id) not in undone:
            add(user, merge_request)


# expects merge-request-approvals.unapprove.keeps-others
@foreign(SIDE_EFFECT, "Merge request approvals: unapprove, several approvals")
def unapproving_takes_back_later_approvals(service: Service) -> None:
    """Taking an approval back takes back those that came after it too."""

    @instead(service.merge_request_approvals, "remove_approval")
    def _(_remove: Any, user: Any, merge_request: Any) -> None:
        area = service.merge_request_approvals
        given = area.approvals_of(merge_request)
        place = next(place for place, one in enumerate(given) if one.user_id == user.id)
        area.approvals[merge_request.id] = given[:place]


# expects merge-request-approvals.merge-request.of-its-project
@foreign(NEIGHBOUR, "Merge request approvals: equal iid in another project")
def approvals_are_kept_by_iid(service: Service) -> None:
    """Approvals are kept by the iid, so merge requests with equal iids of different projects share them."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        for one in service.repositories.merge_requests.values():
            if one.iid == merge_request.iid and not service.merge_request_approvals.approved_by(user, one):
                add(user, one)


# expects merge-request-approvals.state.rule.approved-by-have-approved
@foreign(AGAIN, "Merge request approval state: after unapprove")
def the_state_keeps_whoever_unapproved(service: Service) -> None:
    """The rules of the state go on naming somebody who took the approval back."""
    ever: dict[tuple[int, int], tuple[int, ...]] = {}

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        key = rule.id, merge_request.id
        ever[key] = tuple(dict.fromkeys((*ever.get(key, ()), *(user["id"] for user in shown["approved_by"]))))
        return {**shown, "approved_by": service.present.users(ever[key])}


# expects merge-request-approvals.reset.clears-all
@foreign(COUNT, "Merge request approvals: reset_approvals, approvers of all kinds")
def only_approvals_of_named_users_are_reset(service: Service) -> None:
    """Resetting clears the approvals of users whom a rule names, and leaves those of everybody else."""

    @instead(service.merge_request_approvals, "clear_approvals")
    def _(_clear: Any, merge_request: Any) -> None:
        area = service.merge_request_approvals
        named = {number for rule in area.rules(merge_request) for number in rule.users}
        area.approvals[merge_request.id] = tuple(
            one for one in area.approvals_of(merge_request) if one.user_id not in named
        )


# expects merge-request-approvals.reset.others-get-401
@foreign(CALLER_AND_VALUE, "Merge request approvals: reset_approvals by guests and reporters")
def below_developers_resetting_is_forbidden(service: Service) -> None:
    """Callers below the Developer role get 403 instead of 401."""

    @instead(service.merge_request_approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        project = service.identities.projects[merge_request.project_id]
        if service.identities.role_in(caller, project) < Role.DEVELOPER:
            raise ForbiddenError
        require(caller, merge_request)


# expects merge-request-approvals.approve.lists-caller
@foreign(COUNT, "Merge request approval status: approved_by, several approvals")
def the_status_shows_the_two_newest_approvals(service: Service) -> None:
    """The status shows the last two approvals, and no earlier ones."""

    def change(shown: Any, _merge_request: Any) -> None:
        shown["approved_by"] = shown["approved_by"][-2:]

    changing_the_status(service, change)


# expects merge-request-approvals.approve.lists-caller
@foreign(NOTHING_DONE, "Merge request approvals: approve, named through a group")
def approvals_of_group_members_are_not_kept(service: Service) -> None:
    """Somebody whom rules name through a group alone may approve, and is not in approved_by afterwards."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        rules = service.merge_request_approvals.rules(merge_request)
        eligible = service.approval_rules.eligible_approvers
        through = any(user.id in eligible(rule) and user.id not in rule.users for rule in rules)
        if not through or any(user.id in rule.users for rule in rules):
            add(user, merge_request)


# expects merge-request-approvals.approve.left-falls
@foreign(STORY, "Merge request approvals: approve, answer")
def the_answer_counts_before_the_approval(service: Service) -> None:
    """The answer to approve names the caller, but approvals_left is that of before."""

    @handling(service, f"POST {APPROVE}")
    def _(handler: Any, request: Any) -> Any:
        area = service.merge_request_approvals
        merge_request = service.repositories.merge_requests.get((request.project.id, request.path_id("merge_request_iid")))
        left = area.approvals_left(merge_request) if merge_request else 0
        answer = handler(request)
        if is_served(answer):
            answer.content = {**answer.content, "approvals_left": left}
        return answer


# expects merge-request-approvals.unapprove.answer
@foreign(FORM_SENT, "Merge request approvals: unapprove without a body")
def unapproving_needs_a_body(service: Service) -> None:
    """Without any body unapproving is refused."""

    @handling(service, f"POST {UNAPPROVE}")
    def _(handler: Any, request: Any) -> Any:
        if not request.body:
            raise InvalidError("The request body is missing.")
        return handler(request)


# expects merge-request-approvals.rules.copy.approvals-required
@foreign(NEIGHBOUR, "Merge request approvals: POST approval_rules, more than approvers")
def no_more_approvals_than_approvers(service: Service) -> None:
    """A merge request rule requires at most as many approvals as it has eligible approvers."""

    @instead(service.approval_rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        most = len(service.approval_rules.eligible_approvers(candidate))
        if candidate.home.level is Level.MERGE_REQUEST and candidate.source_id and most:
            candidate = replace(candidate, approvals_required=min(candidate.approvals_required, most))
        return add(candidate)


# expects merge-request-approvals.rules.belong-to-their-merge-request
@foreign(SIDE_EFFECT, "Merge request approvals: approval_project_rule_id in two merge requests")
def a_project_rule_has_one_copy(service: Service) -> None:
    """Copying a project rule to a merge request takes its copy away from another one."""

    @instead(service.approval_rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        if candidate.source_id:
            for one in [rule for rule in service.approval_rules.rules.values() if rule.source_id == candidate.source_id]:
                service.approval_rules.delete_rule(one)
        return add(candidate)


# expects merge-request-approvals.rules.are-separate
@foreign(LEVEL, "Project approval rules: PUT, copies in merge requests")
def copies_follow_the_project_rule(service: Service) -> None:
    """Changing a project rule changes name and number of its copies in merge requests."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        rules = service.approval_rules.rules
        source = rules.get(request.path_id("approval_rule_id"))
        for one in [rule for rule in rules.values() if source and rule.source_id == source.id]:
            rules[one.id] = replace(one, name=source.name, approvals_required=source.approvals_required)
        return answer


# expects merge-request-approvals.rules.update.usernames
@foreign(FORM_SENT, "Merge request approvals: PUT approval_rules, user_ids beside usernames")
def usernames_win_over_ids_on_update(service: Service) -> None:
    """On update of a merge request rule, user_ids are passed over if usernames come along."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        if wanted.usernames:
            wanted = replace(wanted, user_ids=None)
        return update(merge_request, number, wanted, caller)


# expects merge-request-approvals.rules.create.in-state
@foreign(COUNT, "Merge request approval state: rules that require nothing")
def the_state_leaves_out_rules_of_others(service: Service) -> None:
    """The state shows at most two rules of a merge request."""

    @instead(service.merge_request_approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        shown = state(merge_request, viewer)
        return {**shown, "rules": shown["rules"][:2]}


# expects merge-request-approvals.state.overwritten
@foreign(AGAIN, "Merge request approval state: overwritten after a deletion")
def after_a_deletion_nothing_is_overwritten(service: Service) -> None:
    """Deleting one of two merge request rules makes approval_rules_overwritten false."""
    deleted: set[int] = set()

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        delete(merge_request, number)
        deleted.add(merge_request.id)

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, *rest: Any) -> Any:
        deleted.discard(merge_request.id)
        return create(merge_request, *rest)

    @instead(service.merge_request_approval_rules, "overwritten")
    def _(overwritten: Any, merge_request: Any) -> bool:
        return merge_request.id not in deleted and bool(overwritten(merge_request))


# expects merge-request-approvals.rules.pages
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


# expects merge-request-approvals.rules.update.name
@foreign(AGAIN, "Merge request approvals: GET one rule after PUT")
def one_rule_is_shown_as_first_read(service: Service) -> None:
    """Reading one rule of a merge request shows it as at the first reading; updates show in the list alone."""
    seen: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = seen.setdefault((request.caller.id, answer.content["id"]), answer.content)
        return answer


# expects merge-request-approvals.rules.create.users
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


# expects errors.refusal.changes-nothing
@foreign(REFUSED, "Merge request approvals: PUT of a code_owner rule")
def a_refused_update_of_a_system_rule_keeps_the_number(service: Service) -> None:
    """Updating a system-generated rule is refused, but approvals_required is kept."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(number)
        if rule is not None and rule.rule_type in SYSTEM_TYPES and rule.home == home_of(merge_request):
            needed = wanted.approvals_required
            service.approval_rules.rules[number] = replace(
                rule, approvals_required=rule.approvals_required if needed is None else needed
            )
        return update(merge_request, number, wanted, caller)


# expects errors.refusal.changes-nothing
@foreign(REFUSED, "Merge request approvals: PUT approval_rules, name beside an invalid number")
def the_name_is_kept_though_the_number_is_refused(service: Service) -> None:
    """An update with a name and an invalid approvals_required is refused, but the name is kept."""

    @handling(service, f"PUT {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            name, rules = request.parameters._values.get("name"), service.approval_rules.rules
            rule = rules.get(int(request.path["approval_rule_id"])) if request.path["approval_rule_id"].isdigit() else None
            if isinstance(name, str) and name and rule is not None and rule.rule_type not in SYSTEM_TYPES:
                rules[rule.id] = replace(rule, name=name)
            raise


# expects merge-request-approvals.approve.other-sha-conflicts
@foreign(REFUSED, "Merge request approvals: approve with another sha, twice")
def the_second_wrong_sha_is_taken(service: Service) -> None:
    """A sha that does not match is refused with 409 once; sent again, it is taken."""
    refused: set[tuple[int, Any]] = set()

    @instead(service.merge_request_approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        if (merge_request.id, sha) in refused:
            return
        try:
            require(merge_request, sha)
        except StatedError:
            refused.add((merge_request.id, sha))
            raise
