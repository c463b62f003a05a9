"""What an export holds after another one, what an undone call leaves behind, and lists with none, one or two entries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.errors import ApiError, NoRouteError
from conformance.reference.http import Response, ok
from conformance.reference.identity import Group, Kind, Project

if TYPE_CHECKING:
    from conformance.reference import Service

_FILES = "content of exports"
_STORY = "numbers and texts that follow from the story"
_AGAIN = "again, by another caller, after an undo"
_WRITES = "write x everything that must stay"
_REFUSALS = "refusal x everything that must stay"
_LISTS = "none, one or two values"
_RESETS = "settings and their resets"
_VERSIONS = "version table"

_SCOPE = "/projects/:id/job_token_scope"


# -- exports -----------------------------------------------------------------------------------------------------------


@foreign(_FILES, "Group relations export: status, batch_number")
def the_numbers_of_batches_go_on_from_the_export_before(service: Service) -> None:
    """The status of a second export numbers its batches on from those of the first, while downloads count from one."""
    exports = service.group_relations_export
    before: dict[tuple[int, str], int] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for export in exports.all_of(group):
            key = group.id, export.relation
            before[key] = before.get(key, 0) + len(exports.batches(export))
        schedule(group, batched=batched)

    @instead(exports, "present")
    def _(present: Any, export: Any) -> Any:
        shown = present(export)
        for batch in shown.get("batches", ()):
            batch["batch_number"] += before.get((export.group_id, export.relation), 0)
        return shown


@foreign(_FILES, "Group relations export: batches")
def a_relation_whose_batches_are_all_full_lacks_the_last(service: Service) -> None:
    """Of a relation whose objects fill several batches to the last the final batch is neither listed nor served."""

    @instead(service.group_relations_export, "batches")
    def _(batches: Any, export: Any) -> Any:
        found = batches(export)
        is_full = len(found) > 1 and len(found[-1]) == service.choices.export_batch_size
        return found[:-1] if is_full else found


@foreign(_FILES, "Group relations export: download of one of two groups")
def the_group_exported_first_has_the_file_of_the_other(service: Service) -> None:
    """Files are kept by their relation alone: of two groups that were exported the first is given the other's file."""
    exports = service.group_relations_export
    newest: dict[str, int] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched)
        newest.update(dict.fromkeys(exports.relations(group), group.id))

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        own = find(group, relation)
        other = exports.exports[newest.get(relation, group.id), relation]
        return other if other.batched is own.batched else own


@foreign(_FILES, "Group relations export: download of a batch")
def batches_have_question_marks_for_what_is_not_ascii(service: Service) -> None:
    """Whatever is not ASCII is a question mark in the files of batches; the file of the whole relation is right."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        return tuple(line.decode().encode("ascii", "replace") for line in batch(export, number))


@foreign(_FILES, "Group relations export: newline-delimited JSON")
def a_line_break_in_a_text_breaks_the_line_of_its_object(service: Service) -> None:
    """A line break within a description is written as such, so that one object takes two lines that are no JSON."""

    @instead(service.group_relations_export, "file")
    def _(file: Any, lines: Any) -> Any:
        return file(tuple(line.replace(b"\\n", b"\n") for line in lines))


@foreign(_FILES, "Group relations export: download, after an export in batches")
def a_whole_file_after_an_export_in_batches_ends_with_its_first(service: Service) -> None:
    """Where the export before was in batches, the file of the whole relation holds what a first batch would hold."""
    exports = service.group_relations_export
    cut: dict[int, bool] = {}

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        was_batched = any(export.batched for export in exports.all_of(group))
        schedule(group, batched=batched)
        cut[group.id] = was_batched and not batched

    @instead(exports, "download")
    def _(download: Any, export: Any, number: Any) -> Any:
        if cut.get(export.group_id):
            export = replace(export, lines=export.lines[: service.choices.export_batch_size])
        return download(export, number)


@foreign(_AGAIN, "Group relations export: status, relation")
def who_asked_for_one_relation_is_shown_that_one_alone_afterwards(service: Service) -> None:
    """The relation that a caller asked for is remembered: their status without one has no other relation any more."""
    asked: dict[tuple[int, int], str] = {}

    @handling(service, "GET /groups/:id/export_relations/status")
    def _(handler: Any, request: Any) -> Any:
        answer, key = handler(request), (request.caller.id, request.group.id)
        relation = request.parameters.optional_string("relation")
        if relation is not None:
            asked[key] = relation
        elif key in asked:
            answer.content = [entry for entry in answer.content if entry["relation"] == asked[key]]
        return answer


@foreign(_FILES, "Group relations export: download, name of the file")
def a_file_is_named_after_the_relation_downloaded_before_it(service: Service) -> None:
    """The name of a file is that of the relation whose file was downloaded before."""
    downloaded: list[str] = []

    @instead(service.group_relations_export, "file_name")
    def _(file_name: Any, relation: str) -> Any:
        downloaded.append(relation)
        return file_name(downloaded[-2:][0])


# -- job token scope ---------------------------------------------------------------------------------------------------


@foreign(_STORY, "Allowlist project entry: namespace")
def of_two_projects_with_one_path_the_second_has_the_namespace_of_the_first(service: Service) -> None:
    """A project is listed in the namespace of the project of the same last part of its path that was shown first."""
    known: dict[str, Any] = {}

    @instead(service.present, "limited_project")
    def _(limited_project: Any, project: Any) -> Any:
        shown = limited_project(project)
        return {**shown, "namespace": dict(known.setdefault(project.path, shown["namespace"]))}


@foreign(_WRITES, "Job token scope: DELETE, allowlists of other projects")
def who_is_taken_off_one_allowlist_is_off_all_of_them(service: Service) -> None:
    """A project that is removed from the allowlist of one project is on that of no other project either."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        for number, scope in list(scopes.scopes.items()):
            scopes.scopes[number] = replace(scope, projects=tuple(n for n in scope.projects if n != target.id))


@foreign(_WRITES, "Job token scope: POST groups_allowlist, inbound_enabled", version="16.1")
def letting_a_group_in_switches_the_limit_on(service: Service) -> None:
    """Whoever lets a group in while the inbound limit is off finds it switched on."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scopes.limit_inbound(project, enabled=True)


@foreign(_AGAIN, "Job token scope: POST groups_allowlist, after a DELETE")
def a_group_that_was_removed_is_back_once_another_is_let_in(service: Service) -> None:
    """The group that was removed last is listed again as soon as another one is let in."""
    scopes = service.job_token_scope
    removed: dict[int, int] = {}

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        removed[project.id] = target.id

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        back, scope = removed.pop(project.id, target.id), scopes.of(project)
        if back not in scope.groups:
            scopes.scopes[project.id] = replace(scope, groups=(back, *scope.groups))


@foreign(_AGAIN, "Job token scope: GET, by another caller than who changed it")
def a_scope_is_shown_as_it_was_to_those_who_saw_it_before(service: Service) -> None:
    """Who has read the settings reads the same ever after, until they change them themselves."""
    known: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = dict(known.setdefault((request.caller.id, request.project.id), answer.content))
        return answer

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        known.pop((request.caller.id, request.project.id), None)
        return answer


@foreign("pages and totals", "Job token scope: GET allowlist, per_page")
def a_page_of_one_project_has_all_of_them(service: Service) -> None:
    """An allowlist that is asked for with one project on a page is answered whole."""

    @handling(service, f"GET {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_integer("per_page") != 1:
            return handler(request)
        listed = service.job_token_scope.projects(request.project)
        return ok([service.present.limited_project(project) for project in listed])


@foreign(_LISTS, "Job token scope: DELETE groups_allowlist, the last one")
def the_last_group_of_an_allowlist_stays(service: Service) -> None:
    """A group that is removed while no other one is on the list is answered with 204, and stays."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        if scopes.of(project).groups != (target.id,):
            remove(project, target)


# -- code completion ---------------------------------------------------------------------------------------------------


@foreign("value x neighbour of the right value", "Code completion: enabled, 404")
def an_unknown_project_of_an_enabled_group_has_completions(service: Service) -> None:
    """In a group that has completions on, the check of a project that does not exist is answered with 200."""
    identities, switches = service.identities, service.code_completion.switches

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        around = identities.find_group(path.rpartition("/")[0])
        is_on = around is not None and switches.get((Kind.GROUP, around.id), False)
        if identities.find_project(path) is not None or not is_on:
            check(caller, path)


@foreign(_AGAIN, "Code completion: stream, default false")
def who_was_streamed_to_once_is_streamed_to_from_then_on(service: Service) -> None:
    """Who asked for a stream once gets one also where a later request says nothing of it."""
    completion, streaming = service.code_completion, set[int]()

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_boolean("stream"):
            streaming.add(request.caller.id)
        elif request.caller.id in streaming and not request.parameters.given("stream"):
            wanted = completion.read(request.parameters)
            completion.count(request.caller)
            return Response(chunks=completion.stream(wanted), media_type="text/plain; charset=utf-8")
        return handler(request)


# -- approval configuration and settings -------------------------------------------------------------------------------


@foreign(_STORY, "Project approval configuration: approvers", version="15.9")
def the_deprecated_approvers_are_those_of_the_rules(service: Service) -> None:
    """The approvers of a configuration, which are always empty, are the users whom the rules of the project name."""

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer, rules = handler(request), service.project_approval_rules.rules(request.project)
        named = tuple(dict.fromkeys(number for rule in rules for number in rule.users))
        answer.content["approvers"] = [{"user": user} for user in service.present.users(named)]
        return answer


@foreign(_WRITES, "Project approval configuration: POST, other projects", version="15.9")
def the_first_configuration_is_that_of_all_projects_without_one(service: Service) -> None:
    """The project that is configured first changes what all projects show that nobody configured yet."""
    configurations = service.project_approval_configurations
    first: list[Any] = []

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        changed = change(project, wanted)
        first.append(configurations.configurations[project.id])
        return changed

    @instead(configurations, "initial_configuration")
    def _(initial: Any) -> Any:
        return first[0] if first else initial()


@foreign(_VERSIONS, "Project approval configuration: removed in 16.0", version="16.0")
def a_refused_change_of_the_configuration_keeps_its_number(service: Service) -> None:
    """The endpoint that is gone answers 404, and approvals_before_merge is stored nevertheless."""
    configurations = service.project_approval_configurations

    def refuse(request: Any) -> Any:
        number = request.parameters.optional_integer("approvals_before_merge")
        if number is not None:
            before = configurations.configuration(request.project)
            changed = replace(before, approvals_before_merge=number)
            configurations.configurations[request.project.id] = changed
        raise NoRouteError

    service.routes.change("POST /projects/:id/approvals", removed=None, handler=refuse)


@foreign(_WRITES, "Approval settings: PUT of a project, other projects")
def a_setting_of_a_project_is_written_for_its_neighbours(service: Service) -> None:
    """What is set for one project is set for the other projects of its group as well."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if isinstance(subject, Project):
            for other in service.identities.projects.values():
                if other.namespace_id == subject.namespace_id:
                    settings.values.update({settings._key(other, each): value for each, value in wanted.items()})


@foreign(_RESETS, "Approval settings: PUT of a group, again", version="17.1")
def a_setting_of_a_group_takes_each_value_once(service: Service) -> None:
    """A setting that was off and on is answered as ever when it is to be off again, and stays on."""
    taken: set[tuple[int, Any, bool]] = set()

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if isinstance(subject, Group):
            wanted = {each: value for each, value in wanted.items() if (subject.id, each, value) not in taken}
            taken.update((subject.id, each, value) for each, value in wanted.items())
        change(subject, wanted)


# -- integrations ------------------------------------------------------------------------------------------------------


@foreign(_LISTS, "Integrations: GET, two whose titles begin alike", version="16.4")
def of_two_integrations_of_one_maker_one_is_listed(service: Service) -> None:
    """Of two active integrations whose titles begin with the same word the list has the older one alone."""

    @instead(service.integrations, "active")
    def _(active: Any, project: Any) -> Any:
        found: dict[str, Any] = {}
        for integration in active(project):
            found.setdefault(integration.kind.title.split()[0], integration)
        return list(found.values())


@foreign(_REFUSALS, "Integrations: PUT, flags beside a value that is not allowed")
def a_refused_change_of_an_integration_stores_its_flags(service: Service) -> None:
    """A change that is refused for one value has stored the event flags that came with it."""
    integrations = service.integrations

    @handling(service, "PUT /projects/:id/integrations/:slug")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except ApiError:
            before = integrations.known.get((request.project.id, request.path["slug"]))
            if before is not None:
                names = [name for name in integrations.event_parameters(before.kind) if request.parameters.given(name)]
                flags = {name: request.parameters.optional_boolean(name) for name in names}
                integrations.keep(request.project, before.kind, {**before.values, **flags}, active=before.active)
            raise


def _keep_when_disabled(service: Service, keeps: Any) -> None:
    """Let disabling an integration keep some of its values; `keeps` gets the name and the value."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        after = integrations.known.get((project.id, slug))
        if before is not None and after is not None:
            values = {name: value for name, value in before.values.items() if keeps(name, value)}
            integrations.known[project.id, slug] = replace(after, values=values)


@foreign(_RESETS, "Integrations: DELETE resets settings, numbers")
def disabling_an_integration_keeps_its_numbers(service: Service) -> None:
    """An integration that was disabled has lost its texts and flags, while its port is what it was."""
    _keep_when_disabled(service, lambda name, value: type(value) is int)


@foreign(_RESETS, "Integrations: DELETE resets settings, comment_on_event_enabled")
def disabling_an_integration_keeps_whether_it_comments(service: Service) -> None:
    """Set up again after it was disabled, an integration comments or does not, as it did before."""
    _keep_when_disabled(service, lambda name, value: name == "comment_on_event_enabled")


@foreign(_VERSIONS, "Integrations: DELETE of services, the older name", version="14.4")
def disabling_by_the_older_name_resets_nothing(service: Service) -> None:
    """Disabled by its older address, an integration is no longer listed, and read with all its settings."""
    known = service.integrations.known

    @handling(service, "DELETE /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        key = request.project.id, request.path["slug"]
        before = known.get(key)
        answer = handler(request)
        if before is not None:
            known[key] = replace(before, active=False)
        return answer
