"""Calls to a target with unknown habits: finds what exists, and tries refused calls with less data."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.errors import TargetError
from conformance.http.bodies import ABSENT, json_in
from conformance.http.client import Client, TargetGoneError
from conformance.http.exchange import NOT_THERE, READING, next_page
from conformance.target.profile import Actor
from conformance.target.readings import as_named

if TYPE_CHECKING:
    from conformance.http.exchange import Exchange
    from conformance.target.provisioning.files import Made

Body = Mapping[str, Any]
Entry = dict[str, Any]

#: Statuses that refuse the caller or the moment, and say nothing about the request itself.
_NOT_ABOUT_THE_CALL = (401, 429)
_PAGE_LENGTH = 100
_MOST_PAGES = 500
#: The beginning of a token that is sent as a bearer token.
BEARER = "Bearer "
#: How often an idempotent call is retried when no answer comes.
_AGAIN, _ONCE_MORE = 4, 1
_LONG_ENOUGH = 30.0  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
#: For how many seconds a call is repeated after another one was repeated in vain.
_SHORT_WAIT_SECONDS = 2.0
#: How many seconds reads may lag behind writes, and by which factor the seen lag is exceeded.
_LONGEST_LAG, _MARGIN = 10.0, 1.5
#: How many parts of a path say what is made; later ones name it, as files are named.
_PLACE = 5
_SHORT_PAUSE = 0.02
#: How many seconds a refused name is retried when nothing is seen to have it, and a call that needs a new role.
_FOR_A_NAME = _FOR_A_ROLE = 5.0
#: Statuses of gateways, which say nothing about the target; None is no answer.
OF_GATEWAYS = frozenset({None, 502, 503, 504})
#: Statuses that may be temporary, for example because a repository or a path is not ready yet.
MOMENTARY = OF_GATEWAYS | {400, 404, 409, 422}
#: Statuses that may be temporary for a user who has just been given a role.
UNTIL_KNOWN = MOMENTARY | {403}
#: Statuses for a name that is taken, perhaps only by something that is being deleted.
TAKEN = frozenset({400, 409, 422})
_SAYS_TAKEN = re.compile(r"\b(taken|already)\b", re.IGNORECASE)
#: Statuses that refuse for good; a 429, for example, does not.
REFUSED = frozenset(range(400, 500)) - {408, 425, 429}
#: Statuses of a service that does not have a call, or lets nobody make it.
NOT_OFFERED = NOT_THERE | {403}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `status` is None if no answer came, and `problem` says why."""

    status: int | None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    page: int | None = None
    """The status of a page that came in place of what was asked for; `status` is 404 then."""

    @property
    def is_served(self) -> bool:
        """Whether the call was served."""
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 - HTTP's own numbers

    @property
    def is_refusal(self) -> bool:
        """Whether the target refused the call."""
        return self.status is not None and 400 <= self.status < 500  # noqa: PLR2004 - see above

    @property
    def says_that_it_is_taken(self) -> bool:
        """Whether the target refused a name or a path because it is taken, and not because of other data."""
        is_told = self.status in TAKEN and _SAYS_TAKEN.search(str(self.body)) is not None
        return is_told or self.status == HTTPStatus.CONFLICT

    @property
    def is_broken(self) -> bool:
        """Whether the target failed at a call that it may support: any 5xx except those for unsupported calls."""
        return (self.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR and self.status not in NOT_THERE

    @property
    def entry(self) -> Entry:
        """The body, if it is an object; an empty one otherwise."""
        return self.body if isinstance(self.body, dict) else {}

    def __str__(self) -> str:
        """Describe the answer, with the words of a refusal."""
        if self.status is None:
            return f"no answer ({self.problem})"
        if self.page:
            return f"an HTML page, status {self.page}"
        said = _words_of(self.body)
        return f"status {self.status}" + (f", {json.dumps(said)[:200]}" if said else "")


def _words_of(body: Any) -> Any:
    """Return the message of a refusal, from any place in its body; the rest may repeat what was sent."""
    if not isinstance(body, dict):
        return None
    for key in ("message", "error"):
        if key in body:
            return body[key]
    text = next((body[key] for key in ("detail", "title", "text", "reason") if isinstance(body.get(key), str)), None)
    return text or next((words for value in body.values() if (words := _words_of(value))), None)


#: Sends a call, given by token, method, path below /api/v4 or whole address, query and body; raises TargetError when
#: the target is not reachable.
Way = Callable[[str, str, str, Body, Body | None], Answer]


class RefusedError(Exception):
    """The target refuses to create something; the text says what, and how it refused."""


class NotOursError(Exception):
    """Something with this name exists, and does not carry the mark of provisioning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Something that should exist."""

    what: str
    """Its name in messages and in the list of what was made."""
    path: str
    tokens: Sequence[str]
    """The tokens to try, one after the other."""
    bodies: Sequence[Body]
    """The bodies to try: the first has everything, later ones less, for a target that refuses optional data."""
    look_up: Callable[[], Entry | None]
    """Finds it if it exists; raises NotOursError when something else is in its place."""
    waits_after: frozenset[int | None] = MOMENTARY
    """Statuses after which the call is retried for a while."""
    has_name: bool = False
    """Whether its name must be unique, so that a call may be refused because of another one's name."""
    shows: Sequence[str] = ()
    """What must be known of it: keys of its record."""
    keeps_body: bool = False
    """Whether all tokens are tried with a body before the next body; else all bodies are tried with a token."""

    @property
    def ways(self) -> Iterator[tuple[str, Body]]:
        """The combinations of token and body, in the order in which they are tried."""
        if self.keeps_body:
            return ((token, body) for body, token in product(self.bodies, self.tokens))
        return product(self.tokens, self.bodies)

    def whole(self, entry: Entry) -> Entry:
        """Return what was made or found; raise RefusedError when the target does not show what must be known of it."""
        lacking = [key for key in self.shows if key not in entry]
        if lacking:
            raise RefusedError(
                f"POST {self.path} ({self.what}): it exists, and the target does not show its {lacking[0]}"
            )
        return entry


class Calls:
    """Sends calls, and creates what does not exist yet."""

    def __init__(self, way: Way, made: Made, patience_seconds: float = 20, settle_seconds: float = 0) -> None:
        """Take the way to send calls, the list of what was made, and how long to retry what may be refused temporarily.

        Each read after a write waits for `settle_seconds`, as in a run; `see_lag` measures how long that must be.
        """
        self._way = way
        self._made = made
        self._patience = patience_seconds
        self.settle_seconds = settle_seconds
        self._written_at = -math.inf
        self._shows_what_is_made = True
        self._working: set[str] = set()
        """Kinds of calls that have made something."""
        self._waited_in_vain: set[str] = set()
        """Kinds of calls that were answered 404 until patience ended: a service without them says that every time."""

    def see_lag(self, look: Callable[[], Entry | None]) -> None:
        """Measure from a newly created thing how far reads lag behind writes, and wait that long from now on.

        If the thing does not appear for a long time, nothing can be measured, and nobody tries again.
        """
        began, found = time.monotonic(), self._shows_what_is_made and look()
        if found or not self._shows_what_is_made:
            return
        while not found and time.monotonic() < began + min(self._patience, _LONGEST_LAG):
            time.sleep(_SHORT_PAUSE)
            found = look()
        if found:
            needed = _MARGIN * (time.monotonic() - began)
            self.settle_seconds = max(self.settle_seconds, math.ceil(100 * needed) / 100)
        self._shows_what_is_made = bool(found)

    def _settled(self) -> None:
        """Wait until earlier writes should be visible."""
        left = self._written_at + self.settle_seconds - time.monotonic()
        if left > 0:
            time.sleep(left)

    def get(self, token: str, path: str, **query: Any) -> Answer:
        """Read something; retry if no answer comes, so that nothing that exists is created again."""
        return self._answered(token, "GET", path, query)

    def find(self, token: str, path: str, **query: Any) -> Entry | None:
        """Read something that may not exist; None when it is not there, or not visible."""
        answer = self.get(token, path, **query)
        return answer.entry if answer.is_served and answer.entry else None

    def remove(self, token: str, path: str) -> Answer:
        """Delete something; retry if no answer comes, because deleting twice does no harm."""
        return self._answered(token, "DELETE", path, {})

    def put(self, token: str, path: str, body: Body) -> Answer:
        """Set something; retry if no answer comes, because setting twice does no harm."""
        return self._answered(token, "PUT", path, {}, body)

    def _answered(self, token: str, method: str, path: str, query: Body, body: Body | None = None) -> Answer:
        if method == "GET":
            self._settled()
        answer = self._repeated(lambda: self._sent(token, method, path, query, body))
        if method != "GET":
            self._written_at = time.monotonic()
        return answer

    def _sent(self, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        answer = self._way(token, method, path, query, body)
        return replace(answer, body=as_named(answer.body)) if answer.is_served else answer

    @staticmethod
    def _repeated(send: Callable[[], Answer], unanswered: int = _AGAIN) -> Answer:
        """Send an idempotent call; retry until the target itself answers, or a limit is reached.

        `unanswered` limits the retries after no answer at all. The client retries too: when that took long, it is done.
        """
        began, answer = time.monotonic(), send()
        for attempt in range(_AGAIN):
            if answer.status is None and time.monotonic() - began > _LONG_ENOUGH:
                break
            if answer.status not in OF_GATEWAYS or (answer.status is None and attempt >= unanswered):
                break
            if answer.status is not None:
                time.sleep(_FIRST_PAUSE * 2**attempt)
            answer = send()
        return answer

    def send(self, token: str, method: str, path: str, body: Body | None = None) -> Answer:
        """Change something."""
        answer = self._sent(token, method, path, {}, body)
        self._written_at = time.monotonic()
        return answer

    def ask(self, token: str, path: str, body: Body) -> Answer:
        """Send a POST that changes nothing; retry if no answer comes, or that of a gateway."""
        self._settled()
        return self._repeated(lambda: self._sent(token, "POST", path, {}, body), _ONCE_MORE)

    def walk(self, token: str, path: str, **query: Any) -> Iterator[Entry]:
        """Yield the entries of a list, page by page.

        The first page is requested without a number, so that targets which only know cursors answer too. Then follows
        the page that the answer names as the next; if it names none, the next number, until a page is empty, refused,
        or has nothing new. Raise RefusedError when not even the first page is served.
        """
        query["per_page"] = _PAGE_LENGTH
        answer = self.get(token, path, **query)
        # Some services refuse a page length above their own limit.
        if answer.is_refusal and answer.status not in _NOT_ABOUT_THE_CALL:
            del query["per_page"]
            answer = self.get(token, path, **query)
        if not answer.is_served or not isinstance(answer.body, list):
            raise RefusedError(f"GET {path}: {answer}")
        seen: set[str] = set()
        for number in range(2, _MOST_PAGES):
            entries = answer.body if answer.is_served and isinstance(answer.body, list) else []
            fresh = [entry for entry in entries if isinstance(entry, dict) and json.dumps(entry) not in seen]
            if not fresh:
                return
            seen |= {json.dumps(entry) for entry in fresh}
            yield from fresh
            following = next_page(answer.headers)
            if following is None and "link" in answer.headers:
                return
            answer = (
                self.get(token, following) if following is not None else self.get(token, path, **query, page=number)
            )

    def first(self, token: str, path: str, key: str, value: Any) -> Entry | None:
        """Return the first entry of a list that has a value; None when there is none."""
        return next((entry for entry in self.walk(token, path) if entry.get(key) == value), None)

    def ensure(self, wanted: Wanted) -> Entry:
        """Return something that should exist: find it or create it; raise RefusedError as `make` does."""
        found = wanted.look_up()
        return self.make(wanted) if found is None else wanted.whole(found)

    def make(self, wanted: Wanted) -> Entry:
        """Create something that does not exist yet, and return it.

        It is looked up after each refusal and after a call without an answer, because it may exist. Raise RefusedError
        when nobody may create it, or the target does not show what must be known of it.
        """
        self._made.note("POST", wanted.path, wanted.what)
        began, pause, kind = time.monotonic(), _FIRST_PAUSE, _kind_of(wanted.path)
        while True:
            answers: list[Answer] = []
            for token, body in wanted.ways:
                answer = self.send(token, "POST", wanted.path, body)
                shown = answer.entry if answer.is_served else {}
                is_whole = bool(shown) and shown.keys() >= {*wanted.shows}
                found = shown if is_whole else wanted.look_up() or shown
                if found:
                    self._working.add(kind)
                    return wanted.whole(found)
                answers.append(answer)
                if answer.status in OF_GATEWAYS or (wanted.has_name and answer.says_that_it_is_taken):
                    break  # the data was not judged, so less data need not be tried
            momentary = {answer.status for answer in answers} & wanted.waits_after
            is_taken = wanted.has_name and momentary <= TAKEN
            patience = min(self._patience, _FOR_A_NAME) if is_taken else self._patience
            patience = min(patience, _FOR_A_ROLE) if momentary == {403} else patience
            if momentary == {404} and kind in self._waited_in_vain - self._working:
                patience = 0
            if not momentary or time.monotonic() + pause > began + patience:
                self._waited_in_vain |= {kind} if momentary == {404} else set()
                hidden = "; nothing is shown that has this name" if momentary and is_taken else ""
                raise RefusedError(f"POST {wanted.path} ({wanted.what}): {answers[-1]}{hidden}")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def until(self, look: Callable[[], Entry | None]) -> Entry | None:
        """Look for something that may take a moment to appear; None when it does not."""
        give_up, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while (found := look()) is None and time.monotonic() + pause < give_up:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return found


def by_http(client: Client) -> Way:
    """Return the way to send calls over HTTP.

    Once a call has waited in vain for an answer, no other one waits as long until one is answered: a hundred steps that
    each wait for a minute end after many minutes, and say nothing.
    """
    usual = client.retries.call_seconds

    def hear(exchange: Exchange) -> None:
        if exchange.status is not None:
            client.retries.call_seconds = usual
        elif exchange.call.method in READING:  # what creates something is not repeated, and has waited for nothing
            client.retries.call_seconds = min(usual, _SHORT_WAIT_SECONDS)

    client.on_exchange(hear)

    def send(token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_bearer = token.startswith(BEARER)
        actor = Actor("provisioning", token) if token and not is_bearer else None
        headers = {"Authorization": token} if is_bearer else None
        sent = ABSENT if body is None else dict(body)
        try:
            exchange = client.send(actor, method, path, query=query, json_body=sent, headers=headers)
        except TargetGoneError as error:
            raise TargetError(f"{error}. Is the service running there?") from error
        if exchange.is_success and exchange.is_page:  # as a front-end answers any path that the service does not know
            return Answer(HTTPStatus.NOT_FOUND, None, exchange.headers, page=exchange.status)
        return Answer(exchange.status, json_in(exchange.body), exchange.headers, exchange.problem or "")

    return send


def _kind_of(path: str) -> str:
    """Return a key for calls that make the same kind of thing in different places."""
    return "/".join("0" if part.isdecimal() else part for part in path.split("/")[:_PLACE])


def segment(text: object) -> str:
    """Return a text as one segment of a path."""
    return quote(str(text), safe="")
