"""What a client must know of its target before the first call."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How many calls may be under way at once, unless the operator says otherwise.
AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate that identifies the client."""

    file: str
    """PEM file with the certificate, and with its key unless `key` names another file."""
    key: str | None = None
    password: str | None = field(default=None, repr=False)
    """The password of the key."""

    def load_into(self, context: ssl.SSLContext) -> None:
        """Let connections show it; raise OSError when it cannot be read."""
        # Without a password the library would ask for one at the terminal.
        context.load_cert_chain(self.file, self.key, self.password or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Where and how a client calls, how often and for how long; in seconds unless stated otherwise."""

    base_url: str
    """The address above /api/v4."""
    timeout_seconds: float = 30
    """The limit for the whole of one call, from connecting to the last byte."""
    requests_per_second: float | None = None
    call_wait_seconds: float = 60
    """How long one call waits and is retried when a network or a gateway prevents an answer."""
    run_wait_seconds: float = 600
    """The same limit for all calls together."""
    settle_seconds: float = 0
    """How long a read waits after a write."""
    at_once: int = AT_ONCE
    certificates: str | bool = True
    """What verifies the certificate of an https target: the usual authorities, a PEM file, or nothing."""
    client_certificate: ClientCertificate | None = None
    proxy: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Sent with every call to the target, and to no other host."""
    http2: bool = False
    only_reads: bool = False
    """Whether only GET and HEAD are sent."""
    run: str = ""
    """The name of the run, for the User-Agent."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Every text that must never reach a report."""
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """For each of these secrets, the shell variable that replaces it in a command, such as `$WEBHOOK`."""

    @property
    def api(self) -> str:
        """The address to which the paths of calls are appended."""
        return f"{self.base_url}/api/v4"

    @property
    def shown_base_url(self) -> str:
        """The base URL without a user's name and password."""
        return without_userinfo(self.base_url)


def is_address(text: str) -> bool:
    """Tell whether a text is the address of a server to which the HTTP library can send calls."""
    try:
        parts, host = urlsplit(text), httpx.URL(text).raw_host
        return parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except (ValueError, httpx.InvalidURL):  # such as an incomplete IPv6 address, or a name that no DNS can have
        return False


def without_userinfo(url: str) -> str:
    """Remove user name and password from an address."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def certificates_from(given: str | bool, source: str) -> str | bool:  # noqa: FBT001 - what the profile says
    """Return what verifies certificates; raise UsageError when it is a file that does not exist or no such one."""
    if isinstance(given, str):
        _require_file(given, source)
        try:
            ssl.create_default_context(cafile=given)
        except OSError as error:
            raise UsageError(f"{source}: the certificates in {given} cannot be read: {error}.") from error
    return given


def client_certificate_from(given: Mapping[str, str] | None, source: str) -> ClientCertificate | None:
    """Return the client's own certificate, if it has one; raise UsageError when one of its files cannot be read."""
    if given is None:
        return None
    for name in given.keys() & {"file", "key"}:
        _require_file(given[name], source)
    found = ClientCertificate(**given)
    try:
        found.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except OSError as error:
        raise UsageError(f"{source}: the client certificate {found.file} cannot be read: {error}.") from error
    return found


def proxy_from(given: str | None, source: str) -> str | None:
    """Return the address of a proxy, if there is one; raise UsageError when it is no address."""
    if given is not None and not is_address(given):
        raise UsageError(f"{source} names a proxy that is no address; one looks like http://proxy.example.com:3128.")
    return given


def http2_from(source: str, *, wanted: bool) -> bool:
    """Return whether to offer HTTP/2; raise UsageError when it is wanted and its library is not installed."""
    if wanted and find_spec("h2") is None:
        raise UsageError(f"{source} asks for HTTP/2, which needs: pip install 'project-automation-conformance[http2]'.")
    return wanted


def _require_file(name: str, source: str) -> None:
    if not Path(name).is_file():
        raise UsageError(f"{source} names the certificate file {name}, which does not exist.")
