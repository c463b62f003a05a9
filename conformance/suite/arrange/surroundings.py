"""Makes things beside those that calls are about, so that a call with too wide an effect has something to hit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from conformance.results.record import Reason
from conformance.suite.arrange import arranged
from conformance.suite.arrange.approval_rules import project_rules_path
from conformance.suite.arrange.approval_settings import RETAIN, of_project
from conformance.suite.arrange.integrations import integrations_path, set_up, slug_of
from conformance.suite.arrange.job_token_scope import (
    ALLOWLISTS,
    GROUPS,
    PROJECTS,
    Allowlist,
    limit_of,
    limit_on,
    scope_path,
)
from conformance.suite.arrange.places import Place
from conformance.suite.arrange.reviews import approvals_put_back, approving, created, merge_request_path
from conformance.suite.context import NotTested, Unmet, current_run, current_test
from conformance.suite.expectations import Caller, Path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.target import Fixture


#: Makes something in the world, and removes it at its end.
Part = Callable[[Place], AbstractContextManager[None]]


class Surroundings:
    """What was made beside the things that calls are about, for consecutive tests, until it is removed."""

    def __init__(self) -> None:
        """Begin without any surroundings."""
        self._made: dict[Part, ExitStack] = {}
        self._refused: set[Part] = set()
        """What could not be made; nothing restores what belongs to it."""
        self._area: str | None = None

    def make(self, name: str, area: str, place: Place) -> None:
        """Make what an operation of an area, or its reads, could hit by mistake, as far as the profile names it.

        What was made for an earlier operation stays if it is needed here too, or by a whole area, and is removed
        otherwise. If the target refuses to make or remove something, other tests report that.
        """
        staying = {part for parts in _AROUND_AREAS.values() for part in parts}
        wanted = dict.fromkeys((*_AROUND_ALL, *_AROUND_AREAS.get(area, ()), *_AROUND_OPERATIONS.get(name, ())))
        # Making and removing is not what the running test is about.
        with current_test().results.settling_nothing(unless=lambda: False):
            if area != self._area and _ENTRY in self._made.keys() - self._refused:
                _switch_limit_on(place)
            self._area = area
            for part in [part for part in reversed(self._made) if part not in {*wanted, *staying}]:
                self._made.pop(part).close()
            for part in wanted:
                if part not in self._made:
                    self._made[part] = ExitStack()
                    self._refused.add(part)
                    with suppress(Unmet, NotTested):
                        self._made[part].enter_context(_tried(part, place))
                        self._refused.discard(part)

    def put_back(self) -> None:
        """Remove all of it, the last first."""
        with ExitStack() as all_of_it:  # the rest is removed as well if one part cannot be
            for made in self._made.values():
                all_of_it.callback(made.close)
            self._made.clear()
        current_run().known_reads.forget_everything()  # a write that reached too far may have changed any of it


@contextmanager
def _tried(part: Part, place: Place) -> Iterator[None]:
    stack = ExitStack()
    stack.enter_context(part(place))
    try:
        yield
    finally:
        with suppress(Unmet, NotTested):
            stack.close()


def _entries(allowlist: Allowlist, name: str, which: int) -> Part:
    """Put an entry on an allowlist of a project: the first fixture of its kind or the last one."""

    @contextmanager
    def made(place: Place) -> Iterator[None]:
        caller, project = Caller.named("maintainer"), place.fixture(name)
        target = place.entries(allowlist.fixture)[which]
        with limit_on(caller, project), allowlist.left_as_found(caller, project, [target]):
            allowlist.given_added(caller, project, target.id)
            yield

    return made


def _switch_limit_on(place: Place) -> None:
    """Switch the limit on that an earlier area may have switched off: only so can another wrong switch-off be seen."""
    caller, project = Caller.named("maintainer"), place.fixture("project")
    with suppress(Unmet, NotTested):
        if not limit_of(caller, project):
            caller.patch(scope_path(project), {"enabled": True})


def _project_rule(name: str) -> Part:
    """Create a project rule that names those who approve."""
    return lambda place: _rule(place, project_rules_path(place.fixture(name)))


def _rule_of_another_merge_request(place: Place) -> AbstractContextManager[None]:
    """Create a rule in another merge request of the project."""
    return _rule(place, _second_merge_request(place) / "approval_rules")


@contextmanager
def _rule(place: Place, rules: Path) -> Iterator[None]:
    """Create one more rule in a list; it is deleted at the end, whatever else was made there meanwhile."""
    caller = Caller.named("maintainer")
    number = created(caller, rules, **_named(place))["id"]
    try:
        yield
    finally:
        caller.delete(rules / number)


def _approvals(project: str, name: str) -> Part:
    """Let everybody who may approve have approved a merge request."""

    @contextmanager
    def made(place: Place) -> Iterator[None]:
        merge_request, approvers = merge_request_path(place.fixture(project), place.fixture(name)), approving(place)
        with approvals_put_back(Caller.named("maintainer"), merge_request, *approvers):
            for approver in approvers:
                approver.post(merge_request / "approve")
            yield

    return made


def _integration(name: str, which: int) -> Part:
    """Set an integration up in a project, as the profile describes it; an existing one stays as it is."""

    @contextmanager
    def made(place: Place) -> Iterator[None]:
        caller, known = Caller.named("maintainer"), place.entries("integration")
        if which >= len(known):
            raise NotTested(Reason.PREREQUISITE_MISSING, f"the profile names {len(known)} integrations")
        integration = known[which]
        path = integrations_path(caller, place.fixture(name))
        if caller.whole_list(path).having(slug=slug_of(integration)):
            yield
            return
        set_up(caller, path, integration, **_optional(integration))
        try:
            yield
        finally:
            caller.delete(path / slug_of(integration))

    return made


@contextmanager
def _approvals_kept_on_push(place: Place) -> Iterator[None]:
    """Switch a setting of the project on, which is usually off at first: only so can a wrong switch-off be seen."""
    settings = of_project(Caller.named("maintainer"), place.fixture("project"))
    before = settings.values()
    if settings.is_free(RETAIN) and not before[RETAIN]:
        settings.without_selective_removals()
        settings.change(**{RETAIN: True})
    try:
        yield
    finally:
        settings.restore(before)


def _done(name: str) -> Part:
    """Do a write as in its example, so that what is read differs from the initial values."""

    @contextmanager
    def made(_: Place) -> Iterator[None]:
        known = current_run().validator.operations
        # A call that may have been removed at an unknown version is not made only for reads.
        operation = next((one for one in known if one.id == name), None) if current_run().traces is None else None
        if operation is None:
            yield
            return
        with arranged(operation) as prepared:
            prepared.sent_by(prepared.keeper).given_served()
            yield

    return made


def _optional(integration: Fixture) -> dict[str, object]:
    """Return an optional parameter with its value, and all event flags on."""
    name, value = integration.get("distinctive_name"), integration.get("distinctive_value")
    events = dict.fromkeys(integration.get("events") or (), True)
    return {**events, **({str(name): value} if name else {})}


def _second_merge_request(place: Place) -> Path:
    return merge_request_path(place.fixture("project"), place.fixture("second_merge_request"))


def _named(place: Place) -> dict[str, list[int]]:
    numbers = [caller.actor.id for caller in approving(place) if caller.actor and caller.actor.id is not None]
    return {"user_ids": numbers} if numbers else {}


_RULE, _ENTRY, _INTEGRATION = _project_rule("project"), _entries(PROJECTS, "project", -1), _integration("project", 1)
_APPROVALS = _approvals("project", "second_merge_request"), _approvals("fuzz_project", "fuzz_merge_request")
#: Things that a call of another area could hit.
_AROUND_ALL: tuple[Part, ...] = (_RULE, _ENTRY, _INTEGRATION, *_APPROVALS)
_RULES = (_RULE, _project_rule("sibling_project"), _rule_of_another_merge_request)
_AROUND_AREAS: Mapping[str, tuple[Part, ...]] = {
    "job-token-scope": (
        _entries(GROUPS, "project", -1),
        *(_entries(allowlist, "sibling_project", -1) for allowlist in ALLOWLISTS),
    ),
    "project-approval-rules": _RULES,
    "merge-request-approvals": _RULES,
    "group-approval-rules": _RULES,
    "approval-settings": _RULES,
    "project-approval-configuration": _RULES,
}
#: Things that only some calls could hit, and that would hide a wrong effect on other things.
_AROUND_OPERATIONS: Mapping[str, tuple[Part, ...]] = {
    "removeProjectFromJobTokenAllowlist": (_entries(PROJECTS, "sibling_project", 0),),
    "removeGroupFromJobTokenAllowlist": (_entries(GROUPS, "sibling_project", 0),),
    **dict.fromkeys(("createMergeRequestApprovalRule", "createProjectApprovalRule"), (_approvals_kept_on_push,)),
    # Another one than that of the area, which may have been removed with an earlier copy.
    "deleteMergeRequestApprovalRule": (_project_rule("project"),),
    "disableIntegration": (
        _SIBLINGS := (
            _integration("sibling_project", 0),
            _integration("sibling_project", -1),
            _integration("subgroup_project", 0),
        )
    ),
    "disableService": _SIBLINGS,
    # Made again for the reads, because an earlier call may have lost its flags.
    "reads of integrations": (_integration("sibling_project", 0),),
    # The group last, because it may lock what is in it.
    "reads of approval-settings": (_done("updateProjectApprovalSettings"), _done("updateGroupApprovalSettings")),
    "reads of project-approval-configuration": (_done("updateProjectApprovalConfiguration"),),
}
