"""What responses show of the approval rules of a merge request, page by page and version by version."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import LAST_OF_THREE_BYTES, answering, listing_no_groups
from conformance.proof.foreign.dimensions import PAGES, STORY, VERSIONS
from conformance.proof.foreign.paths import MERGE_REQUEST_RULE, MERGE_REQUEST_RULES
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import Level, home_of
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.http import Page
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading -----------------------------------------------------------------------------------------------------------


# The full path starts with the top-level group.
@foreign(STORY, "Group reference: full_path")
def nested_groups_of_merge_request_rules_tell_their_last_segment_as_full_path(service: Service) -> None:
    """In rules of merge requests, the full_path of a subgroup is only its own path."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        shown["groups"] = [{**group, "full_path": group["path"]} for group in shown["groups"]]
        return shown


# The page is cut from the result of the query, which is filtered by merge request afterwards.
@foreign(PAGES, "Merge request approvals: GET approval_rules, paginated")
def pages_are_cut_before_rules_are_picked(service: Service) -> None:
    """A page of a merge request's rules is cut from the rules of all merge requests of the project."""

    @handling(service, f"GET {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        merge_request, page = merge_request_of(request), Page.of(request.parameters, request.choices)
        answer = handler(request)
        rules = service.merge_request_approval_rules
        known = service.repositories.merge_requests.values()
        homes = {home_of(one) for one in known if one.project_id == merge_request.project_id}
        of_all = [rule for rule in service.approval_rules.rules.values() if rule.home in homes]
        start = (page.number - 1) * page.size
        cut = [rule for rule in of_all[start : start + page.size] if rule.home == home_of(merge_request)]
        answer.content = [rules.present(rule, merge_request, request.caller) for rule in cut]
        return answer


@foreign(STORY, "Merge request approvals: GET of the rules, groups")
def lists_of_own_rules_leave_out_groups(service: Service) -> None:
    """The list of a merge request's rules shows no groups; the single rule does."""
    listing_no_groups(service, f"GET {MERGE_REQUEST_RULES}")


@foreign(PAGES, "Merge request approvals: GET of the rules is paginated")
def later_pages_are_of_usual_size(service: Service) -> None:
    """per_page counts only for the first page; later pages have all other entries."""

    @handling(service, f"GET {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer, rules = handler(request), service.merge_request_approval_rules
        page = request.parameters.optional_integer("page") or 1
        size = request.parameters.optional_integer("per_page") or 20
        if page > 1:
            found = service.repositories.merge_requests[request.project.id, int(request.path["merge_request_iid"])]
            listed = rules.listed(found)[(page - 1) * size :]
            answer.content = [rules.present(rule, found, request.caller) for rule in listed]
        return answer


# Of three levels of rules, the third one got pagination with the next release.
@foreign(VERSIONS, "Versioning: 15.3", version="15.3")
def rules_of_merge_requests_are_paged_a_release_later(service: Service) -> None:
    """At 15.3 the list of a merge request's rules is not paginated."""
    service.routes.change(f"GET {MERGE_REQUEST_RULES}", paginated=Version(15, 4))


# Many rules require the same number, and nothing else defines their order.
@foreign(PAGES, "Common conventions: page and per_page")
def rules_that_require_the_same_change_places_between_pages(service: Service) -> None:
    """The rules of a merge request are ordered by their number, and equal ones have another order on even pages."""
    rules = service.merge_request_approval_rules

    @handling(service, f"GET {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        even = Page.of(request.parameters, service.choices).number % 2 == 0
        listed = rules.listed
        rules.listed = lambda merge_request: sorted(
            listed(merge_request), key=lambda rule: (rule.approvals_required, -rule.id if even else rule.id)
        )
        try:
            return handler(request)
        finally:
            rules.listed = listed


@foreign(PAGES, "Merge request approvals: approval_rules, paginated")
def pages_are_cut_before_rules_of_others_are_left_out(service: Service) -> None:
    """A page is cut from the rules of all merge requests of the project, and then filtered."""

    @handling(service, f"GET {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        size = request.parameters.optional_integer("per_page")
        if size is None or size < 1:
            return handler(request)
        number = max(1, request.parameters.optional_integer("page") or 1)
        rules, known = service.merge_request_approval_rules, service.repositories.merge_requests
        of_project = [one for one in known.values() if one.project_id == request.project.id]
        everything = [rule for one in of_project for rule in rules.rules(one)]
        page = sorted(rule.id for rule in everything)[(number - 1) * size : number * size]
        request.parameters._values = {}
        answer = handler(request)
        answer.content = [shown for shown in answer.content if shown["id"] in page]
        return answer


@foreign(STORY, "Merge request approvals: rules, groups, full_path")
def a_nested_group_has_half_a_path_in_rules_of_merge_requests(service: Service) -> None:
    """In a rule of a merge request, the full path of a subgroup lacks its parent groups."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        for group in shown["groups"]:
            group["full_path"] = group["path"]
        return shown


@foreign(PAGES, "Merge request approvals: GET of rules, order across pages")
def later_pages_of_rules_of_a_merge_request_count_from_the_end(service: Service) -> None:
    """All pages except the first have the rules in reverse order: some are repeated, and some are missing."""
    area = service.merge_request_approval_rules

    @handling(service, f"GET {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, request.choices)
        merge_request = merge_request_of(request)
        if page.number > 1:
            start = (page.number - 1) * page.size
            rules = area.listed(merge_request)[::-1][start : start + page.size]
            answer.content = [area.present(rule, merge_request, request.caller) for rule in rules]
        return answer


# Every rule is on a page, however many there are.
@foreign(PAGES, "Merge request approvals: GET approval_rules, pages")
def rules_beyond_the_twentieth_are_on_no_page(service: Service) -> None:
    """The query has its default limit of twenty, and pages are cut from its result."""

    @instead(service.merge_request_approval_rules, "listed")
    def _(listed: Any, merge_request: Any) -> Any:
        return listed(merge_request)[:20]


# -- creating and copying ----------------------------------------------------------------------------------------------


@foreign(STORY, "Merge request approvals: rules")
def copies_require_what_their_source_does(service: Service) -> None:
    """A copy of a project rule requires as many approvals as its source, and not the number that was sent."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        return replace(copied(merge_request, source, wanted), approvals_required=source.approvals_required)


# The object is looked up by id, and if it is not found, the id remains.
@foreign(STORY, "Approval rule: source_rule")
def a_source_that_is_gone_is_a_number(service: Service) -> None:
    """After the project rule was deleted, source_rule of its copy is a number; it must be an object or null."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if rule.source_id is not None and shown["source_rule"] is None:
            shown["source_rule"] = rule.source_id
        return shown


@foreign(STORY, "Approval rule: name")
def rare_letters_are_lost_in_names_of_merge_request_rules(service: Service) -> None:
    """Characters of four bytes become question marks in the name of a merge request's rule."""

    @instead(service.approval_rules, "add_rule")
    def _(add_rule: Any, candidate: Any) -> Any:
        if candidate.home.level is Level.MERGE_REQUEST:
            name = "".join("?" if ord(letter) > LAST_OF_THREE_BYTES else letter for letter in candidate.name)
            candidate = replace(candidate, name=name)
        return add_rule(candidate)


@foreign(STORY, "Merge request approvals: Rules, 1")
def the_answer_to_a_copy_tells_the_number_of_the_project(service: Service) -> None:
    """The number that was sent is stored, but the answer to the creation shows that of the project rule."""

    @handling(service, f"POST {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        source = request.parameters.optional_integer("approval_project_rule_id")
        if is_served(answer) and source is not None:
            answer.content["approvals_required"] = service.approval_rules.rules[source].approvals_required
        return answer


# -- updating ----------------------------------------------------------------------------------------------------------


# The answer shows the rule after the update.
@foreign(STORY, "Merge request approvals: PUT of a rule, answer")
def an_updated_rule_is_shown_with_its_former_groups(service: Service) -> None:
    """The groups are loaded before the update, so its answer shows the former ones."""
    rules, own = service.approval_rules, service.merge_request_approval_rules

    @handling(service, f"PUT {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        before = own.find(merge_request_of(request), request.path_id("approval_rule_id"))
        answer = handler(request)
        answer.content["groups"] = rules.present(before, request.caller)["groups"]
        return answer


# The creation got the new parameter, and the update was forgotten.
@foreign(VERSIONS, "Versioning: 15.8", version="15.8")
def usernames_change_merge_requests_a_release_later(service: Service) -> None:
    """At 15.8 an update of a merge request's rule ignores usernames; its creation accepts them."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        if service.version < Version(15, 9):
            wanted = replace(wanted, usernames=None)
        return update(merge_request, number, wanted, caller)


# From 15.8 on, usernames are accepted wherever they are described.
@foreign(VERSIONS, "Versioning: 15.8", version="15.8")
def usernames_come_to_updates_a_version_later(service: Service) -> None:
    """At 15.8 an update of a rule of a merge request ignores usernames; a creation accepts them."""

    @handling(service, "PUT /projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = {name: value for name, value in values.items() if name != "usernames"}
        return handler(request)


@foreign(VERSIONS, "Merge request approvals: PUT of a rule, usernames", version="15.8")
def usernames_are_not_taken_when_a_rule_of_a_merge_request_changes(service: Service) -> None:
    """At the first version with usernames, the creation of a rule accepts them, but its update ignores them."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        return update(merge_request, number, replace(wanted, usernames=None), caller)


# All rules of merge requests have the field.
@foreign(STORY, "Merge request approvals: PUT of a rule, overridden")
def an_updated_rule_does_not_say_whether_it_is_overridden(service: Service) -> None:
    """The answer to an update of a merge request's rule has the form of a project rule, without overridden."""

    def change(_: Any, rule: Any) -> Any:
        return {name: value for name, value in rule.items() if name != "overridden"}

    answering(service, f"PUT {MERGE_REQUEST_RULE}", change)
