"""Versions of the service: which one is played, and what exists in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,3})(?:\.\d{1,5})?(?:[-+.][0-9A-Za-z.+-]*)?")


class UnknownVersionError(ValueError):
    """A text that names no version, or one outside the supported range."""


@dataclass(frozen=True, order=True)
class Version:
    """A release of the service, ordered and compared by major and minor number alone.

    `text` keeps the number as the operator gave it, patch level and pre-release mark included.
    """

    major: int
    minor: int
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read "17.7", "17.7.1" or "17.7.1-pre". Raise UnknownVersionError for anything else."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            raise UnknownVersionError(f"not a version: {text!r}; expected something like 17.7 or 17.7.1-pre")
        return cls(int(match[1]), int(match[2]), text.strip().removeprefix("v"))

    @property
    def full(self) -> str:
        """The number as the service reports it, always with a patch level."""
        return self.text if self.text.count(".") > 1 else f"{self.major}.{self.minor}.0"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True)
class VersionRange:
    """All releases from `first` to `last`, both included."""

    first: Version
    last: Version

    def __contains__(self, version: object) -> bool:
        return isinstance(version, Version) and self.first <= version <= self.last

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


SUPPORTED_VERSIONS = VersionRange(Version(12, 3), Version(19, 0))
DEFAULT_VERSION = Version(17, 7)


def supported(version: str | Version) -> Version:
    """Return the version when the service can play it. Raise UnknownVersionError otherwise."""
    parsed = Version.parse(version) if isinstance(version, str) else version
    if parsed not in SUPPORTED_VERSIONS:
        raise UnknownVersionError(f"version {parsed} is not supported; supported are {SUPPORTED_VERSIONS}")
    return parsed
