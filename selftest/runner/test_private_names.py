"""No private name of another library is used, and the tests of the suite import only what the suite offers them."""

from __future__ import annotations

import ast
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

from conformance.contract.folders import HOME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OURS = ("conformance", "tests", "selftest", "benchmarks")
OWNERS = ("self", "cls")
#: Functions that look up a name given as text.
LOOKUPS = frozenset({"getattr", "setattr", "hasattr", "delattr", "attrgetter"})
#: Public names of the standard library and of Starlette that nevertheless begin with an underscore.
PUBLIC = frozenset({"_replace", "_asdict", "_fields", "_make", "_value_"})
#: A documented, experimental interface in a module with a private name; pyproject.toml limits its version.
DOCUMENTED = ("hypothesis.internal.conjecture.", "hypothesis.internal.intervalsets.")
#: What the tests of the suite may import: the suite's vocabulary, generated calls, and their libraries.
SPOKEN = frozenset({"conformance.suite", "conformance.fuzzing", "pytest", "hypothesis"})


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC and name != "_"


def _foreign_imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        modules = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return
    for module in modules:
        parts = module.split(".")
        is_internal = "internal" in parts and not module.startswith(DOCUMENTED)
        if parts[0] not in OURS and (is_internal or any(_is_private(part) for part in parts)):
            yield module


def _private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the private names of others: in imports, as attributes, and as texts that are looked up as attributes."""
    own = _own()
    for node in ast.walk(tree):
        for module in _foreign_imports(node):
            yield node.lineno, module  # type: ignore[attr-defined]
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in own:
            yield node.lineno, ast.unparse(node)
        if isinstance(node, ast.Call) and _called(node) in LOOKUPS:
            yield from (
                (node.lineno, ast.unparse(node))
                for value in node.args
                if isinstance(value, ast.Constant) and isinstance(value.value, str) and _is_private(value.value)
                if value.value not in own
            )
        if isinstance(node, ast.Subscript) and _is_table_of_attributes(node.value):
            yield node.lineno, ast.unparse(node)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _is_table_of_attributes(node: ast.expr) -> bool:
    """Tell whether something is `vars(x)` or `x.__dict__`, which give access to any attribute."""
    return (isinstance(node, ast.Call) and _called(node) == "vars" and ast.unparse(node) != "vars(self)") or (
        isinstance(node, ast.Attribute) and node.attr == "__dict__"
    )


def _defined(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement defines: ruff checks access to our own private names (SLF001)."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in OWNERS:
        yield node.attr


@cache
def _own() -> frozenset[str]:
    return frozenset(
        name for file in _files(*OURS) for node in ast.walk(_tree(file)) for name in _defined(node) if _is_private(name)
    )


def _files(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (HOME / folder).rglob("*.py"))


@cache
def _tree(file: Path) -> ast.AST:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


@pytest.mark.parametrize("folder", OURS)
def test_no_private_name_of_another_library_is_used(folder: str) -> None:
    files = {file.relative_to(HOME).as_posix(): file for file in _files(folder)}
    found = {
        name: [f"line {line}: {text}" for line, text in _private_names(_tree(file))] for name, file in files.items()
    }
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import _pytest.config",
        "from _pytest import config",
        "from pytest import _core",
        "from hypothesis.internal.compat import ceil",
        "reporter._show_progress_info = False",
        "getattr(reporter, '_show_progress_info')",
        "vars(node)['workerinput']",
        "node.__dict__['workerinput']",
    ],
)
def test_every_access_to_a_private_name_is_found(code: str) -> None:
    assert list(_private_names(ast.parse(code)))


def test_the_tests_of_the_suite_import_only_what_it_offers_them() -> None:
    found = {
        f"{file.relative_to(HOME).as_posix()}: {module}"
        for file in _files("tests")
        for module in _imported(_tree(file))
        if module.split(".")[0] not in sys.stdlib_module_names
        if not any(module == spoken or module.startswith(f"{spoken}.") for spoken in SPOKEN)
    }
    assert found == set()


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
