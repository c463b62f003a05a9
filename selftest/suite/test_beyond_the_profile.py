"""What exists beside the fixtures of a profile, or is named after what surrounds it, is no violation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.proof.tampering import altering
from conformance.proof.variants.running import WITHOUT_DRAWN, VariantRun, run_each
from conformance.reference.identity import NewSubject

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

GROUP_LIST = "GET /projects/:id/job_token_scope/groups_allowlist"


def has_a_project_of_the_same_name_at_the_top(service: Service) -> None:
    """Create a project whose path is that of a deeper one without the groups in between."""
    deep, found = service.world.one("inner_project"), service.identities
    _, _, last = str(deep.path).rpartition("/")
    top = found.find_group(str(service.world.one("group").path))
    found.create_project(NewSubject(path=last, name="Another one", within=top))


def names_groups_after_what_is_around_them(service: Service) -> None:
    """Let the entry of a group inside another one begin with the name of that one."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        for entry in content:
            if "/" in service.identities.groups[entry["id"]].full_path:
                entry["name"] = f"Around / {entry['name']}"

    altering(service, GROUP_LIST, alter)


@pytest.mark.usefixtures("inside_this_process")
@pytest.mark.parametrize(
    ("alteration", "requirement"),
    [
        (has_a_project_of_the_same_name_at_the_top, "code-completion.enabled.unknown-project"),
        (names_groups_after_what_is_around_them, "job-token-scope.group-entry.describes-target"),
    ],
    ids=["a-project-at-the-top", "names-of-surrounding-groups"],
)
def test_what_a_profile_does_not_mention_raises_no_alarm(
    alteration: Callable[[Service], None], requirement: str
) -> None:
    run = VariantRun("beyond the profile", "17.7", alterations=(alteration,))
    (found,) = run_each([run], *WITHOUT_DRAWN, f"--requirement={requirement}")
    assert (found.alarms, found.broken) == ((), ())
    assert found.verified > 0
