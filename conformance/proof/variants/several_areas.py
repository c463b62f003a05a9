"""Variants that differ in several areas at once."""

from __future__ import annotations

from dataclasses import replace

from conformance.proof.variants import (
    approval_rules,
    approval_settings,
    approvals,
    code_completion,
    group_relations_export,
    integrations,
    merge_request_approval_rules,
    requests,
)
from conformance.proof.variants.variant import Variant
from conformance.reference.choices import Choices, Coercion, Handing, Repeat, Unfit, Window

_PLAIN = Choices()

VARIANTS = (
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
            integrations.asks_for_required_settings_each_time,
            approvals.looks_at_the_sha_first,
            merge_request_approval_rules.is_particular_about_copies,
        ),
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
        alterations=(approval_settings.shows_sources_without_locks, integrations.shows_no_defaults),
    ),
    Variant(
        "much-is-switched-off",
        "Settings let no merge request have rules at first; the check of completions is behind their flag, and it off.",
        replace(_PLAIN, completions_offered=False),
        features={"code_completion": False},
        alterations=(
            approval_settings.lets_settings_forbid_overriding,
            code_completion.withholds_the_check_of_completions,
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
            approval_rules.lets_maintainers_use_group_rules,
            approvals.shows_strangers_approvals,
            group_relations_export.lets_everybody_export,
        ),
    ),
    Variant(
        "maintainers-only",
        "Rules and configurations are for maintainers alone, also those of merge requests, and owners are none.",
        replace(_PLAIN, approvals_reader=40, merge_request_rules_writer=40),
        alterations=(
            approval_rules.leaves_group_rules_to_administrators,
            approval_settings.keeps_owners_out_of_project_settings,
        ),
    ),
    Variant(
        "absent-rules-are-gone",
        "Deleting a rule that never was there succeeds, and updates that say nothing are refused.",
        alterations=(
            approval_rules.deletes_absent_rules,
            approval_rules.refuses_empty_updates,
            integrations.refuses_empty_settings,
        ),
    ),
    Variant(
        "documented-paths-only",
        "What the text does not describe is no path, and answered 401; rules of groups are for administrators alone.",
        replace(_PLAIN, absent_route_code=401, forbidden_code=404),
        alterations=(requests.has_only_what_is_documented, approval_rules.leaves_group_rules_to_administrators),
    ),
)
