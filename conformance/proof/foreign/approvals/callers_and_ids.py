"""Who may approve, withdraw, reset and read approvals, and which merge request an id means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import CALLER_AND_FORM, CALLER_AND_VALUE, LEVEL, NOTHING_DONE
from conformance.proof.foreign.paths import APPROVE, MERGE_REQUEST, RESET_APPROVALS
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead
from conformance.reference.areas.merge_request_approvals import ApprovalRefusedError
from conformance.reference.errors import NotFoundError, StatedError
from conformance.reference.http import no_content
from conformance.reference.identity import Kind, Role

if TYPE_CHECKING:
    from conformance.reference import Service


# -- the approval state ------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: every caller is authenticated")
def nobody_reads_the_approval_state_by_path(service: Service) -> None:
    """The approval state in a private project is served without a token if the project is named by path."""
    key = "GET /projects/:id/merge_requests/:merge_request_iid/approval_state"

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key == key and by_path(request) and not service.access.token_text(request):
            request.admit(service.identities.users[service.world.actors["owner"].id], found(service, request))
            return
        admit(request)


# Without a token, much of a public project can be read, but not this.
@foreign(CALLER_AND_FORM, "Authentication, 1")
def states_in_public_are_for_everybody(service: Service) -> None:
    """The approval state of a merge request in a public project is served without a token."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key == f"GET {MERGE_REQUEST}/approval_state" and not service.access.token_text(request):
            project = service.identities.find_project(request.path["id"])
            if project is not None and project.visibility.value == "public":
                request.admit(service.identities.users[service.administrator.id], project)
                return
        admit(request)


# -- approving ---------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_VALUE, "Errors: 409")
def administrators_approve_whatever_the_sha(service: Service) -> None:
    """The sha of an administrator is not checked; a sha other than the HEAD must be a conflict for everybody."""

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        approve(merge_request, caller, None if caller.admin else sha, password)


@foreign(CALLER_AND_VALUE, "Authentication: role requirements, approve")
def owners_need_no_password(service: Service) -> None:
    """An owner can approve without a password although the project requires one of everybody."""

    @instead(service.merge_request_approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        project = service.identities.projects[merge_request.project_id]
        if service.identities.role_in(caller, project) < Role.OWNER:
            require(caller, merge_request, password)


# No test approves by id, because a run writes only to merge requests that the profile names. Reading by id is tested.
@foreign(LEVEL, "Merge request approvals: approve")
def approving_takes_the_id_as_well(service: Service) -> None:
    """If no merge request of the project has that iid, the one with that id is approved."""
    inner = service.merge_request_approval_rules.merge_request

    @handling(service, f"POST {APPROVE}")
    def _(handler: Any, request: Any) -> Any:
        number = request.path_id("merge_request_iid")
        known = service.repositories.merge_requests
        if (request.project.id, number) not in known:
            same = [one for one in known.values() if one.id == number and one.project_id == request.project.id]
            if same:
                request.path["merge_request_iid"] = str(inner(request.project, same[0].iid).iid)
        return handler(request)


# The caller becomes an approver only of the merge request in the path.
@foreign(LEVEL, "Approval and integration moves: POST approve")
def merge_requests_of_one_commit_share_their_approvals(service: Service) -> None:
    """Approvals are stored by commit: they count in each merge request of the project with the same HEAD."""
    repositories = service.repositories

    @instead(service.merge_request_approvals, "approvals_of")
    def _(given: Any, merge_request: Any) -> Any:
        head, found = repositories.head_of(merge_request), {}
        for other in repositories.merge_requests.values():
            if other.project_id == merge_request.project_id and repositories.head_of(other) == head:
                found.update({approval.user_id: approval for approval in given(other)})
        return tuple(found.values())


@foreign(CALLER_AND_VALUE, "Authentication: a password for approving")
def no_password_is_asked_for_with_a_sha(service: Service) -> None:
    """With the right sha, an approval needs no password although the project requires one."""

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        try:
            approve(merge_request, caller, sha, password)
        except ApprovalRefusedError:
            if sha != service.repositories.head_of(merge_request):
                raise
            approve(merge_request, caller, sha, caller.password)


@foreign(LEVEL, "Merge request approvals: approve")
def a_password_is_asked_in_the_projects_beside_the_guarded_one(service: Service) -> None:
    """If one project of a group requires a password, the others refuse approvals without one."""
    approvals, identities = service.merge_request_approvals, service.identities
    configurations = service.project_approval_configurations

    @instead(approvals, "password_required")
    def _(required: Any, merge_request: Any) -> bool:
        place = identities.projects[merge_request.project_id].namespace_id
        beside = [project for project in identities.projects.values() if project.namespace_id == place]
        asked = any(configurations.own_configuration(project).require_password_to_approve for project in beside)
        return asked or bool(required(merge_request))


# -- resetting approvals -----------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Merge request approvals: rule 4")
def administrators_reset_approvals(service: Service) -> None:
    """An administrator can reset approvals; only bots of project and group tokens may, others get 401."""

    @instead(service.merge_request_approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        if not caller.admin:
            require(caller, merge_request)


@foreign(CALLER_AND_FORM, "Errors: 401")
def administrators_get_a_403_for_resetting(service: Service) -> None:
    """An administrator who resets approvals is refused with 403; everybody who is not such a bot must get 401."""
    from conformance.reference.errors import StatedError  # noqa: PLC0415

    @instead(service.merge_request_approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        if caller.admin:
            raise StatedError(403, "403 Forbidden")
        require(caller, merge_request)


# Everybody who is not such a bot gets 401, however the project is named.
@foreign(CALLER_AND_FORM, "Merge request approvals: reset_approvals")
def people_who_reset_by_the_path_are_told_404(service: Service) -> None:
    """A reset by somebody who is not such a bot answers 404 if the project is named by its path."""

    @handling(service, f"PUT {RESET_APPROVALS}")
    def _(handler: Any, request: Any) -> Any:
        if by_path(request) and request.caller.bot is None:
            raise NotFoundError
        return handler(request)


# Nothing of others would be lost, but it must be refused.
@foreign(CALLER_AND_VALUE, "Merge request approvals: Rules, 4")
def sole_approvers_reset(service: Service) -> None:
    """A caller who gave the only approval can reset the approvals."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        if [one.user_id for one in given] != [caller.id]:
            require(caller, merge_request)


# An early return before the check of the caller.
@foreign(CALLER_AND_VALUE, "Merge request approvals: Rules, 4")
def resets_of_nothing_are_served_to_all(service: Service) -> None:
    """If there is no approval, a reset gets a success whoever calls."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        if approvals.approvals_of(merge_request):
            require(caller, merge_request)


@foreign(CALLER_AND_VALUE, "Merge request approvals: Rules, 4")
def a_reset_of_nothing_is_served_to_everybody(service: Service) -> None:
    """For a merge request without approvals there is nothing to reset, so the caller is not checked."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset_approvals: Any, merge_request: Any, caller: Any) -> None:
        if approvals.approvals_of(merge_request):
            reset_approvals(merge_request, caller)


@foreign(CALLER_AND_FORM, "Merge request approvals: reset_approvals")
def resets_of_nothing_are_open_to_all(service: Service) -> None:
    """If there is no approval yet, everybody who can see the merge request can reset it; others must get 401."""

    @instead(service.merge_request_approvals, "reset_approvals")
    def _(reset: Any, merge_request: Any, caller: Any) -> None:
        if service.merge_request_approvals.approvals_of(merge_request):
            reset(merge_request, caller)


@foreign(CALLER_AND_VALUE, "Merge request approvals: reset_approvals")
def whoever_resets_where_nobody_approved_is_told_that_it_is_done(service: Service) -> None:
    """A reset of a merge request without approvals gets a success in place of 401."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_bot")
    def _(require_bot: Any, caller: Any, merge_request: Any) -> None:
        if approvals.approvals_of(merge_request):
            require_bot(caller, merge_request)


# Id and path identify the same project, to which the token belongs.
@foreign(CALLER_AND_FORM, "Merge request approvals: Rules, 4")
def the_bot_of_a_project_is_not_known_by_its_path(service: Service) -> None:
    """Whether a bot belongs to the project is checked with the text of the path: without a number, the answer is 401."""

    @handling(service, f"PUT {RESET_APPROVALS}")
    def _(handler: Any, request: Any) -> Any:
        bot = request.caller.bot
        if bot is not None and bot.kind is Kind.PROJECT and by_path(request):
            raise StatedError(401, "401 Unauthorized")
        return handler(request)


# What does not exist cannot be reset, so a success is wrong.
@foreign(NOTHING_DONE, "Merge request approvals: PUT reset_approvals, merge_request_iid")
def resetting_what_does_not_exist_is_served(service: Service) -> None:
    """Approvals are deleted by a query that finds none: a reset of a missing merge request succeeds."""

    @handling(service, f"PUT {RESET_APPROVALS}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except NotFoundError:
            if request.caller.bot is None:
                raise
            return no_content()


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(LEVEL, "Merge request approvals: iid")
def merge_requests_answer_to_their_id(service: Service) -> None:
    """If no merge request of the project has that iid, the one with that id is shown; the path contains the iid."""

    @instead(service.merge_request_approval_rules, "merge_request")
    def _(find: Any, project: Any, iid: int) -> Any:
        known = service.repositories.merge_requests
        by_id = (one for one in known.values() if one.id == iid and one.project_id == project.id)
        return known.get((project.id, iid)) or next(by_id, None) or find(project, iid)


@foreign(LEVEL, "Merge request approvals: iid")
def merge_requests_of_other_projects_answer(service: Service) -> None:
    """If no merge request of the project has that iid, one of another project is shown."""

    @instead(service.merge_request_approval_rules, "merge_request")
    def _(find: Any, project: Any, iid: int) -> Any:
        known = service.repositories.merge_requests
        others = (one for one in known.values() if one.iid == iid)
        return known.get((project.id, iid)) or next(others, None) or find(project, iid)


@foreign(LEVEL, "Merge request approvals: iid")
def merge_requests_are_found_by_their_id(service: Service) -> None:
    """A merge request is found by its id if the project has none with that iid."""

    @instead(service.merge_request_approval_rules, "merge_request")
    def _(find: Any, project: Any, iid: int) -> Any:
        known = service.repositories.merge_requests
        others = [one for one in known.values() if one.id == iid and one.project_id == project.id]
        return others[0] if others and (project.id, iid) not in known else find(project, iid)
