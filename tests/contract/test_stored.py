"""What was sent as JSON and accepted is what the resource then holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.fuzzing import must_be_stored
from conformance.suite.arrange import area_of, arranged
from conformance.suite.derived import claims_of, held_against, served_caller, takes_part

if TYPE_CHECKING:
    from conformance.suite import Operation

#: What becomes another text where it is written in HTML, in an older character set, or is read as ASCII.
UNUSUAL = ("R&D's Prüfung 検査 🚀", "R&D's Prüfung 検査")


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
        name = prepared.call.body.get("name") if isinstance(prepared.call.body, dict) else None
        for text in UNUSUAL if isinstance(name, str) else ():
            prepared.again()
            call = replace(prepared.call, body={**prepared.call.body, "name": f"{name} {text}"})
            unusual = prepared.sent(call, served_caller(operation))
            # A service may take fewer characters than JSON has; what it takes, it keeps.
            with held_against(["conventions.requests.are-json"], go_on=True):
                unusual.must_not_break()
            if unusual.is_served:
                with held_against(["conventions.requests.are-json"]):
                    must_be_stored(prepared, call, unusual)
                break
