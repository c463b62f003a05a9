"""One drawn call, as a value that can be stored, compared, sent, and made smaller."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.http.exchange import Call
from conformance.suite.arrange import ABSENT, Prepared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.contract import Operation
    from conformance.target import Actor

Pairs = tuple[tuple[str, str], ...]

_JSON_TYPE = "application/json"
#: Number of correct bodies of one property that are sent to an operation.
_ALONE_AT_MOST = 12
_SEGMENTS_WITH_A_MEANING = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Mutation:
    """What is wrong with one parameter of a case, on purpose."""

    name: str | None
    """The parameter; None for the body as a whole."""
    place: str
    """`path`, `query` or `body`."""
    description: str
    is_fatal: bool = False
    """Whether no reading of the text lets the call succeed: missing though required, or beyond any conversion."""
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class DrawnCase:
    """A call of an operation, drawn from its schema: one that it allows, or one that breaks it in a known place."""

    operation: str
    """operationId."""
    method: str
    template: str
    """Path with the names of its parameters in braces."""
    path_values: Pairs = ()
    query: Pairs = ()
    body: Any = ABSENT
    """JSON; ABSENT when nothing or raw bytes are sent."""
    raw: bytes | None = None
    """Bytes that are no JSON."""
    headers: Pairs = ()
    is_positive: bool = True
    description: str = ""
    """A description of what was drawn."""
    mutated: tuple[Mutation, ...] = field(default=())
    origin: DrawnCase | None = field(default=None, repr=False, compare=False)
    """The case as drawn, if this one was adapted to a target; it can be stored, as it has no data of the target."""

    @property
    def path(self) -> str:
        """Path below /api/v4, each value encoded as one segment."""
        path = self.template
        for name, value in self.path_values:
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        return path

    @property
    def content(self) -> bytes | None:
        """The bytes of the body."""
        return json.dumps(self.body).encode() if self.body is not ABSENT else self.raw

    @property
    def wire(self) -> tuple[Any, ...]:
        """The data sent over the network; two cases with equal data are the same."""
        return (self.method, self.path, self.query, self.content, self.headers)

    def call(self, actor: Actor | None) -> Call:
        """Return the call, ready for the client."""
        headers = dict(self.headers)
        if self.content is not None:
            headers.setdefault("Content-Type", _JSON_TYPE)
        return Call(actor, self.method, self.path, _joined(self.query), self.content, headers)

    def prepared(self, operation: Operation) -> Prepared:
        """Return the call in the form that request examples use."""
        return Prepared(operation, dict(self.path_values), dict(self.query), self.body)

    def smaller(self) -> Iterator[DrawnCase]:
        """Yield every case with one part less: a query parameter, or a property of the body."""
        for number in range(len(self.query)):
            yield replace(self, query=self.query[:number] + self.query[number + 1 :])
        if isinstance(self.body, dict):
            for name in self.body:
                yield replace(self, body={key: value for key, value in self.body.items() if key != name})

    def traced(self) -> DrawnCase:
        """Return the case with itself as its origin, which it keeps while it is adapted, moved and made smaller."""
        return replace(self, origin=self)

    def stored(self) -> dict[str, Any]:
        """Return the drawn parts of the case as JSON data; method and path are those of its operation."""
        data: dict[str, Any] = {
            "path": [list(pair) for pair in self.path_values],
            "query": [list(pair) for pair in self.query],
            "positive": self.is_positive,
            "description": self.description,
        }
        if self.body is not ABSENT:
            data["body"] = self.body
        if self.raw is not None:
            data["raw"] = self.raw.hex()
        return data

    @classmethod
    def restored(cls, operation: Operation, data: Mapping[str, Any]) -> DrawnCase:
        """Read a case of this operation that `stored` wrote.

        Raise KeyError, TypeError or ValueError when it is something else, or would call another operation.
        """
        path_values = _pairs(data["path"])
        if {name for name, _ in path_values} != set(re.findall(r"{(\w+)}", operation.path)):
            raise ValueError("not the path values of the operation")
        if any(leads_elsewhere(value) for _, value in path_values):
            raise ValueError("a path value that would lead to another path")
        if not isinstance(data["positive"], bool):
            raise TypeError("a case that is neither right nor wrong")
        return cls(
            operation=operation.id,
            method=operation.method,
            template=operation.path,
            path_values=path_values,
            query=_pairs(data["query"]),
            body=data.get("body", ABSENT),
            raw=bytes.fromhex(data["raw"]) if "raw" in data else None,
            is_positive=data["positive"],
            description=str(data["description"]),
        )


def leads_elsewhere(value: str) -> bool:
    """Tell whether a path value would make a client, a proxy or a service see another path."""
    return value in _SEGMENTS_WITH_A_MEANING or any(mark in value for mark in "/\\?#;") or not value.strip()


def _pairs(listed: list[list[str]]) -> Pairs:
    return tuple((str(name), str(value)) for name, value in listed)


def _joined(query: Pairs) -> dict[str, Any]:
    """Return a query as the client takes it; a parameter given several times has a tuple of values."""
    found: dict[str, Any] = {}
    for name, value in query:
        found[name] = (*found[name], value) if name in found else (value,)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def without_small_steps(cases: Iterable[DrawnCase]) -> Iterator[DrawnCase]:
    """Leave out bodies that only add one property to the case before, except where their size has doubled.

    For an operation with fifty optional properties there are fifty of these, and fifty with one of them alone. Of each
    kind some are left: scenario tests send every property.
    """
    before: dict[str, Any] = {}
    alone = 0
    for case in cases:
        body = case.body if case.is_positive and isinstance(case.body, dict) else {}
        is_step = len(body) == len(before) + 1 > 1 and before.keys() < body.keys()
        before = body
        alone += len(body) == 1
        if len(body).bit_count() == 1 if is_step else len(body) != 1 or alone <= _ALONE_AT_MOST:
            yield case
