"""Approval settings: values that hold where they were set, locks that come from the group around, and nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.approval_settings import (
    AUTHOR,
    COMMITTER,
    OVERRIDES,
    PASSWORD,
    REAUTHENTICATION,
    RETAIN,
    SELECTIVE,
    Settings,
    an_unlocked_project_in_a_group,
    of_an_unlocked_project,
    of_group,
    of_project,
)
from conformance.suite.expectations import Caller, Path, given, must, observe, unchanged, verifies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.target import Fixture

# The last part of a requirement's id, and the setting that it is about.
NAMES = {
    "allow-author-approval": AUTHOR,
    "allow-committer-approval": COMMITTER,
    "allow-overrides-to-approver-list": OVERRIDES,
    "retain-approvals-on-push": RETAIN,
    "require-reauthentication-to-approve": REAUTHENTICATION,
}
INSIDE = {"group": "subgroup_settings", "project": "inner_project_settings"}

both_places = pytest.mark.parametrize("place", ["group", "project"])


def kept(settings: Settings) -> Iterator[Settings]:
    """Lend settings to a story, and put back what it changes."""
    before = settings.values()
    yield settings
    settings.restore(before)


@pytest.fixture
def group_settings(owner: Caller, group: Fixture) -> Iterator[Settings]:
    """Those of the group."""
    yield from kept(of_group(owner, group))


@pytest.fixture
def subgroup_settings(owner: Caller, subgroup: Fixture) -> Iterator[Settings]:
    """Those of the group inside it."""
    yield from kept(of_group(owner, subgroup))


@pytest.fixture
def inner_project_settings(maintainer: Caller, project: Fixture) -> Iterator[Settings]:
    """Those of the project inside it."""
    yield from kept(of_project(maintainer, project))


@pytest.fixture
def project_settings(maintainer: Caller, project: Fixture) -> Iterator[Settings]:
    """Those of a project without locks, wherever it lies."""
    yield from kept(of_an_unlocked_project(maintainer, project))


@pytest.fixture
def project_in_a_group(
    owner: Caller, maintainer: Caller, group: Fixture, project: Fixture
) -> Iterator[tuple[Settings, Settings]]:
    """Those of a project, and of the group around it."""
    inside, around = an_unlocked_project_in_a_group(maintainer, project, group)
    for inner in kept(of_project(maintainer, inside)):
        yield inner, of_group(owner, around)


@pytest.fixture
def settings(place: str, request: pytest.FixtureRequest) -> Settings:
    """Those of the place that a story is about."""
    found: Settings = request.getfixturevalue(f"{place}_settings")
    return found


@pytest.fixture
def inner_settings(place: str, request: pytest.FixtureRequest) -> Settings:
    """Those of a place of this kind inside the group."""
    found: Settings = request.getfixturevalue(INSIDE[place])
    return found


def given_free(settings: Settings, *names: str) -> None:
    locked = set(names) - set(settings.free())
    given(not locked, f"{', '.join(sorted(locked))} cannot be changed in {settings.path}: it is locked or not shown")


def change_everything(settings: Settings, *, leaving: Settings) -> None:
    """Give each free setting its other value and the old one again; what must be left alone is looked at each time."""
    moved = False
    for name, value in settings.moves():
        before = settings.values()[name]
        with unchanged(leaving.entries, f"the settings of {leaving.path}"):
            done = settings.move(name, value=value)
        moved |= done and settings.values()[name] != before
    given(moved, f"nothing could be changed in {settings.path}")


# -- values ------------------------------------------------------------------------------------------------------------


@both_places
@pytest.mark.parametrize("setting", list(NAMES))
def test_an_accepted_value_is_the_one_that_is_read(place: str, setting: str, settings: Settings) -> None:
    name = NAMES[setting]
    given_free(settings, name)
    if name == RETAIN:
        settings.change(**{SELECTIVE: False}).given_served()
    before = settings.values()[name]
    with verifies(f"approval-settings.{place}.update.{setting}"):
        for value in (not before, before):
            settings.change(**{name: value}).given_served()
            settings.must_show(name, value=value)


@both_places
def test_selective_removals_hold_where_no_approvals_are_kept(place: str, settings: Settings) -> None:
    """Whether they may be switched on at all, the text leaves to the service; what it accepts must hold."""
    given_free(settings, RETAIN, SELECTIVE)
    for name in (SELECTIVE, RETAIN):
        settings.change(**{name: False}).given_served()
    switched_on = settings.change(**{SELECTIVE: True})
    did = "serves" if switched_on.is_served else "refuses"
    observe(
        f"approval-settings.{place}.update.selective-code-owner-removals.answer",
        f"keeping no approvals, a {place} {did} {SELECTIVE} = true with {switched_on.status}",
    )
    with verifies(f"approval-settings.{place}.update.selective-code-owner-removals"):
        switched_on.given_served()
        settings.must_show(SELECTIVE, value=True)
        settings.change(**{SELECTIVE: False}).given_served()
        settings.must_show(SELECTIVE, value=False)


@both_places
def test_selective_removals_beside_kept_approvals_are_noted(place: str, settings: Settings) -> None:
    """The text rules the pair out and does not say how: refused, dropped, or stored and without effect."""
    given_free(settings, RETAIN, SELECTIVE)
    settings.change(**{SELECTIVE: False}).given_served()
    settings.change(**{RETAIN: True}).given_served()
    answer = settings.change(**{SELECTIVE: True})
    after = settings.values()
    observe(
        f"approval-settings.{place}.update.selective-code-owner-removals.beside-retain",
        f"beside {RETAIN} = true, {SELECTIVE} = true is answered {answer.status}; after that "
        f"{RETAIN} is {after[RETAIN]} and {SELECTIVE} is {after[SELECTIVE]}",
    )


@both_places
def test_each_setting_can_be_sent_alone(place: str, settings: Settings) -> None:
    given(bool(settings.free()), f"every setting in {settings.path} is locked")
    with verifies(f"approval-settings.{place}.update.each-is-optional"):
        for name, value in settings.moves():
            if (name, value) == (SELECTIVE, True):
                settings.move(name, value=value)
            else:
                settings.change(**{name: value}).must_be_served()


def test_the_answer_to_an_update_of_a_group_shows_what_was_sent(group_settings: Settings) -> None:
    with verifies("approval-settings.group.update.answer-shows-values"):
        for name, value in group_settings.moves():
            answer = group_settings.change(**{name: value})
            if (name, value) == (SELECTIVE, True) and answer.exchange.is_refusal:
                continue
            body = answer.given_served().json
            entry = body.get(name) if isinstance(body, dict) else None
            shown = entry.get("value") if isinstance(entry, dict) else entry
            must(shown is value, f"{name} with the value {value}", f"the value {shown!r}", answer.exchange)


@both_places
def test_an_update_without_any_setting_changes_none(place: str, settings: Settings) -> None:
    with verifies(f"approval-settings.{place}.update.empty"), unchanged(settings.entries, "every setting"):
        answer = settings.change().must_not_break()
    observe(f"approval-settings.{place}.update.empty-answer", f"an update without any setting answers {answer.status}")


@both_places
def test_an_update_of_one_setting_keeps_the_others(place: str, settings: Settings) -> None:
    """
    A client that switches one thing must not silently loosen another.

    All others are looked at with the values that were found and with the opposite ones: what falls back to a value of
    its own, or follows the setting that was sent, shows in one of the two.
    """
    given(bool(settings.free()), f"every setting in {settings.path} is locked")
    single = [name for name in settings.free() if name not in (RETAIN, SELECTIVE)]
    with verifies(f"approval-settings.{place}.update.leaves-unsent"):
        change_one_by_one(settings, settings.moves())
        found = settings.values()
        change_one_by_one(settings, ((name, not found[name]) for name in single))
        change_one_by_one(settings, settings.moves())


def change_one_by_one(settings: Settings, moves: Iterable[tuple[str, bool]]) -> None:
    """Make each move, and expect every other setting to be as before."""
    expected = settings.values()
    for name, value in moves:
        settings.move(name, value=value)
        shown = settings.values()
        may_move = {name, *{REAUTHENTICATION: (PASSWORD,), RETAIN: (SELECTIVE,)}.get(name, ())}
        others = {other: expected[other] for other in expected.keys() - may_move}
        found = {other: shown.get(other) for other in others}
        must(found == others, f"after {name} = {value}: {others}", str(found))
        expected = shown


@both_places
@pytest.mark.parametrize("setting", [*NAMES, "selective-code-owner-removals"])
def test_what_is_no_truth_value_is_refused(place: str, setting: str, settings: Settings) -> None:
    """From both values: what is taken for the one that holds already would show nowhere."""
    name = NAMES.get(setting, SELECTIVE)
    given_free(settings, name, SELECTIVE)
    settings.change(**{SELECTIVE: False}).given_served()
    if name == SELECTIVE:
        # Beside kept approvals it may be refused for another reason.
        settings.change(**{RETAIN: False}).given_served()
    with verifies(f"approval-settings.{place}.update.{setting}.is-boolean"):
        for value in (False,) if name == SELECTIVE else (True, False):
            control = settings.change(**{name: value})
            for wrong in ("maybe", {"conformance": "maybe"}):
                with unchanged(settings.entries, "every setting"):
                    settings.change(**{name: wrong}).must_be_refused(beside=control)


@both_places
def test_reauthentication_can_be_read_and_set(place: str, settings: Settings) -> None:
    with verifies(f"approval-settings.{place}.reauthentication-is-available"):
        shown = settings.entries()
        must(REAUTHENTICATION in shown, f"the setting {REAUTHENTICATION}", ", ".join(shown))
        given_free(settings, REAUTHENTICATION)
        value = not settings.values()[REAUTHENTICATION]
        settings.change(**{REAUTHENTICATION: value}).must_be_served()
        settings.must_show(REAUTHENTICATION, value=value)


@both_places
def test_whether_password_and_reauthentication_move_together_is_noted(place: str, settings: Settings) -> None:
    given_free(settings, REAUTHENTICATION)
    before = settings.values()
    settings.change(**{REAUTHENTICATION: not before[REAUTHENTICATION]}).given_served()
    moved = settings.values()[PASSWORD] != before[PASSWORD]
    observe(
        f"approval-settings.{place}.update.password-beside-reauthentication",
        f"{PASSWORD} {'moves with' if moved else 'stays beside'} {REAUTHENTICATION}",
    )


def test_the_body_after_an_update_of_a_project_is_noted(project_settings: Settings) -> None:
    name = next(iter(project_settings.free()), AUTHOR)
    answer = project_settings.change(**{name: project_settings.values()[name]}).given_served()
    settings = answer.exchange.body and name in str(answer.exchange.body)
    body = "the settings" if settings else "another body" if answer.exchange.body else "no body"
    observe("approval-settings.project.update.body", f"an update of a project answers {answer.status} with {body}")


def test_whether_an_owner_may_do_what_a_maintainer_may_is_noted(owner: Caller, project_settings: Settings) -> None:
    value = project_settings.values()[AUTHOR]
    read, updated = owner.get(project_settings.path), owner.put(project_settings.path, {AUTHOR: value})
    observe(
        "approval-settings.project.authorization.owner-answer",
        f"an owner of the project is answered {read.status} when reading and {updated.status} when updating",
    )


# -- inheritance -------------------------------------------------------------------------------------------------------


@both_places
def test_a_locked_setting_has_the_value_of_the_group_that_it_comes_from(
    place: str,
    inner_settings: Settings,
    group_settings: Settings,
) -> None:
    """Whether a group hands its settings down at all is open; what it locks must at least be its own value."""
    locked = 0
    with verifies(f"approval-settings.{place}.locked-value-is-the-parents"):
        for name, value in group_settings.moves():
            group_settings.move(name, value=value)
            inner = inner_settings.entries()[name]
            observe(f"approval-settings.{place}.cascade", what_reached(name, group_settings.values()[name], inner))
            if is_from_group(inner):
                wanted = group_settings.values()[name]
                must(inner["value"] is wanted, f"{name}, locked, with the value {wanted}", f"{inner}")
                locked += 1
        given(locked > 0, "no setting of the group was seen to lock the one inside it")


def what_reached(name: str, value: bool, inner: dict[str, object]) -> str:  # noqa: FBT001 - data
    set_there = f"{name} = {str(value).lower()} in the group around"
    if not inner.get("locked"):
        return f"{set_there} locks nothing inside it"
    same = "the same value" if inner.get("value") is value else "another value"
    return f"{set_there} locks the one inside it, with {same}, inherited_from {inner.get('inherited_from')}"


def is_from_group(entry: dict[str, object]) -> bool:
    return entry.get("locked") is True and "group" in str(entry.get("inherited_from")).lower()


@both_places
def test_the_answer_to_an_update_of_a_locked_setting_is_noted(
    place: str,
    inner_settings: Settings,
    group_settings: Settings,
) -> None:
    told = "no setting was seen to be locked by the group around"
    for name, value in group_settings.moves():
        group_settings.move(name, value=value)
        inner = inner_settings.entries()[name]
        if inner.get("locked"):
            answer = inner_settings.change(**{name: not inner["value"]})
            moved = inner_settings.values()[name] != inner["value"]
            told = f"updating a locked setting answers {answer.status}, and the value {'moves' if moved else 'stays'}"
            break
    observe(f"approval-settings.{place}.update.locked-answer", told)


# -- nobody else's -----------------------------------------------------------------------------------------------------


def test_an_update_of_a_group_leaves_other_groups(
    owner: Caller,
    sibling_group: Fixture,
    group_settings: Settings,
) -> None:
    with verifies("approval-settings.group.update.leaves-other-groups"):
        change_everything(group_settings, leaving=of_group(owner, sibling_group))


def test_an_update_of_a_project_leaves_other_projects(
    maintainer: Caller,
    sibling_project: Fixture,
    project_settings: Settings,
) -> None:
    with verifies("approval-settings.project.update.leaves-other-projects"):
        change_everything(project_settings, leaving=of_project(maintainer, sibling_project))


def test_an_update_of_a_project_leaves_the_group_around_it(project_in_a_group: tuple[Settings, Settings]) -> None:
    inner, outer = project_in_a_group
    with verifies("approval-settings.project.update.leaves-its-group"):
        change_everything(inner, leaving=outer)


@both_places
def test_what_does_not_exist_has_no_settings(place: str, settings: Settings) -> None:
    unknown = Settings(settings.caller, Path(f"/{place}s/{UNUSED_ID}/merge_request_approval_setting"))
    with verifies(f"approval-settings.{place}.read.unknown-{place}", go_on=True):
        control = settings.caller.get(settings.path)
        unknown.caller.get(unknown.path).must_be_refused(beside=control)
    with verifies(f"approval-settings.{place}.update.unknown-{place}"):
        same = {AUTHOR: settings.values()[AUTHOR]}
        unknown.change(**same).must_be_refused(beside=settings.change(**same))
