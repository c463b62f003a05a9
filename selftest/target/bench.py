"""A reference on which worlds are provisioned without a network, through calls that a test can alter."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.reference import Service, create_service
from conformance.target.embedded import directly
from conformance.target.provisioning import Order, Provisioned, provision
from conformance.target.provisioning.calls import Calls, Way
from conformance.target.provisioning.files import Made, Secrets
from conformance.target.provisioning.profiles import profile_data
from selftest.conftest import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass
class Bench:
    """A reference without fixtures, a way to call it that can be altered, and what earlier preparations saved."""

    service: Service = field(default_factory=lambda: create_service(version=VERSION))
    alter: Callable[[Way], Way] = lambda way: way
    secrets: Secrets = field(default_factory=Secrets)
    made: Made = field(default_factory=Made)
    patience: float = 3

    @property
    def administrator(self) -> str:
        return self.service.administrator.token

    @property
    def calls(self) -> Calls:
        return Calls(self.alter(directly(self.service)), self.made, self.patience)

    def provision(self, worlds: int = 1) -> Provisioned:
        return provision(self.order(worlds), self.calls, self.secrets)

    def order(self, worlds: int = 1) -> Order:
        return Order(base_url="http://127.0.0.1:1", administrator=self.administrator, worlds=worlds)

    def profile(self, done: Provisioned) -> dict[str, Any]:
        return profile_data(self.order(), done)

    def counts(self) -> Counter[str]:
        """Return how many things of each kind exist, without revoked tokens."""
        identities, repositories = self.service.identities, self.service.repositories
        tables: Mapping[str, Mapping[Any, Any]] = {
            "users": identities.users,
            "tokens": identities.tokens,
            "groups": identities.groups,
            "projects": identities.projects,
            "members": identities.roles,
            "commits": repositories.commits,
            "branches": repositories.branches,
            "merge requests": repositories.merge_requests,
            "protected branches": repositories.protected_branches,
            "labels": self.service.planning.labels,
            "milestones": self.service.planning.milestones,
            "rules": self.service.approval_rules.rules,
        }
        return Counter({name: len(table) for name, table in tables.items()})


def reads(bench: Bench) -> dict[str, str]:
    """Return everything that an administrator can read, as it is sent."""
    calls, token = bench.calls, bench.administrator
    lists = ["/users", "/groups", "/projects", "/audit_events", "/personal_access_tokens", "/member_roles"]
    found = {path: list(calls.walk(token, path)) for path in lists}
    places = [f"/{kind}/{entry['id']}" for kind in ("groups", "projects") for entry in found[f"/{kind}"]]
    below = ("", "/members", "/approval_rules", "/merge_request_approval_setting", "/access_tokens", "/integrations")
    found |= {f"{place}{path}": [calls.get(token, f"{place}{path}").body] for place in places for path in below}
    return {path: json.dumps(entries) for path, entries in found.items()}
