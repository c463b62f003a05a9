"""Access tokens of users, projects and groups; a project or group token comes with a bot user of its own.

Specification: Authentication; how tokens are issued is not shown there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import ForbiddenError, InvalidError, RejectedError, not_found
from conformance.reference.http import Route, created, no_content
from conformance.reference.identity import Kind, Role, kind_of
from conformance.reference.provisioning import fields
from conformance.reference.provisioning.people import People
from conformance.reference.store import Table
from conformance.reference.versions import SUPPORTED_VERSIONS

if TYPE_CHECKING:
    from datetime import date, datetime

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Subject, User
    from conformance.reference.presenters import Json

SCOPES = (
    "api",
    "read_api",
    "read_user",
    "read_repository",
    "write_repository",
    "read_registry",
    "write_registry",
    "sudo",
    "admin_mode",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """What is known of an issued token; `value` is shown once. `subject` is None for a user's own token."""

    id: int
    name: str
    user_id: int
    scopes: tuple[str, ...]
    value: str
    created_at: datetime
    expires_at: date | None
    access_level: Role | None = None
    subject: tuple[Kind, int] | None = None
    revoked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """What is needed to issue a token."""

    name: str
    scopes: tuple[str, ...]
    expires_at: date | None = None


class AccessTokens(Behaviour):
    """All tokens that were issued through the API."""

    name = "access_tokens"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.issued: Table[int, AccessToken] = Table(service.store)

    def issue(self, user: User, new: NewToken) -> AccessToken:
        """Give a user a token. Raise RejectedError when it would have expired already."""
        now = self.service.clock.now()
        if new.expires_at is not None and new.expires_at <= now.date():
            raise RejectedError("must be in the future", parameter="expires_at")
        token = AccessToken(
            id=self.service.store.next_id("access_tokens"),
            name=new.name,
            user_id=user.id,
            scopes=new.scopes,
            value=self.service.identities.issue_token(user, new.scopes).value,
            created_at=now,
            expires_at=new.expires_at,
        )
        self.issued[token.id] = token
        return token

    def issue_for(self, subject: Subject, new: NewToken, role: Role) -> AccessToken:
        """Make a bot user with a role in a project or group, and give it a token."""
        if new.expires_at is not None and new.expires_at <= self.service.clock.now().date():
            raise RejectedError("must be in the future", parameter="expires_at")
        bot = self.service.identities.create_bot(subject, new.name, role)
        token = replace(self.issue(bot, new), access_level=role, subject=(kind_of(subject), subject.id))
        self.issued[token.id] = token
        return token

    def of(self, subject: Subject) -> list[AccessToken]:
        """Return the tokens of a project or group, without revoked ones."""
        place = kind_of(subject), subject.id
        return [token for token in self.issued.values() if token.subject == place and not token.revoked]

    def personal(self, user_id: int | None) -> list[AccessToken]:
        """Return the users' own tokens, or those of one user, without revoked ones."""
        users = self.service.identities.users
        own = (token for token in self.issued.values() if token.subject is None and not token.revoked)
        return [token for token in own if token.user_id in users and user_id in {None, token.user_id}]

    def revoke_personal(self, token_id: int) -> None:
        """End a user's own token. Raise NotFoundError."""
        token = next((token for token in self.personal(None) if token.id == token_id), None)
        if token is None:
            raise not_found("Access Token")
        self.service.identities.tokens.pop(token.value, None)
        self.issued[token.id] = replace(token, revoked=True)

    def revoke(self, subject: Subject, token_id: int) -> None:
        """End a token of a project or group, and its bot with it. Raise NotFoundError."""
        token = next((token for token in self.of(subject) if token.id == token_id), None)
        if token is None:
            raise not_found("Access Token")
        identities = self.service.identities
        bot = identities.users.get(token.user_id)
        if bot is not None:
            identities.remove_user(bot)
        self.issued[token.id] = replace(token, revoked=True)

    def present(self, token: AccessToken, *, with_value: bool = False) -> Json:
        """Present a token, its value only when it has just been made."""
        shown: Json = {
            "id": token.id,
            "name": token.name,
            "revoked": token.revoked,
            "active": not token.revoked,
            "created_at": self.service.present.timestamp(token.created_at),
            "scopes": list(token.scopes),
            "user_id": token.user_id,
            "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        }
        if token.access_level is not None:
            shown["access_level"] = token.access_level.value
        if with_value:
            shown["token"] = token.value
        return shown


def _new_token(request: Request) -> NewToken:
    parameters = request.parameters
    name = fields.text(parameters, "name")
    scopes = parameters.optional_strings("scopes")
    if not scopes:
        raise InvalidError("scopes is missing", parameter="scopes")
    if not set(scopes) <= set(SCOPES):
        raise InvalidError("scopes does not have a valid value", parameter="scopes")
    return NewToken(name=name, scopes=tuple(dict.fromkeys(scopes)), expires_at=fields.day(parameters, "expires_at"))


def _subject(request: Request) -> Subject:
    return request.project if request.route.subject is Kind.PROJECT else request.group


def _issue_personal(request: Request) -> Response:
    tokens = request.area(AccessTokens)
    user = request.area(People).find(request.path_id("user_id"))
    return created(tokens.present(tokens.issue(user, _new_token(request)), with_value=True))


def _list_personal(request: Request) -> Response:
    tokens = request.area(AccessTokens)
    return request.collection(tokens.personal(request.parameters.optional_integer("user_id")), tokens.present)


def _revoke_personal(request: Request) -> Response:
    request.area(AccessTokens).revoke_personal(request.path_id("token_id"))
    return no_content()


def _issue_for_subject(request: Request) -> Response:
    tokens, subject = request.area(AccessTokens), _subject(request)
    new = _new_token(request)
    level = request.parameters.optional_integer("access_level")
    role = Role.MAINTAINER if level is None else fields.role(level)
    if request.service.identities.role_in(request.caller, subject) < role:
        raise ForbiddenError
    return created(tokens.present(tokens.issue_for(subject, new, role), with_value=True))


def _list(request: Request) -> Response:
    tokens = request.area(AccessTokens)
    return request.collection(tokens.of(_subject(request)), tokens.present)


def _revoke(request: Request) -> Response:
    request.area(AccessTokens).revoke(_subject(request), request.path_id("token_id"))
    return no_content()


def _routes(kind: Kind, prefix: str, least: Role) -> tuple[Route, ...]:
    route = partial(Route, subject=kind, least_role=least)
    return (
        route("GET", f"{prefix}/access_tokens", _list, paginated=SUPPORTED_VERSIONS.first),
        route("POST", f"{prefix}/access_tokens", _issue_for_subject),
        route("DELETE", f"{prefix}/access_tokens/:token_id", _revoke),
    )


AREA = Area(
    AccessTokens,
    (
        Route("POST", "/users/:user_id/personal_access_tokens", _issue_personal, admin_only=True),
        Route(
            "GET",
            "/personal_access_tokens",
            _list_personal,
            admin_only=True,
            paginated=SUPPORTED_VERSIONS.first,
        ),
        Route("DELETE", "/personal_access_tokens/:token_id", _revoke_personal, admin_only=True),
        *_routes(Kind.PROJECT, "/projects/:id", Role.MAINTAINER),
        *_routes(Kind.GROUP, "/groups/:id", Role.OWNER),
    ),
)
