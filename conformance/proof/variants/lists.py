"""Variants in the pages and the order of lists, and the alterations that make them."""

from __future__ import annotations

import random
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import orjson

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.choices import Choices, Order, OutOfRange
from conformance.reference.http import Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.routing import Route

_STATUS = "GET /groups/:id/export_relations/status"
_INTEGRATIONS = ("GET /projects/:id/integrations", "GET /projects/:id/services")


def shuffles_arrays(service: Service) -> None:
    """Write arrays without a stated order in another order each time."""
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


def filters_pages_afterwards(service: Service) -> None:
    """Remove from a page, after it was cut, what the caller may not see: it may be shorter than the next one.

    Combined with pages as large as requested.
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


def turns_lists_round(service: Service) -> None:
    """Reverse each list compared with the last time that the same caller requested its first page."""
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
    """Treat the first page of an empty list as one past the end, which may be refused."""

    def change(_: Route, request: Request, answer: Response) -> None:
        if request.method == "GET" and "page" in parse_qs(request.query.decode("latin-1")) and answer.content == []:
            answer.status, answer.content = HTTPStatus.NOT_FOUND, {"message": "404 Page Not Found"}

    transform(service, change)


def shows_fewer_eligible_approvers_in_lists(service: Service) -> None:
    """Name at most one eligible approver of each rule in a list, but all of them in the single rule."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.method == "GET" and route.path.endswith("/approval_rules") and isinstance(answer.content, list):
            answer.content = [{**rule, "eligible_approvers": rule["eligible_approvers"][:1]} for rule in answer.content]

    transform(service, change)


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "short-pages",
        "Pages hold five entries at most, odd page numbers are refused, lists come the other way round.",
        replace(
            _PLAIN,
            default_per_page=2,
            max_per_page=5,
            page_below_one=OutOfRange.REFUSE,
            page_past_the_end=OutOfRange.REFUSE,
            list_order=Order.REVERSED,
            key_order=Order.REVERSED,
            pagination_totals=False,
        ),
    ),
    Variant(
        "no-order",
        "Arrays are in another order in each answer.",
        alterations=(shuffles_arrays,),
    ),
    Variant(
        "pages-with-gaps",
        "Pages are shorter than asked for, before the last one too.",
        Choices(max_per_page=1_000_000, pagination_headers=False),
        alterations=(filters_pages_afterwards,),
    ),
    Variant(
        "pages-of-two",
        "No page holds more than two entries, whatever is asked for.",
        Choices(max_per_page=2, default_per_page=2),
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
)
