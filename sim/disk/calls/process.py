"""One process on a simulated disk, with the calls of ``os``.

The methods of ``Process`` have the names, parameters, results and errors of the functions of
``os``, with the errno of Linux. All differences:

- Calls that the disk does not model raise ``UnsupportedOperation`` with their name: ``mmap``,
  asynchronous I/O, ``ioctl``, extended attributes, special files, ``O_PATH`` and ``O_DIRECT``.
- Reads leave the time of access unchanged (``noatime``).
- There is one file system, so EXDEV comes only from ``/proc/self/fd/N``.
- A lock that another process holds is never waited for.
- ``fcntl.lockf`` is ``record_lock``, because ``lockf`` is a function of ``os``.

A process belongs to one thread.
"""

from __future__ import annotations

import os
from typing import IO, Any, Final

from sim.disk.calls.attribute_calls import AttributeCalls
from sim.disk.calls.descriptor_calls import DescriptorCalls
from sim.disk.calls.directory_calls import DirectoryCalls
from sim.disk.calls.file_objects import open_file
from sim.disk.calls.lock_calls import LockCalls
from sim.disk.calls.name_calls import NameCalls
from sim.disk.calls.open_call import OpenCall
from sim.disk.calls.path_name import FileDescriptorOrPath
from sim.disk.calls.raw_file import Opener
from sim.disk.calls.transfer_calls import TransferCalls
from sim.errors import UnsupportedOperation

# Functions of other modules than ``os`` that programs call on descriptors.
_ELSEWHERE: Final = frozenset({"aio_read", "aio_write", "fcntl", "io_uring", "ioctl", "mmap"})
# These are members of ``OsModule``.
_OF_A_MODULE: Final = frozenset({"fdopen", "path"})


class Process(
    OpenCall, DescriptorCalls, TransferCalls, NameCalls, AttributeCalls, DirectoryCalls, LockCalls
):
    """One process on ``disk``.

    ``uid`` 0 passes every permission check, any other user is held to the permission bits.
    At most ``descriptor_limit`` descriptors may be open at a time (EMFILE).

    After ``disk.power_off()`` or ``poison()`` every call raises ``PowerOff``.
    """

    __slots__ = ()

    def exit(self) -> None:
        """End this process; to the disk an orderly end is the same as a kill."""
        self.poison()

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
        """Open a file object, as the builtin ``open`` does."""
        file_object: Any = open_file(
            self, file, mode, buffering, encoding, errors, newline, closefd, opener
        )
        opened: IO[Any] = file_object
        return opened


class Refusal:
    """A descriptor that raises ``UnsupportedOperation`` with the name of a call of ``os``.

    A ``__getattr__`` instead would slow down the lookup of every attribute.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, process: Process | None, owner: type[Process]) -> Refusal:
        if process is None:
            return self
        remedy = f"; call OsModule(process).{self._name}" if self._name in _OF_A_MODULE else ""
        raise UnsupportedOperation(f"{self._name} is not modelled by the simulated disk{remedy}")


for _name in sorted(_ELSEWHERE | set(dir(os))):
    if not (_name.startswith("_") or _name.isupper() or hasattr(Process, _name)):
        setattr(Process, _name, Refusal(_name))
