"""Every documented example of a published document, with the operation and the schema that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.contract.at_version import METHODS
from conformance.contract.bundle import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class PublishedExample:
    """One example in JSON."""

    operation: str
    """operationId."""
    tag: str
    path_parameters: tuple[str, ...]
    status: int | None
    """Of the answer that it is; None for what is sent."""
    schema: dict[str, Any]
    value: Any

    @property
    def label(self) -> str:
        """Say what the example belongs to."""
        return f"{self.operation} {self.status or 'request'}"


def published_examples(document: dict[str, Any]) -> Iterator[PublishedExample]:
    """Yield the examples of a plain document in the order of the document."""
    for item in document["paths"].values():
        for method in METHODS:
            if method in item:
                yield from _of_operation(document, item, item[method])


def _of_operation(document: dict[str, Any], item: dict[str, Any], node: dict[str, Any]) -> Iterator[PublishedExample]:
    parts: list[tuple[int | None, Any]] = [(None, node.get("requestBody", {}))]
    parts += [(int(status), answer) for status, answer in node["responses"].items() if status.isdigit()]
    listed = [resolve(document, entry) for entry in (*item.get("parameters", ()), *node.get("parameters", ()))]
    for status, part in parts:
        media = resolve(document, part).get("content", {}).get("application/json", {})
        for example in media.get("examples", {}).values():
            yield PublishedExample(
                operation=node["operationId"],
                tag=node["tags"][0],
                path_parameters=tuple(entry["name"] for entry in listed if entry["in"] == "path"),
                status=status,
                schema=media["schema"],
                value=resolve(document, example)["value"],
            )


def record_names(schema: dict[str, Any]) -> list[str]:
    """Return the names of the records that a schema refers to: directly, in its items, or in its alternatives."""
    if "$ref" in schema:
        return [schema["$ref"].rpartition("/")[2]]
    parts = [schema["items"]] if "items" in schema else schema.get("anyOf", [])
    return [name for part in parts for name in record_names(part)]
