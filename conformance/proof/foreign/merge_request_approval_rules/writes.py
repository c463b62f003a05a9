"""What a write of a merge request's rules leaves behind: when repeated, elsewhere, not at all, or when concurrent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import overtaken, undoing, without_parameters
from conformance.proof.foreign.dimensions import AGAIN, AT_ONCE, NOTHING_DONE, SIDE_EFFECT, STORY
from conformance.proof.foreign.paths import MERGE_REQUEST_RULE, MERGE_REQUEST_RULES, PROJECT_RULE
from conformance.proof.foreign.registry import foreign, handling, instead, is_served, meanwhile
from conformance.reference.areas.approval_rule_records import SYSTEM_TYPES, Level, home_of
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import NotFoundError
from conformance.reference.http import ok

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading -----------------------------------------------------------------------------------------------------------


@foreign(AGAIN, "Merge request approvals: GET of a rule, after a DELETE")
def a_rule_that_was_read_is_found_after_its_deletion(service: Service) -> None:
    """A rule of a merge request that was read before its deletion is still answered with 200."""
    known: dict[tuple[str, ...], Any] = {}

    @handling(service, f"GET {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        key = tuple(request.path.values())
        try:
            answer = handler(request)
        except NotFoundError:
            if key not in known:
                raise
            return ok(dict(known[key]))
        known[key] = answer.content
        return answer


# -- creating and copying ----------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Merge request approvals: rules")
def rules_of_merge_requests_forbid_more(service: Service) -> None:
    """A new rule of a merge request switches off a setting of its project."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        rule = create(merge_request, wanted, source_id, caller)
        project = service.identities.projects[merge_request.project_id]
        settings, setting = service.approval_settings, Setting.RETAIN_APPROVALS
        settings.values[settings._key(project, setting)] = False
        return rule


# The copy is the same record, with its own number.
@foreign(SIDE_EFFECT, "Merge request approvals: Rules, 1")
def changing_a_copy_changes_the_original(service: Service) -> None:
    """An update of a merge request's copy of a project rule also changes the users and groups of the project rule."""
    all_rules = service.approval_rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        rule = update(merge_request, number, wanted, caller)
        source = all_rules.rules.get(rule.source_id)
        if source is not None:
            all_rules.rules[source.id] = replace(source, users=rule.users, groups=rule.groups)
        return rule


# The copy is a view of the project rule until it is changed.
@foreign(SIDE_EFFECT, "Merge request approvals: rule 1; DELETE of project approval rules")
def a_copy_loses_its_approvers_with_its_source(service: Service) -> None:
    """Deleting a project rule removes users and groups from its copies, although these were copied."""
    rules = service.approval_rules

    @instead(rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        for copy in [one for one in rules.rules.values() if one.source_id == rule.id]:
            rules.rules[copy.id] = replace(copy, users=(), groups=())


# The number is read from the source rule, which may be missing.
@foreign(AGAIN, "Approval rule: source_rule, object or null")
def copies_cannot_be_read_without_their_source(service: Service) -> None:
    """Once a project rule was deleted, reading its copies in merge requests causes a server error."""

    @instead(service.merge_request_approval_rules, "source_of")
    def _(find: Any, rule: Any) -> Any:
        return None if rule.source_id is None else service.approval_rules.rules[rule.source_id]


@foreign(SIDE_EFFECT, "Merge request approvals: POST; Project approval configuration")
def a_copied_rule_changes_the_configuration(service: Service) -> None:
    """Copying a project rule to a merge request changes the whole project: pushes no longer reset approvals."""

    @handling(service, f"POST {MERGE_REQUEST_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and request.parameters.given("approval_project_rule_id"):
            known = service.project_approval_configurations
            own = known.own_configuration(request.project)
            known.configurations[request.project.id] = replace(own, reset_approvals_on_push=False)
        return answer


# Every merge request may have a copy.
@foreign(SIDE_EFFECT, "Merge request approvals: Rules, 1")
def a_copy_moves_to_the_merge_request_that_asks_last(service: Service) -> None:
    """There is only one copy of a rule: a second merge request that copies it takes it from the first."""
    rules = service.approval_rules

    @instead(rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        if candidate.source_id is not None:
            for other in [one for one in rules.rules.values() if one.source_id == candidate.source_id]:
                del rules.rules[other.id]
        return add(candidate)


@foreign(AT_ONCE, "Merge request approvals: POST of a rule")
def two_rules_get_one_id(service: Service) -> None:
    """Two rules of a merge request that are created concurrently get the same id, and one of them is lost."""
    sequences = service.store._sequences

    def write(seen: Any, _: Any) -> None:
        sequences["approval_rules"] = seen

    key = f"POST {MERGE_REQUEST_RULES}"
    meanwhile(service, (key,), lambda: sequences.get("approval_rules", 1), write)


@foreign(SIDE_EFFECT, "Merge request approvals: rules")
def rules_of_merge_requests_come_to_others(service: Service) -> None:
    """A rule that is created for one merge request is also created for the project's next one."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        key = merge_request.project_id, merge_request.iid + 1
        neighbour = service.repositories.merge_requests.get(key)
        if neighbour is not None:
            create(neighbour, wanted, source_id, caller)
        return create(merge_request, wanted, source_id, caller)


# The current users of the project rule are copied.
@foreign(STORY, "Merge request approvals: rule 1, after a PUT of the project rule")
def a_copy_has_the_users_that_its_source_was_made_with(service: Service) -> None:
    """A copy of a project rule gets the users that this rule had at its creation, even after an update."""
    first: dict[int, tuple[int, ...]] = {}

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        rule = create(project, wanted, caller)
        first[rule.id] = rule.users
        return rule

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        return copied(merge_request, replace(source, users=first.get(source.id, source.users)), wanted)


# Either the rule exists and is copied, or the call is refused.
@foreign(AT_ONCE, "Merge request approvals: rule 1, beside DELETE of the project rule")
def a_copy_that_is_made_while_its_source_goes_names_nobody(service: Service) -> None:
    """A copy reads its rule first, and users and groups a moment later: if it is deleted meanwhile, it has none."""
    rules, gone = service.approval_rules.rules, set()

    def write(seen: Any, request: Any) -> None:
        number = request.parameters.optional_integer("approval_project_rule_id")
        if number in seen and number not in rules:
            rules[number] = replace(seen[number], users=(), groups=())
            gone.add(number)

    overtaken(service, f"POST {MERGE_REQUEST_RULES}", f"DELETE {PROJECT_RULE}", lambda: dict(rules), write)

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        if source.id in gone:
            gone.discard(source.id)
            del rules[source.id]
        return copied(merge_request, source, wanted)


# -- updating ----------------------------------------------------------------------------------------------------------


@foreign(NOTHING_DONE, "Merge request approvals: rules")
def groups_of_updates_are_answered_only(service: Service) -> None:
    """The answer to an update of a merge request's rule has the sent groups, but the former ones stay stored."""

    @handling(service, f"PUT {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        rules = service.approval_rules.rules
        before = rules.get(request.path_id("approval_rule_id"))
        answer = handler(request)
        if is_served(answer) and before is not None:
            rules[before.id] = replace(rules[before.id], groups=before.groups)
        return answer


# The name of a rule can be changed, whatever its source.
@foreign(AGAIN, "Merge request approvals: PUT approval rule, name")
def a_copy_keeps_the_name_of_its_project_rule(service: Service) -> None:
    """An update of a copy of a project rule changes everything except the name."""

    @handling(service, f"PUT {MERGE_REQUEST_RULE}")
    def _(handler: Any, request: Any) -> Any:
        rule = service.approval_rules.rules.get(request.path_id("approval_rule_id"))
        if rule is not None and rule.source_id is not None:
            without_parameters(request, "name")
        return handler(request)


# The name of a copy is read from the project rule, so writing it has no effect.
@foreign(NOTHING_DONE, "Merge request approvals: PUT approval_rules, name")
def copies_cannot_be_renamed(service: Service) -> None:
    """An update of the name of a copy of a project rule is served, but the name stays."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: Any, wanted: Any, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(number)
        if rule is not None and rule.source_id is not None:
            wanted = replace(wanted, name=None)
        return update(merge_request, number, wanted, caller)


# Deleting the last rule is taken as a wish to start again, so everything is cleared.
@foreign(SIDE_EFFECT, "Merge request approvals: Rules, 3")
def the_last_own_rule_takes_those_of_the_system(service: Service) -> None:
    """When the last rule that a user made for a merge request is deleted, its rules of the system are deleted too."""
    rules = service.merge_request_approval_rules

    @instead(rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: Any) -> None:
        delete(merge_request, number)
        if not rules.own_rules(merge_request):
            for rule in rules.rules(merge_request):
                if rule.rule_type in SYSTEM_TYPES:
                    service.approval_rules.delete_rule(rule)


# The update looks up rules by name, without a condition for the merge request.
@foreign(SIDE_EFFECT, "Merge request approvals: PUT approval_rules, approvals_required")
def rules_of_one_name_require_the_same(service: Service) -> None:
    """An update of a merge request's rule also sets the number of rules with the same name in other merge requests."""
    rules = service.approval_rules.rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = update(merge_request, number, wanted, caller)
        for other in [rule for rule in rules.values() if rule.home.level is Level.MERGE_REQUEST]:
            if other.name == changed.name and other.rule_type is changed.rule_type:
                rules[other.id] = replace(other, approvals_required=changed.approvals_required)
        return changed


# Approvers that an update does not name are removed.
@foreign(SIDE_EFFECT, "Merge request approvals: Rules, 2")
def usernames_only_add_to_rules_of_merge_requests(service: Service) -> None:
    """An update with usernames keeps the former approvers."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        users = after(rule, wanted, subject)
        if rule.home.level is not Level.MERGE_REQUEST or not wanted.usernames:
            return users
        return tuple(dict.fromkeys((*rule.users, *users)))


@foreign(SIDE_EFFECT, "Merge request approvals: rules")
def copies_write_through_to_their_source(service: Service) -> None:
    """Changing a copy of a project rule changes the project rule."""
    rules = service.merge_request_approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, *wanted: Any) -> Any:
        rule = update(*wanted)
        source = rules.source_of(rule)
        if source is not None:
            changed = replace(source, users=rule.users, approvals_required=rule.approvals_required)
            service.approval_rules.rules[source.id] = changed
        return rule


@foreign(SIDE_EFFECT, "Merge request approvals: rules")
def changing_a_copy_changes_its_source(service: Service) -> None:
    """Renaming a copy of a project rule renames the project rule."""

    @instead(service.approval_rules, "update_rule")
    def _(update: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        changed = update(subject, rule, wanted, caller)
        source = service.approval_rules.rules.get(rule.source_id)
        if source is not None:
            service.approval_rules.rules[source.id] = replace(source, name=changed.name)
        return changed


@foreign(SIDE_EFFECT, "Merge request approvals: PUT of a rule, its source")
def changing_a_copy_of_a_rule_changes_the_approvers_of_its_source(service: Service) -> None:
    """If a copy of a project rule gets other users and groups, the project rule gets them as well."""
    rules = service.approval_rules.rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = update(merge_request, number, wanted, caller)
        if changed.source_id in rules:
            rules[changed.source_id] = replace(rules[changed.source_id], users=changed.users, groups=changed.groups)
        return changed


# An update does not change what it does not send, even during another update.
@foreign(AT_ONCE, "Merge request approvals: PUT approval_rules, name and approvals_required")
def of_two_changes_of_one_rule_of_a_merge_request_one_is_lost(service: Service) -> None:
    """If name and number of a rule are changed concurrently by two updates, one of the changes is lost."""
    rules = service.approval_rules.rules

    def write(seen: Any, request: Any) -> None:
        number = request.path_id("approval_rule_id")
        if number in rules and number in seen:
            rules[number] = seen[number]

    meanwhile(service, (f"PUT {MERGE_REQUEST_RULE}",), lambda: dict(rules), write)


# -- deleting ----------------------------------------------------------------------------------------------------------


# The DELETE statement has a condition for the project rule only.
@foreign(SIDE_EFFECT, "Merge request approvals: DELETE approval_rules")
def deleting_a_copy_deletes_all_copies(service: Service) -> None:
    """Deleting a merge request's copy of a project rule deletes the copies of all other merge requests."""
    all_rules = service.approval_rules

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: Any) -> None:
        rule = all_rules.rules.get(number)
        delete(merge_request, number)
        for other in [one for one in all_rules.rules.values() if rule.source_id and one.source_id == rule.source_id]:
            all_rules.delete_rule(other)


# Deleted rules are only marked, and an update returns what it wrote.
@foreign(AGAIN, "Merge request approvals: DELETE approval_rules")
def updates_bring_deleted_rules_back(service: Service) -> None:
    """An update of a deleted rule of a merge request is served, and the rule exists again."""
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


# A rule is deleted only in the merge request in the path.
@foreign(SIDE_EFFECT, "Merge request approvals: DELETE of a rule")
def a_deleted_copy_takes_the_other_copies_along(service: Service) -> None:
    """Deleting a copy of a project rule also deletes the copies in other merge requests."""
    rules, own = service.approval_rules, service.merge_request_approval_rules

    @instead(own, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        source = own.find(merge_request, number).source_id
        delete(merge_request, number)
        for copy in [one for one in rules.rules.values() if source is not None and one.source_id == source]:
            del rules.rules[copy.id]


@foreign(SIDE_EFFECT, "Merge request approvals: DELETE")
def a_rule_goes_with_its_namesakes_of_other_merge_requests(service: Service) -> None:
    """Deleting the rule of one merge request deletes rules with the same name in the project's others."""

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete_rule: Any, merge_request: Any, number: int) -> None:
        rules = service.merge_request_approval_rules
        rule = rules.find(merge_request, number)
        delete_rule(merge_request, number)
        for other in list(service.repositories.merge_requests.values()):
            if other.project_id == merge_request.project_id:
                for namesake in [one for one in rules.own_rules(other) if one.name == rule.name]:
                    service.approval_rules.delete_rule(namesake)


@foreign(SIDE_EFFECT, "Merge request approvals: rules")
def deleting_a_copy_deletes_its_source(service: Service) -> None:
    """Deleting a copy of a project rule deletes the project rule."""

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        service.approval_rules.rules.pop(rule.source_id, None)


@foreign(NOTHING_DONE, "Merge request approvals: DELETE of a rule")
def deleting_rules_of_merge_requests_does_nothing(service: Service) -> None:
    """Deleting a rule of a merge request is answered, but not done."""
    undoing(service, f"DELETE {MERGE_REQUEST_RULE}")


@foreign(SIDE_EFFECT, "Merge request approvals: DELETE of a rule, other copies")
def deleting_one_copy_of_a_rule_deletes_those_of_others(service: Service) -> None:
    """Deleting a copy of a project rule deletes all its copies, also those of other merge requests."""
    rules = service.approval_rules.rules

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        source = rules[number].source_id if number in rules else None
        delete(merge_request, number)
        for rule in list(rules.values()):
            if source is not None and rule.source_id == source:
                del rules[rule.id]
