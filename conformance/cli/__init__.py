"""The command line: `conformance run`, and everything around it."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path

import click
from click.core import ParameterSource

from conformance import __version__
from conformance.errors import ConformanceError, ExitCode, StoppedError
from conformance.http.redaction import GuardedStream

#: The shell's exit code for a command whose reader went away; it is neither a verdict nor one of ours.
_READER_GONE = 141
#: The standard streams, in the order of their file descriptors.
_STANDARD = ("stdin", "stdout", "stderr")
#: Options of pytest that users often pass to `run` by mistake.
_OF_PYTEST = frozenset({"-k", "-m", "-x", "--maxfail", "--lf", "--deselect", "--pdb", "--collect-only", "-s", "-n"})


#: The module of each command. It is loaded when the command runs, because loading all of them takes half a second.
_MODULES = {
    "baseline": "baseline",
    "compare": "several",
    "contract": "contract",
    "coverage": "contract",
    "diff": "report",
    "explain": "contract",
    "history": "report",
    "lint-traffic": "versions",
    "merge": "report",
    "prove": "prove",
    "provision": "provision",
    "readiness": "versions",
    "report": "report",
    "requirements": "contract",
    "restore": "restore",
    "run": "run",
    "serve": "target",
    "sweep": "provision",
    "target": "target",
}


class _Commands(click.Group):
    """The commands. The reader of their output may go away, as `head` does; this changes no verdict."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, with environment variables for its options; None when there is none."""
        del ctx
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"{__name__}.{_MODULES[cmd_name]}")
        there = (each for each in vars(module).values() if isinstance(each, click.Command))
        command = next(each for each in there if each.name == cmd_name)
        for option in command.params:
            if isinstance(option, click.Option):
                # Named after the option that an operator writes; click would use the name of the function's argument.
                name = max(option.opts, key=len).strip("-")
                option.envvar = f"CONFORMANCE_{cmd_name}_{name}".replace("-", "_").upper()
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command and return its exit code; click itself would end with 1."""
        try:
            code = super().invoke(ctx)
        except BrokenPipeError:
            code = _READER_GONE
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _write_no_more()
        return code


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="conformance")
def commands() -> None:
    """Hold a service against the specification of the Project Automation API.

    Exit codes: 0 conformant, 1 non-conformant, 2 interrupted, 3 pytest broke, 4 wrong call or profile,
    5 nothing ran, 6 incomplete (nothing failed, but not everything could be verified), 7 the suite itself broke,
    8 could not run, 143 terminated.

    Every option may also be set by a variable of the environment: CONFORMANCE_RUN_SEED for `run --seed`.
    """


def _open_what_is_closed() -> None:
    """Open /dev/null for standard streams that were closed, as by `>&-`, so that no other file gets their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) < len(_STANDARD):
        os.set_inheritable(number, True)
    os.close(number)
    for number, name in enumerate(_STANDARD):
        if getattr(sys, name) is None:
            stream = os.fdopen(number, "r" if name == "stdin" else "w", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)  # pytest falls back on these


def _write_no_more() -> None:
    """Redirect standard output to /dev/null; otherwise Python would try to flush it at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _name_the_variable(error: click.ClickException) -> None:
    """In an error about a value from the environment, name the variable, because it is not on the command line."""
    parameter, context = getattr(error, "param", None), getattr(error, "ctx", None)
    if not isinstance(error, click.BadParameter) or parameter is None or context is None:
        return
    if context.get_parameter_source(parameter.name) is ParameterSource.ENVIRONMENT:
        error.param_hint = f"{parameter.envvar} in the environment, which stands for {max(parameter.opts, key=len)}"


def main() -> None:
    """Run the command line; every foreseeable mistake ends with one message and its exit code."""
    _open_what_is_closed()
    sys.stdout, sys.stderr = GuardedStream(sys.stdout), GuardedStream(sys.stderr)
    try:
        code = commands.main(standalone_mode=False)
    except click.ClickException as error:
        _name_the_variable(error)
        error.show()
        if isinstance(error, click.NoSuchOption) and error.option_name in _OF_PYTEST:
            click.echo(f"Options of pytest stand behind `--`: conformance run -- {error.option_name} ...", err=True)
        sys.exit(ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(ExitCode.INTERRUPTED)
    except ConformanceError as error:
        click.echo(str(error) if isinstance(error, StoppedError) else f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.ENOSPC and not error.filename:
            _write_no_more()
            click.echo("Error: what was to be printed could not be written: standard output is full.", err=True)
            sys.exit(ExitCode.SUITE_BROKE)
        where = f" ({Path(str(error.filename))})" if error.filename else ""
        click.echo(f"Error: {error.strerror or error}{where}.", err=True)
        sys.exit(ExitCode.USAGE)
    except Exception as error:  # noqa: BLE001 - Python would end with 1, which says that a target is not conformant
        at = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(at.filename).name}, line {at.lineno}"
        click.echo(f"Error: the suite itself broke, in {place}: {type(error).__name__}: {error}.", err=True)
        sys.exit(ExitCode.SUITE_BROKE)
    sys.exit(code if isinstance(code, int) else 0)
