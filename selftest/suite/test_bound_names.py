"""A scenario that continues after a failed expectation uses no variable that the expectation should have set."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

STORIES = sorted((Path(__file__).parents[2] / "tests").rglob("test_*.py"))


def names(nodes: list[ast.stmt], context: type[ast.expr_context]) -> set[str]:
    found = (node for statement in nodes for node in ast.walk(statement))
    return {node.id for node in found if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def goes_on(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.With) and any("go_on=True" in ast.unparse(item) for item in statement.items)


def counted_on(block: list[ast.stmt], bound: frozenset[str] = frozenset()) -> set[str]:
    """Return the variables that statements use and that only an earlier expectation sets, which may end early."""
    found: set[str] = set()
    maybe: set[str] = set()
    known = set(bound)
    for statement in block:
        found |= (names([statement], ast.Load) - names([statement], ast.Store)) & maybe
        for part in ("body", "orelse", "finalbody"):
            found |= counted_on(getattr(statement, part, []), frozenset(known))
        if goes_on(statement):
            maybe |= names([statement], ast.Store) - known
        else:
            known |= names([statement], ast.Store)
            maybe -= names([statement], ast.Store)
    return found


@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_scenarios_use_no_variable_that_a_failed_expectation_leaves_unset(file: Path) -> None:
    assert {
        node.name: sorted(missing)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and (missing := counted_on(node.body))
    } == {}


def test_a_variable_that_only_an_expectation_sets_is_found() -> None:
    story = 'with verifies("a", go_on=True):\n    answer = call()\nobserve(answer)'
    assert counted_on(ast.parse(story).body) == {"answer"}
    assert counted_on(ast.parse(f"answer = None\n{story}").body) == set()
    assert counted_on(ast.parse(f"with tests():\n    {story.replace(chr(10), chr(10) + '    ')}").body) == {"answer"}
