"""Audit events: who changed what, for the installation, a group or a project.

Specification: Versioning, row 18.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import not_found
from conformance.reference.http import Route, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.keyset import by_keyset
from conformance.reference.store import Table
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

if TYPE_CHECKING:
    from datetime import datetime

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Subject
    from conformance.reference.presenters import Json

KEYSET_ONLY = Version(18, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One change; `kind` and `subject_id` name the project or group it happened to."""

    id: int
    author_id: int
    kind: Kind
    subject_id: int
    message: str
    created_at: datetime


class AuditEvents(Behaviour):
    """The log of changes."""

    name = "audit_events"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.events: Table[int, AuditEvent] = Table(service.store)

    def record(self, author_id: int, kind: Kind, subject_id: int, message: str) -> AuditEvent:
        """Log a change to a project or group."""
        event = AuditEvent(
            id=self.service.store.next_id("audit_events"),
            author_id=author_id,
            kind=kind,
            subject_id=subject_id,
            message=message,
            created_at=self.service.clock.now(),
        )
        self.events[event.id] = event
        return event

    def of(self, kind: Kind | None, subject: Subject | None) -> list[AuditEvent]:
        """Return the events of a project or group, or all of them."""
        events = self.events.values()
        return [e for e in events if subject is None or (e.kind is kind and e.subject_id == subject.id)]

    def keyset_only(self) -> bool:
        """Say whether events are no longer listed by page number."""
        return self.service.version >= KEYSET_ONLY

    def present(self, event: AuditEvent) -> Json:
        """Present an event."""
        return {
            "id": event.id,
            "author_id": event.author_id,
            "entity_id": event.subject_id,
            "entity_type": event.kind.value.title(),
            "details": {"custom_message": event.message, "author_id": event.author_id},
            "created_at": self.service.present.timestamp(event.created_at),
        }


def _found(request: Request) -> list[AuditEvent]:
    kind = request.route.subject
    subject: Subject | None = None
    if kind is not None:
        subject = request.project if kind is Kind.PROJECT else request.group
    return request.area(AuditEvents).of(kind, subject)


def _list(request: Request) -> Response:
    audit_events = request.area(AuditEvents)
    if audit_events.keyset_only():
        return by_keyset(request, _found(request), attrgetter("id"), audit_events.present)
    return request.collection(_found(request), audit_events.present)


def _get(request: Request) -> Response:
    number = request.path_id("audit_event_id")
    event = next((event for event in _found(request) if event.id == number), None)
    if event is None:
        raise not_found("Audit Event")
    return ok(request.area(AuditEvents).present(event))


def _routes(prefix: str, kind: Kind | None = None, least: Role = Role.NONE) -> tuple[Route, ...]:
    listing = Route(
        "GET",
        f"{prefix}/audit_events",
        _list,
        subject=kind,
        least_role=least,
        admin_only=kind is None,
        paginated=SUPPORTED_VERSIONS.first,
    )
    one = Route(
        "GET",
        f"{prefix}/audit_events/:audit_event_id",
        _get,
        subject=kind,
        least_role=least,
        admin_only=kind is None,
    )
    return listing, one


AREA = Area(
    AuditEvents,
    (
        *_routes(""),
        *_routes("/projects/:id", Kind.PROJECT, Role.MAINTAINER),
        *_routes("/groups/:id", Kind.GROUP, Role.OWNER),
    ),
)
