"""Small bugs of approving, of the approval settings, and of passwords."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, is_served

if TYPE_CHECKING:
    from conformance.reference import Service

_PATH = "/projects/:id/merge_requests/:merge_request_iid"
_OF_GROUP = "/groups/:id/merge_request_approval_setting"


@foreign("again, by another caller, after an undo", "Merge request approvals: approve, sha")
def heads_are_compared_for_the_first_approver_only(service: Service) -> None:
    """Once somebody approved, the sha that others send is not looked at."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: str | None) -> None:
        if not approvals.approvals_of(merge_request):
            require(merge_request, sha)


@foreign("numbers and texts that follow from the story", "Approval moves: approvals_left is recalculated")
def answers_to_approvals_count_as_before(service: Service) -> None:
    """The answer to an approval names who approved, and counts what was left before."""
    approvals, left = service.merge_request_approvals, {}

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        left["now"] = approvals.approvals_left(merge_request)
        add(user, merge_request)

    @handling(service, f"POST {_PATH}/approve")
    def _(handler: Any, request: Any) -> Any:
        left.clear()
        answer = handler(request)
        if left:
            answer.content = {**answer.content, "approvals_left": left["now"]}
        return answer


@foreign("write x everything that must stay", "Merge request approval state: approval_rules_overwritten")
def one_overwritten_merge_request_makes_all_so(service: Service) -> None:
    """approval_rules_overwritten is true once any merge request of the project has rules of its own."""
    rules = service.merge_request_approval_rules

    @instead(rules, "overwritten")
    def _(overwritten: Any, merge_request: Any) -> bool:
        all_of = service.repositories.merge_requests.values()
        return any(overwritten(one) for one in all_of if one.project_id == merge_request.project_id)


@foreign("numbers and texts that follow from the story", "Merge request approval status: description")
def long_descriptions_are_cut(service: Service) -> None:
    """The status shows the first line of a description alone."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        return {**shown, "description": str(shown["description"]).partition(" ")[0]}


@foreign("again, by another caller, after an undo", "Merge request approvals: approve")
def approving_takes_the_latest_approval_of_another_merge_request(service: Service) -> None:
    """Whoever approves a merge request loses the approval of the one approved before."""
    approvals, last = service.merge_request_approvals, {}

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        before = last.get(user.id)
        if before is not None and before.id != merge_request.id:
            approvals.remove_approval(user, before)
        add(user, merge_request)
        last[user.id] = merge_request


@foreign("again, by another caller, after an undo", "Merge request approvals: unapprove")
def unapproving_again_takes_the_approval_of_another(service: Service) -> None:
    """Whoever takes an approval back twice takes back that of somebody else the second time."""
    approvals = service.merge_request_approvals

    @instead(approvals, "unapprove")
    def _(unapprove: Any, merge_request: Any, caller: Any) -> None:
        given = approvals.approvals_of(merge_request)
        if given and not approvals.approved_by(caller, merge_request):
            approvals.remove_approval(service.identities.users[given[-1].user_id], merge_request)
        unapprove(merge_request, caller)


# -- approval settings -------------------------------------------------------------------------------------------------


@foreign("write x everything that must stay", "Approval settings: PUT for a project")
def settings_of_a_project_reach_its_group(service: Service) -> None:
    """A setting that is written for a project is stored for its group as well."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if hasattr(subject, "namespace_id"):
            change(service.identities.namespace_of(subject), wanted)


@foreign("none, one or two values", "Approval settings: PUT with nothing")
def an_update_of_nothing_resets_the_settings(service: Service) -> None:
    """A PUT for a project without any setting makes all of them what they were at first."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if not wanted:
            for key in [key for key in settings.values if key[1] == subject.id]:
                del settings.values[key]
        change(subject, wanted)


@foreign("caller x form of id x operation", "Approval settings: GET for a group")
def groups_named_by_path_show_initial_settings(service: Service) -> None:
    """The settings of a group that is named by its path are those that groups begin with."""

    @handling(service, f"GET {_OF_GROUP}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and not request.path["id"].isdigit():
            known = service.choices.group_settings_on_initially
            answer.content = {name: {**one, "value": name in known} for name, one in answer.content.items()}
        return answer
