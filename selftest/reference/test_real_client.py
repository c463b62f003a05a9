"""The reference used by an unmodified python-gitlab: every area, read back through the client's own objects."""

from __future__ import annotations

import gzip
import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import gitlab
import pytest

from selftest.reference.reviews import BEFORE_16

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gitlab.v4.objects import Group, Project, ProjectMergeRequest

    from selftest.reference.conftest import Served

SLACK = {"webhook": "https://chat.example.com/hook"}


class Seats:
    """The client, authenticated as actors of a served world."""

    def __init__(self, served: Served, stack: ExitStack) -> None:
        self.served = served
        self._stack = stack

    def of(self, actor: str) -> gitlab.Gitlab:
        return self.by(private_token=self.served.service.world.actors[actor].token)

    def by(self, **token: Any) -> gitlab.Gitlab:
        return self._stack.enter_context(
            gitlab.Gitlab(self.served.server.base_url, timeout=10, keep_base_url=True, **token)
        )

    def project(self, actor: str = "maintainer", name: str = "project") -> Project:
        return self.of(actor).projects.get(self.served.id_of(name), lazy=True)

    def group(self, actor: str = "owner", name: str = "group") -> Group:
        return self.of(actor).groups.get(self.served.id_of(name), lazy=True)

    def merge_request(self, actor: str = "maintainer", name: str = "merge_request") -> ProjectMergeRequest:
        found = self.served.service.world.one(name).extra
        project = self.of(actor).projects.get(str(found["project_path"]), lazy=True)
        return project.mergerequests.get(int(str(found["iid"])), lazy=True)

    def user(self, actor: str) -> int:
        return self.served.service.world.actors[actor].id


@pytest.fixture
def seats(served: Served) -> Iterator[Seats]:
    with ExitStack() as stack:
        yield Seats(served, stack)


@pytest.fixture
def seats_at(serve: Callable[..., Served]) -> Iterator[Callable[[str], Seats]]:
    with ExitStack() as stack:
        yield lambda version: Seats(serve(version), stack)


def ids(entries: Any) -> list[int]:
    return sorted(entry["id"] if isinstance(entry, dict) else entry.id for entry in entries)


def refusal(error: pytest.ExceptionInfo[gitlab.GitlabError]) -> int:
    """Return the status of a refusal with a message that the client could read."""
    assert error.value.error_message
    return error.value.response_code or 0


# -- job token scope ---------------------------------------------------------------------------------------------------


def test_the_limit_of_job_tokens_can_be_saved_and_read(seats: Seats) -> None:
    scope = seats.project().job_token_scope.get()
    before = scope.inbound_enabled
    assert isinstance(scope.outbound_enabled, bool)
    for wanted in (not before, before):
        scope.enabled = wanted
        scope.save()
        scope.refresh()
        assert scope.inbound_enabled is wanted


def test_projects_and_groups_can_be_added_to_the_allowlists_and_removed(seats: Seats, served: Served) -> None:
    scope = seats.project().job_token_scope.get()
    project, group = (
        served.service.world.many("allowlist_projects")[0],
        served.service.world.many("allowlist_groups")[0],
    )
    added = scope.allowlist.create({"target_project_id": project.id})
    assert (added.source_project_id, added.get_id()) == (served.id_of("project"), project.id)
    assert scope.groups_allowlist.create({"target_group_id": group.id}).get_id() == group.id
    (listed,) = (entry for entry in scope.allowlist.list(get_all=True) if entry.id == project.id)
    assert listed.path_with_namespace == project.path
    assert group.id in ids(scope.groups_allowlist.list(get_all=True))
    listed.delete()
    scope.groups_allowlist.delete(group.id)
    assert project.id not in ids(scope.allowlist.list(get_all=True))
    assert group.id not in ids(scope.groups_allowlist.list(get_all=True))
    with pytest.raises(gitlab.GitlabDeleteError) as error:
        listed.delete()
    assert refusal(error) == 400


# -- approvals of projects and groups ----------------------------------------------------------------------------------


def test_the_approval_configuration_is_saved_before_version_16(seats_at: Callable[[str], Seats]) -> None:
    project = seats_at(BEFORE_16).project()
    configuration = project.approvals.get()
    assert (configuration.approvers, configuration.approver_groups) == ([], [])
    wanted = not configuration.reset_approvals_on_push
    configuration.reset_approvals_on_push = wanted
    configuration.merge_requests_author_approval = True
    configuration.save()
    again = project.approvals.get()
    assert (again.reset_approvals_on_push, again.merge_requests_author_approval) == (wanted, True)


def test_from_version_16_on_the_approval_configuration_can_only_be_read(seats: Seats) -> None:
    project = seats.project()
    before = project.approvals.get().attributes
    with pytest.raises(gitlab.GitlabUpdateError) as error:
        project.approvals.update(new_data={"merge_requests_author_approval": True})
    assert refusal(error) in {404, 405}
    assert project.approvals.get().attributes == before


def test_a_project_rule_can_be_created_saved_and_deleted(seats: Seats, served: Served) -> None:
    rules = seats.project().approvalrules
    made = rules.create(
        {
            "name": "Security",
            "approvals_required": 2,
            "user_ids": [seats.user("approver")],
            "usernames": ["world-1-approver-second-approver"],
            "group_ids": [served.id_of("approver_group")],
            "protected_branch_ids": [served.id_of("protected_branch")],
        }
    )
    rule = rules.get(made.id)
    assert (rule.name, rule.rule_type, rule.approvals_required) == ("Security", "regular", 2)
    assert ids(rule.users) == sorted([seats.user("approver"), seats.user("second_approver")])
    assert (ids(rule.groups), ids(rule.protected_branches)) == (
        [served.id_of("approver_group")],
        [served.id_of("protected_branch")],
    )
    rule.approvals_required = 1
    rule.user_ids = [seats.user("second_approver")]
    rule.save(name="Safety")  # the name is required, and the client sends only changed values
    again = rules.get(made.id)
    assert (again.name, again.approvals_required, ids(again.users)) == ("Safety", 1, [seats.user("second_approver")])
    assert ids(again.groups) == [served.id_of("approver_group")]  # a list that is not sent stays
    again.group_ids = []
    again.save(name="Safety", approvals_required=1)
    assert rules.get(made.id).groups == []
    again.delete()
    assert made.id not in ids(rules.list(get_all=True))


def test_a_group_rule_can_be_created_listed_and_saved(seats: Seats, served: Served) -> None:
    rules = seats.group().approval_rules
    made = rules.create({"name": "Auditors", "approvals_required": 1, "group_ids": [served.id_of("approver_group")]})
    (rule,) = (entry for entry in rules.list(iterator=True) if entry.id == made.id)
    assert (rule.name, ids(rule.groups)) == ("Auditors", [served.id_of("approver_group")])
    rule.approvals_required = 3
    rule.user_ids = [seats.user("approver")]
    rule.save()
    (again,) = (entry for entry in rules.list(iterator=True) if entry.id == made.id)
    assert (again.name, again.approvals_required, ids(again.users)) == ("Auditors", 3, [seats.user("approver")])


# -- approvals of merge requests ---------------------------------------------------------------------------------------


def test_set_approvers_creates_a_rule_and_changes_it_the_second_time(seats: Seats, served: Served) -> None:
    merge_request = seats.merge_request()
    made: Any = merge_request.approvals.set_approvers(1, [seats.user("approver")], approval_rule_name="Reviewers")
    assert ids(merge_request.approval_rules.get(made.id).users) == [seats.user("approver")]
    changed: Any = merge_request.approvals.set_approvers(
        2,
        [],
        [served.id_of("approver_group")],
        approval_rule_name="Reviewers",
        approver_usernames=["world-1-approver-second-approver"],
    )
    assert changed.id == made.id
    (rule,) = (entry for entry in merge_request.approval_rules.list(get_all=True) if entry.name == "Reviewers")
    assert (rule.approvals_required, ids(rule.users)) == (2, [seats.user("second_approver")])
    assert ids(rule.groups) == [served.id_of("approver_group")]
    state = merge_request.approval_state.get()
    assert state.approval_rules_overwritten is True
    assert [entry["approved"] for entry in state.rules if entry["id"] == made.id] == [False]
    rule.delete()
    assert made.id not in ids(merge_request.approval_rules.list(get_all=True))


def test_a_merge_request_rule_copies_a_project_rule(seats: Seats) -> None:
    merge_request = seats.merge_request()
    source = seats.project().approvalrules.create(
        {"name": "Legal", "approvals_required": 1, "user_ids": [seats.user("approver")]}
    )
    made = merge_request.approval_rules.create(
        {"name": "ignored", "approvals_required": 2, "approval_project_rule_id": source.id}
    )
    rule = merge_request.approval_rules.get(made.id)
    assert (rule.name, rule.approvals_required, ids(rule.users)) == ("Legal", 2, [seats.user("approver")])


def test_an_approval_can_be_given_and_withdrawn(seats: Seats, served: Served) -> None:
    sha = str(served.service.world.one("merge_request").extra["sha"])
    seats.merge_request().approvals.set_approvers(1, [seats.user("approver")])
    mine = seats.merge_request("approver")
    with pytest.raises(gitlab.GitlabMRApprovalError) as error:
        mine.approve(sha="0" * 40)
    assert refusal(error) == 409
    assert mine.approvals.get().approved_by == []
    mine.approve(sha=sha)
    status = mine.approvals.get()
    assert [entry["user"]["id"] for entry in status.approved_by] == [seats.user("approver")]
    assert (status.approvals_required, status.approvals_left) == (1, 0)
    mine.unapprove()
    status = mine.approvals.get()
    assert (status.approved_by, status.approvals_left) == ([], 1)


@pytest.mark.parametrize("bot", ["project_bot", "group_bot"])
def test_only_a_bot_resets_approvals(seats: Seats, bot: str) -> None:
    approvals = seats.merge_request().approvals
    for approver in ("approver", "second_approver"):
        seats.merge_request(approver).approve()
    with pytest.raises(gitlab.GitlabAuthenticationError) as error:
        seats.merge_request("maintainer").reset_approvals()
    assert refusal(error) == 401
    assert len(approvals.get().approved_by) == 2
    seats.merge_request(bot).reset_approvals()
    assert approvals.get().approved_by == []


# -- approval settings, for which the client has no objects ------------------------------------------------------------


def test_settings_of_a_group_apply_to_its_projects(seats: Seats, served: Served) -> None:
    owner, group = seats.of("owner"), f"/groups/{served.id_of('group')}/merge_request_approval_setting"
    project = f"/projects/{served.id_of('project')}/merge_request_approval_setting"
    before: Any = owner.http_get(group)
    wanted = not before["allow_author_approval"]["value"]
    changed: Any = owner.http_put(group, post_data={"allow_author_approval": wanted})
    again: Any = owner.http_get(group)
    assert changed == again
    assert again["allow_author_approval"]["value"] is wanted
    assert again | {"allow_author_approval": None} == before | {"allow_author_approval": None}
    owner.http_put(group, post_data={"allow_committer_approval": False})
    seen: Any = seats.of("maintainer").http_get(project)
    assert seen["allow_committer_approval"] == {"value": False, "locked": True, "inherited_from": "group"}


# -- integrations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["integrations", "services"])
def test_an_integration_can_be_set_up_changed_and_disabled(seats: Seats, name: str) -> None:
    integrations = getattr(seats.project(), name)
    integrations.update("slack", {**SLACK, "pipeline_events": True, "note_events": False})
    (entry,) = integrations.list(get_all=True)
    assert (entry.slug, entry.active, entry.pipeline_events, entry.note_events) == ("slack", True, True, False)
    slack = integrations.get("slack")
    slack.note_events = True
    slack.save(**SLACK)
    again = integrations.get("slack")
    assert (again.note_events, again.pipeline_events) == (True, True)
    again.delete()
    assert integrations.list(get_all=True) == []


def test_changes_under_one_name_of_integrations_show_under_the_other(seats: Seats) -> None:
    project = seats.project()
    project.services.update("mattermost", SLACK)
    assert [entry.slug for entry in project.integrations.list(get_all=True)] == ["mattermost"]
    project.integrations.delete("mattermost")
    assert project.services.list(get_all=True) == []


def test_all_integrations_that_the_client_knows_exist(seats: Seats) -> None:
    integrations = seats.project().integrations
    # 400 means that a required parameter is missing, so the integration exists.
    known = [slug for slug in integrations.available() if answer_to_nothing(integrations, slug) == 400]
    assert len(known) >= 25
    assert answer_to_nothing(integrations, "no-such-integration") == 404
    assert integrations.list(get_all=True) == []


def answer_to_nothing(integrations: Any, slug: str) -> int:
    with pytest.raises(gitlab.GitlabUpdateError) as error:
        integrations.update(slug, {})
    return refusal(error)


# -- group relations export and completions, for which the client has no objects ---------------------------------------


@pytest.mark.parametrize("batched", [False, True])
def test_a_group_can_be_exported_and_its_files_downloaded(seats: Seats, served: Served, *, batched: bool) -> None:
    client, path = seats.of("owner"), f"/groups/{served.id_of('export_group')}/export_relations"
    accepted: Any = client.http_post(path, post_data={"batched": batched})
    assert accepted["message"]
    (entry,) = until_ended(client, path, seconds=10)
    assert (entry["relation"], entry["status"], entry["batched"]) == ("labels", 1, batched)
    numbers = [batch["batch_number"] for batch in entry["batches"]] if batched else [None]
    titles = []
    for number in numbers:
        wanted = {"relation": "labels", **({"batched": True, "batch_number": number} if batched else {})}
        file: Any = client.http_get(f"{path}/download", query_data=wanted, raw=True)
        assert "labels.ndjson.gz" in file.headers["content-disposition"]
        titles += [json.loads(line)["title"] for line in gzip.decompress(file.content).splitlines()]
    assert len(numbers) == (3 if batched else 1)
    assert titles == [f"world-1 {title}" for title in ("bug", "feature", "chore", 'open "question"', "spät")]


def until_ended(client: gitlab.Gitlab, path: str, seconds: float) -> list[Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        entries: Any = client.http_list(f"{path}/status", query_data={"relation": "labels"}, get_all=True)
        if entries and all(entry["status"] != 0 for entry in entries):
            return list(entries)
    raise AssertionError("the export did not end")


def test_code_completion_accepts_both_kinds_of_token(seats: Seats, served: Served) -> None:
    body = {"current_file": {"file_name": "a.py", "content_above_cursor": "def area(", "content_below_cursor": ""}}
    token = served.service.world.actors["developer"].token
    for client in (seats.by(private_token=token), seats.by(oauth_token=token)):
        result: Any = client.http_post("/code_suggestions/completions", post_data=body)
        assert result["choices"][0]["text"]
    with pytest.raises(gitlab.GitlabHttpError) as error:
        seats.by(private_token=token).http_post("/code_suggestions/enabled", post_data={"project_path": "no/such"})
    assert refusal(error) == 404


def test_too_many_completions_are_refused_with_a_time_to_retry(seats: Seats) -> None:
    client = seats.of("developer")
    body = {"current_file": {"file_name": "a.py", "content_above_cursor": "x"}}
    for _ in range(60):
        client.http_post("/code_suggestions/completions", post_data=body)
    with pytest.raises(gitlab.GitlabHttpError) as error:
        client.http_post("/code_suggestions/completions", post_data=body, obey_rate_limit=False)
    assert refusal(error) == 429
    assert seats.of("maintainer").http_post("/code_suggestions/completions", post_data=body)


# -- pagination, identity and errors -----------------------------------------------------------------------------------


def test_the_generator_of_the_client_reads_all_pages(seats: Seats, served: Served) -> None:
    allowlist = seats.project().job_token_scope.get().allowlist
    targets = [fixture.id for fixture in served.service.world.many("allowlist_projects")]
    for target in targets:
        allowlist.create({"target_project_id": target})
    pages = allowlist.list(iterator=True, per_page=2)
    assert (pages.per_page, pages.current_page, pages.prev_page) == (2, 1, None)
    walked = ids(pages)
    assert len(walked) == len(set(walked))
    assert set(walked) >= set(targets)
    assert ids(allowlist.list(page=2, per_page=2)) != ids(allowlist.list(page=1, per_page=2))
    assert allowlist.list(page=1000, per_page=2) == []


@pytest.mark.parametrize(("version", "keyset"), [("16.11", False), ("17.0", True)])
def test_users_are_paged_as_the_version_requires(
    seats_at: Callable[[str], Seats], version: str, *, keyset: bool
) -> None:
    seats = seats_at(version)
    walk: dict[str, Any] = {"pagination": "keyset", "order_by": "id"} if keyset else {}
    found = seats.of("admin").users.list(iterator=True, per_page=5, **walk)
    assert {seats.user("owner"), seats.user("project_bot")} <= {user.id for user in found}


def test_the_client_authenticates_and_reads_the_version(seats: Seats) -> None:
    client = seats.of("developer")
    client.auth()
    assert client.user is not None
    assert client.user.id == seats.user("developer")
    assert client.version()[0].startswith("17.7")


def test_a_path_works_like_an_id(seats: Seats, served: Served) -> None:
    path = served.service.world.one("project").path
    assert path is not None
    by_path = seats.of("maintainer").projects.get(path)
    assert by_path.id == served.id_of("project")
    assert by_path.job_token_scope.get().attributes.keys() >= {"inbound_enabled", "outbound_enabled"}


def test_refusals_become_the_exceptions_of_the_client(seats: Seats, served: Served) -> None:
    with pytest.raises(gitlab.GitlabAuthenticationError) as nobody:
        seats.by(private_token="no-such-token").projects.get(1, lazy=True).job_token_scope.get()
    with pytest.raises(gitlab.GitlabGetError) as unknown:
        seats.of("maintainer").projects.get(10**9, lazy=True).job_token_scope.get()
    with pytest.raises(gitlab.GitlabGetError) as lesser:
        seats.project("developer").job_token_scope.get()
    with pytest.raises(gitlab.GitlabCreateError) as invalid:
        seats.project().approvalrules.create({"name": "Broken", "approvals_required": "many"})
    with pytest.raises(gitlab.GitlabListError) as hidden:
        seats.of("outsider").groups.get(served.id_of("group"), lazy=True).approval_rules.list(get_all=True)
    seen = [refusal(error) for error in (nobody, unknown, lesser, invalid, hidden)]
    assert seen == [401, 404, 403, 400, 404]


# -- a world made through the API alone --------------------------------------------------------------------------------


def test_a_world_made_through_the_api_alone_can_be_used_for_a_review(seats: Seats) -> None:
    admin = seats.of("admin")
    people = {}
    for name in ("ruth", "omar"):
        user = admin.users.create(
            {"email": f"{name}@example.com", "username": name, "name": name.title(), "password": "s3cret-enough-9"}
        )
        token = user.personal_access_tokens.create({"name": "work", "scopes": ["api"]})
        people[name] = (user.id, seats.by(private_token=token.token))
    group = admin.groups.create({"name": "Workshop", "path": "workshop"})
    project = admin.projects.create(
        {"name": "Bench", "namespace_id": group.id, "initialize_with_readme": True, "default_branch": "main"}
    )
    for number, _ in people.values():
        project.members.create({"user_id": number, "access_level": gitlab.const.AccessLevel.MAINTAINER})
    (ruth, mine), (_, his) = people["ruth"], people["omar"]
    work = his.projects.get(project.id, lazy=True)
    work.branches.create({"branch": "vice", "ref": "main"})
    work.files.create({"file_path": "vice.md", "branch": "vice", "content": "Hold.", "commit_message": "Add a vice"})
    opened = work.mergerequests.create({"source_branch": "vice", "target_branch": "main", "title": "Add a vice"})
    opened.approvals.set_approvers(1, [ruth])
    reviewed = mine.projects.get(project.id, lazy=True).mergerequests.get(opened.iid)
    reviewed.approve(sha=opened.sha)
    assert [entry["user"]["id"] for entry in opened.approvals.get().approved_by] == [ruth]
    bot = mine.projects.get(project.id, lazy=True).access_tokens.create(
        {"name": "robot", "scopes": ["api"], "access_level": 40, "expires_at": "2099-01-01"}
    )
    seats.by(private_token=bot.token).projects.get(project.id, lazy=True).mergerequests.get(
        opened.iid, lazy=True
    ).reset_approvals()
    assert opened.approvals.get().approved_by == []
