"""Prepares a target: creates worlds with the calls that services of this kind have, and the profile that names them.

It assumes nothing about the target's answers: it looks up what exists before and after each call. So the next call
completes an interrupted preparation, and nothing is created twice.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from conformance.errors import TargetError
from conformance.http.exchange import NOT_THERE
from conformance.target.provisioning.blueprint import Names
from conformance.target.provisioning.calls import Way
from conformance.target.provisioning.inquiry import completes, edition, is_there, token_endpoint
from conformance.target.provisioning.integrations import (
    Kind,
    Trial,
    catalogue,
    described_by,
    features_from,
    fixtures_from,
    unclear,
)
from conformance.target.provisioning.worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.target.provisioning.calls import Calls
    from conformance.target.provisioning.files import Secrets

__all__ = ["PREFIX", "Order", "Provisioned", "Way", "provision"]

#: The default beginning of all names that are created.
PREFIX = "conformance"
#: Is told the present stage, how many steps are done, and how many there are.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to create, and where."""

    base_url: str
    administrator: str
    """The token of an administrator."""
    worlds: int = 1
    prefix: str = PREFIX
    at_once: int = 1
    """How many calls may run in parallel."""
    looks_at_exports: bool = True
    """Whether the export groups are exported, to see which relations an export has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """The state of a target after preparation."""

    worlds: Sequence[World]
    integrations: Mapping[str, Any] = field(default_factory=dict)
    """By fixture."""
    unclear: Mapping[str, str] = field(default_factory=dict)
    """By fixture, why nobody can say whether the target has such integrations."""
    features: Mapping[str, bool] = field(default_factory=dict)
    token_endpoint: str | None = None
    edition: str = "unknown"

    @property
    def refused(self) -> dict[str, str]:
        """What could not be created in some world, with the reason."""
        found: dict[str, str] = {}
        for world in self.worlds:
            found |= world.refused
        return found


def provision(order: Order, calls: Calls, secrets: Secrets, tell: Tell = lambda *_: None) -> Provisioned:
    """Create what is ordered, and return it.

    Raise TargetError when the token is not an administrator's, and UsersRefusedError or NotOursError as worlds do.
    """
    _require_administrator(order, calls)
    worlds = [
        World(calls, Names(order.prefix, number), order.administrator, secrets) for number in range(1, order.worlds + 1)
    ]
    stages = [
        (together[0][0], [step for _, steps in together for step in steps])
        for together in zip(*(world.stages() for world in worlds), strict=True)
    ]
    if order.looks_at_exports:
        stages.append(("exports", [world.look_at_export for world in worlds]))
    first = worlds[0]
    found: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    features: dict[str, bool] = {}
    stages += [
        ("integrations", _trying_integrations(calls, first, found, refused)),
        ("features", [lambda: features.update(_features(calls, first))]),
    ]
    done, total = 0, sum(len(steps) for _, steps in stages)
    with ThreadPoolExecutor(order.at_once) as pool:
        for stage, steps in stages:
            for _ in _each(pool if order.at_once > 1 else None, steps):
                done += 1
                tell(stage, done, total)
    return Provisioned(
        worlds=worlds,
        integrations=fixtures_from(found),
        unclear=unclear(found, refused),
        features=features | (features_from(found, refused) if "workbench" in first.projects else {}),
        token_endpoint=token_endpoint(calls, order.base_url),
        edition=edition(calls, order.administrator) or "unknown",
    )


#: Statuses for a token that a service does not accept.
_OF_TOKENS = (401, 403)
_OTHERWISE = "or let a program of yours make what is needed (conformance provision --with PROGRAM)"


def _require_administrator(order: Order, calls: Calls) -> None:
    answer = calls.get(order.administrator, "/user")
    if answer.status is None:
        raise TargetError(f"{order.base_url} does not answer: {answer.problem}. Is the service running there?")
    if answer.page or (answer.is_served and not isinstance(answer.body, dict)):
        raise TargetError(
            f"{order.base_url} answers GET /user with something else than a user in JSON, in UTF-8. Is it the address "
            "of the service, which is what stands before /api/v4, and does nothing before it ask people to sign in?"
        )
    if answer.status in NOT_THERE:
        raise TargetError(
            f"{order.base_url} has no GET /user (status {answer.status}), by which an administrator's token is known. "
            "Check the address, which is what stands before /api/v4. If it is right, the service does not have the "
            f"calls that this takes: write a profile by hand (conformance target --example), {_OTHERWISE}."
        )
    if answer.status not in _OF_TOKENS and not answer.is_served:
        raise TargetError(
            f"{order.base_url} answers GET /user with {answer}, which says nothing of the token. Check the address, "
            "which is what stands before /api/v4: where it redirects, give the one that this leads to."
        )
    if not answer.is_served:
        raise TargetError(
            f"{order.base_url} does not take the administrator's token: GET /user has {answer}. Check the token and "
            "the address, which is what stands before /api/v4."
        )
    if answer.entry.get("is_admin") is False:
        raise TargetError(
            "The token is not an administrator's, so no users can be made with it. Give an administrator's token, fill "
            f"a profile with what tokens you have may read (conformance target --discover), {_OTHERWISE}."
        )


def _each(pool: ThreadPoolExecutor | None, steps: Sequence[Callable[[], None]]) -> Iterable[None]:
    """Run steps, in parallel if there is a pool; an exception cancels all steps that have not begun."""
    if pool is None:
        for step in steps:
            yield step()
        return
    waiting = [pool.submit(step) for step in steps]
    try:
        for each in waiting:
            yield each.result()
    finally:
        for each in waiting:
            each.cancel()


def _trying_integrations(
    calls: Calls, world: World, found: dict[str, dict[str, Any]], refused: dict[str, str]
) -> list[Callable[[], None]]:
    """Return steps that try each kind on a project of a world, and write the result into `found` or `refused`."""

    @cache
    def trial() -> Trial:
        return Trial.on(calls, world.people["maintainer"].token, world.projects["workbench"]["id"])

    def step(kind: Kind) -> None:
        if "workbench" in world.projects:
            described, not_taken = described_by(trial(), [kind])
            found.update(described)
            refused.update(not_taken)

    return [partial(step, kind) for kind in catalogue()]


def _features(calls: Calls, world: World) -> dict[str, bool]:
    """Find out which features the target has, as far as calls show them; without a place to look at, nobody knows."""
    owner, maintainer = (world.people[name].token for name in ("owner", "maintainer"))
    group, project = world.groups.get("group", {}).get("id"), world.projects.get("project", {}).get("id")
    roles = ("/member_roles", f"/groups/{group}/member_roles")
    rules, configuration = f"/groups/{group}/approval_rules", f"/projects/{project}/approvals"
    callers, completing = (maintainer, owner, world.administrator), world.completions.get("enabled_project")
    # Where no project is said to have completions, they may be served all the same.
    asked = completing or world.projects.get("project", {}).get("path_with_namespace")
    return {
        **world.rules_shown,
        **({"approval_configuration": is_there(calls, callers, configuration)} if project else {}),
        "code_completion": asked is not None and completes(calls, owner, asked),
        **({"group_approval_rules": is_there(calls, callers[1:], rules)} if group else {}),
        "hidden_groups": world.hides_a_group,
        "member_roles": any(calls.get(world.administrator, path).is_served for path in roles),
        **({"public_project": False} if world.lacks_public_projects else {}),
        "password_approval": world.asks_for_password and "password_merge_request" in world.merge_requests,
    }
