"""Faults that only show by another name: the full path of a project or group, or the older name of integrations."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import Method, altering, handling, is_number
from conformance.proof.written.merge_request_approvals import RULES
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.http import Response, ok

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.reference import Service
    from conformance.reference.http import Request

EXPORT = "/groups/:id/export_relations"
OLDER = "/projects/:id/services"


@contextmanager
def _replaced(thing: Any, name: str, make: Callable[[Method], Method]) -> Iterator[None]:
    """Replace a method while one request is handled."""
    method = getattr(thing, name)
    setattr(thing, name, make(method))
    try:
        yield
    finally:
        setattr(thing, name, method)


def _while_by_path(service: Service, key: str, area: Any, name: str, make: Callable[[Method], Method]) -> None:
    """Replace a method of an area for requests that name their group or project by its path."""

    def other(handler: Method) -> Method:
        def handled(request: Request) -> Response:
            if is_number(request, "id"):
                return handler(request)
            with _replaced(area, name, make):
                return handler(request)

        return handled

    handling(service, key, other)


@fault("group-relations-export.download.batches-share-no-object")
def by_the_path_each_batch_is_the_first(service: Service) -> None:
    """A batch of a group that is named by its path is the first one, whatever its number."""
    area = service.group_relations_export
    _while_by_path(service, f"GET {EXPORT}/download", area, "batch", lambda batch: lambda export, _: batch(export, 1))


@fault("group-relations-export.schedule.in-batches")
def by_the_path_batches_are_never_made(service: Service) -> None:
    """Batched true is accepted, but ignored if the group is named by its path."""
    area = service.group_relations_export

    def in_one_piece(schedule: Method) -> Method:
        return lambda group, **_: schedule(group, batched=False)

    _while_by_path(service, f"POST {EXPORT}", area, "schedule", in_one_piece)


@fault("group-relations-export.schedule.accepted", operation="scheduleGroupRelationsExport")
def scheduling_by_the_path_answers_200(service: Service) -> None:
    """An export of a group that is named by its path is accepted with another status code."""

    def alter(request: Request, response: Response) -> None:
        response.status = 202 if is_number(request, "id") else 200

    altering(service, f"POST {EXPORT}", alter)


@fault("job-token-scope.switch.no-content", operation="updateJobTokenScope")
def switching_by_the_path_answers_200_with_a_body(service: Service) -> None:
    """PATCH answers 200 with an object if the project is named by its path."""

    def answering(handler: Method) -> Method:
        def handled(request: Request) -> Response:
            answer: Response = handler(request)
            return answer if is_number(request, "id") else ok({})

        return handled

    handling(service, "PATCH /projects/:id/job_token_scope", answering)


@fault("integrations.alias.reads-the-same")
def the_older_name_shows_what_it_showed_first(service: Service) -> None:
    """Under the older name, the settings of an integration are kept from the first read on."""
    kept: dict[tuple[int, str], Response] = {}

    def keeping(handler: Method) -> Method:
        def handled(request: Request) -> Response:
            key = request.project.id, request.path["slug"]
            if key not in kept:
                kept[key] = handler(request)
            return deepcopy(kept[key])

        return handled

    handling(service, f"GET {OLDER}/:slug", keeping)


def _kept_by_path(service: Service, key: str) -> None:
    """Answer requests that name their project by its path as at first: each page of a list for itself."""
    kept: dict[tuple[bytes, bytes], Response] = {}

    def keeping(handler: Method) -> Method:
        def handled(request: Request) -> Response:
            if is_number(request, "id"):
                return handler(request)
            name = request.raw_path, request.query
            if name not in kept:
                answer: Response = handler(request)
                kept[name] = Response(answer.status, answer.content, has_content=True, headers=answer.headers)
            return deepcopy(kept[name])

        return handled

    handling(service, key, keeping)


@fault("job-token-scope.allowlist.change.shows-to-everybody")
def by_the_path_the_list_of_projects_is_shown_as_at_first(service: Service) -> None:
    """The allowlist of a project that is named by its path is kept from the first read on."""
    _kept_by_path(service, "GET /projects/:id/job_token_scope/allowlist")


@fault("job-token-scope.groups-allowlist.change.shows-to-everybody")
def by_the_path_the_list_of_groups_is_shown_as_at_first(service: Service) -> None:
    """The groups allowlist of a project that is named by its path is kept from the first read on."""
    _kept_by_path(service, "GET /projects/:id/job_token_scope/groups_allowlist")


@fault("job-token-scope.switch.shows-to-everybody")
def by_the_path_the_limit_is_shown_as_at_first(service: Service) -> None:
    """The settings of a project that is named by its path are kept from the first read on."""
    _kept_by_path(service, "GET /projects/:id/job_token_scope")


@fault("group-relations-export.schedule.in-batches")
def by_the_path_the_status_is_shown_as_at_first(service: Service) -> None:
    """The status of a group that is named by its path is kept from the first read on."""
    _kept_by_path(service, f"GET {EXPORT}/status")


@fault("integrations.disable.settings-reset")
def by_the_path_settings_are_shown_as_at_first(service: Service) -> None:
    """The settings of an integration are kept from the first read by the path of its project on."""
    _kept_by_path(service, "GET /projects/:id/integrations/:slug")


@fault("project-approval-rules.update.stored")
def by_the_path_a_rule_is_shown_as_at_first(service: Service) -> None:
    """A rule of a project is kept from the first read by the path of the project on."""
    _kept_by_path(service, "GET /projects/:id/approval_rules/:approval_rule_id")


@fault("merge-request-approvals.rules.update.usernames")
def by_the_path_a_rule_of_a_merge_request_is_shown_as_at_first(service: Service) -> None:
    """A rule of a merge request is kept from the first read by the path of the project on."""
    _kept_by_path(service, f"GET {RULES}/:approval_rule_id")


def _active_by_the_older_name(service: Service, change: Callable[[bool | None], bool | None]) -> None:
    """Read another value of active from set-ups under the older name."""

    def becoming(becomes: Method) -> Method:
        return lambda kind, before, wanted: becomes(kind, before, change(wanted))

    def other(handler: Method) -> Method:
        def handled(request: Request) -> Response:
            with _replaced(service.integrations, "becomes_active", becoming):
                return handler(request)

        return handled

    handling(service, f"PUT {OLDER}/:slug", other)


@fault("integrations.parameters.active.default")
def under_the_older_name_active_is_the_default(service: Service) -> None:
    """An issue tracker that is set up under the older name is active unless told otherwise."""
    _active_by_the_older_name(service, lambda wanted: True if wanted is None else wanted)


@fault("integrations.list.active-only")
def under_the_older_name_nothing_becomes_inactive(service: Service) -> None:
    """Active false is passed over if it is sent under the older name."""
    _active_by_the_older_name(service, lambda wanted: None if wanted is False else wanted)


def _found_everywhere_by_path(what: str, method: str) -> None:
    """Register a fault: a rule of any project is found in a project that is named by its path."""

    def apply(service: Service) -> None:
        rules = service.approval_rules

        def everywhere(find: Method) -> Method:
            return lambda home, number: rules.rules.get(number) or find(home, number)

        _while_by_path(service, f"{method} /projects/:id/approval_rules/:approval_rule_id", rules, "find", everywhere)

    says = f"{method} of a rule in a project that is named by its path finds the rules of all projects."
    fault(f"project-approval-rules.{what}.rule-of-another-project")(
        named(f"by_the_path_{what}_finds_rules_of_all_projects", says, apply)
    )


for _method, _what in (("GET", "read"), ("PUT", "update"), ("DELETE", "delete")):
    _found_everywhere_by_path(_what, _method)


@fault("integrations.parameters.issue-tracker-urls.required-together")
def by_the_path_no_setting_is_required(service: Service) -> None:
    """An integration is set up without what it needs if its project is named by the path."""
    key = "PUT /projects/:id/integrations/:slug"
    _while_by_path(service, key, service.integrations, "require_settings", lambda _: lambda *_: None)


def _not_by_path(level: str) -> Callable[[Service], None]:
    """Take reauthentication out of updates that name their group or project by its path."""

    def apply(service: Service) -> None:
        def make(change: Method) -> Method:
            def changing(subject: Any, wanted: Any) -> Any:
                again = Setting.REQUIRE_REAUTHENTICATION
                return change(subject, {key: value for key, value in wanted.items() if key is not again})

            return changing

        key = f"PUT /{level}s/:id/merge_request_approval_setting"
        _while_by_path(service, key, service.approval_settings, "change", make)

    return apply


for _level in ("group", "project"):
    _says = f"An update of the settings of a {_level} by its path stores everything but reauthentication."
    _name = f"by_the_path_of_a_{_level}_reauthentication_is_not_set"
    fault(f"approval-settings.{_level}.update.several")(named(_name, _says, _not_by_path(_level)))


#: What a new rule of a group loses if the group is named by its path: by requirement, the parameter.
_LOST_BY_PATH = {
    "group-approval-rules.create.user-ids": "user_ids",
    "group-approval-rules.create.group-ids": "group_ids",
}


def _new_rules_lose_by_path(parameter: str) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        def make(create: Method) -> Method:
            return lambda group, wanted, caller: create(group, replace(wanted, **{parameter: None}), caller)

        key = "POST /groups/:id/approval_rules"
        _while_by_path(service, key, service.group_approval_rules, "create_rule", make)

    return named(f"by_the_path_{parameter}_of_new_group_rules_are_lost", f"By the path, {parameter} is ignored.", apply)


for _requirement, _parameter in _LOST_BY_PATH.items():
    fault(_requirement)(_new_rules_lose_by_path(_parameter))


@fault("project-approval-rules.create.applies-to-all-protected-branches.over-branch-ids")
def by_the_path_new_rules_apply_to_single_branches(service: Service) -> None:
    """By the path of the project, a new rule ignores applies_to_all_protected_branches."""

    def make(create: Method) -> Method:
        return lambda project, wanted, caller: create(
            project, replace(wanted, applies_to_all_protected_branches=None), caller
        )

    key = "POST /projects/:id/approval_rules"
    _while_by_path(service, key, service.project_approval_rules, "create_rule", make)


@fault("project-approval-rules.update.applies-to-all-protected-branches")
def by_the_path_changes_keep_to_their_branches(service: Service) -> None:
    """By the path of the project, a change ignores applies_to_all_protected_branches."""

    def make(update: Method) -> Method:
        return lambda project, number, wanted, caller: update(
            project, number, replace(wanted, applies_to_all_protected_branches=None), caller
        )

    key = "PUT /projects/:id/approval_rules/:approval_rule_id"
    _while_by_path(service, key, service.project_approval_rules, "update_rule", make)
