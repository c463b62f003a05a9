"""Compares a profile with its target before anything is judged by it: each name must stand for what the profile says.

It only trusts calls outside the specification that services of this kind have, such as `GET /projects/:id`, because
the suite tests the specification itself. What cannot be read proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import combinations
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.target.names import FIXTURE_ROWS, PLURALS, PRESUMED
from conformance.target.profile import Actor
from conformance.target.readings import Finding, Readings, State
from conformance.target.spots import project_of
from conformance.target.version import Reported, ask_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.http.client import Client
    from conformance.target.profile import Fixture, Profile


def as_table(findings: Iterable[Finding]) -> str:
    """Return findings as a table for people: contradictions first, with the values to write."""
    order = [*State]
    rows = [
        ("where", "what", "found", ""),
        *(
            (one.place, str(one.state), one.detail, "" if one.write is None else json.dumps(one.write))
            for one in sorted(findings, key=lambda one: order.index(one.state))
        ),
    ]
    width = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(
        f"{place:<{width[0]}}  {state:<{width[1]}}  {detail}{f'; write {value}' if value else ''}"
        for place, state, detail, value in rows
    )


def check_profile(profile: Profile, client: Client, worlds: Iterable[int] = (0,)) -> tuple[Finding, ...]:
    """Return where the target contradicts the profile, what is missing, and what could not be read.

    It only reads. `worlds` are the numbers of the worlds to check. Raise TargetGoneError when nobody answers. A single
    lost or incomplete answer contradicts nothing, because contradictions are checked once more.
    """
    numbers = [*worlds]
    found = _look(profile, client, numbers)
    contradicted = {one.place for one in found if one.state is State.CONTRADICTED}
    if not contradicted:
        return found
    again = _look(profile, client, numbers)
    return tuple(one for one in again if one.state is not State.CONTRADICTED or one.place in contradicted)


def _look(profile: Profile, client: Client, numbers: Sequence[int]) -> tuple[Finding, ...]:
    """Run all checks once."""
    looks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [("", partial(doubted_version, profile, client))]
    for number in numbers:
        before = f"worlds[{number - 1}]." if number else ""
        looks += [(before, look) for look in _looks(profile.in_world(number), client)]
    # One after the other, these reads would delay a run against a distant target by minutes.
    at_once = client.settings.at_once * max(1, len(numbers))
    with client.for_several(len(numbers)), ThreadPoolExecutor(at_once) as pool, client.ending_when_interrupted():
        found = pool.map(lambda look: [replace(one, place=f"{look[0]}{one.place}") for one in look[1]()], looks)
        return tuple({(one.place, one.detail): one for several in found for one in several}.values())


def _looks(profile: Profile, client: Client) -> Iterator[Callable[[], Iterable[Finding]]]:
    """Yield the checks of a world; they can run in parallel."""
    target = Readings(profile, client)
    yield partial(_duplicates, profile)
    yield partial(_too_few, profile)
    yield from (partial(_actor, target, name) for name in profile.actors)
    for name, entries in profile.fixtures.items():
        row = FIXTURE_ROWS[name]
        look = _BY_KIND.get(row.kind)
        for entry in entries:
            if look is not None:
                yield partial(look, target, entry.place, entry)
            yield partial(look_inside, target, name, row.kind, entry)
            if row.roles:
                yield partial(_roles, target, entry.place, name, entry)


# -- checks without calls ----------------------------------------------------------------------------------------------


def _duplicates(profile: Profile) -> Iterator[Finding]:
    """Yield names that stand for the same thing although they must not."""
    for one, other in combinations(profile.actors.values(), 2):
        values = ((key, getattr(one, key), getattr(other, key)) for key in ("token", "id", "username"))
        same = next((key for key, its, others in values if its is not None and its == others), None)
        if same is not None:
            # The administrator is only an additional reader.
            state = State.NOTE if "admin" in (one.name, other.name) else State.CONTRADICTED
            detail = f"the same {same} as that of {one.name}: each actor is a user of its own"
            yield Finding(f"actors.{other.name}.{same}", state, detail)
    things: dict[tuple[str, Any], str] = {}
    for name, entries in profile.fixtures.items():
        row = FIXTURE_ROWS[name]
        key = next((key for key in ("slug", "iid", "id") if any(key == entry.name for entry in row.fields)), "")
        for entry in entries:
            place, value = entry.place, entry.get(key)
            before = [things[sort, value] for sort in row.apart if (sort, value) in things]
            if before and value is not None:
                detail = f"the same as {before[0]}: each of these is a thing of its own"
                yield Finding(f"{place}.{key}", State.CONTRADICTED, detail)
            things |= {(sort, value): place for sort in row.apart if (sort, value) not in things}


def _too_few(profile: Profile) -> Iterator[Finding]:
    for plural, singular in PLURALS.items():
        number, least = len(profile.fixtures.get(singular, ())), FIXTURE_ROWS[plural].least
        if 0 < number < least:
            detail = f"{number} of at least {least}: add {least - number} more"
            yield Finding(f"fixtures.{plural}", State.MISSING, detail)


# -- actors ------------------------------------------------------------------------------------------------------------


def doubted_version(profile: Profile, client: Client) -> Iterator[Finding]:
    """Yield a finding if the target reports another version than the one that is declared."""
    if profile.version is None or profile.asks_version:
        return
    said = ask_version(profile, client)
    if isinstance(said, Reported) and profile.version not in (said.version, said.judged_by):
        declared = f"a newer one, judged as {profile.version}" if profile.version_warning else f"{profile.version}"
        detail = f"{declared} ({profile.version_source}), and the target says {said.text} ({said.place})"
        # A version with another numbering scheme belongs to an independent implementation, and proves nothing here.
        is_wrong = profile.version_source.endswith("profile") and said.judged_by is not None
        yield Finding("version", State.CONTRADICTED if is_wrong else State.NOTE, detail, str(said.version))


def _actor(target: Readings, who: str) -> Iterator[Finding]:
    actor, place, shown = target.profile.actors[who], f"actors.{who}", target.user(who)
    status = target.status_of(who, "/user")
    if target.refuses_token_of(who):
        yield Finding(f"{place}.token", State.CONTRADICTED, "the target refuses it (GET /user: status 401)")
        return
    if not isinstance(shown.get("id"), int) or not isinstance(shown.get("username"), str):
        yield Finding(place, State.NOTE, f"GET /user does not say who it is (status {status})")
        return
    for name in ("id", "username"):
        said = getattr(actor, name)
        if said is None:
            yield Finding(f"{place}.{name}", State.MISSING, "what names users needs it", shown[name])
        elif str(said).casefold() != str(shown[name]).casefold():
            detail = f"{said}, and the token is of {shown[name]} (GET /user)"
            is_right = sum(other.token == actor.token for other in target.profile.actors.values()) == 1
            yield Finding(f"{place}.{name}", State.CONTRADICTED, detail, shown[name] if is_right else None)
    if who.endswith("_bot") and shown.get("bot") is False:
        yield Finding(f"{place}.token", State.CONTRADICTED, "it is of a person, and not of a bot (GET /user)")
    if who == "admin" and shown.get("is_admin") is False:
        detail = "it is of somebody who is no administrator (GET /user): name one, or leave admin out"
        yield Finding(f"{place}.token", State.CONTRADICTED, detail)


def _second_token(target: Readings, place: str, entry: Fixture) -> Iterator[Finding]:
    """Yield that another token of the developer is the same one, is refused, or is somebody else's."""
    developer, token = target.profile.actors.get("developer"), str(entry["token"])
    if developer is None or target.refuses_token_of("developer"):
        return
    if token == developer.token:
        yield Finding(f"{place}.token", State.CONTRADICTED, "the same as actors.developer.token: name another one")
        return
    answer = target.client.send(Actor("developer", token), "GET", "/user")
    known, shown = target.user("developer").get("id"), answer.served_object.get("id")
    if known is not None and answer.status == HTTPStatus.UNAUTHORIZED:
        yield Finding(f"{place}.token", State.CONTRADICTED, "the target refuses it (GET /user: status 401)")
    elif None not in (known, shown) and known != shown:
        detail = f"it is of user {shown}, and developer is user {known} (GET /user)"
        yield Finding(f"{place}.token", State.CONTRADICTED, detail)


def _roles(target: Readings, place: str, name: str, entry: Fixture) -> Iterator[Finding]:
    """Yield actors whose role in a fixture is not the one that they need."""
    sort = "projects" if FIXTURE_ROWS[name].kind == "project" else "groups"
    path = f"/{sort}/{entry.get('id')}"
    levels = target.levels(path)
    if levels is None:
        yield Finding(place, State.NOTE, "its members cannot be read, so that no role in it was checked")
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


# -- fixtures ----------------------------------------------------------------------------------------------------------


def _subject(target: Readings, place: str, entry: Fixture, sort: str, shown_path: str) -> Iterator[Finding]:
    number, path = entry.get("id"), entry.get("path")
    by_id = target.record(f"/{sort}/{number}") if number is not None else {}
    by_path = (
        target.record(f"/{sort}/{quote(str(path), safe='')}") if path and not _is_of(by_id, path, shown_path) else {}
    )
    if not by_id and isinstance(by_path.get("id"), int) and number is not None:
        detail = f"nothing is shown of {number}, and {path} is {by_path['id']} (GET /{sort}/:id)"
        yield Finding(f"{place}.id", State.CONTRADICTED, detail, by_path["id"])
    elif by_id and path and not _is_of(by_id, path, shown_path) and isinstance(by_id.get(shown_path), str):
        other = f", which is {by_path['id']}" if isinstance(by_path.get("id"), int) else ""
        detail = f"{number} is {by_id[shown_path]} (GET /{sort}/:id), and not {path}{other}"
        which, write = ("id", by_path["id"]) if other else ("path", by_id[shown_path])
        yield Finding(f"{place}.{which}", State.CONTRADICTED, detail, write)
    elif not by_id and not by_path:
        yield _unshown(target, place, sort, number if number is not None else path)
    elif path is None and isinstance(by_id.get(shown_path), str):
        yield Finding(f"{place}.path", State.MISSING, "what is called by the path needs it", by_id[shown_path])
    name = entry.get("name")
    if name and isinstance(by_id.get("name"), str) and by_id["name"] != name:
        yield Finding(f"{place}.name", State.CONTRADICTED, f"{name}, and it is called {by_id['name']}", by_id["name"])
    if by_id.get("archived") is True:
        detail = f"{number} is archived (GET /{sort}/:id), and cannot be changed: unarchive it, or name another"
        yield Finding(f"{place}.id", State.CONTRADICTED, detail)


def _unshown(target: Readings, place: str, sort: str, named: Any) -> Finding:
    """Say that nobody is shown a thing; an administrator who is shown others would be shown it too.

    Without its first project and group a run would show nothing but 404.
    """
    admin, core = target.profile.actors.get("admin"), sort.removesuffix("s")
    controls = (target.profile.value(f"{name}{core}.id") for name in ("", "sibling_", "fuzz_"))
    for control in (each for each in controls if each is not None and each != named):
        shown = target.answer(f"/{sort}/{control}", "admin")
        if shown is not None and shown.is_success and shown.call.actor == admin:
            detail = (
                f"GET /{sort}/{named} shows nothing of it, not even to admin; if it was deleted, run provision again"
            )
            is_needed_by_most = place == f"fixtures.{core}"
            return Finding(place, State.CONTRADICTED if is_needed_by_most else State.GONE, detail)
    return Finding(place, State.NOTE, f"GET /{sort}/{named} shows nothing of it")


def _is_of(record: Mapping[str, Any], path: str, key: str) -> bool:
    return str(record.get(key, "")).casefold() == str(path).casefold()


_project = partial(_subject, sort="projects", shown_path="path_with_namespace")
_group = partial(_subject, sort="groups", shown_path="full_path")


def _merge_request(target: Readings, place: str, entry: Fixture) -> Iterator[Finding]:
    project = project_of(target.profile, entry)
    path = f"/projects/{project}/merge_requests"
    shown = target.record(f"{path}/{entry.get('iid')}")
    if not shown:
        known = target.entries(path)
        if not known or any(one.get("iid") == entry.get("iid") for one in known):
            yield Finding(place, State.NOTE, f"GET {path}/{entry.get('iid')} shows nothing of it")
            return
        open_ = [one.get("iid") for one in known if one.get("state") == "opened"]
        listed = ", ".join(map(str, open_)) or "none"
        detail = f"project {project} has no merge request {entry.get('iid')}; open are {listed}"
        yield Finding(f"{place}.iid", State.CONTRADICTED, detail, open_[0] if len(open_) == 1 else None)
        return
    differing = {
        name: shown[name]
        for name in ("id", "sha", "title", "description")
        if entry.get(name) is not None and isinstance(shown.get(name), int | str) and shown[name] != entry.get(name)
    }
    if {"id", "sha"} <= differing.keys():
        which = "project_id" if entry.get("project_id") is not None else "iid"
        detail = f"{entry.get(which)}, and {path}/{entry.get('iid')} is another merge request: {shown.get('title')}"
        yield Finding(f"{place}.{which}", State.CONTRADICTED, detail)
        return
    for name, found in differing.items():
        detail = f"{entry.get(name)}, and it is {found} (GET {path}/{entry.get('iid')})"
        yield Finding(f"{place}.{name}", State.CONTRADICTED, detail, found)
    state = shown.get("state")
    if isinstance(state, str) and state != "opened":
        yield Finding(
            f"{place}.iid", State.CONTRADICTED, f"merge request {entry.get('iid')} is {state}, and must be open"
        )


def _branch(target: Readings, place: str, entry: Fixture) -> Iterator[Finding]:
    project = target.profile.value("project")
    path = f"/projects/{project}/protected_branches"
    known = target.entries(path)
    if not known:
        yield Finding(place, State.NOTE, f"GET {path} shows nothing")
        return
    number, name = entry.get("id"), entry.get("name")
    by_name = next((one for one in known if name and one.get("name") == name), None)
    by_id = next((one for one in known if one.get("id") == number), None)
    if by_name is not None and isinstance(by_name.get("id"), int) and by_name["id"] != number:
        yield Finding(f"{place}.id", State.CONTRADICTED, f"{number}, and {name} is {by_name['id']}", by_name["id"])
    elif by_id is not None and name and by_id.get("name") != name:
        yield Finding(
            f"{place}.name", State.CONTRADICTED, f"{name}, and {number} is {by_id.get('name')}", by_id.get("name")
        )
    elif by_id is None and by_name is None:
        names = ", ".join(str(one.get("name")) for one in known) or "none"
        detail = f"{name or number} is not protected in project {project}; protected are: {names}"
        yield Finding(f"{place}.{'name' if name else 'id'}", State.CONTRADICTED, detail)


def _completing(target: Readings, place: str, entry: Fixture) -> Iterator[Finding]:
    path = entry.get("path")
    if not target.record(f"/projects/{quote(str(path), safe='')}"):
        yield Finding(f"{place}.path", State.NOTE, f"GET /projects/:id shows nothing of {path}")


_BY_KIND: Mapping[str, Callable[[Readings, str, Fixture], Iterable[Finding]]] = {
    "project": _project,
    "group": _group,
    "export_group": _group,
    "merge_request": _merge_request,
    "merge_request_elsewhere": _merge_request,
    "protected_branch": _branch,
    "completing_project": _completing,
    "second_token": _second_token,
}


# -- what fixtures hold ------------------------------------------------------------------------------------------------


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
    if allowed and isinstance(found, str) and found not in allowed:
        detail = f"{number} is {found}, and must be {' or '.join(allowed)}"
        # Services may show another visibility of groups than they apply, and a caller may see a group by a role in it.
        state = State.NOTE if name.endswith("group") else State.CONTRADICTED
        if is_of_approvers and target.status_of("maintainer", path) in _HIDDEN:
            state = State.CONTRADICTED
            detail = f"{number} is {found}, and maintainer, who names it in rules, cannot see it"
        elif name in PRESUMED:
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
