"""Who may read and write the approval rules of a project, and which rule an id means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import finding_any_rule, is_rule_of_a_merge_request
from conformance.proof.foreign.dimensions import CALLER_AND_FORM, CALLER_AND_VALUE, LEVEL
from conformance.proof.foreign.paths import PROJECT_RULE, PROJECT_RULES
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead
from conformance.reference.areas.approval_rule_records import Home, Level, home_of

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading -----------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Common conventions: id or path")
def deep_paths_have_no_approvals(service: Service) -> None:
    """A project in a subgroup is not found by its path where its approval rules are listed."""

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: str) -> Any:
        if route.key == "GET /projects/:id/approval_rules" and reference.count("/") > 1:
            reference = "no/such"
        return subject(route, caller, reference)


@foreign(CALLER_AND_FORM, "Authentication: every caller is authenticated")
def nobody_reads_approvals_of_public_projects_by_path(service: Service) -> None:
    """The rules of a public project are listed without a token if it is named by its path."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        subject = found(service, request)
        is_public = getattr(subject, "visibility", None) == "public" and by_path(request)
        if request.route.key == f"GET {PROJECT_RULES}" and is_public and not service.access.token_text(request):
            request.admit(service.identities.users[service.world.actors["owner"].id], subject)
            return
        admit(request)


# The query joins by namespace.
@foreign(LEVEL, "Project approval rules: GET")
def lists_show_rules_of_sibling_projects(service: Service) -> None:
    """The list of a project's rules includes those of the other projects of its group."""

    @handling(service, f"GET {PROJECT_RULES}")
    def _(_handler: Any, request: Any) -> Any:
        rules = service.project_approval_rules
        service.approval_rules.require_reader(request.caller, request.project)
        around = request.project.namespace_id
        others = [
            rule
            for one in service.identities.projects.values()
            if one.namespace_id == around and one.id != request.project.id
            for rule in service.approval_rules.rules.values()
            if rule.home == home_of(one)
        ]
        found = [*rules.rules(request.project), *others]
        return request.collection(found, lambda rule: rules.present(rule, request.caller))


# Hidden groups are only those that this caller may not view.
@foreign(CALLER_AND_FORM, "Project approval rules: contains_hidden_groups")
def private_groups_count_as_hidden(service: Service) -> None:
    """A rule with a private group says that it hides it, even to callers who may view it."""

    @instead(service.approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any, *more: Any) -> Any:
        shown = present(rule, viewer, *more)
        private = any(group["visibility"] == "private" for group in shown["groups"])
        return {**shown, "contains_hidden_groups": private or shown["contains_hidden_groups"]}


@foreign(LEVEL, "Project approval rules: GET one")
def rules_of_other_projects_are_read(service: Service) -> None:
    """A project shows the rule of another project; each project has its own rules."""
    finding_any_rule(service, "GET /projects/:id/approval_rules/:approval_rule_id", Level.PROJECT)


# A query for choosing approvers excludes the current user.
@foreign(CALLER_AND_FORM, "Project approval rules: GET; Approval rule: users")
def readers_do_not_find_themselves_in_a_rule(service: Service) -> None:
    """A reader of a project's rules is missing in the users of these rules."""

    def without(rule: Any, reader: int) -> None:
        rule["users"] = [user for user in rule["users"] if user["id"] != reader]

    @handling(service, f"GET {PROJECT_RULES}", f"GET {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        for rule in answer.content if isinstance(answer.content, list) else [answer.content]:
            without(rule, request.caller.id)
        return answer


@foreign(CALLER_AND_FORM, "Common conventions: :id; Project approval rules: GET")
def rules_read_by_path_are_those_of_before(service: Service) -> None:
    """Lists are cached by the text of the path, and a write clears only the cache for its own text."""
    kept: dict[tuple[Any, ...], Any] = {}

    @handling(service, f"GET {PROJECT_RULES}")
    def _(handler: Any, request: Any) -> Any:
        key = request.path["id"], request.caller.id, request.query
        if key not in kept:
            kept[key] = handler(request)
        return kept[key]

    @handling(service, f"POST {PROJECT_RULES}", f"PUT {PROJECT_RULE}", f"DELETE {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in kept if key[0] == request.path["id"]]:
            del kept[key]
        return handler(request)


# -- creating ----------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Project approval rules: POST, name is required")
def administrators_need_no_name(service: Service) -> None:
    """An administrator can create a rule without a name; the rule gets a name."""

    @handling(service, f"POST {PROJECT_RULES}")
    def _(handler: Any, request: Any) -> Any:
        if request.caller.admin and not request.parameters.given("name"):
            request.parameters._values = {**request.parameters._values, "name": "Rule"}
        return handler(request)


# A form excludes the current user, but the endpoint must not.
@foreign(CALLER_AND_FORM, "Project approval rules: POST, user_ids")
def nobody_names_themselves(service: Service) -> None:
    """A user who creates a rule of a project is missing in it, even if named."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        if wanted.user_ids is not None:
            wanted = replace(wanted, user_ids=tuple(number for number in wanted.user_ids if number != caller.id))
        return create(project, wanted, caller)


# -- updating ----------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_VALUE, "Project approval rules: PUT, group_ids; none")
def hidden_groups_go_where_no_group_is_named(service: Service) -> None:
    """An empty list of groups also removes hidden ones; a list with groups keeps them."""

    @instead(service.approval_rules, "groups_after")
    def _(after: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        named = service.approval_rules.groups_named(wanted, caller)
        return () if named is not None and not named else after(rule, wanted, caller)


# A caller who sends no list has not seen the groups.
@foreign(CALLER_AND_VALUE, "Project approval rules: PUT, hidden groups")
def hidden_groups_go_where_no_list_is_sent(service: Service) -> None:
    """An update without group_ids removes the hidden groups; one with a list keeps them."""

    @instead(service.approval_rules, "groups_after")
    def _(after: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        groups = after(rule, wanted, caller)
        if service.approval_rules.groups_named(wanted, caller) is not None:
            return groups
        return tuple(one for one in groups if one not in service.approval_rules.hidden_groups(rule, caller))


# Sending a flag does not mean switching it on.
@foreign(CALLER_AND_VALUE, "Project approval rules: remove_hidden_groups")
def hidden_groups_go_as_soon_as_they_are_mentioned(service: Service) -> None:
    """An update with remove_hidden_groups false removes hidden groups like one with true."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        parameters = request.parameters
        if parameters.given("remove_hidden_groups"):
            parameters._values = {**parameters._values, "remove_hidden_groups": True}
        return handler(request)


@foreign(LEVEL, "Project approval rules: PUT")
def projects_change_rules_of_merge_requests(service: Service) -> None:
    """A project can change the rule of one of its merge requests, which has its own operation for that."""
    finding_any_rule(service, "PUT /projects/:id/approval_rules/:approval_rule_id", Level.MERGE_REQUEST)


@foreign(LEVEL, "Project approval rules: PUT")
def projects_change_rules_of_the_groups_around(service: Service) -> None:
    """A project can read, change and delete the rule of a parent group, which is for the group's administrators."""

    @instead(service.project_approval_rules, "find")
    def _(find: Any, project: Any, number: int) -> Any:
        rule = service.approval_rules.rules.get(number)
        around = [Home(Level.GROUP, group.id) for group in service.identities.lineage(project)]
        return rule if rule is not None and rule.home in around else find(project, number)


@foreign(LEVEL, "Project approval rules: PUT")
def a_project_changes_the_rules_of_its_merge_requests(service: Service) -> None:
    """A rule of a merge request can be changed like one of the project, which has no rule with that id."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(number)
        if rule is None or not is_rule_of_a_merge_request(service, rule, project):
            return update(project, number, wanted, caller)
        return service.approval_rules.update_rule(project, rule, wanted, caller)


# -- deleting ----------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Project approval rules: DELETE")
def deleting_rules_by_path_is_forgotten(service: Service) -> None:
    """Deleting a rule of a project named by its path is answered, but not done."""

    @handling(service, "DELETE /projects/:id/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        before = service.store.snapshot()
        answer = handler(request)
        if by_path(request):
            service.store.restore(before)
        return answer


@foreign(LEVEL, "Project approval rules: DELETE")
def projects_delete_rules_of_groups(service: Service) -> None:
    """A project can delete the rule of any group."""

    @instead(service.project_approval_rules, "delete_rule")
    def _(delete: Any, project: Any, number: int) -> None:
        rule = service.approval_rules.rules.get(number)
        if rule is not None and rule.home.level is Level.GROUP:
            return service.approval_rules.delete_rule(rule)
        return delete(project, number)


@foreign(LEVEL, "Project approval rules: DELETE")
def rules_of_other_projects_are_deleted(service: Service) -> None:
    """A project can delete the rule of another project."""
    finding_any_rule(service, "DELETE /projects/:id/approval_rules/:approval_rule_id", Level.PROJECT)


# -- more than one operation -------------------------------------------------------------------------------------------


# Everything before the last slash is cut off.
@foreign(CALLER_AND_FORM, "Common conventions: :id")
def projects_go_by_the_end_of_their_path(service: Service) -> None:
    """Rules are looked up in the first visible project whose path has the same last part."""

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: Any) -> Any:
        known = subject(route, caller, reference)
        if not route.path.startswith(PROJECT_RULES) or reference.isdigit():
            return known
        namesakes = [one for one in service.identities.projects.values() if one.path == known.path]
        return next(one for one in namesakes if service.identities.can_see(caller, one))


# The owner of the rule is checked only by namespace.
@foreign(LEVEL, "Project approval rules: DELETE")
def a_rule_is_deleted_through_a_project_beside_its_own(service: Service) -> None:
    """The id of a rule of another project in the same namespace deletes that rule."""
    rules = service.project_approval_rules

    @instead(rules, "delete_rule")
    def _(delete: Any, project: Any, number: int) -> None:
        for other in service.identities.projects.values():
            if other.namespace_id == project.namespace_id and any(rule.id == number for rule in rules.rules(other)):
                delete(other, number)
                return
        delete(project, number)
