"""Small bugs in the rules of projects and groups, by whoever had not seen the tests: what a tired developer does."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.identity import Kind, Role

if TYPE_CHECKING:
    from conformance.reference import Service

_NAMED = "caller x form of id x operation"
_CALLER = "caller x value"
_NEIGHBOUR = "value x neighbour of the right value"
_BESIDE = "forms of what is sent"
_STORY = "numbers and texts that follow from the story"
_COUNT = "none, one or two values"
_AGAIN = "again, by another caller, after an undo"
_NOTHING = "what arranges or undoes, and does nothing"
_STAYS = "write x everything that must stay"
_PAGES = "pages and totals"

_RULES = "/projects/:id/approval_rules"
_ONE_RULE = f"{_RULES}/:approval_rule_id"
_GROUP_RULES = "/groups/:id/approval_rules"


# -- rules of projects -------------------------------------------------------------------------------------------------


@foreign(_BESIDE, "Project approval rules: user_ids, usernames")
def whom_an_update_keeps_by_username_is_removed(service: Service) -> None:
    """An update removes the former users whose ids are not in user_ids, also those whose usernames were sent."""
    rules = service.approval_rules

    @instead(rules, "users_after")
    def _(users_after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        after = users_after(rule, wanted, subject)
        if wanted.user_ids is None:
            return after
        return tuple(number for number in after if number in wanted.user_ids or number not in rule.users)


@foreign(_NOTHING, "Project approval rules: applies_to_all_protected_branches, protected_branch_ids")
def branches_are_ignored_while_the_flag_goes_off(service: Service) -> None:
    """Whether branches count is asked of the rule as it was, and not as the update makes it."""
    rules = service.approval_rules

    @instead(rules, "branches_after")
    def _(branches_after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.applies_to_all_protected_branches:
            return rule.protected_branches
        return branches_after(rule, wanted, subject)


@foreign(_NAMED, "Common conventions: :id; Project approval rules: GET")
def rules_read_by_path_are_those_of_before(service: Service) -> None:
    """Lists are kept by the text of the path, and a write forgets only the list of the text that it was called with."""
    kept: dict[tuple[Any, ...], Any] = {}

    @handling(service, f"GET {_RULES}")
    def _(handler: Any, request: Any) -> Any:
        key = request.path["id"], request.caller.id, request.query
        if key not in kept:
            kept[key] = handler(request)
        return kept[key]

    @handling(service, f"POST {_RULES}", f"PUT {_ONE_RULE}", f"DELETE {_ONE_RULE}")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in kept if key[0] == request.path["id"]]:
            del kept[key]
        return handler(request)


@foreign(_AGAIN, "Project approval rules: GET one")
def a_second_reader_sees_the_rule_of_before(service: Service) -> None:
    """One rule is kept for each reader, and whoever changes it forgets only the own copy."""
    kept: dict[tuple[int, str], Any] = {}

    @handling(service, f"GET {_ONE_RULE}")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.path["approval_rule_id"]
        if key not in kept:
            kept[key] = handler(request)
        return kept[key]

    @handling(service, f"PUT {_ONE_RULE}", f"DELETE {_ONE_RULE}")
    def _(handler: Any, request: Any) -> Any:
        kept.pop((request.caller.id, request.path["approval_rule_id"]), None)
        return handler(request)


@foreign(_CALLER, "Approval rule: contains_hidden_groups")
def hidden_groups_are_told_as_the_first_reader_saw_it(service: Service) -> None:
    """Whether a rule has hidden groups is worked out for the first who looks, and told to everybody."""
    kept: dict[tuple[int, Any], bool] = {}

    @instead(service.approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        shown["contains_hidden_groups"] = kept.setdefault((rule.id, rule.groups), shown["contains_hidden_groups"])
        return shown


@foreign(_STORY, "Approval rule: name")
def names_are_escaped_by_an_update(service: Service) -> None:
    """An update stores the name of a rule as it would stand in a page: an ampersand becomes an entity."""

    @instead(service.approval_rules, "update_rule")
    def _(update_rule: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        if wanted.name is not None:
            wanted = replace(wanted, name=escape(wanted.name))
        return update_rule(subject, rule, wanted, caller)


@foreign(_COUNT, "Approval rule: groups; group_ids")
def groups_inside_each_other_become_one(service: Service) -> None:
    """Of a group and a group inside it only the outer one is stored, as it holds the members of both."""
    rules = service.approval_rules

    @instead(rules, "groups_named")
    def _(groups_named: Any, wanted: Any, caller: Any) -> Any:
        named = groups_named(wanted, caller)
        if not named:
            return named
        known = service.identities

        def lies_in_another(number: int) -> bool:
            return any(group.id in named for group in known.lineage(known.groups[number])[1:])

        return tuple(number for number in named if not lies_in_another(number))


@foreign(_COUNT, "Approval rule: users; user_ids, group_ids")
def users_of_a_named_group_are_left_out(service: Service) -> None:
    """A user who is a member of a group that the same call names is not stored as a user: it would be twice."""
    rules = service.approval_rules

    @instead(rules, "users_named")
    def _(users_named: Any, wanted: Any, subject: Any) -> Any:
        named = users_named(wanted, subject)
        if not named or not wanted.group_ids:
            return named
        known = service.identities
        groups = [known.groups[number] for number in wanted.group_ids if number in known.groups]
        return tuple(n for n in named if not any((Kind.GROUP, group.id, n) in known.roles for group in groups))


@foreign(_COUNT, "Project approval rules: group_ids optional")
def who_names_no_groups_gets_those_of_the_last_rule(service: Service) -> None:
    """The default of group_ids is a list that every creation shares, and that holds what was sent last."""
    last: list[tuple[int, ...]] = [()]

    @instead(service.project_approval_rules, "create_rule")
    def _(create_rule: Any, project: Any, wanted: Any, caller: Any) -> Any:
        if wanted.group_ids is None:
            return create_rule(project, replace(wanted, group_ids=last[0]), caller)
        last[0] = wanted.group_ids
        return create_rule(project, wanted, caller)


# -- rules of groups ---------------------------------------------------------------------------------------------------


@foreign(_NAMED, "Authentication: group approval rules, group administrators")
def who_owns_some_group_administers_every_visible_one(service: Service) -> None:
    """Whether the caller administers groups is asked, and not whether this group is among them."""
    keys = {f"GET {_GROUP_RULES}", f"POST {_GROUP_RULES}", f"PUT {_GROUP_RULES}/:approval_rule_id"}

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        held = service.identities.roles.items()
        owns = any((kind, user, role) == (Kind.GROUP, caller.id, Role.OWNER) for (kind, _, user), role in held)
        if not (owns and route.key in keys):
            require(route, caller, subject)


@foreign(_PAGES, "Group approval rules: paginated")
def the_second_page_counts_from_the_other_end(service: Service) -> None:
    """Pages behind the first one come from the list in the other order, so entries are twice in a walk or missing."""

    @handling(service, f"GET {_GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        page = request.parameters.optional_integer("page")
        if page is None or page <= 1:
            return handler(request)
        groups = service.group_approval_rules
        items = groups.rules(request.group)[::-1]
        return request.collection(items, lambda rule: groups.present(rule, request.caller))


@foreign(_STAYS, "Group approval rules: PUT")
def rules_of_the_same_name_in_another_group_change_too(service: Service) -> None:
    """An update is made by the name of the rule: what another group calls the same gets the same number."""

    @handling(service, f"PUT {_GROUP_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        known = service.approval_rules.rules
        before = known.get(request.path_id("approval_rule_id"))
        answer = handler(request)
        number = request.parameters.optional_integer("approvals_required")
        if before and number is not None and is_served(answer):
            for other in list(known.values()):
                if other.home.level is Level.GROUP and other.name == before.name:
                    known[other.id] = replace(other, approvals_required=number)
        return answer
