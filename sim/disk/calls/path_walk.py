"""Path resolution as Linux does it: ``fs/namei.c``, in its order of checks.

``parent`` finds the directory that holds the last component and leaves the component
alone; ``resolve`` follows it; ``to_open`` does what ``open`` does. Symbolic links count
against one budget for the whole walk, and a trailing slash follows a link and asks for a
directory.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Final

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.cache.inode_table import InodeTable
from sim.disk.calls.path_name import PathName, is_too_long, path_name
from sim.disk.calls.permissions import SEARCH, Identity
from sim.disk.os_error import os_error

LINKS_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Opening:
    """Where ``open`` arrived: ``name`` in ``directory``, which means ``inode`` or nothing.

    ``must_be_directory`` says that a slash on the way asked for one.
    """

    directory: Inode
    name: str
    inode: Inode | None
    must_be_directory: bool


@dataclass(slots=True)
class Walk:
    """One walk of one call; ``path`` and ``path2`` are what its errors shall name."""

    inodes: InodeTable
    identity: Identity
    path: object
    path2: object = None
    links: int = field(default=0, init=False)

    def parent(self, name: PathName, start: Inode) -> Inode:
        """Return the directory that holds the last component of ``name``.

        Raises ``OSError``: ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EACCES.
        """
        directory = self._inode(ROOT) if name.absolute else start
        for part in name.parents:
            directory = self._enter(directory, part)
        if name.last:
            self._search(directory)
        return directory

    def resolve(self, name: PathName, start: Inode, *, follow: bool = True) -> Inode:
        """Return the inode that ``name`` means; without ``follow``, a link at its end itself.

        Raises ``OSError`` as ``parent`` does.
        """
        return self._last(self.parent(name, start), name, follow=follow)

    def to_open(self, name: PathName, start: Inode, *, follow: bool, creating: bool) -> Opening:
        """Return where ``open`` arrives; with ``creating`` the last component may be missing.

        Raises ``OSError`` as ``parent`` does, and EISDIR for a slash after what is created.
        """
        directory = self.parent(name, start)
        must_be_directory = name.slash
        while True:
            if creating and name.slash and name.last not in {".", ".."}:
                raise self._failed(errno.EISDIR)
            inode = self.look(directory, name.last)
            if inode is None and not creating:
                raise self._failed(errno.ENOENT)
            if inode is None or not inode.link_text or not (follow or name.slash):
                return Opening(directory, name.last, inode, must_be_directory)
            name = self._link(inode)
            must_be_directory = must_be_directory or name.slash
            directory = self.parent(name, directory)

    def look(self, directory: Inode, name: str) -> Inode | None:
        """Return what ``name`` means in ``directory``, or None; no link is followed.

        Raises ``OSError``: ENAMETOOLONG.
        """
        if name in {"", "."}:
            return directory
        if name == "..":
            return self._inode(directory.parent)
        if is_too_long(name) and directory.links:
            raise self._failed(errno.ENAMETOOLONG)
        number = directory.entries.get(name)
        return None if number is None else self._inode(number)

    def _enter(self, directory: Inode, name: str) -> Inode:
        self._search(directory)
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
        """Return where a link points to, and count it."""
        self.links += 1
        if self.links > LINKS_MAX:
            raise self._failed(errno.ELOOP)
        return path_name(link.link_text, "readlink")

    def _found(self, directory: Inode, name: str) -> Inode:
        inode = self.look(directory, name)
        if inode is None:
            raise self._failed(errno.ENOENT)
        return inode

    def _search(self, directory: Inode) -> None:
        if not self.identity.may(directory, SEARCH):
            raise self._failed(errno.EACCES)

    def _inode(self, number: int) -> Inode:
        inode = self.inodes.get(number)
        assert inode is not None, number
        return inode

    def _failed(self, number: int) -> OSError:
        return os_error(number, self.path, self.path2)
