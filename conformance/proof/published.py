"""The figures of the proof in one small file, each with its denominator and with what was left out."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance import __version__
from conformance.contract import Contract, Level
from conformance.errors import UsageError
from conformance.proof import all_faults
from conformance.proof.crossings import CROSSINGS
from conformance.proof.reasons import reason_of
from conformance.reports import write_text
from conformance.reports.pages import template

if TYPE_CHECKING:
    from collections.abc import Mapping


#: The parts of the proof: name of the figures, title, and what the part is.
_SECTIONS = (
    (
        "reference",
        "The reference",
        "Our own implementation, written from the specification and never from the contract.",
    ),
    (
        "faults",
        "Faults of single requirements",
        (
            "Each is put on the reference alone, and must fail the requirement that it "
            "violates, for the reason that it states. There it is embedded."
        ),
    ),
    (
        "served_faults",
        "The same faults on a served reference",
        "As operators meet them: by the tests of the requirement, or else by the whole suite. Open is not seen.",
    ),
    (
        "foreign_faults",
        "Faults that were written without knowledge of the tests",
        "The whole suite runs against each of them.",
    ),
    (
        "legal_services",
        "Variants",
        "The reference, doing what the text leaves open in another way. The suite must find no fault with any variant.",
    ),
    ("networks", "Networks", "The same reference behind networks that break, delay and refuse."),
)


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
def main(source: Path, file: Path) -> None:
    """Read the results of the parts of the proof from the folder SOURCE, and write the figures to FILE, with a page.

    Parts that FILE has and SOURCE lacks stay as they are: each names the contract that it was measured with.
    """
    foreign = _read(source / "foreign.json")
    measured = {
        "suite": __version__,
        "contract": Contract.load().digest,
        "reference": _reference(_read(source / "report.json")),
        "faults": _faults(_read(source / "proof" / "proof.json"), foreign),
        "served_faults": _without_results(_read(source / "served.json")),
        "foreign_faults": _foreign(foreign),
        "legal_services": _without_results(_read(source / "legal.json")),
        "networks": _without_results(_read(source / "chaos.json")),
    }
    earlier = _read(file) or {}
    figures = {name: earlier.get(name) if part is None else part for name, part in measured.items()}
    write_text(file, json.dumps(figures, indent=1) + "\n")
    write_text(file.with_name("proof.html"), page(figures))


def page(figures: Mapping[str, Any]) -> str:
    """Return the figures as a page for people, which names parts that were not run."""
    return template("proof.html.j2").render(figures=figures, sections=_SECTIONS)


def _read(file: Path) -> Any:
    """Return the results of a part; None if it was not run. Raise UsageError if they cannot be read."""
    if not file.is_file():
        return None
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{file} is no JSON: {error}. Run the part of the proof again that writes it.") from error


def _reference(report: Any) -> dict[str, Any] | None:
    if report is None:
        return None
    about = {name: report["run"][name] for name in ("contract", "version", "seed", "requests", "seconds")}
    return {"verdict": report["verdict"], **report["owed"], **about, "headline": report["headline"]}


def _faults(proof: Any, foreign: Any) -> dict[str, Any] | None:
    if proof is None:
        return None
    tried = Counter(row["sort"] for row in proof["rows"])
    killed = Counter(row["sort"] for row in proof["rows"] if row["killed"])
    return {
        "contract": proof["contract"],
        "by_sort": {sort: {"killed": killed[sort], "tried": number} for sort, number in tried.items()},
        "sorts": "written: by hand, for one requirement each. rule: a role, status, parameter or page of the contract "
        "broken. crossed: a fault of these two that sets in later or ends otherwise. schema: one place of a schema "
        "broken; these test the engine, and prove nothing of the contract.",
        "crossings": _crossings(proof["rows"]),
        "left_out": "drawn calls beyond six of an operation, every seed but one, and latency",
        "musts": _musts([*proof["rows"], *_seen_of(foreign)]),
    }


def _crossings(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how many faults each crossing derived, and how many it left out with a reason in its table."""
    known = all_faults(Contract.load())
    found = {}
    for one in CROSSINGS:
        made = [bool(row["killed"]) for row in rows if row["crossing"] == one.name]
        left_out = sum(map(one.leaves_out, known))
        found[one.name] = {"killed": sum(made), "tried": len(made), "left_out": left_out}
    return found


def _seen_of(foreign: Any) -> list[dict[str, Any]]:
    """Return what the suite found first for each foreign fault, as a row of the proof."""
    rows = []
    for one in foreign["results"] if foreign is not None else ():
        requirement, _, seen = one["because"].partition(" in ")
        if one["seen"] and ": expected " in seen:
            reason = f"expected {seen.partition(': expected ')[2]}"
            rows.append({"sort": "foreign", "requirement": requirement, "reason": reason})
    return rows


def _musts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many faults, of how many kinds, the requirements of level `must` have; those of schemas separately."""
    contract = Contract.load()
    musts = [one for one in contract.requirements.values() if one.tested and one.level is Level.MUST]
    own: dict[str, list[tuple[str, str, str]]] = {one.id: [] for one in musts}
    of_schemas: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for row in rows:
        if row["sort"] == "schema":
            of_schemas[row["requirement"]].add(_kind(row))
        elif row["requirement"] in own:
            own[row["requirement"]].append(_kind(row))
    schemas_alone = [of_schemas[name] for name, kinds in own.items() if not kinds and name in of_schemas]
    single = [one for one in musts if len(set(own[one.id])) == 1]
    return {
        "all": len(musts),
        "two_kinds": sum(len(set(kinds)) > 1 for kinds in own.values()),
        "two_faults": sum(len(kinds) > 1 for kinds in own.values()),
        "one_kind": len(single),
        "one_kind_by_area": dict(Counter(one.area for one in single)),
        "schemas_alone": len(schemas_alone),
        "two_kinds_of_these": sum(len(kinds) > 1 for kinds in schemas_alone),
        "none": [name for name, kinds in own.items() if not kinds and name not in of_schemas],
        "kinds": "two faults are of different kinds where the checks that saw them expected different things, whatever "
        "the numbers and values, or got different ones (a refusal, an answer that should have been refused, a server "
        "error), or where one sets in or ends otherwise than the other; faults of schemas are left out",
    }


def _kind(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return the kind of a fault: its crossing, the reason in a word, and the expectation of the check."""
    expected, _, actual = str(row["reason"] or "").removeprefix("expected ").partition("; got ")
    words = re.sub(r"\[.*|\{.*|[\d\"']+|conformance-\w+", "", expected.partition(":")[0]).strip()
    return row.get("crossing", ""), reason_of(expected, actual), words


def _foreign(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    unseen = [row["fault"] for row in found["results"] if not row["seen"]]
    untried = found["known"] - found["tried"]
    not_tried = f"{untried} of {found['known']} faults, which were not tried; " if untried else ""
    kept = {name: found[name] for name in ("contract", "seen", "tried", "known", "by_dimension", "how")}
    return {
        **kept,
        "unseen": unseen,
        "left_out": f"{not_tried}that a failure is of the fault's area is held; the rest a reader judges",
    }


def _without_results(found: Any) -> dict[str, Any] | None:
    """Return a figure without its details; the contract stays, because some figures are measured less often."""
    if found is None:
        return None
    return {name: value for name, value in found.items() if name not in ("results", "suite")}


if __name__ == "__main__":
    main()
