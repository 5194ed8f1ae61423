"""The calls that change names: ``fs/namei.c`` of Linux, in its order of checks."""

from __future__ import annotations

import errno
import re
import stat
from typing import Final

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.calls.path_name import PathName, StrOrBytesPath, is_too_long, path_name
from sim.disk.calls.permissions import WRITE
from sim.disk.calls.process_state import ProcessState
from sim.disk.disk import DEAD
from sim.disk.os_error import os_error
from sim.errors import PowerOff

_DOTS: Final = frozenset({"", ".", ".."})
_MKDIR_BITS: Final = 0o1777
_OWN_DESCRIPTOR: Final = re.compile("/proc/self/fd/([0-9]+)", re.ASCII)


class NameCalls(ProcessState):
    """Calls that make names, move them and take them away."""

    __slots__ = ()

    # The arguments of every call are those of the function of this name in ``os``.

    def unlink(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> None:
        """Take away the name of a file or a symbolic link."""
        self._must_live()
        name = path_name(path, "unlink")
        directory = self._parent(name, dir_fd, path)
        if name.last in _DOTS:
            raise os_error(errno.EISDIR, path)
        victim = self._look(directory, name.last, path)
        if victim is None:
            raise os_error(errno.ENOENT, path)
        if name.slash:
            raise os_error(errno.EISDIR if victim.is_directory else errno.ENOTDIR, path)
        self._may_delete(directory, victim, path, is_directory=False)
        self.disk.unlink(self._own(victim), self._own(directory), name.last, name.text)

    remove = unlink

    def rmdir(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> None:
        """Take away an empty directory."""
        self._must_live()
        name = path_name(path, "rmdir")
        directory = self._parent(name, dir_fd, path)
        if name.last in _DOTS:
            dotted = {"": errno.EBUSY, ".": errno.EINVAL, "..": errno.ENOTEMPTY}
            raise os_error(dotted[name.last], path)
        victim = self._look(directory, name.last, path)
        if victim is None:
            raise os_error(errno.ENOENT, path)
        self._may_delete(directory, victim, path, is_directory=True)
        if victim.entries:
            raise os_error(errno.ENOTEMPTY, path)
        self.disk.unlink(self._own(victim), self._own(directory), name.last, name.text)

    def mkdir(self, path: StrOrBytesPath, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        """Make a directory."""
        self._must_live()
        name = path_name(path, "mkdir")
        directory = self._to_create(name, dir_fd, path, is_directory=True)
        mode = stat.S_IFDIR | mode & self._unmasked & _MKDIR_BITS | directory.mode & stat.S_ISGID
        self.disk.create(directory, name.last, mode, name.text, owner=self._owner(directory))

    def symlink(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        target_is_directory: bool = False,  # noqa: ARG002, FBT - as in os, where Linux ignores it
        *,
        dir_fd: int | None = None,
    ) -> None:
        """Make ``dst`` a symbolic link that says ``src``."""
        self._must_live()
        target = _name(src, "symlink", src, dst)
        name = _name(dst, "symlink", src, dst)
        directory = self._to_create(name, dir_fd, src, dst)
        self.disk.create(
            directory,
            name.last,
            stat.S_IFLNK | 0o777,
            name.text,
            target.text,
            owner=self._owner(directory),
        )

    def link(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Give the inode behind ``src`` the further name ``dst``.

        A symbolic link at the end of ``src`` is followed only where a ``dir_fd`` is given,
        too: without one, CPython calls ``link(2)``, and Linux does not follow there.
        ``/proc/self/fd/N`` gives a file of ``O_TMPFILE`` a name, as open(2) describes it.
        """
        self._must_live()
        source = _name(src, "link", src, dst)
        follow = follow_symlinks and (src_dir_fd is not None or dst_dir_fd is not None)
        own_descriptor = _OWN_DESCRIPTOR.fullmatch(source.text)
        if own_descriptor is not None:
            inode = self._described(int(own_descriptor[1]), src, dst, follow=follow)
        else:
            inode = self._resolve(src, "link", src_dir_fd, dst, follow=follow)
        name = _name(dst, "link", src, dst)
        directory = self._vacant(name, dst_dir_fd, src, dst)
        if not self._identity.may_link(inode):
            raise os_error(errno.EPERM, src, dst)
        self._may_change(directory, src, dst)
        if inode.is_directory:
            raise os_error(errno.EPERM, src, dst)
        self.disk.link(self._own(inode), self._own(directory), name.last, name.text)

    def rename(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        """Move a name, over a file or an empty directory that has the new one."""
        if self._power.off:
            raise PowerOff(DEAD)
        known = to_known = None
        if src_dir_fd is None and dst_dir_fd is None:
            known = self._known.get(src) or self._learn(src)
            to_known = self._known.get(dst) or self._learn(dst)
        if known is None or to_known is None:
            self._rename_carefully(src, dst, src_dir_fd, dst_dir_fd)
            return
        disk, cache = self.disk, self.disk.cache
        (directory, source), (to_directory, target) = known, to_known
        changed = cache.changed
        if source.last not in directory.entries:
            raise os_error(errno.ENOENT, src, dst)
        number = directory.entries[source.last]
        inode = changed[number] if number in changed else cache.own(number)
        if target.last in to_directory.entries:
            number = to_directory.entries[target.last]
            if number == inode.number:
                return
            replaced = changed[number] if number in changed else cache.base[number]
            careful = inode.parent or replaced.parent
        else:
            careful = inode.parent or not to_directory.links
        if careful:
            self._rename_carefully(src, dst, src_dir_fd, dst_dir_fd)
            return
        disk.rename(
            inode, directory, source.last, to_directory, target.last, source.text, target.text
        )

    replace = rename

    # -- what they have in common --------------------------------------------------------

    def _rename_carefully(
        self,
        src: StrOrBytesPath,
        dst: StrOrBytesPath,
        src_dir_fd: int | None,
        dst_dir_fd: int | None,
    ) -> None:
        """Rename where a way is not plain, or where directories or permissions count."""
        source = _name(src, "rename", src, dst)
        directory = self._parent(source, src_dir_fd, src, dst)
        target = _name(dst, "rename", src, dst)
        to_directory = self._parent(target, dst_dir_fd, src, dst)
        if source.last in _DOTS or target.last in _DOTS:
            raise os_error(errno.EBUSY, src, dst)
        inode = self._look(directory, source.last, src, dst)
        if inode is None:
            raise os_error(errno.ENOENT, src, dst)
        replaced = self._look(to_directory, target.last, src, dst)
        slash = source.slash or target.slash
        self._check_move(directory, inode, to_directory, replaced, slash, src, dst)
        if replaced is inode:
            return
        self.disk.rename(
            self._own(inode), self._own(directory), source.last,
            self._own(to_directory), target.last, source.text, target.text,
        )  # fmt: skip

    def _look(
        self, directory: Inode, name: str, path: object, path2: object = None
    ) -> Inode | None:
        """Return what a last component means, or None; no link is followed."""
        if name in directory.entries:
            return self._inode(directory.entries[name])
        if directory.links and is_too_long(name):
            raise os_error(errno.ENAMETOOLONG, path, path2)
        return None

    def _to_create(
        self,
        name: PathName,
        dir_fd: int | None,
        path: object,
        path2: object = None,
        *,
        is_directory: bool = False,
    ) -> Inode:
        """Return the directory in which the new name may be made, for changing."""
        directory = self._vacant(name, dir_fd, path, path2, is_directory=is_directory)
        self._may_change(directory, path, path2)
        return self._own(directory)

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
        if name.last in _DOTS or self._look(directory, name.last, path, path2) is not None:
            raise os_error(errno.EEXIST, path, path2)
        if not directory.links or (name.slash and not is_directory):
            raise os_error(errno.ENOENT, path, path2)
        return directory

    def _may_delete(
        self,
        directory: Inode,
        victim: Inode,
        path: object,
        path2: object = None,
        *,
        is_directory: bool,
    ) -> None:
        """Raise the error that keeps ``victim`` in ``directory``, if there is one."""
        self._may_change(directory, path, path2)
        if not (self._trusted or self._identity.may_unlink_from(directory, victim)):
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
        """Raise the error that keeps ``inode`` where it is, if there is one."""
        if inode.parent:
            if self._is_within(to_directory, inode.number):
                raise os_error(errno.EINVAL, src, dst)
        elif slash:
            raise os_error(errno.ENOTDIR, src, dst)
        if replaced is not None and replaced.parent and self._is_within(directory, replaced.number):
            raise os_error(errno.ENOTEMPTY, src, dst)
        if replaced is not inode:
            self._may_move(directory, inode, to_directory, replaced, src, dst)

    def _may_move(
        self,
        directory: Inode,
        inode: Inode,
        to_directory: Inode,
        replaced: Inode | None,
        src: object,
        dst: object,
    ) -> None:
        is_directory = bool(inode.parent)
        self._may_delete(directory, inode, src, dst, is_directory=is_directory)
        if replaced is not None:
            self._may_delete(to_directory, replaced, src, dst, is_directory=is_directory)
        elif not to_directory.links:
            raise os_error(errno.ENOENT, src, dst)
        else:
            self._may_change(to_directory, src, dst)
        # Its entry ".." changes, and that is a change of the directory itself.
        turns = is_directory and directory is not to_directory
        if turns and not self._identity.may(inode, WRITE):
            raise os_error(errno.EACCES, src, dst)
        if replaced is not None and replaced.entries:
            raise os_error(errno.ENOTEMPTY, src, dst)

    def _is_within(self, directory: Inode, ancestor: int) -> bool:
        """Say whether ``directory`` is ``ancestor`` or lies somewhere below it."""
        while directory.number != ancestor:
            if directory.number == ROOT:
                return False
            directory = self._inode(directory.parent)
        return True

    def _described(self, descriptor: int, src: object, dst: object, *, follow: bool) -> Inode:
        """Return the file behind ``/proc/self/fd/N``, which lies on another file system."""
        file = self._files.get(descriptor)
        if file is None:
            raise os_error(errno.ENOENT, src, dst)
        if not follow:
            raise os_error(errno.EXDEV, src, dst)
        inode = self._inode(file.number)
        if not inode.links and not (file.flags.unnamed and not file.flags.exclusive):
            raise os_error(errno.ENOENT, src, dst)
        return inode


def _name(path: StrOrBytesPath, call: str, src: object, dst: object) -> PathName:
    """Take one of two paths apart; its error shall name both."""
    try:
        return path_name(path, call)
    except OSError as failed:
        raise os_error(failed.errno or errno.EINVAL, src, dst) from None
