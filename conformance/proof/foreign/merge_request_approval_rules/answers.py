"""What answers say of the approval rules of a merge request, page by page and version by version."""

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


# The full path is that from the outermost group on.
@foreign(STORY, "Group reference: full_path")
def nested_groups_of_merge_request_rules_tell_their_last_segment_as_full_path(service: Service) -> None:
    """In rules of merge requests the full_path of a group that lies in another one is its path."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        shown["groups"] = [{**group, "full_path": group["path"]} for group in shown["groups"]]
        return shown


# The page is cut from what the query found, and the merge request looked at afterwards.
@foreign(PAGES, "Merge request approvals: GET approval_rules, paginated")
def pages_are_cut_before_rules_are_picked(service: Service) -> None:
    """A page of a merge request's rules is one of the rules of all merge requests of the project."""

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
    """per_page counts for the first page alone; later ones hold all that is left."""

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


# Three levels of rules, and the third one got its pages with the next release.
@foreign(VERSIONS, "Versioning: 15.3", version="15.3")
def rules_of_merge_requests_are_paged_a_release_later(service: Service) -> None:
    """At 15.3 the list of a merge request's rules is sent as a whole, whatever page was asked for."""
    service.routes.change(f"GET {MERGE_REQUEST_RULES}", paginated=Version(15, 4))


# Many rules require as much as others, and nothing else says which of them comes first.
@foreign(PAGES, "Common conventions: page and per_page")
def rules_that_require_the_same_change_places_between_pages(service: Service) -> None:
    """The rules of a merge request are ordered by their number, and equal ones come in another order on even pages."""
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
    """A page is cut from the rules of all merge requests of the project, and then narrowed down to the one."""

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
    """The full path of a group in a rule of a merge request lacks the groups that it lies in."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        for group in shown["groups"]:
            group["full_path"] = group["path"]
        return shown


@foreign(PAGES, "Merge request approvals: GET of rules, order across pages")
def later_pages_of_rules_of_a_merge_request_count_from_the_end(service: Service) -> None:
    """All pages but the first have the rules in the other order: some stand twice in a walk, and some nowhere."""
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


# All rules are on some page, however many there are.
@foreign(PAGES, "Merge request approvals: GET approval_rules, pages")
def rules_beyond_the_twentieth_are_on_no_page(service: Service) -> None:
    """The query has its usual limit of twenty, and pages are cut from what it found."""

    @instead(service.merge_request_approval_rules, "listed")
    def _(listed: Any, merge_request: Any) -> Any:
        return listed(merge_request)[:20]


# -- creating and copying ----------------------------------------------------------------------------------------------


@foreign(STORY, "Merge request approvals: rules")
def copies_require_what_their_source_does(service: Service) -> None:
    """A rule that is copied from the project requires as many approvals as its source, and not what was sent."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        return replace(copied(merge_request, source, wanted), approvals_required=source.approvals_required)


# The object is looked up by the id, and the id is what remains where it is not found.
@foreign(STORY, "Approval rule: source_rule")
def a_source_that_is_gone_is_a_number(service: Service) -> None:
    """After the project rule was deleted its copy has a number as source_rule, which is an object or null."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if rule.source_id is not None and shown["source_rule"] is None:
            shown["source_rule"] = rule.source_id
        return shown


@foreign(STORY, "Approval rule: name")
def rare_letters_are_lost_in_names_of_merge_request_rules(service: Service) -> None:
    """Letters that take four bytes become question marks in the name of a merge request's rule."""

    @instead(service.approval_rules, "add_rule")
    def _(add_rule: Any, candidate: Any) -> Any:
        if candidate.home.level is Level.MERGE_REQUEST:
            name = "".join("?" if ord(letter) > LAST_OF_THREE_BYTES else letter for letter in candidate.name)
            candidate = replace(candidate, name=name)
        return add_rule(candidate)


@foreign(STORY, "Merge request approvals: Rules, 1")
def the_answer_to_a_copy_tells_the_number_of_the_project(service: Service) -> None:
    """The number that was sent is stored, and the answer to the creation shows that of the project rule."""

    @handling(service, f"POST {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        source = request.parameters.optional_integer("approval_project_rule_id")
        if is_served(answer) and source is not None:
            answer.content["approvals_required"] = service.approval_rules.rules[source].approvals_required
        return answer


# -- updating ----------------------------------------------------------------------------------------------------------


# The answer shows the rule as it is after the update.
@foreign(STORY, "Merge request approvals: PUT of a rule, answer")
def an_updated_rule_is_shown_with_its_former_groups(service: Service) -> None:
    """The groups are loaded before the update, and shown as they were: only the next reader sees the new ones."""
    rules, own = service.approval_rules, service.merge_request_approval_rules

    @handling(service, f"PUT {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        before = own.find(merge_request_of(request), request.path_id("approval_rule_id"))
        answer = handler(request)
        answer.content["groups"] = rules.present(before, request.caller)["groups"]
        return answer


# Creating took the new parameter, and changing was forgotten.
@foreign(VERSIONS, "Versioning: 15.8", version="15.8")
def usernames_change_merge_requests_a_release_later(service: Service) -> None:
    """At 15.8 an update of a merge request's rule passes over usernames; its creation takes them."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        if service.version < Version(15, 9):
            wanted = replace(wanted, usernames=None)
        return update(merge_request, number, wanted, caller)


# From 15.8 on usernames are taken wherever they are described.
@foreign(VERSIONS, "Versioning: 15.8", version="15.8")
def usernames_come_to_updates_a_version_later(service: Service) -> None:
    """At 15.8 an update of a rule of a merge request passes over usernames; creations take them."""

    @handling(service, "PUT /projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = {name: value for name, value in values.items() if name != "usernames"}
        return handler(request)


@foreign(VERSIONS, "Merge request approvals: PUT of a rule, usernames", version="15.8")
def usernames_are_not_taken_when_a_rule_of_a_merge_request_changes(service: Service) -> None:
    """At the first version with usernames they are taken when a rule is made, and passed over when it is changed."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        return update(merge_request, number, replace(wanted, usernames=None), caller)


# All rules of merge requests say it.
@foreign(STORY, "Merge request approvals: PUT of a rule, overridden")
def an_updated_rule_does_not_say_whether_it_is_overridden(service: Service) -> None:
    """The answer to an update of a merge request's rule is written like that of a project, without overridden."""

    def change(_: Any, rule: Any) -> Any:
        return {name: value for name, value in rule.items() if name != "overridden"}

    answering(service, f"PUT {MERGE_REQUEST_RULE}", change)
