"""The level of a rule, or the kind of a record, and the id of another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.errors import NotFoundError

if TYPE_CHECKING:
    from conformance.reference import Service

_DIMENSION = "level x id of another level"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


def _any_home(service: Service, key: str, level: Level) -> None:
    """Let an operation find any rule of a level, whatever it belongs to."""

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        rules, find = service.approval_rules, service.approval_rules.find

        def everywhere(home: Any, number: int) -> Any:
            rule = rules.rules.get(number)
            return rule if rule is not None and rule.home.level is level else find(home, number)

        rules.find = everywhere
        try:
            return handler(request)
        finally:
            rules.find = find


@foreign(_DIMENSION, "Project approval rules: GET one")
def rules_of_other_projects_are_read(service: Service) -> None:
    """A project answers for the rule of another project; each project has its own rules."""
    _any_home(service, "GET /projects/:id/approval_rules/:approval_rule_id", Level.PROJECT)


@foreign(_DIMENSION, "Project approval rules: DELETE")
def rules_of_other_projects_are_deleted(service: Service) -> None:
    """A project deletes the rule of another project."""
    _any_home(service, "DELETE /projects/:id/approval_rules/:approval_rule_id", Level.PROJECT)


@foreign(_DIMENSION, "Merge request approvals: rules")
def rules_of_other_merge_requests_are_deleted(service: Service) -> None:
    """A merge request deletes the rule of another merge request."""
    _any_home(service, f"DELETE {_MERGE_REQUEST}/approval_rules/:approval_rule_id", Level.MERGE_REQUEST)


@foreign(_DIMENSION, "Merge request approvals: rules")
def rules_of_other_merge_requests_are_read(service: Service) -> None:
    """A merge request answers for the rule of another merge request."""
    _any_home(service, f"GET {_MERGE_REQUEST}/approval_rules/:approval_rule_id", Level.MERGE_REQUEST)


@foreign(_DIMENSION, "Project approval rules: PUT")
def projects_change_rules_of_merge_requests(service: Service) -> None:
    """A project changes the rule of one of its merge requests, which has an operation of its own for that."""
    _any_home(service, "PUT /projects/:id/approval_rules/:approval_rule_id", Level.MERGE_REQUEST)


@foreign(_DIMENSION, "Merge request approvals: rules")
def merge_requests_delete_rules_of_projects(service: Service) -> None:
    """A merge request deletes a rule of its project, for all merge requests."""
    _any_home(service, f"DELETE {_MERGE_REQUEST}/approval_rules/:approval_rule_id", Level.PROJECT)


@foreign(_DIMENSION, "Merge request approvals: rules")
def merge_requests_change_rules_of_projects(service: Service) -> None:
    """A merge request changes a rule of its project, for all merge requests."""
    _any_home(service, f"PUT {_MERGE_REQUEST}/approval_rules/:approval_rule_id", Level.PROJECT)


@foreign(_DIMENSION, "Group approval rules: PUT")
def groups_change_rules_of_other_groups(service: Service) -> None:
    """A group changes the rule of another group."""
    _any_home(service, "PUT /groups/:id/approval_rules/:approval_rule_id", Level.GROUP)


@foreign(_DIMENSION, "Group approval rules: PUT")
def groups_change_rules_of_projects(service: Service) -> None:
    """A group changes the rule of a project."""
    _any_home(service, "PUT /groups/:id/approval_rules/:approval_rule_id", Level.PROJECT)


@foreign(_DIMENSION, "Merge request approvals: rule 1")
def rules_of_other_projects_are_copied(service: Service) -> None:
    """A merge request copies the rule of a project that it does not belong to; the id is one of its own project."""
    _any_home(service, f"POST {_MERGE_REQUEST}/approval_rules", Level.PROJECT)


@foreign("level x id of another level", "Job token scope: DELETE")
def removing_a_group_removes_the_project_of_its_number(service: Service) -> None:
    """Removing a group from its list also removes the project of the same number from the other list."""

    @instead(service.job_token_scope, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scopes = service.job_token_scope
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, projects=tuple(n for n in scope.projects if n != target.id))


@foreign("level x id of another level", "Merge request approvals: iid")
def merge_requests_answer_to_their_id(service: Service) -> None:
    """Where no merge request of the project has that iid, the one with that id is shown; the path holds the iid."""

    @instead(service.merge_request_approval_rules, "merge_request")
    def _(find: Any, project: Any, iid: int) -> Any:
        known = service.repositories.merge_requests
        by_id = (one for one in known.values() if one.id == iid and one.project_id == project.id)
        return known.get((project.id, iid)) or next(by_id, None) or find(project, iid)


@foreign("level x id of another level", "Merge request approvals: iid")
def merge_requests_of_other_projects_answer(service: Service) -> None:
    """Where no merge request of the project has that iid, one of another project is shown."""

    @instead(service.merge_request_approval_rules, "merge_request")
    def _(find: Any, project: Any, iid: int) -> Any:
        known = service.repositories.merge_requests
        others = (one for one in known.values() if one.iid == iid)
        return known.get((project.id, iid)) or next(others, None) or find(project, iid)


@foreign("level x id of another level", "Integrations: GET one")
def integrations_of_other_projects_are_shown(service: Service) -> None:
    """A project that never set up an integration shows the settings that another project has for it."""

    @instead(service.integrations, "find")
    def _(find: Any, project: Any, slug: str) -> Any:
        try:
            return find(project, slug)
        except NotFoundError:
            others = (one for one in service.integrations.known.values() if one.slug == slug and one.active)
            other = next(others, None)
            if other is None:
                raise
            return other
