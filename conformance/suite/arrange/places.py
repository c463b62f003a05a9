"""Which things of the target the calls of an operation go to, and which of their values go into a call."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from conformance.results.record import Reason
from conformance.suite.context import current_run
from conformance.suite.exceptions import NotTested, require_in
from conformance.suite.expectations import Caller, Path, named_otherwise
from conformance.target import ACTORS, Fixture
from conformance.target.names import FIXTURE_ROWS, SET_ASIDE, in_place_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from conformance.target import Profile


#: Fixtures in which the profile may have projects beside each other.
_SIDE_BY_SIDE = ("project", "sibling_project", "fuzz_project", "public_project", "allowlist_project")


def projects_side_by_side(profile: Profile) -> Iterator[tuple[Fixture, Fixture]]:
    """Yield pairs of projects that lie in one namespace, according to their paths."""
    projects = {one.id: one for name in _SIDE_BY_SIDE for one in profile.fixtures.get(name, ())}
    for one, other in combinations(projects.values(), 2):
        namespaces = [str(project.get("path") or "").rpartition("/")[0] for project in (one, other)]
        if namespaces[0] and namespaces[0] == namespaces[1]:
            yield one, other


def owner_in(profile: Profile, path: str) -> Fixture | None:
    """Return the project or group that a path names by number; None if its full path is not given."""
    kind, number = path.split("/")[1].removesuffix("s"), path.split("/")[2]
    named = {name for name, row in FIXTURE_ROWS.items() if row.kind == kind}  # a run makes other fixtures for itself
    of_kind = (entry for name, entries in profile.fixtures.items() if name in named for entry in entries)
    return next((entry for entry in of_kind if str(entry.id) == number and entry.get("path")), None)


def by_full_path(path: Path, reader: Caller) -> Path:
    """Return a path with its project or group named by its full path, if that is known and read as well."""
    owner = owner_in(current_run().profile, path)
    return path if owner is None else named_otherwise(path, owner, reader)


@dataclass(frozen=True)
class Place:
    """The fixtures that calls go to: those of the stories, or those set aside for random calls."""

    profile: Profile
    is_aside: bool = False
    area: str = ""
    """The area of the operation that is called: some areas have groups that the run made for itself."""

    @classmethod
    def aside(cls, profile: Profile, references: Collection[str], area: str = "") -> Place:
        """Return the fixtures set aside if the profile has all that are referred to, and otherwise the plain ones."""
        names = {reference.partition(".")[0] for reference in references}
        has_all = all(spare in profile.fixtures for name, spare in SET_ASIDE.items() if name in names)
        return cls(profile, is_aside=has_all, area=area)

    def entries(self, name: str) -> tuple[Fixture, ...]:
        """Return all fixtures of a name; raise NotTested when the profile has none."""
        found = SET_ASIDE.get(name, name) if self.is_aside else name
        found = in_place_of(found, self.area, self.profile.fixtures)
        require_in(self.profile, found)
        entries = self.profile.fixtures[found]
        return entries[:1] if found != name else entries

    def fixture(self, name: str) -> Fixture:
        """Return the first fixture of a name; raise NotTested when the profile has none."""
        return self.entries(name)[0]

    def value(self, reference: str, number: int = 0) -> Any:
        """Return the value that a reference of the contract means: `project`, `merge_request.iid`, `approver.id`.

        Without a field it is the id. `number` selects one if there are several. Raise NotTested when the profile has no
        such thing or does not give the field.
        """
        name, _, field = reference.partition(".")
        if name in ACTORS:
            require_in(self.profile, name)
            found = getattr(self.profile.actors[name], field or "id", None)
        else:
            entries = self.entries(name)
            found = entries[number % len(entries)].get(field or "id")
        if found is None:
            raise NotTested(Reason.PREREQUISITE_MISSING, f"the profile does not give '{field or 'id'}' of {name}")
        return found
