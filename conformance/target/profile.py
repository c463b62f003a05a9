"""The profile of a target: its address, its version, the actors, and what exists on it."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from conformance.contract import Contract, Version
from conformance.contract.yaml_files import first_problem, problem_under, read_yaml
from conformance.errors import UsageError
from conformance.http.bodies import with_values
from conformance.http.redaction import keep_in
from conformance.http.settings import (
    AT_ONCE,
    ClientCertificate,
    ClientSettings,
    certificates_from,
    client_certificate_from,
    http2_from,
    proxy_from,
    without_userinfo,
)
from conformance.target.apart import require_own_places
from conformance.target.fit_secrets import (
    VARIABLE,
    is_name_of_secret,
    may_be_key,
    require_carried,
    require_no_words,
    secrets_below,
    shell_variables,
    stated_secrets,
)
from conformance.target.names import (
    ACTORS,
    FEATURES,
    FIXTURE_ROWS,
    FIXTURES,
    PLURALS,
    PRESUMED,
    fixtures_schema,
    misspelled_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

#: The value of `version` for a target that should be asked for it.
AUTO = "auto"


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
        kind = fixture.removeprefix("installed_")
        return kind in PRESUMED and not self.declares(kind)

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


def load_profile(file: Path) -> Profile:
    """Read a target profile.

    Raise UsageError when it cannot be read, names an unset environment variable, an unknown actor or fixture,
    a version older than the specification, or breaks the profile's schema.
    """
    advice = "`conformance target --example` prints one to start from."
    return profile_from_yaml(read_yaml(file, "the target profile", advice), file)


def profile_from_yaml(data: Any, file: Path) -> Profile:
    """Make a profile from the data of its file, and replace variables; raise UsageError as `load_profile` does."""
    environment: Mapping[str, str] = os.environ
    if isinstance(data, dict) and isinstance(data.get("secrets"), str):
        environment = {**_secrets_beside(file, data["secrets"]), **environment}
    unset: dict[str, str] = {}
    data = with_values(data, lambda node: _as_meant(node, environment, file, unset))
    if unset:
        named = ", ".join(f"{name} ({what})" for name, what in unset.items())
        raise UsageError(f"{file} uses environment variables without a value: {named}. Set them before the run.")
    if isinstance(data, dict):  # before any error message about it
        keep_in(text for _, text in stated_secrets(data))
    problem = first_problem(data, "target.schema.json") or _problem_of_fixtures(data)
    if problem:
        raise UsageError(
            f"The target profile {file} is not valid {problem.rstrip('.')}{'' if problem.endswith('?') else '.'}"
        )
    return profile_from(data, str(file))


def secrets_in(file: Path) -> dict[str, str]:
    """Return the variables of a file with lines such as NAME=value; raise OSError when it cannot be read."""
    lines = file.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value for name, equals, value in pairs if equals}


def _secrets_beside(file: Path, name: str) -> dict[str, str]:
    """Return the variables of a profile's secrets file; `name` is relative to the profile."""
    place = file.parent / name
    try:
        return secrets_in(place)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"Cannot read {place}, which {file} names as its file of secrets: "
            f"{getattr(error, 'strerror', None) or error}."
        ) from error


def _problem_of_fixtures(data: Mapping[str, Any]) -> str | None:
    """Say what is wrong with the values of a fixture, in any world."""
    for number, world in enumerate([data, *data.get("worlds", ())]):
        fixtures = world.get("fixtures", {})
        problem = problem_under(fixtures_schema(), fixtures, "fixtures") or misspelled_in(fixtures)
        if problem:
            return problem.replace("at fixtures", f"at worlds[{number - 1}].fixtures", 1) if number else problem
    return None


def base_url_from(text: str, complaint: str) -> str:
    """Return a base URL in its normal form, above /api/v4; a password in it reaches no report.

    Raise UsageError, which begins with the complaint, when the text is no base URL.
    """
    try:
        found = urlsplit(text)
        is_one = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
        is_one = is_one and not (found.query or found.fragment or re.search(r"\s", text))
    except ValueError:  # an incomplete IPv6 address, or a port that is too large
        is_one = False
    if not is_one:
        shown = re.sub(r"//.*@", "//[redacted]@", text)  # also in invalid addresses, which cannot be parsed
        raise UsageError(f"{complaint}: '{shown}' is not a base URL, which looks like https://staging.example.com.")
    keep_in([unquote(found.password)] if found.password else [])
    return text.rstrip("/").removesuffix("/api/v4")


def profile_from(data: Mapping[str, Any], source: str) -> Profile:
    """Make a profile from data that fits the profile's schema; messages name `source` as its origin."""
    first = _world(data, source)
    _refuse_unknown("feature", data.get("features", {}), FEATURES, source)
    version = str(data.get("version", "unknown")).strip()
    asks_version = version.lower() == AUTO
    judged_by, warning = (None, "") if asks_version else Version.parse_declared(version, f"{source}, at version")
    profile = Profile(
        name=data.get("name", ""),
        base_url=base_url_from(data["base_url"], f"The target profile {source} is not valid at base_url"),
        version=judged_by,
        version_source="declared in the profile" if "version" in data else "the profile does not name one",
        version_warning=warning,
        asks_version=asks_version,
        edition=data.get("edition", "unknown"),
        actors=first.actors,
        fixtures=first.fixtures,
        scope=_scope(data.get("scope", ()), source),
        disposable=data.get("disposable", False),
        worlds=tuple(_world(entry, source) for entry in data.get("worlds", ())),
        features=dict(data.get("features", {})),
        limits=Limits(**data.get("limits", {})),
        retries=RetryBudget(**data.get("retries", {})),
        certificates=certificates_from(data.get("certificates", True), source),
        client_certificate=client_certificate_from(data.get("client_certificate"), source),
        proxy=proxy_from(data.get("proxy"), source),
        headers=dict(data.get("headers", {})),
        http2=http2_from(source, wanted=data.get("http2", False)),
    )
    worlds = (first, *profile.worlds)
    for number, world in enumerate(worlds, start=-1):
        place = "actors" if world is first else f"worlds.{number}.actors"
        require_carried({f"{place}.{name}.token": actor.token for name, actor in world.actors.items()}, source)
    require_no_words(profile.named_secrets(), source)
    keep_in(profile.secrets())
    require_own_places([world.fixtures for world in worlds], source)
    return profile


def _world(data: Mapping[str, Any], source: str) -> World:
    actors = data.get("actors", {})
    _refuse_unknown("actor", actors, ACTORS, source)
    fixtures = data.get("fixtures", {})
    _refuse_unknown("fixture", fixtures, FIXTURES, source)
    return World({name: Actor(name, **values) for name, values in actors.items()}, _fixtures(fixtures))


def _scope(areas: Iterable[str], source: str) -> tuple[str, ...]:
    contract = Contract.load()
    claimable = {area: "" for area in contract.areas if area not in contract.general_areas}
    _refuse_unknown("area of the scope", dict.fromkeys(areas, ""), claimable, source)
    return tuple(area for area in claimable if area in areas)


def _fixtures(data: Mapping[str, Any]) -> Mapping[str, tuple[Fixture, ...]]:
    found: dict[str, tuple[Fixture, ...]] = {}
    for name, value in data.items():
        singular = PLURALS.get(name, name)
        places = [f"fixtures.{name}[{number}]" for number in range(len(value))] if isinstance(value, list) else []
        entries = zip(value, places, strict=True) if places else [(value, f"fixtures.{name}")]
        found[singular] = found.get(singular, ()) + tuple(Fixture(singular, *entry) for entry in entries)
    return found


def _refuse_unknown(what: str, given: Mapping[str, Any], known: Mapping[str, str], source: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        near = get_close_matches(unknown[0], known, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else f" Known are: {', '.join(known)}."
        more = f" Unknown are as well: {', '.join(unknown[1:])}." if unknown[1:] else ""
        raise UsageError(f"{source} names the unknown {what} '{unknown[0]}'.{hint}{more}")


def _as_meant(node: Any, environment: Mapping[str, str], file: Path, unset: dict[str, str]) -> Any:
    """Return a single value with its variables replaced, and a whole number as an integer; note what is unset."""
    if isinstance(node, float):
        if not math.isfinite(node):
            raise UsageError(f"{file} has the number {node}, which cannot be used. Write a finite number.")
        return int(node) if node.is_integer() else node  # 7.0 is 7, and no part of a path as it is written
    if not isinstance(node, str):
        return node

    def value_of(match: re.Match[str]) -> str:
        value = environment.get(match[1])
        if value is None or (not value and match[0] == node):
            unset[match[1]] = "empty" if value is not None else "not set"
        return value or ""

    return VARIABLE.sub(value_of, node)
