"""The calls that change names: ``fs/namei.c`` of Linux, in its order of checks."""

from __future__ import annotations

import errno
import re
import stat
from typing import Final

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.calls.arguments import c_int, directory_descriptor
from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.interpreter import LINK_FOLLOWS
from sim.disk.calls.path_name import DOTS, PathName, StrOrBytesPath, path_name
from sim.disk.calls.permissions import WRITE
from sim.disk.calls.process_state import ProcessState
from sim.disk.os_error import os_error

LINK_MAX: Final = 65_000
"""The most names of one file, as on ext4."""
_MKDIR_BITS: Final = 0o1777
OWN_DESCRIPTOR: Final = re.compile("/proc/self/fd/([0-9]+)", re.ASCII)
"""The path by which a process names what one of its descriptors refers to (proc(5))."""


class NameCalls(ProcessState):
    """Calls that make, move and remove names; their parameters are those of ``os``."""

    __slots__ = ()

    def unlink(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> None:
        """Remove the name of a file or a symbolic link."""
        self._unlink(path, "unlink", dir_fd)

    def remove(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> None:
        """Remove the name of a file or a symbolic link."""
        self._unlink(path, "remove", dir_fd)

    def rmdir(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> None:
        """Remove an empty directory."""
        name, directory_fd = path_name(path, "rmdir"), directory_descriptor(dir_fd)
        directory = self._parent(name, directory_fd, path)
        if name.last in DOTS:
            dotted = {"": errno.EBUSY, ".": errno.EINVAL, "..": errno.ENOTEMPTY}
            raise os_error(dotted[name.last], path)
        victim = self._entry(directory, name.last, path)
        if victim is None:
            raise os_error(errno.ENOENT, path)
        self._check_may_delete(directory, victim, path, is_directory=True)
        if victim.entries:
            raise os_error(errno.ENOTEMPTY, path)
        self.disk.unlink(victim, directory, name.last, name.text)

    def mkdir(self, path: StrOrBytesPath, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        """Make a directory."""
        name, mode = path_name(path, "mkdir"), c_int(mode)
        directory = self._to_create(name, directory_descriptor(dir_fd), path, is_directory=True)
        mode = stat.S_IFDIR | mode & self._unmasked & _MKDIR_BITS | directory.mode & stat.S_ISGID
        owner = self._identity.owner_in(directory)
        self.disk.create(directory, name.last, mode, name.text, owner=owner)

    def symlink(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        target_is_directory: bool = False,
        *,
        dir_fd: int | None = None,
    ) -> None:
        """Make ``dst`` a symbolic link that holds the path ``src``."""
        link_text = path_name(src, "symlink", "src")
        name = path_name(dst, "symlink", "dst")
        directory_fd = directory_descriptor(dir_fd)
        self._must_live()
        if link_text.error:
            raise os_error(link_text.error, src, dst)
        directory = self._to_create(name, directory_fd, src, dst)
        owner, mode = self._identity.owner_in(directory), stat.S_IFLNK | 0o777
        self.disk.create(directory, name.last, mode, name.text, link_text.text, owner=owner)

    def link(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Give the inode of ``src`` the further name ``dst``.

        A symbolic link at the end of ``src`` is followed beside a ``dir_fd`` or if
        ``LINK_FOLLOWS``. ``/proc/self/fd/N`` gives a file of ``O_TMPFILE`` a name, as open(2)
        describes it.
        """
        source, name = path_name(src, "link", "src"), path_name(dst, "link", "dst")
        src_fd, dst_fd = directory_descriptor(src_dir_fd), directory_descriptor(dst_dir_fd)
        self._must_live()
        follow = follow_symlinks and (LINK_FOLLOWS or src_fd is not None or dst_fd is not None)
        own_descriptor = OWN_DESCRIPTOR.fullmatch(source.text)
        if own_descriptor is None:
            inode = self._resolve(source, src_fd, src, dst, follow=follow)
            file = None
        else:
            file = self._files.get(int(own_descriptor[1]))
            if file is None:
                raise os_error(errno.ENOENT, src, dst)
            inode = self._cache[file.number]
        directory = self._vacant(name, dst_fd, src, dst)
        if file is not None and not follow:
            # The link itself, which lies on another file system.
            raise os_error(errno.EXDEV, src, dst)
        if not self._identity.may_link(inode):
            raise os_error(errno.EPERM, src, dst)
        self._check_may_change(directory, src, dst)
        if inode.is_directory:
            raise os_error(errno.EPERM, src, dst)
        if file is not None and not self._may_be_named(file, inode):
            raise os_error(errno.ENOENT, src, dst)
        if inode.links >= LINK_MAX:
            raise os_error(errno.EMLINK, src, dst)
        self.disk.link(inode, directory, name.last, name.text)

    def rename(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        """Move a name; a file or an empty directory that has the new name is replaced."""
        self._rename(src, dst, src_dir_fd, dst_dir_fd, "rename")

    def replace(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        """Move a name, as ``rename`` does."""
        self._rename(src, dst, src_dir_fd, dst_dir_fd, "replace")

    # -- shared ----------------------------------------------------------------------------

    def _unlink(self, path: StrOrBytesPath, call: str, dir_fd: int | None) -> None:
        name, directory_fd = path_name(path, call), directory_descriptor(dir_fd)
        directory = self._parent(name, directory_fd, path)
        if name.last in DOTS:
            raise os_error(errno.EISDIR, path)
        victim = self._entry(directory, name.last, path)
        if victim is None:
            raise os_error(errno.ENOENT, path)
        if name.slash:
            raise os_error(errno.EISDIR if victim.is_directory else errno.ENOTDIR, path)
        self._check_may_delete(directory, victim, path, is_directory=False)
        self.disk.unlink(victim, directory, name.last, name.text)

    def _rename(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        src_dir_fd: int | None,
        dst_dir_fd: int | None,
        call: str,
    ) -> None:
        source, target = path_name(src, call, "src"), path_name(dst, call, "dst")
        if src_dir_fd is not None:
            src_dir_fd = directory_descriptor(src_dir_fd)
        if dst_dir_fd is not None:
            dst_dir_fd = directory_descriptor(dst_dir_fd)
        directory = self._parent(source, src_dir_fd, src, dst)
        to_directory = self._parent(target, dst_dir_fd, src, dst)
        if source.last in DOTS or target.last in DOTS:
            raise os_error(errno.EBUSY, src, dst)
        inode = self._entry(directory, source.last, src, dst)
        if inode is None:
            raise os_error(errno.ENOENT, src, dst)
        replaced = self._entry(to_directory, target.last, src, dst)
        slash = source.slash or target.slash
        self._check_move(directory, inode, to_directory, replaced, slash, src, dst)
        if replaced is inode:
            return
        self.disk.rename(
            inode, directory, source.last,
            to_directory, target.last, source.text, target.text,
        )  # fmt: skip

    def _to_create(
        self,
        name: PathName,
        dir_fd: int | None,
        path: object,
        path2: object = None,
        *,
        is_directory: bool = False,
    ) -> Inode:
        """Return the directory in which the new name may be made."""
        directory = self._vacant(name, dir_fd, path, path2, is_directory=is_directory)
        self._check_may_change(directory, path, path2)
        return directory

    def _vacant(
        self,
        name: PathName,
        dir_fd: int | None,
        path: object,
        path2: object = None,
        *,
        is_directory: bool = False,
    ) -> Inode:
        """Return the directory in which the new name does not exist, and could."""
        directory = self._parent(name, dir_fd, path, path2)
        if name.last in DOTS or self._entry(directory, name.last, path, path2) is not None:
            raise os_error(errno.EEXIST, path, path2)
        if not directory.is_linked or (name.slash and not is_directory):
            raise os_error(errno.ENOENT, path, path2)
        return directory

    def _check_may_delete(
        self,
        directory: Inode,
        victim: Inode,
        path: object,
        path2: object = None,
        *,
        is_directory: bool,
    ) -> None:
        """Raise the error of removing ``victim`` from ``directory``, if there is one."""
        if not self._trusted:
            self._check_may_change(directory, path, path2)
            if not self._identity.may_unlink_from(directory, victim):
                raise os_error(errno.EPERM, path, path2)
        if victim.parent:
            if not is_directory:
                raise os_error(errno.EISDIR, path, path2)
        elif is_directory:
            raise os_error(errno.ENOTDIR, path, path2)

    def _check_move(
        self,
        directory: Inode,
        inode: Inode,
        to_directory: Inode,
        replaced: Inode | None,
        slash: bool,
        src: object,
        dst: object,
        /,
    ) -> None:
        """Raise the error of moving ``inode``, if there is one."""
        if inode.parent:
            if self._is_within(to_directory, inode.number):
                raise os_error(errno.EINVAL, src, dst)
        elif slash:
            raise os_error(errno.ENOTDIR, src, dst)
        if replaced is not None and replaced.parent and self._is_within(directory, replaced.number):
            raise os_error(errno.ENOTEMPTY, src, dst)
        if replaced is not inode:
            self._check_may_move(directory, inode, to_directory, replaced, src, dst)

    def _check_may_move(
        self,
        directory: Inode,
        inode: Inode,
        to_directory: Inode,
        replaced: Inode | None,
        src: object,
        dst: object,
    ) -> None:
        is_directory = bool(inode.parent)
        self._check_may_delete(directory, inode, src, dst, is_directory=is_directory)
        if replaced is not None:
            self._check_may_delete(to_directory, replaced, src, dst, is_directory=is_directory)
        elif not to_directory.is_linked:
            raise os_error(errno.ENOENT, src, dst)
        else:
            self._check_may_change(to_directory, src, dst)
        # The entry ".." of a directory that moves changes, which is a change of the directory.
        changes_parent = is_directory and directory is not to_directory
        if changes_parent and not self._identity.may(inode, WRITE):
            raise os_error(errno.EACCES, src, dst)
        if replaced is not None and replaced.entries:
            raise os_error(errno.ENOTEMPTY, src, dst)

    def _is_within(self, directory: Inode, ancestor: int) -> bool:
        """Return whether ``directory`` is ``ancestor`` or lies below it."""
        while directory.number != ancestor:
            if directory.number == ROOT:
                return False
            directory = self._cache[directory.parent]
        return True

    def _may_be_named(self, file: OpenFile, inode: Inode) -> bool:
        """Return whether the inode of an open file has a name, or never had one and may get it."""
        is_new = inode.number in self.disk.cache.never_named and not file.flags.exclusive
        return bool(inode.links) or is_new
