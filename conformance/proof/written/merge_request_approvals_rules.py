"""Faults of the rules of a merge request: reading, creating, copying from a project rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    altering,
    answering,
    around,
    breaking,
    flattened,
    handling,
    is_number,
    names_nothing,
    parameters,
    without,
)
from conformance.reference.errors import InvalidError
from conformance.reference.http import Response, ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
RULES = f"{MERGE_REQUEST}/approval_rules"
RULE = f"{RULES}/:approval_rule_id"

# -- reading and creating ---------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.create.listed")
def rules_with_groups_alone_are_not_listed(service: Service) -> None:
    """The list is joined with the users: it lacks rules that name only groups."""

    def make(listed: Any) -> Any:
        return lambda merge_request: [one for one in listed(merge_request) if one.users or not one.groups]

    around(service.merge_request_approval_rules, "listed", make)


@fault("merge-request-approvals.rules.copy.users")
def copies_name_only_whom_the_call_names(service: Service) -> None:
    """A copy of a project rule has the users of the call, if that names any, and not those of the project rule."""
    rules = service.merge_request_approval_rules

    def make(copied: Any) -> Any:
        def overruled(merge_request: Any, source: Any, wanted: Any) -> Any:
            named = service.approval_rules.users_named(wanted, rules.project_of(merge_request))
            copy = copied(merge_request, source, wanted)
            return replace(copy, users=named) if named else copy

        return overruled

    around(rules, "copied_project_rule", make)


@fault("merge-request-approvals.rules.read-one.rule-id-is-integer")
def any_text_reads_a_rule(service: Service) -> None:
    """A rule id that is not a number reads the first rule."""

    def make(handler: Any) -> Any:
        def handle(request: Any) -> Any:
            if not is_number(request, "approval_rule_id"):
                found = list(service.approval_rules.rules.values())
                return ok(
                    service.approval_rules.present(found[-1], request.caller)
                    | {"source_rule": None, "overridden": False}
                )
            return handler(request)

        return handle

    handling(service, f"GET {RULE}", make)


@fault("merge-request-approvals.rules.read-one.unknown-rule")
def unknown_rule_is_read_as_empty(service: Service) -> None:
    """A rule that does not exist is read as an empty object."""
    answering(service, f"GET {RULE}", lambda request: names_nothing(request, "approval_rule_id"), lambda: ok({}))


@fault("merge-request-approvals.rules.read-one")
def reads_another_rule(service: Service) -> None:
    """Reading one rule shows another one of the merge request."""

    def alter(_: Request, response: Response) -> None:
        response.content = {**response.content, "id": response.content["id"] + 1}

    altering(service, f"GET {RULE}", alter)


@fault("merge-request-approvals.rules.create.approvers-are-lists")
def object_of_users_is_taken(service: Service) -> None:
    """The values of an object in place of user_ids become users."""
    parameters(service, f"POST {RULES}", flattened("user_ids"))


@fault("merge-request-approvals.rules.create.approvers-are-lists")
def object_of_groups_breaks(service: Service) -> None:
    """An object in place of group_ids causes a server error."""
    breaking(service, f"POST {RULES}", lambda request: isinstance(request.parameters._values.get("group_ids"), dict))


@fault("merge-request-approvals.rules.create.usernames-are-a-list")
def object_of_usernames_is_taken(service: Service) -> None:
    """The values of an object in place of usernames become users."""
    parameters(service, f"POST {RULES}", flattened("usernames"))


@fault("merge-request-approvals.rules.create.project-rule-is-integer")
def bad_project_rule_is_dropped(service: Service) -> None:
    """An approval_project_rule_id that is not a number is ignored."""
    parameters(
        service,
        f"POST {RULES}",
        without("approval_project_rule_id", unless=lambda value: isinstance(value, int)),
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

    around(service.merge_request_approval_rules, "create_rule", make)


@fault("merge-request-approvals.rules.create.name-and-number")
def creation_stores_another_number(service: Service) -> None:
    """The stored rule requires one approval more than the answer to its creation shows."""

    def make(create: Any) -> Any:
        def creating(*arguments: Any) -> Any:
            rule = create(*arguments)
            service.approval_rules.rules[rule.id] = replace(rule, approvals_required=rule.approvals_required + 1)
            return rule

        return creating

    around(service.merge_request_approval_rules, "create_rule", make)


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

    around(service.merge_request_approval_rules, "rules", make)


@fault("merge-request-approvals.rules.create.in-state")
def state_shows_project_rules_only(service: Service) -> None:
    """The approval state shows the rules of the project, whatever the merge request has."""
    rules = service.merge_request_approval_rules
    rules.effective_rules = rules.project_rules


def stored_otherwise(service: Service, name: str, change: Callable[[Any], Any]) -> None:
    def make(method: Any) -> Any:
        def doing(*arguments: Any) -> Any:
            rule = change(method(*arguments))
            service.approval_rules.rules[rule.id] = rule
            return rule

        return doing

    around(service.merge_request_approval_rules, name, make)


@fault("merge-request-approvals.rules.create.users")
def creation_keeps_one_user(service: Service) -> None:
    """Of several users, only the first is stored in the rule."""
    stored_otherwise(service, "create_rule", lambda rule: replace(rule, users=rule.users[:1]))


@fault("merge-request-approvals.rules.create.groups")
def creation_drops_groups(service: Service) -> None:
    """Of several groups, only the last is stored in the rule."""
    stored_otherwise(service, "create_rule", lambda rule: replace(rule, groups=rule.groups[-1:]))


@fault("merge-request-approvals.rules.create.usernames")
def creation_ignores_usernames(service: Service) -> None:
    """A creation ignores usernames."""
    parameters(service, f"POST {RULES}", without("usernames"))


@fault("merge-request-approvals.rules.create.user-ids-and-usernames")
def usernames_hide_user_ids(service: Service) -> None:
    """If usernames are sent, user_ids are ignored."""
    parameters(
        service,
        f"POST {RULES}",
        lambda values: {k: v for k, v in values.items() if k != "user_ids" or "usernames" not in values},
    )


@fault("merge-request-approvals.rules.create.usernames")
def usernames_hide_groups(service: Service) -> None:
    """If usernames are sent, group_ids are ignored."""
    parameters(
        service,
        f"POST {RULES}",
        lambda values: {k: v for k, v in values.items() if k != "group_ids" or "usernames" not in values},
    )


# -- copies -----------------------------------------------------------------------------------------------------


def copied_otherwise(service: Service, change: Callable[[Any, Any, Any], Any]) -> None:
    def make(copy: Any) -> Any:
        return lambda merge_request, source, wanted: change(copy(merge_request, source, wanted), source, wanted)

    around(service.merge_request_approval_rules, "copied_project_rule", make)


@fault("merge-request-approvals.rules.copy.name")
def copy_takes_the_sent_name(service: Service) -> None:
    """A copy has the name that was sent."""
    copied_otherwise(service, lambda rule, source, wanted: replace(rule, name=wanted.name))


@fault("merge-request-approvals.rules.copy.users")
def copy_has_no_users(service: Service) -> None:
    """A copy has no users."""
    copied_otherwise(service, lambda rule, source, wanted: replace(rule, users=()))


@fault("merge-request-approvals.rules.copy.groups")
def copy_has_no_groups(service: Service) -> None:
    """A copy has no groups."""
    copied_otherwise(service, lambda rule, source, wanted: replace(rule, groups=()))


@fault("merge-request-approvals.rules.copy.approvals-required")
def copy_takes_the_number_too(service: Service) -> None:
    """A copy requires as many approvals as the project rule."""
    copied_otherwise(service, lambda rule, source, wanted: replace(rule, approvals_required=source.approvals_required))


@fault("merge-request-approvals.rules.copy.leaves-project-rule")
def copying_changes_the_project_rule(service: Service) -> None:
    """Copying a project rule gives it the number of the copy."""

    def change(rule: Any, source: Any, wanted: Any) -> Any:
        service.approval_rules.rules[source.id] = replace(source, approvals_required=9)
        return rule

    copied_otherwise(service, change)


@fault("merge-request-approvals.rules.copy.leaves-project-rule")
def changing_a_copy_changes_the_project_rule(service: Service) -> None:
    """A change of a copy also changes the project rule."""

    def change(rule: Any) -> Any:
        source = service.approval_rules.rules.get(rule.source_id) if rule.source_id else None
        if source:
            service.approval_rules.rules[source.id] = replace(source, users=rule.users)
        return rule

    stored_otherwise(service, "update_rule", change)


@fault("merge-request-approvals.rules.copy.approvals-required-stays-required")
def copy_needs_no_number(service: Service) -> None:
    """A copy without approvals_required is created with the number of the project rule."""
    parameters(
        service,
        f"POST {RULES}",
        lambda values: {"approvals_required": 1, **values} if "approval_project_rule_id" in values else values,
    )


@fault("merge-request-approvals.rules.copy.unknown-project-rule")
def unknown_project_rule_breaks(service: Service) -> None:
    """Copying a project rule that does not exist causes a server error."""
    breaking(
        service,
        f"POST {RULES}",
        lambda request: request.parameters._values.get("approval_project_rule_id") == 2_000_000_001,
    )
