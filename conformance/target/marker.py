"""Marks a world while a run uses it, so that no other run uses it at the same time.

The mark is a variable of the world's project; servers of this kind have these, but they are not part of the contract.
If a service refuses it, a file on this machine replaces it.
"""

from __future__ import annotations

import getpass
import json
import math
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from conformance.errors import TargetError, UsageError
from conformance.http.bodies import ABSENT
from conformance.http.client import Client, TargetGoneError
from conformance.target.machine import file_for, read_json, write_privately

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.http.exchange import Exchange
    from conformance.target.profile import Profile

KEY = "CONFORMANCE_RUN"
_BEAT_SECONDS = 60
#: How long a call is repeated when a run ends: a mark that stays is taken over later, and the operator is waiting.
_LAST_WAIT_SECONDS = 10.0
#: How long a read may lag behind a write, how often that is looked at, and by which factor what was seen is exceeded.
_LONGEST_LAG_SECONDS, _PAUSE_SECONDS, _MARGIN = 10.0, 0.1, 1.5
#: How long a mark counts as in use after its last update.
_STALE = timedelta(minutes=10)


def operator() -> str:
    """Return the user and the machine of this run, as `somebody on build-7`."""
    return " on ".join(filter(None, (_user(), socket.gethostname())))


def _user() -> str | None:
    with suppress(KeyError, OSError):  # some containers know no name of their user
        return getpass.getuser()
    return None


@dataclass
class Marker:
    """The mark of one run on one world."""

    profile: Profile
    """The profile of the world."""
    run: str
    _since: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    _ended: threading.Event = field(default_factory=threading.Event)
    _renewing: threading.Lock = field(default_factory=threading.Lock)
    _is_on_target: bool = False

    @property
    def _variables(self) -> str | None:
        number = self.profile.value("project")
        return f"/projects/{number}/variables" if number and "maintainer" in self.profile.actors else None

    @property
    def _file(self) -> Path:
        """The file that replaces the mark when the target refuses it."""
        return file_for("marks", self.profile.base_url, self._name.replace(" ", "-"))

    def claim(self) -> str | None:
        """Mark the world until `release`; return a message when the mark of an ended run was taken over.

        Raise TargetError when another run uses it.
        """
        with self._client() as client:
            found, taken_over = self._put(client), None
            if found:
                if not _is_stale(found):
                    raise TargetError(
                        f"Another run uses {self._name} of this target: {_shown(found)}. Wait for it, or give this "
                        "run a world of its own (conformance provision --worlds N)."
                    )
                taken_over = f"A run that has ended left its mark on {self._name}: {_shown(found)}."
                self._remove(client, found["run"])
                if self._put(client):
                    raise TargetError(f"Another run has just begun to use {self._name} of this target.")
            self._require_fresh_reads(client)
        threading.Thread(target=self._beat, daemon=True, name="mark of the run").start()
        return taken_over

    def _require_fresh_reads(self, client: Client) -> None:
        """Raise TargetError when reads lag behind writes, as behind a cache: each test would see what was before.

        Once may be an accident, and a target that never shows what was changed may not change variables at all.
        """
        lag = self._lag(client) and self._lag(client)
        if lag:
            self._remove(client, self.run)
            raise TargetError(
                f"Reads of this target lag behind writes by {lag:.1f} s, as with a cache or a replica, and tests would "
                f"see the past. Write limits: {{settle_seconds: {math.ceil(lag * _MARGIN)}}} into the profile."
            )

    def _lag(self, client: Client) -> float:
        """Return for how many seconds a read does not show what was written; 0 also where it never does."""
        probe, begun, lag = uuid4().hex, time.monotonic(), 0.0
        if not self._is_on_target or not self._update(client, probe=probe).is_success:
            return 0.0
        while (found := self._read(client)).get("run") == self.run and found.get("probe") != probe:
            lag = time.monotonic() - begun
            if lag > _LONGEST_LAG_SECONDS:
                return 0.0
            time.sleep(_PAUSE_SECONDS)
        return lag

    def _update(self, client: Client, **more: str) -> Exchange:
        return self._send(client, "PUT", f"{self._variables}/{KEY}", value=self._say(**more))

    def release(self) -> None:
        """Remove the mark, if it still belongs to this run and can be removed."""
        self._ended.set()
        with self._renewing:
            pass  # a renewal that is under way would bring the file back
        with suppress(TargetGoneError, OSError), self._client() as client:
            client.retries.call_seconds = min(client.retries.call_seconds, _LAST_WAIT_SECONDS)
            self._remove(client, self.run)

    @property
    def process(self) -> int | None:
        """The process of the run, if it still runs on this machine."""
        with suppress(TargetGoneError), self._client() as client:
            found = self._read(client) or read_json(self._file)
            if found.get("run") == self.run and _is_here(found) and _is_alive(found["pid"]):
                return int(found["pid"])
        return None

    @property
    def _name(self) -> str:
        project = self.profile.first("project")
        return f"project {project.get('id')}" if project is not None else "the world"

    def _client(self) -> Client:
        client = Client(self.profile.client_settings(1, run=self.run), beside=True)
        client.test = "mark of the run"
        return client

    def _say(self, **more: str) -> str:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        known = {"run": self.run, "host": socket.gethostname(), "pid": os.getpid(), "since": self._since, "beat": now}
        return json.dumps({**known, **_numbering(), **({"who": user} if (user := _user()) else {}), **more})

    def _put(self, client: Client) -> Mapping[str, Any]:
        """Set the mark if there is none; return another run's mark, or nothing when the mark now is ours."""
        if self._variables is not None:
            self._send(client, "POST", self._variables, key=KEY, value=self._say())
            found = self._read(client)
            if found:
                self._is_on_target = found["run"] == self.run
                return {} if self._is_on_target else found
        return {} if write_privately(self._file, self._say(), only_new=True) else {"run": "?", **read_json(self._file)}

    def _remove(self, client: Client, run: str) -> None:
        """Remove the mark of a run, from the target and from this machine."""
        if self._read(client).get("run") == run:
            self._send(client, "DELETE", f"{self._variables}/{KEY}")
        if read_json(self._file).get("run", run) == run:
            self._file.unlink(missing_ok=True)

    def _beat(self) -> None:
        """Update the mark regularly, so that it stays in use."""
        while not self._ended.wait(_BEAT_SECONDS):
            # A lost update does no harm: the next one comes long before the mark counts as abandoned.
            with suppress(TargetGoneError, UsageError, OSError), self._client() as client:
                if self._is_on_target:
                    self._update(client)
                    continue
                with self._renewing:
                    if not self._ended.is_set():
                        write_privately(self._file, self._say())

    def _read(self, client: Client) -> Mapping[str, Any]:
        if self._variables is None:
            return {}
        with suppress(ValueError, RecursionError, TypeError, AttributeError, KeyError):
            answer = json.loads(self._send(client, "GET", f"{self._variables}/{KEY}").body)
            found = json.loads(answer["value"]) if answer.get("key") == KEY else {}
            return found if isinstance(found, dict) and "run" in found else {}
        return {}

    def _send(self, client: Client, method: str, path: str, **body: str) -> Exchange:
        actor = self.profile.actors["maintainer"]
        return client.send(actor, method, path, json_body=body or ABSENT)


def run_behind(mark: Any) -> str | None:
    """Return the run that set a mark, given its text; None when that run has ended, or the text is no mark."""
    try:
        found = json.loads(mark)
        return None if _is_stale(found) else _shown(found)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _is_stale(found: Mapping[str, Any]) -> bool:
    """Tell whether the run of a mark has ended without removing it."""
    if _is_here(found) and not _is_alive(found["pid"]):
        return True
    try:
        return datetime.now(UTC) - datetime.fromisoformat(str(found.get("beat"))) > _STALE
    except (ValueError, TypeError):
        return True


def _is_here(found: Mapping[str, Any]) -> bool:
    """Tell whether the process of a mark has its number on this machine: a container may only have the same name."""
    is_same = found.get("host") == socket.gethostname() and _numbering().items() <= found.items()
    return is_same and isinstance(found.get("pid"), int)


def _numbering() -> Mapping[str, str]:
    """Return what numbers processes here, each container its own; empty where the system does not say."""
    try:
        return {"numbering": str(Path("/proc/self/ns/pid").readlink())}
    except OSError:
        return {}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no process has a number like that
        return False
    except OSError:
        return True
    return True


def _shown(found: Mapping[str, Any]) -> str:
    who, since = found.get("who", "somebody"), found.get("since")
    return f"run {found.get('run')} of {who} on {found.get('host')}, since {since}, last heard of {found.get('beat')}"
