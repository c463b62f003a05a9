"""`conformance contract`, `requirements`, `explain` and `coverage`: what the contract says, without a target."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click
import yaml

from conformance.cli.parameters import FORM
from conformance.contract import Contract, Kind, Requirement, Version
from conformance.results.grouping import grouped
from conformance.results.text import plural
from conformance.runner.collection import all_tests

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


@click.command()
@click.option("--as-of", metavar="V", help="Only what a service of this version must meet, as plain OpenAPI.")
@click.option("--format", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def contract(as_of: str | None, form: str) -> None:
    """Print the OpenAPI document: of one version for any tool, or of all versions with the suite's extensions."""
    loaded = Contract.load()
    document = loaded.as_of(Version.parse_known(as_of, "--as-of")) if as_of else loaded.document
    if form == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(yaml.dump(document, Dumper=_NoAliases, sort_keys=False, allow_unicode=True, width=110), nl=False)


class _NoAliases(yaml.SafeDumper):
    """Writes shared parts in full, for readers that do not support YAML anchors."""

    def ignore_aliases(self, data: object) -> bool:
        """Never use an anchor."""
        del data
        return True


@click.command()
@click.option("--area", help="Only this area.")
@click.option("--kind", type=click.Choice([str(kind) for kind in Kind]), help="Only this kind of statement.")
@click.option("--untested", is_flag=True, help="Only what the suite has no test for yet.")
@FORM
def requirements(area: str | None, kind: str | None, *, untested: bool, form: str) -> None:
    """List the testable statements of the specification."""
    loaded = Contract.load()
    if area is not None:
        loaded.require_area(area)
    chosen = [
        entry
        for entry in loaded.requirements.values()
        if (area is None or entry.area == area)
        and (kind is None or entry.kind == kind)
        and not (untested and (entry.tested or entry.not_testable))
    ]
    if form == "json":
        _echo_json([_as_data(entry) for entry in chosen])
        return
    for entry in chosen:
        click.echo(f"{entry.id}  [{entry.level}, {entry.kind}, {entry.when()}]\n    {entry.statement}")
    click.echo(f"{len(chosen)} requirements", err=True)


@click.command()
@click.argument("requirement_id", metavar="ID")
@FORM
def explain(requirement_id: str, form: str) -> None:
    """Say what a requirement means, where the specification states it, and which tests verify it."""
    loaded = Contract.load()
    requirement = loaded.requirement(requirement_id)
    tests = tests_by_requirement().get(requirement.id, ())
    stated_at = [entry.label for entry in loaded.operations(None) if requirement.id in entry.requirements()]
    if form == "json":
        _echo_json({**_as_data(requirement), "stated_at": stated_at, "tests": list(tests)})
        return
    facts = [
        ("statement", requirement.statement),
        ("section", requirement.section),
        ("level", _level(requirement)),
        ("kind", str(requirement.kind)),
        ("versions", requirement.when()),
        ("feature", requirement.feature or "none: always applicable"),
        ("needs", ", ".join(requirement.needs) or "nothing beyond the target"),
        ("stated at", "; ".join(stated_at) or "none: it is about what follows from calls, not about one answer"),
        ("verified", _how(requirement, tests)),
    ]
    click.echo(requirement.id)
    for name, value in facts:
        click.echo(f"  {name:<10} {value}")
    for test in tests:
        click.echo(f"             {test}")


def _level(requirement: Requirement) -> str:
    meaning = {
        "must": "a violation makes a service non-conformant",
        "should": "the text only hints at it; a violation is a warning",
        "note": "recorded, never judged",
    }
    return f"{requirement.level} ({meaning[requirement.level]})"


def _how(requirement: Requirement, tests: Collection[str]) -> str:
    if requirement.not_testable:
        return f"not testable: {requirement.not_testable}"
    return f"by {plural(len(tests), 'test')}" if requirement.tested else "not yet: the suite has no test for it"


def _as_data(requirement: Requirement) -> dict[str, Any]:
    """Return what the contract says of a requirement as plain data."""
    return {
        "id": requirement.id,
        "area": requirement.area,
        "statement": requirement.statement,
        "section": requirement.section,
        "level": str(requirement.level),
        "kind": str(requirement.kind),
        "when": requirement.when(),
        "feature": requirement.feature,
        "needs": list(requirement.needs),
        "tested": requirement.tested,
        "not_testable": requirement.not_testable,
    }


def _echo_json(data: Any) -> None:
    click.echo(json.dumps(data, ensure_ascii=False, indent=2))


@click.command()
@click.option("--area", help="Only this area.")
@FORM
def coverage(area: str | None, form: str) -> int:
    """Show per area how many requirements the suite verifies; no target is needed.

    Ends with 1 when a requirement claims a test that does not exist, or has one and does not say so.
    """
    loaded = Contract.load()
    tests = tests_by_requirement()
    if area is not None:
        loaded.require_area(area)
    counts = {
        name: _counts(entry for entry in loaded.requirements.values() if entry.area == name)
        for name in ((area,) if area else loaded.areas)
    }
    if area is None:
        counts["all"] = sum(counts.values(), Counter())
    listed = [entry for entry in loaded.requirements.values() if area in (None, entry.area)]
    missing = [entry.id for entry in listed if entry.tested and entry.id not in tests]
    forgotten = [entry.id for entry in listed if not entry.tested and entry.id in tests]
    if form == "json":
        _echo_json({"areas": counts, "claimed_and_missing": missing, "there_and_not_claimed": forgotten})
        return 1 if missing or forgotten else 0
    click.echo(f"{'area':<32}{'requirements':>13}{'tested':>8}{'pending':>9}{'not testable':>14}")
    for name, numbers in counts.items():
        click.echo(_coverage_row(name, numbers))
    for name in missing:
        click.echo(f"{name} claims a test that does not exist.", err=True)
    for name in forgotten:
        click.echo(f"{name} has a test and does not say so: set verified_by to tests.", err=True)
    return 1 if missing or forgotten else 0


def _counts(entries: Iterable[Requirement]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for entry in entries:
        counts["requirements"] += 1
        counts["not testable" if entry.not_testable else "tested" if entry.tested else "pending"] += 1
    return counts


def _coverage_row(name: str, counts: Counter[str]) -> str:
    return (
        f"{name:<32}{counts['requirements']:>13}{counts['tested']:>8}{counts['pending']:>9}{counts['not testable']:>14}"
    )


def tests_by_requirement() -> Mapping[str, Collection[str]]:
    """Return for each requirement the tests that verify it, at any version; raise ContractError if they are wrong."""
    tests = all_tests(Contract.load(), None).values()
    return grouped((name, test.id) for test in tests for name in test.requirements)
