"""What a run changed is put back in the types that a service takes, whatever types it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.http.client import Client
from conformance.reference import EmbeddedServer
from conformance.reference.choices import Choices, Coercion
from conformance.runner.precautions import Precautions
from conformance.target import load_profile
from conformance.target.embedded import prepared_service
from selftest.conftest import VERSION, in_a_test
from selftest.odd_types import flags_are_numbers, flags_are_texts, numbers_are_texts, what_is_empty_is_left_out
from selftest.reads import everything_read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.target import Profile

SETTING = "allow_author_approval"
#: A service may refuse that this is on while approvals are retained.
NOT_BOTH = ("selective_code_owner_removals",)


@pytest.mark.parametrize("are_shown_so", [flags_are_numbers, flags_are_texts, numbers_are_texts])
def test_a_service_that_takes_no_other_type_than_the_stated_one_is_left_as_it_was(
    write_profile: Callable[..., Path], tmp_path: Path, are_shown_so: Callable[[Service], None]
) -> None:
    service = prepared_service(VERSION, Choices(coercion=Coercion.STRICT))

    def change(profile: Profile, client: Client, before: dict[str, Any]) -> None:
        project, maintainer = f"/projects/{profile.value('project')}", profile.actors["maintainer"]
        scope, settings = f"{project}/job_token_scope", f"{project}/merge_request_approval_setting"
        is_on, is_allowed = before[scope][1]["inbound_enabled"], before[settings][1][SETTING]["value"]
        assert client.send(maintainer, "PATCH", scope, json_body={"enabled": not is_on}).is_success
        assert client.send(maintainer, "PUT", settings, json_body={SETTING: not is_allowed}).is_success

    must_be_left_as_it_was(service, are_shown_so, change, write_profile, tmp_path)


def test_a_service_that_leaves_out_what_is_empty_is_left_as_it_was(
    write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    """What was left out before, and shows afterwards, was false, zero or empty."""
    service = prepared_service(VERSION, Choices())
    with EmbeddedServer(service) as server:
        profile = load_profile(write_profile(service, server.base_url))
        rules = f"/projects/{profile.value('project')}/approval_rules"
        with Client(profile.client_settings(1)) as client:
            of_nobody = {"name": "needs nobody", "approvals_required": 0, "user_ids": [profile.actors["approver"].id]}
            number = client.send(profile.actors["maintainer"], "POST", rules, json_body=of_nobody).served_object["id"]

    def change(profile: Profile, client: Client, before: dict[str, Any]) -> None:
        project, maintainer = f"/projects/{profile.value('project')}", profile.actors["maintainer"]
        scope, settings = f"{project}/job_token_scope", f"{project}/merge_request_approval_setting"
        shown = before[settings][1]
        free = {name: row["value"] for name, row in shown.items() if isinstance(row, dict) and not row["locked"]}
        turned = {name: not value for name, value in free.items() if name not in NOT_BOTH}
        assert client.send(maintainer, "PATCH", scope, json_body={"enabled": True}).is_success
        assert client.send(maintainer, "PUT", settings, json_body=turned).is_success
        assert client.send(maintainer, "DELETE", f"{rules}/{number}").is_success

    must_be_left_as_it_was(service, what_is_empty_is_left_out, change, write_profile, tmp_path)


def must_be_left_as_it_was(
    service: Service,
    are_shown_so: Callable[[Service], None],
    change: Callable[[Profile, Client, dict[str, Any]], None],
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """Change a service as a run would, put it back, and read all of it before and after."""
    with EmbeddedServer(service) as server:
        profile = load_profile(write_profile(service, server.base_url))
        before = everything_read(profile)
        are_shown_so(service)
        precautions = Precautions.of(profile, None, tmp_path, "run")
        with in_a_test(profile) as test:
            precautions.keep_ledger(test.run, 0)
            assert list(precautions.begin([0], restores=True)) == []
            change(profile, test.run.client, before)
            assert precautions.put_back() == ()
            precautions.release()
        service.transformers.clear()
        assert apart_from_numbers(everything_read(profile)) == apart_from_numbers(before)


def apart_from_numbers(everything: dict[str, Any]) -> dict[str, Any]:
    """Leave out the numbers of rules: a rule that was deleted comes back with another one."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            is_rule = "approvals_required" in value
            return {name: without(inner) for name, inner in value.items() if not (is_rule and name == "id")}
        return [without(inner) for inner in value] if isinstance(value, list) else value

    return {path: without(list(read)) for path, read in everything.items()}
