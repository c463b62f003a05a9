from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.reference import Choices
from conformance.reference.areas.integration_catalogue import CATALOGUE, EVENT_FLAGS, ValueType
from conformance.reference.choices import Repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from conformance.reference.areas.integration_catalogue import Parameter
    from selftest.reference.conftest import Served

SLACK = {"webhook": "https://chat.example.com/hook"}
TRACKER = {name: f"https://tracker.example.com/{name}" for name in ("new_issue_url", "issues_url", "project_url")}
CHAT_APP = "gitlab-slack-application"


class Integrations:
    """The integrations of one project, as one client sees them."""

    def __init__(self, client: httpx.Client, project: int | str, name: str = "integrations") -> None:
        self.client = client
        self.path = f"/projects/{project}/{name}"

    def listed(self) -> dict[str, dict[str, object]]:
        return {entry["slug"]: entry for entry in self.client.get(self.path).json()}

    def put(self, slug: str, settings: Mapping[str, object]) -> httpx.Response:
        return self.client.put(f"{self.path}/{slug}", json=settings)

    def get(self, slug: str) -> httpx.Response:
        return self.client.get(f"{self.path}/{slug}")

    def delete(self, slug: str) -> httpx.Response:
        return self.client.delete(f"{self.path}/{slug}")

    def properties(self, slug: str) -> dict[str, object]:
        found: dict[str, object] = self.get(slug).json()["properties"]
        return found


@pytest.fixture
def integrations(served: Served) -> Integrations:
    return Integrations(served.acting_as("maintainer"), served.id_of("project"))


def sample(parameter: Parameter) -> object:
    return {
        ValueType.TEXT: next(iter(parameter.allowed), f"<{parameter.name}>"),
        ValueType.FLAG: False,
        ValueType.NUMBER: 6659,
    }[parameter.type]


def test_every_integration_accepts_shows_and_resets_its_settings(integrations: Integrations) -> None:
    assert len(CATALOGUE) >= 25
    assert [kind.slug for kind in CATALOGUE.values() if not kind.creatable] == [CHAT_APP]
    assert [kind.slug for kind in CATALOGUE.values() if kind.switchable] == ["jira"]
    for slug, kind in CATALOGUE.items():
        if not kind.creatable:
            continue
        settings = {parameter.name: sample(parameter) for parameter in kind.parameters} | {"active": True}
        flags = {name: not EVENT_FLAGS.get(name, False) for name in kind.events}
        answer = integrations.put(slug, {**settings, **flags})
        assert (answer.status_code, answer.json()) == (200, integrations.get(slug).json())
        entry, shown = integrations.listed()[slug], integrations.properties(slug)
        assert (entry["title"], entry["active"]) == (kind.title, True)
        assert {name: entry.get(name, shown.get(name)) for name in flags} == flags
        for parameter in kind.parameters:
            if parameter.secret:
                assert str(settings[parameter.name]) not in integrations.get(slug).text
            else:
                expected = True if parameter.fixed else settings[parameter.name]
                assert shown[parameter.name] == expected
        assert (integrations.delete(slug).status_code, slug in integrations.listed()) == (204, False)
        assert all(integrations.properties(slug)[p.name] == p.default for p in kind.parameters if not p.secret)
        required = [parameter.name for parameter in kind.parameters if parameter.required]
        for name in required:
            missing = {key: value for key, value in settings.items() if key != name}
            assert integrations.put(slug, missing).status_code == 400
            assert slug not in integrations.listed()


def test_an_entry_has_the_fields_of_the_specification(integrations: Integrations) -> None:
    integrations.put("slack", {**SLACK, "push_events": False})
    entry = integrations.listed()["slack"]
    plain = {"id": int, "title": str, "slug": str, "created_at": str, "updated_at": str, "active": bool}
    flags = dict.fromkeys(EVENT_FLAGS, bool)
    assert entry.keys() >= {*plain, *flags}
    assert all(isinstance(entry[name], type_) for name, type_ in {**plain, **flags}.items())
    assert entry["push_events"] is False


def test_a_change_keeps_unsent_settings_and_other_integrations(integrations: Integrations) -> None:
    integrations.put("slack", {**SLACK, "channel": "builds", "push_events": True})
    integrations.put("redmine", TRACKER)
    redmine, first = integrations.get("redmine").json(), integrations.get("slack").json()
    for wanted in (False, True):
        assert integrations.put("slack", {"push_events": wanted}).status_code == 200
        changed = integrations.get("slack").json()
        assert (changed["push_events"], changed["id"]) == (wanted, first["id"])
        assert changed["properties"] == first["properties"]
    assert integrations.get("redmine").json() == redmine


def test_values_of_another_type_or_not_in_the_list_are_refused(integrations: Integrations) -> None:
    integrations.put("irker", {"recipients": "irc.example.com/#builds"})
    integrations.put("slack", SLACK)
    before = integrations.get("slack").json(), integrations.get("irker").json()
    for slug, wrong in (
        ("slack", {"branches_to_be_notified": "bogus"}),
        ("slack", {"labels_to_be_notified_behavior": "bogus"}),
        ("slack", {"push_events": "maybe"}),
        ("slack", {"push_events": {}}),
        ("slack", {"channel": {}}),
        ("slack", {"webhook": ""}),
        ("slack", {"notify_only_broken_pipelines": []}),
        ("irker", {"server_port": "abc"}),
        ("irker", {"server_port": 10**30}),
    ):
        assert integrations.put(slug, {"channel": "other", **wrong}).status_code == 400, wrong
    assert (integrations.get("slack").json(), integrations.get("irker").json()) == before


def test_defaults_are_those_of_the_specification(integrations: Integrations) -> None:
    integrations.put("slack", SLACK)
    integrations.put("emails-on-push", {"recipients": "a@example.com b@example.com"})
    integrations.put("drone-ci", {"token": "t", "drone_url": "https://drone.example.com"})
    integrations.put(
        "buildkite",
        {"token": "t", "project_url": "https://ci.example.com/p", "enable_ssl_verification": False},
    )
    assert integrations.properties("slack")["branches_to_be_notified"] == "default"
    assert integrations.properties("slack")["labels_to_be_notified_behavior"] == "match_any"
    assert integrations.properties("emails-on-push")["branches_to_be_notified"] == "all"
    assert integrations.properties("drone-ci")["enable_ssl_verification"] is True
    assert integrations.properties("buildkite")["enable_ssl_verification"] is True


def test_the_switchable_issue_tracker_is_off_until_it_is_switched_on(integrations: Integrations) -> None:
    settings = {"url": "https://jira.example.com", "password": "p"}
    assert integrations.put("jira", settings).status_code == 200
    assert "jira" not in integrations.listed()
    integrations.put("jira", {"active": True})
    assert integrations.put("jira", {"comment_on_event_enabled": False}).status_code == 200
    assert integrations.listed()["jira"]["comment_on_event_enabled"] is False
    integrations.put("jira", {"active": False})
    assert "jira" not in integrations.listed()
    assert integrations.put("jira", {"active": "maybe"}).status_code == 400


def test_the_chat_app_can_be_changed_where_installed_and_never_created(
    served: Served, integrations: Integrations
) -> None:
    fixture = served.service.world.one("installed_chat_app_integration")
    elsewhere = Integrations(integrations.client, fixture.id)
    assert integrations.put(CHAT_APP, {"channel": "builds"}).status_code == 422
    assert (integrations.get(CHAT_APP).status_code, integrations.listed()) == (404, {})
    assert elsewhere.put(CHAT_APP, {"channel": "builds"}).status_code == 200
    assert elsewhere.properties(CHAT_APP)["channel"] == "builds"


def test_by_choice_disabled_integrations_are_kept_and_unset_ones_not_found(
    serve: Callable[..., Served],
) -> None:
    for kept, absent in ((True, Repeat.REFUSE), (False, Repeat.ACCEPT)):
        choices = Choices(
            integration_kept_when_disabled=kept,
            absent_integration_disabled=absent,
            integration_settings_nested=False,
            unshown_bodies=False,
        )
        served = serve(choices=choices)
        integrations = Integrations(served.acting_as("maintainer"), served.id_of("project"))
        assert integrations.delete("slack").status_code == (404 if absent is Repeat.REFUSE else 204)
        assert integrations.put("slack", {**SLACK, "channel": "builds"}).content == b""
        assert integrations.get("slack").json()["channel"] == "builds"
        integrations.delete("slack")
        after = integrations.get("slack")
        assert after.status_code == (200 if kept else 404)
        assert not kept or (after.json()["active"], after.json()["channel"]) == (False, None)


def test_both_names_are_the_same_from_14_4_and_only_the_older_exists_before(serve: Callable[..., Served]) -> None:
    for version, both in (("14.3", False), ("14.4", True)):
        served = serve(version)
        newer = Integrations(served.acting_as("maintainer"), "2000000001-world-1-group%2Fproject")
        older = Integrations(newer.client, served.id_of("project"), "services")
        assert older.put("redmine", TRACKER).status_code == 200
        assert set(older.listed()) == {"redmine"}
        answers = [newer.get("redmine"), newer.client.get(newer.path), newer.put("redmine", {})]
        assert {answer.status_code for answer in answers} == {200 if both else 404}
        if both:
            assert newer.get("redmine").json() == older.get("redmine").json()
            assert newer.listed() == older.listed()
        assert newer.delete("redmine").status_code == (204 if both else 404)
        assert set(older.listed()) == (set() if both else {"redmine"})
        assert older.delete("redmine").status_code == 204


def test_vulnerability_events_exist_from_16_4_in_the_enterprise_edition(serve: Callable[..., Served]) -> None:
    seen = {}
    for version, enterprise in (("16.3", True), ("16.4", True), ("16.4", False)):
        served = serve(version, Choices(enterprise=enterprise))
        integrations = Integrations(served.acting_as("maintainer"), served.id_of("project"))
        integrations.put("slack", {**SLACK, "vulnerability_events": True})
        seen[version, enterprise] = integrations.listed()["slack"].get("vulnerability_events")
    assert seen == {("16.3", True): None, ("16.4", True): True, ("16.4", False): None}


@pytest.mark.parametrize("name", ["integrations", "services"])
@pytest.mark.parametrize(("actor", "code"), [(None, 401), ("outsider", 404), ("guest", 403), ("developer", 403)])
def test_every_operation_requires_a_maintainer(
    served: Served, integrations: Integrations, name: str, actor: str | None, code: int
) -> None:
    integrations.put("redmine", TRACKER)
    before = integrations.listed()
    client = served.acting_as(actor) if actor else served.anonymous()
    refused = Integrations(client, served.id_of("project"), name)
    answers = [
        client.get(refused.path),
        refused.get("redmine"),
        refused.put("slack", SLACK),
        refused.put("redmine", {"project_url": "https://x.example.com"}),
        refused.delete("redmine"),
    ]
    assert {answer.status_code for answer in answers} == {code}
    assert integrations.listed() == before


def test_unknown_slugs_and_projects_are_not_found(integrations: Integrations) -> None:
    for there, slug in ((integrations, "no-such"), (Integrations(integrations.client, 999_999), "slack")):
        answers = [there.get(slug), there.put(slug, SLACK), there.delete(slug)]
        assert {answer.status_code for answer in answers} == {404}
    assert integrations.listed() == {}


def test_the_described_fixtures_can_be_set_up_as_described(served: Served, integrations: Integrations) -> None:
    world = served.service.world
    for fixture in world.many("integrations"):
        slug, settings = fixture.extra["slug"], fixture.extra["settings"]
        assert isinstance(slug, str)
        assert isinstance(settings, dict)
        extra = {}
        if "distinctive_name" in fixture.extra:
            extra = {str(fixture.extra["distinctive_name"]): fixture.extra["distinctive_value"]}
        assert integrations.put(slug, {**settings, **extra}).status_code == 200
        assert slug in integrations.listed()
        assert extra.items() <= integrations.properties(slug).items()
        events = fixture.extra["events"]
        assert isinstance(events, list)
        assert {*CATALOGUE[slug].events} == {*events}


def test_by_choice_the_older_name_redirects_to_the_newer_one(serve: Callable[..., Served]) -> None:
    for version, code in (("14.3", 200), ("14.4", 308)):
        served = serve(version, Choices(alias_redirect_code=308))
        client, project = served.acting_as("maintainer"), served.id_of("project")
        answer = client.get(f"/projects/{project}/services?per_page=2")
        assert answer.status_code == code
        if code == 308:
            assert answer.headers["location"] == f"/api/v4/projects/{project}/integrations?per_page=2"
            assert client.get(answer.headers["location"].removeprefix("/api/v4")).status_code == 200
