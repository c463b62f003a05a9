"""What stands around the things that calls are about, so that a call which reaches too far has something to hit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from conformance.suite.arrange.approval_rules import project_rules_path
from conformance.suite.arrange.integrations import integrations_path, set_up, slug_of
from conformance.suite.arrange.job_token_scope import ALLOWLISTS, limit_on
from conformance.suite.arrange.places import Place
from conformance.suite.arrange.reviews import approvals_put_back, created, merge_request_path, rules_put_back, user_id
from conformance.suite.context import NotTested, Unmet, current_run
from conformance.suite.expectations import Caller

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.target import Fixture


#: Makes something in the world, and takes it away at its end.
Part = Callable[[Place], AbstractContextManager[None]]


class Surroundings:
    """What was made in the world beside what calls are about: once for the tests of an area, until it is put back."""

    def __init__(self) -> None:
        """Begin with the world as it is."""
        self._stack = ExitStack()
        self._parts: tuple[Part, ...] = ()

    def make(self, area: str, place: Place) -> None:
        """
        Make what the calls of an area could hit, as far as the profile names it and the target lets it be made.

        What was made for another area and is not needed here is put back before. What cannot be made or put back is
        for other tests to find.
        """
        wanted = _AROUND.get(area, ())
        if self._parts == wanted:
            return
        self.put_back()
        self._parts = wanted
        for part in wanted:
            with suppress(Unmet, NotTested):
                self._stack.enter_context(_tried(part, place))

    def put_back(self) -> None:
        """Put all of it back, the last first."""
        self._parts = ()
        self._stack.close()


@contextmanager
def _tried(part: Part, place: Place) -> Iterator[None]:
    stack = ExitStack()
    stack.enter_context(part(place))
    try:
        yield
    finally:
        with suppress(Unmet, NotTested):
            stack.close()


def _maintainer(place: Place) -> Caller:
    return Caller(current_run(), place.profile.actors["maintainer"])


@contextmanager
def _entries(place: Place, name: str, which: int) -> Iterator[None]:
    """Let both allowlists of a project have an entry, the first fixture of its kind or the last one."""
    caller, project = _maintainer(place), place.fixture(name)
    with limit_on(caller, project), ExitStack() as stack:
        for allowlist in ALLOWLISTS:
            target = place.entries(allowlist.fixture)[which]
            stack.enter_context(allowlist.left_as_found(caller, project, [target]))
            allowlist.given_added(caller, project, target.id)
        yield


@contextmanager
def _project_rule(place: Place, name: str) -> Iterator[None]:
    """Let a project have a rule that names those who approve."""
    caller = _maintainer(place)
    rules = project_rules_path(place.fixture(name))
    with rules_put_back(caller, rules):
        created(caller, rules, **_approvers(place))
        yield


@contextmanager
def _review(place: Place, name: str) -> Iterator[None]:
    """Let another merge request of the project have a rule of its own, and approvals."""
    caller, run = _maintainer(place), current_run()
    merge_request = merge_request_path(place.fixture("project"), place.fixture(name))
    names = [one for one in ("approver", "second_approver") if one in place.profile.actors]
    approvers = [Caller(run, place.profile.actors[one]) for one in names]
    with (
        rules_put_back(caller, merge_request / "approval_rules"),
        approvals_put_back(caller, merge_request, *approvers),
    ):
        created(caller, merge_request / "approval_rules", user_ids=[user_id(approver) for approver in approvers])
        for approver in approvers:
            approver.post(merge_request / "approve")
        yield


@contextmanager
def _integration(place: Place, name: str, which: int) -> Iterator[None]:
    """Let a project have an integration, as the profile says it; one that it has stays as it is."""
    caller, integration = _maintainer(place), place.entries("integration")[which]
    path = integrations_path(caller, place.fixture(name))
    if caller.whole_list(path).having(slug=slug_of(integration)):
        yield
        return
    set_up(caller, path, integration, **_optional(integration))
    try:
        yield
    finally:
        caller.delete(path / slug_of(integration))


def _optional(integration: Fixture) -> dict[str, object]:
    """Return an optional parameter with its value, and all event flags on."""
    name, value = integration.get("distinctive_name"), integration.get("distinctive_value")
    events = dict.fromkeys(integration.get("events") or (), True)
    return {**events, **({str(name): value} if name else {})}


def _approvers(place: Place) -> dict[str, list[int]]:
    known = [place.profile.actors[name].id for name in ("approver", "second_approver") if name in place.profile.actors]
    numbers = [number for number in known if number is not None]
    return {"user_ids": numbers} if numbers else {}


_RULES: tuple[Part, ...] = (
    lambda place: _project_rule(place, "project"),
    lambda place: _project_rule(place, "sibling_project"),
    lambda place: _review(place, "second_merge_request"),
)
_AROUND: Mapping[str, tuple[Part, ...]] = {
    "job-token-scope": (
        lambda place: _entries(place, "project", -1),
        lambda place: _entries(place, "sibling_project", 0),
    ),
    "project-approval-rules": _RULES,
    "merge-request-approvals": _RULES,
    "group-approval-rules": _RULES,
    "approval-settings": _RULES,
    "project-approval-configuration": _RULES,
    "integrations": (
        lambda place: _integration(place, "project", 1),
        lambda place: _integration(place, "sibling_project", 0),
    ),
}
