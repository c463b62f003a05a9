"""Plausible faults in approval settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    AGAIN,
    RESETS,
)
from conformance.proof.foreign.paths import GROUP_SETTINGS, PROJECT_SETTINGS
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.identity import Project

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(AGAIN, "Approval settings: PUT of one setting after another")
def a_second_change_undoes_the_first(service: Service) -> None:
    """A change is put on the settings as they were before the last one: two changes in a row leave the second."""
    older: dict[Any, dict[Any, Any]] = {}
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        place = type(subject), subject.id
        now = {key: value for key, value in settings.values.items() if key[1] == subject.id}
        for key, value in older.pop(place, {}).items():
            if key[2] not in wanted:
                settings.values[key] = value
        change(subject, wanted)
        older[place] = now


@foreign(RESETS, "Approval settings: PUT of a project, false")
def a_project_cannot_forbid_overrides_again(service: Service) -> None:
    """Once a project allows to override its approvers, it cannot forbid that any more."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if isinstance(subject, Project) and settings.own(subject, Setting.ALLOW_OVERRIDES):
            wanted = {s: value for s, value in wanted.items() if s is not Setting.ALLOW_OVERRIDES}
        change(subject, wanted)


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
