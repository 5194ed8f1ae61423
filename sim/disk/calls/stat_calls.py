"""The calls that read attributes and limits, and change nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, cast, overload

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES, Inode
from sim.disk.cache.lazy_inode import LazyInode
from sim.disk.cache.refusal import NAME_MAX
from sim.disk.calls.arguments import (
    c_int,
    configuration_name,
    directory_descriptor,
    file_descriptor,
)
from sim.disk.calls.interpreter import NO_DESCRIPTOR
from sim.disk.calls.name_calls import LINK_MAX
from sim.disk.calls.path_name import (
    PATH_MAX,
    FileDescriptorOrPath,
    StrOrBytesPath,
    optional_path_or_descriptor,
    path_name,
    path_or_descriptor,
    refuse_beside_descriptor,
    split,
)
from sim.disk.calls.process_state import ProcessState
from sim.disk.os_error import os_error

DEVICE: Final = 0x5043
_SECOND_NS: Final = 1_000_000_000
_SECTORS: Final = BLOCK_BYTES // SECTOR_BYTES
_FILE_SYSTEM_BLOCKS: Final = 1 << 28
_FILE_SYSTEM_INODES: Final = 1 << 24
_ST_NOATIME: Final = 1024
_NO_LIMIT: Final = -1
# pathconf(3) on ext4 with blocks of 4,096 bytes.
_LIMITS: Final = {
    "PC_ALLOC_SIZE_MIN": BLOCK_BYTES, "PC_ASYNC_IO": 1, "PC_CHOWN_RESTRICTED": 1,
    "PC_FILESIZEBITS": 64, "PC_LINK_MAX": LINK_MAX, "PC_MAX_CANON": 255, "PC_MAX_INPUT": 255,
    "PC_NAME_MAX": NAME_MAX, "PC_NO_TRUNC": 1, "PC_PATH_MAX": PATH_MAX, "PC_PIPE_BUF": 4096,
    "PC_REC_MIN_XFER_SIZE": BLOCK_BYTES, "PC_REC_XFER_ALIGN": BLOCK_BYTES, "PC_VDISABLE": 0,
}  # fmt: skip
_LIMIT_OF_NUMBER: Final = {
    number: _LIMITS.get(name, _NO_LIMIT) for name, number in os.pathconf_names.items()
}
# Those that glibc answers without looking at the file, which need not exist.
_LIMITS_OF_ANY_FILE: Final = frozenset(
    os.pathconf_names[f"PC_{name}"]
    for name in (
        "MAX_CANON", "MAX_INPUT", "NO_TRUNC", "PATH_MAX", "PIPE_BUF", "PRIO_IO",
        "REC_INCR_XFER_SIZE", "REC_MAX_XFER_SIZE", "SOCK_MAXBUF", "SYMLINK_MAX", "SYNC_IO",
        "VDISABLE",
    )
)  # fmt: skip


class StatCalls(ProcessState):
    """Calls on the attributes of inodes, and on the limits of the file system."""

    __slots__ = ()

    def stat(
        self,
        path: FileDescriptorOrPath,
        *,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> os.stat_result:
        """Return the attributes of the inode that a path or a descriptor refers to."""
        where, directory_fd = path_or_descriptor(path, "stat"), directory_descriptor(dir_fd)
        refuse_beside_descriptor("stat", where, directory_fd, follow=follow_symlinks)
        return stat_result(self._find(where, directory_fd, path, follow=follow_symlinks))

    def lstat(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> os.stat_result:
        """Return the attributes of a path, of the link itself if it is a symbolic link."""
        name, directory_fd = path_name(path, "lstat"), directory_descriptor(dir_fd)
        return stat_result(self._resolve(name, directory_fd, path, follow=False))

    def fstat(self, fd: int) -> os.stat_result:
        """Return the attributes of an open file."""
        return stat_result(self._cache[self._file(fd).number])

    def access(
        self,
        path: StrOrBytesPath,
        mode: int,
        *,
        dir_fd: int | None = None,
        effective_ids: bool = False,
        follow_symlinks: bool = True,
    ) -> bool:
        """Return whether ``mode`` (``R_OK | W_OK | X_OK``, or ``F_OK``) would be granted."""
        name, mode = path_name(path, "access"), c_int(mode)
        directory_fd = directory_descriptor(dir_fd)
        self._must_live()
        if mode & ~(os.R_OK | os.W_OK | os.X_OK):
            return False
        try:
            inode = self._resolve(name, directory_fd, path, follow=follow_symlinks)
        except OSError:
            return False
        return self._identity.may(inode, mode)

    # -- limits ----------------------------------------------------------------------------

    def statvfs(self, path: FileDescriptorOrPath) -> os.statvfs_result:
        """Return the size and the limits of the file system, which is always empty.

        No write fills it: a simulated disk is full only when a fault makes it so.
        """
        self._find(path_or_descriptor(path, "statvfs"), None, path)
        return _file_system()

    def fstatvfs(self, fd: int, /) -> os.statvfs_result:
        """Return the size and the limits of the file system of an open file."""
        self._file(fd)
        return _file_system()

    def pathconf(self, path: FileDescriptorOrPath, name: str | int) -> int:
        """Return a limit of ``os.pathconf_names``; -1 if there is none."""
        where, number = path_or_descriptor(path, "pathconf"), configuration_name(name)
        if not path or where == NO_DESCRIPTOR or _needs_file(number):
            return _limit(number, self._find(where, None, path))
        self._must_live()
        return _LIMIT_OF_NUMBER[number]

    def fpathconf(self, fd: int, name: str | int, /) -> int:
        """Return a limit for an open file; -1 if there is none."""
        fd, number = file_descriptor(fd), configuration_name(name)
        if fd < 0 or _needs_file(number):
            return _limit(number, self._cache[self._file(fd).number])
        self._must_live()
        return _LIMIT_OF_NUMBER[number]

    def listxattr(
        self, path: FileDescriptorOrPath | None = None, *, follow_symlinks: bool = True
    ) -> list[str]:
        """Return no names: there are no extended attributes."""
        where = optional_path_or_descriptor(path, "listxattr")
        if isinstance(where, int) and where < 0 and NO_DESCRIPTOR is not None:
            # CPython tests the sign here.
            where = split(".")
        refuse_beside_descriptor("listxattr", where, None, follow=follow_symlinks)
        self._find(where, None, path, follow=follow_symlinks)
        return []


def stat_result(inode: Inode) -> os.stat_result:
    """Return the attributes of ``inode`` as ``stat`` does.

    ``st_blocks`` counts the blocks that were written, in units of 512 bytes; a directory
    is one block long. The attributes of a ``LazyInode`` are asked for when they are read.
    """
    if isinstance(inode, LazyInode):
        return cast("os.stat_result", LazyStat(inode.copy()))
    return _whole_result(inode)


def _whole_result(inode: Inode) -> os.stat_result:
    is_directory = inode.parent != 0
    accessed, accessed_float = _seconds(inode.atime_ns)
    modified, modified_float = _seconds(inode.mtime_ns)
    changed, changed_float = _seconds(inode.ctime_ns)
    return os.stat_result(
        (
            inode.mode,
            inode.st_ino,
            DEVICE,
            inode.links,
            inode.uid,
            inode.gid,
            BLOCK_BYTES if is_directory else inode.size,
            accessed,
            modified,
            changed,
            accessed_float,
            modified_float,
            changed_float,
            inode.atime_ns,
            inode.mtime_ns,
            inode.ctime_ns,
            BLOCK_BYTES,
            _SECTORS if is_directory else len(inode.blocks) * _SECTORS,
            0,
        )
    )


# Most inodes have few time stamps, and a program asks for each of them many times.
@lru_cache(maxsize=1024)
def _seconds(time_ns: int) -> tuple[int, float]:
    """Return a time stamp in whole seconds, and in seconds as CPython adds them up."""
    seconds, fraction_ns = divmod(time_ns, _SECOND_NS)
    return seconds, seconds + 1e-9 * fraction_ns


_IN_SEQUENCE: Final = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")
_LAZY_FIELDS: Final[dict[str, Callable[[LazyInode], float]]] = {
    "st_mode": lambda inode: inode.mode,
    "st_ino": lambda inode: inode.st_ino,
    "st_dev": lambda _: DEVICE,
    "st_nlink": lambda inode: inode.links,
    "st_uid": lambda inode: inode.uid,
    "st_gid": lambda inode: inode.gid,
    "st_size": lambda inode: BLOCK_BYTES if inode.is_directory else inode.size,
    "st_atime": lambda inode: _seconds(inode.atime_ns)[1],
    "st_mtime": lambda inode: _seconds(inode.mtime_ns)[1],
    "st_ctime": lambda inode: _seconds(inode.ctime_ns)[1],
    "st_atime_ns": lambda inode: inode.atime_ns,
    "st_mtime_ns": lambda inode: inode.mtime_ns,
    "st_ctime_ns": lambda inode: inode.ctime_ns,
    "st_blksize": lambda _: BLOCK_BYTES,
}
_LAZY_ITEMS: Final[tuple[Callable[[LazyInode], float], ...]] = (
    *map(_LAZY_FIELDS.__getitem__, _IN_SEQUENCE),
    lambda inode: _seconds(inode.atime_ns)[0],
    lambda inode: _seconds(inode.mtime_ns)[0],
    lambda inode: _seconds(inode.ctime_ns)[0],
)


class LazyStat(Sequence[float]):
    """``os.stat_result`` of a ``LazyInode``, each field read when the program reads it."""

    __slots__ = ("_inode",)

    def __init__(self, inode: LazyInode) -> None:
        self._inode = inode

    def __getattr__(self, name: str) -> object:
        field = _LAZY_FIELDS.get(name)
        inode = self._inode
        return getattr(_whole_result(inode), name) if field is None else field(inode)

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[float, ...]: ...
    def __getitem__(self, index: int | slice) -> float | tuple[float, ...]:
        if isinstance(index, slice):
            return tuple(item(self._inode) for item in _LAZY_ITEMS[index])
        return _LAZY_ITEMS[index](self._inode)

    def __len__(self) -> int:
        return len(_LAZY_ITEMS)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, tuple | LazyStat) else False

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(_whole_result(self._inode))


def _file_system() -> os.statvfs_result:
    return os.statvfs_result(
        (
            BLOCK_BYTES, BLOCK_BYTES, _FILE_SYSTEM_BLOCKS, _FILE_SYSTEM_BLOCKS,
            _FILE_SYSTEM_BLOCKS, _FILE_SYSTEM_INODES, _FILE_SYSTEM_INODES, _FILE_SYSTEM_INODES,
            _ST_NOATIME, NAME_MAX, DEVICE,
        )
    )  # fmt: skip


def _needs_file(number: int) -> bool:
    """Return whether a limit depends on the file; EINVAL for a limit that does not exist."""
    if number not in _LIMIT_OF_NUMBER:
        raise os_error(errno.EINVAL)
    return number not in _LIMITS_OF_ANY_FILE


def _limit(number: int, inode: Inode) -> int:
    if number == os.pathconf_names["PC_ASYNC_IO"] and not inode.is_file:
        return _NO_LIMIT
    return _LIMIT_OF_NUMBER[number]
