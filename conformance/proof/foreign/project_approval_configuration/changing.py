"""What changes of the approval configuration store, answer and refuse, and what else they change."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import acting_on_what_was, answering, overtaken
from conformance.proof.foreign.dimensions import (
    AGAIN,
    AT_ONCE,
    COUNT,
    FORM_SENT,
    NEIGHBOUR,
    REFUSED,
    RESETS,
    SIDE_EFFECT,
    STORY,
    VERSIONS,
)
from conformance.proof.foreign.paths import CONFIGURATION, PROJECT_SETTINGS
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import RuleType, home_of
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.areas.project_approval_configuration import ConfigurationChange
from conformance.reference.errors import NoRouteError, RejectedError
from conformance.reference.http import ok

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(COUNT, "Project approval configuration: POST", version="15.9")
def of_two_flags_the_first_is_stored(service: Service) -> None:
    """Of the flags in a change of the configuration, only the first is stored."""
    from dataclasses import fields, replace  # noqa: PLC0415

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change_configuration: Any, project: Any, change: Any) -> Any:
        sent = [one.name for one in fields(change) if getattr(change, one.name) is not None]
        return change_configuration(project, replace(change, **dict.fromkeys(sent[1:])))


# The answer is the whole configuration, not only what was sent.
@foreign(STORY, "Project approval configuration: POST, response", version="15.11")
def the_answer_to_a_change_shows_defaults_for_what_was_not_sent(service: Service) -> None:
    """The answer to a POST shows what was sent, and initial values for everything else."""

    @handling(service, "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        initial = asdict(service.project_approval_configurations.initial_configuration())
        answer.content |= {name: value for name, value in initial.items() if not request.parameters.given(name)}
        return answer


@foreign(AGAIN, "Project approval configuration: POST", version="15.9")
def committers_once_barred_stay_barred(service: Service) -> None:
    """merge_requests_disable_committers_approval can be switched on, but not off again."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        barred = wanted.merge_requests_disable_committers_approval or None
        return change(project, replace(wanted, merge_requests_disable_committers_approval=barred))


@foreign(FORM_SENT, "Project approval configuration: POST answers without approvers", version="15.9")
def approvers_reappear_with_the_old_number(service: Service) -> None:
    """If approvals_before_merge is sent, the answer has approvers and approver_groups."""

    @handling(service, f"POST {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and request.parameters.given("approvals_before_merge"):
            answer.content = {"approvers": [], "approver_groups": [], **answer.content}
        return answer


@foreign(SIDE_EFFECT, "Project approval configuration: POST", version="15.9")
def siblings_share_their_configuration(service: Service) -> None:
    """Changing the configuration of a project changes that of all projects of its group."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        for other in service.identities.projects.values():
            if other.namespace_id == project.namespace_id and other.id != project.id:
                change(other, wanted)
        return change(project, wanted)


@foreign(VERSIONS, "Versioning: 16.0, the configuration endpoint is removed", version="16.0")
def the_removed_endpoint_still_obeys(service: Service) -> None:
    """POST /approvals is answered with 404, but changes the configuration."""
    key = f"POST {CONFIGURATION}"
    inner = service.routes.get(key).handler
    service.routes.change(key, removed=None)

    @handling(service, key)
    def _(_handler: Any, request: Any) -> Any:
        from conformance.reference.errors import NoRouteError  # noqa: PLC0415

        inner(request)
        raise NoRouteError


# The two flags exclude each other, whichever is set last.
@foreign(NEIGHBOUR, "Project approval configuration: selective_code_owner_removals", version="15.11")
def resetting_is_switched_on_beside_selective_removals(service: Service) -> None:
    """That the two flags exclude each other is checked when removals are switched on, but not for resets."""
    area = service.project_approval_configurations

    @instead(area, "change_configuration")
    def _(change_configuration: Any, project: Any, change: Any) -> Any:
        if not change.reset_approvals_on_push or change.selective_code_owner_removals is not None:
            return change_configuration(project, change)
        change_configuration(project, replace(change, reset_approvals_on_push=None))
        area.configurations[project.id] = replace(area.configurations[project.id], reset_approvals_on_push=True)
        return area.configuration(project)


# A removed operation has no effect.
@foreign(REFUSED, "Project approval configuration: POST, removed in 16.0")
def the_removed_change_of_the_configuration_is_made(service: Service) -> None:
    """The removed call is refused only after it was handled, so it changes the configuration."""
    service.routes.change(f"POST {CONFIGURATION}", removed=None)

    @handling(service, f"POST {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        return ok({"error": "410 Gone"}, 410) if is_served(handler(request)) else None


# Each sent parameter counts.
@foreign(RESETS, "Project approval configuration: POST", version="15.11")
def false_is_left_out_beside_true(service: Service) -> None:
    """Of several flags in one call, those that are false are treated as blank and dropped."""

    @handling(service, "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if any(value is True for value in values.values()):
            request.parameters._values = {name: value for name, value in values.items() if value is not False}
        return handler(request)


# The condition is checked before the sent values are applied.
@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def the_former_reset_lets_removals_be_selective(service: Service) -> None:
    """One call can switch on resets and selective removals: only the stored value is checked, which is off."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change_configuration: Any, project: Any, change: Any) -> Any:
        before = configurations.configuration(project)
        if before.reset_approvals_on_push or not (
            change.reset_approvals_on_push and change.selective_code_owner_removals
        ):
            return change_configuration(project, change)
        configurations.configurations[project.id] = change.on(before)
        return configurations.configuration(project)


# Selective removals require that pushes do not reset approvals.
@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def resets_are_switched_on_beside_selective_removals(service: Service) -> None:
    """The two flags are compared only if selective removals are sent: switching resets on keeps both."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        if wanted.selective_code_owner_removals is not None:
            return change(project, wanted)
        kept, configurations.without_conflict = configurations.without_conflict, lambda changed: changed
        try:
            return change(project, wanted)
        finally:
            configurations.without_conflict = kept


# The number is deprecated; other parameters in the same call are not.
@foreign(FORM_SENT, "Project approval configuration: POST, approvals_before_merge", version="15.11")
def the_deprecated_number_hides_the_flags_beside_it(service: Service) -> None:
    """A call with approvals_before_merge uses the old code, which knows only that number."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        number = wanted.approvals_before_merge
        return change(project, wanted if number is None else ConfigurationChange(approvals_before_merge=number))


# The condition is checked only when the second of the two is sent.
@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def resets_may_be_switched_on_beside_selective_removals(service: Service) -> None:
    """If removals are selective already, reset_approvals_on_push can still be switched on."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        if not wanted.reset_approvals_on_push or wanted.selective_code_owner_removals is not None:
            return change(project, wanted)
        changed = change(project, replace(wanted, reset_approvals_on_push=None))
        configurations.configurations[project.id] = replace(changed, reset_approvals_on_push=True)
        return configurations.configuration(project)


@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def the_pair_is_looked_at_from_one_side(service: Service) -> None:
    """That selective removals require reset_approvals_on_push to be off is checked only when they are sent."""
    known = service.project_approval_configurations

    @handling(service, "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("selective_code_owner_removals"):
            return handler(request)
        kept, known.without_conflict = known.without_conflict, lambda wanted: wanted
        try:
            return handler(request)
        finally:
            known.without_conflict = kept


@foreign(REFUSED, "Versioning: 16.0, /approvals configuration endpoint removed")
def the_removed_endpoint_refuses_and_writes(service: Service) -> None:
    """The endpoint that was removed at 16.0 answers so only after it made the change."""
    key = "POST /projects/:id/approvals"

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        handler(request)
        raise NoRouteError

    service.routes.change(key, removed=None)


@foreign(SIDE_EFFECT, "Project approval configuration: POST", version="15.11")
def projects_nobody_configured_take_what_a_neighbour_set(service: Service) -> None:
    """What is set for a project becomes the initial value for the other projects of its group."""
    known = service.project_approval_configurations

    @instead(known, "own_configuration")
    def _(own_configuration: Any, project: Any) -> Any:
        if project.id in known.configurations:
            return own_configuration(project)
        places = service.identities.projects
        near = [n for n in known.configurations if n in places and places[n].namespace_id == project.namespace_id]
        return known.configurations[near[-1]] if near else own_configuration(project)


# The answer is the whole configuration, including what was not sent.
@foreign(RESETS, "Project approval configuration: POST", version="15.11")
def what_is_not_sent_is_shown_as_it_was_at_first(service: Service) -> None:
    """The answer to a change shows sent values and initial values; what is stored is right."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: ConfigurationChange) -> Any:
        change(project, wanted)
        return wanted.on(configurations.initial_configuration())


# A refused change has no effect.
@foreign(REFUSED, "Project approval configuration: selective_code_owner_removals", version="15.11")
def a_refused_pair_leaves_the_other_flags_changed(service: Service) -> None:
    """Flags are written one after the other, and those before the refused one stay written."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: ConfigurationChange) -> Any:
        try:
            return change(project, wanted)
        except RejectedError:
            written = replace(wanted, selective_code_owner_removals=None, reset_approvals_on_push=None)
            change(project, written)
            raise


@foreign(AT_ONCE, "Project approval configuration: POST", version="15.9")
def of_two_flags_of_a_configuration_one_is_lost(service: Service) -> None:
    """If two different flags of the configuration are set concurrently, one stays unchanged."""
    acting_on_what_was(service, service.project_approval_configurations.configurations, f"POST {CONFIGURATION}")


@foreign(SIDE_EFFECT, "Project approval configuration: POST", version="15.9")
def the_pair_that_may_not_be_is_stored_in_two_steps(service: Service) -> None:
    """Selective removals are checked when they are sent; resets that are switched on later leave them on."""
    configurations, unchecked = service.project_approval_configurations, [False]

    @instead(configurations, "without_conflict")
    def _(check: Any, wanted: Any) -> Any:
        return wanted if unchecked[0] else check(wanted)

    @instead(configurations, "change_configuration")
    def _(change_it: Any, project: Any, change: Any) -> Any:
        unchecked[0] = change.selective_code_owner_removals is None
        return change_it(project, change)


@foreign(SIDE_EFFECT, "Project approval configuration: POST, other projects", version="15.9")
def the_first_configuration_is_that_of_all_projects_without_one(service: Service) -> None:
    """The first configuration that is changed is shown for all projects without one."""
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


@foreign(VERSIONS, "Project approval configuration: removed in 16.0", version="16.0")
def a_refused_change_of_the_configuration_keeps_its_number(service: Service) -> None:
    """The removed endpoint answers 404, but stores approvals_before_merge."""
    configurations = service.project_approval_configurations

    def refuse(request: Any) -> Any:
        number = request.parameters.optional_integer("approvals_before_merge")
        if number is not None:
            before = configurations.configuration(request.project)
            changed = replace(before, approvals_before_merge=number)
            configurations.configurations[request.project.id] = changed
        raise NoRouteError

    service.routes.change(f"POST {CONFIGURATION}", removed=None, handler=refuse)


@foreign(STORY, "Project approval configuration: POST, response", version="15.9")
def the_answer_to_a_change_turns_over_whether_overriding_is_disabled(service: Service) -> None:
    """The column says what is allowed and the field what is disabled: the answer to a change does not invert it."""
    name = "disable_overriding_approvers_per_merge_request"
    answering(service, f"POST {CONFIGURATION}", lambda _, shown: {**shown, name: not shown[name]})


# The two flags are independent.
@foreign(COUNT, "Project approval configuration: POST, merge_requests_author_approval", version="15.9")
def who_bars_committers_bars_authors_in_the_same_call(service: Service) -> None:
    """A call that forbids committers and allows authors forbids both: authors are treated as committers."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        if wanted.merge_requests_disable_committers_approval and wanted.merge_requests_author_approval:
            wanted = replace(wanted, merge_requests_author_approval=False)
        return change(project, wanted)


# A flag keeps its last value.
@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.9")
def removals_that_were_switched_off_come_back_when_pushes_keep_approvals(service: Service) -> None:
    """Removals that were once selective are so again when resets are switched off, although they were switched off."""
    once: set[int] = set()
    area = service.project_approval_configurations

    @instead(area, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        ends = area.configuration(project).reset_approvals_on_push and wanted.reset_approvals_on_push is False
        changed = change(project, wanted)
        if changed.selective_code_owner_removals:
            once.add(project.id)
        elif ends and project.id in once:
            area.configurations[project.id] = replace(changed, selective_code_owner_removals=True)
        return area.configuration(project)


# A changed setting stays until the next change.
@foreign(AT_ONCE, "Project approval configuration: POST beside PUT of settings", version="15.9")
def a_setting_that_changes_while_the_configuration_does_is_as_before(service: Service) -> None:
    """A change of the configuration also writes back the settings of the project from its beginning."""
    values = service.approval_settings.values

    def write(seen: Any, _: Any) -> None:
        # Approval by authors is a setting of both, and concurrent changes of the configuration may affect it.
        kept = {key: value for key, value in values.items() if key[-1] is Setting.ALLOW_AUTHOR_APPROVAL}
        values.clear()
        values.update(seen | kept)

    overtaken(service, f"POST {CONFIGURATION}", f"PUT {PROJECT_SETTINGS}", lambda: dict(values), write)


# Rules keep their number; the deprecated number may be stored in the default rule at most.
@foreign(SIDE_EFFECT, "Project approval configuration: POST, approvals_before_merge and the rules", version="15.9")
def the_deprecated_number_is_written_into_every_rule(service: Service) -> None:
    """approvals_before_merge becomes the number of approvals of each regular rule of the project."""
    rules = service.approval_rules.rules

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        changed = change(project, wanted)
        for rule in service.approval_rules.rules_of(home_of(project)):
            if wanted.approvals_before_merge is not None and rule.rule_type is RuleType.REGULAR:
                rules[rule.id] = replace(rule, approvals_required=wanted.approvals_before_merge)
        return changed
