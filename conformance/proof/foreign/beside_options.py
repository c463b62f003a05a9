"""Small bugs behind what may be sent beside something, behind another name of a project, and behind the first of two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, handling, instead, is_served

if TYPE_CHECKING:
    from conformance.reference import Service

_BESIDE = "forms of what is sent"
_NAMED = "caller x form of id x operation"
_SECOND = "none, one or two values"
_RULES = "/projects/:id/approval_rules"
_OWN_RULES = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"


# -- beside something that may be sent ---------------------------------------------------------------------------------


# Both parameters of an update are required, whatever else it says.
@foreign(_BESIDE, "Project approval rules: PUT, approvals_required")
def usernames_take_the_place_of_a_number(service: Service) -> None:
    """An update that names approvers by username need not say how many approvals are required."""

    @handling(service, f"PUT {_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if "usernames" in values and "approvals_required" not in values:
            request.parameters._values = {**values, "approvals_required": 1}
        return handler(request)


# The allowed values of intent are the same for every project.
@foreign(_BESIDE, "Code completion: intent and project_path")
def completions_for_a_project_take_any_intent(service: Service) -> None:
    """Where a project is named, its path is looked at instead of intent."""

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("project_path"):
            request.parameters._values = {name: value for name, value in values.items() if name != "intent"}
        return handler(request)


# What the system made is changed by no parameter.
@foreign(_BESIDE, "Merge request approvals: Rules, 3")
def rules_of_the_system_take_another_name(service: Service) -> None:
    """A rule of code owners is protected from another number of approvals, and not from another name alone."""
    rules = service.merge_request_approval_rules

    @handling(service, f"PUT {_OWN_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        if set(request.parameters._values) != {"name"}:
            return handler(request)
        kept, rules.require_changeable = rules.require_changeable, lambda _: None
        try:
            return handler(request)
        finally:
            rules.require_changeable = kept


# The list is as long as is asked for; which page is wanted is another question.
@foreign(_BESIDE, "Merge request approvals: approval_rules, per_page")
def only_numbered_pages_have_a_length(service: Service) -> None:
    """per_page counts only beside page: without it the rules of a merge request come all at once."""

    @handling(service, f"GET {_OWN_RULES}")
    def _(handler: Any, request: Any) -> Any:
        if b"page=" not in request.query.replace(b"per_page=", b""):
            request.query = b""
        return handler(request)


# -- another name ------------------------------------------------------------------------------------------------------


# Both name the same project, whose configuration is one.
@foreign(_NAMED, "Project approval configuration: GET by path", version="15.11")
def configurations_are_remembered_by_path(service: Service) -> None:
    """Reading by the path shows what it showed first, until somebody changes the configuration by the path as well."""
    known: dict[str, Any] = {}

    @handling(service, "GET /projects/:id/approvals", "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if not by_path(request) or not is_served(answer):
            return answer
        if request.method == "POST":
            known.pop(request.path["id"], None)
            return answer
        answer.content = known.setdefault(request.path["id"], answer.content)
        return answer


# What a project is named by changes nothing about where its settings are kept.
@foreign(_NAMED, "Approval settings: PUT for a project by path")
def settings_by_path_reach_the_group(service: Service) -> None:
    """An update of a project that is named by its path is stored for the group around it as well."""
    settings = service.approval_settings

    @handling(service, "PUT /projects/:id/merge_request_approval_setting")
    def _(handler: Any, request: Any) -> Any:
        change = settings.change

        def both(subject: Any, wanted: Any) -> None:
            change(subject, wanted)
            if hasattr(subject, "namespace_id"):
                change(service.identities.namespace_of(subject), wanted)

        settings.change = both if by_path(request) else change
        try:
            return handler(request)
        finally:
            settings.change = change


# 404 is for what does not exist: a group that is not there has no projects.
@foreign(_NAMED, "Code completion: enabled, 404")
def the_check_knows_projects_by_their_last_name(service: Service) -> None:
    """The check looks at the last part of a path that it does not know, whatever group stands in front."""
    identities = service.identities

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if "/" in path and identities.find_project(path) is None:
            like = (one for one in identities.projects.values() if one.path == path.rpartition("/")[2])
            path = next((one.full_path for one in like), path)
        check(caller, path)


# -- the second, the third ---------------------------------------------------------------------------------------------


# A sha that differs conflicts, however many have approved.
@foreign(_SECOND, "Merge request approvals: approve, sha")
def heads_are_not_compared_for_the_third_approver(service: Service) -> None:
    """Once two have approved, the sha that others send is not looked at."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: str | None) -> None:
        if len(approvals.approvals_of(merge_request)) < 2:
            require(merge_request, sha)


# The users and groups of the project rule are copied, however many there are.
@foreign(_SECOND, "Merge request approvals: Rules, 1")
def copies_take_one_group(service: Service) -> None:
    """A copy of a project rule has the first of its groups alone."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        copy = copied(merge_request, source, wanted)
        return replace(copy, groups=copy.groups[:1])


# The state shows the rules as they are.
@foreign("again, by another caller, after an undo", "Merge request approval state: rules")
def the_state_shows_names_as_they_were(service: Service) -> None:
    """The approval state goes on showing the name that a rule was created with."""
    rules, names = service.merge_request_approval_rules, dict[int, str]()

    @instead(rules, "create_rule")
    def _(create: Any, *values: Any) -> Any:
        made = create(*values)
        names[made.id] = made.name
        return made

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        return {**shown, "name": names.get(rule.id, shown["name"])}


# A text is kept as it was sent.
@foreign("value x neighbour of the right value", "Integrations: channels")
def channels_lose_their_capitals(service: Service) -> None:
    """The names of channels are stored in small letters."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        channels = {name: value for name, value in values.items() if "channel" in name and isinstance(value, str)}
        small = {name: value.lower() for name, value in channels.items()}
        return keep(project, kind, {**values, **small}, **more)
