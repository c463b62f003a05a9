"""Clients that generators of others make of the published document: they parse every documented example."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from pydantic import TypeAdapter

from conformance.contract import Contract
from selftest.contract.published_examples import PublishedExample, published_examples, record_names
from selftest.npm import with_packages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

#: The oldest version, the newest one, and all versions in one document.
VERSIONS = ["12.3", "19.0", "unknown"]
TYPESCRIPT = ("openapi-typescript@7.13.0", "typescript@5.9.3")


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def document(version: str) -> dict[str, Any]:
    found: dict[str, Any] = Contract.load().as_of(version)
    return found


@pytest.fixture(scope="module")
def folder(document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("clients")
    (found / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    return found


def run(*command: str, cwd: Path) -> str:
    """Run a generator; fail with its output if it ends with an error."""
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    said = f"{finished.stdout}\n{finished.stderr}"
    assert finished.returncode == 0, said
    return said


def imported(folder: Path, name: str) -> ModuleType:
    """Import a generated module under a name that no other version uses."""
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def module_name(version: str, kind: str) -> str:
    return f"generated_{kind}_{version.replace('.', '_')}"


# -- openapi-python-client ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client_package(folder: Path, version: str) -> ModuleType:
    name = module_name(version, "client")
    # The generator does not treat it as an error when it leaves something out: "some pieces may be missing".
    (folder / "config.yaml").write_text("post_hooks: []\n", encoding="utf-8")
    options = ("--path", "openapi.json", "--output-path", name, "--meta", "none", "--config", "config.yaml")
    said = run(sys.executable, "-m", "openapi_python_client", "generate", *options, "--fail-on-warning", cwd=folder)
    assert "WARNING" not in said, said
    return imported(folder, name)


def test_openapi_python_client_parses_every_example(client_package: ModuleType, document: dict[str, Any]) -> None:
    """In both directions: it sends the documented request, and returns the documented response unchanged."""
    examples = list(published_examples(document))
    requests = {example.operation: example for example in examples if example.status is None}
    answers = [example for example in examples if example.status is not None]
    assert (len(requests) > 10, len(answers) > 15) == (True, True)
    wrong = []
    for answer in answers:
        request = requests.get(answer.operation)
        sent, parsed = exchanged(client_package, answer, request)
        if request is not None and sent != request.value:
            wrong.append(request.label)
        if parsed != answer.value:
            wrong.append(answer.label)
    assert wrong == []


def exchanged(package: ModuleType, answer: PublishedExample, request: PublishedExample | None) -> tuple[Any, Any]:
    """Call an operation with a given response; return as JSON what was sent and what the client parsed."""
    bodies: list[Any] = []

    def serve(received: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(received.content) if received.content else None)
        return httpx.Response(answer.status or 200, json=answer.value)

    clients, models = (importlib.import_module(f"{package.__name__}.{name}") for name in ("client", "models"))
    client = clients.Client(base_url="http://service.example.com", httpx_args={"transport": httpx.MockTransport(serve)})
    module = importlib.import_module(f"{package.__name__}.api.{snake(answer.tag)}.{snake(answer.operation)}")
    values: dict[str, Any] = dict.fromkeys(answer.path_parameters, 1)
    if request is not None:
        (name,) = record_names(request.schema)
        values["body"] = getattr(models, name).from_dict(request.value)
    parsed = module.sync_detailed(client=client, **values).parsed
    understood = [entry.to_dict() for entry in parsed] if isinstance(parsed, list) else parsed and parsed.to_dict()
    return bodies[0], understood


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).replace("-", "_").lower()


# -- datamodel-code-generator ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(folder: Path, version: str) -> ModuleType:
    name = module_name(version, "models")
    options = ("--input", "openapi.json", "--input-file-type", "openapi", "--output", f"{name}.py")
    more = ("--output-model-type", "pydantic_v2.BaseModel", "--formatters", "builtin", "--strict-nullable")
    run(sys.executable, "-m", "datamodel_code_generator", *options, *more, cwd=folder)
    return imported(folder, name)


def test_datamodel_code_generator_parses_every_example(models: ModuleType, document: dict[str, Any]) -> None:
    examples = list(published_examples(document))
    assert len(examples) > 25
    assert [example.label for example in examples if modelled(models, example) != example.value] == []


def modelled(models: ModuleType, example: PublishedExample) -> Any:
    """Parse an example with the model of its record, and return it as JSON again."""
    model = getattr(models, record_names(example.schema)[0])
    adapter: TypeAdapter[Any] = TypeAdapter(list[model] if isinstance(example.value, list) else model)  # type: ignore[valid-type]
    return adapter.dump_python(
        adapter.validate_json(json.dumps(example.value)), mode="json", exclude_unset=True, by_alias=True
    )


# -- openapi-typescript ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the generator and the compiler, which npm installs."""
    return with_packages(tmp_path_factory.mktemp("npm"), *TYPESCRIPT) / "node_modules" / ".bin"


def test_openapi_typescript_makes_types_that_fit_every_example(typescript: Path, tmp_path: Path) -> None:
    document = Contract.load().as_of("unknown")
    (tmp_path / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "examples.ts").write_text("\n".join(typed(document)), encoding="utf-8")
    # By default the generator requires every property that has a default value, also in requests.
    options = ("openapi.json", "--default-non-nullable", "false", "-o", "types.ts")
    run(str(typescript / "openapi-typescript"), *options, cwd=tmp_path)
    strict = ("--noEmit", "--strict", "--skipLibCheck", "--lib", "es2022", "types.ts", "examples.ts")
    run(str(typescript / "tsc"), *strict, cwd=tmp_path)


def typed(document: dict[str, Any]) -> Iterator[str]:
    """Yield TypeScript in which each example is a constant that has the type from its operation."""
    yield 'import type { operations } from "./types";'
    for number, example in enumerate(published_examples(document)):
        operation = f'operations["{example.operation}"]'
        part = f'NonNullable<{operation}["requestBody"]>'
        if example.status is not None:
            part = f'{operation}["responses"][{example.status}]'
        place = f'{part}["content"]["application/json"]'
        yield f"export const example{number}: {place} = {json.dumps(example.value)};"
