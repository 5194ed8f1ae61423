"""The functions of ``os`` and ``fcntl`` that are routed, one wrapper for each.

A wrapper calls the real function while no process is interposed, and for the paths and
descriptors of the real machine.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from types import MethodType
from typing import Final

from powercut.interpose.descriptor_calls import (
    closerange_call,
    copy_file_range_call,
    descriptor_call,
    device_encoding_call,
    dup2_call,
    fcntl_call,
    no_terminal_call,
    one_descriptor_call,
    os_lockf_call,
    sendfile_call,
    splice_call,
)
from powercut.interpose.path_calls import (
    chdir_call,
    fchdir_call,
    getcwd_call,
    no_xattr_call,
    node_call,
    optional_path_call,
    path_call,
    process_call,
    random_call,
    refused_path_call,
    symlink_call,
    two_path_call,
)
from powercut.interpose.router import ROUTER
from powercut.interpose.wrapper import Real, Routed

_PATH: Final = (
    "access", "chmod", "chown", "lchown", "listdir", "listxattr", "lstat", "mkdir", "open",
    "pathconf", "readlink", "remove", "rmdir", "scandir", "stat", "statvfs", "truncate",
    "unlink", "utime",
)  # fmt: skip
_OPTIONAL_PATH: Final = frozenset({"listdir", "listxattr", "scandir"})
_TWO_PATHS: Final = ("link", "rename", "replace")
_ONE_DESCRIPTOR: Final = ("close", "fdatasync", "fstat", "fsync")
_DESCRIPTOR: Final = (
    "dup", "fchmod", "fchown", "fpathconf", "fstatvfs", "ftruncate", "get_blocking",
    "get_inheritable", "isatty", "lseek", "posix_fadvise", "posix_fallocate", "pread", "preadv",
    "pwrite", "pwritev", "read", "readinto", "readv", "set_blocking", "set_inheritable", "write",
    "writev",
)  # fmt: skip
# Calls on a descriptor or a path that no file or directory of this disk supports.
_NO_TERMINAL: Final = (
    "get_terminal_size", "tcgetpgrp", "tcsetpgrp", "ttyname", "login_tty", "eventfd_read",
    "eventfd_write",
)  # fmt: skip
_REFUSED_PATH: Final = ("chroot", "statx")
_NODE: Final = ("mkfifo", "mknod")
_NO_XATTR: Final = ("getxattr", "removexattr", "setxattr")


def routed_calls() -> Iterator[tuple[Real, Routed]]:
    """Yield each real function with the bound method that takes its place."""
    for maker, names in _MAKERS:
        for name in names:
            real = getattr(os, name, None)
            if real is not None:
                yield real, bound(maker(name, real), real)
    for name in ("chdir", "closerange", "copy_file_range", "dup2", "fchdir", "getcwd", "getcwdb",
                 "getrandom", "lockf", "sendfile", "splice", "symlink", "sync", "umask",
                 "urandom"):  # fmt: skip
        real = getattr(os, name)
        yield real, bound(_SPECIAL[name](real), real)
    for name in ("fcntl", "flock", "ioctl", "lockf"):
        real = getattr(fcntl, name)
        yield real, bound(fcntl_call(name, real), real)


def bound(routed: Routed, real: Real) -> Routed:
    routed.__name__ = routed.__qualname__ = real.__name__
    routed.__doc__ = real.__doc__
    routed.__module__ = real.__module__
    return MethodType(routed, ROUTER)


_MAKERS: Final = (
    (path_call, tuple(name for name in _PATH if name not in _OPTIONAL_PATH)),
    (optional_path_call, tuple(sorted(_OPTIONAL_PATH))),
    (two_path_call, _TWO_PATHS),
    (one_descriptor_call, _ONE_DESCRIPTOR),
    (descriptor_call, _DESCRIPTOR),
    (no_terminal_call, _NO_TERMINAL),
    (device_encoding_call, ("device_encoding",)),
    (refused_path_call, _REFUSED_PATH),
    (node_call, _NODE),
    (no_xattr_call, _NO_XATTR),
)
_SPECIAL: Final[dict[str, Callable[[Real], Routed]]] = {
    "chdir": chdir_call,
    "closerange": closerange_call,
    "copy_file_range": copy_file_range_call,
    "dup2": dup2_call,
    "fchdir": fchdir_call,
    "getcwd": getcwd_call,
    "getcwdb": getcwd_call,
    "getrandom": random_call,
    "lockf": os_lockf_call,
    "sendfile": sendfile_call,
    "splice": splice_call,
    "symlink": symlink_call,
    "sync": process_call,
    "umask": process_call,
    "urandom": random_call,
}
