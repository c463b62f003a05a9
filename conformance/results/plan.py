"""The plan: what a run owes and which tests verify it, decided before the first request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from conformance.contract import Level
from conformance.errors import UsageError
from conformance.results.durations import part_of
from conformance.results.grouping import grouped
from conformance.results.record import AccessRule, PlannedRequirement, Reason, TableItem
from conformance.results.text import in_brief

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from conformance.contract import Contract, Operation, Requirement, Version
    from conformance.results.record import KnownFailure, RunRecord
    from conformance.target import Profile


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """What planning needs to know about one test of the suite."""

    id: str
    """Node id."""
    requirements: frozenset[str]
    """Ids of the requirements that it verifies."""
    area: str
    """The area of its operation, or the area of most requirements that it verifies."""
    areas: frozenset[str]
    """All areas whose operations it calls, where that is known."""
    any_area: frozenset[str] = frozenset()
    """Areas of which it needs one, whichever; none if it needs no such area."""
    features: frozenset[str] = frozenset()
    """The features that a target needs to have what the test calls."""
    fixtures: frozenset[str] = frozenset()
    """The fixtures of the profile that it takes as arguments."""
    is_slow: bool = False
    draws: str | None = None
    """The operation whose drawn cases it sends."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a plan, each of which another machine runs."""

    number: int
    """From 1 on."""
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse the operator's text; raise UsageError when there is no such part."""
        number, mark, several = text.partition("/")
        if mark and number.isdecimal() and several.isdecimal() and 1 <= int(number) <= int(several):
            return cls(int(number), int(several))
        raise UsageError(f"--shard {text} is no part of a run. Write --shard 1/4, --shard 2/4 and so on.")

    def __str__(self) -> str:
        """Return it as the operator writes it."""
        return f"{self.number}/{self.of}"

    def others(self, tests: Collection[SuiteTest]) -> Mapping[str, str]:
        """Return the tests that are left to other shards, each with a text that says so."""
        # Tests that take minutes because they exhaust a rate limit cannot run twice at the same time.
        slow = {test.id for test in tests if test.is_slow}
        mine = part_of({test.id for test in tests} - slow, self.number, self.of)
        mine |= slow if self.number == 1 else frozenset()
        return {test.id: f"{Reason.ANOTHER_SHARD}: this is --shard {self}" for test in tests if test.id not in mine}


@dataclass(frozen=True, slots=True)
class Selection:
    """What the operator selected out of the plan."""

    areas: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    includes_slow: bool = False
    again: frozenset[str] | None = None
    """The requirements that failed or stayed open in an earlier run; None when all requirements are run."""
    again_from: str = ""
    """The folder of that run."""
    shard: Shard | None = None
    """The shard to run; None for all."""

    @property
    def words(self) -> tuple[str, ...]:
        """The options that make the selection, as the operator wrote them."""
        areas = (f"--area {name}" for name in self.areas)
        again = (f"--failed {self.again_from}",) if self.again is not None else ()
        return (*areas, *(f"--requirement {name}" for name in self.requirements), *again)

    def has(self, requirement: Requirement) -> bool:
        """Tell whether a requirement is selected."""
        return (
            (not self.areas or requirement.area in self.areas)
            and (not self.requirements or requirement.id in self.requirements)
            and (self.again is None or requirement.id in self.again)
        )

    def leaves_out(self, test: SuiteTest, contract: Contract) -> str | None:
        """Name the option that leaves a test out; None when the test will run."""
        if test.is_slow and not self.includes_slow:
            return "it takes minutes, and --include slow was not given"
        if any(self.has(contract.requirements[name]) for name in test.requirements):
            return None
        return f"not selected by {in_brief(self.words)}"


@dataclass(frozen=True)
class Plan:
    """Every requirement with the tests that verify it, and every planned test with the reason if it does not run."""

    requirements: tuple[PlannedRequirement, ...]
    tests: Mapping[str, SuiteTest]
    """The planned tests by node id."""
    left_out: Mapping[str, str]
    """The planned tests that the operator's own options leave out, each with the option."""

    @property
    def selected(self) -> Collection[str]:
        """The tests that will run."""
        return self.tests.keys() - self.left_out.keys()


def make_plan(
    contract: Contract,
    profile: Profile,
    tests: Iterable[SuiteTest],
    selection: Selection = Selection(),
    baseline: Mapping[str, KnownFailure] = MappingProxyType({}),
) -> Plan:
    """Plan a run: what is owed at the version of the target, within its claimed scope, with the features it declares.

    `tests` are all tests of the suite, `baseline` the requirements that the operator knows to fail. Only this function
    decides what does not apply.
    """
    planned = {test.id: test for test in tests if _is_planned(test, contract, profile)}
    by_requirement = grouped((name, test.id) for test in planned.values() for name in test.requirements)
    rows = []
    for requirement in contract.requirements.values():
        row = _row(requirement, profile, tuple(sorted(by_requirement.get(requirement.id, ()))))
        known = baseline.get(requirement.id)
        rows.append(replace(row, known_failure=known, selected=selection.has(requirement)))
    left_out = {
        test.id: cause for test in planned.values() if (cause := selection.leaves_out(test, contract)) is not None
    }
    if selection.shard is not None:
        left_out |= selection.shard.others([test for test in planned.values() if test.id not in left_out])
    return Plan(tuple(rows), MappingProxyType(planned), MappingProxyType(left_out))


def table(contract: Contract) -> tuple[TableItem, ...]:
    """Return the version table in the form in which a record keeps it."""
    return tuple(
        TableItem(
            id=change.id,
            version=str(change.version or "future"),
            kind=str(change.kind),
            item=change.item,
            summary=change.summary,
            requirement=change.requirement,
            replacement=change.replacement,
            removal_planned=str(change.removal_planned) if change.removal_planned else None,
        )
        for change in contract.changes
    )


def access(contract: Contract, version: Version | None) -> tuple[AccessRule, ...]:
    """Return who may call which operation at a version, in the form in which a record keeps it."""
    return tuple(
        AccessRule(operation.id, operation.label, operation.area, dict(operation.served), dict(operation.refused))
        for operation in contract.operations(version)
        if operation.served or operation.refused
    )


def not_planned(record: RunRecord, contract: Contract) -> tuple[str, ...]:
    """Return the requirements of a contract that are missing from a record's plan made with the same contract."""
    if record.header.contract != contract.digest:
        return ()
    planned = {entry.id for entry in record.plan}
    return tuple(name for name in contract.requirements if name not in planned)


def _is_planned(test: SuiteTest, contract: Contract, profile: Profile) -> bool:
    """Tell whether a test has anything to verify on a target."""
    if profile.scope and not test.areas <= {*profile.scope, *contract.general_areas}:
        return False
    if profile.scope and test.any_area and test.any_area.isdisjoint(profile.scope):
        return False
    if not all(profile.declares(feature) for feature in test.features):
        return False
    if any(profile.has_given_up(name) for name in test.fixtures):
        return False
    stated = [contract.requirements[name] for name in test.requirements]
    owed = [entry for entry in stated if entry.applies_to(profile.version)]
    return any(entry.feature is None or profile.declares(entry.feature) for entry in owed)


def _row(requirement: Requirement, profile: Profile, tests: tuple[str, ...]) -> PlannedRequirement:
    status, reason, detail = _status(requirement, profile, tests)
    return PlannedRequirement(
        id=requirement.id,
        area=requirement.area,
        statement=requirement.statement,
        section=requirement.section,
        level=str(_level(requirement, profile)),
        kind=str(requirement.kind),
        when=requirement.when(),
        status=status,
        reason=reason,
        detail=detail,
        tests=tests,
    )


def _level(requirement: Requirement, profile: Profile) -> Level:
    """Return the level of a requirement for a target, which may have declared another reading of it."""
    eased = requirement.eased_by is not None and profile.declares(requirement.eased_by)
    return Level.SHOULD if eased and requirement.level is Level.MUST else requirement.level


def left_out_by(
    profile: Profile, requirement: Requirement, shown_by: Operation | None = None
) -> tuple[Reason, str] | None:
    """Return why a profile does not ask for a requirement, whatever the target shows; None when it does.

    What all operations show together is asked only of those that are claimed and declared: `shown_by` is the one that
    is called.
    """
    if not requirement.applies_to(profile.version):
        return Reason.VERSION, f"holds {requirement.when()}, the target is {profile.version}"
    asked = (requirement, shown_by) if shown_by is not None else (requirement,)
    if not all(profile.claims(one.area) for one in asked):
        return Reason.OUT_OF_SCOPE, "the profile does not claim it"
    if requirement.shows_in and not any(map(profile.claims, requirement.shows_in)):
        return Reason.OUT_OF_SCOPE, f"the profile claims nothing of what it shows in: {', '.join(requirement.shows_in)}"
    features = [one.feature for one in asked if one.feature and not profile.declares(one.feature)]
    return (Reason.FEATURE_NOT_DECLARED, f"the target does not declare {features[0]}") if features else None


def _status(
    requirement: Requirement, profile: Profile, tests: tuple[str, ...]
) -> tuple[str, Reason | None, str | None]:
    """Return the first status that applies; no other place decides what does not apply."""
    nothing_left = Reason.OUT_OF_SCOPE if profile.scope else Reason.FEATURE_NOT_DECLARED
    cases = (
        *(((True, "not applicable", *left_out),) if (left_out := left_out_by(profile, requirement)) else ()),
        (requirement.not_testable, "not testable", Reason.NOT_OBSERVABLE, requirement.not_testable),
        (not requirement.tested, "pending", Reason.NO_TEST_YET, "the suite has no test for it yet"),
        (not tests, "not applicable", nothing_left, "nothing that the profile claims and declares could show it"),
    )
    found = next((case for case in cases if case[0]), None)
    return ("applicable", None, None) if found is None else found[1:]
