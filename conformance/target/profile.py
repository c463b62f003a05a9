"""The profile of a target: its address, its version, the actors, and what exists on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from conformance.contract import Contract, Version
from conformance.errors import UsageError
from conformance.http.settings import AT_ONCE, ClientCertificate, ClientSettings, without_userinfo
from conformance.target.fit_secrets import is_name_of_secret, may_be_key, secrets_below, shell_variables
from conformance.target.names import ACTORS, FEATURES, FIXTURE_ROWS, FIXTURES, PLURALS, PRESUMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: The value of `version` for a target that should be asked for it.
AUTO = "auto"
#: Fixtures that most tests change.
_CHANGED = ("project", "sibling_project", "fuzz_project", "group", "sibling_group", "fuzz_group")


@dataclass(frozen=True, slots=True)
class Actor:
    """A role with a token."""

    name: str
    token: str = field(repr=False)
    id: int | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def variable(self) -> str:
        """The shell variable that stands for the token wherever a call is shown."""
        return f"$TOKEN_{self.name.upper().replace('-', '_')}"


class MissingFieldError(LookupError):
    """A fixture of the profile lacks a value that a test needs."""

    def __init__(self, fixture: str, key: str) -> None:
        """Name the fixture and the value to add."""
        super().__init__(f"fixture '{fixture}' of the target profile does not give '{key}': add it there")


@dataclass(frozen=True, slots=True)
class Fixture:
    """Something that exists on the target before the run."""

    name: str
    values: Mapping[str, Any]
    place: str = field(default="", compare=False)
    """Its place in the profile or in its world, such as `fixtures.integrations[0]`."""

    def __getitem__(self, key: str) -> Any:
        """Return one of its values; raise MissingFieldError when the profile does not give it."""
        if key not in self.values:
            raise MissingFieldError(self.name, key)
        return self.values[key]

    def get(self, key: str) -> Any:
        """Return one of its values, or None."""
        return self.values.get(key)

    @property
    def id(self) -> int:
        """Its number."""
        return int(self["id"])

    @property
    def encoded_path(self) -> str:
        """Its full path as one path segment."""
        return quote(str(self["path"]), safe="")


def changed_places(fixtures: Mapping[str, Sequence[Fixture]]) -> Iterator[tuple[str, str]]:
    """Yield each project and group of a world that its tests change, such as `project 7`, and the fixture's name."""
    for name in _CHANGED:
        kind = "group" if name.endswith("group") else "project"
        for entry in fixtures.get(name, ()):
            if entry.get("id") is not None:
                yield f"{kind} {entry.get('id')}", name


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on the suite's calls; in seconds unless stated otherwise."""

    timeout_seconds: float = 30
    deadline_seconds: float = 60
    requests_per_second: float | None = None
    settle_seconds: float = 0
    page_walk: int = 200


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How long a run tolerates network errors."""

    call_seconds: float = 60
    """How long one call waits and is retried."""
    run_seconds: float = 600
    """How long all calls together wait."""
    tests: int = 5
    """How many times one test may start again because one of its calls was not answered."""


@dataclass(frozen=True)
class World:
    """A complete set of fixtures and actors for one worker."""

    actors: Mapping[str, Actor]
    fixtures: Mapping[str, tuple[Fixture, ...]]
    """By singular name; a single fixture is a tuple with one entry."""


@dataclass(frozen=True)
class Profile:
    """All that the suite knows about its target before the first request."""

    base_url: str
    version: Version | None
    """None when the operator does not know it."""
    edition: str
    actors: Mapping[str, Actor]
    fixtures: Mapping[str, tuple[Fixture, ...]]
    """By singular name; a single fixture is a tuple with one entry."""
    features: Mapping[str, bool] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    retries: RetryBudget = field(default_factory=RetryBudget)
    name: str = ""
    certificates: str | bool = True
    """What verifies the certificate of an https target: the usual authorities, a PEM file, or nothing."""
    client_certificate: ClientCertificate | None = None
    proxy: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers for every call, for a gateway in front of the target."""
    http2: bool = False
    version_source: str = "declared in the profile"
    """The source of the version."""
    version_warning: str = ""
    """How the target is judged, if that is not the declared version."""
    asks_version: bool = False
    """Whether the target should be asked for its version."""
    scope: tuple[str, ...] = ()
    """The areas that the target claims to implement; empty for all."""
    disposable: bool = False
    """Whether the target exists only for tests, so that nobody misses what is on it."""
    worlds: tuple[World, ...] = ()
    """Further complete sets of actors and fixtures, for all workers but the first."""

    @property
    def title(self) -> str:
        """A short name for folders and headings."""
        host = urlsplit(self.base_url).netloc.rpartition("@")[2]
        return self.name or re.sub(r"[^A-Za-z0-9._-]+", "-", host).strip("-.") or "target"

    @property
    def number_of_worlds(self) -> int:
        """How many workers may run side by side."""
        return len(self.worlds) + 1

    def in_world(self, number: int) -> Profile:
        """Return the profile for a worker, numbered from 0, with the actors and fixtures of its own world.

        Raise UsageError when the profile has fewer worlds.
        """
        if number == 0:
            return self
        if number > len(self.worlds):
            raise UsageError(
                f"The profile has {len(self.worlds) + 1} world(s), so that no more workers or shards can have one. "
                "Run with fewer, or add complete sets of actors and fixtures below `worlds:`, as `conformance "
                "provision --worlds N` does."
            )
        world = self.worlds[number - 1]
        return replace(self, actors={**self.actors, **world.actors}, fixtures=world.fixtures)

    def known_actors(self, *names: str) -> list[Actor]:
        """Return those of these actors that the profile has, in this order and each once."""
        return [self.actors[name] for name in dict.fromkeys(names) if name in self.actors]

    def first(self, name: str) -> Fixture | None:
        """Return the first fixture of a name; None when there is none."""
        return next(iter(self.fixtures.get(name, ())), None)

    def value(self, reference: str) -> Any:
        """Return the value of a reference such as `merge_request.iid`, or `project` for its id; None if unknown."""
        name, _, part = reference.partition(".")
        entry = self.first(name)
        return entry.get(part or "id") if entry is not None else None

    def claims(self, area: str) -> bool:
        """Tell whether the target claims to implement an area; areas without operations of their own always count."""
        return not self.scope or area in self.scope or area in Contract.load().general_areas

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The features that the target does not declare, in the order of FEATURES."""
        return tuple(name for name in FEATURES if not self.declares(name))

    def client_settings(self, at_once: int = AT_ONCE, *, only_reads: bool = False, run: str = "") -> ClientSettings:
        """Return the settings for a client of this target, with at most so many calls at once."""
        limits = self.limits
        return ClientSettings(
            base_url=self.base_url,
            timeout_seconds=limits.timeout_seconds,
            requests_per_second=limits.requests_per_second,
            call_wait_seconds=self.retries.call_seconds,
            run_wait_seconds=self.retries.run_seconds,
            settle_seconds=limits.settle_seconds,
            at_once=at_once,
            only_reads=only_reads,
            run=run,
            certificates=self.certificates,
            client_certificate=self.client_certificate,
            proxy=self.proxy,
            headers=self.headers,
            http2=self.http2,
            secrets=self.secrets(),
            variables=shell_variables(self.named_secrets()),
        )

    def missing(self, need: str) -> str | None:
        """Say that the profile lacks an actor or fixture; None when it has it."""
        singular, at_least = (PLURALS[need], FIXTURE_ROWS[need].least) if need in PLURALS else (need, 1)
        if need in self.actors or len(self.fixtures.get(singular, ())) >= at_least:
            return None
        what = "actor" if need in ACTORS else "fixture"
        who = ACTORS.get(need) or FIXTURES.get(need, "see `conformance target --example`")
        return f"{what} '{need}' is not in the target profile ({who})"

    def declares(self, feature: str) -> bool:
        """Tell whether the target declares a feature; two features follow from the profile's edition and address.

        Features that every service has by default count unless the profile denies them.
        """
        implied = {"enterprise_edition": self.edition == "enterprise", "https": self.base_url.startswith("https://")}
        if feature in PRESUMED:
            row = PRESUMED[feature]
            if row.part_of and not self.declares(row.part_of):
                return False
            return self.features.get(feature, True) or not row.is_dispensable(self.version)
        return bool(self.features.get(feature, implied.get(feature, False)))

    def has_given_up(self, fixture: str) -> bool:
        """Tell whether the profile denies the feature that belongs to a fixture."""
        return fixture in PRESUMED and not self.declares(fixture)

    def redacted(self) -> dict[str, Any]:
        """Return the profile as plain data without tokens, passwords and other secrets."""
        return {
            "base_url": without_userinfo(self.base_url),
            "version": str(self.version or "unknown"),
            "edition": self.edition,
            "actors": {name: {"id": actor.id, "username": actor.username} for name, actor in self.actors.items()},
            "fixtures": {
                name: [{key: _public(key, value) for key, value in entry.values.items()} for entry in entries]
                for name, entries in self.fixtures.items()
            },
            "features": dict(self.features),
            "scope": list(self.scope),
            "worlds": len(self.worlds) + 1,
        }

    def secrets(self) -> tuple[str, ...]:
        """Return every text that must never reach a report, longest first."""
        return tuple(sorted(set(self.named_secrets().values()), key=len, reverse=True))

    def named_secrets(self) -> dict[str, str]:
        """Return every text that must never reach a report, by its place in the profile."""
        found: dict[str, str | None] = {}
        for number, world in enumerate((World(self.actors, self.fixtures), *self.worlds)):
            for name, actor in world.actors.items():
                found[f"{number}.{name}.token"], found[f"{number}.{name}.password"] = actor.token, actor.password
            for name, entries in world.fixtures.items():
                found |= secrets_below([entry.values for entry in entries], f"{number}.{name}")
        found |= {f"headers.{name}": text for name, text in self.headers.items() if may_be_key(text)}
        for name, url in {"base_url": self.base_url, "proxy": self.proxy}.items():
            found[name] = unquote(urlsplit(url).password or "") if url else None
        found["client_certificate"] = self.client_certificate.password if self.client_certificate else None
        return {place: text for place, text in found.items() if text}


def _public(key: str, value: Any) -> Any:
    if is_name_of_secret(key):
        return [_public(key, entry) for entry in value] if isinstance(value, list) else "[redacted]"
    if isinstance(value, dict):
        return {inner: _public(inner, content) for inner, content in value.items()}
    return [_public(key, entry) for entry in value] if isinstance(value, list) else value
