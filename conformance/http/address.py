"""Server addresses, and the requests that are sent to them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Headers as they are sent, by name in lower case.
Headers = dict[str, tuple[bytes, bytes]]

_ALWAYS_SENT = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_NO_TIMEOUT: Mapping[str, float | None] = {}


@dataclass(frozen=True, slots=True)
class Address:
    """A server, the path prefix of all calls, and the headers of all calls."""

    url: httpx.URL
    start: bytes
    """The beginning of each path, or the whole path."""
    headers: Headers

    @classmethod
    def of(cls, url: str, headers: Mapping[str, str] | None = None) -> Address:
        """Parse an address and its headers; raise httpx.InvalidURL when it cannot be called."""
        found = httpx.URL(url)
        if found.scheme not in ("http", "https") or not found.raw_host:
            raise httpx.InvalidURL(f"{found.scheme or 'no scheme'} is not http or https")
        sent = {"host": (b"Host", found.netloc), **encoded(_ALWAYS_SENT)}
        if found.userinfo:
            name, _, password = found.userinfo.partition(b":")
            said = unquote_to_bytes(name) + b":" + unquote_to_bytes(password)
            sent["authorization"] = (b"Authorization", b"Basic " + base64.b64encode(said))
        server = httpx.URL(f"{found.scheme}://{found.netloc.decode('ascii')}")
        return cls(server, found.raw_path, {**sent, **encoded(headers or {})})

    def request(self, method: str, rest: str, headers: Headers, body: bytes | None, largest: int) -> httpx.Request:
        """Return a request for a path below this address; its answer may have at most `largest` bytes.

        `rest` is already encoded and sent unchanged. All headers are set here, because otherwise the library would look
        for missing ones at every call.
        """
        sent = {**self.headers, **headers}
        if (body or method in _WITH_BODY) and "content-length" not in sent:
            sent["content-length"] = (b"Content-Length", str(len(body or b"")).encode())
        return httpx.Request(
            method,
            self.url,
            headers=list(sent.values()),
            stream=httpx.ByteStream(body or b""),
            # The transport limits the time of the whole call.
            extensions={"timeout": _NO_TIMEOUT, "target": self.start + rest.encode(), "largest_body": largest},
        )


def encoded(headers: Mapping[str, str]) -> Headers:
    """Return headers in the form in which they are sent."""
    return {name.lower(): (name.encode(), value.encode()) for name, value in headers.items()}
