"""Checks of actors: whether the target takes a token, whose it is, and which role its user has in a fixture."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from conformance.target.check.fixtures import members_of
from conformance.target.names import FIXTURE_ROWS
from conformance.target.readings import Finding, Readings, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.http.client import Client
    from conformance.target.profile import Fixture, Profile


def actor(target: Readings, who: str) -> Iterator[Finding]:
    """Yield that a token is refused or of somebody else than the profile says, and what the profile leaves out."""
    named, place, shown = target.profile.actors[who], f"actors.{who}", target.user(who)
    status = target.status_of(who, "/user")
    if target.refuses_token_of(who):
        yield Finding(f"{place}.token", State.CONTRADICTED, "the target refuses it (GET /user: status 401)")
        return
    if not isinstance(shown.get("id"), int) or not isinstance(shown.get("username"), str):
        yield Finding(place, State.NOTE, f"GET /user does not say who it is (status {status})")
        return
    for name in ("id", "username"):
        said = getattr(named, name)
        if said is None:
            yield Finding(f"{place}.{name}", State.MISSING, "what names users needs it", shown[name])
        elif str(said).casefold() != str(shown[name]).casefold():
            detail = f"{said}, and the token is of {shown[name]} (GET /user)"
            is_right = sum(other.token == named.token for other in target.profile.actors.values()) == 1
            yield Finding(f"{place}.{name}", State.CONTRADICTED, detail, shown[name] if is_right else None)
    if who.endswith("_bot") and shown.get("bot") is False:
        yield Finding(f"{place}.token", State.CONTRADICTED, "it is of a person, and not of a bot (GET /user)")
    if who == "admin" and shown.get("is_admin") is False:
        detail = "it is of somebody who is no administrator (GET /user): name one, or leave admin out"
        yield Finding(f"{place}.token", State.CONTRADICTED, detail)


def roles(target: Readings, place: str, name: str, entry: Fixture) -> Iterator[Finding]:
    """Yield actors whose role in a fixture is not the one that they need."""
    sort = "projects" if FIXTURE_ROWS[name].kind == "project" else "groups"
    path = f"/{sort}/{entry.get('id')}"
    levels = target.levels(path, *members_of(name))
    if levels is None:
        detail = f"no role in it was checked: its members cannot be read (GET /{sort}/:id/members/all)"
        yield Finding(place, State.NOTE, detail)
        return
    for who, (low, high) in FIXTURE_ROWS[name].roles.items():
        number = target.user(who).get("id") if who in target.profile.actors else None
        level = levels.get(number, 0)
        if number is None or low <= level <= high:
            continue
        # An actor who is not on the list may be a member in another way, and therefore see private things.
        is_unlisted = not level and target.record_of(who, path)
        wanted = " to ".join(dict.fromkeys((_role(low), _role(high))))
        detail = f"{_role(level)} in {place} (GET {path}/members/all), and must be: {wanted}"
        yield Finding(f"actors.{who}", State.NOTE if is_unlisted else State.CONTRADICTED, detail)


def doubted_roles(profile: Profile, client: Client) -> Iterator[Finding]:
    """Yield actors who are served the settings of project or group unlike their role, where members cannot be read.

    Either the profile or the target is wrong, and only a run shows which: so a run does not do this check.
    """
    target = Readings(profile, client)
    for name, least in (("project", 40), ("group", 50)):
        path = f"/{name}s/{profile.value(name)}"
        if profile.first(name) is None or target.levels(path) is not None:
            continue
        known = {who: levels for who, levels in FIXTURE_ROWS[name].roles.items() if who in profile.actors}
        for who, (low, high) in known.items():
            status = target.status_of(who, f"{path}/merge_request_approval_setting")
            if (status == HTTPStatus.OK and high < least) or (status == HTTPStatus.FORBIDDEN and low >= least):
                detail = f"GET {path}/merge_request_approval_setting: status {status}, unlike the role in {name}"
                yield Finding(f"actors.{who}", State.NOTE, detail)


def _role(level: int) -> str:
    known = {0: "without a role", 10: "guest", 20: "reporter", 30: "developer", 40: "maintainer", 50: "owner"}
    return known.get(level) or next(word for least, word in sorted(known.items(), reverse=True) if level >= least)
