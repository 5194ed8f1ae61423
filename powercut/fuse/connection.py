"""One connection to the kernel through ``/dev/fuse``, without libfuse.

``FuseConnection`` mounts, reads requests and passes each to the function that answers its kind.
It knows nothing about files. A request of any other kind gets ENOSYS, after which the kernel
sends no further request of most of these kinds.

A request is answered before the next is read, so the functions see them one after the other, in
the order in which the kernel sent them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Final

from powercut.fuse.device import FUSE
from powercut.fuse.messages import (
    IN_HEADER,
    INIT_IN,
    INIT_OUT,
    OUT_HEADER,
    PAGE_BYTES,
    InitFlag,
    Opcode,
    Request,
)
from powercut.fuse.mount import NO_DEV, NO_SUID, mount

MAX_WRITE_BYTES: Final = 1 << 20

_MAJOR: Final = 7
_MINOR: Final = 36
_WORD: Final = 0xFFFFFFFF
_HEADER_BYTES: Final = IN_HEADER.size
_NO_REPLY: Final = frozenset({Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT})
_ALWAYS: Final = (
    InitFlag.ASYNC_READ,
    InitFlag.BIG_WRITES,
    InitFlag.ASYNC_DIRECT_IO,
    InitFlag.MAX_PAGES,
    InitFlag.INIT_EXT,
)

# The constructor of a named tuple is a Python function, and takes three times as long.
_new: Final = tuple.__new__

Answer = Callable[[Request], bytes]


def succeed(_request: Request) -> bytes:
    """Answer a request that needs no work."""
    return b""


class FuseConnection:
    """Requests of one mounted file system. Closing it aborts every request that is under way.

    ``answers`` has a function for each kind of request: it returns the payload of the reply, or
    raises an ``OSError``, which becomes the error of the call. ``wanted`` are features to take if
    the kernel offers them; ``taken`` are those that it offered.
    """

    def __init__(
        self,
        answers: Mapping[int, Answer],
        wanted: Iterable[InitFlag] = (),
    ) -> None:
        """Open ``/dev/fuse``; raises ``OSError``."""
        answers = {**answers, Opcode.INIT: self._init, Opcode.DESTROY: succeed}
        # A plain number is found faster than a member of an enumeration.
        self._answers = {int(opcode): answer for opcode, answer in answers.items()}
        self._wanted: int = reduce(or_, (*_ALWAYS, *wanted))
        self._view = memoryview(bytearray(MAX_WRITE_BYTES + PAGE_BYTES))
        self._buffers = [self._view]
        self.taken = 0
        self.descriptor = FUSE.open()

    @property
    def options(self) -> dict[str, str | None]:
        """The options with which the connection is mounted."""
        return {
            "fd": str(self.descriptor),
            "rootmode": f"{stat.S_IFDIR:o}",
            "user_id": str(os.geteuid()),
            "group_id": str(os.getegid()),
        }

    def mount(
        self, options: Mapping[str, str | None] | None = None, flags: int = NO_SUID | NO_DEV
    ) -> int:
        """Mount the files; return the descriptor of the mount, whose closing unmounts them.

        The mount has no path in the tree of directories; see ``mount.py``.
        """
        return mount("fuse", "powercut", {**self.options, **(options or {})}, flags)

    def adopt(self, descriptor: int) -> None:
        """Use ``descriptor``, of a connection that another program has mounted."""
        os.close(self.descriptor)
        self.descriptor = descriptor

    def close(self) -> None:
        """End the connection; without effect if it has ended."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def serve(self) -> bool:
        """Answer the next request, if one waits; return False if the files were unmounted."""
        try:
            size = os.readv(self.descriptor, self._buffers)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return False
            # ENOENT: the request was interrupted.
            if error.errno in {errno.EAGAIN, errno.EINTR, errno.ENOENT}:
                return True
            raise
        view = self._view
        _, opcode, unique, node, uid, gid, process = IN_HEADER.unpack_from(view)
        answer = self._answers.get(opcode)
        code, payload = 0, b""
        if answer is None:
            if opcode in _NO_REPLY:
                return True
            code = errno.ENOSYS
        else:
            body = view[_HEADER_BYTES:size]
            try:
                payload = answer(_new(Request, (node, uid, gid, process, body)))
            except OSError as error:
                code = error.errno or errno.EIO
        reply = OUT_HEADER.pack(OUT_HEADER.size + len(payload), -code, unique) + payload
        try:
            os.write(self.descriptor, reply)
        except FileNotFoundError:
            """The request was interrupted, and the kernel waits no longer."""
        return True

    def _init(self, request: Request) -> bytes:
        _, _, readahead, offered = INIT_IN.unpack_from(request.body)
        if offered & InitFlag.INIT_EXT:
            offered |= int.from_bytes(request.body[16:20], "little") << 32
        self.taken = offered & self._wanted
        return INIT_OUT.pack(
            _MAJOR,
            _MINOR,
            readahead,
            self.taken & _WORD,
            64,  # requests of the background at a time
            48,  # and the number at which the kernel regards the device as congested
            MAX_WRITE_BYTES,
            1,  # nanoseconds, the unit of time stamps
            MAX_WRITE_BYTES // PAGE_BYTES,
            0,
            self.taken >> 32,
        )
