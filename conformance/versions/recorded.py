"""Recorded calls, read from the entries of a HAR file, and split into pieces that can be validated."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from conformance.http.bodies import in_part, json_in
from conformance.http.exchange import Call, Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIX = "/api/v4"
_STATUSES = 1000
_LONGEST_ADDRESS = 2**16
#: Maximum number of violations in one piece, and number of list entries that are validated in a single record that is
#: too large.
_HEAVIEST = 20_000
_PROPERTIES = 20
_ENTRIES_OF_A_LIST = 100
_NAME_OF_PART = re.compile(r'form-data; name="([^"]+)"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded call: the request, and the recorded part of the answer."""

    method: str
    path: str
    """Path below the prefix of the API; empty when the call is not to the API."""
    address: str
    """The whole path."""
    query: Mapping[str, str]
    body: Any
    """The sent body, as JSON or as the fields of a form; None without one."""
    exchange: Exchange
    has_answer: bool
    """Whether the answer was recorded with its body, so that it can be judged."""


def recorded(entry: Mapping[str, Any]) -> Recorded | None:
    """Return the API call of an entry, with an empty path when it is not to the API; None if the entry is broken."""
    request, response = entry.get("request"), entry.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict):
        return None
    method, url, status = request.get("method"), request.get("url"), response.get("status")
    if not isinstance(method, str) or not isinstance(url, str) or len(url) > _LONGEST_ADDRESS:
        return None
    if not isinstance(status, int | Decimal) or isinstance(status, bool) or not 0 <= status < _STATUSES:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    _, prefix, path = parts.path.partition(f"{_PREFIX}/")
    path = f"/{path}".rstrip("/") if prefix else ""
    query = {name.removesuffix("[]"): value for name, value in parse_qsl(parts.query, keep_blank_values=True)}
    sent = _sent_body(request.get("postData"))
    body = _response_body(response.get("content"))
    as_sent = None if sent is None else json.dumps(sent, default=str).encode()
    call = Call(actor=None, method=method.upper(), path=path, body=as_sent)
    exchange = Exchange(
        call=call, status=int(status) or None, headers=MappingProxyType({}), body=body or b"", seconds=0.0
    )
    has_answer = exchange.is_success and (body is not None or exchange.status == HTTPStatus.NO_CONTENT)
    return Recorded(call.method, path, parts.path.rstrip("/"), MappingProxyType(query), sent, exchange, has_answer)


def _sent_body(data: Any) -> Any:
    """Return the body of a request: JSON, or the fields of a form; None when it is neither."""
    if not isinstance(data, dict):
        return None
    params = data.get("params")
    if isinstance(params, list) and params:
        named = [entry for entry in params if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        return {unquote_plus(entry["name"]).removesuffix("[]"): entry.get("value") for entry in named}
    text = data.get("text")
    if not isinstance(text, str) or not text:
        return None
    kind = str(data.get("mimeType", ""))
    if "form-urlencoded" in kind:
        return {name.removesuffix("[]"): value for name, value in parse_qsl(text, keep_blank_values=True)}
    return _fields_in_parts(text) if "multipart/form-data" in kind else json_in(text)


def _fields_in_parts(text: str) -> dict[str, str]:
    """Return the fields of a form that was sent in parts, as `curl --form` does."""
    fields = {}
    for part in text.replace("\r\n", "\n").split("\n--"):
        head, _, value = part.partition("\n\n")
        named = _NAME_OF_PART.search(head)
        if named:
            fields[named[1].removesuffix("[]")] = value
    return fields


def _response_body(content: Any) -> bytes | None:
    """Return the body of an answer; None when the recording has none, or only a part of it."""
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return None
    text: str = content["text"]
    try:
        is_encoded = content.get("encoding") == "base64"
        body = base64.b64decode(text, validate=True) if is_encoded else text.encode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return None
    size = content.get("size")
    is_cut = isinstance(size, int | Decimal) and len(body) < size
    return body if not is_cut or json_in(body) is not None else None


def pieces(body: bytes) -> Iterator[bytes]:
    """Yield a body whole or, if it is too large, as lists of as many of its entries as are allowed."""
    if _weight(body) <= _HEAVIEST:
        yield body
        return
    whole = json_in(body)
    if not isinstance(whole, list):
        yield json.dumps(in_part(whole, _ENTRIES_OF_A_LIST)).encode()
        return
    piece: list[bytes] = []
    weight = 0
    for entry in whole:
        text = json.dumps(entry).encode()
        if _weight(text) > _HEAVIEST:
            text = json.dumps(in_part(entry, _ENTRIES_OF_A_LIST)).encode()
        if piece and weight + _weight(text) > _HEAVIEST:
            yield b"[%s]" % b",".join(piece)
            piece, weight = [], 0
        piece.append(text)
        weight += _weight(text) + 1
    yield b"[%s]" % b",".join(piece)


def _weight(text: bytes) -> int:
    """Estimate how many violations JSON can have: one per value, and one per property that a record lacks."""
    return text.count(b",") + text.count(b"{") * _PROPERTIES
