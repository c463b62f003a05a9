"""Approval settings: values that are stored where they were set, and locks of the surrounding group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import cycle, pairwise
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.approval_rules import given_owed
from conformance.suite.arrange.approval_settings import (
    AUTHOR,
    COMMITTER,
    OVERRIDES,
    PASSWORD,
    REAUTHENTICATION,
    RETAIN,
    SELECTIVE,
    Settings,
    at_both_places,
    each_alone,
)
from conformance.suite.expectations import (
    Path,
    as_json,
    given,
    left_to_others,
    must,
    must_be_as_before,
    observe,
    unchanged,
    verifies,
)
from conformance.suite.load import ROUNDS, at_once, in_turns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.suite.expectations import Answer

#: Settings that may change with another one: how they are linked is open.
MOVES_WITH = {REAUTHENTICATION: (PASSWORD,), RETAIN: (SELECTIVE,)}


@dataclass(frozen=True)
class Case:
    """One setting of a group or a project, and the requirements about it."""

    place: str
    name: str
    stored: str
    """Requirement that reading shows an accepted value."""
    is_boolean: str
    """Requirement that a value which is no truth value is refused."""


SINGLE = [
    Case(
        "group",
        AUTHOR,
        "approval-settings.group.update.allow-author-approval",
        "approval-settings.group.update.allow-author-approval.is-boolean",
    ),
    Case(
        "group",
        COMMITTER,
        "approval-settings.group.update.allow-committer-approval",
        "approval-settings.group.update.allow-committer-approval.is-boolean",
    ),
    Case(
        "group",
        OVERRIDES,
        "approval-settings.group.update.allow-overrides-to-approver-list",
        "approval-settings.group.update.allow-overrides-to-approver-list.is-boolean",
    ),
    Case(
        "group",
        RETAIN,
        "approval-settings.group.update.retain-approvals-on-push",
        "approval-settings.group.update.retain-approvals-on-push.is-boolean",
    ),
    Case(
        "group",
        REAUTHENTICATION,
        "approval-settings.group.update.require-reauthentication-to-approve",
        "approval-settings.group.update.require-reauthentication-to-approve.is-boolean",
    ),
    Case(
        "project",
        AUTHOR,
        "approval-settings.project.update.allow-author-approval",
        "approval-settings.project.update.allow-author-approval.is-boolean",
    ),
    Case(
        "project",
        COMMITTER,
        "approval-settings.project.update.allow-committer-approval",
        "approval-settings.project.update.allow-committer-approval.is-boolean",
    ),
    Case(
        "project",
        OVERRIDES,
        "approval-settings.project.update.allow-overrides-to-approver-list",
        "approval-settings.project.update.allow-overrides-to-approver-list.is-boolean",
    ),
    Case(
        "project",
        RETAIN,
        "approval-settings.project.update.retain-approvals-on-push",
        "approval-settings.project.update.retain-approvals-on-push.is-boolean",
    ),
    Case(
        "project",
        REAUTHENTICATION,
        "approval-settings.project.update.require-reauthentication-to-approve",
        "approval-settings.project.update.require-reauthentication-to-approve.is-boolean",
    ),
]
#: Selective removals are a special case: whether they may be switched on is up to the service.
SELECTIVE_REMOVALS = [
    Case(
        "group",
        SELECTIVE,
        "approval-settings.group.update.selective-code-owner-removals",
        "approval-settings.group.update.selective-code-owner-removals.is-boolean",
    ),
    Case(
        "project",
        SELECTIVE,
        "approval-settings.project.update.selective-code-owner-removals",
        "approval-settings.project.update.selective-code-owner-removals.is-boolean",
    ),
]


@pytest.fixture
def settings_of_case(case: Case, request: pytest.FixtureRequest) -> Settings:
    """The settings of the place that a case is about."""
    found: Settings = request.getfixturevalue(f"{case.place}_settings")
    return found


def given_free(settings: Settings, *names: str) -> None:
    shown = settings.values()
    for name in names:
        given_owed(settings.caller, name in shown, f"{name}, which is not shown")
    locked = set(names) - set(settings.free())
    given(not locked, f"{', '.join(sorted(locked))} cannot be changed in {settings.path}: it is locked or not shown")


def without_kept_approvals(settings: Settings) -> None:
    """Let a push keep no approvals; inconclusive when it keeps them and that is locked."""
    if settings.values()[RETAIN]:
        given_free(settings, RETAIN)
        settings.change(**{RETAIN: False}).given_served()


# -- values ------------------------------------------------------------------------------------------------------------


@at_both_places(
    "stored, answer",
    group=(
        "approval-settings.group.update.selective-code-owner-removals",
        "approval-settings.group.update.selective-code-owner-removals.answer",
    ),
    project=(
        "approval-settings.project.update.selective-code-owner-removals",
        "approval-settings.project.update.selective-code-owner-removals.answer",
    ),
)
def test_selective_removals_hold_where_no_approvals_are_kept(
    place: str, stored: str, answer: str, settings: Settings
) -> None:
    """Whether they may be switched on at all is up to the service; a value that it accepts must be stored."""
    given_free(settings, SELECTIVE)
    settings.change(**{SELECTIVE: False}).given_served()
    without_kept_approvals(settings)
    switched_on = settings.change(**{SELECTIVE: True})
    did = "serves" if switched_on.is_served else "refuses"
    observe(answer, f"keeping no approvals, a {place} {did} {SELECTIVE} = true with {switched_on.status}")
    with verifies(stored):
        switched_on.given_served()
        settings.must_show(SELECTIVE, value=True)
        settings.change(**{SELECTIVE: False}).given_served()
        settings.must_show(SELECTIVE, value=False)


@pytest.mark.calls_area("approval-settings")
@at_both_places(
    "beside",
    group="approval-settings.group.update.selective-code-owner-removals.beside-retain",
    project="approval-settings.project.update.selective-code-owner-removals.beside-retain",
)
def test_selective_removals_beside_kept_approvals_are_noted(beside: str, settings: Settings) -> None:
    """The text excludes the pair and does not say how: refused, dropped, or stored without effect."""
    left_to_others("errors.refusal.changes-nothing")  # unless one of the settings is locked
    given_free(settings, RETAIN, SELECTIVE)
    before = settings.values()[COMMITTER]
    settings.without_selective_removals()
    settings.change(**{RETAIN: True}).given_served()
    answer = settings.change(**{SELECTIVE: True, COMMITTER: not before})
    after = settings.values()
    with verifies("errors.refusal.changes-nothing"):  # and not even a part of it
        must(
            answer.is_served or after[COMMITTER] is before,
            f"{COMMITTER} = {as_json(before)}",
            "refused, and another value",
        )
    observe(
        beside,
        f"beside {RETAIN} = true, {SELECTIVE} = true is answered {answer.status}; after that "
        f"{RETAIN} is {as_json(after[RETAIN])} and {SELECTIVE} is {as_json(after[SELECTIVE])}",
    )


def test_the_answer_to_an_update_of_a_group_shows_what_was_sent(group_settings: Settings) -> None:
    """Whether selective removals can be switched on is up to the service: they are shown as they are read."""
    others = group_settings.read_by_others()
    with verifies("approval-settings.group.update.answer-shows-values"):
        for name, value in group_settings.moves():
            answer = group_settings.change(**{name: value})
            is_up_to_service = (name, value) == (SELECTIVE, True)
            if is_up_to_service and answer.exchange.is_refusal:
                continue
            body, stored = answer.given_served().json, group_settings.values()
            entry = body.get(name) if isinstance(body, dict) else None
            shown = entry.get("value") if isinstance(entry, dict) else entry
            wanted = stored[name] if is_up_to_service else value
            must(
                shown is wanted,
                f"{name} with the value {as_json(wanted)}",
                f"the value {as_json(shown)}",
                answer.exchange,
            )
            with verifies("approval-settings.group.update.leaves-unsent", go_on=True):
                must_show_the_rest(answer, stored, but=(name, *MOVES_WITH.get(name, ())))
            while others:  # a second read by a caller who has read before
                others.pop().must_show(name, value=wanted)


def must_show_the_rest(answer: Answer, stored: dict[str, bool], *, but: tuple[str, ...]) -> None:
    """Expect that an answer shows the stored value of each setting, except some."""
    wanted = {name: value for name, value in stored.items() if name not in but}
    entries = {name: answer.json.get(name) for name in wanted}
    shown = {name: entry.get("value") if isinstance(entry, dict) else entry for name, entry in entries.items()}
    must(shown == wanted, f"the other settings with {as_json(wanted)}", as_json(shown), answer.exchange)


@at_both_places(
    "empty, answer",
    group=("approval-settings.group.update.empty", "approval-settings.group.update.empty-answer"),
    project=("approval-settings.project.update.empty", "approval-settings.project.update.empty-answer"),
)
def test_an_update_without_any_setting_changes_none(empty: str, answer: str, settings: Settings) -> None:
    """Starting from the values that were found and from others: a reset to defaults shows in one of the two."""
    found = settings.values()
    moved = {name: not found[name] for name in settings.free() if name in (AUTHOR, COMMITTER, OVERRIDES)}
    with verifies(empty):
        for values in (moved, {name: found[name] for name in moved}):
            if values:
                settings.change(**values).given_served()
            with unchanged(settings.values, "every setting"):
                served = settings.change().must_not_break()
    observe(answer, f"an update without any setting answers {served.status}")


@at_both_places(
    "optional, leaves_unsent",
    group=("approval-settings.group.update.each-is-optional", "approval-settings.group.update.leaves-unsent"),
    project=("approval-settings.project.update.each-is-optional", "approval-settings.project.update.leaves-unsent"),
)
def test_each_setting_can_be_sent_alone_and_leaves_the_others(
    optional: str, leaves_unsent: str, settings: Settings
) -> None:
    """The others have the values that were found, then the opposite ones: a dependent or reset value shows in one."""
    single = [name for name in settings.free() if name not in (RETAIN, SELECTIVE)]
    moves, shown = settings.moves(), [settings.values()]
    with verifies(optional, go_on=True):
        for name, value in moves:
            if (name, value) == (SELECTIVE, True):  # whether they can be switched on is up to the service
                settings.move(name, value=value)
            else:
                settings.change(**{name: value}).must_be_served()
            shown.append(settings.values())
    with verifies(leaves_unsent):
        for (name, value), (before, after) in zip(moves, pairwise(shown), strict=False):
            must_keep_the_others(name, before, after, value=value)
        given(len(shown) > len(moves), "a setting could not be changed alone")
        found = change_one_by_one(settings, ((name, not shown[-1][name]) for name in single))
        together = {name: not found[name] for name in single if name in (AUTHOR, COMMITTER, OVERRIDES)}
        rest = {name: value for name, value in found.items() if name not in together}
        if together and settings.change(**together).is_served:
            values = {name: value for name, value in settings.values().items() if name in rest}
            must(values == rest, f"after {as_json(together)}: {as_json(rest)}", as_json(values))
        change_one_by_one(settings, settings.moves())
        # Whether selective removals can be switched on is up to the service.
        if {RETAIN, SELECTIVE} <= {*settings.free()} and settings.change(**{RETAIN: False}).is_served:
            settings.change(**{SELECTIVE: True})
            change_one_by_one(settings, ((name, not settings.values()[name]) for name in single[:1]))
            settings.change(**{SELECTIVE: False})


def change_one_by_one(settings: Settings, moves: Iterable[tuple[str, bool]]) -> dict[str, bool]:
    """Make each change, and expect every other setting to stay the same; return the settings afterwards."""
    shown = settings.values()
    for name, value in moves:
        settings.move(name, value=value)
        before, shown = shown, settings.values()
        must_keep_the_others(name, before, shown, value=value)
    return shown


def must_keep_the_others(name: str, before: dict[str, bool], after: dict[str, bool], *, value: bool) -> None:
    may_move = {name, *MOVES_WITH.get(name, ())}
    others = {other: kept for other, kept in before.items() if other not in may_move}
    found = {other: after.get(other) for other in others}
    must_be_as_before(f"after {name} = {as_json(value)}, the other settings", others, found)


@at_both_places(
    "several",
    group="approval-settings.group.update.several",
    project="approval-settings.project.update.several",
)
def test_several_settings_are_updated_together(several: str, settings: Settings) -> None:
    """One setting is on and the others off, in turns: a setting with the value of another one shows in one of these.

    By number and path, in turns.
    """
    names = [name for name in settings.free() if name in (AUTHOR, COMMITTER, OVERRIDES)]
    given(len(names) > 1, f"there are no two settings in {settings.path} that could be changed")
    named = settings.by_its_path()
    with verifies(several):
        for wanted, written in zip(each_alone(names), cycle((settings, named)), strict=False):
            written.change_with_charset(**wanted).given_served()
            shown = settings.values()
            found = {name: shown[name] for name in names}
            must(found == wanted, as_json(wanted), as_json(found))
        # All that exclude each other in no sentence, at once; whether others exclude each other is open.
        shown = settings.values()
        beside = (REAUTHENTICATION,) if shown[SELECTIVE] else (REAUTHENTICATION, RETAIN)
        together = {name: not shown[name] for name in settings.free() if name in (*names, *beside)}
        if any(written.change(**together).is_served for written in (named, settings)):
            found = {name: value for name, value in settings.values().items() if name in together}
            must(found == together, as_json(together), as_json(found))


@at_both_places(
    "both_hold",
    group="approval-settings.group.update.at-once",
    project="approval-settings.project.update.at-once",
)
def test_two_updates_at_once_of_different_settings_both_hold(both_hold: str, settings: Settings) -> None:
    names = [name for name in settings.free() if name in (AUTHOR, COMMITTER, OVERRIDES)][:2]
    given(len(names) == 2, f"there are no two settings in {settings.path} that could be changed")
    with verifies(both_hold):
        for _ in range(2):
            before = settings.values()
            for answer in at_once(*(partial(settings.change, **{name: not before[name]}) for name in names)):
                answer.given_served()
            for name in names:
                settings.must_show(name, value=not before[name])
        # A refused call must not undo another one that was served meanwhile.
        wrong = partial(settings.change, **{names[1]: {"conformance": "no truth value"}})
        value = settings.values()[names[0]]

        def turned_over() -> Answer:
            return settings.change(**{names[0]: not value})

        for served, _ in in_turns(turned_over, wrong):
            served.given_served()
            settings.must_show(names[0], value=not value)
            value = not value


def test_updates_of_a_group_and_of_a_project_at_once_both_hold(
    group_settings: Settings,
    project_settings: Settings,
) -> None:
    """Settings of different names, because one of a group may be inherited by a project in it."""
    of_group = next((name for name in (COMMITTER, OVERRIDES) if group_settings.is_free(name)), "")
    of_project = next(
        (name for name in (OVERRIDES, COMMITTER) if name != of_group and project_settings.is_free(name)), ""
    )
    if not of_group or not of_project:
        left_to_others()
        return
    moves = ((group_settings, of_group), (project_settings, of_project))
    with verifies("approval-settings.group.update.at-once", "approval-settings.project.update.at-once"):
        for _ in range(ROUNDS):
            wanted = [not settings.values()[name] for settings, name in moves]
            acts = [
                partial(settings.change, **{name: value}) for (settings, name), value in zip(moves, wanted, strict=True)
            ]
            for answer in at_once(*acts):
                answer.given_served()
            for (settings, name), value in zip(moves, wanted, strict=True):
                settings.must_show(name, value=value)


@pytest.mark.parametrize("case", [*SINGLE, *SELECTIVE_REMOVALS], ids=lambda case: f"{case.place}-{case.name}")
def test_an_accepted_value_is_the_one_that_is_read_and_none_but_true_and_false_is_taken(
    case: Case, settings_of_case: Settings
) -> None:
    """From both values: a wrong value that is read as the current one would show no change."""
    settings = settings_of_case
    given_free(settings, case.name)
    if case.name in {RETAIN, SELECTIVE}:
        settings.without_selective_removals()
    if case.name == SELECTIVE:
        # Beside kept approvals it may be refused for another reason.
        without_kept_approvals(settings)
    if case not in SINGLE:
        left_to_others(case.stored)
    before = settings.values()[case.name]
    for value in (False,) if case.name == SELECTIVE else (not before, before):
        control = settings.change(**{case.name: value})
        if case in SINGLE:
            with verifies(case.stored, go_on=True):
                control.given_served()
                settings.must_show(case.name, value=value)
        with verifies(case.is_boolean, go_on=True), unchanged(settings.values, "every setting"):
            for wrong in ("maybe", {"conformance": "maybe"}):
                settings.change(**{case.name: wrong}).must_be_refused(beside=control)


@at_both_places(
    "available",
    group="approval-settings.group.reauthentication-is-available",
    project="approval-settings.project.reauthentication-is-available",
)
def test_reauthentication_can_be_read_and_set(available: str, settings: Settings) -> None:
    with verifies(available):
        shown = settings.entries()
        must(REAUTHENTICATION in shown, f"the setting {REAUTHENTICATION}", ", ".join(shown))
        given_free(settings, REAUTHENTICATION)
        value = not settings.values()[REAUTHENTICATION]
        settings.change(**{REAUTHENTICATION: value}).must_be_served()
        settings.must_show(REAUTHENTICATION, value=value)


@at_both_places(
    "beside",
    group="approval-settings.group.update.password-beside-reauthentication",
    project="approval-settings.project.update.password-beside-reauthentication",
)
def test_whether_password_and_reauthentication_move_together_is_noted(beside: str, settings: Settings) -> None:
    given_free(settings, REAUTHENTICATION)
    before = settings.values()
    given(PASSWORD in before, f"{PASSWORD} is not shown")
    settings.change(**{REAUTHENTICATION: not before[REAUTHENTICATION]}).given_served()
    moved = settings.values().get(PASSWORD) != before[PASSWORD]
    observe(
        beside,
        f"{PASSWORD} {'moves with' if moved else 'stays beside'} {REAUTHENTICATION}",
    )


def test_the_body_after_an_update_of_a_project_is_noted(project_settings: Settings) -> None:
    name = next(iter(project_settings.free()), AUTHOR)
    answer = project_settings.change(**{name: project_settings.values()[name]}).given_served()
    settings = answer.exchange.body and name in str(answer.exchange.body)
    body = "the settings" if settings else "another body" if answer.exchange.body else "no body"
    observe("approval-settings.project.update.body", f"an update of a project answers {answer.status} with {body}")


# -- what does not exist -----------------------------------------------------------------------------------------------


@at_both_places(
    "read, update",
    group=("approval-settings.group.read.unknown-group", "approval-settings.group.update.unknown-group"),
    project=("approval-settings.project.read.unknown-project", "approval-settings.project.update.unknown-project"),
)
def test_what_does_not_exist_has_no_settings(place: str, read: str, update: str, settings: Settings) -> None:
    unknown = Settings(settings.caller, Path(f"/{place}s/{UNUSED_ID}/merge_request_approval_setting"))
    with verifies(read, go_on=True):
        control = settings.caller.get(settings.path)
        unknown.caller.get(unknown.path).must_be_refused(beside=control)
    with verifies(update):
        name = next(iter(settings.free()), AUTHOR)
        same = {name: settings.values()[name]}
        unknown.change(**same).must_be_refused(beside=settings.change(**same))
