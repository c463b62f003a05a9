"""The contract at each version: valid for other tools, and different only where the version table says so."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis.core.result import Ok

from conformance.contract import TABLE, Contract, Version
from conformance.contract.lint import problems
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

SNAPSHOT = Path(__file__).parent / "neighbours.yaml"


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.load()


@pytest.mark.parametrize("version", [*TABLE, "unknown"])
def test_the_document_of_a_version_is_valid_and_loads_in_other_tools(contract: Contract, version: str) -> None:
    document = contract.as_of(version)
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    loaded = schemathesis.openapi.from_dict(document)
    labels = {result.ok().label for result in loaded.get_all_operations() if isinstance(result, Ok)}
    described = {entry.label for entry in contract.operations(Version.parse_known(version)) if entry.area != "versions"}
    assert labels == described


@pytest.mark.parametrize("version", TABLE)
def test_the_document_of_a_version_is_plain_openapi(contract: Contract, version: str) -> None:
    assert [key for key in keys(contract.as_of(version)) if key.startswith("x-")] == []


def test_the_contract_is_consistent(contract: Contract) -> None:
    assert list(problems(contract)) == []


def test_neighbouring_versions_differ_as_the_snapshot_says(contract: Contract) -> None:
    """Set UPDATE_SNAPSHOTS=1 to write the snapshot again, and read its diff before you commit it."""
    found = {f"{old} to {new}": differences(contract, old, new) for old, new in pairwise(TABLE)}
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(yaml.safe_dump(found, sort_keys=False, width=200), encoding="utf-8")
    assert found == yaml.safe_load(SNAPSHOT.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("version", "place", "there"),
    [
        ("16.0", "/projects/{id}/job_token_scope", False),
        ("16.1", "/projects/{id}/job_token_scope", True),
        ("12.3", "/projects/{id}/integrations", False),
        ("12.3", "/projects/{id}/services", True),
        ("17.7", "/projects/{id}/integrations", True),
        ("15.9", "POST /projects/{id}/approvals", True),
        ("16.0", "POST /projects/{id}/approvals", False),
        ("16.0", "GET /projects/{id}/approvals", True),
    ],
)
def test_an_operation_exists_from_its_version_on(
    contract: Contract,
    version: str,
    place: str,
    *,
    there: bool,
) -> None:
    operations = contract.operations(Version.parse(version))
    assert any(place in (operation.path, operation.label) for operation in operations) is there


def test_a_field_is_required_only_while_it_may_not_be_absent(contract: Contract) -> None:
    before = contract.as_of("17.7")["components"]["schemas"]["JobTokenScopeSettings"]
    after = contract.as_of("18.0")["components"]["schemas"]["JobTokenScopeSettings"]
    assert "outbound_enabled" in before["required"]
    assert "outbound_enabled" not in after["required"]
    assert before["properties"]["outbound_enabled"]["deprecated"] is True
    assert after["properties"]["outbound_enabled"]["deprecated"] is True


def test_examples_show_only_what_exists_at_a_version(contract: Contract) -> None:
    text = str(contract.as_of("15.2"))
    assert "applies_to_all_protected_branches" not in text
    assert "vulnerability_events" not in text


def test_at_an_unknown_version_everything_is_allowed_and_nothing_new_required(contract: Contract) -> None:
    document = contract.as_of("unknown")
    assert "post" in document["paths"]["/projects/{id}/approvals"]
    rule = document["components"]["schemas"]["ProjectApprovalRule"]
    assert "applies_to_all_protected_branches" in rule["properties"]
    assert "applies_to_all_protected_branches" not in rule["required"]


@pytest.mark.parametrize("text", ["17.7", "17.7.1-pre", "v17.7", "17.7.0+ee"])
def test_patch_levels_and_prereleases_count_as_their_minor_version(text: str) -> None:
    assert Version.parse(text) == Version(17, 7)


@pytest.mark.parametrize("text", ["", "seventeen", "17", "17.x", "11.9", "19.1", "20.0"])
def test_a_version_outside_the_specification_is_refused_with_a_message(text: str) -> None:
    with pytest.raises(UsageError, match=r"17\.7|12\.3 to 19\.0"):
        Version.parse_known(text)


def keys(node: Any) -> Iterator[str]:
    """Yield the keys of a document except those inside examples, which are names that the service chose."""
    if isinstance(node, list):
        for entry in node:
            yield from keys(entry)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield str(key)
            if key not in ("examples", "value"):
                yield from keys(value)


def differences(contract: Contract, old: str, new: str) -> dict[str, list[str]]:
    before, after = flat(contract.as_of(old)), flat(contract.as_of(new))
    return {
        "gone": topmost(before.keys() - after.keys()),
        "new": topmost(after.keys() - before.keys()),
        "changed": sorted(place for place in before.keys() & after.keys() if before[place] != after[place]),
    }


def flat(document: dict[str, Any]) -> dict[str, Any]:
    """Return every place of a document except its title and its examples, with the value of each leaf."""
    places: dict[str, Any] = {}

    def visit(node: Any, place: str) -> None:
        places[place] = None if isinstance(node, dict | list) else node
        if isinstance(node, dict):
            for key, value in node.items():
                step = f"{place}/{str(key).replace('/', '~1')}"
                if key in ("required", "enum") and isinstance(value, list):
                    places.update({f"{step}={entry}": None for entry in value})
                elif key not in ("examples", "info"):
                    visit(value, step)
        elif isinstance(node, list):
            for number, value in enumerate(node):
                name = value.get("name", value.get("$ref", number)) if isinstance(value, dict) else number
                visit(value, f"{place}/{str(name).rpartition('/')[2]}")

    visit(document, "")
    return places


def topmost(places: set[str]) -> list[str]:
    """Leave out places that are below another place of the same set."""
    return sorted(place for place in places if place.rpartition("/")[0] not in places)


def test_nothing_is_said_to_be_refused_that_a_deletion_may_answer_with_success(contract: Contract) -> None:
    """Deleting what does not exist may succeed, also where no number names it."""
    named = {
        parameter.requirement
        for operation in contract.operations(None)
        if operation.method == "DELETE"
        for parameter in operation.parameters
        if parameter.place == "path" and parameter.requirement
    }
    assert named
    said = {name: contract.requirements[name].statement for name in named}
    assert [name for name, text in said.items() if "refused" in text and "deletion" not in text] == []
