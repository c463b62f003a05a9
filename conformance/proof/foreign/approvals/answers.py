"""What the approval status and the approval state of a merge request show."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering, changing_the_status, merge_requests_of_the_project
from conformance.proof.foreign.dimensions import AGAIN, COUNT, STORY
from conformance.proof.foreign.paths import (
    APPROVE,
    MERGE_REQUEST,
    MERGE_REQUEST_RULE,
    MERGE_REQUEST_RULES,
    RESET_APPROVALS,
    UNAPPROVE,
)
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import StatedError

if TYPE_CHECKING:
    from conformance.reference import Service


# -- the approval status -----------------------------------------------------------------------------------------------


@foreign(STORY, "Merge request approval status")
def the_title_is_that_of_the_first(service: Service) -> None:
    """The status has the title of the project's first merge request, whichever is requested."""

    def change(shown: Any, merge_request: Any) -> None:
        shown["title"] = service.repositories.merge_requests[merge_request.project_id, 1].title

    changing_the_status(service, change)


@foreign(STORY, "Merge request approval status")
def the_description_is_that_of_the_title(service: Service) -> None:
    """The status has the title in place of the description."""
    changing_the_status(service, lambda shown, _: shown.update(description=shown["title"]))


@foreign(STORY, "Merge request approval status")
def the_status_forgets_all_approvers_but_one(service: Service) -> None:
    """The status names only the newest approver."""
    changing_the_status(service, lambda shown, _: shown.update(approved_by=shown["approved_by"][-1:]))


@foreign(STORY, "User reference")
def approvers_have_the_name_of_the_author(service: Service) -> None:
    """Every approver has the right id, but the author's name."""

    def change(shown: Any, merge_request: Any) -> None:
        author = service.identities.users[merge_request.author_id]
        for entry in shown["approved_by"]:
            entry["user"] = {**entry["user"], "name": author.name}

    changing_the_status(service, change)


@foreign(STORY, "Merge request approval status")
def the_project_is_that_of_the_namespace(service: Service) -> None:
    """project_id of the status is the id of the group of the project."""

    def change(shown: Any, merge_request: Any) -> None:
        shown["project_id"] = service.identities.projects[merge_request.project_id].namespace_id

    changing_the_status(service, change)


@foreign(STORY, "Approval moves: approvals_left is recalculated")
def answers_to_approvals_count_as_before(service: Service) -> None:
    """The answer to an approval names the approver, but counts what was left before."""
    approvals, left = service.merge_request_approvals, {}

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        left["now"] = approvals.approvals_left(merge_request)
        add(user, merge_request)

    @handling(service, f"POST {APPROVE}")
    def _(handler: Any, request: Any) -> Any:
        left.clear()
        answer = handler(request)
        if left:
            answer.content = {**answer.content, "approvals_left": left["now"]}
        return answer


@foreign(STORY, "Merge request approval status: description")
def long_descriptions_are_cut(service: Service) -> None:
    """The status shows only the first line of a description."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        return {**shown, "description": str(shown["description"]).partition(" ")[0]}


# The difference is not limited to zero.
@foreign(STORY, "Merge request approval status: approvals_left")
def approvals_left_fall_below_zero(service: Service) -> None:
    """If there are more approvals than a rule requires, approvals_left is negative."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(_left: Any, merge_request: Any, rules: Any = None) -> Any:
        known = approvals.rules(merge_request) if rules is None else rules
        needed = [rule for rule in known if rule.approvals_required]
        return approvals.counted(
            [rule.approvals_required - len(approvals.approvers(rule, merge_request)) for rule in needed]
        )


# The response is made from the rules after the call, and one number is computed from what is left.
@foreign(STORY, "Merge request approval status: approvals_required in the answer to approve")
def what_is_required_shrinks_in_the_answer_to_an_approval(service: Service) -> None:
    """The answer to approve has in approvals_required how many are left; the status itself is right."""

    @handling(service, "POST /projects/:id/merge_requests/:merge_request_iid/approve")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content["approvals_required"] = answer.content["approvals_left"]
        return answer


# The count uses the users of the rules, without joining the members of their groups.
@foreign(STORY, "Merge request approval status: approvals_left")
def approvals_for_a_group_are_not_counted_off(service: Service) -> None:
    """An approval by a member of a group that a rule names leaves approvals_left unchanged."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(_left: Any, merge_request: Any, rules: Any = None) -> int:
        given = {one.user_id for one in approvals.approvals_of(merge_request)}
        found = []
        for rule in approvals.rules(merge_request) if rules is None else rules:
            users = given if rule.rule_type is RuleType.ANY_APPROVER else given & set(rule.users)
            found.append(max(0, rule.approvals_required - len(users)))
        return approvals.counted(found)


# A title is the title of the merge request.
@foreign(STORY, "Merge request approval status: title and description")
def texts_are_escaped_as_for_a_page(service: Service) -> None:
    """Special characters of HTML are escaped in titles and descriptions."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        return {**shown, "title": escape(shown["title"]), "description": escape(shown["description"])}


@foreign(STORY, "Merge request approval status: approvals_left")
def of_two_approvals_one_lowers_what_is_left(service: Service) -> None:
    """If two users of a rule with two required approvals approve, one approval is still left."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(left: Any, merge_request: Any, rules: Any = None) -> Any:
        known = approvals.rules(merge_request) if rules is None else rules
        given = [min(1, len(approvals.approvers(rule, merge_request))) for rule in known]
        return approvals.counted(
            [max(0, rule.approvals_required - number) for rule, number in zip(known, given, strict=True)]
        )


@foreign(STORY, "Merge request approval status: approved_by, web_url")
def all_who_approved_have_the_address_of_the_first(service: Service) -> None:
    """Every approver has the web_url of the first one."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        for approval in shown["approved_by"]:
            approval["user"]["web_url"] = shown["approved_by"][0]["user"]["web_url"]
        return shown


@foreign(STORY, "Merge request approval status: title")
def a_merge_request_has_the_title_of_the_first_from_its_branch(service: Service) -> None:
    """Two merge requests from one source branch to different targets both have the title of the older one."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown, place = status(merge_request, viewer), (merge_request.project_id, merge_request.source_branch)
        known = service.repositories.merge_requests.values()
        shown["title"] = next(one.title for one in known if (one.project_id, one.source_branch) == place)
        return shown


# -- the approval state ------------------------------------------------------------------------------------------------


@foreign(STORY, "Merge request approval state")
def the_state_knows_no_number_above_one(service: Service) -> None:
    """The state shows one required approval for each rule, although it requires more."""

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        return {**shown, "approvals_required": min(1, shown["approvals_required"])}


@foreign(STORY, "Merge request approval state")
def the_state_counts_approvals_of_all(service: Service) -> None:
    """In each rule, the state shows the approvers of any merge request of the project."""

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        approvals = service.merge_request_approvals
        mine = [m for m in service.repositories.merge_requests.values() if m.project_id == merge_request.project_id]
        ids = tuple(dict.fromkeys(number for one in mine for number in approvals.approvers(rule, one)))
        return {**present(rule, merge_request, viewer), "approved_by": service.present.users(ids)}


@foreign(STORY, "Merge request approval state")
def rules_of_the_state_have_one_name(service: Service) -> None:
    """All rules of the approval state have the name of the first one."""

    @instead(service.merge_request_approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        shown = state(merge_request, viewer)
        rules = [{**rule, "name": shown["rules"][0]["name"]} for rule in shown["rules"]]
        return {**shown, "rules": rules}


# Approvals are looked up by iid alone, although each project counts its merge requests separately.
@foreign(STORY, "Merge request approval state: rules, approved_by")
def the_state_counts_approvals_of_the_same_number(service: Service) -> None:
    """The rules of the state also list approvers of the merge request with the same iid in other projects."""
    approvals = service.merge_request_approvals

    @instead(approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        known = service.repositories.merge_requests.values()
        same = [one for one in known if one.iid == merge_request.iid]
        given = dict.fromkeys(number for one in same for number in approvals.approvers(rule, one))
        return {**present(rule, merge_request, viewer), "approved_by": service.present.users(tuple(given))}


# The state has its own copy of the approvers, which a reset does not change.
@foreign(STORY, "Merge request approval state: rules, approved_by")
def the_state_remembers_what_was_reset(service: Service) -> None:
    """After a reset, the rules of the state still list the former approvers, until the next approval."""
    approvals = service.merge_request_approvals
    before: dict[Any, Any] = {}

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        before[merge_request.id] = approvals.approvals_of(merge_request)
        clear(merge_request)

    @instead(approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if not approvals.approvals_of(merge_request):
            old = tuple(one.user_id for one in before.get(merge_request.id, ()))
            shown["approved_by"] = service.present.users(old)
        return shown


# The query filters by project, not by merge request.
@foreign(STORY, "Merge request approval state: approval_rules_overwritten")
def rules_of_a_neighbour_overwrite(service: Service) -> None:
    """approval_rules_overwritten is true for all merge requests of a project once one has its own rules."""

    @instead(service.merge_request_approval_rules, "overwritten")
    def _(overwritten: Any, merge_request: Any) -> Any:
        return any(overwritten(one) for one in merge_requests_of_the_project(service, merge_request))


# A copy belongs to the merge request like any other rule.
@foreign(STORY, "Merge request approvals: approval_rules_overwritten")
def copies_of_project_rules_overwrite_nothing(service: Service) -> None:
    """The rules count as overwritten only by a rule that is not a copy of a project rule."""
    own = service.merge_request_approval_rules

    @instead(own, "overwritten")
    def _(_overwritten: Any, merge_request: Any) -> bool:
        return any(rule.source_id is None for rule in own.own_rules(merge_request))


# What matters is whether there are rules, not whether they differ from others.
@foreign(STORY, "Merge request approval state: approval_rules_overwritten")
def a_copy_that_is_equal_overwrites_nothing(service: Service) -> None:
    """If the only rule of a merge request is a copy with the same number, the rules do not count as overwritten."""
    rules = service.merge_request_approval_rules

    @instead(rules, "overwritten")
    def _(_overwritten: Any, merge_request: Any) -> bool:
        return any(rule.source_id is None or rules.overridden(rule) for rule in rules.own_rules(merge_request))


# The state shows the current rules.
@foreign(STORY, "Merge request approval state: rules")
def the_state_is_not_made_anew_after_a_deletion(service: Service) -> None:
    """The state is cached, and every write clears the cache except the deletion of a rule."""
    approvals = service.merge_request_approvals
    remembered: dict[int, dict[str, Any]] = {}

    @instead(approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        return remembered.get(merge_request.id) or state(merge_request, viewer)

    @handling(service, f"DELETE {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        merge_request = merge_request_of(request)
        before = approvals.state(merge_request, request.caller)
        answer = handler(request)
        if is_served(answer):
            remembered[merge_request.id] = before
        return answer

    writes = f"POST {MERGE_REQUEST_RULES}", f"PUT {MERGE_REQUEST_RULE}", f"POST {APPROVE}"

    @handling(service, *writes, f"POST {UNAPPROVE}", f"PUT {RESET_APPROVALS}")
    def _(handler: Any, request: Any) -> Any:
        remembered.pop(merge_request_of(request).id, None)
        return handler(request)


@foreign(STORY, "Merge request approval state")
def a_copied_rule_does_not_count_as_one_of_the_merge_request(service: Service) -> None:
    """If the only rule of a merge request is a copy of a project rule, approval_rules_overwritten is false."""
    rules = service.merge_request_approval_rules

    @instead(rules, "overwritten")
    def _(_: Any, merge_request: Any) -> bool:
        return any(rule.source_id is None for rule in rules.own_rules(merge_request))


# The number of rules does not matter.
@foreign(COUNT, "Merge request approval state: approval_rules_overwritten")
def two_rules_of_a_merge_request_overwrite_nothing(service: Service) -> None:
    """If a merge request has more than one rule of its own, approval_rules_overwritten is false."""
    rules = service.merge_request_approval_rules

    @instead(rules, "overwritten")
    def _(_: Any, merge_request: Any) -> bool:
        return len(rules.own_rules(merge_request)) == 1


@foreign(COUNT, "Merge request approval state: approval_rules_overwritten")
def rules_that_name_groups_alone_overwrite_nothing(service: Service) -> None:
    """If the rules of a merge request name only groups and no users, approval_rules_overwritten is false."""
    rules = service.merge_request_approval_rules

    @instead(rules, "overwritten")
    def _(_: Any, merge_request: Any) -> bool:
        return any(rule.users or not rule.groups for rule in rules.own_rules(merge_request))


# A withdrawn approval is also removed from the rules.
@foreign(AGAIN, "Merge request approval state: POST unapprove")
def rules_with_groups_keep_an_approval_that_was_taken_back(service: Service) -> None:
    """After withdrawing, an approver is still in approved_by of the state's rules that name groups."""
    taken_back: set[tuple[int, int]] = set()
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        remove(user, merge_request)
        taken_back.add((merge_request.id, user.id))

    @instead(approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        there = {one["id"] for one in shown["approved_by"]}
        gone = {user for number, user in taken_back if number == merge_request.id} - there
        if rule.groups:
            shown["approved_by"] += service.present.users(
                tuple(gone & {*service.approval_rules.eligible_approvers(rule)})
            )
        return shown


# -- approving ---------------------------------------------------------------------------------------------------------


@foreign(STORY, "Approval and integration moves: approve")
def one_approval_is_enough(service: Service) -> None:
    """After the first approval, none is left, whatever number a rule requires."""
    changing_the_status(service, lambda shown, _: shown["approved_by"] and shown.update(approvals_left=0))


@foreign(STORY, "Approval and integration moves: approve")
def one_approval_is_always_left(service: Service) -> None:
    """One approval is left although all required ones were given."""
    changing_the_status(service, lambda shown, _: shown.update(approvals_left=max(1, shown["approvals_left"])))


# An allowed approver is added, whether needed or not.
@foreign(STORY, "Approval and integration moves: POST approve")
def approvals_that_nobody_waits_for_are_not_kept(service: Service) -> None:
    """If no approval is missing, a further one gets a success and is not stored."""
    approvals = service.merge_request_approvals

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        needed = approvals.approvals_required(merge_request)
        if not needed or approvals.approvals_left(merge_request):
            add(user, merge_request)


# The HEAD is kept in a cache that a push does not clear.
@foreign(STORY, "Merge request approvals: POST approve, current HEAD")
def the_head_is_the_one_seen_first(service: Service) -> None:
    """The sha is compared with the HEAD at the first read of the status or the first approval."""
    approvals, heads = service.merge_request_approvals, {}

    def remember(merge_request: Any) -> Any:
        key = merge_request.id, merge_request.created_at
        return heads.setdefault(key, service.repositories.head_of(merge_request))

    @instead(approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        remember(merge_request)
        return status(merge_request, viewer)

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        if sha is not None and sha != remember(merge_request):
            require(merge_request, "none")


# The current HEAD is that of the last push.
@foreign(STORY, "Merge request approvals: sha")
def the_head_is_that_of_the_beginning(service: Service) -> None:
    """The sha is compared with the HEAD at the creation of the merge request."""
    repositories = service.repositories
    heads = {one.id: repositories.head_of(one) for one in repositories.merge_requests.values()}

    @instead(repositories, "open_merge_request")
    def _(begin: Any, project: Any, new: Any) -> Any:
        opened = begin(project, new)
        heads[opened.id] = repositories.head_of(opened)
        return opened

    @instead(service.merge_request_approvals, "require_current_head")
    def _(_require: Any, merge_request: Any, sha: str | None) -> None:
        if sha is not None and sha != heads[merge_request.id]:
            raise StatedError(409, "SHA does not match HEAD of source branch")


@foreign(STORY, "Merge request approvals: approve")
def approving_answers_the_id_for_the_iid(service: Service) -> None:
    """The answer to an approval has the id of the merge request in place of its iid."""
    key = f"POST {APPROVE}"
    answering(service, key, lambda _, content: {**content, "iid": content["id"]})


@foreign(STORY, "Merge request approvals: approve, title")
def the_answer_to_an_approval_has_an_escaped_title(service: Service) -> None:
    """The title in the answer to an approval is HTML-escaped; in the status itself it is not."""

    @handling(service, f"POST {APPROVE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content["title"] = escape(answer.content["title"], quote=False)
        return answer


# The answer is the status, which names all approvers.
@foreign(STORY, "Merge request approvals: POST approve, approved_by")
def the_answer_to_an_approval_names_its_caller_alone(service: Service) -> None:
    """The answer to an approval has only the new approval, and none of the earlier ones."""

    def change(request: Any, status: Any) -> Any:
        own = [one for one in status["approved_by"] if one["user"]["id"] == request.caller.id]
        return {**status, "approved_by": own}

    answering(service, f"POST {APPROVE}", change)


# Up to two approvals are shown correctly.
@foreign(STORY, "Merge request approval status: approved_by")
def of_more_than_two_approvals_each_is_the_last(service: Service) -> None:
    """After a third approval, the status names its user three times."""

    def change(_: Any, status: Any) -> Any:
        given = status["approved_by"]
        return {**status, "approved_by": [given[-1]] * len(given)} if len(given) > 2 else status

    for key in (f"GET {MERGE_REQUEST}/approvals", f"POST {APPROVE}"):
        answering(service, key, change)
