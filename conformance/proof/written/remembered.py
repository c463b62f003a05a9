"""Faults of answers that are remembered: for one caller, or for one form of a path, and not forgotten by a change.

And of what one call says about a new rule, which is remembered for the next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import altering, around, handling
from conformance.reference.areas.approval_rule_records import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

NEWER, OLDER = "/projects/:id/integrations", "/projects/:id/services"
MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


def of_caller(request: Request) -> Any:
    """Remember for each caller."""
    return request.caller.id


def of_form(request: Request) -> Any:
    """Remember for the number and for the path."""
    return request.path.get("id")


def of_everybody(_: Request) -> None:
    """Remember once for all."""


def remembered(service: Service, key: str, whose: Callable[[Request], Any]) -> None:
    """Remember the answers of a read; a change makes forgotten only what is remembered for the same one."""
    known: dict[tuple[Any, bytes], Any] = {}

    def alter(request: Request, response: Response) -> None:
        response.content = known.setdefault((whose(request), request.raw_path + request.query), response.content)

    def forget(_: Any, request: Request, response: Response) -> Response:
        if request.method != "GET" and response.status < 300:
            for one in [one for one in known if one[0] == whose(request)]:
                del known[one]
        return response

    altering(service, f"GET {key}", alter)
    service.transformers.append(forget)


@fault("integrations.alias.reads-the-same")
def settings_are_remembered_for_each_caller(service: Service) -> None:
    """Whoever read the settings of an integration is shown them until they change something themselves."""
    remembered(service, f"{NEWER}/:slug", of_caller)


@fault("integrations.alias.reads-the-same")
def services_are_remembered_for_each_caller(service: Service) -> None:
    """The same, where they are read by the older name."""
    remembered(service, f"{OLDER}/:slug", of_caller)


@fault("integrations.alias.reads-the-same")
def services_are_remembered_for_each_form_of_the_path(service: Service) -> None:
    """What was read by the older name and by the path of the project is shown until it is changed by that path."""
    remembered(service, f"{OLDER}/:slug", of_form)


@fault("integrations.alias.reads-the-same")
def the_list_of_services_is_remembered_for_each_caller(service: Service) -> None:
    """Whoever read the list by the older name is shown it until they change something themselves."""
    remembered(service, OLDER, of_caller)


@fault("merge-request-approvals.state.overwritten")
def the_state_is_remembered_for_each_form_of_the_path(service: Service) -> None:
    """The approval state that was read by the path of the project is shown until something is changed by that path."""
    remembered(service, f"{MERGE_REQUEST}/approval_state", of_form)


@fault("merge-request-approvals.rules.hidden-groups.are-announced")
def the_state_is_remembered_for_all_callers(service: Service) -> None:
    """The approval state is shown as whoever read it first may see it, until something is changed."""
    remembered(service, f"{MERGE_REQUEST}/approval_state", of_everybody)


@fault("merge-request-approvals.rules.hidden-groups.are-announced")
def the_rules_of_a_merge_request_are_remembered_for_all_callers(service: Service) -> None:
    """The list of rules is shown as whoever read it first may see it, until something is changed."""
    remembered(service, f"{MERGE_REQUEST}/approval_rules", of_everybody)


@fault("merge-request-approvals.state.rule.approved-by-have-approved")
def the_state_is_remembered_until_somebody_approves(service: Service) -> None:
    """What the approval state showed is shown until the next approval, also after one was taken back."""
    known: dict[bytes, Any] = {}
    key = "/projects/:id/merge_requests/:merge_request_iid"

    def alter(request: Request, response: Response) -> None:
        response.content = known.setdefault(request.raw_path, response.content)

    def make(handler: Any) -> Any:
        def forgetting(request: Request) -> Any:
            known.clear()
            return handler(request)

        return forgetting

    altering(service, f"GET {key}/approval_state", alter)
    handling(service, f"POST {key}/approve", make)


@fault("merge-request-approvals.rules.copy.approvals-required")
def the_number_of_the_first_copy_is_remembered(service: Service) -> None:
    """All copies of a rule of a project ask for the number that was sent for the first one."""
    first: dict[int, int] = {}

    def make(copied: Any) -> Any:
        def numbered(merge_request: Any, source: Any, wanted: Any) -> Any:
            copy = copied(merge_request, source, wanted)
            return replace(copy, approvals_required=first.setdefault(source.id, copy.approvals_required))

        return numbered

    around(service.merge_request_approval_rules, "copied_project_rule", make)


def only_the_first_copy_has(service: Service, part: str) -> None:
    """Give the users or groups of a project rule to its first copy alone."""
    copied: set[int] = set()

    def make(copy: Any) -> Any:
        def once(merge_request: Any, source: Any, wanted: Any) -> Any:
            made = copy(merge_request, source, wanted)
            if source.id in copied:
                made = replace(made, **{part: ()})
            copied.add(source.id)
            return made

        return once

    around(service.merge_request_approval_rules, "copied_project_rule", make)


@fault("merge-request-approvals.rules.copy.users")
def the_second_copy_has_no_users(service: Service) -> None:
    """Of the copies of one project rule, only the first has its users."""
    only_the_first_copy_has(service, "users")


@fault("merge-request-approvals.rules.copy.groups")
def the_second_copy_has_no_groups(service: Service) -> None:
    """Of the copies of one project rule, only the first has its groups."""
    only_the_first_copy_has(service, "groups")


@fault("integrations.disable.settings-stay-reset")
def what_was_disabled_by_the_older_name_comes_back(service: Service) -> None:
    """An integration that is disabled by the older name has its values again when it is next set up."""
    area = service.integrations
    gone: dict[Any, Any] = {}

    def remembering(handler: Any) -> Any:
        def disabling(request: Request) -> Any:
            known = area.known.get((request.project.id, request.path["slug"]))
            if known is not None:
                gone[request.project.id, known.slug] = known.values
            return handler(request)

        return disabling

    def make(set_up: Any) -> Any:
        def setting_up(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
            return set_up(project, kind, {**gone.pop((project.id, kind.slug), {}), **values}, active=active)

        return setting_up

    handling(service, f"DELETE {OLDER}/:slug", remembering)
    around(area, "set_up", make)


#: What a new rule has from the one that was created before it, unless it is sent: by requirement, level and parameter.
_SENT_BEFORE = {
    "group-approval-rules.create.user-ids": (Level.GROUP, "user_ids"),
    "group-approval-rules.create.group-ids": (Level.GROUP, "group_ids"),
    "project-approval-rules.create.user-ids": (Level.PROJECT, "user_ids"),
    "project-approval-rules.create.protected-branch-ids": (Level.PROJECT, "protected_branch_ids"),
}


def _as_sent_before(level: Level, parameter: str) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        sent: dict[Any, Any] = {}

        def make(create: Any) -> Any:
            def remembering(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
                if home.level is level and getattr(wanted, parameter) is None:
                    wanted = replace(wanted, **{parameter: sent.get(home)})
                elif home.level is level:
                    sent[home] = getattr(wanted, parameter)
                return create(subject, home, wanted, caller)

            return remembering

        around(service.approval_rules, "create_rule", make)

    says = f"A rule that is created without {parameter} has those that were sent for the one before."
    return named(f"{parameter}_of_a_call_are_those_of_the_next", says, apply)


for _requirement, (_level, _parameter) in _SENT_BEFORE.items():
    fault(_requirement)(_as_sent_before(_level, _parameter))
