"""Faults of the approval configuration and of the approval settings."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    AGAIN,
    CALLER_AND_VALUE,
    FORM_SENT,
    REFUSED,
    RESETS,
    SIDE_EFFECT,
    STORY,
    VERSIONS,
)
from conformance.proof.foreign.paths import CONFIGURATION, GROUP_SETTINGS, PROJECT_SETTINGS
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import home_of
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.areas.project_approval_configuration import ConfigurationChange
from conformance.reference.errors import ApiError, NoRouteError
from conformance.reference.identity import Kind, Role

if TYPE_CHECKING:
    from conformance.reference import Service


# expects project-approval-configuration.change.leaves-unsent
@foreign(FORM_SENT, "Project approval configuration: POST, number alone", version="15.11")
def the_number_resets_the_flags(service: Service) -> None:
    """Sending approvals_before_merge sets the flags that are not sent to false."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        if wanted.approvals_before_merge is not None:
            unsent = [one.name for one in fields(ConfigurationChange) if getattr(wanted, one.name) is None]
            wanted = replace(wanted, **dict.fromkeys(unsent, False))
        return change(project, wanted)


# expects project-approval-configuration.record.settings
@foreign(CALLER_AND_VALUE, "Project approval configuration: GET by a developer")
def developers_do_not_see_the_password_flag(service: Service) -> None:
    """For callers below the Maintainer role the configuration lacks require_password_to_approve."""

    @handling(service, f"GET {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if service.identities.role_in(request.caller, request.project) < Role.MAINTAINER:
            answer.content = {k: v for k, v in answer.content.items() if k != "require_password_to_approve"}
        return answer


# expects errors.refusal.changes-nothing
@foreign(REFUSED, "Project approval configuration: POST, an invalid flag among valid ones", version="15.11")
def valid_flags_are_kept_beside_an_invalid_one(service: Service) -> None:
    """A change with one value that is no boolean is refused, but the booleans beside it are kept."""

    @handling(service, f"POST {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except ApiError:
            sent = {name: value for name, value in request.parameters._values.items() if isinstance(value, bool)}
            known = {one.name for one in fields(ConfigurationChange)}
            area = service.project_approval_configurations
            change = ConfigurationChange(**{name: value for name, value in sent.items() if name in known})
            area.configurations[request.project.id] = change.on(area.configuration(request.project))
            raise


# expects project-approval-configuration.change.answer
@foreign(VERSIONS, "Project approval configuration: POST before 16.0", version="15.11")
def the_configuration_is_fixed_one_version_early(service: Service) -> None:
    """The endpoint that changes the configuration is missing at 15.11 already."""

    @handling(service, f"POST {CONFIGURATION}")
    def _(_handler: Any, _request: Any) -> Any:
        raise NoRouteError


# expects approval-settings.group.update.allow-author-approval
@foreign(RESETS, "Approval settings: PUT, true again")
def a_setting_is_switched_on_once(service: Service) -> None:
    """A setting that was switched off after it was on cannot be switched on again."""
    off: set[Any] = set()

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        key = type(subject).__name__, subject.id
        known = {s: v for s, v in wanted.items() if not (v and (*key, s) in off)}
        for setting, value in wanted.items():
            if not value and service.approval_settings.stored(subject, setting):
                off.add((*key, setting))
        change(subject, known)


# expects errors.refusal.changes-nothing
@foreign(REFUSED, "Approval settings: PUT, an invalid setting among valid ones")
def valid_settings_are_kept_beside_an_invalid_one(service: Service) -> None:
    """An update with one value that is no boolean is refused, but the booleans beside it are kept."""

    @handling(service, f"PUT {PROJECT_SETTINGS}", f"PUT {GROUP_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except ApiError:
            subject = request.project if "/projects" in request.route.path else request.group
            accepted = {one.value: one for one in service.approval_settings.accepted()}
            sent = {accepted[n]: v for n, v in request.parameters._values.items() if n in accepted and v in (True, False)}
            service.approval_settings.change(subject, sent)
            raise


# expects approval-settings.group.update.leaves-unsent
@foreign(AGAIN, "Approval settings: PUT while selective_code_owner_removals is on")
def any_update_switches_selective_removals_off(service: Service) -> None:
    """An update without selective_code_owner_removals switches it off."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted if not wanted else {Setting.SELECTIVE_REMOVALS: False, **wanted})


# expects approval-settings.group.update.allow-author-approval
@foreign(AGAIN, "Approval settings: GET by path after PUT by id")
def settings_are_remembered_for_each_form_of_the_id(service: Service) -> None:
    """Settings are remembered by the text that names the group: an update by id does not show by path."""
    seen: dict[tuple[str, str], Any] = {}

    @handling(service, f"GET {GROUP_SETTINGS}", f"GET {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = seen.setdefault((request.route.path, request.path["id"]), answer.content)
        return answer

    @handling(service, f"PUT {GROUP_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        seen.pop((request.route.path, request.path["id"]), None)
        return answer


# expects approval-settings.project.update.leaves-other-projects
@foreign(SIDE_EFFECT, "Approval settings: PUT retain_approvals_on_push, other projects of the group")
def retaining_holds_for_the_neighbours(service: Service) -> None:
    """Setting retain_approvals_on_push for a project sets it for the other projects of its group."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if Setting.RETAIN_APPROVALS in wanted and hasattr(subject, "namespace_id"):
            for one in service.identities.projects.values():
                if one.namespace_id == subject.namespace_id:
                    key = Kind.PROJECT, one.id, Setting.RETAIN_APPROVALS
                    service.approval_settings.values[key] = wanted[Setting.RETAIN_APPROVALS]


# expects approval-settings.group.update.require-reauthentication-to-approve
@foreign(VERSIONS, "Approval settings: require_reauthentication_to_approve", version="17.1")
def reauthentication_is_not_taken_by_projects_yet(service: Service) -> None:
    """At 17.1 projects pass over require_reauthentication_to_approve, which groups take."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if hasattr(subject, "namespace_id"):
            wanted = {s: v for s, v in wanted.items() if s is not Setting.REQUIRE_REAUTHENTICATION}
        change(subject, wanted)
