"""Who may request completions, how often within a minute, and what an earlier call changes for a later one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import last_to_come, with_parameters
from conformance.proof.foreign.dimensions import (
    AGAIN,
    AT_ONCE,
    CALLER_AND_FORM,
    CALLER_AND_VALUE,
    FORM_SENT,
    LEVEL,
    OVER_TIME,
    RESETS,
)
from conformance.proof.foreign.paths import POST_COMPLETIONS, POST_ENABLED
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.errors import StatedError, ThrottledError, UnauthorizedError
from conformance.reference.http import Response
from conformance.reference.identity import Kind, Role, Visibility

if TYPE_CHECKING:
    from conformance.reference import Service


# -- completions -------------------------------------------------------------------------------------------------------


# The whole endpoint accepts both headers for the token.
@foreign(CALLER_AND_FORM, "Authentication, 2: the completion endpoint also accepts Bearer")
def a_stream_takes_no_bearer(service: Service) -> None:
    """A request for a stream is refused if its token is in the Authorization header."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if not request.header("private-token") and request.parameters.optional_boolean("stream"):
            raise UnauthorizedError
        return handler(request)


# A bearer token must belong to a user: with either header, every endpoint requires an authenticated caller.
@foreign(FORM_SENT, "Code completion: Authorization")
def any_bearer_completes(service: Service) -> None:
    """A request with any bearer token gets a completion."""

    @instead(service.access, "authenticate")
    def _(authenticate: Any, request: Any) -> Any:
        try:
            return authenticate(request)
        except UnauthorizedError:
            if request.route.key != POST_COMPLETIONS or not request.header("authorization"):
                raise
            return service.identities.users[service.world.actors["developer"].id]


# A bearer token is accepted for every completion.
@foreign(FORM_SENT, "Authentication: 2")
def streams_do_not_know_bearers(service: Service) -> None:
    """Streams have another handler, which reads only PRIVATE-TOKEN."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_boolean("stream") and not request.header("private-token"):
            raise StatedError(401, "401 Unauthorized")
        return handler(request)


@foreign(CALLER_AND_VALUE, "Code completion: completions")
def a_token_of_a_bearer_may_be_in_another_case(service: Service) -> None:
    """A bearer token is compared case-insensitively: another token gets a completion."""

    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = str(text(request))
        if request.route.key != POST_COMPLETIONS or request.header("private-token"):
            return sent
        return next((known for known in service.identities.tokens if known.lower() == sent.lower()), sent)


@foreign(AGAIN, "Code completion: stream, default false")
def who_was_streamed_to_once_is_streamed_to_from_then_on(service: Service) -> None:
    """A user who has requested a stream once gets a stream even if a later request does not ask for it."""
    completion, streaming = service.code_completion, set[int]()

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_boolean("stream"):
            streaming.add(request.caller.id)
        elif request.caller.id in streaming and not request.parameters.given("stream"):
            wanted = completion.read(request.parameters)
            completion.count(request.caller)
            return Response(chunks=completion.stream(wanted), media_type="text/plain; charset=utf-8")
        return handler(request)


@foreign(AT_ONCE, "Code completion: stream, default false")
def who_asks_before_a_stream_is_begun_is_streamed_to(service: Service) -> None:
    """Whether to stream is stored in a shared object: a request right before a streamed one is streamed, too."""
    last = last_to_come(service, POST_COMPLETIONS)

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        with_parameters(request, {"stream": last().parameters._values.get("stream")})
        return handler(request)


@foreign(CALLER_AND_VALUE, "Code completion: completions")
def a_token_of_a_bearer_may_lack_its_end(service: Service) -> None:
    """A bearer token is compared only up to its own length: without its last characters it gets a completion."""

    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = str(text(request))
        if not sent or request.route.key != POST_COMPLETIONS or request.header("private-token"):
            return sent
        return next((known for known in service.identities.tokens if known.startswith(sent)), sent)


# -- the check whether they are enabled --------------------------------------------------------------------------------


# 404 is for what does not exist: a missing group has no projects.
@foreign(CALLER_AND_FORM, "Code completion: enabled, 404")
def the_check_knows_projects_by_their_last_name(service: Service) -> None:
    """For an unknown path, the check uses only its last part, whatever the group."""
    identities = service.identities

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if "/" in path and identities.find_project(path) is None:
            like = (one for one in identities.projects.values() if one.path == path.rpartition("/")[2])
            path = next((one.full_path for one in like), path)
        check(caller, path)


@foreign(LEVEL, "Code completion: enabled, 404")
def groups_pass_for_projects(service: Service) -> None:
    """The check of a group's path answers 403, as if there were a project with that path."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if service.identities.find_group(path):
            raise StatedError(403, "403 Forbidden")
        check(caller, path)


@foreign(RESETS, "Code completion: enabled for the project or its group")
def what_a_project_says_beats_its_group(service: Service) -> None:
    """Once completions were switched off for a project, those of its group no longer matter."""
    completion = service.code_completion

    @instead(completion, "enabled")
    def _(enabled: Any, project: Any) -> bool:
        own = completion.switches.get((Kind.PROJECT, project.id))
        return enabled(project) if own is None else own


# 403 if the feature is disabled, whoever calls.
@foreign(CALLER_AND_FORM, "Code completion: enabled, 403")
def owners_have_the_feature_in_any_case(service: Service) -> None:
    """The check succeeds for everybody who could switch the feature on."""
    known = service.identities

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        project = known.find_project(path) if "/" in path else None
        if project is None or known.role_in(caller, project) < Role.OWNER:
            check(caller, path)


# A missing project is cached with the namespace as key.
@foreign(AGAIN, "Code completion: POST /code_suggestions/enabled, 404")
def a_project_that_is_missing_hides_its_neighbours(service: Service) -> None:
    """After a check of a missing project, the projects in the same group are unknown to the check."""
    missing: set[str] = set()

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        within = path.rpartition("/")[0]
        if within in missing:
            raise StatedError(404, "404 Project Not Found")
        if within and service.identities.find_project(path) is None:
            missing.add(within)
        check(caller, path)


@foreign(CALLER_AND_FORM, "Authentication 1")
def unknown_tokens_are_good_for_the_enabled_check(service: Service) -> None:
    """The check is served with any token."""

    @instead(service.access, "authenticate")
    def _(authenticate: Any, request: Any) -> Any:
        sent = service.access.token_text(request)
        if request.route.path == "/code_suggestions/enabled" and sent and sent not in service.identities.tokens:
            return next(user for user in service.identities.users.values() if user.admin)
        return authenticate(request)


@foreign(AT_ONCE, "Code completion: enabled, of two projects")
def two_checks_at_once_look_at_one_project(service: Service) -> None:
    """Two concurrent checks are both answered for the project of the later one."""
    last = last_to_come(service, POST_ENABLED)

    @handling(service, POST_ENABLED)
    def _(handler: Any, request: Any) -> Any:
        with_parameters(request, {"project_path": last().parameters._values.get("project_path")})
        return handler(request)


@foreign(AGAIN, "Code completion: enabled, 403 when disabled")
def the_second_check_of_a_disabled_project_passes(service: Service) -> None:
    """That a project was looked up is cached and treated as a yes: its second check is answered with 200."""
    refused: set[str] = set()

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        try:
            check(caller, path)
        except StatedError as error:
            if error.code != 403 or path not in refused:
                if error.code == 403:
                    refused.add(path)
                raise


@foreign(CALLER_AND_VALUE, "Authentication: all endpoints require an authenticated caller")
def anybody_is_told_whether_a_public_project_has_completions(service: Service) -> None:
    """The check of a public project is answered without a token."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        path = request.parameters.optional_string("project_path") if request.route.key == POST_ENABLED else None
        projects, users = service.identities.projects.values(), service.identities.users.values()
        is_public = any(one.full_path == path and one.visibility is Visibility.PUBLIC for one in projects)
        if is_public and not service.access.token_text(request):
            request.admit(next(iter(users)), None)
        else:
            admit(request)


# -- how many within a minute ------------------------------------------------------------------------------------------


@foreign(AGAIN, "Limits: POST /code_suggestions/completions, per user")
def the_limit_is_that_of_a_file(service: Service) -> None:
    """The requests of a user are counted separately by file name; the limit is for all requests of a user."""
    last: list[str] = []

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        last[:] = [wanted.file_name]
        return wanted

    @instead(service.code_completion, "count")
    def _(count: Any, caller: Any) -> None:
        count(replace(caller, id=hash((caller.id, *last))))


@foreign(OVER_TIME, "Limits: 60 requests per minute and user")
def the_rate_counts_private_tokens_alone(service: Service) -> None:
    """Only requests with the header PRIVATE-TOKEN are counted: with a bearer token there is no limit."""
    requests = service.code_completion.requests

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.header("private-token"):
            return handler(request)
        before = requests.pop(request.caller.id, ())
        try:
            return handler(request)
        finally:
            requests[request.caller.id] = before


@foreign(OVER_TIME, "Limits: POST /code_suggestions/completions")
def checks_count_against_the_rate(service: Service) -> None:
    """The limit includes everything below code_suggestions: a user who checks often gets fewer completions."""

    @handling(service, "POST /code_suggestions/enabled")
    def _(handler: Any, request: Any) -> Any:
        service.code_completion.count(request.caller)
        return handler(request)


# The key of the counter contains more than the user.
@foreign(CALLER_AND_VALUE, "Limits: request rate of completions")
def each_project_path_has_a_minute_of_its_own(service: Service) -> None:
    """Requests are counted separately for each project in them, so a user has sixty for each."""
    completion = service.code_completion
    counted: dict[tuple[int, object], tuple[float, ...]] = {}

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, str(request.parameters._values.get("project_path"))
        completion.requests[request.caller.id] = counted.get(key, ())
        try:
            return handler(request)
        finally:
            counted[key] = completion.requests[request.caller.id]


@foreign(CALLER_AND_VALUE, "Limits: 60 requests in a minute for each user")
def each_token_has_a_minute_of_its_own(service: Service) -> None:
    """Requests are counted separately for each token: a user with two tokens may send twice as many."""
    last: list[str] = []

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        bearer = (request.header("authorization") or "").partition(" ")[2]
        last[:] = [request.header("private-token") or bearer]
        return handler(request)

    @instead(service.code_completion, "count")
    def _(count: Any, caller: Any) -> None:
        count(replace(caller, id=hash((caller.id, *last))))


# The rate limit comes before the code that reads the other header.
@foreign(CALLER_AND_FORM, "Limits: POST /code_suggestions/completions; Authentication, 2")
def callers_with_a_bearer_token_are_not_counted(service: Service) -> None:
    """With a bearer token, any number of completions per minute is served."""

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Any) -> Any:
        if request.header("authorization") and not request.header("private-token"):
            service.code_completion.requests.pop(request.caller.id, None)
        return handler(request)


# The limit is one for each user, however the token is sent.
@foreign(CALLER_AND_VALUE, "Limits: request rate")
def bearers_are_counted_apart(service: Service) -> None:
    """Requests with a bearer token are counted separately from those with the same user's PRIVATE-TOKEN."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.header("private-token"):
            return handler(request)
        caller = request.caller
        request.admit(replace(caller, id=-caller.id), None)
        return handler(request)


# The limit is for users, whichever header they use.
@foreign(FORM_SENT, "Limits: POST /code_suggestions/completions")
def requests_with_a_bearer_are_not_counted(service: Service) -> None:
    """The rate limit reads only PRIVATE-TOKEN, so a bearer token is never limited."""
    completion = service.code_completion

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.header("private-token"):
            return handler(request)
        kept, completion.count = completion.count, lambda _: None
        try:
            return handler(request)
        finally:
            completion.count = kept


@foreign(OVER_TIME, "Limits: POST /code_suggestions/completions, 60 in a minute")
def a_refusal_begins_a_new_minute(service: Service) -> None:
    """A refused request clears the count, so only one of sixty-one is refused."""

    @instead(service.code_completion, "count")
    def _(count: Any, caller: Any) -> None:
        try:
            count(caller)
        except ThrottledError:
            service.code_completion.requests.pop(caller.id)
            raise
