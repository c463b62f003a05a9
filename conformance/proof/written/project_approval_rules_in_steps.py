"""Faults of projects' rules that only a later step of a story shows: for other readers, by other forms, at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, around, beforehand, handling, is_number, sent, told_otherwise
from conformance.proof.written.approval_rules import others_of, stored
from conformance.proof.written.approvals_neighbours import AT_ONCE, remembered_for_the_reader
from conformance.reference.areas.approval_rule_records import Level, RuleType
from conformance.reference.errors import NotFoundError, RejectedError, not_found
from conformance.reference.http import ok
from conformance.reference.identity import Visibility
from conformance.reference.parameters import read_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

RULES = "/projects/:id/approval_rules"
RULE = f"{RULES}/:approval_rule_id"


def called_otherwise(area: Any) -> None:
    """Show the rules of an area that are of type any_approver with a type that nobody has heard of."""

    def call(shown: dict[str, Any], rule: Any, _: Any) -> Any:
        return {**shown, "rule_type": "everybody"} if rule.rule_type is RuleType.ANY_APPROVER else shown

    afterwards(area, "present", call)


def overlapping(service: Service, key: str) -> None:
    """Let each page of a list begin with the last entry of the page before."""

    def make(handler: Callable[..., Any]) -> Any:
        def paging(request: Request) -> Any:
            asked = read_query(request.query)
            page, length = (int(str(asked.get(name, 1))) for name in ("page", "per_page"))
            if length <= 1:
                return handler(request)
            request.query = b"page=1&per_page=100"
            response = handler(request)
            begin = (page - 1) * (length - 1)
            response.content = response.content[begin : begin + length]
            return response

        return paging

    handling(service, key, make)


@fault("project-approval-rules.versions.pagination")
def pages_of_project_rules_overlap(service: Service) -> None:
    """Each page of a project's rules begins with the last rule of the page before."""
    overlapping(service, f"GET {RULES}")


# -- creation ----------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.create.listed")
def a_new_rule_takes_the_place_of_the_newest(service: Service) -> None:
    """A new rule of a project gets the number of the newest regular rule, and its place."""

    def take_the_place(rule: Any, *_: Any) -> Any:
        others = [one for one in others_of(service, rule) if one.rule_type is RuleType.REGULAR]
        if not others:
            return None
        del stored(service)[rule.id]
        moved = stored(service)[others[-1].id] = replace(rule, id=others[-1].id)
        return moved

    afterwards(service.project_approval_rules, "create_rule", take_the_place)


@fault("project-approval-rules.create.any-approver")
def any_approver_is_called_otherwise(service: Service) -> None:
    """A project's rule of type any_approver is shown with a type that nobody has heard of."""
    called_otherwise(service.project_approval_rules)


@fault("project-approval-rules.create.user-ids-and-usernames")
def an_empty_list_of_usernames_outweighs_numbers(service: Service) -> None:
    """A creation that sends an empty list of usernames names no user at all."""

    def empty(wanted: Any) -> Any:
        return replace(wanted, user_ids=()) if wanted.usernames == () else wanted

    told_otherwise(service.project_approval_rules, "create_rule", 1, empty)


def _left_over(service: Service, name: str) -> None:
    """Add to a new rule of a project those whom the creation before has named."""
    last: list[tuple[int, ...]] = [()]

    def make(create: Callable[..., Any]) -> Any:
        def creating(project: Any, wanted: Any, caller: Any) -> Any:
            named = getattr(wanted, name) or ()
            both = (*named, *(one for one in last[0] if one not in named))
            last[0] = named
            return create(project, replace(wanted, **{name: both}), caller)

        return creating

    around(service.project_approval_rules, "create_rule", make)


@fault("project-approval-rules.create.user-ids")
def a_new_rule_also_has_the_users_of_the_one_before(service: Service) -> None:
    """A new rule also names the users of the one that was created before it."""
    _left_over(service, "user_ids")


@fault("project-approval-rules.create.group-ids")
def a_new_rule_also_has_the_groups_of_the_one_before(service: Service) -> None:
    """A new rule also names the groups of the one that was created before it."""
    _left_over(service, "group_ids")


# -- groups inside each other ------------------------------------------------------------------------------------------


def _around(service: Service, number: int) -> list[int]:
    """Return the numbers of the groups around a group."""
    known = service.identities.groups
    return [one.id for one in service.identities.lineage(known[number]) if one.id != number] if number in known else []


def _outermost_only(service: Service, wanted: Any) -> Any:
    """Leave out groups that lie in, or beside, another one that is named."""
    named = wanted.group_ids or ()
    inner = {one for one in named if _around(service, one)}
    kept = [one for one in named if one not in inner] or [one for one in named if one in inner][:1]
    return replace(wanted, group_ids=tuple(kept)) if len(named) > 1 else wanted


@fault("project-approval-rules.create.group-ids")
def groups_around_are_named_too(service: Service) -> None:
    """A new rule that names a group inside another one names the groups around it as well."""

    def with_those_around(wanted: Any) -> Any:
        named = wanted.group_ids or ()
        return replace(wanted, group_ids=(*named, *(one for each in named for one in _around(service, each))))

    told_otherwise(service.project_approval_rules, "create_rule", 1, with_those_around)


@fault("project-approval-rules.create.group-ids")
def groups_inside_others_are_left_out_of_new_rules(service: Service) -> None:
    """A new rule that names a group and one inside it, or several such groups, names only one of them."""
    told_otherwise(service.project_approval_rules, "create_rule", 1, lambda wanted: _outermost_only(service, wanted))


@fault("project-approval-rules.update.group-ids")
def groups_inside_others_are_left_out_of_changed_rules(service: Service) -> None:
    """A change that names a group and one inside it, or several such groups, names only one of them."""
    told_otherwise(service.project_approval_rules, "update_rule", 2, lambda wanted: _outermost_only(service, wanted))


# -- change ------------------------------------------------------------------------------------------------------------


def _refusing_changes(service: Service, when: Callable[[Any], bool]) -> None:
    """Refuse some changes of rules of projects."""

    def refuse(_: Any, __: int, wanted: Any, ___: Any) -> None:
        if when(wanted):
            raise RejectedError("is not taken", parameter="name")

    beforehand(service.project_approval_rules, "update_rule", refuse)


@fault("project-approval-rules.update.applies-to-all-protected-branches")
def a_change_without_the_flag_is_refused(service: Service) -> None:
    """A change of a rule that does not send applies_to_all_protected_branches is refused."""
    _refusing_changes(service, lambda wanted: wanted.applies_to_all_protected_branches is None)


@fault("project-approval-rules.update.protected-branch-ids")
def a_change_of_branches_is_refused(service: Service) -> None:
    """A change of a rule that sends protected branches is refused."""
    _refusing_changes(service, lambda wanted: bool(wanted.protected_branch_ids))


@fault("project-approval-rules.update.user-ids.removes-others")
def an_empty_list_of_usernames_keeps_the_former_users(service: Service) -> None:
    """A change that sends an empty list of usernames keeps the former users beside those that it sends."""

    def make(update: Callable[..., Any]) -> Any:
        def keeping(project: Any, number: int, wanted: Any, caller: Any) -> Any:
            if wanted.usernames == ():
                former = service.project_approval_rules.find(project, number).users
                wanted = replace(wanted, user_ids=(*(wanted.user_ids or ()), *former))
            return update(project, number, wanted, caller)

        return keeping

    around(service.project_approval_rules, "update_rule", make)


@fault("project-approval-rules.update.answers-with-rule")
def changed_rules_become_regular(service: Service) -> None:
    """A change makes a rule regular, whatever its type was."""

    def regular(rule: Any, *_: Any) -> Any:
        changed = stored(service)[rule.id] = replace(rule, rule_type=RuleType.REGULAR)
        return changed

    afterwards(service.project_approval_rules, "update_rule", regular)


@fault("project-approval-rules.update.stored")
def a_changed_rule_gets_another_number(service: Service) -> None:
    """A change stores a new rule in place of the former one, and shows the former number in its answer."""

    def renumber(rule: Any, *_: Any) -> None:
        del stored(service)[rule.id]
        number = service.store.next_id("approval_rules")
        stored(service)[number] = replace(rule, id=number)

    afterwards(service.project_approval_rules, "update_rule", renumber)


@fault("project-approval-rules.update.remove-hidden-groups.without-any")
def keeping_hidden_groups_keeps_everything(service: Service) -> None:
    """A change that sends remove_hidden_groups = false is answered, and not stored if there is no hidden group."""

    def make(handler: Callable[..., Any]) -> Any:
        def forgetful(request: Request) -> Any:
            before = service.store.snapshot()
            response = handler(request)
            shown: Any = response.content
            if sent(request).get("remove_hidden_groups") is False and not shown["contains_hidden_groups"]:
                service.store.restore(before)
            return response

        return forgetful

    handling(service, f"PUT {RULE}", make)


@fault("project-approval-rules.update.rule-id-is-integer")
def any_text_changes_a_rule_and_is_refused(service: Service) -> None:
    """A change of a rule that is named by no number is made to the newest rule, and then refused."""

    def make(handler: Callable[..., Any]) -> Any:
        def lenient(request: Request) -> Any:
            if is_number(request, "approval_rule_id"):
                return handler(request)
            newest = service.project_approval_rules.rules(request.project)[-1]
            request.path = {**request.path, "approval_rule_id": str(newest.id)}
            handler(request)
            raise not_found("Approval Rule")

        return lenient

    handling(service, f"PUT {RULE}", make)


@fault("project-approval-rules.update.unknown-rule")
def an_unknown_rule_stands_for_the_newest_and_is_refused(service: Service) -> None:
    """A change of a rule that never existed is made to the newest rule, and then refused."""

    def make(update: Callable[..., Any]) -> Any:
        def lenient(project: Any, number: int, wanted: Any, caller: Any) -> Any:
            if number not in stored(service):
                update(project, service.project_approval_rules.rules(project)[-1].id, wanted, caller)
            return update(project, number, wanted, caller)

        return lenient

    around(service.project_approval_rules, "update_rule", make)


def bringing_back(service: Service, area: Any, level: Level) -> None:
    """Let a change of a deleted rule of a level create it again."""
    gone: dict[int, Any] = {}
    beforehand(service.approval_rules, "delete_rule", lambda rule: gone.update({rule.id: rule}))

    def bring_back(home: Any, number: int, *_: Any) -> None:
        rule = gone.get(number)
        if rule is not None and rule.home == (level, home.id):
            stored(service)[number] = rule

    beforehand(area, "update_rule", bring_back)


@fault("project-approval-rules.update.unknown-rule")
def deleted_rules_are_changed(service: Service) -> None:
    """A change of a deleted rule creates it again."""
    bringing_back(service, service.project_approval_rules, Level.PROJECT)


# -- for other readers -------------------------------------------------------------------------------------------------


@fault("project-approval-rules.update.stored")
def owner_sees_the_first_list_for_good(service: Service) -> None:
    """The owner always gets a list of rules of a project from the first read."""
    remembered_for_the_reader(service, RULES, actor="owner")


@fault("project-approval-rules.delete.gone")
def deleted_rules_are_read_by_the_path(service: Service) -> None:
    """A deleted rule is still read by the path of its project."""
    gone: dict[int, Any] = {}
    beforehand(service.approval_rules, "delete_rule", lambda rule: gone.update({rule.id: rule}))

    def make(handler: Callable[..., Any]) -> Any:
        def remembering(request: Request) -> Any:
            try:
                return handler(request)
            except NotFoundError:
                rule = gone.get(request.path_id("approval_rule_id"))
                if rule is None or is_number(request, "id") or rule.home != (Level.PROJECT, request.project.id):
                    raise
                return ok(service.project_approval_rules.present(rule, request.caller))

        return remembering

    handling(service, f"GET {RULE}", make)


def _shown_to(service: Service, otherwise: Callable[[dict[str, Any], Any, Any], dict[str, Any]]) -> None:
    """Show something else in rules that name a private group; the function gets the rule and its reader."""
    known = service.identities.groups

    def show(shown: dict[str, Any], rule: Any, viewer: Any) -> dict[str, Any]:
        is_private = any(known[one].visibility is Visibility.PRIVATE for one in rule.groups if one in known)
        return otherwise(shown, rule, viewer) if is_private else shown

    afterwards(service.project_approval_rules, "present", show)


@fault("project-approval-rules.hidden-groups.are-not-shown")
def beside_a_hidden_group_none_is_shown(service: Service) -> None:
    """Whoever may not view one group of a rule is shown none of its groups."""
    _shown_to(service, lambda shown, *_: {**shown, "groups": []} if shown["contains_hidden_groups"] else shown)


@fault("project-approval-rules.hidden-groups.are-announced")
def private_groups_are_announced_to_those_who_see_them(service: Service) -> None:
    """contains_hidden_groups is true for everybody but administrators if a rule names a private group."""
    _shown_to(service, lambda shown, _, viewer: shown if viewer.admin else {**shown, "contains_hidden_groups": True})


@fault("project-approval-rules.hidden-groups.are-announced")
def private_groups_are_announced_to_administrators(service: Service) -> None:
    """contains_hidden_groups is true for administrators, who see every group, if a rule names a private group."""
    _shown_to(service, lambda shown, _, viewer: {**shown, "contains_hidden_groups": True} if viewer.admin else shown)


# -- at once -----------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.delete.at-once")
def a_changed_rule_comes_back(service: Service) -> None:
    """A change that has begun before its rule is deleted stores the rule again."""
    change, deletion = f"PUT {RULE}", f"DELETE {RULE}"
    begun: dict[int, Any] = {}

    async def wait(request: Request) -> None:
        if request.route.key == deletion and not begun:
            await asyncio.sleep(AT_ONCE)
        elif request.route.key == change:
            begun[id(request)] = stored(service).get(int(request.path["approval_rule_id"]))
            await asyncio.sleep(2 * AT_ONCE)

    def make(handler: Callable[..., Any]) -> Any:
        def late(request: Request) -> Any:
            rule = begun.pop(id(request), None)
            if rule is not None:
                stored(service).setdefault(rule.id, rule)
            return handler(request)

        return late

    service.interruption = wait
    handling(service, change, make)
