"""Project approval configuration: read at every version, changed before 16.0, and its setting for authors."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite import Reason
from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.approval_rules import a_rule_that_names_approvers
from conformance.suite.arrange.approval_settings import AUTHOR as AUTHOR_SETTING
from conformance.suite.arrange.approval_settings import COMMITTER as COMMITTER_SETTING
from conformance.suite.arrange.approval_settings import (
    an_unlocked_project_if_read,
    each_alone,
    of_project,
    side_by_side,
)
from conformance.suite.arrange.project_approval_configuration import (
    AUTHOR,
    COMMITTERS,
    GONE,
    NO_LONGER_READ,
    NUMBER,
    OVERRIDING,
    REMOVAL,
    RESET,
    SELECTIVE,
    SETTINGS,
    Configuration,
    settings_in,
)
from conformance.suite.arrange.reviews import (
    approvers_in,
    approvers_of,
    created,
    merge_request_path,
    must_be_approved_by,
    status_of,
    under_review,
    user_id,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    as_json,
    does_not_apply,
    given,
    left_to_others,
    must,
    must_be_as_before,
    named_otherwise,
    observe,
    project_path,
    unchanged,
    verifies,
)
from conformance.suite.load import ROUNDS, at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture

PASSWORD = "require_password_to_approve"  # noqa: S105 - the name of a setting

Record = dict[str, Any]


@pytest.fixture
def configuration(maintainer: Caller, project: Fixture) -> Iterator[Configuration]:
    """The configuration of a project that must be changeable; restored after a story."""
    found = Configuration(maintainer, an_unlocked_project_if_read(maintainer, project))
    before = found.settings()
    if maintainer.target_version is None:
        # An update to the current values changes nothing, locked or not.
        taken = found.change(**{COMMITTERS: before[COMMITTERS]}).is_served
        given(taken, "the version is not known, and the target takes no change, as from 16.0 on")
    # Read by the path, which names the same project as the number, by which it is changed.
    yield replace(found, read_at=named_otherwise(found.path, found.project, maintainer))
    found.bring_to(before)


def may_be_removed(caller: Caller) -> bool:
    """From 16.0 on, an operation on the configuration may be removed; an unknown version may be such a one."""
    return caller.target_version is None or caller.target_version >= REMOVAL


# -- reading -----------------------------------------------------------------------------------------------------------


def test_the_configuration_can_be_read_unless_it_was_removed(maintainer: Caller, project: Fixture) -> None:
    """The text does not say whether the removal in 16.0 includes reading.

    So from then on a refusal shows nothing, unless the profile says that the service has removed reading.
    """
    answer = maintainer.get(Configuration(maintainer, project).path)
    if not answer.is_served:
        maintainer.get(project_path(project) / "approval_rules").given_served()
    if may_be_removed(maintainer):
        observe(
            "project-approval-configuration.read-since-removal",
            f"reading the configuration from 16.0 on answers {answer.status}",
        )
    given(maintainer.target_declares("approval_configuration"), "the profile says that the configuration is not read")
    with verifies("project-approval-configuration.read"):
        gone = may_be_removed(maintainer) and answer.status in GONE
        given(not gone, NO_LONGER_READ)
        answer.must_be(200).must_be_an(dict)


@pytest.mark.requirements("project-approval-configuration.record.settings")
def test_the_configuration_says_how_the_project_treats_approvals(maintainer: Caller, project: Fixture) -> None:
    """The six settings are validated when the answer arrives; the rest is deprecated and may be absent."""
    path = Configuration(maintainer, project).path
    with a_rule_that_names_approvers(maintainer, project):
        body = [maintainer.get(path).given_json() for _ in range(2)][-1]
    given(isinstance(body, dict) and any(name in body for name in SETTINGS), "what is read is no configuration")
    users, groups = body.get("approvers", []), body.get("approver_groups", [])
    with verifies("project-approval-configuration.record.approvers", go_on=True):
        must(users == [], "an empty list of approvers, or none", repr(users))
    with verifies("project-approval-configuration.record.approver-groups", go_on=True):
        must(groups == [], "an empty list of approver_groups, or none", repr(groups))
    with verifies("project-approval-configuration.record.approvals-before-merge"):
        must(is_a_number(body.get(NUMBER, 0)), f"{NUMBER} as an integer, or none", repr(body.get(NUMBER)))


def is_a_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def test_whether_somebody_without_a_role_may_read(maintainer: Caller, outsider: Caller, project: Fixture) -> None:
    path = Configuration(maintainer, project).path
    maintainer.get(path).given_served()
    observe(
        "project-approval-configuration.authorization.outsider-reading",
        f"reading without a role in a private project answers {outsider.get(path).status}",
    )


# -- changing, before 16.0 ---------------------------------------------------------------------------------------------


def moves(free: list[str], *, resets: bool) -> Iterator[tuple[str, bool]]:
    """Yield changes from all off: each is switched beside others that are off, and then beside others that are on.

    Resetting is never on beside others: selective removals may exclude it.
    """
    others = [name for name in free if name != RESET and not (name == SELECTIVE and resets)]
    yield from ((RESET, value) for value in (True, False) if RESET in free)
    yield from ((name, value) for name in others for value in (True, False))
    yield from ((name, True) for name in others)
    yield from ((name, value) for name in others for value in (False, True))


@pytest.mark.requirements(
    "project-approval-configuration.change.result-settings",
    "project-approval-configuration.change.result-without-approvers",
    "project-approval-configuration.change.result-without-approver-groups",
    "project-approval-configuration.change.result-approvals-before-merge",
)
def test_each_setting_changes_alone_and_stays_changed(configuration: Configuration) -> None:
    """A change must not switch any other setting on or off."""
    free = sorted({*SETTINGS} - configuration.locked(), key=SETTINGS.index)
    given(bool(free), "every setting is locked by a group")
    configuration.bring_to(dict.fromkeys(free, False))
    expected = configuration.settings()
    given(not any(expected[name] for name in free), "the settings cannot all be switched off beforehand")
    for name, value in moves(free, resets=expected[RESET]):
        answer = configuration.change(**{name: value})
        if (name, value) == (SELECTIVE, True) and answer.exchange.is_refusal and configuration.keeps_approvals():
            continue  # the sentence about approval settings excludes it
        expected[name] = value
        with verifies("project-approval-configuration.change.needs-no-parameter", go_on=True):
            answer.must_be_served()
        with verifies("project-approval-configuration.change.answer"):
            answer.must_be(200, 201).must_be_an(dict)
        with verifies("project-approval-configuration.change.shown", go_on=True):
            answer.must_hold(**{name: value})
        with verifies("project-approval-configuration.change.stored", go_on=True):
            configuration.must_hold(**{name: value})
        with verifies("project-approval-configuration.change.leaves-unsent", go_on=True):
            others = {other: shown for other, shown in expected.items() if other != name}
            answer.must_hold(**others)
            configuration.must_hold(**others)
            configuration.change(**{name: value})  # the value that it has already, which the next one finds


def test_a_change_leaves_the_project_beside_it(configuration: Configuration) -> None:
    """Things in other groups are checked beside every write."""
    caller = configuration.caller
    for first, second in side_by_side(caller):
        one, other = Configuration(caller, first), Configuration(caller, second)
        name = next((name for name in (COMMITTERS, AUTHOR, OVERRIDING) if name not in one.locked()), COMMITTERS)
        before, number = one.settings(), caller.read(one.path).get(NUMBER)

        def there(other: Configuration = other) -> tuple[dict[str, bool], Any]:
            return other.settings(), caller.read(other.path).get(NUMBER)

        try:
            with (
                verifies("project-approval-configuration.change.leaves-other-projects"),
                unchanged(there, "the configuration of the other project"),
            ):
                one.change(**{name: not before[name]}).given_served()
                one.change(**{NUMBER: 2 if number != 2 else 1})  # nobody needs to accept the deprecated number
        finally:
            one.bring_to(before)
            if number is not None:
                one.change(**{NUMBER: number})
        return
    left_to_others()


def test_several_settings_change_together(configuration: Configuration) -> None:
    """One setting is on and the others off, in turns: a setting with the value of another one shows in one of these."""
    names = [name for name in (COMMITTERS, AUTHOR, OVERRIDING) if name not in configuration.locked()]
    given(len(names) > 1, "there are no two settings that could be changed")
    with verifies("project-approval-configuration.change.several"):
        for wanted in each_alone(names):
            configuration.change(**wanted).given_served()
            configuration.must_hold(**wanted)
        shown, locked = configuration.state(), configuration.locked()
        beside = (PASSWORD,) if shown[SELECTIVE] else (PASSWORD, RESET)  # what excludes nothing that is on
        wanted = {name: not shown[name] for name in (*names, *beside) if name not in locked}
        if configuration.change(**wanted, **({} if shown[NUMBER] is None else {NUMBER: shown[NUMBER]})).is_served:
            configuration.must_hold(**wanted)
        for value in (True, False) * ROUNDS:
            wanted = dict.fromkeys(names[:2], value)
            for answer in at_once(*(partial(configuration.change, **{name: value}) for name in names[:2])):
                answer.given_served()
            configuration.must_hold(**wanted)


@pytest.mark.calls_area("project-approval-rules")
def test_the_deprecated_number_is_taken_alone(configuration: Configuration, maintainer: Caller) -> None:
    before = maintainer.read(configuration.path).get(NUMBER)
    wanted = 2 if before != 2 else 1
    path = project_path(configuration.project) / "approval_rules"
    with rules_put_back(maintainer, path):
        rule = created(maintainer, path, approvals_required=3 - wanted)
        with verifies("project-approval-configuration.change.needs-no-parameter"):
            answer = configuration.change(**{NUMBER: wanted}).must_be_served()
        # It may be the number of the rule for any approver, and of no rule that names somebody.
        with verifies("project-approval-configuration.change.leaves-unsent", go_on=True):
            maintainer.get(path / rule["id"]).must_hold(approvals_required=3 - wanted)
    stored = maintainer.read(configuration.path).get(NUMBER) == wanted
    observe(
        "project-approval-configuration.change.approvals-before-merge-stored",
        f"{NUMBER} {'is' if stored else 'is not'} found on the next reading",
    )
    with verifies("project-approval-configuration.change.answer"):
        answer.must_be(200, 201).must_be_an(dict)
    if before is not None:
        configuration.change(**{NUMBER: before})


def test_a_change_without_any_parameter_changes_nothing(configuration: Configuration) -> None:
    """Starting from other values and from those that were found: a reset to defaults shows in one of the two."""
    found, locked = configuration.state(), configuration.locked()
    free = {name: found[name] for name in (COMMITTERS, AUTHOR, OVERRIDING) if name not in locked}
    if found[NUMBER] is None:  # it is deprecated, so it may be absent
        left_to_others("project-approval-configuration.change.leaves-unsent")
    try:
        for number, values in enumerate(({name: not value for name, value in free.items()}, free), start=1):
            configuration.bring_to(values)
            if found[NUMBER] is not None:  # otherwise nobody could restore it; and nobody needs to accept it
                configuration.change(**{NUMBER: number})
                with verifies("project-approval-configuration.change.leaves-unsent", go_on=True):
                    configuration.must_hold(**values)
            with (
                verifies("project-approval-configuration.change.empty"),
                unchanged(configuration.state, "the configuration"),
            ):
                answer = configuration.change().must_not_break()
    finally:
        if found[NUMBER] is not None:
            configuration.change(**{NUMBER: found[NUMBER]})
    observe(
        "project-approval-configuration.change.empty-answer",
        f"a change without any parameter answers {answer.status}",
    )


def test_removals_are_selective_only_while_pushes_do_not_reset(configuration: Configuration) -> None:
    configuration.given_free(SELECTIVE, RESET)
    configuration.bring_to({SELECTIVE: False, RESET: True})
    given(configuration.settings()[RESET], f"{RESET} cannot be switched on")
    with verifies("project-approval-configuration.change.selective-while-resetting", go_on=True):
        must_not_store_both(configuration, **{SELECTIVE: True})
        configuration.bring_to({SELECTIVE: False, RESET: False})
        before = configuration.settings()[COMMITTERS]
        answer = must_not_store_both(configuration, **{SELECTIVE: True, RESET: True, COMMITTERS: not before})
        # A refused call is refused completely.
        stays = answer.is_served or configuration.settings()[COMMITTERS] is before
        must(stays, f"{COMMITTERS} = {as_json(before)}", "another value after a refusal", answer.exchange)
    configuration.bring_to({SELECTIVE: False, RESET: False})
    given(not configuration.settings()[RESET], f"{RESET} cannot be switched off")
    with verifies("project-approval-configuration.change.selective-without-resetting", go_on=True):
        switched_on = configuration.change(**{SELECTIVE: True})
        excluded = switched_on.exchange.is_refusal and configuration.keeps_approvals()
        given(not excluded, "the approval settings keep approvals on push, which excludes selective removals there")
        switched_on.must_be_served()
        configuration.must_hold(**{SELECTIVE: True})
    with verifies("project-approval-configuration.change.selective-while-resetting"):
        must_not_store_both(configuration, **{RESET: True})


def must_not_store_both(configuration: Configuration, **change: bool) -> Answer:
    answer, found = configuration.change(**change).must_not_break(), configuration.settings()
    must(not (found[RESET] and found[SELECTIVE]), f"{RESET} and {SELECTIVE} not both true", as_json(found))
    return answer


def test_a_setting_that_is_no_truth_value_is_refused(configuration: Configuration) -> None:
    """Beside a change of the same setting to its current value, which is served."""
    locked = configuration.locked()
    wrong: list[Record] = [{name: "maybe"} for name in SETTINGS if name not in locked]
    wrong += [{name: {"conformance": True}} for name in (RESET, AUTHOR) if name not in locked]
    given(bool(wrong), "every setting is locked by a group")
    with verifies("project-approval-configuration.change.settings-are-boolean"):
        for change in wrong:
            must_be_refused_and_change_nothing(configuration, change)


def test_a_deprecated_number_that_is_none_is_refused(configuration: Configuration) -> None:
    with verifies("project-approval-configuration.change.approvals-before-merge-is-integer"):
        must_be_refused_and_change_nothing(configuration, {NUMBER: "abc"})


def must_be_refused_and_change_nothing(configuration: Configuration, wrong: Record) -> None:
    """Send one wrong value, and beside it a change of the same parameter to its current value."""
    before = configuration.state()
    control = configuration.change(**{name: 0 if before[name] is None else before[name] for name in wrong})
    with unchanged(configuration.state, "the configuration"):
        configuration.change(**wrong).must_be_refused(beside=control)


def test_a_change_of_one_project_leaves_the_others(
    configuration: Configuration, maintainer: Caller, sibling_project: Fixture
) -> None:
    sibling, before = Configuration(maintainer, sibling_project), configuration.settings()
    with (
        verifies("project-approval-configuration.change.leaves-other-projects"),
        unchanged(sibling.state, "the configuration of the sibling project"),
    ):
        locked = configuration.locked()
        free = [name for name in (COMMITTERS, AUTHOR, OVERRIDING) if name not in locked]
        given(bool(free), "every setting is locked by a group")
        for name in free:
            configuration.change(**{name: not before[name]}).given_served()


# -- since 16.0 --------------------------------------------------------------------------------------------------------


@pytest.fixture
def found(maintainer: Caller, project: Fixture) -> Iterator[Configuration]:
    """The configuration when its change may be removed; restored if it is not."""
    configuration = Configuration(maintainer, project)
    before = configuration.settings() if maintainer.get(configuration.path).is_served else None
    yield configuration
    if before is not None and configuration.settings() != before:
        configuration.bring_to(before)


def test_a_change_is_gone_from_16_0_on_or_still_does_what_it_did(
    found: Configuration, maintainer: Caller, project: Fixture
) -> None:
    reading = maintainer.get(found.path)
    before = found.settings() if reading.is_served else {}
    # If reading is removed too, another operation shows that this caller is not refused everywhere.
    control = reading if reading.is_served else maintainer.get(project_path(project) / "approval_rules")
    locked = found.locked()
    name = next((name for name in (COMMITTERS, AUTHOR, OVERRIDING) if name not in locked), COMMITTERS)
    wanted = not before.get(name, False)
    answer = found.change(**{name: wanted})
    with verifies("project-approval-configuration.change.removed"):
        if answer.is_served:
            given(name not in locked, "every setting that could be changed is locked by a group")
            answer.must_be(200, 201).must_hold(**{**before, name: wanted})
            must(not {"approvers", "approver_groups"} & answer.json.keys(), "no approvers in the answer", "some")
            found.must_hold(**{name: wanted})
        else:
            answer.must_be_refused(beside=control)
            if before:
                now = found.settings()
                must_be_as_before("the configuration", before, now)
                shown = reading.json
                number = {NUMBER: shown[NUMBER] + 1} if is_a_number(shown.get(NUMBER)) else {}
                others = {flag: not value for flag, value in before.items()}
                again = maintainer.post(named_otherwise(found.path, project, maintainer), {**others, **number})
                if again.is_served:  # by the path of the project; then it has the answer that it always had
                    again.must_be(200, 201).must_be_an(dict)
                else:
                    again.must_not_break()
                    kept = {
                        name: value for name, value in maintainer.read(found.path).items() if name in {*before, *number}
                    }
                    stays = {name: shown.get(name) for name in kept}
                    must_be_as_before("the configuration", stays, kept)
    observe(
        "project-approval-configuration.change.still-served",
        f"a change of the configuration from 16.0 on answers {answer.status}",
    )


def test_a_project_that_does_not_exist_has_no_configuration(maintainer: Caller, project: Fixture) -> None:
    here, nowhere = Configuration(maintainer, project).path, Path(f"/projects/{UNUSED_ID}") / "approvals"
    read = maintainer.get(here)
    given(read.is_served, "the configuration cannot be read")
    same = {COMMITTERS: settings_in(read.json)[COMMITTERS]}
    with verifies("project-approval-configuration.unknown-project"):
        maintainer.get(nowhere).must_be_refused(beside=read)
        changed = maintainer.post(here, same)
        # If changes are removed completely, the refusal of this one shows nothing else.
        maintainer.post(nowhere, same).must_be_refused(beside=changed if changed.is_served else read)


# -- authors -----------------------------------------------------------------------------------------------------------

WHILE_ALLOWED = "project-approval-configuration.author-approval.allowed"
WHILE_FORBIDDEN = "project-approval-configuration.author-approval.forbidden"


@contextmanager
def author_approval(maintainer: Caller, project: Fixture, *, allowed: bool) -> Iterator[None]:
    """Permit or forbid approval by authors; committers may always approve.

    The configuration and the approval settings both contain this, and no sentence links them: go on only if both agree.
    If the configuration differs and cannot be changed any more, the requirement does not apply.
    """
    configuration, settings = Configuration(maintainer, project), of_project(maintainer, project)
    before, settings_before = configuration.settings(), settings.values()
    try:
        configuration.bring_to({AUTHOR: allowed, COMMITTERS: False})
        settings.restore({AUTHOR_SETTING: allowed, COMMITTER_SETTING: True})
        now, settings_now = configuration.settings(), settings.values()
        is_fixed = now[AUTHOR] is not allowed and may_be_removed(maintainer)
        if is_fixed and not configuration.change(**{AUTHOR: allowed}).is_served:
            detail = f"the configuration shows {AUTHOR} = {as_json(now[AUTHOR])} and is fixed, as from 16.0 on"
            does_not_apply(WHILE_ALLOWED if allowed else WHILE_FORBIDDEN, Reason.VERSION, detail)
        agreed = now[AUTHOR] is allowed and settings_now[AUTHOR_SETTING] is allowed
        given(agreed, f"configuration and settings cannot both be brought to author approval = {as_json(allowed)}")
        given(
            not now[COMMITTERS] and settings_now[COMMITTER_SETTING], "committers may not approve, and authors are some"
        )
        yield
    finally:
        configuration.bring_to(before)
        settings.restore(settings_before)


@pytest.mark.calls_area("approval-settings", "merge-request-approvals")
def test_authors_approve_their_own_merge_request_where_allowed(
    maintainer: Caller,
    author: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    path = merge_request_path(project, merge_request)
    with author_approval(maintainer, project, allowed=True), under_review(maintainer, path, author):
        others = approvers_of(maintainer, path)
        with verifies("project-approval-configuration.author-approval.allowed"):
            author.post(path / "approve").must_be_served()
            must_be_approved_by(maintainer, path, *others, user_id(author))


@pytest.mark.calls_area("approval-settings", "merge-request-approvals")
def test_authors_do_not_approve_their_own_merge_request_where_forbidden(
    maintainer: Caller,
    author: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """Approving one's own work makes approval pointless."""
    path = merge_request_path(project, merge_request)
    with author_approval(maintainer, project, allowed=False), under_review(maintainer, path, author, approver):
        others = approvers_of(maintainer, path)
        answer = author.post(path / "approve")
        after = approvers_in(status_of(maintainer, path))
        control = approver.post(path / "approve")
        with verifies("project-approval-configuration.author-approval.forbidden"):
            answer.must_be_refused(beside=control)
            must_be_as_before("approved_by", others, after)
        left_to_others("project-approval-configuration.record.approvers")
        shown = maintainer.get(Configuration(maintainer, project).path)
        if control.is_served and shown.is_served and isinstance(shown.json, dict):
            with verifies("project-approval-configuration.record.approvers"):
                named = shown.json.get("approvers", [])
                must(named == [], "no approvers, whoever has approved", repr(named), shown.exchange)
