"""Runs of the suite against one foreign fault after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.contract import Contract
from conformance.proof.foreign import faults
from conformance.proof.variants.running import VariantRun, run_each
from conformance.reference import Choices
from conformance.results.verdicts import RunVerdict

if TYPE_CHECKING:
    from conformance.proof.foreign import ForeignFault
    from conformance.proof.variants.running import VariantResult

_DRAWN_CASES = "--max-examples=3"
#: The beginning of sections about limits, which are tested only on request.
_LIMITS = "Limits"
#: The area of a fault, by the beginning of its section; faults in other sections may belong to any area.
_AREAS = {
    "Job token scope": "job-token-scope",
    "Allowlist": "job-token-scope",
    "Code completion": "code-completion",
    "Completion result": "code-completion",
    "Group approval rules": "group-approval-rules",
    "Project approval configuration": "project-approval-configuration",
    "Project approval rules": "project-approval-rules",
    "Merge request approval": "merge-request-approvals",
    "Approval settings": "approval-settings",
    "Group relations export": "group-relations-export",
    "Integration": "integrations",
}


@dataclass(frozen=True, slots=True)
class Sight:
    """The result of the suite for one foreign fault."""

    fault: str
    dimension: str
    says: str
    verdict: str
    requirements: tuple[str, ...]
    """The requirements that failed: whoever reads the figure judges whether they fit what the fault says."""
    because: str
    """What the first of them expected and got."""
    fits: bool
    """Whether one of them is of the area that the fault names, or of no area."""
    open: tuple[str, ...]
    """What was left open instead; open is no kill."""
    whole: bool
    """Whether all tests ran, in their own order; where the area's tests ahead saw it, the run ended there."""
    seconds: float

    @property
    def is_seen(self) -> bool:
        """Whether the run was non-conformant, because of a requirement of the fault's area."""
        return self.verdict == RunVerdict.NON_CONFORMANT and self.fits


def areas_of(fault: ForeignFault) -> tuple[str, ...]:
    """Return the area of a fault; none if its section belongs to all areas."""
    return tuple(area for beginning, area in _AREAS.items() if fault.section.startswith(beginning))


def seen(name: str) -> Sight:
    """Run the suite against one fault, by its name.

    The tests of its area come first, and the run ends at the first failure that repeats. If no area fits, the whole
    suite runs in its own order, as operators run it; for limits, with what is off by default.
    """
    fault = next(one for one in faults() if one.name == name)
    service = VariantRun(
        fault.name, fault.version, fault.choices or Choices(), alterations=(fault.apply,), ahead=areas_of(fault)
    )
    options = (_DRAWN_CASES,)
    if fault.section.startswith(_LIMITS):
        service, options = replace(service, features={"completion_rate_limit": True}), (*options, "--include=slow")
    (run,) = run_each((service,), *options, "--maxfail=1")
    sight = _sight(fault, run, whole=False)
    if sight.is_seen:
        return sight
    (run,) = run_each((replace(service, ahead=()),), *options)
    return _sight(fault, run, whole=True)


def _sight(fault: ForeignFault, run: VariantResult, *, whole: bool) -> Sight:
    failed = tuple(dict.fromkeys(alarm.partition(" in ")[0] for alarm in run.alarms))
    areas = {*areas_of(fault), *Contract.load().general_areas}
    return Sight(
        fault.name,
        fault.dimension,
        fault.says,
        str(run.verdict),
        failed,
        run.alarms[0] if run.alarms else "",
        not areas_of(fault) or any(name.partition(".")[0] in areas for name in failed),
        tuple(gap.partition(":")[0] for gap in run.gaps) if whole else (),
        whole,
        run.seconds,
    )
