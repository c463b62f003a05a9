"""Faults of approvals that show in some places only: in the state, in an answer, or where no rule was made before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, altering, around, handling
from conformance.proof.written.approvals_answers import sent_in
from conformance.proof.written.merge_request_approvals import MERGE_REQUEST, RULES
from conformance.reference.errors import InvalidError, StatedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

# -- copies and states -------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.copy.approvals-required")
def answer_to_copy_has_the_number_of_its_source(service: Service) -> None:
    """The answer to the creation of a copy shows the approvals_required of the project's rule."""

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        source = service.approval_rules.rules.get(sent_in(request).get("approval_project_rule_id", 0))
        if source is not None:
            response.content = {**content, "approvals_required": source.approvals_required}

    altering(service, f"POST {RULES}", alter)


@fault("merge-request-approvals.rules.copy.name")
def answer_to_copy_has_the_sent_name(service: Service) -> None:
    """The answer to the creation of a copy shows the name that was sent."""

    def alter(request: Request, response: Response) -> None:
        content, sent = response.content, sent_in(request)
        if "approval_project_rule_id" in sent and "name" in sent:
            response.content = {**content, "name": sent["name"]}  # type: ignore[dict-item]

    altering(service, f"POST {RULES}", alter)


@fault("merge-request-approvals.rules.create.in-state")
def state_names_no_users(service: Service) -> None:
    """The approval state names no users of any rule."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, "rules": [{**rule, "users": []} for rule in content["rules"]]}

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)


@fault("merge-request-approvals.rules.create.in-state")
def state_names_no_groups(service: Service) -> None:
    """The approval state names no groups of any rule."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, "rules": [{**rule, "groups": []} for rule in content["rules"]]}

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)


@fault("merge-request-approvals.rules.update.leaves-unsent")
def lists_alone_make_one_approval_enough(service: Service) -> None:
    """An update that sends users and no number makes the rule require one approval."""

    def make(update: Any) -> Any:
        def lowering(merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
            if wanted.user_ids is not None and wanted.approvals_required is None and wanted.name is None:
                wanted = replace(wanted, approvals_required=1)
            return update(merge_request, number, wanted, caller)

        return lowering

    around(service.merge_request_approval_rules, "update_rule", make)


# -- commits and resets ------------------------------------------------------------------------------------------------


def checking_heads(service: Service, where: Callable[[Any], bool]) -> None:
    """Compare a sha with the HEAD in some merge requests only."""

    def make(require: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            if where(merge_request):
                require(merge_request, sha)

        return requiring

    around(service.merge_request_approvals, "require_current_head", make)


@fault("merge-request-approvals.approve.other-sha-conflicts")
def only_the_first_merge_request_has_a_head(service: Service) -> None:
    """Any sha is accepted in every merge request of a project but the first."""
    checking_heads(service, lambda merge_request: merge_request.iid == 1)


@fault("merge-request-approvals.approve.other-sha-conflicts")
def without_rules_any_commit_is_approved(service: Service) -> None:
    """Any sha is accepted in a merge request without rules of its own."""
    checking_heads(service, service.merge_request_approval_rules.own_rules)  # type: ignore[arg-type]


@fault("merge-request-approvals.reset.others-get-401")
def without_rules_anybody_resets(service: Service) -> None:
    """Everybody resets the approvals of a merge request without rules of its own."""

    def make(require: Any) -> Any:
        def requiring(caller: Any, merge_request: Any) -> None:
            if service.merge_request_approval_rules.own_rules(merge_request):
                require(caller, merge_request)

        return requiring

    around(service.merge_request_approvals, "require_bot", make)


@fault("merge-request-approvals.approve.current-sha")
def second_approval_of_the_head_conflicts(service: Service) -> None:
    """The current HEAD conflicts once somebody else has approved."""
    approvals = service.merge_request_approvals

    def make(approve: Any) -> Any:
        def conflicting(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            others = [one for one in approvals.approvals_of(merge_request) if one.user_id != caller.id]
            if sha is not None and others:
                raise StatedError(409, "409 Conflict")
            approve(merge_request, caller, sha, password)

        return conflicting

    around(approvals, "approve", make)


@fault("merge-request-approvals.approve.current-sha")
def right_password_does_not_go_with_the_head(service: Service) -> None:
    """The current HEAD conflicts if it is sent together with the right password."""
    approvals = service.merge_request_approvals

    def make(approve: Any) -> Any:
        def conflicting(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            if sha is not None and password is not None and approvals.password_matches(caller, password):
                raise StatedError(409, "409 Conflict")
            approve(merge_request, caller, sha, password)

        return conflicting

    around(approvals, "approve", make)


def remembering_commits(service: Service) -> set[tuple[int, int]]:
    """Return the approvals, by merge request and user, that are given with a sha from now on."""
    given: set[tuple[int, int]] = set()

    def make(approve: Any) -> Any:
        def remembering(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            approve(merge_request, caller, sha, password)
            if sha is not None:
                given.add((merge_request.id, caller.id))

        return remembering

    around(service.merge_request_approvals, "approve", make)
    return given


@fault("merge-request-approvals.unapprove.caller-is-gone")
def approval_of_a_commit_stays_once(service: Service) -> None:
    """An approval that was given with a sha is withdrawn only by the second call."""
    kept = remembering_commits(service)

    def make(remove: Any) -> Any:
        def late(user: Any, merge_request: Any) -> None:
            if (merge_request.id, user.id) in kept:
                kept.discard((merge_request.id, user.id))
            else:
                remove(user, merge_request)

        return late

    around(service.merge_request_approvals, "remove_approval", make)


@fault("merge-request-approvals.reset.clears-all")
def approval_of_a_commit_outlives_a_reset(service: Service) -> None:
    """An approval that was given with a sha is cleared only by the second reset."""
    kept, approvals = remembering_commits(service), service.merge_request_approvals

    def make(clear: Any) -> Any:
        def late(merge_request: Any) -> None:
            shown = approvals.approvals_of(merge_request)
            left = tuple(one for one in shown if (merge_request.id, one.user_id) in kept)
            clear(merge_request)
            kept.difference_update((merge_request.id, one.user_id) for one in left)
            if left:
                approvals.approvals[merge_request.id] = left

        return late

    around(approvals, "clear_approvals", make)


@fault("merge-request-approvals.reset.clears-all")
def reset_by_the_path_clears_the_first(service: Service) -> None:
    """If the project is named by its path, a reset clears only the first approval."""
    approvals = service.merge_request_approvals

    def make(handler: Any) -> Any:
        def resetting(request: Any) -> Any:
            if request.path["id"].isdigit():
                return handler(request)
            before = dict(approvals.approvals)
            answer = handler(request)
            cleared = [number for number, given in before.items() if given and not approvals.approvals.get(number)]
            approvals.approvals.update({number: before[number][1:] for number in cleared})
            return answer

        return resetting

    handling(service, f"PUT {MERGE_REQUEST}/reset_approvals", make)


@fault("merge-request-approvals.approve.other-sha-conflicts")
def another_commit_is_invalid_by_the_path(service: Service) -> None:
    """If the project is named by its path, another commit is refused as invalid input, and not as a conflict."""

    def make(handler: Any) -> Any:
        def approving(request: Request) -> Any:
            try:
                return handler(request)
            except StatedError as error:
                if request.path["id"].isdigit():
                    raise
                raise InvalidError("sha is not the HEAD", parameter="sha") from error

        return approving

    handling(service, f"POST {MERGE_REQUEST}/approve", make)


@fault("merge-request-approvals.state.overwritten")
def a_deleted_rule_overwrites_no_longer_for_the_others(service: Service) -> None:
    """Once a rule of a merge request is deleted, those that it still has overwrite nothing until another is made."""
    rules, without = service.merge_request_approval_rules, set[int]()
    afterwards(rules, "delete_rule", lambda _, merge_request, __: without.add(merge_request.id))
    afterwards(rules, "create_rule", lambda _, merge_request, *__: without.discard(merge_request.id))
    around(
        rules,
        "overwritten",
        lambda found: lambda merge_request: merge_request.id not in without and found(merge_request),
    )


@fault("merge-request-approvals.rules.hidden-groups.are-announced")
def the_state_shows_hidden_groups(service: Service) -> None:
    """The approval state shows the groups of a rule even to those who may not see them."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        groups, rules = service.identities.groups, service.approval_rules.rules
        for shown in content["rules"]:
            rule = rules.get(shown["id"])
            shown["groups"] = [service.present.group(groups[one]) for one in rule.groups] if rule else []

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)
