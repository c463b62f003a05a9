"""Checks without calls: names of a profile that must be things of their own, and lists that must be long enough."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from conformance.target.names import FIXTURE_ROWS, PLURALS
from conformance.target.readings import Finding, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target.profile import Profile


def duplicates(profile: Profile) -> Iterator[Finding]:
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


def too_few(profile: Profile) -> Iterator[Finding]:
    """Yield lists of fixtures that have fewer entries than the tests need."""
    for plural, singular in PLURALS.items():
        number, least = len(profile.fixtures.get(singular, ())), FIXTURE_ROWS[plural].least
        if 0 < number < least:
            detail = f"{number} of at least {least}: add {least - number} more"
            yield Finding(f"fixtures.{plural}", State.MISSING, detail)
