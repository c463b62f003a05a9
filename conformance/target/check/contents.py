"""Checks of what fixtures hold: visibility, surroundings, exported objects, rules and passwords."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from conformance.target.names import FIXTURE_ROWS, PRESUMED
from conformance.target.readings import Finding, Readings, State
from conformance.target.spots import project_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target.profile import Fixture


_PATHS = {"projects": "path_with_namespace", "groups": "full_path"}
#: Statuses for things that the caller cannot see.
_HIDDEN = frozenset({403, 404})
_PASSWORD = ("require_password_to_approve", "require_reauthentication_to_approve")
_TITLES = ("title", "name")


_Rule = tuple[Callable[[Mapping[str, Any]], bool], bool, str]


def _of_type(kind: str) -> _Rule:
    return (lambda rule: rule.get("rule_type") == kind), True, f"no rule there is of the type {kind}"


#: Rules that a fixture must have, or must not have.
_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(("policy_project", "policy_group", "report_approver_merge_request"), _of_type("report_approver")),
    "code_owner_merge_request": _of_type("code_owner"),
    "branch_rule_group": (
        lambda rule: bool(rule.get("protected_branches")),
        True,
        "no rule there lists a protected branch",
    ),
    **dict.fromkeys(
        ("fresh_project", "fresh_group"),
        (lambda rule: rule.get("rule_type") != "any_approver", False, "it has rules that somebody made"),
    ),
}


def look_inside(target: Readings, name: str, kind: str, entry: Fixture) -> Iterator[Finding]:
    """Yield the required properties and contents that a fixture lacks."""
    sort = {"project": "projects"}.get(kind, "groups")
    if kind in {"project", "group", "export_group"}:
        path = f"/{sort}/{entry.get('id')}"
        yield from _openness(target, name, entry, path)
        yield from _surroundings(target, name, entry, target.record(path).get(_PATHS[sort]))
    if kind == "export_group":
        yield from _objects(target, entry)
    if name == "hidden_group":
        yield from _hidden(target, entry)
    if name in _RULES:
        yield from _rules(target, name, sort, entry)
    if name == "password_merge_request":
        yield from _password(target, entry)


def _openness(target: Readings, name: str, entry: Fixture, path: str) -> Iterator[Finding]:
    shown = target.record(path)
    found, allowed = shown.get("visibility"), FIXTURE_ROWS[name].visibility
    is_of_approvers, number = name.endswith("approver_group"), entry.get("id")
    names_it = "maintainer" if is_of_approvers and "maintainer" in target.profile.actors else None
    if names_it and shown and target.status_of(names_it, path) in _HIDDEN:
        # Whatever it says of its visibility: a service need not apply every word that it stores.
        detail = f"{number} is {found}, and {names_it}, who names it in rules, cannot see it"
        yield Finding(entry.place, State.CONTRADICTED, detail)
    elif allowed and isinstance(found, str) and found not in allowed:
        detail = f"{number} is {found}, and must be {' or '.join(allowed)}"
        # Services may show another visibility of groups than they apply, and a caller may see a group by a role in it.
        state = State.NOTE if name.endswith("group") else State.CONTRADICTED
        if name in PRESUMED:
            detail += f"; where there is none, leave it out and declare {name}: false"
        yield Finding(entry.place, state, detail)
    if is_of_approvers and shown.get("description") in {"", None} and "description" in shown:
        yield Finding(entry.place, State.NOTE, "it has no description, which records of groups show")


def _surroundings(target: Readings, name: str, entry: Fixture, path: Any) -> Iterator[Finding]:
    around_it = FIXTURE_ROWS[name].inside
    outer = target.profile.first(around_it)
    around = None if outer is None else target.record(f"/groups/{outer.get('id')}").get("full_path")
    # A wrong group is reported at the group itself.
    is_sure = outer is not None and outer.get("path") in {None, around} and entry.get("path") in {None, path}
    if is_sure and isinstance(path, str) and isinstance(around, str) and not path.startswith(f"{around}/"):
        detail = f"{entry.get('id')} is {path}, which is not in {around_it} ({around})"
        yield Finding(f"{entry.place}.id", State.CONTRADICTED, detail)


def _objects(target: Readings, entry: Fixture) -> Iterator[Finding]:
    relation, objects = entry.get("relation"), entry.get("objects") or ()
    if not relation:
        return
    path = f"/groups/{entry.get('id')}/{relation}"
    listed = target.entries(path)
    if listed is None:
        yield Finding(f"{entry.place}.relation", State.NOTE, f"GET {path} does not show what it holds")
        return
    if not listed:
        yield Finding(f"{entry.place}.relation", State.CONTRADICTED, f"the group has no {relation} (GET {path})")
        return
    shown = [value for one in listed for value in one.values() if isinstance(value, str)]
    absent = [text for text in objects if not any(text in value for value in shown)]
    if absent:
        titles = [one[key] for one in listed for key in _TITLES if isinstance(one.get(key), str)]
        detail = f"{', '.join(absent)}: in none of the {relation} of the group (GET {path})"
        yield Finding(f"{entry.place}.objects", State.CONTRADICTED, detail, titles or None)


def _hidden(target: Readings, entry: Fixture) -> Iterator[Finding]:
    path = f"/groups/{entry.get('id')}"
    others = [name for name in target.profile.actors if name not in {"admin", "owner"}]
    if others and all(target.record_of(name, path) for name in others):
        yield Finding(f"{entry.place}.id", State.CONTRADICTED, f"GET {path} shows it to every actor")


def _rules(target: Readings, name: str, sort: str, entry: Fixture) -> Iterator[Finding]:
    if "iid" in entry.values:
        path = f"/projects/{project_of(target.profile, entry)}/merge_requests/{entry.get('iid')}/approval_state"
        found = target.record(path).get("rules")
    else:
        path = f"/{sort}/{entry.get('id')}/approval_rules"
        found = target.entries(path)
    if not isinstance(found, list):
        return
    fits, wanted, detail = _RULES[name]
    if any(fits(rule) for rule in found if isinstance(rule, dict)) is not wanted:
        # The rules are part of the specification, so the target may be wrong instead of the profile.
        yield Finding(entry.place, State.NOTE, f"{detail} (GET {path})")


def _password(target: Readings, entry: Fixture) -> Iterator[Finding]:
    path = f"/projects/{entry.get('project_id')}"
    shown = [target.record(f"{path}/{name}") for name in ("merge_request_approval_setting", "approvals")]
    values = [one[name] for one in shown for name in _PASSWORD if name in one]
    said = [value.get("value") if isinstance(value, dict) else value for value in values]
    if said and True not in said:
        yield Finding(entry.place, State.NOTE, f"{path} does not ask for a password, as far as it says")
