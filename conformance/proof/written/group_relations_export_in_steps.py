"""Faults of exports that show only after another export, in another form, or for another relation than the usual one."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, answering, around, breaking, handling, refusing
from conformance.proof.written.group_relations_export import DOWNLOAD, STATUS
from conformance.reference.errors import NotFoundError
from conformance.reference.http import Response, ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.areas.group_relations_export import RelationExport
    from conformance.reference.http import Request
    from conformance.reference.identity import Group

#: How long each call waits that keeps something in a place which all requests share.
_MEANWHILE_SECONDS = 0.03


def shared(service: Service, is_kept: Callable[[Request], bool]) -> None:
    """Let concurrent calls of some kind be taken for the last of them, as their path is kept in one place for all."""
    last: list[Any] = [None, b""]

    async def wait(request: Request) -> None:
        if is_kept(request):
            last[:] = request.path, request.query
            await asyncio.sleep(_MEANWHILE_SECONDS)
            request.path, request.query = last

    service.interruption = wait


# -- the status --------------------------------------------------------------------------------------------------------


def _asked_for(request: Request) -> str | None:
    return request.parameters.optional_string("relation")


@fault("group-relations-export.status.filtered")
def one_relation_cannot_be_asked_for(service: Service) -> None:
    """The status of one relation is refused."""
    refusing(service, STATUS, lambda request: _asked_for(request) is not None, NotFoundError)


@fault("group-relations-export.status.filtered")
def relations_without_objects_cannot_be_asked_for(service: Service) -> None:
    """The status of one relation is refused if it has no objects, although the whole status has its entry."""

    def is_empty(request: Request) -> bool:
        export = service.group_relations_export.exports.get((request.group.id, _asked_for(request) or ""))
        return export is not None and not export.lines

    refusing(service, STATUS, is_empty, NotFoundError)


@fault("group-relations-export.status.filtered")
def any_relation_in_batches_is_the_labels(service: Service) -> None:
    """While relations are in batches, the status of any of them is that of the labels."""
    area = service.group_relations_export

    def alter(request: Request, response: Any) -> None:
        if _asked_for(request) is not None:
            labels = area.exports.get((request.group.id, "labels"))
            response.content = [area.present(labels)] if labels and labels.batched else response.content

    altering(service, STATUS, alter)


@fault("group-relations-export.status.filtered")
def what_was_asked_for_is_kept(service: Service) -> None:
    """Whoever has asked for one relation of a group and then asks for all of them gets that one, once."""
    asked: dict[tuple[int, int], bytes] = {}

    def make(handler: Any) -> Any:
        def reading(request: Request) -> Any:
            key = request.caller.id, request.group.id
            if b"relation=" in request.query:
                asked[key] = request.query
            else:
                request.query = asked.pop(key, request.query)
            return handler(request)

        return reading

    handling(service, STATUS, make)


@fault("group-relations-export.status.unknown-relation")
def beginning_of_a_name_is_enough(service: Service) -> None:
    """The status of one relation shows those whose names begin with what was asked for."""
    area = service.group_relations_export

    def make(handler: Any) -> Any:
        def reading(request: Request) -> Any:
            asked = _asked_for(request)
            found = [one for one in area.all_of(request.group) if asked and one.relation.startswith(asked)]
            return ok([area.present(one) for one in found]) if found else handler(request)

        return reading

    handling(service, STATUS, make)


@fault("group-relations-export.status.unknown-relation")
def unknown_relation_breaks_the_status(service: Service) -> None:
    """The status of a relation that does not exist is a server error."""
    area = service.group_relations_export
    breaking(service, STATUS, lambda q: (_asked_for(q) or "labels") not in area.relations(q.group))


@fault("group-relations-export.status.filtered")
def in_batches_all_relations_are_shown(service: Service) -> None:
    """Asked for one relation of a group by its number, the status shows all of them if they come in batches."""
    area = service.group_relations_export

    def make(handler: Any) -> Any:
        def reading(request: Request) -> Any:
            exports = area.all_of(request.group)
            if request.path["id"].isdigit() and any(one.batched for one in exports):
                return ok([area.present(one) for one in exports])
            return handler(request)

        return reading

    handling(service, STATUS, make)


# -- the files ---------------------------------------------------------------------------------------------------------


def _download(service: Service, change: Callable[[RelationExport, int | None, bytes], bytes]) -> None:
    def make(download: Any) -> Any:
        return lambda export, number: change(export, number, download(export, number))

    around(service.group_relations_export, "download", make)


@fault("group-relations-export.download.batch")
def batches_are_arrays(service: Service) -> None:
    """A batch is one array of its objects."""

    def array(_: RelationExport, number: int | None, packed: bytes) -> bytes:
        if number is None:
            return packed
        return gzip.compress(orjson.dumps([orjson.loads(line) for line in gzip.decompress(packed).splitlines()]))

    _download(service, array)


@fault("group-relations-export.download.batches-share-no-object")
def batches_of_milestones_begin_with_the_last_one(service: Service) -> None:
    """Every batch of milestones but the first begins with the last object of the one before."""
    area = service.group_relations_export

    def make(batches: Any) -> Any:
        def overlapping(export: RelationExport) -> Any:
            found = batches(export)
            if export.relation != "milestones":
                return found
            return [(*found[place - 1][-1:], *lines) if place else lines for place, lines in enumerate(found)]

        return overlapping

    around(area, "batches", make)


@fault("group-relations-export.entry.finished-is-downloadable")
def relations_without_objects_have_no_file(service: Service) -> None:
    """A finished relation without objects has no file."""

    def not_there(export: RelationExport, _: int | None, packed: bytes) -> bytes:
        if not export.lines:
            raise NotFoundError
        return packed

    _download(service, not_there)


@fault("group-relations-export.download.is-of-its-relation")
def by_the_path_every_file_holds_labels(service: Service) -> None:
    """By the path of a group, the file contains the labels, whichever relation is requested."""

    def make(handler: Any) -> Any:
        def reading(request: Request) -> Any:
            if not request.path["id"].isdigit() and b"batch_number" not in request.query:
                request.query = b"relation=labels"
            return handler(request)

        return reading

    handling(service, DOWNLOAD, make)


@fault("group-relations-export.download.is-of-its-relation")
def files_that_are_fetched_at_once_are_one(service: Service) -> None:
    """Whoever downloads two files concurrently gets the second one twice."""
    shared(service, lambda request: request.route.key == DOWNLOAD)


# -- two groups --------------------------------------------------------------------------------------------------------


def _replacing(service: Service, is_replaced: Callable[[Group, Group], bool]) -> None:
    """Let the files of some groups be those of another group as soon as it is exported."""
    area, groups = service.group_relations_export, service.identities.groups

    def make(schedule: Any) -> Any:
        def scheduling(group: Group, *, batched: bool) -> None:
            schedule(group, batched=batched)
            for (number, relation), export in list(area.exports.items()):
                own = area.exports.get((group.id, relation))
                if own is not None and number != group.id and is_replaced(groups[number], group):
                    area.exports[number, relation] = replace(export, lines=own.lines)

        return scheduling

    around(area, "schedule", make)


@fault("group-relations-export.download.belongs-to-its-group")
def files_of_all_groups_are_those_of_the_latest(service: Service) -> None:
    """What was exported of a group is replaced as soon as another one is exported: by the file of that one."""
    _replacing(service, lambda _, __: True)


@fault("group-relations-export.download.belongs-to-its-group")
def files_of_groups_around_are_overwritten(service: Service) -> None:
    """What was exported of a group is replaced as soon as a group inside it is exported: by the file of that one."""
    _replacing(service, lambda replaced, latest: replaced.id == latest.parent_id)


@fault("group-relations-export.download.belongs-to-its-group")
def of_two_at_once_each_has_the_file_of_the_other(service: Service) -> None:
    """Of two groups whose exports are scheduled concurrently, each one gets the file of the other."""
    area, last = service.group_relations_export, dict[str, Any]()

    def make_schedule(schedule: Any) -> Any:
        def scheduling(group: Group, *, batched: bool) -> None:
            schedule(group, batched=batched)
            other = last.get("group", group)
            for relation in area.relations(group) if other.id != group.id else ():
                own, beside = area.exports[group.id, relation], area.exports[other.id, relation]
                area.exports[other.id, relation] = replace(beside, lines=own.lines)
                area.exports[group.id, relation] = replace(own, lines=beside.lines)
            last["group"] = group

        return scheduling

    def make_reading(reading: Any) -> Any:
        def read(group: Group) -> Any:
            last.clear()
            return reading(group)

        return read

    around(area, "schedule", make_schedule)
    around(area, "all_of", make_reading)


def _forgetting(service: Service, is_forgotten: Callable[[Group, Group], bool]) -> None:
    """Let what was exported of some groups be gone as soon as another group is exported."""
    area, groups = service.group_relations_export, service.identities.groups

    def make(schedule: Any) -> Any:
        def scheduling(group: Group, *, batched: bool) -> None:
            for number, relation in list(area.exports):
                if is_forgotten(groups[number], group):
                    del area.exports[number, relation]
            schedule(group, batched=batched)

        return scheduling

    around(area, "schedule", make)


@fault("group-relations-export.schedule.belongs-to-its-group")
def exports_of_groups_inside_are_forgotten(service: Service) -> None:
    """What was exported of a group is gone as soon as the group around it is exported."""
    _forgetting(service, lambda gone, exported: gone.parent_id == exported.id)


@fault("group-relations-export.schedule.belongs-to-its-group")
def exports_of_groups_around_are_forgotten(service: Service) -> None:
    """What was exported of a group is gone as soon as a group inside it is exported."""
    _forgetting(service, lambda gone, exported: gone.id == exported.parent_id)


# -- relations of two words --------------------------------------------------------------------------------------------


def _of_two_words(service: Service, answer: Callable[[], Response]) -> None:
    """Export one more relation, and answer otherwise when it is asked for alone."""
    name = "milestone_links"
    around(service.group_relations_export, "relations", lambda read: lambda group: {**read(group), name: ()})
    answering(service, STATUS, lambda request: _asked_for(request) == name, answer)


@fault("group-relations-export.status.filtered")
def relations_of_two_words_cannot_be_asked_for(service: Service) -> None:
    """The status of a relation with an underscore in its name is refused."""
    _of_two_words(service, lambda: Response(404))


@fault("group-relations-export.status.filtered")
def relations_of_two_words_show_nothing(service: Service) -> None:
    """The status of a relation with an underscore in its name is an empty list."""
    _of_two_words(service, lambda: ok([]))
