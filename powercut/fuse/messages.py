"""The layout of messages on ``/dev/fuse``: version 7 of ``linux/fuse.h``."""

from __future__ import annotations

import errno
import os
import sys
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

ROOT_NODE: Final = 1
PAGE_BYTES: Final = 4096
MOST_NAME_BYTES: Final = 255
VALID_S: Final = 3600
"""The seconds for which the kernel may keep names and attributes that only its requests change."""

IN_HEADER: Final = Struct("=IIQQIII4x")
OUT_HEADER: Final = Struct("=IiQ")
INIT_IN: Final = Struct("=IIII")
INIT_OUT: Final = Struct("=IIIIHHIIHHI28x")
ATTRIBUTES_OUT: Final = Struct("=QII3Q3q10I")
ENTRY_OUT: Final = Struct("=4QII3Q3q10I")
SETATTR_IN: Final = Struct("=II3Q3q4I4xII4x")
OPEN_IN: Final = Struct("=II")
OPEN_OUT: Final = Struct("=QII")
CREATE_IN: Final = Struct("=IIII")
MKNOD_IN: Final = Struct("=III4x")
MKDIR_IN: Final = Struct("=II")
NODE_IN: Final = Struct("=Q")
RENAME2_IN: Final = Struct("=QI4x")
READ_IN: Final = Struct("=QQI")
WRITE_IN: Final = Struct("=QQIIQII")
WRITE_OUT: Final = Struct("=II")
FSYNC_IN: Final = Struct("=QI4x")
SETXATTR_IN: Final = Struct("=II")
LISTXATTR_IN: Final = Struct("=I4x")
LISTXATTR_OUT: Final = Struct("=I4x")
FALLOCATE_IN: Final = Struct("=QQQI4x")
STATFS_OUT: Final = Struct("=5Q4I24x")
DIRENT: Final = Struct("=QQII")

_ENCODING: Final = sys.getfilesystemencoding()


class Opcode(IntEnum):
    """The requests of the kernel that some server here answers or ignores."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    SETXATTR = 21
    LISTXATTR = 23
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    ACCESS = 34
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    FALLOCATE = 43
    RENAME2 = 45
    TMPFILE = 51


class InitFlag(IntEnum):
    """Features that the kernel offers at the first message, and a server takes."""

    ASYNC_READ = 1 << 0
    BIG_WRITES = 1 << 5
    ASYNC_DIRECT_IO = 1 << 15
    MAX_PAGES = 1 << 22
    KILLPRIV_V2 = 1 << 28
    """The server clears setuid and setgid bits, at the requests that say so."""
    INIT_EXT = 1 << 30
    DIRECT_IO_ALLOW_MMAP = 1 << 36
    """Since Linux 6.6."""


class Request(NamedTuple):
    """One request; ``body`` is valid until the next one is read."""

    node: int
    uid: int
    gid: int
    process: int
    body: memoryview


NO_ENTRY: Final = ENTRY_OUT.pack(*(0, 0, VALID_S), *(0,) * 19)
"""The reply to LOOKUP for a name that does not exist, which the kernel may keep."""


def directory_record(name: bytes, node: int, mode: int, position: int) -> bytes:
    """Return one name of a listing; ``position`` is that of the name after it."""
    record = DIRENT.pack(node, position, len(name), mode >> 12) + name
    return record + bytes(-len(record) % 8)


def one_name(data: memoryview) -> str:
    """Return the name that ends a request, without the zero behind it."""
    if len(data) > MOST_NAME_BYTES + 1:
        raise OSError(errno.ENAMETOOLONG, "the name is too long")
    return str(data[:-1], _ENCODING, "surrogateescape")


def two_names(data: memoryview) -> tuple[str, str]:
    """Return the two names that end a request."""
    first, second, _ = bytes(data).split(b"\0")
    if len(second) > MOST_NAME_BYTES:
        raise OSError(errno.ENAMETOOLONG, "the name is too long")
    return os.fsdecode(first), os.fsdecode(second)
