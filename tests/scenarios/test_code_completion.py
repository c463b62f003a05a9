"""Code completion: what a request needs and returns, whole or streamed, and which projects have it."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from conformance.suite.arrange import INHERITED
from conformance.suite.arrange.code_completion import CHECK, COMPLETIONS, FILE, UNKNOWN_PATH, completion
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import administrators, caller_named, is_known
from conformance.suite.expectations import (
    Answer,
    Caller,
    given,
    given_field,
    must,
    observe,
    project_path,
    verifies,
    whole_number,
)
from conformance.suite.load import at_once, in_turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.suite import Fixture

#: Projects that lie in more than one group.
DEEP = ("subgroup_project", "inner_project")

# Any number of seconds since 1970 from 2001 to 5138; the same in milliseconds is far above.
SECONDS = range(10**9, 10**11)
#: Makes some ten thousand characters of a short line, as a file of source code may have.
LINES = 1500

# Completions are rate-limited by user, and a backend may charge for them: every story makes as few as possible, and
# calls as the owner, while the tests derived from the contract call as the maintainer.


def complete(caller: Caller, **beside: Any) -> Answer:
    """Ask for a completion of a small file."""
    return caller.post(COMPLETIONS, completion(**beside))


def must_be_a_result(answer: Answer) -> dict[str, Any]:
    """Expect one completion result as JSON, and return it."""
    result = answer.must_be(200).must_be_an(dict).json
    must("choices" in result and "model" in result, "a completion result", f"the keys {', '.join(result)}")
    return dict(result)


@pytest.fixture
def completes(owner: Caller) -> None:
    """Go on only if completions are available."""
    given(owner.target_declares("code_completion"), "the target does not declare code_completion")


# -- completions -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("completes")
def test_what_a_completion_needs_is_enough(owner: Caller) -> None:
    """Without intent, stream, project and the content below the cursor."""
    answer = complete(owner)
    with verifies(
        "code-completion.completion.answered",
        "code-completion.stream.is-off-by-default",
        "code-completion.request.intent.is-optional",
    ):
        result = must_be_a_result(answer)
    with verifies("code-completion.completion.answered", go_on=True):
        # Names and contents are texts in any script and of any length; what a backend does with rare ones is up to it.
        complete(
            owner, current_file={"file_name": "src/grüße_你好.py", "content_above_cursor": "# 你好 😀\n" * LINES}
        ).must_not_break()
        complete(owner, current_file={})  # it is refused, and that must not spoil the next one
        complete(
            owner, current_file={**FILE, "content_above_cursor": f"# Grüße\n{FILE['content_above_cursor']}"}
        ).must_be(200)
    with verifies("code-completion.choice.fields", go_on=True):
        given(
            bool(result["choices"]),
            "the completion has no choices; if none ever has, let the profile declare completions_without_choices",
        )
        for choice in result["choices"]:
            must(is_choice(choice), "text, index and finish_reason in each choice", repr(choice)[:200], answer.exchange)
    with verifies("code-completion.result.created-counts-seconds"):
        must_count_seconds(answer)


def must_count_seconds(answer: Answer) -> None:
    """Expect seconds in created, not milliseconds, which are much larger."""
    given(answer.given_served().shows_json, "the completion is answered with no JSON")
    result = answer.json
    created = whole_number(result.get("created")) if isinstance(result, dict) else None
    given(created is not None, "created is no integer")
    must(created in SECONDS, "seconds since 1970", f"created = {created}", answer.exchange)


def is_choice(choice: Any) -> bool:
    """Tell whether a choice has everything that is stated about it."""
    texts = isinstance(choice, dict) and all(isinstance(choice.get(name), str) for name in ("text", "finish_reason"))
    return texts and whole_number(choice.get("index")) is not None


@pytest.mark.usefixtures("completes")
def test_everything_optional_may_be_sent_as_well(owner: Caller, project: Fixture) -> None:
    answers = [complete(owner).given_served()]
    with verifies("code-completion.request.content-below-cursor.is-optional", go_on=True):
        complete(owner, current_file={**FILE, "content_below_cursor": "\r\n# Grüße\r\n"}).must_be(200)
    with verifies("code-completion.request.intent.may-be-completion", go_on=True):
        answers.append(complete(owner, intent="completion").must_be(200))
    below = {**FILE, "content_below_cursor": "\n"}
    with verifies("code-completion.request.intent.may-be-generation", go_on=True):
        # The content below the cursor was accepted before; it may be sent with either intent.
        answers.append(complete(owner, intent="generation", current_file=below).must_be(200))
    paths = paths_with_completions(owner, project)
    with verifies("code-completion.request.project-path.is-optional", go_on=True):
        own = given_field(project, "path", str)
        answers += [complete(owner, project_path=path).must_be(200) for path in paths]
        if not paths:  # nobody knows whether the project has any
            answers.append(complete(owner, project_path=own).given_served().must_be(200))
    named = {"project_path": paths[0]} if paths else {}
    together = complete(owner, intent="generation", stream=False, current_file=below, **named)
    with verifies("code-completion.completion.answered", "code-completion.stream.off", go_on=True):
        must_be_a_result(together)
        answers.append(together)
    with verifies("code-completion.result.choices", go_on=True):
        # What the first answer is may differ from those that follow.
        for answer in answers:
            given(answer.shows_json, "a completion is answered with no JSON")
            choices = answer.must_be_an(dict).json.get("choices")
            must(isinstance(choices, list), "choices as an array", repr(choices), answer.exchange)
    with verifies("code-completion.result.created-counts-seconds"):
        for answer in answers:
            must_count_seconds(answer)


def paths_with_completions(caller: Caller, project: Fixture) -> list[str]:
    """Return the paths of a project and of one in several groups, as far as they have completions, or of another one.

    For a project without completions, they may be refused.
    """

    def having_some(projects: Sequence[Fixture]) -> list[str]:
        paths = [str(one.get("path") or "") for one in projects]
        with suppress(Unmet):  # a target may lack the check
            return [path for path in paths if path and check(caller, path).is_served]
        return []

    deep = current_run().profile.fixtures.get("subgroup_project", ())[:1]
    return having_some((project, *deep)) or having_some(enabled_projects())[:1]


def enabled_projects() -> list[Fixture]:
    """Return the projects of the profile that have completions."""
    fixtures = current_run().profile.fixtures
    return [one for name in ("enabled_project", "group_enabled_project") for one in fixtures.get(name, ())]


@pytest.mark.usefixtures("completes")
def test_a_completion_comes_whole_or_in_pieces(owner: Caller) -> None:
    """When streamed, the form of the answer is up to the service, but it must answer."""
    with verifies("code-completion.stream.off"):
        must_be_a_result(complete(owner, stream=False))
    pieces = []
    for beside in ({}, {"intent": "completion"}):  # whichever of both comes first
        whole, streamed = at_once(partial(complete, owner), partial(complete, owner, stream=True, **beside))
        pieces.append(streamed)
        with verifies("code-completion.stream.off", go_on=True):
            must_be_a_result(whole)
    with verifies("code-completion.stream.on"):
        for streamed in (*pieces, complete(owner, stream=True, intent="generation")):
            streamed.must_be(200)
    observe("code-completion.stream.form", f"a streamed completion is {form_of(pieces[0])}")


def form_of(answer: Answer) -> str:
    """Describe the media type and framing of an answer."""
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
WRONG: Mapping[str, tuple[Any, ...]] = {
    "code-completion.request.current-file.is-required": ({}, {"stream": True}),
    "code-completion.request.current-file.is-object": ({"current_file": "greeting.py"},),
    "code-completion.request.file-name.is-required": (
        {"current_file": {"content_above_cursor": FILE["content_above_cursor"]}},
        {"current_file": {"content_above_cursor": FILE["content_above_cursor"]}, "stream": True},
    ),
    "code-completion.request.file-name.is-string": (completion(current_file={**FILE, "file_name": NO_TEXT}),),
    "code-completion.request.content-above-cursor.is-required": (
        {"current_file": {"file_name": FILE["file_name"]}},
        {"current_file": {"file_name": FILE["file_name"]}, "intent": "generation", "stream": True},
    ),
    "code-completion.request.content-above-cursor.is-string": (
        completion(current_file={**FILE, "content_above_cursor": NO_TEXT}),
    ),
    "code-completion.request.intent.allows-no-other": (
        completion(intent="conformance-unknown-intent"),
        completion(intent="COMPLETION"),
        completion(intent="completion-none"),
        completion(intent=INHERITED),
        completion(intent=NO_TEXT),
        completion(intent="conformance-unknown-intent", stream=True),
    ),
}
"""Requirements, and requests that each of them forbids."""

UNREADABLE: Mapping[str, tuple[Any, ...]] = {
    "code-completion.request.content-below-cursor.is-string": (
        completion(current_file={**FILE, "content_below_cursor": NO_TEXT}),
    ),
    "code-completion.request.stream.is-boolean": (completion(stream="maybe"),),
    "code-completion.request.project-path.is-string": (completion(project_path=NO_TEXT),),
}
"""Requirements, and requests in which a service may refuse or ignore the part that it cannot read."""


@pytest.mark.usefixtures("completes")
@pytest.mark.requirements(*WRONG)
def test_a_request_that_cannot_be_read_is_refused(owner: Caller) -> None:
    """One served completion is the control of all; right values beside a wrong one do not make a request right."""
    control = complete(owner)
    for requirement, (bare, *others) in WRONG.items():
        for body in (bare, *map(with_all_that_is_optional, others)):
            must_refuse(requirement, owner.post(COMPLETIONS, body), control)


def with_all_that_is_optional(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with every optional value that the profile has."""
    paths = [one["path"] for one in current_run().profile.fixtures.get("project", ()) if one.get("path")][:1]
    beside = {"intent": "completion", "stream": False, **({"project_path": paths[0]} if paths else {})}
    file = {"current_file": {"content_below_cursor": "\n", **body["current_file"]}} if "current_file" in body else {}
    return {**beside, **body, **file}


def must_refuse(requirement: str, answer: Answer, control: Answer) -> None:
    with verifies(requirement, go_on=True):
        answer.must_be_refused(beside=control)


@pytest.mark.usefixtures("completes")
@pytest.mark.requirements(*UNREADABLE)
def test_what_may_be_left_out_breaks_nothing_where_it_cannot_be_read(owner: Caller) -> None:
    complete(owner).given_served()
    for requirement, bodies in UNREADABLE.items():
        for body in bodies:
            must_not_break(requirement, owner.post(COMPLETIONS, body))


def must_not_break(requirement: str, answer: Answer) -> None:
    with verifies(requirement, go_on=True):
        answer.must_not_break()


def test_nobody_completes_while_the_flag_is_off(owner: Caller, project: Fixture) -> None:
    given(owner.target_declares("code_completion_flag_off"), "the target does not declare that the flag is off")
    with verifies("code-completion.completion.follows-the-flag"):
        known = owner.get(project_path(project) / "merge_request_approval_setting")
        complete(owner).must_be_refused(beside=known)


# -- which projects have completions -----------------------------------------------------------------------------------


def check(caller: Caller, path: object) -> Answer:
    """Ask whether the project with a path has code completion."""
    return caller.post(CHECK, {"project_path": path})


def given_that_the_check_tells_apart(caller: Caller) -> None:
    """Go on only if the check does not say yes to everything: without a body it shows nothing else."""
    given(not check(caller, UNKNOWN_PATH).is_served, "a project that does not exist is said to have completions too")


def test_a_project_that_has_completions_is_told_so(maintainer: Caller, enabled_project: Fixture) -> None:
    given_that_the_check_tells_apart(maintainer)
    with verifies("code-completion.enabled.is-on"):
        check(maintainer, given_field(enabled_project, "path", str)).must_be(200)


def test_a_project_may_have_completions_through_its_group(maintainer: Caller, group_enabled_project: Fixture) -> None:
    given_that_the_check_tells_apart(maintainer)
    with verifies("code-completion.enabled.is-on-through-group"):
        check(maintainer, given_field(group_enabled_project, "path", str)).must_be(200)


def test_a_project_without_completions_is_told_so(
    maintainer: Caller,
    owner: Caller,
    disabled_project: Fixture,
    enabled_project: Fixture,
) -> None:
    """A 403 may also mean that the caller may not ask, so the same caller is told about another project.

    The answer is the same for an actor who could switch completions on and for one who may only read, because the
    project has none. An actor without a role may be told that the project does not exist.
    """
    on, off = (given_field(project, "path", str) for project in (enabled_project, disabled_project))
    check(maintainer, on).given_served()
    with verifies("code-completion.enabled.is-off"):
        check(maintainer, off).must_be(403)
        for caller in (owner, *(caller_named(name) for name in ("developer",) if is_known(name)), *administrators()):
            if check(caller, on).is_served:
                sees = caller.get(f"/projects/{quote(off, safe='')}/approval_rules").is_served
                check(caller, off).must_be(403, *(() if sees else (404,)))


def test_an_empty_or_unknown_path_is_not_found(maintainer: Caller, project: Fixture) -> None:
    """A path that only begins or ends with a project's path is another project's or nobody's; a group's is nobody's."""
    path = given_field(project, "path", str)
    known = check(maintainer, path)
    given(known.status in (200, 403), f"the check answers {known.status} for a project that exists")
    with verifies("code-completion.enabled.empty-path", go_on=True):
        check(maintainer, "").must_be(404)
    with verifies("code-completion.enabled.unknown-project"):
        for unknown in paths_of_no_project(path):
            check(maintainer, unknown).must_be(404)
        for end in ends_of_deep_paths():
            answer = check(maintainer, end).must_not_break()
            # A project with that path may exist. One that the caller cannot see may be answered with 403 as well.
            if answer.is_served and not is_read_as_a_project(end, maintainer):
                answer.must_be(404)
        for short in deep_paths_without_their_middle():
            answer = check(maintainer, short)
            # Whoever owns the group at the top reads every project in it, so one that nobody reads does not exist.
            owners = [caller_named("owner")] if is_known("owner") else []
            if answer.status != HTTPStatus.NOT_FOUND and not is_read_as_a_project(short, maintainer, *owners):
                answer.must_be(404)
        for beside, _ in in_turns(partial(check, maintainer, UNKNOWN_PATH), partial(check, maintainer, path)):
            beside.must_be(404)


def paths_of_no_project(path: str) -> list[str]:
    """Return paths that are almost those of a project, or of a group, or lie beside projects with completions."""
    around, _, last = path.rpartition("/")
    fixtures = current_run().profile.fixtures
    near = [
        f"{UNKNOWN_PATH.partition('/')[0]}/{last}",
        f"{UNKNOWN_PATH.partition('/')[0]}/{path}",
        f"{path}-conformance-none",
        f"{path}/conformance-none",
        f"{around.partition('/')[0]}/conformance-none/{last}",
        # In a search, an underscore may match any character.
        *([f"{around}/{last[0]}_{last[2:]}"] if last[1:2].isalnum() else []),
    ]
    groups = [one.get("path") for one in fixtures.get("subgroup", ())[:1]]
    enabled = [one.get("path") for one in enabled_projects()]
    # That a group has completions says nothing about projects that do not exist in it.
    beside = [f"{str(found).rpartition('/')[0]}/conformance-none" for found in enabled if "/" in str(found)]
    return [*near, *filter(None, groups), *beside]


def is_read_as_a_project(path: str, *readers: Caller) -> bool:
    """Tell whether a path that is only likely to be nobody's is that of a project beyond the profile."""
    return any(reader.get(f"/projects/{quote(path, safe='')}/approval_rules").is_served for reader in readers)


def deep_paths_without_their_middle() -> list[str]:
    """Return paths of the first and the last part of a project at a deeper level, inside the group of the profile."""
    fixtures = current_run().profile.fixtures
    known = {one.get("path") for entries in fixtures.values() for one in entries}
    tops = {one.get("path") for one in fixtures.get("group", ())}
    deep = [str(one.get("path") or "").split("/") for name in DEEP for one in fixtures.get(name, ())[:1]]
    short = [f"{parts[0]}/{parts[-1]}" for parts in deep if len(parts) > 2 and parts[0] in tops]
    return [one for one in short if one not in known]


def ends_of_deep_paths() -> list[str]:
    """Return the last group and the mere name of a project at a deeper level."""
    fixtures = current_run().profile.fixtures
    known = {one.get("path") for entries in fixtures.values() for one in entries}
    deep = [str(one.get("path") or "").split("/") for one in fixtures.get("subgroup_project", ())[:1]]
    return [end for parts in deep if parts[:-2] and (end := "/".join(parts[-2:])) not in known]


def knows_a_public_project(caller: Caller) -> bool:
    """Tell whether the check says yes or no about a project that everybody may read."""
    public = current_run().profile.first("public_project")
    path = public.get("path") if public is not None else None
    return path is not None and check(caller, path).status in (200, 403)


def test_a_readable_project_has_completions_or_has_none(maintainer: Caller, project: Fixture) -> None:
    answer = check(maintainer, given_field(project, "path", str))
    has_feature = maintainer.target_declares("code_completion")
    service = "a service with code completion" if has_feature else "a service without code completion"
    observe("code-completion.enabled.answer-without-the-feature", f"{service} answers the check with {answer.status}")
    given_that_the_check_tells_apart(maintainer)
    with verifies("code-completion.enabled.answers"):
        # Without the feature, the check may be missing, or nobody be entitled to ask.
        says_nothing = answer.exchange.is_refusal and answer.status != HTTPStatus.FORBIDDEN and not has_feature
        offered = not says_nothing or knows_a_public_project(maintainer)
        given(offered, f"the check answers {answer.status} for each project, so there seems to be no code completion")
        answer.must_be(200, 403)
        known = current_run().profile.fixtures
        for other in (*known.get("subgroup_project", ())[:1], *known.get("personal_project", ())[:1]):
            if maintainer.get(project_path(other) / "approval_rules").is_served and other.get("path"):
                check(maintainer, other["path"]).must_be(200, 403)
