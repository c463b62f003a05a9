"""`conformance provision` and `conformance sweep`: worlds on a target, made and removed."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformance.cli.parameters import PLACE, Number, refuse_beside
from conformance.cli.stopping import told_when_stopped
from conformance.contract.yaml_files import read_text, read_yaml
from conformance.errors import ExitCode, TargetError, UsageError, or_usage_error
from conformance.http.client import Client
from conformance.http.redaction import keep_in
from conformance.http.settings import AT_ONCE, ClientSettings, without_userinfo
from conformance.results.grouping import grouped
from conformance.results.text import plural
from conformance.target.fit_secrets import VARIABLE
from conformance.target.names import FEATURES
from conformance.target.profile_file import base_url_from, profile_from_yaml
from conformance.target.provisioning import PREFIX, Order, Provisioned, Tell, provision
from conformance.target.provisioning.accounts import UsersRefusedError
from conformance.target.provisioning.calls import Calls, NotOursError, RefusedError, by_http
from conformance.target.provisioning.files import Made, MadeFile, Secrets, SecretsFile, secrets_beside
from conformance.target.provisioning.profiles import by_hand, exported_relation, profile_data, with_additions
from conformance.target.provisioning.program import needed, provided_by, without_password, without_secrets
from conformance.target.provisioning.sweep import Removal, sweep
from conformance.target.provisioning.worlds import NOT_MADE
from conformance.target.whole_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.target.provisioning.profiles import ByHand, Data
    from conformance.target.provisioning.worlds import World

_PREFIX = re.compile(r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?")
#: The keys of a profile that say how a service is reached.
_WAY = {"certificates", "client_certificate", "proxy", "headers", "http2"}
#: The part of a refusal that names one thing alone.
_OF_ONE = re.compile(r" \([^)]*\)")
_OTHER_WAYS = (
    "`conformance target --discover` fills one with what tokens you have may read, and `conformance provision --with "
    "PROGRAM` lets a program of yours make what is needed"
)
_SWEEP_AGAIN = "What was made may be there in part. Run the same command again to remove the rest."
_HEADING = """\
# Made by `conformance provision`. Tokens and passwords are in {secrets}; this file holds none and may be shared.
# Check it with `conformance target --check {name}`, test with `conformance run --target {name}`.
"""


@click.command("provision")
@click.option("--base-url", required=True, help="Address of the service, above /api/v4.")
@click.option("--admin-token-file", type=PLACE, help="File that holds an administrator's token and nothing else.")
@click.option(
    "--with",
    "program",
    metavar="PROGRAM",
    help="A program that makes it all instead: JSON of what is needed goes to its standard input, JSON of what there "
    "is comes from its standard output. examples/provision has the schemas and a worked example.",
)
@click.option("--worlds", type=click.IntRange(1, 64), default=1, show_default=True, help="Complete sets to make.")
@click.option("--out", type=PLACE, default="target.yaml", show_default=True, help="The profile.")
@click.option("--prefix", default=PREFIX, show_default=True, help="What the names of all that is made begin with.")
@click.option("--rate", type=Number(0.1), metavar="N", help="Most calls a second. No limit by default.")
@click.option("--concurrency", type=click.IntRange(1, 128), default=AT_ONCE, show_default=True, help="Calls at once.")
def provision_command(  # noqa: PLR0913, PLR0917 - the options of a command
    base_url: str,
    admin_token_file: Path | None,
    program: str | None,
    worlds: int,
    out: Path,
    prefix: str,
    rate: float | None,
    concurrency: int,
) -> int:
    """Make all that a run needs on a service, and write the profile that names it.

    It makes users with tokens, groups, projects with merge requests, and whatever else the calls of such services can
    make. It can be repeated at any time: what exists is found again. `conformance sweep` removes what was made.

    Ends with 0; with 6 if the service refused to make something, or if it is not clear whether it has something; with 4
    if an option or file is wrong; with 8 if the service does not answer or makes no users.
    """
    address = base_url_from(base_url, "--base-url")
    _require_prefix(prefix)
    if out.is_dir():
        raise UsageError(f"Cannot write the profile {out}: it is a folder. Name a file.")
    if program is not None:
        refuse_beside("beside --with", "admin_token_file", "rate", "concurrency")
        return _by_program(_words(program), address, worlds, prefix, out)
    if admin_token_file is None:
        raise UsageError(
            "Name the file with an administrator's token: --admin-token-file FILE. Without one, `conformance target "
            "--discover` or `conformance provision --with PROGRAM` lead to a profile."
        )
    token = administrators_token(admin_token_file)
    order = Order(base_url=address, administrator=token, worlds=worlds, prefix=prefix, at_once=concurrency)
    return _by_calls(order, settings(address, rate, concurrency, out), out)


def _by_calls(order: Order, how: ClientSettings, out: Path) -> int:
    """Create the worlds with an administrator's token, write the profile, and return the exit code."""
    known = _known_in(out, order.base_url)
    secrets_file = secrets_beside(out)
    with (
        closing(SecretsFile(secrets_file)) as secrets,
        closing(MadeFile(out.parent / "made.jsonl", without_userinfo(order.base_url))) as made,
        Client(how) as client,
    ):
        calls = Calls(by_http(client), made, settle_seconds=_settle_seconds(known))
        with told_when_stopped(partial(_made_so_far, order, made, out)), client.ending_when_interrupted():
            try:
                done = _with_progress(order, calls, secrets)
            except (TargetError, UsageError) as error:
                if made.entries:
                    raise type(error)(f"{error} {_made_so_far(order, made, out)}") from error
                raise
        data = profile_data(order, done, version="auto", secrets=secrets_file.name)
        data = without_password(data, order.prefix, secrets)
        data = with_additions(data, known)
        if calls.settle_seconds > _settle_seconds(data):
            data["limits"] = {**data.get("limits", {}), "settle_seconds": calls.settle_seconds}
            click.echo(
                f"Reads lag behind writes here: each read after a write waited for {calls.settle_seconds:g} s, and "
                "will in a run (limits.settle_seconds of the profile)."
            )
    write_profile(out, data, secrets_file.name)
    worlds = plural(order.worlds, "world")
    click.echo(f"{out}: {worlds} on {order.base_url}. Tokens and passwords: {secrets_file}, for your eyes only.")
    unclear = {name: why for name, why in done.unclear.items() if data["features"].get(name) is not False}
    _say_what_is_lacking(data["features"])
    _say_what_is_left(by_hand(data), done.refused, unclear)
    _say_what_exports_show(done.worlds[0])
    _say_what_followed_no_push(done.worlds)
    workers = f" --workers {order.worlds}" if order.worlds > 1 else ""
    click.echo(f"\nTest it with: conformance run --target {out}{workers}")
    return ExitCode.INCOMPLETE if done.refused or unclear else ExitCode.CONFORMANT


def _with_progress(order: Order, calls: Calls, secrets: Secrets) -> Provisioned:
    try:
        with progress() as tell:
            return provision(order, calls, secrets, tell)
    except NotOursError as error:
        raise UsageError(str(error)) from error
    except UsersRefusedError as error:
        raise TargetError(
            f"The service does not let users be made, or tokens for them ({error}). Two other ways lead to a profile: "
            f"{_OTHER_WAYS}."
        ) from error


def _made_so_far(order: Order, made: MadeFile, out: Path) -> str:
    """Return what is on the target after a part of the work, and how to continue or to remove it."""
    if not made.entries:
        return f"Nothing was made, and {out} was not written."
    where = ("--base-url", without_userinfo(order.base_url), "--admin-token-file", "FILE")
    sweeping = ("conformance", "sweep", *where, "--prefix", order.prefix)
    return (
        f"{out} was not written. Calls to make something: {len(made.entries)}, see {made.file}. "
        f"Run the same command again to go on where it stopped, or remove what is there: {shlex.join(sweeping)}"
    )


def _known_in(out: Path, address: str) -> Any:
    """Return the profile of an earlier call; raise UsageError for a file that is something else, or of another target.

    What stands there, and the secrets beside it, would be lost.
    """
    known = read_yaml(out) if out.is_file() else None
    if known is None:
        return None
    written = str(known.get("base_url", "")) if isinstance(known, dict) else ""
    written = VARIABLE.sub(lambda name: os.environ.get(name[1], name[0]), written)
    usual = written.rstrip("/").removesuffix("/api/v4")
    shown = re.sub(r"//.*@", "//", usual)  # also of an address that cannot be parsed
    if shown == without_userinfo(address):
        return {**known, "base_url": usual}
    what = f"the profile of {shown}" if shown else "no profile"
    raise UsageError(f"{out} is there, and is {what}. Name another file with --out, so that it is not lost.")


def _settle_seconds(profile: Any) -> float:
    """Return how many seconds reads may lag behind writes, according to a profile as plain data."""
    limits = profile.get("limits") if isinstance(profile, dict) else None
    said = limits.get("settle_seconds") if isinstance(limits, dict) else None
    return said if isinstance(said, int | float) else 0


def _words(program: str) -> list[str]:
    try:
        words = shlex.split(program)
    except ValueError as error:
        raise UsageError(f"--with {program}: {error}.") from error
    if not words:
        raise UsageError("--with must name a program.")
    return words


def _by_program(command: Sequence[str], base_url: str, worlds: int, prefix: str, out: Path) -> int:
    known = _known_in(out, base_url)
    with told_when_stopped(lambda: f"{command[0]} was ended. {out} was not written; what it made is still there."):
        data = provided_by(command, needed(base_url, worlds, prefix, known))
    secrets_file = secrets_beside(out)
    with closing(SecretsFile(secrets_file)) as secrets:
        data = without_secrets({**data, "secrets": secrets_file.name}, prefix, secrets)
    profile_from_yaml(data, out)  # before it replaces a valid one
    write_profile(out, data, secrets_file.name)
    click.echo(
        f"{out}: what {command[0]} made on {base_url}. Tokens and passwords: {secrets_file}, for your eyes only."
    )
    click.echo(f"\nCheck it with: conformance target --check {out}")
    return ExitCode.CONFORMANT


@click.command("sweep")
@click.option("--base-url", required=True, help="Address of the service, above /api/v4.")
@click.option(
    "--admin-token-file", type=PLACE, required=True, help="File that holds an administrator's token and nothing else."
)
@click.option("--prefix", default=PREFIX, show_default=True, help="The prefix that was given to provision.")
@click.option(
    "--target", type=PLACE, help="Profile that says how the service is reached: certificates, proxy, headers."
)
def sweep_command(base_url: str, admin_token_file: Path, prefix: str, target: Path | None) -> int:
    """Remove what `conformance provision` made on a service, and nothing else.

    It is known by the mark in its names: neither the profile nor the list of what was made is needed. Ends with 0, with
    6 when something could not be removed, and with 8 when the service does not show what there is.
    """
    _require_prefix(prefix)
    address, token = base_url_from(base_url, "--base-url"), administrators_token(admin_token_file)
    with Client(settings(address, None, AT_ONCE, target)) as client:
        try:
            with told_when_stopped(lambda: _SWEEP_AGAIN), client.ending_when_interrupted():
                done = sweep(Calls(by_http(client), Made()), token, prefix, _say_removal, AT_ONCE)
        except RefusedError as error:
            raise TargetError(
                f"The service does not list what may have to go: {error}. Is the token an administrator's?"
            ) from error
    left = [removal for removal in done if removal.problem]
    click.echo(f"{len(done) - len(left)} removed, {len(left)} left, on {address}.")
    return ExitCode.INCOMPLETE if left else ExitCode.CONFORMANT


def _say_removal(removal: Removal) -> None:
    click.echo(f"{removal.what}: {removal.problem or 'removed'}", err=bool(removal.problem))


def _require_prefix(prefix: str) -> None:
    """Raise UsageError for a prefix that is not valid in names."""
    if not _PREFIX.fullmatch(prefix):
        raise UsageError(
            f"--prefix '{prefix}' must be a letter, and then letters, digits and dashes: users, groups and the "
            "variables of the secrets are named by it."
        )


def administrators_token(file: Path) -> str:
    """Return the token in a file; raise UsageError when the file has none."""
    token = read_text(file, "the administrator's token").strip()
    if not token or len(token.split()) != 1:
        raise UsageError(f"{file} must hold a token and nothing else.")
    keep_in([token])
    return token


def settings(base_url: str, rate: float | None, concurrency: int, profile: Path | None) -> ClientSettings:
    """Return the settings of a client that prepares a target; a profile of the same address may say how to reach it."""
    data = read_yaml(profile) if profile is not None and profile.is_file() else None
    found = ClientSettings(base_url=base_url, at_once=concurrency)
    if isinstance(data, dict) and data.get("base_url") == base_url and not _WAY.isdisjoint(data):
        # The keys of a gateway are sent to no other address.
        way = {key: data[key] for key in (*_WAY, "secrets") if key in data}
        known = profile_from_yaml({**way, "base_url": base_url, "actors": {}}, profile or Path())
        found = known.client_settings(concurrency)
    return replace(found, requests_per_second=rate)


@contextmanager
def progress(seconds_between_lines: float = 15) -> Iterator[Tell]:
    """Yield a function that shows the progress: a bar on a terminal, which is removed when the work ends or fails."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _in_lines(seconds_between_lines)
        return
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("")

        def tell(stage: str, done: int, steps: int) -> None:
            bar.update(task, description=stage, completed=done, total=steps)

        yield tell


def _in_lines(seconds_between: float) -> Tell:
    told = time.monotonic()

    def tell(stage: str, done: int, steps: int) -> None:
        nonlocal told
        if time.monotonic() - told >= seconds_between:
            told = time.monotonic()
            click.echo(f"{stage}: {done} of {steps} steps", err=True)

    return tell


def write_profile(file: Path, data: Data, secrets: str) -> None:
    """Write a profile; raise UsageError when the file cannot be written."""
    text = yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True)
    with or_usage_error(f"Cannot write the profile {file}"):
        write_whole(file, _HEADING.format(secrets=secrets, name=file.name) + text)


def _say_what_is_lacking(features: Mapping[str, bool]) -> None:
    """Print the features that the profile denies, because a run does not test anything that needs them."""
    lacking = [name for name, has in features.items() if has is False]
    if lacking:
        click.echo("\nThe service does not seem to have these, so a run tests nothing that needs them:")
    for name in lacking:
        click.echo(f"  {name}: {FEATURES[name]}")


def _refusals(refused: Mapping[str, str]) -> Iterator[str]:
    """Yield the refusals in lines: things that were refused alike stand together, and so do those that need them."""
    waiting = [name for name, reason in refused.items() if reason.endswith(NOT_MADE)]
    alike = grouped((_OF_ONE.sub("", reason, 1), name) for name, reason in refused.items() if name not in waiting)
    for reason, names in alike.items():
        yield f"{names[0]}: {refused[names[0]]}" if len(names) == 1 else f"{', '.join(names)}: {reason}"
    if waiting:
        yield f"{', '.join(waiting)}: they need what could not be made"


def _say_what_exports_show(world: World) -> None:
    """Say where the relation of an export is a guess, or is left out."""
    group, relation = world.groups.get("export_group", {}).get("full_path"), exported_relation(world)
    if group and relation is None:
        click.echo(f"\nAn export of {group} has no relation with objects, so export_group is without a `relation`.")
    elif group and relation and (world.exported or {}).get(relation[0]) is None:
        click.echo(f"\nNo export of {group} was seen to finish: whether it has {relation[0]}, a run will show.")


def _say_what_followed_no_push(worlds: Sequence[World]) -> None:
    """Say which merge requests show an older commit than the last one of their branch."""
    for one in (found for world in worlds for found in world.merge_requests.values() if found.get("newer_sha")):
        where = f"GET /projects/{one['project_id']}/merge_requests/{one['iid']}"
        click.echo(
            f"\n{where} shows sha = {one['sha']} after {one['newer_sha']} was pushed to its branch: calls that send "
            "it may be refused."
        )


def _say_what_is_left(left: Sequence[ByHand], refused: Mapping[str, str], unclear: Mapping[str, str]) -> None:
    if refused:
        click.echo("\nThe service refused to make:")
        for line in _refusals(refused):
            click.echo(f"  {line}")
    if "project" in refused:
        click.echo(f"\nWithout `project` most is not tested. Two other ways lead to a profile: {_OTHER_WAYS}.")
    if unclear:
        click.echo("\nNot found, and not seen to be missing. Where the service has none, say so in the profile:")
        for name, reason in unclear.items():
            click.echo(f"  features: {{{name}: false}}  ({reason})")
    if left:
        click.echo("\nNo call makes these. Make them by hand where the service has them, and add them to the profile:")
    for each in left:
        click.echo(f"  {each.title} (unlocks {plural(each.unlocks, 'requirement')})")
        click.echo(f"      {each.how}" + (f" Feature: {each.feature}." if each.feature else ""))
    sys.stdout.flush()
