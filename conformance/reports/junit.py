"""`junit.xml`: a test case per requirement, for the test views of build servers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from conformance.reports.facts import SHOWN_FAILURES, Facts, Problem, Standing, failure_in_words, standing, weight, why
from conformance.results.text import clip, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.results.record import Check
    from conformance.results.verdicts import RequirementVerdict

_SHOWN_BODY = 4000
_OUTCOMES = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render(facts: Facts) -> str:
    """Return the report as JUnit XML.

    A violated requirement is a failure, unless it is known and only new ones fail the run; an error of the suite itself
    is an error. So is a requirement that is owed and was not verified, unless the facts say `skipped` or `failure`,
    because test views hide what is skipped. Everything else that was not verified is skipped, with its reason. That
    includes a hint that was not followed, and what waits only for known failures that do not fail the run, because
    these must not stop a build. A suite `conformance.run` reports problems
    outside any requirement, such as a broken test, and exists only if there are any.
    """
    root = ET.Element("testsuites", {"name": "conformance"})
    for area, rows in facts.result.by_area.items():
        _suite(root, facts, area, [_case(facts, row) for row in rows])
    if facts.problems:
        _suite(root, facts, "run", [_problem(problem) for problem in facts.problems])
    _count(root)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, facts: Facts, name: str, cases: Iterable[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", {"name": f"conformance.{visible(name)}"})
    header = facts.record.header
    _properties(
        suite,
        {
            "verdict": facts.result.verdict,
            "target": header.target,
            "base_url": header.base_url,
            "version": header.version,
            "edition": header.edition,
            "seed": header.seed,
            "drawn": facts.drawn_in_words,
            **facts.headline,
            "digest": header.contract,
            "suite": header.suite,
            "truncated": str(facts.record.truncated).lower(),
        },
    )
    suite.extend(cases)
    _count(suite)
    suite.set("timestamp", visible(header.started))


def _count(element: ET.Element) -> None:
    """Write the counts of the elements below an element, so that they always agree."""
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for child, attribute in _OUTCOMES.items():
        element.set(attribute, str(sum(case.find(child) is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _case(facts: Facts, row: RequirementVerdict) -> ET.Element:
    stated = row.requirement
    case = ET.Element(
        "testcase",
        {
            "classname": f"conformance.{visible(stated.area)}",
            "name": visible(stated.id),
            "time": f"{facts.seconds.get(stated.id, 0.0):.3f}",
        },
    )
    _properties(
        case,
        {
            "verdict": row.verdict,
            "level": stated.level,
            "kind": stated.kind,
            "section": stated.section,
            "when": stated.when,
        },
    )
    _show(case, facts, row)
    lines = [stated.statement]
    lines += [f"observed: {what}" for what in row.observations]
    lines += [f"test: {name}" for name in stated.tests]
    _text(case, "system-out", "\n".join(visible(line) for line in lines))
    return case


def _show(case: ET.Element, facts: Facts, row: RequirementVerdict) -> None:
    """Give a case the child element for the result of its requirement; without one, readers count it as passed."""
    state = standing(row)
    is_open = row.is_gap and state is not Standing.BROKEN and not facts.excuses_gap(row)
    if is_open and facts.unverified_as != "skipped":
        # An owed requirement that was not verified stands where test views show open problems.
        text = _failures(row) if row.failures else visible(row.requirement.statement)
        message = f"not verified: {why(row)}"
        _text(case, facts.unverified_as, text, message=message, type=str(row.reason or row.verdict))
    elif facts.excuses(row) or state in (Standing.WARNING, Standing.UNSTABLE):
        # Nobody looks at a test view that is red every night.
        _text(case, "skipped", _failures(row), message=f"{weight(row)}: {why(row)}", type=str(state))
    elif state is Standing.VIOLATED:
        _text(case, "failure", _failures(row), message=why(row), type=row.requirement.level)
    elif state is Standing.BROKEN:
        _text(case, "error", visible(row.detail), message=why(row), type=str(row.reason))
    elif state is not Standing.VERIFIED:
        words = why(row) or "; ".join(one_line(what) for what in row.observations)
        message = f"{row.verdict}: {words}" if words else str(row.verdict)
        _text(case, "skipped", None, message=message, type=str(row.reason or row.verdict))


def _failures(row: RequirementVerdict) -> str:
    parts = [f"{visible(row.requirement.statement)}\nSpecification: {visible(row.requirement.section)}"]
    parts += [_failure(check) for check in row.failures[:SHOWN_FAILURES]]
    hidden = len(row.failures) - SHOWN_FAILURES
    if hidden > 0:
        parts.append(f"... and {hidden} more in report.json")
    return "\n\n".join(parts)


def _failure(check: Check) -> str:
    lines = [failure_in_words(check), f"test: {visible(check.test)}"]
    for exchange in check.evidence:
        lines += [
            f"$ {clip(exchange.curl, _SHOWN_BODY)}",
            f"{visible(exchange.status) or 'no answer'} {clip(exchange.response_body, _SHOWN_BODY)}".rstrip(),
        ]
    return "\n".join(lines)


def _problem(problem: Problem) -> ET.Element:
    case = ET.Element("testcase", {"classname": "conformance.run", "name": visible(problem.name), "time": "0.000"})
    message = f"{problem.kind}: {one_line(problem.detail)}"
    _text(case, "error", clip(problem.detail, _SHOWN_BODY), message=message, type=problem.kind)
    return case


def _properties(parent: ET.Element, values: Mapping[str, object]) -> None:
    holder = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(holder, "property", {"name": name, "value": visible(value)})


def _text(parent: ET.Element, tag: str, text: str | None, **attributes: str) -> None:
    element = ET.SubElement(parent, tag, {name: visible(value) for name, value in attributes.items()})
    element.text = text
