"""A second export of a group, the status over time, and what an export changes elsewhere."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.foreign.changes import QUICKER_CALL_SECONDS, last_to_come
from conformance.proof.foreign.dimensions import AGAIN, AT_ONCE, OVER_TIME, SIDE_EFFECT
from conformance.proof.foreign.paths import EXPORT, EXPORT_DOWNLOAD, EXPORT_STATUS
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference import Choices
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.areas.group_relations_export import Status
from conformance.reference.errors import NotFoundError, RejectedError

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request


# -- scheduling --------------------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Group relations export: POST")
def exports_switch_a_setting(service: Service) -> None:
    """Scheduling an export switches a setting of the exported group."""

    @instead(service.group_relations_export, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        settings, setting = service.approval_settings, Setting.ALLOW_COMMITTER_APPROVAL
        settings.values[settings._key(group, setting)] = not settings.own(group, setting)
        schedule(group, batched=batched)


# An export of one group does not affect another one.
@foreign(SIDE_EFFECT, "Group relations export: POST")
def an_export_makes_room_by_those_of_other_groups(service: Service) -> None:
    """Before an export of a group, the former exports of all groups are removed."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for key in [key for key in exports.exports if key[0] != group.id]:
            del exports.exports[key]
        schedule(group, batched=batched)


# Each export follows the last request.
@foreign(AGAIN, "Group relations export: batched, then not")
def what_was_batched_once_has_no_single_file(service: Service) -> None:
    """After an export in batches, the file of a later one without batches is refused as batched."""
    exports = service.group_relations_export
    batched_once: set[tuple[int, str]] = set()

    @instead(exports, "download")
    def _(download: Any, export: Any, number: int | None) -> bytes:
        if number is None and (export.group_id, export.relation) in batched_once:
            raise RejectedError("Export is batched")
        content: bytes = download(export, number)
        return content

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched)
        if batched:
            batched_once.update((group.id, export.relation) for export in exports.all_of(group))


# Somebody thought that a second export creates nothing.
@foreign(AGAIN, "Group relations export: POST, 202")
def a_later_export_is_no_longer_accepted_but_done(service: Service) -> None:
    """The first export of a group is answered with 202, and each later one with 200."""
    exports = service.group_relations_export

    @handling(service, f"POST {EXPORT}")
    def _(handler: Any, request: Any) -> Any:
        known = exports.all_of(request.group)
        answer = handler(request)
        answer.status = 200 if known else answer.status
        return answer


# An existing record is started again, with the flag from its creation.
@foreign(AGAIN, "Group relations export: POST, batched")
def what_was_exported_in_batches_stays_batched(service: Service) -> None:
    """A relation that was exported in batches has batches again although the next call does not request them."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        before = {key for key, export in exports.exports.items() if key[0] == group.id and export.batched}
        schedule(group, batched=batched)
        for key in before:
            exports.exports[key] = replace(exports.exports[key], batched=True)


@foreign(SIDE_EFFECT, "Group relations export: POST")
def exports_of_groups_inside_are_thrown_away(service: Service) -> None:
    """Scheduling the export of a group removes the exports of its subgroups."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for number, relation in list(exports.exports):
            inner = service.identities.groups.get(number)
            if inner is not None and group in service.identities.lineage(inner)[1:]:
                del exports.exports[number, relation]
        schedule(group, batched=batched)


@foreign(AGAIN, "Group relations export: POST, batched")
def batches_stay_once_they_were_asked_for(service: Service) -> None:
    """An export without batches that follows one in batches has batches as well."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched or any(one.batched for one in exports.all_of(group)))


# An export of a group does not concern its subgroups.
@foreign(SIDE_EFFECT, "Group relations export: POST")
def an_export_removes_those_of_the_groups_inside(service: Service) -> None:
    """Before an export of a group, all exports of it and of its subgroups are removed."""
    exports, identities = service.group_relations_export, service.identities

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for key in list(exports.exports):
            if group in identities.lineage(identities.groups[key[0]]):
                del exports.exports[key]
        schedule(group, batched=batched)


@foreign(AT_ONCE, "Group relations export: POST")
def two_groups_that_are_exported_at_once_get_one_content(service: Service) -> None:
    """If exports of two groups are scheduled concurrently, one gets files with the other's content."""
    exports, last = service.group_relations_export, [""]

    async def wait(request: Request) -> None:
        if request.route.key == f"POST {EXPORT}":
            last[:] = [request.path["id"]]
            await asyncio.sleep(QUICKER_CALL_SECONDS)

    service.interruption = wait

    @handling(service, f"POST {EXPORT}")
    def _(handler: Any, request: Request) -> Any:
        answer = handler(request)
        other = service.identities.find_group(last[0]) or request.group
        for relation, objects in exports.relations(other).items():
            lines = tuple(orjson.dumps(one) for one in objects)
            place = request.group.id, relation
            exports.exports[place] = replace(exports.exports[place], lines=lines)
        return answer


@foreign(AGAIN, "Group relations export: download, after a second export")
def downloads_have_the_file_of_the_export_before(service: Service) -> None:
    """After a second export has finished, downloads still give the file of the previous one."""
    exports = service.group_relations_export
    former: dict[tuple[int, str], tuple[bytes, ...]] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        former.update({(group.id, export.relation): export.lines for export in exports.all_of(group)})
        schedule(group, batched=batched)

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        export = find(group, relation)
        return replace(export, lines=former.get((group.id, relation), export.lines))


# -- the status --------------------------------------------------------------------------------------------------------


@foreign(OVER_TIME, "Group relations export: updated_at", choices=Choices(export_delay_seconds=0.4))
def relations_in_progress_have_no_time(service: Service) -> None:
    """updated_at is null while a relation is being exported."""

    @instead(service.group_relations_export, "progress")
    def _(progress: Any, export: Any) -> Any:
        shown = progress(export)
        return {**shown, "updated_at": None} if shown["status"] == 0 else shown


@foreign(OVER_TIME, "Group relations export: the finished export", choices=Choices(export_delay_seconds=0.4))
def a_file_is_empty_until_its_export_has_finished(service: Service) -> None:
    """A download during the export gets an empty file instead of a refusal."""
    exports = service.group_relations_export

    @instead(exports, "download")
    def _(download: Any, export: Any, number: Any) -> Any:
        return exports.file(()) if exports.status_of(export) is Status.STARTED else download(export, number)


@foreign(OVER_TIME, "Group relations export: status", choices=Choices(failing_export_relations=("boards",)))
def failed_relations_have_status_two(service: Service) -> None:
    """A relation whose export failed has status 2; it must be -1."""

    @instead(service.group_relations_export, "progress")
    def _(progress: Any, export: Any) -> Any:
        shown = progress(export)
        return {**shown, "status": 2} if shown["status"] == -1 else shown


# Former exports of the group shall be removed, but ancestors and descendants were mixed up.
@foreign(SIDE_EFFECT, "Group relations export: status")
def an_inner_export_clears_the_outer_one_away(service: Service) -> None:
    """The export of a subgroup removes the exports of its parent groups, with their files."""
    exports, known = service.group_relations_export, service.identities

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        outer = {one.id for one in known.lineage(group)[1:]}
        for key in [key for key in exports.exports if key[0] in outer]:
            del exports.exports[key]
        schedule(group, batched=batched)


@foreign(
    OVER_TIME,
    "Group relations export: status -1; the finished export",
    choices=Choices(failing_export_relations=("labels",)),
)
def failed_exports_are_handed_out(service: Service) -> None:
    """The file of a relation whose export failed is served as if it had finished."""
    exports = service.group_relations_export

    @instead(exports, "download")
    def _(download: Any, export: Any, batch_number: Any) -> Any:
        if exports.status_of(export) is Status.FAILED:
            lines = export.lines if batch_number is None else exports.batch(export, batch_number)
            return exports.file(lines)
        return download(export, batch_number)


@foreign(AGAIN, "Group relations export: status, relation")
def who_asked_for_one_relation_is_shown_that_one_alone_afterwards(service: Service) -> None:
    """A caller's relation filter is remembered: a later status without a filter shows only that relation."""
    asked: dict[tuple[int, int], str] = {}

    @handling(service, f"GET {EXPORT_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        answer, key = handler(request), (request.caller.id, request.group.id)
        relation = request.parameters.optional_string("relation")
        if relation is not None:
            asked[key] = relation
        elif key in asked:
            answer.content = [entry for entry in answer.content if entry["relation"] == asked[key]]
        return answer


@foreign(AGAIN, "Group relations export: status of one relation")
def the_status_of_one_relation_stays_that_of_the_first_export(service: Service) -> None:
    """Once a relation was shown as finished, its single status shows that entry forever."""
    kept: dict[tuple[int, str], Any] = {}

    @handling(service, f"GET {EXPORT_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        answer, relation = handler(request), request.parameters.optional_string("relation")
        if relation and answer.content and answer.content[0]["status"] == 1:
            answer.content = kept.setdefault((request.group.id, relation), answer.content)
        elif relation and (request.group.id, relation) in kept:
            answer.content = kept[request.group.id, relation]
        return answer


# -- downloading -------------------------------------------------------------------------------------------------------


# A batch number in the status is also the one for its download.
@foreign(AGAIN, "Group relations export: batch_number")
def the_status_numbers_batches_from_zero(service: Service) -> None:
    """The status numbers batches from 0, the download from 1."""

    @instead(service.group_relations_export, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        for batch in shown.get("batches", ()):
            batch["batch_number"] -= 1
        return shown


# The batches are those of the export that the entry is about.
@foreign(AGAIN, "Group relations export status entry: batches")
def batches_of_the_former_export_stay_in_the_status(service: Service) -> None:
    """A second export in batches adds its batches to those of the first, so each number occurs twice."""
    exports = service.group_relations_export
    former: dict[tuple[int, str], list[Any]] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for export in exports.all_of(group):
            former[group.id, export.relation] = list(exports.present(export).get("batches") or ())
        schedule(group, batched=batched)

    @instead(exports, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        if export.batched:
            shown["batches"] = [*former.get((export.group_id, export.relation), ()), *shown["batches"]]
        return shown


@foreign(AT_ONCE, "Group relations export: download of two relations")
def two_downloads_at_once_are_of_one_relation(service: Service) -> None:
    """Files are compressed in one place: concurrent downloads of two relations both get the later one."""
    last = last_to_come(service, f"GET {EXPORT_DOWNLOAD}")

    @handling(service, f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        asked, request._parameters = request.parameters, last().parameters
        later, request._parameters = handler(request), asked
        answer = handler(request)
        answer.raw = later.raw
        return answer


@foreign(AGAIN, "Group relations export: GET download, the finished export")
def a_file_is_there_for_one_download(service: Service) -> None:
    """A file is deleted after it was sent: a second download of the same relation finds none."""
    sent: set[tuple[Any, ...]] = set()

    @instead(service.group_relations_export, "download")
    def _(download: Any, export: Any, number: Any) -> Any:
        packed, key = download(export, number), (export.group_id, export.relation, export.started, number)
        if key in sent:
            raise NotFoundError("404 Export file not found")
        sent.add(key)
        return packed
