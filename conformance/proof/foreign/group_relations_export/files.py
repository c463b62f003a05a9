"""What the files and batches of a group's export contain, and how they are named."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.foreign.changes import answering
from conformance.proof.foreign.dimensions import EXPORTED
from conformance.proof.foreign.paths import EXPORT_DOWNLOAD
from conformance.proof.foreign.registry import by_path, foreign, handling, instead, is_served
from conformance.reference.errors import NotFoundError

if TYPE_CHECKING:
    from conformance.reference import Service


# -- scheduling --------------------------------------------------------------------------------------------------------


@foreign(EXPORTED, "Group relations export: what is exported")
def exports_leave_the_last_object_out(service: Service) -> None:
    """The last object of each relation is missing in its file and in the count."""

    @instead(service.group_relations_export, "relations")
    def _(relations: Any, group: Any) -> Any:
        return {name: objects[:-1] for name, objects in relations(group).items()}


@foreign(EXPORTED, "Group relations export: of a group")
def exports_hold_objects_of_other_groups(service: Service) -> None:
    """The file of the labels also contains those of another group."""

    @instead(service.group_relations_export, "relations")
    def _(relations: Any, group: Any) -> Any:
        # Labels that some group has: others could not be recognized from outside.
        others = [one for one in service.identities.groups.values() if one.id != group.id]
        theirs = [label for other in others for label in relations(other)["labels"]]
        found = dict(relations(group))
        return {**found, "labels": (*found["labels"], *theirs)}


@foreign(EXPORTED, "Group relations export: of a group")
def downloads_by_path_are_of_another_group(service: Service) -> None:
    """The download for a group named by its path also contains objects of another group."""
    other, theirs = service.identities.groups[service.world.one("sibling_group").id], list[Any]()
    exports = service.group_relations_export

    @instead(exports, "file")
    def _(file: Any, lines: Any) -> bytes:
        return bytes(file(theirs.pop() if theirs else lines))

    @handling(service, "GET /groups/:id/export_relations/download")
    def _(handler: Any, request: Any) -> Any:
        relation = request.parameters.optional_string("relation")
        if by_path(request) and not request.parameters.given("batch_number"):
            theirs[:] = [tuple(orjson.dumps(one) for one in exports.relations(other).get(relation, ()))]
        answer = handler(request)
        theirs.clear()
        return answer


# Without an export there is no file.
@foreign(EXPORTED, "Group relations export: GET download; groups in groups")
def a_group_that_was_never_exported_has_the_files_of_the_one_around_it(service: Service) -> None:
    """A download for a group without an export gets that of the nearest parent group with one."""
    exports, identities = service.group_relations_export, service.identities

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        exported = [one for one in identities.lineage(group) if exports.all_of(one)]
        return find(exported[0] if exported else group, relation)


# Exports of a group and of its subgroup are separate.
@foreign(EXPORTED, "Group relations export: GET download; groups in groups")
def groups_inside_one_another_share_their_files(service: Service) -> None:
    """A file is stored by top-level group and relation: the export of a subgroup overwrites that of its top level."""
    exports, identities = service.group_relations_export, service.identities
    files: dict[tuple[int, str], Any] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched)
        top = identities.lineage(group)[-1]
        files.update({(top.id, export.relation): export.lines for export in exports.all_of(group)})

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        top = identities.lineage(group)[-1]
        return replace(find(group, relation), lines=files[top.id, relation])


# A new export contains what exists now.
@foreign(EXPORTED, "Group relations export: POST")
def a_second_export_holds_what_the_first_one_held(service: Service) -> None:
    """Existing files are not written again when a group is exported a second time."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        before = {export.relation: export.lines for export in exports.all_of(group)}
        schedule(group, batched=batched)
        for relation, lines in before.items():
            exports.exports[group.id, relation] = replace(exports.exports[group.id, relation], lines=lines)


# An export contains the group as it is when the export is scheduled.
@foreign(EXPORTED, "Group relations export: the second one")
def a_later_export_holds_the_first_objects(service: Service) -> None:
    """The files of a later export are those of the first: what was added meanwhile is missing."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        former = {export.relation: export.lines for export in exports.all_of(group)}
        schedule(group, batched=batched)
        for export in exports.all_of(group):
            lines = former.get(export.relation, export.lines)
            exports.exports[group.id, export.relation] = replace(export, lines=lines)


@foreign(EXPORTED, "Group relations export: POST")
def exports_come_as_the_first_one_did(service: Service) -> None:
    """Whether a group is exported in batches is decided by its first export."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        first = [one.batched for one in exports.exports.values() if one.group_id == group.id]
        schedule(group, batched=first[0] if first else batched)


# -- the status --------------------------------------------------------------------------------------------------------


@foreign(EXPORTED, "Group relations export: status of one relation")
def the_status_is_found_by_the_beginning(service: Service) -> None:
    """The status of one relation also shows others whose names begin with the same letter."""

    @handling(service, "GET /groups/:id/export_relations/status")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        relation = request.parameters.optional_string("relation")
        if relation and is_served(answer) and isinstance(answer.content, list):
            exports = service.group_relations_export
            alike = [one for one in exports.all_of(request.group) if one.relation[0] in f"{relation[0]}m"]
            answer.content = [exports.present(one) for one in alike]
        return answer


@foreign(EXPORTED, "Group relations export: status")
def a_relation_alone_has_no_batches(service: Service) -> None:
    """The status of a single batched relation has no batches."""
    answering(
        service,
        "GET /groups/:id/export_relations/status",
        lambda request, content: [
            {name: value for name, value in entry.items() if name != "batches" or not request.query}
            for entry in content
        ],
    )


@foreign(EXPORTED, "Group relations export: status, batch_number")
def the_numbers_of_batches_go_on_from_the_export_before(service: Service) -> None:
    """The status of a second export continues the numbers of the first one's batches, but downloads count from one."""
    exports = service.group_relations_export
    before: dict[tuple[int, str], int] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for export in exports.all_of(group):
            key = group.id, export.relation
            before[key] = before.get(key, 0) + len(exports.batches(export))
        schedule(group, batched=batched)

    @instead(exports, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        for batch in shown.get("batches", ()):
            batch["batch_number"] += before.get((export.group_id, export.relation), 0)
        return shown


# -- downloading -------------------------------------------------------------------------------------------------------


@foreign(EXPORTED, "Group relations export: one relation")
def labels_are_milestones(service: Service) -> None:
    """The file of the labels contains the milestones; it must contain the requested relation."""

    @instead(service.group_relations_export, "relations")
    def _(relations: Any, group: Any) -> Any:
        found = dict(relations(group))
        return {**found, "labels": found["milestones"]}


@foreign(EXPORTED, "Group relations export: batches")
def all_batches_are_the_first(service: Service) -> None:
    """Each batch of a relation contains the objects of the first one."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        batch(export, number)
        return batch(export, 1)


@foreign(EXPORTED, "Group relations export: newline-delimited JSON")
def files_are_one_array(service: Service) -> None:
    """The file of a relation is a JSON array; it must have one object per line."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> bytes:
        return gzip.compress(b"[" + b",".join(lines) + b"]\n", mtime=0)


@foreign(EXPORTED, "Group relations export: batches")
def batches_overlap(service: Service) -> None:
    """Each batch begins with the last object of the previous one."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        lines = batch(export, number)
        return (*batch(export, number - 1)[-1:], *lines) if number > 1 else lines


@foreign(EXPORTED, "Group relations export: file name")
def files_are_named_after_the_first_relation(service: Service) -> None:
    """Every file is named after the same relation; it must be named after its own."""

    @instead(service.group_relations_export, "file_name")
    def _(name: Any, relation: str) -> str:
        return name("badges")


@foreign(EXPORTED, "Group relations export: one relation")
def files_hold_everything_twice(service: Service) -> None:
    """The file of an unbatched relation contains each object twice."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> bytes:
        return bytes(file((*lines, *lines)))


@foreign(EXPORTED, "Group relations export: file name")
def batches_are_named_otherwise(service: Service) -> None:
    """The file of a batch is named batch.tar; every file is named after its relation, with the extension .ndjson.gz."""

    @handling(service, "GET /groups/:id/export_relations/download")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.parameters.given("batch_number") and is_served(answer):
            answer.headers = {**answer.headers, "content-disposition": 'attachment; filename="batch.tar"'}
        return answer


# Each batch has its own objects, in every relation.
@foreign(EXPORTED, "Group relations export: download, batch_number")
def each_batch_of_milestones_is_the_first(service: Service) -> None:
    """Every batch of the milestones has the lines of the first one."""
    exports = service.group_relations_export

    @instead(exports, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        found = batch(export, number)
        return batch(export, 1) if export.relation == "milestones" else found


# The name is that of the relation, not that of its database table.
@foreign(EXPORTED, "Group relations export: download, named after the relation")
def the_file_of_members_is_named_after_their_table(service: Service) -> None:
    """The file of the members is named group_members.ndjson.gz."""

    @instead(service.group_relations_export, "file_name")
    def _(file_name: Any, relation: str) -> Any:
        return file_name("group_members" if relation == "members" else relation)


# Each line of a file is one JSON value.
@foreign(EXPORTED, "Group relations export: GET download, newline-delimited JSON")
def texts_of_several_lines_break_the_file(service: Service) -> None:
    """A line end inside a text is written to the file unescaped."""
    exports = service.group_relations_export

    @instead(exports, "file")
    def _(file: Any, lines: Any) -> bytes:
        return bytes(file(tuple(line.replace(b"\\n", b"\n") for line in lines)))


# All batches together contain all objects of the relation.
@foreign(EXPORTED, "Group relations export: GET download, batch_number")
def an_object_that_fills_no_batch_is_lost(service: Service) -> None:
    """Batches begin at every second object except the last, so the last of an odd number of objects is in none."""
    exports = service.group_relations_export

    @instead(exports, "batches")
    def _(batches: Any, export: Any) -> Any:
        made = batches(export)
        return made[:-1] if made and len(made[-1]) == 1 else made


# The file is compressed once.
@foreign(EXPORTED, "Group relations export: gzip")
def files_are_compressed_twice_for_who_takes_gzip(service: Service) -> None:
    """A file is compressed again for clients that accept compression, without a header that says so."""

    @handling(service, f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if "gzip" in request.header("accept-encoding"):
            answer.raw = gzip.compress(answer.raw, mtime=0)
        return answer


# Singular and plural names go through the same function of the framework.
@foreign(EXPORTED, "Group relations export: download, relation")
def one_of_many_names_a_relation_too(service: Service) -> None:
    """A download of the relation `label`, which does not exist, gets the file of `labels`."""
    exports = service.group_relations_export

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        return find(group, relation if (group.id, relation) in exports.exports else f"{relation}s")


# A file contains the objects unchanged.
@foreign(EXPORTED, "Group relations export: download")
def files_are_written_in_ascii(service: Service) -> None:
    """Non-ASCII characters become question marks in the files of an export."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> Any:
        return file(tuple(line.decode().encode("ascii", "replace") for line in lines))


# Two labels are two objects, whatever they have in common.
@foreign(EXPORTED, "Group relations export: download")
def labels_of_one_colour_are_one_label(service: Service) -> None:
    """Labels are collected by colour, so only the last of several with the same colour is exported."""

    @instead(service.group_relations_export, "relations")
    def _(relations: Any, group: Any) -> Any:
        found = relations(group)
        return {**found, "labels": tuple({label["color"]: label for label in found["labels"]}.values())}


# The cache key contains the number of objects.
@foreign(EXPORTED, "Group relations export: download, the finished export")
def exports_are_made_anew_when_the_number_of_objects_changes(service: Service) -> None:
    """If a relation has as many objects as at the last export, the new export has the old content."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        before = {key: export for key, export in exports.exports.items() if key[0] == group.id}
        schedule(group, batched=batched)
        for key, export in before.items():
            if len(export.lines) == len(exports.exports[key].lines):
                exports.exports[key] = replace(exports.exports[key], lines=export.lines)


@foreign(EXPORTED, "Group relations export: named after the relation")
def the_encoded_name_of_a_file_is_another(service: Service) -> None:
    """The plain name of a downloaded file is right; the encoded one, which clients prefer, has another extension."""

    @handling(service, f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        place = answer.headers["content-disposition"]
        plain, _, encoded = place.partition("filename*=")
        answer.headers["content-disposition"] = f"{plain}filename*={encoded.replace('.ndjson.gz', '.json.gz')}"
        return answer


# An export contains what exists when it is made.
@foreign(EXPORTED, "Group relations export: GET download")
def as_many_objects_are_the_same_objects(service: Service) -> None:
    """Files are cached by number of objects: if one object was removed and another added, the old file stays."""
    exports, kept = service.group_relations_export, dict[Any, bytes]()

    @instead(exports, "download")
    def _(download: Any, export: Any, number: Any) -> bytes:
        made = download(export, number)
        return kept.setdefault((export.group_id, export.relation, export.batched, number, len(export.lines)), made)


@foreign(EXPORTED, "Group relations export: download")
def batches_hold_those_before_them(service: Service) -> None:
    """The file of a batch begins with the objects of all previous batches."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> tuple[bytes, ...]:
        return tuple(line for before in range(1, number + 1) for line in batch(export, before))


@foreign(EXPORTED, "Group relations export: batches")
def a_relation_whose_batches_are_all_full_lacks_the_last(service: Service) -> None:
    """If a relation's objects fill all batches completely, the last batch is neither listed nor served."""

    @instead(service.group_relations_export, "batches")
    def _(batches: Any, export: Any) -> Any:
        found = batches(export)
        is_full = len(found) > 1 and len(found[-1]) == service.choices.export_batch_size
        return found[:-1] if is_full else found


@foreign(EXPORTED, "Group relations export: download of one of two groups")
def the_group_exported_first_has_the_file_of_the_other(service: Service) -> None:
    """Files are stored by relation alone: of two exported groups, the first gets the other's file."""
    exports = service.group_relations_export
    newest: dict[str, int] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched)
        newest.update(dict.fromkeys(exports.relations(group), group.id))

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        own = find(group, relation)
        other = exports.exports[newest.get(relation, group.id), relation]
        return other if other.batched is own.batched else own


@foreign(EXPORTED, "Group relations export: download of a batch")
def batches_have_question_marks_for_what_is_not_ascii(service: Service) -> None:
    """Non-ASCII characters are question marks in the files of batches; the file of the whole relation is right."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        return tuple(line.decode().encode("ascii", "replace") for line in batch(export, number))


@foreign(EXPORTED, "Group relations export: newline-delimited JSON")
def a_line_break_in_a_text_breaks_the_line_of_its_object(service: Service) -> None:
    """A line break within a description is written unescaped, so an object takes two lines that are not JSON."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> Any:
        return file(tuple(line.replace(b"\\n", b"\n") for line in lines))


@foreign(EXPORTED, "Group relations export: download, after an export in batches")
def a_whole_file_after_an_export_in_batches_ends_with_its_first(service: Service) -> None:
    """If the previous export was in batches, the file of the whole relation contains only the first batch."""
    exports = service.group_relations_export
    cut: dict[int, bool] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        was_batched = any(export.batched for export in exports.all_of(group))
        schedule(group, batched=batched)
        cut[group.id] = was_batched and not batched

    @instead(exports, "download")
    def _(download: Any, export: Any, number: Any) -> Any:
        if cut.get(export.group_id):
            export = replace(export, lines=export.lines[: service.choices.export_batch_size])
        return download(export, number)


@foreign(EXPORTED, "Group relations export: download, name of the file")
def a_file_is_named_after_the_relation_downloaded_before_it(service: Service) -> None:
    """The name of a file is that of the relation that was downloaded before."""
    downloaded: list[str] = []

    @instead(service.group_relations_export, "file_name")
    def _(file_name: Any, relation: str) -> Any:
        downloaded.append(relation)
        return file_name(downloaded[-2:][0])


@foreign(EXPORTED, "Group relations export: gzip")
def the_end_of_a_longer_file_is_not_written(service: Service) -> None:
    """The file of more than five objects is sent before it is closed: the eight bytes at its end are missing."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> Any:
        return file(lines)[:-8] if len(lines) > 5 else file(lines)


@foreign(EXPORTED, "Group relations export: download, batch_number")
def batches_are_served_one_after_another(service: Service) -> None:
    """A batch is read from where the previous one ended: it is not found unless that one was downloaded."""
    sent: set[tuple[Any, ...]] = set()

    @instead(service.group_relations_export, "download")
    def _(download: Any, export: Any, number: Any) -> Any:
        packed, key = download(export, number), (export.group_id, export.relation, export.started)
        if number and number > 1 and (*key, number - 1) not in sent:
            raise NotFoundError("404 Batch not found")
        sent.add((*key, number))
        return packed
