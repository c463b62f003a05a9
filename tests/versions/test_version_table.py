"""Every item of the version table: additions exist, deprecated items still work, and removed items are gone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from conformance.fuzzing import must_be_stored
from conformance.suite import Change, ChangeKind, ItemState, Reason
from conformance.suite.arrange import arranged, has_request_example
from conformance.suite.arrange.approval_settings import an_unlocked_project_if_read
from conformance.suite.arrange.project_approval_configuration import AUTHOR, Configuration
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import current_run
from conformance.suite.derived import served_caller
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    does_not_apply,
    eventually,
    given,
    must,
    observe,
    project_path,
    sees,
    verifies,
)
from conformance.suite.version_items import (
    ItemUnderTest,
    called,
    changes,
    entries,
    is_offered,
    is_required,
    left_open,
    named,
    new_operations,
    new_parameters,
    replaced_items,
    target_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Actor, Fixture, ReplacedBy
    from conformance.suite.expectations import Answer


def every(items: list[Change]) -> pytest.MarkDecorator:
    assert items, "the version table has no such item"
    return pytest.mark.parametrize("change", items, ids=lambda change: change.id)


@pytest.fixture
def item(change: Change) -> ItemUnderTest:
    return ItemUnderTest(change)


# -- what the specification describes ----------------------------------------------------------------------------------


@every(changes(ChangeKind.INTRODUCED, where=lambda change: change.described))
def test_what_was_introduced_is_there(change: Change, item: ItemUnderTest) -> None:
    """Only items that can be read; those that must be sent are tested below."""
    with item.seen_in_passing():
        shown = [*operations_are_there(item), *fields_are_there(item), *pages_are_there(item)]
        given(bool(shown), "nothing of it can be read by the fixtures alone")
        missing = [what for what, there in shown if not there]
        given(not missing or item.caller.target_version is not None, "the version is unknown, and it may be older")
        state = ItemState.NOT_MADE if missing else ItemState.MADE
        sees(change.id, state, f"not there: {', '.join(missing)}" if missing else "there")
        with verifies(change.requirement):
            must(not missing, f"from {change.version} on: {change.item}", f"not there: {', '.join(missing)}")


def operations_are_there(item: ItemUnderTest) -> Iterator[tuple[str, bool]]:
    for operation in item.operations():
        if item.is_readable(operation):
            yield operation.label, 200 <= item.read(operation).status < 300


def fields_are_there(item: ItemUnderTest) -> Iterator[tuple[str, bool]]:
    for record, name in item.fields():
        for entry, answer in item.records(record):
            yield f"{name} in {called(answer)}", name in entry


def pages_are_there(item: ItemUnderTest) -> Iterator[tuple[str, bool]]:
    """Only a list of more than one entry shows whether shorter pages can be requested."""
    for operation, name in item.parameters():
        if name != "per_page" or not item.is_readable(operation) or not has_request_example(operation):
            continue
        with arranged(operation) as prepared:
            prepared.fill()
            whole = item.read(operation, page=1, per_page=current_run().learnt.page_length)
            given(len(entries(whole.given_served())) > 1, "the list is too short")
            short = item.read(operation, page=1, per_page=1)
            yield f"pages of {operation.label}", 200 <= short.status < 300 and len(entries(short)) == 1


@every(changes(ChangeKind.DEPRECATED, where=lambda change: change.described and "=" not in change.places[0]))
def test_a_deprecated_field_is_there_as_long_as_it_is_owed(change: Change, item: ItemUnderTest) -> None:
    """Deprecated does not mean removed: clients that still read the field must not break before its removal."""
    with item.seen_in_passing():
        found = [(record, name, entry) for record, name in item.fields() for entry, _ in item.records(record)]
        given(bool(found), "no record that has the field can be read")
        record, name, _ = found[0]
        shown = [name in entry for _, name, entry in found]
        if item.is_reached:
            there = "still shown" if all(shown) else "no longer shown"
            sees(change.id, ItemState.STILL_SERVED if all(shown) else ItemState.GONE, f"{name} is {there}")
        with verifies(change.requirement):
            owed = is_required(record, name)
            must(all(shown) or not owed, f"{name}, deprecated and still owed", f"no {name}")


@pytest.mark.parametrize(("change", "place"), **new_operations(ChangeKind.INTRODUCED))
def test_an_operation_that_was_introduced_is_served(change: Change, place: str, item: ItemUnderTest) -> None:
    """Also an operation that changes something, because a read alone does not show that a whole row is implemented."""
    operation = item.operation(place)
    with item.seen_in_passing(), arranged(operation) as prepared:
        answer = prepared.sent_by(served_caller(operation))
        with verifies(change.requirement):
            answer.must_be_served()


@pytest.mark.parametrize(("change", "place"), **new_parameters(ChangeKind.INTRODUCED))
def test_a_parameter_that_was_introduced_is_taken(change: Change, place: str, item: ItemUnderTest) -> None:
    """Compared with the same call without it, which shows that the operation is served at all.

    The sent value must show in the record: a parameter that is accepted and ignored is not implemented.
    """
    operation = item.operation(place)
    with item.seen_in_passing(), arranged(operation) as prepared:
        caller = served_caller(operation)
        prepared.sent_by(caller).given_served()
        for value in item.values(place, prepared.place):
            prepared.again()
            given(not item.is_locked(prepared), f"{place} would change what is locked")
            answer = item.having(prepared, place, value).sent_by(caller)
            with verifies(change.requirement):
                answer.must_be_served()
                item.must_show(prepared, answer, value)


@pytest.mark.parametrize(("change", "replaced"), **replaced_items(ChangeKind.DEPRECATED))
def test_what_replaces_a_deprecated_item_works(change: Change, replaced: ReplacedBy, item: ItemUnderTest) -> None:
    """The relation between the two is open, so it is only recorded whether they agree."""
    operation = item.operation(replaced.operation)
    with left_open(), arranged(operation) as prepared:
        answer = prepared.sent_by(served_caller(operation))
        wanted = prepared.call.body[replaced.parameter]
        with verifies(replaced.requirement):
            answer.must_be_served()
            must_be_stored(prepared, prepared.call, answer)
        after = item.present()
    told = "nothing" if not after else "the same" if wanted in after.values() else "another number"
    observe(replaced.agreement, f"beside {replaced.parameter} {wanted} of {change.replacement} the item tells {told}")


@every(changes(ChangeKind.REMOVED, where=lambda change: change.described))
def test_a_removed_operation_is_refused_and_does_nothing(
    change: Change,
    item: ItemUnderTest,
    configuration: tuple[Configuration, dict[str, bool]],
) -> None:
    """Any 4xx is right. A service that still serves it must carry it out: a silently lost change helps nobody."""
    found, before = configuration
    wanted = not before.get(AUTHOR)
    answer = item.caller.post(found.path, {AUTHOR: wanted})
    state = ItemState.MADE if answer.exchange.is_refusal else ItemState.NOT_MADE
    sees(change.id, state, f"{change.item} answers {answer.status}")
    with item.seen_in_passing():
        given(bool(before), "reading went as well, so that no change can be seen; the story of the area looks further")
    if not before:
        return
    with verifies(change.requirement):
        answer.must_not_break()
        if answer.is_served:
            found.given_free(AUTHOR)
        found.must_hold(**{AUTHOR: wanted if answer.is_served else before[AUTHOR]})


@pytest.fixture
def configuration(maintainer: Caller, project: Fixture) -> Iterator[tuple[Configuration, dict[str, bool]]]:
    """The approval configuration as it is read, restored afterwards if it can still be changed; empty if removed."""
    if not maintainer.target_declares("approval_configuration"):
        yield Configuration(maintainer, project), {}
        return
    found = Configuration(maintainer, an_unlocked_project_if_read(maintainer, project))
    before = found.settings()
    yield found, before
    if found.settings()[AUTHOR] is not before[AUTHOR]:
        found.change(**{AUTHOR: before[AUTHOR]})


@every(changes(ChangeKind.RENAMED))
@pytest.mark.calls_area("integrations")
def test_both_names_of_a_renamed_endpoint_answer_alike(
    change: Change,
    item: ItemUnderTest,
    integration: Fixture,
) -> None:
    """An empty list under both names would prove nothing, so the integration is set up during the test."""
    newer = next(operation for operation in item.operations() if item.is_readable(operation))
    path = item.read(newer).exchange.call.path
    older = Path(path.replace("/integrations", "/services"))
    slug = str(integration["slug"])
    known = item.caller.follow(item.caller.get(older))
    known.given_json()  # or nothing would ever be listed
    was_there = slug in slugs(known)
    item.caller.follow(item.caller.put(f"{older}/{slug}", dict(integration.get("settings") or {}))).given_served()
    try:
        eventually(lambda: slug in slugs(item.caller.follow(item.caller.get(older))), f"that {slug} is listed")
        by_older = item.caller.follow(item.caller.get(older))
        by_newer = item.caller.get(path)
        both = by_newer.is_served and slugs(by_newer) == slugs(by_older)
        if both or target_version() is not None:
            sees(change.id, ItemState.MADE if both else ItemState.NOT_MADE, "both names" if both else "not both names")
        with verifies(change.requirement):
            by_newer.must_be(200)
            must(slugs(by_newer) == slugs(by_older), "the same integrations by both names", f"{slugs(by_newer)}")
    finally:
        if not was_there:
            item.caller.follow(item.caller.delete(f"{older}/{slug}"))


def slugs(answer: Answer) -> set[Any]:
    return {entry.get("slug") for entry in entries(answer)}


REPORT_TYPE = named("15.9-license-scanning")


@pytest.fixture
def rules(maintainer: Caller, project: Fixture) -> Iterator[Path]:
    """The approval rules of the project; those that the test adds are deleted afterwards."""
    path = project_path(project) / "approval_rules"
    with rules_put_back(maintainer, path):
        yield path


@pytest.mark.parametrize("change", [REPORT_TYPE], ids=lambda change: change.id)
@pytest.mark.calls_area("project-approval-rules")
def test_a_deprecated_report_type_is_still_taken_or_no_longer(change: Change, maintainer: Caller, rules: Path) -> None:
    """The text both lists report types and forbids rules of reports, so a refusal may be for the latter."""
    body = {"name": "conformance-report", "approvals_required": 1, "rule_type": "report_approver"}
    answers = {
        name: maintainer.post(rules, {**body, "name": f"conformance-{name}", "report_type": name})
        for name in ("code_coverage", "license_scanning")
    }
    control, deprecated = answers["code_coverage"], answers["license_scanning"]
    if deprecated.is_served:
        sees(change.id, ItemState.STILL_SERVED, "a rule with license_scanning can be created")
    elif control.is_served:
        sees(change.id, ItemState.GONE, "rules of reports can be created, but not with license_scanning")
    observe(
        change.requirement,
        f"a rule with report_type license_scanning answers {deprecated.status}, with code_coverage {control.status}",
    )


# -- what the version table names without describing -------------------------------------------------------------------


def not_offered(change: Change, answer: Answer) -> None:
    detail = f"{called(answer)} answers {answer.status}: the target does not offer it"
    does_not_apply(change.requirement, Reason.NOT_OFFERED, detail)


@every(changes(*ChangeKind, where=lambda change: bool(change.probe and change.probe.field)))
def test_whether_a_field_that_goes_is_still_shown(change: Change, item: ItemUnderTest) -> None:
    answer = item.probe()
    if not is_offered(answer):
        not_offered(change, answer)
        return
    field = change.probe.field if change.probe else None
    shown = [field in entry for entry in entries(answer)]
    given(bool(shown), f"{called(answer)} lists nothing to look at")
    removed = change.kind is ChangeKind.REMOVED
    there, gone = (ItemState.NOT_MADE, ItemState.MADE) if removed else (ItemState.STILL_SERVED, ItemState.GONE)
    text = f"{called(answer)} {'still shows' if any(shown) else 'does not show'} {field}"
    sees(change.id, there if any(shown) else gone, text)
    observe(change.requirement, text)


@every(changes(*ChangeKind, where=lambda change: bool(change.probe and change.probe.parameter == "page")))
def test_what_becomes_of_page_where_only_keyset_pagination_is_left(change: Change, item: ItemUnderTest) -> None:
    control = item.control()
    if not is_offered(control):
        not_offered(change, control)
        return
    given(bool(entries(control)), f"{called(control)} lists nothing to look at")
    second = item.probe()
    if second.exchange.is_refusal:
        text, state = f"page is refused with {second.status}", ItemState.MADE
    else:
        passed_over = entries(second.given_served()) == entries(control)
        text = "page is passed over" if passed_over else "page still chooses the entries"
        state = ItemState.MADE if passed_over else ItemState.NOT_MADE
    sees(change.id, state, f"{called(control)}: {text}")
    observe(change.requirement, f"{called(control)}: {text}")


@every(changes(ChangeKind.INTRODUCED, where=lambda change: not change.described and change.probe is not None))
def test_whether_an_endpoint_that_is_only_named_is_offered(change: Change, item: ItemUnderTest) -> None:
    answer = item.probe()
    offered = is_offered(answer)
    sees(change.id, ItemState.MADE if offered else ItemState.NOT_MADE, f"{called(answer)} answers {answer.status}")
    observe(change.requirement, f"{called(answer)} answers {answer.status}")


@every(changes(ChangeKind.CHANGED, where=lambda change: bool(change.probe and change.probe.judged)))
def test_the_tree_of_a_missing_path_is_not_found(change: Change, item: ItemUnderTest) -> None:
    """The tree of an existing path distinguishes a service without the endpoint, which answers 404 to everything."""
    control = item.control()
    if not is_offered(control):
        not_offered(change, control)
        return
    missing = item.probe()
    sees(change.id, ItemState.MADE if missing.status == 404 else ItemState.NOT_MADE, f"answers {missing.status}")
    if item.caller.target_version is None:
        does_not_apply(change.requirement, Reason.VERSION, "at an unknown version an empty list is right as well")
        return
    with verifies(change.requirement):
        missing.must_be(404)
        # Whatever else is requested beside it, the path does not exist.
        for beside in ({"recursive": "true"}, {"page": "2", "per_page": "1"}):
            item.probe_beside(**beside).must_be_refused(beside=control)
        # An existing folder has its content, and nothing else.
        folder = next((one for one in entries(control) if one.get("type") == "tree" and one.get("path")), {})
        item.probe(path=f"{folder.get('path', 'no-such-folder')}/no-such-folder").must_be(404)
        for cut in cut_short(entries(control)):
            item.probe(path=cut).must_be(404)


#: With so few entries a list counts as complete: a page may be shorter than requested.
FEW_ENTRIES = 9


def cut_short(found: list[Any]) -> list[str]:
    """Return a top-level name cut short that is no name itself; None if not all names may be known."""
    names = [one["path"] for one in found if isinstance(one.get("path"), str) and "/" not in one["path"]]
    if len(found) > FEW_ENTRIES:
        return []
    return [name[:-1] for name in names if len(name) > 1 and name[:-1] not in names][:1]


ENFORCED = named("18.0-job-token-allowlist")


@pytest.mark.parametrize("change", [ENFORCED], ids=lambda change: change.id)
def test_a_fresh_project_limits_access_by_its_allowlists(
    change: Change,
    maintainer: Caller,
    fresh_project: Fixture,
) -> None:
    answer = maintainer.get(project_path(fresh_project) / "job_token_scope")
    settings = answer.given_json()
    told = settings.get("inbound_enabled") if isinstance(settings, dict) else None
    given(isinstance(told, bool), "the settings do not show inbound_enabled as true or false")
    given(told or maintainer.target_version is not None, "the version is unknown, and it may be older")
    sees(change.id, ItemState.MADE if told else ItemState.NOT_MADE, f"inbound_enabled is {as_json(told)}")
    with verifies(change.requirement):
        answer.must_hold(inbound_enabled=True)


JWT = named("19.0-job-token-jwt")


@pytest.mark.parametrize("change", [JWT], ids=lambda change: change.id)
def test_whether_a_job_token_has_the_form_of_a_jwt(change: Change, job_token: Fixture) -> None:
    is_jwt = re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", str(job_token["token"]), re.ASCII) is not None
    text = "job tokens have the form of a JWT" if is_jwt else "job tokens do not have the form of a JWT"
    sees(change.id, ItemState.MADE if is_jwt else ItemState.NOT_MADE, text)
    observe(change.requirement, text)


PASSWORD_GRANT = named("19.0-password-grant")


@pytest.mark.parametrize("change", [PASSWORD_GRANT], ids=lambda change: change.id)
def test_whether_a_password_still_buys_a_token(
    change: Change,
    anonymous: Caller,
    developer: Caller,
    oauth_token_endpoint: Fixture,
) -> None:
    """A wrong password must be refused: otherwise the endpoint does not check passwords at all."""
    actor = given_password(developer.actor)
    form = {"grant_type": "password", "username": actor.username, "password": actor.password}
    url = str(oauth_token_endpoint["url"])
    wrong = anonymous.call("POST", url, json={**form, "password": "not-the-password"})
    given(wrong.exchange.is_refusal, f"a wrong password is not refused: status {wrong.status}")
    answer = anonymous.call("POST", url, json=form)
    buys = answer.is_served
    sees(change.id, ItemState.NOT_MADE if buys else ItemState.MADE, f"answers {answer.status}")
    observe(change.requirement, f"a name and a password {'still buy' if buys else 'do not buy'} a token")


def given_password(actor: Actor | None) -> Actor:
    given(actor is not None and bool(actor.username and actor.password), "the profile gives developer no password")
    assert actor is not None
    return actor
