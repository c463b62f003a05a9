"""What may be sent as approval settings, what is stored, and what a version has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering, with_parameters, without_parameters
from conformance.proof.foreign.dimensions import COUNT, FORM_SENT, NEIGHBOUR, RESETS, STORY, VERSIONS
from conformance.proof.foreign.paths import GROUP_SETTINGS, PROJECT_SETTINGS
from conformance.proof.foreign.registry import foreign, found, handling, instead
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.http import ok
from conformance.reference.identity import Group, Kind, Project, kind_of
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading -----------------------------------------------------------------------------------------------------------


# What is introduced in a version is there from that version on.
@foreign(VERSIONS, "Approval settings: 17.1, require_reauthentication_to_approve", version="17.1")
def projects_get_reauthentication_one_version_late(service: Service) -> None:
    """Projects show the setting in versions after the one that introduces it, and not in that one."""

    @instead(service.approval_settings, "settings")
    def _(settings: Any, subject: Any) -> Any:
        shown = settings(subject)
        if isinstance(subject, Project) and service.version == Version(17, 1):
            del shown[Setting.REQUIRE_REAUTHENTICATION.value]
        return shown


# Two presenters, and the new field was added to one of them at first.
@foreign(VERSIONS, "Versioning: 17.1", version="17.1")
def groups_reauthenticate_a_release_later(service: Service) -> None:
    """At 17.1 the settings of projects have require_reauthentication_to_approve, and those of groups have not."""

    @instead(service.approval_settings, "settings")
    def _(settings: Any, subject: Any) -> Any:
        shown = settings(subject)
        if isinstance(subject, Group) and service.version < Version(17, 2):
            shown.pop(Setting.REQUIRE_REAUTHENTICATION.value, None)
        return shown


# A value is true or false.
@foreign(NEIGHBOUR, "Approval setting: value")
def a_setting_that_was_sent_as_null_is_null(service: Service) -> None:
    """What is sent as null is stored, and from then on the value is no boolean."""
    nulls: set[tuple[Kind, int, str]] = set()

    @handling(service, f"PUT {GROUP_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
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


# -- changing those of a group -----------------------------------------------------------------------------------------


# What a version introduces is there at that version, at both levels.
@foreign(VERSIONS, "Versioning: 17.1, require_reauthentication_to_approve", version="17.1")
def groups_take_reauthentication_one_version_late(service: Service) -> None:
    """At 17.1 the update of a group passes require_reauthentication_to_approve over, which is shown already."""

    @handling(service, "PUT /groups/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        without_parameters(request, "require_reauthentication_to_approve")
        return handler(request)


# The answer is the whole object, with the one setting that updates do not take.
@foreign(STORY, "Approval settings: PUT of a group, object of approval settings")
def the_answer_to_an_update_of_a_group_has_what_updates_take(service: Service) -> None:
    """The answer to an update of a group has the settings that an update may send, without require_password_to_approve."""

    def change(_: Any, settings: Any) -> Any:
        return {name: value for name, value in settings.items() if name != "require_password_to_approve"}

    answering(service, f"PUT {GROUP_SETTINGS}", change)


# The answer shows what holds from now on.
@foreign(RESETS, "Approval settings: PUT of a group, value in the answer")
def a_setting_that_is_as_at_first_again_is_answered_as_before(service: Service) -> None:
    """A value that a group begins with is stored by deleting the own one; the answer shows that one still."""

    @handling(service, f"PUT {GROUP_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        before = service.approval_settings.settings(request.group)
        answer = handler(request)
        for name, setting in answer.content.items():
            if setting["value"] is (name in service.choices.group_settings_on_initially):
                setting["value"] = before[name]["value"]
        return answer


# -- changing those of a project ---------------------------------------------------------------------------------------


# Each setting has its own value.
@foreign(COUNT, "Approval settings: PUT of a project, several settings")
def all_settings_of_one_update_take_the_first_value(service: Service) -> None:
    """Where an update of a project sends several settings, all of them become what the first one is."""

    @handling(service, "PUT /projects/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = dict.fromkeys(values, next(iter(values.values()), None))
        return handler(request)


# A project has settings wherever it lies.
@foreign(NEIGHBOUR, "Approval settings: GET and PUT of a project")
def settings_of_projects_without_a_group_fail(service: Service) -> None:
    """The group of a project is asked without a look whether there is one: projects of users answer 500."""

    @handling(service, f"GET {PROJECT_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if service.identities.namespace_of(request.project).personal:
            return ok({"message": "500 Internal Server Error"}, 500)
        return handler(request)


# A word is no boolean.
@foreign(NEIGHBOUR, "Approval settings: PUT of a project, optional booleans")
def any_word_switches_a_setting_of_a_project_on(service: Service) -> None:
    """A text that is no boolean counts as true, as every text does in some languages that is not empty."""

    @handling(service, f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        sent = request.parameters._values.items()
        words = {name for name, value in sent if isinstance(value, str) and value.lower() not in {"true", "false"}}
        with_parameters(request, dict.fromkeys(words, True))
        return handler(request)


# -- changing either ---------------------------------------------------------------------------------------------------


@foreign(COUNT, "Approval settings: PUT")
def of_two_settings_of_a_group_one_is_stored(service: Service) -> None:
    """Of the settings that an update of a group carries only the first is stored."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, dict(list(wanted.items())[:1]) if hasattr(subject, "parent_id") else wanted)


@foreign(COUNT, "Approval settings: PUT with nothing")
def an_update_of_nothing_resets_the_settings(service: Service) -> None:
    """A PUT for a project without any setting makes all of them what they were at first."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if not wanted:
            for key in [key for key in settings.values if key[1] == subject.id]:
                del settings.values[key]
        change(subject, wanted)


# A request is JSON also where the type of its content says in which letters it is written.
@foreign(FORM_SENT, "Approval settings: PUT; requests are JSON")
def settings_with_a_charset_are_not_read(service: Service) -> None:
    """The type of the content is compared as a whole, so that a body with a charset is none, and changes nothing."""

    @handling(service, f"PUT {GROUP_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if "charset" in request.header("content-type").lower():
            request.body = b""
        return handler(request)


# What is sent is stored, however much is sent at once.
@foreign(COUNT, "Approval settings: PUT, optional booleans")
def the_last_of_three_settings_is_lost(service: Service) -> None:
    """Of three settings or more that are sent at once the last one is answered as sent, and not stored."""
    most = 2

    @handling(service, f"PUT {GROUP_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        sent = [s for s in service.approval_settings.accepted() if request.parameters.given(s.value)]
        if len(sent) <= most:
            return handler(request)
        subject, last = found(service, request), sent[-1]
        before = service.approval_settings.effective(subject, last)
        answer = handler(request)
        service.approval_settings.change(subject, {last: before})
        return answer


# Each setting that is sent is set.
@foreign(COUNT, "Approval settings: PUT")
def of_authors_and_committers_one_is_set_at_a_time(service: Service) -> None:
    """An `elif` where an `if` belongs: allow_committer_approval is passed over beside allow_author_approval."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if Setting.ALLOW_AUTHOR_APPROVAL in wanted:
            wanted = {name: value for name, value in wanted.items() if name != Setting.ALLOW_COMMITTER_APPROVAL}
        change(subject, wanted)


# One line was copied, and its right side was not changed.
@foreign(COUNT, "Approval settings: allow_author_approval and allow_committer_approval")
def committers_get_what_authors_get_in_one_call(service: Service) -> None:
    """An update that sends allow_author_approval and allow_committer_approval stores the first value in both."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if Setting.ALLOW_AUTHOR_APPROVAL in wanted and Setting.ALLOW_COMMITTER_APPROVAL in wanted:
            wanted = {**wanted, Setting.ALLOW_COMMITTER_APPROVAL: wanted[Setting.ALLOW_AUTHOR_APPROVAL]}
        change(subject, wanted)


# Every setting that is sent is set.
@foreign(COUNT, "Approval settings: PUT")
def a_setting_that_is_as_it_was_ends_the_update(service: Service) -> None:
    """The loop over what is sent returns where it should go on: what comes after a known value is lost."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        changed: dict[Setting, bool] = {}
        for setting, value in wanted.items():
            if settings.effective(subject, setting) is value:
                break
            changed[setting] = value
        change(subject, changed)


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(VERSIONS, "Approval settings: require_reauthentication_to_approve since 17.1", version="18.0")
def versions_are_compared_part_by_part(service: Service) -> None:
    """A setting of 17.1 asks for a minor version of at least 1: at 18.0 it is gone again."""

    @instead(service.approval_settings, "_exists")
    def _(exists: Any, setting: Any) -> bool:
        return exists(setting) and (setting != "require_reauthentication_to_approve" or service.version.minor >= 1)
