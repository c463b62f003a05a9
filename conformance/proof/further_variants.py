"""Further legal personalities, each of which a test once took for a fault, and the alterations that make them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.proof.personality import Variant
from conformance.proof.rule_alterations import lock_everywhere
from conformance.proof.wire_alterations import transform
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.areas.group_relations_export import Status
from conformance.reference.choices import Choices, Unfit
from conformance.reference.errors import not_found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.reference import Service
    from conformance.reference.areas.approval_rule_records import ApprovalRule
    from conformance.reference.areas.group_relations_export import RelationExport
    from conformance.reference.areas.integrations import Integration
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group, Project
    from conformance.reference.presenters import Json
    from conformance.reference.repositories import MergeRequest
    from conformance.reference.routing import Route

_SUCCESS = range(200, 300)
#: So many relations are listed in front of those that the reference has anyhow: more than one page.
_MORE_RELATIONS = 24


# -- what answers hold besides -----------------------------------------------------------------------------------------


def tells_the_last_event(service: Service) -> None:
    """Put a record of the last thing that happened into each record, under a name of its own; it is never the same."""
    numbers = itertools.count(1)

    def add(record: Json) -> None:
        event = {"id": next(numbers), "name": f"event {next(numbers)}", "users": [{"id": next(numbers)}]}
        record["last_event"] = {**event, "created_at": service.present.timestamp(service.clock.now())}

    _add_to_records(service, add)


def shows_fields_that_move(service: Service) -> None:
    """Show in each record fields that the text has in others; each time they say something else."""
    numbers = itertools.count(1)

    def add(record: Json) -> None:
        record.setdefault("updated_at", service.present.timestamp(service.clock.now()))
        record.setdefault("state", f"looked at {next(numbers)} times")
        record.setdefault("star_count", next(numbers))
        record.setdefault("message", f"hello {next(numbers)}")

    _add_to_records(service, add)


def _add_to_records(service: Service, add: Callable[[Json], None]) -> None:
    """Let a function change each record of each answer that the text describes, for lists each entry."""
    described = {
        (operation.method, operation.path.replace("{", ":").replace("}", ""))
        for operation in Contract.load().operations(None)
        if operation.area != "versions"
    }

    def change(route: Route, _: Request, answer: Response) -> None:
        if (route.method, route.path) in described and answer.has_content and answer.status in _SUCCESS:
            content = answer.content
            for record in content if isinstance(content, list) else [content]:
                if isinstance(record, dict):
                    add(record)
            answer.content = content

    transform(service, change)


# -- approvals ---------------------------------------------------------------------------------------------------------


def counts_each_approval_once(service: Service) -> None:
    """Count an approval for one rule alone, the first that asks for one; those that anybody satisfies come last."""
    approvals, rules = service.merge_request_approvals, service.approval_rules

    def shares(merge_request: MergeRequest) -> Iterator[tuple[int, tuple[int, ...]]]:
        left = [approval.user_id for approval in approvals.approvals_of(merge_request)]
        known = approvals.rules(merge_request)
        in_turn = sorted(known, key=lambda rule: (rule.rule_type is RuleType.ANY_APPROVER, not rule.approvals_required))
        for rule in in_turn:
            able = left
            if rule.rule_type is not RuleType.ANY_APPROVER:
                able = [user for user in left if user in rules.eligible_approvers(rule)]
            mine = able if rule is in_turn[-1] else able[: max(rule.approvals_required, 1)]
            left = [user for user in left if user not in mine]
            yield rule.id, tuple(mine)

    def approvers(rule: ApprovalRule, merge_request: MergeRequest) -> tuple[int, ...]:
        return dict(shares(merge_request)).get(rule.id, ())

    approvals.approvers = approvers  # type: ignore[method-assign] # a service is altered so


def locks_author_approval(service: Service) -> None:
    """Let the installation decide, for every project and group, that authors do not approve."""
    lock_everywhere(service, Setting.ALLOW_AUTHOR_APPROVAL, value=False)


def hides_rules_that_are_forbidden(service: Service) -> None:
    """Let the installation decide that merge requests have no rules of their own: to make one finds no such address."""
    lock_everywhere(service, Setting.ALLOW_OVERRIDES, value=False)
    rules = service.merge_request_approval_rules

    def require_overriding(project: Project) -> None:
        del project
        raise not_found("Approval rules")

    rules.require_overriding = require_overriding  # type: ignore[method-assign] # the same


# -- exports -----------------------------------------------------------------------------------------------------------


def exports_many_relations(service: Service) -> None:
    """Export more relations than a page has entries; those that hold something are listed last."""
    _change_relations(service, lambda own: {f"a_relation_{n:02}": () for n in range(_MORE_RELATIONS)} | own)


def writes_lines_as_arrays(service: Service) -> None:
    """Write each object of a file as an array of its version and itself, which is JSON on a line as well."""
    exports = service.group_relations_export
    file = exports.file

    def with_versions(lines: tuple[bytes, ...]) -> bytes:
        return file(tuple(b"[1, " + line + b"]" for line in lines))

    exports.file = with_versions  # type: ignore[method-assign] # the same


def fails_in_batches(service: Service) -> None:
    """Let no relation be exported in batches: each of them fails, and has none."""
    exports = service.group_relations_export
    status_of = exports.status_of

    def status(export: RelationExport) -> Status:
        found = status_of(export)
        return Status.FAILED if export.batched and found is Status.FINISHED else found

    def no_batches(export: RelationExport) -> list[tuple[bytes, ...]]:
        del export
        return []

    exports.status_of = status  # type: ignore[method-assign] # the same
    exports.batches = no_batches  # type: ignore[method-assign] # the same


def names_relations_oddly(service: Service) -> None:
    """Export relations whose names no file can have; their files have names that are like them."""
    _change_relations(service, lambda own: {"self": (), "über/alles": (), "a b+c": (), **own, "labels_2": ()})
    exports = service.group_relations_export
    named = exports.file_name

    def file_name(relation: str) -> str:
        return named("".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in relation))

    exports.file_name = file_name  # type: ignore[method-assign] # the same


def _change_relations(service: Service, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    exports = service.group_relations_export
    relations = exports.relations

    def changed(group: Group) -> dict[str, Any]:
        return change(dict(relations(group)))

    exports.relations = changed  # type: ignore[method-assign] # the same


# -- integrations ------------------------------------------------------------------------------------------------------


def explains_settings(service: Service) -> None:
    """Show the settings of an integration beside the defaults of its kind, and a description of each parameter."""
    integrations = service.integrations
    present = integrations.present_settings

    def explained(integration: Integration) -> Json:
        shown = present(integration)
        parameters = [parameter for parameter in integration.kind.parameters if not parameter.secret]
        described: Json = {parameter.name: {"type": parameter.type.value} for parameter in parameters}
        defaults: Json = {parameter.name: parameter.default for parameter in parameters}
        return {**shown, "defaults": defaults, "schema": {"properties": described}}

    integrations.present_settings = explained  # type: ignore[method-assign] # the same


def shows_settings_as_objects(service: Service) -> None:
    """Show each setting of an integration as an object with its value, as approval settings are shown."""
    integrations = service.integrations
    settings = integrations.shown_settings

    def as_objects(integration: Integration) -> Json:
        return {name: {"value": value, "locked": False} for name, value in settings(integration).items()}

    integrations.shown_settings = as_objects  # type: ignore[method-assign] # the same


VARIANTS = (
    Variant(
        "tells-the-last-event",
        "Each record holds a record of what happened last, with an id and a name of its own.",
        alterations=(tells_the_last_event,),
    ),
    Variant(
        "fields-of-others-move",
        "Each record has fields that the text has in others, and these say something else each time.",
        alterations=(shows_fields_that_move,),
    ),
    Variant(
        "approvals-count-once",
        "An approval counts for one rule alone.",
        alterations=(counts_each_approval_once,),
    ),
    Variant(
        "author-approval-locked",
        "The installation keeps authors from approving, and refuses whoever would change that; the rest is free.",
        replace(Choices(), locked_setting_written=Unfit.REFUSE),
        alterations=(locks_author_approval,),
        alone="a setting that is locked everywhere",
    ),
    Variant(
        "forbidden-rules-hidden",
        "No merge request may have rules of its own, and whoever would make one is answered 404.",
        alterations=(hides_rules_that_are_forbidden,),
        alone="most of what is said of such rules cannot be seen",
    ),
    Variant(
        "batches-fail",
        "Every relation fails where it is exported in batches.",
        alterations=(fails_in_batches,),
        alone="what is said of batches cannot be seen",
    ),
    Variant(
        "many-relations-in-pages",
        "There are many relations, and the status of an export comes in pages, which nothing says.",
        replace(Choices(), unmarked_lists_are_paged=True),
        alterations=(exports_many_relations,),
    ),
    Variant(
        "relations-with-odd-names",
        "Relations have names that no file can have; each line of a file is an array.",
        alterations=(names_relations_oddly, writes_lines_as_arrays),
    ),
    Variant(
        "passwords-wanted-at-first",
        "Whoever approves has to send a password, until that is switched off in the settings of the project.",
        replace(
            Choices(),
            project_settings_on_initially=("require_password_to_approve", "require_reauthentication_to_approve"),
        ),
        alone="before 17.1 nothing switches it off, so that nobody approves",
    ),
    Variant(
        "settings-explained",
        "Settings of an integration are shown beside the defaults and a description of each parameter.",
        alterations=(explains_settings,),
    ),
    Variant(
        "settings-as-objects",
        "Each setting of an integration is shown as an object with its value.",
        alterations=(shows_settings_as_objects,),
        alone="as a text, as another one shows it, such an object says nothing",
    ),
)
