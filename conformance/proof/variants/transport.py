"""Variants in how calls and responses are sent, delayed and lost, and the alterations that make them."""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from dataclasses import replace
from datetime import UTC, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.choices import Choices
from conformance.reference.errors import ApiError, ForbiddenError, ThrottledError, UnsupportedMediaError

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route
    from conformance.reference.store import Snapshot

#: How long reads lag behind writes in the variant with a lag, in seconds.
LAG_SECONDS = 0.02
_DOWNLOAD = "GET /groups/:id/export_relations/download"
_BAD_GATEWAY = 502
#: One call in this number does not get through the bad gateway.
_LOST = 61
_THROTTLED = 429
_HELD_BACK_EVERY = 1500
_HELD_BACK_SECONDS = 0.3
_LONG = 6000


def names_the_date_to_come_back(service: Service) -> None:
    """Send a date, and not a number of seconds, for when a throttled caller may retry."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == _THROTTLED:
            moment = service.clock.now() + timedelta(seconds=1)
            answer.headers["retry-after"] = format_datetime(moment.astimezone(UTC), usegmt=True)

    transform(service, change)


def holds_everybody_back_for_a_moment(service: Service) -> None:
    """Refuse all calls for a third of a second, now and then, like a gateway with a full queue."""
    admit, calls = service.access.admit, itertools.count(1)
    until = 0.0

    def unless_full(request: Any) -> None:
        nonlocal until
        if next(calls) % _HELD_BACK_EVERY == 0:
            until = service.clock.seconds() + _HELD_BACK_SECONDS
        if service.clock.seconds() < until:
            raise ThrottledError
        admit(request)

    service.access.admit = unless_full


def lets_reads_lag(service: Service) -> None:
    """Let every read see the state of LAG_SECONDS ago; writes see the current state."""
    history: list[tuple[float, Snapshot]] = []

    def lagging(route: Route) -> None:
        handler = route.handler

        def answer(request: Request) -> Response:
            now = service.clock.seconds()
            if request.method != "GET":
                history.append((now, service.store.snapshot()))
                return handler(request)
            del history[: next((at for at, (moment, _) in enumerate(history) if now - moment < LAG_SECONDS), None)]
            if not history:
                return handler(request)
            latest = service.store.snapshot()
            service.store.restore(history[0][1])
            try:
                return handler(request)
            finally:
                service.store.restore(latest)

        service.routes.change(route.key, handler=answer)

    for route in list(service.routes):
        lagging(route)


def compresses_answers(service: Service) -> None:
    """Compress JSON for clients that accept it."""

    def change(_: Route, request: Request, answer: Response) -> None:
        if answer.has_content and b"gzip" in request.headers.get(b"accept-encoding", b""):
            answer.raw, answer.has_content = gzip.compress(json.dumps(answer.content).encode()), False
            answer.headers["content-encoding"] = "gzip"

    transform(service, change)


def deflates_answers(service: Service) -> None:
    """Compress JSON with deflate, and name the coding identity where nothing is compressed."""

    def change(_: Route, request: Request, answer: Response) -> None:
        if answer.has_content and b"deflate" in request.headers.get(b"accept-encoding", b""):
            answer.raw, answer.has_content = zlib.compress(json.dumps(answer.content).encode()), False
            answer.headers["content-encoding"] = "deflate"
        elif answer.has_content or answer.raw:
            answer.headers.setdefault("content-encoding", "identity")

    transform(service, change)


def writes_json_at_length(service: Service) -> None:
    """Write JSON on many lines, with all non-ASCII characters and slashes escaped."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.has_content:
            text = json.dumps(answer.content, indent=3).replace("/", "\\/")
            answer.raw, answer.has_content = f"\r\n{text}\r\n".encode(), False

    transform(service, change)


def closes_each_connection(service: Service) -> None:
    """Close the connection after each response."""
    transform(service, lambda _, __, answer: answer.headers.update(connection="close"))


def writes_headers_in_capitals(service: Service) -> None:
    """Write names of headers, media types and content codings in upper case, where case has no meaning."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.status == HTTPStatus.OK and answer.raw[:2] == b"\x1f\x8b":
            answer.headers["content-encoding"] = "GZIP"
            answer.media_type = "application/x-ndjson"
        answer.headers = {name.upper(): value for name, value in answer.headers.items()}
        answer.media_type = answer.media_type.replace("application/json", "Application/JSON; Charset=UTF-8")

    transform(service, change)


def says_much_in_headers(service: Service) -> None:
    """Send long headers, and some that have a meaning elsewhere."""
    more = {
        "x-trace": "7" * _LONG,
        "deprecation": "true",
        "sunset": "Sat, 31 Dec 2033 23:59:59 GMT",
        "warning": '214 proxy "Transformation Applied"',
        "age": "17",
        "cache-control": "public, max-age=3600",
        "last-modified": "Sat, 01 Jan 2000 00:00:00 GMT",
        "content-language": "de",
        "link": '</help>; rel="help"',
    }
    transform(service, lambda _, __, answer: answer.headers.update({**more, **answer.headers}))


def keeps_a_session(service: Service) -> None:
    """Give each caller a cookie, and refuse a cookie with the token of another caller."""
    admit = service.access.admit

    def with_own_cookie(request: Any) -> None:
        admit(request)
        name, _, number = request.header("cookie").partition("=")
        if name and number != str(request.caller.id):
            raise ForbiddenError

    def change(_: Route, request: Request, answer: Response) -> None:
        if request.caller_name:
            answer.headers["set-cookie"] = f"session={request.caller.id}; Path=/; HttpOnly"

    service.access.admit = with_own_cookie
    transform(service, change)


def sends_a_vendors_media_type(service: Service) -> None:
    """Send JSON with a vendor's media type, in chunks of unknown length, with a cookie and an ETag."""

    def change(_: Route, __: Request, answer: Response) -> None:
        answer.headers |= {"set-cookie": "_session=1; HttpOnly", "etag": 'W/"1"', "vary": "Accept, Origin"}
        if answer.has_content and answer.media_type == "application/json":
            answer.media_type = "application/vnd.automation.v4+json; charset=utf-8"
            text = orjson.dumps(answer.content)
            answer.chunks = (text[: len(text) // 2], text[len(text) // 2 :])
            answer.has_content = False

    transform(service, change)


def takes_no_charset(service: Service) -> None:
    """Refuse bodies whose content type has a parameter: JSON needs none."""
    admit = service.access.admit

    def without_parameters(request: Any) -> None:
        kind, _, parameters = request.header("content-type").partition(";")
        if kind.strip().lower() == "application/json" and parameters.strip():
            raise UnsupportedMediaError
        admit(request)

    service.access.admit = without_parameters


def says_how_long_nothing_is(service: Service) -> None:
    """Send a content type and a length of zero with responses that have no body."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == 204:  # noqa: PLR2004 - HTTP's own number
            answer.headers |= {"content-type": "application/json", "content-length": "0"}

    transform(service, change)


def names_no_media_type(service: Service) -> None:
    """Send JSON without a content type."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.media_type == "application/json":
            answer.media_type = ""

    transform(service, change)


class _LostError(ApiError):
    """A gateway in front of the service could not forward a call."""

    def status(self, choices: object) -> int:  # noqa: ARG002 - no choice of the service
        """Return the status of a bad gateway."""
        return _BAD_GATEWAY


def stands_behind_a_bad_gateway(service: Service) -> None:
    """Lose one call in many at the gateway, which answers with its own page."""
    admit, calls = service.access.admit, itertools.count(1)

    def through_the_gateway(request: Any) -> None:
        if next(calls) % _LOST == 0:
            raise _LostError
        admit(request)

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == _BAD_GATEWAY:
            answer.has_content, answer.media_type = False, "text/html"
            answer.raw = b"<html><body><h1>502 Bad Gateway</h1></body></html>"

    service.access.admit = through_the_gateway
    transform(service, change)


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "throttled",
        "Every seventieth call is answered 429 with Retry-After.",
        replace(_PLAIN, throttle_every=70, retry_after_seconds=0),
    ),
    Variant(
        "throttled-without-a-word",
        "Every five hundredth call is answered 429 without Retry-After.",
        replace(_PLAIN, throttle_every=500, retry_after_seconds=None),
    ),
    Variant(
        "reads-lag-behind",
        "What was written is read a moment later only.",
        _PLAIN,
        limits={"settle_seconds": 1.5 * LAG_SECONDS},
        alone="what a read sees is put back behind it, and so would be what moves by itself",
        alterations=(lets_reads_lag,),
    ),
    Variant(
        "capitals-on-the-wire",
        "Header names, media types and content codings are in capitals; nothing is said to be long.",
        alterations=(writes_headers_in_capitals, says_how_long_nothing_is),
    ),
    Variant(
        "vendor-on-the-wire",
        "JSON is of a vendor's media type and comes in chunks, with cookies; that of requests has no parameters.",
        alterations=(sends_a_vendors_media_type, takes_no_charset),
    ),
    Variant(
        "nameless-on-the-wire",
        "Nothing is said about the type of JSON; other statuses of success are used where none is stated.",
        Choices(
            unapproved_code=203,
            approvals_reset_code=208,
            rule_deleted_code=205,
            integration_deleted_code=205,
            unshown_bodies=False,
        ),
        alterations=(names_no_media_type,),
    ),
    # A run against this service is incomplete, and must be: a lost write is not repeated, because nobody knows
    # whether it was done, so what it would have shown stays open. Reads are repeated.
    Variant(
        "bad-gateway",
        "A gateway loses some calls and answers with a page of its own.",
        alterations=(stands_behind_a_bad_gateway,),
        alone="what a lost call would have shown is open",
    ),
    Variant(
        "compressed-on-the-wire",
        "JSON is compressed for whoever takes it so.",
        alterations=(compresses_answers,),
    ),
    Variant(
        "closes-each-connection",
        "Each connection is closed behind its answer.",
        alterations=(closes_each_connection,),
    ),
    Variant(
        "json-at-length",
        "JSON is written on many lines, with escapes.",
        alterations=(writes_json_at_length,),
    ),
    Variant(
        "throttled-until-a-date",
        "Every seven hundredth call is answered 429, with the date to come back.",
        replace(_PLAIN, throttle_every=700),
        alterations=(names_the_date_to_come_back,),
    ),
    Variant(
        "full-for-a-moment",
        "Now and then nobody is served for a third of a second.",
        alterations=(holds_everybody_back_for_a_moment,),
    ),
    Variant(
        "deflated-on-the-wire",
        "JSON is deflated for whoever takes it so.",
        alterations=(deflates_answers,),
    ),
    Variant(
        "much-in-headers",
        "Headers are long and many, and say that answers are old, may be kept and are German.",
        alterations=(says_much_in_headers,),
    ),
    Variant(
        "sessions-of-callers",
        "Each caller has a session, whose cookie goes with no other token.",
        alterations=(keeps_a_session,),
    ),
)
