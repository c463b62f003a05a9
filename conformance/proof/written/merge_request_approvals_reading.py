"""Faults of the approval status and the approval state: what they show, and of which merge request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    altering,
    answering,
    around,
    breaking,
    handling,
    is_number,
    names_nothing,
    refusing,
    replacing,
)
from conformance.reference.errors import ForbiddenError
from conformance.reference.http import Response, ok

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
RULES = f"{MERGE_REQUEST}/approval_rules"
RULE = f"{RULES}/:approval_rule_id"

# -- status and state --------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.status.describes-its-merge-request")
def status_of_another_project(service: Service) -> None:
    """The status names another project."""

    def alter(_: Request, response: Response) -> None:
        response.content = {**response.content, "project_id": response.content["project_id"] + 1}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.status.describes-its-merge-request")
def status_of_another_project_by_the_path(service: Service) -> None:
    """The status names another project if it is read by the path of its own."""

    def alter(request: Request, response: Response) -> None:
        if not request.path["id"].isdigit():
            response.content = {**response.content, "project_id": response.content["project_id"] + 1}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.status.describes-its-merge-request")
def status_with_id_for_iid(service: Service) -> None:
    """The status shows the id in place of the iid."""

    def alter(_: Request, response: Response) -> None:
        response.content = {**response.content, "iid": response.content["id"]}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.status.open-state")
def open_state_reads_open(service: Service) -> None:
    """The state of an open merge request is open."""
    replacing(service, f"GET {MERGE_REQUEST}/approvals", state="open")


@fault("merge-request-approvals.status.read")
def status_breaks_while_approvals_are_missing(service: Service) -> None:
    """The status of a merge request that lacks approvals causes a server error."""

    def alter(_: Request, response: Response) -> None:
        if response.content["approvals_left"]:
            response.status = 500

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.state.overwritten")
def never_overwritten(service: Service) -> None:
    """approval_rules_overwritten is always false."""
    service.merge_request_approval_rules.overwritten = lambda _: False


@fault("merge-request-approvals.state.not-overwritten")
def always_overwritten(service: Service) -> None:
    """approval_rules_overwritten is always true."""
    service.merge_request_approval_rules.overwritten = lambda _: True


@fault("merge-request-approvals.merge-request.by-iid")
def found_by_id_as_well(service: Service) -> None:
    """A merge request is also found by its id."""

    def make(find: Any) -> Any:
        def by_either(project: Any, iid: int) -> Any:
            try:
                return find(project, iid)
            except Exception:
                for known in service.repositories.merge_requests.values():
                    if known.id == iid:
                        return known
                raise

        return by_either

    around(service.merge_request_approval_rules, "merge_request", make)


@fault("merge-request-approvals.merge-request.iid-is-integer")
def any_text_names_the_first_merge_request(service: Service) -> None:
    """A merge_request_iid that is not a number identifies the first merge request."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if not is_number(request, "merge_request_iid"):
                request.path["merge_request_iid"] = "1"
            return handler(request)

        return handle

    handling(service, f"GET {MERGE_REQUEST}/approval_state", make)


@fault("merge-request-approvals.merge-request.iid-is-integer")
def any_text_is_unapproved(service: Service) -> None:
    """Unapproving accepts a merge_request_iid that is not a number."""
    answering(
        service,
        f"POST {MERGE_REQUEST}/unapprove",
        lambda request: not is_number(request, "merge_request_iid"),
        lambda: ok({}),
    )


@fault("merge-request-approvals.unknown-merge-request.reading")
def unknown_status_is_empty(service: Service) -> None:
    """The status of a merge request that does not exist is an empty object."""
    answering(
        service,
        f"GET {MERGE_REQUEST}/approvals",
        lambda request: names_nothing(request, "merge_request_iid"),
        lambda: ok({}),
    )


@fault("merge-request-approvals.unknown-merge-request.reading")
def unknown_rules_are_empty(service: Service) -> None:
    """A merge request that does not exist has an empty list of rules."""
    answering(service, f"GET {RULES}", lambda request: names_nothing(request, "merge_request_iid"), lambda: ok([]))


@fault("merge-request-approvals.unknown-merge-request.changing-rules")
def rule_for_nothing(service: Service) -> None:
    """Creating a rule of a merge request that does not exist succeeds."""
    answering(
        service, f"POST {RULES}", lambda request: names_nothing(request, "merge_request_iid"), lambda: ok({}, 201)
    )


@fault("merge-request-approvals.unknown-merge-request.changing-rules")
def deletion_nowhere_breaks(service: Service) -> None:
    """Deleting a rule of a merge request that does not exist causes a server error."""
    breaking(service, f"DELETE {RULE}", lambda request: names_nothing(request, "merge_request_iid"))


@fault("merge-request-approvals.unknown-merge-request.approving")
def nothing_is_unapproved(service: Service) -> None:
    """Unapproving a merge request that does not exist succeeds."""
    answering(
        service,
        f"POST {MERGE_REQUEST}/unapprove",
        lambda request: names_nothing(request, "merge_request_iid"),
        lambda: ok({}, 201),
    )


# -- roles and projects ------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.unknown-project")
def unknown_project_is_the_main_one(service: Service) -> None:
    """A project number that does not exist identifies the main project."""
    find = service.identities.find_project
    main = service.world.one("project").id
    service.identities.find_project = lambda text: find(text) or (find(str(main)) if text == "2000000001" else None)


@fault("merge-request-approvals.authorization.maintainer-is-served")
def maintainers_cannot_read_the_state(service: Service) -> None:
    """Only owners may read the approval state."""
    refusing(
        service,
        f"GET {MERGE_REQUEST}/approval_state",
        lambda request: request.caller.username == service.world.actors["maintainer"].username,
        ForbiddenError,
    )


@fault("merge-request-approvals.rules.are-separate")
def state_shows_rules_of_the_one_before(service: Service) -> None:
    """The approval state also shows the rules that the merge request opened before it has of its own."""
    rules = service.merge_request_approval_rules

    def make(state: Any) -> Any:
        def with_former(merge_request: Any, viewer: Any) -> Any:
            shown = state(merge_request, viewer)
            former = service.repositories.merge_requests.get((merge_request.project_id, merge_request.iid - 1))
            theirs = rules.own_rules(former) if former is not None else []
            more = [{**rules.present(rule, former, viewer), "approved_by": [], "approved": False} for rule in theirs]
            return {**shown, "rules": [*shown["rules"], *more]}

        return with_former

    around(service.merge_request_approvals, "state", make)
