"""What an approval rule of a group may contain, and in which form it is sent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

from conformance.proof.foreign.changes import cutting_a_list, without_parameters
from conformance.proof.foreign.dimensions import COUNT, FORM_SENT, NEIGHBOUR
from conformance.proof.foreign.paths import GROUP_RULE, GROUP_RULES
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.errors import InvalidError
from conformance.reference.parameters import Text, read_query

if TYPE_CHECKING:
    from conformance.reference import Service


# -- listing -----------------------------------------------------------------------------------------------------------


# Several groups may be approvers, and any of them may be hidden.
@foreign(COUNT, "Approval rule: contains_hidden_groups")
def only_the_first_group_of_a_group_rule_is_looked_at_for_being_hidden(service: Service) -> None:
    """A rule of a group whose second group is hidden from the reader says that it contains no hidden groups."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        first = replace(rule, groups=rule.groups[:1])
        hidden = bool(service.approval_rules.hidden_groups(first, viewer))
        return {**present(rule, viewer), "contains_hidden_groups": hidden}


# -- creating ----------------------------------------------------------------------------------------------------------


# Both lists may be sent in one call, and both name approvers.
@foreign(NEIGHBOUR, "Group approval rules: POST, user_ids and group_ids")
def beside_users_groups_do_not_count(service: Service) -> None:
    """A new rule of a group with users and groups gets no groups."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        return create(group, replace(wanted, group_ids=None) if wanted.user_ids else wanted, caller)


# All users and groups that are sent are in the rule.
@foreign(COUNT, "Group approval rules: user_ids and group_ids")
def users_are_left_out_when_their_group_is_named(service: Service) -> None:
    """A user who belongs to a group of the rule is not stored as one of its users."""
    rules, identities = service.approval_rules, service.identities

    def add(add_rule: Any, candidate: Any) -> Any:
        inside = {user for number in candidate.groups for user in identities.members(identities.groups[number])}
        return add_rule(replace(candidate, users=tuple(n for n in candidate.users if n not in inside)))

    @handling(service, f"POST {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        kept, rules.add_rule = rules.add_rule, partial(add, rules.add_rule)
        try:
            return handler(request)
        finally:
            rules.add_rule = kept


# A created rule is one of the group's rules.
@foreign(FORM_SENT, "Group approval rules: rule_type on creation")
def rules_of_no_said_type_are_not_listed(service: Service) -> None:
    """The list filters by type, and a rule that was created without rule_type is missing there."""
    untyped = set[int]()

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        rule = create(group, wanted, caller)
        if wanted.rule_type is None:
            untyped.add(rule.id)
        return rule

    @instead(service.group_approval_rules, "rules")
    def _(rules: Any, group: Any) -> Any:
        return [rule for rule in rules(group) if rule.id not in untyped]


# -- updating ----------------------------------------------------------------------------------------------------------


# Parameters may be sent in the query, and an update has five of them.
@foreign(FORM_SENT, "Group approval rules: PUT, parameters in the query")
def an_update_of_a_group_rule_takes_its_number_from_the_body_alone(service: Service) -> None:
    """An update in the query changes the name, but ignores approvals_required."""

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if "approvals_required" in read_query(request.query):
            without_parameters(request, "approvals_required")
        return handler(request)


# The table lists approval_rule_id as a required parameter of the update.
@foreign(FORM_SENT, "Group approval rules: PUT, approval_rule_id")
def an_update_of_a_group_rule_may_not_repeat_its_id(service: Service) -> None:
    """An update whose body contains the approval_rule_id of its path is refused because of an unknown parameter."""

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("approval_rule_id"):
            raise InvalidError("approval_rule_id is not permitted", parameter="approval_rule_id")
        return handler(request)


@foreign(FORM_SENT, "Group approval rules: PUT, parameters may be sent in the query")
def updates_in_the_query_do_nothing(service: Service) -> None:
    """Parameters of an update in the query are ignored; they count as much as in the body."""

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        request.query = b""
        return handler(request)


# The name is stored as it was sent.
@foreign(NEIGHBOUR, "Group approval rules: PUT, name")
def another_name_is_made_safe_for_pages(service: Service) -> None:
    """The new name of a rule is stored HTML-escaped: `&` as `&amp;`."""

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if isinstance(values.get("name"), str):
            request.parameters._values = {**values, "name": escape(values["name"], quote=False)}
        return handler(request)


# Sending the current type changes nothing.
@foreign(FORM_SENT, "Group approval rules: PUT, rule_type")
def the_type_that_an_update_repeats_is_off_by_one(service: Service) -> None:
    """The type in an update is stored by its number, which is counted from one here and from zero elsewhere."""

    @instead(service.group_approval_rules, "update_rule")
    def _(update: Any, group: Any, number: int, wanted: Any, caller: Any) -> Any:
        rule = update(group, number, wanted, caller)
        if wanted.rule_type is RuleType.REGULAR:
            rule = service.approval_rules.rules[rule.id] = replace(rule, rule_type=RuleType.ANY_APPROVER)
        return rule


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(COUNT, "Group approval rules: group_ids")
def of_two_groups_the_first_counts(service: Service) -> None:
    """Of the groups in a new rule of a group, only the first is stored."""
    cutting_a_list(service, "group_ids", lambda values: values[:1], "group")


# Values in the query are encoded once.
@foreign(FORM_SENT, "Group approval rules: parameters may be sent as query parameters")
def names_in_the_query_are_decoded_twice(service: Service) -> None:
    """A name in the query is decoded by the router, and again by the handler."""

    @handling(service, f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        name = read_query(request.query).get("name")
        if name is not None:
            request.parameters._values = {**request.parameters._values, "name": unquote_plus(str(name))}
        return handler(request)


# A parameter in the query is the same text as in a body.
@foreign(FORM_SENT, "Group approval rules: parameters in the query")
def names_in_a_query_are_read_byte_by_byte(service: Service) -> None:
    """The name of a rule in the query is decoded as Latin-1: each non-ASCII character becomes two."""

    @handling(service, f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if b"name=" in request.query and isinstance(values.get("name"), str):
            mangled = values["name"].encode().decode("latin-1")
            request.parameters._values = {**values, "name": mangled}
        return handler(request)


# A parameter in the query is the text that was encoded.
@foreign(FORM_SENT, "Group approval rules: parameters in the query")
def rules_of_groups_decode_the_query_twice(service: Service) -> None:
    """The decoded query is decoded again: a name with a percent sign changes."""

    @handling(service, f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = {
            name: Text(unquote(value)) if isinstance(value, Text) else value for name, value in values.items()
        }
        return handler(request)


# The query is UTF-8, like everything else.
@foreign(FORM_SENT, "Group approval rules: parameters in the query")
def letters_of_the_query_are_two_letters(service: Service) -> None:
    """A name in the query is decoded byte by byte, so each non-ASCII character becomes two."""

    @handling(service, f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if b"name=" in request.query:
            name = str(values["name"]).encode().decode("latin-1")
            request.parameters._values = {**values, "name": name}
        return handler(request)
