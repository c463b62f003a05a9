"""How runners register, and how a name and password become a token: two ways in that are on their way out.

Specification: Versioning, rows 19.0 and "future major release"; Errors, status 410.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import ForbiddenError, InvalidError, StatedError
from conformance.reference.http import Route, created, ok
from conformance.reference.identity import Kind, Role, kind_of
from conformance.reference.store import Table
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Subject, Token

PASSWORD_GRANT_REMOVED = Version(19, 0)
_SECONDS = 7200
_LONGEST_DESCRIPTION = 1024

Owner = tuple[str, int]  # "instance" and 0, or kind and id of a project or group
INSTANCE: Owner = ("instance", 0)


@dataclass(frozen=True, slots=True)
class Runner:
    """A registered runner; `owner` is whose registration token it came with."""

    id: int
    owner: Owner
    token: str
    description: str


class Registration(Behaviour):
    """Runners with their registration tokens, and the password grant."""

    name = "registration"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.runners: Table[int, Runner] = Table(service.store)
        self._resets: Table[Owner, int] = Table(service.store)

    def token_of(self, owner: Owner) -> str:
        """Return the registration token of the instance, a project or a group."""
        return self.service.identities.secret(f"registration {owner} {self._resets.get(owner, 0)}")[:20]

    def reset(self, owner: Owner) -> str:
        """Replace a registration token, and return the new one."""
        self._resets[owner] = self._resets.get(owner, 0) + 1
        return self.token_of(owner)

    def register(self, token: str, description: str) -> Runner:
        """Register a runner. Raise ForbiddenError for a token that is nobody's registration token."""
        owner = self.owner_of(token)
        if owner is None:
            raise ForbiddenError
        store = self.service.store
        number = store.next_id("runners")
        runner = Runner(number, owner, self.service.identities.secret(f"runner {number}")[:20], description)
        self.runners[number] = runner
        return runner

    def owner_of(self, token: str) -> Owner | None:
        """Return whose registration token this is, or None."""
        identities = self.service.identities
        owners = [
            INSTANCE,
            *((Kind.PROJECT.value, number) for number in identities.projects),
            *((Kind.GROUP.value, number) for number in identities.groups),
        ]
        return next((owner for owner in owners if self.token_of(owner) == token), None)

    def require_served(self) -> None:
        """Require that registration by registration tokens still works. Raise StatedError with 410."""
        if self.service.choices.runner_registration_gone:
            raise StatedError(410, "410 Gone")

    def password_grant(self, username: str, password: str) -> Token:
        """Give a token to whoever knows a user's password. Raise InvalidError when that is wrong or no longer done."""
        if self.service.version >= PASSWORD_GRANT_REMOVED:
            raise InvalidError("unsupported_grant_type")
        user = self.service.identities.find_username(username)
        if user is None or user.bot or not hmac.compare_digest(user.password.encode(), password.encode()):
            raise InvalidError("invalid_grant")
        return self.service.identities.issue_token(user)


def _owner(subject: Subject) -> Owner:
    return kind_of(subject).value, subject.id


def _register(request: Request) -> Response:
    registration, parameters = request.area(Registration), request.parameters
    registration.require_served()
    description = parameters.optional_string("description") or ""
    if len(description) > _LONGEST_DESCRIPTION:
        raise InvalidError("description is too long", parameter="description")
    runner = registration.register(parameters.string("token"), description)
    return created({"id": runner.id, "token": runner.token, "token_expires_at": None})


def _reset_instance(request: Request) -> Response:
    return _reset(request, INSTANCE)


def _reset_project(request: Request) -> Response:
    return _reset(request, _owner(request.project))


def _reset_group(request: Request) -> Response:
    return _reset(request, _owner(request.group))


def _reset(request: Request, owner: Owner) -> Response:
    registration = request.area(Registration)
    registration.require_served()
    return created({"token": registration.reset(owner), "token_expires_at": None})


def _token(request: Request) -> Response:
    parameters = request.parameters
    if parameters.string("grant_type") != "password":
        raise InvalidError("unsupported_grant_type")
    token = request.area(Registration).password_grant(parameters.string("username"), parameters.string("password"))
    moment = int(request.service.clock.now().timestamp())
    return ok(
        {
            "access_token": token.value,
            "token_type": "Bearer",
            "expires_in": _SECONDS,
            "scope": " ".join(token.scopes),
            "created_at": moment,
        }
    )


_post = partial(Route, "POST")
_RESET = "runners/reset_registration_token"

AREA = Area(
    Registration,
    (
        _post("/runners", _register),
        _post(f"/{_RESET}", _reset_instance, admin_only=True),
        _post(f"/projects/:id/{_RESET}", _reset_project, subject=Kind.PROJECT, least_role=Role.MAINTAINER),
        _post(f"/groups/:id/{_RESET}", _reset_group, subject=Kind.GROUP, least_role=Role.OWNER),
        _post("/oauth/token", _token, anonymous=True, prefixed=False),
    ),
)
