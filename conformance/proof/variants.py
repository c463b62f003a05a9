"""Legal personalities of the reference: other choices where the specification is silent; each must stay green."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.proof import (
    alterations,
    approval_alterations,
    further_variants,
    odd_variants,
    service_variants,
    silent_variants,
    traffic_variants,
)
from conformance.proof.personality import Variant
from conformance.proof.variant_runs import UNKNOWN, VariantRun
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
    from collections.abc import Iterable

__all__ = ["VARIANTS", "Variant", "legal_at", "runs_of"]

_PLAIN = Choices()

VARIANTS: tuple[Variant, ...] = (
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
        "Invalid input is a 422, errors are problem documents, and no rule asks for more than six approvals.",
        replace(
            _PLAIN,
            largest_approvals_required=6,
            invalid_code=422,
            rejected_code=422,
            repeated_code=409,
            wrong_method_code=404,
            absent_route_code=410,
            hidden_code=403,
            missing_code=422,
            too_large_code=400,
            unsupported_media_code=406,
            integration_not_creatable_code=400,
            error_shape=ErrorShape.PROBLEM,
        ),
    ),
    Variant(
        "says-nothing-in-errors",
        "Errors have no body, and pages are short and have no headers.",
        replace(
            _PLAIN,
            error_shape=ErrorShape.EMPTY,
            pagination_headers=False,
            max_per_page=3,
            page_past_the_end=OutOfRange.REFUSE,
            anonymous_code=403,
        ),
    ),
    Variant(
        "plain-text-errors",
        "Errors are plain text.",
        replace(_PLAIN, error_shape=ErrorShape.TEXT, forbidden_code=401, hidden_code=403, absent_unapproval_code=409),
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
            repeated_addition=Repeat.ACCEPT,
            repeated_addition_code=204,
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
        "Nothing is coerced, parameters come in JSON bodies only, and each update of an integration is complete.",
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
        alterations=(
            alterations.asks_for_required_settings_each_time,
            approval_alterations.looks_at_the_sha_first,
            approval_alterations.is_particular_about_copies,
        ),
    ),
    Variant(
        "slow-exports",
        "An export takes a second, in which no other begins and the older files stay; one relation is an object.",
        replace(
            _PLAIN,
            export_delay_seconds=1.0,
            export_batch_size=1,
            export_status_filtered_as_list=False,
            unbatched_export_has_batches=True,
        ),
        alterations=(alterations.refuses_exports_meanwhile, alterations.serves_older_exports_meanwhile),
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
        "The older name of integrations redirects to the newer one, and each integration is off unless switched on.",
        replace(_PLAIN, alias_redirect_code=308, all_integrations_switchable=True),
    ),
    Variant(
        "limit-enforced",
        "The limit on inbound access starts on and stays on from 18.0 on; targets are let in by their members.",
        replace(_PLAIN, inbound_limit_enforced=True, outbound_enabled_from_18_0=False),
        alterations=(alterations.asks_for_membership_in_targets,),
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
            absent_route_code=400,
        ),
        features={"approval_configuration": False},
    ),
    Variant(
        "other-settings",
        "Groups hand nothing down, the instance does, empty updates are refused, and no default shows by itself.",
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
        alterations=(approval_alterations.shows_sources_without_locks, alterations.shows_no_defaults),
    ),
    Variant(
        "without-optional-features",
        "No completions, no group approval rules, no events for mentions of groups, community edition.",
        replace(
            _PLAIN,
            completions_offered=False,
            group_approval_rules_offered=False,
            enterprise=False,
            integrations_notify_of_group_mentions=False,
        ),
        features={
            "code_completion": False,
            "group_approval_rules": False,
            "enterprise_edition": False,
            "group_mention_events": False,
        },
    ),
    Variant(
        "sends-strangers-to-a-login",
        "Who sends no token is redirected to a page to log in; endpoints that are gone are not allowed.",
        replace(_PLAIN, anonymous_code=302, absent_route_code=405, approval_refused_code=403, repeated_code=409),
        alterations=(alterations.sends_strangers_to_a_login,),
    ),
    Variant(
        "extra-fields-everywhere",
        "Every object has more fields than described, those of other records among them.",
        replace(_PLAIN, pagination_totals=False),
        alterations=(alterations.adds_fields_everywhere, alterations.shows_fields_of_other_records),
    ),
    Variant(
        "nulls-and-truth-values",
        "Some pictures and descriptions are null, LDAP is absent, and projects show a truth value for code owners.",
        replace(_PLAIN, web_url="https://code.example.org/base"),
        alterations=(
            alterations.leaves_values_null,
            alterations.leaves_ldap_out,
            alterations.shows_code_owner_flag_as_truth_value,
            approval_alterations.protects_branches_for_single_users,
        ),
    ),
    Variant(
        "other-scope",
        "Targets have paths and need not be seen, the allowlist goes with its limit, off at first; lists are paged.",
        replace(
            _PLAIN,
            target_must_be_visible=False,
            allowlist_lost_when_limit_off=True,
            outbound_enabled=True,
            inbound_enabled_initially=False,
            per_page_above_maximum=OutOfRange.REFUSE,
            unmarked_lists_are_paged=True,
        ),
        alterations=(alterations.takes_paths_of_targets,),
    ),
    Variant(
        "other-rules",
        "Anybody may approve and nobody is eligible, default rules are many, groups gain approvers and lose none.",
        replace(
            _PLAIN,
            approvers_must_be_members=False,
            several_default_rules=True,
            default_rule_name="Anybody",
            report_rules_creatable_in_groups=True,
            group_rules_apply_to_all_branches=False,
            largest_approvals_required=1000,
            unknown_rule_type=Unfit.DROP,
        ),
        alterations=(
            approval_alterations.adds_to_lists_of_groups,
            approval_alterations.keeps_rule_types,
            approval_alterations.names_nobody_eligible,
        ),
    ),
    Variant(
        "rules-of-all-levels-together",
        "Projects show the rules of their groups, merge requests those of their projects and none of the system.",
        replace(
            _PLAIN,
            project_rules_listed_in_merge_requests=True,
            system_rules_listed=False,
            copies_need_names=False,
        ),
        alterations=(
            approval_alterations.hands_rules_down,
            approval_alterations.removes_hidden_groups_of_merge_requests,
            approval_alterations.counts_members_of_hidden_groups,
            approval_alterations.shows_no_sources_of_rules,
        ),
    ),
    Variant(
        "much-is-switched-off",
        "Settings let no merge request have rules at first; the check of completions is behind their flag, and it off.",
        replace(_PLAIN, completions_offered=False),
        features={"code_completion": False},
        alterations=(
            approval_alterations.lets_settings_forbid_overriding,
            alterations.withholds_the_check_of_completions,
        ),
    ),
    Variant(
        "other-roles",
        "Who may read and write rules and configurations, where the text names no role.",
        replace(
            _PLAIN,
            approvals_reader=10,
            approval_rules_writer=30,
            merge_request_rules_writer=20,
            configuration_writer=30,
        ),
        alterations=(
            approval_alterations.lets_maintainers_use_group_rules,
            approval_alterations.shows_strangers_approvals,
            alterations.lets_everybody_export,
        ),
    ),
    Variant(
        "maintainers-only",
        "Rules and configurations are for maintainers alone, also those of merge requests, and owners are none.",
        replace(_PLAIN, approvals_reader=40, merge_request_rules_writer=40),
        alterations=(
            approval_alterations.leaves_group_rules_to_administrators,
            approval_alterations.keeps_owners_out_of_project_settings,
        ),
    ),
    Variant(
        "two-settings-for-authors",
        "Configuration and settings each have an author approval of their own, and begin the other way round.",
        replace(
            _PLAIN,
            author_approval_is_one_setting=False,
            author_approval_initially=True,
            reset_approvals_initially=False,
            committers_barred_initially=True,
            project_settings_on_initially=("allow_author_approval", "retain_approvals_on_push"),
            group_settings_on_initially=(),
        ),
    ),
    Variant(
        "everything-handed-down",
        "Whatever a group ever set binds what lies in it, and merge requests may not have rules of their own.",
        replace(
            _PLAIN, group_settings_bind=Handing.ALL, overriding_enforced=False, locked_setting_written=Unfit.REFUSE
        ),
    ),
    Variant(
        "other-ends-of-the-table",
        "What the version table leaves open is decided the other way, and nothing deprecated is left.",
        replace(
            _PLAIN,
            offset_page_refused_code=None,
            confidentiality_refused_code=400,
            deprecated_settings_from_17_0=False,
            ci_job_token_scope_enabled_from_17_0=True,
            runner_registration_gone=True,
        ),
        alterations=(alterations.still_changes_configurations, approval_alterations.leaves_deprecated_fields_out),
    ),
    Variant(
        "exports-elsewhere",
        "Exports lie in a storage, one relation always fails, batches have a status of their own, and clocks differ.",
        replace(_PLAIN, export_delay_seconds=0.0, failing_export_relations=("boards",)),
        alterations=(
            alterations.keeps_downloads_in_a_storage,
            alterations.counts_batches_otherwise,
            alterations.keeps_another_time,
        ),
    ),
    Variant(
        "exports-compressed-on-the-way",
        "Exports are sent as text with compression on the way, each in one batch.",
        replace(_PLAIN, export_batch_size=1000),
        alterations=(alterations.encodes_downloads,),
    ),
    Variant(
        "drops-what-does-not-fit",
        "Integrations leave out what they cannot take; completions count malformed calls and give several choices.",
        replace(_PLAIN, malformed_completions_count=True, completion_alternatives=3),
        alterations=(alterations.drops_unfit_settings,),
    ),
    Variant(
        "reads-lag-behind",
        "What was written is read a moment later only.",
        _PLAIN,
        limits={"settle_seconds": 1.5 * alterations.LAG_SECONDS},
        alone="what a read sees is put back behind it, and so would be what moves by itself",
        alterations=(alterations.lets_reads_lag,),
    ),
    *silent_variants.VARIANTS,
    *odd_variants.VARIANTS,
    *further_variants.VARIANTS,
    *service_variants.VARIANTS,
    *traffic_variants.VARIANTS,
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
