"""Faults of the names of approval rules: characters that are escaped, decoded or dropped before they are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from conformance.proof.faults import fault, named
from conformance.proof.tampering import around
from conformance.reference.areas.approval_rule_records import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

#: By level, where the name of a created rule is stated.
_LEVELS = {
    Level.GROUP: "group-approval-rules.create.values",
    Level.PROJECT: "project-approval-rules.create.values",
    Level.MERGE_REQUEST: "merge-request-approvals.rules.create.name-and-number",
}
_CHANGES: dict[str, Callable[[str], str]] = {
    "percent_signs_are_decoded": unquote,
    "quotation_marks_are_doubled": lambda name: name.replace('"', '""'),
    "backslashes_are_dropped": lambda name: name.replace("\\", ""),
    "slashes_become_dashes": lambda name: name.replace("/", "-"),
    "plus_signs_become_spaces": lambda name: name.replace("+", " "),
}


def _storing(level: Level, change: Callable[[str], str]) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        def make(add_rule: Any) -> Any:
            def adding(rule: Any) -> Any:
                return add_rule(replace(rule, name=change(rule.name)) if rule.home.level is level else rule)

            return adding

        around(service.approval_rules, "add_rule", make)

    return apply


for _level, _requirement in _LEVELS.items():
    for _what, _change in _CHANGES.items():
        _says = f"In the name of a new rule of a {_level}, {_what.replace('_', ' ')}."
        fault(_requirement)(
            named(f"{_what}_in_names_of_a_{_level.value.replace(' ', '_')}", _says, _storing(_level, _change))
        )
