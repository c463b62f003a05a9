"""Every operation, called as it should be by somebody who must be served: the answer is one that is documented."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.absences import OTHER_PREFIXES
from conformance.suite.arrange import Arranged, arranged
from conformance.suite.derived import (
    claims_of,
    documents_json,
    held_against,
    served_caller,
    success_requirements,
    takes_part,
)
from conformance.suite.expectations import Answer, Caller, must

if TYPE_CHECKING:
    from conformance.suite import Operation

CODES = {
    "addProjectToJobTokenAllowlist": "errors.addition-to-allowlist",
    "addGroupToJobTokenAllowlist": "errors.addition-to-allowlist",
    "updateJobTokenScope": "errors.success-without-body",
    "removeProjectFromJobTokenAllowlist": "errors.success-without-body",
    "removeGroupFromJobTokenAllowlist": "errors.success-without-body",
    "scheduleGroupRelationsExport": "errors.scheduled-export",
}
"""Operations whose code the section on errors states once more."""


NOT_FOUND = (404, 405)


def conventions_of(operation: Operation) -> frozenset[str]:
    """What the whole service promises about an answer of this operation."""
    responses = [response for response in operation.responses if response.is_success]
    with_json = any(documents_json(response) for response in responses)
    return claims_of(
        "conventions.path-prefix",
        "conventions.responses.are-json" if with_json else None,
        "conventions.responses.content-type" if with_json else None,
        "conventions.no-content" if any(response.status == "204" for response in responses) else None,
        "errors.success-with-body" if operation.is_read and with_json else None,
        CODES.get(operation.id),
    )


@pytest.mark.every_operation(
    where=takes_part,
    requirements=lambda operation: success_requirements(operation) | conventions_of(operation),
)
def test_a_call_that_must_be_served_gets_a_documented_answer(operation: Operation) -> None:
    """What the schema of the answer states is held against it in passing, place by place."""
    statuses = [response.status for response in operation.responses if response.is_success]
    stated = {response.requirement for response in operation.responses if response.is_success}
    with arranged(operation) as prepared:
        caller = served_caller(operation)
        answer = prepared.sent_by(caller)
        look_at_the_prefix(prepared, caller, answer)
        with held_against([*stated, CODES.get(operation.id)]):
            answer.must_be_served()
            must(is_one_of(answer, statuses), f"status {' or '.join(statuses)}", f"status {answer.status}")
        response = operation.response_to(answer.status)
        if response is not None and response.status == "204":
            with held_against([response.requirement, "conventions.no-content"]):
                answer.without_body()
        elif response is not None and response.schema is not None and documents_json(response):
            with held_against([response.requirement, "conventions.responses.are-json", "errors.success-with-body"]):
                must(answer.json is not None, "a JSON body", "null")
            with held_against(["conventions.responses.content-type"]):
                kind = answer.exchange.headers.get("content-type", "application/json")
                must("json" in kind.lower(), "a content type of JSON, or none", kind, answer.exchange)


def look_at_the_prefix(prepared: Arranged, caller: Caller, answer: Answer) -> None:
    """Blame the prefix only where the operation is there, and below another one: whatever else is wrong is not its."""
    missing = answer.exchange.status in NOT_FOUND
    elsewhere = [where for where in OTHER_PREFIXES if prepared.served_below(where, caller)] if missing else []
    if answer.is_served or elsewhere:
        with held_against(["conventions.path-prefix"]):
            must(not elsewhere, "the operation below /api/v4", f"the operation below {elsewhere}", answer.exchange)


def is_one_of(answer: Answer, statuses: list[str]) -> bool:
    return str(answer.status) in statuses or f"{answer.status // 100}XX" in statuses
