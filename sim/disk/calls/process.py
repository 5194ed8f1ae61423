"""The ``os``-level process of a simulated disk: what one process sees of it.

Its methods are named, called and answered like the functions of ``os``, with the errno of
Linux. Differences, all of them:

- It refuses loudly (``UnsupportedOperation``, which names the call) whatever the disk does
  not model: ``mmap``, asynchronous I/O, ``ioctl``, extended attributes, special files,
  ``O_PATH`` and ``O_DIRECT``.
- Reads leave the time of access alone (``noatime``).
- There is one file system, so nothing answers EXDEV but ``/proc/self/fd/N``.
- A lock that another process holds is never waited for.
- ``fcntl.lockf`` is ``record_lock``, because ``lockf`` is the function of ``os``.

A process belongs to one thread.
"""

from __future__ import annotations

import os
from typing import IO, Any, Final

from sim.disk.calls.directory_calls import DirectoryCalls
from sim.disk.calls.file_objects import open_file
from sim.disk.calls.lock_calls import LockCalls
from sim.disk.calls.name_calls import NameCalls
from sim.disk.calls.open_call import OpenCall
from sim.disk.calls.path_name import FileDescriptorOrPath
from sim.disk.calls.raw_file import Opener
from sim.disk.calls.transfer_calls import TransferCalls
from sim.disk.disk import DEAD
from sim.errors import PowerOff, UnsupportedOperation

_FILE: Final = os.O_RDONLY | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# What programs call on descriptors through other modules than ``os``.
_ELSEWHERE: Final = frozenset({"aio_read", "aio_write", "fcntl", "io_uring", "ioctl", "mmap"})


class Process(OpenCall, NameCalls, TransferCalls, DirectoryCalls, LockCalls):
    """One process on a disk, as ``Process`` describes it; ``disk`` is the disk.

    ``uid`` 0 passes every permission check, others are held to the permission bits.
    ``descriptor_limit`` is how many descriptors may be open at a time (EMFILE).

    After ``disk.power_off()`` or ``poison()`` every call raises ``PowerOff``.
    """

    __slots__ = ()

    def exit(self) -> None:
        """End this process; to the disk an orderly end is the same as a kill."""
        self.poison()

    def sync_directory(self, path: str) -> None:
        """Open a directory, sync it and close it; in one step, if nobody can tell."""
        if self._power.off:
            raise PowerOff(DEAD)
        disk = self.disk
        if disk.calm and len(self._files) < self._descriptors.limit:
            number = self._known_directory(path)
            if number and number not in disk.locks.used:  # a close gives locks up
                disk.sync(number, path)
                return
        descriptor = self.open(path, _DIRECTORY)
        try:
            self.fsync(descriptor)
        finally:
            self.close(descriptor)

    def read_file(self, path: str) -> tuple[bytes, int]:
        """Open a file, read once from its start, close it; in one step, if nobody can tell.

        Returns what was read, and the file's size in bytes.
        """
        if self._power.off:
            raise PowerOff(DEAD)
        disk = self.disk
        if disk.calm and len(self._files) < self._descriptors.limit:
            inode = self._known_file(path)
            if inode is not None and inode.number not in disk.locks.used:  # a close gives locks up
                return inode.read(0, inode.size), inode.size
        descriptor = self.open(path, _FILE)
        try:
            size_bytes = self.size_of(descriptor)
            return self.pread(descriptor, size_bytes, 0) if size_bytes else b"", size_bytes
        finally:
            self.close(descriptor)

    def open_file(
        self,
        file: FileDescriptorOrPath,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Opener | None = None,
    ) -> IO[Any]:
        """Open a file object, as the builtin ``open`` does; text is UTF-8 if nothing is said."""
        file_object: Any = open_file(
            self, file, mode, buffering, encoding, errors, newline, closefd, opener
        )
        opened: IO[Any] = file_object
        return opened


class Refusal:
    """An attribute that says, when it is asked for, that the disk does not model it.

    With a ``__getattr__`` instead, Python would look every attribute up the slow way.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, process: Process | None, owner: type[Process]) -> Refusal:
        if process is None:
            return self
        raise UnsupportedOperation(f"{self._name} is not modelled by the simulated disk")


for _name in sorted(_ELSEWHERE | set(dir(os))):
    if not (_name.startswith("_") or _name.isupper() or hasattr(Process, _name)):
        setattr(Process, _name, Refusal(_name))
