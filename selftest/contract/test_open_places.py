"""The places where the specification is silent: the page about them is up to date, and every note is explained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract, Level, OpenPlace
from conformance.contract.lint import problems
from conformance.contract.open_places import PAGE, Danger, load_open_places, page
from conformance.errors import ContractError
from conformance.proof.variants import VARIANTS

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "python -m conformance.contract.open_places"


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.load()


@pytest.fixture(scope="module")
def notes(contract: Contract) -> frozenset[str]:
    return frozenset(name for name, entry in contract.requirements.items() if entry.level is Level.NOTE)


def place(*requirements: str, not_varied: str = "Nobody | sees it.") -> OpenPlace:
    return OpenPlace(
        "some-place", "Errors", "What a_b is.", "Either | or.", Danger.HIGH, requirements, not_varied=not_varied
    )


def first_problem(contract: Contract, *places: OpenPlace) -> str:
    return next(text for text in problems(replace(contract, open_places=places)) if text.startswith("open place"))


def test_the_page_is_generated_from_the_current_data(contract: Contract, notes: frozenset[str]) -> None:
    current = PAGE.read_text(encoding="utf-8") == page(contract.open_places, notes)
    assert current, f"{PAGE} is not what the data say: run `{COMMAND}`"


def test_every_place_names_requirements_that_exist(contract: Contract) -> None:
    unknown = {name for entry in contract.open_places for name in entry.requirements} - set(contract.requirements)
    assert unknown == set()


def test_every_note_is_explained_by_a_place(contract: Contract, notes: frozenset[str]) -> None:
    named = {name for entry in contract.open_places for name in entry.requirements}
    assert notes
    assert notes - named == set()


def test_each_section_has_one_table(contract: Contract, notes: frozenset[str]) -> None:
    """Entries of one section are together in the data, so that the page has each heading once."""
    headings = [line for line in page(contract.open_places, notes).splitlines() if line.startswith("## ")]
    assert headings == list(dict.fromkeys(headings))
    assert set(headings) == {f"## {entry.where}" for entry in contract.open_places}


def test_a_place_is_one_row_that_separates_notes_from_judged_requirements() -> None:
    row = page([place("one.two", "one.three")], frozenset({"one.three"})).splitlines()[-1]
    assert row == (
        '| <a id="some-place"></a>some-place | What a\\_b is. | Either \\| or. | high | none: Nobody \\| sees it. '
        "| `one.two`<br>`one.three`\\* |"
    )


def test_a_row_names_the_variants_that_choose_otherwise() -> None:
    varied = replace(place("one.two", not_varied=""), varied_by=("one-way", "another-way"))
    assert page([varied], frozenset()).splitlines()[-1].endswith("| high | `one-way`<br>`another-way` | `one.two` |")


def test_every_place_where_a_service_may_differ_has_variants_that_exist(contract: Contract) -> None:
    """This is tested here and not in the contract, which does not know the proof."""
    known = {variant.name for variant in VARIANTS}
    assert {place.id for place in contract.open_places if set(place.varied_by) - known} == set()
    assert {place.id for place in contract.open_places if bool(place.varied_by) is bool(place.not_varied)} == set()


def test_every_variant_belongs_to_an_open_place(contract: Contract) -> None:
    named = {name for place in contract.open_places for name in place.varied_by}
    assert {variant.name for variant in VARIANTS} - named == set()


def test_a_place_that_is_listed_twice_is_a_problem(contract: Contract) -> None:
    known = next(iter(contract.requirements))
    twice = place(known)
    assert first_problem(contract, twice, twice) == "open place some-place is listed twice"


def test_a_place_that_names_an_unknown_requirement_is_a_problem(contract: Contract) -> None:
    text = first_problem(contract, place("no.such"))
    assert text == "open place some-place names requirement no.such, which does not exist"


def test_a_place_without_a_section_of_the_specification_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "open-places.yaml"
    file.write_text(
        "open_places:\n"
        "  - {id: some-place, where: Elsewhere, silent_on: What is open here., treatment: Anything will do.,\n"
        "     danger: high, not_varied: Nobody can see it., requirements: [one.two]}\n",
        encoding="utf-8",
    )
    with pytest.raises(ContractError, match="where"):
        load_open_places(file)


@pytest.mark.parametrize("said", ["", "varied_by: [always-200], not_varied: Nobody can see it., "])
def test_a_place_says_either_what_varies_it_or_why_nothing_does(tmp_path: Path, said: str) -> None:
    file = tmp_path / "open-places.yaml"
    file.write_text(
        "open_places:\n"
        "  - {id: some-place, where: Errors, silent_on: What is open here., treatment: Anything will do.,\n"
        f"     danger: high, {said}requirements: [one.two]}}\n",
        encoding="utf-8",
    )
    with pytest.raises(ContractError, match="open_places"):
        load_open_places(file)
