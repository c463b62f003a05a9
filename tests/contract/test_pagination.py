"""Every paginated list: pages of the requested size, disjoint and complete, and an end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import Arranged, arranged
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import claims_of, held_against, note, served_caller, takes_part
from conformance.suite.expectations import LONGEST_PAGE, Answer, Caller, given, given_done, must

if TYPE_CHECKING:
    from conformance.suite import Exchange, Operation
    from conformance.suite.arrange import Prepared

FEWEST = 3
MANY = 20
#: Maximum number of pages when reading a growing list: such a list is read in longer pages, not in more of them.
ENOUGH = 24
#: The number of a page whose first entry has a number that does not fit into 32 bits.
FARTHEST = 2**31 - 1


def is_paginated(operation: Operation) -> bool:
    return takes_part(operation) and operation.paginated is not None


@pytest.mark.every_operation(
    where=is_paginated,
    requirements=lambda operation: claims_of(
        operation.paginated,
        "conventions.pagination.parameters",
        "conventions.pagination.page-size",
        "conventions.pagination.whole-list",
        "conventions.pagination.beyond-the-end",
        "conventions.pagination.beyond-the-end-answer",
    ),
)
def test_pages_are_as_long_as_asked_for_apart_and_complete(operation: Operation) -> None:
    with arranged(operation) as prepared:
        made = prepared.fill()
        given(len(made) >= FEWEST, f"fewer than {FEWEST} entries could be made")
        caller = served_caller(operation)
        shown = caller.list(prepared.call.path).ids()
        shows_any = not {*made}.isdisjoint(shown)
        given(shows_any, "the list shows none of the entries that were made, on pages of any size")
        total = max(len(made), len(shown))
        # The second time, the list is read by the path of the project or group, if a service accepts that at all.
        by_path = prepared.by_path if prepared.by_path and prepared.by_path.sent_by(caller).is_served else None
        for length, call in zip(map(taken, lengths(total)), (prepared.call, by_path or prepared.call), strict=True):
            pages = Pages(prepared, caller, call)
            walked = pages.walk(length)
            must_be_short(operation, walked, length)
            with held_against([operation.paginated, "conventions.pagination.whole-list"]):
                if not is_whole(walked, made):
                    walked = pages.walk(length)  # somebody else may have changed the list; one good reading is enough
                listed = entries_of(walked)
                must(len(listed) == len(set(listed)), "every entry once", f"the entries {listed}")
                must(set(made) <= set(listed), f"the entries {sorted(made)} among them", f"the entries {listed}")
            look_behind_the_end(pages, len(walked), length)
        unnumbered = pages.of_no_number(length)
        if unnumbered.is_served:
            must_be_short(operation, [Page.of(unnumbered.must_be_an(list))], length)
        look_at_pages_of_no_length(pages, walked[0].ids[0])
        look_at_the_longest_page(pages)
        if total > ENOUGH:
            look_at_short_pages(pages, total)


def lengths(total: int) -> tuple[int, int]:
    """Return the shortest page size for reading the list, and the next one that leaves the last page partly filled."""
    shortest = -(-total // ENOUGH)
    return shortest, next(length for length in range(shortest + 1, total + 2) if total % length)


def taken(length: int) -> int:
    """Return a page size that the target accepts; sizes that it refused are not requested again."""
    most = current_run().learnt.page_length
    return length if most >= MANY else min(length, most)


@dataclass(frozen=True)
class Page:
    """The ids on one page of a list, and the call that it answered."""

    ids: list[Any]
    exchange: Exchange

    @classmethod
    def of(cls, answer: Answer) -> Page:
        return cls(ids(answer.json), answer.exchange)


def entries_of(pages: list[Page]) -> list[Any]:
    return [entry for page in pages for entry in page.ids]


def must_be_short(operation: Operation, pages: list[Page], length: int) -> None:
    """Expect that no page is longer than requested; the first that is longer is shown."""
    longer = [page.exchange for page in pages if len(page.ids) > length]
    with held_against([operation.paginated, "conventions.pagination.page-size"]):
        must(not longer, f"pages of at most {length}", f"pages of {[len(page.ids) for page in pages]}", *longer[:1])


@dataclass(frozen=True)
class Pages:
    """The pages of a list, for one caller."""

    prepared: Arranged
    caller: Caller
    call: Prepared

    def at(self, number: int, length: int) -> Answer:
        return self.caller.get(self.call.path, **self.call.query, page=number, per_page=length)

    def of_no_number(self, length: int) -> Answer:
        """Request a page by its size only; which page that is, is open."""
        return self.caller.get(self.call.path, **self.call.query, per_page=length)

    def of_no_length(self, number: int) -> Answer:
        """Request a page by its number only; how long it is, is open."""
        return self.caller.get(self.call.path, **self.call.query, page=number)

    def walk(self, length: int) -> list[Page]:
        """Read page after page from the first one until one is empty or refused, and return those with entries."""
        pages: list[Page] = []
        for number in range(1, self.prepared.place.profile.limits.page_walk):
            answer = self.at(number, length)
            if number > 1 and answer.exchange.is_refusal:
                return pages
            with held_against(["conventions.pagination.parameters"]):
                entries = answer.must_be(200).must_be_an(list).json
                given(bool(entries) or number > 1 or self.shows_any(), "the list is empty although entries were made")
            if not entries and number == 1:
                with held_against([self.prepared.operation.paginated]):
                    must(False, "an entry on the first page", "none, where a longer page has some", answer.exchange)
            page = Page.of(answer)
            is_new = not pages or page.ids != pages[-1].ids
            if entries:
                pages.append(page)
            if not entries or not is_new:
                return pages
        given(False, f"the list has more than {len(pages)} pages")
        return pages

    def shows_any(self) -> bool:
        """Tell whether a long page has entries; if not, short ones show nothing."""
        entries = self.at(1, taken(MANY)).json
        return isinstance(entries, list) and bool(entries)


def ids(entries: list[Any]) -> list[Any]:
    return [entry.get("id") if isinstance(entry, dict) else None for entry in entries]


def is_whole(pages: list[Page], made: list[Any]) -> bool:
    listed = entries_of(pages)
    return len(listed) == len(set(listed)) and set(made) <= set(listed)


def look_at_the_longest_page(pages: Pages) -> None:
    """The size that most clients ask for: nothing states a maximum, so it may be refused, or mean a shorter page."""
    longest = pages.at(1, LONGEST_PAGE)
    with held_against([pages.prepared.operation.paginated, "conventions.pagination.whole-list"]):
        if longest.is_served:
            must(bool(longest.must_be_an(list).json), "an entry, as on shorter pages", "none", longest.exchange)
        else:
            longest.must_be_refused(beside=None)


def look_at_short_pages(pages: Pages, total: int) -> None:
    """A page of one entry at either end of a long list: longer ones might be the default size of the service.

    Somebody else may remove entries meanwhile, and the last page with them, so that page need not exist.
    """
    numbers = (1, 2, total - 1, total)
    found = [pages.at(number, 1).given_served() for number in numbers]
    seen = [Page.of(answer.must_be_an(list)) for answer in found]
    must_be_short(pages.prepared.operation, seen, 1)
    with held_against([pages.prepared.operation.paginated, "conventions.pagination.whole-list"]):
        shown = entries_of(seen)
        must(len(shown) == len(set(shown)), f"another entry on each of the pages {numbers}", f"the entries {shown}")


def look_behind_the_end(pages: Pages, last: int, length: int) -> None:
    """A page after the last one repeats nothing; whether it is empty or refused is up to the service.

    Without its last digit, the second number would be that of the last page. The first one is too large for a place
    in the list that is counted in 32 bits.
    """
    for number in (FARTHEST, last * 10):
        answer = pages.at(number, length)
        with held_against([pages.prepared.operation.paginated, "conventions.pagination.beyond-the-end"]):
            if answer.is_served:
                entries = answer.must_be_an(list).json
                must(not entries, "no entry", f"{len(entries)} entries", answer.exchange)
            else:
                answer.must_be_refused(beside=None)
    must_be_json_by_its_type(answer)
    chosen = "is empty" if answer.is_served else f"answers {answer.status}"
    note("conventions.pagination.beyond-the-end-answer", f"a page behind the end {chosen}")


def must_be_json_by_its_type(empty: Answer) -> None:
    """Expect that a list without entries is JSON like any other answer, if its content type is named."""
    if empty.is_served:
        kind = empty.exchange.headers.get("content-type", "application/json")
        with suppress(Unmet), given_done("conventions.responses.content-type"):
            must("json" in kind.lower(), "a content type of JSON, or none", kind, empty.exchange)


def look_at_pages_of_no_length(pages: Pages, first: Any) -> None:
    """A number alone is enough to name a page: the second one does not begin the list again.

    Only if it shows the first entry, it is compared with the first page: somebody else may have changed the list.
    """
    with held_against([pages.prepared.operation.paginated, "conventions.pagination.whole-list"]):
        second = pages.of_no_length(2)
        if not second.is_served:
            second.must_be_refused(beside=None)
        elif first in ids(second.must_be_an(list).json):
            twice = set(ids(second.json)) & set(ids(pages.of_no_length(1).given_served().must_be_an(list).json))
            must(not twice, "another entry on each of the pages 1 and 2", f"on both {sorted(twice)}", second.exchange)
