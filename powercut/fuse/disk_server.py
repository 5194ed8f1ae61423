"""The simulated disk as a file system of the kernel, for any program.

``DiskServer`` has the functions that answer the requests of one mount. A node is an inode number
of the disk; each mutating request is one operation of its journal. The kernel checks permissions
and types before it sends a request (``default_permissions``), and keeps locks.

Refused, so that programs use something else or fail with an errno that they expect: special
files (EPERM), extended attributes, ``copy_file_range`` and ``fallocate`` other than extending
(EOPNOTSUPP), ``RENAME_EXCHANGE`` (EINVAL).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from powercut.fuse.attributes import (
    ATIME_NOW,
    KILL_PRIVILEGES,
    MTIME_NOW,
    SET_ATIME,
    SET_GID,
    SET_MODE,
    SET_MTIME,
    SET_SIZE,
    SET_UID,
    attributes_reply,
    entry_reply,
    owner_in,
    wanted,
    without_privileges,
)
from powercut.fuse.connection import Answer, succeed
from powercut.fuse.listings import Listings
from powercut.fuse.messages import (
    CREATE_IN,
    FALLOCATE_IN,
    FSYNC_IN,
    LISTXATTR_IN,
    LISTXATTR_OUT,
    MKDIR_IN,
    MKNOD_IN,
    MOST_NAME_BYTES,
    NO_ENTRY,
    NODE_IN,
    OPEN_OUT,
    PAGE_BYTES,
    READ_IN,
    RENAME2_IN,
    SETXATTR_IN,
    STATFS_OUT,
    WRITE_IN,
    WRITE_OUT,
    Opcode,
    Request,
    one_name,
    two_names,
)
from sim.disk.cache.inode import ROOT, Inode
from sim.disk.cache.refusal import FILE_MAX_BYTES
from sim.disk.disk import Disk

JOURNAL_BYTES: Final = 1 << 30
"""The most data that one recording may write."""

_FREE_BLOCKS: Final = 1 << 28
_OPEN_DIRECT: Final = 1
_WRITE_FROM_MAP: Final = 1
_WRITE_KILLS_PRIVILEGES: Final = 4
_SYNC_DATA_ONLY: Final = 1
_NO_REPLACE: Final = 1
_KEEP_SIZE: Final = 1


class DiskServer:
    """Answers the requests of one mount by operations on ``disk``.

    ``direct`` makes every read and write of a file a request. ``mapped`` has the numbers of
    the operations that wrote pages of mappings, by path, ``mapped_syncs`` those paths that were
    synced by ``msync`` or ``fdatasync``, ``ranges`` those whose ``sync_file_range`` was counted as
    a barrier, ``refused`` those of refused calls, by the reason; ``is_full`` is whether the limit
    of the journal was reached.
    """

    def __init__(self, disk: Disk, *, direct: bool = True) -> None:
        self.disk = disk
        self.direct = direct
        self.mapped: dict[str, list[int]] = {}
        self.mapped_syncs: set[str] = set()
        self.ranges: set[str] = set()
        self.refused: dict[str, set[str]] = {}
        self.is_full = False
        self._written_bytes = 0
        self._names: dict[int, tuple[int, str]] = {}
        self._paths: dict[int, str] = {ROOT: "/"}

    @property
    def answers(self) -> Mapping[int, Answer]:
        """The function for each kind of request."""
        return MappingProxyType(
            {
                Opcode.LOOKUP: self._lookup,
                Opcode.GETATTR: self._attributes,
                Opcode.SETATTR: self._set_attributes,
                Opcode.READLINK: self._link_text,
                Opcode.SYMLINK: self._symlink,
                Opcode.MKNOD: self._make_node,
                Opcode.MKDIR: self._make_directory,
                Opcode.UNLINK: self._unlink,
                Opcode.RMDIR: self._unlink,
                Opcode.RENAME: self._rename,
                Opcode.RENAME2: self._rename2,
                Opcode.LINK: self._link,
                Opcode.OPEN: self._open,
                Opcode.CREATE: self._create,
                Opcode.TMPFILE: self._create_unnamed,
                Opcode.READ: self._read,
                Opcode.WRITE: self._write,
                Opcode.FALLOCATE: self._allocate,
                Opcode.FSYNC: self._sync,
                Opcode.FSYNCDIR: self._sync,
                Opcode.RELEASE: succeed,
                Opcode.READDIR: Listings(self._inode).read,
                Opcode.STATFS: self._statistics,
                Opcode.SETXATTR: self._set_extended,
                Opcode.LISTXATTR: self._list_extended,
            }
        )

    def sync_range(self, path: str) -> None:
        """Carry out ``sync_file_range`` of a file as ``fdatasync``; a missing path does nothing."""
        inode: Inode | None = self.disk.root
        for name in path.strip("/").split("/"):
            inode = None if inode is None else self._entry(inode, name)
        if inode is not None:
            self.ranges.add(path)
            self.disk.sync(inode.number, path, data_only=True)

    def _refusal(self, number: int, what: str, path: str) -> OSError:
        """Return the error of a call that is not modelled, and remember it."""
        self.refused.setdefault(what, set()).add(path)
        return OSError(number, f"{what} are not modelled")

    # -- inodes and names ----------------------------------------------------------------

    def _inode(self, node: int) -> Inode:
        found = self.disk.cache.get(node)
        if found is None:
            raise OSError(errno.ESTALE, f"there is no inode {node}")
        return found

    def _entry(self, directory: Inode, name: str) -> Inode | None:
        number = directory.entries.get(name)
        return None if number is None else self._inode(number)

    def _existing(self, directory: Inode, name: str) -> Inode:
        found = self._entry(directory, name)
        if found is None:
            raise OSError(errno.ENOENT, name)
        return found

    def _vacant(self, node: int, data: memoryview) -> tuple[Inode, str]:
        """Return the directory of a new name, and the name."""
        directory, name = self._inode(node), one_name(data)
        if name in directory.entries:
            raise OSError(errno.EEXIST, name)
        return directory, name

    def _path(self, node: int) -> str:
        """Return the path under which an inode was last looked up or named."""
        path = self._paths.get(node)
        if path is None and node in self._names:
            path = self._paths[node] = self._path_in(*self._names[node])
        return path or "an unnamed file"

    def _path_in(self, node: int, name: str) -> str:
        return f"/{name}" if node == ROOT else f"{self._path(node)}/{name}"

    def _name_inode(self, inode: Inode, parent: int, name: str) -> None:
        """Remember the name under which an inode was last looked up or named."""
        number = inode.number
        if self._names.get(number) == (parent, name):
            return
        self._names[number] = parent, name
        if inode.parent:
            self._paths = {ROOT: "/"}
        else:
            self._paths.pop(number, None)

    def _named(self, inode: Inode, parent: int, name: str) -> bytes:
        self._name_inode(inode, parent, name)
        return entry_reply(inode)

    def _lookup(self, request: Request) -> bytes:
        name = one_name(request.body)
        inode = self._entry(self._inode(request.node), name)
        return NO_ENTRY if inode is None else self._named(inode, request.node, name)

    # -- attributes ----------------------------------------------------------------------

    def _attributes(self, request: Request) -> bytes:
        return attributes_reply(self._inode(request.node))

    def _set_attributes(self, request: Request) -> bytes:
        change = wanted(request)
        valid, path, inode = change.valid, self._path(request.node), self._inode(request.node)
        if valid & SET_SIZE:
            if valid & KILL_PRIVILEGES:
                self._drop_privileges(request, inode, path)
            if change.size > FILE_MAX_BYTES:
                raise OSError(errno.EFBIG, path)
            self.disk.resize(inode, change.size, path)
        if not valid & (SET_MODE | SET_UID | SET_GID | SET_ATIME | SET_MTIME):
            return self._attributes(request)
        inode = self._inode(request.node)
        now_ns = self.disk.now_ns()
        atime_ns = now_ns if valid & ATIME_NOW else change.atime_ns
        mtime_ns = now_ns if valid & MTIME_NOW else change.mtime_ns
        mode = inode.mode
        if valid & (SET_UID | SET_GID) and inode.is_file:
            mode = without_privileges(mode, request, inode.gid)
        if valid & SET_MODE:
            mode = stat.S_IFMT(mode) | stat.S_IMODE(change.mode)
        self.disk.set_attributes(
            inode,
            path,
            mode=mode,
            uid=change.uid if valid & SET_UID else None,
            gid=change.gid if valid & SET_GID else None,
            times_ns=(
                atime_ns if valid & SET_ATIME else inode.atime_ns,
                mtime_ns if valid & SET_MTIME else inode.mtime_ns,
            ),
        )
        return self._attributes(request)

    def _drop_privileges(self, request: Request, inode: Inode, path: str) -> None:
        mode = without_privileges(inode.mode, request, inode.gid)
        if mode != inode.mode:
            self.disk.set_attributes(inode, path, mode=mode)

    def _statistics(self, _request: Request) -> bytes:
        blocks = files = _FREE_BLOCKS
        return STATFS_OUT.pack(
            blocks, blocks, blocks, files, files, PAGE_BYTES, MOST_NAME_BYTES, PAGE_BYTES, 0
        )

    def _set_extended(self, request: Request) -> bytes:
        """Refuse an attribute; that of an access list, which ``cp`` sets, is not named."""
        if bytes(request.body[SETXATTR_IN.size :]).startswith(b"system."):
            raise OSError(errno.EOPNOTSUPP, "there are no access lists")
        path = self._path(request.node)
        raise self._refusal(errno.EOPNOTSUPP, "extended attributes", path)

    def _list_extended(self, request: Request) -> bytes:
        """Answer that an inode has no extended attributes."""
        (size,) = LISTXATTR_IN.unpack_from(request.body)
        return b"" if size else LISTXATTR_OUT.pack(0)

    # -- names ---------------------------------------------------------------------------

    def _make(self, request: Request, data: memoryview, mode: int, link_text: str = "") -> Inode:
        directory, name = self._vacant(request.node, data)
        path, owner = self._path_in(request.node, name), owner_in(request, directory)
        inode = self.disk.create(directory, name, mode, path, link_text, owner)
        self._name_inode(inode, request.node, name)
        return inode

    def _make_node(self, request: Request) -> bytes:
        mode, *_ = MKNOD_IN.unpack_from(request.body)
        data = request.body[MKNOD_IN.size :]
        path = self._path_in(request.node, one_name(data))
        if not stat.S_ISREG(mode):
            raise self._refusal(errno.EPERM, "special files", path)
        return entry_reply(self._make(request, data, mode))

    def _make_directory(self, request: Request) -> bytes:
        mode, _ = MKDIR_IN.unpack_from(request.body)
        mode = stat.S_IFDIR | mode | self._inode(request.node).mode & stat.S_ISGID
        return entry_reply(self._make(request, request.body[MKDIR_IN.size :], mode))

    def _symlink(self, request: Request) -> bytes:
        name, text, _ = bytes(request.body).split(b"\0")
        mode, data = stat.S_IFLNK | 0o777, memoryview(name + b"\0")
        return entry_reply(self._make(request, data, mode, os.fsdecode(text)))

    def _link_text(self, request: Request) -> bytes:
        return os.fsencode(self._inode(request.node).link_text)

    def _link(self, request: Request) -> bytes:
        (node,) = NODE_IN.unpack_from(request.body)
        inode = self._inode(node)
        directory, name = self._vacant(request.node, request.body[NODE_IN.size :])
        self.disk.link(inode, directory, name, self._path_in(request.node, name))
        return self._named(self._inode(node), request.node, name)

    def _unlink(self, request: Request) -> bytes:
        directory, name = self._inode(request.node), one_name(request.body)
        inode = self._existing(directory, name)
        if inode.entries:
            raise OSError(errno.ENOTEMPTY, name)
        self.disk.unlink(inode, directory, name, self._path_in(request.node, name))
        return b""

    def _rename(self, request: Request) -> bytes:
        (to_node,) = NODE_IN.unpack_from(request.body)
        return self._move(request, to_node, request.body[NODE_IN.size :], 0)

    def _rename2(self, request: Request) -> bytes:
        to_node, flags = RENAME2_IN.unpack_from(request.body)
        return self._move(request, to_node, request.body[RENAME2_IN.size :], flags)

    def _move(self, request: Request, to_node: int, names: memoryview, flags: int) -> bytes:
        name, to_name = two_names(names)
        path, to_path = self._path_in(request.node, name), self._path_in(to_node, to_name)
        if flags & ~_NO_REPLACE:
            raise self._refusal(errno.EINVAL, "exchanges of names (RENAME_EXCHANGE)", to_path)
        directory, to_directory = self._inode(request.node), self._inode(to_node)
        inode, replaced = self._existing(directory, name), self._entry(to_directory, to_name)
        if replaced is inode:
            return b""
        if replaced is not None and flags & _NO_REPLACE:
            raise OSError(errno.EEXIST, to_name)
        if replaced is not None and replaced.entries:
            raise OSError(errno.ENOTEMPTY, to_name)
        self.disk.rename(inode, directory, name, to_directory, to_name, path, to_path)
        self._name_inode(inode, to_node, to_name)
        return b""

    # -- contents ------------------------------------------------------------------------

    def _open(self, request: Request) -> bytes:
        self._inode(request.node)
        return OPEN_OUT.pack(0, _OPEN_DIRECT if self.direct else 0, 0)

    def _create(self, request: Request) -> bytes:
        _, mode, *_ = CREATE_IN.unpack_from(request.body)
        inode = self._make(request, request.body[CREATE_IN.size :], stat.S_IFREG | mode)
        return entry_reply(inode) + self._open(request)

    def _create_unnamed(self, request: Request) -> bytes:
        _, mode, *_ = CREATE_IN.unpack_from(request.body)
        directory, path = self._inode(request.node), self._path(request.node)
        mode, owner = stat.S_IFREG | mode, owner_in(request, directory)
        inode = self.disk.create(directory, "", mode, path, "", owner)
        return entry_reply(inode) + self._open(request)

    def _read(self, request: Request) -> bytes:
        _, offset, size = READ_IN.unpack_from(request.body)
        return self._inode(request.node).read(offset, size)

    def _write(self, request: Request) -> bytes:
        _, offset, size, how, _, flags, _ = WRITE_IN.unpack_from(request.body)
        number = request.node
        inode, path = self._inode(number), self._path(number)
        if how & _WRITE_KILLS_PRIVILEGES:
            self._drop_privileges(request, inode, path)
        if offset + size > FILE_MAX_BYTES:
            raise OSError(errno.EFBIG, path)
        self._written_bytes += size
        if self._written_bytes > JOURNAL_BYTES:
            self.is_full = True
            raise OSError(errno.ENOSPC, "the journal is full")
        if size:
            data = bytes(request.body[WRITE_IN.size : WRITE_IN.size + size])
            self.disk.write(inode, offset, data, path, direct=bool(flags & os.O_DIRECT))
            if how & _WRITE_FROM_MAP:
                self.mapped.setdefault(path, []).append(self.disk.operations)
            if flags & os.O_DSYNC:
                data_only = flags & os.O_SYNC != os.O_SYNC
                self.disk.sync(number, path, data_only, start=offset, end=offset + size)
        return WRITE_OUT.pack(size, 0)

    def _allocate(self, request: Request) -> bytes:
        _, offset, length, mode = FALLOCATE_IN.unpack_from(request.body)
        path = self._path(request.node)
        if mode & ~_KEEP_SIZE:
            raise self._refusal(errno.EOPNOTSUPP, "holes and other modes of fallocate", path)
        end, inode = offset + length, self._inode(request.node)
        if end > FILE_MAX_BYTES:
            raise OSError(errno.EFBIG, "the file would be too large")
        if request.uid:
            self._drop_privileges(request, inode, path)
        if not mode:
            self.disk.allocate(inode, end, path)
        return b""

    def _sync(self, request: Request) -> bytes:
        _, flags = FSYNC_IN.unpack_from(request.body)
        path = self._path(request.node)
        data_only = bool(flags & _SYNC_DATA_ONLY)
        if data_only and path in self.mapped:
            self.mapped_syncs.add(path)
        self.disk.sync(request.node, path, data_only)
        return b""
