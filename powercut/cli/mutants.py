"""``powercut mutants``: plant every registered bug in turn, and show which were found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
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
from powercut.cli.usage import (
    TimeRange,
    asked_by_user,
    mistake_of,
    must_take_json,
)
from powercut.counted import counted
from powercut.fuzz.campaign.campaign import note_of_worker
from powercut.fuzz.campaign.workers import cores, work
from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.mutant_search import MutantSearch, search_swarm
from powercut.fuzz.planted_tests import run_tests
from powercut.fuzz.printed import PRINTED
from powercut.fuzz.time_limit import ended_after
from powercut.registry import Registry
from powercut.report.mutants import mutants_table
from sim.errors import HarnessError

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
    results = _Results()
    try:
        with busy(console, f"searching {counted(len(entries), 'mutant')}"):
            _search(results, entries, seconds, seed)
    except KeyboardInterrupt as interrupt:
        for note in getattr(interrupt, "__notes__", ()):
            click.echo(note, err=True)
        raise
    finally:
        searches = [results.searches[each.tag] for each in entries if each.tag in results.searches]
        _show(console, searches, json_out)
        for mistake in results.mistakes:
            click.echo(f"Error: {mistake}", err=True)
    code = ExitCode.CLEAN if all(search.found for search in searches) else ExitCode.GOAL_MISSED
    click.get_current_context().exit(ExitCode.USAGE if results.mistakes else code)


def _show(console: Console, searches: Sequence[MutantSearch], json_out: str | None) -> None:
    """Print the results, and write them to ``json_out``."""
    if not searches:
        return
    console.print(mutants_table(searches))
    for search in searches:
        if search.note:
            console.print(search.note, soft_wrap=True)
    if missed := [search.tag for search in searches if not search.found]:
        console.print(f"missed, so powercut is blind to it: {', '.join(missed)}", soft_wrap=True)
    if json_out is not None:
        write_json(json_out, {"mutants": [search.plain() for search in searches]})


@dataclass(slots=True)
class _Results:
    """The searches that have ended, by their tags, and the sentences of those that cannot begin."""

    searches: dict[str, MutantSearch] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


def _search(results: _Results, entries: Sequence[MutantEntry], seconds: float, seed: int) -> None:
    """Search the mutants; put each result into ``results`` when its search has ended.

    Tests are run first, because they are quick. If those of a mutant cannot be run, no campaign
    begins.
    """
    by_tests = [entry for entry in entries if entry.mutant.tests]
    by_campaign = [entry for entry in entries if not entry.mutant.tests]
    jobs: Sequence[tuple[Callable[[MutantEntry], MutantSearch], Sequence[MutantEntry]]] = (
        # Pytest's plugin of Hypothesis must be loaded before any use of Hypothesis.
        (partial(run_tests, clock=time.perf_counter), by_tests),
        (partial(search_alone, seconds=seconds, seed=seed), by_campaign),
    )
    for function, chosen in jobs:
        # Always in other processes: the settings of this one may differ.
        search = partial(searched, search=function)
        for result in work(search, chosen, max(2, cores()), note_of_worker):
            if isinstance(result, str):
                results.mistakes.append(result)
            else:
                results.searches[result.tag] = result
        if results.mistakes:
            break


def searched(
    entry: MutantEntry, search: Callable[[MutantEntry], MutantSearch]
) -> MutantSearch | str:
    """Search a mutant; return the result, or the sentence for one that cannot be searched."""
    try:
        with redirect_stdout(PRINTED), redirect_stderr(PRINTED):
            return search(entry)
    except HarnessError as failure:
        mistake = mistake_of(failure)
        if not mistake:
            raise
        return f"mutant {entry.tag!r}: {mistake}"


def search_alone(entry: MutantEntry, seconds: float, seed: int) -> MutantSearch:
    """Search one mutant, in a process that does nothing else."""
    with TemporaryDirectory() as folder:
        if find_spec("hypothesis") is not None:
            # Otherwise the reduction by Hypothesis leaves files in the current directory.
            import_module("powercut.fuzz.hypothesis_settings").install_profiles(Path(folder))
        return search_swarm(
            entry, time.perf_counter, seconds, seed, Path(folder), within=ended_after
        )
