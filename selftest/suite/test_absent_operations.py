"""Half a service: a missing operation fails only the requirement that it exists; existing operations are judged."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode
from conformance.proof.foreign.registry import instead
from conformance.proof.tampering import afterwards
from conformance.proof.written.approval_rules import others_of, stored
from conformance.proof.written.group_approval_rules import group_rules
from conformance.reference import Choices, EmbeddedServer, Service
from conformance.reference.errors import ApiError, ForbiddenError, NoRouteError, WrongMethodError
from conformance.reference.http import Response, no_content
from conformance.reference.identity import Group, Role
from conformance.results.reading import read_record
from conformance.target.embedded import prepared_service, profile_data, profile_of
from selftest.conftest import lacking
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from conformance.reference.http import Request
    from conformance.reference.routing import Route

    Judge = Callable[..., tuple[int, str, Mapping[str, Any]]]

pytestmark = pytest.mark.usefixtures("inside_this_process")

SCOPE = "/projects/:id/job_token_scope"
REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
RULE = "/:approval_rule_id"
SETTING = "/merge_request_approval_setting"
LACKING = {
    NoRouteError: {
        f"GET {SCOPE}": "job-token-scope.settings.read",
        "POST /code_suggestions/enabled": "code-completion.enabled.is-on",
        "GET /groups/:id/approval_rules": "group-approval-rules.list",
        f"GET /projects/:id/approval_rules{RULE}": "project-approval-rules.read",
        f"GET {REQUEST}/approvals": "merge-request-approvals.status.read",
        f"PUT /projects/:id{SETTING}": "approval-settings.project.update",
        "GET /groups/:id/export_relations/status": "group-relations-export.status.list",
        "DELETE /projects/:id/integrations/:slug": "integrations.disable.accepted",
        f"DELETE /projects/:id/approval_rules{RULE}": "project-approval-rules.delete.succeeds",
    },
    WrongMethodError: {
        f"DELETE {SCOPE}/allowlist/:target_project_id": "job-token-scope.allowlist.remove.no-content",
        "POST /code_suggestions/completions": "code-completion.completion.answered",
        f"PUT /groups/:id/approval_rules{RULE}": "group-approval-rules.update.answers-with-rule",
        "POST /projects/:id/approval_rules": "project-approval-rules.create.answers-with-rule",
        f"POST {REQUEST}/unapprove": "merge-request-approvals.unapprove.answer",
        f"GET /groups/:id{SETTING}": "approval-settings.group.read",
        "POST /groups/:id/export_relations": "group-relations-export.schedule.accepted",
        f"PUT {REQUEST}/reset_approvals": "merge-request-approvals.reset.answer",
        f"GET {SCOPE}/groups_allowlist": "job-token-scope.groups-allowlist.list",
        "PUT /projects/:id/services/:slug": "integrations.alias.set-up",
    },
}
PAGE = Response(404, raw=b"<!DOCTYPE html><pre>Cannot find this</pre>", media_type="text/html")
#: Generated calls behave the same on a service that lacks something.
_DRAWS = ("--", "-k", "not model and not test_fuzz")


class NotImplementedHereError(ApiError):
    """The answer of a server that knows a path but has not implemented it."""

    def status(self, _: Choices) -> int:
        return HTTPStatus.NOT_IMPLEMENTED


@pytest.fixture
def judged(conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path) -> Judge:
    """Run the suite on a service, and return exit code, output and the verdict of each requirement."""

    def run(service: Service, *arguments: str, **profile: Any) -> tuple[int, str, Mapping[str, Any]]:
        with EmbeddedServer(service) as server:
            # The suite waits for missing operations until the deadline, once.
            write_profile(service, server.base_url, limits={"timeout_seconds": 5, "deadline_seconds": 2}, **profile)
            options = ("--target", "target.yaml", "--out", "out", "--corpus", "none", "--seed", "1")
            outcome = conformance("run", *options, *arguments)
        return outcome.code, outcome.text, rows_of(tmp_path / "out")

    return run


@pytest.mark.parametrize("error", LACKING, ids=lambda error: error.__name__)
def test_for_each_missing_operation_one_requirement_fails(error: Any, judged: Judge) -> None:
    lack = LACKING[error]
    service = lacking(lack, error if error is NoRouteError else partial(error, ()), prepared_service(version="17.7"))
    code, text, rows = judged(service, *_DRAWS)
    failed = {name for name, row in rows.items() if row["verdict"] in ("failed", "unstable")}
    assert failed == set(lack.values()), text[-3000:]
    assert code == 1
    open_ = {row["reason"] for row in rows.values() if row["verdict"] in ("inconclusive", "not tested")}
    unseen = precondition_not_met(rows)
    assert len(unseen) <= 3, unseen  # scenarios that need a missing operation, or a state that could not be restored
    assert open_ - {"precondition not met"} <= {"operation absent", "switched off by the operator", "not reached"}
    assert f"not there: {len(lack)} operations (" in " ".join(text.split())
    for failure in (rows[name]["failures"][0] for name in failed):
        shown = failure["evidence"][-1]["request"].partition("/api/v4")[2].partition("?")[0]
        assert f" at {shown}" in failure["actual"], "the command to copy shows what the text says"
    assert rows["conventions.path-prefix"]["verdict"] == "passed"
    if "POST /groups/:id/export_relations" in lack:
        assert "the export of relations that was scheduled" not in text, "a refused call leaves nothing behind"


def test_a_missing_write_fails_its_requirement_if_workers_run_the_tests(judged: Judge) -> None:
    """If only writes are missing, nothing is known before the tests: a worker finds it, and has to say so."""
    key = f"DELETE {SCOPE}/allowlist/:target_project_id"
    service = lacking([key], partial(WrongMethodError, ()), prepared_service(version="17.7", worlds=2))
    worlds = profile_of(service, "http://127.0.0.1", "17.7")["worlds"]
    code, text, rows = judged(service, "--workers", "2", "--area", "job-token-scope", *_DRAWS, worlds=worlds)
    assert {name for name, row in rows.items() if row["verdict"] == "failed"} == {LACKING[WrongMethodError][key]}, text
    assert code == 1
    assert "not there: 1 operation" in text


def test_a_page_by_which_a_service_forbids_one_call_is_a_failure(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    key = f"PATCH {SCOPE}"

    def forbidden(route: Route, _: Request, response: Response) -> Response:
        return replace(PAGE, status=403) if route.key == key and response.status != 404 else response

    service.transformers.append(forbidden)
    code, text, _ = judged(service, "--requirement", "job-token-scope.switch.no-content")
    assert code == ExitCode.NON_CONFORMANT, text


@pytest.mark.parametrize("methods", [("DELETE", "PUT"), ("PATCH",)], ids=" ".join)
def test_methods_that_a_gateway_bars_are_no_failures_of_the_service(judged: Judge, methods: tuple[str, ...]) -> None:
    """As a firewall does that only lets GET and POST through; nothing could be put back."""
    service = prepared_service(version="17.7")

    def barred(route: Route, _: Request, response: Response) -> Response:
        return replace(PAGE, status=403) if route.method in methods else response

    service.transformers.append(barred)
    code, text, rows = judged(service, "--area", "job-token-scope", "--area", "project-approval-rules")
    assert code == ExitCode.COULD_NOT_RUN, text
    assert f"forbids each {' and '.join(methods)} by an HTML page" in " ".join(text.split())
    assert {row["verdict"] for row in rows.values()} <= {"not tested", "not applicable"}


def test_an_area_whose_paths_answer_with_pages_is_absent_and_asks_nothing_of_the_profile(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    """As many frameworks answer where no handler was written yet; no fixture can be made for what is not there."""
    service = prepared_service(version="17.7")

    def page(route: Route, _: Request, response: Response) -> Response:
        is_absent = "export_relations" in route.key or "/integrations" in route.key or "/services" in route.key
        return PAGE if is_absent else response

    service.transformers.append(page)
    with EmbeddedServer(service) as server:
        fixtures = profile_data(service.world, server.base_url, "17.7")["fixtures"]
        named = {name: value for name, value in fixtures.items() if "integration" not in name}
        write_profile(service, server.base_url, fixtures=named)
        areas = ("--area", "group-relations-export", "--area", "integrations", "--area", "job-token-scope")
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", "--seed", "1", *areas, *_DRAWS)
    rows = {name: row for name, row in rows_of(tmp_path / "out").items() if row["selected"]}
    failed = {name: row["failures"] for name, row in rows.items() if row["verdict"] == "failed"}
    assert failed.keys() == {
        "group-relations-export.schedule.accepted",
        "group-relations-export.status.list",
        "integrations.list.read",
        "integrations.alias.list",
    }, outcome.text[-3000:]
    shown = [one["curl"] for failures in failed.values() for failure in failures for one in failure["evidence"]]
    assert shown
    assert all("/api/v4/" in curl for curl in shown)
    reasons = {row["reason"] for row in rows.values() if row["area"] == "integrations"}
    assert "prerequisite missing" not in reasons
    assert "Add to the profile" not in outcome.text


def test_an_integration_that_the_target_does_not_know_is_an_error_in_the_profile(judged: Judge) -> None:
    """The operation exists: it knows another integration of the profile."""
    service = prepared_service(version="17.7")

    @instead(service.integrations, "kind")
    def _(kind: Any, slug: str) -> Any:
        return kind("no-such" if slug == "slack" else slug)

    wanted = ("integrations.set-up.accepted", "integrations.alias.set-up")
    code, text, rows = judged(service, *(word for name in wanted for word in ("--requirement", name)))
    assert code == 6, text[-3000:]
    for name in wanted:
        assert rows[name]["verdict"] == "not tested"
        assert "not slack, which the profile has under integrations" in str(rows[name])


def test_generated_calls_of_an_unimplemented_operation_cause_no_more_failures(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    lacking(
        {route.key for route in service.routes if "/export_relations" in route.path}, NotImplementedHereError, service
    )
    _, text, rows = judged(service, "--area", "group-relations-export")
    failed = {name for name, row in rows.items() if row["verdict"] in ("failed", "unstable")}
    assert failed == {
        "group-relations-export.schedule.accepted",
        "group-relations-export.status.list",
    }, text[-3000:]
    assert "not reached" not in {row["reason"] for row in rows.values() if row["selected"]}


def test_a_missing_operation_is_found_although_bearer_tokens_are_refused(judged: Judge) -> None:
    service = prepared_service(version="17.7", choices=Choices(bearer_everywhere=False))
    lacking({route.key for route in service.routes if "/groups_allowlist" in route.key}, NoRouteError, service)
    _, text, rows = judged(service, "--area", "job-token-scope", *_DRAWS)
    assert {name for name, row in rows.items() if row["verdict"] == "failed"} == {
        "job-token-scope.groups-allowlist.list",
        "job-token-scope.groups-allowlist.add.created",
        "job-token-scope.groups-allowlist.remove.no-content",
    }, text[-3000:]
    assert precondition_not_met(rows) == []
    assert "the target does not have GET /projects/{id}/job_token_scope/groups_allowlist" in " ".join(text.split())


def test_a_wrong_status_fails_even_if_a_broken_removal_shows_it_only_once(judged: Judge, tmp_path: Path) -> None:
    service = prepared_service(version="17.7")
    service.routes.change(f"DELETE {SCOPE}/allowlist/:target_project_id", handler=lambda _: no_content())
    service.transformers.append(_added_with_200)
    _, text, rows = judged(service, "--area", "job-token-scope", *_DRAWS)
    failed = {name for name, row in rows.items() if row["verdict"] == "failed"}
    assert {"job-token-scope.allowlist.add.created", "job-token-scope.allowlist.remove.gone"} <= failed, text[-3000:]
    assert "was served for (job-token-scope.allowlist.remove.gone)" in " ".join(text.split())
    waiting = [check for check in read_record(tmp_path / "out" / "results.jsonl").checks if check.waits_for]
    assert {check.waits_for for check in waiting} == {"job-token-scope.allowlist.remove.gone"}


def test_faults_of_two_operations_are_found_if_all_others_are_missing(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    own = {f"GET {SCOPE}", f"PATCH {SCOPE}"}
    others = {route.key for route in service.routes if "job_token" in route.key or "approv" in route.key} - own
    lacking({*others}, NoRouteError, service)
    _break(service)
    code, text, rows = judged(service, "--area", "job-token-scope")
    assert code == 1
    failed = {name for name, row in rows.items() if row["verdict"] == "failed"}
    absent = {name for name in failed if rows[name]["failures"][0]["actual"].startswith("none: ")}
    assert len(absent) == 6
    assert failed - absent == {
        "job-token-scope.switch.enabled-is-required",
        "job-token-scope.switch.off",
        "job-token-scope.authorization.switching-below-maintainer",
    }, text[-3000:]


def test_in_a_service_of_one_area_three_faults_fail_and_the_rest_is_verified(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    lacking(
        {route.key for route in service.routes if SCOPE not in route.key and "/:" in route.key}, NoRouteError, service
    )
    _break(service)
    code, text, rows = judged(service, "--area", "job-token-scope", "--force")
    assert code == 1
    assert {name for name, row in rows.items() if row["verdict"] == "failed"} == {
        "job-token-scope.switch.enabled-is-required",
        "job-token-scope.switch.off",
        "job-token-scope.authorization.switching-below-maintainer",
    }, text[-3000:]
    assert "by 2 causes" not in text
    of_area = [row for row in rows.values() if row["area"] == "job-token-scope" and row["level"] == "must"]
    # If the limit is never switched off, nobody can be shown that it is off.
    open_ = {row["id"] for row in of_area if row["verdict"] in ("inconclusive", "not tested")}
    assert open_ == {"job-token-scope.switch.shows-to-everybody"}, text[-3000:]


def test_a_service_that_only_completes_code_is_conformant_in_its_scope(judged: Judge) -> None:
    """It serves nothing else, so that no project is found by its number, and no world can be read."""
    service = prepared_service(version="17.7")
    lacking({route.key for route in service.routes if "code_suggestions" not in route.key}, NoRouteError, service)
    code, text, rows = judged(service, "--max-examples", "5", scope=["code-completion"])
    assert code == 0, text[-3000:]
    assert rows["conventions.project-id.number"]["verdict"] == "not applicable"
    assert rows["authentication.unknown-token-is-refused"]["verdict"] == "passed"


def test_if_a_group_is_locked_another_group_is_used(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    _lock(service, "group")
    _, text, rows = judged(service, "--area", "approval-settings", *_DRAWS)
    owed = {name: row for name, row in rows.items() if row["level"] == "must"}
    assert precondition_not_met(owed) == [], text[-3000:]
    assert owed["approval-settings.group.update.allow-author-approval.is-boolean"]["verdict"] == "passed"


def test_rules_that_are_never_listed_do_not_make_for_ever_more(judged: Judge) -> None:
    """Nothing removes the rules of a group, and a run that waits for them to show must end."""
    service = prepared_service(version="17.7")
    made: list[int] = []

    def third_is_lost(rule: Any, *_: Any) -> None:
        made.append(rule.id)
        if len(list(others_of(service, rule))) > 1:
            del stored(service)[rule.id]

    afterwards(group_rules(service), "create_rule", third_is_lost)
    _, text, rows = judged(service, "--requirement", "group-approval-rules.pages", *_DRAWS)
    assert rows["group-approval-rules.pages"]["reason"] == "precondition not met", text[-3000:]
    assert 2 < len(made) < 20


def test_a_setting_that_is_locked_everywhere_opens_nothing_but_what_is_about_it(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    settings, fixed = service.approval_settings, "selective_code_owner_removals"
    present, change = settings.present, settings.change

    def locked(subject: Any, setting: Any) -> Any:
        return {**present(subject, setting), **({"locked": True} if setting.value == fixed else {})}

    def unless_locked(subject: Any, wanted: Any) -> None:
        change(subject, {setting: value for setting, value in wanted.items() if setting.value != fixed})

    settings.present, settings.change = locked, unless_locked  # type: ignore[method-assign]
    _, text, rows = judged(service, "--area", "approval-settings", *_DRAWS)
    opened = precondition_not_met({name: row for name, row in rows.items() if row["level"] == "must"})
    assert opened, text[-3000:]
    assert [one for one in opened if ".selective-code-owner-removals" not in one] == []


def test_a_replacement_fixture_can_verify_a_requirement_and_never_fail_it(judged: Judge) -> None:
    service = prepared_service(version="17.7")
    _lock(service, "group")
    spare = service.world.fixtures["fuzz_group"].id  # type: ignore[union-attr]
    change = service.approval_settings.change

    def refusing(subject: Any, wanted: Any) -> None:
        if isinstance(subject, Group) and subject.id == spare:
            raise ForbiddenError("not here")
        change(subject, wanted)

    service.approval_settings.change = refusing  # type: ignore[method-assign]
    _, text, rows = judged(service, "--area", "approval-settings", *_DRAWS)
    assert [name for name, row in rows.items() if row["verdict"] in ("failed", "unstable")] == [], text[-3000:]
    assert any("tried with what is set aside: expected" in detail for detail in precondition_not_met(rows))


@pytest.mark.parametrize("version", ["17.7", "unknown"])
def test_what_newer_versions_may_lack_is_open_unless_the_profile_declares_it(
    version: str, conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    service = prepared_service(version="17.7")
    lacking({f"{method} /projects/:id/approvals" for method in ("GET", "POST")}, NoRouteError, service)
    with EmbeddedServer(service) as server:
        write_profile(service, server.base_url, version=version)
        options = ("--target", "target.yaml", "--out", "out", "--corpus", "none")
        outcome = conformance("run", *options, "--area", "project-approval-configuration")
    read = rows_of(tmp_path / "out")["project-approval-configuration.read"]
    assert read["verdict"] == "inconclusive"
    assert "`approval_configuration: false`" in read["detail"]
    assert outcome.code == 6, outcome.text[-2000:]


def test_an_unimplemented_operation_fails_once_and_does_not_affect_others(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    """The profile is minimal, too: it names no version, and one integration where some tests need several."""
    service = prepared_service(version="17.7")
    older = {route.key for route in service.routes if "/services" in route.path}
    settings = {f"{method} /{kind}/:id{SETTING}" for method in ("GET", "PUT") for kind in ("groups", "projects")}
    lacking({*older, *settings}, NotImplementedHereError, service)
    with EmbeddedServer(service) as server:
        data = profile_data(service.world, server.base_url, "17.7")
        fixtures = {name: value for name, value in data["fixtures"].items() if not name.endswith("integration")}
        fixtures["integrations"] = fixtures["integrations"][:1]
        write_profile(service, server.base_url, version="unknown", fixtures=fixtures)
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", "--corpus", "none", *_DRAWS)
    rows = rows_of(tmp_path / "out")
    assert outcome.code == 1, outcome.text[-3000:]
    assert {name for name, row in rows.items() if row["verdict"] in ("failed", "unstable")} == {
        "approval-settings.group.read",
        "approval-settings.group.update",
        "approval-settings.project.read",
        "approval-settings.project.update",
        "integrations.alias.disable",
        "integrations.alias.list",
        "integrations.alias.read",
        "integrations.alias.set-up",
    }
    for name in (
        "integrations.entry.event-flags",
        "integrations.authorization.reading-below-maintainer",
        "group-approval-rules.authorization.listing-below-administrator",
        "merge-request-approvals.reset.others-get-401",
        "authentication.unknown-token-is-refused",
        "conventions.project-id.encoded-subgroup-path",
    ):
        assert rows[name]["verdict"] == "passed", (name, rows[name]["reason"], rows[name]["detail"])


def _lock(service: Service, name: str) -> None:
    """Lock all approval settings of a group, as an administrator of the installation does."""
    number, settings = service.world.fixtures[name].id, service.approval_settings  # type: ignore[union-attr]
    present, change = settings.present, settings.change

    def is_meant(subject: Any) -> bool:
        return isinstance(subject, Group) and subject.id == number

    def locked(subject: Any, setting: Any) -> Any:
        lock = {"locked": True, "inherited_from": "instance"} if is_meant(subject) else {}
        return {**present(subject, setting), **lock}

    def unless_locked(subject: Any, wanted: Any) -> None:
        if not is_meant(subject):
            change(subject, wanted)

    settings.present, settings.change = locked, unless_locked  # type: ignore[method-assign]


def precondition_not_met(rows: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {row['detail']}" for name, row in rows.items() if row["reason"] == "precondition not met"]


def _break(service: Service) -> None:
    """Make PATCH accept a missing value, ignore that the limit is switched off, and accept a developer."""
    limit = service.job_token_scope.limit_inbound

    def only_on(project: Any, *, enabled: bool) -> None:
        if enabled:
            limit(project, enabled=True)

    service.job_token_scope.limit_inbound = only_on  # type: ignore[method-assign]
    service.routes.change(f"PATCH {SCOPE}", least_role=Role.DEVELOPER)
    service.transformers.append(_content_with_nothing)


def _content_with_nothing(_: Route, request: Request, response: Response) -> Response:
    return no_content() if request.method == "PATCH" and request.body == b"{}" and response.status == 400 else response


def _added_with_200(route: Route, _: Request, response: Response) -> Response:
    is_added = route.key == f"POST {SCOPE}/allowlist" and response.status == HTTPStatus.CREATED
    return replace(response, status=HTTPStatus.OK) if is_added else response


def test_what_was_accepted_and_not_stored_is_no_sign_of_absent_operations(judged: Judge) -> None:
    """The reads and updates answer 404 because nothing is there: only the creation is wrong."""
    service = prepared_service(version="17.7")

    def forgets(route: Route, _: Request, response: Response) -> Response:
        if route.key == "POST /projects/:id/approval_rules" and response.status < 400:
            del stored(service)[response.content["id"]]  # type: ignore[index] # one rule
        return response

    service.transformers.append(forgets)
    read, updated, created = (
        f"project-approval-rules.{name}" for name in ("read", "update.answers-with-rule", "create.listed")
    )
    wanted = (word for name in (read, updated, created) for word in ("--requirement", name))
    _, text, rows = judged(service, *wanted, *_DRAWS)
    assert "not there" not in text
    assert [rows[name]["verdict"] for name in (read, updated, created)] == ["inconclusive", "inconclusive", "failed"]


def test_what_may_stand_on_a_later_page_of_its_list_is_not_taken_for_lost(judged: Judge) -> None:
    """The read of a rule that exists answers 404: the first page of a list says nothing about the others."""
    service = prepared_service(version="17.7", choices=Choices(max_per_page=1))

    def finds_only_the_first(route: Route, request: Request, response: Response) -> Response:
        is_read = route.key == "GET /projects/:id/approval_rules/:approval_rule_id" and response.status == 200
        return Response(404) if is_read and request.path_id("approval_rule_id") != min(stored(service)) else response

    service.transformers.append(finds_only_the_first)
    _, text, rows = judged(service, "--requirement", "project-approval-rules.read", *_DRAWS)
    assert rows["project-approval-rules.read"]["verdict"] == "failed", text


def test_tokens_that_may_only_read_are_an_error_in_the_profile(judged: Judge) -> None:
    """Otherwise a run blames the service for refusing every write of its maintainers and owners."""
    service = prepared_service(version="17.7")
    body = {"error": "insufficient_scope", "error_description": "Higher privileges are needed.", "scope": "api"}

    def refuses(route: Route, _: Request, response: Response) -> Response:
        return response if route.method == "GET" else Response(403, body, has_content=True)

    service.transformers.append(refuses)
    code, text, rows = judged(service, "--area", "job-token-scope")
    assert code == ExitCode.COULD_NOT_RUN, text
    assert "Each write by maintainer is refused for the scope of the token" in " ".join(text.split())
    assert {row["verdict"] for row in rows.values()} <= {"not tested", "not applicable"}
