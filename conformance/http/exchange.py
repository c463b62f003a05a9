"""A call and its answer, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

import httpx

from conformance.http.bodies import is_cut, json_in

#: The methods that change nothing.
READING = frozenset({"GET", "HEAD"})
#: Statuses of a service, or of a gateway, for a path or a method that it does not know.
NOT_THERE = frozenset({404, 405, 501})
_GATEWAY_ERRORS = (502, 503, 504)
#: Words in a 503 of a service that limits the rate; a gateway's 503 does not have them.
_SPEAKS_OF_A_RATE = re.compile(rb"\brates?\b|\blimit|quota|too many|throttl", re.IGNORECASE)
#: Words in a refusal of all changes for a while, whoever asks for them.
_SPEAKS_OF_READING_ONLY = re.compile(rb"read-only (instance|mode)|maintenance mode|under maintenance", re.IGNORECASE)
#: From here on, statuses are not defined by HTTP but by makers of gateways.
_BEYOND_HTTP = 520

_NUMBER = re.compile("[0-9]+")
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)

#: Status, place and title: what a page, or a redirect, has in common with others of its kind.
Look = tuple[int | None, str, bytes]
#: A parameter with a tuple of values is sent once for each.
Query = Mapping[str, str | int | bool | tuple[str, ...] | None]


class Trouble(StrEnum):
    """Why a call was not answered."""

    REFUSED = "connection refused"
    """Nobody answered at the address, or the name was not found: the call did not reach the target."""
    BROKEN = "connection broken"
    CONNECT_TIMEOUT = "timeout while connecting"
    WRITE_TIMEOUT = "timeout while sending"
    READ_TIMEOUT = "timeout while waiting for the answer"
    BODY_TIMEOUT = "timeout in the middle of the answer"
    UNREADABLE = "an answer that cannot be read, or is out of bounds"
    GATEWAY = "perhaps a gateway answered, and not the service"
    REFUSED_THROUGHOUT = "status 401 or 403 for every call with a token that was taken before"
    NOT_SENT = "not sent, because calls like it go unanswered"
    OTHER = "something else"


class Credentials(Protocol):
    """Somebody with a token."""

    @property
    def name(self) -> str:
        """The name in reports."""

    @property
    def token(self) -> str:
        """The token itself; no report shows it."""

    @property
    def variable(self) -> str:
        """The shell variable that stands for the token wherever a call is shown."""


#: RFC 6750: the request requires higher privileges than the token has.
_SPEAKS_OF_A_SCOPE = b"insufficient_scope"
#: So many bytes of a refusal say why; a page about something else may be long.
_SAYING_WHY = 1000


@dataclass(frozen=True, slots=True)
class Call:
    """A request before it is sent."""

    actor: Credentials | None
    method: str
    path: str
    """The encoded path below /api/v4, with a leading slash; or the full URL that a redirect gave."""
    query: Query = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bool = False
    """Whether the body is wanted as it was sent, without decoding."""
    patient: bool = True
    """Whether to wait and try again when the target answers 429."""

    @property
    def label(self) -> str:
        """Method and path, such as `GET /projects/1`."""
        return f"{self.method} {self.path}"

    @property
    def kind(self) -> str:
        """The label with each number as 0: the same code of a service probably answers all calls of a kind."""
        return _NUMBER.sub("0", self.label)

    @property
    def caller(self) -> str:
        """The name of the actor; `anonymous` without one."""
        return self.actor.name if self.actor else "anonymous"

    @property
    def target(self) -> str:
        """Path and query as sent. A blank is %20: not every service reads a plus sign as one."""
        wanted = [
            (key, query_text(entry))
            for key, value in self.query.items()
            for entry in (value if isinstance(value, tuple) else (value,))
            if entry is not None
        ]
        return f"{self.path}?{urlencode(wanted, quote_via=quote)}" if wanted else self.path

    @property
    def is_elsewhere(self) -> bool:
        """Whether the path is a full URL, as redirects give it."""
        return "://" in self.path.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its answer."""

    call: Call
    status: int | None
    """None when no complete answer came."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    seconds: float
    problem: str | None = None
    """Why no answer came, or why it is incomplete."""
    throttled: bool = False
    """Whether the target answered 429 before it answered this."""
    trouble: Trouble | None = None
    """Why the call was not answered, if no answer came."""
    is_in_place_of_service: bool = False
    """Whether all calls get this answer, also calls that were served before: then it does not come from the service."""

    is_as_anywhere: bool = False
    """Whether any path gets this page, or this redirect: a front-end answers so, or a login, where the service has
    nothing."""

    @classmethod
    def unanswered(cls, call: Call, problem: str, seconds: float, trouble: Trouble) -> Exchange:
        """Return the exchange of a call without an answer, with the reason."""
        return cls(call, None, MappingProxyType({}), b"", seconds, problem, trouble=trouble)

    @property
    def is_success(self) -> bool:
        """Whether the call was served."""
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 - HTTP's own numbers

    @property
    def is_broken(self) -> bool:
        """Whether the service failed: any 5xx but 501, which says that there is no such operation."""
        return (self.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR and self.status not in NOT_THERE

    @property
    def is_withheld(self) -> bool:
        """Whether it says nothing of what was asked for: no answer came, or one that asks to come back later."""
        return self.status in (None, HTTPStatus.TOO_MANY_REQUESTS)

    @property
    def served_json(self) -> Any:
        """The parsed JSON of a served answer; None when the call was not served, or the body is no JSON."""
        return json_in(self.body) if self.is_success else None

    @property
    def served_object(self) -> dict[str, Any]:
        """The parsed JSON object of a served answer; otherwise an empty one."""
        found = self.served_json
        return found if isinstance(found, dict) else {}

    @property
    def is_of_gateway(self) -> bool:
        """Whether a gateway in front of the service answered, and the service did not.

        Gateways answer 502, 503, 504, statuses that HTTP does not define, and any other 5xx that asks to come back
        later. A service that can only be read for a while does not judge a write either. In calls that test a rate
        limit, a 503 that mentions a rate comes from the service.
        """
        if self.is_in_place_of_service or self.takes_no_changes:
            return True
        tells_a_rate = not self.call.patient and self.status == HTTPStatus.SERVICE_UNAVAILABLE
        if tells_a_rate and _SPEAKS_OF_A_RATE.search(self.body):
            return False
        return self.status is not None and (
            self.status in _GATEWAY_ERRORS
            or self.status >= _BEYOND_HTTP
            or (self.status >= HTTPStatus.INTERNAL_SERVER_ERROR and "retry-after" in self.headers)
        )

    @property
    def takes_no_changes(self) -> bool:
        """Whether a write was refused because the service can only be read for a while: it had no effect."""
        return self.is_refusal and self.call.method not in READING and bool(_SPEAKS_OF_READING_ONLY.search(self.body))

    @property
    def lacks_scope(self) -> bool:
        """Whether the call was refused for what the token may do, and not for the role: OAuth 2.0 has a word for it."""
        told = self.headers.get("www-authenticate", "").encode() + self.body[:_SAYING_WHY]
        return self.status == HTTPStatus.FORBIDDEN and _SPEAKS_OF_A_SCOPE in told

    @property
    def refuses_throughout(self) -> bool:
        """Whether every call with the token is refused now, although it worked before: it expired, or is barred."""
        return self.is_in_place_of_service and self.refuses_caller

    @property
    def refuses_caller(self) -> bool:
        """Whether the caller is refused, as gateways also do to everybody; pages are detected as pages."""
        is_forbidden = self.status == HTTPStatus.FORBIDDEN and not self.is_page
        return self.status == HTTPStatus.UNAUTHORIZED or is_forbidden

    @property
    def is_page(self) -> bool:
        """Whether this is HTML: some frameworks say so of JSON as well, which is no page."""
        is_said = "text/html" in self.headers.get("content-type", "").lower()
        return is_said and not isinstance(json_in(self.body), (dict, list))

    @property
    def is_blank(self) -> bool:
        """Whether a read was served without any data: a gateway may have lost them, and announced a length of 0."""
        return self.status == HTTPStatus.OK and self.call.method == "GET" and not self.body.strip()

    @property
    def may_be_of_gateway(self) -> bool:
        """Whether this is an HTML page instead of data, with any other 5xx or with a success; or a read without data.

        It may be a gateway's page about maintenance or a login, or a page of the service's own framework. What any
        path gets is no accident.
        """
        if self.is_blank:
            return not self.call.is_elsewhere
        if not self.is_page or self.call.is_elsewhere or self.is_of_gateway or self.is_as_anywhere:
            return False
        is_error = self.status is not None and self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return is_error or (self.is_success and bool(self.body.strip()))

    @property
    def is_not_found_in_prose(self) -> bool:
        """Whether the status is 404, with a text or page that is not JSON."""
        return self.status == HTTPStatus.NOT_FOUND and bool(self.body.strip()) and json_in(self.body) is None

    @property
    def may_be_cut(self) -> bool:
        """Whether the end of a served answer may be missing: it is the beginning of JSON, and announced no length."""
        is_told = {"content-length", "transfer-encoding"} & self.headers.keys()
        is_data = not self.call.raw and "json" in self.headers.get("content-type", "").lower()
        if not is_data or is_told or not self.is_success or self.status == HTTPStatus.NO_CONTENT:
            return False
        return is_cut(self.body)

    @property
    def look(self) -> Look | None:
        """What is alike in a page, or a redirect, for each path: status, place and title. None for all other answers.

        An error page says by its status what it means, and is none of these.
        """
        if not (self.is_redirect or (self.is_success and self.is_page)):
            return None
        title = _TITLE.search(self.body)
        return self.status, self.headers.get("location", "").partition("?")[0], title[1] if title else self.body

    @property
    def is_not_there(self) -> bool:
        """Whether this says that there is no such path or method, or nothing of what the path names."""
        return self.status in NOT_THERE or self.is_as_anywhere

    @property
    def is_redirect(self) -> bool:
        """Whether the call was led elsewhere, with any 3xx."""
        return self.status is not None and 300 <= self.status < 400  # noqa: PLR2004 - see above

    @property
    def is_refusal(self) -> bool:
        """Whether the call was refused with a 4xx other than 429."""
        return self.status is not None and 400 <= self.status < 500 and self.status != HTTPStatus.TOO_MANY_REQUESTS  # noqa: PLR2004


def pages_in(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the addresses in a Link header, by their relation to this page, such as `next`."""
    # Parsed as bytes, because a header may contain non-ASCII characters.
    response = httpx.Response(HTTPStatus.OK, headers=[(b"link", headers.get("link", "").encode("utf-8", "replace"))])
    links = response.links.values()
    return {
        relation: link["url"] for link in links for relation in link.get("rel", "").lower().split() if "url" in link
    }


def goes_on(headers: Mapping[str, str]) -> bool | None:
    """Tell whether the headers of a page announce a next page; None when they say nothing about it."""
    following = headers.get("x-next-page")
    if following is None and "link" not in headers:
        return None
    return bool(following) or "next" in pages_in(headers)


def next_page(headers: Mapping[str, str]) -> str | None:
    """Return the path and query, below /api/v4, of the next page in a Link header; None when it names none."""
    try:
        following = urlsplit(pages_in(headers).get("next", ""))
    except ValueError:  # an invalid address
        return None
    path = following.path.partition("/api/v4")[2]
    return f"{path}?{following.query}" if path else None


def query_text(value: Any) -> str:
    """Return a value as text for a query."""
    return str(value).lower() if isinstance(value, bool) else str(value)
