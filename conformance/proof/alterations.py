"""Legal differences of the reference that are no choice of its own: each is put on a service that was just made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.reference.areas.integrations import Integrations
from conformance.reference.errors import InvalidError
from conformance.reference.http import Response
from conformance.reference.routing import Route

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.store import Snapshot

Alteration = Callable[["Service"], None]

#: How long reads lag behind writes where they do, in seconds.
LAG_SECONDS = 0.02
_DOWNLOAD = "GET /groups/:id/export_relations/download"
_STORAGE = "/object-storage/:key"
_ADDITIONS = {
    "POST /projects/:id/job_token_scope/allowlist": "target_group_id",
    "POST /projects/:id/job_token_scope/groups_allowlist": "target_project_id",
}


def adds_fields_everywhere(service: Service) -> None:
    """Give every object of every answer two fields that nobody described."""
    _transform(service, lambda _, __, answer: _replace_content(answer, _with_extra(answer.content)))


def shows_fields_of_other_records(service: Service) -> None:
    """Show the field of the other kind of target, without a value, in what an allowlist addition answers."""

    def transform(route: Route, _: Request, answer: Response) -> None:
        if route.key in _ADDITIONS and isinstance(answer.content, dict) and answer.status < 300:  # noqa: PLR2004
            answer.content = {**answer.content, _ADDITIONS[route.key]: None}

    _transform(service, transform)


def leaves_values_null(service: Service) -> None:
    """Have users without a picture."""
    present = service.present.user

    def without(user: Any) -> dict[str, Any]:
        return {**present(user), "avatar_url": None}

    service.present.user = without  # type: ignore[method-assign] # a service is altered by putting methods in place


def leaves_ldap_out(service: Service) -> None:
    """Show nothing of LDAP, as an edition without it."""
    present = service.present.group

    def without(group: Any) -> dict[str, Any]:
        return {name: value for name, value in present(group).items() if not name.startswith("ldap_")}

    service.present.group = without  # type: ignore[method-assign] # see above


def shows_code_owner_flag_as_truth_value(service: Service) -> None:
    """Show code_owner_approval_required of a project's branches as the type column has it."""
    present = service.present.project_protected_branch

    def shown(branch: Any) -> dict[str, Any]:
        return {**present(branch), "code_owner_approval_required": branch.code_owner_approval_required}

    service.present.project_protected_branch = shown  # type: ignore[method-assign] # see above


def still_changes_configurations(service: Service) -> None:
    """Serve changes of the project approval configuration at every version."""
    service.routes.change("POST /projects/:id/approvals", removed=None)


def drops_unfit_settings(service: Service) -> None:
    """Leave out, instead of refusing, what an integration cannot take of what was sent."""
    area = service.area(Integrations)
    read = area.read

    def what_fits(kind: Any, parameters: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        alone = [replace(kind, parameters=(parameter,), events=()) for parameter in kind.parameters]
        alone += [replace(kind, parameters=(), events=(name,)) for name in kind.events]
        for part in alone:
            with suppress(InvalidError):
                found |= read(part, parameters)
        return found

    area.read = what_fits  # type: ignore[method-assign] # see above


def sends_strangers_to_a_login(service: Service) -> None:
    """Name the page to which callers without a token are redirected; goes with a status of 302 for them."""

    def transform(_: Route, __: Request, answer: Response) -> None:
        if answer.status == service.choices.anonymous_code:
            answer.headers.setdefault("location", "/users/sign_in")

    _transform(service, transform)


def encodes_downloads(service: Service) -> None:
    """Send exports as text that is compressed on the way, not as a compressed file."""

    def transform(route: Route, _: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.raw and answer.status < 300:  # noqa: PLR2004 - HTTP's own number
            answer.headers["content-encoding"] = "gzip"
            answer.media_type = "application/x-ndjson"

    _transform(service, transform)


def keeps_downloads_in_a_storage(service: Service) -> None:
    """Redirect downloads to an object storage that needs no token, and names no file."""
    stored: dict[str, bytes] = {}

    def fetch(request: Request) -> Response:
        return Response(raw=stored[request.path["key"]], media_type="application/gzip")

    def transform(route: Route, _: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.raw and answer.status < 300:  # noqa: PLR2004 - HTTP's own number
            key = str(len(stored))
            stored[key], answer.raw, answer.status = answer.raw, b"", 302
            answer.headers = {"location": _STORAGE.replace(":key", key) + "?signature=0a1b2c"}

    service.routes.put(Route("GET", _STORAGE, fetch, anonymous=True, prefixed=False))
    _transform(service, transform)


def lets_reads_lag(service: Service) -> None:
    """Let every read see what was there LAG_SECONDS ago; writes see everything."""
    history: list[tuple[float, Snapshot]] = []

    def lagging(route: Route) -> None:
        handler = route.handler

        def answer(request: Request) -> Response:
            now = service.clock.seconds()
            if request.method != "GET":
                history.append((now, service.store.snapshot()))
                return handler(request)
            del history[: next((at for at, (moment, _) in enumerate(history) if now - moment < LAG_SECONDS), None)]
            if not history:
                return handler(request)
            latest = service.store.snapshot()
            service.store.restore(history[0][1])
            try:
                return handler(request)
            finally:
                service.store.restore(latest)

        service.routes.change(route.key, handler=answer)

    for route in list(service.routes):
        lagging(route)


# -- small steps ---------------------------------------------------------------------------------------------------


def _transform(service: Service, change: Callable[[Route, Request, Response], None]) -> None:
    def transform(route: Route, request: Request, answer: Response) -> Response:
        change(route, request, answer)
        return answer

    service.transformers.append(transform)


def _replace_content(answer: Response, content: object) -> None:
    if answer.has_content:
        answer.content = content


def _with_extra(value: object) -> object:
    if isinstance(value, dict):
        return {**{name: _with_extra(inner) for name, inner in value.items()}, "x_note": {"of": []}, "_links": None}
    if isinstance(value, list):
        return [_with_extra(entry) for entry in value]
    return value


ALTERATIONS: dict[str, Alteration] = {
    alteration.__name__.replace("_", "-"): alteration
    for alteration in (
        adds_fields_everywhere,
        shows_fields_of_other_records,
        leaves_values_null,
        leaves_ldap_out,
        shows_code_owner_flag_as_truth_value,
        still_changes_configurations,
        drops_unfit_settings,
        encodes_downloads,
        keeps_downloads_in_a_storage,
    )
}
"""What any service may be altered by, whatever its choices; by name."""
