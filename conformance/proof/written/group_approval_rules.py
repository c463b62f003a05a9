"""Faults of the approval rules of groups: transitions, isolation, and what is accepted that should not be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import altering, fault
from conformance.reference.areas.approval_rule_records import Level, RuleType, home_of
from conformance.reference.errors import RejectedError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

RULES = "/groups/:id/approval_rules"
RULE = f"{RULES}/:approval_rule_id"


def _area(service: Service) -> Any:
    return service.group_approval_rules  # type: ignore[attr-defined]


def _store(service: Service) -> Any:
    return service.approval_rules.rules  # type: ignore[attr-defined]


def _after(service: Service, name: str, then: Callable[..., Any]) -> None:
    """Let a method of the rules of groups do something more, which may replace its result."""
    method = getattr(_area(service), name)

    def more(*arguments: Any) -> Any:
        result = method(*arguments)
        changed = then(result, *arguments)
        return result if changed is None else changed

    setattr(_area(service), name, more)


def _asked_of(service: Service, name: str, place: int, **values: Any) -> None:
    """Take a creation or change for one that asks for something else."""
    method = getattr(_area(service), name)

    def twisted(*arguments: Any) -> Any:
        said = list(arguments)
        said[place] = replace(said[place], **values)
        return method(*said)

    setattr(_area(service), name, twisted)


def _others(service: Service, rule: Any) -> list[Any]:
    return [other for other in list(_store(service).values()) if other.home == rule.home and other.id != rule.id]


def _bodies(service: Service, key: str, twist: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Take what is sent in a body for something else."""
    route = service.routes.get(key)

    def twisted(request: Request) -> Response:
        if request.body:
            request.body = json.dumps(twist(json.loads(request.body))).encode()
        return route.handler(request)

    service.routes.change(key, handler=twisted)


def _refusing(service: Service, key: str, when: Callable[[Request], bool]) -> None:
    route = service.routes.get(key)

    def strict(request: Request) -> Response:
        if when(request):
            raise RejectedError("is not taken", parameter="name")
        return route.handler(request)

    service.routes.change(key, handler=strict)


def _breaking(service: Service, sent: bytes) -> None:
    def broken(route: Any, request: Any, response: Any) -> Any:
        if route.key == f"POST {RULES}" and sent in request.body:
            response.status = 500
        return response

    service.transformers.append(broken)


# -- creation ------------------------------------------------------------------------------------------------------------


@fault("group-approval-rules.create.listed")
def created_group_rule_is_not_kept(service: Service) -> None:
    """POST answers with a rule that is in no list."""
    _after(service, "create_rule", lambda rule, *_: _store(service).pop(rule.id) and None)


@fault("group-approval-rules.create.listed")
def created_group_rule_has_an_old_id(service: Service) -> None:
    """A rule that is created takes the place of the first regular one."""

    def reuse(rule: Any, *_: Any) -> Any:
        regular = [other for other in _others(service, rule) if other.rule_type is RuleType.REGULAR]
        if not regular:
            return None
        _store(service).pop(rule.id)
        _store(service)[regular[0].id] = replace(rule, id=regular[0].id)
        return _store(service)[regular[0].id]

    _after(service, "create_rule", reuse)


@fault("group-approval-rules.create.values")
def group_rule_is_answered_with_another_number(service: Service) -> None:
    """The answer to a creation shows approvals_required one too high."""
    _after(service, "create_rule", lambda rule, *_: replace(rule, approvals_required=rule.approvals_required + 1))


@fault("group-approval-rules.create.leaves-other-rules")
def group_creation_renumbers_the_others(service: Service) -> None:
    """A creation gives every other rule of the group its number."""

    def spread(rule: Any, *_: Any) -> None:
        for other in _others(service, rule):
            _store(service)[other.id] = replace(other, approvals_required=rule.approvals_required)

    _after(service, "create_rule", spread)


@fault("group-approval-rules.create.user-ids")
def users_of_a_group_rule_are_answered_and_not_kept(service: Service) -> None:
    """The answer to a creation shows the users; the list does not."""

    def forget(rule: Any, *_: Any) -> None:
        _store(service)[rule.id] = replace(rule, users=())

    _after(service, "create_rule", forget)


@fault("group-approval-rules.create.group-ids")
def groups_of_a_group_rule_are_dropped(service: Service) -> None:
    """A creation takes no notice of group_ids."""
    _asked_of(service, "create_rule", 1, group_ids=None)


@fault("group-approval-rules.create.minimal")
def group_rules_need_a_type(service: Service) -> None:
    """A creation without rule_type is refused."""
    _refusing(service, f"POST {RULES}", lambda request: not request.query and b"rule_type" not in request.body)


@fault("group-approval-rules.create.query-parameters")
def group_creation_reads_the_body_alone(service: Service) -> None:
    """A creation whose parameters are in the query is refused."""
    _refusing(service, f"POST {RULES}", lambda request: b"name=" in request.query)


@fault("group-approval-rules.update.query-parameters")
def group_change_reads_the_body_alone(service: Service) -> None:
    """A change takes no notice of parameters in the query."""
    route = service.routes.get(f"PUT {RULE}")

    def deaf(request: Request) -> Response:
        request.query = b""
        return route.handler(request)

    service.routes.change(f"PUT {RULE}", handler=deaf)


@fault("group-approval-rules.create.any-approver")
def any_approver_of_a_group_breaks(service: Service) -> None:
    """Creating a rule of type any_approver is a server error."""
    _breaking(service, b'"any_approver"')


@fault("group-approval-rules.create.report-approver")
def report_approver_of_a_group_breaks(service: Service) -> None:
    """Creating a rule of type report_approver is a server error."""
    _breaking(service, b'"report_approver"')


def _keeping_type(service: Service, sent: str, shown: str) -> None:
    route = service.routes.get(f"POST {RULES}")

    def lenient(request: Request) -> Response:
        is_it = f'"{sent}"'.encode() in request.body
        request.body = request.body.replace(f'"{sent}"'.encode(), b'"regular"')
        response = route.handler(request)
        if is_it:
            response.content["rule_type"] = shown  # type: ignore[index] # a rule
        return response

    service.routes.change(f"POST {RULES}", handler=lenient)


@fault("group-approval-rules.create.code-owner")
def code_owner_of_a_group_can_be_created(service: Service) -> None:
    """A creation that sends the type code_owner is answered with one."""
    _keeping_type(service, "code_owner", "code_owner")


@fault("group-approval-rules.create.rule-type-is-known")
def unknown_type_of_a_group_rule_is_shown(service: Service) -> None:
    """A creation shows whatever rule_type was sent."""
    _keeping_type(service, "unheard-of", "unheard-of")


def _flat(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda body: {
        name: list(value.values()) if name in names and isinstance(value, dict) else value
        for name, value in body.items()
    }


@fault("group-approval-rules.create.approvers-are-lists")
def object_names_users_of_a_new_group_rule(service: Service) -> None:
    """A creation takes the values of an object in user_ids for users."""
    _bodies(service, f"POST {RULES}", _flat("user_ids"))


@fault("group-approval-rules.update.approvers-are-lists")
def object_names_users_of_a_group_rule(service: Service) -> None:
    """A change takes the values of an object in user_ids for users."""
    _bodies(service, f"PUT {RULE}", _flat("user_ids"))


@fault("group-approval-rules.rule.without-hidden-groups")
def every_group_of_a_group_rule_counts_as_hidden(service: Service) -> None:
    """contains_hidden_groups is true as soon as a rule has groups."""
    present = _area(service).present
    _area(service).present = lambda rule, viewer: {
        **present(rule, viewer),
        "contains_hidden_groups": bool(rule.groups),
    }


# -- change --------------------------------------------------------------------------------------------------------------


@fault("group-approval-rules.update.name")
def changed_name_of_a_group_rule_is_not_kept(service: Service) -> None:
    """PUT answers with the new name and keeps the former one."""
    update = _area(service).update_rule

    def forgetful(group: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = _store(service).get(number)
        changed = update(group, number, wanted, caller)
        _store(service)[number] = replace(changed, name=before.name)
        return changed

    _area(service).update_rule = forgetful


@fault("group-approval-rules.update.name")
def change_of_the_name_resets_the_number(service: Service) -> None:
    """A change of the name alone makes approvals_required nothing."""

    def reset(rule: Any, _: Any, __: Any, wanted: Any, ___: Any) -> Any:
        if wanted.approvals_required is not None:
            return None
        _store(service)[rule.id] = replace(rule, approvals_required=0)
        return _store(service)[rule.id]

    _after(service, "update_rule", reset)


@fault("group-approval-rules.update.approvals-required")
def changed_number_of_a_group_rule_is_dropped(service: Service) -> None:
    """A change takes no notice of approvals_required."""
    _asked_of(service, "update_rule", 2, approvals_required=None)


@fault("group-approval-rules.update.name-alone")
def group_change_needs_the_number(service: Service) -> None:
    """A change of the name alone is refused."""
    _refusing(
        service,
        f"PUT {RULE}",
        lambda request: b'"name"' in request.body and b'"approvals_required"' not in request.body,
    )


@fault("group-approval-rules.update.approvals-required-alone")
def group_change_needs_the_name(service: Service) -> None:
    """A change of approvals_required alone is refused."""
    _refusing(
        service,
        f"PUT {RULE}",
        lambda request: b'"approvals_required"' in request.body and b'"name"' not in request.body,
    )


@fault("group-approval-rules.update.answers-with-rule")
def group_change_is_answered_with_another_id(service: Service) -> None:
    """PUT answers with the rule under another id."""
    _after(service, "update_rule", lambda rule, *_: replace(rule, id=rule.id + 1000))


@fault("group-approval-rules.update.leaves-other-rules")
def group_change_reaches_the_others(service: Service) -> None:
    """A change gives every other rule of the group its name."""

    def spread(rule: Any, *_: Any) -> None:
        for other in _others(service, rule):
            _store(service)[other.id] = replace(other, name=rule.name)

    _after(service, "update_rule", spread)


def _method(service: Service, name: str, result: Callable[[Any], Any]) -> None:
    rules = service.approval_rules  # type: ignore[attr-defined]
    method = getattr(rules, name)
    setattr(
        rules,
        name,
        lambda rule, *rest: result(rule) if rule.home.level is Level.GROUP else method(rule, *rest),
    )


@fault("group-approval-rules.update.user-ids")
def users_of_a_group_rule_stay_as_they_are(service: Service) -> None:
    """A change takes no notice of user_ids."""
    _method(service, "users_after", lambda rule: rule.users)


@fault("group-approval-rules.update.group-ids")
def groups_of_a_group_rule_stay_as_they_are(service: Service) -> None:
    """A change takes no notice of group_ids."""
    _method(service, "groups_after", lambda rule: rule.groups)


@fault("group-approval-rules.update.rule-type")
def group_change_refuses_the_type(service: Service) -> None:
    """A change that sends rule_type is refused."""
    _refusing(service, f"PUT {RULE}", lambda request: b'"regular"' in request.body)


@fault("group-approval-rules.update.rule-type-is-known")
def group_change_shows_an_unknown_type(service: Service) -> None:
    """A rule shows whatever rule_type was sent in a change."""
    route = service.routes.get(f"PUT {RULE}")
    types: dict[int, str] = {}

    def lenient(request: Request) -> Response:
        body = json.loads(request.body or b"{}")
        if body.get("rule_type") == "unheard-of":
            types[request.path_id("approval_rule_id")] = body.pop("rule_type")
            request.body = json.dumps(body).encode()
        return route.handler(request)

    service.routes.change(f"PUT {RULE}", handler=lenient)
    present = _area(service).present
    _area(service).present = lambda rule, viewer: {
        **present(rule, viewer),
        **({"rule_type": types[rule.id]} if rule.id in types else {}),
    }


@fault("group-approval-rules.update.rule-id-is-integer")
def group_rule_may_be_named_by_any_text(service: Service) -> None:
    """A change of a rule whose id is no number changes the last one."""
    route = service.routes.get(f"PUT {RULE}")

    def lenient(request: Request) -> Response:
        if not request.path["approval_rule_id"].isdigit():
            rules = _area(service).rules(request.group)
            request.path = {**request.path, "approval_rule_id": str(rules[-1].id)}
        return route.handler(request)

    service.routes.change(f"PUT {RULE}", handler=lenient)


@fault("group-approval-rules.update.unknown-rule")
def unknown_group_rule_is_created(service: Service) -> None:
    """A change of a rule that is not there creates one."""
    update = _area(service).update_rule

    def upsert(group: Any, number: int, wanted: Any, caller: Any) -> Any:
        if number in _store(service):
            return update(group, number, wanted, caller)
        return _area(service).create_rule(group, replace(wanted, approvals_required=1), caller)

    _area(service).update_rule = upsert


@fault("group-approval-rules.update.rule-of-another-group")
def rule_of_another_group_is_changed(service: Service) -> None:
    """A rule is changed under the path of any group."""
    rules = service.approval_rules  # type: ignore[attr-defined]
    find = rules.find

    def anywhere(home: Any, number: int) -> Any:
        rule = rules.rules.get(number)
        same_level = rule is not None and rule.home.level is Level.GROUP and home.level is Level.GROUP
        return rule if same_level else find(home, number)

    rules.find = anywhere


# -- the list, other groups and who may ------------------------------------------------------------------------------------


@fault("group-approval-rules.pages")
def group_rules_are_never_paged(service: Service) -> None:
    """The list takes no notice of page and per_page."""

    def whole(request: Request, response: Response) -> None:
        area = _area(service)
        response.content = [area.present(rule, request.caller) for rule in area.rules(request.group)]

    altering(service, f"GET {RULES}", whole)


@fault("group-approval-rules.versions.pagination")
def group_rules_come_twice(service: Service) -> None:
    """Every page behind the first begins with the last rule of the page before it."""

    def overlap(request: Request, response: Response) -> None:
        area = _area(service)
        rules = [area.present(rule, request.caller) for rule in area.rules(request.group)]
        first = next(
            (n for n, rule in enumerate(rules) if response.content and rule["id"] == response.content[0]["id"]), 0
        )  # type: ignore[index]
        if first:
            response.content = [rules[first - 1], *response.content][: len(response.content)]  # type: ignore[misc, arg-type]

    altering(service, f"GET {RULES}", overlap)


@fault("group-approval-rules.versions.applies-to-all-protected-branches")
def group_rules_have_the_flag_as_text(service: Service) -> None:
    """applies_to_all_protected_branches is a text in rules of groups."""
    present = _area(service).present
    _area(service).present = lambda rule, viewer: {
        **present(rule, viewer),
        "applies_to_all_protected_branches": "true",
    }


@fault("group-approval-rules.any-approver.asks-for-none")
def untouched_rule_of_a_group_asks_for_one(service: Service) -> None:
    """The rule that a group has from the beginning asks for one approval."""
    rules = service.approval_rules  # type: ignore[attr-defined]
    make = rules.make_default_rule

    def asking(home: Any) -> None:
        known = set(rules.rules)
        make(home)
        for number in set(rules.rules) - known:
            rules.rules[number] = replace(rules.rules[number], approvals_required=1)

    rules.make_default_rule = asking


@fault("group-approval-rules.report-approver.from-policies")
def rules_of_policies_are_not_listed_in_groups(service: Service) -> None:
    """The list leaves out rules of type report_approver."""
    rules = _area(service).rules
    _area(service).rules = lambda group: [r for r in rules(group) if r.rule_type is not RuleType.REPORT_APPROVER]


@fault("group-approval-rules.groups-are-separate")
def group_creation_reaches_the_sibling(service: Service) -> None:
    """A rule that is created in one group is created in every other one."""

    def spread(rule: Any, group: Any, *_: Any) -> None:
        for other in list(service.identities.groups.values()):
            if other.id != group.id:
                number = service.store.next_id("approval_rules")
                _store(service)[number] = replace(rule, id=number, home=home_of(other))

    _after(service, "create_rule", spread)


@fault("group-approval-rules.groups-are-separate")
def group_change_reaches_the_sibling(service: Service) -> None:
    """A change renames the first rule of every other group too."""

    def spread(rule: Any, group: Any, *_: Any) -> None:
        for other in list(service.identities.groups.values()):
            rules = _area(service).rules(other)
            if other.id != group.id and rules:
                _store(service)[rules[0].id] = replace(rules[0], name=rule.name)

    _after(service, "update_rule", spread)


@fault("group-approval-rules.unknown-group")
def rules_of_an_unknown_group_are_those_of_a_known_one(service: Service) -> None:
    """A group that does not exist is taken for some other."""
    find = service.identities.find_group

    def anything(reference: str) -> Any:
        return find(reference) or service.identities.groups[service.world.one("group").id]

    service.identities.find_group = anything  # type: ignore[method-assign]


@fault("group-approval-rules.authorization.listing-below-administrator")
def developer_may_list_group_rules(service: Service) -> None:
    """The list asks for the developer role only."""
    service.routes.change(f"GET {RULES}", least_role=Role.DEVELOPER)


@fault("group-approval-rules.authorization.creating-below-administrator")
def developer_may_create_group_rules(service: Service) -> None:
    """Creation asks for the developer role only."""
    service.routes.change(f"POST {RULES}", least_role=Role.DEVELOPER)


@fault("group-approval-rules.authorization.updating-below-administrator")
def refused_change_of_a_group_rule_is_kept(service: Service) -> None:
    """A developer who changes a rule is refused, and the change is kept."""
    service.routes.change(f"PUT {RULE}", least_role=Role.DEVELOPER)

    def refused(route: Any, request: Any, response: Any) -> Any:
        if route.key == f"PUT {RULE}" and response.status < 300:
            role = service.identities.role_in(request.caller, request.group)
            if role < Role.OWNER:
                response.status = 403
        return response

    service.transformers.append(refused)


def _converting(name: str, kind: type, instead: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda body: {**body, name: instead} if name in body and not isinstance(body[name], kind) else body


@fault("group-approval-rules.update.name-is-string")
def group_change_takes_any_name(service: Service) -> None:
    """A change takes whatever is sent as a name for one."""
    _bodies(service, f"PUT {RULE}", _converting("name", str, "Something"))


@fault("group-approval-rules.update.approvals-required-is-integer")
def group_change_takes_any_number(service: Service) -> None:
    """A change takes whatever is sent as approvals_required for a number."""
    _bodies(service, f"PUT {RULE}", _converting("approvals_required", int, 7))
