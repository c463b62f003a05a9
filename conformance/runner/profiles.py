"""Builds the profile of a run from the operator's options, a file, and what the target reports about itself."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.contract import Version
from conformance.errors import TargetError, UsageError
from conformance.results.parts import EMBEDDED
from conformance.results.recorder import require_writable
from conformance.results.text import plural
from conformance.target import Profile, load_profile
from conformance.target.check import as_table, check_profile
from conformance.target.profile import AUTO
from conformance.target.profile_file import base_url_from
from conformance.target.readings import Finding, State
from conformance.target.version import resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.http.client import Client
    from conformance.runner.options import Options

#: The name of the profile where only a base URL is given.
DEFAULT_PROFILE = Path("target.yaml")
#: Where reports go unless the operator names a folder.
REPORTS = Path("reports")


def profile_of(options: Options, *, keeps_record: bool = True) -> tuple[Profile | None, tuple[str, ...]]:
    """Return the profile of the target with its version, and warnings; None for the profile of the reference.

    Raise UsageError when the process `keeps_record` and cannot write one.
    """
    profile = _declared(options)
    if profile is None:
        return None, ()
    if options.as_of is not None:
        return replace(profile, version=Version.parse_known(options.as_of, "--as-of"), version_source="--as-of"), ()
    if keeps_record:  # before the target is asked for its version, which is the first call
        require_writable(options.out or REPORTS)
    return resolved(profile)


def reference_version(options: Options) -> str:
    """Return the version that the embedded reference will have; it always has a known one."""
    from conformance.target.embedded import DEFAULT_VERSION  # noqa: PLC0415 - brings the server, for no worker

    return DEFAULT_VERSION if options.version is None or options.version == AUTO else options.version


@contextmanager
def reference_target(options: Options, judged_by: Version | None) -> Iterator[Profile]:
    """Serve the reference while the context lasts; yield its profile, which names the version to judge it by."""
    from conformance.target.embedded import DEFAULT_VERSION, embedded_target  # noqa: PLC0415 - see above

    wanted = reference_version(options)
    played = DEFAULT_VERSION if Version.parse_known(wanted) is None else wanted
    is_judged_otherwise = judged_by is not None and judged_by != Version.parse(played)
    source = f"--as-of, of {EMBEDDED} of version {played}" if is_judged_otherwise else EMBEDDED
    with embedded_target(played) as profile:
        # The reference can enforce the rate limit; the operator decides whether testing it is worth some minutes.
        features = {**profile.features, "completion_rate_limit": "slow" in options.include}
        yield replace(profile, version=judged_by, version_source=source, features=features)


def doubts(profile: Profile, client: Client, options: Options) -> tuple[Finding, ...]:
    """Check a profile with reads; return what the target contradicts or does not have, and doubts about the version.

    Raise TargetError with a table of the contradictions unless the operator forces the run.
    """
    worlds = range(min(options.workers, len(profile.worlds) + 1))
    told = (State.CONTRADICTED, State.GONE)
    found = [one for one in check_profile(profile, client, worlds) if one.state in told or one.place == "version"]
    wrong = [one for one in found if one.state is State.CONTRADICTED]
    if wrong and not options.force:
        raise TargetError(
            f"The target contradicts the profile in {plural(len(wrong), 'place')}, so that what fails need not be "
            f"the service:\n{as_table(wrong)}\n`conformance target --check FILE --fix` writes what could be found "
            "out; --force runs all the same."
        )
    return tuple(found)


def _declared(options: Options) -> Profile | None:
    file = options.target
    if file is None and options.base_url is not None:
        file = DEFAULT_PROFILE
        if not file.is_file():
            raise UsageError(
                "A base URL alone is not enough: the suite also needs tokens and fixtures. Write a profile with "
                "`conformance target --example > target.yaml`, fill it in, and pass --target target.yaml."
            )
    if file is None:
        return None
    profile = load_profile(file)
    if options.base_url is not None:
        profile = replace(profile, base_url=base_url_from(options.base_url, "--base-url"))
    if options.version is None:
        return profile
    asked = options.version == AUTO
    version, warning = (None, "") if asked else Version.parse_declared(options.version, "--target-version")
    return replace(
        profile, version=version, version_warning=warning, version_source="--target-version", asks_version=asked
    )
