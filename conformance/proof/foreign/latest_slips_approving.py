"""Small bugs in approvals, settings, exports and integrations, and in what all operations share."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.areas.project_approval_configuration import ConfigurationChange
from conformance.reference.http import Page, Response, ok
from conformance.reference.identity import Kind, kind_of
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service

_AGAIN = "again, by another caller, after an undo"
_BESIDE = "forms of what is sent"
_CONTENT = "content of exports"
_LEVELS = "level x id of another level"
_MOMENTS = "moments and addresses that are none"
_NEIGHBOURS = "value x neighbour of the right value"
_OLDER = "the older of two"
_PAGES = "pages and totals"
_SETTINGS = "settings and their resets"
_STAYS = "write x everything that must stay"
_STORY = "numbers and texts that follow from the story"
_TWO = "none, one or two values"
_UNDOES = "what arranges or undoes, and does nothing"
_VERSIONS = "version table"
_GROUP_SETTINGS = "/groups/:id/merge_request_approval_setting"
_PROJECT_SETTINGS = "/projects/:id/merge_request_approval_setting"
_RULES = "/projects/:id/approval_rules"
_OWN_RULES = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"


# -- approving ---------------------------------------------------------------------------------------------------------


# The caller is added to the approvals of the merge request that the path names.
@foreign(_LEVELS, "Approval and integration moves: POST approve")
def merge_requests_of_one_commit_share_their_approvals(service: Service) -> None:
    """An approval is kept by the commit: it counts in each merge request of the project with the same HEAD."""
    repositories = service.repositories

    @instead(service.merge_request_approvals, "approvals_of")
    def _(given: Any, merge_request: Any) -> Any:
        head, found = repositories.head_of(merge_request), {}
        for other in repositories.merge_requests.values():
            if other.project_id == merge_request.project_id and repositories.head_of(other) == head:
                found.update({approval.user_id: approval for approval in given(other)})
        return tuple(found.values())


# A sha that is passed is compared each time.
@foreign(_AGAIN, "Approval and integration moves: POST approve, sha")
def who_approves_anew_may_name_any_commit(service: Service) -> None:
    """Somebody who took an approval back approves again with whatever sha, and gets no 409."""
    approvals, undone = service.merge_request_approvals, set()

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        undone.add((user.id, merge_request.id))
        remove(user, merge_request)

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        approve(merge_request, caller, None if (caller.id, merge_request.id) in undone else sha, password)


# The approval of the caller is removed, and no other one.
@foreign(_OLDER, "Approval and integration moves: POST unapprove")
def an_earlier_approval_takes_the_later_ones_along(service: Service) -> None:
    """Approvals are a stack: whoever takes an approval back takes back all that were given after it."""
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(_remove: Any, user: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        place = next(number for number, approval in enumerate(given) if approval.user_id == user.id)
        approvals.approvals[merge_request.id] = given[:place]


# All approvals are cleared, wherever they are shown.
@foreign(_UNDOES, "Merge request approvals: PUT reset_approvals")
def a_reset_clears_the_status_and_not_the_state(service: Service) -> None:
    """After a reset the rules of the state still say who approved, until somebody approves anew."""
    approvals, kept = service.merge_request_approvals, {}

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        kept[merge_request.id] = approvals.approvals_of(merge_request)
        clear(merge_request)

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        kept.pop(merge_request.id, None)
        add(user, merge_request)

    @instead(approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        if not kept.get(merge_request.id):
            return state(merge_request, viewer)
        approvals.approvals[merge_request.id] = kept[merge_request.id]
        try:
            return state(merge_request, viewer)
        finally:
            approvals.approvals.pop(merge_request.id)


# The password is asked for whatever else is passed.
@foreign(_BESIDE, "Merge request approvals: approval_password and sha")
def whoever_names_the_head_needs_no_password(service: Service) -> None:
    """Naming the right commit is taken for a proof of care: the password is neither asked for nor compared."""

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        approve(merge_request, caller, sha, password if sha is None else caller.password)


# -- configuration -----------------------------------------------------------------------------------------------------


# Selective removals need that pushes do not reset approvals.
@foreign(_SETTINGS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def resets_are_switched_on_beside_selective_removals(service: Service) -> None:
    """The two flags are compared only where selective removals are sent: switching the other on keeps both."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        if wanted.selective_code_owner_removals is not None:
            return change(project, wanted)
        kept, configurations.without_conflict = configurations.without_conflict, lambda changed: changed
        try:
            return change(project, wanted)
        finally:
            configurations.without_conflict = kept


# The number is deprecated; what is sent beside it is not.
@foreign(_BESIDE, "Project approval configuration: POST, approvals_before_merge", version="15.11")
def the_deprecated_number_hides_the_flags_beside_it(service: Service) -> None:
    """A call that sends approvals_before_merge goes the old way, which knows nothing but that number."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        number = wanted.approvals_before_merge
        return change(project, wanted if number is None else ConfigurationChange(approvals_before_merge=number))


# -- settings ----------------------------------------------------------------------------------------------------------


# A project has settings wherever it lies.
@foreign(_NEIGHBOURS, "Approval settings: GET and PUT of a project")
def settings_of_projects_without_a_group_fail(service: Service) -> None:
    """The group of a project is asked without a look whether there is one: projects of users answer 500."""

    @handling(service, f"GET {_PROJECT_SETTINGS}", f"PUT {_PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if service.identities.namespace_of(request.project).personal:
            return ok({"message": "500 Internal Server Error"}, 500)
        return handler(request)


# A group and a project of the same id are two things.
@foreign(_LEVELS, "Approval settings: PUT")
def a_group_and_a_project_of_one_id_share_their_settings(service: Service) -> None:
    """Settings are kept by the id alone, without the kind of what it is the id of."""

    @instead(service.approval_settings, "_key")
    def _(key: Any, subject: Any, setting: Any) -> Any:
        return (Kind.PROJECT, *key(subject, setting)[1:])


# Each setting that is sent is set.
@foreign(_TWO, "Approval settings: PUT")
def of_authors_and_committers_one_is_set_at_a_time(service: Service) -> None:
    """An `elif` where an `if` belongs: allow_committer_approval is passed over beside allow_author_approval."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if Setting.ALLOW_AUTHOR_APPROVAL in wanted:
            wanted = {name: value for name, value in wanted.items() if name != Setting.ALLOW_COMMITTER_APPROVAL}
        change(subject, wanted)


# A value is true or false.
@foreign(_NEIGHBOURS, "Approval setting: value")
def a_setting_that_was_sent_as_null_is_null(service: Service) -> None:
    """What is sent as null is stored, and from then on the value is no boolean."""
    nulls: set[tuple[Kind, int, str]] = set()

    @handling(service, f"PUT {_GROUP_SETTINGS}", f"PUT {_PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        subject = request.group if request.route.subject is Kind.GROUP else request.project
        for name, value in request.parameters._values.items():
            place = kind_of(subject), subject.id, name
            nulls.discard(place)
            nulls.update({place} if value is None else ())
        return handler(request)

    @instead(service.approval_settings, "present")
    def _(present: Any, subject: Any, setting: Any) -> Any:
        shown = present(subject, setting)
        return {**shown, "value": None} if (kind_of(subject), subject.id, setting.value) in nulls else shown


# -- exports -----------------------------------------------------------------------------------------------------------


# A file holds the objects as they are.
@foreign(_CONTENT, "Group relations export: download")
def files_are_written_in_ascii(service: Service) -> None:
    """Letters beyond ASCII become question marks in the files of an export."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> Any:
        return file(tuple(line.decode().encode("ascii", "replace") for line in lines))


# Two labels are two objects, whatever they have in common.
@foreign(_CONTENT, "Group relations export: download")
def labels_of_one_colour_are_one_label(service: Service) -> None:
    """Labels are gathered by their colour, and of several with the same one the last is exported."""

    @instead(service.group_relations_export, "relations")
    def _(relations: Any, group: Any) -> Any:
        found = relations(group)
        return {**found, "labels": tuple({label["color"]: label for label in found["labels"]}.values())}


# There is a file for each batch that the status lists, and for no other number.
@foreign(_NEIGHBOURS, "Group relations export: batch_number")
def the_batch_before_the_first_is_the_last(service: Service) -> None:
    """The number is taken less one as a place in a list, and 0 finds the last batch."""
    exports = service.group_relations_export

    @instead(exports, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        batches = exports.batches(export)
        return batches[-1] if number == 0 and batches else batch(export, number)


# The batches are those of the export that the entry tells of.
@foreign(_AGAIN, "Group relations export status entry: batches")
def batches_of_the_former_export_stay_in_the_status(service: Service) -> None:
    """A second export in batches adds its batches to those of the first, so that each number is there twice."""
    exports = service.group_relations_export
    former: dict[tuple[int, str], list[Any]] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for export in exports.all_of(group):
            former[group.id, export.relation] = list(exports.present(export).get("batches") or ())
        schedule(group, batched=batched)

    @instead(exports, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        if export.batched:
            shown["batches"] = [*former.get((export.group_id, export.relation), ()), *shown["batches"]]
        return shown


# -- integrations ------------------------------------------------------------------------------------------------------


# Nothing is updated before it is created.
@foreign(_MOMENTS, "Integration list entry: created_at")
def integrations_are_created_in_another_time_zone(service: Service) -> None:
    """The moment of creation is local time with the mark of UTC, two hours after the moment of the update."""

    @instead(service.integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        moment = integration.created_at + timedelta(hours=2)
        return {**present(integration), "created_at": service.present.timestamp(moment)}


# What is disabled is the one integration that the path names.
@foreign(_STAYS, "Integrations: DELETE")
def integrations_whose_slug_begins_alike_are_disabled_too(service: Service) -> None:
    """A slug is looked for by how it begins: with one integration go those whose longer slug begins with it."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        for place in [known for known in integrations.known if known[0] == project.id]:
            if place[1].startswith(f"{slug}-"):
                disable(*(project, place[1]))


# Disabling resets the settings, for whoever sets it up again too.
@foreign(_AGAIN, "Integrations: DELETE and PUT")
def optional_settings_come_back_with_the_next_set_up(service: Service) -> None:
    """Disabling hides the settings, and what is optional has its old value once the integration is set up again."""
    integrations = service.integrations
    hidden: dict[tuple[int, str], dict[str, Any]] = {}

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        if before is not None and before.values:
            required = {parameter.name for parameter in before.kind.parameters if parameter.required}
            hidden[project.id, slug] = {name: value for name, value in before.values.items() if name not in required}

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        return set_up(project, kind, {**hidden.pop((project.id, kind.slug), {}), **values}, active=active)


# What is not sent has its stated default, or none.
@foreign(_STORY, "Integrations: PUT, defaults")
def an_integration_begins_as_it_is_in_another_project(service: Service) -> None:
    """Optional settings of a new integration are taken from the last project that has the same integration."""
    integrations = service.integrations

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        mine = integrations.known.get((project.id, kind.slug))
        others = [one for one in integrations.known.values() if one.slug == kind.slug and one.active]
        if others and (mine is None or not mine.active):
            required = {parameter.name for parameter in kind.parameters if parameter.required}
            taken = {name: value for name, value in others[-1].values.items() if name not in required}
            values = {**taken, **values}
        return set_up(project, kind, values, active=active)


# Both names of the operation do the same.
@foreign(_UNDOES, "Integrations: services is an alias")
def the_older_name_disables_and_resets_nothing(service: Service) -> None:
    """DELETE by the older name takes an integration from the list and leaves its settings as they were."""

    @handling(service, "DELETE /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        known, place = service.integrations.known, (request.project.id, request.path["slug"])
        if place not in known:
            return handler(request)
        known[place] = replace(known[place], active=False)
        return Response(request.choices.integration_deleted_code)


# -- what all operations share -----------------------------------------------------------------------------------------


# An answer is JSON to its end.
@foreign(_NEIGHBOURS, "Requests and responses are JSON")
def answers_are_as_long_as_they_have_letters(service: Service) -> None:
    """The length of an answer is counted in letters, and one with letters of two bytes is cut at its end."""

    def cut(_route: Any, _request: Any, answer: Any) -> Any:
        if not answer.has_content:
            return answer
        text = orjson.dumps(answer.content)
        length = len(text.decode())
        return answer if length == len(text) else Response(answer.status, raw=text[:length], headers=answer.headers)

    service.transformers.append(cut)


# The parameter is there from 15.8, and not only after it.
@foreign(_VERSIONS, "Versioning: 15.8, usernames", version="15.8")
def usernames_come_one_version_later(service: Service) -> None:
    """The version is compared with `>` where `>=` is meant: at 15.8 the parameter is passed over."""
    item = "/:approval_rule_id"

    @handling(service, f"POST {_RULES}", f"PUT {_RULES}{item}", f"POST {_OWN_RULES}", f"PUT {_OWN_RULES}{item}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if service.version == Version(15, 8):
            request.parameters._values = {name: value for name, value in values.items() if name != "usernames"}
        return handler(request)


# No entry is on two pages.
@foreign(_PAGES, "Job token scope: groups_allowlist is paginated")
def from_the_third_page_on_one_entry_is_repeated(service: Service) -> None:
    """Where a page begins is counted wrongly once there are two before it: it begins with the last one of those."""
    scopes = service.job_token_scope

    @handling(service, "GET /projects/:id/job_token_scope/groups_allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, request.choices)
        if page.number > 2:
            start = (page.number - 1) * page.size - 1
            groups = scopes.groups(request.project)[start : start + page.size]
            answer.content = [scopes.present_group(group) for group in groups]
        return answer
