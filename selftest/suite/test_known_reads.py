"""What a test reads again only if it may have changed, and how the end of a list is known."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
import pytest

from conformance.contract import Contract
from conformance.http.exchange import Call, Exchange
from conformance.reference.choices import Choices
from conformance.schema.response_validator import ResponseValidator
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import Run, current_run
from conformance.suite.expectations import Caller, unchanged
from conformance.suite.expectations import Path as ApiPath
from conformance.suite.expectations.words import settles
from conformance.suite.known_reads import KnownReads
from conformance.suite.writes import Writes
from conformance.target import Actor
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.profile_file import profile_from
from selftest.conftest import NO_AUTHORITIES, VERSION, in_a_test, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.reference.service import Service


@pytest.fixture
def begin() -> Iterator[Callable[..., Caller]]:
    """Begin a test against a service and return its maintainer."""
    with ExitStack() as stack:

        def maintainer(service: Service | None = None, **limits: float) -> Caller:
            served, base_url = stack.enter_context(serving(service))
            data = profile_data(served.world, base_url, VERSION)
            profile = profile_from({**data, "limits": {**data["limits"], **limits}}, "test")
            run = stack.enter_context(in_a_test(profile)).run
            return Caller(run, profile.actors["maintainer"])

        yield maintainer


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Count the calls that something takes."""
    calls: list[object] = []
    see = Run.__init__

    def counted(run: Run, *given: object, **named: object) -> None:
        see(run, *given, **named)  # type: ignore[arg-type]
        run.client.on_exchange(calls.append)

    monkeypatch.setattr(Run, "__init__", counted)

    def number(act: Callable[[], object]) -> int:
        before = len(calls)
        act()
        return len(calls) - before

    return number


def settings_of(caller: Caller) -> ApiPath:
    assert caller.actor is not None
    return ApiPath("/projects/1/job_token_scope")


def test_a_read_is_repeated_only_after_a_write(sent: Callable[..., int], begin: Callable[..., Caller]) -> None:
    caller = begin()
    path = settings_of(caller)
    assert sent(lambda: [caller.read(path), caller.read(path)]) == 1
    assert sent(lambda: caller.get(path)) == 1
    caller.patch(path, {"enabled": "maybe"})
    assert sent(lambda: caller.read(path)) == 1


def test_what_may_have_changed_meanwhile_is_read_again(sent: Callable[..., int], begin: Callable[..., Caller]) -> None:
    caller = begin()
    path = settings_of(caller)
    caller.read(path)
    assert sent(lambda: settles(lambda: bool(caller.read(path)), 1)) == 1

    def nothing() -> None:
        with unchanged(lambda: caller.read(path), "the settings"):
            pass

    assert sent(nothing) == 1


def test_for_a_target_with_delayed_reads_nothing_is_kept(
    sent: Callable[..., int], begin: Callable[..., Caller]
) -> None:
    caller = begin(settle_seconds=0.01)
    assert sent(lambda: [caller.read(settings_of(caller)), caller.read(settings_of(caller))]) == 2


@pytest.mark.parametrize(("status", "holds"), [(204, True), (403, True), (429, False), (None, False)])
def test_a_restored_state_is_known_only_if_each_write_was_answered(status: int | None, holds: bool) -> None:  # noqa: FBT001 - a value
    writes = Writes()
    known = KnownReads(ResponseValidator.of(Contract.load(), None).operation_of, writes, keeps=True)
    maintainer, path = Actor("maintainer", "a"), "/projects/1/job_token_scope"
    with known.before_changes() as holds_again:
        known.looked(Exchange(Call(maintainer, "GET", path), 200, {}, b"{}", 0))
    patched = Exchange(Call(maintainer, "PATCH", path), status, {}, b"", 0)
    writes.see(patched)
    known.see(patched)
    holds_again()
    with known.before_changes():
        assert (known.of(maintainer, path, {}) is not None) == holds


def test_known_rules_last_to_the_next_test_and_rules_of_others_stay(
    sent: Callable[..., int], begin: Callable[..., Caller]
) -> None:
    caller = begin()
    run, rules = current_run(), ApiPath("/projects/1/approval_rules")
    before = caller.list(rules).ids()

    def story(*names: str) -> None:
        run.known_reads.forget()  # as every test does at its start
        with rules_put_back(caller, rules):
            for name in names:
                caller.post(rules, {"name": name, "approvals_required": 1, "user_ids": [3]})

    story("one")
    assert sent(lambda: story("two", "three")) == 5
    theirs = {"name": "theirs", "approvals_required": 1, "user_ids": [3]}
    address, token = f"{run.profile.base_url}/api/v4{rules}", caller.actor.token if caller.actor else ""
    assert httpx.post(address, json=theirs, headers={"PRIVATE-TOKEN": token}, verify=NO_AUTHORITIES).is_success
    story("four")
    run.known_reads.forget()
    assert [rule["name"] for rule in caller.list(rules).entries if rule["id"] not in before] == ["theirs"]


@pytest.mark.parametrize(
    ("choices", "calls"),
    [
        (Choices(), [2, 1]),
        (Choices(pagination_totals=False), [2, 2]),
        (Choices(max_per_page=2), [3, 3]),
    ],
    ids=["with totals", "without", "of short pages"],
)
def test_a_list_ends_where_a_true_total_says_so_or_else_with_an_empty_page(
    sent: Callable[..., int], begin: Callable[..., Caller], choices: Choices, calls: list[int]
) -> None:
    service = prepared_service(version=VERSION, choices=choices)
    caller = begin(service)
    path = settings_of(caller) / "allowlist"
    found = []
    for _ in calls:
        for fixture in service.world.many("allowlist_projects")[:2]:
            caller.post(path, {"target_project_id": fixture.id})
        found.append(sent(lambda: caller.list(path)))
        assert len(caller.list(path).entries) == 3  # one of them is the project itself
    assert found == calls
