"""``docs/planted-bugs.md``: every mutant of this repository, and what finds it.

``python -m crash_tests.mutants.planted_bugs`` searches the mutants that have no figures yet,
or those that it is given by tag, with each of three seeds in one process. It writes figures
and page after each search, so that it can be stopped. ``--page`` writes the page only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, TypeAlias

from powercut.fuzz.campaign.workers import work
from powercut.fuzz.mutant import Mutant, MutantEntry
from powercut.fuzz.mutant_search import search_swarm
from powercut.fuzz.planted_tests import run_tests
from powercut.registry import Registry

SEEDS: Final = (1, 2, 3)
SECONDS: Final = 60
"""The budget of one search, in processor time of one core."""

FIGURES: Final = Path(__file__).with_name("figures.json")
ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "planted-bugs.md"

_COLUMNS: Final = ("mutant", "planted bug", "target", "found by", "runs", "seconds")


class Figures(NamedTuple):
    """One search: the property, empty if nothing failed, and the runs and seconds up to then."""

    found_by: str
    runs: int
    seconds: float


AllFigures: TypeAlias = Mapping[str, Sequence[Figures]]


def read_figures(path: Path = FIGURES) -> dict[str, list[Figures]]:
    """Return the figures of each mutant, one for each seed."""
    measured = json.loads(path.read_text("ascii")) if path.exists() else {}
    return {tag: [Figures(*each) for each in searches] for tag, searches in measured.items()}


def table(mutants: Mapping[str, Mutant], figures: AllFigures) -> str:
    """Return the table of the mutants by tag."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS)]
    rows += [_row(tag, mutant, figures[tag]) for tag, mutant in mutants.items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def page(text: str, mutants: Mapping[str, Mutant], figures: AllFigures) -> str:
    """Return the page, of which ``text`` is an older version, with the table of ``figures``."""
    before, _, _ = text.partition(f"| {_COLUMNS[0]} |")
    return before + table(mutants, figures)


def _row(tag: str, mutant: Mutant, searches: Sequence[Figures]) -> tuple[str, ...]:
    found_by = {each.found_by for each in searches if each.found_by} | reproduced(tag)
    shown = ", ".join(sorted(found_by))
    if mutant.tests:
        return tag, mutant.title, "tests", shown, "", ""
    runs = [str(each.runs) if each.found_by else "-" for each in searches]
    seconds = [f"{each.seconds:.1f}" if each.found_by else "-" for each in searches]
    return tag, mutant.title, str(mutant.target), shown, ", ".join(runs), ", ".join(seconds)


def reproduced(tag: str) -> set[str]:
    """Return the properties in the stored reproducers of a mutant."""
    files = [*ROOT.glob(f"tests/regressions/{tag}.json"), *ROOT.glob(f"tests/regressions/{tag}_*")]
    return {json.loads(file.read_text("utf-8"))["property"] for file in files}


def catalogue(registry: Registry) -> dict[str, Mutant]:
    """Return the registered mutants by tag."""
    return {tag: registry.mutant(tag).mutant for tag in registry.config.mutants}


def main(arguments: Sequence[str]) -> None:
    """Measure, and write figures and page."""
    registry = Registry.here()
    mutants, figures = catalogue(registry), read_figures()
    tags = [argument for argument in arguments if argument in mutants]
    for tag in tags:
        figures.pop(tag, None)
    if "--page" not in arguments:
        for seed in SEEDS:
            for tag in tags or mutants:
                _measure(registry, tag, seed, figures)
    PAGE.write_text(page(PAGE.read_text("ascii"), mutants, figures), "ascii")


def _measure(registry: Registry, tag: str, seed: int, figures: dict[str, list[Figures]]) -> None:
    """Search a mutant with one seed, unless it was, and write its figures beside the others."""
    entry, known = registry.mutant(tag), figures.setdefault(tag, [])
    if len(known) >= (1 if entry.mutant.tests else seed):
        return
    known.append(_searched(entry, seed))
    kept = {each: figures[each] for each in registry.config.mutants if figures.get(each)}
    lines = [f" {json.dumps(each)}: {json.dumps(found)}" for each, found in kept.items()]
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n", "ascii")


def _searched(entry: MutantEntry, seed: int) -> Figures:
    clock = time.process_time
    if entry.mutant.tests:
        (search,) = work(partial(run_tests, clock=clock), [entry], 1)
    else:
        with TemporaryDirectory() as folder:
            search = search_swarm(entry, clock, SECONDS, seed, Path(folder), reduction_seconds=0.01)
    found_by = search.broken if search.found else ""
    return Figures(found_by, search.examples, round(search.seconds, 1))


if __name__ == "__main__":
    main(sys.argv[1:])
