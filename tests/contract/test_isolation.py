"""A call changes only its own object: each write leaves the rest of the world, and no read changes anything."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import Arranged, Place, arranged
from conformance.suite.arrange.reviews import created
from conformance.suite.arrange.surroundings import Surroundings
from conformance.suite.context import NotTested, Unmet, Violation, current_run, current_test
from conformance.suite.derived import caller_named, held_against, is_known, served_caller, standing_in, takes_part
from conformance.suite.expectations import Caller, Path, given, must, was_not_tested
from conformance.suite.expectations.words import settles
from conformance.suite.world import Permission, WorldSnapshot, requirements_that_something_stays

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.suite import Operation
    from conformance.suite.arrange import Prepared
    from conformance.suite.world_parts import Difference, WorldPart

pytestmark = pytest.mark.together

#: Operations that only read, although their method is not GET.
ASKING = ("createCompletion", "checkCodeSuggestionsEnabled")
#: Actors who read besides those who must be served: whatever they are answered, it changes nothing either.
READERS = ("approver", "developer", "admin")
#: How long the effects of a write may take, in seconds.
A_WHILE = 1.0
#: The requirements that reading changes nothing, by area, and that all readers see the same record.
STAYING = {
    "job-token-scope.leaves-the-rest": ("job-token-scope.same-everywhere",),
    "code-completion.leaves-the-rest": (),
    "group-approval-rules.leaves-the-rest": ("group-approval-rules.same-everywhere",),
    "project-approval-rules.leaves-the-rest": ("project-approval-rules.same-everywhere",),
    "project-approval-configuration.leaves-the-rest": ("project-approval-configuration.same-everywhere",),
    "merge-request-approvals.leaves-the-rest": ("merge-request-approvals.same-everywhere",),
    "approval-settings.leaves-the-rest": ("approval-settings.same-everywhere",),
    "group-relations-export.leaves-the-rest": (),
    "integrations.leaves-the-rest": ("integrations.same-everywhere",),
}


@pytest.fixture(scope="module")
def surroundings() -> Iterator[Surroundings]:
    """The surroundings of the called things, for all consecutive tests of an area."""
    made = Surroundings()
    yield made
    made.put_back()


def is_write(operation: Operation) -> bool:
    """Tell whether an operation writes; of two names for one operation, only the newer counts if both exist."""
    return takes_part(operation) and not (operation.is_read or operation.id in ASKING or operation.is_second_name)


@pytest.mark.every_operation(
    where=is_write,
    requirements=requirements_that_something_stays,
)
def test_a_write_leaves_the_rest_of_the_world(operation: Operation, surroundings: Surroundings) -> None:
    """The contract has a table of what may change besides the written thing: openapi/side-effects.yaml."""
    results = current_test().results
    try:
        if not write(operation, surroundings, afresh=False):
            surroundings.put_back()
            write(operation, surroundings, afresh=True)
        if current_test().soft_failures:
            surroundings.put_back()  # things that were hit are made again, for the second try and for the next tests
    finally:
        # Things that could not be read or arranged are left to the tests about them.
        results.settle(results.declared)


def write(operation: Operation, surroundings: Surroundings, *, afresh: bool) -> bool:
    """Call an operation, and compare the world after it with the world before.

    Unless `afresh`, the latter is what earlier tests saw: return False, and judge nothing, if there is a difference.
    """
    with ExitStack() as stack:
        surroundings.make(operation.id, operation.area, Place(current_run().profile))
        # The calls that make the call right are of the same kind, so they must not reach further either.
        whole = WorldSnapshot.taken(afresh=afresh, area=operation.area)
        given(not whole.is_empty, "nothing of the world can be read")
        written = current_run().writes.served
        earlier = {what: len(times) for what, times in written.items()}
        prepared = stack.enter_context(arranged(operation))
        caller, call = served_caller(operation), of_a_copy(prepared)
        stack.enter_context(a_namesake(prepared, call))
        before = whole.renewed(about=call)
        call.sent_by(caller).given_served()
        permission = Permission(current_run().profile, call, caller, before.readings)
        others, by_path = once_more(call), by_the_path(prepared, call)
        # Values that reached a neighbour earlier may equal those sent last, so the world is read in between.
        unlike = [*others, *without_events(prepared)]
        if any(other.body != call.body for other in unlike):
            by_path.sent_by(caller)
            if not look(before.of_area(operation.area), permission, afresh=afresh):
                return False
        for other in [*unlike, *as_a_copy(prepared, call), *of_absent_integrations(prepared)]:
            other.sent_by(caller)
        both = {(call.operation.method, each.path) for each in (call, by_path)}
        if sum(len(written.get(what, ())) - earlier.get(what, 0) for what in both) % 2 == 0:
            # An even number of calls that toggle something restores it. The first one was checked above.
            by_the_path(prepared, [call, *others][-1]).sent_by(caller)
        is_held = look(before, permission, afresh=afresh)
    if is_held and not current_test().soft_failures:
        whole.holds_again()
    return is_held


def by_the_path(prepared: Arranged, call: Prepared) -> Prepared:
    """Return a call with its project or group named by the full path, if the profile gives it."""
    named = prepared.by_path
    return replace(call, path_values={**call.path_values, "id": named.path_values["id"]}) if named else call


def once_more(call: Prepared) -> list[Prepared]:
    """Return the call with its switches reversed, and the deletion of what is deleted already."""
    body = call.body if isinstance(call.body, dict) else {}
    turned = {name: not value for name, value in body.items() if isinstance(value, bool)}
    if turned and call.operation.method in ("PUT", "PATCH"):
        return [replace(call, body={**body, **turned})]
    return [call] if call.operation.method == "DELETE" else []


def without_events(prepared: Arranged) -> list[Prepared]:
    """Return the set-up of an integration with all its events off, which others have on: at most one call."""
    call = prepared.call
    slug, entries = call.path_values.get("integration_slug"), prepared.place.profile.fixtures.get("integration", ())
    events = next((entry.get("events") for entry in entries if entry.get("slug") == slug), None) or ()
    if call.operation.method != "PUT" or not isinstance(call.body, dict) or not events:
        return []
    return [replace(call, body={**call.body, **dict.fromkeys(events, False)})]


def of_absent_integrations(prepared: Arranged) -> list[Prepared]:
    """Return the deletion, in each of two projects, of an integration that only the other project has."""
    parameter = next((entry for entry in prepared.operation.parameters if entry.name == "integration_slug"), None)
    owner = prepared.operation.owner
    if parameter is None or owner is None or prepared.operation.method != "DELETE":
        return []
    known = prepared.place.entries("integration")
    calls = []
    # Of the integrations in the profile, each project has another end: see what is made around these calls.
    for fixture, end in (("project", slice(-1, None)), ("sibling_project", slice(1))):
        for project in prepared.place.entries(fixture)[:1]:
            there = prepared.call.having(owner, project.get("id"))
            listed = prepared.keeper.whole_list(there.path.rpartition("/")[0])
            absent = [one.get("slug") for one in known if not listed.having(slug=one.get("slug"))]
            calls += [there.having(parameter, slug) for slug in absent[end]]
    return calls


def of_a_copy(prepared: Arranged) -> Prepared:
    """Return the call for a copy of a project rule, if it is about a rule of a merge request."""
    parameter = next((entry for entry in prepared.operation.parameters if entry.name == "approval_rule_id"), None)
    rules, _, _ = prepared.call.path.rpartition("/")
    project = prepared.call.path.partition("/merge_requests/")[0]
    if parameter is None or project == prepared.call.path:
        return prepared.call
    for body in bodies_of_copies(prepared, project):
        with suppress(Unmet, Violation):
            copy = prepared.keeper.post(rules, body)
            if copy.is_served and isinstance(copy.json, dict) and isinstance(copy.json.get("id"), int):
                return prepared.call.having(parameter, copy.json["id"])
    return prepared.call


def bodies_of_copies(prepared: Arranged, project: str) -> list[dict[str, Any]]:
    """Return the bodies that copy a rule of a project, if it is known to have one."""
    with suppress(Unmet, Violation):
        sources = prepared.keeper.list(f"{project}/approval_rules").having(rule_type="regular")
        body = {"name": "conformance-copy", "approvals_required": 5}
        return [{**body, "approval_project_rule_id": source.get("id")} for source in sources[-1:]]
    return []


def as_a_copy(prepared: Arranged, call: Prepared) -> list[Prepared]:
    """Return the creation of a copy, if a call creates a rule of a merge request: a copy involves the project."""
    project, is_inside, below = call.path.partition("/merge_requests/")
    if call.operation.method != "POST" or not is_inside or not below.endswith("/approval_rules"):
        return []
    return [replace(call, body=body) for body in bodies_of_copies(prepared, project)]


@contextmanager
def a_namesake(prepared: Arranged, call: Prepared) -> Iterator[None]:
    """Create another rule of the same name when a rule is deleted, if the service permits two with one name."""
    rules = call.path.rpartition("/")[0]
    if call.operation.method != "DELETE" or not rules.endswith("/approval_rules"):
        yield
        return
    made = None
    with suppress(Unmet):
        doomed = prepared.keeper.list(rules).the(id=call.path_values["approval_rule_id"])
        made = created(prepared.keeper, Path(rules), name=doomed.get("name"))["id"]
    try:
        yield
    finally:
        if made is not None:
            prepared.keeper.delete(f"{rules}/{made}")


def look(before: WorldSnapshot, permission: Permission, *, afresh: bool) -> bool:
    """Check every thing against the requirement that it stays; see `write`."""
    declared = current_test().declared
    for part, found in before.changes(permission):
        if found and not afresh:
            return False
        with held_against([permission.requirement(part, declared)], go_on=True):
            must_stay(part, found, permission.call.operation.id)
    return True


def must_stay(part: WorldPart, found: list[Difference], what: str) -> None:
    must(not found, f"the {part} as before {what}", "; ".join(str(change) for change in found[:3]))


# -- reading -----------------------------------------------------------------------------------------------------------


def marks_of(stays: str, *alike: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a test of reads; a service that only completes code has no rest that could be read."""
    needed = [pytest.mark.calls_a_project] if stays.startswith("code-completion.") else []
    return [pytest.mark.requirements(stays, *alike), *needed]


@pytest.mark.parametrize(
    "stays",
    [pytest.param(name, marks=marks_of(name, *alike), id=name) for name, alike in STAYING.items()],
)
def test_reading_changes_nothing_and_shows_the_same_to_all(stays: str, surroundings: Surroundings) -> None:
    """Readers with something to lose read too, for example one who has approved.

    What each answer says about a record is compared with the others on the way; here several actors read everything, by
    number and by path, after it was changed from its initial state.
    """
    try:
        if not read(stays, surroundings, afresh=False):
            surroundings.put_back()
            read(stays, surroundings, afresh=True)
    finally:
        current_test().results.settle([stays])


def read(stays: str, surroundings: Surroundings, *, afresh: bool) -> bool:
    """Read everything of an area, and compare the world after it with the world before; see `write`."""
    area = current_run().contract.requirements[stays].area
    with ExitStack() as stack:
        surroundings.make(f"reads of {area}", area, Place(current_run().profile))
        known = WorldSnapshot.known()
        lacking: list[NotTested | Unmet] = []
        reads = list(every_read(area, stack, lacking))
        if not reads and lacking:
            raise lacking[0]
        compared = current_run().shown.compared.copy()
        changes = changes_by(reads, afresh=afresh)
        if not afresh and any(found for _, found in changes):
            return False
        if {part.kind.name for part, found in changes if found} == {"approvals"}:
            # A reset of approvals that an earlier write started may have taken effect only now.
            for prepared in reads:
                prepared.make_right()
            settles(lambda: False, A_WHILE)
            changes = changes_by(reads, afresh=True)
        for part, found in changes:
            with held_against([stays], go_on=True):
                must_stay(part, found, f"the reads of {area}")
        look_alike(STAYING[stays], reads, compared)
    if not current_test().soft_failures:
        known.holds_again()
    return True


def look_alike(alike: tuple[str, ...], reads: list[Arranged], compared: Mapping[str, int]) -> None:
    """Count records as equal that were compared since then and not found to differ."""
    test = current_test()
    for name in alike:
        if test.run.shown.compared[name] > compared.get(name, 0):
            test.results.passed(name)  # unless a violation was seen
        elif not any(one.by_path for one in reads):
            was_not_tested(name, "the profile gives no path, by which the same could be read a second time")


def changes_by(reads: list[Arranged], *, afresh: bool) -> list[tuple[WorldPart, list[Difference]]]:
    """Let several actors read everything, by number and by path; return the changes in the world."""
    before = WorldSnapshot.taken(afresh=afresh)
    given(not before.is_empty, "nothing of the world can be read")
    for prepared in reads:
        everybody = readers(prepared.operation)
        for caller in everybody:
            prepared.sent_by(caller)
        if prepared.by_path is not None and prepared.operation.id not in ASKING:
            prepared.by_path.sent_by(everybody[0])
    return list(before.changes(lambda _, __: False))


def every_read(area: str, stack: ExitStack, lacking: list[NotTested | Unmet]) -> Iterator[Arranged]:
    """Yield every prepared read of an area; add what prevents other reads to `lacking`."""
    for operation in current_run().validator.operations:
        if operation.area == area and takes_part(operation) and (operation.is_read or operation.id in ASKING):
            try:
                prepared = stack.enter_context(arranged(operation))
            except (NotTested, Unmet) as error:
                lacking.append(error)
            else:
                yield prepared


def readers(operation: Operation) -> list[Caller]:
    """Return the readers: those who must be served, or an administrator if only these are, and some others.

    Nobody else reads the endpoints about completions.
    """
    others = () if operation.id in ASKING else READERS
    known = [name for name in others if is_known(name) and name not in operation.served]
    first = standing_in(operation, next(filter(is_known, operation.served), next(iter(operation.served))))
    return [first, *(caller_named(name) for name in known)]
