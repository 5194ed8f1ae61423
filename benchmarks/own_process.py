"""Each module is measured in a new process.

In one process, the objects and the free memory that earlier modules leave slow the later ones:
three modules took up to twice as long.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from types import ModuleType

from benchmarks.row import Row


def rows_of(module: ModuleType) -> list[Row]:
    """Return the rows of a module; raises what it raises."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_measured, module.__name__).result()


def _measured(module_name: str) -> list[Row]:
    rows: list[Row] = list(import_module(module_name).rows())
    return rows
