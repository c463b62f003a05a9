"""What a run changed is put back in the types that a service takes, whatever types it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.reference import EmbeddedServer
from conformance.reference.choices import Choices, Coercion
from conformance.runner.precautions import Precautions
from conformance.target import load_profile
from conformance.target.embedded import prepared_service
from selftest.conftest import VERSION, in_a_test
from selftest.odd_types import flags_are_numbers, flags_are_texts, numbers_are_texts
from selftest.reads import everything_read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service

SETTING = "allow_author_approval"


@pytest.mark.parametrize("are_shown_so", [flags_are_numbers, flags_are_texts, numbers_are_texts])
def test_a_service_that_takes_no_other_type_than_the_stated_one_is_left_as_it_was(
    write_profile: Callable[..., Path], tmp_path: Path, are_shown_so: Callable[[Service], None]
) -> None:
    service = prepared_service(VERSION, Choices(coercion=Coercion.STRICT))
    with EmbeddedServer(service) as server:
        profile = load_profile(write_profile(service, server.base_url))
        before, project = everything_read(profile), f"/projects/{profile.value('project')}"
        scope, settings = f"{project}/job_token_scope", f"{project}/merge_request_approval_setting"
        is_on, is_allowed = before[scope][1]["inbound_enabled"], before[settings][1][SETTING]["value"]
        are_shown_so(service)
        precautions, maintainer = Precautions.of(profile, None, tmp_path, "run"), profile.actors["maintainer"]
        with in_a_test(profile) as test:
            precautions.keep_ledger(test.run, 0)
            assert list(precautions.begin([0], restores=True)) == []
            send = test.run.client.send
            assert send(maintainer, "PATCH", scope, json_body={"enabled": not is_on}).is_success
            assert send(maintainer, "PUT", settings, json_body={SETTING: not is_allowed}).is_success
            assert precautions.put_back() == ()
            precautions.release()
        service.transformers.clear()
        assert everything_read(profile) == before
