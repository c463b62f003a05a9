"""TLS of an https target: which versions it accepts, and how long its keys are."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from conformance.suite.expectations import given, must, observe, verifies
from conformance.suite.tls import Handshake, Key, key_of, shake

if TYPE_CHECKING:
    from conformance.suite.expectations import Caller

ELLIPTIC_BITS = 224
OTHER_BITS = 2048
DIFFIE_HELLMAN = "DHE:!aNULL:@SECLEVEL={level}"
ELLIPTIC_DIFFIE_HELLMAN = "ECDHE:!aNULL:@SECLEVEL=0"
#: Level 2 of the library refuses Diffie-Hellman keys below 2048 bits; level 0 takes any.
ANY_KEY, LONG_KEYS_ONLY = 0, 2
#: Curves below 224 bits that TLS has names for.
SHORT_CURVES = ("prime192v1", "secp160r1")


@pytest.fixture
def known_version(maintainer: Caller) -> None:
    """The limits begin with a version; nothing is required of an unknown version."""
    given(maintainer.target_version is not None, "the version of the target is unknown")


def agreed_somehow() -> Handshake:
    """Return the handshake with a client that accepts anything, even a short curve."""
    agreed = shake()
    for curve in SHORT_CURVES:
        agreed = agreed if agreed.agreed else shake(newest=ssl.TLSVersion.TLSv1_2, curve=curve)
    return agreed


def certificate_key() -> Key:
    """Return the key of the target's certificate, even one that only a careless client would accept."""
    agreed = agreed_somehow()
    given(agreed.agreed and agreed.certificate is not None, f"no handshake succeeds: {agreed.problem}")
    assert agreed.certificate is not None
    return key_of(agreed.certificate)


@pytest.mark.usefixtures("known_version")
def test_nothing_older_than_tls_1_2_is_spoken() -> None:
    new = agreed_somehow()
    with verifies("limits.tls.version"):
        must(new.agreed, "a handshake with TLS 1.2 or higher", new.problem)
        must(new.protocol in {"TLSv1.2", "TLSv1.3"}, "TLS 1.2 or higher", str(new.protocol))
        given(ssl.HAS_TLSv1_1, "this machine's TLS library cannot offer TLS 1.1")
        old = shake(newest=ssl.TLSVersion.TLSv1_1)
        must(not old.agreed, "no handshake with TLS 1.1 or lower", f"a handshake with {old.protocol}")


@pytest.mark.usefixtures("known_version")
def test_the_key_of_the_certificate_is_long_enough() -> None:
    key = certificate_key()
    with verifies("limits.tls.rsa-and-dsa-keys", go_on=True):
        must(
            key.kind not in {"RSA", "DSA"} or key.bits >= OTHER_BITS,
            f"{OTHER_BITS} bits",
            f"{key.kind}, {key.bits} bits",
        )
    with verifies("limits.tls.ecc-certificate-keys"):
        must(key.kind != "ECC" or key.bits >= ELLIPTIC_BITS, f"{ELLIPTIC_BITS} bits", f"ECC, {key.bits} bits")


@pytest.mark.usefixtures("known_version")
def test_what_is_agreed_for_one_connection_is_long_enough() -> None:
    """A server that accepts a short key from a careless client also accepts it from an eavesdropper."""
    given(agreed_somehow().agreed, "no handshake succeeds")
    with verifies("limits.tls.dh-keys", go_on=True):
        any_key = shake(newest=ssl.TLSVersion.TLSv1_2, ciphers=DIFFIE_HELLMAN.format(level=ANY_KEY))
        long_key = shake(newest=ssl.TLSVersion.TLSv1_2, ciphers=DIFFIE_HELLMAN.format(level=LONG_KEYS_ONLY))
        too_short = any_key.agreed and "DH_KEY_TOO_SMALL" in long_key.problem.upper().replace(" ", "_")
        must(not too_short, f"a Diffie-Hellman key of {OTHER_BITS} bits", "a shorter one")
    with verifies("limits.tls.ecc-exchange-keys"):
        for curve in SHORT_CURVES:
            agreed = shake(newest=ssl.TLSVersion.TLSv1_2, ciphers=ELLIPTIC_DIFFIE_HELLMAN, curve=curve)
            must(not agreed.agreed, f"no exchange over {curve}", f"an exchange over {curve}")


@pytest.mark.usefixtures("maintainer")
def test_what_is_spoken_before_there_was_a_limit_is_noted() -> None:
    old, key = shake(newest=ssl.TLSVersion.TLSv1_1), certificate_key()
    observe(
        "limits.tls.before",
        f"TLS 1.1 is {'spoken' if old.agreed else 'refused'}; the key is {key.kind}, {key.bits} bits",
    )
