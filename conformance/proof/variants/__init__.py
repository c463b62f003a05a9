"""
The variants of the reference: each differs where the specification is silent, and must raise no alarm.

`variant` says what a variant is. The modules in `_AREAS` hold the variants and what alters the reference for them: one
or several for each area of the specification, others for what concerns all areas (`statuses`, `requests`, `lists`,
`records`, `values`, `transport`, `versions`), and `several_areas`. `bundles` puts variants together on one service,
`combinations` draws choices and alterations at random, `running` runs the suite, and `false_alarms` is the command.
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
    transport,
    values,
    versions,
)
from conformance.proof.variants.running import UNKNOWN, VariantRun
from conformance.proof.variants.variant import Variant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.reference.choices import Choices

__all__ = ["VARIANTS", "Variant", "legal_at", "runs_of"]

_AREAS = (
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
    transport,
    values,
    versions,
)
#: A seed that puts variants together shuffles them from this order, so that it puts the same ones together whatever
#: module each of them is in. A variant that is not named here comes last.
_ORDER = """
    hides-what-it-refuses unprocessable-problems says-nothing-in-errors plain-text-errors always-200
    created-and-silent repeats-are-fine short-pages nothing-extra offsets-and-large-numbers strict-input
    slow-exports throttled throttled-without-a-word redirects-the-older-name limit-enforced other-approvals
    other-settings without-optional-features sends-strangers-to-a-login extra-fields-everywhere
    nulls-and-truth-values other-scope other-rules rules-of-all-levels-together much-is-switched-off other-roles
    maintainers-only two-settings-for-authors everything-handed-down other-ends-of-the-table exports-elsewhere
    exports-compressed-on-the-way drops-what-does-not-fit reads-lag-behind unnamed-rules-are-default
    unnamed-rules-meet-the-default regular-rules-name-somebody five-approvals-at-most
    no-more-approvals-than-approvers places-have-one-name default-rules-are-fixed default-rules-keep-their-name
    group-rules-are-replaced rules-counted-in-each-place neighbours-have-rules rules-of-both-levels-count
    rules-found-by-name nothing-to-describe numbers-come-back absent-rules-are-gone all-levels-look-alike
    merge-requests-ask-for-more approvals-take-their-time locks-reach-everywhere one-setting-is-locked
    entries-belong-to-the-limit exports-one-by-one exports-once-at-a-time exports-begin-later settings-in-pairs
    values-move no-order pages-with-gaps pages-of-two other-numbers-and-dates moments-by-machine exports-tried-again
    capitals-on-the-wire vendor-on-the-wire nameless-on-the-wire bad-gateway compressed-on-the-wire
    closes-each-connection json-at-length says-where-things-are talks-where-nothing-is-shown
    documented-parameters-only short-names-only numbers-as-far-as-they-go numbers-beyond-doubles addresses-of-ipv6
    everybody-has-one-name groups-by-the-letter projects-by-the-letter completes-otherwise streams-events
    lives-in-another-time batches-from-ten files-in-pieces relations-before-the-first-export settings-as-texts
    secrets-as-stars integrations-numbered-anew integrations-set-up-anew copies-take-places tells-the-last-event
    fields-of-others-move approvals-count-once author-approval-locked forbidden-rules-hidden batches-fail
    many-relations-in-pages relations-with-odd-names passwords-wanted-at-first settings-explained
    settings-as-objects copies-follow first-rule-brings-others approvals-go-with-rules authors-in-no-rule
    names-are-trimmed default-rules-stay rules-by-name ids-count-down locked-by-licence defaults-of-the-group
    accepted-and-done-later exports-of-each-user exports-of-what-there-is exports-begin-with-nothing
    integration-of-the-installation integrations-are-always-there flags-of-other-events throttled-until-a-date
    full-for-a-moment deflated-on-the-wire much-in-headers sessions-of-callers no-body-where-none-is-described
    names-in-any-case rare-refusals dates-with-a-comma dates-to-the-minute addresses-in-capitals
    documented-paths-only lists-turn-round numbered-otherwise
""".split()  # noqa: SIM905 - as a list it would be as long as a module
_PLACES = {name: place for place, name in enumerate(_ORDER)}

VARIANTS: tuple[Variant, ...] = tuple(
    sorted(
        (variant for area in _AREAS for variant in area.VARIANTS),
        key=lambda variant: _PLACES.get(variant.name, len(_PLACES)),
    )
)


def runs_of(variants: Iterable[Variant], version: str) -> tuple[VariantRun, ...]:
    """Return a round of the suite for each variant at a version."""
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
    """Return choices without what contradicts the text at a version, or what only others among them make illegal."""
    enforced_by_default = version == UNKNOWN or int(version.partition(".")[0]) >= 18  # noqa: PLR2004 - row 18.0
    if enforced_by_default:
        choices = replace(choices, inbound_enabled_initially=True)
    if choices.unmarked_lists_are_paged:
        # A list that is not said to have pages must be there when no page is asked for.
        choices = replace(choices, default_per_page=max(20, choices.default_per_page))
    return replace(choices, max_per_page=max(choices.max_per_page, choices.default_per_page))
