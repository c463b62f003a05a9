"""A target that differs from the reference wherever the text allows it is conformant, and not only without failures."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from conformance.reference import Choices, EmbeddedServer, Service
from conformance.reference.areas.approval_rule_records import home_of
from conformance.reference.areas.approval_rules import ApprovalRules
from conformance.reference.areas.approval_settings import ApprovalSettings
from conformance.reference.http import Response, no_content
from conformance.reference.identity import Project
from conformance.target.embedded import prepared_service, profile_data
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from conformance.reference.areas.approval_settings import Setting
    from conformance.reference.http import Request
    from conformance.reference.identity import Subject
    from conformance.reference.routing import Route

pytestmark = pytest.mark.usefixtures("inside_this_process")

VERSION = "17.7"
NOBODYS = re.compile(rb"/2000000001(?![^/?])")
NO_CHOICE = "code-completion.choice.fields"
ONE_RULE = "PUT /projects/:id/approval_rules/:approval_rule_id"

LACKING = ("issue_tracker_integration", "code_owner_merge_request", "branch_rule_group")
#: The parameters that no integration of such a target has.
NOBODY_TAKES = ("notify_only_default_branch", "incidents_events")
#: What the profile of such a target says in addition to that of the reference.
FEATURES = {
    "approval_configuration": False,
    "code_owner_rules": False,
    "completions_without_choices": True,
    "group_branch_rules": False,
    "incident_events": False,
    "issue_tracker_integration": False,
    "partial_rule_updates": True,
}


def unlike_the_reference() -> Service:
    """Serve what is legal but unusual: where two readings are possible, not the one of the reference."""
    service = prepared_service(
        version=VERSION, choices=Choices(configuration_read_from_16_0=False, completion_alternatives=0)
    )
    for key in ("GET {}", "POST {}", "PUT {}/:approval_rule_id"):
        service.routes.change(key.format("/groups/:id/approval_rules"), admin_only=True)
    service.routes.change(ONE_RULE, handler=_keeping_what_is_not_sent(service.routes.get(ONE_RULE).handler))
    service.transformers += [_deletes_nothing_gladly, _names_no_file]
    return service


def _keeping_what_is_not_sent(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def update(request: Request) -> Response:
        home, number = home_of(request.project), request.path_id("approval_rule_id")
        rule = request.area(ApprovalRules).find(home, number)
        sent = json.loads(request.body)
        kept = {"name": rule.name, "approvals_required": rule.approvals_required}
        request.body = json.dumps({**kept, **sent} if isinstance(sent, dict) else sent).encode()
        return handler(request)

    return update


def _deletes_nothing_gladly(_: Route, request: Request, response: Response) -> Response:
    below_nothing = request.method == "DELETE" and response.status == 404 and NOBODYS.search(request.raw_path)
    return no_content() if below_nothing else response


def _names_no_file(_: Route, __: Request, response: Response) -> Response:
    response.headers.pop("content-disposition", None)
    return response


def profile_of(service: Service, base_url: str) -> dict[str, Any]:
    """Describe the target, which lacks everything that a service need not have."""
    data = profile_data(service.world, base_url, VERSION)
    fixtures = {name: value for name, value in data["fixtures"].items() if name not in LACKING}
    for integration in fixtures["integrations"]:
        for kind in ("parameters", "events"):
            integration[kind] = [name for name in integration[kind] if name not in NOBODY_TAKES]
    return {**data, "fixtures": fixtures, "features": {**data["features"], **FEATURES}}


def test_a_target_that_differs_wherever_the_text_allows_it_is_conformant(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    service = unlike_the_reference()
    with EmbeddedServer(service) as server:
        described = profile_of(service, server.base_url)
        write_profile(service, server.base_url, fixtures=described["fixtures"], features=described["features"])
        few = ("--max-examples", "1", "--corpus", "none")
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", *few)
    rows = rows_of(tmp_path / "out")
    unverified = {
        name: (row["verdict"], row["detail"], row["failures"][:1])
        for name, row in rows.items()
        if row["verdict"] in ("failed", "inconclusive", "not tested") and row["level"] == "must"
    }
    assert unverified == {}
    assert outcome.code == 0, outcome.text[-2000:]
    for parameter in ("name", "approvals-required"):
        eased = rows[f"project-approval-rules.update.{parameter}-is-required"]
        assert (eased["verdict"], eased["level"]) == ("failed", "should")
    assert (rows[NO_CHOICE]["verdict"], rows[NO_CHOICE]["level"]) == ("inconclusive", "should")
    for name in (
        "project-approval-configuration.record.settings",
        "integrations.parameters.issue-tracker-urls.required-together",
        "group-relations-export.download.file-name",
    ):
        assert rows[name]["verdict"] == "not applicable", rows[name]


def _locking_all_of_projects(service: Service) -> None:
    """Lock the settings of projects, as an instance may; those of groups stay free."""
    settings, present, change = service.approval_settings, service.approval_settings.present, ApprovalSettings.change

    def shown(subject: Subject, setting: Setting) -> dict[str, object]:
        locked = {"locked": True, "inherited_from": "instance"} if isinstance(subject, Project) else {}
        return {**present(subject, setting), **locked}

    def changed(subject: Subject, wanted: Mapping[Setting, bool]) -> None:
        change(settings, subject, {} if isinstance(subject, Project) else wanted)

    settings.present, settings.change = shown, changed  # type: ignore[method-assign]


def test_locked_settings_of_projects_open_nothing_about_groups(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    service = prepared_service(version=VERSION)
    _locking_all_of_projects(service)
    with EmbeddedServer(service) as server:
        write_profile(service, server.base_url)
        few = ("--area", "approval-settings", "--max-examples", "1", "--corpus", "none")
        conformance("run", "--target", "target.yaml", "--out", "out", *few)
    rows = rows_of(tmp_path / "out")
    unverified = [
        name
        for name, row in rows.items()
        if name.startswith("approval-settings.group.") and row["verdict"] in ("failed", "inconclusive", "not tested")
    ]
    assert unverified == []
