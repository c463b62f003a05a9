"""Builds the profile of a prepared target, and lists what its operator still has to make by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.target.names import ACTORS, FIXTURES
from conformance.target.provisioning.blueprint import Blueprint, data_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.target.provisioning import Order, Provisioned
    from conformance.target.provisioning.calls import Entry
    from conformance.target.provisioning.worlds import World

Data = dict[str, Any]
#: Returns the text for a secret in the profile, given its variable and its value.
Hide = Callable[[str, str], str]

_ALLOWLIST_SIZE = 5


def by_variable(name: str, _: str) -> str:
    """Return a reference to the variable."""
    return f"${{{name}}}"


def by_value(_: str, value: str) -> str:
    """Return the secret itself, for a profile that is never written to a file."""
    return value


def profile_data(order: Order, done: Provisioned, hide: Hide = by_variable, **more: Any) -> Data:
    """Return the profile as plain data for its file; `more` has further keys."""
    first, *others = [
        {"actors": _actors(world, hide), "fixtures": fixtures_of(world, done, hide)} for world in done.worlds
    ]
    return {
        "base_url": order.base_url,
        "edition": done.edition,
        "disposable": True,
        **more,
        "actors": first["actors"],
        "fixtures": first["fixtures"],
        "features": dict(sorted(done.features.items())),
        **({"worlds": others} if others else {}),
    }


def _actors(world: World, hide: Hide) -> Data:
    found: Data = {}
    for name in (name for name in ACTORS if name in world.people):
        person, secret = world.people[name], world.names.secret
        password = {"password": hide(secret(name, "password"), person.password)} if person.password else {}
        token = hide(secret(name, "token"), person.token)
        found[name] = {"id": person.id, "username": person.username, "token": token, **password}
    return found


def exported_relation(world: World) -> tuple[str, Sequence[str]] | None:
    """Return the relation whose files are looked into, and what they hold; None if an export shows none with objects.

    If nobody saw an export, or if only this relation did not finish, it is the first of which the group has any.
    """
    made = {name: titles for name, titles in (("labels", world.labels), ("milestones", world.milestones)) if titles}
    seen = world.exported
    finished = {name: number for name, number in (seen or {}).items() if number is not None}
    fitting = (name for name in made if seen is None or name in finished)
    most = max(sorted(finished), key=finished.__getitem__) if any(finished.values()) else None
    unfinished = next((name for name in made if seen and name in seen), None)
    relation = next(fitting, most or unfinished)
    return (relation, sorted(made.get(relation, ()))) if relation else None


def _exported(world: World) -> dict[str, Data]:
    """Return, by group, the relation whose files are looked into, and what they hold."""
    relation, objects = exported_relation(world) or (None, ())
    if relation is None:
        return {}
    inside = {"objects": sorted(world.inner_labels)} if relation == "labels" and world.inner_labels else {}
    return {
        "export_group": {"relation": relation, **({"objects": objects} if objects else {})},
        "inner_export_group": inside,
    }


def fixtures_of(world: World, done: Provisioned, hide: Hide, *, all_of_them: bool = False) -> Data:
    """Return the fixtures of a world; with `all_of_them`, also things that only the blueprint names."""
    found: Data = {name: _place(entry, "full_path") for name, entry in world.groups.items()}
    found |= {name: _place(entry, "path_with_namespace") for name, entry in world.projects.items()}
    found |= {name: _merge_request(name, entry, world) for name, entry in world.merge_requests.items()}
    found |= {
        name: {key: entry[key] for key in ("id", "name", "project_id")}
        for name, entry in world.protected_branches.items()
    }
    for kind in ("project", "group"):
        names = [f"allowlist_{kind}_{number}" for number in range(1, _ALLOWLIST_SIZE + 1)]
        found[f"allowlist_{kind}s"] = [found.pop(name) for name in names if name in found]
    useless = {
        "public_project": world.lacks_public_projects,
        "hidden_group": not world.hides_a_group,
        "password_merge_request": not world.asks_for_password,
        "branch_rule_group": not world.rules_shown.get("group_branch_rules"),
    }
    found = {name: entry for name, entry in found.items() if not useless.get(name)}
    for name, exported in _exported(world).items():
        if name in found:
            found[name] |= exported
    if "enabled_project" in world.completions:
        found |= {name: {"path": path} for name, path in world.completions.items()}
    if world.second_token:
        found["second_token"] = {"token": hide(world.names.secret("developer", "second_token"), world.second_token)}
    if done.token_endpoint:
        found["oauth_token_endpoint"] = {"url": done.token_endpoint}
    found |= done.integrations
    order = (*FIXTURES, *(found if all_of_them else ()))
    return {name: found[name] for name in order if found.get(name)}


def _place(entry: Entry, path: str) -> Data:
    more = ("name", "default_branch", "description")
    return {"id": entry["id"], "path": entry[path]} | {key: entry[key] for key in more if entry.get(key)}


def _merge_request(name: str, entry: Entry, world: World) -> Data:
    heads, branches = ("sha", "former_sha", "target_sha"), ("source_branch", "target_branch")
    keys = ("id", "iid", *heads, "project_id", "title", "description", *branches)
    project = next(each for each in world.projects.values() if each["id"] == entry["project_id"])
    found = {key: entry[key] for key in keys if entry.get(key) is not None}
    author = world.people[Blueprint.load().opener_of(name)]
    return found | {"project_path": project["path_with_namespace"], "author_id": author.id}


def with_additions(data: Data, known: Any) -> Data:
    """Return a profile with the operator's additions from `known`, an older profile of the same target.

    Additions are: things that no call makes, their features, the version, and other keys, such as limits.
    """
    if not isinstance(known, dict) or known.get("base_url") != data["base_url"]:
        return data
    by_hand_only = data_file("by_hand.yaml")
    names = {name for entry in by_hand_only for name in entry["fixtures"]}
    declared = {entry.get("feature") for entry in by_hand_only}
    fixtures = {name: value for name, value in (known.get("fixtures") or {}).items() if name in names}
    features = {name: True for name, value in (known.get("features") or {}).items() if value and name in declared}
    # What the operator said about a kind of integration is dropped once one of that kind is found.
    said = {name: value for name, value in (known.get("features") or {}).items() if name not in data["fixtures"]}
    return {
        **{name: value for name, value in known.items() if name != "worlds"},
        **data,
        **{name: known[name] for name in ("version", "disposable") if name in known},
        "fixtures": {**fixtures, **data["fixtures"]},
        "features": {**said, **data["features"], **features},
    }


# -- what is left to do ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ByHand:
    """Something that no call can make."""

    fixtures: tuple[str, ...]
    feature: str | None
    """The feature to declare with it, if the profile does not yet."""
    how: str
    unlocks: int
    """How many requirements can only be verified with it."""

    @property
    def title(self) -> str:
        """Its name in the profile."""
        return ", ".join(self.fixtures) or f"feature {self.feature}"


def by_hand(data: Mapping[str, Any]) -> Sequence[ByHand]:
    """Return what the profile lacks and no call can make; what makes most requirements testable comes first."""
    known, features = data["fixtures"], data.get("features", {})
    left = []
    for entry in data_file("by_hand.yaml"):
        missing = tuple(name for name in entry["fixtures"] if name not in known)
        feature = entry.get("feature")
        if missing or (not entry["fixtures"] and not features.get(feature)):
            undeclared = None if features.get(feature) else feature
            left.append(ByHand(missing, undeclared, entry["how"], _unlocked(missing, undeclared)))
    return sorted(left, key=lambda each: -each.unlocks)


def _unlocked(fixtures: Sequence[str], feature: str | None) -> int:
    requirements = Contract.load().requirements.values()
    return sum(
        (feature is not None and each.feature == feature) or not {*each.needs}.isdisjoint(fixtures)
        for each in requirements
    )
