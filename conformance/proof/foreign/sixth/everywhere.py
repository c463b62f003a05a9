"""Faults that concern all areas: conventions, authentication and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import AGAIN, CALLER_AND_FORM, FORM_SENT, NEIGHBOUR, VERSIONS
from conformance.proof.foreign.paths import GROUPS_ALLOWLIST, INTEGRATIONS, MERGE_REQUEST_RULES, SERVICES
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.errors import NoRouteError, UnauthorizedError, UnsupportedMediaError
from conformance.reference.http import Response
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


# expects authentication.anonymous-is-refused
@foreign(AGAIN, "Authentication: anonymous after somebody else")
def answers_are_remembered_for_anybody(service: Service) -> None:
    """What was read once with a token is served from memory to callers without one, at the same address."""
    seen: dict[tuple[bytes, bytes], Any] = {}

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        try:
            admit(request)
        except UnauthorizedError:
            known = seen.get((request.raw_path, request.query))
            if request.method != "GET" or known is None or service.access.token_text(request):
                raise
            request.admit(*known)
        else:
            if request.method == "GET" and request._caller is not None:
                seen[request.raw_path, request.query] = request._caller, request._subject


# expects conventions.responses.content-type
@foreign(NEIGHBOUR, "Conventions: content type of empty lists")
def an_empty_list_is_plain_text(service: Service) -> None:
    """An empty list is sent as text/plain."""

    def transform(_route: Any, _request: Any, answer: Any) -> Any:
        if answer.has_content and answer.content == []:
            answer.media_type = "text/plain"
        return answer

    service.transformers.append(transform)


# expects conventions.responses.are-json
@foreign(NEIGHBOUR, "Conventions: characters beyond ASCII in answers")
def other_characters_are_not_utf_8(service: Service) -> None:
    """Characters beyond ASCII are written in Latin-1, so that the answer is no JSON."""

    def transform(_route: Any, _request: Any, answer: Any) -> Any:
        import orjson  # noqa: PLC0415

        if not answer.has_content:
            return answer
        text = orjson.dumps(answer.content).decode()
        if text.isascii():
            return answer
        raw = text.encode("latin-1", "replace")
        return Response(answer.status, raw=raw, headers=answer.headers)

    service.transformers.append(transform)


# expects conventions.requests.are-json
@foreign(FORM_SENT, "Conventions: content type with a charset")
def json_with_a_charset_is_refused(service: Service) -> None:
    """A JSON body whose content type names a charset is refused."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        admit(request)
        if request.body and "charset" in request.header("content-type"):
            raise UnsupportedMediaError


# expects authentication.private-token
@foreign(CALLER_AND_FORM, "Authentication: second token of a user")
def the_newest_token_alone_counts(service: Service) -> None:
    """Only the newest token of a user is taken."""

    @instead(service.access, "authenticate")
    def _(authenticate: Any, request: Any) -> Any:
        sent = service.access.token_text(request)
        token = service.identities.tokens.get(sent)
        newer = [one for one in service.identities.tokens.values() if token and one.user_id == token.user_id]
        if newer and newer[-1].value != sent:
            raise UnauthorizedError
        return authenticate(request)


# expects conventions.group-id.encoded-subgroup-path
@foreign(CALLER_AND_FORM, "Conventions: encoded paths with capital letters")
def capital_letters_in_paths_name_nothing(service: Service) -> None:
    """An encoded path of a group is looked up in small letters, so that one with capital letters is not found."""

    @instead(service.identities, "find_group")
    def _(find: Any, reference: str) -> Any:
        return None if reference != reference.lower() else find(reference)


# expects project-approval-rules.versions.usernames
@foreign(VERSIONS, "Versions: usernames of merge request rules", version="15.8")
def merge_requests_take_no_usernames_yet(service: Service) -> None:
    """At 15.8 merge request rules pass over usernames."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, *rest: Any) -> Any:
        from dataclasses import replace  # noqa: PLC0415

        return create(merge_request, replace(wanted, usernames=None), *rest)


# expects integrations.entry.vulnerability-events.enterprise
@foreign(VERSIONS, "Integration list entry: vulnerability_events", version="16.4")
def vulnerability_events_come_one_version_late(service: Service) -> None:
    """At 16.4 the list entries lack vulnerability_events."""

    @instead(service.integrations, "has_vulnerability_events")
    def _(_has: Any) -> bool:
        return False


# expects versions.integrations-renamed
@foreign(VERSIONS, "Versions: integrations renamed", version="14.4")
def the_new_name_only_lists(service: Service) -> None:
    """At 14.4 integrations can be listed under the new name, and set up and disabled under the old one alone."""
    for method in ("PUT", "DELETE"):
        service.routes.change(f"{method} {INTEGRATIONS}/:slug", introduced=Version(14, 5))


# expects merge-request-approvals.rules.pages
@foreign(VERSIONS, "Versions: pages of merge request rules", version="15.3")
def merge_request_rules_have_no_pages_yet(service: Service) -> None:
    """At 15.3 the rules of merge requests are not paginated."""
    service.routes.change(f"GET {MERGE_REQUEST_RULES}", paginated=None)


# expects job-token-scope.available
@foreign(VERSIONS, "Versions: allowlist of groups", version="16.1")
def groups_are_let_in_one_version_late(service: Service) -> None:
    """At 16.1 there is no allowlist of groups."""
    for method in ("GET", "POST"):
        service.routes.change(f"{method} {GROUPS_ALLOWLIST}", introduced=Version(16, 2))


# expects versions.integrations-renamed
@foreign(VERSIONS, "Versions: the former name of integrations", version="19.0")
def the_former_name_is_gone_at_the_end(service: Service) -> None:
    """At 19.0 the former name of integrations is gone for setting up."""

    @handling(service, f"PUT {SERVICES}/:slug")
    def _(_handler: Any, _request: Any) -> Any:
        raise NoRouteError
