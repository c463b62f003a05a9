"""What a run makes where lists show nothing is removed all the same, and what stays is named with where it is from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.reference.http import Response, ok
from conformance.runner.precautions import Precautions
from conformance.target import load_profile
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route


def test_what_no_list_shows_is_removed_by_its_number(
    reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    service, base_url = reference

    def empty(route: Route, _: Request, response: Response) -> Response:
        return ok([]) if route.method == "GET" and isinstance(response.content, list) else response

    profile = load_profile(write_profile(service, base_url))
    rules, lists = dict(service.approval_rules.rules), dict(service.job_token_scope.scopes)
    service.transformers.append(empty)
    project, outer = (profile.value(name) for name in ("project", "sibling_project"))
    precautions, maintainer = Precautions.of(profile, None, tmp_path, "run"), profile.actors["maintainer"]
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        send, path = test.run.client.send, f"/projects/{project}"
        rule = {"name": "conformance-1", "approvals_required": 1, "user_ids": [maintainer.id]}
        assert send(maintainer, "POST", f"{path}/approval_rules", json_body=rule).is_success
        entry = {"target_project_id": outer}
        assert send(maintainer, "POST", f"{path}/job_token_scope/allowlist", json_body=entry).is_success
        assert precautions.put_back() == ()
        precautions.release()
    assert service.approval_rules.rules == rules
    assert service.job_token_scope.scopes.items() >= lists.items()


def test_what_breaks_the_list_that_holds_it_is_removed_by_its_number(
    reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    """A half-built service may store what it cannot show: then its list can be read again when that is gone."""
    service, base_url = reference
    profile, before = load_profile(write_profile(service, base_url)), dict(service.approval_rules.rules)

    def broken(route: Route, _: Request, response: Response) -> Response:
        is_list = route.key == "GET /projects/:id/approval_rules"
        return Response(500) if is_list and any(rule.name == "breaks" for rule in rules().values()) else response

    def rules() -> Any:
        return service.approval_rules.rules

    service.transformers.append(broken)
    precautions, maintainer = Precautions.of(profile, None, tmp_path, "run"), profile.actors["maintainer"]
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        path = f"/projects/{profile.value('project')}/approval_rules"
        for name in ("conformance-1", "breaks"):
            rule = {"name": name, "approvals_required": 1, "user_ids": [maintainer.id]}
            assert test.run.client.send(maintainer, "POST", path, json_body=rule).is_success
        assert precautions.put_back() == ()
        precautions.release()
    assert rules() == before


def test_what_no_answer_showed_before_it_was_changed_is_named_as_left(
    reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    """A half-built service may answer XML: nobody knows what the settings were."""
    service, base_url = reference
    page = Response(raw=b"<answer/>", media_type="application/xml")
    service.transformers.append(
        lambda route, _, response: page if route.path.endswith("/merge_request_approval_setting") else response
    )
    profile = load_profile(write_profile(service, base_url))
    precautions, project = Precautions.of(profile, None, tmp_path, "run"), profile.value("project")
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        path, body = f"/projects/{project}/merge_request_approval_setting", {"allow_author_approval": True}
        assert test.run.client.send(profile.actors["maintainer"], "PUT", path, json_body=body).is_success
        left = precautions.put_back()
        precautions.release()
    assert f"the former project-settings, which no answer showed before it was changed, of project {project}" in left


def test_a_rule_of_the_group_that_its_project_lists_too_is_said_to_be_of_the_group(
    reference: tuple[Service, str], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    """No operation removes a rule of a group."""
    service, base_url = reference
    profile = load_profile(write_profile(service, base_url))
    project, group = profile.value("project"), profile.value("group")
    path, group_path = f"/projects/{project}/approval_rules", f"/groups/{group}/approval_rules"
    rule = {"approvals_required": 1, "user_ids": [profile.actors["maintainer"].id]}
    precautions = Precautions.of(profile, None, tmp_path, "run")
    with in_a_test(profile) as test:
        precautions.keep_ledger(test.run, 0)
        assert list(precautions.begin([0], restores=True)) == []
        send, owner = test.run.client.send, profile.actors["owner"]
        assert send(owner, "POST", path, json_body={**rule, "name": "conformance-1"}).is_success
        made = send(owner, "POST", group_path, json_body={**rule, "name": "conformance-2"})
        assert made.is_success

        def with_those_of_the_group(route: Route, _: Request, response: Response) -> Response:
            shown = response.content
            if route.key == "GET /projects/:id/approval_rules" and isinstance(shown, list):
                return ok([*shown, made.served_json])
            return response

        service.transformers.append(with_those_of_the_group)
        left = precautions.put_back()
        precautions.release()
    why = f"this run made it in group-rules of group {group}, and it shows here as well"
    assert f"project-rules of project {project} ({made.served_object['id']} 'conformance-2'): {why}" in left
