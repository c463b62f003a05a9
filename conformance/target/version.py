"""The version of a target: declared by the operator, or asked from the target itself."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.contract import NEWEST, OLDEST, Version
from conformance.errors import UsageError
from conformance.http.client import Client, TargetGoneError
from conformance.http.settings import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.http.exchange import Exchange
    from conformance.target.profile import Actor, Profile

#: The first number of a version that is counted in years.
_FIRST_YEAR = 1000
#: Where services of this kind report their version. The specification has neither call, so neither is judged.
_PLACES = ("/version", "/metadata")
_PLACES_TOLD = tuple(f"GET {place}" for place in _PLACES)
_LONG = 3.0  # seconds


@dataclass(frozen=True, slots=True)
class Reported:
    """A version as a target reports it."""

    version: Version
    text: str
    """As the target reported it, with patch level and pre-release."""
    place: str
    """Where it was read, such as `GET /version`."""

    @property
    def source(self) -> str:
        """Return the source of the version in a few words."""
        return f"{self.place}: {self.text}"

    @property
    def judged_by(self) -> Version | None:
        """The version to judge by: the newest known one for a newer target, None for one that is too old.

        An independent implementation may count its versions in another way, such as 0.9 or 2026.1: None as well.
        """
        return min(self.version, NEWEST) if self.version >= OLDEST and self.version.major < _FIRST_YEAR else None


def asking_actor(profile: Profile) -> Actor | None:
    """Return the actor for calls that anybody may make: the maintainer, the owner, or any other."""
    return next(iter(profile.known_actors("maintainer", "owner", *profile.actors)), None)


def ask_version(profile: Profile, client: Client) -> Reported | str:
    """Return the version that a target reports; if it reports none, a sentence with what it answered."""
    heard = []
    for place in _PLACES:
        try:
            exchange = client.send(asking_actor(profile), "GET", place)
        except TargetGoneError as error:
            return f"{error}."
        reported = _reported(exchange)
        if reported is not None:
            return reported
        heard.append(f"GET {place}: {_heard(exchange)}")
        if exchange.status is None:
            break
    return f"{'; '.join(heard)}."


def resolved(profile: Profile) -> tuple[Profile, tuple[str, ...]]:
    """Return a profile with the version to judge by, which the target reports for `auto`, and warnings.

    Never raises: if the target does not report its version, it is unknown, and the preflight finds out whether the
    target can be tested at all.
    """
    if not profile.asks_version:
        return profile, (profile.version_warning,) if profile.version_warning else ()
    with Client(profile.client_settings()) as client, _telling_who_waits(profile, client):
        answer = ask_version(profile, client)
    if isinstance(answer, str):
        text = (
            f"The target does not say which version it has ({answer.rstrip('.')}), so it is judged by what any version "
            "allows. Name the version in the profile or with --target-version to have all of it judged."
        )
        return replace(profile, version=None, version_source="the target does not say"), (text,)
    found = replace(profile, version=answer.judged_by, version_source=answer.source)
    if answer.judged_by == answer.version:
        return found, ()
    what = "what any version allows" if answer.judged_by is None else f"version {NEWEST}, the last one it speaks of"
    text = (
        f"The target says that its version is {answer.text} ({answer.place}); the specification speaks of {OLDEST} to "
        f"{NEWEST}. It is judged by {what}. Name the version to judge by with --target-version."
    )
    return found, (text,)


def upgraded(profile: Profile, client: Client) -> str | None:
    """Say that a target tells another version than it did when this was asked first; None if it does not."""
    now = ask_version(profile, client)
    if (
        isinstance(now, str)
        or not profile.version_source.startswith(_PLACES_TOLD)
        or now.source == profile.version_source
    ):
        return None
    return (
        f"The target told another version before the tests ({profile.version_source}) than after them ({now.source}). "
        "It was upgraded meanwhile, or has several versions behind one address, so that no verdict is about one "
        "version. Run once more."
    )


@contextmanager
def _telling_who_waits(profile: Profile, client: Client) -> Iterator[None]:
    """Print what is waited for if it takes long: calls are retried for a minute when a gateway has no service."""

    def tell() -> None:
        seen = ", ".join(client.retries.counts)
        why = f" {seen}: sent again for up to {profile.retries.call_seconds:g} s a call (retries: in the profile)."
        text = f"Waiting for {without_userinfo(profile.base_url)} to say its version ...{why if seen else ''}"
        print(text, file=sys.stderr)  # noqa: T201 - for the operator

    teller = threading.Timer(_LONG, tell)
    teller.daemon = True
    teller.start()
    try:
        yield
    finally:
        teller.cancel()


def _reported(exchange: Exchange) -> Reported | None:
    text = exchange.served_object.get("version")
    if not isinstance(text, str):
        return None
    try:
        return Reported(Version.parse(text), text[:40], f"GET {exchange.call.path}")
    except UsageError:
        return None


def _heard(exchange: Exchange) -> str:
    if exchange.status is None:
        return exchange.problem or "no answer"
    return f"status {exchange.status}" if not exchange.is_success else "an answer without a version"
