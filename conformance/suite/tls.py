"""TLS handshakes that each offer only one thing: what the target accepts shows its versions and keys."""

from __future__ import annotations

import socket
import ssl
import warnings
from dataclasses import dataclass
from urllib.parse import urlsplit

from conformance.results.record import Reason
from conformance.suite.context import Unmet, current_run

_HTTPS = 443
#: Everything the library can do, however weak: a refusal must come from the target.
_ANYTHING = "ALL:@SECLEVEL=0"


@dataclass(frozen=True, slots=True)
class Handshake:
    """The result of one handshake."""

    agreed: bool
    protocol: str | None = None
    cipher: str | None = None
    certificate: bytes | None = None
    """The certificate of the target, as DER."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """The public key of a certificate."""

    kind: str
    """`RSA`, `DSA`, `ECC` or another."""
    bits: int


#: What fails before anything is sent: settings of this machine may forbid what its library could offer.
_NEVER_OFFERED = frozenset({"NO_PROTOCOLS_AVAILABLE", "NO_CIPHERS_AVAILABLE"})


def shake(
    *, newest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED, ciphers: str = _ANYTHING, curve: str | None = None
) -> Handshake:
    """Try a handshake that offers no newer version, no other ciphers and no other curve than these.

    The check is inconclusive when this machine cannot make such an offer, or the target does not answer at all.
    """
    profile = current_run().profile
    if profile.proxy is not None:
        raise Unmet(Reason.PRECONDITION, "calls go through a proxy, so the target's own handshakes are not seen")
    parts = urlsplit(profile.base_url)
    context = _context(newest, ciphers, curve)
    if profile.client_certificate is not None:  # a target may require one for every handshake
        profile.client_certificate.load_into(context)
    try:
        with (
            socket.create_connection(
                (parts.hostname or "", parts.port or _HTTPS), profile.limits.timeout_seconds
            ) as raw,
            context.wrap_socket(raw, server_hostname=parts.hostname) as agreed,
        ):
            cipher = agreed.cipher()
            return Handshake(
                True, agreed.version(), cipher[0] if cipher else None, agreed.getpeercert(binary_form=True)
            )
    except (ssl.SSLError, ConnectionResetError) as error:
        problem = str(getattr(error, "reason", None) or error)
        if problem in _NEVER_OFFERED:
            raise Unmet(
                Reason.PRECONDITION, f"this machine's TLS library does not make the offer: {problem}"
            ) from error
        return Handshake(False, problem=problem)
    except OSError as error:
        raise Unmet(Reason.NO_ANSWER, f"{parts.hostname} does not answer: {error}") from error


def _context(newest: ssl.TLSVersion, ciphers: str, curve: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The identity of the target does not matter here, only its TLS.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # old versions are offered on purpose
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = newest
        context.set_ciphers(ciphers)
        if curve is not None:
            context.set_ecdh_curve(curve)
    except (ssl.SSLError, ValueError) as error:
        raise Unmet(Reason.PRECONDITION, f"this machine's TLS library cannot make the offer: {error}") from error
    return context


def key_of(certificate: bytes) -> Key:
    """Return type and size of the public key of a certificate in DER."""
    from cryptography import x509  # noqa: PLC0415 - slow to load, and only needed for a target with TLS
    from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa  # noqa: PLC0415 - the same

    public = x509.load_der_x509_certificate(certificate).public_key()
    if isinstance(public, rsa.RSAPublicKey):
        return Key("RSA", public.key_size)
    if isinstance(public, dsa.DSAPublicKey):
        return Key("DSA", public.key_size)
    if isinstance(public, ec.EllipticCurvePublicKey):
        return Key("ECC", public.curve.key_size)
    return Key(type(public).__name__, 0)
