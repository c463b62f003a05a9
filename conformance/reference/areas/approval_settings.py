"""How strictly approvals are handled, set for a group or a project, and handed down by groups.

Specification: Endpoints > Approval settings.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.choices import Handing, Repeat, Unfit
from conformance.reference.errors import InvalidError, RejectedError
from conformance.reference.http import Response, Route, ok
from conformance.reference.identity import Group, Kind, Role, kind_of
from conformance.reference.store import Table
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.core import Core
    from conformance.reference.http import Request
    from conformance.reference.identity import Project, Subject
    from conformance.reference.parameters import Parameters
    from conformance.reference.presenters import Json

REAUTHENTICATION_INTRODUCED = Version(17, 1)


class Setting(StrEnum):
    """The settings, in the order of the response."""

    ALLOW_AUTHOR_APPROVAL = "allow_author_approval"
    ALLOW_COMMITTER_APPROVAL = "allow_committer_approval"
    ALLOW_OVERRIDES = "allow_overrides_to_approver_list_per_merge_request"
    RETAIN_APPROVALS = "retain_approvals_on_push"
    SELECTIVE_REMOVALS = "selective_code_owner_removals"
    REQUIRE_PASSWORD = "require_password_to_approve"  # noqa: S105 - the name of a setting
    REQUIRE_REAUTHENTICATION = "require_reauthentication_to_approve"


_SETTINGS = tuple(Setting)
_EARLIER_SETTINGS = tuple(setting for setting in Setting if setting is not Setting.REQUIRE_REAUTHENTICATION)
_NAMES = {setting: setting.value for setting in Setting}
# The value that leaves less freedom. Selective removals are neither stricter nor laxer than others.
_STRICTER: Mapping[Setting, bool] = {
    Setting.ALLOW_AUTHOR_APPROVAL: False,
    Setting.ALLOW_COMMITTER_APPROVAL: False,
    Setting.ALLOW_OVERRIDES: False,
    Setting.RETAIN_APPROVALS: False,
    Setting.REQUIRE_PASSWORD: True,
    Setting.REQUIRE_REAUTHENTICATION: True,
}


class ApprovalSettings(Behaviour):
    """The approval settings of all groups and projects."""

    name = "approval_settings"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.values: Table[tuple[Kind, int, Setting], bool] = Table(service.store)

    # -- reading --------------------------------------------------------------------------------------------

    def settings(self, subject: Subject) -> Json:
        """Present the approval settings of a group or project.

        Specification: Resources and their fields > Approval setting.
        """
        return {_NAMES[setting]: self.present(subject, setting) for setting in self.shown()}

    def present(self, subject: Subject, setting: Setting) -> Json:
        """Present one setting with its value, whether it is locked, and where it comes from."""
        inherited = self.inherited(subject, setting)
        locked = inherited is not None
        return {
            "value": self._effective(subject, setting, inherited),
            "locked": locked,
            "inherited_from": "group" if locked else None,
        }

    def shown(self) -> tuple[Setting, ...]:
        """Return the settings that responses carry at this version."""
        return _SETTINGS if self._exists(Setting.REQUIRE_REAUTHENTICATION) else _EARLIER_SETTINGS

    def effective(self, subject: Subject, setting: Setting) -> bool:
        """Return the value that counts: the inherited one, or else the subject's own."""
        return self._effective(subject, setting, self.inherited(subject, setting))

    def own(self, subject: Subject, setting: Setting) -> bool:
        """Return the value that was set for the subject itself, or the initial one."""
        choices = self.service.choices
        initially = choices.project_settings_on_initially
        if isinstance(subject, Group):
            initially = choices.group_settings_on_initially
        value = self.values.get(self._key(subject, setting))
        return setting in initially if value is None else value

    def stored(self, subject: Subject, setting: Setting) -> bool | None:
        """Return the value that somebody set, here or with effect here; None when nobody ever did."""
        inherited = self.inherited(subject, setting)
        return self.values.get(self._key(subject, setting)) if inherited is None else inherited

    def inherited(self, subject: Subject, setting: Setting) -> bool | None:
        """Return the value that a group further out prescribes, or None. The outermost group decides."""
        around = self.service.identities.lineage(subject)
        inside = 1 if isinstance(subject, Group) else 0  # a group is the innermost of its own lineage
        while len(around) > inside:
            group = around.pop()
            if self.binds(group, setting):
                return self.own(group, setting)
        return None

    def binds(self, group: Group, setting: Setting) -> bool:
        """Say whether the group's own value is the one for everything inside it."""
        value = self.values.get(self._key(group, setting))
        if value is None:
            return False
        match self.service.choices.group_settings_bind:
            case Handing.NONE:
                return False
            case Handing.STRICTER:
                return value is _STRICTER.get(setting)
            case Handing.ALL:
                return True

    def password_required(self, project: Project) -> bool:
        """Say whether approving a merge request of the project takes the approver's password."""
        needed = self.effective(project, Setting.REQUIRE_PASSWORD)
        # By choice both are one value, which then need not be looked at twice.
        if self._exists(Setting.REQUIRE_REAUTHENTICATION) and not self.service.choices.reauthentication_is_password:
            needed = needed or self.effective(project, Setting.REQUIRE_REAUTHENTICATION)
        return needed

    # -- changing -------------------------------------------------------------------------------------------

    def accepted(self) -> tuple[Setting, ...]:
        """Return the settings that an update may carry at this version."""
        return tuple(setting for setting in self.shown() if setting is not Setting.REQUIRE_PASSWORD)

    def change(self, subject: Subject, wanted: Mapping[Setting, bool]) -> None:
        """Set the wanted values and leave the others alone.

        Raise RejectedError, with nothing changed, for what may not be set when the choices refuse that.
        """
        wanted = self.without_locked(subject, wanted)
        wanted = self.without_conflict(subject, wanted)
        for setting, value in wanted.items():
            self.values[self._key(subject, setting)] = value

    def without_locked(self, subject: Subject, wanted: Mapping[Setting, bool]) -> Mapping[Setting, bool]:
        """Return the wanted values without those of locked settings. Raise RejectedError by choice."""
        free = {s: value for s, value in wanted.items() if self.inherited(subject, s) in {None, value}}
        refused = next((setting for setting in wanted if setting not in free), None)
        if refused is not None and self.service.choices.locked_setting_written is Unfit.REFUSE:
            raise RejectedError("is locked by the parent group", parameter=refused.value)
        return free

    def without_conflict(self, subject: Subject, wanted: Mapping[Setting, bool]) -> Mapping[Setting, bool]:
        """Return the wanted values so that selective removals stay apart from retained approvals.

        Raise RejectedError by choice; otherwise selective removals give way.
        """
        selective = wanted.get(Setting.SELECTIVE_REMOVALS, self.own(subject, Setting.SELECTIVE_REMOVALS))
        retained = wanted.get(Setting.RETAIN_APPROVALS, self._value(subject, Setting.RETAIN_APPROVALS))
        touched = Setting.SELECTIVE_REMOVALS in wanted or Setting.RETAIN_APPROVALS in wanted
        if not (touched and selective and retained):
            return wanted
        if self.service.choices.selective_removals_while_retaining is Unfit.REFUSE:
            message = "can be enabled only when retain_approvals_on_push is disabled"
            raise RejectedError(message, parameter=Setting.SELECTIVE_REMOVALS.value)
        return {**wanted, Setting.SELECTIVE_REMOVALS: False}

    # -- inner workings -------------------------------------------------------------------------------------

    def _effective(self, subject: Subject, setting: Setting, inherited: bool | None) -> bool:  # noqa: FBT001 - a value
        value = self.own(subject, setting) if inherited is None else inherited
        if setting is Setting.SELECTIVE_REMOVALS and value:
            # A pair that may not be together can still meet when a group ceases to bind its projects.
            return not self._value(subject, Setting.RETAIN_APPROVALS)
        return value

    def _value(self, subject: Subject, setting: Setting) -> bool:
        inherited = self.inherited(subject, setting)
        return self.own(subject, setting) if inherited is None else inherited

    def _exists(self, setting: Setting) -> bool:
        if setting is not Setting.REQUIRE_REAUTHENTICATION:
            return True
        return self.service.version >= REAUTHENTICATION_INTRODUCED

    def _key(self, subject: Subject, setting: Setting) -> tuple[Kind, int, Setting]:
        if setting is Setting.REQUIRE_REAUTHENTICATION and self.service.choices.reauthentication_is_password:
            setting = Setting.REQUIRE_PASSWORD
        return kind_of(subject), subject.id, setting


def _wanted(parameters: Parameters, settings: tuple[Setting, ...]) -> dict[Setting, bool]:
    found = ((setting, parameters.optional_boolean(setting.value)) for setting in settings)
    return {setting: value for setting, value in found if value is not None}


def _change(request: Request, subject: Subject) -> Json:
    area = request.area(ApprovalSettings)
    wanted = _wanted(request.parameters, area.accepted())
    if not wanted and request.choices.empty_settings_update is Repeat.REFUSE:
        raise InvalidError(f"{', '.join(area.accepted())} are missing, at least one parameter must be provided")
    area.change(subject, wanted)
    return area.settings(subject)


def _read_of_group(request: Request) -> Response:
    return ok(request.area(ApprovalSettings).settings(request.group))


def _read_of_project(request: Request) -> Response:
    return ok(request.area(ApprovalSettings).settings(request.project))


def _change_of_group(request: Request) -> Response:
    return ok(_change(request, request.group), request.choices.updated_code)


def _change_of_project(request: Request) -> Response:
    settings = _change(request, request.project)
    code = request.choices.updated_code
    return ok(settings, code) if request.choices.unshown_bodies else Response(code)


_of_group = partial(Route, path="/groups/:id/merge_request_approval_setting", subject=Kind.GROUP)
_of_project = partial(Route, path="/projects/:id/merge_request_approval_setting", subject=Kind.PROJECT)

AREA = Area(
    ApprovalSettings,
    (
        _of_group("GET", handler=_read_of_group, least_role=Role.OWNER),
        _of_group("PUT", handler=_change_of_group, least_role=Role.OWNER),
        _of_project("GET", handler=_read_of_project, least_role=Role.MAINTAINER),
        _of_project("PUT", handler=_change_of_project, least_role=Role.MAINTAINER),
    ),
)
