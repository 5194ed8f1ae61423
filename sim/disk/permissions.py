"""Who a process is, and what the permission bits of an inode let it do.

Left out: access control lists, capabilities one by one (uid 0 has all, others none), and
the ``fs.protected_*`` settings, which forbid more than POSIX does. The setuid and setgid
bits of a file are kept, and mean nothing here.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import Final

from sim.disk.inode import Inode

READ: Final = 4
WRITE: Final = 2
SEARCH: Final = 1
EXECUTE: Final = 1

_ANY_EXECUTE = 0o111


@dataclass(frozen=True, slots=True)
class Identity:
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

    def may_unlink_from(self, directory: Inode, victim: Inode) -> bool:
        """Say whether the sticky bit of ``directory`` lets this process take ``victim`` out."""
        return not directory.mode & stat.S_ISVTX or self.owns(victim) or self.owns(directory)
