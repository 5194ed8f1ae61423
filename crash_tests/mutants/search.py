"""Plant a known hole, and see whether its machine finds it: the harness, judged.

``find_mutant`` fuzzes the machine that the hole belongs to, on the part of the system
that has it. A mutant that survives is a blind spot of the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import assert_never

from hypothesis import settings
from rich import box
from rich.table import Table

from crash_tests.mutants.mutant import LogMutant, Mutant, RuntimeMutant, StoreMutant
from crash_tests.mutants.registry import mutant_named
from crash_tests.targets.event_log import EventLogTarget
from crash_tests.targets.runtime import RuntimeTarget
from crash_tests.targets.session_store import SessionStoreTarget
from powercut.fuzz.action import Json
from powercut.fuzz.drivers.hypothesis_driver import Finding, fuzz
from powercut.fuzz.finding import name_of
from powercut.fuzz.target import AnyTarget
from powercut.report.reproducer import FAILURES


@dataclass(frozen=True, slots=True)
class Search:
    """How the search for one mutant went.

    ``examples`` is how many runs it took to meet the first failure, or how many there were
    without one. ``seconds`` is all the time, shrinking included. ``finding`` is the
    failure, shrunk, or None: the harness is blind to this hole.
    """

    mutant: Mutant
    examples: int
    seconds: float
    finding: Finding | None

    @property
    def steps(self) -> int:
        """How many actions the shrunk story has; 0 if there is none."""
        return len(self.finding.target_run.steps) if self.finding else 0


def subject_of(mutant: Mutant) -> AnyTarget:
    """Return a fresh target: the mutant, with the shadow of the part it stands for."""
    match mutant:
        case LogMutant():
            return EventLogTarget(mutant.machine, mutant.build)
        case StoreMutant():
            return SessionStoreTarget(mutant.machine, mutant.build)
        case RuntimeMutant():
            return RuntimeTarget(mutant.machine, recover=mutant.build)
        case _:
            assert_never(mutant)


def find_mutant(
    identity: str,
    clock: Callable[[], float],
    budget: settings | None = None,
    folder: Path = FAILURES,
) -> Search:
    """Look for one mutant; ``budget`` left out is the current profile.

    ``clock`` tells seconds. Reproducers are written to ``folder``. Raises ``HarnessError``
    for an identity that is not known.
    """
    mutant = mutant_named(identity)
    start = clock()
    campaign = fuzz(partial(subject_of, mutant), budget=budget, folder=folder)
    finding = campaign.findings[0] if campaign.findings else None
    examples = campaign.runs_to_failure or campaign.tally.runs
    return Search(mutant, examples, clock() - start, finding)


@dataclass(frozen=True, slots=True)
class Row:
    """A search as the table shows it; ``broken`` is the property that was violated, or empty."""

    identity: str
    title: str
    found: bool
    examples: int
    seconds: float
    steps: int
    broken: str

    def plain(self) -> dict[str, Json]:
        """Return what ``--json`` promises."""
        return {
            "id": self.identity,
            "found": self.found,
            "examples": self.examples,
            "seconds": round(self.seconds, 3),
            "steps": self.steps,
        }


def row_of(search: Search) -> Row:
    """Return the row of a search."""
    finding = search.finding
    return Row(
        search.mutant.identity,
        search.mutant.title,
        finding is not None,
        search.examples,
        search.seconds,
        search.steps,
        name_of(finding.failure) if finding else "",
    )


def rows_table(rows: Iterable[Row]) -> Table:
    """Return a table: what was found, how soon, and how short its story is."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("hole")
    table.add_column("")
    for heading in ("examples", "seconds", "steps"):
        table.add_column(heading, justify="right")
    table.add_column("property")
    for row in rows:
        table.add_row(
            row.identity,
            row.title,
            "found" if row.found else "MISSED",
            str(row.examples),
            f"{row.seconds:.1f}",
            str(row.steps) if row.found else "",
            row.broken,
        )
    return table
