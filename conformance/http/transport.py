"""Addresses, and the transport of the HTTP library: it limits time and size of calls, and keeps connections open."""

from __future__ import annotations

import base64
import ssl
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import httpcore
import httpx

from conformance.http.exchange import READING
from conformance.http.network import WITHOUT_END, Deadline, Network, Stream
from conformance.http.redaction import beginning
from conformance.http.unpacking import BodyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.http.settings import ClientSettings

#: Headers as they are sent, by name in lower case.
Headers = dict[str, tuple[bytes, bytes]]

#: Answers are JSON, but for the export and the stream. Some frameworks redirect wrong input unless JSON comes first.
_ALWAYS_SENT = {"Accept": "application/json, */*;q=0.8", "Accept-Encoding": "gzip, deflate"}
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

    def request(self, method: str, rest: str, headers: Headers, body: bytes | None, limits: Limits) -> httpx.Request:
        """Return a request for a path below this address, with the limits of its answer.

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
            extensions={"timeout": _NO_TIMEOUT, "target": self.start + rest.encode(), "limits": limits},
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """How large an answer may be, and how long it may take."""

    largest_body: int
    """In bytes."""
    seconds: float
    """From connecting to the last byte."""


def encoded(headers: Mapping[str, str]) -> Headers:
    """Return headers in the form in which they are sent."""
    return {name.lower(): (name.encode(), value.encode()) for name, value in headers.items()}


# -- the transport -----------------------------------------------------------------------------------------------------


#: Size limit of answers in bytes, unless more is wanted; longer answers are useless. Many answers are kept at a time,
#: so their sum matters.
LARGEST_BODY = 2 * 1024 * 1024
_LONGEST_EXCESS = 1000
_SHOWN_PROBLEM = 200
#: What may follow a 204 without being its body: the end of zero chunks, or another answer that nobody asked for.
_NO_BODY = (b"0\r\n\r\n", b"HTTP/")
#: The exceptions of the library below, with those of httpx that replace them.
_ERRORS: dict[type[Exception], type[httpx.TransportError]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.PoolTimeout: httpx.PoolTimeout,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.ProxyError: httpx.ProxyError,
    httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
    OSError: httpx.NetworkError,
}


#: A connection without a call, and what it reads from.
_Free = tuple[httpcore.HTTPConnection, httpcore.NetworkStream]


class NotSentError(Exception):
    """A safe mode does not let this call be sent: the caller has a bug."""


class IncompleteAnswerError(httpx.RemoteProtocolError):
    """An answer began, but its body is incomplete or too large, so it is useless."""


class BrokenOffError(IncompleteAnswerError):
    """The connection broke in the middle of an answer."""


class CutShortError(IncompleteAnswerError):
    """The time for the call ended in the middle of an answer."""


class _Answer(httpx.Response):
    @property
    def has_redirect_location(self) -> bool:
        """Return False, because the library would parse even an invalid address; redirects are followed elsewhere."""
        return False


class Transport(httpx.BaseTransport):
    """Sends requests, each with one deadline for the whole call. Safe to use from several threads.

    The library's timeouts restart with every byte, so a server that sends a byte now and then could hold a call for
    ever. This class itself keeps track of free connections, because the library's pool searches all of them at every
    call, which took most of the time with many calls at once. Behind a proxy the library's own pool is used.

    The extensions of a request may contain its `target`, which is sent unchanged, and the `limits` of its answer. The
    answer's body is complete, and still encoded.
    """

    def __init__(self, settings: ClientSettings) -> None:
        """Prepare connections; nothing is sent yet."""
        self._settings = settings
        self._deadline = Deadline()
        self._network = Network(self._deadline)
        self._free: defaultdict[tuple[bytes, bytes, int], list[_Free]] = defaultdict(list)
        if settings.base_url.startswith("https://") or settings.client_certificate:
            _ = self._tls  # so that an invalid file is reported now
        self._proxy = self._proxied(settings.proxy) if settings.proxy else None

    def close(self) -> None:
        """Close all unused connections."""
        if self._proxy:
            self._proxy.close()
        for free in self._free.values():
            while free:
                free.pop()[0].close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the complete answer; raise httpx.TransportError when there is none.

        Raise NotSentError for a request that may write when the target may only be read.
        """
        if self._settings.only_reads and request.method not in READING:
            raise NotSentError(f"{request.method} was not sent: the target is only to be read")
        limits: Limits = request.extensions.get("limits") or Limits(LARGEST_BODY, self._settings.timeout_seconds)
        self._deadline.at = time.monotonic() + limits.seconds
        url, extensions = request.url, request.extensions
        address = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=extensions.get("target", url.raw_path)
        )
        sent = httpcore.Request(request.method, address, headers=request.headers.raw, content=request.stream)
        try:
            response, body = self._answer(sent, limits.largest_body)
        except tuple(_ERRORS) as error:
            raise _as_httpx(error) from error
        told = {name: value for name, value in response.extensions.items() if name != "network_stream"}
        return _Answer(response.status, headers=response.headers, stream=httpx.ByteStream(body), extensions=told)

    def _answer(self, request: httpcore.Request, largest: int) -> tuple[httpcore.Response, bytes]:
        """Return the answer to a request, and its body."""
        if self._proxy is not None:
            response = self._proxy.handle_request(request)
            try:
                return response, _whole_body(request, response, largest)
            finally:
                response.close()
        origin = request.url.origin
        free = self._free[origin.scheme, origin.host, origin.port]
        connection = self._open(free, origin)
        try:
            response = connection.handle_request(request)
        except httpcore.ConnectionNotAvailable:
            # HTTP/2 says of a call on a used connection that it came too late and was not handled.
            connection.close()
            return self._answer(request, largest)
        try:
            return response, _whole_body(request, response, largest)
        finally:
            response.close()
            if connection.is_idle():
                free.append((connection, response.extensions["network_stream"]))

    def _open(self, free: list[_Free], origin: httpcore.Origin) -> httpcore.HTTPConnection:
        """Return the last connection that became free, if the other side still has it open; otherwise a new one."""
        while free:
            try:
                connection, stream = free.pop()
            except IndexError:  # another thread took the last one
                break
            # What can be read, and is of no answer, is nearly always the end; HTTP/2 does not look for it by itself.
            if not connection.has_expired() and not stream.get_extra_info("is_readable"):
                return connection
            connection.close()
        tls = self._tls if origin.scheme == b"https" else None
        return httpcore.HTTPConnection(
            origin, ssl_context=tls, http2=self._settings.http2, network_backend=self._network
        )

    def _proxied(self, address: str) -> httpcore.HTTPProxy:
        proxy = httpx.Proxy(address)
        return httpcore.HTTPProxy(
            proxy_url=httpcore.URL(
                scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=b"/"
            ),
            proxy_auth=proxy.raw_auth,
            ssl_context=self._tls,
            proxy_ssl_context=self._trusted() if proxy.url.scheme == "https" else None,
            max_connections=None,
            http2=self._settings.http2,
            network_backend=self._network,
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The TLS settings, created at their first use because reading the authorities takes time."""
        context, own = self._trusted(), self._settings.client_certificate
        if own is not None:
            own.load_into(context)
        return context

    def _trusted(self) -> ssl.SSLContext:
        known = self._settings.certificates
        if not isinstance(known, str):
            return httpx.create_ssl_context(verify=known, trust_env=False)
        context = ssl.create_default_context(cafile=known)
        # From Python 3.13 on, certificates without a key identifier are refused. Those of an authority that the profile
        # names are often older, and a target must not fail with one Python and hold with another.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def in_short(error: Exception) -> str:
    """Describe an error in one line; libraries quote what they could not parse, however long it is."""
    text = str(error) or type(error).__name__
    return beginning(text, _SHOWN_PROBLEM)


def _as_httpx(error: Exception) -> httpx.TransportError:
    kind = next(known for known in _ERRORS if isinstance(error, known))
    advice = "; if it is of an authority of yours, name its file in the profile (certificates: FILE)"
    return _ERRORS[kind](in_short(error) + (advice if "CERTIFICATE_VERIFY_FAILED" in str(error) else ""))


def _whole_body(request: httpcore.Request, response: httpcore.Response, most: int) -> bytes:
    """Return the body of an answer; raise IncompleteAnswerError when it is incomplete, too large or too late."""
    begun = f"status {response.status}, but the body"
    try:
        return _read(request, response, most)
    except BodyError as error:
        raise IncompleteAnswerError(f"{begun} {error}") from error
    except httpcore.TimeoutException as error:
        raise CutShortError(f"{begun} did not end in time") from error
    except tuple(_ERRORS) as error:
        raise BrokenOffError(f"{begun} broke off: {in_short(error)}") from error


def _read(request: httpcore.Request, response: httpcore.Response, most: int) -> bytes:
    """Read a body up to a size, and close the connection if it received more than the answer.

    For HTTP, a 204 ends after its head, so a body comes after the end of the answer; when its length is announced and
    nothing has arrived yet, question marks replace it.
    """
    stream = response.extensions["network_stream"]
    if isinstance(stream, Stream):
        stream.expect(_length(request, response))
    body = bytearray()
    for chunk in response.iter_stream():
        body += chunk
        if len(body) > most:
            raise BodyError(f"is longer than {most} bytes")
    if response.status != HTTPStatus.NO_CONTENT:
        return bytes(body)
    excess = bytes(body) or stream.excess[:_LONGEST_EXCESS] or b"?" * min(_announced(response) or 0, _LONGEST_EXCESS)
    if excess or _value(response, b"transfer-encoding") is not None:
        stream.close()
    return b"" if excess.startswith(_NO_BODY) else excess


def _length(request: httpcore.Request, response: httpcore.Response) -> int | None:
    """Return the length of a body according to its head; None when it comes in chunks."""
    if request.method == b"HEAD" or response.status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        return 0
    if _value(response, b"transfer-encoding") is not None:
        return None
    announced = _announced(response)
    return WITHOUT_END if announced is None else announced


def _announced(response: httpcore.Response) -> int | None:
    value = _value(response, b"content-length")
    return int(value) if value is not None and value.isdigit() else None


def _value(response: httpcore.Response, wanted: bytes) -> bytes | None:
    return next((value for name, value in response.headers if name.lower() == wanted), None)
