"""Approval rules of a merge request: deleted, and called although they do not exist."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.approval_rules import created_last
from conformance.suite.arrange.reviews import (
    created,
    created_apart,
    essences,
    fresh_name,
    merge_request_path,
    must_become,
    must_leave_the_state,
    naming_only,
    state_of,
    user_id,
)
from conformance.suite.context import Unmet
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    named_otherwise,
    observe,
    unchanged,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture


def test_a_deleted_rule_is_gone_and_the_others_stay(
    merge_request_rules: Path, maintainer: Caller, approver: Caller
) -> None:
    """The oldest of three."""
    doomed, *_ = (created(maintainer, merge_request_rules, user_ids=[user_id(approver)]) for _ in range(3))
    listed = maintainer.list(merge_request_rules)
    others = {
        number: rule for number, rule in essences(maintainer, merge_request_rules).items() if number != doomed["id"]
    }
    control = maintainer.get(merge_request_rules / doomed["id"])
    answer = maintainer.delete(merge_request_rules / doomed["id"])
    with verifies("merge-request-approvals.rules.delete.answer"):
        answer.must_be_served()
    with verifies("merge-request-approvals.rules.delete.gone", go_on=True):
        maintainer.list(merge_request_rules).must_not_contain(id=doomed["id"], after=listed)
        maintainer.get(merge_request_rules / doomed["id"]).must_be_refused(beside=control)
        with suppress(Unmet):  # other tests report a state that cannot be read
            review = Path(merge_request_rules.rpartition("/")[0])
            must_leave_the_state(maintainer, review, (doomed["id"], doomed.get("name")))
    with verifies("merge-request-approvals.rules.delete.leaves-others"):
        now = essences(maintainer, merge_request_rules)
        now.pop(doomed["id"], None)
        must(now == others, f"the other rules as before: {as_json(others)}", as_json(now))
    created(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    afterwards = maintainer.list(merge_request_rules)
    with verifies("merge-request-approvals.rules.delete.gone", go_on=True):
        # A number may be used again: so a rule that comes back is recognised by its name as well.
        same = {"id": doomed["id"], "name": doomed.get("name")}
        afterwards.must_not_contain(**same, after=listed)
    with verifies("merge-request-approvals.rules.delete.leaves-others"):
        # Nor does a new rule get the number of another rule when there are fewer.
        given(bool(others), "the list shows no other rule")
        for number, rule in others.items():
            afterwards.must_contain_once(id=number, name=rule["name"])


def test_the_last_rule_can_be_deleted_like_any_other(
    merge_request_rules: Path, maintainer: Caller, approver: Caller
) -> None:
    """Nothing says that a merge request must keep one."""
    rule = created_last(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    listed = maintainer.list(merge_request_rules)
    with verifies("merge-request-approvals.rules.delete.answer"):
        maintainer.delete(merge_request_rules / rule["id"]).must_be_served()
    with verifies("merge-request-approvals.rules.delete.gone"):
        maintainer.list(merge_request_rules).must_not_contain(id=rule["id"], after=listed)


def test_what_the_state_says_after_the_last_rule_was_deleted(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    path = merge_request_path(project, merge_request)
    given(not state_of(maintainer, path).get("approval_rules_overwritten"), "the merge request has rules already")
    rule = created(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    maintainer.delete(merge_request_rules / rule["id"]).given_served()
    state = state_of(maintainer, path)
    observe(
        "merge-request-approvals.state.overwritten-after-last-rule",
        f"after the last rule was deleted, the state has {as_json(state.get('approval_rules_overwritten'))}",
    )


def test_a_rule_that_does_not_exist_is_neither_read_nor_updated(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    rule, change = created(maintainer, merge_request_rules, user_ids=[user_id(approver)]), {"approvals_required": 5}
    with verifies("merge-request-approvals.rules.read-one.unknown-rule", go_on=True):
        control = maintainer.get(merge_request_rules / rule["id"])
        maintainer.get(merge_request_rules / UNUSED_ID).must_be_refused(beside=control)
    control = maintainer.put(merge_request_rules / rule["id"], change)
    with (
        verifies("merge-request-approvals.rules.update.unknown-rule", go_on=True),
        unchanged(lambda: essences(maintainer, merge_request_rules), "the rules"),
    ):
        # Another number, because the rule has this one by now.
        other = {"approvals_required": change["approvals_required"] - 1}
        maintainer.put(merge_request_rules / UNUSED_ID, other).must_be_refused(beside=control)
    with (
        verifies("merge-request-approvals.rules.delete.absent"),
        unchanged(lambda: essences(maintainer, merge_request_rules), "the rules"),
    ):
        answer = maintainer.delete(merge_request_rules / UNUSED_ID).must_not_break()
    observe(
        "merge-request-approvals.rules.delete.absent-answer",
        f"deleting a rule that the merge request does not have answers {answer.status}",
    )
    # The number of a deleted rule must not be found afterwards.
    maintainer.delete(merge_request_rules / rule["id"]).given_served()
    with verifies("merge-request-approvals.rules.delete.absent", go_on=True):
        maintainer.delete(merge_request_rules / rule["id"]).must_not_break()
    with verifies("merge-request-approvals.rules.update.unknown-rule"):
        maintainer.list(merge_request_rules).given_without(id=rule["id"])
        with unchanged(lambda: essences(maintainer, merge_request_rules), "the rules"):
            maintainer.put(merge_request_rules / rule["id"], change).must_be_refused(beside=control)


def test_a_rule_works_under_its_own_merge_request_only(
    merge_request_rules: Path,
    other_merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    """Rules may be numbered per merge request: then the other one may have that number, for its own rule."""
    rule = created_apart(maintainer, merge_request_rules, other_merge_request_rules, user_ids=[user_id(approver)])
    controls = (
        maintainer.get(merge_request_rules / rule["id"]),
        maintainer.put(merge_request_rules / rule["id"], {"approvals_required": 5}),
    )
    with (
        verifies("merge-request-approvals.rules.belong-to-their-merge-request"),
        unchanged(lambda: essences(maintainer, merge_request_rules), "the rules"),
    ):
        read = maintainer.get(other_merge_request_rules / rule["id"])
        updated = maintainer.put(other_merge_request_rules / rule["id"], {"approvals_required": 4})
        maintainer.delete(other_merge_request_rules / rule["id"]).must_not_break()
        read.must_be_refused(beside=controls[0])
        updated.must_be_refused(beside=controls[1])


def test_a_rule_of_the_other_merge_request_is_changed_and_deleted_by_the_path(
    other_merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
) -> None:
    """What is written by the path may be written to the first merge request, or nowhere."""
    rules = other_merge_request_rules
    rule, _ = (created(maintainer, rules, user_ids=[user_id(approver)]) for _ in range(2))
    by_path, listed = named_otherwise(rules, project, maintainer), maintainer.list(rules)
    with verifies("merge-request-approvals.rules.update.name", go_on=True):
        for name in (fresh_name(), fresh_name()):
            maintainer.put(by_path / rule["id"], {**naming_only(approver), "name": name}).given_served()
            must_become(
                lambda: essences(maintainer, rules).get(rule["id"], {}).get("name"), name.__eq__, f"name = {name}"
            )
    with verifies("merge-request-approvals.rules.delete.gone"):
        maintainer.delete(by_path / rule["id"]).given_served()
        maintainer.list(rules).must_not_contain(id=rule["id"], after=listed)


def test_a_rule_works_under_no_merge_request_of_another_project(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    fuzz_project: Fixture,
    fuzz_merge_request: Fixture,
) -> None:
    """Not even if that has the same number, as merge requests are counted in each project."""
    foreign = merge_request_path(fuzz_project, fuzz_merge_request) / "approval_rules"
    rule = created(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    if maintainer.list(foreign).having(id=rule["id"]):  # so may rules be, in each merge request
        left_to_others()
        return
    own, changes = merge_request_rules / rule["id"], ({**naming_only(approver), "name": fresh_name()} for _ in range(2))
    controls = maintainer.get(own), maintainer.put(own, next(changes))
    with verifies("merge-request-approvals.rules.belong-to-their-merge-request"):
        with unchanged(lambda: essences(maintainer, merge_request_rules), "the rules"):
            read = maintainer.get(foreign / rule["id"])
            updated = maintainer.put(foreign / rule["id"], next(changes))
            maintainer.delete(foreign / rule["id"]).must_not_break()
        for answer, control in zip((read, updated), controls, strict=True):
            answer.must_be_refused(beside=control)
