"""Keeps secrets out of whatever is shown."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MASK = "[redacted]"


class Redaction:
    """Knows the secrets of a run, and leaves them out of texts: plain, as part of an address or of JSON, and base64."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def text(self, text: str) -> str:
        """Return a text with a mask in the place of each secret."""
        return self._pattern.sub(_MASK, text) if self._pattern else text


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode()
