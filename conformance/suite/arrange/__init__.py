"""How every operation is provoked, undone and looked at.

Every `Area` in a module of this package is found automatically. See `job_token_scope` for the worked example.
"""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import read_yaml
from conformance.http.bodies import ABSENT
from conformance.http.transport import NotSentError
from conformance.results.record import Outcome, Reason
from conformance.suite.absences import OperationAbsent
from conformance.suite.arrange.places import Place
from conformance.suite.arrange.request_examples import (
    Area,
    Prepared,
    ReadBack,
    RequestExample,
    Values,
    prepare,
)
from conformance.suite.context import NotTested, Unmet, current_run, current_test
from conformance.suite.exceptions import require_in
from conformance.suite.expectations import Answer, Caller
from conformance.suite.expectations.words import given, settles
from conformance.suite.per_run import PerRun
from conformance.target.ownership import UNUSED_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.contract import Operation
    from conformance.suite.context import Run

__all__ = [
    "ABSENT",
    "INHERITED",
    "UNUSED_ID",
    "ZERO",
    "Arranged",
    "Place",
    "Prepared",
    "ReadBack",
    "RequestExample",
    "Values",
    "area_of",
    "arranged",
    "has_request_example",
    "requirements_of_unknown",
]


#: A name that nothing has. In some languages each object inherits it: what looks up names in an object finds it.
INHERITED = "constructor"
#: A text that some languages take for nothing, as if it had not been sent.
ZERO = "0"
_UNKNOWN: Mapping[str, Mapping[str, str]] = read_yaml(Path(__file__).with_name("unknown.yaml"))
#: Actors with a role in the fixtures of the stories. For other fixtures they may have none.
_AT_HOME = frozenset({"project_bot", "group_bot"})
#: The operations that went on being refused while other work was waited for.
_REFUSED_IN_VAIN: PerRun[set[str]] = PerRun(set)


@cache
def _areas() -> Mapping[str, Area]:
    """Return the area of every operation that has a request example."""
    found: dict[str, Area] = {}
    for module in pkgutil.iter_modules(__path__):
        for area in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(area, Area):
                found |= dict.fromkeys(area.request_examples, area)
    return MappingProxyType(found)


def requirements_of_unknown(operation: Operation) -> Mapping[str, str]:
    """Return the requirements that an unknown thing is refused, by the parameter of an operation that names it."""
    return _UNKNOWN.get(operation.id, {})


def has_request_example(operation: Operation) -> bool:
    """Tell whether an operation can be provoked by its request example."""
    return operation.id in _areas()


def area_of(operation: Operation) -> Area:
    """Return the area that an operation's request example belongs to; raise KeyError when it has none."""
    return _areas()[operation.id]


def place_for(run: Run, operation: Operation, *, aside: bool) -> Place:
    """Return the things of the target that an operation is to be called on."""
    served = next((name for name in operation.served if name in run.profile.actors), None)
    if not aside or served in _AT_HOME:
        return Place(run.profile, area=operation.area)
    return Place.aside(run.profile, _references(run, operation), operation.area)


def _references(run: Run, operation: Operation) -> set[str]:
    """Return the fixtures that the calls of an operation's area use."""
    request_examples = area_of(operation).request_examples
    return {
        parameter.fixture
        for entry in run.validator.operations
        if entry.id in request_examples
        for parameter in entry.parameters
        if parameter.fixture
    }


@dataclass
class Arranged:
    """An operation whose call is correct and would change something; it is undone at the end."""

    operation: Operation
    place: Place
    keeper: Caller
    call: Prepared
    _area: Area
    _remembered: Any = ABSENT
    """State before the call; read only when something changes, so that an unreadable list hides no other reason."""
    _right_at: int = -1
    """Number of writes that had been sent when the call was made right."""
    _untouched_at: int = -1
    """Number of writes that had been sent when the state was read."""
    _stood: tuple[int, Any] | None = None
    """State before the last calls, none of which was served, and the number of served writes at that time."""
    _was_busy: bool = False
    """Whether work on an earlier call was going on when the last call was sent."""
    _holds_again: Callable[[], None] = lambda: None
    """Reports that the state that was read then holds again."""

    @property
    def request_example(self) -> RequestExample:
        """How the operation is provoked."""
        return self._area.request_examples[self.operation.id]

    def sent_by(self, caller: Caller) -> Answer:
        """Send the call by an actor."""
        return self.sent(self.call, caller)

    def sent(self, call: Prepared, caller: Caller, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a form of the call by an actor, and wait for work in the background."""
        seconds, taken = self.request_example.takes_seconds, current_run().writes.not_refused
        if seconds and (self._stood is None or self._stood[0] != taken):
            with suppress(Unmet, NotTested):
                self._stood = taken, self.state()
        before = self._stood[1] if self._stood is not None and self._stood[0] == taken else None
        self._was_busy = self.request_example.is_busy(self.keeper, self.place)
        answer = self._when_idle(call, caller, headers)
        if before and answer.is_served:
            with suppress(Unmet, NotTested):
                if self.state() == before:
                    settles(lambda: self.state() != before, seconds)
        if self.request_example.stays and answer.is_served:
            current_run().learnt.made_for_good[self.operation.id, call.path, caller.name] = answer.exchange
        return answer

    def _when_idle(self, call: Prepared, caller: Caller, headers: Mapping[str, str] | None) -> Answer:
        """Send a call; again while it is refused, if it is right and something else may be the reason.

        The target may be at work on others, or a list may not show what is on it.

        After one wait in vain in this run, it is not waited for again.
        """
        answers, in_vain = [call.sent_by(caller, headers)], _REFUSED_IN_VAIN()

        def is_taken() -> bool:
            answers.append(call.sent_by(caller, headers))
            return not answers[-1].exchange.is_refusal

        is_right, frees = caller.name in self.operation.served, self.request_example.frees
        if is_right and answers[0].exchange.is_refusal and frees is not None and frees(self.keeper, self.place):
            answers.append(call.sent_by(caller, headers))
        seconds = 0 if self.operation.id in in_vain else self.request_example.busy_seconds
        if seconds and is_right and answers[-1].exchange.is_refusal and not settles(is_taken, seconds):
            in_vain.add(self.operation.id)
        return answers[-1]

    def given_idle(self, answer: Answer) -> None:
        """Go on only if the last answer is no refusal that work on an earlier call may be the reason of."""
        is_excused = self._was_busy and answer.exchange.is_refusal
        given(not is_excused, f"{self.operation.id} is refused, and the work on an earlier call goes on")

    def control(self, caller: Caller) -> Answer:
        """Return the answer to the correct call. A call with a permanent effect is made once per actor and run."""
        known = current_run().learnt.made_for_good.get((self.operation.id, self.call.path, caller.name))
        return self.sent_by(caller) if known is None else Answer(known)

    @property
    def by_path(self) -> Prepared | None:
        """The call with its project or group named by the full path; None if it names none, or the path is unknown."""
        owner = self.operation.owner
        if owner is None or owner.fixture is None:
            return None
        number = self.call.path_values[owner.name]
        entries = self.place.entries(owner.fixture.partition(".")[0])
        path = next((entry.get("path") for entry in entries if entry.id == number), None)
        return self.call.having(owner, path) if path else None

    def served_below(self, prefix: str, caller: Caller) -> bool:
        """Tell whether the call is served below a prefix other than that of the service; '' stands for none.

        A write that names no project or group of the run is only sent to the path of the contract.
        """
        address = f"{self.place.profile.base_url}{prefix}{self.call.path}"
        try:
            return caller.call(self.operation.method, address, query=self.call.query).is_served
        except NotSentError:
            return False

    def state(self) -> Any:
        """Read the state that a refused call must not change; None for an operation that only reads."""
        return self.request_example.state(self.keeper, self.place) if self.request_example.state else None

    def fill(self) -> list[Any]:
        """Make a paginated list have at least three entries, and return their ids."""
        if self.request_example.fill is None:
            return []
        self.remember()
        return self.request_example.fill(self.keeper, self.place)

    def takes(self, name: str) -> bool:
        """Tell whether the called thing has a parameter of this name."""
        return self._area.takes(self.place, name)

    def again(self) -> None:
        """Undo previous calls and make the call right once more; if they only read, nothing needs to be done."""
        if self.operation.is_read or current_run().writes.sent == self._right_at:
            return
        if self._remembered is not ABSENT:
            undo = self.request_example.undo or self._area.undo or self._area.put_back
            undo(self.keeper, self.place, self._remembered)
        self.make_right()

    def make_right(self) -> None:
        """Make the call right, starting from the remembered state."""
        known = self.request_example.before(self.keeper, self.place)
        self.call = prepare(self.operation, self.request_example, self.place, known)
        self._right_at = current_run().writes.sent

    def put_back(self) -> None:
        """Undo the previous calls."""
        if self._remembered is ABSENT:
            return
        if current_run().writes.sent != self._untouched_at:
            self._area.put_back(self.keeper, self.place, self._remembered)
        self._holds_again()

    def remember(self) -> None:
        """Read the state before the first change."""
        if self._remembered is ABSENT:
            self._untouched_at = current_run().writes.sent
            with current_run().known_reads.before_changes() as self._holds_again:
                self._remembered = self._area.remember(self.keeper, self.place)


@contextmanager
def arranged(operation: Operation, *, aside: bool = False) -> Iterator[Arranged]:
    """Make the call of an operation right, and restore everything afterwards.

    `aside` uses the fixtures that the profile sets aside for random calls. Raise NotTested when the profile lacks
    something. Requirements that all operations verify together are not left open because of this one.
    """
    run, results = current_run(), current_test().results
    area, known = area_of(operation), run.contract.requirements
    try:
        if operation.feature and not run.profile.declares(operation.feature):
            raise NotTested(Reason.FEATURE_NOT_DECLARED, f"the target does not declare {operation.feature}")
        run.require_allowed(operation.method, operation.label)
        require_in(run.profile, area.keeper)
        _require_there(run, operation)
        absent = run.traces.absent(operation) if run.traces else None
        if absent:
            if any(other.alias_of == operation.id for other in run.validator.operations):
                # Requirements older than this name are left to the older name, which the target may have.
                results.settle(name for name in results.declared if known[name].introduced is None)
            raise Unmet(Reason.VERSION, absent)
        made = _made_unless_gone(run, operation, area, place_for(run, operation, aside=aside))
        try:
            yield made
        finally:
            made.put_back()
    finally:
        # Others may have shown what all operations verify together.
        results.settle(name for name in results.declared if known[name].area != operation.area)


def _made_unless_gone(run: Run, operation: Operation, area: Area, place: Place) -> Arranged:
    """Make the call right; if the version is unknown and the target has removed the operation, nothing is owed."""
    try:
        return _made(run, operation, area, place)
    except Unmet as unmet:
        if run.traces is None or not run.traces.is_gone(operation):
            raise
        results, detail = current_test().results, f"the target refuses {operation.label}, as a newer version does"
        for name in sorted(results.declared):  # also what all operations show together: no other one may be claimed
            results.open_question(name, Outcome.NOT_APPLICABLE, Reason.VERSION, detail)
        raise Unmet(Reason.VERSION, detail) from unmet


def _made(run: Run, operation: Operation, area: Area, place: Place) -> Arranged:
    """Make the call right as the area's keeper or, if the keeper is refused, as another actor who must be served.

    Otherwise a target that refuses the keeper would hide exactly this fault.
    """
    request_example = area.request_examples[operation.id]
    unmet: Unmet | None = None
    for actor in run.profile.known_actors(area.keeper, *operation.served):
        keeper = area.stand_in(Caller(run, actor), place)
        made = Arranged(operation, place, keeper, Prepared(operation, {}), area)
        try:
            if not (operation.is_read and request_example.changes_nothing_before):
                made.remember()
            made.make_right()
        except Unmet as error:
            unmet = unmet or error
            with suppress(Unmet):
                made.put_back()
        else:
            return made
    raise unmet or NotTested(Reason.PREREQUISITE_MISSING, f"the profile has nobody who may use {operation.label}")


def _require_there(run: Run, operation: Operation) -> None:
    """Raise OperationAbsent when an operation does not exist; leave to the newer name what that one shows as well."""
    try:
        run.absences.require_operation(operation.id)
    except OperationAbsent:
        if operation.alias_of is not None:
            results, answers = current_test().results, [response.requirement for response in operation.responses]
            results.settle(results.declared - {*operation.served.values(), *operation.refused.values(), *answers})
        raise
