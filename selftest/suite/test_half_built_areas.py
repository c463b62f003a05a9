"""What a half-built service lacks fails where it is stated, and nowhere else."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from conformance.proof.tampering import bodies
from conformance.proof.written.group_approval_rules import rule_of_another_group_is_changed
from conformance.proof.written.project_approval_rules_in_steps import any_text_changes_a_rule_and_is_refused
from conformance.reference import EmbeddedServer
from conformance.reference.errors import ForbiddenError, InvalidError, NotFoundError
from conformance.reference.http import Response, no_content, ok
from conformance.target.embedded import prepared_service
from selftest.odd_types import (
    empty_lists_are_null,
    flags_are_numbers,
    flags_are_texts,
    ids_are_texts,
    lists_are_numbered_records,
    numbers_are_texts,
)
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Handler, Request
    from conformance.reference.routing import Route

    Judge = Callable[..., Mapping[str, str]]

pytestmark = pytest.mark.usefixtures("inside_this_process")

ALLOWLIST = "GET /projects/:id/job_token_scope/allowlist"
RULES = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"
SUBGROUP = "conventions.project-id.encoded-subgroup-path"
ADDED = "job-token-scope.allowlist.add.present"
OF_ADDITIONS = (
    "job-token-scope.allowlist.add.created",
    "job-token-scope.authorization.maintainer-is-served",
    "errors.addition-to-allowlist",
    "conventions.requests.are-json",
)


def the_list_is_empty(service: Service) -> None:
    service.transformers.append(lambda route, _, response: ok([]) if route.key == ALLOWLIST else response)


def entries_have_no_id(service: Service) -> None:
    def without(route: Route, _: Request, response: Response) -> Response:
        if route.key != ALLOWLIST or not isinstance(response.content, list):
            return response
        entries = [{name: value for name, value in entry.items() if name != "id"} for entry in response.content]
        return ok(entries)

    service.transformers.append(without)


def the_limit_is_not_switched(service: Service) -> None:
    service.routes.change("PATCH /projects/:id/job_token_scope", handler=lambda _: no_content())


def rules_are_not_deleted(service: Service) -> None:
    service.routes.change(f"DELETE {RULES}/:approval_rule_id", handler=lambda _: no_content())


def the_list_shows_its_first_rule(service: Service) -> None:
    def first(route: Route, _: Request, response: Response) -> Response:
        shown = response.content
        return ok(shown[:1]) if route.key == f"GET {RULES}" and isinstance(shown, list) else response

    service.transformers.append(first)


def nothing_is_set_up(service: Service) -> None:
    for route in [route for route in service.routes if route.method == "PUT" and route.path.endswith("/:slug")]:
        service.routes.change(route.key, handler=lambda _: ok({}))


def refused(_: Request) -> Response:
    raise ForbiddenError("not yet")


def unknown(_: Request) -> Response:
    raise NotFoundError("nothing here")


def nobody_creates_rules(service: Service) -> None:
    service.routes.change(f"POST {RULES}", handler=refused)


def no_rule_is_read(service: Service) -> None:
    for name in ("", "/:approval_rule_id"):
        service.routes.change(f"GET /projects/:id/approval_rules{name}", handler=unknown)


def numbers_of_rules_stay(service: Service) -> None:
    key = "PUT /projects/:id/approval_rules/:approval_rule_id"
    bodies(service, key, lambda body: {**body, "approvals_required": 2} if "approvals_required" in body else body)


def nobody_completes(service: Service) -> None:
    service.routes.change("POST /code_suggestions/completions", handler=refused)


def nobody_exports(service: Service) -> None:
    service.routes.change("POST /groups/:id/export_relations", handler=refused)


def nothing_is_changed_by_a_path(service: Service) -> None:
    def only_by_number(handler: Handler) -> Handler:
        return lambda request: unknown(request) if b"%2F" in request.raw_path else handler(request)

    for route in [route for route in service.routes if route.path.endswith(":slug") and route.method != "GET"]:
        service.routes.change(route.key, handler=only_by_number(route.handler))


def the_state_has_no_rules(service: Service) -> None:
    def emptied(route: Route, _: Request, response: Response) -> Response:
        shown, is_state = response.content, route.path.endswith("/approval_state")
        return ok({**shown, "rules": []}) if is_state and isinstance(shown, dict) else response

    service.transformers.append(emptied)


def everybody_may_do_everything(service: Service) -> None:
    for route in [route for route in service.routes if "/job_token_scope" in route.path]:
        service.routes.change(route.key, least_role=type(route.least_role).NONE)


def settings_of_groups_are_absent_behind_a_reader_of_bodies(service: Service) -> None:
    """Refuse a body that is no object before looking for the operation, as web frameworks do."""

    def read_first(request: Request) -> Response:
        try:
            is_object = isinstance(json.loads(request.body or b"{}"), dict)
        except ValueError:
            is_object = False
        if not is_object:
            raise InvalidError("body")
        return unknown(request)

    for method in ("GET", "PUT"):
        service.routes.change(f"{method} /groups/:id/merge_request_approval_setting", handler=read_first)


@pytest.fixture
def judged(conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path) -> Judge:
    """Select requirements, run the suite on a service that was altered, and return the verdict of each requirement."""

    def run(alter: Callable[[Service], None], *selected: str) -> Mapping[str, str]:
        service = prepared_service(version="17.7")
        alter(service)
        with EmbeddedServer(service) as server:
            write_profile(service, server.base_url)
            options = ("--target", "target.yaml", "--out", "out", "--corpus", "none", "--seed", "1")
            wanted = (word for name in selected for word in ("--requirement", name))
            conformance("run", *options, "--max-examples", "1", *wanted)
        return {name: row["verdict"] for name, row in rows_of(tmp_path / "out").items()}

    return run


@pytest.mark.parametrize(
    ("is_so", "stated", "not_blamed"),
    [
        (the_list_is_empty, ADDED, OF_ADDITIONS),
        (entries_have_no_id, ADDED, OF_ADDITIONS),
        (the_limit_is_not_switched, "job-token-scope.switch.off", (SUBGROUP,)),
        (rules_are_not_deleted, "merge-request-approvals.rules.delete.gone", (SUBGROUP,)),
        (the_list_shows_its_first_rule, "merge-request-approvals.rules.create.listed", (SUBGROUP,)),
        (
            nothing_is_set_up,
            "integrations.set-up.listed",
            ("integrations.disable.accepted", "integrations.single.read"),
        ),
        (
            nobody_creates_rules,
            "merge-request-approvals.rules.create.answer",
            ("merge-request-approvals.rules.create.users", "merge-request-approvals.rules.create.groups"),
        ),
        (
            no_rule_is_read,
            "project-approval-rules.read",
            ("project-approval-rules.create.user-ids", "project-approval-rules.create.usernames"),
        ),
        (
            numbers_of_rules_stay,
            "project-approval-rules.update.stored",
            (
                "project-approval-rules.update.protected-branches-are-a-list",
                "project-approval-rules.update.approvers-are-lists",
                "project-approval-rules.update.usernames-are-a-list",
            ),
        ),
        (
            nobody_completes,
            "code-completion.completion.answered",
            ("authentication.bearer-on-completions", "authentication.private-token-on-completions"),
        ),
        (
            nobody_exports,
            "group-relations-export.schedule.accepted",
            (
                "group-relations-export.schedule.batched.may-be-true",
                "group-relations-export.download.answered",
                "errors.scheduled-export",
            ),
        ),
        (
            nothing_is_changed_by_a_path,
            "conventions.project-id.encoded-path",
            (
                "integrations.parameters.channel.text",
                "integrations.parameters.event-flags.boolean",
                "integrations.disable.settings-stay-reset",
                "integrations.alias.disable-shows",
            ),
        ),
        (
            settings_of_groups_are_absent_behind_a_reader_of_bodies,
            "approval-settings.group.update",
            ("approval-settings.group.authorization.owner-is-served", "errors.refusal.is-client-error"),
        ),
        (
            rule_of_another_group_is_changed,
            "group-approval-rules.update.rule-of-another-group",
            ("group-approval-rules.update.rule-id-is-integer", "group-approval-rules.update.unknown-rule"),
        ),
        (
            any_text_changes_a_rule_and_is_refused,
            "project-approval-rules.update.rule-id-is-integer",
            ("project-approval-rules.delete.rule-id-is-integer",),
        ),
        (
            everybody_may_do_everything,
            "job-token-scope.authorization.switching-below-maintainer",
            ("job-token-scope.allowlist.remove.absent", "errors.refusal.is-client-error"),
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_not_built_yet_fails_where_it_is_stated(
    is_so: Callable[[Service], None], stated: str, not_blamed: tuple[str, ...], judged: Judge
) -> None:
    # What every operation shows is looked at by the tests of this one too.
    selected = [name for name in not_blamed if not name.startswith(("conventions.requests", "errors."))]
    verdicts = judged(is_so, stated, *selected)
    failed = {name for name, verdict in verdicts.items() if verdict in ("failed", "unstable")}
    assert failed.intersection((stated, *not_blamed)) == {stated}


def test_a_state_without_rules_fails_what_it_lacks_and_shows_nothing_else(judged: Judge) -> None:
    in_state = "merge-request-approvals.rules.create.in-state"
    counted = "merge-request-approvals.state.rule.approved-by-have-approved"
    verdicts = judged(the_state_has_no_rules, in_state, counted)
    assert verdicts[in_state] == "failed"
    assert verdicts[counted] == "inconclusive", "where no rule counts anybody, none counts somebody wrongly"


def settings_show_no_password(service: Service) -> None:
    def without(route: Route, _: Request, response: Response) -> Response:
        shown = response.content
        is_meant = route.path.endswith("/merge_request_approval_setting") and response.status < HTTPStatus.BAD_REQUEST
        if not is_meant or not isinstance(shown, dict):
            return response
        return ok({name: value for name, value in shown.items() if name != "require_password_to_approve"})

    service.transformers.append(without)


def test_settings_that_lack_one_that_no_update_accepts_are_judged(judged: Judge) -> None:
    lacking = "approval-settings.project.settings.require-password-to-approve"
    others = (
        "approval-settings.project.update.allow-author-approval",
        "approval-settings.project.update.leaves-unsent",
        "approval-settings.project.read.unknown-project",
    )
    verdicts = judged(settings_show_no_password, lacking, *others)
    assert verdicts[lacking] == "failed"
    assert {name: verdicts[name] for name in others} == dict.fromkeys(others, "passed")


def completions_are_streams(service: Service) -> None:
    def streamed(route: Route, _: Request, response: Response) -> Response:
        is_meant = route.path.endswith("/completions") and response.status == HTTPStatus.OK
        return Response(200, raw=b"return 1", media_type="text/event-stream") if is_meant else response

    service.transformers.append(streamed)


def test_a_completion_that_is_no_json_fails_its_form_and_no_property(judged: Judge) -> None:
    inside = ("code-completion.result.created-counts-seconds", "code-completion.result.choices")
    verdicts = judged(completions_are_streams, "code-completion.completion.answered", *inside)
    assert verdicts["code-completion.completion.answered"] == "failed"
    assert "failed" not in {verdicts[name] for name in inside}


@pytest.mark.parametrize(
    "is_so",
    [
        empty_lists_are_null,
        ids_are_texts,
        numbers_are_texts,
        flags_are_numbers,
        flags_are_texts,
        lists_are_numbered_records,
    ],
    ids=lambda is_so: is_so.__name__,
)
def test_a_wrong_type_fails_the_type_and_hides_nothing_else(is_so: Callable[[Service], None], judged: Judge) -> None:
    types = (
        "merge-request-approvals.status.approved-by",
        "records.user-reference.fields",
        "job-token-scope.allowlist.list",
        "project-approval-rules.rule.contains-hidden-groups",
    )
    stories = (
        "merge-request-approvals.approve.lists-caller",
        "merge-request-approvals.unapprove.caller-is-gone",
        "merge-request-approvals.rules.delete.gone",
        "project-approval-rules.create.values",
        "project-approval-rules.update.user-ids",
        "project-approval-rules.delete.gone",
        "job-token-scope.allowlist.add.present",
        "job-token-scope.allowlist.remove.gone",
        "approval-settings.project.update.several",
    )
    verdicts = judged(is_so, *types, *stories)
    assert "failed" in {verdicts[name] for name in types}
    assert {name: verdicts[name] for name in stories} == dict.fromkeys(stories, "passed")
