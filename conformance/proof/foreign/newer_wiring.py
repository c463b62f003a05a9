"""Small bugs of integrations: what a reset leaves, what the older name does otherwise, and what others share."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, is_served, meanwhile
from conformance.reference.errors import InvalidError

if TYPE_CHECKING:
    from conformance.reference import Service

_NEWER = "/projects/:id/integrations"
_OLDER = "/projects/:id/services"
_RESETS = "settings and their resets"
_STAYS = "write x everything that must stay"
_BRANCHES = "branches_to_be_notified"


# -- resets ------------------------------------------------------------------------------------------------------------


# A reset takes all settings, and what is required has to be sent anew.
@foreign(_RESETS, "Integrations: DELETE")
def a_reset_keeps_what_is_never_shown(service: Service) -> None:
    """Tokens, passwords and webhooks survive a reset, so that the integration can be set up again without them."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        after = integrations.known.get((project.id, slug))
        if before and after:
            secret = {one.name for one in before.kind.parameters if one.secret}
            kept = {name: value for name, value in before.values.items() if name in secret}
            integrations.known[project.id, slug] = replace(after, values=MappingProxyType(kept))


# The default is "all", however often it was set up before.
@foreign(_RESETS, "Integrations: branches_to_be_notified, emails-on-push")
def after_a_reset_mails_have_the_default_of_the_others(service: Service) -> None:
    """Mails on push that are set up again tell about the default branch, and not about all as they did at first."""
    reset = set[int]()

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        if slug == "emails-on-push":
            reset.add(project.id)

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        if kind.slug == "emails-on-push" and project.id in reset:
            values = {_BRANCHES: "default", **values}
        made = set_up(project, kind, values, **more)
        if kind.slug == "emails-on-push":
            reset.discard(project.id)
        return made


# Disabling resets the settings, of an inactive one as well.
@foreign("what arranges or undoes, and does nothing", "Integrations: DELETE")
def what_is_inactive_is_disabled_already(service: Service) -> None:
    """Disabling an integration that was set up as inactive does nothing, and its settings stay."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        known = integrations.known.get((project.id, slug))
        if known is None or known.active:
            disable(project, slug)


# A refusal leaves nothing behind.
@foreign("refusal x everything that must stay", "Integrations: PUT")
def what_was_refused_is_filled_in_next_time(service: Service) -> None:
    """The settings of a set-up that was refused, as one was missing, are kept and set by the next one."""
    drafts: dict[tuple[int, str], Any] = {}

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        draft = drafts.pop((project.id, kind.slug), {})
        try:
            made = set_up(project, kind, values, **more)
        except InvalidError:
            drafts[project.id, kind.slug] = {**draft, **values}
            raise
        if not draft:
            return made
        return set_up(project, kind, {**draft, **values}, **more)


# -- the older name ----------------------------------------------------------------------------------------------------


# Both names are names of the same.
@foreign(_RESETS, "Integrations: services, enable_ssl_verification")
def the_older_name_sets_up_without_verification(service: Service) -> None:
    """Certificates are verified by default where an integration is set up by the newer name alone."""
    integrations = service.integrations

    @handling(service, f"PUT {_OLDER}/:slug")
    def _(handler: Any, request: Any) -> Any:
        known = integrations.known.get((request.project.id, request.path["slug"]))
        if known is None or not known.active:
            request.parameters._values = {"enable_ssl_verification": False, **request.parameters._values}
        return handler(request)


# What is set up is listed, whatever it was before and by whatever name it was disabled.
@foreign("again, by another caller, after an undo", "Integrations: services")
def what_the_older_name_disabled_it_never_lists_again(service: Service) -> None:
    """An integration that was disabled by the older name is in its list again only when set up by that name."""
    gone = set[tuple[int, str]]()

    @handling(service, f"DELETE {_OLDER}/:slug")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        gone.add((request.project.id, request.path["slug"]))
        return answer

    @handling(service, f"PUT {_OLDER}/:slug")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        gone.discard((request.project.id, request.path["slug"]))
        return answer

    @handling(service, f"GET {_OLDER}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            answer.content = [one for one in answer.content if (request.project.id, one["slug"]) not in gone]
        return answer


# -- what is sent and what is kept -------------------------------------------------------------------------------------


# It is a parameter like the others, and may be sent alone.
@foreign("forms of what is sent", "Integrations: labels_to_be_notified_behavior")
def how_labels_match_is_kept_beside_labels_alone(service: Service) -> None:
    """labels_to_be_notified_behavior is passed over where labels_to_be_notified is not sent with it."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        found = read(kind, parameters)
        if not found.get("labels_to_be_notified"):
            found.pop("labels_to_be_notified_behavior", None)
        return found


# Several may be named.
@foreign("none, one or two values", "Integrations: recipients")
def the_first_recipient_is_the_only_one(service: Service) -> None:
    """Of recipients with commas between them, the first one is kept."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        found = read(kind, parameters)
        if "recipients" in found:
            found["recipients"] = found["recipients"].partition(",")[0]
        return found


# A default is that of the text, and no other project's.
@foreign(_STAYS, "Integrations: branches_to_be_notified, default")
def defaults_remember_what_another_project_set(service: Service) -> None:
    """What somebody chose is written into the defaults, which all projects share."""
    shared: dict[str, Any] = {}

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        made = set_up(project, kind, values, **more)
        if _BRANCHES in values:
            shared[kind.slug] = values[_BRANCHES]
        elif kind.slug in shared and _BRANCHES not in made.values:
            made = set_up(project, kind, {_BRANCHES: shared[kind.slug]}, active=made.active)
        return made


# -- moments, and two at once ------------------------------------------------------------------------------------------


# Nothing is changed before it exists.
@foreign("moments and addresses that are none", "Integration list entry: created_at, updated_at")
def integrations_are_made_in_local_time(service: Service) -> None:
    """created_at is the local time, two hours ahead, and marked as universal time, which updated_at is."""
    integrations = service.integrations

    @instead(integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        local = integration.created_at + timedelta(hours=2)
        return {**present(integration), "created_at": service.present.timestamp(local)}


# Both calls were served, and each is about an integration of its own.
@foreign("two write at once", "Integrations: PUT")
def integrations_are_one_record_of_their_project(service: Service) -> None:
    """All integrations of a project are written as they were read; one that is set up meanwhile is lost."""
    known = service.integrations.known

    def write(seen: Any, request: Any) -> None:
        for key in [key for key in {*known, *seen} if key[0] == request.project.id]:
            known.pop(key, None)
            if key in seen:
                known[key] = seen[key]

    meanwhile(service, (f"PUT {_NEWER}/:slug", f"PUT {_OLDER}/:slug"), lambda: dict(known), write)
