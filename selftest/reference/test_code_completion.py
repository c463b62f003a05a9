from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from conformance.reference import Choices
from conformance.reference.choices import Window
from conformance.reference.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from selftest.reference.conftest import Served

FILE = {"file_name": "main.py", "content_above_cursor": "def answer():\n    "}
BODY: dict[str, object] = {"current_file": FILE}


class ManualClock(Clock):
    """A clock for durations that only moves when a test moves it."""

    def __init__(self) -> None:
        self.passed = 600.0

    def seconds(self) -> float:
        return self.passed


def complete(client: httpx.Client, body: object = None, **headers: str) -> httpx.Response:
    return client.post("/code_suggestions/completions", json=body or BODY, headers=headers)


def check(client: httpx.Client, path: object) -> httpx.Response:
    return client.post("/code_suggestions/enabled", json={"project_path": path})


def test_a_completion_has_the_fields_of_the_specification(served: Served) -> None:
    answer = complete(served.acting_as("guest"))
    result = answer.json()
    assert answer.status_code == 200
    assert result.keys() == {"id", "model", "object", "created", "choices"}
    assert isinstance(result["id"], str)
    assert result["model"].keys() == {"engine", "name"}
    assert abs(result["created"] - time.time()) < 60
    for number, choice in enumerate(result["choices"]):
        assert choice.keys() == {"text", "index", "finish_reason"}
        assert choice["index"] == number
        assert isinstance(choice["text"], str)


@pytest.mark.parametrize(
    "extra",
    [
        {"intent": "completion"},
        {"intent": "generation"},
        {"stream": False},
        {"project_path": "world-1-group/project"},
        {"project_path": "no/such"},
        {"current_file": {**FILE, "content_below_cursor": "\n"}},
    ],
)
def test_the_optional_parameters_are_accepted(served: Served, extra: dict[str, object]) -> None:
    answer = complete(served.acting_as("developer"), {**BODY, **extra})
    assert (answer.status_code, answer.json()["object"]) == (200, "text_completion")


@pytest.mark.parametrize(
    "body",
    [
        {"current_file": None},
        {"current_file": "x"},
        {"current_file": []},
        {"current_file": {}},
        {"current_file": {"file_name": "a.py"}},
        {"current_file": {"content_above_cursor": ""}},
        {"current_file": {**FILE, "file_name": {}}},
        {"current_file": {**FILE, "content_above_cursor": []}},
        {"current_file": {**FILE, "content_below_cursor": {}}},
        {"current_file": {**FILE, "file_name": "a" * 256}},
        {"current_file": {**FILE, "content_above_cursor": "a" * 400_001}},
        {**BODY, "intent": "bogus"},
        {**BODY, "stream": "maybe"},
        {**BODY, "stream": {}},
        {**BODY, "project_path": {}},
    ],
)
def test_an_invalid_request_for_a_completion_is_refused(served: Served, body: dict[str, object]) -> None:
    answer = complete(served.acting_as("developer"), body)
    assert answer.status_code == 400
    assert "choices" not in answer.json()


def test_a_stream_is_sent_in_chunks_unless_the_service_does_not_stream(serve: Callable[..., Served]) -> None:
    body = {**BODY, "intent": "generation", "stream": True}
    served = serve()
    streamed = complete(served.acting_as("developer"), body)
    whole = complete(served.acting_as("developer"), {**body, "stream": False})
    assert streamed.status_code == 200
    assert streamed.headers["transfer-encoding"] == "chunked"
    assert streamed.text == whole.json()["choices"][0]["text"]
    plain = complete(
        serve(choices=Choices(completion_streams=False, completion_alternatives=0)).acting_as("developer"), body
    )
    assert plain.json()["choices"] == []


def test_the_completion_endpoint_always_accepts_bearer(serve: Callable[..., Served]) -> None:
    served = serve(choices=Choices(bearer_everywhere=False))
    bearer = f"Bearer {served.service.world.actors['developer'].token}"
    assert complete(served.anonymous(), Authorization=bearer).status_code == 200
    assert complete(served.anonymous()).status_code == 401
    assert complete(served.anonymous(), Authorization="Bearer nobody").status_code == 401
    assert served.anonymous().get("/user", headers={"Authorization": bearer}).status_code == 401


def test_without_the_feature_flag_there_is_no_completion(serve: Callable[..., Served]) -> None:
    served = serve(choices=Choices(completions_offered=False))
    assert complete(served.acting_as("developer")).status_code == 404


@pytest.mark.parametrize("window", Window)
def test_the_sixty_first_request_of_a_user_within_a_minute_is_refused(
    serve: Callable[..., Served], window: Window
) -> None:
    served = serve(choices=Choices(completion_window=window))
    clock = ManualClock()
    served.service.clock = clock
    developer = served.acting_as("developer")
    clock.passed += 30
    assert complete(developer, {"current_file": 1}).status_code == 400
    assert {complete(developer).status_code for _ in range(60)} == {200}
    refused = complete(developer)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert complete(served.acting_as("reporter")).status_code == 200
    clock.passed += 29.9
    assert complete(developer).status_code == 429
    clock.passed += 0.1
    assert complete(developer).status_code == (200 if window is Window.FIXED else 429)
    clock.passed += 30
    assert complete(developer).status_code == 200


def test_by_choice_malformed_requests_count(serve: Callable[..., Served]) -> None:
    developer = serve(choices=Choices(malformed_completions_count=True)).acting_as("developer")
    codes = [complete(developer, {"current_file": 1}).status_code for _ in range(61)]
    assert codes == [400] * 60 + [429]


def test_the_check_distinguishes_enabled_disabled_and_unknown_projects(served: Served) -> None:
    world, client = served.service.world, served.acting_as("maintainer")
    codes = {
        name: check(client, world.one(f"{name}_project").path).status_code
        for name in ("enabled", "group_enabled", "subgroup", "disabled", "fuzz", "outsider")
    }
    assert codes == {
        "enabled": 200,
        "group_enabled": 200,
        "subgroup": 200,
        "disabled": 403,
        "fuzz": 403,
        "outsider": 404,
    }
    for path in ("", "no-such/project", "1", "world-1-group", "world-1-group/project/", " "):
        assert check(client, path).status_code == 404, path


def test_the_codes_of_the_check_are_stated_and_not_a_choice(serve: Callable[..., Served]) -> None:
    served = serve(choices=Choices(missing_code=410, forbidden_code=404, invalid_code=422))
    client = served.acting_as("maintainer")
    assert check(client, served.service.world.one("disabled_project").path).status_code == 403
    assert check(client, "").status_code == check(client, "no-such/project").status_code == 404


@pytest.mark.parametrize("path", [None, {}, [], True])
def test_the_check_needs_a_path_that_is_text(served: Served, path: object) -> None:
    assert check(served.acting_as("maintainer"), path).status_code == 400


def test_the_check_needs_a_caller(served: Served) -> None:
    assert check(served.anonymous(), served.service.world.one("enabled_project").path).status_code == 401
