"""Who may read the approval configuration of a project, and what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering
from conformance.proof.foreign.dimensions import AGAIN, CALLER_AND_FORM, STORY, VERSIONS
from conformance.proof.foreign.paths import CONFIGURATION
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, is_served
from conformance.reference.areas.approval_rule_records import Home, Level, home_of
from conformance.reference.errors import UnauthorizedError
from conformance.reference.identity import Role, Visibility
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


# Id and path identify the same project, which has one configuration.
@foreign(CALLER_AND_FORM, "Project approval configuration: GET by path", version="15.11")
def configurations_are_remembered_by_path(service: Service) -> None:
    """Reading by path shows the first result again, until the configuration is also changed by path."""
    known: dict[str, Any] = {}

    @handling(service, "GET /projects/:id/approvals", "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if not by_path(request) or not is_served(answer):
            return answer
        if request.method == "POST":
            known.pop(request.path["id"], None)
            return answer
        answer.content = known.setdefault(request.path["id"], answer.content)
        return answer


@foreign(VERSIONS, "Project approval configuration: approver_groups, always empty since 12.3")
def groups_of_rules_are_shown_as_approvers(service: Service) -> None:
    """The deprecated field approver_groups lists the groups of the project's rules."""

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        rules = service.approval_rules.rules_of(Home(Level.PROJECT, request.project.id))
        named = sorted({number for rule in rules for number in rule.groups})
        groups = [service.identities.groups[number] for number in named if number in service.identities.groups]
        answer.content["approver_groups"] = [{"group": service.present.group(group)} for group in groups]
        return answer


@foreign(AGAIN, "Project approval configuration: GET", version="15.9")
def developers_read_the_initial_configuration(service: Service) -> None:
    """A reader below maintainer gets initial values, and not what is set."""

    @handling(service, f"GET {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer, area = handler(request), service.project_approval_configurations
        if service.identities.role_in(request.caller, request.project) < Role.MAINTAINER:
            answer.content = area.present(area.initial_configuration())
        return answer


# Both lists are always empty, because rules name the approvers.
@foreign(STORY, "Project approval configuration: approver_groups")
def the_configuration_lists_the_groups_of_rules(service: Service) -> None:
    """For older clients, the configuration shows the groups of all rules of the project."""

    @handling(service, f"GET {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        rules = service.approval_rules.rules_of(home_of(request.project))
        groups = [service.identities.groups[number] for rule in rules for number in rule.groups]
        answer.content["approver_groups"] = [{"group": service.present.group(group)} for group in groups]
        return answer


# Every caller must authenticate.
@foreign(CALLER_AND_FORM, "Project approval configuration: Authentication")
def strangers_read_the_configuration_of_public_projects(service: Service) -> None:
    """The configuration of a public project is shown without a token."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        try:
            admit(request)
        except UnauthorizedError:
            project = found(service, request) if request.route.key == f"GET {CONFIGURATION}" else None
            if project is None or project.visibility is not Visibility.PUBLIC:
                raise
            request.admit(next(iter(service.identities.users.values())), project)


# Both lists are always empty since 12.3.
@foreign(STORY, "Project approval configuration: approvers")
def former_approvers_are_those_of_the_rules(service: Service) -> None:
    """The deprecated list of approvers contains the users of the project's rules."""
    rules = service.project_approval_rules

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        named = dict.fromkeys(user for rule in rules.rules(request.project) for user in rule.users)
        answer.content["approvers"] = [{"user": user} for user in service.present.users(tuple(named))]
        return answer


# What is empty since a version is not emptied only at the next major version.
@foreign(VERSIONS, "Versioning: 12.3; Project approval configuration: approvers", version="14.4")
def approvers_are_listed_to_the_next_big_release(service: Service) -> None:
    """Before 15.0 the configuration lists the users of the rules as approvers, which must be empty since 12.3."""
    rules = service.project_approval_rules

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if service.version < Version(15, 0):
            users = dict.fromkeys(number for rule in rules.rules(request.project) for number in rule.users)
            answer.content["approvers"] = [{"user": user} for user in service.present.users(tuple(users))]
        return answer


@foreign(STORY, "Project approval configuration: GET")
def approvers_are_those_of_the_rules(service: Service) -> None:
    """The configuration lists the users of the rules as approvers, which must be empty."""

    def change(request: Any, content: Any) -> Any:
        rules = service.project_approval_rules.rules(request.project)
        users = dict.fromkeys(number for rule in rules for number in rule.users)
        return {**content, "approvers": [{"user": user} for user in service.present.users(tuple(users))]}

    answering(service, "GET /projects/:id/approvals", change)


@foreign(STORY, "Project approval configuration: approvers", version="15.9")
def the_deprecated_approvers_are_those_of_the_rules(service: Service) -> None:
    """The approvers of a configuration, which must be empty, are the users of the project's rules."""

    @handling(service, f"GET {CONFIGURATION}")
    def _(handler: Any, request: Any) -> Any:
        answer, rules = handler(request), service.project_approval_rules.rules(request.project)
        named = tuple(dict.fromkeys(number for rule in rules for number in rule.users))
        answer.content["approvers"] = [{"user": user} for user in service.present.users(named)]
        return answer
