"""The result of an exploration under each persistence model: as a table and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rich import box
from rich.table import Table
from rich.text import Text

from faults.crash_point import CrashKind, Phase
from oracles.violation import Violation, shown
from powercut.crash_text import lost_lines, names_at
from powercut.explorer.verdicts import Exploration, Failure
from powercut.fuzz.action import Json
from sim.disk.crash.unsynced import Unsynced

Verdicts: TypeAlias = Mapping[str, Exploration]
"""One exploration for each persistence model, by its name."""


def exploration_table(verdicts: Verdicts) -> Table:
    """Return a table with one row for each model."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("model", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("states", justify="right", no_wrap=True)
    table.add_column("unsafe", justify="right", no_wrap=True)
    table.add_column("how", no_wrap=True)
    table.add_column("first failure")
    for name, found in verdicts.items():
        table.add_row(
            name,
            Text("safe", "green") if found.safe else Text("unsafe", "bold red"),
            f"{found.states:,}",
            f"{found.failed:,}",
            "exhaustive" if found.exhaustive else "sampled",
            Text("" if found.safe else _short(found.failures[0])),
        )
    return table


def verdict_line(verdicts: Verdicts) -> str:
    """Return the verdict in one line that names the models."""
    safe = [name for name, found in verdicts.items() if found.safe]
    unsafe = [name for name, found in verdicts.items() if not found.safe]
    parts = []
    if safe:
        parts.append(f"safe on {_listed(safe)}")
    if unsafe:
        parts.append(f"unsafe on {_listed(unsafe)}")
    return "; ".join(parts)


def failure_lines(verdicts: Verdicts) -> Iterator[str]:
    """Yield the first failure under the strongest model that has one, with its evidence."""
    for name, found in verdicts.items():
        if found.safe:
            continue
        failure = found.failures[0]
        violation = failure.violation
        yield f"FAILED  {violation.property_name}  on {name}"
        yield f"  {violation.statement}"
        for number, point in enumerate(failure.crashes, 1):
            lifetime = "in the workload" if number == 1 else f"in recovery {number - 1}"
            yield f"  crash {number}, {lifetime}: operation {point}"
            if number == 1:
                yield from (f"    {line}" for line in explanation(found, failure))
        yield from _evidence(violation)
        return


def explanation(found: Exploration, failure: Failure) -> Iterator[str]:
    """Yield the operation at which the workload was crashed, and each loss of the crash."""
    workload, point = found.workload, failure.crashes[0]
    journal = workload.journal
    if not journal:
        yield "before any operation"
        return
    operation = journal[point.operation - 1]
    yield f"{point.phase} {type(operation).__name__.lower()} {operation.path or 'everything'}"
    if point.kind is CrashKind.POWER_CUT:
        done = point.operation - (point.phase is Phase.BEFORE)
        unsynced = Unsynced(found.model, journal.image.platter, journal.image.unsynced)
        for number, each in enumerate(journal[:done], 1):
            unsynced.advance(each, number)
        names = names_at(journal, done)
        yield from lost_lines(unsynced.micros, point.survivors, names, workload.places)


def plain_models(explored: Iterable[Verdicts]) -> dict[str, Json]:
    """Return the verdict on each model over several explorations."""
    models: dict[str, list[Exploration]] = {}
    for verdicts in explored:
        for name, found in verdicts.items():
            models.setdefault(name, []).append(found)
    return {name: _together(several) for name, several in models.items()}


def _together(several: Sequence[Exploration]) -> dict[str, Json]:
    failures = [found.failures[0] for found in several if not found.safe]
    return {
        "safe": not failures,
        "states": sum(found.states for found in several),
        "exhaustive": all(found.exhaustive for found in several),
        "first_failure": _plain_failure(failures[0]) if failures else None,
    }


def _plain_failure(failure: Failure) -> dict[str, Json]:
    return {
        "property": failure.violation.property_name,
        "statement": failure.violation.statement,
        "crashes": [str(point) for point in failure.crashes],
    }


def _short(failure: Failure) -> str:
    crashes = ", then ".join(str(point) for point in failure.crashes)
    return f"{failure.violation.property_name} at {crashes}"


def _evidence(violation: Violation) -> Iterator[str]:
    width = max(map(len, violation.evidence), default=0)
    for name, value in violation.evidence.items():
        yield f"  {name:{width}}  {shown(value)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
