"""The command line: ``powercut run``, ``explore``, ``mutants``, ``replay``, ``doctor``.

A command is imported when it is called, so that asking for help is quick and ``replay``
never meets Hypothesis. A user's mistake is one sentence and exit code 2; what the harness
does wrong itself is a traceback to report, and exit code 70.
"""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from typing import Any

import click

from powercut.cli.exit_code import ExitCode

_ABOUT = {
    "run": "Fuzz the whole runtime under crashes; close with a table.",
    "explore": "Crash a small workload at every point, in every way.",
    "mutants": "Plant every known hole in turn; show which were found.",
    "replay": "Run a reproducer again, byte for byte.",
    "doctor": "Show versions, persistence models, and what this machine can do.",
}


class Commands(click.Group):
    """Finds commands by name in ``powercut.cli``, and gives every end its exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names in the order in which help shows them."""
        return list(_ABOUT)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Import one command; None if there is none of that name."""
        if name not in _ABOUT:
            return None
        command = import_module(f"powercut.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_ABOUT.items()))

    def invoke(self, ctx: click.Context) -> Any:  # the type that click itself promises
        """Run a command; see to it that no end of it goes without a word and a code."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
        except Exception:  # noqa: BLE001 - whatever is left is our own failure, and says so
            click.echo(traceback.format_exc(), err=True)
            click.echo(
                "powercut itself failed, and nothing is proven; please report the lines above "
                "and the output of `powercut doctor`",
                err=True,
            )
            ctx.exit(ExitCode.HARNESS_FAILED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Cut the power at every step of a program, and say what it lost.

    Exit codes: 0 clean, 1 a violation was found, 2 usage, 3 a replay diverged, 4 a goal of
    the campaign was missed, 70 powercut itself failed, 130 interrupted.
    """


def main() -> None:
    """Run the command line of this process, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # What the system under test has written may not fit the terminal's encoding.
            stream.reconfigure(errors="backslashreplace")
    cli(prog_name="powercut")
