"""Variants in approval settings and approval configurations, and the alterations that make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.variants.variant import Variant
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.areas.project_approval_configuration import (
    ConfigurationChange,
    ProjectApprovalConfiguration,
)
from conformance.reference.choices import Choices, Handing, Unfit
from conformance.reference.errors import ForbiddenError, NotFoundError, RejectedError
from conformance.reference.identity import Group, Kind, Project, Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

_PASSED_ON_AFTER_SECONDS = 0.2
#: By name in the configuration: the setting, and the value that it has where the configuration says true.
_TWO_NAMES = {
    "merge_requests_author_approval": (Setting.ALLOW_AUTHOR_APPROVAL, True),
    "merge_requests_disable_committers_approval": (Setting.ALLOW_COMMITTER_APPROVAL, False),
    "disable_overriding_approvers_per_merge_request": (Setting.ALLOW_OVERRIDES, False),
    "reset_approvals_on_push": (Setting.RETAIN_APPROVALS, False),
    "require_password_to_approve": (Setting.REQUIRE_PASSWORD, True),
}
_SETTINGS_OF_PROJECT = "/projects/:id/merge_request_approval_setting"
_SETTINGS_OF_GROUP = "/groups/:id/merge_request_approval_setting"


def shows_sources_without_locks(service: Service) -> None:
    """Show the instance as the source of every setting that is not locked."""
    settings = service.approval_settings
    present = settings.present

    def shown(subject: Any, setting: Setting) -> dict[str, Any]:
        entry = present(subject, setting)
        return entry if entry["locked"] else {**entry, "inherited_from": "instance"}

    settings.present = shown


def lets_settings_forbid_overriding(service: Service) -> None:
    """Refuse rules of merge requests if the settings of the project do not allow them."""
    rules = service.merge_request_approval_rules
    require = rules.require_overriding

    def require_overriding(project: Any) -> None:
        require(project)
        if not service.approval_settings.effective(project, Setting.ALLOW_OVERRIDES):
            raise ForbiddenError

    rules.require_overriding = require_overriding


def keeps_owners_out_of_project_settings(service: Service) -> None:
    """Require exactly the role that is named for the settings of a project, and no higher one."""
    for method in ("GET", "PUT"):
        handler = service.routes.get(f"{method} {_SETTINGS_OF_PROJECT}").handler

        def for_maintainers(request: Request, handler: Any = handler) -> Response:
            if service.identities.role_in(request.caller, request.project) > Role.MAINTAINER:
                raise ForbiddenError
            response: Response = handler(request)
            return response

        service.routes.change(f"{method} {_SETTINGS_OF_PROJECT}", handler=for_maintainers)


def still_changes_configurations(service: Service) -> None:
    """Serve changes of the project approval configuration at every version."""
    service.routes.change("POST /projects/:id/approvals", removed=None)


def maps_approvals_before_merge(service: Service) -> None:
    """Keep the deprecated number of approvals in the any_approver rule."""
    configurations, rules = service.project_approval_configurations, service.approval_rules
    own, make_change = configurations.own_configuration, configurations.change_configuration

    def default_rule(project: Any) -> Any:
        found = service.project_approval_rules.rules(project)
        return next((rule for rule in found if rule.rule_type is RuleType.ANY_APPROVER), None)

    def shown(project: Any) -> Any:
        rule = default_rule(project)
        return replace(own(project), approvals_before_merge=rule.approvals_required if rule else 0)

    def changed(project: Any, change: Any) -> Any:
        result = make_change(project, change)
        rule = default_rule(project)
        if change.approvals_before_merge is not None and rule is not None:
            rules.rules[rule.id] = replace(rule, approvals_required=change.approvals_before_merge)
        return replace(result, approvals_before_merge=shown(project).approvals_before_merge)

    configurations.own_configuration = shown
    configurations.change_configuration = changed


def binds_configurations_by_settings(service: Service) -> None:
    """Let settings of a group also lock the configurations of its projects, and refuse to change them there."""
    configurations, settings = service.project_approval_configurations, service.approval_settings
    own, make_change = configurations.own_configuration, configurations.change_configuration
    bound = {
        "merge_requests_author_approval": (Setting.ALLOW_AUTHOR_APPROVAL, True),
        "merge_requests_disable_committers_approval": (Setting.ALLOW_COMMITTER_APPROVAL, False),
        "disable_overriding_approvers_per_merge_request": (Setting.ALLOW_OVERRIDES, False),
        "reset_approvals_on_push": (Setting.RETAIN_APPROVALS, False),
        "require_password_to_approve": (Setting.REQUIRE_PASSWORD, True),
    }

    def prescribed(project: Any) -> dict[str, bool]:
        inherited = {name: settings.inherited(project, setting) for name, (setting, _) in bound.items()}
        return {name: value is bound[name][1] for name, value in inherited.items() if value is not None}

    def shown(project: Any) -> Any:
        found = replace(own(project), **prescribed(project))
        selective = found.selective_code_owner_removals and not found.reset_approvals_on_push
        return replace(found, selective_code_owner_removals=selective)

    def changed(project: Any, change: Any) -> Any:
        for name, value in prescribed(project).items():
            if getattr(change, name) not in {None, value}:
                raise RejectedError("is locked by the parent group", parameter=name)
        return make_change(project, change)

    configurations.own_configuration = shown
    configurations.change_configuration = changed


def locks_one_setting_everywhere(service: Service) -> None:
    """Let the installation decide for every group and project that committers may approve."""
    lock_everywhere(service, Setting.ALLOW_COMMITTER_APPROVAL, value=True)


def locks_author_approval(service: Service) -> None:
    """Let the installation decide for every project and group that authors may not approve."""
    lock_everywhere(service, Setting.ALLOW_AUTHOR_APPROVAL, value=False)


def lock_everywhere(service: Service, locked: Setting, *, value: bool) -> None:
    """Lock a setting to one value in every group and project, without naming a source."""
    settings = service.approval_settings
    present, inherited = settings.present, settings.inherited

    def decided(subject: Any, setting: Setting) -> Any:
        return value if setting is locked else inherited(subject, setting)

    def shown(subject: Any, setting: Setting) -> dict[str, Any]:
        entry = present(subject, setting)
        return {**entry, "inherited_from": None} if setting is locked else entry

    settings.inherited = decided
    settings.present = shown


def locks_by_licence(service: Service) -> None:
    """Lock one setting, without naming a source."""
    settings = service.approval_settings
    present, change = settings.present, settings.change
    fixed = "allow_committer_approval"

    def shown(subject: Any, setting: Any) -> dict[str, Any]:
        entry = present(subject, setting)
        return {"value": False, "locked": True, "inherited_from": None} if setting.value == fixed else entry

    def changed(subject: Any, wanted: Any) -> None:
        change(subject, {setting: value for setting, value in wanted.items() if setting.value != fixed})

    settings.present = shown
    settings.change = changed


def takes_defaults_from_the_group(service: Service) -> None:
    """Let an unchanged setting of a project have the value of its group, without a lock, with the group as source."""
    settings = service.approval_settings
    own, present = settings.own, settings.present

    def is_set(subject: Any, setting: Any) -> bool:
        return settings.stored(subject, setting) is not None

    def with_default(subject: Any, setting: Any) -> bool:
        if isinstance(subject, Group) or is_set(subject, setting):
            return own(subject, setting)
        around = service.identities.lineage(subject)
        return own(around[0], setting) if around and not around[0].personal else own(subject, setting)

    def shown(subject: Any, setting: Any) -> dict[str, Any]:
        entry = present(subject, setting)
        inherits = not isinstance(subject, Group) and not is_set(subject, setting)
        return {**entry, "inherited_from": "group"} if inherits else entry

    settings.own = with_default
    settings.present = shown


def has_no_settings_of_subgroups(service: Service) -> None:
    """Have approval settings only for top-level groups."""
    for method in ("GET", "PUT"):
        handler = service.routes.get(f"{method} {_SETTINGS_OF_GROUP}").handler

        def outermost(request: Request, handler: Any = handler) -> Response:
            if request.group.parent_id is not None:
                raise NotFoundError
            response: Response = handler(request)
            return response

        service.routes.change(f"{method} {_SETTINGS_OF_GROUP}", handler=outermost)


def removes_selectively_while_retaining(service: Service) -> None:
    """Allow selective removals only together with retained approvals, as some servers do."""
    settings = service.approval_settings

    def the_other_way(subject: Group | Project, wanted: Any) -> Any:
        selective = wanted.get(Setting.SELECTIVE_REMOVALS, False)
        inherited = settings.inherited(subject, Setting.RETAIN_APPROVALS)
        own = settings.own(subject, Setting.RETAIN_APPROVALS) if inherited is None else inherited
        if selective and not wanted.get(Setting.RETAIN_APPROVALS, own):
            if service.choices.selective_removals_while_retaining is Unfit.REFUSE:
                raise RejectedError("goes with retained approvals", parameter=Setting.SELECTIVE_REMOVALS.value)
            return {**wanted, Setting.SELECTIVE_REMOVALS: False}
        return wanted

    def effective(subject: Group | Project, setting: Setting) -> bool:
        inherited = settings.inherited(subject, setting)
        return settings.own(subject, setting) if inherited is None else inherited

    def shown(subject: Any, setting: Setting) -> dict[str, Any]:
        inherited = settings.inherited(subject, setting)
        locked = inherited is not None
        return {"value": effective(subject, setting), "locked": locked, "inherited_from": "group" if locked else None}

    settings.without_conflict = the_other_way
    settings.effective = effective
    settings.present = shown


def passes_values_on_later(service: Service) -> None:
    """Pass a new value of a group on a moment later; every group has set one setting long ago."""
    settings, seconds = service.approval_settings, service.clock.seconds
    inherited = settings.inherited
    reached: dict[Any, bool | None] = {}
    due: dict[Any, float] = {}

    def later(subject: Any, setting: Setting) -> bool | None:
        key, now = (type(subject), subject.id, setting), inherited(subject, setting)
        if reached.setdefault(key, now) == now:
            due.pop(key, None)
        elif seconds() >= due.setdefault(key, seconds() + _PASSED_ON_AFTER_SECONDS):
            reached[key] = now
        return reached[key]

    for group in service.identities.groups.values():
        settings.values[Kind.GROUP, group.id, Setting.ALLOW_AUTHOR_APPROVAL] = False
    settings.inherited = later


def keeps_settings_under_two_names(service: Service) -> None:
    """Let the configuration of a project show and change its settings, partly with the opposite value.

    Selective removals stay apart: what the text says of them in one place excludes what it says in the other.
    """
    configurations, settings = service.project_approval_configurations, service.approval_settings

    def configuration(project: Project) -> ProjectApprovalConfiguration:
        values = {name: settings.effective(project, one) is same for name, (one, same) in _TWO_NAMES.items()}
        own = configurations.own_configuration(project)
        selective = own.selective_code_owner_removals and not values["reset_approvals_on_push"]
        return replace(own, **values, selective_code_owner_removals=selective)

    def changed(project: Project, change: ConfigurationChange) -> ProjectApprovalConfiguration:
        now = configurations.without_conflict(change.on(configuration(project)))
        sent = [(one, same, getattr(change, name)) for name, (one, same) in _TWO_NAMES.items()]
        settings.change(project, {one: value is same for one, same, value in sent if value is not None})
        own = ConfigurationChange(
            approvals_before_merge=change.approvals_before_merge,
            selective_code_owner_removals=now.selective_code_owner_removals,
        )
        configurations.configurations[project.id] = own.on(configurations.own_configuration(project))
        return configuration(project)

    for number, known in list(configurations.configurations.items()):
        settings.values[Kind.PROJECT, number, Setting.REQUIRE_PASSWORD] = known.require_password_to_approve
        configurations.configurations[number] = replace(known, require_password_to_approve=False)
    configurations.configuration = configuration
    configurations.change_configuration = changed


def removes_selectively_in_no_state(service: Service) -> None:
    """Refuse selective removals in the configuration while the settings of the project keep approvals."""
    configurations, settings = service.project_approval_configurations, service.approval_settings
    make_change = configurations.change_configuration

    def changed(project: Any, change: Any) -> Any:
        if change.selective_code_owner_removals and settings.effective(project, Setting.RETAIN_APPROVALS):
            raise RejectedError("goes without retained approvals", parameter="selective_code_owner_removals")
        return make_change(project, change)

    configurations.change_configuration = changed


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "two-settings-for-authors",
        "Configuration and settings each have an author approval of their own, and begin the other way round.",
        replace(
            _PLAIN,
            author_approval_is_one_setting=False,
            author_approval_initially=True,
            reset_approvals_initially=False,
            committers_barred_initially=True,
            project_settings_on_initially=("allow_author_approval", "retain_approvals_on_push"),
            group_settings_on_initially=(),
        ),
    ),
    Variant(
        "settings-under-two-names",
        "The configuration of a project is another form of its settings.",
        alterations=(still_changes_configurations, keeps_settings_under_two_names),
        alone="decides what others decide about settings and configurations",
    ),
    Variant(
        "removals-excluded-by-both",
        "Settings and configuration are the same, and what the text says of the two keeps selective removals off.",
        alterations=(
            still_changes_configurations,
            keeps_settings_under_two_names,
            removes_selectively_in_no_state,
        ),
        alone="decides what others decide about settings and configurations",
    ),
    Variant(
        "everything-handed-down",
        "Whatever a group ever set binds what lies in it, and merge requests may not have rules of their own.",
        replace(
            _PLAIN, group_settings_bind=Handing.ALL, overriding_enforced=False, locked_setting_written=Unfit.REFUSE
        ),
    ),
    Variant(
        "locks-reach-everywhere",
        "What a group ever set binds the configurations and settings below it, and is refused there.",
        Choices(group_settings_bind=Handing.ALL, locked_setting_written=Unfit.REFUSE),
        alterations=(binds_configurations_by_settings,),
    ),
    Variant(
        "one-setting-is-locked",
        "The installation decides one setting for all; subgroups have none; selective removals go the other way round.",
        alterations=(
            locks_one_setting_everywhere,
            has_no_settings_of_subgroups,
            removes_selectively_while_retaining,
        ),
    ),
    Variant(
        "author-approval-locked",
        "The installation keeps authors from approving, and refuses whoever would change that; the rest is free.",
        replace(Choices(), locked_setting_written=Unfit.REFUSE),
        alterations=(locks_author_approval,),
        alone="a setting that is locked everywhere",
    ),
    Variant(
        "locked-by-licence",
        "One setting is locked everywhere, and comes from nowhere.",
        alterations=(locks_by_licence,),
    ),
    Variant(
        "defaults-of-the-group",
        "What a project never set has the value of its group, without a lock.",
        alterations=(takes_defaults_from_the_group,),
    ),
    Variant(
        "values-passed-on-later",
        "What a group sets reaches what lies in it in the background, a moment later.",
        replace(_PLAIN, group_settings_bind=Handing.ALL),
        alterations=(passes_values_on_later,),
        alone="a setting that every group has locked from the start",
    ),
)
