"""The export of a group as one caller schedules, follows and downloads it."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from conformance.results.record import Reason
from conformance.suite.absences import OperationAbsent
from conformance.suite.arrange.request_examples import Area, RequestExample, Values
from conformance.suite.context import NotTested, Run, Unmet, current_run
from conformance.suite.expectations import Answer, Caller, Path, eventually, given, group_path, whole_number
from conformance.suite.expectations.words import settles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.suite.arrange.places import Place
    from conformance.target import Fixture

STARTED, FINISHED, FAILED = 0, 1, -1

_scheduled: WeakKeyDictionary[Run, set[str]] = WeakKeyDictionary()
_in_vain: WeakKeyDictionary[Run, set[str]] = WeakKeyDictionary()

_MOST_RESTARTS = 3
#: How long at least is waited, in seconds, until what was scheduled shows: times may be told in whole seconds.
_SOON_SECONDS = 1.2

Entry = dict[str, Any]
Marks = dict[str, tuple[Any, Any]]


@dataclass
class _Pace:
    """What a run has seen of the exports of a group."""

    marks: Marks = field(default_factory=dict)
    """As they were last read, with nothing running."""
    read_at: float = 0.0
    shown: list[Entry] = field(default_factory=list)
    """The entries that were read then."""
    age: int | None = None
    """How often the run had forgotten what it knew."""
    delay: float = 0.0
    """The longest that it took an accepted export to show, in seconds."""
    shortest: float | None = None
    """The shortest that a scheduled export took to end; to look earlier is in vain."""


_paces: WeakKeyDictionary[Run, dict[str, _Pace]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Export:
    """
    The export of one group for one caller, looked at by one relation that holds objects.

    Specification: Endpoints > Group relations export.
    """

    caller: Caller
    path: Path
    relation: str

    def schedule(self, *, bare: bool = False, **body: Any) -> Answer:
        """Schedule an export with these parameters; `bare` sends no body at all."""
        return self.caller.post(self.path) if bare else self.caller.post(self.path, body)

    def accepted(self, **body: Any) -> Answer:
        """
        Schedule an export, again while that is refused: the one that was scheduled before may be running, unseen.

        Where none was accepted before, a refusal is the answer.
        """
        answer = self.schedule(**body)
        before = _scheduled.setdefault(current_run(), set())
        if answer.exchange.is_refusal and self.path in before:
            answers = [answer]

            def is_accepted() -> bool:
                answers.append(self.schedule(**body))
                return not answers[-1].exchange.is_refusal

            with suppress(Unmet):
                self._wait(is_accepted, "the acceptance of an export", f"takes {body}")
            answer = answers[-1]
        if answer.is_served:
            before.add(self.path)
        return answer

    def entries(self, *, after_scheduling: bool = False) -> list[Entry]:
        """
        Return the entries of the status; inconclusive when they cannot be read.

        Before the first export of a group has begun there may be none, or none that has a state, or the status may be
        refused.
        """
        answer = self.caller.get(self.path / "status")  # never from memory: an export goes on by itself
        if answer.exchange.is_refusal:
            return []
        body = parsed(answer)
        given(isinstance(body, list), f"GET {self.path}/status did not answer an array")
        found = [entry for entry in body if isinstance(entry, dict) and whole_number(entry.get("status")) is not None]
        readable = len(found) in (0, len(body)) or not after_scheduling
        given(readable, f"GET {self.path}/status has entries without a status")
        return found

    def own(self, shown: list[Entry] | None = None) -> Entry:
        """Return the entry of the relation, of those that were just shown or are read; an empty one when none is."""
        entries = self.entries() if shown is None else shown
        return next((entry for entry in entries if entry.get("relation") == self.relation), {})

    def marks(self) -> Marks:
        """Wait until no export is running or yet to begin; return by relation what a new one will make different."""
        return marks_in(self.quiet())

    def quiet(self) -> list[Entry]:
        """
        Wait until no export is running or yet to begin, and return all entries.

        What was accepted may begin later, and nothing shows it until then: each export that the run has scheduled since
        marks were last read gets as long as such a one ever took.
        """
        run = current_run()
        pace = _paces.setdefault(run, {}).setdefault(self.path, _Pace())
        if pace.age == run.known_reads.age and not run.profile.limits.settle_seconds:
            return pace.shown.copy()  # nothing was sent since but reads
        accepted = [at for at in run.served_writes.get(("POST", self.path), ()) if at > pace.read_at]
        due = 0.0
        if accepted:
            due = accepted[-1] + max(self._delay_after(accepted[0], pace), pace.shortest or 0.0)

        shown: list[Entry] = []

        def is_quiet() -> bool:
            if time.monotonic() < due:
                return False
            shown[:] = self.entries()
            return all(_has_ended(entry) for entry in shown)

        self._wait(is_quiet, "the end of an export")
        pace.marks, pace.read_at = marks_in(shown), time.monotonic()
        pace.shown, pace.age = shown.copy(), run.known_reads.age
        return shown

    def _delay_after(self, accepted: float, pace: _Pace) -> float:
        """
        Wait until an export that was accepted some time ago shows; return how long another one may take for that.

        Who looks late, since other tests ran in between, sees only that it took no longer than until now.
        """
        if self._is_anew(pace.marks):
            return max(pace.delay, min(time.monotonic() - accepted, _SOON_SECONDS))
        if settles(lambda: self._is_anew(pace.marks), max(_SOON_SECONDS, 2 * pace.delay)):
            pace.delay = max(pace.delay, time.monotonic() - accepted)
        return pace.delay

    def _is_anew(self, before: Marks) -> bool:
        now = marks_in(self.entries())
        return bool(now) and all(now.get(relation) != mark for relation, mark in before.items())

    def _wait(self, holds: Callable[[], bool], expected: str, sort: str = "") -> None:
        """
        Wait until something holds; where that was in vain once in this run, the deadline is not spent again.

        `sort` sets apart what is waited for here from the rest.
        """
        run, name = current_run(), f"{self.path} {sort}"
        if name in _in_vain.get(run, ()):
            given(holds(), f"{expected} in {self.path}, which was waited for in vain before")
            return
        try:
            eventually(holds, f"{expected} in {self.path}")
        except Unmet:
            _in_vain.setdefault(run, set()).add(name)
            raise

    def shows_anew(self, before: Marks) -> bool:
        """
        Wait until the status shows something of an export scheduled after `before`; tell whether it ever did.

        That older entries have gone is nothing of it yet.
        """

        def is_shown() -> bool:
            now = marks_in(self.entries(after_scheduling=True))
            return bool(now) and now != before

        try:
            self._wait(is_shown, "an entry of the export")
        except Unmet:
            return False
        return True

    def settled(self, before: Marks, *, batched: bool) -> list[Entry]:
        """
        Wait for the end of the export that was scheduled after `before`, and return all entries.

        Entries of older exports stay until new ones take their place; only times of the target are compared.
        """
        pace, begun = _paces.setdefault(current_run(), {}).setdefault(self.path, _Pace()), time.monotonic()

        shown: list[Entry] = []

        def is_settled() -> bool:
            if pace.shortest is not None and time.monotonic() - begun < pace.shortest:
                return False
            shown[:] = self.entries(after_scheduling=True)
            return self._is_settled(shown, before, batched)

        self._wait(is_settled, "the end of the scheduled export")
        pace.shortest = min(pace.shortest or _SOON_SECONDS, time.monotonic() - begun)
        return shown

    def _is_settled(self, entries: list[Entry], before: Marks, batched: bool) -> bool:  # noqa: FBT001 - data
        new = {name for name, mark in marks_in(entries).items() if before.get(name) != mark}
        ended = {str(entry.get("relation")) for entry in entries if _has_ended(entry)} & new
        own = [entry for entry in entries if entry.get("relation") == self.relation]
        as_wanted = any(entry.get("batched") is batched for entry in own)
        return self.relation in ended and (as_wanted or len(ended) == len(marks_in(entries)))

    def begun_anew(self, *, batched: bool) -> tuple[Marks, Answer]:
        """
        Schedule an export in this form, and return the marks of the last one and the answer.

        The last one is of the other form, so that its entries cannot be taken for new ones. Where the new one is
        refused, one in the other form is served right afterwards: nothing else stood in its way.
        """
        if self.is_batched() is batched:
            self.finished(batched=not batched)
        before = self.marks()
        answer = self.accepted(batched=batched)
        if answer.exchange.is_refusal:
            self.accepted(batched=not batched).given_served()
        return before, answer

    def ended_anew(self, before: Marks, answer: Answer, *, batched: bool) -> list[Entry]:
        """
        Return the entries of an export that was begun anew, once the relation has ended.

        Other relations may end later: what still shows their older export is left out.
        """
        answer.given_served()
        return self.anew(self.settled(before, batched=batched), before)

    def anew(self, entries: list[Entry], before: Marks) -> list[Entry]:
        """Return those entries that do not come from an older export."""
        return [entry for entry in entries if marks_in([entry]).items() - before.items()]

    def is_batched(self) -> bool:
        """Tell whether the last export of the relation came in batches."""
        return self.own().get("batched") is True

    def finished(self, *, batched: bool) -> Entry:
        """Return the entry of the relation, finished in this form; an export is scheduled only if there is none."""
        for _ in range(_MOST_RESTARTS):
            shown = self.quiet()
            before = marks_in(shown)
            if before.get(self.relation, (None, None))[1] is not batched:
                self.accepted(batched=batched).given_served()
                shown = self.settled(before, batched=batched)
            found = self.own(shown)
            if _has_ended(found):
                break
        given(found.get("status") == FINISHED, f"{self.relation} did not finish in {self.path}")
        given(found.get("batched") is batched, f"{self.relation} is {'not ' if batched else ''}exported in batches")
        return found

    def numbers(self) -> list[int]:
        """Return the numbers of the batches that the relation is exported in."""
        batches = self.finished(batched=True).get("batches") or ()
        numbers = [whole_number(batch.get("batch_number")) for batch in batches if isinstance(batch, dict)]
        return [number for number in numbers if number is not None]

    def in_one_piece(self) -> Answer:
        """Export the relation in one piece, unless it is, and return its file as a step of a story."""
        return self.file_of(self.finished(batched=False)).given_served()

    def file_of(self, entry: Entry, **query: Any) -> Answer:
        """Download what an entry says is finished; once more where the relation turns out to be exported anew."""
        answer = self.download(**query)
        for _ in range(_MOST_RESTARTS):
            if not answer.exchange.is_refusal or marks_in([self.own()]) == marks_in([entry]):
                break
            entry = self.finished(batched=entry.get("batched") is True)
            answer = self.download(**query)
        return answer

    def others(self) -> list[str]:
        """Return the other relations that are finished in one piece, once all are, or as many as ever will be."""

        def are_in_one_piece() -> bool:
            return all(_has_ended(entry) and entry.get("batched") is False for entry in self.entries())

        with suppress(Unmet):
            self._wait(are_in_one_piece, "the end of all relations", "others")
        finished = [entry for entry in self.entries() if entry.get("status") == FINISHED]
        return sorted(
            {str(entry.get("relation")) for entry in finished if entry.get("batched") is False} - {self.relation}
        )

    def download(self, **query: Any) -> Answer:
        """Download the file of the relation, or another with `relation`; the bytes are those that were sent."""
        return self.caller.download(self.path / "download", **{"relation": self.relation, **query})


def of_group(caller: Caller, group: Fixture, relation: str) -> Export:
    """Return the export of a group."""
    return Export(caller, group_path(group) / "export_relations", relation)


def parsed(answer: Answer) -> Any:
    """Return the JSON that an answer was served with; inconclusive when it was not, or is none."""
    try:
        return json.loads(answer.given_served().exchange.body)
    except (ValueError, RecursionError):
        raise Unmet(Reason.PRECONDITION, f"GET {answer.exchange.call.path} did not answer JSON") from None


def _has_ended(entry: Mapping[str, Any]) -> bool:
    return entry.get("status") in (FINISHED, FAILED)


def marks_in(entries: list[Entry]) -> Marks:
    """Return by relation what a new export would make different."""
    return {str(entry.get("relation")): (entry.get("updated_at"), entry.get("batched")) for entry in entries}


# -- request examples ------------------------------------------------------------------------------------------------


def _export(caller: Caller, place: Place) -> Export:
    return of_group(caller, place.fixture("export_group"), str(place.value("export_group.relation")))


def _in_one_piece(caller: Caller, place: Place) -> Values:
    """
    Let the last export be one in one piece, so that the call, which asks for batches, changes something.

    It has to have ended for all relations: as long as one is running, another may be refused.
    """
    with suppress(Unmet):
        export = _export(caller, place)
        export.finished(batched=False)
        export.marks()
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
    export = _export(caller, place)
    try:
        export.finished(batched=not place.is_aside)
    except OperationAbsent:
        raise  # what nobody can export need not be there to be downloaded
    except Unmet:
        if _is_under_way(export):
            raise  # whatever is answered meanwhile shows nothing
        _require_known(export)
    return {}


def _is_under_way(export: Export) -> bool:
    """Tell whether the status shows the relation, and that its export has not ended."""
    with suppress(Unmet):
        entry = export.own()
        return bool(entry) and not _has_ended(entry)
    return False


def _require_known(export: Export) -> None:
    """Raise NotTested where an export has ended, and none of what it holds is the relation that the profile gives."""
    known = []
    with suppress(Unmet):
        known = [str(entry.get("relation")) for entry in export.entries() if _has_ended(entry)]
    if known and export.relation not in known:
        detail = f"the profile gives '{export.relation}' as relation of export_group, and its export holds "
        raise NotTested(
            Reason.PREREQUISITE_MISSING, f"{detail}{', '.join(sorted(known)[:10])}: name one that has objects"
        )


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
