"""What a run is to do: the operator's options, checked, and what follows from them before the first test."""

from __future__ import annotations

import os
import platform
import random
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from conformance import __version__
from conformance.contract import Contract, Version
from conformance.errors import UsageError
from conformance.results.baseline import load_baseline
from conformance.results.parts import Part
from conformance.results.record import RECORD_FORM, Header
from conformance.results.trust import require_unread
from conformance.runner.profiles import REPORTS, profile_of, reference_version
from conformance.target.marker import operator
from conformance.target.names import PRESUMED
from conformance.target.profile import AUTO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.results.record import KnownFailure
    from conformance.runner.options import Options
    from conformance.target import Profile


@dataclass(frozen=True)
class Job:
    """What one run is to do."""

    options: Options
    contract: Contract
    profile: Profile | None
    """None for a target that starts with the run: the embedded reference, or the target of a proof."""
    seed: int
    warnings: tuple[str, ...] = ()
    """Warnings from before the run begins."""
    baseline: Mapping[str, KnownFailure] = field(default_factory=dict)
    """The requirements that are known to fail, with the reason."""
    earlier: Part | None = None
    """The interrupted run that this one resumes."""
    kept: frozenset[str] = frozenset()
    """The tests of that run that have a result."""
    begun: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def prepare(cls, options: Options, *, keeps_record: bool = True) -> Job:
        """Check the options as far as that is possible without a request; raise UsageError when they are wrong.

        Only a target whose version the profile leaves to be asked for is asked for it.
        """
        contract = Contract.load()
        _require_possible(options, contract)
        seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**31)
        known = load_baseline(options.baseline, contract, datetime.now(UTC).date()) if options.baseline else {}
        profile, warnings = profile_of(options, keeps_record=keeps_record)
        earlier = Part.of(options.resume) if options.resume is not None else None
        kept = earlier.settled if earlier is not None else frozenset[str]()
        job = cls(options, contract, profile, seed, warnings, known, earlier, kept)
        if profile is not None:
            profile.in_world(job.first_world + options.workers - 1)  # before any worker starts: it raises if too few
        elif options.version is not None and options.version != AUTO:
            Version.parse_known(options.version, "--target-version")  # the reference has none that is newer than known
        return job

    @property
    def first_world(self) -> int:
        """The number of the first world that this run uses: the shards before it use others."""
        shard = self.options.shard
        return (shard.number - 1) * self.options.workers if shard is not None else 0

    @property
    def version(self) -> Version | None:
        """The version to judge by: from the options, the profile, the target, or the reference's default."""
        if self.profile is not None:
            return self.profile.version
        if self.options.as_of is not None:
            return Version.parse_known(self.options.as_of)
        return Version.parse_known(reference_version(self.options))

    @property
    def folder(self) -> Path:
        """The folder for the reports of this run."""
        if self.options.out is not None:
            return self.options.out
        target = self.profile.title if self.profile else "reference"
        return REPORTS / target / self.begun.strftime("%Y%m%dT%H%M%S.%fZ")

    def header(self, profile: Profile) -> Header:
        """Return the header of its record, on the target of a profile."""
        options = self.options
        seed = "" if options.seed is not None else f" --seed {self.seed}"
        before, mark, behind = options.command.partition(" -- ")
        return Header(
            form=RECORD_FORM,
            suite=__version__,
            contract=self.contract.digest,
            target=profile.title,
            base_url=profile.redacted()["base_url"],
            version=str(profile.version or "unknown"),
            version_source=profile.version_source,
            edition=profile.edition,
            profile=profile.redacted(),
            seed=self.seed,
            started=self.begun.isoformat(timespec="seconds"),
            python=platform.python_version(),
            arguments=options.arguments,
            warnings=self.warnings,
            command=f"{before}{seed}{mark}{behind}",
            scope=profile.scope,
            undeclared=_undeclared(profile, self.contract),
            selection=options.selection.words,
            subjects=tuple(subject.words for subject in options.subjects),
            fail_on=options.fail_on,
            allowed=_allowed(profile, options),
            started_in=os.path.relpath(Path.cwd(), self.folder.resolve()),
            shard=str(options.shard or ""),
            run_by=operator(),
        )


def _require_possible(options: Options, contract: Contract) -> None:
    """Raise UsageError when options name something that does not exist, or contradict each other."""
    for area in options.areas:
        contract.require_area(area)
    for requirement in options.requirements:
        contract.requirement(requirement)
    _ = options.selection  # which raises where the earlier run cannot be read
    require_unread(options.out, [options.failed] if options.failed else [])
    if options.as_of is not None:
        Version.parse_known(options.as_of, "--as-of")
    if options.fail_on == "new" and options.baseline is None:
        raise UsageError("--fail-on new needs a --baseline that says what is not new.")
    if options.shard is not None and options.seed is None:
        raise UsageError("--shard needs --seed N, with the same number for all shards of a run.")


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
