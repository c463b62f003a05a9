"""A partial export of a group, made in the background: one file for each top-level relation.

Specification: Endpoints > Group relations export.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import orjson

from conformance.reference.area import Area, Behaviour
from conformance.reference.choices import Repeat
from conformance.reference.errors import InvalidError, NotFoundError, RejectedError
from conformance.reference.http import Route, file, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.planning import Board, Label, Milestone
from conformance.reference.store import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group
    from conformance.reference.presenters import Json
    from conformance.reference.world import Fixture, World

Owned = TypeVar("Owned", Label, Milestone, Board)

_FAILED = "The relation could not be exported."


class Status(IntEnum):
    """How far the export of a relation is.

    Specification: States and transitions > Group relations export status.
    """

    FAILED = -1
    STARTED = 0
    FINISHED = 1


@dataclass(frozen=True, slots=True)
class RelationExport:
    """The export of one relation. `started` is in seconds of the service clock; `lines` are JSON objects."""

    group_id: int
    relation: str
    batched: bool
    started: float
    started_at: datetime
    lines: tuple[bytes, ...]


class GroupRelationsExports(Behaviour):
    """The latest export of each relation of all groups.

    Nothing runs in the background: how far an export is follows from the time that has passed.
    """

    name = "group_relations_export"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.exports: Table[tuple[int, str], RelationExport] = Table(service.store)

    def seed(self, world: World) -> Mapping[str, Fixture]:
        """Give the group whose export is scheduled a board."""
        self.service.planning.add_board(self.service.identities.groups[world.one("export_group").id], "Development")
        return {}

    # -- scheduling -----------------------------------------------------------------------------------------

    def schedule(self, group: Group, *, batched: bool) -> None:
        """Start to export all relations of a group anew, with the objects that they have now."""
        for relation, objects in self.relations(group).items():
            self.exports[group.id, relation] = RelationExport(
                group.id,
                relation,
                batched,
                self.service.clock.seconds(),
                self.service.clock.now(),
                tuple(orjson.dumps(item) for item in objects),
            )

    def relations(self, group: Group) -> Mapping[str, tuple[Json, ...]]:
        """Return the top-level relations of a group with their objects, as the files hold them."""
        planning, identities = self.service.planning, self.service.identities
        members = [
            {"access_level": int(role), "user": {"id": user_id, "username": identities.users[user_id].username}}
            for (kind, subject_id, user_id), role in identities.roles.items()
            if kind is Kind.GROUP and subject_id == group.id and user_id in identities.users
        ]
        return {
            "badges": (),
            "boards": tuple({"name": board.name} for board in _of(planning.boards.values(), group)),
            "labels": tuple(
                {"title": label.title, "color": label.color} for label in _of(planning.labels.values(), group)
            ),
            "members": tuple(members),
            "milestones": tuple(
                {"title": milestone.title, "description": milestone.description}
                for milestone in _of(planning.milestones.values(), group)
            ),
        }

    # -- watching -------------------------------------------------------------------------------------------

    def status_of(self, export: RelationExport) -> Status:
        """Return how far an export is at this moment."""
        choices = self.service.choices
        if self.service.clock.seconds() - export.started < choices.export_delay_seconds:
            return Status.STARTED
        return Status.FAILED if export.relation in choices.failing_export_relations else Status.FINISHED

    def all_of(self, group: Group) -> list[RelationExport]:
        """Return the exports of a group's relations, by name."""
        found = [export for export in self.exports.values() if export.group_id == group.id]
        return sorted(found, key=lambda export: export.relation)

    def find(self, group: Group, relation: str) -> RelationExport:
        """Return the export of one relation. Raise NotFoundError when none was ever scheduled."""
        export = self.exports.get((group.id, relation))
        if export is None:
            raise NotFoundError("404 Export not found")
        return export

    def present(self, export: RelationExport) -> Json:
        """Present a status entry.

        Specification: Resources and their fields > Group relations export status entry.
        """
        batches = self.batches(export)
        shown: Json = {
            "relation": export.relation,
            **self.progress(export),
            "batched": export.batched,
            "batches_count": len(batches),
        }
        if export.batched or self.service.choices.unbatched_export_has_batches:
            shown["batches"] = [
                {"batch_number": number, "objects_count": len(lines), **self.progress(export)}
                for number, lines in enumerate(batches, start=1)
            ]
        if self.service.choices.extra_fields:
            shown["total_objects_count"] = len(export.lines)
        return shown

    def progress(self, export: RelationExport) -> Json:
        """Present what an entry and each of its batches have in common."""
        status = self.status_of(export)
        moment = export.started_at
        if status is not Status.STARTED:
            moment += timedelta(seconds=self.service.choices.export_delay_seconds)
        return {
            "status": int(status),
            "error": _FAILED if status is Status.FAILED else None,
            "updated_at": self.service.present.timestamp(moment),
        }

    def batches(self, export: RelationExport) -> list[tuple[bytes, ...]]:
        """Return the lines of each batch; an export that is not batched has none."""
        if not export.batched:
            return []
        size = max(1, self.service.choices.export_batch_size)
        return [export.lines[start : start + size] for start in range(0, len(export.lines), size)]

    # -- downloading ----------------------------------------------------------------------------------------

    def download(self, export: RelationExport, batch_number: int | None) -> bytes:
        """Return the file of a finished export or, with a number, of one of its batches.

        Raise NotFoundError when it is not finished or has no such batch, RejectedError when the number is
        missing for a batched export or given for another.
        """
        if export.batched is not (batch_number is not None):
            raise RejectedError("Export is batched" if export.batched else "Export is not batched")
        if self.status_of(export) is not Status.FINISHED:
            raise NotFoundError("404 Export file not found")
        return self.file(export.lines if batch_number is None else self.batch(export, batch_number))

    def batch(self, export: RelationExport, number: int) -> tuple[bytes, ...]:
        """Return the lines of one batch, counted from 1. Raise NotFoundError when there is none."""
        batches = self.batches(export)
        if not 1 <= number <= len(batches):
            raise NotFoundError("404 Batch not found")
        return batches[number - 1]

    def file(self, lines: tuple[bytes, ...]) -> bytes:
        """Return gzip-compressed newline-delimited JSON; the same lines make the same bytes."""
        return gzip.compress(b"".join(line + b"\n" for line in lines), mtime=0)

    def file_name(self, relation: str) -> str:
        """Return the name of a relation's file."""
        return f"{relation}.ndjson.gz"


def _of(things: Iterable[Owned], group: Group) -> Iterable[Owned]:
    return (thing for thing in things if thing.group_id == group.id)


def _schedule(request: Request) -> Response:
    batched = request.parameters.optional_boolean("batched")
    request.area(GroupRelationsExports).schedule(request.group, batched=bool(batched))
    return ok({"message": "202 Accepted"}, 202)


def _status(request: Request) -> Response:
    exports, choices = request.area(GroupRelationsExports), request.choices
    relation = request.parameters.optional_string("relation")
    found = exports.all_of(request.group)
    if relation is None:
        return request.collection(found, exports.present)
    found = [export for export in found if export.relation == relation]
    if not found and choices.unknown_export_relation is Repeat.REFUSE:
        raise NotFoundError("404 Export not found")
    if found and not choices.export_status_filtered_as_list:
        return ok(exports.present(found[0]))
    return request.collection(found, exports.present)


def _download(request: Request) -> Response:
    exports, parameters = request.area(GroupRelationsExports), request.parameters
    relation = parameters.string("relation")
    batched = bool(parameters.optional_boolean("batched"))
    number = parameters.optional_integer("batch_number")
    if batched is not (number is not None):
        raise InvalidError("batched, batch_number provide all or none of parameters")
    export = exports.find(request.group, relation)
    return file(exports.download(export, number), exports.file_name(export.relation))


_EXPORT = "/groups/:id/export_relations"
_route = partial(Route, subject=Kind.GROUP, least_role=Role.OWNER)

AREA = Area(
    GroupRelationsExports,
    (
        _route("POST", _EXPORT, _schedule),
        _route("GET", f"{_EXPORT}/status", _status),
        _route("GET", f"{_EXPORT}/download", _download),
    ),
)
