"""What `contract --as-of` prints: what the specification states, described in words, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import TABLE, Contract, Version
from conformance.contract.at_version import METHODS
from conformance.contract.bundle import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSIONS = [*TABLE, "unknown"]
#: Limits that the specification states, or that are true whatever it says; the document must have no other limits.
STATED_LIMITS = {
    "ExportAcceptance/message: minLength",
    "MergeRequestApprovalStatus/approvals_left: minimum",
    "ProjectApprovalConfiguration/approvers: maxItems",
    "ProjectApprovalConfiguration/approver_groups: maxItems",
    "Timestamp: pattern",
    "Url: pattern",
    "AvatarUrl: pattern",
}
LIMITS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
LIMITS |= {"pattern", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"}


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Any]]:
    contract = Contract.load()
    return {version: contract.as_of(version) for version in VERSIONS}


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each operation with its label and its path item."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method], item


def parameters(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for label, operation, item in operations(document):
        for parameter in (*item.get("parameters", ()), *operation.get("parameters", ())):
            found = resolve(document, parameter)
            yield f"{label}: {found['name']}", found


def schemas(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each named record, each property below it, and the schemas of parameters, with their position."""

    def below(place: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        yield place, schema
        for name, node in schema.get("properties", {}).items():
            yield from below(f"{place}/{name}", node)
        for word in ("anyOf", "allOf", "oneOf"):
            for part in schema.get(word, ()):
                yield from below(f"{place} {word}", part)

    for name, record in document["components"]["schemas"].items():
        yield from below(name, record)
    for place, parameter in parameters(document):
        yield from below(place, parameter["schema"])


def test_no_limit_is_published_that_only_drawing_needs(documents: Any) -> None:
    found = {
        f"{place}: {word}"
        for document in documents.values()
        for place, schema in schemas(document)
        for word in LIMITS & schema.keys()
    }
    assert found == STATED_LIMITS


def test_calls_are_drawn_within_limits_that_are_not_published() -> None:
    contract = Contract.load()
    name = "GroupApprovalRuleChange"
    drawn = contract.for_drawing(Version.parse("17.7"))["components"]["schemas"][name]
    published = contract.as_of("17.7")["components"]["schemas"][name]
    assert (drawn["minProperties"], drawn["properties"]["approvals_required"]["maximum"]) == (1, 10)
    assert "minProperties" not in published
    assert published["properties"]["approvals_required"].keys() == {"type", "description"}


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_has_a_description(documents: Any, version: str) -> None:
    document = documents[version]
    named = [(label, node) for label, node, _ in operations(document)]
    named += list(parameters(document))
    named += [(place, resolve(document, schema)) for place, schema in schemas(document) if " " not in place]
    named += [
        (f"{label} {status}", resolve(document, answer))
        for label, node, _ in operations(document)
        for status, answer in node["responses"].items()
    ]
    named += [(label, node["requestBody"]) for label, node, _ in operations(document) if "requestBody" in node]
    assert [place for place, node in named if len(node.get("description", "")) < len("Name.")] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_lists_have_items_and_records_have_the_type_object(documents: Any, version: str) -> None:
    listed = [
        place for place, schema in schemas(documents[version]) if "array" in kinds(schema) and "items" not in schema
    ]
    records = [
        place
        for place, schema in schemas(documents[version])
        if "properties" in schema and "object" not in kinds(schema)
    ]
    assert (listed, [place for place in records if not place.endswith("Change")]) == ([], [])


def kinds(schema: dict[str, Any]) -> list[str]:
    found = schema.get("type", [])
    return [found] if isinstance(found, str) else found


@pytest.mark.parametrize("version", VERSIONS)
def test_each_example_has_a_name_and_a_summary(documents: Any, version: str) -> None:
    document = documents[version]
    media = [
        (label, entry)
        for label, node, _ in operations(document)
        for part in (node.get("requestBody", {}), *(resolve(document, answer) for answer in node["responses"].values()))
        for entry in part.get("content", {}).values()
        if "schema" in entry
    ]
    assert media
    assert [label for label, entry in media if not entry.get("examples") or "example" in entry] == []
    assert [name for name, entry in document["components"]["examples"].items() if not entry.get("summary")] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_no_reference_outside_schemas_has_siblings(documents: Any, version: str) -> None:
    document = documents[version]
    shared = [
        entry
        for _, node, item in operations(document)
        for entry in (*item.get("parameters", ()), *node.get("parameters", ()), *node["responses"].values())
        if "$ref" in entry
    ]
    assert shared
    assert [entry for entry in shared if set(entry) != {"$ref"}] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_tags_are_those_that_operations_use(documents: Any, version: str) -> None:
    document = documents[version]
    used = {tag for _, node, _ in operations(document) for tag in node["tags"]}
    assert [tag["name"] for tag in document["tags"]] == [tag["name"] for tag in document["tags"] if tag["name"] in used]
    assert used == {tag["name"] for tag in document["tags"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_operations_that_the_specification_only_mentions_are_left_out(documents: Any, version: str) -> None:
    document = documents[version]
    assert not [path for path in document["paths"] if "runners" in path or path in ("/users", "/member_roles")]
    assert "versions" not in {tag["name"] for tag in document["tags"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_description_of_an_operation_says_who_may_call_it(documents: Any, version: str) -> None:
    silent = [label for label, node, _ in operations(documents[version]) if "Who may call: " not in node["description"]]
    assert silent == []


def test_dangerous_operations_are_marked_in_words() -> None:
    contract = Contract.load()
    document = contract.at(Version.parse("17.7"))
    told = {
        tag["name"]: {key: value for key, value in tag.items() if key != "x-not-described"} for tag in document["tags"]
    }
    shown = {**document, "tags": list(told.values())}
    from conformance.contract.published import published  # noqa: PLC0415 - only here what is hidden is shown

    reset = published(shown, Version.parse("17.7"))["paths"]["/runners/reset_registration_token"]["post"]
    assert "Unsafe: A call would replace the token" in reset["description"]


@pytest.mark.parametrize(
    ("path", "method", "words"),
    [
        ("/code_suggestions/completions", "post", ["60 requests", "`code_suggestions_completion_api`", "Experimental"]),
        ("/groups/{id}/approval_rules", "post", ["`approval_group_rules`", "administrator of the group"]),
        ("/groups/{id}/merge_request_approval_setting", "get", ["Owner role in the group"]),
        ("/projects/{id}/job_token_scope", "get", ["Maintainer role or a higher one"]),
        ("/projects/{id}/merge_requests/{merge_request_iid}/reset_approvals", "put", ["bot users", "401"]),
    ],
)
def test_roles_limits_and_flags_are_stated_in_words(documents: Any, path: str, method: str, words: list[str]) -> None:
    description = documents["17.7"]["paths"][path][method]["description"]
    assert [word for word in words if word not in description] == []


@pytest.mark.parametrize(
    ("path", "method"),
    [("/groups/{id}/approval_rules", "post"), ("/groups/{id}/approval_rules/{approval_rule_id}", "put")],
)
def test_parameters_of_group_rules_may_be_in_the_query(documents: Any, path: str, method: str) -> None:
    document = documents["17.7"]
    operation = document["paths"][path][method]
    body = resolve(document, operation["requestBody"]["content"]["application/json"]["schema"])
    named = [resolve(document, entry) for entry in operation["parameters"]]
    asked = {entry["name"] for entry in named if entry["in"] == "query"}
    assert asked == set(body["properties"])
    assert not [entry for entry in named if entry["in"] == "query" and entry.get("required")]
    assert operation["requestBody"]["required"] is False


@pytest.mark.parametrize("version", VERSIONS)
def test_a_body_is_required_where_something_in_it_is_and_nowhere_else(documents: Any, version: str) -> None:
    bodies = {label: node["requestBody"] for label, node, _ in operations(documents[version]) if "requestBody" in node}
    owes = {
        label: bool(resolve(documents[version], body["content"]["application/json"]["schema"]).get("required"))
        for label, body in bodies.items()
    }
    takes_query = {label for label in bodies if "/groups/{id}/approval_rules" in label}
    wanted = {label: owed and label not in takes_query for label, owed in owes.items()}
    assert {label: body.get("required", False) for label, body in bodies.items()} == wanted


def test_a_streamed_completion_may_have_another_media_type(documents: Any) -> None:
    answer = documents["17.7"]["paths"]["/code_suggestions/completions"]["post"]["responses"]["200"]
    assert list(answer["content"]) == ["application/json", "*/*"]


def test_the_export_status_is_a_list_or_a_single_entry(documents: Any) -> None:
    answer = documents["17.7"]["paths"]["/groups/{id}/export_relations/status"]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    entry = {"$ref": "#/components/schemas/ExportStatus"}
    assert schema == {"anyOf": [{"type": "array", "items": entry}, entry]}


@pytest.mark.parametrize("version", VERSIONS)
def test_title_version_and_wording_of_a_document_agree(documents: Any, version: str) -> None:
    info = documents[version]["info"]
    assert info["license"] == {"name": "MIT", "identifier": "MIT"}
    assert info["contact"]["name"]
    if version == "unknown":
        assert "all versions" in info["summary"]
        assert "any version" in info["description"]
    else:
        assert info["version"] == version
        assert f"version {version}" in info["summary"]
        assert f"version {version}" in info["description"]
    assert "unknown" not in info["description"]
