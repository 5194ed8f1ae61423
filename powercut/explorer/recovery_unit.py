"""Recovery units: functions that read a part of the disk, which are decided by themselves."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, TypeVar

from powercut.explorer.lazy.boot import LazyDisk
from powercut.interpose.router import ROUTER
from sim.disk.calls.process import Process
from sim.errors import HarnessError

R = TypeVar("R")


def recovery_unit(process: Process, function: Callable[..., R], *arguments: Any) -> R:
    """Return ``function(process, *arguments)``, of which the check needs nothing but the result.

    The function is one of a module, gets a process of its own and only reads. Arguments and
    result are plain values: the first can be compared and hashed, the second can be pickled.

    The lazy engine executes each unit by itself, once for all states in which it reads the same,
    and the check once for each of its results. So the states of several files that a check reads
    by one unit each add up. A unit that reads a place that the check has changed before, that
    writes, or that raises an exception is executed within the check.

    Raises ``HarnessError`` for a function that a module does not have, and for values that are
    not plain.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    try:
        is_found = resolve_name(name) is function
    except (ImportError, AttributeError, ValueError):
        is_found = False
    if not is_found:
        raise HarnessError(f"the recovery unit {name} is no function of a module")
    try:
        hash(arguments)
    except TypeError as mistake:
        raise HarnessError(f"an argument of the recovery unit {name} is an {mistake}") from None
    disk = process.disk
    if isinstance(disk, LazyDisk) and ROUTER.lifetime is None:
        result: R = disk.unit(function, name, arguments)
        return result
    return function(Process(disk), *arguments)
