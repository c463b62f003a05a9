"""Approval settings as one caller sees and changes them, and how to restore them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from conformance.results.text import as_json
from conformance.suite.arrange.places import by_full_path, projects_side_by_side
from conformance.suite.arrange.request_examples import WHOLE_BODY, Area, RequestExample, Values
from conformance.suite.context import NotTested, Unmet, current_run
from conformance.suite.expectations import WITH_CHARSET, Answer, Caller, Path, given, group_path, must, project_path
from conformance.suite.per_run import PerRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.suite.arrange.places import Place
    from conformance.target import Fixture

AUTHOR = "allow_author_approval"
COMMITTER = "allow_committer_approval"
OVERRIDES = "allow_overrides_to_approver_list_per_merge_request"
RETAIN = "retain_approvals_on_push"
SELECTIVE = "selective_code_owner_removals"
PASSWORD = "require_password_to_approve"  # noqa: S105 - the name of a setting
REAUTHENTICATION = "require_reauthentication_to_approve"

#: Settings that every version shows and that an update accepts.
ALWAYS_SHOWN = (AUTHOR, COMMITTER, OVERRIDES, RETAIN, SELECTIVE)
SETTABLE = (AUTHOR, COMMITTER, OVERRIDES, REAUTHENTICATION, RETAIN, SELECTIVE)

Entry = dict[str, Any]
#: The properties that are shown for each setting.
_ENTRY = ("value", "locked", "inherited_from")
T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """The approval settings of one group or project, for one caller.

    Specification: Endpoints > Approval settings.
    """

    caller: Caller
    path: Path
    read_at: Path | None = None
    """Where the settings are read, if it is another path."""

    def entries(self) -> dict[str, Entry]:
        """Return every setting that is shown, with value, locked and inherited_from.

        Inconclusive when one is missing that updates accept. PASSWORD, which none accepts, may be missing here.
        """
        body = self.caller.read(self.read_at or self.path)
        shown = body if isinstance(body, dict) else {}
        names = (*ALWAYS_SHOWN, PASSWORD, REAUTHENTICATION)
        found = {name: shown[name] for name in names if isinstance(shown.get(name), dict)}
        unread = {name for name in ALWAYS_SHOWN if not isinstance(found.get(name, {}).get("value"), bool)}
        given(not unread, f"GET {self.path} shows no value of {', '.join(sorted(unread))}")
        return {name: {key: entry[key] for key in _ENTRY if key in entry} for name, entry in found.items()}

    def values(self) -> dict[str, bool]:
        """Return the value of every setting that is shown."""
        return {name: entry.get("value") is True for name, entry in self.entries().items()}

    def free(self) -> tuple[str, ...]:
        """Return the settings that an update accepts and that are not locked here."""
        entries = self.entries()
        return tuple(name for name in SETTABLE if name in entries and not entries[name].get("locked"))

    def is_free(self, name: str) -> bool:
        """Tell whether a setting is shown and not locked here."""
        return name in self.free()

    def without_selective_removals(self) -> None:
        """Switch selective removals off, because they exclude kept approvals; inconclusive when they stay on."""
        if self.values()[SELECTIVE]:
            given(self.is_free(SELECTIVE), f"{SELECTIVE} is on and locked in {self.path}")
            self.change(**{SELECTIVE: False}).given_served()

    def change(self, **values: Any) -> Answer:
        """Update these settings and send no others."""
        return self.caller.put(self.path, values)

    def change_with_charset(self, **values: Any) -> Answer:
        """Update these settings with a body whose type names its charset; without it if a service does not accept that.

        The body is still JSON: an update that is accepted must not be ignored.
        """
        answer = self.caller.call("PUT", self.path, json=values, headers=WITH_CHARSET)
        return self.change(**values) if answer.exchange.is_refusal else answer

    def must_show(self, name: str, *, value: bool) -> None:
        """Expect that reading shows this value of a setting."""
        answer = self.caller.get(self.path).given_served()
        entry = answer.json.get(name) if isinstance(answer.json, dict) else None
        shown = entry.get("value") if isinstance(entry, dict) else entry
        must(shown is value, f"{name} with the value {as_json(value)}", f"the value {as_json(shown)}", answer.exchange)

    def by_its_path(self) -> Settings:
        """Return these settings with the group or project named by full path, if that is known and can be read."""
        return replace(self, path=by_full_path(self.path, self.caller))

    def read_by_others(self) -> list[Settings]:
        """Return the settings as an administrator of the installation has just read them; empty when that fails."""
        actor = current_run().profile.actors.get("admin")
        others = [replace(self, caller=Caller(current_run(), actor))] if actor not in (None, self.caller.actor) else []
        return [one for one in others if one.caller.get(one.path).is_served]

    def moves(self) -> list[tuple[str, bool]]:
        """Return changes that can be sent one by one: each free setting is set to its other value and then back.

        Selective removals are on only while no approvals are kept; the answer to their update is open. Inconclusive
        when there is nothing to change.
        """
        found = list(self._moves())
        given(bool(found), f"no setting in {self.path} can be changed")
        return found

    def _moves(self) -> Iterator[tuple[str, bool]]:
        free, values = self.free(), self.values()
        if SELECTIVE in free and values[SELECTIVE]:
            yield SELECTIVE, False
        for name in free:
            if name not in (RETAIN, SELECTIVE):
                yield name, not values[name]
                yield name, values[name]
        if RETAIN in free:
            yield RETAIN, False
            if SELECTIVE in free:
                yield from ((SELECTIVE, True), (SELECTIVE, False))
            yield RETAIN, True

    def move(self, name: str, *, value: bool) -> bool:
        """Change one setting; return whether it was done. Only selective removals leave that open."""
        answer = self.change(**{name: value})
        if name == SELECTIVE and value and answer.exchange.is_refusal:
            return False
        answer.given_served()
        return True

    def restore(self, before: Mapping[str, bool]) -> None:
        """Restore every free setting to its former value."""
        now, free = self.values(), self.free()
        different = [name for name in free if name in before and now.get(name) != before[name]]
        # Switch selective removals off first and on last, because they exclude kept approvals.
        for name in sorted(different, key=lambda name: name == SELECTIVE and before[name]):
            if name == RETAIN and now[SELECTIVE] and SELECTIVE in free:
                self.change(**{SELECTIVE: False})
            self.change(**{name: before[name]})


def of_group(caller: Caller, group: Fixture) -> Settings:
    """Return the settings of a group."""
    return Settings(caller, group_path(group) / "merge_request_approval_setting")


def of_project(caller: Caller, project: Fixture) -> Settings:
    """Return the settings of a project."""
    return Settings(caller, project_path(project) / "merge_request_approval_setting")


def each_alone(names: Sequence[str]) -> list[dict[str, bool]]:
    """Return for each setting the values with only that setting on: no two settings have equal values throughout."""
    return [{name: name == one for name in names} for one in names]


def freest(pairs: Sequence[tuple[Settings, T]]) -> T:
    """Return the thing whose settings are the first without any lock, or else those with the fewest locks."""
    best, most = pairs[0][1], -1
    for settings, thing in pairs:
        entries = settings.entries()
        free = [name for name in SETTABLE if name in entries and not entries[name].get("locked")]
        if len(free) == sum(name in entries for name in SETTABLE):
            return thing
        if len(free) > most:
            best, most = thing, len(free)
    return best


def a_group_without_projects_of_others(group: Fixture) -> Fixture:
    """Return a group whose settings can be changed without locking those of projects that other tests change.

    A group may lock every setting that was ever set in it, permanently. If the profile has no such group, return the
    given one.
    """
    return current_run().profile.first("fresh_group") or group


def an_unlocked_project(caller: Caller, project: Fixture) -> Fixture:
    """Return a project, or another fixture with free settings if some settings of the first are locked.

    A group may lock every setting that was ever set in it, permanently; then fewer settings of its projects can change.
    """
    run = current_run()
    others = [*run.profile.fixtures.get("fuzz_project", ())[:1]]
    others += run.profile.fixtures.get("public_project", ())
    return freest([(of_project(caller, one), one) for one in (project, *others)])


def an_unlocked_project_in_a_group(caller: Caller, project: Fixture, group: Fixture) -> tuple[Fixture, Fixture]:
    """Return a project and its group, or two that are set aside if some settings of the project are locked.

    Other projects need not lie in that group.
    """
    fixtures = current_run().profile.fixtures
    aside = list(zip(fixtures.get("fuzz_project", ()), fixtures.get("fuzz_group", ()), strict=False))
    return freest([(of_project(caller, pair[0]), pair) for pair in ((project, group), *aside)])


def side_by_side(caller: Caller) -> list[tuple[Fixture, Fixture]]:
    """Return two projects of one namespace, the first with a free setting; at most one pair of the profile."""
    for one, other in projects_side_by_side(current_run().profile):
        both = of_project(caller, one), of_project(caller, other)
        if all(caller.get(each.path).is_served for each in both):
            return [(one, other)] if both[0].free() else []
    return []


def of_an_unlocked_project(caller: Caller, project: Fixture) -> Settings:
    """Return the settings of a project, or of another one if some settings of the first are locked."""
    return of_project(caller, an_unlocked_project(caller, project))


# -- tests for both levels ---------------------------------------------------------------------------------------------


def at_both_places(argument: str, *, group: Any, project: Any) -> pytest.MarkDecorator:
    """Run a test for the settings of a group and for those of a project, each with its own requirement or several."""
    names = [name.strip() for name in argument.split(",")]
    values = {"group": group, "project": project}
    rows = [(place, *(found if len(names) > 1 else (found,))) for place, found in values.items()]
    return pytest.mark.parametrize(("place", *names), rows, ids=list(values))


# -- passwords ---------------------------------------------------------------------------------------------------------

#: The project settings that were never seen to ask for a password, so that nobody needs to look again.
_ASKING_NOBODY: PerRun[set[Path]] = PerRun(set)


def given_no_password(merge_request: Path) -> None:
    """Make the project of a merge request ask nobody for a password; inconclusive when it still asks.

    Settings that cannot be read are ignored. If this switches asking off, the run restores it at its end.
    """
    project, _, _ = merge_request.partition("/merge_requests/")
    path, unasked = Path(project) / "merge_request_approval_setting", _ASKING_NOBODY()
    if path in unasked:
        return
    asks = False
    with suppress(Unmet, NotTested):
        settings = Settings(Caller.named("maintainer"), path)
        asks = asks_for_password(settings)
        if not asks:
            unasked.add(path)
        elif settings.is_free(REAUTHENTICATION):
            settings.change(**{REAUTHENTICATION: False})
            asks = asks_for_password(settings)
    given(not asks, f"{path} shows that whoever approves has to send a password")


def asks_for_password(settings: Settings) -> bool:
    """Tell whether the settings of a project require approvers to authenticate again."""
    values = settings.values()
    given(PASSWORD in values, f"{settings.path} does not show {PASSWORD}")
    return values[PASSWORD] or values.get(REAUTHENTICATION, False)


# -- request examples ------------------------------------------------------------------------------------------------


def remembered(settings: Settings) -> Mapping[str, bool] | None:
    """Return the current values; None when they cannot be read, which other tests report."""
    try:
        return settings.values()
    except Unmet:
        return None


def put_back(settings: Settings, before: Mapping[str, bool] | None) -> None:
    """Restore values as far as they are known."""
    if before is not None:
        settings.restore(before)


def with_a_free_setting_on(settings: Settings) -> dict[str, bool]:
    """Switch a setting on, so that switching it off changes something; return the update that switches it off.

    It is the setting of the example, unless that is locked: each setting has its own lock.
    """
    values = remembered(settings)
    if values is None:
        return {AUTHOR: False}
    free = [name for name in (AUTHOR, COMMITTER, OVERRIDES) if name in settings.free()]
    given(bool(free), f"{AUTHOR}, {COMMITTER} and {OVERRIDES} are locked in {settings.path}")
    name = free[0]
    if not values[name]:
        settings.change(**{name: True})
    return {name: False}


def an_unlocked_project_if_read(caller: Caller, project: Fixture) -> Fixture:
    """Return a project whose settings are free; keep one that cannot be read, because the tests are to report that."""
    try:
        return an_unlocked_project(caller, project)
    except Unmet:
        return project


def _area(
    level: str,
    keeper: str,
    of: Callable[[Caller, Fixture], Settings],
    choose: Callable[[Caller, Fixture], Fixture] = lambda _, fixture: fixture,
) -> Area:
    """Return the request examples for the settings of a group or a project, or of its stand-in."""
    read, update = f"get{level.capitalize()}ApprovalSettings", f"update{level.capitalize()}ApprovalSettings"

    def settings(caller: Caller, place: Place) -> Settings:
        return of(caller, choose(caller, place.fixture(level)))

    def made_right(caller: Caller, place: Place) -> Values:
        chosen = choose(caller, place.fixture(level))
        body = with_a_free_setting_on(of(caller, chosen))
        return {WHOLE_BODY: body} | ({} if chosen == place.fixture(level) else {"id": chosen.id})

    return Area(
        keeper=keeper,
        remember=lambda caller, place: remembered(settings(caller, place)),
        put_back=lambda caller, place, before: put_back(settings(caller, place), before),
        request_examples={
            read: RequestExample(),
            update: RequestExample(before=made_right, state=lambda caller, place: settings(caller, place).entries()),
        },
    )


OF_GROUPS = _area("group", "owner", of_group)
OF_PROJECTS = _area("project", "maintainer", of_project, an_unlocked_project_if_read)
