"""An exchange with the target in the form that reports show."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from conformance.http.settings import without_userinfo
from conformance.results.record import Evidence
from conformance.target.fit_secrets import may_be_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.http.client import Client
    from conformance.http.exchange import Call, Exchange
    from conformance.http.settings import ClientSettings

_SHOWN_BODY = 4000


def evidence_of(exchange: Exchange, client: Client) -> Evidence:
    """Return an exchange of a client without token and password, its bodies cut to a readable length."""
    call, shown = exchange.call, client.redaction.text
    target = _without_query(call.target) if call.is_elsewhere else f"/api/v4{call.target}"
    return Evidence(
        actor=call.caller,
        request=shown(f"{call.method} {target}"),
        request_body=_beginning(call.body, shown) if call.body else None,
        status=exchange.status,
        response_body=_beginning(exchange.body, shown) if exchange.body else shown(exchange.problem or ""),
        milliseconds=round(exchange.seconds * 1000, 1),
        curl=shown(_curl(call, client)),
    )


def _curl(call: Call, client: Client) -> str:
    """Return a curl command that repeats a call; tokens and other secrets are shell variables."""
    before, body = _body(call, client)
    address = client.address(call)
    shown = _without_query(address) if call.is_elsewhere else without_userinfo(address)
    parts = [f"{before}curl", "-i", *(["--head"] if call.method == "HEAD" else ["-X", call.method])]
    parts += _way(client.settings) if not call.is_elsewhere else []
    parts += [f"-H {header}" for header in _headers(call, client)]
    parts += body
    # Otherwise curl would read them as patterns of several addresses, or shorten them.
    parts += ["-g"] if set("[]{}") & set(shown) else []
    parts += ["--path-as-is"] if "/." in shown else []
    return " ".join([*parts, _quoted(shown, client)])


def _quoted(text: str, client: Client) -> str:
    """Return a text as one word for the shell, with a variable for each secret."""
    words = []
    for part, secret in client.redaction.parts(text):
        if secret is None:
            words.append(shlex.quote(part) if part else "")
            continue
        variable = client.settings.variables.get(secret, "$SECRET")
        # If a secret is escaped there, for example the quotes in JSON, the shell cannot produce that from the variable.
        words.append(f'"{variable}"' if part == secret else f'"{variable}_AS_SENT"')
    return "".join(words) or "''"


def _headers(call: Call, client: Client) -> Iterator[str]:
    """Yield the headers of a call, quoted for the shell."""
    settings = client.settings
    given = {name.lower() for name in call.headers}
    for name, value in settings.headers.items() if not call.is_elsewhere else ():
        if name.lower() not in given:
            variable = "$HEADER_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
            yield f'"{name}: {variable}"' if may_be_key(value) else shlex.quote(f"{name}: {value}")
    if call.actor is not None and not given & {"authorization", "private-token"}:
        yield f'"PRIVATE-TOKEN: {call.actor.variable}"'
    for name, value in call.headers.items():
        line = f"{name}: {value}" if value else f"{name};"  # curl leaves out a header without a value
        if call.actor is not None and call.actor.token in value:
            around = [shlex.quote(part) if part else "" for part in line.split(call.actor.token)]
            yield f'"{call.actor.variable}"'.join(around)
        else:
            yield _quoted(line, client)
    if call.body is not None and "content-type" not in given:
        yield "Content-Type:"  # curl would add one


def _way(settings: ClientSettings) -> Iterator[str]:
    """Yield the curl options for the same route to the target; passwords are shell variables."""
    for url, option, variable in (
        (settings.base_url, "-u", "$BASE_URL_PASSWORD"),
        (settings.proxy or "", "--proxy-user", "$PROXY_PASSWORD"),
    ):
        if user := urlsplit(url).username:
            yield f'{option} {shlex.quote(unquote(user))}:"{variable}"'
    if settings.proxy is not None:
        yield f"--proxy {shlex.quote(without_userinfo(settings.proxy))}"
    if settings.certificates is False:
        yield "--insecure"
    elif isinstance(settings.certificates, str):
        yield f"--cacert {shlex.quote(settings.certificates)}"
    if settings.client_certificate is not None:
        yield f"--cert {shlex.quote(settings.client_certificate.file)}"
        yield from [f"--key {shlex.quote(key)}"] if (key := settings.client_certificate.key) else []


def _body(call: Call, client: Client) -> tuple[str, list[str]]:
    """Return the part before the command, and the curl options, that send a body unchanged."""
    if call.body is None:
        return "", []
    try:
        text = call.body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # which no argument can contain
        octal = "".join(f"\\{byte:03o}" for byte in call.body)
        return f"printf '{octal}' | ", ["--data-binary", "@-"]
    return "", ["--data-raw", _quoted(text, client)]


def _without_query(address: str) -> str:
    """Remove the query from an address that a redirect gave, because a signature there is as secret as a password."""
    path, mark, _ = address.partition("?")
    return f"{path}{mark}{'...' if mark else ''}"


def _beginning(body: bytes, shown: Callable[[str], str]) -> str:
    text = shown(body[: _SHOWN_BODY + 500].decode("utf-8", "replace"))
    return text if len(text) <= _SHOWN_BODY else f"{text[:_SHOWN_BODY]} ... ({len(body)} bytes)"
