"""``powercut mutants``: plant every registered bug in turn, and show which were found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from rich.console import Console

from powercut.cli.command import Command
from powercut.cli.completion import complete_tags
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import busy, console_beside, json_option, write_json
from powercut.cli.usage import TimeRange, asked_by_user, must_take_json
from powercut.counted import counted
from powercut.fuzz.campaign.workers import cores, work
from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.mutant_search import MutantSearch, search_swarm
from powercut.fuzz.planted_tests import run_tests
from powercut.registry import Registry
from powercut.report.mutants import mutants_table

_SECONDS: Final = 60


@click.command(cls=Command)
@click.argument("tags", metavar="[MUTANT]...", nargs=-1, shell_complete=complete_tags("mutants"))
@click.option(
    "--seconds",
    type=TimeRange(),
    default=_SECONDS,
    show_default=True,
    metavar="S",
    help="Search each mutant for this time.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of all choices; an equal seed finds a mutant in the same run.",
)
@json_option
def command(tags: tuple[str, ...], seconds: float, seed: int, json_out: str | None) -> None:
    """Plant every known bug in turn; show which were found, and how soon.

    MUTANT is a tag of [tool.powercut.mutants] or module:object: a correct system with one
    known bug planted. Without one, all registered mutants are searched. A bug that is not
    found, or only by an unrelated failure, is a blind spot of its target: then the exit
    code is 4. Of a bug that no campaign can reach, the tests that it names must fail.
    """
    with asked_by_user():
        registry = Registry.here()
        entries = [registry.mutant(tag) for tag in tags] if tags else registry.all_mutants()
    if json_out is not None:
        must_take_json(json_out)
    console = console_beside(json_out)
    searches = _searched(console, entries, seconds, seed)
    console.print(mutants_table(searches))
    missed = [search.tag for search in searches if not search.found]
    if missed:
        console.print(f"missed, so powercut is blind to it: {', '.join(missed)}", soft_wrap=True)
    if json_out is not None:
        write_json(json_out, {"mutants": [search.plain() for search in searches]})
    click.get_current_context().exit(ExitCode.GOAL_MISSED if missed else ExitCode.CLEAN)


def _searched(
    console: Console, entries: Sequence[MutantEntry], seconds: float, seed: int
) -> Sequence[MutantSearch]:
    by_tests = [entry for entry in entries if entry.mutant.tests]
    by_campaign = [entry for entry in entries if not entry.mutant.tests]
    jobs: Sequence[tuple[Callable[[MutantEntry], MutantSearch], Sequence[MutantEntry]]] = (
        (partial(search_alone, seconds=seconds, seed=seed), by_campaign),
        # Pytest's plugin of Hypothesis must be loaded before any use of Hypothesis.
        (partial(run_tests, clock=time.perf_counter), by_tests),
    )
    with busy(console, f"searching {counted(len(entries), 'mutant')}"):
        # Always in other processes: the settings of this one may differ.
        found = {
            search.tag: search
            for function, chosen in jobs
            for search in work(function, chosen, max(2, cores()))
        }
    return [found[entry.tag] for entry in entries]


def search_alone(entry: MutantEntry, seconds: float, seed: int) -> MutantSearch:
    """Search one mutant, in a process that does nothing else."""
    with TemporaryDirectory() as folder:
        if find_spec("hypothesis") is not None:
            # Otherwise the reduction by Hypothesis leaves files in the current directory.
            import_module("powercut.fuzz.hypothesis_settings").install_profiles(Path(folder))
        return search_swarm(entry, time.perf_counter, seconds, seed, Path(folder))
