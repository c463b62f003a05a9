"""Keyset pagination: the next page is asked for by a cursor that names the last entry seen, not by a number.

Specification: Versioning, rows 17.0 and 18.0; how a cursor looks is chosen.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, TypeVar

from conformance.reference.errors import ApiError, InvalidError
from conformance.reference.http import Page, ok
from conformance.reference.parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.reference.http import Request, Response

T = TypeVar("T")

_LONGEST_CURSOR = 64


class OffsetGoneError(ApiError):
    """A page was asked for by its number where only keyset pagination is left."""

    choice = "offset_page_refused_code"
    prefix = "405 Only keyset pagination is supported"


def by_keyset(
    request: Request, items: Sequence[T], key: Callable[[T], int], present: Callable[[T], object]
) -> Response:
    """Answer with the entries after the cursor, in the order of their keys, and a link to the next ones.

    Raise OffsetGoneError for a page number, if the choices refuse it, and InvalidError for a broken cursor.
    """
    parameters, choices = request.parameters, request.choices
    if choices.offset_page_refused_code is not None and parameters.given("page"):
        raise OffsetGoneError
    descending = parameters.optional_choice("sort", ("asc", "desc")) == "desc"
    size = Page.of(Parameters({"per_page": parameters.optional_integer("per_page")}, choices), choices).size
    last = _position(parameters.optional_string("cursor"))
    found = sorted(items, key=key, reverse=descending)
    if last is not None:
        found = [item for item in found if (key(item) < last if descending else key(item) > last)]
    answer = ok([present(item) for item in found[:size]])
    if len(found) > size:
        cursor = base64.urlsafe_b64encode(str(key(found[size - 1])).encode()).decode()
        answer.headers["link"] = f'<{request.link_base()}per_page={size}&cursor={cursor}>; rel="next"'
    return answer


def _position(cursor: str | None) -> int | None:
    if not cursor:
        return None
    try:
        position = base64.b64decode(cursor[:_LONGEST_CURSOR], altchars=b"-_", validate=True).decode("ascii")
        return int(position)
    except (ValueError, binascii.Error) as error:
        raise InvalidError("cursor is invalid", parameter="cursor") from error
