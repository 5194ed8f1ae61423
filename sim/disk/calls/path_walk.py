"""Path resolution as Linux does it: ``fs/namei.c``, in its order of checks.

``parent`` finds the directory that holds the last component, ``resolve`` also follows that
component, and ``to_open`` finds or prepares it for ``open``. All symbolic links of a walk count
against one limit. A slash at the end follows a link and requires a directory.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.cache.inode_table import InodeTable
from sim.disk.calls.path_name import DOTS, PathName, is_too_long, split
from sim.disk.calls.permissions import Identity
from sim.disk.os_error import os_error

LINKS_MAX: Final = 40


Opening: TypeAlias = tuple[Inode, str, Inode | None, bool]
"""The end of a walk of ``open``: a directory, a name in it, and its inode if it exists.

The last part is True if a slash at the end of the path or of a link requires a directory.
"""


@dataclass(slots=True)
class Walk:
    """One walk of one call; its errors name ``path`` and ``path2``."""

    inodes: InodeTable
    identity: Identity
    path: object
    path2: object = None
    links: int = field(default=0, init=False)

    def parent(self, name: PathName, start: Inode) -> Inode:
        """Return the directory that holds the last component of ``name``.

        Raises ``OSError``: ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EACCES.
        """
        directory = self.inodes[ROOT] if name.absolute else start
        for part in name.parents:
            directory = self._enter(directory, part)
        if name.last and not self.identity.may_search(directory):
            raise self._failed(errno.EACCES)
        return directory

    def resolve(self, name: PathName, start: Inode, *, follow: bool = True) -> Inode:
        """Return the inode that ``name`` refers to; without ``follow``, a link at its end itself.

        Raises ``OSError`` as ``parent`` does.
        """
        return self._last(self.parent(name, start), name, follow=follow)

    def to_open(self, name: PathName, start: Inode, *, follow: bool, creating: bool) -> Opening:
        """Return the end of a walk of ``open``; with ``creating`` the last name may be missing.

        Raises ``OSError`` as ``parent`` does, and EISDIR for a slash after a name to be created.
        """
        directory = self.parent(name, start)
        must_be_directory = False
        while True:
            if creating and name.slash and name.last not in DOTS:
                raise self._failed(errno.EISDIR)
            # Once set, LOOKUP_FOLLOW holds for every further link of the chain.
            follow = follow or name.slash
            must_be_directory = must_be_directory or name.slash
            inode = self.lookup(directory, name.last)
            if inode is None and not creating:
                raise self._failed(errno.ENOENT)
            if inode is None or not (inode.link_text and follow):
                return directory, name.last, inode, must_be_directory
            name = self._link(inode)
            directory = self.parent(name, directory)

    def lookup(self, directory: Inode, name: str) -> Inode | None:
        """Return the inode of ``name`` in ``directory``, or None; no link is followed.

        Raises ``OSError``: ENAMETOOLONG.
        """
        if name in {"", "."}:
            return directory
        if name == "..":
            return self.inodes[directory.parent]
        number = directory.entries.get(name)
        if number is not None:
            return self.inodes[number]
        if is_too_long(name) and directory.is_linked:
            raise self._failed(errno.ENAMETOOLONG)
        return None

    def _enter(self, directory: Inode, name: str) -> Inode:
        if not self.identity.may_search(directory):
            raise self._failed(errno.EACCES)
        inode = self._found(directory, name)
        if inode.link_text:
            inode = self._follow(inode, directory)
        if not inode.is_directory:
            raise self._failed(errno.ENOTDIR)
        return inode

    def _last(self, directory: Inode, name: PathName, *, follow: bool) -> Inode:
        inode = self._found(directory, name.last)
        if inode.link_text and (follow or name.slash):
            inode = self._follow(inode, directory)
        if name.slash and not inode.is_directory:
            raise self._failed(errno.ENOTDIR)
        return inode

    def _follow(self, link: Inode, directory: Inode) -> Inode:
        name = self._link(link)
        return self._last(self.parent(name, directory), name, follow=True)

    def _link(self, link: Inode) -> PathName:
        """Count a symbolic link, and return the path that it holds."""
        self.links += 1
        if self.links > LINKS_MAX:
            raise self._failed(errno.ELOOP)
        return split(link.link_text)

    def _found(self, directory: Inode, name: str) -> Inode:
        inode = self.lookup(directory, name)
        if inode is None:
            raise self._failed(errno.ENOENT)
        return inode

    def _failed(self, number: int) -> OSError:
        return os_error(number, self.path, self.path2)
