"""Images: the state of a whole disk at one moment, which never changes.

A boot starts from an image; a snapshot and a crash return one. Images share their common
parts, so the cost of a thousand images grows with their differences.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import Final, NamedTuple

from immutables import Map
from xxhash import xxh3_128

from sim.disk.cache.inode import FORMAT, REGULAR, ROOT, Inode
from sim.disk.cache.inode_table import Inodes
from sim.disk.crash.notes import Carried, LostData, UnwrittenBlock

CREATION_NS: Final = 1_700_000_000_000_000_000
"""The time at which an empty file system was made."""


class Image(NamedTuple):
    """A platter, unsynced pieces above it, and the page cache (``cached``).

    After a power cut and after a clean unmount nothing is unsynced, and the page cache is
    equal to the platter. After a kill the page cache is the platter with every piece.
    """

    platter: Inodes
    unsynced: tuple[Carried, ...]
    cached: Inodes
    next_inode: int

    @classmethod
    def empty(cls) -> Image:
        """Return a new file system, which has an empty root directory."""
        root = Inode.new(ROOT, stat.S_IFDIR | 0o755, 0, 0, "", CREATION_NS)
        root.parent, root.links = ROOT, 2
        inodes = Map({ROOT: root})
        return cls(inodes, (), inodes, ROOT + 1)

    @classmethod
    def of_platter(cls, platter: Inodes, next_inode: int) -> Image:
        """Return an image with nothing unsynced."""
        return cls(platter, (), platter, next_inode)

    @property
    def with_lost_data(self) -> frozenset[int]:
        """The files of which failed barriers have lost data."""
        return frozenset(
            each.number for each in self.unsynced if isinstance(each, LostData | UnwrittenBlock)
        )

    def tree(self) -> Iterator[tuple[str, Inode]]:
        """Yield every path with its inode, parents first, sorted by name."""
        yield "/", self.cached[ROOT]
        yield from self._below("/", self.cached[ROOT])

    def _below(self, path: str, directory: Inode) -> Iterator[tuple[str, Inode]]:
        for name, number in sorted(directory.entries.items()):
            inode = self.cached[number]
            yield path + name, inode
            if inode.is_directory:
                yield from self._below(f"{path}{name}/", inode)

    def files(self) -> dict[str, bytes]:
        """Return the content of every regular file by path."""
        found: dict[str, bytes] = {}
        self._collect("/", self.cached[ROOT], found)
        return found

    def _collect(self, path: str, directory: Inode, found: dict[str, bytes]) -> None:
        cached = self.cached
        for name, number in sorted(directory.entries.items()):
            inode = cached[number]
            if inode.mode & FORMAT == REGULAR:
                found[path + name] = inode.read(0, inode.size)
            elif inode.entries:
                self._collect(f"{path}{name}/", inode, found)

    def digest(self) -> str:
        """Return 32 hex digits that are equal exactly for equal trees.

        A tree is its paths with their types, permissions, owners, sizes, contents and texts
        of links, and the sets of paths that share an inode. Times and inode numbers do not
        count.
        """
        state = xxh3_128()
        first_paths: dict[int, str] = {}
        for path, inode in self.tree():
            same = first_paths.setdefault(inode.number, path)
            head = (path, same, inode.mode, inode.uid, inode.gid, inode.size, inode.link_text)
            state.update(repr(head).encode("utf-8", "surrogateescape"))
            if inode.is_file:
                for index in sorted(inode.blocks):
                    content = inode.blocks[index].rstrip(b"\0")
                    if content:
                        state.update(b"%d:%d:" % (index, len(content)))
                        state.update(content)
        return state.hexdigest()
