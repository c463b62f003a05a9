"""Faults written by hand, one module per area: what no place of the contract tells."""

from conformance.proof.written import job_token_scope

__all__ = ["job_token_scope"]
