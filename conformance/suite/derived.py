"""Helpers of tests that are derived from the contract: who calls, and what an operation's answer shows."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from conformance.contract import Contract, Kind
from conformance.results.record import Outcome, Reason
from conformance.suite.arrange import Place, area_of, has_request_example
from conformance.suite.context import current_run, current_test
from conformance.suite.expectations import Caller, verifies
from conformance.suite.expectations.callers import NOBODY
from conformance.target import Actor
from conformance.target.spots import Spots

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from conformance.contract import DocumentedResponse, Operation, Parameter
    from conformance.target import Fixture

ANONYMOUS = "anonymous"
WRONG_TOKEN = NOBODY.name


def takes_part(operation: Operation) -> bool:
    """Tell whether derived tests call an operation: it has a request example, and the text says who is served."""
    return has_request_example(operation) and bool(operation.served)


def changes_a_state(operation: Operation) -> bool:
    """Tell whether an operation changes something that can be read before and after the call."""
    return area_of(operation).request_examples[operation.id].state is not None


def claims_of(*ids: str | None) -> frozenset[str]:
    """Return the ids that are not None."""
    return frozenset(name for name in ids if name)


def success_requirements(operation: Operation) -> frozenset[str]:
    """Return the requirements about the documented successes of an operation: status and schema."""
    return claims_of(
        *(
            name
            for response in operation.responses
            if response.is_success
            for name in (response.requirement, *operation.response_requirements(response))
        )
    )


def is_validation(requirement: str | None) -> bool:
    """Tell whether a requirement is about allowed input."""
    found = Contract.load().requirements.get(requirement or "")
    return found is not None and found.kind is Kind.VALIDATION


def documents_json(response: DocumentedResponse) -> bool:
    """Tell whether a response has a JSON body."""
    return any("json" in media for media in response.media_types)


def is_known(name: str) -> bool:
    """Tell whether the target profile has an actor; `anonymous` needs no entry."""
    return name in (ANONYMOUS, WRONG_TOKEN) or name in current_run().profile.actors


def caller_named(name: str) -> Caller:
    """Return an actor by the name that the contract uses; raise NotTested when the profile does not have it."""
    if name in (ANONYMOUS, WRONG_TOKEN):
        return Caller(current_run(), NOBODY if name == WRONG_TOKEN else None)
    return Caller.named(name)


def administrators() -> list[Caller]:
    """Return the administrator of the installation, if the profile has one: a few statements hold for everybody."""
    return [caller_named("admin")] if is_known("admin") else []


def with_token(name: str, token: str) -> Caller:
    """Return a caller outside the profile who sends this token; reports show the name in place of it."""
    return Caller(current_run(), Actor(name, token))


def served_caller(operation: Operation) -> Caller:
    """Return the first actor of the profile who must be served, or who stands in for one that the text may not mean.

    The text allows each user only some completions a minute, and a service may count refused ones as well. The stories
    about completions call as a developer, so that neither comes near the limit.

    Raise NotTested when the profile has none.
    """
    known = next((name for name in operation.served if is_known(name)), None)
    return standing_in(operation, known or next(iter(operation.served)))


def standing_in(operation: Operation, name: str) -> Caller:
    """Return an actor who must be served, or a stand-in for one; raise NotTested when there is none."""
    return area_of(operation).stand_in(caller_named(name), Place(current_run().profile, area=operation.area))


def token_in(caller: Caller, header: str, prefix: str = "") -> dict[str, str]:
    """Return the header that carries an actor's token, for calls that must send it in an unusual way."""
    return {header: f"{prefix}{caller.actor.token if caller.actor else ''}"}


@contextmanager
def held_against(ids: Iterable[str | None], *, go_on: bool = False) -> Iterator[None]:
    """Check the expectations inside against those of the given requirements that the running test declares.

    Works like `verifies`, for ids that come from the contract instead of the source of the test. Ids that the test does
    not declare, because they do not hold at the version or are not verified by tests, are skipped. Requirements that
    all operations verify together are not left open because one of them does not show them.
    """
    test = current_test()
    names = [name for name in dict.fromkeys(ids) if name and name in test.declared]
    shared = [name for name in names if test.run.is_shared(name)]
    with verifies(*names, go_on=go_on, elsewhere=shared) if names else nullcontext():
        yield


def note(requirement: str, what: str) -> None:
    """Record what the target chose, if the running test declares the requirement of the choice."""
    test = current_test()
    if requirement in test.declared:
        test.results.observed(requirement, what)


def cells(table: Mapping[str, str]) -> dict[str, list[str]]:
    """Return for each requirement of a table of actors those that the profile has.

    A requirement holds only if each of its actors was tried: if the profile lacks one, the requirement is not tested,
    whatever the others show, and the report names who is missing. A failure of the others still counts.
    """
    test = current_test()
    found: dict[str, list[str]] = {}
    missing: dict[str, list[str]] = {}
    for name, requirement in table.items():
        found.setdefault(requirement, [])
        (found if is_known(name) else missing).setdefault(requirement, []).append(name)
    for requirement, names in missing.items():
        if requirement in test.declared:
            detail = "; ".join(test.run.profile.missing(name) or f"nobody is {name}" for name in names)
            test.results.open_question(requirement, Outcome.NOT_TESTED, Reason.PREREQUISITE_MISSING, detail)
    return found


def reads_of_a_project() -> list[str]:
    """Return the reads below a project's path that need no other parameter, at the target's version.

    Operations that the target does not have are left out.
    """
    return _reads_below("/projects/{id}")


def reads_of_a_merge_request() -> list[str]:
    """Return the reads below a merge request's path that need no other parameter, at the target's version."""
    return _reads_below("/projects/{id}/merge_requests/{merge_request_iid}")


def reads_inside(project: Fixture) -> list[str]:
    """Return the reads below a project's path that are about a merge request in it; none if the profile names none."""
    spots = Spots(current_run().profile).all
    opened = [spot.iid for spot in spots if spot.number == project.id and spot.iid is not None]
    return [f"/merge_requests/{iid}{below}" for iid in opened[:1] for below in reads_of_a_merge_request()]


def _reads_below(start: str) -> list[str]:
    run = current_run()
    return [
        operation.path.removeprefix(start)
        for operation in run.validator.operations
        if operation.is_read
        and operation.path.startswith(f"{start}/")
        and operation.path.count("{") == start.count("{")
        if takes_part(operation) and not operation.feature and not operation.alias_of
        if operation.id not in run.absences.found
    ]


def parameters_where(operation: Operation, holds: Callable[[Parameter], bool]) -> list[Parameter]:
    """Return the parameters of query and body that fulfil a condition."""
    return [parameter for parameter in operation.parameters if parameter.place != "path" and holds(parameter)]


def requirements_of(parameters: Iterable[Parameter], name: str) -> Collection[str]:
    """Return one of the two requirements of each parameter: `requirement` or `requirement_required`."""
    return [getattr(parameter, name) for parameter in parameters if getattr(parameter, name)]
