"""One lifetime of a process on the simulated disk, as SQLite's files and VFS share it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from sim.errors import PowerOff, SimulatedCrash
from sim.sqlite.real_path import inode_at
from sim.sqlite.result_code import failure

if TYPE_CHECKING:
    from sim.disk.cache.inode import Inode
    from sim.disk.calls.process import Process


class Lifetime:
    """``is_dead`` once the process died in a call of SQLite: then nothing changes any more.

    ``is_exclusive`` follows ``PRAGMA locking_mode``; ``last_errno`` is of the last failure.
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
        """Whether the process behind the process is dead, by whatever operation."""
        return self.is_dead or self.process.poisoned

    def must_live(self) -> None:
        """Raise ``PowerOff`` unless the process is alive."""
        if self.is_dead or self.process.poisoned:
            raise PowerOff("the process that made this call is dead")

    def let_statement(self, _cursor: object, _statement: str, _bindings: object) -> bool:
        """Let a statement run (``exec_trace``): ``PowerOff`` unless the process is alive."""
        self.must_live()
        return True

    def failed(self, code: int, cause: OSError) -> Exception:
        """Return what to raise for SQLite to see ``code``, and remember the errno."""
        self.last_errno = cause.errno or 0
        return failure(code, cause)

    def change(self, code: int, call: Callable[..., object], *arguments: object) -> None:
        """Make a mutating call; nothing once the process is dead, ``code`` if it fails."""
        if self.is_off:
            return
        try:
            call(*arguments)
        except OSError as error:
            raise self.failed(code, error) from error
        except SimulatedCrash:
            self.is_dead = True
            raise

    def inode_of(self, path: str) -> Inode | None:
        """Return what a full path means, or None."""
        return inode_at(self.disk.cache, path)

    def sync_directory_of(self, path: str) -> None:
        """Make the entries of the directory durable in which ``path`` is a name.

        A directory that cannot be opened is passed over, as in the unix VFS.
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
