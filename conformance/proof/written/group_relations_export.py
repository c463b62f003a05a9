"""Faults of the group relations export: batches that are not made as requested, and wrong files."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, breaking, does_nothing, sent
from conformance.reference.errors import NotFoundError
from conformance.reference.http import file

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

EXPORT = "/groups/:id/export_relations"
STATUS = f"GET {EXPORT}/status"
DOWNLOAD = f"GET {EXPORT}/download"


def always(service: Service, *, batched: bool) -> None:
    """Export always with or always without batches, whatever was requested."""
    area = service.group_relations_export
    schedule = area.schedule

    def in_one_form(group: Any, **_: Any) -> None:
        schedule(group, batched=batched)

    area.schedule = in_one_form


@fault("group-relations-export.schedule.in-batches")
def batches_are_never_made(service: Service) -> None:
    """Batched true is accepted, but ignored."""
    always(service, batched=False)


@fault("group-relations-export.schedule.in-batches")
def batches_are_not_shown(service: Service) -> None:
    """A batched entry has an empty list of batches."""

    def without(_: Request, response: Response) -> None:
        for entry in response.content:
            if "batches" in entry:
                entry["batches"] = []

    altering(service, STATUS, without)


@fault("group-relations-export.schedule.unbatched")
def batches_are_always_made(service: Service) -> None:
    """Batched false is accepted, but ignored."""
    always(service, batched=True)


def refusing(service: Service, unwanted: Any) -> None:
    """Refuse to schedule some exports, depending on batched."""
    key = f"POST {EXPORT}"
    handle = service.routes.get(key).handler

    def choosy(request: Request) -> Response:
        if unwanted(request):
            raise NotFoundError("404 Not Found")
        return handle(request)

    service.routes.change(key, handler=choosy)


@fault("group-relations-export.schedule.batched.is-optional")
def form_must_be_given(service: Service) -> None:
    """Without batched nothing is scheduled."""
    refusing(service, lambda request: b"batched" not in request.body)


@fault("group-relations-export.schedule.batched.may-be-true")
def batched_true_answers_201(service: Service) -> None:
    """An export in batches is accepted with another status code."""

    def other(request: Request, response: Response) -> None:
        response.status = 201 if b"true" in request.body else 202

    altering(service, f"POST {EXPORT}", other)


@fault("group-relations-export.schedule.batched.may-be-false")
def batched_false_answers_200(service: Service) -> None:
    """An export without batches is accepted with another status code."""

    def other(request: Request, response: Response) -> None:
        response.status = 200 if b"false" in request.body else 202

    altering(service, f"POST {EXPORT}", other)


@fault("group-relations-export.schedule.batched.is-boolean")
def any_form_is_refused_and_exported(service: Service) -> None:
    """A batched that is not boolean is refused, but an export without batches is made."""
    handle = service.routes.get(f"POST {EXPORT}").handler

    def lenient(request: Request) -> Response:
        if isinstance(sent(request).get("batched"), str):
            service.group_relations_export.schedule(request.group, batched=False)
        return handle(request)

    service.routes.change(f"POST {EXPORT}", handler=lenient)


@fault("group-relations-export.schedule.batched.is-boolean")
def any_form_breaks_the_scheduling(service: Service) -> None:
    """A batched that is not boolean causes a server error."""
    breaking(service, f"POST {EXPORT}", lambda request: isinstance(sent(request).get("batched"), str))


@fault("group-relations-export.schedule.entries-appear")
def entries_never_appear(service: Service) -> None:
    """The status stays empty although the files exist."""

    def empty(_: Request, response: Response) -> None:
        response.content = []

    altering(service, STATUS, empty)


@fault("group-relations-export.schedule.belongs-to-its-group")
def all_groups_are_exported(service: Service) -> None:
    """An export of one group also exports every other one."""
    area = service.group_relations_export
    schedule = area.schedule

    def everywhere(_: Any, *, batched: bool) -> None:
        for group in service.identities.groups.values():
            schedule(group, batched=batched)

    area.schedule = everywhere


@fault("group-relations-export.status.filtered")
def relation_is_passed_over(service: Service) -> None:
    """The status of one relation shows all of them."""

    def whole(request: Request, response: Response) -> None:
        area = service.group_relations_export
        response.content = [area.present(export) for export in area.all_of(request.group)]

    altering(service, STATUS, whole)


@fault("group-relations-export.status.filtered")
def filtered_status_is_empty(service: Service) -> None:
    """The status of one relation is an empty list."""

    def empty(request: Request, response: Response) -> None:
        if b"relation=" in request.query:
            response.content = []

    altering(service, STATUS, empty)


@fault("group-relations-export.status.unknown-relation")
def unknown_relation_shows_all(service: Service) -> None:
    """The status of an unknown relation is the status of all."""
    handle = service.routes.get(STATUS).handler

    def generous(request: Request) -> Response:
        if b"no_such" in request.query:
            request.query = b""
        return handle(request)

    service.routes.change(STATUS, handler=generous)


@fault("group-relations-export.status.one-entry-a-relation")
def entries_are_shown_twice(service: Service) -> None:
    """Each relation has two entries."""

    def twice(_: Request, response: Response) -> None:
        response.content = [*response.content, *response.content]

    altering(service, STATUS, twice)


def any_group(service: Service) -> None:
    """Use a known group in place of an unknown one."""
    find = service.identities.find_group
    known = service.identities.groups[service.world.one("export_group").id]
    service.identities.find_group = lambda path: find(path) or known


for doing in ("schedule", "status", "download"):

    def unknown_group(service: Service) -> None:
        """Any number identifies a group."""
        any_group(service)

    unknown_group.__name__ = f"{doing}_of_an_unknown_group_is_served"
    fault(f"group-relations-export.{doing}.unknown-group")(unknown_group)


@fault("group-relations-export.entry.finished-is-downloadable")
def finished_file_is_not_there(service: Service) -> None:
    """An export without batches has no file."""
    area = service.group_relations_export
    download = area.download

    def missing(export: Any, number: Any) -> bytes:
        if number is None:
            raise NotFoundError("404 Not Found")
        return download(export, number)

    area.download = missing


@fault("group-relations-export.download.batch-parameters-are-optional")
def batch_parameters_are_owed(service: Service) -> None:
    """A download without batched and batch_number is refused."""
    finished_file_is_not_there(service)


@fault("group-relations-export.download.answered")
def download_answers_202(service: Service) -> None:
    """A file is sent with another status code."""

    def other(_: Request, response: Response) -> None:
        response.status = 202

    altering(service, DOWNLOAD, other)


@fault("group-relations-export.download.is-gzip")
def file_is_not_packed(service: Service) -> None:
    """The file is uncompressed text with the name of a compressed one."""
    service.group_relations_export.file = b"\n".join


@fault("group-relations-export.download.is-gzip")
def file_ends_early(service: Service) -> None:
    """The end of the compressed file is missing."""
    file = service.group_relations_export.file
    service.group_relations_export.file = lambda lines: file(lines)[:-9]


@fault("group-relations-export.download.is-ndjson")
def lines_are_no_json(service: Service) -> None:
    """The file has a value in the notation of another language."""
    service.group_relations_export.file = lambda lines: gzip.compress(b"\n".join(line[1:] for line in lines))


@fault("group-relations-export.download.is-ndjson")
def file_is_one_pretty_document(service: Service) -> None:
    """The file is one JSON array on several lines."""
    service.group_relations_export.file = lambda lines: gzip.compress(b"[\n" + b",\n".join(lines) + b"\n]")


@fault("group-relations-export.download.file-name")
def file_is_called_export(service: Service) -> None:
    """Every file has the same name."""
    service.group_relations_export.file_name = lambda _: "export.ndjson.gz"


@fault("group-relations-export.download.file-name")
def file_has_another_extension(service: Service) -> None:
    """The file has the extension .json.gz."""
    service.group_relations_export.file_name = lambda relation: f"{relation}.json.gz"


def reading_query(service: Service, alter: Any) -> None:
    """Alter the query of a download before it is handled."""
    handle = service.routes.get(DOWNLOAD).handler

    def altered(request: Request) -> Response:
        request.query = alter(request.query)
        return handle(request)

    service.routes.change(DOWNLOAD, handler=altered)


@fault("group-relations-export.download.relation-is-required")
def relation_may_be_missing(service: Service) -> None:
    """A download without a relation gets the labels."""
    reading_query(service, lambda query: query if b"relation=" in query else query + b"&relation=labels")


@fault("group-relations-export.download.unknown-relation")
def unknown_relation_gives_another(service: Service) -> None:
    """A download of an unknown relation gets the labels."""
    area = service.group_relations_export
    find = area.find
    area.find = lambda group, relation: find(group, relation if (group.id, relation) in area.exports else "labels")


@fault("group-relations-export.download.before-finished")
def unfinished_file_is_empty(service: Service) -> None:
    """A relation that was never exported has an empty file."""
    handle = service.routes.get(DOWNLOAD).handler
    group = service.world.one("export_group").id

    def empty(request: Request) -> Response:
        if request.group.id != group:
            return file(gzip.compress(b""), "labels.ndjson.gz")
        return handle(request)

    service.routes.change(DOWNLOAD, handler=empty)


@fault("group-relations-export.download.batch")
def batch_is_not_found(service: Service) -> None:
    """No batch has a file."""

    def missing(*_: object) -> tuple[bytes, ...]:
        raise NotFoundError("404 Not Found")

    service.group_relations_export.batch = missing


@fault("group-relations-export.download.batch")
def batch_is_not_packed(service: Service) -> None:
    """The file of a batch is uncompressed text."""
    area = service.group_relations_export
    download = area.download
    area.download = lambda export, number: (
        download(export, number) if number is None else gzip.decompress(download(export, number))
    )


@fault("group-relations-export.download.batch-holds-its-objects")
def batch_is_the_whole(service: Service) -> None:
    """Every batch contains the whole relation."""
    service.group_relations_export.batch = lambda export, _: export.lines


@fault("group-relations-export.download.batches-hold-the-relation")
def the_last_batch_is_lost(service: Service) -> None:
    """If there are several batches, the last one is neither listed nor served."""
    area = service.group_relations_export
    batches = area.batches
    area.batches = lambda export: batches(export)[: max(1, len(batches(export)) - 1)]


@fault("group-relations-export.download.batches-hold-the-relation")
def batches_are_empty(service: Service) -> None:
    """Every batch exists, but is empty."""
    area = service.group_relations_export
    batches = area.batches
    area.batches = lambda export: [() for _ in batches(export)]


@fault("group-relations-export.batch.numbers-are-distinct")
def batches_are_all_the_first(service: Service) -> None:
    """Every batch has the number 1."""

    def first(_: Request, response: Response) -> None:
        for entry in response.content:
            for batch in entry.get("batches") or ():
                batch["batch_number"] = 1

    altering(service, STATUS, first)


@fault("group-relations-export.download.unknown-batch")
def unknown_batch_is_the_last(service: Service) -> None:
    """A number after the last batch gets the last batch."""
    area = service.group_relations_export
    area.batch = lambda export, number: area.batches(export)[min(number, len(area.batches(export))) - 1]


@fault("group-relations-export.download.unknown-batch")
def number_after_the_last_batch_gets_it(service: Service) -> None:
    """The number right after the last batch gets the last batch, because one number too many is let through."""
    area = service.group_relations_export
    batch = area.batch
    area.batch = lambda export, number: batch(export, number - (number == len(area.batches(export)) + 1))


@fault("group-relations-export.download.batch-number-is-integer")
def number_that_is_a_word_breaks_the_download(service: Service) -> None:
    """A batch number that is not a number causes a server error."""
    breaking(service, DOWNLOAD, lambda request: b"batch_number=first" in request.query)


@fault("group-relations-export.download.batched-is-boolean")
def batched_that_is_a_word_breaks_the_download(service: Service) -> None:
    """A batched that is not boolean causes a server error."""
    breaking(service, DOWNLOAD, lambda request: b"batched=maybe" in request.query)


@fault("group-relations-export.download.is-ndjson")
def file_is_an_array_in_one_line(service: Service) -> None:
    """The file is one JSON array on one line."""
    service.group_relations_export.file = lambda lines: gzip.compress(b"[" + b",".join(lines) + b"]\n")


@fault("group-relations-export.download.holds-its-objects")
def file_lacks_an_object(service: Service) -> None:
    """In place of the last object of a relation, the first one is exported again."""
    area = service.group_relations_export
    make = area.file
    area.file = lambda lines: make((*lines[:-1], *lines[:1]))


@fault("group-relations-export.download.is-of-its-relation")
def file_is_that_of_another_relation(service: Service) -> None:
    """The file contains the labels, whichever relation is requested."""
    area = service.group_relations_export
    find = area.find

    def labels(group: Any, relation: str) -> Any:
        return replace(find(group, relation), lines=find(group, "labels").lines)

    area.find = labels


@fault("group-relations-export.download.belongs-to-its-group")
def file_is_that_of_another_group(service: Service) -> None:
    """The file contains the objects of one group, whichever group is requested."""
    area, first = service.group_relations_export, service.world.one("export_group").id
    find = area.find

    def of_the_first(group: Any, relation: str) -> Any:
        return replace(find(service.identities.groups[first], relation), batched=find(group, relation).batched)

    area.find = of_the_first


@fault("group-relations-export.download.batches-share-no-object")
def batches_begin_alike(service: Service) -> None:
    """Every batch begins with the first object of the relation instead of its own first one."""
    area = service.group_relations_export
    batches = area.batches
    area.batches = lambda export: [(*export.lines[:1], *lines[1:]) for lines in batches(export)]


__all__ = ["does_nothing"]


def spoiling(service: Service, spoil: Any) -> None:
    """Alter every entry of the status."""

    def each(_: Request, response: Response) -> None:
        for entry in response.content:
            spoil(entry)

    altering(service, STATUS, each)


_FIELDS = {
    "relation": ("entry.fields", 5),
    "status": ("entry.status", "finished"),
    "error": ("entry.error", 5),
    "updated_at": ("entry.updated-at", 1_700_000_000),
    "batched": ("entry.fields", "yes"),
    "batches_count": ("entry.fields", "none"),
    "batches": ("entry.batches", {}),
}
_BATCH_FIELDS = {
    "status": ("batch.fields", "finished"),
    "batch_number": ("batch.fields", "one"),
    "objects_count": ("batch.fields", None),
    "error": ("batch.error", False),
    "updated_at": ("batch.updated-at", "2024-01-01"),
}

for _inside, _fields in ((False, _FIELDS), (True, _BATCH_FIELDS)):
    for _field, (_requirement, _wrong) in _fields.items():
        for _gone in (True, False):

            def spoiled(
                service: Service, inside: bool = _inside, field: str = _field, wrong: Any = _wrong, gone: bool = _gone
            ) -> None:
                """A field is missing, or has another type."""

                def spoil(entry: Any) -> None:
                    for part in (entry.get("batches") or ()) if inside else (entry,):
                        if gone:
                            part.pop(field, None)
                        else:
                            part[field] = wrong

                spoiling(service, spoil)

            _whose = "batch" if _inside else "entry"
            spoiled.__name__ = f"{_field}_of_{'a' if _inside else 'an'}_{_whose}_is_{'missing' if _gone else 'wrong'}"
            fault(f"group-relations-export.{_requirement}")(spoiled)


@fault("group-relations-export.entry.status")
def status_is_two(service: Service) -> None:
    """A finished relation has the status 2."""

    def spoil(entry: Any) -> None:
        if entry["status"] == 1:
            entry["status"] = 2

    spoiling(service, spoil)
