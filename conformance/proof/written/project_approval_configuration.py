"""Faults of the project approval configuration."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    altering,
    answering,
    around,
    handling,
    parameters,
    refusing,
    replacing,
    taken_for,
    without,
)
from conformance.reference.areas.project_approval_configuration import ConfigurationChange, ProjectApprovalConfiguration
from conformance.reference.errors import InvalidError, NoRouteError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

AREA = "project-approval-configuration"
KEY = "/projects/:id/approvals"
NUMBER = "approvals_before_merge"


@fault(f"{AREA}.record.approvers")
def approvers_are_named(service: Service) -> None:
    """The list approvers contains somebody."""
    replacing(service, f"GET {KEY}", approvers=[{"id": 1}])


@fault(f"{AREA}.change.several")
def of_several_settings_one_is_stored(service: Service) -> None:
    """Only the first setting of a change is stored."""

    def make(change_configuration: Any) -> Any:
        def first_alone(project: Any, change: ConfigurationChange) -> Any:
            sent = [name for name, value in asdict(change).items() if value is not None]
            return change_configuration(project, replace(change, **dict.fromkeys(sent[1:])))

        return first_alone

    around(service.project_approval_configurations, "change_configuration", make)


@fault(f"{AREA}.record.approver-groups")
def approver_groups_are_named(service: Service) -> None:
    """The list approver_groups contains a group."""
    replacing(service, f"GET {KEY}", approver_groups=[{"id": 1}])


@fault(f"{AREA}.record.approvers")
def approvers_are_those_who_have_approved(service: Service) -> None:
    """The list approvers contains everybody who has approved a merge request of the project."""

    def alter(request: Request, response: Response) -> None:
        there = [
            one for (number, _), one in service.repositories.merge_requests.items() if number == request.project.id
        ]
        given = [one for each in there for one in service.merge_request_approvals.approvals_of(each)]
        users = sorted({one.user_id for one in given})
        response.content = {**response.content, "approvers": [{"user": {"id": user}} for user in users]}

    altering(service, f"GET {KEY}", alter)


@fault(f"{AREA}.change.result-without-approvers", version="15.2")
def answer_has_approvers(service: Service) -> None:
    """The answer to a change has an empty approvers."""
    replacing(service, f"POST {KEY}", approvers=[])


@fault(f"{AREA}.change.result-without-approver-groups", version="15.2")
def answer_has_approver_groups(service: Service) -> None:
    """The answer to a change has an empty approver_groups."""
    replacing(service, f"POST {KEY}", approver_groups=[])


@fault(f"{AREA}.change.needs-no-parameter", version="15.2")
def change_wants_author_approval(service: Service) -> None:
    """A change without merge_requests_author_approval is refused."""
    refusing(
        service,
        f"POST {KEY}",
        lambda request: "merge_requests_author_approval" not in request.parameters._values,
        lambda: InvalidError("missing", parameter="merge_requests_author_approval"),
    )


@fault(f"{AREA}.change.needs-no-parameter", version="15.2")
def deprecated_number_is_not_taken_alone(service: Service) -> None:
    """approvals_before_merge alone is refused."""
    refusing(
        service,
        f"POST {KEY}",
        lambda request: set(request.parameters._values) == {"approvals_before_merge"},
        lambda: InvalidError("missing", parameter="reset_approvals_on_push"),
    )


@fault(f"{AREA}.change.empty", version="15.2")
def empty_change_resets_all(service: Service) -> None:
    """A change without any parameter resets everything to its initial value."""
    parameters(service, f"POST {KEY}", lambda values: values or {"approvals_before_merge": 3})


@fault(f"{AREA}.change.stored", version="15.2")
def committers_setting_is_not_stored(service: Service) -> None:
    """merge_requests_disable_committers_approval is answered, but not stored."""
    area = service.project_approval_configurations
    change = area.change_configuration

    def changing(project: Any, wanted: Any) -> Any:
        before = area.configuration(project)
        changed = change(project, wanted)
        area.configurations[project.id] = replace(
            changed, merge_requests_disable_committers_approval=before.merge_requests_disable_committers_approval
        )
        return changed

    area.change_configuration = changing


@fault(f"{AREA}.change.stored", version="15.2")
def password_setting_only_goes_on(service: Service) -> None:
    """require_password_to_approve can be switched on, but never off."""
    parameters(service, f"POST {KEY}", without("require_password_to_approve", unless=lambda value: value))


@fault(f"{AREA}.change.leaves-unsent", version="15.2")
def authors_that_may_not_approve_take_committers_along(service: Service) -> None:
    """Switching the approval of authors off switches that of committers off as well."""

    def both(values: Any) -> Any:
        is_off = values.get("merge_requests_author_approval") in (False, "false")
        return {**values, "merge_requests_disable_committers_approval": True} if is_off else values

    parameters(service, f"POST {KEY}", both)


@fault(f"{AREA}.change.leaves-unsent", version="15.2")
def a_number_lets_rules_be_overridden(service: Service) -> None:
    """Sending approvals_before_merge lets merge requests have their own approvers again."""

    def reset(values: Any) -> Any:
        return {"disable_overriding_approvers_per_merge_request": False, **values} if NUMBER in values else values

    parameters(service, f"POST {KEY}", reset)


@fault(f"{AREA}.change.shown", version="15.2")
def answer_shows_what_was(service: Service) -> None:
    """The answer to a change shows the former configuration."""
    area = service.project_approval_configurations
    change = area.change_configuration

    def changing(project: Any, wanted: Any) -> Any:
        before = area.configuration(project)
        change(project, wanted)
        return before

    area.change_configuration = changing


@fault(f"{AREA}.change.leaves-unsent", version="15.2")
def change_replaces_all(service: Service) -> None:
    """A change switches off all settings that it does not send."""
    area = service.project_approval_configurations
    change = area.change_configuration
    names = [name for name in asdict(ProjectApprovalConfiguration()) if name != NUMBER]

    def changing(project: Any, wanted: Any) -> Any:
        filled = {name: getattr(wanted, name) if getattr(wanted, name) is not None else False for name in names}
        return change(project, ConfigurationChange(**filled))

    area.change_configuration = changing


def reaching(service: Service, is_reached: Callable[[Any, Any], bool]) -> None:
    """Let a change of one project's configuration also apply to others, which are selected by the changed one."""
    area = service.project_approval_configurations
    change = area.change_configuration

    def changing(project: Any, wanted: Any) -> Any:
        for other in service.identities.projects.values():
            if other.id != project.id and is_reached(other, project):
                change(other, wanted)
        return change(project, wanted)

    area.change_configuration = changing


@fault(f"{AREA}.change.leaves-other-projects", version="15.2")
def changes_reach_every_project(service: Service) -> None:
    """A change of one configuration changes all."""
    reaching(service, lambda *_: True)


@fault(f"{AREA}.change.leaves-other-projects", version="15.2")
def changes_reach_the_namespace(service: Service) -> None:
    """A change of one configuration changes those of all projects in the same group."""
    reaching(service, lambda other, project: other.namespace_id == project.namespace_id)


@fault(f"{AREA}.change.selective-while-resetting", version="15.2")
def both_are_stored(service: Service) -> None:
    """selective_code_owner_removals can be enabled while pushes reset approvals."""
    service.project_approval_configurations.without_conflict = lambda wanted: wanted


@fault(f"{AREA}.change.selective-while-resetting", version="15.2")
def both_at_once_are_stored(service: Service) -> None:
    """Both flags are stored if they are sent together."""
    area = service.project_approval_configurations
    change, require = area.change_configuration, area.without_conflict

    def changing(project: Any, wanted: Any) -> Any:
        area.without_conflict = (
            (lambda one: one) if wanted.reset_approvals_on_push and wanted.selective_code_owner_removals else require
        )
        try:
            return change(project, wanted)
        finally:
            area.without_conflict = require

    area.change_configuration = changing


@fault(f"{AREA}.change.selective-without-resetting", version="15.2")
def selective_is_never_taken(service: Service) -> None:
    """selective_code_owner_removals can never be enabled."""
    parameters(service, f"POST {KEY}", without("selective_code_owner_removals", unless=lambda value: not value))


@fault(f"{AREA}.change.settings-are-boolean", version="15.2")
def words_are_true(service: Service) -> None:
    """Any word counts as true."""
    parameters(service, f"POST {KEY}", lambda values: {k: True if v == "maybe" else v for k, v in values.items()})


@fault(f"{AREA}.change.settings-are-boolean", version="15.2")
def bad_setting_is_dropped(service: Service) -> None:
    """A setting that is not boolean is ignored."""
    parameters(
        service, f"POST {KEY}", lambda values: {k: v for k, v in values.items() if not isinstance(v, str | dict)}
    )


@fault(f"{AREA}.change.approvals-before-merge-is-integer", version="15.2")
def bad_number_is_zero(service: Service) -> None:
    """A number that is not one counts as 0."""
    parameters(
        service,
        f"POST {KEY}",
        taken_for("approvals_before_merge", 0, unless=lambda value: isinstance(value, int)),
    )


def still_served(service: Any) -> None:
    service.routes.change(f"POST {KEY}", removed=None)


@fault(f"{AREA}.change.removed", version="16.0")
def change_is_served_and_does_nothing(service: Service) -> None:
    """From 16.0 on a change is still answered, but not stored."""
    still_served(service)
    area = service.project_approval_configurations
    area.change_configuration = lambda project, change: change.on(area.configuration(project))


@fault(f"{AREA}.change.removed", version="17.7")
def change_is_served_without_an_answer(service: Service) -> None:
    """From 16.0 on a change is still done, and answered with an empty object."""
    still_served(service)
    area = service.project_approval_configurations
    area.present_changed = lambda configuration: {"approvers": [], **asdict(configuration)}
    area.present = lambda configuration: {"approvers": [], "approver_groups": [], **asdict(configuration)}


@fault(f"{AREA}.change.removed", version="19.0")
def change_is_refused_and_done(service: Service) -> None:
    """From 16.0 on a change is refused after it was done."""
    still_served(service)

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            handler(request)
            raise InvalidError("gone", parameter="id")

        return handle

    handling(service, f"POST {KEY}", make)


@fault(f"{AREA}.change.removed", version="16.0")
def change_is_served_by_path(service: Service) -> None:
    """From 16.0 on a change is refused by the number of the project, and done by its path, without an answer."""
    still_served(service)

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if request.path["id"].isdigit():
                raise NoRouteError
            handler(request)
            return Response(200)

        return handle

    handling(service, f"POST {KEY}", make)


@fault(f"{AREA}.change.removed", version="16.0")
def change_is_a_server_error(service: Service) -> None:
    """From 16.0 on a change causes a server error."""
    still_served(service)
    answering(service, f"POST {KEY}", lambda _: True, lambda: Response(500))


@fault(f"{AREA}.read", version="15.2")
def reading_is_gone_early(service: Service) -> None:
    """The configuration cannot be read even before 16.0."""
    answering(service, f"GET {KEY}", lambda _: True, lambda: Response(404))


@fault(f"{AREA}.author-approval.allowed", version="15.2")
def authors_never_approve(service: Service) -> None:
    """Authors may not approve, whatever the configuration says."""
    rules = service.merge_request_approval_rules
    barred = rules.barred
    rules.barred = lambda merge_request: barred(merge_request) | {merge_request.author_id}


@fault(f"{AREA}.author-approval.allowed")
def authors_never_approve_later_either(service: Service) -> None:
    """Authors may not approve, whatever the configuration says."""
    authors_never_approve(service)


@fault(f"{AREA}.author-approval.forbidden", version="15.2")
def authors_always_approve(service: Service) -> None:
    """Authors may approve, whatever the configuration says."""
    rules = service.merge_request_approval_rules
    barred = rules.barred
    rules.barred = lambda merge_request: barred(merge_request) - {merge_request.author_id}


@fault(f"{AREA}.author-approval.forbidden")
def refused_authors_are_listed(service: Service) -> None:
    """The approval of an author is refused after it was added."""
    approvals = service.merge_request_approvals
    approve = approvals.approve

    def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        if caller.id == merge_request.author_id:
            approvals.add_approval(caller, merge_request)
        approve(merge_request, caller, sha, password)

    approvals.approve = approving


@fault(f"{AREA}.unknown-project")
def unknown_project_has_a_configuration(service: Service) -> None:
    """A project that does not exist has the configuration of the main one."""
    find = service.identities.find_project
    main = service.world.one("project").id
    service.identities.find_project = lambda text: find(text) or (find(str(main)) if text == "2000000001" else None)
