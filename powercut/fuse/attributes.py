"""The attributes of an inode of the simulated disk, as the kernel reads and sets them."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final, NamedTuple

from powercut.fuse.messages import (
    ATTRIBUTES_OUT,
    ENTRY_OUT,
    PAGE_BYTES,
    ROOT_NODE,
    SETATTR_IN,
    VALID_S,
    Request,
)
from sim.disk.cache.inode import Inode

_SECOND_NS: Final = 1_000_000_000
_SECTORS_OF_BLOCK: Final = 8
_PRIVILEGES: Final = stat.S_ISUID | stat.S_ISGID


# The fields of SETATTR that are set, and flags beside them. Members of an ``IntFlag`` would take
# a microsecond for each test.
SET_MODE: Final = 1 << 0
SET_UID: Final = 1 << 1
SET_GID: Final = 1 << 2
SET_SIZE: Final = 1 << 3
SET_ATIME: Final = 1 << 4
SET_MTIME: Final = 1 << 5
ATIME_NOW: Final = 1 << 7
MTIME_NOW: Final = 1 << 8
KILL_PRIVILEGES: Final = 1 << 11


class Wanted(NamedTuple):
    """The changes that one SETATTR asks for; times in nanoseconds."""

    valid: int
    size: int
    atime_ns: int
    mtime_ns: int
    mode: int
    uid: int
    gid: int


def wanted(request: Request) -> Wanted:
    """Decode a SETATTR."""
    valid, _, _, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, uid, gid = (
        SETATTR_IN.unpack_from(request.body)
    )
    return Wanted(
        valid, size, atime * _SECOND_NS + atime_ns, mtime * _SECOND_NS + mtime_ns, mode, uid, gid
    )


def without_privileges(mode: int, request: Request, gid: int) -> int:
    """Return the mode of a file of group ``gid`` that is written, truncated or given away.

    The setuid bit goes. The setgid bit goes if the group may execute the file, or if the process
    belongs to another group (``setattr_should_drop_suidgid`` of Linux).
    """
    mode &= ~stat.S_ISUID
    if not mode & stat.S_ISGID:
        return mode
    if mode & stat.S_IXGRP or not (request.uid == 0 or _is_member(request, gid)):
        mode &= ~stat.S_ISGID
    return mode


def _is_member(request: Request, gid: int) -> bool:
    """Return whether the process of a request is in a group; requests have only its first."""
    if request.gid == gid:
        return True
    try:
        status = Path(f"/proc/{request.process}/status").read_text(encoding="ascii")
    except OSError:  # it has ended
        return False
    groups = next(line for line in status.splitlines() if line.startswith("Groups:"))
    return str(gid) in groups.split()


def packed(inode: Inode) -> tuple[int, ...]:
    """Return the fields of ``struct fuse_attr``."""
    atime_ns, mtime_ns, ctime_ns = inode.atime_ns, inode.mtime_ns, inode.ctime_ns
    return (
        inode.number,
        PAGE_BYTES if inode.parent else inode.size,
        len(inode.blocks) * _SECTORS_OF_BLOCK,
        atime_ns // _SECOND_NS, mtime_ns // _SECOND_NS, ctime_ns // _SECOND_NS,
        atime_ns % _SECOND_NS, mtime_ns % _SECOND_NS, ctime_ns % _SECOND_NS,
        inode.mode, inode.links, inode.uid, inode.gid, 0, PAGE_BYTES, 0,
    )  # fmt: skip


def attributes_reply(inode: Inode) -> bytes:
    """Return the reply to GETATTR and SETATTR."""
    return ATTRIBUTES_OUT.pack(_valid_s(inode), 0, 0, *packed(inode))


def entry_reply(inode: Inode) -> bytes:
    """Return the reply to requests that look up or make a name."""
    return ENTRY_OUT.pack(inode.number, 0, VALID_S, _valid_s(inode), 0, 0, *packed(inode))


def _valid_s(inode: Inode) -> int:
    """Return the seconds for which the kernel may keep attributes.

    The kernel must not keep those of a setuid or setgid file, because a write changes the mode
    without a request for it.
    """
    return 0 if inode.mode & _PRIVILEGES and inode.number != ROOT_NODE else VALID_S


def owner_in(request: Request, directory: Inode) -> tuple[int, int]:
    """Return uid and gid of a new inode in ``directory`` (inode(7), S_ISGID)."""
    return request.uid, directory.gid if directory.mode & stat.S_ISGID else request.gid
