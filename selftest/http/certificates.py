"""A certificate authority for tests, and certificates that it signs: without key identifiers, as older ones are."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Authority:
    """Signs certificates, each in one file with its key."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    file: Path

    @classmethod
    def make(cls, folder: Path) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _signed("authority", key, "authority", key, is_authority=True)
        file = folder / "authority.pem"
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(folder, key, certificate, file)

    def issue(self, name: str) -> Path:
        """Return the file of a new certificate for 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _signed(name, key, "authority", self.key)
        file = self.folder / f"{name}.pem"
        file.write_bytes(_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
        return file

    def issue_apart(self, name: str, password: str) -> tuple[Path, Path]:
        """Return the files of a new certificate and of its key, which is protected by a password."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, locked = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        signed = _signed(name, key, "authority", self.key)
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        locked.write_bytes(_pem(key, password))
        return certificate, locked

    def server(self, *, asks_for_certificate: bool = False) -> ssl.SSLContext:
        """Return the TLS context of a server with a certificate of this authority, which may ask clients for theirs."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.file))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # which Python sets from 3.13 on
        context.load_cert_chain(self.issue("server"))
        if asks_for_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _pem(key: ec.EllipticCurvePrivateKey, password: str | None = None) -> bytes:
    lock = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool = False,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
