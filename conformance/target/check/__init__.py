"""Compares a profile with its target before anything is judged by it: each name must stand for what the profile says.

It only trusts calls outside the specification that services of this kind have, such as `GET /projects/:id`, because
the suite tests the specification itself. What cannot be read proves nothing.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from conformance.target.check.actors import actor, doubted_roles, roles
from conformance.target.check.contents import look_inside
from conformance.target.check.fixtures import BY_KIND
from conformance.target.names import FIXTURE_ROWS, PLURALS
from conformance.target.readings import Finding, Readings, State
from conformance.target.version import Reported, ask_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.http.client import Client
    from conformance.target.profile import Profile

__all__ = ["as_table", "check_profile", "doubted_roles", "doubted_version"]


def as_table(findings: Iterable[Finding]) -> str:
    """Return findings as a table for people: contradictions first, with the values to write.

    Notes that say the same stand there once. Whatever else is found, somebody has to change at its own place.
    """
    order = [*State]
    alike: dict[tuple[State, str, str, str], list[str]] = {}
    for one in sorted(findings, key=lambda one: order.index(one.state)):
        written = "" if one.write is None else json.dumps(one.write)
        where = "" if one.state is State.NOTE else one.place
        alike.setdefault((one.state, one.detail, written, where), []).append(one.place)
    rows = [
        ("where", "what", "found", ""),
        *((_places(places), str(state), detail, write) for (state, detail, write, _), places in alike.items()),
    ]
    width = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(
        f"{place:<{width[0]}}  {state:<{width[1]}}  {detail}{f'; write {value}' if value else ''}"
        for place, state, detail, value in rows
    )


def _places(places: Sequence[str]) -> str:
    first, *others = places
    return f"{first} and {len(others)} more" if others else first


def check_profile(profile: Profile, client: Client, worlds: Iterable[int] = (0,)) -> tuple[Finding, ...]:
    """Return where the target contradicts the profile, what is missing, and what could not be read.

    It only reads. `worlds` are the numbers of the worlds to check. Raise TargetGoneError when nobody answers. A single
    lost or incomplete answer contradicts nothing, because contradictions are checked once more. If the two looks show
    different values, neither is the right one.
    """
    numbers = [*worlds]
    found = _look(profile, client, numbers)
    contradicted = {one.place: one for one in found if one.state is State.CONTRADICTED}
    if not contradicted:
        return found
    again = _look(profile, client, numbers)
    return tuple(
        _held_against(contradicted[one.place], one) if one.state is State.CONTRADICTED else one
        for one in again
        if one.state is not State.CONTRADICTED or one.place in contradicted
    )


def _held_against(before: Finding, now: Finding) -> Finding:
    if None in (before.write, now.write) or before.write == now.write:
        return now
    both = f"{before.detail}; read again: {now.detail}. Perhaps the target mixes up the answers to calls at one moment"
    return replace(now, detail=both, write=None)


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
    yield from (partial(actor, target, name) for name in profile.actors)
    for name, entries in profile.fixtures.items():
        row = FIXTURE_ROWS[name]
        look = BY_KIND.get(row.kind)
        for entry in entries:
            if look is not None:
                yield partial(look, target, entry.place, entry)
            yield partial(look_inside, target, name, row.kind, entry)
            if row.roles:
                yield partial(roles, target, entry.place, name, entry)


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
    """Yield lists of fixtures that have fewer entries than the tests need."""
    for plural, singular in PLURALS.items():
        number, least = len(profile.fixtures.get(singular, ())), FIXTURE_ROWS[plural].least
        if 0 < number < least:
            detail = f"{number} of at least {least}: add {least - number} more"
            yield Finding(f"fixtures.{plural}", State.MISSING, detail)


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
