"""What the approval rules of a group show, page by page, and what a write leaves behind or changes elsewhere."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import acting_on_what_was, asking_otherwise, listing_no_groups
from conformance.proof.foreign.dimensions import AGAIN, AT_ONCE, PAGES, SIDE_EFFECT, STORY, VERSIONS
from conformance.proof.foreign.paths import GROUP_RULE, GROUP_RULES
from conformance.proof.foreign.registry import by_path, foreign, handling, instead, is_served, meanwhile
from conformance.reference.areas.approval_rule_records import Level, home_of
from conformance.reference.errors import not_found
from conformance.reference.http import Page
from conformance.reference.identity import Role
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


# -- listing -----------------------------------------------------------------------------------------------------------


@foreign(STORY, "Group approval rules: users")
def people_of_group_rules_swap_their_names(service: Service) -> None:
    """The users of a group's rule have each other's names; their ids and usernames are right."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        names = [one["name"] for one in shown["users"]]
        users = [{**one, "name": name} for one, name in zip(shown["users"], names[::-1], strict=True)]
        return {**shown, "users": users}


# A change of one caller shows for all readers.
@foreign(AGAIN, "Group approval rules: GET")
def rules_are_remembered_for_each_caller(service: Service) -> None:
    """The list of rules is cached by caller, and a write clears only the cache of its own caller."""
    remembered: dict[tuple[int, int], dict[bytes, Any]] = {}

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        pages = remembered.setdefault((request.caller.id, request.group.id), {})
        if request.query not in pages:
            pages[request.query] = handler(request)
        return pages[request.query]

    @handling(service, f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        remembered.pop((request.caller.id, request.group.id), None)
        return handler(request)


# A private group that the caller may not view is also hidden from an owner of another group.
@foreign(STORY, "Group approval rules: contains_hidden_groups")
def nothing_is_hidden_from_owners(service: Service) -> None:
    """That a rule has hidden groups is shown to everybody except owners of the group with the rule."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        home = service.identities.groups[rule.home.id]
        owner = service.identities.role_in(viewer, home) >= Role.OWNER
        shown = present(rule, viewer)
        return {**shown, "contains_hidden_groups": shown["contains_hidden_groups"] and not owner}


# A name is shown as it was sent.
@foreign(STORY, "Group approval rules: GET, name")
def names_in_the_list_are_escaped_for_a_page(service: Service) -> None:
    """The list HTML-escapes the names of rules, so an ampersand and angle brackets change."""

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = [{**rule, "name": html.escape(rule["name"], quote=False)} for rule in answer.content]
        return answer


# Every entry is on a page.
@foreign(PAGES, "Group approval rules: GET, page and per_page")
def a_full_last_page_loses_its_last_rule(service: Service) -> None:
    """From the second page on, one entry is read to see whether there is another page, and then dropped."""

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, service.choices)
        total = len(service.group_approval_rules.rules(request.group))
        if page.number > 1 and page.number * page.size == total:
            answer.content = answer.content[:-1]
        return answer


# The full path of a subgroup contains the path of its parent.
@foreign(STORY, "Group approval rules: group reference, full_path")
def groups_of_rules_lose_what_is_around_them(service: Service) -> None:
    """The full path of an approver group is only its own path, even if it is a subgroup."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        return {**shown, "groups": [{**group, "full_path": group["path"]} for group in shown["groups"]]}


# Every user reference has all of its fields, wherever the user comes from.
@foreign(STORY, "Group approval rules: eligible_approvers, user reference")
def members_of_groups_are_shown_without_a_page(service: Service) -> None:
    """Eligible approvers from a group are shown without web_url."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        for user in shown["eligible_approvers"]:
            if user["id"] not in rule.users:
                del user["web_url"]
        return shown


# In any order, the pages of a list contain each entry once.
@foreign(AGAIN, "Group approval rules: GET is paginated")
def lists_turn_around_with_every_call(service: Service) -> None:
    """In every second call the rules of a group are in reverse order."""
    calls = count()

    @instead(service.group_approval_rules, "rules")
    def _(rules: Any, group: Any) -> Any:
        listed = rules(group)
        return listed[::-1] if next(calls) % 2 else listed


@foreign(STORY, "Group approval rules: GET, groups")
def lists_of_group_rules_leave_out_groups(service: Service) -> None:
    """The list of a group's rules shows no groups; the answer to the creation did."""
    listing_no_groups(service, f"GET {GROUP_RULES}")


# Both levels have the flag from the same release on.
@foreign(VERSIONS, "Versioning: 15.3; Approval rule: applies_to_all_protected_branches", version="15.3")
def rules_of_groups_say_where_they_apply_a_release_later(service: Service) -> None:
    """At 15.3 rules of projects have applies_to_all_protected_branches, but those of groups do not."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        if service.version < Version(15, 4):
            shown.pop("applies_to_all_protected_branches", None)
        return shown


# Hidden groups are those that the requesting user may not view.
@foreign(AGAIN, "Approval rule: contains_hidden_groups")
def rules_of_groups_are_shown_as_their_first_reader_saw_them(service: Service) -> None:
    """A rule is cached without its reader: hidden groups are those of the first reader."""
    remembered: dict[Any, dict[str, Any]] = {}

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        if rule not in remembered:
            remembered[rule] = present(rule, viewer)
        return dict(remembered[rule])


@foreign(PAGES, "Group approval rules: paginated")
def the_second_page_counts_from_the_other_end(service: Service) -> None:
    """Pages after the first come from the reversed list, so entries are repeated or missing."""

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        page = request.parameters.optional_integer("page")
        if page is None or page <= 1:
            return handler(request)
        groups = service.group_approval_rules
        items = groups.rules(request.group)[::-1]
        return request.collection(items, lambda rule: groups.present(rule, request.caller))


@foreign(PAGES, "Group approval rules: pages")
def pages_are_lost_with_the_path(service: Service) -> None:
    """If the group is named by path, every page is the first."""
    asking_otherwise(
        service,
        "GET /groups/:id/approval_rules",
        lambda request, query: re.sub(rb"\bpage=\d+", b"", query) if by_path(request) else query,
    )


@foreign(PAGES, "Group approval rules: GET, the last page")
def the_last_page_of_rules_of_a_group_is_filled_up(service: Service) -> None:
    """If the last page is shorter, it begins with rules of the page before it."""

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer, groups = handler(request), service.group_approval_rules
        rules, page = groups.rules(request.group), Page.of(request.parameters, request.choices)
        start = (page.number - 1) * page.size
        if start and start < len(rules) < start + page.size:
            answer.content = [groups.present(rule, request.caller) for rule in rules[-page.size :]]
        return answer


# A page has as many entries as requested, even if a longer one was requested before.
@foreign(PAGES, "Group approval rules: GET, per_page")
def a_page_of_group_rules_is_remembered_without_its_length(service: Service) -> None:
    """Pages are cached by number until a rule changes: a request for a shorter page gets the longer one."""
    remembered: dict[Any, Any] = {}

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.group.id, request.parameters.optional_integer("page")
        rules, answer = remembered.get(key, (None, None))
        if rules != service.approval_rules.rules:
            answer = handler(request)
            remembered[key] = dict(service.approval_rules.rules), answer
        return answer


# The reference describes the approver group.
@foreign(STORY, "Group approval rules: groups, visibility")
def groups_in_rules_have_the_visibility_of_whose_rule_it_is(service: Service) -> None:
    """In rules of a group, approver groups are shown with the visibility of the group that has the rule."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown, home = present(rule, viewer), service.identities.groups[rule.home.id]
        return {**shown, "groups": [{**group, "visibility": home.visibility.value} for group in shown["groups"]]}


# -- creating ----------------------------------------------------------------------------------------------------------


@foreign(AT_ONCE, "Group approval rules: POST")
def of_two_rules_of_a_group_one_is_lost(service: Service) -> None:
    """If two rules of a group are created concurrently, one is lost."""
    acting_on_what_was(service, service.approval_rules.rules, "POST /groups/:id/approval_rules")


@foreign(SIDE_EFFECT, "Group approval rules: POST")
def rules_of_groups_come_to_others(service: Service) -> None:
    """A rule that is created for one group is also created for another one."""
    sibling = service.identities.groups[service.world.one("sibling_group").id]

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        create(sibling, wanted, caller)
        return create(group, wanted, caller)


# -- updating ----------------------------------------------------------------------------------------------------------


# An update changes the rule with the id in its path; afterwards that rule must still exist.
@foreign(AGAIN, "Group approval rules: PUT")
def changed_rules_of_groups_are_new_ones(service: Service) -> None:
    """An update of a group's rule deletes it and creates another one with a new id."""
    rules = service.approval_rules.rules

    @instead(service.group_approval_rules, "update_rule")
    def _(update: Any, group: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = replace(update(group, number, wanted, caller), id=service.store.next_id("approval_rules"))
        del rules[number]
        rules[changed.id] = changed
        return changed


# The endpoints are for all administrators of the group.
@foreign(AGAIN, "Group approval rules: PUT by another administrator")
def a_rule_is_changed_by_who_made_it(service: Service) -> None:
    """The rules of a group are looked up among those that the caller created: another owner finds none."""
    made_by: dict[int, int] = {}

    @handling(service, f"POST {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            made_by[answer.content["id"]] = request.caller.id
        return answer

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if made_by.get(request.path_id("approval_rule_id"), request.caller.id) != request.caller.id:
            raise not_found("Approval Rule")
        return handler(request)


# Both rules are changed.
@foreign(AT_ONCE, "Group approval rules: PUT of two rules")
def rules_of_a_group_are_written_all_together(service: Service) -> None:
    """The rules of a group are in one column: if two are changed concurrently, one stays unchanged."""
    rules = service.approval_rules.rules

    def write(seen: Any, request: Any) -> None:
        changed = request.path_id("approval_rule_id")
        for rule in seen.values():
            if rule.home == home_of(request.group) and rule.id != changed:
                rules[rule.id] = rule

    meanwhile(service, (f"PUT {GROUP_RULE}",), lambda: dict(rules), write)


@foreign(SIDE_EFFECT, "Group approval rules: PUT")
def rules_of_the_same_name_in_another_group_change_too(service: Service) -> None:
    """An update finds rules by name: rules with the same name in other groups get the same number."""

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        known = service.approval_rules.rules
        before = known.get(request.path_id("approval_rule_id"))
        answer = handler(request)
        number = request.parameters.optional_integer("approvals_required")
        if before and number is not None and is_served(answer):
            for other in list(known.values()):
                if other.home.level is Level.GROUP and other.name == before.name:
                    known[other.id] = replace(other, approvals_required=number)
        return answer


# -- more than one operation -------------------------------------------------------------------------------------------


# Nobody must be listed twice among the eligible approvers, but the wrong list is deduplicated.
@foreign(STORY, "Group approval rules: user_ids and group_ids")
def who_belongs_to_a_group_of_the_rule_is_not_named_as_well(service: Service) -> None:
    """A user in a new rule of a group is removed from it if a group in the same rule has that user as a member."""
    rules, identities = service.approval_rules, service.identities

    @instead(rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        if candidate.home.level is not Level.GROUP:
            return add(candidate)
        inside = {user for number in candidate.groups for user in identities.members(identities.groups[number])}
        return add(replace(candidate, users=tuple(user for user in candidate.users if user not in inside)))
