"""Texts of messages: values of answers are written as JSON, whatever they are."""

from __future__ import annotations

import pytest

from conformance.results.text import as_json


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ("Prüfung", '"Prüfung"'),
        ({"names": ["a", 1]}, '{"names": ["a", 1]}'),
        ({2, 1}, "[1, 2]"),
        (b"raw", "\"b'raw'\""),
        ([object], "[\"<class 'object'>\"]"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
    ],
)
def test_a_value_is_written_as_json_and_what_json_lacks_as_text(value: object, text: str) -> None:
    assert as_json(value) == text
