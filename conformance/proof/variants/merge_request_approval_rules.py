"""Variants in the rules of merge requests and in copies of project rules, and the alterations that make them."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.proof.variants import approval_rule_names, approval_rules, approvals
from conformance.proof.variants.approval_settings import lock_everywhere
from conformance.proof.variants.variant import Variant
from conformance.reference.areas.approval_rule_records import ApprovalRule, Level, RuleRequest, RuleType, home_of
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.choices import Choices
from conformance.reference.errors import NotFoundError, RejectedError, RepeatedError, not_found

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.identity import Project


def asks_for_rules_of_both_levels(service: Service) -> None:
    """Apply the rules of the project together with the merge request's own rules, and show both."""
    rules = service.merge_request_approval_rules
    rules.effective_rules = lambda merge_request: [
        *rules.project_rules(merge_request),
        *rules.rules(merge_request),
    ]


def removes_hidden_groups_of_merge_requests(service: Service) -> None:
    """Remove hidden groups with the others when a rule of a merge request is updated: no sentence keeps them there."""
    rules = service.approval_rules
    groups_after = rules.groups_after

    def without_hidden(rule: Any, wanted: RuleRequest, caller: Any) -> tuple[int, ...]:
        if rule.home.level is Level.MERGE_REQUEST:
            wanted = replace(wanted, remove_hidden_groups=True)
        return groups_after(rule, wanted, caller)

    rules.groups_after = without_hidden


def shows_no_sources_of_rules(service: Service) -> None:
    """Show for no rule of a merge request which rule it comes from, nor that it differs from that."""
    rules = service.merge_request_approval_rules
    present = rules.present

    def shown(rule: Any, merge_request: Any, viewer: Any) -> dict[str, Any]:
        return {**present(rule, merge_request, viewer), "source_rule": None, "overridden": False}

    rules.present = shown


def is_particular_about_copies(service: Service) -> None:
    """Refuse a second copy of a project rule, one with fewer approvals, and one with other branches."""
    rules = service.merge_request_approval_rules
    copied = rules.copied_project_rule

    def copy(merge_request: Any, source: Any, wanted: RuleRequest) -> Any:
        if any(rule.source_id == source.id for rule in rules.rules(merge_request)):
            raise RepeatedError("has already been copied", parameter="approval_project_rule_id")
        if (wanted.approvals_required or 0) < source.approvals_required:
            raise RejectedError("must not be less than the project asks for", parameter="approvals_required")
        if source not in rules.project_rules(merge_request):
            raise RejectedError("does not apply to the target branch", parameter="approval_project_rule_id")
        return copied(merge_request, source, wanted)

    rules.copied_project_rule = copy


def asks_for_no_less_than_the_project(service: Service) -> None:
    """Refuse a rule of a merge request that requires fewer approvals than a rule of its project."""
    rules = service.merge_request_approval_rules
    create, update = rules.create_rule, rules.update_rule

    def require_enough(merge_request: Any, wanted: Any) -> None:
        most = max((rule.approvals_required for rule in rules.project_rules(merge_request)), default=0)
        if wanted.approvals_required is not None and wanted.approvals_required < most:
            raise RejectedError("must not be less than the project asks for", parameter="approvals_required")

    def created(merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        require_enough(merge_request, wanted)
        return create(merge_request, wanted, source_id, caller)

    def updated(merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        require_enough(merge_request, wanted)
        return update(merge_request, number, wanted, caller)

    rules.create_rule = created
    rules.update_rule = updated


def stays_overwritten(service: Service) -> None:
    """Keep approval_rules_overwritten true even when the last rule of the merge request is deleted."""
    rules = service.merge_request_approval_rules
    overwritten, create = rules.overwritten, rules.create_rule
    ever: set[int] = set()

    def created(merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        rule = create(merge_request, wanted, source_id, caller)
        ever.add(merge_request.id)
        return rule

    def once(merge_request: Any) -> bool:
        return merge_request.id in ever or overwritten(merge_request)

    rules.create_rule = created
    rules.overwritten = once


def hides_rules_that_are_forbidden(service: Service) -> None:
    """Let the installation forbid rules of merge requests: creating one answers 404."""
    lock_everywhere(service, Setting.ALLOW_OVERRIDES, value=False)
    rules = service.merge_request_approval_rules

    def require_overriding(project: Project) -> None:
        del project
        raise not_found("Approval rules")

    rules.require_overriding = require_overriding


def lets_copies_take_places(service: Service) -> None:
    """List the project's rules in each merge request, with ids that copies of them take over."""
    rules, everywhere = service.merge_request_approval_rules, service.approval_rules
    listed, find_listed, create = rules.listed, rules.find_listed, rules.create_rule
    numbers: dict[tuple[int, int], int] = defaultdict(partial(service.store.next_id, "approval_rules"))

    def inherited(merge_request: Any) -> list[Any]:
        home, copied = home_of(merge_request), {rule.source_id for rule in rules.own_rules(merge_request)}
        left = [rule for rule in rules.project_rules(merge_request) if rule.id not in copied]
        return [replace(rule, id=numbers[merge_request.id, rule.id], home=home, source_id=rule.id) for rule in left]

    def found(merge_request: Any, number: int) -> Any:
        return {rule.id: rule for rule in inherited(merge_request)}.get(number) or find_listed(merge_request, number)

    def created(merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        rule = create(merge_request, wanted, source_id, caller)
        if source_id is None:
            return rule
        number = numbers.pop((merge_request.id, source_id), rule.id)
        return everywhere.rules.setdefault(number, replace(everywhere.rules.pop(rule.id), id=number))

    rules.listed = lambda merge_request: [*listed(merge_request), *inherited(merge_request)]
    rules.find_listed = found
    rules.create_rule = created


def lets_copies_follow(service: Service) -> None:
    """Change and delete the copies of a project rule, in its merge requests, together with it."""
    projects, rules = service.project_approval_rules, service.approval_rules
    update, delete = projects.update_rule, projects.delete_rule

    def copies(number: int) -> list[Any]:
        return [rule for rule in rules.rules.values() if rule.source_id == number]

    def updated(project: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = update(project, number, wanted, caller)
        for copy in copies(number):
            rules.rules[copy.id] = replace(copy, name=changed.name, users=changed.users, groups=changed.groups)
        return changed

    def deleted(project: Any, number: int) -> None:
        delete(project, number)
        for copy in copies(number):
            del rules.rules[copy.id]

    projects.update_rule = updated
    projects.delete_rule = deleted


def brings_the_projects_rules(service: Service) -> None:
    """Give a merge request copies of all rules of its project together with its first own rule."""
    rules, everywhere = service.merge_request_approval_rules, service.approval_rules
    create = rules.create_rule

    def created(merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        is_first = not rules.own_rules(merge_request)
        rule = create(merge_request, wanted, source_id, caller)
        others = rules.project_rules(merge_request) if is_first else []
        for source in others:
            if source.rule_type is RuleType.REGULAR and source.id != source_id:
                number = service.store.next_id("approval_rules")
                copy = replace(source, id=number, home=home_of(merge_request), source_id=source.id)
                everywhere.rules[number] = replace(copy, protected_branches=(), applies_to_all_protected_branches=False)
        return rule

    rules.create_rule = created


def drops_authors_from_rules(service: Service) -> None:
    """Leave the author out of the approvers of a merge request's rules, unless authors may approve."""
    rules, everywhere = service.merge_request_approval_rules, service.approval_rules
    add, update = everywhere.add_rule, everywhere.update_rule

    def without_author(rule: Any) -> Any:
        if rule.home.level is not Level.MERGE_REQUEST:
            return rule
        known = service.repositories.merge_requests.values()
        barred = next((rules.barred(one) for one in known if one.id == rule.home.id), set())
        return replace(rule, users=tuple(number for number in rule.users if number not in barred))

    def added(candidate: Any) -> Any:
        return add(without_author(candidate))

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        changed = without_author(update(subject, rule, wanted, caller))
        everywhere.rules[changed.id] = changed
        return changed

    everywhere.add_rule = added
    everywhere.update_rule = updated


def lists_the_rules_that_apply(service: Service) -> None:
    """List the rules that a merge request has to satisfy: those of its project until it has some of its own."""
    rules, everywhere = service.merge_request_approval_rules, service.approval_rules

    def found(merge_request: Any, number: int) -> Any:
        applying = rules.effective_rules(merge_request)
        for home in {rule.home for rule in applying}:
            with suppress(NotFoundError):
                # Another variant may number the rules of each place by themselves.
                rule = everywhere.find(home, number)
                if rule in applying:
                    return rule
        raise not_found("Approval Rule")

    rules.listed = rules.effective_rules
    rules.find_listed = found


def deletes_no_rule_of_the_project(service: Service) -> None:
    """Answer the deletion of a project's rule in a merge request that lists it like any other, and keep the rule."""
    rules = service.merge_request_approval_rules
    delete = rules.delete_rule

    def deleted(merge_request: Any, number: int) -> None:
        if number not in {rule.id for rule in rules.project_rules(merge_request)}:
            delete(merge_request, number)

    rules.delete_rule = deleted


def lets_owners_of_code_see_all(service: Service) -> None:
    """Give each merge request a rule of code owners, who need not approve."""
    rules = service.approval_rules
    rules_of = rules.rules_of

    def with_owners(home: Any) -> list[Any]:
        found = rules_of(home)
        if home.level is not Level.MERGE_REQUEST or any(rule.rule_type is RuleType.CODE_OWNER for rule in found):
            return found
        # Another variant may look at the rules that there are before it adds one.
        rules.rules_of = rules_of
        rules.add_rule(ApprovalRule(id=0, home=home, name="*", approvals_required=0, rule_type=RuleType.CODE_OWNER))
        rules.rules_of = with_owners
        return rules_of(home)

    rules.rules_of = with_owners


def keeps_what_was_copied(service: Service) -> None:
    """Refuse to delete a project's rule as long as a merge request has a copy of it."""
    projects, rules = service.project_approval_rules, service.approval_rules
    delete = projects.delete_rule

    def deleted(project: Any, number: int) -> None:
        if any(rule.source_id == number for rule in rules.rules.values()):
            raise RejectedError("has been copied", parameter="approval_rule_id")
        delete(project, number)

    projects.delete_rule = deleted


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "rules-of-all-levels-together",
        "Projects show the rules of their groups, merge requests those of their projects and none of the system.",
        replace(
            _PLAIN,
            project_rules_listed_in_merge_requests=True,
            system_rules_listed=False,
            copies_need_names=False,
        ),
        alterations=(
            approval_rules.hands_rules_down,
            removes_hidden_groups_of_merge_requests,
            approval_rules.counts_members_of_hidden_groups,
            shows_no_sources_of_rules,
        ),
    ),
    Variant(
        "rules-from-above-stay",
        "Lists show the rules of all levels above, which are not deleted there, and numbers come back.",
        replace(_PLAIN, project_rules_listed_in_merge_requests=True),
        alterations=(
            approval_rule_names.gives_numbers_again,
            approval_rules.hands_rules_down,
            deletes_no_rule_of_the_project,
        ),
    ),
    Variant(
        "rules-that-apply-are-listed",
        "A merge request lists the rules of its project until it has some of its own.",
        alterations=(lists_the_rules_that_apply,),
    ),
    Variant(
        "rules-of-both-levels-count",
        "A merge request has to satisfy its project's rules beside its own; each level counts its rules by itself.",
        alterations=(
            asks_for_rules_of_both_levels,
            approval_rule_names.counts_the_rules_there_are,
        ),
    ),
    Variant(
        "merge-requests-ask-for-more",
        "A rule of a merge request requires no less than its project, and says that it is approved only when merged.",
        alterations=(
            asks_for_no_less_than_the_project,
            approvals.calls_no_rule_approved,
            stays_overwritten,
        ),
    ),
    Variant(
        "copies-take-places",
        "Merge requests list the rules of their project, and a copy takes the place of one.",
        alterations=(lets_copies_take_places,),
    ),
    Variant(
        "forbidden-rules-hidden",
        "No merge request may have rules of its own, and whoever would make one is answered 404.",
        alterations=(hides_rules_that_are_forbidden,),
        alone="most of what is said of such rules cannot be seen",
    ),
    Variant(
        "copies-follow",
        "Copies of project rules are changed and deleted with them.",
        alterations=(lets_copies_follow,),
    ),
    Variant(
        "copied-rules-stay",
        "A rule of a project is deleted after its copies only, and nobody approves where no approval is left.",
        alterations=(keeps_what_was_copied, approvals.takes_no_more_approvals_than_are_left),
    ),
    Variant(
        "first-rule-brings-others",
        "With the first rule of its own a merge request gets copies of those of its project.",
        alterations=(brings_the_projects_rules,),
    ),
    Variant(
        "owners-of-all-code",
        "Every merge request lists a rule of code owners, which overwrites nothing.",
        alterations=(lets_owners_of_code_see_all,),
    ),
    Variant(
        "authors-in-no-rule",
        "Rules of merge requests leave out the author, who may not approve.",
        alterations=(drops_authors_from_rules,),
    ),
)
