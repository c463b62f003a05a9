"""Draws cases from the OpenAPI document; the only module that uses schemathesis."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import HypothesisException
from schemathesis.config import SchemathesisConfig
from schemathesis.core import NotSet
from schemathesis.generation import GenerationMode
from schemathesis.generation.feedback import NO_FEEDBACK

from conformance.fuzzing.cases import DrawnCase, Pairs, leads_elsewhere
from conformance.fuzzing.choices import seeded
from conformance.suite.arrange import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from schemathesis.generation.case import Case
    from schemathesis.schemas import APIOperation, BaseSchema

    from conformance.contract import Contract, Operation, Version

# Hypothesis' own database does not belong in the operator's folder.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(tempfile.gettempdir()) / "conformance-hypothesis"))

#: No files are read or written, and no method is called that the document does not have.
_CONFIG: Mapping[str, Any] = {
    "cache": {"enabled": False},
    "generation": {"database": "none", "allow-x00": False},
    "phases": {"coverage": {"unexpected-methods": []}},
}


class _TimeIsUpError(BaseException):
    """Ends the drawing for an operation; not an Exception, so that it is not mistaken for a failed test."""


@dataclass(frozen=True)
class Source:
    """The source of cases: the document of one version, as schemathesis reads it."""

    schema: BaseSchema

    def operation(self, operation: Operation) -> APIOperation[Any, Any, Any, Any]:
        """Return schemathesis' object for an operation."""
        return self.schema[operation.path][operation.method]


def load(contract: Contract, version: Version | None) -> Source:
    """Load the document of a version into schemathesis.

    Security is left out: the sender of a case decides who calls, and wrong tokens are tested elsewhere.
    """
    document = contract.for_drawing(version)
    document.pop("security", None)
    for item in document["paths"].values():
        for node in item.values():
            if isinstance(node, dict):
                node.pop("security", None)
    return Source(schemathesis.openapi.from_dict(document, config=SchemathesisConfig.from_dict(dict(_CONFIG))))


def coverage_cases(source: Source, operation: Operation) -> list[DrawnCase]:
    """Return schemathesis' deterministic cases, in which each keyword of the schema is fulfilled and broken once."""
    view = source.operation(operation)
    config = view.schema.config.generation_for(operation=view, phase="coverage")
    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = view.schema.iter_coverage_cases(view, generation_modes=modes, generation_config=config)
        return list(_drawn(operation, found))


def fuzz_cases(
    source: Source, operation: Operation, *, seed: int, max_examples: int, seconds: float
) -> list[DrawnCase]:
    """Return randomly drawn cases, about as many that the schema allows as cases that break it.

    The same seed and number give the same cases, unless the time (in seconds) ran out before.
    """
    view = source.operation(operation)
    deadline = time.monotonic() + seconds
    cases: list[DrawnCase] = []
    for mode, share in (
        (GenerationMode.POSITIVE, (max_examples + 1) // 2),
        (GenerationMode.NEGATIVE, max_examples // 2),
    ):
        if share:
            number = _mixed(seed, operation.id, mode.value)
            cases += _drawn(operation, _examples(view, mode, number, share, deadline))
    return cases


def _examples(
    view: APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    number: int,
    share: int,
    deadline: float,
) -> list[Case[Any]]:
    found: list[Case[Any]] = []

    def remember(case: Case[Any]) -> None:
        found.append(case)
        if time.monotonic() > deadline:
            raise _TimeIsUpError

    strategy = view.as_strategy(generation_mode=mode, feedback=NO_FEEDBACK, path_parameters=_given(view))
    drawing = hypothesis.seed(number)(hypothesis.given(case=strategy)(remember))
    with warnings.catch_warnings(), seeded(number) as backend:
        warnings.simplefilter("ignore")
        limits = settings(
            max_examples=share,
            backend=backend,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        try:
            limits(drawing)()
        except (_TimeIsUpError, HypothesisException):
            # Out of time; or nothing can be drawn, because nothing about an operation can be wrong.
            return found
    return found


def _given(view: APIOperation[Any, Any, Any, Any]) -> dict[str, str]:
    """Return the path values that are not drawn: any text is allowed for them, and fixtures replace them."""
    return {
        parameter.name: "1" for parameter in view.path_parameters if _takes_any_text(parameter.definition["schema"])
    }


def _takes_any_text(schema: Mapping[str, Any]) -> bool:
    own = schema.get("type") == "string" and not schema.keys() & {"enum", "pattern", "format"}
    return own or any(map(_takes_any_text, schema.get("anyOf", ())))


def _mixed(seed: int, *parts: str) -> int:
    text = ":".join((str(seed), *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _drawn(operation: Operation, cases: Iterator[Case[Any]] | list[Case[Any]]) -> Iterator[DrawnCase]:
    for case in cases:
        drawn = _as_value(operation, case)
        if drawn is not None:
            yield drawn


def _as_value(operation: Operation, case: Case[Any]) -> DrawnCase | None:
    """Return a case as a plain value; None for one that would call another operation."""
    meta = case.meta
    if meta is None or _is_about_headers(meta):
        return None
    path_values = tuple((name, unquote(str(value))) for name, value in (case.path_parameters or {}).items())
    if any(leads_elsewhere(value) for _, value in path_values):
        return None
    body, raw = _body(case.body)
    if body is not ABSENT and not _is_json(body):
        return None
    return DrawnCase(
        operation=operation.id,
        method=operation.method,
        template=operation.path,
        path_values=path_values,
        query=_query(case.query or {}),
        body=body,
        raw=raw,
        is_positive=meta.generation.mode is GenerationMode.POSITIVE,
        description=meta.phase.data.description or "",
    )


def _is_about_headers(meta: Any) -> bool:
    """Tell whether a header was mutated: the text states only the token header, which is tested elsewhere."""
    place = getattr(meta.phase.data, "parameter_location", None)
    return place is not None and str(place.value) in ("header", "cookie")


def _query(query: Mapping[str, Any]) -> Pairs:
    pairs = [
        (str(name), entry if isinstance(entry, str) else json.dumps(entry))
        for name, value in query.items()
        for entry in (value if isinstance(value, list | tuple) else [value])
    ]
    return tuple(pair for pair in pairs if all(map(_is_text, pair)))


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _body(body: Any) -> tuple[Any, bytes | None]:
    if isinstance(body, NotSet):
        return ABSENT, None
    if isinstance(body, bytes | bytearray):
        return ABSENT, bytes(body)
    return body, None


def _is_json(body: Any) -> bool:
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
