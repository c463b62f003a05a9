"""Legal differences of the reference in how answers travel and look, whatever area they belong to."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from conformance.reference.errors import ApiError, UnsupportedMediaError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Route

Alteration = Callable[["Service"], None]

_BAD_GATEWAY = 502
#: Every so manyth call does not get through the gateway where it is a bad one.
_LOST = 61
_STATUS = "GET /groups/:id/export_relations/status"
_DOWNLOAD = "GET /groups/:id/export_relations/download"
_INTEGRATIONS = ("GET /projects/:id/integrations", "GET /projects/:id/services")


def transform(service: Service, change: Callable[[Route, Request, Response], None]) -> None:
    """Let a function change each answer of a service in place."""

    def changed(route: Route, request: Request, answer: Response) -> Response:
        change(route, request, answer)
        return answer

    service.transformers.append(changed)


# -- numbers, moments, addresses ---------------------------------------------------------------------------------------


def writes_integers_with_a_point(service: Service) -> None:
    """Write each integer as a number with a point and a zero behind it: JSON has one kind of number."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.has_content:
            answer.content = _with_points(answer.content)

    transform(service, change)


def writes_other_iso_dates(service: Service) -> None:
    """Write moments in the basic and in the week form of ISO 8601, one second the one and one the other."""
    forms = ("%Y%m%dT%H%M%S", "%G-W%V-%uT%H:%M:%S")

    def written(moment: datetime) -> str:
        milliseconds = moment.microsecond // 1000
        return f"{moment.strftime(forms[moment.second % 2])}.{milliseconds:03d}Z"

    service.present.timestamp = written  # type: ignore[method-assign] # a service is altered by putting methods in place


def writes_moments_by_machine(service: Service) -> None:
    """Let machines in different zones answer in turn, each of which writes as many digits of a moment as it likes."""
    hours = itertools.cycle((0, -3, 9))
    digits = itertools.cycle(("milliseconds", "microseconds", "seconds", "microseconds"))

    def written(moment: datetime) -> str:
        return moment.astimezone(timezone(timedelta(hours=next(hours)))).isoformat(timespec=next(digits))

    service.present.timestamp = written  # type: ignore[method-assign] # see above


def shows_relative_pictures(service: Service) -> None:
    """Name the picture of a user without the host that it lies on."""
    of_user = service.present.user

    def shown(user: Any) -> dict[str, Any]:
        return {**of_user(user), "avatar_url": f"/uploads/user/avatar/{user.id}/avatar.png"}

    service.present.user = shown  # type: ignore[method-assign] # see above


# -- what moves and what has no order ----------------------------------------------------------------------------------


def moves_values_by_itself(service: Service) -> None:
    """
    Let the merge status be checked anew, stars come in, and the times of last changes move with every answer.

    The entries of an export are such records. Each record also says when it was shown and how often one was, which the
    text does not name.
    """
    states = itertools.cycle(("unchecked", "checking", "can_be_merged", "cannot_be_merged_recheck"))
    stars, shown = itertools.count(1), itertools.count(1)

    def move(record: dict[str, Any]) -> None:
        now = service.present.timestamp(service.clock.now())
        record |= {"as_of": str(datetime.now(tz=UTC)), "times_shown": next(shown)}
        if "merge_status" in record:
            record["merge_status"] = next(states)
        if "star_count" in record:
            record |= {"star_count": next(stars), "last_activity_at": now}
        if {"slug", "relation"} & record.keys() and "updated_at" in record:
            record["updated_at"] = now

    _every_record(service, move)


def shuffles_arrays(service: Service) -> None:
    """Write arrays for which no order is stated in another one each time."""
    chance = random.Random(1)  # noqa: S311 - an order is no secret

    def shuffle(value: object) -> None:
        if isinstance(value, list):
            chance.shuffle(value)
        for inner in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
            shuffle(inner)

    def change(route: Route, _: Request, answer: Response) -> None:
        if not answer.has_content:
            return
        content = orjson.loads(orjson.dumps(answer.content))
        if isinstance(content, list) and route.key not in (_STATUS, *_INTEGRATIONS):
            for entry in content:
                shuffle(entry)
        else:
            shuffle(content)
        answer.content = content

    transform(service, change)


# -- pages -------------------------------------------------------------------------------------------------------------


def filters_pages_afterwards(service: Service) -> None:
    """Leave out of a page, after it was cut, what the caller may not see: it is shorter than the next one may be.

    Goes with pages as large as anybody asks for.
    """
    for route in list(service.routes):
        if route.paginated is not None and route.paginated <= service.version:
            service.routes.change(route.key, handler=_with_gaps(route.handler))


def _with_gaps(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        asked = request.parameters
        if not (asked.given("per_page") and asked.given("page")):
            return handler(request)
        number, size = asked.integer("page"), asked.integer("per_page")
        if number < 1 or size < 2:  # noqa: PLR2004 - of one entry a page would be left empty
            return handler(request)
        whole = type(request)(request.service, request.method, _match(request), _scope(request))
        whole.admit(request.caller, request.project if "/projects/" in request.route.path else request.group)
        found = handler(whole)
        entries: list[Any] = []
        for place, entry in enumerate(found.content if isinstance(found.content, list) else []):
            entries += [entry, None] if place % 2 == 0 else [entry]
        page = entries[(number - 1) * size : number * size]
        return Response(content=[entry for entry in page if entry is not None], has_content=True)

    return answer


def _match(request: Request) -> Any:
    from conformance.reference.http import Match  # noqa: PLC0415 - beside what uses it

    return Match(request.route, request.path)


def _scope(request: Request) -> dict[str, object]:
    headers = list(request.headers.items())
    return {"raw_path": request.raw_path, "query_string": b"page=1&per_page=1000000", "headers": headers}


# -- HTTP --------------------------------------------------------------------------------------------------------------


def writes_headers_in_capitals(service: Service) -> None:
    """Write names of headers, media types and content codings in capitals, where case means nothing."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.status == HTTPStatus.OK and answer.raw[:2] == b"\x1f\x8b":
            answer.headers["content-encoding"] = "GZIP"
            answer.media_type = "application/x-ndjson"
        answer.headers = {name.upper(): value for name, value in answer.headers.items()}
        answer.media_type = answer.media_type.replace("application/json", "Application/JSON; Charset=UTF-8")

    transform(service, change)


def sends_a_vendors_media_type(service: Service) -> None:
    """Send JSON of a media type of its own, in chunks of unknown length, with a cookie and a tag."""

    def change(_: Route, __: Request, answer: Response) -> None:
        answer.headers |= {"set-cookie": "_session=1; HttpOnly", "etag": 'W/"1"', "vary": "Accept, Origin"}
        if answer.has_content and answer.media_type == "application/json":
            answer.media_type = "application/vnd.automation.v4+json; charset=utf-8"
            text = orjson.dumps(answer.content)
            answer.chunks = (text[: len(text) // 2], text[len(text) // 2 :])
            answer.has_content = False

    transform(service, change)


def takes_no_charset(service: Service) -> None:
    """Refuse bodies whose type has a parameter: JSON has no use for any."""
    admit = service.access.admit

    def without_parameters(request: Any) -> None:
        kind, _, parameters = request.header("content-type").partition(";")
        if kind.strip().lower() == "application/json" and parameters.strip():
            raise UnsupportedMediaError
        admit(request)

    service.access.admit = without_parameters  # type: ignore[method-assign] # a service may be altered like this


def says_how_long_nothing_is(service: Service) -> None:
    """Say of an answer without a body that it is JSON of no bytes."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == 204:  # noqa: PLR2004 - HTTP's own number
            answer.headers |= {"content-type": "application/json", "content-length": "0"}

    transform(service, change)


def names_no_media_type(service: Service) -> None:
    """Send JSON without saying what it is."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.media_type == "application/json":
            answer.media_type = ""

    transform(service, change)


class _LostError(ApiError):
    """A gateway in front of the service could not pass a call on."""

    def status(self, choices: object) -> int:  # noqa: ARG002 - no choice of the service
        """Return the status of a bad gateway."""
        return _BAD_GATEWAY


def stands_behind_a_bad_gateway(service: Service) -> None:
    """Lose one call in many at the gateway, which answers with a page of its own."""
    admit, calls = service.access.admit, itertools.count(1)

    def through_the_gateway(request: Any) -> None:
        if next(calls) % _LOST == 0:
            raise _LostError
        admit(request)

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == _BAD_GATEWAY:
            answer.has_content, answer.media_type = False, "text/html"
            answer.raw = b"<html><body><h1>502 Bad Gateway</h1></body></html>"

    service.access.admit = through_the_gateway  # type: ignore[method-assign] # see above
    transform(service, change)


# -- small steps -------------------------------------------------------------------------------------------------------


def _every_record(service: Service, change: Callable[[dict[str, Any]], None]) -> None:
    def each(value: object) -> None:
        if isinstance(value, dict):
            change(value)
        for inner in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
            each(inner)

    def changed(_: Route, __: Request, answer: Response) -> None:
        if answer.has_content:
            # What is remembered between answers is not to be changed with this one.
            content = orjson.loads(orjson.dumps(answer.content))
            each(content)
            answer.content = content

    transform(service, changed)


def _with_points(value: object) -> object:
    if isinstance(value, dict):
        return {name: _with_points(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_points(inner) for inner in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
