"""Faults of exports that show beside the export of another group, or to callers who ask for one relation."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, around, beforehand, handling, is_route, let_in, sent

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request


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


def _at_once(service: Service, *, form: bool) -> None:
    """Give both of two exports one form that are scheduled in two forms, for two groups, before a status is read."""
    area, last = service.group_relations_export, dict[str, Any]()

    def make_schedule(schedule: Any) -> Any:
        def scheduling(group: Any, *, batched: bool) -> None:
            other = dict(last)
            last.update(group=group, batched=batched)
            if other and other["group"].id != group.id and other["batched"] is not batched:
                schedule(other["group"], batched=form)
                schedule(group, batched=form)
            else:
                schedule(group, batched=batched)

        return scheduling

    around(area, "schedule", make_schedule)
    beforehand(area, "all_of", lambda _: last.clear())


@fault("group-relations-export.schedule.in-batches")
def of_two_at_once_none_comes_in_batches(service: Service) -> None:
    """Of two groups whose exports are scheduled at once, one takes the form of the other: both come in one piece."""
    _at_once(service, form=False)


@fault("group-relations-export.schedule.unbatched")
def of_two_at_once_both_come_in_batches(service: Service) -> None:
    """Of two groups whose exports are scheduled at once, one takes the form of the other: both come in batches."""
    _at_once(service, form=True)


@fault("group-relations-export.schedule.in-batches")
def by_the_path_of_a_nested_group_batches_are_never_made(service: Service) -> None:
    """Batched true is accepted, but ignored if a group inside another one is named by its path."""

    def change(handler: Any) -> Any:
        def handled(request: Any) -> Any:
            if "/" in request.path["id"]:
                request.body = json.dumps({**sent(request), "batched": False}).encode()
            return handler(request)

        return handled

    handling(service, "POST /groups/:id/export_relations", change)


@fault("group-relations-export.download.holds-its-objects")
def export_of_an_inner_group_is_that_of_the_group_around_it(service: Service) -> None:
    """The export of a group inside another one holds the objects of that other group, and none of its own."""

    def make(relations: Any) -> Any:
        def of_the_outer_one(group: Any) -> Any:
            outer = service.identities.groups.get(group.parent_id)
            return relations(group if outer is None else outer)

        return of_the_outer_one

    around(service.group_relations_export, "relations", make)


@fault("group-relations-export.schedule.belongs-to-its-group")
def groups_around_are_exported_again(service: Service) -> None:
    """An export of a group inside another one also exports that one again, in the same form."""
    area, identities = service.group_relations_export, service.identities

    def make(schedule: Any) -> Any:
        def scheduling(group: Any, *, batched: bool) -> None:
            for one in identities.lineage(group):
                schedule(one, batched=batched)

        return scheduling

    around(area, "schedule", make)


@fault("group-relations-export.download.belongs-to-its-group")
def files_of_groups_inside_are_overwritten(service: Service) -> None:
    """What was exported of a group is replaced as soon as the group around it is exported: by the file of that one."""
    area, identities = service.group_relations_export, service.identities

    def make(schedule: Any) -> Any:
        def scheduling(group: Any, *, batched: bool) -> None:
            schedule(group, batched=batched)
            own = {export.relation: export for export in area.all_of(group)}
            for (number, relation), export in list(area.exports.items()):
                if identities.groups[number].parent_id == group.id and relation in own:
                    area.exports[number, relation] = replace(export, lines=own[relation].lines)

        return scheduling

    around(area, "schedule", make)


@fault("group-relations-export.status.filtered")
def relations_are_looked_up_by_their_beginning(service: Service) -> None:
    """The status of one relation also shows those whose names begin with the same letter."""
    area = service.group_relations_export

    def alter(request: Any, response: Any) -> None:
        asked = request.parameters.optional_string("relation")
        if asked is not None:
            alike = [export for export in area.all_of(request.group) if export.relation[0] == asked[0]]
            response.content = [area.present(export) for export in alike]

    altering(service, "GET /groups/:id/export_relations/status", alter)


@fault("group-relations-export.status.filtered")
def the_status_of_one_relation_is_that_of_any_group(service: Service) -> None:
    """Asked for one relation, the status shows the latest export of it, of whichever group."""
    exports = service.group_relations_export

    def make(handler: Any) -> Any:
        def of_any(request: Request) -> Any:
            relation = request.parameters.optional_string("relation")
            found = [export for export in exports.exports.values() if export.relation == relation]
            latest = sorted(found, key=lambda export: export.started)[-1:]
            return request.collection(latest, exports.present) if latest else handler(request)

        return of_any

    handling(service, "GET /groups/:id/export_relations/status", make)


@fault("group-relations-export.download.is-of-its-relation")
def batches_of_every_relation_are_those_of_labels(service: Service) -> None:
    """Each batch holds as many objects as it should, and they are labels in the batches of every relation."""
    exports = service.group_relations_export
    batch = exports.batch

    def of_labels(export: Any, number: int) -> Any:
        own = batch(export, number)
        labels = exports.exports.get((export.group_id, "labels"))
        if labels is None or export.relation == "labels":
            return own
        before = exports.service.choices.export_batch_size * (number - 1)
        return (labels.lines * (before + len(own)))[before : before + len(own)]

    exports.batch = of_labels  # type: ignore[method-assign] # that is what a fault does
