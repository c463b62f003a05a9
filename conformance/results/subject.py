"""What exactly was tested: a build, an image or a commit, by name and digest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from conformance.errors import UsageError

#: The algorithm of a digest without one, by its number of hexadecimal digits; a commit is named by its SHA-1.
_BY_LENGTH = {40: "gitCommit", 64: "sha256", 96: "sha384", 128: "sha512"}
_LENGTHS = {"sha1": 40, "sha256": 64, "sha384": 96, "sha512": 128}
_WRITTEN = re.compile(r"(?P<name>[^=\s]+)=(?:(?P<algorithm>[A-Za-z0-9_]+):)?(?P<digest>[0-9a-fA-F]+)")


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that was tested, as in-toto names it."""

    name: str
    algorithm: str
    """Such as `sha256`, or `gitCommit`."""
    digest: str
    """In small hexadecimal digits."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `NAME=DIGEST` or `NAME=ALGORITHM:DIGEST`; raise UsageError when it is neither."""
        found = _WRITTEN.fullmatch(text)
        algorithm = (found["algorithm"] or _BY_LENGTH.get(len(found["digest"]))) if found else None
        digits = _LENGTHS.get(algorithm or "")
        if found is None or algorithm is None or (digits and len(found["digest"]) != digits):
            raise UsageError(
                f"'{text}' is no subject. Write NAME=DIGEST with a commit (40 digits) or a SHA-2 sum, or "
                "NAME=ALGORITHM:DIGEST, such as service=sha256:9f86d0..."
            )
        return cls(found["name"], algorithm, found["digest"].lower())

    @property
    def words(self) -> str:
        """The subject as records and reports write it."""
        return f"{self.name}={self.algorithm}:{self.digest}"
