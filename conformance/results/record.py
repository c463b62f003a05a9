"""What the record of a run holds: one frozen class for each kind of line, and the record as a whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from conformance.results.text import in_brief

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Raised whenever a line changes its form, so that an old record is never misread.
RECORD_FORM = 2


class Outcome(StrEnum):
    """The outcome of one check."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"
    OBSERVED = "observed"
    UNSTABLE = "unstable"
    """It failed once, and held when the test ran again: reported, but neither a violation nor a success."""
    NOT_APPLICABLE = "not applicable"
    """Decided by the run: the text names the item without describing it, and the target does not offer it."""


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
    PREREQUISITE_MISSING = ("prerequisite missing", "The profile lacks something; the detail names what to add.")
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
    PRECONDITION = ("precondition not met", "A step before the one that matters did not succeed.")
    NO_ANSWER = "no answer", "The target did not answer, or a gateway answered in its place."
    VACUOUS = "nothing to look at", "There was nothing to look at, such as the entries of an empty list."
    INTERRUPTED = "interrupted", "The run was interrupted while its test ran."
    NOT_OFFERED = ("not offered by the target", "The target says that it does not have this, and need not.")
    OPERATION_ABSENT = (
        "operation absent",
        "It needs an operation that the target does not have; that failed one requirement, and this is not another.",
    )


class TestOutcome(StrEnum):
    """The outcome of one planned test."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"
    UNSTABLE = "unstable"
    """Its first result did not repeat when it ran once more."""
    BROKEN = "broken"
    """The suite itself broke during it; `phase` says where."""
    DESELECTED = "deselected"
    """It was planned and then left out of the run; the detail says why."""
    NOT_BEGUN = "not begun"
    """The run ended before it started, or pytest did not run it."""

    __test__ = False  # not a test, whatever pytest thinks of the name


#: Outcomes of tests that ran to their end, whatever they found.
ENDED = frozenset(
    {TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.UNSTABLE, TestOutcome.INCONCLUSIVE, TestOutcome.NOT_TESTED}
)


class ItemState(StrEnum):
    """How a target behaves for one item of the version table."""

    MADE = "made"
    """As after the change."""
    NOT_MADE = "not made"
    """As before the change."""
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
    """A command that repeats the call; tokens are `$TOKEN_<ACTOR>`."""

    @property
    def is_read(self) -> bool:
        """Whether the call changes nothing."""
        return self.request.startswith(("GET ", "HEAD "))


@dataclass(frozen=True, slots=True)
class Check:
    """One observation, compared with one requirement."""

    requirement: str
    outcome: Outcome
    test: str
    """Node id of the test."""
    reason: Reason | None = None
    detail: str | None = None
    """In words: why it could not be observed, or what was observed."""
    expected: str | None = None
    actual: str | None = None
    place: str | None = None
    """Where in a body, as a JSON pointer."""
    evidence: tuple[Evidence, ...] = ()
    claimed: bool = True
    """Whether the test verifies this requirement; false if it saw a violation in passing."""
    waits_for: str | None = None
    """If it could not be observed: the requirement whose failure is the only cause."""

    @property
    def said(self) -> Mapping[str, str]:
        """The parts that explain a failure, by the names that reports print; without empty ones."""
        parts = {"expected": self.expected, "actual": self.actual, "place": self.place, "detail": self.detail}
        return {name: value for name, value in parts.items() if value}


@dataclass(frozen=True, slots=True)
class TestEnd:
    """The outcome of one planned test; a record has exactly one such line for each test."""

    test: str
    """Node id."""
    outcome: TestOutcome
    seconds: float = 0.0
    requests: int = 0
    detail: str | None = None
    """In words: what was seen, what was missing, what deselected it, or why it did not start."""
    phase: str | None = None
    """Where it broke: `setup`, `call` or `teardown`."""
    reason: Reason | None = None
    """Why it could not go on."""

    __test__ = False  # not a test, whatever pytest thinks of the name


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """What the operator's baseline says about a requirement that is known to fail."""

    reason: str
    owner: str = ""
    expires: str = ""
    """The last day on which the entry counts."""
    link: str | None = None
    expired: bool = False
    """Whether that day had passed when the run began."""

    @property
    def words(self) -> str:
        """Reason, owner, expiry and link on one line."""
        return f"{self.reason} ({self.terms})" if self.terms else self.reason

    @property
    def terms(self) -> str:
        """The owner, the expiry date and a link to more."""
        until = f"{'expired on' if self.expired else 'until'} {self.expires}" if self.expires else ""
        return ", ".join(filter(None, (self.owner, until, self.link)))


@dataclass(frozen=True, slots=True)
class PlannedRequirement:
    """What the contract said about a requirement when the run began."""

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
    """The entry in the operator's baseline."""
    selected: bool = True
    """Whether the operator selected it with `--area` or `--requirement`."""


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Who may call one operation, according to the contract when the run began."""

    operation: str
    """The operation's id; its tests have it in brackets."""
    label: str
    """Method and path."""
    area: str
    served: Mapping[str, str]
    """Actor -> the requirement that grants the call."""
    refused: Mapping[str, str]
    """Actor -> the requirement that refuses the call."""


@dataclass(frozen=True, slots=True)
class TableItem:
    """One item of the version table, according to the contract when the run began."""

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
    """What a test saw about one item of the version table."""

    item: str
    """Id of the item."""
    state: ItemState
    detail: str
    """In words, without numbers or times that only this run has."""
    test: str


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the target took to answer the calls of one operation."""

    operation: str
    """Method and path."""
    calls: int
    median: float
    """Milliseconds within which half of the calls were answered."""
    most: float
    """Milliseconds within which 95 of 100 calls were answered."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A message of the run about itself, written after it had begun."""

    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """Who tested what, with which contract."""

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
    """The source of the version, such as `GET /version: 17.7.1-pre`."""
    command: str = ""
    """The command that repeats the run, with its seed."""
    scope: tuple[str, ...] = ()
    """The areas that the target claims to implement; empty for all."""
    undeclared: tuple[str, ...] = ()
    """The features that the profile does not declare; their requirements are not applicable."""
    selection: tuple[str, ...] = ()
    """What the operator selected with `--area` and `--requirement`; empty for everything."""
    subjects: tuple[str, ...] = ()
    """What exactly was tested, each as `name=algorithm:digest`: a build, an image or a commit."""
    fail_on: str = "any"
    """Whether `any` failure fails the run, or only a `new` one that the baseline does not hold."""
    allowed: Mapping[str, float] = field(default_factory=dict)
    """The limits of waiting and of starting tests again, and the limits that the command sets."""
    started_in: str = ""
    """The command's working folder, relative to the folder of the record; the command's paths are relative to it."""
    shard: str = ""
    """Which part of the plan it runs, as `2/8`; empty for all of it."""
    merged: tuple[str, ...] = ()
    """The shards that it was merged from, each with its record and when it ran; empty for a run in one piece."""
    run_by: str = ""
    """Who ran it and on which machine, as `somebody on build-7`."""

    @property
    def read_only(self) -> str:
        """The option that lets the run send nothing but GET and HEAD; empty if it was not given."""
        option = "--read-only"
        return option if option in self.arguments else ""

    @property
    def drawing(self) -> tuple[str, ...]:
        """The options that say how many calls are generated; empty for the usual number."""
        return tuple(sorted(word for word in self.arguments if word.startswith(("--max-examples=", "--fuzz-seconds="))))

    @property
    def selected_in_brief(self) -> str:
        """What the operator selected; a long list is shortened."""
        return in_brief(self.selection)


@dataclass(frozen=True, slots=True)
class NetworkUse:
    """Network errors of a run, and what the run did about them."""

    retries: Mapping[str, int] = field(default_factory=dict)
    """How many calls were sent again, by reason."""
    unanswered: Mapping[str, int] = field(default_factory=dict)
    """How many calls got no answer in the end, by cause."""
    waited_seconds: float = 0.0
    """How many seconds calls waited before they were sent again."""
    tests_begun_anew: int = 0
    """How many times a test started again because one of its calls was not answered."""

    def __add__(self, other: NetworkUse) -> NetworkUse:
        """Add both; of waiting at the same time, take the longer one."""
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
    """What the run changed on the target and did not restore, with the reason."""
    contradicted: tuple[str, ...] = ()
    """Where the target contradicts the profile, if the run was forced anyway."""
    lines: int = 0
    """How many lines come before this one."""
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
    """The effects of an upgrade, if the operator asked for them; see `conformance.versions.readiness`."""
    damage: tuple[str, ...] = ()
    """The parts of the record that could not be read; without them no verdict about the whole is possible."""

    @property
    def is_complete(self) -> bool:
        """Whether the run completed: nothing stopped it, and every test that was not left out ran."""
        has_ended = self.footer is not None and self.footer.detail is None
        return has_ended and not any(end.outcome in (TestOutcome.NOT_BEGUN, TestOutcome.BROKEN) for end in self.tests)

    @property
    def truncated(self) -> bool:
        """Whether the run was cut off before its end."""
        return self.footer is None
