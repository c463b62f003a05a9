"""What several integrations have in common, in each of them: other tests try it fully with the first that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.integration_values import is_known_to_be_shown, must_not_show_another
from conformance.suite.arrange.integrations import (
    borrowed,
    every_integration,
    has,
    integrations_path,
    is_channel,
    set_up,
    shared_settings,
)
from conformance.suite.expectations import Caller, Path, left_to_others, verifies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.suite import Fixture

DEFAULT_CHANNEL = "channel"


@pytest.mark.calls_area("integrations")
def test_each_integration_shows_the_flags_and_channels_that_it_takes(
    maintainer: Caller, project: Fixture, integrations: tuple[Fixture, ...]
) -> None:
    """Twice, with other values: what is shown the second time was sent, whatever the integration has by default."""
    left_to_others()  # unless two integrations have something in common
    path = integrations_path(maintainer, project)
    for integration, flags, channels in with_what_others_have(integrations):
        with borrowed(maintainer, path, integration):
            for turn in (0, 1):
                switched = {name: (place + turn) % 2 == 0 for place, name in enumerate(flags)}
                named = {name: sent_to(name, turn) for name in channels}
                taken = what_is_taken(maintainer, path, integration, switched, named)
                for name in taken & switched.keys():
                    with verifies("integrations.parameters.event-flags.boolean", go_on=True):
                        must_not_show_another(maintainer, path, integration, (name, switched[name]), [])
                for name in taken & named.keys():
                    others = [text for other, text in named.items() if other != name]
                    others.append(sent_to(name, turn - 1))
                    if name == DEFAULT_CHANNEL:
                        with verifies("integrations.parameters.channel.text", go_on=True):
                            must_not_show_another(maintainer, path, integration, (name, named[name]), others)
                    else:
                        with verifies("integrations.parameters.event-channels.text", go_on=True):
                            must_not_show_another(maintainer, path, integration, (name, named[name]), others)


def sent_to(channel: str, turn: int) -> str:
    return f"conformance-{turn}-{channel}"


def with_what_others_have(integrations: Sequence[Fixture]) -> Iterator[tuple[Fixture, list[str], list[str]]]:
    """Yield the integrations with those of their flags and channels that one before them has as well."""
    known: set[str] = set()
    for integration in every_integration(integrations):
        own = {name for name in shared_settings() if has(integration, name)}
        again, known = sorted(own & known), known | own
        flags = [name for name in again if name in (integration.get("events") or ())]
        channels = [name for name in again if is_channel(name) and is_known_to_be_shown(integration, name)]
        if flags or channels:
            yield integration, flags, channels


def what_is_taken(
    caller: Caller, path: Path, integration: Fixture, flags: Mapping[str, bool], channels: Mapping[str, str]
) -> set[str]:
    """Set an integration up, and return which parameters it took; a service may refuse what a test made up."""
    for sent in ({**flags, **channels}, flags):
        if sent and set_up(caller, path, integration, **sent).is_served:
            return {*sent}
    return set()
