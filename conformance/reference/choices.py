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
    absent_removal: Repeat = Repeat.REFUSE
    target_must_be_visible: bool = True  # to be added; removing never asks
    allowlist_lost_when_limit_off: bool = False

    # Merge request approvals.
    repeated_approval: Repeat = Repeat.REFUSE
    absent_unapproval: Repeat = Repeat.REFUSE

    # Group relations export.
    export_delay_seconds: float = 0.2
    export_batch_size: int = 2  # objects in a batch
