"""Sends drawn cases, many at once, judges each, and reduces many large failing calls to one small one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.fuzzing.case_adapter import CaseAdapter
from conformance.fuzzing.cases import DrawnCase
from conformance.http.exchange import Exchange, Trouble, query_text
from conformance.http.transport import NotSentError
from conformance.results.grouping import grouped
from conformance.results.record import Outcome, Reason
from conformance.results.text import one_line
from conformance.suite.arrange.places import owner_in
from conformance.suite.context import Unmet, Violation, current_run, current_test
from conformance.suite.evidence import evidence_of
from conformance.suite.expectations import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.http.exchange import Call
    from conformance.suite.arrange import Arranged, Prepared, ReadBack
    from conformance.suite.expectations import Caller


def must_be_stored(arranged: Arranged, call: Prepared, answer: Answer) -> None:
    """Read the changed resource as the area's keeper, and expect the sent values in it.

    A write that shows nowhere is skipped, and so is a switch that cannot be on beside another one. Raise Violation when
    the resource has other values, Unmet when it cannot be read or is locked.
    """
    read_back = arranged.request_example.read_back
    if read_back is None or not isinstance(call.body, dict) or not shown_by(read_back, call.body):
        return
    path = read_back.path(call, answer)
    for sent, shown in read_back.lists.items():
        if sent in call.body:
            arranged.keeper.list(path).must_contain(**{shown: call.body[sent]})
    if read_back.shows.keys() & call.body.keys():
        found = arranged.keeper.get(path).given_served()
        held = found.json if isinstance(found.json, dict) else {}
        try:
            found.must_be_an(dict).must_hold(**read_back.owed(call.body, held))
        except Violation as violation:
            if read_back.is_held(arranged.keeper, arranged.place):
                raise Unmet(Reason.PRECONDITION, f"what {path} shows is locked by something else") from violation
            raise Violation(violation.expected, violation.actual, answer.exchange, found.exchange) from violation


def shown_by(read_back: ReadBack, body: dict[str, Any]) -> bool:
    """Tell whether anything in a sent body shows when the resource is read."""
    return bool(body.keys() & {*read_back.shows, *read_back.lists})


# -- sending and judging -----------------------------------------------------------------------------------------------


_READ_BACK_AT_MOST = 24
#: Number of correct, or possibly acceptable, calls of an operation whose product no operation removes.
_FOR_GOOD_AT_MOST, _ODD_AT_MOST = 1, 6
#: How often a failing call is sent again to make it smaller; fewer if what each call adds cannot be removed.
_TRIES_TO_SHRINK, _TRIES_FOR_GOOD = 40, 4
_GROWN_LONG = 50  # entries
#: How often a call that broke the connection is sent again.
_BREAKS = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """One case whose answer no reading of the text allows."""

    case: DrawnCase
    requirement: str
    expected: str
    actual: str
    exchanges: tuple[Exchange, ...]
    place: str = ""
    """JSON pointer into the body of the answer."""
    may_be_load: bool = False
    """Whether concurrent calls may be the cause, so that only a call alone can show it."""

    @property
    def group(self) -> tuple[str, str, str]:
        """The key of equal failures: requirement, place without positions in lists, what was expected."""
        return (self.requirement, re.sub(r"/\d+", "/*", self.place), self.expected)

    @property
    def size(self) -> tuple[int, str]:
        """The size of the call; of two failures the smaller one is shown."""
        wire = repr(self.case.wire)
        return (len(wire), wire)


@dataclass(frozen=True, slots=True)
class Tally:
    """The results of the cases of one operation."""

    sent: int = 0
    served: int = 0
    """Correct calls that were served."""
    declined: int = 0
    """Correct calls that were refused; the schema does not contain every rule."""
    refused: int = 0
    """Calls that must be refused, and were."""
    unanswered: int = 0
    failures: tuple[Failure, ...] = ()
    """One failure for each group, as small as possible."""
    failing: tuple[DrawnCase, ...] = ()
    """Every drawn case that showed a failure, as it was drawn."""

    @property
    def why_nothing_was_served(self) -> str:
        """Say what happened to the correct calls instead."""
        unheard = f", and {self.unanswered} of {self.sent} calls got no answer" if self.unanswered else ""
        return f"no correct call was served: {self.declined} were refused{unheard}"


@dataclass
class _Sending:
    arranged: Arranged
    caller: Caller
    adapter: CaseAdapter
    breaks_always: bool = False
    """Whether correct calls break the service as well: then no wrong value is to blame."""

    def all(self, cases: Sequence[DrawnCase]) -> list[tuple[DrawnCase, Exchange]]:
        """Send cases, several at once, and return them with their answers in the order of the cases."""
        if not cases:
            return []
        calls = [case.call(self.caller.actor) for case in cases]
        test = current_test()
        with test.unjudged():
            exchanges = test.run.each(self.exchange, calls)
        return list(zip(cases, exchanges, strict=True))

    def exchange(self, call: Call) -> Exchange:
        """Send one call and follow redirects: from an older name to the newer one, or to the place of a file."""
        client, operation = current_run().client, self.arranged.operation
        try:
            exchange = client.perform(call)
        except NotSentError as error:
            return Exchange.unanswered(call, str(error), 0.0, Trouble.NOT_SENT)
        leads_on = operation.alias_of or operation.response_to(exchange.status or 0)
        return client.follow(exchange) if leads_on else exchange

    def own(self, cases: Iterable[DrawnCase]) -> list[DrawnCase]:
        """Leave out the calls that may reach things that are not the run's own, and count them.

        If each served call would permanently add to a list that is long already, leave out those that may be served,
        except the first call.
        """
        run, found, operation = current_run(), list(cases), self.arranged.operation
        if operation.is_read:
            return found
        own = [case for case in found if not run.ownership.problem(case.call(self.caller.actor), is_drawn=True)]
        if run.contract.restoring.adds_for_good(operation.id) and len(self.arranged.state() or ()) >= _GROWN_LONG:
            own = [case for place, case in enumerate(own) if place == 0 or self.adapter.must_be_refused(case)]
        run.learnt.held_back += len(found) - len(own)
        return own

    def alone(self, case: DrawnCase) -> list[Failure]:
        """Send one case while nothing else is sent; return what is wrong with its answer and with what it stored."""
        test = current_test()
        with test.unjudged(), test.run.client.alone():
            exchange = self.exchange(case.call(self.caller.actor))
        failures = list(self.judged(case, exchange))
        return failures + self.not_stored(case, exchange)

    def again(self, case: DrawnCase) -> DrawnCase:
        """Arrange again, and return a case with the path values of the new arrangement."""
        self.arranged.again()
        return self.adapter.rebind(self.adapter.diagnose(case), self.arranged.call.path_values)

    # -- judging -------------------------------------------------------------------------------------------------------

    def judged(self, case: DrawnCase, exchange: Exchange) -> Iterator[Failure]:
        """Yield everything in one answer that no reading of the text allows."""
        status, operation = exchange.status, self.arranged.operation
        if status is None or self._says_nothing(case, status):
            return
        owed = self.adapter.must_be_refused(case)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            expected = "no server error"
            for name in [self.success] if self.breaks_always else self.blamed(case):
                yield Failure(case, name, expected, f"status {status}", (exchange,), may_be_load=True)
        elif owed and not exchange.is_refusal:
            for name in owed:
                yield Failure(case, name, "a refusal (any 4xx)", f"status {status}", (exchange,))
        elif operation.response_to(status) is None and not (exchange.is_success and self._may_be_there):
            documented = ", ".join(response.status for response in operation.responses)
            yield Failure(case, self.success, f"a documented answer: {documented}", f"status {status}", (exchange,))
        for finding in current_run().validator.findings(exchange):
            if not finding.holds:
                yield Failure(case, finding.requirement, finding.expected, finding.actual, (exchange,), finding.place)

    def blamed(self, case: DrawnCase) -> list[str]:
        """Return the requirement that a case violates if it makes the service break."""
        general = self.success if case.is_positive else "errors.refusal.is-client-error"
        return self.adapter.must_be_refused(case)[:1] or [self.adapter.requirement_of(case) or general]

    def breaks_each_time(self, case: DrawnCase) -> bool:
        """Tell whether a case breaks the connection each time that it is sent alone, while reads are answered."""
        for _ in range(_BREAKS):
            with current_test().unjudged(), current_run().client.alone():
                exchange = self.exchange(case.call(self.caller.actor))
            if exchange.trouble is not Trouble.BROKEN:
                return False
            case = self.again(case)  # whose reads get answers, or end the test
        return True

    def _says_nothing(self, case: DrawnCase, status: int) -> bool:
        """Tell whether an answer is not one of this operation."""
        if self.arranged.operation.alias_of and 300 <= status < 400:  # noqa: PLR2004 - HTTP's own numbers
            return True  # an older name may redirect to the newer one, which is judged by itself
        # A value that is no number may match no route at all.
        is_astray = status == HTTPStatus.NOT_IMPLEMENTED and any(mutation.place == "path" for mutation in case.mutated)
        return is_astray or status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def _may_be_there(self) -> bool:
        """Whether a case may add to a list what another one has added: which success answers that is not stated."""
        read_back = self.arranged.request_example.read_back
        return read_back is not None and bool(read_back.lists)

    def not_stored(self, case: DrawnCase, exchange: Exchange) -> list[Failure]:
        """Read back a served, correct write and return what is missing."""
        read_back = self.arranged.request_example.read_back
        if read_back is None or not case.is_positive or not exchange.is_success or not isinstance(case.body, dict):
            return []
        try:
            # Read by number, whichever name the write used.
            by_number = replace(case, path_values=tuple(map(self._by_number, case.path_values)))
            must_be_stored(self.arranged, by_number.prepared(self.arranged.operation), Answer(exchange))
        except Violation as violation:
            shown = violation.exchanges or (exchange,)
            name = read_back.requirement(case.body)
            return [Failure(case, name, violation.expected, violation.actual, shown)]
        except Unmet:
            return []
        if shown_by(read_back, case.body):
            current_test().results.passed(read_back.requirement(case.body))
        return []

    def _by_number(self, pair: tuple[str, str]) -> tuple[str, str]:
        name = pair[0]
        return (name, str(self.arranged.call.path_values[name])) if name == "id" else pair

    @property
    def success(self) -> str:
        """The requirement of the operation's documented success."""
        return self.arranged.operation.success.requirement or "conventions.path-prefix"


def run_cases(arranged: Arranged, caller: Caller, cases: Iterable[DrawnCase]) -> Tally:
    """Send the cases of an arranged operation as one actor and record what their answers show.

    First the calls that must be refused, with the state read before and after; then other wrong calls, which fail only
    with a server error or an undocumented answer; then correct calls, some of them one by one with the resource read
    back. Failures of the same kind are combined and shown by the smallest call that still fails.
    """
    owner = owner_in(arranged.place.profile, arranged.call.path)
    adapter = CaseAdapter(arranged.operation, str(owner["path"]) if owner else None)
    sending = _Sending(arranged, caller, adapter)
    fitted = sending.own(adapter.fitted([_control(arranged), *cases], arranged.place, arranged.call.path_values))
    owed = [case for case in fitted if adapter.must_be_refused(case)]
    wrong = [case for case in fitted if not case.is_positive and not adapter.must_be_refused(case)]
    right = [case for case in fitted if case.is_positive]
    # What holds by number holds by path. The arranged call, sent first, shows whether the path is served.
    right = [adapter.by_path(case) if place % 2 else case for place, case in enumerate(right)]
    if arranged.request_example.stays:
        right, wrong = right[:_FOR_GOOD_AT_MOST], wrong[:_ODD_AT_MOST]
    answered = _send_what_must_be_refused(sending, owed)
    if owed and not _all_refused(answered):
        arranged.again()
    tried = sending.all([_moved(sending, case) for case in wrong])
    if wrong and not _all_refused(tried):
        arranged.again()
    answered += tried
    served, failures = _send_correct_ones(sending, right)
    sending.breaks_always = bool(served) and all(
        (exchange.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR for _, exchange in served
    )
    answered += served
    failures += [failure for case, exchange in answered for failure in sending.judged(case, exchange)]
    tally = _counted(sending, answered, len(owed))
    shown = tuple(_recorded(sending, failures))
    _record_what_held(sending, answered, tally)
    _leave_open_what_breaks(sending, answered, tally)
    return replace(tally, failures=shown, failing=tuple(_origins(failures, shown)))


def _control(arranged: Arranged) -> DrawnCase:
    """Return the arranged call itself as a case: it shows that the caller of the other cases is served."""
    call = arranged.call
    return DrawnCase(
        operation=call.operation.id,
        method=call.operation.method,
        template=call.operation.path,
        path_values=tuple((name, str(value)) for name, value in call.path_values.items()),
        query=tuple((name, query_text(value)) for name, value in call.query.items() if value is not None),
        body=call.body,
        description="the arranged call",
    )


def _all_refused(answered: list[tuple[DrawnCase, Exchange]]) -> bool:
    """Tell whether nothing was served, so that the arrangement is unchanged."""
    return all(exchange.is_refusal for _, exchange in answered)


def _moved(sending: _Sending, case: DrawnCase) -> DrawnCase:
    return sending.adapter.rebind(case, sending.arranged.call.path_values)


def _send_what_must_be_refused(sending: _Sending, cases: list[DrawnCase]) -> list[tuple[DrawnCase, Exchange]]:
    """Send what must be refused; if all of it was, the state must be the same as before."""
    before = sending.arranged.state() if cases else None
    answered = sending.all(cases)
    if cases and _all_refused(answered):
        after = sending.arranged.state()
        test = current_test()
        if after != before:
            violation = Violation.of_change("the state", before, after, answered[-1][1])
            test.fail_in_passing("errors.refusal.changes-nothing", violation)
            sending.arranged.again()
    return answered


def _send_correct_ones(
    sending: _Sending, cases: list[DrawnCase]
) -> tuple[list[tuple[DrawnCase, Exchange]], list[Failure]]:
    """Send correct calls: some one by one, read back, and the others at once; also return lost values."""
    cases = [_moved(sending, case) for case in cases]
    read_back = sending.arranged.request_example.read_back
    one_by_one = cases[:_READ_BACK_AT_MOST] if read_back else []
    answered: list[tuple[DrawnCase, Exchange]] = []
    failures: list[Failure] = []
    for case in one_by_one:
        found = sending.all([case])
        answered += found
        failures += sending.not_stored(case, found[0][1])
    return answered + sending.all(cases[len(one_by_one) :]), failures


def _counted(sending: _Sending, answered: list[tuple[DrawnCase, Exchange]], owed: int) -> Tally:
    right = [exchange for case, exchange in answered if case.is_positive]
    return Tally(
        sent=len(answered),
        served=sum(exchange.is_success for exchange in right),
        declined=sum(exchange.is_refusal for exchange in right),
        refused=sum(exchange.is_refusal for case, exchange in answered[:owed] if sending.adapter.must_be_refused(case)),
        unanswered=sum(exchange.status in (None, HTTPStatus.TOO_MANY_REQUESTS) for _, exchange in answered),
    )


def _record_what_held(sending: _Sending, answered: list[tuple[DrawnCase, Exchange]], tally: Tally) -> None:
    """Record every requirement that an answer met; refusals count only beside a correct call that was served."""
    test = current_test()
    for case, exchange in answered:
        for finding in test.run.validator.findings(exchange):
            if finding.holds:
                test.results.passed(finding.requirement)
        if tally.served and exchange.is_refusal:
            for name in sending.adapter.must_be_refused(case):
                test.results.passed(name)


def _leave_open_what_breaks(sending: _Sending, answered: list[tuple[DrawnCase, Exchange]], tally: Tally) -> None:
    """Leave open what a case belongs to if it alone breaks the connection: a service may end so where it crashes.

    So may something in front of the service, and so it is no failure.
    """
    broken = [case for case, exchange in answered if exchange.trouble is Trouble.BROKEN]
    for case in broken[:1] if tally.served else []:
        if sending.breaks_each_time(case):
            call = case.call(sending.caller.actor)
            sent = one_line(f"{call.method} {call.target}", 200)
            detail = (
                f"{sent} broke the connection {_BREAKS + 1} times, and other calls beside it did not "
                f"({case.description}): see in its log whether the service crashes there, or a gateway cuts it off"
            )
            for name in sending.blamed(case):
                current_test().results.open_question(name, Outcome.INCONCLUSIVE, Reason.NO_ANSWER, detail)


# -- groups ------------------------------------------------------------------------------------------------------------


def in_groups(failures: Iterable[Failure]) -> dict[tuple[str, str, str], list[Failure]]:
    """Return failures by group, with the smallest call of each group first, in an order that does not vary."""
    groups = grouped((failure.group, failure) for failure in failures)
    return {key: sorted(groups[key], key=lambda failure: failure.size) for key in sorted(groups)}


def _recorded(sending: _Sending, failures: list[Failure]) -> Iterator[Failure]:
    """Record one failure for each group, made as small as possible, and yield it."""
    test = current_test()
    for group in in_groups(failures).values():
        first = Violation(group[0].expected, group[0].actual, *group[0].exchanges)
        if not test.is_asked(group[0].requirement, first) or test.excused(group[0].requirement, first):
            continue
        tries = _TRIES_FOR_GOOD if sending.arranged.request_example.stays else _TRIES_TO_SHRINK
        smallest = shrunk(group[0], sending.alone, sending.again, tries)
        if smallest is None and group[0].may_be_load:
            detail = f"{group[0].actual} to one of many calls at once, and not again to the same call alone"
            test.results.open_question(group[0].requirement, Outcome.INCONCLUSIVE, Reason.PRECONDITION, detail)
            continue
        shown = smallest or group[0]
        count = f" ({len(group)} drawn cases show it)" if len(group) > 1 else ""
        violation = Violation(shown.expected, shown.actual + count, *shown.exchanges)
        test.history.forget()
        test.failed(shown.requirement, violation, shown.place or None)
        command = evidence_of(shown.exchanges[0], test.run.client).curl
        test.fail_softly(f"{shown.requirement}: {violation} at {shown.place or 'the answer'}: {command}")
        yield shown


def _origins(failures: Iterable[Failure], shown: Iterable[Failure]) -> Iterator[DrawnCase]:
    """Yield the original drawn cases of the failures that were shown, each once."""
    groups = {failure.group for failure in shown}
    found = {failure.case.wire: failure.case.origin for failure in failures if failure.group in groups}
    return filter(None, found.values())


def shrunk(failure: Failure, send: Any, again: Any, tries: int = _TRIES_TO_SHRINK) -> Failure | None:
    """Remove one part after another from a failing call, as long as it fails in the same way.

    `send` sends a case alone and returns its failures, `again` arranges again and returns the case for the new
    arrangement; at most `tries` smaller calls are sent. Return the smallest failure seen; None when the call does not
    fail again.
    """

    def same(case: DrawnCase) -> Failure | None:
        found: list[Failure] = send(case)
        return next((entry for entry in found if entry.group == failure.group), None)

    current = same(failure.case) or same(again(failure.case))
    is_smaller = current is not None
    while current is not None and is_smaller:
        is_smaller = False
        for candidate in current.case.smaller():
            tries -= 1
            if tries < 0:
                return current
            fitted = again(candidate)
            found = None if fitted.is_positive and fitted.mutated else same(fitted)
            if found is not None:
                current, is_smaller = found, True
                break
    return current
