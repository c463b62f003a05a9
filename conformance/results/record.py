"""What the record of a run holds: one frozen class for each kind of line, and the record as a whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Raised whenever a line changes its form, so that an old record is never misread.
RECORD_FORM = 2
_SHOWN_OF_SELECTION = 3


def in_brief(selection: Sequence[str]) -> str:
    """Return the options that selected a part of a run, in a line; of many, the first and how many more there are."""
    more = len(selection) - _SHOWN_OF_SELECTION
    return ", ".join(selection[:_SHOWN_OF_SELECTION]) + (f" and {more} more" if more > 0 else "")


class Outcome(StrEnum):
    """What one check came to."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"
    OBSERVED = "observed"
    UNSTABLE = "unstable"
    """It failed once, and held when the test ran once more: shown, never a violation, never green."""
    NOT_APPLICABLE = "not applicable"
    """Only the run could tell: the text names the item without describing it, and the target does not offer it."""


class Reason(StrEnum):
    """Why something is not tested, inconclusive or not applicable: a closed set, so that reports can count it."""

    meaning: str

    def __new__(cls, words: str, meaning: str = "") -> Self:  # a look-up by words gives no meaning
        """Make the member that is called `words`."""
        member = str.__new__(cls, words)
        member._value_ = words
        member.meaning = meaning
        return member

    FEATURE_NOT_DECLARED = "feature not declared", "The profile does not declare the feature (`features:`)."
    PREREQUISITE_MISSING = (
        "prerequisite missing",
        "The profile lacks something; the detail names what to add.",
    )
    VERSION = "version", "It is not owed at the version of the target."
    SWITCHED_OFF = "switched off by the operator", "The operator left it out, by an option or by arguments of pytest."
    ANOTHER_SHARD = "left to another shard", "Another part of the same run looks at it."
    UNSAFE = "unsafe in this mode", "It needs calls that the chosen mode does not send."
    HARNESS_ERROR = "harness error", "A test of the suite itself broke."
    NO_TEST_YET = "no test yet", "The suite has no test of it."
    NOT_OBSERVABLE = "cannot be observed from outside", "Nobody can see it from outside."
    NOT_REACHED = "not reached", "The run ended before its tests began."
    UNSTABLE = "unstable", "A test failed, and did not fail again when it ran once more."
    OUT_OF_SCOPE = "outside the claimed scope", "It belongs to an area that the profile does not claim (`scope:`)."
    PRECONDITION = (
        "precondition not met",
        "A step before the one that matters did not succeed.",
    )
    NO_ANSWER = "no answer", "The target did not answer, or a gateway answered in its place."
    VACUOUS = "nothing to look at", "There was nothing to look at, such as the entries of an empty list."
    INTERRUPTED = "interrupted", "The run was interrupted while its test ran."
    NOT_OFFERED = (
        "not offered by the target",
        "The target says that it does not have this, and need not.",
    )
    OPERATION_ABSENT = (
        "operation absent",
        "It needs an operation that the target does not have; that failed one requirement, and this is not another.",
    )


class TestOutcome(StrEnum):
    """What became of one planned test."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"
    UNSTABLE = "unstable"
    """What it saw at first did not come again when it ran once more."""
    BROKEN = "broken"
    """The suite itself broke in it; `phase` says where."""
    DESELECTED = "deselected"
    """It was planned and taken out of the run; the detail says by what."""
    NOT_BEGUN = "not begun"
    """The run ended before it, or pytest did not run it."""

    __test__ = False  # not a test, whatever pytest thinks of the name


#: Outcomes of a test that ran to its end, whatever it found.
ENDED = frozenset(
    {
        TestOutcome.PASSED,
        TestOutcome.FAILED,
        TestOutcome.UNSTABLE,
        TestOutcome.INCONCLUSIVE,
        TestOutcome.NOT_TESTED,
    }
)


class ItemState(StrEnum):
    """How a target stands to one item of the version table."""

    MADE = "made"
    """It behaves as the row says."""
    NOT_MADE = "not made"
    """It behaves as before the row."""
    STILL_SERVED = "still served"
    """Deprecated, and still there."""
    GONE = "gone"
    """Deprecated, and no longer there."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One exchange with the target, redacted, as a report shows it."""

    actor: str
    request: str
    """Method and path with query, as sent."""
    request_body: str | None
    status: int | None
    """None when no answer came."""
    response_body: str | None
    milliseconds: float
    curl: str
    """Repeats the call; tokens are `$TOKEN_<ACTOR>`."""


@dataclass(frozen=True, slots=True)
class Check:
    """One observation held against one requirement."""

    requirement: str
    outcome: Outcome
    test: str
    """Node id of the test."""
    reason: Reason | None = None
    detail: str | None = None
    """In words: what kept it from being seen, or what was observed."""
    expected: str | None = None
    actual: str | None = None
    place: str | None = None
    """Where in a body, as a JSON pointer."""
    evidence: tuple[Evidence, ...] = ()
    claimed: bool = True
    """Whether the test is there to verify this requirement, or saw it in passing."""
    waits_for: str | None = None
    """Of what could not be seen: the requirement whose failure, and nothing else, kept it from being seen."""


@dataclass(frozen=True, slots=True)
class TestEnd:
    """What became of one planned test: a record has exactly one such line for each."""

    test: str
    """Node id."""
    outcome: TestOutcome
    seconds: float = 0.0
    requests: int = 0
    detail: str | None = None
    """In words: what was seen, what was missing, by what it was deselected, or why it was not begun."""
    phase: str | None = None
    """Where it broke: `setup`, `call` or `teardown`."""
    reason: Reason | None = None
    """What kept it from going on."""

    __test__ = False  # not a test, whatever pytest thinks of the name


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """What the operator's baseline says of a requirement that is known to fail."""

    reason: str
    owner: str = ""
    expires: str = ""
    """The last day on which it counts."""
    link: str | None = None
    expired: bool = False
    """Whether that day was over when the run began."""

    @property
    def words(self) -> str:
        """All of it in a line."""
        return f"{self.reason} ({self.terms})" if self.terms else self.reason

    @property
    def terms(self) -> str:
        """Whose it is, until when, and where more of it stands."""
        until = f"{'expired on' if self.expired else 'until'} {self.expires}" if self.expires else ""
        return ", ".join(filter(None, (self.owner, until, self.link)))


@dataclass(frozen=True, slots=True)
class PlannedRequirement:
    """What the contract said of a requirement when the run began."""

    id: str
    area: str
    statement: str
    section: str
    level: str
    kind: str
    when: str
    """Versions for which it holds, in words."""
    status: str
    """`applicable`, `not applicable`, `not testable` or `pending`."""
    reason: Reason | None = None
    detail: str | None = None
    tests: tuple[str, ...] = ()
    """Node ids of the tests that claim to verify it."""
    known_failure: KnownFailure | None = None
    """What the operator's baseline says of it."""
    selected: bool = True
    """Whether it belongs to what the operator selected with `--area` or `--requirement`."""


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Who may call one operation, as the contract had it when the run began."""

    operation: str
    """Its id, which tests of it bear in brackets."""
    label: str
    """Method and path."""
    area: str
    served: Mapping[str, str]
    """Actor -> the requirement by which it is served."""
    refused: Mapping[str, str]
    """Actor -> the requirement by which it is refused."""


@dataclass(frozen=True, slots=True)
class TableItem:
    """One item of the version table, as the contract had it when the run began."""

    id: str
    version: str
    """`future` for an announcement without a version."""
    kind: str
    item: str
    summary: str
    requirement: str
    replacement: str | None = None
    removal_planned: str | None = None


@dataclass(frozen=True, slots=True)
class ItemSeen:
    """What a test saw of one item of the version table."""

    item: str
    """Id of the item."""
    state: ItemState
    detail: str
    """In words, without numbers or times of this one run."""
    test: str


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the target took to answer the calls of one operation."""

    operation: str
    """Method and path."""
    calls: int
    median: float
    """Milliseconds within which half of them were answered."""
    most: float
    """Milliseconds within which 95 of 100 were answered."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the run noticed about itself after it had begun."""

    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """Who tested what, with which text."""

    form: int
    suite: str
    contract: str
    """Digest of the contract's files."""
    target: str
    """A short name for file names and titles."""
    base_url: str
    version: str
    edition: str
    profile: Mapping[str, Any]
    """The profile without secrets."""
    seed: int
    started: str
    """UTC, ISO 8601."""
    python: str
    arguments: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    version_source: str | None = None
    """Where the version is from, such as `GET /version: 17.7.1-pre`."""
    command: str = ""
    """The command that repeats the run, with its seed."""
    scope: tuple[str, ...] = ()
    """The areas that the target claims to implement; empty for all."""
    undeclared: tuple[str, ...] = ()
    """The features that the profile does not declare: what belongs to them is not applicable."""
    selection: tuple[str, ...] = ()
    """What the operator selected with `--area` and `--requirement`; empty for everything."""
    subjects: tuple[str, ...] = ()
    """What exactly was tested, each as `name=algorithm:digest`: a build, an image or a commit."""
    fail_on: str = "any"
    """Whether `any` failure fails the run, or only a `new` one that the baseline does not hold."""
    allowed: Mapping[str, float] = field(default_factory=dict)
    """How long the run may wait and how often it may begin a test anew, and what the command bounds it by."""
    started_in: str = ""
    """The folder in which the command was given, as seen from that of the record: what it names is seen from there."""
    shard: str = ""
    """Which part of the plan it runs, as `2/8`; empty for all of it."""
    merged: tuple[str, ...] = ()
    """The shards that it was merged from, each with its record and when it ran; empty for what ran in one go."""
    run_by: str = ""
    """Who ran it and on which machine, as `somebody on build-7`."""

    @property
    def selected_in_brief(self) -> str:
        """What the operator selected; of a long list, how it begins."""
        return in_brief(self.selection)


@dataclass(frozen=True, slots=True)
class NetworkUse:
    """What the network did to a run, and what the run did about it."""

    retries: Mapping[str, int] = field(default_factory=dict)
    """How many calls were sent again, by the reason."""
    unanswered: Mapping[str, int] = field(default_factory=dict)
    """How many calls came to nothing in the end, by what kept them from being answered."""
    waited_seconds: float = 0.0
    """How long calls waited before they were sent again."""
    tests_begun_anew: int = 0
    """How often a test began anew because a call of it was not answered."""

    def __add__(self, other: NetworkUse) -> NetworkUse:
        """Return both together; of waiting at the same time the longer one."""
        return NetworkUse(
            dict(Counter(self.retries) + Counter(other.retries)),
            dict(Counter(self.unanswered) + Counter(other.unanswered)),
            max(self.waited_seconds, other.waited_seconds),
            self.tests_begun_anew + other.tests_begun_anew,
        )


@dataclass(frozen=True, slots=True)
class Footer:
    """Written last; a record without one was cut off."""

    verdict: str
    exit_code: int
    ended: str
    requests: int
    seconds: float
    detail: str | None = None
    """Why the run stopped early, if it did."""
    drawn: Mapping[str, int] | None = None
    """How many cases were `coverage` of the schemas, drawn `fresh`, or `replayed`, and of these `failed_before`."""
    network: NetworkUse | None = None
    """What the network did to the run."""
    could_not_run: bool = False
    """Whether the target could not be tested at all: no connection, a wrong token, or not this API."""
    left: tuple[str, ...] = ()
    """What the run changed on the target and did not put back, with what it is and why."""
    contradicted: tuple[str, ...] = ()
    """What of the profile the target contradicts: the run was forced all the same."""
    lines: int = 0
    """How many lines stand before this one."""
    digest: str = ""
    """SHA-256 of those lines."""


@dataclass(frozen=True)
class RunRecord:
    """A whole record, read back."""

    header: Header
    plan: tuple[PlannedRequirement, ...]
    checks: tuple[Check, ...]
    tests: tuple[TestEnd, ...]
    footer: Footer | None
    """None when the run was cut off."""
    warnings: tuple[str, ...] = field(default=())
    table: tuple[TableItem, ...] = ()
    access: tuple[AccessRule, ...] = ()
    items: tuple[ItemSeen, ...] = ()
    latencies: tuple[Latency, ...] = ()
    readiness: Mapping[str, Any] | None = None
    """What an upgrade would meet, if that was asked; see `conformance.versions.readiness`."""
    damage: tuple[str, ...] = ()
    """What of the record could not be read: no verdict that needs all of it can be given."""

    @property
    def is_complete(self) -> bool:
        """Whether the run came to its end: nothing stopped it, and every test that was not left out ran."""
        has_ended = self.footer is not None and self.footer.detail is None
        return has_ended and not any(end.outcome in (TestOutcome.NOT_BEGUN, TestOutcome.BROKEN) for end in self.tests)

    @property
    def truncated(self) -> bool:
        """Whether the run was cut off before its end."""
        return self.footer is None
