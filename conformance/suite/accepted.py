"""Waits until the target has finished what it only accepted.

A status of 202 means that the work is not finished. Where the text shows no answer, a service may answer 202, and the
next read may still show the old state. Each such write is waited for here, once for all tests, until its effect shows;
after some seconds it is left to the test that looks at it. A write without an answer that may run in the background is
waited for too, because otherwise it would take effect while the next test reads.
"""

from __future__ import annotations

import time
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.http.bodies import object_in
from conformance.suite.shown_records import values_under

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.http.exchange import Call, Exchange
    from conformance.schema.response_validator import ResponseValidator

    #: Reads a path as the actor who made a call: plain data, or None when it is refused or no JSON.
    Read = Callable[[Call, str], Any]

#: May run in the background, whatever the answer says (G7).
_RESET = "resetMergeRequestApprovals"
#: How long accepted work may take to finish.
DONE_WITHIN_SECONDS = 3.0
#: After so many waits in vain in a row, an operation or a setting of an integration is not waited for any more.
_MOST_IN_VAIN = 10
_MOST_IN_VAIN_OF_A_SETTING = 2
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.2
#: After so many writes of an operation whose effect showed, another one is not waited for much longer than those took.
_ENOUGH_SHOWN, _TIMES_AS_LONG, _SOON_SECONDS = 5, 4, 0.5
#: A setting that may differ from what was sent while another setting is on.
_CONDITIONAL, _CONDITION = "selective_code_owner_removals", "retain_approvals_on_push"


class Accepted:
    """The writes of a run that were answered with 202, and the resets that got no answer."""

    def __init__(self, validator: ResponseValidator, read: Read, seconds: float = DONE_WITHIN_SECONDS) -> None:
        """Read with the given function, and wait at most this long for one write."""
        self._validator = validator
        self._read = read
        self._seconds = seconds
        self._in_vain: Counter[tuple[str, ...]] = Counter()
        """How often in a row an operation, or a setting of an integration, was waited for in vain."""
        self._shown_after: dict[str, list[float]] = {}
        """By operation, the seconds after which the effect of an accepted write showed."""
        self._done: Mapping[str, Callable[[Call, Any], bool]] = {
            "deleteProjectApprovalRule": self._is_refused,
            "deleteMergeRequestApprovalRule": self._is_refused,
            "unapproveMergeRequest": self._is_unapproved,
            "updateProjectApprovalSettings": self._has_settings,
            "setUpIntegration": lambda call, sent: not self._missing(call, sent),
            "disableIntegration": self._is_unlisted,
            _RESET: lambda call, _: not self._approved_by(call),
        }

    def see(self, exchange: Exchange) -> None:
        """Wait for the effect of a call that was only accepted, or that may run in the background without an answer."""
        call, operation = exchange.call, None
        if exchange.status in (HTTPStatus.ACCEPTED, None) and not call.is_elsewhere:
            operation = self._validator.operation_of(call.method, call.path)
        name = "" if operation is None else operation.alias_of or operation.id
        # Whoever sees a reset accepted waits for it themselves.
        is_waited_for = name in self._done and (exchange.status is None) == (name == _RESET)
        if is_waited_for and self._in_vain[(name,)] < _MOST_IN_VAIN:
            self._await(name, call)

    def _await(self, name: str, call: Call) -> None:
        begun, pause = time.monotonic(), _FIRST_PAUSE
        shown_after = self._shown_after.setdefault(name, [])
        seconds = self._seconds
        if len(shown_after) >= _ENOUGH_SHOWN:
            seconds = min(seconds, max(_SOON_SECONDS, _TIMES_AS_LONG * max(shown_after)))
        while not self._done[name](call, object_in(call.body)):
            if time.monotonic() > begun + seconds:
                self._give_up(name, call)
                return
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        shown_after.append(time.monotonic() - begun)
        self._in_vain[(name,)] = 0

    def _give_up(self, name: str, call: Call) -> None:
        if name == "setUpIntegration":
            self._in_vain.update((_slug(call), missing) for missing in self._missing(call, object_in(call.body)))
        else:
            self._in_vain[(name,)] += 1

    # -- how each effect shows -----------------------------------------------------------------------------------------

    def _is_refused(self, call: Call, _: Any) -> bool:
        return self._read(call, call.path) is None

    def _is_unapproved(self, call: Call, _: Any) -> bool:
        number = getattr(call.actor, "id", None)
        return number is None or number not in values_under("id", self._approved_by(call))

    def _approved_by(self, call: Call) -> Any:
        """Return who has approved; None when the status is refused, or is no object, which other tests report."""
        status = self._read(call, f"{call.path.rpartition('/')[0]}/approvals")
        return status.get("approved_by") if isinstance(status, dict) else None

    def _has_settings(self, call: Call, sent: Mapping[str, Any]) -> bool:
        shown = self._read(call, call.path)
        settings = shown if isinstance(shown, dict) else {}
        free = {_CONDITIONAL} if _holds(settings.get(_CONDITION), value=True) else set()
        owed = [(name, value) for name, value in sent.items() if isinstance(value, bool) and name not in free]
        return all(_holds(settings.get(name), value) for name, value in owed)

    def _missing(self, call: Call, sent: Mapping[str, Any]) -> list[str]:
        """Return the settings that show another value than was sent; settings that are not shown are left out.

        The empty name stands for the whole: that anything is shown and, if nothing was sent about that, that it is
        active.
        """
        shown = self._by_either_name(call, call.path)
        # Values that are no text, switch or number, and the number 0, were sent to be refused, and need not be stored.
        fit = {
            name for name, value in sent.items() if isinstance(value, str | bool) or (isinstance(value, int) and value)
        }
        found = {name: values_under(name, shown) for name in fit}
        holds = {name: sent[name] in values for name, values in found.items() if values}
        holds[""] = shown is not None and ("active" in sent or False not in values_under("active", shown))
        for name in filter(holds.get, holds):
            self._in_vain[_slug(call), name] = 0
        missing = [name for name, is_held in holds.items() if not is_held]
        return [name for name in missing if self._in_vain[_slug(call), name] < _MOST_IN_VAIN_OF_A_SETTING]

    def _is_unlisted(self, call: Call, _: Any) -> bool:
        return _slug(call) not in values_under("slug", self._by_either_name(call, call.path.rpartition("/")[0]))

    def _by_either_name(self, call: Call, path: str) -> Any:
        """Read integrations; use the newer name when the older one leads elsewhere."""
        shown, newer = self._read(call, path), path.replace("/services", "/integrations")
        return self._read(call, newer) if shown is None and newer != path else shown


def _holds(setting: Any, value: bool) -> bool:  # noqa: FBT001 - a value
    """Tell whether a setting has a value, or cannot have it because it is locked."""
    return not isinstance(setting, dict) or setting.get("value") == value or setting.get("locked") is True


def _slug(call: Call) -> str:
    return call.path.rpartition("/")[2]
