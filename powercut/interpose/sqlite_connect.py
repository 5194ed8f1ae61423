"""``sqlite3.connect``, and the VFS of the running lifetime."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import MethodType
from typing import Any, Final

from powercut.interpose.lifetime import Lifetime
from powercut.interpose.router import ROUTER, Router
from powercut.interpose.sqlite_library import SqliteLibrary, find_library
from powercut.interpose.sqlite_vfs import SqliteVfs
from sim.disk.calls.process import Process
from sim.errors import UnsupportedOperation

try:
    import _sqlite3
except ImportError:  # an interpreter may be built without it
    _connect: Any = None
    _library: SqliteLibrary | None = None
else:
    from powercut.interpose.sqlite_finalizer import ClosedConnection, with_finalizer

    _connect = vars(_sqlite3)["connect"]
    _library = find_library(vars(_sqlite3).get("__file__"))

_active: Final[list[SqliteVfs]] = []
_FACTORY_POSITION: Final = 5  # of the parameter of this name


def routed_databases() -> Iterator[tuple[object, object]]:
    """Yield ``sqlite3.connect`` with its replacement."""
    if _connect is not None:
        yield _connect, MethodType(connect, ROUTER)


def connect(router: Router, *arguments: Any, **options: Any) -> Any:
    """Connect through the VFS of the lifetime; refuse a path of the disk if there is none."""
    lifetime = router.lifetime
    if lifetime is not None:
        if _library is None:
            lifetime.call(_check_path, lifetime, *arguments[:1], **options)
        elif not _active:
            enter(lifetime)
        if ":memory:" not in (*arguments[:1], options.get("database")):
            before, after = arguments[:_FACTORY_POSITION], arguments[_FACTORY_POSITION:]
            if after:
                arguments = (*before, with_finalizer(after[0]), *after[1:])
            else:
                options["factory"] = with_finalizer(options.get("factory", ClosedConnection))
    return _connect(*arguments, **options)


def enter(lifetime: Lifetime) -> None:
    """Make the VFS of ``lifetime`` the default one, if the program uses ``sqlite3``."""
    if _library is None or "sqlite3" not in sys.modules:
        return
    if lifetime.databases is None:
        lifetime.databases = SqliteVfs(lifetime, _library)
    vfs = lifetime.databases
    assert isinstance(vfs, SqliteVfs)
    vfs.activate()
    _active.append(vfs)


def leave() -> None:
    """Make SQLite's unix VFS the default one."""
    while _active:
        _active.pop().deactivate()


def _check_path(_process: Process, /, lifetime: Lifetime, database: Any, **_options: Any) -> None:
    path = os.fsdecode(database).removeprefix("file:").partition("?")[0]
    if path != ":memory:" and lifetime.where(path)[0]:
        raise UnsupportedOperation(
            "sqlite3 of this interpreter has SQLite linked statically, where the disk cannot be "
            "put below it: use apsw, with powercut.connect"
        )
