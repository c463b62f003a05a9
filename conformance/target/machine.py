"""What this machine remembers about targets: which hosts may be changed, open ledgers, and who uses what."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from conformance.errors import UsageError, or_usage_error
from conformance.target.whole_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.target.profile import Profile

_VARIABLE = "CONFORMANCE_STATE"


def state_folder() -> Path:
    """Return the folder for this: the user's state folder, or the one in CONFORMANCE_STATE.

    Raise UsageError when neither is known, as in a container with a user of no name.
    """
    named = os.environ.get(_VARIABLE)
    if named:
        return Path(named)
    try:
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "conformance"
    except RuntimeError as error:
        raise UsageError(
            "This user has no home folder, in which the suite remembers what it has to put back. Name a folder with "
            f"{_VARIABLE}."
        ) from error


def require_confirmed(profile: Profile, confirmed: str | None) -> None:
    """Continue only if the target is disposable, or its host was confirmed now or before.

    `confirmed` is the host that the operator names; it is remembered. Raise UsageError otherwise.
    """
    host = _host(profile)
    if confirmed is not None and confirmed != host:
        raise UsageError(f"--confirm {confirmed} is not the host of the target, which is {host}.")
    if is_confirmed(profile):
        return
    if confirmed is None:
        raise UsageError(
            f"A run changes settings, lists and rules on {host}, makes groups, and puts back what can be put back. Say "
            f"once that it may: --confirm {host}. Or write `disposable: true` into the profile of a target that is "
            "only there to be tested, or pass --read-only."
        )
    file, known = _confirmed_hosts()
    write_privately(file, "\n".join([*known, host, ""]))


def is_confirmed(profile: Profile) -> bool:
    """Tell whether a target may be changed: it is disposable, or its host was confirmed before."""
    return profile.disposable or _host(profile) in _confirmed_hosts()[1]


def _host(profile: Profile) -> str:
    return urlsplit(profile.base_url).netloc.rpartition("@")[2]


def _confirmed_hosts() -> tuple[Path, list[str]]:
    file = state_folder() / "confirmed-hosts"
    with suppress(OSError):
        return file, file.read_text(encoding="utf-8", errors="replace").split()
    return file, []


def write_privately(file: Path, text: str, *, only_new: bool = False) -> bool:
    """Write a file of the state folder; with `only_new`, return False when it exists and do not write."""
    with or_usage_error(f"{file} cannot be written", f"Name another folder with {_VARIABLE}."):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not only_new:
            write_whole(file, text)
            return True
        with suppress(FileExistsError):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                opened.write(text)
            return True
    return False


def read_json(file: Path) -> Mapping[str, Any]:
    """Return the contents of a file in the state folder; empty when it is missing or damaged."""
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def file_for(kind: str, base_url: str, name: str) -> Path:
    """Return the file for something that is remembered about a target."""
    target = hashlib.sha256(base_url.encode()).hexdigest()[:16]
    return state_folder() / kind / target / f"{name}.json"


# -- open ledgers ------------------------------------------------------------------------------------------------------


def remember_ledgers(base_url: str, run: str, folder: Path) -> None:
    """Remember that a run has changed a target, until `forget_ledgers`."""
    write_privately(file_for("ledgers", base_url, run), json.dumps({"folder": str(folder.absolute())}))


def forget_ledgers(base_url: str, run: str) -> None:
    """Forget a run whose changes have been restored."""
    with suppress(OSError):
        file_for("ledgers", base_url, run).unlink(missing_ok=True)


def open_ledgers(base_url: str) -> dict[str, Path]:
    """Return the runs whose changes of a target have not been restored, each with its folder."""
    files = sorted(file_for("ledgers", base_url, "any").parent.glob("*.json"))
    told = {file.stem: read_json(file).get("folder") for file in files}
    return {run: Path(folder) for run, folder in told.items() if isinstance(folder, str) and folder}
