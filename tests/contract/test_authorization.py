"""Statements of the text about tokens. A refusal counts only if the caller with the role is served."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from conformance.suite.arrange import INHERITED, UNUSED_ID
from conformance.suite.arrange.code_completion import CHECK
from conformance.suite.context import current_run, current_test
from conformance.suite.derived import (
    caller_named,
    claims_of,
    held_against,
    is_known,
    reads_inside,
    reads_of_a_merge_request,
    reads_of_a_project,
    served_caller,
    takes_part,
    token_in,
    with_token,
)
from conformance.suite.expectations import Answer, Caller, Path, given, must, observe, project_path, verifies

if TYPE_CHECKING:
    from conformance.suite import Fixture, Operation, SuiteSession


#: The other spelling of the header for tokens.
OTHER_SPELLING = "Private-Token"
#: What headers might say, and nobody is known by: a name with a password, and tokens that were never issued.
OF_NOBODY = (
    {"Authorization": "Basic bm9ib2R5OmNvbmZvcm1hbmNl"},
    {"Authorization": "Bearer 0000-no-such-token-0000"},
    {"PRIVATE-TOKEN": INHERITED},
)
#: Paths below a project where no record exists, by area.
NOTHING_THERE = {
    "project-approval-rules": f"approval_rules/{UNUSED_ID}",
    "job-token-scope": f"job_token_scope/allowlist/{UNUSED_ID}",
}


# -- tokens ------------------------------------------------------------------------------------------------------------


def paths_open_to(caller: Caller, project: Fixture, *, at_most: int = 1, seed: int = 0) -> list[Path]:
    """Return paths of a project that show something to a caller; which ones exist depends on the version.

    An unfinished operation may serve nothing at all to everybody, and is no example of how callers are told apart.
    Each seed begins with another path: a token is read in the same way everywhere, and many runs together cover all.
    """
    found: list[Path] = []
    reads = reads_of_a_project()
    start = seed % max(len(reads), 1)
    # A service may have nothing but merge requests in its projects.
    for below in (*reads[start:], *reads[:start], *reads_inside(project)):
        path = Path(f"{project_path(project)}{below}")
        if len(found) < at_most and caller.get(path).shows_json:
            found.append(path)
    given(bool(found), f"{caller.name} is shown nothing of the project")
    return found


@pytest.mark.calls_a_project
def test_the_token_header_may_be_spelled_in_either_way(
    maintainer: Caller,
    wrong_token: Caller,
    project: Fixture,
    suite: SuiteSession,
) -> None:
    """HTTP header names are case-insensitive, and the text shows both spellings."""
    path = paths_open_to(maintainer, project, seed=suite.seed)[0]
    with verifies("authentication.private-token-spelling"):
        control = maintainer.call("GET", path, headers=token_in(maintainer, OTHER_SPELLING)).must_be_served()
        wrong_token.call("GET", path, headers=token_in(wrong_token, OTHER_SPELLING)).must_be_refused(beside=control)
        below = next((path for area, path in NOTHING_THERE.items() if current_run().profile.claims(area)), None)
        if below is not None:
            must_not_need_one_spelling_to_write(maintainer, Path(f"{project_path(project)}/{below}"))


def must_not_need_one_spelling_to_write(caller: Caller, nothing: Path) -> None:
    """Expect that writing to something that does not exist fails for a reason other than the token's header."""
    usual, other = caller.delete(nothing), caller.call("DELETE", nothing, headers=token_in(caller, OTHER_SPELLING))
    if usual.status != HTTPStatus.UNAUTHORIZED:
        expected = f"another status than 401, as {usual.status} with the other spelling"
        must(other.status != HTTPStatus.UNAUTHORIZED, expected, f"status {other.status}", other.exchange)


@pytest.mark.calls_a_project
def test_a_header_without_a_token_is_refused(
    maintainer: Caller, anonymous: Caller, project: Fixture, suite: SuiteSession
) -> None:
    path = paths_open_to(maintainer, project, seed=suite.seed)[0]
    control = maintainer.get(path)
    with verifies("authentication.empty-token-is-refused"):
        anonymous.call("GET", path, headers={"PRIVATE-TOKEN": ""}).must_be_refused(beside=control)
    with verifies("authentication.unknown-token-is-refused"):
        for credentials in OF_NOBODY:
            anonymous.call("GET", path, headers=credentials).must_be_refused(beside=control)


def altered(token: str) -> dict[str, str]:
    """Return tokens that differ slightly from a valid one, by the change; without letters there is no other case."""
    found = {
        "in-other-case": token.swapcase(),
        "cut-short": token[:-1],
        "without-its-beginning": token[1:],
        "with-more-behind": f"{token}x",
        "with-more-in-front": f"x{token}",
    }
    return {what: text for what, text in found.items() if text and text != token}


@pytest.mark.calls_a_project
def test_a_token_that_is_nearly_right_is_refused(maintainer: Caller, project: Fixture, suite: SuiteSession) -> None:
    """A token must match as a whole and letter by letter."""
    token = maintainer.actor.token if maintainer.actor else ""
    for path in paths_open_to(maintainer, project, at_most=2, seed=suite.seed):
        control = maintainer.get(path)
        for what, text in altered(token).items():
            with verifies("authentication.unknown-token-is-refused", go_on=True):
                with_token(f"maintainer-token-{what}", text).get(path).must_be_refused(beside=control)


def rules_listed_by(caller: Caller, answers: list[Answer]) -> list[Answer]:
    """Return the first rule, read on its own, of each list of rules that has one and serves it."""
    lists = [answer for answer in answers if answer.exchange.call.path.endswith("/approval_rules")]
    first = [(one.exchange.call.path, one.json[0]) for one in lists if isinstance(one.json, list) and one.json]
    alone = [
        caller.get(Path(f"{path}/{rule['id']}")) for path, rule in first if isinstance(rule, dict) and "id" in rule
    ]
    return [answer for answer in alone if answer.is_served]


def number_opened_in(project: Fixture) -> object:
    """Return the iid of a project's merge request; without one in the profile, 1, which most projects have."""
    opened = current_run().profile.first("public_merge_request")
    return opened["iid"] if opened is not None and opened.get("project_id") == project.id else 1


@pytest.mark.calls_a_project
def test_without_a_token_even_a_public_project_is_closed(
    maintainer: Caller,
    anonymous: Caller,
    public_project: Fixture,
) -> None:
    """The text makes no exception for public projects."""
    number, name = project_path(public_project), public_project.get("path")
    forms = [number, *([f"/projects/{quote(name, safe='')}"] if name else [])]
    opened = number_opened_in(public_project)
    of_both = [*reads_of_a_project(), *(f"/merge_requests/{opened}{one}" for one in reads_of_a_merge_request())]
    answers = [maintainer.get(Path(f"{number}{below}")) for below in of_both]
    controls = [answer for answer in answers if answer.is_served]
    given(bool(controls), f"{maintainer.name} is served nowhere in the project")
    for control in [*controls, *rules_listed_by(maintainer, controls)]:
        for form in forms:
            with verifies("authentication.anonymous-on-public-project", go_on=True):
                path = control.exchange.call.path.replace(number, form, 1)
                anonymous.get(path).must_be_refused(beside=control)
    if name and current_run().profile.claims("code-completion"):
        control = maintainer.post(CHECK, {"project_path": name})
        if control.is_served:
            with verifies("authentication.anonymous-on-public-project", go_on=True):
                anonymous.post(CHECK, {"project_path": name}).must_be_refused(beside=control)


#: The callers for a public project: one who may have a role that is too low there, and one who has none.
TOO_LOW = ("developer", "outsider")


def closed_to(operation: Operation) -> dict[str, str]:
    """Return the requirements that refuse them a read of a project; none if it names anything else."""
    is_read = operation.is_read and operation.path.startswith("/projects/{id}/") and operation.path.count("{") == 1
    return {name: operation.refused[name] for name in TOO_LOW if is_read and name in operation.refused}


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and bool(closed_to(operation)),
    requirements=lambda operation: claims_of(*closed_to(operation).values()),
)
def test_what_takes_a_role_takes_one_in_a_public_project_too(operation: Operation) -> None:
    """Being public gives nobody a role."""
    project = current_run().profile.first("public_project")
    current_test().results.settle(closed_to(operation).values())  # other tests ask in a private project
    if project is None:
        return
    path = Path(operation.path.format(id=project.id))
    control = served_caller(operation).get(path)
    for name, requirement in closed_to(operation).items() if control.is_served else ():
        if is_known(name):
            with held_against([requirement], go_on=True):
                caller_named(name).get(path).must_be_refused(beside=control)


@pytest.mark.calls_a_project
def test_whether_bearer_tokens_open_other_operations_is_noted(maintainer: Caller, project: Fixture) -> None:
    path = paths_open_to(maintainer, project)[0]
    answer = maintainer.call("GET", path, headers=token_in(maintainer, "Authorization", "Bearer "))
    observe(
        "authentication.bearer-elsewhere",
        f"a bearer token is {'taken' if answer.is_served else 'refused'} where something of a project is read",
    )
