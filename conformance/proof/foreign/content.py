"""What records, lists and files hold: numbers and texts that follow from the story, moments and addresses."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.foreign.registry import foreign, handling, instead, is_served

if TYPE_CHECKING:
    from conformance.reference import Service

_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_DOWNLOAD = "GET /groups/:id/export_relations/download"
_STORY = "numbers and texts that follow from the story"
_FORM = "moments and addresses that are none"


# -- exports -----------------------------------------------------------------------------------------------------------


@foreign("content of exports", "Group relations export: one relation")
def labels_are_milestones(service: Service) -> None:
    """The file of the labels holds the milestones; a file is the export of the relation that was asked for."""

    @instead(service.group_relations_export, "relations")
    def _(relations: Any, group: Any) -> Any:
        found = dict(relations(group))
        return {**found, "labels": found["milestones"]}


@foreign("content of exports", "Group relations export: batches")
def all_batches_are_the_first(service: Service) -> None:
    """Each batch of a relation holds the objects of the first one."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        batch(export, number)
        return batch(export, 1)


@foreign("content of exports", "Group relations export: what is exported")
def exports_leave_the_last_object_out(service: Service) -> None:
    """The last object of each relation is not in its file, nor counted."""

    @instead(service.group_relations_export, "relations")
    def _(relations: Any, group: Any) -> Any:
        return {name: objects[:-1] for name, objects in relations(group).items()}


@foreign("content of exports", "Group relations export: of a group")
def exports_hold_objects_of_other_groups(service: Service) -> None:
    """The file of the labels also holds those of another group."""

    @instead(service.group_relations_export, "relations")
    def _(relations: Any, group: Any) -> Any:
        # Labels that some group has: what no group has could be told from outside by nobody.
        others = [one for one in service.identities.groups.values() if one.id != group.id]
        theirs = [label for other in others for label in relations(other)["labels"]]
        found = dict(relations(group))
        return {**found, "labels": (*found["labels"], *theirs)}


@foreign("content of exports", "Group relations export: newline-delimited JSON")
def files_are_one_array(service: Service) -> None:
    """The file of a relation is one JSON array; it is one object per line."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> bytes:
        return gzip.compress(b"[" + b",".join(lines) + b"]\n", mtime=0)


@foreign("content of exports", "Group relations export: batches")
def batches_overlap(service: Service) -> None:
    """Each batch begins with the last object of the one before it."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        lines = batch(export, number)
        return (*batch(export, number - 1)[-1:], *lines) if number > 1 else lines


@foreign("content of exports", "Group relations export: file name")
def files_are_named_after_the_first_relation(service: Service) -> None:
    """Every file has the name of the same relation; a file is named after its own one."""

    @instead(service.group_relations_export, "file_name")
    def _(name: Any, relation: str) -> str:
        return name("badges")


@foreign("content of exports", "Group relations export: status of one relation")
def the_status_is_found_by_the_beginning(service: Service) -> None:
    """Asked for one relation, the status also shows those whose name has the same first sign."""

    @handling(service, "GET /groups/:id/export_relations/status")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        relation = request.parameters.optional_string("relation")
        if relation and is_served(answer) and isinstance(answer.content, list):
            exports = service.group_relations_export
            alike = [one for one in exports.all_of(request.group) if one.relation[0] in f"{relation[0]}m"]
            answer.content = [exports.present(one) for one in alike]
        return answer


# -- merge requests ----------------------------------------------------------------------------------------------------


def _in_status(service: Service, change: Any) -> None:
    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        change(shown, merge_request)
        return shown


@foreign(_STORY, "Merge request approval status")
def the_title_is_that_of_the_first(service: Service) -> None:
    """The status has the title of the project's first merge request, whichever is asked for."""

    def change(shown: Any, merge_request: Any) -> None:
        shown["title"] = service.repositories.merge_requests[merge_request.project_id, 1].title

    _in_status(service, change)


@foreign(_STORY, "Merge request approval status")
def the_description_is_that_of_the_title(service: Service) -> None:
    """The status has the title in the place of the description."""
    _in_status(service, lambda shown, _: shown.update(description=shown["title"]))


@foreign(_STORY, "Merge request approval status")
def the_status_forgets_all_approvers_but_one(service: Service) -> None:
    """The status names the newest of those who approved, and no other."""
    _in_status(service, lambda shown, _: shown.update(approved_by=shown["approved_by"][-1:]))


@foreign(_STORY, "Approval and integration moves: approve")
def one_approval_is_enough(service: Service) -> None:
    """Nothing is left to approve after the first approval, whatever number a rule requires."""
    _in_status(service, lambda shown, _: shown["approved_by"] and shown.update(approvals_left=0))


@foreign(_STORY, "Merge request approval state")
def the_state_knows_no_number_above_one(service: Service) -> None:
    """The state says of each rule that it requires one approval, when it requires more."""

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        return {**shown, "approvals_required": min(1, shown["approvals_required"])}


@foreign(_STORY, "Merge request approval state")
def the_state_counts_approvals_of_all(service: Service) -> None:
    """The state shows in each rule who approved any merge request of the project."""

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        approvals = service.merge_request_approvals
        mine = [m for m in service.repositories.merge_requests.values() if m.project_id == merge_request.project_id]
        ids = tuple(dict.fromkeys(number for one in mine for number in approvals.approvers(rule, one)))
        return {**present(rule, merge_request, viewer), "approved_by": service.present.users(ids)}


@foreign(_STORY, "User reference")
def approvers_have_the_name_of_the_author(service: Service) -> None:
    """Whoever approved is named by the right id and the author's name."""

    def change(shown: Any, merge_request: Any) -> None:
        author = service.identities.users[merge_request.author_id]
        for entry in shown["approved_by"]:
            entry["user"] = {**entry["user"], "name": author.name}

    _in_status(service, change)


@foreign(_STORY, "User reference")
def eligible_approvers_have_their_neighbours_username(service: Service) -> None:
    """Eligible approvers have the username of the one before them in the list."""

    @instead(service.approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        people = shown["eligible_approvers"]
        names = [one["username"] for one in people]
        shown["eligible_approvers"] = [
            {**one, "username": name} for one, name in zip(people, names[-1:] + names[:-1], strict=True)
        ]
        return shown


@foreign(_STORY, "Group reference")
def groups_of_rules_have_another_path(service: Service) -> None:
    """The groups of a rule have the right id and the path of another group."""
    other = service.world.one("sibling_group").path

    @instead(service.present, "group")
    def _(present: Any, group: Any) -> Any:
        return {**present(group), "full_path": other}


@foreign(_STORY, "Protected branch reference")
def branches_of_rules_have_the_name_of_the_default(service: Service) -> None:
    """The protected branches of a rule are all named like the default branch."""

    @instead(service.present, "project_protected_branch")
    def _(present: Any, branch: Any) -> Any:
        return {**present(branch), "name": "main"}


# -- allowlists --------------------------------------------------------------------------------------------------------


def _in_projects(service: Service, change: Any) -> None:
    @handling(service, "GET /projects/:id/job_token_scope/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = orjson.loads(orjson.dumps(answer.content))
        for entry in answer.content:
            change(entry, request)
        return answer


@foreign(_STORY, "Allowlist project entry")
def entries_lie_in_the_namespace_of_the_source(service: Service) -> None:
    """Projects of an allowlist are shown in the namespace of the project whose list it is."""

    def change(entry: Any, request: Any) -> None:
        entry["namespace"] = service.present.namespace(service.identities.namespace_of(request.project))

    _in_projects(service, change)


@foreign(_STORY, "Allowlist project entry")
def entries_are_cloned_from_the_source(service: Service) -> None:
    """Projects of an allowlist have the address for cloning of the project whose list it is."""

    def change(entry: Any, request: Any) -> None:
        entry["http_url_to_repo"] = f"{service.choices.web_url}/{request.project.full_path}.git"

    _in_projects(service, change)


@foreign(_STORY, "Allowlist project entry")
def paths_lack_the_namespace(service: Service) -> None:
    """The full path of an allowlist's project is the path without its namespace."""
    _in_projects(service, lambda entry, _: entry.update(path_with_namespace=entry["path"]))


@foreign(_STORY, "Allowlist group entry")
def groups_have_the_address_of_the_first(service: Service) -> None:
    """All groups of an allowlist have the address of one and the same group."""
    first = service.identities.groups[service.world.one("group").id]

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        return {**present(group), "web_url": service.present.group_url(first)}


@foreign(_STORY, "Integration list entry")
def integrations_have_the_title_of_another(service: Service) -> None:
    """Integrations are listed with a slug of their own and the title of another one."""

    @handling(service, "GET /projects/:id/integrations", "GET /projects/:id/services")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        titles = [entry["title"] for entry in answer.content]
        for entry, title in zip(answer.content, titles[1:] + titles[:1], strict=True):
            entry["title"] = title
        return answer


# -- moments and addresses ---------------------------------------------------------------------------------------------


@foreign(_FORM, "Integration list entry: timestamps")
def integrations_are_of_a_month_that_is_none(service: Service) -> None:
    """Integrations were changed in the thirteenth month of a year."""

    @instead(service.integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        return {**present(integration), "updated_at": "2024-13-45T99:99:99Z"}


@foreign(_FORM, "Allowlist project entry: created_at")
def projects_are_of_a_day_that_is_none(service: Service) -> None:
    """Projects of an allowlist were made on the thirtieth of February."""
    _in_projects(service, lambda entry, _: entry.update(created_at="2024-02-30T10:00:00.000Z"))


@foreign(_FORM, "Group relations export status entry: batches")
def batches_are_of_an_hour_that_is_none(service: Service) -> None:
    """Batches were finished in the twenty-fifth hour of a day."""

    @instead(service.group_relations_export, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        for batch in shown.get("batches") or ():
            batch["updated_at"] = "2024-05-01T25:00:00.000Z"
        return shown


@foreign(_FORM, "Merge request approval status: timestamps")
def merge_requests_are_of_a_minute_that_is_none(service: Service) -> None:
    """Merge requests were opened in the seventieth minute of an hour."""
    _in_status(service, lambda shown, _: shown.update(created_at="2024-05-01T10:70:00.000Z"))


@foreign(_FORM, "User reference: web_url")
def addresses_of_users_hold_blanks(service: Service) -> None:
    """The page of a user has an address with a blank in it."""

    @instead(service.present, "user")
    def _(present: Any, user: Any) -> Any:
        return {**present(user), "web_url": f"{service.choices.web_url}/{user.name} x"}


@foreign(_FORM, "Allowlist group entry: web_url")
def addresses_of_groups_lack_their_scheme(service: Service) -> None:
    """The page of an allowlist's group has an address without a scheme and with a blank."""

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        return {**present(group), "web_url": f"service example com/{group.full_path}"}


@foreign(_FORM, "Completion result: created")
def completions_are_made_in_milliseconds(service: Service) -> None:
    """A completion says when it was made in milliseconds; the text has seconds."""

    @instead(service.code_completion, "complete")
    def _(complete: Any, wanted: Any) -> Any:
        shown = complete(wanted)
        return {**shown, "created": shown["created"] * 1000}


@foreign("none, one or two values", "Project approval configuration: POST", version="15.9")
def of_two_flags_the_first_is_stored(service: Service) -> None:
    """Of the flags that a change of the configuration carries the first alone is stored."""
    from dataclasses import fields, replace  # noqa: PLC0415

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change_configuration: Any, project: Any, change: Any) -> Any:
        sent = [one.name for one in fields(change) if getattr(change, one.name) is not None]
        return change_configuration(project, replace(change, **dict.fromkeys(sent[1:])))
