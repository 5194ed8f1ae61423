"""The protocol of ``/dev/fuse``: a file system in user space, without libfuse.

``FuseDevice`` mounts, reads requests of the kernel, passes each to ``FuseOperations`` and writes
the reply. It knows the layout of the messages (version 7.31 of ``linux/fuse.h``, which newer
kernels accept) and nothing about the files. A request that has no method here gets ENOSYS; most
of these the kernel never repeats.

A request is answered before the next is read, so operations see them one after the other, in the
order in which the kernel sent them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final, Protocol

from powercut.calibrate.mount import mount

ROOT_NODE: Final = 1

_MAJOR: Final = 7
_MINOR: Final = 31
_MAX_WRITE_BYTES: Final = 1 << 20
_PAGE_BYTES: Final = 4096
_VALID_S: Final = 3600
"""How long the kernel may keep attributes: they change by its own writes only."""

# Flags of INIT.
_ASYNC_READ: Final = 1 << 0
_BIG_WRITES: Final = 1 << 5
_ASYNC_DIRECT_IO: Final = 1 << 15
_MAX_PAGES: Final = 1 << 22

_SET_SIZE: Final = 1 << 3
"""The flag of SETATTR that says that ``size`` is set."""

_IN_HEADER: Final = Struct("=IIQQIIIHH")
_OUT_HEADER: Final = Struct("=IiQ")
_INIT_IN: Final = Struct("=IIII")
_INIT_OUT: Final = Struct("=IIIIHHIIHHI28x")
_ATTRIBUTES: Final = Struct("=6Q10I")
_ENTRY_OUT: Final = Struct("=4QII")
_ATTRIBUTES_OUT: Final = Struct("=QII")
_SETATTR_IN: Final = Struct("=IIQQ")
_OPEN_IN: Final = Struct("=II")
_OPEN_OUT: Final = Struct("=QII")
_READ_IN: Final = Struct("=QQI")
_WRITE_IN: Final = Struct("=QQIIQII")
_WRITE_OUT: Final = Struct("=II")
_STATFS_OUT: Final = Struct("=5Q4I24x")
_DIRENT: Final = Struct("=QQII")


class Opcode(IntEnum):
    """The requests that are answered."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    ACCESS = 34
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42


_NO_REPLY: Final = frozenset({Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT})


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a node; ``mode`` includes the file type."""

    node: int
    mode: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One name of a directory; ``mode`` as in ``Attributes``."""

    name: str
    node: int
    mode: int


class FuseOperations(Protocol):
    """The files. Nodes are numbers that are never used twice; the root is ``ROOT_NODE``.

    An ``OSError`` becomes the error of the call in the kernel.
    """

    def lookup(self, parent: int, name: str) -> Attributes: ...
    def attributes(self, node: int) -> Attributes: ...
    def truncate(self, node: int, size: int) -> None: ...
    def open(self, node: int, flags: int) -> None: ...
    def read(self, node: int, offset: int, size: int) -> bytes: ...
    def write(self, node: int, offset: int, data: bytes) -> None: ...
    def fsync(self, node: int) -> None: ...
    def entries(self, node: int) -> Iterable[DirectoryEntry]: ...


@dataclass(frozen=True, slots=True)
class _Request:
    opcode: int
    unique: int
    node: int
    body: memoryview


class FuseDevice:
    """One connection to the kernel. Closing it aborts every request that is under way."""

    def __init__(self, operations: FuseOperations) -> None:
        """Open ``/dev/fuse``; raises ``OSError``."""
        self._operations = operations
        self._descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._buffer = bytearray(_MAX_WRITE_BYTES + _PAGE_BYTES)
        self._answers: dict[int, Callable[[_Request], bytes]] = {
            Opcode.LOOKUP: self._lookup,
            Opcode.GETATTR: self._attributes,
            Opcode.SETATTR: self._set_attributes,
            Opcode.OPEN: self._open,
            Opcode.READ: self._read,
            Opcode.WRITE: self._write,
            Opcode.STATFS: self._statistics,
            Opcode.FSYNC: self._fsync,
            Opcode.INIT: self._init,
            Opcode.OPENDIR: self._open,
            Opcode.READDIR: self._read_directory,
            **dict.fromkeys(
                (
                    Opcode.RELEASE,
                    Opcode.RELEASEDIR,
                    Opcode.FLUSH,
                    Opcode.FSYNCDIR,
                    Opcode.ACCESS,
                    Opcode.DESTROY,
                ),
                _succeed,
            ),
        }

    def mount(self) -> int:
        """Mount the files; return the descriptor of the mount, whose closing unmounts them.

        The mount has no place in the tree of directories; see ``mount.py``.
        """
        options = {
            "fd": str(self._descriptor),
            "rootmode": f"{stat.S_IFDIR:o}",
            "user_id": str(os.geteuid()),
            "group_id": str(os.getegid()),
        }
        return mount("fuse", "powercut", options)

    def fileno(self) -> int:
        """Return the descriptor to poll; it is readable when a request waits."""
        return self._descriptor

    def close(self) -> None:
        """End the connection."""
        os.close(self._descriptor)

    def serve(self) -> bool:
        """Answer the requests that wait; return False if the file system was unmounted."""
        while True:
            try:
                size = os.readv(self._descriptor, [self._buffer])
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return False
                if error.errno == errno.EAGAIN:
                    return True
                if error.errno in {errno.EINTR, errno.ENOENT}:  # the request was interrupted
                    continue
                raise
            self._answer(memoryview(self._buffer)[:size])

    def _answer(self, message: memoryview) -> None:
        _, opcode, unique, node, *_ = _IN_HEADER.unpack_from(message)
        if opcode in _NO_REPLY:
            return
        request = _Request(opcode, unique, node, message[_IN_HEADER.size :])
        code, payload = 0, b""
        answer = self._answers.get(opcode)
        if answer is None:
            code = errno.ENOSYS
        else:
            try:
                payload = answer(request)
            except OSError as error:
                code = error.errno or errno.EIO
        header = _OUT_HEADER.pack(_OUT_HEADER.size + len(payload), -code, unique)
        # ENOENT: the request was interrupted, and the kernel waits no longer.
        with suppress(FileNotFoundError):
            os.writev(self._descriptor, [header, payload])

    def _init(self, request: _Request) -> bytes:
        _, _, readahead, offered = _INIT_IN.unpack_from(request.body)
        return _INIT_OUT.pack(
            _MAJOR,
            _MINOR,
            readahead,
            offered & (_ASYNC_READ | _BIG_WRITES | _ASYNC_DIRECT_IO | _MAX_PAGES),
            64,  # requests of the background at a time
            48,  # and the number at which the kernel regards the device as congested
            _MAX_WRITE_BYTES,
            1,  # nanoseconds, the unit of time stamps
            _MAX_WRITE_BYTES // _PAGE_BYTES,
            0,
            0,
        )

    def _lookup(self, request: _Request) -> bytes:
        name = bytes(request.body).rstrip(b"\0").decode()
        attributes = self._operations.lookup(request.node, name)
        # The name is looked up each time, because files come and go without a request.
        entry = _ENTRY_OUT.pack(attributes.node, 0, 0, _VALID_S, 0, 0)
        return entry + _packed(attributes)

    def _attributes(self, request: _Request) -> bytes:
        attributes = self._operations.attributes(request.node)
        return _ATTRIBUTES_OUT.pack(_VALID_S, 0, 0) + _packed(attributes)

    def _set_attributes(self, request: _Request) -> bytes:
        valid, _, _, size = _SETATTR_IN.unpack_from(request.body)
        if valid & _SET_SIZE:
            self._operations.truncate(request.node, size)
        return self._attributes(request)

    def _open(self, request: _Request) -> bytes:
        flags, _ = _OPEN_IN.unpack_from(request.body)
        self._operations.open(request.node, flags)
        return _OPEN_OUT.pack(0, 0, 0)

    def _read(self, request: _Request) -> bytes:
        _, offset, size = _READ_IN.unpack_from(request.body)
        return self._operations.read(request.node, offset, size)

    def _write(self, request: _Request) -> bytes:
        _, offset, size, *_ = _WRITE_IN.unpack_from(request.body)
        data = bytes(request.body[_WRITE_IN.size : _WRITE_IN.size + size])
        self._operations.write(request.node, offset, data)
        return _WRITE_OUT.pack(size, 0)

    def _fsync(self, request: _Request) -> bytes:
        self._operations.fsync(request.node)
        return b""

    def _statistics(self, _request: _Request) -> bytes:
        return _STATFS_OUT.pack(0, 0, 0, 0, 0, _PAGE_BYTES, 255, _PAGE_BYTES, 0)

    def _read_directory(self, request: _Request) -> bytes:
        _, start, size = _READ_IN.unpack_from(request.body)
        listing = bytearray()
        for position, entry in enumerate(self._operations.entries(request.node)):
            if position < start:
                continue
            name = entry.name.encode()
            kind = stat.S_IFMT(entry.mode) >> 12
            record = _DIRENT.pack(entry.node, position + 1, len(name), kind) + name
            record += bytes(-len(record) % 8)
            if len(listing) + len(record) > size:
                break
            listing += record
        return bytes(listing)


def _succeed(_request: _Request) -> bytes:
    return b""


def _packed(attributes: Attributes) -> bytes:
    blocks = (attributes.size + 511) // 512
    links = 2 if stat.S_ISDIR(attributes.mode) else 1
    return _ATTRIBUTES.pack(
        *(attributes.node, attributes.size, blocks, 0, 0, 0),
        *(0, 0, 0, attributes.mode, links, 0, 0, 0, _PAGE_BYTES, 0),
    )
