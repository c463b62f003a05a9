"""What an approval rule of a merge request may contain, and what of it is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import LAST_OF_THREE_BYTES, cutting_a_list
from conformance.proof.foreign.dimensions import COUNT, FORM_SENT, NEIGHBOUR, OLDER
from conformance.proof.foreign.paths import MERGE_REQUEST_RULE, MERGE_REQUEST_RULES
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import Level, home_of
from conformance.reference.http import ok

if TYPE_CHECKING:
    from conformance.reference import Service

_INTEGER_MAX = 2**31 - 1


# -- reading -----------------------------------------------------------------------------------------------------------


# The list is as long as requested, whichever page is requested.
@foreign(FORM_SENT, "Merge request approvals: approval_rules, per_page")
def only_numbered_pages_have_a_length(service: Service) -> None:
    """per_page counts only together with page: without page, all rules of a merge request are returned."""

    @handling(service, f"GET {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        if b"page=" not in request.query.replace(b"per_page=", b""):
            request.query = b""
        return handler(request)


@foreign(OLDER, "Merge request approvals: GET one rule")
def the_newest_rule_is_read(service: Service) -> None:
    """Reading one of several rules of a merge request shows the newest, whichever is requested."""

    @instead(service.merge_request_approval_rules, "find_listed")
    def _(find: Any, merge_request: Any, number: int) -> Any:
        found = find(merge_request, number)
        return (service.merge_request_approval_rules.own_rules(merge_request) or [found])[-1]


# contains_hidden_groups is a field of rules at all levels.
@foreign(NEIGHBOUR, "Merge request approvals: contains_hidden_groups")
def rules_of_merge_requests_hide_nothing(service: Service) -> None:
    """A merge request's rule with a hidden group says that it contains none."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        return {**present(rule, merge_request, viewer), "contains_hidden_groups": False}


# The column for ids is smaller than the numbers that a client may send.
@foreign(NEIGHBOUR, "Merge request approvals: approval_rule_id")
def large_ids_of_rules_break_the_service(service: Service) -> None:
    """Reading a merge request's rule with an id beyond 32 bits is answered with a server error."""

    @handling(service, f"GET {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if request.path_id("approval_rule_id") > _INTEGER_MAX:
            return ok({"message": "500 Internal Server Error"}, 500)
        return handler(request)


# -- creating and copying ----------------------------------------------------------------------------------------------


# The users and groups of the project rule are copied, however many there are.
@foreign(COUNT, "Merge request approvals: Rules, 1")
def copies_take_one_group(service: Service) -> None:
    """A copy of a project rule has only the first of its groups."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        copy = copied(merge_request, source, wanted)
        return replace(copy, groups=copy.groups[:1])


@foreign(OLDER, "Merge request approvals: POST of a rule")
def the_second_rule_replaces_the_first(service: Service) -> None:
    """A merge request can have one rule of its own: a second one replaces the first."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        older = service.merge_request_approval_rules.own_rules(merge_request)
        rule = create(merge_request, wanted, source_id, caller)
        for one in older:
            service.approval_rules.delete_rule(one)
        return rule


@foreign(COUNT, "Merge request approvals: POST of a rule")
def who_is_named_by_id_and_by_username_is_left_out(service: Service) -> None:
    """A user in both of two lists that must be combined is not a user of the new rule."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        by_id = {service.identities.users[n].username for n in wanted.user_ids or () if n in service.identities.users}
        twice = by_id & {*(wanted.usernames or ())}
        ids = {service.identities.find_username(name).id for name in twice}  # type: ignore[union-attr] # they are known
        if ids:
            wanted = replace(
                wanted,
                user_ids=tuple(number for number in wanted.user_ids if number not in ids),
                usernames=tuple(name for name in wanted.usernames if name not in twice),
            )
        return create(merge_request, wanted, source_id, caller)


@foreign(NEIGHBOUR, "Merge request approvals: POST of a rule")
def a_copy_asks_for_no_fewer_than_its_source(service: Service) -> None:
    """A copy of a project rule with a smaller number requires as many approvals as the project rule."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        rule = copied(merge_request, source, wanted)
        return replace(rule, approvals_required=max(rule.approvals_required, source.approvals_required))


@foreign(COUNT, "Merge request approvals: POST of a rule")
def of_two_groups_a_copy_gets_one(service: Service) -> None:
    """A copy of a project rule with two groups has only the first of them."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        return replace(copied(merge_request, source, wanted), groups=source.groups[:1])


# A list that names a group twice is accepted or refused.
@foreign(COUNT, "Merge request approvals: POST approval_rules, group_ids")
def a_group_that_is_named_twice_breaks_a_new_rule(service: Service) -> None:
    """The ids of groups are inserted as sent: a repeated one violates a constraint and is answered with 500."""

    @handling(service, f"POST {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        ids = request.parameters.optional_integers("group_ids") or ()
        return handler(request) if len({*ids}) == len(ids) else ok({"error": "duplicate key value"}, 500)


# -- updating ----------------------------------------------------------------------------------------------------------


# No parameter changes a rule of the system.
@foreign(FORM_SENT, "Merge request approvals: Rules, 3")
def rules_of_the_system_take_another_name(service: Service) -> None:
    """A code owner rule refuses another number of approvals, but accepts another name."""
    rules = service.merge_request_approval_rules

    @handling(service, f"PUT {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if set(request.parameters._values) != {"name"}:
            return handler(request)
        kept, rules.require_changeable = rules.require_changeable, lambda _: None
        try:
            return handler(request)
        finally:
            rules.require_changeable = kept


# A column with three bytes for each character stores what comes before the first one of four.
@foreign(NEIGHBOUR, "Merge request approvals: PUT approval rule, name")
def a_new_name_ends_where_a_character_takes_four_bytes(service: Service) -> None:
    """The name in an update is cut before the first character outside the basic plane."""

    @handling(service, f"PUT {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        name = request.parameters.optional_string("name") or ""
        wide = next((place for place, sign in enumerate(name) if ord(sign) > LAST_OF_THREE_BYTES), 0)
        if wide:
            request.parameters._values = {**request.parameters._values, "name": name[:wide]}
        return handler(request)


# usernames were added to the update later, next to the code that removes users.
@foreign(FORM_SENT, "Merge request approvals: Rules, 2")
def usernames_only_add_to_merge_request_rules(service: Service) -> None:
    """An update of a merge request's rule with usernames keeps the former approvers."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        before = service.approval_rules.rules.get(number)
        if wanted.usernames and before is not None and before.home == home_of(merge_request):
            wanted = replace(wanted, user_ids=(*(wanted.user_ids or ()), *before.users))
        return update(merge_request, number, wanted, caller)


# The database column has three bytes for each character.
@foreign(NEIGHBOUR, "Merge request approvals: PUT approval_rules, name")
def rare_letters_are_lost_on_renaming(service: Service) -> None:
    """Characters outside the basic plane of Unicode become question marks when a merge request's rule is renamed."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        if wanted.name is not None:
            name = "".join("?" if ord(letter) > LAST_OF_THREE_BYTES else letter for letter in wanted.name)
            wanted = replace(wanted, name=name)
        return update(merge_request, number, wanted, caller)


@foreign(FORM_SENT, "Merge request approvals: PUT of a rule, usernames")
def usernames_are_for_new_rules(service: Service) -> None:
    """An update of a merge request's rule ignores usernames."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.home.level is Level.MERGE_REQUEST:
            wanted = replace(wanted, usernames=None)
        return after(rule, wanted, subject)


@foreign(FORM_SENT, "Merge request approvals: PUT, user_ids, usernames")
def an_empty_list_of_ids_outweighs_usernames(service: Service) -> None:
    """An update of a merge request's rule with an empty user_ids removes all users, even if usernames are sent."""

    @instead(service.approval_rules, "users_after")
    def _(users_after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.home.level is Level.MERGE_REQUEST and wanted.user_ids == ():
            return ()
        return users_after(rule, wanted, subject)


# The number that is sent is stored.
@foreign(NEIGHBOUR, "Merge request approvals: PUT approval_rules, approvals_required")
def rules_of_merge_requests_only_get_stricter(service: Service) -> None:
    """A smaller number than before is answered with success, but not stored."""
    rules = service.merge_request_approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = rules.find(merge_request, number).approvals_required
        if wanted.approvals_required is not None:
            wanted = replace(wanted, approvals_required=max(before, wanted.approvals_required))
        return update(merge_request, number, wanted, caller)


# -- deleting ----------------------------------------------------------------------------------------------------------


@foreign(OLDER, "Merge request approvals: DELETE of a rule")
def deleting_the_older_rule_deletes_the_newer(service: Service) -> None:
    """Deleting the older of two rules of a merge request deletes the newer one."""

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        service.merge_request_approval_rules.find(merge_request, number)
        delete(merge_request, service.merge_request_approval_rules.own_rules(merge_request)[-1].id)


@foreign(OLDER, "Merge request approvals: DELETE of a rule, another with the same users")
def the_older_of_two_rules_loses_its_users_with_the_newer(service: Service) -> None:
    """If two rules have the same users and the newer one is deleted, the older one loses its users."""
    rules = service.approval_rules.rules

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        for other in list(rules.values()):
            if other.home == rule.home and other.users == rule.users and other.id < rule.id:
                rules[other.id] = replace(other, users=())


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(COUNT, "Merge request approvals: usernames")
def of_two_usernames_the_last_counts(service: Service) -> None:
    """Of the usernames in a new rule of a merge request, only the last is stored."""
    cutting_a_list(service, "usernames", lambda values: values[-1:], "merge request")


# Users named in usernames are approvers.
@foreign(COUNT, "Merge request approvals: usernames beside user_ids")
def an_empty_list_of_ids_clears_the_usernames_too(service: Service) -> None:
    """An empty user_ids counts as a wish to have no users, although usernames names some."""
    rules = service.merge_request_approval_rules

    @instead(rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, *rest: Any) -> Any:
        names = None if wanted.user_ids == () else wanted.usernames
        return create(merge_request, replace(wanted, usernames=names), *rest)

    @instead(rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        names = None if wanted.user_ids == () else wanted.usernames
        return update(merge_request, number, replace(wanted, usernames=names), caller)


@foreign(NEIGHBOUR, "Merge request approvals: approval_rule_id")
def ids_beyond_31_bits_break(service: Service) -> None:
    """Looking up a rule of a merge request with an id beyond 31 bits causes a server error."""

    @instead(service.merge_request_approval_rules, "find")
    def _(find: Any, merge_request: Any, number: int) -> Any:
        if number >= 2**31:
            raise OverflowError(number)
        return find(merge_request, number)
