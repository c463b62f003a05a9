"""The approval configuration of a project: its callers, flags, answers, refusals and versions."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import acting_on_what_was, answering
from conformance.proof.foreign.dimensions import (
    AGAIN,
    AT_ONCE,
    CALLER_AND_FORM,
    COUNT,
    FORM_SENT,
    NEIGHBOUR,
    REFUSED,
    RESETS,
    SIDE_EFFECT,
    STORY,
    VERSIONS,
)
from conformance.proof.foreign.paths import CONFIGURATION
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import Home, Level, home_of
from conformance.reference.areas.project_approval_configuration import ConfigurationChange
from conformance.reference.errors import NoRouteError, RejectedError, UnauthorizedError
from conformance.reference.http import ok
from conformance.reference.identity import Role, Visibility
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading -----------------------------------------------------------------------------------------------------------


# Both name the same project, whose configuration is one.
@foreign(CALLER_AND_FORM, "Project approval configuration: GET by path", version="15.11")
def configurations_are_remembered_by_path(service: Service) -> None:
    """Reading by the path shows what it showed first, until somebody changes the configuration by the path as well."""
    known: dict[str, Any] = {}

    @handling(service, "GET /projects/:id/approvals", "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if not by_path(request) or not is_served(answer):
            return answer
        if request.method == "POST":
            known.pop(request.path["id"], None)
            return answer
        answer.content = known.setdefault(request.path["id"], answer.content)
        return answer


@foreign(VERSIONS, "Project approval configuration: approver_groups, always empty since 12.3")
def groups_of_rules_are_shown_as_approvers(service: Service) -> None:
    """The deprecated field approver_groups lists the groups that the project's rules name."""

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        rules = service.approval_rules.rules_of(Home(Level.PROJECT, request.project.id))
        named = sorted({number for rule in rules for number in rule.groups})
        groups = [service.identities.groups[number] for number in named if number in service.identities.groups]
        answer.content["approver_groups"] = [{"group": service.present.group(group)} for group in groups]
        return answer


@foreign(AGAIN, "Project approval configuration: GET", version="15.9")
def developers_read_the_initial_configuration(service: Service) -> None:
    """Whoever is no maintainer is shown what projects begin with, and not what is set."""

    @handling(service, f"GET {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer, area = handler(request), service.project_approval_configurations
        if service.identities.role_in(request.caller, request.project) < Role.MAINTAINER:
            answer.content = area.present(area.initial_configuration())
        return answer


# Both lists are always empty, since rules name the approvers.
@foreign(STORY, "Project approval configuration: approver_groups")
def the_configuration_lists_the_groups_of_rules(service: Service) -> None:
    """Older clients are shown the groups that approve by some rule of the project."""

    @handling(service, f"GET {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        rules = service.approval_rules.rules_of(home_of(request.project))
        groups = [service.identities.groups[number] for rule in rules for number in rule.groups]
        answer.content["approver_groups"] = [{"group": service.present.group(group)} for group in groups]
        return answer


# Everybody who calls has to say who they are.
@foreign(CALLER_AND_FORM, "Project approval configuration: Authentication")
def strangers_read_the_configuration_of_public_projects(service: Service) -> None:
    """The configuration of a public project is shown to callers without a token."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        try:
            admit(request)
        except UnauthorizedError:
            project = found(service, request) if request.route.key == f"GET {CONFIGURATION}" else None
            if project is None or project.visibility is not Visibility.PUBLIC:
                raise
            request.admit(next(iter(service.identities.users.values())), project)


# Both are always empty since 12.3.
@foreign(STORY, "Project approval configuration: approvers")
def former_approvers_are_those_of_the_rules(service: Service) -> None:
    """The deprecated list of approvers holds the users of the rules of the project."""
    rules = service.project_approval_rules

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        named = dict.fromkeys(user for rule in rules.rules(request.project) for user in rule.users)
        answer.content["approvers"] = [{"user": user} for user in service.present.users(tuple(named))]
        return answer


# What is empty since a version is not emptied with the next big one.
@foreign(VERSIONS, "Versioning: 12.3; Project approval configuration: approvers", version="14.4")
def approvers_are_listed_to_the_next_big_release(service: Service) -> None:
    """Before 15.0 the configuration lists the users of the rules as approvers, which has been empty since 12.3."""
    rules = service.project_approval_rules

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if service.version < Version(15, 0):
            users = dict.fromkeys(number for rule in rules.rules(request.project) for number in rule.users)
            answer.content["approvers"] = [{"user": user} for user in service.present.users(tuple(users))]
        return answer


@foreign(STORY, "Project approval configuration: GET")
def approvers_are_those_of_the_rules(service: Service) -> None:
    """The configuration lists the users of the rules as approvers, which are always empty."""

    def change(request: Any, content: Any) -> Any:
        rules = service.project_approval_rules.rules(request.project)
        users = dict.fromkeys(number for rule in rules for number in rule.users)
        return {**content, "approvers": [{"user": user} for user in service.present.users(tuple(users))]}

    answering(service, "GET /projects/:id/approvals", change)


@foreign(STORY, "Project approval configuration: approvers", version="15.9")
def the_deprecated_approvers_are_those_of_the_rules(service: Service) -> None:
    """The approvers of a configuration, which are always empty, are the users whom the rules of the project name."""

    @handling(service, f"GET {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer, rules = handler(request), service.project_approval_rules.rules(request.project)
        named = tuple(dict.fromkeys(number for rule in rules for number in rule.users))
        answer.content["approvers"] = [{"user": user} for user in service.present.users(named)]
        return answer


# -- changing ----------------------------------------------------------------------------------------------------------


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
