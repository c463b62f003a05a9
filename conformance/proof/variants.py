"""Legal personalities of the reference: other choices where the specification is silent; each must stay green."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class Variant:
    """One legal difference, or several that go together."""

    name: str
    says: str
    choices: Choices
    features: Mapping[str, bool] = field(default_factory=dict)
    """Where it declares other features than the reference does by itself."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """What its profile says of patience."""


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "hides-what-it-refuses",
        "Every refusal is a 404, as if nothing were there.",
        replace(
            _PLAIN,
            anonymous_code=404,
            forbidden_code=404,
            invalid_code=404,
            rejected_code=404,
            repeated_code=404,
            approval_refused_code=404,
            error_shape=ErrorShape.ERROR,
        ),
    ),
    Variant(
        "unprocessable-problems",
        "Invalid input is a 422, and errors are problem documents.",
        replace(
            _PLAIN,
            invalid_code=422,
            rejected_code=422,
            repeated_code=409,
            wrong_method_code=404,
            error_shape=ErrorShape.PROBLEM,
        ),
    ),
    Variant(
        "says-nothing-in-errors",
        "Errors have no body, and pages no headers.",
        replace(_PLAIN, error_shape=ErrorShape.EMPTY, pagination_headers=False, anonymous_code=403),
    ),
    Variant(
        "plain-text-errors",
        "Errors are plain text.",
        replace(_PLAIN, error_shape=ErrorShape.TEXT, forbidden_code=401, hidden_code=403),
    ),
    Variant(
        "always-200",
        "Whatever is created, approved or reset answers 200.",
        replace(
            _PLAIN,
            created_code=200,
            approved_code=200,
            unapproved_code=200,
            approvals_reset_code=200,
            rule_deleted_code=200,
            integration_deleted_code=200,
        ),
    ),
    Variant(
        "created-and-silent",
        "Updates answer 201, and nothing is said where the text shows no body.",
        replace(
            _PLAIN,
            updated_code=201,
            unapproved_code=204,
            approvals_reset_code=204,
            integration_deleted_code=202,
            unshown_bodies=False,
        ),
    ),
    Variant(
        "repeats-are-fine",
        "Adding, removing, approving and disabling again succeed.",
        replace(
            _PLAIN,
            repeated_addition=Repeat.ACCEPT,
            absent_removal=Repeat.ACCEPT,
            repeated_approval=Repeat.ACCEPT,
            absent_unapproval=Repeat.ACCEPT,
            absent_integration_disabled=Repeat.ACCEPT,
            unknown_export_relation=Repeat.ACCEPT,
            repeated_rule_name=Repeat.REFUSE,
        ),
    ),
    Variant(
        "short-pages",
        "Pages hold five entries at most, odd page numbers are refused, lists come the other way round.",
        replace(
            _PLAIN,
            default_per_page=2,
            max_per_page=5,
            page_below_one=OutOfRange.REFUSE,
            page_past_the_end=OutOfRange.REFUSE,
            list_order=Order.REVERSED,
            key_order=Order.REVERSED,
            pagination_totals=False,
        ),
    ),
    Variant(
        "nothing-extra",
        "Bodies hold what is described and no more, times come in seconds.",
        replace(_PLAIN, extra_fields=False, timestamps=TimestampStyle.SECONDS, project_in_own_allowlist=False),
    ),
    Variant(
        "offsets-and-large-numbers",
        "Times carry offsets and fractions, numbers are large.",
        replace(_PLAIN, timestamps=TimestampStyle.OFFSET, first_id=2_100_000_000),
    ),
    Variant(
        "strict-input",
        "Nothing is coerced, and parameters are taken from JSON bodies only.",
        replace(
            _PLAIN,
            coercion=Coercion.STRICT,
            parameters_in_query=False,
            parameters_in_forms=False,
            token_in_query=False,
            bearer_everywhere=False,
            unfit_approvers=Unfit.REFUSE,
            locked_setting_written=Unfit.REFUSE,
        ),
    ),
    Variant(
        "slow-exports",
        "An export takes a second, and one relation is shown as an object.",
        replace(
            _PLAIN,
            export_delay_seconds=1.0,
            export_batch_size=1,
            export_status_filtered_as_list=False,
            unbatched_export_has_batches=True,
        ),
    ),
    Variant(
        "throttled",
        "Every seventieth call is answered 429 with Retry-After.",
        replace(_PLAIN, throttle_every=70, retry_after_seconds=0),
    ),
    Variant(
        "throttled-without-a-word",
        "Every five hundredth call is answered 429 without Retry-After.",
        replace(_PLAIN, throttle_every=500, retry_after_seconds=None),
    ),
    Variant(
        "redirects-the-older-name",
        "The older name of integrations redirects to the newer one.",
        replace(_PLAIN, alias_redirect_code=308),
    ),
    Variant(
        "limit-enforced",
        "The limit on inbound access starts on and cannot be switched off from 18.0 on.",
        replace(_PLAIN, inbound_limit_enforced=True, outbound_enabled_from_18_0=False),
    ),
    Variant(
        "other-approvals",
        "Only those whom rules name approve, the highest rule counts, absent lists remove, no default rule is listed.",
        replace(
            _PLAIN,
            approval_outside_rules=False,
            approvals_counted=Counting.HIGHEST,
            absent_lists_remove=True,
            absent_flag_resets=True,
            default_rule_listed=False,
            all_branches_listed=False,
            system_rules_overwrite=True,
            report_rules_creatable_in_projects=False,
            configuration_read_from_16_0=False,
        ),
    ),
    Variant(
        "other-settings",
        "Groups hand nothing down, unusual combinations are stored, empty updates are refused.",
        replace(
            _PLAIN,
            group_settings_bind=Handing.NONE,
            selective_removals_while_retaining=Unfit.DROP,
            conflicting_removals=Unfit.DROP,
            empty_settings_update=Repeat.REFUSE,
            reauthentication_is_password=False,
            integration_kept_when_disabled=False,
            integration_settings_nested=False,
            completion_window=Window.FIXED,
            completion_streams=False,
        ),
    ),
    Variant(
        "without-optional-features",
        "No completions, no group approval rules, community edition.",
        replace(_PLAIN, completions_offered=False, group_approval_rules_offered=False, enterprise=False),
        features={"code_completion": False, "group_approval_rules": False, "enterprise_edition": False},
    ),
)
