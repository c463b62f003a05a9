"""The OpenAPI document of all versions, gathered from its files into one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import read_yaml
from conformance.errors import ContractError

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]


def bundle(index: Path) -> Json:
    """
    Gather `openapi.yaml` and all files that it refers to into one document.

    Path items are put in place, records become `#/components/schemas/<Name>`. Extensions stay.
    Raise ContractError on a reference that leads nowhere or a record name used in two files.
    """
    return _Bundler(index.resolve()).run()


@dataclass
class _Bundler:
    index: Path
    files: dict[Path, Json] = field(default_factory=dict)
    origins: dict[str, Path] = field(default_factory=dict)
    schemas: Json = field(default_factory=dict)

    def run(self) -> Json:
        root = self._file(self.index)
        document = {key: self._walk(value, self.index) for key, value in root.items() if key != "paths"}
        document["paths"] = {path: self._path_item(item) for path, item in root["paths"].items()}
        components = document.setdefault("components", {})
        components["schemas"] = dict(sorted(self.schemas.items()))
        return document

    def _file(self, file: Path) -> Json:
        if file not in self.files:
            self.files[file] = read_yaml(file)
        return self.files[file]

    def _path_item(self, item: Json) -> Any:
        if set(item) != {"$ref"}:
            return self._walk(item, self.index)
        file, name = self._locate(item["$ref"], self.index)
        return self._walk(self._entry(file, name, item["$ref"]), file)

    def _locate(self, reference: str, base: Path) -> tuple[Path, str]:
        file, _, pointer = reference.partition("#")
        return (base.parent / file).resolve() if file else base, pointer.lstrip("/")

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
        file, pointer = self._locate(reference, base)
        if file == self.index:
            return f"#/{pointer}"
        if self.origins.setdefault(pointer, file) != file:
            raise ContractError(f"Two files have a record {pointer}: {self.origins[pointer].name}, {file.name}.")
        if pointer not in self.schemas:
            entry = self._entry(file, pointer, reference)
            self.schemas[pointer] = {}  # a record may refer to itself
            self.schemas[pointer] = self._walk(entry, file)
        return f"#/components/schemas/{pointer}"


def resolve(document: Json, node: Any) -> Any:
    """Follow a local `$ref` of a gathered document; what stands beside it wins over what it leads to."""
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
