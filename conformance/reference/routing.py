"""The routes of the service: what each area declares in its table, and how a path finds its route."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from conformance.reference.errors import NoRouteError, WrongMethodError
from conformance.reference.identity import Kind, Role
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.reference.http import Request, Response

PREFIX = "/api/v4"
_PREFIX_SEGMENTS = PREFIX.split("/")
_FIRST = SUPPORTED_VERSIONS.first

Handler = Callable[["Request"], "Response"]


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
    introduced: Version = _FIRST
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


class _Node:
    """One segment of the tree of paths."""

    __slots__ = ("absent", "literals", "names", "parameter", "routes")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.routes: dict[str, Route] = {}  # by method
        self.absent: set[str] = set()  # methods that other versions have here
        self.names: tuple[str, ...] = ()  # of the parameters on the way here


@dataclass(frozen=True, slots=True)
class Match:
    """A route and the decoded path parameters of one request."""

    route: Route
    path: dict[str, str]


class Routes:
    """The route table of a service. It may be changed while the service runs."""

    def __init__(self, routes: Iterable[Route], version: Version) -> None:
        self._version = version
        self._root = _Node()
        self._outside = _Node()
        self._by_key: dict[str, Route] = {}
        for route in routes:
            if route.key in self._by_key:
                raise ValueError(f"two routes for {route.key}")
            self._add(route)

    def __iter__(self) -> Iterator[Route]:
        """Iterate over the routes that exist at the service's version."""
        return iter([route for route in self._by_key.values() if route.exists_at(self._version)])

    def get(self, key: str) -> Route:
        """Return the route of an operation such as "GET /user". Raise KeyError when there is none."""
        return self._by_key[key]

    def has(self, key: str) -> bool:
        """Say whether the service has an operation such as "GET /user" at its version."""
        route = self._by_key.get(key)
        return route is not None and route.exists_at(self._version)

    def change(self, key: str, **changes: object) -> Route:
        """Replace fields of one route, for example `handler` or `least_role`; return the route as it was."""
        before = self._by_key[key]
        self._add(replace(before, **changes))  # type: ignore[arg-type] # names and types are the caller's business
        return before

    def put(self, route: Route) -> None:
        """Put back a route that was changed, or add one."""
        self._add(route)

    def find(self, method: str, raw_path: bytes) -> Match:
        """Find the route of a request by its undecoded path.

        Raise NoRouteError when this version has no such path, WrongMethodError when it has other methods.
        """
        segments = raw_path.decode("latin-1").split("/")
        if segments[:3] == _PREFIX_SEGMENTS:
            node, values = self._descend(self._root, segments[3:])
        else:
            node, values = self._descend(self._outside, segments[1:])
        route = node.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            if method in node.absent or not node.routes:
                raise NoRouteError
            raise WrongMethodError(tuple(node.routes))
        return Match(route, dict(zip(node.names, values, strict=True)))

    def _descend(self, node: _Node, segments: list[str]) -> tuple[_Node, list[str]]:
        values: list[str] = []
        for segment in segments:
            child = node.literals.get(segment)
            if child is None:
                child = node.parameter
                if child is None or not segment:
                    raise NoRouteError
                values.append(_decoded(segment))
            node = child
        return node, values

    def _add(self, route: Route) -> None:
        self._by_key[route.key] = route
        node, names = self._root if route.prefixed else self._outside, []
        for segment in route.path.split("/")[1:]:
            if not segment.startswith(":"):
                node = node.literals.setdefault(segment, _Node())
                continue
            names.append(segment[1:])
            if node.parameter is None:
                node.parameter = _Node()
            node = node.parameter
        if route.exists_at(self._version):
            node.routes[route.method] = route
            node.absent.discard(route.method)
        else:
            node.routes.pop(route.method, None)
            node.absent.add(route.method)
        if node.names and node.names != tuple(names):
            raise ValueError(f"{route.path} names its parameters unlike its neighbours: {node.names}")
        node.names = tuple(names)


def _decoded(segment: str) -> str:
    if "%" not in segment and segment.isascii():
        return segment
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoRouteError from error
