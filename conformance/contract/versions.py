"""Versions of the service, as the version table counts them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from conformance.errors import UsageError

#: Python reads no number of more than some thousand digits.
_FORM = re.compile(r"^v?(\d{1,9})\.(\d{1,9})(?:[.\-+].*)?$")

#: The versions whose interface differs from the one before, and their neighbours that show the difference.
TABLE = ("12.3", "15.2", "15.3", "15.8", "15.9", "16.0", "16.1", "16.4", "17.0", "17.1", "17.7", "18.0", "19.0")


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A version with the precision of the specification: major and minor.

    Patch levels and pre-releases are accepted and dropped: `17.7.1-pre` is 17.7.
    """

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str, place: str = "") -> Self:
        """Read a version from text; raise UsageError, which names the place of the text, when it is none."""
        match = _FORM.match(text.strip())
        if match is None:
            raise UsageError(f"{_at(place)}'{text}' is not a version. Write major.minor, such as 17.7, or 'unknown'.")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def parse_known(cls, text: str, place: str = "") -> Self | None:
        """Read a version that a target may have; return None for `unknown`.

        Raise UsageError for a version outside the specification; it names the place, an option or a line of a file, if
        given.
        """
        if text.strip().lower() == "unknown":
            return None
        version = cls.parse(text, place)
        if not OLDEST <= version <= NEWEST:
            raise UsageError(
                f"{_at(place)}{version} is outside the specification, which speaks of {OLDEST} to {NEWEST}. "
                "Give one in between, or 'unknown'."
            )
        return version

    @classmethod
    def parse_declared(cls, text: str, place: str) -> tuple[Self | None, str]:
        """Read the version of a target that an operator declares in some place, and return it with any warning.

        A version newer than the specification is judged as the newest version of the specification. Raise UsageError
        for an older one, and for text that is no version.
        """
        if text.strip().lower() != "unknown" and cls.parse(text, place) > NEWEST:
            known = f"{NEWEST}, the last one that the specification speaks of"
            told = f"{_at(place)}{text} is newer than {known}; it is judged as that."
            return cls(NEWEST.major, NEWEST.minor), told
        return cls.parse_known(text, place), ""

    def __str__(self) -> str:
        """Write it as the version table does."""
        return f"{self.major}.{self.minor}"


def _at(place: str) -> str:
    return f"{place}: " if place else ""


OLDEST = Version.parse(TABLE[0])
NEWEST = Version.parse(TABLE[-1])


def holds(version: Version | None, introduced: Version | None, removed: Version | None) -> bool:
    """Tell whether something with these tags exists at a version.

    At an unknown version (None), everything may exist.
    """
    if version is None:
        return True
    return (introduced is None or introduced <= version) and (removed is None or version < removed)
