"""Finds out what a target shows of itself: features, completions, passwords, and, by trying them, integrations."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.http.bodies import records_of
from conformance.http.exchange import NOT_THERE
from conformance.target.provisioning.calls import BEARER, REFUSED
from conformance.target.provisioning.integrations import Trial, catalogue, described_by, features_from, fixtures_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.target.provisioning.calls import Calls, Entry

Told = tuple[str, Any]
#: How many projects are tried for something that any of them may have.
_MOST_ASKED = 20
#: The paths below a project where this name shows that it asks for a password.
_ASKING, _ASKS = ("approvals", "merge_request_approval_setting"), "require_password_to_approve"
#: The statuses of a relation whose export has ended: finished and failed.
_FINISHED, _ENDED = 1, (1, -1)


def of_service(calls: Calls, token: str, base_url: str) -> Iterator[Told]:
    """Yield keys of a profile with their values: whether the target reports its version, and its edition."""
    if calls.get(token, "/version").entry.get("version"):
        yield "version", "auto"
    if found := edition(calls, token):
        yield "edition", found
    if endpoint := token_endpoint(calls, base_url):
        yield "fixtures.oauth_token_endpoint", {"url": endpoint}


def edition(calls: Calls, token: str) -> str | None:
    """Return the edition that a target reports; None when it reports none."""
    enterprise = calls.get(token, "/metadata").entry.get("enterprise")
    return ("enterprise" if enterprise else "community") if isinstance(enterprise, bool) else None


def token_endpoint(calls: Calls, base_url: str) -> str | None:
    """Return the address that issues tokens for a password; None when nothing is served there."""
    endpoint = f"{base_url}/oauth/token"
    status = calls.ask("", endpoint, {"grant_type": "password"}).status
    return None if status in {None, *NOT_THERE} else endpoint


def is_there(calls: Calls, tokens: Iterable[str], path: str) -> bool:
    """Tell whether the operation at a path exists: a service that has removed it refuses every caller.

    If only one of several callers is refused, or the operation fails, it exists; a run tests whether that is right.
    """
    return any(calls.get(token, path).status not in {*REFUSED, *NOT_THERE} for token in tokens)


def completions(calls: Calls, token: str, projects: Iterable[Entry]) -> dict[str, Any]:
    """Return one project with code completion on and one with it off, as far as the target shows them."""
    found: dict[str, Any] = {}
    for project in [*projects][:_MOST_ASKED]:
        path = project["path_with_namespace"]
        answer = calls.ask(token, "/code_suggestions/enabled", {"project_path": path})
        if answer.is_served or answer.status == HTTPStatus.FORBIDDEN:
            found.setdefault("enabled_project" if answer.is_served else "disabled_project", {"path": path})
        if len(found) > 1:
            break
    return found if "enabled_project" in found else {}


def completes(calls: Calls, token: str, project: str) -> bool:
    """Tell whether completions are enabled: if they are switched off, each is refused; gateway errors prove nothing.

    If a target refuses completions without optional data, or all tokens but bearer tokens, it still has them, and a run
    reports that.
    """
    needed = {"file_name": "greeting.py", "content_above_cursor": "def greet(name):\n    "}
    most = {**needed, "content_below_cursor": "\n"}
    options = {"intent": "completion", "stream": False, "project_path": project}
    bodies = ({"current_file": needed}, {"current_file": most}, {"current_file": most, **options})
    tries = [*((token, body) for body in bodies), (f"{BEARER}{token}", bodies[0])]
    asked = (calls.ask(shown, "/code_suggestions/completions", body).status for shown, body in tries)
    return any(status not in REFUSED for status in asked)


def asks_for_password(calls: Calls, token: str, project: int) -> bool:
    """Tell whether a project shows that it asks approvers for their passwords."""
    return any(is_on(calls, token, f"/projects/{project}/{place}", _ASKS) for place in _ASKING)


def is_on(calls: Calls, token: str, path: str, name: str) -> bool:
    """Tell whether a setting is shown as on, by itself or as the value of a record."""
    value = calls.get(token, path).entry.get(name)
    return value is True or (isinstance(value, dict) and value.get("value") is True)


def exported_relations(calls: Calls, token: str, group: int) -> Mapping[str, int | None] | None:
    """Export a group in batches; return its relations with the number of their objects, 0 if unknown.

    The number of a relation that did not finish is None. Return None when no export was accepted, or no relation
    finished in time.
    """
    path = f"/groups/{group}/export_relations"
    if not calls.send(token, "POST", path, {"batched": True}).is_served:
        return None
    found: dict[str, int] = {}
    unfinished: dict[str, None] = {}

    def ended() -> Entry | None:
        entries = [entry for entry in records_of(calls.get(token, f"{path}/status").body) if entry.get("relation")]
        finished = (entry for entry in entries if entry.get("status") == _FINISHED)
        found.update({str(entry["relation"]): _objects_of(entry) for entry in finished})
        unfinished.update(dict.fromkeys(str(entry["relation"]) for entry in entries))
        return found if found and all(entry.get("status") in _ENDED for entry in entries) else None

    calls.until(ended)  # some relations may never end
    return {**unfinished, **found} if found else None


def _objects_of(entry: Entry) -> int:
    """Return how many objects the batches of a relation have; none if it is in one piece."""
    counts = [batch.get("objects_count") for batch in entry.get("batches") or () if isinstance(batch, dict)]
    return sum(count for count in counts if isinstance(count, int))


def integrations(calls: Calls, token: str, project: int) -> tuple[dict[str, Any], Mapping[str, bool]]:
    """Try each kind of integration that is not set up on a project, and disable it again.

    Return the fixtures for these kinds, and the features that the target therefore lacks.
    """
    trial = Trial.on(calls, token, project)
    known = {str(entry.get("slug")) for entry in records_of(calls.get(token, trial.path).body)}
    # Integrations that are set up already are not changed, and are known to exist.
    found, refused = described_by(trial, [kind for kind in catalogue() if kind.slug not in known])
    fixtures = fixtures_from(found)
    return (fixtures, features_from(found, {*refused, *known})) if fixtures else ({}, {})
