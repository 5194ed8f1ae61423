"""Inodes of an undecided disk, which ask for each property when the program reads it.

A ``LazyInode`` is an ``Inode`` to the calls above it. It keeps the changes that the program
made, and asks for everything else. Bytes that the program has overwritten are not asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn, Protocol, cast

from sim.disk.cache.inode import BLOCK_BYTES, Blocks, Entries, Inode
from sim.disk.cache.inode_table import Inodes, InodeTable

WHOLE_SIZE: Final = sys.maxsize


class Asker(Protocol):
    """Answers questions about an undecided disk; inodes are named by number."""

    def inode(self, number: int) -> LazyInode:
        """Return an inode that the boot has met; ``KeyError`` for another number."""
        ...

    def size(self, number: int, cap: int) -> int:
        """Return the size in bytes, or ``cap`` if it is larger."""
        ...

    def data(self, number: int, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end``."""
        ...

    def has_block(self, number: int, index: int) -> bool:
        """Return whether anything is stored in a block."""
        ...

    def entry(self, number: int, name: str) -> int:
        """Return the inode that a name in a directory means, or 0."""
        ...

    def names(self, number: int) -> tuple[str, ...]:
        """Return the names in a directory."""
        ...

    def links(self, number: int) -> int:
        """Return the link count."""
        ...

    def parent(self, number: int) -> int:
        """Return the directory that holds a directory."""
        ...

    def times_ns(self, number: int) -> tuple[int, int, int]:
        """Return the times of access, modification and change in nanoseconds."""
        ...

    def st_ino(self, number: int) -> int:
        """Return the number of the inode as the disk has it."""
        ...

    def refuse(self, wanted: str) -> NoReturn:
        """Raise ``NeedsWholeImage`` for a property that cannot be asked for."""
        ...


class LazyEntries(Mapping[str, int]):
    """The entries of a directory: those that the program changed, over those of the disk.

    As a persistent map, it never changes; 0 marks a name that was removed. A new
    directory, without ``asker``, has only the entries that the program has made.
    """

    __slots__ = ("_asker", "_changes", "_number")

    def __init__(self, asker: Asker | None, number: int, changes: dict[str, int]) -> None:
        self._asker = asker
        self._number = number
        self._changes = changes

    def __getitem__(self, name: str) -> int:
        found = self._changes.get(name)
        if found is None and self._asker is not None:
            found = self._asker.entry(self._number, name)
        if not found:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        changes = self._changes
        if self._asker is not None:
            yield from (name for name in self._asker.names(self._number) if name not in changes)
        yield from (name for name, number in changes.items() if number)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def set(self, name: str, number: int) -> LazyEntries:
        """Return the entries with one more, or another, name."""
        return LazyEntries(self._asker, self._number, {**self._changes, name: number})

    def delete(self, name: str) -> LazyEntries:
        """Return the entries without a name."""
        return self.set(name, 0)


_CHANGING: Final = (
    "_changes", "_disk_size", "_entries", "_link_change", "_links", "_parent", "_size",
    "_times_ns",
)  # fmt: skip


class LazyInode(Inode):
    """An inode of an undecided disk; ``mode``, owner and link text are known from the start.

    The other properties are those of ``Inode``, and are asked for where the program has not
    set them.
    """

    __slots__ = ("_asker", *_CHANGING)

    _asker: Asker
    _changes: tuple[tuple[int, int, bytes | None], ...]
    _disk_size: int | None
    _entries: LazyEntries
    _link_change: int
    _links: int | None
    _parent: int | None
    _size: int | None
    _times_ns: tuple[int | None, int | None, int | None]

    def __init__(
        self,
        asker: Asker,
        number: int,
        mode: int,
        uid: int,
        gid: int,
        link_text: str,
        new: Inode | None = None,
    ) -> None:
        self.number, self.mode, self.uid, self.gid = number, mode, uid, gid
        self.link_text, self.content_key = link_text, None
        self._asker, self._changes, self._link_change = asker, (), 0
        if new is None:
            self._entries = LazyEntries(asker, number, {})
            self._size = self._disk_size = self._links = self._parent = None
            self._times_ns = (None, None, None)
        else:
            self._entries = LazyEntries(None, number, {})
            self._size = self._disk_size = new.size
            self._links = self._parent = 0
            self._times_ns = (new.atime_ns, new.mtime_ns, new.ctime_ns)

    @classmethod
    def created(cls, asker: Asker, inode: Inode) -> LazyInode:
        """Return a new inode, which has nothing on the disk."""
        return cls(asker, inode.number, inode.mode, inode.uid, inode.gid, inode.link_text, inode)

    def copy(self) -> LazyInode:
        """Return an independent copy."""
        copy = LazyInode(self._asker, self.number, self.mode, self.uid, self.gid, self.link_text)
        for name in _CHANGING:
            setattr(copy, name, getattr(self, name))
        return copy

    # -- size and bytes ------------------------------------------------------------------------

    @property
    def size(self) -> int:
        if self._size is None:
            self._size = self._disk_size = self._asker.size(self.number, WHOLE_SIZE)
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        assert self._disk_size is not None, "a size is read before it is set"
        self._size = size

    @property
    def blocks(self) -> Blocks:
        self._asker.refuse("the allocated blocks of a file")

    @blocks.setter
    def blocks(self, _blocks: Blocks) -> None:
        self._asker.refuse("the allocated blocks of a file")

    def read(self, offset: int, length: int) -> bytes:
        end = offset + length
        size = self._size
        if size is None:
            size = self._asker.size(self.number, end) if end > offset else 0
        return self.stored(offset, max(min(end, size) - offset, 0))

    def stored(self, offset: int, length: int) -> bytes:
        # Each place has the bytes of its last change, or those of the disk.
        found = bytearray(length)
        missing = [(offset, offset + length)]
        for first, last, written in reversed(self._changes):
            left: list[tuple[int, int]] = []
            for start, end in missing:
                if start >= last or first >= end:
                    left.append((start, end))
                    continue
                begin, limit = max(first, start), min(last, end)
                if written is not None:
                    found[begin - offset : limit - offset] = written[begin - first : limit - first]
                left += [(start, begin), (limit, end)]
            missing = [(start, end) for start, end in left if start < end]
            if not missing:
                break
        for start, end in missing:
            found[start - offset : end - offset] = self._on_disk(start, end)
        return bytes(found)

    def _on_disk(self, start: int, end: int) -> bytes:
        """Return bytes of the disk; beyond its end there are zeros."""
        known = end if self._disk_size is None else max(min(end, self._disk_size), start)
        found = self._asker.data(self.number, start, known) if start < known else b""
        return found + bytes(end - known)

    def write(self, offset: int, data: bytes) -> None:
        self._changes = (*self._changes, (offset, offset + len(data), data))

    def cut(self, size: int) -> None:
        self._changes = (*self._changes, (size, WHOLE_SIZE, None))

    def has_block(self, index: int) -> bool:
        return self._asker.has_block(self.number, index)

    def replace_blocks(self, blocks: Mapping[int, bytes]) -> None:
        for index, block in blocks.items():
            self.write(index * BLOCK_BYTES, block)

    def first_block(self) -> bytes:
        """Return nothing: the block only seeds the random numbers of SQLite, which may be any."""
        return b""

    # -- names ---------------------------------------------------------------------------------

    @property
    def entries(self) -> Entries:
        return cast("Entries", self._entries)

    @entries.setter
    def entries(self, entries: Entries) -> None:
        self._entries = cast("LazyEntries", entries)

    @property
    def links(self) -> int:
        if self._links is None:
            self._links = self._asker.links(self.number)
        return self._links + self._link_change

    @links.setter
    def links(self, links: int) -> None:
        self._links, self._link_change = links, 0

    @property
    def is_linked(self) -> bool:
        """Whether it has a name; a directory that a boot has met has one until it loses it."""
        if self.is_directory and self._links is None:
            return True
        return bool(self.links)

    def change_links(self, by: int) -> None:
        self._link_change += by

    @property
    def parent(self) -> int:
        if not self.is_directory:
            return 0
        if self._parent is None:
            self._parent = self._asker.parent(self.number)
        return self._parent

    @parent.setter
    def parent(self, parent: int) -> None:
        self._parent = parent

    # -- attributes ----------------------------------------------------------------------------

    @property
    def st_ino(self) -> int:
        return self._asker.st_ino(self.number)

    def _time_ns(self, index: int) -> int:
        found = self._times_ns[index]
        return self._asker.times_ns(self.number)[index] if found is None else found

    @property
    def atime_ns(self) -> int:
        return self._time_ns(0)

    @atime_ns.setter
    def atime_ns(self, now_ns: int) -> None:
        self._times_ns = (now_ns, *self._times_ns[1:])

    @property
    def mtime_ns(self) -> int:
        return self._time_ns(1)

    @mtime_ns.setter
    def mtime_ns(self, now_ns: int) -> None:
        self._times_ns = (self._times_ns[0], now_ns, self._times_ns[2])

    @property
    def ctime_ns(self) -> int:
        return self._time_ns(2)

    @ctime_ns.setter
    def ctime_ns(self, now_ns: int) -> None:
        self._times_ns = (*self._times_ns[:2], now_ns)


class LazyInodes:
    """The inodes that a boot has met, by number, as the base of an ``InodeTable``."""

    __slots__ = ("_asker", "_changed")

    def __init__(self, asker: Asker, changed: Mapping[int, Inode] | None = None) -> None:
        self._asker = asker
        self._changed = dict(changed or {})

    def __getitem__(self, number: int) -> Inode:
        found = self._changed.get(number)
        return found if found is not None else self._asker.inode(number)

    def get(self, number: int, default: Inode | None = None) -> Inode | None:
        """Return an inode, or ``default`` if the boot has met none of this number."""
        try:
            return self[number]
        except KeyError:
            return default

    def update(self, changed: Mapping[int, Inode]) -> LazyInodes:
        """Return these inodes with others, which have changed."""
        return LazyInodes(self._asker, {**self._changed, **changed})


class LazyInodeTable(InodeTable):
    """The page cache of a boot on an undecided disk."""

    __slots__ = ("_asker",)

    def __init__(self, asker: Asker) -> None:
        super().__init__(cast("Inodes", LazyInodes(asker)))
        self._asker = asker

    def add(self, inode: Inode) -> Inode:
        """Add a new inode; only its number on the disk has to be asked for."""
        return super().add(LazyInode.created(self._asker, inode))
