"""Every paginated list: pages as long as asked for, apart from each other, complete, and an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.arrange import Arranged, arranged
from conformance.bookkeeping import current_run
from conformance.derived import claims_of, held_against, note, served_caller, takes_part
from conformance.expectations import Answer, given, must

if TYPE_CHECKING:
    from conformance.contract import Operation

FEWEST = 3
LENGTHS = (1, 2)
MANY = 20


def is_paginated(operation: Operation) -> bool:
    return takes_part(operation) and operation.paginated is not None


@pytest.mark.every_operation(
    where=is_paginated,
    claims=lambda operation: claims_of(
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
        for length in LENGTHS:
            pages = walk(prepared, length)
            with held_against([operation.paginated, "conventions.pagination.page-size"]):
                given(is_owed(operation) or all(len(page) <= length for page in pages), "pages may have come later")
                must(
                    all(len(page) <= length for page in pages),
                    f"at most {length} entries a page",
                    f"pages of {[len(page) for page in pages]}",
                )
            with held_against([operation.paginated, "conventions.pagination.whole-list"]):
                if not is_whole(pages, made):
                    pages = walk(prepared, length)  # somebody else may have changed the list; once is enough
                listed = [entry for page in pages for entry in page]
                must(len(listed) == len(set(listed)), "every entry once", f"the entries {listed}")
                must(set(made) <= set(listed), f"the entries {sorted(made)} among them", f"the entries {listed}")
        look_behind_the_end(prepared, len(pages))


def is_owed(operation: Operation) -> bool:
    """Tell whether the target must have pages here: of an unknown version it may be older than they are."""
    run = current_run()
    introduced = run.contract.requirements[operation.paginated or ""].introduced
    return run.profile.version is not None or introduced is None


def walk(prepared: Arranged, length: int) -> list[list[Any]]:
    """Read page after page from the first one until one is empty or refused, and return the ids on each."""
    pages: list[list[Any]] = []
    for number in range(1, most_pages(prepared)):
        answer = page_of(prepared, number, length)
        if number > 1 and answer.exchange.is_refusal:
            return pages
        with held_against(["conventions.pagination.parameters"]):
            entries = answer.must_be(200).must_be_an(list).json
            given(bool(entries) or number > 1 or shows_any(prepared), "the list is empty although entries were made")
        if not entries and number == 1:
            with held_against([prepared.operation.paginated]):
                must(False, "an entry on the first page", "none, where a longer page has some", answer.exchange)
        if not entries or (pages and ids(entries) == pages[-1]):
            return pages if not entries else [*pages, ids(entries)]
        pages.append(ids(entries))
    given(False, f"the list has more than {len(pages)} pages")
    return pages


def shows_any(prepared: Arranged) -> bool:
    """Tell whether a long page has entries; where not even that has any, nothing can be said of short ones."""
    entries = page_of(prepared, 1, MANY).json
    return isinstance(entries, list) and bool(entries)


def most_pages(prepared: Arranged) -> int:
    return prepared.place.profile.limits.page_walk


def page_of(prepared: Arranged, number: int, length: int) -> Answer:
    caller = served_caller(prepared.operation)
    return caller.get(prepared.call.path, **prepared.call.query, page=number, per_page=length)


def ids(entries: list[Any]) -> list[Any]:
    return [entry.get("id") if isinstance(entry, dict) else None for entry in entries]


def is_whole(pages: list[list[Any]], made: list[Any]) -> bool:
    listed = [entry for page in pages for entry in page]
    return len(listed) == len(set(listed)) and set(made) <= set(listed)


def look_behind_the_end(prepared: Arranged, last: int) -> None:
    """A page behind the last one brings nothing again; whether it is empty or refused is the service's choice."""
    answer = page_of(prepared, last + 5, LENGTHS[-1])
    with held_against([prepared.operation.paginated, "conventions.pagination.beyond-the-end"]):
        if answer.is_served:
            must(answer.json == [], "no entry", f"{len(answer.json)} entries", answer.exchange)
        else:
            answer.must_be_refused(beside=None)
    chosen = "is empty" if answer.is_served else f"answers {answer.status}"
    note("conventions.pagination.beyond-the-end-answer", f"a page behind the end {chosen}")
