"""The identity of a process, and the access that the permission bits of an inode grant it.

Not modelled: access control lists, and single capabilities (uid 0 has all, any other user
none). Of the settings that restrict more than POSIX does, ``fs.protected_hardlinks`` is on, as
in every distribution, and the others are off. No program is executed here, so the setuid and
setgid bits of a file grant nothing; they are set and cleared as on Linux.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import Final

from sim.disk.cache.inode import Inode

READ: Final = 4
WRITE: Final = 2
SEARCH: Final = 1
EXECUTE: Final = 1

_ANY_EXECUTE: Final = 0o111
_SHARED: Final = stat.S_ISVTX | stat.S_IWOTH
_SETGID_EXECUTABLE: Final = stat.S_ISGID | stat.S_IXGRP


@dataclass(frozen=True, slots=True)
class Identity:
    """The user and the groups of a process; ``groups`` may contain ``gid`` or not."""

    uid: int = 0
    gid: int = 0
    groups: frozenset[int] = frozenset()

    def may(self, inode: Inode, wanted: int) -> bool:
        """Return whether all of the bits ``wanted`` (``READ | WRITE | SEARCH``) are granted.

        The rule is path_resolution(7): the first class that matches decides alone.
        """
        if not self.uid:
            return not wanted & EXECUTE or inode.is_directory or bool(inode.mode & _ANY_EXECUTE)
        granted = inode.mode
        if self.uid == inode.uid:
            granted >>= 6
        elif self.is_member(inode.gid):
            granted >>= 3
        return granted & wanted == wanted

    def may_search(self, directory: Inode) -> bool:
        """Return whether a name in ``directory`` may be looked up."""
        return not self.uid or self.may(directory, SEARCH)

    def owns(self, inode: Inode) -> bool:
        """Return whether the process may change the inode's attributes."""
        return not self.uid or self.uid == inode.uid

    def is_member(self, gid: int) -> bool:
        return gid == self.gid or gid in self.groups

    def keeps_setgid(self, gid: int) -> bool:
        """Return whether the process may set the setgid bit on an inode of this group."""
        return not self.uid or self.is_member(gid)

    def without_privileges(self, inode: Inode) -> int:
        """Return the mode of a file that this process writes, truncates or gives away.

        setuid goes. setgid goes if the group may execute the file, or if the process belongs
        to another group (``setattr_should_drop_suidgid`` of Linux).
        """
        mode = inode.mode & ~stat.S_ISUID
        if mode & _SETGID_EXECUTABLE == _SETGID_EXECUTABLE or not self.keeps_setgid(inode.gid):
            mode &= ~stat.S_ISGID
        return mode

    def owner_in(self, directory: Inode) -> tuple[int, int]:
        """Return uid and gid of a new inode in ``directory`` (inode(7), S_ISGID)."""
        return self.uid, directory.gid if directory.mode & stat.S_ISGID else self.gid

    def mode_in(self, directory: Inode, mode: int) -> int:
        """Return the mode of a new file in ``directory``, before the umask.

        An executable does not become setgid for a group that the process is not in
        (``mode_strip_sgid`` of Linux).
        """
        inherits = directory.mode & stat.S_ISGID and mode & _SETGID_EXECUTABLE == _SETGID_EXECUTABLE
        return mode & ~stat.S_ISGID if inherits and not self.keeps_setgid(directory.gid) else mode

    def may_link(self, inode: Inode) -> bool:
        """Return whether ``fs.protected_hardlinks`` (proc_sys_fs(5)) allows one more name."""
        if self.owns(inode):
            return True
        privileged = inode.mode & stat.S_ISUID or inode.mode & _SETGID_EXECUTABLE == (
            _SETGID_EXECUTABLE
        )
        return inode.is_file and not privileged and self.may(inode, READ | WRITE)

    def may_unlink_from(self, directory: Inode, victim: Inode) -> bool:
        """Return whether the sticky bit of ``directory`` lets this process remove ``victim``."""
        return not directory.mode & stat.S_ISVTX or self.owns(victim) or self.owns(directory)

    def may_meet_link_in(self, directory: Inode, link: Inode) -> bool:
        """Return whether ``O_CREAT`` may meet a symbolic link that it does not follow.

        The rule is ``may_create_in_sticky`` of Linux, which no setting switches off for links.
        """
        is_shared = directory.mode & _SHARED == _SHARED
        return not is_shared or link.uid in {directory.uid, self.uid}
