"""Checks of fixtures: whether the target shows under an id, a path or a name what the profile says."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.target.names import FIXTURE_ROWS
from conformance.target.profile import Actor
from conformance.target.readings import Finding, Readings, State
from conformance.target.spots import project_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from conformance.target.profile import Fixture


def _subject(target: Readings, place: str, entry: Fixture, sort: str, shown_path: str) -> Iterator[Finding]:
    number, path = entry.get("id"), entry.get("path")
    asked = ("owner", "maintainer", "admin", *members_of(place.removeprefix("fixtures.")))
    by_id = target.record(f"/{sort}/{number}", *asked) if number is not None else {}
    is_named = not path or _is_of(by_id, path, shown_path)
    by_path = {} if is_named else target.record(f"/{sort}/{quote(str(path), safe='')}", *asked)
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


def members_of(name: str) -> list[str]:
    """Return the actors who must have a role in a fixture; one where nobody else has any is shown to them alone."""
    return [who for who, (low, _) in FIXTURE_ROWS[name].roles.items() if low] if name in FIXTURE_ROWS else []


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


#: The check of each kind of fixture.
BY_KIND: Mapping[str, Callable[[Readings, str, Fixture], Iterable[Finding]]] = {
    "project": _project,
    "group": _group,
    "export_group": _group,
    "merge_request": _merge_request,
    "merge_request_elsewhere": _merge_request,
    "protected_branch": _branch,
    "completing_project": _completing,
    "second_token": _second_token,
}
