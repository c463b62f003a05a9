"""The pages in a real browser: what axe-core finds, how many key presses a failure takes, how long a filter takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.reports import render
from conformance.reports.diff import as_html, compare
from conformance.reports.facts import Facts
from conformance.reports.history import as_html as as_page
from conformance.reports.history import read_history
from conformance.results.record import Outcome, Reason, RunRecord
from selftest.reports.browser import evaluated, needs_browser, printed_pages
from selftest.reports.report_samples import EXCHANGE, SAMPLES, failed, left_open, observed, passed, planned, record

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_browser

_AREAS = 12


def large(failures: int = 500, exchanges: int = 10) -> RunRecord:
    """Return a run of many failures, each with its own cause and a number of exchanges."""
    rows, checks = [], []
    for number in range(failures):
        name = f"area-{number % _AREAS}.thing-{number}.does-what-it-should"
        rows.append(planned(name))
        calls = tuple(
            replace(
                EXCHANGE,
                request=f"GET /api/v4/projects/7/things-{number}/part-{call}",
                response_body=f'{{"number": {number}, "call": {call}, "text": "{"lorem ipsum " * 150}"}}',
            )
            for call in range(exchanges)
        )
        checks.append(failed(name, actual=f"a thing of the sort {number}", evidence=calls))
    return record(*rows, checks=tuple(checks))


def mixed() -> RunRecord:
    """Return a run with everything that a page can show."""
    run = record(
        *(planned(f"scope.thing-{number}") for number in range(12)),
        planned("scope.hint", level="should"),
        planned("scope.chosen", level="note"),
        planned("export.late", status="not applicable", reason=Reason.VERSION, detail="holds from 18.0", tests=()),
        checks=(
            *(failed(f"scope.thing-{number}", actual=f"sort {number}") for number in range(6)),
            failed("scope.thing-6", outcome=Outcome.UNSTABLE),
            left_open("scope.thing-7", Reason.NO_ANSWER),
            left_open("scope.thing-8", Reason.PREREQUISITE_MISSING, Outcome.NOT_TESTED),
            passed("scope.thing-9"),
            failed("scope.hint"),
            observed("scope.chosen", "20 entries"),
        ),
    )
    return replace(run, table=SAMPLES["conformant"].table)


_AXE = """
const found = await axe.run(document);
return found.violations.map((rule) => rule.id + ': ' + rule.nodes.map((node) => node.html.slice(0, 120)).join(' | '));
"""


@pytest.mark.parametrize("width", [1400, 390])
def test_axe_finds_nothing_on_any_page(width: int, tools: Path, tmp_path: Path) -> None:
    axe = (tools / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    pages = list(render(mixed(), ["html", "compliance"], tmp_path))
    render(mixed(), ["totals"], tmp_path)
    pages.append(tmp_path / "history.html")
    pages[-1].write_text(as_page(read_history(tmp_path, last=10), tmp_path), encoding="utf-8")
    pages.append(tmp_path / "diff.html")
    pages[-1].write_text(as_html(compare(Facts.of(SAMPLES["conformant"]), Facts.of(mixed())), ()), encoding="utf-8")
    found = {page.name: evaluated(page, _AXE, libraries=axe, width=width) for page in pages}
    assert found == {page.name: [] for page in pages}


_STOPS = """
const inside = (node) => { for (let at = node.parentElement; at; at = at.parentElement)
  if (at.tagName === 'DETAILS' && !at.open && !(node.tagName === 'SUMMARY' && node.parentElement === at)) return true;
  return false; };
const stops = (root) => [...root.querySelectorAll('a[href], button, summary, input, select, [tabindex="0"]')]
  .filter((node) => !node.hidden && node.tabIndex >= 0 && node.offsetParent !== null && !inside(node));
const order = stops(document);
const first = new Map();
order.forEach((node, place) => { const to = node.getAttribute('href') || '';
  if (to.startsWith('#failed-') && !first.has(to)) first.set(to, place + 1); });
const failures = [...document.querySelectorAll('article.failure')].map((node) => '#' + node.id);
const behind = (name) => { const link = document.querySelector(`a[href="${name}"]`);
  const block = link.closest('details');
  if (!block || block.open) return first.get(name);
  const at = order.indexOf(block.querySelector('summary')) + 1;
  return at + [...block.querySelectorAll('a')].indexOf(link) + 1; };
return Math.max(...failures.map((name) => first.get(name) ?? behind(name)));
"""


@pytest.mark.parametrize("failures", [6, 40, 500])
def test_the_keyboard_reaches_any_failure_within_a_hundred_key_presses(failures: int, tmp_path: Path) -> None:
    (page,) = render(large(failures, exchanges=2), ["html"], tmp_path)
    assert 0 < evaluated(page, _STOPS) <= 100


_FILTER = """
const rows = document.querySelectorAll('.requirements tbody tr');
const took = [];
const act = (change) => { const begun = performance.now(); change(); document.body.offsetHeight;
  took.push(performance.now() - begun); };
const text = document.forms[0].elements.text;
const verdict = document.querySelector('#filter [data-verdict="failed"]');
act(() => verdict.click());
act(() => verdict.click());
act(() => { text.value = 'thing-49'; text.dispatchEvent(new Event('input', { bubbles: true })); });
const shown = [...rows].filter((row) => !row.hidden).length;
const state = location.hash;
text.value = '';
act(() => document.querySelector('#filter [type="reset"]').click());
return { took, shown, state, all: rows.length };
"""


def test_five_thousand_exchanges_make_a_small_page_that_filters_at_once(tmp_path: Path) -> None:
    (page,) = render(large(), ["html"], tmp_path)
    assert page.stat().st_size < 5_000_000
    found = evaluated(page, _FILTER)
    assert (found["shown"], found["all"], found["state"]) == (11, 500, "#?text=thing-49")
    # it takes 20 ms on a busy machine; the goal is 100 ms
    assert max(found["took"]) < 300


def test_the_address_keeps_the_filters(tmp_path: Path) -> None:
    (page,) = render(mixed(), ["html"], tmp_path)
    shown = """
      location.hash = '#?verdict=failed&area=scope&text=thing-3';
      await new Promise((go) => addEventListener('hashchange', go, { once: true }));
      return [...document.querySelectorAll('.requirements tbody tr')].filter((row) => !row.hidden).map((row) => row.id);
    """
    assert evaluated(page, shown) == ["scope.thing-3"]


def test_nine_hundred_requirements_print_on_twelve_pages_with_what_failed(tmp_path: Path) -> None:
    names = [f"area-{number % _AREAS}.thing-{number}.does-what-it-should" for number in range(900)]
    checks = [failed(name, evidence=(EXCHANGE,) * 9) for name in names[:3]] + [passed(name) for name in names[3:]]
    (page,) = render(record(*map(planned, names), checks=tuple(checks)), ["html"], tmp_path)
    assert 2 <= printed_pages(page) <= 12
