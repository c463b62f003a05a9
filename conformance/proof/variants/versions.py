"""Variants in what exists at a version and which features exist, and the alterations that make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.variants import approval_settings
from conformance.proof.variants.variant import Variant
from conformance.reference.choices import Choices
from conformance.reference.errors import RejectedError

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.areas.approval_rule_records import RuleRequest


def leaves_deprecated_fields_out(service: Service) -> None:
    """Show a configuration without deprecated fields, and refuse the deprecated kind of report."""
    configurations, rules = service.project_approval_configurations, service.project_approval_rules
    changed, require = configurations.present_changed, rules.require_creatable

    def shown(configuration: Any) -> dict[str, Any]:
        return {name: value for name, value in changed(configuration).items() if name != "approvals_before_merge"}

    def require_creatable(wanted: RuleRequest) -> None:
        if wanted.report_type == "license_scanning":
            raise RejectedError("is deprecated", parameter="report_type")
        require(wanted)

    configurations.present = shown
    configurations.present_changed = shown
    rules.require_creatable = require_creatable


def numbers_itself_otherwise(service: Service) -> None:
    """Report the version number of the product, which is not that of the interface."""
    service.meta.version = lambda: {"version": "3.2.1-community", "revision": "c0ffee"}


_PLAIN = Choices()

VARIANTS = (
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
        "other-ends-of-the-table",
        "What the version table leaves open is decided the other way, and nothing deprecated is left.",
        replace(
            _PLAIN,
            offset_page_refused_code=None,
            ci_job_token_scope_enabled_from_17_0=True,
            runner_registration_gone=True,
        ),
        alterations=(approval_settings.still_changes_configurations, leaves_deprecated_fields_out),
    ),
    Variant(
        "numbered-otherwise",
        "The product has another number than the interface.",
        alterations=(numbers_itself_otherwise,),
    ),
)
