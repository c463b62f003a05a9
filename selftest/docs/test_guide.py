"""The guide builds without a warning, and every command on a page exists with its options."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from conformance.cli import commands
from conformance.contract.folders import HOME
from conformance.errors import ExitCode
from conformance.results.record import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTEXT = click.Context(commands)
PAGES = sorted([HOME / "README.md", HOME / "CONTRIBUTING.md", *HOME.glob("docs/*.md"), *HOME.glob("examples/**/*.*")])
LOADED = re.compile(r'<(?:script|link rel="stylesheet"|img)[^>]*?(?:src|href)="(https?:[^"]+)"')
#: What ends a command in a shell, and what else may be in its code block.
ENDS = re.compile(r"[|;&>`#]")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=HOME,
        env={**os.environ, "PYTHONPATH": str(HOME), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_the_guide_explains_every_exit_code_and_reason(site: Path) -> None:
    page = (site / "exit-codes.html").read_text(encoding="utf-8")
    assert [reason.value for reason in Reason if not reason.meaning or f"<td>{reason.value}</td>" not in page] == []
    assert [int(code) for code in ExitCode if not code.meaning or f"<td>{int(code)}</td>" not in page] == []


def test_the_guide_lists_every_command_and_option(site: Path) -> None:
    page = (site / "options.html").read_text(encoding="utf-8")
    names = commands.list_commands(CONTEXT)
    options = {option for name in names for option in _options(commands.get_command(CONTEXT, name))}
    assert len(options) > len(names)
    assert [option for option in sorted(options) if option not in page] == []


def test_the_guide_needs_nothing_from_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 1
    loaded = {address for page in pages for address in LOADED.findall(page.read_text(encoding="utf-8"))}
    assert loaded == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(HOME).as_posix())
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    wrong = [line for line in _command_lines(page.read_text(encoding="utf-8")) if _mistake(line)]
    assert wrong == []


def _command_lines(text: str) -> Iterator[str]:
    """Yield the calls of `conformance` in code of a page, without shell syntax; continued lines are joined."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        for match in re.finditer(r"(?:^\s*\$ |`|^\s*(?:- |run: )?|[;&] ?)conformance (?=[a-z])", line):
            yield ENDS.split(line[match.end() :])[0].strip()


def _mistake(line: str) -> str | None:
    """Return what is wrong with a call: its command or one of its options does not exist."""
    name, *arguments = shlex.split(line, comments=True)
    command = commands.get_command(CONTEXT, name)
    if command is None:
        return f"no command {name}"
    given = {argument.split("=")[0] for argument in arguments if argument.startswith("--") and argument != "--"}
    known = _options(command) | {"--help"}
    return ", ".join(sorted(given - known)) or None


def _options(command: click.Command | None) -> set[str]:
    parameters = command.params if command is not None else ()
    names = [name for parameter in parameters if isinstance(parameter, click.Option) for name in parameter.opts]
    return {name for name in names if name.startswith("--")}


def test_a_command_that_does_not_exist_is_found() -> None:
    text = "`conformance run --no-such-option x`\n$ conformance no-such-command | cat\n`conformance run --seed 1`"
    assert [_mistake(line) for line in _command_lines(text)] == ["--no-such-option", "no command no-such-command", None]
    assert CliRunner().invoke(commands, ["--help"]).exit_code == 0
