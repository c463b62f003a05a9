"""Which values approval settings accept, what is stored, and what exists at a version."""

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


# What a version introduces exists from that version on.
@foreign(VERSIONS, "Approval settings: 17.1, require_reauthentication_to_approve", version="17.1")
def projects_get_reauthentication_one_version_late(service: Service) -> None:
    """Projects show the setting in versions after its introduction, but not in that version itself."""

    @instead(service.approval_settings, "settings")
    def _(settings: Any, subject: Any) -> Any:
        shown = settings(subject)
        if isinstance(subject, Project) and service.version == Version(17, 1):
            del shown[Setting.REQUIRE_REAUTHENTICATION.value]
        return shown


# There are two presenters, and the new field was first added to only one of them.
@foreign(VERSIONS, "Versioning: 17.1", version="17.1")
def groups_reauthenticate_a_release_later(service: Service) -> None:
    """At 17.1 the settings of projects have require_reauthentication_to_approve, but those of groups do not."""

    @instead(service.approval_settings, "settings")
    def _(settings: Any, subject: Any) -> Any:
        shown = settings(subject)
        if isinstance(subject, Group) and service.version < Version(17, 2):
            shown.pop(Setting.REQUIRE_REAUTHENTICATION.value, None)
        return shown


# A value is true or false.
@foreign(NEIGHBOUR, "Approval setting: value")
def a_setting_that_was_sent_as_null_is_null(service: Service) -> None:
    """A null is stored, and from then on the value is not boolean."""
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


# What a version introduces exists at that version, for groups and projects.
@foreign(VERSIONS, "Versioning: 17.1, require_reauthentication_to_approve", version="17.1")
def groups_take_reauthentication_one_version_late(service: Service) -> None:
    """At 17.1 the update of a group ignores require_reauthentication_to_approve, which is already shown."""

    @handling(service, "PUT /groups/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        without_parameters(request, "require_reauthentication_to_approve")
        return handler(request)


# The answer is the whole object, including the one setting that updates do not accept.
@foreign(STORY, "Approval settings: PUT of a group, object of approval settings")
def the_answer_to_an_update_of_a_group_has_what_updates_take(service: Service) -> None:
    """The answer to an update of a group has only settings that can be sent, without require_password_to_approve."""

    def change(_: Any, settings: Any) -> Any:
        return {name: value for name, value in settings.items() if name != "require_password_to_approve"}

    answering(service, f"PUT {GROUP_SETTINGS}", change)


# The answer shows the new state.
@foreign(RESETS, "Approval settings: PUT of a group, value in the answer")
def a_setting_that_is_as_at_first_again_is_answered_as_before(service: Service) -> None:
    """A setting that returns to its initial value is stored by deleting the stored one, which the answer still shows."""

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
    """If an update of a project sends several settings, all of them get the value of the first."""

    @handling(service, "PUT /projects/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = dict.fromkeys(values, next(iter(values.values()), None))
        return handler(request)


# A project has settings in any namespace.
@foreign(NEIGHBOUR, "Approval settings: GET and PUT of a project")
def settings_of_projects_without_a_group_fail(service: Service) -> None:
    """The group of a project is used without checking that it has one: personal projects answer 500."""

    @handling(service, f"GET {PROJECT_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if service.identities.namespace_of(request.project).personal:
            return ok({"message": "500 Internal Server Error"}, 500)
        return handler(request)


# A word is not a boolean.
@foreign(NEIGHBOUR, "Approval settings: PUT of a project, optional booleans")
def any_word_switches_a_setting_of_a_project_on(service: Service) -> None:
    """A text that is not a boolean counts as true, as every non-empty text does in some languages."""

    @handling(service, f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        sent = request.parameters._values.items()
        words = {name for name, value in sent if isinstance(value, str) and value.lower() not in {"true", "false"}}
        with_parameters(request, dict.fromkeys(words, True))
        return handler(request)


# -- changing either ---------------------------------------------------------------------------------------------------


@foreign(COUNT, "Approval settings: PUT")
def of_two_settings_of_a_group_one_is_stored(service: Service) -> None:
    """Of the settings in an update of a group, only the first is stored."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        change(subject, dict(list(wanted.items())[:1]) if hasattr(subject, "parent_id") else wanted)


@foreign(COUNT, "Approval settings: PUT with nothing")
def an_update_of_nothing_resets_the_settings(service: Service) -> None:
    """A PUT for a project without any setting resets all of them to their initial values."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if not wanted:
            for key in [key for key in settings.values if key[1] == subject.id]:
                del settings.values[key]
        change(subject, wanted)


# A request is JSON even if its content type states the encoding.
@foreign(FORM_SENT, "Approval settings: PUT; requests are JSON")
def settings_with_a_charset_are_not_read(service: Service) -> None:
    """The content type is compared as a whole, so a body with a charset is ignored and changes nothing."""

    @handling(service, f"PUT {GROUP_SETTINGS}", f"PUT {PROJECT_SETTINGS}")
    def _(handler: Any, request: Any) -> Any:
        if "charset" in request.header("content-type").lower():
            request.body = b""
        return handler(request)


# What is sent is stored, however many settings are sent together.
@foreign(COUNT, "Approval settings: PUT, optional booleans")
def the_last_of_three_settings_is_lost(service: Service) -> None:
    """If three or more settings are sent together, the last one is answered as sent, but not stored."""
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


# Each setting that is sent is stored.
@foreign(COUNT, "Approval settings: PUT")
def of_authors_and_committers_one_is_set_at_a_time(service: Service) -> None:
    """An `elif` instead of an `if`: allow_committer_approval is ignored if allow_author_approval is sent."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if Setting.ALLOW_AUTHOR_APPROVAL in wanted:
            wanted = {name: value for name, value in wanted.items() if name != Setting.ALLOW_COMMITTER_APPROVAL}
        change(subject, wanted)


# A line was copied, and its right side was not adapted.
@foreign(COUNT, "Approval settings: allow_author_approval and allow_committer_approval")
def committers_get_what_authors_get_in_one_call(service: Service) -> None:
    """An update with allow_author_approval and allow_committer_approval stores the first value for both."""

    @instead(service.approval_settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if Setting.ALLOW_AUTHOR_APPROVAL in wanted and Setting.ALLOW_COMMITTER_APPROVAL in wanted:
            wanted = {**wanted, Setting.ALLOW_COMMITTER_APPROVAL: wanted[Setting.ALLOW_AUTHOR_APPROVAL]}
        change(subject, wanted)


# Every setting that is sent is stored.
@foreign(COUNT, "Approval settings: PUT")
def a_setting_that_is_as_it_was_ends_the_update(service: Service) -> None:
    """The loop over the sent settings returns instead of continuing: everything after an unchanged value is lost."""
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
    """A setting of 17.1 requires a minor version of at least 1: at 18.0 it is missing."""

    @instead(service.approval_settings, "_exists")
    def _(exists: Any, setting: Any) -> bool:
        return exists(setting) and (setting != "require_reauthentication_to_approve" or service.version.minor >= 1)
