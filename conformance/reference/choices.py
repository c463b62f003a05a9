"""Every behaviour that the specification leaves open, decided in this one place.

The defaults follow what well-known servers of this kind do. Any other value is a legal variant of the
service: nothing here may contradict the specification, and nothing of this kind is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ErrorShape(StrEnum):
    """How the body of a refusal looks."""

    MIXED = "mixed"  # "message" for refusals, "error" for parameters that cannot be read
    ERROR = "error"  # always {"error": text}
    PROBLEM = "problem"  # application/problem+json
    TEXT = "text"  # plain text
    EMPTY = "empty"  # no body at all


class Coercion(StrEnum):
    """What becomes of a JSON value whose type is not the stated one."""

    LENIENT = "lenient"  # "5" is 5, "true" and 1 are true
    STRICT = "strict"  # refused


class Repeat(StrEnum):
    """What becomes of a call that asks for what is already so."""

    REFUSE = "refuse"
    ACCEPT = "accept"


class OutOfRange(StrEnum):
    """What becomes of a page number or page size outside the sensible range."""

    CLAMP = "clamp"
    REFUSE = "refuse"


class TimestampStyle(StrEnum):
    """Which ISO 8601 form timestamps take."""

    MILLISECONDS = "milliseconds"  # 2024-05-01T10:00:00.000Z
    SECONDS = "seconds"  # 2024-05-01T10:00:00Z
    OFFSET = "offset"  # 2024-05-01T12:00:00.000000+02:00


class Unfit(StrEnum):
    """What becomes of that part of a request which the service cannot use."""

    DROP = "drop"
    REFUSE = "refuse"  # the whole request


class Counting(StrEnum):
    """How the numbers of several approval rules make one."""

    SUM = "sum"
    HIGHEST = "highest"


class Handing(StrEnum):
    """Which settings of a group bind the groups and projects inside it."""

    NONE = "none"
    STRICTER = "stricter"  # those whose value leaves less freedom than the other
    ALL = "all"  # those that were ever set


class Window(StrEnum):
    """How the minute of a rate limit is measured."""

    SLIDING = "sliding"  # the last 60 seconds
    FIXED = "fixed"  # from second 0 to second 60 of a minute


class Order(StrEnum):
    """In which order lists, or the keys of objects, are written."""

    STATED = "stated"
    REVERSED = "reversed"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """One personality of the service; every field is a place where the specification is silent."""

    # Refusals: HTTP status codes.
    anonymous_code: int = 401
    forbidden_code: int = 403
    hidden_code: int = 404  # a private project or group that the caller may not see
    missing_code: int = 404  # something that does not exist
    invalid_code: int = 400  # a parameter missing or of the wrong type
    rejected_code: int = 400  # a well-formed request that breaks a rule of the domain
    repeated_code: int = 400  # a refused repetition, see the Repeat fields
    absent_route_code: int = 404  # an endpoint that this version does not have
    wrong_method_code: int = 405
    too_large_code: int = 413
    unsupported_media_code: int = 415
    throttled_code: int = 429
    error_shape: ErrorShape = ErrorShape.MIXED
    retry_after_seconds: int | None = 1  # None leaves the header out
    throttle_every: int = 0  # answer each n-th request with throttled_code; 0 never

    # Successes whose status the specification does not state.
    created_code: int = 201  # POST with a described body: rules and project configuration
    approved_code: int = 201
    unapproved_code: int = 201
    approvals_reset_code: int = 202
    updated_code: int = 200  # PUT whose answer has a body
    rule_deleted_code: int = 204
    integration_deleted_code: int = 204

    # Pagination.
    default_per_page: int = 20
    max_per_page: int = 100
    per_page_above_maximum: OutOfRange = OutOfRange.CLAMP
    page_below_one: OutOfRange = OutOfRange.CLAMP
    page_past_the_end: OutOfRange = OutOfRange.CLAMP  # CLAMP answers an empty list
    pagination_headers: bool = True
    pagination_totals: bool = True
    unmarked_lists_are_paged: bool = False
    list_order: Order = Order.STATED

    # Requests.
    coercion: Coercion = Coercion.LENIENT
    parameters_in_query: bool = True  # of writing calls; group approval rules take them always
    parameters_in_forms: bool = True
    token_in_query: bool = True
    bearer_everywhere: bool = True  # the completion endpoint takes Bearer always
    max_body_bytes: int = 1_000_000
    alias_redirect_code: int | None = None  # 301, 307 or 308: the older of two names redirects to the newer

    # Responses.
    extra_fields: bool = True  # the fields that real servers send beyond the described ones
    timestamps: TimestampStyle = TimestampStyle.MILLISECONDS
    key_order: Order = Order.STATED
    web_url: str = "https://service.example.com"
    first_id: int = 1  # of every id sequence
    unshown_bodies: bool = True  # a body is sent where the text shows none

    # Edition and feature flags.
    enterprise: bool = True
    group_approval_rules_offered: bool = True
    completions_offered: bool = True

    # Job token scope.
    inbound_enabled_initially: bool = True
    outbound_enabled: bool = False
    outbound_enabled_from_18_0: bool = True  # still shown once its removal was planned
    inbound_limit_enforced: bool = False  # from 18.0 the instance may forbid switching the limit off
    project_in_own_allowlist: bool = True
    repeated_addition: Repeat = Repeat.REFUSE
    repeated_addition_code: int = 201  # of one that is accepted; 204 tells nothing, as nothing was done
    absent_removal: Repeat = Repeat.REFUSE
    target_must_be_visible: bool = True  # to be added; removing never asks
    allowlist_lost_when_limit_off: bool = False

    # Merge request approvals.
    repeated_approval: Repeat = Repeat.REFUSE
    absent_unapproval: Repeat = Repeat.REFUSE
    approval_refused_code: int = 401  # not allowed to approve, wrong password, or a refused repetition
    absent_unapproval_code: int = 404
    approval_outside_rules: bool = True  # developers whom no rule names may approve as well
    approvals_counted: Counting = Counting.SUM  # approvals_required and approvals_left of a merge request
    system_rules_overwrite: bool = False  # they too make approval_rules_overwritten true
    system_rules_listed: bool = True  # among the rules of a merge request; else they show in its state alone
    project_rules_listed_in_merge_requests: bool = False  # those of the project that apply, beside its own ones
    copies_need_names: bool = True  # though a copy has the name of the project rule
    overriding_enforced: bool = True  # the project configuration can forbid rules of merge requests

    # Approval rules. The numbers of roles are access levels.
    approvals_reader: int = 20  # in private projects; elsewhere anybody may read
    approval_rules_writer: int = 40  # of projects
    merge_request_rules_writer: int = 30
    configuration_writer: int = 40
    default_rule_listed: bool = True  # the any_approver rule of a group or project, before anybody makes one
    default_rule_name: str = "All Members"
    several_default_rules: bool = False
    largest_approvals_required: int = 100
    repeated_rule_name: Repeat = Repeat.ACCEPT
    unknown_rule_type: Unfit = Unfit.REFUSE  # when a rule is created or, of a group, updated
    unfit_approvers: Unfit = Unfit.DROP  # also groups that the caller cannot see, and branches
    approvers_must_be_members: bool = True
    absent_lists_remove: bool = False  # a list that an update does not send: removes all, or changes nothing
    absent_flag_resets: bool = False  # the same for applies_to_all_protected_branches
    report_rules_creatable_in_groups: bool = False
    report_rules_creatable_in_projects: bool = True  # with a report_type
    group_rules_apply_to_all_branches: bool = True  # those created; no parameter says it
    all_branches_listed: bool = True  # by a rule that applies to all protected branches

    # Project approval configuration.
    configuration_read_from_16_0: bool = True  # only changing it was removed
    conflicting_removals: Unfit = Unfit.REFUSE  # selective_code_owner_removals with reset_approvals_on_push
    reset_approvals_initially: bool = True
    author_approval_initially: bool = False
    committers_barred_initially: bool = False
    author_approval_is_one_setting: bool = True  # here, and allow_author_approval of the approval settings

    # Group relations export.
    export_delay_seconds: float = 0.01
    export_batch_size: int = 2  # objects in a batch
    export_status_filtered_as_list: bool = True  # else one object, when one relation is asked for
    unknown_export_relation: Repeat = Repeat.REFUSE  # in the status; ACCEPT answers an empty list
    unbatched_export_has_batches: bool = False  # an empty list
    failing_export_relations: tuple[str, ...] = ()

    # What the rows of the version table leave open.
    offset_page_refused_code: int | None = 405  # `page` where only keyset pagination is left; None passes it over
    ci_job_token_scope_enabled_from_17_0: bool = False  # of a project, once its removal was due
    runner_registration_gone: bool = False  # answered with 410, as announced for some later release

    # Provisioning.
    deletion_code: int = 202  # of projects and groups
    duplicate_code: int = 409  # a username, member, source branch, ... that is taken

    # Approval settings.
    group_settings_on_initially: tuple[str, ...] = (
        "allow_author_approval",
        "allow_committer_approval",
        "allow_overrides_to_approver_list_per_merge_request",
        "retain_approvals_on_push",
    )
    project_settings_on_initially: tuple[str, ...] = ()
    group_settings_bind: Handing = Handing.STRICTER
    locked_setting_written: Unfit = Unfit.DROP
    selective_removals_while_retaining: Unfit = Unfit.REFUSE
    empty_settings_update: Repeat = Repeat.ACCEPT
    reauthentication_is_password: bool = True  # the two settings are one under two names

    # Integrations.
    integration_not_creatable_code: int = 422
    integration_kept_when_disabled: bool = True  # read as inactive and blank; else as absent
    absent_integration_disabled: Repeat = Repeat.REFUSE
    integration_settings_nested: bool = True  # under "properties"; else beside the other fields
    integrations_notify_of_group_mentions: bool = True  # those of projects; else such flags are for groups alone
    all_integrations_switchable: bool = False  # each takes `active`, and is off unless told; else the issue tracker

    # Code completion.
    completion_file_name_length: int = 255
    completion_content_length: int = 400_000
    completion_window: Window = Window.SLIDING
    malformed_completions_count: bool = False  # against the rate limit
    completion_streams: bool = True  # else one JSON result is sent whatever was asked for
    completion_alternatives: int = 1
