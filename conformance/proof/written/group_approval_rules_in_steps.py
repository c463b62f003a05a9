"""Faults of groups' approval rules that only a later step of a story shows: in the list, for others, and elsewhere."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import afterwards, answering, around, handling, refusing
from conformance.proof.written.approval_rules import stored
from conformance.proof.written.approvals_beside_others import creation_reaches_namesakes
from conformance.proof.written.approvals_neighbours import AT_ONCE, remembered_for_the_reader
from conformance.proof.written.project_approval_rules_in_steps import called_otherwise, overlapping
from conformance.reference.areas.approval_rule_records import Level, RuleType
from conformance.reference.choices import Choices
from conformance.reference.errors import RejectedError
from conformance.reference.http import ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

RULES = "/groups/:id/approval_rules"
RULE = f"{RULES}/:approval_rule_id"


@fault("group-approval-rules.create.minimal")
def a_group_rule_for_nobody_asks_for_none(service: Service) -> None:
    """A rule that names nobody and has no type is stored with approvals_required 0, whatever the answer shows."""

    def ask_for_none(rule: Any, _: Any, wanted: Any, *__: Any) -> None:
        if wanted.rule_type is None and not rule.users and not rule.groups:
            stored(service)[rule.id] = replace(rule, approvals_required=0)

    afterwards(service.group_approval_rules, "create_rule", ask_for_none)


def _from_the_query(service: Service, key: str, then: Callable[[Any, Any], None]) -> None:
    """Do something with the answer to calls of a route that have their parameters in the query."""

    def make(handler: Callable[..., Any]) -> Any:
        def asked(request: Request) -> Response:
            before = service.store.snapshot()
            response: Response = handler(request)
            if request.query:
                then(response, before)
            return response

        return asked

    handling(service, key, make)


def _numbered_otherwise(response: Response, _: Any) -> None:
    content: Any = response.content
    response.content = {**content, "approvals_required": 0}


@fault("group-approval-rules.create.query-parameters")
def a_creation_by_query_answers_with_no_number(service: Service) -> None:
    """The answer to a creation whose parameters are in the query has approvals_required 0; the stored rule is right."""
    _from_the_query(service, f"POST {RULES}", _numbered_otherwise)


@fault("group-approval-rules.create.query-parameters")
def a_creation_by_query_is_not_kept(service: Service) -> None:
    """A creation whose parameters are in the query is answered like any other, and not stored."""
    _from_the_query(service, f"POST {RULES}", lambda _, before: service.store.restore(before))


@fault("group-approval-rules.update.query-parameters")
def a_change_by_query_is_refused(service: Service) -> None:
    """A change whose parameters are in the query is refused."""
    refusing(service, f"PUT {RULE}", lambda request: bool(request.query), lambda: RejectedError("send a body"))


@fault("group-approval-rules.update.name")
def administrators_see_the_first_group_rules_for_good(service: Service) -> None:
    """An administrator of the installation always gets a list of rules of a group from the first read."""
    remembered_for_the_reader(service, RULES, actor="admin")


@fault("group-approval-rules.create.any-approver")
def any_approver_of_a_group_is_called_otherwise(service: Service) -> None:
    """A group's rule of type any_approver is shown with a type that nobody has heard of."""
    called_otherwise(service.group_approval_rules)


@fault("group-approval-rules.update.rule-type")
def a_stated_type_makes_a_group_rule_one_for_anybody(service: Service) -> None:
    """A change that sends rule_type stores any_approver, whatever it sends and answers."""

    def for_anybody(rule: Any, _: Any, __: int, wanted: Any, ___: Any) -> None:
        if wanted.rule_type is not None:
            stored(service)[rule.id] = replace(rule, rule_type=RuleType.ANY_APPROVER)

    afterwards(service.group_approval_rules, "update_rule", for_anybody)


# -- while the flag is off ---------------------------------------------------------------------------------------------


def _writing_while_the_flag_is_off(key: str) -> Callable[[Service], None]:
    """Serve one kind of write although the feature flag is off: whatever it names, something is answered."""
    return lambda service: answering(service, key, lambda _: True, lambda: ok({"id": 1}))


for _key, _what in ((f"POST {RULES}", "created"), (f"PUT {RULE}", "changed")):
    _says = f"Rules of groups are {_what} although the feature flag is off; they are not listed."
    _name = f"group_rules_are_{_what}_while_the_flag_is_off"
    fault(
        "group-approval-rules.flag-off-is-refused",
        choices=Choices(group_approval_rules_offered=False),
        features={"group_approval_rules": False, "group_approval_rules_flag_off": True},
    )(named(_name, _says, _writing_while_the_flag_is_off(_key)))


# -- in another group --------------------------------------------------------------------------------------------------


@fault("group-approval-rules.groups-are-separate")
def creation_reaches_namesakes_in_groups(service: Service) -> None:
    """The creation of a rule of a group changes the rules of that name in other groups."""
    creation_reaches_namesakes(service, of=Level.GROUP, by=Level.GROUP)


@fault("group-approval-rules.groups-are-separate")
def change_reaches_namesakes_in_groups(service: Service) -> None:
    """A change of a group's rule gives its number to the rules of that name in other groups."""

    def reach(changed: Any, _: Any, rule: Any, *__: Any) -> None:
        for other in list(stored(service).values()) if rule.home.level is Level.GROUP else ():
            if other.home.level is Level.GROUP and other.home != rule.home and other.name == rule.name:
                stored(service)[other.id] = replace(other, approvals_required=changed.approvals_required)

    afterwards(service.approval_rules, "update_rule", reach)


@fault("group-approval-rules.groups-are-separate")
def rules_named_like_one_further_out_ask_for_as_many(service: Service) -> None:
    """A rule of a group inside another one asks for as many approvals as the rule of that name further out."""

    def make(create: Callable[..., Any]) -> Any:
        def like_the_outer(group: Any, wanted: Any, caller: Any) -> Any:
            outer = {(Level.GROUP, one.id) for one in service.identities.lineage(group) if one.id != group.id}
            alike = [one for one in stored(service).values() if one.home in outer and one.name == wanted.name]
            numbers = {one.approvals_required for one in alike}
            return create(group, replace(wanted, approvals_required=numbers.pop()) if numbers else wanted, caller)

        return like_the_outer

    around(service.group_approval_rules, "create_rule", make)


# -- at once, and page by page -----------------------------------------------------------------------------------------


@fault("group-approval-rules.update.name")
def one_of_two_changes_of_a_group_is_lost(service: Service) -> None:
    """If two rules of a group are changed concurrently, the first stays as it was."""
    key, seen = f"PUT {RULE}", dict[int, dict[int, Any]]()

    async def wait(request: Request) -> None:
        if request.route.key == key:
            seen[id(request)] = dict(stored(service))
            await asyncio.sleep(AT_ONCE)

    def make(handler: Callable[..., Any]) -> Any:
        def late(request: Request) -> Response:
            for number, rule in seen.pop(id(request), {}).items():
                if number in stored(service) and str(number) != request.path["approval_rule_id"]:
                    stored(service)[number] = rule
            response: Response = handler(request)
            return response

        return late

    service.interruption = wait
    handling(service, key, make)


@fault("group-approval-rules.versions.pagination")
def pages_of_group_rules_overlap(service: Service) -> None:
    """Each page of a group's rules begins with the last rule of the page before."""
    overlapping(service, f"GET {RULES}")
