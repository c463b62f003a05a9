"""Many failing cases become one small call for each separate failure, in whatever order the responses arrive."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from conformance.fuzzing.cases import DrawnCase
from conformance.fuzzing.running import Failure, in_groups, shrunk
from conformance.http.exchange import Call, Exchange

if TYPE_CHECKING:
    from collections.abc import Callable


def case_with(**body: Any) -> DrawnCase:
    return DrawnCase("setSomething", "PUT", "/things/1", body=body)


def failure(case: DrawnCase, requirement: str = "a.b", place: str = "/0/name", expected: str = "text") -> Failure:
    exchange = Exchange(Call(None, "PUT", "/things/1"), 200, {}, b"", 0.0)
    return Failure(case, requirement, expected, "7", (exchange,), place)


def failing_if(holds: Callable[[dict[str, Any]], bool]) -> Callable[[DrawnCase], list[Failure]]:
    """A target that answers wrongly to some bodies."""

    def send(case: DrawnCase) -> list[Failure]:
        return [failure(case)] if holds(case.body) else []

    return send


def as_it_is(case: DrawnCase) -> DrawnCase:
    return case


def test_failures_at_one_place_are_one_in_whichever_item_of_a_list_they_show() -> None:
    found = [failure(case_with(a=number), place=f"/{number}/name") for number in range(9)]
    assert list(in_groups(found)) == [("a.b", "/*/name", "text")]


def test_another_place_requirement_or_expectation_is_another_failure() -> None:
    case = case_with(a=1)
    found = [failure(case), failure(case, "a.c"), failure(case, place="/0/path"), failure(case, expected="a number")]
    assert len(in_groups(found)) == 4


def test_groups_do_not_depend_on_the_order_of_responses() -> None:
    found = [failure(case_with(a="x" * number), place=f"/{number % 2}/name") for number in range(1, 20)]
    found += [failure(case_with(b="y" * number), "a.c") for number in range(1, 20)]
    shuffled = random.Random(3).sample(found, len(found))  # noqa: S311 - an order, no secret
    assert in_groups(found) == in_groups(shuffled)
    assert list(in_groups(found)) == list(in_groups(shuffled))
    assert in_groups(shuffled)["a.b", "/*/name", "text"][0].case.body == {"a": "x"}


def test_a_failing_call_is_reduced_to_what_matters() -> None:
    case = case_with(a=1, b=2, c=3, d=4, e=5)
    smallest = shrunk(failure(case), failing_if(lambda body: "b" in body and "d" in body), as_it_is)
    assert smallest is not None
    assert smallest.case.body == {"b": 2, "d": 4}


def test_a_call_that_fails_only_as_a_whole_is_not_reduced() -> None:
    case = case_with(a=1, b=2)
    smallest = shrunk(failure(case), failing_if(lambda body: len(body) == 2), as_it_is)
    assert smallest is not None
    assert smallest.case.body == {"a": 1, "b": 2}


def test_a_call_that_does_not_fail_again_is_marked_as_such() -> None:
    assert shrunk(failure(case_with(a=1)), failing_if(lambda _: False), as_it_is) is None


def test_shrinking_ends_after_a_bounded_number_of_calls() -> None:
    calls: list[DrawnCase] = []

    def send(case: DrawnCase) -> list[Failure]:
        calls.append(case)
        return [failure(case)] if len(case.body) > 90 else []

    shrunk(failure(case_with(**{f"p{number}": number for number in range(100)})), send, as_it_is)
    assert len(calls) < 60
    calls.clear()
    shrunk(failure(case_with(**{f"p{number}": number for number in range(100)})), send, as_it_is, tries=4)
    assert len(calls) == 1 + 4
