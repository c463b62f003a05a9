"""The ASGI application: one request in, one response out, and never a server error for a bad request."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from conformance.reference.errors import ApiError, InvalidError, ThrottledError, TooLargeError
from conformance.reference.http import Request, Response, encode, error_response, ok
from conformance.reference.parameters import MULTIPART, collect
from conformance.reference.service import LogEntry

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from conformance.reference.service import Service

__all__ = ["Application", "LogEntry", "create_app"]

_LOG = logging.getLogger("conformance.reference")
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS"})
# A body above the limit is read to its end, up to here, so that the client gets to see the refusal.
_READ_AT_MOST = 64 * 1024 * 1024


def create_app(service: Service, latency_ms: float = 0) -> ASGIApp:
    """Return the ASGI application of a service. `latency_ms` milliseconds delay every response."""
    return Application(service, latency_ms / 1000)


class Application:
    """The service behind ASGI. Handlers run between two awaits, so each request is atomic."""

    def __init__(self, service: Service, latency: float) -> None:
        self.service = service
        self._latency = latency
        self._answered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request; anything else is left alone."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        if self._latency:
            await asyncio.sleep(self._latency)
        try:
            answer, request = await self._answer(scope, receive)
        except _ClientGoneError:
            return
        try:
            body, headers = encode(answer, self.service.choices)
        except Exception:  # noqa: BLE001 - one faulty answer must never disturb another
            _LOG.exception("the response to %s %s cannot be written", scope["method"], scope["path"])
            answer = _failure()
            body, headers = encode(answer, self.service.choices)
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        for chunk in answer.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": body})
        if self.service.request_log is not None:
            self._log(scope, answer, request, time.perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[Response, Request | None]:
        service = self.service
        method = scope["method"]
        request = None
        try:
            match = service.routes.find(method, scope["raw_path"])
            request = Request(service, method, match, scope)
            if method not in _BODILESS:
                request.body = await _body(receive, match.route.max_body_bytes or service.choices.max_body_bytes)
                await _read_multipart(request)
            if service.interruption is not None:
                await service.interruption(request)
            answer = self._redirect(request) or self._handle(request)
        except _ClientGoneError:
            raise
        except ApiError as error:
            answer = error_response(error, service.choices)
        except Exception:  # noqa: BLE001 - one faulty request must never disturb another
            _LOG.exception("%s %s failed", method, scope["path"])
            answer = _failure()
        if request is not None:
            for transform in service.transformers:
                answer = transform(request.route, request, answer)
        return answer, request

    def _handle(self, request: Request) -> Response:
        every = self.service.choices.throttle_every
        self._answered += 1
        if every and self._answered % every == 0:
            raise ThrottledError
        self.service.access.admit(request)
        return request.route.handler(request)

    def _redirect(self, request: Request) -> Response | None:
        code = self.service.choices.alias_redirect_code
        newer = request.route.alias_of
        if code is None or newer is None or not self.service.routes.has(f"{request.route.method} {newer}"):
            return None
        segments = request.raw_path.decode("latin-1").split("/")
        for place, name in enumerate(newer.split("/")[1:], start=3):
            if not name.startswith(":"):
                segments[place] = name
        query = f"?{request.query.decode('latin-1')}" if request.query else ""
        return Response(code, headers={"location": "/".join(segments) + query})

    def _log(self, scope: Scope, answer: Response, request: Request | None, seconds: float) -> None:
        if self.service.request_log is None:
            return
        path = scope["raw_path"].decode("latin-1")
        if scope["query_string"]:
            path += "?" + scope["query_string"].decode("latin-1")
        caller = request.caller_name if request else ""
        self.service.request_log(LogEntry(scope["method"], path, answer.status, seconds, caller))


def _failure() -> Response:
    return ok({"message": "500 Internal Server Error"}, 500)


class _ClientGoneError(Exception):
    """The client went away before the whole request had come: what came must not be acted on."""


async def _body(receive: Receive, limit: int) -> bytes:
    """Read the whole body. Raise TooLargeError for more bytes than the limit, _ClientGoneError for too few."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size <= limit:
            parts.append(part)
        if size > _READ_AT_MOST or not message.get("more_body", False):
            break
    if size > limit:
        raise TooLargeError
    return b"".join(parts) if len(parts) > 1 else parts[0]


async def _read_multipart(request: Request) -> None:
    """Read the text fields of a multipart body, without files. Raise InvalidError when it is malformed."""
    if not request.body or not request.header("content-type").lower().startswith(MULTIPART):
        return
    # Imported here: few requests are multipart, and the import takes a noticeable part of the start.
    from starlette.datastructures import Headers  # noqa: PLC0415
    from starlette.formparsers import MultiPartException, MultiPartParser  # noqa: PLC0415

    # The parser logs every malformed body as a warning; here that is the client's business.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)

    async def stream() -> AsyncGenerator[bytes, None]:
        yield request.body

    headers = Headers({"content-type": request.header("content-type")})
    try:
        form = await MultiPartParser(headers, stream()).parse()
    except (MultiPartException, ValueError, KeyError, LookupError) as error:
        raise InvalidError("The multipart body cannot be read.") from error
    request.form = collect((name, text) for name, text in form.multi_items() if isinstance(text, str))
