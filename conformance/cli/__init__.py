"""The command line: `conformance run`, and everything around it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from conformance import __version__
from conformance.cli.baseline import baseline
from conformance.cli.contract import contract, coverage, explain, requirements
from conformance.cli.prove import prove
from conformance.cli.provision import provision_command, sweep_command
from conformance.cli.report import diff, history, merge, report
from conformance.cli.restore import restore
from conformance.cli.run import run
from conformance.cli.several import compare
from conformance.cli.target import serve, target
from conformance.cli.versions import lint_traffic, readiness
from conformance.errors import ConformanceError, ExitCode
from conformance.http.redaction import GuardedStream

#: What a shell calls a command that was ended by a reader who went away: no verdict, and none of ours.
_READER_GONE = 141


class _Commands(click.Group):
    """The commands; whoever reads their output may go away, as `head` does, which changes no verdict."""

    def invoke(self, ctx: click.Context) -> object:
        """Let a command run, and return its exit code; click itself would end with 1."""
        try:
            code = super().invoke(ctx)
        except BrokenPipeError:
            code = _READER_GONE
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            # Python would try once more at its end, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="conformance")
def commands() -> None:
    """
    Hold a service against the specification of the Project Automation API.

    Exit codes: 0 conformant, 1 non-conformant, 2 interrupted, 3 pytest broke, 4 wrong call or profile,
    5 nothing ran, 6 incomplete (nothing failed, but not everything could be verified), 7 the suite itself broke,
    8 could not run.

    Every option may also be set by a variable of the environment: CONFORMANCE_RUN_SEED for `run --seed`.
    """


for _command in (
    run,
    report,
    merge,
    diff,
    history,
    compare,
    baseline,
    restore,
    coverage,
    requirements,
    explain,
    contract,
    target,
    provision_command,
    sweep_command,
    serve,
    prove,
    readiness,
    lint_traffic,
):
    commands.add_command(_command)
    for _option in _command.params:
        if isinstance(_option, click.Option):
            # By the name that an operator writes: click itself would take that of the argument of the function.
            _name = max(_option.opts, key=len).strip("-").replace("-", "_")
            _option.envvar = f"CONFORMANCE_{_command.name}_{_name}".replace("-", "_").upper()


def main() -> None:
    """Run the command line; every foreseeable mistake ends with one message and its exit code."""
    sys.stdout, sys.stderr = GuardedStream(sys.stdout), GuardedStream(sys.stderr)
    try:
        code = commands.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(ExitCode.INTERRUPTED)
    except ConformanceError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        where = f" ({Path(str(error.filename))})" if error.filename else ""
        click.echo(f"Error: {error.strerror or error}{where}.", err=True)
        sys.exit(ExitCode.USAGE)
    sys.exit(code if isinstance(code, int) else 0)
