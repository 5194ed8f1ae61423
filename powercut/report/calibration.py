"""The report of ``powercut calibrate``: a table, and the programs that contradict a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rich import box
from rich.table import Table

from powercut.calibrate.row import ObservedOutcome, Row
from powercut.calibrate.tally import Contradiction, Counts
from powercut.counted import counted

_MOST_OUTCOMES: Final = 3


def counts_table(counts: Mapping[str, Counts], models: Mapping[str, str]) -> Table:
    """Return a table with a row for each file system; ``models`` are their models' names."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("file system", "model", "kernel"):
        table.add_column(heading, no_wrap=True)
    for heading in ("programs", "images", "outcomes", "forbidden", "errno differs"):
        table.add_column(heading, justify="right")
    for name, its in counts.items():
        numbers = (its.programs, its.images, its.outcomes, its.forbidden, its.differing)
        table.add_row(name, models[name], ", ".join(its.kernels), *(f"{n:,}" for n in numbers))
    return table


def note_lines(counts: Mapping[str, Counts]) -> Iterator[str]:
    """Yield a line for each file system with images that say nothing about the model."""
    for name, its in counts.items():
        if its.refused:
            yield f"{name}: {its.refused} of {counted(its.images, 'crash image')} were not mounted"
        if its.unreadable:
            yield f"{name}: {counted(its.unreadable, 'outcome')} with a file that cannot be read"


def contradiction_lines(found: Contradiction, programs: int) -> Iterator[str]:
    """Yield the story of a contradiction; ``programs`` have the same cause."""
    row = found.row
    verb = "forbids outcomes" if found.forbidden else "has another errno"
    yield f"{row['fs']}: {found.model} {verb} of {counted(programs, 'program')}; {found.cause}"
    yield f"  seed {row['seed']}, kernel {row['kernel']}"
    yield from _call_lines("set-up", row["setup"])
    yield from _call_lines("calls", row["ops"])
    for observed in found.forbidden[:_MOST_OUTCOMES]:
        yield from _outcome_lines(row, observed)
    others = len(found.forbidden) - _MOST_OUTCOMES
    if others > 0:
        yield f"  and {others} more outcomes"


def _call_lines(title: str, calls: Iterable[Iterable[str | int]]) -> Iterator[str]:
    for number, call in enumerate(calls, 1):
        words = " ".join(str(argument) if argument != "" else "." for argument in call)
        yield f"  {title if number == 1 else '':7} {number}. {words}"


def _outcome_lines(row: Row, observed: ObservedOutcome) -> Iterator[str]:
    moment = f"after call {observed['k']}" if observed["k"] else "before call 1"
    if observed["k"] < len(row["ops"]):
        moment += " or during the next" if observed["k"] else " or during it"
    tree = ", ".join(f"{path}: {text}" for path, text in observed["out"].items()) or "an empty tree"
    yield f"  power cut {moment} left {tree}"
