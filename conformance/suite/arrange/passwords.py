"""Approving without a password: whether the project of a merge request asks for one, and how to switch that off."""

from __future__ import annotations

from contextlib import suppress
from weakref import WeakKeyDictionary

from conformance.suite.arrange.approval_settings import PASSWORD, REAUTHENTICATION, Settings
from conformance.suite.context import NotTested, Run, Unmet, current_run
from conformance.suite.expectations import Caller, Path, given

#: By run: the project settings that were never seen to ask for a password, so that nobody needs to look again.
_ASKING_NOBODY: WeakKeyDictionary[Run, set[Path]] = WeakKeyDictionary()


def given_no_password(merge_request: Path) -> None:
    """Make the project of a merge request ask nobody for a password; inconclusive when it still asks.

    Settings that cannot be read are ignored. If this switches asking off, the run restores it at its end.
    """
    project, _, _ = merge_request.partition("/merge_requests/")
    path, unasked = Path(project) / "merge_request_approval_setting", _ASKING_NOBODY.setdefault(current_run(), set())
    if path in unasked:
        return
    asks = False
    with suppress(Unmet, NotTested):
        settings = Settings(Caller.named("maintainer"), path)
        asks = asks_for_password(settings)
        if not asks:
            unasked.add(path)
        elif settings.is_free(REAUTHENTICATION):
            settings.change(**{REAUTHENTICATION: False})
            asks = asks_for_password(settings)
    given(not asks, f"{path} shows that whoever approves has to send a password")


def asks_for_password(settings: Settings) -> bool:
    """Tell whether the settings of a project require approvers to authenticate again."""
    values = settings.values()
    return values[PASSWORD] or values.get(REAUTHENTICATION, False)
