"""Request examples of the group relations export."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.results.record import Reason
from conformance.suite.absences import OperationAbsent
from conformance.suite.arrange.exports import FINISHED, Export, export_of
from conformance.suite.arrange.request_examples import Area, RequestExample, Values
from conformance.suite.context import NotTested, Unmet, current_run
from conformance.suite.expectations import Caller

if TYPE_CHECKING:
    from conformance.suite.arrange.places import Place


def _export(caller: Caller, place: Place) -> Export:
    return export_of(caller, place.fixture("export_group"), str(place.value("export_group.relation")))


def _in_one_piece(caller: Caller, place: Place) -> Values:
    """
    Let the last export be one in one piece, so that the call, which asks for batches, changes something.

    It has to have ended for all relations: as long as one is running, another may be refused.
    """
    with suppress(Unmet):
        export = _export(caller, place)
        export.finished(batched=False)
        export.quiet()
    return {}


def _exported(caller: Caller, place: Place) -> Values:
    """
    Let the relation be exported in batches, so that its entry has all that an entry can have.

    A status that is refused is for the tests to find; one that is served and shows nothing proves nothing.
    """
    export = _export(caller, place)
    try:
        export.finished(batched=True)
    except Unmet:
        if caller.get(export.path / "status").is_served:
            raise
    return {}


def _downloadable(caller: Caller, place: Place) -> Values:
    """Let the relation be exported: in batches, or in one piece for random calls, which know no number of a batch."""
    export, batched = _export(caller, place), not place.is_aside
    try:
        export.finished(batched=batched)
    except OperationAbsent:
        raise  # what nobody can export need not be there to be downloaded
    except Unmet:
        if _is_unfinished(export, batched=batched):
            raise  # whatever is answered as long as it is shows nothing
        if lack := export.lack():
            raise NotTested(Reason.PREREQUISITE_MISSING, f"{lack}: name one that has objects") from None
        if not caller.get(export.path / "status").is_served:
            raise  # nobody knows what has ended, and each attempt begins an export anew
    return {}


def _is_unfinished(export: Export, *, batched: bool) -> bool:
    """
    Tell whether the status shows the relation, and that the export which is wanted is under way or has failed.

    As long as that has not begun, the entry is one of an older export, which may be of the other sort.
    """
    with suppress(Unmet):
        entry = export.own()
        return bool(entry) and not (entry.get("status") == FINISHED and entry.get("batched") is batched)
    return False


def _file(place: Place) -> Values:
    """Ask for the first batch of the relation, or for the one piece that it is in."""
    export = _export(Caller(current_run(), place.profile.actors[AREA.keeper]), place)
    if place.is_aside:
        return {"relation": export.relation}
    numbers = [1]
    with suppress(Unmet):
        numbers = export.numbers() or numbers
    return {"relation": export.relation, "batched": True, "batch_number": numbers[0]}


AREA = Area(
    keeper="owner",
    unknown={
        "scheduleGroupRelationsExport.id": "group-relations-export.schedule.unknown-group",
        "getGroupRelationsExportStatus.id": "group-relations-export.status.unknown-group",
        "downloadGroupRelationsExport.id": "group-relations-export.download.unknown-group",
    },
    request_examples={
        "scheduleGroupRelationsExport": RequestExample(
            before=_in_one_piece,
            state=lambda caller, place: _export(caller, place).marks(),
        ),
        "getGroupRelationsExportStatus": RequestExample(before=_exported),
        "downloadGroupRelationsExport": RequestExample(before=_downloadable, query=_file),
    },
)
