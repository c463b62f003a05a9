"""Builds the header of a record: who tests what, with which contract."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from conformance import __version__
from conformance.results.record import RECORD_FORM, Header
from conformance.target.marker import operator
from conformance.target.names import PRESUMED

if TYPE_CHECKING:
    from conformance.contract import Contract
    from conformance.runner.job import Job
    from conformance.runner.options import Options
    from conformance.target import Profile


def header_of(job: Job, profile: Profile) -> Header:
    """Return the header of a run on the target of a profile."""
    options = job.options
    seed = "" if options.seed is not None else f" --seed {job.seed}"
    before, mark, behind = options.command.partition(" -- ")
    return Header(
        form=RECORD_FORM,
        suite=__version__,
        contract=job.contract.digest,
        target=profile.title,
        base_url=profile.redacted()["base_url"],
        version=str(profile.version or "unknown"),
        version_source=profile.version_source,
        edition=profile.edition,
        profile=profile.redacted(),
        seed=job.seed,
        started=job.begun.isoformat(timespec="seconds"),
        python=platform.python_version(),
        arguments=options.arguments,
        warnings=job.warnings,
        command=f"{before}{seed}{mark}{behind}",
        scope=profile.scope,
        undeclared=_undeclared(profile, job.contract),
        selection=options.selection.words,
        subjects=tuple(subject.words for subject in options.subjects),
        fail_on=options.fail_on,
        allowed=_allowed(profile, options),
        started_in=os.path.relpath(Path.cwd(), job.folder.resolve()),
        shard=str(options.shard or ""),
        run_by=operator(),
    )


def _undeclared(profile: Profile, contract: Contract) -> tuple[str, ...]:
    """Return the features that are not declared, and without which some requirements of the scope cannot be judged."""
    claimed = [entry for entry in contract.requirements.values() if profile.claims(entry.area)]
    stated = {entry.feature for entry in claimed} | {
        name for name, row in PRESUMED.items() if profile.claims(row.presumed_in)
    }
    return tuple(name for name in profile.undeclared if name in stated)


def _allowed(profile: Profile, options: Options) -> dict[str, float]:
    """Return the limits of the run, by their names in the profile or on the command line."""
    given = {"max-requests": options.max_requests, "max-rps": options.max_rps, "minutes": options.minutes}
    return {**asdict(profile.retries), **{name: value for name, value in given.items() if value is not None}}
