"""Approval settings that a group passes on to projects and groups in it: locks, and whose value holds there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.suite.arrange.approval_settings import RETAIN, SELECTIVE, Settings, at_both_places
from conformance.suite.context import Unmet
from conformance.suite.expectations import (
    given,
    left_to_others,
    must_settle,
    observe,
    unchanged,
    verifies,
)

if TYPE_CHECKING:
    import pytest

#: How long it may take until a value that a group passes on shows inside it.
PASSED_ON_SECONDS = 3.0


@at_both_places(
    "parents, cascade",
    group=("approval-settings.group.locked-value-is-the-parents", "approval-settings.group.cascade"),
    project=("approval-settings.project.locked-value-is-the-parents", "approval-settings.project.cascade"),
)
def test_a_locked_setting_has_the_value_of_the_group_that_it_comes_from(
    parents: str,
    cascade: str,
    inner_settings: Settings,
    outer_settings: Settings,
    nested_settings: tuple[Settings, Settings] | None,
) -> None:
    """Whether a group passes its settings on at all is open; but a setting that it locks must have its value.

    The inner place is set to the other value before, if allowed, because otherwise the value could be its own.
    """
    locked = 0
    with verifies(parents):
        for name, value in one_setting_moved(outer_settings):
            if inner_settings.is_free(name):
                # This may be refused: an inner place need not have a value of its own.
                inner_settings.change(**{name: not value})
            if nested_settings and nested_settings[0].is_free(name):
                nested_settings[0].change(**{name: not value})
            outer_settings.move(name, value=value)
            inner = inner_settings.entries()[name]
            observe(cascade, what_reached(name, outer_settings.values()[name], inner))
            if is_from_group(inner):
                must_get_the_value_around(name, inner_settings, outer_settings.values()[name])
                locked += 1
            if nested_settings:
                must_agree_with_all_around(name, outer_settings, *nested_settings)
        given(locked > 0, "no setting of the group was seen to lock the one inside it")


def must_get_the_value_around(name: str, inner: Settings, wanted: bool) -> None:  # noqa: FBT001 - data
    """Expect that a setting has the value of the group around, at once or soon, as long as it comes from a group.

    A service may pass values on in the background: what is still locked with the former value shows nothing yet.
    """

    def agrees() -> bool:
        entry = inner.entries()[name]
        return entry["value"] is wanted or not is_from_group(entry)

    expected = f"{name} in {inner.path}, locked, with the value {wanted}"
    must_settle(agrees, expected, lambda: f"{inner.entries()[name]}", within=PASSED_ON_SECONDS)


def must_agree_with_all_around(name: str, outer: Settings, nested: Settings, between: Settings) -> None:
    """Expect that a setting which is locked two groups further in has the value that both groups around it have."""
    inner, wanted = nested.entries()[name], outer.values()[name]
    if is_from_group(inner) and between.values()[name] is wanted:
        must_get_the_value_around(name, nested, wanted)


def one_setting_moved(settings: Settings) -> list[tuple[str, bool]]:
    """Return the changes of one setting only: the one that other tests change here as well.

    A group may permanently lock in its projects every setting that was ever set in it.
    """
    first = next((name for name in settings.free() if name not in (RETAIN, SELECTIVE)), None)
    given(first is not None, f"every setting in {settings.path} is locked")
    return [(name, value) for name, value in settings.moves() if name == first]


def what_reached(name: str, value: bool, inner: dict[str, object]) -> str:  # noqa: FBT001 - data
    set_there = f"{name} = {str(value).lower()} in the group around"
    if not inner.get("locked"):
        return f"{set_there} locks nothing inside it"
    same = "the same value" if inner.get("value") is value else "another value"
    return f"{set_there} locks the one inside it, with {same}, inherited_from {inner.get('inherited_from')}"


def is_from_group(entry: dict[str, object]) -> bool:
    return entry.get("locked") is True and "group" in str(entry.get("inherited_from")).lower()


@at_both_places(
    "locked_answer, leaves_around",
    group=("approval-settings.group.update.locked-answer", "approval-settings.group.update.leaves-other-groups"),
    project=("approval-settings.project.update.locked-answer", "approval-settings.project.update.leaves-its-group"),
)
def test_an_update_inside_a_group_leaves_the_group_and_what_a_locked_one_answers(
    locked_answer: str,
    leaves_around: str,
    place: str,
    outer_settings: Settings,
    request: pytest.FixtureRequest,
) -> None:
    """What a group passes on is a copy. The group was written first, so that both may share one value by now."""
    left_to_others("conventions.group-id.encoded-subgroup-path")  # unless both have values of their own
    try:
        inside: Settings = request.getfixturevalue("inner_settings")
    except Unmet:
        if place != "group":
            raise
        left_to_others(leaves_around)  # whether a group inside another one has settings is open
        observe(locked_answer, "a group inside another one shows no settings")
        return
    told = "no setting was seen to be locked by the group around"
    try:
        moves = one_setting_moved(outer_settings)
    except Unmet:
        left_to_others(leaves_around)  # another group is tried, in which not everything is locked
        raise
    with verifies(leaves_around):
        for name, value in moves:
            outer_settings.move(name, value=value)
            inner = inside.entries()[name]
            with unchanged(outer_settings.values, "the settings of the group around"):
                answer = inside.change(**{name: not inner["value"]})
                if answer.is_served and inner["value"] is not value and not inner.get("locked"):
                    # The group has the value that was written just now: only the other one would show in it.
                    inside.change(**{name: inner["value"]})
            by_path = inside.by_its_path() if place == "group" and value is moves[-1][1] else inside
            if by_path != inside and inside.values()[name] is not value:
                with verifies("conventions.group-id.encoded-subgroup-path", go_on=True):
                    by_path.must_show(name, value=not value)
            if inner.get("locked"):
                now = "moves" if inside.values()[name] != inner["value"] else "stays"
                told = f"updating a locked setting answers {answer.status}, and the value {now}"
    observe(locked_answer, told)
