"""Reads the profile of a target from its file, or from data of the same form, and refuses what cannot be meant."""

from __future__ import annotations

import math
import os
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from conformance.contract import Contract, Version
from conformance.contract.yaml_files import first_problem, problem_under, read_yaml
from conformance.errors import UsageError
from conformance.http.bodies import with_values
from conformance.http.redaction import keep_in
from conformance.http.settings import certificates_from, client_certificate_from, http2_from, is_address, proxy_from
from conformance.target.fit_secrets import VARIABLE, require_carried, require_no_words, stated_secrets
from conformance.target.names import ACTORS, FEATURES, FIXTURES, PLURALS, fixtures_schema, misspelled_in
from conformance.target.profile import AUTO, Actor, Fixture, Limits, Profile, RetryBudget, World, changed_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


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
    if not is_address(text) or re.search(r"[\s?#]", text):
        shown = re.sub(r"//.*@", "//[redacted]@", text)  # also in invalid addresses, which cannot be parsed
        raise UsageError(f"{complaint}: '{shown}' is not a base URL, which looks like https://staging.example.com.")
    password = urlsplit(text).password
    keep_in([unquote(password)] if password else [])
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
    _require_own_places(worlds, source)
    return profile


def _require_own_places(worlds: Iterable[World], source: str) -> None:
    """Raise UsageError when two worlds name a project or group that both would change."""
    taken: dict[str, int] = {}
    for number, world in enumerate(worlds, start=1):
        for place, name in changed_places(world.fixtures):
            other = taken.setdefault(place, number)
            if other != number:
                raise UsageError(
                    f"The worlds {other} and {number} of {source} both name {place} ({name}), and two workers would "
                    "change it under each other. Give each world what is its own, as `conformance provision --worlds "
                    "N` does."
                )


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
