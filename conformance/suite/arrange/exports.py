"""The export of a group as one caller schedules, follows and downloads it.

A service may begin an accepted export at any time, and nothing shows it until then. When a relation ends, its entry in
the status replaces the entry of the export before. Only marks distinguish an entry of a new export from one of an older
export: when it was updated, and in which form. So marks are read while no export runs, and later entries are compared
with them. Only times that the target tells are compared with each other.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.http.bodies import listed_in, records_of
from conformance.suite.arrange.export_entries import (
    FAILED,
    FINISHED,
    entries_in,
    has_ended,
    is_told_in_seconds,
    marks_in,
)
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import Answer, Caller, Path, eventually, given, group_path, whole_number
from conformance.suite.expectations.listings import SHORTEST_PAGE
from conformance.suite.expectations.words import settles
from conformance.suite.per_run import PerRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.suite.arrange.export_entries import Entry, Marks
    from conformance.target import Fixture

_MOST_RESTARTS = 3
#: Minimum time, in seconds, to wait until a scheduled export shows: times may be told in whole seconds.
_SOON_SECONDS = 1.2

#: Maximum time that an export may run without showing anything before its end; a network may be slow for once.
_LONGEST_HIDDEN_SECONDS = 5.0

#: Waiting time, in seconds, where fractions of a second are told: two reads may be answered within one of these.
_SOONER_SECONDS = 0.02

#: Key for waiting after an export was accepted.
_ENTRY, _END = "an entry of the export", "the end of the scheduled export"
#: Key by form (in batches or not): one form may never come although the other does.
_END_IN_FORM = {batched: f"{_END} with batched = {str(batched).lower()}" for batched in (False, True)}
_REFUSED = "an answer of the status"
_ENDS = {_END, *_END_IN_FORM.values()}
_NEVER_SHOWN = {_ENTRY, *_ENDS}


@dataclass(frozen=True)
class _Idle:
    """The status of a group, read while none of its exports was running."""

    entries: tuple[Entry, ...] = ()
    read_at: float = 0.0
    """In seconds of the monotonic clock."""
    new_at: float = 0.0
    """When this state was first seen."""
    age: int | None = None
    """Age of the run's known reads at that time: while it does not change, only reads were sent."""


@dataclass
class _Seen:
    """What a run has seen about the exports of one group."""

    has_accepted: bool = False
    """Whether an export was ever accepted."""
    other_paths: set[Path] = field(default_factory=set)
    """The same exports with the group named otherwise."""
    idle: _Idle = field(default_factory=_Idle)
    longest_delay: float = 0.0
    """The longest time until an accepted export showed, in seconds."""
    shortest_export: float | None = None
    """The shortest time until an export ended, in seconds; looking earlier is useless."""
    in_vain: set[str] = field(default_factory=set)
    """What was waited for until the deadline without success."""
    endless: set[str] = field(default_factory=set)
    """The relations whose end was waited for until the deadline without success."""
    ended: set[str] = field(default_factory=set)
    """The relations for which an export was ever seen to end."""
    is_refused: bool = False
    """Whether the last read of the status was refused, as it may be before the first export."""
    tells_seconds: bool = False
    """Whether an entry ever told its last change only in whole seconds; others may be more precise."""
    times_move: bool | None = None
    """Whether each read tells other times, so that times say nothing; None while that is unknown."""


#: By the path of a group's exports.
_SEEN: PerRun[dict[str, _Seen]] = PerRun(dict)


@dataclass(frozen=True)
class Export:
    """The export of one group for one caller, looked at by one relation that holds objects.

    Specification: Endpoints > Group relations export.
    """

    caller: Caller
    path: Path
    relation: str

    @property
    def _seen(self) -> _Seen:
        return _SEEN().setdefault(self.path, _Seen())

    def named_by_path(self, group: Fixture) -> list[Export]:
        """Return this export with its group named by the path; none if the profile does not give the path."""
        path = group.get("path")
        if not path:
            return []
        named = replace(self, path=Path("/groups") / quote(path, safe="") / "export_relations")
        self._seen.other_paths.add(named.path)
        return [named]

    # -- what is sent --------------------------------------------------------------------------------------------------

    def schedule(self, **body: Any) -> Answer:
        """Schedule an export with these parameters."""
        last_form = self.own(list(self._seen.idle.entries)).get("batched")
        if body.get("batched", last_form) is last_form:  # if no form was asked for, the form of the export is open
            self._let_the_second_pass()
        return self.caller.post(self.path, body)

    def accepted(self, **body: Any) -> Answer:
        """Schedule an export; repeat while it is refused, because an earlier one, or another group's, may be running.

        If none was accepted before in the run, a refusal is the answer.
        """
        answer = self.schedule(**body)
        if answer.exchange.is_refusal and _was_any_accepted():
            answers = [answer]

            def is_accepted() -> bool:
                answers.append(self.schedule(**body))
                return not answers[-1].exchange.is_refusal

            with suppress(Unmet):
                # What this group never accepted in any form is waited for once.
                sort = f"takes {body}" if self._seen.has_accepted else "takes any"
                self._wait(is_accepted, "the acceptance of an export", sort=sort)
            answer = answers[-1]
        self._seen.has_accepted |= answer.is_served
        return answer

    @property
    def is_accepted(self) -> bool:
        """Whether this run had an export of the group accepted, in any form."""
        return self._seen.has_accepted

    # -- what is shown -------------------------------------------------------------------------------------------------

    def entries(self, *, after_scheduling: bool = False) -> list[Entry]:
        """Return the entries of the status; inconclusive when they cannot be read.

        Before the first export of a group has begun, there may be no entries, entries without a state, or a refusal.
        """
        answer = self.caller.get(self.path / "status")  # never from memory, because an export makes progress by itself
        self._seen.is_refused = answer.exchange.is_refusal
        if self._seen.is_refused:
            return []
        body = listed_in(answer.given_json())
        given(body is not None, f"GET {self.path}/status did not answer an array")
        assert body is not None
        if self.relation and len(body) >= SHORTEST_PAGE and self.relation not in marks_in(records_of(body)):
            body = [*body, *self._asked_for_alone()]
        found = entries_in(body)
        self._seen.tells_seconds |= is_told_in_seconds(found)
        self._seen.ended |= {str(entry.get("relation")) for entry in found if has_ended(entry)}
        if self._seen.times_move:
            found = [{name: value for name, value in entry.items() if name != "updated_at"} for entry in found]
        readable = len(found) in (0, len(body)) or not after_scheduling
        given(readable, f"GET {self.path}/status has entries without a status")
        return found

    def _asked_for_alone(self) -> list[Any]:
        """Return the entry of the relation if the list may be the first page of a longer one; None if refused."""
        answer = self.caller.get(self.path / "status", relation=self.relation)
        if answer.exchange.is_refusal:
            return []
        return records_of(answer.given_json())

    def own(self, shown: list[Entry] | None = None) -> Entry:
        """Return the entry of the relation from the given or newly read entries; an empty entry if there is none."""
        entries = self.entries() if shown is None else shown
        return next((entry for entry in entries if entry.get("relation") == self.relation), {})

    # -- waiting -------------------------------------------------------------------------------------------------------

    def marks(self) -> Marks:
        """Wait until no export is running or about to begin; return by relation what a new export will change."""
        return marks_in(self.quiet())

    def _let_the_second_pass(self) -> None:
        """Wait if times are told in seconds: two exports that end within the same second look the same."""
        if self._seen.tells_seconds:
            time.sleep(max(0.0, self._seen.idle.new_at + _SOON_SECONDS - time.monotonic()))

    def quiet(self) -> list[Entry]:
        """Wait until no export is running or about to begin, and return all entries.

        An accepted export gets as long to begin as any ever took, and as long to end as the shortest took.
        """
        run, seen = current_run(), self._seen
        if seen.idle.age == run.known_reads.age and not run.profile.limits.settle_seconds:
            return list(seen.idle.entries)
        served = (run.writes.served.get(("POST", path), ()) for path in (self.path, *seen.other_paths))
        accepted = sorted(at for times in served for at in times if at > seen.idle.read_at)
        due = 0.0
        if accepted:
            due = accepted[-1] + max(self._delay_after(accepted[0]), seen.shortest_export or 0.0)
        shown = self._all_ended(due)
        if seen.times_move is None and shown:
            seen.times_move = self._times_move(shown)
            shown = self.entries() if seen.times_move else shown
        now = time.monotonic()
        is_as_before = marks_in(shown) == marks_in(seen.idle.entries)
        seen.idle = _Idle(tuple(shown), now, seen.idle.new_at if is_as_before else now, run.known_reads.age)
        return shown

    def _all_ended(self, due: float) -> list[Entry]:
        """Wait until all relations have ended, and return their entries; nothing is read before `due`.

        Relations that were waited for in vain in this run are not waited for again.
        """
        endless, running = self._seen.endless, set[str]()

        def have_ended(shown: list[Entry]) -> bool:
            running.clear()
            running.update(str(entry.get("relation")) for entry in shown if not has_ended(entry))
            return running <= endless

        expected = "the end of an export"
        sort = f"{expected}, but for {sorted(endless)}" if endless else expected
        try:
            return self._entries_when(have_ended, expected, sort=sort, not_before=due)
        except Unmet:
            if sort in self._seen.in_vain:
                endless |= running - {self.relation}
            raise

    def others_quiet(self) -> None:
        """Wait until no export of another group that this run scheduled is running; one seen to have ended has."""
        for (method, path), times in [*current_run().writes.served.items()]:
            if method == "POST" and path.endswith("/export_relations") and path != self.path:
                ended_at = _SEEN().get(path, _Seen()).idle.read_at
                with suppress(Unmet):
                    if times[-1] > ended_at:
                        replace(self, path=Path(path)).quiet()

    def is_running(self) -> bool:
        """Tell whether the status shows a relation that has not ended."""
        with suppress(Unmet):
            return not all(map(has_ended, self.entries()))
        return False

    def _times_move(self, shown: list[Entry]) -> bool:
        """Tell whether each of two more reads shows other times, though nothing was sent since."""
        for _ in range(2):
            before, pause = marks_in(shown), _SOON_SECONDS if is_told_in_seconds(shown) else _SOONER_SECONDS
            time.sleep(pause)
            shown = self.entries()
            if marks_in(shown) == before:
                return False
        return True

    def shows_anew(self, before: Marks) -> bool:
        """Wait until the status shows something of an export scheduled after `before`; tell whether it ever did.

        The removal of older entries alone does not count.
        """
        with suppress(Unmet):
            self._entries_when(lambda shown: marks_in(shown) not in ({}, before), _ENTRY, after_scheduling=True)
            return True
        return False

    def settled(self, before: Marks, *, batched: bool, sort: str = _END) -> list[Entry]:
        """Wait for the end of the export that was scheduled after `before`, and return all entries.

        `sort` names a kind of end, so that a wait in vain happens only once for each kind.
        """
        seen, begun = self._seen, time.monotonic()
        under_way: list[bool] = []

        def is_settled(shown: list[Entry]) -> bool:
            under_way.append(not all(map(has_ended, shown)))
            return self._is_settled(shown, before, batched)

        try:
            shown = self._entries_when(
                is_settled, _END, sort=sort, not_before=begun + (seen.shortest_export or 0.0), after_scheduling=True
            )
        except Unmet as unmet:
            lack = self.lack()
            if lack and sort in seen.in_vain:
                seen.in_vain |= _ENDS  # a relation that is exported in no form need not be waited for in each
            raise Unmet(unmet.reason, lack or unmet.detail) from None
        if not any(under_way):  # the entries of the older export may stay until the new one has ended
            seen.longest_delay = max(seen.longest_delay, min(time.monotonic() - begun, _LONGEST_HIDDEN_SECONDS))
        seen.shortest_export = min(seen.shortest_export or _SOON_SECONDS, time.monotonic() - begun)
        return shown

    def _entries_when(
        self,
        are_wanted: Callable[[list[Entry]], bool],
        expected: str,
        *,
        sort: str = "",
        not_before: float = 0.0,
        after_scheduling: bool = False,
    ) -> list[Entry]:
        """Wait until all entries are as wanted, and return them; nothing is read before a given time."""
        shown: list[Entry] = []

        def holds() -> bool:
            if time.monotonic() < not_before:
                return False
            shown[:] = self.entries(after_scheduling=after_scheduling)
            return are_wanted(shown)

        self._wait(holds, expected, sort=sort)
        return shown

    def _is_settled(self, entries: list[Entry], before: Marks, batched: bool) -> bool:  # noqa: FBT001 - data
        new = {name for name, mark in marks_in(entries).items() if before.get(name) != mark}
        ended = {str(entry.get("relation")) for entry in entries if has_ended(entry)} & new
        own = [entry for entry in entries if entry.get("relation") == self.relation]
        as_wanted = any(entry.get("batched") is batched for entry in own)
        return self.relation in ended and (as_wanted or len(ended) == len(marks_in(entries)))

    def _delay_after(self, accepted: float) -> float:
        """Wait until an export that was accepted some time ago shows; return how long another one may take for that.

        A late look, after other tests ran, only shows that it took no longer than until now.
        """
        seen, before = self._seen, marks_in(self._seen.idle.entries)

        def is_anew() -> bool:
            now = marks_in(self.entries())
            return bool(now) and all(now.get(relation) != mark for relation, mark in before.items())

        if is_anew():
            return max(seen.longest_delay, min(time.monotonic() - accepted, _SOON_SECONDS))
        if seen.in_vain & _NEVER_SHOWN:
            return seen.longest_delay  # nothing shows accepted exports, so waiting for each again would be useless
        if settles(is_anew, max(_SOON_SECONDS, 2 * seen.longest_delay)):
            seen.longest_delay = max(seen.longest_delay, time.monotonic() - accepted)
        return seen.longest_delay

    def _wait(self, holds: Callable[[], bool], expected: str, *, sort: str = "") -> None:
        """Wait until a condition holds; after one wait in vain in this run, the full deadline is not waited again.

        `sort` names all waits of one kind; without it, the kind is what is expected. A status that is refused until the
        deadline does not exist.
        """
        in_vain, sort = self._seen.in_vain, sort or expected
        if sort in in_vain or _REFUSED in in_vain:
            if holds():
                return
            may_come = sort not in in_vain and not self._seen.is_refused
            given(may_come, f"{expected} in {self.path}, which was waited for in vain before")
        expected = f"{expected} in {self.path}"
        begun, allowed = time.monotonic(), current_run().waits.seconds_for(expected)
        try:
            eventually(holds, expected)
        except Unmet:
            # A call without an answer ends only one test.
            if time.monotonic() - begun >= allowed:
                in_vain.add(sort)
                if self._seen.is_refused:
                    in_vain.add(_REFUSED)
            raise

    def lack(self) -> str | None:
        """Say what exports that ended without the relation contained; None if one had it, or none has ended."""
        with suppress(Unmet):
            self.quiet()
        if not self._seen.ended or self.relation in self._seen.ended:
            return None
        held = ", ".join(sorted(self._seen.ended)[:10])
        return f"{self.path} holds {held}, and not '{self.relation}', the relation of export_group in the profile"

    # -- building blocks for tests -------------------------------------------------------------------------------------

    def begun_anew(self, *, batched: bool) -> tuple[Marks, Answer]:
        """Schedule an export in this form, and return the marks of the last export and the answer.

        The last export has the other form, so that its entries cannot be mistaken for new ones. If the new export is
        refused, one in the other form is served right afterwards: so nothing else prevented it.
        """
        if self.is_batched() is batched:
            self.finished(batched=not batched)
        before = self.marks()
        self._let_the_second_pass()  # so that it shows as new even if it does not come in the requested form
        answer = self.accepted(batched=batched)
        if answer.exchange.is_refusal:
            self.accepted(batched=not batched).given_served()
        return before, answer

    def ended_anew(self, before: Marks, answer: Answer, *, batched: bool) -> list[Entry]:
        """Return the entries of an export that was begun anew, once the relation has ended.

        Other relations may end later: entries of their older export are left out.
        """
        answer.given_served()
        return self.anew(self.settled(before, batched=batched), before)

    def anew(self, entries: list[Entry], before: Marks) -> list[Entry]:
        """Return the entries that do not come from an older export."""
        return [entry for entry in entries if marks_in([entry]).items() - before.items()]

    def is_batched(self) -> bool:
        """Tell whether the last export of the relation came in batches."""
        return self.own().get("batched") is True

    def finished(self, *, batched: bool) -> Entry:
        """Return the entry of the relation, finished in this form by this run, as older exports may be out of date."""
        for _ in range(_MOST_RESTARTS):
            shown = self.quiet()
            before = marks_in(shown)
            if not self._seen.has_accepted or before.get(self.relation, (None, None))[1] is not batched:
                self.accepted(batched=batched).given_served()
                shown = self.settled(before, batched=batched, sort=_END_IN_FORM[batched])
            found = self.own(shown)
            if has_ended(found) and not self._goes_on(found):
                break
        given(found.get("status") == FINISHED, f"{self.relation} did not finish in {self.path}")
        given(found.get("batched") is batched, f"{self.relation} is {'not ' if batched else ''}exported in batches")
        return found

    def _goes_on(self, entry: Entry) -> bool:
        """Tell whether a failed export is retried automatically: the text does not say which state is the last.

        After one wait in vain in this run, it is not waited for again.
        """
        in_vain, sort = self._seen.in_vain, "another try"
        if entry.get("status") != FAILED or sort in in_vain:
            return False
        goes_on = settles(lambda: self.own().get("status") != FAILED, _SOON_SECONDS)
        if not goes_on:
            in_vain.add(sort)
        return goes_on

    def numbers(self) -> list[int]:
        """Return the numbers of the batches of the relation's export."""
        batches = self.finished(batched=True).get("batches") or ()
        numbers = [whole_number(batch.get("batch_number")) for batch in batches if isinstance(batch, dict)]
        return [number for number in numbers if number is not None]

    def in_one_piece(self) -> Answer:
        """Export the relation in one piece, if it is not already, and return its file as a step of a story."""
        return self.file_of(self.finished(batched=False)).given_served()

    def file_of(self, entry: Entry, **query: Any) -> Answer:
        """Download a file that an entry calls finished; repeat once if the relation is being exported again."""
        answer = self.download(**query)
        for _ in range(_MOST_RESTARTS):
            if not answer.exchange.is_refusal or marks_in([self.own()]) == marks_in([entry]):
                break
            entry = self.finished(batched=entry.get("batched") is True)
            answer = self.download(**query)
        return answer

    def others(self) -> list[str]:
        """Return the other relations that are finished in one piece, once all are or no more are expected."""
        with suppress(Unmet):
            self._wait(
                lambda: all(has_ended(entry) and entry.get("batched") is False for entry in self.entries()),
                "the end of all relations",
                sort="others",
            )
        finished = [entry for entry in self.entries() if entry.get("status") == FINISHED]
        return sorted(
            {str(entry.get("relation")) for entry in finished if entry.get("batched") is False} - {self.relation}
        )

    def download(self, **query: Any) -> Answer:
        """Download the file of the relation, or another with `relation`; the bytes are returned as sent."""
        return self.caller.download(self.path / "download", **{"relation": self.relation, **query})


def _was_any_accepted() -> bool:
    served = current_run().writes.served
    return any(method == "POST" and path.endswith("/export_relations") for method, path in served)


def export_of(caller: Caller, group: Fixture, relation: str) -> Export:
    """Return the export of a group."""
    return Export(caller, group_path(group) / "export_relations", relation)
