"""Regular files in one flat directory, as a file system in user space.

``FuseDevice`` answers the requests of the kernel by calling ``FuseOperations``.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from powercut.fuse.connection import FuseConnection, succeed
from powercut.fuse.messages import (
    ATTRIBUTES_OUT,
    ENTRY_OUT,
    OPEN_IN,
    OPEN_OUT,
    PAGE_BYTES,
    READ_IN,
    SETATTR_IN,
    STATFS_OUT,
    VALID_S,
    WRITE_IN,
    WRITE_OUT,
    Opcode,
    Request,
    directory_record,
)
from powercut.fuse.mount import NO_DEV, NO_EXEC, NO_SUID

_SET_SIZE: Final = 1 << 3
"""The flag of SETATTR that says that ``size`` is set."""


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


class FuseDevice:
    """One connection to the kernel. Closing it aborts every request that is under way."""

    def __init__(self, operations: FuseOperations) -> None:
        """Open ``/dev/fuse``; raises ``OSError``."""
        self._operations = operations
        self._connection = FuseConnection(
            {
                Opcode.LOOKUP: self._lookup,
                Opcode.GETATTR: self._attributes,
                Opcode.SETATTR: self._set_attributes,
                Opcode.OPEN: self._open,
                Opcode.READ: self._read,
                Opcode.WRITE: self._write,
                Opcode.STATFS: self._statistics,
                Opcode.FSYNC: self._fsync,
                Opcode.OPENDIR: self._open,
                Opcode.READDIR: self._read_directory,
                Opcode.RELEASE: succeed,
                Opcode.RELEASEDIR: succeed,
                Opcode.FLUSH: succeed,
                Opcode.FSYNCDIR: succeed,
                Opcode.ACCESS: succeed,
            }
        )

    def mount(self) -> int:
        """Mount the files; return the descriptor of the mount, whose closing unmounts them."""
        return self._connection.mount(flags=NO_SUID | NO_DEV | NO_EXEC)

    def fileno(self) -> int:
        """Return the descriptor to poll; it is readable when a request waits."""
        return self._connection.descriptor

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def serve(self) -> bool:
        """Answer the next request, if one waits; return False if the files were unmounted."""
        return self._connection.serve()

    def _lookup(self, request: Request) -> bytes:
        name = bytes(request.body).rstrip(b"\0").decode()
        attributes = self._operations.lookup(request.node, name)
        # The name is looked up each time, because files come and go without a request.
        return ENTRY_OUT.pack(attributes.node, 0, 0, VALID_S, 0, 0, *_packed(attributes))

    def _attributes(self, request: Request) -> bytes:
        attributes = self._operations.attributes(request.node)
        return ATTRIBUTES_OUT.pack(VALID_S, 0, 0, *_packed(attributes))

    def _set_attributes(self, request: Request) -> bytes:
        valid, _, _, size, *_ = SETATTR_IN.unpack_from(request.body)
        if valid & _SET_SIZE:
            self._operations.truncate(request.node, size)
        return self._attributes(request)

    def _open(self, request: Request) -> bytes:
        flags, _ = OPEN_IN.unpack_from(request.body)
        self._operations.open(request.node, flags)
        return OPEN_OUT.pack(0, 0, 0)

    def _read(self, request: Request) -> bytes:
        _, offset, size = READ_IN.unpack_from(request.body)
        return self._operations.read(request.node, offset, size)

    def _write(self, request: Request) -> bytes:
        _, offset, size, *_ = WRITE_IN.unpack_from(request.body)
        data = bytes(request.body[WRITE_IN.size : WRITE_IN.size + size])
        self._operations.write(request.node, offset, data)
        return WRITE_OUT.pack(size, 0)

    def _fsync(self, request: Request) -> bytes:
        self._operations.fsync(request.node)
        return b""

    def _statistics(self, _request: Request) -> bytes:
        return STATFS_OUT.pack(0, 0, 0, 0, 0, PAGE_BYTES, 255, PAGE_BYTES, 0)

    def _read_directory(self, request: Request) -> bytes:
        _, start, size = READ_IN.unpack_from(request.body)
        listing = bytearray()
        for position, entry in enumerate(self._operations.entries(request.node)):
            if position < start:
                continue
            record = directory_record(entry.name.encode(), entry.node, entry.mode, position + 1)
            if len(listing) + len(record) > size:
                break
            listing += record
        return bytes(listing)


def _packed(attributes: Attributes) -> tuple[int, ...]:
    blocks = (attributes.size + 511) // 512
    links = 2 if stat.S_ISDIR(attributes.mode) else 1
    return (
        *(attributes.node, attributes.size, blocks, 0, 0, 0),
        *(0, 0, 0, attributes.mode, links, 0, 0, 0, PAGE_BYTES, 0),
    )
