"""What a target shows, and what a report says, as values that can be compared."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.http.client import Client
from conformance.target.spots import Spot, Spots

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.target.profile import Profile

#: How many reads wait at the same time for a slow service.
_AT_ONCE = 16
#: Fields that change with every write; no operation sets them back.
_MOVING = ("created_at", "updated_at", "last_activity_at")


def report_of(folder: Path) -> dict[str, Any]:
    """Return the JSON report in the folder of a run."""
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return report


def rows_of(folder: Path) -> dict[str, Any]:
    """Return the rows of the JSON report in the folder of a run, by requirement."""
    return {row["id"]: row for row in report_of(folder)["requirements"]}


def path_of(path: str, spot: Spot) -> str | None:
    """Return the path of an operation for a place; None if it is about another level or needs more parameters."""
    level = "merge request" if "/merge_requests/" in path else path.split("/")[1].removesuffix("s")
    found = path.replace("{id}", str(spot.number)).replace("{merge_request_iid}", str(spot.iid))
    return None if level != spot.level or "{" in found else found


def everything_read(profile: Profile) -> dict[str, Any]:
    """Return the response to every read of the contract, for everything that the profile names."""
    reads = [operation for operation in Contract.load().operations(profile.version) if operation.is_read]
    paths = {path_of(operation.path, spot) for operation, spot in product(reads, Spots(profile).all)} - {None}
    with Client(profile.client_settings(_AT_ONCE)) as client, ThreadPoolExecutor(_AT_ONCE) as pool:

        def read(path: str) -> tuple[str, Any]:
            exchange = client.send(profile.actors["admin"], "GET", path, query={"per_page": 100})
            return path, (exchange.status, steady(json.loads(exchange.body or b"null")))

        return dict(pool.map(read, [path for path in paths if path and "export_relations" not in path]))


def steady(value: Any) -> Any:
    """Leave out times, the order of lists, and the number of the rule that a service creates and replaces by itself."""
    if isinstance(value, dict):
        moving = (*_MOVING, "id") if value.get("rule_type") == "any_approver" else _MOVING
        return {name: steady(entry) for name, entry in value.items() if name not in moving}
    if isinstance(value, list):
        return sorted((steady(entry) for entry in value), key=lambda entry: json.dumps(entry, sort_keys=True))
    return value
