"""The reference as used by unmodified clients of other languages and authors."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from selftest.npm import with_packages

if TYPE_CHECKING:
    from types import ModuleType

    from selftest.reference.conftest import Served

PACKAGES = ("@gitbeaker/rest@43.8.0", "openapi-fetch@0.17.0")
VERSION = "17.7"


@pytest.fixture(scope="module")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the clients that npm installs, and the script that uses them."""
    folder = with_packages(tmp_path_factory.mktemp("npm"), *PACKAGES)
    shutil.copy(Path(__file__).with_name("clients.mjs"), folder)
    return folder


def test_gitbeaker_and_openapi_fetch_work(javascript: Path, served: Served) -> None:
    world = served.service.world
    merge_request, target = world.one("merge_request").extra, world.many("allowlist_projects")[0].id
    order = {
        "base_url": served.server.base_url,
        "token": world.actors["maintainer"].token,
        "owner": world.actors["owner"].token,
        "approver": world.actors["approver"].token,
        "project": served.id_of("project"),
        "group": served.id_of("export_group"),
        "target": target,
        "merge_request": merge_request["iid"],
        "sha": merge_request["sha"],
    }
    finished = subprocess.run(
        ["node", "clients.mjs"],  # noqa: S607 - found on the path, as whoever uses it does
        cwd=javascript,
        input=json.dumps(order),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert finished.returncode == 0, finished.stderr
    seen = json.loads(finished.stdout)
    assert seen["edited"]["inbound_enabled"] is not seen["scope"]["inbound_enabled"]
    assert target in seen["allowlist"]
    assert target not in seen["left"]
    assert {user["user"]["id"] for user in seen["approved"]["approved_by"]} == {world.actors["approver"].id}
    assert seen["state"]["rules"]
    assert "slack" in seen["integrations"]
    assert seen["fetched"].keys() >= {"inbound_enabled"}
    assert (seen["patched"], bool(seen["refused"]), isinstance(seen["page"], list)) == (204, True, True)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, dict[str, Any]]:
    """The package that openapi-python-client generates from the published document, and the document."""
    folder, name = tmp_path_factory.mktemp("client"), "generated_for_the_reference"
    document: dict[str, Any] = Contract.load().as_of(VERSION)
    (folder / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "config.yaml").write_text("post_hooks: []\n", encoding="utf-8")
    options = ("--path", "openapi.json", "--output-path", name, "--meta", "none", "--config", "config.yaml")
    command = [sys.executable, "-m", "openapi_python_client", "generate", *options]
    subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=120)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name), document
    finally:
        sys.path.remove(str(folder))


def test_a_generated_client_parses_every_read(generated: tuple[ModuleType, dict[str, Any]], served: Served) -> None:
    """For every read of the project, its group or its merge request, the parsed response equals the sent one."""
    package, document = generated
    client = importlib.import_module(f"{package.__name__}.client").AuthenticatedClient(
        base_url=f"{served.server.base_url}/api/v4",
        token=served.service.world.actors["owner"].token,
        prefix="",
        auth_header_name="PRIVATE-TOKEN",
    )
    read = {}
    for path, item in document["paths"].items():
        operation = item.get("get")
        values = values_of(path, served)
        if operation is None or values is None or any(each.get("required") for each in queries_of(operation)):
            continue
        place = f"{package.__name__}.api.{snake(operation['tags'][0])}.{snake(operation['operationId'])}"
        answer = importlib.import_module(place).sync_detailed(client=client, **values)
        understood = answer.parsed
        shown = [each.to_dict() for each in understood] if isinstance(understood, list) else understood.to_dict()
        read[path] = (answer.status_code, shown == json.loads(answer.content))
    assert len(read) > 10
    assert {path: seen for path, seen in read.items() if seen != (200, True)} == {}


def values_of(path: str, served: Served) -> dict[str, Any] | None:
    """Return the values of path parameters in the prepared world; None if the thing must be created first."""
    names = re.findall(r"\{(\w+)\}", path)
    known = {"id": served.id_of("project" if path.startswith("/projects") else "group")}
    known["merge_request_iid"] = int(str(served.service.world.one("merge_request").extra["iid"]))
    return {name: known[name] for name in names} if set(names) <= known.keys() else None


def queries_of(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [parameter for parameter in operation.get("parameters", ()) if parameter.get("in") == "query"]


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).replace("-", "_").lower()
