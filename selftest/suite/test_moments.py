"""Moments as the suite compares them: what says the same is the same, however it is written."""

from __future__ import annotations

import pytest

from conformance.suite.moments import Moment, is_later

WRITTEN = "2026-11-23T04:10:48.746437Z"


@pytest.mark.parametrize(
    "otherwise",
    [
        "2026-11-23T09:40:48.746437+05:30",
        "2026-11-23T04:10:48.746437123Z",
        "2026-11-23T04:10:48,746+0000",
        "2026-11-23T01:10:48-03",
        "2026-11-22T16:10-12:00",
        "20261123T041048Z",
        "2026-W48-1T04:10:48.746Z",
    ],
)
def test_one_moment_is_the_same_in_any_zone_and_form(otherwise: str) -> None:
    assert Moment(WRITTEN) == Moment(otherwise)
    assert Moment(otherwise) == WRITTEN
    assert hash(Moment(WRITTEN)) == hash(Moment(otherwise))
    assert {Moment(WRITTEN)} == {Moment(otherwise)}


@pytest.mark.parametrize(
    "later",
    [
        "2026-11-23T04:10:48.746438Z",
        "2026-11-23T04:10:48.747Z",
        "2026-11-23T04:10:49Z",
        "2026-11-23T04:11Z",
        "2026-11-23T04:10:48.746437+01:00",
        "2026-11-23T04:10:48.746437",
        "soon",
        "",
    ],
)
def test_another_moment_is_another_however_near(later: str) -> None:
    assert Moment(WRITTEN) != Moment(later)
    assert {Moment(WRITTEN)} != {Moment(later)}


def test_a_text_that_is_no_moment_equals_itself_alone() -> None:
    assert Moment("soon") == Moment("soon")
    assert Moment("soon") != Moment("Soon")
    assert Moment("soon") != 1
    assert hash(Moment("soon")) == hash(Moment("soon"))


def test_a_moment_is_shown_as_it_was_written() -> None:
    assert f"{Moment(WRITTEN)!r} {Moment(WRITTEN)}" == f"'{WRITTEN}' {WRITTEN}"


@pytest.mark.parametrize(
    ("one", "other", "is_so"),
    [
        ("2026-11-23T06:10:48Z", "2026-11-23T04:10:48Z", True),
        ("2026-11-23T06:10:48+02:00", "2026-11-23T04:10:48Z", False),
        ("2026-11-23T04:20:48Z", "2026-11-23T04:10:48Z", False),  # the clocks of two machines
        ("2026-11-23T04:10:48Z", "2026-11-23T06:10:48Z", False),
        ("soon", "2026-11-23T04:10:48Z", None),
        (None, "2026-11-23T04:10:48Z", None),
        ("2026-11-23T06:10:48", "2026-11-23T04:10:48Z", None),
    ],
)
def test_a_moment_is_later_by_more_than_clocks_are_apart(one: object, other: object, *, is_so: bool | None) -> None:
    assert is_later(one, other) is is_so
