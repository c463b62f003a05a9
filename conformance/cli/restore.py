"""`conformance restore`: restores what a run changed that was killed before it could do so itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.parameters import PLACE
from conformance.errors import ExitCode, UsageError
from conformance.results.recorder import is_being_written
from conformance.results.text import together
from conformance.runner.precautions import ledgers_in, released, restored
from conformance.target import load_profile
from conformance.target.ledger import Content
from conformance.target.marker import Marker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.target import Profile


@click.command()
@click.argument("folder", type=PLACE)
@click.option("--target", type=PLACE, help="Target profile. Without one: that of the run, where it was.")
def restore(folder: Path, target: Path | None) -> int:
    """Put back what the run of FOLDER changed on its target, by its ledger, and say what is left.

    Only needed after a run that was killed: any other does it at its end. May be done again. Ends with 0 when all is as
    before, and with 6 when something is left, such as an export that was scheduled: no call takes that back.
    """
    files = ledgers_in(folder)
    if not files:
        raise UsageError(f"There is no ledger in {folder}. Name the folder that a run wrote its reports to.")
    header = _header_in(files)
    profile = _profile_of(header, target)
    process = Marker(profile.in_world(header["world"]), header["run"]).process
    if process is not None or is_being_written(folder):
        who = f": process {process}" if process is not None else ""
        raise UsageError(f"The run of {folder} still goes on{who}. It puts back itself when it ends.")
    left = restored(folder, profile)
    released(folder, profile)
    for what in together(left):
        click.echo(f"left: {what}")
    but = ", except for what is left" if left else ""
    click.echo(f"{header['base_url']} is as it was before the run of {folder}{but}.")
    return int(ExitCode.INCOMPLETE if left else ExitCode.CONFORMANT)


def _profile_of(header: Mapping[str, Any], target: Path | None) -> Profile:
    """Return the profile of the run or the given one; raise UsageError when that is of another address."""
    if target is None and not header.get("profile"):
        raise UsageError("The ledger does not say which profile the run had. Name it with --target.")
    profile, wanted = load_profile(target or Path(header["profile"])), header["base_url"]
    if profile.redacted()["base_url"] == wanted:
        return profile
    if target is not None:  # its tokens must not be sent to a host that they are not for
        raise UsageError(
            f"The run tested {wanted}, and {target} is the profile of {profile.redacted()['base_url']}. Name the "
            f"profile of the run; if it is the same service, write base_url: {wanted} into it."
        )
    return replace(profile, base_url=wanted)  # as the run did, by --base-url


def _header_in(files: Sequence[Path]) -> Mapping[str, Any]:
    """Return the header of the first ledger that can be read; raise UsageError when none can."""
    for file in files[:-1]:
        with suppress(UsageError):
            return Content.read(file).header
    return Content.read(files[-1]).header
