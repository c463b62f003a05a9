"""The TLS checks against real TLS servers, strong and weak."""

from __future__ import annotations

import datetime as dt
import runpy
import socket
import ssl
import threading
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from conformance.results.record import Check, Outcome
from conformance.runner.location import SUITE_FOLDER
from conformance.suite.context import Unmet, Violation
from conformance.suite.tls import key_of, shake
from conformance.target.profile_file import profile_from
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.results.recorder import Line

#: The tests of the suite, unchanged.
TESTS = [
    runpy.run_path(str(SUITE_FOLDER / "limits" / "test_tls.py"))[name]
    for name in (
        "test_nothing_older_than_tls_1_2_is_spoken",
        "test_the_key_of_the_certificate_is_long_enough",
        "test_what_is_agreed_for_one_connection_is_long_enough",
    )
]
#: The requirements that they verify.
KEPT = (
    "limits.tls.version",
    "limits.tls.rsa-and-dsa-keys",
    "limits.tls.dh-keys",
    "limits.tls.ecc-certificate-keys",
    "limits.tls.ecc-exchange-keys",
)

#: Made once with `openssl dhparam -dsaparam`: this takes longer than all tests here.
DH_PARAMETERS = {
    1024: """\
-----BEGIN X9.42 DH PARAMETERS-----
MIIBJgKBgQCE5qFyvEeNUjvApJ2L9pdNB0XYiNEyNCiXuSlXPf4E7eVU2DoP2IZz
/Kp7LuUnaqEAgtsinbnAvCZrgyIs5Hmv8NJGR7josE9EkYY1gaiJiTgPEI06Bc25
F83q0Nj1fg2eZc8BZrZ0sGwHKygZomwsGfenPKtMtW0c6i3dCMbUYwKBgCsmIn5P
1nj5x8qw8ll5VEaIVHcljHDOz/zNw7M8HftuK9cxuvra+qOT5HaNgwNyA6htbZfT
aaANn6YMyubm5j97Tds+TIB+SE/G7JG6Tr8crYWmk9Dc91OxFf8yJ5Bqq+kanFeR
euvzbE30ifocH2KekQJpadd63ki9xbW0iJlSAh0A2ydL1cLMoGFC2LrCcViDh2ix
a5y+aDHDDvVb5Q==
-----END X9.42 DH PARAMETERS-----
""",
    2048: """\
-----BEGIN X9.42 DH PARAMETERS-----
MIICKAKCAQEAt9vUtY5SssWzXM0d4pPQITbKaQKkFN/5YIjQ5SSTvMDQnjcTX8TG
AavlhThjoqI3xWvSXvd9yBKp3peWbOFKs6ObO0R5kBZddx6iKclYCbcryy6zIpZR
75PXmKgA5srLlHyQe1CELgXW09bzT5WVmGAIUIeNgoREGPTZVf780AoTAtsZCk/L
BMan7Jv8gMI6xhfnpygRUVJK4UDt+ZLjCT7qRBHX6/bgdu18QknwFNeycr82zv6r
ghF66mga8K3H4lYRIbTHCKy/4M/jiVd9bNMZfvEwtoMrNEFck5uyRSkyZVkkvLyk
HH78NK1N2l4RxJV7ZsZ4b2e2nVw7BGmMSwKCAQBrr63stP6+AzqzcXI6vc/3lLjQ
zubqL8M2ZB119OSdk13Kl4ZRxn0Ov8oIm0frrZn1qE9ozSYuGQJhO9cvvpuAjQ3n
m9Vs+R7o/71UGap7VFrT3jIEDkVzyw6WxuJb4O62/jhIyr25aFXlH4KNcnw2NfpU
DSRoIDnxzclW8aQ4Z0ABQ3Kga+Y/jltYs4TaltiauogecOzFjH/MuMJ4t84j+4xQ
bs2G5SHDJAVFmRhFJmkfjUpsS7P/EQvJngZJS3nbped+5yAWajcaloCQew87XaQm
X7EJZa5DZ1NGBZ+WyP5VPQ9gLonz+nUge6GuFDpCPmxccGyJo1iyBe/5yQDHAh0A
nD09finfDX/Nya3bgbtjscIiVFijfc4uyOe4Uw==
-----END X9.42 DH PARAMETERS-----
""",
}


def certificate(folder: Path, key: Any) -> Path:
    """Write a self-signed certificate with its key."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file = folder / "server.pem"
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return file


@contextmanager
def tls_server(
    folder: Path,
    key: Any,
    *,
    oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    ciphers: str | None = None,
    curve: str | None = None,
    dh_bits: int | None = None,
) -> Iterator[list[Line]]:
    """Serve handshakes, and nothing after them, to a test of the suite; yield the lines of its record."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = oldest
    context.set_ciphers(ciphers or "ALL:@SECLEVEL=0")
    context.load_cert_chain(certificate(folder, key))
    if curve:
        context.set_ecdh_curve(curve)
    if dh_bits:
        file = folder / "dh.pem"
        file.write_text(DH_PARAMETERS[dh_bits], encoding="ascii")
        context.load_dh_params(str(file))
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                context.wrap_socket(connection, server_side=True).close()
            except OSError:
                connection.close()

    threading.Thread(target=serve, daemon=True).start()
    base_url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    profile = profile_from({"base_url": base_url, "version": "17.7", "actors": {}, "fixtures": {}}, "test")
    lines: list[Line] = []
    with in_a_test(profile, *KEPT, lines=lines):
        yield lines
    listener.close()


@pytest.fixture(scope="module")
def strong() -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def test_a_modern_server_accepts_no_old_protocol(tmp_path: Path, strong: Any) -> None:
    with tls_server(tmp_path, strong):
        assert shake().protocol == "TLSv1.3"
        assert not shake(newest=ssl.TLSVersion.TLSv1_1).agreed


def test_what_this_machine_does_not_offer_shows_nothing_of_the_server(tmp_path: Path, strong: Any) -> None:
    """These ciphers belong to TLS 1.2, so that there is nothing to offer for TLS 1.1."""
    with tls_server(tmp_path, strong), pytest.raises(Unmet, match="does not make the offer"):
        shake(newest=ssl.TLSVersion.TLSv1_1, ciphers="ECDHE-RSA-AES256-GCM-SHA384")


def test_a_server_that_accepts_tls_1_1_is_found(tmp_path: Path, strong: Any) -> None:
    with tls_server(tmp_path, strong, oldest=ssl.TLSVersion.TLSv1):
        assert shake(newest=ssl.TLSVersion.TLSv1_1).protocol == "TLSv1.1"


@pytest.mark.parametrize(
    ("key", "kind", "bits"),
    [
        (rsa.generate_private_key(public_exponent=65537, key_size=1024), "RSA", 1024),  # noqa: S505 - weak on purpose
        (rsa.generate_private_key(public_exponent=65537, key_size=2048), "RSA", 2048),
        (ec.generate_private_key(ec.SECP256R1()), "ECC", 256),
    ],
    ids=lambda value: str(value) if isinstance(value, int | str) else "",
)
def test_kind_and_size_of_the_key_are_read_from_the_certificate(tmp_path: Path, key: Any, kind: str, bits: int) -> None:
    with tls_server(tmp_path, key):
        found = shake().certificate
    assert found is not None
    assert (key_of(found).kind, key_of(found).bits) == (kind, bits)


def test_a_certificate_on_a_short_curve_is_found_if_that_curve_is_offered(tmp_path: Path) -> None:
    with tls_server(tmp_path, ec.generate_private_key(ec.SECP192R1()), curve="prime192v1"):
        found = shake(newest=ssl.TLSVersion.TLSv1_2, curve="prime192v1").certificate
    assert found is not None
    assert (key_of(found).kind, key_of(found).bits) == ("ECC", 192)


@pytest.mark.parametrize(("bits", "too_small"), [(1024, True), (2048, False)])
def test_a_short_diffie_hellman_key_is_distinguished_from_a_long_one(
    tmp_path: Path,
    strong: Any,
    bits: int,
    *,
    too_small: bool,
) -> None:
    with tls_server(tmp_path, strong, ciphers="DHE:@SECLEVEL=0", dh_bits=bits):
        any_key = shake(newest=ssl.TLSVersion.TLSv1_2, ciphers="DHE:!aNULL:@SECLEVEL=0")
        long_key = shake(newest=ssl.TLSVersion.TLSv1_2, ciphers="DHE:!aNULL:@SECLEVEL=2")
    assert any_key.agreed, any_key.problem
    assert ("DH_KEY_TOO_SMALL" in long_key.problem) is too_small, long_key.problem


def test_a_short_curve_is_negotiated_only_if_the_server_has_it(tmp_path: Path, strong: Any) -> None:
    only = "ECDHE:!aNULL:@SECLEVEL=0"
    with tls_server(tmp_path, strong):
        assert not shake(newest=ssl.TLSVersion.TLSv1_2, ciphers=only, curve="prime192v1").agreed
    with tls_server(tmp_path, strong, curve="prime192v1"):
        assert shake(newest=ssl.TLSVersion.TLSv1_2, ciphers=only, curve="prime192v1").agreed


def test_a_strong_server_keeps_every_limit_and_each_weakness_breaks_one(tmp_path: Path, strong: Any) -> None:
    """A weak certificate has a short curve, so the negotiated curve is short as well."""
    long_curve, long_dh = ec.generate_private_key(ec.SECP256R1()), {"ciphers": "DHE:@SECLEVEL=0", "dh_bits": 2048}
    short_rsa = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - weak on purpose
    short_curve = ec.generate_private_key(ec.SECP192R1())
    assert broken(tmp_path, strong) == set()
    assert broken(tmp_path, long_curve) == set()
    assert broken(tmp_path, strong, **long_dh) == set()
    assert broken(tmp_path, strong, oldest=ssl.TLSVersion.TLSv1) == {"limits.tls.version"}
    assert broken(tmp_path, strong, oldest=ssl.TLSVersion.TLSv1_1) == {"limits.tls.version"}
    assert broken(tmp_path, short_rsa) == {"limits.tls.rsa-and-dsa-keys"}
    assert broken(tmp_path, strong, **{**long_dh, "dh_bits": 1024}) == {"limits.tls.dh-keys"}
    assert broken(tmp_path, strong, curve="prime192v1") == {"limits.tls.ecc-exchange-keys"}
    weak_curve = {"limits.tls.ecc-certificate-keys", "limits.tls.ecc-exchange-keys"}
    assert broken(tmp_path, short_curve, curve="prime192v1") == weak_curve


def broken(folder: Path, key: Any, **weakness: Any) -> set[str]:
    """Return the requirements that a server breaks according to the tests of the suite; all others hold."""
    with tls_server(folder, key, **weakness) as lines:
        for test in TESTS:
            with suppress(Violation):
                test()
    checks = [line for line in lines if isinstance(line, Check)]
    failed = {check.requirement for check in checks if check.outcome is Outcome.FAILED}
    assert {check.requirement for check in checks if check.outcome is Outcome.PASSED} == {*KEPT} - failed
    return failed
