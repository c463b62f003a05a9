"""Faults that let in somebody who has a role elsewhere, or nobody at all, where other tests ask another caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.proof.faults import fault, named
from conformance.proof.tampering import beforehand, breaking, is_route, let_in, sent
from conformance.proof.written.code_completion import CHECK
from conformance.proof.written.job_token_scope_in_steps import LISTS, keep, listed
from conformance.reference.areas.approval_rule_records import Home, Level

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request

_SETTINGS = "GET /groups/:id/merge_request_approval_setting"
_DELETION = "DELETE /projects/:id/approval_rules/:approval_rule_id"


@fault("authentication.anonymous-on-public-project")
def public_projects_are_checked_without_a_token(service: Service) -> None:
    """Without a token, the check tells whether a public project has completions."""
    public = service.world.one("public_project").path

    def is_nobody(request: Request) -> bool:
        is_asked = request.route.key == CHECK and sent(request).get("project_path") == public
        return is_asked and not service.access.token_text(request)

    let_in(service, is_nobody, "maintainer")


@fault("approval-settings.group.authorization.without-role")
def bots_of_projects_may_read_settings_of_their_group(service: Service) -> None:
    """The bot of a project may read the approval settings of the group in which the project lies."""
    token = service.world.actors["project_bot"].token

    def is_the_bot(request: Request) -> bool:
        return is_route(request.route, _SETTINGS) and service.access.token_text(request) == token

    let_in(service, is_the_bot, "owner")


for _kind, _segment, _path in LISTS:

    def _refused_and_added(service: Service, kind: str = _kind, path: str = _path) -> None:
        own = service.world.one(f"inner_{kind}").id
        token = service.world.actors["developer"].token

        def add(request: Request) -> None:
            is_meant = is_route(request.route, f"POST {path}") and service.access.token_text(request) == token
            if is_meant and sent(request).get(f"target_{kind}_id") == own:
                project = service.identities.find_project(request.path["id"])
                if project is not None:
                    keep(service, project, kind, (*listed(service, project, kind), own))

        beforehand(service.access, "admit", add)

    fault(f"job-token-scope.authorization.changing-{_segment}-below-maintainer")(
        named(
            f"owners_of_a_{_kind}_are_heard_behind_a_refusal",
            f"A developer who owns a {_kind} and adds it to the list of another project is refused, and it is added.",
            _refused_and_added,
        )
    )


@fault("project-approval-rules.delete.rule-of-another-project")
def deletion_of_a_rule_elsewhere_breaks(service: Service) -> None:
    """Deleting a rule that is not of the project causes a server error."""
    rules = service.approval_rules.rules

    def is_elsewhere(request: Request) -> bool:
        number = request.path["approval_rule_id"]
        rule = rules.get(int(number)) if number.isdigit() else None
        return rule is not None and rule.home != Home(Level.PROJECT, request.project.id)

    breaking(service, _DELETION, is_elsewhere)
