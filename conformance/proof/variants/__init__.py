"""The variants of the reference: each differs where the specification is silent, and must raise no alarm.

`variant` defines a variant. The modules in `_APPROVALS` and `_OTHERS` contain the variants and the functions that
alter the reference for them: one or several for each area of the specification, others for all areas (`statuses`,
`requests`, `lists`, `records`, `values`, `transport`, `versions`), and `several_areas`. `bundles` puts variants
together on one service, `combinations` draws choices and alterations at random, `running` runs the suite, and
`false_alarms` is the command.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.proof.variants import (
    approval_rule_names,
    approval_rules,
    approval_settings,
    approvals,
    code_completion,
    default_approval_rules,
    exported_files,
    group_relations_export,
    integrations,
    job_token_scope,
    lists,
    merge_request_approval_rules,
    records,
    requests,
    several_areas,
    statuses,
    surroundings,
    transport,
    values,
    versions,
)
from conformance.proof.variants.running import UNKNOWN, VariantRun
from conformance.proof.variants.variant import Variant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.reference.choices import Choices

__all__ = ["RELATED", "VARIANTS", "Variant", "legal_at", "runs_of"]

#: Modules by what their variants concern: those about approvals meet each other most often.
_APPROVALS = (
    approval_rule_names,
    approval_rules,
    approval_settings,
    approvals,
    default_approval_rules,
    merge_request_approval_rules,
)
_OTHERS = (
    code_completion,
    exported_files,
    group_relations_export,
    integrations,
    job_token_scope,
    lists,
    records,
    requests,
    several_areas,
    statuses,
    surroundings,
    transport,
    values,
    versions,
)
#: The variants in groups of which the members concern the same calls.
RELATED: tuple[tuple[Variant, ...], ...] = tuple(
    tuple(sorted((variant for area in areas for variant in area.VARIANTS), key=lambda variant: variant.name))
    for areas in (_APPROVALS, _OTHERS)
)
VARIANTS: tuple[Variant, ...] = tuple(
    sorted((variant for group in RELATED for variant in group), key=lambda variant: variant.name)
)


def runs_of(variants: Iterable[Variant], version: str) -> tuple[VariantRun, ...]:
    """Return a run of the suite for each variant at a version."""
    return tuple(
        VariantRun(
            variant.name,
            version,
            legal_at(variant.choices, version),
            variant.features,
            variant.limits,
            variant.alterations,
        )
        for variant in variants
    )


def legal_at(choices: Choices, version: str) -> Choices:
    """Return choices without those that contradict the text at a version, or that only other choices make illegal."""
    enforced_by_default = version == UNKNOWN or int(version.partition(".")[0]) >= 18  # noqa: PLR2004 - row 18.0
    if enforced_by_default:
        choices = replace(choices, inbound_enabled_initially=True)
    if choices.unmarked_lists_are_paged:
        # A list without stated pagination must be served if no page is requested.
        choices = replace(choices, default_per_page=max(20, choices.default_per_page))
    return replace(choices, max_per_page=max(choices.max_per_page, choices.default_per_page))
