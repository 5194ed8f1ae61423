"""The ports: everything through which the runtime touches what is outside itself.

``system.host`` holds the real ones, the simulated machine its own; nothing else under
``system`` reaches the outside. All calls are plain and synchronous, and fail with the
``OSError`` that Linux would give.

Paths are plain ``str`` with ``/`` between the names. A relative path starts at the root
of the host's data, and ``""`` is that root; an absolute one is taken as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from apsw import Connection

DATABASE_PRAGMAS: Final = (
    # Before the first access: WAL then needs no shared memory, and a second process is kept out.
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA journal_mode=WAL",
    # In WAL mode NORMAL would acknowledge commits that a power cut takes back.
    "PRAGMA synchronous=FULL",
)


class OpenMode(Enum):
    """What an opened file is for; each one may be read as well."""

    READ = "read"
    """The file exists and stays as it is (``O_RDONLY``)."""
    WRITE = "write"
    """The file exists; ``pwrite`` and ``truncate`` change it (``O_RDWR``)."""
    CREATE = "create"
    """The file must not exist (``O_RDWR | O_CREAT | O_EXCL``)."""
    APPEND = "append"
    """The file exists; ``append`` writes at its end (``O_RDWR | O_APPEND``)."""


class Kind(Enum):
    """What a path leads to, symbolic links followed."""

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"


class File(Protocol):
    """One open file. A write may be short, as in POSIX: it returns what was taken."""

    def pread(self, size_bytes: int, offset: int) -> bytes:
        """Return up to ``size_bytes`` from ``offset`` (bytes); fewer need not mean the end."""
        ...

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at ``offset`` (bytes); only on a file opened to WRITE or CREATE.

        Linux ignores the offset on a file opened to APPEND.
        """
        ...

    def append(self, data: bytes) -> int:
        """Write at the end of a file opened to APPEND."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to ``size_bytes``, or let it grow to it with zeros."""
        ...

    def size(self) -> int:
        """Return the size in bytes."""
        ...

    def fsync(self) -> None:
        """Make content and size durable; under POSIX not the name (``sync_dir`` does)."""
        ...

    def fdatasync(self) -> None:
        """Make content and size durable, and no other attribute."""
        ...

    def lock(self) -> None:
        """Take the exclusive ``flock``; ``BlockingIOError`` when somebody holds it.

        Closing the file, and the death of the process, give it back.
        """
        ...

    def close(self) -> None:
        """Close the descriptor; it is gone even when this raises."""
        ...


class FileSystem(Protocol):
    """The smallest set of POSIX calls that the runtime needs."""

    def open(self, path: str, mode: OpenMode) -> File:
        """Open a regular file; ``FileNotFoundError`` or ``FileExistsError`` as the mode says."""
        ...

    def replace(self, source: str, target: str) -> None:
        """Rename ``source`` over ``target``, at once; durable after ``sync_dir``."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name; durable after ``sync_dir``."""
        ...

    def mkdir(self, path: str) -> None:
        """Make one directory; durable after ``sync_dir`` of its parent."""
        ...

    def rmdir(self, path: str) -> None:
        """Remove an empty directory; durable after ``sync_dir`` of its parent."""
        ...

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted, without ``.`` and ``..``."""
        ...

    def kind(self, path: str) -> Kind | None:
        """Return what is at ``path``, or None when there is nothing."""
        ...

    def sync_dir(self, path: str) -> None:
        """Make the entries of a directory durable (``fsync`` on its descriptor)."""
        ...


class Clock(Protocol):
    """Three kinds of time; order comes from ``sequence`` alone, never from a wall clock."""

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 in UTC; for display, may step back."""
        ...

    def monotonic_ns(self) -> int:
        """Return nanoseconds since an arbitrary moment; for timers, never steps back."""
        ...

    def sequence(self) -> int:
        """Return the next logical instant of this boot, from 1."""
        ...


class Ids(Protocol):
    """Names that nobody else has."""

    def uuid_hex(self) -> str:
        """Return a fresh UUID as 32 lower-case hex digits."""
        ...

    def random_hex(self, digits: int) -> str:
        """Return that many random lower-case hex digits."""
        ...


class Database(Protocol):
    """SQLite on this host's file system."""

    def open(self, path: str) -> Connection:
        """Open or create a database, with ``DATABASE_PRAGMAS`` run in their order."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """One of each port, valid for one boot."""

    files: FileSystem
    clock: Clock
    ids: Ids
    database: Database
