"""The records of approval rules: what a rule is, where it belongs, and what a request says about one.

Specification: Resources and their fields > Approval rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from conformance.reference.choices import Unfit
from conformance.reference.identity import Group, Project
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference.choices import Choices
    from conformance.reference.identity import Subject
    from conformance.reference.parameters import Parameters
    from conformance.reference.repositories import MergeRequest

PAGINATION_INTRODUCED = Version(15, 3)
ALL_BRANCHES_INTRODUCED = Version(15, 3)
USERNAMES_INTRODUCED = Version(15, 8)


class RuleType(StrEnum):
    """What a rule is for."""

    ANY_APPROVER = "any_approver"
    REGULAR = "regular"
    REPORT_APPROVER = "report_approver"
    CODE_OWNER = "code_owner"


SYSTEM_TYPES = frozenset({RuleType.REPORT_APPROVER, RuleType.CODE_OWNER})
CREATABLE_TYPES = (RuleType.ANY_APPROVER, RuleType.REGULAR, RuleType.REPORT_APPROVER)


class Level(StrEnum):
    """What rules can belong to."""

    GROUP = "group"
    PROJECT = "project"
    MERGE_REQUEST = "merge request"


class Home(NamedTuple):
    """The one group, project or merge request that a rule belongs to, by its id."""

    level: Level
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """One rule. Users, groups and protected branches are ids; `source_id` is the project rule it copies."""

    id: int
    home: Home
    name: str
    approvals_required: int
    rule_type: RuleType = RuleType.REGULAR
    report_type: str | None = None
    users: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    protected_branches: tuple[int, ...] = ()
    applies_to_all_protected_branches: bool = False
    source_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRequest:
    """What a caller says about a rule. None: the caller says nothing about it."""

    name: str | None = None
    approvals_required: int | None = None
    rule_type: RuleType | None = None
    report_type: str | None = None
    user_ids: tuple[int, ...] | None = None
    usernames: tuple[str, ...] | None = None
    group_ids: tuple[int, ...] | None = None
    protected_branch_ids: tuple[int, ...] | None = None
    applies_to_all_protected_branches: bool | None = None
    remove_hidden_groups: bool = False


def home_of(subject: Subject | MergeRequest) -> Home:
    """Return the home of the rules of a group, project or merge request."""
    if isinstance(subject, Group):
        return Home(Level.GROUP, subject.id)
    return Home(Level.PROJECT if isinstance(subject, Project) else Level.MERGE_REQUEST, subject.id)


def read_rule(
    parameters: Parameters, version: Version, *, complete: bool, usernames: bool, named: bool = True
) -> RuleRequest:
    """Read what requests of all levels say about a rule.

    With `complete`, approvals_required and, when it has to be `named`, the name must be there; `usernames` is whether
    the level takes them.
    """
    names = parameters.optional_strings("usernames") if usernames and version >= USERNAMES_INTRODUCED else None
    reads_name = parameters.string if complete and named else parameters.optional_string
    reads_number = parameters.integer if complete else parameters.optional_integer
    return RuleRequest(
        name=reads_name("name"),
        approvals_required=reads_number("approvals_required"),
        user_ids=parameters.optional_integers("user_ids"),
        usernames=names,
        group_ids=parameters.optional_integers("group_ids"),
    )


def read_rule_type(parameters: Parameters, choices: Choices) -> RuleType | None:
    """Read the type that a rule is to have; None when none is sent, or by choice an unknown one."""
    if choices.unknown_rule_type is Unfit.REFUSE:
        known = parameters.optional_choice("rule_type", CREATABLE_TYPES)
    else:
        known = parameters.optional_string("rule_type")
    return RuleType(known) if known in CREATABLE_TYPES else None
