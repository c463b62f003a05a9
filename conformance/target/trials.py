"""Checks of a profile that need writes: only `conformance target --check` does them, and it undoes them at once.

A run does not do this.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.http.exchange import NOT_THERE
from conformance.target.names import FEATURES
from conformance.target.preflight import READ_OF, READ_WITH
from conformance.target.provisioning.integrations import FEATURE_OF
from conformance.target.readings import Finding, Readings, State, flat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.http.client import Client
    from conformance.http.exchange import Exchange
    from conformance.target.profile import Fixture, Profile

#: It is installed in the user interface, so calls prove nothing about it.
_BY_HAND = frozenset({"chat_app_integration", "installed_chat_app_integration"})
_COMPLETING = ("enabled_project", "disabled_project", "group_enabled_project")
#: Features that these calls can check.
_TOLD = frozenset({"code_completion"})


def try_writes(profile: Profile, client: Client) -> Iterator[Finding]:
    """Set up each integration of a profile, disable it again, send the POST calls that ask, and yield contradictions.

    This uses the first world. Raise TargetGoneError when nobody answers any more.
    """
    target = Readings(profile, client)
    yield from _integrations(target)
    yield from _completions(target)
    for entry in profile.fixtures.get("oauth_token_endpoint", ()):
        answer = client.send(None, "POST", str(entry.get("url")), json_body={"grant_type": "conformance-none"})
        if answer.status is None or answer.status in NOT_THERE:
            detail = f"nothing issues tokens there (POST: {_said(answer)})"
            # Some services answer every refusal with a 404.
            state = State.NOTE if answer.status == HTTPStatus.NOT_FOUND else State.CONTRADICTED
            yield Finding(f"{entry.place}.url", state, detail)


def not_probed(profile: Profile, *, tried: bool) -> tuple[str, ...]:
    """Name the parts of a profile that a check cannot verify: neither by reading nor, if `tried`, by writing."""
    fixtures = {"job_token", *_BY_HAND}
    fixtures |= set() if tried else {"oauth_token_endpoint", *_COMPLETING, *_named_integrations(profile)}
    features = {name for name in FEATURES if profile.features.get(name) and not name.endswith("_integration")}
    told = {*READ_WITH, *READ_OF, *(_TOLD | _of_integrations(profile) if tried else ())}
    return (*sorted(fixtures & profile.fixtures.keys()), *sorted(features - told))


def _of_integrations(profile: Profile) -> frozenset[str]:
    """Return the features that an integration of the profile shows, by one of its parameters or events."""
    entries = [entry for name in _named_integrations(profile) for entry in profile.fixtures[name]]
    kept = (entry.get(where) or () for entry in entries for where in ("parameters", "events", "settings"))
    named = {name for names in kept for name in names}
    return frozenset(feature for name, feature in FEATURE_OF.items() if name in named)


def _named_integrations(profile: Profile) -> list[str]:
    return [
        name
        for name, entries in profile.fixtures.items()
        if name not in _BY_HAND and any("slug" in entry.values for entry in entries)
    ]


def _integrations(target: Readings) -> Iterator[Finding]:
    profile = target.profile
    place = profile.first("fuzz_project") or profile.first("project")
    entries = [entry for name in _named_integrations(profile) for entry in profile.fixtures[name]]
    if place is None or "maintainer" not in profile.actors or not entries:
        return
    base = next(
        (
            path
            for path in (f"/projects/{place.id}/{name}" for name in ("integrations", "services"))
            if target.whole(path, "maintainer") is not None
        ),
        None,
    )
    if base is None:
        yield Finding(
            "fixtures.integrations", State.NOTE, f"the list of project {place.id} is not served: none was tried"
        )
        return
    set_up = {one.get("slug") for one in target.whole(base, "maintainer") or () if one.get("active") is not False}
    tried: list[tuple[Fixture, Exchange, dict[str, Any]]] = []
    for entry in entries:
        if entry["slug"] in set_up:
            detail = f"{entry['slug']} is set up on project {place.id} already, and was not tried"
            yield Finding(entry.place, State.NOTE, detail)
        else:
            tried.append((entry, *_try(target, entry, f"{base}/{entry['slug']}")))
    one_is_taken = any(put.is_success for _, put, _ in tried)
    for each in tried:
        yield from _misfit(*each, one_is_taken=one_is_taken)


def _try(target: Readings, entry: Fixture, path: str) -> tuple[Exchange, dict[str, Any]]:
    """Set an integration up and disable it again; return the answer, and what was shown in between."""
    who, client = target.profile.actors["maintainer"], target.client
    name, value = entry.get("distinctive_name"), entry.get("distinctive_value")
    try:
        put = client.send(who, "PUT", path, json_body=entry["settings"])
        more = {name: value} if name and value is not None else {}
        if put.is_success and more:
            client.send(who, "PUT", path, json_body={**entry["settings"], **more})
        shown = client.send(who, "GET", path).served_object if put.is_success else {}
    finally:
        client.send(who, "DELETE", path)
    return put, flat(shown)


def _misfit(entry: Fixture, put: Exchange, shown: dict[str, Any], *, one_is_taken: bool) -> Iterator[Finding]:
    """Yield the contradictions about one integration. If all are refused, the target may lack the operation."""
    slug, place = entry["slug"], entry.place
    if not put.is_success:
        is_sure = one_is_taken and put.status is not None and put.status < HTTPStatus.INTERNAL_SERVER_ERROR
        which = "slug" if put.status in NOT_THERE else "settings"
        detail = f"{slug} cannot be set up with these settings ({put.call.label}: {_said(put)})"
        yield Finding(f"{place}.{which}", State.CONTRADICTED if is_sure else State.NOTE, detail)
        return
    name, value = entry.get("distinctive_name"), entry.get("distinctive_value")
    if name and value is not None and shown and shown.get(name) != value:
        yield Finding(f"{place}.distinctive_name", State.NOTE, f"{slug} does not show {name} as it was set")
    absent = [event for event in entry.get("events") or () if shown and event not in shown]
    if absent:
        yield Finding(f"{place}.events", State.NOTE, f"{slug} does not show {', '.join(absent)}")


def _completions(target: Readings) -> Iterator[Finding]:
    actor = target.profile.actors.get("owner")
    for name in _COMPLETING if actor is not None else ():
        for entry in target.profile.fixtures.get(name, ()):
            body = {"project_path": entry.get("path")}
            answer = target.client.send(actor, "POST", "/code_suggestions/enabled", json_body=body)
            if answer.status is not None and answer.is_success is (name == "disabled_project"):
                state = "on" if answer.is_success else "off"
                detail = f"code completion is {state} for {entry.get('path')} (POST /code_suggestions/enabled)"
                yield Finding(f"{entry.place}.path", State.NOTE, detail)


def _said(answer: Exchange) -> str:
    return f"status {answer.status}" if answer.status is not None else str(answer.problem)
