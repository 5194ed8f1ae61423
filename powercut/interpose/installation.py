"""Installs the router: replaces functions wherever a loaded module has stored them.

One pass over the objects of the garbage collector finds the names that were bound early:
entries of dictionaries, sets such as ``os.supports_dir_fd``, default arguments, attributes of
classes with their ``staticmethod``s and of their instances, closures, partials and lists. The pass
happens once; the router then stays in place, and is inert while no process is interposed.
"""

from __future__ import annotations

import gc
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any, Final

from powercut.interpose.dbm_libraries import routed_libraries
from powercut.interpose.directory_entries import routed_entries
from powercut.interpose.file_io import routed_files
from powercut.interpose.mapping import routed_mappings
from powercut.interpose.os_calls import routed_calls
from powercut.interpose.program_calls import routed_programs
from powercut.interpose.router import ROUTER
from powercut.interpose.sqlite_connect import routed_databases
from sim.errors import HarnessError
from sim.loop.sandbox import SANDBOX

_OLDEST: Final = (3, 11)
_NEWEST: Final = (3, 15)
_PYTHON_CLASS: Final = 1 << 9
"""``Py_TPFLAGS_HEAPTYPE``: the class may have been defined in Python."""
_OURS: Final = ("powercut.", "sim.")


class Installation:
    """The replacements by the identity of the originals, which ``originals`` keeps alive."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        self.originals = tuple(pairs)
        self._table = {id(original): new for original, new in self.originals}
        wrappers = [getattr(new, "__func__", None) for _, new in self.originals]
        self._own = {
            id(cell) for each in wrappers for cell in getattr(each, "__closure__", None) or ()
        }
        self._own.add(id(self._table))
        for module in (
            "file_io",
            "os_calls",
            "fcntl_calls",
            "mapping",
            "sqlite_connect",
            "directory_entries",
        ):
            loaded = sys.modules.get(f"{__package__}.{module}")
            if loaded is not None:
                self._own.add(id(vars(loaded)))

    def replace_everywhere(self) -> None:
        """Put the replacements in place of every stored original."""
        # Frozen objects would not be among those that the collector returns.
        frozen = gc.get_freeze_count()
        gc.unfreeze()
        objects = gc.get_objects()
        if frozen:
            gc.freeze()
        # Classes first: their attributes change by setattr, which the type caches notice.
        for found in objects:
            # ``isinstance`` would ask a proxy for its class.
            if issubclass(type(found), type):
                self._in_class(found)
        for found in objects:
            kind = type(found)
            if kind is dict:
                self._in_dictionary(found)
            elif kind is FunctionType:
                self._in_function(found)
            elif kind is CellType:
                self._in_cell(found)
            elif kind is list:
                self._in_list(found)
            elif kind is set:
                self._in_set(found)
            elif kind is partial:
                self._in_partial(found)
            elif kind.__flags__ & _PYTHON_CLASS:
                self._in_instance(found)

    def _in_class(self, found: type) -> None:
        table = self._table
        for name, value in list(vars(found).items()):
            inner = value.__func__ if type(value) is staticmethod else value
            if id(inner) not in table:
                continue
            new = table[id(inner)]
            try:
                changed = staticmethod(new) if type(value) is staticmethod else new
                type.__setattr__(found, name, changed)
            except TypeError:  # a class of C, which cannot be changed
                continue

    def _in_instance(self, found: object) -> None:
        """Replace attributes, in the dictionary of an instance or in its slots."""
        table, kind = self._table, type(found)
        if table.keys().isdisjoint(map(id, gc.get_referents(found))):
            return
        if kind.__module__.startswith(_OURS):
            return
        with suppress(AttributeError):
            self._in_dictionary(object.__getattribute__(found, "__dict__"))
        slots = [each for base in kind.__mro__ for each in vars(base).values()]
        for slot in slots:
            if type(slot) is MemberDescriptorType:
                with suppress(AttributeError):
                    value = slot.__get__(found)
                    if id(value) in table:
                        slot.__set__(found, table[id(value)])

    def _in_dictionary(self, found: dict[Any, Any]) -> None:
        table = self._table
        if table.keys().isdisjoint(map(id, list(found.values()))) or id(found) in self._own:
            return
        for key, value in list(found.items()):
            if id(value) in table:
                found[key] = table[id(value)]

    def _in_function(self, found: FunctionType) -> None:
        defaults = found.__defaults__
        if defaults and not self._table.keys().isdisjoint(map(id, defaults)):
            found.__defaults__ = tuple(self._table.get(id(each), each) for each in defaults)

    def _in_cell(self, found: CellType) -> None:
        try:
            content = found.cell_contents
        except ValueError:
            return
        if id(content) in self._table and id(found) not in self._own:
            found.cell_contents = self._table[id(content)]

    def _in_list(self, found: list[Any]) -> None:
        table = self._table
        if not table.keys().isdisjoint(map(id, found)):
            found[:] = [table.get(id(each), each) for each in found]

    def _in_set(self, found: set[Any]) -> None:
        table = self._table
        early = [each for each in found if id(each) in table]
        for each in early:
            found.remove(each)
            found.add(table[id(each)])

    def _in_partial(self, found: partial[Any]) -> None:
        table = self._table
        parts = (found.func, *found.args, *found.keywords.values())
        if table.keys().isdisjoint(map(id, parts)):
            return
        vars(partial)["__setstate__"](
            found,
            (
                table.get(id(found.func), found.func),
                tuple(table.get(id(each), each) for each in found.args),
                {name: table.get(id(each), each) for name, each in found.keywords.items()},
                vars(found),
            ),
        )


_installed: list[Installation] = []
_hooked: list[bool] = []


def install() -> None:
    """Put the router in place, once for each process.

    Raises ``HarnessError`` with the name of a system or an interpreter that is not supported.
    """
    if _installed:
        return
    _check_platform()
    with SANDBOX.lifted():
        installation = Installation(
            [
                *routed_calls(), *routed_files(), *routed_mappings(),
                *routed_databases(), *routed_libraries(), *routed_entries(), *routed_programs(),
            ]
        )  # fmt: skip
        _installed.append(installation)
        installation.replace_everywhere()
        SANDBOX.follow(installation.originals)
        watch_events()


def watch_events() -> None:
    """Pass the audit events of this process to the guard of the router."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    guard = ROUTER.guard
    if guard is not None:
        guard.check(event, arguments)


def _span() -> str:
    return " to ".join(f"{major}.{minor}" for major, minor in (_OLDEST, _NEWEST))


def _check_platform() -> None:
    version = sys.version_info[:2]
    shown = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
    if sys.platform != "linux":
        reason = f"it runs on Linux, and this is {sys.platform}"
    elif sys.implementation.name != "cpython" or not _OLDEST <= version <= _NEWEST:
        reason = f"it was tried with CPython {_span()}, and this is {shown}"
    elif sysconfig.get_config_var("Py_GIL_DISABLED"):
        reason = f"it needs the GIL, and this is a free-threaded {shown}"
    else:
        return
    raise HarnessError(
        f"unmodified programs cannot be interposed here: {reason}; "
        "write the workload with two parameters, (process, ack)"
    )
