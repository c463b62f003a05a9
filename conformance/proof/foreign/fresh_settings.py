"""Small bugs in the approval settings of groups and projects, and in the approval configuration of projects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, is_served, let_in, meanwhile
from conformance.reference.areas.approval_rule_records import home_of
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import InvalidError, RejectedError, UnauthorizedError
from conformance.reference.http import ok
from conformance.reference.identity import Group, Kind, Project, Role, Visibility
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service

_SETTINGS = "settings and their resets"
_CALLER = "caller x form of id x operation"
_NEIGHBOUR = "value x neighbour of the right value"
_SERVED = "write x everything that must stay"
_REFUSED = "refusal x everything that must stay"
_GROUP = "/groups/:id/merge_request_approval_setting"
_PROJECT = "/projects/:id/merge_request_approval_setting"
_CONFIGURATION = "/projects/:id/approvals"


# -- approval settings: who is let in, and to what ---------------------------------------------------------------------


# Reading takes the role of a maintainer in the project as well as writing.
@foreign(_CALLER, "Approval settings: Authentication, project approval settings")
def who_opened_a_merge_request_reads_the_settings(service: Service) -> None:
    """The settings are shown to authors of merge requests as well, for their page says whether they may approve."""

    def fits(request: Any, caller: Any, _: Role) -> bool:
        project = found(service, request)
        return any(
            one.author_id == caller.id and one.project_id == project.id
            for one in service.repositories.merge_requests.values()
        )

    let_in(service, (f"GET {_PROJECT}",), fits)


# A role is handed down from groups to what is inside them, and never up.
@foreign(_CALLER, "Approval settings: Authentication, group approval settings")
def owners_of_a_subgroup_own_the_group_around(service: Service) -> None:
    """The role is looked for in the group and everything inside it, in the place of everything around it."""
    known = service.identities

    def fits(request: Any, caller: Any, _: Role) -> bool:
        subject = found(service, request)
        return any(
            subject in known.lineage(group) and known.roles.get((Kind.GROUP, group.id, caller.id)) is Role.OWNER
            for group in known.groups.values()
        )

    let_in(service, (f"GET {_GROUP}", f"PUT {_GROUP}"), fits)


# What is sent in the path is an id, or a path, and a path may begin with digits.
@foreign(_CALLER, "Approval settings: conventions, :id")
def paths_of_groups_that_begin_with_digits_are_numbers(service: Service) -> None:
    """Of the path of a group the digits that it begins with are taken for an id."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key in {f"GET {_GROUP}", f"PUT {_GROUP}"}:
            text = request.path["id"]
            digits = text[: len(text) - len(text.lstrip("0123456789"))]
            request.path["id"] = digits or text
        admit(request)


# The path of a project is that of no group.
@foreign(_CALLER, "Approval settings: conventions, :id names a group")
def the_path_of_a_project_names_its_group(service: Service) -> None:
    """Where no group has a path, the namespace of the project that has it is taken."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key in {f"GET {_GROUP}", f"PUT {_GROUP}"} and by_path(request):
            project = service.identities.find_project(request.path["id"])
            if project is not None:
                request.path["id"] = str(project.namespace_id)
        admit(request)


# An id and a path are two names of one project.
@foreign("again, by another caller, after an undo", "Approval settings: conventions, :id")
def settings_are_remembered_for_each_name_of_a_project(service: Service) -> None:
    """What was read by path is remembered, and forgotten only when something is written by path."""
    remembered: dict[str, Any] = {}

    @handling(service, f"GET {_PROJECT}")
    def _(handler: Any, request: Any) -> Any:
        if not by_path(request):
            return handler(request)
        return ok(remembered.setdefault(request.path["id"], handler(request).content))

    @handling(service, f"PUT {_PROJECT}")
    def _(handler: Any, request: Any) -> Any:
        remembered.pop(request.path["id"], None)
        return handler(request)


# -- approval settings: what is written --------------------------------------------------------------------------------


# A request is JSON also where the type of its content says in which letters it is written.
@foreign("forms of what is sent", "Approval settings: PUT; requests are JSON")
def settings_with_a_charset_are_not_read(service: Service) -> None:
    """The type of the content is compared as a whole, so that a body with a charset is none, and changes nothing."""

    @handling(service, f"PUT {_GROUP}", f"PUT {_PROJECT}")
    def _(handler: Any, request: Any) -> Any:
        if "charset" in request.header("content-type").lower():
            request.body = b""
        return handler(request)


# What is sent is stored, however much is sent at once.
@foreign("none, one or two values", "Approval settings: PUT, optional booleans")
def the_last_of_three_settings_is_lost(service: Service) -> None:
    """Of three settings or more that are sent at once the last one is answered as sent, and not stored."""
    most = 2

    @handling(service, f"PUT {_GROUP}", f"PUT {_PROJECT}")
    def _(handler: Any, request: Any) -> Any:
        sent = [s for s in service.approval_settings.accepted() if request.parameters.given(s.value)]
        if len(sent) <= most:
            return handler(request)
        subject, last = found(service, request), sent[-1]
        before = service.approval_settings.effective(subject, last)
        answer = handler(request)
        service.approval_settings.change(subject, {last: before})
        return answer


# Each setting has the value that was sent for it.
@foreign(_SETTINGS, "Approval settings: PUT, optional booleans")
def committers_get_the_value_of_authors(service: Service) -> None:
    """Where both are sent, the value for committers is taken from that for authors."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if {Setting.ALLOW_AUTHOR_APPROVAL, Setting.ALLOW_COMMITTER_APPROVAL} <= set(wanted):
            wanted = {**wanted, Setting.ALLOW_COMMITTER_APPROVAL: wanted[Setting.ALLOW_AUTHOR_APPROVAL]}
        change(subject, wanted)


# A refusal changes nothing.
@foreign(_REFUSED, "Approval settings: PUT, optional booleans")
def what_was_right_in_a_refused_update_is_stored(service: Service) -> None:
    """An update with a value that is no boolean is refused, and the settings beside it are stored all the same."""

    @handling(service, f"PUT {_GROUP}", f"PUT {_PROJECT}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            sent = request.parameters._values
            settings = service.approval_settings
            right = {s: sent[s.value] for s in settings.accepted() if isinstance(sent.get(s.value), bool)}
            settings.change(found(service, request), right)
            raise


# What is written for a project is that project's.
@foreign(_SERVED, "Approval settings: PUT of a project")
def projects_of_one_group_are_changed_together(service: Service) -> None:
    """The condition of the update names the namespace of a project, so that its neighbours are changed as well."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if isinstance(subject, Project):
            for project in service.identities.projects.values():
                if project.namespace_id == subject.namespace_id and project.id != subject.id:
                    change(project, wanted)


# A valid update is served, also one that leaves everything as it was.
@foreign("again, by another caller, after an undo", "Approval settings: PUT of a project")
def an_update_that_changes_nothing_is_refused(service: Service) -> None:
    """An update counts the rows that it changed, and takes none for a failure."""
    settings = service.approval_settings

    @handling(service, f"PUT {_PROJECT}")
    def _(handler: Any, request: Any) -> Any:
        sent = {s: request.parameters.optional_boolean(s.value) for s in settings.accepted()}
        told = {s: value for s, value in sent.items() if value is not None}
        if told and all(settings.effective(request.project, s) is value for s, value in told.items()):
            raise RejectedError("could not be saved")
        return handler(request)


# The same value counts again after another one.
@foreign(_SETTINGS, "Approval settings: PUT of a group")
def a_value_that_was_there_before_is_not_stored_again(service: Service) -> None:
    """Each value of each setting of a group is recorded once, and the one that was recorded last counts."""
    recorded: set[tuple[int, Setting, bool]] = set()

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if isinstance(subject, Group):
            wanted = {s: value for s, value in wanted.items() if (subject.id, s, value) not in recorded}
            recorded.update((subject.id, s, value) for s, value in wanted.items())
        change(subject, wanted)


# What an update does not send, it leaves alone, also while another one is under way.
@foreign("two write at once", "Approval settings: PUT of a group, optional booleans")
def updates_write_back_what_they_did_not_change(service: Service) -> None:
    """An update reads all settings of a group, and writes all of them: of two at once the first one is lost."""
    values = service.approval_settings.values

    def write(before: dict[Any, bool], request: Any) -> None:
        place = (Kind.GROUP, request.group.id)
        for key in [key for key in values if key[:2] == place]:
            del values[key]
        values.update({key: value for key, value in before.items() if key[:2] == place})

    meanwhile(service, (f"PUT {_GROUP}",), lambda: dict(values), write)


# -- approval settings: what is shown ----------------------------------------------------------------------------------


# What is introduced in a version is there from that version on.
@foreign("version table", "Approval settings: 17.1, require_reauthentication_to_approve", version="17.1")
def projects_get_reauthentication_one_version_late(service: Service) -> None:
    """Projects show the setting in versions after the one that introduces it, and not in that one."""

    @instead(service.approval_settings, "settings")
    def _(settings: Any, subject: Any) -> Any:
        shown = settings(subject)
        if isinstance(subject, Project) and service.version == Version(17, 1):
            del shown[Setting.REQUIRE_REAUTHENTICATION.value]
        return shown


# -- approval configuration --------------------------------------------------------------------------------------------


# The pair may not be together, whichever of the two comes last.
@foreign(_NEIGHBOUR, "Project approval configuration: selective_code_owner_removals", version="15.11")
def resetting_is_switched_on_beside_selective_removals(service: Service) -> None:
    """That the two exclude each other is looked at when removals are switched on, and not when resetting is."""
    area = service.project_approval_configurations

    @instead(area, "change_configuration")
    def _(change_configuration: Any, project: Any, change: Any) -> Any:
        if not change.reset_approvals_on_push or change.selective_code_owner_removals is not None:
            return change_configuration(project, change)
        change_configuration(project, replace(change, reset_approvals_on_push=None))
        area.configurations[project.id] = replace(area.configurations[project.id], reset_approvals_on_push=True)
        return area.configuration(project)


# Both lists are always empty, since rules name the approvers.
@foreign("numbers and texts that follow from the story", "Project approval configuration: approver_groups")
def the_configuration_lists_the_groups_of_rules(service: Service) -> None:
    """Older clients are shown the groups that approve by some rule of the project."""

    @handling(service, f"GET {_CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        rules = service.approval_rules.rules_of(home_of(request.project))
        groups = [service.identities.groups[number] for rule in rules for number in rule.groups]
        answer.content["approver_groups"] = [{"group": service.present.group(group)} for group in groups]
        return answer


# What was removed has no effect.
@foreign(_REFUSED, "Project approval configuration: POST, removed in 16.0")
def the_removed_change_of_the_configuration_is_made(service: Service) -> None:
    """What refuses the removed call comes after the one that serves it, which changes the configuration before."""
    service.routes.change(f"POST {_CONFIGURATION}", removed=None)

    @handling(service, f"POST {_CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        return ok({"error": "410 Gone"}, 410) if is_served(handler(request)) else None


# Everybody who calls has to say who they are.
@foreign(_CALLER, "Project approval configuration: Authentication")
def strangers_read_the_configuration_of_public_projects(service: Service) -> None:
    """The configuration of a public project is shown to callers without a token."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        try:
            admit(request)
        except UnauthorizedError:
            project = found(service, request) if request.route.key == f"GET {_CONFIGURATION}" else None
            if project is None or project.visibility is not Visibility.PUBLIC:
                raise
            request.admit(next(iter(service.identities.users.values())), project)
