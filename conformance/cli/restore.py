"""`conformance restore`: puts back what a run changed that was killed before it could do so itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from conformance.errors import ExitCode, UsageError
from conformance.runner.precautions import ledgers_in, released, restored
from conformance.target import load_profile
from conformance.target.ledger import Content
from conformance.target.marker import Marker


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--target", type=click.Path(path_type=Path), help="Target profile. Without one: that of the run, where it was."
)
def restore(folder: Path, target: Path | None) -> int:
    """
    Put back what the run of FOLDER changed on its target, by its ledger, and say what is left.

    Only needed after a run that was killed: any other does it at its end. May be done again. Ends with 0 when all is as
    before, and with 6 when something is left, such as an export that was scheduled: no call takes that back.
    """
    files = ledgers_in(folder)
    if not files:
        raise UsageError(f"There is no ledger in {folder}. Name the folder that a run wrote its reports to.")
    header = Content.read(files[0]).header
    profile = load_profile(target or Path(header["profile"]))
    if profile.redacted()["base_url"] != header["base_url"]:
        profile = replace(profile, base_url=header["base_url"])
    process = Marker(profile.in_world(header["world"]), header["run"]).process
    if process is not None:
        raise UsageError(f"The run of {folder} still goes on: process {process}. It puts back itself when it ends.")
    left = restored(folder, profile)
    released(folder, profile)
    for what in left:
        click.echo(f"left: {what}")
    click.echo(f"{header['base_url']} is as it was{' but for these' if left else ''} before the run of {folder}.")
    return int(ExitCode.INCOMPLETE if left else ExitCode.CONFORMANT)
