"""``powercut mutants``: plant every known hole in turn, and see whether it is found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from hypothesis import settings
from rich.console import Console

from crash_tests.mutants.registry import MUTANTS, mutant_named
from crash_tests.mutants.search import Row, find_mutant, row_of, rows_table
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import busy, console_beside, json_option, write_json
from powercut.cli.usage import asked_by_user, must_take_json
from powercut.fuzz.profiles import install_profiles
from powercut.fuzz.workers import cores, work


@click.command()
@click.argument("identities", metavar="[ID]...", nargs=-1)
@json_option
def command(identities: tuple[str, ...], json_out: str | None) -> None:
    """Plant every known hole in turn; show what was found, and how soon.

    A planted hole is a part of the built-in system that is wrong in one way, as a row of
    the known holes says. It is searched with the settings of the gate (profile ci). ID is
    such a row; without one, all are planted. A hole that is missed is a blind spot of
    powercut: then the exit code is 4.
    """
    with asked_by_user():
        planted = [mutant_named(identity).identity for identity in identities or MUTANTS]
    if json_out is not None:
        must_take_json(json_out)
    console = console_beside(json_out)
    rows = _searched(console, planted)
    console.print(rows_table(rows))
    missed = [row.identity for row in rows if not row.found]
    if missed:
        console.print(f"missed, so powercut is blind to it: {', '.join(missed)}", soft_wrap=True)
    if json_out is not None:
        write_json(json_out, {"mutants": [row.plain() for row in rows]})
    click.get_current_context().exit(ExitCode.GOAL_MISSED if missed else ExitCode.CLEAN)


def _searched(console: Console, identities: Sequence[str]) -> Sequence[Row]:
    with busy(console, f"planting {len(identities)} holes"):
        # Never in this process, whose settings are not ours.
        found = {row.identity: row for row in work(search, identities, max(2, cores()))}
    return [found[identity] for identity in identities]


def search(identity: str) -> Row:
    """Look for one mutant with the settings of the gate, in a process that does nothing else."""
    with TemporaryDirectory() as folder:
        install_profiles(Path(folder))
        gate = settings.get_profile("ci")
        return row_of(find_mutant(identity, time.perf_counter, gate, Path(folder)))
