"""What every client asks first: which version the service has, and who the caller is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.http import Route, ok

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import User
    from conformance.reference.presenters import Json


class Meta(Behaviour):
    """The service about itself."""

    name = "meta"

    def version(self) -> Json:
        """Return the version and the revision of the service."""
        full = self.service.version.full
        return {"version": full, "revision": self.service.identities.secret(full)[:11]}

    def metadata(self) -> Json:
        """Return the version with what else is known about the installation."""
        return {
            **self.version(),
            "kas": {"enabled": False, "externalUrl": None, "version": None},
            "enterprise": self.service.choices.enterprise,
        }

    def current_user(self, caller: User) -> Json:
        """Return the caller's own record."""
        return {
            **self.service.present.user(caller),
            "email": caller.email,
            "created_at": self.service.present.timestamp(caller.created_at),
            "bot": caller.bot is not None,
            "is_admin": caller.admin,
        }


def _version(request: Request) -> Response:
    return ok(request.area(Meta).version())


def _metadata(request: Request) -> Response:
    return ok(request.area(Meta).metadata())


def _current_user(request: Request) -> Response:
    return ok(request.area(Meta).current_user(request.caller))


AREA = Area(
    Meta,
    (
        Route("GET", "/version", _version),
        Route("GET", "/metadata", _metadata),
        Route("GET", "/user", _current_user),
    ),
)
