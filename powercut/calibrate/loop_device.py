"""A loop device over an image file, through ``/dev/loop-control``. Needs Linux 5.8.

The kernel detaches the device by itself when its last user has gone, because it is attached with
``LO_FLAGS_AUTOCLEAR``: also when this process is killed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CONFIGURE: Final = 0x4C0A
_GET_FREE: Final = 0x4C82
_AUTOCLEAR: Final = 4
_DIRECT_IO: Final = 16
_CONFIG: Final = struct.Struct("=II 5Q4I64s64s32s2Q 64x")
_ATTEMPTS: Final = 100


@dataclass(frozen=True, slots=True)
class LoopDevice:
    """An attached device: a block device with the content of the image."""

    path: str
    descriptor: int

    def detach(self) -> None:
        """Close the device; the kernel detaches it once it is not mounted either."""
        os.close(self.descriptor)


def attach(image: str) -> LoopDevice:
    """Attach the file ``image`` to a free loop device, without a page cache of its own.

    Raises ``OSError``: EBUSY if other processes took every device that was free, ENOENT if the
    free one has no node in ``/dev``.
    """
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        backing = os.open(image, os.O_RDWR | os.O_CLOEXEC)
        try:
            return _attach(control, backing)
        finally:
            os.close(backing)
    finally:
        os.close(control)


def devices_over(suffix: str) -> list[str]:
    """Return the devices, of all processes, whose image has a name that ends with ``suffix``."""
    found = []
    for backing in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        with suppress(OSError):  # detached by now
            if backing.read_text().rstrip("\n").endswith(suffix):
                found.append(f"/dev/{backing.parts[3]}")
    return found


def _attach(control: int, backing: int) -> LoopDevice:
    flags = _AUTOCLEAR | _DIRECT_IO
    config = _CONFIG.pack(backing, 0, *(0,) * 5, 0, 0, 0, flags, b"", b"", b"", 0, 0)
    for _ in range(_ATTEMPTS):
        number = fcntl.ioctl(control, _GET_FREE)
        path = f"/dev/loop{number}"
        try:
            device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            # A container has the nodes that its host had when it was started.
            hint = f"there is no {path}, which is free; create it: mknod {path} b 7 {number}"
            raise OSError(errno.ENOENT, hint) from None
        try:
            fcntl.ioctl(device, _CONFIGURE, config)
        except OSError as error:
            os.close(device)
            # Another process was quicker.
            if error.errno != errno.EBUSY:
                raise
        else:
            return LoopDevice(path, device)
    raise OSError(errno.EBUSY, "no loop device stays free")
