"""What changes of the approval configuration store, answer and refuse, and what they change besides."""

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
    """Of the flags that a change of the configuration carries the first alone is stored."""
    from dataclasses import fields, replace  # noqa: PLC0415

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change_configuration: Any, project: Any, change: Any) -> Any:
        sent = [one.name for one in fields(change) if getattr(change, one.name) is not None]
        return change_configuration(project, replace(change, **dict.fromkeys(sent[1:])))


# The answer is the configuration, not what one call said of it.
@foreign(STORY, "Project approval configuration: POST, response", version="15.11")
def the_answer_to_a_change_shows_defaults_for_what_was_not_sent(service: Service) -> None:
    """The answer to a POST shows what was sent, and for all else what projects begin with."""

    @handling(service, "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        initial = asdict(service.project_approval_configurations.initial_configuration())
        answer.content |= {name: value for name, value in initial.items() if not request.parameters.given(name)}
        return answer


@foreign(AGAIN, "Project approval configuration: POST", version="15.9")
def committers_once_barred_stay_barred(service: Service) -> None:
    """merge_requests_disable_committers_approval can be switched on, and not off again."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        barred = wanted.merge_requests_disable_committers_approval or None
        return change(project, replace(wanted, merge_requests_disable_committers_approval=barred))


@foreign(FORM_SENT, "Project approval configuration: POST answers without approvers", version="15.9")
def approvers_reappear_with_the_old_number(service: Service) -> None:
    """Whoever sends approvals_before_merge is answered with approvers and approver_groups."""

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
    """POST /approvals is answered with 404 and changes the configuration all the same."""
    key = f"POST {CONFIGURATION}"
    inner = service.routes.get(key).handler
    service.routes.change(key, removed=None)

    @handling(service, key)
    def _(_handler: Any, request: Any) -> Any:
        from conformance.reference.errors import NoRouteError  # noqa: PLC0415

        inner(request)
        raise NoRouteError


# The pair may not be together, whichever of the two comes last.
@foreign(NEIGHBOUR, "Project approval configuration: selective_code_owner_removals", version="15.11")
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


# What was removed has no effect.
@foreign(REFUSED, "Project approval configuration: POST, removed in 16.0")
def the_removed_change_of_the_configuration_is_made(service: Service) -> None:
    """What refuses the removed call comes after the one that serves it, which changes the configuration before."""
    service.routes.change(f"POST {CONFIGURATION}", removed=None)

    @handling(service, f"POST {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        return ok({"error": "410 Gone"}, 410) if is_served(handler(request)) else None


# Each parameter that was sent counts.
@foreign(RESETS, "Project approval configuration: POST", version="15.11")
def false_is_left_out_beside_true(service: Service) -> None:
    """Of several flags in one call those that are false are taken for blank, and dropped."""

    @handling(service, "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if any(value is True for value in values.values()):
            request.parameters._values = {name: value for name, value in values.items() if value is not False}
        return handler(request)


# The condition is looked at before the values of the call are put in.
@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def the_former_reset_lets_removals_be_selective(service: Service) -> None:
    """One call switches resets on and selective removals as well: only the stored value is asked, which was off."""
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


# Selective removals need that pushes do not reset approvals.
@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def resets_are_switched_on_beside_selective_removals(service: Service) -> None:
    """The two flags are compared only where selective removals are sent: switching the other on keeps both."""
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


# The number is deprecated; what is sent beside it is not.
@foreign(FORM_SENT, "Project approval configuration: POST, approvals_before_merge", version="15.11")
def the_deprecated_number_hides_the_flags_beside_it(service: Service) -> None:
    """A call that sends approvals_before_merge goes the old way, which knows nothing but that number."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        number = wanted.approvals_before_merge
        return change(project, wanted if number is None else ConfigurationChange(approvals_before_merge=number))


# The pair is looked at only when the second of the two is sent.
@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def resets_may_be_switched_on_beside_selective_removals(service: Service) -> None:
    """Where removals are selective already, reset_approvals_on_push can be switched on beside them."""
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
    """That selective removals need reset_approvals_on_push off is asked when they are sent, not when that goes on."""
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
    """The endpoint that went with 16.0 answers that it is gone, behind a filter that runs after the change."""
    key = "POST /projects/:id/approvals"

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        handler(request)
        raise NoRouteError

    service.routes.change(key, removed=None)


@foreign(SIDE_EFFECT, "Project approval configuration: POST", version="15.11")
def projects_nobody_configured_take_what_a_neighbour_set(service: Service) -> None:
    """What is set for a project becomes what the other projects of its group begin with."""
    known = service.project_approval_configurations

    @instead(known, "own_configuration")
    def _(own_configuration: Any, project: Any) -> Any:
        if project.id in known.configurations:
            return own_configuration(project)
        places = service.identities.projects
        near = [n for n in known.configurations if n in places and places[n].namespace_id == project.namespace_id]
        return known.configurations[near[-1]] if near else own_configuration(project)


# The answer is the configuration, with what was not sent as well.
@foreign(RESETS, "Project approval configuration: POST", version="15.11")
def what_is_not_sent_is_shown_as_it_was_at_first(service: Service) -> None:
    """The answer to a change shows what was sent on top of what a project begins with; what is kept is right."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: ConfigurationChange) -> Any:
        change(project, wanted)
        return wanted.on(configurations.initial_configuration())


# A change that is refused changes nothing.
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
    """Of two different flags of the configuration that are set at the same time one stays as it was."""
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
    """The project that is configured first changes what all projects show that nobody configured yet."""
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
    """The endpoint that is gone answers 404, and approvals_before_merge is stored nevertheless."""
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
    """The column says what is allowed and the field what is disabled: the answer to a change forgets to turn it over."""
    name = "disable_overriding_approvers_per_merge_request"
    answering(service, f"POST {CONFIGURATION}", lambda _, shown: {**shown, name: not shown[name]})


# Two flags are two things.
@foreign(COUNT, "Project approval configuration: POST, merge_requests_author_approval", version="15.9")
def who_bars_committers_bars_authors_in_the_same_call(service: Service) -> None:
    """A call that bars committers and lets authors approve bars both: authors are taken for committers."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        if wanted.merge_requests_disable_committers_approval and wanted.merge_requests_author_approval:
            wanted = replace(wanted, merge_requests_author_approval=False)
        return change(project, wanted)


# A flag stays as it was set last.
@foreign(RESETS, "Project approval configuration: selective_code_owner_removals", version="15.9")
def removals_that_were_switched_off_come_back_when_pushes_keep_approvals(service: Service) -> None:
    """Removals that were selective once are so again as soon as resets end, though they were switched off."""
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


# A setting that was changed stays so until somebody changes it.
@foreign(AT_ONCE, "Project approval configuration: POST beside PUT of settings", version="15.9")
def a_setting_that_changes_while_the_configuration_does_is_as_before(service: Service) -> None:
    """A change of the configuration writes the settings of the project too, as they were when it began."""
    values = service.approval_settings.values

    def write(seen: Any, _: Any) -> None:
        # That authors may approve is one setting of the two, and for two changes of the configuration to keep apart.
        kept = {key: value for key, value in values.items() if key[-1] is Setting.ALLOW_AUTHOR_APPROVAL}
        values.clear()
        values.update(seen | kept)

    overtaken(service, f"POST {CONFIGURATION}", f"PUT {PROJECT_SETTINGS}", lambda: dict(values), write)


# Rules require what they were told; the number may be kept in the default rule at most.
@foreign(SIDE_EFFECT, "Project approval configuration: POST, approvals_before_merge and the rules", version="15.9")
def the_deprecated_number_is_written_into_every_rule(service: Service) -> None:
    """approvals_before_merge becomes the number of approvals that each regular rule of the project requires."""
    rules = service.approval_rules.rules

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        changed = change(project, wanted)
        for rule in service.approval_rules.rules_of(home_of(project)):
            if wanted.approvals_before_merge is not None and rule.rule_type is RuleType.REGULAR:
                rules[rule.id] = replace(rule, approvals_required=wanted.approvals_before_merge)
        return changed
