"""What all operations share: tokens, ids and paths, JSON, pages, and the repository tree of the version table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson

from conformance.proof.foreign.changes import last_to_come, with_parameters, without_parameters
from conformance.proof.foreign.dimensions import (
    AGAIN,
    AT_ONCE,
    CALLER_AND_FORM,
    FORM_SENT,
    MOMENT_OR_ADDRESS,
    NEIGHBOUR,
    PAGES,
    VERSIONS,
)
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST, MERGE_REQUEST_RULES, SCOPE
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.errors import StatedError, not_found
from conformance.reference.http import Response

if TYPE_CHECKING:
    from conformance.reference import Service

_LISTS = (
    f"GET {ALLOWLIST}",
    f"GET {GROUPS_ALLOWLIST}",
    "GET /groups/:id/approval_rules",
    "GET /projects/:id/approval_rules",
    f"GET {MERGE_REQUEST_RULES}",
)
_LARGEST_OFFSET_PAGE = 100_000


def _taking_tokens(service: Service, meant: Any) -> None:
    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = text(request)
        tokens = service.identities.tokens
        if not sent or sent in tokens:
            return sent
        return next((value for value in tokens if meant(sent, value)), sent)


# -- tokens ------------------------------------------------------------------------------------------------------------


@foreign(NEIGHBOUR, "Authentication: access token")
def tokens_may_have_something_in_front(service: Service) -> None:
    """A token with additional characters before it is accepted."""

    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = str(text(request))
        return next((known for known in service.identities.tokens if sent.endswith(known)), sent)


@foreign(NEIGHBOUR, "Authentication: access token")
def tokens_in_other_case_are_taken(service: Service) -> None:
    """A token in another case is accepted."""
    _taking_tokens(service, lambda sent, value: sent.lower() == value.lower())


@foreign(NEIGHBOUR, "Authentication: access token")
def cut_tokens_are_taken(service: Service) -> None:
    """A token without its last character is accepted."""
    _taking_tokens(service, lambda sent, value: sent == value[:-1])


@foreign(NEIGHBOUR, "Authentication: access token")
def tokens_with_more_behind_are_taken(service: Service) -> None:
    """A token with additional characters after it is accepted."""
    _taking_tokens(service, lambda sent, value: sent.startswith(value))


# Every call needs its own caller, who must be allowed to make it.
@foreign(AGAIN, "Authentication: 1")
def pages_are_remembered_for_whoever_comes(service: Service) -> None:
    """A page of a list that somebody has read is served to everybody who requests the same URL."""
    seen: dict[tuple[bytes, bytes], Any] = {}

    def remember(_: Any, request: Any, answer: Any) -> Any:
        key = request.raw_path, request.query
        if request.method != "GET" or b"page=" not in request.query:
            return answer
        if is_served(answer):
            seen[key] = answer
            return answer
        return seen.get(key, answer)

    service.transformers.append(remember)


@foreign(CALLER_AND_FORM, "Authentication 2")
def tokens_are_compared_in_any_case(service: Service) -> None:
    """Tokens are compared case-insensitively."""

    @instead(service.access, "token_text")
    def _(read: Any, request: Any) -> str:
        sent: str = read(request)
        return next((token for token in service.identities.tokens if token.lower() == sent.lower()), sent)


@foreign(AT_ONCE, "Authentication: role requirements, two callers")
def who_calls_right_before_a_maintainer_counts_as_one(service: Service) -> None:
    """The caller is stored in a shared object: a reader of a scope is treated as a caller who came a moment later."""
    key = f"GET {SCOPE}"
    last = last_to_come(service, key)

    @instead(service.access, "authenticate")
    def _(authenticate: Any, request: Any) -> Any:
        caller = authenticate(request)
        return authenticate(last()) if request.route.key == key else caller


# -- ids and paths -----------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Common conventions: :id is an integer or a URL-encoded path")
def projects_of_subgroups_have_no_path(service: Service) -> None:
    """A path is parsed as one group and a project: a project in a subgroup is not found."""

    @instead(service.access, "visible_project")
    def _(visible: Any, caller: Any, reference: str) -> Any:
        if reference.count("/") > 1:
            raise not_found("Project")
        return visible(caller, reference)


@foreign(NEIGHBOUR, "Common conventions: id")
def ids_wrap_around(service: Service) -> None:
    """A number beyond 32 bits identifies the project that remains after truncation."""

    @instead(service.identities, "find_project")
    def _(find: Any, reference: str) -> Any:
        if reference.isdigit() and int(reference) >= 2**32:
            reference = str(int(reference) % 2**32)
        return find(reference)


@foreign(NEIGHBOUR, "Common conventions: path")
def paths_are_read_by_their_beginning(service: Service) -> None:
    """A path that continues after the path of a project identifies that project."""

    @instead(service.identities, "find_project")
    def _(find: Any, reference: str) -> Any:
        known = find(reference)
        if known is not None or "/" not in reference:
            return known
        return next((p for p in service.identities.projects.values() if reference.startswith(p.full_path)), None)


@foreign(NEIGHBOUR, "Common conventions: path")
def groups_are_found_by_their_last_part(service: Service) -> None:
    """The last part of a path alone identifies a subgroup."""

    @instead(service.identities, "find_group")
    def _(find: Any, reference: str) -> Any:
        known = find(reference)
        if known is not None or reference.isdigit():
            return known
        return next((group for group in service.identities.groups.values() if group.path == reference), None)


@foreign(CALLER_AND_FORM, "Common conventions: :id is a URL-encoded path")
def paths_of_projects_are_decoded_twice(service: Service) -> None:
    """The router and the handler both decode the path: a text that is not the path of a project identifies one."""

    @instead(service.access, "visible_project")
    def _(visible: Any, caller: Any, reference: str) -> Any:
        return visible(caller, unquote(reference))


# -- requests and answers ----------------------------------------------------------------------------------------------


# Requests are JSON, and the media type may state the encoding.
@foreign(FORM_SENT, "Conventions: requests are JSON")
def json_with_a_charset_is_not_read(service: Service) -> None:
    """The content type is compared as a whole: with `application/json; charset=utf-8` the body is ignored."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if "charset" in request.header("content-type").lower():
            request.body = b""
        admit(request)


@foreign(FORM_SENT, "Conventions: requests are JSON")
def bodies_are_read_in_an_older_character_set(service: Service) -> None:
    """The bytes of a body are decoded as Latin-1: unescaped non-ASCII characters change."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.header("content-type").lower().startswith("application/json"):
            request.body = request.body.decode("latin-1").encode()
        admit(request)


# A response is complete JSON.
@foreign(NEIGHBOUR, "Requests and responses are JSON")
def answers_are_as_long_as_they_have_letters(service: Service) -> None:
    """The length of a response is counted in characters, so one with characters of two bytes is truncated."""

    def cut(_route: Any, _request: Any, answer: Any) -> Any:
        if not answer.has_content:
            return answer
        text = orjson.dumps(answer.content)
        length = len(text.decode())
        return answer if length == len(text) else Response(answer.status, raw=text[:length], headers=answer.headers)

    service.transformers.append(cut)


# -- pages -------------------------------------------------------------------------------------------------------------


# Each of the two parameters may be sent alone.
@foreign(PAGES, "Conventions: offset pagination, page and per_page")
def pages_have_their_usual_length_unless_a_page_is_named(service: Service) -> None:
    """If page is not sent, per_page is ignored."""

    @handling(service, *_LISTS)
    def _(handler: Any, request: Any) -> Any:
        if not request.parameters.given("page"):
            without_parameters(request, "per_page")
        return handler(request)


# The offset has 32 bits, and the page is multiplied before any check.
@foreign(PAGES, "Common conventions: page and per_page")
def a_page_far_behind_the_end_is_an_error(service: Service) -> None:
    """A page with a very large number is answered with a server error instead of an empty list or a refusal."""
    far = re.compile(rb"(?:^|&)page=(\d+)")

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        admit(request)
        number = far.search(request.query)
        if request.route.paginated and number and int(number[1]) > _LARGEST_OFFSET_PAGE:
            raise OverflowError("the offset is out of range")


@foreign(PAGES, "Common conventions: page and per_page")
def a_page_behind_the_last_one_is_the_last_one(service: Service) -> None:
    """A page of the allowed groups after the end is answered with the last page again."""

    @handling(service, f"GET {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer, asked = handler(request), request.parameters
        page, size = asked.optional_integer("page") or 1, asked.optional_integer("per_page") or 20
        last = max(1, -(-len(service.job_token_scope.groups(request.project)) // max(1, size)))
        if page <= last:
            return answer
        with_parameters(request, {"page": last})
        return handler(request)


# -- references --------------------------------------------------------------------------------------------------------


@foreign(MOMENT_OR_ADDRESS, "User reference: web_url")
def addresses_of_users_hold_blanks(service: Service) -> None:
    """The web_url of a user contains a space."""

    @instead(service.present, "user")
    def _(present: Any, user: Any) -> Any:
        return {**present(user), "web_url": f"{service.choices.web_url}/{user.name} x"}


# -- the repository tree -----------------------------------------------------------------------------------------------


@foreign(VERSIONS, "Versioning, row 17.7: the tree of a missing path")
def a_missing_path_is_empty_all_the_way_down(service: Service) -> None:
    """The tree of a missing path is refused, but with `recursive` it is an empty list as before."""

    @instead(service.sources, "tree")
    def _(tree: Any, project: Any, ref: Any, path: str, *, recursive: bool) -> list[Any]:
        try:
            return tree(project, ref, path, recursive=recursive)
        except StatedError:
            if recursive:
                return []
            raise


# A missing path is missing, however deep it is.
@foreign(VERSIONS, "Versioning: row 17.7")
def the_tree_of_a_deep_missing_path_is_empty(service: Service) -> None:
    """A missing folder is refused only at the top level of a repository; inside another folder it has an empty tree."""

    @instead(service.sources, "tree")
    def _(tree: Any, project: Any, ref: str | None, path: str, *, recursive: bool) -> Any:
        try:
            return tree(project, ref, path, recursive=recursive)
        except StatedError:
            if "/" in path.strip("/"):
                return []
            raise


# A path may be missing at any level.
@foreign(VERSIONS, "Versioning: 17.7, repository tree")
def a_path_that_is_missing_in_a_folder_is_an_empty_one(service: Service) -> None:
    """A path whose first part is missing answers 404; one inside an existing folder is an empty list as before."""

    @instead(service.sources, "tree")
    def _(tree: Any, project: Any, ref: Any, path: str, **more: Any) -> Any:
        try:
            return tree(project, ref, path, **more)
        except StatedError:
            outer = path.strip("/").rpartition("/")[0]
            if not outer:
                raise
            tree(project, ref, outer, **more)
            return []


# A folder is looked up by prefix.
@foreign(VERSIONS, "Versioning: 17.7, repository tree")
def the_beginning_of_a_name_is_a_path(service: Service) -> None:
    """A missing path that is a prefix of the name of a file or folder has an empty tree; any other one is refused."""

    @instead(service.sources, "tree")
    def _(tree: Any, project: Any, ref: Any, path: str, **more: Any) -> Any:
        try:
            return tree(project, ref, path, **more)
        except StatedError:
            if any(one.path.startswith(path.strip("/")) for one in tree(project, ref, "", recursive=True)):
                return []
            raise
