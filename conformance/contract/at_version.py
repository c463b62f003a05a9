"""The document of all versions, reduced to one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.contract.versions import Version, holds

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def at_version(document: Json, version: Version | None) -> Json:
    """Return what a service of this version must meet, extensions included.

    At an unknown version (None), the document contains everything that any version has, and nothing that begins or ends
    with a version is required.
    """
    gone: set[str] = set()
    parameters = document["components"].get("parameters", {})
    absent = {f"#/components/parameters/{name}" for name, node in parameters.items() if not _exists(node, version)}
    pruned: Json = _prune(document, version, gone)
    for item in pruned["paths"].values():
        for node in (item, *(item[method] for method in METHODS if method in item)):
            if "parameters" in node:
                node["parameters"] = [entry for entry in node["parameters"] if entry.get("$ref") not in absent]
    pruned["paths"] = {
        path: item for path, item in pruned["paths"].items() if any(method in item for method in METHODS)
    }
    drop_unused_components(pruned)
    names = gone - property_names(pruned)
    examples: Json = pruned["components"].get("examples", {})
    pruned["components"]["examples"] = {
        name: {**example, "value": _without(example["value"], names)} for name, example in examples.items()
    }
    return pruned


def _tag(node: Any, name: str) -> Version | None:
    return Version.parse(node[name]) if isinstance(node, dict) and name in node else None


def _exists(node: Any, version: Version | None) -> bool:
    return holds(version, _tag(node, "x-introduced"), _tag(node, "x-removed"))


def _prune(node: Any, version: Version | None, gone: set[str]) -> Any:
    if isinstance(node, list):
        return [_prune(entry, version, gone) for entry in node if _exists(entry, version)]
    if not isinstance(node, dict):
        return node
    result = {
        key: value if key in ("examples", "default", "enum") else _prune(value, version, gone)
        for key, value in node.items()
        if _exists(value, version)
    }
    deprecated = _tag(node, "x-deprecated")
    if deprecated and version is not None and deprecated <= version:
        result["deprecated"] = True
    if "x-enum-versions" in node:
        result = _prune_enum(result, version)
    if isinstance(node.get("properties"), dict):
        _prune_required(node, result, version, gone)
    return result


def _prune_enum(schema: Json, version: Version | None) -> Json:
    tags = schema["x-enum-versions"]

    def alive(value: Any) -> bool:
        tag = tags.get(value, {})
        introduced, removed = tag.get("introduced"), tag.get("removed")
        return holds(
            version, Version.parse(introduced) if introduced else None, Version.parse(removed) if removed else None
        )

    def is_deprecated(value: Any) -> bool:
        deprecated = tags.get(value, {}).get("deprecated")
        return version is not None and deprecated is not None and Version.parse(deprecated) <= version

    values = [value for value in schema["enum"] if alive(value)]
    if not any(is_deprecated(value) for value in values):
        return {**schema, "enum": values}
    # OpenAPI can deprecate schemas but not values, so each value becomes its own schema.
    constants = [{"const": value, "deprecated": True} if is_deprecated(value) else {"const": value} for value in values]
    return {**schema, "enum": values, "oneOf": constants}


def _prune_required(node: Json, result: Json, version: Version | None, gone: set[str]) -> None:
    properties: Json = node["properties"]
    gone.update(set(properties) - set(result["properties"]))
    if "required" not in node:
        return

    def is_required(name: str) -> bool:
        schema = properties.get(name, {})
        optional_from = _tag(schema, "x-optional-from")
        if version is None:
            return optional_from is None and not {"x-introduced", "x-removed"} & schema.keys()
        return name not in gone_here and not (optional_from and optional_from <= version)

    gone_here = set(properties) - set(result["properties"])
    required = [name for name in node["required"] if is_required(name)]
    if required:
        result["required"] = required
    else:
        result.pop("required", None)


def property_names(node: Any) -> set[str]:
    """Return the names of all properties that a document, or a part of one, describes."""
    described = (part["properties"] for part in mappings_in(node) if isinstance(part.get("properties"), dict))
    return {name for properties in described for name in properties}


def mappings_in(node: Any) -> Iterator[Json]:
    """Yield every mapping in JSON, at any depth, the outermost first."""
    if isinstance(node, dict):
        yield node
        node = node.values()
    elif not isinstance(node, list):
        return
    for entry in node:
        yield from mappings_in(entry)


def _without(example: Any, names: set[str]) -> Any:
    """Remove from an example what a version does not have."""
    if isinstance(example, list):
        return [_without(entry, names) for entry in example]
    if isinstance(example, dict):
        return {key: _without(value, names) for key, value in example.items() if key not in names}
    return example


def drop_unused_components(document: Json) -> None:
    """Keep only the components that the paths use."""
    components: Json = document.get("components", {})
    reached: set[str] = set()
    queue = _references(document["paths"])
    while queue:
        reference = queue.pop()
        if reference in reached:
            continue
        reached.add(reference)
        _, _, section, name = reference.split("/", 3)
        queue |= _references(components[section][name])
    for section, entries in components.items():
        if section != "securitySchemes":
            components[section] = {
                name: entry for name, entry in entries.items() if f"#/components/{section}/{name}" in reached
            }


def _references(node: Any) -> set[str]:
    return {part["$ref"] for part in mappings_in(node) if isinstance(part.get("$ref"), str)}
