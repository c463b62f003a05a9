"""How long a run waits for what a target does later."""

from __future__ import annotations

from conformance.suite.waits import Waits


def test_what_never_came_is_waited_for_shorter_after_each_wait_in_vain() -> None:
    """A service that is half built may never show what it accepted, and each wait until the deadline is a minute."""
    waits, seconds = Waits(60), []
    for number in range(5):
        expected = f"the end of an export in /groups/{number}"
        seconds.append(waits.seconds_for(expected))
        waits.missed(expected)
    assert seconds == [60, 30, 15, 7.5, 5]


def test_what_came_the_last_time_is_given_the_whole_time() -> None:
    waits = Waits(60)
    waits.came("the end of an export in /groups/1")
    waits.missed("that slack is listed")
    assert waits.seconds_for("the end of an export in /groups/2") == 60
    assert waits.seconds_for("that slack is listed") == 30
    waits.missed("the end of an export in /groups/2")
    assert waits.seconds_for("the end of an export in /groups/2") == 15


def test_a_short_deadline_is_never_exceeded() -> None:
    waits = Waits(0.5)
    waits.missed("anything")
    assert waits.seconds_for("anything") == 0.5
