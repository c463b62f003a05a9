"""Reads from a test's source which requirements it claims to verify, so that coverage is known without a target."""

from __future__ import annotations

import ast
import inspect
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_WORDS = ("verifies", "observe")
#: Nodes that may have decorators; the decorators stand above the line on which the node begins.
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def claims_in(function: Callable[..., Any], parameters: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids that a test function names in `verifies(...)` and `observe(...)`.

    An id is written there literally, or is a parameter of the test (or a value of one) whose definition holds it.
    Raise ContractError for anything else.
    """
    return frozenset(_text(node, parameters, function) for node in _ids(function))


@cache
def _ids(function: Callable[..., Any]) -> tuple[ast.expr, ...]:
    code = inspect.unwrap(function).__code__
    return _named_in(code.co_filename)[code.co_firstlineno]


@cache
def _named_in(file: str) -> Mapping[int, tuple[ast.expr, ...]]:
    """Return the ids that the functions of a module name, by each function's first line; one parse serves all tests."""
    # The whole tree is not kept: the trees of all modules take more memory than all tests.
    text = Path(file).read_text(encoding="utf-8")
    tree = ast.parse(text, file)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if any(word in line for word in _WORDS)]
    return {
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]): tuple(_named(node, lines))
        for node in _functions(tree)
    }


def _functions(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module and of its classes; nested functions count as part of the outer one."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node)


def _named(tree: ast.AST, lines: Sequence[int]) -> Iterator[ast.expr]:
    """Yield the ids named below a node; look only into nodes that contain one of the lines with the words."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _WORDS:
            yield from node.args[:1] if node.func.id == "observe" else node.args
        if _has_any(node, lines):
            yield from _named(node, lines)


def _has_any(node: ast.AST, lines: Sequence[int]) -> bool:
    """Tell whether a node may contain one of these lines: an item of `with` has no line, a definition lacks some."""
    if not isinstance(node, ast.expr | ast.stmt) or isinstance(node, _DEFINITIONS):
        return True
    at = bisect_left(lines, node.lineno)
    return at < len(lines) and lines[at] <= (node.end_lineno or node.lineno)


def _text(node: ast.expr, parameters: Mapping[str, Any], function: Callable[..., Any]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return str(_value(node, parameters, function))


def _value(node: ast.expr, parameters: Mapping[str, Any], function: Callable[..., Any]) -> Any:
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, parameters, function), node.attr)
    if isinstance(node, ast.Name) and node.id in parameters:
        return parameters[node.id]
    raise ContractError(
        f"{function.__name__} names a requirement as `{ast.unparse(node)}`, which is not known before the test runs. "
        "Write the id out, or give it to the test as a parameter."
    )
