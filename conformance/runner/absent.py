"""Before the first test, finds operations that the target lacks and fails the requirements that claim them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from conformance.errors import TargetError
from conformance.http.client import RequestsSpentError, TargetGoneError
from conformance.results.record import Check, Outcome, Reason
from conformance.suite.evidence import evidence_of
from conformance.target.names import PRESUMED
from conformance.target.version import asking_actor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.results.plan import Plan
    from conformance.suite.absences import Absence
    from conformance.suite.context import Run

#: File in the workers' folder: one process writes there what it found out for all of them.
_FILE = "absent.json"
#: Other calls that services of this kind answer, and that the tests of no area read.
_BESIDE = ("/version", "/user", "/projects/{}", "/projects/{}/approvals", "/projects/{}/repository/tree")


#: What was found before, by kind, as `Absences.known` returns it; None to look.
Known = Mapping[str, list[str]] | None


def know_absent(run: Run, look: Callable[[Known], None], folder: Path | None, *, is_worker: bool) -> None:
    """Tell a run which operations the target lacks; `look` looks for them, or takes over what was found.

    The process that keeps the record looks now and writes the result into a folder. A worker reads it from there before
    its first test. A worker does not look now: the calls need a ledger, and a worker may start before a ledger has been
    begun.
    """
    if folder is None or not is_worker:
        look(None)
    if folder is None:
        return
    if is_worker:
        run.before_tests = partial(_learn, run, look, folder / _FILE, run.before_tests)
    else:
        (folder / _FILE).write_text(json.dumps(run.absences.known()), encoding="utf-8")


def _learn(run: Run, look: Callable[[Known], None], file: Path, was_before_tests: Callable[[], None]) -> None:
    """Read what one process found out for all workers, or look; then always run what had to run before tests."""
    run.before_tests = was_before_tests
    known = None
    with suppress(OSError, ValueError):
        known = json.loads(file.read_text(encoding="utf-8"))
    with suppress(TargetError, TargetGoneError, RequestsSpentError):  # the tests will say so
        look(known)
    was_before_tests()


def know_and_tell(run: Run, plan: Plan, write: Callable[[Check], None], known: Known) -> None:
    """Know the operations that the target lacks, and fail their requirements, also of those that tests find later."""
    if known is None:
        look_for_absent(run, plan)
    else:
        run.absences.take(known)
    run.absences.tell_of_each(partial(_say_absent, run, plan, write))


def look_for_absent(run: Run, plan: Plan) -> None:
    """Find the operations that a run needs and the target lacks; raise TargetError when the target has none at all.

    When the version is unknown, nobody can say whether the target should have what a version added or removed.
    """
    owed = {row.id for row in plan.requirements if row.status == "applicable"}
    given_up = _maybe_given_up(run)
    operations = [
        operation
        for operation in run.validator.operations
        if operation.success.requirement in owed
        and operation.id not in given_up
        and not (run.traces and run.traces.is_bound(operation))
    ]
    areas = {area for name in plan.selected for area in plan.tests[name].areas}
    needed = [operation for operation in operations if operation.area in areas]
    run.absences.look_for(needed, only_reads=run.only_reads)
    if run.absences.barred:
        raise TargetError(
            f"{run.profile.redacted()['base_url']} forbids each {' and '.join(sorted(run.absences.barred))} by an HTML "
            "page (status 403), and answers others with data: something in front of the service seems to bar them, and "
            "what a run changes could not be put back. Let them through, or run with --read-only."
        )
    if run.absences.short_of_scope:
        raise TargetError(
            f"Each write by {', '.join(sorted(run.absences.short_of_scope))} is refused for the scope of the token "
            "(403, insufficient_scope): such tokens may only read. Write tokens into the profile that may write, such "
            "as with the scope api, or run with --read-only."
        )
    is_about_needed = run.absences.is_nothing_there
    others = [entry for entry in operations if entry not in needed]
    for some in ([entry for entry in others if entry.is_read], [entry for entry in others if not entry.is_read]):
        if not run.absences.is_something_there:
            run.absences.look_for(some, only_reads=run.only_reads)
    if run.absences.is_nothing_there and (is_about_needed or not _is_answered_beside(run)):
        raise TargetError(
            f"Nothing of this API is there: {run.profile.redacted()['base_url']} answers each operation with 404, 405 "
            "or 501, or as it answers any path. base_url is the address above /api/v4. If it is right, check the "
            "numbers of the fixtures, and that the actors may see them. A gateway that does not reach the service may "
            "answer like this as well: then run again later."
        )


def _is_answered_beside(run: Run) -> bool:
    """Tell whether the target answers anything else: it may have the selected operations, although not the others."""
    project = run.profile.value("project")
    paths = [path.format(project) for path in _BESIDE if project is not None or "{" not in path]
    answers = (run.client.send(asking_actor(run.profile), "GET", path) for path in paths)
    return any(not answer.is_not_there for answer in answers)


def _maybe_given_up(run: Run) -> set[str]:
    """Return the reads that may be removed in a version that the target may have, if the profile does not name it."""
    rows = [row for name, row in PRESUMED.items() if name not in run.profile.features and row.is_given_up]
    areas = {row.presumed_in for row in rows if row.is_dispensable(run.profile.version)}
    return {entry.id for entry in run.validator.operations if entry.area in areas and entry.is_read}


def _say_absent(run: Run, plan: Plan, write: Callable[[Check], None], absence: Absence) -> None:
    """Fail the one requirement that states that an operation exists; a second try would not change that."""
    name = absence.operation.success.requirement
    row = next((row for row in plan.requirements if row.id == name), None)
    if row is None or row.status != "applicable" or not row.selected:
        return
    write(
        Check(
            requirement=row.id,
            outcome=Outcome.FAILED,
            test=next(iter(row.tests), ""),
            reason=Reason.OPERATION_ABSENT,
            expected="an operation that is there",
            actual=f"none: {absence.seen}",
            place=absence.operation.label,
            # The last call is the one that most reports show: the plainest, which `seen` names.
            evidence=tuple(evidence_of(one, run.client) for one in absence.below_the_prefix if one.call.actor)[2::-1],
        )
    )
