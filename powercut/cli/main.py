"""The command line: ``powercut run``, ``explore``, ``mutants``, ``replay`` and others.

Each command is imported when it is called, so that help is quick and ``replay`` does not
import Hypothesis. A mistake of the user is one sentence and exit code 2. An exception of
powercut itself is a traceback to report, and exit code 70.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import FrameType
from typing import Any

import click

from powercut.cli.exit_code import ExitCode
from powercut.cli.interruption import once
from powercut.guarded_output import OutputLost, guard_output

_ABOUT = {
    "run": "Fuzz the registered targets under crashes and faults.",
    "explore": "Crash a workload at every operation, under every model.",
    "mutants": "Plant every registered bug in turn; show which were found.",
    "replay": "Repeat a failure of run or explore.",
    "try": "Crash any program everywhere, and check the files that are left.",
    "confirm": "Repeat a finding of try on real file systems.",
    "record": "Run any program on a simulated disk; save its journal.",
    "show": "List the operations of a recording.",
    "calibrate": "Compare the persistence models with this kernel.",
    "doctor": "Show versions, persistence models and missing extras.",
}

_MODULES = {"try": "try_program"}
"""The modules of commands whose name no module can have."""

_REPEATED_AFTER_S = 0.01

_ENDS = (signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command as Ctrl-C does: a request, and a terminal that is closed."""

_STDIN, _STDOUT, _STDERR = range(3)


class Commands(click.Group):
    """The commands of ``powercut.cli``, each in the module of its name."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names in the order of the help page."""
        return list(_ABOUT)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Import a command; return None if there is none of that name."""
        if name not in _ABOUT:
            return None
        command = import_module(f"powercut.cli.{_MODULES.get(name, name)}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_ABOUT.items()))

    def invoke(self, ctx: click.Context) -> Any:  # the type that click itself declares
        """Run a command; turn every exception into a message and an exit code."""
        try:
            # Without a current directory, not even the modules of a command can be imported.
            _check_current_directory()
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
        except SystemExit as left:
            click.echo(f"Error: the program under test called sys.exit({left.code!r})", err=True)
            ctx.exit(ExitCode.USAGE)
        except Exception as failure:
            mistake = import_module("powercut.cli.usage").mistake_of(failure)
            if mistake:
                click.echo(f"Error: {mistake}", err=True)
                ctx.exit(ExitCode.USAGE)
            click.echo(traceback.format_exc(), err=True)
            click.echo(
                "powercut itself failed, and nothing is proven; please report the lines above "
                "and the output of `powercut doctor`",
                err=True,
            )
            raise click.exceptions.Exit(ExitCode.INTERNAL_ERROR) from failure


def _check_current_directory() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise click.UsageError("the current directory was removed; change to another") from None


def _version(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        try:
            click.echo(f"powercut {version('powercut')}")
        except PackageNotFoundError:
            click.echo("powercut (not installed: a checkout)")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Crash a program at every operation of its disk, and check the data that is left.

    Exit codes: 0 clean, 1 a violation was found, 2 usage, 3 a replay diverged, 4 a goal was
    missed or no verdict reached, 70 powercut itself failed, 130 interrupted, 141 the program
    that reads the output has ended.
    """


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End as after Ctrl-C."""
    raise KeyboardInterrupt


def _repeat_interrupt(ignored: sys.UnraisableHookArgs) -> None:
    """Interrupt again if Python has ignored an interrupt, as it does in a ``__del__``."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, _REPEATED_AFTER_S)


def _open_standard_streams() -> None:
    """Open ``/dev/null`` where a standard stream is closed: no other file may get its number."""
    for number in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            assert opened == number, "a descriptor gets the lowest free number"
            os.set_inheritable(number, True)
    sys.stdout = sys.stdout or os.fdopen(_STDOUT, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(_STDERR, "w", closefd=False)


def main() -> None:
    """Run the command line of this process, and exit."""
    _open_standard_streams()
    sys.unraisablehook = _repeat_interrupt
    guard_output()
    interrupt = once(_interrupt)
    for number in (signal.SIGINT, *_ENDS):
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            signal.signal(number, interrupt)
    try:
        try:
            cli(prog_name="powercut")
        finally:
            sys.stdout.flush()
    except OutputLost as lost:
        if lost.has_no_reader:
            sys.exit(ExitCode.NO_READER)
        click.echo(f"Error: {lost}", err=True)
        sys.exit(ExitCode.USAGE)
