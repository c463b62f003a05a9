"""Small bugs of other code bases: tables with joins, caches, columns of JSON, and what a framework does by itself.

Who may do what with job tokens, completions, settings, exports, integrations, and what all calls have in common.
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import InvalidError, NotFoundError, RejectedError, StatedError
from conformance.reference.identity import Project, Role

if TYPE_CHECKING:
    from conformance.reference import Service

_NAMED = "caller x form of id x operation"
_NEIGHBOUR = "value x neighbour of the right value"
_SENT = "forms of what is sent"
_FILES = "content of exports"
_STORY = "numbers and texts that follow from the story"
_SECOND = "none, one or two values"
_AGAIN = "again, by another caller, after an undo"
_STAYS = "write x everything that must stay"
_REFUSED = "refusal x everything that must stay"
_NOTHING = "what arranges or undoes, and does nothing"
_SETTINGS = "settings and their resets"
_PAGES = "pages and totals"
_VERSIONS = "version table"

_SCOPE = "/projects/:id/job_token_scope"
_PROJECT_SETTINGS = "/projects/:id/merge_request_approval_setting"
_GROUP_SETTINGS = "/groups/:id/merge_request_approval_setting"
_EXPORT = "/groups/:id/export_relations"
_BOTH_NAMES = ("/projects/:id/integrations", "/projects/:id/services")
#: The last character that an older encoding of a database holds.
_LAST_OF_THREE_BYTES = 0xFFFF


# -- job token scope ---------------------------------------------------------------------------------------------------


# Removing one entry is removing one entry.
@foreign(_STAYS, "Job token scope: DELETE groups_allowlist")
def a_removed_group_takes_its_subgroups_along(service: Service) -> None:
    """Who removes a group from the allowlist removes the groups inside it, too, that were added by themselves."""
    scopes, known = service.job_token_scope, service.identities

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        inside = {group.id for group in known.groups.values() if target in known.lineage(group)}
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n not in inside))


# The limit equals what was sent, whoever is listed.
@foreign(_NOTHING, "Job token scope: PATCH")
def a_limit_with_entries_stays_on(service: Service) -> None:
    """As long as anybody is in an allowlist the limit is not switched off, and the answer is 204 all the same."""
    scopes = service.job_token_scope

    @instead(scopes, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        scope = scopes.of(project)
        if enabled or not (scope.projects or scope.groups):
            limit(project, enabled=enabled)


# Each addition adds one project.
@foreign(_SECOND, "Job token scope: POST allowlist")
def a_project_takes_the_place_of_one_beside_it(service: Service) -> None:
    """Of the projects in one group only the one added last is in the allowlist: the index is over the wrong column."""
    scopes, projects = service.job_token_scope, service.identities.projects

    @instead(scopes, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = scopes.of(project)
        stay = (n for n in scope.projects if n == target.id or projects[n].namespace_id != target.namespace_id)
        scopes.scopes[project.id] = replace(scope, projects=tuple(stay))


# What one has removed, another one does not see any more.
@foreign(_AGAIN, "Job token scope: GET groups_allowlist")
def listed_groups_are_remembered_for_each_reader(service: Service) -> None:
    """Who has read the groups of an allowlist reads the same again, until they change it themselves."""
    remembered: dict[tuple[int, int, bytes], Any] = {}

    @handling(service, f"GET {_SCOPE}/groups_allowlist")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.project.id, request.query
        if key not in remembered:
            remembered[key] = handler(request)
        return remembered[key]

    @handling(service, f"POST {_SCOPE}/groups_allowlist", f"DELETE {_SCOPE}/groups_allowlist/:target_group_id")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in remembered if key[:2] == (request.caller.id, request.project.id)]:
            del remembered[key]
        return handler(request)


# Pages do not repeat entries, and are no longer than was asked for.
@foreign(_PAGES, "Job token scope: GET allowlist")
def each_page_begins_with_the_project_itself(service: Service) -> None:
    """The project itself is put before the entries of each page, and not before the list."""

    @handling(service, f"GET {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if (request.parameters.optional_integer("page") or 1) > 1 and answer.content:
            answer.content.insert(0, service.present.limited_project(request.project))
        return answer


# -- code completion ---------------------------------------------------------------------------------------------------


# 404 is for a project that does not exist, however deep it lies.
@foreign(_NAMED, "Code completion: enabled, project_path")
def a_path_has_two_segments(service: Service) -> None:
    """The path of a project inside a subgroup is taken for one that does not exist."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if path.count("/") > 1:
            raise StatedError(404, "404 Project Not Found")
        check(caller, path)


# false is the default, and means the same when it is said.
@foreign(_NEIGHBOUR, "Code completion: stream")
def a_completion_that_shall_not_be_streamed_is(service: Service) -> None:
    """Whether `stream` was sent decides, and not its value: false streams, too."""

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("stream") is not None:
            request.parameters._values = {**values, "stream": True}
        return handler(request)


# 403 where the feature is disabled, whoever asks.
@foreign(_NAMED, "Code completion: enabled, 403")
def owners_have_the_feature_in_any_case(service: Service) -> None:
    """The check is passed by whoever could switch the feature on."""
    known = service.identities

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        project = known.find_project(path) if "/" in path else None
        if project is None or known.role_in(caller, project) < Role.OWNER:
            check(caller, path)


# -- project approval configuration ------------------------------------------------------------------------------------


# Each parameter that was sent counts.
@foreign(_SETTINGS, "Project approval configuration: POST", version="15.11")
def false_is_left_out_beside_true(service: Service) -> None:
    """Of several flags in one call those that are false are taken for blank, and dropped."""

    @handling(service, "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if any(value is True for value in values.values()):
            request.parameters._values = {name: value for name, value in values.items() if value is not False}
        return handler(request)


# Both are always empty since 12.3.
@foreign(_STORY, "Project approval configuration: approvers")
def former_approvers_are_those_of_the_rules(service: Service) -> None:
    """The deprecated list of approvers holds the users of the rules of the project."""
    rules = service.project_approval_rules

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        named = dict.fromkeys(user for rule in rules.rules(request.project) for user in rule.users)
        answer.content["approvers"] = [{"user": user} for user in service.present.users(tuple(named))]
        return answer


# -- approval settings -------------------------------------------------------------------------------------------------


# What is refused changes nothing.
@foreign(_REFUSED, "Approval settings: PUT of a group")
def settings_before_the_wrong_one_are_stored(service: Service) -> None:
    """The settings of a group are stored one by one until one cannot be read; the call is refused then."""
    settings = service.approval_settings

    @handling(service, f"PUT {_GROUP_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            for setting in settings.accepted():
                value = request.parameters._values.get(setting.value)
                if value is not None and not isinstance(value, bool):
                    break
                if value is not None:
                    settings.change(request.group, {setting: value})
            raise


# On, off and on again is on.
@foreign(_AGAIN, "Approval settings: PUT of a project")
def a_call_like_an_earlier_one_is_taken_for_it(service: Service) -> None:
    """A call with the path and body of an earlier one by the same caller is answered, and not carried out again."""
    answered: dict[tuple[int, bytes, bytes], Any] = {}

    @handling(service, f"PUT {_PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.raw_path, request.body
        if key not in answered:
            answered[key] = handler(request)
        return answered[key]


# Settings are independent of each other.
@foreign(_STAYS, "Approval settings: PUT of a project")
def retained_approvals_forbid_other_approvers(service: Service) -> None:
    """In a project, who has approvals retained switches off that merge requests may have approvers of their own."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if isinstance(subject, Project) and wanted.get(Setting.RETAIN_APPROVALS):
            change(subject, {Setting.ALLOW_OVERRIDES: False})


# -- group relations export --------------------------------------------------------------------------------------------


# Each export is what was asked for last.
@foreign(_AGAIN, "Group relations export: batched, then not")
def what_was_batched_once_has_no_single_file(service: Service) -> None:
    """After an export in batches, the file of a later one that is not batched is refused for being batched."""
    exports = service.group_relations_export
    batched_once: set[tuple[int, str]] = set()

    @instead(exports, "download")
    def _(download: Any, export: Any, number: int | None) -> bytes:
        if number is None and (export.group_id, export.relation) in batched_once:
            raise RejectedError("Export is batched")
        content: bytes = download(export, number)
        return content

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched)
        if batched:
            batched_once.update((group.id, export.relation) for export in exports.all_of(group))


# What is finished can be downloaded.
@foreign(_SECOND, "Group relations export: download of what has no objects")
def an_export_without_objects_has_no_file(service: Service) -> None:
    """A relation without objects is finished by its status, and has no file."""

    @instead(service.group_relations_export, "download")
    def _(download: Any, export: Any, number: int | None) -> bytes:
        if not export.lines:
            raise NotFoundError("404 Export file not found")
        content: bytes = download(export, number)
        return content


# An export holds the group as it is when it is scheduled.
@foreign(_FILES, "Group relations export: the second one")
def a_later_export_holds_the_first_objects(service: Service) -> None:
    """The files of a later export are those of the first one: what was added meanwhile is missing."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        former = {export.relation: export.lines for export in exports.all_of(group)}
        schedule(group, batched=batched)
        for export in exports.all_of(group):
            lines = former.get(export.relation, export.lines)
            exports.exports[group.id, export.relation] = replace(export, lines=lines)


# The file is compressed once.
@foreign(_FILES, "Group relations export: gzip")
def files_are_compressed_twice_for_who_takes_gzip(service: Service) -> None:
    """A file is compressed again for clients that take compressed answers, without a word in the headers."""

    @handling(service, f"GET {_EXPORT}/download")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if "gzip" in request.header("accept-encoding"):
            answer.raw = gzip.compress(answer.raw, mtime=0)
        return answer


# -- integrations ------------------------------------------------------------------------------------------------------


# Disabling resets the settings.
@foreign(_AGAIN, "Integrations: set up after DELETE")
def an_integration_set_up_again_has_its_former_options(service: Service) -> None:
    """A disabled integration reads as blank; set up anew, it has what was optional among its former settings."""
    integrations = service.integrations
    former: dict[tuple[int, str], dict[str, Any]] = {}

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        known = integrations.known.get((project.id, slug))
        disable(project, slug)
        if known is not None and known.active:
            needed = {parameter.name for parameter in known.kind.parameters if parameter.required}
            former[project.id, slug] = {name: value for name, value in known.values.items() if name not in needed}

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        return set_up(project, kind, {**former.pop((project.id, kind.slug), {}), **values}, active=active)


# Disabling one integration disables one.
@foreign(_STAYS, "Integrations: DELETE beside one whose slug goes on")
def what_begins_with_the_slug_is_disabled_too(service: Service) -> None:
    """The row is looked up by how its type begins: with `slack` the slash commands of the same chat are disabled."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        for key in [key for key in integrations.known if key[0] == project.id and key[1].startswith(f"{slug}-")]:
            disable(project, key[1])


# The slug of an entry is the identifier by which the integration is reached.
@foreign(_STORY, "Integrations: slug of list entries")
def slugs_are_listed_with_underscores(service: Service) -> None:
    """The list names an integration as the code does: emails_on_push for emails-on-push."""

    @handling(service, *(f"GET {path}" for path in _BOTH_NAMES))
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        for entry in answer.content:
            entry["slug"] = entry["slug"].replace("-", "_")
        return answer


# What is refused changes nothing.
@foreign(_REFUSED, "Integrations: PUT")
def a_refused_change_switches_the_integration_off(service: Service) -> None:
    """A change that cannot be read is refused, and the integration is stored as one that is not valid: inactive."""
    integrations = service.integrations

    @handling(service, *(f"PUT {path}/:slug" for path in _BOTH_NAMES))
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            key = request.project.id, request.path["slug"]
            known = integrations.known.get(key)
            if known is not None:
                integrations.known[key] = replace(known, active=False)
            raise


# -- what all calls have in common -------------------------------------------------------------------------------------


# A missing path is missing, however deep it lies.
@foreign(_VERSIONS, "Versioning: row 17.7")
def the_tree_of_a_deep_missing_path_is_empty(service: Service) -> None:
    """A missing folder is refused at the top of a repository only; one inside another folder has an empty tree."""

    @instead(service.sources, "tree")
    def _(tree: Any, project: Any, ref: str | None, path: str, *, recursive: bool) -> Any:
        try:
            return tree(project, ref, path, recursive=recursive)
        except StatedError:
            if "/" in path.strip("/"):
                return []
            raise


# Requests are JSON, and the media type may say in which encoding.
@foreign(_SENT, "Conventions: requests are JSON")
def json_with_a_charset_is_not_read(service: Service) -> None:
    """The content type is compared as a whole: behind `application/json; charset=utf-8` no body is read."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if "charset" in request.header("content-type").lower():
            request.body = b""
        admit(request)


# A name is a string.
@foreign(_NEIGHBOUR, "Approval rules: name")
def names_end_before_a_picture(service: Service) -> None:
    """The name of a new rule is cut before the first character of four bytes, as an old encoding does it."""

    @instead(service.approval_rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        place = next((n for n, letter in enumerate(candidate.name) if ord(letter) > _LAST_OF_THREE_BYTES), None)
        return add(replace(candidate, name=candidate.name[:place]))
