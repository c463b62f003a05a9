"""Group relations export."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import TYPE_CHECKING

from selftest.second_server.store import OWNER, Record, RefusalError, now
from selftest.second_server.web import Response

if TYPE_CHECKING:
    from selftest.second_server.call import Call, Route
    from selftest.second_server.say import Shown
    from selftest.second_server.store import Store


RELATIONS = ["milestones", "badges", "labels", "boards", "members", "namespace_settings"]


def group_of(call: Call, key: str) -> Record:
    group = call.store.find_group(call.user, key)
    call.store.need_group(call.user, group, OWNER)
    return group


def objects(store: Store, group: Record, relation: str) -> list[Shown]:
    if relation == "labels":
        return [{"title": entry["name"], "color": entry["color"], "type": "GroupLabel"} for entry in group.labels]
    if relation == "milestones":
        return [{"title": entry["title"], "iid": n} for n, entry in enumerate(group.milestones)]
    if relation == "members":
        return [
            {"access_level": level, "user": {"username": store.users[u].username}}
            for u, level in group.members.items()
            if u in store.users
        ]
    if relation == "namespace_settings":
        return [{"prevent": False}]
    return []


def schedule(call: Call, key: str) -> Response:
    group = group_of(call, key)
    batched = call.either.boolean("batched", default=False)
    if group.export and group.export.running:
        raise RefusalError(409, "an export is under way")
    run = Record(batched=batched, running=True, entries={})
    old = group.export
    group.export = run
    started = now()
    for position, relation in enumerate(RELATIONS):
        entry = Record(
            relation=relation,
            status=0,
            updated=started,
            batches=[],
            files=[],
            batched=batched,
            former=old.entries[relation] if old else None,
        )
        run.entries[relation] = entry
        call.store.later(
            (2.5 if call.on("slow-export") else 0.25) + 0.12 * position,
            partial(finish, call.store, group, run, entry),
        )
    return call.json({"message": "Taken down; come back later."}, 202, [("Retry-After", "1")])


def finish(store: Store, group: Record, run: Record, entry: Record) -> None:
    found = objects(store, group, entry.relation)
    entry.former = None
    entry.updated = now()
    if run.batched:
        # two objects per batch, numbered from 0
        for number in range((len(found) + 1) // 2):
            part = found[number * 2 : number * 2 + 2]
            entry.files.append(part)
            entry.batches.append(
                {
                    "status": 1,
                    "batch_number": number,
                    "objects_count": len(part),
                    "error": None,
                    "updated_at": entry.updated,
                }
            )
    else:
        entry.files = [found]
    entry.status = 1
    if "failing-relation" in store.choices and entry.relation == "boards":
        entry.status = -1
    run.running = any(e.status == 0 for e in run.entries.values())


def shown(call: Call, entry: Record) -> Shown:
    record = {
        "status": entry.status,
        "relation": entry.relation,
        "error": "there is no wood" if entry.status == -1 else None,
        "updated_at": call.say.moment(entry.updated),
        "batched": entry.batched,
        "batches_count": len(entry.batches),
        "total_objects_count": 0,
    }
    if entry.batched:
        record["batches"] = [{**b, "updated_at": call.say.moment(b["updated_at"])} for b in reversed(entry.batches)]
    return record


def status(call: Call, key: str) -> Response:
    group = group_of(call, key)
    if not group.export:
        raise RefusalError(404, "nothing was exported so far")
    relation = call.query.text("relation")
    if relation is not None:
        if relation not in group.export.entries:
            raise RefusalError(404, "there is no such relation")
        return call.json(shown(call, group.export.entries[relation]))
    return call.json([shown(call, e) for e in call.say.mixed(group.export.entries.values(), lambda e: e.relation)])


def download(call: Call, key: str) -> Response:
    group = group_of(call, key)
    query = call.query
    relation = query.text("relation", required=True)
    batched = query.boolean("batched", default=False)
    number = query.integer("batch_number")
    entry = group.export.entries.get(relation) if group.export else None
    if entry is not None and entry.status != 1:
        entry = entry.former
    if entry is None or entry.status != 1:
        raise RefusalError(404, "there is no finished export of this")
    if entry.batched != batched or (batched and number is None):
        raise RefusalError(400, "not exported in this way")
    if not batched and number is not None:
        raise RefusalError(400, "there are no batches")
    if batched and not 0 <= number < len(entry.files):
        raise RefusalError(404, "there is no such batch")
    rows = entry.files[number if batched else 0]
    # one gzip member for each line: together they are one gzip file
    data = b"".join(gzip.compress(json.dumps(row, ensure_ascii=False).encode() + b"\n", mtime=0) for row in rows)
    data = data or gzip.compress(b"", mtime=0)
    name = f"{relation}.ndjson.gz"
    return Response(
        200,
        data,
        [("Content-Type", "application/gzip"), ("Content-Disposition", f"attachment; filename*=UTF-8''{name}")],
    )


BASE = "groups/:id/export_relations"
ROUTES: list[Route] = [
    ("POST", BASE, schedule),
    ("GET", BASE + "/status", status),
    ("GET", BASE + "/download", download),
]
