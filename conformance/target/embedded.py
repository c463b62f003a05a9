"""The reference implementation as a target: started in the background of a run, with a profile of its own making."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from conformance.reference import EmbeddedServer, Service, World, create_service
from conformance.reference import Fixture as WorldFixture
from conformance.reference.server import ask
from conformance.target import ACTORS, FIXTURES, Profile
from conformance.target.names import PLURALS
from conformance.target.profile import profile_from
from conformance.target.provisioning.calls import Answer, Body, Way

if TYPE_CHECKING:
    from collections.abc import Iterator

_FEATURES = (
    "approval_policies",
    "code_completion",
    "group_approval_rules",
    "hidden_groups",
    "member_roles",
    "password_approval",
)

#: The version the reference has when nobody asks for another.
DEFAULT_VERSION = "17.7"


def directly(service: Service) -> Way:
    """Return the way to a service of this process that needs no connection."""

    def send(token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        parts = urlsplit(path)
        place = parts.path if parts.netloc else f"/api/v4{parts.path}"
        asked = "&".join(text for text in (parts.query, urlencode(query)) if text)
        headers = {"private-token": token} if token else {}
        content = b"" if body is None else json.dumps(body).encode()
        if content:
            headers["content-type"] = "application/json"
        status, shown, text = ask(service, method, place, asked, headers, content)
        is_json = "json" in shown.get("content-type", "")
        return Answer(status, json.loads(text) if text and is_json else None, shown)

    return send


@contextmanager
def embedded_target(version: str = DEFAULT_VERSION, service: Service | None = None) -> Iterator[Profile]:
    """Serve the reference on a free loopback port while the context lasts; yield its profile."""
    served = service or create_service(version=version)
    with EmbeddedServer(served) as server:
        yield profile_from(profile_data(served.world, server.base_url, version), "the embedded reference")


def profile_of(service: Service, base_url: str, version: str) -> dict[str, Any]:
    """Return the profile of a service as plain data, with all its seeded worlds."""
    first, *others = [profile_data(world, base_url, version) for world in service.worlds]
    if others:
        first["worlds"] = [{"actors": each["actors"], "fixtures": each["fixtures"]} for each in others]
    return first


def profile_data(world: World, base_url: str, version: str) -> dict[str, Any]:
    """Return the profile of a seeded world as plain data, as `target.yaml` would hold it."""
    return {
        "name": "reference",
        "base_url": base_url,
        "version": version,
        "edition": "enterprise",
        "disposable": True,
        "actors": {
            name: {
                "id": record.id,
                "username": record.username,
                "token": record.token,
                "password": record.password,
            }
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
    path = {"path": fixture.path} if fixture.path else {}
    return {"id": fixture.id, **path, **fixture.extra}
