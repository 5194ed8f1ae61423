"""The command line of the runtime: ``python -m system COMMAND --root DIR``.

A root that cannot be used is reported in one sentence with exit code 2. Ctrl-C lets running
turns end, closes the root, and exits with 130.
"""

from __future__ import annotations

import json
import sys

import click

from system.commands.activities import activities
from system.commands.diff import diff
from system.commands.guarded_output import OutputLost, guard_output
from system.commands.incomplete import incomplete
from system.commands.offline import INTERRUPTED, NO_READER, USAGE, remedy_of, sentence_of
from system.commands.records import records
from system.commands.replay import replay
from system.commands.status import schedules, status
from system.commands.triggers import triggers
from system.demo.operator import run_demo
from system.errors import RuntimeRefused, StorageError
from system.foreign import on_one_line
from system.host import real_host, run
from system.ports import Host
from system.storage.framing import Framing

UNDONE = 1


class Mistake(click.ClickException):
    """A mistake of the user, reported in one sentence."""

    exit_code = USAGE

    def format_message(self) -> str:
        """Return the sentence on one line, whatever names it has."""
        return on_one_line(self.message)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Run durable agents on a directory, and inspect it.

    Exit codes of every command: 0 done, 2 usage, 130 interrupted, 141 the program that reads the
    output has ended. The help of a command lists further ones. An error stream that cannot be
    written changes no exit code.
    """


@cli.command()
@click.option(
    "--root", required=True, metavar="DIR", type=click.Path(),
    help="The directory of the runtime; it is created if it is missing.",
)  # fmt: skip
@click.option(
    "--jobs", default=100, show_default=True, metavar="N", type=click.IntRange(min=1),
    help="Jobs for the team in total, over all runs on this root.",
)  # fmt: skip
@click.option(
    "--framing", default=Framing.FRAMED.value, show_default=True,
    type=click.Choice([framing.value for framing in Framing]),
    help="The framing of event logs; it may change from run to run.",
)  # fmt: skip
def demo(root: str, jobs: int, framing: str) -> None:
    """Run a small team of agents. Kill it at any moment, and start it again.

    Each line reports a durable change, or an agent that waits for the disk. Exit code 1: jobs are
    unfinished.
    """
    if not root:
        raise Mistake("--root is empty; name a directory, '.' is the one you are in")
    # As JSON, so that a name with a line break stays on one line.
    click.echo(f"root {json.dumps(root)}")
    try:
        undone = run(run_demo(_host(root), jobs, Framing(framing), click.echo))
    except KeyboardInterrupt:
        click.echo("interrupted and closed; start it again to continue", err=True)
        click.get_current_context().exit(INTERRUPTED)
    except (RuntimeRefused, StorageError) as refused:
        raise Mistake(f"--root {root}: {refused}") from None
    except OSError as error:
        raise Mistake(
            f"--root {root}: {sentence_of(error)};"
            f" {remedy_of(error, 'repair the disk and start again')}"
        ) from None
    for sentence in undone:
        click.echo(sentence, err=True)
    if undone:
        click.get_current_context().exit(UNDONE)
    click.echo(f"done jobs={jobs}")


for command in (records, replay, incomplete, diff, triggers, schedules, activities, status):
    cli.add_command(command)


def _host(root: str) -> Host:
    try:
        return real_host(root)
    except OSError as error:
        raise Mistake(f"--root {root}: {sentence_of(error)}; name another directory") from None


def main() -> None:
    """Run the command line of this process, and exit."""
    guard_output()
    try:
        cli(prog_name="python -m system")
    except OutputLost as lost:
        if lost.has_no_reader:
            sys.exit(NO_READER)
        click.echo(lost, err=True)
        sys.exit(USAGE)
