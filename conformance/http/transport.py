"""The transport of the HTTP library: calls that end in time and in bounds, on connections that are kept open."""

from __future__ import annotations

import ssl
import time
from collections import defaultdict
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpcore
import httpx

from conformance.errors import UsageError
from conformance.http.exchange import READING
from conformance.http.network import WITHOUT_END, Deadline, Network, Stream
from conformance.http.redaction import beginning
from conformance.http.unpacking import BodyError

if TYPE_CHECKING:
    from conformance.http.settings import ClientSettings

#: Answers are read up to this size in bytes unless more is wanted; what is longer shows nothing. Many answers are kept
#: at a time, so the sum is what matters.
LARGEST_BODY = 2 * 1024 * 1024
_LONGEST_EXCESS = 1000
_SHOWN_PROBLEM = 200
#: What may follow a 204 without being a body of it: the end of no chunks, or another answer that nobody asked for.
_NO_BODY = (b"0\r\n\r\n", b"HTTP/")
#: What the library below raises when a call comes to nothing, and what httpx calls it.
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


class NotSentError(Exception):
    """A safe mode keeps a call from leaving the process: whoever wanted to send it has a mistake."""


class IncompleteAnswerError(httpx.RemoteProtocolError):
    """An answer began, and its body is not whole or not within bounds: it shows nothing."""


class BrokenOffError(IncompleteAnswerError):
    """The connection broke in the middle of an answer."""


class CutShortError(IncompleteAnswerError):
    """The time for the call was over in the middle of an answer."""


class _Answer(httpx.Response):
    @property
    def has_redirect_location(self) -> bool:
        """Say no: the library would read the address, however odd, although redirects are followed elsewhere."""
        return False


class Transport(httpx.BaseTransport):
    """
    Sends requests, each within one deadline for the whole of it. Safe to use from several threads.

    The timeouts of the library begin anew with every byte, so that a server which sends a byte now and then would hold
    a call for ever. Which connection is free is kept here, for the library's pool looks through all of them at every
    call: with many calls under way most of the time went there. Behind a proxy the library's own pool is used.

    A request may say in its extensions which `target` it is sent with, byte for byte, and how long the body of the
    answer may be (`largest_body`). The answer's body is complete, and packed as it was sent.
    """

    def __init__(self, settings: ClientSettings) -> None:
        """Prepare connections; nothing is sent yet. Raise UsageError when a certificate cannot be read."""
        self._settings = settings
        self._deadline = Deadline()
        self._network = Network(self._deadline)
        self._free: defaultdict[tuple[bytes, bytes, int], list[httpcore.HTTPConnection]] = defaultdict(list)
        if settings.base_url.startswith("https://") or settings.client_certificate:
            _ = self._tls  # so that a wrong file is told now
        self._proxy = self._proxied(settings.proxy) if settings.proxy else None

    def close(self) -> None:
        """Close all connections that no call uses."""
        if self._proxy:
            self._proxy.close()
        for free in self._free.values():
            while free:
                free.pop().close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """
        Send a request and return the whole answer; raise httpx.TransportError when there is none.

        Raise NotSentError when the target is only to be read and the request would do more.
        """
        if self._settings.only_reads and request.method not in READING:
            raise NotSentError(f"{request.method} was not sent: the target is only to be read")
        self._deadline.at = time.monotonic() + self._settings.timeout_seconds
        url, extensions = request.url, request.extensions
        address = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=extensions.get("target", url.raw_path)
        )
        sent = httpcore.Request(request.method, address, headers=request.headers.raw, content=request.stream)
        try:
            response, body = self._answer(sent, extensions.get("largest_body", LARGEST_BODY))
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
        response = connection.handle_request(request)
        try:
            return response, _whole_body(request, response, largest)
        finally:
            response.close()
            if connection.is_idle():
                free.append(connection)

    def _open(self, free: list[httpcore.HTTPConnection], origin: httpcore.Origin) -> httpcore.HTTPConnection:
        """Return the connection that was free last, if the other side still has it open, and otherwise a new one."""
        while free:
            try:
                connection = free.pop()
            except IndexError:  # another thread took the last one
                break
            if not connection.has_expired():
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
        """What is trusted and shown in TLS; made when it is needed, for reading the authorities takes its time."""
        context, own = self._trusted(), self._settings.client_certificate
        if own is not None:
            try:
                # Without a password the library would ask for one at the terminal.
                context.load_cert_chain(own.file, own.key, own.password or "")
            except OSError as error:
                raise UsageError(f"The client certificate {own.file} cannot be read: {error}.") from error
        return context

    def _trusted(self) -> ssl.SSLContext:
        known = self._settings.certificates
        if not isinstance(known, str):
            return httpx.create_ssl_context(verify=known, trust_env=False)
        try:
            return ssl.create_default_context(cafile=known)
        except OSError as error:
            raise UsageError(f"The certificates in {known} cannot be read: {error}.") from error


def in_short(error: Exception) -> str:
    """Say in a line what went wrong: libraries quote what they did not understand, however long it is."""
    text = str(error) or type(error).__name__
    return beginning(text, _SHOWN_PROBLEM)


def _as_httpx(error: Exception) -> httpx.TransportError:
    kind = next(known for known in _ERRORS if isinstance(error, known))
    return _ERRORS[kind](in_short(error))


def _whole_body(request: httpcore.Request, response: httpcore.Response, most: int) -> bytes:
    """Return the body of an answer; raise IncompleteAnswerError when it does not come whole, in bounds and in time."""
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
    """
    Read a body, at most so many bytes of it, and leave no connection in use that brought more than the answer.

    HTTP takes a 204 for finished after its head, so whatever body it has comes after its end; where a length is
    announced and nothing there yet, question marks stand for it.
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
    """Return the length of a body as its head tells it; None where it comes in chunks."""
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
