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
)
from conformance.proof.foreign.paths import GROUP_RULES
from conformance.proof.foreign.registry import by_path, foreign, handling, instead
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
