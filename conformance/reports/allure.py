"""`allure-results/`: a result per requirement, written with Allure's own model classes."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, UUID, uuid5

import attr
from allure_commons.model2 import (
    ATTACHMENT_PATTERN,
    TEST_CASE_PATTERN,
    Attachment,
    Label,
    Parameter,
    Status,
    StatusDetails,
    TestResult,
    TestStepResult,
)
from allure_commons.types import AttachmentType, LabelType, Severity

from conformance.reports.facts import (
    SHOWN_FAILURES,
    Facts,
    Problem,
    Standing,
    failure_in_words,
    milliseconds,
    standing,
    why,
)
from conformance.results.text import clip, one_line, visible
from conformance.results.verdicts import RequirementVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.results.record import Check, Evidence

FOLDER = "allure-results"
#: Prefix of every file name, so that a second rendering finds only its own files.
PREFIX = "conformance-"

_SHOWN_BODY = 20_000
_SEVERITIES = {"must": Severity.CRITICAL, "should": Severity.MINOR, "note": Severity.TRIVIAL}
_STATUSES: Mapping[Verdict, str] = {
    Verdict.PASSED: Status.PASSED,
    Verdict.FAILED: Status.FAILED,
    Verdict.UNSTABLE: Status.UNKNOWN,
    Verdict.INCONCLUSIVE: Status.UNKNOWN,
    Verdict.NOT_TESTED: Status.SKIPPED,
    Verdict.NOTED: Status.SKIPPED,
    Verdict.NOT_APPLICABLE: Status.SKIPPED,
}


def render(facts: Facts) -> Mapping[str, str]:
    """Return the text of every result and attachment by its path.

    The numbers of passed and failed results are those of the record. Inconclusive becomes `unknown`, and an error of
    the suite itself `broken`; everything else that was not verified becomes `skipped`. Identifiers come from target and
    requirement, so that runs of one target form a history. Problems outside any requirement, such as a broken test,
    become results of their own.
    """
    folder = _Folder(facts)
    for row in facts.result.rows:
        folder.add_requirement(row)
    for number, problem in enumerate(facts.problems):
        folder.add_problem(number, problem)
    folder.texts[f"{FOLDER}/environment.properties"] = _environment(facts)
    return folder.texts


class _Folder:
    """The files of one rendering."""

    def __init__(self, facts: Facts) -> None:
        self.texts: dict[str, str] = {}
        self._facts = facts
        self._target = str(facts.record.header.target)
        self._clock = milliseconds(facts.record.header.started)

    def add_requirement(self, row: RequirementVerdict) -> None:
        stated = row.requirement
        result = self._result(stated.id, area=stated.area, feature=stated.kind)
        result.status = Status.BROKEN if standing(row) is Standing.BROKEN else _STATUSES[row.verdict]
        result.description = visible(stated.statement)
        result.labels += [
            Label(LabelType.SEVERITY, _SEVERITIES.get(stated.level, Severity.NORMAL).value),
            Label(LabelType.TAG, visible(stated.level)),
            Label(LabelType.TAG, str(row.verdict)),
        ]
        about = {"section": stated.section, "holds": stated.when, "level": stated.level, "reason": row.reason}
        result.parameters += [_parameter(name, value) for name, value in about.items() if value]
        result.parameters += [_parameter("observed", what) for what in row.observations]
        if why(row):
            unstable = row.verdict is Verdict.UNSTABLE or None
            result.statusDetails = StatusDetails(message=why(row), trace=_trace(row), flaky=unstable)
        shown = row.failures[:SHOWN_FAILURES]
        result.steps = [self._step(f"{stated.id}: {number}", check) for number, check in enumerate(shown)]
        self._write(result, self._facts.seconds.get(stated.id, 0.0))

    def add_problem(self, number: int, problem: Problem) -> None:
        key = f"the run itself: {number}: {problem.kind}: {problem.name}"
        result = self._result(key, area="run", feature=problem.kind)
        result.name = one_line(f"{problem.kind}: {problem.name}")
        result.status = Status.BROKEN
        result.statusDetails = StatusDetails(message=one_line(problem.detail), trace=clip(problem.detail, _SHOWN_BODY))
        result.labels.append(Label(LabelType.SEVERITY, Severity.BLOCKER.value))
        self._write(result, 0.0)

    def _result(self, key: str, *, area: str, feature: str) -> TestResult:
        labels = {
            LabelType.EPIC: area,
            LabelType.FEATURE: feature,
            LabelType.PARENT_SUITE: self._target,
            LabelType.SUITE: area,
            LabelType.SUB_SUITE: feature,
            LabelType.FRAMEWORK: "conformance",
        }
        header = self._facts.record.header
        return TestResult(
            uuid=str(self._identity(key)),
            name=visible(key),
            fullName=visible(f"conformance.{area}.{key}"),
            historyId=_digest(self._target, key),
            testCaseId=_digest(key),
            stage="finished",
            titlePath=["conformance", visible(area)],
            labels=[Label(name, visible(value)) for name, value in labels.items()],
            parameters=[_parameter("target", self._target), _parameter("version", header.version)],
        )

    def _identity(self, key: str) -> UUID:
        return uuid5(NAMESPACE_URL, _digest(self._target, key))

    def _step(self, key: str, check: Check) -> TestStepResult:
        return TestStepResult(
            name=failure_in_words(check),
            status=Status.FAILED,
            stage="finished",
            statusDetails=StatusDetails(message=failure_in_words(check)),
            parameters=[_parameter(name, value) for name, value in {**check.said, "test": check.test}.items()],
            attachments=[self._attach(f"{key}: {place}", entry) for place, entry in enumerate(check.evidence)],
            start=self._clock,
            stop=self._clock,
        )

    def _attach(self, key: str, exchange: Evidence) -> Attachment:
        kind = AttachmentType.TEXT
        name = ATTACHMENT_PATTERN.format(prefix=f"{PREFIX}{self._identity(key)}", ext=kind.extension)
        self.texts[f"{FOLDER}/{name}"] = _exchange(exchange)
        answer = exchange.status if exchange.status is not None else "no answer"
        return Attachment(one_line(f"{exchange.actor}: {exchange.request}: {answer}", 120), name, kind.mime_type)

    def _write(self, result: TestResult, seconds: float) -> None:
        result.start = self._clock
        self._clock += round(seconds * 1000)
        result.stop = self._clock
        data = attr.asdict(result, filter=lambda _, value: value not in (None, [], ""))
        file = TEST_CASE_PATTERN.format(prefix=f"{PREFIX}{result.uuid}")
        self.texts[f"{FOLDER}/{file}"] = json.dumps(data, ensure_ascii=False) + "\n"


def _parameter(name: str, value: object) -> Parameter:
    # Excluded: otherwise Allure would begin a new history when, for example, the version changes.
    return Parameter(name=name, value=clip(value, 1000), excluded=True)


def _trace(row: RequirementVerdict) -> str:
    shown = [exchange.curl for check in row.failures[:SHOWN_FAILURES] for exchange in check.evidence]
    return "\n".join(clip(curl, _SHOWN_BODY) for curl in shown)


def _exchange(exchange: Evidence) -> str:
    parts = (
        f"$ {clip(exchange.curl, _SHOWN_BODY)}",
        f"{visible(exchange.request)}    as {visible(exchange.actor)}",
        clip(exchange.request_body, _SHOWN_BODY),
        f"{visible(exchange.status) or 'no answer'}    after {exchange.milliseconds} ms",
        clip(exchange.response_body, _SHOWN_BODY),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _environment(facts: Facts) -> str:
    header = facts.record.header
    about = {
        "verdict": f"{facts.result.verdict}: {facts.result.explanation}",
        "requirements": facts.total.score,
        **{name.replace(" ", "_"): text for name, text in facts.headline.items()},
        "target": header.target,
        "base_url": header.base_url,
        "version": header.version,
        "edition": header.edition,
        "suite": header.suite,
        "contract": header.contract,
        "seed": header.seed,
        "drawn": facts.drawn_in_words,
        "python": header.python,
    }
    return "".join(f"{name} = {_property_value(value)}\n" for name, value in about.items())


def _property_value(value: object) -> str:
    """Write a value so that a Java properties file, which is Latin-1, has the same content."""
    escaped = one_line(value, 1000).replace("\\", "\\\\")
    units = escaped.encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)  # noqa: PLR2004 - end of ASCII


def _digest(*parts: str) -> str:
    text = "\n".join(visible(part) for part in parts)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
