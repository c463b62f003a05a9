"""Parameters that integrations share: which values each accepts, which it refuses, and which is the default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import INHERITED, ZERO
from conformance.suite.arrange.integration_values import (
    must_keep_whole_addresses,
    must_not_break_by_the_older_name,
    must_not_garble,
    must_not_show_another,
    must_take,
)
from conformance.suite.arrange.integrations import (
    borrowed,
    every_integration,
    given_disabled,
    given_set_up,
    has,
    integrations_path,
    least_settings,
    offering,
    older_path,
    set_up,
    settings_of,
    settings_under,
    shared_settings,
    shown,
    slug_of,
    without,
)
from conformance.suite.arrange.places import by_full_path
from conformance.suite.context import Unmet, Violation, current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    observe,
    verifies,
)
from conformance.suite.shown_records import values_under

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.suite import Fixture

#: Values beyond any conversion to the type of a parameter.
NO_TEXT: Any = {"conformance": ["no text"]}
NO_FLAG = "maybe"
NO_NUMBER = "abc"
NO_CHOICE = "conformance-no-such-choice"

FLAG = (False, True)
#: The parameter that branches_to_be_notified replaces.
DEPRECATED = "notify_only_default_branch"
DEFAULT_CHANNEL, DESTINATION = "channel", "Conformance-Default"
#: From the settings of the profile, because a service may check them with the external system.
AS_IN_SETTINGS = ()


@dataclass(frozen=True)
class Kind:
    """The parameters of one requirement, values that they accept, and one that they refuse."""

    requirement: str
    right: tuple[Any, ...]
    wrong: Any

    @property
    def names(self) -> tuple[str, ...]:
        return settings_under(self.requirement)

    @property
    def is_of_channels(self) -> bool:
        """Whether these are the destinations of single kinds of events."""
        return self.requirement == "integrations.parameters.event-channels.text"

    def __str__(self) -> str:
        return self.requirement


def _text(requirement: str, right: tuple[str, ...] = ("Conformance-A", "conformance-b")) -> Kind:
    return Kind(requirement, right, NO_TEXT)


def _flag(requirement: str) -> Kind:
    return Kind(requirement, FLAG, NO_FLAG)


KINDS = (
    _text("integrations.parameters.webhook.text", AS_IN_SETTINGS),
    _text("integrations.parameters.token.text", AS_IN_SETTINGS),
    _text("integrations.parameters.credentials.text", AS_IN_SETTINGS),
    _text("integrations.parameters.channel.text"),
    _text("integrations.parameters.labels-to-be-notified.text", ("~Bug,~feature", "")),
    _text("integrations.parameters.issue-tracker-urls.text", AS_IN_SETTINGS),
    _text("integrations.parameters.recipients.text", AS_IN_SETTINGS),
    _text("integrations.parameters.event-channels.text"),
    _text("integrations.parameters.restrict-to-branch.text", ("Main,stable", ZERO, "")),
    _flag("integrations.parameters.enable-ssl-verification.boolean"),
    _flag("integrations.parameters.notify-only-broken-pipelines.boolean"),
    _flag("integrations.parameters.event-flags.boolean"),
    _flag("integrations.parameters.comment-on-event-enabled.boolean"),
    _flag("integrations.parameters.active.boolean"),
    _flag("integrations.parameters.disable-diffs.boolean"),
    _flag("integrations.parameters.send-from-committer-email.boolean"),
    _flag("integrations.parameters.colorize-messages.boolean"),
    Kind("integrations.parameters.server-port.integer", (6659, 60001), NO_NUMBER),
    _flag("events.flags.incidents"),
    _flag("events.flags.vulnerability"),
    _flag("events.flags.group-mentions"),
    _flag("events.flags.group-confidential-mentions"),
)


@dataclass(frozen=True)
class Choice:
    """A parameter with a closed list of values, and its requirements."""

    name: str
    values: str
    closed: str
    has_default: str

    @property
    def allowed(self) -> tuple[str, ...]:
        return tuple(shared_settings()[self.name]["enum"])

    @property
    def default(self) -> str:
        return str(shared_settings()[self.name]["default"])


CHOICES = (
    Choice(
        "branches_to_be_notified",
        values="integrations.parameters.branches-to-be-notified.values",
        closed="integrations.parameters.branches-to-be-notified.closed",
        has_default="integrations.parameters.branches-to-be-notified.default",
    ),
    Choice(
        "labels_to_be_notified_behavior",
        values="integrations.parameters.labels-to-be-notified-behavior.values",
        closed="integrations.parameters.labels-to-be-notified-behavior.closed",
        has_default="integrations.parameters.labels-to-be-notified-behavior.default",
    ),
)

every_choice = pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)


@pytest.fixture
def path(maintainer: Caller, project: Fixture) -> Path:
    return integrations_path(maintainer, project)


@pytest.fixture
def known(integrations: tuple[Fixture, ...]) -> list[Fixture]:
    """All integrations of the profile, including the special ones."""
    return every_integration(integrations)


# -- types and values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.calls_area("integrations")
def test_a_parameter_takes_values_of_its_type_and_no_others(
    kind: Kind,
    maintainer: Caller,
    project: Fixture,
    path: Path,
    known: list[Fixture],
) -> None:
    """Everything that the integration requires is sent too, because whether a stored value is enough is not stated."""
    with verifies(kind.requirement):
        for integration, names in holders(kind, known):
            with borrowed(maintainer, path, integration):
                given_set_up(maintainer, path, integration)
                # First, while no default channel was sent yet, which would stay from then on.
                if kind.is_of_channels and has(integration, DEFAULT_CHANNEL):
                    must_show_beside_the_default(maintainer, path, integration, names)
                take(maintainer, path, integration, names, kind)
                for name in names:
                    must_not_break_by_the_older_name(maintainer, project, integration, {name: kind.wrong})


def test_several_recipients_are_all_kept(maintainer: Caller, path: Path, known: list[Fixture]) -> None:
    """What is between them is up to the integration: a service that cuts them loses some with either separator."""
    left_to_others()  # unless an integration takes addresses and shows them
    mailing = [one for one in known if str((one.get("settings") or {}).get("recipients")).count("@") == 1]
    if not mailing:
        return
    integration, own = mailing[0], str(settings_of(mailing[0])["recipients"])
    both = (own, f"conformance+second@{own.partition('@')[2]}")
    found: list[str] = []
    with borrowed(maintainer, path, integration):
        for separator in (" ", ","):
            if set_up(maintainer, path, integration, recipients=separator.join(both)).is_served:
                text = " ".join(map(str, shown(maintainer, path, slug_of(integration), "recipients")))
                found += [text] if text else []
                if all(one in text for one in both):
                    break
        if found:  # otherwise both are refused, or no recipients are shown
            with verifies("integrations.parameters.recipients.text"):
                must(all(one in found[-1] for one in both), " and ".join(both), ", then ".join(found))


def holders(kind: Kind, known: list[Fixture]) -> Iterator[tuple[Fixture, tuple[str, ...]]]:
    """Yield integrations that together have as many of the parameters as the profile allows, each with its own."""
    left = [name for name in kind.names if any(has(integration, name) for integration in known)]
    if not left:
        offering(known, kind.names[0])
    while left:
        integration = offering(known, left[0])
        mine = tuple(name for name in left if has(integration, name))
        left = [name for name in left if name not in mine]
        yield integration, mine


def take(caller: Caller, path: Path, integration: Fixture, names: tuple[str, ...], kind: Kind) -> None:
    """Expect that parameters accept each right value, show no older one instead, and refuse wrong values.

    They are sent together; if that shows anything else, each is tried alone, to find out which one it was. A fault that
    only occurs when they are together then fails the test.
    """
    together: Violation | None = None
    try:
        if len(names) > 1 and takes(caller, path, integration, names, kind):
            return
    except Violation as error:
        together = error
    except Unmet:
        pass
    for name in names:
        takes(caller, path, integration, (name,), kind)
    if together:
        raise together


def takes(caller: Caller, path: Path, integration: Fixture, names: tuple[str, ...], kind: Kind) -> bool:
    """Check these parameters together; return whether that is enough. For several, only refused wrong values are.

    They are sent by the number and by the path of the project, in turns.
    """
    slug, settings, forms = slug_of(integration), settings_of(integration), (path, by_full_path(path, caller))
    earlier: dict[str, list[Any]] = {name: [] for name in names}
    last_set = max((place for place, value in enumerate(kind.right) if value), default=0)
    for number in range(max(len(kind.right), 1)):
        sent = {name: value_of(kind, name, number, settings) for name in names}
        # The default destination for events is sent beside those of single events.
        has_default = kind.is_of_channels and has(integration, DEFAULT_CHANNEL)
        beside = {DEFAULT_CHANNEL: DESTINATION} if has_default else {}
        answer = set_up(caller, forms[number % 2], integration, **beside, **sent)
        if len(names) > 1 and answer.exchange.is_refusal:
            return False
        others = [""] if kind.wrong is NO_TEXT else [value for value in kind.right if value != sent[names[0]]]
        must_take(caller, path, integration, (names[0], sent[names[0]]), answer, *others)
        for name in names:
            of_others = [value for other, value in (beside | sent).items() if other != name and isinstance(value, str)]
            must_not_show_another(caller, path, integration, (name, sent[name]), [*earlier[name], *of_others])
            earlier[name].append(sent[name])
        if kind.is_of_channels and len(names) == 1:
            must_stand_for_itself(caller, path / slug, kind, *names, sent[names[0]])
        if number != last_set and kind.right != FLAG:
            continue  # once, with flags that are off, beside what a refusal could lose
        are_refused = refuses_wrong(caller, path, integration, names, kind, one_by_one=number == last_set)
        if len(names) > 1 and not are_refused:
            return False
    if kind.right == FLAG:
        must_go_off_again(caller, path, integration, names)
    if kind.wrong is NO_TEXT and kind.right:
        must_not_garble(caller, path, integration, names)
    if kind.right == AS_IN_SETTINGS:
        must_keep_whole_addresses(caller, path, integration, names)
    return True


def refuses_wrong(
    caller: Caller, path: Path, integration: Fixture, names: tuple[str, ...], kind: Kind, *, one_by_one: bool
) -> bool:
    """Expect a value of another type to be refused, without effect, or not to be stored; tell which one happened."""
    slug = slug_of(integration)
    before = {name: shown(caller, path, slug, name) for name in names}
    wrong = [{name: kind.wrong} for name in names] if one_by_one else [dict.fromkeys(names, kind.wrong)]
    odd = [set_up(caller, path, integration, **each).must_not_break() for each in wrong]
    after = {name: shown(caller, path, slug, name) for name in names}
    are_refused = all(answer.exchange.is_refusal for answer in odd)
    for name in names:
        must(kind.wrong not in after[name], f"{name} refused or not stored", f"{name} = {as_json(kind.wrong)} is shown")
        if are_refused:
            is_same = after[name] == before[name]
            must(is_same, f"{name} as before the refusal: {before[name]}", f"{name} = {after[name]}")
    return are_refused


def must_go_off_again(caller: Caller, path: Path, integration: Fixture, names: tuple[str, ...]) -> None:
    """Expect that flags which were switched on are off after sending that."""
    set_up(caller, path, integration, **dict.fromkeys(names, False)).must_be_served()
    for name in names:
        must_not_show_another(caller, path, integration, (name, False), [True])


def must_show_beside_the_default(caller: Caller, path: Path, integration: Fixture, names: tuple[str, ...]) -> None:
    """Expect that channels of events stay shown when the default channel is sent too, which none of them replaces."""
    alone, beside = ({name: f"conformance-{way}-{name}" for name in names} for way in ("alone", "beside"))
    if not set_up(caller, path, integration, **alone).is_served:  # perhaps a channel must exist
        return
    showing = [name for name in names if alone[name] in shown(caller, path, slug_of(integration), name)]
    if not set_up(caller, path, integration, **beside, **{DEFAULT_CHANNEL: DESTINATION}).is_served:
        return
    must_not_show_another(caller, path, integration, (DEFAULT_CHANNEL, DESTINATION), list(beside.values()))
    for name in showing:
        found = shown(caller, path, slug_of(integration), name)
        must(beside[name] in found, f"{name} = {beside[name]} beside {DEFAULT_CHANNEL}", f"{name} = {as_json(found)}")


def must_stand_for_itself(caller: Caller, path: Path, kind: Kind, name: str, value: Any) -> None:
    """Expect that a text sent for one parameter is not shown only under another parameter of its kind.

    If it is shown under both, the other one may be taken from it, because nothing was sent for that.
    """
    settings = caller.read(path)
    others = [other for other in kind.names if other != name and value in values_under(other, settings)]
    must(
        not others or value in values_under(name, settings),
        f"{value} as {name}, if it is shown",
        f"it is shown as {', '.join(others)}",
    )


def value_of(kind: Kind, name: str, number: int, settings: Mapping[str, Any]) -> Any:
    """Return a right value of a parameter: texts differ between parameters, so that none can replace another."""
    if not kind.right:
        return settings.get(name, f"conformance-{name}")
    value = kind.right[number]
    return f"{value}-{name}" if isinstance(value, str) and len(kind.names) > 1 else value


@every_choice
def test_a_parameter_with_a_closed_list_takes_each_of_its_values_and_no_others(
    choice: Choice,
    maintainer: Caller,
    project: Fixture,
    path: Path,
    known: list[Fixture],
) -> None:
    integration, name = offering(known, choice.name), choice.name
    with borrowed(maintainer, path, integration):
        given_set_up(maintainer, path, integration)
        with verifies(choice.values, go_on=True):
            for value in choice.allowed:
                set_up(maintainer, path, integration, **{name: value}).must_be_served()
                others = [other for other in choice.allowed if other != value]
                must_not_show_another(maintainer, path, integration, (name, value), others)
        slug, beside = slug_of(integration), str(integration.get("distinctive_name") or name)
        with verifies(choice.closed):
            looked_at = [beside, *(flag for flag in ("push_events",) if has(integration, flag))]
            before = {each: shown(maintainer, path, slug, each) for each in looked_at}
            sent = {beside: NO_CHOICE, **{flag: before[flag] != [True] for flag in looked_at[1:]}, name: NO_CHOICE}
            odd = set_up(maintainer, path, integration, **sent).must_not_break()
            after = shown(maintainer, path, slug, name)
            must(NO_CHOICE not in after, f"{name} refused or not stored", f"{name} = {NO_CHOICE} is shown")
            if odd.exchange.is_refusal:
                kept = {each: shown(maintainer, path, slug, each) for each in looked_at}
                must(kept == before, f"all as before the refusal: {as_json(before)}", as_json(kept))
            # A search in the words of the list finds the first one, and a look-up in an object the other.
            for word in (choice.allowed[0][:-1], INHERITED):
                set_up(maintainer, path, integration, **{name: word}).must_not_break()
                after = shown(maintainer, path, slug, name)
                must(word not in after, f"{name} refused or not stored", f"{name} = {word} is shown")
            must_not_break_by_the_older_name(maintainer, project, integration, {name: NO_TEXT})
    # Each of the others reads its own settings, and may know fewer values.
    last = choice.allowed[-1]
    for other in [one for one in known if has(one, name) and slug_of(one) != slug]:
        with borrowed(maintainer, path, other):
            if set_up(maintainer, path, other, **{name: last}).is_served:
                with verifies(choice.values, go_on=True):
                    must_not_show_another(maintainer, path, other, (name, last), list(choice.allowed[:-1]))
                if has(other, "recipients"):  # what mails is seldom made of the same parts as what chats
                    set_up(maintainer, path, other, **{name: NO_CHOICE})
                    with verifies(choice.closed, go_on=True):
                        after = shown(maintainer, path, slug_of(other), name)
                        must(NO_CHOICE not in after, f"{name} of {slug_of(other)} refused or not stored", NO_CHOICE)


def test_the_deprecated_switch_to_the_default_branch_does_no_harm(
    maintainer: Caller,
    project: Fixture,
    path: Path,
    known: list[Fixture],
) -> None:
    """If no integration has it any more, it is sent to one that has its replacement."""
    has_it = any(has(integration, DEPRECATED) for integration in known)
    integration = offering(known, DEPRECATED if has_it else "branches_to_be_notified")
    with borrowed(maintainer, path, integration):
        given_set_up(maintainer, path, integration)
        with verifies("integrations.parameters.notify-only-default-branch.harmless"):
            answers = [set_up(maintainer, path, integration, **{DEPRECATED: value}).must_not_break() for value in FLAG]
            must_not_break_by_the_older_name(maintainer, project, integration, {DEPRECATED: NO_FLAG})
        found = shown(maintainer, path, slug_of(integration), DEPRECATED)
        taken = "is refused" if not answers[-1].is_served else "is taken and kept" if True in found else "is taken"
        observe("integrations.parameters.notify-only-default-branch.answer", f"notify_only_default_branch {taken}")


# -- defaults ----------------------------------------------------------------------------------------------------------


@every_choice
def test_a_parameter_with_a_closed_list_has_its_default_unless_it_is_sent(
    choice: Choice,
    maintainer: Caller,
    path: Path,
    known: list[Fixture],
) -> None:
    """Mails on push have their own default; they are recognised by their recipients parameter."""
    others = [integration for integration in known if not has(integration, "recipients")]
    integration = offering(others, choice.name)
    with verifies(choice.has_default):
        other = next(value for value in choice.allowed if value != choice.default)
        must_default(maintainer, path, integration, choice.name, wanted=choice.default, other=other)


def test_mails_on_push_tell_of_all_branches_unless_told_otherwise(
    maintainer: Caller,
    path: Path,
    emails_on_push_integration: Fixture,
) -> None:
    integration, name = emails_on_push_integration, "branches_to_be_notified"
    with verifies("integrations.parameters.branches-to-be-notified.default-of-emails-on-push"):
        must_default(maintainer, path, integration, name, wanted="all", other="protected")


def test_certificates_are_checked_unless_told_otherwise(
    maintainer: Caller,
    path: Path,
    known: list[Fixture],
) -> None:
    integration = offering(known, "enable_ssl_verification")
    with verifies("integrations.parameters.enable-ssl-verification.default"):
        must_default(maintainer, path, integration, "enable_ssl_verification", wanted=True, other=False)


def test_no_two_integrations_go_on_checking_certificates_when_told_not_to(
    maintainer: Caller,
    path: Path,
    known: list[Fixture],
) -> None:
    """The text permits that for one of them, but does not say which one."""
    name = "enable_ssl_verification"
    told: list[str] = []
    checking = []
    for integration in [one for one in known if has(one, name)][:3]:
        slug = slug_of(integration)
        with borrowed(maintainer, path, integration):
            if set_up(maintainer, path, integration, **{name: False}).is_served:
                told.append(slug)
                found = {str(value).lower() for value in shown(maintainer, path, slug, name)}
                checking += [slug] if found == {"true"} else []
    if len(told) < 2:
        left_to_others()
        return
    with verifies("integrations.parameters.enable-ssl-verification.boolean"):
        must(len(checking) < 2, f"{name} = false of all but one of {told}", f"true of {checking}")


def must_default(
    caller: Caller, path: Path, integration: Fixture, name: str, *, wanted: str | bool, other: str | bool
) -> None:
    """Expect that a parameter that was not sent shows its default, or nothing until somebody sets it.

    The same holds after another value and disabling; then it is set up by the older name. An integration may leave out
    what was not sent, if it shows the value that is sent.
    """
    slug, least = slug_of(integration), without(least_settings(integration), name)
    older = older_path(caller, project) if (project := current_run().profile.first("project")) else None
    with borrowed(caller, path, integration):
        seen: list[Any] = []
        for is_again in (False, True):
            if is_again:
                caller.put(path / slug, {**least, name: other})
                seen = seen or shown(caller, path, slug, name)
                given_disabled(caller, path, integration)
            caller.follow(caller.put(Path((is_again and older) or path) / slug, least)).given_served()
            caller.whole_list(path).the(slug=slug)
            found = shown(caller, path, slug, name)
            seen += found
            given(not is_again or bool(seen), f"{slug} does not show {name}")
            if not is_again and caller.put(path / slug, least).is_served:  # nor is another one stored by an update
                found = [*found, *shown(caller, path, slug, name)]
            others = [value for value in found if value not in (wanted, None, "")]
            must(not others, f"{name} = {as_json(wanted)}", f"{name} = {as_json(others)}")
