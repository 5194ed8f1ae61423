"""The state that one connection's VFS and files share, and their calls of the simulated disk.

Failures are mapped to SQLite's result codes as in SQLite's unix VFS (``os_unix.c``).
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import apsw

from sim.disk.cache.inode import ROOT
from sim.disk.os_error import os_error
from sim.errors import PowerOff, SimulatedCrash

if TYPE_CHECKING:
    from sim.disk.cache.inode import Inode
    from sim.disk.calls.process import Process

MAX_LINKS: Final = 100
_NAMES: Final = {**apsw.mapping_result_codes, **apsw.mapping_extended_result_codes}


class Lifetime:
    """The process that opened a database, until it ends.

    ``is_dead`` is set when the process crashed in a call of SQLite: nothing changes any more.
    ``is_exclusive`` follows ``PRAGMA locking_mode``; ``last_errno`` is that of the last failure.
    """

    __slots__ = ("disk", "is_dead", "is_exclusive", "last_errno", "process")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.disk = process.disk
        self.is_dead = False
        self.is_exclusive = False
        self.last_errno = 0

    @property
    def is_off(self) -> bool:
        """Whether the process is dead, by whatever operation."""
        return self.is_dead or self.process.poisoned

    def check_alive(self) -> None:
        """Raise ``PowerOff`` if the process is dead."""
        if self.is_dead or self.process.poisoned:
            raise PowerOff("the process that made this call is dead")

    def allow_statement(self, _cursor: object, _statement: str, _bindings: object) -> bool:
        """Allow a statement, as ``exec_trace``; ``PowerOff`` if the process is dead."""
        self.check_alive()
        return True

    def change(self, code: int, call: Callable[..., object], *arguments: object) -> None:
        """Make a mutating call that fails with ``code``; do nothing if the process is dead."""
        if self.is_off:
            return
        try:
            call(*arguments)
        except OSError as error:
            raise self.failure(code, error) from error
        except SimulatedCrash:
            self.is_dead = True
            raise

    def failure(self, code: int, cause: OSError) -> Exception:
        """Return the exception by which a VFS method reports ``code`` (extended) to SQLite.

        SQLite turns SQLITE_IOERR_CORRUPTFS into SQLITE_CORRUPT, but apsw raises the original
        exception to the program, so this returns a ``CorruptError`` from the start.
        """
        self.last_errno = cause.errno or 0
        if code == apsw.SQLITE_IOERR_CORRUPTFS:
            error: Exception = apsw.CorruptError()
            vars(error).update(result=apsw.SQLITE_CORRUPT, extendedresult=code)
        else:
            error = apsw.exception_for(code)
        error.args = (f"{cause} (to SQLite {_NAMES[code]})",)
        return error

    def inode_of(self, path: str) -> Inode | None:
        """Return the inode at an absolute path without symbolic links, or None."""
        inodes = self.disk.cache
        inode = inodes.get(ROOT)
        for name in path.split("/"):
            if name:
                number = inode.entries.get(name) if inode is not None else None
                if number is None:
                    return None
                inode = inodes.get(number)
        return inode

    def real_path(self, path: str) -> str:
        """Return the absolute path of ``path`` without symbolic links; its end may not exist.

        SQLite derives the names of journal and WAL from it: they lie beside the file and
        not beside a link to it. Raises ``OSError`` (ELOOP) after ``MAX_LINKS`` links.
        """
        names = path.split("/")[::-1]
        if not path.startswith("/"):
            names += self.process.getcwd().split("/")[::-1]
        found: list[str] = []
        links = 0
        while names:
            name = names.pop()
            if name == "..":
                del found[-1:]
            elif name not in {"", "."}:
                found.append(name)
                inode = self.inode_of("/".join(found))
                if inode is not None and inode.link_text:
                    links += 1
                    if links > MAX_LINKS:
                        raise os_error(errno.ELOOP, path)
                    found = [] if inode.link_text.startswith("/") else found[:-1]
                    names += inode.link_text.split("/")[::-1]
        return "/" + "/".join(found)

    def sync_directory_of(self, path: str) -> None:
        """Make the entries of the directory of ``path`` durable.

        A directory that cannot be opened is skipped, as in the unix VFS.
        """
        process = self.process
        try:
            descriptor = process.open(posixpath.dirname(path) or "/", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            process.fdatasync(descriptor)
        except OSError:
            process.close(descriptor)
            raise
        process.close(descriptor)
