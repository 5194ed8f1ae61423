"""Mounts without a place in the tree of directories, and namespaces for those that have one.

``fsopen(2)`` and ``fsmount(2)`` return a mount as a descriptor. Its files are reached through
``/proc/self/fd``, no other process sees them, and the kernel unmounts it when the descriptor is
closed: also when this process is killed. Needs Linux 5.2.

``attach`` gives a mount a place. Mounts that a process makes in its own mount namespace are seen
by no process outside it, and the kernel removes them with the last process of the namespace.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# The numbers of the system calls are the same on all architectures but Alpha.
_FSOPEN: Final = 430
_FSCONFIG: Final = 431
_FSMOUNT: Final = 432
_MOVE_MOUNT: Final = 429
_CLOSE_ON_EXEC: Final = 1
_SET_FLAG: Final = 0
_SET_STRING: Final = 1
_CREATE: Final = 6
NO_SUID: Final = 2
NO_DEV: Final = 4
NO_EXEC: Final = 8
_EMPTY_PATH: Final = 4
_AT_FDCWD: Final = -100
_DETACH: Final = 2
_NEW_MOUNTS: Final = 0x00020000
_NEW_USER: Final = 0x10000000
_PRIVATE: Final = 1 << 18 | 1 << 14

_libc: Final = ctypes.CDLL(None, use_errno=True)


def mount(
    kind: str,
    source: str,
    options: Mapping[str, str | None],
    flags: int = NO_SUID | NO_DEV | NO_EXEC,
) -> int:
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
        return _call(_FSMOUNT, context, _CLOSE_ON_EXEC, flags)
    finally:
        os.close(context)


def attach(mounted: int, path: str) -> None:
    """Give the mount of this descriptor the place ``path``, an existing directory."""
    _call(_MOVE_MOUNT, mounted, b"", _AT_FDCWD, path.encode(), _EMPTY_PATH)


def detach(path: str) -> None:
    """Remove the mount at ``path`` from the tree; processes in it keep their files."""
    if _libc.umount2(os.fsencode(path), _DETACH):
        raise _error()


def enter_mount_namespace() -> None:
    """Give this process a view of the mounts of its own, in which it may mount.

    A process without root gets a user namespace as well, in which its user and group keep their
    numbers. Raises ``OSError``: EPERM where the system forbids that, EINVAL in a process with
    threads.
    """
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_NEW_MOUNTS):
        if user == 0 or _libc.unshare(_NEW_MOUNTS | _NEW_USER):
            raise _error()
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    if _libc.mount(None, b"/", None, ctypes.c_ulong(_PRIVATE), None):
        raise _error()


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
        raise _error()
    return result


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
