"""``python -m benchmarks [NAME...] [--json FILE]`` measures rows and their goals."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from benchmarks import (
    atomic_write,
    collected_agents,
    due_triggers,
    durable_triggers,
    explore,
    fuse,
    interpose,
    lazy,
    plugin,
    reclaimed_triggers,
    recording,
    runtime_crashes,
    runtime_recovery,
    runtime_step,
    runtime_turns,
    schedules,
    sqlite,
)
from benchmarks.own_process import rows_of
from benchmarks.row import Row
from benchmarks.yardstick import additions_per_second

_MODULES: Final = {
    module.__name__.rpartition(".")[2].replace("_", "-"): module
    for module in (
        atomic_write,
        explore,
        sqlite,
        lazy,
        schedules,
        runtime_step,
        runtime_turns,
        runtime_recovery,
        collected_agents,
        reclaimed_triggers,
        durable_triggers,
        due_triggers,
        runtime_crashes,
        recording,
        interpose,
        fuse,
        plugin,
    )
}
# By the name of the package that is imported.
_PEERS: Final[Mapping[str, str]] = {
    "dbos": "dbos",
    "langgraph": "langgraph-checkpoint-sqlite",
    "pyfakefs": "pyfakefs",
    "simloom": "simloom",
}


def rows(names: Sequence[str], speeds: list[float]) -> Iterator[Row]:
    """Yield the rows of these modules, of all if none is named.

    ``speeds`` receives the speed of Python before each module and at the end.
    """
    for name in names or _MODULES:
        speeds.append(additions_per_second())
        yield from rows_of(_MODULES[name])
    speeds.append(additions_per_second())


def not_installed() -> list[str]:
    """Return the peers that are not installed, whose rows are omitted."""
    return [name for package, name in _PEERS.items() if find_spec(package) is None]


def _table(measured: list[Row], speeds: list[float]) -> Table:
    slowest, fastest = min(speeds) / 1e6, max(speeds) / 1e6
    table = Table(
        title=f"Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{slowest:.0f} to {fastest:.0f} million additions a second"
    )
    for column in ("what", "ours", "beside", "ratio", "goal", "holds", "note"):
        table.add_column(column)
    for row in measured:
        table.add_row(
            row.name,
            f"{row.ours:,.1f} {row.unit}",
            f"{row.beside:,.1f} {row.unit}",
            f"{row.ratio:.3g}",
            f"{row.bound} {row.goal:g}",
            "yes" if row.holds else "NO",
            row.note,
        )
    return table


def _as_json(measured: list[Row], speeds: list[float]) -> str:
    found = [
        {
            "name": row.name,
            "ours": row.ours,
            "beside": row.beside,
            "unit": row.unit,
            "ratio": row.ratio,
            "goal": f"{row.bound} {row.goal:g}",
            "holds": row.holds,
        }
        for row in measured
    ]
    document = {
        "schema": 1,
        "additions_per_second": [min(speeds), max(speeds)],
        "rows": found,
        "not_installed": not_installed(),
    }
    return json.dumps(document, indent=2) + "\n"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(_MODULES)), metavar="[NAME...]")
@click.option("--json", "json_path", type=click.Path(), help="Write the rows to FILE; - is stdout.")
def main(names: Sequence[str], json_path: str | None) -> None:
    """Measure the disk, the crash engine and the runtime beside their peers.

    NAME is one of the files of this folder, such as atomic-write; without one, all are measured.
    """
    speeds: list[float] = []
    measured = list(rows(names, speeds))
    if json_path == "-":
        click.echo(_as_json(measured, speeds), nl=False)
        return
    Console().print(_table(measured, speeds))
    if missing := not_installed():
        click.echo(f"Not installed, and left out: {', '.join(missing)}.")
    if json_path:
        try:
            Path(json_path).write_text(_as_json(measured, speeds), encoding="utf-8")
        except OSError as error:
            message = f"cannot write {json_path}: {error.strerror}; name a writable file"
            raise click.UsageError(message) from None


if __name__ == "__main__":
    main()
