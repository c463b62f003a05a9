"""Users: listing, creating and deleting them.

Specification: Versioning, row 17.0, for the pagination of users.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import RejectedError, not_found
from conformance.reference.http import Route, created, no_content, ok
from conformance.reference.identity import NewUser
from conformance.reference.keyset import by_keyset
from conformance.reference.provisioning import fields
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import User
    from conformance.reference.parameters import Parameters
    from conformance.reference.presenters import Json

KEYSET_ONLY = Version(17, 0)
_SHORTEST_PASSWORD = 8


class People(Behaviour):
    """All users."""

    name = "people"

    def find(self, user_id: int) -> User:
        """Find a user. Raise NotFoundError."""
        user = self.service.identities.users.get(user_id)
        if user is None:
            raise not_found("User")
        return user

    def matching(self, username: str | None, search: str | None) -> list[User]:
        """Return the users of that exact name, or whose name or username contains a text, or all."""
        if username is not None:
            user = self.service.identities.find_username(username)
            return [user] if user else []
        wanted = (search or "").lower()
        known = self.service.identities.users.values()
        return [user for user in known if wanted in user.username.lower() or wanted in user.name.lower()]

    def keyset_only(self) -> bool:
        """Say whether users are no longer listed by page number."""
        return self.service.version >= KEYSET_ONLY

    def create(self, new: NewUser) -> User:
        """Create a user. Raise DuplicateError when username or email is taken, RejectedError when weak."""
        identities = self.service.identities
        if len(new.password) < _SHORTEST_PASSWORD:
            raise RejectedError(f"is too short (minimum is {_SHORTEST_PASSWORD} characters)", parameter="password")
        if identities.find_username(new.username) or identities.is_taken(new.username):
            raise fields.DuplicateError("Username has already been taken")
        if any(user.email.lower() == new.email.lower() for user in identities.users.values()):
            raise fields.DuplicateError("Email has already been taken")
        return identities.create_user(new)

    def delete(self, user: User) -> None:
        """Delete a user with tokens, memberships and own projects."""
        identities = self.service.identities
        for group in [g for g in identities.groups.values() if g.personal and g.path == user.username]:
            identities.remove_group(group)
        identities.remove_user(user)

    def present(self, user: User, reader: User) -> Json:
        """Present a user; administrators see more."""
        shown = self.service.present.user(user)
        shown["bot"] = user.bot is not None
        if reader.admin:
            shown |= {
                "email": user.email,
                "created_at": self.service.present.timestamp(user.created_at),
                "is_admin": user.admin,
            }
        return shown


def _list(request: Request) -> Response:
    people, parameters = request.area(People), request.parameters
    users = people.matching(parameters.optional_string("username"), parameters.optional_string("search"))

    def present(user: User) -> Json:
        return people.present(user, request.caller)

    if people.keyset_only():
        return by_keyset(request, users, attrgetter("id"), present)
    return request.collection(users, present)


def _get(request: Request) -> Response:
    people = request.area(People)
    return ok(people.present(people.find(request.path_id("user_id")), request.caller))


def _create(request: Request) -> Response:
    people, parameters = request.area(People), request.parameters
    new = NewUser(
        username=fields.path(parameters, "username"),
        name=fields.text(parameters, "name"),
        email=_email(parameters),
        password=_password(request),
        admin=bool(parameters.optional_boolean("admin")),
    )
    return created(people.present(people.create(new), request.caller))


def _delete(request: Request) -> Response:
    people = request.area(People)
    user = people.find(request.path_id("user_id"))
    if user.id == request.caller.id:
        raise RejectedError("Administrators do not delete themselves")
    request.parameters.optional_boolean("hard_delete")
    people.delete(user)
    return no_content()


def _email(parameters: Parameters) -> str:
    email = fields.text(parameters, "email")
    local, at, domain = email.partition("@")
    if not (local and at and domain) or "@" in domain or any(letter.isspace() for letter in email):
        raise RejectedError("is invalid", parameter="email")
    return email


def _password(request: Request) -> str:
    parameters = request.parameters
    instead = [parameters.optional_boolean(name) for name in ("reset_password", "force_random_password")]
    if any(instead) and not parameters.given("password"):
        return request.service.identities.secret(f"password {parameters.string('username')}")
    return fields.text(parameters, "password")


AREA = Area(
    People,
    (
        Route("GET", "/users", _list, paginated=SUPPORTED_VERSIONS.first),
        Route("POST", "/users", _create, admin_only=True),
        Route("GET", "/users/:user_id", _get),
        Route("DELETE", "/users/:user_id", _delete, admin_only=True),
    ),
)
