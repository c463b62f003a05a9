"""What changes by itself makes no difference between two bodies; everything else does."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.suite.steady import says_the_same


@pytest.mark.parametrize(
    ("seen", "wanted", "again", "is_same"),
    [
        ({"a": 1}, {"a": 1}, None, True),
        ({"a": 1, "at": 5}, {"a": 1, "at": 4}, {"a": 1, "at": 6}, True),
        ({"a": 2, "at": 5}, {"a": 1, "at": 4}, {"a": 1, "at": 6}, False),
        ({"a": 1, "at": 5}, {"a": 1, "at": 4}, {"a": 1, "at": 4}, False),
        ([{"id": 1, "at": 5}], [{"id": 1, "at": 4}], [{"id": 1, "at": 6}], True),
        ([{"id": 2, "at": 5}], [{"id": 1, "at": 4}], [{"id": 1, "at": 6}], False),
        (("served", {"s": {"at": 5}}), ("served", {"s": {"at": 4}}), ("served", {"s": {"at": 6}}), True),
        (("refused", {"s": {"at": 5}}), ("served", {"s": {"at": 4}}), ("served", {"s": {"at": 6}}), False),
        ([], [{"id": 1, "at": 4}], [{"id": 1, "at": 6}], False),
        ("seen", "wanted", "wanted", False),
    ],
)
def test_what_differs_between_two_reads_of_one_thing_is_ignored(
    seen: Any,
    wanted: Any,
    again: Any,
    *,
    is_same: bool,
) -> None:
    assert says_the_same(seen, wanted, lambda: again) == is_same


def test_equal_bodies_need_no_second_read() -> None:
    def again() -> None:
        pytest.fail("read once more")

    assert says_the_same({"a": 1}, {"a": 1}, again)


def test_a_value_that_alternates_between_few_values_counts_as_changing() -> None:
    answered = iter("aab")
    assert says_the_same({"id": 1, "by": "b"}, {"id": 1, "by": "a"}, lambda: {"id": 1, "by": next(answered)})


def test_a_value_that_stays_the_same_in_all_reads_does_not_count_as_changing() -> None:
    assert not says_the_same({"id": 2, "by": "b"}, {"id": 1, "by": "a"}, lambda: {"id": 1, "by": "b"})
