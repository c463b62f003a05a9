"""What networks and gateways do to calls, as data."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conformance.proof.chaos.proxy import Passage

Act = Callable[[Passage], None]

_GATEWAY_STATUSES = ("502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout")


def _of_gateway(status: str) -> bytes:
    page = f"<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n"
    return _whole(status, "text/html", page)


def _whole(status: str, media_type: str, body: str, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return f"{head}{body}".encode()


def resets_before(call: Passage) -> None:
    """Break the connection before the service gets the call."""
    call.reset()


def resets_after(call: Passage) -> None:
    """Break the connection after the service has handled the call."""
    call.answer()
    call.reset()


def answers_for_the_service(call: Passage) -> None:
    """Answer as a gateway, with an HTML page; about every second call reaches the service before."""
    if call.chance.random() < 0.5:  # noqa: PLR2004 - every second one
        call.answer()
    call.say(_of_gateway(call.chance.choice(_GATEWAY_STATUSES)))


def finds_nothing(call: Passage) -> None:
    """Answer 404 as a gateway that has no service at the moment; the call does not reach the service."""
    call.say(_whole("404 Not Found", "text/plain; charset=utf-8", "404 page not found\n"))


def blanks(call: Passage) -> None:
    """Answer a read with 200 and no data, as a gateway that says that the answer is complete."""
    if call.request.head.startswith(b"GET "):
        call.say(_whole("200 OK", "application/json", ""))
    else:
        call.say(call.answer().whole)


def throttles(call: Passage) -> None:
    """Refuse the call as throttled."""
    call.say(_whole("429 Too Many Requests", "text/plain", "Retry later\n", "Retry-After: 1\r\n"))


def truncates(call: Passage) -> None:
    """Truncate the response in the middle of the body, or of the head if there is no body."""
    answer = call.answer()
    call.say(answer.head + answer.body[: len(answer.body) // 2] if answer.body else answer.head[:-2])
    call.reset()


def drips(call: Passage) -> None:
    """Send the body in ten parts, within two seconds."""
    answer = call.answer()
    call.say(answer.head)
    step = len(answer.body) // 10 + 1
    for start in range(0, len(answer.body), step):
        time.sleep(0.2 * call.chance.random())
        call.say(answer.body[start : start + step])


def comes_late(call: Passage) -> None:
    """Send the response after 400 to 600 ms."""
    time.sleep(call.chance.uniform(0.4, 0.6))
    call.say(call.answer().whole)


#: What may happen to a call, by name.
OF_A_CALL: Mapping[str, Act] = {
    "reset-before": resets_before,
    "reset-after": resets_after,
    "gateway": answers_for_the_service,
    "finds-nothing": finds_nothing,
    "blank": blanks,
    "throttled": throttles,
    "truncated": truncates,
    "slow-body": drips,
    "late": comes_late,
}


#: One of these at random, except those that only delay a response.
MIXED = "mixed"
_MIXED = tuple(act for name, act in OF_A_CALL.items() if name not in ("slow-body", "late"))


@dataclass(frozen=True, slots=True)
class Span:
    """What happens to the service for some seconds, repeatedly."""

    every: float
    lasting: float
    says: bytes | None = None
    """What a gateway answers in its place meanwhile; None where there are no connections."""
    spares_reads: bool = False
    """Whether reads are served as usual meanwhile."""
    forgets: bool = False
    """Whether the service begins anew afterwards, as it was when it was first started."""


_READ_ONLY = '{"message":"You cannot perform write operations on a read-only instance"}'

#: By name.
OF_A_TIME: Mapping[str, Span] = {
    "unavailable": Span(10, 2, _of_gateway(_GATEWAY_STATUSES[1])),
    "upkeep": Span(7, 1, _of_gateway("200 OK")),
    "login": Span(7, 1, _whole("302 Found", "text/plain", "", "Location: /users/sign_in\r\n")),
    "unauthorized": Span(7, 1, _whole("401 Unauthorized", "application/json", '{"message":"401 Unauthorized"}')),
    "forbidden": Span(7, 1, _whole("403 Forbidden", "application/json", '{"message":"403 Forbidden"}')),
    "same-json": Span(7, 1, _whole("200 OK", "application/json", '{"status":"maintenance"}')),
    "read-only": Span(20, 5, _whole("403 Forbidden", "application/json", _READ_ONLY), spares_reads=True),
    "no-route": Span(20, 5, _whole("404 Not Found", "application/json", '{"message":"no Route matched"}')),
    "refused": Span(60, 10),
    "restart-kept": Span(15, 1),
    "restart-lost": Span(15, 1, forgets=True),
}


@dataclass
class Disturbed:
    """A network that disturbs calls in one way, at a rate, and may repeatedly be unreachable for some seconds."""

    kind: str
    rate: float = 0.0
    """The share of calls that is disturbed."""
    _begun: float = field(default_factory=time.monotonic)

    def passes(self, call: Passage) -> str | None:
        """Disturb a call, or forward it."""
        span = OF_A_TIME.get(self.kind)
        is_spared = span is not None and span.spares_reads and call.request.head.startswith((b"GET ", b"HEAD "))
        if span is not None and span.says is not None and self._is_away(span) and not is_spared:
            call.say(span.says)
            return self.kind
        act = call.chance.choice(_MIXED) if self.kind == MIXED else OF_A_CALL.get(self.kind)
        if act is None or call.chance.random() >= self.rate:
            call.say(call.answer().whole)
            return None
        act(call)
        return self.kind

    def _is_away(self, span: Span) -> bool:
        return (time.monotonic() - self._begun) % span.every >= span.every - span.lasting
