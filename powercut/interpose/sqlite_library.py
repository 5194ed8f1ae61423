"""The SQLite library that ``_sqlite3`` uses, by ctypes: its structures and functions.

The structures are those of ``sqlite3.h``; a VFS of version 3 and I/O methods of version 2.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any, Final

OK: Final = 0
BUSY: Final = 5
NOT_FOUND: Final = 12
FULL: Final = 13
CANNOT_OPEN: Final = 14
IO_ERROR: Final = 10
IO_READ: Final = 266
IO_SHORT_READ: Final = 522
IO_WRITE: Final = 778
IO_FSYNC: Final = 1034
IO_DIRECTORY_FSYNC: Final = 1290
IO_TRUNCATE: Final = 1546
IO_DELETE: Final = 2570
IO_SHM_LOCK: Final = 5130
IO_DELETE_NOENT: Final = 5898

OPEN_READONLY: Final = 0x1
OPEN_READWRITE: Final = 0x2
OPEN_CREATE: Final = 0x4
OPEN_EXCLUSIVE: Final = 0x10
OPEN_MAIN_DB: Final = 0x100
OPEN_MAIN_JOURNAL: Final = 0x800
OPEN_SUPER_JOURNAL: Final = 0x4000
OPEN_WAL: Final = 0x80000

ACCESS_EXISTS: Final = 0

_FILE: Final = c_void_p
_METHODS: Final[dict[str, Any]] = {
    "xClose": CFUNCTYPE(c_int, _FILE),
    "xRead": CFUNCTYPE(c_int, _FILE, c_void_p, c_int, c_int64),
    "xWrite": CFUNCTYPE(c_int, _FILE, c_void_p, c_int, c_int64),
    "xTruncate": CFUNCTYPE(c_int, _FILE, c_int64),
    "xSync": CFUNCTYPE(c_int, _FILE, c_int),
    "xFileSize": CFUNCTYPE(c_int, _FILE, POINTER(c_int64)),
    "xLock": CFUNCTYPE(c_int, _FILE, c_int),
    "xUnlock": CFUNCTYPE(c_int, _FILE, c_int),
    "xCheckReservedLock": CFUNCTYPE(c_int, _FILE, POINTER(c_int)),
    "xFileControl": CFUNCTYPE(c_int, _FILE, c_int, c_void_p),
    "xSectorSize": CFUNCTYPE(c_int, _FILE),
    "xDeviceCharacteristics": CFUNCTYPE(c_int, _FILE),
    "xShmMap": CFUNCTYPE(c_int, _FILE, c_int, c_int, c_int, POINTER(c_void_p)),
    "xShmLock": CFUNCTYPE(c_int, _FILE, c_int, c_int, c_int),
    "xShmBarrier": CFUNCTYPE(None, _FILE),
    "xShmUnmap": CFUNCTYPE(c_int, _FILE, c_int),
}


class IoMethods(Structure):
    """``sqlite3_io_methods``, version 2."""

    _fields_ = [("iVersion", c_int), *_METHODS.items()]


class File(Structure):
    """``sqlite3_file`` of the disk; ``number`` identifies the open file."""

    _fields_ = [("pMethods", POINTER(IoMethods)), ("number", c_int64)]


VFS: Final = c_void_p
VFS_METHODS: Final[dict[str, Any]] = {
    "xOpen": CFUNCTYPE(c_int, VFS, c_void_p, _FILE, c_int, POINTER(c_int)),
    "xDelete": CFUNCTYPE(c_int, VFS, c_char_p, c_int),
    "xAccess": CFUNCTYPE(c_int, VFS, c_char_p, c_int, POINTER(c_int)),
    "xFullPathname": CFUNCTYPE(c_int, VFS, c_char_p, c_int, c_void_p),
    "xDlOpen": c_void_p,
    "xDlError": c_void_p,
    "xDlSym": c_void_p,
    "xDlClose": c_void_p,
    "xRandomness": CFUNCTYPE(c_int, VFS, c_int, c_void_p),
    "xSleep": c_void_p,
    "xCurrentTime": c_void_p,
    "xGetLastError": c_void_p,
    "xCurrentTimeInt64": c_void_p,
    "xSetSystemCall": c_void_p,
    "xGetSystemCall": c_void_p,
    "xNextSystemCall": c_void_p,
}


class Vfs(Structure):
    """``sqlite3_vfs``, version 3; ``pAppData`` of ours is the number of the lifetime."""

    _fields_ = [
        ("iVersion", c_int),
        ("szOsFile", c_int),
        ("mxPathname", c_int),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        *VFS_METHODS.items(),
    ]


def make_methods(functions: dict[str, Any]) -> IoMethods:
    """Return I/O methods over Python functions of the same names, until the process ends."""
    made = {name: _METHODS[name](function) for name, function in functions.items()}
    assert made.keys() == _METHODS.keys()
    return IoMethods(2, *(made[name] for name in _METHODS))


class SqliteLibrary:
    """The functions of the library that a VFS needs."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.register = library.sqlite3_vfs_register
        self.register.argtypes = [c_void_p, c_int]
        self.unregister = library.sqlite3_vfs_unregister
        self.unregister.argtypes = [c_void_p]
        self._find = library.sqlite3_vfs_find
        self._find.argtypes, self._find.restype = [c_char_p], c_void_p
        self._randomness = library.sqlite3_randomness
        self._randomness.argtypes = [c_int, c_void_p]
        self.unix_address: int = self._find(b"unix")
        self.unix = Vfs.from_address(self.unix_address)

    def forget_randomness(self) -> None:
        """Make the generator of the library read its seed again."""
        self._randomness(0, None)


def find_library(file: str | None) -> SqliteLibrary | None:
    """Return the library that the extension module ``file`` uses; None if it is part of it."""
    try:
        # The symbols of a shared library are found through the module that needs it.
        return SqliteLibrary(ctypes.CDLL(file))
    except (AttributeError, OSError):
        return None
