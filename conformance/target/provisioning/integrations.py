"""Finds out by trying which integrations a target takes, and which parameters each of them has."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.target.provisioning.blueprint import data_file
from conformance.target.provisioning.calls import RefusedError
from conformance.target.readings import flat

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from conformance.target.provisioning.calls import Answer, Calls

_CHAT_APP = "chat_app_integration"
_NO_SUCH = "conformance-no-such-integration"
_FEWEST, _MOST = 3, 9
#: How long what is only accepted may take until it shows, and how long is waited between two looks.
_DONE_WITHIN_SECONDS, _PAUSE_SECONDS = 3.0, 0.1
_ON, _OFF = "true", "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """An integration that a target may have; see integrations.yaml."""

    slug: str
    needs: Mapping[str, Any]
    nature: str | None = None
    active: bool = False
    secrets: Sequence[str] = ()
    texts: Sequence[str] = ()
    flags: Sequence[str] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    events: Sequence[str] = ()

    @property
    def optional(self) -> dict[str, Any]:
        """What it need not be given: texts that are found nowhere else, numbers and choices."""
        texts = {name: f"{self.slug}-{name.replace('_', '-')}-31" for name in self.texts}
        texts |= {name: f"https://{self.slug}.example.com/api" for name in self.texts if name.endswith(("url", "uri"))}
        hidden = {name: f"conformance-{name}-33" for name in self.secrets if name not in self.needs}
        return texts | dict(self.numbers) | dict(self.choices) | hidden


@cache
def catalogue() -> tuple[Kind, ...]:
    """Return the kinds that are tried."""
    return tuple(_kind(slug, dict(entry)) for slug, entry in data_file("integrations.yaml")["kinds"].items())


def _kind(slug: str, entry: dict[str, Any]) -> Kind:
    texts = [*entry.pop("texts", ()), *entry.pop("more_texts", ())]
    return Kind(slug=slug, nature=entry.pop("is", None), texts=texts, **entry)


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries kinds of integrations on one project, which is used for nothing else."""

    calls: Calls
    token: str
    """Of somebody who maintains the project."""
    path: str
    """Of the project's integrations."""

    @classmethod
    def on(cls, calls: Calls, token: str, project: int) -> Trial:
        """Return a trial on a project, under the newest name that integrations have on the target."""
        newer, older = (f"/projects/{project}/{name}" for name in ("integrations", "services"))
        return cls(calls, token, newer if calls.get(token, newer).is_served else older)

    def described(self, kind: Kind) -> dict[str, Any] | None:
        """
        Try a kind, and describe it as the profile does; None where the target does not know it.

        Raise RefusedError where it is refused in another way than one that no target knows: then it may be there.
        """
        put = self._put(kind, {})
        if not put.is_served:
            return self._unserved(kind, put)
        switches, before = (*kind.flags, *kind.events), self._shown(kind)
        on = self._shown_after(kind, {**kind.optional, **dict.fromkeys(switches, True)}, active=True)
        off = self._shown_after(kind, dict.fromkeys(switches, False), active=True)
        # What is not active may be shown no longer.
        is_kept_active = self._shown_after(kind, {}, active=False).get("active") == _ON
        self.calls.remove(self.token, f"{self.path}/{kind.slug}")
        has = {name for name, value in kind.optional.items() if on.get(name) == str(value) or name in kind.secrets}
        # What shows the text of another one is there as well: that, too, may be the very fault.
        has |= {name for name in kind.texts if on.get(name) in {kind.optional[other] for other in kind.texts}}
        # What can be switched on is there, though it stays on: that may be the very fault that a run is to find.
        has |= {name for name in switches if on.get(name) == _ON and _OFF in (off.get(name), before.get(name))}
        return _entry(kind, has, switchable=on.get("active") == _ON and not is_kept_active)

    def _unserved(self, kind: Kind, refused: Answer) -> dict[str, Any] | None:
        """Describe the chat app, where the target knows it and lets it be installed in its own pages only."""
        unknown = self.calls.put(self.token, f"{self.path}/{_NO_SUCH}", kind.needs)
        is_known = refused.status != unknown.status or refused.is_broken
        if kind.nature == _CHAT_APP:
            is_known = refused.status is not None and (is_known or refused.status == HTTPStatus.UNPROCESSABLE_ENTITY)
            return _entry(kind, set(), switchable=False) if is_known else None
        if is_known:
            raise RefusedError(f"PUT {self.path}/{kind.slug}: {refused}")
        return None

    def _put(self, kind: Kind, settings: Mapping[str, Any]) -> Answer:
        """Set an integration up; again while that is in the way of another one, of those that are tried beside it."""
        give_up = time.monotonic() + _DONE_WITHIN_SECONDS
        while True:
            answer = self.calls.put(self.token, f"{self.path}/{kind.slug}", {**kind.needs, **settings})
            if answer.status != HTTPStatus.CONFLICT or time.monotonic() >= give_up:
                return answer
            time.sleep(_PAUSE_SECONDS)

    def _shown_after(self, kind: Kind, settings: Mapping[str, Any], *, active: bool) -> dict[str, str]:
        """
        Set some parameters, or those that are taken one by one where they are refused together.

        Return all that are shown as texts: in which form a service shows them is open. What was only accepted is given
        time to show.
        """
        tried = {**settings, "active": active}
        answer = self._put(kind, tried)
        if not answer.is_served:
            tried = {name: value for name, value in tried.items() if self._put(kind, {name: value}).is_served}
            # What is left out of a call may go back to its default: only one call shows them all.
            answer = self._put(kind, tried)
        wanted = {name: _text(value) for name, value in tried.items() if name not in kind.secrets}
        give_up = time.monotonic() + (_DONE_WITHIN_SECONDS if answer.status == HTTPStatus.ACCEPTED else 0)
        while not wanted.items() <= (shown := self._shown(kind)).items() and time.monotonic() < give_up:
            time.sleep(_PAUSE_SECONDS)
        return shown

    def _shown(self, kind: Kind) -> dict[str, str]:
        """Return what is shown by itself and, where that leaves something out, in the list of those that are active."""
        alone = self.calls.get(self.token, f"{self.path}/{kind.slug}").entry
        listed: Mapping[str, Any] = {}
        with suppress(RefusedError):
            entries = self.calls.walk(self.token, self.path)
            listed = next((entry for entry in entries if entry.get("slug") == kind.slug), {})
        return {name: _text(value) for name, value in (flat(listed) | flat(alone)).items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def described_by(trial: Trial, kinds: Iterable[Kind]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Try kinds; return the descriptions of what the target has, and how it refused what it may have, by slug."""
    found: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    for kind in kinds:
        try:
            described = trial.described(kind)
        except RefusedError as error:
            refused[kind.slug] = str(error)
            continue
        if described is not None:
            found[kind.slug] = described
    return found, refused


def _entry(kind: Kind, has: set[str], *, switchable: bool) -> dict[str, Any]:
    switch = ["active"] if switchable else []
    optional = [name for name in (*kind.optional, *kind.flags) if name in has]
    texts = [name for name in kind.texts if name in has]
    entry: dict[str, Any] = {
        "slug": kind.slug,
        "settings": {**kind.needs, **dict.fromkeys(switch, True)},
        "required": list(kind.needs),
        "parameters": [*kind.needs, *optional, *switch],
        "never_shown": [name for name in kind.secrets if name in {*kind.needs, *has}],
        "events": [name for name in kind.events if name in has],
    }
    if texts:
        entry |= {"distinctive_name": texts[0], "distinctive_value": kind.optional[texts[0]]}
    return entry


def fixtures_from(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """
    Return the fixtures that integrations make, from the description of each by its slug.

    The list has as few as together have all parameters and events that any of them has, and one more whose name begins
    with that of another. The kinds that are asked for by names of their own come from what the list does not have, as
    far as there is something.
    """
    usable = {kind.slug: found[kind.slug] for kind in catalogue() if kind.slug in found and kind.nature != _CHAT_APP}
    listed = _covering(usable)
    beginnings = tuple(f"{one}-" for one in listed)
    listed += [slug for slug in usable if slug not in listed and slug.startswith(beginnings)][:1]
    fixtures: dict[str, Any] = {"integrations": [usable[slug] for slug in listed]} if listed else {}
    for kind in sorted(catalogue(), key=lambda kind: kind.slug in listed):
        if kind.nature is not None and kind.slug in found and kind.nature not in fixtures:
            fixtures[kind.nature] = found[kind.slug]
    by_token = [entry for entry in usable.values() if "token" in entry["required"]]
    if by_token:
        fixtures.setdefault("token_integration", by_token[0])
    switchable = fixtures.get("switchable_integration")
    if switchable and "active" not in switchable["parameters"]:
        del fixtures["switchable_integration"]
    return fixtures


#: By feature, the flag of the events that a target need not have on any integration.
_EVENTS_OF_SOME = {"group_mention_events": "group_mentions_events", "incident_events": "incidents_events"}


def features_from(found: Mapping[str, dict[str, Any]], refused: Container[str] = ()) -> dict[str, bool]:
    """
    Return the features that show in the description of each kind by its slug, or in that there is none.

    Nothing is said of those that `unclear` names.
    """
    there = {kind.nature for kind in catalogue() if kind.slug in found or kind.slug in refused}
    features = {kind.nature: False for kind in catalogue() if kind.nature and kind.nature not in there}
    events = {event for entry in found.values() for event in entry["events"]}
    features |= {feature: event in events for feature, event in _EVENTS_OF_SOME.items()} if found else {}
    # The chat app is there once somebody has installed it, which no call does.
    return {**features, _CHAT_APP: False}


def unclear(found: Mapping[str, dict[str, Any]], refused: Mapping[str, str]) -> dict[str, str]:
    """
    Return why it is not clear whether the target has a sort of integration, by its fixture.

    Its kinds are there, or were refused as if they were, and do not do what it takes: that may be a fault, so it is for
    the operator to say whether there is none.
    """
    fixtures, why = fixtures_from(found), {}
    for kind in catalogue():
        if kind.nature in (None, _CHAT_APP) or kind.nature in fixtures:
            continue
        if kind.slug in refused:
            why[str(kind.nature)] = refused[kind.slug]
        elif kind.slug in found:
            why[str(kind.nature)] = f"{kind.slug} is taken, and `active` shows no effect"
    return why


def _covering(found: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the slugs of some that have together what all have: those that add most first."""
    offered = {slug: {*entry["parameters"], *entry["events"]} for slug, entry in found.items()}
    chosen: list[str] = []
    covered: set[str] = set()
    while len(chosen) < min(_MOST, len(offered)):
        left: Iterable[str] = [slug for slug in offered if slug not in chosen]
        best = max(left, key=lambda slug: len(offered[slug] - covered))
        if not offered[best] - covered and len(chosen) >= _FEWEST:
            break
        chosen.append(best)
        covered |= offered[best]
    return chosen
