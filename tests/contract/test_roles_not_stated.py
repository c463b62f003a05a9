"""Callers below the Maintainer role, where no row of the text says whether they are served."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange import area_of, arranged
from conformance.suite.call_forms import take_back
from conformance.suite.derived import (
    caller_named,
    changes_a_state,
    claims_of,
    held_against,
    is_known,
    served_caller,
    takes_part,
)
from conformance.suite.expectations import must_be_as_before

if TYPE_CHECKING:
    from conformance.suite import Operation

UNTOUCHED = "errors.refusal.changes-nothing"
BELOW_MAINTAINER = ("developer", "reporter", "guest", "outsider")


def may_be_refused(operation: Operation) -> list[str]:
    """Return the callers of whom the text says neither that they are served nor that they are refused."""
    return [name for name in BELOW_MAINTAINER if name not in {*operation.served, *operation.refused}]


def is_undone_at_once(operation: Operation) -> bool:
    """Tell whether a served call is undone before the next one, whoever made it; work in the background is not."""
    example = area_of(operation).request_examples[operation.id]
    lasts = example.stays or example.takes_seconds or example.busy_seconds
    return not lasts and example.undo is None


@pytest.mark.every_operation(
    where=lambda operation: (
        takes_part(operation)
        and changes_a_state(operation)
        and bool(may_be_refused(operation))
        and is_undone_at_once(operation)
    ),
    requirements=lambda _: claims_of(UNTOUCHED),
)
def test_who_is_refused_where_no_role_is_stated_has_changed_nothing(operation: Operation) -> None:
    """A service may serve these callers or refuse them, but may not refuse them and make the change all the same."""
    with arranged(operation) as prepared:
        before = prepared.state()
        can_change = prepared.sent_by(served_caller(operation)).is_served and prepared.state() != before
        prepared.again()
        for name in may_be_refused(operation) if can_change else ():
            if not is_known(name):
                continue
            before = prepared.state()
            answer = prepared.sent_by(caller_named(name))
            after = prepared.state()
            if answer.exchange.is_refusal:
                with held_against([UNTOUCHED], go_on=True):
                    must_be_as_before("the state", before, after, answer.exchange)
            if answer.is_served or after != before:
                take_back(prepared.call, answer)
                prepared.again()
