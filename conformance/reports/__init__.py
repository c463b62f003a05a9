"""All report formats. They are made only from the record of a run; the same record always gives the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING

from conformance.errors import ReportError, UsageError, or_usage_error
from conformance.reports import allure, attestation, compliance, ctrf, earl, html, json_report, junit, markdown, small
from conformance.reports.facts import Facts
from conformance.results.recorder import require_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from conformance.results.record import RunRecord


#: Texts by their path below the folder of the run; a long text comes in pieces.
Files = Mapping[str, str | Iterable[str]]


@dataclass(frozen=True, slots=True)
class Format:
    """One form of report."""

    name: str
    file: str
    """File or folder to open, below the folder of the run; empty for a format that is printed."""
    render: Callable[[Facts, Mapping[str, str]], Files]
    """Returns its files; also gets the SHA-256 of the files of the formats before it, by their path."""
    stale: str | None = None
    """Pattern of files from an earlier rendering that must not remain beside the new ones."""


def _in_one_file(name: str, file: str, render: Callable[[Facts], str | Iterable[str]]) -> Format:
    return Format(name, file, lambda facts, _: {file: render(facts)})


def _attestation(facts: Facts, digests: Mapping[str, str]) -> Files:
    """Name the reports that consist of one file; Allure has hundreds."""
    text = attestation.render(facts, {name: digest for name, digest in digests.items() if "/" not in name})
    return {} if text is None else {"attestation.json": text}


#: Every format by the name that an operator uses.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        form.name: form
        for form in (
            _in_one_file("json", "report.json", json_report.render),
            _in_one_file("junit", "junit.xml", junit.render),
            Format("allure", allure.FOLDER, lambda facts, _: allure.render(facts), f"{allure.FOLDER}/{allure.PREFIX}*"),
            _in_one_file("html", "index.html", html.render),
            _in_one_file("compliance", "compliance.html", compliance.render),
            _in_one_file("markdown", "summary.md", markdown.render),
            _in_one_file("ctrf", "ctrf.json", ctrf.render),
            _in_one_file("earl", "earl.jsonld", earl.render),
            _in_one_file("badge", "badge.svg", small.badge),
            _in_one_file("totals", "totals.json", small.totals),
            _in_one_file("github", "", small.workflow_commands),
            Format("attestation", "attestation.json", _attestation, "attestation.json"),
        )
    }
)
#: The file that tells of an upgrade, beside the record that has it too.
READINESS = "readiness.json"
#: Formats that a run writes without being asked.
WRITTEN = tuple(form.name for form in FORMATS.values() if form.file)


def render_all(record: RunRecord, folder: Path) -> tuple[Path, ...]:
    """Render a record in every format that is written to files; see `render`."""
    return render(record, WRITTEN, folder)


def printed(record: RunRecord, format_: str) -> str:
    """Return the text of a format that is printed and not written."""
    return "".join("".join(text) for text in FORMATS[format_].render(Facts.of(record), {}).values())


def render(
    record: RunRecord, formats: Collection[str], folder: Path, *, unverified_as: str = "error"
) -> tuple[Path, ...]:
    """Render a record, also an incomplete one, in the named formats into a folder, which is created.

    `unverified_as` is how JUnit shows a `must` that was not verified. An attestation in the folder is written again, so
    that it has the digests of what the others are now. Return what was written, in the order of FORMATS.
    Raise UsageError for a format that does not exist, and, after all others are written, for those that could not be
    written; ReportError for those that could not be rendered.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise UsageError(f"There is no report format '{unknown[0]}'. Formats are: {', '.join(FORMATS)}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        told = f"Cannot write reports to {folder}: {error.strerror or error}. Name a folder you may write to."
        raise UsageError(told) from error
    if record.header.subjects and (folder / "attestation.json").is_file():
        formats = {*formats, "attestation"}
    facts = Facts.of(record, unverified_as)
    written, problems = [], []
    digests = _digests_of_others(folder, formats)
    unwritten: dict[str, list[str]] = {}
    for form in FORMATS.values():
        if form.name not in formats:
            continue
        try:
            files = form.render(facts, digests)
            digests.update(_write(form, files, folder))
            written += [folder / form.file] if files else []
        except OSError as error:
            unwritten.setdefault(error.strerror or str(error), []).append(form.name)
        except Exception as error:  # noqa: BLE001 - an error in one renderer must not cost the other reports
            problems.append(f"The {form.name} report could not be made: {type(error).__name__}: {error}.")
    is_broken = bool(problems)
    problems += [
        f"Cannot write to {folder}: {why}. Missing there: {', '.join(names)}. Name a folder you may write to."
        for why, names in unwritten.items()
    ]
    if problems:
        raise (ReportError if is_broken else UsageError)("\n".join(problems))
    return tuple(written)


def _digests_of_others(folder: Path, formats: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of the reports in a folder that are not written now, for the attestation of all reports."""
    others = [FORMATS[name] for name in WRITTEN if name not in formats and name != "attestation"]
    files = {file for form in others if "attestation" in formats for file in folder.glob(form.stale or form.file)}
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)
    }


def take_away(folder: Path) -> None:
    """Remove the reports of an earlier run, so that nobody mistakes them for those of the run that begins there."""
    for old in reports_in(folder):
        with suppress(OSError):  # a file that cannot be removed can perhaps be overwritten; if not, that is reported
            old.unlink()


def reports_in(folder: Path) -> list[Path]:
    """Return the report files in the folder of a run."""
    patterns = {pattern for name in WRITTEN for pattern in (FORMATS[name].file, FORMATS[name].stale) if pattern}
    return sorted({file for pattern in patterns for file in folder.glob(pattern) if not file.is_dir()})


def set_aside(folder: Path) -> str | None:
    """Move the record of an earlier run and its reports out of a folder: to FOLDER.1 beside it, or the first free one.

    What was told of an upgrade goes with it. Ledgers stay, because they say what still has to be restored. Return a
    sentence that says where the record is now, None if there was none. Raise UsageError while that run is still
    writing, or when its record cannot be moved.
    """
    record = folder / "results.jsonl"
    if not record.is_file() or not record.stat().st_size:
        return None
    named, aside = folder if folder.name not in ("", "..") else folder.resolve(), None
    try:
        with record.open("a", encoding="utf-8") as stream:
            require_alone(stream, record)
            aside = _made_beside(named)
            for file in (record, *reports_in(folder), *folder.glob(READINESS)):
                place = aside / file.relative_to(folder)
                place.parent.mkdir(exist_ok=True)
                file.rename(place)
    except OSError as error:
        if aside is not None:
            with suppress(OSError):  # it stays if something could be moved
                aside.rmdir()
        raise UsageError(
            f"{folder} holds the record of an earlier run, which cannot be moved to a folder beside it: "
            f"{error.strerror or error}. Name another folder with --out."
        ) from error
    return f"{folder} held the record of an earlier run: that and its reports are in {aside} now."


def _made_beside(folder: Path) -> Path:
    for number in count(1):
        aside = folder.with_name(f"{folder.name}.{number}")
        with suppress(FileExistsError):
            aside.mkdir()
            return aside
    raise AssertionError  # there is always another number


def _write(form: Format, texts: Files, folder: Path) -> Mapping[str, str]:
    """Write the files of a format, and return the SHA-256 of each; raise OSError if one cannot be written in full."""
    digests = {}
    for old in sorted(folder.glob(form.stale)) if form.stale else ():
        old.unlink()
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        try:
            with file.open("wb") as stream:
                for piece in (text,) if isinstance(text, str) else text:
                    # An unpaired surrogate, which JSON may contain, has no bytes of its own, but its escape has.
                    content = piece.encode("utf-8", "backslashreplace")
                    stream.write(content)
                    digest.update(content)
        except OSError:
            with suppress(OSError):  # so that a partial file is not mistaken for a report
                file.unlink()
            raise
        digests[name] = digest.hexdigest()
    return digests


def write_text(file: Path, text: str) -> None:
    """Write a page, and create its folder; raise UsageError when that is not possible."""
    with or_usage_error(f"Cannot write {file}", "Name a file with --out."):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "backslashreplace"))
