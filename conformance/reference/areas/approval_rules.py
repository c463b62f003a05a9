"""Approval rules: who has to approve, and how often. One model for groups, projects and merge requests.

Specification: Resources and their fields > Approval rule.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypeVar

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.approval_rule_records import ALL_BRANCHES_INTRODUCED, ApprovalRule, Level, RuleType
from conformance.reference.choices import Repeat, Unfit
from conformance.reference.errors import ForbiddenError, RejectedError, not_found
from conformance.reference.http import Response, no_content, ok
from conformance.reference.identity import Project, Role, Visibility
from conformance.reference.store import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from conformance.reference.areas.approval_rule_records import Home, RuleRequest
    from conformance.reference.choices import Choices
    from conformance.reference.core import Core
    from conformance.reference.identity import Group, Subject, User
    from conformance.reference.presenters import Json
    from conformance.reference.repositories import ProtectedBranch


class _Identified(Protocol):
    @property
    def id(self) -> int: ...


T = TypeVar("T", bound=_Identified)


class ApprovalRules(Behaviour):
    """The rules of all levels."""

    name = "approval_rules"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.rules: Table[int, ApprovalRule] = Table(service.store)
        self._defaults_made: Table[Home, int] = Table(service.store)  # the id that the default rule got

    # -- finding --------------------------------------------------------------------------------------------

    def rules_of(self, home: Home) -> list[ApprovalRule]:
        """Return the rules of one home, oldest first."""
        self.make_default_rule(home)
        return [rule for rule in self.rules.values() if rule.home == home]

    def find(self, home: Home, number: int) -> ApprovalRule:
        """Find a rule by its id. Raise NotFoundError when this home has no such rule."""
        self.make_default_rule(home)
        rule = self.rules.get(number)
        if rule is None or rule.home != home:
            raise not_found("Approval Rule")
        return rule

    def make_default_rule(self, home: Home) -> None:
        """Give a group or project its any_approver rule when it is first asked for its rules."""
        choices = self.service.choices
        if home.level is Level.MERGE_REQUEST or home in self._defaults_made or not choices.default_rule_listed:
            return
        number = self.service.store.next_id("approval_rules")
        self._defaults_made[home] = number
        self.rules[number] = ApprovalRule(
            id=number,
            home=home,
            name=choices.default_rule_name,
            approvals_required=0,
            rule_type=RuleType.ANY_APPROVER,
        )

    # -- changing -------------------------------------------------------------------------------------------

    def create_rule(self, subject: Subject, home: Home, wanted: RuleRequest, caller: User) -> ApprovalRule:
        """Create a rule as the caller wants it; `subject` is the group or project that the home lies in.

        Name and number must be given. Raise RejectedError for a rule that cannot be.
        """
        group_level = home.level is Level.GROUP
        initially = group_level and self.service.choices.group_rules_apply_to_all_branches
        everywhere = self.applies_everywhere(wanted, home, otherwise=initially)
        candidate = ApprovalRule(
            id=0,
            home=home,
            name=wanted.name or "",
            approvals_required=wanted.approvals_required or 0,
            rule_type=wanted.rule_type or RuleType.REGULAR,
            report_type=wanted.report_type if wanted.rule_type is RuleType.REPORT_APPROVER else None,
            users=self.users_named(wanted, subject) or (),
            groups=self.groups_named(wanted, caller) or (),
            protected_branches=() if everywhere else self.branches_named(wanted, subject) or (),
            applies_to_all_protected_branches=everywhere,
        )
        return self.add_rule(candidate)

    def add_rule(self, candidate: ApprovalRule) -> ApprovalRule:
        """Add a rule, under a new id. Raise RejectedError when it cannot be."""
        self.require_possible(candidate)
        self.supersede_default_rule(candidate)
        rule = replace(candidate, id=self.service.store.next_id("approval_rules"))
        self.rules[rule.id] = rule
        return rule

    def update_rule(self, subject: Subject, rule: ApprovalRule, wanted: RuleRequest, caller: User) -> ApprovalRule:
        """Change a rule to what the caller wants. Raise RejectedError when it cannot be so."""
        everywhere = self.applies_everywhere(wanted, rule.home, otherwise=rule.applies_to_all_protected_branches)
        changed = replace(
            rule,
            name=rule.name if wanted.name is None else wanted.name,
            approvals_required=(
                rule.approvals_required if wanted.approvals_required is None else wanted.approvals_required
            ),
            rule_type=wanted.rule_type or rule.rule_type,
            users=self.users_after(rule, wanted, subject),
            groups=self.groups_after(rule, wanted, caller),
            protected_branches=(rule.protected_branches if everywhere else self.branches_after(rule, wanted, subject)),
            applies_to_all_protected_branches=everywhere,
        )
        self.require_possible(changed)
        self.supersede_default_rule(changed)
        self.rules[rule.id] = changed
        return changed

    def delete_rule(self, rule: ApprovalRule) -> None:
        """Delete a rule; the default rule does not come back."""
        del self.rules[rule.id]

    def supersede_default_rule(self, rule: ApprovalRule) -> None:
        """Let an any_approver rule take the place of the one that still requires nothing."""
        if rule.rule_type is not RuleType.ANY_APPROVER or self.service.choices.several_default_rules:
            return
        for other in self._other_any_approvers(rule):
            self.delete_rule(other)

    # -- what a rule must be --------------------------------------------------------------------------------

    def require_possible(self, rule: ApprovalRule) -> None:
        """Raise RejectedError for a blank name, a number out of bounds, or one rule too many of its kind."""
        if not rule.name.strip():
            raise RejectedError("can't be blank", parameter="name")
        if not 0 <= rule.approvals_required <= self.service.choices.largest_approvals_required:
            raise RejectedError("is out of bounds", parameter="approvals_required")
        self.require_free_name(rule)
        self.require_single_default(rule)

    def require_free_name(self, rule: ApprovalRule) -> None:
        """Raise RejectedError when another rule of the home has the name, and the choices refuse that."""
        if self.service.choices.repeated_rule_name is Repeat.ACCEPT:
            return
        if any(rule.name == other.name for other in self.rules_of(rule.home) if other.id != rule.id):
            raise RejectedError("has already been taken", parameter="name")

    def require_single_default(self, rule: ApprovalRule) -> None:
        """Raise RejectedError for a second any_approver rule, once the first one requires something."""
        if rule.rule_type is not RuleType.ANY_APPROVER or self.service.choices.several_default_rules:
            return
        if any(other.approvals_required for other in self._other_any_approvers(rule)):
            raise RejectedError("any-approver already exists", parameter="rule_type")

    def _other_any_approvers(self, rule: ApprovalRule) -> list[ApprovalRule]:
        rules = self.rules_of(rule.home)
        return [one for one in rules if one.rule_type is RuleType.ANY_APPROVER and one.id != rule.id]

    # -- approvers ------------------------------------------------------------------------------------------

    def users_named(self, wanted: RuleRequest, subject: Subject) -> tuple[int, ...] | None:
        """Return the users named by id together with those named by username; None when no list was sent."""
        if wanted.user_ids is None and wanted.usernames is None:
            return None
        known = self.service.identities
        found = [known.users.get(number) for number in wanted.user_ids or ()]
        found += [known.find_username(name) for name in wanted.usernames or ()]
        return self._fitting(found, lambda user: self.may_be_named(user, subject), "user_ids")

    def groups_named(self, wanted: RuleRequest, caller: User) -> tuple[int, ...] | None:
        """Return the groups named that the caller can see; None when no list was sent."""
        if wanted.group_ids is None:
            return None
        known = self.service.identities
        found = [known.groups.get(number) for number in wanted.group_ids]
        return self._fitting(found, lambda group: not group.personal and known.can_see(caller, group), "group_ids")

    def may_be_named(self, user: User, subject: Subject) -> bool:
        """Say whether a user can be an approver in the rules of a group or project."""
        if not self.service.choices.approvers_must_be_members:
            return True
        return self.service.identities.role_in(user, subject) > Role.NONE

    def users_after(self, rule: ApprovalRule, wanted: RuleRequest, subject: Subject) -> tuple[int, ...]:
        """Return the users of a rule after an update: those sent, and nobody else."""
        named = self.users_named(wanted, subject)
        if named is not None:
            return named
        return () if self.service.choices.absent_lists_remove else rule.users

    def groups_after(self, rule: ApprovalRule, wanted: RuleRequest, caller: User) -> tuple[int, ...]:
        """Return the groups of a rule after an update: those sent, and hidden ones unless they go too."""
        named = self.groups_named(wanted, caller)
        if named is None:
            remove = self.service.choices.absent_lists_remove
            named = () if remove else self.visible_groups(rule, caller)
        hidden = () if wanted.remove_hidden_groups else self.hidden_groups(rule, caller)
        return (*named, *hidden)

    def visible_groups(self, rule: ApprovalRule, viewer: User) -> tuple[int, ...]:
        """Return the groups of a rule that this user may view."""
        if not rule.groups:
            return ()
        known = self.service.identities
        return tuple(n for n in rule.groups if n in known.groups and known.can_see(viewer, known.groups[n]))

    def hidden_groups(self, rule: ApprovalRule, viewer: User) -> tuple[int, ...]:
        """Return the groups of a rule that this user may not view."""
        if not rule.groups:
            return ()
        known = self.service.identities
        return tuple(n for n in rule.groups if n in known.groups and not known.can_see(viewer, known.groups[n]))

    def eligible_approvers(self, rule: ApprovalRule, groups: Collection[int] | None = None) -> tuple[int, ...]:
        """Return the users whose approval the rule counts: its users, and the members of its groups.

        `groups` narrows the groups down. An any_approver rule names nobody, and counts everybody.
        """
        groups = rule.groups if groups is None else groups
        if not groups:
            return rule.users
        known = self.service.identities
        ids = dict.fromkeys(rule.users)
        for number in groups:
            if number in known.groups:
                ids.update(dict.fromkeys(known.members(known.groups[number])))
        return tuple(ids)

    # -- protected branches ---------------------------------------------------------------------------------

    def applies_everywhere(self, wanted: RuleRequest, home: Home, *, otherwise: bool) -> bool:
        """Say whether the rule is to apply to all protected branches; `otherwise` is how it was before."""
        if home.level is Level.MERGE_REQUEST:
            return False
        if self.service.version < ALL_BRANCHES_INTRODUCED:
            return otherwise  # nothing says so in a record yet
        if wanted.applies_to_all_protected_branches is not None:
            return wanted.applies_to_all_protected_branches
        resets = home.level is Level.PROJECT and self.service.choices.absent_flag_resets
        return otherwise and not resets

    def branches_named(self, wanted: RuleRequest, subject: Subject) -> tuple[int, ...] | None:
        """Return the protected branches named; None when no list was sent."""
        if wanted.protected_branch_ids is None:
            return None
        known = {branch.id: branch for branch in self.branches_of(subject)}
        found = [known.get(number) for number in wanted.protected_branch_ids]
        return self._fitting(found, lambda _branch: True, "protected_branch_ids")

    def branches_after(self, rule: ApprovalRule, wanted: RuleRequest, subject: Subject) -> tuple[int, ...]:
        """Return the protected branches of a rule after an update: those sent, or the former ones."""
        named = self.branches_named(wanted, subject)
        return rule.protected_branches if named is None else named

    def branches_of(self, subject: Subject | None) -> list[ProtectedBranch]:
        """Return the protected branches of a project, or of all projects anywhere inside a group."""
        repositories, identities = self.service.repositories, self.service.identities
        if subject is None or isinstance(subject, Project):
            return repositories.protected_branches_of(subject) if subject else []
        inside = {project.id for project in identities.projects.values() if subject in identities.lineage(project)}
        return [branch for branch in repositories.protected_branches.values() if branch.project_id in inside]

    def branches_shown(self, rule: ApprovalRule) -> list[ProtectedBranch]:
        """Return the protected branches that the rule lists."""
        if not rule.applies_to_all_protected_branches:
            known = self.service.repositories.protected_branches
            return [known[number] for number in rule.protected_branches if number in known]
        if not self.service.choices.all_branches_listed:
            return []
        identities = self.service.identities
        places: dict[int, Group] | dict[int, Project] = (
            identities.groups if rule.home.level is Level.GROUP else identities.projects
        )
        return self.branches_of(places.get(rule.home.id))

    def applies_to_branch(self, rule: ApprovalRule, project: Project, branch: str) -> bool:
        """Say whether a project rule asks for approvals of changes to a branch."""
        if rule.applies_to_all_protected_branches:
            protected = self.branches_of(project)
        elif rule.protected_branches:
            protected = self.branches_shown(rule)
        else:
            return True
        return any(fnmatchcase(branch, known.name) for known in protected)

    # -- showing --------------------------------------------------------------------------------------------

    def present(self, rule: ApprovalRule, viewer: User, barred: Collection[int] = ()) -> Json:
        """Present the fields of every level as one user may see them, `barred` users being not eligible."""
        present = self.service.present
        groups = self.visible_groups(rule, viewer)
        eligible = self.eligible_approvers(rule, groups)
        if barred:
            eligible = tuple([number for number in eligible if number not in barred])
        shown: Json = {
            "id": rule.id,
            "name": rule.name,
            "rule_type": rule.rule_type.value,
            "eligible_approvers": present.users(eligible),
            "approvals_required": rule.approvals_required,
            "users": present.users(rule.users),
            "groups": [present.group(self.service.identities.groups[number]) for number in groups],
            "contains_hidden_groups": bool(self.hidden_groups(rule, viewer)),
        }
        if self.service.choices.extra_fields:
            shown["report_type"] = rule.report_type
        return shown

    def present_branches(self, rule: ApprovalRule, present: Callable[[ProtectedBranch], Json]) -> Json:
        """Present what rules of groups and projects say about protected branches."""
        shown: Json = {"protected_branches": [present(branch) for branch in self.branches_shown(rule)]}
        if self.service.version >= ALL_BRANCHES_INTRODUCED:
            shown["applies_to_all_protected_branches"] = rule.applies_to_all_protected_branches
        return shown

    # -- who may read ---------------------------------------------------------------------------------------

    def require_reader(self, caller: User, project: Project) -> None:
        """Require that a user may read what concerns approvals in a visible project. Raise ForbiddenError."""
        if project.visibility is not Visibility.PRIVATE:
            return
        if self.service.identities.role_in(caller, project) < self.service.choices.approvals_reader:
            raise ForbiddenError

    # -- inner workings -------------------------------------------------------------------------------------

    def _fitting(self, found: Iterable[T | None], fits: Callable[[T], bool], parameter: str) -> tuple[int, ...]:
        ids: dict[int, None] = {}
        for one in found:
            if one is not None and fits(one):
                ids[one.id] = None
            elif self.service.choices.unfit_approvers is Unfit.REFUSE:
                raise RejectedError("is invalid", parameter=parameter)
        return tuple(ids)


def answer(content: object, status: int) -> Response:
    """Answer with a chosen status; 204 has no body."""
    return no_content() if status == HTTPStatus.NO_CONTENT else ok(content, status)


def answer_unshown(content: object, status: int, choices: Choices) -> Response:
    """Answer a call whose response body the text does not show: by choice with this one, or with none."""
    return answer(content, status) if choices.unshown_bodies else Response(status)


AREA = Area(ApprovalRules, ())
