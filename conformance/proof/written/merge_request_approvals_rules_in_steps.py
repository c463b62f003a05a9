"""Faults of merge requests' rules that only a later step of a story shows: in the state, for copies, at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    afterwards,
    answering,
    around,
    beforehand,
    handling,
    is_number,
    names_nothing,
    sent,
    told_otherwise,
)
from conformance.proof.written.approval_rules import stored
from conformance.proof.written.approvals_neighbours import AT_ONCE, MERGE_REQUEST
from conformance.proof.written.merge_request_approvals_rules import copied_otherwise
from conformance.proof.written.project_approval_rules_in_steps import bringing_back
from conformance.reference.areas.approval_rule_records import Level, RuleType
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import NotFoundError, not_found
from conformance.reference.http import Response, ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

RULES = f"{MERGE_REQUEST}/approval_rules"
RULE = f"{RULES}/:approval_rule_id"
_PROJECT_RULE = "/projects/:id/approval_rules/:approval_rule_id"
_SOURCE = "approval_project_rule_id"

# -- creation ----------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.create.name-and-number")
def answer_to_a_creation_asks_for_one_more(service: Service) -> None:
    """The answer to the creation of a rule has approvals_required one too high; the stored rule is right."""
    afterwards(
        service.merge_request_approval_rules,
        "create_rule",
        lambda rule, *_: replace(rule, approvals_required=rule.approvals_required + 1),
    )


@fault("merge-request-approvals.rules.create.needs-only-name-and-number")
def rules_for_nobody_are_not_kept(service: Service) -> None:
    """The creation of a rule that names nobody is answered, and the rule is not stored."""

    def forget(rule: Any, *_: Any) -> None:
        if not rule.users and not rule.groups:
            stored(service).pop(rule.id)

    afterwards(service.merge_request_approval_rules, "create_rule", forget)


@fault("merge-request-approvals.rules.create.user-ids-and-usernames")
def an_empty_list_of_usernames_outweighs_numbers(service: Service) -> None:
    """A creation that sends an empty list of usernames names no user at all."""

    def empty(wanted: Any) -> Any:
        return replace(wanted, user_ids=()) if wanted.usernames == () else wanted

    told_otherwise(service.merge_request_approval_rules, "create_rule", 1, empty)


@fault("merge-request-approvals.rules.create.listed")
def rules_of_groups_alone_are_listed_for_each_member(service: Service) -> None:
    """The list of a merge request's rules shows one that names only groups once for each of their members."""

    def for_each(rules: Any, _: Any) -> list[Any]:
        members = service.approval_rules.eligible_approvers
        return [rule for rule in rules for _ in (members(rule) if rule.groups and not rule.users else (None,))]

    afterwards(service.merge_request_approval_rules, "listed", for_each)


# -- change ------------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.update.name")
def the_state_shows_the_first_names(service: Service) -> None:
    """The approval state shows each rule with the name that it was created with."""
    first: dict[int, str] = {}
    afterwards(service.approval_rules, "add_rule", lambda rule, *_: first.update({rule.id: rule.name}))

    def named_as_at_first(rules: Any, _: Any) -> list[Any]:
        return [replace(rule, name=first.get(rule.id, rule.name)) for rule in rules]

    afterwards(service.merge_request_approvals, "rules", named_as_at_first)


@fault("merge-request-approvals.rules.delete.gone")
def deleted_rules_stay_in_the_state(service: Service) -> None:
    """The approval state goes on showing rules that were deleted."""
    gone: list[Any] = []
    beforehand(service.approval_rules, "delete_rule", gone.append)

    def with_them(rules: Any, merge_request: Any) -> list[Any]:
        home = (Level.MERGE_REQUEST, merge_request.id)
        return [*rules, *(rule for rule in gone if rule.home == home)]

    afterwards(service.merge_request_approvals, "rules", with_them)


@fault("merge-request-approvals.rules.delete.leaves-others")
def numbers_follow_the_count_of_rules(service: Service) -> None:
    """A rule that is created after a deletion gets the number of the newest rule, and its place."""
    fewer: set[Any] = set()
    beforehand(service.approval_rules, "delete_rule", lambda rule: fewer.add(rule.home))

    def take_the_place(rule: Any, *_: Any) -> Any:
        others = [one for one in list(stored(service).values()) if one.home == rule.home and one.id != rule.id]
        if rule.home.level is not Level.MERGE_REQUEST or rule.home not in fewer or not others:
            return None
        del stored(service)[rule.id]
        moved = stored(service)[others[-1].id] = replace(rule, id=others[-1].id)
        return moved

    afterwards(service.approval_rules, "add_rule", take_the_place)


@fault("merge-request-approvals.rules.update.unknown-rule")
def deleted_rules_are_changed(service: Service) -> None:
    """A change of a deleted rule creates it again."""
    bringing_back(service, service.merge_request_approval_rules, Level.MERGE_REQUEST)


@fault("merge-request-approvals.rules.update.rule-id-is-integer")
def any_text_changes_a_rule_and_is_refused(service: Service) -> None:
    """A change of a rule that is named by no number is made to the newest rule, and then refused."""

    def make(handler: Callable[..., Any]) -> Any:
        def lenient(request: Request) -> Any:
            if is_number(request, "approval_rule_id"):
                return handler(request)
            newest = service.merge_request_approval_rules.own_rules(merge_request_of(request))[-1]
            request.path = {**request.path, "approval_rule_id": str(newest.id)}
            handler(request)
            raise not_found("Approval Rule")

        return lenient

    handling(service, f"PUT {RULE}", make)


# -- elsewhere ---------------------------------------------------------------------------------------------------------


def _found_anywhere(service: Service, method: str, *, answers: Callable[[Any], bool]) -> None:
    """Let a method of the rules of merge requests find a rule wherever it is, if a condition holds for its level."""
    rules = service.merge_request_approval_rules

    def make(call: Callable[..., Any]) -> Any:
        def anywhere(merge_request: Any, number: int, *arguments: Any) -> Any:
            rule = stored(service).get(number)
            if rule is not None and rule.home.id != merge_request.id and answers(rule):
                return rule
            return call(merge_request, number, *arguments)

        return anywhere

    around(rules, method, make)


def _is_of_a_merge_request(rule: Any) -> bool:
    return rule.home.level is Level.MERGE_REQUEST


@fault("merge-request-approvals.rules.belong-to-their-merge-request")
def changes_elsewhere_are_answered(service: Service) -> None:
    """A change of a rule by way of another merge request is answered with the rule as it is."""
    _found_anywhere(service, "update_rule", answers=_is_of_a_merge_request)


@fault("merge-request-approvals.rules.belong-to-their-merge-request")
def rules_are_read_by_the_iid_of_another_project(service: Service) -> None:
    """A rule is also read by way of a merge request of another project with the same number."""
    known = service.repositories.merge_requests

    def make(find: Callable[..., Any]) -> Any:
        def namesake(merge_request: Any, number: int) -> Any:
            rule = stored(service).get(number)
            alike = [one.id for one in known.values() if one.iid == merge_request.iid]
            return rule if rule is not None and rule.home.id in alike else find(merge_request, number)

        return namesake

    around(service.merge_request_approval_rules, "find_listed", make)


@fault("merge-request-approvals.unknown-merge-request.changing-rules")
def changes_in_no_merge_request_are_answered(service: Service) -> None:
    """A change of a rule by way of a merge request that does not exist is answered with the rule as it is."""
    rules = service.merge_request_approval_rules

    def answer(request: Request) -> Response:
        rule = stored(service)[int(request.path["approval_rule_id"])]
        own = next(one for one in service.repositories.merge_requests.values() if one.id == rule.home.id)
        return ok(rules.present(rule, own, request.caller))

    def make(handler: Callable[..., Any]) -> Any:
        def lenient(request: Request) -> Any:
            return answer(request) if names_nothing(request, "merge_request_iid") else handler(request)

        return lenient

    handling(service, f"PUT {RULE}", make)


# -- copies ------------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.update.name")
def copies_keep_the_name_of_their_source(service: Service) -> None:
    """A change of a copied rule leaves its name."""

    def make(update: Callable[..., Any]) -> Any:
        def unnamed(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
            return update(subject, rule, replace(wanted, name=None) if rule.source_id else wanted, caller)

        return unnamed

    around(service.approval_rules, "update_rule", make)


@fault("merge-request-approvals.rules.copy.approvals-required-stays-required")
def copies_without_a_number_are_the_source_itself(service: Service) -> None:
    """A copy that is sent without a number is answered with the rule of the project, and not made."""

    def make(handler: Callable[..., Any]) -> Any:
        def lenient(request: Request) -> Any:
            body = sent(request)
            source = stored(service).get(body.get(_SOURCE, 0))
            if source is None or "approvals_required" in body:
                return handler(request)
            return ok(
                service.merge_request_approval_rules.present(source, merge_request_of(request), request.caller), 201
            )

        return lenient

    handling(service, f"POST {RULES}", make)


@fault("merge-request-approvals.rules.copy.users")
def copies_of_what_goes_meanwhile_name_nobody(service: Service) -> None:
    """A copy names nobody if its source is deleted between finding the rule and reading its users."""
    key, found = f"POST {RULES}", dict[int, Any]()

    async def wait(request: Request) -> None:
        if request.route.key == f"DELETE {_PROJECT_RULE}":
            await asyncio.sleep(AT_ONCE / 3)  # it may have come first
        source = stored(service).get(sent(request).get(_SOURCE, 0))
        if request.route.key == key and source is not None:
            found[id(request)] = source
            await asyncio.sleep(AT_ONCE)

    def make(handler: Callable[..., Any]) -> Any:
        def late(request: Request) -> Any:
            source = found.pop(id(request), None)
            if source is None or source.id in stored(service):
                return handler(request)
            stored(service)[source.id] = replace(source, users=(), groups=())
            try:
                return handler(request)
            finally:
                del stored(service)[source.id]

        return late

    service.interruption = wait
    handling(service, key, make)


@fault("merge-request-approvals.rules.copy.unknown-project-rule")
def copies_of_nothing_are_elsewhere(service: Service) -> None:
    """Copying a rule that does not exist is answered with a redirect."""
    answering(
        service,
        f"POST {RULES}",
        lambda request: sent(request).get(_SOURCE, 0) not in (0, *stored(service)),
        lambda: Response(302, headers={"location": "/"}),
    )


@fault("merge-request-approvals.rules.copy.unknown-project-rule")
def deleted_rules_are_copied(service: Service) -> None:
    """A rule of a project is also copied after it was deleted."""
    gone: dict[int, Any] = {}
    beforehand(service.approval_rules, "delete_rule", lambda rule: gone.update({rule.id: rule}))

    def make(find: Callable[..., Any]) -> Any:
        def found(project: Any, number: int) -> Any:
            try:
                return find(project, number)
            except NotFoundError:
                if number not in gone or gone[number].home != (Level.PROJECT, project.id):
                    raise
                return gone[number]

        return found

    _while_copying(service, make)


@fault("merge-request-approvals.rules.copy.unknown-project-rule")
def rules_of_any_project_are_copied(service: Service) -> None:
    """A rule is copied whichever project or merge request it belongs to."""
    _while_copying(service, lambda find: lambda project, number: stored(service).get(number) or find(project, number))


def _while_copying(service: Service, make: Callable[..., Any]) -> None:
    """Replace how rules of a project are found, only while one is copied."""
    rules = service.project_approval_rules

    def copying(create: Callable[..., Any]) -> Any:
        def created(*arguments: Any) -> Any:
            find = rules.find
            rules.find = make(find)  # type: ignore[method-assign] # that is what a fault does
            try:
                return create(*arguments)
            finally:
                rules.find = find  # type: ignore[method-assign]

        return created

    around(service.merge_request_approval_rules, "create_rule", copying)


@fault("merge-request-approvals.rules.are-separate")
def a_second_copy_takes_the_place_of_the_first(service: Service) -> None:
    """Copying a rule of a project again removes its copies in other merge requests."""

    def move(rule: Any, source: Any, _: Any) -> Any:
        for other in list(stored(service).values()):
            if other.source_id == source.id and other.home != rule.home:
                del stored(service)[other.id]
        return rule

    copied_otherwise(service, move)


# -- overwritten -------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.state.overwritten")
def each_creation_turns_overwritten_over(service: Service) -> None:
    """approval_rules_overwritten is turned over by each creation of a rule, and not derived from the rules."""
    told: dict[int, bool] = {}

    def turn(_: Any, merge_request: Any, *__: Any) -> None:
        told[merge_request.id] = not told.get(merge_request.id, False)

    afterwards(service.merge_request_approval_rules, "create_rule", turn)
    afterwards(
        service.merge_request_approval_rules,
        "overwritten",
        lambda overwritten, merge_request: overwritten and told.get(merge_request.id, True),
    )


@fault("merge-request-approvals.state.not-overwritten")
def refused_rules_overwrite(service: Service) -> None:
    """approval_rules_overwritten is true as soon as somebody tried to give the merge request a rule."""
    tried: set[int] = set()

    def make(handler: Callable[..., Any]) -> Any:
        def trying(request: Request) -> Any:
            tried.add(merge_request_of(request).id)
            return handler(request)

        return trying

    handling(service, f"POST {RULES}", make)
    afterwards(
        service.merge_request_approval_rules,
        "overwritten",
        lambda overwritten, merge_request: overwritten or merge_request.id in tried,
    )


@fault("merge-request-approvals.state.not-overwritten")
def rules_of_the_project_overwrite(service: Service) -> None:
    """approval_rules_overwritten is also true if the project has regular rules."""
    rules = service.merge_request_approval_rules

    def of_the_project(overwritten: bool, merge_request: Any) -> bool:
        inherited = rules.project_rules(merge_request)
        return overwritten or any(rule.rule_type is RuleType.REGULAR for rule in inherited)

    afterwards(rules, "overwritten", of_the_project)


# -- at once -----------------------------------------------------------------------------------------------------------

_CREATIONS = ("POST /projects/:id/approval_rules", f"POST {RULES}")


@fault("merge-request-approvals.rules.create.at-once")
@fault("project-approval-rules.create.at-once")
def one_of_two_new_rules_is_overwritten(service: Service) -> None:
    """If two rules are created concurrently, each gets a number, and only the second is stored."""
    seen: dict[int, dict[int, Any]] = {}

    async def wait(request: Request) -> None:
        if request.route.key in _CREATIONS:
            seen[id(request)] = dict(stored(service))
            await asyncio.sleep(AT_ONCE)

    def make(handler: Callable[..., Any]) -> Any:
        def late(request: Request) -> Any:
            before = seen.pop(id(request), None)
            if before is not None:
                stored(service).clear()
                stored(service).update(before)
            return handler(request)

        return late

    service.interruption = wait
    for key in _CREATIONS:
        handling(service, key, make)


@fault("merge-request-approvals.rules.update.name")
def a_change_by_the_path_is_lost_beside_the_first_merge_request(service: Service) -> None:
    """By the path of the project, a change of a rule is made only in the first merge request; the answer shows it."""

    def make(handler: Any) -> Any:
        def changing(request: Request) -> Any:
            before = dict(stored(service))
            answer = handler(request)
            if not is_number(request, "id") and request.path["merge_request_iid"] != "1":
                stored(service).update(before)
            return answer

        return changing

    handling(service, f"PUT {RULE}", make)
