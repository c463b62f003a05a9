"""A call and its answer, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import httpx

from conformance.http.bodies import json_in

#: The methods that change nothing.
READING = frozenset({"GET", "HEAD"})
#: What is answered by a service, or by what stands before it, for a path or a method that it does not know.
NOT_THERE = frozenset({404, 405, 501})
_GATEWAY_ERRORS = (502, 503, 504)
#: What a service says in a 503 that keeps to a rate, and a gateway says in none.
_SPEAKS_OF_A_RATE = re.compile(rb"\brates?\b|\blimit|quota|too many|throttl", re.IGNORECASE)
#: From here on the numbers are those of makers of gateways.
_BEYOND_HTTP = 520

#: A parameter with a tuple of values is sent once for each.
Query = Mapping[str, str | int | bool | tuple[str, ...] | None]


class Trouble(StrEnum):
    """What keeps a call from being answered."""

    REFUSED = "connection refused"
    """Nobody answered at the address, or the name was not found: the call was not made."""
    BROKEN = "connection broken"
    CONNECT_TIMEOUT = "timeout while connecting"
    WRITE_TIMEOUT = "timeout while sending"
    READ_TIMEOUT = "timeout while waiting for the answer"
    BODY_TIMEOUT = "timeout in the middle of the answer"
    UNREADABLE = "an answer that cannot be read, or is out of bounds"
    GATEWAY = "a gateway answered in the place of the service"
    REFUSED_THROUGHOUT = "status 401 for every call with a token that was taken before"
    NOT_SENT = "not sent, for calls like it go unanswered"
    OTHER = "something else"


class Credentials(Protocol):
    """Somebody with a token."""

    @property
    def name(self) -> str:
        """What reports call them."""

    @property
    def token(self) -> str:
        """The token itself, which no report shows."""

    @property
    def variable(self) -> str:
        """The shell variable that stands for the token wherever a call is shown."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request before it is sent."""

    actor: Credentials | None
    method: str
    path: str
    """Below /api/v4, with a leading slash, already encoded; or the whole address that a redirect gave."""
    query: Query = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bool = False
    """Whether the body is wanted as it was sent, with no content encoding undone."""
    patient: bool = True
    """Whether to wait and try again when the target answers 429."""

    @property
    def target(self) -> str:
        """Path and query as sent."""
        wanted = [
            (key, query_text(entry))
            for key, value in self.query.items()
            for entry in (value if isinstance(value, tuple) else (value,))
            if entry is not None
        ]
        return f"{self.path}?{urlencode(wanted)}" if wanted else self.path

    @property
    def is_elsewhere(self) -> bool:
        """Whether the path is an address of its own, as redirects give them."""
        return "://" in self.path.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and what came back."""

    call: Call
    status: int | None
    """None when no answer came, or none that is whole."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    seconds: float
    problem: str | None = None
    """Why no answer came, or why it is not whole."""
    throttled: bool = False
    """Whether the target answered 429 before it answered this."""
    trouble: Trouble | None = None
    """What kept the call from being answered, where nothing came."""
    is_in_place_of_service: bool = False
    """Whether calls that were served before are answered in this way too: no answer of the service to this call."""

    @classmethod
    def unanswered(cls, call: Call, problem: str, seconds: float, trouble: Trouble) -> Exchange:
        """Return the exchange of a call without an answer, with the reason."""
        return cls(call, None, MappingProxyType({}), b"", seconds, problem, trouble=trouble)

    @property
    def is_success(self) -> bool:
        """Whether the call was served."""
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 - HTTP's own numbers

    @property
    def served_json(self) -> Any:
        """The JSON that the call was served with; None where it was not served, or with none."""
        return json_in(self.body) if self.is_success else None

    @property
    def served_object(self) -> dict[str, Any]:
        """The JSON object that the call was served with; an empty one where it was not, or with something else."""
        found = self.served_json
        return found if isinstance(found, dict) else {}

    @property
    def is_of_gateway(self) -> bool:
        """
        Whether something in front of the service answered in its place: the service did not.

        So do 502, 503, 504 and the numbers beyond HTTP's own, and any other 5xx that asks to come back later. Of calls
        that try a rate, a 503 that speaks of one is an answer of the service.
        """
        if self.is_in_place_of_service:
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
    def is_of_an_ended_token(self) -> bool:
        """Whether the token was taken before, and every call with it is answered with 401 now."""
        return self.is_in_place_of_service and self.status == HTTPStatus.UNAUTHORIZED

    @property
    def may_be_of_gateway(self) -> bool:
        """
        Whether this is a page for people instead of data, about some other 5xx or with a success.

        It may be a gateway's, about an upkeep or a login, or be made by the framework of the service.
        """
        is_page = "text/html" in self.headers.get("content-type", "").lower() and not self.call.is_elsewhere
        is_error = self.status is not None and self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return is_page and (self.is_success or is_error) and not self.is_of_gateway

    @property
    def is_not_found_in_prose(self) -> bool:
        """Whether the status is 404, with a text or page that is no JSON."""
        return self.status == HTTPStatus.NOT_FOUND and bool(self.body.strip()) and json_in(self.body) is None

    @property
    def may_be_cut(self) -> bool:
        """Whether the end of a served answer may be lost: what should be JSON is none, and no length was told."""
        is_told = {"content-length", "transfer-encoding"} & self.headers.keys()
        is_data = not self.call.raw and "json" in self.headers.get("content-type", "").lower()
        if not is_data or is_told or not self.is_success or self.status == HTTPStatus.NO_CONTENT:
            return False
        return json_in(self.body) is None and self.body.strip() != b"null"

    @property
    def is_refusal(self) -> bool:
        """Whether the call was refused with some 4xx; too many requests is no refusal."""
        return self.status is not None and 400 <= self.status < 500 and self.status != HTTPStatus.TOO_MANY_REQUESTS  # noqa: PLR2004


def pages_in(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the addresses that a header Link names, by what each is to this page, such as `next`."""
    # As bytes: a header may hold what is no ASCII.
    response = httpx.Response(HTTPStatus.OK, headers=[(b"link", headers.get("link", "").encode("utf-8", "replace"))])
    links = response.links.values()
    return {
        relation: link["url"] for link in links for relation in link.get("rel", "").lower().split() if "url" in link
    }


def next_page(headers: Mapping[str, str]) -> str | None:
    """Return the path and query below /api/v4 of the next page, as a header Link names it; None where it names none."""
    try:
        following = urlsplit(pages_in(headers).get("next", ""))
    except ValueError:  # an address that is none
        return None
    path = following.path.partition("/api/v4")[2]
    return f"{path}?{following.query}" if path else None


def query_text(value: Any) -> str:
    """Return a value as a query carries it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
