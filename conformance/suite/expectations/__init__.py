"""The vocabulary of the suite: who calls, what is expected of the answer, and which requirement that verifies.

Tests use only this vocabulary. It makes a check inconclusive when nothing can be seen: a refusal proves nothing unless
the same call by the right actor was served, an absence proves nothing unless the thing existed before, a loop over
nothing verifies nothing.
"""

from conformance.http.bodies import parsed
from conformance.results.text import as_json
from conformance.suite.expectations.answers import Answer
from conformance.suite.expectations.callers import WITH_CHARSET, Caller, Path, group_path, named_otherwise, project_path
from conformance.suite.expectations.listings import LONGEST_PAGE, Listing, first_page
from conformance.suite.expectations.words import (
    does_not_apply,
    eventually,
    given,
    given_done,
    given_field,
    given_kept,
    left_to_others,
    must,
    must_be_as_before,
    must_settle,
    observe,
    sees,
    unchanged,
    verifies,
    was_not_tested,
    whole_number,
)

__all__ = [
    "LONGEST_PAGE",
    "WITH_CHARSET",
    "Answer",
    "Caller",
    "Listing",
    "Path",
    "as_json",
    "does_not_apply",
    "eventually",
    "first_page",
    "given",
    "given_done",
    "given_field",
    "given_kept",
    "group_path",
    "left_to_others",
    "must",
    "must_be_as_before",
    "must_settle",
    "named_otherwise",
    "observe",
    "parsed",
    "project_path",
    "sees",
    "unchanged",
    "verifies",
    "was_not_tested",
    "whole_number",
]
