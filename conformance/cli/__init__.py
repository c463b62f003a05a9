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
from conformance.errors import ConformanceError, ExitCode
from conformance.http.redaction import GuardedStream

#: What a shell calls a command that was ended by a reader who went away: no verdict, and none of ours.
_READER_GONE = 141
#: The standard streams, in the order of their numbers.
_STANDARD = ("stdin", "stdout", "stderr")
#: Options of pytest that are looked for among those of `run`.
_OF_PYTEST = frozenset({"-k", "-m", "-x", "--maxfail", "--lf", "--deselect", "--pdb", "--collect-only", "-s", "-n"})


#: In which module of this package each command is. It is loaded when it is called: all together take half a second.
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
    """The commands; whoever reads their output may go away, as `head` does, which changes no verdict."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; None when there is none. Its options get their variables of the environment."""
        del ctx
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"{__name__}.{_MODULES[cmd_name]}")
        there = (each for each in vars(module).values() if isinstance(each, click.Command))
        command = next(each for each in there if each.name == cmd_name)
        for option in command.params:
            if isinstance(option, click.Option):
                # By the name that an operator writes: click itself would take that of the argument of the function.
                name = max(option.opts, key=len).strip("-")
                option.envvar = f"CONFORMANCE_{cmd_name}_{name}".replace("-", "_").upper()
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Let a command run, and return its exit code; click itself would end with 1."""
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
    """
    Hold a service against the specification of the Project Automation API.

    Exit codes: 0 conformant, 1 non-conformant, 2 interrupted, 3 pytest broke, 4 wrong call or profile,
    5 nothing ran, 6 incomplete (nothing failed, but not everything could be verified), 7 the suite itself broke,
    8 could not run, 143 terminated.

    Every option may also be set by a variable of the environment: CONFORMANCE_RUN_SEED for `run --seed`.
    """


def _open_what_is_closed() -> None:
    """Let standard streams that were closed, as by `>&-`, lead nowhere: no other file may get their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) < len(_STANDARD):
        os.set_inheritable(number, True)
    os.close(number)
    for number, name in enumerate(_STANDARD):
        if getattr(sys, name) is None:
            stream = os.fdopen(number, "r" if name == "stdin" else "w", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)  # which pytest falls back on


def _write_no_more() -> None:
    """Let standard output lead nowhere: Python would try once more at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _name_the_variable(error: click.ClickException) -> None:
    """Let a message about a value say from which variable of the environment it is, where nobody wrote it down here."""
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
        click.echo(f"Error: {error}", err=True)
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
