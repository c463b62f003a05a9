from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from conformance.reference import Choices
from conformance.reference.choices import Repeat
from conformance.reference.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from selftest.reference.conftest import Served

COUNTS = {"badges": 0, "boards": 1, "labels": 5, "members": 8, "milestones": 3}


class ManualClock(Clock):
    """A clock that only moves when a test moves it."""

    def __init__(self) -> None:
        self.passed = 1000.0

    def now(self) -> datetime:
        return datetime(2024, 5, 1, tzinfo=UTC) + timedelta(seconds=self.passed)

    def seconds(self) -> float:
        return self.passed


class Export:
    """The relations export of one group, as one client sees it."""

    def __init__(self, served: Served, actor: str | None = "owner", group: int | str | None = None) -> None:
        self.clock = ManualClock()
        served.service.clock = self.clock
        self.client = served.acting_as(actor) if actor else served.anonymous()
        self.path = f"/groups/{group or served.id_of('export_group')}/export_relations"

    def schedule(self, **body: object) -> httpx.Response:
        return self.client.post(self.path, json=body)

    def status(self, **query: str) -> httpx.Response:
        return self.client.get(f"{self.path}/status", params=query)

    def download(self, **query: str | int) -> httpx.Response:
        return self.client.get(f"{self.path}/download", params=query)

    def finish(self) -> None:
        self.clock.passed += 0.2


def lines_of(answer: httpx.Response) -> list[dict[str, object]]:
    assert answer.status_code == 200
    text = gzip.decompress(answer.content).decode()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def export(served: Served) -> Export:
    return Export(served)


def test_an_export_is_accepted_started_and_finished_after_the_delay(export: Export) -> None:
    assert export.status().json() == []
    answer = export.schedule()
    assert (answer.status_code, answer.json()) == (202, {"message": "202 Accepted"})
    started = export.status().json()
    assert {entry["relation"] for entry in started} == set(COUNTS)
    assert {(entry["status"], entry["batched"], entry["error"]) for entry in started} == {(0, False, None)}
    assert export.download(relation="labels").status_code == 404
    export.finish()
    finished = export.status().json()
    assert {entry["status"] for entry in finished} == {1}
    assert all(late["updated_at"] > early["updated_at"] for early, late in zip(started, finished, strict=True))
    assert all("batches" not in entry for entry in finished)


def test_each_relation_is_a_json_lines_file_with_the_same_bytes_each_time(export: Export) -> None:
    export.schedule(batched=False)
    export.finish()
    for relation, count in COUNTS.items():
        answer = export.download(relation=relation)
        assert len(lines_of(answer)) == count
        assert f'filename="{relation}.ndjson.gz"' in answer.headers["content-disposition"]
        assert answer.content == export.download(relation=relation).content
        assert answer.content[:2] == b"\x1f\x8b"
    assert {line["title"] for line in lines_of(export.download(relation="milestones"))} == {
        "world-1 First",
        "world-1 Second",
        "world-1 Third",
    }


def test_the_batches_together_contain_all_objects(export: Export) -> None:
    export.schedule(batched=True)
    export.finish()
    for entry in export.status().json():
        relation, batches = entry["relation"], entry["batches"]
        assert entry["batched"] is True
        assert entry["batches_count"] == len(batches)
        assert [batch["batch_number"] for batch in batches] == list(range(1, len(batches) + 1))
        assert sum(batch["objects_count"] for batch in batches) == COUNTS[relation]
        for batch in batches:
            assert batch.keys() == {"status", "batch_number", "objects_count", "error", "updated_at"}
            query = {"relation": relation, "batched": "true", "batch_number": batch["batch_number"]}
            assert len(lines_of(export.download(**query))) == batch["objects_count"]
        beyond = {"relation": relation, "batched": "true", "batch_number": len(batches) + 1}
        assert export.download(**beyond).status_code == 404


def test_a_new_export_replaces_the_previous_one(export: Export) -> None:
    export.schedule(batched=True)
    export.finish()
    export.schedule()
    assert {(entry["status"], entry["batched"]) for entry in export.status().json()} == {(0, False)}
    assert export.download(relation="labels").status_code == 404
    export.finish()
    assert len(lines_of(export.download(relation="labels"))) == COUNTS["labels"]


def test_the_status_of_one_relation_can_be_requested(serve: Callable[..., Served]) -> None:
    for as_list, unknown in ((True, Repeat.REFUSE), (False, Repeat.ACCEPT)):
        choices = Choices(export_status_filtered_as_list=as_list, unknown_export_relation=unknown)
        export = Export(serve(choices=choices))
        export.schedule()
        one = export.status(relation="labels").json()
        (entry,) = one if as_list else (one,)
        assert entry["relation"] == "labels"
        missing = export.status(relation="no_such")
        assert missing.status_code == (404 if unknown is Repeat.REFUSE else 200)
        assert unknown is Repeat.REFUSE or missing.json() == []


def test_a_failed_relation_has_an_error_and_no_file(serve: Callable[..., Served]) -> None:
    choices = Choices(failing_export_relations=("boards",), unbatched_export_has_batches=True)
    export = Export(serve(choices=choices))
    export.schedule()
    assert export.status(relation="boards").json()[0]["status"] == 0
    export.finish()
    (entry,) = export.status(relation="boards").json()
    assert (entry["status"], entry["batches"]) == (-1, [])
    assert isinstance(entry["error"], str)
    assert export.download(relation="boards").status_code == 404
    assert export.download(relation="labels").status_code == 200


@pytest.mark.parametrize("batched", [False, True])
def test_downloads_of_anything_else_are_refused(export: Export, *, batched: bool) -> None:
    export.schedule(batched=batched)
    export.finish()
    for query, code in (
        ({}, 400),
        ({"relation": "no_such"}, 404),
        ({"relation": "labels", "batched": "true"}, 400),
        ({"relation": "labels", "batch_number": 1}, 400),
        ({"relation": "labels", "batched": "true", "batch_number": "abc"}, 400),
        ({"relation": "labels", "batched": "maybe", "batch_number": 1}, 400),
        ({"relation": "labels", "batched": "true", "batch_number": 0}, 404 if batched else 400),
        ({"relation": "labels", "batched": "true", "batch_number": -1}, 404 if batched else 400),
        ({"relation": "labels"}, 400 if batched else 200),
    ):
        assert export.download(**query).status_code == code, query
    before = export.status().json()
    wrong: tuple[object, ...] = ("maybe", {}, [], 7)
    for value in wrong:
        assert export.schedule(batched=value).status_code == 400
    assert export.status().json() == before


@pytest.mark.parametrize(("actor", "code"), [(None, 401), ("outsider", 404), ("developer", 403), ("maintainer", 403)])
def test_every_operation_requires_the_owner_of_the_group(served: Served, actor: str | None, code: int) -> None:
    refused, allowed = Export(served, actor), Export(served)
    answers = [refused.schedule(), refused.status(), refused.download(relation="labels")]
    assert {answer.status_code for answer in answers} == {code}
    assert allowed.status().json() == []


def test_exports_of_groups_are_separate_and_unknown_groups_have_none(served: Served) -> None:
    other, export = Export(served, group="2000000001-world-1-group%2Fsubgroup"), Export(served)
    assert other.schedule().status_code == 202
    assert export.status().json() == []
    assert other.status().json() != []
    unknown = Export(served, group=999_999)
    answers = [unknown.schedule(), unknown.status(), unknown.download(relation="labels")]
    assert {answer.status_code for answer in answers} == {404}


def test_resetting_the_service_forgets_exports(served: Served, export: Export) -> None:
    export.schedule()
    served.service.reset()
    assert export.status().json() == []
