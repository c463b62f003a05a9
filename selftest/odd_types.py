"""Services that write numbers, flags and empty lists as values of another type, or leave empty values out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Response


def empty_lists_are_null(service: Service) -> None:
    service.transformers.append(lambda _, __, answer: replaced(answer, lambda value: None if value == [] else value))


def lists_are_numbered_records(service: Service) -> None:
    service.transformers.append(lambda _, __, answer: replaced(answer, numbered))


def numbered(value: Any) -> Any:
    return {str(place): entry for place, entry in enumerate(value)} if isinstance(value, list) and value else value


def ids_are_texts(service: Service) -> None:
    service.transformers.append(lambda _, __, answer: replaced(answer, with_text_for_id))


def numbers_are_texts(service: Service) -> None:
    service.transformers.append(
        lambda _, __, answer: replaced(answer, lambda value: str(value) if type(value) is int else value)
    )


def what_is_empty_is_left_out(service: Service) -> None:
    service.transformers.append(lambda _, __, answer: replaced(answer, without_empty_ones))


def without_empty_ones(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: inner for name, inner in value.items() if inner not in (None, False, 0, "", [], {})}


def flags_are_numbers(service: Service) -> None:
    service.transformers.append(
        lambda _, __, answer: replaced(answer, lambda value: int(value) if isinstance(value, bool) else value)
    )


def flags_are_texts(service: Service) -> None:
    service.transformers.append(
        lambda _, __, answer: replaced(answer, lambda value: str(value).lower() if isinstance(value, bool) else value)
    )


def with_text_for_id(value: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get("id"), int):
        return value
    return {**value, "id": str(value["id"])}


def replaced(answer: Response, change: Callable[[Any], Any]) -> Response:
    """Change each value in a body."""

    def walked(value: Any) -> Any:
        if isinstance(value, dict):
            return change({name: walked(inner) for name, inner in value.items()})
        return change([walked(inner) for inner in value] if isinstance(value, list) else value)

    answer.content = walked(answer.content)
    return answer
