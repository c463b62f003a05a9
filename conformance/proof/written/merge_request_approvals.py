"""Faults of merge request approvals: transitions, isolation, and what is accepted that should not be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import altering, does_nothing, fault
from conformance.reference.areas.approval_rule_records import SYSTEM_TYPES, RuleType
from conformance.reference.areas.merge_request_approvals import Approval
from conformance.reference.errors import ForbiddenError, InvalidError, StatedError
from conformance.reference.http import Response, ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
RULES = f"{MERGE_REQUEST}/approval_rules"
RULE = f"{RULES}/:approval_rule_id"


def _around(thing: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a function around a method of one object."""
    setattr(thing, name, make(getattr(thing, name)))


def _handling(service: Service, key: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a function around the handler of a route."""
    service.routes.change(key, handler=make(service.routes.get(key).handler))


def _breaking(service: Service, key: str, breaks: Callable[[Request], bool]) -> None:
    """Answer 500 where something holds of the request."""

    def make(handler: Any) -> Any:
        return lambda request: Response(500) if breaks(request) else handler(request)

    _handling(service, key, make)


def _with_parameters(service: Service, key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Let a route see other parameters than were sent."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            request.parameters._values = change(dict(request.parameters._values))
            return handler(request)

        return handle

    _handling(service, key, make)


# -- status and state --------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.status.describes-its-merge-request")
def status_of_another_project(service: Service) -> None:
    """The status names another project."""

    def alter(_: Request, response: Response) -> None:
        response.content = {**response.content, "project_id": response.content["project_id"] + 1}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.status.describes-its-merge-request")
def status_with_id_for_iid(service: Service) -> None:
    """The status shows the id in place of the iid."""

    def alter(_: Request, response: Response) -> None:
        response.content = {**response.content, "iid": response.content["id"]}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.status.open-state")
def open_state_reads_open(service: Service) -> None:
    """The state of an open merge request reads open."""

    def alter(_: Request, response: Response) -> None:
        response.content = {**response.content, "state": "open"}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.state.overwritten")
def never_overwritten(service: Service) -> None:
    """approval_rules_overwritten is always false."""
    service.merge_request_approval_rules.overwritten = lambda _: False


@fault("merge-request-approvals.state.not-overwritten")
def always_overwritten(service: Service) -> None:
    """approval_rules_overwritten is always true."""
    service.merge_request_approval_rules.overwritten = lambda _: True


@fault("merge-request-approvals.merge-request.by-iid")
def found_by_id_as_well(service: Service) -> None:
    """A merge request is also found by its id."""

    def make(find: Any) -> Any:
        def by_either(project: Any, iid: int) -> Any:
            try:
                return find(project, iid)
            except Exception:
                for known in service.repositories.merge_requests.values():
                    if known.id == iid:
                        return known
                raise

        return by_either

    _around(service.merge_request_approval_rules, "merge_request", make)


@fault("merge-request-approvals.merge-request.iid-is-integer")
def any_text_names_the_first_merge_request(service: Service) -> None:
    """A merge_request_iid that is no number names the first merge request."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if not request.path["merge_request_iid"].isdigit():
                request.path["merge_request_iid"] = "1"
            return handler(request)

        return handle

    _handling(service, f"GET {MERGE_REQUEST}/approval_state", make)


@fault("merge-request-approvals.merge-request.iid-is-integer")
def any_text_is_unapproved(service: Service) -> None:
    """Unapproving takes a merge_request_iid that is no number."""
    _handling(
        service,
        f"POST {MERGE_REQUEST}/unapprove",
        lambda handler: lambda request: handler(request) if request.path["merge_request_iid"].isdigit() else ok({}),
    )


@fault("merge-request-approvals.unknown-merge-request.reading")
def unknown_status_is_empty(service: Service) -> None:
    """The status of a merge request that does not exist is an empty object."""
    _handling(
        service,
        f"GET {MERGE_REQUEST}/approvals",
        lambda handler: lambda request: ok({}) if len(request.path["merge_request_iid"]) > 8 else handler(request),
    )


@fault("merge-request-approvals.unknown-merge-request.reading")
def unknown_rules_are_empty(service: Service) -> None:
    """A merge request that does not exist has an empty list of rules."""
    _handling(
        service,
        f"GET {RULES}",
        lambda handler: lambda request: ok([]) if len(request.path["merge_request_iid"]) > 8 else handler(request),
    )


@fault("merge-request-approvals.unknown-merge-request.changing-rules")
def rule_for_nothing(service: Service) -> None:
    """Creating a rule of a merge request that does not exist succeeds."""
    _handling(
        service,
        f"POST {RULES}",
        lambda handler: lambda request: ok({}, 201) if len(request.path["merge_request_iid"]) > 8 else handler(request),
    )


@fault("merge-request-approvals.unknown-merge-request.changing-rules")
def deletion_nowhere_breaks(service: Service) -> None:
    """Deleting a rule of a merge request that does not exist is a server error."""
    _breaking(service, f"DELETE {RULE}", lambda request: len(request.path["merge_request_iid"]) > 8)


@fault("merge-request-approvals.unknown-merge-request.approving")
def nothing_is_unapproved(service: Service) -> None:
    """Unapproving a merge request that does not exist succeeds."""
    _handling(
        service,
        f"POST {MERGE_REQUEST}/unapprove",
        lambda handler: lambda request: ok({}, 201) if len(request.path["merge_request_iid"]) > 8 else handler(request),
    )


# -- rules: reading and creating ---------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.read-one.rule-id-is-integer")
def any_text_reads_a_rule(service: Service) -> None:
    """A rule number that is none reads the first rule."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if not request.path["approval_rule_id"].isdigit():
                found = list(service.approval_rules.rules.values())
                return ok(
                    service.approval_rules.present(found[-1], request.caller)
                    | {"source_rule": None, "overridden": False}
                )
            return handler(request)

        return handle

    _handling(service, f"GET {RULE}", make)


@fault("merge-request-approvals.rules.read-one.unknown-rule")
def unknown_rule_is_read_as_empty(service: Service) -> None:
    """A rule that does not exist is read as an empty object."""
    _handling(
        service,
        f"GET {RULE}",
        lambda handler: lambda request: ok({}) if len(request.path["approval_rule_id"]) > 8 else handler(request),
    )


@fault("merge-request-approvals.rules.read-one")
def reads_another_rule(service: Service) -> None:
    """Reading one rule answers with another one of the merge request."""

    def alter(_: Request, response: Response) -> None:
        response.content = {**response.content, "id": response.content["id"] + 1}

    altering(service, f"GET {RULE}", alter)


@fault("merge-request-approvals.rules.create.approvers-are-lists")
def object_of_users_is_taken(service: Service) -> None:
    """The values of an object in place of user_ids become users."""
    _with_parameters(
        service,
        f"POST {RULES}",
        lambda values: {
            **values,
            **({"user_ids": list(values["user_ids"].values())} if isinstance(values.get("user_ids"), dict) else {}),
        },
    )


@fault("merge-request-approvals.rules.create.approvers-are-lists")
def object_of_groups_breaks(service: Service) -> None:
    """An object in place of group_ids is a server error."""
    _breaking(service, f"POST {RULES}", lambda request: isinstance(request.parameters._values.get("group_ids"), dict))


@fault("merge-request-approvals.rules.create.usernames-are-a-list")
def object_of_usernames_is_taken(service: Service) -> None:
    """The values of an object in place of usernames become users."""
    _with_parameters(
        service,
        f"POST {RULES}",
        lambda values: {
            **values,
            **({"usernames": list(values["usernames"].values())} if isinstance(values.get("usernames"), dict) else {}),
        },
    )


@fault("merge-request-approvals.rules.create.project-rule-is-integer")
def bad_project_rule_is_dropped(service: Service) -> None:
    """An approval_project_rule_id that is no number is left out of account."""
    _with_parameters(
        service,
        f"POST {RULES}",
        lambda values: {k: v for k, v in values.items() if k != "approval_project_rule_id" or isinstance(v, int)},
    )


@fault("merge-request-approvals.rules.create.needs-only-name-and-number")
def creation_wants_approvers(service: Service) -> None:
    """A rule without approvers is refused."""

    def make(create: Any) -> Any:
        def creating(merge_request: Any, wanted: Any, source: Any, caller: Any) -> Any:
            if not (wanted.user_ids or wanted.usernames or wanted.group_ids or source):
                raise InvalidError("user_ids is missing", parameter="user_ids")
            return create(merge_request, wanted, source, caller)

        return creating

    _around(service.merge_request_approval_rules, "create_rule", make)


@fault("merge-request-approvals.rules.create.name-and-number")
def creation_stores_another_number(service: Service) -> None:
    """A rule is stored with one approval more than its creation answers."""

    def make(create: Any) -> Any:
        def creating(*arguments: Any) -> Any:
            rule = create(*arguments)
            service.approval_rules.rules[rule.id] = replace(rule, approvals_required=rule.approvals_required + 1)
            return rule

        return creating

    _around(service.merge_request_approval_rules, "create_rule", make)


@fault("merge-request-approvals.rules.create.name-and-number")
def listed_rules_lose_their_name(service: Service) -> None:
    """The list shows every rule as Rule."""

    def alter(_: Request, response: Response) -> None:
        response.content = [{**entry, "name": "Rule"} for entry in response.content]

    altering(service, f"GET {RULES}", alter)


@fault("merge-request-approvals.rules.create.listed")
def created_rule_is_not_listed(service: Service) -> None:
    """The newest rule is missing in the list."""

    def make(rules: Any) -> Any:
        return lambda merge_request: rules(merge_request)[:-1]

    _around(service.merge_request_approval_rules, "rules", make)


@fault("merge-request-approvals.rules.create.in-state")
def state_shows_project_rules_only(service: Service) -> None:
    """The approval state shows the rules of the project, whatever the merge request has."""
    rules = service.merge_request_approval_rules
    rules.effective_rules = rules.project_rules


def _stored_otherwise(service: Service, name: str, change: Callable[[Any], Any]) -> None:
    def make(method: Any) -> Any:
        def doing(*arguments: Any) -> Any:
            rule = change(method(*arguments))
            service.approval_rules.rules[rule.id] = rule
            return rule

        return doing

    _around(service.merge_request_approval_rules, name, make)


@fault("merge-request-approvals.rules.create.users")
def creation_keeps_one_user(service: Service) -> None:
    """Of several users only the first becomes one of the rule."""
    _stored_otherwise(service, "create_rule", lambda rule: replace(rule, users=rule.users[:1]))


@fault("merge-request-approvals.rules.create.groups")
def creation_drops_groups(service: Service) -> None:
    """Of several groups only the last becomes one of the rule."""
    _stored_otherwise(service, "create_rule", lambda rule: replace(rule, groups=rule.groups[-1:]))


@fault("merge-request-approvals.rules.create.usernames")
def creation_ignores_usernames(service: Service) -> None:
    """Usernames are left out of account at the creation."""
    _with_parameters(service, f"POST {RULES}", lambda values: {k: v for k, v in values.items() if k != "usernames"})


@fault("merge-request-approvals.rules.create.user-ids-and-usernames")
def usernames_hide_user_ids(service: Service) -> None:
    """Where usernames are sent, user_ids are left out of account."""
    _with_parameters(
        service,
        f"POST {RULES}",
        lambda values: {k: v for k, v in values.items() if k != "user_ids" or "usernames" not in values},
    )


# -- rules: copies -----------------------------------------------------------------------------------------------------


def _copied_otherwise(service: Service, change: Callable[[Any, Any, Any], Any]) -> None:
    def make(copy: Any) -> Any:
        return lambda merge_request, source, wanted: change(copy(merge_request, source, wanted), source, wanted)

    _around(service.merge_request_approval_rules, "copied_project_rule", make)


@fault("merge-request-approvals.rules.copy.name")
def copy_takes_the_sent_name(service: Service) -> None:
    """A copy has the name that was sent."""
    _copied_otherwise(service, lambda rule, source, wanted: replace(rule, name=wanted.name))


@fault("merge-request-approvals.rules.copy.users")
def copy_has_no_users(service: Service) -> None:
    """A copy has no users."""
    _copied_otherwise(service, lambda rule, source, wanted: replace(rule, users=()))


@fault("merge-request-approvals.rules.copy.groups")
def copy_has_no_groups(service: Service) -> None:
    """A copy has no groups."""
    _copied_otherwise(service, lambda rule, source, wanted: replace(rule, groups=()))


@fault("merge-request-approvals.rules.copy.approvals-required")
def copy_takes_the_number_too(service: Service) -> None:
    """A copy requires as many approvals as the project rule."""
    _copied_otherwise(service, lambda rule, source, wanted: replace(rule, approvals_required=source.approvals_required))


@fault("merge-request-approvals.rules.copy.leaves-project-rule")
def copying_changes_the_project_rule(service: Service) -> None:
    """Copying a project rule sets its number to that of the copy."""

    def change(rule: Any, source: Any, wanted: Any) -> Any:
        service.approval_rules.rules[source.id] = replace(source, approvals_required=9)
        return rule

    _copied_otherwise(service, change)


@fault("merge-request-approvals.rules.copy.leaves-project-rule")
def changing_a_copy_changes_the_project_rule(service: Service) -> None:
    """What changes a copy changes the project rule as well."""

    def change(rule: Any) -> Any:
        source = service.approval_rules.rules.get(rule.source_id) if rule.source_id else None
        if source:
            service.approval_rules.rules[source.id] = replace(source, users=rule.users)
        return rule

    _stored_otherwise(service, "update_rule", change)


@fault("merge-request-approvals.rules.copy.approvals-required-stays-required")
def copy_needs_no_number(service: Service) -> None:
    """A copy without approvals_required is created with the number of the project rule."""
    _with_parameters(
        service,
        f"POST {RULES}",
        lambda values: {"approvals_required": 1, **values} if "approval_project_rule_id" in values else values,
    )


@fault("merge-request-approvals.rules.copy.unknown-project-rule")
def unknown_project_rule_breaks(service: Service) -> None:
    """Copying a project rule that does not exist is a server error."""
    _breaking(
        service,
        f"POST {RULES}",
        lambda request: request.parameters._values.get("approval_project_rule_id") == 2_000_000_001,
    )


# -- rules: updates ----------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.update.rule-id-is-integer")
def any_text_updates_nothing(service: Service) -> None:
    """An update of a rule number that is none succeeds."""
    _handling(
        service,
        f"PUT {RULE}",
        lambda handler: lambda request: handler(request) if request.path["approval_rule_id"].isdigit() else ok({}),
    )


@fault("merge-request-approvals.rules.update.unknown-rule")
def unknown_rule_is_updated(service: Service) -> None:
    """An update of a rule that does not exist succeeds."""
    _handling(
        service,
        f"PUT {RULE}",
        lambda handler: lambda request: ok({}) if len(request.path["approval_rule_id"]) > 8 else handler(request),
    )


@fault("merge-request-approvals.rules.update.unknown-rule")
def unknown_rule_stands_for_all(service: Service) -> None:
    """An update of a rule that does not exist is refused, and changes all others."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if len(request.path["approval_rule_id"]) > 8:
                for number, rule in list(service.approval_rules.rules.items()):
                    service.approval_rules.rules[number] = replace(rule, approvals_required=7)
            return handler(request)

        return handle

    _handling(service, f"PUT {RULE}", make)


@fault("merge-request-approvals.rules.update.approvers-are-lists")
def update_takes_an_object_of_users(service: Service) -> None:
    """The values of an object in place of user_ids become users of the updated rule."""
    _with_parameters(
        service,
        f"PUT {RULE}",
        lambda values: {
            **values,
            **({"user_ids": list(values["user_ids"].values())} if isinstance(values.get("user_ids"), dict) else {}),
        },
    )


@fault("merge-request-approvals.rules.update.approvers-are-lists")
def update_takes_an_object_of_groups(service: Service) -> None:
    """The values of an object in place of group_ids become groups of the updated rule."""
    _with_parameters(
        service,
        f"PUT {RULE}",
        lambda values: {
            **values,
            **({"group_ids": list(values["group_ids"].values())} if isinstance(values.get("group_ids"), dict) else {}),
        },
    )


@fault("merge-request-approvals.rules.update.usernames-are-a-list")
def update_takes_an_object_of_usernames(service: Service) -> None:
    """The values of an object in place of usernames become users of the updated rule."""
    _with_parameters(
        service,
        f"PUT {RULE}",
        lambda values: {
            **values,
            **({"usernames": list(values["usernames"].values())} if isinstance(values.get("usernames"), dict) else {}),
        },
    )


@fault("merge-request-approvals.rules.update.approvals-required-is-integer")
def update_drops_a_bad_number(service: Service) -> None:
    """An approvals_required that is no number is left out of account, and the rest stored."""
    _with_parameters(
        service,
        f"PUT {RULE}",
        lambda values: {k: v for k, v in values.items() if k != "approvals_required" or isinstance(v, int)},
    )


@fault("merge-request-approvals.rules.update.name-is-string")
def update_stores_a_bad_name_as_text(service: Service) -> None:
    """An object in place of a name is stored as text."""
    _with_parameters(
        service,
        f"PUT {RULE}",
        lambda values: {k: json.dumps(v) if k == "name" and isinstance(v, dict) else v for k, v in values.items()},
    )


@fault("merge-request-approvals.rules.update.name-is-string")
def update_is_half_done(service: Service) -> None:
    """An update with a bad name is refused after the number was stored."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            values = request.parameters._values
            if isinstance(values.get("name"), dict) and "approvals_required" in values:
                rule = service.approval_rules.rules[int(request.path["approval_rule_id"])]
                service.approval_rules.rules[rule.id] = replace(rule, approvals_required=values["approvals_required"])
            return handler(request)

        return handle

    _handling(service, f"PUT {RULE}", make)


@fault("merge-request-approvals.rules.update.remove-hidden-groups-is-boolean")
def any_text_is_a_truth_value(service: Service) -> None:
    """A remove_hidden_groups that is no truth value is left out of account."""
    _with_parameters(
        service,
        f"PUT {RULE}",
        lambda values: {k: v for k, v in values.items() if k != "remove_hidden_groups" or isinstance(v, bool)},
    )


@fault("merge-request-approvals.rules.update.needs-no-parameter")
def update_wants_a_name(service: Service) -> None:
    """An update without a name is refused."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if "name" not in request.parameters._values:
                raise InvalidError("name is missing", parameter="name")
            return handler(request)

        return handle

    _handling(service, f"PUT {RULE}", make)


@fault("merge-request-approvals.rules.update.accepts-remove-hidden-groups")
def remove_hidden_groups_is_unknown(service: Service) -> None:
    """An update that sends remove_hidden_groups is refused."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if "remove_hidden_groups" in request.parameters._values:
                raise InvalidError("remove_hidden_groups is unknown", parameter="remove_hidden_groups")
            return handler(request)

        return handle

    _handling(service, f"PUT {RULE}", make)


@fault("merge-request-approvals.rules.update.empty")
def empty_update_resets_the_number(service: Service) -> None:
    """An update without any parameter sets approvals_required to 0."""
    _with_parameters(service, f"PUT {RULE}", lambda values: values or {"approvals_required": 0})


@fault("merge-request-approvals.rules.update.name")
def update_does_not_store_the_name(service: Service) -> None:
    """An update answers with the new name and stores the old one."""

    def make(update: Any) -> Any:
        def updating(merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
            old = service.approval_rules.rules[number].name
            rule = update(merge_request, number, wanted, caller)
            service.approval_rules.rules[number] = replace(rule, name=old)
            return rule

        return updating

    _around(service.merge_request_approval_rules, "update_rule", make)


@fault("merge-request-approvals.rules.update.approvals-required")
def update_ignores_the_number(service: Service) -> None:
    """approvals_required is left out of account by updates."""
    _with_parameters(
        service, f"PUT {RULE}", lambda values: {k: v for k, v in values.items() if k != "approvals_required"}
    )


@fault("merge-request-approvals.rules.update.leaves-unsent")
def update_resets_what_is_not_sent(service: Service) -> None:
    """An update without approvals_required sets it to 0."""
    _with_parameters(service, f"PUT {RULE}", lambda values: {"approvals_required": 0, **values})


@fault("merge-request-approvals.rules.update.users-are-replaced")
def updates_add_users(service: Service) -> None:
    """An update adds users to those that are there."""

    def make(after: Any) -> Any:
        return lambda rule, wanted, subject: tuple(dict.fromkeys((*rule.users, *after(rule, wanted, subject))))

    _around(service.approval_rules, "users_after", make)


@fault("merge-request-approvals.rules.update.groups-are-replaced")
def updates_add_groups(service: Service) -> None:
    """An update adds groups to those that are there."""

    def make(after: Any) -> Any:
        return lambda rule, wanted, caller: tuple(dict.fromkeys((*rule.groups, *after(rule, wanted, caller))))

    _around(service.approval_rules, "groups_after", make)


@fault("merge-request-approvals.rules.update.usernames")
def update_ignores_usernames(service: Service) -> None:
    """Usernames are left out of account by updates."""
    _with_parameters(service, f"PUT {RULE}", lambda values: {k: v for k, v in values.items() if k != "usernames"})


@fault("merge-request-approvals.rules.update.remove-hidden-groups")
def hidden_groups_stay(service: Service) -> None:
    """Hidden groups stay, whatever remove_hidden_groups says."""
    _with_parameters(
        service, f"PUT {RULE}", lambda values: {k: v for k, v in values.items() if k != "remove_hidden_groups"}
    )


# -- rules: deletion, isolation, system rules --------------------------------------------------------------------------


@fault("merge-request-approvals.rules.delete.gone")
def deleted_rule_stays(service: Service) -> None:
    """DELETE answers 204 and changes nothing."""
    service.merge_request_approval_rules.delete_rule = does_nothing


@fault("merge-request-approvals.rules.delete.gone")
def deleted_rule_can_still_be_read(service: Service) -> None:
    """A deleted rule leaves the list and can still be read."""
    gone: dict[int, Any] = {}
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            gone[number] = rules.find(merge_request, number)
            delete(merge_request, number)

        return deleting

    _around(rules, "delete_rule", make)

    def make_find(find: Any) -> Any:
        return lambda merge_request, number: gone[number] if number in gone else find(merge_request, number)

    _around(rules, "find", make_find)


@fault("merge-request-approvals.rules.delete.leaves-others")
def deletion_takes_all(service: Service) -> None:
    """Deleting one rule deletes all of the merge request."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            delete(merge_request, number)
            for rule in rules.own_rules(merge_request):
                service.approval_rules.delete_rule(rule)

        return deleting

    _around(rules, "delete_rule", make)


@fault("merge-request-approvals.rules.delete.absent")
def absent_deletion_takes_the_last(service: Service) -> None:
    """Deleting a rule that is not there deletes the newest one."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            own = rules.own_rules(merge_request)
            delete(merge_request, number if number in {rule.id for rule in own} or not own else own[-1].id)

        return deleting

    _around(rules, "delete_rule", make)


@fault("merge-request-approvals.rules.delete.absent")
def absent_deletion_breaks(service: Service) -> None:
    """Deleting a rule that is not there is a server error."""
    _breaking(service, f"DELETE {RULE}", lambda request: len(request.path["approval_rule_id"]) > 8)


@fault("merge-request-approvals.rules.are-separate")
def rules_show_in_all_merge_requests(service: Service) -> None:
    """A rule of one merge request is listed by all of the project."""
    rules = service.merge_request_approval_rules

    def make(own: Any) -> Any:
        def all_of(merge_request: Any) -> Any:
            known = service.repositories.merge_requests.values()
            return [rule for other in known if other.project_id == merge_request.project_id for rule in own(other)]

        return all_of

    _around(rules, "rules", make)


@fault("merge-request-approvals.rules.are-separate")
def deletion_reaches_other_merge_requests(service: Service) -> None:
    """Deleting a rule deletes a rule of the next merge request as well."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            delete(merge_request, number)
            for other in service.repositories.merge_requests.values():
                if other.id != merge_request.id:
                    for rule in rules.own_rules(other):
                        service.approval_rules.delete_rule(rule)

        return deleting

    _around(rules, "delete_rule", make)


@fault("merge-request-approvals.rules.belong-to-their-merge-request")
def rules_are_found_everywhere(service: Service) -> None:
    """A rule is found by its number under any merge request."""
    rules = service.merge_request_approval_rules

    def make(find: Any) -> Any:
        def finding(merge_request: Any, number: int) -> Any:
            return service.approval_rules.rules.get(number) or find(merge_request, number)

        return finding

    _around(rules, "find", make)


@fault("merge-request-approvals.rules.belong-to-their-merge-request")
def rules_are_deleted_from_everywhere(service: Service) -> None:
    """A rule is deleted by its number under any merge request."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def deleting(merge_request: Any, number: int) -> None:
            rule = service.approval_rules.rules.get(number)
            if rule is None or rule.rule_type in SYSTEM_TYPES:
                delete(merge_request, number)
            else:
                service.approval_rules.delete_rule(rule)

        return deleting

    _around(rules, "delete_rule", make)


def _lets_change(service: Service, rule_type: RuleType, method: str) -> None:
    rules = service.merge_request_approval_rules
    required = rules.require_changeable

    def make(change: Any) -> Any:
        def changing(merge_request: Any, number: int, *more: Any) -> Any:
            rules.require_changeable = lambda rule: None if rule.rule_type is rule_type else required(rule)
            try:
                return change(merge_request, number, *more)
            finally:
                rules.require_changeable = required

        return changing

    _around(rules, method, make)


@fault("merge-request-approvals.rules.code-owner.cannot-be-updated")
def code_owner_rule_is_updated(service: Service) -> None:
    """A rule of type code_owner can be updated."""
    _lets_change(service, RuleType.CODE_OWNER, "update_rule")


@fault("merge-request-approvals.rules.code-owner.cannot-be-deleted")
def code_owner_rule_is_deleted(service: Service) -> None:
    """A rule of type code_owner can be deleted."""
    _lets_change(service, RuleType.CODE_OWNER, "delete_rule")


@fault("merge-request-approvals.rules.report-approver.cannot-be-updated")
def report_approver_rule_is_updated(service: Service) -> None:
    """A rule of type report_approver can be updated."""
    _lets_change(service, RuleType.REPORT_APPROVER, "update_rule")


@fault("merge-request-approvals.rules.report-approver.cannot-be-deleted")
def report_approver_rule_is_deleted(service: Service) -> None:
    """A rule of type report_approver can be deleted."""
    _lets_change(service, RuleType.REPORT_APPROVER, "delete_rule")


@fault("merge-request-approvals.rules.code-owner.cannot-be-updated")
def refused_update_of_a_code_owner_rule_is_done(service: Service) -> None:
    """The update of a code_owner rule is refused, and done."""

    def make(update: Any) -> Any:
        def updating(merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
            rule = service.approval_rules.rules.get(number)
            if rule and rule.rule_type is RuleType.CODE_OWNER and wanted.approvals_required:
                service.approval_rules.rules[number] = replace(rule, approvals_required=wanted.approvals_required)
            return update(merge_request, number, wanted, caller)

        return updating

    _around(service.merge_request_approval_rules, "update_rule", make)


# -- approving ---------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.approve.needs-no-parameter")
def approving_wants_a_sha(service: Service) -> None:
    """Approving without sha is refused."""

    def make(approve: Any) -> Any:
        def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            if sha is None:
                raise InvalidError("sha is missing", parameter="sha")
            approve(merge_request, caller, sha, password)

        return approving

    _around(service.merge_request_approvals, "approve", make)


@fault("merge-request-approvals.approve.sha-is-text")
def bad_sha_is_dropped(service: Service) -> None:
    """A sha that is no text is left out of account."""
    _with_parameters(
        service,
        f"POST {MERGE_REQUEST}/approve",
        lambda values: {k: v for k, v in values.items() if k != "sha" or isinstance(v, str)},
    )


@fault("merge-request-approvals.approve.password-is-text")
def bad_password_is_dropped(service: Service) -> None:
    """An approval_password that is no text is left out of account."""
    _with_parameters(
        service,
        f"POST {MERGE_REQUEST}/approve",
        lambda values: {k: v for k, v in values.items() if k != "approval_password" or isinstance(v, str)},
    )


@fault("merge-request-approvals.approve.current-sha")
def every_sha_conflicts(service: Service) -> None:
    """Even the sha of the current HEAD is a conflict."""

    def make(_: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            if sha is not None:
                raise StatedError(409, "409 Conflict")

        return requiring

    _around(service.merge_request_approvals, "require_current_head", make)


@fault("merge-request-approvals.approve.other-sha-conflicts")
def no_sha_conflicts(service: Service) -> None:
    """Any sha is taken."""
    service.merge_request_approvals.require_current_head = does_nothing


@fault("merge-request-approvals.approve.other-sha-conflicts")
def only_the_beginning_of_a_sha_counts(service: Service) -> None:
    """A sha that begins like the HEAD is taken."""

    def make(require: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            head = service.repositories.head_of(merge_request)
            require(merge_request, head if sha and sha[:8] == head[:8] else sha)

        return requiring

    _around(service.merge_request_approvals, "require_current_head", make)


@fault("merge-request-approvals.approve.other-sha-conflicts")
def another_sha_is_invalid_input(service: Service) -> None:
    """Another sha is refused with 400."""

    def make(_: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            if sha is not None and sha != service.repositories.head_of(merge_request):
                raise InvalidError("sha is invalid", parameter="sha")

        return requiring

    _around(service.merge_request_approvals, "require_current_head", make)


@fault("merge-request-approvals.approve.other-sha-conflicts-without-approvals")
def first_approval_never_conflicts(service: Service) -> None:
    """Another sha is a conflict only where somebody has approved already."""
    approvals = service.merge_request_approvals

    def make(require: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            if approvals.approvals_of(merge_request):
                require(merge_request, sha)

        return requiring

    _around(approvals, "require_current_head", make)


def _before_conflict(service: Service, then: Callable[[Any, Any], None]) -> None:
    approvals = service.merge_request_approvals

    def make(approve: Any) -> Any:
        def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            try:
                approve(merge_request, caller, sha, password)
            except StatedError:
                then(merge_request, caller)
                raise

        return approving

    _around(approvals, "approve", make)


@fault("merge-request-approvals.approve.other-sha-changes-nothing")
def conflict_clears_approvals(service: Service) -> None:
    """The 409 for another sha clears all approvals."""
    _before_conflict(service, lambda merge_request, _: service.merge_request_approvals.clear_approvals(merge_request))


@fault("merge-request-approvals.approve.other-sha-changes-nothing")
def conflict_approves(service: Service) -> None:
    """The 409 for another sha comes after the approval was added."""
    _before_conflict(
        service, lambda merge_request, caller: service.merge_request_approvals.add_approval(caller, merge_request)
    )


@fault("merge-request-approvals.approve.lists-caller")
def approval_is_not_stored(service: Service) -> None:
    """Approving answers 201 and changes nothing."""
    service.merge_request_approvals.add_approval = does_nothing


@fault("merge-request-approvals.approve.lists-caller")
def approval_is_given_for_the_author(service: Service) -> None:
    """An approval is listed as that of the author."""
    approvals = service.merge_request_approvals

    def make(add: Any) -> Any:
        return lambda user, merge_request: add(service.identities.users[merge_request.author_id], merge_request)

    _around(approvals, "add_approval", make)


@fault("merge-request-approvals.approve.lists-caller-in-rule")
def rules_count_nobody(service: Service) -> None:
    """The state shows nobody as approver of a rule."""

    def alter(_: Request, response: Response) -> None:
        response.content = {
            **response.content,
            "rules": [{**rule, "approved_by": []} for rule in response.content["rules"]],
        }

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)


@fault("merge-request-approvals.approve.left-never-rises")
def approvals_left_rises(service: Service) -> None:
    """approvals_left counts the approvals that were given, too."""
    approvals = service.merge_request_approvals
    approvals.approvals_left = lambda merge_request: (
        approvals.approvals_required(merge_request) + len(approvals.approvals_of(merge_request))
    )


@fault("merge-request-approvals.approve.left-falls")
def approvals_left_stays(service: Service) -> None:
    """approvals_left is what is required, whoever has approved."""
    approvals = service.merge_request_approvals
    approvals.approvals_left = approvals.approvals_required


@fault("merge-request-approvals.approve.keeps-others")
def approval_replaces_others(service: Service) -> None:
    """An approval takes the place of those before."""
    approvals = service.merge_request_approvals

    def adding(user: Any, merge_request: Any) -> None:
        approvals.approvals[merge_request.id] = (Approval(user.id, service.clock.now()),)

    approvals.add_approval = adding


@fault("merge-request-approvals.approve.keeps-others")
def approval_adds_the_maintainer(service: Service) -> None:
    """An approval adds the maintainer as well."""
    approvals = service.merge_request_approvals
    maintainer = service.identities.users[service.world.actors["maintainer"].id]

    def make(add: Any) -> Any:
        def adding(user: Any, merge_request: Any) -> None:
            add(user, merge_request)
            add(maintainer, merge_request)

        return adding

    _around(approvals, "add_approval", make)


@fault("merge-request-approvals.approve.repeated")
def second_approval_is_listed_twice(service: Service) -> None:
    """Approving a second time lists the caller twice."""
    approvals = service.merge_request_approvals

    def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        approvals.require_current_head(merge_request, sha)
        approvals.add_approval(caller, merge_request)

    approvals.approve = approving


@fault("merge-request-approvals.approve.repeated")
def second_approval_takes_it_back(service: Service) -> None:
    """Approving a second time takes the approval back."""
    approvals = service.merge_request_approvals

    def make(approve: Any) -> Any:
        def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            if approvals.approved_by(caller, merge_request):
                approvals.remove_approval(caller, merge_request)
            else:
                approve(merge_request, caller, sha, password)

        return approving

    _around(approvals, "approve", make)


# -- taking back and resetting -----------------------------------------------------------------------------------------


@fault("merge-request-approvals.unapprove.caller-is-gone")
def unapproval_changes_nothing(service: Service) -> None:
    """Unapproving answers 201 and changes nothing."""
    service.merge_request_approvals.remove_approval = does_nothing


@fault("merge-request-approvals.unapprove.keeps-others")
def unapproval_clears_all(service: Service) -> None:
    """Unapproving takes all approvals back."""
    approvals = service.merge_request_approvals
    approvals.remove_approval = lambda user, merge_request: approvals.clear_approvals(merge_request)


@fault("merge-request-approvals.unapprove.approve-again")
def approval_once_only(service: Service) -> None:
    """Who took the approval back cannot approve again."""
    approvals = service.merge_request_approvals
    seen: dict[Any, int] = {}

    def make(remove: Any) -> Any:
        def removing(user: Any, merge_request: Any) -> None:
            seen[user.id, merge_request.id] = 1
            remove(user, merge_request)

        return removing

    _around(approvals, "remove_approval", make)

    def make_approve(approve: Any) -> Any:
        def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            if (caller.id, merge_request.id) in seen:
                raise ForbiddenError
            approve(merge_request, caller, sha, password)

        return approving

    _around(approvals, "approve", make_approve)


@fault("merge-request-approvals.unapprove.without-approval")
def unapproval_without_approval_takes_anothers(service: Service) -> None:
    """Unapproving without an approval takes back the latest one."""
    approvals = service.merge_request_approvals

    def make(unapprove: Any) -> Any:
        def unapproving(merge_request: Any, caller: Any) -> None:
            given = approvals.approvals_of(merge_request)
            if given and not approvals.approved_by(caller, merge_request):
                approvals.approvals[merge_request.id] = given[:-1]
            unapprove(merge_request, caller)

        return unapproving

    _around(approvals, "unapprove", make)


@fault("merge-request-approvals.reset.clears-all")
def reset_leaves_one(service: Service) -> None:
    """A reset leaves the last approval."""
    approvals = service.merge_request_approvals

    def clearing(merge_request: Any) -> None:
        approvals.approvals[merge_request.id] = approvals.approvals_of(merge_request)[-1:]

    approvals.clear_approvals = clearing


@fault("merge-request-approvals.reset.others-get-401")
def maintainers_get_403(service: Service) -> None:
    """Whoever is no bot gets 403."""

    def make(require: Any) -> Any:
        def requiring(caller: Any, merge_request: Any) -> None:
            try:
                require(caller, merge_request)
            except StatedError:
                raise ForbiddenError from None

        return requiring

    _around(service.merge_request_approvals, "require_bot", make)


@fault("merge-request-approvals.reset.by-others-changes-nothing")
def refused_reset_clears_all_the_same(service: Service) -> None:
    """A reset by whoever is no bot is answered 401, after it was done."""
    approvals = service.merge_request_approvals

    def make(reset: Any) -> Any:
        def resetting(merge_request: Any, caller: Any) -> None:
            approvals.clear_approvals(merge_request)
            reset(merge_request, caller)

        return resetting

    _around(approvals, "reset_approvals", make)


@fault("merge-request-approvals.approvals-are-separate")
def approval_spreads(service: Service) -> None:
    """An approval counts for the next merge request of the project, too."""
    approvals = service.merge_request_approvals

    def make(add: Any) -> Any:
        def adding(user: Any, merge_request: Any) -> None:
            for known in list(service.repositories.merge_requests.values()):
                if known.project_id == merge_request.project_id and not approvals.approved_by(user, known):
                    add(user, known)

        return adding

    _around(approvals, "add_approval", make)


@fault("merge-request-approvals.approvals-are-separate")
def unapproval_spreads(service: Service) -> None:
    """Unapproving takes the caller's approvals of all merge requests back."""
    approvals = service.merge_request_approvals

    def make(remove: Any) -> Any:
        def removing(user: Any, merge_request: Any) -> None:
            for known in list(service.repositories.merge_requests.values()):
                remove(user, known)

        return removing

    _around(approvals, "remove_approval", make)


@fault("merge-request-approvals.approvals-are-separate")
def reset_spreads(service: Service) -> None:
    """A reset clears the approvals of all merge requests."""
    approvals = service.merge_request_approvals

    def make(clear: Any) -> Any:
        def clearing(merge_request: Any) -> None:
            for known in list(service.repositories.merge_requests.values()):
                clear(known)

        return clearing

    _around(approvals, "clear_approvals", make)


# -- the password ------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.password.missing")
def no_password_is_needed(service: Service) -> None:
    """Only a password that is sent is looked at."""
    approvals = service.merge_request_approvals

    def make(require: Any) -> Any:
        def requiring(caller: Any, merge_request: Any, password: Any) -> None:
            if password is not None:
                require(caller, merge_request, password)

        return requiring

    _around(approvals, "require_password", make)


@fault("merge-request-approvals.password.wrong")
def any_password_will_do(service: Service) -> None:
    """Any password is taken."""
    service.merge_request_approvals.password_matches = lambda caller, password: password is not None


@fault("merge-request-approvals.password.right")
def right_password_is_not_stored(service: Service) -> None:
    """Where a password is required even the right one is refused."""
    service.merge_request_approvals.password_matches = lambda caller, password: False


@fault("merge-request-approvals.password.wrong")
def wrong_password_approves_all_the_same(service: Service) -> None:
    """A wrong password is refused after the approval was added."""
    approvals = service.merge_request_approvals

    def make(require: Any) -> Any:
        def requiring(caller: Any, merge_request: Any, password: Any) -> None:
            wrong = password is not None and not approvals.password_matches(caller, password)
            if (
                wrong
                and approvals.password_required(merge_request)
                and not approvals.approved_by(caller, merge_request)
            ):
                approvals.add_approval(caller, merge_request)
            require(caller, merge_request, password)

        return requiring

    _around(approvals, "require_password", make)


# -- roles and projects ------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.unknown-project")
def unknown_project_is_the_main_one(service: Service) -> None:
    """A project number that nothing has stands for the main project."""
    find = service.identities.find_project
    main = service.world.one("project").id
    service.identities.find_project = lambda text: find(text) or (find(str(main)) if text == "2000000001" else None)


@fault("merge-request-approvals.authorization.maintainer-is-served")
def maintainers_cannot_read_the_state(service: Service) -> None:
    """Only owners may read the approval state."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if request.caller.username == "maintainer":
                raise ForbiddenError
            return handler(request)

        return handle

    _handling(service, f"GET {MERGE_REQUEST}/approval_state", make)
