"""Variables of a project, under which whoever prepares or tests it may leave word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import InvalidError, not_found
from conformance.reference.http import Route, created, no_content, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.provisioning import fields
from conformance.reference.store import Table
from conformance.reference.versions import SUPPORTED_VERSIONS

if TYPE_CHECKING:
    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.presenters import Json

_LONGEST_VALUE = 10_000


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable."""

    key: str
    value: str


class Variables(Behaviour):
    """The variables of all projects."""

    name = "variables"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.table: Table[tuple[int, str], Variable] = Table(service.store)  # by project id and key

    def find(self, project_id: int, key: str) -> Variable:
        """Find a variable. Raise NotFoundError."""
        found = self.table.get((project_id, key))
        if found is None:
            raise not_found("Variable")
        return found


def _present(variable: Variable) -> Json:
    return {"variable_type": "env_var", "key": variable.key, "value": variable.value, "protected": False}


def _list(request: Request) -> Response:
    of_all = request.area(Variables).table.items()
    found = [variable for (project_id, _), variable in of_all if project_id == request.project.id]
    return request.collection(found, _present)


def _get(request: Request) -> Response:
    return ok(_present(request.area(Variables).find(request.project.id, request.path["key"])))


def _create(request: Request) -> Response:
    variables, parameters = request.area(Variables), request.parameters
    variable = Variable(fields.text(parameters, "key"), fields.text(parameters, "value", _LONGEST_VALUE))
    place = (request.project.id, variable.key)
    if variables.table.get(place) is not None:
        raise InvalidError("key has already been taken", parameter="key")
    variables.table[place] = variable
    return created(_present(variable))


def _update(request: Request) -> Response:
    variables = request.area(Variables)
    found = variables.find(request.project.id, request.path["key"])
    changed = replace(found, value=fields.text(request.parameters, "value", _LONGEST_VALUE))
    variables.table[request.project.id, found.key] = changed
    return ok(_present(changed))


def _delete(request: Request) -> Response:
    variables = request.area(Variables)
    del variables.table[request.project.id, variables.find(request.project.id, request.path["key"]).key]
    return no_content()


_route = partial(Route, subject=Kind.PROJECT, least_role=Role.MAINTAINER)

AREA = Area(
    Variables,
    (
        _route("GET", "/projects/:id/variables", _list, paginated=SUPPORTED_VERSIONS.first),
        _route("POST", "/projects/:id/variables", _create),
        _route("GET", "/projects/:id/variables/:key", _get),
        _route("PUT", "/projects/:id/variables/:key", _update),
        _route("DELETE", "/projects/:id/variables/:key", _delete),
    ),
)
