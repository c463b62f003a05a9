"""Legal personalities in how calls travel, are written down and are held back, and the alterations that make them."""

from __future__ import annotations

import itertools
import json
import zlib
from dataclasses import replace
from datetime import UTC, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from conformance.contract import Contract, Version
from conformance.proof import approval_alterations
from conformance.proof.personality import Variant
from conformance.proof.wire_alterations import transform
from conformance.reference.choices import Choices, Order
from conformance.reference.errors import ForbiddenError, InvalidError, NoRouteError, ThrottledError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

_THROTTLED = 429
_HELD_BACK_EVERY = 1500
_HELD_BACK_SECONDS = 0.3
_LONG = 6000


# -- held back ---------------------------------------------------------------------------------------------------------


def names_the_date_to_come_back(service: Service) -> None:
    """Say with a date, and not with a number of seconds, when a throttled caller may come back."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == _THROTTLED:
            moment = service.clock.now() + timedelta(seconds=1)
            answer.headers["retry-after"] = format_datetime(moment.astimezone(UTC), usegmt=True)

    transform(service, change)


def holds_everybody_back_for_a_moment(service: Service) -> None:
    """Refuse all calls for a third of a second, now and then, as a gateway with a full queue does."""
    admit, calls = service.access.admit, itertools.count(1)
    until = 0.0

    def unless_full(request: Any) -> None:
        nonlocal until
        if next(calls) % _HELD_BACK_EVERY == 0:
            until = service.clock.seconds() + _HELD_BACK_SECONDS
        if service.clock.seconds() < until:
            raise ThrottledError
        admit(request)

    service.access.admit = unless_full  # type: ignore[method-assign] # a service is altered so


# -- on the wire -------------------------------------------------------------------------------------------------------


def deflates_answers(service: Service) -> None:
    """Compress JSON in the other way that most callers take, and say of whatever is not compressed that it is not."""

    def change(_: Route, request: Request, answer: Response) -> None:
        if answer.has_content and b"deflate" in request.headers.get(b"accept-encoding", b""):
            answer.raw, answer.has_content = zlib.compress(json.dumps(answer.content).encode()), False
            answer.headers["content-encoding"] = "deflate"
        elif answer.has_content or answer.raw:
            answer.headers.setdefault("content-encoding", "identity")

    transform(service, change)


def says_much_in_headers(service: Service) -> None:
    """Send headers that are long, and some that mean something elsewhere."""
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
    """Give each caller a cookie, and refuse the cookie of one beside the token of another."""
    admit = service.access.admit

    def with_own_cookie(request: Any) -> None:
        admit(request)
        name, _, number = request.header("cookie").partition("=")
        if name and number != str(request.caller.id):
            raise ForbiddenError

    def change(_: Route, request: Request, answer: Response) -> None:
        if request.caller_name:
            answer.headers["set-cookie"] = f"session={request.caller.id}; Path=/; HttpOnly"

    service.access.admit = with_own_cookie  # type: ignore[method-assign] # see above
    transform(service, change)


# -- what is taken -----------------------------------------------------------------------------------------------------


def takes_no_body_where_none_is_described(service: Service) -> None:
    """Refuse a body, an empty object too, with an operation that is described without any parameter in it."""
    contract = Contract.load()
    bare = {
        (operation.method, operation.path.replace("{", ":").replace("}", ""))
        for operation in contract.operations(Version.parse(str(service.version)))
        if operation.area not in ("integrations", "versions")
        and not any(parameter.place == "body" for parameter in operation.parameters)
    }
    for route in list(service.routes):
        if (route.method, route.path) in bare:
            service.routes.change(route.key, handler=_without_body(route.handler))


def asks_for_a_body_where_one_is_described(service: Service) -> None:
    """Refuse a call without a body where a body is described, though all of it is optional."""
    contract = Contract.load()
    described = {
        (operation.method, operation.path.replace("{", ":").replace("}", ""))
        for operation in contract.operations(Version.parse(str(service.version)))
        if operation.body is not None and not operation.takes_body_in_query
    }
    for route in list(service.routes):
        if (route.method, route.path) in described:
            service.routes.change(route.key, handler=_with_body(route.handler))


def _with_body(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def handled(request: Request) -> Response:
        if not request.body:
            raise InvalidError("takes an object")
        return handler(request)

    return handled


def _without_body(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def handled(request: Request) -> Response:
        if request.body:
            raise InvalidError("takes no body")
        return handler(request)

    return handled


def finds_paths_in_any_case(service: Service) -> None:
    """Find projects, groups and people by names in any case, as services do whose names differ in more than case."""
    identities: Any = service.identities

    def in_any_case(find: Callable[[str], Any], known: Callable[[], list[str]]) -> Callable[[str], Any]:
        def found(name: str) -> Any:
            return find(name) or next((find(one) for one in known() if one.lower() == name.lower()), None)

        return found

    def paths(table: str) -> Callable[[], list[str]]:
        return lambda: [one.full_path for one in getattr(identities, table).values()]

    identities.find_project = in_any_case(identities.find_project, paths("projects"))
    identities.find_group = in_any_case(identities.find_group, paths("groups"))
    identities.find_username = in_any_case(
        identities.find_username, lambda: [user.username for user in identities.users.values()]
    )


# -- what is written ---------------------------------------------------------------------------------------------------


def writes_dates_with_a_comma(service: Service) -> None:
    """Write moments with a comma before the fraction and an offset of hours, and some as days of the year."""
    forms = ("%Y-%m-%dT%H:%M:%S", "%Y-%jT%H:%M:%S")

    def written(moment: datetime) -> str:
        return f"{moment.strftime(forms[moment.second % 2])},{moment.microsecond:06d}+00"

    service.present.timestamp = written  # type: ignore[method-assign] # see above


def writes_dates_to_the_minute(service: Service) -> None:
    """Write moments without seconds, which ISO 8601 allows."""
    service.present.timestamp = lambda moment: moment.strftime("%Y-%m-%dT%H:%MZ")  # type: ignore[method-assign] # see above


def numbers_itself_otherwise(service: Service) -> None:
    """Tell of the number that the product has, which is not the one of the interface."""
    service.meta.version = lambda: {"version": "3.2.1-community", "revision": "c0ffee"}  # type: ignore[method-assign] # see above


def has_only_what_is_documented(service: Service) -> None:
    """Read nothing but what the text describes; whatever else is asked for is no path of the service."""
    described = {
        (operation.method, operation.path.replace("{", ":").replace("}", ""))
        for operation in Contract.load().operations(Version.parse(str(service.version)))
    }

    def is_no_path(_: Request) -> Response:
        raise NoRouteError

    for route in list(service.routes):
        slug = route.path.replace(":slug", ":integration_slug")
        if route.method == "GET" and (route.method, slug) not in described:
            service.routes.change(route.key, handler=is_no_path)


def turns_lists_round(service: Service) -> None:
    """Begin each list at its other end than the last time that the same caller asked for its first page."""
    usual, turned = service.choices, replace(service.choices, list_order=Order.REVERSED)
    last: dict[tuple[bytes, str | None], bool] = {}

    def turning(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def handled(request: Request) -> Response:
            key = request.raw_path, request.header("private-token")
            if parse_qs(request.query.decode("latin-1")).get("page", ["1"]) == ["1"]:
                last[key] = not last.get(key)
            service.choices = turned if last.get(key) else usual
            try:
                return handler(request)
            finally:
                service.choices = usual

        return handled

    for route in list(service.routes):
        if route.paginated is not None:
            service.routes.change(route.key, handler=turning(route.handler))


def ends_empty_lists_before_their_first_page(service: Service) -> None:
    """Take the first page of a list without an entry for one that is past the end, which a refusal may say."""

    def change(_: Route, request: Request, answer: Response) -> None:
        if request.method == "GET" and "page" in parse_qs(request.query.decode("latin-1")) and answer.content == []:
            answer.status, answer.content = HTTPStatus.NOT_FOUND, {"message": "404 Page Not Found"}

    transform(service, change)


def shows_fewer_eligible_approvers_in_lists(service: Service) -> None:
    """Name at most one eligible approver of each rule in a list, and all of them in the rule itself."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.method == "GET" and route.path.endswith("/approval_rules") and isinstance(answer.content, list):
            answer.content = [{**rule, "eligible_approvers": rule["eligible_approvers"][:1]} for rule in answer.content]

    transform(service, change)


_PLAIN = Choices()

VARIANTS = (
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
    Variant(
        "no-body-where-none-is-described",
        "Operations without a parameter take no body, not even an empty object; the others ask for one.",
        alterations=(takes_no_body_where_none_is_described, asks_for_a_body_where_one_is_described),
    ),
    Variant(
        "names-in-any-case",
        "Projects, groups and people are found by their names in any case.",
        alterations=(finds_paths_in_any_case,),
    ),
    Variant(
        "rare-refusals",
        "Refusals have statuses that few services use, and what is missing is gone.",
        replace(
            _PLAIN,
            anonymous_code=402,
            forbidden_code=451,
            hidden_code=410,
            missing_code=410,
            invalid_code=418,
            rejected_code=423,
            repeated_code=424,
            absent_route_code=421,
            wrong_method_code=431,
            approval_refused_code=402,
            absent_unapproval_code=410,
            integration_not_creatable_code=428,
        ),
    ),
    Variant(
        "dates-with-a-comma",
        "Moments have a comma, offsets of hours, and days of the year.",
        alterations=(writes_dates_with_a_comma,),
    ),
    Variant(
        "dates-to-the-minute",
        "Moments have no seconds.",
        alterations=(writes_dates_to_the_minute,),
    ),
    Variant(
        "addresses-in-capitals",
        "Addresses have scheme and host in capitals, and a path of their own.",
        replace(_PLAIN, web_url="HTTPS://Service.EXAMPLE.com:8443/Base~1"),
    ),
    Variant(
        "documented-paths-only",
        "What the text does not describe is no path, and answered 401; rules of groups are for administrators alone.",
        replace(_PLAIN, absent_route_code=401, forbidden_code=404),
        alterations=(has_only_what_is_documented, approval_alterations.leaves_group_rules_to_administrators),
    ),
    Variant(
        "lists-turn-round",
        "Pages are of one entry unless more are asked for and, of an empty list, past its end; each walk begins at the "
        "other end, and lists say less.",
        replace(_PLAIN, default_per_page=1, max_per_page=3),
        alterations=(
            turns_lists_round,
            shows_fewer_eligible_approvers_in_lists,
            ends_empty_lists_before_their_first_page,
        ),
    ),
    Variant(
        "numbered-otherwise",
        "The product has another number than the interface.",
        alterations=(numbers_itself_otherwise,),
    ),
)
