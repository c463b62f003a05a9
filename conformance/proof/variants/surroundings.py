"""Variants in what stands before a service: firewalls, routers and sessions, and the alterations that make them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.errors import ForbiddenError
from conformance.reference.http import Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.routing import Route

_PAGE = b"<!DOCTYPE html><title>Not found</title><h1>The page you were looking for does not exist</h1>"
_ATTACKS = (b"<script", b"' or ", b"--", b"../", b"%00", b"\\u0000", b"union select", b"${", b"%0a", b"%0d", b"\0")
#: Fields that JSON allows and few parsers expect: large numbers, half a pair of surrogates, and much inside each other.
_ODD = b'"x_large":%d,"x_huge":1e400,"x_half":"\\ud83d \\u0000 ]]>","x_deep":%b%b' % (10**32, b"[" * 150, b"]" * 150)


def refuses_what_looks_like_an_attack(service: Service) -> None:
    """Refuse calls with texts that a firewall takes for an attack, whoever makes them."""
    admit = service.access.admit

    def admit_harmless(request: Any) -> None:
        text = b"?".join((request.raw_path, request.query, request.body)).lower()
        if any(attack in text for attack in _ATTACKS):
            raise ForbiddenError
        admit(request)

    service.access.admit = admit_harmless


def knows_no_path_with_odd_numbers(service: Service) -> None:
    """Answer with the page of a router where the id of a rule, merge request or target is no row of digits."""

    def routed(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def handled(request: Request) -> Response:
            numbers = [text for name, text in request.path.items() if name.endswith(("_id", "_iid"))]
            if all(text.isascii() and text.isdigit() for text in numbers):
                return handler(request)
            return Response(404, raw=_PAGE, media_type="text/html")

        return handled

    for route in list(service.routes):
        if "_id" in route.path or "_iid" in route.path:
            service.routes.change(route.key, handler=routed(route.handler))


def wants_more_than_a_cookie(service: Service) -> None:
    """Give everybody a cookie, and refuse writes of whoever sends it without what protects a session in a browser."""
    admit = service.access.admit

    def admit_without_cookie(request: Any) -> None:
        if request.header("cookie") and request.method != "GET":
            raise ForbiddenError("403 Forbidden - the request cannot be verified")
        admit(request)

    service.access.admit = admit_without_cookie
    transform(service, lambda _, __, answer: answer.headers.update({"set-cookie": "visitor=17; Path=/"}))


def names_another_charset(service: Service) -> None:
    """Name a character set beside the type of JSON, where it has no meaning: the text is UTF-8 all the same."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.media_type == "application/json":
            answer.media_type = "application/json; charset=iso-8859-1"

    transform(service, change)


def adds_odd_fields(service: Service) -> None:
    """Add fields to each object that is answered, with numbers and texts that few parsers expect."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.has_content and isinstance(answer.content, dict) and answer.content:
            text = json.dumps(answer.content, ensure_ascii=False).encode()
            answer.raw, answer.has_content = b"{%b,%b" % (_ODD, text[1:]), False

    transform(service, change)


VARIANTS = (
    Variant(
        "stands-behind-a-firewall",
        "A firewall refuses what looks like an attack, and a router knows no path with odd numbers.",
        alterations=(refuses_what_looks_like_an_attack, knows_no_path_with_odd_numbers),
    ),
    Variant(
        "cookies-are-not-enough",
        "Everybody gets a cookie, and who sends it along may not write.",
        alterations=(wants_more_than_a_cookie,),
    ),
    Variant(
        "charset-of-another",
        "JSON names a character set that it does not have.",
        alterations=(names_another_charset,),
    ),
    Variant(
        "odd-fields",
        "Objects hold numbers without bounds, halves of characters and deep lists.",
        alterations=(adds_odd_fields,),
        alone="its text is written by hand, and others see no content",
    ),
)
