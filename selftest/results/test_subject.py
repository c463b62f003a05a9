"""The exact artifact that was tested, as the operator names it."""

from __future__ import annotations

import pytest

from conformance.errors import UsageError
from conformance.results.subject import Subject


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("service=" + "AB" * 20, "service=gitCommit:" + "ab" * 20),
        ("registry/service=" + "0f" * 32, "registry/service=sha256:" + "0f" * 32),
        ("service=sha1:" + "0f" * 20, "service=sha1:" + "0f" * 20),
    ],
)
def test_the_algorithm_follows_from_the_length_or_the_name(text: str, words: str) -> None:
    assert Subject.parse(text).words == words
    assert Subject.parse(words) == Subject.parse(text)


@pytest.mark.parametrize("text", ["", "service", "service=", "=ab", "service=abc", "service=latest", "a b=" + "0" * 40])
def test_everything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no subject\. Write NAME=DIGEST"):
        Subject.parse(text)
