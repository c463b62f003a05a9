"""Expands the shorthand in the contract's files for text that several places share.

- A record with `x-levels` stands for one record per level; `x-only`, `x-requirements`, `x-requirements-required` and
  `x-by-level` say what differs between the levels.
- An `x-authorization` with `set` takes its actors from the named set in `authorization.yaml`.
- A path item with `x-same-as` is another path item with some parts replaced.
"""

from __future__ import annotations

from typing import Any

from conformance.errors import ContractError

Json = dict[str, Any]

#: Keys of a record that describe several levels at once; `at_levels` removes them all.
LEVEL_KEYS = frozenset({"x-levels", "x-only", "x-by-level", "x-requirements", "x-requirements-required"})


# -- records that exist at several levels ------------------------------------------------------------------------------


def at_levels(records: Json) -> Json:
    """Return the records of a file, with each `x-levels` record replaced by one record for each level."""
    names = {name: record["x-levels"] for name, record in records.items() if "x-levels" in record}
    found: Json = {}
    for name, record in records.items():
        for level, own_name in names.get(name, {None: name}).items():
            if own_name in found:
                raise ContractError(f"Record {own_name} is defined twice in one file.")
            found[own_name] = _at_level(record, level, names) if level else record
    return found


def _at_level(node: Any, level: str, names: dict[str, Json]) -> Any:
    if isinstance(node, list):
        return [_at_level(entry, level, names) for entry in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("properties"), dict):
        node = _with_properties_of(node, level)
    found = {key: _at_level(value, level, names) for key, value in node.items() if key not in LEVEL_KEYS}
    reference = str(found.get("$ref", "")).removeprefix("#/")
    if reference in names:
        found["$ref"] = f"#/{names[reference][level]}"
    for key, single in (("x-requirements", "x-requirement"), ("x-requirements-required", "x-requirement-required")):
        if level in node.get(key, {}):
            found[single] = node[key][level]
    return patched(found, node.get("x-by-level", {}).get(level, {}))


def _with_properties_of(node: Json, level: str) -> Json:
    """Keep the properties of a level, and require those that are required always or at this level."""
    properties = {
        name: schema for name, schema in node["properties"].items() if level in schema.get("x-only", (level,))
    }
    required = [name for name in node.get("required", ()) if name in properties]
    required += [name for name, schema in properties.items() if level in schema.get("x-requirements-required", ())]
    found = {key: value for key, value in node.items() if key != "required"}
    return {**found, **({"required": required} if required else {}), "properties": properties}


# -- who may call ------------------------------------------------------------------------------------------------------


def authorization(written: Json, sets: Json, method: str) -> Json:
    """Return the expanded `x-authorization`: who is served, who is refused, and by which requirement.

    `written` names a set and adds requirements, each under the name of an actor or of a group of actors of that set.
    Raise ContractError for a set or an actor that the sets do not have.
    """
    try:
        chosen = sets["sets"][written["set"]]
    except KeyError as error:
        raise ContractError(f"x-authorization names {error}, which authorization.yaml does not have.") from error
    refused: Json = {}
    for who, requirement in {**chosen.get("refused", {}), **written}.items():
        if who != "set":
            refused.update(dict.fromkeys(chosen.get("groups", {}).get(who, [who]), requirement))
    served = {**chosen.get("served", {})}
    served |= {who: refused.pop(who) for who in list(refused) if who in chosen.get("served", {})}
    if chosen.get("served"):
        tokens = sets["wrong-token"]
        refused.setdefault("wrong-token", tokens["reading" if method == "get" else "changing"])
    unknown = {*served, *refused} - set(sets["actors"])
    if unknown:
        raise ContractError(f"x-authorization {written['set']} names unknown actors: {', '.join(sorted(unknown))}.")
    order: list[str] = sets["actors"]
    return {
        "description": " ".join(chosen["description"].split()),
        "least-role": chosen["least-role"],
        "served": {who: served[who] for who in order if who in served},
        "refused": {who: refused[who] for who in order if who in refused},
    }


# -- path items under two names ----------------------------------------------------------------------------------------


def same_as(item: Json, entries: Json) -> Json:
    """Return a path item; one with `x-same-as` is the named item of the same file, overridden by its own parts."""
    name = item.get("x-same-as")
    if name is None:
        return item
    if name not in entries:
        raise ContractError(f"x-same-as names {name}, which its file does not have.")
    found: Json = patched(entries[name], {key: value for key, value in item.items() if key != "x-same-as"})
    return found


def patched(node: Any, patch: Any) -> Any:
    """Return JSON with a merge patch applied (RFC 7396): objects are merged, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    found = dict(node) if isinstance(node, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = patched(found.get(key), value)
    return found
