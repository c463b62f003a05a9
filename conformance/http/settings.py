"""What a client must know of its target before the first call."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How many calls may be under way at once, unless the operator says otherwise.
AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate by which the client shows who it is."""

    file: str
    """PEM file with the certificate, and with its key where `key` names no other file."""
    key: str | None = None
    password: str | None = field(default=None, repr=False)
    """What opens the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Where a client calls, by which way, how often and for how long; seconds unless named otherwise."""

    base_url: str
    """The address above /api/v4."""
    timeout_seconds: float = 30
    """For the whole of one call, from connecting to the last byte."""
    requests_per_second: float | None = None
    call_wait_seconds: float = 60
    """How long one call is waited for and sent again, where a network or a gateway keeps it from being answered."""
    run_wait_seconds: float = 600
    """How long all of them together."""
    settle_seconds: float = 0
    """How long after a write a read waits."""
    at_once: int = AT_ONCE
    certificates: str | bool = True
    """What an https target's certificate is held against: the usual authorities, a PEM file, or nothing."""
    client_certificate: ClientCertificate | None = None
    proxy: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Sent with every call to the target, and to no other host."""
    http2: bool = False
    only_reads: bool = False
    """Whether nothing but GET and HEAD leaves the process."""
    run: str = ""
    """Which run calls; goes into the User-Agent."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Every text that must never reach a report."""
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """For each of these the variable of the shell that stands for it in a command, such as `$WEBHOOK`."""

    @property
    def api(self) -> str:
        """The address that the paths of calls are below."""
        return f"{self.base_url}/api/v4"

    @property
    def shown_base_url(self) -> str:
        """The base URL without a user's name and password."""
        return without_userinfo(self.base_url)


def without_userinfo(url: str) -> str:
    """Leave out the user's name and password of an address."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def certificates_from(given: str | bool, source: str) -> str | bool:  # noqa: FBT001 - what the profile says
    """Return what certificates are held against; raise UsageError when it is a file that does not exist."""
    if isinstance(given, str):
        _require_file(given, source)
    return given


def client_certificate_from(given: Mapping[str, str] | None, source: str) -> ClientCertificate | None:
    """Return the client's own certificate, if it has one; raise UsageError when a file of it does not exist."""
    if given is None:
        return None
    for name in given.keys() & {"file", "key"}:
        _require_file(given[name], source)
    return ClientCertificate(**given)


def http2_from(source: str, *, wanted: bool) -> bool:
    """Return whether to offer HTTP/2; raise UsageError when it is wanted and its library is not installed."""
    if wanted and find_spec("h2") is None:
        raise UsageError(f"{source} asks for HTTP/2, which needs: pip install 'project-automation-conformance[http2]'.")
    return wanted


def _require_file(name: str, source: str) -> None:
    if not Path(name).is_file():
        raise UsageError(f"{source} names the certificate file {name}, which does not exist.")
