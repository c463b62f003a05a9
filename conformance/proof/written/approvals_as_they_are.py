"""Faults of calls that set what is set already, and of rules that the approval state shows too often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import around
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.identity import Kind, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

#: The setting that other updates switch.
_OTHER = Setting.ALLOW_COMMITTER_APPROVAL


def _switching(kind: Kind) -> Callable[[Service], None]:
    """Let an update of one setting to the value that it has switch another one."""

    def apply(service: Service) -> None:
        settings = service.approval_settings

        def make(change: Callable[..., None]) -> Any:
            def changing(subject: Any, wanted: Any) -> None:
                is_same = all(settings.effective(subject, one) is value for one, value in wanted.items())
                if kind_of(subject) is kind and wanted and is_same and _OTHER not in wanted:
                    change(subject, {_OTHER: not settings.effective(subject, _OTHER)})
                change(subject, wanted)

            return changing

        around(settings, "change", make)

    return apply


for _kind, _level in ((Kind.GROUP, "group"), (Kind.PROJECT, "project")):
    _says = f"An update of a {_level} that sends the value which a setting has switches {_OTHER.value}."
    _name = f"the_same_value_switches_another_setting_of_a_{_level}"
    fault(f"approval-settings.{_level}.update.leaves-unsent")(named(_name, _says, _switching(_kind)))


@fault("project-approval-configuration.change.leaves-unsent")
def the_same_value_switches_another_setting(service: Service) -> None:
    """A change of the configuration that sends the value which a setting has switches another one."""
    configurations = service.project_approval_configurations
    other = "merge_requests_disable_committers_approval"

    def make(change: Callable[..., Any]) -> Any:
        def changing(project: Any, wanted: Any) -> Any:
            now = configurations.configuration(project)
            is_same = wanted.on(now) == now and getattr(wanted, other) is None
            is_empty = wanted == type(wanted)()
            if is_same and not is_empty:
                change(project, type(wanted)(**{other: not getattr(now, other)}))
            return change(project, wanted)

        return changing

    around(configurations, "change_configuration", make)


@fault("merge-request-approvals.rules.create.in-state")
def the_state_shows_rules_for_each_user(service: Service) -> None:
    """The approval state shows a rule once for each user that it names."""

    def make(state: Callable[..., Any]) -> Any:
        def shown(merge_request: Any, viewer: Any) -> Any:
            record = state(merge_request, viewer)
            return {**record, "rules": [rule for rule in record["rules"] for _ in rule["users"] or (None,)]}

        return shown

    around(service.merge_request_approvals, "state", make)
