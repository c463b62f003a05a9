"""`index.html`, parsed as a browser does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from conformance.reports import html
from conformance.reports.facts import Facts
from conformance.results.record import Reason
from conformance.results.verdicts import add_up
from selftest.reports.report_samples import CURL, INCOMPLETE, SAMPLES, failed, planned, record

if TYPE_CHECKING:
    from conformance.results.record import RunRecord

_VOID = {"meta", "link", "input", "br"}
_INLINE = {"a", "b", "code", "span"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())


class Page(HTMLParser):
    """Every element with the text inside it; fails on elements that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self._open: list[Node] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INLINE:
            self.handle_data(" ")
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.nodes.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for node in self._open:
            node.texts.append(data)

    def by_class(self, name: str) -> list[Node]:
        return [node for node in self.nodes if name in node.classes]

    def by_id(self, name: str) -> Node:
        (node,) = (node for node in self.nodes if node.attributes.get("id") == name)
        return node

    @property
    def rows(self) -> list[Node]:
        return [node for node in self.nodes if node.tag == "tr" and "data-verdict" in node.attributes]


def _page(sample: RunRecord) -> Page:
    return Page(html.render(Facts.of(sample)))


@pytest.mark.parametrize("name", SAMPLES)
def test_there_is_one_row_per_requirement_with_its_verdict(name: str) -> None:
    page, result = _page(SAMPLES[name]), add_up(SAMPLES[name])
    assert [row.attributes["data-verdict"] for row in page.rows] == [row.verdict for row in result.rows]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_loads_nothing_and_every_link_has_a_target(name: str) -> None:
    page = _page(SAMPLES[name])
    assert not [node for node in page.nodes if "src" in node.attributes or node.tag in ("img", "iframe", "object")]
    hrefs = [node.attributes["href"] for node in page.nodes if "href" in node.attributes]
    ids = [node.attributes["id"] for node in page.nodes if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    assert {href for href in hrefs if href != "data:,"} <= {f"#{name}" for name in ids}


def test_markup_from_the_target_is_shown_as_text() -> None:
    page = _page(SAMPLES["odd"])
    assert len([node for node in page.nodes if node.tag == "script"]) == 1
    assert not [node for node in page.nodes if node.tag == "b" and node.text == "body"]
    assert any("<script>alert(1)</script>" in node.text for node in page.by_class("statement"))
    assert any("{{ 7*7 }}" in node.text and "\\x00" in node.text for node in page.by_class("statement"))


@pytest.mark.parametrize("name", SAMPLES)
def test_only_verified_requirements_are_green(name: str) -> None:
    page, result = _page(SAMPLES[name]), add_up(SAMPLES[name])
    chips = page.by_class("chip")
    assert [("verified" in chip.classes) for chip in chips] == [row.verdict == "passed" for row in result.rows]
    green = {node.tag for node in page.by_class("verified")} - {"span"}
    assert not green
    assert bool(page.by_class("conformant")) == (result.verdict == "conformant")


def test_a_failure_comes_first_with_everything_needed_to_repeat_it() -> None:
    page = _page(SAMPLES["non-conformant"])
    failures = page.by_class("failure")
    assert [node.attributes["id"] for node in failures] == ["failed-scope.switch", "failed-scope.hint"]
    text = failures[0].text
    assert "Endpoints > Job token scope" in text
    assert "expected 204 without a body actual 204 with 20 bytes place /namespace/parent_id" in text
    assert CURL in text
    assert "an undue <b>body</b>" in text
    assert "1 more failed check" in text
    assert "a warning, no violation" in failures[1].text
    order = [node.attributes.get("id") for node in page.nodes if node.tag == "section" and "id" in node.attributes]
    assert order == ["failed", "areas", "gaps", "requirements", "run"]


def test_gaps_are_grouped_by_reason_with_links_to_their_rows() -> None:
    page = _page(INCOMPLETE)
    summaries = [node.text for node in page.nodes if node.tag == "summary" and re.match(r"\d+ ", node.text)]
    assert summaries[:2] == [
        "2 no test yet: no test",
        "1 precondition not met: precondition not met in this sample",
    ]
    assert "export.status" in page.by_id("gaps").text
    assert page.by_class("score")[0].text == "1 of 7 verified, 6 not verified"


def test_observations_have_their_own_section() -> None:
    assert "scope.page-size 20 entries without per_page" in _page(SAMPLES["conformant"]).by_id("observations").text


def test_a_truncated_run_is_marked_at_the_top() -> None:
    page = _page(SAMPLES["truncated"])
    box = page.by_class("bad")[0]
    assert box.text.startswith("This run was cut off")
    assert page.nodes.index(box) < page.nodes.index(page.by_id("requirements"))
    assert "ended cut off" in page.by_id("run").text


def test_an_empty_record_makes_a_page_that_says_so() -> None:
    page = _page(SAMPLES["empty"])
    assert not page.rows
    assert "The record names no requirement." in page.by_id("requirements").text
    assert "nothing planned" in page.by_class("bad")[0].text


def test_the_run_is_described() -> None:
    text = _page(SAMPLES["conformant"]).by_id("run").text
    for fact in ("3f9ac1d27b60", "4711", "17.7", "premium", "0.1.0", "2026-03-01T10:00:00+00:00", "340", "3.12.1"):
        assert fact in text
    assert "$TOKEN_MAINTAINER" in text


def test_large_bodies_are_cut_and_the_rest_counted() -> None:
    text = html.render(Facts.of(SAMPLES["odd"]))
    assert text.count("[280000 more characters in report.json]") == 3
    assert "[296000 more characters in report.json]" in text
    assert (
        text.count("x" * 1000) == 4
    )  # what says the same about the same calls is shown once, although it failed forty times
    assert len(text) < 500_000


def test_failed_checks_beyond_the_first_are_counted() -> None:
    checks = tuple(failed("scope.read", actual=f"status {number}", place=f"/{number}") for number in range(40))
    text = html.render(Facts.of(record(planned("scope.read"), checks=checks)))
    assert "39 more failed checks" in text
    assert "… and 34 more in report.json" in text


def test_requirements_that_the_same_response_violates_are_below_it() -> None:
    names = ("scope.read", "scope.switch", "conventions.status")
    run = record(*map(planned, names), checks=tuple(failed(name, expected=f"what {name} says") for name in names))
    page = _page(run)
    (failure,) = page.by_class("failure")
    assert "The same violates 2 more requirements: scope.switch" in failure.text
    for name in names[1:]:
        assert page.by_id(f"failed-{name}")


def test_a_thousand_requirements_make_a_page_of_acceptable_size() -> None:
    rows = [
        planned(f"area-{number % 9}.rule-{number}", status="pending", reason=Reason.NO_TEST_YET)
        for number in range(1000)
    ]
    text = html.render(Facts.of(record(*rows)))
    assert len(Page(text).rows) == 1000
    assert len(text) < 2_000_000
