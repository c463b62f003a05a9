"""Foreign faults: small deviations of the reference, written by whoever knows the specification and not the tests.

They belong to no requirement. A run of the whole suite against each, as operators run it, shows what the suite sees
that nobody tuned it to: `faults` returns them.
"""

from __future__ import annotations

from conformance.proof.foreign import (
    beside_options,
    callers,
    content,
    counts,
    crossings,
    evening_slips,
    fresh_approving,
    fresh_exports,
    fresh_forms,
    fresh_hooks,
    fresh_neighbours,
    fresh_reviews,
    fresh_reviews_rules,
    fresh_rules,
    fresh_scopes,
    fresh_settings,
    fresh_slips,
    fresh_tenants,
    fresh_wiring,
    further_slips,
    further_slips_approving,
    last_slips,
    last_slips_approving,
    latest_slips,
    latest_slips_approving,
    levels,
    morning_slips,
    neighbours,
    newer_reviews,
    newer_reviews_approving,
    newer_slips,
    newer_slips_approving,
    newer_tenants,
    newer_wiring,
    races,
    tired_access,
    tired_effects,
    writes,
)
from conformance.proof.foreign.registry import FOREIGN, ForeignFault

__all__ = [
    "ForeignFault",
    "beside_options",
    "callers",
    "content",
    "counts",
    "crossings",
    "evening_slips",
    "faults",
    "fresh_approving",
    "fresh_exports",
    "fresh_forms",
    "fresh_hooks",
    "fresh_neighbours",
    "fresh_reviews",
    "fresh_reviews_rules",
    "fresh_rules",
    "fresh_scopes",
    "fresh_settings",
    "fresh_slips",
    "fresh_tenants",
    "fresh_wiring",
    "further_slips",
    "further_slips_approving",
    "last_slips",
    "last_slips_approving",
    "latest_slips",
    "latest_slips_approving",
    "levels",
    "morning_slips",
    "neighbours",
    "newer_reviews",
    "newer_reviews_approving",
    "newer_slips",
    "newer_slips_approving",
    "newer_tenants",
    "newer_wiring",
    "races",
    "tired_access",
    "tired_effects",
    "writes",
]


def faults() -> tuple[ForeignFault, ...]:
    """Return all foreign faults, in the order in which they were written."""
    return tuple(FOREIGN.values())
