"""Who may call what: every operation by every actor of its table, and what the text says of tokens."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import pytest

from conformance.suite.arrange import ABSENT, Arranged, Prepared, arranged
from conformance.suite.context import NotTested, Run, Unmet, current_run
from conformance.suite.derived import (
    ANONYMOUS,
    WRONG_TOKEN,
    caller_named,
    cells,
    claims_of,
    held_against,
    note,
    reads_of_a_project,
    served_caller,
    takes_part,
    token_in,
    with_token,
)
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    given,
    must,
    observe,
    project_path,
    verifies,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.suite import Fixture, Operation


#: Who makes once more a call that somebody else has just made.
UNCHANGING = "developer"


def refusals(operation: Operation) -> frozenset[str]:
    """What a refusal of this operation shows, beyond the cells of its own table."""
    nobody = {ANONYMOUS, WRONG_TOKEN}
    return claims_of(
        *operation.refused.values(),
        "authentication.anonymous-is-refused" if ANONYMOUS in operation.refused else None,
        "authentication.anonymous-changes-nothing"
        if ANONYMOUS in operation.refused and not operation.is_read
        else None,
        "errors.refusal.changes-nothing" if not operation.is_read else None,
        "errors.refusal.is-client-error",
        "errors.refusal.code-without-right" if set(operation.refused) - nobody else None,
        "errors.body-shape",
    )


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and bool(operation.refused),
    requirements=refusals,
)
def test_who_lacks_the_role_is_refused_and_changes_nothing(operation: Operation) -> None:
    """The same call by an actor who must be served comes first: without it a refusal would prove nothing."""
    with arranged(operation) as prepared:
        before = prepared.state()
        control = prepared.sent_by(served_caller(operation))
        shows_change = prepared.state() != before
        refuse_what_is_so(prepared, control)
        prepared.again()
        table = cells(operation.refused)
        together = all_refused(prepared, [name for names in table.values() for name in names])
        for requirement, actors in table.items():
            for name in actors:
                refuse(prepared, name, requirement, control, together.get(name), shows_change=shows_change)


@dataclass(frozen=True)
class Tried:
    """What an actor was answered, and what is looked at before and after that."""

    answers: list[Answer]
    before: Any
    after: Callable[[], Any]


def all_refused(prepared: Arranged, names: list[str]) -> dict[str, Tried]:
    """
    Let these actors call, one after the other, and return what came of it where all were refused and nothing changed.

    Otherwise each has to call alone, to tell who it was, and nothing is returned.
    """
    found: dict[str, Tried] = {}
    with suppress(Unmet, NotTested):
        before = prepared.state()
        called = {name: sent_in_all_forms(prepared, caller_named(name)) for name in names}
        if all(answer.exchange.is_refusal for answers in called.values() for answer in answers):
            after = prepared.state()
            found = {name: Tried(called[name], before, lambda: after) for name in names if after == before}
    if not found:
        prepared.again()
    return found


def sent_in_all_forms(prepared: Arranged, caller: Caller) -> list[Answer]:
    forms = [prepared.sent_by(caller), *(call.sent_by(caller) for call in in_other_forms(prepared))]
    return [*forms, *(call.sent_by(caller) for call in elsewhere(prepared, caller))]


def refuse(
    prepared: Arranged, name: str, requirement: str, control: Answer, together: Tried | None, *, shows_change: bool
) -> None:
    """
    Let one actor call, unless all have done so together; whatever was changed is undone before the next one calls.

    That nothing changed proves something only where the same call, served, does change what is looked at. Where nothing
    can be changed, as by switching on what the instance keeps on, being refused is all there is to see.
    """
    operation = prepared.operation
    is_anonymous = name == ANONYMOUS
    general = "authentication.anonymous-is-refused" if is_anonymous else "errors.refusal.is-client-error"
    untouched = ["errors.refusal.changes-nothing", *(["authentication.anonymous-changes-nothing"] * is_anonymous)]
    found: list[Answer] = []
    with held_against([requirement], go_on=True):
        before = prepared.state() if together is None else together.before
        found += sent_in_all_forms(prepared, caller_named(name)) if together is None else together.answers
        after = prepared.state if together is None else together.after
        is_served = any(called.is_served for called in found)
        # Who is served has a right too many: what the text says of refusals is only to blame where one was meant.
        is_refusal = not is_served or (shows_change and after() == before)
        with held_against([requirement, *([general] if is_refusal else [])], go_on=True):
            found[0].must_be_refused(beside=control)
            for other in found[1:]:
                wanted = "a refusal, in whatever form the call is made"
                must(not other.is_served, wanted, f"status {other.status}", other.exchange)
        if prepared.request_example.state is not None:
            now = after()
            as_refused = untouched if shows_change and not is_served else []
            with held_against([requirement, *as_refused], go_on=True):
                must(now == before, f"the state as before: {before}"[:400], str(now)[:400])
    if not found:
        return  # the state could not be read, so nobody called
    answer = found[0]
    if name not in (ANONYMOUS, WRONG_TOKEN):
        note("errors.refusal.code-without-right", f"{operation.id} answers {answer.exchange.status} to {name}")
    note("errors.body-shape", f"the body of a {answer.exchange.status} is {shape(answer)}")
    if any(called.is_served for called in found):
        prepared.again()


def refuse_what_is_so(prepared: Arranged, control: Answer) -> None:
    """Whoever lacks the role is refused as well where the call would change nothing: another one has just made it."""
    lacking = {name: requirement for requirement, names in cells(prepared.operation.refused).items() for name in names}
    if prepared.operation.is_read or UNCHANGING not in lacking:
        return
    with held_against([lacking[UNCHANGING]], go_on=True):
        prepared.sent_by(caller_named(UNCHANGING)).must_be_refused(beside=control)


def in_other_forms(prepared: Arranged) -> list[Prepared]:
    """Return the call as it may also be made: by the path, with its parameters in the query, of a later page."""
    call, by_path = prepared.call, prepared.by_path
    forms = [by_path] if by_path else []
    if prepared.operation.takes_body_in_query and isinstance(call.body, dict):
        single = {name: value for name, value in call.body.items() if not isinstance(value, list)}
        forms.append(replace(call, query={**call.query, **single}, body=ABSENT))
    if prepared.operation.paginated:
        forms.append(replace(call, query={**call.query, "page": 2, "per_page": 1}))
    return forms


#: What tells that somebody below the role has no more of it in another place: a read that the same role is needed for.
WITNESSES = {
    "projects": ("merge_request_approval_setting", "getProjectApprovalSettings"),
    "groups": ("merge_request_approval_setting", "getGroupApprovalSettings"),
}
#: The places: what lies further inside, and what everybody may see, where no role is needed to find it.
ELSEWHERE = {"projects": ("subgroup_project", "public_project"), "groups": ("subgroup",)}
BELOW_EVERY_ROLE = ("developer", "reporter", "guest", "outsider")


def elsewhere(prepared: Arranged, caller: Caller) -> Iterator[Prepared]:
    """
    Yield the call for a project or group that lies further inside, and reads of a public project, by the path.

    The profile need not say who is who there: it is left alone unless the caller is refused something there that takes
    the role, and somebody else is served the same.
    """
    operation, kind = prepared.operation, prepared.operation.path.split("/")[1]
    below, witness = WITNESSES.get(kind, ("", operation.id))
    owner = next((entry for entry in operation.parameters if entry.place == "path" and entry.name == "id"), None)
    if witness == operation.id or caller.name not in BELOW_EVERY_ROLE or owner is None:
        return
    for name in ELSEWHERE[kind]:
        place = next(iter(current_run().profile.fixtures.get(name, ())), None)
        # What is public is no more so for those who are known elsewhere, and writes take a role everywhere.
        in_question = name != "public_project" or (operation.is_read and caller.name == "outsider")
        if place is None or not place.get("path") or not in_question:
            continue
        path = Path(f"/{kind}/{place.id}") / below
        if told_once(caller, path).exchange.is_refusal and told_once(served_caller(operation), path).is_served:
            yield prepared.call.having(owner, place["path"])


#: By run, actor and path: what a witness said; who has which role changes in no run.
_TOLD: WeakKeyDictionary[Run, dict[tuple[str, Path], Answer]] = WeakKeyDictionary()


def told_once(caller: Caller, path: Path) -> Answer:
    """Return what an actor is answered at a path, who is asked only once in a run, unless nobody answers."""
    known = _TOLD.setdefault(current_run(), {})
    if (caller.name, path) not in known or known[caller.name, path].exchange.status is None:
        known[caller.name, path] = caller.get(path)
    return known[caller.name, path]


def shape(answer: Answer) -> str:
    """Say in a few words what a body looks like; its wording is nobody's business."""
    try:
        body = json.loads(answer.exchange.body)
    except ValueError:
        return "no JSON" if answer.exchange.body else "empty"
    if isinstance(body, dict):
        return f"an object with {', '.join(sorted(body)) or 'nothing'}"
    return "an array" if isinstance(body, list) else "a single value"


# -- tokens ------------------------------------------------------------------------------------------------------------


def paths_open_to(caller: Caller, project: Fixture, *, at_most: int = 1) -> list[Path]:
    """Return paths of a project that a caller is served at; which ones there are depends on the version."""
    found: list[Path] = []
    for below in reads_of_a_project():
        path = Path(f"{project_path(project)}{below}")
        if len(found) < at_most and caller.get(path).is_served:
            found.append(path)
    given(bool(found), f"{caller.name} is served nowhere in the project")
    return found


def test_the_token_header_may_be_spelled_in_either_way(
    maintainer: Caller,
    wrong_token: Caller,
    project: Fixture,
) -> None:
    """HTTP takes no account of case in the names of headers, and the text shows both spellings."""
    path = paths_open_to(maintainer, project)[0]
    with verifies("authentication.private-token-spelling"):
        control = maintainer.call("GET", path, headers=token_in(maintainer, "Private-Token")).must_be_served()
        wrong_token.call("GET", path, headers=token_in(wrong_token, "Private-Token")).must_be_refused(beside=control)


def test_a_header_without_a_token_is_refused(maintainer: Caller, anonymous: Caller, project: Fixture) -> None:
    path = paths_open_to(maintainer, project)[0]
    control = maintainer.get(path)
    with verifies("authentication.empty-token-is-refused"):
        anonymous.call("GET", path, headers={"PRIVATE-TOKEN": ""}).must_be_refused(beside=control)


def altered(token: str) -> dict[str, str]:
    """Return tokens that are nearly a right one, by what was done to it; a token without letters has no other case."""
    found = {
        "in-other-case": token.swapcase(),
        "cut-short": token[:-1],
        "without-its-beginning": token[1:],
        "with-more-behind": f"{token}x",
        "with-more-in-front": f"x{token}",
    }
    return {what: text for what, text in found.items() if text and text != token}


def test_a_token_that_is_nearly_right_is_refused(maintainer: Caller, project: Fixture) -> None:
    """A token is compared as a whole and letter by letter."""
    token = maintainer.actor.token if maintainer.actor else ""
    for path in paths_open_to(maintainer, project, at_most=2):
        control = maintainer.get(path)
        for what, text in altered(token).items():
            with verifies("authentication.unknown-token-is-refused", go_on=True):
                with_token(f"maintainer-token-{what}", text).get(path).must_be_refused(beside=control)


def test_without_a_token_even_a_public_project_is_closed(
    maintainer: Caller,
    anonymous: Caller,
    public_project: Fixture,
) -> None:
    """The text makes no exception for what everybody may see."""
    number, name = project_path(public_project), public_project.get("path")
    forms = [number, *([f"/projects/{quote(name, safe='')}"] if name else [])]
    for path in paths_open_to(maintainer, public_project, at_most=len(reads_of_a_project())):
        control = maintainer.get(path)
        for form in forms:
            with verifies("authentication.anonymous-on-public-project", go_on=True):
                anonymous.get(path.replace(number, form, 1)).must_be_refused(beside=control)


def test_whether_bearer_tokens_open_other_operations_is_noted(maintainer: Caller, project: Fixture) -> None:
    path = paths_open_to(maintainer, project)[0]
    answer = maintainer.call("GET", path, headers=token_in(maintainer, "Authorization", "Bearer "))
    observe(
        "authentication.bearer-elsewhere",
        f"a bearer token is {'taken' if answer.is_served else 'refused'} where something of a project is read",
    )
