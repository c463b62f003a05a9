"""Faults of approval settings that only a later step of a story shows: beside other settings, and further in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import afterwards, around, handling, sent
from conformance.proof.written.approval_settings import KINDS, PATHS, changing
from conformance.proof.written.approvals_neighbours import AT_ONCE
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import ApiError, RejectedError
from conformance.reference.identity import Project

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

_EXCLUDED = {Setting.SELECTIVE_REMOVALS, Setting.RETAIN_APPROVALS}


@fault("errors.refusal.changes-nothing")
def settings_beside_excluded_removals_are_stored(service: Service) -> None:
    """Selective removals beside kept approvals are refused after the other settings of the update were stored."""
    area = service.approval_settings

    def make(check: Callable[..., Any]) -> Any:
        def late(subject: Any, wanted: Any) -> Any:
            try:
                return check(subject, wanted)
            except RejectedError:
                for setting, value in wanted.items():
                    if setting not in _EXCLUDED:
                        area.values[area._key(subject, setting)] = value
                raise

        return late

    around(area, "without_conflict", make)


def _several_replace_all(kind: type) -> Callable[[Service], None]:
    """Let an update of several settings switch off those that it does not send."""

    def replaced(_: Any, wanted: Any) -> Any:
        rest = {setting: False for setting in Setting if setting is not Setting.REQUIRE_PASSWORD}
        return {**rest, **wanted} if len(wanted) > 1 else wanted

    return lambda service: changing(service, kind, replaced)


def _refusals_undo(key: str) -> Callable[[Service], None]:
    """Let a refused update put everything back as it was when the call came."""

    def apply(service: Service) -> None:
        before: dict[int, Any] = {}

        async def wait(request: Request) -> None:
            if request.route.key == key and any(isinstance(value, dict) for value in sent(request).values()):
                before[id(request)] = service.store.snapshot()
                await asyncio.sleep(AT_ONCE)

        def make(handler: Callable[..., Any]) -> Any:
            def undoing(request: Request) -> Any:
                found = before.pop(id(request), None)
                try:
                    return handler(request)
                except ApiError:
                    if found is not None:
                        service.store.restore(found)
                    raise

            return undoing

        service.interruption = wait
        handling(service, key, make)

    return apply


def _without_reauthentication(kind: type) -> Callable[[Service], None]:
    """Leave require_reauthentication_to_approve out of what is read."""

    def apply(service: Service) -> None:
        def fewer(shown: dict[str, Any], subject: Any) -> dict[str, Any]:
            left_out = Setting.REQUIRE_REAUTHENTICATION.value if isinstance(subject, kind) else None
            return {name: entry for name, entry in shown.items() if name != left_out}

        afterwards(service.approval_settings, "settings", fewer)

    return apply


for _place, _kind in KINDS.items():
    _says = f"An update of a {_place} that sends several settings switches the others off."
    _name = f"several_settings_of_a_{_place}_replace_all"
    fault(f"approval-settings.{_place}.update.leaves-unsent")(named(_name, _says, _several_replace_all(_kind)))
    _says = f"A refused update of a {_place} also undoes what was updated meanwhile."
    _name = f"refused_updates_of_a_{_place}_undo_others"
    fault(f"approval-settings.{_place}.update.at-once")(named(_name, _says, _refusals_undo(f"PUT {PATHS[_place]}")))
    _says = f"The settings of a {_place} are shown without require_reauthentication_to_approve."
    _name = f"reauthentication_of_a_{_place}_is_not_shown"
    _requirement = f"approval-settings.{_place}.reauthentication-is-available"
    fault(_requirement)(named(_name, _says, _without_reauthentication(_kind)))


@fault("approval-settings.project.update.leaves-its-group")
def a_deep_project_writes_the_outermost_group(service: Service) -> None:
    """Settings of a project whose group lies in another one are also stored for the outermost group."""
    area = service.approval_settings

    def outwards(_: None, subject: Any, wanted: Any) -> None:
        around_it = service.identities.lineage(subject)
        if isinstance(subject, Project) and len(around_it) > 1:
            for setting, value in wanted.items():
                area.values[area._key(around_it[-1], setting)] = value

    afterwards(area, "change", outwards)


@fault("approval-settings.project.locked-value-is-the-parents")
def locks_of_the_outermost_group_miss_deep_projects(service: Service) -> None:
    """A locked setting of a project whose group lies in another one shows the opposite of its value."""

    def other(entry: dict[str, Any], subject: Any, _: Any) -> Any:
        is_deep = isinstance(subject, Project) and len(service.identities.lineage(subject)) > 1
        return {**entry, "value": not entry["value"]} if is_deep and entry["locked"] else entry

    afterwards(service.approval_settings, "present", other)
