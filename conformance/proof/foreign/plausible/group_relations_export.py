"""Plausible faults in exports of groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import AGAIN, EXPORTED, OVER_TIME, SIDE_EFFECT
from conformance.proof.foreign.paths import EXPORT_DOWNLOAD
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.errors import not_found

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(AGAIN, "Group relations export: POST, batched and then not")
def an_export_stays_batched(service: Service) -> None:
    """Once a group was exported in batches, later exports are batched, whatever is sent."""
    before: set[int] = set()

    @instead(service.group_relations_export, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        if batched:
            before.add(group.id)
        schedule(group, batched=group.id in before)


@foreign(EXPORTED, "Group relations export: GET download of one relation")
def a_file_has_the_lines_of_the_export_before(service: Service) -> None:
    """The first file that was downloaded of a relation is given for later exports as well, batched or not."""
    files: dict[Any, bytes] = {}

    @handling(service, f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.raw = files.setdefault((request.group.id, request.parameters.string("relation")), answer.raw)
        return answer


@foreign(OVER_TIME, "Group relations export: status entry, error")
def a_finished_export_fails_when_it_was_downloaded(service: Service) -> None:
    """A file can be had once: afterwards the status is -1 without an error, and the file is gone."""
    had: set[Any] = set()
    exports = service.group_relations_export

    @handling(service, f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        key = request.group.id, request.parameters.string("relation"), request.query
        export = exports.exports.get(key[:2])
        if (key, export and export.started) in had:
            raise not_found("File")
        answer = handler(request)
        had.add((key, export and export.started))
        return answer


@foreign(AGAIN, "Group relations export: POST unbatched after batched")
def once_batched_always_batched(service: Service) -> None:
    """A group that was exported in batches once is exported in batches ever after."""
    batched_once: set[int] = set()

    @instead(service.group_relations_export, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        if batched:
            batched_once.add(group.id)
        schedule(group, batched=group.id in batched_once)


@foreign(SIDE_EFFECT, "Group relations export: POST, subgroups")
def exporting_a_group_discards_exports_of_subgroups(service: Service) -> None:
    """Scheduling the export of a group discards those of the groups inside it."""

    @instead(service.group_relations_export, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched)
        exports, identities = service.group_relations_export.exports, service.identities
        for key in list(exports):
            inner = identities.groups.get(key[0])
            if inner is not None and inner.id != group.id and group in identities.lineage(inner):
                del exports[key]


@foreign(AGAIN, "Group relations export: POST unbatched, file after a batched export")
def the_file_after_batches_is_the_first_batch(service: Service) -> None:
    """An unbatched export that follows a batched one holds what the first batch would."""
    batched_before: set[int] = set()

    @instead(service.group_relations_export, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched)
        if batched:
            batched_before.add(group.id)
        elif group.id in batched_before:
            exports = service.group_relations_export.exports
            for key, one in list(exports.items()):
                if key[0] == group.id:
                    exports[key] = replace(one, lines=one.lines[:2])
