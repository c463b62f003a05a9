"""Who may export a group; which relations, batches and parameters are valid; and what the status shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import with_parameters
from conformance.proof.foreign.dimensions import (
    CALLER_AND_FORM,
    COUNT,
    FORM_SENT,
    LEVEL,
    MOMENT_OR_ADDRESS,
    NEIGHBOUR,
    STORY,
)
from conformance.proof.foreign.paths import EXPORT, EXPORT_DOWNLOAD, EXPORT_STATUS
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead
from conformance.reference.errors import NotFoundError

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request


# -- scheduling --------------------------------------------------------------------------------------------------------


# A boolean may be sent as false.
@foreign(NEIGHBOUR, "Group relations export: POST, batched")
def an_export_is_batched_when_told_not_to_be(service: Service) -> None:
    """An export with batched false is batched, because the parameter was sent."""

    @handling(service, f"POST {EXPORT}")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("batched"):
            request.parameters._values = {**request.parameters._values, "batched": True}
        return handler(request)


# The parameter is a boolean that says whether to export in batches.
@foreign(NEIGHBOUR, "Group relations export: POST, batched")
def not_to_batch_batches(service: Service) -> None:
    """A group is exported in batches whenever batched is sent, even as false."""

    @handling(service, "POST /groups/:id/export_relations")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("batched"):
            with_parameters(request, {"batched": True})
        return handler(request)


# -- the status --------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: every caller is authenticated")
def nobody_reads_the_export_status_by_path(service: Service) -> None:
    """The export status of a private group is served without a token if the group is named by path."""
    key = "GET /groups/:id/export_relations/status"

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key == key and by_path(request) and not service.access.token_text(request):
            request.admit(service.identities.users[service.world.actors["owner"].id], found(service, request))
            return
        admit(request)


# The filter is the name of a relation, and not a prefix.
@foreign(NEIGHBOUR, "Group relations export: GET status, relation")
def the_beginning_of_a_name_finds_a_relation(service: Service) -> None:
    """The status shows all relations whose names begin with the requested one."""
    exports = service.group_relations_export

    @handling(service, f"GET {EXPORT_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        wanted = request.parameters.optional_string("relation")
        shown = [one for one in exports.all_of(request.group) if wanted and one.relation.startswith(wanted)]
        return request.collection(shown, exports.present) if shown else handler(request)


# The entry of a relation is the same, whether all relations or only this one are requested.
@foreign(STORY, "Group relations export: status entry, batches")
def the_status_of_one_relation_comes_without_batches(service: Service) -> None:
    """If one relation is requested, its batches are left out, even if it is exported in batches."""

    @handling(service, f"GET {EXPORT_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.parameters.given("relation"):
            answer.content = [{key: entry[key] for key in entry if key != "batches"} for entry in answer.content]
        return answer


# The list and the single entry have two serializers, one of which is older.
@foreign(FORM_SENT, "Group relations export: status, relation; batches")
def the_status_of_one_relation_has_no_batches(service: Service) -> None:
    """The status entry of a batched relation has no batches if only that relation is requested."""

    @handling(service, f"GET {EXPORT_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.parameters.given("relation"):
            for entry in answer.content if isinstance(answer.content, list) else [answer.content]:
                entry.pop("batches", None)
        return answer


@foreign(CALLER_AND_FORM, "Group relations export: status, relation")
def a_group_named_by_path_shows_all_relations(service: Service) -> None:
    """If the group is named by path, the status ignores the requested relation."""

    @handling(service, f"GET {EXPORT_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        if by_path(request):
            request.parameters._values = {}
        return handler(request)


# -- downloading -------------------------------------------------------------------------------------------------------


@foreign(MOMENT_OR_ADDRESS, "Group relations export status entry: batches")
def batches_are_of_an_hour_that_is_none(service: Service) -> None:
    """Batches have times in the twenty-fifth hour of a day."""

    @instead(service.group_relations_export, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        for batch in shown.get("batches") or ():
            batch["updated_at"] = "2024-05-01T25:00:00.000Z"
        return shown


@foreign(NEIGHBOUR, "Group relations export: one relation")
def relations_are_found_by_their_beginning(service: Service) -> None:
    """The beginning of a relation's name downloads its file; no relation has that name."""

    @instead(service.group_relations_export, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        alike = [one for one in service.group_relations_export.all_of(group) if one.relation.startswith(relation)]
        return find(group, alike[0].relation if alike else relation)


@foreign(NEIGHBOUR, "Group relations export: batches")
def a_batch_too_many_is_the_last(service: Service) -> None:
    """A batch number after the last one downloads the last batch."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        return batch(export, min(number, len(service.group_relations_export.batches(export))))


# A download belongs to the group in the path.
@foreign(LEVEL, "Group relations export: GET download")
def who_exported_nothing_downloads_what_others_exported(service: Service) -> None:
    """If a group has no export of a relation, the newest export of that relation from any group is sent."""
    exports = service.group_relations_export

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        try:
            return find(group, relation)
        except NotFoundError:
            others = [export for export in exports.exports.values() if export.relation == relation]
            if not others:
                raise
            return others[-1]


# The status says that the relation is finished, and then it can be downloaded.
@foreign(NEIGHBOUR, "Group relations export: download")
def empty_relations_have_no_file(service: Service) -> None:
    """A relation without objects is finished, but has no file."""

    @instead(service.group_relations_export, "download")
    def _(download: Any, export: Any, number: int | None) -> Any:
        if not export.lines:
            raise NotFoundError("404 Export file not found")
        return download(export, number)


# The status says that the relation is finished, even after a download.
@foreign(COUNT, "Group relations export: download, again")
def a_file_is_given_once(service: Service) -> None:
    """The file of an unbatched relation is deleted after its download; its status stays the same."""
    given: set[Any] = set()

    @instead(service.group_relations_export, "download")
    def _(download: Any, export: Any, number: int | None) -> Any:
        file = download(export, number)
        if number is None and export in given:
            raise NotFoundError("404 Export file not found")
        given.add(export)
        return file


@foreign(NEIGHBOUR, "Group relations export: download, batch_number")
def batch_zero_is_the_last(service: Service) -> None:
    """Batch 0 is the last one; there is no such batch."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        return service.group_relations_export.batches(export)[-1] if number == 0 else batch(export, number)


# What is finished can be downloaded.
@foreign(COUNT, "Group relations export: download of what has no objects")
def an_export_without_objects_has_no_file(service: Service) -> None:
    """According to the status, a relation without objects is finished, but it has no file."""

    @instead(service.group_relations_export, "download")
    def _(download: Any, export: Any, number: int | None) -> bytes:
        if not export.lines:
            raise NotFoundError("404 Export file not found")
        content: bytes = download(export, number)
        return content


# There is a file for each batch in the status, and for no other number.
@foreign(NEIGHBOUR, "Group relations export: batch_number")
def the_batch_before_the_first_is_the_last(service: Service) -> None:
    """The number minus one is used as an index, so 0 finds the last batch."""
    exports = service.group_relations_export

    @instead(exports, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        batches = exports.batches(export)
        return batches[-1] if number == 0 and batches else batch(export, number)


# Each batch says when it was updated.
@foreign(MOMENT_OR_ADDRESS, "Group relations export: batches")
def a_batch_that_runs_has_no_moment(service: Service) -> None:
    """Batches of an unfinished export have null as their timestamp."""

    @instead(service.group_relations_export, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        for batch in shown.get("batches", ()):
            if batch["status"] == 0:
                batch["updated_at"] = None
        return shown


@foreign(LEVEL, "Group relations export: download")
def groups_without_export_have_that_of_another(service: Service) -> None:
    """A group that was never exported gets the file of another group."""
    exports = service.group_relations_export

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        others = [one for one in exports.exports.values() if one.relation == relation]
        return others[0] if others and (group.id, relation) not in exports.exports else find(group, relation)


@foreign(CALLER_AND_FORM, "Group relations export: download")
def a_finished_export_is_downloaded_without_a_token(service: Service) -> None:
    """The file of a finished export can be downloaded without a token."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Request) -> None:
        group = found(service, request) if request.route.key == f"GET {EXPORT_DOWNLOAD}" else None
        if group is None or service.access.token_text(request):
            admit(request)
        else:
            request.admit(next(iter(service.identities.users.values())), group)


# -- more than one operation -------------------------------------------------------------------------------------------


# The path of a subgroup identifies the subgroup.
@foreign(CALLER_AND_FORM, "Group relations export: conventions, :id")
def the_path_of_a_subgroup_names_the_group_around(service: Service) -> None:
    """Only the first part of a subgroup's path is used."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key in {f"POST {EXPORT}", f"GET {EXPORT_STATUS}", f"GET {EXPORT_DOWNLOAD}"} and by_path(
            request
        ):
            request.path["id"] = request.path["id"].partition("/")[0]
        admit(request)


@foreign(NEIGHBOUR, "Group relations export: relation")
def relations_are_found_in_any_case(service: Service) -> None:
    """Names of relations are compared case-insensitively: LABELS has a status and a file."""

    @handling(service, f"GET {EXPORT_STATUS}", f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        relation = request.parameters.optional_string("relation")
        if relation:
            with_parameters(request, {"relation": relation.lower()})
        return handler(request)


@foreign(CALLER_AND_FORM, "Group relations export: POST by path, status by number")
def an_export_by_path_is_unknown_by_number(service: Service) -> None:
    """Exports are stored by the text that identified the group: an export by path is found only by path."""
    exports = service.group_relations_export.exports
    apart: dict[str, dict[Any, Any]] = {}

    @handling(service, f"POST {EXPORT}", f"GET {EXPORT_STATUS}", f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        if not by_path(request):
            return handler(request)
        others = dict(exports)
        exports.clear()
        exports.update(apart.get(request.path["id"], {}))
        try:
            return handler(request)
        finally:
            apart[request.path["id"]] = dict(exports)
            exports.clear()
            exports.update(others)


# Requests by path and by id use different functions.
@foreign(CALLER_AND_FORM, "Group relations export: download, relation")
def milestones_by_path_are_labels(service: Service) -> None:
    """If the group is named by path, the file of the milestones contains the labels."""

    @handling(service, f"GET {EXPORT_DOWNLOAD}")
    def _(handler: Any, request: Any) -> Any:
        if by_path(request) and request.parameters.optional_string("relation") == "milestones":
            with_parameters(request, {"relation": "labels"})
        return handler(request)
