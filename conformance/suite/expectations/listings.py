"""Lists as they are read, page by page or whole, and what may be expected of their entries."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, Self

from conformance.http.bodies import json_in
from conformance.http.exchange import goes_on
from conformance.results.record import Reason
from conformance.results.text import each_as_json
from conformance.suite.context import Unmet, Violation, current_run, suspects
from conformance.suite.expectations.words import given, looked, settles

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from conformance.suite.expectations.answers import Answer

#: Page size for lists that fill a shorter page.
LONGEST_PAGE = 100
#: Page sizes to try when a larger one is refused, because no maximum is stated.
_SHORTER_PAGES = (5, 2)
_NOT_TAKEN = frozenset({400, 422})
#: If no pagination is stated, this many entries may be only the first page.
SHORTEST_PAGE = 5
_FEW_PAGES = 10
_MOST_ENTRIES = 50_000
#: The header in which services of this kind tell the number of entries on all pages.
_TOTAL = "x-total"


class Reader(Protocol):
    """Somebody who can read a path, like a caller."""

    def get(self, path: str, **query: str | int | bool | None) -> Answer:
        """Send a GET."""

    def look(self, path: str, **query: str | int | bool | None) -> Answer:
        """Read; repeat an earlier read of this test only if somebody may have changed the result since."""


def first_page(reader: Reader, path: str) -> Answer:
    """Return the first page of a list, in a size that the target accepts; the run keeps this size from then on."""
    run = current_run()
    answer = reader.look(path, page=1, per_page=run.learnt.page_length)
    for length in _SHORTER_PAGES if answer.status in _NOT_TAKEN else ():
        if length < run.learnt.page_length and (shorter := reader.look(path, page=1, per_page=length)).is_served:
            run.learnt.page_length = length
            return shorter
    return answer


class Listing:
    """A paginated list, read page by page until a page is empty, refused, or brings nothing new."""

    def __init__(self, caller: Reader, path: str) -> None:
        """Read the list of a path as a caller."""
        self._caller = caller
        self._path = path
        self._run = current_run()
        self.entries = self._walk()

    def _walk(self) -> list[Any]:
        """Read all pages: short ones, or long ones if the list is long, for example one that only grows."""
        most = self._run.profile.limits.page_walk
        first_page(self._caller, self._path)
        found = self._pages(self._run.learnt.page_length, min(_FEW_PAGES, most))
        if found is None and most > _FEW_PAGES:
            found = self._pages(LONGEST_PAGE, most)
        if found is None:
            raise Unmet(Reason.PRECONDITION, f"{self._path} has more than {most} pages")
        return found

    def _pages(self, length: int, most: int) -> list[Any] | None:
        """Return the entries of all pages of a size; None when there are more than this many pages."""
        entries: list[Any] = []
        seen: set[Any] = set()
        for page in range(1, most + 1):
            answer = self._caller.look(self._path, page=page, per_page=length)
            if page > 1 and answer.exchange.is_refusal:
                self._require_later_pages(min(length, len(entries)))
                return entries
            if answer.exchange.is_refusal and length > self._run.learnt.page_length:
                return self._pages(self._run.learnt.page_length, most)
            if answer.exchange.is_refusal and self._is_empty():
                return entries
            answer.given_served()
            # An entry twice on one page is twice in the list; on a later page, the list moved or has no pages.
            fresh = [(entry, _identity(entry)) for entry in _array(answer)]
            entries += [entry for entry, known_by in fresh if known_by not in seen]
            if all(known_by in seen for _, known_by in fresh):
                return entries
            given(len(entries) <= _MOST_ENTRIES, f"{self._path} has more than {_MOST_ENTRIES} entries")
            seen |= {known_by for _, known_by in fresh}
            if page == 1 and (_has_no_number(answer) or self._is_all(answer, len(entries))):
                return entries
        return None

    def _is_empty(self) -> bool:
        """Tell whether a list is served without pages and has no entry: its first page may be past its end."""
        answer = self._caller.look(self._path)
        return answer.is_served and json_in(answer.exchange.body) == []

    def _is_all(self, answer: Answer, number: int) -> bool:
        """Tell whether a first page says that it has all entries, and the target is known to count correctly.

        Nothing is stated about the header. It is trusted for a kind of list once a page of one entry announced others.
        """
        told, kind = answer.exchange.headers.get(_TOTAL), self._path.rpartition("/")[2]
        believed = self._run.learnt.tells_totals
        if told != str(number) or (kind not in believed and number == 1):
            return False
        if kind not in believed:
            believed[kind] = self._short_page_tells(told)
        return believed[kind]

    def _short_page_tells(self, total: str) -> bool:
        """Tell whether a page of one entry announces this many in total; other tests judge the rest."""
        page = self._caller.look(self._path, page=1, per_page=1)
        with suppress(Unmet):
            return page.is_served and len(_array(page)) == 1 and page.exchange.headers.get(_TOTAL) == total
        return False

    def _require_later_pages(self, entries: int) -> None:
        """Go on only if the list shows a second page of those entries that it is known to have.

        A page after the last one may be refused; if every page but the first is refused, the rest of the list is
        hidden. Where a shorter first page is as long, the service passes the length over, and the list was whole.
        """
        length = entries // 2
        if length and self._caller.look(self._path, page=2, per_page=length).exchange.is_refusal:
            first = self._caller.look(self._path, page=1, per_page=length)
            is_whole = first.is_served and len(_array(first)) >= entries
            given(is_whole, f"{self._path} has several entries, and its second page is refused")

    def ids(self) -> list[Any]:
        """Return the numbers of the entries, sorted."""
        return sorted((entry.get("id") for entry in self.entries if isinstance(entry, dict)), key=str)

    def having(self, **values: Any) -> list[Any]:
        """Return the entries with these values."""
        return [
            entry
            for entry in self.entries
            if isinstance(entry, dict) and all(entry.get(name) == wanted for name, wanted in values.items())
        ]

    def the(self, **values: Any) -> dict[str, Any]:
        """Return the one entry with these values; inconclusive when it does not appear in time."""
        self._wait(lambda: bool(self.having(**values)))
        found = self.having(**values)
        if not found:
            raise Unmet(Reason.VACUOUS, f"{self._path} has no entry with {each_as_json(values)} to look at")
        return dict(found[0])

    def given_without(self, **values: Any) -> Self:
        """Go on only if there is no entry with these values, or it disappears in time."""
        gone = self._wait(lambda: not self.having(**values))
        given(gone, f"{self._path} still has an entry with {each_as_json(values)}")
        return self

    def must_be_of(self, ids: Collection[Any]) -> Self:
        """Expect the entries with these numbers and no others."""
        wanted = sorted(ids, key=str)
        self._settle(lambda: self.ids() == wanted, f"the entries {wanted}")
        return self

    def must_contain(self, **values: Any) -> Self:
        """Expect an entry with these values, within the time the target has to settle."""
        self._settle(lambda: bool(self.having(**values)), f"an entry with {each_as_json(values)}")
        return self

    def must_contain_once(self, **values: Any) -> Self:
        """Expect exactly one entry with these values."""
        self._settle(lambda: len(self.having(**values)) == 1, f"one entry with {each_as_json(values)}")
        return self

    def must_not_contain(self, *, after: Listing, **values: Any) -> Self:
        """Expect no entry with these values; `after` must have had one, or its absence proves nothing."""
        if not after.having(**values):
            raise Unmet(Reason.VACUOUS, f"there was no entry with {each_as_json(values)} that could have gone")
        self._settle(lambda: not self.having(**values), f"no entry with {each_as_json(values)}")
        return self

    def _settle(self, holds: Callable[[], bool], expected: str) -> None:
        """Expect a condition on the list; if the target may need time, read again until its deadline."""
        looked()
        if not self._wait(holds):
            raise Violation(f"{expected} in {self._path}", f"the entries {self.ids()}", *suspects())

    def _wait(self, holds: Callable[[], bool]) -> bool:
        def again() -> bool:
            self.entries = self._walk()
            return holds()

        return holds() or settles(again)


class WholeListing(Listing):
    """A list without stated pages, read in one call; if a service pages it anyway, a long page is requested."""

    def _walk(self) -> list[Any]:
        answer = self._caller.look(self._path, per_page=LONGEST_PAGE)
        takes_no_pages = answer.exchange.is_refusal
        entries = _array((self._caller.look(self._path) if takes_no_pages else answer).given_served())
        if len(entries) < SHORTEST_PAGE and not goes_on(answer.exchange.headers):
            return entries
        if (
            takes_no_pages
            and self._caller.look(self._path, page=1, per_page=self._run.learnt.page_length).exchange.is_refusal
        ):
            return entries
        return super()._walk()


def _has_no_number(answer: Answer) -> bool:
    """Tell whether a list was read without the number of a page, because its version has no pages of it yet."""
    return "page" not in answer.exchange.call.query


def _identity(entry: Any) -> Any:
    """Return what identifies an entry on another page: its number, because other values may change by themselves."""
    number = entry.get("id") if isinstance(entry, dict) else None
    return ("id", number) if isinstance(number, int | str) else json.dumps(entry, sort_keys=True)


def _array(answer: Answer) -> list[Any]:
    body = answer.json_if_any
    if not isinstance(body, list):
        raise Unmet(Reason.PRECONDITION, f"GET {answer.exchange.call.target} did not answer a JSON array")
    return body
