"""The OpenAPI document of all versions, combined from its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.contract.shorthand import at_levels, authorization, same_as
from conformance.contract.yaml_files import read_yaml
from conformance.errors import ContractError

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]


def bundle(index: Path) -> Json:
    """Combine `openapi.yaml` and all files that it refers to into one document.

    Path items are put in place, records become `#/components/schemas/<Name>`, and examples
    `#/components/examples/<Name>`. Shorthand for several places is written out; see `shorthand`. Extensions stay. Raise
    ContractError on a reference without a target or a name that two files define.
    """
    return _Bundler(index.resolve()).run()


@dataclass
class _Bundler:
    index: Path
    files: dict[Path, Json] = field(default_factory=dict)
    origins: dict[tuple[str, str], Path] = field(default_factory=dict)
    located: dict[tuple[Path, str], Path] = field(default_factory=dict)
    """Where the files of references are: to ask the file system for each reference takes long."""
    components: Json = field(default_factory=lambda: {"schemas": {}, "examples": {}})

    def run(self) -> Json:
        root = self._file(self.index)
        document = {key: self._walk(value, self.index) for key, value in root.items() if key != "paths"}
        document["paths"] = {path: self._path_item(item) for path, item in root["paths"].items()}
        own = document.setdefault("components", {})
        for section, entries in self.components.items():
            own[section] = dict(sorted(entries.items()))
        return document

    def _file(self, file: Path) -> Json:
        if file not in self.files:
            read = read_yaml(file)
            self.files[file] = at_levels(read) if file.parent.name == "schemas" else read
        return self.files[file]

    def _path_item(self, item: Json) -> Any:
        file, name = self._locate(item["$ref"], self.index)
        whole = same_as(self._entry(file, name, item["$ref"]), self._file(file))
        found: Json = self._walk(whole, file)
        for method, node in found.items():
            if isinstance(node, dict) and "set" in node.get("x-authorization", {}):
                sets = self._file(self.index.parent / "authorization.yaml")
                node["x-authorization"] = authorization(node["x-authorization"], sets, method)
        return found

    def _locate(self, reference: str, base: Path) -> tuple[Path, str]:
        file, _, pointer = reference.partition("#")
        if (base, file) not in self.located:
            self.located[base, file] = (base.parent / file).resolve() if file else base
        return self.located[base, file], pointer.lstrip("/")

    def _entry(self, file: Path, name: str, reference: str) -> Any:
        content = self._file(file)
        if name not in content:
            raise ContractError(f"Reference {reference} leads nowhere: {file.name} has no {name}.")
        return content[name]

    def _walk(self, node: Any, base: Path) -> Any:
        if isinstance(node, list):
            return [self._walk(entry, base) for entry in node]
        if not isinstance(node, dict):
            return node
        walked = {key: self._walk(value, base) for key, value in node.items() if key != "$ref"}
        if "$ref" in node:
            return {"$ref": self._component(node["$ref"], base), **walked}
        return walked

    def _component(self, reference: str, base: Path) -> str:
        file, name = self._locate(reference, base)
        if file == self.index:
            return f"#/{name}"
        section = "examples" if file.parent.name == "examples" else "schemas"
        origin = self.origins.setdefault((section, name), file)
        if origin != file:
            raise ContractError(f"Two files define {name}: {origin.name} and {file.name}.")
        entries = self.components[section]
        if name not in entries:
            entry = self._entry(file, name, reference)
            entries[name] = {}  # a record may refer to itself
            entries[name] = self._walk(entry, file)
        return f"#/components/{section}/{name}"


def resolve(document: Json, node: Any) -> Any:
    """Follow a local `$ref` of a combined document; keys beside it override those of the target."""
    while isinstance(node, dict) and "$ref" in node:
        target: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            try:
                target = target[part.replace("~1", "/").replace("~0", "~")]
            except (KeyError, TypeError) as error:
                raise ContractError(f"Reference {node['$ref']} leads nowhere.") from error
        beside = {key: value for key, value in node.items() if key != "$ref"}
        node = {**target, **beside} if isinstance(target, dict) else target
    return node
