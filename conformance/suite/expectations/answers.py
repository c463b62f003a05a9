"""The answer to a call, and what may be expected of it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self

from conformance.http.bodies import ABSENT, is_same, object_in, parsed
from conformance.http.redaction import beginning
from conformance.results.record import Reason
from conformance.results.text import as_json
from conformance.suite.context import Unmet, Violation, current_run, current_test
from conformance.suite.expectations.words import looked

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.contract import Operation
    from conformance.http.exchange import Exchange

_SHOWN_BODY, _LONGEST_BODY = 200, 4000
#: The text sets no bounds to this number: if a larger one is refused, the call is tried with the fewest.
_NUMBER = "approvals_required"
_FEWEST = 1
#: Statuses that refuse a value which a service does not accept. Some services answer 403 or 404 to all they refuse.
_REFUSED = frozenset({400, 403, 404, 409, 422})
_IN_RULES = "/approval_rules"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one call."""

    exchange: Exchange

    @property
    def status(self) -> int:
        """The status code; the check is inconclusive when there was no answer or the target was too busy."""
        status = self.exchange.status
        if status is None:
            on_silence = current_test().on_silence
            if on_silence is not None:
                on_silence()
            raise Unmet(Reason.NO_ANSWER, f"{self._what()}: {self.exchange.problem}")
        if status == HTTPStatus.TOO_MANY_REQUESTS:  # backpressure, which is never a verdict
            raise Unmet(Reason.NO_ANSWER, f"{self._what()}: the target kept answering 429, too many requests")
        return status

    @property
    def was_throttled(self) -> bool:
        """Whether the target answered 429 before this answer."""
        return self.exchange.throttled

    @property
    def is_served(self) -> bool:
        """Whether the call was served, with any 2xx."""
        return self.exchange.is_success

    @property
    def shows_json(self) -> bool:
        """Whether the call was served with an array, or with an object that has anything in it.

        A half-built service may serve nothing, `null`, `{}` or a page to every call: then only the operation is wrong,
        and not what holds for all operations, such as the names of projects.
        """
        found = self.exchange.served_json
        return isinstance(found, list) or (isinstance(found, dict) and bool(found))

    @property
    def form(self) -> str:
        """The form of the body in a few words; its wording is not checked."""
        try:
            body = parsed(self.exchange.body or "")
        except (ValueError, RecursionError):
            return "no JSON" if self.exchange.body else "empty"
        if isinstance(body, dict):
            return f"an object with {', '.join(sorted(body)) or 'nothing'}"
        return "an array" if isinstance(body, list) else "a single value"

    @property
    def json(self) -> Any:
        """The body as JSON; a violation when it is no JSON, or when the status says that nobody was served."""
        looked()
        if not self.is_served:
            raise Violation("any 2xx", f"status {self.status}", self.exchange)
        try:
            return current_run().validator.meant(self.exchange)
        except (ValueError, RecursionError):
            raise Violation("a JSON body", self._shown(), self.exchange) from None

    @property
    def json_if_any(self) -> Any:
        """The body as JSON; None when nobody was served, or when it is no JSON."""
        return current_run().validator.meant_if_served(self.exchange)

    def must_be(self, *statuses: int) -> Self:
        """Expect one of these status codes."""
        looked()
        if self.status not in statuses:
            self.given_there()
            raise Violation(f"status {' or '.join(map(str, statuses))}", f"status {self.status}", self.exchange)
        return self

    def must_be_served(self) -> Self:
        """Expect any 2xx."""
        looked()
        if not self.is_served:
            self.given_there()
            raise Violation("any 2xx", f"status {self.status}", self.exchange)
        return self

    def must_be_refused(self, *, beside: Answer | None) -> Self:
        """Expect any 4xx. It proves something only if the same call by the right actor is served.

        For a caller without a valid token, a redirect to a page that asks for one is a refusal too, and so is a page
        that any path gets. Pass `beside=None` only if the call cannot be right for anybody, such as one for a thing
        that does not exist.

        If a wrong call took effect, it may be the reason why the right one failed, for example when both remove one
        thing. Then this fails if the operation has served the right actor earlier in the run, because then that call
        was no mistake.
        """
        looked()
        self._given_implemented()
        spoiled = self.is_served and beside is not None and beside.exchange.is_refusal
        if beside is not None and spoiled and current_run().absences.has_served(beside.exchange):
            raise Violation("a refusal (any 4xx)", f"status {self.status}", self.exchange)
        if beside is not None and not beside.is_served:
            beside.given_there()
            raise beside.unserved(
                f"the same call was not served for {beside.exchange.call.caller} either "
                f"({beside.exchange.problem or f'status {beside.exchange.status}'}), so a refusal proves nothing"
            )
        is_nobody = self.exchange.call.actor not in current_run().profile.actors.values()
        is_led_away = self.exchange.is_redirect or self.exchange.is_as_anywhere
        if not (self.exchange.is_refusal or (is_nobody and is_led_away)):
            raise Violation("a refusal (any 4xx)", f"status {self.status}", self.exchange)
        return self

    @property
    def is_broken(self) -> bool:
        """Whether the status is a server error."""
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    def must_not_break(self) -> Self:
        """Expect any status except a server error."""
        looked()
        self._given_implemented()
        if self.is_broken:
            raise Violation("no server error", f"status {self.status}", self.exchange)
        return self

    def _given_implemented(self) -> None:
        """Go on unless the operation says that it is not implemented: then it is absent, and no wrong refusal."""
        if self.exchange.status == HTTPStatus.NOT_IMPLEMENTED:
            current_run().absences.require_answer(self.exchange)

    def without_body(self) -> Self:
        """Expect an empty body."""
        looked()
        if self.status and self.exchange.body:
            raise Violation("no body", f"{len(self.exchange.body)} bytes", self.exchange)
        return self

    def must_hold(self, **values: Any) -> Self:
        """Expect a JSON object with these values."""
        body = self.json
        if not isinstance(body, dict):
            raise Violation("a JSON object", self._shown(), self.exchange)
        for name, wanted in values.items():
            found = body.get(name, ABSENT)
            if not is_same(found, wanted):
                shown = "nothing" if found is ABSENT else as_json(found)
                raise Violation(f"{name} = {as_json(wanted)}", f"{name} = {shown}", self.exchange)
        return self

    def must_be_an(self, kind: type[list[Any] | dict[Any, Any]]) -> Self:
        """Expect a JSON array (`list`) or object (`dict`)."""
        if not isinstance(self.json, kind):
            raise Violation(f"a JSON {'array' if kind is list else 'object'}", self._shown(), self.exchange)
        return self

    def given_served(self) -> Self:
        """Go on only if the call was served; the call is a step of the story here, not what is verified."""
        if not self.exchange.is_success:
            self.given_there()
            # No state excuses that a right call breaks the service.
            self._fail_success_if(lambda _: self.exchange.is_broken)
            raise self.unserved(f"{self._what()} was not served: status {self.status}")
        self._fail_success_if(lambda operation: not operation.response_to(self.status))
        return self

    def given_json(self) -> Any:
        """Return the JSON of a served answer; inconclusive when it was not served, or is no JSON."""
        try:
            return current_run().validator.meant(self.given_served().exchange)
        except (ValueError, RecursionError):
            raise Unmet(Reason.PRECONDITION, f"GET {self.exchange.call.path} did not answer JSON") from None

    def _fail_success_if(self, is_wrong: Callable[[Operation], bool]) -> None:
        """Fail the requirement about the operation's success if this answer is a wrong one; the story goes on."""
        call = self.exchange.call
        operation = current_run().validator.operation_of(call.method, call.path)
        if operation is None or operation.success.requirement is None or not is_wrong(operation):
            return
        test, requirement = current_test(), operation.success.requirement
        violation = Violation(f"status {operation.success.status}", f"status {self.status}", self.exchange)
        if test.history.unanswered_write is None and not test.excused(requirement, violation):
            test.fail_in_passing(requirement, violation)

    def unserved(self, detail: str) -> Unmet:
        """Return the reason why a test cannot go on: the version, if the target may be older than the operation."""
        run, call = current_run(), self.exchange.call
        operation = run.validator.operation_of(call.method, call.path) if run.traces else None
        older = run.traces.absent(operation) if run.traces and operation and self.exchange.is_refusal else None
        return Unmet(Reason.VERSION, older) if older else Unmet(Reason.PRECONDITION, detail)

    def given_there(self) -> None:
        """Go on after a right but refused call only if serving it is owed: nothing left open explains the refusal."""
        _require_number_to_be_taken(self.exchange)
        current_run().absences.require_answer(self.exchange)

    def _what(self) -> str:
        return f"{self.exchange.call.method} {self.exchange.call.target} by {self.exchange.call.caller}"

    def _shown(self) -> str:
        text = beginning(self.exchange.body[:_LONGEST_BODY].decode("utf-8", "replace"), _SHOWN_BODY)
        return text or "no body"


def _require_number_to_be_taken(exchange: Exchange) -> None:
    """Raise Unmet when a rule was refused only for its number of approvals, because the text sets no bounds to that."""
    call, wanted = exchange.call, object_in(exchange.call.body)
    number = wanted.get(_NUMBER)
    if (
        exchange.status not in _REFUSED
        or not isinstance(number, int)
        or number <= _FEWEST
        or _IN_RULES not in call.path
    ):
        return
    with_fewer = _sent_again(exchange, {**wanted, _NUMBER: _FEWEST})
    # If it is refused only now and then, the number is not the reason.
    if with_fewer.is_success and _sent_again(exchange, wanted).status in _REFUSED:
        raise Unmet(Reason.PRECONDITION, f"a rule for {number} approvals is refused, and one for 1 is not: left open")


def _sent_again(exchange: Exchange, body: dict[str, Any]) -> Exchange:
    """Send a call with another body, and remove what it makes."""
    client, call = current_run().client, exchange.call
    if call.method == "POST" and isinstance(body.get("name"), str):
        # A service may refuse the name of a rule that there was before.
        body = {**body, "name": f"conformance-{token_hex(4)}"}
    answer = client.send(call.actor, call.method, call.path, json_body=body)
    made = answer.served_object.get("id")
    if call.method == "POST" and made is not None:
        client.send(call.actor, "DELETE", f"{call.path}/{made}")
    return answer
