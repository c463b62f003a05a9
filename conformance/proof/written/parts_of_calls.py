"""Faults in which one part of a call, or a call beside or before it, counts for more or for less than it should."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import (
    afterwards,
    around,
    beforehand,
    bodies,
    breaking,
    handling,
    replacing_in_each,
    told_otherwise,
)
from conformance.proof.written.limits import rated
from conformance.reference.areas.approval_rule_records import Level, RuleRequest, RuleType
from conformance.reference.areas.integration_catalogue import CATALOGUE
from conformance.reference.errors import InvalidError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

#: Requirement -> what an update changes, and by which call.
_UPDATES = {
    "group-approval-rules.update.approvers-are-lists": ("group", "/groups/:id/approval_rules/:approval_rule_id"),
    "project-approval-rules.update.approvers-are-lists": ("project", "/projects/:id/approval_rules/:approval_rule_id"),
    "merge-request-approvals.rules.update.approvers-are-lists": (
        "merge request",
        "/projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id",
    ),
}


def _number_kept(path: str) -> Callable[[Service], None]:
    """Keep the number of a refused update."""

    def apply(service: Service) -> None:
        def make(handler: Any) -> Any:
            def partly(request: Request) -> Any:
                number = request.parameters._values.get("approvals_required")
                rule = service.approval_rules.rules.get(request.path_id("approval_rule_id"))
                try:
                    return handler(request)
                except InvalidError as error:
                    if error.parameter in ("user_ids", "group_ids") and isinstance(number, int) and rule is not None:
                        service.approval_rules.rules[rule.id] = replace(rule, approvals_required=number)
                    raise

            return partly

        handling(service, f"PUT {path}", make)

    return apply


for _requirement, (_level, _path) in _UPDATES.items():
    _name = f"numbers_of_refused_updates_stay_in_rules_of_a_{_level.replace(' ', '_')}"
    _says = (
        f"An update of a rule of a {_level} without a list as its list of approvers is refused, but its number stays."
    )
    fault(_requirement)(named(_name, _says, _number_kept(_path)))


@fault("project-approval-rules.update.remove-hidden-groups-is-boolean")
def approvers_of_refused_updates_stay(service: Service) -> None:
    """An update of a project's rule with a flag that is no truth value is refused, but its approvers stay."""
    rules = service.approval_rules.rules

    def make(handler: Any) -> Any:
        def partly(request: Request) -> Any:
            users = request.parameters._values.get("user_ids")
            rule = rules.get(request.path_id("approval_rule_id"))
            try:
                return handler(request)
            except InvalidError as error:
                if error.parameter == "remove_hidden_groups" and isinstance(users, list) and rule is not None:
                    rules[rule.id] = replace(rule, users=tuple(map(int, users)))
                raise

        return partly

    handling(service, "PUT /projects/:id/approval_rules/:approval_rule_id", make)


@fault("project-approval-rules.create.applies-to-all-protected-branches.default")
def rules_of_a_stated_type_hold_for_every_branch(service: Service) -> None:
    """A new rule whose type is sent applies to all protected branches unless told otherwise."""

    def everywhere(wanted: RuleRequest) -> RuleRequest:
        is_unsaid = wanted.rule_type is RuleType.REGULAR and wanted.applies_to_all_protected_branches is None
        return replace(wanted, applies_to_all_protected_branches=True) if is_unsaid else wanted

    told_otherwise(service.project_approval_rules, "create_rule", 1, everywhere)


@fault("merge-request-approvals.rules.create.users")
def names_of_deleted_rules_bring_their_users_back(service: Service) -> None:
    """A rule of a merge request under the name of a deleted one has the users of that one as well."""
    rules = service.approval_rules
    former: dict[tuple[Any, str], tuple[int, ...]] = {}

    def remember(_: None, rule: Any) -> None:
        former[rule.home, rule.name] = rule.users

    def bring_back(rule: Any, *_: object) -> Any:
        if rule.home.level is Level.MERGE_REQUEST and (rule.home, rule.name) in former:
            rules.rules[rule.id] = replace(rule, users=(*rule.users, *former.pop((rule.home, rule.name))))
        return rules.rules[rule.id]

    afterwards(rules, "delete_rule", remember)
    afterwards(rules, "create_rule", bring_back)


@fault("job-token-scope.allowlists.are-separate")
def groups_bring_their_projects_into_the_allowlist(service: Service) -> None:
    """Letting a group in adds its projects to the allowlist of projects."""
    scopes, projects = service.job_token_scope, service.identities.projects

    def add(_: bool, project: Any, group: Any) -> None:
        scope = scopes.of(project)
        inside = [one.id for one in projects.values() if one.namespace_id == group.id]
        listed = tuple(dict.fromkeys((*scope.projects, *inside)))
        scopes.scopes[project.id] = replace(scope, projects=listed)

    afterwards(scopes, "add_group", add)


@fault("code-completion.request.project-path.is-optional")
def paths_through_several_groups_are_no_project_paths(service: Service) -> None:
    """A project_path with more than one slash is refused."""

    def make(read: Any) -> Any:
        def strict(parameters: Any) -> Any:
            wanted = read(parameters)
            if str(wanted.project_path or "").count("/") > 1:
                raise InvalidError("project_path is invalid", parameter="project_path")
            return wanted

        return strict

    around(service.code_completion, "read", make)


@rated("limits.completions.served-below-rate")
def checks_of_projects_count_as_completions(service: Service) -> None:
    """Asking whether a project has completions counts as a completion, if it has."""
    area = service.code_completion
    afterwards(area, "check", lambda _, caller, __: area.count(caller))


@fault("integrations.parameters.recipients.text")
def plus_signs_in_recipients_become_spaces(service: Service) -> None:
    """The plus in an address of recipients is read as a space."""

    def spaced(values: dict[str, Any]) -> dict[str, Any]:
        found = values.get("recipients")
        return {**values, "recipients": found.replace("+", " ")} if isinstance(found, str) else values

    bodies(service, "PUT /projects/:id/integrations/:slug", spaced)


@fault("integrations.parameters.enable-ssl-verification.default")
def updates_switch_the_verification_off(service: Service) -> None:
    """An update that does not send enable_ssl_verification stores false."""

    def make(set_up: Any) -> Any:
        def careless(project: Any, kind: Any, values: Any, **more: Any) -> Any:
            before = service.integrations.known.get((project.id, kind.slug))
            is_update = before is not None and before.active
            is_taken = any(one.name == "enable_ssl_verification" and not one.fixed for one in kind.parameters)
            off = {"enable_ssl_verification": False} if is_update and is_taken else {}
            return set_up(project, kind, {**off, **values}, **more)

        return careless

    around(service.integrations, "set_up", make)


@fault("integrations.unknown-slug.reading")
def beginnings_of_slugs_are_taken(service: Service) -> None:
    """The beginning of an identifier is taken for the first one that begins so."""

    def whole(slug: str) -> str:
        return slug if slug in CATALOGUE else next((one for one in CATALOGUE if one.startswith(slug)), slug)

    told_otherwise(service.integrations, "find", 1, whole)


#: Requirement -> what a creation makes a rule of, and by which call.
_CREATIONS = {
    "group-approval-rules.create.values": ("group", "/groups/:id/approval_rules"),
    "project-approval-rules.create.values": ("project", "/projects/:id/approval_rules"),
    "merge-request-approvals.rules.create.name-and-number": (
        "merge request",
        "/projects/:id/merge_requests/:merge_request_iid/approval_rules",
    ),
}
_LONGEST_NAME = 255


def _names_cut(path: str) -> Callable[[Service], None]:
    """Store no more of the name of a new rule than fits."""

    def cut(values: dict[str, Any]) -> dict[str, Any]:
        name = values.get("name")
        return {**values, "name": name[:_LONGEST_NAME]} if isinstance(name, str) else values

    return lambda service: bodies(service, f"POST {path}", cut)


for _requirement, (_level, _path) in _CREATIONS.items():
    _name = f"long_names_of_rules_of_a_{_level.replace(' ', '_')}_are_cut"
    _says = f"A new rule of a {_level} is stored with the first {_LONGEST_NAME} characters of its name."
    fault(_requirement)(named(_name, _says, _names_cut(_path)))


@fault("merge-request-approvals.rules.create.listed")
def copies_take_the_places_of_other_copies(service: Service) -> None:
    """A second copy of project rules in a merge request deletes the first one, although it is of another rule."""
    rules = service.approval_rules

    def forget(made: Any, *_: object) -> Any:
        older = [rule for rule in rules.rules.values() if rule.home == made.home and rule.source_id is not None]
        for rule in older:
            if made.source_id is not None and rule.source_id != made.source_id:
                del rules.rules[rule.id]
        return made

    afterwards(service.merge_request_approval_rules, "create_rule", forget)


@fault("conventions.pagination.beyond-the-end")
def pages_that_begin_beyond_32_bits_break(service: Service) -> None:
    """A page of the rules of a project whose first entry has a number above 32 bits is answered with a server error."""

    def is_far(request: Request) -> bool:
        values = request.parameters._values
        page, length = str(values.get("page", 1)), str(values.get("per_page", 20))
        return page.isdecimal() and length.isdecimal() and int(page) * int(length) >= 2**31

    breaking(service, "GET /projects/:id/approval_rules", is_far)


@fault("merge-request-approvals.authorization.outsider-cannot-approve")
def outsiders_approve_for_good(service: Service) -> None:
    """A user without a role in the project may approve a merge request, and only a reset removes that approval."""
    approvals, rules = service.merge_request_approvals, service.merge_request_approval_rules

    def is_outside(user: Any, merge_request: Any) -> bool:
        return service.identities.role_in(user, rules.project_of(merge_request)) < Role.GUEST

    def find(caller: Any, reference: str) -> Any:
        return service.identities.find_project(reference) or not_found(caller, reference)

    def admit(request: Request) -> None:
        is_approving = request.route.path.endswith("/approve")
        service.access.visible_project = find if is_approving else not_found  # type: ignore[method-assign]

    not_found = service.access.visible_project
    beforehand(service.access, "admit", admit)
    around(approvals, "may_approve", lambda may: lambda *asked: is_outside(*asked) or may(*asked))
    around(approvals, "remove_approval", lambda remove: lambda *asked: None if is_outside(*asked) else remove(*asked))


@fault("job-token-scope.project-entry.describes-target")
def listed_projects_have_the_usual_default_branch(service: Service) -> None:
    """Each project on an allowlist is shown with main as its default branch."""
    replacing_in_each(service, "GET /projects/:id/job_token_scope/allowlist", default_branch="main")
