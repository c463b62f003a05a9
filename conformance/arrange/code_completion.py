"""Code completion: a request that is right, and the check beside it. Neither changes anything."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.arrange.recipes import Area, Recipe
from conformance.expectations import Path

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPLETIONS = Path("/code_suggestions/completions")
CHECK = Path("/code_suggestions/enabled")

#: A file with all that a completion needs.
FILE: Mapping[str, str] = MappingProxyType(
    {"file_name": "greeting.py", "content_above_cursor": "def greet(name: str) -> str:\n    return "}
)


def completion(**beside: Any) -> dict[str, Any]:
    """Return the body of a request that must be served, with other parameters beside or in place of the file."""
    return {"current_file": dict(FILE), **beside}


AREA = Area(
    keeper="maintainer",
    remember=lambda _, __: None,
    put_back=lambda _, __, ___: None,
    recipes={
        "createCompletion": Recipe(body=lambda _: completion()),
        "checkCodeSuggestionsEnabled": Recipe(),
    },
)
