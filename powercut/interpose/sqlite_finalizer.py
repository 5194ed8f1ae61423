"""Connections and cursors of ``sqlite3`` that are closed before CPython frees them.

An exception that leaves a loop over a cursor is still set when CPython frees the cursor. SQLite
unlocks the database then, through a VFS in Python, and Python code that runs while an exception
is set loses it. CPython sets the exception aside only while a finalizer runs.
"""

from __future__ import annotations

from _sqlite3 import Connection, Cursor, Error
from contextlib import suppress
from types import new_class
from typing import Any, Final


class ClosedCursor(Cursor):
    """A cursor that a finalizer closes."""

    __slots__ = ()

    def __del__(self) -> None:
        with suppress(Error):
            Cursor.close(self)


class ClosedConnection(Connection):
    """A connection that a finalizer closes, as it does its cursors."""

    __slots__ = ()

    def cursor(self, factory: Any = Cursor) -> Any:
        return super().cursor(with_finalizer(factory))

    def execute(self, *arguments: Any) -> Any:
        return super().cursor(ClosedCursor).execute(*arguments)

    def executemany(self, *arguments: Any) -> Any:
        return super().cursor(ClosedCursor).executemany(*arguments)

    def executescript(self, *arguments: Any) -> Any:
        return super().cursor(ClosedCursor).executescript(*arguments)

    def __del__(self) -> None:
        with suppress(Error):
            Connection.close(self)


def with_finalizer(factory: Any) -> Any:
    """Return a class with a finalizer for one without; any other factory is returned as it is."""
    if isinstance(factory, type):
        for base, finalizer in _FINALIZERS.items():
            if issubclass(factory, base) and not issubclass(factory, finalizer):
                if factory not in _DERIVED:
                    _DERIVED[factory] = new_class(factory.__name__, (factory, finalizer))
                return _DERIVED[factory]
    return factory


_FINALIZERS: Final[dict[type, type]] = {Cursor: ClosedCursor, Connection: ClosedConnection}
_DERIVED: Final = dict(_FINALIZERS)
