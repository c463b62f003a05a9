"""The guide names every call outside of the specification by which a world is provisioned."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from conformance.contract import Contract
from conformance.contract.folders import HOME
from conformance.contract.versions import Version
from selftest.conftest import VERSION
from selftest.target.bench import Bench

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

NAMED = re.compile(r"`((?:GET|POST|PUT|DELETE) /[^`]+)`")


def plain(call: str) -> str:
    """Return a call without the names of what its path holds."""
    return re.sub(r":\w+|\{\w+\}", ":", call)


def test_the_guide_names_the_calls_that_make_a_world() -> None:
    bench, seen = Bench(), set[str]()

    def note(route: Route, _: Request, response: Response) -> Response:
        seen.add(plain(route.key))
        return response

    bench.service.transformers.append(note)
    bench.provision()
    specified = {plain(f"{one.method} {one.path}") for one in Contract.load().operations(Version.parse(VERSION))}
    named = {plain(call) for call in NAMED.findall((HOME / "docs" / "provisioning.md").read_text(encoding="utf-8"))}
    assert seen
    assert sorted(seen - specified - named) == []
