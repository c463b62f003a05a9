"""Calls that show what a target does not have, or does not let anybody do; they change nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from conformance.http.exchange import READING, Trouble
from conformance.target.ownership import UNUSED_ID
from conformance.target.preflight import answers_otherwise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.contract import Operation
    from conformance.http.client import Client
    from conformance.http.exchange import Exchange
    from conformance.target import Profile

#: Fixtures of the same kind: if the operation answers for one of them, it exists for all.
_ALIKE: Mapping[str, tuple[str, ...]] = {
    "project": ("project", "fuzz_project", "sibling_project"),
    "group": ("group", "fuzz_group", "sibling_group"),
}
#: Prefixes below which the whole API may be served by mistake.
OTHER_PREFIXES = ("", "/api", "/api/v3", "/api/v5")
#: How often a call is repeated that a gateway may have answered.
_PAGES = 3
#: A path below the prefix that no service has.
_OF_NO_SERVICE = f"/conformance-no-such-path/{UNUSED_ID}"
#: Names that do not exist.
_UNUSED: Mapping[str, str] = {"integration_slug": "conformance-no-such-integration"}


@dataclass(frozen=True, slots=True)
class Probes:
    """The calls by which a target is searched for operations and for bars in front of it."""

    profile: Profile
    client: Client

    def first_call(self, operation: Operation) -> Exchange | None:
        """Call a read correctly; call a write without its required input, or about something that does not exist.

        Return None when the profile lacks fixtures, or an actor who is served.
        """
        actor = next(iter(self.profile.known_actors(*operation.served)), None)
        names_all = operation.is_read or must_be_given(operation)
        path = self._path(operation, last_is_unused=not names_all)
        if path is None or actor is None:
            return None
        send = partial(self.client.send, actor, operation.method, path)
        return _once_sure(send if operation.is_read else partial(send, json_body={}))

    def learn_what_any_path_gets(self) -> None:
        """Call a path that no service has, so that the client knows a page, or a redirect, that any path gets.

        A page of maintenance that begins just now is none of these.
        """
        actor = next(iter(self.profile.actors.values()), None)
        ask = partial(self.client.send, actor, "GET", _OF_NO_SERVICE)
        look = _once_sure(ask).look
        # What everything gets stands in front of the service, and so does what comes once only.
        is_for_all = look is not None and not answers_otherwise(self.profile, self.client, look)
        if look is not None and not is_for_all and ask().look == look:
            self.client.anywhere.look = look

    def other_ways(self, operation: Operation, exchange: Exchange) -> Iterator[Exchange]:
        """Repeat a call in every other way that must be served: by others, by other paths, below other prefixes."""
        call = exchange.call
        # Perhaps only the administrator of the installation is meant, and everybody else gets 404.
        known = self.profile.known_actors(*operation.served, "admin")
        others = [actor for actor in known if actor != call.actor]
        paths = [call.path, *self._other_paths(operation, call.path)]
        who = [(actor, call.path) for actor in others] + [(call.actor, path) for path in paths[1:]]
        for actor, path in who:
            yield self.client.perform(replace(call, actor=actor, path=path))
        if operation.is_read:
            for prefix in OTHER_PREFIXES:
                yield self.client.send(call.actor, call.method, f"{self.profile.base_url}{prefix}{call.path}")
            token = call.actor.token if call.actor else ""
            bearing = self.client.send(None, call.method, call.path, headers={"Authorization": f"Bearer {token}"})
            if bearing.status != HTTPStatus.UNAUTHORIZED:  # which says nothing of the operation
                yield bearing

    def _other_paths(self, operation: Operation, path: str) -> Iterator[str]:
        """Yield the path of the same call by full path instead of number and, for a read, those of similar things."""
        owner = operation.owner
        kind, number = (owner.fixture if owner is not None else None) or "", path.split("/")[2:3]
        if kind not in _ALIKE:
            return
        head = path.split("/")[1]
        behind = path.split("/", 3)[3:]
        for name in _ALIKE[kind]:
            for entry in self.profile.fixtures.get(name, ())[:1]:
                is_same = [str(entry.get("id"))] == number
                named = [quote(str(entry.get("path")), safe="")] if entry.get("path") else []
                wanted = named if is_same else [str(entry.get("id"))] if _reaches_alike(operation) else []
                yield from ("/".join(["", head, one, *behind]) for one in wanted)

    def _path(self, operation: Operation, *, last_is_unused: bool) -> str | None:
        """Return the path of a call whose last named thing does not exist; None if unknown."""
        values: dict[str, object] = {}
        for number, parameter in enumerate(operation.path_parameters, start=1):
            fixture = "" if last_is_unused and number == len(operation.path_parameters) else parameter.fixture
            unused = _UNUSED.get(parameter.name, UNUSED_ID)
            values[parameter.name] = self.profile.value(fixture) if fixture else unused
        return None if None in values.values() else operation.path_with(values)

    def barred(self, answers: Sequence[Exchange]) -> set[str]:
        """Return the methods barred by something in front of the target: who must be served gets a page everywhere.

        `answers` are those of the first calls.
        """
        found = set()
        writes = [answer for answer in answers if answer.call.method not in READING]
        for method in {answer.call.method for answer in writes if _forbids_by_a_page(answer)}:
            own = [answer for answer in writes if answer.call.method == method]
            if all(map(_forbids_by_a_page, own)) and any(not answer.is_page for answer in answers):
                first = own[0].call
                kind, below = first.path.split("/")[1], first.path.split("/")[3:]
                elsewhere = replace(first, path="/".join(["", kind, str(UNUSED_ID), *below]))
                if _forbids_by_a_page(self.client.perform(elsewhere)):  # a service answers that it knows no such thing
                    found.add(method)
        return found


def _once_sure(send: Callable[[], Exchange]) -> Exchange:
    """Send a call again while a page may be a gateway's; if it is how the service says something, it comes again."""
    exchange = send()
    for _ in range(_PAGES if exchange.trouble is Trouble.GATEWAY else 0):
        exchange = send()
    return exchange


def short_of_scope(answers: Iterable[Exchange]) -> set[str]:
    """Return the actors whose tokens may only read: then nothing shows what the service would let them do."""
    by_actor: dict[str, list[bool]] = {}
    for answer in answers:
        if answer.call.actor is not None and answer.call.method not in READING:
            by_actor.setdefault(answer.call.actor.name, []).append(answer.lacks_scope)
    return {name for name, lacking in by_actor.items() if len(lacking) > 1 and all(lacking)}


def _forbids_by_a_page(exchange: Exchange) -> bool:
    return exchange.status == HTTPStatus.FORBIDDEN and exchange.is_page


def must_be_given(operation: Operation) -> bool:
    """Tell whether a write requires a body and its path names only fixtures, so that it fails without the body."""
    asks = any(entry.required for entry in operation.parameters if entry.place == "body")
    return asks and not operation.is_read and operation.is_named_by_fixtures


def _reaches_alike(operation: Operation) -> bool:
    """Tell whether a read names only a project or group, so that it works for any other as well."""
    return operation.is_read and operation.path.count("{") == 1
