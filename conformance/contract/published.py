"""Plain OpenAPI made from the document of a version: for other people's tools, and for drawing calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.contract.at_version import METHODS, drop_unused_components
from conformance.contract.bundle import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.contract.versions import Version

Json = dict[str, Any]

#: Below these keys are values of the service, where a key that begins with `x-` would be a name.
_VALUES = frozenset({"default", "enum", "const", "value"})

_SUMMARY = "What the specification says of version {version}."
_DESCRIPTION = """\
A service of version {version} meets this document. Properties that are not listed are allowed everywhere. Where the
specification leaves the status of a refusal open, every 4xx is a refusal; it changes nothing, and its body is not
described. Operations that the specification names without describing them are not listed.
"""
_ANY_SUMMARY = "What the specification says of all versions together."
_ANY_DESCRIPTION = """\
Everything that any version has is listed, and nothing is required that comes or goes with a version. """


def published(document: Json, version: Version | None) -> Json:
    """Return the document of a version for other people's tools: only what the specification states.

    Operations that the specification does not describe are left out, and so are all extensions. Extensions that a
    reader needs are written into descriptions: who may call, what is unsafe, and what may be sent in the query.
    """
    hidden = {tag["name"] for tag in document["tags"] if tag.get("x-not-described")}
    found: Json = {**document, "components": dict(document["components"])}
    found["paths"] = {
        path: {key: _operation(document, node) if key in METHODS else node for key, node in item.items()}
        for path, item in _described(document["paths"], hidden)
    }
    used = {tag for item in found["paths"].values() for key in METHODS if key in item for tag in item[key]["tags"]}
    found["tags"] = [tag for tag in document["tags"] if tag["name"] in used]
    found["info"] = {
        **document["info"],
        "version": str(version or document["info"]["version"]),
        "summary": _SUMMARY.format(version=version) if version else _ANY_SUMMARY,
        "description": _words(version),
    }
    drop_unused_components(found)
    plain: Json = _without_extensions(found)
    return plain


def for_drawing(document: Json) -> Json:
    """Return the document of a version as plain OpenAPI, with the limits for drawn calls (`x-draw`) applied.

    The first example of each media type is copied into place, because generators do not follow references to examples.
    """
    plain: Json = _without_extensions(_with_limits(document, document))
    plain["components"].pop("examples")
    return plain


def _words(version: Version | None) -> str:
    text = _DESCRIPTION.format(version=version or "unknown")
    return text if version else _ANY_DESCRIPTION + text.partition(". ")[2]


def _described(paths: Json, hidden: set[str]) -> Iterator[tuple[str, Json]]:
    for path, item in paths.items():
        kept = {
            key: node
            for key, node in item.items()
            if key not in METHODS or not hidden.intersection(node.get("tags", ()))
        }
        if any(method in kept for method in METHODS):
            yield path, kept


def _operation(document: Json, node: Json) -> Json:
    found = {**node, "description": "\n\n".join(_paragraphs(node))}
    in_query = bool(node.get("x-body-in-query"))
    if "requestBody" in node:
        body = node["requestBody"]
        # Where nothing in it is required, whether a call without any body succeeds is open.
        owes = bool(_schema(document, body).get("required")) and not in_query
        found["requestBody"] = {**body, "required": owes}
    if in_query:
        found["parameters"] = [*node.get("parameters", ()), *_in_query(document, body)]
    return found


def _paragraphs(node: Json) -> Iterator[str]:
    if node.get("description"):
        yield node["description"].strip()
    if "x-authorization" in node:
        yield f"Who may call: {node['x-authorization']['description']}"
    if "x-unsafe" in node:
        yield f"Unsafe: {node['x-unsafe']}"


def _schema(document: Json, body: Json) -> Json:
    (media,) = body["content"].values()
    found: Json = resolve(document, media["schema"])
    return found


def _in_query(document: Json, body: Json) -> Iterator[Json]:
    """Yield each property of a body as a query parameter; none is required, because the body may contain it."""
    for name, schema in _schema(document, body)["properties"].items():
        words = schema.get("description", "")
        more = " How a list is written in a query is not specified." if schema.get("type") == "array" else ""
        yield {
            "name": name,
            "in": "query",
            "description": f"Instead of the property of the body. {words}{more}",
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }


def _with_limits(document: Json, node: Any) -> Any:
    if isinstance(node, list):
        return [_with_limits(document, entry) for entry in node]
    if not isinstance(node, dict):
        return node
    found = {key: value if key in _VALUES else _with_limits(document, value) for key, value in node.items()}
    if "schema" in node and "examples" in node:
        first = next(iter(found.pop("examples").values()))
        found["example"] = resolve(document, first)["value"]
    return {**found, **node.get("x-draw", {})}


def _without_extensions(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_extensions(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value if key in _VALUES else _without_extensions(value)
        for key, value in node.items()
        if not str(key).startswith("x-")
    }
