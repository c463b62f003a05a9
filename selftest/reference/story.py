"""The story that shows foreign faults: a sequence of calls to a service, and the responses."""

from __future__ import annotations

import gzip
import json
import re
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx

from conformance.reference.server import ask
from selftest.conftest import NO_AUTHORITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.proof.matrix import MovedClock
    from conformance.reference import Service

_MOMENT = re.compile(r"\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z")
_FEBRUARY = re.compile(r"-02-30")


def unpacked(content: bytes) -> bytes:
    """Decompress a file, or say that its end is missing; return anything else unchanged."""
    try:
        return gzip.decompress(content)
    except gzip.BadGzipFile:
        return content
    except EOFError:
        return b"a file without its end"


class ToldOtherwiseError(Exception):
    """A service answers differently from a healthy one."""


class Story:
    """A sequence of calls to a service; `told` are the responses.

    Given the responses of a healthy service, it ends at the first difference.
    """

    def __init__(
        self, service: Service, client: httpx.Client, clock: MovedClock, healthy: Sequence[str] | None = None
    ) -> None:
        self.world, self.client, self.service, self.clock = service.world, client, service, clock
        self.told: list[str] = []
        self._healthy = healthy

    def remember(self, answer: str) -> None:
        """Remember a response; raise ToldOtherwiseError if a healthy service gave another one."""
        place = len(self.told)
        self.told.append(answer)
        if self._healthy is not None and self._healthy[place : place + 1] != [answer]:
            raise ToldOtherwiseError(answer)

    def call(self, actor: str, method: str, path: str, body: Any = None, *, token: str | None = None) -> Any:
        """Send one call, with the token of an actor or another one, and remember the response."""
        sent = token if token is not None else self.world.actors[actor].token if actor else ""
        status, headers, content = self._ask(method, path, body, sent)
        content = unpacked(content)
        text = content.decode(errors="replace")  # a response that is compressed twice is no text
        if not _FEBRUARY.search(text):
            text = _MOMENT.sub("MOMENT", text)
        text = re.sub(r'"created":(\d{10})\b', '"created":SECONDS', text)
        name = f"{headers.get('content-disposition', '')} {headers.get('content-type', '')}"
        self.remember(f"{actor} {method} {path} {body or ''} -> {status} {name} {text}")
        try:
            return json.loads(content)
        except ValueError:
            return None

    def _ask(self, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Mapping[str, str], bytes]:
        """Send one call without a connection, which would take most of the time."""
        headers = {"accept-encoding": "gzip"} | ({"private-token": token} if token else {})
        place, _, query = path.partition("?")
        content = b"" if body is None else json.dumps(body, ensure_ascii=method == "PUT").encode()
        headers |= {"content-type": "application/json"} if content else {}
        return ask(self.service, method, f"/api/v4{place}", query, headers, content)

    def read(self, path: str) -> Any:
        """Return what an owner reads; the response is remembered only if it is a refusal."""
        status, _, content = self._ask("GET", path, token=self.world.actors["owner"].token)
        if status != HTTPStatus.OK:
            self.remember(f"{path}: {status}")
        return json.loads(content)

    def at_once(self, *calls: tuple[str, str, str, Any]) -> None:
        """Send calls concurrently; their responses are not remembered, because any call may come first."""

        together = threading.Barrier(len(calls))

        def send(actor: str, method: str, path: str, body: Any) -> None:
            headers = {"private-token": self.world.actors[actor].token}
            with httpx.Client(base_url=self.client.base_url, trust_env=False, verify=NO_AUTHORITIES) as own:
                own.get("/version")  # connect before all threads start
                together.wait(10)
                own.request(method, path, json=body, headers=headers)

        threads = [threading.Thread(target=send, args=each) for each in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def until_finished(self, path: str) -> None:
        """Advance the clock until no export of a group is running."""
        while any(one["status"] == 0 for one in self.read(path)):
            self.clock.skip(self.service.choices.export_delay_seconds)

    def count(self, path: str) -> None:
        """Remember how many entries a list has, or which values an object has."""
        found = self.read(path)
        if isinstance(found, dict) and "approved_by" in found:
            found = found["approved_by"]
        values = list(found.values()) if isinstance(found, dict) else len(found)
        self.remember(f"{path}: {values}")
