"""Everything that is rendered from the record of a run. The same record gives the same bytes, whenever and wherever."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.reports import allure, compliance, html, json_report, junit, markdown
from conformance.reports.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from conformance.results.record import RunRecord


@dataclass(frozen=True, slots=True)
class Format:
    """One form of report."""

    name: str
    file: str
    """File or folder, below the folder of the run, that a person or a program opens."""
    render: Callable[[Facts], Mapping[str, str]]
    """Returns the text of every file by its path below the folder of the run."""
    stale: str | None = None
    """Pattern of the files of an earlier rendering that must not stay beside those of this one."""


def _in_one_file(name: str, file: str, render: Callable[[Facts], str]) -> Format:
    return Format(name, file, lambda facts: {file: render(facts)})


#: Every format by the name that an operator gives it.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        form.name: form
        for form in (
            _in_one_file("json", "report.json", json_report.render),
            _in_one_file("junit", "junit.xml", junit.render),
            Format("allure", allure.FOLDER, allure.render, stale=f"{allure.FOLDER}/{allure.PREFIX}*"),
            _in_one_file("html", "index.html", html.render),
            _in_one_file("compliance", "compliance.html", compliance.render),
            _in_one_file("markdown", "summary.md", markdown.render),
        )
    },
)


def render_all(record: RunRecord, folder: Path) -> tuple[Path, ...]:
    """Render a record in every format; see `render`."""
    return render(record, FORMATS, folder)


def render(record: RunRecord, formats: Collection[str], folder: Path) -> tuple[Path, ...]:
    """
    Render a record, also one that was cut off, in the named formats into a folder, which is made.

    Return what was written, in the order of FORMATS. Raise UsageError for a format that does not exist, and, when all
    others are written, for those that could not be.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise UsageError(f"There is no report format '{unknown[0]}'. Formats are: {', '.join(FORMATS)}.")
    facts = Facts.of(record)
    written, problems = [], []
    for form in FORMATS.values():
        if form.name not in formats:
            continue
        try:
            _write(form, form.render(facts), folder)
            written.append(folder / form.file)
        except UsageError as error:
            problems.append(str(error))
        except Exception as error:  # noqa: BLE001 - what one renderer stumbles over must not cost the other reports
            problems.append(f"The {form.name} report could not be made: {type(error).__name__}: {error}.")
    if problems:
        raise UsageError("\n".join(problems))
    return tuple(written)


def _write(form: Format, texts: Mapping[str, str], folder: Path) -> None:
    try:
        for old in sorted(folder.glob(form.stale)) if form.stale else ():
            old.unlink()
        for name, text in texts.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            # Half a surrogate pair, which JSON may hold, has no bytes of its own; its escape has.
            file.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(
            f"Cannot write the {form.name} report to {folder}: {error.strerror or error}. "
            "Name a folder you may write to.",
        ) from error
