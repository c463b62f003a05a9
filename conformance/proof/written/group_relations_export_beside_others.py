"""Faults of exports that show beside the export of another group, or to callers who ask for one relation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, is_route, let_in

if TYPE_CHECKING:
    from conformance.reference import Service


@fault("group-relations-export.schedule.unbatched")
def all_exports_have_the_form_of_the_latest(service: Service) -> None:
    """The status of each group shows the form in which the latest export of any group was scheduled."""
    area, latest = service.group_relations_export, {"batched": False}

    def make_schedule(schedule: Any) -> Any:
        def scheduling(group: Any, *, batched: bool) -> None:
            latest["batched"] = batched
            schedule(group, batched=batched)

        return scheduling

    around(area, "schedule", make_schedule)
    around(area, "present", lambda present: lambda export: present(replace(export, **latest)))


@fault("group-relations-export.authorization.following-anonymous")
def one_relation_is_followed_without_a_token(service: Service) -> None:
    """The status of one relation is shown without a token."""
    key = "GET /groups/:id/export_relations/status"

    def asks_for_one(request: Any) -> bool:
        asked = is_route(request.route, key) and b"relation=" in request.query
        return asked and not service.access.token_text(request)

    let_in(service, asks_for_one, "owner")
