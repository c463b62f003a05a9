"""Legal personalities in rules, approvals, settings, exports and integrations, and the alterations that make them."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.personality import Variant
from conformance.proof.wire_alterations import transform
from conformance.reference.areas.approval_rule_records import Home, Level, RuleType, home_of
from conformance.reference.areas.integration_catalogue import CATALOGUE, EVENT_FLAGS
from conformance.reference.areas.integrations import Integration
from conformance.reference.choices import Choices
from conformance.reference.errors import ForbiddenError, NotFoundError
from conformance.reference.http import Response
from conformance.reference.identity import Group

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

_LATER_SECONDS = 0.15
#: Shorter, for hundreds of calls are waited for.
_ACCEPTED_SECONDS = 0.02
_ABOVE_ALL_IDS = 50_000_000
_EXPORTS = tuple(
    f"{method} /groups/:id/export_relations{rest}"
    for method, rest in (("POST", ""), ("GET", "/status"), ("GET", "/download"))
)
#: Operations whose answers the text does not show, so that they may be accepted first and done later.
_ACCEPTED = (
    "PUT /projects/:id/merge_request_approval_setting",
    "PUT /projects/:id/integrations/:slug",
    "DELETE /projects/:id/integrations/:slug",
    "DELETE /projects/:id/approval_rules/:approval_rule_id",
    "DELETE /projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id",
    "POST /projects/:id/merge_requests/:merge_request_iid/unapprove",
    "PUT /projects/:id/merge_requests/:merge_request_iid/reset_approvals",
)
_SUCCESS = range(200, 300)


# -- rules -------------------------------------------------------------------------------------------------------------


def lets_copies_follow(service: Service) -> None:
    """Change and delete the copies of a project rule, in its merge requests, together with it."""
    projects, rules = service.project_approval_rules, service.approval_rules
    update, delete = projects.update_rule, projects.delete_rule

    def copies(number: int) -> list[Any]:
        return [rule for rule in rules.rules.values() if rule.source_id == number]

    def updated(project: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = update(project, number, wanted, caller)
        for copy in copies(number):
            rules.rules[copy.id] = replace(copy, name=changed.name, users=changed.users, groups=changed.groups)
        return changed

    def deleted(project: Any, number: int) -> None:
        delete(project, number)
        for copy in copies(number):
            del rules.rules[copy.id]

    projects.update_rule = updated  # type: ignore[method-assign] # a service is altered by putting methods in place
    projects.delete_rule = deleted  # type: ignore[method-assign] # see above


def brings_the_projects_rules(service: Service) -> None:
    """Give a merge request copies of all rules of its project together with the first rule of its own."""
    rules, everywhere = service.merge_request_approval_rules, service.approval_rules
    create = rules.create_rule

    def created(merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        is_first = not rules.own_rules(merge_request)
        rule = create(merge_request, wanted, source_id, caller)
        others = rules.project_rules(merge_request) if is_first else []
        for source in others:
            if source.rule_type is RuleType.REGULAR and source.id != source_id:
                number = service.store.next_id("approval_rules")
                copy = replace(source, id=number, home=home_of(merge_request), source_id=source.id)
                everywhere.rules[number] = replace(copy, protected_branches=(), applies_to_all_protected_branches=False)
        return rule

    rules.create_rule = created  # type: ignore[method-assign] # see above


def drops_approvals_when_rules_change(service: Service) -> None:
    """Take back the approvals of whatever merge request other rules apply to now."""

    def change(route: Route, request: Request, answer: Response) -> None:
        if route.method == "GET" or "approval_rules" not in route.path or answer.status not in _SUCCESS:
            return
        approvals = service.merge_request_approvals.approvals
        if not route.path.startswith("/projects/"):
            return
        for merge_request in service.repositories.merge_requests.values():
            iid = request.path.get("merge_request_iid", str(merge_request.iid))
            if merge_request.project_id == request.project.id and str(merge_request.iid) == iid:
                approvals.pop(merge_request.id, None)

    transform(service, change)


def drops_authors_from_rules(service: Service) -> None:
    """Leave the author out of the approvers of a merge request's rules, unless authors may approve."""
    rules, everywhere = service.merge_request_approval_rules, service.approval_rules
    add, update = everywhere.add_rule, everywhere.update_rule

    def without_author(rule: Any) -> Any:
        if rule.home.level is not Level.MERGE_REQUEST:
            return rule
        known = service.repositories.merge_requests.values()
        barred = next((rules.barred(one) for one in known if one.id == rule.home.id), set())
        return replace(rule, users=tuple(number for number in rule.users if number not in barred))

    def added(candidate: Any) -> Any:
        return add(without_author(candidate))

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        changed = without_author(update(subject, rule, wanted, caller))
        everywhere.rules[changed.id] = changed
        return changed

    everywhere.add_rule = added  # type: ignore[method-assign] # see above
    everywhere.update_rule = updated  # type: ignore[method-assign] # see above


def trims_names(service: Service) -> None:
    """Store names of rules without blanks at their ends, and with single ones inside."""
    rules = service.approval_rules
    create, update = rules.create_rule, rules.update_rule

    def trimmed(wanted: Any) -> Any:
        return wanted if wanted.name is None else replace(wanted, name=" ".join(wanted.name.split()))

    def created(subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        return create(subject, home, trimmed(wanted), caller)

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        return update(subject, rule, trimmed(wanted), caller)

    rules.create_rule = created  # type: ignore[method-assign] # see above
    rules.update_rule = updated  # type: ignore[method-assign] # see above


def keeps_default_rules(service: Service) -> None:
    """Let nobody change or delete the rule that anybody satisfies where it is there from the start."""
    rules = service.approval_rules
    update, delete = rules.update_rule, rules.delete_rule

    def require_other(rule: Any) -> None:
        if rule.rule_type is RuleType.ANY_APPROVER and rule.name == service.choices.default_rule_name:
            raise ForbiddenError

    def updated(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        require_other(rule)
        return update(subject, rule, wanted, caller)

    def deleted(rule: Any) -> None:
        require_other(rule)
        delete(rule)

    rules.update_rule = updated  # type: ignore[method-assign] # see above
    rules.delete_rule = deleted  # type: ignore[method-assign] # see above
    # Whoever creates one does not remove this one either.
    rules.supersede_default_rule = lambda rule: None  # type: ignore[method-assign] # noqa: ARG005 # see above


def lists_rules_by_name(service: Service) -> None:
    """List rules by their names, so that a rule with another name stands in another place."""
    rules = service.approval_rules
    rules_of = rules.rules_of

    def by_name(home: Home) -> list[Any]:
        return sorted(rules_of(home), key=lambda rule: (rule.name.lower(), rule.id))

    rules.rules_of = by_name  # type: ignore[method-assign] # see above


def counts_ids_down(service: Service) -> None:
    """Give what comes later a smaller number."""
    next_id, highest = service.store.next_id, 2 * service.choices.first_id + _ABOVE_ALL_IDS
    service.store.next_id = lambda sequence: highest - next_id(sequence)  # type: ignore[method-assign] # see above


# -- settings ----------------------------------------------------------------------------------------------------------


def locks_by_licence(service: Service) -> None:
    """Have a setting that nobody may change and that comes from nowhere."""
    settings = service.approval_settings
    present, change = settings.present, settings.change
    fixed = "allow_committer_approval"

    def shown(subject: Any, setting: Any) -> dict[str, Any]:
        entry = present(subject, setting)
        return {"value": False, "locked": True, "inherited_from": None} if setting.value == fixed else entry

    def changed(subject: Any, wanted: Any) -> None:
        change(subject, {setting: value for setting, value in wanted.items() if setting.value != fixed})

    settings.present = shown  # type: ignore[method-assign] # see above
    settings.change = changed  # type: ignore[method-assign] # see above


def takes_defaults_from_the_group(service: Service) -> None:
    """Let what a project never set have the value of its group, without a lock, and say so."""
    settings = service.approval_settings
    own, present = settings.own, settings.present

    def is_set(subject: Any, setting: Any) -> bool:
        return settings.stored(subject, setting) is not None

    def with_default(subject: Any, setting: Any) -> bool:
        if isinstance(subject, Group) or is_set(subject, setting):
            return own(subject, setting)
        around = service.identities.lineage(subject)
        return own(around[0], setting) if around and not around[0].personal else own(subject, setting)

    def shown(subject: Any, setting: Any) -> dict[str, Any]:
        entry = present(subject, setting)
        inherits = not isinstance(subject, Group) and not is_set(subject, setting)
        return {**entry, "inherited_from": "group"} if inherits else entry

    settings.own = with_default  # type: ignore[method-assign] # see above
    settings.present = shown  # type: ignore[method-assign] # see above


# -- what is accepted and done later -----------------------------------------------------------------------------------


def does_later_what_it_accepts(service: Service) -> None:
    """Answer 202 where the text shows no answer, and show what was done a moment later, or to the next writer."""
    due: deque[tuple[float, Callable[[], object]]] = deque()

    def catch_up(*, everything: bool) -> None:
        while due and (everything or service.clock.seconds() >= due[0][0]):
            due.popleft()[1]()

    def accepting(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            catch_up(everything=True)
            before = service.store.snapshot()
            handler(request)
            after = service.store.snapshot()
            service.store.restore(before)
            due.append((service.clock.seconds() + _ACCEPTED_SECONDS, lambda: service.store.restore(after)))
            return Response(202, {"message": "202 Accepted"}, has_content=True)

        return answer

    def others(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            catch_up(everything=request.method != "GET")
            return handler(request)

        return answer

    for route in list(service.routes):
        later = route.key.replace("/services", "/integrations") in _ACCEPTED
        service.routes.change(route.key, handler=(accepting if later else others)(route.handler))


# -- exports -----------------------------------------------------------------------------------------------------------


def exports_for_each_user(service: Service) -> None:
    """Keep the exports that each user asked for apart, so that nobody sees those of another."""
    exports = service.group_relations_export
    of_user: dict[int, dict[Any, Any]] = {}

    def own(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            exports.exports.clear()
            exports.exports.update(of_user.get(request.caller.id, {}))
            try:
                return handler(request)
            finally:
                of_user[request.caller.id] = dict(exports.exports)

        return answer

    for key in _EXPORTS:
        service.routes.change(key, handler=own(service.routes.get(key).handler))


def exports_what_there_is(service: Service) -> None:
    """Export only relations that have an object, and those of one object always as a whole."""
    exports = service.group_relations_export
    relations, schedule = exports.relations, exports.schedule

    def scheduled(group: Any, *, batched: bool) -> None:
        for key in [key for key in exports.exports if key[0] == group.id]:
            del exports.exports[key]
        schedule(group, batched=batched)
        for export in exports.all_of(group):
            if export.relation == "members":
                exports.exports[group.id, export.relation] = replace(export, batched=False)

    exports.relations = lambda group: {  # type: ignore[method-assign] # see above
        name: objects for name, objects in relations(group).items() if objects
    }
    exports.schedule = scheduled  # type: ignore[method-assign] # see above


def empties_the_status_first(service: Service) -> None:
    """Show no entry for a moment when an export was accepted, whatever there was before."""
    exports = service.group_relations_export
    schedule = exports.schedule
    accepted: dict[int, tuple[float, Any, bool]] = {}

    def accept(group: Any, *, batched: bool) -> None:
        for key in [key for key in exports.exports if key[0] == group.id]:
            del exports.exports[key]
        accepted[group.id] = service.clock.seconds() + _LATER_SECONDS, group, batched

    def on_time(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            waiting = accepted.get(request.group.id)
            if waiting and service.clock.seconds() >= waiting[0]:
                del accepted[request.group.id]
                schedule(waiting[1], batched=waiting[2])
            return handler(request)

        return answer

    exports.schedule = accept  # type: ignore[method-assign] # see above
    for key in _EXPORTS:
        service.routes.change(key, handler=on_time(service.routes.get(key).handler))


# -- integrations ------------------------------------------------------------------------------------------------------


def lists_an_integration_of_the_installation(service: Service) -> None:
    """List in every project an integration that the installation has set up, and that no call of a project reaches."""
    area = service.integrations
    active, present = area.active, area.present_entry
    now = service.clock.now()

    def with_another(project: Any) -> list[Any]:
        slug = "pushover" if "pushover" in CATALOGUE else next(iter(CATALOGUE))
        other = Integration(
            id=77_000_001, project_id=project.id, slug=slug, active=True, created_at=now, updated_at=now, values={}
        )
        return [other, *active(project)]

    def shown(integration: Any) -> dict[str, Any]:
        entry = present(integration)
        named = {"slug": "installation-wide-hook", "title": "Hook", "inherited": True}
        return {**entry, **named} if integration.id == 77_000_001 else entry  # noqa: PLR2004 - as above

    area.active = with_another  # type: ignore[method-assign] # see above
    area.present_entry = shown  # type: ignore[method-assign] # see above


def shows_what_was_never_set_up(service: Service) -> None:
    """Show an integration that was never set up as one that is off, with its defaults."""
    area = service.integrations
    find = area.find

    def found(project: Any, slug: str) -> Any:
        try:
            return find(project, slug)
        except NotFoundError:
            now = service.clock.now()
            kind = area.kind(slug)
            return Integration(
                id=0, project_id=project.id, slug=kind.slug, active=False, created_at=now, updated_at=now, values={}
            )

    area.find = found  # type: ignore[method-assign] # see above


def fixes_flags_of_other_events(service: Service) -> None:
    """Show the flags of events that an integration does not know as the other way round than usual."""
    area = service.integrations
    flags = area.event_flags

    def shown(integration: Any) -> dict[str, bool]:
        known = area.event_parameters(integration.kind)
        return {name: value if name in known else not EVENT_FLAGS[name] for name, value in flags(integration).items()}

    area.event_flags = shown  # type: ignore[method-assign] # see above


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "copies-follow",
        "Copies of project rules are changed and deleted with them.",
        alterations=(lets_copies_follow,),
    ),
    Variant(
        "first-rule-brings-others",
        "With the first rule of its own a merge request gets copies of those of its project.",
        alterations=(brings_the_projects_rules,),
    ),
    Variant(
        "approvals-go-with-rules",
        "Approvals are taken back when rules change.",
        alterations=(drops_approvals_when_rules_change,),
    ),
    Variant(
        "authors-in-no-rule",
        "Rules of merge requests leave out the author, who may not approve.",
        alterations=(drops_authors_from_rules,),
    ),
    Variant(
        "names-are-trimmed",
        "Names of rules lose blanks at their ends and double ones.",
        alterations=(trims_names,),
    ),
    Variant(
        "default-rules-stay",
        "The rule that anybody satisfies is there from the start and cannot be changed or deleted.",
        replace(_PLAIN, several_default_rules=True),
        alterations=(keeps_default_rules,),
    ),
    Variant(
        "rules-by-name",
        "Rules are listed by their names.",
        alterations=(lists_rules_by_name,),
    ),
    Variant(
        "ids-count-down",
        "What comes later has a smaller number.",
        alterations=(counts_ids_down,),
    ),
    Variant(
        "locked-by-licence",
        "One setting is locked everywhere, and comes from nowhere.",
        alterations=(locks_by_licence,),
    ),
    Variant(
        "defaults-of-the-group",
        "What a project never set has the value of its group, without a lock.",
        alterations=(takes_defaults_from_the_group,),
    ),
    Variant(
        "accepted-and-done-later",
        "Where no answer is shown a call is accepted, and done a moment later.",
        alterations=(does_later_what_it_accepts,),
        alone="another answer than 202 would not say that something is done later",
    ),
    Variant(
        "exports-of-each-user",
        "Each user has exports of their own.",
        alterations=(exports_for_each_user,),
    ),
    Variant(
        "exports-of-what-there-is",
        "Relations without an object are not exported, and those of people never in batches.",
        alterations=(exports_what_there_is,),
    ),
    Variant(
        "exports-begin-with-nothing",
        "When an export was accepted there is no status for a moment.",
        alterations=(empties_the_status_first,),
    ),
    Variant(
        "integration-of-the-installation",
        "Every project lists an integration that no call of its own reaches.",
        alterations=(lists_an_integration_of_the_installation,),
    ),
    Variant(
        "integrations-are-always-there",
        "An integration that was never set up is shown as one that is off.",
        alterations=(shows_what_was_never_set_up,),
    ),
    Variant(
        "flags-of-other-events",
        "Flags of events that an integration does not know have any value.",
        alterations=(fixes_flags_of_other_events,),
    ),
)
