"""A model that finds a violation makes it shorter in a bounded number of tries, and says what it found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.proof.tampering import around
from conformance.proof.variants.running import VariantRun, run_each

if TYPE_CHECKING:
    from conformance.reference import Service

REQUIREMENT = "project-approval-rules.update.user-ids.removes-others"
#: Without a bound, more than ten thousand calls were made.
CALLS = 6000


def keeps_users_of_older_rules(service: Service) -> None:
    """Let a change from two users to one keep both, unless it is the newest rule of its project that is changed."""
    area, rules = service.project_approval_rules, service.approval_rules.rules

    def make(update: Any) -> Any:
        def updating(project: Any, number: int, wanted: Any, caller: Any) -> Any:
            before = rules.get(number)
            rule = update(project, number, wanted, caller)
            newest = max(one.id for one in area.rules(project))
            if before and number != newest and set(before.users) > set(rule.users):
                rule = rules[number] = replace(rule, users=before.users)
            return rule

        return updating

    around(area, "update_rule", make)


@pytest.mark.usefixtures("inside_this_process")
def test_a_failing_sequence_of_moves_is_made_shorter_for_some_time_only() -> None:
    run = VariantRun("users stay", "17.7", alterations=(keeps_users_of_older_rules,))
    (found,) = run_each([run], "-k", "model", f"--requirement={REQUIREMENT}")
    assert [alarm.split()[0] for alarm in found.alarms] == [REQUIREMENT]
    assert found.broken == ()
    assert found.requests < CALLS
