"""Audit events: who changed what anywhere in the installation.

Specification: Versioning, row 18.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.http import Route
from conformance.reference.keyset import by_keyset
from conformance.reference.store import Table
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

if TYPE_CHECKING:
    from datetime import datetime

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Kind
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

    def record(self, author_id: int, kind: Kind, subject_id: int, message: str) -> None:
        """Log a change to a project or group."""
        number = self.service.store.next_id("audit_events")
        self.events[number] = AuditEvent(
            id=number,
            author_id=author_id,
            kind=kind,
            subject_id=subject_id,
            message=message,
            created_at=self.service.clock.now(),
        )

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


def _list(request: Request) -> Response:
    audit_events = request.area(AuditEvents)
    events = list(audit_events.events.values())
    if audit_events.keyset_only():
        return by_keyset(request, events, attrgetter("id"), audit_events.present)
    return request.collection(events, audit_events.present)


AREA = Area(
    AuditEvents,
    (Route("GET", "/audit_events", _list, admin_only=True, paginated=SUPPORTED_VERSIONS.first),),
)
