"""Inodes by number: a shared base that never changes, and copies of those that changed.

The page cache of a running disk is one table; a platter under construction is another. The
effect of directory entries on inodes (link counts, the parent of a directory) is
implemented here, once for both.
"""

from __future__ import annotations

from typing import Protocol

from immutables import Map

from sim.disk.cache.inode import FORMAT, REGULAR, Inode
from sim.disk.cache.key import entry_key, key_of

Inodes = Map[int, Inode]


class PathCache(Protocol):
    """Resolved paths, which are right until a directory or a symbolic link moves."""

    def clear(self) -> None:
        """Forget every path."""
        ...


class InodeTable:
    """Inodes by number, over ``base``, whose inodes are never changed.

    ``changed`` holds the table's own inodes; only these may be changed. ``key`` is the key
    of ``base`` (``key.py``), or None where keys are not counted. ``path_caches`` are cleared
    when a directory or a symbolic link gains or loses a name. ``never_named`` are the inodes that
    operations made without a name (``O_TMPFILE``) and have not named yet: an inode that has lost
    its names gets no new one.
    """

    __slots__ = ("base", "changed", "key", "never_named", "path_caches")

    def __init__(self, base: Inodes, key: int | None = None) -> None:
        self.base = base
        self.key = key
        self.changed: dict[int, Inode] = {}
        self.path_caches: tuple[PathCache, ...] = ()
        self.never_named: frozenset[int] = frozenset()

    def __getitem__(self, number: int) -> Inode:
        """Return the inode for reading; ``KeyError`` if no inode has this number."""
        return self.changed.get(number) or self.base[number]

    def get(self, number: int) -> Inode | None:
        """Return the inode for reading, or None if no inode has this number."""
        found = self.changed.get(number)
        return found if found is not None else self.base.get(number)

    def own(self, number: int) -> Inode:
        """Return the inode for changing; ``KeyError`` if no inode has this number."""
        found = self.changed.get(number)
        if found is None:
            found = self.changed[number] = self.base[number].copy()
            if self.key is None:
                found.content_key = None  # this table counts no keys
        return found

    def add(self, inode: Inode) -> Inode:
        """Add a new inode, which the table owns from now on; return the table's object for it."""
        self.changed[inode.number] = inode
        return inode

    # The directory and the inode given to these methods must be the table's own (``own``).

    def attach(self, holder: Inode, name: str, inode: Inode) -> Inode | None:
        """Enter ``name`` in a directory; return the inode that loses this name by it."""
        entries, number = holder.entries, inode.number
        replaced = self.own(entries[name]) if name in entries else None
        holder.entries = entries.set(name, number)
        if holder.content_key is not None:
            holder.content_key += entry_key(name, number)
        if replaced is not None:
            self._lose_name(holder, name, replaced)
        if inode.mode & FORMAT == REGULAR:
            inode.change_links(1)
            return replaced
        self._clear_path_caches()
        if inode.is_directory:
            inode.links = 2 + self._subdirectories(inode)
            inode.parent = holder.number
            holder.change_links(1)
        else:
            inode.change_links(1)
        return replaced

    def detach(self, holder: Inode, name: str, inode: Inode) -> None:
        """Remove ``name``, which means ``inode``, from a directory."""
        assert holder.entries.get(name) == inode.number, (name, inode.number)
        holder.entries = holder.entries.delete(name)
        self._lose_name(holder, name, inode)

    def move(
        self, inode: Inode, holder: Inode, name: str, to_holder: Inode, to_name: str
    ) -> Inode | None:
        """Move a name, if it still means ``inode``; return the inode that loses the new name."""
        entries = holder.entries
        if entries.get(name) == inode.number:
            holder.entries = entries.delete(name)
            self._lose_name(holder, name, inode)
        return self.attach(to_holder, to_name, inode)

    def _lose_name(self, holder: Inode, name: str, inode: Inode) -> None:
        """Count off the name of ``inode`` that is no longer among the entries of ``holder``."""
        if holder.content_key is not None:
            holder.content_key -= entry_key(name, inode.number)
        if inode.mode & FORMAT == REGULAR:
            inode.change_links(-1)
            return
        self._clear_path_caches()
        if inode.is_directory:
            inode.links = 0
            holder.change_links(-1)
        else:
            inode.change_links(-1)

    def links_left(self, number: int) -> int:
        """Return how many names inode ``number`` keeps when it loses one; 0 for a directory."""
        inode = self.get(number)
        return 0 if inode is None or inode.is_directory else inode.links - 1

    def _subdirectories(self, directory: Inode) -> int:
        found = [self.get(number) for number in directory.entries.values()]
        return sum(inode is not None and inode.is_directory for inode in found)

    def _clear_path_caches(self) -> None:
        for cache in self.path_caches:
            cache.clear()

    def view(self) -> Inodes:
        """Return every inode, to be read before the next change."""
        return self.base.update(self.changed)

    def freeze(self) -> Inodes:
        """Return a copy that never changes; the cost grows with the changes since ``base``."""
        if not self.changed:
            return self.base
        return self.base.update({number: inode.copy() for number, inode in self.changed.items()})

    def rebase(self) -> Inodes:
        """Make all changes part of ``base``, and return it; no inode is the table's own then."""
        if self.changed:
            if self.key is not None:
                self.key += key_of(self.changed.values()) - key_of(
                    self.base[number] for number in self.changed if number in self.base
                )
            self.base = self.base.update(self.changed)
            self.changed = {}
        return self.base
