"""Who may read and change approval settings, and which group or project an id means."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import CALLER_AND_FORM, CALLER_AND_VALUE, LEVEL
from conformance.proof.foreign.paths import GROUP_SETTINGS, PROJECT_SETTINGS
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, is_served, let_in
from conformance.reference.errors import ForbiddenError, StatedError
from conformance.reference.identity import Kind, Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.areas.approval_settings import Setting
    from conformance.reference.http import Request


# -- reading -----------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Approval settings: GET for a group")
def groups_named_by_path_show_initial_settings(service: Service) -> None:
    """If a group is named by its path, its settings are shown with their initial values."""

    @handling(service, f"GET {GROUP_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and not request.path["id"].isdigit():
            known = service.choices.group_settings_on_initially
            answer.content = {name: {**one, "value": name in known} for name, one in answer.content.items()}
        return answer


# The source of a setting is a string.
@foreign(LEVEL, "Approval setting: inherited_from")
def a_setting_comes_from_a_number(service: Service) -> None:
    """A locked setting of a project shows the id of the group that it is inherited from."""

    @instead(service.approval_settings, "present")
    def _(present: Any, subject: Any, setting: Setting) -> Any:
        shown = present(subject, setting)
        if shown["inherited_from"] is not None:
            shown["inherited_from"] = service.identities.lineage(subject)[-1].id
        return shown


# The role is the one in the project itself.
@foreign(CALLER_AND_FORM, "Approval settings: Authentication, project approval settings")
def who_maintains_one_project_reads_the_settings_of_those_around(service: Service) -> None:
    """For reading, the highest role in any project of the top-level group counts."""

    def fits(request: Any, caller: Any, _: Any) -> bool:
        known, top = service.identities, service.identities.lineage(found(service, request))[-1]
        inside = [project for project in known.projects.values() if top in known.lineage(project)]
        return any(known.role_in(caller, project) >= Role.MAINTAINER for project in inside)

    let_in(service, (f"GET {PROJECT_SETTINGS}",), fits)


# The whole path identifies a project.
@foreign(CALLER_AND_FORM, "Approval settings: conventions, :id is the path of a project")
def settings_read_by_path_are_remembered_by_its_last_part(service: Service) -> None:
    """Settings read by path are cached by the last part of the path, which another project may have as well."""
    remembered: dict[str, Any] = {}

    @handling(service, f"GET {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if not by_path(request):
            return handler(request)
        values, last = service.approval_settings.values, request.path["id"].rpartition("/")[2]
        if remembered.get(last, (None, None))[0] != values:
            remembered[last] = dict(values), handler(request)
        return remembered[last][1]


# -- changing those of a group -----------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def maintainers_write_settings_of_groups_by_path(service: Service) -> None:
    """A maintainer can change the settings of a group named by its path; only owners may."""
    keys = (f"PUT {GROUP_SETTINGS}",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.MAINTAINER)


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def developers_set_groups_by_number_in_subgroups(service: Service) -> None:
    """A developer can change the settings of a subgroup; only owners may."""
    let_in(service, (f"PUT {GROUP_SETTINGS}",), lambda r, _, role: found(service, r).parent_id and role >= 30)


# A role is inherited from a group by everything inside it, and never upwards.
@foreign(CALLER_AND_FORM, "Approval settings: Authentication, group approval settings")
def owners_of_a_subgroup_own_the_group_around(service: Service) -> None:
    """The role is looked up in the group and everything inside it, instead of everything that contains it."""
    known = service.identities

    def fits(request: Any, caller: Any, _: Role) -> bool:
        subject = found(service, request)
        return any(
            subject in known.lineage(group) and known.roles.get((Kind.GROUP, group.id, caller.id)) is Role.OWNER
            for group in known.groups.values()
        )

    let_in(service, (f"GET {GROUP_SETTINGS}", f"PUT {GROUP_SETTINGS}"), fits)


# Only owners may change the settings of a group.
@foreign(CALLER_AND_VALUE, "Authentication: group approval settings")
def maintainers_may_make_a_group_stricter(service: Service) -> None:
    """A maintainer's update of a group is accepted if it switches everything off."""

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        is_update = route.key == f"PUT {GROUP_SETTINGS}"
        if not (is_update and service.identities.role_in(caller, subject) is Role.MAINTAINER):
            require(route, caller, subject)

    @handling(service, f"PUT {GROUP_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if service.identities.role_in(request.caller, request.group) < Role.OWNER and any(
            request.parameters._values.values()
        ):
            raise StatedError(403, "403 Forbidden")
        return handler(request)


@foreign(CALLER_AND_FORM, "Approval settings: PUT of a group")
def members_write_settings_that_are_so_already(service: Service) -> None:
    """Any member of a group gets a success for an update that changes nothing; it requires an owner."""

    def changes_nothing(request: Any, _: Any, role: Role) -> bool:
        group = service.identities.find_group(request.path["id"])
        settings = service.approval_settings
        if group is None or role is Role.NONE:
            return False
        now, sent = settings.settings(group), request.parameters.optional_boolean
        wanted = {setting.value: sent(setting.value) for setting in settings.accepted()}
        return all(now[name]["value"] == value for name, value in wanted.items() if value is not None)  # type: ignore[index]

    let_in(service, ("PUT /groups/:id/merge_request_approval_setting",), changes_nothing)


# -- changing those of a project ---------------------------------------------------------------------------------------


# The name used for a project does not change where its settings are stored.
@foreign(CALLER_AND_FORM, "Approval settings: PUT for a project by path")
def settings_by_path_reach_the_group(service: Service) -> None:
    """An update of a project named by its path is also stored for its group."""
    settings = service.approval_settings

    @handling(service, "PUT /projects/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        change = settings.change

        def both(subject: Any, wanted: Any) -> None:
            change(subject, wanted)
            if hasattr(subject, "namespace_id"):
                change(service.identities.namespace_of(subject), wanted)

        settings.change = both if by_path(request) else change
        try:
            return handler(request)
        finally:
            settings.change = change


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def strangers_write_settings_of_projects_by_path(service: Service) -> None:
    """A caller without any role can change the settings of a private project named by its path."""
    let_in(service, (f"PUT {PROJECT_SETTINGS}",), lambda request, _, __: by_path(request))


# Reading requires the maintainer role in the project, like writing.
@foreign(CALLER_AND_FORM, "Approval settings: Authentication, project approval settings")
def who_opened_a_merge_request_reads_the_settings(service: Service) -> None:
    """Authors of merge requests can read the settings, because their page shows whether they may approve."""

    def fits(request: Any, caller: Any, _: Role) -> bool:
        project = found(service, request)
        return any(
            one.author_id == caller.id and one.project_id == project.id
            for one in service.repositories.merge_requests.values()
        )

    let_in(service, (f"GET {PROJECT_SETTINGS}",), fits)


# The column with the id of the owner is compared, but not the one with its type.
@foreign(LEVEL, "Approval settings: PUT of a project")
def settings_of_a_project_are_those_of_the_group_of_its_number(service: Service) -> None:
    """An update of a project's settings is also stored for the group with the same id."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        group = service.identities.groups.get(subject.id)
        if group is not None and not group.personal and group is not subject:
            change(group, wanted)


# The role is required in the project, however the project is named.
@foreign(CALLER_AND_FORM, "Approval settings: Authentication, 3")
def by_path_the_role_is_that_in_the_group(service: Service) -> None:
    """For a project named by its path, updates look up the Maintainer role in its group."""
    identities = service.identities

    @handling(service, "PUT /projects/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        around = identities.namespace_of(request.project)
        if by_path(request) and identities.role_in(request.caller, around) < Role.MAINTAINER:
            raise ForbiddenError
        return handler(request)


# -- changing either ---------------------------------------------------------------------------------------------------


# A group and a project with the same id are different things.
@foreign(LEVEL, "Approval settings: PUT")
def a_group_and_a_project_of_one_id_share_their_settings(service: Service) -> None:
    """Settings are stored by id alone, whether it is the id of a group or of a project."""

    @instead(service.approval_settings, "_key")
    def _(key: Any, subject: Any, setting: Any) -> Any:
        return (Kind.PROJECT, *key(subject, setting)[1:])


@foreign(LEVEL, "Approval settings: PUT")
def the_settings_of_a_group_are_those_of_the_project_with_its_id(service: Service) -> None:
    """Settings are stored by id alone: those of a group change with those of the project with the same id."""

    @instead(service.approval_settings, "_key")
    def _(key: Any, subject: Any, setting: Any) -> Any:
        _, number, kept_as = key(subject, setting)
        return Kind.PROJECT, number, kept_as


# -- more than one operation -------------------------------------------------------------------------------------------


# The path parameter is an id or a path, and a path may begin with digits.
@foreign(CALLER_AND_FORM, "Approval settings: conventions, :id")
def paths_of_groups_that_begin_with_digits_are_numbers(service: Service) -> None:
    """If the path of a group begins with digits, these are read as an id."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key in {f"GET {GROUP_SETTINGS}", f"PUT {GROUP_SETTINGS}"}:
            text = request.path["id"]
            digits = text[: len(text) - len(text.lstrip("0123456789"))]
            request.path["id"] = digits or text
        admit(request)


# The path of a project is not the path of a group.
@foreign(CALLER_AND_FORM, "Approval settings: conventions, :id names a group")
def the_path_of_a_project_names_its_group(service: Service) -> None:
    """If no group has the path, the namespace of the project with this path is used."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key in {f"GET {GROUP_SETTINGS}", f"PUT {GROUP_SETTINGS}"} and by_path(request):
            project = service.identities.find_project(request.path["id"])
            if project is not None:
                request.path["id"] = str(project.namespace_id)
        admit(request)


@foreign(CALLER_AND_FORM, "Approval settings: groups")
def the_bot_of_a_project_counts_as_owner_of_the_groups_around_it(service: Service) -> None:
    """The bot of a project can read and change the settings of the groups that contain it; only owners may."""

    def fits(request: Request, caller: Any, _: Role) -> bool:
        bot, identities = caller.bot, service.identities
        if bot is None or bot.kind is not Kind.PROJECT:
            return False
        group = identities.find_group(request.path["id"])
        return group in identities.lineage(identities.projects[bot.subject_id])

    let_in(service, tuple(f"{method} {GROUP_SETTINGS}" for method in ("GET", "PUT")), fits)


# Several settings are all stored, however a project is named.
@foreign(CALLER_AND_FORM, "Approval settings: PUT for a project")
def of_several_settings_written_by_path_the_first_is_kept(service: Service) -> None:
    """An update of several settings of a project named by its path stores only the first."""

    @handling(service, f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Request) -> Any:
        with suppress(ValueError):
            sent = json.loads(request.body)
            if by_path(request) and isinstance(sent, dict):
                request.body = json.dumps(dict([*sent.items()][:1])).encode()
        return handler(request)
