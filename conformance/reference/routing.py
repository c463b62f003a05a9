"""The routes of the service: what each area declares in its table, and how a path finds its route."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from conformance.reference.errors import NoRouteError, WrongMethodError
from conformance.reference.http import Match, Route

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.reference.versions import Version

__all__ = ["PREFIX", "Match", "Route", "Routes"]

PREFIX = "/api/v4"
_PREFIX_SEGMENTS = PREFIX.split("/")


class _Node:
    """One segment of the tree of paths."""

    __slots__ = ("absent", "literals", "names", "parameter", "routes")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.routes: dict[str, Route] = {}  # by method
        self.absent: set[str] = set()  # methods that other versions have here
        self.names: tuple[str, ...] = ()  # of the parameters on the way here


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
