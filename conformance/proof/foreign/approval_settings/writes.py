"""What a change of approval settings leaves behind: when repeated, elsewhere, when refused, or when concurrent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import QUICKER_CALL_SECONDS, acting_on_what_was, undoing
from conformance.proof.foreign.dimensions import AGAIN, AT_ONCE, NOTHING_DONE, REFUSED, RESETS, SIDE_EFFECT
from conformance.proof.foreign.paths import GROUP_SETTINGS, PROJECT_SETTINGS
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, meanwhile
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import ApiError, InvalidError, RejectedError
from conformance.reference.http import ok
from conformance.reference.identity import Group, Kind, Project

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request


# -- changing those of a group -----------------------------------------------------------------------------------------


# Settings are written one after the other, without a transaction around them.
@foreign(REFUSED, "Approval settings: PUT of a group, optional booleans")
def good_settings_of_a_group_stay_from_an_update_that_was_refused(service: Service) -> None:
    """An update of a group with one valid and one invalid value is refused, but the valid one is stored."""
    settings = service.approval_settings

    @handling(service, "PUT /groups/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            sent = {setting: request.parameters._values.get(setting.value) for setting in settings.accepted()}
            settings.change(request.group, {name: value for name, value in sent.items() if isinstance(value, bool)})
            raise


# A value counts again after another one.
@foreign(RESETS, "Approval settings: PUT of a group")
def a_value_that_was_there_before_is_not_stored_again(service: Service) -> None:
    """Each value of a setting of a group is recorded only once, and the value that was recorded last counts."""
    recorded: set[tuple[int, Setting, bool]] = set()

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if isinstance(subject, Group):
            wanted = {s: value for s, value in wanted.items() if (subject.id, s, value) not in recorded}
            recorded.update((subject.id, s, value) for s, value in wanted.items())
        change(subject, wanted)


# An update does not change what it does not send, even during another update.
@foreign(AT_ONCE, "Approval settings: PUT of a group, optional booleans")
def updates_write_back_what_they_did_not_change(service: Service) -> None:
    """An update reads all settings of a group and writes all of them: of two concurrent updates, one is lost."""
    values = service.approval_settings.values

    def write(before: dict[Any, bool], request: Any) -> None:
        place = (Kind.GROUP, request.group.id)
        for key in [key for key in values if key[:2] == place]:
            del values[key]
        values.update({key: value for key, value in before.items() if key[:2] == place})

    meanwhile(service, (f"PUT {GROUP_SETTINGS}",), lambda: dict(values), write)


# A refused update changes nothing.
@foreign(REFUSED, "Approval settings: PUT of a group")
def settings_before_the_wrong_one_are_stored(service: Service) -> None:
    """The settings of a group are stored one by one until one is invalid; then the call is refused."""
    settings = service.approval_settings

    @handling(service, f"PUT {GROUP_SETTINGS}")
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


@foreign(SIDE_EFFECT, "Approval settings: PUT of a group")
def settings_of_groups_reach_other_groups(service: Service) -> None:
    """A change of a group's settings also changes another group."""
    sibling = service.world.one("sibling_group").id

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if hasattr(subject, "parent_id"):
            for setting, value in wanted.items():
                service.approval_settings.values[Kind.GROUP, sibling, setting] = value


@foreign(RESETS, "Approval settings: PUT of a group, again", version="17.1")
def a_setting_of_a_group_takes_each_value_once(service: Service) -> None:
    """A setting that was off and on is answered as usual when it is switched off again, but stays on."""
    taken: set[tuple[int, Any, bool]] = set()

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if isinstance(subject, Group):
            wanted = {each: value for each, value in wanted.items() if (subject.id, each, value) not in taken}
            taken.update((subject.id, each, value) for each, value in wanted.items())
        change(subject, wanted)


# Updates count in the order of their arrival.
@foreign(AGAIN, "Approval settings: PUT of a group, twice in a second")
def the_second_update_of_a_group_within_a_second_is_lost(service: Service) -> None:
    """An update must be newer than the last one, in whole seconds: the second update within a second is not stored."""
    last: dict[int, Any] = {}

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        now = service.clock.now().replace(microsecond=0)
        if isinstance(subject, Group) and last.get(subject.id) == now:
            return
        change(subject, wanted)
        if isinstance(subject, Group):
            last[subject.id] = now


# -- changing those of a project ---------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Approval settings: PUT for a project")
def settings_of_a_project_reach_its_group(service: Service) -> None:
    """A setting that is written for a project is stored for its group as well."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if hasattr(subject, "namespace_id"):
            change(service.identities.namespace_of(subject), wanted)


# A change of a project affects only that project.
@foreign(SIDE_EFFECT, "Approval settings: PUT of a project")
def projects_of_one_group_are_changed_together(service: Service) -> None:
    """The condition of the update uses the namespace of a project, so the other projects in it are changed as well."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if isinstance(subject, Project):
            for project in service.identities.projects.values():
                if project.namespace_id == subject.namespace_id and project.id != subject.id:
                    change(project, wanted)


# A valid update is accepted, even if it changes nothing.
@foreign(AGAIN, "Approval settings: PUT of a project")
def an_update_that_changes_nothing_is_refused(service: Service) -> None:
    """An update counts the changed rows, and treats zero as a failure."""
    settings = service.approval_settings

    @handling(service, f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        sent = {s: request.parameters.optional_boolean(s.value) for s in settings.accepted()}
        told = {s: value for s, value in sent.items() if value is not None}
        if told and all(settings.effective(request.project, s) is value for s, value in told.items()):
            raise RejectedError("could not be saved")
        return handler(request)


# On, off and on again means on.
@foreign(AGAIN, "Approval settings: PUT of a project")
def a_call_like_an_earlier_one_is_taken_for_it(service: Service) -> None:
    """A call with the same path and body as an earlier one of the same caller is answered, but not carried out."""
    answered: dict[tuple[int, bytes, bytes], Any] = {}

    @handling(service, f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.raw_path, request.body
        if key not in answered:
            answered[key] = handler(request)
        return answered[key]


# Settings are independent of each other.
@foreign(SIDE_EFFECT, "Approval settings: PUT of a project")
def retained_approvals_forbid_other_approvers(service: Service) -> None:
    """Retaining approvals in a project also forbids merge requests to have approvers of their own."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if isinstance(subject, Project) and wanted.get(Setting.RETAIN_APPROVALS):
            change(subject, {Setting.ALLOW_OVERRIDES: False})


# A loop is left instead of continued.
@foreign(NOTHING_DONE, "Approval settings: PUT of a project")
def a_setting_that_is_so_already_ends_the_update(service: Service) -> None:
    """If several settings of a project are sent, those after an unchanged one are ignored."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if isinstance(subject, Group) or len(wanted) == 1:
            change(subject, wanted)
            return
        for setting, value in wanted.items():
            if settings.effective(subject, setting) is value:
                return
            change(subject, {setting: value})


@foreign(SIDE_EFFECT, "Approval settings: PUT of a project")
def neighbours_share_their_settings(service: Service) -> None:
    """The settings of a project are set for all projects of its namespace."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        namespace = getattr(subject, "namespace_id", None)
        for one in service.identities.projects.values():
            if one.namespace_id == namespace and one.id != subject.id:
                change(one, wanted)


@foreign(SIDE_EFFECT, "Approval settings: PUT of a project")
def settings_of_projects_reach_their_siblings(service: Service) -> None:
    """A change of a project's settings also changes every other project."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if subject.id in service.identities.projects and not hasattr(subject, "parent_id"):
            for number in service.identities.projects:
                for setting, value in wanted.items():
                    service.approval_settings.values[Kind.PROJECT, number, setting] = value


@foreign(SIDE_EFFECT, "Approval settings: PUT of a project, other projects")
def a_setting_of_a_project_is_written_for_its_neighbours(service: Service) -> None:
    """A change of a project's settings also changes the other projects of its group."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if isinstance(subject, Project):
            for other in service.identities.projects.values():
                if other.namespace_id == subject.namespace_id:
                    settings.values.update({settings._key(other, each): value for each, value in wanted.items()})


# For most projects, the top-level group and the group of the project are the same.
@foreign(SIDE_EFFECT, "Approval settings: PUT of a project, its groups")
def what_lies_deep_sets_the_group_at_the_top(service: Service) -> None:
    """A change of a project in a subgroup is also stored for the top-level group."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        around = service.identities.lineage(subject)
        if isinstance(subject, Project) and len(around) > 1:
            settings.values.update({settings._key(around[-1], each): value for each, value in wanted.items()})


# A project has settings in any namespace.
@foreign(NOTHING_DONE, "Approval settings: PUT of a project in no group")
def settings_of_a_project_of_a_user_are_not_kept(service: Service) -> None:
    """Settings are stored with the group of a project: those of a personal project are answered, but not stored."""

    def is_personal(request: Any) -> bool:
        return service.identities.namespace_of(request.project).personal

    undoing(service, f"PUT {PROJECT_SETTINGS}", when=is_personal)


# A refused update changes nothing, in particular nothing that others were told is done.
@foreign(AT_ONCE, "Approval settings: PUT of a project, beside one that is refused")
def a_refused_update_takes_back_one_that_was_served_meanwhile(service: Service) -> None:
    """A refused update restores all settings to its beginning, and so undoes changes that others made meanwhile."""
    values, seen = service.approval_settings.values, {}

    async def wait(request: Any) -> None:
        if request.route.key == f"PUT {PROJECT_SETTINGS}":
            seen[id(request)] = dict(values)
            await asyncio.sleep(QUICKER_CALL_SECONDS)

    service.interruption = wait

    @handling(service, f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        before = seen.pop(id(request))
        try:
            return handler(request)
        except ApiError:
            values.clear()
            values.update(before)
            raise


# -- changing either ---------------------------------------------------------------------------------------------------


# A call that is refused changes nothing.
@foreign(REFUSED, "Approval settings: PUT")
def refused_settings_are_stored_up_to_the_wrong_one(service: Service) -> None:
    """An update that is refused for one value stores the others."""

    @handling(service, f"PUT {GROUP_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except ApiError:
            settings, sent = service.approval_settings, request.parameters._values
            right = {one: sent[one.value] for one in Setting if isinstance(sent.get(one.value), bool)}
            settings.change(request.group, {one: value for one, value in right.items() if one in settings.accepted()})
            raise


# Each setting gets the value that was sent for it.
@foreign(RESETS, "Approval settings: PUT, optional booleans")
def committers_get_the_value_of_authors(service: Service) -> None:
    """If both are sent, the value for committers is taken from that for authors."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if {Setting.ALLOW_AUTHOR_APPROVAL, Setting.ALLOW_COMMITTER_APPROVAL} <= set(wanted):
            wanted = {**wanted, Setting.ALLOW_COMMITTER_APPROVAL: wanted[Setting.ALLOW_AUTHOR_APPROVAL]}
        change(subject, wanted)


# A refusal changes nothing.
@foreign(REFUSED, "Approval settings: PUT, optional booleans")
def what_was_right_in_a_refused_update_is_stored(service: Service) -> None:
    """An update with a value that is not boolean is refused, but the settings sent with it are stored."""

    @handling(service, f"PUT {GROUP_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            sent = request.parameters._values
            settings = service.approval_settings
            right = {s: sent[s.value] for s in settings.accepted() if isinstance(sent.get(s.value), bool)}
            settings.change(found(service, request), right)
            raise


# An early return for calls that change nothing, which checks only the first value.
@foreign(AGAIN, "Approval settings: PUT, optional booleans")
def what_stands_behind_an_unchanged_setting_is_dropped(service: Service) -> None:
    """An update whose first setting is unchanged ignores the other settings."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        first = next(iter(wanted), None)
        if first is not None and settings.own(subject, first) is wanted[first]:
            wanted = {first: wanted[first]}
        change(subject, wanted)


# An update stores what it says, even if the same was said and undone before.
@foreign(AGAIN, "Approval settings: PUT")
def an_update_that_came_before_is_skipped(service: Service) -> None:
    """Updates are recognized by their content: on, off, and on again ends with off."""
    settings, done = service.approval_settings, set[Any]()

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        known = type(subject), subject.id, tuple(sorted(wanted.items()))
        if known not in done:
            change(subject, wanted)
            done.add(known)


@foreign(AT_ONCE, "Approval settings: PUT")
def of_two_settings_one_is_lost(service: Service) -> None:
    """If two different settings of a project are changed concurrently, one stays unchanged."""
    acting_on_what_was(service, service.approval_settings.values, "PUT /projects/:id/merge_request_approval_setting")


@foreign(AT_ONCE, "Approval settings: PUT")
def of_two_settings_of_a_group_one_is_lost(service: Service) -> None:
    """If two different settings of a group are changed concurrently, one stays unchanged."""
    acting_on_what_was(service, service.approval_settings.values, "PUT /groups/:id/merge_request_approval_setting")


@foreign(NOTHING_DONE, "Approval settings: PUT")
def settings_are_switched_on_only(service: Service) -> None:
    """Settings of a project can only be switched on; switching off is answered, but not done."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if not hasattr(subject, "parent_id"):
            wanted = {setting: value for setting, value in wanted.items() if value}
        change(subject, wanted)


@foreign(NOTHING_DONE, "Approval settings: PUT")
def one_setting_of_groups_is_never_changed(service: Service) -> None:
    """One of the settings of a group is answered, but never changed."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if hasattr(subject, "parent_id"):
            wanted = {s: value for s, value in wanted.items() if s is not Setting.ALLOW_COMMITTER_APPROVAL}
        change(subject, wanted)


@foreign(AT_ONCE, "Approval settings: PUT")
def of_a_group_and_a_project_one_keeps_its_former_setting(service: Service) -> None:
    """If the settings of a group and of a project elsewhere are changed concurrently, one stays unchanged."""
    values = service.approval_settings.values

    def write(seen: Any, request: Request) -> None:
        for place in [place for place in values if place[0] is not request.route.subject]:
            del values[place]
        values.update({place: value for place, value in seen.items() if place[0] is not request.route.subject})

    keys = (f"PUT {GROUP_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    meanwhile(service, keys, lambda: dict(values), write)


@foreign(REFUSED, "Approval settings: PUT, optional booleans")
def what_is_no_boolean_is_refused_and_switches_off(service: Service) -> None:
    """An update with a value that is not boolean is refused, but afterwards the setting is off."""
    settings = service.approval_settings

    @handling(service, f"PUT {GROUP_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError as error:
            subject = found(service, request)
            if error.parameter in settings.accepted() and settings.own(subject, Setting(error.parameter)):
                settings.change(subject, {Setting(error.parameter): False})
            raise


# -- more than one operation -------------------------------------------------------------------------------------------


# An id and a path identify the same project.
@foreign(AGAIN, "Approval settings: conventions, :id")
def settings_are_remembered_for_each_name_of_a_project(service: Service) -> None:
    """Settings read by path are cached, and the cache is cleared only by a write by path."""
    remembered: dict[str, Any] = {}

    @handling(service, f"GET {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if not by_path(request):
            return handler(request)
        return ok(remembered.setdefault(request.path["id"], handler(request).content))

    @handling(service, f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        remembered.pop(request.path["id"], None)
        return handler(request)
