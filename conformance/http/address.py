"""Where calls go, and the requests that are sent there."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import httpcore
import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

#: By name in lower case: a header as it is sent.
Headers = dict[str, tuple[bytes, bytes]]

_ALWAYS_SENT = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class Address:
    """A server, the beginning of each path there, and what every call has to say to it."""

    scheme: bytes
    host: bytes
    port: int | None
    start: bytes
    """What each path begins with, or the whole of it."""
    headers: Headers

    @classmethod
    def of(cls, url: str, headers: Mapping[str, str] | None = None) -> Address:
        """Read an address, to which these headers belong; raise httpx.InvalidURL when it is none that can be called."""
        found = httpx.URL(url)
        if found.scheme not in ("http", "https") or not found.raw_host:
            raise httpx.InvalidURL(f"{found.scheme or 'no scheme'} is not http or https")
        sent = {"host": (b"Host", found.netloc), **encoded(_ALWAYS_SENT)}
        if found.userinfo:
            name, _, password = found.userinfo.partition(b":")
            said = unquote_to_bytes(name) + b":" + unquote_to_bytes(password)
            sent["authorization"] = (b"Authorization", b"Basic " + base64.b64encode(said))
        return cls(found.raw_scheme, found.raw_host, found.port, found.raw_path, {**sent, **encoded(headers or {})})

    def request(self, method: str, rest: str, headers: Headers, body: bytes | None) -> httpcore.Request:
        """
        Return a request of what lies below this address.

        `rest` is encoded already, and sent as it is. The headers are complete here: nobody adds those that are missing.
        """
        sent = {**self.headers, **headers}
        if (body or method in _WITH_BODY) and "content-length" not in sent:
            sent["content-length"] = (b"Content-Length", str(len(body or b"")).encode())
        target = self.start + rest.encode()
        url = httpcore.URL(scheme=self.scheme, host=self.host, port=self.port, target=target)
        return httpcore.Request(method.upper(), url, headers=list(sent.values()), content=body or b"")


def encoded(headers: Mapping[str, str]) -> Headers:
    """Return headers as they are sent."""
    return {name.lower(): (name.encode(), value.encode()) for name, value in headers.items()}
