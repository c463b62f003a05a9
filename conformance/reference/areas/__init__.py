"""The areas of the service, one module each; a new area is one import and one line in AREAS."""

from __future__ import annotations

from . import (
    job_token_scope,
    meta,
)

AREAS = (
    meta.AREA,
    job_token_scope.AREA,
)
