"""Recorded traffic as browsers write it, and the findings in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract, Version
from conformance.versions.traffic import TrafficLint, TrafficReport, Use

if TYPE_CHECKING:
    from pathlib import Path

API = "https://service.example.com/some/prefix/api/v4"
SETTINGS = {"inbound_enabled": True, "outbound_enabled": False}
CONFIGURATION = {
    "approvers": [],
    "approver_groups": [],
    "approvals_before_merge": 0,
    "reset_approvals_on_push": True,
    "selective_code_owner_removals": False,
    "disable_overriding_approvers_per_merge_request": False,
    "merge_requests_author_approval": False,
    "merge_requests_disable_committers_approval": True,
    "require_password_to_approve": False,
}


def call(
    method: str,
    path: str,
    status: int = 200,
    answer: Any = None,
    *,
    sent: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """An entry as browsers write it; `more` overrides some of its parts."""
    content: dict[str, Any] = {"size": 0, "mimeType": "application/json"}
    if answer is not None:
        content["text"] = answer if isinstance(answer, str) else json.dumps(answer)
    request: dict[str, Any] = {"method": method, "url": path if "://" in path else f"{API}{path}"}
    if sent is not None:
        request["postData"] = sent
    return {"request": request, "response": {"status": status, "content": content}, **more}


def as_json(value: Any) -> dict[str, Any]:
    return {"mimeType": "application/json", "text": json.dumps(value)}


def har(folder: Path, *entries: Any) -> Path:
    file = folder / "traffic.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}), encoding="utf-8")
    return file


def linted(folder: Path, *entries: Any, as_of: str | None = None) -> TrafficReport:
    version = Version.parse(as_of) if as_of else None
    return TrafficLint(Contract.load(), version).read(har(folder, *entries))


def found(report: TrafficReport) -> set[tuple[Use, str]]:
    return {(entry.use, entry.what) for entry in report.found}
