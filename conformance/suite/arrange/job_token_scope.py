"""Job token scope: the limit and the two allowlists, for stories and for request examples."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.http.transport import NotSentError
from conformance.suite.arrange.request_examples import Area, ReadBack, RequestExample, Values, left_to_the_next_call
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import Caller, Path, given, given_done, given_kept, project_path
from conformance.suite.steady import of_records
from conformance.target.names import FIXTURE_ROWS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from conformance.suite.arrange.places import Place
    from conformance.target import Fixture


def scope_path(project: Fixture) -> Path:
    """Return the path of a project's settings; both lists are below it."""
    return project_path(project) / "job_token_scope"


def settings_of(caller: Caller, project: Fixture) -> Any:
    """Return the settings of a project, without what a service shows beyond the text."""
    return of_records(caller.read(scope_path(project)), "JobTokenScopeSettings")


# -- the limit ---------------------------------------------------------------------------------------------------------


def limit_of(caller: Caller, project: Fixture) -> bool:
    """Return whether the limit is on; inconclusive when the settings do not show it."""
    settings = caller.read(scope_path(project))
    shown = settings.get("inbound_enabled") if isinstance(settings, dict) else None
    given(isinstance(shown, bool), "the settings do not show inbound_enabled as true or false")
    return bool(shown)


@contextmanager
def limit_kept(caller: Caller, project: Fixture) -> Iterator[bool]:
    """Restore the limit afterwards, and the lists, because they may be lost with it; yield whether the limit was on.

    Lists that cannot be read are ignored.
    """
    with current_run().known_reads.before_changes() as holds_again:
        before = limit_of(caller, project)
        lists = {allowlist: listed_if_readable(caller, allowlist, project) for allowlist in ALLOWLISTS}
    try:
        yield before
    finally:
        if not before:
            # Entries may be refused while the limit is off.
            _bring_back_both(caller, project, lists)
        is_back = _switch_back(caller, project, on=before)
        _bring_back_both(caller, project, lists)
        if is_back:
            holds_again()


def _bring_back_both(caller: Caller, project: Fixture, lists: Mapping[Allowlist, set[int] | None]) -> None:
    for allowlist, ids in lists.items():
        if ids is not None:
            allowlist.bring_back(caller, project, ids)


def _switch_back(caller: Caller, project: Fixture, *, on: bool) -> bool:
    return limit_of(caller, project) == on or caller.patch(scope_path(project), {"enabled": on}).is_served


@contextmanager
def limit_on(caller: Caller, project: Fixture) -> Iterator[None]:
    """Keep the limit on, because nothing says whether entries live without it; restore it afterwards.

    Settings that cannot be read are reported by their own tests.
    """
    is_off = False
    with suppress(Unmet), current_run().known_reads.before_changes() as holds_again:
        is_off = not limit_of(caller, project)
    with limit_kept(caller, project) if is_off else nullcontext():
        if is_off:
            caller.patch(scope_path(project), {"enabled": True})
        yield
    holds_again()


def listed_if_readable(caller: Caller, allowlist: Allowlist, project: Fixture) -> set[int] | None:
    """Return the numbers on a list, or None when it cannot be read."""
    with suppress(Unmet):
        return allowlist.ids(caller, project)
    return None


# -- the lists ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Allowlist:
    """One of the two lists of a project, which differ only in what they hold."""

    segment: str
    parameter: str
    fixture: str
    """One of the fixtures that may be added to it."""
    present: str
    """The requirement that an added entry is listed."""
    gone: str
    """The requirement that a removed entry is no longer listed."""
    near: tuple[str, ...]
    """Fixtures that a service may treat specially: beside the project, so that their tokens get in, or in no group."""

    def of(self, project: Fixture) -> Path:
        """Return the path of a project's list."""
        return scope_path(project) / self.segment

    def body(self, target: int) -> dict[str, int]:
        """Return the body that adds a target."""
        return {self.parameter: target}

    def ids(self, caller: Caller, project: Fixture) -> set[int]:
        """Return the numbers on a project's list; inconclusive when an entry has none, which other tests report."""
        numbers = caller.list(self.of(project)).ids()
        given(all(isinstance(number, int) for number in numbers), f"{self.of(project)} has an entry without a number")
        return set(numbers)

    def given_added(self, caller: Caller, project: Fixture, *targets: int) -> None:
        """Add targets to a project's list as a step of a story; those that are on it already stay."""
        listed = self.ids(caller, project)
        for target in targets:
            if target not in listed:
                caller.post(self.of(project), self.body(target)).given_served()

    def given_listed(self, caller: Caller, project: Fixture, target: int) -> None:
        """Have a target on a project's list, so that it can be removed; inconclusive if an addition shows nothing."""
        if target not in self.ids(caller, project):
            with given_kept(self.present, lambda: self.ids(caller, project)):
                caller.post(self.of(project), self.body(target)).given_served()

    def given_removed(self, caller: Caller, project: Fixture, *targets: int) -> None:
        """Remove targets from a project's list as a step of a story; only those that are on it are removed."""
        listed = caller.list(self.of(project))
        removed = [target for target in targets if listed.having(id=target)]
        for target in removed:
            caller.delete(self.of(project) / target).given_served()
        if removed:
            left = caller.list(self.of(project))
            with given_done(self.gone):
                for target in removed:
                    left.must_not_contain(id=target, after=listed)
        self._remove_unlisted(caller, project, set(targets).difference(removed))

    def _remove_unlisted(
        self, caller: Caller, project: Fixture, among: set[int] | None, but: Collection[int] = ()
    ) -> None:
        """Remove what this run added and the list does not show: else it would stay, and could not be added again."""
        by_path = f"/projects/{project.encoded_path}/job_token_scope/{self.segment}" if project.get("path") else ""
        lists = [found for path in (self.of(project), by_path) if (found := current_run().writes.added.get(path))]
        for target in sorted(set().union(*lists).difference(but)):
            if among is None or target in among:
                caller.delete(self.of(project) / target)
                for one in lists:
                    one.discard(target)

    @contextmanager
    def left_as_found(self, caller: Caller, project: Fixture, targets: Sequence[Fixture]) -> Iterator[None]:
        """Restore these targets afterwards: on a project's list, or not on it."""
        with current_run().known_reads.before_changes() as holds_again:
            before = self.ids(caller, project)
        try:
            yield
        finally:
            self.bring_back(caller, project, before, among={target.id for target in targets})
            holds_again()

    @contextmanager
    def borrowed(self, caller: Caller, project: Fixture, targets: Sequence[Fixture]) -> Iterator[None]:
        """Begin with none of these targets on a project's list and the limit on, and restore both afterwards."""
        with limit_on(caller, project), self.left_as_found(caller, project, targets):
            self.given_removed(caller, project, *(target.id for target in targets))
            yield

    def bring_back(self, caller: Caller, project: Fixture, before: set[int], *, among: set[int] | None = None) -> None:
        """Remove entries that the run has added to a project's list, or only the named ones, and add missing ones.

        A run adds only what its profile names: any other entry is somebody else's, and stays.
        """
        now = before
        with suppress(Unmet):  # what this run added is removed, whatever the list shows
            now = self.ids(caller, project)
        caller.delete_each(self.of(project), (now - before) & (self._in_profile() if among is None else among))
        self._remove_unlisted(caller, project, among, before)
        for target in before - now:
            with suppress(NotSentError):  # it was there before the run, and nothing in the profile names it
                caller.post(self.of(project), self.body(target))

    def _in_profile(self) -> set[Any]:
        """Return the numbers of all projects or groups that the profile names."""
        fixtures, kind = current_run().profile.fixtures, FIXTURE_ROWS[self.fixture].kind
        named = (
            entries for name, entries in fixtures.items() if name in FIXTURE_ROWS and FIXTURE_ROWS[name].kind == kind
        )
        return {entry.get("id") for entries in named for entry in entries}


PROJECTS = Allowlist(
    "allowlist",
    "target_project_id",
    "allowlist_project",
    present="job-token-scope.allowlist.add.present",
    gone="job-token-scope.allowlist.remove.gone",
    near=("empty_project", "personal_project"),
)
GROUPS = Allowlist(
    "groups_allowlist",
    "target_group_id",
    "allowlist_group",
    present="job-token-scope.groups-allowlist.add.present",
    gone="job-token-scope.groups-allowlist.remove.gone",
    near=("group",),
)
ALLOWLISTS = (PROJECTS, GROUPS)


# -- request examples --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Listed:
    """Prepares the operations of one list."""

    allowlist: Allowlist

    def state(self, caller: Caller, place: Place) -> list[Any]:
        return sorted(self.allowlist.ids(caller, place.fixture("project")), key=str)

    def with_entry(self, caller: Caller, place: Place) -> Values:
        """Put the first fixture on the list."""
        self.allowlist.given_added(caller, place.fixture("project"), place.value(self.allowlist.fixture))
        return {}

    def with_listed_entry(self, caller: Caller, place: Place) -> Values:
        """Have the first fixture on the list, and see that the list has changed."""
        self.allowlist.given_listed(caller, place.fixture("project"), place.value(self.allowlist.fixture))
        return {}

    def without_entry(self, caller: Caller, place: Place) -> Values:
        """Take the first fixture off the list."""
        self.allowlist.given_removed(caller, place.fixture("project"), place.value(self.allowlist.fixture))
        return {}

    def take_unlisted(self, caller: Caller, place: Place) -> bool:
        """Remove the first fixture if the list does not show it and it is there all the same."""
        project, target = place.fixture("project"), place.value(self.allowlist.fixture)
        with suppress(Unmet):
            path = self.allowlist.of(project)
            return not caller.list(path).having(id=target) and caller.delete(path / target).is_served
        return False

    def fill(self, caller: Caller, place: Place) -> list[Any]:
        """Put all fixtures on the list."""
        project = place.fixture("project")
        path, listed = self.allowlist.of(project), self.allowlist.ids(caller, project)
        targets = [entry.id for entry in place.entries(self.allowlist.fixture)]
        for target in targets:
            if target not in listed and not caller.post(path, self.allowlist.body(target)).is_served:
                # Refused, perhaps because the list hides its entries: after removing and adding it, it is certainly
                # there.
                caller.delete(path / target)
                caller.post(path, self.allowlist.body(target)).given_served()
        return targets

    def remember(self, caller: Caller, place: Place) -> dict[str, Any]:
        """Read limit and list, and switch the limit on: whether entries live without it is not stated.

        Settings that cannot be read are reported by their own tests.
        """
        project, limit = place.fixture("project"), None
        with suppress(Unmet):
            limit = limit_of(caller, project)
        before = self.allowlist.ids(caller, project)
        if limit is False:
            caller.patch(scope_path(project), {"enabled": True})
        return {"limit": limit, "list": before}

    def put_back(self, caller: Caller, place: Place, before: Mapping[str, Any]) -> None:
        self.undo(caller, place, before)
        if before["limit"] is False:
            _switch_back(caller, place.fixture("project"), on=False)
            # Once more, because the list may be lost with the limit.
            self.undo(caller, place, before)

    def undo(self, caller: Caller, place: Place, before: Mapping[str, Any]) -> None:
        """Restore the list and leave the limit on, because without it an entry may be neither added nor removed."""
        self.allowlist.bring_back(caller, place.fixture("project"), before["list"])

    def area(self, listing: str, adding: str, removing: str) -> Area:
        """Return the request examples of the list."""
        present, parameter = self.allowlist.present, self.allowlist.parameter
        added = ReadBack(requirement=lambda _: present, lists={parameter: "id"})
        return Area(
            keeper="maintainer",
            remember=self.remember,
            put_back=self.put_back,
            undo=self.undo,
            request_examples={
                listing: RequestExample(before=self.with_entry, fill=self.fill),
                adding: RequestExample(
                    before=self.without_entry, state=self.state, read_back=added, frees=self.take_unlisted
                ),
                removing: RequestExample(before=self.with_listed_entry, state=self.state),
            },
        )


def _settings(caller: Caller, place: Place) -> Any:
    settings = settings_of(caller, place.fixture("project"))
    given(isinstance(settings, dict) and "inbound_enabled" in settings, "the settings do not show the limit")
    return settings


def _with_limit_off(caller: Caller, place: Place) -> Values:
    """Switch the limit off if possible, so that switching it on changes something."""
    if limit_of(caller, place.fixture("project")):
        caller.patch(scope_path(place.fixture("project")), {"enabled": False})
    return {}


def _remember_limit(caller: Caller, place: Place) -> dict[str, Any]:
    project = place.fixture("project")
    lists = {allowlist: listed_if_readable(caller, allowlist, project) for allowlist in ALLOWLISTS}
    return {"limit": limit_of(caller, project), "lists": lists}


def _put_back_limit(caller: Caller, place: Place, before: Mapping[str, Any]) -> None:
    _switch_back(caller, place.fixture("project"), on=before["limit"])
    _bring_back_both(caller, place.fixture("project"), before["lists"])


def _switch_shows(sent: Mapping[str, Any]) -> str:
    return "job-token-scope.switch.on" if sent.get("enabled") else "job-token-scope.switch.off"


# Three areas, so that the suite can be told about a service that has only one of them.
SETTINGS = Area(
    keeper="maintainer",
    remember=_remember_limit,
    put_back=_put_back_limit,
    request_examples={
        "getJobTokenScope": RequestExample(),
        "updateJobTokenScope": RequestExample(
            before=_with_limit_off,
            undo=left_to_the_next_call,
            state=_settings,
            read_back=ReadBack(requirement=_switch_shows, shows={"enabled": "inbound_enabled"}),
        ),
    },
)

PROJECT_LIST = _Listed(PROJECTS).area(
    "listJobTokenAllowlist",
    "addProjectToJobTokenAllowlist",
    "removeProjectFromJobTokenAllowlist",
)

GROUP_LIST = _Listed(GROUPS).area(
    "listJobTokenGroupsAllowlist",
    "addGroupToJobTokenAllowlist",
    "removeGroupFromJobTokenAllowlist",
)
