"""An exchange with the target as reports show it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from conformance.results.record import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.http.client import Client
    from conformance.http.exchange import Call, Exchange

_SHOWN_BODY = 4000


def evidence_of(exchange: Exchange, client: Client) -> Evidence:
    """Return an exchange of a client without token and password, its bodies cut to a readable length."""
    call, shown = exchange.call, client.redaction.text
    target = _without_query(call.target) if call.is_elsewhere else f"/api/v4{call.target}"
    return Evidence(
        actor=call.actor.name if call.actor else "anonymous",
        request=shown(f"{call.method} {target}"),
        request_body=_beginning(call.body, shown) if call.body else None,
        status=exchange.status,
        response_body=_beginning(exchange.body, shown) if exchange.body else shown(exchange.problem or ""),
        milliseconds=round(exchange.seconds * 1000, 1),
        curl=shown(_curl(call, client.address(call))),
    )


def _curl(call: Call, address: str) -> str:
    """Return a command that repeats a call; tokens are variables of the shell."""
    parts = ["curl", "-i", "-X", call.method]
    if call.actor is not None and not any(name.lower() == "authorization" for name in call.headers):
        parts += ["-H", f'"PRIVATE-TOKEN: {call.actor.variable}"']
    for name, value in call.headers.items():
        parts += ["-H", shlex.quote(f"{name}: {value}")]
    if call.body is not None:
        parts += ["--data-binary", shlex.quote(call.body.decode("utf-8", "replace"))]
    parts.append(shlex.quote(_without_query(address) if call.is_elsewhere else address))
    return " ".join(parts)


def _without_query(address: str) -> str:
    """Leave out the query of an address that a redirect gave: what is signed there is as good as a password."""
    path, mark, _ = address.partition("?")
    return f"{path}{mark}{'...' if mark else ''}"


def _beginning(body: bytes, shown: Callable[[str], str]) -> str:
    text = shown(body[: _SHOWN_BODY + 500].decode("utf-8", "replace"))
    return text if len(text) <= _SHOWN_BODY else f"{text[:_SHOWN_BODY]} ... ({len(body)} bytes)"
