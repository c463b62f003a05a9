"""Member roles: of groups, until an installation keeps them for itself.

Specification: Versioning, row 17.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import InvalidError, not_found
from conformance.reference.http import Route, created, no_content, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.store import Table
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group
    from conformance.reference.presenters import Json

ROLES_OF_THE_INSTANCE = Version(17, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRole:
    """A role made of a base access level and more permissions; `group_id` is None for the whole instance."""

    id: int
    name: str
    base_access_level: Role
    group_id: int | None = None


class MemberRoles(Behaviour):
    """The member roles of groups and of the installation."""

    name = "member_roles"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.roles: Table[int, MemberRole] = Table(service.store)

    def of(self, group: Group | None) -> list[MemberRole]:
        """Return the member roles of a group, or all of them."""
        return [role for role in self.roles.values() if group is None or role.group_id == group.id]

    def create(self, name: str, base: Role, group: Group | None) -> MemberRole:
        """Create a member role of a group, or of the instance."""
        number = self.service.store.next_id("member_roles")
        role = MemberRole(id=number, name=name, base_access_level=base, group_id=group.id if group else None)
        self.roles[number] = role
        return role

    def delete(self, number: int, group: Group | None) -> None:
        """Delete a member role. Raise NotFoundError when there is none of that id, there or anywhere."""
        if number not in {role.id for role in self.of(group)}:
            raise not_found("Member Role")
        del self.roles[number]

    def present(self, role: MemberRole) -> Json:
        """Present a member role."""
        return {
            "id": role.id,
            "name": role.name,
            "group_id": role.group_id,
            "base_access_level": role.base_access_level.value,
        }


def _place(request: Request) -> Group | None:
    return request.group if request.route.subject is Kind.GROUP else None


def _list(request: Request) -> Response:
    roles = request.area(MemberRoles)
    return ok([roles.present(role) for role in roles.of(_place(request))])


def _create(request: Request) -> Response:
    roles, parameters = request.area(MemberRoles), request.parameters
    level = parameters.integer("base_access_level")
    if level not in set(Role) - {Role.NONE, Role.OWNER}:
        raise InvalidError("base_access_level does not have a valid value", parameter="base_access_level")
    name = parameters.optional_string("name") or "Custom"
    return created(roles.present(roles.create(name, Role(level), _place(request))))


def _delete(request: Request) -> Response:
    request.area(MemberRoles).delete(request.path_id("member_role_id"), _place(request))
    return no_content()


_of_instance = partial(Route, admin_only=True, introduced=ROLES_OF_THE_INSTANCE)
_of_group = partial(Route, subject=Kind.GROUP, least_role=Role.OWNER)

AREA = Area(
    MemberRoles,
    (
        _of_instance("GET", "/member_roles", _list),
        _of_instance("POST", "/member_roles", _create),
        _of_instance("DELETE", "/member_roles/:member_role_id", _delete),
        _of_group("GET", "/groups/:id/member_roles", _list),
        _of_group("POST", "/groups/:id/member_roles", _create, removed=ROLES_OF_THE_INSTANCE),
        _of_group("DELETE", "/groups/:id/member_roles/:member_role_id", _delete),
    ),
)
