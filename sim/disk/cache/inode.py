"""One inode: a file, a directory or a symbolic link, in the page cache or on the platter.

An inode of an image is never changed; an ``InodeTable`` changes a copy of its own. Content
and entries are persistent maps, so a copy costs the same for an empty file and for a
gigabyte.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Final

from immutables import Map
from xxhash import xxh3_64_intdigest

BLOCK_BYTES: Final = 4096
SECTOR_BYTES: Final = 512
_ZEROS: Final = bytes(SECTOR_BYTES)
ROOT: Final = 1

# The type bits of a mode, and those of a regular file and of a directory.
FORMAT: Final = 0o170000
REGULAR: Final = stat.S_IFREG
DIRECTORY: Final = stat.S_IFDIR

Blocks = Map[int, bytes]
Entries = Map[str, int]

NO_BLOCKS: Final[Blocks] = Map()
NO_ENTRIES: Final[Entries] = Map()


class Inode:
    """A file system object, identified by number.

    ``mode`` carries the type bits of ``stat(2)``. ``blocks`` has the bytes of a file by the
    number of the block, ``entries`` the inodes of a directory by name. A block holds at most
    ``BLOCK_BYTES``; the missing end of a block, and a missing block, read as zeros. No block
    holds a byte at or beyond ``size``, except on a platter where the data of an append became
    durable before its size: such bytes are not visible.

    ``link_text`` is the text of a symbolic link, and empty for every other inode. ``links`` is
    the number of names; for a directory it is 2 and one more for each subdirectory, or 0 if it
    has no name. ``parent`` is the number of the directory that holds a directory (the root holds
    itself), and 0 for every other inode; the calls test it where ``is_directory``, which is a call
    in Python, would be too slow.

    ``content_key`` is equal for equal content or equal entries. None means that it has to be
    computed (``key.py``); once it is, a change updates it or sets it to None again.
    """

    __slots__ = (
        "atime_ns", "blocks", "content_key", "ctime_ns", "entries", "gid", "link_text", "links",
        "mode", "mtime_ns", "number", "parent", "size", "uid",
    )  # fmt: skip

    # Set by ``new`` and ``copy``; a constructor would be one more call for each inode.
    atime_ns: int
    blocks: Blocks
    content_key: int | None
    ctime_ns: int
    entries: Entries
    gid: int
    link_text: str
    links: int
    mode: int
    mtime_ns: int
    number: int
    parent: int
    size: int
    uid: int

    @classmethod
    def new(cls, number: int, mode: int, uid: int, gid: int, link_text: str, now_ns: int) -> Inode:
        """Return an empty inode without a name."""
        inode = cls()
        inode.number = number
        inode.mode = mode
        inode.uid = uid
        inode.gid = gid
        inode.links = 0
        inode.size = len(os.fsencode(link_text)) if link_text else 0
        inode.blocks = NO_BLOCKS
        inode.entries = NO_ENTRIES
        inode.parent = 0
        inode.link_text = link_text
        inode.content_key = None
        inode.atime_ns = inode.mtime_ns = inode.ctime_ns = now_ns
        return inode

    @property
    def is_directory(self) -> bool:
        return self.mode & FORMAT == DIRECTORY

    @property
    def is_file(self) -> bool:
        return self.mode & FORMAT == REGULAR

    @property
    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_linked(self) -> bool:
        """Whether it has a name."""
        return bool(self.links)

    @property
    def st_ino(self) -> int:
        """The number that ``stat`` shows."""
        return self.number

    def copy(self) -> Inode:
        """Return an independent copy."""
        copy = Inode()
        copy.number = self.number
        copy.mode = self.mode
        copy.uid = self.uid
        copy.gid = self.gid
        copy.links = self.links
        copy.size = self.size
        copy.blocks = self.blocks
        copy.entries = self.entries
        copy.parent = self.parent
        copy.link_text = self.link_text
        copy.content_key = self.content_key
        copy.atime_ns = self.atime_ns
        copy.mtime_ns = self.mtime_ns
        copy.ctime_ns = self.ctime_ns
        return copy

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset`` (bytes), fewer at the end of the file."""
        end = offset + length
        if end > self.size:
            end = self.size
        if end <= offset:
            return b""
        if end <= BLOCK_BYTES:
            part = self.blocks.get(0, b"")[offset:end]
            return part if len(part) == end - offset else part.ljust(end - offset, b"\0")
        return self.stored(offset, end - offset)

    def stored(self, offset: int, length: int) -> bytes:
        """Return the ``length`` bytes stored at ``offset``, beyond the size as well."""
        index, start = divmod(offset, BLOCK_BYTES)
        if start + length <= BLOCK_BYTES:
            return self.blocks.get(index, b"")[start : start + length].ljust(length, b"\0")
        return self._read_across(offset, offset + length)

    def _read_across(self, offset: int, end: int) -> bytes:
        first, start = divmod(offset, BLOCK_BYTES)
        last = (end - 1) // BLOCK_BYTES
        blocks = self.blocks
        whole = b"".join(
            [blocks.get(index, b"").ljust(BLOCK_BYTES, b"\0") for index in range(first, last + 1)]
        )
        return whole[start : start + end - offset]

    def has_block(self, index: int) -> bool:
        """Return whether anything is stored in a block."""
        return index in self.blocks

    def write(self, offset: int, data: bytes) -> None:
        """Store ``data`` at ``offset`` (bytes); the size stays as it is."""
        index = start = 0
        if offset:
            index = offset // BLOCK_BYTES
            start = offset - index * BLOCK_BYTES
        if start + len(data) <= BLOCK_BYTES:
            blocks = self.blocks
            old = blocks.get(index, b"")
            new = _patched(old, start, data) if start or old else data
            if self.content_key is not None:
                self.content_key += block_key(index, new) - block_key(index, old)
            self.blocks = blocks.set(index, new)
            return
        self._write_across(index, start, data)

    def _write_across(self, index: int, start: int, data: bytes) -> None:
        changed: dict[int, bytes] = {}
        position = 0
        while position < len(data):
            piece = data[position : position + BLOCK_BYTES - start]
            old = self.blocks.get(index, b"")
            changed[index] = new = _patched(old, start, piece)
            if self.content_key is not None:
                self.content_key += block_key(index, new) - block_key(index, old)
            position += len(piece)
            index, start = index + 1, 0
        self.blocks = self.blocks.update(changed)

    def grow(self, size: int) -> None:
        """Raise the size to ``size`` bytes, unless it is larger already."""
        if size > self.size:
            self.size = size

    def resize(self, size: int) -> None:
        """Set the size in bytes; bytes beyond it are dropped, new ones read as zeros."""
        if size < self.size:
            self.cut(size)
        self.size = size

    def change_links(self, by: int) -> None:
        """Add ``by``, which may be negative, to the number of names."""
        self.links += by

    def first_block(self) -> bytes:
        """Return the first 4,096 bytes, as far as they are stored."""
        return self.blocks.get(0, b"")

    def set_attributes(self, mode: int, uid: int, gid: int, atime_ns: int, mtime_ns: int) -> None:
        """Set permission bits, owner, and times in nanoseconds."""
        self.mode, self.uid, self.gid = mode, uid, gid
        self.atime_ns, self.mtime_ns = atime_ns, mtime_ns

    @property
    def stored_end(self) -> int:
        """The end of the last byte that is stored, which may lie beyond the size; or 0."""
        if not self.blocks:
            return 0
        last = max(self.blocks)
        return last * BLOCK_BYTES + len(self.blocks[last])

    def replace_blocks(self, blocks: Mapping[int, bytes]) -> None:
        """Replace whole blocks, by number, without the bytes beyond the size."""
        changed = {
            index: block[: max(self.size - index * BLOCK_BYTES, 0)]
            for index, block in blocks.items()
        }
        self.blocks, self.content_key = self.blocks.update(changed), None

    def cut(self, size: int) -> None:
        """Drop every stored byte at or beyond ``size`` (bytes)."""
        self.content_key = None
        if not size:
            self.blocks = NO_BLOCKS
            return
        keep, tail_bytes = divmod(size, BLOCK_BYTES)
        blocks = self.blocks
        first_gone = keep + 1 if tail_bytes else keep
        gone = [index for index in blocks if index >= first_gone]
        if gone:
            with blocks.mutate() as editing:
                for index in gone:
                    del editing[index]
                blocks = editing.finish()
        if tail_bytes and len(blocks.get(keep, b"")) > tail_bytes:
            blocks = blocks.set(keep, blocks[keep][:tail_bytes])
        self.blocks = blocks


def block_key(index: int, block: bytes) -> int:
    """Return the share of a block in the ``content_key`` of its file; zeros add nothing."""
    end = len(block)
    while block.endswith(_ZEROS, 0, end):  # much faster than to strip byte by byte
        end -= len(_ZEROS)
    content = block[:end].rstrip(b"\0")
    return xxh3_64_intdigest(content, index) if content else 0


def _patched(old: bytes, start: int, data: bytes) -> bytes:
    if start == len(old):  # most writes append
        return old + data
    return old[:start].ljust(start, b"\0") + data + old[start + len(data) :]
