"""Adapts drawn cases to a target: inserts the values of fixtures, and finds out what is wrong with each case."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.contract.bundle import resolve
from conformance.contract.lint import validator
from conformance.fuzzing.cases import DrawnCase, Mutation
from conformance.fuzzing.coercion import is_beyond_coercion, may_be_dropped
from conformance.suite.arrange import ABSENT
from conformance.suite.context import NotTested
from conformance.suite.derived import is_validation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.contract import Operation, Parameter
    from conformance.suite.arrange import Place

#: Keywords of a schema that do not decide which values are allowed.
_NOT_OF_THE_TYPE = frozenset({"description", "title", "default", "example", "examples", "deprecated"})


class CaseAdapter:
    """Knows the parameters of one operation, and how a case of it uses them."""

    def __init__(self, operation: Operation, full_path: str | None = None) -> None:
        """Compile the schemas of the parameters.

        `full_path` is the path of the project or group that calls go to; some of them use it.
        """
        self.operation = operation
        self._full_path = full_path
        self._validators = {
            (parameter.place, parameter.name): validator(operation.document, parameter.schema)
            for parameter in operation.parameters
        }

    def fitted(self, cases: Iterable[DrawnCase], place: Place, path_values: Mapping[str, Any]) -> list[DrawnCase]:
        """Return the cases with fixture values in all places that are not wrong on purpose, each call once.

        `path_values` are those of the arranged call. Raise NotTested when the profile lacks a fixture that every call
        needs.
        """
        found: dict[tuple[Any, ...], DrawnCase] = {}
        for case in cases:
            fitted = self.rebind(self.diagnose(self._with_fixtures(case, place)), path_values)
            found.setdefault(fitted.wire, fitted)
        return list(found.values())

    def rebind(self, case: DrawnCase, path_values: Mapping[str, Any]) -> DrawnCase:
        """Return a case with the path values of the arranged call, except those that are wrong on purpose."""
        wrong = {mutation.name for mutation in case.mutated if mutation.place == "path"}
        values = tuple(
            (name, value if name in wrong or value == self._full_path else str(path_values.get(name, value)))
            for name, value in case.path_values
        )
        return replace(case, path_values=values)

    def by_path(self, case: DrawnCase) -> DrawnCase:
        """Return a case that names its project or group by the full path, if that is known."""
        named = {"id": self._full_path} if self._full_path else {}
        return replace(case, path_values=tuple((name, named.get(name, value)) for name, value in case.path_values))

    def diagnose(self, case: DrawnCase) -> DrawnCase:
        """Return a case that says what is wrong with it."""
        return replace(case, mutated=self._wrong(case))

    def must_be_refused(self, case: DrawnCase) -> list[str]:
        """Return the requirements by which a case must be refused under every reading of the text; usually none.

        A required parameter is missing, or has a value that no service could convert to its type, and the contract
        states a requirement for that. Limits of length, size and form are never a reason.
        """
        if case.is_positive:
            return []
        found = (self._owed(mutation) for mutation in case.mutated if mutation.is_fatal)
        return [name for name in dict.fromkeys(found) if name is not None]

    def requirement_of(self, case: DrawnCase) -> str | None:
        """Return the requirement about the mistake in a case; None when no requirement is about it."""
        for mutation in case.mutated:
            parameter = self._parameter(mutation)
            stated = parameter and (parameter.requirement_required if mutation.is_missing else parameter.requirement)
            if stated:
                return stated
        return None

    def only_mistake(self, case: DrawnCase) -> Parameter | None:
        """Return the parameter in which a case is wrong, if that is its only mistake."""
        return None if case.is_positive or len(case.mutated) != 1 else self._parameter(case.mutated[0])

    def _owed(self, mutation: Mutation) -> str | None:
        parameter = self._parameter(mutation)
        if parameter is None or (self.operation.method == "DELETE" and parameter.place == "path"):
            return None  # a nonexistent thing is gone after a deletion as well, so success may be answered
        if mutation.is_missing:
            stated = parameter.requirement_required
        else:
            stated = None if may_be_dropped(parameter) else parameter.requirement
        return stated if is_validation(stated) else None

    def _parameter(self, mutation: Mutation) -> Parameter | None:
        return next(
            (
                parameter
                for parameter in self.operation.parameters
                if (parameter.place, parameter.name) == (mutation.place, mutation.name)
            ),
            None,
        )

    # -- finding the mistake -------------------------------------------------------------------------------------------

    def _wrong(self, case: DrawnCase) -> tuple[Mutation, ...]:
        found = [mutation for parameter in self.operation.parameters for mutation in self._about(parameter, case)]
        if self.operation.body is not None and not isinstance(case.body, dict):
            found.append(Mutation(None, "body", "the body is no JSON object"))
        if not case.is_positive and not found:
            found.append(Mutation(None, "body" if case.body is not ABSENT else "query", case.description))
        return tuple(found)

    def _about(self, parameter: Parameter, case: DrawnCase) -> Iterator[Mutation]:
        if parameter.place == "body" and case.raw is not None:
            return  # bytes that are no JSON: some service may be able to read them
        values = _values(parameter, case)
        if not values and parameter.required:
            text = f"{parameter.name} is missing"
            yield Mutation(parameter.name, parameter.place, text, is_fatal=True, is_missing=True)
        for value in values:
            if not self._fits(parameter, value):
                fatal = is_beyond_coercion(parameter.schema, value)
                yield Mutation(parameter.name, parameter.place, f"{parameter.name} = {_brief(value)}", is_fatal=fatal)

    def _fits(self, parameter: Parameter, value: Any) -> bool:
        check = self._validators[parameter.place, parameter.name]
        if parameter.place == "body":
            return bool(check.is_valid(value))
        return any(check.is_valid(form) for form in _read(value))

    # -- inserting fixture values --------------------------------------------------------------------------------------

    def _with_fixtures(self, case: DrawnCase, place: Place) -> DrawnCase:
        wrong = {(mutation.place, mutation.name) for mutation in self._wrong(case)}
        body, query = case.body, list(case.query)
        for parameter in self.operation.parameters:
            if parameter.fixture is None or (parameter.place, parameter.name) in wrong:
                continue
            if parameter.place == "body" and isinstance(body, dict) and parameter.name in body:
                value = _flowing(parameter, body[parameter.name], place)
                body = {**body, parameter.name: value}
            elif parameter.place == "query":
                query = [
                    (name, str(_flowing(parameter, value, place)) if name == parameter.name else value)
                    for name, value in query
                ]
        return replace(case, body=self._with_settings(body, place, wrong), query=tuple(query))

    def _with_settings(self, body: Any, place: Place, wrong: set[tuple[str, str | None]]) -> Any:
        """Add what a fixture prescribes for the body as a whole, such as the settings of an integration."""
        schema = resolve(self.operation.document, self.operation.body) if self.operation.body else {}
        if "x-fixture" not in schema or not isinstance(body, dict):
            return body
        settings: dict[str, Any] = place.value(schema["x-fixture"])
        return {**body, **{name: value for name, value in settings.items() if ("body", name) not in wrong}}


def without_like_mistakes(operation: Operation, cases: Iterable[DrawnCase], seed: int = 0) -> list[DrawnCase]:
    """Leave out a mistake in one parameter if the same mistake is made in another one of the same place and type.

    The first one gets every wrong value. Each of the others gets null, if it is in the body, because services forget
    that most often, and one of the other wrong values in turn, another one with the next seed. Cases that must be
    refused are never left out.
    """
    adapter, found = CaseAdapter(operation), list(cases)
    mistakes: dict[str, dict[str, list[DrawnCase]]] = {}
    for case in map(adapter.diagnose, found):
        parameter = adapter.only_mistake(case)
        if parameter is not None and not adapter.must_be_refused(case):
            kind = f"{parameter.place} {json.dumps(_type_in(parameter.schema), sort_keys=True)}"
            mistakes.setdefault(kind, {}).setdefault(parameter.name, []).append(case)
    left_out = {
        case.wire
        for alike in mistakes.values()
        for turn, (name, wrong) in enumerate(alike.items())
        for place, case in enumerate(wrong)
        if turn and place != (turn + seed) % len(wrong) and not _is_null(name, case)
    }
    return [case for case in found if case.wire not in left_out]


def _is_null(name: str, case: DrawnCase) -> bool:
    """Tell whether a body has null for one of its properties."""
    return isinstance(case.body, dict) and name in case.body and case.body[name] is None


def _type_in(schema: Any) -> Any:
    """Return what a schema says about the values that are allowed, without examples, texts and extensions."""
    if isinstance(schema, dict):
        return {
            key: _type_in(value)
            for key, value in schema.items()
            if key not in _NOT_OF_THE_TYPE and not key.startswith("x-")
        }
    return [_type_in(each) for each in schema] if isinstance(schema, list) else schema


def without_repeated_queries(operation: Operation, cases: Iterable[DrawnCase]) -> list[DrawnCase]:
    """Leave out a call that is wrong in its query if another call has the same mistake beside more parameters.

    Otherwise each wrong value of a parameter is sent twice: with the other parameters, and without them.
    """
    adapter, found = CaseAdapter(operation), list(cases)
    diagnosed = [adapter.diagnose(case) for case in found if not case.is_positive]
    left_out = {
        case.wire
        for case in diagnosed
        for other in diagnosed
        if set(case.query) < set(other.query) and _without_query(case) == _without_query(other)
    }
    return [case for case in found if case.wire not in left_out]


def _without_query(case: DrawnCase) -> tuple[Any, ...]:
    """Return a case without its query, but with what is wrong in it."""
    return (case.path_values, case.content, case.mutated)


def _values(parameter: Parameter, case: DrawnCase) -> list[Any]:
    """Return the values that a case gives to a parameter; empty when it does not send it."""
    if parameter.place == "body":
        return [case.body[parameter.name]] if isinstance(case.body, dict) and parameter.name in case.body else []
    pairs = case.path_values if parameter.place == "path" else case.query
    return [value for name, value in pairs if name == parameter.name]


def _read(text: str) -> Iterator[Any]:
    """Yield the values that text in a path or query may stand for."""
    yield text
    yield [text]
    if text.isascii():
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            return


def _flowing(parameter: Parameter, drawn: Any, place: Place) -> Any:
    """Return the value of a parameter's fixture; the drawn value if there is none and a call does not need it."""
    number = drawn if isinstance(drawn, int) else 0
    try:
        found = place.value(parameter.fixture or "", number)
    except NotTested:
        if parameter.required:
            raise
        return drawn
    if parameter.schema.get("type") == "array" and isinstance(drawn, list):
        return [found] if drawn else []
    return found


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]} ..."  # noqa: PLR2004 - readable
