"""Variants in the relations, batches and files of exports, and the alterations that make them."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.areas.group_relations_export import RelationExport, Status
from conformance.reference.choices import Choices
from conformance.reference.http import Request, Response
from conformance.reference.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.identity import Group

_DOWNLOAD = "GET /groups/:id/export_relations/download"
_STORAGE = "/object-storage/:key"
#: How many relations are listed before those of the reference: more than fit on one page.
_MORE_RELATIONS = 24
_FIRST_BATCH = 10


def encodes_downloads(service: Service) -> None:
    """Send exports as text with a content encoding, not as a compressed file."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.raw and answer.status < 300:  # noqa: PLR2004 - HTTP's own number
            answer.headers["content-encoding"] = "gzip"
            answer.media_type = "application/x-ndjson"

    transform(service, change)


def keeps_downloads_in_a_storage(service: Service) -> None:
    """Redirect downloads to an object storage that needs no token and sends no file name."""
    stored: dict[str, bytes] = {}

    def fetch(request: Request) -> Response:
        return Response(raw=stored[request.path["key"]], media_type="application/gzip")

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.raw and answer.status < 300:  # noqa: PLR2004 - HTTP's own number
            key = str(len(stored))
            stored[key], answer.raw, answer.status = answer.raw, b"", 302
            answer.headers = {"location": _STORAGE.replace(":key", key) + "?signature=0a1b2c"}

    service.routes.put(Route("GET", _STORAGE, fetch, anonymous=True, prefixed=False))
    transform(service, change)


def sends_files_in_pieces(service: Service) -> None:
    """Send a file as several gzip members, with CRLF line ends, and with the newer form of the file name."""
    exports = service.group_relations_export

    def change(route: Route, request: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.status == HTTPStatus.OK and answer.raw[:2] == b"\x1f\x8b":
            lines = gzip.decompress(answer.raw).splitlines()
            answer.raw = b"".join(gzip.compress(line + b"\r\n") for line in lines)  # without lines there are no bytes
            name = exports.file_name(str(request.parameters.string("relation")))
            answer.headers["content-disposition"] = f"inline; filename*=UTF-8''{name.replace('.', '%2E')}"

    transform(service, change)


def escapes_letters_in_files(service: Service) -> None:
    """Write the files of exports in ASCII, with other characters escaped, as JSON allows."""
    exports = service.group_relations_export
    pack = exports.file

    def escaped(lines: tuple[bytes, ...]) -> bytes:
        return pack(tuple(json.dumps(json.loads(line)).encode("ascii") for line in lines))

    exports.file = escaped


def writes_lines_as_arrays(service: Service) -> None:
    """Write each object of a file as an array of a version and the object, which is JSON on a line as well."""
    exports = service.group_relations_export
    file = exports.file

    def with_versions(lines: tuple[bytes, ...]) -> bytes:
        return file(tuple(b"[1, " + line + b"]" for line in lines))

    exports.file = with_versions


def counts_batches_otherwise(service: Service) -> None:
    """Give batches their own status, have null and a count of one without batches, and always show an error."""
    exports = service.group_relations_export
    present = exports.present

    def shown(export: RelationExport) -> dict[str, Any]:
        entry: dict[str, Any] = dict(present(export))
        entry["error"] = entry["error"] or "Nothing went wrong."
        if not export.batched:
            return {**entry, "batches": None, "batches_count": 1}
        return {**entry, "batches": [{**batch, "status": 7} for batch in entry["batches"]]}

    exports.present = shown


def numbers_batches_from_ten(service: Service) -> None:
    """Count batches from ten on, and list the newest batch first."""
    exports = service.group_relations_export
    present, batch = exports.present, exports.batch

    def shown(export: Any) -> dict[str, Any]:
        entry: dict[str, Any] = dict(present(export))
        later = [{**each, "batch_number": each["batch_number"] + _FIRST_BATCH - 1} for each in entry.get("batches", ())]
        return {**entry, "batches": later[::-1]} if "batches" in entry else entry

    def found(export: Any, number: int) -> Any:
        return batch(export, number - _FIRST_BATCH + 1)

    exports.present = shown
    exports.batch = found


def fails_in_batches(service: Service) -> None:
    """Let every export in batches fail, without any batch."""
    exports = service.group_relations_export
    status_of = exports.status_of

    def status(export: RelationExport) -> Status:
        found = status_of(export)
        return Status.FAILED if export.batched and found is Status.FINISHED else found

    def no_batches(export: RelationExport) -> list[tuple[bytes, ...]]:
        del export
        return []

    exports.status_of = status
    exports.batches = no_batches


def exports_what_there_is(service: Service) -> None:
    """Export only relations with objects, and never in batches if there is only one object."""
    exports = service.group_relations_export
    relations, schedule = exports.relations, exports.schedule

    def scheduled(group: Any, *, batched: bool) -> None:
        for key in [key for key in exports.exports if key[0] == group.id]:
            del exports.exports[key]
        schedule(group, batched=batched)
        for export in exports.all_of(group):
            if export.relation == "members":
                exports.exports[group.id, export.relation] = replace(export, batched=False)

    exports.relations = lambda group: {name: objects for name, objects in relations(group).items() if objects}
    exports.schedule = scheduled


def exports_many_relations(service: Service) -> None:
    """Export more relations than fit on a page; those with content are listed last."""
    _change_relations(service, lambda own: {f"a_relation_{n:02}": () for n in range(_MORE_RELATIONS)} | own)


def names_relations_oddly(service: Service) -> None:
    """Export relations whose names cannot be file names; their files have similar names."""
    _change_relations(service, lambda own: {"self": (), "über/alles": (), "a b+c": (), **own, "labels_2": ()})
    exports = service.group_relations_export
    named = exports.file_name

    def file_name(relation: str) -> str:
        return named("".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in relation))

    exports.file_name = file_name


def _change_relations(service: Service, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    exports = service.group_relations_export
    relations = exports.relations

    def changed(group: Group) -> dict[str, Any]:
        return change(dict(relations(group)))

    exports.relations = changed


def keeps_another_time(service: Service) -> None:
    """Let the clock be three hours behind."""
    now = service.clock.now
    service.clock.now = lambda: now() - timedelta(hours=3)


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "exports-elsewhere",
        "Exports lie in a storage, one relation always fails, batches have a status of their own, and clocks differ.",
        replace(_PLAIN, export_delay_seconds=0.0, failing_export_relations=("boards",)),
        alterations=(
            keeps_downloads_in_a_storage,
            counts_batches_otherwise,
            keeps_another_time,
        ),
    ),
    Variant(
        "exports-compressed-on-the-way",
        "Exports are sent as text with compression on the way, each in one batch.",
        replace(_PLAIN, export_batch_size=1000),
        alterations=(encodes_downloads,),
    ),
    Variant(
        "batches-from-ten",
        "Batches are numbered from ten on and listed backwards.",
        alterations=(numbers_batches_from_ten,),
    ),
    Variant(
        "files-in-pieces",
        "Files come in several compressed pieces, in a newer form of name; that of no object has no byte.",
        alterations=(sends_files_in_pieces,),
    ),
    Variant(
        "batches-fail",
        "Every relation fails where it is exported in batches.",
        alterations=(fails_in_batches,),
        alone="what is said of batches cannot be seen",
    ),
    Variant(
        "many-relations-in-pages",
        "There are many relations, and the status of an export comes in pages, which nothing says.",
        replace(Choices(), unmarked_lists_are_paged=True),
        alterations=(exports_many_relations,),
    ),
    Variant(
        "relations-with-odd-names",
        "Relations have names that no file can have; each line of a file is an array.",
        alterations=(names_relations_oddly, writes_lines_as_arrays),
    ),
    Variant(
        "exports-of-what-there-is",
        "Relations without an object are not exported, and those of people never in batches.",
        alterations=(exports_what_there_is,),
    ),
)
