"""Code completion: a correct request, and the check endpoint beside it. Neither changes anything."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.request_examples import Area, RequestExample
from conformance.suite.expectations import Path, given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.suite.arrange.places import Place
    from conformance.suite.arrange.request_examples import Values
    from conformance.suite.expectations import Caller

COMPLETIONS = Path("/code_suggestions/completions")
CHECK = Path("/code_suggestions/enabled")
#: A path that no project has.
UNKNOWN_PATH = "conformance-no-such-group/conformance-no-such-project"

#: A file with everything that a completion needs.
FILE: Mapping[str, str] = MappingProxyType(
    {"file_name": "greeting.py", "content_above_cursor": "def greet(name: str) -> str:\n    return "}
)


def completion(**beside: Any) -> dict[str, Any]:
    """Return the body of a request that must be served, with extra or replaced parameters."""
    return {"current_file": dict(FILE), **beside}


def _tells_apart(keeper: Caller, _: Place) -> Values:
    """Go on only if the check does not answer yes to everything: it has no body that would show more."""
    answer = keeper.post(CHECK, {"project_path": UNKNOWN_PATH})
    given(not answer.is_served, "a project that does not exist is said to have completions too")
    return {}


AREA = Area(
    keeper="maintainer",
    request_examples={
        "createCompletion": RequestExample(body=lambda _: completion()),
        "checkCodeSuggestionsEnabled": RequestExample(before=_tells_apart),
    },
)
