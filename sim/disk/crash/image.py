"""An image: a whole disk that nobody runs, and that nothing can change.

A boot starts from one, a snapshot and every crash make one. Images share what they have
in common, so a thousand of them cost what they differ in.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import Final, NamedTuple

from immutables import Map
from xxhash import xxh3_128

from sim.disk.cache.inode import FORMAT, REGULAR, ROOT, Inode
from sim.disk.cache.inode_table import Inodes
from sim.disk.crash.micro_operation import MicroOperation

CREATION_NS: Final = 1_700_000_000_000_000_000


class Image(NamedTuple):
    """A platter, what is unsynced above it, and the page cache that both make together.

    After a power cut, and on a disk that was cleanly unmounted, nothing is unsynced and
    the page cache shows the platter.
    """

    platter: Inodes
    unsynced: tuple[MicroOperation, ...]
    cached: Inodes
    next_inode: int

    @classmethod
    def empty(cls) -> Image:
        """Return a freshly made file system: a root directory and nothing else."""
        root = Inode.new(ROOT, stat.S_IFDIR | 0o755, 0, 0, "", CREATION_NS)
        root.parent, root.links = ROOT, 2
        inodes = Map({ROOT: root})
        return cls(inodes, (), inodes, ROOT + 1)

    @classmethod
    def of_platter(cls, platter: Inodes, next_inode: int) -> Image:
        """Return the disk that a machine finds when the power is back."""
        return cls(platter, (), platter, next_inode)

    def tree(self) -> Iterator[tuple[str, Inode]]:
        """Yield every path and its inode as the next boot sees them, parents first, sorted."""
        yield "/", self.cached[ROOT]
        yield from self._below("/", self.cached[ROOT])

    def _below(self, path: str, directory: Inode) -> Iterator[tuple[str, Inode]]:
        for name, number in sorted(directory.entries.items()):
            inode = self.cached[number]
            yield path + name, inode
            if inode.is_directory:
                yield from self._below(f"{path}{name}/", inode)

    def files(self) -> dict[str, bytes]:
        """Return the content of every regular file by path, for looking at small disks."""
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

        It covers paths, kinds, permissions, owners, sizes, contents, link targets and
        which names share an inode; not inode numbers and not times.
        """
        state = xxh3_128()
        first_seen: dict[int, str] = {}
        for path, inode in self.tree():
            same = first_seen.setdefault(inode.number, path)
            head = (path, same, inode.mode, inode.uid, inode.gid, inode.size, inode.link_text)
            state.update(repr(head).encode("utf-8", "surrogateescape"))
            if inode.is_file:
                for index in sorted(inode.blocks):
                    content = inode.blocks[index].rstrip(b"\0")
                    if content:
                        state.update(b"%d:%d:" % (index, len(content)))
                        state.update(content)
        return state.hexdigest()
