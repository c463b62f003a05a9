"""Checks before the tests: the service answers, it knows the tokens, and has the features that a profile declares."""

from __future__ import annotations

import shlex
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from conformance.errors import TargetError
from conformance.http.client import Client, TargetGoneError
from conformance.http.exchange import NOT_THERE
from conformance.http.settings import without_userinfo
from conformance.target.version import asking_actor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.http.exchange import Exchange, Look
    from conformance.target.profile import Profile


def preflight(profile: Profile, client: Client) -> None:
    """Ask until a service answers; raise TargetError with advice when nothing can be tested.

    This does not judge whether an answer is right: the suite does. An unfinished service may serve only one area, so
    one answer from any area is enough.
    """
    asked: list[str] = []
    problem = None
    is_token_refused = False
    for path in _first_paths(profile):
        if is_token_refused and path == _WITHOUT_TOKEN:
            continue
        try:
            exchange = client.send(asking_actor(profile), "GET", path)
        except TargetGoneError as error:
            raise TargetError(f"{error}. Is the service running there?") from error
        found = _problem(profile, exchange)
        # An area that is not there, or that breaks, may answer before anybody looks at the token.
        if found is None and (not is_token_refused or exchange.status in _TOKEN_IS_KNOWN):
            return
        problem = problem or found
        asked.append(f"GET {path}")
        is_token_refused = is_token_refused or exchange.status == HTTPStatus.UNAUTHORIZED
        if exchange.status is None:
            break  # waiting once is enough
    if problem:
        others = f" and {len(asked) - 1} other reads of several areas" if len(asked) > 1 else ""
        raise TargetError(f"{problem} (asked: {asked[0]}{others})")


#: A read of each area, below the fixture of the profile that it needs.
_FIRST_READS = {
    "approval-settings": (
        ("project", "/projects/{}/merge_request_approval_setting"),
        ("group", "/groups/{}/merge_request_approval_setting"),
    ),
    "job-token-scope": (("project", "/projects/{}/job_token_scope"),),
    "integrations": (("project", "/projects/{}/integrations"),),
    "project-approval-rules": (("project", "/projects/{}/approval_rules"),),
    "project-approval-configuration": (("project", "/projects/{}/approvals"),),
    "group-approval-rules": (("group", "/groups/{}/approval_rules"),),
    "group-relations-export": (("export_group", "/groups/{}/export_relations/status"),),
}


#: The only one of the first paths that some services answer without a token.
_WITHOUT_TOKEN = "/version"  # noqa: S105 - a path
_TOKEN_IS_KNOWN = frozenset({HTTPStatus.OK, HTTPStatus.FORBIDDEN})


def _first_paths(profile: Profile) -> Iterator[str]:
    """Yield paths that services of this kind serve: of the claimed areas, and those that nearly all services have."""
    for area, reads in _FIRST_READS.items():
        if profile.claims(area):
            yield from (path for fixture, below in reads if (path := _below(profile, fixture, below)))
    yield from ("/user", "/version")
    yield from (path for kind in ("project", "group") if (path := _below(profile, kind, f"/{kind}s/{{}}")))


def serves_any(profile: Profile, client: Client) -> bool:
    """Tell whether a target serves a call that nearly all services of this kind have."""
    return any(client.send(asking_actor(profile), "GET", path).is_success for path in _first_paths(profile))


def answers_otherwise(profile: Profile, client: Client, look: Look) -> bool:
    """Tell whether a target answers any call, of those that nearly all services have, in another way than this."""
    answers = (client.send(asking_actor(profile), "GET", path) for path in _first_paths(profile))
    return any(answer.status is not None and answer.look != look for answer in answers)


def _problem(profile: Profile, exchange: Exchange) -> str | None:
    where = profile.redacted()["base_url"]
    if exchange.status is None:
        if "WRONG_VERSION_NUMBER" in str(exchange.problem):
            return f"{where} does not speak TLS at this port. Does base_url have to begin with http:// there?"
        through = f" through the proxy {without_userinfo(profile.proxy)}" if profile.proxy else ""
        what = "proxy and base_url" if profile.proxy else "base_url"
        return f"{where} does not answer{through}: {exchange.problem}. Check {what}, and that the service is running."
    location = exchange.headers.get("location") if exchange.status in range(300, 400) else None
    if location:
        return (
            f"{where} redirects to {_where_to(profile, location)} (status {exchange.status}), where no token is sent. "
            "Write into base_url the address that answers itself; if that asks for a login, one that does not."
        )
    if exchange.is_page or exchange.body[:200].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return (
            f"{where} answers HTML (status {exchange.status}) where the API should be. "
            "base_url is the address above /api/v4; is it a web page or a proxy's error page?"
        )
    if exchange.status == HTTPStatus.UNAUTHORIZED and exchange.call.actor is not None:
        actor = exchange.call.actor
        return (
            f"{where} refuses the token of actor '{actor.name}' (status 401). "
            f"Check the token in the profile, and that it has not expired: {_curl(where, exchange)}"
        )
    return None


def _where_to(profile: Profile, location: str) -> str:
    """Return where a redirect leads, without possible secrets: another server, or a path on the same one."""
    with suppress(ValueError):
        there, here = urlsplit(urljoin(profile.base_url, location)), urlsplit(profile.base_url)
        return there.path if there[:2] == here[:2] else f"{there.scheme}://{there.netloc.rpartition('@')[2]}"
    return "an invalid address"


#: By feature: the actor and the path of a read that only targets with it serve, below a fixture if one is named.
READ_WITH = {
    "approval_configuration": ("owner", "project", "/projects/{}/approvals"),
    "group_approval_rules": ("owner", "group", "/groups/{}/approval_rules"),
    "member_roles": ("admin", None, "/member_roles"),
}
#: Features that fixtures or other keys of the profile declare.
READ_OF = frozenset({"approval_policies", "enterprise_edition", "hidden_groups", "https", "password_approval"})
_EDITIONS: Mapping[bool, str] = {True: "enterprise", False: "community"}


def undeclared(profile: Profile, client: Client) -> tuple[str, ...]:
    """Name the features that the target serves although the profile does not declare them, as far as reads can tell.

    Undeclared features are not tested, so an operator who forgot to declare one should know.
    """
    return tuple(
        f"GET {answer.call.path} is served, though the profile does not declare {feature}; it is not judged."
        for feature, answer in _answered(profile, client, declared=False)
        if answer.is_success and not answer.is_page
    )


def overstated(profile: Profile, client: Client) -> tuple[str, ...]:
    """Name the features that the profile declares and the target seems to lack, as far as reads can tell."""
    found = [
        f"GET {answer.call.path} answers {answer.status}, though the profile declares {feature}. If the target does "
        "not have it, say false; if it should, a run will show it."
        for feature, answer in _answered(profile, client, declared=True)
        if answer.status in NOT_THERE and profile.features.get(feature)
    ]
    asking = next(iter(profile.known_actors("admin", "owner")), None)
    shown = client.send(asking, "GET", "/metadata").served_object if asking is not None else {}
    enterprise = shown.get("enterprise")
    edition = _EDITIONS[enterprise] if isinstance(enterprise, bool) else None
    if edition is not None and profile.edition != edition:
        found.append(f"GET /metadata shows the {edition} edition, and the profile says edition: {profile.edition}.")
    if profile.features.get("https") not in {None, profile.base_url.startswith("https://")}:
        found.append(f"The profile says https: {str(profile.features['https']).lower()}, which base_url contradicts.")
    return tuple(found)


def _answered(profile: Profile, client: Client, *, declared: bool) -> Iterator[tuple[str, Exchange]]:
    """Yield each feature of READ_WITH that is declared, or not, with the answer to its call."""
    for feature, (actor, fixture, path) in READ_WITH.items():
        below = path if fixture is None else _below(profile, fixture, path)
        if below is None or actor not in profile.actors or profile.declares(feature) is not declared:
            continue
        try:
            yield feature, client.send(profile.actors[actor], "GET", below)
        except TargetGoneError:
            return  # the tests will report it


def _below(profile: Profile, fixture: str, path: str) -> str | None:
    entry = profile.first(fixture)
    return path.format(entry.id) if entry else None


def _curl(base_url: str, exchange: Exchange) -> str:
    """Return a command that repeats a call and shows the answer."""
    actor = exchange.call.actor
    token = f'-H "PRIVATE-TOKEN: {actor.variable}" ' if actor else ""
    return f"curl -i {token}{shlex.quote(f'{base_url}/api/v4{exchange.call.target}')}"
