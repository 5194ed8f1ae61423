"""``python -m benchmarks [--json FILE]``: measure every row, and say whether its goal holds."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks import atomic_write, explore, schedules, sqlite
from benchmarks.row import Row


def rows() -> Iterator[Row]:
    """Yield every row that this machine can measure."""
    for room in (atomic_write, explore, sqlite, schedules):
        yield from room.rows()


def _table(measured: list[Row]) -> Table:
    table = Table(title=f"Python {platform.python_version()}, {os.cpu_count()} cores")
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


def _as_json(measured: list[Row]) -> str:
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
    return json.dumps({"schema": 1, "rows": found}, indent=2) + "\n"


@click.command()
@click.option("--json", "json_path", type=click.Path(), help="Write the rows to FILE, - for here.")
def main(json_path: str | None) -> None:
    """Measure the disk and the crash engine beside their peers."""
    measured = list(rows())
    if json_path == "-":
        click.echo(_as_json(measured), nl=False)
        return
    Console().print(_table(measured))
    if json_path:
        try:
            Path(json_path).write_text(_as_json(measured), encoding="utf-8")
        except OSError as error:
            message = f"cannot write {json_path}: {error.strerror}; name a writable file"
            raise click.UsageError(message) from None


if __name__ == "__main__":
    main()
