"""Who may do what: the one object that decides about every call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from conformance.reference.errors import ForbiddenError, UnauthorizedError, hidden, not_found
from conformance.reference.identity import Kind, Role
from conformance.reference.parameters import read_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.foundation import Foundation
    from conformance.reference.identity import Group, Project, Subject, Token, User

_READING = frozenset({"GET", "HEAD"})
_SCOPES_TO_READ = frozenset({"api", "read_api"})
_SCOPES_TO_WRITE = frozenset({"api"})
_BEARER = "bearer "


class Guarded(Protocol):
    """What of an operation decides who may call it; `http.Route` is one."""

    @property
    def subject(self) -> Kind | None:
        """What `:id` of the path names."""

    @property
    def least_role(self) -> Role:
        """The role that the caller needs in it."""

    @property
    def admin_only(self) -> bool:
        """Whether only administrators of the installation may call it."""

    @property
    def anonymous(self) -> bool:
        """Whether no token is needed."""

    @property
    def takes_bearer(self) -> bool:
        """Whether the token may be a bearer's, whatever the choices say."""


class Call(Protocol):
    """What of a request tells who calls what; `http.Request` is one."""

    method: str
    query: bytes

    @property
    def route(self) -> Guarded:
        """The operation that is called."""

    @property
    def path(self) -> Mapping[str, str]:
        """The decoded parameters of the path."""

    def header(self, name: str) -> str:
        """Return a header by its lower-case name, or an empty string."""

    def admit(self, caller: User, subject: Subject | None) -> None:
        """Note who calls, and which project or group the path names."""


class Access:
    """Authentication and authorization.

    Specification: Authentication.
    """

    def __init__(self, service: Foundation) -> None:
        self._service = service

    def admit(self, request: Call) -> None:
        """Authenticate the caller, find the subject of the path and require the role, in this order.

        Raise UnauthorizedError, NotFoundError or HiddenError, and ForbiddenError respectively.
        """
        if request.route.anonymous:
            return
        caller = self.authenticate(request)
        subject = self.subject(request.route, caller, request.path.get("id", ""))
        self.require(request.route, caller, subject)
        request.admit(caller, subject)

    def authenticate(self, request: Call) -> User:
        """Return the user whose token the request carries. Raise UnauthorizedError when there is none."""
        identities = self._service.identities
        token = identities.tokens.get(self.token_text(request))
        user = identities.users.get(token.user_id) if token else None
        if token is None or user is None or user.state != "active":
            raise UnauthorizedError
        self.require_scope(token, request.method)
        return user

    def token_text(self, request: Call) -> str:
        """Return the token that was sent, from the first place that holds one, or an empty string."""
        choices = self._service.choices
        private = request.header("private-token")
        if private:
            return private
        bearer = request.header("authorization")
        if bearer[: len(_BEARER)].lower() == _BEARER and (choices.bearer_everywhere or request.route.takes_bearer):
            return bearer[len(_BEARER) :].strip()
        if choices.token_in_query and b"_token=" in request.query:
            query = read_query(request.query)
            return str(query.get("private_token") or query.get("access_token") or "")
        return ""

    def require_scope(self, token: Token, method: str) -> None:
        """Require that the token's scopes suffice for a reading or writing call. Raise ForbiddenError."""
        enough = _SCOPES_TO_READ if method in _READING else _SCOPES_TO_WRITE
        if enough.isdisjoint(token.scopes):
            raise ForbiddenError("insufficient_scope")

    def subject(self, route: Guarded, caller: User, reference: str) -> Subject | None:
        """Return the project or group that a path names by id or full path; None for routes without one."""
        if route.subject is Kind.PROJECT:
            return self.visible_project(caller, reference)
        if route.subject is Kind.GROUP:
            return self.visible_group(caller, reference)
        return None

    def visible_project(self, caller: User, reference: str) -> Project:
        """Find a project by id or path. Raise NotFoundError, or HiddenError when it is not for the caller."""
        identities = self._service.identities
        project = identities.find_project(reference)
        if project is None:
            raise not_found("Project")
        if not identities.can_see(caller, project):
            raise hidden("Project")
        return project

    def visible_group(self, caller: User, reference: str) -> Group:
        """Find a group by id or path. Raise NotFoundError, or HiddenError when the caller may not see it."""
        group = self._service.identities.find_group(reference)
        if group is None:
            raise not_found("Group")
        if not self._service.identities.can_see(caller, group):
            raise hidden("Group")
        return group

    def require(self, route: Guarded, caller: User, subject: Subject | None) -> None:
        """Require the route's least role of the caller. Raise ForbiddenError."""
        if route.admin_only and not caller.admin:
            raise ForbiddenError
        if subject is not None and route.least_role > Role.NONE:
            self.require_role(caller, subject, route.least_role)

    def require_role(self, caller: User, subject: Subject, least: Role) -> None:
        """Require a role in a project or group. Raise ForbiddenError."""
        if self._service.identities.role_in(caller, subject) < least:
            raise ForbiddenError
