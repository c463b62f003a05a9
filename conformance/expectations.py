"""
The vocabulary of the suite: who calls, what is expected of the answer, and which requirement that verifies.

Tests speak only this. What cannot be seen is inconclusive by construction: a refusal proves nothing unless the same
call by the right actor worked, an absence proves nothing unless the thing was there before, a loop over nothing
verifies nothing.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from conformance.bookkeeping import MisuseError, Run, TestBook, Unmet, Violation, current_run
from conformance.record import ItemState, Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from conformance.client import Exchange, Query
    from conformance.contract import Version
    from conformance.target import Actor, Fixture

_ABSENT: Any = object()
_PAGE_LENGTH = 20
_LONGEST_PAGE = 100
_POLL_SECONDS = 0.05


class Path(str):
    """A path below /api/v4; `/` goes one step down: `Path("/projects/1") / "approvals"`."""

    __slots__ = ()

    def __truediv__(self, part: str | int) -> Path:
        """Go one or more steps down."""
        return Path(f"{self}/{part}")


def project_path(project: Fixture) -> Path:
    """Return the path of a project by its number."""
    return Path(f"/projects/{project.id}")


def group_path(group: Fixture) -> Path:
    """Return the path of a group by its number."""
    return Path(f"/groups/{group.id}")


@contextmanager
def verifies(*requirements: str, go_on: bool = False) -> Iterator[None]:
    """
    Hold the expectations inside against requirements.

    A violation fails them and ends the test, unless `go_on` says that the rest of the story does not depend on it.
    What could not be seen leaves them inconclusive. A block without any expectation is a mistake of the suite.
    """
    run = current_run()
    book = _book_that_declares(run, requirements)
    before = book.expectations
    try:
        yield
    except Violation as violation:
        for requirement in requirements:
            run.failed(requirement, violation)
        if not go_on:
            raise
        book.soft_failures.append(f"{', '.join(requirements)}: {violation}")
    except Unmet as unmet:
        for requirement in requirements:
            run.open_question(requirement, Outcome.INCONCLUSIVE, unmet.reason, unmet.detail)
        if not go_on:
            raise
    else:
        if book.expectations == before:
            raise MisuseError(f"{book.test} looks at nothing while verifying {', '.join(requirements)}.")
        for requirement in requirements:
            run.passed(requirement)


def _book_that_declares(run: Run, requirements: tuple[str, ...]) -> TestBook:
    if run.book is None:
        raise MisuseError("verifies() outside a test.")
    undeclared = set(requirements) - run.book.declared
    if undeclared:
        raise MisuseError(f"{run.book.test} verifies {', '.join(sorted(undeclared))} without declaring it.")
    return run.book


def observe(requirement: str, what: str) -> None:
    """Record what the target chose where the specification is silent; never judged."""
    current_run().observed(requirement, what)


def sees(item: str, state: ItemState, detail: str) -> None:
    """Record how the target stands to an item of the version table, by the item's id; never judged by itself."""
    current_run().saw_item(item, state, detail)


def does_not_apply(requirement: str, reason: Reason, detail: str) -> None:
    """Record that a requirement turns out not to concern this target, which only a call could show."""
    current_run().open_question(requirement, Outcome.NOT_APPLICABLE, reason, detail)


def must(holds: bool, expected: str, actual: str, *exchanges: Exchange) -> None:  # noqa: FBT001 - reads as a sentence
    """Expect something that the other words do not say."""
    _look()
    if not holds:
        raise Violation(expected, actual, *exchanges)


def given(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Go on only if a precondition holds; what follows is inconclusive otherwise, and says why."""
    if not holds:
        raise Unmet(Reason.PRECONDITION, otherwise)


def _look() -> None:
    book = current_run().book
    if book is not None:
        book.expectations += 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from one call."""

    exchange: Exchange

    @property
    def status(self) -> int:
        """The status code; the check is inconclusive when no answer came or the target was too busy."""
        status = self.exchange.status
        if status is None:
            raise Unmet(Reason.NO_ANSWER, f"{self._what()}: {self.exchange.problem}")
        if status == 429:  # noqa: PLR2004 - back-pressure, never a verdict
            raise Unmet(Reason.PRECONDITION, f"{self._what()}: the target kept answering 429, too many requests")
        if current_run().judge.is_gateway_error(self.exchange):
            raise Unmet(Reason.PRECONDITION, f"{self._what()}: the gateway behind the service answered {status}")
        return status

    @property
    def was_throttled(self) -> bool:
        """Whether the target answered 429 before it answered this."""
        return self.exchange.throttled

    @property
    def is_served(self) -> bool:
        """Whether the call was served, with any 2xx."""
        return self.exchange.is_success

    @property
    def json(self) -> Any:
        """The body as JSON; a violation when it is none."""
        _look()
        try:
            return json.loads(self.exchange.body)
        except ValueError:
            raise Violation("a JSON body", self._shown(), self.exchange) from None

    def must_be(self, *statuses: int) -> Self:
        """Expect one of these status codes."""
        _look()
        if self.status not in statuses:
            raise Violation(f"status {' or '.join(map(str, statuses))}", f"status {self.status}", self.exchange)
        return self

    def must_be_served(self) -> Self:
        """Expect any 2xx."""
        _look()
        if not 200 <= self.status < 300:  # noqa: PLR2004 - HTTP's own numbers
            raise Violation("any 2xx", f"status {self.status}", self.exchange)
        return self

    def must_be_refused(self, *, beside: Answer | None) -> Self:
        """
        Expect any 4xx, which proves something only beside the same call by the right actor, served.

        Without a token a redirect, to a page that asks for one, is a refusal too. Pass `beside=None` only where the
        call cannot be right for anybody, such as one for a thing that does not exist.
        """
        _look()
        if beside is not None and not beside.is_served:
            raise Unmet(
                Reason.PRECONDITION,
                f"the same call was not served for {beside.actor} either (status {beside.exchange.status}), "
                "so a refusal proves nothing",
            )
        anonymous = self.exchange.call.actor is None
        redirected = anonymous and 300 <= self.status < 400  # noqa: PLR2004 - HTTP's own numbers
        if not (400 <= self.status < 500 or redirected):  # noqa: PLR2004
            raise Violation("a refusal (any 4xx)", f"status {self.status}", self.exchange)
        return self

    def must_not_break(self) -> Self:
        """Expect anything but a server error."""
        _look()
        if self.status >= 500:  # noqa: PLR2004 - HTTP's own number
            raise Violation("no server error", f"status {self.status}", self.exchange)
        return self

    def without_body(self) -> Self:
        """Expect not a byte of body."""
        _look()
        if self.exchange.body:
            raise Violation("no body", f"{len(self.exchange.body)} bytes", self.exchange)
        return self

    def must_hold(self, **values: Any) -> Self:
        """Expect a JSON object with these values."""
        body = self.json
        if not isinstance(body, dict):
            raise Violation("a JSON object", self._shown(), self.exchange)
        for name, wanted in values.items():
            found = body.get(name, _ABSENT)
            if found is _ABSENT or found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
                shown = "nothing" if found is _ABSENT else json.dumps(found)
                raise Violation(f"{name} = {json.dumps(wanted)}", f"{name} = {shown}", self.exchange)
        return self

    def must_be_an(self, kind: type[list[Any] | dict[Any, Any]]) -> Self:
        """Expect a JSON array (`list`) or object (`dict`)."""
        if not isinstance(self.json, kind):
            raise Violation(f"a JSON {'array' if kind is list else 'object'}", self._shown(), self.exchange)
        return self

    def given_served(self) -> Self:
        """Go on only if the call was served; it is a step of the story here, not what is verified."""
        if not self.exchange.is_success:
            raise Unmet(Reason.PRECONDITION, f"{self._what()} was not served: status {self.exchange.status}")
        return self

    @property
    def actor(self) -> str:
        """Who called."""
        return self.exchange.call.actor.name if self.exchange.call.actor else "anonymous"

    def _what(self) -> str:
        return f"{self.exchange.call.method} {self.exchange.call.target} by {self.actor}"

    def _shown(self) -> str:
        text = self.exchange.body[:200].decode("utf-8", "replace")
        return text or "no body"


class Caller:
    """An actor who calls the target."""

    def __init__(self, run: Run, actor: Actor | None) -> None:
        """Speak for an actor; None calls without a token."""
        self._run = run
        self.actor = actor

    @property
    def name(self) -> str:
        """Who it is."""
        return self.actor.name if self.actor else "anonymous"

    @property
    def target_version(self) -> Version | None:
        """Version of the target; None when it is unknown."""
        return self._run.profile.version

    def target_declares(self, feature: str) -> bool:
        """Tell whether the target says that it has a feature."""
        return self._run.profile.declares(feature)

    def call(self, method: str, path: str, *, query: Query | None = None, **body: Any) -> Answer:
        """Send any call; `body` takes `json=` or `content=`, and `headers=`."""
        if "json" in body:
            body["json_body"] = body.pop("json")
        return Answer(self._run.client.send(self.actor, method, path, query=query, **body))

    def get(self, path: str, **query: str | int | bool | None) -> Answer:
        """Read."""
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Any = _ABSENT) -> Answer:
        """Create, or do something."""
        return self.call("POST", path, **_json(body))

    def put(self, path: str, body: Any = _ABSENT) -> Answer:
        """Update."""
        return self.call("PUT", path, **_json(body))

    def patch(self, path: str, body: Any = _ABSENT) -> Answer:
        """Update in part."""
        return self.call("PATCH", path, **_json(body))

    def delete(self, path: str) -> Answer:
        """Remove."""
        return self.call("DELETE", path)

    def read(self, path: str) -> Any:
        """Return what a resource holds; inconclusive when it cannot be read."""
        answer = self.get(path).given_served()
        try:
            return json.loads(answer.exchange.body)
        except ValueError:
            raise Unmet(Reason.PRECONDITION, f"GET {path} did not answer JSON") from None

    def download(self, path: str, **query: str | int | bool | None) -> Answer:
        """Fetch a file with its bytes as they were sent, by way of redirects; no other host sees the token."""
        client = self._run.client
        return Answer(client.follow(client.send(self.actor, "GET", path, query=query, raw=True)))

    def follow(self, answer: Answer) -> Answer:
        """Return what a redirect leads to, by the same method; what is no redirect is returned as it is."""
        return Answer(self._run.client.follow(answer.exchange))

    def list(self, path: str) -> Listing:
        """Read a paginated list by walking its pages."""
        return Listing(self, path)

    def whole_list(self, path: str) -> Listing:
        """Read a list that is not stated to be paginated, as it comes."""
        return WholeListing(self, path)


class Listing:
    """A paginated list, read by walking its pages from 1 until one is empty, refused, or brings nothing new."""

    def __init__(self, caller: Caller, path: str) -> None:
        """Read the list of a path as a caller."""
        self._caller = caller
        self._path = path
        self._run = current_run()
        self.entries = self._walk()

    def _walk(self) -> list[Any]:
        entries: list[Any] = []
        seen: set[str] = set()
        for page in range(1, self._run.profile.limits.page_walk + 1):
            answer = self._caller.get(self._path, page=page, per_page=_PAGE_LENGTH)
            if page > 1 and answer.exchange.is_refusal:
                return entries
            answer.given_served()
            # Twice on one page is twice in the list; again on a later page is a list that moved or takes no pages.
            fresh = [(entry, json.dumps(entry, sort_keys=True)) for entry in _array(answer)]
            entries += [entry for entry, text in fresh if text not in seen]
            if all(text in seen for _, text in fresh):
                return entries
            seen |= {text for _, text in fresh}
        raise Unmet(Reason.PRECONDITION, f"{self._path} has more than {page} pages")

    def ids(self) -> list[Any]:
        """Return the numbers of the entries, sorted."""
        return sorted((entry.get("id") for entry in self.entries if isinstance(entry, dict)), key=str)

    def having(self, **values: Any) -> list[Any]:
        """Return the entries that hold these values."""
        return [
            entry
            for entry in self.entries
            if isinstance(entry, dict) and all(entry.get(name) == wanted for name, wanted in values.items())
        ]

    def the(self, **values: Any) -> dict[str, Any]:
        """Return the one entry with these values; inconclusive when it does not come to be there to be looked at."""
        self._wait(lambda: bool(self.having(**values)))
        found = self.having(**values)
        if not found:
            raise Unmet(Reason.VACUOUS, f"{self._path} has no entry with {_listed(values)} to look at")
        return dict(found[0])

    def given_without(self, **values: Any) -> Self:
        """Go on only if there is, or comes to be, no entry with these values."""
        gone = self._wait(lambda: not self.having(**values))
        given(gone, f"{self._path} still has an entry with {_listed(values)}")
        return self

    def must_be_of(self, ids: Collection[Any]) -> Self:
        """Expect the entries with these numbers and no others."""
        self._settle(lambda: self.ids() == sorted(ids, key=str), f"the entries {sorted(ids, key=str)}")
        return self

    def must_contain(self, **values: Any) -> Self:
        """Expect an entry with these values, within the time the target has to settle."""
        self._settle(lambda: bool(self.having(**values)), f"an entry with {_listed(values)}")
        return self

    def must_contain_once(self, **values: Any) -> Self:
        """Expect exactly one entry with these values."""
        self._settle(lambda: len(self.having(**values)) == 1, f"one entry with {_listed(values)}")
        return self

    def must_not_contain(self, *, after: Listing, **values: Any) -> Self:
        """Expect no entry with these values; `after` must have had one, or its absence now proves nothing."""
        if not after.having(**values):
            raise Unmet(Reason.VACUOUS, f"there was no entry with {_listed(values)} that could have gone")
        self._settle(lambda: not self.having(**values), f"no entry with {_listed(values)}")
        return self

    def _settle(self, holds: Callable[[], bool], expected: str) -> None:
        """Expect something of the list; where the target may need time, read again until its deadline."""
        _look()
        if not self._wait(holds):
            raise Violation(f"{expected} in {self._path}", f"the entries {self.ids()}")

    def _wait(self, holds: Callable[[], bool]) -> bool:
        def again() -> bool:
            self.entries = self._walk()
            return holds()

        return holds() or _settles(again)


class WholeListing(Listing):
    """A list without stated pages, read at once; a service that pages it silently is asked for a long page."""

    def _walk(self) -> list[Any]:
        answer = self._caller.get(self._path, per_page=_LONGEST_PAGE)
        entries = _array((self._caller.get(self._path) if answer.exchange.is_refusal else answer).given_served())
        return entries if len(entries) < _PAGE_LENGTH else super()._walk()


def _array(answer: Answer) -> list[Any]:
    try:
        body = json.loads(answer.exchange.body)
    except ValueError:
        body = None
    if not isinstance(body, list):
        raise Unmet(Reason.PRECONDITION, f"GET {answer.exchange.call.target} did not answer a JSON array")
    return body


def _json(body: Any) -> dict[str, Any]:
    return {} if body is _ABSENT else {"json": body}


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items())


@contextmanager
def unchanged(read: Callable[[], Any], what: str) -> Iterator[None]:
    """Expect that what is read before and after is the same; inconclusive when it cannot be read."""
    before = read()
    yield
    _look()
    after = read()
    if after != before:
        raise Violation(f"{what} as before: {_brief(before)}", _brief(after))


def must_settle(holds: Callable[[], bool], expected: str, actual: Callable[[], str], *, within: float = 0) -> None:
    """
    Expect something that is read anew each time it is asked, within the time the target has to settle.

    `within` gives it at least so many seconds, where the text leaves room for a delay.
    """
    _look()
    if not (holds() or _settles(holds, within)):
        raise Violation(expected, actual())


def _settles(holds: Callable[[], bool], within: float = 0) -> bool:
    """Ask again until something holds or the target has had its time to settle."""
    deadline = time.monotonic() + max(within, current_run().profile.limits.settle_seconds)
    while time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        if holds():
            return True
    return False


def eventually(holds: Callable[[], bool], expected: str) -> None:
    """Poll until something holds; inconclusive when the target's deadline passes before."""
    limits = current_run().profile.limits
    deadline = time.monotonic() + limits.deadline_seconds
    while not holds():
        if time.monotonic() >= deadline:
            raise Unmet(Reason.PRECONDITION, f"{expected} did not happen within {limits.deadline_seconds:g} s")
        time.sleep(_POLL_SECONDS)


def _brief(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= 300 else f"{text[:300]} ..."  # noqa: PLR2004 - readable
