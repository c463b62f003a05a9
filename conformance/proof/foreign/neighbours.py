"""Values beside the right one: cut, with more behind them, of somebody else, at the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.integration_catalogue import CATALOGUE
from conformance.reference.areas.merge_request_approvals import ApprovalRefusedError
from conformance.reference.http import Response, created

if TYPE_CHECKING:
    from conformance.reference import Service

_DIMENSION = "value x neighbour of the right value"
_ENABLED = "POST /code_suggestions/enabled"


def _sha(service: Service, is_fine: Any) -> None:
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: str | None) -> None:
        if sha is None or not is_fine(sha, service.repositories.head_of(merge_request)):
            require(merge_request, sha)


@foreign(_DIMENSION, "Errors: 409")
def shortened_shas_match(service: Service) -> None:
    """A sha of which only the beginning is sent approves; it differs from the HEAD and is a conflict."""
    _sha(service, lambda sha, head: len(sha) >= 7 and head.startswith(sha))


@foreign(_DIMENSION, "Errors: 409")
def shas_with_more_behind_match(service: Service) -> None:
    """A sha with more digits behind it approves; it differs from the HEAD and is a conflict."""
    _sha(service, lambda sha, head: sha.startswith(head))


@foreign(_DIMENSION, "Errors: 409")
def shas_of_other_merge_requests_match(service: Service) -> None:
    """The HEAD of another merge request approves this one; it differs from its HEAD and is a conflict."""
    heads = [service.repositories.head_of(one) for one in service.repositories.merge_requests.values()]
    _sha(service, lambda sha, _: sha in heads)


@foreign(_DIMENSION, "Errors: 409")
def shas_that_end_alike_match(service: Service) -> None:
    """A sha that differs from the HEAD in its first digit alone approves; it is a conflict."""
    _sha(service, lambda sha, head: len(sha) == len(head) and sha[1:] == head[1:])


def _password(service: Service, is_fine: Any) -> None:
    @instead(service.merge_request_approvals, "password_matches")
    def _(matches: Any, caller: Any, password: str | None) -> bool:
        return matches(caller, password) or is_fine(caller, password)


@foreign(_DIMENSION, "Authentication: a password for approving")
def empty_passwords_match(service: Service) -> None:
    """An empty password approves where the caller's own is required."""
    _password(service, lambda _, password: password is not None and not password.strip())


@foreign(_DIMENSION, "Authentication: a password for approving")
def passwords_of_others_match(service: Service) -> None:
    """The password of another user approves where the caller's own is required."""
    _password(service, lambda _, password: password in {user.password for user in service.identities.users.values()})


@foreign(_DIMENSION, "Authentication: a password for approving")
def cut_passwords_match(service: Service) -> None:
    """The beginning of the caller's password approves where the whole is required."""
    _password(service, lambda caller, password: bool(password) and caller.password.startswith(password))


@foreign(_DIMENSION, "Authentication: a password for approving")
def passwords_in_other_case_match(service: Service) -> None:
    """The caller's password in other case approves."""
    _password(service, lambda caller, password: (password or "").lower() == caller.password.lower())


def _token(service: Service, meant: Any) -> None:
    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = text(request)
        tokens = service.identities.tokens
        if not sent or sent in tokens:
            return sent
        return next((value for value in tokens if meant(sent, value)), sent)


@foreign(_DIMENSION, "Authentication: access token")
def tokens_in_other_case_are_taken(service: Service) -> None:
    """A token in other case is taken for the one that was given out."""
    _token(service, lambda sent, value: sent.lower() == value.lower())


@foreign(_DIMENSION, "Authentication: access token")
def cut_tokens_are_taken(service: Service) -> None:
    """A token without its last sign is taken for the whole."""
    _token(service, lambda sent, value: sent == value[:-1])


@foreign(_DIMENSION, "Authentication: access token")
def tokens_with_more_behind_are_taken(service: Service) -> None:
    """A token with more behind it is taken for the one that was given out."""
    _token(service, lambda sent, value: sent.startswith(value))


@foreign(_DIMENSION, "Common conventions: id")
def ids_wrap_around(service: Service) -> None:
    """A number beyond 32 bits names the project that is left when they are cut off."""

    @instead(service.identities, "find_project")
    def _(find: Any, reference: str) -> Any:
        if reference.isdigit() and int(reference) >= 2**32:
            reference = str(int(reference) % 2**32)
        return find(reference)


@foreign(_DIMENSION, "Common conventions: path")
def paths_are_read_by_their_beginning(service: Service) -> None:
    """A path that goes on behind that of a project names the project."""

    @instead(service.identities, "find_project")
    def _(find: Any, reference: str) -> Any:
        known = find(reference)
        if known is not None or "/" not in reference:
            return known
        return next((p for p in service.identities.projects.values() if reference.startswith(p.full_path)), None)


@foreign(_DIMENSION, "Common conventions: path")
def groups_are_found_by_their_last_part(service: Service) -> None:
    """The last part of a path alone names a group that lies in another one."""

    @instead(service.identities, "find_group")
    def _(find: Any, reference: str) -> Any:
        known = find(reference)
        if known is not None or reference.isdigit():
            return known
        return next((group for group in service.identities.groups.values() if group.path == reference), None)


@foreign(_DIMENSION, "Job token scope: POST")
def targets_that_do_not_exist_are_added(service: Service) -> None:
    """A project that does not exist is answered to have been added to an allowlist."""

    @handling(service, "POST /projects/:id/job_token_scope/allowlist")
    def _(handler: Any, request: Any) -> Any:
        number = request.parameters.integer("target_project_id")
        if number > max(service.identities.projects):
            return created({"source_project_id": request.project.id, "target_project_id": number})
        return handler(request)


@foreign(_DIMENSION, "Integrations: slugs")
def slugs_are_read_by_their_beginning(service: Service) -> None:
    """A slug that no integration has is taken for the integration with which it begins."""

    @instead(service.integrations, "kind")
    def _(kind: Any, slug: str) -> Any:
        begins = next((known for known in sorted(CATALOGUE, key=len, reverse=True) if slug.startswith(known)), slug)
        return kind(begins)


@foreign(_DIMENSION, "Code completion: the enabled check")
def the_check_reads_the_beginning_of_a_path(service: Service) -> None:
    """The check answers for a project that does not exist when its path goes on behind that of one that does."""

    @handling(service, _ENABLED)
    def _(handler: Any, request: Any) -> Any:
        path = request.parameters.optional_string("project_path") or ""
        known = service.identities.projects.values()
        if any(path.startswith(p.full_path) and path != p.full_path for p in known):
            return Response()
        return handler(request)


@foreign(_DIMENSION, "Code completion: the enabled check")
def blank_paths_are_disabled(service: Service) -> None:
    """The check of an empty path answers that completions are disabled there; an empty path is not found."""

    @handling(service, _ENABLED)
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_string("project_path") == "":
            return Response(403)
        return handler(request)


@foreign(_DIMENSION, "Merge request approvals: approve")
def a_wrong_sha_counts_once_the_right_one_was_sent(service: Service) -> None:
    """Whoever approved with the right sha before approves with a wrong one afterwards."""
    known: set[tuple[int, int]] = set()

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        key = caller.id, merge_request.id
        right = sha == service.repositories.head_of(merge_request)
        approve(merge_request, caller, None if key in known else sha, password)
        if right:
            known.add(key)


@foreign(_DIMENSION, "Merge request approvals: iid")
def iids_beyond_the_last_mean_the_last(service: Service) -> None:
    """An iid beyond those of a project names its newest merge request."""

    @instead(service.merge_request_approval_rules, "merge_request")
    def _(find: Any, project: Any, iid: int) -> Any:
        last = max(
            (number for (owner, number) in service.repositories.merge_requests if owner == project.id), default=0
        )
        return find(project, min(iid, last) if last else iid)


@foreign(_DIMENSION, "Code completion: intent")
def intents_in_other_case_are_taken(service: Service) -> None:
    """An intent in capitals is completed; only two words are allowed, and these in small letters."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        intent = parameters.optional_string("intent")
        if intent and intent != intent.lower():
            parameters._values = {**parameters._values, "intent": intent.lower()}  # as sent
        return read(parameters)


@foreign("caller x value", "Authentication: a password for approving")
def no_password_is_asked_for_with_a_sha(service: Service) -> None:
    """Whoever sends the right sha approves without the password that the project requires."""

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        try:
            approve(merge_request, caller, sha, password)
        except ApprovalRefusedError:
            if sha != service.repositories.head_of(merge_request):
                raise
            approve(merge_request, caller, sha, caller.password)
