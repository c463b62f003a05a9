"""Plausible faults in approval rules of groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from conformance.proof.foreign.changes import with_parameters
from conformance.proof.foreign.dimensions import (
    CALLER_AND_FORM,
    COUNT,
    FORM_SENT,
    NEIGHBOUR,
    PAGES,
    REFUSED,
)
from conformance.proof.foreign.paths import GROUP_RULE, GROUP_RULES
from conformance.proof.foreign.registry import by_path, foreign, handling, instead
from conformance.reference.errors import InvalidError
from conformance.reference.parameters import Text

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(COUNT, "Group approval rules: POST with group_ids")
def groups_of_a_new_group_rule_need_users_beside_them(service: Service) -> None:
    """group_ids of a new rule are passed over if no user_ids are sent."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        return create(group, wanted if wanted.user_ids else replace(wanted, group_ids=None), caller)


@foreign(FORM_SENT, "Group approval rules: POST with query parameters")
def the_query_of_a_group_rule_is_read_as_latin_1(service: Service) -> None:
    """A name that is sent as a query parameter is read as Latin-1: letters beyond ASCII come out as two."""

    @handling(service, f"POST {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        for part in request.query.split(b"&"):
            name, _, value = part.partition(b"=")
            if name == b"name":
                text = unquote_to_bytes(value.replace(b"+", b" ")).decode("latin-1")
                with_parameters(request, {"name": Text(text)})
        return handler(request)


@foreign(CALLER_AND_FORM, "Group approval rules: GET by a nested path")
def rules_of_a_nested_group_are_those_of_the_outermost(service: Service) -> None:
    """For a group that is named by a path of several segments, the rules of the first segment are listed."""

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        if by_path(request) and "/" in request.path["id"]:
            request.admit(request.caller, service.identities.lineage(request.group)[-1])
        return handler(request)


@foreign(FORM_SENT, "Group approval rules: POST, query decoded twice")
def queries_are_decoded_twice(service: Service) -> None:
    """A plus in a name from the query, sent as %2B, becomes a space."""

    @handling(service, f"POST {GROUP_RULES}", f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        name = request.parameters._values.get("name")
        if request.query and isinstance(name, str):
            request.parameters._values = {**request.parameters._values, "name": type(name)(name.replace("+", " "))}
        return handler(request)


@foreign(REFUSED, "Group approval rules: PUT, name beside an invalid number")
def the_name_of_a_refused_group_update_is_kept(service: Service) -> None:
    """An update of a group rule with a name and an invalid number is refused, but the name is kept."""

    @handling(service, f"PUT {GROUP_RULE}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError as error:
            name, path = request.parameters._values.get("name"), request.path["approval_rule_id"]
            rule = service.approval_rules.rules.get(int(path)) if path.isdigit() else None
            if error.parameter == "approvals_required" and isinstance(name, str) and rule:
                service.approval_rules.rules[rule.id] = replace(rule, name=name)
            raise


@foreign(PAGES, "Group approval rules: GET, page in the query beside other parameters")
def one_rule_a_page_is_the_same_rule(service: Service) -> None:
    """With per_page=1 the page is passed over from page 3 on, and the second rule comes again."""

    @handling(service, f"GET {GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if str(values.get("per_page")) == "1" and str(values.get("page", "1")) == "3":
            request.parameters._values = {**values, "page": 2}
        return handler(request)


@foreign(NEIGHBOUR, "Group approval rules: POST, three users")
def a_third_user_of_a_group_rule_is_lost(service: Service) -> None:
    """Of a new group rule's users, the last one is lost if there are more than two."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        if wanted.user_ids and len(wanted.user_ids) > 2:
            wanted = replace(wanted, user_ids=wanted.user_ids[:2])
        return create(group, wanted, caller)
