"""Who calls, and which paths."""

from __future__ import annotations

import weakref
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.http.bodies import ABSENT
from conformance.http.exchange import READING
from conformance.suite.context import Run, current_run, current_test
from conformance.suite.exceptions import Violation, require_in
from conformance.suite.expectations.answers import Answer
from conformance.suite.expectations.listings import Listing, WholeListing
from conformance.suite.expectations.words import read_until
from conformance.suite.per_run import PerRun
from conformance.target import Actor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.contract import Version
    from conformance.http.exchange import Query
    from conformance.target import Fixture

#: A caller with a token that was issued to nobody.
NOBODY = Actor("wrong-token", "0000-no-such-token-0000")

#: Server errors that no gateway answers.
_BREAKING = (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.NOT_IMPLEMENTED)
_PAGES = frozenset({"page", "per_page"})
#: By actor: the paths with a full path in them that the actor was served once.
_READ_BY_PATH: PerRun[set[tuple[str, str]]] = PerRun(set)


class Path(str):
    """A path below /api/v4; `/` goes one step down: `Path("/projects/1") / "approvals"`."""

    __slots__ = ()

    def __truediv__(self, part: str | int) -> Path:
        """Go one or more steps down."""
        return Path(f"{self}/{part}")


def project_path(project: Fixture) -> Path:
    """Return the path of a project by its number."""
    return Path(f"/projects/{project.id}")


def group_path(group: Fixture) -> Path:
    """Return the path of a group by its number."""
    return Path(f"/groups/{group.id}")


class NamedPath(Path):
    """A path that names its project or group by the full path, and that can be read.

    A write that is refused here goes to the number: see `Caller.call`.
    """

    __slots__ = ("by_number", "requirement")

    by_number: Path
    """The same path with the number."""
    requirement: str
    """The requirement that the project or group is found by this path."""

    @classmethod
    def of(cls, path: str, by_number: Path, requirement: str) -> NamedPath:
        """Return a path with what is known of it."""
        named = cls(path)
        named.by_number, named.requirement = by_number, requirement
        return named

    def __truediv__(self, part: str | int) -> NamedPath:
        """Go one or more steps down."""
        return NamedPath.of(f"{self}/{part}", self.by_number / part, self.requirement)


def named_otherwise(path: Path, owner: Fixture, reader: Caller, *, read_at: str = "") -> Path:
    """Return a path with its project or group named by the full path, if that is read as well; otherwise unchanged.

    What cannot be read itself, such as a merge request, is read at a step below it.
    """
    kind = path.split("/")[1]
    start = f"/{kind}/"
    if not owner.get("path") or not f"{path}/".startswith(f"{start}{owner.id}/"):
        return path
    rest = path.removeprefix(f"{start}{owner.id}")
    named = NamedPath.of(f"{start}{owner.encoded_path}{rest}", path, _found_by_path(kind, owner))
    served = _READ_BY_PATH()
    if (reader.name, named) not in served and reader.get(named / read_at if read_at else named).is_served:
        served.add((reader.name, named))
    return named if (reader.name, named) in served else path


def _found_by_path(kind: str, owner: Fixture) -> str:
    """Return the requirement that a project or group is found by its full path."""
    is_nested = owner.encoded_path.count("%2F") > (kind == "projects")
    return f"conventions.{kind.removesuffix('s')}-id.encoded-{'subgroup-' if is_nested else ''}path"


#: The type of a JSON body as many clients write it. The charset changes nothing.
WITH_CHARSET = {"Content-Type": "application/json; charset=utf-8"}


class Caller:
    """An actor who calls the target."""

    def __init__(self, run: Run, actor: Actor | None) -> None:
        """Act as this actor; None calls without a token."""
        # A permanent reference to a caller, as Hypothesis has with each state machine, must not keep a whole run alive.
        self._run: Run = weakref.proxy(run)
        self.actor = actor

    @classmethod
    def named(cls, name: str) -> Caller:
        """Return an actor of the profile by name; raise NotTested when it does not have this one."""
        run = current_run()
        require_in(run.profile, name)
        return cls(run, run.profile.actors[name])

    @property
    def name(self) -> str:
        """The name of the actor."""
        return self.actor.name if self.actor else "anonymous"

    @property
    def target_version(self) -> Version | None:
        """Version of the target; None when it is unknown."""
        return self._run.profile.version

    def target_declares(self, feature: str) -> bool:
        """Tell whether the target says that it has a feature."""
        return self._run.profile.declares(feature)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        json: Any = ABSENT,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send any call; if a write is refused by a full path that can be read, send it by the number.

        If it is served there, this returns the answer to the number, and fails the requirement that a full path is as
        good as a number: what the test is about does not depend on the form of the path.
        """
        send = partial(self._sent, query=query, json=json, headers=headers)
        if not isinstance(path, NamedPath) or method in READING:
            return send(method, path)
        # Where reads lag behind writes, what was just made may not be found yet.
        answer = read_until(lambda: send(method, path), lambda found: not found.exchange.is_refusal)
        status = answer.exchange.status
        # A conflict may be with a call at the same time, which has ended when the next one is made.
        if status == HTTPStatus.CONFLICT or not (answer.exchange.is_refusal or status in _BREAKING):
            return answer
        by_number = send(method, path.by_number)
        if not by_number.is_served:
            return answer
        seen = f"status {status}, and {by_number.status} by the number"
        current_test().fail_in_passing(path.requirement, Violation("any 2xx", seen, answer.exchange))
        return by_number

    def _sent(
        self, method: str, path: str, *, query: Query | None, json: Any, headers: Mapping[str, str] | None
    ) -> Answer:
        self._run.require_allowed(method, f"{method} {path}")
        self._run.absences.require(method, path)
        known, age = self._run.known_reads, self._run.known_reads.age
        exchange = self._run.client.send(self.actor, method, path, query=query, json_body=json, headers=headers)
        known.keep(exchange, age)
        return Answer(exchange)

    def get(self, path: str, **query: str | int | bool | None) -> Answer:
        """Send a GET; without its page if the first one is refused and this version has no pages of this list."""
        answer = self.call("GET", path, query=query)
        is_first = bool(query.keys() & _PAGES) and query.get("page", 1) == 1  # a page behind the end may be refused
        if answer.exchange.is_refusal and is_first and self._has_no_pages_yet(path):
            return self.call("GET", path, query={name: query[name] for name in query.keys() - _PAGES})
        return answer

    def _has_no_pages_yet(self, path: str) -> bool:
        operation = self._run.validator.operation_of("GET", path)
        if operation is None or operation.paginated is None:
            return False
        return not any(parameter.name in _PAGES for parameter in operation.parameters)

    def look(self, path: str, **query: str | int | bool | None) -> Answer:
        """Read; repeat an earlier read only if somebody may have changed the result since."""
        known = self._run.known_reads
        exchange = known.of(self.actor, path, query)
        answer = self.get(path, **query) if exchange is None else Answer(exchange)
        known.looked(answer.exchange)
        return answer

    def post(self, path: str, body: Any = ABSENT) -> Answer:
        """Send a POST."""
        return self._write("POST", path, body)

    def put(self, path: str, body: Any = ABSENT) -> Answer:
        """Send a PUT."""
        return self._write("PUT", path, body)

    def patch(self, path: str, body: Any = ABSENT) -> Answer:
        """Send a PATCH."""
        return self._write("PATCH", path, body)

    def _write(self, method: str, path: str, body: Any) -> Answer:
        """Send a write: without a body if none is described, and with an empty object if all of it is optional.

        Requests are JSON, and an empty body is no JSON: a service may require the object, whatever it must contain.
        """
        if body is ABSENT:
            operation = self._run.validator.operation_of(method, path)
            body = ABSENT if operation is None or operation.body is None else {}
        return self.call(method, path, json=body)

    def delete(self, path: str) -> Answer:
        """Send a DELETE."""
        return self.call("DELETE", path)

    def delete_each(self, path: Path, names: Iterable[Any]) -> list[Answer]:
        """Delete several things below a path, on a slow target some at a time. Return the answers."""
        return self._run.each(lambda name: self.delete(path / name), [*names])

    def read(self, path: str) -> Any:
        """Return the content of a resource; inconclusive when it cannot be read."""
        return self.look(path).given_json()

    def download(self, path: str, **query: str | int | bool | None) -> Answer:
        """Fetch a file with its bytes as they were sent, following redirects; no other host sees the token."""
        self._run.absences.require("GET", path)
        return self.follow(Answer(self._run.client.send(self.actor, "GET", path, query=query, raw=True)))

    def follow(self, answer: Answer) -> Answer:
        """Return the answer that a redirect leads to, by the same method; return any other answer unchanged.

        A caller without a valid token is led to a page that asks for one: that is a refusal, and the page no answer.
        """
        if self.actor not in self._run.profile.actors.values():
            return answer
        return Answer(self._run.client.follow(answer.exchange))

    def list(self, path: str) -> Listing:
        """Read a paginated list page by page."""
        return Listing(self, path)

    def whole_list(self, path: str) -> Listing:
        """Read a list for which no pagination is stated, in one call."""
        return WholeListing(self, path)
