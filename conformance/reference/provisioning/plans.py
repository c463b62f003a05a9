"""Labels and milestones of groups: listing and creating them."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import RejectedError
from conformance.reference.http import Route, created
from conformance.reference.identity import Kind, Role
from conformance.reference.provisioning import fields
from conformance.reference.versions import SUPPORTED_VERSIONS

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group
    from conformance.reference.planning import Label, Milestone
    from conformance.reference.presenters import Json

_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")


class Plans(Behaviour):
    """The labels and milestones of groups, as they can be read and made from outside."""

    name = "plans"

    def labels(self, group: Group) -> list[Label]:
        """Return the labels of a group."""
        return [label for label in self.service.planning.labels.values() if label.group_id == group.id]

    def milestones(self, group: Group) -> list[Milestone]:
        """Return the milestones of a group."""
        return [one for one in self.service.planning.milestones.values() if one.group_id == group.id]

    def require_free(self, title: str, taken: set[str]) -> None:
        """Require that a group has nothing of that title. Raise DuplicateError."""
        if title in taken:
            raise fields.DuplicateError(f"{title} already exists")

    def present_label(self, label: Label) -> Json:
        """Present a label."""
        return {"id": label.id, "name": label.title, "color": label.color}

    def present_milestone(self, milestone: Milestone) -> Json:
        """Present a milestone."""
        return {
            "id": milestone.id,
            "group_id": milestone.group_id,
            "title": milestone.title,
            "description": milestone.description,
            "state": "active",
        }


def _list_labels(request: Request) -> Response:
    plans = request.area(Plans)
    return request.collection(plans.labels(request.group), plans.present_label)


def _add_label(request: Request) -> Response:
    plans, group = request.area(Plans), request.group
    name, colour = fields.text(request.parameters, "name"), request.parameters.string("color")
    if not _COLOUR.fullmatch(colour):
        raise RejectedError("must be a valid color code", parameter="color")
    plans.require_free(name, {label.title for label in plans.labels(group)})
    return created(plans.present_label(request.service.planning.add_label(group, name, colour)))


def _list_milestones(request: Request) -> Response:
    plans = request.area(Plans)
    return request.collection(plans.milestones(request.group), plans.present_milestone)


def _add_milestone(request: Request) -> Response:
    plans, group, parameters = request.area(Plans), request.group, request.parameters
    title, description = fields.text(parameters, "title"), fields.prose(parameters, "description") or ""
    plans.require_free(title, {milestone.title for milestone in plans.milestones(group)})
    return created(plans.present_milestone(request.service.planning.add_milestone(group, title, description)))


_list = partial(Route, "GET", subject=Kind.GROUP, paginated=SUPPORTED_VERSIONS.first)
_add = partial(Route, "POST", subject=Kind.GROUP, least_role=Role.REPORTER)

AREA = Area(
    Plans,
    (
        _list("/groups/:id/labels", _list_labels),
        _add("/groups/:id/labels", _add_label),
        _list("/groups/:id/milestones", _list_milestones),
        _add("/groups/:id/milestones", _add_milestone),
    ),
)
