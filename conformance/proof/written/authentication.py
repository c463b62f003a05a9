"""Faults of authentication: tokens that are not required, not found, or treated as another user's."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import altering, around, done_and_refused, is_route, let_in, refusing
from conformance.reference.errors import ForbiddenError, UnauthorizedError
from conformance.reference.http import ok
from conformance.reference.identity import Kind, Project, Role, Visibility

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

SCOPE = "/projects/:id/job_token_scope"
SETTINGS = "/projects/:id/merge_request_approval_setting"
COMPLETE = "POST /code_suggestions/completions"
UNKNOWN = b"0000-no-such-token-0000"


def has_no_token(service: Service) -> Callable[[Request], bool]:
    """Return a test for calls with no token or an empty one."""
    return lambda request: not service.access.token_text(request)


def deaf_to(service: Service, header: bytes, when: Callable[[Request], bool]) -> None:
    """Ignore a header in some calls."""

    def make(read: Any) -> Any:
        def reading(request: Request) -> str:
            if when(request):
                request.headers.pop(header, None)
            return read(request)

        return reading

    around(service.access, "token_text", make)


@fault("approval-settings.project.authorization.reading-anonymous")
def settings_are_read_without_a_token(service: Service) -> None:
    """The approval settings of a project are shown without a token."""
    anonymous = has_no_token(service)
    let_in(service, lambda request: is_route(request.route, f"GET {SETTINGS}") and anonymous(request), "maintainer")


@fault("authentication.anonymous-is-refused", operation="getProjectApprovalSettings")
def anonymous_callers_meet_a_server_error(service: Service) -> None:
    """Without a token, reading the approval settings of a project causes a server error."""
    anonymous = has_no_token(service)

    def broken(route: Any, request: Request, response: Response) -> Response:
        return ok({}, 500) if is_route(route, f"GET {SETTINGS}") and anonymous(request) else response

    service.transformers.append(broken)


@fault("authentication.anonymous-changes-nothing", operation="updateProjectApprovalSettings")
def anonymous_update_is_refused_and_done(service: Service) -> None:
    """An update of the approval settings of a project without a token is done, and then refused."""
    anonymous = has_no_token(service)
    refused: list[Request] = []

    def is_anonymous(request: Request) -> bool:
        found = is_route(request.route, f"PUT {SETTINGS}") and anonymous(request)
        if found:
            refused.append(request)
        return found

    let_in(service, is_anonymous, "maintainer")
    done_and_refused(service, f"PUT {SETTINGS}", lambda request: request in refused, 401)


@fault("authentication.anonymous-on-public-project")
def public_projects_are_open(service: Service) -> None:
    """Everything that can be read of a public project is shown to everybody."""
    anonymous = has_no_token(service)

    def is_public(request: Request) -> bool:
        project = service.identities.find_project(request.path.get("id", ""))
        return project is not None and project.visibility is Visibility.PUBLIC

    let_in(
        service,
        lambda request: request.method == "GET" and anonymous(request) and is_public(request),
        "maintainer",
    )


@fault("authentication.private-token", operation="updateProjectApprovalSettings")
def updates_ask_for_a_bearer_token(service: Service) -> None:
    """An update of the approval settings of a project does not accept a token in PRIVATE-TOKEN."""
    deaf_to(service, b"private-token", lambda request: is_route(request.route, f"PUT {SETTINGS}"))


def _once(service: Service, method: str) -> None:
    """Accept a token for one call of a method by path, and refuse it for the same call later."""
    seen: set[tuple[str, bytes]] = set()

    def make(authenticate: Any) -> Any:
        def forgetful(request: Request) -> Any:
            key = service.access.token_text(request), request.raw_path
            if request.method == method and key in seen:
                raise UnauthorizedError
            seen.add(key)
            return authenticate(request)

        return forgetful

    around(service.access, "authenticate", make)


@fault("authentication.private-token-spelling")
def a_token_opens_a_path_once(service: Service) -> None:
    """A token is accepted once for each path, in whatever header."""
    _once(service, "GET")


@fault("authentication.private-token-spelling")
def a_token_deletes_once(service: Service) -> None:
    """A token is accepted for one deletion of each thing, in whatever header."""
    _once(service, "DELETE")


@fault("authentication.private-token-spelling")
def unknown_tokens_are_the_maintainers(service: Service) -> None:
    """An unknown token is treated as the maintainer's."""
    let_in(service, lambda request: request.headers.get(b"private-token") == UNKNOWN, "maintainer")


def found_by(service: Service, alike: Callable[[str, str], bool]) -> None:
    """Accept tokens by an incomplete comparison: `alike` gets the sent token and a known one."""

    def make(read: Any) -> Any:
        def reading(request: Request) -> str:
            sent: str = read(request)
            known = service.identities.tokens
            return next((token for token in known if sent and alike(sent, token)), sent)

        return reading

    around(service.access, "token_text", make)


@fault("authentication.unknown-token-is-refused", operation="getProjectApprovalSettings")
def tokens_are_found_in_any_case(service: Service) -> None:
    """Tokens are compared case-insensitively."""
    found_by(service, lambda sent, token: sent.lower() == token.lower())


@fault("authentication.unknown-token-is-refused", operation="getProjectApprovalSettings")
def beginning_of_a_token_is_enough(service: Service) -> None:
    """The beginning of a token is accepted."""
    found_by(service, lambda sent, token: len(sent) + 1 >= len(token) and token.startswith(sent))


@fault("authentication.unknown-token-is-refused", operation="getProjectApprovalSettings")
def what_follows_a_token_does_not_count(service: Service) -> None:
    """A token with additional characters is accepted."""
    found_by(service, lambda sent, token: sent.startswith(token))


@fault("authentication.unknown-token-is-refused", operation="getProjectApprovalSettings")
def any_name_and_password_is_enough(service: Service) -> None:
    """Whoever sends a name with a password, right or wrong, is served as the maintainer."""
    let_in(service, lambda request: request.headers.get(b"authorization", b"").startswith(b"Basic "), "maintainer")


@fault("authentication.unknown-token-is-refused", operation="getProjectApprovalSettings")
def unknown_bearers_read_as_the_maintainer(service: Service) -> None:
    """Reads of projects do not look at the token of a bearer, and are served as if it were the maintainer's."""

    def is_read(request: Request) -> bool:
        return request.method == "GET" and request.headers.get(b"authorization", b"").startswith(b"Bearer ")

    let_in(service, is_read, "maintainer")


@fault("authentication.empty-token-is-refused")
def empty_header_counts_as_a_token(service: Service) -> None:
    """PRIVATE-TOKEN without a value is treated as the maintainer's token."""
    let_in(service, lambda request: request.headers.get(b"private-token") == b"", "maintainer")


@fault("authentication.bearer-on-completions")
def completions_take_no_bearer_token(service: Service) -> None:
    """The completion endpoint ignores Authorization."""
    deaf_to(service, b"authorization", lambda request: is_route(request.route, COMPLETE))


@fault("authentication.bearer-on-completions")
def no_bearer_token_completes_in_a_project(service: Service) -> None:
    """The completion endpoint ignores Authorization if the path of a project is sent."""
    deaf_to(
        service,
        b"authorization",
        lambda request: is_route(request.route, COMPLETE) and b'"project_path"' in request.body,
    )


@fault("authentication.bearer-on-completions")
def no_bearer_token_completes_with_an_intent(service: Service) -> None:
    """The completion endpoint ignores Authorization if an intent is sent."""
    deaf_to(
        service, b"authorization", lambda request: is_route(request.route, COMPLETE) and b'"intent"' in request.body
    )


@fault("authentication.bearer-on-completions")
def no_bearer_token_of_a_developer_completes(service: Service) -> None:
    """The completion endpoint ignores Authorization if the token in it is that of the developer."""
    token = service.world.actors["developer"].token.encode()
    deaf_to(
        service,
        b"authorization",
        lambda request: is_route(request.route, COMPLETE) and token in request.headers.get(b"authorization", b""),
    )


@fault("authentication.private-token-on-completions")
def completions_take_bearer_tokens_alone(service: Service) -> None:
    """The completion endpoint ignores PRIVATE-TOKEN."""
    deaf_to(service, b"private-token", lambda request: is_route(request.route, COMPLETE))


@fault("authentication.unknown-bearer-on-completions")
def any_bearer_token_completes(service: Service) -> None:
    """The completion endpoint serves any bearer token."""
    let_in(
        service,
        lambda request: is_route(request.route, COMPLETE) and b"authorization" in request.headers,
        "developer",
    )


@fault("authentication.unknown-bearer-on-completions")
def bearer_without_a_token_completes(service: Service) -> None:
    """The completion endpoint serves a bearer who sends no token."""
    let_in(
        service,
        lambda request: (
            is_route(request.route, COMPLETE) and request.headers.get(b"authorization", b"").strip() == b"Bearer"
        ),
        "developer",
    )


@fault("authentication.unknown-bearer-on-completions")
def refusal_holds_the_completion(service: Service) -> None:
    """The completion endpoint refuses an unknown bearer token with a response that contains the completion."""

    def is_unknown(request: Request) -> bool:
        return is_route(request.route, COMPLETE) and request.headers.get(b"authorization", b"").endswith(UNKNOWN)

    let_in(service, is_unknown, "developer")

    def refuse(request: Request, response: Response) -> None:
        if is_unknown(request):
            response.status = 401

    altering(service, COMPLETE, refuse)


@fault("job-token-scope.authorization.maintainer-is-served")
def role_in_the_group_goes_first(service: Service) -> None:
    """Whoever has a role in the group of a project has that role in the project, and no higher one."""
    identities = service.identities

    def make(role_in: Any) -> Any:
        def of_the_group_first(user: Any, subject: Any) -> Role:
            around_it = identities.groups.get(subject.namespace_id) if isinstance(subject, Project) else None
            inherited: Role = role_in(user, around_it) if around_it is not None else Role.NONE
            found: Role = inherited or role_in(user, subject)
            return found

        return of_the_group_first

    around(identities, "role_in", make)


def _refused_by_the_group(key: str) -> Callable[[Service], None]:
    """Refuse an operation to those who have a lower role in the group of the project than it takes."""

    def apply(service: Service) -> None:
        identities = service.identities

        def is_lower_around(request: Request) -> bool:
            around_it = identities.groups.get(request.project.namespace_id)
            role = identities.role_in(request.caller, around_it) if around_it is not None else Role.NONE
            return Role.NONE < role < Role.MAINTAINER

        refusing(service, key, is_lower_around, ForbiddenError)

    return apply


for _key, _area in ((f"PUT {SETTINGS}", "approval-settings.project"), (f"PATCH {SCOPE}", "job-token-scope")):
    _says = f"Whoever has a lower role in the group is refused {_key} of a project, whatever the role there."
    _name = f"lower_roles_in_the_group_keep_out_of_{_area.replace('-', '_').replace('.', '_')}"
    fault(f"{_area}.authorization.maintainer-is-served")(named(_name, _says, _refused_by_the_group(_key)))


#: Calls that need a role, each with the requirement that it is refused without any; by method.
_NEED_A_ROLE = {
    "GET": {
        "job_token_scope": "job-token-scope.authorization.without-role",
        "merge_request_approval_setting": "approval-settings.project.authorization.without-role",
        "integrations": "integrations.authorization.without-role",
    },
    "PATCH": {"job_token_scope": "job-token-scope.authorization.without-role"},
    "PUT": {"merge_request_approval_setting": "approval-settings.project.authorization.without-role"},
}


def _open_to_bots(method: str, below: str, kind: Kind) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        def is_a_bot(request: Request) -> bool:
            found = service.identities.tokens.get(service.access.token_text(request))
            is_called = is_route(request.route, f"{method} /projects/:id/{below}")
            bot = service.identities.users[found.user_id].bot if is_called and found is not None else None
            return bot is not None and bot.kind is kind

        let_in(service, is_a_bot, "maintainer")

    return apply


for _method, _calls in _NEED_A_ROLE.items():
    _do, _kinds = ("read", (Kind.PROJECT,)) if _method == "GET" else ("write", (Kind.PROJECT, Kind.GROUP))
    for (_below, _requirement), _kind in product(_calls.items(), _kinds):
        _says = f"The bot of any {_kind.value} may {_do} {_below} of every project."
        _name = f"bots_of_other_{_kind.value}s_may_{_do}_{_below}"
        fault(_requirement)(named(_name, _says, _open_to_bots(_method, _below, _kind)))
