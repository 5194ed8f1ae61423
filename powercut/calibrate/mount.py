"""Mounts that have no place in the tree of directories.

``fsopen(2)`` and ``fsmount(2)`` return a mount as a descriptor. Its files are reached through
``/proc/self/fd``, no other process sees them, and the kernel unmounts it when the descriptor is
closed: also when this process is killed. Needs Linux 5.2.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Final

# The numbers of the system calls are the same on all architectures but Alpha.
_FSOPEN: Final = 430
_FSCONFIG: Final = 431
_FSMOUNT: Final = 432
_CLOSE_ON_EXEC: Final = 1
_SET_FLAG: Final = 0
_SET_STRING: Final = 1
_CREATE: Final = 6
_NO_SUID_DEV_EXEC: Final = 2 | 4 | 8

_libc: Final = ctypes.CDLL(None, use_errno=True)


def mount(kind: str, source: str, options: Mapping[str, str | None]) -> int:
    """Mount ``source`` as a file system of this ``kind``; return the descriptor of the mount.

    An option without a value is None. Raises ``OSError`` as ``mount(2)`` does.
    """
    context = _call(_FSOPEN, kind.encode(), _CLOSE_ON_EXEC)
    try:
        for key, value in {"source": source, **options}.items():
            if value is None:
                _call(_FSCONFIG, context, _SET_FLAG, key.encode(), None, 0)
            else:
                _call(_FSCONFIG, context, _SET_STRING, key.encode(), value.encode(), 0)
        _call(_FSCONFIG, context, _CREATE, None, None, 0)
        return _call(_FSMOUNT, context, _CLOSE_ON_EXEC, _NO_SUID_DEV_EXEC)
    finally:
        os.close(context)


def mount_error(kind: str) -> OSError | None:
    """Return why no file system of this ``kind`` can be mounted here, or None if it can.

    ENOSYS: the kernel is older than Linux 5.2. ENODEV: it has no such file system. EPERM: this
    process may not mount.
    """
    try:
        os.close(_call(_FSOPEN, kind.encode(), _CLOSE_ON_EXEC))
    except OSError as error:
        return error
    return None


def path_of(mounted: int) -> str:
    """Return the path of the root of a mount, for this process only."""
    return f"/proc/self/fd/{mounted}"


def sync_file_system(path: str) -> None:
    """Write out the file system that holds ``path``: ``syncfs(2)``. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _libc.syncfs(descriptor):
            raise OSError(ctypes.get_errno(), "syncfs")
    finally:
        os.close(descriptor)


def write_back(descriptor: int, offset: int, length: int) -> None:
    """Write dirty pages of a file to the device, and wait: ``sync_file_range(2)``.

    ``length`` 0 means to the end of the file. No metadata, and no flush of the device.
    """
    wait_write_wait = 7
    offset_64, length_64 = ctypes.c_int64(offset), ctypes.c_int64(length)
    if _libc.sync_file_range(descriptor, offset_64, length_64, wait_write_wait):
        raise OSError(ctypes.get_errno(), "sync_file_range")


def _call(number: int, *arguments: int | bytes | None) -> int:
    words = [ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    _libc.syscall.restype = ctypes.c_long
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
