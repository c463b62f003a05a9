"""Small bugs of approval rules and of the configuration of a project."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, is_served, meanwhile
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service

_GROUP = "/groups/:id/approval_rules"
_PROJECT = "/projects/:id/approval_rules"
_OWN = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"
_CONFIGURATION = "/projects/:id/approvals"
_ONE = "/:approval_rule_id"


@foreign("forms of what is sent", "Group approval rules: PUT, parameters may be sent in the query")
def updates_in_the_query_do_nothing(service: Service) -> None:
    """What an update of a group's rule says in the query is passed over; it counts as much as the body."""

    @handling(service, f"PUT {_GROUP}{_ONE}")
    def _(handler: Any, request: Any) -> Any:
        request.query = b""
        return handler(request)


@foreign("level x id of another level", "Group approval rules: POST")
def rules_of_a_subgroup_go_to_its_parent(service: Service) -> None:
    """A rule that is made for a group inside another one becomes a rule of the outer one."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        return create(service.identities.lineage(group)[-1], wanted, caller)


@foreign("again, by another caller, after an undo", "Project approval configuration: POST", version="15.9")
def committers_once_barred_stay_barred(service: Service) -> None:
    """merge_requests_disable_committers_approval can be switched on, and not off again."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        barred = wanted.merge_requests_disable_committers_approval or None
        return change(project, replace(wanted, merge_requests_disable_committers_approval=barred))


@foreign("forms of what is sent", "Project approval configuration: POST answers without approvers", version="15.9")
def approvers_reappear_with_the_old_number(service: Service) -> None:
    """Whoever sends approvals_before_merge is answered with approvers and approver_groups."""

    @handling(service, f"POST {_CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and request.parameters.given("approvals_before_merge"):
            answer.content = {"approvers": [], "approver_groups": [], **answer.content}
        return answer


@foreign("again, by another caller, after an undo", "Project approval configuration: GET", version="15.9")
def developers_read_the_initial_configuration(service: Service) -> None:
    """Whoever is no maintainer is shown what projects begin with, and not what is set."""

    @handling(service, f"GET {_CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer, area = handler(request), service.project_approval_configurations
        if service.identities.role_in(request.caller, request.project) < Role.MAINTAINER:
            answer.content = area.present(area.initial_configuration())
        return answer


@foreign("write x everything that must stay", "Project approval configuration: POST", version="15.9")
def siblings_share_their_configuration(service: Service) -> None:
    """Changing the configuration of a project changes that of all projects of its group."""

    @instead(service.project_approval_configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: Any) -> Any:
        for other in service.identities.projects.values():
            if other.namespace_id == project.namespace_id and other.id != project.id:
                change(other, wanted)
        return change(project, wanted)


@foreign("version table", "Versioning: 16.0, the configuration endpoint is removed", version="16.0")
def the_removed_endpoint_still_obeys(service: Service) -> None:
    """POST /approvals is answered with 404 and changes the configuration all the same."""
    key = f"POST {_CONFIGURATION}"
    inner = service.routes.get(key).handler
    service.routes.change(key, removed=None)

    @handling(service, key)
    def _(_handler: Any, request: Any) -> Any:
        from conformance.reference.errors import NoRouteError  # noqa: PLC0415

        inner(request)
        raise NoRouteError


@foreign("refusal x everything that must stay", "Project approval rules: PUT, protected_branch_ids")
def the_branches_of_a_rule_are_fixed_when_made(service: Service) -> None:
    """An update does not change the protected branches of a rule."""

    @instead(service.approval_rules, "branches_after")
    def _(_after: Any, rule: Any, _wanted: Any, _subject: Any) -> Any:
        return rule.protected_branches


@foreign("again, by another caller, after an undo", "Project approval rules: applies_to_all_protected_branches")
def a_rule_for_all_branches_stays_one(service: Service) -> None:
    """applies_to_all_protected_branches can be switched on by an update, and not off again."""

    @instead(service.approval_rules, "update_rule")
    def _(update: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        flag = wanted.applies_to_all_protected_branches or None
        return update(subject, rule, replace(wanted, applies_to_all_protected_branches=flag), caller)


@foreign("refusal x everything that must stay", "Project approval rules: PUT, group_ids")
def members_of_groups_are_stored_as_users(service: Service) -> None:
    """An update that names groups stores their members as users of the rule as well."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        users, known = after(rule, wanted, subject), service.identities
        found = [number for group in wanted.group_ids or () for number in known.members(known.groups[group])]
        return tuple(dict.fromkeys([*users, *found]))


def _without_groups(service: Service, key: str) -> None:
    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = [{**rule, "groups": []} for rule in answer.content]
        return answer


@foreign("numbers and texts that follow from the story", "Project approval rules: GET, groups")
def lists_of_project_rules_leave_out_groups(service: Service) -> None:
    """The list of a project's rules shows no groups; the single rule does."""
    _without_groups(service, f"GET {_PROJECT}")


@foreign("numbers and texts that follow from the story", "Merge request approvals: GET of the rules, groups")
def lists_of_own_rules_leave_out_groups(service: Service) -> None:
    """The list of a merge request's rules shows no groups; the single rule does."""
    _without_groups(service, f"GET {_OWN}")


@foreign("numbers and texts that follow from the story", "Group approval rules: GET, groups")
def lists_of_group_rules_leave_out_groups(service: Service) -> None:
    """The list of a group's rules shows no groups; what creating answered did."""
    _without_groups(service, f"GET {_GROUP}")


@foreign("numbers and texts that follow from the story", "Approval rule: contains_hidden_groups")
def answers_to_updates_know_no_hidden_groups(service: Service) -> None:
    """An update of a rule with a hidden group answers that it contains none."""

    @handling(service, f"PUT {_PROJECT}{_ONE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = {**answer.content, "contains_hidden_groups": False}
        return answer


def _named(service: Service, change: Any) -> None:
    for name, at in (("create_rule", 2), ("update_rule", 2)):

        @instead(service.approval_rules, name)
        def _(write: Any, *arguments: Any, at: int = at) -> Any:
            wanted = arguments[at]
            if wanted.name is not None:
                wanted = replace(wanted, name=change(wanted.name))
            return write(*arguments[:at], wanted, *arguments[at + 1 :])


@foreign("value x neighbour of the right value", "Approval rules: name")
def names_of_rules_are_escaped(service: Service) -> None:
    """Names of rules are stored as they stand in HTML: `&` becomes `&amp;`."""
    _named(service, html.escape)


@foreign("value x neighbour of the right value", "Approval rules: name")
def names_of_rules_are_kept_in_latin_1(service: Service) -> None:
    """What an older character set lacks becomes a question mark in the names of rules."""
    _named(service, lambda name: name.encode("latin-1", "replace").decode("latin-1"))


@foreign("value x neighbour of the right value", "Approval rules: name")
def names_of_rules_are_cut_after_thirty_characters(service: Service) -> None:
    """Names of rules are cut after thirty characters, and the answer says nothing of it."""
    _named(service, lambda name: name[:30])


@foreign("again, by another caller, after an undo", "Approval rules: users")
def readers_do_not_see_themselves(service: Service) -> None:
    """The users of a rule are shown without whoever reads it."""

    @instead(service.approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        return {**shown, "users": [user for user in shown["users"] if user["id"] != viewer.id]}


@foreign("value x neighbour of the right value", "Project approval rules: approval_rule_id")
def ids_beyond_31_bits_break(service: Service) -> None:
    """A rule of a merge request with an id beyond 31 bits is looked for with a query that breaks."""

    @instead(service.merge_request_approval_rules, "find")
    def _(find: Any, merge_request: Any, number: int) -> Any:
        if number >= 2**31:
            raise OverflowError(number)
        return find(merge_request, number)


@foreign("two write at once", "Project approval rules: PUT and DELETE")
def a_rule_deleted_while_another_is_changed_comes_back(service: Service) -> None:
    """Updating a rule writes back all rules of the project as they were read: one that went meanwhile is back."""
    rules = service.approval_rules
    meanwhile(
        service, (f"PUT {_PROJECT}{_ONE}",), lambda: dict(rules.rules), lambda seen, _request: rules.rules.update(seen)
    )


@foreign("forms of what is sent", "Merge request approvals: PUT of a rule, usernames")
def usernames_are_for_new_rules(service: Service) -> None:
    """An update of a merge request's rule passes usernames over."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.home.level is Level.MERGE_REQUEST:
            wanted = replace(wanted, usernames=None)
        return after(rule, wanted, subject)


@foreign("pages and totals", "Merge request approvals: GET of the rules is paginated")
def later_pages_are_of_usual_size(service: Service) -> None:
    """per_page counts for the first page alone; later ones hold all that is left."""

    @handling(service, f"GET {_OWN}")
    def _(handler: Any, request: Any) -> Any:
        answer, rules = handler(request), service.merge_request_approval_rules
        page = request.parameters.optional_integer("page") or 1
        size = request.parameters.optional_integer("per_page") or 20
        if page > 1:
            found = service.repositories.merge_requests[request.project.id, int(request.path["merge_request_iid"])]
            listed = rules.listed(found)[(page - 1) * size :]
            answer.content = [rules.present(rule, found, request.caller) for rule in listed]
        return answer


@foreign("pages and totals", "Project approval rules: GET is paginated")
def deleted_rules_leave_a_hole_in_a_page(service: Service) -> None:
    """Pages of a project's rules are cut before deleted ones are left out: entries behind one are never shown."""
    from conformance.reference.areas.approval_rule_records import RuleType  # noqa: PLC0415

    gone: set[int] = set()

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        if rule.rule_type is RuleType.REGULAR:
            gone.add(rule.home.id)

    @handling(service, f"GET {_PROJECT}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.project.id in gone:
            answer.content = answer.content[: (request.parameters.optional_integer("per_page") or 20) - 1]
        return answer


@foreign("caller x form of id x operation", "Project approval rules: POST, name is required")
def administrators_need_no_name(service: Service) -> None:
    """An administrator may create a rule without a name; it gets one."""

    @handling(service, f"POST {_PROJECT}")
    def _(handler: Any, request: Any) -> Any:
        if request.caller.admin and not request.parameters.given("name"):
            request.parameters._values = {**request.parameters._values, "name": "Rule"}
        return handler(request)
