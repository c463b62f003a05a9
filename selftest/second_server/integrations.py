"""Integrations of a project, also below /services."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from selftest.second_server.store import MAINTAINER, Record, RefusalError, now

if TYPE_CHECKING:
    from selftest.second_server.call import Call, Params, Route
    from selftest.second_server.say import Shown
    from selftest.second_server.web import Response


FLAGS = [
    "commit_events",
    "push_events",
    "issues_events",
    "alert_events",
    "confidential_issues_events",
    "merge_requests_events",
    "tag_push_events",
    "deployment_events",
    "note_events",
    "confidential_note_events",
    "pipeline_events",
    "wiki_page_events",
    "job_events",
    "comment_on_event_enabled",
    "vulnerability_events",
]
EXTRA = ["incidents_events", "group_mentions_events", "group_confidential_mentions_events"]
BRANCHES = ("all", "default", "protected", "default_and_protected")
CHAT_EVENTS = [
    "push_events",
    "issues_events",
    "confidential_issues_events",
    "merge_requests_events",
    "tag_push_events",
    "note_events",
    "confidential_note_events",
    "pipeline_events",
    "wiki_page_events",
]
CHANNELS = [
    "push_channel",
    "issue_channel",
    "confidential_issue_channel",
    "merge_request_channel",
    "note_channel",
    "confidential_note_channel",
    "tag_push_channel",
    "pipeline_channel",
    "wiki_page_channel",
    "deployment_channel",
    "group_mentions_channel",
    "group_confidential_mentions_channel",
]
T, B, N, U = "text", "boolean", "integer", "address"


#: What a setting accepts: one of these texts, or what a word describes.
Form: TypeAlias = str | tuple[str, ...]
#: The settings of a kind of integration, each with its value before it is set.
Settings: TypeAlias = dict[str, tuple[Form, Any]]


def chat(**more: tuple[Form, Any]) -> Settings:
    return {
        "webhook": (U, None),
        "username": (T, None),
        "channel": (T, None),
        "notify_only_broken_pipelines": (B, False),
        "notify_only_default_branch": (B, False),
        "branches_to_be_notified": (BRANCHES, "default"),
        "labels_to_be_notified": (T, ""),
        "labels_to_be_notified_behavior": (("match_any", "match_all"), "match_any"),
        **dict.fromkeys(CHANNELS, (T, None)),
        **more,
    }


TRACKER = {"new_issue_url": (U, None), "issues_url": (U, None), "project_url": (U, None)}

# slug: title, parameters, required, events
#: Title, settings, which of them are required, and events.
Kind: TypeAlias = tuple[str, Settings, list[str], list[str]]
KINDS: dict[str, Kind] = {
    "slack": (
        "Slack, or something like it",
        chat(),
        ["webhook"],
        [*CHAT_EVENTS, "deployment_events", "alert_events", "vulnerability_events", "commit_events", *EXTRA],
    ),
    "mattermost": ("Mattermost", chat(), ["webhook"], CHAT_EVENTS),
    "discord": (
        "Discord",
        {
            "webhook": (U, None),
            "branches_to_be_notified": (BRANCHES, "default"),
            "notify_only_broken_pipelines": (B, False),
        },
        ["webhook"],
        [*CHAT_EVENTS, *EXTRA[1:]],
    ),
    "pivotaltracker": ("Pivotal", {"token": (T, None), "restrict_to_branch": (T, "")}, ["token"], ["push_events"]),
    "buildkite": (
        "Buildkite",
        {"token": (T, None), "project_url": (U, None), "enable_ssl_verification": (B, True)},
        ["token", "project_url"],
        ["push_events", "merge_requests_events", "tag_push_events"],
    ),
    "drone-ci": (
        "Drone",
        {"token": (T, None), "drone_url": (U, None), "enable_ssl_verification": (B, True)},
        ["token", "drone_url"],
        ["push_events", "merge_requests_events", "tag_push_events"],
    ),
    "jenkins": (
        "Jenkins",
        {
            "jenkins_url": (U, None),
            "project_name": (T, None),
            "username": (T, None),
            "password": (T, None),
            "enable_ssl_verification": (B, True),
        },
        ["jenkins_url", "project_name"],
        ["push_events", "merge_requests_events", "tag_push_events"],
    ),
    "jira": (
        "Jira",
        {
            "url": (U, None),
            "username": (T, None),
            "password": (T, None),
            "active": (B, False),
            "project_key": (T, None),
        },
        ["url", "password"],
        ["commit_events", "merge_requests_events", "comment_on_event_enabled"],
    ),
    "redmine": (
        "Redmine",
        {**TRACKER, "branches_to_be_notified": (BRANCHES, "default")},
        list(TRACKER),
        ["push_events"],
    ),
    "bugzilla": ("Bugzilla", dict(TRACKER), list(TRACKER), []),
    "emails-on-push": (
        "Mail on push",
        {
            "recipients": (T, None),
            "disable_diffs": (B, False),
            "send_from_committer_email": (B, False),
            "branches_to_be_notified": (BRANCHES, "all"),
        },
        ["recipients"],
        ["push_events", "tag_push_events"],
    ),
    "pipelines-email": (
        "Mail on pipelines",
        {
            "recipients": (T, None),
            "notify_only_broken_pipelines": (B, True),
            "notify_only_default_branch": (B, False),
            "branches_to_be_notified": (BRANCHES, "default"),
        },
        ["recipients"],
        ["pipeline_events"],
    ),
    "irker": (
        "Irker",
        {
            "recipients": (T, None),
            "default_irc_uri": (T, None),
            "server_host": (T, None),
            "server_port": (N, 6659),
            "colorize_messages": (B, False),
        },
        ["recipients"],
        ["push_events"],
    ),
    "external-wiki": ("A wiki elsewhere", {"external_wiki_url": (U, None)}, ["external_wiki_url"], []),
    "gitlab-slack-application": ("The chat app", chat(), [], [*CHAT_EVENTS, "deployment_events", *EXTRA]),
}
SECRETS = {"token", "password", "webhook"}


def project_of(call: Call, key: str) -> Record:
    project = call.store.find_project(call.user, key)
    call.store.need_project(call.user, project, MAINTAINER)
    return project


def kind_of(slug: str) -> Kind:
    if slug not in KINDS:
        raise RefusalError(404, "there is no such integration")
    return KINDS[slug]


def entry(call: Call, one: Record) -> Shown:
    title, _, _, _ = KINDS[one.slug]
    record = {
        "active": one.active,
        "slug": one.slug,
        "title": title,
        "id": one.id,
        "created_at": call.say.moment(one.created),
        "updated_at": call.say.moment(one.updated),
        "inherited": False,
    }
    for name in FLAGS:
        record[name] = one.values.get(name, False)
    return record


def detail(call: Call, one: Record) -> Shown:
    _, parameters, _, events = KINDS[one.slug]
    general = {
        name: one.values.get(name, default)
        for name, (_, default) in parameters.items()
        if name not in SECRETS and name != "active"
    }
    return {
        **{k: v for k, v in entry(call, one).items() if k not in FLAGS},
        "settings": {"general": general, "events": {name: one.values.get(name, False) for name in events}},
    }


def listed(call: Call, key: str) -> Response:
    project = project_of(call, key)
    active = [one for one in project.integrations.values() if one.active]
    return call.page([entry(call, one) for one in call.say.mixed(active, lambda one: one.slug)], cap=50, default=20)


def show(call: Call, key: str, slug: str) -> Response:
    project = project_of(call, key)
    kind_of(slug)
    one = project.integrations.get(slug)
    if one is None and call.on("blank-integrations"):
        one = Record(slug=slug, id=0, values={}, created=None, updated=None, active=False)
    if one is None:
        raise RefusalError(410 if slug in project.gone_integrations else 404, "it is not set up")
    return call.json(detail(call, one))


def checked(name: str, form: Form, body: Params) -> Any:
    if isinstance(form, tuple):
        value = body.text(name)
        if value not in form:
            raise RefusalError(422, f"{name} is one of {', '.join(form)}")
        return value
    if form == B:
        return body.boolean(name)
    if form == N:
        return body.integer(name, least=1, most=65535)
    value = body.text(name, most=2000)
    if form == U and not re.match(r"https?://[^\s/]", value):
        raise RefusalError(422, f"{name} has to be an address")
    return value


def settings_of(call: Call, slug: str, one: Record | None) -> dict[str, Any]:
    """The settings in a body, each as it is stored."""
    _, parameters, required, events = kind_of(slug)
    body = call.body
    found: dict[str, Any] = {}
    for name in body.values:
        if name not in parameters and name not in events:
            raise RefusalError(400, f"{name} is none of its settings")
        if body.raw(name) is None:
            if name in required:
                raise RefusalError(422, f"{name} must not be null")
            found[name] = parameters[name][1] if name in parameters else False
            continue
        found[name] = checked(name, parameters[name][0] if name in parameters else B, body)
    for name in required:
        if name not in found and (one is None or name not in one.values or call.on("replace-integrations")):
            raise RefusalError(400, f"{name} has to be given")
        if found.get(name) == "":
            raise RefusalError(422, f"{name} must not be blank")
    return found


def put(call: Call, key: str, slug: str) -> Response:
    project = project_of(call, key)
    _, parameters, _, events = kind_of(slug)
    one = project.integrations.get(slug)
    if one is None and slug == "gitlab-slack-application":
        raise RefusalError(422, "install it in the user interface")
    found = settings_of(call, slug, one)
    if one is None:
        one = Record(
            slug=slug, id=call.store.number("integration"), values={}, created=now(), updated=now(), active=True
        )
        project.integrations[slug] = one
        if call.on("events-on"):
            found = {**dict.fromkeys(events, True), **found}
    if call.on("replace-integrations"):
        one.values = {}
    one.values.update(found)
    if call.on("linked-events"):
        for name in ("issues_events", "note_events"):
            if name in found and "confidential_" + name in events and "confidential_" + name not in found:
                one.values["confidential_" + name] = found[name]
    one.active = one.values.get("active", False) if "active" in parameters else True
    one.updated = now()
    return call.json(None, 200)


def remove(call: Call, key: str, slug: str) -> Response:
    project = project_of(call, key)
    kind_of(slug)
    if project.integrations.pop(slug, None) is None:
        raise RefusalError(404, "it is not set up")
    project.gone_integrations.add(slug)
    return call.json([], 200)


def install(call: Call, key: str) -> Response:
    """Not a call of the service: it replaces the user interface."""
    project = project_of(call, key)
    one = Record(
        slug="gitlab-slack-application",
        id=call.store.number("integration"),
        values={},
        created=now(),
        updated=now(),
        active=True,
    )
    project.integrations[one.slug] = one
    return call.json(detail(call, one), 201)


ROUTES: list[Route] = [("POST", "projects/:id/x_install_chat_app", install)]
for word in ("integrations", "services"):
    base = f"projects/:id/{word}"
    ROUTES += [
        ("GET", base, listed),
        ("GET", base + "/:slug", show),
        ("PUT", base + "/:slug", put),
        ("DELETE", base + "/:slug", remove),
    ]
