"""Requests, responses and pagination, as handlers see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import orjson

from conformance.reference.choices import ErrorShape, Order, OutOfRange
from conformance.reference.errors import (
    ApiError,
    InvalidError,
    NotFoundError,
    RejectedError,
    ThrottledError,
)
from conformance.reference.identity import Group, Kind, Project, Role, User
from conformance.reference.parameters import Parameters, Text, read_body, read_query
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.reference.choices import Choices
    from conformance.reference.core import Core, Named
    from conformance.reference.identity import Subject

    AreaT = TypeVar("AreaT", bound=Named)

T = TypeVar("T")

_JSON = "application/json"
_NO_BODY_METHODS = frozenset({"GET", "HEAD"})
_PAGING = ("page=", "per_page=", "cursor=", "private_token=", "access_token=")
_LONGEST_SURE_ID = 18  # digits that are certainly a 64-bit number
_SAFE_IN_QUERY = "%=+-._~[]:,/"
_EMPTY: Mapping[str, object] = {}


@dataclass(slots=True)
class Response:
    """What is sent back. `content` is JSON still as Python values, so that it can be looked at and changed.

    Exactly one of `content` (with `has_content`), `raw` and `chunks` is sent; none of them means no body.
    """

    status: int = 200
    content: object = None
    has_content: bool = False
    raw: bytes = b""
    chunks: tuple[bytes, ...] = ()
    media_type: str = _JSON
    headers: dict[str, str] = field(default_factory=dict)


class Listing(Response):
    """A list whose entries can be written without being made: `content` is made when somebody looks at it.

    `present` makes the value of an item, `write` the JSON text of that very value.
    """

    __slots__ = ("_content", "_unmade")

    def __init__(self, items: Sequence[T], present: Callable[[T], object], write: Callable[[T], bytes]) -> None:
        super().__init__(has_content=True)
        self._unmade: tuple[Sequence[T], Callable[[T], object], Callable[[T], bytes]] | None = items, present, write

    @property
    def content(self) -> object:
        """The list; whoever asks for it may change it, and what it was made from no longer counts."""
        if self._unmade is not None:
            items, present, _ = self._unmade
            self.content = [present(item) for item in items]
        return self._content

    @content.setter
    def content(self, content: object) -> None:
        self._content, self._unmade = content, None

    def text(self) -> bytes | None:
        """Return the list as JSON text, or None when somebody has looked at it."""
        if self._unmade is None:
            return None
        items, _, write = self._unmade
        return b"[%b]" % b",".join([write(item) for item in items])


def ok(content: object, status: int = 200) -> Response:
    """Answer with a JSON body."""
    return Response(status, content, has_content=True)


def created(content: object) -> Response:
    """Answer 201 with a JSON body, where the specification states that status."""
    return Response(201, content, has_content=True)


def no_content() -> Response:
    """Answer 204, which has no body."""
    return Response(204)


def file(content: bytes, name: str) -> Response:
    """Answer 200 with a file to be saved under that name (ASCII)."""
    disposition = f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}"
    return Response(
        raw=content,
        media_type="application/octet-stream",
        headers={"content-disposition": disposition},
    )


Handler = Callable[["Request"], Response]


@dataclass(frozen=True)
class Route:
    """One operation: how it is reached, who may call it, when it exists and who answers it.

    `path` is the template as the specification writes it, below the prefix, e.g. "/projects/:id/approvals".
    `subject` says what `:id` names; the caller must be able to see it and hold `least_role` in it.
    `paginated` is the first version with pagination, or None for a list that is never paged.
    `alias_of` is the template of the newer name of the same operation.
    `anonymous` routes need no token and have no caller; paths that are not `prefixed` lie outside /api/v4.
    """

    method: str
    path: str
    handler: Handler = field(repr=False)
    subject: Kind | None = None
    least_role: Role = Role.NONE
    admin_only: bool = False
    introduced: Version = SUPPORTED_VERSIONS.first
    removed: Version | None = None
    paginated: Version | None = None
    alias_of: str | None = None
    takes_bearer: bool = False  # whatever the choices say
    takes_query: bool = False  # parameters of a writing call may be in the query, whatever the choices say
    max_body_bytes: int | None = None  # None: as the choices say
    anonymous: bool = False
    prefixed: bool = True

    @property
    def key(self) -> str:
        """The operation's name: method and path template."""
        return f"{self.method} {self.path}"

    def exists_at(self, version: Version) -> bool:
        """Say whether the service has this operation at that version."""
        return self.introduced <= version and (self.removed is None or version < self.removed)


@dataclass(frozen=True, slots=True)
class Match:
    """A route and the decoded path parameters of one request."""

    route: Route
    path: dict[str, str]


class Request:
    """One request whose route is known, with its caller and subject once access was granted."""

    __slots__ = (
        "_caller",
        "_parameters",
        "_subject",
        "body",
        "form",
        "headers",
        "method",
        "path",
        "query",
        "raw_path",
        "route",
        "service",
    )

    def __init__(self, service: Core, method: str, match: Match, scope: Mapping[str, object]) -> None:
        """Hold a request as the server handed it over; `scope` is that of ASGI."""
        self.service = service
        self.method = method
        self.route: Route = match.route
        self.path = match.path
        self.raw_path: bytes = scope["raw_path"]  # type: ignore[assignment] # ASGI gives bytes
        self.query: bytes = scope["query_string"]  # type: ignore[assignment] # ASGI gives bytes
        self.headers: dict[bytes, bytes] = dict(scope["headers"])  # type: ignore[call-overload] # ASGI gives pairs
        self.body = b""
        self.form: Mapping[str, object] | None = None  # fields of a multipart body
        self._parameters: Parameters | None = None
        self._caller: User | None = None
        self._subject: Subject | None = None

    def admit(self, caller: User, subject: Subject | None) -> None:
        """Note who calls, and which project or group the path names."""
        self._caller = caller
        self._subject = subject

    def header(self, name: str) -> str:
        """Return a header by its lower-case name, or an empty string."""
        return self.headers.get(name.encode(), b"").decode("latin-1").strip()

    @property
    def caller(self) -> User:
        """The authenticated user."""
        if self._caller is None:
            raise LookupError("the caller is known only after access was granted")
        return self._caller

    @property
    def caller_name(self) -> str:
        """The username of the caller, or an empty string when nobody was authenticated."""
        return self._caller.username if self._caller else ""

    @property
    def project(self) -> Project:
        """The project that `:id` names; for routes whose subject is a project."""
        if not isinstance(self._subject, Project):
            raise TypeError(f"{self.route.key} is not declared with a project as its subject")
        return self._subject

    @property
    def group(self) -> Group:
        """The group that `:id` names; for routes whose subject is a group."""
        if not isinstance(self._subject, Group):
            raise TypeError(f"{self.route.key} is not declared with a group as its subject")
        return self._subject

    @property
    def choices(self) -> Choices:
        """The choices of the service."""
        return self.service.choices

    def area(self, kind: type[AreaT]) -> AreaT:
        """Return the service's behaviour of that class; it is looked up anew on every call."""
        return self.service.area(kind)

    @property
    def parameters(self) -> Parameters:
        """The parameters of query and body. Raise InvalidError when they cannot be read."""
        if self._parameters is None:
            self._parameters = Parameters(self._merged(), self.choices)
        return self._parameters

    def link_base(self) -> str:
        """Return the address of this request up to where parameters of pagination can be appended."""
        host, path = self.header("host"), self.raw_path.decode("latin-1")
        return f"http://{host}{path}?{_without_page(self.query) if self.query else ''}"

    def path_id(self, name: str) -> int:
        """Read a path parameter that must be an integer. Raise InvalidError otherwise."""
        text = self.path[name]
        if text.isascii() and text.isdigit() and len(text) <= _LONGEST_SURE_ID:
            return int(text)
        return Parameters({name: Text(text)}, self.choices).integer(name)

    def collection(
        self, items: Sequence[T], present: Callable[[T], object], write: Callable[[T], bytes] | None = None
    ) -> Response:
        """Answer with a list: one page of it where the route is paginated at this version, else all of it.

        Only the entries of the page are presented, or written at once if `write` knows their JSON text.
        """
        if self.choices.list_order is Order.REVERSED:
            items = items[::-1]
        paged = self.choices.unmarked_lists_are_paged
        if self.route.paginated is not None:
            paged = self.route.paginated <= self.service.version
        if not paged:
            return _list(items, present, write)
        page = Page.of(self.parameters, self.choices)
        return page.response(self, items, present, write)

    def _merged(self) -> Mapping[str, object]:
        choices = self.choices
        reading = self.method in _NO_BODY_METHODS
        body: Mapping[str, object] = _EMPTY
        if self.form is not None:
            body = self.form
        elif self.body and not reading:
            body = read_body(self.body, self.header("content-type"), choices)
        query: Mapping[str, object] = _EMPTY
        if self.query and (reading or choices.parameters_in_query or self.route.takes_query):
            query = read_query(self.query)
        return {**query, **body} if query and body else body or query


@dataclass(frozen=True, slots=True)
class Page:
    """The part of a list that was asked for.

    Specification: Endpoints marked as paginated use `page` and `per_page`; the rest is chosen.
    """

    number: int
    size: int

    @classmethod
    def of(cls, parameters: Parameters, choices: Choices) -> Page:
        """Read `page` and `per_page`. Raise InvalidError for what is no number, or refused by the choices."""
        number = _at_least_one("page", parameters.optional_integer("page"), 1, choices)
        size = _at_least_one("per_page", parameters.optional_integer("per_page"), choices.default_per_page, choices)
        if size > choices.max_per_page and choices.per_page_above_maximum is OutOfRange.REFUSE:
            raise InvalidError("per_page does not have a valid value", parameter="per_page")
        return cls(number, min(size, choices.max_per_page))

    def response(
        self,
        request: Request,
        items: Sequence[T],
        present: Callable[[T], object],
        write: Callable[[T], bytes] | None = None,
    ) -> Response:
        """Answer with this page of the items, and the headers that lead to the others."""
        choices = request.choices
        start = (self.number - 1) * self.size
        total = len(items)
        if start and start >= total and choices.page_past_the_end is OutOfRange.REFUSE:
            raise NotFoundError("404 Page Not Found")
        answer = _list(items[start : start + self.size], present, write)
        if choices.pagination_headers:
            answer.headers = self.headers(request, total)
        return answer

    def headers(self, request: Request, total: int) -> dict[str, str]:
        """Return the pagination headers for a list of `total` entries."""
        last = max(1, -(-total // self.size))
        following = self.number + 1 if self.number < last else None
        previous = self.number - 1 if 1 < self.number <= last + 1 else None
        headers = {
            "x-page": str(self.number),
            "x-per-page": str(self.size),
            "x-next-page": str(following or ""),
            "x-prev-page": str(previous or ""),
        }
        start, end = f"<{request.link_base()}page=", f"&per_page={self.size}>; rel="
        links = [f'{start}{previous}{end}"prev"'] if previous else []
        if following:
            links.append(f'{start}{following}{end}"next"')
        links.append(f'{start}1{end}"first"')
        if request.choices.pagination_totals:
            headers["x-total"] = str(total)
            headers["x-total-pages"] = str(last)
            links.append(f'{start}{last}{end}"last"')
        headers["link"] = ", ".join(links)
        return headers


def _list(items: Sequence[T], present: Callable[[T], object], write: Callable[[T], bytes] | None) -> Response:
    return Listing(items, present, write) if write else ok([present(item) for item in items])


def _without_page(query: bytes) -> str:
    """Return the start of a query string that keeps what was asked for besides the page."""
    kept = [part for part in query.decode("latin-1").split("&") if not part.startswith(_PAGING)]
    return "".join(f"{quote(part, safe=_SAFE_IN_QUERY)}&" for part in kept if part)


def _at_least_one(name: str, value: int | None, default: int, choices: Choices) -> int:
    if value is None:
        return default
    if value < 1 and choices.page_below_one is OutOfRange.REFUSE:
        raise InvalidError(f"{name} does not have a valid value", parameter=name)
    return value if value > 0 else default


def error_response(error: ApiError, choices: Choices) -> Response:
    """Turn a refusal into a response: the status by its kind, the body by the choices."""
    status = error.status(choices)
    answer = _error_body(error, status, choices.error_shape)
    answer.headers.update(error.headers(choices))
    return answer


def _error_body(error: ApiError, status: int, shape: ErrorShape) -> Response:
    text = error.message or f"{status}"
    if shape is ErrorShape.EMPTY:
        return Response(status)
    if shape is ErrorShape.TEXT:
        return Response(status, raw=text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")
    if shape is ErrorShape.PROBLEM:
        problem = {"type": "about:blank", "title": text, "status": status, "detail": text}
        return Response(status, problem, has_content=True, media_type="application/problem+json")
    if shape is ErrorShape.ERROR or isinstance(error, InvalidError):
        return ok({"error": text}, status)
    message: object = text
    if isinstance(error, RejectedError) and error.parameter:
        message = {error.parameter: [text]}
    elif isinstance(error, ThrottledError):
        message = {"error": text}
    return ok({"message": message}, status)


def encode(answer: Response, choices: Choices) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return the body of a response as bytes, and its headers as ASGI wants them."""
    body = answer.raw
    if answer.has_content:
        reverse = choices.key_order is Order.REVERSED
        text = answer.text() if isinstance(answer, Listing) and not reverse else None
        if text is None:
            text = orjson.dumps(reversed_keys(answer.content) if reverse else answer.content)
        body = text
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    if answer.media_type and (body or answer.chunks):
        headers.append((b"content-type", answer.media_type.encode()))
    if not answer.chunks and (body or answer.status != 204):  # noqa: PLR2004 - 204 is itself
        headers.append((b"content-length", b"%d" % len(body)))
    return body, headers


def reversed_keys(value: object) -> object:
    """Write the keys of all objects in a JSON value the other way round."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [reversed_keys(item) for item in value]
    return value
