"""What administrators keep for the whole installation: settings, appearance and member roles.

Specification: Versioning, row 17.0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    from conformance.reference.parameters import Parameters
    from conformance.reference.presenters import Json

SETTINGS_DEPRECATED = Version(17, 0)
ROLES_OF_THE_INSTANCE = Version(17, 0)
_DEPRECATED_SETTINGS = ("sign_in_text", "help_text")
_LONGEST_NAME = 255
_LONGEST_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The texts of the installation that settings hold."""

    sign_in_text: str = ""
    help_text: str = ""
    after_sign_up_text: str = ""


@dataclass(frozen=True, slots=True)
class Appearance:
    """What the pages of the installation show; `description` takes the place of two settings."""

    title: str = ""
    description: str = ""
    new_project_guidelines: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRole:
    """A role made of a base access level and more permissions; `group_id` is None for the whole instance."""

    id: int
    name: str
    base_access_level: Role
    description: str = ""
    group_id: int | None = None


class Administration(Behaviour):
    """Settings and appearance of the installation, and its member roles."""

    name = "administration"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self._settings: Table[str, Settings] = Table(service.store)
        self._appearance: Table[str, Appearance] = Table(service.store)
        self.member_roles: Table[int, MemberRole] = Table(service.store)

    def settings(self) -> Settings:
        """Return the settings."""
        return self._settings.get("", Settings())

    def appearance(self) -> Appearance:
        """Return the appearance."""
        return self._appearance.get("", Appearance())

    def offered_settings(self) -> tuple[str, ...]:
        """Return the names of the settings that are served; two of them are deprecated from 17.0 on."""
        kept = self.service.version < SETTINGS_DEPRECATED or self.service.choices.deprecated_settings_from_17_0
        return (*(_DEPRECATED_SETTINGS if kept else ()), "after_sign_up_text")

    def change_settings(self, changes: dict[str, str]) -> None:
        """Change some settings."""
        self._settings[""] = replace(self.settings(), **changes)

    def change_appearance(self, changes: dict[str, str]) -> None:
        """Change some parts of the appearance."""
        self._appearance[""] = replace(self.appearance(), **changes)

    def present_settings(self) -> Json:
        """Present the settings."""
        return {name: getattr(self.settings(), name) for name in self.offered_settings()}

    def present_appearance(self) -> Json:
        """Present the appearance."""
        shown = self.appearance()
        return {name: getattr(shown, name) for name in ("title", "description", "new_project_guidelines")}

    def roles_of(self, group: Group | None) -> list[MemberRole]:
        """Return the member roles of a group, or all of them."""
        return [role for role in self.member_roles.values() if group is None or role.group_id == group.id]

    def create_role(self, name: str, base: Role, description: str, group: Group | None) -> MemberRole:
        """Create a member role of a group, or of the instance."""
        number = self.service.store.next_id("member_roles")
        role = MemberRole(
            id=number,
            name=name,
            base_access_level=base,
            description=description,
            group_id=group.id if group else None,
        )
        self.member_roles[number] = role
        return role

    def delete_role(self, number: int, group: Group | None) -> None:
        """Delete a member role. Raise NotFoundError when there is none of that id, there or anywhere."""
        if number not in {role.id for role in self.roles_of(group)}:
            raise not_found("Member Role")
        del self.member_roles[number]

    def present_role(self, role: MemberRole) -> Json:
        """Present a member role."""
        return {
            "id": role.id,
            "name": role.name,
            "description": role.description,
            "group_id": role.group_id,
            "base_access_level": role.base_access_level.value,
        }


def _texts(parameters: Parameters, names: tuple[str, ...]) -> dict[str, str]:
    given = {name: parameters.string(name) for name in names if parameters.given(name)}
    if not given:
        raise InvalidError(f"{', '.join(names)} are missing, at least one parameter must be provided")
    for name, text in given.items():
        if len(text) > _LONGEST_TEXT:
            raise InvalidError(f"{name} is too long", parameter=name)
    return given


def _get_settings(request: Request) -> Response:
    return ok(request.area(Administration).present_settings())


def _put_settings(request: Request) -> Response:
    administration = request.area(Administration)
    administration.change_settings(_texts(request.parameters, administration.offered_settings()))
    return ok(administration.present_settings())


def _get_appearance(request: Request) -> Response:
    return ok(request.area(Administration).present_appearance())


def _put_appearance(request: Request) -> Response:
    administration = request.area(Administration)
    administration.change_appearance(_texts(request.parameters, ("title", "description", "new_project_guidelines")))
    return ok(administration.present_appearance())


def _place(request: Request) -> Group | None:
    return request.group if request.route.subject is Kind.GROUP else None


def _list_roles(request: Request) -> Response:
    administration = request.area(Administration)
    return ok([administration.present_role(role) for role in administration.roles_of(_place(request))])


def _create_role(request: Request) -> Response:
    administration, parameters = request.area(Administration), request.parameters
    level = parameters.integer("base_access_level")
    if level not in set(Role) - {Role.NONE, Role.OWNER}:
        raise InvalidError("base_access_level does not have a valid value", parameter="base_access_level")
    name = parameters.optional_string("name") or "Custom"
    description = parameters.optional_string("description") or ""
    if len(name) > _LONGEST_NAME or len(description) > _LONGEST_TEXT:
        raise InvalidError("name or description is too long", parameter="name")
    role = administration.create_role(name, Role(level), description, _place(request))
    return created(administration.present_role(role))


def _delete_role(request: Request) -> Response:
    request.area(Administration).delete_role(request.path_id("member_role_id"), _place(request))
    return no_content()


_admin = partial(Route, admin_only=True)
_of_instance = partial(_admin, introduced=ROLES_OF_THE_INSTANCE)
_of_group = partial(Route, subject=Kind.GROUP, least_role=Role.OWNER)

AREA = Area(
    Administration,
    (
        _admin("GET", "/application/settings", _get_settings),
        _admin("PUT", "/application/settings", _put_settings),
        _admin("GET", "/application/appearance", _get_appearance),
        _admin("PUT", "/application/appearance", _put_appearance),
        _of_instance("GET", "/member_roles", _list_roles),
        _of_instance("POST", "/member_roles", _create_role),
        _of_instance("DELETE", "/member_roles/:member_role_id", _delete_role),
        _of_group("GET", "/groups/:id/member_roles", _list_roles),
        _of_group("POST", "/groups/:id/member_roles", _create_role, removed=ROLES_OF_THE_INSTANCE),
        _of_group("DELETE", "/groups/:id/member_roles/:member_role_id", _delete_role),
    ),
)
