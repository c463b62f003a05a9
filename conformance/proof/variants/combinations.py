"""Random combinations of the reference's choices: what is legal alone is legal together, except a few pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from conformance.proof.variants import alterations, legal_at
from conformance.proof.variants.running import UNKNOWN, VariantRun
from conformance.reference.choices import (
    Choices,
    Coercion,
    Counting,
    ErrorShape,
    Handing,
    Order,
    OutOfRange,
    Repeat,
    TimestampStyle,
    Unfit,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.proof.variants.variant import Alteration

#: Versions at which combinations are drawn: old, new, and where rows of the table differ most.
VERSIONS = ("12.3", "15.9", "16.0", "17.7", "18.0", "19.0", UNKNOWN)

#: Choices that are not drawn: the suite cannot see them, or they take minutes and show nothing more.
NOT_DRAWN: Mapping[str, str] = {
    "throttled_code": "another code than 429 would be no back-pressure but a refusal",
    "max_body_bytes": "the suite sends no body that a service could find too large",
    "deletion_code": "seen by those alone who prepare the world",
    "duplicate_code": "seen by those alone who prepare the world",
    "completion_file_name_length": "the suite names files as briefly as people do",
    "completion_content_length": "the suite sends a few lines",
}

_REFUSALS = (400, 401, 403, 404, 422)
_FLAG = (False, True)

#: The values that each choice may have, including the reference's own.
LEGAL: Mapping[str, tuple[Any, ...]] = {
    "anonymous_code": (401, 403, 404, 400),
    "forbidden_code": (403, 401, 404, 422),
    "hidden_code": (404, 403, 401),
    "missing_code": (404, 400, 403, 422),
    "invalid_code": (400, 422, 404),
    "rejected_code": (400, 409, 422, 403),
    "repeated_code": (400, 409, 422, 404),
    "absent_route_code": (404, 405, 410, 400),
    "wrong_method_code": (405, 404, 400),
    "too_large_code": (413, 400),
    "unsupported_media_code": (415, 406, 400),
    "error_shape": tuple(ErrorShape),
    "retry_after_seconds": (0, 1, None),
    "throttle_every": (0, 300, 1000),
    "created_code": (201, 200),
    "approved_code": (201, 200),
    "unapproved_code": (201, 200, 202, 204),
    "approvals_reset_code": (202, 200, 204),
    "updated_code": (200, 201),
    "rule_deleted_code": (204, 200, 202),
    "integration_deleted_code": (204, 200, 202),
    "default_per_page": (20, 1, 3, 100),
    "max_per_page": (100, 2, 5, 1000),
    "per_page_above_maximum": tuple(OutOfRange),
    "page_below_one": tuple(OutOfRange),
    "page_past_the_end": tuple(OutOfRange),
    "pagination_headers": _FLAG,
    "pagination_totals": _FLAG,
    "unmarked_lists_are_paged": _FLAG,
    "list_order": tuple(Order),
    "coercion": tuple(Coercion),
    "parameters_in_query": _FLAG,
    "parameters_in_forms": _FLAG,
    "token_in_query": _FLAG,
    "bearer_everywhere": _FLAG,
    "alias_redirect_code": (None, 301, 307, 308),
    "extra_fields": _FLAG,
    "timestamps": tuple(TimestampStyle),
    "key_order": tuple(Order),
    "web_url": ("https://service.example.com", "http://10.0.0.7:8080/base"),
    "first_id": (1, 1000, 2_100_000_000),
    "unshown_bodies": _FLAG,
    "enterprise": _FLAG,
    "group_approval_rules_offered": _FLAG,
    "completions_offered": _FLAG,
    "inbound_enabled_initially": _FLAG,
    "outbound_enabled": _FLAG,
    "outbound_enabled_from_18_0": _FLAG,
    "inbound_limit_enforced": _FLAG,
    "project_in_own_allowlist": _FLAG,
    "repeated_addition": tuple(Repeat),
    "repeated_addition_code": (201, 200, 204),
    "absent_removal": tuple(Repeat),
    "target_must_be_visible": _FLAG,
    "allowlist_lost_when_limit_off": _FLAG,
    "repeated_approval": tuple(Repeat),
    "absent_unapproval": tuple(Repeat),
    "approval_refused_code": _REFUSALS,
    "absent_unapproval_code": _REFUSALS,
    "approval_outside_rules": _FLAG,
    "approvals_counted": tuple(Counting),
    "system_rules_overwrite": _FLAG,
    "system_rules_listed": _FLAG,
    "project_rules_listed_in_merge_requests": _FLAG,
    "copies_need_names": _FLAG,
    "overriding_enforced": _FLAG,
    "approvals_reader": (20, 10, 30, 40),
    "approval_rules_writer": (40, 30),
    "merge_request_rules_writer": (30, 20, 40),
    "configuration_writer": (40, 30),
    "default_rule_listed": _FLAG,
    "default_rule_name": ("All Members", "Anybody"),
    "several_default_rules": _FLAG,
    "largest_approvals_required": (6, 100, 1000),
    "repeated_rule_name": tuple(Repeat),
    "unknown_rule_type": tuple(Unfit),
    "unfit_approvers": tuple(Unfit),
    "approvers_must_be_members": _FLAG,
    "absent_lists_remove": _FLAG,
    "absent_flag_resets": _FLAG,
    "report_rules_creatable_in_groups": _FLAG,
    "report_rules_creatable_in_projects": _FLAG,
    "group_rules_apply_to_all_branches": _FLAG,
    "all_branches_listed": _FLAG,
    "configuration_read_from_16_0": _FLAG,
    "conflicting_removals": tuple(Unfit),
    "reset_approvals_initially": _FLAG,
    "author_approval_initially": _FLAG,
    "committers_barred_initially": _FLAG,
    "author_approval_is_one_setting": _FLAG,
    "export_delay_seconds": (Choices().export_delay_seconds, 0.0, 0.4),
    "export_batch_size": (2, 1, 1000),
    "export_status_filtered_as_list": _FLAG,
    "unknown_export_relation": tuple(Repeat),
    "unbatched_export_has_batches": _FLAG,
    "failing_export_relations": ((), ("boards",)),
    "offset_page_refused_code": (405, 400, None),
    "ci_job_token_scope_enabled_from_17_0": _FLAG,
    "runner_registration_gone": _FLAG,
    "group_settings_on_initially": (
        Choices().group_settings_on_initially,
        (),
        ("allow_author_approval", "selective_code_owner_removals"),
    ),
    "project_settings_on_initially": ((), ("allow_author_approval", "retain_approvals_on_push")),
    "group_settings_bind": tuple(Handing),
    "locked_setting_written": tuple(Unfit),
    "selective_removals_while_retaining": tuple(Unfit),
    "empty_settings_update": tuple(Repeat),
    "reauthentication_is_password": _FLAG,
    "integration_not_creatable_code": (422, 400, 404),
    "integration_kept_when_disabled": _FLAG,
    "absent_integration_disabled": tuple(Repeat),
    "integration_settings_nested": _FLAG,
    "integrations_notify_of_group_mentions": _FLAG,
    "all_integrations_switchable": _FLAG,
    "completion_window": tuple(Window),
    "malformed_completions_count": _FLAG,
    "completion_streams": _FLAG,
    "completion_alternatives": (1, 0, 3),
}

_DRAWN_FOR_ONE = 4
#: Groups of alterations of which a service has at most one.
EXCLUSIVE = (
    ("encodes-downloads", "keeps-downloads-in-a-storage", "writes-headers-in-capitals"),
    ("finishes-relations-one-by-one", "begins-exports-later", "serves-older-exports-meanwhile"),
    ("finishes-relations-one-by-one", "begins-exports-later", "refuses-exports-meanwhile"),
    # A delayed action would be scheduled for whoever calls at that time.
    ("exports-for-each-user", "empties-the-status-first", "begins-exports-later"),
    # Together they would list relations without a state also after the first export.
    ("empties-the-status-first", "lists-relations-before-the-first-export"),
    # Together they would allow nobody to create a rule without approvers.
    ("makes-no-default-rules", "makes-rules-that-name-nobody-default"),
    # Two ways to number rules: together two rules of one place would have the same number.
    ("counts-rules-in-each-place", "gives-numbers-again"),
    ("counts-the-rules-there-are", "gives-numbers-again"),
    ("counts-ids-down", "gives-numbers-again"),
    # The replacement of a deleted copy would have its number, as if the copy still existed.
    ("gives-numbers-again", "lets-copies-take-places"),
    # If one list shows the rules of two places, numbers by place would occur twice.
    ("counts-the-rules-there-are", "counts-rules-in-each-place", "hands-rules-down"),
    ("counts-the-rules-there-are", "counts-rules-in-each-place", "has-asked-for-approvals-above"),
    ("counts-the-rules-there-are", "counts-rules-in-each-place", "shows-groups-the-rules-around-them"),
    ("counts-the-rules-there-are", "counts-rules-in-each-place", "lets-copies-take-places"),
    # A list of the rules that apply would show two places, each of which may count its rules by itself.
    ("lists-the-rules-that-apply", "asks-for-rules-of-both-levels"),
    # Both decide which rules of the project a merge request lists.
    ("lists-the-rules-that-apply", "lets-copies-take-places", "brings-the-projects-rules"),
    # Together they would refuse an update that leaves out the number, because a replaced rule would require none.
    ("replaces-rules-of-groups", "asks-regular-rules-for-approvals"),
)


@dataclass(frozen=True, slots=True)
class Combination:
    """The drawn choices that are not the reference's own, and the drawn alterations."""

    changed: Mapping[str, Any]
    altered: tuple[str, ...]

    def at(self, version: str) -> VariantRun:
        """Return the run of this combination at a version, without what is illegal at that version."""
        choices = legal_at(replace(Choices(), **self.changed), version)
        features = {
            "code_completion": choices.completions_offered,
            "group_approval_rules": choices.group_approval_rules_offered,
            "enterprise_edition": choices.enterprise,
            "approval_configuration": choices.configuration_read_from_16_0,
            "group_mention_events": choices.integrations_notify_of_group_mentions,
        }
        named: tuple[Alteration, ...] = tuple(alterations.ALTERATIONS[name] for name in self.altered)
        return VariantRun(self.name, version, choices, features, alterations=named)

    @property
    def name(self) -> str:
        """The differences, so that a reader of an alarm can make the same service."""
        changes = [f"{name}={value!r}" for name, value in self.changed.items()]
        return ", ".join([*changes, *self.altered]) or "nothing"


def drawn(number: int, seed: int) -> tuple[Combination, ...]:
    """Return a number of combinations; the same seed gives the same ones."""
    return tuple(_one(f"{seed}:{count}") for count in range(number))


def _one(seed: str) -> Combination:
    """Draw a few combinations and return the one that differs most from the reference: the first ones hardly differ."""
    found: list[Combination] = []

    def remember(combination: Combination) -> None:
        found.append(combination)

    limits = settings(
        max_examples=_DRAWN_FOR_ONE,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    # Each from its own seed: examples of one run are often variations of each other.
    limits(hypothesis.seed(seed)(hypothesis.given(combination=combinations())(remember)))()
    return max(found, key=lambda each: len(each.changed))


@st.composite
def combinations(draw: st.DrawFn) -> Combination:
    """Draw new values for about a third of the choices, and some alterations."""
    own = Choices()
    changed = {
        name: draw(st.sampled_from([value for value in values if value != getattr(own, name)]))
        for name, values in LEGAL.items()
        if draw(st.integers(0, 2)) == 2  # noqa: PLR2004 - of three
    }
    altered = [name for name in alterations.ALTERATIONS if draw(st.booleans())]
    if "still-changes-configurations" in altered:
        # A service that accepts changes also shows their result.
        changed.pop("configuration_read_from_16_0", None)
    for rivals in EXCLUSIVE:
        met = [name for name in rivals if name in altered]
        stays = draw(st.sampled_from(met)) if met else ""
        altered = [name for name in altered if name == stays or name not in rivals]
    return Combination(changed, tuple(altered))
