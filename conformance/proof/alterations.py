"""Legal differences of the reference that are no choice of its own: each is put on a service that was just made."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from conformance.proof import approval_alterations, area_alterations, rule_alterations, wire_alterations
from conformance.proof.wire_alterations import Alteration, transform
from conformance.reference.areas.group_relations_export import RelationExport, Status
from conformance.reference.areas.integrations import Integrations
from conformance.reference.errors import ForbiddenError, InvalidError, RepeatedError
from conformance.reference.http import Response, created
from conformance.reference.identity import Role
from conformance.reference.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.store import Snapshot

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
    transform(service, lambda _, __, answer: _replace_content(answer, _with_extra(answer.content)))


def shows_fields_of_other_records(service: Service) -> None:
    """Show the field of the other kind of target, without a value, in what an allowlist addition answers."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key in _ADDITIONS and isinstance(answer.content, dict) and answer.status < 300:  # noqa: PLR2004
            answer.content = {**answer.content, _ADDITIONS[route.key]: None}

    transform(service, change)


def leaves_values_null(service: Service) -> None:
    """Have users without a picture, a hidden group and merge requests of the system's rules without a description."""
    present, approvals, world = service.present, service.merge_request_approvals, service.world
    of_user, of_group, of_merge_request = present.user, present.group, approvals.status
    bare_group = world.one("hidden_group").id
    bare = {world.one(f"{kind}_merge_request").id for kind in ("code_owner", "report_approver")}

    def user_without(user: Any) -> dict[str, Any]:
        return {**of_user(user), "avatar_url": None}

    def group_without(group: Any) -> dict[str, Any]:
        return {**of_group(group), **({"description": None} if group.id == bare_group else {})}

    def status_without(merge_request: Any, viewer: Any) -> dict[str, Any]:
        return {
            **of_merge_request(merge_request, viewer),
            **({"description": None} if merge_request.id in bare else {}),
        }

    present.user = user_without  # type: ignore[method-assign] # a service is altered by putting methods in place
    present.group = group_without  # type: ignore[method-assign] # see above
    approvals.status = status_without  # type: ignore[method-assign] # see above


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


def shows_no_defaults(service: Service) -> None:
    """Show null for a setting of an integration that nobody saved, whatever its default."""
    area = service.area(Integrations)
    shown = area.shown_settings

    def saved(integration: Any) -> dict[str, Any]:
        unsaved = {p.name for p in integration.kind.parameters if p.name not in integration.values and not p.fixed}
        return {name: None if name in unsaved else value for name, value in shown(integration).items()}

    area.shown_settings = saved  # type: ignore[method-assign] # see above


def asks_for_required_settings_each_time(service: Service) -> None:
    """Refuse an update of an integration that leaves out a required setting, though one is stored."""
    area = service.area(Integrations)
    set_up = area.set_up

    def complete(project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        area.require_settings(kind, values)
        return set_up(project, kind, values, active=active)

    area.set_up = complete  # type: ignore[method-assign] # see above


def takes_paths_of_targets(service: Service) -> None:
    """Take the full path of a project or group where a target is to be named by its number."""
    scopes, identities = service.job_token_scope, service.identities

    def by_path(path: str, name: str, find: Callable[[str], Any], add: Callable[[Any, Any], object]) -> None:
        by_number, removed = service.routes.get(f"POST {path}").handler, service.routes.get(f"DELETE {path}/:{name}")

        def added(request: Request) -> Response:
            try:
                return by_number(request)
            except InvalidError:
                target = find(request.parameters.string(name))
                if target is None:
                    raise
                add(request.project, target)
                return created({"source_project_id": request.project.id, name: target.id})

        def without(request: Request) -> Response:
            target = find(request.path[name])
            if target is not None:
                request.path[name] = str(target.id)
            return removed.handler(request)

        service.routes.change(f"POST {path}", handler=added)
        service.routes.change(removed.key, handler=without)

    scope = "/projects/:id/job_token_scope"
    by_path(f"{scope}/allowlist", "target_project_id", identities.find_project, scopes.add_project)
    by_path(f"{scope}/groups_allowlist", "target_group_id", identities.find_group, scopes.add_group)


def asks_for_membership_in_targets(service: Service) -> None:
    """Let only members of a project or group put it on an allowlist."""
    scopes, role_in = service.job_token_scope, service.identities.role_in

    def among_members(find: Callable[..., Any]) -> Callable[..., Any]:
        def found(number: int, caller: Any = None) -> Any:
            target = find(number, caller)
            if caller and role_in(caller, target) is Role.NONE:
                raise ForbiddenError
            return target

        return found

    scopes.target_project = among_members(scopes.target_project)  # type: ignore[method-assign] # see above
    scopes.target_group = among_members(scopes.target_group)  # type: ignore[method-assign] # see above


def withholds_the_check_of_completions(service: Service) -> None:
    """Have the check whether completions are on behind the same flag, so that no project is known to have them."""
    completion = service.code_completion
    for name in ("enabled_project", "disabled_project", "group_enabled_project"):
        service.world.fixtures.pop(name)
    check = completion.check

    def behind_the_flag(caller: Any, path: str) -> None:
        completion.require_offered()
        check(caller, path)

    completion.check = behind_the_flag  # type: ignore[method-assign] # see above


def sends_strangers_to_a_login(service: Service) -> None:
    """Redirect callers without a valid token to a page that is served to everybody; goes with a status of 302."""

    def page(_: Request) -> Response:
        return Response(raw=b"<html><body>Who are you?</body></html>", media_type="text/html")

    service.routes.put(Route("GET", "/users/sign_in", page, anonymous=True, prefixed=False))

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == service.choices.anonymous_code:
            answer.headers.setdefault("location", "/users/sign_in")

    transform(service, change)


def encodes_downloads(service: Service) -> None:
    """Send exports as text that is compressed on the way, not as a compressed file."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.raw and answer.status < 300:  # noqa: PLR2004 - HTTP's own number
            answer.headers["content-encoding"] = "gzip"
            answer.media_type = "application/x-ndjson"

    transform(service, change)


def keeps_downloads_in_a_storage(service: Service) -> None:
    """Redirect downloads to an object storage that needs no token, and names no file."""
    stored: dict[str, bytes] = {}

    def fetch(request: Request) -> Response:
        return Response(raw=stored[request.path["key"]], media_type="application/gzip")

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.raw and answer.status < 300:  # noqa: PLR2004 - HTTP's own number
            key = str(len(stored))
            stored[key], answer.raw, answer.status = answer.raw, b"", 302
            answer.headers = {"location": _STORAGE.replace(":key", key) + "?signature=0a1b2c"}

    service.routes.put(Route("GET", _STORAGE, fetch, anonymous=True, prefixed=False))
    transform(service, change)


def refuses_exports_meanwhile(service: Service) -> None:
    """Refuse to schedule an export while one of the group is running."""
    exports = service.group_relations_export
    schedule = exports.schedule

    def one_at_a_time(group: Any, *, batched: bool) -> None:
        if any(exports.status_of(export) is Status.STARTED for export in exports.all_of(group)):
            raise RepeatedError("An export is running.")
        schedule(group, batched=batched)

    exports.schedule = one_at_a_time  # type: ignore[method-assign] # see above


def serves_older_exports_meanwhile(service: Service) -> None:
    """Serve the file of the export before, if it has one such, as long as the newer one is running."""
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

    exports.schedule = remember  # type: ignore[method-assign] # see above
    exports.download = whichever_there_is  # type: ignore[method-assign] # see above


def counts_batches_otherwise(service: Service) -> None:
    """Give batches a status of their own, have null and a count of one without batches, and always show an error."""
    exports = service.group_relations_export
    present = exports.present

    def shown(export: RelationExport) -> dict[str, Any]:
        entry: dict[str, Any] = dict(present(export))
        entry["error"] = entry["error"] or "Nothing went wrong."
        if not export.batched:
            return {**entry, "batches": None, "batches_count": 1}
        return {**entry, "batches": [{**batch, "status": 7} for batch in entry["batches"]]}

    exports.present = shown  # type: ignore[method-assign] # see above


def lets_everybody_export(service: Service) -> None:
    """Let whoever sees a group export it."""
    for key in ("POST /groups/:id/export_relations", "GET /groups/:id/export_relations/status", _DOWNLOAD):
        service.routes.change(key, least_role=Role.NONE)


def keeps_another_time(service: Service) -> None:
    """Let the clock be three hours behind."""
    now = service.clock.now
    service.clock.now = lambda: now() - timedelta(hours=3)  # type: ignore[method-assign] # see above


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
        shows_no_defaults,
        asks_for_required_settings_each_time,
        takes_paths_of_targets,
        asks_for_membership_in_targets,
        refuses_exports_meanwhile,
        serves_older_exports_meanwhile,
        counts_batches_otherwise,
        lets_everybody_export,
        keeps_another_time,
        approval_alterations.adds_to_lists_of_groups,
        approval_alterations.keeps_rule_types,
        approval_alterations.removes_hidden_groups_of_merge_requests,
        approval_alterations.counts_members_of_hidden_groups,
        approval_alterations.names_nobody_eligible,
        approval_alterations.shows_no_sources_of_rules,
        approval_alterations.hands_rules_down,
        approval_alterations.is_particular_about_copies,
        approval_alterations.protects_branches_for_single_users,
        approval_alterations.looks_at_the_sha_first,
        approval_alterations.leaves_deprecated_fields_out,
        approval_alterations.shows_sources_without_locks,
        approval_alterations.leaves_group_rules_to_administrators,
        approval_alterations.lets_maintainers_use_group_rules,
        approval_alterations.keeps_owners_out_of_project_settings,
        approval_alterations.shows_strangers_approvals,
        area_alterations.manages_entries_only_while_limited,
        area_alterations.lists_the_own_group,
        area_alterations.finishes_relations_one_by_one,
        area_alterations.lists_batches_as_they_come,
        area_alterations.has_no_status_before_the_first_export,
        # After what looks at exports, so that one begins before anything else looks at it.
        area_alterations.begins_exports_later,
        area_alterations.shows_settings_as_pairs,
        area_alterations.replaces_settings,
        area_alterations.refuses_empty_settings,
        rule_alterations.makes_rules_that_name_nobody_default,
        rule_alterations.replaces_rules_of_groups,
        rule_alterations.fixes_the_name_of_default_rules,
        rule_alterations.makes_no_default_rules,
        rule_alterations.asks_regular_rules_for_approvals,
        rule_alterations.asks_for_no_less_than_the_project,
        rule_alterations.ignores_empty_lists,
        rule_alterations.keeps_branches_of_rules_for_all,
        rule_alterations.finds_every_member_eligible,
        rule_alterations.deletes_absent_rules,
        rule_alterations.refuses_empty_updates,
        rule_alterations.shows_fields_of_other_levels,
        rule_alterations.resets_in_the_background,
        rule_alterations.stays_overwritten,
        rule_alterations.calls_no_rule_approved,
        rule_alterations.reads_shas_in_any_case,
        rule_alterations.ignores_a_sha_it_cannot_read,
        rule_alterations.drops_approvals_when_settings_change,
        rule_alterations.maps_approvals_before_merge,
        rule_alterations.binds_configurations_by_settings,
        rule_alterations.locks_one_setting_everywhere,
        rule_alterations.has_no_settings_of_subgroups,
        wire_alterations.writes_integers_with_a_point,
        wire_alterations.writes_other_iso_dates,
        wire_alterations.shows_relative_pictures,
        wire_alterations.moves_values_by_itself,
        wire_alterations.shuffles_arrays,
        wire_alterations.writes_headers_in_capitals,
        wire_alterations.sends_a_vendors_media_type,
        wire_alterations.says_how_long_nothing_is,
        wire_alterations.names_no_media_type,
        wire_alterations.stands_behind_a_bad_gateway,
    )
}
"""What any service may be altered by, whatever its choices; by name."""
