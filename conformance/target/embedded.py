"""The reference implementation as a target: provisioned by calls like any other, and served in the background."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from conformance.reference import ActorRecord, Choices, EmbeddedServer, Service, World, create_service
from conformance.reference import Fixture as WorldFixture
from conformance.reference.server import ask
from conformance.reference.world import NO_ID
from conformance.target import ACTORS, FIXTURES, Profile
from conformance.target.names import PLURALS
from conformance.target.profile_file import profile_from
from conformance.target.provisioning import Order, provision
from conformance.target.provisioning.blueprint import Blueprint
from conformance.target.provisioning.calls import Answer, Body, Calls, Way
from conformance.target.provisioning.files import Made, Secrets
from conformance.target.provisioning.profiles import by_value, fixtures_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.reference import Version
    from conformance.reference.clock import Clock
    from conformance.reference.store import Snapshot
    from conformance.target.provisioning import Provisioned
    from conformance.target.provisioning.worlds import World as MadeWorld

_FEATURES = (
    "approval_policies",
    "code_completion",
    "group_approval_rules",
    "hidden_groups",
    "member_roles",
    "password_approval",
)

#: The default version of the reference.
DEFAULT_VERSION = "17.7"
_PREFIX = "world"
_ROLES = {50: "owner", 40: "maintainer", 30: "developer", 20: "reporter", 10: "guest"}
_OTHER_ROLES = {"admin": "admin", "project_bot": "maintainer", "group_bot": "maintainer"}


def prepared_service(
    version: str | Version = DEFAULT_VERSION,
    choices: Choices | None = None,
    clock: Clock | None = None,
    *,
    worlds: int = 1,
) -> Service:
    """Make a service with a provisioned world, and add the things that no call makes.

    The first service of each kind is stored, and all others start as a copy of it. Raise UnknownVersionError for a
    version that the reference does not support.
    """
    service = create_service(version, choices, clock)
    service.begin_with(*_beginning(service.version, service.choices, worlds))
    return service


@lru_cache(maxsize=64)
def _beginning(version: Version, choices: Choices, worlds: int) -> tuple[Snapshot, tuple[World, ...]]:
    service = create_service(version, choices)

    def password(name: str) -> str:
        return hashlib.sha256(f"0:{name}".encode()).hexdigest()[:20]

    order = Order(
        base_url="http://embedded",
        administrator=service.administrator.token,
        worlds=worlds,
        prefix=_PREFIX,
        looks_at_exports=False,
    )
    done = provision(order, Calls(directly(service), Made(), patience_seconds=0), Secrets(password))
    if done.refused:
        raise RuntimeError(f"The reference could not be prepared: {done.refused}")
    for made in done.worlds:
        made.asks_for_password = True  # by the reference itself where its version has no call for it
    service.settle(*(_world(made, done) for made in done.worlds))
    return service.beginning, tuple(service.worlds)


def _world(made: MadeWorld, done: Provisioned) -> World:
    staff = Blueprint.load().groups["group"].members
    roles = {name: _ROLES[level] for name, level in staff.items()} | _OTHER_ROLES
    actors = {
        name: ActorRecord(person.id, person.username, person.token, person.password or "", roles.get(name, "none"))
        for name, person in made.people.items()
    }
    fixtures: dict[str, WorldFixture | tuple[WorldFixture, ...]] = {}
    for name, value in fixtures_of(made, done, by_value, all_of_them=True).items():
        if isinstance(value, list):
            fixtures[name] = tuple(_fixture(entry) for entry in value)
        elif name != "oauth_token_endpoint":
            fixtures[name] = _fixture(value)
    return World(actors, fixtures)


def _fixture(entry: dict[str, Any]) -> WorldFixture:
    rest = {key: value for key, value in entry.items() if key not in {"id", "path"}}
    return WorldFixture(entry.get("id", NO_ID), entry.get("path"), rest)


def directly(service: Service) -> Way:
    """Return the way to send calls to a service in this process, without a connection.

    Whoever calls from several threads has one call answered after the other, as a server does.
    """
    one_at_a_time = threading.Lock()

    def send(token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        parts = urlsplit(path)
        place = parts.path if parts.netloc else f"/api/v4{parts.path}"
        asked = "&".join(text for text in (parts.query, urlencode(query)) if text)
        headers = {"private-token": token} if token else {}
        content = b"" if body is None else json.dumps(body).encode()
        if content:
            headers["content-type"] = "application/json"
        with one_at_a_time:
            status, shown, text = ask(service, method, place, asked, headers, content)
        is_json = "json" in shown.get("content-type", "")
        return Answer(status, json.loads(text) if text and is_json else None, shown)

    return send


@contextmanager
def embedded_target(version: str = DEFAULT_VERSION, service: Service | None = None) -> Iterator[Profile]:
    """Serve the reference on a free loopback port while the context lasts; yield its profile."""
    served = service or prepared_service(version)
    with EmbeddedServer(served) as server:
        yield profile_from(profile_data(served.world, server.base_url, version), "the embedded reference")


def profile_of(service: Service, base_url: str, version: str) -> dict[str, Any]:
    """Return the profile of a service as plain data, with all its worlds."""
    first, *others = [profile_data(world, base_url, version) for world in service.worlds]
    if others:
        first["worlds"] = [{"actors": each["actors"], "fixtures": each["fixtures"]} for each in others]
    return first


def profile_data(world: World, base_url: str, version: str) -> dict[str, Any]:
    """Return the profile of a prepared world as plain data, as `target.yaml` would hold it."""
    return {
        "name": "reference",
        "base_url": base_url,
        "version": version,
        "edition": "enterprise",
        "disposable": True,
        "actors": {
            name: {"id": record.id, "username": record.username, "token": record.token, "password": record.password}
            for name, record in world.actors.items()
            if name in ACTORS
        },
        "fixtures": {
            name: [_values(entry) for entry in value] if isinstance(value, tuple) else _values(value)
            for name, value in world.fixtures.items()
            if name in FIXTURES and name not in PLURALS.values()
        }
        | {"oauth_token_endpoint": {"url": f"{base_url}/oauth/token"}},
        "features": dict.fromkeys(_FEATURES, True),
        "limits": {"timeout_seconds": 20, "deadline_seconds": 20},
    }


def _values(fixture: WorldFixture) -> dict[str, Any]:
    number = {} if fixture.id == NO_ID else {"id": fixture.id}
    path = {"path": fixture.path} if fixture.path else {}
    return {**number, **path, **fixture.extra}
