"""Validates an answer against the contract and names the requirement at each violated place of the schema."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.http.bodies import parsed
from conformance.schema.response_schema import Finding, ResponseSchema, Seen

if TYPE_CHECKING:
    from conformance.contract import Contract, Operation, Version
    from conformance.http.exchange import Call, Exchange

__all__ = ["Finding", "ResponseValidator", "Seen", "pattern_of"]

_REMEMBERED_PATHS = 4096


class ResponseValidator:
    """Knows the operations of one version, and the form of the answers to each of them."""

    def __init__(self, contract: Contract, version: Version | None) -> None:
        """Prepare for a target of this version; schemas are compiled when first needed."""
        self.operations = contract.operations(version)
        self._routes = [(operation, pattern_of(operation.path)) for operation in self.operations]
        self._schemas: dict[tuple[str, str], ResponseSchema] = {}
        self._found = lru_cache(_REMEMBERED_PATHS)(self._find)

    @classmethod
    def of(cls, contract: Contract, version: Version | None) -> ResponseValidator:
        """Return the validator of a version, with all schemas compiled so far."""
        key = (contract.digest, version)
        if key not in _KNOWN:
            _KNOWN[key] = cls(contract, version)
        return _KNOWN[key]

    def operation_of(self, method: str, path: str) -> Operation | None:
        """Return the operation that a method and a path address, whatever its query; None when there is none."""
        return self._found(method, path.partition("?")[0])

    def _find(self, method: str, path: str) -> Operation | None:
        found = [op for op, pattern in self._routes if op.method == method and pattern.fullmatch(path)]
        return min(found, key=lambda operation: operation.path.count("{"), default=None)

    def place(self, call: Call) -> str:
        """Return the operation id of a call, or method and path if the contract has no such operation."""
        operation = self.operation_of(call.method, call.path)
        return operation.id if operation else call.label

    def seen(self, exchange: Exchange) -> Seen:
        """Return what an answer shows about the requirements of its operation's documented responses.

        Only a served call shows anything: the body of a refusal is not checked. A requirement holds only if its place
        was there to be seen; an empty list says nothing about its entries. A small deviation is a finding, and no
        reason to treat the whole answer as something foreign.
        """
        if not exchange.is_success or exchange.status is None or exchange.problem:
            return Seen()
        operation = self.operation_of(exchange.call.method, exchange.call.path)
        if operation is None:
            return Seen()
        schema, silence = self._schema(operation, exchange), _silence(operation, exchange)
        if schema is None:
            return Seen(unrecognisable=silence)
        found = schema.seen(exchange.status, exchange.body)
        return replace(found, unrecognisable=silence) if silence else found

    def meant(self, exchange: Exchange) -> Any:
        """Return the JSON of an answer; what has another type is read as it was meant, such as "2" as 2.

        Types are judged by `seen`. Raise ValueError or RecursionError as `parsed` does.
        """
        value, status = parsed(exchange.body), exchange.status
        operation = self.operation_of(exchange.call.method, exchange.call.path)
        schema = self._schema(operation, exchange) if operation is not None else None
        return value if schema is None or status is None else schema.meant(status, exchange.body, value)

    def meant_if_served(self, exchange: Exchange) -> Any:
        """Return the same; None when nobody was served, or when it is no JSON."""
        with suppress(ValueError, RecursionError):
            return self.meant(exchange) if exchange.is_success else None
        return None

    def _schema(self, operation: Operation, exchange: Exchange) -> ResponseSchema | None:
        """Return the schema of an answer; that of the operation's success where another success was answered.

        Only the status is wrong then, which its own requirement tells.
        """
        stated = operation.response_to(exchange.status or 0)
        response = stated or (operation.success if exchange.is_success else None)
        if response is None or _is_streamed(operation, exchange):
            return None
        key = (operation.id, response.status)
        if key not in self._schemas:
            self._schemas[key] = ResponseSchema(operation, response)
        return self._schemas[key]

    def findings(self, exchange: Exchange) -> tuple[Finding, ...]:
        """Return the findings of `seen`."""
        return self.seen(exchange).findings


def _silence(operation: Operation, exchange: Exchange) -> str | None:
    """Report that a 204 was sent although every documented answer has a body."""
    has_body = all(response.schema is not None for response in operation.responses if response.is_success)
    return "204, without the body that is described" if exchange.status == HTTPStatus.NO_CONTENT and has_body else None


def _is_streamed(operation: Operation, exchange: Exchange) -> bool:
    """Tell whether a call may have asked for a streamed answer, also by a value that only some targets accept."""
    if operation.streams is None or not exchange.call.body:
        return False
    try:
        sent = json.loads(exchange.call.body)
    except ValueError:
        return True
    return isinstance(sent, dict) and sent.get(operation.streams) not in (None, False)


_KNOWN: dict[tuple[str, Version | None], ResponseValidator] = {}


@cache
def pattern_of(path: str) -> re.Pattern[str]:
    """Return what matches a path whose names in braces stand for any values."""
    return re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path)))
