"""Checks before the tests: the service answers, it knows the tokens, and the actors have their roles."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from conformance.errors import TargetError
from conformance.http.client import Client, TargetGoneError
from conformance.http.exchange import NOT_THERE
from conformance.target.readings import Readings
from conformance.target.version import asking_actor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.http.exchange import Exchange
    from conformance.target.profile import Profile

_MAINTAINER, _OWNER = 40, 50
#: Appended to the detail of a refusal that proves no role.
NO_PROOF = " proves no role"


def preflight(profile: Profile, client: Client) -> None:
    """Ask until a service answers; raise TargetError with advice when nothing can be tested.

    This does not judge whether an answer is right: the suite does. An unfinished service may serve only one area, so
    one answer from any area is enough.
    """
    asked: list[str] = []
    problem = None
    for path in _first_paths(profile):
        try:
            exchange = client.send(asking_actor(profile), "GET", path)
        except TargetGoneError as error:
            raise TargetError(f"{error}. Is the service running there?") from error
        found = _problem(profile, exchange)
        if found is None:
            return
        problem = problem or found
        asked.append(f"GET {path}")
        # Waiting once is enough; and calls that need no token say nothing about a token that is refused.
        if exchange.status in {None, HTTPStatus.UNAUTHORIZED}:
            break
    if problem:
        raise TargetError(f"{problem} (asked: {', '.join(asked)})")


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


def _first_paths(profile: Profile) -> Iterator[str]:
    """Yield paths that services of this kind serve: of the claimed areas, and those that nearly all services have."""
    for area, reads in _FIRST_READS.items():
        if profile.claims(area):
            yield from (path for fixture, below in reads if (path := _below(profile, fixture, below)))
    yield from ("/user", "/version")
    yield from (path for kind in ("project", "group") if (path := _below(profile, kind, f"/{kind}s/{{}}")))


def _problem(profile: Profile, exchange: Exchange) -> str | None:
    where = profile.redacted()["base_url"]
    if exchange.status is None:
        if "WRONG_VERSION_NUMBER" in str(exchange.problem):
            return f"{where} does not speak TLS at this port. Does base_url have to begin with http:// there?"
        return f"{where} does not answer: {exchange.problem}. Check base_url, and that the service is running."
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
        if answer.is_success
    )


def overstated(profile: Profile, client: Client) -> tuple[str, ...]:
    """Name the features that the profile declares and the target seems to lack, as far as reads can tell."""
    found = [
        f"GET {answer.call.path} answers {answer.status}, though the profile declares {feature}. If the target does "
        "not have it, say false; if it should, a run will show it."
        for feature, answer in _answered(profile, client, declared=True)
        if answer.status in NOT_THERE and profile.features.get(feature)
    ]
    asking = next((profile.actors[name] for name in ("admin", "owner") if name in profile.actors), None)
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


@dataclass(frozen=True, slots=True)
class RoleProof:
    """The claim that one actor had to prove, and the result."""

    actor: str
    claim: str
    shown: str
    """`proven`, `contradicted` or `open`."""
    detail: str


@dataclass(frozen=True, slots=True)
class _Trial:
    claim: str
    path: str
    served: bool
    """Whether the specification requires that the role is served; otherwise it must be refused."""
    least: int
    """The lowest level that is served, as services of this kind count levels."""
    instead: str = ""
    """Another path with the same roles, for a target that lacks the first one."""

    @property
    def place(self) -> str:
        """The path of the project or group."""
        return self.path.rpartition("/")[0]


def prove_roles(profile: Profile, client: Client) -> tuple[RoleProof, ...]:
    """Let each actor prove its claimed role with reads whose result depends on the role.

    The profile or the target may be wrong; a run will show which, so contradictions are only warnings.
    """
    target = Readings(profile, client)
    asked = {name: _TRIALS[name](profile) for name in profile.actors if name in _TRIALS}
    proofs = [_proof(target, name, trial) for name, trials in asked.items() for trial in trials]
    silent = [name for name in profile.actors if not any(proof.actor == name for proof in proofs)]
    return (*proofs, *(RoleProof(name, "token is accepted", *_token_is_known(target, name)) for name in silent))


def _proof(target: Readings, name: str, trial: _Trial) -> RoleProof:
    exchange = target.client.send(target.profile.actors[name], "GET", trial.path)
    if exchange.status in NOT_THERE and trial.instead:
        return _proof(target, name, replace(trial, path=trial.instead, instead=""))
    if exchange.status is None or exchange.status >= 500:  # noqa: PLR2004 - HTTP's own number
        return RoleProof(name, trial.claim, "open", exchange.problem or f"status {exchange.status}")
    proven = exchange.is_success if trial.served else exchange.is_refusal
    if exchange.status in NOT_THERE:
        return _proof_by_list(target, name, trial, exchange)
    if not trial.served and exchange.status == HTTPStatus.UNAUTHORIZED and not target.user(name):
        if target.refuses_token_of(name):
            return RoleProof(name, trial.claim, "contradicted", "status 401: the token itself is refused")
        return RoleProof(name, trial.claim, "open", f"status 401, which may be said of the token,{NO_PROOF}")
    return RoleProof(
        name,
        trial.claim,
        "proven" if proven else "contradicted",
        f"GET {trial.path}: status {exchange.status}, expected {'200' if trial.served else 'a refusal'}",
    )


def _proof_by_list(target: Readings, name: str, trial: _Trial, refusal: Exchange) -> RoleProof:
    """Check a refusal with the list of members, because missing and hidden things get the same answer."""
    levels, number = target.levels(trial.place), target.user(name).get("id") or target.profile.actors[name].id
    refused = f"GET {trial.path}: status {refusal.status}"
    if levels is None or number is None:
        return RoleProof(name, trial.claim, "open", f"{refused}{NO_PROOF}")
    level = levels.get(number, 0)
    shown = "proven" if (level >= trial.least) is trial.served else "contradicted"
    has = f"level {level} in" if level else "not in"
    return RoleProof(name, trial.claim, shown, f"{refused}, and {has} GET {trial.place}/members/all")


def _token_is_known(target: Readings, name: str) -> tuple[str, str]:
    """Tell whether a target knows a token at all; open when it has no call to ask that."""
    if target.refuses_token_of(name):
        return "contradicted", "GET /user: status 401: the token is refused"
    if target.user(name):
        return "proven", "GET /user: the token is accepted"
    return "open", f"GET /user: status {target.status_of(name, '/user')}; the target does not say"


#: Paths that are served to the maintainers of a project and to nobody below.
_FOR_MAINTAINERS = ("merge_request_approval_setting", "job_token_scope")


def _project_settings(profile: Profile, *, served: bool) -> list[_Trial]:
    claim = "is at least maintainer of project" if served else "is below maintainer in project"
    path, instead = (_below(profile, "project", f"/projects/{{}}/{name}") for name in _FOR_MAINTAINERS)
    return [_Trial(claim, path, served, _MAINTAINER, instead)] if path and instead else []


def _group_settings(profile: Profile, *, served: bool) -> list[_Trial]:
    claim = "is owner of group" if served else "is not owner of group"
    path = _below(profile, "group", "/groups/{}/merge_request_approval_setting")
    return [_Trial(claim, path, served, _OWNER)] if path else []


_TRIALS: dict[str, Callable[[Profile], list[_Trial]]] = {
    "owner": lambda profile: _group_settings(profile, served=True),
    "maintainer": lambda profile: [*_project_settings(profile, served=True), *_group_settings(profile, served=False)],
    **dict.fromkeys(
        ("developer", "reporter", "guest", "approver", "second_approver", "author"),
        lambda profile: _project_settings(profile, served=False),
    ),
    "outsider": lambda profile: [*_project_settings(profile, served=False), *_group_settings(profile, served=False)],
}
