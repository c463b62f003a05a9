"""What an approval rule of a project may contain, and what responses show of it, page by page."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import asking_otherwise, listing_no_groups, with_parameters
from conformance.proof.foreign.dimensions import FORM_SENT, NEIGHBOUR, PAGES, STORY, VERSIONS
from conformance.proof.foreign.paths import PROJECT_RULE, PROJECT_RULES
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.http import ok
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request

_MOST_CHARACTERS = 60


# -- reading -----------------------------------------------------------------------------------------------------------


@foreign(STORY, "Project approval rules: GET, groups")
def lists_of_project_rules_leave_out_groups(service: Service) -> None:
    """The list of a project's rules shows no groups; the single rule does."""
    listing_no_groups(service, f"GET {PROJECT_RULES}")


@foreign(PAGES, "Project approval rules: GET is paginated")
def deleted_rules_leave_a_hole_in_a_page(service: Service) -> None:
    """Pages of a project's rules are cut before deleted rules are filtered out: entries after one are never shown."""
    from conformance.reference.areas.approval_rule_records import RuleType  # noqa: PLC0415

    gone: set[int] = set()

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        if rule.rule_type is RuleType.REGULAR:
            gone.add(rule.home.id)

    @handling(service, f"GET {PROJECT_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.project.id in gone:
            answer.content = answer.content[: (request.parameters.optional_integer("per_page") or 20) - 1]
        return answer


# The list has its own query, which leaves out slow parts.
@foreign(STORY, "Approval rule: contains_hidden_groups")
def lists_know_of_no_hidden_groups(service: Service) -> None:
    """In the list of a project's rules, none contains hidden groups; the single rule is right."""

    @handling(service, f"GET {PROJECT_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = [{**rule, "contains_hidden_groups": False} for rule in answer.content]
        return answer


# What looks like a number is serialized as one.
@foreign(NEIGHBOUR, "Approval rule: name is a string")
def a_name_of_digits_is_a_number(service: Service) -> None:
    """The name of a project's rule is answered as a number if it has only digits."""

    @instead(service.project_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        if rule.name.isascii() and rule.name.isdigit():
            shown["name"] = int(rule.name)
        return shown


@foreign(PAGES, "Project approval rules: pages")
def third_pages_are_second_ones(service: Service) -> None:
    """The third page is the second one again."""
    asking_otherwise(
        service, "GET /projects/:id/approval_rules", lambda _, query: re.sub(rb"\bpage=3\b", b"page=2", query)
    )


@foreign(PAGES, "Project approval rules: GET")
def a_last_page_that_is_full_is_empty(service: Service) -> None:
    """A full last page other than the first is shown as empty."""

    @handling(service, f"GET {PROJECT_RULES}")
    def _(handler: Any, request: Request) -> Any:
        answer = handler(request)
        size = request.parameters.optional_integer("per_page")
        page = request.parameters.optional_integer("page") or 1
        if page > 1 and len(answer.content) == size and not answer.headers["x-next-page"]:
            answer.content = []
        return answer


# -- creating ----------------------------------------------------------------------------------------------------------


# Requests are JSON, where both notations are the same text.
@foreign(FORM_SENT, "Project approval rules: POST, name")
def escapes_are_stored_as_written(service: Service) -> None:
    r"""A letter that JSON writes as \u00e9 is stored as a backslash with digits."""

    @handling(service, f"POST {PROJECT_RULES}", f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        request.body = request.body.replace(rb"\u", rb"\\u")
        return handler(request)


# A name is a text; a service may refuse some names, but no call may cause a server error.
@foreign(FORM_SENT, "Project approval rules: POST, name")
def names_beyond_the_basic_plane_break(service: Service) -> None:
    """A name of a rule with a character beyond the first 65,536 causes a server error."""

    @instead(service.approval_rules, "require_possible")
    def _(require: Any, rule: Any) -> None:
        if max(map(ord, rule.name), default=0) > 0xFFFF:
            raise OverflowError(rule.name)
        require(rule)


# What is stored is what was sent.
@foreign(NEIGHBOUR, "Project approval rules: name")
def names_are_cut_to_fit_a_column(service: Service) -> None:
    """A name of more than sixty characters is cut and accepted."""

    @instead(service.approval_rules, "create_rule")
    def _(create: Any, subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        name = wanted.name[:_MOST_CHARACTERS] if wanted.name else wanted.name
        return create(subject, home, replace(wanted, name=name), caller)


# A creation makes a new rule and must not change another one.
@foreign(NEIGHBOUR, "Project approval rules: POST, name")
def a_rule_whose_name_differs_in_case_takes_the_place_of_the_former(service: Service) -> None:
    """A new rule is inserted or updated by its name, which the database compares case-insensitively."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        for rule in service.project_approval_rules.rules(project):
            if rule.name != wanted.name and rule.name.casefold() == wanted.name.casefold():
                return service.project_approval_rules.update_rule(project, rule.id, wanted, caller)
        return create(project, wanted, caller)


# null may mean not sent or be a wrong value, but must not cause a server error.
@foreign(NEIGHBOUR, "Project approval rules: POST, usernames is optional")
def usernames_that_are_null_break_a_new_rule(service: Service) -> None:
    """The code only checks that usernames is sent, so null causes a server error in the loop over it."""

    @handling(service, f"POST {PROJECT_RULES}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        return ok({"error": "null"}, 500) if "usernames" in values and values["usernames"] is None else handler(request)


# -- updating ----------------------------------------------------------------------------------------------------------


# Both parameters of an update are required, whatever else is sent.
@foreign(FORM_SENT, "Project approval rules: PUT, approvals_required")
def usernames_take_the_place_of_a_number(service: Service) -> None:
    """An update with usernames does not require approvals_required."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if "usernames" in values and "approvals_required" not in values:
            request.parameters._values = {**values, "approvals_required": 1}
        return handler(request)


# Hidden groups are removed only if the parameter is true.
@foreign(NEIGHBOUR, "Project approval rules: remove_hidden_groups")
def hidden_groups_go_when_told_that_they_should_not(service: Service) -> None:
    """An update with remove_hidden_groups false removes the hidden groups, because the parameter was sent."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("remove_hidden_groups"):
            request.parameters._values = {**request.parameters._values, "remove_hidden_groups": True}
        return handler(request)


# Hidden groups are removed only if the parameter is true.
@foreign(NEIGHBOUR, "Project approval rules: PUT, remove_hidden_groups")
def hidden_groups_go_whenever_the_flag_is_sent(service: Service) -> None:
    """An update with remove_hidden_groups false removes the hidden groups, as with true."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("remove_hidden_groups"):
            with_parameters(request, {"remove_hidden_groups": True})
        return handler(request)


# The code checks whether the parameter was sent, and not its value.
@foreign(NEIGHBOUR, "Project approval rules: remove_hidden_groups")
def hidden_groups_go_when_false_is_sent(service: Service) -> None:
    """An update with remove_hidden_groups false removes the hidden groups as if it were true."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("remove_hidden_groups") is not None:
            request.parameters._values = {**values, "remove_hidden_groups": True}
        return handler(request)


# A comparison without the equals sign.
@foreign(VERSIONS, "Versioning: 15.8", version="15.8")
def usernames_come_one_version_late(service: Service) -> None:
    """At version 15.8 itself, updates of project rules do not know usernames yet."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if service.version <= Version(15, 8):
            values = request.parameters._values
            request.parameters._values = {name: value for name, value in values.items() if name != "usernames"}
        return handler(request)


@foreign(STORY, "Approval rule: contains_hidden_groups")
def answers_to_updates_know_no_hidden_groups(service: Service) -> None:
    """The answer to an update of a rule with a hidden group says that it contains none."""

    @handling(service, f"PUT {PROJECT_RULE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = {**answer.content, "contains_hidden_groups": False}
        return answer


# The ids are ignored if the new flag is true, not if the former one was.
@foreign(STORY, "Project approval rules: PUT, protected_branch_ids")
def branches_are_ignored_where_all_were_meant_before(service: Service) -> None:
    """If an update switches the flag for all protected branches off, the branches in the same call are ignored."""

    @instead(service.approval_rules, "branches_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.applies_to_all_protected_branches:
            return rule.protected_branches
        return after(rule, wanted, subject)


# A name is stored as it was sent.
@foreign(NEIGHBOUR, "Project approval rules: PUT, name")
def names_are_escaped_for_pages_when_they_change(service: Service) -> None:
    """An update stores the name HTML-escaped, with `&amp;` instead of `&`."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        return update(project, number, replace(wanted, name=html.escape(wanted.name or "", quote=False)), caller)


# The column is compared case-insensitively, and equal values are not written.
@foreign(NEIGHBOUR, "Project approval rules: PUT, name")
def a_name_that_differs_in_case_is_not_stored(service: Service) -> None:
    """An update that changes only the case of a project rule's name keeps the former name."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = service.project_approval_rules.find(project, number)
        if wanted.name is not None and wanted.name.casefold() == before.name.casefold():
            wanted = replace(wanted, name=before.name)
        return update(project, number, wanted, caller)


@foreign(FORM_SENT, "Project approval rules: user_ids, usernames")
def whom_an_update_keeps_by_username_is_removed(service: Service) -> None:
    """An update removes former users who are not in user_ids, even if their usernames were sent."""
    rules = service.approval_rules

    @instead(rules, "users_after")
    def _(users_after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        after = users_after(rule, wanted, subject)
        if wanted.user_ids is None:
            return after
        return tuple(number for number in after if number in wanted.user_ids or number not in rule.users)


# Both creation and update accept it from 15.3 on.
@foreign(VERSIONS, "Project approval rules: PUT, applies_to_all_protected_branches, 15.3", version="15.5")
def the_flag_for_all_branches_waits_for_usernames(service: Service) -> None:
    """Before 15.8 an update ignores applies_to_all_protected_branches, as it does usernames."""

    @handling(service, "PUT /projects/:id/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = {n: v for n, v in values.items() if n != "applies_to_all_protected_branches"}
        return handler(request)


@foreign(VERSIONS, "Project approval rules: PUT, applies_to_all_protected_branches", version="15.3")
def a_changed_rule_keeps_its_flag_for_all_branches(service: Service) -> None:
    """At the first version with the flag for all protected branches, an update of a rule ignores it."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        return update(project, number, replace(wanted, applies_to_all_protected_branches=None), caller)


# -- more than one operation -------------------------------------------------------------------------------------------


# Licences belong to the top-level group, so that one is looked up, and used here too.
@foreign(NEIGHBOUR, "Project approval rules: group_ids")
def subgroups_stand_for_their_outermost_group(service: Service) -> None:
    """A rule with a subgroup as approver gets its top-level group instead."""

    @instead(service.approval_rules, "groups_named")
    def _(named: Any, wanted: Any, caller: Any) -> Any:
        found = named(wanted, caller)
        if found is None:
            return None
        groups = (service.identities.lineage(service.identities.groups[number])[-1] for number in found)
        return tuple(dict.fromkeys(group.id for group in groups))
