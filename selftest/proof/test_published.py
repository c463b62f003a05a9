"""Published results of the proof: figures for programs, and a page about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from conformance.proof.published import main, page

if TYPE_CHECKING:
    from pathlib import Path


def test_figures_and_page_say_which_parts_were_not_run(tmp_path: Path) -> None:
    file = tmp_path / "published" / "figures.json"
    result = CliRunner().invoke(main, [str(tmp_path), str(file)])
    assert result.exit_code == 0, result.output
    figures = json.loads(file.read_text(encoding="utf-8"))
    assert figures["foreign_faults"] is None
    assert file.with_name("proof.html").read_text(encoding="utf-8").count("<b>not run</b>\n") == 6


def test_a_part_that_was_not_run_again_keeps_its_figures_and_their_contract(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    earlier = {"contract": "ab", "cells": 59}
    file.write_text(json.dumps({"networks": earlier}), encoding="utf-8")
    assert CliRunner().invoke(main, [str(tmp_path), str(file)]).exit_code == 0
    figures = json.loads(file.read_text(encoding="utf-8"))
    assert figures["networks"] == earlier
    assert figures["contract"] != "ab"


@pytest.mark.parametrize(
    "value", [7, "a word", ["one", "other"], [], {"killed": 6, "tried": 7}, list("abcdefghijklmn")]
)
def test_the_page_shows_every_count_of_a_part(value: object) -> None:
    text = page({"suite": "0.1.0", "contract": "ab", "faults": {"by_sort": value}})
    assert "by sort" in text
    assert "14, such as a, b, c" in text if value == list("abcdefghijklmn") else "such as" not in text


def test_text_of_a_part_is_never_markup() -> None:
    assert "<script>" not in page({"suite": "", "contract": "", "faults": {"left_out": "<script>alert(1)</script>"}})
