"""Who a process is, and what the permission bits of an inode let it do.

Left out: access control lists, and capabilities one by one (uid 0 has all, others none). Of
the settings that forbid more than POSIX does, ``fs.protected_hardlinks`` is on, as every
distribution has it, and the others are off. The setuid and setgid bits of a file mean
nothing here, and only ``chown`` takes them off; on Linux a write by anybody but root does.
"""

from __future__ import annotations

import stat
from typing import Final, NamedTuple

from sim.disk.cache.inode import Inode

READ: Final = 4
WRITE: Final = 2
SEARCH: Final = 1
EXECUTE: Final = 1

_ANY_EXECUTE: Final = 0o111
_SETGID_EXECUTABLE: Final = stat.S_ISGID | stat.S_IXGRP


class Identity(NamedTuple):
    """The user and the groups of a process; ``groups`` holds ``gid`` or not, as you like."""

    uid: int = 0
    gid: int = 0
    groups: frozenset[int] = frozenset()

    def may(self, inode: Inode, wanted: int) -> bool:
        """Say whether all of the bits ``wanted`` (``READ | WRITE | SEARCH``) are granted.

        The rule is path_resolution(7): the first class that matches decides alone.
        """
        if not self.uid:
            executable = stat.S_ISDIR(inode.mode) or bool(inode.mode & _ANY_EXECUTE)
            return not wanted & EXECUTE or executable
        granted = inode.mode
        if self.uid == inode.uid:
            granted >>= 6
        elif self.is_member(inode.gid):
            granted >>= 3
        return granted & wanted == wanted

    def owns(self, inode: Inode) -> bool:
        """Say whether the process may change the inode's attributes."""
        return not self.uid or self.uid == inode.uid

    def is_member(self, gid: int) -> bool:
        return gid == self.gid or gid in self.groups

    def may_link(self, inode: Inode) -> bool:
        """Say whether ``fs.protected_hardlinks`` (proc_sys_fs(5)) allows one more name."""
        if self.owns(inode):
            return True
        privileged = inode.mode & stat.S_ISUID or inode.mode & _SETGID_EXECUTABLE == (
            _SETGID_EXECUTABLE
        )
        return inode.is_file and not privileged and self.may(inode, READ | WRITE)

    def may_unlink_from(self, directory: Inode, victim: Inode) -> bool:
        """Say whether the sticky bit of ``directory`` lets this process take ``victim`` out."""
        return not directory.mode & stat.S_ISVTX or self.owns(victim) or self.owns(directory)
