"""The chapter of integrations, with both names of the path: listed, read, set up and disabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from selftest.reference.chapters.new_places import tenants
from selftest.reference.chapters.places import EVERYBODY, at, at_one_of, at_path, during

if TYPE_CHECKING:
    from selftest.reference.story import Story

_HOOK = {"webhook": "https://hooks.example.com/e"}


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _three_chats,
        _beside_another_project,
        _flags_and_refusals,
        _flags_off_and_on,
        _one_flag_alone,
        _texts_that_are_emptied,
        _the_older_name,
        _what_is_required,
        _a_project_that_has_none,
        _flags_by_the_older_name,
        _channels,
        _labels_and_empty_lists,
        _long_settings,
        _in_projects_of_one_group,
        _slugs_that_begin_alike,
        _refused_before_it_goes,
        _chats_and_trackers,
        _mails_and_builds,
        _labels_and_mails,
        _set_up_and_disabled,
        _the_project_of_a_guest,
        _the_bot_of_a_project,
        _disabled_beside_another_project,
        _ports_and_comments,
        _by_the_newer_name,
        _long_texts_and_channels,
        _a_chat_app_elsewhere,
        _disabled_by_another_maintainer,
        _one_of_two_trackers,
        _sent_twice,
        _every_caller,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_two_at_once, _disabled_meanwhile, _one_integration_twice_at_once, _two_lists_at_once):
        chapter(story)


def _three_chats(story: Story) -> None:
    place, other = f"{at(story, 'project')}/integrations", f"{at(story, 'sibling_project')}/integrations"
    full = {"webhook": "https://hooks.example.com/b", "push_events": False, "username": "bot"}
    full |= {"notify_only_broken_pipelines": True, "channel": "x"}

    def look() -> None:
        for each in (place, other):
            story.call("maintainer", "GET", each)
            for slug in ("slack", "mattermost", "discord"):
                story.call("maintainer", "GET", f"{each}/{slug}")

    for slug in ("slack", "mattermost", "discord"):
        story.call("maintainer", "PUT", f"{place}/{slug}", full)
    look()
    look()
    for slug in ("slack", "mattermost"):
        story.call("maintainer", "DELETE", f"{place}/{slug}")
        look()
        story.call("maintainer", "PUT", f"{place}/{slug}", {"webhook": "https://hooks.example.com/c"})
        look()
    story.call("maintainer", "GET", f"{place}/slacks")
    story.call("outsider", "DELETE", f"{place}/slack")


def _beside_another_project(story: Story) -> None:
    project, sibling = at(story, "project"), at(story, "sibling_project")
    first, second = {"webhook": "https://a.example.com", "channel": "a"}, {"channel": "b"}
    story.call("maintainer", "PUT", f"{sibling}/integrations/hangouts-chat", first)
    story.call("maintainer", "DELETE", f"{project}/integrations/hangouts-chat")
    story.call("maintainer", "GET", f"{sibling}/integrations")
    story.call("maintainer", "PUT", f"{sibling}/integrations/slack", first)
    story.call("maintainer", "PUT", f"{sibling}/integrations/slack", second)
    story.call("maintainer", "GET", f"{sibling}/integrations/slack")
    target = story.world.many("allowlist_projects")[1].id
    story.call("maintainer", "POST", f"{sibling}/job_token_scope/allowlist", {"target_project_id": target})
    story.call("maintainer", "DELETE", f"{sibling}/integrations/slack")
    story.call("maintainer", "GET", f"{sibling}/job_token_scope/allowlist?page=1&per_page=50")


def _flags_and_refusals(story: Story) -> None:
    integrations = f"{at(story, 'sibling_project')}/integrations"
    hook = {"webhook": "https://hook.example.com", "note_events": True, "confidential_note_events": False}
    story.call("maintainer", "PUT", f"{integrations}/discord", hook)
    story.call("maintainer", "GET", integrations)
    story.call("maintainer", "PUT", f"{integrations}/discord", {"webhook": ""})
    story.call("maintainer", "GET", integrations)
    for noted in (False, True):
        story.call("maintainer", "PUT", f"{integrations}/discord", {**hook, "note_events": noted})
        story.call("maintainer", "GET", integrations)
    tracker = {"url": "https://jira.example.com", "password": "a secret", "active": False}
    story.call("maintainer", "PUT", f"{integrations}/jira", tracker)
    story.call("maintainer", "GET", integrations)


def _flags_off_and_on(story: Story) -> None:
    slack = f"{at(story, 'guarded_project')}/integrations/slack"
    for value in (False, True, False):
        wanted = {"webhook": "https://hooks.example.com/d", "push_events": value, "vulnerability_events": value}
        story.call("owner", "PUT", slack, wanted)
        story.call("owner", "GET", slack)


def _one_flag_alone(story: Story) -> None:
    place = f"/projects/{story.world.one('fuzz_project').id}/integrations"
    for value in (True, False):
        body = {"webhook": "https://hooks.example.com/p", "pipeline_events": value}
        story.call("maintainer", "PUT", f"{place}/slack", body)
        story.call("maintainer", "GET", f"{place}/slack")


def _texts_that_are_emptied(story: Story) -> None:
    integrations = f"{at(story, 'guarded_project')}/integrations"
    slack = {"webhook": "https://hooks.example.com/d", "channel": "x", "username": "bot"}
    story.call("owner", "PUT", f"{integrations}/slack", slack)
    story.call("owner", "PUT", f"{integrations}/mattermost", {**slack, "channel": "y", "username": "other"})
    story.call("maintainer", "GET", f"{integrations}/slack")
    story.call("owner", "PUT", f"{integrations}/slack", {"channel": ""})
    story.call("owner", "GET", f"{integrations}/slack")


def _the_older_name(story: Story) -> None:
    services = f"{at(story, 'guarded_project')}/services"
    story.call("owner", "PUT", f"{services}/gitlab-slack-application", {"push_events": True})
    tracker = {"url": "https://jira.example.com", "password": "a secret", "active": False}
    story.call("owner", "PUT", f"{services}/jira", tracker)
    story.call("owner", "GET", services)


def _what_is_required(story: Story) -> None:
    integrations = f"{at(story, 'guarded_project')}/integrations"
    tracker = dict.fromkeys(("new_issue_url", "issues_url", "project_url"), "https://redmine.example.com")
    for name in tracker:
        rest = {other: value for other, value in tracker.items() if other != name}
        story.call("owner", "PUT", f"{integrations}/redmine", rest)
    jenkins = {"jenkins_url": "https://jenkins.example.com", "project_name": "p", "enable_ssl_verification": False}
    story.call("owner", "PUT", f"{integrations}/jenkins", jenkins)
    story.call("owner", "GET", f"{integrations}/jenkins")


def _disabled_meanwhile(story: Story) -> None:
    integrations = f"{at(story, 'guarded_project')}/integrations"
    hook = {"webhook": "https://hooks.example.com/e"}
    story.call("owner", "DELETE", f"{integrations}/slack")
    for slug in ("mattermost", "hangouts-chat"):
        story.call("owner", "PUT", f"{integrations}/{slug}", hook)
        story.call("owner", "GET", integrations)
    for _ in range(3):
        story.call("owner", "PUT", f"{integrations}/slack", hook)
        during(story, ("PUT", f"{integrations}/mattermost", hook), ("DELETE", f"{integrations}/slack", None))
        story.count(integrations)


def _a_project_that_has_none(story: Story) -> None:
    story.call("maintainer", "GET", f"{at(story, 'subgroup_project')}/integrations")


def _flags_by_the_older_name(story: Story) -> None:
    services = f"{at(story, 'guarded_project')}/services/slack"
    story.call("owner", "DELETE", services)
    sent = {"webhook": "https://hooks.example.com/f", "push_events": False, "pipeline_channel": "pipes"}
    story.call("owner", "PUT", services, sent)
    story.call("owner", "PUT", f"{at(story, 'project')}/integrations/slack", sent)
    story.call("owner", "GET", services)


def _channels(story: Story) -> None:
    body = {"webhook": "https://chat.example.com/hooks/releases", "push_channel": "Releases"}
    place = f"{at(story, 'project')}/integrations/slack"
    story.call("maintainer", "PUT", place, body)
    story.call("maintainer", "GET", place)


def _labels_and_empty_lists(story: Story) -> None:
    one, other = (at_one_of(story, "allowlist_projects", number) for number in (0, 2))
    first, second = f"{one}/integrations", f"{other}/integrations"
    tracker = {"issues_url": "https://a.example.com/i?a=1&b=2", "project_url": "https://a.example.com/p"}
    slack: dict[str, Any] = {"webhook": "https://hooks.example.com/n"}

    def look() -> None:
        for path in (first, f"{one}/services", second, f"{first}/slack", f"{second}/slack", f"{first}/redmine"):
            story.call("maintainer", "GET", path)

    story.call("maintainer", "PUT", f"{first}/redmine", {**tracker, "new_issue_url": "https://a.example.com/n"})
    told = {"channel": "here", "labels_to_be_notified": "~bug", "push_events": True}
    for body in (told, {"labels_to_be_notified": ""}, {"push_events": False, "branches_to_be_notified": "none"}):
        story.call("maintainer", "PUT", f"{first}/slack", {**slack, **body})
        look()
    kind = story.service.integrations.kind("slack")
    quiet = dict.fromkeys(story.service.integrations.event_parameters(kind), False)
    story.call("maintainer", "PUT", f"{first}/slack", {**slack, **quiet})
    look()
    story.call("maintainer", "PUT", f"{second}/slack", slack)
    look()
    for _ in range(2):
        story.call("maintainer", "DELETE", f"{first}/slack")
        look()
        story.call("maintainer", "PUT", f"{first}/slack", slack)
        look()
    story.call("maintainer", "DELETE", f"{first}/slack")
    hooks = [("maintainer", "PUT", f"{first}/{slug}", slack) for slug in ("discord", "pumble")]
    story.at_once(*hooks)
    listed = story.read(first)
    story.remember(f"both of {sorted(entry['slug'] for entry in listed)}")


def _long_settings(story: Story) -> None:
    place = f"/projects/{story.world.one('fresh_project').id}/integrations"
    for slug, settings in (
        ("slack", {**_HOOK, "labels_to_be_notified": "bug,feature", "confidential_issue_channel": "secret"}),
        ("irker", {"recipients": "#conformance", "server_port": 60001}),
        ("emails-on-push", {"recipients": "a@example.com"}),
        ("pipelines-email", {"recipients": "b@example.com"}),
    ):
        story.call("maintainer", "PUT", f"{place}/{slug}", settings)
    for slug in ("slack", "irker", "emails-on-push"):
        story.call("maintainer", "GET", f"{place}/{slug}")


def _in_projects_of_one_group(story: Story) -> None:
    _, (one, other, *_) = tenants(story, "tenants-of-integrations")
    first, older = (f"/projects/{one.id}/{name}" for name in ("integrations", "services"))
    second = f"/projects/{other.id}/integrations"
    hook, mail = {"webhook": "https://hooks.example.com/n"}, {"recipients": "a@example.com,b@example.com"}
    drone = {"token": "secret", "drone_url": "https://drone.example.com"}
    jira = {"url": "https://jira.example.com", "password": "secret", "active": False}
    for method, path, body in (
        ("PUT", f"{first}/slack", {"channel": "refused"}),
        ("PUT", f"{first}/slack", {**hook, "labels_to_be_notified_behavior": "match_all"}),
        ("PUT", f"{first}/slack", {**hook, "issues_events": False, "confidential_issues_events": False}),
        ("PUT", f"{first}/slack", {**hook, "issues_events": True, "branches_to_be_notified": "all"}),
        ("PUT", f"{second}/slack", hook),
        ("DELETE", f"{older}/slack", None),
        ("PUT", f"{first}/slack", {}),
        ("PUT", f"{first}/slack", hook),
        ("PUT", f"{first}/pipelines-email", mail),
        ("PUT", f"{first}/emails-on-push", mail),
        ("DELETE", f"{first}/emails-on-push", None),
        ("PUT", f"{first}/emails-on-push", mail),
        ("PUT", f"{older}/drone-ci", drone),
        ("PUT", f"{first}/jira", jira),
        ("DELETE", f"{first}/jira", None),
        ("GET", f"{first}/jira", None),
        ("GET", older, None),
    ):
        story.call("maintainer", method, path, body)
    listed = story.read(first)
    story.remember(f"made before they were changed: {all(one['created_at'] <= one['updated_at'] for one in listed)}")


def _slugs_that_begin_alike(story: Story) -> None:
    place = f"/projects/{story.world.one('fresh_project').id}/integrations"
    story.call("maintainer", "PUT", f"{place}/slack", _HOOK)
    story.call("maintainer", "PUT", f"{place}/slack-slash-commands", {"token": "conformance"})
    story.call("maintainer", "DELETE", f"{place}/slack")
    story.call("maintainer", "GET", place)


def _refused_before_it_goes(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}/integrations"
    story.call("maintainer", "PUT", f"{place}/emails-on-push", {"recipients": "team@example.com"})
    story.call("maintainer", "PUT", f"{place}/slack-slash-commands", {"token": "conformance"})
    story.call("maintainer", "PUT", f"{place}/slack", {**_HOOK, "username": "further"})
    story.call("maintainer", "PUT", f"{place}/slack", {"push_events": "maybe"})
    story.call("maintainer", "GET", place)
    story.call("maintainer", "DELETE", f"{place}/slack")
    story.call("maintainer", "GET", place)
    story.call("maintainer", "PUT", f"{place}/slack", _HOOK)
    story.call("maintainer", "GET", f"{place}/slack")


def _chats_and_trackers(story: Story) -> None:
    known = story.world.one("branch_rule_project")
    place = f"/projects/{known.id}/integrations"
    flags = {"confidential_issues_events": False, "vulnerability_events": True}
    story.call("maintainer", "PUT", f"{place}/slack", {"webhook": "https://hooks.example.com/l", **flags})
    story.call("maintainer", "PUT", f"{place}/slack", {"username": "last"})
    story.call("maintainer", "GET", place)
    older = f"/projects/{quote(known.path or '', safe='')}/services"
    story.call("maintainer", "PUT", f"{older}/slack", {"username": "older"})
    story.call("maintainer", "GET", older)
    story.call("maintainer", "GET", f"{place}/slack")
    story.call("maintainer", "DELETE", f"{older}/slack")
    story.call("maintainer", "GET", f"{place}/slack")
    jira = {"url": "https://jira.example.com", "password": "conformance-password"}
    for sent in ({**jira, "active": True}, {"active": False}, {"username": "last"}):
        story.call("maintainer", "PUT", f"{place}/jira", sent)
        story.call("maintainer", "GET", place)


def _mails_and_builds(story: Story) -> None:
    place = f"/projects/{story.world.one('branch_rule_project').id}/integrations"
    recipients = {"recipients": "one@example.com\ntwo@example.com"}
    story.call("maintainer", "PUT", f"{place}/emails-on-push", recipients)
    story.call("maintainer", "GET", f"{place}/emails-on-push")
    needed = {"teamcity_url": "https://ci.example.com", "build_type": "conformance"}
    story.call("maintainer", "PUT", f"{place}/teamcity", {**needed, "enable_ssl_verification": False})
    story.call("maintainer", "DELETE", f"{place}/teamcity")
    story.call("maintainer", "PUT", f"{place}/teamcity", needed)
    story.call("maintainer", "GET", f"{place}/teamcity")


def _labels_and_mails(story: Story) -> None:
    place = f"{at(story, 'workbench')}/integrations"
    webhook = {"webhook": "https://hooks.example.com/m"}
    for labels in ("~bug", ""):
        story.call("maintainer", "PUT", f"{place}/slack", {**webhook, "labels_to_be_notified": labels})
    mails = {"recipients": "one@example.com", "push_events": False, "tag_push_events": False}
    story.call("maintainer", "PUT", f"{place}/emails-on-push", mails)
    story.call("maintainer", "GET", place)
    story.call("maintainer", "DELETE", f"{place}/emails-on-push")
    story.call("maintainer", "PUT", f"{place}/emails-on-push", {"recipients": "one@example.com"})
    story.call("maintainer", "GET", f"{place}/emails-on-push")


def _set_up_and_disabled(story: Story) -> None:
    place = f"{at(story, 'workbench')}/integrations"
    chat = {**_HOOK, "labels_to_be_notified_behavior": "match_all"}
    mails = {"recipients": "one@example.com", "branches_to_be_notified": "default_and_protected"}
    builds = {"token": "T", "drone_url": "https://ci.example.com", "enable_ssl_verification": False}
    for slug, sent in (("mattermost", chat), ("pipelines-email", mails), ("drone-ci", builds)):
        story.call("maintainer", "PUT", f"{place}/{slug}", sent)
        story.call("maintainer", "DELETE", f"{place}/{slug}")
        story.call("maintainer", "GET", f"{place}/{slug}")
    deep = quote(story.world.one("subgroup_project").path or "", safe="")
    story.call("owner", "PUT", f"/projects/{deep}/services/mattermost", _HOOK)


def _the_project_of_a_guest(story: Story) -> None:
    for name in ("inner_project", "project"):
        story.call("guest", "GET", f"{at(story, name)}/integrations")


def _the_bot_of_a_project(story: Story) -> None:
    story.call("project_bot", "PUT", f"{at(story, 'project')}/integrations/pumble", _HOOK)


def _disabled_beside_another_project(story: Story) -> None:
    one, other = (at(story, name) for name in ("workbench", "guarded_project"))
    for place in (one, other):
        story.call("maintainer", "PUT", f"{place}/integrations/discord", _HOOK)
    story.call("maintainer", "DELETE", f"{one}/services/discord")
    story.call("maintainer", "GET", f"{other}/integrations")


def _ports_and_comments(story: Story) -> None:
    place = f"{at(story, 'workbench')}/integrations"
    tracker = {"url": "https://t.example.com", "password": "p", "active": True, "comment_on_event_enabled": False}
    for slug, sent in (("irker", {"recipients": "#room", "server_port": 6697}), ("jira", tracker)):
        story.call("owner", "PUT", f"{place}/{slug}", sent)
        story.call("owner", "GET", place)
        story.call("owner", "DELETE", f"{place}/{slug}")
        story.call("owner", "GET", f"{place}/{slug}")


def _two_at_once(story: Story) -> None:
    project, slack = at(story, "public_project"), {"webhook": "https://h.example.com"}
    both = [f"{project}/integrations/{slug}" for slug in ("slack", "mattermost")]
    for path in both:
        story.call("owner", "PUT", path, slack)
    story.at_once(*(("owner", "DELETE", path, None) for path in both))
    story.call("owner", "GET", f"{project}/integrations")
    story.at_once(("maintainer", "PUT", both[0], slack), ("owner", "PUT", both[1], slack))
    story.count(f"{project}/integrations")


def _one_integration_twice_at_once(story: Story) -> None:
    place = f"{at(story, 'fresh_project')}/integrations"
    story.at_once(*(("owner", "PUT", f"{place}/pumble", _HOOK) for _ in range(2)))
    story.count(place)


def _two_lists_at_once(story: Story) -> None:
    places = [f"{at(story, name)}/integrations" for name in ("branch_rule_project", "fresh_project")]
    story.call("owner", "PUT", f"{places[0]}/unify-circuit", _HOOK)
    for answer in during(story, ("GET", places[0], None), ("GET", places[1], None)):
        story.remember(f"one of two lists: {sorted(entry['slug'] for entry in answer.json())}")


def _by_the_newer_name(story: Story) -> None:
    place = f"{at(story, 'workbench')}/integrations"
    flags = {"push_events": False, "wiki_page_events": True}
    for sent in ({**_HOOK, **flags}, {"branches_to_be_notified": "some"}, {"push_events": False}):
        story.call("owner", "PUT", f"{place}/webex-teams", sent)
        story.call("owner", "GET", f"{place}/webex-teams")
    story.call("owner", "GET", f"{at(story, 'workbench')}/services")


def _long_texts_and_channels(story: Story) -> None:
    place = f"{at(story, 'workbench')}/integrations"
    many = ",".join(f"somebody-{number}@example.com" for number in range(20))
    for slug, sent in (
        ("emails-on-push", {"recipients": many}),
        ("slack", {**_HOOK, "channel": "all", "push_channel": "pushes", "tag_push_channel": "tags"}),
    ):
        story.call("owner", "PUT", f"{place}/{slug}", sent)
        story.call("owner", "GET", f"{place}/{slug}")


def _a_chat_app_elsewhere(story: Story) -> None:
    installed = f"/projects/{story.world.one('installed_chat_app_integration').id}"
    for place in (installed, at(story, "workbench")):
        story.call("owner", "PUT", f"{place}/integrations/gitlab-slack-application", {"push_events": True})


def _disabled_by_another_maintainer(story: Story) -> None:
    place = f"{at(story, 'workbench')}/integrations/microsoft-teams"
    story.call("owner", "PUT", place, _HOOK)
    story.call("maintainer", "DELETE", place)


def _one_of_two_trackers(story: Story) -> None:
    place = f"{at(story, 'workbench')}/integrations"
    tracker = dict.fromkeys(("new_issue_url", "issues_url", "project_url"), "https://tracker.example.com")
    for slug in ("redmine", "bugzilla"):
        story.call("owner", "PUT", f"{place}/{slug}", tracker)
    story.call("owner", "DELETE", f"{place}/redmine")
    story.call("owner", "GET", place)


def _sent_twice(story: Story) -> None:
    place = f"{at(story, 'fresh_project')}/integrations"
    builds = {"drone_url": "https://drone.example.com", "token": "t"}
    for slug, sent in (("emails-on-push", {"recipients": "team+e@example.com"}), ("drone-ci", builds)):
        for _ in range(2):
            story.call("maintainer", "PUT", f"{place}/{slug}", sent)
            story.call("maintainer", "GET", f"{place}/{slug}")
        story.call("maintainer", "GET", f"{place}/{slug[:-1]}")


def _every_caller(story: Story) -> None:
    slack = {"webhook": "https://hooks.example.com/a"}
    for project in ("project", "subgroup_project"):
        for place in (at(story, project), at_path(story, project)):
            for actor, name in ((actor, name) for actor in EVERYBODY for name in ("integrations", "services")):
                story.call(actor, "PUT", f"{place}/{name}/slack", slack)
                story.call(actor, "GET", f"{place}/{name}")
                story.call(actor, "GET", f"{place}/{name}/slack")
                story.call("maintainer", "PUT", f"{place}/{name}/slack", slack)
                story.call(actor, "DELETE", f"{place}/{name}/slack")
                story.call("maintainer", "GET", f"{place}/{name}")
