"""Finds out, by trying them, which integrations a target supports, and which parameters each of them has."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.http.exchange import query_text
from conformance.target.provisioning.blueprint import data_file
from conformance.target.provisioning.calls import RefusedError
from conformance.target.readings import flat

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from conformance.target.provisioning.calls import Answer, Calls

_CHAT_APP = "chat_app_integration"
_INSTALLED = "installed_chat_app_integration"
_NO_SUCH = "conformance-no-such-integration"
_FEWEST, _MOST = 3, 9
#: How long a value that was accepted may take to appear, and the pause between two reads.
_DONE_WITHIN_SECONDS, _PAUSE_SECONDS = 3.0, 0.1
_ON, _OFF = "true", "false"
#: How many kinds may get no answer before it is assumed that the target hangs at all of them.
_MOST_UNANSWERED = 3


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
        """Optional parameters, with values: texts that occur nowhere else, numbers and choices."""
        texts = {name: f"{self.slug}-{name.replace('_', '-')}-31" for name in self.texts}
        texts |= {name: f"https://{self.slug}.example.com/api" for name in self.texts if name.endswith(("url", "uri"))}
        hidden = {name: f"conformance-{name}-33" for name in self.secrets if name not in self.needs}
        return texts | dict(self.numbers) | dict(self.choices) | hidden


@cache
def catalogue() -> tuple[Kind, ...]:
    """Return all kinds to try."""
    return tuple(_kind(slug, dict(entry)) for slug, entry in data_file("integrations.yaml")["kinds"].items())


def _kind(slug: str, entry: dict[str, Any]) -> Kind:
    texts = [*entry.pop("texts", ()), *entry.pop("more_texts", ())]
    return Kind(slug=slug, nature=entry.pop("is", None), texts=texts, **entry)


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries kinds of integrations on one project that is used for nothing else."""

    calls: Calls
    token: str
    """The token of a maintainer of the project."""
    path: str
    """The path of the project's integrations."""
    unanswered: list[str] = field(default_factory=list)
    """The slugs that got no answer; after some, no other one is tried."""

    @classmethod
    def on(cls, calls: Calls, token: str, project: int) -> Trial:
        """Return a trial on a project, with the newest path of integrations that the target knows."""
        newer, older = (f"/projects/{project}/{name}" for name in ("integrations", "services"))
        return cls(calls, token, newer if calls.get(token, newer).is_served else older)

    def described(self, kind: Kind) -> dict[str, Any] | None:
        """Try a kind and return its description for the profile; None when the target does not know it.

        Raise RefusedError when it is refused, but not like an unknown kind, because then it may exist.
        """
        if len(self.unanswered) >= _MOST_UNANSWERED:
            raise RefusedError(f"not tried, because {', '.join(self.unanswered[:_MOST_UNANSWERED])} got no answer")
        put = self._put(kind, {})
        if put.status is None:  # which is no refusal like that of an unknown kind, even if both are alike
            self.unanswered.append(kind.slug)
            raise RefusedError(f"PUT {self.path}/{kind.slug}: {put}")
        if not put.is_served:
            return self._described_with_more(kind, put)
        switches, before = (*kind.flags, *kind.events), self._shown(kind)
        on = self._shown_after(kind, {**kind.optional, **dict.fromkeys(switches, True)}, active=True)
        off = self._shown_after(kind, dict.fromkeys(switches, False), active=True)
        # A disabled integration may no longer be shown.
        is_kept_active = self._shown_after(kind, {}, active=False).get("active") == _ON
        self.calls.remove(self.token, f"{self.path}/{kind.slug}")
        has = {name for name, value in kind.optional.items() if on.get(name) == str(value) or name in kind.secrets}
        # A parameter with another one's text exists too: the mix-up may be a fault that a run should find.
        has |= {name for name in kind.texts if on.get(name) in {kind.optional[other] for other in kind.texts}}
        has |= {name for name, value in kind.needs.items() if on.get(name) == str(value)}
        # A flag that moves exists, even if it stays on or moves the wrong way, which a run should find.
        has |= {name for name in switches if {_ON, _OFF} <= {found.get(name) for found in (before, on, off)}}
        return _entry(kind, has, switchable=on.get("active") == _ON and not is_kept_active)

    def _described_with_more(self, kind: Kind, refused: Answer) -> dict[str, Any] | None:
        """Describe a kind of which the target requires one of its texts as well; raise RefusedError as above.

        A target may refuse incomplete settings with the status by which it refuses an unknown kind.
        """
        for name in () if kind.nature == _CHAT_APP else kind.texts:
            more = {name: kind.optional[name]}
            if self._put(kind, more).is_served:
                others = [other for other in kind.texts if other != name]
                return self.described(replace(kind, needs={**kind.needs, **more}, texts=others))
        return self._unserved(kind, refused)

    def _is_unknown(self, kind: Kind, refused: Answer) -> bool:
        """Tell whether a kind is refused like one that does not exist."""
        unknown = self.calls.put(self.token, f"{self.path}/{_NO_SUCH}", kind.needs)
        return refused.status == unknown.status and not refused.is_broken

    def _unserved(self, kind: Kind, refused: Answer) -> dict[str, Any] | None:
        """Describe the chat app, if the target knows it but only allows its installation in the user interface."""
        is_known = not self._is_unknown(kind, refused)
        if kind.nature == _CHAT_APP:
            is_known = refused.status is not None and (is_known or refused.status == HTTPStatus.UNPROCESSABLE_ENTITY)
            return _entry(kind, set(), switchable=False) if is_known else None
        if is_known:
            raise RefusedError(f"PUT {self.path}/{kind.slug}: {refused}")
        return None

    def _put(self, kind: Kind, settings: Mapping[str, Any]) -> Answer:
        """Set up an integration; retry while another one, which is tried at the same time, prevents that."""
        give_up = time.monotonic() + _DONE_WITHIN_SECONDS
        while True:
            answer = self.calls.put(self.token, f"{self.path}/{kind.slug}", {**kind.needs, **settings})
            if answer.status != HTTPStatus.CONFLICT or time.monotonic() >= give_up:
                return answer
            time.sleep(_PAUSE_SECONDS)

    def _shown_after(self, kind: Kind, settings: Mapping[str, Any], *, active: bool) -> dict[str, str]:
        """Set some parameters together or, if they are refused together, those that are accepted one by one.

        Return all shown values as text, because services may use different types. Values that were accepted get time to
        appear.
        """
        tried = {**settings, "active": active}
        answer = self._put(kind, tried)
        if not answer.is_served:
            tried = {name: value for name, value in tried.items() if self._put(kind, {name: value}).is_served}
            # Parameters that a call omits may return to their defaults, so only a single call can show them all.
            answer = self._put(kind, tried)
        wanted = {name: query_text(value) for name, value in tried.items() if name not in kind.secrets}
        give_up = time.monotonic() + (_DONE_WITHIN_SECONDS if answer.status == HTTPStatus.ACCEPTED else 0)
        while not wanted.items() <= (shown := self._shown(kind)).items() and time.monotonic() < give_up:
            time.sleep(_PAUSE_SECONDS)
        return shown

    def _shown(self, kind: Kind) -> dict[str, str]:
        """Return what the integration shows and, if parameters are missing, also what the list of active ones shows."""
        alone = self.calls.get(self.token, f"{self.path}/{kind.slug}").entry
        listed: Mapping[str, Any] = {}
        with suppress(RefusedError):
            entries = self.calls.walk(self.token, self.path)
            listed = next((entry for entry in entries if entry.get("slug") == kind.slug), {})
        return {name: query_text(value) for name, value in (flat(listed) | flat(alone)).items()}


def described_by(trial: Trial, kinds: Iterable[Kind]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Try kinds; return by slug the descriptions of those on the target, and the refusals of those it may have."""
    found: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    for kind in kinds:
        try:
            described = trial.described(kind)
        except RefusedError as error:
            refused[kind.slug] = str(error)
            continue
        except KeyboardInterrupt:  # it may be set up
            trial.calls.remove(trial.token, f"{trial.path}/{kind.slug}")
            raise
        if described is not None:
            found[kind.slug] = described
    return found, refused


def _entry(kind: Kind, has: set[str], *, switchable: bool) -> dict[str, Any]:
    switch = ["active"] if switchable else []
    optional = [name for name in (*kind.optional, *kind.flags) if name in has]
    # Where no optional text is shown, a required address is.
    addresses = [name for name in kind.needs if name.endswith("url") and name in has]
    texts = [name for name in kind.texts if name in has] or addresses
    entry: dict[str, Any] = {
        "slug": kind.slug,
        "settings": {**kind.needs, **dict.fromkeys(switch, True)},
        "required": list(kind.needs),
        "parameters": [*kind.needs, *optional, *switch],
        "never_shown": [name for name in kind.secrets if name in {*kind.needs, *has}],
        "events": [name for name in kind.events if name in has],
    }
    if texts:
        own = f"https://{kind.slug}.example.com/own"
        entry |= {"distinctive_name": texts[0], "distinctive_value": kind.optional.get(texts[0], own)}
    return entry


def fixtures_from(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the fixtures for integrations, given the description of each by its slug.

    The list has as few integrations as possible that together have all parameters and events, and one more whose name
    begins with the name of another. Kinds with a fixture of their own are taken from the rest, if possible.
    """
    usable = {kind.slug: found[kind.slug] for kind in catalogue() if kind.slug in found and kind.nature != _CHAT_APP}
    listed = _covering(usable)
    beginnings = tuple(f"{one}-" for one in listed)
    listed += [slug for slug in usable if slug not in listed and slug.startswith(beginnings)][:1]
    listed.sort(key=lambda slug: "distinctive_name" not in usable[slug])  # the first one is used where one is enough
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


#: By feature, the flag of an event, or the parameter, that no integration of a target need have.
_EVENTS_OF_SOME = {
    "group_mention_events": "group_mentions_events",
    "incident_events": "incidents_events",
    "vulnerability_events": "vulnerability_events",
}
_PARAMETERS_OF_SOME = {
    "integration_branches": "restrict_to_branch",
    "integration_broken_pipelines": "notify_only_broken_pipelines",
    "integration_certificates": "enable_ssl_verification",
    "integration_channels": "channel",
    "integration_colors": "colorize_messages",
    "integration_comments": "comment_on_event_enabled",
    "integration_committers": "send_from_committer_email",
    "integration_credentials": "username",
    "integration_diffs": "disable_diffs",
    "integration_event_channels": "push_channel",
    "integration_label_behavior": "labels_to_be_notified_behavior",
    "integration_labels": "labels_to_be_notified",
    "integration_notified_branches": "branches_to_be_notified",
    "integration_ports": "server_port",
    "integration_recipients": "recipients",
    "integration_tokens": "token",
    "integration_webhooks": "webhook",
}
#: The same, by the flag or the parameter.
FEATURE_OF = {name: feature for feature, name in (_EVENTS_OF_SOME | _PARAMETERS_OF_SOME).items()}


def features_from(found: Mapping[str, dict[str, Any]], refused: Container[str] = ()) -> dict[str, bool]:
    """Return the features that the descriptions, by slug, prove or disprove.

    The kinds in `refused` are there, although nothing describes them.
    """
    kinds = [kind for kind in catalogue() if kind.slug in found or kind.slug in refused]
    # A kind of integrations may have its fixture from another one.
    there = {*(kind.nature for kind in kinds), *fixtures_from(found)}
    features = {kind.nature: False for kind in catalogue() if kind.nature and kind.nature not in there}
    events = {event for entry in found.values() for event in entry["events"]}
    features |= {feature: event in events for feature, event in _EVENTS_OF_SOME.items()} if found else {}
    # A kind that is there may fail to show a parameter, which a run then reports: only its absence disproves that.
    parameters = {name for kind in kinds for name in (*kind.needs, *kind.optional, *kind.flags, *kind.events)}
    features |= {feature: name in parameters for feature, name in _PARAMETERS_OF_SOME.items()} if found else {}
    # It is installed nowhere before somebody has done so in the user interface, which no call can do.
    return {**features, _INSTALLED: False}


def unclear(found: Mapping[str, dict[str, Any]], refused: Mapping[str, str]) -> dict[str, str]:
    """Return, by fixture, why nobody can say whether the target has such an integration.

    Its kinds exist, or were refused as if they did, but do not have what the fixture needs. That may be a fault, so
    the operator must say whether the target has none.
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
    """Return a few slugs that together have all parameters and events: those that add most come first."""
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
