"""From errno to SQLite's result codes, as SQLite's unix VFS maps them (``os_unix.c``)."""

from __future__ import annotations

import errno
from typing import Final

import apsw

_NAMES: Final = {**apsw.mapping_result_codes, **apsw.mapping_extended_result_codes}
_DAMAGED: Final = frozenset({errno.EIO, errno.ERANGE, errno.ENXIO})


def failure(code: int, cause: OSError) -> Exception:
    """Return what a VFS method raises to make SQLite see ``code`` (extended).

    SQLite tells its caller SQLITE_CORRUPT for SQLITE_IOERR_CORRUPTFS; apsw hands on what
    was raised, so that must be a ``CorruptError`` from the beginning.
    """
    if code == apsw.SQLITE_IOERR_CORRUPTFS:
        error: Exception = apsw.CorruptError()
        vars(error).update(result=apsw.SQLITE_CORRUPT, extendedresult=code)
    else:
        error = apsw.exception_for(code)
    error.args = (f"{cause} (to SQLite {_NAMES[code]})",)
    return error


def read_code(cause: OSError) -> int:
    """An unreadable sector is corruption to SQLite, anything else a failed read."""
    damaged = cause.errno in _DAMAGED
    return apsw.SQLITE_IOERR_CORRUPTFS if damaged else apsw.SQLITE_IOERR_READ


def write_code(cause: OSError) -> int:
    """A full disk is ``SQLITE_FULL``, anything else a failed write."""
    return apsw.SQLITE_FULL if cause.errno == errno.ENOSPC else apsw.SQLITE_IOERR_WRITE


def delete_code(cause: OSError) -> int:
    """A file that is gone already is no failure to SQLite, but it wants to know."""
    gone = cause.errno == errno.ENOENT
    return apsw.SQLITE_IOERR_DELETE_NOENT if gone else apsw.SQLITE_IOERR_DELETE
