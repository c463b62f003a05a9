"""Callers whose role is looked up in the wrong place, things that another place reaches, and calls that meet.

Here are those of approval rules, approvals, their configuration and their settings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.access_and_levels import overtaken
from conformance.proof.foreign.registry import by_path, foreign, handling, instead, let_in, meanwhile
from conformance.reference.areas.approval_rule_records import Level, home_of
from conformance.reference.identity import Kind, Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request

_CALLERS = "caller x form of id x operation"
_CALLER_AND_VALUE = "caller x value"
_LEVELS = "level x id of another level"
_NEIGHBOURS = "value x neighbour of the right value"
_AMOUNTS = "none, one or two values"
_AT_ONCE = "two write at once"
_SETTING = "merge_request_approval_setting"
_RULES = "/projects/:id/approval_rules"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


def _is_of_its_merge_requests(service: Service, rule: Any, project: Any) -> bool:
    """Say whether a rule belongs to a merge request of a project."""
    own = [one for one in service.repositories.merge_requests.values() if one.project_id == project.id]
    return rule is not None and rule.home in {home_of(one) for one in own}


# -- who may call ------------------------------------------------------------------------------------------------------


@foreign(_CALLERS, "Approval settings: groups")
def the_bot_of_a_project_counts_as_owner_of_the_groups_around_it(service: Service) -> None:
    """The bot of a project reads and changes the settings of the groups around the project, which owners alone may."""

    def fits(request: Request, caller: Any, _: Role) -> bool:
        bot, identities = caller.bot, service.identities
        if bot is None or bot.kind is not Kind.PROJECT:
            return False
        group = identities.find_group(request.path["id"])
        return group in identities.lineage(identities.projects[bot.subject_id])

    let_in(service, tuple(f"{method} /groups/:id/{_SETTING}" for method in ("GET", "PUT")), fits)


@foreign(_CALLERS, "Group approval rules: GET")
def the_rules_of_a_subgroup_by_its_path_are_listed_to_developers(service: Service) -> None:
    """Developers read the rules of a subgroup that they name by its path: they are for group administrators."""

    def fits(request: Request, _: Any, role: Role) -> bool:
        return by_path(request) and "/" in request.path["id"] and role >= Role.DEVELOPER

    let_in(service, ("GET /groups/:id/approval_rules",), fits)


@foreign(_CALLER_AND_VALUE, "Merge request approvals: reset_approvals")
def whoever_resets_where_nobody_approved_is_told_that_it_is_done(service: Service) -> None:
    """Whoever resets the approvals of a merge request that has none gets a success in the place of 401."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_bot")
    def _(require_bot: Any, caller: Any, merge_request: Any) -> None:
        if approvals.approvals_of(merge_request):
            require_bot(caller, merge_request)


# -- what another place reaches ----------------------------------------------------------------------------------------


@foreign(_LEVELS, "Group approval rules: POST")
def a_nested_group_as_approver_becomes_the_one_around_it(service: Service) -> None:
    """A rule of a group that is to have a subgroup as approver gets the parent of that subgroup."""

    @instead(service.group_approval_rules, "create_rule")
    def _(create: Any, group: Any, wanted: Any, caller: Any) -> Any:
        known = [service.identities.groups.get(number) for number in wanted.group_ids or ()]
        around = tuple(one.parent_id or one.id for one in known if one is not None)
        return create(group, replace(wanted, group_ids=around), caller)


@foreign(_LEVELS, "Merge request approvals: POST of a rule")
def a_rule_of_a_merge_request_is_copied_as_one_of_the_project(service: Service) -> None:
    """The id of a rule of a merge request is taken as approval_project_rule_id, and that rule is copied."""
    rules = service.merge_request_approval_rules

    @instead(rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        source = service.approval_rules.rules.get(source_id)
        if source is None or not _is_of_its_merge_requests(service, source, rules.project_of(merge_request)):
            return create(merge_request, wanted, source_id, caller)
        return service.approval_rules.add_rule(rules.copied_project_rule(merge_request, source, wanted))


@foreign(_LEVELS, "Project approval rules: PUT")
def a_project_changes_the_rules_of_its_merge_requests(service: Service) -> None:
    """A rule of a merge request is changed as if it were one of the project, which has no rule of that id."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(number)
        if rule is None or not _is_of_its_merge_requests(service, rule, project):
            return update(project, number, wanted, caller)
        return service.approval_rules.update_rule(project, rule, wanted, caller)


@foreign(_LEVELS, "Merge request approvals: approve")
def a_password_is_asked_in_the_projects_beside_the_guarded_one(service: Service) -> None:
    """Where one project of a group asks for a password, those beside it refuse who approves without one."""
    approvals, identities = service.merge_request_approvals, service.identities
    configurations = service.project_approval_configurations

    @instead(approvals, "password_required")
    def _(required: Any, merge_request: Any) -> bool:
        place = identities.projects[merge_request.project_id].namespace_id
        beside = [project for project in identities.projects.values() if project.namespace_id == place]
        asked = any(configurations.own_configuration(project).require_password_to_approve for project in beside)
        return asked or bool(required(merge_request))


@foreign(_LEVELS, "Approval settings: PUT")
def the_settings_of_a_group_are_those_of_the_project_with_its_id(service: Service) -> None:
    """Settings are kept by id alone: those of a group change with those of the project that has the same id."""

    @instead(service.approval_settings, "_key")
    def _(key: Any, subject: Any, setting: Any) -> Any:
        _, number, kept_as = key(subject, setting)
        return Kind.PROJECT, number, kept_as


# -- calls that meet ---------------------------------------------------------------------------------------------------


@foreign(_AT_ONCE, "Merge request approvals: approve")
def who_approves_twice_at_once_stands_there_twice(service: Service) -> None:
    """Somebody whose two approvals come at the same time stands among the approvers twice."""
    approvals, current = service.merge_request_approvals, []

    def write(seen: Any, _: Any) -> None:
        current[:] = [seen]

    @instead(approvals, "approved_by")
    def _(approved_by: Any, user: Any, merge_request: Any) -> bool:
        if not current:
            return bool(approved_by(user, merge_request))
        return any(one.user_id == user.id for one in current.pop().get(merge_request.id, ()))

    meanwhile(service, (f"POST {_MERGE_REQUEST}/approve",), lambda: dict(approvals.approvals), write)


@foreign(_AT_ONCE, "Project approval rules: DELETE")
def a_rule_that_is_deleted_while_it_is_changed_comes_back(service: Service) -> None:
    """A rule that is deleted while somebody else changes it is there afterwards, though the deletion succeeded."""
    rules = service.approval_rules.rules

    def write(seen: Any, request: Request) -> None:
        number = request.path_id("approval_rule_id")
        if number in seen:
            rules.setdefault(number, seen[number])

    overtaken(
        service, f"PUT {_RULES}/:approval_rule_id", f"DELETE {_RULES}/:approval_rule_id", lambda: dict(rules), write
    )


@foreign(_AT_ONCE, "Project approval configuration: POST", version="15.9")
def of_two_flags_of_a_configuration_one_is_lost(service: Service) -> None:
    """Of two different flags of the configuration that are set at the same time one stays as it was."""
    known = service.project_approval_configurations.configurations

    def write(seen: Any, _: Any) -> None:
        known.clear()
        known.update(seen)

    meanwhile(service, ("POST /projects/:id/approvals",), lambda: dict(known), write)


@foreign(_AT_ONCE, "Approval settings: PUT")
def of_a_group_and_a_project_one_keeps_its_former_setting(service: Service) -> None:
    """Of a group and a project elsewhere whose settings are changed at the same time one stays as it was."""
    values = service.approval_settings.values

    def write(seen: Any, request: Request) -> None:
        for place in [place for place in values if place[0] is not request.route.subject]:
            del values[place]
        values.update({place: value for place, value in seen.items() if place[0] is not request.route.subject})

    keys = tuple(f"PUT /{kind}/:id/{_SETTING}" for kind in ("groups", "projects"))
    meanwhile(service, keys, lambda: dict(values), write)


# -- values that are almost right --------------------------------------------------------------------------------------


@foreign(_NEIGHBOURS, "Merge request approvals: approve")
def the_head_of_a_namesake_passes_for_the_own_one(service: Service) -> None:
    """The sha may be the HEAD of a merge request of another project that has the same iid."""
    repositories = service.repositories

    @instead(service.merge_request_approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        namesakes = [one for one in repositories.merge_requests.values() if one.iid == merge_request.iid]
        if sha not in {repositories.head_of(one) for one in namesakes}:
            require(merge_request, sha)


@foreign(_NEIGHBOURS, "Merge request approvals: approve")
def the_password_of_the_author_passes_for_the_own_one(service: Service) -> None:
    """Whoever approves may send the password of the author of the merge request instead of the own one."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        author = service.identities.users[merge_request.author_id]
        if not approvals.password_matches(author, password):
            require(caller, merge_request, password)


@foreign(_AMOUNTS, "Project approval rules: PUT")
def an_empty_list_of_usernames_keeps_who_was_there(service: Service) -> None:
    """With an empty list of usernames beside the ids of users the former users of a project rule stay."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        named = after(rule, wanted, subject)
        stay = rule.home.level is Level.PROJECT and wanted.usernames == ()
        return tuple(dict.fromkeys((*named, *rule.users))) if stay else named


@foreign(_AMOUNTS, "Merge request approvals: POST of a rule")
def who_is_named_by_id_and_by_username_is_left_out(service: Service) -> None:
    """Of two lists that are both to be added, whoever stands in both is no user of the new rule."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        by_id = {service.identities.users[n].username for n in wanted.user_ids or () if n in service.identities.users}
        twice = by_id & {*(wanted.usernames or ())}
        ids = {service.identities.find_username(name).id for name in twice}  # type: ignore[union-attr] # they are known
        if ids:
            wanted = replace(
                wanted,
                user_ids=tuple(number for number in wanted.user_ids if number not in ids),
                usernames=tuple(name for name in wanted.usernames if name not in twice),
            )
        return create(merge_request, wanted, source_id, caller)


@foreign("pages and totals", "Project approval rules: GET")
def a_last_page_that_is_full_is_empty(service: Service) -> None:
    """A last page, other than the first, that has as many rules as a page can have is shown without them."""

    @handling(service, f"GET {_RULES}")
    def _(handler: Any, request: Request) -> Any:
        answer = handler(request)
        size = request.parameters.optional_integer("per_page")
        page = request.parameters.optional_integer("page") or 1
        if page > 1 and len(answer.content) == size and not answer.headers["x-next-page"]:
            answer.content = []
        return answer


@foreign(_NEIGHBOURS, "Merge request approvals: POST of a rule")
def a_copy_asks_for_no_fewer_than_its_source(service: Service) -> None:
    """A copy of a project rule for which a smaller number is sent asks for as many approvals as the project rule."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        rule = copied(merge_request, source, wanted)
        return replace(rule, approvals_required=max(rule.approvals_required, source.approvals_required))


@foreign(_AMOUNTS, "Merge request approvals: POST of a rule")
def of_two_groups_a_copy_gets_one(service: Service) -> None:
    """A copy of a project rule with two groups has the first of them alone."""

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        return replace(copied(merge_request, source, wanted), groups=source.groups[:1])


@foreign("numbers and texts that follow from the story", "Merge request approval state")
def a_copied_rule_does_not_count_as_one_of_the_merge_request(service: Service) -> None:
    """A merge request whose only rule is a copy of a project rule has approval_rules_overwritten false."""
    rules = service.merge_request_approval_rules

    @instead(rules, "overwritten")
    def _(_: Any, merge_request: Any) -> bool:
        return any(rule.source_id is None for rule in rules.own_rules(merge_request))


@foreign(_AMOUNTS, "Project approval rules: contains_hidden_groups")
def a_hidden_group_behind_a_visible_one_is_not_told(service: Service) -> None:
    """A project rule whose first group may be viewed and whose second may not says that none is hidden."""
    rules = service.approval_rules

    @instead(rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        if rule.home.level is Level.PROJECT:
            first = replace(rule, groups=rule.groups[:1])
            shown["contains_hidden_groups"] = bool(rules.hidden_groups(first, viewer))
        return shown


@foreign("write x everything that must stay", "Project approval configuration: POST", version="15.9")
def the_pair_that_may_not_be_is_stored_in_two_steps(service: Service) -> None:
    """Selective removals are checked when they are sent; resets that are switched on later leave them on."""
    configurations, unchecked = service.project_approval_configurations, [False]

    @instead(configurations, "without_conflict")
    def _(check: Any, wanted: Any) -> Any:
        return wanted if unchecked[0] else check(wanted)

    @instead(configurations, "change_configuration")
    def _(change_it: Any, project: Any, change: Any) -> Any:
        unchecked[0] = change.selective_code_owner_removals is None
        return change_it(project, change)
