"""The pages of the guide that are made from the code and the contract while the site is built (a hook of mkdocs)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

from conformance.contract import Contract
from conformance.errors import ExitCode
from conformance.results.record import Reason
from conformance.results.verdicts import RunVerdict, Verdict
from conformance.target.example import unlocked
from conformance.target.names import FEATURES, TABLE, Named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

_OPTIONS = """\
# Every command and option

What `conformance COMMAND --help` prints. Each option can also be set by an environment variable: `CONFORMANCE_`, the
command and the option in capitals, such as `CONFORMANCE_RUN_TARGET=staging.yaml`.

::: mkdocs-click
    :module: conformance.cli
    :command: commands
    :prog_name: conformance
    :depth: 1
    :style: plain
"""
_EXIT_CODES = "# Exit codes, verdicts and reasons\n\nA CI job needs only the exit code; reports have everything else.\n"
_VERSION_TABLE = """\
# The version table

What was introduced, removed or changed, and at which version. `conformance readiness` checks a service;
`conformance lint-traffic` finds the clients that still use what is deprecated or removed.
"""
_REQUIREMENTS = """\
# Every requirement

What a conformant service does, statement by statement. *must* is judged; *should* is a recommendation and causes a
warning; *note* is recorded and never judged.
"""
_PROFILE = """\
# The profile of a target

Names that a profile may use. `conformance target --example` prints a commented profile to start from, and
`conformance target --check` compares it with the target.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those that are written by hand."""
    contract = Contract.load()
    for name, make in _PAGES.items():
        files.append(File.generated(config, name, content=make(contract)))
    return files


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = tuple(heads)
    lines = [heads, ["---"] * len(heads), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _options(_: Contract) -> str:
    return _OPTIONS


def _exit_codes(_: Contract) -> str:
    return (
        _EXIT_CODES
        + "\n## Exit codes\n"
        + _table(("code", "meaning"), ((int(code), code.meaning) for code in ExitCode))
        + "\n## Why something was not verified, or does not apply\n"
        + _table(("reason", "meaning"), ((reason.value, reason.meaning) for reason in Reason))
        + f"\n## Words\n\nA run is {_words(RunVerdict)}. A requirement is {_words(Verdict)}.\n"
        + "[Reading a report](reading-a-report.md) says what each of these words means.\n"
    )


def _words(words: Iterable[str]) -> str:
    named = [f"*{word}*" for word in words]
    return ", ".join(named[:-1]) + f" or {named[-1]}"


def _version_table(contract: Contract) -> str:
    parts = [_VERSION_TABLE]
    for version, changes in groupby(contract.changes, key=lambda change: change.version):
        parts.append(f"\n## {version or 'No version'}\n")
        parts.append(
            _table(
                ("item", "kind", "what changes", "in its place", "requirement"),
                (
                    (
                        change.item,
                        change.kind.value,
                        change.summary,
                        change.replacement or "",
                        f"`{change.requirement}`",
                    )
                    for change in changes
                ),
            )
        )
    return "".join(parts)


def _requirements(contract: Contract) -> str:
    parts = [_REQUIREMENTS]
    for area, rows in groupby(contract.requirements.values(), key=lambda requirement: requirement.area):
        parts.append(f"\n## {area}\n")
        parts.append(
            _table(
                ("id", "level", "what a service does", "section", "versions"),
                ((f"`{row.id}`", row.level.value, row.statement, row.section, row.when()) for row in rows),
            )
        )
    return "".join(parts)


def _profile(_: Contract) -> str:
    named = ("name", "what it is", "musts that need it")
    kinds = {row.kind: row for row in TABLE["fixtures"]}
    return (
        f"{_PROFILE}\n## Actors\n{_table(named, map(_named, TABLE['actors']))}\n## Fixtures\n"
        + _table((*named, "kind"), ((*_named(row), row.kind.replace("_", " ")) for row in TABLE["fixtures"]))
        + "".join(_values(row) for row in kinds.values())
        + f"\n## Features\n{_table(named[:2], ((f'`{name}`', text) for name, text in FEATURES.items()))}"
    )


def _named(row: Named) -> tuple[object, ...]:
    return f"`{row.name}`", row.what, unlocked(row.name) or ""


def _values(row: Named) -> str:
    """Return which values a fixture of a kind has, and what each is for."""
    words = {True: "must be given", False: "may be left out"}
    values = ((f"`{one.name}`", _type(one.type), words[one.is_required], one.what) for one in row.fields)
    return f"\n### Values of a fixture of the kind {row.kind.replace('_', ' ')}\n" + _table(
        ("value", "type", "", "what it is: what needs it"), values
    )


def _type(names: str | tuple[str, ...]) -> str:
    return names if isinstance(names, str) else " or ".join(names)


_PAGES: Mapping[str, Callable[[Contract], str]] = {
    "options.md": _options,
    "exit-codes.md": _exit_codes,
    "version-table.md": _version_table,
    "requirements.md": _requirements,
    "profile.md": _profile,
}
