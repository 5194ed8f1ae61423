"""The devices through which file systems are mounted (admin-guide/devices.txt of Linux).

A container may have another file in the place of a device, such as ``/dev/null``.
"""

from __future__ import annotations

import errno
import os
from typing import Final, NamedTuple


class Device(NamedTuple):
    """A device; ``number`` is its major and minor number, ``module`` the part of the kernel."""

    path: str
    number: tuple[int, int]
    module: str

    def open(self) -> int:
        """Return a descriptor; raises ``OSError``, with ENODEV for another file at this path."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        if os.fstat(descriptor).st_rdev != os.makedev(*self.number):
            os.close(descriptor)
            raise OSError(errno.ENODEV, "another file is in its place", self.path)
        return descriptor


FUSE: Final = Device("/dev/fuse", (10, 229), "fuse")
LOOP_CONTROL: Final = Device("/dev/loop-control", (10, 237), "loop")
