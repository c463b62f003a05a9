"""A service of another author, for which no test was written, is conformant."""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.http.client import Client
from conformance.http.settings import ClientSettings
from conformance.target.provisioning import Order, provision
from conformance.target.provisioning.calls import Calls, by_http
from conformance.target.provisioning.files import Made, Secrets
from conformance.target.provisioning.profiles import by_value, profile_data
from selftest.reads import report_of
from selftest.second_server.app import App
from selftest.second_server.by_hand import complete
from selftest.second_server.choices import CHOICES
from selftest.second_server.web import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ADMINISTRATOR = "x-keeper-of-the-keys-2026"
#: Completions per minute of a user: with the 60 of the text, a run would have to wait for the next minute.
COMPLETIONS = 600
#: How much faster exports and resets of approvals are, because a run waits for them about fifty times.
PACE = 30
#: Choices that no run draws, with the reason.
NOT_DRAWN = {
    "zero-pages": "a client may begin with page 1",
    "close": "legal, but a run would take twice as long",
    "throttle": "legal, but a run would wait for more than two minutes",
}
#: What the profile of a server with such a choice says.
FEATURES = {"no-choices": {"completions_without_choices": True}}
#: What determines the drawn choices instead of the commit: SECOND_SERVER=TEXT repeats those of a failure.
DRAWN_BY = os.environ.get("SECOND_SERVER", "")


@dataclass(frozen=True)
class Kind:
    """How a server behaves where the text is silent."""

    style: str = "a"
    cap: int = 4
    choices: frozenset[str] = frozenset()
    drawn_by: str = ""

    @classmethod
    def drawn(cls, text: str) -> Kind:
        chance = random.Random(text)  # noqa: S311 - a sample, and no secret
        choices = frozenset(name for name in CHOICES if name not in NOT_DRAWN and chance.random() < 0.5)
        return cls(chance.choice("ab"), chance.choice((2, 4, 20)), choices, text)


@contextmanager
def served(kind: Kind) -> Iterator[Server]:
    def made(base_url: str) -> App:
        return App(base_url, ADMINISTRATOR, kind.style, kind.cap, kind.choices, COMPLETIONS, PACE)

    with Server(0, made) as server:
        serving = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()


def profile_of(server: Server) -> dict[str, Any]:
    """Provision a server as an operator does, and return its profile."""
    order = Order(base_url=server.base_url, administrator=ADMINISTRATOR)
    with Client(ClientSettings(base_url=server.base_url)) as client:
        done = provision(order, Calls(by_http(client), Made()), Secrets())
    assert done.refused == {}
    profile = profile_data(order, done, by_value, version="auto")
    complete(profile, ADMINISTRATOR)
    for choice in server.app.choices:
        profile["features"] |= FEATURES.get(choice, {})
    return profile


def assert_conformant(kind: Kind, conformance: Callable[..., Any], folder: Path) -> None:
    with served(kind) as server:
        (folder / "target.yaml").write_text(json.dumps(profile_of(server)), encoding="utf-8")
        few = ("--max-examples", "3", "--corpus", "none")
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", *few)
    report = report_of(folder / "out")
    unverified = {
        row["id"]: (row["verdict"], row["detail"], row["failures"][:1])
        for row in report["requirements"]
        if row["verdict"] in ("failed", "inconclusive", "not tested", "unstable") and row["level"] == "must"
    }
    assert unverified == {}, kind
    assert outcome.code == 0, (kind, outcome.text[-2000:])


def test_a_service_of_another_author_is_conformant(conformance: Callable[..., Any], tmp_path: Path) -> None:
    assert_conformant(Kind(), conformance, tmp_path)


def test_a_service_of_another_author_is_conformant_whatever_it_chooses(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607 - git
    assert_conformant(Kind.drawn(DRAWN_BY or asked.stdout.strip() or "none"), conformance, tmp_path)


def test_rules_that_are_numbered_by_place_leave_nothing_unverified(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    """The rules of two projects then have the same numbers, until one has more of them."""
    assert_conformant(Kind(choices=frozenset({"numbers-by-place"})), conformance, tmp_path)
