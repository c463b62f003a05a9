"""Faults of the approval rules of projects: transitions, isolation, and what is accepted that should not be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import altering, does_nothing, fault
from conformance.reference.areas.approval_rule_records import Level, RuleType, home_of
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

RULES = "/projects/:id/approval_rules"
RULE = f"{RULES}/:approval_rule_id"
FLAG = "applies_to_all_protected_branches"


def _after(service: Service, name: str, then: Callable[..., Any]) -> None:
    """Let a method of the rules of projects do something more, which may replace its result."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    method = getattr(area, name)

    def more(*arguments: Any) -> Any:
        result = method(*arguments)
        changed = then(result, *arguments)
        return result if changed is None else changed

    setattr(area, name, more)


def _asked(service: Service, **values: Any) -> None:
    """Take every creation and change of a project's rule for one that asks for something else."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    for name, place in (("create_rule", 1), ("update_rule", 2)):
        _asked_of(area, name, place, lambda wanted: replace(wanted, **values))


def _asked_of(area: Any, name: str, place: int, twist: Callable[[Any], Any]) -> None:
    method = getattr(area, name)

    def twisted(*arguments: Any) -> Any:
        said = list(arguments)
        said[place] = twist(said[place])
        return method(*said)

    setattr(area, name, twisted)


def _store(service: Service) -> Any:
    return service.approval_rules.rules  # type: ignore[attr-defined]


def _others(service: Service, rule: Any) -> list[Any]:
    return [other for other in list(_store(service).values()) if other.home == rule.home and other.id != rule.id]


# -- creation ------------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.create.readable")
def created_rule_is_not_kept(service: Service) -> None:
    """POST answers with a rule that nobody finds again."""
    _after(service, "create_rule", lambda rule, *_: _store(service).pop(rule.id) and None)


@fault("project-approval-rules.create.listed")
def created_rule_is_not_listed(service: Service) -> None:
    """A rule that was created can be read by its id but is not in the list."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    rules = area.rules
    area.rules = lambda project: rules(project)[:1]


@fault("project-approval-rules.create.values")
def answer_to_creation_has_another_number(service: Service) -> None:
    """The answer to a creation shows approvals_required one too high; what is kept is right."""
    _after(service, "create_rule", lambda rule, *_: replace(rule, approvals_required=rule.approvals_required + 1))


@fault("project-approval-rules.create.listed")
def number_is_not_kept(service: Service) -> None:
    """The answer shows approvals_required as sent; the rule that is kept asks for one."""

    def keep(rule: Any, *_: Any) -> None:
        _store(service)[rule.id] = replace(rule, approvals_required=1)

    _after(service, "create_rule", keep)


@fault("project-approval-rules.create.leaves-other-rules")
def creation_renames_the_others(service: Service) -> None:
    """A creation gives every other rule of the project the new name."""

    def rename(rule: Any, *_: Any) -> None:
        for other in _others(service, rule):
            _store(service)[other.id] = replace(other, name=rule.name)

    _after(service, "create_rule", rename)


@fault("project-approval-rules.create.leaves-other-rules")
def creation_drops_an_older_rule(service: Service) -> None:
    """A project keeps no more than one rule that was created."""

    def drop(rule: Any, *_: Any) -> None:
        for other in _others(service, rule):
            if other.rule_type is RuleType.REGULAR:
                _store(service).pop(other.id)

    _after(service, "create_rule", drop)


@fault("project-approval-rules.create.user-ids")
def users_by_number_are_dropped(service: Service) -> None:
    """A creation takes no notice of user_ids."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(area, "create_rule", 1, lambda wanted: replace(wanted, user_ids=None))


@fault("project-approval-rules.create.user-ids")
def users_are_answered_and_not_kept(service: Service) -> None:
    """The answer to a creation shows the users; the rule that is kept has none."""

    def forget(rule: Any, *_: Any) -> None:
        _store(service)[rule.id] = replace(rule, users=())

    _after(service, "create_rule", forget)


@fault("project-approval-rules.create.group-ids")
def groups_are_dropped(service: Service) -> None:
    """A creation takes no notice of group_ids."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(area, "create_rule", 1, lambda wanted: replace(wanted, group_ids=None))


@fault("project-approval-rules.create.usernames")
def usernames_are_dropped(service: Service) -> None:
    """A creation takes no notice of usernames."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(area, "create_rule", 1, lambda wanted: replace(wanted, usernames=None))


@fault("project-approval-rules.create.user-ids-and-usernames")
def usernames_give_way_to_numbers(service: Service) -> None:
    """A creation that sends both lists of users takes the numbers alone."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(area, "create_rule", 1, lambda wanted: replace(wanted, usernames=None) if wanted.user_ids else wanted)


@fault("project-approval-rules.create.applies-to-all-protected-branches.default")
def flag_is_on_by_default(service: Service) -> None:
    """A rule that is created without the flag holds for every protected branch."""
    area = service.project_approval_rules  # type: ignore[attr-defined]

    def on(wanted: Any) -> Any:
        unsaid = wanted.applies_to_all_protected_branches is None
        return replace(wanted, applies_to_all_protected_branches=True) if unsaid else wanted

    _asked_of(area, "create_rule", 1, on)


@fault("project-approval-rules.create.protected-branch-ids.keep-the-flag-off")
def branches_switch_the_flag_on(service: Service) -> None:
    """A rule that is created with branches holds for every protected branch."""
    area = service.project_approval_rules  # type: ignore[attr-defined]

    def on(wanted: Any) -> Any:
        sent = wanted.protected_branch_ids and wanted.applies_to_all_protected_branches is None
        return replace(wanted, applies_to_all_protected_branches=True) if sent else wanted

    _asked_of(area, "create_rule", 1, on)


@fault("project-approval-rules.create.applies-to-all-protected-branches.stored")
def flag_is_answered_and_not_kept(service: Service) -> None:
    """The answer to a creation shows the flag; the rule that is kept has it off."""

    def forget(rule: Any, *_: Any) -> None:
        _store(service)[rule.id] = replace(rule, applies_to_all_protected_branches=False)

    _after(service, "create_rule", forget)


@fault("project-approval-rules.create.applies-to-all-protected-branches.over-branch-ids")
def branches_outweigh_the_flag(service: Service) -> None:
    """A creation that sends flag and branches takes the branches alone."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(
        area,
        "create_rule",
        1,
        lambda wanted: (
            replace(wanted, applies_to_all_protected_branches=False) if wanted.protected_branch_ids else wanted
        ),
    )


@fault("project-approval-rules.create.protected-branch-ids")
def branches_are_dropped(service: Service) -> None:
    """A creation takes no notice of protected_branch_ids."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(area, "create_rule", 1, lambda wanted: replace(wanted, protected_branch_ids=None))


@fault("project-approval-rules.create.protected-branch-ids")
def one_branch_stands_for_all(service: Service) -> None:
    """A rule that is created with one branch shows all protected ones."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    create = area.create_rule

    def widely(project: Any, wanted: Any, caller: Any) -> Any:
        branches = service.approval_rules.branches_of(project)  # type: ignore[attr-defined]
        sent = wanted.protected_branch_ids and tuple(branch.id for branch in branches)
        return create(project, replace(wanted, protected_branch_ids=sent), caller)

    area.create_rule = widely


@fault("project-approval-rules.create.rule-type")
def new_rules_are_for_any_approver(service: Service) -> None:
    """A rule that is created as regular is one for any approver."""

    def retype(rule: Any, *_: Any) -> Any:
        _store(service)[rule.id] = replace(rule, rule_type=RuleType.ANY_APPROVER)
        return _store(service)[rule.id]

    _after(service, "create_rule", retype)


@fault("project-approval-rules.create.minimal")
def type_has_to_be_sent(service: Service) -> None:
    """A creation without rule_type is refused."""
    _requiring(service, "rule_type", when=lambda said: not {"user_ids", "group_ids", "usernames"} & said.keys())


def _requiring(service: Service, name: str, when: Callable[[dict[str, Any]], bool] = lambda _: True) -> None:
    from conformance.reference.errors import InvalidError  # noqa: PLC0415 - only here

    route = service.routes.get(f"POST {RULES}")

    def strict(request: Request) -> Response:
        import json  # noqa: PLC0415 - only here

        said = json.loads(request.body)
        if name not in said and set(said) == {"name", "approvals_required"} and when(said):
            raise InvalidError(name)
        return route.handler(request)

    service.routes.change(f"POST {RULES}", handler=strict)


def _breaking(service: Service, key: str, when: Callable[[dict[str, Any]], bool]) -> None:
    """Answer 500 to certain bodies."""
    import json  # noqa: PLC0415 - only here

    def broken(route: Any, request: Any, response: Any) -> Any:
        if route.key == key and request.body and when(json.loads(request.body)):
            response.status = 500
        return response

    service.transformers.append(broken)


@fault("project-approval-rules.create.any-approver")
def any_approver_breaks(service: Service) -> None:
    """Creating a rule of type any_approver is a server error."""
    _breaking(service, f"POST {RULES}", lambda body: body.get("rule_type") == "any_approver")


@fault("project-approval-rules.create.report-approver")
def report_approver_breaks(service: Service) -> None:
    """Creating a rule of type report_approver is a server error."""
    _breaking(
        service,
        f"POST {RULES}",
        lambda body: body.get("rule_type") == "report_approver" and "report_type" not in body,
    )


@fault("project-approval-rules.create.report-type")
def reports_break(service: Service) -> None:
    """Creating a rule about license_scanning is a server error."""
    _breaking(service, f"POST {RULES}", lambda body: body.get("report_type") == "license_scanning")


@fault("project-approval-rules.create.code-owner")
def code_owner_can_be_created(service: Service) -> None:
    """A creation that sends the type code_owner creates one."""
    _any_type(service, "code_owner", RuleType.CODE_OWNER)


def _any_type(service: Service, sent: str, kept: Any) -> None:
    route = service.routes.get(f"POST {RULES}")

    def lenient(request: Request) -> Response:
        is_it = f'"{sent}"'.encode() in request.body
        request.body = request.body.replace(f'"{sent}"'.encode(), b'"regular"')
        response = route.handler(request)
        if is_it:
            number = response.content["id"]  # type: ignore[index] # a rule
            _store(service)[number] = replace(_store(service)[number], rule_type=kept)
            response.content["rule_type"] = kept.value  # type: ignore[index] # a rule
        return response

    service.routes.change(f"POST {RULES}", handler=lenient)


@fault("project-approval-rules.create.rule-type-is-known")
def unknown_type_is_shown(service: Service) -> None:
    """A creation shows whatever rule_type was sent."""
    _echo(service, "rule_type", "regular")


@fault("project-approval-rules.create.report-type-is-known")
def unknown_report_is_shown(service: Service) -> None:
    """A creation shows whatever report_type was sent."""
    _echo(service, "report_type", "code_coverage")


def _echo(service: Service, name: str, instead: str) -> None:
    import json  # noqa: PLC0415 - only here

    route = service.routes.get(f"POST {RULES}")

    def echoing(request: Request) -> Response:
        body = json.loads(request.body)
        sent = body.get(name)
        if sent == "unheard-of":
            request.body = json.dumps({**body, name: instead}).encode()
        response = route.handler(request)
        if sent == "unheard-of":
            response.content[name] = sent  # type: ignore[index] # a rule
        return response

    service.routes.change(f"POST {RULES}", handler=echoing)


def _flattening(service: Service, key: str, *names: str) -> None:
    """Take the values of an object for the list that should have been sent."""
    import json  # noqa: PLC0415 - only here

    route = service.routes.get(key)

    def lenient(request: Request) -> Response:
        body = json.loads(request.body)
        flat = {n: list(v.values()) if n in names and isinstance(v, dict) else v for n, v in body.items()}
        request.body = json.dumps(flat).encode()
        return route.handler(request)

    service.routes.change(key, handler=lenient)


@fault("project-approval-rules.create.approvers-are-lists")
def object_names_new_users(service: Service) -> None:
    """A creation takes the values of an object in user_ids for users."""
    _flattening(service, f"POST {RULES}", "user_ids")


@fault("project-approval-rules.create.usernames-are-a-list")
def object_names_new_usernames(service: Service) -> None:
    """A creation takes the values of an object in usernames for users."""
    _flattening(service, f"POST {RULES}", "usernames")


@fault("project-approval-rules.create.protected-branches-are-a-list")
def object_names_new_branches(service: Service) -> None:
    """A creation takes the values of an object in protected_branch_ids for branches."""
    _flattening(service, f"POST {RULES}", "protected_branch_ids")


@fault("project-approval-rules.update.approvers-are-lists")
def object_adds_users(service: Service) -> None:
    """A change takes the values of an object in user_ids for users."""
    _flattening(service, f"PUT {RULE}", "user_ids")


@fault("project-approval-rules.update.usernames-are-a-list")
def object_adds_usernames(service: Service) -> None:
    """A change takes the values of an object in usernames for users."""
    _flattening(service, f"PUT {RULE}", "usernames")


@fault("project-approval-rules.update.protected-branches-are-a-list")
def object_adds_branches(service: Service) -> None:
    """A change takes the values of an object in protected_branch_ids for branches."""
    _flattening(service, f"PUT {RULE}", "protected_branch_ids")


# -- reading -------------------------------------------------------------------------------------------------------------


def _everywhere(service: Service, home_is_needed: bool = False) -> None:
    """Find a rule by its id whatever project it belongs to."""
    rules = service.approval_rules  # type: ignore[attr-defined]
    find = rules.find

    def anywhere(home: Any, number: int) -> Any:
        rule = rules.rules.get(number)
        return rule if rule is not None and home.level is Level.PROJECT else find(home, number)

    del home_is_needed
    rules.find = anywhere


def _everywhere_for(service: Service, method: str) -> None:
    area = service.project_approval_rules  # type: ignore[attr-defined]
    rules = service.approval_rules  # type: ignore[attr-defined]
    find, act = rules.find, getattr(area, method)

    def anywhere(home: Any, number: int) -> Any:
        return rules.rules.get(number) or find(home, number)

    def acting(*arguments: Any) -> Any:
        rules.find = anywhere
        try:
            return act(*arguments)
        finally:
            rules.find = find

    setattr(area, method, acting)


@fault("project-approval-rules.read.rule-of-another-project")
def rule_of_another_project_is_read(service: Service) -> None:
    """A rule is read under the path of any project."""
    _everywhere_for(service, "find")


@fault("project-approval-rules.update.rule-of-another-project")
def rule_of_another_project_is_changed(service: Service) -> None:
    """A rule is changed under the path of any project."""
    _everywhere_for(service, "update_rule")


@fault("project-approval-rules.delete.rule-of-another-project")
def rule_of_another_project_is_deleted(service: Service) -> None:
    """A rule is deleted under the path of any project."""
    _everywhere_for(service, "delete_rule")


@fault("project-approval-rules.read.equals-list-entry")
def list_shows_other_approvers(service: Service) -> None:
    """The list leaves out eligible_approvers that the rule itself shows."""

    def shorten(_: Request, response: Response) -> None:
        for rule in response.content:  # type: ignore[attr-defined] # a list
            rule["eligible_approvers"] = rule["eligible_approvers"][:1]

    altering(service, f"GET {RULES}", shorten)


@fault("project-approval-rules.read.unknown-rule")
def unknown_rule_is_the_first_one(service: Service) -> None:
    """Reading a rule that is not there shows another one."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    find = area.find
    route = service.routes.get(f"GET {RULE}")

    def any_rule(project: Any, number: int) -> Any:
        return find(project, number) if number in _store(service) else area.rules(project)[0]

    def lenient(request: Request) -> Response:
        area.find = any_rule
        try:
            return route.handler(request)
        finally:
            area.find = find

    service.routes.change(f"GET {RULE}", handler=lenient)


@fault("project-approval-rules.update.unknown-rule")
def unknown_rule_is_created(service: Service) -> None:
    """A change of a rule that is not there creates one."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    update = area.update_rule

    def upsert(project: Any, number: int, wanted: Any, caller: Any) -> Any:
        if number in _store(service):
            return update(project, number, wanted, caller)
        return area.create_rule(project, wanted, caller)

    area.update_rule = upsert


@fault("project-approval-rules.delete.unknown-rule")
def unknown_deletion_takes_the_last_rule(service: Service) -> None:
    """Deleting a rule that is not there deletes the last one."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    delete = area.delete_rule

    def deleting(project: Any, number: int) -> None:
        delete(project, number if number in _store(service) else area.rules(project)[-1].id)

    area.delete_rule = deleting


@fault("project-approval-rules.hidden-groups.none")
def every_group_counts_as_hidden(service: Service) -> None:
    """contains_hidden_groups is true as soon as a rule has groups."""
    _presenting(service, lambda shown, rule: {**shown, "contains_hidden_groups": bool(rule.groups)})


@fault("project-approval-rules.hidden-groups.are-announced")
def hidden_groups_are_not_announced(service: Service) -> None:
    """contains_hidden_groups is always false."""
    _presenting(service, lambda shown, _: {**shown, "contains_hidden_groups": False})


@fault("project-approval-rules.hidden-groups.are-not-shown")
def hidden_groups_are_shown(service: Service) -> None:
    """A rule shows all of its groups to everybody."""
    known = service.identities

    def whole(shown: Any, rule: Any) -> Any:
        return {**shown, "groups": [service.present.group(known.groups[number]) for number in rule.groups]}

    _presenting(service, whole)


def _presenting(service: Service, twist: Callable[[Any, Any], Any]) -> None:
    area = service.project_approval_rules  # type: ignore[attr-defined]
    present = area.present
    area.present = lambda rule, viewer: twist(present(rule, viewer), rule)


@fault("project-approval-rules.any-approver.asks-for-none")
def untouched_rule_asks_for_one(service: Service) -> None:
    """The rule that a project has from the beginning asks for one approval."""
    rules = service.approval_rules  # type: ignore[attr-defined]
    make = rules.make_default_rule

    def asking(home: Any) -> None:
        known = set(rules.rules)
        make(home)
        for number in set(rules.rules) - known:
            rules.rules[number] = replace(rules.rules[number], approvals_required=1)

    rules.make_default_rule = asking


@fault("project-approval-rules.report-approver.from-policies")
def rules_of_policies_are_not_listed(service: Service) -> None:
    """The list leaves out rules of type report_approver."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    rules = area.rules
    area.rules = lambda project: [r for r in rules(project) if r.rule_type is not RuleType.REPORT_APPROVER]


@fault("project-approval-rules.versions.pagination")
def rules_are_never_paged(service: Service) -> None:
    """The list takes no notice of page and per_page."""

    def whole(request: Request, response: Response) -> None:
        area = service.project_approval_rules  # type: ignore[attr-defined]
        response.content = [area.present(rule, request.caller) for rule in area.rules(request.project)]

    altering(service, f"GET {RULES}", whole)


# -- change --------------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.update.stored")
def change_is_answered_and_not_kept(service: Service) -> None:
    """PUT answers with the changed rule and keeps the former one."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    update = area.update_rule

    def forgetful(project: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = area.find(project, number)
        changed = update(project, number, wanted, caller)
        _store(service)[number] = before
        return changed

    area.update_rule = forgetful


@fault("project-approval-rules.update.values")
def answer_to_change_is_the_former_rule(service: Service) -> None:
    """PUT keeps the change and answers with the rule as it was."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    update = area.update_rule

    def late(project: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = area.find(project, number)
        update(project, number, wanted, caller)
        return before

    area.update_rule = late


@fault("project-approval-rules.update.answers-with-rule")
def answer_to_change_has_another_id(service: Service) -> None:
    """PUT answers with the rule under another id."""
    _after(service, "update_rule", lambda rule, *_: replace(rule, id=rule.id + 1000))


@fault("project-approval-rules.update.leaves-other-rules")
def change_reaches_the_others(service: Service) -> None:
    """A change gives every other rule of the project the new number."""

    def spread(rule: Any, *_: Any) -> None:
        for other in _others(service, rule):
            _store(service)[other.id] = replace(other, approvals_required=rule.approvals_required)

    _after(service, "update_rule", spread)


def _method(service: Service, name: str, twist: Callable[..., Any]) -> None:
    """Replace what a method of all rules returns, for rules of projects."""
    rules = service.approval_rules  # type: ignore[attr-defined]
    method = getattr(rules, name)

    def twisted(rule: Any, *arguments: Any) -> Any:
        result = method(rule, *arguments)
        return twist(result, rule, *arguments) if rule.home.level is Level.PROJECT else result

    setattr(rules, name, twisted)


@fault("project-approval-rules.update.user-ids")
def changed_users_are_dropped(service: Service) -> None:
    """A change removes users and adds none."""
    _method(service, "users_after", lambda _, rule, *__: ())


@fault("project-approval-rules.update.user-ids.removes-others")
def former_users_stay(service: Service) -> None:
    """A change adds users and removes none."""
    _method(service, "users_after", lambda users, rule, *_: tuple(dict.fromkeys((*rule.users, *users))))


@fault("project-approval-rules.update.group-ids")
def changed_groups_are_dropped(service: Service) -> None:
    """A change removes groups and adds none."""
    _method(service, "groups_after", lambda groups, rule, *_: tuple(n for n in groups if n in rule.groups))


@fault("project-approval-rules.update.group-ids.removes-others")
def former_groups_stay(service: Service) -> None:
    """A change adds groups and removes none."""
    _method(service, "groups_after", lambda groups, rule, *_: tuple(dict.fromkeys((*rule.groups, *groups))))


@fault("project-approval-rules.update.usernames")
def usernames_of_a_change_are_dropped(service: Service) -> None:
    """A change takes no notice of usernames."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(area, "update_rule", 2, lambda wanted: replace(wanted, usernames=None))


@fault("project-approval-rules.update.user-ids-and-usernames")
def usernames_outweigh_numbers(service: Service) -> None:
    """A change that sends both lists of users takes the names alone."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(area, "update_rule", 2, lambda wanted: replace(wanted, user_ids=None) if wanted.usernames else wanted)


@fault("project-approval-rules.versions.usernames")
def usernames_are_not_known(service: Service) -> None:
    """No notice is taken of usernames at all."""
    _asked(service, usernames=None)


@fault("project-approval-rules.update.applies-to-all-protected-branches")
def flag_cannot_be_taken_back(service: Service) -> None:
    """A change switches the flag on and never off."""
    rules = service.approval_rules  # type: ignore[attr-defined]
    applies = rules.applies_everywhere
    rules.applies_everywhere = lambda wanted, home, *, otherwise: (
        applies(wanted, home, otherwise=otherwise) or otherwise
    )


@fault("project-approval-rules.versions.applies-to-all-protected-branches")
def flag_is_not_taken(service: Service) -> None:
    """No notice is taken of the flag that is sent."""
    _asked(service, applies_to_all_protected_branches=None)


@fault("project-approval-rules.update.applies-to-all-protected-branches.over-branch-ids")
def changed_branches_outweigh_the_flag(service: Service) -> None:
    """A change that sends flag and branches takes the branches alone."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(
        area,
        "update_rule",
        2,
        lambda wanted: (
            replace(wanted, applies_to_all_protected_branches=False) if wanted.protected_branch_ids else wanted
        ),
    )


@fault("project-approval-rules.update.protected-branch-ids")
def former_branches_stay(service: Service) -> None:
    """A change adds branches and removes none."""
    _method(service, "branches_after", lambda found, rule, *_: tuple(dict.fromkeys((*rule.protected_branches, *found))))


def _hiding(service: Service, remove: Callable[[bool], bool]) -> None:
    area = service.project_approval_rules  # type: ignore[attr-defined]
    _asked_of(
        area,
        "update_rule",
        2,
        lambda wanted: replace(wanted, remove_hidden_groups=remove(wanted.remove_hidden_groups)),
    )


@fault("project-approval-rules.update.hidden-groups.stay")
def hidden_groups_always_go(service: Service) -> None:
    """A change removes groups that the caller cannot see."""
    _hiding(service, lambda _: True)


@fault("project-approval-rules.update.hidden-groups.stay-when-told")
def saying_no_removes_hidden_groups(service: Service) -> None:
    """A change that sends remove_hidden_groups at all removes them."""
    import json  # noqa: PLC0415 - only here

    route = service.routes.get(f"PUT {RULE}")

    def careless(request: Request) -> Response:
        body = json.loads(request.body)
        if "remove_hidden_groups" in body:
            request.body = json.dumps({**body, "remove_hidden_groups": True}).encode()
        return route.handler(request)

    service.routes.change(f"PUT {RULE}", handler=careless)


@fault("project-approval-rules.update.hidden-groups.removed")
def hidden_groups_never_go(service: Service) -> None:
    """A change keeps groups that the caller cannot see, also when told otherwise."""
    _hiding(service, lambda _: False)


@fault("project-approval-rules.update.remove-hidden-groups.without-any")
def nothing_hidden_is_refused(service: Service) -> None:
    """A change that sends remove_hidden_groups for a rule without hidden groups is refused."""
    from conformance.reference.errors import RejectedError  # noqa: PLC0415 - only here

    route = service.routes.get(f"PUT {RULE}")

    def strict(request: Request) -> Response:
        if b'"remove_hidden_groups": false' in request.body:
            raise RejectedError("has no hidden groups", parameter="remove_hidden_groups")
        return route.handler(request)

    service.routes.change(f"PUT {RULE}", handler=strict)


# -- deletion ------------------------------------------------------------------------------------------------------------


@fault("project-approval-rules.delete.gone")
def deleted_rule_stays(service: Service) -> None:
    """DELETE answers 204 and changes nothing."""
    service.project_approval_rules.delete_rule = does_nothing  # type: ignore[attr-defined]


@fault("project-approval-rules.delete.unlisted")
def deleted_rule_stays_in_the_list(service: Service) -> None:
    """A deleted rule cannot be read any more and is still listed."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    delete, rules = area.delete_rule, area.rules
    gone: dict[int, list[Any]] = {}

    def deleting(project: Any, number: int) -> None:
        rule = area.find(project, number)
        delete(project, number)
        gone.setdefault(project.id, []).append(rule)

    area.delete_rule = deleting
    area.rules = lambda project: [*rules(project), *gone.get(project.id, ())]


@fault("project-approval-rules.delete.leaves-other-rules")
def deletion_takes_another_rule(service: Service) -> None:
    """DELETE takes the last remaining rule with it."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    delete = area.delete_rule

    def greedy(project: Any, number: int) -> None:
        delete(project, number)
        left = area.rules(project)
        if left:
            delete(project, left[-1].id)

    area.delete_rule = greedy


@fault("project-approval-rules.delete.succeeds")
def deletion_is_refused(service: Service) -> None:
    """DELETE deletes and answers 403."""

    def refused(route: Any, _: Any, response: Any) -> Any:
        if route.key == f"DELETE {RULE}" and response.status < 300:
            response.status = 403
        return response

    service.transformers.append(refused)


@fault("project-approval-rules.delete.no-bytes-under-204")
def deleted_rule_is_answered_with_bytes(service: Service) -> None:
    """204 comes with a body."""

    def with_body(_: Request, response: Response) -> None:
        response.content, response.has_content = {"message": "204 No Content"}, True

    altering(service, f"DELETE {RULE}", with_body)


# -- one project and another ---------------------------------------------------------------------------------------------


@fault("project-approval-rules.projects-are-separate")
def creation_reaches_the_sibling(service: Service) -> None:
    """A rule that is created in one project is created in every other one."""

    def spread(rule: Any, project: Any, *_: Any) -> None:
        for other in list(service.identities.projects.values()):
            if other.id != project.id:
                number = service.store.next_id("approval_rules")
                _store(service)[number] = replace(rule, id=number, home=home_of(other))

    _after(service, "create_rule", spread)


@fault("project-approval-rules.projects-are-separate")
def deletion_reaches_the_sibling(service: Service) -> None:
    """A deletion takes the oldest rule of every other project with it."""
    area = service.project_approval_rules  # type: ignore[attr-defined]

    def spread(_: Any, project: Any, *__: Any) -> None:
        for other in list(service.identities.projects.values()):
            rules = area.rules(other)
            if other.id != project.id and rules:
                _store(service).pop(rules[0].id)

    _after(service, "delete_rule", spread)


@fault("project-approval-rules.unknown-project")
def rules_of_an_unknown_project_are_those_of_a_known_one(service: Service) -> None:
    """A project that does not exist is taken for some other."""
    find = service.identities.find_project

    def anything(reference: str) -> Any:
        return find(reference) or service.identities.projects[service.world.one("project").id]

    service.identities.find_project = anything  # type: ignore[method-assign]


@fault("project-approval-rules.authorization.maintainer-may-change")
def maintainers_may_only_read(service: Service) -> None:
    """Creating, changing and deleting asks for the owner role."""
    area = service.project_approval_rules  # type: ignore[attr-defined]
    area.require_writer = lambda caller, project: service.access.require_role(caller, project, Role.OWNER)


@fault("project-approval-rules.create.leaves-other-rules")
def creation_renumbers_the_others(service: Service) -> None:
    """A creation gives every other rule of the project its number."""

    def spread(rule: Any, *_: Any) -> None:
        for other in _others(service, rule):
            _store(service)[other.id] = replace(other, approvals_required=rule.approvals_required)

    _after(service, "create_rule", spread)


# -- values and ids that cannot be taken ---------------------------------------------------------------------------------


def _any_id(service: Service, method: str) -> None:
    """Take an id that is no number for that of the last rule."""
    route = service.routes.get(f"{method} {RULE}")

    def lenient(request: Request) -> Response:
        if not request.path["approval_rule_id"].isdigit():
            rules = service.project_approval_rules.rules(request.project)  # type: ignore[attr-defined]
            request.path = {**request.path, "approval_rule_id": str(rules[-1].id)}
        return route.handler(request)

    service.routes.change(f"{method} {RULE}", handler=lenient)


@fault("project-approval-rules.read.rule-id-is-integer")
def any_text_reads_a_rule(service: Service) -> None:
    """Reading a rule whose id is no number reads the last one."""
    _any_id(service, "GET")


@fault("project-approval-rules.update.rule-id-is-integer")
def any_text_changes_a_rule(service: Service) -> None:
    """Changing a rule whose id is no number changes the last one."""
    _any_id(service, "PUT")


@fault("project-approval-rules.delete.rule-id-is-integer")
def any_text_deletes_a_rule(service: Service) -> None:
    """Deleting a rule whose id is no number deletes the last one."""
    _any_id(service, "DELETE")


def _taking_anything(service: Service, key: str, name: str) -> None:
    """Take whatever is sent for a truth value for true."""
    import json  # noqa: PLC0415 - only here

    route = service.routes.get(key)

    def lenient(request: Request) -> Response:
        body = json.loads(request.body)
        if name in body:
            request.body = json.dumps({**body, name: bool(body[name])}).encode()
        return route.handler(request)

    service.routes.change(key, handler=lenient)


@fault("project-approval-rules.create.applies-to-all-protected-branches-is-boolean")
def creation_takes_anything_for_the_flag(service: Service) -> None:
    """A creation takes any value for the flag as true."""
    _taking_anything(service, f"POST {RULES}", FLAG)


@fault("project-approval-rules.update.applies-to-all-protected-branches-is-boolean")
def change_takes_anything_for_the_flag(service: Service) -> None:
    """A change takes any value for the flag as true."""
    _taking_anything(service, f"PUT {RULE}", FLAG)


@fault("project-approval-rules.update.remove-hidden-groups-is-boolean")
def change_takes_anything_for_removal(service: Service) -> None:
    """A change takes any value for remove_hidden_groups as true."""
    _taking_anything(service, f"PUT {RULE}", "remove_hidden_groups")
