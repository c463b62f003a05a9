"""Variants in statuses, in errors and in answers to successful calls, and the alterations that make them."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.choices import Choices, ErrorShape, OutOfRange, Repeat
from conformance.reference.errors import StatedError
from conformance.reference.http import Request, Response
from conformance.reference.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

_SUCCESS = range(200, 300)
#: Operations whose responses the text does not show, by the end of their paths.
_UNSHOWN = ("/unapprove", "/reset_approvals", "/integrations/:slug", "/services/:slug")
#: Short, because hundreds of calls are waited for.
_ACCEPTED_SECONDS = 0.02
#: How long a change takes, and others are refused.
_CHANGE_SECONDS = 0.005
#: Operations whose responses the text does not show, so they may be accepted first and done later.
_ACCEPTED = (
    "PUT /projects/:id/merge_request_approval_setting",
    "PUT /projects/:id/integrations/:slug",
    "DELETE /projects/:id/integrations/:slug",
    "DELETE /projects/:id/approval_rules/:approval_rule_id",
    "DELETE /projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id",
    "POST /projects/:id/merge_requests/:merge_request_iid/unapprove",
    "PUT /projects/:id/merge_requests/:merge_request_iid/reset_approvals",
)


def sends_strangers_to_a_login(service: Service) -> None:
    """Redirect callers without a valid token to a page that everybody can read; combined with the status 302."""

    def page(_: Request) -> Response:
        return Response(raw=b"<html><body>Who are you?</body></html>", media_type="text/html")

    service.routes.put(Route("GET", "/users/sign_in", page, anonymous=True, prefixed=False))

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == service.choices.anonymous_code:
            answer.headers.setdefault("location", "/users/sign_in")

    transform(service, change)


def redirects_unless_json_is_wanted(service: Service) -> None:
    """Redirect wrong input and callers without a token, unless JSON is the first thing that they accept."""

    def change(_: Route, request: Request, answer: Response) -> None:
        is_wrong = answer.status in {service.choices.invalid_code, service.choices.anonymous_code}
        if is_wrong and "/json" not in request.header("accept").partition(",")[0]:
            answer.status, answer.headers["location"] = 302, "/"

    transform(service, change)


def says_where_things_are(service: Service) -> None:
    """Send a Location header with everything that was created, although no redirect is meant."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == 201:  # noqa: PLR2004 - HTTP's own number
            answer.headers["location"] = "https://elsewhere.example.org/new"

    transform(service, change)


def talks_where_nothing_is_shown(service: Service) -> None:
    """Answer with a word of plain text where the text shows no response."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.method != "GET" and route.path.endswith(_UNSHOWN) and answer.status in _SUCCESS:
            answer.status, answer.raw, answer.has_content = 200, b"Done.\n", False
            answer.media_type = "text/plain"

    transform(service, change)


def does_later_what_it_accepts(service: Service) -> None:
    """Answer 202 where the text shows no response, and show the change a moment later, or to the next writer."""
    due: deque[tuple[float, Callable[[], object]]] = deque()

    def catch_up(*, everything: bool) -> None:
        while due and (everything or service.clock.seconds() >= due[0][0]):
            due.popleft()[1]()

    def accepting(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            catch_up(everything=True)
            before = service.store.snapshot()
            handler(request)
            after = service.store.snapshot()
            service.store.restore(before)
            due.append((service.clock.seconds() + _ACCEPTED_SECONDS, lambda: service.store.restore(after)))
            return Response(202, {"message": "202 Accepted"}, has_content=True)

        return answer

    def others(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            catch_up(everything=request.method != "GET")
            return handler(request)

        return answer

    for route in list(service.routes):
        later = route.key.replace("/services", "/integrations") in _ACCEPTED
        service.routes.change(route.key, handler=(accepting if later else others)(route.handler))


def refuses_changes_that_collide(service: Service) -> None:
    """Refuse a change while another one to the same project or group is being made: 409 for POST, 423 otherwise."""
    busy: set[tuple[str, str]] = set()

    async def wait(request: Request) -> None:
        if request.method == "GET" or "id" not in request.path:
            return
        place = request.route.path.split("/")[1], request.path["id"]
        if place in busy:
            raise StatedError(409 if request.method == "POST" else 423, "is being changed by somebody else")
        busy.add(place)
        try:
            await asyncio.sleep(_CHANGE_SECONDS)
        finally:
            busy.discard(place)

    service.interruption = wait


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "changes-collide",
        "Of two changes to one project or group at the same moment, the later one is refused: 409 or 423.",
        alterations=(refuses_changes_that_collide,),
    ),
    Variant(
        "hides-what-it-refuses",
        "Every refusal is a 404, as if nothing were there.",
        replace(
            _PLAIN,
            anonymous_code=404,
            forbidden_code=404,
            invalid_code=404,
            rejected_code=404,
            repeated_code=404,
            approval_refused_code=404,
            error_shape=ErrorShape.ERROR,
        ),
    ),
    Variant(
        "unprocessable-problems",
        "Invalid input is a 422, errors are problem documents, and no rule asks for more than six approvals.",
        replace(
            _PLAIN,
            largest_approvals_required=6,
            invalid_code=422,
            rejected_code=422,
            repeated_code=409,
            wrong_method_code=404,
            absent_route_code=410,
            hidden_code=403,
            missing_code=422,
            too_large_code=400,
            unsupported_media_code=406,
            integration_not_creatable_code=400,
            error_shape=ErrorShape.PROBLEM,
        ),
    ),
    Variant(
        "says-nothing-in-errors",
        "Errors have no body, and pages are short and have no headers.",
        replace(
            _PLAIN,
            error_shape=ErrorShape.EMPTY,
            pagination_headers=False,
            max_per_page=3,
            page_past_the_end=OutOfRange.REFUSE,
            anonymous_code=403,
        ),
    ),
    Variant(
        "plain-text-errors",
        "Errors are plain text.",
        replace(_PLAIN, error_shape=ErrorShape.TEXT, forbidden_code=401, hidden_code=403, absent_unapproval_code=409),
    ),
    Variant(
        "always-200",
        "Whatever is created, approved or reset answers 200.",
        replace(
            _PLAIN,
            created_code=200,
            approved_code=200,
            unapproved_code=200,
            approvals_reset_code=200,
            rule_deleted_code=200,
            integration_deleted_code=200,
        ),
    ),
    Variant(
        "created-and-silent",
        "Updates answer 201, and nothing is said where the text shows no body.",
        replace(
            _PLAIN,
            updated_code=201,
            unapproved_code=204,
            approvals_reset_code=204,
            integration_deleted_code=202,
            unshown_bodies=False,
            repeated_addition=Repeat.ACCEPT,
            repeated_addition_code=204,
        ),
    ),
    Variant(
        "repeats-are-fine",
        "Adding, removing, approving and disabling again succeed.",
        replace(
            _PLAIN,
            repeated_addition=Repeat.ACCEPT,
            absent_removal=Repeat.ACCEPT,
            repeated_approval=Repeat.ACCEPT,
            absent_unapproval=Repeat.ACCEPT,
            absent_integration_disabled=Repeat.ACCEPT,
            unknown_export_relation=Repeat.ACCEPT,
            repeated_rule_name=Repeat.REFUSE,
        ),
    ),
    Variant(
        "sends-strangers-to-a-login",
        "Who sends no token is redirected to a page to log in; endpoints that are gone are not allowed.",
        replace(_PLAIN, anonymous_code=302, absent_route_code=405, approval_refused_code=403, repeated_code=409),
        alterations=(sends_strangers_to_a_login,),
    ),
    Variant(
        "redirects-unless-json-is-wanted",
        "Wrong input and missing tokens are redirected, unless JSON is the first that the caller accepts.",
        alterations=(redirects_unless_json_is_wanted,),
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
        "forbids-what-is-not-there",
        "What does not exist, or not any more, is forbidden like what a caller has no role in.",
        replace(_PLAIN, hidden_code=403, missing_code=403, forbidden_code=403),
    ),
    Variant(
        "says-where-things-are",
        "What was created has an address in a header.",
        alterations=(says_where_things_are,),
    ),
    Variant(
        "talks-where-nothing-is-shown",
        "Where no answer is shown there is a word of plain text.",
        alterations=(talks_where_nothing_is_shown,),
    ),
    Variant(
        "accepted-and-done-later",
        "Where no answer is shown a call is accepted, and done a moment later.",
        alterations=(does_later_what_it_accepts,),
        alone="another answer than 202 would not say that something is done later",
    ),
)
