"""The modules of ``dbm`` whose C libraries do their own I/O: refused, and not the default.

``dbm.open`` and ``shelve`` make a database of ``dbm.sqlite3`` where the interpreter has it, else
one of ``dbm.dumb``.
"""

from __future__ import annotations

import dbm
import dbm.dumb
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import MethodType
from typing import Any, Final

from powercut.interpose.router import ROUTER, Router
from powercut.interpose.wrapper import Real, Routed
from sim.disk.calls.process import Process
from sim.errors import UnsupportedOperation

_LIBRARIES: Final = ("_gdbm", "_dbm")


def routed_libraries() -> Iterator[tuple[Real, Routed]]:
    """Yield the ``open`` of each C library that the interpreter has, with its replacement."""
    _loaded()  # by the first process: each fork of it would try all imports again
    for library in _LIBRARIES:
        try:
            module = import_module(library)
        except ImportError:
            continue
        real = module.open
        yield real, MethodType(_refusing_open(library, real), ROUTER)


def _refusing_open(library: str, real: Real) -> Routed:
    def refuse(_process: Process) -> None:
        raise UnsupportedOperation(
            f"{library} does its own I/O, which cannot reach the disk; use dbm.dumb"
        )

    def routed(router: Router, filename: Any, *arguments: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is not None and lifetime.where(filename)[0]:
            lifetime.call(refuse)
        return real(filename, *arguments)

    return routed


@cache
def _loaded() -> dict[str, Any]:
    """Return the modules of ``dbm`` that this interpreter has, as ``dbm`` itself would."""
    modules = {}
    for name in vars(dbm)["_names"]:
        with suppress(ImportError):
            modules[name] = import_module(name)
    return modules


class DefaultDatabase:
    """Decides which module ``dbm`` makes new databases with, for the time of a block."""

    def __init__(self) -> None:
        self._names = vars(dbm)
        self._before: Any = None

    def enter(self) -> None:
        modules = self._names["_modules"]
        if not modules:
            modules.update(_loaded())
        self._before = self._names["_defaultmod"]
        self._names["_defaultmod"] = modules.get("dbm.sqlite3", dbm.dumb)

    def leave(self) -> None:
        self._names["_defaultmod"] = self._before
