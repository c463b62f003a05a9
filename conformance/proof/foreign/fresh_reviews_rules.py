"""Bugs that a review could miss in approval rules of projects and merge requests: what is stored, copied and shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import SYSTEM_TYPES, RuleType, home_of
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.http import Page, ok
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service

_STAYS = "write x everything that must stay"
_AGAIN = "again, by another caller, after an undo"
_STORY = "numbers and texts that follow from the story"
_NEIGHBOUR = "value x neighbour of the right value"
_FORMS = "forms of what is sent"
_RULES = "/projects/:id/approval_rules"
_OWN_RULES = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"
_RULE = f"{_RULES}/:approval_rule_id"
_OWN_RULE = f"{_OWN_RULES}/:approval_rule_id"
_INTEGER_MAX = 2**31 - 1
_BEYOND_BMP = 0xFFFF


# -- approvers and groups ----------------------------------------------------------------------------------------------


# Names were added to the update later, and beside the code that takes away.
@foreign(_FORMS, "Merge request approvals: Rules, 2")
def usernames_only_add_to_merge_request_rules(service: Service) -> None:
    """An update of a merge request's rule that names approvers by username keeps those who were there."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        before = service.approval_rules.rules.get(number)
        if wanted.usernames and before is not None and before.home == home_of(merge_request):
            wanted = replace(wanted, user_ids=(*(wanted.user_ids or ()), *before.users))
        return update(merge_request, number, wanted, caller)


# Licences belong to the outermost group, so that one is looked up, and used for this too.
@foreign(_NEIGHBOUR, "Project approval rules: group_ids")
def subgroups_stand_for_their_outermost_group(service: Service) -> None:
    """A rule for which a subgroup is named as approver gets the outermost group around it."""

    @instead(service.approval_rules, "groups_named")
    def _(named: Any, wanted: Any, caller: Any) -> Any:
        found = named(wanted, caller)
        if found is None:
            return None
        groups = (service.identities.lineage(service.identities.groups[number])[-1] for number in found)
        return tuple(dict.fromkeys(group.id for group in groups))


# What was sent is asked for, and not its value.
@foreign(_NEIGHBOUR, "Project approval rules: remove_hidden_groups")
def hidden_groups_go_when_false_is_sent(service: Service) -> None:
    """An update that says remove_hidden_groups false removes the hidden groups as if it were true."""

    @handling(service, f"PUT {_RULE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("remove_hidden_groups") is not None:
            request.parameters._values = {**values, "remove_hidden_groups": True}
        return handler(request)


# The rendered rule is kept under its id, without the one for whom it was rendered.
@foreign(_AGAIN, "Approval rule: contains_hidden_groups")
def rules_look_as_their_first_reader_saw_them(service: Service) -> None:
    """A project's rule is shown to everybody as the first reader saw it, hidden groups included or left out."""
    seen: dict[Any, Any] = {}

    @handling(service, f"GET {_RULE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if not is_served(answer):
            return answer
        rule = service.project_approval_rules.find(request.project, request.path_id("approval_rule_id"))
        return ok(seen.setdefault(rule, answer.content))


# -- names and numbers -------------------------------------------------------------------------------------------------


# The column of the database takes three bytes a letter.
@foreign(_NEIGHBOUR, "Merge request approvals: PUT approval_rules, name")
def rare_letters_are_lost_on_renaming(service: Service) -> None:
    """Letters beyond the first plane of Unicode become question marks when a merge request's rule is renamed."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        if wanted.name is not None:
            name = "".join("?" if ord(letter) > _BEYOND_BMP else letter for letter in wanted.name)
            wanted = replace(wanted, name=name)
        return update(merge_request, number, wanted, caller)


# A writer that guesses types.
@foreign(_NEIGHBOUR, "Approval rule: name")
def names_of_digits_are_numbers(service: Service) -> None:
    """The name of a project's rule that consists of digits is answered as a number."""

    @instead(service.project_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        if rule.name.isascii() and rule.name.isdigit():
            shown["name"] = int(rule.name)
        return shown


# The column of ids is older than the numbers that a client may send.
@foreign(_NEIGHBOUR, "Merge request approvals: approval_rule_id")
def large_ids_of_rules_break_the_service(service: Service) -> None:
    """Asking for a merge request's rule with an id beyond 32 bits is answered with an error of the service."""

    @handling(service, f"GET {_OWN_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if request.path_id("approval_rule_id") > _INTEGER_MAX:
            return ok({"message": "500 Internal Server Error"}, 500)
        return handler(request)


# A comparison without the equal sign.
@foreign("version table", "Versioning: 15.8", version="15.8")
def usernames_come_one_version_late(service: Service) -> None:
    """At version 15.8 itself, updates of project rules do not know usernames yet."""

    @handling(service, f"PUT {_RULE}")
    def _(handler: Any, request: Any) -> Any:
        if service.version <= Version(15, 8):
            values = request.parameters._values
            request.parameters._values = {name: value for name, value in values.items() if name != "usernames"}
        return handler(request)


# The update builds the record anew, and with it the type it mostly has.
@foreign(_STAYS, "Approval rule: rule_type")
def default_rules_become_regular_on_update(service: Service) -> None:
    """Updating the any_approver rule of a project makes it a regular one, though no type was sent."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: Any, wanted: Any, caller: Any) -> Any:
        return update(project, number, replace(wanted, rule_type=RuleType.REGULAR), caller)


# -- protected branches ------------------------------------------------------------------------------------------------


# The flag that counts is the one from before the update.
@foreign(_STORY, "Project approval rules: PUT, protected_branch_ids")
def branches_wait_for_the_next_update(service: Service) -> None:
    """An update that switches applies_to_all_protected_branches off ignores the branches sent with it."""

    @instead(service.approval_rules, "branches_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.applies_to_all_protected_branches:
            return rule.protected_branches
        return after(rule, wanted, subject)


# -- lists -------------------------------------------------------------------------------------------------------------


# The page is cut from what the query found, and the merge request looked at afterwards.
@foreign("pages and totals", "Merge request approvals: GET approval_rules, paginated")
def pages_are_cut_before_rules_are_picked(service: Service) -> None:
    """A page of a merge request's rules is one of the rules of all merge requests of the project."""

    @handling(service, f"GET {_OWN_RULES}")
    def _(handler: Any, request: Any) -> Any:
        merge_request, page = merge_request_of(request), Page.of(request.parameters, request.choices)
        answer = handler(request)
        rules = service.merge_request_approval_rules
        known = service.repositories.merge_requests.values()
        homes = {home_of(one) for one in known if one.project_id == merge_request.project_id}
        of_all = [rule for rule in service.approval_rules.rules.values() if rule.home in homes]
        start = (page.number - 1) * page.size
        cut = [rule for rule in of_all[start : start + page.size] if rule.home == home_of(merge_request)]
        answer.content = [rules.present(rule, merge_request, request.caller) for rule in cut]
        return answer


# The query joins by the namespace.
@foreign("level x id of another level", "Project approval rules: GET")
def lists_show_rules_of_sibling_projects(service: Service) -> None:
    """The rules of a project are listed together with those of the other projects of its group."""

    @handling(service, f"GET {_RULES}")
    def _(_handler: Any, request: Any) -> Any:
        rules = service.project_approval_rules
        service.approval_rules.require_reader(request.caller, request.project)
        around = request.project.namespace_id
        others = [
            rule
            for one in service.identities.projects.values()
            if one.namespace_id == around and one.id != request.project.id
            for rule in service.approval_rules.rules.values()
            if rule.home == home_of(one)
        ]
        found = [*rules.rules(request.project), *others]
        return request.collection(found, lambda rule: rules.present(rule, request.caller))


# -- copies ------------------------------------------------------------------------------------------------------------


# The copy is the same record, with a number of its own.
@foreign(_STAYS, "Merge request approvals: Rules, 1")
def changing_a_copy_changes_the_original(service: Service) -> None:
    """An update of a merge request's copy of a project rule gives the project rule the same users and groups."""
    all_rules = service.approval_rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        rule = update(merge_request, number, wanted, caller)
        source = all_rules.rules.get(rule.source_id)
        if source is not None:
            all_rules.rules[source.id] = replace(source, users=rule.users, groups=rule.groups)
        return rule


# The name of a copy is read from the project rule, so writing it has no effect.
@foreign("what arranges or undoes, and does nothing", "Merge request approvals: PUT approval_rules, name")
def copies_cannot_be_renamed(service: Service) -> None:
    """An update of the name of a merge request's copy of a project rule is served, and the name stays."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(number)
        if rule is not None and rule.source_id is not None:
            wanted = replace(wanted, name=None)
        return update(merge_request, number, wanted, caller)


# The statement that deletes goes by the project rule.
@foreign(_STAYS, "Merge request approvals: DELETE approval_rules")
def deleting_a_copy_deletes_all_copies(service: Service) -> None:
    """Deleting a merge request's copy of a project rule deletes the copies of all other merge requests."""
    all_rules = service.approval_rules

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: Any) -> None:
        rule = all_rules.rules.get(number)
        delete(merge_request, number)
        for other in [one for one in all_rules.rules.values() if rule.source_id and one.source_id == rule.source_id]:
            all_rules.delete_rule(other)


# -- deleting ----------------------------------------------------------------------------------------------------------


# Whoever deletes the last rule wants to begin anew, so everything is cleared.
@foreign(_STAYS, "Merge request approvals: Rules, 3")
def the_last_own_rule_takes_those_of_the_system(service: Service) -> None:
    """When the last rule that somebody gave a merge request is deleted, its rules of the system go too."""
    rules = service.merge_request_approval_rules

    @instead(rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: Any) -> None:
        delete(merge_request, number)
        if not rules.own_rules(merge_request):
            for rule in rules.rules(merge_request):
                if rule.rule_type in SYSTEM_TYPES:
                    service.approval_rules.delete_rule(rule)


# Deleted rules are only hidden, and an update shows what it wrote.
@foreign(_AGAIN, "Merge request approvals: DELETE approval_rules")
def updates_bring_deleted_rules_back(service: Service) -> None:
    """An update of a merge request's rule that was deleted is served, and the rule is there again."""
    rules, deleted = service.merge_request_approval_rules, {}

    @instead(rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: Any) -> None:
        rule = service.approval_rules.rules.get(number)
        delete(merge_request, number)
        deleted[home_of(merge_request), number] = rule

    @instead(rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        hidden = deleted.pop((home_of(merge_request), number), None)
        if hidden is not None:
            service.approval_rules.rules.setdefault(number, hidden)
        return update(merge_request, number, wanted, caller)


# -- names of projects -------------------------------------------------------------------------------------------------


# What stands before the last slash is cut off.
@foreign("caller x form of id x operation", "Common conventions: :id")
def projects_go_by_the_end_of_their_path(service: Service) -> None:
    """Rules are looked up in the first visible project whose path ends as the path that was sent."""

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: Any) -> Any:
        known = subject(route, caller, reference)
        if not route.path.startswith(_RULES) or reference.isdigit():
            return known
        namesakes = [one for one in service.identities.projects.values() if one.path == known.path]
        return next(one for one in namesakes if service.identities.can_see(caller, one))
