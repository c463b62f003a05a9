"""Merge request approvals, explored: rules and approvals of two merge requests follow a model in any order of moves."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.fuzzing.models import Model, explore
from conformance.suite.arrange.reviews import (
    RESET_SECONDS,
    approvals_put_back,
    approvers_of,
    as_owed,
    created,
    essences,
    fresh_name,
    given_open,
    merge_request_path,
    rule_in,
    settled,
    user_id,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    given,
    must,
    must_be_as_before,
    named_otherwise,
    verifies,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.suite import Fixture, SuiteSession

#: How many approvals a rule requires.
NUMBERS = st.sampled_from((4, 5))
#: One of two callers or merge requests, and some of two approvers, by their places.
PAIR = st.integers(0, 1)
SOME_OF_PAIR = st.sets(PAIR, min_size=1).map(sorted)
#: Maximum number of rules in a merge request.
MOST_RULES = 4


@pytest.fixture
def places(
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project: Fixture,
    merge_request: Fixture,
    reset_merge_request: Fixture,
) -> Iterator[tuple[Path, Path]]:
    """Two open merge requests with a rule that names both approvers, restored afterwards."""
    found = merge_request_path(project, reset_merge_request), merge_request_path(project, merge_request)
    users = [user_id(approver), user_id(second_approver)]
    with ExitStack() as stack:
        for path in found:
            given_open(maintainer, path)
            stack.enter_context(rules_put_back(maintainer, path / "approval_rules"))
            stack.enter_context(approvals_put_back(maintainer, path, approver, second_approver))
            created(maintainer, path / "approval_rules", user_ids=users)
        yield found


@pytest.mark.requirements(
    "merge-request-approvals.approve.lists-caller",
    "merge-request-approvals.approve.keeps-others",
    "merge-request-approvals.unapprove.caller-is-gone",
    "merge-request-approvals.unapprove.keeps-others",
    "merge-request-approvals.reset.clears-all",
    "merge-request-approvals.approvals-are-separate",
)
def test_approvals_of_merge_requests_follow_the_model(
    suite: SuiteSession,
    places: tuple[Path, Path],
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project_bot: Caller,
) -> None:
    waits = [RESET_SECONDS]
    explore(suite, lambda: Approvals(places, maintainer, (approver, second_approver), project_bot, waits))


class Approvals(Model):
    """A state machine of who has approved which of two merge requests; the first one may also be reset."""

    def __init__(
        self, places: tuple[Path, Path], reader: Caller, callers: tuple[Caller, Caller], bot: Caller, waits: list[float]
    ) -> None:
        """Begin an example; `waits` has the seconds that a reset may take, and is shared by all examples."""
        super().__init__()
        self.places, self.reader, self.callers, self.bot, self.waits = places, reader, callers, bot, waits
        self.model: list[set[int]] = []

    @initialize()
    def start(self) -> None:
        for path in self.places:
            approved = approvers_of(self.reader, path)
            for caller in self.callers:
                if user_id(caller) in approved:
                    caller.post(path / "unapprove").given_served()
        self.model = [set(approvers_of(self.reader, path)) for path in self.places]
        given(
            not any({user_id(caller) for caller in self.callers} & found for found in self.model),
            "the approvals cannot be taken back before the moves",
        )

    @rule(who=PAIR, place=PAIR)
    def approve(self, who: int, place: int) -> None:
        self.go_on_at(place)
        caller = self.callers[who]
        answer = caller.post(self.places[place] / "approve")
        if user_id(caller) not in self.model[place]:
            answer.given_served()
        self.model[place].add(user_id(caller))
        self.compare(
            place,
            user_id(caller),
            "merge-request-approvals.approve.lists-caller",
            "merge-request-approvals.approve.keeps-others",
        )

    @rule(who=PAIR, place=PAIR)
    def unapprove(self, who: int, place: int) -> None:
        self.go_on_at(place)
        caller = self.callers[who]
        answer = caller.post(self.places[place] / "unapprove")
        if user_id(caller) in self.model[place]:
            answer.given_served()
        self.model[place].discard(user_id(caller))
        self.compare(
            place,
            user_id(caller),
            "merge-request-approvals.unapprove.caller-is-gone",
            "merge-request-approvals.unapprove.keeps-others",
        )

    @precondition(lambda self: self.model[0])  # if there is nothing to reset, nothing shows when it is done
    @rule()
    def reset(self) -> None:
        self.go_on_at(0)
        self.bot.put(self.places[0] / "reset_approvals").given_served()
        self.model[0] = set()
        if settled(lambda: approvers_of(self.reader, self.places[0]), [], within=self.waits[0]):
            self.waits[0] = 0  # after one wait in vain, there are no more waits while the failure is shrunk
        self.compare(0, None, "merge-request-approvals.reset.clears-all", "merge-request-approvals.reset.clears-all")

    def compare(self, changed: int, who: int | None, of_caller: str, of_others: str) -> None:
        """Compare the merge request with the model; each difference fails the requirement that it breaks."""
        wanted = self.model[changed]
        shown = settled(lambda: approvers_of(self.reader, self.places[changed]), sorted(wanted))
        with verifies(of_caller):
            holds = (who in shown) is (who in wanted)
            must(holds, f"user {who} {'in' if who in wanted else 'not in'} approved_by", as_json(shown))
        with verifies(of_others):
            must(shown == sorted(wanted), f"approved_by of {sorted(wanted)}", as_json(shown))
        self.moved = changed

    def look_around(self, moved: int) -> None:
        unmoved = sorted(self.model[1 - moved])
        other = settled(lambda: approvers_of(self.reader, self.places[1 - moved]), unmoved)
        with verifies("merge-request-approvals.approvals-are-separate"):
            must(other == unmoved, f"approved_by of {unmoved} in the other merge request", as_json(other))


@pytest.mark.requirements(
    "merge-request-approvals.rules.create.listed",
    "merge-request-approvals.rules.create.name-and-number",
    "merge-request-approvals.rules.create.users",
    "merge-request-approvals.rules.update.name",
    "merge-request-approvals.rules.update.approvals-required",
    "merge-request-approvals.rules.update.users-are-replaced",
    "merge-request-approvals.rules.delete.gone",
    "merge-request-approvals.rules.delete.leaves-others",
    "merge-request-approvals.rules.are-separate",
    "merge-request-approvals.leaves-the-rest",
)
def test_rules_of_merge_requests_follow_the_model(
    suite: SuiteSession,
    places: tuple[Path, Path],
    maintainer: Caller,
    owner: Caller,
    approver: Caller,
    second_approver: Caller,
    project: Fixture,
) -> None:
    users = (user_id(approver), user_id(second_approver))
    groups = [one.id for one in current_run().profile.fixtures.get("approver_group", ())[:1]]
    lists = tuple(path / "approval_rules" for path in places)
    shown = tuple(named_otherwise(path, project, maintainer) for path in lists)
    untouched: list[set[Any]] = []
    explore(suite, lambda: Rules(lists, shown, (maintainer, owner), (users, groups), untouched))


class Rules(Model):
    """A state machine of the rules of two merge requests, whose moves several callers make in turns."""

    def __init__(
        self,
        lists: tuple[Path, ...],
        read_at: tuple[Path, ...],
        callers: tuple[Caller, Caller],
        approvers: tuple[tuple[int, int], list[int]],
        untouched: list[set[Any]],
    ) -> None:
        """Begin an example; `untouched` is shared by all: the rules of each list before the first example."""
        super().__init__()
        self.lists, self.read_at, self.callers, self.untouched = lists, read_at, callers, untouched
        self.users, self.groups = approvers
        self.model: list[dict[Any, dict[str, Any]]] = []
        self.own: list[list[int]] = [[], []]

    @initialize()
    def start(self) -> None:
        if not self.untouched:
            self.untouched.extend(set(essences(self.callers[0], path)) for path in self.read_at)
        for path, shown, keep in zip(self.lists, self.read_at, self.untouched, strict=True):
            for number in set(essences(self.callers[0], shown)) - keep:
                self.callers[0].delete(path / number).given_served()
        self.model = [essences(self.callers[0], path) for path in self.read_at]

    def tour(self) -> None:
        """Make three rules for different users, change one and delete another, whatever is drawn later."""
        self.start()
        for number, named, groups in ((4, [0, 1], self.groups), (5, [0], []), (4, [1], [])):
            self.make(0, 0, self.body(number, named, groups))
        # Its groups come last: whether an empty list removes groups is open.
        for number, groups in ((5, []), (4, self.groups)):
            self.change(0, 0, self.own[0][2], self.body(number, [0], groups))
        self.remove(0, 0, self.own[0][1])

    @precondition(lambda self: all(len(own) < MOST_RULES for own in self.own))
    @rule(who=PAIR, place=PAIR, number=NUMBERS, named=SOME_OF_PAIR)
    def create(self, who: int, place: int, number: int, named: list[int]) -> None:
        self.make(who, place, self.body(number, named))

    def make(self, who: int, place: int, sent: dict[str, Any]) -> None:
        self.go_on_at(place)
        answer = self.callers[who].post(self.lists[place], sent)
        made = rule_in(answer)["id"]
        self.model[place][made] = as_essence(as_owed(sent, answer))
        self.own[place].append(made)
        self.compare(
            place,
            made,
            "merge-request-approvals.rules.create.listed",
            "merge-request-approvals.rules.create.name-and-number",
            "merge-request-approvals.rules.create.users",
            others="merge-request-approvals.leaves-the-rest",
        )

    @precondition(lambda self: any(self.own))
    @rule(who=PAIR, data=st.data(), number=NUMBERS, named=SOME_OF_PAIR)
    def update(self, who: int, data: st.DataObject, number: int, named: list[int]) -> None:
        place, target = data.draw(st.sampled_from(self.all_own()))
        self.change(who, place, target, self.body(number, named))

    def change(self, who: int, place: int, target: int, sent: dict[str, Any]) -> None:
        self.go_on_at(place)
        answer = self.callers[who].put(self.lists[place] / target, sent)
        self.model[place][target] = as_essence(as_owed(sent, answer))
        values = (
            "merge-request-approvals.rules.update.approvals-required",
            "merge-request-approvals.rules.update.name",
        )
        self.compare(
            place,
            target,
            "merge-request-approvals.rules.create.listed",
            values,
            "merge-request-approvals.rules.update.users-are-replaced",
            others="merge-request-approvals.leaves-the-rest",
        )

    @precondition(lambda self: any(self.own))
    @rule(who=PAIR, data=st.data())
    def delete(self, who: int, data: st.DataObject) -> None:
        place, target = data.draw(st.sampled_from(self.all_own()))
        self.remove(who, place, target)

    def remove(self, who: int, place: int, target: int) -> None:
        self.go_on_at(place)
        self.callers[who].delete(self.lists[place] / target).given_served()
        del self.model[place][target]
        self.own[place].remove(target)
        self.compare(place, target, "merge-request-approvals.rules.delete.gone", "", "")

    def all_own(self) -> list[tuple[int, int]]:
        return [(place, number) for place in (0, 1) for number in self.own[place]]

    def body(self, number: int, named: list[int], groups: Sequence[int] = ()) -> dict[str, Any]:
        users = [self.users[one] for one in named]
        return {"name": fresh_name(), "approvals_required": number, "user_ids": users, "group_ids": [*groups]}

    def compare(
        self,
        place: int,
        target: int,
        there: str,
        values: str | tuple[str, ...],
        approvers: str,
        others: str = "merge-request-approvals.rules.delete.leaves-others",
    ) -> None:
        """Compare the list with the model; each difference fails the requirement that it breaks."""
        shown = settled(lambda: essences(self.callers[0], self.read_at[place]), self.model[place])
        expected = self.model[place].get(target)
        with verifies(there):
            stays = expected is not None
            must((target in shown) is stays, f"rule {target} {'there' if stays else 'gone'}", f"{sorted(shown)}")
        if expected is not None:
            compare_rule(shown[target], expected, values, approvers)
        rest = {number: rule for number, rule in shown.items() if number != target}
        unmoved = {number: rule for number, rule in self.model[place].items() if number != target}
        with verifies(others):
            must_be_as_before("the other rules", unmoved, rest)
        self.moved = place

    def look_around(self, moved: int) -> None:
        other = settled(lambda: essences(self.callers[0], self.read_at[1 - moved]), self.model[1 - moved])
        with verifies("merge-request-approvals.rules.are-separate"):
            must_be_as_before("the rules of the other merge request", self.model[1 - moved], other)


def compare_rule(
    shown: dict[str, Any], expected: dict[str, Any], values: str | tuple[str, ...], approvers: str
) -> None:
    """Compare one rule with the model."""
    number, name = (values, values) if isinstance(values, str) else values
    for requirement, field in ((number, "approvals_required"), (name, "name"), (approvers, "users")):
        with verifies(requirement):
            must(shown[field] == expected[field], f"{field} = {as_json(expected[field])}", as_json(shown[field]))


def as_essence(sent: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": sent["name"],
        "approvals_required": sent["approvals_required"],
        "users": sorted(sent["user_ids"]),
        "groups": sorted(sent["group_ids"]),
    }
