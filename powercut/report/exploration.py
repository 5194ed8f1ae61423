"""The result of an exploration under each persistence model: as a table and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2
from typing import Final, TypeAlias

from rich import box
from rich.table import Table
from rich.text import Text

from powercut.explorer.cause import Diagnosis
from powercut.explorer.verdicts import HOWS, Exploration, Failure
from powercut.fuzz.action import Json
from powercut.report.findings import listed

Verdicts: TypeAlias = Mapping[str, Exploration]
"""One exploration for each persistence model, by its name."""


_LARGE: Final = 1 << 20

_PASSED: Final = dict(
    zip(
        HOWS,
        (
            "stopped before a failure",
            "no failure in a sample",
            "safe without torn sectors",
            "safe with at most 1 torn sector",
            "safe",
        ),
        strict=True,
    )
)
"""The verdict on models without a failure, by how their states were checked."""

_UNSAFE: Final = "unsafe"


def exploration_table(diagnosis: Diagnosis) -> Table:
    """Return a table with one row for each model."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("model", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    is_lazy = any(found.is_lazy for found in diagnosis.explorations.values())
    table.add_column("states", justify="right", no_wrap=True)
    if is_lazy:
        table.add_column("executions", justify="right", no_wrap=True)
        table.add_column("survivor sets", justify="right", no_wrap=True)
    table.add_column("unsafe", justify="right", no_wrap=True)
    table.add_column("how", no_wrap=True)
    table.add_column("violations")
    for name, found in diagnosis.explorations.items():
        executions = (f"{found.states:,}", _count(found.decided)) if is_lazy else ()
        table.add_row(
            name,
            _verdict(found),
            "" if found.is_lazy else f"{found.states:,}",
            *executions,
            f"{found.failed:,}",
            found.how,
            ", ".join(_properties(diagnosis, name)),
        )
    within = _within(diagnosis.explorations.values())
    if within:
        table.caption = (
            "executed within the check, because it writes, reads what the check has written, or "
            f"raises an exception: {listed(within)}"
        )
        table.caption_justify = "left"
    return table


def _within(several: Iterable[Exploration]) -> list[str]:
    """Return the recovery units that have no tree of their own at some crash."""
    return list(dict.fromkeys(unit for found in several for unit in found.within))


def _count(survivor_sets: int) -> str:
    """Return a number of survivor sets, a large one as a power of two; empty for 0."""
    if survivor_sets < _LARGE:
        return f"{survivor_sets:,}" if survivor_sets else ""
    return f"2^{log2(survivor_sets):.1f}"


def _verdict(found: Exploration) -> Text:
    if not found.safe:
        return Text(_UNSAFE, "bold red")
    return Text("unknown", "yellow") if found.stopped else Text("safe", "green")


def _properties(diagnosis: Diagnosis, model: str) -> dict[str, None]:
    """Return the violated properties of all causes that have failures under this model."""
    return dict.fromkeys(
        cause.failures[model][0].violation.property_name
        for cause in diagnosis.causes
        if model in cause.failures
    )


def verdict_line(diagnosis: Diagnosis) -> str:
    """Return one line with the models of each verdict, and which verdicts are from a sample."""
    models: dict[str, list[str]] = {}
    for name, found in diagnosis.explorations.items():
        models.setdefault(_PASSED[found.how] if found.safe else _UNSAFE, []).append(name)
    order = [*map(_PASSED.__getitem__, reversed(HOWS)), _UNSAFE]
    return "; ".join(f"{each} on {listed(models[each])}" for each in order if each in models)


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
        "safe": not failures and not any(found.stopped for found in several),
        "states": sum(found.states for found in several),
        "executions": sum(found.states for found in several),
        "survivor_sets": sum(found.decided for found in several) or None,
        "exhaustive": all(found.exhaustive for found in several),
        "how": min((found.how for found in several), key=HOWS.index),
        "within": _within(several),
        "stopped": any(found.stopped for found in several),
        "first_failure": _plain_failure(failures[0]) if failures else None,
    }


def _plain_failure(failure: Failure) -> dict[str, Json]:
    return {
        "property": failure.violation.property_name,
        "statement": failure.violation.statement,
        "crashes": [str(point) for point in failure.crashes],
    }
