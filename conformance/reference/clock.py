"""The time of the service, replaceable so that jobs and windows of time can be tested without waiting."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the time in UTC, for timestamps."""
        return datetime.now(tz=UTC)

    def seconds(self) -> float:
        """Return seconds that only move forward, for durations and rate limits."""
        return time.monotonic()
