"""Faults of rules that take part of what is sent, of equal names in one place, and of approvals that come again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import afterwards, around, bodies, handling
from conformance.reference.areas.approval_rule_records import Level, RuleType

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.areas.approval_rule_records import ApprovalRule

_PROJECT_RULE = "/projects/:id/approval_rules/:approval_rule_id"
_MERGE_REQUEST_RULE = "/projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id"


# -- part of what is sent ----------------------------------------------------------------------------------------------


@fault("project-approval-configuration.change.several", version="15.11")
def settings_beside_the_number_are_lost(service: Service) -> None:
    """A change of the configuration that sends approvals_before_merge stores nothing else."""

    def alone(body: dict[str, Any]) -> dict[str, Any]:
        number = "approvals_before_merge"
        return {number: body[number]} if number in body else body

    bodies(service, "POST /projects/:id/approvals", alone)


def _needs_both(name: str, other: str) -> Callable[[Service], None]:
    """Ignore one list of approvers of a group's rule unless the other is sent too."""

    def apply(service: Service) -> None:
        def drop(body: dict[str, Any]) -> dict[str, Any]:
            return body if other in body else {key: value for key, value in body.items() if key != name}

        bodies(service, "PUT /groups/:id/approval_rules/:approval_rule_id", drop)

    return apply


for _name, _other, _requirement in (
    ("user_ids", "group_ids", "group-approval-rules.update.user-ids"),
    ("group_ids", "user_ids", "group-approval-rules.update.group-ids"),
):
    _says = f"A change of a group's rule ignores {_name} unless {_other} is sent as well."
    fault(_requirement)(named(f"{_name}_alone_change_nothing", _says, _needs_both(_name, _other)))


def _second_is_lost(path: str) -> Callable[[Service], None]:
    """Use only the first of several usernames."""

    def apply(service: Service) -> None:
        def shorten(body: dict[str, Any]) -> dict[str, Any]:
            return {**body, "usernames": body["usernames"][:1]} if isinstance(body.get("usernames"), list) else body

        bodies(service, f"PUT {path}", shorten)

    return apply


for _path, _requirement in (
    (_PROJECT_RULE, "project-approval-rules.update.usernames"),
    (_MERGE_REQUEST_RULE, "merge-request-approvals.rules.update.usernames"),
):
    _says = "Of several usernames, only the first is used when a rule is changed."
    fault(_requirement)(named("second_username_of_a_change_is_lost", _says, _second_is_lost(_path)))


# -- equal names in one place ------------------------------------------------------------------------------------------


def _namesakes(service: Service, rule: ApprovalRule) -> list[ApprovalRule]:
    known = service.approval_rules.rules.values()
    alike = [one for one in known if one.home == rule.home and one.name == rule.name and one.id != rule.id]
    return [one for one in alike if one.rule_type is RuleType.REGULAR]


def _one_of_a_name(level: Level, method: str) -> Callable[[Service], None]:
    """Let a creation or an update remove the rules of the same place that have the name already."""

    def apply(service: Service) -> None:
        def replace_namesakes(rule: ApprovalRule, *_: Any) -> None:
            for other in _namesakes(service, rule) if rule.home.level is level else ():
                del service.approval_rules.rules[other.id]

        afterwards(service.approval_rules, method, replace_namesakes)

    return apply


for _level, _method, _requirement in (
    (Level.PROJECT, "create_rule", "project-approval-rules.create.leaves-other-rules"),
    (Level.PROJECT, "update_rule", "project-approval-rules.update.leaves-other-rules"),
    (Level.MERGE_REQUEST, "create_rule", "merge-request-approvals.leaves-the-rest"),
    (Level.MERGE_REQUEST, "update_rule", "merge-request-approvals.leaves-the-rest"),
    (Level.GROUP, "create_rule", "group-approval-rules.create.leaves-other-rules"),
    (Level.GROUP, "update_rule", "group-approval-rules.update.leaves-other-rules"),
):
    _what = "creation" if _method == "create_rule" else "change"
    _says = f"A {_what} of a rule of a {_level.value} removes the other rule of the same name there."
    fault(_requirement)(named(f"{_what}_replaces_the_namesake", _says, _one_of_a_name(_level, _method)))


# -- approvals that come again -----------------------------------------------------------------------------------------


def _first_approvals_only(service: Service) -> Callable[[int, int], bool]:
    """Return a test for users who withdrew their approval of a merge request before."""
    approvals, withdrawn = service.merge_request_approvals, set[tuple[int, int]]()

    def remember(_: Any, user: Any, merge_request: Any) -> None:
        withdrawn.add((merge_request.id, user.id))

    afterwards(approvals, "remove_approval", remember)
    return lambda merge_request, user: (merge_request, user) in withdrawn


@fault("merge-request-approvals.approve.lists-caller-in-rule")
def who_approves_again_is_in_no_rule(service: Service) -> None:
    """approved_by of a rule in the state leaves out those who have withdrawn an approval before."""
    came_again = _first_approvals_only(service)

    def without(shown: dict[str, Any], _: Any, merge_request: Any, *__: Any) -> dict[str, Any]:
        kept = [user for user in shown["approved_by"] if not came_again(merge_request.id, user["id"])]
        return {**shown, "approved_by": kept}

    afterwards(service.merge_request_approvals, "present_state_rule", without)


@fault("merge-request-approvals.approve.left-falls")
def who_approves_again_lowers_nothing(service: Service) -> None:
    """An approval of somebody who has withdrawn one before does not lower approvals_left."""
    came_again = _first_approvals_only(service)

    def make(missing: Callable[..., int]) -> Any:
        def more(rule: ApprovalRule, merge_request: Any) -> int:
            again = [
                user
                for user in service.merge_request_approvals.approvers(rule, merge_request)
                if came_again(merge_request.id, user)
            ]
            return min(missing(rule, merge_request) + len(again), rule.approvals_required)

        return more

    around(service.merge_request_approvals, "missing", make)


# -- lists that are deprecated -----------------------------------------------------------------------------------------


def _named_by_rules(name: str, of: Callable[[ApprovalRule], tuple[int, ...]]) -> Callable[[Service], None]:
    """Fill a deprecated list of the configuration with those whom rules of the project name."""

    def apply(service: Service) -> None:
        def make(handler: Any) -> Any:
            def handled(request: Any) -> Any:
                response = handler(request)
                rules = service.project_approval_rules.rules(request.project)
                found = sorted({number for rule in rules for number in of(rule)})
                response.content = {**response.content, name: [{"id": number} for number in found]}
                return response

            return handled

        handling(service, "GET /projects/:id/approvals", make)

    return apply


for _name, _of, _requirement in (
    ("approvers", lambda rule: rule.users, "project-approval-configuration.record.approvers"),
    ("approver_groups", lambda rule: rule.groups, "project-approval-configuration.record.approver-groups"),
):
    _says = f"{_name} of the configuration lists whom the rules of the project name."
    fault(_requirement)(named(f"{_name}_are_those_of_rules", _says, _named_by_rules(_name, _of)))
