"""Code completion: what a completion takes and gives, whole or in pieces, and who is told to have it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.code_completion import CHECK, COMPLETIONS, FILE, completion
from conformance.suite.expectations import Answer, Caller, given, must, observe, project_path, verifies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.target import Fixture

# Any number of seconds since 1970 from 2001 to 5138; the same in milliseconds is far above.
SECONDS = range(10**9, 10**11)
UNKNOWN_PATH = "conformance-no-such-group/conformance-no-such-project"

# Completions are rationed, and a backend may charge for them: every story asks for as few as it can.


def complete(caller: Caller, **beside: Any) -> Answer:
    """Ask for a completion of a small file."""
    return caller.post(COMPLETIONS, completion(**beside))


def must_be_a_result(answer: Answer) -> dict[str, Any]:
    """Expect one completion result as JSON, and return it."""
    result = answer.must_be(200).must_be_an(dict).json
    must("choices" in result and "model" in result, "a completion result", f"the keys {', '.join(result)}")
    return dict(result)


@pytest.fixture
def completes(maintainer: Caller) -> None:
    """Go on only where completions are to be had."""
    given(maintainer.target_declares("code_completion"), "the target does not declare code_completion")


# -- completions -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("completes")
def test_what_a_completion_needs_is_enough(maintainer: Caller) -> None:
    """Without intent, stream, project and what comes below the cursor."""
    answer = complete(maintainer)
    with verifies(
        "code-completion.completion.answered",
        "code-completion.stream.is-off-by-default",
        "code-completion.request.intent.is-optional",
    ):
        result = must_be_a_result(answer)
    with verifies("code-completion.result.created-counts-seconds"):
        created = result.get("created")
        given(isinstance(created, int), "created is no integer")
        must(created in SECONDS, "seconds since 1970", f"created = {created}", answer.exchange)


@pytest.mark.usefixtures("completes")
def test_everything_optional_may_be_sent_as_well(maintainer: Caller, project: Fixture) -> None:
    complete(maintainer).given_served()
    with verifies("code-completion.request.content-below-cursor.is-optional", go_on=True):
        complete(maintainer, current_file={**FILE, "content_below_cursor": "\n"}).must_be(200)
    with verifies("code-completion.request.intent.may-be-completion", go_on=True):
        complete(maintainer, intent="completion").must_be(200)
    with verifies("code-completion.request.intent.may-be-generation", go_on=True):
        complete(maintainer, intent="generation").must_be(200)
    with verifies("code-completion.request.project-path.is-optional"):
        given(project.get("path") is not None, "the profile does not name the path of project")
        complete(maintainer, project_path=project["path"]).must_be(200)


@pytest.mark.usefixtures("completes")
def test_a_completion_comes_whole_or_in_pieces(maintainer: Caller) -> None:
    """In pieces, the form of the answer is the service's own; that it answers is not."""
    with verifies("code-completion.stream.off"):
        must_be_a_result(complete(maintainer, stream=False))
    streamed = complete(maintainer, stream=True)
    with verifies("code-completion.stream.on"):
        streamed.must_be(200)
    observe("code-completion.stream.form", f"a streamed completion is {form_of(streamed)}")


def form_of(answer: Answer) -> str:
    """Say which media type and framing an answer has."""
    body = answer.exchange.body.lstrip()
    kind = answer.exchange.headers.get("content-type", "of no media type").partition(";")[0]
    if body.startswith((b"data:", b"event:", b"id:", b":")):
        return f"{kind}, a stream of events"
    lines = [line for line in body.splitlines() if line.strip()]
    if is_json(body):
        return f"{kind}, one JSON document"
    return f"{kind}, {'lines of JSON' if lines and all(map(is_json, lines)) else 'plain text'}"


def is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


NO_TEXT = {"conformance": "abc"}
WRONG_FILES: Mapping[str, Any] = {
    "current-file.is-object": "greeting.py",
    "file-name.is-required": {"content_above_cursor": FILE["content_above_cursor"]},
    "file-name.is-string": {**FILE, "file_name": NO_TEXT},
    "content-above-cursor.is-required": {"file_name": FILE["file_name"]},
    "content-above-cursor.is-string": {**FILE, "content_above_cursor": NO_TEXT},
    "content-below-cursor.is-string": {**FILE, "content_below_cursor": NO_TEXT},
}
WRONG: Mapping[str, tuple[Any, ...]] = {
    "current-file.is-required": ({},),
    **{name: ({"current_file": file},) for name, file in WRONG_FILES.items()},
    "intent.allows-no-other": (completion(intent="conformance-unknown-intent"), completion(intent=NO_TEXT)),
    "stream.is-boolean": (completion(stream="maybe"), completion(stream=NO_TEXT)),
    "project-path.is-string": (completion(project_path=NO_TEXT),),
}
"""The last part of a requirement's id, and requests that it rules out."""


@pytest.mark.usefixtures("completes")
@pytest.mark.requirements(*(f"code-completion.request.{name}" for name in WRONG))
def test_a_request_that_cannot_be_read_is_refused(maintainer: Caller) -> None:
    """One completion that is served is the control of all of them."""
    control = complete(maintainer)
    for name, bodies in WRONG.items():
        for body in bodies:
            must_refuse(f"code-completion.request.{name}", maintainer.post(COMPLETIONS, body), control)


def must_refuse(requirement: str, answer: Answer, control: Answer) -> None:
    with verifies(requirement, go_on=True):
        answer.must_be_refused(beside=control)


def test_nobody_completes_while_the_flag_is_off(maintainer: Caller, project: Fixture) -> None:
    given(maintainer.target_declares("code_completion_flag_off"), "the target does not declare that the flag is off")
    with verifies("code-completion.completion.follows-the-flag"):
        known = maintainer.get(project_path(project) / "merge_request_approval_setting")
        complete(maintainer).must_be_refused(beside=known)


# -- who has completions -----------------------------------------------------------------------------------------------


def check(caller: Caller, path: object) -> Answer:
    """Ask whether the project of a path has code completion."""
    return caller.post(CHECK, {"project_path": path})


def given_that_the_check_tells_apart(caller: Caller) -> None:
    """Go on only where not everything is said to have completions: a check without a body shows nothing else."""
    given(not check(caller, UNKNOWN_PATH).is_served, "a project that does not exist is said to have completions too")


def test_a_project_that_has_completions_is_told_so(maintainer: Caller, enabled_project: Fixture) -> None:
    given_that_the_check_tells_apart(maintainer)
    with verifies("code-completion.enabled.is-on"):
        check(maintainer, enabled_project["path"]).must_be(200)


def test_a_project_may_have_completions_through_its_group(maintainer: Caller, group_enabled_project: Fixture) -> None:
    given_that_the_check_tells_apart(maintainer)
    with verifies("code-completion.enabled.is-on-through-group"):
        check(maintainer, group_enabled_project["path"]).must_be(200)


def test_a_project_without_completions_is_told_so(
    maintainer: Caller,
    disabled_project: Fixture,
    enabled_project: Fixture,
) -> None:
    """A 403 may also mean that the caller has no right to ask: the same caller is told about another project."""
    check(maintainer, enabled_project["path"]).given_served()
    with verifies("code-completion.enabled.is-off"):
        check(maintainer, disabled_project["path"]).must_be(403)


def test_an_empty_or_unknown_path_is_not_found(maintainer: Caller, project: Fixture) -> None:
    known = check(maintainer, project["path"])
    given(known.status in (200, 403), f"the check answers {known.status} for a project that exists")
    with verifies("code-completion.enabled.empty-path", go_on=True):
        check(maintainer, "").must_be(404)
    with verifies("code-completion.enabled.unknown-project"):
        check(maintainer, UNKNOWN_PATH).must_be(404)


def test_a_readable_project_has_completions_or_has_none(maintainer: Caller, project: Fixture) -> None:
    answer = check(maintainer, project["path"])
    has_feature = maintainer.target_declares("code_completion")
    service = "a service with code completion" if has_feature else "a service without code completion"
    observe("code-completion.enabled.answer-without-the-feature", f"{service} answers the check with {answer.status}")
    given_that_the_check_tells_apart(maintainer)
    with verifies("code-completion.enabled.answers"):
        given(has_feature or answer.status != 404, "the target has no code completion")
        answer.must_be(200, 403)
