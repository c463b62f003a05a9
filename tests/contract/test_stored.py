"""What was sent as JSON and accepted is what the resource then holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.fuzzing import must_be_stored
from conformance.suite.arrange import area_of, arranged
from conformance.suite.derived import claims_of, held_against, served_caller, takes_part

if TYPE_CHECKING:
    from conformance.suite import Operation


def shows_what_was_sent(operation: Operation) -> bool:
    return takes_part(operation) and area_of(operation).request_examples[operation.id].read_back is not None


@pytest.mark.every_operation(
    where=shows_what_was_sent,
    requirements=lambda _: claims_of("conventions.requests.are-json"),
)
def test_what_was_accepted_is_stored(operation: Operation) -> None:
    with arranged(operation) as prepared:
        answer = prepared.sent_by(served_caller(operation)).given_served()
        with held_against(["conventions.requests.are-json"]):
            must_be_stored(prepared, prepared.call, answer)
