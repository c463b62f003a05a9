"""Approval rules belong to one project, group or merge request; operations of another one do not find them."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import Arranged, arranged
from conformance.suite.context import NotTested, Unmet, current_run, current_test
from conformance.suite.derived import claims_of, held_against, served_caller, takes_part
from conformance.suite.expectations import given, must_be_as_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.suite import Operation
    from conformance.suite.arrange import Prepared
    from conformance.suite.expectations import Listing

pytestmark = pytest.mark.together

RULE = "approval_rule_id"
#: The requirements broken by an operation that treats another's rule as its own.
OF_OTHERS = {
    "getProjectApprovalRule": "project-approval-rules.read.rule-of-another-project",
    "updateProjectApprovalRule": "project-approval-rules.update.rule-of-another-project",
    "deleteProjectApprovalRule": "project-approval-rules.delete.rule-of-another-project",
    "updateGroupApprovalRule": "group-approval-rules.update.rule-of-another-group",
    "getMergeRequestApprovalRule": "merge-request-approvals.rules.read-one.unknown-rule",
    "updateMergeRequestApprovalRule": "merge-request-approvals.rules.update.unknown-rule",
    "deleteMergeRequestApprovalRule": "merge-request-approvals.rules.delete.leaves-others",
}
#: Operations that read a rule, and make rules of each level: of the fixtures of stories and of those set aside.
SOURCES = (
    ("getProjectApprovalRule", False),
    ("getProjectApprovalRule", True),
    ("getMergeRequestApprovalRule", False),
    ("getMergeRequestApprovalRule", True),
    ("updateGroupApprovalRule", False),
)
#: How often more rules are made where each place numbers its own, until one has a number that is unknown elsewhere.
MOST_ROUNDS = 2
OF_PROJECTS = "/projects/{id}/approval_rules/{approval_rule_id}"


@dataclass(frozen=True)
class Rule:
    """A rule of another project, group or merge request."""

    owner: Arranged

    @property
    def number(self) -> Any:
        return self.owner.call.path_values[RULE]

    @property
    def list_path(self) -> str:
        return self.owner.call.path.rpartition("/")[0]

    def shown(self) -> Any:
        """Return what its own list shows of it: what identifies it, and how many approvals it requires."""
        found = self.owner.keeper.list(self.list_path).having(id=self.number)
        return [{name: entry.get(name) for name in ("id", "name", "approvals_required")} for entry in found]


class Others:
    """Rules that were made elsewhere, for consecutive tests, until they are removed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._made: list[Rule] = []
        self._profile: object = None

    def rules(self) -> list[Rule]:
        """Make the rules, as far as the profile allows, unless they exist already, and return them."""
        run = current_run()
        if self._profile is not run.profile:  # another one for a test that is tried with other fixtures
            self.put_back()
            self._profile = run.profile
            self._make(SOURCES)
        return self._made

    def more(self) -> None:
        """Make more of the rules set aside."""
        self._make(source for source in SOURCES if source[1])

    def _make(self, sources: Iterable[tuple[str, bool]]) -> None:
        known = {operation.id: operation for operation in current_run().validator.operations}
        for name, aside in sources:
            # The target may lack this level, or the profile what is needed to make a rule.
            with suppress(KeyError, NotTested, Unmet), current_test().results.settling_nothing(lambda: False):
                self._made.append(Rule(self._stack.enter_context(arranged(known[name], aside=aside))))

    def put_back(self) -> None:
        """Remove all of them; the next test makes them anew."""
        self._profile = None
        self._made.clear()
        with suppress(Unmet, NotTested), current_test().results.settling_nothing(lambda: False):
            self._stack.close()


@pytest.fixture(scope="module")
def others() -> Iterator[Others]:
    made = Others()
    yield made
    made.put_back()


def rules_of_others(prepared: Arranged, others: Others) -> list[Rule]:
    """Return the rules that were made elsewhere and may be named here, according to `may_be_named`."""
    here = prepared.call.path.rpartition("/")[0]
    in_force, listed = numbers_in_force(prepared), prepared.keeper.list(here)

    def found() -> list[Rule]:
        elsewhere = [rule for rule in others.rules() if rule.list_path != here and rule.number not in in_force]
        return [rule for rule in elsewhere if may_be_named(prepared, rule, listed)]

    for _ in range(MOST_ROUNDS):
        if may_be := found():
            return may_be
        others.more()
    return found()


def may_be_named(prepared: Arranged, rule: Rule, listed: Listing) -> bool:
    """Tell whether a rule's number is unknown to a list; for a deletion, the list may also contain that very rule.

    A list of a project may show the rules of the groups above, but a project cannot delete them.
    """
    found = listed.having(id=rule.number)
    names = [one["name"] for one in rule.shown()] if found and prepared.operation.method == "DELETE" else []
    return all(isinstance(one, dict) and one.get("name") in names for one in found)


def numbers_in_force(prepared: Arranged) -> list[Any]:
    """Return the numbers of rules in the approval state of a merge request, which may belong to its project."""
    if prepared.operation.id != "getMergeRequestApprovalRule":
        return []
    review = prepared.call.path.rpartition("/approval_rules")[0]
    state = prepared.keeper.get(f"{review}/approval_state")
    rules = state.json.get("rules") if state.is_served and isinstance(state.json, dict) else None
    return [rule.get("id") for rule in rules or () if isinstance(rule, dict)]


def calls_of_others(prepared: Arranged, others: Others) -> Iterator[tuple[Rule, Prepared]]:
    """Yield the numbers of others' rules: one made elsewhere, and inside a group one of that group.

    For that, a group made by the run has a project, and the profile's own group has the project of the profile.
    """
    parameters = {entry.name: entry for entry in prepared.operation.parameters}
    for rule in rules_of_others(prepared, others):
        call = prepared.call.having(parameters[RULE], rule.number)
        yield rule, call
        if rule.list_path.startswith("/groups/") and prepared.operation.path == OF_PROJECTS:
            with suppress(NotTested, Unmet):
                inside = prepared.place.fixture("inner_rules_project")
                if may_be_named(prepared, rule, prepared.keeper.list(f"/projects/{inside.id}/approval_rules")):
                    yield rule, call.having(parameters["id"], inside.id)
    if prepared.operation.path.startswith("/groups/"):
        own = Rule(prepared)
        with suppress(NotTested, Unmet):
            nested = prepared.place.fixture("subgroup")
            if own.number not in prepared.keeper.list(f"/groups/{nested.id}/approval_rules").ids():
                yield own, prepared.call.having(parameters["id"], nested.id)


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and operation.id in OF_OTHERS,
    requirements=lambda operation: claims_of(OF_OTHERS[operation.id]),
)
def test_a_rule_is_found_only_where_it_belongs(operation: Operation, others: Others) -> None:
    """Deleting an absent rule may succeed; then the rule must stay where it is."""
    caller, tried = served_caller(operation), False
    others.rules()
    with arranged(operation) as prepared:
        for rule, call in calls_of_others(prepared, others):
            before = rule.shown()
            answer = call.sent_by(caller)
            current_run().deletions.disregard(answer.exchange.call.path)
            with held_against([OF_OTHERS[operation.id]], go_on=True):
                tried = True
                if operation.method == "DELETE":
                    answer.must_not_break()
                else:
                    answer.must_be_refused(beside=None)
                after = rule.shown()
                must_be_as_before(f"the rule of {rule.list_path}", before, after, answer.exchange)
        given(tried, "no rule of another project, group or merge request, with a number of its own, could be made")
    if current_test().soft_failures:
        others.put_back()  # things that were hit are made again
