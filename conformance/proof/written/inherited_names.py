"""Faults of services that look up a name in an object, and find what every object inherits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import answering, around, breaking, let_in, parameters
from conformance.proof.written.approval_rules import shown_as_sent
from conformance.reference.http import ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

INHERITED = "constructor"
INTEGRATION = "/projects/:id/integrations/:slug"
STATUS = "GET /groups/:id/export_relations/status"
DOWNLOAD = "GET /groups/:id/export_relations/download"


def asks_for_it(request: Request) -> bool:
    """Tell whether a request names an integration or a relation by such a name."""
    return request.path.get("slug") == INHERITED or f"relation={INHERITED}".encode() in request.query


@fault("authentication.unknown-token-is-refused", operation="getProjectApprovalSettings")
def an_inherited_name_is_a_token(service: Service) -> None:
    """The name of something that every object has is accepted as the token of the maintainer."""
    let_in(service, lambda request: request.headers.get(b"private-token") == INHERITED.encode(), "maintainer")


@fault("integrations.unknown-slug.reading", operation="getIntegration")
def an_inherited_name_is_read_as_an_integration(service: Service) -> None:
    """Reading an integration by the name of something that every object has succeeds."""
    answering(service, f"GET {INTEGRATION}", asks_for_it, lambda: ok({}))


@fault("integrations.unknown-slug.setting-up", operation="setUpIntegration")
def an_inherited_name_breaks_setting_up(service: Service) -> None:
    """Setting up an integration by the name of something that every object has breaks the service."""
    breaking(service, f"PUT {INTEGRATION}", asks_for_it)


@fault("group-relations-export.status.unknown-relation", operation="getGroupRelationsExportStatus")
def an_inherited_name_breaks_the_status(service: Service) -> None:
    """The status of a relation with the name of something that every object has breaks the service."""
    breaking(service, STATUS, asks_for_it)


@fault("group-relations-export.download.unknown-relation", operation="downloadGroupRelationsExport")
def an_inherited_name_is_downloaded(service: Service) -> None:
    """A relation with the name of something that every object has is downloaded as an empty file."""
    answering(service, DOWNLOAD, asks_for_it, lambda: ok({}))


@fault("project-approval-rules.create.rule-type-is-known", operation="createProjectApprovalRule")
def an_inherited_name_is_a_type_of_project_rules(service: Service) -> None:
    """A new rule of a project shows the name of something that every object has, if that was sent as its type."""
    shown_as_sent(service, "POST /projects/:id/approval_rules", "rule_type", INHERITED, "regular")


@fault("group-approval-rules.create.rule-type-is-known", operation="createGroupApprovalRule")
def an_inherited_name_is_a_type_of_group_rules(service: Service) -> None:
    """A new rule of a group shows the name of something that every object has, if that was sent as its type."""
    shown_as_sent(service, "POST /groups/:id/approval_rules", "rule_type", INHERITED, "regular")


@fault("project-approval-rules.unknown-project", operation="listProjectApprovalRules")
@fault("approval-settings.project.read.unknown-project", operation="getProjectApprovalSettings")
def an_inherited_name_is_a_project(service: Service) -> None:
    """The name of something that every object has identifies a project."""

    def make(find: Any) -> Any:
        def found(reference: str) -> Any:
            first = next(iter(service.identities.projects.values()), None)
            return first if reference == INHERITED else find(reference)

        return found

    around(service.identities, "find_project", make)


def intents_read_as(service: Service, read: Callable[[str], bool]) -> None:
    """Let completions be served with the intents for which `read` holds."""

    def change(values: dict[str, Any]) -> dict[str, Any]:
        intent = values.get("intent")
        return {**values, "intent": "completion"} if isinstance(intent, str) and read(intent) else values

    parameters(service, "POST /code_suggestions/completions", change)


@fault("code-completion.request.intent.allows-no-other")
def an_inherited_name_is_an_intent(service: Service) -> None:
    """A completion is served whose intent is the name of something that every object has."""
    intents_read_as(service, lambda intent: intent == INHERITED)


@fault("code-completion.request.intent.allows-no-other")
def an_intent_is_looked_for_anywhere(service: Service) -> None:
    """A completion is served if its intent contains an allowed one."""
    intents_read_as(service, lambda intent: "completion" in intent)
