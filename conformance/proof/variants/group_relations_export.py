"""Variants in when exports of group relations begin, end and are shown, and the alterations that make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.variants import exported_files
from conformance.proof.variants.variant import Variant
from conformance.reference.areas.group_relations_export import RelationExport, Status
from conformance.reference.choices import Choices
from conformance.reference.errors import NotFoundError, RejectedError, RepeatedError
from conformance.reference.http import Request, Response
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.identity import Group

_DOWNLOAD = "GET /groups/:id/export_relations/download"
_EXPORT_STATUS = "GET /groups/:id/export_relations/status"
_LATE_SECONDS = 0.15
#: The relation of `exports_one_relation_for_ever`.
_ENDLESS = "boards"
_EXPORTS = tuple(
    f"{method} /groups/:id/export_relations{rest}"
    for method, rest in (("POST", ""), ("GET", "/status"), ("GET", "/download"))
)


def lets_everybody_export(service: Service) -> None:
    """Let everybody who sees a group export it."""
    for key in ("POST /groups/:id/export_relations", "GET /groups/:id/export_relations/status", _DOWNLOAD):
        service.routes.change(key, least_role=Role.NONE)


def exports_for_each_user(service: Service) -> None:
    """Keep the exports of each user separate, so that nobody sees those of another."""
    exports = service.group_relations_export
    of_user: dict[int, dict[Any, Any]] = {}

    def own(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            exports.exports.clear()
            exports.exports.update(of_user.get(request.caller.id, {}))
            try:
                return handler(request)
            finally:
                of_user[request.caller.id] = dict(exports.exports)

        return answer

    for key in _EXPORTS:
        service.routes.change(key, handler=own(service.routes.get(key).handler))


def refuses_exports_meanwhile(service: Service) -> None:
    """Refuse to schedule an export while one of the group is running."""
    exports = service.group_relations_export
    schedule = exports.schedule

    def one_at_a_time(group: Any, *, batched: bool) -> None:
        if any(exports.status_of(export) is Status.STARTED for export in exports.all_of(group)):
            raise RepeatedError("An export is running.")
        schedule(group, batched=batched)

    exports.schedule = one_at_a_time


def serves_older_exports_meanwhile(service: Service) -> None:
    """Serve the file of the previous export, if there is one, while the newer one is running."""
    exports = service.group_relations_export
    schedule, download = exports.schedule, exports.download
    older: dict[tuple[int, str], RelationExport] = {}

    def remember(group: Any, *, batched: bool) -> None:
        for export in exports.all_of(group):
            if exports.status_of(export) is Status.FINISHED:
                older[group.id, export.relation] = export
        schedule(group, batched=batched)

    def whichever_there_is(export: RelationExport, batch_number: int | None) -> bytes:
        before = older.get((export.group_id, export.relation))
        if before and exports.status_of(export) is Status.STARTED and before.batched is (batch_number is not None):
            export = before
        return download(export, batch_number)

    exports.schedule = remember
    exports.download = whichever_there_is


def finishes_relations_one_by_one(service: Service) -> None:
    """Start the relations of an export one after the other: until then, the entry of the previous export stays."""
    exports = service.group_relations_export
    schedule, seconds = exports.schedule, service.clock.seconds
    waiting: dict[tuple[int, str], tuple[float, RelationExport]] = {}

    def one_by_one(group: Any, *, batched: bool) -> None:
        before = {export.relation: export for export in exports.all_of(group)}
        schedule(group, batched=batched)
        delay = service.choices.export_delay_seconds
        for place, export in enumerate(exports.all_of(group)):
            begins = seconds() + place * delay
            waiting[group.id, export.relation] = begins, replace(export, started=begins)
            if export.relation in before:
                exports.exports[group.id, export.relation] = before[export.relation]
            else:
                exports.exports[group.id, export.relation] = replace(export, started=begins)

    def take_up() -> None:
        for key, (begins, export) in list(waiting.items()):
            if seconds() >= begins:
                exports.exports[key] = replace(export, started_at=service.clock.now())
                del waiting[key]

    _before_each_look(service, take_up)
    exports.schedule = one_by_one


def begins_exports_later(service: Service) -> None:
    """Accept an export at once and start it a moment later: until then nothing of it shows."""
    exports = service.group_relations_export
    schedule, seconds = exports.schedule, service.clock.seconds
    accepted: list[tuple[float, Any, bool]] = []

    def accept(group: Any, *, batched: bool) -> None:
        accepted.append((seconds() + _LATE_SECONDS, group, batched))

    def begin() -> None:
        while accepted and seconds() >= accepted[0][0]:
            _, group, batched = accepted.pop(0)
            schedule(group, batched=batched)

    _before_each_look(service, begin)
    exports.schedule = accept


def tries_exports_again(service: Service) -> None:
    """Let the export of each relation fail at first, and then start again by itself."""
    exports = service.group_relations_export
    status_of, seconds = exports.status_of, service.clock.seconds

    def at_the_second_try(export: RelationExport) -> Status:
        tries = (seconds() - export.started) / _LATE_SECONDS
        return Status.FAILED if tries < 1 else Status.STARTED if tries < 2 else status_of(export)  # noqa: PLR2004 - two tries

    exports.status_of = at_the_second_try


def lists_batches_as_they_come(service: Service) -> None:
    """Show only the first batch, and count one, while an export is running."""
    exports = service.group_relations_export
    present = exports.present

    def shown(export: RelationExport) -> dict[str, Any]:
        entry: dict[str, Any] = dict(present(export))
        if export.batched and exports.status_of(export) is Status.STARTED:
            entry["batches"] = entry["batches"][:1]
            entry["batches_count"] = len(entry["batches"])
        return entry

    exports.present = shown


def exports_once_at_a_time(service: Service) -> None:
    """Refuse to export a group again while any of its relations is running, and export one after the other."""
    exports = service.group_relations_export
    schedule, status_of = exports.schedule, exports.status_of

    def status_in_turn(export: RelationExport) -> Status:
        relations = sorted(each.relation for each in exports.exports.values() if each.group_id == export.group_id)
        place = relations.index(export.relation)
        turn = replace(export, started=export.started + place * service.choices.export_delay_seconds)
        return Status(status_of(turn))

    def once(group: Any, *, batched: bool) -> None:
        if any(exports.status_of(export) is Status.STARTED for export in exports.all_of(group)):
            raise RejectedError("409 An export is running")
        schedule(group, batched=batched)

    exports.status_of = status_in_turn
    exports.schedule = once


def exports_one_group_at_a_time(service: Service) -> None:
    """Refuse to export a group while the export of any other one is running."""
    exports = service.group_relations_export
    schedule = exports.schedule

    def one_at_a_time(group: Any, *, batched: bool) -> None:
        others = [export for export in exports.exports.values() if export.group_id != group.id]
        if any(exports.status_of(export) is Status.STARTED for export in others):
            raise RejectedError("409 Another group is exported")
        schedule(group, batched=batched)

    exports.schedule = one_at_a_time


def exports_only_what_changed(service: Service) -> None:
    """Accept an export without beginning one as long as the finished one holds the same."""
    area = service.group_relations_export
    schedule = area.schedule

    def scheduled(group: Any, *, batched: bool) -> None:
        objects = area.relations(group)
        lines = {relation: tuple(orjson.dumps(one) for one in held) for relation, held in objects.items()}
        known = {export.relation: export.lines for export in area.all_of(group) if export.batched is batched}
        if known != lines:
            schedule(group, batched=batched)

    area.schedule = scheduled


def exports_one_relation_for_ever(service: Service) -> None:
    """Let the export of one relation run for ever."""
    exports = service.group_relations_export
    status_of = exports.status_of

    def still_running(export: RelationExport) -> Status:
        return Status.STARTED if export.relation == _ENDLESS else Status(status_of(export))

    exports.status_of = still_running


def has_no_status_before_the_first_export(service: Service) -> None:
    """Refuse the status of a group's exports before the first export."""
    exports = service.group_relations_export
    status = service.routes.get(_EXPORT_STATUS).handler

    def after_the_first(request: Request) -> Response:
        response: Response = status(request)  # first: an export may begin when somebody looks
        if not exports.all_of(request.group):
            raise NotFoundError("404 Export not found")
        return response

    service.routes.change(_EXPORT_STATUS, handler=after_the_first)


def lists_relations_before_the_first_export(service: Service) -> None:
    """List the relations of a group, without a state, before its first export."""
    exports = service.group_relations_export
    status = service.routes.get(_EXPORT_STATUS).handler

    def listed(request: Request) -> Response:
        if exports.all_of(request.group):
            return status(request)
        empty = [{"relation": relation, "status": None} for relation in exports.relations(request.group)]
        return Response(content=empty, has_content=True)

    service.routes.change(_EXPORT_STATUS, handler=listed)


def empties_the_status_first(service: Service) -> None:
    """Show no entry for a moment after an export was accepted, whatever was listed before."""
    exports = service.group_relations_export
    schedule = exports.schedule
    accepted: dict[int, tuple[float, Any, bool]] = {}

    def accept(group: Any, *, batched: bool) -> None:
        for key in [key for key in exports.exports if key[0] == group.id]:
            del exports.exports[key]
        accepted[group.id] = service.clock.seconds() + _LATE_SECONDS, group, batched

    def on_time(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            waiting = accepted.get(request.group.id)
            if waiting and service.clock.seconds() >= waiting[0]:
                del accepted[request.group.id]
                schedule(waiting[1], batched=waiting[2])
            return handler(request)

        return answer

    exports.schedule = accept
    for key in _EXPORTS:
        service.routes.change(key, handler=on_time(service.routes.get(key).handler))


def _before_each_look(service: Service, act: Callable[[], None]) -> None:
    for name in ("", "/status", "/download"):
        key = f"{'GET' if name else 'POST'} /groups/:id/export_relations{name}"
        handler = service.routes.get(key).handler

        def after_acting(request: Request, handler: Any = handler) -> Response:
            act()
            response: Response = handler(request)
            return response

        service.routes.change(key, handler=after_acting)


def exports_what_lies_within(service: Service) -> None:
    """Export all groups within the one that is exported as well."""
    exports, groups = service.group_relations_export, service.identities.groups
    schedule = exports.schedule

    def schedule_all(group: Group, *, batched: bool) -> None:
        for one in [one for one in groups.values() if f"{one.full_path}/".startswith(f"{group.full_path}/")]:
            schedule(one, batched=batched)

    exports.schedule = schedule_all


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "slow-exports",
        "An export takes a second, in which no other begins and the older files stay; one relation is an object.",
        replace(
            _PLAIN,
            export_delay_seconds=1.0,
            export_batch_size=1,
            export_status_filtered_as_list=False,
            unbatched_export_has_batches=True,
        ),
        alterations=(refuses_exports_meanwhile, serves_older_exports_meanwhile),
    ),
    Variant(
        "exports-one-by-one",
        "Relations are exported one after the other, batches show as they come, and files hold nothing but ASCII.",
        Choices(export_delay_seconds=0.06),
        alterations=(
            exported_files.escapes_letters_in_files,
            finishes_relations_one_by_one,
            lists_batches_as_they_come,
        ),
    ),
    Variant(
        "exports-once-at-a-time",
        "Relations end one after the other, and until the last of them a group is not exported anew.",
        Choices(export_delay_seconds=0.03),
        alterations=(exports_once_at_a_time,),
    ),
    Variant(
        "exports-of-one-group-at-a-time",
        "No group is exported while another one is.",
        Choices(export_delay_seconds=0.2),
        alterations=(exports_one_group_at_a_time,),
    ),
    Variant(
        "exports-begin-later",
        "An export begins a moment after it was accepted; before the first one there is no status.",
        alterations=(
            has_no_status_before_the_first_export,
            # Last, so that an export begins before anything else looks at it.
            begins_exports_later,
        ),
    ),
    Variant(
        "an-export-without-end",
        "The export of one relation never ends; what else is exported can be downloaded meanwhile.",
        limits={"deadline_seconds": 3},
        alterations=(exports_one_relation_for_ever,),
        alone="whatever waits for the end of an export is inconclusive",
    ),
    Variant(
        "exports-only-what-changed",
        "What has not changed since the last export is not exported once more.",
        alterations=(exports_only_what_changed,),
    ),
    Variant(
        "exports-tried-again",
        "An export fails at first, begins once more by itself, and then finishes.",
        alterations=(tries_exports_again,),
    ),
    Variant(
        "relations-before-the-first-export",
        "Before the first export the status lists relations without a state.",
        alterations=(lists_relations_before_the_first_export,),
    ),
    Variant(
        "exports-of-each-user",
        "Each user has exports of their own.",
        alterations=(exports_for_each_user,),
    ),
    Variant(
        "exports-begin-with-nothing",
        "When an export was accepted there is no status for a moment.",
        alterations=(empties_the_status_first,),
    ),
    Variant(
        "exports-what-lies-within",
        "With a group all groups within it are exported.",
        alterations=(exports_what_lies_within,),
    ),
)
