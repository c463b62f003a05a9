"""What is written by the path of a project, or group, that lies in several groups is what its number shows.

A service may cut such a path when something is written, and still read by the whole of it. Lists of job tokens are in
test_job_token_scope_lists.py, integrations in test_conventions.py.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.approval_rules import (
    administrator_of,
    group_rules_path,
    has_own_rule,
    own_group,
    own_rule_put_back,
    project_rules_path,
)
from conformance.suite.arrange.approval_settings import AUTHOR, COMMITTER, OVERRIDES, of_group, of_project
from conformance.suite.arrange.job_token_scope import limit_kept, limit_of, scope_path
from conformance.suite.arrange.project_approval_configuration import COMMITTERS, REMOVAL, Configuration
from conformance.suite.arrange.reviews import (
    MANY,
    RESET_SECONDS,
    approvers_of,
    created,
    fresh_name,
    merge_request_path,
    must_become,
    must_not_be_approved_by,
    naming,
    rule_in,
    settled,
    state_of,
    under_review,
    user_id,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import NotTested, Unmet, Violation, current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Path,
    as_json,
    given,
    left_to_others,
    must_be_as_before,
    must_settle,
    named_otherwise,
    verifies,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.suite import Fixture
    from conformance.suite.arrange.approval_settings import Settings
    from conformance.suite.expectations import Answer, Caller


def inside(project: Fixture) -> Path | None:
    """Return the merge request of that project; None if the profile names none."""
    found = current_run().profile.first("nested_merge_request")
    is_its_own = found is not None and found.get("project_id") == project.id
    return merge_request_path(project, found) if found is not None and is_its_own else None


def rules_inside(project: Fixture) -> Path | None:
    path = inside(project)
    return None if path is None else path / "approval_rules"


@contextmanager
def as_by_the_number(shows_by_number: Callable[[], bool]) -> Iterator[None]:
    """Blame the path for what does not show only if the same by the number shows."""
    try:
        yield
    except Violation:
        given(shows_by_number(), "the same by the number does not show either")
        raise


@pytest.mark.parametrize(
    "rules_of",
    [
        pytest.param(project_rules_path, id="project", marks=pytest.mark.calls_area("project-approval-rules")),
        pytest.param(rules_inside, id="merge-request", marks=pytest.mark.calls_area("merge-request-approvals")),
    ],
)
def test_a_rule_written_by_a_long_path_shows_by_the_number(
    rules_of: Callable[[Fixture], Path | None],
    maintainer: Caller,
    subgroup_project: Fixture,
) -> None:
    left_to_others()  # where nothing of that project has rules that can be written
    rules = rules_of(subgroup_project)
    by_path = rules and named_otherwise(rules, subgroup_project, maintainer)
    if rules is None or by_path is None or by_path == rules:
        return
    with suppress(Unmet), rules_put_back(maintainer, rules):
        by_number = created(maintainer, rules)["id"]
        shows = settled(lambda: by_number in maintainer.list(rules).ids(), wanted=True)
        given(shows, "what is created by the number does not show either")
        least = MANY if "/merge_requests/" in rules else 2
        body = {"name": fresh_name(), "approvals_required": least, **naming(maintainer)}
        made = maintainer.post(by_path, body)
        if not made.is_served:
            return

        def is_created() -> bool:
            second = created(maintainer, rules)["id"]
            return bool(settled(lambda: {by_number, second} <= {*maintainer.list(rules).ids()}, wanted=True))

        with verifies("conventions.project-id.encoded-subgroup-path", go_on=True), as_by_the_number(is_created):
            for path in (rules, by_path):
                maintainer.list(path).must_contain_once(name=body["name"])
        number, changed = rule_in(made)["id"], {**body, "name": fresh_name(), "approvals_required": least + 1}
        answer = maintainer.put(by_path / number, changed)
        if answer.is_served:

            def is_changed() -> bool:
                maintainer.put(rules / number, changed)
                return bool(settled(lambda: bool(maintainer.list(rules).having(name=changed["name"])), wanted=True))

            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True), as_by_the_number(is_changed):
                maintainer.list(rules).must_contain_once(name=changed["name"], approvals_required=least + 1)
        listed, answer = maintainer.list(rules), maintainer.delete(by_path / number)
        if answer.is_served:

            def is_deleted() -> bool:
                maintainer.delete(rules / number)
                return bool(settled(lambda: bool(maintainer.list(rules).having(id=number)), wanted=False) is False)

            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True), as_by_the_number(is_deleted):
                maintainer.list(rules).must_not_contain(id=number, after=listed)


@pytest.mark.calls_area("merge-request-approvals")
def test_an_approval_by_a_long_path_shows_by_the_number(maintainer: Caller, subgroup_project: Fixture) -> None:
    """Who may approve there is open, and whether a bot of the group around it may reset: a refusal shows nothing."""
    left_to_others()
    path = inside(subgroup_project)
    if path is None or not is_known("approver"):
        return
    approver = caller_named("approver")
    by_path = named_otherwise(path, subgroup_project, maintainer, read_at="approvals")
    if by_path == path:
        return
    with suppress(Unmet, NotTested), under_review(maintainer, path, approver):
        number = user_id(approver)
        # What went to another merge request is refused the second time: the number shows that it need not be.
        is_owed = all(approver.post(path / act).is_served for act in ("approve", "unapprove"))
        approved = approver.post(by_path / "approve")
        if is_owed or approved.is_served:
            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
                approved.must_be_served()
                for shown in (path, by_path):
                    must_become(
                        partial(approvers_of, maintainer, shown),
                        lambda found: number in found,
                        f"user {number} in approved_by of {shown}",
                    )
                own = maintainer.list(path / "approval_rules").ids()
                with verifies("merge-request-approvals.rules.create.in-state"):
                    must_become(
                        partial(rules_in_state, maintainer, path),
                        lambda found: not {*own}.isdisjoint(found),
                        f"any of the rules {own} in the state",
                    )
                named = rules_in_state(maintainer, path)
                must_become(
                    partial(rules_in_state, maintainer, by_path), named.__eq__, f"the rules {named} by the path"
                )
        answer = approver.post(by_path / "unapprove")
        if answer.is_served:
            again = partial(is_withdrawn, maintainer, path, number, partial(approver.post, path / "unapprove"))
            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True), as_by_the_number(again):
                must_not_be_approved_by(maintainer, path, number)
        bots = [caller_named(name) for name in ("group_bot",) if is_known(name)]
        for bot in bots if approver.post(path / "approve").is_served else ():
            answer = bot.put(by_path / "reset_approvals")
            if answer.is_served:
                again = partial(is_withdrawn, maintainer, path, number, partial(bot.put, path / "reset_approvals"))
                with verifies("conventions.project-id.encoded-subgroup-path", go_on=True), as_by_the_number(again):
                    must_not_be_approved_by(maintainer, path, number, within=RESET_SECONDS)


def is_withdrawn(caller: Caller, merge_request: Path, user: int, act: Callable[[], Answer]) -> bool:
    """Act, and return whether the approval of a user goes."""
    act()
    left = partial(approvers_of, caller, merge_request)
    return bool(settled(lambda: user in left(), wanted=False, within=RESET_SECONDS) is False)


def rules_in_state(caller: Caller, merge_request: Path) -> list[Any]:
    """Return the numbers of the rules that an approval state shows."""
    return sorted(
        (rule.get("id") for rule in state_of(caller, merge_request)["rules"] if isinstance(rule, dict)), key=str
    )


@pytest.mark.calls_area("job-token-scope")
def test_a_limit_switched_by_a_long_path_shows_by_the_number(maintainer: Caller, subgroup_project: Fixture) -> None:
    left_to_others()  # where the limit of that project cannot be switched
    scope = scope_path(subgroup_project)
    by_path = named_otherwise(scope, subgroup_project, maintainer)
    if by_path == scope:
        return
    with suppress(Unmet), limit_kept(maintainer, subgroup_project) as before:
        for wanted in (not before, before):
            answer = maintainer.patch(by_path, {"enabled": wanted})
            if not answer.is_served:
                return
            again = partial(is_switched, maintainer, subgroup_project, on=wanted)
            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True), as_by_the_number(again):
                must_show_the_limit(maintainer, subgroup_project, on=wanted)


def is_switched(caller: Caller, project: Fixture, *, on: bool) -> bool:
    caller.patch(scope_path(project), {"enabled": on})
    return settled(partial(limit_of, caller, project), wanted=on) is on


def must_show_the_limit(caller: Caller, project: Fixture, *, on: bool) -> None:
    expected = f"inbound_enabled = {on} in {scope_path(project)}"
    must_settle(lambda: limit_of(caller, project) is on, expected, lambda: f"inbound_enabled = {as_json(not on)}")


@pytest.mark.calls_area("approval-settings")
def test_a_setting_written_by_a_long_path_shows_by_the_number(maintainer: Caller, subgroup_project: Fixture) -> None:
    left_to_others()  # where no setting of that project can be changed
    settings = of_project(maintainer, subgroup_project)
    named = settings.by_its_path()
    if named == settings:
        return
    with suppress(Unmet):
        for name, value, answer in changed_in_turns(settings, named):
            with verifies("conventions.project-id.encoded-subgroup-path", go_on=True):
                answer.must_be_served()
                settings.must_show(name, value=value)


def changed_in_turns(settings: Settings, named: Settings) -> Iterator[tuple[str, bool, Answer]]:
    """Change a free setting by the number, and then twice by another path; yield what each call there sets.

    Where the number is not served, or what is set by it does not show, nothing is changed by the path.
    """
    before = settings.values()
    try:
        for name in [name for name in (AUTHOR, COMMITTER, OVERRIDES) if settings.is_free(name)][:1]:
            settings.change(**{name: not before[name]}).given_served()
            given(settings.values()[name] is not before[name], "what is set by the number does not show either")
            for value in (before[name], not before[name]):
                yield name, value, named.change(**{name: value})
    finally:
        settings.restore(before)


@pytest.mark.calls_area("project-approval-configuration")
def test_a_configuration_changed_by_a_long_path_shows_by_the_number(
    maintainer: Caller, subgroup_project: Fixture
) -> None:
    left_to_others()  # where no configuration can be changed, which from 16.0 on is not owed
    own, version = Configuration(maintainer, subgroup_project), maintainer.target_version
    if version is not None and version >= REMOVAL:
        return
    by_path = named_otherwise(own.path, subgroup_project, maintainer)
    if by_path == own.path:
        return
    with suppress(Unmet):
        own.given_free(COMMITTERS)
        before = own.settings()
        try:
            for value in (not before[COMMITTERS], before[COMMITTERS]):
                answer = maintainer.post(by_path, {COMMITTERS: value})
                if not answer.is_served:
                    return
                again = partial(is_configured, own, value=value)
                with verifies("conventions.project-id.encoded-subgroup-path", go_on=True), as_by_the_number(again):
                    own.must_hold(**{COMMITTERS: value})
        finally:
            own.bring_to(before)


def is_configured(own: Configuration, *, value: bool) -> bool:
    own.change(**{COMMITTERS: value})
    return bool(settled(lambda: own.settings()[COMMITTERS], wanted=value) == value)


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.needs_feature("group_approval_rules")
@pytest.mark.calls_area("group-approval-rules")
def test_a_rule_of_a_group_written_by_a_long_path_shows_by_the_number(owner: Caller, subgroup: Fixture) -> None:
    """No operation deletes such a rule: where the run has made no group for it, one is made once and used again."""
    left_to_others()  # where that group has no rules, or none that can be written
    group = own_group(subgroup)
    rules = group_rules_path(group)
    with suppress(Unmet, NotTested):
        admin = administrator_of(owner, group)
        by_path = named_otherwise(rules, group, admin)
        if by_path == rules:
            return
        if group is not subgroup or not has_own_rule(admin, rules):
            body = {"name": fresh_name(), "approvals_required": 2, "rule_type": "regular", **naming(admin)}
            made = admin.post(by_path, body)
            if not made.is_served and admin.post(rules, body).is_served:
                with verifies("conventions.group-id.encoded-subgroup-path", go_on=True):
                    made.must_be_served()
            elif made.is_served:
                if not admin.list(rules).having(name=body["name"]):
                    created(admin, rules)  # what keeps no rule keeps none by the number either
                with verifies("conventions.group-id.encoded-subgroup-path", go_on=True):
                    admin.list(rules).must_contain_once(name=body["name"])
        with own_rule_put_back(admin, rules) as rule:
            changed = {"name": fresh_name(), **naming(admin)}
            answer = admin.put(by_path / rule["id"], changed)
            if answer.is_served or admin.put(rules / rule["id"], changed).is_served:

                def is_changed() -> bool:
                    return admin.put(rules / rule["id"], changed).is_served and bool(
                        settled(lambda: bool(admin.list(rules).having(name=changed["name"])), wanted=True)
                    )

                with verifies("conventions.group-id.encoded-subgroup-path", go_on=True), as_by_the_number(is_changed):
                    answer.must_be_served()
                    for path in (rules, by_path):
                        admin.list(path).must_contain_once(id=rule["id"], name=changed["name"])


@pytest.mark.calls_area("approval-settings")
def test_a_setting_of_a_group_written_by_a_long_path_shows_by_the_number(owner: Caller) -> None:
    """In a group whose projects no test uses, because a setting that was written may be locked for these.

    It is not a setting of the group around it, whatever that hands down.
    """
    left_to_others()  # unless the profile names such a group, and its settings can be changed
    group = current_run().profile.first("inner_export_group")
    settings = None if group is None else of_group(owner, group)
    if group is None or settings is None:
        return
    named = settings.by_its_path()
    if "/" not in str(group.get("path")) or named == settings:
        return
    outer = current_run().profile.first("export_group")
    around = None if outer is None else of_group(owner, outer)
    with suppress(Unmet):
        before = around.values() if around is not None else {}
        for name, value, answer in changed_in_turns(settings, named):
            with verifies("conventions.group-id.encoded-subgroup-path", go_on=True):
                answer.must_be_served()
                settings.must_show(name, value=value)
            if around is not None:
                with verifies("approval-settings.group.update.leaves-other-groups", go_on=True):
                    must_be_as_before("the settings of the group around it", before, around.values())
