"""Members of projects and groups."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.audit_events import AuditEvents
from conformance.reference.errors import ForbiddenError, InvalidError, not_found
from conformance.reference.http import Route, created, no_content, ok
from conformance.reference.identity import Kind, Role, kind_of
from conformance.reference.provisioning import fields
from conformance.reference.versions import SUPPORTED_VERSIONS

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Subject, User
    from conformance.reference.presenters import Json

Membership = tuple[int, Role]


class Members(Behaviour):
    """The memberships that can be read and changed one by one."""

    name = "members"

    def direct(self, subject: Subject) -> list[Membership]:
        """Return user id and role of the direct members."""
        kind = kind_of(subject)
        roles = self.service.identities.roles.items()
        return [(user_id, role) for (of, number, user_id), role in roles if (of, number) == (kind, subject.id)]

    def inherited_too(self, subject: Subject) -> list[Membership]:
        """Return user id and highest role of the members, those of the groups around included."""
        return list(self.service.identities.members(subject).items())

    def role_of(self, subject: Subject, user_id: int) -> Role:
        """Return the role of a direct member. Raise NotFoundError when the user is none."""
        role = self.service.identities.roles.get((kind_of(subject), subject.id, user_id))
        if role is None:
            raise not_found("Member")
        return role

    def add(self, subject: Subject, user: User, role: Role) -> None:
        """Make a user a member. Raise DuplicateError when the user is one already."""
        if (kind_of(subject), subject.id, user.id) in self.service.identities.roles:
            raise fields.DuplicateError("Member already exists")
        self.service.identities.add_member(subject, user, role)

    def change(self, subject: Subject, user_id: int, role: Role) -> None:
        """Give a direct member another role."""
        self.role_of(subject, user_id)
        self.service.identities.roles[kind_of(subject), subject.id, user_id] = role

    def remove(self, subject: Subject, user_id: int) -> None:
        """Make a direct member none."""
        self.role_of(subject, user_id)
        del self.service.identities.roles[kind_of(subject), subject.id, user_id]

    def require_reach(self, caller: User, subject: Subject, role: Role) -> None:
        """Require that the caller's own role is as high as the one given or taken. Raise ForbiddenError."""
        if self.service.identities.role_in(caller, subject) < role:
            raise ForbiddenError

    def present(self, membership: Membership) -> Json:
        """Present a member."""
        user_id, role = membership
        user = self.service.identities.users[user_id]
        return {**self.service.present.user(user), "access_level": role.value, "expires_at": None}


def _subject(request: Request) -> Subject:
    return request.project if request.route.subject is Kind.PROJECT else request.group


def _list(request: Request) -> Response:
    members = request.area(Members)
    return request.collection(members.direct(_subject(request)), members.present)


def _list_all(request: Request) -> Response:
    members = request.area(Members)
    return request.collection(members.inherited_too(_subject(request)), members.present)


def _get(request: Request) -> Response:
    members, user_id = request.area(Members), request.path_id("user_id")
    return ok(members.present((user_id, members.role_of(_subject(request), user_id))))


def _add(request: Request) -> Response:
    members, subject = request.area(Members), _subject(request)
    user = _user(request)
    role = fields.role(request.parameters.integer("access_level"))
    members.require_reach(request.caller, subject, role)
    members.add(subject, user, role)
    _log(request, f"Added {user.username} as {role.name.title()}")
    return created(members.present((user.id, role)))


def _change(request: Request) -> Response:
    members, subject, user_id = request.area(Members), _subject(request), request.path_id("user_id")
    role = fields.role(request.parameters.integer("access_level"))
    members.require_reach(request.caller, subject, max(role, members.role_of(subject, user_id)))
    members.change(subject, user_id, role)
    _log(request, f"Changed the role of user {user_id} to {role.name.title()}")
    return ok(members.present((user_id, role)))


def _remove(request: Request) -> Response:
    members, subject, user_id = request.area(Members), _subject(request), request.path_id("user_id")
    members.require_reach(request.caller, subject, members.role_of(subject, user_id))
    members.remove(subject, user_id)
    _log(request, f"Removed user {user_id}")
    return no_content()


def _log(request: Request, message: str) -> None:
    subject = _subject(request)
    request.area(AuditEvents).record(request.caller.id, kind_of(subject), subject.id, message)


def _user(request: Request) -> User:
    parameters, identities = request.parameters, request.service.identities
    user_id, username = parameters.optional_integer("user_id"), parameters.optional_string("username")
    if (user_id is None) is (username is None):
        raise InvalidError("user_id, username: exactly one of them must be given", parameter="user_id")
    user = identities.find_username(username) if username is not None else identities.users.get(user_id or 0)
    if user is None:
        raise not_found("User")
    return user


def _routes(kind: Kind, prefix: str, least: Role) -> tuple[Route, ...]:
    read = partial(Route, "GET", subject=kind)
    write = partial(Route, subject=kind, least_role=least)
    listing = partial(read, paginated=SUPPORTED_VERSIONS.first)
    return (
        listing(f"{prefix}/members", _list),
        listing(f"{prefix}/members/all", _list_all),
        read(f"{prefix}/members/:user_id", _get),
        write("POST", f"{prefix}/members", _add),
        write("PUT", f"{prefix}/members/:user_id", _change),
        write("DELETE", f"{prefix}/members/:user_id", _remove),
    )


AREA = Area(
    Members,
    (
        *_routes(Kind.PROJECT, "/projects/:id", Role.MAINTAINER),
        *_routes(Kind.GROUP, "/groups/:id", Role.OWNER),
    ),
)
