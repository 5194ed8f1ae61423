"""All inodes of one view of the disk: an unchanging base, and own copies of what changed.

The page cache of a running disk is one; a platter under construction is another. What
names do to inodes (counting links, finding the parent of a directory) is written once,
here, for both.
"""

from __future__ import annotations

from typing import Protocol

from immutables import Map

from sim.disk.cache.inode import FORMAT, REGULAR, Inode
from sim.disk.cache.key import entry_key, key_of

Inodes = Map[int, Inode]


class PathCache(Protocol):
    """Paths that were resolved, and are right until a directory or a symbolic link moves."""

    def clear(self) -> None:
        """Forget every path."""
        ...


class InodeTable:
    """Inodes by number. Nothing of ``base`` is ever changed.

    ``key`` is the key of ``base`` (``key.py``), or None where keys are not counted.
    ``path_caches`` are cleared when a directory or a symbolic link gains or loses a name.
    """

    __slots__ = ("base", "changed", "key", "path_caches")

    def __init__(self, base: Inodes, key: int | None = None) -> None:
        self.base = base
        self.key = key
        self.changed: dict[int, Inode] = {}
        self.path_caches: list[PathCache] = []

    def get(self, number: int) -> Inode | None:
        """Return the inode for reading, or None if there is none of this number."""
        found = self.changed.get(number)
        return found if found is not None else self.base.get(number)

    def own(self, number: int) -> Inode:
        """Return the inode for changing; ``KeyError`` if there is none of this number."""
        found = self.changed.get(number)
        if found is None:
            found = self.changed[number] = self.base[number].copy()
            if self.key is None:
                found.content_key = None  # what nobody asks for need not be kept right
        return found

    def _clear_path_caches(self) -> None:
        for cache in self.path_caches:
            cache.clear()

    def add(self, inode: Inode) -> None:
        """Take a new inode in; it is the table's own from now on."""
        self.changed[inode.number] = inode

    def attach(self, directory: int, name: str, number: int) -> None:
        """Let ``name`` in ``directory`` mean ``number``, whatever it meant before."""
        self.attach_own(self.own(directory), name, self.own(number))

    def attach_own(self, holder: Inode, name: str, inode: Inode) -> Inode | None:
        """Do what ``attach`` does, with two inodes that are the table's own already.

        Return the inode that has lost the name, if there is one.
        """
        entries, number = holder.entries, inode.number
        replaced = self.own(entries[name]) if name in entries else None
        holder.entries = entries.set(name, number)
        if holder.content_key is not None:
            holder.content_key += entry_key(name, number)
        if replaced is not None:
            self._lose_name(holder, name, replaced)
        if inode.mode & FORMAT == REGULAR:
            inode.links += 1
            return replaced
        self._clear_path_caches()
        if inode.is_directory:
            inode.links = 2 + self._subdirectories(inode)
            inode.parent = holder.number
            holder.links += 1
        else:
            inode.links += 1
        return replaced

    def _subdirectories(self, directory: Inode) -> int:
        found = [self.get(number) for number in directory.entries.values()]
        return sum(inode is not None and inode.is_directory for inode in found)

    def detach(self, directory: int, name: str) -> None:
        """Let ``name`` in ``directory`` mean nothing."""
        holder = self.own(directory)
        self.detach_own(holder, name, self.own(holder.entries[name]))

    def detach_own(self, holder: Inode, name: str, inode: Inode) -> None:
        """Do what ``detach`` does, with two inodes that are the table's own already."""
        holder.entries = holder.entries.delete(name)
        self._lose_name(holder, name, inode)

    def _lose_name(self, holder: Inode, name: str, inode: Inode) -> None:
        """Take note that ``name`` in ``holder`` does not mean ``inode`` any longer."""
        if holder.content_key is not None:
            holder.content_key -= entry_key(name, inode.number)
        if not (inode.parent or inode.link_text):
            inode.links -= 1
            return
        self._clear_path_caches()
        if inode.is_directory:
            inode.links = 0
            holder.links -= 1
        else:
            inode.links -= 1

    def move(self, number: int, directory: int, name: str, to_directory: int, to_name: str) -> None:
        """Rename: the old name goes, if it still means this inode; the new one means it."""
        holder, inode = self.own(directory), self.own(number)
        if holder.entries.get(name) == number:
            self.detach_own(holder, name, inode)
        self.attach_own(self.own(to_directory), to_name, inode)

    def move_own(
        self, holder: Inode, name: str, to_holder: Inode, to_name: str, inode: Inode
    ) -> Inode | None:
        """Do what ``move`` does, with inodes that are the table's own already.

        Return the inode that has lost the new name, if there is one.
        """
        entries = holder.entries
        if (
            holder is not to_holder
            or holder.content_key is not None
            or inode.parent
            or inode.link_text
        ):
            self.detach_own(holder, name, inode)
            return self.attach_own(to_holder, to_name, inode)
        # A file that stays in its directory is what most renames move.
        holder.entries = entries.delete(name).set(to_name, inode.number)
        if to_name not in entries:
            return None
        number, changed = entries[to_name], self.changed
        replaced = changed[number] if number in changed else self.own(number)
        if replaced.parent or replaced.link_text:
            self._lose_name(holder, to_name, replaced)
        else:
            replaced.links -= 1
        return replaced

    def view(self) -> Inodes:
        """Return everything for a look at once: what changes later may show, or may not."""
        return self.base.update(self.changed)

    def freeze(self) -> Inodes:
        """Return everything as an unchanging base; costs what changed, not what is stored."""
        if not self.changed:
            return self.base
        return self.base.update({number: inode.copy() for number, inode in self.changed.items()})

    def rebase(self) -> Inodes:
        """Make everything the new base, and return it; who still holds an own inode must not."""
        if self.changed:
            if self.key is not None:
                self.key += key_of(self.changed.values()) - key_of(
                    self.base[number] for number in self.changed if number in self.base
                )
            self.base = self.base.update(self.changed)
            self.changed = {}
        return self.base
