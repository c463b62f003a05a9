"""Small bugs of allowlists, of the limit, and of code completion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, meanwhile
from conformance.reference.errors import InvalidError, StatedError

if TYPE_CHECKING:
    from conformance.reference import Service

_SCOPE = "/projects/:id/job_token_scope"
_PROJECTS = f"POST {_SCOPE}/allowlist"
_GROUPS = f"POST {_SCOPE}/groups_allowlist"


@foreign("pages and totals", "Job token scope: groups_allowlist is paginated")
def pages_of_let_in_groups_overlap(service: Service) -> None:
    """Every page of the allowed groups begins with the last entry of the page before; no entry comes twice."""

    @handling(service, f"GET {_SCOPE}/groups_allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer, scopes = handler(request), service.job_token_scope
        page = request.parameters.optional_integer("page") or 1
        size = request.parameters.optional_integer("per_page") or 20
        if page > 1:
            start = (page - 1) * max(1, size - 1)
            entries = scopes.groups(request.project)[start : start + size]
            answer.content = [scopes.present_group(group) for group in entries]
        return answer


@foreign("numbers and texts that follow from the story", "Allowlist project entry: created_at, description")
def entries_are_described_as_their_namespace(service: Service) -> None:
    """The columns of project and namespace clash: description and created_at of an entry are those of its group."""

    @instead(service.present, "_limited_project")
    def _(limited: Any, project: Any, namespace: Any) -> Any:
        moment = service.present.timestamp(namespace.created_at)
        return {**limited(project, namespace), "description": namespace.description, "created_at": moment}


@foreign("write x everything that must stay", "Job token scope: POST")
def letting_in_is_mutual(service: Service) -> None:
    """Whoever lets a project in is let in by that project as well."""

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(target)
        service.job_token_scope.scopes[target.id] = replace(scope, projects=(*scope.projects, project.id))


@foreign("none, one or two values", "Job token scope: DELETE of an entry")
def removing_the_last_entry_opens_the_project(service: Service) -> None:
    """With the last project of an allowlist the limit goes; only PATCH changes it."""

    @instead(service.job_token_scope, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = service.job_token_scope.of(project)
        if not scope.projects:
            service.job_token_scope.scopes[project.id] = replace(scope, inbound_enabled=False)


@foreign("level x id of another level", "Job token scope: POST of a group")
def subgroups_are_let_in_as_their_top_group(service: Service) -> None:
    """Letting a subgroup in lets in the group around it."""

    @instead(service.job_token_scope, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, service.identities.lineage(target)[-1])


@foreign("write x everything that must stay", "Job token scope: DELETE of a group")
def removing_a_group_removes_its_subgroups(service: Service) -> None:
    """A group that goes from an allowlist takes the groups inside it with it."""

    @instead(service.job_token_scope, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope, known = service.job_token_scope.of(project), service.identities.groups
        kept = tuple(n for n in scope.groups if n not in known or known[n].parent_id != target.id)
        service.job_token_scope.scopes[project.id] = replace(scope, groups=kept)


def _written_back(service: Service, keys: tuple[str, ...]) -> None:
    """Let an operation change the row that it read before a moment passed."""
    scopes = service.job_token_scope
    meanwhile(service, keys, lambda: dict(scopes.scopes), lambda seen, request: scopes.scopes.update(seen))


@foreign("two write at once", "Job token scope: PATCH and POST")
def switching_the_limit_forgets_who_comes_meanwhile(service: Service) -> None:
    """Switching the limit writes the allowlist of before: whoever is let in at the same moment is lost."""
    _written_back(service, (f"PATCH {_SCOPE}",))


# -- code completion ---------------------------------------------------------------------------------------------------


@foreign("level x id of another level", "Code completion: enabled, 404")
def groups_pass_for_projects(service: Service) -> None:
    """The check with the path of a group answers 403, as if there were a project of that path."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if service.identities.find_group(path):
            raise StatedError(403, "403 Forbidden")
        check(caller, path)


@foreign("forms of what is sent", "Code completion: intent, stream")
def generations_cannot_be_streamed(service: Service) -> None:
    """A generation that is to be streamed is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.stream and wanted.intent == "generation":
            raise InvalidError("stream does not have a valid value")
        return wanted


@foreign("again, by another caller, after an undo", "Limits: POST /code_suggestions/completions, per user")
def the_limit_is_that_of_a_file(service: Service) -> None:
    """The requests of a user are counted by file name; the limit is that of the user."""
    last: list[str] = []

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        last[:] = [wanted.file_name]
        return wanted

    @instead(service.code_completion, "count")
    def _(count: Any, caller: Any) -> None:
        count(replace(caller, id=hash((caller.id, *last))))


@foreign("two write at once", "Job token scope: DELETE")
def two_removals_at_once_remove_one(service: Service) -> None:
    """Of two projects that go from an allowlist at the same moment one stays."""
    _written_back(service, (f"DELETE {_SCOPE}/allowlist/:target_project_id",))
