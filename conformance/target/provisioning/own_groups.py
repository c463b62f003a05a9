"""Groups that a run makes for itself, for effects that no call can undo: they disappear with the group.

They lie in the group of the profile that they replace, or at the top level if only such groups have rules on the
target. They are used if all actors get the same answers there. A group that could not be removed is used again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING

from conformance.errors import TargetError
from conformance.target.names import CHECKED, LEAVING
from conformance.target.profile import Fixture
from conformance.target.provisioning import PREFIX
from conformance.target.provisioning.blueprint import MARK, is_ours
from conformance.target.provisioning.calls import REFUSED, Calls, Entry, RefusedError, Wanted, segment
from conformance.target.provisioning.sweep import delete_group, is_marked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.target.profile import Actor, Profile

#: The areas with tests whose effects cannot be undone.
NEEDING = frozenset({LEAVING, "project-approval-rules", "merge-request-approvals"})
_APPROVERS = {"user_ids": ("approver", "second_approver"), "group_ids": ("approver_group", "second_approver_group")}
_SHOWN_AS = {"user_ids": "users", "group_ids": "groups"}
#: Statuses for a group that does not exist, or that the caller may not see.
_NOT_THERE = REFUSED - {401}
#: How many groups are searched for those of earlier runs on a target without a search.
_MOST_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True)
class OwnGroup:
    """A group that a run makes for itself."""

    path: str
    """Its full path."""
    name: str
    number: int | None = None
    """Its id; None until it is known."""


# -- making ------------------------------------------------------------------------------------------------------------


@dataclass
class OwnGroups:
    """The groups of a run; `removed` deletes them."""

    around: Profile
    """The profile without these groups."""
    calls: Calls
    run: str
    note: Callable[[OwnGroup], None]
    """Called with each group before it is made, and again when its number is known."""
    _made: Mapping[str, Entry] = field(default_factory=dict)
    _times: int = 0
    _trouble: int = 0

    @property
    def were_tried(self) -> bool:
        """Whether there was an attempt to make them."""
        return self._times > 0

    def profile(self) -> Profile:
        """Make the groups and return the profile with them; the unchanged profile if the target allows none."""
        self._times += 1
        self._made = self._anywhere()
        more = {name: (Fixture(name, values, "a group that the run made"),) for name, values in self._made.items()}
        return replace(self.around, fixtures={**self.around.fixtures, **more})

    def are_lost(self, trouble: int) -> bool:
        """Tell whether they no longer exist; only checked after new network errors."""
        if trouble == self._trouble or not self._made:
            return False
        self._trouble, first = trouble, self._made["rules_group"]
        with suppress(TargetError):
            asking = self.around.known_actors("owner", "admin")
            answers = [self.calls.get(actor.token, f"/groups/{first['id']}") for actor in asking]
            return all(
                answer.status in _NOT_THERE or (answer.is_served and answer.entry.get("full_path") != first["path"])
                for answer in answers
            )
        return False

    def _anywhere(self) -> Mapping[str, Entry]:
        profile = self.around
        group = profile.first("group")
        if not profile.declares("group_approval_rules") or group is None:
            return {}
        run = self.run if self._times == 1 else f"{self.run}-{self._times}"
        for is_nested in (True, False):
            with suppress(RefusedError, TargetError):
                made = _Groups(profile, self.calls, run, self.note, group, is_nested=is_nested).made()
                if made:
                    return made
        return {}


@dataclass(frozen=True)
class _Groups:
    """The groups of a run, in one of the two places where they may lie."""

    profile: Profile
    calls: Calls
    run: str
    note: Callable[[OwnGroup], None]
    group: Fixture
    """The group of the profile."""
    is_nested: bool

    def made(self) -> Mapping[str, Entry]:
        """Make them and return their entries by name; none if they are not as good as the profile's group."""
        if not self._keepers or (self.is_nested and "full_path" not in self.around):
            return {}
        outer = self.around if self.is_nested else {}
        first = self._group("rules_group", outer)
        if not self._is_as_good(first):
            return {}
        groups = {"rules_group": first, "spare_rules_group": self._group("spare_rules_group", outer)}
        with suppress(RefusedError):  # only one test needs it, and has alternatives
            groups["inner_rules_group"] = self._group("inner_rules_group", first)
        known = {name: {"id": one["id"], "path": one["full_path"], "name": one["name"]} for name, one in groups.items()}
        with suppress(RefusedError):
            known["inner_rules_project"] = self._project(first)
        return known

    @cached_property
    def around(self) -> Entry:
        """The group of the profile as the target shows it."""
        return self.calls.find(self._keepers[0].token, f"/groups/{self.group.id}") or {}

    @cached_property
    def _keepers(self) -> list[Actor]:
        """Return the actors who administer the group of the profile, the owner first."""
        return [self.profile.actors[name] for name in ("owner", "admin") if self._usual_access.get(name)]

    @cached_property
    def _usual_access(self) -> Mapping[str, bool]:
        return self._access(self.group.id)

    @cached_property
    def _prefix(self) -> str:
        """The beginning of names, so that `sweep` finds them: that of the profile's group, if provisioning made it."""
        return str(self.around["name"]).partition(" ")[0] if is_ours(self.around) else PREFIX

    def _group(self, name: str, outer: Entry) -> Entry:
        what = name.replace("_", " ")
        # The mark of the run is on the project, and keeps other runs away.
        world = (self.profile.first("project") or self.group).id
        stem, end = f"{self._prefix}-{what.replace(' ', '-')}-", f"-{world}"
        above = f"{outer['full_path']}/" if outer else ""
        stayed = self._stayed(re.compile(re.escape(above + stem) + "[^/]*" + re.escape(end)), stem)
        if stayed is not None:
            return stayed
        path = f"{stem}{self.run.lower()}{end}"
        own = OwnGroup(above + path, self._name(f"{what} of run {self.run}"))
        self.note(own)
        body = {"name": own.name, "path": path, "visibility": "private"}
        wanted = Wanted(
            what=f"group {own.path}",
            path="/groups",
            tokens=[actor.token for actor in self._keepers],
            bodies=[{**body, **({"parent_id": outer["id"]} if outer else {})}],
            look_up=partial(self.calls.find, self._keepers[0].token, f"/groups/{segment(own.path)}"),
            waits_after=frozenset(),
        )
        made = self.calls.make(wanted)
        is_it = (made.get("full_path"), made.get("name")) == (own.path, own.name)
        if not is_it or not isinstance(made.get("id"), int):
            raise RefusedError(f"POST /groups: the answer is not about {own.path}")
        self.note(replace(own, number=made["id"]))
        if not outer:
            self._let_in(made)
        return made

    def _stayed(self, path: re.Pattern[str], search: str) -> Entry | None:
        """Return the group that an earlier run made here, if it cannot be removed."""
        with suppress(RefusedError):
            for one in islice(self.calls.walk(self._keepers[0].token, "/groups", search=search), _MOST_LOOKED_AT):
                if is_ours(one) and not is_marked(one) and path.fullmatch(str(one.get("full_path"))):
                    own = OwnGroup(one["full_path"], one["name"], one.get("id"))
                    if removed(self.calls, self.profile, own) is not None:
                        self.note(own)
                        return one
        return None

    def _name(self, what: str) -> str:
        return f"{self._prefix} {what} ({MARK})"

    def _project(self, outer: Entry) -> Entry:
        """Make a project in a group of the run; it is removed with the group."""
        full_path = f"{outer['full_path']}/rules-project"
        wanted = Wanted(
            what=f"project {full_path}",
            path="/projects",
            tokens=[actor.token for actor in self._keepers],
            bodies=[{"name": self._name("rules project"), "path": "rules-project", "namespace_id": outer["id"]}],
            look_up=partial(self.calls.find, self._keepers[0].token, f"/projects/{segment(full_path)}"),
            waits_after=frozenset(),
            shows=("id",),
        )
        return {"id": self.calls.make(wanted)["id"], "path": full_path}

    def _let_in(self, made: Entry) -> None:
        """Give the actors the roles that they have in the profile's group."""
        known = {actor.id for actor in self.profile.actors.values()}
        token, path = self._keepers[0].token, f"/groups/{made['id']}/members"
        present = _numbers_in([*self.calls.walk(token, path)])
        for entry in self.calls.walk(token, f"/groups/{self.group.id}/members"):
            if entry.get("id") in known - present:
                body = {"user_id": entry["id"], "access_level": entry.get("access_level")}
                self.calls.send(token, "POST", path, body)

    # -- checking ------------------------------------------------------------------------------------------------------

    def _is_as_good(self, made: Entry) -> bool:
        """Tell whether actors get the same answers as in the profile's group, and rules can name these people."""
        path = f"/groups/{made['id']}/approval_rules"
        same = self.calls.until(lambda: made if self._access(made["id"]) == self._usual_access else None)
        token = self._keepers[0].token
        if same is None:
            return False
        if self.run not in str(made["name"]):  # an earlier run has checked it, and left its rules there
            return True
        if any(rule.get("rule_type") != "any_approver" for rule in self.calls.walk(token, path)):
            return False
        sent = {kind: list(self._ids(kind, names)) for kind, names in _APPROVERS.items()}
        # No test changes this rule by choice: where everybody is named already, a lost change would not show.
        body = {"name": f"{CHECKED}{self.run}", "approvals_required": 1, "rule_type": "regular", **sent}
        answer = self.calls.send(token, "POST", path, body)
        if answer.status is not None and not answer.is_served:  # a call without an answer may have worked
            return False
        return self.calls.until(lambda: next(self._naming(path, body["name"], sent), None)) is not None

    def _access(self, number: int) -> Mapping[str, bool]:
        """Return, by actor, who may list the rules of a group."""
        path = f"/groups/{number}/approval_rules"
        return {name: self.calls.get(actor.token, path).is_served for name, actor in self.profile.actors.items()}

    def _ids(self, kind: str, names: tuple[str, ...]) -> Iterator[int]:
        for name in names:
            if kind == "user_ids":
                numbers = [self.profile.actors[name].id] if name in self.profile.actors else []
            else:
                numbers = [one.id for one in self.profile.fixtures.get(name, ())]
            yield from (number for number in numbers if number is not None)

    def _naming(self, path: str, name: object, sent: Mapping[str, list[int]]) -> Iterator[Entry]:
        for rule in self.calls.walk(self._keepers[0].token, path):
            shown = {kind: _numbers_in(rule.get(_SHOWN_AS[kind])) for kind in sent}
            if rule.get("name") == name and all(shown[kind].issuperset(ids) for kind, ids in sent.items()):
                yield rule


def _numbers_in(shown: object) -> set[int]:
    """Return the ids in a list of records, whatever a target shows in its place: tests judge that."""
    ids = [one.get("id") for one in shown if isinstance(one, dict)] if isinstance(shown, list) else []
    return {number for number in ids if isinstance(number, int)}


# -- removing ----------------------------------------------------------------------------------------------------------


def removed(calls: Calls, profile: Profile, group: OwnGroup) -> str | None:
    """Remove a group that a run made, if it still exists; return the reason if that fails.

    A group that the target will delete later by itself counts as removed. Raise TargetError when no answer comes.
    """
    problem: str | None = "the profile has nobody who could remove it"
    for actor in profile.known_actors("owner", "admin"):
        place = f"/groups/{group.number or segment(group.path)}"
        answer = calls.get(actor.token, place)
        if answer.status is None:
            raise TargetError(f"GET {place} has no answer: {answer.problem}")
        if answer.status in _NOT_THERE or is_marked(answer.entry):
            problem = None
            continue
        if not answer.is_served:
            return f"GET {place} has {answer}"
        if group.number and answer.entry.get("full_path") != group.path:  # a target that was reset reuses numbers
            return removed(calls, profile, replace(group, number=None))
        if (answer.entry.get("full_path"), answer.entry.get("name")) != (group.path, group.name):
            return "something else has its place by now"
        deletion = delete_group(calls, actor.token, answer.entry)
        if deletion.status == HTTPStatus.ACCEPTED or (
            deletion.is_served and _is_gone(calls, actor.token, answer.entry)
        ):
            return None
        problem = f"still there after DELETE {place}: {deletion}"
    return problem


def _is_gone(calls: Calls, token: str, group: Entry) -> bool:
    """Wait until a group is deleted or marked for deletion; tell whether it is."""

    def goes() -> Entry | None:
        found = calls.find(token, f"/groups/{group['id']}")
        return group if found is None or is_marked(found) else None

    return calls.until(goes) is not None
