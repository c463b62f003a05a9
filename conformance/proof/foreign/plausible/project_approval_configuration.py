"""Plausible faults in the project approval configuration."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    FORM_SENT,
    SIDE_EFFECT,
)
from conformance.proof.foreign.registry import foreign, instead
from conformance.reference.areas.project_approval_configuration import ConfigurationChange

if TYPE_CHECKING:
    from conformance.reference import Service


_BEFORE = "15.10"


@foreign(SIDE_EFFECT, "Project approval configuration: POST of one value", version=_BEFORE)
def barring_committers_bars_overriding(service: Service) -> None:
    """merge_requests_disable_committers_approval is stored as disable_overriding_approvers_per_merge_request, too."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        barred = wanted.merge_requests_disable_committers_approval
        if barred is not None and wanted.disable_overriding_approvers_per_merge_request is None:
            wanted = replace(wanted, disable_overriding_approvers_per_merge_request=barred)
        return change(project, wanted)


@foreign(SIDE_EFFECT, "Project approval configuration: POST of one project", version=_BEFORE)
def a_configuration_is_shared_in_the_group(service: Service) -> None:
    """A change is stored for all projects of the same group."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        changed = change(project, wanted)
        for one in service.identities.projects.values():
            if one.namespace_id == project.namespace_id:
                configurations.configurations[one.id] = configurations.configurations[project.id]
        return changed


@foreign(FORM_SENT, "Project approval configuration: POST, number alone", version="15.11")
def the_number_resets_the_flags(service: Service) -> None:
    """Sending approvals_before_merge sets the flags that are not sent to false."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        if wanted.approvals_before_merge is not None:
            unsent = [one.name for one in fields(ConfigurationChange) if getattr(wanted, one.name) is None]
            wanted = replace(wanted, **dict.fromkeys(unsent, False))
        return change(project, wanted)
