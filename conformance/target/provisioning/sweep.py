"""Removes what provisioning made; only its mark identifies it, so nothing else is touched, and no profile is needed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from operator import call
from typing import TYPE_CHECKING

from conformance.errors import TargetError
from conformance.target.marker import KEY, run_behind
from conformance.target.provisioning.blueprint import is_ours
from conformance.target.provisioning.calls import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.target.provisioning.calls import Answer, Calls, Entry


@dataclass(frozen=True, slots=True)
class Removal:
    """The result of removing one thing with the mark."""

    what: str
    problem: str = ""
    """Why it still exists; empty when it is gone."""
    place: str = ""
    """The path that shows it while it exists."""


def sweep(
    calls: Calls, administrator: str, prefix: str, tell: Callable[[Removal], None], at_once: int = 1
) -> Sequence[Removal]:
    """Remove personal projects, then groups with a prefix and all their contents, then the users, several in parallel.

    Return the results. A group that contains something that provisioning did not make is kept. Raise RefusedError when
    the target does not list groups or users, and TargetError when a run uses one of the worlds.
    """
    sweeper = _Sweeper(calls, administrator, prefix)
    sweeper.require_unused()
    done = []
    with ThreadPoolExecutor(at_once) as pool:
        # Things that a target keeps for a while may disappear with their user, so they are checked at the end.
        personal = list(pool.map(call, sweeper.personal_projects()))
        for steps in (sweeper.groups(), sweeper.users(), [partial(sweeper.seen_again, one) for one in personal]):
            for removal in pool.map(call, steps):
                tell(removal)
                done.append(removal)
    return done


def delete_group(calls: Calls, token: str, group: Entry) -> Answer:
    """Delete a group; if the target only marks it for deletion, delete it again permanently."""
    return _delete(calls, token, f"/groups/{group['id']}", "full_path", group)


def _delete(calls: Calls, token: str, place: str, path_key: str, entry: Entry) -> Answer:
    answer = calls.remove(token, place)
    left = calls.find(token, place)  # it may have another path now
    if left and is_marked(left):
        query = {"permanently_remove": True, "full_path": left.get(path_key, entry.get(path_key))}
        answer = calls.send(token, "DELETE", place, query)
    return answer


def is_marked(place: Entry) -> bool:
    """Tell whether a target has marked a group or project for deletion."""
    return bool(place.get("marked_for_deletion_on") or place.get("marked_for_deletion"))


def _path_of(place: Entry) -> str:
    return str(place.get("full_path") or place.get("path_with_namespace"))


@dataclass(frozen=True, slots=True)
class _Sweeper:
    calls: Calls
    administrator: str
    prefix: str
    _unsearched: dict[str, list[Entry]] = field(default_factory=dict)
    """Whole lists, for a target that does not list the contents of a group."""

    def _all(self, path: str) -> list[Entry]:
        """Return the entries of a list that may be ours; a target without a search returns all."""
        query = {"search": self.prefix, **({"search_namespaces": True} if path == "/projects" else {})}
        try:
            found = list(self.calls.walk(self.administrator, path, **query))
        except RefusedError:
            found = list(self.calls.walk(self.administrator, path))
        nameless = [entry for entry in found if self._is_ours(entry) and "id" not in entry]
        if nameless:
            raise RefusedError(f"GET {path} shows no id of {nameless[0]['name']}")
        return found

    def _is_ours(self, entry: Entry) -> bool:
        return is_ours(entry) and str(entry["name"]).startswith(f"{self.prefix} ")

    def require_unused(self) -> None:
        """Raise TargetError when a project that should be removed has the mark of a running run."""
        for project in filter(self._is_ours, self._all("/projects")):
            mark = self.calls.get(self.administrator, f"/projects/{project['id']}/variables/{KEY}").entry
            run = run_behind(mark.get("value"))
            if run is not None:
                raise TargetError(
                    f"A run uses {project.get('path_with_namespace')}: {run}. Nothing was removed. Wait for it, "
                    "or end it, and sweep again."
                )

    def personal_projects(self) -> list[Callable[[], Removal]]:
        """Return steps that remove the projects that lie in the namespaces of users."""
        found = [one for one in self._all("/projects") if self._is_ours(one)]
        personal = [one for one in found if (one.get("namespace") or {}).get("kind") == "user"]
        return [partial(self._remove_project, project) for project in personal]

    def _remove_project(self, project: Entry) -> Removal:
        place = f"/projects/{project['id']}"
        answer = _delete(self.calls, self.administrator, place, "path_with_namespace", project)
        return self._result(f"project {project.get('path_with_namespace')}", place, answer)

    def seen_again(self, removal: Removal) -> Removal:
        """Check a removed thing again, and return the result."""
        if removal.problem and not self.calls.find(self.administrator, removal.place):
            return Removal(removal.what, place=removal.place)
        return removal

    def groups(self) -> list[Callable[[], Removal]]:
        """Return steps that remove the top-level groups."""
        steps: list[Callable[[], Removal]] = []
        for group in self._all("/groups"):
            path = str(group.get("full_path"))
            if not self._is_ours(group) or "/" in path:
                continue
            within = ((_path_of(entry), entry) for entry in self._within(group))
            foreign = [inner for inner, entry in within if inner.startswith(f"{path}/") and not self._is_ours(entry)]
            if foreign:
                problem = f"{foreign[0]} lies in it, which was not made by provisioning"
                steps.append(partial(Removal, f"group {path}", problem))
            else:
                steps.append(partial(self._remove_group, group, path))
        return steps

    def _within(self, group: Entry) -> Iterator[Entry]:
        """Yield what lies in a group, and perhaps more. A search by the prefix may miss what others put there."""
        for below, everywhere in (("descendant_groups", "/groups"), ("projects", "/projects")):
            try:
                inside = self.calls.walk(self.administrator, f"/groups/{group['id']}/{below}", include_subgroups=True)
                yield from inside
            except RefusedError:
                if everywhere not in self._unsearched:
                    self._unsearched[everywhere] = list(self.calls.walk(self.administrator, everywhere))
                yield from self._unsearched[everywhere]

    def _remove_group(self, group: Entry, path: str) -> Removal:
        answer = delete_group(self.calls, self.administrator, group)
        return self._result(f"group {path}", f"/groups/{group['id']}", answer)

    def users(self) -> list[Callable[[], Removal]]:
        """Return steps that remove users and bots; call this after the groups are known."""
        return [partial(self._remove_user, user) for user in self._all("/users") if self._is_ours(user)]

    def _remove_user(self, user: Entry) -> Removal:
        place = f"/users/{user['id']}"
        answer = self.calls.remove(self.administrator, f"{place}?hard_delete=true")
        if not answer.is_served and self.calls.find(self.administrator, place):
            answer = self.calls.remove(self.administrator, place)
        return self._result(f"user {user.get('username')}", place, answer)

    def _result(self, what: str, place: str, answer: Answer) -> Removal:
        """Wait until something is gone, because targets may delete later than they answer."""
        is_gone = self.calls.until(lambda: None if self.calls.find(self.administrator, place) else {"gone": True})
        return Removal(what, "" if is_gone else f"still there after DELETE {place}: {answer}", place)
