"""How long to wait for something asynchronous: less, once other things were waited for in vain."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

#: With each wait in vain, the next one for something that never came takes this part of the time, but not less than so.
_SHARE, _LEAST_SECONDS = 0.5, 5.0
_NUMBER = re.compile("[0-9]+")


@dataclass
class Waits:
    """Remembers what was waited for in a run. Safe to use from several threads.

    A service that is half built may never show what it accepted. A run that waits for each of a dozen such things until
    the deadline takes many minutes and learns nothing more. What came the last time is given the whole time.
    """

    deadline_seconds: float
    _came: set[str] = field(default_factory=set)
    _in_vain: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seconds_for(self, expected: str) -> float:
        """Return how long to wait for something, named in words; numbers in them do not matter."""
        with self._lock:
            if _kind(expected) in self._came:
                return self.deadline_seconds
            return min(self.deadline_seconds, max(_LEAST_SECONDS, self.deadline_seconds * _SHARE**self._in_vain))

    def came(self, expected: str) -> None:
        """Note that something came while it was waited for; what was there already says nothing about the next one."""
        with self._lock:
            self._came.add(_kind(expected))

    def missed(self, expected: str) -> None:
        """Note that something did not come in the time it had."""
        with self._lock:
            self._came.discard(_kind(expected))
            self._in_vain += 1


def _kind(expected: str) -> str:
    return _NUMBER.sub("0", expected)
