"""Faults of group relations exports: the second export, one relation of several, files and batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import AGAIN, EXPORTED, NEIGHBOUR, SIDE_EFFECT
from conformance.proof.foreign.paths import EXPORT, EXPORT_DOWNLOAD, EXPORT_STATUS
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.errors import NotFoundError

if TYPE_CHECKING:
    from conformance.reference import Service


# expects group-relations-export.schedule.unbatched
@foreign(AGAIN, "Group relations export: POST unbatched after batched")
def once_batched_always_batched(service: Service) -> None:
    """A group that was exported in batches once is exported in batches ever after."""
    batched_once: set[int] = set()

    @instead(service.group_relations_export, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        if batched:
            batched_once.add(group.id)
        schedule(group, batched=group.id in batched_once)


# expects group-relations-export.status.filtered
@foreign(NEIGHBOUR, "Group relations export: status, beginning of a relation")
def the_filter_is_a_beginning(service: Service) -> None:
    """The status of "label" holds the entry of labels: a relation is asked for by its beginning."""

    @handling(service, f"GET {EXPORT_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        wanted = request.parameters.optional_string("relation")
        if wanted:
            area = service.group_relations_export
            found = [one for one in area.all_of(request.group) if one.relation.startswith(wanted)]
            if found:
                return request.collection(found, area.present)
        return handler(request)


# expects group-relations-export.download.batch
@foreign(EXPORTED, "Group relations export: download, last batch")
def the_last_batch_is_missing(service: Service) -> None:
    """The last batch cannot be downloaded if there are several, though the status names it."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        if 1 < number == len(service.group_relations_export.batches(export)):
            raise NotFoundError("404 Batch not found")
        return batch(export, number)


# expects group-relations-export.download.named
@foreign(EXPORTED, "Group relations export: download, name of an empty file")
def an_empty_file_is_named_after_the_group(service: Service) -> None:
    """The file of a relation without objects is named after the group."""

    @handling(service, f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        export = service.group_relations_export.find(request.group, request.parameters.string("relation"))
        if not export.lines:
            answer.headers["content-disposition"] = f'attachment; filename="{request.group.path}.ndjson.gz"'
        return answer


# expects group-relations-export.entry.batches
@foreign(EXPORTED, "Group relations export: status of one relation, batches")
def one_relation_is_shown_without_batches(service: Service) -> None:
    """The status of one relation lacks the batches of a batched export."""

    @handling(service, f"GET {EXPORT_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.parameters.given("relation") and isinstance(answer.content, list):
            answer.content = [{k: v for k, v in entry.items() if k != "batches"} for entry in answer.content]
        return answer


# expects group-relations-export.schedule.belongs-to-its-group
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


# expects group-relations-export.schedule.message
@foreign(AGAIN, "Group relations export: POST, once more")
def the_second_acceptance_says_nothing(service: Service) -> None:
    """If the group was exported before, the message of acceptance is null."""
    before: set[int] = set()

    @handling(service, f"POST {EXPORT}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and request.group.id in before:
            answer.content = {"message": None}
        before.add(request.group.id)
        return answer


# expects group-relations-export.download.answered
@foreign(AGAIN, "Group relations export: download, once more")
def a_file_is_downloaded_once(service: Service) -> None:
    """A file is gone once it was downloaded, though the status still says finished."""
    fetched: set[Any] = set()

    @instead(service.group_relations_export, "download")
    def _(download: Any, export: Any, number: Any) -> bytes:
        key = export.group_id, export.relation, export.started, number
        if key in fetched:
            raise NotFoundError("404 Export file not found")
        content = download(export, number)
        fetched.add(key)
        return bytes(content)


# expects group-relations-export.download.holds-its-objects
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
