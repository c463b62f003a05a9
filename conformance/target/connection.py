"""What a profile says of the way to its target, checked as far as that goes without a call."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.http.settings import ClientCertificate

if TYPE_CHECKING:
    from collections.abc import Mapping


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
