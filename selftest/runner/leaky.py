"""A pytest plugin that breaks where secrets are in local variables, and a service that repeats secrets in every way."""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route


def ways(secret: str) -> Iterator[str]:
    """Yield a secret in every way in which a server may write it."""
    data = secret.encode()
    yield secret
    yield f"Authorization: Bearer {secret}"
    yield quote(secret, safe="")
    yield "".join(f"%{byte:02x}" for byte in data)
    yield "".join(f"\\u{byte:04x}" for byte in data)
    yield json.dumps(json.dumps({"token": secret}))
    for before in ("", "u", "us", "user:"):
        yield base64.b64encode(before.encode() + data + b":x").decode()
        yield base64.urlsafe_b64encode(before.encode() + data).decode()
    yield base64.encodebytes(data * 4).decode()
    yield data.hex()
    yield f"{secret[:7]}\n    {secret[7:]}"
    yield "\n".join(secret)


def echo(_: Route, request: Request, response: Response) -> Response:
    """Repeat the token of the caller in the body, in an extra field and in place of stated values."""
    token = request.header("private-token")
    if token and isinstance(response.content, dict):
        response.content["inbound_enabled"] = list(ways(token))
        response.content.update({way: way for way in ways(token)})
        response.headers["x-echo"] = quote(token)
    return response


@pytest.fixture(autouse=True)
def _breaks(request: pytest.FixtureRequest) -> None:
    if request.node.name == "test_switching_the_limit_on_and_off_shows_in_the_settings":
        secret = os.environ["LEAKED"]
        for stream in (sys.stdout, sys.stderr):
            print(secret, list(ways(secret)), file=stream)
        logging.getLogger("leaky").error("%s", list(ways(secret)), exc_info=KeyError(secret))
        raise RuntimeError(list(ways(secret)))
