"""Time stamps as the suite compares them: equal times are equal, however they are written."""

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
def test_one_time_is_the_same_in_any_zone_and_format(otherwise: str) -> None:
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
def test_another_time_differs_however_close_it_is(later: str) -> None:
    assert Moment(WRITTEN) != Moment(later)
    assert {Moment(WRITTEN)} != {Moment(later)}


def test_a_text_that_is_no_time_equals_only_itself() -> None:
    assert Moment("soon") == Moment("soon")
    assert Moment("soon") != Moment("Soon")
    assert Moment("soon") != 1
    assert hash(Moment("soon")) == hash(Moment("soon"))


def test_a_time_is_shown_as_it_was_written() -> None:
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
def test_a_time_is_later_only_beyond_the_difference_of_clocks(
    one: object, other: object, *, is_so: bool | None
) -> None:
    assert is_later(one, other) is is_so
