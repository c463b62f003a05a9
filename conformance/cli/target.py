"""`conformance target` and `conformance serve`: a profile for your service, and a service to try a profile on."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click
import yaml

from conformance.cli.parameters import PLACE, Number, Place, refuse_beside
from conformance.cli.stopping import told_when_stopped
from conformance.contract import Version
from conformance.contract.yaml_files import read_yaml
from conformance.errors import ExitCode, TargetError, UsageError
from conformance.http.client import Client, TargetGoneError
from conformance.http.redaction import REDACTION
from conformance.reference.serving import serve as serve_reference
from conformance.reference.serving import who_is_who
from conformance.target import load_profile
from conformance.target.check import as_table, check_profile, doubted_roles
from conformance.target.embedded import prepared_service, profile_of
from conformance.target.example import as_yaml, example_profile
from conformance.target.machine import is_confirmed
from conformance.target.mending import mend
from conformance.target.names import TABLE
from conformance.target.preflight import overstated, preflight, serves_any, undeclared
from conformance.target.profile_file import profile_from_yaml
from conformance.target.provisioning import PREFIX
from conformance.target.provisioning.calls import Calls, RefusedError, by_http
from conformance.target.provisioning.discover import Discovery
from conformance.target.provisioning.files import Made, Secrets, SecretsFile, secrets_beside
from conformance.target.provisioning.program import without_secrets
from conformance.target.readings import State
from conformance.target.trials import not_probed, try_writes
from conformance.target.version import resolved

_FILE = Place(path_type=Path, dir_okay=False)


@click.command()
@click.option("--example", is_flag=True, help="Print a commented profile to start from, with all that one may name.")
@click.option(
    "--discover",
    type=PLACE,
    metavar="FILE",
    help="Fill this profile, which needs base_url and tokens only, with what the tokens may read, and print it. "
    "Nothing is made or changed, except integrations, which are tried and disabled again where the profile says "
    "`disposable: true`. What the profile says already stays.",
)
@click.option(
    "--check",
    type=PLACE,
    metavar="FILE",
    help="Hold a profile against its target: each fixture and actor is read and compared; on a disposable target, each "
    "integration is set up as well and disabled again.",
)
@click.option("--fix", is_flag=True, help="With --check: write into the profile what could be found out.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="With --check."
)
def target(*, example: bool, discover: Path | None, check: Path | None, fix: bool, form: str) -> int:
    """Write or check the profile of the service under test.

    Ends with 8 if the target contradicts the profile or does not answer, 4 if the profile is not valid, and 6 if
    --discover finds nothing.
    """
    if [example, discover is not None, check is not None].count(True) != 1:
        raise UsageError("Say either --example, --discover FILE or --check FILE.")
    if check is None:
        refuse_beside("without --check", "fix", "form")
    if discover is None and check is None:
        click.echo(example_profile(), nl=False)
        return 0
    with told_when_stopped(lambda: "An integration that was being tried is disabled again."):
        return _discover(discover) if discover else _check(check or Path(), fix=fix, as_json=form == "json")


def _discover(file: Path) -> int:
    """Print a profile with all that could be found out, and the number of entries; return 6 when there were none."""
    data = read_yaml(file)
    profile = profile_from_yaml(data, file)
    tokens = {name: actor.token for name, actor in profile.actors.items()}
    secrets = Secrets()
    data = without_secrets(data, PREFIX, secrets)  # before anything is added, because what is found out is no secret
    with Client(profile.client_settings()) as client:
        calls, may_write = Calls(by_http(client), Made()), is_confirmed(profile)
        claims = profile.claims("integrations")
        discovery = Discovery(calls, tokens, data, base_url=profile.base_url, may_write=may_write and claims)
        try:
            found = discovery.fill()
        except RefusedError as error:
            raise TargetError(f"Nothing can be found out on {profile.base_url}: {error}.") from error
    if secrets.known:
        data.setdefault("secrets", secrets_beside(file).name)
        place = file.parent / data["secrets"]
        with closing(SecretsFile(place)) as kept:
            for name, value in secrets.known.items():
                kept.keep(name, value)
        click.echo(f"The tokens went to {place}: save the profile beside it.", err=True)
    click.echo(yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True), nl=False)
    if discovery.perhaps:
        click.echo("# These show no rules. Move below `fixtures:` what nobody has ever given a rule or changed:")
        click.echo("\n".join(f"# {line}" for name, value in discovery.perhaps.items() for line in as_yaml(name, value)))
    click.echo(f"{len(found)} found out: {', '.join(found) or 'nothing'}.", err=True)
    core = [row for row in TABLE["fixtures"] if row.is_core and row.name not in data["fixtures"]]
    lacking = [row.name for row in core if not row.core_of or any(profile.claims(area) for area in row.core_of)]
    if lacking:
        click.echo(
            f"Not found, and most tests need it: {', '.join(lacking)}. Write it by hand; what each must be and have "
            "is in: conformance target --example",
            err=True,
        )
    if "integrations" in lacking and not may_write:
        click.echo("Integrations show themselves only when tried: say `disposable: true` and discover again.", err=True)
    click.echo(
        "Look at each: the suite changes settings and lists of these places. Save it, then: conformance target --check "
        "FILE",
        err=True,
    )
    return ExitCode.CONFORMANT if found else ExitCode.INCOMPLETE


def _check(file: Path, *, fix: bool, as_json: bool) -> int:
    """Print what is wrong with the profile, or may be; return 8 when something contradicts it."""
    profile, warnings = resolved(load_profile(file))
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)
    valid = (
        f"{file} is a valid profile of {profile.base_url}, version {profile.version or 'unknown'} "
        f"({profile.version_source})."
    )
    click.echo(valid, err=as_json)
    with Client(profile.client_settings()) as client:
        try:
            preflight(profile, client)
            findings = check_profile(profile, client, range(len(profile.worlds) + 1))
            may_write = is_confirmed(profile)
            findings = (*findings, *doubted_roles(profile, client))
            findings = (*findings, *(try_writes(profile, client) if may_write else ()))
            features = [*undeclared(profile, client), *overstated(profile, client)]
            is_known = serves_any(profile, client)
        except TargetGoneError as error:
            raise TargetError(f"{error}. Is the service running there?") from error
    mended = mend(file, findings) if fix else ()
    unseen = not_probed(profile, tried=may_write)
    if as_json:
        found = [asdict(finding) for finding in findings]
        shown = {"findings": found, "features": features, "written": mended, "not_probed": unseen}
        click.echo(json.dumps(shown, indent=2))
    else:
        for text in (*([as_table(findings)] if findings else []), *features):
            click.echo(f"\n{text}")
        for place in mended:
            click.echo(f"written: {place}")
        if fix and not mended:
            click.echo(f"\nThere was nothing to fix in {file}: it is as it was.")
        if not may_write:
            click.echo("\nThe profile does not say `disposable: true`, so nothing was tried by writing.")
        if unseen:
            click.echo(f"\nNot verified; look at them yourself: {', '.join(unseen)}.")
    if not is_known:
        nothing = "no call is served, so that nothing shows that this is the service. base_url is the address above"
        click.echo(f"Warning: {nothing} /api/v4.", err=True)
    is_wrong = [one.place for one in findings if one.state is State.CONTRADICTED and one.place not in mended]
    return ExitCode.COULD_NOT_RUN if is_wrong else 0


@click.command()
@click.option("--version", "version", default="17.7", show_default=True, help="Version the reference shall have.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--latency", type=Number(0, 60_000), default=0.0, show_default=True, metavar="MS", help="Delay of every answer."
)
@click.option(
    "--worlds",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Complete sets of actors and fixtures: so many workers can run tests side by side.",
)
@click.option("--profile-out", type=_FILE, help="Write the target profile of this service here.")
@click.option("--admin-token-out", type=_FILE, help="Write an administrator's token here.")
def serve(  # noqa: PLR0913, PLR0917 - the options of a command
    version: str,
    host: str,
    port: int,
    latency: float,
    worlds: int,
    profile_out: Path | None,
    admin_token_out: Path | None,
) -> None:
    """Serve the reference implementation with a seeded world, and say who is who.

    It answers until it is interrupted, and logs a line per request. Tokens are the same at every start.
    """
    known = Version.parse_known(version, "--version")
    if known is None:
        raise UsageError("--version: the reference needs a version to have, such as 17.7.")
    service = prepared_service(version, worlds=worlds)

    def say(base_url: str) -> None:
        if admin_token_out is not None:
            admin_token_out.touch(mode=0o600)
            admin_token_out.chmod(0o600)  # also for a file that existed
            admin_token_out.write_text(service.administrator.token + "\n", encoding="utf-8")
        if profile_out is not None:
            data = profile_of(service, base_url, str(known))
            profile_out.write_text(yaml.safe_dump(data, sort_keys=False, width=110), encoding="utf-8")
        REDACTION.forget()  # the tokens of the reference are public
        click.echo(who_is_who(service, base_url))
        if profile_out is not None:
            click.echo(f"\nTarget profile: {profile_out}. Test it with: conformance run --target {profile_out}")

    serve_reference(service, host, port, latency, True, say)
    click.echo("Stopped.")
